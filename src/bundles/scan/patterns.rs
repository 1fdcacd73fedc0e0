//! Rules about text, and what findings of the detector core mean in a bundle.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex_automata::meta::Regex;

use super::{Scan, role};
use crate::bundles::coverage::Unscanned;
use crate::bundles::files::{Syntax, is_sample};
use crate::bundles::rules::{BundleRule, BundleRules, Matcher, TextCondition, short_pattern};
use crate::bundles::work::{PLACE, Task};
use crate::decision::{CheckFinding, Severity};
use crate::detect::{Detected, SECRETS};
use crate::rules::caches::{AtRest, Caches, Forgetful};
use crate::text::{Limits, Views, views};

/// Most views of one text that rules look at.
const VIEWS_MAX: usize = 8;

/// Bytes around a literal in which a rule is looked for, besides those that its condition calls near: longer than any
/// match.
const REACH: usize = 500;

/// Most bytes that the patterns of one bundle remember together. Those of a hundred real ones take half as much.
const CACHES_BYTES_MAX: usize = 12 << 20;

/// What it costs to note that a rule may hold around a literal, in nanoseconds, about.
const HIT_COST: u64 = 10;

/// Rules about text, by the surface that they are looked for on.
pub(in crate::bundles) struct Patterns {
    surfaces: BTreeMap<&'static str, OfSurface>,
    at_rest: AtRest<Caches>,
}

/// The rules of one surface behind one pass for the literals of all of them.
#[derive(Debug)]
struct OfSurface {
    /// Places of the rules among all.
    rules: Vec<usize>,
    literals: AhoCorasick,
    /// By literal: the rules that name it.
    by_literal: Vec<Vec<u32>>,
}

/// What the patterns of a set of rules remember while one bundle is scanned; nothing until the first of them is asked.
#[derive(Default)]
pub(in crate::bundles) struct Memory(Option<Caches>);

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory of {} bytes", self.0.as_ref().map_or(0, Forgetful::bytes))
    }
}

static BUILTIN: LazyLock<Patterns> = LazyLock::new(|| {
    Patterns::new(BundleRules::builtin())
        .unwrap_or_else(|error| panic!("literals of built-in rules: {error}"))
});

/// The surface of rules that are looked for on all of them.
const ANY: &str = "any";

impl Patterns {
    /// Those of the built-in rules.
    pub(in crate::bundles) fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// Those of `rules`, and to be used with them alone.
    ///
    /// # Errors
    /// All literals together are too large.
    pub(in crate::bundles) fn new(rules: &BundleRules) -> Result<Self, String> {
        let surface = |name| Ok((name, OfSurface::new(rules.rules(), name)?));
        let surfaces = Syntax::SURFACES.into_iter().map(surface).collect::<Result<_, String>>()?;
        Ok(Self { surfaces, at_rest: AtRest::default() })
    }

    /// Keeps what patterns remember for the next bundle.
    pub(in crate::bundles) fn keep(&self, memory: Memory) {
        if let Some(caches) = memory.0 {
            self.at_rest.give(caches);
        }
    }

    /// Calls `found` with every rule of a surface that matches, and where; only places that `is_new` admits are looked at.
    /// `all` are the rules that this was made of. Stops soon after it cost `cost_max`. Answers what it cost, places found
    /// included.
    fn find<'r>(
        &self,
        all: &'r BundleRules,
        (surface, text): (&str, &str),
        is_new: &dyn Fn(&Range<usize>) -> bool,
        (memory, cost_max): (&mut Memory, u64),
        found: &mut dyn FnMut(&'r BundleRule, Range<usize>),
    ) -> u64 {
        let Some(surface) = self.surfaces.get(surface) else { return 0 };
        let caches = memory.0.get_or_insert_with(|| {
            let slots = all.rules().len() * TextCondition::SLOTS;
            self.at_rest.take().unwrap_or_else(|| Caches::bounded(slots, CACHES_BYTES_MAX))
        });
        surface.find(all, text, is_new, (caches, cost_max), found)
    }
}

