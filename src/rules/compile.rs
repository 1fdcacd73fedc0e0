//! Rules compiled into one set: gate, regexes, validators.
//!
//! Everything that can be wrong with a rule is said at once, with its file and line. Limits bound what a rule file can
//! cost: number of rules, size of each compiled regex, nesting of each pattern, length of each match.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use regex_automata::meta;
use regex_automata::util::syntax;
use regex_syntax::hir::{Hir, HirKind};
use sha2::{Digest, Sha256};

use super::gate::{self, Gate, GateRule, TOKEN_MIN};
use super::lazy::LazyRegex;
use super::load::{LoadedRule, RuleSource, parse_file};
use super::model::Model;
use super::problem::{RuleProblem, RuleProblems};
use super::relax::FirstLook;
use super::scan::ScratchPool;
use super::schema::{Concept, OneOrMany, Role, RuleDef, Surface, Trigger};
use super::shapes::Kind;
use super::triggered::Group;
use super::validate::Validator;
use super::vocabulary::Vocabulary;
use super::window::{self, Begin};
use crate::decision::{Category, Severity};

/// Most rules in one set.
const RULES_MAX: usize = 5_000;
/// Most bytes of a compiled regex (its NFA).
const REGEX_BYTES_MAX: usize = 4 << 20;
/// Deepest nesting of a pattern.
const NEST_MAX: u32 = 64;
/// Longest match a rule may ask for, in bytes: PEM blocks of large RSA keys need 7 KiB, with room for headers.
const MATCH_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of lazily built DFA states one rule may hold in one worker.
const LAZY_DFA_BYTES_MAX: usize = 1024 * 1024;

/// What a set is made of besides the rules.
#[derive(Clone, Debug)]
pub struct RuleSetConfig {
    /// Version reported in findings of built-in plugins.
    pub version: Arc<str>,
}

impl Default for RuleSetConfig {
    fn default() -> Self {
        Self { version: env!("CARGO_PKG_VERSION").into() }
    }
}

/// The parts of a rule that its findings carry.
#[derive(Debug)]
pub struct MetaInfo {
    /// Stable id.
    pub id: Arc<str>,
    /// Plugin the rule belongs to.
    pub plugin: Arc<str>,
    /// Category of its findings.
    pub category: Category,
    /// Severity of its findings.
    pub severity: Severity,
    /// Severity score times confidence.
    pub score: f64,
    /// As written in the rule.
    pub confidence: f64,
    /// One sentence for a person.
    pub description: Arc<str>,
    /// What to do.
    pub recommendation: Arc<str>,
    /// Sources.
    pub references: Vec<String>,
    /// File of the rule.
    pub file: Arc<str>,
    /// 1-based line of the rule in its file.
    pub line: usize,
}

/// Context words that must stand near a match.
#[derive(Debug)]
pub(super) struct Near {
    pub words: LazyRegex,
    pub distance: usize,
}

/// What a pattern says about the places where it can match.
#[derive(Debug)]
pub(super) struct Shape {
    /// The group that holds the value, where not the whole match does.
    pub value_group: Option<usize>,
    /// Bytes before a candidate at which a match may begin.
    pub before: usize,
    /// Bytes after a candidate at which a match may end.
    pub after: usize,
    /// Whether every match begins exactly at a literal.
    pub is_prefix: bool,
    /// Where else it can begin.
    pub begin: Begin,
}

