//! Regular jobs: purging blocked bytes, reaping stuck reviews, sweeping up strays.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};

use super::change::Brought;
use super::record::{self, Action, Record};
use super::step::{Landed, TRIES_MAX};
use super::triage::admin;
use super::{Actor, Purged, SubmissionError, Submissions};
use crate::bundles::life::Event;
use crate::store::{NewAuditEvent, StoreError};

/// Name of the daily purge among the jobs of the store.
const PURGE_JOB: &str = "blocked_purge";
/// Name of the daily sweep among the jobs of the store.
const SWEEP_JOB: &str = "bundle_sweep";
/// A day, less what a clock may be off, so that a job of every day is not put off by one.
const DAY: SignedDuration = SignedDuration::from_mins(24 * 60 - 5);
/// Most strays that are asked about at once.
const SWEPT_AT_ONCE: usize = 500;
/// Most ids in one event.
const IDS_MAX: usize = 100;
/// Why a review that never ended is one no more.
pub(in crate::bundles) const STUCK: &str = "timeout_or_crash";

impl Submissions {
    /// Removes the bytes of blocked submissions past the retention time, or tells only which.
    ///
    /// # Errors
    /// The caller is no administrator, or the store failed.
    pub async fn purge(&self, actor: &Actor, dry_run: bool) -> Result<Purged, SubmissionError> {
        admin(actor)?;
        let purged = self.purge_of(Some(actor), dry_run).await?;
        if !dry_run {
            let record =
                Record::by(Action::RunBlockedPurge, actor, "job:blocked_purge".to_owned(), self.now());
            self.parts()
                .audit
                .append_audit(vec![run(record, &purged.submission_ids, purged.bytes_freed)])
                .await?;
        }
        Ok(purged)
    }

    /// The daily purge, if it is due and no other process did it.
    ///
    /// # Errors
    /// The store failed.
    pub(in crate::bundles) async fn purge_daily(&self) -> Result<(), StoreError> {
        if !self.is_due(PURGE_JOB).await? {
            return Ok(());
        }
        let purged = self.purge_of(None, false).await?;
        if !purged.submission_ids.is_empty() {
            let resource = "job:blocked_purge".to_owned();
            let record = Record::by_system(Action::RunBlockedPurge, "", resource, self.now());
            self.parts()
                .audit
                .append_audit(vec![run(record, &purged.submission_ids, purged.bytes_freed)])
                .await?;
            let count = purged.submission_ids.len();
            tracing::info!(count, bytes = purged.bytes_freed, "bytes of blocked bundles purged");
        }
        Ok(())
    }

    /// Removes the bytes of what is due: of the tenant of whoever asks, or of all tenants for the daily job.
    async fn purge_of(&self, asked_by: Option<&Actor>, dry_run: bool) -> Result<Purged, StoreError> {
        let days = i64::try_from(self.parts().guardrails.blocked_bundle_ttl_days).unwrap_or(i64::MAX);
        let ttl = SignedDuration::from_hours(days.saturating_mul(24).min(24 * 36_500));
        let mut purged = Purged::default();
        if ttl.is_zero() {
            return Ok(purged);
        }
        let now = self.now();
        let Ok(before) = now.checked_sub(ttl) else { return Ok(purged) };
        for row in self.store().purgeable(asked_by.map(|actor| actor.tenant.clone()), before).await? {
            if !dry_run {
                let Some(ground) = self.ground(&row.tenant, &row.id).await? else { continue };
                let resource = record::submission(&row.id);
                let record = match asked_by {
                    Some(actor) => Record::by(Action::BundlePurged, actor, resource, now),
                    None => Record::by_system(Action::BundlePurged, &row.tenant, resource, now),
                };
                let record = record.bundle(&row);
                // Somebody who rescans or publishes it in this moment was quicker.
                if ground.submission.version != row.version {
                    continue;
                }
                let Ok(change) = ground.change(Event::Purge, Brought::default(), now, vec![record.finish()])
                else {
                    continue;
                };
                if !self.store().apply(change).await? {
                    continue;
                }
                self.drop_bytes(&row.id).await;
                self.tell(&row.entity_id);
            }
            purged.bytes_freed += row.file_size;
            purged.submission_ids.push(row.id);
        }
        Ok(purged)
    }

