-- Incidents counted day by day (days since 1970, in UTC), told apart by all that rates tell apart: rates over some weeks add
-- up these, and look only at the incidents of the days that the weeks begin in.
CREATE TABLE incident_day (
    tenant TEXT NOT NULL,
    day INTEGER NOT NULL,
    rule_id TEXT NOT NULL,
    category TEXT NOT NULL,
    verdict TEXT NOT NULL,
    false_positive INTEGER NOT NULL,
    shadow INTEGER NOT NULL,
    incidents INTEGER NOT NULL,
    -- Those with a verdict, and the sum of their latencies, each at most an hour.
    landed INTEGER NOT NULL,
    latency_ns INTEGER NOT NULL,
    PRIMARY KEY (tenant, day, rule_id, category, verdict, false_positive, shadow)
) STRICT, WITHOUT ROWID;

INSERT INTO incident_day (
    tenant, day, rule_id, category, verdict, false_positive, shadow, incidents, landed, latency_ns
) SELECT tenant, time_us / 86400000000, rule_id, category, verdict, false_positive, shadow,
    COUNT(*), SUM(latency_ns >= 0), SUM(max(0, min(latency_ns, 3600000000000)))
    FROM incident GROUP BY 1, 2, 3, 4, 5, 6, 7;

-- Rates were counted from this.
DROP INDEX incident_rates;

-- By triggers, so that a process of the release before keeps them too while a new one starts.
CREATE TRIGGER incident_day_begins AFTER INSERT ON incident
BEGIN
    INSERT INTO incident_day (
        tenant, day, rule_id, category, verdict, false_positive, shadow, incidents, landed, latency_ns
    ) VALUES (
        NEW.tenant, NEW.time_us / 86400000000, NEW.rule_id, NEW.category, NEW.verdict, NEW.false_positive, NEW.shadow,
        1, NEW.latency_ns >= 0, max(0, min(NEW.latency_ns, 3600000000000))
    ) ON CONFLICT DO UPDATE SET incidents = incidents + 1, landed = landed + excluded.landed,
        latency_ns = latency_ns + excluded.latency_ns;
END;

CREATE TRIGGER incident_day_changes AFTER UPDATE ON incident
    WHEN (NEW.tenant, NEW.time_us, NEW.rule_id, NEW.category, NEW.verdict, NEW.false_positive, NEW.shadow, NEW.latency_ns)
    IS NOT
    (OLD.tenant, OLD.time_us, OLD.rule_id, OLD.category, OLD.verdict, OLD.false_positive, OLD.shadow, OLD.latency_ns)
BEGIN
    INSERT INTO incident_day (
        tenant, day, rule_id, category, verdict, false_positive, shadow, incidents, landed, latency_ns
    ) VALUES (
        NEW.tenant, NEW.time_us / 86400000000, NEW.rule_id, NEW.category, NEW.verdict, NEW.false_positive, NEW.shadow,
        1, NEW.latency_ns >= 0, max(0, min(NEW.latency_ns, 3600000000000))
    ) ON CONFLICT DO UPDATE SET incidents = incidents + 1, landed = landed + excluded.landed,
        latency_ns = latency_ns + excluded.latency_ns;
    UPDATE incident_day SET incidents = incidents - 1, landed = landed - (OLD.latency_ns >= 0),
        latency_ns = latency_ns - max(0, min(OLD.latency_ns, 3600000000000))
        WHERE tenant = OLD.tenant AND day = OLD.time_us / 86400000000 AND rule_id = OLD.rule_id
            AND category = OLD.category AND verdict = OLD.verdict AND false_positive = OLD.false_positive
            AND shadow = OLD.shadow;
    DELETE FROM incident_day
        WHERE tenant = OLD.tenant AND day = OLD.time_us / 86400000000 AND rule_id = OLD.rule_id
            AND category = OLD.category AND verdict = OLD.verdict AND false_positive = OLD.false_positive
            AND shadow = OLD.shadow AND incidents = 0;
END;

CREATE TRIGGER incident_day_ends AFTER DELETE ON incident
BEGIN
    UPDATE incident_day SET incidents = incidents - 1, landed = landed - (OLD.latency_ns >= 0),
        latency_ns = latency_ns - max(0, min(OLD.latency_ns, 3600000000000))
        WHERE tenant = OLD.tenant AND day = OLD.time_us / 86400000000 AND rule_id = OLD.rule_id
            AND category = OLD.category AND verdict = OLD.verdict AND false_positive = OLD.false_positive
            AND shadow = OLD.shadow;
    DELETE FROM incident_day
        WHERE tenant = OLD.tenant AND day = OLD.time_us / 86400000000 AND rule_id = OLD.rule_id
            AND category = OLD.category AND verdict = OLD.verdict AND false_positive = OLD.false_positive
            AND shadow = OLD.shadow AND incidents = 0;
END;
