//! Why an archive is refused.

use std::fmt;

use super::central::Record;

/// A reason to refuse an archive. Each has an id of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// It is no ZIP file, or is cut off.
    NotZip,
    /// It cannot be read.
    Unreadable,
    /// It has no entry.
    Empty,
    /// It is larger than allowed.
    PackedSize,
    /// It unpacks to more than allowed.
    UnpackedSize,
    /// It has more entries than allowed.
    Entries,
    /// It grows more than allowed when unpacked.
    Ratio,
    /// Something stands before the first entry.
    PrefixData,
    /// Something stands after the end record, or the comment hides records.
    TrailingData,
    /// It is one part of several.
    MultiDisk,
    /// The end record and its 64-bit twin differ.
    Zip64,
    /// The number of entries is wrong.
    EntryCount,
    /// The central directory is broken.
    CentralDirectory,
    /// Bytes between entries belong to none.
    Gap,
    /// The central directory does not end where the end record begins.
    DirectoryEnd,
    /// Entries share bytes.
    Overlap,
    /// A local header and the central directory differ.
    Mismatch,
    /// What follows the data of an entry does not describe it.
    DataDescriptor,
    /// An extra field is broken, or says what the header does not.
    ExtraField,
    /// An entry is encrypted.
    Encrypted,
    /// An entry is packed by a method other than store and deflate.
    Method,
    /// An entry says of itself what this format does not know.
    Flags,
    /// An entry asks for a newer version of the format than readers have.
    Version,
    /// A link.
    Symlink,
    /// A device, a pipe, a socket, or a file that runs with the rights of its owner.
    SpecialFile,
    /// An entry is called a folder and described as a file, or the other way round.
    KindConflict,
    /// A path leads to another folder, in whatever spelling.
    PathTraversal,
    /// A path begins at the root, at a share of a network or in a home folder.
    AbsolutePath,
    /// A path names a drive or a stream beside a file.
    DrivePath,
    /// A path has a backslash, which separates names on some systems.
    Backslash,
    /// A path has a control character.
    ControlCharacter,
    /// A path has a character that cannot be seen.
    InvisibleCharacter,
    /// A path has a name that some systems refuse, change or keep for devices, or no name where one belongs.
    ReservedName,
    /// A path cannot be read in one way.
    PathEncoding,
    /// A path is too long or too deep.
    PathLength,
    /// Two entries have the same path on some system.
    DuplicatePath,
    /// The data of an entry is broken.
    Data,
    /// The data of an entry is longer or shorter than declared.
    DataSize,
    /// The data of an entry does not have the declared checksum.
    Checksum,
}

impl Rule {
    /// The stable id.
    pub const fn id(self) -> &'static str {
        match self {
            Self::NotZip => "archive.not-zip",
            Self::Unreadable => "archive.unreadable",
            Self::Empty => "archive.empty",
            Self::PackedSize => "archive.packed-size",
            Self::UnpackedSize => "archive.unpacked-size",
            Self::Entries => "archive.entries",
            Self::Ratio => "archive.ratio",
            Self::PrefixData => "archive.prefix-data",
            Self::TrailingData => "archive.trailing-data",
            Self::MultiDisk => "archive.multi-disk",
            Self::Zip64 => "archive.zip64",
            Self::EntryCount => "archive.entry-count",
            Self::CentralDirectory => "archive.central-directory",
            Self::Gap => "archive.gap",
            Self::DirectoryEnd => "archive.directory-end",
            Self::Overlap => "archive.overlap",
            Self::Mismatch => "archive.mismatch",
            Self::DataDescriptor => "archive.data-descriptor",
            Self::ExtraField => "archive.extra-field",
            Self::Encrypted => "archive.encrypted",
            Self::Method => "archive.method",
            Self::Flags => "archive.flags",
            Self::Version => "archive.version",
            Self::Symlink => "archive.symlink",
            Self::SpecialFile => "archive.special-file",
            Self::KindConflict => "archive.kind-conflict",
            Self::PathTraversal => "archive.path-traversal",
            Self::AbsolutePath => "archive.absolute-path",
            Self::DrivePath => "archive.drive-path",
            Self::Backslash => "archive.backslash",
            Self::ControlCharacter => "archive.control-character",
            Self::InvisibleCharacter => "archive.invisible-character",
            Self::ReservedName => "archive.reserved-name",
            Self::PathEncoding => "archive.path-encoding",
            Self::PathLength => "archive.path-length",
            Self::DuplicatePath => "archive.duplicate-path",
            Self::Data => "archive.data",
            Self::DataSize => "archive.data-size",
            Self::Checksum => "archive.checksum",
        }
    }
}

/// Why an archive is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// The reason.
    pub rule: Rule,
    /// The entry it is about, as written there with unprintable characters escaped; empty for the archive itself.
    pub entry: String,
    /// What is wrong, for a person.
    pub message: String,
}

impl Refusal {
    pub(super) fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self { rule, entry: String::new(), message: message.into() }
    }

    /// The same, about an entry.
    pub(super) fn at(mut self, record: &Record) -> Self {
        if self.entry.is_empty() {
            self.entry = printable(&record.name);
        }
        self
    }

    pub(super) fn at_path(mut self, path: &str) -> Self {
        self.entry = printable(path.as_bytes());
        self
    }
}

/// A name for messages: at most 200 characters, none of them a control character.
fn printable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    text.chars().take(200).flat_map(char::escape_debug).collect()
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.entry.is_empty() {
            write!(f, "{}: ", self.entry)?;
        }
        write!(f, "{} ({})", self.message, self.rule.id())
    }
}
