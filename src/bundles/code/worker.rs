//! The thread on which a file is parsed and followed: its stack, and what is refused before a parser sees it.
//!
//! The parsers go down one level of stack for each level of the text. Brackets and signs in a row are counted before, and
//! the stack has room for every sign and word of the text to be one level: pages that are not touched cost nothing.

use super::{Context, Language, NotParsed, Report};

/// Stack below all levels.
const STACK_BASE: usize = 64 << 20;
/// Stack for one level. Seen: less than 2 KiB with optimised parsers.
const STACK_PER_LEVEL: usize = 4 << 10;
/// The largest stack.
const STACK_MAX: usize = 3 << 30;
/// Brackets in brackets, signs in a row, or signs and words that lead to an operand in one statement. Real code has less
/// than 100.
const NESTING_MAX: usize = 1_000;

/// Signs and words of a file that is parsed. A tree takes up to 250 bytes for each (seen: files of nothing but the shortest
/// functions), and code that people write has fewer in the largest file.
const TOKENS_MAX: usize = 350_000;

/// Words before an operand, of which a parser goes down a level each.
const LEADING: &[&[u8]] =
    &[b"not", b"lambda", b"new", b"typeof", b"void", b"await", b"yield", b"else", b"delete"];

/// Looks at a file on a thread of its own.
pub(super) fn run(language: Language, text: &str, context: Context<'_>) -> Report {
    let too_deep = || Report { not_parsed: Some(NotParsed::TooDeep), ..Report::default() };
    let shape = Shape::of(language, text);
    if shape.nesting > NESTING_MAX {
        return too_deep();
    }
    if shape.levels_max + shape.lines > TOKENS_MAX {
        return Report { not_parsed: Some(NotParsed::TooLarge), ..Report::default() };
    }
    let stack = (STACK_BASE + shape.levels_max * STACK_PER_LEVEL).min(STACK_MAX);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("bundle-code".to_owned()).stack_size(stack);
        let work = move || super::follow::scan(language, text, context);
        // No room for the stack, or a parser that panicked: nothing is known of the file, and the report says so.
        match thread.spawn_scoped(scope, work) {
            Ok(handle) => handle
                .join()
                .unwrap_or_else(|_| Report { not_parsed: Some(NotParsed::Syntax), ..Report::default() }),
            Err(_) => too_deep(),
        }
    })
}

/// Whether a text inside of a file may be parsed on the stack of that file.
pub(super) fn may_parse(language: Language, text: &str) -> bool {
    /// Brackets in brackets, or signs in a row, of such a text.
    const INNER_NESTING_MAX: usize = 100;
    Shape::of(language, text).nesting <= INNER_NESTING_MAX
}

/// What is known of a text before it is parsed.
#[derive(Debug, Default)]
struct Shape {
    /// Levels of brackets of every form, or signs in a row, or signs that lead to an operand.
    nesting: usize,
    /// Signs and words: no parser can go down more levels.
    levels_max: usize,
    /// Ends of lines, each of which ends a statement in Python.
    lines: usize,
}

impl Shape {
    fn of(language: Language, text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut shape = Self::default();
        let (mut depth, mut row, mut chain, mut at, mut was_word) = (0_usize, 0_usize, 0_usize, 0, false);
        // Angle brackets that are open: all of them, and those before each bracket that is open.
        let (mut angles, mut angles_before) = (0_usize, Vec::new());
        for byte in bytes {
            let is_word = byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
            shape.levels_max += usize::from((is_word && !was_word) || byte.is_ascii_punctuation());
            was_word = is_word;
            shape.lines += usize::from(*byte == b'\n');
        }
        while at < bytes.len() {
            let byte = bytes[at];
            match byte {
                b'(' | b'[' | b'{' => {
                    depth += 1;
                    (row, chain) = (0, 0);
                    angles_before.push(angles);
                }
                b')' | b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    chain = 0;
                    angles = angles_before.pop().unwrap_or_default();
                }
                // Arguments of types in arguments of types; a comparison is over at the end of its statement or bracket.
                b'<' if language == Language::JavaScript && bytes.get(at + 1) != Some(&b'=') => {
                    angles += 1;
                    row = 0;
                }
                b'>' if language == Language::JavaScript && at > 0 && bytes[at - 1] != b'=' => {
                    angles = angles.saturating_sub(1).max(angles_before.last().copied().unwrap_or_default());
                    row = 0;
                }
                b'!' | b'~' | b'-' | b'+' => row += 1,
                b'=' | b'?' | b'*' => chain += 1,
                b';' => {
                    (row, chain) = (0, 0);
                    angles = angles_before.last().copied().unwrap_or_default();
                }
                b',' | b'\n' => (row, chain) = (0, 0),
                b' ' | b'\t' => {}
                b'"' | b'\'' | b'`' => {
                    at = after_quote(language, bytes, at);
                    row = 0;
                    continue;
                }
                b'#' if language == Language::Python => {
                    at += memchr::memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len() - at);
                    continue;
                }
                b'/' if language == Language::JavaScript && bytes.get(at + 1) == Some(&b'/') => {
                    at += memchr::memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len() - at);
                    continue;
                }
                byte if byte.is_ascii_alphabetic() => {
                    let end = bytes[at..].iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_');
                    let end = end.map_or(bytes.len(), |end| at + end);
                    chain += usize::from(LEADING.contains(&&bytes[at..end]));
                    row = 0;
                    at = end;
                    continue;
                }
                _ => row = 0,
            }
            shape.nesting = shape.nesting.max(depth + angles).max(row).max(chain);
            at += 1;
        }
        shape
    }
}

/// The first byte after a quoted text that begins at `at`. A template of JavaScript is not left out: it holds code.
fn after_quote(language: Language, bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    if quote == b'`' {
        return at + 1;
    }
    let triple = [quote; 3];
    let is_triple = language == Language::Python && bytes[at..].starts_with(&triple);
    let mut next = at + if is_triple { 3 } else { 1 };
    while next < bytes.len() {
        match bytes[next] {
            b'\\' => next += 1,
            b'\n' if !is_triple => return next,
            byte if byte == quote && (!is_triple || bytes[next..].starts_with(&triple)) => {
                return next + if is_triple { 3 } else { 1 };
            }
            _ => {}
        }
        next += 1;
    }
    bytes.len()
}
