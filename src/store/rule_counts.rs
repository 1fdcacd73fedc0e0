//! How often each rule found something, day by day: counted in memory, added to the database every few seconds.
//!
//! A kill loses what was counted since the last time; no decision depends on a count.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::StoreError;

/// Rules of tenants that are counted between two times; more are left out, since a count is no record.
const PENDING_MAX: usize = 20_000;
/// How often counts are added to the database.
const FLUSH_INTERVAL: Duration = Duration::from_secs(5);
/// Days that are kept.
const DAYS_KEPT: i64 = 30;
/// Seconds of a day.
const DAY_SECONDS: i64 = 24 * 3_600;

/// What one rule found on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayCount {
    /// For whom.
    pub tenant: String,
    /// Which rule.
    pub rule_id: String,
    /// Days since 1970, in UTC.
    pub day: i64,
    /// How much.
    pub count: RuleCount,
}

/// What one rule found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// Findings, those in shadow among them; suppressed ones not.
    pub findings: u64,
    /// Those in shadow that would have blocked.
    pub would_block: u64,
}

impl RuleCount {
    /// Adds another count.
    pub fn add(&mut self, other: Self) {
        self.findings = self.findings.saturating_add(other.findings);
        self.would_block = self.would_block.saturating_add(other.would_block);
    }
}

/// Where counts are kept.
pub trait RuleCountStore: Send + Sync {
    /// Adds to what is there.
    fn add_rule_counts(&self, counts: Vec<DayCount>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Sums of each rule of a tenant from a day on.
    fn rule_counts(
        &self,
        tenant: String,
        first_day: i64,
    ) -> BoxFuture<'_, Result<Vec<(String, RuleCount)>, StoreError>>;

    /// Forgets the days before one.
    fn forget_rule_counts(&self, first_day: i64) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Counts what rules find.
pub struct RuleCounter {
    store: Arc<dyn RuleCountStore>,
    is_on: bool,
    pending: Mutex<HashMap<(String, String, i64), RuleCount>>,
}

impl RuleCounter {
    /// Counts into `store`; nothing when it is not on.
    pub fn new(store: Arc<dyn RuleCountStore>, is_on: bool) -> Self {
        Self { store, is_on, pending: Mutex::default() }
    }

    /// Counts findings of one decision: the rule of each, and whether it would have blocked.
    pub fn count<'f>(&self, tenant: &str, found: impl Iterator<Item = (&'f str, bool)>) {
        let mut found = found.peekable();
        if !self.is_on || found.peek().is_none() {
            return;
        }
        let day = day_of(Timestamp::now());
        let mut pending = self.pending();
        for (rule_id, would_block) in found {
            let key = (tenant.to_owned(), rule_id.to_owned(), day);
            if pending.len() >= PENDING_MAX && !pending.contains_key(&key) {
                continue;
            }
            pending.entry(key).or_default().add(RuleCount { findings: 1, would_block: would_block.into() });
        }
    }

    /// What each rule of a tenant found within the last `days` days, today among them.
    ///
    /// # Errors
    /// The store failed.
    pub async fn sums(&self, tenant: &str, days: i64) -> Result<HashMap<String, RuleCount>, StoreError> {
        let first_day = day_of(Timestamp::now()) - days + 1;
        // First what waits: what is written meanwhile would be counted twice otherwise.
        let mut sums: HashMap<String, RuleCount> = HashMap::new();
        let waiting: Vec<(String, RuleCount)> = self
            .pending()
            .iter()
            .filter(|((of, _, day), _)| of == tenant && *day >= first_day)
            .map(|((_, rule, _), count)| (rule.clone(), *count))
            .collect();
        for (rule, count) in
            waiting.into_iter().chain(self.store.rule_counts(tenant.to_owned(), first_day).await?)
        {
            sums.entry(rule).or_default().add(count);
        }
        Ok(sums)
    }

    /// Writes what waits. What could not be written waits on.
    ///
    /// # Errors
    /// The store failed.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let taken = std::mem::take(&mut *self.pending());
        if taken.is_empty() {
            return Ok(());
        }
        let mut counts: Vec<DayCount> = taken
            .into_iter()
            .map(|((tenant, rule_id, day), count)| DayCount { tenant, rule_id, day, count })
            .collect();
        // The same order in every process, so that no two wait for each other in a circle.
        counts.sort_by(|a, b| (&a.tenant, &a.rule_id, a.day).cmp(&(&b.tenant, &b.rule_id, b.day)));
        let written = self.store.add_rule_counts(counts.clone()).await;
        if written.is_err() {
            let mut pending = self.pending();
            for DayCount { tenant, rule_id, day, count } in counts {
                pending.entry((tenant, rule_id, day)).or_default().add(count);
            }
        }
        written
    }

    /// Writes again and again. Never ends.
    pub async fn follow(&self) {
        let mut forgotten = 0;
        loop {
            tokio::time::sleep(FLUSH_INTERVAL).await;
            let today = day_of(Timestamp::now());
            let mut done = self.flush().await;
            if done.is_ok() && forgotten != today {
                done = self.store.forget_rule_counts(today - DAYS_KEPT).await;
                forgotten = today;
            }
            if let Err(error) = done {
                tracing::warn!(%error, "counts of rules could not be written; they are tried again");
            }
        }
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<(String, String, i64), RuleCount>> {
        // Each change is one call on the map.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn day_of(time: Timestamp) -> i64 {
    time.as_second().div_euclid(DAY_SECONDS)
}
