//! Rule files: their shape, and what must hold of every rule.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use regex_automata::meta::Regex;
use serde::Deserialize;
use toml::Spanned;

use super::lists::{CommandDef, HostDef, WordDef};
use super::phrases::PhraseDef;
use super::rule::{
    Api, BundleRule, CallCondition, Examples, FlowCondition, Matcher, Provider, TextCondition,
};
use super::{BundleRules, compact};
use crate::bundles::code::Taint;
use crate::bundles::flow::{FlowDef, Source, To, Tongue};
use crate::commands::CommandRules;
use crate::decision::{Category, Severity};
use crate::rules::lazy::LazyRegex;
use crate::rules::{RuleProblem, RuleProblems, relax};
use crate::text::line_of;

/// A file of bundle rules.
#[derive(Clone, Copy, Debug)]
pub struct BundleRuleSource<'a> {
    /// Its name, for messages.
    pub file: &'a str,
    /// Its text, TOML.
    pub text: &'a str,
    /// Whether it came with the program: a test compiles its patterns, so that they can wait until they are needed.
    pub is_builtin: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default, rename = "api")]
    apis: Vec<Spanned<ApiDef>>,
    #[serde(default, rename = "place")]
    places: Vec<PlaceDef>,
    #[serde(default, rename = "provider")]
    providers: Vec<ProviderDef>,
    #[serde(default, rename = "host")]
    hosts: Vec<Spanned<HostDef>>,
    #[serde(default, rename = "command")]
    commands: Vec<Spanned<CommandDef>>,
    #[serde(default, rename = "word")]
    words: Vec<Spanned<WordDef>>,
    #[serde(default, rename = "phrase")]
    phrases: Vec<Spanned<PhraseDef>>,
    #[serde(default, rename = "language")]
    languages: Vec<Spanned<Tongue>>,
    #[serde(default, rename = "flow")]
    flows: Vec<Spanned<FlowDef>>,
    #[serde(default, rename = "rule")]
    rules: Vec<Spanned<RuleDef>>,
}

/// A service whose secrets go to its own hosts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[provider]]`")]
struct ProviderDef {
    variables: Vec<String>,
    hosts: Vec<String>,
}

