//! Every layer of disguise by name: a text is written in it, twice if asked for, and must be read back.
//!
//! Arbitrary bytes hardly ever pass the gates of base32 or Morse. Here the input says which layers to write in, so that
//! each decoder gets texts of its own from the first run on.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use portcullis::text::{self, Layer, Limits, View};

use super::check_view;

/// Longest text that is written in layers, in bytes. Most layers make it several times as long.
const PLAIN_MAX: usize = 1_024;
/// Length of a text that must be read back: long enough for every gate.
const CERTAIN: std::ops::RangeInclusive<usize> = 32..=200;

/// The bit of the third byte that chooses the second way of writing in a layer that has two.
const WIDE: u8 = 64;

/// Any text written in up to two layers, under limits that are chosen as well: views and views of views lead back to the
/// text as sent, stay within the limits, and plain words are read back.
///
/// The first two bytes choose the layers, the third limits, and what counts as a known word.
pub fn layers(data: &[u8]) {
    let Some(([inner, outer, choice], rest)) = data.split_first_chunk::<3>() else { return };
    let plain = String::from_utf8_lossy(rest);
    let plain = &plain[..plain.floor_char_boundary(PLAIN_MAX)];
    let all = Layer::ALL.len();
    // Above the layers the bytes choose none, so that one alone and the text as it is are tried too.
    let chosen = [*inner, *outer].map(|byte| Layer::ALL.get(usize::from(byte) % (all + 5)).copied());
    let mut source = plain.to_owned();
    let mut is_certain = is_plain(plain);
    for layer in chosen.iter().flatten() {
        is_certain &= is_read_back(*layer, &source, *choice);
        source = write_in(*layer, &source, *choice);
    }
    check_limits(&source, *choice);
    let made = text::views(&source, &Limits::default());
    for view in &made.views {
        check_view(&source, view);
        for first in phrases_of(view, *choice) {
            check_view(&source, &first);
            // One of its own views is enough: which one, the input says.
            let mut seconds = phrases_of(&first, choice.rotate_left(3));
            if !seconds.is_empty() {
                check_view(&source, &seconds.swap_remove(usize::from(*choice) % seconds.len()));
            }
        }
    }
    if is_certain {
        check_read_back(plain, &source, &made.views, chosen);
    }
    check_json(&source);
    check_windows(&source, usize::from(*choice));
}

/// Whether words are so plain that no layer is in doubt.
fn is_plain(plain: &str) -> bool {
    CERTAIN.contains(&plain.len())
        && plain.split(' ').all(|word| (2..12).contains(&word.len()))
        && plain.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b' ')
}

/// Whether a layer keeps every letter of a text, whatever its words are, and is undone without knowing words.
fn is_read_back(layer: Layer, text: &str, choice: u8) -> bool {
    use Layer::*;
    match layer {
        Nfkc | Invisible | Tags | Whitespace | Percent | HtmlEntities | Escapes | Terminal => true,
        // Only text is taken for hidden.
        VariationSelectors => !text.contains(char::is_control),
        // Only text is taken for encoded, and only text that is mostly Latin for encoded in two bytes each.
        Base64 | Base32 | Hex => {
            let is_wide = layer == Base64 && choice & WIDE != 0;
            !text.contains(char::is_control) && (text.is_ascii() || !is_wide)
        }
        _ => false,
    }
}

