//! An exact JSON document: order of members, spelling of numbers and the text itself stay as they were sent.
//!
//! [`Document::parse`] builds a flat list of nodes over the text, so that neither depth nor dropping costs stack, and
//! refuses what a tool and a guard could read differently. Edits change the text where something changes and copy the
//! rest byte for byte; one that changes nothing answers `None`.
//!
//! Lone surrogates (`\ud800`) are allowed, as agents do send them: they read as U+FFFD and stay as written.

mod edit;
mod parse;
mod value;

use std::borrow::Cow;

pub use edit::{EditError, Member};
pub use parse::{DEPTH_MAX, Duplicates, JsonError};
pub use value::{Kind, Text, Value};

/// What a node is. Members are a `Key` followed by their value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeKind {
    Null,
    Bool,
    Number,
    String,
    Key,
    Array,
    Object,
}

/// One value or one member name.
#[derive(Clone, Copy, Debug)]
struct Node {
    kind: NodeKind,
    /// Where it is written; strings and names with their quotes.
    start: u32,
    end: u32,
    /// Index of the first node that is not part of it.
    next: u32,
}

/// A parsed JSON text.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    text: Cow<'t, str>,
    nodes: Vec<Node>,
}

impl<'t> Document<'t> {
    /// The text, byte for byte as it was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text, byte for byte as it was parsed.
    pub fn into_text(self) -> Cow<'t, str> {
        self.text
    }

    /// The outermost value.
    pub fn root(&self) -> Value<'_> {
        Value { text: &self.text, nodes: &self.nodes, index: 0 }
    }

    /// Every string in the order of the text: values, and the names of members.
    pub fn strings(&self) -> impl Iterator<Item = Text<'_>> {
        self.nodes.iter().enumerate().filter_map(|(index, node)| match node.kind {
            NodeKind::String | NodeKind::Key => {
                Some(Text { text: &self.text, nodes: &self.nodes, index: index as u32 })
            }
            _ => None,
        })
    }
}

/// [`Document::with_unique_members`] of a text; `None` also when it is no JSON.
pub(in crate::tools) fn unique_members(text: &str) -> Option<String> {
    Document::parse(text, Duplicates::Keep).ok()?.with_unique_members()
}

#[cfg(test)]
mod tests;