/// A rule ready to run.
#[derive(Debug)]
pub struct CompiledRule {
    /// What its findings carry.
    pub info: Arc<MetaInfo>,
    /// The rule as written, for examples and for showing it.
    pub def: RuleDef,
    pub(super) regex: LazyRegex,
    pub(super) first_look: FirstLook,
    /// Known when it is first needed, as the regex is; see [`super::lazy`].
    shape: OnceLock<Shape>,
    pub(super) validators: Vec<Validator>,
    pub(super) exclude: Vec<LazyRegex>,
    pub(super) exclude_match: Vec<LazyRegex>,
    pub(super) exclude_line: Vec<LazyRegex>,
    pub(super) exclude_before: Option<LazyRegex>,
    pub(super) exclude_after: Option<LazyRegex>,
    pub(super) near: Option<Near>,
    pub(super) roles: u8,
    pub(super) surfaces: u8,
    /// Bit of the rule's plugin in `RuleSet::plugins`.
    pub(super) plugin_bit: u32,
    /// Index in [`RuleSet::families`] of a concept; `None` for a rule.
    pub family: Option<usize>,
}

impl CompiledRule {
    pub(super) fn shape(&self) -> &Shape {
        self.shape.get_or_init(|| {
            let (shape, hir) = Shape::of(&self.def)
                .unwrap_or_else(|(_, message)| panic!("a test looks at every built-in pattern: {message}"));
            // A rule with a literal is asked for its shape where that stands, and for its first look next.
            if self.def.trigger.is_none() {
                self.first_look.make(&hir);
            }
            shape
        })
    }

    /// Fewest digits, or shortest token, that starts the rule.
    pub(super) fn trigger_min(&self) -> usize {
        trigger_min(&self.def)
    }

    /// Whether a place of that kind starts the rule.
    pub(super) fn starts_at(&self, kind: Kind) -> bool {
        match (self.def.trigger, kind) {
            (Some(Trigger::Digits), Kind::Digits(count)) => count >= trigger_min(&self.def),
            (Some(Trigger::Token), Kind::Token(bytes)) => bytes >= trigger_min(&self.def),
            (Some(Trigger::Separator), Kind::Separator(byte)) => {
                self.def.separators.as_bytes().contains(&byte)
            }
            _ => false,
        }
    }

    /// Whether one of the rule's exclusions matches a text.
    pub fn excludes(&self, text: &str) -> bool {
        self.exclude.iter().any(|regex| regex.is_match(text))
    }

    /// Whether the rule applies to messages of `role`.
    pub fn applies_to_role(&self, role: Role) -> bool {
        self.roles & (1 << role as u8) != 0
    }

    /// Whether the rule applies to texts of `surface`.
    pub fn applies_to_surface(&self, surface: Surface) -> bool {
        self.surfaces & (1 << surface as u8) != 0
    }
}

/// All rules, compiled together. Immutable; share it behind an `Arc`.
pub struct RuleSet {
    pub(super) rules: Vec<CompiledRule>,
    gate: Gate,
    /// The gate of all rules but those about prompt injection; made when it is first asked for.
    narrow_gate: OnceLock<Gate>,
    plugins: Vec<Arc<str>>,
    families: Vec<Concept>,
    model: Option<Model>,
    version: Arc<str>,
    revision: String,
    groups: Vec<Group>,
    vocabulary: OnceLock<Vocabulary>,
    pub(super) scratches: ScratchPool,
}

impl std::fmt::Debug for RuleSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuleSet").field("rules", &self.rules.len()).field("revision", &self.revision).finish()
    }
}

