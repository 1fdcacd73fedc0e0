//! Values of one kind, read from a tree: texts, numbers, words, lists. What is of another kind becomes a problem.

use super::decode::{Decoder, at};
use super::problem::{Place, Problem};
use super::schema::{Located, MODES};
use super::tree::{Key, Node, Typed, Value};
use crate::decision::Mode;

impl Decoder<'_> {
    pub(super) fn mapping<'n>(&mut self, node: &'n Node, path: &str) -> &'n [(Key, Node)] {
        if let Value::Map(entries) = &node.value {
            return entries;
        }
        self.expected(node, path, "a mapping of keys to values");
        &[]
    }

    pub(super) fn list<'n>(&mut self, node: &'n Node, path: &str, wanted: &str) -> Option<&'n [Node]> {
        if let Value::List(items) = &node.value {
            return Some(items);
        }
        self.expected(node, path, wanted);
        None
    }

    /// Any scalar, as it is spelt.
    pub(super) fn text(&mut self, node: &Node, path: &str) -> Option<Located<String>> {
        if let Value::Scalar { text, .. } = &node.value {
            return Some(Located { value: text.clone(), place: self.place(node.line, node.column, path) });
        }
        self.expected(node, path, "a text");
        None
    }

    /// A text with something in it.
    pub(super) fn filled(&mut self, node: &Node, path: &str) -> Option<Located<String>> {
        let text = self.text(node, path)?;
        if text.value.trim().is_empty() {
            self.report(text.place, "is empty".to_owned(), "write a value or remove the key".to_owned());
            return None;
        }
        Some(text)
    }

    pub(super) fn boolean(&mut self, node: &Node, path: &str) -> Option<bool> {
        if let Value::Scalar { typed: Some(Typed::Bool(value)), .. } = node.value {
            return Some(value);
        }
        self.expected(node, path, "`true` or `false`");
        None
    }

    pub(super) fn texts(&mut self, node: &Node, path: &str, wanted: &str) -> Vec<String> {
        self.located_texts(node, path, wanted).into_iter().map(|text| text.value).collect()
    }

    /// A list of categories.
    pub(super) fn categories_of(&mut self, node: &Node, path: &str, wanted: &str) -> Vec<String> {
        let named = self.located_texts(node, path, wanted);
        let values = named.iter().map(|category| category.value.clone()).collect();
        self.categories.extend(named);
        values
    }

    fn located_texts(&mut self, node: &Node, path: &str, wanted: &str) -> Vec<Located<String>> {
        let items = self.list(node, path, wanted).unwrap_or_default();
        let texts: Vec<_> =
            items.iter().enumerate().map(|(index, item)| self.filled(item, &at(path, index))).collect();
        texts.into_iter().flatten().collect()
    }

    /// A number from 0.0 to 1.0.
    pub(super) fn share(&mut self, node: &Node, path: &str) -> Option<Located<f64>> {
        let place = self.place(node.line, node.column, path);
        let Value::Scalar { typed: Some(Typed::Number(value)), text } = &node.value else {
            self.expected(node, path, "a number from 0.0 to 1.0");
            return None;
        };
        if !(0.0..=1.0).contains(value) {
            let what = format!("`{}` is out of range", shown(text));
            self.report(place, what, "use a number from 0.0 to 1.0".to_owned());
            return None;
        }
        Some(Located { value: *value, place })
    }

    pub(super) fn mode(&mut self, node: &Node, path: &str) -> Option<Located<Mode>> {
        // Tools that follow YAML 1.1 turn a plain `off` into `false` when they rewrite a file.
        if let Value::Scalar { typed: Some(Typed::Bool(false)), .. } = node.value {
            return Some(Located { value: Mode::Off, place: self.place(node.line, node.column, path) });
        }
        self.word(node, path, MODES)
    }

    pub(super) fn word<T: Copy>(
        &mut self,
        node: &Node,
        path: &str,
        words: &[(&str, T)],
    ) -> Option<Located<T>> {
        let text = self.text(node, path)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text.value) {
            return Some(Located { value: *value, place: text.place });
        }
        let valid: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let what = format!("unknown value `{}`", shown(&text.value));
        self.report(text.place, what, nearest_or_list(&text.value, &valid));
        None
    }

    pub(super) fn expected(&mut self, node: &Node, path: &str, wanted: &str) {
        let place = self.place(node.line, node.column, path);
        let (what, fix) = match node.value {
            Value::Null => ("has no value".to_owned(), format!("write {wanted}, or remove the key")),
            _ => (format!("found {}", kind(node)), format!("write {wanted}")),
        };
        self.report(place, what, fix);
    }

    pub(super) fn place(&self, line: u64, column: u64, path: &str) -> Place {
        let known = line > 0;
        Place {
            file: self.file.clone(),
            line: known.then_some(line),
            column: known.then_some(column),
            key: shown(path),
        }
    }

    pub(super) fn report(&mut self, place: Place, what: String, fix: String) {
        self.problems.push(Problem { place, what, fix });
    }
}

fn kind(node: &Node) -> String {
    match &node.value {
        Value::Null => "nothing".to_owned(),
        Value::Scalar { text, typed: None } => format!("the text `{}`", shown(text)),
        Value::Scalar { text, typed: Some(_) } => format!("`{}`", shown(text)),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a mapping".to_owned(),
    }
}

/// A value from a file, short and on one line.
pub(super) fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let mut shown: String = text.chars().take(CHARS_MAX).flat_map(printable).collect();
    if text.chars().nth(CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// Control characters escaped, everything else as it is.
fn printable(character: char) -> impl Iterator<Item = char> {
    let escaped = character.is_control().then(|| character.escape_default());
    let plain = (!character.is_control()).then_some(character);
    escaped.into_iter().flatten().chain(plain)
}

pub(super) fn nearest_or_list(name: &str, valid: &[&str]) -> String {
    nearest(name, valid).map_or_else(
        || format!("valid here: {}", valid.join(", ")),
        |nearest| format!("did you mean `{nearest}`?"),
    )
}

/// The valid name that `name` is most likely a slip for: at most a third of its letters are wrong.
pub(super) fn nearest<'v>(name: &str, valid: &[&'v str]) -> Option<&'v str> {
    // Distances cost the product of both lengths; nothing that long is a slip.
    const BYTES_MAX: usize = 128;
    if name.len() > BYTES_MAX {
        return None;
    }
    let distances = valid.iter().map(|valid| (strsim::damerau_levenshtein(name, valid), *valid));
    distances.filter(|(distance, valid)| *distance <= valid.len().div_ceil(3)).min().map(|(_, valid)| valid)
}
