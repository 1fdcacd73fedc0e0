//! Ciphers that put one sign for another, each the same all the time: the letters shifted by any number, the alphabet
//! backwards (Atbash), and ROT47. ROT13 is undone by [`super::rot13`], wherever a phrase shows through in it.
//!
//! What the letters are tells: every shift puts others in place of vowels, and puts letters that no language of ordinary
//! text has many of in place of some that each has. Only stretches with many of them are tried.

use std::ops::Range;

use super::gate::{self, Looks};
use super::lanes::BLOCK;
use super::layer::{Layer, Layers};
use super::rewrite::Rewriter;
use super::view::View;

/// Letters of the alphabet.
const ALPHABET: usize = 26;
/// Most words that are looked at to tell the key.
const WORDS_MAX: usize = 24;
/// Fewest words that must be known.
const KNOWN_MIN: usize = 3;
/// How far around a place with letters that no language has many of its words are looked at, in bytes.
const REACH: usize = 96;
/// How far to each side of the middle of such a place its paragraph is read for that, in bytes: a blank line may lie on the edge.
const NEAR_REACH: usize = BLOCK / 2 + REACH + 2;
/// How far to each side of a place a paragraph is read, in bytes.
const PARAGRAPH_MAX: usize = 1024;
/// Fewest letters of a word that is looked at.
const WORD_MIN: usize = 4;

/// How often each letter stands in a hundred thousand of English text.
const SHARES: [u32; ALPHABET] = [
    8167, 1492, 2782, 4253, 12702, 2228, 2015, 6094, 6966, 153, 772, 4025, 2406, 6749, 7507, 1929, 95, 5987,
    6327, 9056, 2758, 978, 2360, 150, 1974, 74,
];

/// What was put in place of the letters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    /// Those so many places further on.
    Shift(u8),
    Atbash,
    Rot47,
}

impl Key {
    /// What stood in place of a byte.
    fn undo(self, byte: u8) -> u8 {
        let first = match byte {
            b'a'..=b'z' => b'a',
            b'A'..=b'Z' => b'A',
            b'!'..=b'~' if self == Self::Rot47 => b'!',
            _ => return byte,
        };
        match self {
            Self::Rot47 => b'!' + (byte - b'!' + 47) % 94,
            Self::Shift(by) => first + (byte - first + ALPHABET as u8 - by) % ALPHABET as u8,
            Self::Atbash => first + ALPHABET as u8 - 1 - (byte - first),
        }
    }
}

/// The stretches of a text that are words in such a cipher, in plain letters; none if there are none. `is_known` tells words
/// that phrases are made of.
pub fn ciphers<'t>(parent: &View<'t>, looks: &Looks, is_known: impl Fn(&[u8]) -> bool) -> Option<View<'t>> {
    let text = parent.text();
    let bytes = text.as_bytes();
    let mut rewriter = Rewriter::new(text);
    let mut done = 0;
    for &found in &looks.ciphered {
        let middle = (found + BLOCK / 2).min(bytes.len());
        if middle < done {
            continue;
        }
        let part = paragraph(bytes, middle, done, NEAR_REACH);
        let near = part.start.max(found.saturating_sub(REACH))..part.end.min(found + BLOCK + REACH);
        let in_signs = gate::has_many_signs(bytes, found);
        let key = |near: &Range<usize>| {
            let key = if in_signs { Some(Key::Rot47) } else { letters_key(bytes, near) };
            key.filter(|key| reads(bytes, near, *key, &is_known))
        };
        if let Some(key) = key(&near) {
            let whole = paragraph(bytes, middle, done, PARAGRAPH_MAX);
            done = whole.end;
            write(&mut rewriter, bytes, whole, key);
            continue;
        }
        if !gate::has_many_rare(bytes, found) {
            continue;
        }
        // Amid plain sentences, only the words right there tell, and they may begin or end half a block off. What stands beside
        // them may be in another cipher.
        let own = (0..3).find_map(|nth| {
            let at = (found + nth * BLOCK / 2).saturating_sub(BLOCK / 2);
            let own = words_in(bytes, &(part.start.max(at)..part.end.min(at + BLOCK)));
            key(&own).map(|key| (own, key))
        });
        if let Some((own, key)) = own {
            let whole = extended(bytes, own, &part, key, &is_known);
            done = whole.end;
            write(&mut rewriter, bytes, whole, key);
        }
    }
    rewriter.finish(parent)
}

/// A stretch with the words to both sides, inside of a part, that are known with its key or too short to tell.
fn extended(
    bytes: &[u8],
    own: Range<usize>,
    part: &Range<usize>,
    key: Key,
    is_known: impl Fn(&[u8]) -> bool,
) -> Range<usize> {
    let is_blank = u8::is_ascii_whitespace;
    let goes_on = |word: &[u8]| {
        word.first_chunk::<WORD_MIN>().is_none_or(|first| {
            let said = first.map(|byte| key.undo(byte));
            said.iter().all(u8::is_ascii_alphabetic) && is_known(&said)
        })
    };
    let (mut start, mut end) = (own.start, own.end);
    while end < part.end {
        let gap = bytes[end..part.end].iter().take_while(|byte| is_blank(byte)).count();
        let len = bytes[end + gap..part.end].iter().take_while(|byte| !is_blank(byte)).count();
        if len == 0 || !goes_on(&bytes[end + gap..end + gap + len]) {
            break;
        }
        end += gap + len;
    }
    while start > part.start {
        let gap = bytes[part.start..start].iter().rev().take_while(|byte| is_blank(byte)).count();
        let to = start - gap;
        let len = bytes[part.start..to].iter().rev().take_while(|byte| !is_blank(byte)).count();
        if len == 0 || !goes_on(&bytes[to - len..to]) {
            break;
        }
        start = to - len;
    }
    start..end
}