impl RuleSet {
    /// Compiles the rules of all sources.
    ///
    /// # Errors
    /// Every problem of every rule.
    pub fn compile(sources: &[RuleSource], config: &RuleSetConfig) -> Result<Self, RuleProblems> {
        let mut loaded = Vec::new();
        let (mut problems, mut models) = (Vec::new(), Vec::new());
        for (result, source) in on_all_cores(sources, parse_file).into_iter().zip(sources) {
            match result {
                Some(Ok(file)) => {
                    loaded.extend(file.rules);
                    models.extend(file.model.map(|model| (model, source.is_builtin)));
                }
                Some(Err(RuleProblems(found))) => problems.extend(found),
                None => problems.push(set_problem(format!("{} could not be read", source.name))),
            }
        }
        check_together(&loaded, &mut problems);
        let model = the_model(models, &mut problems);
        let mut plugins: Vec<Arc<str>> = Vec::new();
        let bits: Vec<u32> = loaded
            .iter()
            .map(|rule| {
                let at = plugins.iter().position(|p| **p == *rule.plugin).unwrap_or_else(|| {
                    plugins.push(rule.plugin.as_str().into());
                    plugins.len() - 1
                });
                u32::try_from(at).unwrap_or(u32::MAX)
            })
            .collect();
        if plugins.len() > 32 {
            problems.push(set_problem(format!("{} plugins; a rule set has at most 32", plugins.len())));
            return Err(RuleProblems(problems));
        }
        let mut families: Vec<Concept> = Vec::new();
        for concept in loaded.iter().filter_map(|rule| rule.def.concept.as_ref()) {
            if !families.contains(concept) {
                families.push(concept.clone());
            }
        }
        let mut rules = Vec::with_capacity(loaded.len());
        for (result, bit) in compile_all(&loaded).into_iter().zip(bits) {
            match result {
                Ok(mut rule) => {
                    rule.plugin_bit = 1 << bit;
                    let concept = rule.def.concept.as_ref();
                    rule.family = concept.and_then(|concept| families.iter().position(|f| f == concept));
                    rules.push(rule);
                }
                Err(found) => problems.extend(found),
            }
        }
        if !problems.is_empty() {
            return Err(RuleProblems(problems));
        }
        // Neither needs the other, and together they are half of what is left of a cold start.
        let (gate, groups) = std::thread::scope(|scope| {
            let gate = scope.spawn(|| gate_of(&rules, |_| true));
            let groups = Group::all(&rules);
            (gate.join(), groups)
        });
        let gate = gate.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(Self {
            rules,
            gate,
            narrow_gate: OnceLock::new(),
            plugins,
            families,
            model,
            version: config.version.clone(),
            revision: Self::revision_of(sources),
            groups,
            vocabulary: OnceLock::new(),
            scratches: ScratchPool::default(),
        })
    }

    /// The gate of the rules of some plugins, as bits; it may let through more. Most literals are of phrases of prompt
    /// injection, whose words are common: who looks for credentials and personal data alone is not held up by them.
    pub(super) fn gate(&self, plugins: u32) -> &Gate {
        let injection = self.plugin_bits([super::INJECTION]);
        if injection == 0 || plugins & injection != 0 {
            return &self.gate;
        }
        self.narrow_gate.get_or_init(|| gate_of(&self.rules, |rule| rule.plugin_bit & injection == 0))
    }

    /// The rules without a literal.
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Whether phrases of prompt injection have a word that begins as `word` does. False for words of three letters.
    pub fn is_phrase_word(&self, word: &[u8]) -> bool {
        let vocabulary = self.vocabulary.get_or_init(|| {
            let rules = self.rules.iter().filter(|rule| &*rule.info.plugin == super::INJECTION);
            Vocabulary::of(rules.flat_map(|rule| {
                let phrases = rule.def.phrases.iter().flat_map(|phrases| phrases.words());
                let is_plain = rule.def.phrases.is_none();
                let own = std::iter::once(&rule.def.pattern).chain(&rule.def.literals);
                phrases.chain(own.filter(move |_| is_plain).map(String::as_str))
            }))
        });
        vocabulary.holds(word)
    }

    /// The rules, in the order of their files.
    pub fn rules(&self) -> &[CompiledRule] {
        &self.rules
    }

    /// Compiles every pattern that still waits to be needed: half a second of work, for tests and benchmarks.
    pub fn warm_up(&self) {
        for rule in &self.rules {
            if rule.def.phrases.is_none() {
                rule.shape();
            }
            let near = rule.near.as_ref().map(|near| &near.words);
            let context = [&rule.exclude_before, &rule.exclude_after].into_iter().flatten();
            let own = rule.exclude.iter().chain(&rule.exclude_match).chain(&rule.exclude_line);
            for regex in std::iter::once(&rule.regex).chain(own).chain(context).chain(near) {
                regex.group_info();
            }
        }
    }

