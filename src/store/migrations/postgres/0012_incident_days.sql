-- Incidents counted day by day (days since 1970, in UTC), told apart by all that rates tell apart: rates over some weeks add
-- up these, and look only at the incidents of the days that the weeks begin in.
CREATE TABLE incident_day (
    tenant TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    rule_id TEXT COLLATE "C" NOT NULL,
    category TEXT COLLATE "C" NOT NULL,
    verdict TEXT COLLATE "C" NOT NULL,
    false_positive BIGINT NOT NULL,
    shadow BIGINT NOT NULL,
    incidents BIGINT NOT NULL,
    -- Those with a verdict, and the sum of their latencies, each at most an hour.
    landed BIGINT NOT NULL,
    latency_ns BIGINT NOT NULL,
    PRIMARY KEY (tenant, day, rule_id, category, verdict, false_positive, shadow)
    -- The same few rows are counted up again and again; room beside them keeps that off the index.
) WITH (fillfactor = 50);

-- Who changes several counts does so alone until the end of the transaction: two who change the same ones in another order
-- would wait for each other. It is asked for before any row is locked.
CREATE FUNCTION incident_day_alone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(TG_RELID::BIGINT);
    RETURN NULL;
END;
$$;

-- Adds counts, which are below zero for what is no more.
CREATE FUNCTION incident_day_add(changes incident_day[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO incident_day AS d SELECT * FROM unnest(changes)
        ON CONFLICT (tenant, day, rule_id, category, verdict, false_positive, shadow) DO UPDATE SET
            incidents = d.incidents + excluded.incidents,
            landed = d.landed + excluded.landed,
            latency_ns = d.latency_ns + excluded.latency_ns;
    DELETE FROM incident_day d USING unnest(changes) c
        WHERE (d.tenant, d.day, d.rule_id, d.category, d.verdict, d.false_positive, d.shadow)
            = (c.tenant, c.day, c.rule_id, c.category, c.verdict, c.false_positive, c.shadow)
        AND d.incidents = 0;
END;
$$;

CREATE FUNCTION incident_day_begin() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM incident_day_add(array_agg((
        tenant, day, rule_id, category, verdict, false_positive, shadow, incidents, landed, latency_ns
    )::incident_day)) FROM (
        SELECT tenant, time_us / 86400000000 AS day, rule_id, category, verdict, false_positive, shadow,
            COUNT(*) AS incidents, COUNT(*) FILTER (WHERE latency_ns >= 0) AS landed,
            SUM(greatest(0, least(latency_ns, 3600000000000)))::BIGINT AS latency_ns
            FROM begun GROUP BY 1, 2, 3, 4, 5, 6, 7
    ) counted HAVING COUNT(*) > 0;
    RETURN NULL;
END;
$$;

CREATE FUNCTION incident_day_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM incident_day_add(array_agg((
        tenant, day, rule_id, category, verdict, false_positive, shadow, incidents, landed, latency_ns
    )::incident_day)) FROM (
        SELECT tenant, time_us / 86400000000 AS day, rule_id, category, verdict, false_positive, shadow,
            -COUNT(*) AS incidents, -COUNT(*) FILTER (WHERE latency_ns >= 0) AS landed,
            -SUM(greatest(0, least(latency_ns, 3600000000000)))::BIGINT AS latency_ns
            FROM ended GROUP BY 1, 2, 3, 4, 5, 6, 7
    ) counted HAVING COUNT(*) > 0;
    RETURN NULL;
END;
$$;

-- What did not change in what is told apart takes nothing away and adds nothing.
CREATE FUNCTION incident_day_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM incident_day_add(array_agg((
        tenant, day, rule_id, category, verdict, false_positive, shadow, incidents, landed, latency_ns
    )::incident_day)) FROM (
        SELECT tenant, time_us / 86400000000 AS day, rule_id, category, verdict, false_positive, shadow,
            SUM(one)::BIGINT AS incidents, COALESCE(SUM(one) FILTER (WHERE latency_ns >= 0), 0)::BIGINT AS landed,
            SUM(one * greatest(0, least(latency_ns, 3600000000000)))::BIGINT AS latency_ns
            FROM (SELECT 1 AS one, b.* FROM begun b UNION ALL SELECT -1 AS one, e.* FROM ended e) both_of
            GROUP BY 1, 2, 3, 4, 5, 6, 7
    ) counted WHERE incidents <> 0 OR landed <> 0 OR latency_ns <> 0 HAVING COUNT(*) > 0;
    RETURN NULL;
END;
$$;

-- By triggers, so that a process of the release before keeps them too while a new one starts; nobody writes incidents until
-- those that are there have been counted.
CREATE TRIGGER incident_day_alone BEFORE INSERT OR UPDATE OR DELETE ON incident
    FOR EACH STATEMENT EXECUTE FUNCTION incident_day_alone();
CREATE TRIGGER incident_day_begins AFTER INSERT ON incident
    REFERENCING NEW TABLE AS begun FOR EACH STATEMENT EXECUTE FUNCTION incident_day_begin();
CREATE TRIGGER incident_day_changes AFTER UPDATE ON incident
    REFERENCING OLD TABLE AS ended NEW TABLE AS begun FOR EACH STATEMENT EXECUTE FUNCTION incident_day_change();
CREATE TRIGGER incident_day_ends AFTER DELETE ON incident
    REFERENCING OLD TABLE AS ended FOR EACH STATEMENT EXECUTE FUNCTION incident_day_end();

INSERT INTO incident_day (
    tenant, day, rule_id, category, verdict, false_positive, shadow, incidents, landed, latency_ns
) SELECT tenant, time_us / 86400000000, rule_id, category, verdict, false_positive, shadow,
    COUNT(*), COUNT(*) FILTER (WHERE latency_ns >= 0), SUM(greatest(0, least(latency_ns, 3600000000000)))::BIGINT
    FROM incident GROUP BY 1, 2, 3, 4, 5, 6, 7;

-- Rates were counted from this.
DROP INDEX incident_rates;
