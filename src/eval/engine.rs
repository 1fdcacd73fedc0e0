//! The judge in this process: the engines under a snapshot of rules and policies.

use std::time::Instant;

use super::judge::{Found, Judge, JudgeError, Judged, NotJudged};
use super::tool_record::ToolCall;
use crate::decision::Direction;
use crate::grpc::intercept;
use crate::messages::{CheckOutcome, CheckRequest, Field, FieldPath, Message, MessageEngine};
use crate::pb::v1;
use crate::policy::{CallerRole, Snapshot};
use crate::rules::Role;
use crate::text::OffsetEncoding;
use crate::tools::ToolEngine;

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

    fn redact(&mut self, text: &str, role: Role) -> Result<String, JudgeError> {
        let (outcome, _) = self.check(text, role, true)?;
        Ok(outcome.redacted.into_iter().next().map_or_else(|| text.to_owned(), |field| field.text))
    }
}
