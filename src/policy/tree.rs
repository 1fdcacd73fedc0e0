//! A YAML text becomes a tree in which every node knows its line.
//!
//! Serde stops at the first error; whoever mends a policy wants them all. So the text is read into this tree first, and
//! the schema walks it and goes on after each problem. Only broken YAML itself, which has no tree, ends at one problem.
//!
//! Bounded: nesting, nodes, aliases and their expansion have budgets, so that no file costs more than its size.
//! Scalars keep the spelling of the file: a fingerprint of `00123e45` stays text, although YAML takes it for a number.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::localizer::Localizer;
use serde_saphyr::{DuplicateKeyPolicy, Error, Location, Options, Spanned, UserMessageFormatter};

/// Deepest nesting of a file. A policy needs five levels.
const DEPTH_MAX: usize = 32;
/// Most nodes of a file, expanded aliases included.
const NODES_MAX: usize = 200_000;
/// Most bytes of text in a file, expanded aliases included.
const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most aliases (`*name`) in a file.
const ALIASES_MAX: usize = 1_000;

/// One value of a policy file.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    /// Line from 1.
    pub(super) line: u64,
    /// Column from 1, in characters.
    pub(super) column: u64,
}

/// What a node holds.
#[derive(Debug)]
pub(super) enum Value {
    /// No value: blank, `~` or `null`.
    Null,
    /// Text, or a plain scalar that YAML takes for something else; then `typed` says for what.
    Scalar { text: String, typed: Option<Typed> },
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file. Keys are unique.
    Map(Vec<(Key, Node)>),
}

/// What a plain scalar means to YAML.
#[derive(Clone, Copy, Debug)]
pub(super) enum Typed {
    Bool(bool),
    Number(f64),
}

/// A key of a mapping.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) text: String,
    pub(super) line: u64,
    pub(super) column: u64,
}

/// Why a text is no YAML that we read.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) line: Option<u64>,
    pub(super) column: Option<u64>,
    pub(super) what: String,
    pub(super) fix: &'static str,
}

/// Reads one YAML document. A text without any document is [`Value::Null`].
pub(super) fn parse(text: &str) -> Result<Node, Broken> {
    match serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options()) {
        Ok(root) => Ok(place(root, text)),
        Err(error) => Err(broken(&error)),
    }
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            flow_nesting_limit: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_events: 2 * NODES_MAX,
            max_total_scalar_bytes: TEXT_BYTES_MAX,
            max_aliases: ALIASES_MAX,
            max_anchors: ALIASES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: NODES_MAX,
            max_replay_stack_depth: DEPTH_MAX,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        // `off` is a mode, not `false`.
        strict_booleans: true,
        with_snippet: false,
    }
}

fn broken(error: &Error) -> Broken {
    let location = error.location().filter(|at| at.line() > 0);
    let (what, fix) = explain(error.without_snippet());
    Broken { line: location.map(|at| at.line()), column: location.map(|at| at.column()), what, fix }
}

/// What is wrong and what to do, without the place.
fn explain(error: &Error) -> (String, &'static str) {
    match error {
        Error::AliasError { error, .. } => explain(error.without_snippet()),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            (format!("nested deeper than {DEPTH_MAX} levels"), "a policy needs five levels")
        }
        Error::Budget { .. } => (
            "too large once its aliases are written out".to_owned(),
            "split it into policies that extend each other",
        ),
        Error::AliasReplayLimitExceeded { .. } | Error::AliasReplayStackDepthExceeded { .. } => {
            ("its aliases expand to too much".to_owned(), "write the values out")
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (format!("the key `{}` stands twice", key.escape_debug()), "remove one of the two")
        }
        Error::MultipleDocuments { .. } => {
            ("more than one document".to_owned(), "give every policy a file of its own")
        }
        Error::UnknownAnchor { .. } => {
            ("an alias without an anchor".to_owned(), "define the anchor first, or quote the text")
        }
        other => {
            let message = other.render_with_formatter(&UserMessageFormatter.with_localizer(&WithoutLocation));
            let is_tab = message.contains("tab");
            let fix = if is_tab { "indent with spaces" } else { "correct the YAML at this place" };
            (message.lines().next().unwrap_or_default().to_owned(), fix)
        }
    }
}

/// Leaves the place out of the parser's messages: a problem tells it in a field of its own.
struct WithoutLocation;

impl Localizer for WithoutLocation {
    fn attach_location<'a>(&self, base: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        base
    }
}

/// Gives every node its line, and every typed scalar its spelling.
fn place(raw: Spanned<Raw>, text: &str) -> Node {
    let (line, column) = (raw.referenced.line(), raw.referenced.column());
    let typed = |typed| Value::Scalar { text: spelling(raw.defined, text, typed), typed: Some(typed) };
    let value = match raw.value {
        Raw::Null => Value::Null,
        Raw::Bool(value) => typed(Typed::Bool(value)),
        Raw::Number(value) => typed(Typed::Number(value)),
        Raw::Text(text) => Value::Scalar { text, typed: None },
        Raw::List(items) => Value::List(items.into_iter().map(|item| place(item, text)).collect()),
        Raw::Map(entries) => {
            Value::Map(entries.into_iter().map(|(key, value)| (place_key(key), place(value, text))).collect())
        }
    };
    Node { value, line, column }
}

fn place_key(key: Spanned<String>) -> Key {
    Key { line: key.referenced.line(), column: key.referenced.column(), text: key.value }
}

/// The scalar as it stands in the file.
fn spelling(defined: Location, text: &str, typed: Typed) -> String {
    let span = defined.span();
    let range = span.byte_offset().zip(span.byte_len()).and_then(|(start, len)| {
        let start = usize::try_from(start).ok()?;
        Some(start..start.checked_add(usize::try_from(len).ok()?)?)
    });
    match (range.and_then(|range| text.get(range)), typed) {
        (Some(spelling), _) => spelling.trim().to_owned(),
        (None, Typed::Bool(value)) => value.to_string(),
        (None, Typed::Number(value)) => value.to_string(),
    }
}

/// What the parser hands over; recursion is bounded by `DEPTH_MAX`.
enum Raw {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

// Whole numbers beyond 2^53 lose digits here; no key of a policy takes one, and the spelling is kept.
#[allow(clippy::cast_precision_loss, reason = "numbers of a policy lie between 0 and 1")]
impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Number(value as f64))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
        Ok(Raw::Number(value as f64))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Raw, E> {
        Ok(Raw::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}
