//! `rules test`: every rule against its own examples, negative examples and known misses.
//!
//! Rules are compiled together with the built-in ones, because that is how they will run: ids must be unique and limits
//! hold for all. A given file that bears the name of a built-in one (`rules/<family>/<file>.toml`) stands in for it, so
//! that built-in rules can be changed and tested without building the program again.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use crate::cli::output::Style;
use crate::cli::{Exit, Failure, Output};
use crate::detect::{Scanner, find_with_rule};
use crate::rules::{
    RuleProblem, RuleProblems, RuleSet, RuleSetConfig, RuleSource, SelfCheck, builtin_sources, load_folder,
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
pub(super) fn run(arguments: &TestArguments, output: &mut Output) -> Result<Exit, Failure> {
    let (sources, wanted) = match sources(arguments) {
        Ok(sources) => sources,
        Err(RuleProblems(problems)) => {
            return report(arguments, &SelfCheck { problems, ..SelfCheck::default() }, &[], output);
        }
    };
    let check = match RuleSet::compile(&sources.files, &RuleSetConfig::default()) {
        Ok(set) => check(set, &wanted),
        Err(RuleProblems(problems)) => SelfCheck { problems, ..SelfCheck::default() },
    };
    report(arguments, &check, &sources.replaced, output)
}

/// What is compiled.
struct Sources {
    files: Vec<RuleSource>,
    /// Names of built-in files that given ones stand in for.
    replaced: Vec<String>,
}

/// The rule files to compile, and the names of those to test.
fn sources(arguments: &TestArguments) -> Result<(Sources, Vec<String>), RuleProblems> {
    let mut files = if arguments.without_builtin { Vec::new() } else { builtin_sources() };
    if arguments.paths.is_empty() {
        let wanted = files.iter().map(|file| file.name.clone()).collect();
        return Ok((Sources { files, replaced: Vec::new() }, wanted));
    }
    let mut given = Vec::new();
    let mut problems = Vec::new();
    for path in &arguments.paths {
        match load_folder(path) {
            Ok(found) if found.is_empty() => {
                let message = "holds no rule file; rule files end in `.toml`".to_owned();
                problems.push(problem_of_path(path.display().to_string(), message));
            }
            Ok(found) => given.extend(found),
            Err(RuleProblems(found)) => problems.extend(found),
        }
    }
    if !problems.is_empty() {
        return Err(RuleProblems(problems));
    }
    // Two paths may name the same file; it would quarrel with itself.
    given.sort_by(|a, b| a.name.cmp(&b.name));
    given.dedup_by(|a, b| a.name == b.name);
    let is_given = |builtin: &RuleSource| given.iter().any(|file| is_named(&file.name, &builtin.name));
    let replaced = files.iter().filter(|file| is_given(file)).map(|file| file.name.clone()).collect();
    files.retain(|file| !is_given(file));
    let wanted = given.iter().map(|file| file.name.clone()).collect();
    files.extend(given);
    Ok((Sources { files, replaced }, wanted))
}

/// Whether the file at `path` bears the name of the built-in file `builtin`, such as `rules/pii/email.toml`.
fn is_named(path: &str, builtin: &str) -> bool {
    // Absolute, because a path may be given from within the folder.
    std::path::absolute(path).is_ok_and(|path| path.ends_with(builtin))
}

fn problem_of_path(file: String, message: String) -> RuleProblem {
    RuleProblem { file, line: 0, rule_id: String::new(), field: String::new(), message }
}

fn check(set: RuleSet, wanted: &[String]) -> SelfCheck {
    let scanner = Scanner::new(Arc::new(set));
    self_check(
        scanner.rules(),
        |rule| wanted.iter().any(|name| **name == *rule.info.file),
        &|_, index, text, role, surface| find_with_rule(&scanner, index, text, Some(role), Some(surface)),
    )
}

fn report(
    arguments: &TestArguments,
    check: &SelfCheck,
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
        }))?;
        return Ok(exit);
    }
    for problem in &check.problems {
        output.line(problem);
    }
    for name in replaced {
        let note = format!("stands in for the built-in {name}");
        let note = output.styled(Style::Dim, note);
        output.line(note);
    }
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    let (rules, texts, problems) = (check.rules, check.texts, check.problems.len());
    let verdict = match problems {
        0 => output.styled(Style::Green, "ok"),
        n => output.styled(Style::Red, format!("{n} problem{}", plural(n))),
    };
    output.line(format_args!("{rules} rule{}, {texts} text{}: {verdict}", plural(rules), plural(texts)));
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
