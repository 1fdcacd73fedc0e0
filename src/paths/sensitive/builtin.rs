//! The rules about paths that ship inside the binary: every file of `rules/paths`.

use std::sync::LazyLock;

use super::SensitivePaths;
use super::load::PathRuleSource;

static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/builtin_paths.rs"));

static BUILTIN: LazyLock<SensitivePaths> = LazyLock::new(|| {
    let sources: Vec<PathRuleSource<'_>> = builtin_path_sources().collect();
    SensitivePaths::load(&sources).unwrap_or_else(|problems| panic!("built-in path rules:\n{problems}"))
});

/// The built-in rule files, in the order of their names.
pub fn builtin_path_sources() -> impl Iterator<Item = PathRuleSource<'static>> {
    SOURCES.iter().map(|(file, text)| PathRuleSource { file, text })
}

impl SensitivePaths {
    /// The built-in rules, compiled at the first use.
    pub fn builtin() -> &'static Self {
        &BUILTIN
    }
}
