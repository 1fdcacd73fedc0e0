//! Rule files from text or from a folder.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::model::Model;
use super::phrase_rule::{self, NOTHING, SENTENCE_BYTES};
use super::problem::{RuleProblem, RuleProblems};
use super::schema::{
    Concept, ConceptDef, LinedConcept, LinedFile, LinedMeanings, LinedModel, LinedRule, RuleDef, RuleFile,
};
use super::{define, meanings, phrases};
use crate::text::line_of;

/// Largest rule file, in bytes. The largest of the built-in ones has a twentieth of it.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Most files in one folder tree.
const FILES_MAX: usize = 2_000;
/// Deepest folder.
const DEPTH_MAX: usize = 8;

/// Folders directly below a folder of rules that hold rules of other kinds, which their engines read.
pub const OTHER_FOLDERS: [&str; 4] = ["bundles", "commands", "paths", "streams"];

/// The text of one rule file and where it came from.
#[derive(Clone, Debug)]
pub struct RuleSource {
    /// Name for messages: a path as the user gave it, or `rules/…` for built-in ones.
    pub name: String,
    /// Plugin when the file names none: the folder it lies in.
    pub default_plugin: String,
    /// The TOML.
    pub text: Cow<'static, str>,
    /// Whether it ships with the binary, so that its patterns are known to compile.
    pub is_builtin: bool,
    /// The same as JSON, as the build script writes it: read ten times as fast.
    pub json: Option<&'static str>,
}

impl RuleSource {
    /// A rule file of a user.
    pub fn custom(
        name: impl Into<String>,
        default_plugin: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            default_plugin: default_plugin.into(),
            text: Cow::Owned(text.into()),
            is_builtin: false,
            json: None,
        }
    }
}

/// A rule with what its file says about it.
#[derive(Clone, Debug)]
pub struct LoadedRule {
    /// Plugin the rule belongs to.
    pub plugin: String,
    /// File it stands in.
    pub file: String,
    /// 1-based line of its `[[rule]]`.
    pub line: usize,
    /// The rule, its patterns expanded.
    pub def: RuleDef,
    /// Whether the file ships with the binary.
    pub is_builtin: bool,
}

/// What a rule file holds.
#[derive(Clone, Debug, Default)]
pub struct LoadedFile {
    /// Its rules, then its concepts.
    pub rules: Vec<LoadedRule>,
    /// What words mean: classes and their words.
    pub meanings: BTreeMap<String, String>,
    /// Its model.
    pub model: Option<Model>,
}

/// Reads one rule file.
///
/// # Errors
/// Every problem of the file that shows without compiling its patterns.
pub fn parse_file(source: &RuleSource) -> Result<LoadedFile, RuleProblems> {
    let file = read(source)?;
    let plugin = file.plugin.unwrap_or_else(|| source.default_plugin.clone());
    let mut rules = Vec::with_capacity(file.rules.len() + file.concepts.len());
    let mut problems = Vec::new();
    for LinedRule { line, rule: mut def } in file.rules {
        let mut put = |field: &str, pattern: &mut String| match define::expand(pattern, &file.define) {
            Ok(expanded) => *pattern = expanded,
            Err(message) => problems.push(RuleProblem {
                file: source.name.clone(),
                line,
                rule_id: def.id.clone(),
                field: field.to_owned(),
                message,
            }),
        };
        put("pattern", &mut def.pattern);
        if let Some(p) = def.exclude_before.as_mut() {
            put("exclude_before", p);
        }
        if let Some(p) = def.exclude_after.as_mut() {
            put("exclude_after", p);
        }
        if let Err((field, message)) = phrase_rule::read(&mut def, &plugin, &file.words) {
            problems.push(RuleProblem {
                file: source.name.clone(),
                line,
                rule_id: def.id.clone(),
                field: field.to_owned(),
                message,
            });
        }
        rules.push(LoadedRule {
            plugin: plugin.clone(),
            file: source.name.clone(),
            line,
            def,
            is_builtin: source.is_builtin,
        });
    }
    for LinedConcept { line, concept } in file.concepts {
        match rule_of(concept, &file.define, &file.words) {
            Ok(def) => rules.push(LoadedRule {
                plugin: plugin.clone(),
                file: source.name.clone(),
                line,
                def,
                is_builtin: source.is_builtin,
            }),
            Err((rule_id, field, message)) => problems.push(RuleProblem {
                file: source.name.clone(),
                line,
                rule_id,
                field: field.to_owned(),
                message,
            }),
        }
    }
    let meanings = file.meanings.map(|LinedMeanings { line, meanings }| {
        // Those that ship with the binary were checked with it.
        if let Some((class, message)) = meanings::problem(&meanings).filter(|_| !source.is_builtin) {
            let (file, rule_id, field) = (source.name.clone(), "meanings".to_owned(), class);
            problems.push(RuleProblem { file, line, rule_id, field, message });
        }
        meanings
    });
    let model = file.model.map(|LinedModel { line, model }| {
        if let Some((field, message)) = model.problem() {
            let (file, rule_id) = (source.name.clone(), "model".to_owned());
            problems.push(RuleProblem { file, line, rule_id, field: field.to_owned(), message });
        }
        Model::new(model, source.name.clone())
    });
    match problems.is_empty() {
        true => Ok(LoadedFile { rules, meanings: meanings.unwrap_or_default(), model }),
        false => Err(RuleProblems(problems)),
    }
}

