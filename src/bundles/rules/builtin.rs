//! The rules about bundles that ship inside the binary: every file of `rules/bundles`.

use std::sync::LazyLock;

use super::BundleRules;
use super::load::BundleRuleSource;

static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/builtin_bundles.rs"));

/// Ids of the rules in them, as the build script read them.
static IDS: &[&str] = include!(concat!(env!("OUT_DIR"), "/builtin_bundle_ids.rs"));

static BUILTIN: LazyLock<BundleRules> = LazyLock::new(|| {
    let sources: Vec<BundleRuleSource<'_>> = builtin_bundle_sources().collect();
    BundleRules::load(&sources).unwrap_or_else(|problems| panic!("built-in bundle rules:\n{problems}"))
});

/// The built-in rule files, in the order of their names.
pub fn builtin_bundle_sources() -> impl Iterator<Item = BundleRuleSource<'static>> {
    SOURCES.iter().map(|(file, text)| BundleRuleSource { file, text })
}

/// Ids of the built-in rules, known without compiling them.
pub fn builtin_rule_ids() -> &'static [&'static str] {
    IDS
}

impl BundleRules {
    /// The built-in rules, compiled at the first use.
    pub fn builtin() -> &'static Self {
        &BUILTIN
    }
}
