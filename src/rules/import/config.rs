//! The shape of a gitleaks configuration.
//!
//! The names of keys that are not known are kept, so that they can be told: a key of a later version may narrow a rule.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use toml::de::DeTable;
use toml::{Table, Value};

use super::ImportError;
use super::shape::{ALLOW, CONFIG, EXTEND, Keys, RULE, misshapen};
use crate::text::line_of;

/// A configuration file.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Config {
    pub title: Option<String>,
    pub description: Option<String>,
    #[serde(rename = "minVersion")]
    pub min_version: Option<String>,
    pub extend: Option<Extend>,
    /// The older form of one allow-list for all rules.
    #[serde(default)]
    pub allowlist: OneOrMany<Allow>,
    #[serde(default)]
    pub allowlists: Vec<Allow>,
    #[serde(default)]
    pub rules: Vec<Rule>,
    #[serde(skip)]
    pub unknown: Vec<String>,
}

/// The configuration that this one lies over.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Extend {
    #[serde(default, rename = "useDefault")]
    pub use_default: bool,
    pub path: Option<String>,
    pub url: Option<String>,
    /// Rules of it that are not taken over.
    #[serde(default, rename = "disabledRules")]
    pub disabled_rules: Vec<String>,
    #[serde(skip)]
    pub unknown: Vec<String>,
}

/// One rule.
#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "a table `[[rules]]`")]
pub(super) struct Rule {
    #[serde(default)]
    pub id: String,
    #[serde(default)]
    pub description: String,
    pub regex: Option<String>,
    pub path: Option<String>,
    #[serde(rename = "secretGroup")]
    pub secret_group: Option<usize>,
    pub entropy: Option<f64>,
    #[serde(default)]
    pub keywords: Vec<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub allowlist: OneOrMany<Allow>,
    #[serde(default)]
    pub allowlists: Vec<Allow>,
    #[serde(default)]
    pub required: Vec<toml::Value>,
    #[serde(default, rename = "skipReport")]
    pub skip_report: bool,
    #[serde(skip)]
    pub unknown: Vec<String>,
}

/// What is not to be reported.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(expecting = "a table of what is not to be reported")]
pub(super) struct Allow {
    pub description: Option<String>,
    /// `OR` (or `||`), the default, or `AND` (or `&&`).
    pub condition: Option<String>,
    #[serde(default)]
    pub commits: Vec<String>,
    #[serde(default)]
    pub paths: Vec<String>,
    /// `secret`, the default, `match` or `line`.
    #[serde(rename = "regexTarget")]
    pub regex_target: Option<String>,
    #[serde(default)]
    pub regexes: Vec<String>,
    #[serde(default)]
    pub stopwords: Vec<String>,
    /// Rules that an allow-list for all rules is limited to.
    #[serde(default, rename = "targetRules")]
    pub target_rules: Vec<String>,
    #[serde(skip)]
    pub unknown: Vec<String>,
}

impl Config {
    /// Reads a configuration.
    pub(super) fn read(text: &str) -> Result<Self, ImportError> {
        let unread = |error: toml::de::Error| ImportError {
            line: error.span().map(|span| line_of(text, span.start)),
            message: error.message().trim().replace('\n', "; "),
        };
        // First, since what reads it into these types says neither of which key it speaks nor what a person would call them.
        if let Some(wrong) = misshapen(DeTable::parse(text).map_err(unread)?.get_ref(), CONFIG) {
            return Err(ImportError { line: Some(line_of(text, wrong.at)), message: wrong.message });
        }
        let mut config: Self = toml::from_str(text).map_err(unread)?;
        let raw: Table = toml::from_str(text).map_err(unread)?;
        config.unknown = unknown(&raw, CONFIG);
        if let (Some(extend), Some(Value::Table(raw))) = (&mut config.extend, raw.get("extend")) {
            extend.unknown = unknown(raw, EXTEND);
        }
        tell_allows(&raw, &mut config.allowlist, &mut config.allowlists);
        for (rule, raw) in config.rules.iter_mut().zip(tables(raw.get("rules"))) {
            rule.unknown = unknown(raw, RULE);
            tell_allows(raw, &mut rule.allowlist, &mut rule.allowlists);
        }
        Ok(config)
    }
}

fn tell_allows(raw: &Table, one: &mut OneOrMany<Allow>, many: &mut [Allow]) {
    for (key, allows) in [("allowlist", one.as_mut_slice()), ("allowlists", many)] {
        for (allow, raw) in allows.iter_mut().zip(tables(raw.get(key))) {
            allow.unknown = unknown(raw, ALLOW);
        }
    }
}

/// The tables of a list, or the one that stands for it.
fn tables(raw: Option<&Value>) -> impl Iterator<Item = &Table> {
    let all = match raw {
        Some(Value::Array(all)) => all.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    all.iter().filter_map(Value::as_table)
}

fn unknown(raw: &Table, known: Keys) -> Vec<String> {
    raw.keys().filter(|key| known.iter().all(|(name, _)| name != key)).cloned().collect()
}

/// One table, or a list of them.
#[derive(Debug)]
pub(super) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl<T> OneOrMany<T> {
    pub(super) fn as_slice(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Self::One(one) => std::slice::from_mut(one),
            Self::Many(many) => many,
        }
    }
}

// By hand, since an untagged enumeration forgets where an error stands.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = OneOrMany<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table or a list of tables")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(OneOrMany::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(OneOrMany::Many)
            }
        }

        deserializer.deserialize_any(Either(PhantomData))
    }
}
