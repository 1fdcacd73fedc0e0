//! Characters that people cannot see and models and compilers read.

use super::{Rule, Scan};
use crate::decision::Severity;

/// Fewest tags or variation selectors in a row that spell something. Flags of regions use six.
const TAGS_MIN: usize = 8;
/// Zero-width characters between letters from which they are no accident of copying.
const JOINTS_WARN: usize = 2;
const JOINTS_FAIL: usize = 8;

/// Looks for hidden characters.
pub(super) fn scan(scan: &mut Scan<'_, '_>) {
    if scan.text.is_ascii() {
        return;
    }
    let (mut tags, mut joints, mut first_joint) = ((0_usize, 0_usize), 0_usize, 0_usize);
    let mut spelled = Vec::new();
    let mut bidi: Option<(usize, bool)> = None;
    let has_right_to_left = scan.text.chars().any(is_right_to_left);
    let mut before = ' ';
    let mut chars = scan.text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\u{e0020}'..='\u{e007f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
                tags = (if tags.1 == 0 { at } else { tags.0 }, tags.1 + 1);
            }
            _ => {
                if tags.1 >= TAGS_MIN {
                    spelled.push(tags.0);
                }
                tags = (0, 0);
            }
        }
        match c {
            '\u{202d}' | '\u{202e}' => bidi = bidi.filter(|(_, strong)| *strong).or(Some((at, true))),
            '\u{202a}'..='\u{202c}' | '\u{2066}'..='\u{2069}' => bidi = bidi.or(Some((at, false))),
            '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}' => {
                let after = chars.peek().map_or(' ', |(_, c)| *c);
                if is_plain(before) && is_plain(after) && c != '\u{ad}' {
                    first_joint = if joints == 0 { at } else { first_joint };
                    joints += 1;
                }
                continue;
            }
            _ => {}
        }
        before = c;
    }
    if tags.1 >= TAGS_MIN {
        spelled.push(tags.0);
    }
    for at in spelled {
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
