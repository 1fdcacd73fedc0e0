//! The repository of incidents of the stream monitor.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::decision::{Incident, IncidentAction, Severity, VerdictKind, VerdictSource};
use crate::setting::Problem;

/// `incidents`: what the stream monitor found, and how long it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IncidentsConfig {
    /// Days after which an incident is deleted, counted from when it was seen.
    #[serde(with = "crate::setting::count")]
    pub retention_days: usize,
}

impl Default for IncidentsConfig {
    fn default() -> Self {
        Self { retention_days: 90 }
    }
}

impl IncidentsConfig {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        if !(1..=36_500).contains(&self.retention_days) {
            problems.push(Problem::new("retention_days", "must be from 1 to 36500"));
        }
    }
}

/// Which incidents. What is `None` or empty lets every incident pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncidentFilter {
    /// Only those of this session.
    pub session_id: String,
    /// Only those of this rule.
    pub rule_id: String,
    /// Only those of this category, or of one below it.
    pub category: String,
    /// Only those at least this bad.
    pub severity_min: Option<Severity>,
    /// Only those with this verdict.
    pub verdict: Option<VerdictKind>,
    /// Only those whose verdict came from there.
    pub source: Option<VerdictSource>,
    /// Only those where this was done.
    pub action: Option<IncidentAction>,
    /// Only those marked as false positives, or only the others.
    pub false_positive: Option<bool>,
    /// Only those of this agent.
    pub agent_id: String,
    /// Only those seen at or after this time.
    pub start: Option<Timestamp>,
    /// Only those seen before this time.
    pub end: Option<Timestamp>,
}

/// What a list is ordered by. Equal ones are ordered by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncidentKey {
    /// When the match was seen.
    Time,
    /// How bad it is.
    Severity,
    /// Id of the rule.
    RuleId,
    /// Category.
    Category,
    /// From the match to the verdict; without a verdict it is the smallest.
    Latency,
}

/// The value of an [`IncidentKey`] in one incident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyValue {
    /// Of a time in microseconds, a severity or a latency.
    Number(i64),
    /// Of a rule or a category.
    Text(String),
}

/// Where an incident stands in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncidentPlace {
    /// Its value of the key that orders the list.
    pub value: KeyValue,
    /// Its id.
    pub id: String,
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct IncidentQuery {
    /// Whose incidents.
    pub tenant: String,
    /// Which of them.
    pub filter: IncidentFilter,
    /// What they are ordered by.
    pub key: IncidentKey,
    /// Whether larger ones come first.
    pub is_descending: bool,
    /// Where the page before ended; `None` asks for the first.
    pub after: Option<IncidentPlace>,
    /// How many at most.
    pub limit: usize,
    /// Count no further than this, for who only shows that there are more; one more than that is told then. `None` counts
    /// all of them.
    pub count_max: Option<u64>,
}

/// The answer to an [`IncidentQuery`].
#[derive(Clone, Debug)]
pub struct IncidentPage {
    /// In the order asked for.
    pub incidents: Vec<Incident>,
    /// Where the next page begins; `None` when this is the last.
    pub next: Option<IncidentPlace>,
    /// How many pass the filter, over all pages.
    pub total: u64,
}

/// Counts of one span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IncidentCounts {
    /// Incidents.
    pub incidents: u64,
    /// Those marked as false positives.
    pub false_positives: u64,
    /// Those with verdict SAFE.
    pub safe: u64,
    /// Those with verdict WARN.
    pub warn: u64,
    /// Those with verdict KILL.
    pub kill: u64,
    /// Those of a rule in shadow: their verdict stopped nothing.
    pub shadow: u64,
    /// Those among them with verdict KILL.
    pub shadow_kill: u64,
    /// Those with a verdict.
    pub landed: u64,
    /// Sum of their times from match to verdict, in nanoseconds.
    pub latency_ns: u64,
}

impl IncidentCounts {
    /// Adds counts of others.
    pub fn add(&mut self, other: Self) {
        self.incidents += other.incidents;
        self.false_positives += other.false_positives;
        self.safe += other.safe;
        self.warn += other.warn;
        self.kill += other.kill;
        self.shadow += other.shadow;
        self.shadow_kill += other.shadow_kill;
        self.landed += other.landed;
        self.latency_ns = self.latency_ns.saturating_add(other.latency_ns);
    }
}

/// Counts of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCounts {
    /// Id of the rule.
    pub rule_id: String,
    /// Its category.
    pub category: String,
    /// Since the first of the two times asked for.
    pub long: IncidentCounts,
    /// Since the second.
    pub short: IncidentCounts,
}

/// Counts rule by rule, over two spans of time that end now.
#[derive(Clone, Debug)]
pub struct StatsQuery {
    /// Whose incidents.
    pub tenant: String,
    /// Only this rule; empty means all.
    pub rule_id: String,
    /// Only this category, or those below it; empty means all.
    pub category: String,
    /// Where the longer span begins.
    pub long_since: Timestamp,
    /// Where the shorter span begins.
    pub short_since: Timestamp,
}

/// An incident to keep.
#[derive(Clone, Debug)]
pub struct KeptIncident {
    /// Tenant it belongs to; its callers may see it, no others.
    pub tenant: Arc<str>,
    /// As it stands now.
    pub incident: Arc<Incident>,
}

/// Keeps incidents. A change that was answered with `Ok` is on the disk.
pub trait IncidentStore: Send + Sync {
    /// Keeps each as it stands now, in place of an earlier state of it. A mark that a person made stays. All or none.
    fn save(&self, incidents: Vec<KeptIncident>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The one with this id, if the tenant has it.
    fn incident(&self, tenant: String, id: String) -> BoxFuture<'_, Result<Option<Incident>, StoreError>>;

    /// One page of those that pass a filter.
    fn incidents(&self, query: IncidentQuery) -> BoxFuture<'_, Result<IncidentPage, StoreError>>;

    /// Marks it as a false positive for the reason given, or takes the mark back (`None`); answers it as it stands then,
    /// or `None` when the tenant has none with this id.
    fn mark(
        &self,
        tenant: String,
        id: String,
        reason: Option<String>,
    ) -> BoxFuture<'_, Result<Option<Incident>, StoreError>>;

    /// Counts, by rule id, of each rule with an incident in the longer span.
    fn stats(&self, query: StatsQuery) -> BoxFuture<'_, Result<Vec<RuleCounts>, StoreError>>;

    /// Deletes what was seen before a time; answers how many.
    fn purge(&self, before: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>>;
}
