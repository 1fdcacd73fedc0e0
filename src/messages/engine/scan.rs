//! The pass that the built-in plugins share: every field of every message, from the cache or by the scanner.

use std::sync::Arc;
use std::time::Instant;

use super::plan::Plan;
use super::{CheckError, CheckRequest, MEDIA, MessageEngine, Pass};
use crate::decision::{Category, Finding, Reason, SpanRef};
use crate::detect::{self, Scanned};
use crate::messages::cache::ScanScope;
use crate::messages::{Field, Message, input, structure};
use crate::rules::{Budget, Role};

/// Text of a request from which it is scanned off the asynchronous workers, in bytes: about 0.3 ms of work.
const OFFLOAD_BYTES: usize = 64 * 1024;

impl MessageEngine {
    /// The built-in pass, off the asynchronous workers when there is much to read.
    pub(super) async fn pass(&self, plan: &Plan<'_>, request: &CheckRequest<'_>) -> Result<Pass, CheckError> {
        let bytes: usize = request.messages.iter().flat_map(|m| &m.fields).map(|f| f.text.len()).sum();
        let can_block = tokio::runtime::Handle::try_current()
            .is_ok_and(|h| h.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread);
        if bytes < OFFLOAD_BYTES || !can_block {
            return self.scan_all(plan, request);
        }
        // The semaphore is never closed; without a permit the scan still must happen.
        let _permit = self.long_scans.acquire().await;
        tokio::task::block_in_place(|| self.scan_all(plan, request))
    }

    fn scan_all(&self, plan: &Plan<'_>, request: &CheckRequest<'_>) -> Result<Pass, CheckError> {
        let mut pass = Pass::default();
        let clock = Clock::new(plan, request);
        let text_path: Arc<str> = "/text".into();
        if plan.runs_structure {
            self.check_structure(plan, request, &mut pass);
        }
        for (index, message) in request.messages.iter().enumerate() {
            let index = index as u32;
            for field in &message.fields {
                let scanned = match self.scan_field(plan, request.tenant, message, field, &clock, &mut pass) {
                    Ok(scanned) => scanned,
                    Err(Stopped::Deadline) => return Err(CheckError::DeadlineExceeded),
                    Err(Stopped::Timeout) => {
                        self.unjudge_rules(
                            plan,
                            request,
                            Reason::Timeout,
                            "time-out of the plugin",
                            &mut pass,
                        );
                        return Ok(pass);
                    }
                };
                if scanned.limit_hit {
                    let detail = format!("message {index}: the limits on decoding were hit");
                    self.unjudge_rules(plan, request, Reason::Limit, &detail, &mut pass);
                }
                for detected in &scanned.findings {
                    let span = || SpanRef {
                        message_index: index,
                        path: input::pointer(field.path, &text_path),
                        start: detected.range.start,
                        end: detected.range.end,
                    };
                    let version = plan.snapshot.scanner().rules().version();
                    let finding = detected.finding(version, span());
                    pass.findings.extend(self.apply_policy(plan, request, message.role, field.text, finding));
                }
            }
            if message.media_parts > 0 {
                let detail =
                    format!("message {index}: {} media part(s) cannot be looked into", message.media_parts);
                self.unjudge(plan, request, MEDIA, Reason::UnsupportedContent, detail, &mut pass);
            }
        }
        Ok(pass)
    }

    fn scan_field(
        &self,
        plan: &Plan<'_>,
        tenant: &str,
        message: &Message<'_>,
        field: &Field<'_>,
        clock: &Clock,
        pass: &mut Pass,
    ) -> Result<Arc<Scanned>, Stopped> {
        let surface = message.surface_of(field);
        let rules = plan.snapshot.scanner().rules();
        let scope = ScanScope { plugins: plan.bits, countries: &plan.countries };
        let key = self.cache.key(tenant, field.text, message.role, surface, scope, rules.revision());
        if let Some(known) = key.as_ref().and_then(|k| self.cache.get(k)) {
            pass.hits += 1;
            return Ok(known);
        }
        let request = detect::Request {
            text: field.text,
            plugins: plan.bits,
            role: Some(message.role),
            surface: Some(surface),
        };
        pass.bytes += field.text.len();
        let is_spent = || clock.is_spent();
        let budget = Budget { is_spent: &is_spent };
        let scanned = plan.snapshot.scanner().scan_for(request, &plan.countries, &budget);
        let mut scanned = scanned.map_err(|_| clock.why())?;
        detect::settle_commands(&request, rules, &mut scanned.findings);
        let scanned = Arc::new(scanned);
        if let Some(key) = key {
            pass.misses += 1;
            self.cache.put(key, scanned.clone());
        }
        Ok(scanned)
    }

    fn check_structure(&self, plan: &Plan<'_>, request: &CheckRequest<'_>, pass: &mut Pass) {
        for fault in structure::check(request.messages) {
            let finding = Finding {
                plugin: structure::STRUCTURE.into(),
                plugin_version: plan.snapshot.scanner().rules().version().clone(),
                rule_id: fault.rule_id.into(),
                category: Category::new(structure::STRUCTURE),
                severity: fault.severity,
                score: fault.severity.score(),
                description: fault.description.into(),
                recommendation: fault.recommendation.into(),
                span: SpanRef {
                    message_index: fault.message_index as u32,
                    path: "".into(),
                    start: 0,
                    end: 0,
                },
                evasions: Vec::new(),
                shadow: false,
                suppressed: false,
            };
            // The role is left out: where the operator speaks is what this check is about.
            pass.findings.extend(self.apply_policy(plan, request, Role::User, "", finding));
        }
    }

    fn unjudge_rules(
        &self,
        plan: &Plan<'_>,
        request: &CheckRequest<'_>,
        reason: Reason,
        detail: &str,
        pass: &mut Pass,
    ) {
        for plugin in &plan.rule_plugins {
            self.unjudge(plan, request, plugin, reason, detail.to_owned(), pass);
        }
    }
}

/// Why the synchronous pass stopped.
pub(super) enum Stopped {
    Deadline,
    Timeout,
}

/// When the synchronous pass must stop: at the caller's deadline or the shortest time-out of the plugins that share it.
pub(super) struct Clock {
    deadline: Option<Instant>,
    timeout: Option<Instant>,
}

impl Clock {
    pub fn new(plan: &Plan<'_>, request: &CheckRequest<'_>) -> Self {
        let shortest = plan.rule_plugins.iter().map(|p| plan.policy.timeout(p)).min();
        Self { deadline: request.deadline, timeout: shortest.map(|t| Instant::now() + t) }
    }

    pub fn is_spent(&self) -> bool {
        let now = Instant::now();
        [self.deadline, self.timeout].into_iter().flatten().any(|until| now >= until)
    }

    pub fn why(&self) -> Stopped {
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Stopped::Deadline,
            _ => Stopped::Timeout,
        }
    }
}
