//! `check`: one text, judged as a message; the exit code is the decision.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use uuid::Uuid;

use super::context::{Context, OPERATOR};
use super::explain::{Explained, explain};
use super::findings::{decision_style, print_finding, print_unjudged};
use super::rules::Rules;
use super::snippet::printable;
use super::{Exit, Failure, Output, Style, input, remote};
use crate::app;
use crate::config::Settings;
use crate::grpc::convert;
use crate::messages::{CheckError, CheckRequest, parse_role};
use crate::pb::v1;
use crate::policy::Snapshot;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(super) struct CheckArguments {
    /// The text; `-` reads standard input.
    text: Option<String>,
    /// Read the text from a file; `-` reads standard input.
    #[arg(long, short, value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,
    /// Who wrote it: user, system, assistant or tool.
    #[arg(long, default_value = "user")]
    role: String,
    /// Which way it goes, seen from the agent.
    #[arg(long, value_enum, default_value = "input")]
    direction: Direction,
    /// Name of the policy [default: default].
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Folder of policy files, in place of that of the settings.
    #[arg(long, value_name = "FOLDER", conflicts_with = "server")]
    policy_path: Option<PathBuf>,
    /// Plugins to run besides those the policy requires.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    plugins: Vec<String>,
    /// Personal data to excuse, where the policy lets callers do so; may be given more than once.
    #[arg(long, value_name = "VALUE")]
    allow: Vec<String>,
    /// Countries whose personal data is looked for, where the policy lets callers narrow them.
    #[arg(long, value_name = "CODE,…", value_delimiter = ',')]
    countries: Vec<String>,
    /// Also print the text with credentials and personal data replaced.
    #[arg(long)]
    redact: bool,
    /// Show matched text in the JSON, where the policy allows it.
    #[arg(long)]
    reveal: bool,
    /// Ask a running server, such as http://127.0.0.1:50051.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Also tell why: each finding's rule, layers and validators, what it decides alone and what would have changed it,
    /// and the concepts of injection that were weighed. By the rules of this process.
    #[arg(long, conflicts_with = "server")]
    explain: bool,
    /// Print the CheckMessagesResponse as JSON.
    #[arg(long)]
    json: bool,
}

/// Which way a text goes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Direction {
    /// Into the model.
    Input,
    /// Out of the model.
    Output,
}

/// Runs the command.
pub(super) fn run(
    arguments: &CheckArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    parse_role(&arguments.role).map_err(|error| Failure::usage(format_args!("--role: {error}")))?;
    let text = input::text(arguments.text.as_deref(), arguments.file.as_deref())?;
    let request = request(arguments, text.clone());
    let (response, explained) = match &arguments.server {
        Some(url) => (remote::connect(url, context)?.check(request)?, None),
        None => check_here(arguments, context, request)?,
    };
    if arguments.json {
        let mut answer = serde_json::to_value(&response).map_err(Failure::internal)?;
        if let Some(explained) = &explained {
            answer["explanation"] = explained.json();
        }
        output.json(&answer)?;
    } else {
        print(&response, &text, output);
        if let Some(explained) = &explained {
            explained.print(output);
        }
    }
    Ok(Exit::Decided(remote::decision_of(response.decision())))
}

fn request(arguments: &CheckArguments, text: String) -> v1::CheckMessagesRequest {
    let direction = match arguments.direction {
        Direction::Input => v1::Direction::Input,
        Direction::Output => v1::Direction::Output,
    };
    v1::CheckMessagesRequest {
        messages: vec![v1::Message {
            role: arguments.role.clone(),
            content: Some(v1::message::Content::Text(text)),
            ..Default::default()
        }],
        policy: arguments.policy.clone().unwrap_or_default(),
        offset_encoding: v1::OffsetEncoding::Utf8.into(),
        redact: arguments.redact,
        reveal_matches: arguments.reveal,
        plugins: arguments.plugins.clone(),
        allow_list: arguments.allow.clone(),
        countries: arguments.countries.clone(),
        direction: direction.into(),
        ..Default::default()
    }
}