    /// The rule of that id.
    pub fn rule(&self, id: &str) -> Option<&CompiledRule> {
        self.rules.iter().find(|r| &*r.info.id == id)
    }

    /// Plugins that have rules.
    pub fn plugins(&self) -> &[Arc<str>] {
        &self.plugins
    }

    /// Families of the concepts, in the order in which they were first named.
    pub fn families(&self) -> &[Concept] {
        &self.families
    }

    /// The model that weighs concepts: that of a user's file before the built-in one.
    pub fn model(&self) -> Option<&Model> {
        self.model.as_ref()
    }

    /// Version of the rule plugins.
    pub fn version(&self) -> &Arc<str> {
        &self.version
    }

    /// Hash of all rule texts, 12 hex digits.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The revision that a set compiled from `sources` has.
    pub fn revision_of(sources: &[RuleSource]) -> String {
        let mut hash = Sha256::new();
        for source in sources {
            for part in [source.name.as_str(), &source.text] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part.as_bytes());
            }
        }
        hash.finalize().iter().take(6).map(|b| format!("{b:02x}")).collect()
    }

    /// Heap used by the literals of the gate, in bytes.
    pub fn gate_memory(&self) -> usize {
        self.gate.memory_usage() + self.narrow_gate.get().map_or(0, Gate::memory_usage)
    }

    /// The set of plugins as bits, for those named that have rules.
    pub fn plugin_bits<'p>(&self, names: impl IntoIterator<Item = &'p str>) -> u32 {
        names
            .into_iter()
            .filter_map(|name| self.plugins.iter().position(|p| &**p == name))
            .fold(0, |bits, at| bits | 1 << at)
    }
}

/// The gate of those rules that are wanted.
fn gate_of(rules: &[CompiledRule], is_wanted: impl Fn(&CompiledRule) -> bool) -> Gate {
    let wanted = rules.iter().enumerate().filter(|(_, rule)| is_wanted(rule));
    Gate::build(wanted.map(|(index, rule)| GateRule {
        index: index as u32,
        literals: &rule.def.literals,
        phrases: rule.def.phrases.as_deref(),
        trigger: rule.def.trigger,
        trigger_min: trigger_min(&rule.def),
        separators: &rule.def.separators,
        is_phrase: &*rule.info.plugin == super::INJECTION,
    }))
}

/// The model of a user, else the built-in one. Two of a user are a problem: nobody could say which one holds.
fn the_model(mut models: Vec<(Model, bool)>, problems: &mut Vec<RuleProblem>) -> Option<Model> {
    models.sort_by_key(|(_, is_builtin)| *is_builtin);
    if let [(first, false), (second, false), ..] = models.as_slice() {
        problems.push(set_problem(format!(
            "{} and {} both hold a [model]; name one of them",
            first.file, second.file
        )));
    }
    models.into_iter().next().map(|(model, _)| model)
}

fn set_problem(message: String) -> RuleProblem {
    RuleProblem {
        file: "all rules".to_owned(),
        line: 0,
        rule_id: String::new(),
        field: String::new(),
        message,
    }
}

fn check_together(loaded: &[LoadedRule], problems: &mut Vec<RuleProblem>) {
    if loaded.len() > RULES_MAX {
        problems.push(set_problem(format!("{} rules; a set has at most {RULES_MAX}", loaded.len())));
    }
    let mut seen: BTreeMap<&str, &LoadedRule> = BTreeMap::new();
    for rule in loaded {
        if let Some(first) = seen.insert(&rule.def.id, rule) {
            problems.push(RuleProblem {
                file: rule.file.clone(),
                line: rule.line,
                rule_id: rule.def.id.clone(),
                field: "id".to_owned(),
                message: format!(
                    "already used at {}:{}; ids are unique over all files",
                    first.file, first.line
                ),
            });
        }
    }
}

