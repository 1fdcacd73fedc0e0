//! One rule compiled: its regexes, its validators, and the shape of its matches.
//!
//! Everything that can be wrong with a rule is said at once, with its file and line. Limits bound what a rule file can
//! cost: number of rules, size of each compiled regex, nesting of each pattern, length of each match.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use regex_automata::meta;
use regex_automata::util::syntax;
use regex_syntax::hir::{Hir, HirKind};

use super::branches::Branches;
use super::context;
use super::country::CountrySet;
use super::gate::{self, TOKEN_MIN};
use super::lazy::LazyRegex;
use super::load::LoadedRule;
use super::needs::Needs;
use super::problem::RuleProblem;
use super::schema::{self, OneOrMany, Role, RuleDef, Surface, Trigger};
use super::shapes::Kind;
use super::validate::Validator;
use super::validate::phone_plan::{self, Plan};
use super::window::{self, Begin};
use crate::decision::{Category, Severity};

/// Most bytes of a compiled regex (its NFA).
const REGEX_BYTES_MAX: usize = 4 << 20;
/// Deepest nesting of a pattern.
const NEST_MAX: u32 = 64;
/// Longest match a rule may ask for, in bytes: PEM blocks of large RSA keys need 7 KiB, with room for headers.
const MATCH_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of lazily built DFA states one rule may hold in one worker.
const LAZY_DFA_BYTES_MAX: usize = 1024 * 1024;

/// The parts of a rule that its findings carry.
#[derive(Clone, Debug)]
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

/// What the confidence of a finding is worth where an attack is only shown.
pub const SHOWN_CONFIDENCE: f64 = 0.6;

impl MetaInfo {
    /// The same for a match that a text only shows.
    fn shown(&self) -> Self {
        let confidence = self.confidence * SHOWN_CONFIDENCE;
        Self { score: self.severity.score() * confidence, confidence, ..self.clone() }
    }
}

/// Context words that must stand near a match.
#[derive(Debug)]
pub(super) struct Near {
    pub words: LazyRegex,
    /// How near, in characters.
    pub distance: usize,
    /// Whether they count inside of longer words, and where they begin before a match and end in it.
    pub inside_words: bool,
}

/// What must match for a finding to be dropped: one of the regexes over each part that has any.
#[derive(Debug)]
pub(super) struct Condition {
    pub value: Vec<LazyRegex>,
    pub whole: Vec<LazyRegex>,
    pub line: Vec<LazyRegex>,
}

impl Condition {
    /// Its regexes.
    pub(super) fn regexes(&self) -> impl Iterator<Item = &LazyRegex> {
        self.value.iter().chain(&self.whole).chain(&self.line)
    }
}

/// What a pattern says about the places where it can match.
#[derive(Debug)]
pub(super) struct Shape {
    /// The groups that may hold the value, where not the whole match does: the first that matched something.
    pub value_groups: Vec<usize>,
    /// The group that a finding shows as its span, where that is more than the value.
    pub span_group: Option<usize>,
    /// Bytes before a candidate at which a match may begin.
    pub before: usize,
    /// Bytes after a candidate at which a match may end.
    pub after: usize,
    /// How many of either are characters: how far a match may stand from a literal that is its context.
    pub beside: usize,
    /// Whether every match begins exactly at a literal.
    pub is_prefix: bool,
    /// Where else it can begin.
    pub begin: Begin,
    /// Whether a match may need a line break, which no blank stands for.
    pub minds_breaks: bool,
}

