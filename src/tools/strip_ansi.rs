//! Terminal control sequences taken out of text: what a person would not see does not reach the agent either.
//!
//! A state machine after ECMA-48, linear in the text: control sequences (CSI), control strings (OSC, DCS, SOS, PM, APC)
//! with their terminators, escape sequences with intermediate bytes, the C1 controls as Unicode U+0080 to U+009F, and
//! the remaining C0 controls. As in a terminal, a line end inside a sequence is carried out and the sequence goes on.
//!
//! Kept: tab, line feed, carriage return, next line (U+0085) and backspace. The last three let a program print over what
//! it printed before; resolving that would drop text that was sent, and dropping the control alone would glue words
//! together that no screen shows together. A control string without an end loses its introducer only: everything
//! behind it would be lost otherwise.

use std::borrow::Cow;
use std::ops::Range;

use super::json::Document;

const ESC: u8 = 0x1B;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1A;
const DEL: u8 = 0x7F;
/// First byte of U+0080 to U+009F in UTF-8.
const C1_LEAD: u8 = 0xC2;

/// The text without terminal control sequences, borrowed when there are none.
pub fn strip(text: &str) -> Cow<'_, str> {
    let removals = removals(text);
    if removals.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for range in removals {
        out.push_str(&text[at..range.start]);
        at = range.end;
    }
    out.push_str(&text[at..]);
    Cow::Owned(out)
}

/// The JSON text with every string stripped, names of members included, and how many strings changed. `None` when
/// nothing changes. Names that become equal are told apart by a number.
pub fn strip_json(document: &Document<'_>) -> Option<(String, usize)> {
    let mut splices = Vec::new();
    let (mut changed, mut has_keys) = (0, false);
    for string in document.strings() {
        if !may_hold(&document.text()[string.range()]) {
            continue;
        }
        let decoded = string.decoded();
        let removals = removals(decoded.text());
        if removals.is_empty() {
            continue;
        }
        changed += 1;
        has_keys |= string.is_key();
        let start = string.range().start;
        splices.extend(removals.into_iter().map(|range| {
            let raw = decoded.to_raw(range);
            (start + raw.start..start + raw.end, String::new())
        }));
    }
    if splices.is_empty() {
        return None;
    }
    let text = document.splice(splices);
    let unique = if has_keys { super::json::unique_members(&text) } else { None };
    Some((unique.unwrap_or(text), changed))
}

/// Whether a string as written can hold something to take out: controls are escaped there, but for DEL and C1.
fn may_hold(raw: &str) -> bool {
    let escapes = |at: usize| matches!(raw.as_bytes().get(at + 1), Some(b'u' | b'f'));
    memchr::memchr2(DEL, C1_LEAD, raw.as_bytes()).is_some()
        || memchr::memchr_iter(b'\\', raw.as_bytes()).any(escapes)
}

/// What is taken out: ranges on character boundaries that rise and do not overlap.
fn removals(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut out = Removals(Vec::new());
    let mut at = 0;
    while let Some(next) = bytes[at..].iter().position(|b| may_begin(*b)) {
        at += next;
        at = match bytes[at] {
            ESC => escape(bytes, at, &mut out),
            C1_LEAD => match bytes.get(at + 1) {
                Some(0x85) => at + 2,
                Some(second @ 0x80..=0x9F) => introduced(bytes, at, at + 2, second - 0x40, &mut out),
                _ => at + 2,
            },
            _ => out.take(at..at + 1),
        };
        if at >= bytes.len() {
            break;
        }
    }
    out.0
}

/// Whether something to take out may begin with `byte`.
fn may_begin(byte: u8) -> bool {
    (byte < 0x20 && !is_kept(byte)) || byte == DEL || byte == C1_LEAD
}

fn is_kept(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | 0x08)
}

struct Removals(Vec<Range<usize>>);

impl Removals {
    /// Takes out `range` and answers its end.
    fn take(&mut self, range: Range<usize>) -> usize {
        let end = range.end;
        match self.0.last_mut() {
            Some(last) if last.end == range.start => last.end = end,
            _ if range.is_empty() => {}
            _ => self.0.push(range),
        }
        end
    }
}

/// A sequence that begins with ESC at `at`; answers where reading goes on.
fn escape(bytes: &[u8], at: usize, out: &mut Removals) -> usize {
    match bytes.get(at + 1) {
        // The 7-bit form of a C1 control.
        Some(sign @ 0x40..=0x5F) => introduced(bytes, at, at + 2, *sign, out),
        Some(0x30..=0x7E) => out.take(at..at + 2),
        Some(0x20..=0x2F) => {
            let rest = &bytes[at + 1..];
            let intermediates = rest.iter().take_while(|b| matches!(b, 0x20..=0x2F)).count();
            let has_final = matches!(rest.get(intermediates), Some(0x30..=0x7E));
            out.take(at..at + 1 + intermediates + usize::from(has_final))
        }
        _ => out.take(at..at + 1),
    }
}

