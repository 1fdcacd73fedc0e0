//! The ledger: every byte of a bundle was scanned, or is listed with the reason why not.
//!
//! Invariant: each file of the bundle, those of opened archives included, has exactly one entry.

use crate::decision::FileCoverage;

/// Why bytes were not scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unscanned {
    /// A format that nothing here looks into.
    Binary,
    /// An image, a font or a sound, wholly.
    InertMedia,
    /// An archive of a format that is not opened, or one that is broken.
    Archive,
    /// Larger than what is opened or followed.
    TooLarge,
    /// Archives in archives, deeper than they are opened.
    TooDeep,
    /// Text in an encoding that is not known.
    Undecodable,
    /// An analysis gave up before its end.
    TooComplex,
    /// The bundle made as much work as one may before it came to it. Split it into smaller ones, or let an administrator look
    /// at what is listed.
    TooMuch,
}

impl Unscanned {
    /// The name in answers.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::InertMedia => "inert_media",
            Self::Archive => "archive",
            Self::TooLarge => "too_large",
            Self::TooDeep => "too_deep",
            Self::Undecodable => "undecodable",
            Self::TooComplex => "too_complex",
            Self::TooMuch => "too_much_work",
        }
    }

    /// Whether an agent could run or read what was not scanned.
    pub(super) const fn holds(self) -> bool {
        !matches!(self, Self::InertMedia)
    }
}

/// The coverage of every file so far.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    files: Vec<FileCoverage>,
    is_held: bool,
}

impl Ledger {
    /// Enters a file: how much of it `engines` read, and why not the rest.
    pub(super) fn enter(
        &mut self,
        path: &str,
        bytes: u64,
        bytes_scanned: u64,
        engines: &[&'static str],
        why: Option<Unscanned>,
    ) {
        // An entry without a reason must cover everything; what slipped through is said, and held.
        let why = why.or((bytes_scanned < bytes).then_some(Unscanned::Undecodable));
        self.is_held |= why.is_some_and(Unscanned::holds);
        self.files.push(FileCoverage {
            path: path.to_owned(),
            bytes,
            bytes_scanned: bytes_scanned.min(bytes),
            engines: engines.iter().map(|engine| (*engine).to_owned()).collect(),
            unscanned_reason: why.map_or("", Unscanned::as_str).to_owned(),
        });
    }

    /// Whether something that an agent could run or read was not scanned.
    pub(super) const fn is_held(&self) -> bool {
        self.is_held
    }

    /// Every file, ordered by path.
    pub(super) fn into_files(mut self) -> Vec<FileCoverage> {
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        self.files
    }
}