/// Compiles every rule. A panic inside the regex compiler is a bug there; the rule is refused, not lost.
fn compile_all(loaded: &[LoadedRule]) -> Vec<Result<CompiledRule, Vec<RuleProblem>>> {
    let results = on_all_cores(loaded, compile_one);
    let refused = |rule| vec![problem_at(rule, "pattern", "could not be compiled".to_owned())];
    results.into_iter().zip(loaded).map(|(r, rule)| r.unwrap_or_else(|| Err(refused(rule)))).collect()
}

/// Does the same to every item, on all cores, since rules are most of a cold start; `None` where that panicked. The
/// answers are in the order of the items.
fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<Option<R>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8).min(items.len());
    let next = AtomicUsize::new(0);
    // Each worker takes the next item that nobody has: items differ in size by far.
    let run = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return done };
            done.push((at, std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(item))).ok()));
        }
    };
    let mut results: Vec<Option<R>> = Vec::new();
    results.resize_with(items.len(), || None);
    std::thread::scope(|scope| {
        let handles: Vec<_> = (1..workers).map(|_| scope.spawn(run)).collect();
        let done = handles.into_iter().filter_map(|handle| handle.join().ok()).flatten();
        for (at, result) in run().into_iter().chain(done) {
            results[at] = result;
        }
    });
    results
}

fn problem_at(rule: &LoadedRule, field: &str, message: String) -> RuleProblem {
    RuleProblem {
        file: rule.file.clone(),
        line: rule.line,
        rule_id: rule.def.id.clone(),
        field: field.to_owned(),
        message,
    }
}

fn trigger_min(def: &RuleDef) -> usize {
    def.trigger_min.unwrap_or(match def.trigger {
        Some(Trigger::Token) => 20,
        _ => 4,
    })
}

fn compile_one(rule: &LoadedRule) -> Result<CompiledRule, Vec<RuleProblem>> {
    let mut problems = Vec::new();
    let def = &rule.def;
    check_fields(rule, &mut problems);
    let mut regex_of = |field: &str, pattern: &str| {
        if rule.is_builtin {
            return Some(LazyRegex::known(pattern, build_regex));
        }
        LazyRegex::now(pattern, build_regex)
            .map_err(|message| problems.push(problem_at(rule, field, message)))
            .ok()
    };
    let main = regex_of("pattern", &def.pattern);
    let mut regexes_of = |field: &str, patterns: &OneOrMany| -> Vec<LazyRegex> {
        patterns.as_slice().iter().filter_map(|pattern| regex_of(field, pattern)).collect()
    };
    let exclude = regexes_of("exclude", &def.exclude);
    let exclude_match = regexes_of("exclude_match", &def.exclude_match);
    let exclude_line = regexes_of("exclude_line", &def.exclude_line);
    let exclude_before = def.exclude_before.as_deref().and_then(|p| regex_of("exclude_before", p));
    let exclude_after = def.exclude_after.as_deref().and_then(|p| regex_of("exclude_after", p));
    let near = (!def.near.is_empty())
        .then(|| regex_of("near", &near_pattern(&def.near)))
        .flatten()
        .map(|words| Near { words, distance: def.near_distance });
    let validators: Vec<_> = def
        .validator
        .as_slice()
        .iter()
        .filter_map(|name| match Validator::parse(name) {
            Ok(validator) => Some(validator),
            Err(error) => {
                problems.push(problem_at(rule, "validator", error.to_string()));
                None
            }
        })
        .collect();
    let shape = OnceLock::new();
    // Reading every pattern takes most of a start, and those of built-in rules are known to be in order.
    if !rule.is_builtin && main.is_some() && def.phrases.is_none() {
        match Shape::of(def) {
            Ok((known, _)) => shape.get_or_init(|| known),
            Err((field, message)) => {
                problems.push(problem_at(rule, field, message));
                return Err(problems);
            }
        };
    }
    let (Some(regex), true) = (main, problems.is_empty()) else {
        return Err(problems);
    };
    Ok(CompiledRule {
        info: Arc::new(MetaInfo {
            id: def.id.as_str().into(),
            plugin: rule.plugin.as_str().into(),
            category: Category::new(&def.category),
            severity: def.severity,
            score: def.severity.score() * def.confidence,
            confidence: def.confidence,
            description: def.description.as_str().into(),
            recommendation: def.recommendation.as_str().into(),
            references: def.references.clone(),
            file: rule.file.as_str().into(),
            line: rule.line,
        }),
        first_look: FirstLook::default(),
        shape,
        validators,
        exclude,
        exclude_match,
        exclude_line,
        exclude_before,
        exclude_after,
        near,
        roles: mask(def.roles.as_deref(), |r| *r as u8),
        surfaces: mask(def.surfaces.as_deref(), |s| *s as u8),
        plugin_bit: 0,
        family: None,
        regex,
        def: def.clone(),
    })
}

