-- Incidents of the stream monitor. Empty texts stand for what is absent; what a JSON column holds is told in the code.
CREATE TABLE incident (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    session_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    time_us INTEGER NOT NULL,
    rule_id TEXT NOT NULL,
    category TEXT NOT NULL,
    -- 0 LOW to 3 CRITICAL, so that it can be ordered.
    severity INTEGER NOT NULL,
    stream TEXT NOT NULL,
    byte_offset INTEGER NOT NULL,
    matched_text TEXT NOT NULL,
    excerpt TEXT NOT NULL,
    verdict TEXT NOT NULL,
    reason TEXT NOT NULL,
    source TEXT NOT NULL,
    action TEXT NOT NULL,
    -- -1 while no verdict has landed.
    latency_ns INTEGER NOT NULL,
    work TEXT NOT NULL,
    context TEXT NOT NULL,
    decision_id TEXT NOT NULL,
    policy_revision TEXT NOT NULL,
    repeats INTEGER NOT NULL,
    shadow INTEGER NOT NULL,
    false_positive INTEGER NOT NULL,
    false_positive_reason TEXT NOT NULL
) STRICT;

CREATE INDEX incident_by_time ON incident (tenant, time_us, id);
CREATE INDEX incident_by_session ON incident (session_id);
CREATE INDEX incident_by_age ON incident (time_us);
