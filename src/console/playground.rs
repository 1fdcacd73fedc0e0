//! Trying out what would be decided about a text, a command, a path, a tool call or a bundle. Nothing of it is kept.

use std::collections::HashSet;

use askama::Template;
use axum::extract::{FromRequest as _, FromRequestParts as _, Multipart, Request, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::decisions::{Ran, words};
use super::filters;
use super::form::{self, Fields};
use super::marks::{Mark, marks};
use super::scanned::{Scanned, Told};
use super::shell::Shell;
use super::submissions::{Check, checks_of};
use super::view;
use super::visitor::Visitor;
use super::{Console, answer};
use crate::grpc::{Refusal, Trial, TrialMode, TrialText, Tried};
use crate::pb::v1;
use crate::policy::CallerRole;

/// Where the page is.
pub(super) const PLACE: &str = "/console/playground";

/// Largest form, its file included, in bytes.
pub(super) const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Findings that are shown.
const FINDINGS_MAX: usize = 100;

const KINDS: [(&str, &str); 5] = [
    ("text", "Text of a message"),
    ("command", "Shell command"),
    ("path", "Path that is written"),
    ("tool", "Tool call"),
    ("bundle", "Bundle (ZIP)"),
];
const ROLES: [&str; 4] = ["user", "tool", "assistant", "system"];
const UNITS: [(&str, &str); 3] =
    [("utf8", "UTF-8 bytes"), ("utf16", "UTF-16 units (JavaScript, Java)"), ("utf32", "characters (Python)")];
const MODES: [(&str, &str); 2] =
    [("policy", "as the policy says"), ("enforce", "shadow rules enforced, too")];
const BUNDLE_KINDS: [(&str, &str); 3] = [("skill", "Skill"), ("plugin", "Plugin"), ("agent", "Agent")];

#[derive(Template)]
#[template(path = "playground.html")]
struct Page {
    shell: Shell,
    kinds: Vec<(&'static str, &'static str, bool)>,
    roles: Vec<(&'static str, bool)>,
    units: Vec<(&'static str, &'static str, bool)>,
    modes: Vec<(&'static str, &'static str, bool)>,
    bundle_kinds: Vec<(&'static str, &'static str, bool)>,
    policies: Vec<(String, bool)>,
    text: String,
    tool: String,
    error: String,
    result: Option<Shown>,
}

struct Shown {
    decision: String,
    why: String,
    score: String,
    policy: String,
    revision: String,
    elapsed: String,
    unit: &'static str,
    marks: Vec<Mark>,
    findings: Vec<Finding>,
    more: usize,
    ran: Vec<Ran>,
    unjudged: Vec<(String, String, String)>,
    concepts: Vec<(String, String)>,
    words: Vec<(String, String)>,
    bundle: Option<Bundle>,
}

struct Finding {
    rule_href: String,
    rule_id: String,
    category: String,
    severity: String,
    score: String,
    description: String,
    recommendation: String,
    place: String,
    layers: String,
    mode: Option<&'static str>,
    decides: String,
    changes: Vec<String>,
}

struct Bundle {
    status: String,
    class: String,
    checks: Vec<Check>,
    scanned: Scanned,
}

/// What a form asks for.
#[derive(Default)]
struct Asked {
    fields: Fields,
    file: Vec<u8>,
}

/// The page with nothing to try; the address may choose what stands in the form, but for a text, which addresses must not
/// hold as they are kept in logs and histories.
pub(super) async fn page(visitor: Visitor) -> Response {
    let mut asked = Asked::default();
    for name in ["kind", "role", "tool", "policy", "mode", "offsets"] {
        asked.fields.push(name.to_owned(), visitor.query.one(name).to_owned());
    }
    let made = made(&visitor, &asked, None).await;
    visitor.show(made)
}

/// Judges what a form brings.
pub(super) async fn judge(State(console): State<Console>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let visitor = match Visitor::from_request_parts(&mut parts, &console).await {
        Ok(visitor) => visitor,
        Err(refused) => return refused,
    };
    let headers = parts.headers.clone();
    let asked = if form::is_form(&headers) {
        let bytes = form::bytes(body, BODY_BYTES_MAX).await;
        bytes.map(|bytes| Asked { fields: Fields::parse(&bytes), file: Vec::new() })
    } else {
        parted(Request::from_parts(parts, body)).await
    };
    let Some(asked) = asked else {
        let message = "This is not the form of this page, or it is larger than 10 MiB.";
        let shell = Some(visitor.shell(PLACE));
        let advice =
            "Try something of at most 10 MiB; larger bundles can be checked with `portcullis review`.";
        return answer::problem(shell, StatusCode::PAYLOAD_TOO_LARGE, "Not understood", message, advice);
    };
    if let Err(refused) = visitor.check(&headers, asked.fields.one("csrf")) {
        return *refused;
    }
    let tried = match trial(&asked, first_kind(&visitor)) {
        Some(trial) => Some(visitor.calls().try_out(&visitor.identity, trial).await),
        None => None,
    };
    let made = made(&visitor, &asked, tried).await;
    visitor.show(made)
}

/// The fields of a form with a file.
async fn parted(request: Request) -> Option<Asked> {
    let mut parts = Multipart::from_request(request, &()).await.ok()?;
    let mut asked = Asked::default();
    let reading = async {
        while let Some(field) = parts.next_field().await.ok()? {
            let name = field.name()?.to_owned();
            if name == "file" {
                asked.file = field.bytes().await.ok()?.into();
            } else {
                asked.fields.push(name, field.text().await.ok()?);
            }
        }
        Some(())
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), reading).await.ok()??;
    Some(asked)
}

/// Whether a visitor may try such a thing.
pub(super) fn is_offered(visitor: &Visitor, kind: &str) -> bool {
    match kind {
        "bundle" => visitor.identity.has(CallerRole::Submitter),
        _ => visitor.identity.has(CallerRole::Agent),
    }
}

/// What is tried where nothing is chosen: the first of what is offered.
fn first_kind(visitor: &Visitor) -> &'static str {
    KINDS.iter().map(|(kind, _)| *kind).find(|kind| is_offered(visitor, kind)).unwrap_or_default()
}

