//! Base32, base64 and hex in groups of four, five or eight, with a blank or a hyphen between two, as people write keys.

use std::ops::Range;

use super::base64;
use super::codes;
use super::gate;
use super::hex;
use super::layer::{Layer, Layers};
use super::rewrite::Rewriter;
use super::view::View;

/// Fewest letters and digits that are read.
const SIGNS_MIN: usize = 24;
/// Most padding at the end, in bytes.
const PADDING_MAX: usize = 6;

/// The text with groups decoded that encode text; none if there are none.
pub(super) fn decode<'t>(parent: &View<'t>) -> Option<View<'t>> {
    let text = parent.text();
    let bytes = text.as_bytes();
    let mut rewriter = Rewriter::new(text);
    let mut done = 0;
    while let Some((part, len)) = gate::next_groups(bytes, done) {
        let groups = Groups::around(bytes, part, len, done);
        done = groups.range.end.max(part + 1);
        if groups.signs.len() < SIGNS_MIN {
            continue;
        }
        if let Some((said, layer)) = groups.read() {
            rewriter.replace(groups.range, &said, Layers::of(layer));
        }
    }
    rewriter.finish(parent)
}

struct Groups {
    range: Range<usize>,
    /// The letters and digits, without what parts them.
    signs: Vec<u8>,
}

impl Groups {
    /// The groups of `len` beside the separator at `part`; the last may be shorter.
    fn around(bytes: &[u8], part: usize, len: usize, from: usize) -> Self {
        // What stands before the first group may be another one.
        let sign = bytes[part + 1 + len];
        let is_group = |at: usize| bytes.get(at..at + len).is_some_and(|group| group.iter().all(is_sign));
        let mut start = part + 1;
        while start - from > len && is_group(start - 1 - len) && bytes[start - 1] == sign {
            start -= len + 1;
        }
        // What begins amid a word is none.
        if start > 0 && is_sign(&bytes[start - 1]) {
            start += len + 1;
        }
        let (mut signs, mut at) = (Vec::new(), start);
        while is_group(at) {
            signs.extend_from_slice(&bytes[at..at + len]);
            at += len;
            if bytes.get(at) != Some(&sign) || !bytes.get(at + 1).is_some_and(is_sign) {
                break;
            }
            at += 1;
        }
        let rest =
            bytes.get(at..).unwrap_or_default().iter().take(len).take_while(|byte| is_sign(byte)).count();
        if at > start && bytes[at - 1] == sign {
            signs.extend_from_slice(&bytes[at..at + rest]);
            at += rest;
        }
        let padding = bytes.get(at..).unwrap_or_default().iter().take(PADDING_MAX);
        let padding = padding.take_while(|byte| **byte == b'=').count();
        Self { range: start..(at + padding).max(start), signs }
    }

    /// What the signs say, if that is text.
    fn read(&self) -> Option<(String, Layer)> {
        let whole = 0..self.signs.len();
        let base64 = || Some(base64::decode(&self.signs, whole.clone()).bytes);
        let hex = || hex::decode_run(&self.signs).map(|(bytes, _)| bytes);
        let base32 = || codes::base32(&self.signs);
        let read = |bytes: Option<Vec<u8>>| String::from_utf8(bytes?).ok().filter(|text| is_plain(text));
        read(hex())
            .map(|text| (text, Layer::Hex))
            .or_else(|| read(base32()).map(|text| (text, Layer::Base32)))
            .or_else(|| read(base64()).map(|text| (text, Layer::Base64)))
    }
}

fn is_sign(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_decoded() {
        for (text, wanted) in [
            // "drop all of it right now"
            ("MRZG 64BA MFWG YIDP MYQG S5BA OJUW O2DU EBXG 65Y=", Some("drop all of it right now")),
            ("key: MRZG64BA-MFWGYIDP-MYQGS5BA-OJUWO2DU-EBXG65Y= !", Some("key: drop all of it right now !")),
            ("ZHJv cCBh bGwg b2Yg aXQg cmln aHQg bm93", Some("drop all of it right now")),
            ("6472 6f70 2061 6c6c 206f 6620 6974 2072", Some("drop all of it r")),
            ("this word list uses four char each time only that much more", None),
            ("ABCD EFGH IJKL MNOP QRST UVWX YZAB CDEF", None),
            ("4111 1111 1111 1111 4111 1111 1111 1111", None),
            ("", None),
        ] {
            let source = View::identity(text);
            assert_eq!(decode(&source).as_ref().map(View::text), wanted, "{text}");
        }
        let text = "é ZHJv cCBh bGwg b2Yg aXQg cmln aHQg bm93 é";
        let source = View::identity(text);
        let view = decode(&source).expect("a view");
        assert_eq!(&text[view.to_source(3..7)], "ZHJv cCBh bGwg b2Yg aXQg cmln aHQg bm93");
    }
}
