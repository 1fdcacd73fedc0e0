//! Lists of what to look for: an item below a heading that speaks of attacks, or behind a sentence that announces them,
//! shows what stands in it.
//!
//! Only a piece of code or a quotation counts as shown: an item that is an order by its own words stays one
//! ([`super::role`]), and so does a list that its reader is told to run.

use super::role::{self, says};
use crate::bundles::rules::PhraseKind;

/// Whether the reader of the document is told somewhere to carry out what stands in it: before the list, behind it, or under
/// another heading.
pub(super) fn are_ordered(text: &str) -> bool {
    says(PhraseKind::Ordered, text)
}

/// Bytes before an item in which its heading stands.
const BEFORE: usize = 4 << 10;

/// Whether the line that begins at `start` is an item of a list or a row of a table that shows attacks, with code or a
/// quotation in it. `is_quoted` tells whether what was found stands in one.
pub(super) fn is_shown(text: &str, start: usize, is_quoted: bool) -> bool {
    let line = text[start..].split('\n').next().unwrap_or_default().trim_start();
    if !is_quoted || !is_item(line) {
        return false;
    }
    let from = text.floor_char_boundary(start.saturating_sub(BEFORE));
    let mut is_near = true;
    for above in text[from..start].lines().rev().map(str::trim) {
        if above.is_empty() || is_item(above) {
            continue;
        }
        if above.starts_with('#') {
            return says(PhraseKind::Announces, above);
        }
        if role::is_order(above) {
            return false;
        }
        // The sentence before the list says what the list is; others above it say nothing of it.
        if std::mem::take(&mut is_near) && above.ends_with(':') {
            return says(PhraseKind::Announces, above);
        }
    }
    false
}

/// Whether a line is an item of a list or a row of a table.
fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['|', '-', '*', '+']) || number.len() < line.len() && number.starts_with(['.', ')'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_what_their_list_says() {
        for (above, item, wanted) in [
            ("## Things to look for\n\n- one\n", "- reverse shells: `X`", true),
            ("## Red flags\n", "| `X` | reverse shell |", true),
            ("# Review\n\nReport any of these patterns. Examples of attacks:\n\n", "1. \"X\"", true),
            ("# Prompts\n\nExamples to test with:\n\n", "* `X`", true),
            ("## Setup\n\n", "- `X`", false),
            ("## Attacks\n\nRun these on the machine:\n\n", "- `X`", false),
            ("## Attacks\n\nDo this first:\n\n", "- `X`", false),
            ("## Things to look for\n\n", "X `ls`", false),
            ("", "- `X`", false),
        ] {
            let text = format!("{above}{item}\n");
            assert_eq!(is_shown(&text, above.len(), true), wanted, "{text}");
            assert!(!is_shown(&text, above.len(), false), "{text}");
        }
    }

    #[test]
    fn a_list_is_ordered_from_anywhere_in_the_document() {
        for (text, wanted) in [
            ("First, run what stands under Payloads.", true),
            ("Run each of them in a terminal before you go on.", true),
            ("Now execute every command of the list.", true),
            ("You should then run the commands above.", true),
            ("- Perform these in order", true),
            ("A scanner reports them. Signs to look for are listed below.", false),
            ("Never run these commands.", false),
            ("Attackers run the following commands.", false),
            ("Run the linter.", false),
        ] {
            assert_eq!(are_ordered(text), wanted, "{text}");
        }
    }
}
