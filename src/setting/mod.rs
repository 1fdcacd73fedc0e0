//! The vocabulary of settings: how sizes, durations, addresses and counts are written, and what a problem is.
//!
//! Every module that has settings owns a `Config` struct made of these; `config` gathers them. So this module stands
//! below all of them and knows none of them. It reads nothing: neither files nor the environment.
//!
//! Each submodule is named in a `#[serde(with = "…")]` and gives one error sentence for every wrong form.

pub mod address;
pub mod bytes;
pub mod count;
pub mod duration;
mod problem;
pub mod ratio;
mod secret;
mod system_problem;

pub use problem::{Problem, check_section};
pub use secret::Secret;
pub use system_problem::system_problem;
