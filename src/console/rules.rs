//! The rules in force: the list, one of them with its examples, and what another threshold would have decided.

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;

use super::answer;
use super::form::Fields;
use super::shell::Shell;
use super::view;
use super::visitor::Visitor;
use crate::grpc::{Refusal, RuleCount, WhatIf};
use crate::pb::v1;
use crate::policy::CallerRole;

/// Where the list is.
pub(super) const PLACE: &str = "/console/rules";

/// Rows on one page.
const PAGE_SIZE: usize = 100;
/// Rules that are asked for at once.
const FETCH: u32 = 1_000;

#[derive(Template)]
#[template(path = "rules.html")]
struct ListPage {
    shell: Shell,
    chips: Vec<(String, String, bool)>,
    plugin: String,
    text: String,
    rows: Vec<Row>,
    total: usize,
    counts: bool,
    before: Option<String>,
    next: Option<String>,
}

struct Row {
    href: String,
    id: String,
    plugin: String,
    category: String,
    severity: String,
    mode: String,
    description: String,
    source: String,
    findings: u64,
    would_block: u64,
}

#[derive(Template)]
#[template(path = "rule.html")]
struct DetailPage {
    shell: Shell,
    href: String,
    id: String,
    plugin: String,
    category: String,
    severity: String,
    confidence: String,
    score: String,
    mode: String,
    description: String,
    recommendation: String,
    references: Vec<String>,
    source: String,
    pattern: String,
    phrases: Vec<String>,
    examples: Vec<String>,
    negatives: Vec<String>,
    misses: Vec<String>,
    warns: String,
    blocks: String,
    incidents: String,
    /// Absent for those who may not see what others asked.
    counts: Option<RuleCount>,
    what_if: Option<Trial>,
}

struct Trial {
    warn: String,
    block: String,
    is_asked: bool,
    seen: usize,
    concerned: usize,
    changed: Vec<Changed>,
    stricter: usize,
    milder: usize,
}

struct Changed {
    href: String,
    id: String,
    before: String,
    after: String,
    score: String,
}

/// The list.
pub(super) async fn list(visitor: Visitor) -> Response {
    visitor.show(listed(&visitor).await)
}

async fn all(visitor: &Visitor, plugin: &str) -> Result<Vec<v1::Rule>, Refusal> {
    let mut request =
        v1::ListRulesRequest { plugin: plugin.to_owned(), page_size: FETCH, ..Default::default() };
    let mut rules = Vec::new();
    loop {
        let page: v1::ListRulesResponse = visitor.call("PolicyService/ListRules", &request).await?;
        rules.extend(page.rules);
        if page.next_page_token.is_empty() {
            return Ok(rules);
        }
        request.page_token = page.next_page_token;
    }
}

async fn listed(visitor: &Visitor) -> Result<Response, Refusal> {
    let query = &visitor.query;
    let (plugin, text) = (query.one("plugin"), query.one("text").trim().to_lowercase());
    let rules = all(visitor, "").await?;
    let mut plugins: Vec<String> = rules.iter().map(|rule| rule.plugin.clone()).collect();
    plugins.sort_unstable();
    plugins.dedup();
    let found: Vec<&v1::Rule> = rules
        .iter()
        .filter(|rule| plugin.is_empty() || rule.plugin == plugin)
        .filter(|rule| {
            let fields = [&rule.id, &rule.category, &rule.description];
            text.is_empty() || fields.iter().any(|field| field.to_lowercase().contains(&text))
        })
        .collect();
    let counts = match visitor.identity.has(CallerRole::Auditor) {
        true => Some(visitor.calls().rule_counts(&visitor.identity).await?),
        false => None,
    };
    let page: usize = query.one("page").parse().unwrap_or(0);
    let from = page.saturating_mul(PAGE_SIZE).min(found.len());
    let until = (from + PAGE_SIZE).min(found.len());
    let at = |page: usize| {
        let page = if page == 0 { String::new() } else { page.to_string() };
        format!("{PLACE}?{}", query.with(&[("page", &page)]))
    };
    let chip = |label: &str, value: &str| {
        let href = format!("{PLACE}?{}", query.with(&[("plugin", value), ("page", "")]));
        (label.to_owned(), href, plugin == value)
    };
    let chips = std::iter::once(chip("All", "")).chain(plugins.iter().map(|name| chip(name, name)));
    let rows = found[from..until].iter().map(|rule| {
        let count =
            counts.as_ref().and_then(|counts| counts.get(rule.id.as_str()).copied()).unwrap_or_default();
        Row {
            href: format!("{PLACE}/{}", view::segment(&rule.id)),
            id: rule.id.clone(),
            plugin: rule.plugin.clone(),
            category: rule.category.clone(),
            severity: view::severity(rule.severity),
            mode: view::mode(rule.mode),
            description: rule.description.clone(),
            source: rule.source.clone(),
            findings: count.findings,
            would_block: count.would_block,
        }
    });
    let page = ListPage {
        shell: visitor.shell(PLACE),
        chips: chips.collect(),
        plugin: plugin.to_owned(),
        text: query.one("text").to_owned(),
        rows: rows.collect(),
        total: found.len(),
        counts: counts.is_some(),
        before: (page > 0).then(|| at(page - 1)),
        next: (until < found.len()).then(|| at(page + 1)),
    };
    Ok(answer::page(StatusCode::OK, &page))
}

