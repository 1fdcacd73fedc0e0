//! The walk over a tree as if it ran.

use super::{Language, NotParsed, Report, javascript, python};
use crate::bundles::rules::BundleRules;
use crate::commands::CommandRules;

/// Parses a file and follows it.
pub(super) fn scan(
    language: Language,
    path: &str,
    text: &str,
    _rules: &BundleRules,
    _commands: &CommandRules,
) -> Report {
    let parsed = match language {
        Language::Python => python::parse(text),
        Language::JavaScript => javascript::parse(path, text),
    };
    let not_parsed = match (parsed.is_whole, parsed.is_cut) {
        (false, _) => Some(NotParsed::Syntax),
        (true, is_cut) => is_cut.then_some(NotParsed::TooDeep),
    };
    Report { not_parsed, ..Report::default() }
}
