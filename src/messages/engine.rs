//! The message engine: one request to one outcome.

mod ask;
mod plan;
mod redact;
mod request;
mod scan;

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;

use super::plugin::{Descriptor, Plugin};
use super::report;
use super::{CacheConfig, FindingCache, MessagesConfig};
use crate::decision::{Finding, Mode, Reason, Unjudged};
use crate::detect::{BUILTIN_PLUGINS, PII, fingerprint};
use crate::policy::{Snapshot, SuppressionQuery};
use crate::rules::Role;
use plan::Plan;

pub use request::{CheckError, CheckOutcome, CheckRequest, Excused};

/// Plugin id under which media parts are reported: nobody built in can look into them.
pub(super) const MEDIA: &str = "media";

/// Checks messages. One per process, shared by all requests.
pub struct MessageEngine {
    config: MessagesConfig,
    cache: FindingCache,
    plugins: Vec<Arc<dyn Plugin>>,
    /// Built-in and rule plugins that the settings switched off.
    disabled: Vec<String>,
    /// Long texts scanned at once: more than there are cores only costs memory.
    long_scans: Semaphore,
}

/// What the synchronous pass gathers.
#[derive(Default)]
struct Pass {
    findings: Vec<Finding>,
    unjudged: Vec<Unjudged>,
    bytes: usize,
    hits: u64,
    misses: u64,
}

impl MessageEngine {
    /// An engine with these asynchronous plugins; `disabled` names built-in plugins that the settings switched off.
    pub fn new(
        config: MessagesConfig,
        cache: &CacheConfig,
        plugins: Vec<Arc<dyn Plugin>>,
        disabled: Vec<String>,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { config, cache: FindingCache::new(cache), plugins, disabled, long_scans: Semaphore::new(cores) }
    }

    /// The asynchronous plugins.
    pub fn plugins(&self) -> &[Arc<dyn Plugin>] {
        &self.plugins
    }

    /// Every plugin with its description, built-in ones first.
    pub fn descriptors(&self, snapshot: &Snapshot) -> Vec<Descriptor> {
        let version = snapshot.scanner().rules().version();
        let rule_plugins = snapshot.scanner().rules().plugins().iter().map(|name| Descriptor {
            name: name.clone(),
            description: BUILTIN_PLUGINS
                .iter()
                .find(|(known, _)| *known == &**name)
                .map_or("Rules of this installation.", |(_, text)| text)
                .into(),
            version: version.clone(),
        });
        rule_plugins.chain(self.plugins.iter().map(|p| p.descriptor().clone())).collect()
    }

    /// Checks one request under one snapshot of rules and policies.
    ///
    /// # Errors
    /// See [`CheckError`]; a decision is never an error.
    pub async fn check(
        &self,
        snapshot: &Snapshot,
        request: CheckRequest<'_>,
    ) -> Result<CheckOutcome, CheckError> {
        if request.messages.is_empty() {
            return Err(CheckError::NoMessages);
        }
        let plan = self.plan(snapshot, &request)?;
        let started = Instant::now();
        let mut pass = self.pass(&plan, &request).await?;
        let elapsed = started.elapsed();
        let mut ran: Vec<_> = plan.rule_plugins.iter().map(|name| (name.clone(), elapsed)).collect();
        self.ask_plugins(&plan, &request, &mut pass, &mut ran).await?;
        pass.findings.sort_by(|a, b| {
            let key = |f: &Finding| (f.span.message_index, f.span.start, f.span.end);
            (key(a), &a.span.path).cmp(&(key(b), &b.span.path))
        });
        // Findings of one field stand together, fields in the order in which they were first seen.
        pass.findings
            .sort_by(|a, b| (a.span.message_index, &a.span.path).cmp(&(b.span.message_index, &b.span.path)));
        let redacted =
            if request.redact { self.redact(&plan, &request, &pass.findings)? } else { Vec::new() };
        let findings_total = pass.findings.len();
        let excused = excused(&plan, &request, &pass.findings);
        // Everything found counts, also what does not fit into the answer.
        let mut verdict = plan.policy.decide(&pass.findings, &pass.unjudged);
        self.limit_findings(&plan, &request, &mut pass);
        let unjudged = pass.unjudged.iter().map(Unjudged::decision);
        verdict.decision = unjudged.fold(verdict.decision, Ord::max);
        Ok(CheckOutcome {
            verdict,
            reported: report::report(
                request.messages,
                pass.findings,
                request.encoding,
                request.reveal && plan.policy.reveal(),
            ),
            findings_total,
            unjudged: pass.unjudged,
            redacted,
            excused,
            policy: plan.policy.clone(),
            ran,
            joint: plan.rule_plugins.len(),
            bytes: pass.bytes,
            cache_hits: pass.hits,
            cache_misses: pass.misses,
        })
    }

