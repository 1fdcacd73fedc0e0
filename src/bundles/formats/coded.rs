//! Archives and programs that are written in letters: uuencode and base64.
//!
//! Text behind base64 is found by the views of the detector core, and values of code by its engine. Here it is about what no
//! text engine can read, whoever decodes it.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::Layers;
use crate::bundles::files::{decode, is_packed_or_program};

/// First letters of what is looked at: archives and programs, each by all its three-byte begins.
const BEGINS: &[&str] = &[
    "UEsDB", "UEsFB", "H4sI", "TVqQ", "TVpQ", "TVpB", "TVoA", "f0VMR", "AGFzbQ", "QlpoO", "/Td6WF", "N3q8ry",
    "UmFyIR", "KLUv/", "yv66vg", "z/rt/", "zvrt/", "TVNDR",
];
static FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| AhoCorasick::new(BEGINS).ok());
/// Shortest piece that is looked at, in letters.
const LETTERS_MIN: usize = 64;
/// Letters of which the begin is decoded.
const HEAD_LETTERS: usize = 1024;

/// Notes what of a text is neither readable nor decoded by anything else.
pub(super) fn look(path: &str, text: &str, layers: &mut Layers) {
    uuencoded(path, text, layers);
    base64(text, layers);
}

fn base64(text: &str, layers: &mut Layers) {
    let bytes = text.as_bytes();
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    let mut from = 0;
    for found in FINDER.iter().flat_map(|finder| finder.find_iter(text)) {
        let at = found.start();
        if at < from || at > 0 && is_letter(bytes[at - 1]) && !after_an_escape(&bytes[..at]) {
            continue;
        }
        // Lines are broken where they are long.
        let end = bytes[at..].iter().position(|byte| !is_letter(*byte) && !matches!(byte, b'\n' | b'\r'));
        let run = &bytes[at..end.map_or(bytes.len(), |end| at + end)];
        let letters: Vec<u8> =
            run.iter().copied().filter(|byte| is_letter(*byte)).take(HEAD_LETTERS).collect();
        if letters.len() >= LETTERS_MIN && is_packed_or_program(&decoded(&letters)) {
            layers.unscanned += run.len();
        }
        from = at + run.len();
    }
}

/// Whether what stands before ends with the escape of a line end.
fn after_an_escape(before: &[u8]) -> bool {
    before.ends_with(b"\\n") || before.ends_with(b"\\r")
}

/// The bytes behind letters of base64, of either alphabet.
pub(super) fn decoded(letters: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(letters.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for letter in letters {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            _ => 63,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

/// `begin 644 name`, lines of a length and their letters, `end` (POSIX `uuencode`).
fn uuencoded(path: &str, text: &str, layers: &mut Layers) {
    let mut from = 0;
    while let Some(found) = memchr::memmem::find(&text.as_bytes()[from..], b"begin ") {
        let at = from + found;
        from = at + 6;
        if at > 0 && text.as_bytes()[at - 1] != b'\n' {
            continue;
        }
        let mut lines = text[at..].split_inclusive('\n');
        let Some(head) = lines.next() else { return };
        let mut words = head.split_whitespace().skip(1);
        let is_mode = words.next().is_some_and(|mode| {
            (3..=4).contains(&mode.len()) && mode.bytes().all(|b| matches!(b, b'0'..=b'7'))
        });
        let (true, Some(name)) = (is_mode, words.next()) else { continue };
        let mut len = head.len();
        let mut content = Vec::new();
        for line in lines {
            let letters = line.trim_end_matches(['\n', '\r']).as_bytes();
            let Some((count, letters)) = letters.split_first() else { break };
            let count = usize::from(count.wrapping_sub(b' ') & 63);
            if count == 0 || !letters.iter().all(|byte| (b' '..=b'`').contains(byte)) {
                break;
            }
            let before = content.len();
            for four in letters.chunks(4) {
                let bits = (0..4).fold(0_u32, |bits, at| {
                    bits << 6 | u32::from(four.get(at).map_or(0, |byte| byte.wrapping_sub(b' ') & 63))
                });
                content.extend_from_slice(&bits.to_be_bytes()[1..]);
            }
            content.truncate(before + count);
            len += line.len();
        }
        if content.is_empty() {
            continue;
        }
        match decode(&content).filter(|_| !is_packed_or_program(&content)) {
            Some(decoded) => layers.texts.push((format!("{path}!/{name}"), decoded.text)),
            None => layers.unscanned += len,
        }
        from = at + len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_and_programs_in_letters_are_counted() {
        let zip = "UEsDBBQAAAAIAAAAIQAAAAAAAAAAAAAAAAAFAAAAYS50eHRLTEpOSU0DAFBLAQIUABQAAAAIAAAAIQA";
        let gzip = "H4sIAAAAAAAAA0tMSk5JTVNIy8xJVUgtS80rKbZSKM9ILUpVSMvMSVUoLU4tslJIzi8oyszPA0ktLwBx";
        for (text, wanted) in [
            (zip.to_owned(), true),
            (format!("payload = '{zip}'"), true),
            (format!("data:application/zip;base64,{zip}"), true),
            (format!("{}\n{}\n", &zip[..40], &zip[40..]), true),
            (gzip.to_owned(), true),
            (format!("word{zip}"), false),
            (zip[..40].to_owned(), false),
            // An image.
            (format!("iVBORw0KGgo{}", "A".repeat(100)), false),
            (format!("TVqQ{}", "prose".repeat(20)), false),
            ("H4sI is how it begins".to_owned(), false),
        ] {
            let mut layers = Layers::default();
            look("payload.txt", &text, &mut layers);
            assert_eq!(layers.unscanned > 0, wanted, "{text}");
        }
    }

    #[test]
    fn uuencoded_text_is_read_and_the_rest_is_counted() {
        let mut layers = Layers::default();
        look("a.uu", "begin 644 run.sh\n#0V%T\n`\nend\n", &mut layers);
        assert_eq!(layers.texts, [("a.uu!/run.sh".to_owned(), "Cat".to_owned())]);
        let mut layers = Layers::default();
        look("a.uu", "begin 755 a.bin\n$?T5,1@\n`\nend\n", &mut layers);
        assert!(layers.texts.is_empty() && layers.unscanned > 0);
        let mut layers = Layers::default();
        look("a.md", "begin the day\nbegin 123456 things\n#0V%T\n", &mut layers);
        assert_eq!(layers, Layers::default());
    }
}
