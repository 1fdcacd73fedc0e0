//! Text becomes scannable views.
//!
//! A detector looks for words; an attacker writes them so that a model still reads them and a pattern does not. This
//! module undoes such writing: [`views`] yields the text as sent, the text with its Unicode tricks folded away, and
//! the text with its encodings decoded. Each [`View`] knows, for every byte, where in the text as sent it came from,
//! so a finding always points into the caller's own string.
//!
//! Everything here is pure, runs in time linear in the text, and accepts any string. It judges nothing: that a text
//! was encoded is no finding.

mod apart;
mod base64;
mod broken;
mod chars;
mod cipher;
mod codes;
mod confusables;
mod decode;
mod digits;
mod escapes;
mod flow;
mod fold;
mod form;
mod gate;
mod grouped;
mod hex;
mod hidden;
mod joined;
pub mod json;
pub(crate) mod lanes;
mod language;
mod layer;
mod layout;
pub(crate) mod letters;
mod metadata;
mod numbers;
mod packed;
mod phrase;
mod play;
mod quoted;
mod rewrite;
mod signs;
mod span;
mod spelled;
pub mod stretches;
pub mod strict_json;
mod tables;
mod terminal;
mod turned;
mod view;
mod views;
mod window;
mod words;
mod yaml_problem;

pub use apart::apart;
pub use broken::{broken_reasons, unbroken};
pub use chars::{as_typed, is_invisible};
pub use cipher::ciphers;
pub use confusables::map as look_alikes;
pub use decode::decoded;
pub use digits::{base32_of_program, base64_digit, base64_of_program, bytes_of_digits};
pub use flow::Flow;
pub use fold::folded;
pub use gate::Looks;
pub use joined::{joined, joined_words};
pub use language::is_foreign;
pub use layer::{Layer, Layers};
pub use layout::{Undone, layout};
pub use metadata::is_metadata_host;
pub use numbers::numbers;
pub use phrase::{leet, leet_reasons, morse, morse_backwards, reversed, rot13, spaced};
pub use play::{pig_latin, reversed_words};
pub use signs::signs_apart;
pub use span::{OffsetEncoding, convert_offsets, line_columns, line_of};
pub use spelled::{spelled, upside_down};
pub use tables::{Columns, Heads, columns};
pub use turned::turned_escapes;
pub use view::View;
pub use views::{Limits, Views, views, warm_up};
pub use window::windows;
pub(crate) use yaml_problem::yaml_problem;

#[cfg(test)]
mod tests;
