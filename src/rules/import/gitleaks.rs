//! Rules of gitleaks, one by one.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use regex_syntax::hir::Hir;

use super::config::{Allow, Config, Extend, Rule};
use super::literals::{self, LITERAL_MIN};
use super::sample::Sampler;
use super::{ImportError, ImportNote, Imported, NoteWeight, pattern};
use crate::decision::Severity;
use crate::rules::lost::every_match_holds;
use crate::rules::{Budget, RuleProblems, RuleSet, RuleSetConfig, RuleSource, Scope};

/// Longest match of a pattern without a bound of its own, in bytes: the most that rules allow.
const MATCH_BYTES: usize = 16 * 1024;
/// How far from a match a keyword may stand that the match does not hold, in bytes: the most that rules allow.
const NEAR_CHARS: usize = 1_000;
/// Shortest token that starts a rule without a literal.
const TOKEN_MIN: usize = 12;
/// Entropy in bits per character that no text has more of.
const ENTROPY_MAX: f64 = 8.0;
/// What a rule without an id is called.
const NAMELESS: &str = "(without an id)";
/// Most bytes of stop words in one exclusion.
const STOPWORD_BYTES: usize = 8_000;
/// How many texts are made in search of an example.
const SAMPLES: u64 = 40;

pub(super) fn import(text: &str, severity: Severity) -> Result<Imported, ImportError> {
    let config = Config::read(text)?;
    if config.rules.is_empty() && config.extend.is_none() {
        return Err(ImportError { line: None, message: "holds no [[rules]] of gitleaks".to_owned() });
    }
    let (out, everywhere) = (Imported::default(), Vec::new());
    let mut import = Import { config: &config, everywhere, severity, out, ids: BTreeSet::new() };
    import.whole_file();
    for rule in &config.rules {
        import.rule(rule);
    }
    Ok(import.out)
}

struct Import<'c> {
    config: &'c Config,
    /// What allow-lists for all rules, or for some of them, do not report.
    everywhere: Vec<(&'c [String], Exceptions)>,
    severity: Severity,
    out: Imported,
    ids: BTreeSet<String>,
}

/// What a rule does not report.
#[derive(Clone, Default)]
struct Exceptions {
    value: Vec<String>,
    whole: Vec<String>,
    line: Vec<String>,
    /// Regexes and stop words that drop a value only together.
    together: Vec<Together>,
}

/// What drops a value only together: a regex over a part of the text, by its key, and a stop word.
#[derive(Clone)]
struct Together {
    key: &'static str,
    regexes: Vec<String>,
    stopwords: Vec<String>,
}

impl Exceptions {
    fn is_empty(&self) -> bool {
        self.value.is_empty() && self.whole.is_empty() && self.line.is_empty() && self.together.is_empty()
    }

    fn add(&mut self, other: &Self) {
        self.value.extend_from_slice(&other.value);
        self.whole.extend_from_slice(&other.whole);
        self.line.extend_from_slice(&other.line);
        self.together.extend_from_slice(&other.together);
    }
}

/// What starts a rule.
enum Gate {
    Literals(Vec<String>),
    Token(usize),
}

impl<'c> Import<'c> {
    fn note(&mut self, rule: &str, weight: NoteWeight, message: impl Into<String>) {
        self.out.notes.push(ImportNote { rule: rule.to_owned(), weight, message: message.into() });
    }

    fn whole_file(&mut self) {
        let title = self.config.title.as_deref().or(self.config.description.as_deref()).unwrap_or("gitleaks");
        let title: String = title.chars().filter(|c| !c.is_control()).take(120).collect();
        let _ = write!(self.out.toml, "# Imported: {title}.\n\nplugin = \"secrets\"\n");
        let config = self.config;
        if let Some(extend) = &config.extend {
            self.extended(extend);
        }
        if config.min_version.is_some() {
            self.note("", NoteWeight::Remark, "minVersion has no meaning here");
        }
        for key in &config.unknown {
            self.note("", NoteWeight::Changed, format!("`{key}` is not known and was left out"));
        }
        self.everywhere = config
            .allowlist
            .as_slice()
            .iter()
            .chain(&config.allowlists)
            .map(|allow| {
                self.targets(allow);
                (allow.target_rules.as_slice(), self.exception("", allow))
            })
            .collect();
        self.both_kinds("", config.allowlist.as_slice(), &config.allowlists);
    }

