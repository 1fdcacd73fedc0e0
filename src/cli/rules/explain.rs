//! `rules explain`: what one rule finds, when it runs and what it decides, in words.

use clap::Args;
use serde_json::json;

use super::lookup::Rules;
use crate::cli::context::Context;
use crate::cli::output::Style;
use crate::cli::snippet::printable;
use crate::cli::{Exit, Failure, Output};
use crate::decision::Mode;
use crate::grpc::list_rules::Listed;
use crate::policy::Policy;
use crate::rules::{CompiledRule, Role, RuleDef, Surface, Trigger};

/// Width of the column of headings.
const HEADING_WIDTH: usize = 11;

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
    let rule = rules.find(&arguments.id)?;
    let detector = rules.detector(&rule);
    let mut facts = common_facts(&rule, rules.policy());
    if let Some(detector) = detector {
        facts.extend(detector_facts(detector, &Written::of(&rules, &rule)));
    }
    facts.push(("advice", rule.recommendation.to_owned()));
    facts.extend(rule.references.iter().map(|reference| ("reference", reference.clone())));
    facts.push(("file", format!("{}:{}", rule.file, rule.line)));
    if arguments.json {
        // References stand in the rule itself, as a list.
        let facts: serde_json::Map<_, _> = facts
            .into_iter()
            .filter(|(heading, _)| *heading != "reference")
            .map(|(heading, fact)| (heading.to_owned(), fact.into()))
            .collect();
        output.json(&json!({
            "rule": rule.told(&rules.snapshot),
            "explanation": facts,
            "pattern": detector.map(|detector| &detector.def.pattern),
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
    if let Some(detector) = detector {
        output.line(format_args!("{:HEADING_WIDTH$} {}", "pattern", detector.def.pattern.trim()));
    }
    Ok(Exit::Ok)
}

/// Parts of a rule that are read from its text, since only the compiler of rules knows them otherwise.
#[derive(Default)]
struct Written {
    validators: Vec<String>,
    excludes: usize,
}

impl Written {
    fn of(rules: &Rules, rule: &Listed<'_>) -> Self {
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
fn common_facts(rule: &Listed<'_>, policy: &Policy) -> Vec<(&'static str, String)> {
    let score = rule.severity.score() * rule.confidence;
    vec![
        ("category", format!("{} (plugin {})", rule.category, rule.plugin)),
        ("severity", format!("{}, confidence {}: score {score:.2}", rule.severity, rule.confidence)),
        ("decision", decision(rule, policy)),
    ]
}

/// What holds of a detector of text.
fn detector_facts(rule: &CompiledRule, written: &Written) -> Vec<(&'static str, String)> {
    let def = &rule.def;
    let mut facts = vec![("gate", gate(def))];
    if let Some(bytes) = longest_match(def) {
        facts.push(("window", format!("a match has at most {bytes} bytes")));
    }
    if !def.near.is_empty() {
        let words = def.near.join(", ");
        facts.push(("context", format!("within {} bytes stands one of: {words}", def.near_distance)));
    }
    if !written.validators.is_empty() {
        facts.push(("validators", format!("all must accept the value: {}", written.validators.join(", "))));
    }
    if written.excludes > 0 {
        facts.push(("exclusions", format!("{} patterns drop a match", written.excludes)));
    }
    facts.push(("applies to", applies_to(rule)));
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
        "{} under policy `{}` (warn from {:.2}, block from {:.2})",
        of_mode(plain),
        policy.name(),
        thresholds.warn,
        thresholds.block
    );
    if system != plain {
        text.push_str(&format!("; in system messages {}", of_mode(system)));
    }
    text
}

fn gate(def: &RuleDef) -> String {
    match def.trigger {
        None => {
            let literals: Vec<String> = def.literals.iter().map(|literal| format!("{literal:?}")).collect();
            format!("runs only near one of: {}", literals.join(", "))
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

fn applies_to(rule: &CompiledRule) -> String {
    let roles: Vec<&str> =
        Role::ALL.into_iter().filter(|role| rule.applies_to_role(*role)).map(Role::as_str).collect();
    let surfaces: Vec<&str> = Surface::ALL
        .into_iter()
        .filter(|surface| rule.applies_to_surface(*surface))
        .map(|surface| match surface {
            Surface::Text => "messages",
            Surface::ToolArgs => "tool arguments",
            Surface::ToolResult => "tool results",
            Surface::Document => "documents",
            Surface::Stream => "live output",
        })
        .collect();
    let roles = if roles.len() == Role::ALL.len() { "every role".to_owned() } else { roles.join(", ") };
    let surfaces =
        if surfaces.len() == Surface::ALL.len() { "every text".to_owned() } else { surfaces.join(", ") };
    format!("{roles}; {surfaces}")
}
