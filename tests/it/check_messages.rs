//! `tests/cases/check_messages/*.toml`: requests and wanted answers as data, asked of a real server.
//!
//! One file a topic. Each `[[case]]` has `about`, a `request` in the JSON form of the contract, and what is wanted of
//! the answer; unknown keys are refused, so that a misspelt expectation fails instead of passing. Policies that a
//! request may name lie in `tests/cases/policies`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use portcullis::pb::v1;
use serde::Deserialize;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::server::{Server, Setup};

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
    code, encodings, harmless, injection, layers, modes, offsets, pii, plugins, redaction, refused, roles, secrets,
    structure, suppressions, unjudged,
}

#[test]
fn every_file_is_run() {
    let names = fs::read_dir(folder("check_messages")).expect("the folder is there").map(|entry| {
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
    request: v1::CheckMessagesRequest,
    want: Want,
}

/// What is not named here is not looked at, but for `unjudged`, which must be empty unless it is named.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Want {
    decision: Option<String>,
    risk_level: Option<String>,
    risk_score: Option<f64>,
    /// Exactly these, in any order.
    findings: Option<Vec<WantFinding>>,
    /// With `findings`: there may be others beside them. For texts that several rules see from different sides.
    #[serde(default)]
    others: bool,
    #[serde(default)]
    no_findings: bool,
    redacted: Option<Vec<v1::Message>>,
    #[serde(default)]
    unjudged: Vec<WantUnjudged>,
    error: Option<WantError>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WantFinding {
    rule: Option<String>,
    plugin: Option<String>,
    /// This category or one below it.
    category: Option<String>,
    severity: Option<String>,
    #[serde(default)]
    message: u32,
    path: Option<String>,
    /// In the unit of the request.
    span: Option<(u64, u64)>,
    /// What the span cuts out of the text as sent.
    text: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    matched_text: Option<String>,
    /// All of these, among others.
    #[serde(default)]
    evasions: Vec<String>,
    #[serde(default)]
    shadow: bool,
    #[serde(default)]
    suppressed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WantUnjudged {
    plugin: String,
    reason: String,
    #[serde(default)]
    failed_open: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WantError {
    code: String,
    field: Option<String>,
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name)
}

async fn check_file(topic: &str) {
    let path = folder("check_messages").join(format!("{topic}.toml"));
    let text = fs::read_to_string(&path).expect("the case file is there");
    let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{topic}.toml: {error}"));
    let server = server();
    let mut failures = Vec::new();
    let mut client = server.client().await;
    for case in &file.case {
        let answer = client.check_messages(case.request.clone()).await;
        let wrong = match (answer, &case.want.error) {
            (Ok(answer), None) => case.check(answer.get_ref()),
            (Err(status), Some(wanted)) => wanted.check(&status),
            (Ok(answer), Some(wanted)) => {
                vec![format!("wanted the error {wanted:?}, got {:?}", answer.get_ref().decision())]
            }
            (Err(status), None) => vec![format!("refused: {status:?}")],
        };
        failures.extend(wrong.into_iter().map(|wrong| format!("{topic}: {}\n    {wrong}", case.about)));
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), file.case.len(), failures.join("\n"));
}

/// The server of all topics. It has the policies of the test and is otherwise as installed.
fn server() -> std::sync::Arc<Server> {
    use std::sync::{Arc, Mutex, PoisonError, Weak};
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let settings = format!("policy:\n  path: {}\n", folder("policies").display());
        let server = Arc::new(Setup::new().settings(&settings).start());
        *shared = Arc::downgrade(&server);
        server
    })
}

