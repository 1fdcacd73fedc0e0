//! Trying something out: judged as a call from outside would be, by the same engines under the same policy, and nothing of
//! it is counted, recorded or kept.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::bundle_convert::standing_of;
use super::console::refused;
use super::explain::{alone, changes, summary};
use super::intercept::{Judge, judge_tool};
use super::local::{LocalCalls, Refusal};
use super::remember::{bundle_why, weighed};
use super::server::Shared;
use super::{Identity, RequestError, convert, review_bundle};
use crate::audit::Run;
use crate::decision::{Category, Decision, Finding, Mode as RuleMode, Unjudged, Weight, worst_first};
use crate::detect::concepts::RULE_ID;
use crate::detect::{INJECTION, Reported, Request, wording};
use crate::messages::{CheckRequest, parse_role};
use crate::pb::v1;
use crate::policy::{Policy, Snapshot};
use crate::rules::{Budget, CountrySet, Role};
use crate::text::{convert_offsets, line_columns};

/// How long one trial may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Letters that are shown of words that were weighed.
const WORDS_MAX: usize = 80;

/// What is tried out.
#[derive(Clone, Debug)]
pub enum TrialText {
    /// A message of a role.
    Message {
        /// `user`, `assistant`, `system` or `tool`.
        role: String,
        /// What it says.
        text: String,
    },
    /// A call of a tool with one argument, whose text was pasted: places are told in that text.
    Argument {
        /// The tool.
        tool: &'static str,
        /// The argument.
        key: &'static str,
        /// What was pasted.
        text: String,
    },
    /// A call of a tool.
    Tool {
        /// Its name.
        name: String,
        /// Its arguments, a JSON object.
        args_json: String,
    },
    /// A ZIP archive.
    Bundle {
        /// What it is.
        kind: v1::BundleKind,
        /// Its bytes.
        bytes: Vec<u8>,
    },
}

/// What counts in a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// What the policy says.
    #[default]
    Policy,
    /// Also what the policy keeps in shadow.
    Enforce,
}

/// One trial.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What.
    pub text: TrialText,
    /// Under which policy; empty is the default one.
    pub policy: String,
    /// Unit of offsets.
    pub unit: v1::OffsetEncoding,
    /// What counts.
    pub mode: Mode,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Tried {
    /// What would be decided.
    pub decision: Decision,
    /// Highest score that counts.
    pub risk_score: f64,
    /// Why, in one sentence.
    pub why: String,
    /// The policy that decided.
    pub policy: String,
    /// Revision of policies and rules.
    pub revision: String,
    /// What was found, first what decided.
    pub findings: Vec<TriedFinding>,
    /// What could not be judged.
    pub unjudged: Vec<Unjudged>,
    /// What ran.
    pub ran: Vec<Run>,
    /// Concepts that were weighed, with the log-odds that each gave.
    pub concepts: Vec<(String, f64)>,
    /// Words and pairs of words that gave most for an attack, with their log-odds.
    pub words: Vec<(String, f64)>,
    /// The text that offsets count in; empty for bundles.
    pub text: String,
    /// How long it took.
    pub elapsed: Duration,
    /// What the checks of a bundle say.
    pub bundle: Option<v1::ReviewBundleResponse>,
}

/// One thing that was found.
#[derive(Clone, Debug)]
pub struct TriedFinding {
    /// As the contract tells it, offsets in the unit asked for.
    pub told: v1::Finding,
    /// Where, in bytes of [`Tried::text`].
    pub range: Range<usize>,
    /// What it decides by itself.
    pub decides: Decision,
    /// What would have changed that, in terms of the policy.
    pub changes: Vec<String>,
    weight: Weight,
}

