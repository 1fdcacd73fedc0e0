//! Two codes beside base64 and hex: base32, and Morse.
//!
//! Both are taken only where a whole stretch decodes to text, so that tokens and rows of dashes stay what they are.

use std::ops::Range;

/// Fewest letters of Morse in a row: three dots or a rule of dashes are no message.
const MORSE_MIN: usize = 8;
/// Longest gap between two signs of Morse, in bytes.
const MORSE_GAP_MAX: usize = 5;

/// The bytes that base32 (RFC 4648, in capitals or in small letters) in `text` stands for; none if another character is in it
/// or its length is none that base32 has.
pub(super) fn base32(text: &[u8]) -> Option<Vec<u8>> {
    let is_digit = |byte: &u8| matches!(byte, b'2'..=b'7');
    let is_of = |is_letter: fn(&u8) -> bool| text.iter().all(|byte| is_letter(byte) || is_digit(byte));
    if !is_of(u8::is_ascii_uppercase) && !is_of(u8::is_ascii_lowercase) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    let (mut bits, mut count) = (0u64, 0u32);
    for byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a',
            b'2'..=b'7' => byte - b'2' + 26,
            _ => return None,
        };
        bits = (bits << 5 | u64::from(value)) & 0xFFFF;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    // Lengths of 1, 3 and 6 over a whole group end amid a byte.
    (!matches!(text.len() % 8, 1 | 3 | 6)).then_some(bytes)
}

/// A message in Morse: its letters with the bytes each came from, the gap after it included.
pub(super) struct Morse {
    /// Where it is written.
    pub range: Range<usize>,
    /// Its characters.
    pub letters: Vec<(char, Range<usize>)>,
}

/// The first message in Morse at or after `from`.
pub(super) fn next_morse(text: &[u8], from: usize) -> Option<Morse> {
    let mut at = from;
    loop {
        let sign = dash_beside_dot(text, at)?;
        // It may have begun with letters of one kind of sign, such as `...` or `--`.
        let is_part = |byte: &&u8| matches!(byte, b'.' | b'-' | b' ' | b'/' | b'|');
        let before = text[at..sign].iter().rev().take_while(is_part).count();
        let lead = text[sign - before..sign].iter().take_while(|byte| !matches!(byte, b'.' | b'-')).count();
        let start = sign - before + lead;
        let morse = read_morse(text, start);
        if morse.letters.iter().filter(|(c, _)| *c != ' ').count() >= MORSE_MIN {
            return Some(morse);
        }
        at = morse.range.end.max(sign + 1);
    }
}

/// The first dash at or after `from` that stands beside a dot, as one does in every message of some length.
fn dash_beside_dot(text: &[u8], from: usize) -> Option<usize> {
    let is_beside_dot =
        |dash: &usize| text.get(dash + 1) == Some(&b'.') || (*dash > 0 && text[dash - 1] == b'.');
    memchr::memchr_iter(b'-', &text[from..]).map(|dash| from + dash).find(is_beside_dot)
}

/// The first row of signs of Morse and what parts them, at or after `from`, that is long enough for a message.
pub(super) fn next_signs(text: &[u8], from: usize) -> Option<Range<usize>> {
    let is_part = |byte: &&u8| matches!(byte, b'.' | b'-' | b' ' | b'/' | b'|' | b'\n' | b'\r' | b'\t');
    let mut at = from;
    loop {
        let sign = dash_beside_dot(text, at)?;
        let before = text[at..sign].iter().rev().take_while(is_part).count();
        let end = sign + text[sign..].iter().take_while(is_part).count();
        if end - (sign - before) >= 2 * MORSE_MIN {
            return Some(sign - before..end);
        }
        at = end;
    }
}

