-- Submissions, their attempts and their entities; the row of a submission that waits is the job of reviewing it.
-- Times are microseconds since 1970. Empty texts stand for what is absent, where a column cannot be NULL. What a JSON
-- column holds is told in the code. A column `folded` holds texts in the spelling in which they are searched.
CREATE TABLE entity (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('skill', 'plugin', 'agent')),
    name TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    visibility TEXT COLLATE "C" NOT NULL CHECK (visibility IN ('pending', 'approved', 'hidden', 'archived')),
    live_submission_id TEXT COLLATE "C",
    latest_submission_id TEXT COLLATE "C" NOT NULL,
    create_time_us BIGINT NOT NULL,
    update_time_us BIGINT NOT NULL,
    archive_time_us BIGINT,
    archived_by TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL CHECK (version >= 1),
    folded TEXT COLLATE "C" NOT NULL,
    -- What is published has bytes.
    CHECK (visibility <> 'approved' OR live_submission_id IS NOT NULL)
);

CREATE INDEX entity_by_name ON entity (tenant, name, id);
CREATE INDEX entity_by_owner ON entity (tenant, owner);
CREATE INDEX entity_by_live ON entity (live_submission_id);

CREATE TABLE submission (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    entity_id TEXT COLLATE "C" NOT NULL,
    tenant TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('skill', 'plugin', 'agent')),
    name TEXT COLLATE "C" NOT NULL,
    version_text TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    submitter TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending_inline', 'blocked_inline', 'pending_llm', 'approved', 'blocked_llm',
        'review_error', 'overridden', 'deleted')),
    hold_reason TEXT COLLATE "C" NOT NULL CHECK (hold_reason IN ('none', 'no_key', 'coverage')),
    attempt BIGINT NOT NULL CHECK (attempt >= 1),
    decision_id TEXT COLLATE "C" NOT NULL,
    policy_revision TEXT COLLATE "C" NOT NULL,
    bundle_sha256 TEXT COLLATE "C" NOT NULL,
    file_size BIGINT NOT NULL,
    file_count BIGINT NOT NULL,
    create_time_us BIGINT NOT NULL,
    update_time_us BIGINT NOT NULL,
    purge_time_us BIGINT,
    review_model TEXT COLLATE "C" NOT NULL,
    override_actor TEXT COLLATE "C",
    override_reason TEXT COLLATE "C",
    override_prior_status TEXT COLLATE "C",
    override_time_us BIGINT,
    tries BIGINT NOT NULL,
    lease_owner TEXT COLLATE "C",
    lease_until_us BIGINT,
    not_before_us BIGINT,
    version BIGINT NOT NULL CHECK (version >= 1),
    folded TEXT COLLATE "C" NOT NULL,
    description_folded TEXT COLLATE "C" NOT NULL,
    CHECK (hold_reason = 'none' OR status = 'pending_llm'),
    CHECK ((lease_owner IS NULL) = (lease_until_us IS NULL)),
    -- Only what waits can be worked on.
    CHECK (lease_owner IS NULL OR (status IN ('pending_inline', 'pending_llm') AND hold_reason = 'none')),
    CHECK ((override_actor IS NULL) = (override_time_us IS NULL)),
    -- What was overridden says by whom and why.
    CHECK (status <> 'overridden' OR override_actor IS NOT NULL)
);

CREATE INDEX submission_by_time ON submission (tenant, create_time_us, id);
CREATE INDEX submission_by_submitter ON submission (tenant, submitter, create_time_us);
CREATE INDEX submission_by_entity ON submission (entity_id);
CREATE INDEX submission_by_hash ON submission (bundle_sha256);
CREATE INDEX submission_by_status ON submission (status, update_time_us);
CREATE INDEX submission_waiting ON submission (create_time_us, id)
    WHERE hold_reason = 'none' AND status IN ('pending_inline', 'pending_llm');

CREATE FUNCTION submission_stays_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a submission stays for ever, deleted ones as tombstones';
END
$$;

CREATE TRIGGER submission_stays BEFORE DELETE ON submission FOR EACH ROW
    EXECUTE FUNCTION submission_stays_refuse();

CREATE FUNCTION submission_is_deleted_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a submission that was deleted never comes back';
END
$$;

CREATE TRIGGER submission_is_deleted BEFORE UPDATE ON submission FOR EACH ROW
    WHEN (OLD.status = 'deleted' AND NEW.status <> 'deleted')
    EXECUTE FUNCTION submission_is_deleted_refuse();

CREATE TABLE attempt (
    submission_id TEXT COLLATE "C" NOT NULL REFERENCES submission (id),
    number BIGINT NOT NULL CHECK (number >= 1),
    status TEXT COLLATE "C" NOT NULL,
    hold_reason TEXT COLLATE "C" NOT NULL,
    checks TEXT COLLATE "C" NOT NULL,
    coverage TEXT COLLATE "C" NOT NULL,
    capabilities TEXT COLLATE "C" NOT NULL,
    unjudged TEXT COLLATE "C" NOT NULL,
    error TEXT COLLATE "C" NOT NULL,
    decision_id TEXT COLLATE "C" NOT NULL,
    policy_revision TEXT COLLATE "C" NOT NULL,
    start_time_us BIGINT NOT NULL,
    end_time_us BIGINT,
    PRIMARY KEY (submission_id, number)
);

CREATE FUNCTION attempt_is_final_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an attempt that has ended never changes';
END
$$;

CREATE TRIGGER attempt_is_final BEFORE UPDATE ON attempt FOR EACH ROW
    WHEN (OLD.end_time_us IS NOT NULL)
    EXECUTE FUNCTION attempt_is_final_refuse();

CREATE FUNCTION attempt_stays_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an attempt stays for ever';
END
$$;

CREATE TRIGGER attempt_stays BEFORE DELETE ON attempt FOR EACH ROW
    EXECUTE FUNCTION attempt_stays_refuse();

-- Verdicts of models about bytes that were reviewed before.
CREATE TABLE verdict (
    bundle_sha256 TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    prompt_version TEXT COLLATE "C" NOT NULL,
    review TEXT COLLATE "C" NOT NULL,
    time_us BIGINT NOT NULL,
    PRIMARY KEY (bundle_sha256, model, prompt_version)
);

-- When each regular job last began, in whatever process.
CREATE TABLE job (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    begin_time_us BIGINT NOT NULL
);
