//! `tests/cases/intercept_tool/*.toml`: requests and wanted answers as data, asked of a real server. The clients in
//! Python and TypeScript ask the same.
//!
//! One file a topic. Each `[[case]]` has `about`, a `request` in the JSON form of the contract, the `rpc` where it is
//! another than `InterceptTool`, and what is wanted of the answer: `decision`, `error`, or any field by its name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use portcullis::pb::v1;
use serde::Deserialize;
use serde_json::Value;
use tonic::Status;
use tonic_types::StatusExt as _;

use super::check_messages::code_name;
use super::server::{Client, Server, Setup};

/// One test a file.
macro_rules! topics {
    ($($topic:ident),+ $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $topic() {
                check_file(stringify!($topic)).await;
            }
        )+

        const TOPICS: &[&str] = &[$(stringify!($topic)),+];
    };
}

topics! {
    arguments, bypasses, guarded_commands, guarded_paths, harmless_commands, harmless_paths, interceptors,
    messages_and_params, redaction, refused,
}

#[test]
fn every_file_is_run() {
    let names = fs::read_dir(cases().join("intercept_tool")).expect("the folder is there").map(|entry| {
        let path = entry.expect("the folder can be listed").path();
        path.file_stem().and_then(|stem| stem.to_str()).expect("names are ASCII").to_owned()
    });
    assert_eq!(names.collect::<BTreeSet<_>>(), TOPICS.iter().map(|topic| (*topic).to_owned()).collect());
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    #[serde(default)]
    rpc: Rpc,
    request: Value,
    want: Want,
}

#[derive(Clone, Copy, Default, Deserialize)]
enum Rpc {
    #[default]
    #[serde(rename = "InterceptTool")]
    Tool,
    #[serde(rename = "InterceptMessage")]
    Message,
    #[serde(rename = "InterceptParams")]
    Params,
}

/// What is not named here is not looked at, but for what an allowed call must not have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Want {
    decision: Option<String>,
    error: Option<WantError>,
    /// Rule ids or categories, each of which some finding has.
    #[serde(default)]
    findings: Vec<String>,
    tool_name: Option<String>,
    args_json: Option<String>,
    result_json: Option<String>,
    metadata_json: Option<String>,
    message: Option<String>,
    block_reason: Option<String>,
    blocked_result_json: Option<String>,
    mutated: Option<bool>,
    params: Option<Value>,
    changed_fields: Option<Vec<String>>,
    /// Ids of interceptors with their outcomes, such as `acme:x MODIFIED`, in order; all of them.
    events: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WantError {
    code: String,
    field: Option<String>,
}

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

async fn check_file(topic: &str) {
    let path = cases().join("intercept_tool").join(format!("{topic}.toml"));
    let text = fs::read_to_string(&path).expect("the case file is there");
    let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{topic}.toml: {error}"));
    let server = server();
    let mut client = server.client().await;
    let mut failures = Vec::new();
    for case in &file.case {
        let wrong = match (case.ask(&mut client).await, &case.want.error) {
            (Ok(answer), None) => case.want.check(&answer),
            (Err(status), Some(wanted)) => wanted.check(&status),
            (Ok(answer), Some(wanted)) => vec![format!("wanted {wanted:?}, got {}", answer["decision"])],
            (Err(status), None) => vec![format!("refused: {status:?}")],
        };
        failures.extend(wrong.into_iter().map(|wrong| format!("{topic}: {}\n    {wrong}", case.about)));
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), file.case.len(), failures.join("\n"));
}

/// The server of all topics: as installed, with the policies of the test.
fn server() -> Arc<Server> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let settings = format!("policy:\n  path: {}\n", cases().join("policies").display());
        let server = Arc::new(Setup::new().settings(&settings).start());
        *shared = Arc::downgrade(&server);
        server
    })
}

impl Case {
    /// The answer in the JSON form of the contract.
    async fn ask(&self, client: &mut Client) -> Result<Value, Status> {
        let request = self.request.clone();
        let wrong = |error: serde_json::Error| -> ! { panic!("{}: {error}", self.about) };
        let json = match self.rpc {
            Rpc::Tool => {
                let request: v1::InterceptToolRequest =
                    serde_json::from_value(request).unwrap_or_else(|error| wrong(error));
                serde_json::to_value(client.intercept_tool(request).await?.into_inner())
            }
            Rpc::Message => {
                let request: v1::InterceptMessageRequest =
                    serde_json::from_value(request).unwrap_or_else(|error| wrong(error));
                serde_json::to_value(client.intercept_message(request).await?.into_inner())
            }
            Rpc::Params => {
                let request: v1::InterceptParamsRequest =
                    serde_json::from_value(request).unwrap_or_else(|error| wrong(error));
                serde_json::to_value(client.intercept_params(request).await?.into_inner())
            }
        };
        Ok(json.unwrap_or_else(|error| wrong(error)))
    }
}