fn read_morse(text: &[u8], start: usize) -> Morse {
    let mut letters: Vec<(char, Range<usize>)> = Vec::new();
    let mut at = start;
    let mut end = start;
    loop {
        let len = text[at..].iter().take(8).take_while(|byte| matches!(byte, b'.' | b'-')).count();
        let Some(letter) = letter_of(&text[at..at + len]) else { break };
        let joins = text.get(at + len).is_some_and(u8::is_ascii_alphanumeric);
        if joins {
            break;
        }
        letters.push((letter, at..at + len));
        end = at + len;
        let is_gap = |byte: &&u8| matches!(byte, b' ' | b'/' | b'|' | b'\n' | b'\r' | b'\t');
        let gap = text[end..].iter().take(MORSE_GAP_MAX + 1).take_while(is_gap).count();
        if gap == 0 || gap > MORSE_GAP_MAX {
            break;
        }
        at = end + gap;
        if text[end..at] != *b" " && matches!(text.get(at), Some(b'.' | b'-')) {
            letters.push((' ', end..at));
        }
    }
    while letters.last().is_some_and(|(letter, _)| *letter == ' ') {
        letters.pop();
    }
    Morse { range: start..end, letters }
}

/// ITU-R M.1677: the letters, the digits and the marks that sentences need.
fn letter_of(signs: &[u8]) -> Option<char> {
    const CODES: [(&[u8], char); 41] = [
        (b".-", 'a'),
        (b"-...", 'b'),
        (b"-.-.", 'c'),
        (b"-..", 'd'),
        (b".", 'e'),
        (b"..-.", 'f'),
        (b"--.", 'g'),
        (b"....", 'h'),
        (b"..", 'i'),
        (b".---", 'j'),
        (b"-.-", 'k'),
        (b".-..", 'l'),
        (b"--", 'm'),
        (b"-.", 'n'),
        (b"---", 'o'),
        (b".--.", 'p'),
        (b"--.-", 'q'),
        (b".-.", 'r'),
        (b"...", 's'),
        (b"-", 't'),
        (b"..-", 'u'),
        (b"...-", 'v'),
        (b".--", 'w'),
        (b"-..-", 'x'),
        (b"-.--", 'y'),
        (b"--..", 'z'),
        (b"-----", '0'),
        (b".----", '1'),
        (b"..---", '2'),
        (b"...--", '3'),
        (b"....-", '4'),
        (b".....", '5'),
        (b"-....", '6'),
        (b"--...", '7'),
        (b"---..", '8'),
        (b"----.", '9'),
        (b".-.-.-", '.'),
        (b"--..--", ','),
        (b"..--..", '?'),
        (b".----.", '\''),
        (b"---...", ':'),
    ];
    CODES.iter().find(|(code, _)| *code == signs).map(|(_, letter)| *letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32_is_read_as_the_standard_has_it() {
        for (text, wanted) in [
            ("", Some("")),
            ("MY", Some("f")),
            ("MZXQ", Some("fo")),
            ("MZXW6", Some("foo")),
            ("MZXW6YQ", Some("foob")),
            ("MZXW6YTB", Some("fooba")),
            ("MZXW6YTBOI", Some("foobar")),
            ("M", None),
            ("MZX", None),
            ("MZXW61", None),
            ("mzxw6ytb", Some("fooba")),
            ("mzxw6YTB", None),
        ] {
            let decoded = base32(text.as_bytes());
            assert_eq!(decoded.as_deref(), wanted.map(str::as_bytes), "{text}");
        }
    }

    #[test]
    fn morse_is_found_where_it_is_and_nowhere_else() {
        let said = |text: &str| {
            let found = next_morse(text.as_bytes(), 0)?;
            assert_eq!(found.letters.first().map(|l| l.1.start), Some(found.range.start));
            assert_eq!(found.letters.last().map(|l| l.1.end), Some(found.range.end));
            Some(found.letters.iter().map(|(c, _)| c).collect::<String>())
        };
        for (text, wanted) in [
            (".. --. -. --- .-. . / .- .-.. .-..", Some("ignore all")),
            ("say: ... . -. -.. / .. - / -. --- .--", Some("send it now")),
            ("a table\n---|---\n.-. is it", None),
            ("wait... what --- no.- oh -. well", None),
            (&".-".repeat(50_000), None),
            (&". .-x ".repeat(20_000), None),
            ("", None),
        ] {
            assert_eq!(said(text).as_deref(), wanted, "{text}");
        }
    }
}