/// What is to be tried; none while there is nothing.
fn trial(asked: &Asked, default_kind: &str) -> Option<Trial> {
    let fields = &asked.fields;
    let text = fields.one("text").replace("\r\n", "\n");
    let is_empty = text.is_empty();
    let kind = match fields.one("kind") {
        "" => default_kind,
        kind => kind,
    };
    let text = match kind {
        "bundle" => {
            let kind = match fields.one("bundle_kind") {
                "plugin" => v1::BundleKind::Plugin,
                "agent" => v1::BundleKind::Agent,
                _ => v1::BundleKind::Skill,
            };
            (!asked.file.is_empty()).then(|| TrialText::Bundle { kind, bytes: asked.file.clone() })
        }
        _ if is_empty => None,
        "command" => Some(TrialText::Argument { tool: "exec", key: "command", text }),
        "path" => Some(TrialText::Argument { tool: "write", key: "path", text }),
        "tool" => Some(TrialText::Tool { name: fields.one("tool").trim().to_owned(), args_json: text }),
        _ => {
            let role = ROLES.into_iter().find(|role| *role == fields.one("role")).unwrap_or("user");
            Some(TrialText::Message { role: role.to_owned(), text })
        }
    }?;
    let unit = match fields.one("offsets") {
        "utf16" => v1::OffsetEncoding::Utf16,
        "utf32" => v1::OffsetEncoding::Utf32,
        _ => v1::OffsetEncoding::Utf8,
    };
    let mode = if fields.one("mode") == "enforce" { TrialMode::Enforce } else { TrialMode::Policy };
    Some(Trial { text, policy: fields.one("policy").to_owned(), unit, mode })
}

