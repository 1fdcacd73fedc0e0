//! All rules compiled into one set: the gate in front of them, what they share, and what must hold between them.
//!
//! Everything that can be wrong with a rule is said at once, with its file and line. How one rule is compiled stands in
//! `compile`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use super::caches::AtRest;
use super::compile::{CompiledRule, Condition, compile_one, problem_at, trigger_min};
use super::context::ContextWords;
use super::gate::{Gate, GateRule};
use super::load::{LoadedRule, RuleSource, parse_file};
use super::meanings::Meanings;
use super::model::Model;
use super::problem::{RuleProblem, RuleProblems, at_fields};
use super::scan::{Scratch, TRIGGERED_REACH};
use super::schema::{Concept, Trigger};
use super::triggered::Group;
use super::vocabulary::Vocabulary;

/// Most rules in one set.
const RULES_MAX: usize = 5_000;

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

/// All rules, compiled together. Immutable; share it behind an `Arc`.
pub struct RuleSet {
    pub(super) rules: Vec<CompiledRule>,
    gate: Gate,
    /// The gate of all rules but those about prompt injection; made when it is first asked for.
    narrow_gate: OnceLock<Gate>,
    plugins: Vec<Arc<str>>,
    families: Vec<Concept>,
    model: Option<Model>,
    /// What words mean, by file, until somebody asks.
    meaning_files: Vec<BTreeMap<String, String>>,
    meanings: OnceLock<Meanings>,
    version: Arc<str>,
    revision: String,
    groups: Vec<Group>,
    /// Bits of the plugins that have rules without a literal, and how far these reach from what starts them.
    triggered: Vec<(u32, usize)>,
    vocabulary: OnceLock<Vocabulary>,
    context: OnceLock<ContextWords>,
    pub(super) scratches: AtRest<Scratch>,
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
        Self::compiled(sources, config).map_err(|RuleProblems(mut problems)| {
            for source in sources.iter().filter(|source| !source.is_builtin) {
                at_fields(problems.iter_mut().filter(|problem| problem.file == source.name), &source.text);
            }
            RuleProblems(problems)
        })
    }

    fn compiled(sources: &[RuleSource], config: &RuleSetConfig) -> Result<Self, RuleProblems> {
        let mut loaded = Vec::new();
        let (mut problems, mut models, mut meaning_files) = (Vec::new(), Vec::new(), Vec::new());
        for (result, source) in on_all_cores(sources, parse_file).into_iter().zip(sources) {
            match result {
                Some(Ok(file)) => {
                    loaded.extend(file.rules);
                    models.extend(file.model.map(|model| (model, source.is_builtin)));
                    meaning_files.push(file.meanings);
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
        let mut triggered: Vec<(u32, usize)> = Vec::new();
        for rule in &rules {
            let reach = match rule.def.trigger {
                None => continue,
                Some(Trigger::Token) => TRIGGERED_REACH,
                Some(_) => rule.shape().before.max(rule.shape().after).max(TRIGGERED_REACH),
            };
            match triggered.iter_mut().find(|(bit, _)| *bit == rule.plugin_bit) {
                Some((_, most)) => *most = reach.max(*most),
                None => triggered.push((rule.plugin_bit, reach)),
            }
        }
        Ok(Self {
            rules,
            triggered,
            gate,
            narrow_gate: OnceLock::new(),
            plugins,
            families,
            model,
            meaning_files,
            meanings: OnceLock::new(),
            version: config.version.clone(),
            revision: Self::revision_of(sources),
            groups,
            vocabulary: OnceLock::new(),
            context: OnceLock::new(),
            scratches: AtRest::default(),
        })
    }

    /// The gate of the rules of some plugins, as bits; it may let through more. Most literals are of phrases of prompt
    /// injection, whose words are common: who looks for credentials and personal data alone is not held up by them.
    pub(super) fn gate(&self, plugins: u32) -> &Gate {
        let injection = self.plugin_bits([super::INJECTION]);
        if injection == 0 || self.is_about_injection(plugins) {
            return &self.gate;
        }
        self.narrow_gate.get_or_init(|| gate_of(&self.rules, |rule| rule.plugin_bit & injection == 0))
    }

    /// Whether prompt injection is among some plugins, as bits.
    pub(super) fn is_about_injection(&self, plugins: u32) -> bool {
        plugins & self.plugin_bits([super::INJECTION]) != 0
    }

    /// Whether a rule of these plugins, as bits, is started by something else than a literal.
    pub(super) fn has_triggers(&self, plugins: u32) -> bool {
        self.triggered.iter().any(|(bit, _)| bit & plugins != 0)
    }

    /// How far rules of these plugins reach that something else than a literal starts, in bytes; 0 without any.
    pub(super) fn triggered_reach(&self, plugins: u32) -> usize {
        let wanted = self.triggered.iter().filter(|(bit, _)| bit & plugins != 0);
        wanted.map(|(_, reach)| *reach).max().unwrap_or(0)
    }

    /// The rules without a literal.
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Whether phrases of prompt injection have this word. False for words of three letters.
    pub fn is_phrase_word(&self, word: &[u8]) -> bool {
        self.vocabulary().holds(word)
    }

    /// Whether phrases of prompt injection have a word that begins with the first four of these letters.
    pub fn begins_phrase_word(&self, letters: &[u8]) -> bool {
        self.vocabulary().begins(letters)
    }

    /// Made when it is first needed: most texts have nothing that may be a disguise.
    fn vocabulary(&self) -> &Vocabulary {
        self.vocabulary.get_or_init(|| {
            let rules = self.rules.iter().filter(|rule| &*rule.info.plugin == super::INJECTION);
            Vocabulary::of(rules.flat_map(|rule| {
                let phrases = rule.def.phrases.iter().flat_map(|phrases| phrases.words());
                let is_plain = rule.def.phrases.is_none();
                let own = std::iter::once(&rule.def.pattern).chain(rule.def.gate_literals());
                phrases.chain(own.filter(move |_| is_plain).map(String::as_str))
            }))
        })
    }

    /// The plugins whose rules find something by words beside it, which the head of a column may be, as bits.
    pub fn plugins_of_columns(&self) -> u32 {
        self.context().plugins
    }

    /// Whether the head of a column may hold a word that rules ask for near what they find.
    pub fn is_context(&self, head: &str) -> bool {
        self.context().are_in(head)
    }

    /// Made when it is first needed: most texts hold no table.
    fn context(&self) -> &ContextWords {
        self.context.get_or_init(|| ContextWords::of(&self.rules))
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
            let together = rule.exclude_all.iter().flatten().flat_map(Condition::regexes);
            for regex in std::iter::once(&rule.regex).chain(own).chain(together).chain(context).chain(near) {
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

    /// What words mean. Made when it is first asked for.
    pub fn meanings(&self) -> &Meanings {
        self.meanings.get_or_init(|| Meanings::of(self.meaning_files.iter()))
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
    let wanted: Vec<_> = wanted.map(|(index, rule)| (index, rule, literals_of(rule))).collect();
    Gate::build(wanted.iter().map(|(index, rule, literals)| GateRule {
        index: *index as u32,
        literals,
        literals_begin_words: rule.def.literals_begin_words,
        literal_words: &rule.def.literal_words,
        phrases: rule.def.phrases.as_deref(),
        trigger: rule.def.trigger,
        trigger_min: trigger_min(&rule.def),
        separators: &rule.def.separators,
        is_phrase: &*rule.info.plugin == super::INJECTION,
    }))
}

/// What may stand in output where a literal has a blank.
const BLANKS: [&str; 5] = [" ", "\n", "\r\n", "\t", "  "];
/// Blanks of a literal that are varied each on its own; more are all varied alike.
const VARIED_MAX: usize = 2;

/// The literals that the gate looks for. Phrases in output may be wrapped between any two words.
pub(super) fn literals_of(rule: &CompiledRule) -> Cow<'_, [String]> {
    let literals = &rule.def.literals;
    let is_phrase = &*rule.info.plugin == super::STREAMS && rule.def.commands.is_empty();
    if !is_phrase || !literals.iter().any(|literal| literal.contains(' ')) {
        return Cow::Borrowed(literals);
    }
    let mut all = Vec::new();
    for literal in literals {
        let words: Vec<&str> = literal.split(' ').collect();
        if words.len() > 1 + VARIED_MAX {
            all.extend(BLANKS.iter().map(|blank| words.join(blank)));
            continue;
        }
        let mut made = vec![words[0].to_owned()];
        for word in &words[1..] {
            made = made.iter().flat_map(|one| BLANKS.map(|blank| format!("{one}{blank}{word}"))).collect();
        }
        all.extend(made);
    }
    Cow::Owned(all)
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

/// Does the same to every item, on up to eight cores, since rules are most of a cold start and fits most of a training; `None` where that panicked. The
/// answers are in the order of the items.
pub(crate) fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<Option<R>> {
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
