//! The message engine: one request to one outcome.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::Semaphore;

use super::cache::ScanScope;
use super::plugin::{Descriptor, Plugin, PluginCall, guarded};
use super::redact::RedactedField;
use super::report;
use super::{CacheConfig, Conversation, Field, FindingCache, Message, MessagesConfig, input, structure};
use crate::decision::{Category, Direction, Finding, Mode, Reason, Severity, SpanRef, Unjudged};
use crate::detect::redact::{self, Placeholders, Secret};
use crate::detect::{self, BUILTIN_PLUGINS, Detected, PII, Reported, SECRETS, Scanned, fingerprint};
use crate::outbound::Until;
use crate::policy::{AllowList, CallerRole, Policy, Snapshot, SuppressionQuery, Verdict};
use crate::rules::{Budget, CountrySet, Role};
use crate::text::OffsetEncoding;

/// Text of a request from which it is scanned off the asynchronous workers, in bytes: about 0.3 ms of work.
const OFFLOAD_BYTES: usize = 64 * 1024;
/// Plugin id under which media parts are reported: nobody built in can look into them.
pub(super) const MEDIA: &str = "media";

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct CheckRequest<'a> {
    /// The messages.
    pub messages: &'a Conversation<'a>,
    /// Name of the policy; empty means `default`.
    pub policy: &'a str,
    /// Roles of the caller.
    pub caller_roles: &'a [CallerRole],
    /// Tenant of the caller; empty when there is none.
    pub tenant: &'a str,
    /// Plugins to run besides those the policy requires.
    pub plugins: &'a [String],
    /// Personal data that the caller excuses; has an effect only where the policy lets callers do so.
    pub allow_list: &'a [String],
    /// Countries whose personal data the caller wants looked for; narrows where the policy lets callers do so.
    pub countries: CountrySet,
    /// Which way the messages go.
    pub direction: Direction,
    /// Unit of the offsets in the answer.
    pub encoding: OffsetEncoding,
    /// Whether redacted messages are wanted.
    pub redact: bool,
    /// Whether matched text is wanted in clear; has an effect only where the policy reveals.
    pub reveal: bool,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
    /// Id of the decision, for plugins that ask somebody else.
    pub decision_id: &'a str,
    /// The request in the type it came in, for plugins that hand it on.
    pub sent: Option<&'a (dyn Any + Send + Sync)>,
}

/// What came out of a check.
#[derive(Debug)]
pub struct CheckOutcome {
    /// Decision and risk.
    pub verdict: Verdict,
    /// Findings in the order of the messages, at most `findings_max`.
    pub reported: Vec<Reported>,
    /// How many there are in all.
    pub findings_total: usize,
    /// What could not be judged.
    pub unjudged: Vec<Unjudged>,
    /// Fields that redaction changed.
    pub redacted: Vec<RedactedField>,
    /// How much personal data was excused, and by whom.
    pub excused: Excused,
    /// The policy that decided.
    pub policy: Arc<Policy>,
    /// Plugins that ran, with the time each took; built-in ones share one pass and so one time.
    pub ran: Vec<(Arc<str>, Duration)>,
    /// How many of them, from the first, shared that pass.
    pub joint: usize,
    /// Bytes of text scanned; texts that the cache knew are not among them.
    pub bytes: usize,
    /// Fields answered from the cache.
    pub cache_hits: u64,
    /// Fields that the cache did not know.
    pub cache_misses: u64,
}

/// How many findings of personal data were excused by an allow-list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excused {
    /// By `pii.allow_list` of the policy.
    pub by_policy: u64,
    /// By the `allow_list` of the request alone.
    pub by_request: u64,
}

