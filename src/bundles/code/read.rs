//! Constants read out of texts and filled into them: JSON, literals, templates, patterns that replace.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use regex_automata::meta::Regex;

use super::Language;
use super::call::Arguments;
use super::follow::Walk;
use super::judge::option;
use super::taint::Taint;
use super::value::{ELEMENTS_MAX, Shape, Value};

/// Bytes of a text that is parsed or searched.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Bytes of a pattern, of the automaton that is made of it, and of the text that it searches.
const PATTERN_BYTES_MAX: usize = 200;
const AUTOMATON_BYTES_MAX: usize = 1 << 14;
const SEARCHED_BYTES_MAX: usize = 2 << 10;
/// Steps that making an automaton costs.
const PATTERN_STEPS: usize = 1_500;
/// Places in which a pattern matches, and different ones of them that a function is asked about.
const FOUND_MAX: usize = 4_096;
const MADE_MAX: usize = 128;
/// Letters that became others for a text to be one that nobody can read.
const TURNED_MIN: usize = 4;
/// Levels of data.
const DEPTH_MAX: usize = 16;

impl Walk<'_> {
    /// What a function gives that reads a constant out of a text or fills one in; `None` when that is not known.
    pub fn read_constant(
        &mut self,
        path: &str,
        callee: &Value,
        arguments: &Arguments,
        at: u32,
    ) -> Option<Value> {
        // A pattern that was compiled before stands in front of what its methods are given.
        if let Some(method) = path.strip_prefix("re.compile().")
            && let Some(pattern) = callee.about.clone()
        {
            let mut given = vec![(None, Value::text(pattern))];
            given.extend(arguments.iter().cloned());
            return self.read_constant(&format!("re.{method}"), &Value::default(), &given, at);
        }
        let first = arguments.first().map(|(_, value)| value);
        let known = |nth: usize| {
            arguments
                .get(nth)
                .and_then(|(_, value)| value.known_text())
                .filter(|text| text.len() <= TEXT_BYTES_MAX)
        };
        let taint = arguments.iter().fold(Taint::NONE, |all, (_, value)| all | value.deep_taint());
        let value = match path {
            "json.loads" | "JSON.parse" | "json5.parse" | "orjson.loads" | "ujson.loads" => {
                let text = known(0)?;
                self.data(&text)?
            }
            "ast.literal_eval" => {
                let text = known(0)?;
                // Most literals of Python are JSON in other quotes.
                self.data(&text).or_else(|| self.data(&text.replace('\'', "\"")))?
            }
            "textwrap.dedent" | "inspect.cleandoc" | "textwrap.fill" | "textwrap.indent" => first?.clone(),
            "string.Template" => Value::api("string.Template()").about(known(0)),
            "string.Template().substitute" | "string.Template().safe_substitute" => {
                let mut text = callee.about.as_deref()?.to_owned();
                let map = first.and_then(|value| match &value.shape {
                    Shape::Map(entries) => Some(entries.clone()),
                    _ => None,
                });
                let named = arguments.iter().filter_map(|(name, value)| Some((name.clone()?, value.clone())));
                let given: Vec<(Rc<str>, Value)> =
                    named.chain(map.iter().flat_map(|entries| entries.iter().cloned())).take(64).collect();
                if !self.step(20 + text.len() / 8 * given.len()) {
                    return None;
                }
                for (name, value) in given {
                    let piece = value.piece();
                    text = text.replace(&format!("${{{name}}}"), &piece).replace(&format!("${name}"), &piece);
                    if text.len() > TEXT_BYTES_MAX {
                        return None;
                    }
                }
                Value::text(text).with(Taint::ASSEMBLED)
            }
            "builtins.str.maketrans" | "builtins.bytes.maketrans" => match (known(0), known(1)) {
                (Some(from), Some(to)) => {
                    let pairs = from.chars().zip(to.chars()).take(512);
                    let pairs =
                        pairs.map(|(from, to)| (Rc::from(from.to_string()), Value::text(to.to_string())));
                    let removed = known(2).unwrap_or_default();
                    let removed = removed.chars().map(|c| (Rc::from(c.to_string()), Value::text("")));
                    Value::of(Shape::Map(Rc::new(pairs.chain(removed).collect())))
                }
                _ => first.filter(|value| matches!(value.shape, Shape::Map(_)))?.clone(),
            },
            "re.compile" => Value::api("re.compile()").about(known(0)),
            "re.sub" => {
                let (pattern, text) = (known(0)?, known(2)?);
                let to = arguments[1].1.clone();
                match to.is_callable() {
                    true => self.replaced_by_function(&pattern, &to, &text, true, at)?,
                    false => self.replaced(&pattern, &known(1)?, &text, true)?,
                }
            }
            // What matches is a part of the text: which one where that can be told.
            "re.search" | "re.match" | "re.fullmatch" => {
                let text = known(1)?;
                let found = known(0).and_then(|pattern| self.found(&pattern, &text, 1));
                found
                    .and_then(|found| found.into_iter().next())
                    .map_or_else(|| Value::text(text), Value::list)
            }
            "re.findall" => {
                let text = known(1)?;
                let found = known(0).and_then(|pattern| self.found(&pattern, &text, FOUND_MAX));
                match found.filter(|found| !found.is_empty()) {
                    Some(found) => Value::list(found.into_iter().map(told).collect()),
                    None => Value::list(vec![Value::text(text)]),
                }
            }
            "re.split" => return None,
            "Object.keys" => match &first?.shape {
                Shape::Map(entries) => {
                    let keys = entries.iter().take(ELEMENTS_MAX).map(|(key, _)| Value::text(key.clone()));
                    Value::list(keys.collect())
                }
                _ => return None,
            },
            "Object.entries" => match &first?.shape {
                Shape::Map(entries) => {
                    let pair = |(key, value): &(Rc<str>, Value)| {
                        Value::list(vec![Value::text(key.clone()), value.clone()])
                    };
                    Value::list(entries.iter().take(ELEMENTS_MAX).map(pair).collect())
                }
                _ => return None,
            },
            "collections.namedtuple" => {
                let names = &arguments.get(1)?.1;
                let fields: Vec<Rc<str>> = match (names.as_list(), names.known_text()) {
                    (Some(list), _) => list.iter().take(64).filter_map(Value::known_text).collect(),
                    (None, Some(text)) => {
                        let words = text.split([' ', ',']).filter(|word| !word.is_empty());
                        words.take(64).map(Rc::from).collect()
                    }
                    _ => return None,
                };
                let inner = self.scope(0);
                self.classes.push(super::classes::ClassInfo { scope: inner, fields, ..Default::default() });
                Value::of(Shape::Class(self.classes.len() - 1))
            }
            _ => return None,
        };
        Some(value.with(taint))
    }

    /// The value that a text of JSON is.
    fn data(&mut self, text: &str) -> Option<Value> {
        if !self.step(20 + text.len() / 8) {
            return None;
        }
        let data: serde_json::Value = serde_json::from_str(text).ok()?;
        let mut left = 2_000;
        Some(of_data(&data, DEPTH_MAX, &mut left))
    }

    /// A text in which what matches a pattern was replaced by a constant.
    pub fn replaced(&mut self, pattern: &str, to: &str, text: &str, is_all: bool) -> Option<Value> {
        let is_small =
            pattern.len() <= PATTERN_BYTES_MAX && text.len() <= SEARCHED_BYTES_MAX && to.len() <= 64;
        if !is_small || to.contains(['\\', '$']) || !self.step(PATTERN_STEPS + text.len()) {
            return None;
        }
        let config = Regex::config().nfa_size_limit(Some(AUTOMATON_BYTES_MAX)).onepass(false).dfa(false);
        let pattern = Regex::builder().configure(config).build(pattern).ok()?;
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        for found in pattern.find_iter(text).take(if is_all { usize::MAX } else { 1 }) {
            out.push_str(&text[at..found.start()]);
            out.push_str(to);
            at = found.end();
            if out.len() > TEXT_BYTES_MAX {
                return None;
            }
        }
        out.push_str(&text[at..]);
        Some(Value::text(out).with(Taint::ASSEMBLED))
    }

    /// A text in which what matches a pattern was replaced by what a function makes of it.
    pub fn replaced_by_function(
        &mut self,
        pattern: &str,
        function: &Value,
        text: &str,
        is_all: bool,
        at: u32,
    ) -> Option<Value> {
        let found = self.places(pattern, text, if is_all { FOUND_MAX } else { 1 })?;
        let (mut out, mut from, mut taint) = (String::with_capacity(text.len()), 0, Taint::ASSEMBLED);
        // Letters come again and again: the function is asked once for each.
        let mut known: BTreeMap<&str, Value> = BTreeMap::new();
        for (range, groups) in &found {
            let matched = &text[range.clone()];
            if !known.contains_key(matched) {
                if known.len() >= MADE_MAX {
                    return Some(Value::unknown(taint | Taint::HIDDEN));
                }
                let given: Vec<(Option<Rc<str>>, Value)> = match self.language {
                    Language::Python => vec![(None, Value::list(groups.clone()))],
                    Language::JavaScript => groups.iter().map(|group| (None, group.clone())).collect(),
                };
                let made = self.call(function, &given, at, false);
                known.insert(matched, made);
            }
            let made = &known[matched];
            taint |= made.deep_taint();
            out.push_str(&text[from..range.start]);
            out.push_str(&made.piece());
            from = range.end;
            if out.len() > TEXT_BYTES_MAX {
                return None;
            }
        }
        out.push_str(&text[from..]);
        // Letters each of which became another one: nobody reads what comes of it.
        let is_turned = |(letter, made): (&&str, &Value)| {
            made.known_text().is_some_and(|made| {
                let single = letter.chars().count() == 1 && made.chars().count() == 1;
                single && !made.eq_ignore_ascii_case(letter)
            })
        };
        let is_turned = known.iter().filter(|entry| is_turned(*entry)).count() >= TURNED_MIN;
        let hidden = if is_turned { Taint::HIDDEN } else { Taint::NONE };
        Some(Value::text(out).with(taint | hidden))
    }

    /// What a pattern finds in a text: of each place the whole and its groups.
    fn found(&mut self, pattern: &str, text: &str, most: usize) -> Option<Vec<Vec<Value>>> {
        let places = self.places(pattern, text, most)?;
        Some(places.into_iter().map(|(_, groups)| groups).collect())
    }

    /// Where a pattern matches, with the whole and its groups.
    fn places(&mut self, pattern: &str, text: &str, most: usize) -> Option<Vec<(Range<usize>, Vec<Value>)>> {
        let is_small = pattern.len() <= PATTERN_BYTES_MAX && text.len() <= TEXT_BYTES_MAX / 2;
        if !is_small || !self.step(PATTERN_STEPS + text.len() / 2) {
            return None;
        }
        let config = Regex::config().nfa_size_limit(Some(AUTOMATON_BYTES_MAX)).onepass(false).dfa(false);
        let pattern = Regex::builder().configure(config).build(pattern).ok()?;
        let mut out = Vec::new();
        for captures in pattern.captures_iter(text).take(most) {
            let whole = captures.get_match()?.range();
            let group = |span: Option<regex_automata::Span>| {
                span.map_or_else(Value::default, |span| Value::text(&text[span.start..span.end]))
            };
            let groups = captures.iter().map(group).collect();
            out.push((whole, groups));
        }
        Some(out)
    }

    /// `text.replace(/pattern/g, to)`, where the pattern is a literal.
    pub fn replaced_by_literal(&mut self, text: &str, arguments: &Arguments, at: u32) -> Option<Value> {
        let [(None, pattern), (None, to)] = arguments else { return None };
        let (pattern, is_all) = literal(pattern)?;
        if to.is_callable() {
            return self.replaced_by_function(&pattern, &to.clone(), text, is_all, at);
        }
        self.replaced(&pattern, &to.known_text()?, text, is_all)
    }

    /// `text.match(/pattern/)`, where the pattern is a literal.
    pub fn found_by_literal(&mut self, text: &str, arguments: &Arguments) -> Option<Value> {
        let [(None, pattern)] = arguments else { return None };
        let (pattern, is_all) = literal(pattern)?;
        let found = self.found(&pattern, text, if is_all { FOUND_MAX } else { 1 })?;
        match is_all {
            true => {
                Some(Value::list(found.into_iter().filter_map(|groups| groups.into_iter().next()).collect()))
            }
            false => found.into_iter().next().map(Value::list),
        }
    }

    /// Whether an option of a call is set.
    pub fn is_set(arguments: &Arguments, name: &str) -> bool {
        option(arguments, name).and_then(Value::is_truthy) == Some(true)
    }
}