/// What the C1 control `sign` (in its 7-bit form) introduces. Its own bytes are `start..body`.
fn introduced(bytes: &[u8], start: usize, body: usize, sign: u8, out: &mut Removals) -> usize {
    match sign {
        b'[' => control_sequence(bytes, start, body, out),
        b']' => control_string(bytes, start, body, true, out),
        b'P' | b'X' | b'^' | b'_' => control_string(bytes, start, body, false, out),
        _ => out.take(start..body),
    }
}

fn control_sequence(bytes: &[u8], mut start: usize, mut at: usize, out: &mut Removals) -> usize {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            0x40..=0x7E | CAN | SUB => return out.take(start..at + 1),
            // Carried out at once; the sequence goes on behind it.
            _ if is_kept(byte) => {
                out.take(start..at);
                start = at + 1;
            }
            ESC | 0x80.. => break,
            _ => {}
        }
        at += 1;
    }
    out.take(start..at)
}

fn control_string(
    bytes: &[u8],
    start: usize,
    body: usize,
    ends_with_bell: bool,
    out: &mut Removals,
) -> usize {
    let mut at = body;
    loop {
        let rest = &bytes[at..];
        let Some(next) = rest.iter().position(|b| matches!(*b, ESC | BEL | CAN | SUB | C1_LEAD)) else {
            return out.take(start..body);
        };
        at += next;
        match (bytes[at], bytes.get(at + 1)) {
            (ESC, Some(b'\\')) | (C1_LEAD, Some(0x9C)) => return out.take(start..at + 2),
            // Something new begins, and ends the string as a terminal would.
            (ESC, Some(_)) | (C1_LEAD, Some(0x80..=0x9F)) => return out.take(start..at),
            (ESC, None) => return out.take(start..body),
            (BEL, _) if ends_with_bell => return out.take(start..at + 1),
            (CAN | SUB, _) => return out.take(start..at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;
    use crate::tools::json::Duplicates;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Cases {
        text: Vec<Case>,
        json: Vec<Case>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Case {
        from: String,
        to: Option<String>,
    }

    fn cases() -> Cases {
        toml::from_str(include_str!("../../tests/cases/tools/strip_ansi.toml")).expect("cases are valid")
    }

    fn json(text: &str) -> Option<String> {
        let document = Document::parse(text, Duplicates::Keep).expect("a case is JSON");
        strip_json(&document).map(|(text, _)| text)
    }

    #[test]
    fn strips_text() {
        for Case { from, to } in cases().text {
            assert_eq!(strip(&from), to.as_deref().unwrap_or(&from), "{from:?}");
        }
    }

    #[test]
    fn strips_json() {
        for Case { from, to } in cases().json {
            assert_eq!(json(&from), to, "{from}");
        }
    }

    #[test]
    fn hostile_texts_cost_linear_time() {
        for piece in ["\u{1b}]", "\u{1b}[", "\u{9d}", "\u{1b}", "\u{1b}P\u{7}", "\u{1b}[3\n", "\u{9b}\u{90}"]
        {
            let text = piece.repeat(4 << 20 >> 3);
            assert!(!strip(&text).contains(['\u{1b}', '\u{9b}', '\u{9d}']), "{piece:?}");
        }
    }

    proptest! {
        #[test]
        fn leaves_nothing_and_loses_nothing_else(
            text in "[a-c0-9;\\[\\]\\\\P^_mé\u{1b}\u{7}\u{18}\u{80}\u{85}\u{90}\u{9b}\u{9c}\u{9d}\n\r\u{8}\u{0}]{0,30}"
        ) {
            let stripped = strip(&text).into_owned();
            let is_left = |c: char| c.is_control() && !"\t\n\r\u{8}\u{85}".contains(c);
            prop_assert!(!stripped.contains(is_left), "{:?}", stripped);
            prop_assert_eq!(strip(&stripped), stripped.as_str());
            if !text.contains(is_left) {
                prop_assert_eq!(&stripped, &text);
            }
            let quoted = crate::text::json::quote(&text);
            let through = json(&quoted).unwrap_or(quoted);
            prop_assert_eq!(serde_json::from_str::<String>(&through).expect("JSON"), stripped);
        }
    }
}
