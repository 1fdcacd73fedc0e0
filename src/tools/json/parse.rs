//! Reads a JSON text into nodes: strict, without recursion, and picky about what could be read in two ways.

use std::borrow::Cow;

use super::{Document, Node, NodeKind, value};
use crate::text::{OffsetEncoding, line_columns};

/// Deepest nesting of arrays and objects.
pub const DEPTH_MAX: usize = 128;

/// Why a text is no document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// It is not JSON.
    #[error("not JSON: line {line}, column {column}: expected {expected}")]
    Syntax {
        /// Line from 1.
        line: u32,
        /// Column from 1, in characters.
        column: u32,
        /// What should stand there.
        expected: &'static str,
    },
    /// JSON, and something after it.
    #[error("more text after the JSON value: line {line}, column {column}; send one value")]
    Trailing {
        /// Line from 1.
        line: u32,
        /// Column from 1, in characters.
        column: u32,
    },
    /// Another type than an object.
    #[error("must be a JSON object, not {found}")]
    NotObject {
        /// The type it has, with its article.
        found: &'static str,
    },
    /// An object has two members of one name.
    #[error("member `{pointer}` appears twice: line {line}, column {column}; send each member once")]
    Duplicate {
        /// JSON Pointer of the member, shortened.
        pointer: String,
        /// Line of the later one, from 1.
        line: u32,
        /// Column of the later one, from 1, in characters.
        column: u32,
    },
    /// Too many arrays and objects inside each other.
    #[error("nested deeper than {DEPTH_MAX} levels: line {line}, column {column}")]
    TooDeep {
        /// Line from 1.
        line: u32,
        /// Column from 1, in characters.
        column: u32,
    },
    /// 4 GiB and more.
    #[error("too long for a JSON document")]
    TooLong,
}

/// What two members of one name in one object mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// An error: a tool might read another value than the guard.
    Refuse,
    /// Both are kept and looked at; reading by name gives the last one.
    Keep,
}

impl<'t> Document<'t> {
    /// Reads one JSON value of any type.
    ///
    /// # Errors
    /// See [`JsonError`].
    pub fn parse(text: impl Into<Cow<'t, str>>, duplicates: Duplicates) -> Result<Self, JsonError> {
        let text = text.into();
        if u32::try_from(text.len()).is_err() {
            return Err(JsonError::TooLong);
        }
        let mut parser = Parser { text: &text, at: 0, nodes: Vec::new(), open: Vec::new(), duplicates };
        parser.run()?;
        let nodes = parser.nodes;
        Ok(Self { text, nodes })
    }

    /// Reads one JSON object without duplicate members at any level.
    ///
    /// # Errors
    /// See [`JsonError`].
    pub fn parse_object(text: impl Into<Cow<'t, str>>) -> Result<Self, JsonError> {
        let document = Self::parse(text, Duplicates::Refuse)?;
        match document.root().kind() {
            value::Kind::Object => Ok(document),
            other => Err(JsonError::NotObject { found: other.with_article() }),
        }
    }
}

