-- The policy that a submission is checked under, whenever it is checked; empty is the default one.
ALTER TABLE submission ADD COLUMN policy TEXT NOT NULL DEFAULT '';
