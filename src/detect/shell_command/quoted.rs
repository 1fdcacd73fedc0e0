//! Commands in inline code, in quotation marks and in the elements of HTML for code.

use std::ops::Range;

use memchr::{memchr, memchr2, memchr3, memmem};

use super::call::{string_end, unescaped};
use super::fence::{block, is_shell};
use super::shown::Shown;

/// Longest command in inline code or quotes, in bytes.
const INLINE_BYTES_MAX: usize = 512;
/// Longest element of HTML that is read, and longest tag, in bytes.
const ELEMENT_BYTES_MAX: usize = 16 * 1024;
const TAG_BYTES_MAX: usize = 200;

/// Quotation marks that are no ASCII, as they open and close.
const CURLY: [(&str, &str); 4] = [("“", "”"), ("„", "“"), ("‘", "’"), ("«", "»")];

/// Hands on what stands in inline code or quotes within one line, and has at least two words.
pub(super) fn quoted<'t>(text: &'t str, line: &Range<usize>, add: &mut dyn FnMut(Shown<'t>)) {
    let content = text[line.clone()].as_bytes();
    let mut push = |inner: Range<usize>| {
        let inner = line.start + inner.start..line.start + inner.end;
        let has_words = || memchr2(b' ', b'\t', text.as_bytes()[inner.clone()].trim_ascii()).is_some();
        if inner.len() <= INLINE_BYTES_MAX && has_words() {
            let command = &text[inner.clone()];
            // A quotation mark behind a backslash is part of what a string holds.
            let is_escaped = memchr(b'\\', command.as_bytes()).is_some() && command.contains("\\\"");
            add(Shown {
                command: if is_escaped { unescaped(command) } else { command.into() },
                range: inner,
            });
        }
    };
    let mut at = 0;
    while let Some(open) = memchr3(b'`', b'"', b'\'', &content[at..]) {
        let open = at + open;
        if content[open] == b'`' {
            let marks = content[open..].iter().take_while(|byte| **byte == b'`').count();
            let within = &content[..content.len().min(open + 2 * marks + INLINE_BYTES_MAX)];
            match closing_run(within, open + marks, marks) {
                Some(close) => {
                    push(open + marks..close);
                    at = close + marks;
                }
                None => at = open + marks,
            }
            continue;
        }
        let is_string = content[open] == b'"' && (open == 0 || content[open - 1] != b'\\');
        let close = match is_string {
            true => string_end(content, open + 1, b'"'),
            false => memchr(content[open], &content[open + 1..]).map(|length| open + 1 + length),
        };
        // Where nothing closes it, it is an apostrophe, most likely. One may also have taken the opening quote of what follows
        // for its end, so only code is passed over whole.
        if let Some(close) = close {
            push(open + 1..close);
        }
        at = open + 1;
    }
    if content.is_ascii() {
        return;
    }
    for (opening, closing) in CURLY {
        let mut at = 0;
        while let Some(open) = text[line.start + at..line.end].find(opening) {
            let start = at + open + opening.len();
            at = start;
            if let Some(length) = text[line.start + start..line.end].find(closing) {
                push(start..start + length);
            }
        }
    }
}

/// Where the next run of exactly so many back-ticks begins.
fn closing_run(content: &[u8], from: usize, marks: usize) -> Option<usize> {
    let mut at = from;
    while let Some(next) = memchr(b'`', content.get(at..)?) {
        let start = at + next;
        let run = content[start..].iter().take_while(|byte| **byte == b'`').count();
        if run == marks {
            return Some(start);
        }
        at = start + run;
    }
    None
}

/// Hands on what stands in the elements of HTML for code.
pub(super) fn elements<'t>(text: &'t str, add: &mut dyn FnMut(Shown<'t>)) {
    for (opening, closing) in [("<code", "</code"), ("<pre", "</pre"), ("<kbd", "</kbd")] {
        // Up to there nothing closes an element.
        let mut searched = 0;
        for at in memmem::find_iter(text.as_bytes(), opening) {
            let tag = at + opening.len();
            let tag_end = text.floor_char_boundary((tag + TAG_BYTES_MAX).min(text.len()));
            let Some(end) = text[tag..tag_end].find('>') else { continue };
            let attributes = &text[tag..tag + end];
            if !attributes.is_empty() && !attributes.starts_with([' ', '\n', '\t']) {
                continue;
            }
            let start = tag + end + 1;
            let limit = text.floor_char_boundary((start + ELEMENT_BYTES_MAX).min(text.len()));
            let from = start.max(searched.min(limit));
            let Some(found) = memmem::find(&text.as_bytes()[from..limit], closing.as_bytes()) else {
                searched = limit.saturating_sub(closing.len());
                continue;
            };
            let length = from + found - start;
            let is_other = language_of(attributes).is_some_and(|language| !is_shell(language));
            if !is_other && !text[start..].starts_with("<code") {
                block(text, start..start + length, 0, add);
            }
        }
    }
}

/// The language that the class of an element names.
fn language_of(attributes: &str) -> Option<&str> {
    let (_, name) = attributes.split_once("language-").or_else(|| attributes.split_once("lang-"))?;
    name.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next()
}
