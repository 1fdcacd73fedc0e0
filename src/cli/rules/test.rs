//! `rules test`: every rule against its own examples, negative examples and known misses.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::guards::Guards;
use super::sources::{RuleFiles, sources_with};
use crate::cli::context::Context;
use crate::cli::output::Style;
use crate::cli::{Exit, Failure, Output};
use crate::detect::{Scanner, find_with_rule};
use crate::rules::{
    CompiledRule, LostByGates, RuleProblem, RuleProblems, RuleSet, RuleSetConfig, SelfCheck, lost_by_gates,
    self_check,
};

/// Arguments of `rules test`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TestArguments {
    /// Rule files and folders of them; compiled together with the built-in rules, and only these are tested.
    paths: Vec<PathBuf>,
    /// Leave the built-in rules out.
    #[arg(long, requires = "paths")]
    without_builtin: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(
    arguments: &TestArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let has_paths = !arguments.paths.is_empty();
    let paths = if has_paths { arguments.paths.clone() } else { context.settings()?.rules.paths };
    let guards = Guards::of(&paths);
    let (mut tested, replaced) = match sources_with(&guards.remaining, !arguments.without_builtin) {
        Ok(sources) => (test(&sources, has_paths), sources.replaced),
        Err(problems) => (failed(problems), Vec::new()),
    };
    guards.check(has_paths, !arguments.without_builtin, &mut tested.check);
    report(arguments, &tested, &replaced, output)
}

/// What the rules did with their texts, and what their gates lose.
#[derive(Default)]
struct Tested {
    check: SelfCheck,
    /// With other notes.
    lost: LostByGates,
}

fn failed(RuleProblems(problems): RuleProblems) -> Tested {
    Tested { check: SelfCheck { problems, ..SelfCheck::default() }, ..Tested::default() }
}

fn test(sources: &RuleFiles, only_given: bool) -> Tested {
    let set = match RuleSet::compile(&sources.files, &RuleSetConfig::default()) {
        Ok(set) => set,
        Err(problems) => return failed(problems),
    };
    let scanner = Scanner::new(Arc::new(set));
    let is_wanted =
        |rule: &CompiledRule| !only_given || sources.given.iter().any(|name| **name == *rule.info.file);
    let check = self_check(scanner.rules(), is_wanted, &|_, index, text, role, surface| {
        find_with_rule(&scanner, index, text, Some(role), Some(surface))
    });
    let mut lost = lost_by_gates(scanner.rules(), is_wanted);
    lost.notes.extend(unweighed(scanner.rules(), is_wanted));
    Tested { check, lost }
}

/// A note for each concept whose family has no weight in the model, so that its hits count for nothing.
fn unweighed(set: &RuleSet, is_wanted: impl Fn(&CompiledRule) -> bool) -> Vec<RuleProblem> {
    let Some(model) = set.model() else { return Vec::new() };
    let mut notes = Vec::new();
    for rule in set.rules().iter().filter(|rule| is_wanted(rule)) {
        // What only names the subject has no weight by design.
        let Some(concept) = rule.def.concept.as_ref().filter(|concept| !concept.is_topic) else { continue };
        if model.def.weights.contains_key(&concept.family) {
            continue;
        }
        notes.push(RuleProblem {
            file: rule.info.file.to_string(),
            line: rule.info.line,
            rule_id: rule.info.id.to_string(),
            field: "family".to_owned(),
            message: format!(
                "the model has no weight for `{}`, so that it counts for nothing; use a family of the model, or train one of \
                 your own with `portcullis train`",
                concept.family
            ),
        });
    }
    notes
}

fn report(
    arguments: &TestArguments,
    Tested { check, lost }: &Tested,
    replaced: &[String],
    output: &mut Output,
) -> Result<Exit, Failure> {
    let exit = if check.problems.is_empty() { Exit::Ok } else { Exit::Data };
    if arguments.json {
        output.json(&json!({
            "rules": check.rules,
            "texts": check.texts,
            "replaced": replaced,
            "problems": check.problems.iter().map(problem_as_json).collect::<Vec<_>>(),
            "notes": lost.notes.iter().map(problem_as_json).collect::<Vec<_>>(),
            "unknown_gates": lost.unknown,
        }))?;
        return Ok(exit);
    }
    for problem in &check.problems {
        output.line(problem);
    }
    for note in &lost.notes {
        let note = output.styled(Style::Dim, format_args!("note: {note}"));
        output.line(note);
    }
    if !replaced.is_empty() {
        let note = format!("in place of built-in files: {}", replaced.join(", "));
        let note = output.styled(Style::Dim, note);
        output.line(note);
    }
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    let (rules, texts) = (check.rules, check.texts);
    let verdict = match check.problems.len() {
        0 => output.styled(Style::Green, "ok"),
        n => output.styled(Style::Red, format_args!("{n} problem{}", plural(n))),
    };
    let unknown = match lost.unknown.len() {
        0 => String::new(),
        n => output.styled(
            Style::Dim,
            format_args!("; {n} of which cannot be told what the gate loses: {}", lost.unknown.join(", ")),
        ),
    };
    output.line(format_args!(
        "{rules} rule{}, {texts} text{}: {verdict}{unknown}",
        plural(rules),
        plural(texts)
    ));
    Ok(exit)
}

fn problem_as_json(problem: &RuleProblem) -> serde_json::Value {
    json!({
        "file": problem.file,
        "line": problem.line,
        "rule": problem.rule_id,
        "field": problem.field,
        "message": problem.message,
    })
}
