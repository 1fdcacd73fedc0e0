//! What is told and kept about the incidents of one session: the store, one audit record, one log line and count each.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::audit::{AuditLog, AuditRecord, Caller, IncidentLine};
use crate::decision::{Decision, Finding, Incident, IncidentAction, RiskLevel, SpanRef, VerdictKind};
use crate::store::{IncidentWriter, KeptIncident};
use crate::telemetry::{IncidentDecided, Metrics, Rpc};

/// Plugin under which incidents stand in audit records.
const PLUGIN: &str = "streams";

/// How long the end of a session waits until its incidents are on the disk.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// Where everything about incidents goes, and on whose behalf. One a session.
pub struct Keeper {
    /// Keeps them; `None` where nothing outlives the process.
    pub writer: Option<Arc<IncidentWriter>>,
    /// Records decisions.
    pub audit: Arc<AuditLog>,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Tenant that incidents belong to.
    pub tenant: Arc<str>,
    /// The name that the caller's credential proves, for the record; empty without one.
    pub name: Arc<str>,
    /// Roles of the caller, for the record.
    pub roles: &'static [&'static str],
    /// Name of the policy.
    pub policy: Arc<str>,
    /// Reported, and not yet recorded, as no verdict has landed.
    open: HashMap<Arc<str>, Arc<Incident>>,
    /// Decided, and about to be recorded, in this order.
    decided: VecDeque<Arc<Incident>>,
    has_saved: bool,
    /// Whether the writer holds incidents of this session that it was not woken for.
    is_writer_asleep: bool,
    /// Whether one of them is a KILL, which waits for no others.
    is_urgent: bool,
}

impl Drop for Keeper {
    /// A session that panics has its decisions recorded all the same.
    fn drop(&mut self) {
        self.record_decided();
    }
}