fn mask<T>(of: Option<&[T]>, bit: impl Fn(&T) -> u8) -> u8 {
    of.map_or(u8::MAX, |list| list.iter().fold(0, |bits, item| bits | 1 << bit(item)))
}

fn near_pattern(words: &[String]) -> String {
    let alternatives: Vec<String> = words.iter().map(|w| regex_syntax::escape(w)).collect();
    format!(r"(?i)(?:^|[^A-Za-z0-9])(?:{})(?:$|[^A-Za-z0-9])", alternatives.join("|"))
}

fn build_regex(pattern: &str) -> Result<meta::Regex, String> {
    meta::Regex::builder()
        .syntax(syntax::Config::new().unicode(false).utf8(false).nest_limit(NEST_MAX))
        .configure(
            meta::Regex::config()
                .utf8_empty(false)
                .nfa_size_limit(Some(REGEX_BYTES_MAX))
                .hybrid_cache_capacity(LAZY_DFA_BYTES_MAX)
                // The gate has found the literals already and cut the text to windows around them: looking for them
                // once more costs time at each search, and a good part of the time that compiling takes.
                .auto_prefilter(false)
                // Whole DFAs cost load time and memory per rule; the lazy one builds what texts really visit.
                .dfa(false),
        )
        .build(pattern)
        .map_err(|error| match (error.syntax_error(), error.size_limit()) {
            (Some(syntax), _) => syntax.to_string(),
            (None, Some(limit)) => format!("compiles to more than {limit} bytes; make its repeats smaller"),
            (None, None) => error.to_string(),
        })
}

impl Shape {
    /// The shape of a rule's pattern and the pattern as it was read, or the field that is wrong and what is wrong with it.
    fn of(def: &RuleDef) -> Result<(Self, Hir), (&'static str, String)> {
        let hir = parse(&def.pattern).map_err(|message| ("pattern", message))?;
        let (before, after, is_prefix) =
            extent(def, &hir).map_err(|message| ("match_length_max", message))?;
        let begin = window::begin(&hir);
        Ok((Self { value_group: group_named(&hir, "value"), before, after, is_prefix, begin }, hir))
    }
}

pub(super) fn parse(pattern: &str) -> Result<Hir, String> {
    regex_syntax::ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .nest_limit(NEST_MAX)
        .build()
        .parse(pattern)
        .map_err(|e| e.to_string())
}

/// Index of the group of that name.
fn group_named(hir: &Hir, name: &str) -> Option<usize> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => None,
        HirKind::Repetition(repetition) => group_named(&repetition.sub, name),
        HirKind::Capture(capture) if capture.name.as_deref() == Some(name) => Some(capture.index as usize),
        HirKind::Capture(capture) => group_named(&capture.sub, name),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().find_map(|p| group_named(p, name))
        }
    }
}

