//! What is known of a value while the code is followed.

use std::rc::Rc;

use super::taint::Taint;
use super::tree::Function;

/// Stands in a text for a piece that is not known; the shell analysis reads it in the same way.
pub(super) const HOLE: char = '\0';
/// Bytes of a text that is still put together.
pub(super) const TEXT_BYTES_MAX: usize = 1 << 18;
/// Elements of a list that is still followed.
pub(super) const ELEMENTS_MAX: usize = 1 << 14;
/// Parts of a list whose texts patterns look at; fewer the deeper it lies.
const TEXTS_MAX: usize = 256;
/// Values that a name may have beside one another.
const CHOICES_MAX: usize = 4;

/// An argument of a call: its name, where it has one, and its value.
pub(super) type Given = (Option<Rc<str>>, Value);

/// A value and where it comes from.
#[derive(Clone, Debug, Default)]
pub(super) struct Value {
    pub shape: Shape,
    pub taint: Taint,
    /// The path or address that it stands for, when it is an open file, an answer or the like.
    pub about: Option<Rc<str>>,
}

/// What is known of the value itself.
#[derive(Clone, Debug, Default)]
pub(super) enum Shape {
    #[default]
    Unknown,
    /// Text; unknown pieces stand as [`HOLE`].
    Text(Rc<str>),
    Bytes(Rc<[u8]>),
    Number(f64),
    Bool(bool),
    Null,
    List(Rc<Vec<Value>>),
    /// Entries with known keys.
    Map(Rc<Vec<(Rc<str>, Value)>>),
    /// Something of a library or the language, by its canonical name: `os`, `os.system`, `socket.socket()`.
    Api(Rc<str>),
    /// A function of the file and the scope it was made in.
    Function(Rc<Function>, usize),
    /// A class of the file, by its number.
    Class(usize),
    /// An instance of a class of the file, by its number.
    Object(usize),
    /// A method of a value that is known.
    Method(Rc<(Value, Rc<str>)>),
    /// A method of a class of the file, and its instance.
    Bound(Rc<(Value, Value)>),
    /// A function with its first arguments given.
    Partial(Rc<(Value, Vec<Given>)>),
    /// A member that is what a function gives when it is read.
    Getter(Rc<Value>),
    /// Any of these.
    Any(Rc<Vec<Value>>),
}

impl Value {
    pub fn unknown(taint: Taint) -> Self {
        Self { taint, ..Self::default() }
    }