fn check_read_back(plain: &str, source: &str, views: &[View<'_>], chosen: [Option<Layer>; 2]) {
    let is_read = views.iter().any(|view| view.text().contains(plain));
    assert!(is_read, "{plain:?} in {chosen:?} is not read out of {source:?}: {:?}", texts(views));
}

fn texts<'v>(views: &'v [View<'_>]) -> Vec<&'v str> {
    views.iter().map(View::text).collect()
}

/// What is made of a view for phrases alone. `choice` says which words are known.
fn phrases_of<'t>(view: &View<'t>, choice: u8) -> Vec<View<'t>> {
    let is_known = |word: &[u8]| {
        let mut hasher = DefaultHasher::new();
        (word, choice).hash(&mut hasher);
        choice.is_multiple_of(4) || hasher.finish().is_multiple_of(u64::from(choice % 4) + 1)
    };
    let len = view.text().len();
    let signs = [len / 3..len / 3 + usize::from(choice % 7), len / 2..len / 2];
    let signs = &signs[..usize::from(choice) % 3];
    let mut made = vec![text::rot13(view), text::reversed(view), text::reversed_words(view)];
    if !text::leet_reasons(view, is_known).is_empty() {
        made.extend(text::leet(view));
    }
    made.extend(text::spaced(view));
    made.extend(text::morse(view));
    made.extend(text::morse_backwards(view));
    made.extend(text::turned_escapes(view));
    made.extend(text::joined(view));
    made.extend(text::joined_words(view));
    let looks = text::Looks::at(view.text());
    made.extend(text::apart(view, &looks));
    made.extend(text::signs_apart(view, &looks));
    made.extend(text::numbers(view, &looks));
    if !text::broken_reasons(view, &looks, is_known).is_empty() {
        made.extend(text::unbroken(view));
    }
    made.extend(text::ciphers(view, &looks, is_known));
    made.extend(text::spelled(view));
    made.extend(text::upside_down(view));
    made.extend(text::look_alikes(view));
    made.extend(text::pig_latin(view, is_known));
    made.extend(text::layout(view, signs, is_known).map(|undone| undone.view));
    made
}

/// Views keep to the limits they are given, and are the same each time.
fn check_limits(source: &str, choice: u8) {
    let limits = Limits {
        depth_max: choice % 5,
        expansion_max: [0, 100, 1_000, usize::MAX][usize::from(choice >> 4) % 4],
    };
    let made = text::views(source, &limits);
    let bytes: usize = made.views.iter().skip(1).map(|view| view.text().len()).sum();
    assert!(bytes <= limits.expansion_max, "{bytes} bytes under {limits:?}");
    made.views.iter().for_each(|view| check_view(source, view));
    assert_eq!(texts(&made.views), texts(&text::views(source, &limits).views), "read twice");
}

/// A text in JSON is the same text again, and each part of it leads to where it is written.
fn check_json(source: &str) {
    let quoted = text::json::quote(source);
    let raw = &quoted[1..quoted.len() - 1];
    for raw in [raw, source] {
        let decoded = text::json::decode(raw);
        for (at, c) in decoded.text().char_indices() {
            let range = decoded.to_raw(at..at + c.len_utf8());
            assert!(raw.get(range.clone()).is_some_and(|part| !part.is_empty()), "{at} leads to {range:?}");
        }
    }
    assert_eq!(text::json::decode(raw).text(), source, "{quoted}");
    assert_eq!(text::json::scalars(&quoted).map(|all| all.len()), Some(1), "{quoted}");
}

/// Windows cover the text, each on whole characters and with the overlap that is asked for.
fn check_windows(source: &str, choice: usize) {
    let overlap = choice / 16;
    let mut covered = 0;
    for window in text::windows(source, choice, overlap) {
        assert!(source.get(window.clone()).is_some() && window.end >= covered, "{window:?}");
        assert!(covered == 0 || window.start + overlap <= covered, "{window:?} after {covered}");
        covered = window.end;
    }
    assert_eq!(covered, source.len());
}