    /// Mode and suppressions; `None` when the policy switched the rule or its category off.
    fn apply_policy(
        &self,
        plan: &Plan<'_>,
        request: &CheckRequest<'_>,
        role: Role,
        text: &str,
        mut finding: Finding,
    ) -> Option<Finding> {
        let is_system = role == Role::System;
        match plan.policy.mode_of(&finding.plugin, &finding.rule_id, &finding.category, is_system) {
            Mode::Off => return None,
            Mode::Shadow => finding.shadow = true,
            Mode::Enforce => {}
        }
        if let Some(now) = plan.now {
            let matched = text.get(finding.span.start..finding.span.end).unwrap_or_default();
            let query = SuppressionQuery {
                rule_id: &finding.rule_id,
                category: &finding.category,
                fingerprint: &|| fingerprint(&finding.rule_id, matched),
                path: &finding.span.path,
                tenant: request.tenant,
            };
            finding.suppressed = plan.policy.suppression(&query, now).is_some();
        }
        if finding.category.is_within(PII) {
            let value = text.get(finding.span.start..finding.span.end).unwrap_or_default();
            finding.suppressed |=
                plan.policy.allow_list().allows(value) || plan.caller_allow_list.allows(value);
        }
        Some(finding)
    }

    fn unjudge(
        &self,
        plan: &Plan<'_>,
        request: &CheckRequest<'_>,
        plugin: &str,
        reason: Reason,
        detail: String,
        pass: &mut Pass,
    ) {
        let mode = plan.policy.plugin_mode(plugin);
        if mode == Mode::Off {
            return;
        }
        pass.unjudged.push(Unjudged {
            plugin: plugin.into(),
            reason,
            detail,
            fail_mode: plan.policy.fail_modes(plugin).of(request.direction),
            shadow: mode == Mode::Shadow,
        });
    }

    /// Keeps the strongest findings when there are more than an answer may carry.
    fn limit_findings(&self, plan: &Plan<'_>, request: &CheckRequest<'_>, pass: &mut Pass) {
        let total = pass.findings.len();
        let max = self.config.findings_max;
        if total <= max {
            return;
        }
        let mut order: Vec<usize> = (0..total).collect();
        let strength = |i: &usize| (pass.findings[*i].is_effective(), pass.findings[*i].score);
        order.sort_by(|a, b| strength(b).partial_cmp(&strength(a)).unwrap_or(std::cmp::Ordering::Equal));
        let weakest = pass.findings[order[max]].plugin.clone();
        let mut keep = vec![false; total];
        order[..max].iter().for_each(|i| keep[*i] = true);
        let mut kept = keep.into_iter();
        pass.findings.retain(|_| kept.next().unwrap_or(false));
        let detail = format!("{total} findings, {max} of them reported");
        self.unjudge(plan, request, &weakest, Reason::Limit, detail, pass);
    }
}

/// How many findings of personal data are suppressed because of a list.
fn excused(plan: &Plan<'_>, request: &CheckRequest<'_>, findings: &[Finding]) -> Excused {
    let mut excused = Excused::default();
    for finding in findings.iter().filter(|finding| finding.suppressed && finding.category.is_within(PII)) {
        let text = report::field_text(request.messages, &finding.span);
        let value = text.get(finding.span.start..finding.span.end).unwrap_or_default();
        if plan.policy.allow_list().allows(value) {
            excused.by_policy += 1;
        } else if plan.caller_allow_list.allows(value) {
            excused.by_request += 1;
        }
    }
    excused
}
