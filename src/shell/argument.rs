//! An argument after expansion: constant text with holes where nothing is known.

use std::ops::Range;

/// Stands in an argument's text for a piece whose value is not known. No argument of a process can hold it.
pub const HOLE: char = '\0';

/// One resolved argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Argument {
    /// Its text; each unknown piece is one [`HOLE`].
    pub text: String,
    /// Whether it holds glob characters (`*`, `?`, `[`) that stood outside quotes and that the shell would expand.
    pub has_glob: bool,
    /// Where it stands in the command, in UTF-8 bytes.
    pub span: Range<usize>,
}

impl Argument {
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
