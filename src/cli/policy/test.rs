//! `policy test`: case files run against the policies.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use uuid::Uuid;

use super::cases::{self, Case, CaseMessage};
use crate::app;
use crate::cli::context::{Context, OPERATOR, snapshot};
use crate::cli::output::Style;
use crate::cli::{Exit, Failure, Output, input};
use crate::messages::{CheckRequest, Field, FieldPath, Message, MessageEngine, parse_role};
use crate::policy::{DEFAULT_POLICY, Snapshot};
use crate::rules::CountrySet;
use crate::text::OffsetEncoding;

/// Arguments of `policy test`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TestArguments {
    /// Case files and folders of them.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Folder of policy files, in place of that of the settings.
    #[arg(long, value_name = "FOLDER")]
    policy_path: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A case that did not come out as expected.
struct Failed {
    file: String,
    line: u64,
    name: String,
    /// Each with what was expected and what came.
    problems: Vec<String>,
}

/// Runs the command.
pub(super) fn run(
    arguments: &TestArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let mut settings = context.settings()?;
    if let Some(path) = &arguments.policy_path {
        settings.policy.path = Some(path.clone());
    }
    let snapshot = snapshot(&settings)?;
    let runner = Runner {
        engine: app::message_engine(&settings).map_err(Failure::configuration)?,
        snapshot: &snapshot,
        runtime: tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Failure::internal)?,
    };
    let scanner = snapshot.scanner();
    let rules = scanner.rules().rules().iter().map(|rule| &*rule.info.id);
    let rules: Vec<&str> = rules.chain(scanner.coded_rule_ids()).collect();
    let mut count = 0;
    let mut failed = Vec::new();
    for path in input::files(&arguments.paths, &["yaml", "yml"])? {
        let file = cases::read(&path, &rules)?;
        for case in &file.cases {
            count += 1;
            let policy = case.value.policy.as_ref().unwrap_or(&file.policy);
            let problems = runner.run(&case.value, policy);
            if !problems.is_empty() {
                let (file, line) = (path.display().to_string(), case.referenced.line());
                failed.push(Failed { file, line, name: case.value.name.clone(), problems });
            }
        }
    }
    report(arguments, count, &failed, output)
}

fn report(
    arguments: &TestArguments,
    count: usize,
    failed: &[Failed],
    output: &mut Output,
) -> Result<Exit, Failure> {
    let exit = if failed.is_empty() { Exit::Ok } else { Exit::Data };
    if arguments.json {
        let failures: Vec<_> = failed
            .iter()
            .map(|one| json!({ "file": one.file, "line": one.line, "name": one.name, "problems": one.problems }))
            .collect();
        output.json(&json!({ "cases": count, "failed": failed.len(), "failures": failures }))?;
        return Ok(exit);
    }
    for Failed { file, line, name, problems } in failed {
        let mark = output.styled(Style::Red, "FAILED");
        output.line(format_args!("{mark} {file}:{line}: {name}"));
        for problem in problems {
            output.line(format_args!("  {problem}"));
        }
    }
    let plural = if count == 1 { "" } else { "s" };
    let verdict = match failed.len() {
        0 => output.styled(Style::Green, "ok"),
        n => output.styled(Style::Red, format_args!("{n} failed")),
    };
    output.line(format_args!("{count} case{plural}: {verdict}"));
    Ok(exit)
}

struct Runner<'s> {
    engine: MessageEngine,
    snapshot: &'s Snapshot,
    runtime: tokio::runtime::Runtime,
}

impl Runner<'_> {
    /// What came out otherwise than expected.
    fn run(&self, case: &Case, policy: &str) -> Vec<String> {
        let messages: Result<Vec<_>, _> = case.messages.iter().map(message).collect();
        let messages = match messages {
            Ok(messages) => messages,
            Err(problem) => return vec![problem],
        };
        let request = CheckRequest {
            messages: &messages,
            policy,
            caller_roles: OPERATOR,
            tenant: &case.tenant,
            plugins: &case.plugins,
            allow_list: &[],
            countries: CountrySet::EMPTY,
            direction: case.direction,
            encoding: OffsetEncoding::Utf8,
            redact: false,
            reveal: false,
            deadline: None,
            decision_id: &Uuid::now_v7().to_string(),
            sent: None,
        };
        let outcome = match self.runtime.block_on(self.engine.check(self.snapshot, request)) {
            Ok(outcome) => outcome,
            Err(error) => return vec![format!("not judged: {error}")],
        };
        let counted: BTreeSet<&str> = outcome
            .reported
            .iter()
            .filter(|reported| reported.finding.is_effective())
            .map(|reported| &*reported.finding.rule_id)
            .collect();
        let found = if counted.is_empty() {
            "none".to_owned()
        } else {
            counted.iter().copied().collect::<Vec<_>>().join(", ")
        };
        let mut problems = Vec::new();
        let got = outcome.verdict.decision;
        if let Some(wanted) = case.expect.decision.filter(|wanted| *wanted != got) {
            let name = if policy.is_empty() { DEFAULT_POLICY } else { policy };
            let score = outcome.verdict.risk_score;
            problems
                .push(format!("decision: expected {wanted}, got {got} (policy {name}, score {score:.2})"));
        }
        for id in case.expect.rules.iter().filter(|id| !counted.contains(id.as_str())) {
            problems.push(format!("rules: expected {id}, got {found}"));
        }
        for id in case.expect.not_rules.iter().filter(|id| counted.contains(id.as_str())) {
            problems.push(format!("not_rules: expected no {id}, got {found}"));
        }
        if !problems.is_empty() {
            let unjudged = outcome.unjudged.iter();
            problems.extend(
                unjudged.map(|u| format!("unjudged: {}, {}: {}", u.plugin, u.reason.as_str(), u.detail)),
            );
        }
        problems
    }
}

fn message(message: &CaseMessage) -> Result<Message<'_>, String> {
    let role = parse_role(&message.role)?;
    let text = (!message.text.is_empty()).then_some(Field { path: FieldPath::Text, text: &message.text });
    let arguments = message.args_json.as_deref();
    let arguments = arguments.map(|text| Field { path: FieldPath::ToolArgs(0), text });
    Ok(Message { role, fields: text.into_iter().chain(arguments).collect(), media_parts: 0 })
}