/// A concept as a rule; else its id, the field that is wrong and why.
fn rule_of(
    concept: ConceptDef,
    define: &BTreeMap<String, String>,
    words: &BTreeMap<String, Vec<String>>,
) -> Result<RuleDef, (String, &'static str, String)> {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    if !is_name(&concept.family) {
        let message = "use lower-case letters, digits and underscores".to_owned();
        return Err((concept.id, "family", message));
    }
    let (pattern, literals, phrases) = match (concept.pattern, concept.phrases.is_empty()) {
        (Some(pattern), true) => match define::expand(&pattern, define) {
            Ok(pattern) => (pattern, concept.literals, None),
            Err(message) => return Err((concept.id, "pattern", message)),
        },
        (None, false) if concept.literals.is_empty() => {
            match phrases::compile(&concept.phrases, words, concept.spaced) {
                Ok((phrases, literals)) => (NOTHING.to_owned(), literals, Some(Arc::new(phrases))),
                Err(message) => return Err((concept.id, "phrases", message)),
            }
        }
        _ => {
            let message = "a concept has `phrases`, or a `pattern` with its `literals`".to_owned();
            return Err((concept.id, "phrases", message));
        }
    };
    let mut def = RuleDef::evidence(concept.id, pattern, literals, concept.description);
    def.category = format!("prompt_injection.concept.{}", concept.family);
    def.match_length_max = Some(concept.match_length_max.unwrap_or(SENTENCE_BYTES));
    def.roles = concept.roles;
    def.surfaces = concept.surfaces;
    def.examples = concept.examples;
    def.negative_examples = concept.negative_examples;
    def.known_misses = concept.known_misses;
    def.phrases = phrases;
    def.phrases_written = concept.phrases;
    def.spaced = concept.spaced;
    let (is_against, is_topic) = (concept.against, concept.topic);
    if is_against && is_topic {
        let message = "a concept speaks against an attack or names the subject, not both".to_owned();
        return Err((def.id, "topic", message));
    }
    def.concept = Some(Concept { family: concept.family, is_against, is_topic });
    Ok(def)
}

/// The parts of a rule file, from its JSON where it has one.
fn read(source: &RuleSource) -> Result<LinedFile, RuleProblems> {
    let problem = |line, message| {
        let (file, rule_id, field) = (source.name.clone(), String::new(), String::new());
        RuleProblems(vec![RuleProblem { file, line, rule_id, field, message }])
    };
    if let Some(json) = source.json {
        return serde_json::from_str(json).map_err(|error| problem(0, error.to_string()));
    }
    let file: RuleFile = toml::from_str(&source.text).map_err(|error| {
        let line = error.span().map_or(0, |s| line_of(&source.text, s.start));
        problem(line, error.message().trim().replace('\n', "; "))
    })?;
    let lined = |rule: toml::Spanned<RuleDef>| LinedRule {
        line: line_of(&source.text, rule.span().start),
        rule: rule.into_inner(),
    };
    let lined_concept = |concept: toml::Spanned<ConceptDef>| LinedConcept {
        line: line_of(&source.text, concept.span().start),
        concept: concept.into_inner(),
    };
    Ok(LinedFile {
        plugin: file.plugin,
        define: file.define,
        rules: file.rules.into_iter().map(lined).collect(),
        words: file.words,
        meanings: file.meanings.map(|meanings| LinedMeanings {
            line: line_of(&source.text, meanings.span().start),
            meanings: meanings.into_inner(),
        }),
        concepts: file.concepts.into_iter().map(lined_concept).collect(),
        model: file.model.map(|model| LinedModel {
            line: line_of(&source.text, model.span().start),
            model: model.into_inner(),
        }),
    })
}

