//! One pass of decoding: the text with whatever is encoded in it replaced by what it says.
//!
//! All encodings are taken in one pass from left to right, so that a phrase of which half is encoded becomes one
//! phrase, and the work stays linear however they are mixed. What was decoded may itself be encoded: the caller runs
//! the pass again.
//!
//! Escapes are taken at their word. Base64 and hex look like many other things, so they are taken only where they
//! decode to text; a run of them that an escape touches waits for the next pass, when its own escapes are gone.
//!
//! Not decoded: text behind more than [`PROBE`] bytes of base64 that is not text, and runs that begin amid base64.

use super::base64;
use super::codes;
use super::escapes::{self, Escape};
use super::form;
use super::gate;
use super::hex::{self, Pairs};
use super::layer::{Layer, Layers};
use super::packed;
use super::rewrite::Rewriter;
use super::turned::rotate;
use super::view::View;
use std::ops::Range;

/// One character in this many may be one that text does not hold.
const ODD_SHARE: usize = 16;
/// Bytes of base64 that are decoded to see whether it is text.
const PROBE: usize = 48;
/// Shortest run that is read rotated or backwards.
const TURNED_MIN: usize = 32;
/// Bytes that tell most of what is no text.
const OPENING: usize = 8;
/// Most bytes that one run is unpacked to.
const UNPACKED_MAX: usize = 16 * 1024;
/// And how many for one that is packed.
const UNPACKED_FACTOR_MAX: usize = 32;

/// The parent decoded once.
pub(super) struct Decoded<'t> {
    /// The text.
    pub view: View<'t>,
    /// The encodings that were found in this pass.
    pub found: Layers,
}

/// What a disguise says once one level of what is encoded in it is decoded; none if nothing is.
pub fn decoded<'t>(disguise: &View<'t>) -> Option<View<'t>> {
    decode(disguise).map(|decoded| decoded.view)
}

/// Decodes `parent` once; none if nothing in it is encoded.
pub(super) fn decode<'t>(parent: &View<'t>) -> Option<Decoded<'t>> {
    let mut decoder = Decoder {
        text: parent.text().as_bytes(),
        rewriter: Rewriter::new(parent.text()),
        at: 0,
        found: Layers::NONE,
        escape_end: None,
        unwrappable_to: 0,
        unwrappable_hex_to: 0,
        taken_to: 0,
        unpack_left: 2 * parent.text().len() + UNPACKED_MAX,
    };
    decoder.run();
    let found = decoder.found;
    Some(Decoded { view: decoder.rewriter.finish(parent)?, found })
}

struct Decoder<'p> {
    text: &'p [u8],
    rewriter: Rewriter<'p>,
    /// Everything before is dealt with.
    at: usize,
    found: Layers,
    /// Where the last escape ended that could stand amid base64.
    escape_end: Option<usize>,
    /// Lines before this were tried as wrapped base64, so that each is tried once.
    unwrappable_to: usize,
    /// The same for hex.
    unwrappable_hex_to: usize,
    /// What was dealt with before the run that is looked at.
    taken_to: usize,
    /// Bytes that may still be unpacked.
    unpack_left: usize,
}

