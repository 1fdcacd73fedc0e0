//! Recent decisions: the list, and one of them.

use std::collections::HashSet;

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::answer;
use super::filters;
use super::form::Fields;
use super::marks::word;
use super::path::Path;
use super::playground;
use super::shell::Shell;
use super::view::{self, Moment};
use super::visitor::Visitor;
use crate::audit::{MaskedText, Remembered, Weighed};
use crate::decision::{Decision, Severity, at_most};
use crate::grpc::{Refusal, explain};

/// Where the list is.
pub(super) const PLACE: &str = "/console/decisions";

/// Rows on one page.
const PAGE_SIZE: usize = 50;

#[derive(Template)]
#[template(path = "decisions.html")]
struct ListPage {
    shell: Shell,
    chips: Vec<(String, String, bool)>,
    kept: Vec<(&'static str, String)>,
    rpcs: Vec<(String, bool)>,
    text: String,
    rows: Vec<Row>,
    total: usize,
    first: String,
    before: Option<String>,
    next: Option<String>,
    is_filtered: bool,
}

struct Row {
    href: String,
    time: Moment,
    decision: String,
    rpc: String,
    /// What the call was about, a line each.
    about: Vec<String>,
    agent: String,
    policy: String,
    found: Vec<String>,
    more: usize,
    unjudged: usize,
    elapsed: String,
}

#[derive(Template)]
#[template(path = "decision.html")]
struct DetailPage {
    shell: Shell,
    id: String,
    time: Moment,
    decision: String,
    risk: String,
    score: String,
    rpc: String,
    about: Vec<String>,
    why: String,
    /// The page of the submission, where there is one.
    submission: String,
    agent: String,
    session: String,
    request: String,
    policy: String,
    revision: String,
    elapsed: String,
    texts: Vec<Text>,
    texts_left_out: usize,
    /// The playground with the policy chosen; empty where no text is kept that could be tried, or the visitor may not.
    playground: String,
    findings: Vec<Finding>,
    more: usize,
    ran: Vec<Ran>,
    unjudged: Vec<(String, &'static str, String, bool)>,
    concepts: Vec<(String, String)>,
}

struct Text {
    label: String,
    /// How it is tried again; absent where it cannot be, or the visitor may not.
    again: Option<Again>,
    pieces: Vec<Piece>,
    left_out: &'static str,
}

/// A text as the form of the playground takes it: masked, as it is shown.
struct Again {
    kind: &'static str,
    role: &'static str,
    tool: String,
    text: String,
}

struct Piece {
    text: String,
    severity: &'static str,
    title: String,
}

struct Finding {
    rule_href: String,
    rule_id: String,
    plugin: String,
    category: String,
    severity: &'static str,
    score: String,
    description: String,
    place: String,
    layers: String,
    mode: Option<&'static str>,
    /// What it decided by itself, and by which threshold.
    decides: String,
    /// What would have changed that, in terms of the policy.
    changes: Vec<String>,
}

/// Something that ran.
pub(super) struct Ran {
    /// Its id.
    pub(super) id: String,
    /// What it did; may be empty.
    pub(super) outcome: String,
    /// One line for a person.
    pub(super) summary: String,
    /// Whether it only shadows.
    pub(super) shadow: bool,
    /// How long it took.
    pub(super) elapsed: String,
}

impl Ran {
    /// What ran, as pages show it. What looked at the text together is told with one time.
    pub(super) fn all(runs: &[crate::audit::Run]) -> Vec<Self> {
        let joint = runs.iter().filter(|run| run.is_joint).count();
        let first = runs.iter().position(|run| run.is_joint);
        runs.iter().enumerate().map(|(at, run)| Self::of(run, joint, first == Some(at))).collect()
    }