/// A rule ready to run.
#[derive(Debug)]
pub struct CompiledRule {
    /// What its findings carry.
    pub info: Arc<MetaInfo>,
    /// What they carry where the text only shows the attack; none if that is all the same.
    pub info_if_shown: Option<Arc<MetaInfo>>,
    /// The rule as written, for examples and for showing it.
    pub def: RuleDef,
    pub(super) regex: LazyRegex,
    pub(super) branches: Branches,
    /// Read from the pattern together with the shape.
    pub(super) needs: Needs,
    /// Known when it is first needed, as the regex is; see [`super::lazy`].
    shape: OnceLock<Shape>,
    pub(super) validators: Vec<Validator>,
    pub(super) exclude: Vec<LazyRegex>,
    pub(super) exclude_match: Vec<LazyRegex>,
    pub(super) exclude_line: Vec<LazyRegex>,
    /// A finding is dropped where all of one list hold.
    pub(super) exclude_all: Vec<Vec<Condition>>,
    pub(super) exclude_before: Option<LazyRegex>,
    pub(super) exclude_after: Option<LazyRegex>,
    pub(super) near: Option<Near>,
    /// Whether it finds something by words beside it, which the head of a column may be.
    pub(super) reads_columns: bool,
    /// Countries it is about; none for what is of no country.
    pub countries: CountrySet,
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
            // A rule with a literal is asked for its shape where that stands, and for its branches next.
            if self.def.trigger.is_none() {
                self.branches.make(&hir);
                self.needs.make(&hir, &lower_literals(&self.def));
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

    /// Whether a telephone number it found can be one where it stands; `true` for rules that do not ask. `calls` is how
    /// often the numbering plans may still be asked; see [`phone_plan::is_dialled`].
    pub fn admits_region(
        &self,
        text: &str,
        range: &Range<usize>,
        countries: &CountrySet,
        calls: &mut usize,
    ) -> bool {
        let wanted = self.validators.iter().find_map(|validator| match validator {
            Validator::PhonePlan => Some(Plan::World),
            Validator::PhoneRegion => Some(Plan::Hinted),
            _ => None,
        });
        wanted.is_none_or(|plan| phone_plan::is_dialled(text, range, plan, countries, calls))
    }

    /// Where it applies, in words: who speaks, and in which texts.
    pub fn applies_to(&self) -> String {
        let roles: Vec<&str> =
            Role::ALL.into_iter().filter(|role| self.applies_to_role(*role)).map(Role::as_str).collect();
        let surfaces: Vec<&str> = Surface::ALL
            .into_iter()
            .filter(|surface| self.applies_to_surface(*surface))
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

    /// Whether the rule applies to messages of `role`.
    pub fn applies_to_role(&self, role: Role) -> bool {
        self.roles & (1 << role as u8) != 0
    }

    /// Whether the rule applies to texts of `surface`.
    pub fn applies_to_surface(&self, surface: Surface) -> bool {
        self.surfaces & (1 << surface as u8) != 0
    }
}

pub(super) fn problem_at(rule: &LoadedRule, field: &str, message: String) -> RuleProblem {
    RuleProblem {
        file: rule.file.clone(),
        line: rule.line,
        rule_id: rule.def.id.clone(),
        field: field.to_owned(),
        message,
    }
}

pub(super) fn trigger_min(def: &RuleDef) -> usize {
    def.trigger_min.unwrap_or(match def.trigger {
        Some(Trigger::Token) => 20,
        _ => 4,
    })
}

pub(super) fn compile_one(rule: &LoadedRule) -> Result<CompiledRule, Vec<RuleProblem>> {
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
    let mut condition = |written: &schema::Condition| Condition {
        value: regexes_of("exclude_all", &written.value),
        whole: regexes_of("exclude_all", &written.whole),
        line: regexes_of("exclude_all", &written.line),
    };
    let exclude_all = def.exclude_all.iter().map(|all| all.iter().map(&mut condition).collect()).collect();
    let exclude_before = def.exclude_before.as_deref().and_then(|p| regex_of("exclude_before", p));
    let exclude_after = def.exclude_after.as_deref().and_then(|p| regex_of("exclude_after", p));
    let near = (!def.near.is_empty())
        .then(|| regex_of("near", &near_pattern(&def.near, def.near_inside_words)))
        .flatten()
        .map(|words| Near { words, distance: def.near_within(), inside_words: def.near_inside_words });
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
    let mut countries = CountrySet::EMPTY;
    for code in &def.countries {
        if let Err(error) = countries.add(code) {
            problems.push(problem_at(rule, "countries", error.to_string()));
        }
    }
    let (shape, needs) = (OnceLock::new(), Needs::default());
    // Reading every pattern takes most of a start, and those of built-in rules are known to be in order.
    if !rule.is_builtin && main.is_some() && def.phrases.is_none() {
        match Shape::of(def) {
            Ok((known, hir)) => {
                if def.trigger.is_none() {
                    needs.make(&hir, &lower_literals(def));
                }
                shape.get_or_init(|| known)
            }
            Err((field, message)) => {
                problems.push(problem_at(rule, field, message));
                return Err(problems);
            }
        };
    }
    let (Some(regex), true) = (main, problems.is_empty()) else {
        return Err(problems);
    };
    let info = MetaInfo {
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
    };
    Ok(CompiledRule {
        info_if_shown: def.milder_if_shown.then(|| Arc::new(info.shown())),
        info: Arc::new(info),
        branches: Branches::default(),
        needs,
        shape,
        validators,
        exclude,
        exclude_match,
        exclude_line,
        exclude_all,
        exclude_before,
        exclude_after,
        reads_columns: context::reads_columns(&rule.plugin, def),
        near,
        countries,
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

/// The pattern of context words. `inside_words` takes them wherever they stand, in any ASCII case; else they stand by
/// themselves, in any ASCII case and with `_`, `-` or nothing in place of a blank, or are parts of a name in camel case, where a
/// capital begins the next word.
fn near_pattern(words: &[String], inside_words: bool) -> String {
    if inside_words {
        let alternatives: Vec<String> = words.iter().map(|word| regex_syntax::escape(word)).collect();
        return format!("(?i)(?:{})", alternatives.join("|"));
    }
    let plain = |word: &String| regex_syntax::escape(word).replace(' ', "[ _-]?");
    let alone: Vec<String> = words.iter().map(plain).collect();
    let capital = |part: &str| {
        let mut letters = part.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    let camel = |word: &String| -> Option<String> {
        let word = word.to_ascii_lowercase();
        let is_letters = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b' ');
        is_letters.then(|| word.split(' ').filter_map(capital).collect())
    };
    let parts: Vec<String> = words.iter().filter_map(camel).collect();
    let mut pattern = format!(r"(?i:(?:^|[^A-Za-z0-9])(?:{})(?:$|[^A-Za-z0-9]))", alone.join("|"));
    if !parts.is_empty() {
        let small = |part: &String| part[..1].to_ascii_lowercase() + &part[1..];
        let begins: Vec<String> = parts.iter().flat_map(|part| [part.clone(), small(part)]).collect();
        let (begins, ends) = (begins.join("|"), parts.join("|"));
        pattern += &format!("|(?:^|[^A-Za-z0-9])(?:{begins})[A-Z]|[a-z](?:{ends})(?:$|[^A-Za-z0-9]|[A-Z])");
    }
    pattern
}

/// What is told of how regexes of rules are made.
fn config() -> meta::Config {
    meta::Regex::config()
        .utf8_empty(false)
        .nfa_size_limit(Some(REGEX_BYTES_MAX))
        .hybrid_cache_capacity(LAZY_DFA_BYTES_MAX)
        // The gate has found the literals already and cut the text to windows around them: looking for them once more costs
        // time at each search, and a good part of the time that compiling takes.
        .auto_prefilter(false)
        // Whole DFAs cost load time and memory per rule; the lazy one builds what texts really visit.
        .dfa(false)
}

/// Compiles a part of a pattern as the pattern is compiled.
///
/// # Errors
/// It is too large.
pub(super) fn build_hir(hir: &Hir) -> Result<meta::Regex, String> {
    meta::Regex::builder().configure(config()).build_from_hir(hir).map_err(|error| error.to_string())
}

pub(super) fn build_regex(pattern: &str) -> Result<meta::Regex, String> {
    meta::Regex::builder()
        .syntax(syntax::Config::new().unicode(false).utf8(false).nest_limit(NEST_MAX))
        .configure(config())
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
        let Extent { before, after, beside, is_prefix } =
            extent(def, &hir).map_err(|message| ("match_length_max", message))?;
        let begin = window::begin(&hir);
        let mut value_groups = Vec::from_iter(group_named(&hir, "value"));
        // More of them are rare.
        while !value_groups.is_empty()
            && let Some(group) = group_named(&hir, &format!("value{}", value_groups.len() + 1))
        {
            value_groups.push(group);
        }
        let span_group = group_named(&hir, "span");
        let minds_breaks = window::minds_breaks(&hir);
        Ok((Self { value_groups, span_group, before, after, beside, is_prefix, begin, minds_breaks }, hir))
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

/// What a match may take around a candidate; see [`Shape`].
struct Extent {
    before: usize,
    after: usize,
    beside: usize,
    is_prefix: bool,
}

fn extent(def: &RuleDef, hir: &Hir) -> Result<Extent, String> {
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
    if def.gate_literals().next().is_none() {
        let is_inside = def.trigger == Some(Trigger::Token) && window::is_within(hir, gate::is_token_byte);
        // Only the byte before a token stands before its place.
        let before = if is_inside { 1 } else { bound };
        return Ok(Extent { before, after: bound, beside: 0, is_prefix: false });
    }
    let literals = lower_literals(def);
    let lookback = window::lookback(hir, &literals, bound);
    let is_beside = !lookback.is_prefix && lookback.bytes == bound && def.is_gated_by_context();
    if is_beside {
        // The match stands as far from its literal as a context word may from the match, on either side.
        let longest = literals.iter().map(String::len).max().unwrap_or(0);
        let beside = def.near_within();
        let far = bound + beside;
        return Ok(Extent { before: far, after: far + longest, beside, is_prefix: false });
    }
    Ok(Extent { before: lookback.bytes, after: bound, beside: 0, is_prefix: lookback.is_prefix })
}

/// Every literal of the gate, in lower case.
fn lower_literals(def: &RuleDef) -> Vec<String> {
    def.gate_literals().map(|literal| literal.to_ascii_lowercase()).collect()
}

/// Whether a name is one that policies can name: parts of lower-case letters, digits, `_` and `-` with dots between them.
fn is_category(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'))
    };
    name.split('.').all(is_part)
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
    } else if !is_category(&def.category) {
        wrong(
            "category",
            "use lower-case letters, digits, `_` and `-` between dots: a policy can name no other",
        );
    }
    if !(def.confidence > 0.0 && def.confidence <= 1.0) {
        wrong("confidence", "must be above 0.0 and at most 1.0");
    }
    match (def.gate_literals().next().is_none(), def.trigger) {
        (true, None) => wrong("literals", "name literals, one of which every match holds, or a trigger"),
        (false, Some(_)) => wrong("trigger", "a rule has literals or a trigger, not both"),
        _ => {}
    }
    if def.literals.iter().any(|l| l.len() < 3) {
        wrong("literals", "each literal has at least 3 bytes; shorter ones occur everywhere");
    }
    if def.literals_begin_words && def.literals.is_empty() {
        wrong("literals_begin_words", "only for a rule that has literals");
    }
    if def.literal_words.iter().any(|word| word.len() < 3) {
        wrong(
            "literal_words",
            "each word has at least 3 bytes; write a shorter one with what follows it, as in `tc:`",
        );
    }
    if !def.literal_words.is_empty() && rule.plugin == super::STREAMS {
        wrong("literal_words", "not for rules about streams, whose literals are joined over wrapped lines");
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
    if def.any_command && def.commands.is_empty() {
        wrong("any_command", "name the rules about commands in `commands`");
    }
    let excludes = [&def.exclude, &def.exclude_match, &def.exclude_line];
    let has_none =
        excludes.iter().all(|patterns| patterns.as_slice().is_empty()) && def.exclude_all.is_empty();
    if def.exclude_overlaps && has_none {
        wrong(
            "exclude_overlaps",
            "only for a rule with `exclude`, `exclude_match`, `exclude_line` or `exclude_all`",
        );
    }
    let asks_nothing = |one: &schema::Condition| {
        [&one.value, &one.whole, &one.line].iter().all(|patterns| patterns.as_slice().is_empty())
    };
    if def.exclude_all.iter().any(|all| all.is_empty() || all.iter().any(asks_nothing)) {
        wrong(
            "exclude_all",
            "a condition names `value`, `match` or `line`; without one it would always hold",
        );
    }
    if def.near_inside_words && def.near.is_empty() {
        wrong("near_inside_words", "only for a rule that has context words");
    }
    if def.near_distance.is_some_and(|chars| chars > 1_000) {
        wrong("near_distance", "at most 1000 characters");
    }
    if def.near_distance.is_some() && def.near.is_empty() {
        wrong("near_distance", "only for a rule that has `near`");
    }
    if def.match_length_max.is_some_and(|bytes| bytes > MATCH_BYTES_MAX) {
        wrong("match_length_max", "at most 16384 bytes (16 KiB)");
    }
}
