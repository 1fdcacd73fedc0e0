//! The ledger: every byte of a bundle was scanned, or is listed with the reason why not.

use crate::decision::FileCoverage;

/// Why bytes were not scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unscanned {
    /// A format that nothing here looks into.
    Binary,
}

impl Unscanned {
    /// The name in answers.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Binary => "binary",
        }
    }

    /// Whether an agent could run or read what was not scanned.
    pub(super) const fn holds(self) -> bool {
        match self {
            Self::Binary => true,
        }
    }
}

/// The coverage of every file so far.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    files: Vec<FileCoverage>,
    is_held: bool,
}

impl Ledger {
    /// Lists a file of which nothing was scanned.
    pub(super) fn unscanned(&mut self, path: &str, bytes: u64, why: Unscanned) {
        self.is_held |= why.holds();
        self.files.push(FileCoverage {
            path: path.to_owned(),
            bytes,
            unscanned_reason: why.as_str().to_owned(),
            ..FileCoverage::default()
        });
    }

    /// Whether something that an agent could run or read was not scanned.
    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Every file, ordered by path.
    pub(super) fn into_files(mut self) -> Vec<FileCoverage> {
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        self.files
    }
}