    /// What of the configuration below this one is not there.
    fn extended(&mut self, extend: &Extend) {
        let from = match (&extend.path, &extend.url, extend.use_default) {
            (Some(path), ..) => format!("`{path}`"),
            (None, Some(url), _) => format!("`{url}`"),
            (None, None, true) => "the default configuration of gitleaks".to_owned(),
            (None, None, false) => "the file it extends".to_owned(),
        };
        let message = format!("[extend] was not followed: import {from} as well");
        self.note("", NoteWeight::Changed, message);
        if !extend.disabled_rules.is_empty() {
            let message = format!(
                "disabledRules of [extend] was left out: take out of what you import from there {}",
                named(&extend.disabled_rules)
            );
            self.note("", NoteWeight::Changed, message);
        }
        for key in &extend.unknown {
            self.note("", NoteWeight::Changed, format!("`{key}` of [extend] is not known and was left out"));
        }
    }

    /// Rules that an allow-list is for, and that the file does not have.
    fn targets(&mut self, allow: &Allow) {
        let is_missing = |id: &&String| !self.config.rules.iter().any(|rule| rule.id == **id);
        let missing: Vec<String> = allow.target_rules.iter().filter(is_missing).cloned().collect();
        if missing.is_empty() {
            return;
        }
        let told = described(allow);
        let (weight, more) = match self.config.extend {
            Some(_) => (NoteWeight::Changed, ": where you import these from, it is not in force"),
            None => (NoteWeight::Remark, ", and does nothing for them"),
        };
        let message = format!(
            "an allow-list{told} is for rules that this file does not have{more}: {}",
            named(&missing)
        );
        self.note("", weight, message);
    }

    /// Allow-lists of the older and of the newer form side by side, of which gitleaks takes one.
    fn both_kinds(&mut self, name: &str, older: &[Allow], newer: &[Allow]) {
        if !older.is_empty() && !newer.is_empty() {
            let message =
                "has `allowlist` beside `allowlists`, which gitleaks refuses; all of them are in force";
            self.note(name, NoteWeight::Remark, message);
        }
    }

    fn rule(&mut self, rule: &Rule) {
        let name = if rule.id.is_empty() { NAMELESS } else { rule.id.as_str() };
        let left_out = |import: &mut Self, message: String| {
            import.out.left_out += 1;
            import.note(name, NoteWeight::LeftOut, message);
        };
        let Some(regex) = rule.regex.as_deref().filter(|regex| !regex.is_empty()) else {
            let message = "has no regex; texts have no path that it could look at";
            return left_out(self, message.to_owned());
        };
        if !rule.required.is_empty() {
            let message = "asks for matches of other rules near its own, which rules here cannot";
            return left_out(self, message.to_owned());
        }
        if rule.entropy.is_some_and(|bits| bits >= ENTROPY_MAX) {
            let message = format!("asks for more than {ENTROPY_MAX} bits of entropy, which nothing has");
            return left_out(self, message);
        }
        let pattern = match pattern::translate(regex, rule.secret_group.unwrap_or_default()) {
            Ok(pattern) => pattern,
            Err(error) => return left_out(self, format!("its regex cannot be read: {error}")),
        };
        let (gate, near) = match gate(rule, &pattern.hir) {
            Ok(gate) => gate,
            Err(message) => return left_out(self, message),
        };
        self.remarks(name, rule, &pattern.hir, &near);
        let exceptions = self.exceptions(name, rule);
        let id = self.id_of(name);
        let written = Written {
            id: &id,
            rule,
            severity: self.severity,
            pattern: &pattern.text,
            hir: &pattern.hir,
            gate: &gate,
            near: &near,
            exceptions: &exceptions,
        };
        match compiled(&written.toml(&[])) {
            Err(RuleProblems(problems)) => {
                let message =
                    problems.first().map_or_else(String::new, |p| format!("{}: {}", p.field, p.message));
                left_out(self, message);
            }
            Ok(set) => {
                let example = example(&set, &pattern.hir, &near);
                if example.is_none() {
                    let message = "no example could be made for it: write one before you run `rules test`";
                    self.note(name, NoteWeight::Remark, message);
                }
                let text = written.toml(example.as_slice());
                self.out.toml.push('\n');
                self.out.toml.push_str(&text);
                self.out.rules += 1;
            }
        }
    }

