//! The effective settings as `portcullis config` prints them: every key, its value, its source; secrets masked.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::Settings;
use super::layer::Layers;
use super::source::Sources;

/// What stands in place of a secret.
const MASK: &str = "***";

/// Keys that end so hold secrets, whatever section they stand in.
const SECRET_SUFFIXES: [&str; 4] = ["_key", "_token", "_secret", "password"];

/// Keys that end so and hold none.
const NO_SECRETS: [&str; 1] = ["guardrails.without_key"];

/// One setting, ready to print.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EffectiveSetting {
    /// Dotted key.
    pub key: String,
    /// The value, in the form in which the file takes it; secrets masked.
    pub value: Value,
    /// `default`, `file PATH:LINE`, `env NAME` or `flag --x`.
    pub source: String,
}

/// Every setting with its value and source, sorted by key.
pub fn effective(settings: &Settings, sources: &Sources) -> Vec<EffectiveSetting> {
    Layers::new(settings)
        .into_leaves()
        .map(|(key, value)| {
            let value = mask(&key, value);
            let source = sources.get(&key).to_string();
            EffectiveSetting { key, value, source }
        })
        .collect()
}

/// One line a setting: `server.listen = 127.0.0.1:50051   (default)`.
pub fn render_text(settings: &Settings, sources: &Sources) -> String {
    let mut out = String::new();
    for EffectiveSetting { key, value, source } in effective(settings, sources) {
        let value = match value {
            Value::Null => "(unset)".to_owned(),
            Value::String(text) => text,
            other => other.to_string(),
        };
        // OK because writing to a String cannot fail.
        let _ = writeln!(out, "{key} = {value}   ({source})");
    }
    out
}

/// `{"settings":[{"key","value","source"}]}`.
pub fn render_json(settings: &Settings, sources: &Sources) -> Value {
    serde_json::json!({ "settings": effective(settings, sources) })
}

fn mask(key: &str, value: Value) -> Value {
    let is_secret = !NO_SECRETS.contains(&key) && SECRET_SUFFIXES.iter().any(|end| key.ends_with(end));
    match value {
        Value::String(text) if !text.is_empty() && is_secret => Value::from(MASK),
        Value::String(text) => Value::from(mask_url(&text)),
        other => other,
    }
}

/// Masks the user and password of a URL: `http://***@host:4317`.
fn mask_url(text: &str) -> String {
    match user_info(text) {
        Some((start, end)) => format!("{}{MASK}{}", &text[..start], &text[end..]),
        None => text.to_owned(),
    }
}

/// Whether a value is a URL with a password in it.
pub(super) fn holds_password(text: &str) -> bool {
    user_info(text).is_some_and(|(start, end)| text[start..end].contains(':'))
}

/// Where the user and the password of a URL stand.
fn user_info(text: &str) -> Option<(usize, usize)> {
    let (scheme, rest) = text.split_once("://")?;
    // A password that was not escaped may hold any of these; whoever reads one as the end shows the rest of it.
    let is_database = scheme.starts_with("postgres");
    let authority_end = rest.find(['/', '?', '#']).filter(|_| !is_database).unwrap_or(rest.len());
    let start = scheme.len() + 3;
    rest[..authority_end].rfind('@').map(|at| (start, start + at))
}