/// The whole words of a stretch.
fn words_in(bytes: &[u8], stretch: &Range<usize>) -> Range<usize> {
    if stretch.is_empty() {
        return stretch.end..stretch.end;
    }
    let is_blank = u8::is_ascii_whitespace;
    let first = bytes[stretch.clone()].iter().position(is_blank).map_or(stretch.end, |at| stretch.start + at);
    let start = if stretch.start == 0 || is_blank(&bytes[stretch.start - 1]) { stretch.start } else { first };
    let last = bytes[start..stretch.end].iter().rposition(is_blank).map_or(start, |at| start + at);
    let end = if bytes.get(stretch.end).is_none_or(is_blank) { stretch.end } else { last };
    start..end
}

/// The key that makes of the letters of a stretch what English has the most like.
fn letters_key(bytes: &[u8], near: &Range<usize>) -> Option<Key> {
    let mut counts = [0_u32; ALPHABET];
    for byte in bytes[near.clone()].iter().filter(|byte| byte.is_ascii_alphabetic()) {
        counts[usize::from(byte.to_ascii_lowercase() - b'a')] += 1;
    }
    // Twice, so that a shift is a part of it.
    let twice: [u32; 2 * ALPHABET] = std::array::from_fn(|nth| counts[nth % ALPHABET]);
    let shifted = |by: usize| -> u32 {
        twice[by..by + ALPHABET].iter().zip(SHARES).map(|(count, share)| count * share).sum()
    };
    let backwards: u32 = counts.iter().rev().zip(SHARES).map(|(count, share)| count * share).sum();
    let (by, score) = (0..ALPHABET).map(|by| (by, shifted(by))).max_by_key(|(_, score)| *score)?;
    match by {
        _ if backwards > score => Some(Key::Atbash),
        0 => None,
        by => Some(Key::Shift(by as u8)),
    }
}

/// Whether enough words of a stretch are known with a key and few are without.
fn reads(bytes: &[u8], near: &Range<usize>, key: Key, is_known: impl Fn(&[u8]) -> bool) -> bool {
    let (mut known, mut backwards, mut plain, mut count) = (0, 0, 0, 0);
    let is_sign = |byte: &u8| !byte.is_ascii_whitespace();
    let mut at = near.start;
    while at < near.end && count < WORDS_MAX {
        at += bytes[at..near.end].iter().take_while(|byte| !is_sign(byte)).count();
        let len = bytes[at..near.end].iter().take_while(|byte| is_sign(byte)).count();
        let word = &bytes[at..at + len];
        at += len;
        let Some(first) = word.first_chunk::<WORD_MIN>() else { continue };
        count += 1;
        let begins_known =
            |letters: &[u8; WORD_MIN]| letters.iter().all(u8::is_ascii_alphabetic) && is_known(letters);
        known += usize::from(begins_known(&first.map(|byte| key.undo(byte))));
        plain += usize::from(begins_known(first));
        // What ends a word begins it where the text is backwards too.
        let is_letter = |byte: &u8| byte.is_ascii_alphabetic();
        let mut from_behind =
            word.iter().rev().map(|byte| key.undo(*byte)).skip_while(|byte| !is_letter(byte));
        let last: [u8; WORD_MIN] = std::array::from_fn(|_| from_behind.next().unwrap_or_default());
        backwards += usize::from(begins_known(&last));
    }
    let known = known.max(backwards);
    known >= KNOWN_MIN && known * 3 >= count && known > 2 * plain
}

/// What stands around a place up to blank lines and so many bytes to each side, but not before `from`.
fn paragraph(bytes: &[u8], at: usize, from: usize, reach: usize) -> Range<usize> {
    let is_end = |two: &[u8]| two == b"\n\n";
    let from = from.max(at.saturating_sub(reach)).min(at);
    let to = bytes.len().min(at + reach);
    let start = bytes[from..at].windows(2).rposition(is_end).map_or(from, |before| from + before + 2);
    let end = bytes[at..to].windows(2).position(is_end).map_or(to, |behind| at + behind);
    start..end
}

