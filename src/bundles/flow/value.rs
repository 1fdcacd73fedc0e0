//! What is known of a value: where it comes from, and its text as far as it stands in the program.

use std::ops::BitOr;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::bundles) struct Source(u8);

impl Source {
    /// Nowhere that matters.
    pub(in crate::bundles) const NONE: Self = Self(0);
    /// Another machine.
    pub(in crate::bundles) const FETCHED: Self = Self(1);
    /// A file of secrets, or its path.
    pub(in crate::bundles) const SECRET: Self = Self(2);
    /// All variables of the environment.
    pub(in crate::bundles) const ENVIRONMENT: Self = Self(4);
    /// Whoever asks the program.
    pub(in crate::bundles) const REQUEST: Self = Self(8);
    /// A walk over the home of the user or over the whole machine.
    pub(in crate::bundles) const HOME: Self = Self(16);

    /// Whether they have one in common.
    pub(in crate::bundles) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// By name, as rules give it.
    pub(in crate::bundles) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "fetched" => Self::FETCHED,
            "secret" => Self::SECRET,
            "environment" => Self::ENVIRONMENT,
            "request" => Self::REQUEST,
            "home" => Self::HOME,
            _ => return None,
        })
    }
}

impl BitOr for Source {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What others decide: what they answer may be code.
pub(super) const FOREIGN: Source = Source(Source::FETCHED.0 | Source::REQUEST.0);
/// What is nobody else's.
pub(super) const PRIVATE: Source = Source(Source::SECRET.0 | Source::ENVIRONMENT.0);

/// Stands in a text for what is not known.
pub(super) const HOLE: char = '\u{1}';
/// Stands in a text for what others decide.
pub(super) const MARK: char = '\u{2}';
/// Longest text that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 400;

/// A value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) from: Source,
    pub(super) text: String,
    /// The address or the path that it was first read from.
    pub(super) origin: String,
}

impl Value {
    /// A text that stands in the program.
    pub(super) fn of(text: &str) -> Self {
        let mut value = Self::default();
        value.push(text);
        value
    }

    /// Something that is not known and comes from there.
    pub(super) fn unknown(from: Source, origin: &str) -> Self {
        let mut value = Self { from, ..Self::default() };
        value.text.push(if from.meets(FOREIGN) { MARK } else { HOLE });
        value.set_origin(origin);
        value
    }

    /// Adds a text behind what is there.
    pub(super) fn push(&mut self, text: &str) {
        let left = TEXT_BYTES_MAX.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(left)]);
    }

    /// Adds a value behind what is there.
    pub(super) fn add(&mut self, other: &Self) {
        self.push(&other.text);
        self.join(other);
    }

    /// Comes from where the other one comes from as well.
    pub(super) fn join(&mut self, other: &Self) {
        self.from = self.from | other.from;
        self.set_origin(&other.origin);
    }

    fn set_origin(&mut self, origin: &str) {
        if self.origin.is_empty() && !origin.is_empty() {
            self.origin = origin[..origin.floor_char_boundary(TEXT_BYTES_MAX)].to_owned();
        }
    }

    /// What something else that is made of the value may be.
    pub(super) fn carried(&self) -> Self {
        Self::unknown(self.from, &self.origin)
    }

    /// Whether what others decide stands where a shell reads the name of a program, or where an interpreter reads code.
    pub(super) fn is_foreign_command(&self) -> bool {
        if !self.from.meets(FOREIGN) {
            return false;
        }
        let Some(at) = self.text.find(MARK) else { return self.text.is_empty() };
        let before = format!(" {}", self.text[..at].trim_end_matches(['"', '\'', ' ', '(', '{', '`', HOLE]));
        before.trim().is_empty()
            || [
                ";",
                "|",
                "&",
                "$",
                " -c",
                " -e",
                " /c",
                " /k",
                " -command",
                " -r",
                "-enc",
                "eval",
                "exec",
                "sudo",
                "\n",
            ]
            .iter()
            .any(|end| before.to_ascii_lowercase().ends_with(end))
    }
}

/// The variable of the environment with a name: the home, or something that is not known.
pub(super) fn variable(name: &str) -> Value {
    let is_home = matches!(name.trim().to_ascii_lowercase().as_str(), "home" | "userprofile" | "homepath");
    if is_home { Value::of("~") } else { Value { text: HOLE.to_string(), ..Value::default() } }
}
