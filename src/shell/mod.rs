//! What would this shell command do? Pure: no IO, no clock, the same answer for the same text.
//!
//! A script is parsed ([`ast`]), every word is expanded as far as its value can be known ([`argument`]), wrappers and
//! interpreters are unwrapped, and what each program does with its resolved arguments becomes a list of effects
//! ([`effect`]). Nothing is decided here: that is for rules over effects.

pub mod analysis;
pub mod argument;
pub mod ast;
pub mod carried;
pub mod effect;
mod expand;
pub mod foreign;
pub mod limits;
mod owners;
pub mod programs;
mod run;
pub mod scripts;
pub mod syntax;

pub(crate) use owners::owns_file;
pub use run::{HOOK, UNCALLED, analyse, analyse_argv};
