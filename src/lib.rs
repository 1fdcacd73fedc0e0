//! Portcullis: the policy decision point for AI agents.
//!
//! Imports point down this list only: `text` <- `decision` <- `rules` <- `detect`. These four are the core: they do
//! no IO, hold no clock and give the same answer for the same input.

pub mod decision;
pub mod detect;
pub mod messages;
pub mod pb;
pub mod policy;
pub mod rules;
pub mod text;