impl Decoder<'_> {
    fn run(&mut self) {
        let marker_from =
            |from: usize, text: &[u8]| memchr::memchr3(b'%', b'&', b'\\', &text[from..]).map(|at| from + at);
        let text = self.text;
        let mut marker = marker_from(0, text);
        let mut run = gate::next_run(text, 0);
        let mut pairs = hex::next_pairs(text, 0);
        let mut blanks = form::Blanks::new(text);
        let mut blank = blanks.next();
        loop {
            if marker.is_some_and(|marker| marker < self.at) {
                marker = marker_from(self.at, text);
            }
            if run.as_ref().is_some_and(|run| run.start < self.at) {
                run = gate::next_run(text, self.at);
            }
            if pairs.as_ref().is_some_and(|pairs| pairs.range().start < self.at) {
                pairs = hex::next_pairs(text, self.at);
            }
            while blank.is_some_and(|blank| blank < self.at) {
                blank = blanks.next();
            }
            // Words with `+` between them look like one run of base64.
            if let Some(at) = blank.filter(|blank| run.as_ref().is_some_and(|run| run.contains(blank))) {
                run = gate::next_run(text, at + 1);
            }
            if let Some(at) = blank
                && marker.is_none_or(|marker| at < marker)
                && run.as_ref().is_none_or(|run| at < run.start)
                && pairs.as_ref().is_none_or(|pairs| at < pairs.range().start)
            {
                self.take_blank(at);
                continue;
            }
            let starts = [
                marker.unwrap_or(usize::MAX),
                run.as_ref().map_or(usize::MAX, |run| run.start),
                pairs.as_ref().map_or(usize::MAX, |pairs| pairs.range().start),
            ];
            match starts {
                [usize::MAX, usize::MAX, usize::MAX] => return,
                [marker, run, pairs] if marker <= run && marker <= pairs => self.take_marker(marker),
                [_, run_start, pairs] if run_start <= pairs => {
                    let Some(run) = run.clone() else { return };
                    self.take_run(run);
                }
                _ => {
                    let Some(pairs) = &pairs else { return };
                    self.take_pairs(pairs);
                }
            }
        }
    }

    fn take_blank(&mut self, at: usize) {
        self.at = at + 1;
        self.found.insert(Layer::Percent);
        self.rewriter.replace(at..at + 1, " ", Layer::Percent.into());
    }

    fn take_marker(&mut self, marker: usize) {
        let Some(escape) = escapes::read(self.text, marker) else {
            self.at = marker + 1;
            return;
        };
        self.at = escape.range.end;
        self.escape_end = is_base64_part(&escape).then_some(escape.range.end);
        self.found.insert(escape.layer);
        let layers = Layers::of(escape.layer);
        match escape.unit {
            None => self.rewriter.replace(escape.range, &escape.text, layers),
            Some(unit) => {
                let parts = escape.range.clone().step_by(unit).map(|start| (1, start..start + unit));
                self.rewriter.replace_parts(escape.range, &escape.text, parts, layers);
            }
        }
    }

    fn take_run(&mut self, run: Range<usize>) {
        let run = base64::with_padding(self.text, run);
        self.taken_to = self.at;
        self.at = run.end;
        let is_touched = self.escape_end == Some(run.start)
            || escapes::read(self.text, run.end).is_some_and(|escape| is_base64_part(&escape));
        if is_touched || self.take_wrapped_hex(&run) || self.take_hex(&run) {
            return;
        }
        if hex::is_made_of_digits(&self.text[run.clone()]) {
            self.take_backwards_hex(&run);
            return;
        }
        let is_taken = self.take_packed(&run)
            || self.take_base32(&run)
            || self.take_wrapped(&run)
            || self.take_base64(run.clone());
        if is_taken || self.take_turned(&run) {
            return;
        }
        // Part of a path or of joined words may be base64 though the whole is not.
        let mut start = run.start;
        for piece in self.text[run].split(|byte| matches!(byte, b'/' | b'-' | b'_' | b'+')) {
            let range = start..start + piece.len();
            start = range.end + 1;
            if range.len() >= gate::RUN_MIN && !self.take_hex(&range) && !self.take_base32(&range) {
                self.take_base64(range);
            }
        }
    }

    fn take_hex(&mut self, run: &Range<usize>) -> bool {
        let Some((bytes, skipped)) = hex::decode_run(&self.text[run.clone()]) else { return false };
        let Some(text) = std::str::from_utf8(&bytes).ok().filter(|text| is_text(text)) else { return false };
        let parts = (run.start + skipped..run.end).step_by(2).map(|at| {
            // The prefix belongs to the first byte.
            let start = if at == run.start + skipped { run.start } else { at };
            (1, start..at + 2)
        });
        self.rewriter.replace_parts(run.clone(), text, parts, Layer::Hex.into());
        self.found.insert(Layer::Hex);
        true
    }

    /// Takes lines of as many hex digits each.
    fn take_wrapped_hex(&mut self, run: &Range<usize>) -> bool {
        let is_broken = matches!(self.text.get(run.end), Some(b'\r' | b'\n'));
        if !is_broken || run.start < self.unwrappable_hex_to || !run.len().is_multiple_of(2) {
            return false;
        }
        if hex::decode_run(&self.text[run.clone()]).is_none() {
            return false;
        }
        let ends = base64::wrapped_ends(self.text, run);
        let end = ends.last().copied().unwrap_or(run.end);
        self.unwrappable_hex_to = end;
        let is_sign = |at: &usize| !matches!(self.text[*at], b'\r' | b'\n');
        let places: Vec<usize> = (run.start..end).filter(is_sign).collect();
        let digits: Vec<u8> = places.iter().map(|at| self.text[*at]).collect();
        let Some((bytes, 0)) = hex::decode_run(&digits) else { return false };
        let Some(text) = std::str::from_utf8(&bytes).ok().filter(|text| is_text(text)) else { return false };
        let parts = places.chunks_exact(2).map(|pair| (1, pair[0]..pair[1] + 1));
        self.rewriter.replace_parts(run.start..end, text, parts, Layer::Hex.into());
        self.at = end;
        self.found.insert(Layer::Hex);
        true
    }

    /// Takes base64 of what gzip or zlib packed, if that is text: as one atom.
    fn take_packed(&mut self, run: &Range<usize>) -> bool {
        if !packed::may_begin(&self.text[run.clone()]) {
            return false;
        }
        let packed = base64::decode(self.text, run.clone()).bytes;
        let room = self.unpack_left.min(UNPACKED_MAX).min(packed.len() * UNPACKED_FACTOR_MAX);
        let Some(bytes) = packed::unpack(&packed, room) else { return false };
        let text = String::from_utf8_lossy(&bytes);
        self.unpack_left -= bytes.len();
        if !is_text(&text) {
            return false;
        }
        let layers = Layers::of(Layer::Base64).union(Layers::of(Layer::Packed));
        self.rewriter.replace(run.clone(), &text, layers);
        self.found = self.found.union(layers);
        true
    }

    /// Takes base64, hex and base32 whose letters are rotated by thirteen, or which is written backwards: as one atom.
    fn take_turned(&mut self, run: &Range<usize>) -> bool {
        if run.len() < TURNED_MIN {
            return false;
        }
        let rotated = |at: usize| rotate(self.text[at]);
        // Base32 has up to six, of which the run holds two.
        let is_padding = |byte: &&u8| **byte == b'=';
        if let Some(turned) = turned(run.clone().map(rotated)) {
            let padding = self.text[run.end..].iter().take(4).take_while(is_padding).count();
            self.replace_turned(run.start..run.end + padding, turned, Layer::Rot13);
            self.at = self.at.max(run.end + padding);
            return true;
        }
        match turned(run.clone().rev().map(|at| self.text[at])) {
            Some(turned) => {
                let most = if turned.1 == Layer::Base32 { 6 } else { 2 };
                let padding = self.text[..run.start].iter().rev().take(most).take_while(is_padding).count();
                // What was decoded before ends no later.
                let padding = padding.min(run.start - self.taken_to);
                self.replace_turned(run.start - padding..run.end, turned, Layer::Reversed);
                true
            }
            None => false,
        }
    }

    /// Takes hex that is written backwards: as one atom. Digests and ids are told from it by a few of their bytes.
    fn take_backwards_hex(&mut self, run: &Range<usize>) {
        if run.len() < TURNED_MIN || !run.len().is_multiple_of(2) {
            return;
        }
        let bytes = self.text[run.clone()].rchunks_exact(2).map_while(|pair| hex::byte(pair[1], pair[0]));
        let is_odd = |byte: u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
        if bytes.clone().take(OPENING).any(is_odd) {
            return;
        }
        let text = String::from_utf8(bytes.collect()).ok();
        if let Some(text) = text.filter(|text| !text.bytes().any(is_odd)) {
            self.replace_turned(run.clone(), (text, Layer::Hex), Layer::Reversed);
        }
    }

    fn replace_turned(&mut self, range: Range<usize>, (text, code): (String, Layer), how: Layer) {
        let layers = Layers::of(code).union(Layers::of(how));
        self.rewriter.replace(range, &text, layers);
        self.found = self.found.union(layers);
    }

    /// Takes a run that is base32 as a whole, with its padding.
    fn take_base32(&mut self, run: &Range<usize>) -> bool {
        let signs = self.text[run.clone()].iter().take_while(|byte| **byte != b'=').count();
        let end = run.start + signs;
        let Some(bytes) = codes::base32(&self.text[run.start..end]) else { return false };
        let Some(text) = std::str::from_utf8(&bytes).ok().filter(|text| is_text(text)) else { return false };
        let padding = self.text[end..].iter().take(6).take_while(|byte| **byte == b'=').count();
        let starts = (run.start..end).step_by(8);
        let parts = starts.map(|start| {
            // Padding belongs to the last group.
            let to = if start + 8 >= end { end + padding } else { start + 8 };
            (5, start..to)
        });
        self.rewriter.replace_parts(run.start..end + padding, text, parts, Layer::Base32.into());
        self.found.insert(Layer::Base32);
        self.at = self.at.max(end + padding);
        true
    }

    fn take_pairs(&mut self, pairs: &Pairs) {
        let range = pairs.range();
        self.at = range.end;
        let mut bytes: Vec<u8> = pairs.bytes.iter().map(|(byte, _)| *byte).collect();
        let Some(text) = std::str::from_utf8(&bytes).ok().filter(|text| is_text(text)) else {
            bytes.reverse();
            bytes.iter_mut().for_each(|byte| *byte = byte.rotate_left(4));
            if let Some(text) = std::str::from_utf8(&bytes).ok().filter(|text| is_text(text)) {
                self.replace_turned(range, (text.to_owned(), Layer::Hex), Layer::Reversed);
            }
            return;
        };
        let parts = pairs.bytes.iter().map(|(_, range)| (1, range.clone()));
        self.rewriter.replace_parts(range, text, parts, Layer::Hex.into());
        self.found.insert(Layer::Hex);
    }

    /// Tries `run` as the first line of wrapped base64, with and without the last line, which may be plain text.
    fn take_wrapped(&mut self, run: &Range<usize>) -> bool {
        if run.start < self.unwrappable_to || !matches!(self.text.get(run.end), Some(b'\r' | b'\n')) {
            return false;
        }
        let ends = base64::wrapped_ends(self.text, run);
        let Some((&last, before)) = ends.split_last().filter(|(_, before)| !before.is_empty()) else {
            return false;
        };
        self.unwrappable_to = last;
        let shorter = before.last().copied().filter(|_| before.len() > 1);
        [Some(last), shorter].into_iter().flatten().any(|end| self.take_base64(run.start..end))
    }

    fn take_base64(&mut self, range: Range<usize>) -> bool {
        if base64::opening(&self.text[range.clone()]).is_some_and(|bytes| is_no_text(&bytes)) {
            return false;
        }
        let (probe, probed) = base64::probe::<PROBE>(self.text, range.clone());
        if read_text(&probe[..probed]).is_none() {
            return false;
        }
        let decoded = base64::decode(self.text, range.clone());
        let Some(chars) = read_text(&decoded.bytes) else { return false };
        // The source ends with the last whole group: a character that is left over stays as it is.
        let range = range.start..decoded.quads.last().map_or(range.start, |quad| quad.end);
        self.at = self.at.max(range.end);
        self.found.insert(Layer::Base64);
        match chars {
            Text::Utf8(text) => {
                let parts = decoded.quads.iter().map(|quad| (3, quad.clone()));
                self.rewriter.replace_parts(range, text, parts, Layer::Base64.into());
            }
            Text::Chars(chars) => {
                let text: String = chars.iter().map(|(c, _)| c).collect();
                let parts = chars.iter().map(|(c, bytes)| {
                    let source = decoded.quads[bytes.start / 3].start..decoded.quads[(bytes.end - 1) / 3].end;
                    (c.len_utf8(), source)
                });
                self.rewriter.replace_parts(range, &text, parts, Layer::Base64.into());
            }
        }
        true
    }
}