/// Reads every `*.toml` file under `folder`, in the order of their paths.
///
/// # Errors
/// A folder or file that cannot be read, is too large or is not UTF-8; too many files.
pub fn load_folder(folder: &Path) -> Result<Vec<RuleSource>, RuleProblems> {
    let mut sources = Vec::new();
    let mut problems = Vec::new();
    walk(folder, 0, &mut sources, &mut problems);
    if problems.is_empty() {
        sources.sort_by(|a: &RuleSource, b| a.name.cmp(&b.name));
        Ok(sources)
    } else {
        Err(RuleProblems(problems))
    }
}

/// Rule files of the folder `kind` directly below each of `folders`.
///
/// # Errors
/// As [`load_folder`].
pub fn load_kind(folders: &[PathBuf], kind: &str) -> Result<Vec<RuleSource>, RuleProblems> {
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    for folder in folders.iter().map(|folder| folder.join(kind)) {
        if fs::metadata(&folder).is_ok_and(|metadata| metadata.is_dir()) {
            match load_folder(&folder) {
                Ok(found) => files.extend(found),
                Err(RuleProblems(found)) => problems.extend(found),
            }
        }
    }
    if problems.is_empty() { Ok(files) } else { Err(RuleProblems(problems)) }
}

/// The plugin id that a folder's name gives: `my-rules` holds plugin `my_rules`.
fn plugin_of(folder: &str) -> String {
    let id: String = folder
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .collect();
    id.trim_matches('_').to_owned()
}

fn walk(path: &Path, depth: usize, sources: &mut Vec<RuleSource>, problems: &mut Vec<RuleProblem>) {
    let problem = |message: String| RuleProblem {
        file: path.display().to_string(),
        line: 0,
        rule_id: String::new(),
        field: String::new(),
        message,
    };
    if depth > DEPTH_MAX {
        problems.push(problem(format!("folders nest deeper than {DEPTH_MAX} levels")));
        return;
    }
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) => {
            problems.push(problem(format!("cannot be read: {error}; check the path and its permissions")));
            return;
        }
    };
    if meta.is_dir() {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => {
                problems.push(problem(format!(
                    "folder cannot be read: {error}; check the path and its permissions"
                )));
                return;
            }
        };
        let mut children: Vec<_> = entries.flatten().map(|e| e.path()).collect();
        children.sort();
        for child in children {
            let name = child.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            // Kubernetes mounts keep their data under `..data`; hidden files are editors' leftovers.
            let hidden = name.starts_with('.') || (depth == 0 && OTHER_FOLDERS.contains(&name));
            let wanted = child.is_dir() || child.extension().is_some_and(|e| e == "toml");
            if !hidden && wanted {
                walk(&child, depth + 1, sources, problems);
            }
        }
        return;
    }
    if sources.len() >= FILES_MAX {
        problems.push(problem(format!("more than {FILES_MAX} rule files")));
        return;
    }
    if meta.len() > FILE_BYTES_MAX {
        problems.push(problem(format!("{} bytes; a rule file has at most {FILE_BYTES_MAX}", meta.len())));
        return;
    }
    match fs::read_to_string(path) {
        Ok(text) => {
            let default_plugin = path
                .parent()
                .and_then(Path::file_name)
                .and_then(|n| n.to_str())
                .map_or_else(|| "custom".to_owned(), plugin_of);
            sources.push(RuleSource::custom(path.display().to_string(), default_plugin, text));
        }
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            problems.push(problem("is not UTF-8; rule files are TOML, save it as UTF-8".to_owned()))
        }
        Err(error) => {
            problems.push(problem(format!("cannot be read: {error}; check the path and its permissions")))
        }
    }
}