struct Parser<'p> {
    text: &'p str,
    at: usize,
    nodes: Vec<Node>,
    /// Indices of the arrays and objects that are open.
    open: Vec<u32>,
    duplicates: Duplicates,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Comma,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), JsonError> {
        let mut next = Next::Value;
        loop {
            self.skip_space();
            next = match next {
                Next::Value | Next::ValueOrEnd => self.value(next == Next::ValueOrEnd)?,
                Next::Key | Next::KeyOrEnd => self.key(next == Next::KeyOrEnd)?,
                Next::Comma => match self.open.last() {
                    None => break,
                    Some(&container) => self.comma(container)?,
                },
            };
        }
        if self.at < self.text.len() {
            let (line, column) = self.place(self.at);
            return Err(JsonError::Trailing { line, column });
        }
        Ok(())
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, may_end: bool) -> Result<Next, JsonError> {
        match self.byte() {
            Some(b'{') => self.open(NodeKind::Object).map(|()| Next::KeyOrEnd),
            Some(b'[') => self.open(NodeKind::Array).map(|()| Next::ValueOrEnd),
            Some(b']') if may_end => self.close(),
            Some(b'"') => {
                let end = self.string()?;
                Ok(self.leaf(NodeKind::String, end))
            }
            Some(b'-' | b'0'..=b'9') => {
                let end = self.number()?;
                Ok(self.leaf(NodeKind::Number, end))
            }
            Some(b't') => self.word("true", NodeKind::Bool),
            Some(b'f') => self.word("false", NodeKind::Bool),
            Some(b'n') => self.word("null", NodeKind::Null),
            _ => Err(self.wrong(if may_end { "a value or `]`" } else { "a value" })),
        }
    }

    fn key(&mut self, may_end: bool) -> Result<Next, JsonError> {
        match self.byte() {
            Some(b'}') if may_end => return self.close(),
            Some(b'"') => {}
            _ => return Err(self.wrong(if may_end { "a member name or `}`" } else { "a member name" })),
        }
        let end = self.string()?;
        self.leaf(NodeKind::Key, end);
        self.skip_space();
        if self.byte() != Some(b':') {
            return Err(self.wrong("`:`"));
        }
        self.at += 1;
        Ok(Next::Value)
    }

    fn comma(&mut self, container: u32) -> Result<Next, JsonError> {
        let is_object = self.nodes[container as usize].kind == NodeKind::Object;
        match (self.byte(), is_object) {
            (Some(b','), _) => {
                self.at += 1;
                Ok(if is_object { Next::Key } else { Next::Value })
            }
            (Some(b'}'), true) | (Some(b']'), false) => self.close(),
            (_, true) => Err(self.wrong("`,` or `}`")),
            (_, false) => Err(self.wrong("`,` or `]`")),
        }
    }

    fn open(&mut self, kind: NodeKind) -> Result<(), JsonError> {
        if self.open.len() == DEPTH_MAX {
            let (line, column) = self.place(self.at);
            return Err(JsonError::TooDeep { line, column });
        }
        self.open.push(self.nodes.len() as u32);
        let at = self.at as u32;
        self.nodes.push(Node { kind, start: at, end: at, next: 0 });
        self.at += 1;
        Ok(())
    }

    fn close(&mut self) -> Result<Next, JsonError> {
        self.at += 1;
        let Some(index) = self.open.pop() else { return Err(self.wrong("a value")) };
        let next = self.nodes.len() as u32;
        let node = &mut self.nodes[index as usize];
        (node.end, node.next) = (self.at as u32, next);
        if node.kind == NodeKind::Object && self.duplicates == Duplicates::Refuse {
            self.refuse_duplicates(index)?;
        }
        Ok(Next::Comma)
    }

    fn refuse_duplicates(&mut self, object: u32) -> Result<(), JsonError> {
        let names = || value::Keys::of(&self.nodes, object);
        let mut sorted: Vec<(Cow<'_, str>, u32)> = names()
            .map(|key| (value::contents(self.text, self.nodes[key as usize]).into_text(), key))
            .collect();
        sorted.sort();
        // Of equal names the one that stands first is not the one to complain about; of several the first is.
        let twice = sorted.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1).min();
        let Some(key) = twice else { return Ok(()) };
        // What is still open ends here for now, so that a pointer leads through it.
        for index in &self.open {
            self.nodes[*index as usize].next = u32::MAX;
        }
        let mut pointer = value::pointer(self.text, &self.nodes, key);
        if let Some((at, _)) = pointer.char_indices().nth(200) {
            pointer.truncate(at);
            pointer.push('…');
        }
        let (line, column) = self.place(self.nodes[key as usize].start as usize);
        Err(JsonError::Duplicate { pointer, line, column })
    }

    fn leaf(&mut self, kind: NodeKind, end: usize) -> Next {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { kind, start: self.at as u32, end: end as u32, next });
        self.at = end;
        Next::Comma
    }

    fn word(&mut self, word: &'static str, kind: NodeKind) -> Result<Next, JsonError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.wrong("`true`, `false` or `null`"));
        }
        Ok(self.leaf(kind, self.at + word.len()))
    }

    /// End of the string at the current place, its quote included.
    fn string(&mut self) -> Result<usize, JsonError> {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        loop {
            let rest = &bytes[at..];
            let plain = &rest[..memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len())];
            // The least byte tells whether a search for a control character is worth it.
            at += match plain.iter().fold(u8::MAX, |least, b| least.min(*b)) {
                0..0x20 => plain.iter().position(|b| *b < 0x20).unwrap_or(plain.len()),
                _ => plain.len(),
            };
            match bytes.get(at) {
                Some(b'"') => return Ok(at + 1),
                Some(b'\\') => {
                    at += match bytes.get(at + 1) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                        Some(b'u')
                            if bytes
                                .get(at + 2..at + 6)
                                .is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) =>
                        {
                            6
                        }
                        _ => {
                            self.at = at;
                            return Err(self.wrong("an escape that JSON knows"));
                        }
                    }
                }
                Some(_) => {
                    self.at = at;
                    return Err(self.wrong("control characters to be escaped"));
                }
                None => {
                    self.at = at;
                    return Err(self.wrong("the closing quote of a string"));
                }
            }
        }
    }

    /// End of the number at the current place.
    fn number(&mut self) -> Result<usize, JsonError> {
        let bytes = self.text.as_bytes();
        let digits = |from: usize| {
            let rest = bytes.get(from..).unwrap_or_default();
            from + rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len())
        };
        let mut at = self.at + usize::from(bytes[self.at] == b'-');
        let whole = digits(at);
        // A leading zero ends the whole part.
        let whole = if bytes.get(at) == Some(&b'0') { at + 1 } else { whole };
        // Each part must have a digit; where one has none, that is what is wrong.
        let mut missing = (whole == at).then_some(at);
        at = whole;
        if bytes.get(at) == Some(&b'.') {
            let end = digits(at + 1);
            missing = missing.or((end == at + 1).then_some(end));
            at = end;
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let from = at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            let end = digits(from);
            missing = missing.or((end == from).then_some(from));
            at = end;
        }
        if let Some(missing) = missing {
            self.at = missing;
            return Err(self.wrong("a digit"));
        }
        Ok(at)
    }

    fn wrong(&self, expected: &'static str) -> JsonError {
        let (line, column) = self.place(self.at);
        JsonError::Syntax { line, column, expected }
    }

    fn place(&self, at: usize) -> (u32, u32) {
        line_columns(self.text, OffsetEncoding::Utf32, &[at])[0]
    }
}
