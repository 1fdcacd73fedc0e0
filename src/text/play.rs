//! Two ways of writing that children play with: pig latin, and each word backwards.

use super::layer::{Layer, Layers};
use super::rewrite::Rewriter;
use super::view::View;
use std::ops::Range;

/// Fewest words in a row that are read as pig latin. No language ends so many words alike.
const WORDS_MIN: usize = 4;
/// Longest word that is read, in bytes.
const WORD_MAX: usize = 40;
/// Most consonants that a word may begin with.
const CONSONANTS_MAX: usize = 3;
/// Longest gap between two words, in bytes.
const GAP_MAX: usize = 4;

/// The text with runs of words in pig latin put right; none if there are none. Where the consonants that were moved do not
/// tell from those of the word, `is_known` decides.
pub fn pig_latin<'t>(parent: &View<'t>, is_known: impl Fn(&[u8]) -> bool) -> Option<View<'t>> {
    let text = parent.text();
    let bytes = text.as_bytes();
    let mut rewriter = Rewriter::new(text);
    let mut run: Vec<Range<usize>> = Vec::new();
    let mut put_right = |run: &mut Vec<Range<usize>>| {
        if run.len() >= WORDS_MIN {
            for word in run.iter() {
                let said = read_word(&text[word.clone()], &is_known);
                rewriter.replace(word.clone(), &said, Layers::of(Layer::PigLatin));
            }
        }
        run.clear();
    };
    for at in memchr::memmem::find_iter(bytes, b"ay") {
        let end = at + 2;
        if bytes.get(end).is_some_and(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii()) {
            continue;
        }
        let len =
            bytes[..at].iter().rev().take(WORD_MAX).take_while(|byte| byte.is_ascii_alphabetic()).count();
        let start = at - len;
        let follows = run.last().is_some_and(|last| {
            let gap = &bytes[last.end..start];
            gap.len() <= GAP_MAX && !gap.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii())
        });
        if !follows {
            put_right(&mut run);
        }
        if len > 0 && len < WORD_MAX {
            run.push(start..end);
        } else {
            put_right(&mut run);
        }
    }
    put_right(&mut run);
    rewriter.finish(parent)
}

/// A word in plain letters: what stands before `ay`, with the consonants at its end put in front.
fn read_word(word: &str, is_known: &impl Fn(&[u8]) -> bool) -> String {
    let stem = &word[..word.len() - 2];
    let is_vowel = |byte: &u8| b"aeiou".contains(&byte.to_ascii_lowercase());
    // A word that began with a vowel has `way`, `yay`, `hay` or nothing put after it.
    let begins_with_vowel = stem.as_bytes().first().is_some_and(is_vowel);
    let bare =
        stem.strip_suffix(['w', 'y', 'h']).filter(|bare| begins_with_vowel && is_known(bare.as_bytes()));
    if let Some(bare) = bare {
        return bare.to_owned();
    }
    let tail = stem.bytes().rev().take(CONSONANTS_MAX).take_while(|byte| !is_vowel(byte)).count();
    let moved = |count: usize| {
        let (rest, front) = stem.split_at(stem.len() - count);
        format!("{front}{rest}")
    };
    let known = (1..=tail).rev().map(moved).find(|word| is_known(word.as_bytes()));
    known.unwrap_or_else(|| match stem.strip_suffix('w').filter(|_| begins_with_vowel) {
        Some(bare) => bare.to_owned(),
        None if stem.ends_with("qu") => format!("qu{}", &stem[..stem.len() - 2]),
        None if stem.ends_with("th") || stem.ends_with("sh") || stem.ends_with("ch") => moved(2),
        None => moved(tail.min(1)),
    })
}

/// The text with each word backwards, in the order they are written.
pub fn reversed_words<'t>(parent: &View<'t>) -> View<'t> {
    let text = parent.text();
    let bytes = text.as_bytes();
    let mut rewriter = Rewriter::new(text);
    let mut at = 0;
    while at < bytes.len() {
        let is_letter = |byte: &&u8| byte.is_ascii_alphabetic();
        let len = bytes[at..].iter().take_while(is_letter).count();
        if len > 1 {
            let word: String = text[at..at + len].chars().rev().collect();
            rewriter.replace_backwards(at..at + len, &word, Layers::of(Layer::Reversed));
        }
        at += len;
        at += bytes[at..].iter().take_while(|byte| !byte.is_ascii_alphabetic()).count();
    }
    rewriter.copy_to(text.len());
    rewriter.finish_exact(parent)
}
