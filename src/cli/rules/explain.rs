//! `rules explain`: what one rule finds, when it runs and what it decides, in words.

use clap::Args;
use serde_json::{Value, json};

use super::conditions;
use super::lookup::Rules;
use crate::cli::context::Context;
use crate::cli::output::Style;
use crate::cli::snippet::printable;
use crate::cli::{Exit, Failure, Output};
use crate::decision::{Category, Decision, Mode, above, at_most};
use crate::detect::concepts::{RULE_ID, feature_names};
use crate::detect::{PII, wording};
use crate::grpc::list_rules::Listed;
use crate::policy::Policy;
use crate::rules::wording::BUCKETS;
use crate::rules::{CompiledRule, MetaInfo, RuleDef, STREAMS, Trigger};

/// Most literals that are told; `rules show` has them all.
const LITERALS_MAX: usize = 12;

/// Width of the column of headings.
const HEADING_WIDTH: usize = 11;

/// A heading and what there is to say under it.
pub(in crate::cli) type Fact = (&'static str, String);

/// Arguments of `rules explain`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ExplainArguments {
    /// Id of the rule.
    id: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(
    arguments: &ExplainArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let rules = Rules::load(context)?;
    if let Some(info) = rules.coded(&arguments.id) {
        return in_code(&rules, info, arguments.json, output);
    }
    let rule = rules.find_any(&arguments.id)?;
    let detector = rules.detector(&rule);
    let mut facts = common_facts(&rule, rules.policy());
    if let Some(detector) = detector {
        facts.extend(detector_facts(detector, &Written::of(&rules, &rule)));
    }
    let mut condition = rules.definition_of(&rule).and_then(|of| conditions::of(rule.plugin, &of));
    facts.extend(condition.iter_mut().flat_map(|told| std::mem::take(&mut told.facts)));
    if rule.is_in_code() {
        facts.push(("gate", "looked for in code, wherever a bundle is reviewed".to_owned()));
    }
    let (asked, guard_pattern) = condition.map_or((Value::Null, None), |told| (told.written, told.pattern));
    let pattern = detector
        .filter(|one| !one.is_of_phrases())
        .map(|one| one.def.pattern.trim().to_owned())
        .or(guard_pattern);
    facts.extend(change_facts(
        rule.id,
        rule.category,
        rule.severity.score() * rule.confidence,
        rules.policy(),
    ));
    facts.push(("advice", rule.recommendation.to_owned()));
    facts.extend(rule.references.iter().map(|reference| ("reference", reference.clone())));
    facts.push(match rule.is_in_code() {
        true => ("file", "none: it is looked for in code".to_owned()),
        false => ("file", format!("{}:{}", rule.file, rule.line)),
    });
    if arguments.json {
        let changes: Vec<String> = of_heading(&facts, "change");
        // References stand in the rule itself, as a list.
        let facts: serde_json::Map<_, _> = facts
            .into_iter()
            .filter(|(heading, _)| *heading != "reference" && *heading != "change")
            .map(|(heading, fact)| (heading.to_owned(), fact.into()))
            .collect();
        output.json(&json!({
            "rule": rule.told(&rules.snapshot),
            "explanation": facts,
            "would_change": changes,
            "pattern": pattern,
            "condition": asked,
            "phrases": detector.map(|one| one.def.phrases_written.as_slice()).unwrap_or_default(),
            "examples": rule.examples,
            "negative_examples": rule.negative_examples,
            "known_misses": rule.known_misses,
        }))?;
        return Ok(Exit::Ok);
    }
    let heading = output.styled(Style::Bold, rule.id);
    output.line(heading);
    output.line(rule.description);
    output.line("");
    for (heading, fact) in facts {
        output.line(format_args!("{heading:HEADING_WIDTH$} {fact}"));
    }
    let lists =
        [("found in", rule.examples), ("not in", rule.negative_examples), ("missed in", rule.known_misses)];
    for (heading, texts) in lists {
        for text in texts {
            // One line each, whatever the text holds.
            let text = printable(&text.replace('\n', "\\n"));
            output.line(format_args!("{heading:HEADING_WIDTH$} {text}"));
        }
    }
    if let Some(pattern) = pattern {
        output.line(format_args!("{:HEADING_WIDTH$} {}", "pattern", pattern.trim()));
    }
    for phrase in detector.iter().flat_map(|one| &one.def.phrases_written) {
        output.line(format_args!("{:HEADING_WIDTH$} {phrase}", "phrase"));
    }
    Ok(Exit::Ok)
}

/// What stands under one heading.
fn of_heading(facts: &[Fact], wanted: &str) -> Vec<String> {
    facts.iter().filter(|(heading, _)| *heading == wanted).map(|(_, fact)| fact.clone()).collect()
}

/// A detector in code, or the model that weighs concepts and words.
fn in_code(rules: &Rules, info: &MetaInfo, as_json: bool, output: &mut Output) -> Result<Exit, Failure> {
    let set = rules.snapshot.scanner().rules();
    let model = set.model().filter(|_| *info.id == *RULE_ID);
    let policy = rules.policy();
    let mut facts = vec![
        ("category", format!("{} (plugin {})", info.category, info.plugin)),
        ("severity", format!("{}, confidence {}: score {:.2}", info.severity, info.confidence, info.score)),
        ("gate", "detector in code; runs where the plugin does".to_owned()),
    ];
    let mut weights = Vec::new();
    if let Some(model) = model {
        let (warn, block) = (model.def.warn, model.def.block);
        facts[1].1 =
            format!("medium from probability {warn:.2}, high from {block:.2}; the score grows with it");
        let own = model.def.bounds.iter().map(|bounds| {
            let (who, from) = (bounds.speaker.as_str(), bounds.from_bytes);
            format!("{who} from {from} bytes: {:.2} and {:.2}", bounds.warn, bounds.block)
        });
        facts.extend((!model.def.bounds.is_empty()).then(|| ("bounds", own.collect::<Vec<_>>().join("; "))));
        facts[2].1 = format!(
            "runs where a concept of the rules speaks for an attack; windows of {} bytes are weighed",
            model.def.window
        );
        let scale = model.def.scale;
        let is_against =
            |name: &str| set.families().iter().any(|concept| concept.is_against && concept.family == name);
        weights = feature_names(set.families())
            .into_iter()
            .map(|name| (model.weight(&name) * scale, is_against(&name), name))
            .filter(|(weight, ..)| *weight != 0.0)
            .collect();
        weights.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.2.cmp(&b.2)));
        facts.push((
            "bias",
            format!("{:+.2} log-odds before anything is seen", f64::from(model.def.bias) * scale),
        ));
    }
    let wording =
        set.model().and_then(|model| model.wording.as_ref()).filter(|_| *info.id == *wording::RULE_ID);
    if let Some(wording) = wording {
        facts[1].1 = "medium and high by the bounds below; the score grows with the probability".to_owned();
        facts[2].1 = format!(
            "reads the words of users and tools around what speaks for an attack; {} of {} places of its table weigh something",
            wording.known(),
            BUCKETS
        );
        let meanings = set.meanings();
        let known = format!("{} words and stems in {} classes", meanings.len(), meanings.names().len());
        facts.push(("meanings", known));
        let own = wording
            .own_bounds()
            .iter()
            .map(|bounds| format!("{}: {:.2} and {:.2}", bounds.kind(), bounds.warn, bounds.block));
        facts.push(("bounds", own.collect::<Vec<_>>().join("; ")));
        facts.push(("bias", format!("{:+.2} log-odds before anything is read", wording.bias(1))));
    }
    facts.extend(change_facts(&info.id, &info.category, info.score, policy));
    facts.push(("advice", info.recommendation.to_string()));
    facts.push(("file", info.file.to_string()));
    if as_json {
        let explanation: serde_json::Map<_, _> = facts
            .iter()
            .filter(|(heading, _)| *heading != "change")
            .map(|(heading, fact)| ((*heading).to_owned(), fact.as_str().into()))
            .collect();
        let weights = weights.iter().map(|(weight, is_against, name)| {
            json!({ "feature": name, "log_odds": weight, "is_against": is_against })
        });
        output.json(&json!({
            "rule": {
                "id": *info.id,
                "plugin": *info.plugin,
                "category": info.category.as_str(),
                "description": *info.description,
            },
            "explanation": explanation,
            "would_change": of_heading(&facts, "change"),
            "weights": weights.collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::Ok);
    }
    let heading = output.styled(Style::Bold, &info.id);
    output.line(heading);
    output.line(&info.description);
    output.line("");
    for (heading, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
        output.line(format_args!("{heading:HEADING_WIDTH$} {fact}"));
    }
    for (weight, is_against, name) in weights {
        let against = if is_against { ", speaks against an attack" } else { "" };
        let name = name.replace('_', " ");
        output.line(format_args!("{:HEADING_WIDTH$} {weight:+.2} log-odds for {name}{against}", "weight"));
    }
    Ok(Exit::Ok)
}

/// What of a policy would change what a finding of that score decides.
fn change_facts(id: &str, category: &Category, score: f64, policy: &Policy) -> Vec<Fact> {
    let thresholds = policy.thresholds_for(category);
    let bound = match thresholds.decide(score) {
        // A threshold is at most 1.0.
        Decision::Block if score >= 1.0 => "no threshold: the score is the highest there is".to_owned(),
        Decision::Block => format!("`categories.{category}.block` above {}: it warns", above(score)),
        Decision::Warn => format!("`categories.{category}.block` of at most {}: it blocks", at_most(score)),
        _ => format!("`categories.{category}.warn` of at most {}: it warns", at_most(score)),
    };
    let mut all =
        vec![("change", bound), ("change", format!("`rules.{id}.mode: shadow` or `off`: it has no say"))];
    if category.is_within(PII) {
        all.push(("change", "`pii.allow_list` with the value or its mail domain: it is excused".to_owned()));
    }
    all
}

/// Parts of a rule that are read from its text, since only the compiler of rules knows them otherwise.
#[derive(Default)]
pub(super) struct Written {
    validators: Vec<String>,
    excludes: usize,
}

impl Written {
    pub(super) fn of(rules: &Rules, rule: &Listed<'_>) -> Self {
        let table = rules.text_of(rule).and_then(|text| text.parse::<toml::Table>().ok());
        let Some(table) = table else { return Self::default() };
        let list = |key: &str| {
            let value = table.get("rule").and_then(|rules| rules.get(0)).and_then(|rule| rule.get(key));
            match value {
                Some(toml::Value::String(one)) => vec![one.clone()],
                Some(toml::Value::Array(many)) => {
                    many.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect()
                }
                _ => Vec::new(),
            }
        };
        let has = |key: &str| usize::from(!list(key).is_empty());
        Self {
            validators: list("validator"),
            excludes: list("exclude").len() + has("exclude_before") + has("exclude_after"),
        }
    }
}

/// What holds of a rule of any kind.
fn common_facts(rule: &Listed<'_>, policy: &Policy) -> Vec<Fact> {
    let score = rule.severity.score() * rule.confidence;
    vec![
        ("category", format!("{} (plugin {})", rule.category, rule.plugin)),
        ("severity", format!("{}, confidence {}: score {score:.2}", rule.severity, rule.confidence)),
        ("decision", decision(rule, policy)),
    ]
}

/// What holds of a detector of text.
pub(super) fn detector_facts(rule: &CompiledRule, written: &Written) -> Vec<Fact> {
    let def = &rule.def;
    let mut facts = vec![("gate", gate(def))];
    if let Some(bytes) = longest_match(def) {
        facts.push(("window", format!("a match has at most {bytes} bytes")));
    }
    if !def.near.is_empty() {
        let words = def.near.join(", ");
        let inside = if def.near_inside_words { ", in a longer word too" } else { "" };
        facts.push((
            "context",
            format!("within {} characters stands one of: {words}{inside}", def.near_within()),
        ));
    }
    if !written.validators.is_empty() {
        facts.push(("validators", format!("all must accept the value: {}", written.validators.join(", "))));
    }
    if written.excludes > 0 {
        facts.push(("exclusions", format!("{} patterns drop a match", written.excludes)));
    }
    if let Some(shown) = &rule.info_if_shown {
        let fact = format!(
            "confidence {:.2} where the text only shows it: score {:.2}",
            shown.confidence, shown.score
        );
        facts.push(("shown", fact));
    }
    if !def.commands.is_empty() {
        let place = if def.any_command { "some command that begins" } else { "the command that stands" };
        let named = def.commands.join(", ");
        facts.push((
            "commands",
            format!("for {place} there holds a rule or category of HIGH or more: {named}"),
        ));
    }
    facts.push((
        "applies to",
        if *rule.info.plugin == *STREAMS {
            "live output of watched processes, by lines with some of those before".to_owned()
        } else {
            rule.applies_to()
        },
    ));
    if !rule.countries.is_empty() {
        facts.push(("countries", rule.countries.codes().collect::<Vec<_>>().join(", ")));
    }
    facts
}

/// What a finding of this rule decides under a policy.
fn decision(rule: &Listed<'_>, policy: &Policy) -> String {
    let thresholds = policy.thresholds_for(rule.category);
    let of_mode = |mode: Mode| match mode {
        Mode::Enforce => thresholds.decide(rule.severity.score() * rule.confidence).as_str().to_owned(),
        Mode::Shadow => "in shadow, decides nothing".to_owned(),
        Mode::Off => "off".to_owned(),
    };
    let mode = |role_is_system| policy.mode_of(rule.plugin, rule.id, rule.category, role_is_system);
    let (plain, system) = (mode(false), mode(true));
    let mut text = format!(
        "{} under policy `{}` (warn from {}, block from {})",
        of_mode(plain),
        policy.name(),
        at_most(thresholds.warn),
        at_most(thresholds.block)
    );
    if system != plain {
        text.push_str(&format!("; in system messages {}", of_mode(system)));
    }
    text
}

fn gate(def: &RuleDef) -> String {
    match def.trigger {
        None => {
            let shown = def.gate_literals().take(LITERALS_MAX).map(|literal| format!("{literal:?}"));
            let more = def.gate_literals().count().saturating_sub(LITERALS_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("runs only near one of: {}{more}", shown.collect::<Vec<_>>().join(", "))
        }
        Some(Trigger::Digits) => {
            format!("runs only on clusters of at least {} digits", def.trigger_min.unwrap_or(4))
        }
        Some(Trigger::Token) => {
            format!("runs only on unbroken tokens of at least {} bytes", def.trigger_min.unwrap_or(20))
        }
        Some(Trigger::Separator) => format!("runs only near one of the characters {}", def.separators),
    }
}

/// Longest match in bytes, as far as the pattern or the rule bounds it.
fn longest_match(def: &RuleDef) -> Option<usize> {
    let parser = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build().parse(&def.pattern);
    let own = parser.ok().and_then(|hir| hir.properties().maximum_len());
    own.into_iter().chain(def.match_length_max).min()
}