    fn of(run: &crate::audit::Run, joint: usize, is_first: bool) -> Self {
        let elapsed = || view::seconds_words(run.elapsed.as_secs_f64());
        Self {
            id: run.id.to_string(),
            outcome: view::spoken(&run.outcome.to_ascii_lowercase()),
            summary: run.summary.clone(),
            shadow: run.shadow,
            elapsed: match run.is_joint && joint > 1 {
                true if is_first => format!("{} for {joint} scanned together", elapsed()),
                true => "scanned together".to_owned(),
                // Of checks of a bundle it is not known.
                false if run.elapsed.is_zero() => String::new(),
                false => elapsed(),
            },
        }
    }
}

/// The list.
pub(super) async fn list(visitor: Visitor) -> Response {
    visitor.show(listed(&visitor))
}

fn listed(visitor: &Visitor) -> Result<Response, Refusal> {
    let query = &visitor.query;
    let all = visitor.calls().decisions(&visitor.identity)?;
    let mut rpcs: Vec<&str> = all.iter().map(|one| one.rpc).collect();
    rpcs.sort_unstable();
    rpcs.dedup();
    let chosen = Decision::ALL.into_iter().find(|one| words(*one) == query.one("decision"));
    let text = query.one("text").trim().to_lowercase();
    let found: Vec<_> = all
        .iter()
        .filter(|one| chosen.is_none_or(|chosen| one.decision == chosen))
        .filter(|one| query.one("rpc").is_empty() || one.rpc == query.one("rpc"))
        .filter(|one| text.is_empty() || holds(one, &text))
        .collect();
    let page: usize = query.one("page").parse().unwrap_or(0);
    let from = page.saturating_mul(PAGE_SIZE).min(found.len());
    let until = (from + PAGE_SIZE).min(found.len());
    let at = |page: usize| {
        let page = if page == 0 { String::new() } else { page.to_string() };
        format!("{PLACE}?{}", query.with(&[("page", &page)]))
    };
    let page = ListPage {
        shell: visitor.shell(PLACE),
        chips: chips(query, chosen),
        kept: vec![("decision", query.one("decision").to_owned())],
        rpcs: rpcs
            .into_iter()
            .map(|rpc| {
                let is_chosen = rpc == query.one("rpc");
                (rpc.to_owned(), is_chosen)
            })
            .collect(),
        text: query.one("text").to_owned(),
        rows: found[from..until].iter().map(|one| Row::of(one)).collect(),
        total: found.len(),
        first: at(0),
        before: (page > 0).then(|| at(page - 1)),
        next: (until < found.len()).then(|| at(page + 1)),
        is_filtered: ["decision", "rpc", "text"].iter().any(|name| !query.one(name).is_empty()),
    };
    Ok(answer::page(StatusCode::OK, &page))
}

/// A decision as a word of pages.
pub(super) fn words(decision: Decision) -> String {
    decision.as_str().to_ascii_lowercase()
}

/// Whether a text stands in what one would look for a decision by.
fn holds(one: &Remembered, text: &str) -> bool {
    let fields: [&str; 9] = [
        &one.decision_id,
        &one.agent_id,
        &one.session_key,
        &one.request_id,
        &one.tool,
        &one.tool_sent,
        &one.bundle,
        &one.submission_id,
        &one.policy,
    ];
    let in_finding = |Weighed { finding, .. }: &Weighed| {
        finding.rule_id.to_lowercase().contains(text)
            || finding.category.as_str().to_lowercase().contains(text)
    };
    fields.iter().any(|field| field.to_lowercase().contains(text)) || one.findings.iter().any(in_finding)
}

fn chips(query: &Fields, chosen: Option<Decision>) -> Vec<(String, String, bool)> {
    let chip = |label: String, value: &str, is_current: bool| {
        (label, format!("{PLACE}?{}", query.with(&[("decision", value), ("page", "")])), is_current)
    };
    let mut chips = vec![chip("All".to_owned(), "", chosen.is_none())];
    chips.extend(Decision::ALL.map(|one| chip(words(one), &words(one), chosen == Some(one))));
    chips
}

impl Row {
    /// Rules that a row names.
    const FOUND_MAX: usize = 3;

