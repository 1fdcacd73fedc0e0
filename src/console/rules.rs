//! The rules in force: the list, one of them with its examples, and what another threshold would have decided.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::answer;
use super::filters;
use super::form::Fields;
use super::path::Path;
use super::shell::Shell;
use super::view;
use super::visitor::Visitor;
use crate::decision::at_most;
use crate::grpc::{Decides, KnownRule, Refusal, RuleCount, WhatIf};
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
    /// Why there are no counts, for those who may see them.
    no_counts: Option<&'static str>,
    /// Where each of the columns leads that can be sorted by, and whether the list is in its order.
    by_id: (String, bool),
    by_findings: (String, bool),
    by_would_block: (String, bool),
    first: String,
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
    applies_to: String,
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
    /// From which score on it does what.
    decides: String,
    /// The incidents of it, where it has any and the visitor may see them.
    incidents: Option<String>,
    /// Why there is nothing to try, where thresholds do not decide alone.
    no_trial: Option<&'static str>,
    /// Absent for those who may not see what others asked, and where they cannot be read.
    counts: Option<RuleCount>,
    no_counts: &'static str,
    what_if: Option<Trial>,
}

struct Trial {
    /// As it was typed.
    warn: String,
    /// As it was typed.
    block: String,
    /// What the default policy has.
    own_warn: String,
    /// What the default policy has.
    own_block: String,
    /// What is wrong with what was typed.
    problem: Option<String>,
    /// What came of it; nothing before something is asked.
    tried: Option<Tried>,
}

