//! Incidents of watched streams: the list, one of them, rates of rules.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::answer::{self, status_of};
use super::filters;
use super::form::Fields;
use super::path::Path;
use super::shell::Shell;
use super::submissions::{Head, heads, order};
use super::view::{self, Moment};
use super::visitor::{Sent, Visitor};
use crate::grpc::Refusal;
use crate::pb::v1;
use crate::store::{IncidentCounts, SEARCHED_MAX};
use crate::telemetry::Code;

/// Where the list is.
pub(super) const PLACE: &str = "/console/incidents";

/// Rows on one page.
const PAGE_SIZE: u32 = 25;

const COLUMNS: [(&str, &str); 1] = [("time", "Time")];

const VERDICTS: [v1::VerdictKind; 3] = [v1::VerdictKind::Safe, v1::VerdictKind::Warn, v1::VerdictKind::Kill];
const SEVERITIES: [v1::Severity; 4] =
    [v1::Severity::Low, v1::Severity::Medium, v1::Severity::High, v1::Severity::Critical];

#[derive(Template)]
#[template(path = "incidents.html")]
struct ListPage {
    shell: Shell,
    chips: Vec<(String, String, bool)>,
    kept: Vec<(&'static str, String)>,
    severities: Vec<(String, bool)>,
    rule: String,
    session: String,
    heads: Vec<Head>,
    rows: Vec<Row>,
    total: String,
    first: Option<String>,
    next: Option<String>,
    is_filtered: bool,
}

struct Row {
    href: String,
    time: Moment,
    rule_id: String,
    category: String,
    severity: String,
    verdict: String,
    action: String,
    latency: String,
    matched: String,
    session: String,
    is_false: bool,
    is_shadow: bool,
}

#[derive(Template)]
#[template(path = "incident.html")]
struct DetailPage {
    shell: Shell,
    href: String,
    rule_href: String,
    id: String,
    time: Moment,
    rule_id: String,
    category: String,
    severity: String,
    verdict: String,
    source: String,
    action: String,
    latency: String,
    reason: String,
    stream: String,
    offset: u64,
    before: String,
    matched: String,
    after: String,
    session: String,
    /// Whether its incidents can be listed by its name.
    has_session_list: bool,
    agent: String,
    decision_id: String,
    is_false: bool,
    is_shadow: bool,
    false_reason: String,
    work: Option<Work>,
    is_admin: bool,
    /// What was typed, where a mark was refused.
    typed: String,
}

struct Work {
    goal: String,
    criteria: Vec<String>,
    non_goals: Vec<String>,
    scope: String,
    labels: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "incident_rules.html")]
struct RatesPage {
    shell: Shell,
    week: Counts,
    month: Counts,
    rules: Vec<Rates>,
}

struct Rates {
    rule_id: String,
    category: String,
    list: String,
    week: Counts,
    month: Counts,
}

#[derive(Default)]
struct Counts {
    incidents: u64,
    false_positives: u64,
    rate: String,
    safe: u64,
    warn: u64,
    kill: u64,
    shadow: u64,
    latency: String,
}

/// The list.
pub(super) async fn list(visitor: Visitor) -> Response {
    visitor.show(listed(&visitor).await)
}

async fn listed(visitor: &Visitor) -> Result<Response, Refusal> {
    let query = &visitor.query;
    let (key, is_descending) = order(query, &COLUMNS, "time");
    let verdict = VERDICTS.into_iter().find(|one| view::verdict((*one).into()) == query.one("verdict"));
    let severity = SEVERITIES.into_iter().find(|one| view::severity((*one).into()) == query.one("severity"));
    let marked = match query.one("marked") {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    };
    let request = v1::ListIncidentsRequest {
        session_id: query.one("session").trim().to_owned(),
        rule_id: query.one("rule").trim().to_owned(),
        severity_min: severity.unwrap_or_default().into(),
        verdict: verdict.unwrap_or_default().into(),
        false_positive: marked,
        order_by: if is_descending { format!("{key} desc") } else { key.to_owned() },
        page_size: PAGE_SIZE,
        page_token: query.one("page_token").to_owned(),
        ..Default::default()
    };
    let found: v1::ListIncidentsResponse = visitor.list("IncidentService/ListIncidents", &request).await?;
    let at = |query: String| if query.is_empty() { PLACE.to_owned() } else { format!("{PLACE}?{query}") };
    let page = ListPage {
        shell: visitor.shell(PLACE),
        chips: chips(query),
        kept: ["verdict", "marked", "sort", "order"]
            .map(|name| (name, query.one(name).to_owned()))
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect(),
        severities: SEVERITIES.map(|one| (view::severity(one.into()), Some(one) == severity)).into(),
        rule: query.one("rule").to_owned(),
        session: query.one("session").to_owned(),
        heads: heads(query, PLACE, &COLUMNS, (key, is_descending)),
        rows: found.incidents.iter().map(|one| Row::of(visitor, one)).collect(),
        total: match found.total {
            total if total > SEARCHED_MAX => format!("more than {SEARCHED_MAX}"),
            total => format!("{total} in all"),
        },
        first: (!request.page_token.is_empty()).then(|| at(query.with(&[("page_token", "")]))),
        next: (!found.next_page_token.is_empty())
            .then(|| at(query.with(&[("page_token", &found.next_page_token)]))),
        is_filtered: ["verdict", "marked", "rule", "session", "severity"]
            .iter()
            .any(|name| !query.one(name).is_empty()),
    };
    Ok(answer::page(StatusCode::OK, &page))
}

