//! Credentials and personal data taken out of what is told about a match.

use super::scan::Hit;
use crate::decision::{Category, WorkContext};
use crate::detect::Scanner;
use crate::detect::redact::{Placeholders, redact_plain};
use crate::rules::Surface;

/// Longest matched text that is told, in characters.
const MATCHED_CHARS_MAX: usize = 300;
/// Shortest value that is looked for in an excerpt because a rule about credentials matched it.
const VALUE_BYTES_MIN: usize = 6;

/// What may be told of a hit.
pub(super) struct Masked {
    pub matched: String,
    pub excerpt: String,
}

/// Masks a hit. The same value has the same placeholder in both texts.
pub(super) fn mask(scanner: &Scanner, hit: &Hit, category: &Category) -> Masked {
    let mut placeholders = Placeholders::default();
    // What a rule about credentials matched is one, whatever other rules think of it.
    let value = category.is_within("credential_access").then(|| value_of(&hit.matched)).flatten();
    let hidden = |text: &str| match value {
        Some(value) => text.replace(value, "[SECRET]"),
        None => text.to_owned(),
    };
    let whole = hidden(&hit.excerpt);
    let excerpt = redact(scanner, &whole, &mut placeholders);
    let matched = hidden(&hit.matched);
    // Where nothing is hidden of the excerpt, nothing would be by hiding a part of it.
    let is_told = excerpt == whole && excerpt.contains(&matched);
    let matched = if is_told { matched } else { redact(scanner, &matched, &mut placeholders) };
    Masked { matched: shortened(matched), excerpt }
}

/// Masks a text that others wrote, such as the reason of a judge.
pub(super) fn mask_text(scanner: &Scanner, text: &str) -> String {
    redact(scanner, text, &mut Placeholders::default())
}

/// Masks every text of a work context; the same value has the same placeholder in all of them.
pub(super) fn mask_work(scanner: &Scanner, work: &WorkContext) -> WorkContext {
    let mut placeholders = Placeholders::default();
    let mut masked = |text: &String| redact(scanner, text, &mut placeholders);
    WorkContext {
        goal: masked(&work.goal),
        acceptance_criteria: work.acceptance_criteria.iter().map(&mut masked).collect(),
        non_goals: work.non_goals.iter().map(&mut masked).collect(),
        scope: masked(&work.scope),
        labels: work.labels.iter().map(|(name, value)| (name.clone(), masked(value))).collect(),
    }
}

fn redact(scanner: &Scanner, text: &str, placeholders: &mut Placeholders) -> String {
    redact_plain(scanner, text, Surface::Stream, placeholders, |_| true)
}

/// The value of an assignment.
fn value_of(matched: &str) -> Option<&str> {
    let at = matched.find(['=', ':'])?;
    let value = matched[at + 1..].trim_matches([' ', '"', '\'', ';', ',', '\t']);
    let is_value = value.len() >= VALUE_BYTES_MIN && !value.contains(char::is_whitespace);
    is_value.then_some(value)
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(MATCHED_CHARS_MAX) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::value_of;

    #[test]
    fn the_value_of_an_assignment_is_known() {
        for (matched, value) in [
            ("A_KEY=abcdefgh", Some("abcdefgh")),
            ("token: 'abcdefgh'", Some("abcdefgh")),
            ("cat ~/x", None),
            ("A_KEY=ab", None),
            ("read: a b c d e f", None),
        ] {
            assert_eq!(value_of(matched), value, "{matched}");
        }
    }
}
