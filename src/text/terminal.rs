//! Control sequences of terminals: colours, erasing, cursor moves, titles and links.
//!
//! Their last letter touches the word that follows, so that no word begins there for a pattern, while a terminal and a
//! model show the word alone. Sequences are read as ECMA-48 has them, in seven bits (`ESC [`) and eight (U+009B).
//!
//! The payload of a string, such as a title, a link or what is meant for the clipboard, stays between two blanks: it is
//! text too. Text without such a control character is not looked at.

use super::chars::is_invisible;
use super::layer::{Layer, Layers};
use super::rewrite::Rewriter;
use super::view::View;
use std::ops::Range;

const ESCAPE: u8 = 0x1B;
/// First byte of the eight-bit controls in UTF-8; the second is the control itself.
const EIGHT_BIT: u8 = 0xC2;
/// Longest sequence that is read, in bytes. Terminals give up sooner.
const SEQUENCE_MAX: usize = 256;
/// Longest payload of a string that ends amid a word and is taken away with it, in bytes.
const INNER_MAX: usize = 64;

/// The text without control sequences; none if it has none.
pub(super) fn strip<'t>(parent: &View<'t>) -> Option<View<'t>> {
    let text = parent.text();
    let bytes = text.as_bytes();
    let layers = Layers::of(Layer::Terminal);
    let mut rewriter = Rewriter::new(text);
    let mut at = 0;
    // Where the string that is open will end, and where its end ends.
    let mut closing: Option<Range<usize>> = None;
    let find = |from: usize| memchr::memchr2(ESCAPE, EIGHT_BIT, &bytes[from..]).map(|found| from + found);
    loop {
        let next = find(at);
        if let Some(end) = closing.take_if(|end| next.is_none_or(|next| end.start <= next)) {
            rewriter.replace(end.clone(), " ", layers);
            at = end.end;
            continue;
        }
        let Some(start) = next else { break };
        let Some((sequence, body)) = introducer(bytes, start) else {
            at = start + 1;
            continue;
        };
        at = match sequence {
            Introducer::Control => {
                let (end, moves) = control_end(bytes, body);
                let is_whole = end > body && matches!(bytes[end - 1], 0x40..=0x7E);
                match moves {
                    _ if !is_whole && goes_on(text, end) => {}
                    true => rewriter.replace(start..end, " ", layers),
                    false => rewriter.remove(start..end, layers),
                }
                end
            }
            Introducer::Other => {
                let end = other_end(bytes, body);
                if end > body || !goes_on(text, end) {
                    rewriter.remove(start..end, layers);
                }
                end
            }
            Introducer::String => match string_end(bytes, body) {
                Some(end) if is_inner(bytes, start, body, &end) => {
                    rewriter.remove(start..end.end, layers);
                    end.end
                }
                end => {
                    rewriter.replace(start..body, " ", layers);
                    closing = end;
                    body
                }
            },
        };
    }
    rewriter.finish(parent)
}

/// Whether a sequence that breaks off at `at` goes on once invisible characters are gone: then it is left until they are.
fn goes_on(text: &str, at: usize) -> bool {
    text.get(at..).and_then(|rest| rest.chars().next()).is_some_and(is_invisible)
}

/// What a control character opens.
#[derive(Clone, Copy)]
enum Introducer {
    /// A control sequence: parameters and a letter.
    Control,
    /// A string that a terminator ends.
    String,
    /// Any other escape, of two bytes and more.
    Other,
}

/// What begins at `at`, and where its body does.
fn introducer(bytes: &[u8], at: usize) -> Option<(Introducer, usize)> {
    let next = bytes.get(at + 1).copied();
    let opened = |sign: u8| match sign {
        b'[' => Introducer::Control,
        b']' | b'P' | b'X' | b'^' | b'_' => Introducer::String,
        _ => Introducer::Other,
    };
    match (bytes[at], next) {
        (ESCAPE, Some(sign @ (b'[' | b']' | b'P' | b'X' | b'^' | b'_'))) => Some((opened(sign), at + 2)),
        (ESCAPE, _) => Some((Introducer::Other, at + 1)),
        // An eight-bit control is the sign of the seven-bit one, 0x40 further on.
        (EIGHT_BIT, Some(control @ 0x80..=0x9F)) => match opened(control - 0x40) {
            Introducer::Other => None,
            opened => Some((opened, at + 2)),
        },
        _ => None,
    }
}

/// Where a control sequence ends of which the parameters begin at `body`, and whether it moves the cursor on, so that words
/// on both sides stand apart. A sequence that is broken off ends there.
fn control_end(bytes: &[u8], body: usize) -> (usize, bool) {
    let rest = &bytes[body..bytes.len().min(body + SEQUENCE_MAX)];
    let parameters = rest.iter().take_while(|byte| matches!(byte, 0x20..=0x3F)).count();
    match rest.get(parameters) {
        Some(last @ 0x40..=0x7E) => {
            (body + parameters + 1, matches!(last, b'A'..=b'H' | b'a' | b'd'..=b'f' | b'`'))
        }
        _ => (body + parameters, false),
    }
}

/// Where another escape ends: signs that say what follows, and one byte.
fn other_end(bytes: &[u8], body: usize) -> usize {
    let rest = &bytes[body..bytes.len().min(body + SEQUENCE_MAX)];
    let signs = rest.iter().take_while(|byte| matches!(byte, 0x20..=0x2F)).count();
    // Without such a sign a letter is as likely to be the first of a word.
    match (signs, rest.get(signs)) {
        (1.., Some(0x30..=0x7E)) | (0, Some(b'0'..=b'9' | b'=' | b'>' | b'\\' | b'c')) => body + signs + 1,
        _ => body,
    }
}

/// What ends the string of which the payload begins at `body`; none if another escape comes first or nothing does.
fn string_end(bytes: &[u8], body: usize) -> Option<Range<usize>> {
    let at = body + memchr::memchr3(0x07, ESCAPE, EIGHT_BIT, &bytes[body..])?;
    match (bytes[at], bytes.get(at + 1)) {
        (0x07, _) => Some(at..at + 1),
        (ESCAPE, Some(b'\\')) | (EIGHT_BIT, Some(0x9C)) => Some(at..at + 2),
        _ => None,
    }
}

/// Whether a string stands amid a word, or has nothing to say, as the end of a link.
fn is_inner(bytes: &[u8], start: usize, body: usize, end: &Range<usize>) -> bool {
    let payload = &bytes[body..end.start];
    let joins = |at: Option<&u8>| at.is_some_and(u8::is_ascii_alphanumeric);
    let is_amid_word = start > 0 && joins(bytes.get(start - 1)) && joins(bytes.get(end.end));
    !payload.iter().any(u8::is_ascii_alphabetic) || (is_amid_word && payload.len() <= INNER_MAX)
}
