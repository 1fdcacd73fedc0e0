//! The command rules that ship inside the binary: every file of `rules/commands`.

use std::sync::LazyLock;

use super::CommandRules;
use super::load::CommandRuleSource;

static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/builtin_commands.rs"));

static BUILTIN: LazyLock<CommandRules> = LazyLock::new(|| {
    let sources: Vec<CommandRuleSource<'_>> = builtin_command_sources().collect();
    CommandRules::load(&sources).unwrap_or_else(|problems| panic!("built-in command rules:\n{problems}"))
});

/// The built-in rule files, in the order of their names.
pub fn builtin_command_sources() -> impl Iterator<Item = CommandRuleSource<'static>> {
    SOURCES.iter().map(|(file, text)| CommandRuleSource { file, text })
}

impl CommandRules {
    /// The built-in rules, compiled at the first use.
    pub fn builtin() -> &'static Self {
        &BUILTIN
    }
}
