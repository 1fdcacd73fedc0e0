//! The rules about bundles that ship inside the binary: every file of `rules/bundles`.

use std::sync::LazyLock;

use super::BundleRules;
use super::load::BundleRuleSource;
use crate::decision::Severity;

static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/builtin_bundles.rs"));

/// Id, category and severity of the rules in them, as the build script read them.
static KINDS: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/builtin_bundle_kinds.rs"));

static BUILTIN: LazyLock<BundleRules> = LazyLock::new(|| {
    let sources: Vec<BundleRuleSource<'_>> = builtin_bundle_sources().collect();
    BundleRules::load(&sources).unwrap_or_else(|problems| panic!("built-in bundle rules:\n{problems}"))
});

/// The built-in rule files, in the order of their names.
pub fn builtin_bundle_sources() -> impl Iterator<Item = BundleRuleSource<'static>> {
    SOURCES.iter().map(|(file, text)| BundleRuleSource { file, text, is_builtin: true })
}

/// Ids of the built-in rules, known without compiling them.
pub fn builtin_rule_ids() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(id, _, _)| *id)
}

/// Category and severity of the built-in rules, known without compiling them.
pub fn builtin_rule_kinds() -> impl Iterator<Item = (&'static str, Severity)> {
    let severity = |name: &str| Severity::ALL.into_iter().find(|severity| severity.as_str() == name);
    KINDS.iter().filter_map(move |(_, category, name)| Some((*category, severity(name)?)))
}

impl BundleRules {
    /// The built-in rules, compiled at the first use.
    pub fn builtin() -> &'static Self {
        &BUILTIN
    }
}
