//! An argument after expansion: constant text with holes where nothing is known.

use std::ops::Range;
use std::sync::Arc;

use super::carried::Carried;

/// Stands in an argument's text for a piece whose value is not known. No argument of a process can hold it.
pub const HOLE: char = '\0';

/// Stands for a hole in a text that runs as a script of its own, where it is known which files the hole may be filled from:
/// a NUL is no character of a script. Nobody uses this one, and a text that does only gains a hole.
pub const CARRIED_HOLE: char = '\u{10FFFE}';

/// One resolved argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Argument {
    /// Its text; each unknown piece is one [`HOLE`].
    pub text: String,
    /// Whether it holds glob characters (`*`, `?`, `[`) that stood outside quotes and that the shell would expand.
    pub has_glob: bool,
    /// Where it stands in the command, in UTF-8 bytes.
    pub span: Range<usize>,
    /// Where its unknown pieces come from.
    pub origin: Origin,
    /// Whether it begins with a variable that the command neither sets nor looks at first: it may be empty, and what
    /// stands behind it then begins the argument.
    pub begins_unset: bool,
    /// The files whose text its unknown pieces may be.
    pub carried: Carried,
}

/// Where the unknown pieces of a text come from, as far as that matters to who runs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The environment, or nowhere: nothing is known of them, or nothing is unknown.
    #[default]
    Environment,
    /// The network; the host or URL.
    Network(Arc<str>),
    /// A command whose output could not be computed; its program.
    Output(Arc<str>),
}

impl Argument {
    /// A text of which everything is known.
    pub fn constant(text: impl Into<String>, span: Range<usize>) -> Self {
        Self { text: text.into(), span, ..Self::default() }
    }

    /// The same place and origin with another text; what it held is not copied.
    pub fn with_text(&self, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            has_glob: self.has_glob,
            span: self.span.clone(),
            origin: self.origin.clone(),
            begins_unset: false,
            carried: self.carried.clone(),
        }
    }

    /// Of two texts that become one: where the unknown pieces of both come from.
    pub fn absorb(&mut self, other: &Self) {
        merge_origin(&mut self.origin, &other.origin);
        self.carried.merge(&other.carried);
    }

    /// The text, if nothing of it is unknown.
    pub fn known(&self) -> Option<&str> {
        self.is_known().then_some(&*self.text)
    }

    /// Whether nothing of it is unknown.
    pub fn is_known(&self) -> bool {
        !self.text.contains(HOLE)
    }

    /// The text before the first unknown piece.
    pub fn known_prefix(&self) -> &str {
        self.text.split(HOLE).next().unwrap_or_default()
    }

    /// Whether nothing of it is known.
    pub fn is_unknown(&self) -> bool {
        !self.text.is_empty() && self.text.chars().all(|c| c == HOLE)
    }
}

/// Of two origins the one that matters more.
pub(in crate::shell) fn merge_origin(into: &mut Origin, other: &Origin) {
    match (&*into, other) {
        (Origin::Network(_), _) | (_, Origin::Environment) | (Origin::Output(_), Origin::Output(_)) => {}
        _ => *into = other.clone(),
    }
}