impl OfSurface {
    fn new(all: &[BundleRule], name: &str) -> Result<Self, String> {
        let is_wanted = |at: &usize| {
            condition_of(&all[*at])
                .is_some_and(|condition| condition.surfaces.iter().any(|one| one == name || one == ANY))
        };
        let rules: Vec<usize> = (0..all.len()).filter(is_wanted).collect();
        let mut by_text: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (index, at) in rules.iter().enumerate() {
            for literal in condition_of(&all[*at]).map(|it| it.literals.as_slice()).unwrap_or_default() {
                by_text.entry(literal).or_default().push(index as u32);
            }
        }
        let (texts, by_literal): (Vec<&str>, Vec<Vec<u32>>) = by_text.into_iter().unzip();
        let literals = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(texts)
            .map_err(|error| error.to_string())?;
        Ok(Self { rules, literals, by_literal })
    }

    fn find<'r>(
        &self,
        all: &'r BundleRules,
        text: &str,
        is_new: &dyn Fn(&Range<usize>) -> bool,
        (caches, cost_max): (&mut Caches, u64),
        found: &mut dyn FnMut(&'r BundleRule, Range<usize>),
    ) -> u64 {
        let rules = self.rules.iter().filter_map(|at| {
            let rule = all.rules().get(*at)?;
            Some((*at * TextCondition::SLOTS, rule, condition_of(rule)?))
        });
        let rules: Vec<(usize, &BundleRule, &TextCondition)> = rules.collect();
        let mut places: Vec<Vec<Range<usize>>> = vec![Vec::new(); rules.len()];
        let mut cost = 0;
        for hit in self.literals.find_overlapping_iter(text) {
            for rule in &self.by_literal[hit.pattern().as_usize()] {
                cost += HIT_COST;
                let (_, _, condition) = rules[*rule as usize];
                let reach = REACH + condition.within;
                let place = hit.start().saturating_sub(reach)..(hit.end() + reach).min(text.len());
                let places = &mut places[*rule as usize];
                match places.last_mut() {
                    Some(last) if place.end <= last.end => {}
                    _ if !is_new(&place) => {}
                    Some(last) if place.start <= last.end => last.end = last.end.max(place.end),
                    _ => places.push(place),
                }
            }
        }
        for ((slot, rule, condition), mut places) in rules.into_iter().zip(places) {
            if condition.literals.is_empty() {
                places = std::iter::once(0..text.len()).collect();
            }
            for place in places {
                if cost >= cost_max {
                    return cost;
                }
                let start = text.floor_char_boundary(place.start);
                let end = text.ceil_char_boundary(place.end);
                let left = cost_max - cost;
                let mut places = 0;
                cost += condition.each(&text[start..end], (&mut *caches, slot), left, &mut |at| {
                    places += 1;
                    found(rule, start + at.start..start + at.end);
                });
                cost += PLACE * places;
            }
        }
        cost
    }
}

/// What a rule about text looks for.
fn condition_of(rule: &BundleRule) -> Option<&TextCondition> {
    match &rule.matcher {
        Matcher::Text(condition) => Some(condition),
        Matcher::Call(_) | Matcher::Flow(_) => None,
    }
}

