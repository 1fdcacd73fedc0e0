-- Whether the entity of a submission is archived stands beside it, so that a list and its count look at one table. By
-- triggers, so that a process of the release before keeps it too while a new one starts.
ALTER TABLE submission ADD COLUMN is_archived BIGINT NOT NULL DEFAULT 0 CHECK (is_archived IN (0, 1));

UPDATE submission s SET is_archived = 1 FROM entity e
    WHERE e.id = s.entity_id AND e.tenant = s.tenant AND e.visibility = 'archived';

CREATE FUNCTION submission_archive_begin() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM entity e WHERE e.id = NEW.entity_id AND e.tenant = NEW.tenant AND e.visibility = 'archived'
    ) THEN
        NEW.is_archived := 1;
    END IF;
    RETURN NEW;
END;
$$;

CREATE TRIGGER submission_archive_begins BEFORE INSERT ON submission FOR EACH ROW
    EXECUTE FUNCTION submission_archive_begin();

-- Submissions are locked in the order of their ids, as everybody does who locks several.
CREATE FUNCTION entity_archive_set(entity_tenant TEXT, entity TEXT, now_archived BIGINT) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM submission WHERE entity_id = entity AND tenant = entity_tenant ORDER BY id FOR UPDATE;
    UPDATE submission SET is_archived = now_archived
        WHERE entity_id = entity AND tenant = entity_tenant AND is_archived <> now_archived;
END;
$$;

CREATE FUNCTION entity_archive_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM entity_archive_set(OLD.tenant, OLD.id, 0);
    ELSE
        PERFORM entity_archive_set(NEW.tenant, NEW.id, CASE WHEN NEW.visibility = 'archived' THEN 1 ELSE 0 END);
    END IF;
    RETURN NULL;
END;
$$;

CREATE TRIGGER entity_archive_begins AFTER INSERT ON entity FOR EACH ROW
    WHEN (NEW.visibility = 'archived') EXECUTE FUNCTION entity_archive_change();
CREATE TRIGGER entity_archive_changes AFTER UPDATE OF visibility ON entity FOR EACH ROW
    WHEN ((NEW.visibility = 'archived') <> (OLD.visibility = 'archived')) EXECUTE FUNCTION entity_archive_change();
CREATE TRIGGER entity_archive_ends AFTER DELETE ON entity FOR EACH ROW
    WHEN (OLD.visibility = 'archived') EXECUTE FUNCTION entity_archive_change();

-- All that a list is filtered and ordered by, beside the text that is searched: where what is asked for stands far back in
-- the order of the list, this is read instead of the rows. PostgreSQL cannot keep texts of such length in an index.
ALTER TABLE submission_text
    ADD COLUMN tenant TEXT COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN create_time_us BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN is_archived BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN status TEXT COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN kind TEXT COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN submitter TEXT COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN name TEXT COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN update_time_us BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN file_size BIGINT NOT NULL DEFAULT 0;

UPDATE submission_text t SET
    tenant = s.tenant, create_time_us = s.create_time_us, is_archived = s.is_archived, status = s.status, kind = s.kind,
    submitter = s.submitter, name = s.name, update_time_us = s.update_time_us, file_size = s.file_size
    FROM submission s WHERE s.id = t.id;

CREATE OR REPLACE FUNCTION submission_text_begin() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO submission_text (
        id, folded, tenant, create_time_us, is_archived, status, kind, submitter, name, update_time_us, file_size
    ) VALUES (
        NEW.id, NEW.folded, NEW.tenant, NEW.create_time_us, NEW.is_archived, NEW.status, NEW.kind, NEW.submitter, NEW.name,
        NEW.update_time_us, NEW.file_size
    );
    RETURN NULL;
END;
$$;

CREATE OR REPLACE FUNCTION submission_text_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE submission_text SET
        folded = NEW.folded, tenant = NEW.tenant, create_time_us = NEW.create_time_us, is_archived = NEW.is_archived,
        status = NEW.status, kind = NEW.kind, submitter = NEW.submitter, name = NEW.name,
        update_time_us = NEW.update_time_us, file_size = NEW.file_size
        WHERE id = NEW.id;
    RETURN NULL;
END;
$$;

DROP TRIGGER submission_text_changes ON submission;
CREATE TRIGGER submission_text_changes AFTER UPDATE ON submission FOR EACH ROW
    WHEN (
        (NEW.folded, NEW.tenant, NEW.create_time_us, NEW.is_archived, NEW.status, NEW.kind, NEW.submitter, NEW.name,
            NEW.update_time_us, NEW.file_size)
        IS DISTINCT FROM
        (OLD.folded, OLD.tenant, OLD.create_time_us, OLD.is_archived, OLD.status, OLD.kind, OLD.submitter, OLD.name,
            OLD.update_time_us, OLD.file_size)
    ) EXECUTE FUNCTION submission_text_change();

-- What a count of a filtered list looks at.
DROP INDEX submission_for_counts;
CREATE INDEX submission_for_counts ON submission (tenant, status, is_archived, kind, submitter, id);
-- Nothing is counted by entity any more.
DROP INDEX submission_of_entity;
CREATE INDEX submission_by_entity ON submission (entity_id);
