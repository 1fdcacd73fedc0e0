//! What came out of an analysis.

use std::ops::Range;

use super::effect::Effect;
use super::programs::Language;

/// What a command would do, and what could not be found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Analysis {
    /// Effects in the order in which they were found, each once.
    pub effects: Vec<Effect>,
    /// What could not be analysed, each once.
    pub unresolved: Vec<Unresolved>,
    /// Where text is run that a decoder made out of what nobody can read, whatever it turned out to be; each place once.
    /// Says nothing about harm.
    pub decoded: Vec<Range<usize>>,
    /// What was written to files of the server of logins, each time, the first few.
    pub written: Vec<Written>,
    /// Scripts of other languages that are run out of the command itself, the first few.
    pub inline: Vec<Inline>,
}

/// What a command wrote to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The file; its path is normalised.
    pub path: String,
    /// The text, if all of it is known.
    pub text: Option<String>,
}

/// A script of another language inside a command, such as that of `python -c`.
#[derive(Clone, Debug, PartialEq)]
pub struct Inline {
    /// What it is written in.
    pub language: Language,
    /// Its text; pieces that are not known stand as [`super::argument::HOLE`].
    pub text: String,
    /// Where it stands in the command, in UTF-8 bytes.
    pub span: Range<usize>,
}

/// A part that could not be analysed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// Why.
    pub cause: UnresolvedCause,
    /// Where, in UTF-8 bytes.
    pub span: Range<usize>,
}

/// Why a part could not be analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnresolvedCause {
    /// No shell would accept it.
    Syntax,
    /// What runs there depends on something that is not known: `$TOOL args` with an unknown TOOL.
    UnknownCommand,
    /// Longer than the limit.
    TooLarge,
    /// Nested deeper than the limit.
    TooDeep,
    /// More steps than the limit.
    TooMuchWork,
}

impl UnresolvedCause {
    /// Whether a limit was hit, which fails closed, as against a construct that cannot be resolved.
    pub const fn is_limit(self) -> bool {
        matches!(self, Self::TooLarge | Self::TooDeep | Self::TooMuchWork)
    }

    /// The snake-case name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::UnknownCommand => "unknown_command",
            Self::TooLarge => "too_large",
            Self::TooDeep => "too_deep",
            Self::TooMuchWork => "too_much_work",
        }
    }
}