    fn remarks(&mut self, name: &str, rule: &Rule, hir: &Hir, near: &[String]) {
        if !near.is_empty() {
            let message = format!(
                "not every match holds one of its keywords, which may stand anywhere in a file for gitleaks; here one \
                 must stand within {NEAR_CHARS} characters of the match"
            );
            self.note(name, NoteWeight::Changed, message);
        }
        if bound_of(hir).is_some() {
            let message = format!("matches longer than {MATCH_BYTES} bytes are not found");
            self.note(name, NoteWeight::Remark, message);
        }
        if rule.path.is_some() {
            self.note(name, NoteWeight::Changed, "its path was left out: it applies to every text");
        }
        if rule.skip_report {
            self.note(name, NoteWeight::Changed, "skipReport was left out: its findings are reported");
        }
        if !rule.tags.is_empty() {
            self.note(name, NoteWeight::Remark, "tags have no meaning here");
        }
        if rule.entropy.is_some_and(|bits| bits.is_nan() || bits < 0.0) {
            self.note(name, NoteWeight::Remark, "its entropy is below zero, which asks for nothing");
        }
        for key in &rule.unknown {
            self.note(name, NoteWeight::Changed, format!("`{key}` is not known and was left out"));
        }
    }

    fn exceptions(&mut self, name: &str, rule: &Rule) -> Exceptions {
        let mut out = Exceptions::default();
        for allow in rule.allowlist.as_slice().iter().chain(&rule.allowlists) {
            if !allow.target_rules.is_empty() {
                let told = described(allow);
                let message = format!("targetRules of an allow-list{told} of one rule has no meaning");
                self.note(name, NoteWeight::Remark, message);
            }
            out.add(&self.exception(name, allow));
        }
        self.both_kinds(name, rule.allowlist.as_slice(), &rule.allowlists);
        for (targets, exceptions) in &self.everywhere {
            if targets.is_empty() || targets.contains(&rule.id) {
                out.add(exceptions);
            }
        }
        out
    }

    fn exception(&mut self, name: &str, allow: &Allow) -> Exceptions {
        let mut out = Exceptions::default();
        let told = described(allow);
        for key in &allow.unknown {
            let message = format!("an allow-list{told} holds `{key}`, which is not known and was left out");
            self.note(name, NoteWeight::Changed, message);
        }
        let is_and = match allow.condition.as_deref().map(str::to_ascii_lowercase).as_deref() {
            None | Some("" | "or" | "||") => false,
            Some("and" | "&&") => true,
            Some(_) => {
                let condition = allow.condition.as_deref().unwrap_or_default();
                let message =
                    format!("an allow-list{told} has the unknown condition `{condition}` and was left out");
                self.note(name, NoteWeight::Changed, message);
                return out;
            }
        };
        let has_place = !allow.paths.is_empty() || !allow.commits.is_empty();
        let kinds = [has_place, !allow.regexes.is_empty(), !allow.stopwords.is_empty()];
        match kinds.iter().filter(|has| **has).count() {
            0 => {
                let message = format!("an allow-list{told} asks for nothing and was left out");
                self.note(name, NoteWeight::Remark, message);
                return out;
            }
            2.. if is_and && has_place => {
                let message = format!(
                    "an allow-list{told} asks for a path or a commit besides, which texts have none of: it never holds and \
                     was left out"
                );
                self.note(name, NoteWeight::Remark, message);
                return out;
            }
            _ => {}
        }
        let is_together = is_and && !allow.regexes.is_empty() && !allow.stopwords.is_empty();
        if has_place {
            let message = format!("paths and commits of an allow-list{told} have no meaning here");
            self.note(name, NoteWeight::Remark, message);
        }
        let (key, target) = match allow.regex_target.as_deref() {
            None | Some("" | "secret") => ("value", &mut out.value),
            Some("match") => ("match", &mut out.whole),
            Some("line") => ("line", &mut out.line),
            Some(other) => {
                let message =
                    format!("an allow-list{told} has the unknown regexTarget `{other}` and was left out");
                self.note(name, NoteWeight::Changed, message);
                return out;
            }
        };
        let (mut regexes, mut wrong) = (Vec::new(), Vec::new());
        for regex in &allow.regexes {
            match pattern::translate_plain(regex) {
                Ok(regex) => regexes.push(regex),
                Err(error) => wrong.push(error),
            }
        }
        let stopwords = stopwords(&allow.stopwords);
        if !is_together {
            target.extend(regexes);
            out.value.extend(stopwords);
        } else if !regexes.is_empty() && !stopwords.is_empty() {
            out.together.push(Together { key, regexes, stopwords });
        }
        for error in wrong {
            let message = format!("a regex of an allow-list{told} cannot be read and was left out: {error}");
            self.note(name, NoteWeight::Changed, message);
        }
        out
    }