/// Whether text hardly ever holds it.
pub(super) fn is_odd(c: char) -> bool {
    c.is_control() && !c.is_ascii_whitespace()
}

/// What base64, hex or base32 says, if that is text without anything odd, and which it is: few of its characters are looked at
/// first.
fn turned(signs: impl Iterator<Item = u8> + Clone) -> Option<(String, Layer)> {
    let read = |bytes: Vec<u8>, code: Layer| {
        let text = String::from_utf8(bytes).ok()?;
        (!text.contains(is_odd)).then_some((text, code))
    };
    // Whole groups, so that no character but one of many bytes is cut.
    let first: Vec<u8> = signs.clone().take(TURNED_MIN).collect();
    let is_text = |bytes: &[u8]| {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() => return true,
            Err(_) => return false,
        };
        !text.contains(is_odd)
    };
    if hex::is_made_of_digits(&first) {
        let (opening, _) = hex::decode_run(&first)?;
        return is_text(&opening).then(|| signs.collect()).and_then(|signs: Vec<u8>| {
            let (bytes, _) = hex::decode_run(&signs)?;
            read(bytes, Layer::Hex)
        });
    }
    if codes::base32(&first).is_some_and(|opening| is_text(&opening)) {
        let signs: Vec<u8> = signs.clone().take_while(|sign| *sign != b'=').collect();
        if let Some(read) = codes::base32(&signs).and_then(|bytes| read(bytes, Layer::Base32)) {
            return Some(read);
        }
    }
    let opening = base64::opening(&first)?;
    if !is_text(&opening) {
        return None;
    }
    let signs: Vec<u8> = signs.collect();
    read(base64::decode(&signs, 0..signs.len()).bytes, Layer::Base64)
}

