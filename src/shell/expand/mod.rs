//! Word expansion as far as values are known: braces, parameters, substitutions, arithmetic, splitting, quotes.
//!
//! The outcome is arguments with holes. A tilde stays as it is and a glob is marked, for nobody looks at a disk here.

pub(in crate::shell) mod arithmetic;
mod brace;
mod fields;
mod parameter;
pub(in crate::shell) mod pattern;

use std::ops::Range;

use super::analysis::UnresolvedCause;
use super::argument::{Argument, HOLE, Origin};
use super::ast::{Part, Word, WordId};
use super::programs::Input;
use super::run::{Engine, Script};
use brace::{Expansion, Piece};
use fields::Fields;

/// What a word is expanded for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Arguments of a command.
    Fields,
    /// One text.
    Text,
    /// A pattern: what was quoted is escaped.
    Pattern,
}

impl Engine<'_> {
    /// Expands words to arguments.
    pub(in crate::shell) fn words(&mut self, script: &Script<'_>, words: &[WordId]) -> Vec<Argument> {
        let mut all = Vec::with_capacity(words.len());
        for &id in words {
            if !self.charge(2) {
                break;
            }
            self.word(script, id, &mut all);
        }
        all
    }

    /// Expands a word to one text, without splitting and globs.
    pub(in crate::shell) fn text(&mut self, script: &Script<'_>, id: WordId) -> Argument {
        self.single(script, id, Mode::Text)
    }

    /// Expands a word to the value of an assignment.
    pub(in crate::shell) fn value(&mut self, script: &Script<'_>, id: WordId) -> Argument {
        self.single(script, id, Mode::Text)
    }

    /// Expands a word to a pattern in which what was quoted is escaped.
    fn pattern(&mut self, script: &Script<'_>, id: WordId) -> Argument {
        self.single(script, id, Mode::Pattern)
    }

    fn single(&mut self, script: &Script<'_>, id: WordId, mode: Mode) -> Argument {
        let word = &script.ast.words[id.0 as usize];
        let span = script.span(word.span);
        if !self.enter(|| span.clone()) {
            return Self::unknown(Origin::Environment, span);
        }
        let mut out = Vec::new();
        let mut fields = Fields::new(&mut out, span.clone(), None);
        for (at, part) in word.parts.iter().enumerate() {
            self.part(script, part, word, at, mode, &mut fields);
        }
        fields.finish(true);
        self.leave();
        let mut text = out.pop().unwrap_or_else(|| Argument { span, ..Argument::default() });
        // No names of files are looked for here.
        text.has_glob = false;
        self.charge_bytes(text.text.len());
        text
    }

    fn word(&mut self, script: &Script<'_>, id: WordId, out: &mut Vec<Argument>) {
        let word = &script.ast.words[id.0 as usize];
        // Most words are one piece of plain text.
        if let [Part::Bare(text)] = word.parts.as_slice()
            && !text.contains(['{', '*', '?', '[', HOLE])
            && self.filled(text).is_none()
        {
            out.push(Argument::constant(*text, script.span(word.span)));
            return;
        }
        let span = script.span(word.span);
        if !self.enter(|| span.clone()) {
            return;
        }
        // Each brace may become a token of its own.
        if !self.charge(1 + word.parts.len() + (word.span.end - word.span.start) as usize / 4) {
            self.leave();
            return;
        }
        match brace::expand(&word.parts) {
            Expansion::Plain => self.pieces(script, word, None, span, out),
            Expansion::Words(words) => {
                for pieces in words {
                    if !self.charge(1 + pieces.len()) {
                        break;
                    }
                    self.pieces(script, word, Some(&pieces), span.clone(), out);
                }
            }
            Expansion::TooMany => {
                self.note(UnresolvedCause::TooMuchWork, span.clone());
                self.pieces(script, word, None, span, out);
            }
        }
        self.leave();
    }

    fn pieces(
        &mut self,
        script: &Script<'_>,
        word: &Word<'_>,
        pieces: Option<&[Piece<'_, '_>]>,
        span: Range<usize>,
        out: &mut Vec<Argument>,
    ) {
        let separators = self.separators();
        let from = out.len();
        let mut fields = Fields::new(out, span, separators);
        match pieces {
            None => {
                for (at, part) in word.parts.iter().enumerate() {
                    self.part(script, part, word, at, Mode::Fields, &mut fields);
                }
            }
            Some(pieces) => {
                for piece in pieces {
                    match piece {
                        Piece::Bare(text) => fields.literal(text, false),
                        Piece::Item(c) => fields.literal(c.encode_utf8(&mut [0; 4]), false),
                        Piece::Number(number, width) => fields.literal(&format!("{number:0width$}"), false),
                        Piece::Part(part) => {
                            let at =
                                word.parts.iter().position(|other| std::ptr::eq(other, *part)).unwrap_or(0);
                            self.part(script, part, word, at, Mode::Fields, &mut fields);
                        }
                    }
                }
            }
        }
        fields.finish(false);
        let bytes: usize = out[from..].iter().map(|field| field.text.len()).sum();
        self.charge(2 * (out.len() - from));
        self.charge_bytes(bytes);
    }

    fn part(
        &mut self,
        script: &Script<'_>,
        part: &Part<'_>,
        word: &Word<'_>,
        at: usize,
        mode: Mode,
        fields: &mut Fields<'_>,
    ) {
        let literal = match part {
            Part::Bare(text) => Some(*text),
            Part::Quoted(text) => Some(text.as_ref()),
            _ => None,
        };
        if let Some(filled) = literal.and_then(|text| self.filled(text)) {
            fields.value(&filled);
            return;
        }
        match part {
            Part::Bare(text) => fields.literal(text, false),
            Part::Quoted(text) if mode == Mode::Pattern => fields.escaped(text),
            Part::Quoted(text) => fields.literal(text, true),
            Part::Parameter(parameter) => {
                let quoted = parameter.quoted || mode != Mode::Fields;
                self.parameter(script, parameter, word, at, quoted, fields);
            }
            Part::Command { body, quoted } => {
                let mut output = self.capture(script, *body, None, script.span(word.span));
                let length = output.text.trim_end_matches('\n').len();
                output.text.truncate(length);
                self.charge_bytes(length);
                if *quoted || mode != Mode::Fields {
                    fields.value(&output);
                } else {
                    fields.split(&output);
                }
            }
            Part::Arithmetic { expression, quoted } => {
                let text = self.text(script, *expression);
                let value = match self.number(&text.text) {
                    Some(number) => Argument { text: number.to_string(), ..Argument::default() },
                    None => Argument { text: HOLE.to_string(), origin: text.origin, ..Argument::default() },
                };
                if *quoted || mode != Mode::Fields {
                    fields.value(&value);
                } else {
                    fields.split(&value);
                }
            }
            Part::Process { body, is_input } => {
                let path = if *is_input {
                    let output = self.capture(script, *body, Some(Input::None), script.span(word.span));
                    self.pipe_file(output)
                } else {
                    self.process_sink(*body)
                };
                fields.literal(&path, true);
            }
        }
    }

    /// The value of an arithmetic expression, if it is known.
    pub(in crate::shell) fn number(&mut self, text: &str) -> Option<i64> {
        if text.contains(HOLE) || !self.charge_bytes(text.len() * 8) {
            return None;
        }
        let lookup = |name: &str| {
            let value = self.scope.get(name, self.choice)?;
            match value {
                super::run::Value::Text(text) => text.text.trim().parse().ok(),
                super::run::Value::Unset => Some(0),
                super::run::Value::Array(items) => items.first()?.text.trim().parse().ok(),
                super::run::Value::Map(_) | super::run::Value::Reference(_) => None,
            }
        };
        arithmetic::evaluate(text, &lookup)
    }

    /// Characters that split unquoted values; `None` for the usual blanks.
    fn separators(&self) -> Option<String> {
        match self.scope.get("IFS", self.choice)? {
            super::run::Value::Text(text) if !text.text.contains(HOLE) && text.text != " \t\n" => {
                Some(text.text.clone())
            }
            _ => None,
        }
    }

    /// The characters of `$IFS` itself.
    fn separator_text(&self) -> String {
        self.separators().unwrap_or_else(|| " \t\n".to_owned())
    }
}

/// Joins texts, holes and origins included.
fn join(items: &[Argument], separator: &str) -> Argument {
    let mut joined = Argument::default();
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            joined.text.push_str(separator);
        }
        joined.text.push_str(&item.text);
        joined.absorb(item);
    }
    joined
}
