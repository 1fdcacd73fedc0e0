//! Trying something out: judged as a call from outside would be, by the same engines under the same policy, and nothing of
//! it is counted, recorded or kept.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::console::refused;
use super::explain::{alone, changes, summary};
use super::intercept::{Judge, judge_tool};
use super::local::{LocalCalls, Refusal};
use super::remember::weighed;
use super::server::Shared;
use super::{Identity, RequestError, convert, review_bundle};
use crate::audit::Run;
use crate::decision::{Category, Decision, Finding, Mode as RuleMode, Unjudged};
use crate::detect::concepts::RULE_ID;
use crate::detect::{INJECTION, Reported, Request};
use crate::messages::{CheckRequest, parse_role};
use crate::pb::v1;
use crate::policy::{Policy, Snapshot};
use crate::rules::{Budget, CountrySet, Role};

/// How long one trial may take.
const TIMEOUT: Duration = Duration::from_secs(20);

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
    /// What was found.
    pub findings: Vec<TriedFinding>,
    /// What could not be judged.
    pub unjudged: Vec<Unjudged>,
    /// What ran.
    pub ran: Vec<Run>,
    /// Concepts that were weighed, with the log-odds that each gave.
    pub concepts: Vec<(String, f64)>,
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
}

impl LocalCalls {
    /// Judges something, and keeps nothing of it.
    ///
    /// # Errors
    /// The caller may not ask for such a decision, a field is wrong, or too much is going on.
    pub async fn try_out(&self, identity: &Identity, trial: Trial) -> Result<Tried, Refusal> {
        let rpc = match &trial.text {
            TrialText::Message { .. } => "CheckMessages",
            TrialText::Tool { .. } => "InterceptTool",
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
        let ran = outcome.ran.iter().map(|(plugin, elapsed)| Run {
            id: plugin.to_string(),
            outcome: "",
            summary: String::new(),
            decision: Decision::Allow,
            shadow: policy.plugin_mode(plugin) == RuleMode::Shadow,
            elapsed: *elapsed,
        });
        let ran = ran.collect();
        let told = (outcome.verdict.decision, outcome.verdict.risk_score);
        let (decision, risk_score) = self.decided(&policy, told, &outcome.reported, &outcome.unjudged);
        let unjudged = outcome.unjudged.clone();
        let has_concepts = outcome.reported.iter().any(|one| *one.finding.rule_id == *RULE_ID);
        let concepts = if has_concepts { self.concepts(text, speaker) } else { Vec::new() };
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
            id: ran.interceptor.id.to_string(),
            outcome: ran.outcome.as_str(),
            summary: ran.summary.clone(),
            decision: ran.decision,
            shadow: ran.shadow,
            elapsed: ran.elapsed,
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

    async fn bundle(self, kind: v1::BundleKind, bytes: Vec<u8>) -> Result<Tried, RequestError> {
        let policy = self.snapshot.policies().get(&self.policy).cloned();
        let reviewed =
            review_bundle::try_out(self.shared, self.identity, self.snapshot, kind, &self.policy, bytes);
        let reviewed = reviewed.await?;
        let policy = policy.unwrap_or_else(|| self.snapshot.policies().default_policy().clone());
        let decision = convert::decided(reviewed.decision());
        Ok(Tried {
            decision,
            why: format!("{decision} under policy `{}`: see what the checks say", policy.name()),
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
            let mut told = convert::finding(reported);
            told.shadow &= self.mode == Mode::Policy;
            let category = Category::new(told.category.as_str());
            let (decides, changes) = (alone(policy, &told), changes(policy, role, &told, &category));
            TriedFinding { told, range, decides, changes }
        };
        reported.into_iter().map(one).collect()
    }

    fn concepts(&self, text: &str, role: Role) -> Vec<(String, f64)> {
        let scanner = self.snapshot.scanner();
        let request = Request {
            text,
            plugins: scanner.rules().plugin_bits([INJECTION]),
            role: Some(role),
            surface: Some(crate::rules::Surface::Text),
        };
        // A budget without a limit is never spent.
        let explained = scanner.explain_concepts(request, &Budget::UNLIMITED).ok().flatten();
        explained.iter().flat_map(weighed).collect()
    }
}