/// `plain` written in a layer. What the layer has no sign for stays as it is.
fn write_in(layer: Layer, plain: &str, choice: u8) -> String {
    let each = |write: fn(char) -> char| plain.chars().map(write).collect::<String>();
    let between =
        |sign: &str| plain.chars().flat_map(|c| [c.to_string(), sign.to_owned()]).collect::<String>();
    match layer {
        Layer::Nfkc => each(|c| moved(c, '!'..='~', 0xFF01)),
        Layer::Case => plain.replace('s', "\u{17F}").replace('k', "\u{212A}").to_uppercase(),
        Layer::Invisible => between("\u{200B}"),
        Layer::Bidi => format!("\u{202E}{plain}\u{202C}"),
        Layer::Tags => each(|c| moved(c, ' '..='~', 0xE0020)),
        Layer::VariationSelectors => {
            let selector = |byte: u8| match byte {
                0..16 => 0xFE00 + u32::from(byte),
                _ => 0xE0100 + u32::from(byte) - 16,
            };
            "\u{1F600}"
                .chars()
                .chain(plain.bytes().filter_map(|byte| char::from_u32(selector(byte))))
                .collect()
        }
        Layer::Confusables => each(|c| match c {
            'a' => '\u{430}',
            'c' => '\u{441}',
            'e' => '\u{435}',
            'i' => '\u{456}',
            'o' => '\u{43E}',
            'p' => '\u{440}',
            'x' => '\u{445}',
            'y' => '\u{443}',
            _ => c,
        }),
        Layer::CombiningMarks => between(["\u{301}", "\u{336}"][usize::from(choice) % 2]),
        Layer::Whitespace => each(|c| if c == ' ' { '\u{2003}' } else { c }),
        Layer::Punctuation => each(|c| match c {
            '-' => '\u{2011}',
            '\'' => '\u{2019}',
            '"' => '\u{201C}',
            _ => c,
        }),
        Layer::Digits => each(|c| moved(c, '0'..='9', 0x660)),
        Layer::Spaced => between([" ", "-", ".", "_"][usize::from(choice) % 4]),
        Layer::Base64 if choice & WIDE != 0 => {
            let units: Vec<u8> = plain.encode_utf16().flat_map(u16::to_le_bytes).collect();
            in_bits(&units, 6, BASE64, 4)
        }
        Layer::Base64 => in_bits(plain.as_bytes(), 6, BASE64, 4),
        Layer::Base32 => in_bits(plain.as_bytes(), 5, BASE32, 8),
        Layer::Hex => joined(plain.bytes(), |byte, out| write!(out, "{byte:02x}")),
        Layer::Percent => joined(plain.bytes(), |byte, out| write!(out, "%{byte:02X}")),
        Layer::HtmlEntities => match choice & WIDE {
            0 => joined(plain.chars(), |c, out| write!(out, "&#{};", u32::from(c))),
            _ => joined(plain.chars(), |c, out| write!(out, "&#x{:X};", u32::from(c))),
        },
        Layer::Escapes => joined(plain.encode_utf16(), |unit, out| write!(out, "\\u{unit:04x}")),
        Layer::Rot13 => each(|c| match c {
            'a'..='m' | 'A'..='M' => char::from(c as u8 + 13),
            'n'..='z' | 'N'..='Z' => char::from(c as u8 - 13),
            _ => c,
        }),
        Layer::Leet => each(|c| match c {
            'o' => '0',
            'i' | 'l' => '1',
            'e' => '3',
            'a' => '4',
            's' => '5',
            't' => '7',
            _ => c,
        }),
        Layer::Reversed if choice & WIDE != 0 => {
            let words = plain.split(' ').map(|word| word.chars().rev().collect::<String>());
            words.collect::<Vec<_>>().join(" ")
        }
        Layer::Reversed => plain.chars().rev().collect(),
        Layer::Morse => joined(plain.chars(), |c, out| match MORSE.iter().find(|(letter, _)| *letter == c) {
            Some((_, signs)) => write!(out, "{signs} "),
            None if c == ' ' => write!(out, "/ "),
            None => write!(out, "{c}"),
        }),
        Layer::Terminal => match choice & WIDE {
            0 => between("\u{1b}[31m"),
            _ => format!("\u{1b}]0;{plain}\u{7}{plain}\u{9b}2K"),
        },
        Layer::Layout => plain.replace(' ', ["\n# ", "  ", "</p><p>", "**_"][usize::from(choice) % 4]),
        Layer::QuotedPrintable => joined(plain.bytes(), |byte, out| write!(out, "={byte:02X}")),
        Layer::Joined => plain.replace(' ', "\" + \""),
        Layer::Numbers => joined(plain.bytes(), |byte, out| match choice % 3 {
            0 => write!(out, "{byte} "),
            1 => write!(out, "{byte:08b} "),
            _ => write!(out, "U+{byte:04X} "),
        }),
        Layer::Broken => {
            let sign = ["-", "<!-- -->", "**", "\u{1F600}"][usize::from(choice) % 4];
            let words = plain.split(' ').map(|word| match word.char_indices().nth(2) {
                Some((at, _)) => format!("{}{sign}{}", &word[..at], &word[at..]),
                None => word.to_owned(),
            });
            words.collect::<Vec<_>>().join(" ")
        }
        Layer::Cipher if choice & WIDE != 0 => each(|c| match c {
            '!'..='~' => char::from(b'!' + (c as u8 - b'!' + 47) % 94),
            _ => c,
        }),
        Layer::Cipher => {
            let by = choice % 26;
            plain
                .chars()
                .map(
                    |c| {
                        if c.is_ascii_lowercase() { char::from(b'a' + (c as u8 - b'a' + by) % 26) } else { c }
                    },
                )
                .collect()
        }
        Layer::Spelled => joined(plain.chars(), |c, out| match c {
            'i' => write!(out, "India "),
            'n' => write!(out, "November "),
            'o' => write!(out, "Oscar "),
            'r' => write!(out, "Romeo "),
            'e' => write!(out, "Echo "),
            _ => write!(out, "{c}"),
        }),
        // Nothing here packs.
        Layer::Packed => plain.to_owned(),
        Layer::PigLatin => {
            let words = plain.split(' ').map(|word| {
                let head = word.find(|c| "aeiou".contains(c)).unwrap_or(0);
                format!("{}{}ay", &word[head..], &word[..head])
            });
            words.collect::<Vec<_>>().join(" ")
        }
    }
}

