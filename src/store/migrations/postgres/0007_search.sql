-- What submissions are searched by, apart from their rows, so that a search looks through little.
CREATE TABLE submission_text (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    folded TEXT COLLATE "C" NOT NULL
);

INSERT INTO submission_text (id, folded) SELECT id, folded FROM submission;

-- By triggers, so that a process of the release before keeps them too while a new one starts.
CREATE FUNCTION submission_text_begin() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO submission_text (id, folded) VALUES (NEW.id, NEW.folded);
    RETURN NULL;
END;
$$;

CREATE TRIGGER submission_text_begins AFTER INSERT ON submission FOR EACH ROW EXECUTE FUNCTION submission_text_begin();

CREATE FUNCTION submission_text_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE submission_text SET folded = NEW.folded WHERE id = NEW.id;
    RETURN NULL;
END;
$$;

CREATE TRIGGER submission_text_changes AFTER UPDATE OF folded ON submission FOR EACH ROW
    WHEN (NEW.folded IS DISTINCT FROM OLD.folded) EXECUTE FUNCTION submission_text_change();

-- Which groups of three characters stand in which text. The extension comes with PostgreSQL, and who owns a database may
-- add it; where it is not installed or not allowed, a search reads the table above instead.
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX submission_text_trigrams ON submission_text USING gin (folded gin_trgm_ops);
EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE 'searches of submissions read all their texts, as pg_trgm cannot be used: %', SQLERRM;
END;
$$;