    /// Turns reviews that nobody works on any more into review errors, or tells only which.
    ///
    /// # Errors
    /// The caller is no administrator, or the store failed.
    pub async fn reap(&self, actor: &Actor, dry_run: bool) -> Result<Vec<String>, SubmissionError> {
        admin(actor)?;
        let reaped = self.reap_of(Some(actor.tenant.clone()), dry_run).await?;
        if !dry_run {
            let resource = "job:reap_stuck_reviews".to_owned();
            let record = Record::by(Action::RunReapStuckReviews, actor, resource, self.now());
            self.parts().audit.append_audit(vec![run(record, &reaped, 0)]).await?;
        }
        Ok(reaped)
    }

    /// The regular look for stuck reviews, of all tenants.
    ///
    /// # Errors
    /// The store failed.
    pub(in crate::bundles) async fn reap_regularly(&self) -> Result<(), StoreError> {
        let reaped = self.reap_of(None, false).await?;
        if !reaped.is_empty() {
            tracing::warn!(count = reaped.len(), "reviews that never ended are review errors now");
            let resource = "job:reap_stuck_reviews".to_owned();
            let record = Record::by_system(Action::RunReapStuckReviews, "", resource, self.now());
            self.parts().audit.append_audit(vec![run(record, &reaped, 0)]).await?;
        }
        Ok(())
    }

    async fn reap_of(&self, tenant: Option<String>, dry_run: bool) -> Result<Vec<String>, StoreError> {
        let seconds = self.parts().guardrails.stuck_review_grace_seconds;
        let grace = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        let mut reaped = Vec::new();
        if grace.is_zero() {
            return Ok(reaped);
        }
        let Ok(before) = self.now().checked_sub(grace) else { return Ok(reaped) };
        for row in self.store().expired(tenant, before, TRIES_MAX).await? {
            if dry_run || matches!(self.land_failure(&row, STUCK).await?, Landed::Done(_)) {
                reaped.push(row.id);
            }
        }
        Ok(reaped)
    }

    /// Removes what belongs to no submission: bytes without a row, or whose row gave them up, and files of uploads that
    /// nobody works on. What is younger than the grace time stays. Answers how many.
    ///
    /// # Errors
    /// Rows, bytes or files cannot be listed.
    pub async fn sweep(&self) -> Result<u64, SubmissionError> {
        let spool = self.parts().spool.clone();
        let files = tokio::task::spawn_blocking(move || spool.sweep()).await;
        let files = files.map_err(|_| SubmissionError::Bytes("the sweep broke off".to_owned()))?;
        let mut swept = files.map_err(|error| SubmissionError::Bytes(error.to_string()))? as u64;
        let before = self.now().checked_sub(self.parts().bundles.stray_grace).unwrap_or(Timestamp::MIN);
        let bytes = &self.parts().bytes;
        let failed = |error: crate::store::BytesError| SubmissionError::Bytes(error.to_string());
        swept += bytes.sweep_unfinished(before).await.map_err(failed)?;
        // Listed before the rows are asked for: what is written meanwhile is not in the list.
        let kept = bytes.list().await.map_err(failed)?;
        let old: Vec<String> =
            kept.into_iter().filter(|kept| kept.written <= before).map(|kept| kept.submission_id).collect();
        for some in old.chunks(SWEPT_AT_ONCE) {
            let wanted: HashSet<String> = self.store().with_bytes(some.to_vec()).await?;
            for stray in some.iter().filter(|id| !wanted.contains(*id)) {
                bytes.delete(stray.clone()).await.map_err(failed)?;
                swept += 1;
            }
        }
        if swept > 0 {
            tracing::info!(swept, "strays of interrupted uploads and removals swept up");
        }
        Ok(swept)
    }

    /// The daily sweep, if it is due and no other process did it.
    pub(in crate::bundles) async fn sweep_daily(&self) -> Result<(), SubmissionError> {
        if self.is_due(SWEEP_JOB).await? {
            self.sweep().await?;
        }
        Ok(())
    }

    async fn is_due(&self, job: &str) -> Result<bool, StoreError> {
        let now = self.now();
        let not_since = now.checked_sub(DAY).unwrap_or(Timestamp::MIN);
        self.store().begin_job(job.to_owned(), now, not_since).await
    }
}

/// The event of one run.
fn run(record: Record, ids: &[String], bytes_freed: u64) -> NewAuditEvent {
    let shown: Vec<&str> = ids.iter().take(IDS_MAX).map(String::as_str).collect();
    record.with("count", ids.len()).with("submission_ids", shown).with("bytes_freed", bytes_freed).finish()
}
