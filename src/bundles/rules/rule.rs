//! What a rule about bundles says, and what is known of the functions of libraries.

use std::ops::Range;
use std::sync::OnceLock;

use regex_automata::Input;
use regex_automata::meta::{Cache, Regex};
use regex_automata::util::iter::Searcher;

use super::load;
use crate::bundles::code::Taint;
use crate::bundles::flow::{Reach, Source, To};
use crate::decision::{Category, Severity};
use crate::rules::caches::Caches;
use crate::rules::lazy::LazyRegex;

/// What is known of some functions.
#[derive(Debug)]
pub struct Api {
    /// What they do, such as `evaluate` or `send`; rules name it.
    pub class: String,
    /// Canonical names: `os.system`, `child_process.exec`; `*.name` is a method whose owner is not known.
    pub names: Vec<String>,
    /// What their result is tainted with.
    pub returns: Taint,
    /// Whether the result is tainted with nothing else: what went in does not come out.
    pub is_clean: bool,
    /// Whether a use of the name is enough, without a call: `process.env`.
    pub is_value: bool,
    /// The capability that a call shows, such as `network` or `process`; empty for none.
    pub capability: String,
}

/// A service whose secrets go to its own hosts.
#[derive(Debug)]
pub struct Provider {
    /// How names of variables that hold its secrets begin, in upper case.
    pub variables: Vec<String>,
    /// What a host of its own contains.
    pub hosts: Vec<String>,
}

/// One rule.
#[derive(Debug)]
pub struct BundleRule {
    /// Stable id: dashboards and suppressions name it.
    pub id: String,
    /// What kind of thing it finds, such as `code_exec`.
    pub category: Category,
    /// How bad it is. HIGH and CRITICAL block.
    pub severity: Severity,
    /// What is wrong, one sentence for the uploader.
    pub description: String,
    /// What to do about it.
    pub fix: String,
    /// Where this is described.
    pub references: Vec<String>,
    /// What it looks at.
    pub matcher: Matcher,
    /// What it must find.
    pub examples: Examples,
    /// What it must not find.
    pub negative_examples: Examples,
    /// What it ought to find and does not yet.
    pub known_misses: Examples,
    /// The file that the rule comes from.
    pub file: String,
    /// 1-based line where it begins.
    pub line: usize,
}

/// What a rule looks at.
#[derive(Debug)]
pub enum Matcher {
    /// Calls in parsed code.
    Call(CallCondition),
    /// Text.
    Text(TextCondition),
    /// Values that go from one place to another in a program that no parser reads.
    Flow(FlowCondition),
}

/// A condition on where a value goes.
#[derive(Debug)]
pub struct FlowCondition {
    /// Where it comes from, one of these.
    pub(in crate::bundles) from: Source,
    /// What is done with it, one of these.
    pub(in crate::bundles) to: Vec<To>,
}

/// A condition on one call. Everything that is given must hold.
#[derive(Debug, Default)]
pub struct CallCondition {
    /// Classes or canonical names, one of which the call has.
    pub of: Vec<String>,
    /// Taints, one of which an argument has; empty asks for nothing.
    pub taints: Taint,
    /// More taints, one of which an argument has.
    pub and_taints: Taint,
    /// Taints that no argument may have.
    pub not_taints: Taint,
    /// How many different ones of `taints` there must be at least.
    pub taints_min: u32,
    /// Pattern that the text of the arguments must match.
    pub(in crate::bundles) text: Option<LazyRegex>,
    /// Pattern that the text of the arguments must not match.
    pub(in crate::bundles) not_text: Option<LazyRegex>,
    /// Whether the name of the function was put together or computed.
    pub is_hidden: Option<bool>,
    /// Classes all of which occur somewhere in the file.
    pub with: Vec<String>,
    /// Classes none of which occur in the file.
    pub without: Vec<String>,
    /// Named arguments and their texts: `verify = "false"`.
    pub keywords: Vec<(String, String)>,
    /// Base names of files that it is looked for in; empty for any.
    pub files: Vec<String>,
    /// Whether only what is sent counts: addresses, bodies and queries, not headers and credentials.
    pub is_body: bool,
    /// Whether a secret of one service must go to a host of another.
    pub is_foreign_secret: bool,
    /// Whether a secret of the environment must stand in the query of the address, by a name that no service asks for one by.
    pub is_query_secret: bool,
    /// The one positional argument that `taints`, `text` and so on look at; `None` for all.
    pub argument: Option<usize>,
}

impl FlowCondition {
    /// Whether it holds for where a value goes.
    pub(in crate::bundles) fn holds(&self, reach: &Reach) -> bool {
        self.from.meets(reach.from) && self.to.contains(&reach.to)
    }
}

