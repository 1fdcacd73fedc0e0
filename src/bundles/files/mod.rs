//! What a file is, by its bytes and by its name, and what its text is.

mod kind;
mod name;
mod text;

pub(super) use kind::{Content, Opaque, content_of, is_packed_or_program, is_zip};
pub(super) use name::{Rank, Script, Syntax, is_disguised, is_sample, rank, syntax_of};
pub(super) use text::{decode, readable, strings};
