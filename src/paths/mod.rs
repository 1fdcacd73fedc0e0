//! Paths as text: one spelling for each file, and what kind of place it is. Pure; nothing looks at a disk.

mod kind;
mod normalise;
mod patch;
mod sensitive;
mod spelling;

pub use kind::{PlaceKind, kind_of, within};
pub use normalise::normalise;
pub use patch::{PATCH_PATHS_MAX, PatchPath, PatchPaths, patch_paths};
pub use sensitive::{
    Access, Accesses, PathAction, PathJudgement, PathRequest, PathRule, PathRuleProblem, PathRuleProblems,
    PathRuleSource, PathSelfCheck, SensitiveHit, SensitivePaths, Via, builtin_path_sources,
};
pub use spelling::{Oddity, PATH_BYTES_MAX};

/// The operating system whose notation a path is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Os {
    /// Case counts, `/` separates.
    #[default]
    Linux,
    /// Case does not count, `/` separates.
    MacOs,
    /// Case does not count, `/` and `\` separate.
    Windows,
}

impl Os {
    /// Whether names that differ in case only are the same file.
    pub const fn ignores_case(self) -> bool {
        matches!(self, Self::MacOs | Self::Windows)
    }
}

/// What is known of the place that paths are relative to. What is empty is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// Working directory, absolute.
    pub cwd: &'a str,
    /// Home directory, absolute.
    pub home: &'a str,
    /// The notation.
    pub os: Os,
}

/// Stands for a piece of a path that is not known, as in the arguments of the shell analysis. No path can hold it.
pub const HOLE: char = '\0';

#[cfg(test)]
mod tests;
