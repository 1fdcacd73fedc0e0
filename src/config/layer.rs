//! Laying values over the tree of defaults, one checked leaf at a time.

use std::collections::BTreeMap;

use serde_json::Value;

use super::source::{Source, Sources};
use super::{Problem, Settings};

/// Names that resemble less than this are not offered as what was meant.
const SIMILARITY_LEAST: f64 = 0.6;
/// How alike the beginning of a name is to the whole, such as `cert` to `certificate`.
const SIMILARITY_OF_CUT: f64 = 0.8;
/// Shortest beginning that tells something, in bytes.
const CUT_LEAST: usize = 3;

/// The tree of settings while sources are laid over it.
pub(super) struct Layers {
    /// The current values; always one that `Settings` can be read from.
    tree: Value,
    /// Every valid key with its default.
    leaves: BTreeMap<String, Value>,
    sources: Sources,
    problems: Vec<Problem>,
}

impl Layers {
    pub(super) fn new(defaults: &Settings) -> Self {
        let tree = serde_json::to_value(defaults).expect("settings are plain data with string keys");
        let mut leaves = BTreeMap::new();
        collect_leaves("", &tree, &mut leaves);
        Self { tree, leaves, sources: Sources::default(), problems: Vec::new() }
    }

    /// Every valid dotted key, sorted.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.leaves.keys().map(String::as_str)
    }

    /// Every key with its value at the start.
    pub(super) fn into_leaves(self) -> impl Iterator<Item = (String, Value)> {
        self.leaves.into_iter()
    }

    pub(super) fn has_leaf(&self, key: &str) -> bool {
        self.leaves.contains_key(key)
    }

    /// Whether `key` names a section, that is, has keys below it.
    pub(super) fn has_section(&self, key: &str) -> bool {
        self.leaves.keys().any(|leaf| leaf.strip_prefix(key).is_some_and(|rest| rest.starts_with('.')))
    }

    /// Names directly below a section; the top level for an empty key.
    pub(super) fn names_in(&self, section: &str) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .leaves
            .keys()
            .filter_map(|leaf| match section {
                "" => Some(leaf.as_str()),
                _ => leaf.strip_prefix(section)?.strip_prefix('.'),
            })
            .map(|rest| rest.split('.').next().unwrap_or(rest))
            .collect();
        names.dedup();
        names
    }

    pub(super) fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Reports a key that does not exist, with the name that was probably meant.
    pub(super) fn unknown_key(&mut self, key: &str, origin: String) {
        let hint = self.nearest_key(key).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        self.problem(Problem::new(key, format!("unknown setting{hint}")).from(origin));
    }

    /// The valid key or section closest to `key`: a slip within one name, or a right name in the wrong place.
    fn nearest_key(&self, key: &str) -> Option<String> {
        let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
        let path =
            |name: &str| if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
        if let Some(near) = nearest(name, self.names_in(section).into_iter()) {
            return Some(path(near));
        }
        let same_name = self.keys().find(|leaf| leaf.rsplit('.').next() == Some(name));
        same_name.or_else(|| nearest(key, self.keys())).map(str::to_owned)
    }

    /// Sets a leaf from text, read as the type of its default says.
    pub(super) fn set_text(&mut self, key: &str, text: &str, source: Source) {
        let Some(default) = self.leaves.get(key) else {
            if self.has_section(key) {
                let message = format!("is a section; set one of its keys: {}", self.names_in(key).join(", "));
                return self.problem(Problem::new(key, message).from(source.to_string()));
            }
            return self.unknown_key(key, source.to_string());
        };
        match value_of_text(default, text) {
            Ok(value) => self.set(key, value, source),
            Err(message) => self.problem(Problem::new(key, message).from(source.to_string())),
        }
    }

    /// Sets a leaf that is known to exist. A value of the wrong type is reported and leaves the old one.
    pub(super) fn set(&mut self, key: &str, value: Value, source: Source) {
        let pointer = format!("/{}", key.replace('.', "/"));
        let slot = self.tree.pointer_mut(&pointer).expect("every leaf was found in this tree");
        let before = std::mem::replace(slot, value);
        // The rest of the tree is known to be good, so that an error is about this leaf.
        match serde_json::from_value::<Settings>(self.tree.clone()) {
            Ok(_) => self.sources.set(key, source),
            Err(error) => {
                *self.tree.pointer_mut(&pointer).expect("it was there a moment ago") = before;
                self.problem(Problem::new(key, error.to_string()).from(source.to_string()));
            }
        }
    }

    pub(super) fn finish(self) -> (Settings, Sources, Vec<Problem>) {
        let settings = serde_json::from_value(self.tree).expect("every change was checked when it was made");
        (settings, self.sources, self.problems)
    }
}

/// How alike two names are, from 0 to 1; one that is cut short is nearly the whole.
fn similarity(name: &str, candidate: &str) -> f64 {
    let is_cut = name.len() >= CUT_LEAST && candidate.starts_with(name);
    if is_cut { SIMILARITY_OF_CUT } else { strsim::normalized_damerau_levenshtein(name, candidate) }
}

/// The candidate most like `name`, if one is like it at all.
pub(super) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (similarity(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILARITY_LEAST)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

fn collect_leaves(prefix: &str, value: &Value, leaves: &mut BTreeMap<String, Value>) {
    match value {
        // A map that is empty by default has names of its user's choosing, and is set as a whole.
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                collect_leaves(&key, value, leaves);
            }
        }
        _ => {
            leaves.insert(prefix.to_owned(), value.clone());
        }
    }
}

fn value_of_text(default: &Value, text: &str) -> Result<Value, String> {
    let text = text.trim();
    match default {
        Value::Bool(_) => {
            bool_of_text(text).map(Value::Bool).ok_or_else(|| format!("`{text}` is not true or false"))
        }
        Value::Number(_) => text
            .parse::<serde_json::Number>()
            .map(Value::Number)
            .map_err(|_| format!("`{text}` is not a number")),
        Value::Array(_) => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            Ok(Value::Array(items.map(Value::from).collect()))
        }
        Value::Object(_) => {
            let map = serde_json::from_str::<serde_json::Map<String, Value>>(text);
            map.map(Value::Object).map_err(|_| format!("`{text}` is not a JSON object"))
        }
        // An empty text takes back an optional value that a weaker source set.
        Value::Null if text.is_empty() => Ok(Value::Null),
        _ => Ok(Value::from(text)),
    }
}

fn bool_of_text(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}
