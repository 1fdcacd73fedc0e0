//! The judge in this process: the engines under a snapshot of rules and policies.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::bundle_record::Reviewed;
use super::judge::{Found, Judge, JudgeError, Judged, NotJudged};
use super::stream_record::Seen;
use super::tool_record::ToolCall;
use crate::bundles::archive::FileSource;
use crate::bundles::{InlineVerdict, InspectLimits, Inspector, Terms};
use crate::decision::{BundleKind, CheckFinding, Decision, Direction, OutputStream};
use crate::grpc::intercept;
use crate::messages::{CheckOutcome, CheckRequest, Field, FieldPath, Message, MessageEngine};
use crate::monitor::{self, Attachment, Effect, Event, Ids, Limits, Plan, Session};
use crate::pb::v1;
use crate::policy::{CallerRole, DEFAULT_POLICY, Snapshot};
use crate::rules::{CountrySet, Role};
use crate::text::OffsetEncoding;
use crate::tools::ToolEngine;

/// Ids that count: nobody keeps these incidents.
struct Counted(u64);

impl Ids for Counted {
    fn next(&mut self) -> Arc<str> {
        self.0 += 1;
        self.0.to_string().into()
    }
}

/// Judges with the engines of this process.
pub struct EngineJudge<'s> {
    engine: MessageEngine,
    tools: ToolEngine,
    snapshot: &'s Snapshot,
    runtime: tokio::runtime::Runtime,
}

impl<'s> EngineJudge<'s> {
    /// A judge over `snapshot`. A figure of speed is that of scanning, so `engine` should have no cache: it would answer
    /// every repeated text for nothing.
    ///
    /// # Errors
    /// When the system refuses what a runtime needs.
    pub fn new(snapshot: &'s Snapshot, engine: MessageEngine, tools: ToolEngine) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { engine, tools, snapshot, runtime })
    }

    fn check(&self, text: &str, role: Role, redact: bool) -> Result<(CheckOutcome, Instant), JudgeError> {
        let fields = vec![Field { path: FieldPath::Text, text }];
        let messages = [Message { role, fields, media_parts: 0 }];
        let request = CheckRequest {
            messages: &messages,
            policy: "",
            caller_roles: &[CallerRole::Admin],
            tenant: "",
            plugins: &[],
            allow_list: &[],
            countries: CountrySet::EMPTY,
            direction: Direction::Input,
            encoding: OffsetEncoding::Utf8,
            redact,
            reveal: false,
            deadline: None,
            decision_id: "",
            sent: None,
        };
        let started = Instant::now();
        let outcome = self.runtime.block_on(self.engine.check(self.snapshot, request));
        outcome.map(|outcome| (outcome, started)).map_err(|error| JudgeError::Refused(error.to_string()))
    }
}

