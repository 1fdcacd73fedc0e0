//! Rule files: their shape, and what must hold of every rule.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;

use super::fixtures::Fixtures;
use super::pattern::Pattern;
use super::problem::{PathRuleProblem, PathRuleProblems};
use super::rule::{Accesses, PathRule};
use crate::decision::{Category, Severity};
use crate::text::line_of;

/// A file of path rules.
#[derive(Clone, Copy, Debug)]
pub struct PathRuleSource<'a> {
    /// Its name, for messages.
    pub file: &'a str,
    /// Its text, TOML.
    pub text: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    fixtures: FixturesDef,
    #[serde(default, rename = "rule")]
    rules: Vec<Spanned<RuleDef>>,
}

/// Where files of tests and dependencies lie. The lists of all files are put together.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[fixtures]`")]
struct FixturesDef {
    /// Folders of which everything below is left out.
    #[serde(default)]
    folders: Vec<String>,
    /// Names of files that are left out, with wildcards.
    #[serde(default)]
    names: Vec<String>,
    /// Hidden folders that may stand above such a folder; another one is taken for a place of credentials.
    #[serde(default)]
    hidden_folders: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[rule]]`")]
struct RuleDef {
    id: String,
    category: String,
    severity: Severity,
    paths: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
    #[serde(default)]
    allows_fixtures: bool,
    file_tools: Option<Accesses>,
    shell: Option<Accesses>,
    description: String,
    recommendation: String,
    #[serde(default)]
    references: Vec<String>,
    examples: Vec<String>,
    negative_examples: Vec<String>,
    #[serde(default)]
    known_misses: Vec<String>,
}

/// What was read: rules, their patterns in the same order, and where fixtures lie.
#[derive(Default)]
pub(super) struct Loaded {
    pub rules: Vec<PathRule>,
    pub patterns: Vec<Vec<Pattern>>,
    pub fixtures: Fixtures,
}

/// Reads files; every problem of every file is told.
pub(super) fn load(sources: &[PathRuleSource<'_>]) -> Result<Loaded, PathRuleProblems> {
    let mut loaded = Loaded::default();
    let mut problems = Vec::new();
    let mut places: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for source in sources {
        let file: RuleFile = match toml::from_str(source.text) {
            Ok(file) => file,
            Err(error) => {
                let line = error.span().map_or(0, |span| line_of(source.text, span.start));
                problems.push(problem(source.file, line, "", error.message().to_owned()));
                continue;
            }
        };
        let FixturesDef { folders, names, hidden_folders } = file.fixtures;
        loaded.fixtures.add(folders, names, hidden_folders);
        for spanned in file.rules {
            let line = line_of(source.text, spanned.span().start);
            let def = spanned.into_inner();
            let id = def.id.clone();
            if let Some((file, first)) = places.get(&id) {
                problems.push(problem(
                    source.file,
                    line,
                    &id,
                    format!("the id is taken by {file}:{first}; give it another"),
                ));
                continue;
            }
            places.insert(id.clone(), (source.file.to_owned(), line));
            match compile(def, source.file, line) {
                Ok((rule, patterns)) => {
                    loaded.rules.push(rule);
                    loaded.patterns.push(patterns);
                }
                Err(messages) => {
                    problems.extend(messages.into_iter().map(|text| problem(source.file, line, &id, text)));
                }
            }
        }
    }
    if problems.is_empty() { Ok(loaded) } else { Err(PathRuleProblems(problems)) }
}

fn problem(file: &str, line: usize, rule_id: &str, message: String) -> PathRuleProblem {
    PathRuleProblem { file: file.to_owned(), line, rule_id: rule_id.to_owned(), message }
}

fn is_id(text: &str) -> bool {
    let is_start = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    is_start
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'_'))
}

/// Compiles a rule, or says everything that is wrong with it.
fn compile(def: RuleDef, file: &str, line: usize) -> Result<(PathRule, Vec<Pattern>), Vec<String>> {
    let mut wrong = Vec::new();
    if !is_id(&def.id) {
        wrong.push(format!("id {:?} must be lower-case letters, digits, `.`, `-`, `_`", def.id));
    }
    if !is_id(&def.category) || !def.category.starts_with("path.") {
        wrong.push(format!("category {:?} must be `path.` and a name", def.category));
    }
    if def.paths.is_empty() {
        wrong.push("paths has none; give at least one".to_owned());
    }
    for (field, is_empty) in [
        ("description", def.description.trim().is_empty()),
        ("recommendation", def.recommendation.trim().is_empty()),
        ("examples", def.examples.is_empty()),
        ("negative_examples", def.negative_examples.is_empty()),
    ] {
        if is_empty {
            wrong.push(format!("{field} is empty"));
        }
    }
    let mut parse = |texts: &[String], field: &str| -> Vec<Pattern> {
        let parsed = texts.iter().map(|text| match field {
            "except" => Pattern::parse_exception(text),
            _ => Pattern::parse(text),
        });
        parsed
            .filter_map(|pattern| pattern.map_err(|text| wrong.push(format!("{field}: {text}"))).ok())
            .collect()
    };
    let patterns = parse(&def.paths, "paths");
    let exceptions = parse(&def.except, "except");
    let file_tools = def.file_tools.unwrap_or_else(Accesses::all);
    if !file_tools.warn_programs.is_empty() {
        wrong.push("file_tools: warn_programs is for `shell`; a file tool is no program".to_owned());
    }
    let shell = def.shell.unwrap_or_else(|| file_tools.clone());
    for (field, accesses) in [("file_tools", &file_tools), ("shell", &shell)] {
        if let Some(both) = accesses.block.iter().find(|access| accesses.warn.contains(access)) {
            wrong.push(format!("{field}: `{}` both blocks and warns; choose one", both.as_str()));
        }
    }
    if file_tools.block.is_empty()
        && file_tools.warn.is_empty()
        && shell.block.is_empty()
        && shell.warn.is_empty()
    {
        wrong.push("no access blocks or warns, so the rule can never say anything".to_owned());
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let rule = PathRule {
        id: Arc::from(def.id),
        category: Category::new(&def.category),
        severity: def.severity,
        paths: def.paths,
        except: def.except,
        allows_fixtures: def.allows_fixtures,
        file_tools,
        shell,
        description: def.description,
        recommendation: def.recommendation,
        references: def.references,
        examples: def.examples,
        negative_examples: def.negative_examples,
        known_misses: def.known_misses,
        file: Arc::from(file),
        line,
        exceptions,
    };
    Ok((rule, patterns))
}