/// The pattern of a literal, and whether it is for all places.
fn literal(value: &Value) -> Option<(String, bool)> {
    let literal = value.about.as_deref().filter(|_| value.api_name().is_some_and(|n| &**n == "RegExp()"))?;
    let (pattern, flags) = literal.rsplit_once('/')?;
    let inline: String = flags.chars().filter(|flag| matches!(flag, 'i' | 's' | 'm')).collect();
    let pattern = if inline.is_empty() { pattern.to_owned() } else { format!("(?{inline}){pattern}") };
    Some((pattern, flags.contains('g')))
}

/// What `findall` tells of a place: the whole, its only group, or all of its groups.
fn told(groups: Vec<Value>) -> Value {
    match groups.len() {
        0..=2 => groups.into_iter().next_back().unwrap_or_default(),
        _ => Value::list(groups.into_iter().skip(1).collect()),
    }
}

fn of_data(data: &serde_json::Value, depth: usize, left: &mut usize) -> Value {
    *left = left.saturating_sub(1);
    if depth == 0 || *left == 0 {
        return Value::default();
    }
    match data {
        serde_json::Value::Null => Value::of(Shape::Null),
        serde_json::Value::Bool(is) => Value::of(Shape::Bool(*is)),
        serde_json::Value::Number(number) => {
            number.as_f64().map_or_else(Value::default, |number| Value::of(Shape::Number(number)))
        }
        serde_json::Value::String(text) => Value::text(text.as_str()),
        serde_json::Value::Array(list) => {
            Value::list(list.iter().map(|one| of_data(one, depth - 1, left)).collect())
        }
        serde_json::Value::Object(map) => {
            let entries =
                map.iter().map(|(key, value)| (Rc::from(key.as_str()), of_data(value, depth - 1, left)));
            Value::of(Shape::Map(Rc::new(entries.collect())))
        }
    }
}
