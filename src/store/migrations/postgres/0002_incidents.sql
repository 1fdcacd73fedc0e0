-- Incidents of the stream monitor. Empty texts stand for what is absent; what a JSON column holds is told in the code.
CREATE TABLE incident (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    agent_id TEXT COLLATE "C" NOT NULL,
    time_us BIGINT NOT NULL,
    rule_id TEXT COLLATE "C" NOT NULL,
    category TEXT COLLATE "C" NOT NULL,
    -- 0 LOW to 3 CRITICAL, so that it can be ordered.
    severity BIGINT NOT NULL,
    stream TEXT COLLATE "C" NOT NULL,
    byte_offset BIGINT NOT NULL,
    matched_text TEXT COLLATE "C" NOT NULL,
    excerpt TEXT COLLATE "C" NOT NULL,
    verdict TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    -- -1 while no verdict has landed.
    latency_ns BIGINT NOT NULL,
    work TEXT COLLATE "C" NOT NULL,
    context TEXT COLLATE "C" NOT NULL,
    decision_id TEXT COLLATE "C" NOT NULL,
    policy_revision TEXT COLLATE "C" NOT NULL,
    repeats BIGINT NOT NULL,
    shadow BIGINT NOT NULL,
    false_positive BIGINT NOT NULL,
    false_positive_reason TEXT COLLATE "C" NOT NULL
);

CREATE INDEX incident_by_time ON incident (tenant, time_us, id);
CREATE INDEX incident_by_session ON incident (session_id);
CREATE INDEX incident_by_age ON incident (time_us);
