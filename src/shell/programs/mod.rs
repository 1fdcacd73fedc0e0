//! What each known program does with its arguments, one file a family.

use std::ops::Range;

use super::argument::Argument;
use super::effect::{EffectKind, Target};
use crate::paths::Place;

/// A simple command about to run, everything resolved.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// Base name of the program, lower case, without `.exe`.
    pub program: &'a str,
    /// Arguments, the program first.
    pub argv: &'a [Argument],
    /// Where it would run; the working directory is followed through `cd`.
    pub place: Place<'a>,
    /// What is known of its standard input.
    pub input: &'a Input,
    /// Where it stands in the command.
    pub span: &'a Range<usize>,
}

/// What a command reads from its standard input.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Input {
    /// Nothing was connected to it.
    #[default]
    None,
    /// This text, from a pipe, here-document or here-string.
    Text(Argument),
    /// The content of this file.
    File(Argument),
    /// Output of a command that fetches from the network; where from.
    Network(String),
    /// Output that could not be computed; the program it comes from.
    Output(String),
}

/// Languages of inline scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// sh, bash, zsh, dash, ksh, ash, fish.
    Shell,
    /// Python.
    Python,
    /// Perl.
    Perl,
    /// Ruby.
    Ruby,
    /// JavaScript: node, deno, bun.
    JavaScript,
    /// PHP.
    Php,
    /// awk.
    Awk,
    /// Lua.
    Lua,
    /// PowerShell and cmd.
    PowerShell,
}

/// What an analyser of a program tells. The engine adds span, wrappers, program and arguments.
pub trait Sink {
    /// The program does this.
    fn effect(&mut self, kind: EffectKind, target: Option<Target>, attributes: Attributes);

    /// The program runs another command with these arguments. `via` names the wrapper.
    fn run(&mut self, argv: &[Argument], via: &'static str);

    /// The program runs this text as a script. `via` names it, such as `bash -c`.
    fn script(&mut self, language: Language, text: &Argument, via: &'static str);

    /// The program runs what is not known.
    fn unknown_command(&mut self);
}

/// The attributes of an effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// See [`super::effect::Effect::recursive`].
    pub recursive: bool,
    /// See [`super::effect::Effect::forced`].
    pub forced: bool,
    /// See [`super::effect::Effect::detail`].
    pub detail: String,
}