/// The answer of the engine of this process, and why, when that was asked for.
fn check_here(
    arguments: &CheckArguments,
    context: &Context,
    request: v1::CheckMessagesRequest,
) -> Result<(v1::CheckMessagesResponse, Option<Explained>), Failure> {
    let mut settings = context.settings()?;
    if let Some(path) = &arguments.policy_path {
        settings.policy.path = Some(path.clone());
    }
    let rules = Rules::of(settings)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::internal)?;
    let asked = arguments.explain.then(|| request.clone());
    let response = check_with(&rules.settings, &rules.snapshot, &runtime, request)?;
    let Some(asked) = asked else { return Ok((response, None)) };
    let messages = convert::conversation(&asked).map_err(Failure::data)?;
    let policies = rules.snapshot.policies();
    let named = if asked.policy.is_empty() { None } else { policies.get(&asked.policy) };
    let excuses = &asked.allow_list;
    let policy = named.unwrap_or(policies.default_policy());
    let explained = explain(&rules, policy, &messages, excuses, &response);
    Ok((response, Some(explained)))
}

/// The answer of the engine of this process under `snapshot`.
pub(super) fn check_with(
    settings: &Settings,
    snapshot: &Snapshot,
    runtime: &tokio::runtime::Runtime,
    request: v1::CheckMessagesRequest,
) -> Result<v1::CheckMessagesResponse, Failure> {
    let engine = app::message_engine(settings).map_err(Failure::configuration)?;
    let messages = convert::conversation(&request).map_err(Failure::data)?;
    let decision_id = Uuid::now_v7().to_string();
    let wanted = CheckRequest {
        messages: &messages,
        policy: &request.policy,
        caller_roles: OPERATOR,
        tenant: "",
        plugins: &request.plugins,
        allow_list: convert::allow_list(&request.allow_list).map_err(Failure::data)?,
        countries: convert::countries(&request.countries).map_err(Failure::data)?,
        direction: convert::direction(request.direction).map_err(Failure::internal)?,
        encoding: convert::offset_encoding(request.offset_encoding).map_err(Failure::internal)?,
        redact: request.redact,
        reveal: request.reveal_matches,
        deadline: None,
        decision_id: &decision_id,
        sent: Some(&request),
    };
    let outcome = runtime.block_on(engine.check(snapshot, wanted)).map_err(failure_of)?;
    let redacted = request.redact.then(|| request.messages.clone());
    Ok(convert::response(outcome, redacted, decision_id, snapshot.revision()))
}

/// The exit code over gRPC is the same: a refused argument is malformed data there.
fn failure_of(error: CheckError) -> Failure {
    match error {
        CheckError::DeadlineExceeded => Failure::internal(error),
        _ => Failure::data(error),
    }
}

fn print(response: &v1::CheckMessagesResponse, text: &str, output: &mut Output) {
    let decision = remote::decision_of(response.decision());
    let risk = response.risk_level().as_str_name().trim_start_matches("RISK_LEVEL_").to_ascii_lowercase();
    let headline = output.styled(decision_style(decision), decision.as_str());
    output.line(format_args!("{headline}  risk {risk} ({:.2})", response.risk_score));
    for finding in &response.findings {
        let offset = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let span = finding.span.clone().unwrap_or_default();
        print_finding(finding, text, offset(span.start)..offset(span.end), output);
    }
    for unjudged in &response.unjudged {
        print_unjudged(unjudged, output);
    }
    for message in &response.redacted_messages {
        if let Some(v1::message::Content::Text(redacted)) = &message.content {
            let heading = output.styled(Style::Bold, "redacted:");
            output.line(format_args!("\n{heading}\n{}", printable(redacted)));
        }
    }
}
