-- Administrative events, append-only. Those of a tenant are numbered from 1, and each hash covers the one before.
CREATE TABLE audit_event (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL CHECK (number >= 1),
    time_us BIGINT NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    resource TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    detail TEXT COLLATE "C" NOT NULL,
    decision_id TEXT COLLATE "C" NOT NULL,
    policy_revision TEXT COLLATE "C" NOT NULL,
    request_id TEXT COLLATE "C" NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    UNIQUE (tenant, number)
);

CREATE INDEX audit_event_by_time ON audit_event (tenant, time_us, id);
CREATE INDEX audit_event_by_resource ON audit_event (tenant, resource, time_us);
CREATE INDEX audit_event_by_decision ON audit_event (decision_id);

CREATE FUNCTION audit_event_is_final_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an audit event never changes';
END
$$;

CREATE TRIGGER audit_event_is_final BEFORE UPDATE ON audit_event FOR EACH ROW
    EXECUTE FUNCTION audit_event_is_final_refuse();

CREATE FUNCTION audit_event_stays_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an audit event stays for ever';
END
$$;

CREATE TRIGGER audit_event_stays BEFORE DELETE ON audit_event FOR EACH ROW
    EXECUTE FUNCTION audit_event_stays_refuse();

-- How far each chain has got.
CREATE TABLE audit_chain (
    tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    length BIGINT NOT NULL,
    last_hash TEXT COLLATE "C" NOT NULL
);