/// Why a request has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// There is nothing to check.
    #[error("no messages; send at least one")]
    NoMessages,
    /// No such policy.
    #[error("unknown policy `{name}`; known: {known}")]
    UnknownPolicy {
        /// The name asked for, shortened.
        name: String,
        /// Those that this caller may use.
        known: String,
    },
    /// The policy is not for callers of this role.
    #[error("policy `{name}` is not for your role")]
    PolicyNotAllowed {
        /// Its name.
        name: String,
    },
    /// No such plugin.
    #[error("unknown plugin `{name}`; known: {known}")]
    UnknownPlugin {
        /// Index in `plugins`.
        index: usize,
        /// The name asked for, shortened.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// The plugin exists and the policy or the settings switched it off.
    #[error("plugin `{name}` is switched off")]
    PluginOff {
        /// Index in `plugins`.
        index: usize,
        /// Its id.
        name: String,
    },
    /// The caller's deadline passed first.
    #[error("the deadline passed before the messages were judged")]
    DeadlineExceeded,
}

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

/// What one request runs, decided before the first byte is read.
struct Plan<'a> {
    policy: &'a Arc<Policy>,
    snapshot: &'a Snapshot,
    /// Rule plugins, as bits of the rule set.
    bits: u32,
    /// The same by name.
    rule_plugins: Vec<Arc<str>>,
    asynchronous: Vec<Arc<dyn Plugin>>,
    runs_structure: bool,
    now: Option<Timestamp>,
    /// What the caller excuses; empty where the policy does not heed it.
    caller_allow_list: AllowList,
    /// Countries whose personal data is looked for; empty means all.
    countries: CountrySet,
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

    fn plan<'a>(&self, snapshot: &'a Snapshot, request: &CheckRequest<'a>) -> Result<Plan<'a>, CheckError> {
        let policies = snapshot.policies();
        let policy = policies.get(request.policy).ok_or_else(|| CheckError::UnknownPolicy {
            name: shorten(request.policy),
            known: names_of(
                policies.iter().filter(|p| p.allows_caller(request.caller_roles)).map(|p| &**p.name()),
            ),
        })?;
        if !policy.allows_caller(request.caller_roles) {
            return Err(CheckError::PolicyNotAllowed { name: policy.name().to_string() });
        }
        let rules = snapshot.scanner().rules();
        let known: Vec<&str> = rules
            .plugins()
            .iter()
            .map(|p| &**p)
            .chain(self.plugins.iter().map(|p| &*p.descriptor().name))
            .chain([structure::STRUCTURE])
            .collect();
        let required = policy.required_plugins(&known);
        let is_off =
            |name: &str| policy.plugin_mode(name) == Mode::Off || self.disabled.iter().any(|d| d == name);
        for (index, name) in request.plugins.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                return Err(CheckError::UnknownPlugin {
                    index,
                    name: shorten(name),
                    known: known.join(", "),
                });
            }
            if is_off(name) {
                return Err(CheckError::PluginOff { index, name: name.clone() });
            }
        }
        let runs = |name: &str| {
            !is_off(name) && (required.contains(&name) || request.plugins.iter().any(|p| p == name))
        };
        let rule_plugins: Vec<Arc<str>> = rules.plugins().iter().filter(|p| runs(p)).cloned().collect();
        Ok(Plan {
            policy,
            snapshot,
            bits: rules.plugin_bits(rule_plugins.iter().map(|p| &**p)),
            rule_plugins,
            asynchronous: self.plugins.iter().filter(|p| runs(&p.descriptor().name)).cloned().collect(),
            runs_structure: runs(structure::STRUCTURE),
            // The clock is read only where something can expire.
            now: (!policy.suppressions().is_empty()).then(Timestamp::now),
            caller_allow_list: if policy.heeds_caller_allow_list() {
                AllowList::new(request.allow_list.to_vec())
            } else {
                AllowList::default()
            },
            countries: policy.countries_for(&request.countries),
        })
    }

    /// The built-in pass, off the asynchronous workers when there is much to read.
    async fn pass(&self, plan: &Plan<'_>, request: &CheckRequest<'_>) -> Result<Pass, CheckError> {
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
                    let finding = finding_of(plan, detected, span());
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
        let scanned = Arc::new(scanned.map_err(|_| clock.why())?);
        if let Some(key) = key {
            pass.misses += 1;
            self.cache.put(key, scanned.clone());
        }
        Ok(scanned)
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

    /// Runs the asynchronous plugins under the time that is left.
    async fn ask_plugins(
        &self,
        plan: &Plan<'_>,
        request: &CheckRequest<'_>,
        pass: &mut Pass,
        ran: &mut Vec<(Arc<str>, Duration)>,
    ) -> Result<(), CheckError> {
        let asked = plan.asynchronous.iter().map(|plugin| async move {
            let started = Instant::now();
            let own = started + plan.policy.timeout(&plugin.descriptor().name);
            let until = Until::sooner(own, request.deadline);
            let call = PluginCall {
                messages: request.messages,
                tenant: request.tenant,
                direction: request.direction,
                decision_id: request.decision_id,
                sent: request.sent,
                until,
            };
            let answer = tokio::time::timeout_at(until.at.into(), guarded(plugin.check(&call))).await;
            (plugin, answer, started.elapsed())
        });
        let answers = if self.config.parallel {
            futures_util::future::join_all(asked).await
        } else {
            let mut answers = Vec::with_capacity(plan.asynchronous.len());
            for one in asked {
                answers.push(one.await);
            }
            answers
        };
        for (plugin, answer, elapsed) in answers {
            let name = &plugin.descriptor().name;
            ran.push((name.clone(), elapsed));
            match answer {
                Ok(Ok(found)) => {
                    for error in found.unjudged {
                        self.unjudge(plan, request, name, error.reason, error.detail, pass);
                    }
                    let version = found.version.as_ref().unwrap_or(&plugin.descriptor().version);
                    for finding in found.findings {
                        let Some(finding) = within_message(request.messages, finding, name, version) else {
                            let detail = "a finding pointed outside the messages".to_owned();
                            self.unjudge(plan, request, name, Reason::BadAnswer, detail, pass);
                            continue;
                        };
                        let message = &request.messages[finding.span.message_index as usize];
                        let text = report::field_text(request.messages, &finding.span);
                        pass.findings.extend(self.apply_policy(plan, request, message.role, text, finding));
                    }
                }
                Ok(Err(error)) => self.unjudge(plan, request, name, error.reason, error.detail, pass),
                Err(_) if request.deadline.is_some_and(|d| Instant::now() >= d) => {
                    return Err(CheckError::DeadlineExceeded);
                }
                Err(_) => {
                    let detail = format!("no answer within {elapsed:.0?}");
                    self.unjudge(plan, request, name, Reason::Timeout, detail, pass);
                }
            }
        }
        Ok(())
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

    /// Takes credentials and personal data out of every field that has some.
    fn redact(
        &self,
        plan: &Plan<'_>,
        request: &CheckRequest<'_>,
        findings: &[Finding],
    ) -> Result<Vec<RedactedField>, CheckError> {
        let mut placeholders = Placeholders::default();
        let mut out = Vec::new();
        let clock = Clock::new(plan, request);
        let is_spent = || clock.is_spent();
        let redactable = plan.snapshot.scanner().rules().plugin_bits([PII, SECRETS]) & plan.bits;
        // Findings are sorted by message, so each message looks at its own only.
        for of_message in findings.chunk_by(|a, b| a.span.message_index == b.span.message_index) {
            let index = of_message[0].span.message_index as usize;
            let message = &request.messages[index];
            for field in &message.fields {
                let pointer = field.path.to_pointer();
                let secrets: Vec<Secret> = of_message
                    .iter()
                    .filter(|f| *f.span.path == *pointer)
                    .filter(|f| f.is_effective() && is_redactable(&f.category))
                    .map(|f| Secret {
                        range: f.span.start..f.span.end,
                        category: f.category.clone(),
                        severity: f.severity,
                    })
                    .filter(|s| !s.range.is_empty())
                    .collect();
                if secrets.is_empty() {
                    continue;
                }
                let find = |text: &str| {
                    let again = detect::Request {
                        text,
                        plugins: redactable,
                        role: Some(message.role),
                        surface: Some(message.surface_of(field)),
                    };
                    let scanned = plan
                        .snapshot
                        .scanner()
                        .scan_for(again, &plan.countries, &Budget { is_spent: &is_spent })
                        .map_err(|_| CheckError::DeadlineExceeded)?;
                    let remaining = scanned.findings.iter().filter_map(|detected| {
                        let span = SpanRef {
                            message_index: index as u32,
                            path: pointer.as_ref().into(),
                            start: detected.range.start,
                            end: detected.range.end,
                        };
                        let finding = finding_of(plan, detected, span);
                        self.apply_policy(plan, request, message.role, text, finding)
                    });
                    Ok(remaining
                        .filter(|f| f.is_effective() && is_redactable(&f.category))
                        .map(|f| Secret {
                            range: f.span.start..f.span.end,
                            category: f.category,
                            severity: f.severity,
                        })
                        .collect())
                };
                let text =
                    redact::redact(field.text, field.path.is_json(), secrets, &mut placeholders, find)?;
                out.push(RedactedField { message_index: index as u32, path: field.path, text });
            }
        }
        Ok(out)
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

/// Families that redaction takes out.
fn is_redactable(category: &Category) -> bool {
    category.is_within(PII) || category.is_within(SECRETS)
}

fn finding_of(plan: &Plan<'_>, detected: &Detected, span: SpanRef) -> Finding {
    let info = &detected.info;
    Finding {
        plugin: info.plugin.clone(),
        plugin_version: plan.snapshot.scanner().rules().version().clone(),
        rule_id: info.id.clone(),
        category: info.category.clone(),
        severity: info.severity,
        score: info.score,
        description: info.description.clone(),
        recommendation: info.recommendation.clone(),
        span,
        evasions: detected.layers.iter().map(|layer| layer.as_str()).collect(),
        shadow: false,
        suppressed: false,
    }
}

/// A plugin's finding with its span on character boundaries, or `None` when it points at nothing that was sent.
fn within_message(
    messages: &Conversation<'_>,
    mut finding: Finding,
    plugin: &Arc<str>,
    version: &Arc<str>,
) -> Option<Finding> {
    let message = messages.get(finding.span.message_index as usize)?;
    let text = match &*finding.span.path {
        // About the message as a whole.
        "" => "",
        path => message.fields.iter().find(|field| field.path.to_pointer() == path)?.text,
    };
    finding.span.end = text.ceil_char_boundary(finding.span.end.min(text.len()));
    finding.span.start = text.floor_char_boundary(finding.span.start.min(finding.span.end));
    // A foreign answer must not push the risk out of its range, nor pose as another plugin.
    finding.score =
        if finding.score.is_finite() { finding.score.clamp(0.0, 1.0) } else { Severity::Critical.score() };
    finding.plugin = plugin.clone();
    finding.plugin_version = version.clone();
    Some(finding)
}

fn names_of<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

fn shorten(name: &str) -> String {
    name.chars().take(60).flat_map(char::escape_debug).collect()
}

/// Why the synchronous pass stopped.
enum Stopped {
    Deadline,
    Timeout,
}

/// When the synchronous pass must stop: at the caller's deadline or the shortest time-out of the plugins that share it.
struct Clock {
    deadline: Option<Instant>,
    timeout: Option<Instant>,
}

impl Clock {
    fn new(plan: &Plan<'_>, request: &CheckRequest<'_>) -> Self {
        let shortest = plan.rule_plugins.iter().map(|p| plan.policy.timeout(p)).min();
        Self { deadline: request.deadline, timeout: shortest.map(|t| Instant::now() + t) }
    }

    fn is_spent(&self) -> bool {
        let now = Instant::now();
        [self.deadline, self.timeout].into_iter().flatten().any(|until| now >= until)
    }

    fn why(&self) -> Stopped {
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Stopped::Deadline,
            _ => Stopped::Timeout,
        }
    }
}