/// Bytes before and after a candidate that a match may take, and whether it begins exactly there.
fn extent(def: &RuleDef, hir: &Hir) -> Result<(usize, usize, bool), String> {
    if hir.properties().minimum_len().unwrap_or(0) == 0 {
        return Err("the pattern can match nothing at all; make one part of it mandatory".to_owned());
    }
    let bound = match (def.match_length_max, hir.properties().maximum_len()) {
        (Some(written), Some(own)) => written.min(own),
        (Some(written), None) => written,
        (None, Some(own)) => own,
        (None, None) => {
            return Err(
                "the pattern has no bound (`*`, `+` or `{n,}`); say how long a match may be".to_owned()
            );
        }
    };
    if bound > MATCH_BYTES_MAX {
        return Err(format!("a match of {bound} bytes is longer than the limit of {MATCH_BYTES_MAX}"));
    }
    if def.literals.is_empty() {
        let is_inside = def.trigger == Some(Trigger::Token) && window::is_within(hir, gate::is_token_byte);
        // Only the byte before a token stands before its place.
        return Ok((if is_inside { 1 } else { bound }, bound, false));
    }
    let literals: Vec<String> = def.literals.iter().map(|l| l.to_ascii_lowercase()).collect();
    let lookback = window::lookback(hir, &literals, bound);
    Ok((lookback.bytes, bound, lookback.is_prefix))
}

fn check_fields(rule: &LoadedRule, problems: &mut Vec<RuleProblem>) {
    let def = &rule.def;
    let mut wrong = |field: &str, message: &str| problems.push(problem_at(rule, field, message.to_owned()));
    let id_ok = def.id.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && def.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-'));
    if !id_ok {
        wrong("id", "use lower-case letters, digits, dots and hyphens, beginning with a letter or digit");
    }
    if rule.plugin.is_empty()
        || !rule.plugin.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    {
        wrong("plugin", "use lower-case letters, digits and underscores");
    }
    if def.category.is_empty() {
        wrong("category", "is empty");
    }
    if !(def.confidence > 0.0 && def.confidence <= 1.0) {
        wrong("confidence", "must be above 0.0 and at most 1.0");
    }
    match (def.literals.is_empty(), def.trigger) {
        (true, None) => wrong("literals", "name literals, one of which every match holds, or a trigger"),
        (false, Some(_)) => wrong("trigger", "a rule has literals or a trigger, not both"),
        _ => {}
    }
    if def.literals.iter().any(|l| l.len() < 3) {
        wrong("literals", "each literal has at least 3 bytes; shorter ones occur everywhere");
    }
    if def.trigger == Some(Trigger::Separator)
        && (def.separators.is_empty() || !def.separators.bytes().all(|b| b.is_ascii_punctuation()))
    {
        wrong("separators", "name the ASCII punctuation that starts this rule");
    }
    if def.trigger != Some(Trigger::Separator) && !def.separators.is_empty() {
        wrong("separators", "only for trigger = \"separator\"");
    }
    if def.trigger == Some(Trigger::Token) && trigger_min(def) < TOKEN_MIN {
        wrong("trigger_min", "a token trigger needs at least 12 bytes; shorter runs are ordinary words");
    }
    if trigger_min(def) == 0 {
        wrong("trigger_min", "must be at least 1");
    }
    if def.description.trim().is_empty() {
        wrong("description", "say in one sentence what is found");
    }
    if def.recommendation.trim().is_empty() {
        wrong("recommendation", "say what to do about it");
    }
    if def.roles.as_ref().is_some_and(Vec::is_empty) {
        wrong("roles", "an empty list switches the rule off; leave it out to mean all roles");
    }
    if def.surfaces.as_ref().is_some_and(Vec::is_empty) {
        wrong("surfaces", "an empty list switches the rule off; leave it out to mean all surfaces");
    }
    if !def.commands.is_empty() && rule.plugin != "streams" {
        wrong("commands", "only rules about streams look at commands");
    }
    if def.near_distance > 1_000 {
        wrong("near_distance", "at most 1000 bytes");
    }
}