/// Paths that matter, beyond those of the rules about sensitive paths.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[place]]`")]
struct PlaceDef {
    /// What is there.
    kind: PlaceKind,
    /// Patterns over the path in lower case, as written in code: `~` is the home folder.
    patterns: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PlaceKind {
    /// Credentials, keys, wallets, data of browsers.
    Secret,
    /// Conversations with an agent, its memory or instructions.
    Chat,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[api]]`")]
struct ApiDef {
    class: String,
    names: Vec<String>,
    #[serde(default)]
    returns: Vec<String>,
    #[serde(default)]
    clean: bool,
    #[serde(default)]
    value: bool,
    #[serde(default)]
    capability: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[rule]]`")]
struct RuleDef {
    id: String,
    category: String,
    severity: Severity,
    description: String,
    fix: String,
    #[serde(default)]
    references: Vec<String>,
    call: Option<CallDef>,
    text: Option<TextDef>,
    flow: Option<FlowRuleDef>,
    examples: Vec<ExampleDef>,
    negative_examples: Vec<ExampleDef>,
    #[serde(default)]
    known_misses: Vec<ExampleDef>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[rule.call]`")]
struct CallDef {
    of: Vec<String>,
    #[serde(default)]
    taints: Vec<String>,
    #[serde(default)]
    and_taints: Vec<String>,
    #[serde(default)]
    not_taints: Vec<String>,
    #[serde(default)]
    taints_min: u32,
    text: Option<String>,
    not_text: Option<String>,
    hidden: Option<bool>,
    #[serde(default)]
    with: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    keywords: BTreeMap<String, String>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    body: bool,
    #[serde(default)]
    foreign_secret: bool,
    #[serde(default)]
    query_secret: bool,
    argument: Option<usize>,
}

/// Where a value comes from and what is done with it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[rule.flow]`")]
struct FlowRuleDef {
    from: Vec<String>,
    to: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[rule.text]`")]
struct TextDef {
    surfaces: Vec<String>,
    pattern: String,
    unless: Option<String>,
    #[serde(default)]
    near: Vec<String>,
    #[serde(default = "near_by_default")]
    within: usize,
    #[serde(default)]
    literals: Vec<String>,
}

/// How many bytes before and after a place are near: about three lines.
const fn near_by_default() -> usize {
    240
}

/// One example: the key says what it is written in.
type ExampleDef = BTreeMap<String, String>;

/// Reads files; every problem of every file is told.
pub(super) fn load(sources: &[BundleRuleSource<'_>]) -> Result<BundleRules, RuleProblems> {
    let mut out = BundleRules::default();
    let mut problems = Vec::new();
    let mut places: BTreeMap<String, (String, usize)> = BTreeMap::new();
    let (mut secret, mut chat) = (Vec::new(), Vec::new());
    for source in sources {
        let file: RuleFile = match toml::from_str(source.text) {
            Ok(file) => file,
            Err(error) => {
                let line = error.span().map_or(0, |span| line_of(source.text, span.start));
                problems.push(problem(source.file, line, "", error.message().to_owned()));
                continue;
            }
        };
        let provider = |def: ProviderDef| Provider { variables: def.variables, hosts: def.hosts };
        out.providers.extend(file.providers.into_iter().map(provider));
        for place in file.places {
            match place.kind {
                PlaceKind::Secret => secret.extend(place.patterns),
                PlaceKind::Chat => chat.extend(place.patterns),
            }
        }
        for spanned in file.apis {
            let line = line_of(source.text, spanned.span().start);
            match api(spanned.into_inner()) {
                Ok(api) => out.add(api),
                Err(message) => problems.push(problem(source.file, line, "", message)),
            }
        }
        for spanned in file.hosts {
            let line = line_of(source.text, spanned.span().start);
            let wrong = out.lists.add_hosts(spanned.into_inner());
            problems.extend(wrong.into_iter().map(|text| problem(source.file, line, "", text)));
        }
        for spanned in file.commands {
            let line = line_of(source.text, spanned.span().start);
            let wrong = out.lists.add_commands(spanned.into_inner(), CommandRules::builtin());
            problems.extend(wrong.into_iter().map(|text| problem(source.file, line, "", text)));
        }
        for spanned in file.words {
            let line = line_of(source.text, spanned.span().start);
            let wrong = out.lists.add_words(spanned.into_inner());
            problems.extend(wrong.into_iter().map(|text| problem(source.file, line, "", text)));
        }
        for spanned in file.phrases {
            let line = line_of(source.text, spanned.span().start);
            let wrong = out.phrases.add(spanned.into_inner());
            problems.extend(wrong.into_iter().map(|text| problem(source.file, line, "", text)));
        }
        for spanned in file.languages {
            let line = line_of(source.text, spanned.span().start);
            let wrong = out.flows.add_tongue(spanned.into_inner());
            problems.extend(wrong.into_iter().map(|text| problem(source.file, line, "", text)));
        }
        for spanned in file.flows {
            let line = line_of(source.text, spanned.span().start);
            let wrong = out.flows.add(spanned.into_inner());
            problems.extend(wrong.into_iter().map(|text| problem(source.file, line, "", text)));
        }
        for spanned in file.rules {
            let line = line_of(source.text, spanned.span().start);
            let def = spanned.into_inner();
            let id = def.id.clone();
            if let Some((file, first)) = places.get(&id) {
                let message = format!("the id is taken by {file}:{first}; give it another");
                problems.push(problem(source.file, line, &id, message));
                continue;
            }
            places.insert(id.clone(), (source.file.to_owned(), line));
            match compile(def, source, line) {
                Ok(rule) => out.rules.push(rule),
                Err(messages) => {
                    problems.extend(messages.into_iter().map(|text| problem(source.file, line, &id, text)));
                }
            }
        }
    }
    for (patterns, compiled) in [(&secret, &mut out.secret_places), (&chat, &mut out.chat_places)] {
        match Regex::new_many(patterns) {
            Ok(regex) => *compiled = Some(regex),
            Err(error) => problems.push(problem("", 0, "", format!("a pattern of a [[place]]: {error}"))),
        }
    }
    for (index, rule) in out.rules.iter().enumerate() {
        let Matcher::Call(call) = &rule.matcher else { continue };
        for target in &call.of {
            out.by_target.entry(target.clone()).or_default().push(index);
        }
    }
    check_classes(&out, &mut problems);
    let unknown = out.flows.unknown_languages();
    problems.extend(unknown.into_iter().map(|text| problem("", 0, "", text)));
    if problems.is_empty() { Ok(out) } else { Err(RuleProblems(problems)) }
}

impl BundleRules {
    fn add(&mut self, api: Api) {
        let index = self.apis.len();
        for name in &api.names {
            match name.strip_prefix("*.") {
                Some(method) => self.by_method.entry(method.to_owned()).or_default().push(index),
                None => {
                    self.modules.extend(name.split_once('.').map(|(module, _)| module.to_owned()));
                    self.by_name.entry(name.clone()).or_default().push(index);
                }
            }
        }
        self.apis.push(api);
    }
}

/// A name that no entry gives would make a rule that can never hold.
fn check_classes(rules: &BundleRules, problems: &mut Vec<RuleProblem>) {
    let known: BTreeSet<&str> = rules.apis.iter().map(|api| api.class.as_str()).collect();
    for rule in &rules.rules {
        let Matcher::Call(call) = &rule.matcher else { continue };
        let classes =
            call.of.iter().filter(|name| !name.contains('.')).chain(&call.with).chain(&call.without);
        for class in classes.filter(|class| !known.contains(class.as_str())) {
            let message = format!("class `{class}` is given by no [[api]]; a name of a function has a dot");
            problems.push(problem(&rule.file, rule.line, &rule.id, message));
        }
    }
}

fn problem(file: &str, line: usize, rule_id: &str, message: String) -> RuleProblem {
    let (file, rule_id, field) = (file.to_owned(), rule_id.to_owned(), String::new());
    RuleProblem { file, line, rule_id, field, message }
}

fn api(def: ApiDef) -> Result<Api, String> {
    if def.names.is_empty() {
        return Err(format!("api `{}` has no names; give at least one", def.class));
    }
    if !is_id(&def.class) || def.class.contains('.') {
        return Err(format!("class {:?} must be lower-case letters, digits, `-`, `_`", def.class));
    }
    let returns = taints(&def.returns)?;
    let ApiDef { class, names, clean, value, capability, .. } = def;
    Ok(Api { class, names, returns, is_clean: clean, is_value: value, capability })
}

fn taints(names: &[String]) -> Result<Taint, String> {
    names.iter().try_fold(Taint::NONE, |all, name| {
        Taint::named(name).map(|taint| all | taint).ok_or_else(|| {
            format!("taint `{name}` is unknown; known are {}", Taint::names().collect::<Vec<_>>().join(", "))
        })
    })
}

fn is_id(text: &str) -> bool {
    text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'_'))
}

/// Compiles a rule, or says everything that is wrong with it.
fn compile(def: RuleDef, source: &BundleRuleSource<'_>, line: usize) -> Result<BundleRule, Vec<String>> {
    let mut wrong = Wrong { messages: Vec::new(), is_builtin: source.is_builtin };
    if !is_id(&def.id) {
        wrong.push(format!("id {:?} must be lower-case letters, digits, `.`, `-`, `_`", def.id));
    }
    if !is_id(&def.category) {
        wrong.push(format!("category {:?} must be lower-case letters, digits, `.`, `-`, `_`", def.category));
    }
    for (field, is_empty) in [
        ("description", def.description.trim().is_empty()),
        ("fix", def.fix.trim().is_empty()),
        ("examples", def.examples.is_empty()),
        ("negative_examples", def.negative_examples.is_empty()),
    ] {
        if is_empty {
            wrong.push(format!("{field} is empty"));
        }
    }
    let is_code = def.call.is_some();
    let matcher = match (def.call, def.text, def.flow) {
        (Some(call), None, None) => call_condition(call, &mut wrong).map(Matcher::Call),
        (None, Some(text), None) => text_condition(text, &mut wrong).map(Matcher::Text),
        (None, None, Some(flow)) => flow_condition(&flow, &mut wrong).map(Matcher::Flow),
        _ => {
            wrong.push("give one of [rule.call], [rule.text] and [rule.flow]".to_owned());
            None
        }
    };
    let mut examples = |defs: Vec<ExampleDef>| -> Examples {
        let mut out = Examples::default();
        for (language, text) in defs.into_iter().flatten() {
            if is_code && !matches!(language.as_str(), "python" | "javascript") {
                wrong.push(format!("an example of code is `python` or `javascript`, not `{language}`"));
            }
            out.languages.push(language);
            out.texts.push(text);
        }
        out
    };
    let (found, not_found) = (examples(def.examples), examples(def.negative_examples));
    let known_misses = examples(def.known_misses);
    match matcher {
        Some(matcher) if wrong.messages.is_empty() => Ok(BundleRule {
            id: def.id,
            category: Category::new(&def.category),
            severity: def.severity,
            description: def.description,
            fix: def.fix,
            references: def.references,
            matcher,
            examples: found,
            negative_examples: not_found,
            known_misses,
            file: source.file.to_owned(),
            line,
        }),
        _ => Err(wrong.messages),
    }
}

/// Most bytes of lazily built states of one pattern. Patterns with gaps need more than the default, and fall back to an
/// engine ten times slower without.
const LAZY_DFA_BYTES_MAX: usize = 4 << 20;

/// The same for patterns that only short texts are asked about.
const SHORT_DFA_BYTES_MAX: usize = 256 << 10;

/// Most bytes of lazily built states of one pattern that only says whether another cannot match.
const RELAXED_BYTES_MAX: usize = 1 << 20;

/// What says quickly that a pattern which compiles does not match, where there is such.
pub(super) fn relaxed(text: &str) -> Option<Regex> {
    let hir = regex_syntax::parse(&ascii_borders(text)).ok()?;
    relax::compile(&compact::compact(&relax::relaxed(&hir)?), RELAXED_BYTES_MAX).ok()
}

/// Borders of words are those of ASCII: the fast engines know no others.
fn ascii_borders(text: &str) -> String {
    text.replace(r"\b", r"(?-u:\b)")
}

/// What is wrong with a rule.
struct Wrong {
    messages: Vec<String>,
    /// Whether its patterns are known to compile.
    is_builtin: bool,
}

impl Wrong {
    fn push(&mut self, message: String) {
        self.messages.push(message);
    }

    fn pattern(&mut self, text: &str, field: &str, build: Build) -> Option<LazyRegex> {
        let text = ascii_borders(text);
        if self.is_builtin {
            return Some(LazyRegex::known(&text, build));
        }
        LazyRegex::now(&text, build).map_err(|error| self.push(format!("{field}: {error}"))).ok()
    }
}

type Build = fn(&str) -> Result<Regex, String>;

/// A pattern that is looked for in texts of any length.
fn long(text: &str) -> Result<Regex, String> {
    build(text, LAZY_DFA_BYTES_MAX)
}

/// A pattern that is asked about a line, an argument or what stands around a place.
///
/// # Errors
/// What is wrong with it.
pub(in crate::bundles) fn short(text: &str) -> Result<Regex, String> {
    build(text, SHORT_DFA_BYTES_MAX)
}

fn build(text: &str, states_bytes_max: usize) -> Result<Regex, String> {
    compact::compile(text, Regex::config().hybrid_cache_capacity(states_bytes_max))
}

fn call_condition(def: CallDef, wrong: &mut Wrong) -> Option<CallCondition> {
    if def.of.is_empty() {
        wrong.push("call.of has none; give a class or a name".to_owned());
    }
    let mut taint = |names: &[String]| {
        taints(names).map_err(|message| wrong.push(format!("call: {message}"))).unwrap_or_default()
    };
    let (all, and_taints, not_taints) = (taint(&def.taints), taint(&def.and_taints), taint(&def.not_taints));
    let text = def.text.as_deref().map(|text| wrong.pattern(text, "call.text", short));
    let not_text = def.not_text.as_deref().map(|text| wrong.pattern(text, "call.not_text", short));
    Some(CallCondition {
        of: def.of,
        taints: all,
        and_taints,
        not_taints,
        taints_min: def.taints_min,
        text: text.flatten(),
        not_text: not_text.flatten(),
        is_hidden: def.hidden,
        with: def.with,
        without: def.without,
        keywords: def.keywords.into_iter().collect(),
        files: def.files,
        is_body: def.body,
        is_foreign_secret: def.foreign_secret,
        is_query_secret: def.query_secret,
        argument: def.argument,
    })
}

fn flow_condition(def: &FlowRuleDef, wrong: &mut Wrong) -> Option<FlowCondition> {
    let mut from = Source::NONE;
    for name in &def.from {
        match Source::named(name) {
            Some(one) => from = from | one,
            None => wrong.push(format!("flow.from: nothing is called `{name}`")),
        }
    }
    let to: Vec<To> = def.to.iter().filter_map(|name| To::named(name)).collect();
    if to.len() != def.to.len() || to.is_empty() || def.from.is_empty() {
        wrong.push("flow.from and flow.to need at least one each that is known".to_owned());
        return None;
    }
    Some(FlowCondition { from, to })
}

/// Kinds of text that files and blocks of documents are told apart by.
const SURFACES: [&str; 6] = ["document", "config", "script", "data", "hidden", "any"];

fn text_condition(def: TextDef, wrong: &mut Wrong) -> Option<TextCondition> {
    if def.surfaces.is_empty() {
        wrong.push("text.surfaces has none; give at least one".to_owned());
    }
    for surface in def.surfaces.iter().filter(|surface| !SURFACES.contains(&surface.as_str())) {
        wrong.push(format!("text.surfaces: unknown surface `{surface}`; known are {}", SURFACES.join(", ")));
    }
    if def.literals.iter().any(String::is_empty) {
        wrong.push("text.literals: an empty text is everywhere; leave it out".to_owned());
    }
    let unless = def.unless.as_deref().map(|text| wrong.pattern(text, "text.unless", short));
    let near = def.near.iter().filter_map(|text| wrong.pattern(text, "text.near", short)).collect();
    let compiled = wrong.pattern(&def.pattern, "text.pattern", long)?;
    Some(TextCondition {
        surfaces: def.surfaces,
        relaxed: OnceLock::new(),
        pattern: compiled,
        pattern_text: def.pattern,
        unless: unless.flatten(),
        near,
        within: def.within,
        literals: def.literals,
    })
}
