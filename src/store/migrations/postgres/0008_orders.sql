-- Equal ones of a list stand in the order of their ids in the direction of the list, so one index serves both directions.
DROP INDEX submission_by_person_down;
DROP INDEX submission_by_kind_down;
DROP INDEX submission_by_verdict_down;
-- Those of one verdict in each order that the console offers: where what is asked for stands at the other end of an order of
-- all, a page would be looked for through all of them.
CREATE INDEX submission_of_verdict_by_name ON submission (tenant, status, name, id);
CREATE INDEX submission_of_verdict_by_person ON submission (tenant, status, submitter, id);
CREATE INDEX submission_of_verdict_by_size ON submission (tenant, status, file_size, id);
CREATE INDEX submission_of_verdict_by_change ON submission (tenant, status, update_time_us, id);
CREATE INDEX submission_of_verdict_by_kind ON submission (tenant, status, kind, id);
-- The incidents of one session, of one verdict and of one rule, by time.
CREATE INDEX incident_of_session ON incident (tenant, session_id, time_us, id);
DROP INDEX incident_by_session;
CREATE INDEX incident_of_verdict ON incident (tenant, verdict, time_us, id);
CREATE INDEX incident_of_rule ON incident (tenant, rule_id, time_us, id);
-- Rates are counted in the order of this, so nothing is sorted for them.
CREATE INDEX incident_rates ON incident (tenant, rule_id, category, verdict, false_positive, shadow, time_us, latency_ns);
DROP INDEX incident_for_rates;