impl LocalCalls {
    /// Judges something, and keeps nothing of it.
    ///
    /// # Errors
    /// The caller may not ask for such a decision, a field is wrong, or too much is going on.
    pub async fn try_out(&self, identity: &Identity, trial: Trial) -> Result<Tried, Refusal> {
        let rpc = match &trial.text {
            TrialText::Message { .. } => "CheckMessages",
            TrialText::Tool { .. } | TrialText::Argument { .. } => "InterceptTool",
            TrialText::Bundle { .. } => "ReviewBundle",
        };
        self.check_role(identity, &format!("PolicyDecisionService/{rpc}"))?;
        let shared = self.shared();
        let Ok(_permit) = shared.in_flight.clone().try_acquire_owned() else {
            return Err(refused(RequestError::Overloaded));
        };
        let tried = tokio::time::timeout(TIMEOUT, judge(shared, identity, trial)).await;
        tried.unwrap_or(Err(RequestError::DeadlineExceeded)).map_err(refused)
    }
}

async fn judge(shared: &Shared, identity: &Identity, trial: Trial) -> Result<Tried, RequestError> {
    let started = Instant::now();
    let size = match &trial.text {
        TrialText::Message { text, .. } => text.len(),
        TrialText::Tool { name, args_json } => name.len() + args_json.len(),
        TrialText::Argument { text, .. } => text.len(),
        // The limits of bundles hold.
        TrialText::Bundle { .. } => 0,
    };
    if size > shared.request_bytes_max {
        return Err(RequestError::TooLarge {
            what: "the text",
            found: size as u64,
            limit: shared.request_bytes_max as u64,
            setting: "server.request_bytes_max",
        });
    }
    let snapshot = shared.live.snapshot().ok_or(RequestError::NotServing)?;
    let (mut context, mut policy) = (None, trial.policy);
    identity.settle(snapshot.policies(), "context.tenant", &mut context, &mut policy)?;
    let asked =
        Asked { shared, identity, snapshot: &snapshot, context, policy, unit: trial.unit, mode: trial.mode };
    let tried = match trial.text {
        TrialText::Message { role, text } => asked.message(role, text).await,
        TrialText::Tool { name, args_json } => asked.tool(name, args_json).await,
        TrialText::Argument { tool, key, text } => asked.argument(tool, key, text).await,
        TrialText::Bundle { kind, bytes } => asked.bundle(kind, bytes).await,
    }?;
    Ok(Tried { elapsed: started.elapsed(), ..tried })
}

/// Under what a trial is judged.
struct Asked<'a> {
    shared: &'a Shared,
    identity: &'a Identity,
    snapshot: &'a Arc<Snapshot>,
    context: Option<v1::CallContext>,
    policy: String,
    unit: v1::OffsetEncoding,
    mode: Mode,
}