struct Tried {
    seen: usize,
    concerned: usize,
    /// How many were left out, and why.
    left_out: Vec<(usize, &'static str)>,
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

/// How long a page waits for counts, which are no more than a help beside what it shows.
const COUNTS_TIMEOUT: Duration = Duration::from_secs(3);
const NO_COUNTS: &str =
    "The counts cannot be read: the store does not answer. Rules and thresholds are those in force.";

/// What rules found; an error where that cannot be read now.
async fn counts(visitor: &Visitor, rule_id: &str) -> Result<HashMap<String, RuleCount>, ()> {
    let counting = visitor.calls().rule_counts(&visitor.identity, rule_id);
    let counted = tokio::time::timeout(COUNTS_TIMEOUT, counting).await.map_err(|_| ())?;
    counted.map_err(|refusal| tracing::warn!(%refusal, "a page of the console shows no counts of rules"))
}

async fn listed(visitor: &Visitor) -> Result<Response, Refusal> {
    let query = &visitor.query;
    let (plugin, text) = (query.one("plugin"), query.one("text").trim().to_lowercase());
    let rules = all(visitor, "").await?;
    let mut plugins: Vec<String> = rules.iter().map(|rule| rule.plugin.clone()).collect();
    plugins.sort_unstable();
    plugins.dedup();
    let mut found: Vec<&v1::Rule> = rules
        .iter()
        .filter(|rule| plugin.is_empty() || rule.plugin == plugin)
        .filter(|rule| {
            let fields = [&rule.id, &rule.category, &rule.description];
            text.is_empty() || fields.iter().any(|field| field.to_lowercase().contains(&text))
        })
        .collect();
    let is_auditor = visitor.identity.has(CallerRole::Auditor);
    let counts = if is_auditor { counts(visitor, "").await.ok() } else { None };
    let count = |rule: &v1::Rule| {
        counts.as_ref().and_then(|counts| counts.get(rule.id.as_str()).copied()).unwrap_or_default()
    };
    let sort = query.one("sort");
    match sort {
        "findings" => found.sort_by_key(|rule| Reverse(count(rule).findings)),
        "would_block" => found.sort_by_key(|rule| Reverse(count(rule).would_block)),
        _ => {}
    }
    let by = |key: &str| {
        let href = format!("{PLACE}?{}", query.with(&[("sort", key), ("page", "")]));
        (href, sort == key)
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
        let count = count(rule);
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
        no_counts: (is_auditor && counts.is_none()).then_some(NO_COUNTS),
        by_id: by(""),
        by_findings: by("findings"),
        by_would_block: by("would_block"),
        first: at(0),
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
    let identity = &visitor.identity;
    let known = visitor.calls().rule(identity, id)?;
    let is_auditor = identity.has(CallerRole::Auditor);
    let counts = match is_auditor {
        true => counts(visitor, id).await.ok().map(|counts| counts.get(id).copied().unwrap_or_default()),
        false => None,
    };
    let (no_trial, what_if) = match known.decides {
        _ if !is_auditor => (None, None),
        Decides::Messages => (None, Some(Trial::of(visitor, &known)?)),
        Decides::Tools => (
            Some(
                "It finds something in tool calls, where interceptors decide beside thresholds; what others would have \
                 decided can be tried for rules of messages.",
            ),
            None,
        ),
        Decides::Bundles => (Some("Severities decide about bundles, no threshold."), None),
        Decides::Streams => (
            Some(
                "Severities, the judge and streams.kill_from decide about watched streams, not the thresholds of a category.",
            ),
            None,
        ),
    };
    let decides = match known.decides {
        Decides::Messages | Decides::Tools => {
            format!(
                "warns from {}, blocks from {} under the default policy",
                at_most(known.warn),
                at_most(known.block)
            )
        }
        Decides::Bundles => "by its severity: high and critical block".to_owned(),
        Decides::Streams => "by its severity, the judge and streams.kill_from".to_owned(),
    };
    let sees_incidents = identity.has(CallerRole::Agent) || is_auditor;
    let incidents = (known.decides == Decides::Streams && sees_incidents)
        .then(|| format!("{}?{}", super::incidents::PLACE, Fields::default().with(&[("rule", id)])));
    let status = match what_if.as_ref().is_some_and(|trial| trial.problem.is_some()) {
        true => StatusCode::BAD_REQUEST,
        false => StatusCode::OK,
    };
    let rule = known.rule;
    let page = DetailPage {
        shell: visitor.shell(PLACE),
        href: format!("{PLACE}/{}", view::segment(&rule.id)),
        incidents,
        plugin: rule.plugin,
        category: rule.category,
        severity: view::severity(rule.severity),
        confidence: format!("{:.2}", rule.confidence),
        score: format!("{}{:.2}", if known.is_graded { "up to " } else { "" }, known.score),
        applies_to: known.applies_to,
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
        decides,
        no_counts: if is_auditor {
            NO_COUNTS
        } else {
            "What others asked is shown to auditors and administrators."
        },
        counts,
        no_trial,
        what_if,
        id: rule.id,
    };
    Ok(answer::page(status, &page))
}

impl Trial {
    fn of(visitor: &Visitor, known: &KnownRule) -> Result<Self, Refusal> {
        let (warn, block) = (visitor.query.one("warn").trim(), visitor.query.one("block").trim());
        let mut trial = Self {
            warn: warn.to_owned(),
            block: block.to_owned(),
            own_warn: format!("{:.2}", known.warn),
            own_block: format!("{:.2}", known.block),
            problem: None,
            tried: None,
        };
        match thresholds(warn, block) {
            Err(problem) => trial.problem = Some(problem),
            Ok((None, None)) => {}
            Ok((warn, block)) => {
                let calls = visitor.calls();
                let seen = calls.what_if(&visitor.identity, &known.rule.category, warn, block)?;
                trial.tried = Some(Tried::of(&seen));
            }
        }
        Ok(trial)
    }
}

/// The thresholds that were typed; an empty one stays as it is.
fn thresholds(warn: &str, block: &str) -> Result<(Option<f64>, Option<f64>), String> {
    let one = |name: &str, text: &str| match text.parse::<f64>() {
        _ if text.is_empty() => Ok(None),
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(Some(value)),
        _ => {
            let text: String = text.chars().take(32).collect();
            Err(format!("{name}: `{text}` is no number from 0 to 1, such as 0.5."))
        }
    };
    let (warn, block) = (one("Warn from", warn)?, one("Block from", block)?);
    if let (Some(warn), Some(block)) = (warn, block)
        && warn > block
    {
        return Err(format!("It would warn from {warn}, later than it blocks, from {block}: no policy may."));
    }
    Ok((warn, block))
}

impl Tried {
    fn of(seen: &WhatIf) -> Self {
        let left_out = [
            (seen.other_calls, "about tool calls and bundles, where more than thresholds decides"),
            (seen.too_many, "with more findings than are remembered"),
            (seen.without_policy, "of a policy that is not in force any more"),
            (seen.contradicting, "whose own policy would warn later than it blocks"),
        ];
        Self {
            seen: seen.seen,
            concerned: seen.concerned,
            left_out: left_out.into_iter().filter(|(count, _)| *count > 0).collect(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_numbers_that_a_policy_could_have() {
        assert_eq!(thresholds("", ""), Ok((None, None)));
        assert_eq!(thresholds("0.2", ""), Ok((Some(0.2), None)));
        assert_eq!(thresholds("", "1"), Ok((None, Some(1.0))));
        assert_eq!(thresholds("0.5", "0.5"), Ok((Some(0.5), Some(0.5))));
        for (warn, block, told) in [
            ("abc", "", "Warn from: `abc`"),
            ("0,5", "", "Warn from: `0,5`"),
            ("", "2", "Block from: `2`"),
            ("", "NaN", "Block from: `NaN`"),
            ("-0.1", "", "Warn from"),
            ("0.9", "0.1", "later than it blocks"),
        ] {
            assert!(thresholds(warn, block).is_err_and(|problem| problem.contains(told)), "{warn} {block}");
        }
    }
}