    /// An id that no other rule of the file has.
    fn id_of(&mut self, name: &str) -> String {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' }
        };
        let base = format!("gitleaks.{}", name.chars().map(plain).collect::<String>().trim_matches('-'));
        let mut id = base.clone();
        let mut count = 1;
        while !self.ids.insert(id.clone()) {
            count += 1;
            id = format!("{base}-{count}");
        }
        if name == NAMELESS {
            self.note(name, NoteWeight::Remark, format!("it is imported as `{id}`"));
        } else if id != base {
            let same = self.config.rules.iter().filter(|rule| rule.id == name).count() > 1;
            let (weight, whose) = match same {
                true => (NoteWeight::Changed, "another rule has the same id"),
                false => (NoteWeight::Remark, "the id of another rule is too much like its own"),
            };
            self.note(name, weight, format!("{whose}: it is imported as `{id}`, and both are in force"));
        }
        id
    }
}

/// How an allow-list is told from others.
fn described(allow: &Allow) -> String {
    allow.description.as_deref().map_or_else(String::new, |text| format!(" ({text})"))
}

/// Ids as a sentence lists them.
fn named(ids: &[String]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
    ids.join(", ")
}

/// What starts the rule, and words that must stand near a match.
fn gate(rule: &Rule, hir: &Hir) -> Result<(Gate, Vec<String>), String> {
    let mut keywords: Vec<String> = rule.keywords.iter().map(|word| word.to_lowercase()).collect();
    keywords.retain(|word| !word.is_empty());
    let keywords = literals::shortest(keywords);
    let are_held = keywords.is_empty() || every_match_holds(hir, &keywords) == Some(true);
    let are_literals = !keywords.is_empty() && keywords.iter().all(|word| word.len() >= LITERAL_MIN);
    let near = if are_held { Vec::new() } else { keywords.clone() };
    if are_held && are_literals {
        return Ok((Gate::Literals(keywords), near));
    }
    if let Some(found) = literals::required(hir) {
        return Ok((Gate::Literals(found), near));
    }
    if are_literals {
        return Ok((Gate::Literals(keywords), near));
    }
    let least = hir.properties().minimum_len().unwrap_or_default();
    if least >= TOKEN_MIN && !keywords.is_empty() {
        return Ok((Gate::Token(TOKEN_MIN), near));
    }
    Err("its pattern holds no literal of three bytes and is too short or has no keywords: it would have to run over \
         every byte of every text"
        .to_owned())
}

/// The bound that a rule with that pattern needs, where the pattern has none of its own that rules allow.
fn bound_of(hir: &Hir) -> Option<usize> {
    let own = hir.properties().maximum_len();
    own.is_none_or(|own| own > MATCH_BYTES).then_some(MATCH_BYTES)
}

/// Exclusions of values that hold one of the words, in any case.
fn stopwords(words: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in words.iter().filter(|word| !word.is_empty()) {
        let escaped = regex_syntax::escape(word);
        match out.last_mut() {
            Some(last) if last.len() + escaped.len() < STOPWORD_BYTES => {
                last.push('|');
                last.push_str(&escaped);
            }
            _ => out.push(escaped),
        }
    }
    out.into_iter().map(|words| format!("(?i)(?:{words})")).collect()
}