async fn made(
    visitor: &Visitor,
    asked: &Asked,
    tried: Option<Result<Tried, Refusal>>,
) -> Result<Response, Refusal> {
    let fields = &asked.fields;
    let policies: v1::GetPolicyResponse =
        visitor.call("PolicyService/GetPolicy", &v1::GetPolicyRequest::default()).await?;
    let chosen = |name: &str, value: &str, default: &str| {
        let given = fields.one(name);
        (if given.is_empty() { default } else { given }) == value
    };
    let kinds = KINDS.into_iter().filter(|(kind, _)| is_offered(visitor, kind));
    let default_kind = first_kind(visitor);
    let unit =
        UNITS.iter().find(|(unit, _)| chosen("offsets", unit, "utf8")).map_or("UTF-8 bytes", |unit| unit.1);
    let size = fields.one("text").len();
    let mut status = StatusCode::OK;
    let (result, error) = match tried {
        None => (None, String::new()),
        Some(Ok(tried)) => (Some(Shown::of(visitor, &tried, unit, asked).await), String::new()),
        Some(Err(refusal)) => {
            // A script shows what comes with a good status alone.
            if !visitor.is_fragment {
                status = match size {
                    size if size > visitor.calls().request_bytes_max() => StatusCode::PAYLOAD_TOO_LARGE,
                    _ => answer::status_of(refusal.code),
                };
            }
            (None, refusal.message)
        }
    };
    let named = fields.one("policy");
    let default = if named.is_empty() { policies.name.as_str() } else { named };
    let page = Page {
        shell: visitor.shell(PLACE),
        kinds: kinds.map(|(kind, label)| (kind, label, chosen("kind", kind, default_kind))).collect(),
        roles: ROLES.map(|role| (role, chosen("role", role, "user"))).into(),
        units: UNITS.map(|(unit, label)| (unit, label, chosen("offsets", unit, "utf8"))).into(),
        modes: MODES.map(|(mode, label)| (mode, label, chosen("mode", mode, "policy"))).into(),
        bundle_kinds: BUNDLE_KINDS
            .map(|(kind, label)| (kind, label, chosen("bundle_kind", kind, "skill")))
            .into(),
        policies: policies.names.iter().map(|name| (name.clone(), name == default)).collect(),
        text: fields.one("text").to_owned(),
        tool: fields.one("tool").to_owned(),
        error,
        result,
    };
    Ok(answer::page(status, &page))
}

impl Shown {
    async fn of(visitor: &Visitor, tried: &Tried, unit: &'static str, asked: &Asked) -> Self {
        let known = &visitor.calls().rule_ids();
        let found: Vec<_> = tried
            .findings
            .iter()
            .map(|one| (one.range.clone(), view::severity_of(one.told.severity()), one.told.rule_id.as_str()))
            .collect();
        Self {
            decision: words(tried.decision),
            why: tried.why.clone(),
            score: if tried.bundle.is_some() { String::new() } else { format!("{:.2}", tried.risk_score) },
            policy: tried.policy.clone(),
            revision: tried.revision.clone(),
            elapsed: view::seconds_words(tried.elapsed.as_secs_f64()),
            unit,
            marks: if found.is_empty() { Vec::new() } else { marks(&tried.text, &found) },
            findings: tried.findings.iter().take(FINDINGS_MAX).map(|one| Finding::of(one, known)).collect(),
            more: tried.findings.len().saturating_sub(FINDINGS_MAX),
            ran: Ran::all(&tried.ran),
            unjudged: tried
                .unjudged
                .iter()
                .map(|one| (one.plugin.to_string(), one.reason.as_str().to_owned(), one.detail.clone()))
                .collect(),
            concepts: view::with_odds(&tried.concepts),
            words: view::with_odds(&tried.words),
            bundle: match &tried.bundle {
                Some(reviewed) => Some(Bundle::of(visitor, reviewed, asked.file.clone(), known).await),
                None => None,
            },
        }
    }
}

impl Finding {
    fn of(one: &crate::grpc::TriedFinding, known: &HashSet<String>) -> Self {
        let told = &one.told;
        let href = || format!("{}/{}", super::rules::PLACE, view::segment(&told.rule_id));
        let span = told.span.clone().unwrap_or_default();
        Self {
            rule_href: if known.contains(&told.rule_id) { href() } else { String::new() },
            rule_id: told.rule_id.clone(),
            category: told.category.clone(),
            severity: view::severity(told.severity),
            score: format!("{:.2}", told.score),
            description: told.description.clone(),
            recommendation: told.recommendation.clone(),
            place: format!("{} to {}, line {}, column {}", span.start, span.end, span.line, span.column),
            layers: told.evasions.join(", "),
            mode: match (told.suppressed, told.shadow) {
                (true, _) => Some("suppressed"),
                (false, true) => Some("shadow"),
                (false, false) => None,
            },
            decides: words(one.decides),
            changes: one.changes.clone(),
        }
    }
}

impl Bundle {
    async fn of(
        visitor: &Visitor,
        reviewed: &v1::ReviewBundleResponse,
        archive: Vec<u8>,
        known: &HashSet<String>,
    ) -> Self {
        let status = view::status(reviewed.status);
        let told = Told::of(reviewed.checks.as_ref());
        let lines = visitor.calls().lines_of(archive, told.files()).await;
        Self {
            class: view::class(&status),
            status: view::spoken(&status),
            scanned: Scanned::of(&told, &reviewed.coverage, &lines, known, "ReviewBundle"),
            checks: checks_of(reviewed.checks.as_ref())
                .into_iter()
                .map(|(name, check)| Check { name, status: view::check(check.status) })
                .collect(),
        }
    }
}
