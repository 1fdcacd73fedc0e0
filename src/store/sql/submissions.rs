//! Submissions, attempts and entities in the database: reading them, and writing changes of them.
//!
//! Rows are locked in one order: the quota of a submitter, the entity, submissions by id, attempts, the chain of audit
//! events. So no two changes wait for each other in a circle.

use std::collections::{HashMap, HashSet};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::database::{Engine, Transaction};
use super::rows::{
    self, ATTEMPT, ENTITY, SUBMISSION, assignments, bind_attempt, bind_entity, bind_submission,
    check_indexed, count, decode, from_json, json, microseconds, values,
};
use super::{SqlStore, Statement};
use crate::decision::{HoldReason, LlmReview, SubmissionStatus};
use crate::store::{
    AcceptError, AcceptedEntity, AttemptWrite, Change, ChecksBrief, EntityPage, EntityQuery, EntityWrite,
    NewSubmission, PURGED_STATUSES, QUOTA_STATUSES, Quota, StatusCount, StoreError, StoredAttempt,
    StoredEntity, StoredSubmission, SubmissionPage, SubmissionQuery, SubmissionStore, SubmissionWrite,
    VerdictEntry, VerdictKey,
};

/// Ids in one statement at most: SQLite takes 32,766 values, PostgreSQL 65,535.
const IDS_MAX: usize = 500;
/// Rows that a job of the service gets at once, so that no backlog fills the memory.
const JOB_ROWS_MAX: i64 = 10_000;

/// That a submission waits for somebody to take it. Written as in the index, which PostgreSQL would not use otherwise.
const WAITS: &str = "hold_reason = 'none' AND status IN ('pending_inline', 'pending_llm')";

impl SqlStore {
    async fn accept_now(&self, new: NewSubmission) -> Result<(), AcceptError> {
        let NewSubmission { entity, submission, attempt, quota, events } = new;
        check_submission(&submission)?;
        let mut write = self.database.write().await?;
        if let Some(Quota { limit, since }) = quota {
            self.lock_quota(&mut write, &submission.tenant, &submission.submitter).await?;
            let counting = blocked_since(&submission.tenant, &submission.submitter, since);
            let found = count(write.number(counting, "found").await?);
            if found >= limit {
                return Err(AcceptError::QuotaExceeded { found, limit });
            }
        }
        match entity {
            AcceptedEntity::New(entity) => insert_entity(&mut write, &entity).await?,
            AcceptedEntity::Existing { entity, expect_version } => {
                if !update_entity(&mut write, &submission.tenant, &entity, expect_version).await? {
                    let there = Statement::new("SELECT id FROM entity WHERE tenant = ? AND id = ?");
                    let there = write.row(there.bind(&submission.tenant).bind(&entity.id)).await?;
                    return Err(there.map_or(AcceptError::EntityGone, |_| AcceptError::LostRace));
                }
            }
        }
        let insert = format!(
            "INSERT INTO submission {}",
            values(&format!("{SUBMISSION}, folded, description_folded"))
        );
        write.run(bind_submission(Statement::new(insert), &submission, 1)).await?;
        insert_attempt(&mut write, &attempt).await?;
        self.append_events(&mut write, &events).await?;
        write.commit().await?;
        Ok(())
    }