fn chips(query: &Fields) -> Vec<(String, String, bool)> {
    let chip = |label: String, verdict: &str, marked: &str| {
        let changed = [("verdict", verdict), ("marked", marked), ("page_token", ""), ("notice", "")];
        let href = format!("{PLACE}?{}", query.with(&changed));
        (label, href, query.one("verdict") == verdict && query.one("marked") == marked)
    };
    let mut chips = vec![chip("All".to_owned(), "", "")];
    for verdict in VERDICTS {
        let word = view::verdict(verdict.into());
        chips.push(chip(word.clone(), &word, ""));
    }
    chips.push(chip("False positives".to_owned(), "", "true"));
    chips
}

impl Row {
    fn of(visitor: &Visitor, incident: &v1::Incident) -> Self {
        Self {
            href: format!("{PLACE}/{}", view::segment(&incident.id)),
            time: Moment::of(incident.time.as_ref()),
            rule_id: incident.rule_id.clone(),
            category: incident.category.clone(),
            severity: view::severity(incident.severity),
            verdict: view::verdict(incident.verdict),
            action: view::spoken(&view::incident_action(incident.action)),
            latency: view::duration(incident.latency.as_ref()),
            matched: incident.matched_text.chars().take(120).collect(),
            session: visitor.calls().masked_name(&incident.session_id),
            is_false: incident.false_positive,
            is_shadow: incident.shadow,
        }
    }
}

/// One incident.
pub(super) async fn detail(visitor: Visitor, Path(id): Path<String>) -> Response {
    visitor.show(detailed(&visitor, &id, None).await)
}

async fn detailed(
    visitor: &Visitor,
    id: &str,
    failed: Option<(String, Refusal)>,
) -> Result<Response, Refusal> {
    let request = v1::GetIncidentRequest { incident_id: id.to_owned() };
    let found: v1::GetIncidentResponse = visitor.call("IncidentService/GetIncident", &request).await?;
    let incident = found.incident.unwrap_or_default();
    let mut shell = visitor.shell(PLACE);
    let (mut status, mut typed) = (StatusCode::OK, String::new());
    if let Some((reason, refusal)) = failed {
        status = status_of(refusal.code);
        shell.error = Some(refusal.message);
        typed = reason;
    }
    // What stood around the text that the rule matched, if it still stands there as it was.
    let (before, matched, after) = match around(&incident.excerpt, &incident.matched_text) {
        Some((before, after)) => (before.to_owned(), incident.matched_text.clone(), after.to_owned()),
        None => (incident.excerpt.clone(), String::new(), String::new()),
    };
    let session = visitor.calls().masked_name(&incident.session_id);
    let page = DetailPage {
        shell,
        href: format!("{PLACE}/{}", view::segment(&incident.id)),
        rule_href: format!("{}/{}", super::rules::PLACE, view::segment(&incident.rule_id)),
        time: Moment::of(incident.time.as_ref()),
        severity: view::severity(incident.severity),
        verdict: view::verdict(incident.verdict),
        source: view::spoken(&view::verdict_source(incident.source)),
        action: view::spoken(&view::incident_action(incident.action)),
        latency: view::duration(incident.latency.as_ref()),
        stream: view::stream(incident.stream),
        offset: incident.offset,
        before,
        matched,
        after,
        agent: incident.context.map(|one| visitor.calls().masked_name(&one.agent_id)).unwrap_or_default(),
        work: incident.work.map(|work| {
            let mut labels: Vec<(String, String)> = work.labels.into_iter().collect();
            labels.sort_unstable();
            Work {
                goal: work.goal,
                criteria: work.acceptance_criteria,
                non_goals: work.non_goals,
                scope: work.scope,
                labels,
            }
        }),
        is_false: incident.false_positive,
        is_shadow: incident.shadow,
        false_reason: incident.false_positive_reason,
        id: incident.id,
        rule_id: incident.rule_id,
        category: incident.category,
        reason: incident.reason,
        // An address with a credential in it would tell it.
        has_session_list: session == incident.session_id,
        session,
        decision_id: incident.decision_id,
        is_admin: visitor.identity.is_admin(),
        typed,
    };
    Ok(answer::page(status, &page))
}