/// What it costs to ask about a byte quickly, to read it exactly, and to look at a match, in nanoseconds, about.
const LOOK_COST: u64 = 5;
const EXACT_COST: u64 = 15;
const MATCH_COST: u64 = 2_000;

/// A condition on text. The engine that reads documents and configuration looks for it.
#[derive(Debug)]
pub struct TextCondition {
    /// Kinds of text that it is looked for in, such as `document`, `config` or `script`.
    pub surfaces: Vec<String>,
    /// The pattern.
    pub(super) pattern: LazyRegex,
    /// What says quickly that the pattern does not match; none where that is no quicker. Made when it is first asked.
    pub(super) relaxed: OnceLock<Option<Regex>>,
    /// The pattern as written.
    pub pattern_text: String,
    /// A pattern that takes the finding back where it matches the same line.
    pub(super) unless: Option<LazyRegex>,
    /// Patterns each of which must match near the place.
    pub(super) near: Vec<LazyRegex>,
    /// How many bytes before and after the place are near.
    pub within: usize,
    /// Texts, in any letter case, without one of which near by the rule cannot hold; it is only looked for around them.
    /// Empty: everywhere.
    pub literals: Vec<String>,
}

impl TextCondition {
    /// Slots that a condition takes of the caches of a scan.
    pub(in crate::bundles) const SLOTS: usize = 2;

    /// Calls `found` with every place in a text where the condition holds. `caches` keep what its patterns remember, from
    /// `slot` on. Answers what that cost, in nanoseconds, about: counted rather than timed, so that the same text always
    /// costs the same. Stops at the match after it cost `cost_max`.
    pub(in crate::bundles) fn each(
        &self,
        text: &str,
        (caches, slot): (&mut Caches, usize),
        cost_max: u64,
        found: &mut dyn FnMut(Range<usize>),
    ) -> u64 {
        let cost = LOOK_COST * text.len() as u64;
        if let Some(relaxed) = self.relaxed.get_or_init(|| load::relaxed(&self.pattern_text)) {
            let may_match = caches.with(slot, |cache| {
                let cache = cache.get_or_insert_with(|| Box::new(relaxed.create_cache()));
                relaxed.search_half_with(cache, &Input::new(text).earliest(true)).is_some()
            });
            if !may_match {
                return cost;
            }
        }
        caches.with(slot + 1, |cache| {
            let cache = cache.get_or_insert_with(|| Box::new(self.pattern.create_cache()));
            cost + self.exactly(text, cache, cost_max.saturating_sub(cost), found)
        })
    }

    fn exactly(
        &self,
        text: &str,
        cache: &mut Cache,
        cost_max: u64,
        found: &mut dyn FnMut(Range<usize>),
    ) -> u64 {
        let mut cost = EXACT_COST * text.len() as u64;
        let mut searcher = Searcher::new(Input::new(text));
        while let Some(place) = searcher.advance(|input| Ok(self.pattern.search_with(cache, input))) {
            let place = text.floor_char_boundary(place.start())..text.ceil_char_boundary(place.end());
            let start = text.floor_char_boundary(place.start.saturating_sub(self.within));
            let end = text.ceil_char_boundary((place.end + self.within).min(text.len()));
            let around = &text[start..end];
            cost += MATCH_COST + LOOK_COST * (around.len() * self.near.len()) as u64;
            if self.near.iter().all(|near| near.is_match(around)) {
                let is_taken_back = self.unless.as_ref().is_some_and(|unless| {
                    let lines = lines_at(text, &place);
                    cost += LOOK_COST * lines.len() as u64;
                    unless.is_match(lines)
                });
                if !is_taken_back {
                    found(place);
                }
            }
            if cost >= cost_max {
                break;
            }
        }
        cost
    }
}

/// Bytes of a line before and after a match that can take it back: a line may be as long as a text, and full of matches.
const LINE_BYTES: usize = 2_000;

/// The lines that a range of a text stands in.
fn lines_at<'t>(text: &'t str, range: &Range<usize>) -> &'t str {
    let from = text.ceil_char_boundary(range.start.saturating_sub(LINE_BYTES)).min(range.start);
    let to = text.floor_char_boundary((range.end + LINE_BYTES).min(text.len())).max(range.end);
    let start = text[from..range.start].rfind('\n').map_or(from, |at| from + at + 1);
    let end = text[range.end..to].find('\n').map_or(to, |at| range.end + at);
    &text[start..end]
}

/// Texts that a rule must find something in, or must not.
#[derive(Clone, Debug, Default)]
pub struct Examples {
    /// The texts.
    pub texts: Vec<String>,
    /// What each is written in: `python`, `javascript`, or the surface of a text.
    pub languages: Vec<String>,
}

impl Examples {
    /// Each text with what it is written in.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.languages.iter().zip(&self.texts).map(|(language, text)| (&**language, &**text))
    }
}