    pub fn of(shape: Shape) -> Self {
        Self { shape, ..Self::default() }
    }

    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Self::of(Shape::Text(text.into()))
    }

    pub fn api(name: impl Into<Rc<str>>) -> Self {
        Self::of(Shape::Api(name.into()))
    }

    pub fn list(values: Vec<Value>) -> Self {
        Self::of(Shape::List(Rc::new(values)))
    }

    pub fn with(mut self, taint: Taint) -> Self {
        self.taint |= taint;
        self
    }

    pub fn about(mut self, about: Option<Rc<str>>) -> Self {
        self.about = about.or(self.about);
        self
    }

    /// The taint of the value and of everything in it.
    pub fn deep_taint(&self) -> Taint {
        /// Values that are looked at; a larger one is mostly data.
        const VALUES_MAX: usize = 2_000;
        let mut budget = VALUES_MAX;
        self.taint_within(4, &mut budget)
    }

    fn taint_within(&self, depth: usize, budget: &mut usize) -> Taint {
        *budget = budget.saturating_sub(1);
        if depth == 0 || *budget == 0 {
            return self.taint;
        }
        let mut taint = self.taint;
        match &self.shape {
            Shape::List(values) | Shape::Any(values) => {
                for value in values.iter().take(*budget) {
                    taint |= value.taint_within(depth - 1, budget);
                }
            }
            Shape::Map(entries) => {
                for (_, value) in entries.iter().take(*budget) {
                    taint |= value.taint_within(depth - 1, budget);
                }
            }
            _ => {}
        }
        taint
    }

    /// Bytes of a text, elements of a list: what it costs to copy it.
    pub fn size(&self) -> usize {
        match &self.shape {
            Shape::Text(text) => text.len(),
            Shape::Bytes(bytes) => bytes.len(),
            Shape::List(values) | Shape::Any(values) => 4 * values.len(),
            Shape::Map(entries) => 4 * entries.len(),
            _ => 0,
        }
    }

    /// The text, or what its bytes are as text.
    pub fn as_text(&self) -> Option<Rc<str>> {
        match &self.shape {
            Shape::Text(text) => Some(text.clone()),
            Shape::Bytes(bytes) => std::str::from_utf8(bytes).ok().map(Rc::from),
            Shape::Any(values) => values.iter().find_map(Self::as_text),
            _ => None,
        }
    }

    /// The text if all of it is known.
    pub fn known_text(&self) -> Option<Rc<str>> {
        self.as_text().filter(|text| !text.contains(HOLE))
    }

    /// The bytes, or those of the text.
    pub fn as_bytes(&self) -> Option<Rc<[u8]>> {
        match &self.shape {
            Shape::Text(text) if !text.contains(HOLE) => Some(Rc::from(text.as_bytes())),
            Shape::Bytes(bytes) => Some(bytes.clone()),
            Shape::List(values) => {
                values.iter().map(Self::as_byte).collect::<Option<Vec<u8>>>().map(Rc::from)
            }
            _ => None,
        }
    }

    /// A number that is one byte.
    pub fn as_byte(&self) -> Option<u8> {
        self.as_number().filter(|n| (0.0..256.0).contains(n)).map(|n| n as u8)
    }

    pub fn as_number(&self) -> Option<f64> {
        match &self.shape {
            Shape::Number(number) => Some(*number),
            Shape::Text(text) => text.parse().ok(),
            Shape::Bool(is) => Some(f64::from(u8::from(*is))),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Self]> {
        match &self.shape {
            Shape::List(values) => Some(values),
            _ => None,
        }
    }

    pub fn api_name(&self) -> Option<&Rc<str>> {
        match &self.shape {
            Shape::Api(name) => Some(name),
            _ => None,
        }
    }

    pub fn entry(&self, key: &str) -> Option<&Self> {
        match &self.shape {
            Shape::Map(entries) => {
                entries.iter().rev().find(|(name, _)| &**name == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// Whether something can be called.
    pub fn is_callable(&self) -> bool {
        matches!(
            self.shape,
            Shape::Api(_) | Shape::Function(..) | Shape::Method(_) | Shape::Partial(_) | Shape::Bound(_)
        )
    }

    /// Whether it counts as true, where that is known. An empty list or map does so in one language and not in the other.
    pub fn is_truthy(&self) -> Option<bool> {
        match &self.shape {
            Shape::Bool(is) => Some(*is),
            Shape::Number(number) => Some(*number != 0.0),
            Shape::Null => Some(false),
            Shape::Text(text) => Some(!text.is_empty()),
            Shape::Bytes(bytes) => Some(!bytes.is_empty()),
            Shape::List(values) => (!values.is_empty()).then_some(true),
            Shape::Map(entries) => (!entries.is_empty()).then_some(true),
            Shape::Any(values) => {
                values.iter().map(Self::is_truthy).reduce(|a, b| a.or(b).filter(|_| a == b))?
            }
            _ => None,
        }
    }

    /// Whether two plain values are equal, where that is known.
    pub fn is_equal(&self, other: &Self) -> Option<bool> {
        match (&self.shape, &other.shape) {
            (Shape::Text(a), Shape::Text(b)) if !a.contains(HOLE) && !b.contains(HOLE) => Some(a == b),
            (Shape::Number(a), Shape::Number(b)) => Some(a == b),
            (Shape::Bool(a), Shape::Bool(b)) => Some(a == b),
            (Shape::Null, Shape::Null) => Some(true),
            _ => None,
        }
    }

    /// The text as a piece of a longer one.
    pub fn piece(&self) -> Rc<str> {
        match &self.shape {
            Shape::Text(text) => text.clone(),
            Shape::Bytes(bytes) => std::str::from_utf8(bytes).map_or_else(|_| hole(), Rc::from),
            Shape::Number(number) => Rc::from(number.to_string()),
            Shape::Bool(is) => Rc::from(is.to_string()),
            Shape::Any(values) => values.first().map_or_else(hole, Self::piece),
            _ => hole(),
        }
    }

    /// All that is text in it, one piece a line, for patterns.
    pub fn all_text(&self, out: &mut String, depth: usize) {
        /// Bytes of text that patterns look at.
        const PATTERN_BYTES_MAX: usize = 8 << 10;
        if depth == 0 || out.len() > PATTERN_BYTES_MAX {
            return;
        }
        let mut push = |text: &str| {
            if !out.is_empty() {
                out.push('\n');
            }
            let mut end = text.len().min(PATTERN_BYTES_MAX);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            out.push_str(&text[..end]);
        };
        match &self.shape {
            Shape::Text(text) => push(text),
            Shape::Bytes(bytes) => {
                if let Ok(text) = std::str::from_utf8(bytes) {
                    push(text);
                }
            }
            Shape::Number(number) => push(&number.to_string()),
            Shape::Bool(is) => push(if *is { "true" } else { "false" }),
            Shape::Api(name) => push(name),
            Shape::List(values) | Shape::Any(values) => {
                values
                    .iter()
                    .take(TEXTS_MAX >> (2 * (4 - depth.min(4))))
                    .for_each(|value| value.all_text(out, depth - 1));
            }
            Shape::Map(entries) => {
                for (name, value) in entries.iter().take(TEXTS_MAX >> (2 * (4 - depth.min(4)))) {
                    out.push('\n');
                    out.push_str(name);
                    out.push('=');
                    value.all_text(out, depth - 1);
                }
            }
            _ => {}
        }
        if let Some(about) = &self.about {
            out.push('\n');
            out.push_str(about);
        }
    }

    /// Either of two values.
    pub fn or(self, other: Self) -> Self {
        if matches!(self.shape, Shape::Unknown) || same(&self, &other) {
            let taint = self.taint;
            return Self { about: other.about.clone().or(self.about), ..other }.with(taint);
        }
        if matches!(other.shape, Shape::Unknown | Shape::Null) {
            let taint = other.taint;
            return self.with(taint);
        }
        let taint = self.taint | other.taint;
        let mut all = match self.shape {
            Shape::Any(values) => (*values).clone(),
            _ => vec![self],
        };
        match other.shape {
            Shape::Any(values) => all.extend(values.iter().cloned()),
            _ => all.push(other),
        }
        if all.len() > CHOICES_MAX {
            // The newest ones are kept: an older one was most likely overwritten.
            all.drain(..all.len() - CHOICES_MAX);
        }
        Self { shape: Shape::Any(Rc::new(all)), taint, about: None }
    }
}

fn hole() -> Rc<str> {
    Rc::from("\0")
}

/// Whether two values are the same as far as that is cheap to tell.
fn same(one: &Value, other: &Value) -> bool {
    match (&one.shape, &other.shape) {
        (Shape::Text(a), Shape::Text(b)) | (Shape::Api(a), Shape::Api(b)) => a == b,
        (Shape::Number(a), Shape::Number(b)) => a == b,
        (Shape::Null, Shape::Null) => true,
        (Shape::List(a), Shape::List(b)) => Rc::ptr_eq(a, b),
        (Shape::Function(a, _), Shape::Function(b, _)) => Rc::ptr_eq(a, b),
        (Shape::Object(a), Shape::Object(b)) | (Shape::Class(a), Shape::Class(b)) => a == b,
        _ => false,
    }
}

/// Puts texts one after the other; holes next to one another become one.
pub(super) fn join(pieces: impl IntoIterator<Item = Rc<str>>) -> Option<Rc<str>> {
    let mut out = String::new();
    for piece in pieces {
        if &*piece == "\0" && out.ends_with(HOLE) {
            continue;
        }
        out.push_str(&piece);
        if out.len() > TEXT_BYTES_MAX {
            return None;
        }
    }
    Some(Rc::from(out))
}
