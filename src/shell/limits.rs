//! How far an analysis may go.

/// How far an analysis goes before it says that it could not judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a command.
    pub bytes_max: usize,
    /// Levels of syntax: substitutions, groups, compound commands.
    pub nesting_max: usize,
    /// Levels of scripts in scripts: `bash -c`, decoders, `eval`.
    pub depth_max: usize,
    /// Steps: commands run, words expanded, bytes decoded. The budget is one for the whole command.
    pub steps_max: usize,
    /// Whether the command is a script that stays: then what it leaves behind to run later is run as well, such as hooks of
    /// the shell and functions that nothing calls.
    pub is_whole: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes_max: 1 << 20, nesting_max: 100, depth_max: 8, steps_max: 100_000, is_whole: false }
    }
}
