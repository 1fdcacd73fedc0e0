//! Tests of the whole: one binary, since each one costs a link of everything.
//!
//! - `cli`: the program itself, its exit codes and what it prints.

mod cli;
