-- Whether the entity of a submission is archived stands beside it, so that a list and its count look at one table. By
-- triggers, so that a process of the release before keeps it too while a new one starts.
ALTER TABLE submission ADD COLUMN is_archived INTEGER NOT NULL DEFAULT 0 CHECK (is_archived IN (0, 1));

UPDATE submission SET is_archived = 1 WHERE EXISTS (
    SELECT 1 FROM entity e WHERE e.id = submission.entity_id AND e.tenant = submission.tenant AND e.visibility = 'archived'
);

CREATE TRIGGER submission_archive_begins AFTER INSERT ON submission WHEN EXISTS (
    SELECT 1 FROM entity e WHERE e.id = NEW.entity_id AND e.tenant = NEW.tenant AND e.visibility = 'archived'
)
BEGIN
    UPDATE submission SET is_archived = 1 WHERE id = NEW.id;
END;

CREATE TRIGGER entity_archive_begins AFTER INSERT ON entity WHEN NEW.visibility = 'archived'
BEGIN
    UPDATE submission SET is_archived = 1 WHERE entity_id = NEW.id AND tenant = NEW.tenant;
END;

CREATE TRIGGER entity_archive_changes AFTER UPDATE OF visibility ON entity
    WHEN (NEW.visibility = 'archived') <> (OLD.visibility = 'archived')
BEGIN
    UPDATE submission SET is_archived = (NEW.visibility = 'archived') WHERE entity_id = NEW.id AND tenant = NEW.tenant;
END;

CREATE TRIGGER entity_archive_ends AFTER DELETE ON entity WHEN OLD.visibility = 'archived'
BEGIN
    UPDATE submission SET is_archived = 0 WHERE entity_id = OLD.id AND tenant = OLD.tenant;
END;

-- All that a list is filtered and ordered by: where what is asked for stands far back in the order of the list, this is
-- read instead of the rows. The long text comes last.
DROP INDEX submission_searched;
CREATE INDEX submission_searched ON submission
    (tenant, create_time_us, id, is_archived, status, kind, submitter, name, update_time_us, file_size, folded);
-- What a count of a filtered list looks at.
DROP INDEX submission_for_counts;
CREATE INDEX submission_for_counts ON submission (tenant, status, is_archived, kind, submitter, id);
-- Nothing is counted by entity any more.
DROP INDEX submission_of_entity;
CREATE INDEX submission_by_entity ON submission (entity_id);
