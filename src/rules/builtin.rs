//! The rules that ship inside the binary: every file under `rules/`, put in by the build script.

use std::borrow::Cow;

use super::RuleSource;

include!(concat!(env!("OUT_DIR"), "/builtin_rules.rs"));

/// The built-in rule files, in the order of their paths.
pub fn builtin_sources() -> Vec<RuleSource> {
    BUILTIN_RULES
        .iter()
        .map(|(name, plugin, text, json)| RuleSource {
            name: (*name).to_owned(),
            default_plugin: (*plugin).to_owned(),
            text: Cow::Borrowed(text),
            is_builtin: true,
            json: Some(json),
        })
        .collect()
}

static STREAM_RULES: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/builtin_streams.rs"));

/// The built-in rules about streams, in the order of their paths. They make a set of their own.
pub fn builtin_stream_sources() -> Vec<RuleSource> {
    let source = |(name, text, json): &(&'static str, &'static str, &'static str)| RuleSource {
        name: (*name).to_owned(),
        default_plugin: "streams".to_owned(),
        text: Cow::Borrowed(text),
        is_builtin: true,
        json: Some(json),
    };
    STREAM_RULES.iter().map(source).collect()
}
