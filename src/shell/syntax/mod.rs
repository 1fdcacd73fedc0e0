//! Reads bash into a tree: one pass, a stack on the heap, linear in time and memory for any text.
//!
//! What nests is a [`frame::Frame`] on a stack of our own, so that no input can exhaust the thread's stack. Each frame
//! reads on until it is done or needs something nested; then it is put back, and its result comes as a
//! [`frame::Value`]. Only the text of nested backticks and of here-documents is looked at more than once, and both
//! nest [`REREAD_MAX`] deep at most.
//!
//! Errors do not stop it. A token without a place is noted and left out, and what a shell would not have met is still
//! in the tree.

mod balance;
mod case;
mod class;
mod command;
mod compound;
mod cursor;
mod document;
mod escape;
mod frame;
mod keyword;
mod list;
mod machine;
mod output;
mod parameter;
mod quote;
mod redirect;
mod simple;
mod substitution;
mod word;

#[cfg(test)]
mod check;
#[cfg(test)]
mod dump;
#[cfg(test)]
mod tests;

use super::ast::Ast;
use super::limits::Limits;

/// How deep backticks in backticks and here-documents in here-documents may nest: each level reads its text again.
const REREAD_MAX: u8 = 8;

/// Reads a script. Never fails: what cannot be read is noted in [`Ast::problems`].
///
/// Of the limits, `bytes_max` cuts the text, `nesting_max` the levels, and `steps_max` the number of commands, words
/// and parts of words. Line ends may be those of Windows, and NUL bytes count for nothing, as in a shell.
pub fn parse<'s>(source: &'s str, limits: &Limits) -> Ast<'s> {
    machine::read(source, limits).0
}
