-- All that a list of submissions is filtered and ordered by, and nothing else, in the order of the numbers of their texts:
-- the hits of a search come in that order from the index of groups of characters, and those of one tenant stand together.
-- It replaces an index that had the texts as well, and was read whole for them.
CREATE TABLE submission_listed (
    tenant TEXT NOT NULL,
    number INTEGER NOT NULL,
    is_archived INTEGER NOT NULL,
    status TEXT NOT NULL,
    kind TEXT NOT NULL,
    submitter TEXT NOT NULL,
    name TEXT NOT NULL,
    create_time_us INTEGER NOT NULL,
    update_time_us INTEGER NOT NULL,
    file_size INTEGER NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (tenant, number)
) STRICT, WITHOUT ROWID;

INSERT INTO submission_listed (
    tenant, number, is_archived, status, kind, submitter, name, create_time_us, update_time_us, file_size, id
) SELECT s.tenant, t.number, s.is_archived, s.status, s.kind, s.submitter, s.name, s.create_time_us, s.update_time_us,
    s.file_size, s.id
    FROM submission_text t JOIN submission s ON s.id = t.id ORDER BY s.tenant, t.number;

DROP INDEX submission_searched;

-- By triggers, so that a process of the release before keeps them too while a new one starts. The row is read as it
-- stands: another trigger may have changed it since it was written.
CREATE TRIGGER submission_listed_begins AFTER INSERT ON submission_text
BEGIN
    INSERT INTO submission_listed (
        tenant, number, is_archived, status, kind, submitter, name, create_time_us, update_time_us, file_size, id
    ) SELECT s.tenant, NEW.number, s.is_archived, s.status, s.kind, s.submitter, s.name, s.create_time_us,
        s.update_time_us, s.file_size, s.id
        FROM submission s WHERE s.id = NEW.id;
END;

CREATE TRIGGER submission_listed_changes AFTER UPDATE ON submission
    WHEN (NEW.tenant, NEW.is_archived, NEW.status, NEW.kind, NEW.submitter, NEW.name, NEW.create_time_us,
        NEW.update_time_us, NEW.file_size)
    IS NOT
    (OLD.tenant, OLD.is_archived, OLD.status, OLD.kind, OLD.submitter, OLD.name, OLD.create_time_us,
        OLD.update_time_us, OLD.file_size)
BEGIN
    UPDATE submission_listed SET
        tenant = NEW.tenant, is_archived = NEW.is_archived, status = NEW.status, kind = NEW.kind,
        submitter = NEW.submitter, name = NEW.name, create_time_us = NEW.create_time_us,
        update_time_us = NEW.update_time_us, file_size = NEW.file_size
        WHERE tenant = OLD.tenant AND number = (SELECT t.number FROM submission_text t WHERE t.id = NEW.id);
END;
