//! What is known of a value in a script.

use super::super::argument::HOLE;

/// Bytes of a text that is followed; a longer one is unknown.
pub(super) const TEXT_MAX: usize = 1 << 16;

/// A value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Value {
    /// Nothing is known.
    #[default]
    Unknown,
    /// A text or bytes; unknown pieces stand as [`HOLE`].
    Text(String),
    /// A number.
    Number(i64),
    /// A list or tuple.
    List(Vec<Value>),
    /// A function, module or class by its full name.
    Name(String),
    /// Something from the network; where from.
    Fetched(String),
    /// What came out of a decoder or from the standard input and could not be computed.
    Opaque,
}

impl Value {
    /// A text that is not too long.
    pub fn text(text: String) -> Self {
        if text.len() > TEXT_MAX { Self::Unknown } else { Self::Text(text) }
    }

    /// The value as a text; what is not known is one hole.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            _ => HOLE.to_string(),
        }
    }

    /// The text, if it is one without holes.
    pub fn known(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !text.contains(HOLE) => Some(text),
            _ => None,
        }
    }

    /// Two values one after the other, as `+` or `.` joins them.
    pub fn concat(self, other: Self) -> Self {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.checked_add(b).map_or(Self::Unknown, Self::Number),
            (Self::List(mut a), Self::List(b)) if a.len() + b.len() <= 4096 => {
                a.extend(b);
                Self::List(a)
            }
            (Self::Fetched(url), _) | (_, Self::Fetched(url)) => Self::Fetched(url),
            (Self::Opaque, _) | (_, Self::Opaque) => Self::Opaque,
            (Self::Text(mut text), other) => {
                match &other {
                    Self::Text(more) => text.push_str(more),
                    other => text.push_str(&other.to_text()),
                }
                Self::text(text)
            }
            (a @ Self::Number(_), b) | (a, b @ (Self::Text(_) | Self::Number(_))) => {
                Self::text(a.to_text() + &b.to_text())
            }
            _ => Self::Unknown,
        }
    }

    /// The elements of a list; any other value is its only element.
    pub fn elements(&self) -> &[Self] {
        match self {
            Self::List(list) => list,
            one => std::slice::from_ref(one),
        }
    }
}
