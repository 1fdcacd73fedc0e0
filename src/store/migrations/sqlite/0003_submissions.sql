-- Submissions, their attempts and their entities; the row of a submission that waits is the job of reviewing it.
-- Times are microseconds since 1970. Empty texts stand for what is absent, where a column cannot be NULL. What a JSON
-- column holds is told in the code. A column `folded` holds texts in the spelling in which they are searched.
CREATE TABLE entity (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('skill', 'plugin', 'agent')),
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    visibility TEXT NOT NULL CHECK (visibility IN ('pending', 'approved', 'hidden', 'archived')),
    live_submission_id TEXT,
    latest_submission_id TEXT NOT NULL,
    create_time_us INTEGER NOT NULL,
    update_time_us INTEGER NOT NULL,
    archive_time_us INTEGER,
    archived_by TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    folded TEXT NOT NULL,
    -- What is published has bytes.
    CHECK (visibility <> 'approved' OR live_submission_id IS NOT NULL)
) STRICT;

CREATE INDEX entity_by_name ON entity (tenant, name, id);
CREATE INDEX entity_by_owner ON entity (tenant, owner);
CREATE INDEX entity_by_live ON entity (live_submission_id);

CREATE TABLE submission (
    id TEXT NOT NULL PRIMARY KEY,
    entity_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('skill', 'plugin', 'agent')),
    name TEXT NOT NULL,
    version_text TEXT NOT NULL,
    description TEXT NOT NULL,
    submitter TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending_inline', 'blocked_inline', 'pending_llm', 'approved', 'blocked_llm',
        'review_error', 'overridden', 'deleted')),
    hold_reason TEXT NOT NULL CHECK (hold_reason IN ('none', 'no_key', 'coverage')),
    attempt INTEGER NOT NULL CHECK (attempt >= 1),
    decision_id TEXT NOT NULL,
    policy_revision TEXT NOT NULL,
    bundle_sha256 TEXT NOT NULL,
    file_size INTEGER NOT NULL,
    file_count INTEGER NOT NULL,
    create_time_us INTEGER NOT NULL,
    update_time_us INTEGER NOT NULL,
    purge_time_us INTEGER,
    review_model TEXT NOT NULL,
    override_actor TEXT,
    override_reason TEXT,
    override_prior_status TEXT,
    override_time_us INTEGER,
    tries INTEGER NOT NULL,
    lease_owner TEXT,
    lease_until_us INTEGER,
    not_before_us INTEGER,
    version INTEGER NOT NULL CHECK (version >= 1),
    folded TEXT NOT NULL,
    description_folded TEXT NOT NULL,
    CHECK (hold_reason = 'none' OR status = 'pending_llm'),
    CHECK ((lease_owner IS NULL) = (lease_until_us IS NULL)),
    -- Only what waits can be worked on.
    CHECK (lease_owner IS NULL OR (status IN ('pending_inline', 'pending_llm') AND hold_reason = 'none')),
    CHECK ((override_actor IS NULL) = (override_time_us IS NULL)),
    -- What was overridden says by whom and why.
    CHECK (status <> 'overridden' OR override_actor IS NOT NULL)
) STRICT;

CREATE INDEX submission_by_time ON submission (tenant, create_time_us, id);
CREATE INDEX submission_by_submitter ON submission (tenant, submitter, create_time_us);
CREATE INDEX submission_by_entity ON submission (entity_id);
CREATE INDEX submission_by_hash ON submission (bundle_sha256);
CREATE INDEX submission_by_status ON submission (status, update_time_us);
CREATE INDEX submission_waiting ON submission (create_time_us, id)
    WHERE hold_reason = 'none' AND status IN ('pending_inline', 'pending_llm');

CREATE TRIGGER submission_stays BEFORE DELETE ON submission
BEGIN
    SELECT RAISE(ABORT, 'a submission stays for ever, deleted ones as tombstones');
END;

CREATE TRIGGER submission_is_deleted BEFORE UPDATE ON submission WHEN OLD.status = 'deleted' AND NEW.status <> 'deleted'
BEGIN
    SELECT RAISE(ABORT, 'a submission that was deleted never comes back');
END;

CREATE TABLE attempt (
    submission_id TEXT NOT NULL REFERENCES submission (id),
    number INTEGER NOT NULL CHECK (number >= 1),
    status TEXT NOT NULL,
    hold_reason TEXT NOT NULL,
    checks TEXT NOT NULL,
    coverage TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    unjudged TEXT NOT NULL,
    error TEXT NOT NULL,
    decision_id TEXT NOT NULL,
    policy_revision TEXT NOT NULL,
    start_time_us INTEGER NOT NULL,
    end_time_us INTEGER,
    PRIMARY KEY (submission_id, number)
) STRICT;

CREATE TRIGGER attempt_is_final BEFORE UPDATE ON attempt WHEN OLD.end_time_us IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'an attempt that has ended never changes');
END;

CREATE TRIGGER attempt_stays BEFORE DELETE ON attempt
BEGIN
    SELECT RAISE(ABORT, 'an attempt stays for ever');
END;

-- Verdicts of models about bytes that were reviewed before.
CREATE TABLE verdict (
    bundle_sha256 TEXT NOT NULL,
    model TEXT NOT NULL,
    prompt_version TEXT NOT NULL,
    review TEXT NOT NULL,
    time_us INTEGER NOT NULL,
    PRIMARY KEY (bundle_sha256, model, prompt_version)
) STRICT;

-- When each regular job last began, in whatever process.
CREATE TABLE job (
    name TEXT NOT NULL PRIMARY KEY,
    begin_time_us INTEGER NOT NULL
) STRICT;