impl<'e> Scan<'e, '_> {
    /// Looks for the rules of this file's surface in every view of a piece of its text that begins at `start`.
    /// Answers whether it stopped because the bundle made too much work.
    pub(super) fn patterns(
        &mut self,
        start: usize,
        all: &Views<'_>,
        hits: &mut Vec<(usize, CheckFinding)>,
    ) -> bool {
        let surface = self.syntax.surface();
        let mut found = Vec::new();
        let mut cost = 0;
        let bytes = all.views.first().map_or(0, |view| view.text().len());
        let cost_max = self.found.work.looks_left(bytes);
        for (index, view) in all.views.iter().take(VIEWS_MAX).enumerate() {
            let is_new = |range: &Range<usize>| index == 0 || view.may_be_new(range.clone());
            cost += self.engines.patterns.find(
                self.engines.rules,
                (surface, view.text()),
                &is_new,
                (&mut self.found.memory, cost_max.saturating_sub(cost)),
                &mut |rule, range| {
                    if index > 0 && !view.may_be_new(range.clone()) {
                        return;
                    }
                    found.push((start + view.to_source(range).start, rule));
                },
            );
        }
        let is_cut = cost >= cost_max;
        self.found.work.looked(cost, bytes, is_cut);
        for (at, rule) in found {
            // What is only shown is told, and does not block.
            let severity =
                if self.is_described(at) { rule.severity.min(Severity::Medium) } else { rule.severity };
            hits.push((at, finding(rule, self.path, severity)));
        }
        is_cut
    }

    /// Looks for the rules of a surface in a part of the file that begins at `line`, as it stands.
    pub(super) fn patterns_in_block(&mut self, surface: &str, text: &str, line: u32) {
        let mut hits = Vec::new();
        self.patterns_in_text(surface, text, &mut hits);
        let (mut counted, mut line) = (0, line);
        for (at, rule) in hits {
            line += memchr::memchr_iter(b'\n', &text.as_bytes()[counted..at]).count() as u32;
            counted = at;
            self.add_pattern(rule, line);
        }
    }

    /// Looks for the rules of a surface in a text of the file: where each holds, in the order of the text.
    pub(super) fn patterns_in_text(
        &mut self,
        surface: &str,
        text: &str,
        hits: &mut Vec<(usize, &'e BundleRule)>,
    ) {
        if !self.may(Task::Block, text.len()) {
            return;
        }
        let cost_max = self.found.work.looks_left(text.len());
        let rules = self.engines.rules;
        let cost = self.engines.patterns.find(
            rules,
            (surface, text),
            &|_| true,
            (&mut self.found.memory, cost_max),
            &mut |rule, range| hits.push((range.start, rule)),
        );
        let is_cut = cost >= cost_max;
        self.found.work.looked(cost, text.len(), is_cut);
        if is_cut {
            self.done.cut = Some(Unscanned::TooMuch);
        }
        // In the order of the text, so that its lines are counted once.
        hits.sort_by_key(|(at, _)| *at);
    }

    /// Adds what a rule about text says of a line.
    pub(super) fn add_pattern(&mut self, rule: &BundleRule, line: u32) {
        let is_described = self.is_line_described(line);
        let severity = if is_described { rule.severity.min(Severity::Medium) } else { rule.severity };
        let mut finding = finding(rule, self.path, severity);
        finding.line = line;
        finding.snippet = self.lines.show(line);
        self.found.findings.add(finding);
    }
}

pub(super) fn finding(rule: &BundleRule, path: &str, severity: Severity) -> CheckFinding {
    CheckFinding {
        rule_id: rule.id.clone(),
        file: path.to_owned(),
        line: 0,
        category: rule.category.to_string(),
        severity,
        reason: rule.description.clone(),
        fix_hint: rule.fix.clone(),
        ..CheckFinding::default()
    }
}

/// Files of rules about credentials that are told by their names alone, not by a form of their own.
const BY_NAME: &[&str] = &["generic.toml", "http.toml", "urls.toml", "web_tokens.toml"];
/// The same for those that a value in a script is held by all the same: what stands in a call, a record or a command is used.
const BY_PLACE: &[&str] = &["assignments.toml", "config_files.toml", "programs.toml"];
/// Rules about instructions that harmless documents give as well, when nothing else is said: documents of skills and agents
/// are there to rule what the model does from then on, and show images whose addresses have parts to fill in.
const WEAK: &[&str] = &["injection.indirect-before-answering", "injection.stealth", PERSIST, IMAGE];
/// The rule about text that wants to rule later answers.
const PERSIST: &str = "injection.indirect-persist";
/// The rule about images whose addresses have parts to fill in.
const IMAGE: &str = "injection.exfil-image";
/// The rule about forged ends of parts of a prompt.
const DELIMITER: &str = "injection.spoof-delimiter";

/// The rule about orders to set earlier ones aside.
const OVERRIDE: &str = "injection.override-instructions";

/// A sentence that has the newer of two orders of the user hold.
static CHANGE_OF_MIND: LazyLock<Regex> = LazyLock::new(|| {
    short_pattern(concat!(
        r"(?i)\b(?:users?|they|customers?|people)\b[^.\n]{0,16}\bchange[sd]? (?:their|his|her|its|the) minds?\b",
        r"|\binstructions? (?:of|from|by) the user (?:that|which|if|when)\b[^.\n]{0,60}\b(?:conflict|contradict|supersed|replac|outdated)",
        r"|\bconflict\w*\b[^\n]{0,100}\b(?:latest|newest|newer|most recent|last)\b[^.\n]{0,30}\b(?:from|of|by) the user\b",
    ))
    .unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
});