/// What stands before and after the match. An excerpt ends with the line of its match, so of several places with the same
/// text the last is meant: what stands further up was there before and was not matched.
fn around<'e>(excerpt: &'e str, matched: &str) -> Option<(&'e str, &'e str)> {
    if matched.is_empty() { None } else { excerpt.rsplit_once(matched) }
}

/// Marks one as a false positive, or takes the mark back.
pub(super) async fn mark(Path(id): Path<String>, sent: Sent) -> Response {
    let Sent { visitor, fields } = sent;
    let reason = fields.one("reason").to_owned();
    if fields.one("confirm") != "yes" {
        let refusal = Refusal::wrong("Confirm what you want to do; nothing was done.");
        return visitor.show(detailed(&visitor, &id, Some((reason, refusal))).await);
    }
    let request = v1::MarkFalsePositiveRequest {
        incident_id: id.clone(),
        reason: reason.clone(),
        undo: fields.one("undo") == "yes",
    };
    match visitor.call::<v1::MarkFalsePositiveResponse>("IncidentService/MarkFalsePositive", &request).await {
        Ok(_) => answer::see(&format!("{PLACE}/{}?notice=marked", view::segment(&id))),
        Err(refusal) if refusal.code == Code::InvalidArgument => {
            visitor.show(detailed(&visitor, &id, Some((reason, refusal))).await)
        }
        Err(refusal) => visitor.refused_for(&refusal, &reason),
    }
}

/// What each rule reported over 7 and 30 days, and how much of it was wrong.
pub(super) async fn rates(visitor: Visitor) -> Response {
    visitor.show(rated(&visitor).await)
}

async fn rated(visitor: &Visitor) -> Result<Response, Refusal> {
    let found = visitor.calls().incident_rates(&visitor.identity).await?;
    let (mut week, mut month) = (IncidentCounts::default(), IncidentCounts::default());
    let mut rules: Vec<Rates> = Vec::with_capacity(found.len());
    for rule in found {
        week.add(rule.short);
        month.add(rule.long);
        rules.push(Rates {
            list: format!("{PLACE}?{}", Fields::default().with(&[("rule", &rule.rule_id)])),
            week: Counts::of(rule.short),
            month: Counts::of(rule.long),
            rule_id: rule.rule_id,
            category: rule.category,
        });
    }
    rules.sort_by(|a, b| b.week.incidents.cmp(&a.week.incidents).then_with(|| a.rule_id.cmp(&b.rule_id)));
    let page =
        RatesPage { shell: visitor.shell(PLACE), week: Counts::of(week), month: Counts::of(month), rules };
    Ok(answer::page(StatusCode::OK, &page))
}

impl Counts {
    fn of(counts: IncidentCounts) -> Self {
        let rate = counts.false_positives as f64 / counts.incidents.max(1) as f64 * 100.0;
        let mean = counts.latency_ns.checked_div(counts.landed);
        Self {
            incidents: counts.incidents,
            false_positives: counts.false_positives,
            rate: if counts.incidents == 0 { String::new() } else { format!("{rate:.0} %") },
            safe: counts.safe,
            warn: counts.warn,
            // What only shadows ended nothing.
            kill: counts.kill - counts.shadow_kill,
            shadow: counts.shadow,
            latency: mean.map_or_else(String::new, |mean| view::seconds_words(mean as f64 / 1e9)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_match_is_the_last_place_of_its_text() {
        let excerpt = "echo 'rm -rf /' is bad\n+ rm -rf /\n";
        assert_eq!(around(excerpt, "rm -rf /"), Some(("echo 'rm -rf /' is bad\n+ ", "\n")));
        assert_eq!(around(excerpt, "rm -rf ~"), None);
        assert_eq!(around(excerpt, ""), None);
    }

    #[test]
    fn what_only_shadows_ends_nothing() {
        let counts = IncidentCounts {
            incidents: 4,
            false_positives: 1,
            kill: 3,
            shadow: 2,
            shadow_kill: 2,
            landed: 2,
            latency_ns: 3_000_000,
            ..IncidentCounts::default()
        };
        let told = Counts::of(counts);
        assert_eq!((told.kill, told.shadow, &*told.rate, &*told.latency), (1, 2, "25 %", "1.5 ms"));
        assert_eq!(Counts::of(IncidentCounts::default()).latency, "");
    }
}