/// A character of a range as the one as far behind `first`.
fn moved(c: char, range: std::ops::RangeInclusive<char>, first: u32) -> char {
    let behind = u32::from(c).wrapping_sub(u32::from(*range.start()));
    if range.contains(&c) { char::from_u32(first + behind).unwrap_or(c) } else { c }
}

fn joined<T>(
    parts: impl Iterator<Item = T>,
    mut write: impl FnMut(T, &mut String) -> std::fmt::Result,
) -> String {
    let mut out = String::new();
    parts.for_each(|part| write(part, &mut out).expect("a string takes everything"));
    out
}

const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Bytes as signs of so many bits each, filled up with `=` to whole groups of signs.
fn in_bits(bytes: &[u8], bits: u32, signs: &[u8], group: usize) -> String {
    let (mut out, mut held, mut count) = (String::new(), 0_u32, 0);
    for byte in bytes {
        (held, count) = (held << 8 | u32::from(*byte), count + 8);
        while count >= bits {
            count -= bits;
            out.push(char::from(signs[(held >> count) as usize % signs.len()]));
        }
    }
    if count > 0 {
        out.push(char::from(signs[(held << (bits - count)) as usize % signs.len()]));
    }
    out.extend(std::iter::repeat_n('=', out.len().next_multiple_of(group) - out.len()));
    out
}

const MORSE: &[(char, &str)] = &[
    ('a', ".-"),
    ('b', "-..."),
    ('c', "-.-."),
    ('d', "-.."),
    ('e', "."),
    ('f', "..-."),
    ('g', "--."),
    ('h', "...."),
    ('i', ".."),
    ('j', ".---"),
    ('k', "-.-"),
    ('l', ".-.."),
    ('m', "--"),
    ('n', "-."),
    ('o', "---"),
    ('p', ".--."),
    ('q', "--.-"),
    ('r', ".-."),
    ('s', "..."),
    ('t', "-"),
    ('u', "..-"),
    ('v', "...-"),
    ('w', ".--"),
    ('x', "-..-"),
    ('y', "-.--"),
    ('z', "--.."),
];
