//! What engines make of rules and policies when these load, so that a broken expression rejects the reload that brought
//! it instead of failing at the first request.
//!
//! Policies stand below the engines and cannot name them. So the composition root hands a [`Prepare`] to the sources,
//! and a snapshot carries what came of it.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::{PolicySet, Problem};
use crate::rules::RuleProblems;

/// What an engine compiled for one snapshot.
pub type Prepared = Arc<dyn Any + Send + Sync>;

/// An engine that has something to compile.
pub trait Prepare: Send + Sync + fmt::Debug {
    /// Reads the engine's own rules, the built-in ones and those below `folders`.
    ///
    /// # Errors
    /// Every problem of those rules.
    fn rules(&self, folders: &[PathBuf]) -> Result<Box<dyn PrepareRules>, RuleProblems>;
}

/// An engine's own rules, read.
pub trait PrepareRules {
    /// Digest over all of them: equal rules, equal digest.
    fn revision(&self) -> String;

    /// Their ids, which policies may name.
    fn rule_ids(&self) -> Vec<String>;

    /// Compiles what the policies say.
    ///
    /// # Errors
    /// Everything that is wrong, each with the place in its file.
    fn compile(&self, policies: &PolicySet) -> Result<Prepared, Vec<Problem>>;
}