/// Whether an escape may stand for a base64 character or a line break between two: every one but a quote.
fn is_base64_part(escape: &Escape) -> bool {
    !matches!(escape.text.as_str(), "\"" | "'" | "<" | ">" | " ")
}

/// Bytes that turned out to be text.
enum Text<'b> {
    /// As they are, but for a character cut off at the end.
    Utf8(&'b str),
    /// Characters and the bytes each came from: UTF-16, or UTF-8 with few errors.
    Chars(Vec<(char, Range<usize>)>),
}

fn read_text(bytes: &[u8]) -> Option<Text<'_>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            if is_text(text) {
                return Some(Text::Utf8(text));
            }
        }
        Err(error) => {
            let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
            if error.error_len().is_none() && is_text(valid) {
                return Some(Text::Utf8(valid));
            }
        }
    }
    let chunks_max = bytes.len() / ODD_SHARE + 1;
    let utf16 = utf16_unit(bytes);
    if utf16.is_none() && bytes.utf8_chunks().nth(chunks_max).is_some() {
        return None;
    }
    let chars = utf16.map_or_else(|| lossy_chars(bytes), |unit| utf16_chars(bytes, unit));
    is_mostly_text(chars.iter().map(|(c, _)| *c)).then_some(Text::Chars(chars))
}