/// One rule.
pub(super) async fn detail(visitor: Visitor, Path(id): Path<String>) -> Response {
    visitor.show(detailed(&visitor, &id).await)
}

async fn detailed(visitor: &Visitor, id: &str) -> Result<Response, Refusal> {
    let (identity, query) = (&visitor.identity, &visitor.query);
    let known = visitor.calls().rule(identity, id)?;
    let is_auditor = identity.has(CallerRole::Auditor);
    let counts = match is_auditor {
        true => {
            let counts = visitor.calls().rule_counts(identity).await?;
            Some(counts.get(id).copied().unwrap_or_default())
        }
        false => None,
    };
    let what_if = if is_auditor {
        let asked = |name: &str, default: f64| {
            let value = query.one(name).trim().parse::<f64>().ok();
            value.filter(|value| (0.0..=1.0).contains(value)).unwrap_or(default)
        };
        let (warn, block) = (asked("warn", known.warn), asked("block", known.block));
        let seen = visitor.calls().what_if(identity, &known.rule.category, warn, block)?;
        Some(Trial::of(&seen, warn, block, !query.one("block").is_empty() || !query.one("warn").is_empty()))
    } else {
        None
    };
    let rule = known.rule;
    let page = DetailPage {
        shell: visitor.shell(PLACE),
        href: format!("{PLACE}/{}", view::segment(&rule.id)),
        incidents: format!("{}?{}", super::incidents::PLACE, Fields::default().with(&[("rule", &rule.id)])),
        plugin: rule.plugin,
        category: rule.category,
        severity: view::severity(rule.severity),
        confidence: format!("{:.2}", rule.confidence),
        score: format!("{:.2}", known.score),
        mode: view::mode(rule.mode),
        description: rule.description,
        recommendation: rule.recommendation,
        references: rule.references,
        source: known.place,
        pattern: known.pattern,
        phrases: known.phrases,
        examples: known.examples,
        negatives: known.negative_examples,
        misses: known.known_misses,
        warns: format!("{:.2}", known.warn),
        blocks: format!("{:.2}", known.block),
        counts,
        what_if,
        id: rule.id,
    };
    Ok(answer::page(StatusCode::OK, &page))
}

impl Trial {
    fn of(seen: &WhatIf, warn: f64, block: f64, is_asked: bool) -> Self {
        Self {
            warn: format!("{warn:.2}"),
            block: format!("{block:.2}"),
            is_asked,
            seen: seen.seen,
            concerned: seen.concerned,
            stricter: seen.changed.iter().filter(|one| one.after > one.before).count(),
            milder: seen.changed.iter().filter(|one| one.after < one.before).count(),
            changed: seen
                .changed
                .iter()
                .map(|one| Changed {
                    href: format!("{}/{}", super::decisions::PLACE, view::segment(&one.decision_id)),
                    id: one.decision_id.clone(),
                    before: one.before.as_str().to_ascii_lowercase(),
                    after: one.after.as_str().to_ascii_lowercase(),
                    score: format!("{:.2}", one.score),
                })
                .collect(),
        }
    }
}
