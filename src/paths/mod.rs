//! Paths as text: one spelling for each file, and what kind of place it is. Pure; nothing looks at a disk.

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
