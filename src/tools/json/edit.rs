//! Changes to a document: what changes is written anew, all else is copied byte for byte.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::{Document, Kind, Value};
use crate::text::json;

/// A member to set, nested ones by a dotted path: `env.PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member(Vec<String>);

impl Member {
    /// Reads a dotted path.
    ///
    /// # Errors
    /// A sentence when a name in it is empty.
    pub fn parse(path: &str) -> Result<Self, String> {
        let names: Vec<String> = path.split('.').map(str::to_owned).collect();
        match names.iter().any(String::is_empty) {
            true => {
                Err("a member is named like `command` or, nested, `env.PATH`; no name may be empty".into())
            }
            false if names.len() >= super::DEPTH_MAX => Err("too many names in one path".into()),
            false => Ok(Self(names)),
        }
    }
}

impl std::fmt::Display for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// Why an edit cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The path leads through something that has no members.
    #[error("`{path}` is {found}, so it has no member to set")]
    NotObject {
        /// Dotted path of what is in the way; empty for the document.
        path: String,
        /// The type it has, with its article.
        found: &'static str,
    },
}

/// What to write instead of a range.
pub(in crate::tools) type Splice = (Range<usize>, String);

impl Document<'_> {
    /// The text with the member at `path` set to `value`, a JSON text; missing objects on the way are made. `None` when
    /// it has that very value.
    ///
    /// # Errors
    /// [`EditError`] when something on the way is no object.
    pub fn set(&self, path: &Member, value: &str) -> Result<Option<String>, EditError> {
        let mut at = self.root();
        for (depth, name) in path.0.iter().enumerate() {
            if at.kind() != Kind::Object {
                let path = path.0[..depth].join(".");
                return Err(EditError::NotObject { path, found: at.kind().with_article() });
            }
            match at.get(name) {
                Some(member) => at = member,
                None => {
                    let mut text = value.to_owned();
                    for inner in path.0[depth + 1..].iter().rev() {
                        text = format!("{{{}:{text}}}", json::quote(inner));
                    }
                    let splice = append(at, at.members().count() > 0, &[(name.clone(), text)]);
                    return Ok(Some(self.splice(vec![splice])));
                }
            }
        }
        if at.raw() == value {
            return Ok(None);
        }
        Ok(Some(self.splice(vec![(at.range(), value.to_owned())])))
    }

    /// The text after the JSON merge patch (RFC 7386) `patch`; `None` when nothing changes.
    pub fn merge(&self, patch: &Document<'_>) -> Option<String> {
        let mut splices = Vec::new();
        merge_value(self.root(), patch.root(), &mut splices);
        if splices.is_empty() { None } else { Some(self.splice(splices)) }
    }

    /// The text with members of one name in one object told apart: later ones get `_2`, `_3` and so on behind their name.
    /// `None` when every name is the only one of its kind.
    pub fn with_unique_members(&self) -> Option<String> {
        let mut splices = Vec::new();
        let mut objects = vec![self.root()];
        while let Some(value) = objects.pop() {
            objects.extend(value.items());
            objects.extend(value.members().map(|(_, value)| value));
            let mut taken: HashMap<String, usize> = HashMap::new();
            let mut again = Vec::new();
            for (key, _) in value.members() {
                if taken.insert(key.name().into_owned(), 1).is_some() {
                    again.push(key);
                }
            }
            for key in again {
                let name = key.name();
                let mut number = taken.get(&*name).copied().unwrap_or(1);
                let new = loop {
                    number += 1;
                    let new = format!("{name}_{number}");
                    if !taken.contains_key(&new) {
                        break new;
                    }
                };
                taken.insert(name.into_owned(), number);
                taken.insert(new, 1);
                let end = key.range().end;
                splices.push((end..end, format!("_{number}")));
            }
        }
        splices.sort_by_key(|(range, _)| range.start);
        if splices.is_empty() { None } else { Some(self.splice(splices)) }
    }

    /// The text with `splices`, which do not overlap and rise.
    pub(in crate::tools) fn splice(&self, splices: Vec<Splice>) -> String {
        let text = self.text();
        let mut out =
            String::with_capacity(text.len() + splices.iter().map(|(_, new)| new.len()).sum::<usize>());
        let mut at = 0;
        for (range, new) in splices {
            out.push_str(&text[at..range.start]);
            out.push_str(&new);
            at = range.end;
        }
        out.push_str(&text[at..]);
        out
    }
}

fn merge_value(target: Value<'_>, patch: Value<'_>, splices: &mut Vec<Splice>) {
    if patch.kind() != Kind::Object || target.kind() != Kind::Object {
        let new = without_nulls(patch);
        if target.raw() != new {
            splices.push((target.range(), new));
        }
        return;
    }
    let members: Vec<_> = target.members().collect();
    let change_of = |name: &str| patch.get(name);
    // Members that the target has, in its order.
    let mut kept = false;
    for (nth, (key, value)) in members.iter().enumerate() {
        match change_of(&key.name()) {
            Some(change) if change.kind() == Kind::Null => {
                let start = key.range().start - 1;
                let next = members.get(nth + 1).map(|(next, _)| next.range().start - 1);
                // After a member that stays, the comma before goes; else the one behind.
                let range = match (kept, next) {
                    (true, _) => members[nth - 1].1.range().end..value.range().end,
                    (false, Some(next)) => start..next,
                    (false, None) => start..value.range().end,
                };
                splices.push((range, String::new()));
            }
            change => {
                kept = true;
                if let Some(change) = change {
                    merge_value(*value, change, splices);
                }
            }
        }
    }
    let new: Vec<(String, String)> = patch
        .members()
        .filter(|(key, value)| value.kind() != Kind::Null && target.get(&key.name()).is_none())
        .map(|(key, value)| (key.name().into_owned(), without_nulls(value)))
        .collect();
    if !new.is_empty() {
        splices.push(append(target, kept, &new));
    }
}

/// Members put behind the last one of `object`.
fn append(object: Value<'_>, has_members: bool, new: &[(String, String)]) -> Splice {
    let end = object.members().last().map_or(object.range().start + 1, |(_, value)| value.range().end);
    let mut text = String::new();
    for (nth, (name, value)) in new.iter().enumerate() {
        let comma = if nth > 0 || has_members { "," } else { "" };
        let _ = write!(text, "{comma}{}:{value}", json::quote(name)); // a String takes every write
    }
    (end..end, text)
}

/// What a merge patch makes of nothing: itself without the members that are null.
fn without_nulls(patch: Value<'_>) -> String {
    if patch.kind() != Kind::Object {
        return patch.raw().to_owned();
    }
    let members: Vec<String> = patch
        .members()
        .filter(|(_, value)| value.kind() != Kind::Null)
        .map(|(key, value)| format!("{}:{}", json::quote(&key.name()), without_nulls(value)))
        .collect();
    format!("{{{}}}", members.join(","))
}
