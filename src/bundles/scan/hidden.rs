//! Characters that people cannot see and models and compilers read.

use super::{Rule, Scan};
use crate::decision::Severity;

/// Fewest tags or variation selectors in a row that spell something. Flags of regions use six.
const TAGS_MIN: usize = 8;
/// Zero-width characters between letters from which they are no accident of copying.
const JOINTS_WARN: usize = 2;
const JOINTS_FAIL: usize = 8;
/// Zero-width characters in a row that spell something: no script and no emoji has so many.
const BITS_MIN: usize = 16;

/// What a text holds of them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hidden {
    /// Where tags or variation selectors begin that spell something.
    spelled: Vec<usize>,
    /// Zero-width characters between letters, and the first of them.
    joints: usize,
    first_joint: usize,
    /// Where zero-width characters begin that stand in a row.
    bits: Option<usize>,
    /// The first character that turns the direction of writing, or the first that forces one, and whether it does.
    bidi: Option<(usize, bool)>,
}

/// Looks only where the first byte of such a character stands, which ordinary text of any script has few of.
fn hidden(text: &str) -> Hidden {
    let mut out = Hidden::default();
    // Where the present run of tags begins, how many they are, and where it ends.
    let (mut start, mut count, mut end) = (0, 0, 0);
    // The last character that takes room before the last one that takes none, and where that one ends.
    let (mut before, mut joint_end) = (' ', 0);
    let (mut row_start, mut row) = (0, 0);
    for at in memchr::memchr3_iter(0xe2, 0xef, 0xf3, text.as_bytes()) {
        let mut rest = text[at..].chars();
        let Some(c) = rest.next() else { continue };
        if is_tag(c) {
            if at != end {
                out.spelled.extend((count >= TAGS_MIN).then_some(start));
                (start, count) = (at, 0);
            }
            (count, end) = (count + 1, at + c.len_utf8());
        } else if matches!(c, '\u{202d}' | '\u{202e}') {
            out.bidi = out.bidi.filter(|(_, strong)| *strong).or(Some((at, true)));
        } else if matches!(c, '\u{202a}'..='\u{202c}' | '\u{2066}'..='\u{2069}') {
            out.bidi = out.bidi.or(Some((at, false)));
        } else if is_joint(c) {
            let visible = text[joint_end..at].chars().rev().find(|c| *c != '\u{ad}');
            before = visible.unwrap_or(before);
            if row == 0 || at != joint_end {
                (row_start, row) = (at, 0);
            }
            row += 1;
            out.bits = out.bits.or((row >= BITS_MIN).then_some(row_start));
            joint_end = at + c.len_utf8();
            if is_plain(before) && rest.next().is_some_and(is_plain) {
                out.first_joint = if out.joints == 0 { at } else { out.first_joint };
                out.joints += 1;
            }
        }
    }
    out.spelled.extend((count >= TAGS_MIN).then_some(start));
    out
}

/// Where letters of tags begin, fewer than any run of tags and behind no flag: nothing else is written in them (Unicode
/// Technical Standard 51, emoji tag sequences).
fn letters(text: &str) -> Option<usize> {
    /// Letters in a row that are no accident.
    const LETTERS_MIN: usize = 3;
    let is_letter = |c: &char| matches!(c, '\u{e0020}'..='\u{e007e}');
    let mut end = 0;
    memchr::memchr_iter(0xf3, text.as_bytes()).find(|at| {
        if *at < end {
            return false;
        }
        let count = text[*at..].chars().take(TAGS_MIN).take_while(is_letter).count();
        // Each has four bytes.
        end = *at + 4 * count.max(1);
        (LETTERS_MIN..TAGS_MIN).contains(&count) && !text[..*at].ends_with('\u{1f3f4}')
    })
}

const fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0020}'..='\u{e007f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

const fn is_joint(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Looks for hidden characters.
pub(super) fn scan(scan: &mut Scan<'_, '_>) {
    let Hidden { spelled, joints, first_joint, bits, bidi } = hidden(scan.text);
    for at in spelled.into_iter().chain(bits).chain(letters(scan.text)) {
        let rule = Rule {
            id: "bundle.hidden-tags",
            category: "hidden_unicode",
            severity: Severity::High,
            reason: "Text is written in characters that people cannot see and models read.",
            fix: "Remove the invisible characters.",
        };
        scan.add(&rule, scan.lines.line_of(at));
    }
    if let Some((at, is_override)) = bidi {
        let is_code = scan.syntax.surface() != "document";
        let has_right_to_left = scan.text.chars().any(is_right_to_left);
        let is_foreign = has_right_to_left && !is_override;
        if !is_foreign {
            let rule = Rule {
                id: "bundle.hidden-direction",
                category: "hidden_unicode",
                severity: if is_code || is_override && !has_right_to_left {
                    Severity::High
                } else {
                    Severity::Medium
                },
                reason: "Control characters change the order in which the text is shown.",
                fix: "Remove the control characters, so that people see what is run or read.",
            };
            scan.add(&rule, scan.lines.line_of(at));
        }
    }
    if joints >= JOINTS_WARN {
        let rule = Rule {
            id: "bundle.hidden-joints",
            category: "hidden_unicode",
            severity: if joints >= JOINTS_FAIL { Severity::High } else { Severity::Medium },
            reason: "Invisible characters stand inside words.",
            fix: "Remove the invisible characters.",
        };
        scan.add(&rule, scan.lines.line_of(first_joint));
    }
}

const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

const fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same, character by character.
    fn plainly(text: &str) -> Hidden {
        let mut out = Hidden::default();
        let chars: Vec<(usize, char)> = text.char_indices().collect();
        let mut run: Vec<usize> = Vec::new();
        let mut row: Vec<usize> = Vec::new();
        let mut before = ' ';
        for (index, (at, c)) in chars.iter().copied().enumerate() {
            if is_tag(c) {
                run.push(at);
            }
            if is_joint(c) {
                row.push(at);
            } else {
                row.clear();
            }
            if row.len() >= BITS_MIN {
                out.bits = out.bits.or(Some(row[0]));
            }
            let is_last = chars.get(index + 1).is_none_or(|(_, next)| !is_tag(*next));
            if is_last && run.len() >= TAGS_MIN {
                out.spelled.push(run[0]);
            }
            if is_last {
                run.clear();
            }
            match c {
                '\u{202d}' | '\u{202e}' if out.bidi.is_none_or(|(_, strong)| !strong) => {
                    out.bidi = Some((at, true));
                }
                '\u{202a}'..='\u{202c}' | '\u{2066}'..='\u{2069}' if out.bidi.is_none() => {
                    out.bidi = Some((at, false));
                }
                _ => {}
            }
            if is_joint(c) {
                let after = chars.get(index + 1).map_or(' ', |(_, c)| *c);
                if is_plain(before) && is_plain(after) {
                    out.first_joint = if out.joints == 0 { at } else { out.first_joint };
                    out.joints += 1;
                }
            } else if c != '\u{ad}' {
                before = c;
            }
        }
        out
    }

    #[test]
    fn few_letters_of_tags_are_told_and_flags_are_not() {
        for (text, wanted) in [
            ("a\u{e0049}\u{e0067}\u{e006e}", Some(1)),
            ("a\u{e0049}\u{e0067}", None),
            // The flag of Scotland.
            ("\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}", None),
            (
                "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} \u{e0049}\u{e0067}\u{e006e}",
                Some(29),
            ),
            ("plain", None),
        ] {
            assert_eq!(letters(text), wanted, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn looking_at_some_bytes_finds_what_looking_at_all_finds(
            text in "[abя—\u{ad}\u{200b}\u{2060}\u{feff}\u{202a}\u{202e}\u{2069}\u{fe0f}\u{e0041}\u{e0101}\u{20ac}]{0,40}"
        ) {
            prop_assert_eq!(hidden(&text), plainly(&text));
        }

        #[test]
        fn runs_of_tags_are_told_by_their_length(text in "([a\u{ad}]|[\u{fe0e}\u{e0041}]{6,10}){0,6}") {
            prop_assert_eq!(hidden(&text), plainly(&text));
        }
    }
}