    /// Makes those that count the blocked submissions of one submitter wait for each other. SQLite has one writer anyway.
    async fn lock_quota(
        &self,
        write: &mut Transaction<'_>,
        tenant: &str,
        submitter: &str,
    ) -> Result<(), StoreError> {
        if self.database.engine() == Engine::Sqlite {
            return Ok(());
        }
        let mut hash = Sha256::new_with_prefix(b"portcullis quota");
        for text in [tenant, submitter] {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
        let hash = hash.finalize();
        let key = hash.iter().take(8).fold(0_i64, |key, byte| (key << 8) | i64::from(*byte));
        write.run(Statement::new("SELECT pg_advisory_xact_lock(?)").bind(key)).await.map(|_| ())
    }

    async fn apply_now(&self, change: Change) -> Result<bool, StoreError> {
        let Change { tenant, mut submissions, entity, verdict, events } = change;
        for one in &submissions {
            check_submission(&one.submission)?;
        }
        let mut write = self.database.write().await?;
        let entity_is_written = match &entity {
            None => true,
            Some(EntityWrite::Update { entity, expect_version }) => {
                update_entity(&mut write, &tenant, entity, *expect_version).await?
            }
            Some(EntityWrite::Delete { id, expect_version }) => {
                let delete = Statement::new("DELETE FROM entity WHERE tenant = ? AND id = ? AND version = ?");
                write.run(delete.bind(&tenant).bind(id).bind(*expect_version)).await? == 1
            }
        };
        if !entity_is_written {
            write.rollback().await?;
            return Ok(false);
        }
        submissions.sort_unstable_by(|a, b| a.submission.id.cmp(&b.submission.id));
        for SubmissionWrite { submission, expect_version, .. } in &submissions {
            let update = format!(
                "UPDATE submission SET {} WHERE tenant = ? AND id = ? AND version = ?",
                assignments(&format!("{SUBMISSION}, folded, description_folded"))
            );
            let update = bind_submission(Statement::new(update), submission, expect_version + 1);
            let update = update.bind(&tenant).bind(&submission.id).bind(*expect_version);
            if write.run(update).await? != 1 {
                write.rollback().await?;
                return Ok(false);
            }
        }
        for attempt in submissions.iter().flat_map(|one| &one.attempts) {
            self.write_attempt(&mut write, attempt).await?;
        }
        if let Some(VerdictEntry { key, review, time }) = &verdict {
            check_indexed(&[
                ("verdict.bundle_sha256", &key.bundle_sha256),
                ("verdict.model", &key.model),
                ("verdict.prompt_version", &key.prompt_version),
            ])?;
            let insert = Statement::new(
                "INSERT INTO verdict (bundle_sha256, model, prompt_version, review, time_us) VALUES (?, ?, ?, ?, ?) \
                 ON CONFLICT (bundle_sha256, model, prompt_version) DO UPDATE SET review = excluded.review, \
                 time_us = excluded.time_us WHERE verdict.time_us <= excluded.time_us",
            );
            let insert = insert.bind(&key.bundle_sha256).bind(&key.model).bind(&key.prompt_version);
            write.run(insert.bind(&json(review)).bind(microseconds(*time))).await?;
        }
        self.append_events(&mut write, &events).await?;
        write.commit().await?;
        Ok(true)
    }

    async fn write_attempt(
        &self,
        write: &mut Transaction<'_>,
        attempt: &AttemptWrite,
    ) -> Result<(), StoreError> {
        let attempt = match attempt {
            AttemptWrite::Insert(attempt) => return insert_attempt(write, attempt).await,
            AttemptWrite::Update(attempt) => attempt,
        };
        let update =
            format!("UPDATE attempt SET {} WHERE submission_id = ? AND number = ?", assignments(ATTEMPT));
        let update = bind_attempt(Statement::new(update), attempt);
        if write.run(update.bind(&attempt.submission_id).bind(attempt.number)).await? == 1 {
            return Ok(());
        }
        let cause = format!("submission `{}` has no attempt {}", attempt.submission_id, attempt.number);
        Err(StoreError::Refused { place: self.database.place().to_owned(), cause })
    }

    async fn claim_now(
        &self,
        owner: &str,
        now: Timestamp,
        lease_until: Timestamp,
        tries_max: u32,
    ) -> Result<Option<StoredSubmission>, StoreError> {
        let skip = match self.database.engine() {
            Engine::Sqlite => "",
            Engine::Postgres => " FOR UPDATE SKIP LOCKED",
        };
        let claim = Statement::new(format!(
            "UPDATE submission SET tries = tries + 1, lease_owner = ?, lease_until_us = ?, version = version + 1 \
             WHERE id = (SELECT id FROM submission WHERE {WAITS} AND tries < ? \
             AND (lease_until_us IS NULL OR lease_until_us <= ?) AND (not_before_us IS NULL OR not_before_us <= ?) \
             ORDER BY create_time_us, id LIMIT 1{skip}) RETURNING {SUBMISSION}"
        ))
        .bind(owner)
        .bind(microseconds(lease_until))
        .bind(tries_max)
        .bind(microseconds(now))
        .bind(microseconds(now));
        let rows = self.database.write_one(claim).await?;
        self.read(rows.first().map(rows::submission).transpose())
    }

    async fn renew_now(
        &self,
        id: &str,
        attempt: u32,
        owner: &str,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let renew = Statement::new(format!(
            "UPDATE submission SET lease_until_us = ? WHERE id = ? AND attempt = ? AND lease_owner = ? AND {WAITS} \
             RETURNING id"
        ));
        let renew = renew.bind(microseconds(until)).bind(id).bind(attempt).bind(owner);
        Ok(!self.database.write_one(renew).await?.is_empty())
    }

    async fn expired_now(
        &self,
        tenant: Option<&str>,
        before: Timestamp,
        tries_max: u32,
    ) -> Result<Vec<StoredSubmission>, StoreError> {
        // One that was given back after its last try has no lease; then its last change counts.
        let mut select = Statement::new(format!(
            "SELECT {SUBMISSION} FROM submission WHERE {WAITS} AND tries >= ? \
             AND COALESCE(lease_until_us, update_time_us) <= ?"
        ))
        .bind(tries_max)
        .bind(microseconds(before));
        push_tenant(&mut select, tenant);
        select.push(" ORDER BY create_time_us, id LIMIT ").push_value(JOB_ROWS_MAX);
        self.read_all(&self.database.rows(select).await?, rows::submission)
    }

    async fn held_now(&self, reason: HoldReason) -> Result<Vec<StoredSubmission>, StoreError> {
        let mut select = Statement::new(format!(
            "SELECT {SUBMISSION} FROM submission WHERE status = 'pending_llm' AND hold_reason = ?"
        ))
        .bind(reason.as_str());
        select.push(" ORDER BY create_time_us, id LIMIT ").push_value(JOB_ROWS_MAX);
        self.read_all(&self.database.rows(select).await?, rows::submission)
    }

    async fn purgeable_now(
        &self,
        tenant: Option<&str>,
        before: Timestamp,
    ) -> Result<Vec<StoredSubmission>, StoreError> {
        let mut select =
            Statement::new(format!("SELECT {SUBMISSION} FROM submission WHERE purge_time_us IS NULL"));
        select.push_in("status", PURGED_STATUSES.map(SubmissionStatus::as_str));
        select.push(" AND update_time_us < ").push_value(microseconds(before));
        select.push(" AND NOT EXISTS (SELECT 1 FROM entity WHERE entity.live_submission_id = submission.id)");
        push_tenant(&mut select, tenant);
        select.push(" ORDER BY create_time_us, id LIMIT ").push_value(JOB_ROWS_MAX);
        self.read_all(&self.database.rows(select).await?, rows::submission)
    }

    async fn with_bytes_now(&self, ids: &[String]) -> Result<HashSet<String>, StoreError> {
        let mut kept = HashSet::new();
        for ids in ids.chunks(IDS_MAX) {
            let mut select = Statement::new(
                "SELECT id FROM submission WHERE purge_time_us IS NULL AND status <> 'deleted'",
            );
            select.push_in("id", ids);
            let rows = self.database.rows(select).await?;
            kept.extend(self.read_all(&rows, |row| row.text("id"))?);
        }
        Ok(kept)
    }

    async fn attempts_now(&self, tenant: &str, ids: &[String]) -> Result<Vec<StoredAttempt>, StoreError> {
        let mut attempts = Vec::new();
        for ids in ids.chunks(IDS_MAX) {
            let mut select = Statement::new(format!(
                "SELECT {ATTEMPT} FROM attempt WHERE EXISTS (SELECT 1 FROM submission WHERE submission.id = \
                 attempt.submission_id AND submission.tenant = ?)"
            ))
            .bind(tenant);
            select.push_in("submission_id", ids);
            let rows = self.database.rows(select).await?;
            attempts.extend(self.read_all(&rows, rows::attempt)?);
        }
        attempts.sort_by(|a, b| (&a.submission_id, a.number).cmp(&(&b.submission_id, b.number)));
        Ok(attempts)
    }

    async fn briefs_now(
        &self,
        tenant: &str,
        ids: &[String],
    ) -> Result<HashMap<String, ChecksBrief>, StoreError> {
        let mut briefs = HashMap::new();
        for ids in ids.chunks(IDS_MAX) {
            let mut select = Statement::new(
                "SELECT submission_id, checks FROM attempt WHERE number = (SELECT MAX(later.number) FROM attempt AS later \
                 WHERE later.submission_id = attempt.submission_id) AND EXISTS (SELECT 1 FROM submission WHERE \
                 submission.id = attempt.submission_id AND submission.tenant = ?)",
            )
            .bind(tenant);
            select.push_in("submission_id", ids);
            let rows = self.database.rows(select).await?;
            briefs.extend(self.read_all(&rows, |row| {
                let brief = ChecksBrief::read(&row.text("checks")?).map_err(decode)?;
                Ok((row.text("submission_id")?, brief))
            })?);
        }
        Ok(briefs)
    }

    async fn read_submissions(&self, select: Statement) -> Result<Vec<StoredSubmission>, StoreError> {
        self.read_all(&self.database.rows(select).await?, rows::submission)
    }

    async fn verdict_now(&self, key: &VerdictKey) -> Result<Option<LlmReview>, StoreError> {
        let select = Statement::new(
            "SELECT review FROM verdict WHERE bundle_sha256 = ? AND model = ? AND prompt_version = ?",
        );
        let select = select.bind(&key.bundle_sha256).bind(&key.model).bind(&key.prompt_version);
        let row = self.database.row(select).await?;
        self.read(row.map(|row| row.text("review").and_then(|text| from_json(&text))).transpose())
    }

    async fn counts_now(&self) -> Result<Vec<StatusCount>, StoreError> {
        let select = "SELECT status, COUNT(*) AS found FROM submission GROUP BY status ORDER BY status";
        let rows = self.database.rows(Statement::new(select)).await?;
        self.read_all(&rows, |row| {
            let name = row.text("status")?;
            let status = SubmissionStatus::parse(&name)
                .ok_or_else(|| rows::decode(format!("unknown status `{name}`")))?;
            Ok(StatusCount { status, count: count(row.number("found")?) })
        })
    }

    async fn begin_job_now(
        &self,
        name: &str,
        now: Timestamp,
        not_since: Timestamp,
    ) -> Result<bool, StoreError> {
        let begin = Statement::new(
            "INSERT INTO job (name, begin_time_us) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET begin_time_us = \
             excluded.begin_time_us WHERE job.begin_time_us <= ? RETURNING name",
        );
        let begin = begin.bind(name).bind(microseconds(now)).bind(microseconds(not_since));
        Ok(!self.database.write_one(begin).await?.is_empty())
    }
}

/// The submissions of one entity. Of an expression no index knows anything, so the few of the entity are looked up and
/// sorted: SQLite, which does not know how many have a value, would walk through all of a tenant for their order.
pub(super) fn of_entity(tenant: &str, entity_id: &str) -> Statement {
    let select = Statement::new(format!(
        "SELECT {SUBMISSION} FROM submission WHERE COALESCE(tenant, '') = ? AND entity_id = ? ORDER BY create_time_us, id"
    ));
    select.bind(tenant).bind(entity_id)
}

fn blocked_since(tenant: &str, submitter: &str, since: Timestamp) -> Statement {
    let mut counting =
        Statement::new("SELECT COUNT(*) AS found FROM submission WHERE tenant = ? AND submitter = ?");
    counting = counting.bind(tenant).bind(submitter);
    counting.push(" AND create_time_us >= ").push_value(rows::microseconds_up(since));
    counting.push(" AND (hold_reason = ").push_value(HoldReason::None.as_str());
    counting.push_in("status", QUOTA_STATUSES.map(SubmissionStatus::as_str));
    // What was deleted since counts by the verdict of its last attempt, which stays: deleting gives nothing back.
    counting.push(" OR status = ").push_value(SubmissionStatus::Deleted.as_str());
    counting.push(" AND override_time_us IS NULL AND EXISTS (SELECT 1 FROM attempt");
    counting.push(" WHERE attempt.submission_id = submission.id AND attempt.number = submission.attempt");
    counting.push(" AND attempt.error <> 'deleted'");
    counting.push_in("attempt.status", QUOTA_STATUSES.map(SubmissionStatus::as_str));
    counting.push("))");
    counting
}

fn push_tenant(select: &mut Statement, tenant: Option<&str>) {
    if let Some(tenant) = tenant {
        select.push(" AND tenant = ").push_value(tenant);
    }
}

fn check_submission(one: &StoredSubmission) -> Result<(), StoreError> {
    check_indexed(&[
        ("submission.id", &one.id),
        ("submission.entity_id", &one.entity_id),
        ("submission.tenant", &one.tenant),
        ("submission.submitter", &one.submitter),
        ("submission.bundle_sha256", &one.bundle_sha256),
    ])
}

fn check_entity(one: &StoredEntity) -> Result<(), StoreError> {
    check_indexed(&[
        ("entity.id", &one.id),
        ("entity.tenant", &one.tenant),
        ("entity.name", &one.name),
        ("entity.owner", &one.owner),
        ("entity.live_submission_id", one.live_submission_id.as_deref().unwrap_or_default()),
    ])
}

async fn insert_entity(write: &mut Transaction<'_>, entity: &StoredEntity) -> Result<(), StoreError> {
    check_entity(entity)?;
    let insert = format!("INSERT INTO entity {}", values(&format!("{ENTITY}, folded")));
    write.run(bind_entity(Statement::new(insert), entity, 1)).await.map(|_| ())
}

/// Whether it still had the version expected.
async fn update_entity(
    write: &mut Transaction<'_>,
    tenant: &str,
    entity: &StoredEntity,
    expect_version: i64,
) -> Result<bool, StoreError> {
    check_entity(entity)?;
    let update = format!(
        "UPDATE entity SET {} WHERE tenant = ? AND id = ? AND version = ?",
        assignments(&format!("{ENTITY}, folded"))
    );
    let update = bind_entity(Statement::new(update), entity, expect_version + 1);
    Ok(write.run(update.bind(tenant).bind(&entity.id).bind(expect_version)).await? == 1)
}

async fn insert_attempt(write: &mut Transaction<'_>, attempt: &StoredAttempt) -> Result<(), StoreError> {
    let insert = format!("INSERT INTO attempt {}", values(ATTEMPT));
    write.run(bind_attempt(Statement::new(insert), attempt)).await.map(|_| ())
}

impl SubmissionStore for SqlStore {
    fn accept(&self, new: NewSubmission) -> BoxFuture<'_, Result<(), AcceptError>> {
        self.accept_now(new).boxed()
    }