impl Judge for EngineJudge<'_> {
    fn warm(&mut self, text: &str, role: Role) -> Result<(), JudgeError> {
        self.check(text, role, false).map(drop)
    }

    fn judge(&mut self, text: &str, role: Role) -> Result<Judged, JudgeError> {
        let (outcome, started) = self.check(text, role, false)?;
        let elapsed = started.elapsed();
        let effective =
            outcome.reported.iter().map(|reported| &reported.finding).filter(|f| f.is_effective());
        let findings = effective.map(|finding| Found {
            category: finding.category.as_str().to_owned(),
            rule_id: finding.rule_id.to_string(),
            severity: finding.severity,
            path: finding.span.path.to_string(),
            start: finding.span.start,
            end: finding.span.end,
            score: finding.score,
        });
        let unjudged = outcome.unjudged.iter().map(|unjudged| NotJudged {
            plugin: unjudged.plugin.to_string(),
            reason: unjudged.reason.as_str().to_owned(),
            failed_open: unjudged.failed_open(),
        });
        Ok(Judged {
            decision: outcome.verdict.decision,
            risk_score: outcome.verdict.risk_score,
            findings: findings.collect(),
            unjudged: unjudged.collect(),
            incidents: Vec::new(),
            reviewed: None,
            elapsed,
        })
    }

    fn intercept(&mut self, call: &ToolCall) -> Result<Judged, JudgeError> {
        let request = v1::InterceptToolRequest {
            phase: v1::ToolPhase::Before.into(),
            tool_name: call.tool.clone(),
            args_json: call.args_json.clone(),
            ..Default::default()
        };
        let judge = intercept::Judge {
            engine: &self.tools,
            snapshot: self.snapshot,
            roles: &[CallerRole::Admin],
            deadline: None,
        };
        let started = Instant::now();
        let judged = self.runtime.block_on(intercept::judge_tool(judge, request));
        let elapsed = started.elapsed();
        let response = judged.map_err(|error| JudgeError::Refused(error.to_string()))?.response;
        Ok(Judged::of_wire(response.decision(), &response.findings, &response.unjudged, elapsed))
    }

    fn watch(&mut self, chunks: &mut dyn Iterator<Item = &str>) -> Result<Judged, JudgeError> {
        let refused = || JudgeError::Refused("the rules about streams are not loaded".to_owned());
        let plan = Plan::of(self.snapshot, DEFAULT_POLICY).ok_or_else(refused)?;
        let (mut effects, mut incidents, mut unjudged) = (Vec::new(), Vec::new(), Vec::new());
        let started = Instant::now();
        let attachment =
            Attachment { policy_revision: self.snapshot.revision().clone(), ..Attachment::default() };
        let mut session =
            Session::attach(attachment, plan, Limits::default(), Box::new(Counted(0)), &mut effects);
        let end = [Event::Detach { exit_code: None }, Event::Closed];
        let events =
            chunks.map(|chunk| Event::Chunk { stream: OutputStream::Stdout, data: chunk.as_bytes(), seq: 0 });
        for event in events.chain(end) {
            session.on(event, monitor::now(), &mut effects);
            for effect in effects.drain(..) {
                match effect {
                    Effect::Incident(incident) => incidents.push(Seen {
                        rule_id: incident.rule_id.to_string(),
                        stream: incident.stream.as_str().to_owned(),
                        offset: incident.offset,
                        verdict: incident
                            .verdict
                            .map_or_else(String::new, |verdict| verdict.as_str().to_owned()),
                    }),
                    Effect::Summary(summary) => {
                        unjudged.extend(summary.unjudged.iter().map(|one| NotJudged {
                            plugin: one.plugin.to_string(),
                            reason: one.reason.as_str().to_owned(),
                            failed_open: one.failed_open(),
                        }))
                    }
                    _ => {}
                }
            }
        }
        Ok(Judged::of_stream(incidents, unjudged, started.elapsed()))
    }

    fn review(&mut self, path: &Path, kind: BundleKind) -> Result<Option<Judged>, JudgeError> {
        let open = File::open(path).and_then(FileSource::new);
        let source =
            open.map_err(|error| JudgeError::Refused(format!("{} cannot be read: {error}", path.display())))?;
        let inspector = Inspector::of(self.snapshot, InspectLimits::default());
        let policy = self.snapshot.policies().default_policy();
        let terms = Terms { policy, tenant: "", now: Timestamp::now() };
        let started = Instant::now();
        let inspection = inspector.inspect_under(&source, kind, terms);
        let elapsed = started.elapsed();
        let found = |finding: &CheckFinding| Found {
            category: finding.category.clone(),
            rule_id: finding.rule_id.clone(),
            severity: finding.severity,
            path: finding.file.clone(),
            start: 0,
            end: 0,
            score: finding.severity.score(),
        };
        let checks = &inspection.checks;
        let all = [&checks.archive, &checks.manifest, &checks.static_security];
        let counted = all.iter().flat_map(|check| &check.findings).filter(|finding| finding.is_effective());
        let findings: Vec<Found> = counted.map(found).collect();
        let unjudged = inspection.unjudged.iter().map(|unjudged| NotJudged {
            plugin: unjudged.plugin.to_string(),
            reason: unjudged.reason.as_str().to_owned(),
            failed_open: unjudged.failed_open(),
        });
        Ok(Some(Judged {
            decision: match inspection.verdict() {
                InlineVerdict::Blocked => Decision::Block,
                InlineVerdict::Held => Decision::Ask,
                InlineVerdict::Passed if findings.is_empty() => Decision::Allow,
                InlineVerdict::Passed => Decision::Warn,
            },
            risk_score: findings.iter().map(|found| found.score).fold(0.0, f64::max),
            findings,
            unjudged: unjudged.collect(),
            incidents: Vec::new(),
            reviewed: Some(Reviewed::of(&inspection)),
            elapsed,
        }))
    }

    fn redact(&mut self, text: &str, role: Role) -> Result<String, JudgeError> {
        let (outcome, _) = self.check(text, role, true)?;
        Ok(outcome.redacted.into_iter().next().map_or_else(|| text.to_owned(), |field| field.text))
    }
}