impl Asked<'_> {
    async fn message(self, role: String, text: String) -> Result<Tried, RequestError> {
        let speaker = parse_role(&role).map_err(|error| RequestError::field("role", error))?;
        let request = v1::CheckMessagesRequest {
            messages: vec![v1::Message {
                role,
                content: Some(v1::message::Content::Text(text)),
                ..Default::default()
            }],
            policy: self.policy.clone(),
            context: self.context.clone(),
            ..Default::default()
        };
        let messages = convert::conversation(&request)?;
        let check = CheckRequest {
            messages: &messages,
            policy: &request.policy,
            caller_roles: self.identity.roles,
            tenant: self.identity.tenant(),
            plugins: &[],
            allow_list: &[],
            countries: CountrySet::EMPTY,
            direction: crate::decision::Direction::Input,
            encoding: convert::offset_encoding(self.unit.into())?,
            redact: false,
            reveal: false,
            deadline: Some(Instant::now() + TIMEOUT),
            decision_id: "",
            sent: Some(&request),
        };
        let outcome = self.shared.engine.check(self.snapshot, check).await?;
        let text = messages.first().and_then(|message| message.fields.first()).map_or("", |field| field.text);
        let policy = outcome.policy.clone();
        let ran = outcome.ran.iter().enumerate().map(|(at, (plugin, elapsed))| Run {
            id: plugin.clone(),
            outcome: "",
            summary: String::new(),
            decision: Decision::Allow,
            shadow: policy.plugin_mode(plugin) == RuleMode::Shadow,
            elapsed: *elapsed,
            is_joint: at < outcome.joint,
        });
        let ran = ran.collect();
        let told = (outcome.verdict.decision, outcome.verdict.risk_score);
        let (decision, risk_score) = self.decided(&policy, told, &outcome.reported, &outcome.unjudged);
        let unjudged = outcome.unjudged.clone();
        let has = |rule: &str| outcome.reported.iter().any(|one| *one.finding.rule_id == *rule);
        let concepts = if has(RULE_ID) { self.concepts(text, speaker) } else { Vec::new() };
        let words = if has(wording::RULE_ID) { self.words(text, speaker) } else { Vec::new() };
        let findings = self.findings(&policy, speaker, outcome.reported.clone());
        let mut told = convert::response(outcome, None, String::new(), self.snapshot.revision());
        told.decision = convert::decision(decision).into();
        if self.mode == Mode::Enforce {
            told.findings.iter_mut().for_each(|finding| finding.shadow = false);
        }
        Ok(Tried {
            decision,
            risk_score,
            why: summary(&policy, &told),
            findings,
            unjudged,
            ran,
            concepts,
            words,
            text: text.to_owned(),
            ..self.nothing(&policy)
        })
    }

    async fn tool(self, tool_name: String, args_json: String) -> Result<Tried, RequestError> {
        let judge = Judge {
            engine: &self.shared.tools,
            snapshot: self.snapshot,
            roles: self.identity.roles,
            deadline: Some(Instant::now() + TIMEOUT),
        };
        let request = v1::InterceptToolRequest {
            phase: v1::ToolPhase::Before.into(),
            tool_name,
            args_json: args_json.clone(),
            policy: self.policy.clone(),
            context: self.context.clone(),
            offset_encoding: self.unit.into(),
            verbose: true,
            dry_run: true,
            ..Default::default()
        };
        let judged = judge_tool(judge, request).await?;
        let (response, outcome) = (judged.response, judged.outcome);
        let policy = outcome.policy.clone();
        let told = (outcome.verdict.decision, outcome.verdict.risk_score);
        let (mut decision, risk_score) = self.decided(&policy, told, &outcome.reported, &outcome.unjudged);
        if self.mode == Mode::Enforce {
            decision = outcome.ran.iter().map(|ran| ran.decision).fold(decision, Ord::max);
        }
        let ran = outcome.ran.iter().map(|ran| Run {
            id: ran.interceptor.id.clone(),
            outcome: ran.outcome.as_str(),
            summary: ran.summary.clone(),
            decision: ran.decision,
            shadow: ran.shadow,
            elapsed: ran.elapsed,
            is_joint: false,
        });
        let why = match response.block_reason.as_str() {
            _ if decision > outcome.verdict.decision => {
                format!("with what is in shadow enforced; without it would be {}", outcome.verdict.decision)
            }
            "" if outcome.reported.is_empty() => "nothing was found".to_owned(),
            "" => "no finding reaches a threshold that stops it".to_owned(),
            reason => reason.to_owned(),
        };
        Ok(Tried {
            decision,
            risk_score,
            why: format!("{decision} under policy `{}`: {why}", policy.name()),
            ran: ran.collect(),
            unjudged: outcome.unjudged.clone(),
            findings: self.findings(&policy, Role::Assistant, outcome.reported),
            text: args_json,
            ..self.nothing(&policy)
        })
    }

    /// A tool call of one argument: what is found is told where it stands in the text of the argument.
    async fn argument(self, tool: &str, key: &str, text: String) -> Result<Tried, RequestError> {
        let encoding = convert::offset_encoding(self.unit.into())?;
        let quoted = serde_json::Value::String(text.clone()).to_string();
        let before = format!("{{\"{key}\":");
        let pasted = Pasted::new(before.len() + 1, &text);
        let mut tried = self.tool(tool.to_owned(), format!("{before}{quoted}}}")).await?;
        for finding in &mut tried.findings {
            finding.range = pasted.place(finding.range.clone());
            let Some(span) = &mut finding.told.span else { continue };
            let (start, end) = (finding.range.start, finding.range.end);
            let [(line, column)] = line_columns(&text, encoding, &[start])[..] else { continue };
            let mut offsets = [start, end];
            convert_offsets(&text, encoding, &mut offsets);
            (span.start, span.end) = (offsets[0] as u64, offsets[1] as u64);
            (span.line, span.column) = (line, column);
        }
        tried.text = text;
        Ok(tried)
    }

    async fn bundle(self, kind: v1::BundleKind, bytes: Vec<u8>) -> Result<Tried, RequestError> {
        let policy = self.snapshot.policies().get(&self.policy).cloned();
        let reviewed =
            review_bundle::try_out(self.shared, self.identity, self.snapshot, kind, &self.policy, bytes);
        let reviewed = reviewed.await?;
        let policy = policy.unwrap_or_else(|| self.snapshot.policies().default_policy().clone());
        let decision = convert::decided(reviewed.decision());
        let checks = reviewed.checks.as_ref();
        let named = checks.map(|all| {
            let (code, quality) = (&all.static_security, &all.quality);
            [
                ("archive", &all.archive),
                ("manifest", &all.manifest),
                ("static security", code),
                ("quality", quality),
            ]
        });
        let is_failed = |check: &Option<v1::CheckResult>| {
            check.as_ref().is_some_and(|check| check.status() == v1::CheckStatus::Fail)
        };
        let named = named.iter().flatten();
        let failed: Vec<&str> = named.filter(|(_, check)| is_failed(check)).map(|(name, _)| *name).collect();
        let standing = standing_of(&v1::Submission {
            status: reviewed.status,
            hold_reason: reviewed.hold_reason,
            ..Default::default()
        });
        Ok(Tried {
            decision,
            why: bundle_why(decision, policy.name(), &failed, standing),
            bundle: Some(reviewed),
            ..self.nothing(&policy)
        })
    }

    fn nothing(&self, policy: &Policy) -> Tried {
        Tried {
            decision: Decision::Allow,
            risk_score: 0.0,
            why: String::new(),
            policy: policy.name().to_string(),
            revision: self.snapshot.revision().to_string(),
            findings: Vec::new(),
            unjudged: Vec::new(),
            ran: Vec::new(),
            concepts: Vec::new(),
            words: Vec::new(),
            text: String::new(),
            elapsed: Duration::ZERO,
            bundle: None,
        }
    }

    /// The decision and its score, with what only shadows where that is asked for.
    fn decided(
        &self,
        policy: &Policy,
        (decision, score): (Decision, f64),
        reported: &[Reported],
        unjudged: &[Unjudged],
    ) -> (Decision, f64) {
        if self.mode == Mode::Policy {
            return (decision, score);
        }
        let enforced = |reported: &Reported| Finding { shadow: false, ..reported.finding.clone() };
        let findings: Vec<Finding> = reported.iter().map(enforced).collect();
        let failed: Vec<Unjudged> =
            unjudged.iter().map(|one| Unjudged { shadow: false, ..one.clone() }).collect();
        let enforced = policy.decide(&findings, &failed);
        (decision.max(enforced.decision), score.max(enforced.risk_score))
    }

    fn findings(&self, policy: &Policy, role: Role, reported: Vec<Reported>) -> Vec<TriedFinding> {
        let one = |reported: Reported| {
            let range = reported.finding.span.start..reported.finding.span.end;
            let severity = reported.finding.severity;
            let mut told = convert::finding(reported);
            told.shadow &= self.mode == Mode::Policy;
            let category = Category::new(told.category.as_str());
            let (decides, changes) = (alone(policy, &told), changes(policy, role, &told, &category));
            let is_effective = !told.shadow && !told.suppressed;
            let weight = Weight::new(is_effective, decides, severity, told.score);
            TriedFinding { told, range, decides, changes, weight }
        };
        let mut findings: Vec<TriedFinding> = reported.into_iter().map(one).collect();
        worst_first(&mut findings, |one| one.weight);
        findings
    }

    fn concepts(&self, text: &str, role: Role) -> Vec<(String, f64)> {
        let request = self.prose(text, role);
        // A budget without a limit is never spent.
        let explained = self.snapshot.scanner().explain_concepts(request, &Budget::UNLIMITED).ok().flatten();
        explained.iter().flat_map(weighed).collect()
    }

    fn words(&self, text: &str, role: Role) -> Vec<(String, f64)> {
        let request = self.prose(text, role);
        let explained = self.snapshot.scanner().explain_wording(request, &Budget::UNLIMITED).ok().flatten();
        let terms = explained.into_iter().flat_map(|explained| explained.terms);
        let named = |term: wording::Term| {
            let name = term.name();
            let words = || text.get(term.place).map(|words| words.trim().chars().take(WORDS_MAX).collect());
            let told: String = name.or_else(words).filter(|told: &String| !told.is_empty())?;
            Some((told, term.log_odds))
        };
        terms.filter_map(named).collect()
    }

    /// What is asked about a text to have it explained.
    fn prose<'t>(&self, text: &'t str, role: Role) -> Request<'t> {
        Request {
            text,
            plugins: self.snapshot.scanner().rules().plugin_bits([INJECTION]),
            role: Some(role),
            surface: Some(crate::rules::Surface::Text),
        }
    }
}