    fn of(one: &Remembered) -> Self {
        let mut rules: Vec<String> = Vec::new();
        for Weighed { finding, .. } in &one.findings {
            if !rules.iter().any(|rule| **rule == *finding.rule_id) {
                rules.push(finding.rule_id.to_string());
            }
        }
        let more = rules.len().saturating_sub(Self::FOUND_MAX);
        rules.truncate(Self::FOUND_MAX);
        Self {
            href: format!("{PLACE}/{}", view::segment(&one.decision_id)),
            time: Moment::at(one.time),
            decision: words(one.decision),
            rpc: one.rpc.to_owned(),
            about: about(one),
            agent: one.agent_id.clone(),
            policy: one.policy.to_string(),
            found: rules,
            more,
            unjudged: one.unjudged.len(),
            elapsed: view::seconds_words(one.elapsed.as_secs_f64()),
        }
    }
}

/// One decision.
pub(super) async fn detail(visitor: Visitor, Path(id): Path<String>) -> Response {
    visitor.show(detailed(&visitor, &id))
}

fn detailed(visitor: &Visitor, id: &str) -> Result<Response, Refusal> {
    let one = visitor.calls().decision(&visitor.identity, id)?;
    let known = visitor.calls().rule_ids();
    let page = DetailPage {
        shell: visitor.shell(PLACE),
        id: one.decision_id.clone(),
        time: Moment::at(one.time),
        decision: words(one.decision),
        risk: one.risk_level.as_str().to_ascii_lowercase(),
        score: format!("{:.2}", one.risk_score),
        rpc: one.rpc.to_owned(),
        about: about(&one),
        why: why(&one),
        submission: match &*one.submission_id {
            "" => String::new(),
            id => format!("{}/{}", super::submissions::PLACE, view::segment(id)),
        },
        agent: one.agent_id.clone(),
        session: one.session_key.clone(),
        request: one.request_id.clone(),
        policy: one.policy.to_string(),
        revision: one.policy_revision.to_string(),
        elapsed: view::seconds_words(one.elapsed.as_secs_f64()),
        playground: playground_of(visitor, &one),
        texts: one.texts.iter().map(|text| Text::of(visitor, text, &one)).collect(),
        texts_left_out: one.texts_left_out,
        more: one.findings_total.saturating_sub(one.findings.len()),
        findings: one.findings.iter().map(|found| Finding::of(found, &one.policy, &known)).collect(),
        ran: Ran::all(&one.ran),
        unjudged: one
            .unjudged
            .iter()
            .map(|one| (one.plugin.to_string(), one.reason.as_str(), one.detail.clone(), one.failed_open()))
            .collect(),
        concepts: view::with_odds(&one.concepts),
    };
    Ok(answer::page(StatusCode::OK, &page))
}

/// Why a decision was made, in one sentence.
fn why(one: &Remembered) -> String {
    match &*one.why {
        "" => explain::sentence(&one.policy, one.decision, 0, std::iter::empty()),
        why => why.to_owned(),
    }
}

/// The address of the playground with what a decision was about; empty where texts of it are shown, which are carried there
/// by forms, or the visitor may try nothing such.
fn playground_of(visitor: &Visitor, one: &Remembered) -> String {
    let kind = match (one.rpc, one.tool.is_empty()) {
        ("ReviewBundle", _) => "bundle",
        (_, false) => "tool",
        (_, true) => "text",
    };
    if !one.texts.is_empty() || !playground::is_offered(visitor, kind) {
        return String::new();
    }
    let chosen = Fields::default().with(&[("kind", kind), ("tool", &one.tool), ("policy", &one.policy)]);
    format!("{}?{chosen}", playground::PLACE)
}

/// What a call was about: the tool, as it was sent where that is another name, or the bundle.
fn about(one: &Remembered) -> Vec<String> {
    let sent = if one.tool_sent == one.tool { "" } else { &*one.tool_sent };
    let told = match (&*one.tool, sent) {
        (tool, "") => tool.to_owned(),
        (tool, sent) => format!("{tool}, sent as {sent}"),
    };
    [told, one.bundle.clone()].into_iter().filter(|told| !told.is_empty()).collect()
}

impl Text {
    fn of(visitor: &Visitor, text: &MaskedText, of: &Remembered) -> Self {
        let label = match text.role {
            "" => text.path.clone(),
            role => format!("message {} of {role}, {}", text.message_index, text.path),
        };
        let pieces = text.pieces.iter().map(|piece| {
            let found = piece.findings.iter().filter_map(|at| of.findings.get(*at));
            let rules: Vec<&str> = found.clone().map(|one| &*one.finding.rule_id).collect();
            let worst: Option<Severity> = found.map(|one| one.finding.severity).max();
            Piece {
                text: piece.text.clone(),
                severity: worst.map_or("", word),
                title: if rules.is_empty() && piece.is_masked {
                    "masked".to_owned()
                } else {
                    rules.join(", ")
                },
            }
        });
        let again = Again::of(text, of).filter(|again| playground::is_offered(visitor, again.kind));
        Self { label, again, pieces: pieces.collect(), left_out: text.left_out }
    }
}

impl Again {
    /// `None` where nothing of the text is kept.
    fn of(text: &MaskedText, of: &Remembered) -> Option<Self> {
        let (kind, role) = match (text.role, &*text.path) {
            ("", "/args_json") => ("tool", ""),
            // What a tool answered.
            ("", "/result_json") => ("text", "tool"),
            ("", _) => ("text", "user"),
            (role, _) => ("text", role),
        };
        let tool = if kind == "tool" { of.tool.clone() } else { String::new() };
        let text: String = text.pieces.iter().map(|piece| piece.text.as_str()).collect();
        (!text.is_empty()).then_some(Self { kind, role, tool, text })
    }
}

impl Finding {
    fn of(weighed: &Weighed, policy: &str, known: &HashSet<String>) -> Self {
        let finding = &weighed.finding;
        let span = &finding.span;
        let href = || format!("{}/{}", super::rules::PLACE, view::segment(&finding.rule_id));
        Self {
            rule_href: if known.contains(&*finding.rule_id) { href() } else { String::new() },
            rule_id: finding.rule_id.to_string(),
            plugin: finding.plugin.to_string(),
            category: finding.category.as_str().to_owned(),
            severity: word(finding.severity),
            score: format!("{:.2}", finding.score),
            description: finding.description.to_string(),
            place: match &*span.path {
                "" => String::new(),
                // Of a file: its name, and the line.
                path if span.start == span.end => path.to_owned(),
                path => {
                    format!("message {}, {path}, bytes {} to {}", span.message_index, span.start, span.end)
                }
            },
            layers: finding.evasions.join(", "),
            mode: match (finding.suppressed, finding.shadow) {
                (true, _) => Some("suppressed"),
                (false, true) => Some("shadow"),
                (false, false) => None,
            },
            decides: decides(weighed, policy),
            changes: match weighed.thresholds {
                Some(thresholds) => explain::changes_of(explain::Cause {
                    rule_id: &finding.rule_id,
                    category: &finding.category,
                    score: finding.score,
                    thresholds,
                    suppressed: finding.suppressed,
                    shadow: finding.shadow,
                    is_of_role: weighed.is_of_role,
                    fingerprint: "",
                }),
                None => Vec::new(),
            },
        }
    }
}

/// What a finding decided by itself, and what its score was held against.
fn decides(weighed: &Weighed, policy: &str) -> String {
    let told = words(weighed.decides);
    match weighed.thresholds {
        _ if !weighed.finding.is_effective() => "nothing, as it does not count".to_owned(),
        Some(thresholds) => format!(
            "{told} by itself: score {}; under policy `{policy}`, `{}` warns from {} and blocks from {}",
            at_most(weighed.finding.score),
            weighed.finding.category,
            at_most(thresholds.warn),
            at_most(thresholds.block)
        ),
        None => format!("{told} by its severity, as its check failed"),
    }
}