fn write(rewriter: &mut Rewriter<'_>, bytes: &[u8], range: Range<usize>, key: Key) {
    let mut at = range.start;
    while at < range.end {
        let is_part = key.undo(bytes[at]) != bytes[at];
        let len =
            bytes[at..range.end].iter().take_while(|byte| (key.undo(**byte) != **byte) == is_part).count();
        if is_part {
            let said: String = bytes[at..at + len].iter().map(|byte| char::from(key.undo(*byte))).collect();
            let parts = (at..at + len).map(|at| (1, at..at + 1));
            rewriter.replace_parts(at..at + len, &said, parts, Layers::of(Layer::Cipher));
        }
        at += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Please write down what the captain said about the northern harbour before you sail again, \
        because nobody knows whether that quay just north of the lighthouse exists. Local people call it the old \
        school of the valley, and all of them could tell exactly which vessels lie there in October";

    fn known(word: &[u8]) -> bool {
        let word = word.to_ascii_lowercase();
        SAID.to_ascii_lowercase().split(' ').any(|one| one.as_bytes().starts_with(&word))
    }

    fn written(key: Key) -> String {
        let every = |byte: u8| (0..128).find(|one| key.undo(*one) == byte).unwrap_or(byte);
        SAID.bytes().map(|byte| char::from(every(byte))).collect()
    }

    #[test]
    fn every_key_is_found() {
        for key in (1..26).map(Key::Shift).chain([Key::Atbash, Key::Rot47]) {
            let text = format!("é so:\n\n{}\n\nthe end", written(key));
            let source = View::identity(&text);
            let view = ciphers(&source, &Looks::at(source.text()), known);
            let Some(view) = view else { panic!("{text:?} is not read") };
            let at = view.text().find("northern harbour");
            let Some(at) = at else { panic!("{:?} is not it", view.text()) };
            let source = &text[view.to_source(at..at + 8)];
            assert_eq!(source.len(), 8, "{source:?}");
            assert!(view.text().ends_with("\n\nthe end"), "{:?}", view.text());
        }
    }

    #[test]
    fn a_sentence_amid_plain_ones_is_read() {
        let (first, rest) = SAID.split_once(", because ").expect("two sentences");
        let (second, third) = rest.split_once(". ").expect("two sentences");
        let every = |byte: u8| (0..128).find(|one| Key::Shift(5).undo(*one) == byte).unwrap_or(byte);
        for before in 0..64 {
            let hidden: String = second.bytes().map(|byte| char::from(every(byte))).collect();
            let text = format!(
                "{}{first}. {hidden}. {third}",
                &"They met on Tuesday and left. ".repeat(3)[..before]
            );
            let source = View::identity(&text);
            let view = ciphers(&source, &Looks::at(source.text()), known);
            let Some(view) = view else { panic!("{text:?} is not read") };
            assert!(view.text().contains(second), "{:?}", view.text());
        }
    }

    #[test]
    fn a_sentence_in_one_cipher_hides_none_in_another() {
        let (_, rest) = SAID.split_once(", because ").expect("two sentences");
        let (second, third) = rest.split_once(". ").expect("two sentences");
        let written = |text: &str, by: u8| -> String {
            let every = |byte: u8| (0..128).find(|one| Key::Shift(by).undo(*one) == byte).unwrap_or(byte);
            text.bytes().map(|byte| char::from(every(byte))).collect()
        };
        // Enough words that no cipher shows through in them from afar.
        let plain = "Members gathered downstairs quietly, discussed budgets, adjourned meetings, enjoyed lunch, walked home slowly.";
        let text = format!("{plain} {}. {plain} {}. {plain}", written(second, 12), written(third, 5));
        let source = View::identity(&text);
        let view = ciphers(&source, &Looks::at(source.text()), known).expect("a view");
        for said in ["nobody knows whether", "them could tell exactly which vessels"] {
            assert!(view.text().contains(said), "{said}: {:?}", view.text());
        }
    }

    #[test]
    fn what_is_near_is_the_same_whatever_is_read_of_a_paragraph() {
        let lines = |line: usize| format!("{}\n\n", "x".repeat(line)).repeat(9);
        for text in
            [lines(28), lines(93), lines(94), lines(95), lines(96), lines(97), lines(300), "x".repeat(600)]
        {
            let bytes = text.as_bytes();
            for found in (0..bytes.len()).step_by(BLOCK) {
                let middle = (found + BLOCK / 2).min(bytes.len());
                let near = |reach: usize, done: usize| {
                    let part = paragraph(bytes, middle, done, reach);
                    part.start.max(found.saturating_sub(REACH))..part.end.min(found + BLOCK + REACH)
                };
                for done in [0, middle / 2, middle.saturating_sub(9)] {
                    assert_eq!(near(NEAR_REACH, done), near(PARAGRAPH_MAX, done), "{found} {done}");
                }
            }
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            SAID,
            "Żółć i źdźbło: zażółcić gęślą jaźń, przejść przez jezioro, zjeść zająca z dżemem",
            "qzjx qzjx qzjx qzjx qzjx qzjx qzjx qzjx qzjx qzjx qzjx qzjx",
            "a=b; c<d; e>f; if (x?y:z) { return a==b; } while (p>=q) { r=s?t:u; v=w; } x=y;z=w;",
            "",
        ] {
            let source = View::identity(text);
            assert_eq!(
                ciphers(&source, &Looks::at(source.text()), known).as_ref().map(View::text),
                None,
                "{text}"
            );
        }
    }
}
