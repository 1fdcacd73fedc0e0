//! Rule files: their shape, and what must hold of every rule.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex_automata::meta::Regex;
use serde::Deserialize;
use toml::Spanned;

use super::CommandRules;
use super::class::{CLASSES_MAX, ClassDef, Classes, Workspace};
use super::problem::{CommandRuleProblem, CommandRuleProblems};
use super::rule::{CommandRule, Condition, TargetValidator};
use crate::decision::{Category, Severity};
use crate::paths::PlaceKind;
use crate::shell::effect::{EffectKind, TargetKind};
use crate::text::line_of;

/// A file of command rules.
#[derive(Clone, Copy, Debug)]
pub struct CommandRuleSource<'a> {
    /// Its name, for messages.
    pub file: &'a str,
    /// Its text, TOML.
    pub text: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default, rename = "class")]
    classes: Vec<Spanned<ClassToml>>,
    #[serde(default, rename = "rule")]
    rules: Vec<Spanned<RuleToml>>,
}

/// A class: a path is in it when it is of one of the kinds, or fits one of the paths, and fits no exception.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[class]]`")]
struct ClassToml {
    name: String,
    #[serde(default)]
    kinds: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
    /// `root` or `inside`.
    workspace: Option<String>,
    /// Whether the rules about sensitive paths decide.
    #[serde(default)]
    sensitive: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[rule]]`")]
struct RuleToml {
    id: String,
    category: String,
    severity: Severity,
    #[serde(default = "certain")]
    confidence: f64,
    effects: Vec<String>,
    #[serde(default)]
    classes: Vec<String>,
    #[serde(default)]
    not_classes: Vec<String>,
    #[serde(default)]
    target_kinds: Vec<String>,
    recursive: Option<bool>,
    forced: Option<bool>,
    has_target: Option<bool>,
    #[serde(default)]
    programs: Vec<String>,
    #[serde(default)]
    not_programs: Vec<String>,
    #[serde(default)]
    details: Vec<String>,
    #[serde(default)]
    not_details: Vec<String>,
    detail_pattern: Option<String>,
    not_detail_pattern: Option<String>,
    target_pattern: Option<String>,
    not_target_pattern: Option<String>,
    target_validator: Option<String>,
    #[serde(default)]
    via: Vec<String>,
    #[serde(default)]
    not_via: Vec<String>,
    #[serde(default)]
    with: Vec<String>,
    description: String,
    recommendation: String,
    #[serde(default)]
    references: Vec<String>,
    examples: Vec<String>,
    negative_examples: Vec<String>,
    #[serde(default)]
    known_misses: Vec<String>,
}

const fn certain() -> f64 {
    1.0
}

/// Names of kinds of places, as classes use them.
const PLACES: &[(&str, PlaceKind)] = &[
    ("root", PlaceKind::Root),
    ("system_top", PlaceKind::SystemTop),
    ("system", PlaceKind::System),
    ("local", PlaceKind::Local),
    ("homes", PlaceKind::Homes),
    ("home", PlaceKind::Home),
    ("below_home", PlaceKind::BelowHome),
    ("temp_top", PlaceKind::TempTop),
    ("temp", PlaceKind::Temp),
    ("device", PlaceKind::Device),
    ("stream", PlaceKind::Stream),
    ("kernel", PlaceKind::Kernel),
    ("working_directory", PlaceKind::WorkingDirectory),
    ("below_working_directory", PlaceKind::BelowWorkingDirectory),
    ("above_working_directory", PlaceKind::AboveWorkingDirectory),
    ("unknown", PlaceKind::Unknown),
    ("other", PlaceKind::Other),
];

/// Names of kinds of targets.
const TARGETS: &[(&str, TargetKind)] = &[
    ("path", TargetKind::Path),
    ("remote", TargetKind::Remote),
    ("network", TargetKind::Network),
    ("name", TargetKind::Name),
];

/// Collects what is wrong with one file.
struct Problems<'a> {
    file: &'a str,
    all: &'a mut Vec<CommandRuleProblem>,
}

impl Problems<'_> {
    fn push(&mut self, line: usize, id: &str, message: impl Into<String>) {
        let (file, rule_id, message) = (self.file.to_owned(), id.to_owned(), message.into());
        self.all.push(CommandRuleProblem { file, line, rule_id, message });
    }
}

pub(super) fn load(sources: &[CommandRuleSource<'_>]) -> Result<CommandRules, CommandRuleProblems> {
    let mut all = Vec::new();
    let mut files = Vec::new();
    let mut classes = Classes::default();
    for source in sources {
        let mut problems = Problems { file: source.file, all: &mut all };
        match toml::from_str::<RuleFile>(source.text) {
            Ok(file) => {
                for class in file.classes {
                    let line = line_of(source.text, class.span().start);
                    add_class(&mut classes, class.into_inner(), line, &mut problems);
                }
                files.push((source, file.rules));
            }
            Err(error) => {
                let line = error.span().map_or(0, |span| line_of(source.text, span.start));
                problems.push(line, "", error.message());
            }
        }
    }
    let mut rules: Vec<CommandRule> = Vec::new();
    let mut places: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for (source, defs) in files {
        let file: Arc<str> = Arc::from(source.file);
        for spanned in defs {
            let line = line_of(source.text, spanned.span().start);
            let def = spanned.into_inner();
            let mut problems = Problems { file: source.file, all: &mut all };
            if let Some((file, first)) = places.get(&def.id) {
                let message = format!("the id is taken by {file}:{first}; give it another");
                problems.push(line, &def.id, message);
                continue;
            }
            places.insert(def.id.clone(), (source.file.to_owned(), line));
            rules.push(compile(def, &classes, Arc::clone(&file), line, &mut problems));
        }
    }
    if !all.is_empty() {
        return Err(CommandRuleProblems(all));
    }
    let mut by_kind = vec![Vec::new(); EffectKind::ALL.len()];
    for (index, rule) in rules.iter().enumerate() {
        for kind in &rule.effects {
            by_kind[*kind as usize].push(index);
        }
    }
    Ok(CommandRules { rules, classes, by_kind })
}

fn add_class(classes: &mut Classes, def: ClassToml, line: usize, problems: &mut Problems<'_>) {
    let name = def.name.clone();
    let mut class = ClassDef {
        name: def.name,
        paths: def.paths,
        except: def.except,
        sensitive: def.sensitive,
        ..ClassDef::default()
    };
    for kind in &def.kinds {
        match PLACES.iter().find(|(name, _)| name == kind) {
            Some((_, kind)) => class.kinds.push(*kind),
            None => problems.push(
                line,
                &name,
                format!("kinds: {kind:?} is no kind of place; {}", names(PLACES.iter().map(|p| p.0))),
            ),
        }
    }
    class.workspace = match def.workspace.as_deref() {
        None => None,
        Some("root") => Some(Workspace::Root),
        Some("inside") => Some(Workspace::Inside),
        Some(other) => {
            problems.push(line, &name, format!("workspace: {other:?} must be `root` or `inside`"));
            None
        }
    };
    if class.kinds.is_empty() && class.paths.is_empty() && class.workspace.is_none() && !class.sensitive {
        problems.push(line, &name, "the class is empty; give kinds, paths, workspace or sensitive");
    }
    for path in class.paths.iter().chain(&class.except) {
        let anchored = path.starts_with(['/', '~', '*', '.']) || path.as_bytes().get(1) == Some(&b':');
        if !anchored || (path.len() > 1 && path.ends_with('/')) {
            problems.push(
                line,
                &name,
                format!(
                    "path {path:?} must begin with `/`, `~`, `.`, `**/` or a drive, and not end with `/`"
                ),
            );
        }
    }
    if !classes.add(class) {
        problems.push(
            line,
            &name,
            format!("the name is taken, or there are more than {CLASSES_MAX} classes"),
        );
    }
}

fn names<'a>(known: impl Iterator<Item = &'a str>) -> String {
    format!("known are {}", known.collect::<Vec<_>>().join(", "))
}

fn is_id(text: &str) -> bool {
    text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'_'))
}

fn compile(
    def: RuleToml,
    classes: &Classes,
    file: Arc<str>,
    line: usize,
    problems: &mut Problems<'_>,
) -> CommandRule {
    let id = def.id.clone();
    let mut wrong = |message: String| problems.push(line, &id, message);
    if !is_id(&def.id) {
        wrong(format!("id {:?} must be lower-case letters, digits, `.`, `-`, `_`", def.id));
    }
    if !is_id(&def.category) || !def.category.starts_with("command.") {
        wrong(format!("category {:?} must be `command.` and a name", def.category));
    }
    if !(def.confidence > 0.0 && def.confidence <= 1.0) {
        wrong(format!("confidence {} must be above 0.0 and at most 1.0", def.confidence));
    }
    for (field, is_empty) in [
        ("effects", def.effects.is_empty()),
        ("description", def.description.trim().is_empty()),
        ("recommendation", def.recommendation.trim().is_empty()),
        ("examples", def.examples.is_empty()),
        ("negative_examples", def.negative_examples.is_empty()),
    ] {
        if is_empty {
            wrong(format!("{field} is empty"));
        }
    }
    let mut kinds = |given: &[String], field: &str| -> Vec<EffectKind> {
        let find = |name: &String| EffectKind::ALL.iter().copied().find(|kind| kind.as_str() == name);
        given
            .iter()
            .filter_map(|name| {
                let found = find(name);
                if found.is_none() {
                    wrong(format!(
                        "{field}: {name:?} is no kind of effect; {}",
                        names(EffectKind::ALL.iter().map(|k| k.as_str()))
                    ));
                }
                found
            })
            .collect()
    };
    let effects = kinds(&def.effects, "effects");
    let with = kinds(&def.with, "with");
    let mut bits = |given: &[String], field: &str| -> u64 {
        given.iter().fold(0, |bits, name| match classes.bit(name) {
            Some(bit) => bits | bit,
            None => {
                wrong(format!("{field}: there is no class {name:?}"));
                bits
            }
        })
    };
    let (class_bits, not_class_bits) = (bits(&def.classes, "classes"), bits(&def.not_classes, "not_classes"));
    let mut target_kinds = Vec::new();
    for name in &def.target_kinds {
        match TARGETS.iter().find(|(known, _)| known == name) {
            Some((_, kind)) => target_kinds.push(*kind),
            None => {
                wrong(format!("target_kinds: {name:?} is unknown; {}", names(TARGETS.iter().map(|t| t.0))))
            }
        }
    }
    let target_validator = def.target_validator.as_deref().and_then(|name| {
        let known = TargetValidator::of(name);
        if known.is_none() {
            wrong(format!("target_validator: {name:?} is unknown; metadata-address"));
        }
        known
    });
    let mut regex = |pattern: &Option<String>, field: &str| -> Option<Regex> {
        let pattern = pattern.as_deref()?;
        Regex::new(pattern).map_err(|error| wrong(format!("{field}: {error}"))).ok()
    };
    let condition = Condition {
        classes: class_bits,
        not_classes: not_class_bits,
        target_kinds,
        recursive: def.recursive,
        forced: def.forced,
        has_target: def.has_target,
        detail: regex(&def.detail_pattern, "detail_pattern"),
        not_detail: regex(&def.not_detail_pattern, "not_detail_pattern"),
        target: regex(&def.target_pattern, "target_pattern"),
        not_target: regex(&def.not_target_pattern, "not_target_pattern"),
        target_validator,
        programs: def.programs,
        not_programs: def.not_programs,
        details: def.details,
        not_details: def.not_details,
        via: def.via,
        not_via: def.not_via,
        with,
    };
    CommandRule {
        id: Arc::from(def.id),
        category: Category::new(&def.category),
        severity: def.severity,
        confidence: def.confidence,
        effects,
        description: def.description,
        recommendation: def.recommendation,
        references: def.references,
        examples: def.examples,
        negative_examples: def.negative_examples,
        known_misses: def.known_misses,
        file,
        line,
        condition,
    }
}
