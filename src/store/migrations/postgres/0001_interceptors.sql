-- Interceptors added by API, and a counter by which other processes see that something changed.
CREATE TABLE interceptor (
    sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    creator TEXT COLLATE "C" NOT NULL,
    create_time_us BIGINT NOT NULL,
    definition TEXT COLLATE "C" NOT NULL,
    UNIQUE (tenant, id)
);

CREATE TABLE interceptor_revision (
    only_row BIGINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    revision BIGINT NOT NULL
);

INSERT INTO interceptor_revision (only_row, revision) VALUES (1, 0);
