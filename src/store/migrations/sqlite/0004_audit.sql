-- Administrative events, append-only. Those of a tenant are numbered from 1, and each hash covers the one before.
CREATE TABLE audit_event (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    number INTEGER NOT NULL CHECK (number >= 1),
    time_us INTEGER NOT NULL,
    action TEXT NOT NULL,
    actor TEXT NOT NULL,
    resource TEXT NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL,
    decision_id TEXT NOT NULL,
    policy_revision TEXT NOT NULL,
    request_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    UNIQUE (tenant, number)
) STRICT;

CREATE INDEX audit_event_by_time ON audit_event (tenant, time_us, id);
CREATE INDEX audit_event_by_resource ON audit_event (tenant, resource, time_us);
CREATE INDEX audit_event_by_decision ON audit_event (decision_id);

CREATE TRIGGER audit_event_is_final BEFORE UPDATE ON audit_event
BEGIN
    SELECT RAISE(ABORT, 'an audit event never changes');
END;

CREATE TRIGGER audit_event_stays BEFORE DELETE ON audit_event
BEGIN
    SELECT RAISE(ABORT, 'an audit event stays for ever');
END;

-- How far each chain has got.
CREATE TABLE audit_chain (
    tenant TEXT NOT NULL PRIMARY KEY,
    length INTEGER NOT NULL,
    last_hash TEXT NOT NULL
) STRICT;