/// Whether the line of a place says that the user takes back what the user said.
fn is_change_of_mind(text: &str, at: usize) -> bool {
    let start = text[..at].rfind('\n').map_or(0, |start| start + 1);
    let start = text.floor_char_boundary(start.max(at.saturating_sub(AROUND)));
    let line = &text[start..text.ceil_char_boundary((at + AROUND).min(text.len()))];
    let head = &line[..(at - start).min(line.len())];
    let rest = line[head.len()..].split('\n').next().unwrap_or_default();
    CHANGE_OF_MIND.is_match(&line[..head.len() + rest.len()])
}

/// How bad a finding of the detector core is in a bundle; `None` when it says nothing there.
pub(super) fn core_severity(scan: &mut Scan<'_, '_>, detected: &Detected, start: usize) -> Option<Severity> {
    let info = &detected.info;
    let severity = match info.score {
        score if score >= 0.9 => Severity::Critical,
        score if score >= 0.7 => Severity::High,
        score if score >= 0.3 => Severity::Medium,
        _ => Severity::Low,
    };
    let at = start + detected.range.start;
    let is_document = scan.syntax.surface() == "document";
    if &*info.plugin == SECRETS {
        // Documents show how to set a password; what has the form of a provider's key is one wherever it stands.
        let is_of = |files: &[&str]| files.iter().any(|file| info.file.ends_with(file));
        let is_named = is_of(BY_NAME);
        let is_sample = is_document || is_sample(scan.path);
        return Some(match severity {
            _ if (is_named || is_of(BY_PLACE)) && is_sample => Severity::Low,
            Severity::High | Severity::Critical if is_named && scan.syntax.surface() != "config" => {
                Severity::Medium
            }
            severity => severity,
        });
    }
    // What rules later answers says in its own sentence what it wants.
    // A comment of code speaks of files and settings, unless it speaks to a model.
    let is_remark = is_remark(scan, at);
    let reach = if &*info.id == PERSIST || is_remark { SENTENCE } else { AROUND };
    // What an image of a document carries is judged by a rule about documents.
    let is_image = &*info.id == IMAGE && is_document;
    let is_weak_rule = WEAK.contains(&&*info.id) || is_remark;
    let is_weak = is_image || is_weak_rule && !scan.asks_for_harm(at, reach);
    let is_shown = || is_mentioned(scan.text, at) || &*info.id == DELIMITER && is_balanced(scan.text, at);
    let is_changed =
        || &*info.id == OVERRIDE && is_change_of_mind(scan.text, at) && !scan.asks_for_harm(at, AROUND);
    // A pattern in code that looks for such texts says none.
    let phrase = scan.text.get(at..start + detected.range.end).unwrap_or_default();
    let is_pattern = || {
        matches!(scan.syntax, Syntax::Code(_))
            && has_alternatives(phrase)
            && role::is_in_string(scan.text, at)
    };
    let excused = is_weak
        || is_shown()
        || is_changed()
        || is_pattern()
        || scan.is_string_of_guard(at)
        || scan.is_described(at);
    Some(if excused { severity.min(Severity::Medium) } else { severity })
}

/// Whether a phrase holds the alternatives or repeats of a pattern.
fn has_alternatives(phrase: &str) -> bool {
    let is_group = |group: &str| group.split(')').next().is_some_and(|inside| inside.contains('|'));
    ["\\s+", "\\s*", "\\b", ".*"].iter().any(|sign| phrase.contains(sign))
        || phrase.split('(').skip(1).any(is_group)
}

/// Words of whoever speaks to a model.
static ADDRESSES: LazyLock<Regex> = LazyLock::new(|| {
    short_pattern(
        r"(?i)\b(?:ai|llms?|assistants?|agents?|language models?|the model|claude|gpt|chatgpt|copilot|gemini|cursor|codex|instructions?|prompts?|you (?:are|must|should|will|may|can)|your)\b",
    )
    .unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
});

/// Whether a place stands in code and nothing around it speaks to a model.
fn is_remark(scan: &Scan<'_, '_>, at: usize) -> bool {
    if !matches!(scan.syntax, Syntax::Code(_)) {
        return false;
    }
    let start = scan.text.floor_char_boundary(at.saturating_sub(AROUND));
    let end = scan.text.ceil_char_boundary((at + AROUND).min(scan.text.len()));
    let around = views(&scan.text[start..end], &Limits::default());
    !around.views.iter().any(|view| ADDRESSES.is_match(view.text()))
}