/// A rule about to be written.
struct Written<'r> {
    id: &'r str,
    rule: &'r Rule,
    severity: Severity,
    pattern: &'r str,
    hir: &'r Hir,
    gate: &'r Gate,
    near: &'r [String],
    exceptions: &'r Exceptions,
}

impl Written<'_> {
    fn toml(&self, examples: &[String]) -> String {
        let mut out = String::from("[[rule]]\n");
        let mut put = |key: &str, value: String| {
            let _ = writeln!(out, "{key} = {value}");
        };
        put("id", quoted(self.id));
        let leaf = self.id.trim_start_matches("gitleaks.").replace(['-', '.'], "_");
        put("category", quoted(&format!("secrets.{leaf}")));
        put("severity", quoted(self.severity.as_str()));
        match self.gate {
            Gate::Literals(literals) => put("literals", list(literals)),
            Gate::Token(least) => {
                put("trigger", quoted("token"));
                put("trigger_min", least.to_string());
            }
        }
        put("pattern", literal(self.pattern));
        if let Some(bound) = bound_of(self.hir) {
            put("match_length_max", bound.to_string());
        }
        if let Some(bits) = self.rule.entropy.filter(|bits| *bits > 0.0) {
            put("validator", quoted(&format!("entropy-above:{bits}")));
        }
        for (key, regexes) in [
            ("exclude", &self.exceptions.value),
            ("exclude_match", &self.exceptions.whole),
            ("exclude_line", &self.exceptions.line),
        ] {
            if !regexes.is_empty() {
                put(key, list(regexes));
            }
        }
        if !self.exceptions.together.is_empty() {
            let written = |Together { key, regexes, stopwords }: &Together| {
                format!("[{{ {key} = {} }}, {{ value = {} }}]", list(regexes), list(stopwords))
            };
            let all: Vec<String> = self.exceptions.together.iter().map(written).collect();
            put("exclude_all", format!("[{}]", all.join(", ")));
        }
        if !self.exceptions.is_empty() {
            put("exclude_overlaps", true.to_string());
        }
        if !self.near.is_empty() {
            put("near", list(self.near));
            put("near_distance", NEAR_CHARS.to_string());
            put("near_inside_words", true.to_string());
        }
        let description =
            if self.rule.description.trim().is_empty() { self.id } else { self.rule.description.trim() };
        put("description", quoted(description));
        let advice = "Revoke it with its issuer, issue a new one and keep it in a secret store.";
        put("recommendation", quoted(advice));
        put("examples", list(examples));
        put("negative_examples", list(&[String::from("Nothing of the kind stands in this text.")]));
        out
    }
}

/// The rule compiled alone.
fn compiled(rule: &str) -> Result<RuleSet, RuleProblems> {
    RuleSet::compile(&[RuleSource::custom("import", "secrets", rule)], &RuleSetConfig::default())
}

/// A text in which the only rule of `set` finds something; with a context word before it where it needs one.
fn example(set: &RuleSet, hir: &Hir, near: &[String]) -> Option<String> {
    let with_word = near.first().map(|word| format!("{word}: "));
    let beginnings = [Some(String::new()), with_word];
    beginnings.into_iter().flatten().find_map(|beginning| {
        (1..=SAMPLES).find_map(|seed| {
            let text = format!("{beginning}{}", Sampler::new(seed).text(hir)?);
            let scope = Scope { plugins: u32::MAX, role: None, surface: None };
            let mut matches = Vec::new();
            let scanned = set.with_scratch(|scratch| {
                set.scan(&text, scope, None, scratch, &Budget::UNLIMITED, &mut matches)
            });
            (scanned.is_ok() && !matches.is_empty()).then_some(text)
        })
    })
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A TOML string in which backslashes are backslashes, where that can be.
fn literal(text: &str) -> String {
    let can_be = !text.contains("'''")
        && !text.ends_with('\'')
        && !text.starts_with('\n')
        && text.chars().all(|c| c == '\n' || c == '\t' || !c.is_control());
    if can_be { format!("'''{text}'''") } else { quoted(text) }
}

fn list(texts: &[String]) -> String {
    let items: Vec<String> = texts.iter().map(|text| literal(text)).collect();
    format!("[{}]", items.join(", "))
}
