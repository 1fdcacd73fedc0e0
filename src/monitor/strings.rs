//! Strings with escapes inside a line: what a program that reads the line as JSON, or as code, sees in them.
//!
//! Agents and CI write their output as JSON, one document a line, so that whole screens of text stand in one string. Each
//! such string is a text of its own, in which an escaped line end is a line end.

use super::mapped::Mapped;

/// Strings in strings that are read: JSON in JSON in JSON.
const DEPTH_MAX: usize = 3;
/// Strings of one line that are read.
const STRINGS_MAX: usize = 256;

/// The texts of the strings of `line` from byte `from` that say more than they look like: escapes of white space or of
/// characters are resolved, in strings inside of strings as well. `is_inside` tells that `from` may be in a string.
pub(super) fn strings(line: &Mapped, from: usize, is_inside: bool) -> Vec<Mapped> {
    let mut found = Vec::new();
    add_strings(line, from, is_inside, 1, &mut found);
    found
}

fn add_strings(line: &Mapped, from: usize, is_inside: bool, depth: usize, found: &mut Vec<Mapped>) {
    let bytes = line.as_str().as_bytes();
    let mut at = from;
    if is_inside {
        let end = closing(bytes, from, b'"').unwrap_or(bytes.len());
        let is_end = bytes.get(end + 1).is_none_or(|b| matches!(b, b',' | b'}' | b']' | b')' | b':' | b'\n'));
        if is_end {
            add(line, from..end, depth, found);
            at = end + 1;
        }
    }
    while let Some(open) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\'', rest)).map(|n| at + n)
    {
        if found.len() >= STRINGS_MAX {
            return;
        }
        let quote = bytes[open];
        // An apostrophe opens nothing.
        let opens = quote == b'"' || open.checked_sub(1).is_none_or(|at| b" [{(,:=".contains(&bytes[at]));
        if !opens {
            at = open + 1;
            continue;
        }
        let end = match closing(bytes, open + 1, quote) {
            Some(end) => end,
            None if quote == b'\'' => {
                at = open + 1;
                continue;
            }
            None => bytes.len(),
        };
        add(line, open + 1..end, depth, found);
        at = end + 1;
    }
}

/// Where a string ends that is read from byte `at`.
fn closing(bytes: &[u8], mut at: usize, quote: u8) -> Option<usize> {
    loop {
        at += memchr::memchr2(quote, b'\\', bytes.get(at..)?)?;
        if bytes[at] == quote {
            return Some(at);
        }
        at += 2;
    }
}

fn add(line: &Mapped, range: std::ops::Range<usize>, depth: usize, found: &mut Vec<Mapped>) {
    if !line.as_str()[range.clone()].contains('\\') {
        return;
    }
    let Some(text) = unescaped(line, range) else { return };
    if depth < DEPTH_MAX && text.as_str().contains('\\') {
        if text.as_str().contains(['"', '\'']) {
            add_strings(&text, 0, false, depth + 1, found);
        } else {
            // Escaped once more, without a string around it.
            add(&text, 0..text.len(), depth + 1, found);
        }
    }
    found.push(text);
}

/// A part of a text with its escapes resolved; `None` where there is none that changes how it reads.
fn unescaped(line: &Mapped, range: std::ops::Range<usize>) -> Option<Mapped> {
    let text = line.as_str();
    let (mut out, mut at, mut is_changed) = (Mapped::default(), range.start, false);
    while let Some(next) = memchr::memchr(b'\\', &text.as_bytes()[at..range.end]).map(|n| at + n) {
        out.push_from(line, at..next);
        let Some(c) = text[next + 1..range.end].chars().next() else {
            at = range.end;
            break;
        };
        let raw = line.raw_of(next);
        at = next + 1 + c.len_utf8();
        let (stands_for, length) = match c {
            'n' => ('\n', 0),
            'r' => ('\r', 0),
            't' => ('\t', 0),
            'u' => match code(text, at, range.end) {
                Some(c) => (c, 4),
                None => ('u', 0),
            },
            other => (other, 0),
        };
        at += length;
        is_changed = true;
        out.push_char(stands_for, raw);
    }
    out.push_from(line, at..range.end);
    is_changed.then_some(out)
}

fn code(text: &str, at: usize, end: usize) -> Option<char> {
    let digits = text.get(at..at + 4).filter(|_| at + 4 <= end)?;
    u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).filter(|c| *c != '\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_as_their_readers_do() {
        for (line, wanted) in [
            (r#"{"text":"one\ntwo"}"#, &["one\ntwo"][..]),
            (r#"{"a":"plain","b":"x\ty \"z\" \u0041"}"#, &["x\ty \"z\" A"]),
            (r#"{'a': 'it\'s\nso', "b": 1}"#, &["it's\nso"]),
            (r#"it's "one\ntwo" isn't"#, &["one\ntwo"]),
            (r#"{"a":"{\"b\":\"x\\ny\"}"}"#, &["x\ny", "{\"b\":\"x\\ny\"}"]),
            (r#"{"a":"x\\ny"}"#, &["x\ny", "x\\ny"]),
            (r#"{"a":"without an end\nhere"#, &["without an end\nhere"]),
            ("nothing here", &[]),
            (r#"\ " \"#, &[]),
        ] {
            let mut mapped = Mapped::default();
            mapped.push(line, 100);
            let found = strings(&mapped, 0, false);
            let texts: Vec<&str> = found.iter().map(Mapped::as_str).collect();
            assert_eq!(texts, wanted, "{line}");
            for text in &found {
                if let Some(at) = text.as_str().find("two") {
                    assert_eq!(text.raw_of(at), 100 + line.find("two").expect("is there") as u64, "{line}");
                }
            }
        }
        let mut mapped = Mapped::default();
        mapped.push(r#"rest\nof it","more":"a\nb"}"#, 0);
        let found = strings(&mapped, 0, true);
        let texts: Vec<&str> = found.iter().map(Mapped::as_str).collect();
        assert_eq!(texts, ["rest\nof it", "a\nb"]);
    }
}
