//! Why a text was judged as it was: each finding with its rule, what it was found through, what confirmed it, what it
//! decides alone, and what would have changed that; for injection also the concepts that were weighed.
//!
//! Nothing here shows more of the text than the answer does.

use serde_json::{Value, json};

use super::rules::{Fact, Rules};
use super::snippet::printable;
use super::{Output, Style};
use crate::decision::{Category, at_most};
use crate::detect::concepts::Explanation;
use crate::detect::{INJECTION, PII, Request, Scanner, wording};
use crate::grpc::explain::{changes, summary};
use crate::messages::Message;
use crate::pb::v1;
use crate::policy::{AllowList, Policy};
use crate::rules::{Budget, Role};

/// Width of the column of headings.
const HEADING_WIDTH: usize = 12;
/// Most concepts that are told for a person; JSON has all.
const TERMS_MAX: usize = 12;

/// The explanation of one answer.
pub(super) struct Explained {
    /// What the policy made of all findings together.
    summary: String,
    /// One for each finding, in their order.
    findings: Vec<Vec<Fact>>,
    /// What the model weighed, for each text in which a concept spoke for an attack.
    concepts: Vec<Explanation>,
    /// What its words gave, for each text, with the text.
    wording: Vec<(String, wording::Explanation)>,
}

/// Explains `response`, the answer to `messages` under `policy`, of which the caller excuses `excuses`.
pub(super) fn explain(
    rules: &Rules,
    policy: &Policy,
    messages: &[Message<'_>],
    excuses: &[String],
    response: &v1::CheckMessagesResponse,
) -> Explained {
    let findings = response.findings.iter();
    let role = messages.first().map_or(Role::User, |message| message.role);
    let mut told = summary(policy, response);
    if !excuses.is_empty() && !policy.heeds_caller_allow_list() {
        told.push_str("; the allow list of the request is not heeded, as `pii.caller_allow_list` is off");
    }
    let excuses = AllowList::new(excuses.to_vec());
    Explained {
        summary: told,
        findings: findings
            .map(|finding| {
                let mut facts = of_finding(rules, policy, role, finding);
                facts.extend(excused_by(policy, messages, &excuses, finding).map(|by| ("excused by", by)));
                facts
            })
            .collect(),
        concepts: each_text(rules, messages, |scanner, request| {
            // A budget without a limit is never spent.
            scanner.explain_concepts(request, &Budget::UNLIMITED).ok().flatten()
        }),
        wording: each_text(rules, messages, |scanner, request| {
            let explanation = scanner.explain_wording(request, &Budget::UNLIMITED).ok().flatten()?;
            Some((request.text.to_owned(), explanation))
        }),
    }
}

/// What excuses a suppressed finding of personal data; none for another finding.
fn excused_by(
    policy: &Policy,
    messages: &[Message<'_>],
    excuses: &AllowList,
    finding: &v1::Finding,
) -> Option<String> {
    let is_excused = finding.suppressed && Category::new(finding.category.as_str()).is_within(PII);
    let span = finding.span.as_ref().filter(|_| is_excused)?;
    let message = messages.get(span.message_index as usize)?;
    let field = message.fields.iter().find(|field| field.path.to_pointer() == span.path)?;
    let value = field.text.get(usize::try_from(span.start).ok()?..usize::try_from(span.end).ok()?)?;
    Some(if policy.allow_list().allows(value) {
        "`pii.allow_list` of the policy".to_owned()
    } else if policy.heeds_caller_allow_list() && excuses.allows(value) {
        "`allow_list` of the request, which the policy heeds".to_owned()
    } else {
        "an entry of `suppressions`".to_owned()
    })
}

/// What `explain` says of each text; it is asked about injection alone.
fn each_text<T>(
    rules: &Rules,
    messages: &[Message<'_>],
    explain: impl Fn(&Scanner, Request<'_>) -> Option<T>,
) -> Vec<T> {
    let scanner = rules.snapshot.scanner();
    let plugins = scanner.rules().plugin_bits([INJECTION]);
    let mut all = Vec::new();
    for message in messages {
        for field in &message.fields {
            let (role, surface) = (Some(message.role), Some(message.surface_of(field)));
            all.extend(explain(scanner, Request { text: field.text, plugins, role, surface }));
        }
    }
    all
}

/// What a person wants to know of one finding.
fn of_finding(rules: &Rules, policy: &Policy, role: Role, finding: &v1::Finding) -> Vec<Fact> {
    let category = Category::new(finding.category.as_str());
    let mut facts = vec![(
        "rule",
        match rules.place_of(&finding.rule_id) {
            Some(place) => format!("{} (plugin {}), {place}", finding.rule_id, finding.plugin),
            None => format!("{} (plugin {}), in code", finding.rule_id, finding.plugin),
        },
    )];
    let layers = match finding.evasions.as_slice() {
        [] => "in plain sight".to_owned(),
        layers => format!("through {}", layers.join(", ")),
    };
    facts.push(("layers", layers));
    facts.extend(rules.checks_of(&finding.rule_id));
    let (thresholds, score) = (policy.thresholds_for(&category), finding.score);
    let would = thresholds.decide(score);
    let (warn, block) = (at_most(thresholds.warn), at_most(thresholds.block));
    let bounds = format!("score {}; warns from {warn}, blocks from {block}", at_most(score));
    let decides = match (finding.suppressed, finding.shadow) {
        (true, _) => format!("nothing: it is suppressed, or on the allow list; else {would} ({bounds})"),
        (false, true) => format!("nothing: it is in shadow; else {would} ({bounds})"),
        (false, false) => format!("{would} by itself ({bounds})"),
    };
    facts.push(("decides", decides));
    facts
        .extend(changes(policy, role, finding, &category).into_iter().map(|change| ("would change", change)));
    facts
}

impl Explained {
    /// As JSON.
    pub(super) fn json(&self) -> Value {
        let findings = self.findings.iter().map(|facts| {
            let changes: Vec<&str> = facts
                .iter()
                .filter(|(name, _)| *name == "would change")
                .map(|(_, text)| text.as_str())
                .collect();
            let mut all: serde_json::Map<String, Value> = facts
                .iter()
                .filter(|(name, _)| *name != "would change")
                .map(|(name, text)| (name.replace(' ', "_"), text.as_str().into()))
                .collect();
            all.insert("would_change".to_owned(), json!(changes));
            Value::Object(all)
        });
        json!({
            "summary": self.summary,
            "findings": findings.collect::<Vec<_>>(),
            "concepts": self.concepts.iter().map(concepts_json).collect::<Vec<_>>(),
            "wording": self.wording.iter().map(|(_, of)| wording_json(of)).collect::<Vec<_>>(),
        })
    }

    /// For a person.
    pub(super) fn print(&self, output: &mut Output) {
        let heading = output.styled(Style::Bold, "why:");
        output.line(format_args!("\n{heading} {}", self.summary));
        for facts in &self.findings {
            output.line("");
            for (name, text) in facts {
                output.line(format_args!("  {name:HEADING_WIDTH$} {}", printable(text)));
            }
        }
        for explanation in &self.concepts {
            print_concepts(explanation, output);
        }
        for (text, explanation) in &self.wording {
            print_wording(text, explanation, output);
        }
    }
}

fn verdict(explanation: &Explanation) -> String {
    let Explanation { probability, warn, block, .. } = explanation;
    let bounds = format!("probability {probability:.2}; warns from {warn:.2}, blocks from {block:.2}");
    match (explanation.severity, explanation.missing) {
        (Some(severity), None) => format!("{severity} ({bounds})"),
        (Some(severity), Some(missing)) => {
            format!("{severity} ({bounds}); {missing:.2} log-odds short of blocking")
        }
        (None, missing) if explanation.is_alone() => {
            // A second one adds its own weight, which is not known beforehand.
            let short = odds(*warn) - explanation.log_odds;
            let why = match (explanation.ideas, probability >= warn) {
                (0, _) => "no idea of weight speaks for an attack, and two must to warn".to_owned(),
                (_, true) => {
                    "one idea alone does not warn; a second one near it would make it warn".to_owned()
                }
                (_, false) => format!(
                    "one idea alone does not warn; a second one near it does that adds {short:.2} log-odds"
                ),
            };
            let blocking = missing.unwrap_or_default();
            format!("no finding ({bounds}); {why}; without one it blocks from {blocking:.2} log-odds more")
        }
        (None, missing) => {
            format!("no finding ({bounds}); {:.2} log-odds short of warning", missing.unwrap_or_default())
        }
    }
}

/// The log-odds of a probability between 0.0 and 1.0.
fn odds(probability: f64) -> f64 {
    (probability / (1.0 - probability)).ln()
}

fn print_concepts(explanation: &Explanation, output: &mut Output) {
    let heading = output.styled(Style::Bold, "concepts weighed:");
    output.line(format_args!("\n{heading} {}", verdict(explanation)));
    output.line(format_args!("  {:+6.2} before anything is seen", explanation.bias));
    for term in explanation.terms.iter().take(TERMS_MAX) {
        let places: Vec<String> =
            term.places.iter().take(4).map(|place| format!("{}..{}", place.start, place.end)).collect();
        let at = if places.is_empty() { String::new() } else { format!(" at bytes {}", places.join(", ")) };
        let against = if term.is_against { ", speaks against an attack" } else { "" };
        let (odds, weight, value) = (term.log_odds, term.weight, term.value);
        let name = term.feature.replace('_', " ");
        output.line(format_args!("  {odds:+6.2} {name} ({weight:+.2} x {value:.2}){at}{against}"));
    }
    let more = explanation.terms.len().saturating_sub(TERMS_MAX);
    if more > 0 {
        output.line(format_args!("         and {more} more; --json has them all"));
    }
    output.line(format_args!("  {:+6.2} together", explanation.log_odds));
    if !explanation.decisive.is_empty() {
        let names: Vec<String> = explanation.decisive.iter().map(|name| name.replace('_', " ")).collect();
        output.line(format_args!("  less without: {}", names.join(", ")));
    }
}

/// The words of a text that gave most for an attack. Words of a text that is no attack are shown to nobody but who wrote it.
fn print_wording(text: &str, explanation: &wording::Explanation, output: &mut Output) {
    let heading = output.styled(Style::Bold, "wording weighed:");
    let verdict = explanation.severity.map_or("no finding".to_owned(), |severity| severity.to_string());
    let (warn, block) = (explanation.warn, explanation.block);
    let probability = explanation.probability;
    output.line(format_args!(
        "\n{heading} {probability:.2} probable: {verdict} (warns from {warn:.2}, blocks from {block:.2})"
    ));
    output.line(format_args!("  {:+6.2} before anything is read", explanation.bias));
    for term in explanation.terms.iter().take(TERMS_MAX) {
        let wording::Term { place, log_odds, .. } = term;
        let words = || text.get(place.clone()).map(printable).unwrap_or_default();
        let what = term.name().unwrap_or_else(words);
        output.line(format_args!("  {log_odds:+6.2} {what} at bytes {}..{}", place.start, place.end));
    }
}

fn wording_json(explanation: &wording::Explanation) -> Value {
    let term = |term: &wording::Term| {
        json!({
            "concept": term.concept,
            "means": term.means.iter().map(|class| &**class).collect::<Vec<&str>>(),
            "begins": term.begins,
            "start": term.place.start,
            "end": term.place.end,
            "log_odds": term.log_odds,
        })
    };
    let terms = explanation.terms.iter().map(term);
    json!({
        "probability": explanation.probability,
        "warn": explanation.warn,
        "block": explanation.block,
        "severity": explanation.severity.map(|severity| severity.as_str()),
        "bias": explanation.bias,
        "window": { "start": explanation.window.start, "end": explanation.window.end },
        "terms": terms.collect::<Vec<_>>(),
    })
}

fn concepts_json(explanation: &Explanation) -> Value {
    let terms = explanation.terms.iter().map(|term| {
        let places = term.places.iter().map(|place| json!({ "start": place.start, "end": place.end }));
        json!({
            "feature": term.feature,
            "is_against": term.is_against,
            "value": term.value,
            "weight": term.weight,
            "log_odds": term.log_odds,
            "places": places.collect::<Vec<_>>(),
        })
    });
    json!({
        "probability": explanation.probability,
        "warn": explanation.warn,
        "block": explanation.block,
        "severity": explanation.severity.map(|severity| severity.as_str()),
        "bias": explanation.bias,
        "log_odds": explanation.log_odds,
        "missing": explanation.missing,
        "ideas": explanation.ideas,
        "is_alone": explanation.is_alone(),
        "decisive": explanation.decisive,
        "window": { "start": explanation.window.start, "end": explanation.window.end },
        "terms": terms.collect::<Vec<_>>(),
    })
}
