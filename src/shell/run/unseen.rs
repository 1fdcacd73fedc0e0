//! Text that a decoder made out of what nobody can read, and whether it is run.
//!
//! What a decoder prints is remembered by its text: however it travels (a pipe, a variable, a file), whoever runs a text
//! that holds it runs something that could not be read. What the text does is judged like any other; this is only noted.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::super::analysis::Inline;
use super::super::argument::Argument;
use super::super::effect::EffectKind;
use super::super::programs::{Attributes, Language};
use super::Engine;

/// Texts that are remembered.
const TEXTS_MAX: usize = 32;
/// Places that are noted.
const PLACES_MAX: usize = 32;
/// Shortest text that is remembered, in bytes: a shorter one stands in many others.
const BYTES_MIN: usize = 2;
/// Longest text that is remembered, in bytes.
const BYTES_MAX: usize = 64 << 10;
/// Escapes of printable characters from which `printf` is a decoder.
const ESCAPES_MIN: usize = 6;
/// Scripts of other languages that are handed on, and bytes of them.
const INLINE_MAX: usize = 16;
const INLINE_BYTES_MAX: usize = 256 << 10;

/// What decoders printed so far.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    texts: Vec<Rc<str>>,
    /// Programs that ran a script which decodes and whose output is not known.
    programs: Vec<String>,
}

impl Engine<'_> {
    /// Remembers what a filter made of a text, if it decodes.
    pub(super) fn remember_filtered(&mut self, program: &str, before: &str, after: &str) {
        let is_decoder = super::command::is_decoder(program) || program == "tr" && is_turned(before, after);
        if is_decoder && before.trim() != after.trim() {
            self.remember_decoded(after);
        }
    }

    /// Remembers what `echo` or `printf` printed, if most of it was written in escapes.
    pub(super) fn remember_printed(&mut self, arguments: &[Argument], printed: &str) {
        let escapes: usize = arguments.iter().map(|argument| escapes(&argument.text)).sum();
        if escapes >= ESCAPES_MIN {
            self.remember_decoded(printed);
        }
    }

    /// Remembers that a program ran a script that decodes, when what it prints is not known.
    pub(super) fn remember_script(&mut self, program: &str, arguments: &[Argument]) {
        let is_new = !self.unseen.programs.iter().any(|known| known == program);
        if is_new
            && self.unseen.programs.len() < TEXTS_MAX
            && super::interpreters::language(program).is_some()
            && arguments.iter().any(|argument| super::super::scripts::decodes(&argument.text))
        {
            self.unseen.programs.push(program.to_owned());
        }
    }

    fn remember_decoded(&mut self, text: &str) {
        let text = text.trim();
        if (BYTES_MIN..=BYTES_MAX).contains(&text.len())
            && self.unseen.texts.len() < TEXTS_MAX
            && !self.unseen.texts.iter().any(|known| &**known == text)
        {
            self.unseen.texts.push(Rc::from(text));
        }
    }

    /// Notes the place if a text that is run holds something that came out of a decoder.
    pub(super) fn note_decoded(&mut self, code: &str, span: &Range<usize>) {
        if self.unseen.texts.is_empty() || !self.charge_bytes(code.len() * self.unseen.texts.len()) {
            return;
        }
        let is_script = |text: &&Rc<str>| text.starts_with("#!") && code.contains(&***text);
        if self.unseen.texts.iter().any(|text| code.contains(&**text)) {
            self.push_decoded(span);
        }
        // A line for the system: what is hidden is a whole script file.
        if self.unseen.texts.iter().find(is_script).is_some() {
            let attributes = Attributes { detail: "encoded script".to_owned(), ..Attributes::default() };
            self.effect(EffectKind::OpaqueExecution, None, attributes, "", &Arc::from(Vec::new()), span);
        }
    }

    /// The same for a command whose name does not stand in the script.
    pub(super) fn note_decoded_name(&mut self, script: &str, name: &str, span: &Range<usize>) {
        if self.unseen.texts.is_empty() || name.is_empty() || !self.charge_bytes(script.len()) {
            return;
        }
        let begins = |text: &Rc<str>| text.split_whitespace().next() == Some(name);
        if self.unseen.texts.iter().any(begins) && !script.contains(name) {
            self.push_decoded(span);
        }
    }

    /// The same for the output of a program, of which only the program is known.
    pub(super) fn note_decoded_output(&mut self, program: &str, span: &Range<usize>) {
        if self.unseen.programs.iter().any(|known| known == program) {
            self.push_decoded(span);
        }
    }

    /// Notes a place where decoded text is run.
    pub(super) fn push_decoded(&mut self, span: &Range<usize>) {
        let places = &mut self.analysis.decoded;
        if places.len() < PLACES_MAX && !places.contains(span) {
            places.push(span.clone());
        }
    }

    /// Hands on a script of another language.
    pub(super) fn note_inline(&mut self, language: Language, text: &Argument) {
        let list = &mut self.analysis.inline;
        let bytes: usize = list.iter().map(|inline| inline.text.len()).sum();
        let is_known = list.iter().any(|inline| inline.text == text.text);
        if list.len() < INLINE_MAX && bytes + text.text.len() <= INLINE_BYTES_MAX && !is_known {
            list.push(Inline { language, text: text.text.clone(), span: text.span.clone() });
        }
    }
}

/// Whether most letters of a text were turned into other letters, as ROT13 does; another case does not count.
fn is_turned(before: &str, after: &str) -> bool {
    let letters = before.bytes().filter(u8::is_ascii_alphabetic).count();
    let turned = before
        .bytes()
        .zip(after.bytes())
        .filter(|(a, b)| a.is_ascii_alphabetic() && b.is_ascii_alphabetic() && !a.eq_ignore_ascii_case(b))
        .count();
    before.len() == after.len() && letters > 0 && turned * 2 > letters
}

/// Escapes of printable characters in a text: `\x63`, `\143`, `\0143`.
fn escapes(text: &str) -> usize {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'\\', bytes)
        .filter(|at| match bytes.get(at + 1..) {
            Some([b'x', b'2'..=b'7', digit, ..]) => digit.is_ascii_hexdigit(),
            Some([b'0', b'0' | b'1', b'0'..=b'7', b'0'..=b'7', ..]) => true,
            Some([b'0' | b'1', b'0'..=b'7', b'0'..=b'7', ..]) => true,
            _ => false,
        })
        .count()
}
