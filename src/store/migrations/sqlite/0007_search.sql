-- What submissions are searched by, apart from their rows, so that a search looks through little. Numbers stay as they are
-- for ever, which those of rows without a key of their own do not (VACUUM).
CREATE TABLE submission_text (
    number INTEGER NOT NULL PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    folded TEXT NOT NULL
) STRICT;

INSERT INTO submission_text (id, folded) SELECT id, folded FROM submission ORDER BY create_time_us, id;

-- Which groups of three characters stand in which text (https://www.sqlite.org/fts5.html, the trigram tokenizer). The
-- texts are folded already.
CREATE VIRTUAL TABLE submission_trigram USING fts5 (
    folded, content = 'submission_text', content_rowid = 'number', tokenize = 'trigram case_sensitive 1'
);

INSERT INTO submission_trigram (submission_trigram) VALUES ('rebuild');

-- By triggers, so that a process of the release before keeps them too while a new one starts.
CREATE TRIGGER submission_text_begins AFTER INSERT ON submission
BEGIN
    INSERT INTO submission_text (id, folded) VALUES (NEW.id, NEW.folded);
END;

CREATE TRIGGER submission_text_changes AFTER UPDATE OF folded ON submission WHEN NEW.folded <> OLD.folded
BEGIN
    UPDATE submission_text SET folded = NEW.folded WHERE id = NEW.id;
END;

CREATE TRIGGER submission_trigram_begins AFTER INSERT ON submission_text
BEGIN
    INSERT INTO submission_trigram (rowid, folded) VALUES (NEW.number, NEW.folded);
END;

-- The index is told the old text, to take out just what it had put in.
CREATE TRIGGER submission_trigram_changes AFTER UPDATE ON submission_text
BEGIN
    INSERT INTO submission_trigram (submission_trigram, rowid, folded) VALUES ('delete', OLD.number, OLD.folded);
    INSERT INTO submission_trigram (rowid, folded) VALUES (NEW.number, NEW.folded);
END;
