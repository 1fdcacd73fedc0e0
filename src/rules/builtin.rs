//! The rules that ship inside the binary: every file under `rules/`, put in by the build script.

use super::RuleSource;

include!(concat!(env!("OUT_DIR"), "/builtin_rules.rs"));

/// The built-in rule files, in the order of their paths.
pub fn builtin_sources() -> Vec<RuleSource> {
    BUILTIN_RULES
        .iter()
        .map(|(name, plugin, text)| RuleSource {
            name: (*name).to_owned(),
            default_plugin: (*plugin).to_owned(),
            text: (*text).to_owned(),
            is_builtin: true,
        })
        .collect()
}
