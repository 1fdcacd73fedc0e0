//! The review of a bundle by a model: what it is asked, and when its answer passes.
//!
//! Pure. The model may only raise the risk: it is asked about bundles that passed every other check, and nothing it says
//! takes a finding of those away. What is no complete answer in itself is no verdict.

mod answer;
mod prompt;

pub use answer::{NoVerdict, Verdict, read};
pub use prompt::{PROMPT_BYTES_MAX, Prompt, Unseen};

/// Version of instructions, schema, choice of files and pass rule. Raise it with every change of any of them: a verdict
/// that is remembered holds for one version.
pub const PROMPT_VERSION: &str = "review-2";

#[cfg(test)]
mod tests;
