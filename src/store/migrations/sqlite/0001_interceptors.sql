-- Interceptors added by API, and a counter by which other processes see that something changed.
CREATE TABLE interceptor (
    sequence INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    creator TEXT NOT NULL,
    create_time_us INTEGER NOT NULL,
    definition TEXT NOT NULL,
    UNIQUE (tenant, id)
) STRICT;

CREATE TABLE interceptor_revision (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    revision INTEGER NOT NULL
) STRICT;

INSERT INTO interceptor_revision (only_row, revision) VALUES (1, 0);
