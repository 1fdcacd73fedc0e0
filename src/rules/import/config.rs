//! The shape of a gitleaks configuration.
//!
//! Keys that are not known are kept, so that they can be told: a key of a later version may narrow a rule.

use serde::Deserialize;

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
    #[serde(flatten)]
    pub unknown: toml::Table,
}

/// One rule.
#[derive(Debug, Default, Deserialize)]
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
    #[serde(flatten)]
    pub unknown: toml::Table,
}

/// What is not to be reported.
#[derive(Clone, Debug, Default, Deserialize)]
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
    #[serde(flatten)]
    pub unknown: toml::Table,
}

/// One table, or a list of them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
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
}
