//! `IncidentService`: looking at kept incidents, and marking false positives.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tonic::{Request, Response, Status};

use super::incident_convert as convert;
use super::local::CountMax;
use super::server::Shared;
use super::{Changed, Identity, RequestError, page};
use crate::bundles;
use crate::decision::{IncidentAction, Severity, VerdictKind, VerdictSource};
use crate::pb::v1;
use crate::pb::v1::incident_service_server::IncidentService;
use crate::store::{
    IncidentCounts, IncidentFilter, IncidentKey, IncidentPlace, IncidentQuery, IncidentStore, IncidentWriter,
    RuleCounts, StatsQuery,
};

/// Incidents on one page unless asked otherwise.
const PAGE_SIZE: usize = 50;
/// Most incidents on one page.
const PAGE_SIZE_MAX: usize = 1_000;
/// Longest reason for a mark, in bytes.
const REASON_BYTES_MAX: usize = 4_096;
/// How long an answer waits for incidents that are just being written, so that whoever was told of one finds it.
const SETTLE_MAX: Duration = Duration::from_millis(500);
/// What a list can be ordered by.
const KEYS: [(&str, IncidentKey); 5] = [
    ("time", IncidentKey::Time),
    ("severity", IncidentKey::Severity),
    ("rule_id", IncidentKey::RuleId),
    ("category", IncidentKey::Category),
    ("latency", IncidentKey::Latency),
];
/// A day of the spans that are counted.
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Kept incidents, as the service and the command line ask for them.
#[derive(Clone)]
pub struct KeptIncidents {
    /// Where they are.
    pub store: Arc<dyn IncidentStore>,
    /// What is still being written; `None` where another process writes.
    pub writer: Option<Arc<IncidentWriter>>,
}