impl Case {
    /// Everything that is not as wanted.
    fn check(&self, answer: &v1::CheckMessagesResponse) -> Vec<String> {
        let want = &self.want;
        let mut wrong = Vec::new();
        let mut same = |what: &str, got: &str, wanted: &Option<String>| {
            if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != got) {
                wrong.push(format!("{what} is {got}, wanted {wanted}"));
            }
        };
        same("decision", unprefixed(answer.decision().as_str_name(), "DECISION_"), &want.decision);
        same("risk level", unprefixed(answer.risk_level().as_str_name(), "RISK_LEVEL_"), &want.risk_level);
        if let Some(score) = want.risk_score.filter(|score| (score - answer.risk_score).abs() > 1e-9) {
            wrong.push(format!("risk score is {}, wanted {score}", answer.risk_score));
        }
        if want.no_findings && !answer.findings.is_empty() {
            wrong.push(format!("wanted no findings, got {}", self.show_all(&answer.findings)));
        }
        if let Some(findings) = &want.findings {
            wrong.extend(self.check_findings(findings, &answer.findings));
        }
        if let Some(redacted) = want.redacted.as_ref().filter(|wanted| **wanted != answer.redacted_messages) {
            wrong.push(format!("redacted to {:?}, wanted {redacted:?}", answer.redacted_messages));
        }
        wrong.extend(check_unjudged(&want.unjudged, &answer.unjudged));
        if answer.decision_id.is_empty() || answer.policy_revision.is_empty() || answer.error.is_some() {
            wrong.push("an answer has a decision id, a revision and no error".to_owned());
        }
        wrong
    }

    /// Pairs wanted and got one to one, in order of the wanted ones.
    fn check_findings(&self, wanted: &[WantFinding], got: &[v1::Finding]) -> Option<String> {
        let mut left: Vec<&v1::Finding> = got.iter().collect();
        let mut missing = Vec::new();
        for want in wanted {
            match left.iter().position(|finding| self.fits(want, finding)) {
                Some(at) => {
                    left.remove(at);
                }
                None => missing.push(want),
            }
        }
        let surplus = if self.want.others { 0 } else { left.len() };
        (!missing.is_empty() || surplus > 0)
            .then(|| format!("findings are {}; missing {missing:?}, surplus {surplus}", self.show_all(got)))
    }

    fn fits(&self, want: &WantFinding, got: &v1::Finding) -> bool {
        let Some(span) = &got.span else { return false };
        let severity = unprefixed(got.severity().as_str_name(), "SEVERITY_");
        let is_within = |category: &String| {
            got.category
                .strip_prefix(category.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        want.rule.as_ref().is_none_or(|rule| *rule == got.rule_id)
            && want.plugin.as_ref().is_none_or(|plugin| *plugin == got.plugin)
            && want.category.as_ref().is_none_or(is_within)
            && want.severity.as_ref().is_none_or(|wanted| wanted == severity)
            && want.message == span.message_index
            && want.path.as_deref().unwrap_or("/text") == span.path
            && want.span.is_none_or(|wanted| wanted == (span.start, span.end))
            && want.text.as_ref().is_none_or(|text| Some(text) == self.cut(span).as_ref())
            && want.line.is_none_or(|line| line == span.line)
            && want.column.is_none_or(|column| column == span.column)
            && want.matched_text.as_ref().is_none_or(|text| *text == got.matched_text)
            && want.evasions.iter().all(|evasion| got.evasions.contains(evasion))
            && want.shadow == got.shadow
            && want.suppressed == got.suppressed
    }

    /// What a span means in the text as sent, counted as a client of that unit counts.
    fn cut(&self, span: &v1::Span) -> Option<String> {
        let message = self.request.messages.get(span.message_index as usize)?;
        let text = field(message, &span.path)?;
        let range = usize::try_from(span.start).ok()?..usize::try_from(span.end).ok()?;
        match self.request.offset_encoding() {
            v1::OffsetEncoding::Utf16 => {
                let units: Vec<u16> = text.encode_utf16().collect();
                String::from_utf16(units.get(range)?).ok()
            }
            v1::OffsetEncoding::Utf32 => {
                let points: Vec<char> = text.chars().collect();
                Some(points.get(range)?.iter().collect())
            }
            _ => text.get(range).map(str::to_owned),
        }
    }

    fn show_all(&self, findings: &[v1::Finding]) -> String {
        let shown = findings.iter().map(|finding| {
            let span = finding.span.clone().unwrap_or_default();
            let cut = self.cut(&span);
            let at = format!("{}{} {}..{}", span.message_index, span.path, span.start, span.end);
            let flags = if finding.shadow { " shadow" } else { "" };
            let severity = unprefixed(finding.severity().as_str_name(), "SEVERITY_");
            format!("{} {severity} at {at}{flags} {cut:?} {:?}", finding.rule_id, finding.evasions)
        });
        format!("[{}]", shown.collect::<Vec<_>>().join(", "))
    }
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

/// The text at a span's path.
fn field<'m>(message: &'m v1::Message, path: &str) -> Option<&'m str> {
    let mut steps = path.strip_prefix('/')?.split('/');
    let first = steps.next()?;
    let mut index = || steps.next().and_then(|step| step.parse::<usize>().ok());
    match (first, &message.content) {
        ("text", Some(v1::message::Content::Text(text))) => Some(text),
        ("name", _) => Some(&message.name),
        ("tool_calls", _) => message.tool_calls.get(index()?).map(|call| call.args_json.as_str()),
        ("parts", Some(v1::message::Content::Parts(parts))) => {
            match parts.parts.get(index()?)?.part.as_ref()? {
                v1::part::Part::Text(text) => Some(text),
                v1::part::Part::Json(json) => Some(json),
                v1::part::Part::Media(media) => Some(&media.uri),
            }
        }
        _ => None,
    }
}

fn check_unjudged(wanted: &[WantUnjudged], got: &[v1::Unjudged]) -> Option<String> {
    let fits = |want: &WantUnjudged, got: &v1::Unjudged| {
        want.plugin == got.plugin && want.reason == got.reason && want.failed_open == got.failed_open
    };
    let is_same =
        wanted.len() == got.len() && wanted.iter().all(|want| got.iter().any(|got| fits(want, got)));
    (!is_same).then(|| format!("unjudged is {got:?}, wanted {wanted:?}"))
}

fn unprefixed<'n>(name: &'n str, prefix: &str) -> &'n str {
    name.strip_prefix(prefix).unwrap_or(name)
}

/// The name of a code as the gRPC specification writes it.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
