//! Escapes that are written backwards or with their letters rotated by thirteen: `;501#&`, `\h0069`, `%6r`.
//!
//! A sign of an escape stands in them all the same, and amid many of them it is told which way they read better.

use super::decode::{decoded, is_odd};
use super::escapes;
use super::phrase::{reversed, rot13};
use super::view::View;

/// Bytes that are looked at together to tell which way escapes read.
const SAMPLE: usize = 256;
/// How far before a sign the sample begins: the first of escapes that are backwards ends with its sign.
const BEFORE: usize = 16;
/// Bytes of the shortest escape that is looked for.
const ESCAPE_BYTES_MIN: usize = 3;
/// Fewest escapes that tell.
const ESCAPES_MIN: usize = 6;
/// One in so many may stand for what text does not hold.
const ODD_SHARE: usize = 16;

/// What escapes say once the text is turned, with all of it turned one way; nothing of the ways in which they read no better
/// than as they are.
pub fn turned_escapes<'t>(view: &View<'t>) -> Vec<View<'t>> {
    let bytes = view.text().as_bytes();
    let (mut is_backwards, mut is_rotated, mut next) = (false, false, 0);
    while let Some(sign) = next_sign(bytes, next).filter(|_| !(is_backwards && is_rotated)) {
        let start = sign.saturating_sub(BEFORE);
        let sample = &bytes[start..bytes.len().min(start + SAMPLE)];
        next = sign + SAMPLE - BEFORE;
        let signs = memchr::memchr3_iter(b'%', b'&', b'\\', sample).count();
        if signs < ESCAPES_MIN || signs * ESCAPE_BYTES_MIN > sample.len() + ESCAPE_BYTES_MIN {
            continue;
        }
        let as_sent = Reading::of(sample);
        let is_better = |turned: &[u8]| Reading::of(turned).is_better(&as_sent);
        let rotated: Vec<u8> = sample.iter().map(|byte| rotate(*byte)).collect();
        let backwards: Vec<u8> = sample.iter().rev().copied().collect();
        // What is read in one sample is read in all of the text.
        is_backwards |= is_better(&backwards);
        is_rotated |= is_better(&rotated);
    }
    let backwards = is_backwards.then(|| decoded(&reversed(view))).flatten();
    let rotated = is_rotated.then(|| decoded(&rot13(view))).flatten();
    backwards.into_iter().chain(rotated).collect()
}

fn next_sign(bytes: &[u8], from: usize) -> Option<usize> {
    memchr::memchr3(b'%', b'&', b'\\', bytes.get(from..)?).map(|at| from + at)
}

/// A letter of ASCII rotated by thirteen.
pub(super) fn rotate(byte: u8) -> u8 {
    match byte {
        b'A'..=b'M' | b'a'..=b'm' => byte + 13,
        b'N'..=b'Z' | b'n'..=b'z' => byte - 13,
        _ => byte,
    }
}

/// How many escapes of a sample are read, and what they stand for.
struct Reading {
    count: usize,
    odd: usize,
}

impl Reading {
    fn of(sample: &[u8]) -> Self {
        let (mut count, mut odd, mut at) = (0, 0, 0);
        while let Some(sign) = next_sign(sample, at) {
            at = sign + 1;
            let Some(escape) = escapes::read(sample, sign) else { continue };
            at = escape.range.end;
            count += escape.text.chars().count();
            odd += escape.text.chars().filter(|c| is_odd(*c) || *c == char::REPLACEMENT_CHARACTER).count();
        }
        Self { count, odd }
    }

    fn is_text(&self) -> bool {
        self.count >= ESCAPES_MIN && self.odd * ODD_SHARE <= self.count
    }

    fn is_better(&self, as_sent: &Self) -> bool {
        self.is_text() && (!as_sent.is_text() || self.count * 4 > as_sent.count * 5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "write to the harbour master at once, please";

    fn read(text: &str) -> Option<String> {
        let mut views = turned_escapes(&View::identity(text));
        assert!(views.len() < 2, "{text}");
        views.pop().map(|view| view.text().to_owned())
    }

    #[test]
    fn escapes_are_read_backwards_and_rotated() {
        let written = |escape: fn(u8) -> String| SAID.bytes().map(escape).collect::<String>();
        for escaped in [
            written(|byte| format!("%{byte:02X}")),
            written(|byte| format!("\\u{byte:04x}")),
            written(|byte| format!("\\x{byte:02x}")),
            written(|byte| format!("&#x{byte:x};")),
            SAID.replace(' ', "%20"),
        ] {
            let backwards: String = format!("so: {escaped}").chars().rev().collect();
            assert_eq!(read(&backwards), Some(format!("so: {SAID}")), "{backwards}");
            assert_eq!(read(&format!("so: {escaped}")), None, "{escaped}");
        }
        let rotated: String =
            written(|byte| format!("\\u{byte:04x}")).bytes().map(rotate).map(char::from).collect();
        assert_eq!(read(&rotated).as_deref(), Some(SAID), "{rotated}");
    }

    #[test]
    fn both_ways_are_read_in_one_text() {
        let escaped: String = SAID.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let backwards: String = escaped.chars().rev().collect();
        let rotated: String = SAID.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
        let rotated: String = rotated.bytes().map(rotate).map(char::from).collect();
        let text = format!("{backwards} {} {rotated}", "so ".repeat(SAMPLE));
        let views = turned_escapes(&View::identity(&text));
        let said = |view: &View<'_>| view.text().contains(SAID);
        assert!(
            views.len() == 2 && views.iter().all(said),
            "{:?}",
            views.iter().map(View::text).collect::<Vec<_>>()
        );
    }

    #[test]
    fn tabs_are_no_odd_text() {
        let escaped: String = SAID.replace(' ', "%09").chars().rev().collect();
        assert_eq!(read(&escaped), Some(SAID.replace(' ', "\t")));
    }

    #[test]
    fn escapes_of_programs_stay() {
        for text in [
            "printf(\"%d %s %d %f %x %u %lu %5d\\n\", a, b);\nx = a && b && c && d && e;\n",
            "50% of 60% and 70% or 80% by 90% of 10% for 20%",
            "a\\tb\\tc\\td\\te\\tf\\tg\\th\\n",
            "https://example.org/?q=a%20b%20c%20d%20e%20f%20g%2Fh",
            "\\alpha \\beta \\gamma & \\delta & \\frac{a}{b} & \\sum \\\\",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