/// The service.
pub(super) struct Incidents(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl IncidentService for Incidents {
    async fn get_incident(
        &self,
        request: Request<v1::GetIncidentRequest>,
    ) -> Result<Response<v1::GetIncidentResponse>, Status> {
        let identity = self.identity(&request)?;
        let answer = self.0.incidents.get(identity.tenant(), request.into_inner()).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn list_incidents(
        &self,
        request: Request<v1::ListIncidentsRequest>,
    ) -> Result<Response<v1::ListIncidentsResponse>, Status> {
        let identity = self.identity(&request)?;
        let count_max = request.extensions().get::<CountMax>().map(|most| most.0);
        let answer = self.0.incidents.list_counted(identity.tenant(), request.into_inner(), count_max).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn mark_false_positive(
        &self,
        request: Request<v1::MarkFalsePositiveRequest>,
    ) -> Result<Response<v1::MarkFalsePositiveResponse>, Status> {
        let identity = self.identity(&request)?;
        identity.require_admin().map_err(|error| error.to_status())?;
        let mut request = request.into_inner();
        // Kept for ever, in the incident and in the audit event.
        if KeptIncidents::masks(&request) {
            request.reason = match self.0.live.snapshot() {
                Some(snapshot) => bundles::mask(snapshot.scanner(), &request.reason),
                None => "[REDACTED]".to_owned(),
            };
        }
        let (resource, reason) = (format!("incident:{}", request.incident_id), request.reason.clone());
        let action = if request.undo { "incident.unmarked" } else { "incident.marked" };
        let answer = self.0.incidents.mark(&identity, request).await;
        if answer.is_ok() {
            let changed =
                Changed { action, resource: &resource, reason: &reason, policy_revision: "", detail: None };
            self.0.events.append(&identity, changed).await;
        }
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn get_incident_stats(
        &self,
        request: Request<v1::GetIncidentStatsRequest>,
    ) -> Result<Response<v1::GetIncidentStatsResponse>, Status> {
        let identity = self.identity(&request)?;
        let answer = self.0.incidents.stats(identity.tenant(), request.into_inner()).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }
}

impl Incidents {
    fn identity<T>(&self, request: &Request<T>) -> Result<Identity, Status> {
        Identity::of(request).map_err(|error| error.to_status())
    }
}

impl KeptIncidents {
    async fn settle(&self) {
        if let Some(writer) = &self.writer {
            writer.settle(SETTLE_MAX).await;
        }
    }

    /// Gets one.
    ///
    /// # Errors
    /// The id is empty, the tenant has none with it, or the store failed.
    pub async fn get(
        &self,
        tenant: &str,
        request: v1::GetIncidentRequest,
    ) -> Result<v1::GetIncidentResponse, RequestError> {
        let id = id_of(request.incident_id)?;
        self.settle().await;
        let found = self.store.incident(tenant.to_owned(), id.clone()).await?;
        let found = found.ok_or_else(|| not_found(&id))?;
        Ok(v1::GetIncidentResponse { incident: Some(convert::incident(&found)) })
    }

    /// Lists one page.
    ///
    /// # Errors
    /// A filter, the order or the token is wrong, or the store failed.
    pub async fn list(
        &self,
        tenant: &str,
        request: v1::ListIncidentsRequest,
    ) -> Result<v1::ListIncidentsResponse, RequestError> {
        self.list_counted(tenant, request, None).await
    }

    async fn list_counted(
        &self,
        tenant: &str,
        request: v1::ListIncidentsRequest,
        count_max: Option<u64>,
    ) -> Result<v1::ListIncidentsResponse, RequestError> {
        let filter = filter(&request)?;
        let (key, is_descending) = page::order(&request.order_by, "time desc", &KEYS)?;
        // A token belongs to the list that it continues.
        let list = format!("{tenant:?} {filter:?} {key:?} {is_descending}");
        let after = page::place(&request.page_token, &list)?;
        let after = after.map(|(value, id)| IncidentPlace { value, id });
        let limit = page::size(request.page_size, PAGE_SIZE, PAGE_SIZE_MAX);
        self.settle().await;
        let tenant = tenant.to_owned();
        let query = IncidentQuery { tenant, filter, key, is_descending, after, limit, count_max };
        let found = self.store.incidents(query).await?;
        Ok(v1::ListIncidentsResponse {
            incidents: found.incidents.iter().map(convert::incident).collect(),
            next_page_token: found
                .next
                .map(|place| page::token(&place.value, &place.id, &list))
                .unwrap_or_default(),
            total: found.total,
        })
    }

    /// Whether a mark holds a reason that must be masked before it is handed to [`KeptIncidents::mark`]: one that will be
    /// kept. A longer one is refused as it stands.
    pub fn masks(request: &v1::MarkFalsePositiveRequest) -> bool {
        !request.reason.is_empty() && request.reason.len() <= REASON_BYTES_MAX
    }

    /// Marks one as a false positive, or takes the mark back.
    ///
    /// # Errors
    /// A field is wrong, the tenant has none with this id, or the store failed.
    pub async fn mark(
        &self,
        identity: &Identity,
        request: v1::MarkFalsePositiveRequest,
    ) -> Result<v1::MarkFalsePositiveResponse, RequestError> {
        let id = id_of(request.incident_id)?;
        if request.reason.len() > REASON_BYTES_MAX {
            let message = format!("has {} bytes, more than {REASON_BYTES_MAX}", request.reason.len());
            return Err(RequestError::field("reason", message));
        }
        self.settle().await;
        let reason = (!request.undo).then_some(request.reason);
        let marked = self.store.mark(identity.tenant().to_owned(), id.clone(), reason).await?;
        let marked = marked.ok_or_else(|| not_found(&id))?;
        tracing::info!(
            incident = &*marked.id,
            rule_id = &*marked.rule_id,
            false_positive = marked.false_positive,
            by = identity.name(),
            "incident marked"
        );
        Ok(v1::MarkFalsePositiveResponse { incident: Some(convert::incident(&marked)) })
    }

    /// Counts rule by rule over a longer and a shorter span of days, which end now.
    ///
    /// # Errors
    /// The store failed.
    pub async fn counted(
        &self,
        tenant: &str,
        request: v1::GetIncidentStatsRequest,
        (long, short): (u32, u32),
    ) -> Result<Vec<RuleCounts>, RequestError> {
        self.settle().await;
        let now = Timestamp::now();
        let ago = |days: u32| now.checked_sub(DAY * days).unwrap_or(Timestamp::MIN);
        let query = StatsQuery {
            tenant: tenant.to_owned(),
            rule_id: request.rule_id,
            category: request.category,
            long_since: ago(long),
            short_since: ago(short),
        };
        Ok(self.store.stats(query).await?)
    }

    /// Counts rule by rule over 30 and 7 days.
    ///
    /// # Errors
    /// The store failed.
    pub async fn stats(
        &self,
        tenant: &str,
        request: v1::GetIncidentStatsRequest,
    ) -> Result<v1::GetIncidentStatsResponse, RequestError> {
        let counted = self.counted(tenant, request, (30, 7)).await?;
        let mut all = (IncidentCounts::default(), IncidentCounts::default());
        for rule in &counted {
            all.0.add(rule.short);
            all.1.add(rule.long);
        }
        let rules = counted.into_iter().map(|rule| v1::RuleIncidentStats {
            rule_id: rule.rule_id,
            category: rule.category,
            last_7_days: Some(counts(rule.short)),
            last_30_days: Some(counts(rule.long)),
        });
        Ok(v1::GetIncidentStatsResponse {
            rules: rules.collect(),
            last_7_days: Some(counts(all.0)),
            last_30_days: Some(counts(all.1)),
        })
    }
}

fn id_of(id: String) -> Result<String, RequestError> {
    if id.is_empty() { Err(RequestError::field("incident_id", "is empty")) } else { Ok(id) }
}

fn not_found(id: &str) -> RequestError {
    RequestError::NotFound { what: "incident", name: id.chars().take(128).collect() }
}

fn counts(counts: IncidentCounts) -> v1::IncidentStats {
    let rate = match counts.incidents {
        0 => 0.0,
        incidents => counts.false_positives as f64 / incidents as f64,
    };
    let mean = counts.latency_ns.checked_div(counts.landed).map(Duration::from_nanos);
    v1::IncidentStats {
        incidents: counts.incidents,
        false_positives: counts.false_positives,
        false_positive_rate: rate,
        safe: counts.safe,
        warn: counts.warn,
        kill: counts.kill,
        mean_latency: mean.map(Into::into),
    }
}

fn filter(request: &v1::ListIncidentsRequest) -> Result<IncidentFilter, RequestError> {
    let unknown =
        |field: &str, number: i32, what: &str| RequestError::field(field, format!("{number} is no {what}"));
    let severity_min = match v1::Severity::try_from(request.severity_min) {
        Ok(v1::Severity::Unspecified) => None,
        Ok(v1::Severity::Low) => Some(Severity::Low),
        Ok(v1::Severity::Medium) => Some(Severity::Medium),
        Ok(v1::Severity::High) => Some(Severity::High),
        Ok(v1::Severity::Critical) => Some(Severity::Critical),
        Err(_) => return Err(unknown("severity_min", request.severity_min, "Severity")),
    };
    let verdict = match v1::VerdictKind::try_from(request.verdict) {
        Ok(v1::VerdictKind::Unspecified) => None,
        Ok(v1::VerdictKind::Safe) => Some(VerdictKind::Safe),
        Ok(v1::VerdictKind::Warn) => Some(VerdictKind::Warn),
        Ok(v1::VerdictKind::Kill) => Some(VerdictKind::Kill),
        Err(_) => return Err(unknown("verdict", request.verdict, "VerdictKind")),
    };
    let source = match v1::VerdictSource::try_from(request.source) {
        Ok(v1::VerdictSource::Unspecified) => None,
        Ok(v1::VerdictSource::Rule) => Some(VerdictSource::Rule),
        Ok(v1::VerdictSource::Judge) => Some(VerdictSource::Judge),
        Ok(v1::VerdictSource::Policy) => Some(VerdictSource::Policy),
        Ok(v1::VerdictSource::FailMode) => Some(VerdictSource::FailMode),
        Err(_) => return Err(unknown("source", request.source, "VerdictSource")),
    };
    let action = match v1::IncidentAction::try_from(request.action) {
        Ok(v1::IncidentAction::Unspecified) => None,
        Ok(v1::IncidentAction::None) => Some(IncidentAction::None),
        Ok(v1::IncidentAction::Warned) => Some(IncidentAction::Warned),
        Ok(v1::IncidentAction::KillAdvised) => Some(IncidentAction::KillAdvised),
        Ok(v1::IncidentAction::Error) => Some(IncidentAction::Error),
        Err(_) => return Err(unknown("action", request.action, "IncidentAction")),
    };
    Ok(IncidentFilter {
        session_id: request.session_id.clone(),
        rule_id: request.rule_id.clone(),
        category: request.category.clone(),
        severity_min,
        verdict,
        source,
        action,
        false_positive: request.false_positive,
        agent_id: request.agent_id.clone(),
        start: page::moment("start_time", request.start_time.as_ref())?,
        end: page::moment("end_time", request.end_time.as_ref())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_means_of_nothing_are_none() {
        let none = counts(IncidentCounts::default());
        assert_eq!((none.false_positive_rate, none.mean_latency), (0.0, None));
        let some = counts(IncidentCounts {
            incidents: 4,
            false_positives: 1,
            landed: 2,
            latency_ns: 3_000_000,
            ..IncidentCounts::default()
        });
        assert_eq!(some.false_positive_rate, 0.25);
        assert_eq!(some.mean_latency, Some(Duration::from_micros(1_500).into()));
    }
}