    fn blocked_since(
        &self,
        tenant: String,
        submitter: String,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<u64, StoreError>> {
        async move {
            let row = self.database.row(blocked_since(&tenant, &submitter, since)).await?;
            self.read(row.map_or(Err(sqlx::Error::RowNotFound), |row| row.number("found"))).map(count)
        }
        .boxed()
    }

    fn submission(
        &self,
        tenant: String,
        id: String,
    ) -> BoxFuture<'_, Result<Option<StoredSubmission>, StoreError>> {
        async move {
            let select =
                Statement::new(format!("SELECT {SUBMISSION} FROM submission WHERE tenant = ? AND id = ?"));
            Ok(self.read_submissions(select.bind(&tenant).bind(&id)).await?.pop())
        }
        .boxed()
    }

    fn submissions_of(
        &self,
        tenant: String,
        entity_id: String,
    ) -> BoxFuture<'_, Result<Vec<StoredSubmission>, StoreError>> {
        async move { self.read_submissions(of_entity(&tenant, &entity_id)).await }.boxed()
    }

    fn attempts(
        &self,
        tenant: String,
        submission_ids: Vec<String>,
    ) -> BoxFuture<'_, Result<Vec<StoredAttempt>, StoreError>> {
        async move { self.attempts_now(&tenant, &submission_ids).await }.boxed()
    }

    fn briefs(
        &self,
        tenant: String,
        submission_ids: Vec<String>,
    ) -> BoxFuture<'_, Result<HashMap<String, ChecksBrief>, StoreError>> {
        async move { self.briefs_now(&tenant, &submission_ids).await }.boxed()
    }

    fn entity(&self, tenant: String, id: String) -> BoxFuture<'_, Result<Option<StoredEntity>, StoreError>> {
        async move {
            let select = Statement::new(format!("SELECT {ENTITY} FROM entity WHERE tenant = ? AND id = ?"));
            let row = self.database.row(select.bind(&tenant).bind(&id)).await?;
            self.read(row.as_ref().map(rows::entity).transpose())
        }
        .boxed()
    }

    fn submissions(&self, query: SubmissionQuery) -> BoxFuture<'_, Result<SubmissionPage, StoreError>> {
        self.submissions_now(query).boxed()
    }

    fn entities(&self, query: EntityQuery) -> BoxFuture<'_, Result<EntityPage, StoreError>> {
        self.entities_now(query).boxed()
    }

    fn apply(&self, change: Change) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.apply_now(change).boxed()
    }

    fn claim(
        &self,
        owner: String,
        now: Timestamp,
        lease_until: Timestamp,
        tries_max: u32,
    ) -> BoxFuture<'_, Result<Option<StoredSubmission>, StoreError>> {
        async move { self.claim_now(&owner, now, lease_until, tries_max).await }.boxed()
    }

    fn renew(
        &self,
        id: String,
        attempt: u32,
        owner: String,
        until: Timestamp,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        async move { self.renew_now(&id, attempt, &owner, until).await }.boxed()
    }

    fn expired(
        &self,
        tenant: Option<String>,
        before: Timestamp,
        tries_max: u32,
    ) -> BoxFuture<'_, Result<Vec<StoredSubmission>, StoreError>> {
        async move { self.expired_now(tenant.as_deref(), before, tries_max).await }.boxed()
    }

    fn held(&self, reason: HoldReason) -> BoxFuture<'_, Result<Vec<StoredSubmission>, StoreError>> {
        self.held_now(reason).boxed()
    }

    fn purgeable(
        &self,
        tenant: Option<String>,
        before: Timestamp,
    ) -> BoxFuture<'_, Result<Vec<StoredSubmission>, StoreError>> {
        async move { self.purgeable_now(tenant.as_deref(), before).await }.boxed()
    }

    fn with_bytes(&self, ids: Vec<String>) -> BoxFuture<'_, Result<HashSet<String>, StoreError>> {
        async move { self.with_bytes_now(&ids).await }.boxed()
    }

    fn verdict(&self, key: VerdictKey) -> BoxFuture<'_, Result<Option<LlmReview>, StoreError>> {
        async move { self.verdict_now(&key).await }.boxed()
    }

    fn counts_by_status(&self) -> BoxFuture<'_, Result<Vec<StatusCount>, StoreError>> {
        self.counts_now().boxed()
    }

    fn oldest_waiting(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        async move {
            let select = format!("SELECT MIN(update_time_us) AS oldest FROM submission WHERE {WAITS}");
            let row = self.database.row(Statement::new(select)).await?;
            let oldest = row.map_or(Ok(None), |row| row.number_or_none("oldest"));
            self.read(oldest.and_then(|oldest| oldest.map(rows::timestamp).transpose()))
        }
        .boxed()
    }

    fn begin_job(
        &self,
        name: String,
        now: Timestamp,
        not_since: Timestamp,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        async move { self.begin_job_now(&name, now, not_since).await }.boxed()
    }
}