impl Want {
    /// Everything that is not as wanted.
    fn check(&self, answer: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
        let decision = text("decision").trim_start_matches("DECISION_").to_owned();
        for (field, wanted, got) in [
            ("decision", &self.decision, decision.clone()),
            ("tool_name", &self.tool_name, text("toolName")),
            ("args_json", &self.args_json, text("argsJson")),
            ("result_json", &self.result_json, text("resultJson")),
            ("metadata_json", &self.metadata_json, text("metadataJson")),
            ("message", &self.message, text("message")),
            ("block_reason", &self.block_reason, text("blockReason")),
            ("blocked_result_json", &self.blocked_result_json, text("blockedResultJson")),
        ] {
            if let Some(wanted) = wanted.as_ref().filter(|wanted| **wanted != got) {
                wrong.push(format!("{field} is {got:?}, wanted {wanted:?}; {}", told(answer)));
            }
        }
        let mutated = answer["mutated"].as_bool().unwrap_or_default();
        if self.mutated.is_some_and(|wanted| wanted != mutated) {
            wrong.push(format!("mutated is {mutated}"));
        }
        if let Some(params) = self.params.as_ref().filter(|wanted| **wanted != answer["params"]) {
            wrong.push(format!("params are {}, wanted {params}", answer["params"]));
        }
        if let Some(fields) = &self.changed_fields {
            let got = strings(&answer["changedFields"]);
            if *fields != got {
                wrong.push(format!("changed fields are {got:?}, wanted {fields:?}"));
            }
        }
        for wanted in &self.findings {
            let found = answer["findings"].as_array().into_iter().flatten();
            let mut names =
                found.flat_map(|one| [&one["ruleId"], &one["category"]]).filter_map(Value::as_str);
            if !names.any(|name| name == wanted || name.starts_with(&format!("{wanted}."))) {
                wrong.push(format!("no finding {wanted}; {}", told(answer)));
            }
        }
        if let Some(events) = &self.events {
            let event = |one: &Value| {
                let outcome = one["outcome"].as_str().unwrap_or_default();
                let id = one["interceptorId"].as_str().unwrap_or_default();
                format!("{id} {}", outcome.trim_start_matches("INTERCEPTOR_OUTCOME_"))
            };
            let got: Vec<String> = answer["events"].as_array().into_iter().flatten().map(event).collect();
            if *events != got {
                wrong.push(format!("events are {got:?}, wanted {events:?}"));
            }
        }
        if self.decision.as_deref() == Some("ALLOW") && decision == "ALLOW" && answer["unjudged"].is_array() {
            wrong.push(format!("something was not judged: {}", answer["unjudged"]));
        }
        let is_stopped = matches!(decision.as_str(), "BLOCK" | "ASK");
        if is_stopped == text("blockReason").is_empty() {
            wrong.push(format!("a reason goes with BLOCK and ASK: {decision}, {:?}", text("blockReason")));
        }
        if text("decisionId").is_empty() || text("policyRevision").is_empty() {
            wrong.push("an answer has a decision id and a revision".to_owned());
        }
        wrong
    }
}

/// What an answer says about itself, for whoever reads a failure.
fn told(answer: &Value) -> String {
    let rules = answer["findings"].as_array().into_iter().flatten().map(|one| one["ruleId"].to_string());
    let summary = BTreeMap::from([
        ("reason", answer["blockReason"].to_string()),
        ("rules", rules.collect::<Vec<_>>().join(" ")),
        ("unjudged", answer["unjudged"].to_string()),
    ]);
    format!("{summary:?}")
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

impl WantError {
    fn check(&self, status: &Status) -> Vec<String> {
        let mut wrong = Vec::new();
        let code = code_name(status.code());
        if code != self.code {
            wrong.push(format!("refused with {code} `{}`, wanted {}", status.message(), self.code));
        }
        if let Some(field) = &self.field {
            let violations = status.get_details_bad_request().map(|details| details.field_violations);
            let fields: Vec<String> =
                violations.into_iter().flatten().map(|violation| violation.field).collect();
            if fields != [field.as_str()] {
                wrong.push(format!("names the fields {fields:?}, wanted {field}"));
            }
        }
        wrong
    }
}