/// Where the characters of a text stand in its JSON string.
struct Pasted {
    /// Where the string begins behind its quotation mark.
    start: usize,
    /// Bytes of the text.
    bytes: usize,
    /// Characters that are escaped: where each begins in the JSON and where it ends there, and its byte in the text. All of
    /// them have one byte.
    escaped: Vec<(usize, usize, usize)>,
}

impl Pasted {
    fn new(start: usize, text: &str) -> Self {
        let (mut escaped, mut longer) = (Vec::new(), 0);
        for (at, byte) in text.bytes().enumerate() {
            // RFC 8259, as `serde_json` writes it: the short escapes, and six characters for every other control.
            let length = match byte {
                b'"' | b'\\' | 0x08 | 0x09 | 0x0a | 0x0c | 0x0d => 2,
                0..=0x1f => 6,
                _ => continue,
            };
            let begin = start + at + longer;
            escaped.push((begin, begin + length, at));
            longer += length - 1;
        }
        Self { start, bytes: text.len(), escaped }
    }

    /// The range of the text that a range of the JSON stands for.
    fn place(&self, range: Range<usize>) -> Range<usize> {
        let start = self.byte(range.start, false);
        start..self.byte(range.end, true).max(start)
    }

    /// What lies within an escape is before its character, or behind it.
    fn byte(&self, at: usize, is_end: bool) -> usize {
        let index = self.escaped.partition_point(|(begin, ..)| *begin < at);
        let byte = match index.checked_sub(1).and_then(|index| self.escaped.get(index)) {
            None => at.saturating_sub(self.start),
            Some((_, end, byte)) if at < *end => byte + usize::from(is_end),
            Some((_, end, byte)) => byte + 1 + (at - end),
        };
        byte.min(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_text_that_was_pasted() {
        for text in ["rm -rf /", "", "\"a\"\tb\\\n\u{1}\u{7f}\u{e9}\u{1f600}c/", "\n\n\n", "\\\\\"x"] {
            let before = "{\"command\":";
            let json = format!("{before}{}}}", serde_json::Value::String(text.to_owned()));
            let pasted = Pasted::new(before.len() + 1, text);
            // Each character stands where its part of the JSON does.
            let mut at = before.len() + 1;
            for (byte, c) in text.char_indices() {
                let length = serde_json::Value::String(c.to_string()).to_string().len() - 2;
                assert_eq!(pasted.place(at..at + length), byte..byte + c.len_utf8(), "{text:?} {c:?}");
                at += length;
            }
            assert_eq!(at + 2, json.len(), "{text:?}");
            assert_eq!(pasted.place(0..json.len()), 0..text.len(), "{text:?}");
        }
        let pasted = Pasted::new(2, "a\nb");
        assert_eq!(pasted.place(4..4), 1..2, "within an escape: the character as a whole");
    }
}
