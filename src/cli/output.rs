//! Where a command prints: results to standard output, complaints to standard error.
//!
//! A reader that goes away (`| head`) is no error: what is left is dropped and the exit code stays what it would have
//! been, since for `check` it carries the decision. Any other failure to write is one, and makes the exit code 70.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Write};

use super::exit::{Exit, Failure};
use crate::setting::system_problem;

/// The two streams of a command.
pub(super) struct Output {
    out: BufWriter<io::Stdout>,
    /// The first failure to write; nothing is written after it.
    error: Option<io::Error>,
    has_colour: bool,
}

/// How a piece of text is set off on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Headings.
    Bold,
    /// What stands in the way.
    Red,
    /// What deserves a look.
    Yellow,
    /// What is fine.
    Green,
    /// What is secondary.
    Dim,
}

impl Output {
    /// Output to the streams of the process. Colours only on a terminal, and not when `NO_COLOR` is set.
    pub(super) fn new(variables: &[(String, String)]) -> Self {
        let stdout = io::stdout();
        let no_colour = variables.iter().any(|(name, value)| name == "NO_COLOR" && !value.is_empty());
        let is_dumb = variables.iter().any(|(name, value)| name == "TERM" && value == "dumb");
        let has_colour = stdout.is_terminal() && !no_colour && !is_dumb;
        Self { out: BufWriter::new(stdout), error: None, has_colour }
    }

    /// Prints one line.
    pub(super) fn line(&mut self, text: impl fmt::Display) {
        self.write(format_args!("{text}\n"));
    }

    /// Prints text as it is.
    pub(super) fn text(&mut self, text: impl fmt::Display) {
        self.write(format_args!("{text}"));
    }

    /// Prints one JSON document, indented, and a line end.
    pub(super) fn json(&mut self, value: &impl serde::Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(Failure::internal)?;
        self.line(text);
        Ok(())
    }

    /// `text` set off, where the output is a terminal.
    pub(super) fn styled(&self, style: Style, text: impl fmt::Display) -> String {
        let code = match style {
            Style::Bold => "1",
            Style::Red => "1;31",
            Style::Yellow => "33",
            Style::Green => "32",
            Style::Dim => "2",
        };
        if self.has_colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// Tells the person something beside the result.
    pub(super) fn note(&mut self, text: impl fmt::Display) {
        self.flush();
        // Nobody to tell means nothing to do.
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// Tells why the command failed.
    pub(super) fn complain(&mut self, failure: &Failure) {
        if !failure.message.is_empty() {
            self.note(format_args!("portcullis: {failure}"));
        }
    }

    /// Writes out what is buffered; the exit becomes that of an internal error when the result could not be written.
    pub(super) fn finish(mut self, exit: Exit) -> Exit {
        self.flush();
        match self.error.take() {
            // A hook has told why already, and its code is the refusal.
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe && exit != Exit::Refused => {
                let _ = writeln!(
                    io::stderr(),
                    "portcullis: could not write the output: {}",
                    system_problem(&error)
                );
                Exit::Internal
            }
            _ => exit,
        }
    }

    /// Shows what was printed so far, for a reader who follows.
    pub(super) fn flush_now(&mut self) {
        self.flush();
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        if self.error.is_none() {
            self.error = self.out.write_fmt(text).err();
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.out.flush().err();
        }
    }
}
