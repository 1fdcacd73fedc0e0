//! The shape of a gitleaks configuration.
//!
//! The names of keys that are not known are kept, so that they can be told: a key of a later version may narrow a rule. They are
//! read apart from the rest, since what gathers them while it reads forgets on which line an error stands.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use toml::{Table, Value};

/// Keys that each of the three may have.
const CONFIG_KEYS: [&str; 7] =
    ["title", "description", "minVersion", "extend", "allowlist", "allowlists", "rules"];
const RULE_KEYS: [&str; 12] = [
    "id",
    "description",
    "regex",
    "path",
    "secretGroup",
    "entropy",
    "keywords",
    "tags",
    "allowlist",
    "allowlists",
    "required",
    "skipReport",
];
const ALLOW_KEYS: [&str; 8] =
    ["description", "condition", "commits", "paths", "regexTarget", "regexes", "stopwords", "targetRules"];

/// A configuration file.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Config {
    pub title: Option<String>,
    pub description: Option<String>,
    #[serde(rename = "minVersion")]
    pub min_version: Option<String>,
    pub extend: Option<toml::Table>,
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
    pub(super) fn read(text: &str) -> Result<Self, toml::de::Error> {
        let mut config: Self = toml::from_str(text)?;
        let raw: Table = toml::from_str(text)?;
        config.unknown = unknown(&raw, &CONFIG_KEYS);
        tell_allows(&raw, &mut config.allowlist, &mut config.allowlists);
        for (rule, raw) in config.rules.iter_mut().zip(tables(raw.get("rules"))) {
            rule.unknown = unknown(raw, &RULE_KEYS);
            tell_allows(raw, &mut rule.allowlist, &mut rule.allowlists);
        }
        Ok(config)
    }
}

fn tell_allows(raw: &Table, one: &mut OneOrMany<Allow>, many: &mut [Allow]) {
    for (key, allows) in [("allowlist", one.as_mut_slice()), ("allowlists", many)] {
        for (allow, raw) in allows.iter_mut().zip(tables(raw.get(key))) {
            allow.unknown = unknown(raw, &ALLOW_KEYS);
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

fn unknown(raw: &Table, known: &[&str]) -> Vec<String> {
    raw.keys().filter(|key| !known.contains(&key.as_str())).cloned().collect()
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