impl Keeper {
    /// A keeper for one session.
    pub fn new(
        writer: Option<Arc<IncidentWriter>>,
        audit: Arc<AuditLog>,
        metrics: Arc<Metrics>,
        tenant: Arc<str>,
        name: Arc<str>,
        roles: &'static [&'static str],
        policy: Arc<str>,
    ) -> Self {
        let (open, decided) = (HashMap::new(), VecDeque::new());
        let (has_saved, is_writer_asleep, is_urgent) = (false, false, false);
        Self {
            writer,
            audit,
            metrics,
            tenant,
            name,
            roles,
            policy,
            open,
            decided,
            has_saved,
            is_writer_asleep,
            is_urgent,
        }
    }

    /// Takes note that an incident is reported. What follows about it is [`save`](Self::save)d.
    pub(super) fn reported(&mut self, incident: &Arc<Incident>) {
        self.open.insert(incident.id.clone(), incident.clone());
    }

    /// Keeps an incident as it stands now. Its first verdict makes it a decision. Writing and recording begin with
    /// [`record_decided`](Self::record_decided).
    pub(super) fn save(&mut self, incident: Arc<Incident>) {
        if let Some(writer) = &self.writer {
            writer.put(KeptIncident { tenant: self.tenant.clone(), incident: incident.clone() });
            self.has_saved = true;
            self.is_writer_asleep = true;
            self.is_urgent |= incident.verdict == Some(VerdictKind::Kill);
        }
        if let Some(open) = self.open.get_mut(&incident.id) {
            if incident.verdict.is_some() || incident.shadow {
                self.open.remove(&incident.id);
                self.decided.push_back(incident);
            } else {
                *open = incident;
            }
        }
    }

    /// Decisions that are not recorded yet.
    pub(super) fn waiting(&self) -> usize {
        self.decided.len()
    }

    /// Has written what was saved, and records what was decided: a log line, a record and a count each.
    pub(super) fn record_decided(&mut self) {
        self.record_some(usize::MAX);
    }

    /// [`Self::record_decided`], for so many of those that have waited longest.
    pub(super) fn record_some(&mut self, count: usize) {
        self.wake_writer();
        for _ in 0..count {
            let Some(incident) = self.decided.pop_front() else { return };
            self.record(&incident);
        }
    }

    /// Records what never got a verdict, and waits a little until all is on the disk and in the log: a summary is the
    /// acknowledgement of what it lists, and nothing that was acknowledged may be lost with the process.
    pub(super) async fn finish(&mut self) {
        self.record_decided();
        let mut left: Vec<Arc<Incident>> = self.open.drain().map(|(_, incident)| incident).collect();
        left.sort_by(|a, b| a.id.cmp(&b.id));
        for incident in left {
            self.record(&incident);
        }
        if let Some(writer) = self.writer.as_ref().filter(|_| self.has_saved) {
            writer.settle(SETTLE_MAX).await;
            let audit = self.audit.clone();
            // What it could not write in time, it counts.
            let _ = tokio::task::spawn_blocking(move || audit.flush(SETTLE_MAX)).await;
        }
    }

    fn wake_writer(&mut self) {
        if std::mem::take(&mut self.is_writer_asleep)
            && let Some(writer) = &self.writer
        {
            if std::mem::take(&mut self.is_urgent) { writer.hurry() } else { writer.wake() }
        }
    }

    fn record(&self, incident: &Incident) {
        IncidentDecided { incident }.emit(&self.metrics);
        let finding = finding(incident);
        let findings = [&finding];
        self.audit.record(|| AuditRecord {
            time: Timestamp::now(),
            decision_id: &incident.decision_id,
            policy: &self.policy,
            policy_revision: &incident.policy_revision,
            rpc: Rpc::StreamMonitor.as_str(),
            decision: decision_of(incident.verdict.filter(|_| !incident.shadow), incident.shadow),
            risk_level: RiskLevel::of(Some(incident.severity.score())),
            risk_score: incident.severity.score(),
            caller: self.caller(incident),
            findings: &findings,
            findings_total: 1,
            unjudged: &[],
            interception: None,
            incident: Some(IncidentLine {
                id: &incident.id,
                session_id: &incident.session_id,
                stream: incident.stream,
                offset: incident.offset,
                verdict: incident.verdict,
                source: incident.source,
                action: incident.action,
            }),
            bundle: None,
            elapsed_us: incident
                .latency
                .map_or(0, |latency| u64::try_from(latency.as_micros()).unwrap_or(u64::MAX)),
        });
    }

    fn caller<'a>(&'a self, incident: &'a Incident) -> Caller<'a> {
        let caller = Caller { name: &self.name, roles: self.roles, ..Caller::default() };
        let Some(context) = incident.context.as_deref() else { return caller };
        // Masked when the session began.
        Caller {
            tenant: (&*context.tenant).into(),
            agent_id: (&*context.agent_id).into(),
            session_key: (&*context.session_key).into(),
            request_id: (&*context.request_id).into(),
            ..caller
        }
    }
}

/// The incident after its client could not be told of the verdict.
pub(super) fn untold(incident: &Incident) -> Arc<Incident> {
    Arc::new(Incident { action: Some(IncidentAction::Error), ..incident.clone() })
}

/// A verdict as a decision. What nobody judged is at least a warning.
pub(super) fn decision_of(verdict: Option<VerdictKind>, is_shadow: bool) -> Decision {
    match verdict {
        Some(VerdictKind::Kill) => Decision::Block,
        Some(VerdictKind::Warn) => Decision::Warn,
        Some(VerdictKind::Safe) => Decision::Allow,
        None if is_shadow => Decision::Allow,
        None => Decision::Warn,
    }
}

fn finding(incident: &Incident) -> Finding {
    // How many raw bytes were matched is not known: what is kept of the text is masked and without control sequences.
    let at = usize::try_from(incident.offset).unwrap_or(usize::MAX);
    Finding {
        plugin: PLUGIN.into(),
        plugin_version: env!("CARGO_PKG_VERSION").into(),
        rule_id: incident.rule_id.clone(),
        category: incident.category.clone(),
        severity: incident.severity,
        score: incident.severity.score(),
        description: "".into(),
        recommendation: "".into(),
        span: SpanRef {
            message_index: 0,
            path: format!("/{}", incident.stream.as_str()).into(),
            start: at,
            end: at,
        },
        evasions: Vec::new(),
        shadow: incident.shadow,
        suppressed: false,
    }
}