/// What introduces a quotation that is an example.
static EXAMPLE: LazyLock<Regex> = LazyLock::new(|| {
    short_pattern(
        r"(?i)\b(?:such as|e\.g\.|for example|for instance|injections?|jailbreaks?|attacks?|attempts?|malicious)\b[^\x22`.!?]{0,60}\z",
    )
    .unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
});

/// Bytes after a place in which its quotation ends, and before and after it in which its element begins or ends.
const QUOTED: usize = 500;
const ELEMENT: usize = 2_000;

/// Whether what begins at `at` stands in a quotation that its line introduces as an example.
fn is_mentioned(text: &str, at: usize) -> bool {
    let before = &text[text.floor_char_boundary(at.saturating_sub(AROUND))..at];
    let before = before.rsplit('\n').next().unwrap_or(before);
    let after = &text[at..text.ceil_char_boundary((at + QUOTED).min(text.len()))];
    let is_mark = |c: char| matches!(c, '"' | '\u{201c}' | '\u{201d}');
    // Only a quotation that is still open, and that ends on the line.
    let is_open = before.chars().filter(|c| is_mark(*c)).count() % 2 == 1;
    let Some(open) = before.rfind(is_mark).filter(|_| is_open) else { return false };
    let is_closed = after.split('\n').next().is_some_and(|rest| rest.contains(is_mark));
    is_closed && EXAMPLE.is_match(&before[..open])
}

/// Whether the element whose end stands at `at` was opened before it: a template that shows both, rather than a forged end.
fn is_balanced(text: &str, at: usize) -> bool {
    let before = &text[text.floor_char_boundary(at.saturating_sub(ELEMENT))..at];
    let after = &text[at..text.ceil_char_boundary((at + ELEMENT).min(text.len()))];
    let is_around = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '.' | ']');
    let tag = after.trim_start_matches(is_around);
    let is_end = tag.starts_with("</");
    let name: String = tag
        .trim_start_matches(['<', '/'])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect();
    if name.is_empty() || !tag.starts_with('<') {
        return false;
    }
    let (open, close) = (format!("<{name}"), format!("</{name}"));
    let count = |tag: &str| before.matches(tag).count();
    match is_end {
        true => count(&open) > count(&close),
        // A beginning, which its end follows, or which only names what was shown before.
        false => count(&close) > 0 || tag.contains(&close),
    }
}

static HARM: LazyLock<Regex> = LazyLock::new(|| {
    short_pattern(concat!(
        r"(?i)~/\.(?:ssh|aws|config|gnupg|kube|npmrc|netrc|docker)|id_(?:rsa|ed25519)|\.env\b|credential|api[ _-]?keys?|tokens?\b|passwords?",
        r"|secrets?\b|private keys?|send (?:it|them|the|all)|upload|exfiltrat|forward (?:it|them|the|all)|post (?:it|them) to|curl|webhook",
        r"|environment variables?|conversation (?:history|log|to\b)",
        r"|(?:include|append|attach|copy|log|record|save|encode|read|put)\w{0,3} [^.\n]{0,40}conversation",
        r"|(?:reveal|print|output|leak|show|repeat|append|include)\w{0,3} [^.\n]{0,30}system prompt",
        r"|\bbcc\b|ignore (?:the user|your|all|any|previous)|overrid(?:e|es|ing)\b|without (?:asking|telling)|hidden|secretly|silently",
    ))
    .unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
});
/// Bytes around an order that say what it is about, and those of a sentence.
const AROUND: usize = 250;
const SENTENCE: usize = 120;

impl Scan<'_, '_> {
    /// Whether the text within `reach` bytes of a place is about secrets, or about sending something away.
    fn asks_for_harm(&self, at: usize, reach: usize) -> bool {
        let start = self.text.floor_char_boundary(at.saturating_sub(reach));
        let end = self.text.ceil_char_boundary((at + reach).min(self.text.len()));
        let around = views(&self.text[start..end], &Limits::default());
        around.views.iter().any(|view| HARM.is_match(view.text()))
    }
}
