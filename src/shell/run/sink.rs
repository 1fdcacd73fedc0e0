//! Takes what analysers of programs and scripts tell, and adds where and through what it was found.

use std::ops::Range;
use std::sync::Arc;

use super::super::analysis::UnresolvedCause;
use super::super::argument::Argument;
use super::super::effect::{EffectKind, Target};
use super::super::programs::{Attributes, Language, Sink};
use super::super::scripts::AWK_PIPE;
use super::Engine;

/// See the module.
pub(super) struct ProgramSink<'e, 'a, 'p> {
    engine: &'e mut Engine<'a>,
    program: &'p str,
    argv: &'p [Argument],
    shared: Option<Arc<[Argument]>>,
    span: &'p Range<usize>,
}

impl<'e, 'a, 'p> ProgramSink<'e, 'a, 'p> {
    /// A sink for one command.
    pub fn new(
        engine: &'e mut Engine<'a>,
        program: &'p str,
        argv: &'p [Argument],
        span: &'p Range<usize>,
    ) -> Self {
        Self { engine, program, argv, shared: None, span }
    }
}

impl Sink for ProgramSink<'_, '_, '_> {
    fn effect(&mut self, kind: EffectKind, target: Option<Target>, attributes: Attributes) {
        if !self.engine.charge(1) {
            return;
        }
        let argv = self.shared.get_or_insert_with(|| self.argv.into());
        self.engine.effect(kind, target, attributes, self.program, argv, self.span);
    }

    fn run(&mut self, argv: &[Argument], via: &'static str) {
        if argv.is_empty() {
            return;
        }
        self.engine.via.push(via);
        self.engine.run_argv(argv, self.span);
        self.engine.via.pop();
    }

    fn script(&mut self, language: Language, text: &Argument, via: &'static str) {
        if via == AWK_PIPE {
            self.engine.run_printed_to(text, via);
        } else {
            self.engine.run_script_text(language, text, via);
        }
    }

    fn runs_input(&mut self) {
        self.engine.runs_input(self.argv, self.span);
    }

    fn unknown_command(&mut self) {
        self.engine.note_unknown_command(self.span);
    }

    fn limited(&mut self) {
        self.engine.note(UnresolvedCause::TooMuchWork, self.span.clone());
    }

    fn decoded(&mut self) {
        self.engine.push_decoded(self.span);
    }
}
