-- What each rule found, day by day (days since 1970, in UTC), for the console.
CREATE TABLE rule_count (
    tenant TEXT NOT NULL,
    rule_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    findings INTEGER NOT NULL,
    would_block INTEGER NOT NULL,
    PRIMARY KEY (tenant, rule_id, day)
) STRICT;

CREATE INDEX rule_count_by_day ON rule_count (day);

-- An index for each order and each filter that a list of the console offers, so that a page of them is read and never the
-- whole table. Equal ones stand in the order of their ids in both directions, so orders with few values need two.
CREATE INDEX submission_by_name ON submission (tenant, name, id);
CREATE INDEX submission_by_size ON submission (tenant, file_size, id);
CREATE INDEX submission_by_change ON submission (tenant, update_time_us, id);
CREATE INDEX submission_by_person ON submission (tenant, submitter, id);
CREATE INDEX submission_by_person_down ON submission (tenant, submitter DESC, id);
CREATE INDEX submission_by_kind ON submission (tenant, kind, id);
CREATE INDEX submission_by_kind_down ON submission (tenant, kind DESC, id);
CREATE INDEX submission_by_verdict ON submission (tenant, status, id);
CREATE INDEX submission_by_verdict_down ON submission (tenant, status DESC, id);
CREATE INDEX submission_of_verdict ON submission (tenant, status, create_time_us, id);
CREATE INDEX submission_of_kind ON submission (tenant, kind, create_time_us, id);
-- What a count of a filtered list looks at stands in the index itself.
CREATE INDEX submission_for_counts ON submission (tenant, status, entity_id, kind, submitter);
-- A search looks through this instead of the rows. PostgreSQL cannot keep values of such length in an index.
CREATE INDEX submission_searched ON submission (tenant, create_time_us, id, folded, status, entity_id, submitter, kind);
CREATE INDEX submission_of_entity ON submission (entity_id, tenant, status, kind, submitter);
DROP INDEX submission_by_entity;
CREATE INDEX entity_by_visibility ON entity (tenant, visibility, id);
-- The incidents of a tenant by time, with what they are filtered by: what is left out is not looked up.
CREATE INDEX incident_list ON incident (tenant, time_us, id, severity, verdict, false_positive, rule_id, session_id);
DROP INDEX incident_by_time;
-- What rates are counted from, and the incidents of one rule.
CREATE INDEX incident_for_rates ON incident (tenant, rule_id, time_us, category, false_positive, verdict, latency_ns);
