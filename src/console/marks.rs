//! A text with what was found in it, cut into pieces that are marked alike.

use std::ops::Range;

use crate::decision::Severity;

/// Longest text that is shown, in bytes.
const SHOWN_BYTES_MAX: usize = 64 * 1024;

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The text.
    pub(super) text: String,
    /// The worst severity of what was found in it, as a word; empty where nothing was.
    pub(super) severity: &'static str,
    /// The rules that found it.
    pub(super) title: String,
}

/// Cuts `text` at the ends of what was found in it: where, how bad, by which rule.
pub(super) fn marks(text: &str, found: &[(Range<usize>, Severity, &str)]) -> Vec<Mark> {
    let end = text.floor_char_boundary(SHOWN_BYTES_MAX);
    let found: Vec<_> = found
        .iter()
        .filter(|(range, ..)| range.start < range.end && text.get(range.clone()).is_some())
        .collect();
    let mut cuts = vec![0, end];
    cuts.extend(found.iter().flat_map(|(range, ..)| [range.start.min(end), range.end.min(end)]));
    cuts.sort_unstable();
    cuts.dedup();
    let pieces = cuts.windows(2).filter_map(|pair| {
        let range = *pair.first()?..*pair.last()?;
        let here = found.iter().filter(|(other, ..)| other.start < range.end && range.start < other.end);
        let mut rules: Vec<&str> = here.clone().map(|(_, _, rule)| *rule).collect();
        rules.sort_unstable();
        rules.dedup();
        Some(Mark {
            text: text.get(range.clone())?.to_owned(),
            severity: here.map(|(_, severity, _)| *severity).max().map_or("", word),
            title: rules.join(", "),
        })
    });
    let mut marks: Vec<Mark> = pieces.collect();
    if end < text.len() {
        marks.push(Mark { text: " …".to_owned(), severity: "", title: String::new() });
    }
    marks
}

/// A severity as it stands in the name of a class.
pub(super) fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Low => "low",
        Severity::Medium => "medium",
        Severity::High => "high",
        Severity::Critical => "critical",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_become_pieces_of_their_own() {
        let found = [
            (2..6, Severity::High, "b"),
            (4..8, Severity::Low, "a"),
            (0..0, Severity::Critical, "empty"),
            (7..99, Severity::Critical, "outside"),
        ];
        let told: Vec<(String, &str, String)> = marks("0123456789", &found)
            .into_iter()
            .map(|mark| (mark.text, mark.severity, mark.title))
            .collect();
        let wanted =
            [("01", "", ""), ("23", "high", "b"), ("45", "high", "a, b"), ("67", "low", "a"), ("89", "", "")];
        let wanted = wanted.map(|(text, severity, title)| (text.to_owned(), severity, title.to_owned()));
        assert_eq!(told, wanted);
    }

    #[test]
    fn a_span_inside_a_character_is_left_out() {
        let marked = marks("é", &[(1..2, Severity::High, "a")]);
        assert_eq!(marked, [Mark { text: "é".to_owned(), severity: "", title: String::new() }]);
        assert_eq!(marks("", &[]), []);
    }
}