/// Whether the first half of a probe holds more that is odd than [`read_text`] allows in the whole of it.
fn is_no_text(bytes: &[u8; PROBE / 2]) -> bool {
    let zeros = |second| bytes.chunks_exact(2).filter(|pair| pair[second] == 0).count();
    if zeros(1).max(zeros(0)) * 2 >= bytes.len() / 2 {
        return false;
    }
    // A character that the end cuts off is not odd.
    let allowed = PROBE / ODD_SHARE + 1;
    let is_odd = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    let mut odd = 0;
    bytes.utf8_chunks().any(|chunk| {
        odd += chunk.valid().bytes().filter(is_odd).count() + usize::from(!chunk.invalid().is_empty());
        odd > allowed
    })
}

/// How two bytes of UTF-16 make a unit.
type Unit = fn([u8; 2]) -> u16;

/// How, if every second byte is nearly always zero, as in UTF-16 of Latin text.
fn utf16_unit(bytes: &[u8]) -> Option<Unit> {
    let is_mostly_zero = |second: usize| {
        let zeros = bytes.chunks_exact(2).filter(|pair| pair[second] == 0 && pair[1 - second] != 0).count();
        bytes.len() >= 8 && zeros * 8 >= bytes.len() / 2 * 6
    };
    let ends: [(usize, Unit); 2] = [(1, u16::from_le_bytes), (0, u16::from_be_bytes)];
    ends.into_iter().find(|(second, _)| is_mostly_zero(*second)).map(|(_, unit)| unit)
}

fn utf16_chars(bytes: &[u8], unit: Unit) -> Vec<(char, Range<usize>)> {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let mut at = 0;
    char::decode_utf16(units)
        .map(|c| {
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            let range = at..at + 2 * c.len_utf16();
            at = range.end;
            (c, range)
        })
        .collect()
}

fn lossy_chars(bytes: &[u8]) -> Vec<(char, Range<usize>)> {
    let mut chars = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            chars.push((c, at..at + c.len_utf8()));
            at += c.len_utf8();
        }
        if !chunk.invalid().is_empty() {
            chars.push((char::REPLACEMENT_CHARACTER, at..at + chunk.invalid().len()));
            at += chunk.invalid().len();
        }
    }
    chars
}

fn is_text(text: &str) -> bool {
    is_mostly_text(text.chars())
}

/// Whether at most one character in [`ODD_SHARE`] is one that text does not hold. Sixteen and more random bytes pass with a
/// chance of less than one in a million.
fn is_mostly_text(chars: impl Iterator<Item = char>) -> bool {
    let (mut count, mut odd) = (0_usize, 0_usize);
    for c in chars {
        count += 1;
        let is_odd = (c.is_control() && !c.is_ascii_whitespace()) || c == char::REPLACEMENT_CHARACTER;
        odd += usize::from(is_odd);
    }
    count >= 4 && odd * ODD_SHARE <= count
}
