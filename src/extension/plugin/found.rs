//! What an external plugin saw, on its way to a finding of ours.

use std::ops::Range;
use std::sync::Arc;

use crate::decision::{Category, Finding, Severity, SpanRef};
use crate::messages::Conversation;
use crate::text::OffsetEncoding;

/// One thing that was seen in one text, or in all of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    /// Id of the rule, as the other side names it.
    pub(super) rule: String,
    /// What kind of thing it is.
    pub(super) category: String,
    /// How bad it is when certain.
    pub(super) severity: Severity,
    /// From 0.0 to 1.0.
    pub(super) score: f64,
    /// One sentence for a person.
    pub(super) description: String,
    /// What to do about it; may be empty.
    pub(super) recommendation: String,
    /// Where in the text it stands.
    pub(super) place: Place,
}

/// Where in a text something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is about the whole text.
    Whole,
    /// From one byte to before another.
    Bytes(usize, usize),
}

impl Seen {
    /// The finding of the plugin `name` in one field of the messages, or about all of them.
    pub(super) fn into_finding(
        self,
        name: &Arc<str>,
        messages: &Conversation<'_>,
        field: Option<(u32, &str)>,
    ) -> Finding {
        let (message_index, path) = field.unwrap_or((0, ""));
        let length = || {
            let message = messages.get(message_index as usize)?;
            Some(message.fields.iter().find(|field| field.path.to_pointer() == path)?.text.len())
        };
        let (start, end) = match self.place {
            Place::Whole => (0, length().unwrap_or_default()),
            Place::Bytes(start, end) => (start, end),
        };
        Finding {
            plugin: name.clone(),
            // The engine sets the version that answered.
            plugin_version: "".into(),
            rule_id: rule_id(name, &self.rule).into(),
            category: Category::new(&self.category),
            severity: self.severity,
            score: self.score,
            description: self.description.into(),
            recommendation: self.recommendation.into(),
            span: SpanRef { message_index, path: path.into(), start, end },
            evasions: Vec::new(),
            shadow: false,
            suppressed: false,
        }
    }
}

/// A rule of somebody else never has the id of one of ours: it begins with the name of its plugin.
fn rule_id(plugin: &str, rule: &str) -> String {
    let is_own = rule.strip_prefix(plugin).is_some_and(|rest| rest.starts_with('.'));
    if is_own { rule.to_owned() } else { format!("{plugin}.{rule}") }
}

/// The bytes that a range of units of `text` covers; a unit within a character takes all of it. `None` when the range
/// runs backwards or leaves the text.
pub(super) fn byte_range(text: &str, encoding: OffsetEncoding, units: Range<usize>) -> Option<Range<usize>> {
    if units.start > units.end {
        return None;
    }
    if encoding == OffsetEncoding::Utf8 {
        let is_within = units.end <= text.len();
        return is_within.then(|| text.floor_char_boundary(units.start)..text.ceil_char_boundary(units.end));
    }
    let (mut seen, mut start) = (0, None);
    for (at, character) in text.char_indices() {
        let width = if encoding == OffsetEncoding::Utf16 { character.len_utf16() } else { 1 };
        if seen >= units.end && start.is_some() {
            return Some(start?..at);
        }
        if start.is_none() && units.start < seen + width {
            start = Some(at);
            if units.end <= seen {
                return Some(at..at);
            }
        }
        seen += width;
    }
    (units.end <= seen).then(|| start.unwrap_or(text.len())..text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_every_unit() {
        use OffsetEncoding::{Utf8, Utf16, Utf32};
        // Bytes: a 0, é 1 to 2, 😀 3 to 6, b 7. UTF-16: a 0, é 1, 😀 2 to 3, b 4. UTF-32: 0, 1, 2, 3.
        let text = "aé😀b";
        for (encoding, units, wanted) in [
            (Utf8, 0..1, Some(0..1)),
            (Utf8, 1..3, Some(1..3)),
            (Utf8, 2..4, Some(1..7)),
            (Utf8, 8..8, Some(8..8)),
            (Utf8, 0..9, None),
            (Utf16, 0..0, Some(0..0)),
            (Utf16, 0..2, Some(0..3)),
            (Utf16, 2..4, Some(3..7)),
            (Utf16, 3..4, Some(3..7)),
            (Utf16, 2..3, Some(3..7)),
            (Utf16, 4..5, Some(7..8)),
            (Utf16, 5..5, Some(8..8)),
            (Utf16, 4..6, None),
            (Utf32, 1..3, Some(1..7)),
            (Utf32, 0..4, Some(0..8)),
            (Utf32, 2..2, Some(3..3)),
            (Utf32, 5..5, None),
        ] {
            assert_eq!(byte_range(text, encoding, units.clone()), wanted, "{encoding:?} {units:?}");
        }
        assert_eq!(byte_range("", Utf16, 0..0), Some(0..0));
        assert_eq!(byte_range(text, Utf8, Range { start: 3, end: 1 }), None);
    }

    #[test]
    fn rules_of_others_carry_their_plugin() {
        for (rule, wanted) in [
            ("x", "acme.x"),
            ("acme.x", "acme.x"),
            ("acmex", "acme.acmex"),
            ("secrets.aws", "acme.secrets.aws"),
        ] {
            assert_eq!(rule_id("acme", rule), wanted);
        }
    }
}
