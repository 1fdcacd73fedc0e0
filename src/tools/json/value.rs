//! Looking at a document: values, members, items, strings with their pointers.

use std::borrow::Cow;
use std::ops::Range;

use super::{Node, NodeKind};
use crate::text::json::{self, Decoded};

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number of any size.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Kind {
    /// The name with its article, for messages.
    pub const fn with_article(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// One value of a document.
#[derive(Clone, Copy, Debug)]
pub struct Value<'d> {
    pub(super) text: &'d str,
    pub(super) nodes: &'d [Node],
    pub(super) index: u32,
}

impl<'d> Value<'d> {
    fn node(self) -> Node {
        self.nodes[self.index as usize]
    }

    fn at(self, index: u32) -> Self {
        Self { index, ..self }
    }

    /// Its type.
    pub fn kind(self) -> Kind {
        match self.node().kind {
            NodeKind::Null => Kind::Null,
            NodeKind::Bool => Kind::Bool,
            NodeKind::Number => Kind::Number,
            NodeKind::String | NodeKind::Key => Kind::String,
            NodeKind::Array => Kind::Array,
            NodeKind::Object => Kind::Object,
        }
    }

    /// Where it is written, in bytes; a string with its quotes.
    pub fn range(self) -> Range<usize> {
        self.node().start as usize..self.node().end as usize
    }

    /// It as written.
    pub fn raw(self) -> &'d str {
        &self.text[self.range()]
    }

    /// How many values and member names it is made of, itself included.
    pub fn size(self) -> usize {
        (self.node().next - self.index) as usize
    }

    /// The text of a string.
    pub fn as_str(self) -> Option<Cow<'d, str>> {
        (self.kind() == Kind::String).then(|| contents(self.text, self.node()).into_text())
    }

    /// The value of `true` and `false`.
    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == "true")
    }

    /// The member called `name`; the last one where several are allowed. `None` for anything but an object.
    pub fn get(self, name: &str) -> Option<Self> {
        self.members().filter(|(key, _)| key.is(name)).map(|(_, value)| value).last()
    }

    /// The members of an object in the order of the text; none for anything else.
    pub fn members(self) -> impl Iterator<Item = (Text<'d>, Self)> {
        let keys = if self.kind() == Kind::Object {
            Keys::of(self.nodes, self.index)
        } else {
            Keys { nodes: self.nodes, next: 0, end: 0 }
        };
        keys.map(move |key| (Text { text: self.text, nodes: self.nodes, index: key }, self.at(key + 1)))
    }

    /// The items of an array; none for anything else.
    pub fn items(self) -> impl Iterator<Item = Self> {
        let mut next = self.index + 1;
        let end = if self.kind() == Kind::Array { self.node().next } else { next };
        std::iter::from_fn(move || {
            let item = (next < end).then(|| self.at(next))?;
            next = item.node().next;
            Some(item)
        })
    }
}

/// One string of a document: a value, or the name of a member.
#[derive(Clone, Copy, Debug)]
pub struct Text<'d> {
    pub(super) text: &'d str,
    pub(super) nodes: &'d [Node],
    pub(super) index: u32,
}

impl<'d> Text<'d> {
    fn node(self) -> Node {
        self.nodes[self.index as usize]
    }

    /// Whether it is the name of a member.
    pub fn is_key(self) -> bool {
        self.node().kind == NodeKind::Key
    }

    /// Where its contents are written, in bytes, without the quotes.
    pub fn range(self) -> Range<usize> {
        self.node().start as usize + 1..self.node().end as usize - 1
    }

    /// Its text, with a map back to `range`: offsets count from the start of that.
    pub fn decoded(self) -> Decoded<'d> {
        contents(self.text, self.node())
    }

    /// Its text.
    pub fn name(self) -> Cow<'d, str> {
        self.decoded().into_text()
    }

    /// Whether its text is `name`.
    pub fn is(self, name: &str) -> bool {
        let raw = &self.text[self.range()];
        raw == name && !raw.contains('\\') || (raw.contains('\\') && self.name() == name)
    }

    /// JSON Pointer of the value; of the member, when it is a name. Takes time in the siblings before it.
    pub fn pointer(self) -> String {
        pointer(self.text, self.nodes, self.index)
    }
}

/// The text of a string node.
pub(super) fn contents(text: &str, node: Node) -> Decoded<'_> {
    json::decode(&text[node.start as usize + 1..node.end as usize - 1])
}

/// Indices of the names of an object's members.
pub(super) struct Keys<'d> {
    nodes: &'d [Node],
    next: u32,
    end: u32,
}

impl<'d> Keys<'d> {
    pub(super) fn of(nodes: &'d [Node], object: u32) -> Self {
        Self { nodes, next: object + 1, end: nodes[object as usize].next }
    }
}

impl Iterator for Keys<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let key = self.next;
        // The name of a member is followed by its value.
        let value = self.nodes.get(key as usize + 1).filter(|_| key < self.end)?;
        self.next = value.next;
        Some(key)
    }
}

/// JSON Pointer of the node `wanted`: of the member, when it is a name.
pub(super) fn pointer(text: &str, nodes: &[Node], wanted: u32) -> String {
    let mut out = String::new();
    let mut at = 0_u32;
    loop {
        let node = nodes[at as usize];
        if at == wanted {
            return out;
        }
        match node.kind {
            NodeKind::Object => {
                let holds = |key: &u32| wanted == *key || wanted < nodes[*key as usize + 1].next;
                let Some(key) = Keys::of(nodes, at).find(holds) else { return out };
                let name = contents(text, nodes[key as usize]).into_text();
                out.push('/');
                out.push_str(&name.replace('~', "~0").replace('/', "~1"));
                at = key + 1;
                if wanted == key {
                    return out;
                }
            }
            NodeKind::Array => {
                let (mut item, mut nth) = (at + 1, 0_usize);
                while item < node.next && nodes[item as usize].next <= wanted {
                    item = nodes[item as usize].next;
                    nth += 1;
                }
                out.push_str(&format!("/{nth}"));
                at = item;
            }
            _ => return out,
        }
    }
}
