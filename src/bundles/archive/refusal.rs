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

/// What to do about any of them.
pub const REFUSAL_FIX: &str = "Pack the folder again with an ordinary tool, files only.";

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

impl Rule {
    /// Every one.
    pub const ALL: &[Self] = &[
        Self::NotZip,
        Self::Unreadable,
        Self::Empty,
        Self::PackedSize,
        Self::UnpackedSize,
        Self::Entries,
        Self::Ratio,
        Self::PrefixData,
        Self::TrailingData,
        Self::MultiDisk,
        Self::Zip64,
        Self::EntryCount,
        Self::CentralDirectory,
        Self::Gap,
        Self::DirectoryEnd,
        Self::Overlap,
        Self::Mismatch,
        Self::DataDescriptor,
        Self::ExtraField,
        Self::Encrypted,
        Self::Method,
        Self::Flags,
        Self::Version,
        Self::Symlink,
        Self::SpecialFile,
        Self::KindConflict,
        Self::PathTraversal,
        Self::AbsolutePath,
        Self::DrivePath,
        Self::Backslash,
        Self::ControlCharacter,
        Self::InvisibleCharacter,
        Self::ReservedName,
        Self::PathEncoding,
        Self::PathLength,
        Self::DuplicatePath,
        Self::Data,
        Self::DataSize,
        Self::Checksum,
    ];

    /// What is wrong, in one sentence; a refusal itself says more.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::NotZip => "The archive is no ZIP file, or is cut off.",
            Self::Unreadable => "The archive cannot be read.",
            Self::Empty => "The archive has no entry.",
            Self::PackedSize => "The archive is larger than allowed.",
            Self::UnpackedSize => "The archive unpacks to more than allowed.",
            Self::Entries => "The archive has more entries than allowed.",
            Self::Ratio => "The archive grows more than allowed when unpacked.",
            Self::PrefixData => "Something stands before the first entry.",
            Self::TrailingData => "Something stands after the end record, or the comment hides records.",
            Self::MultiDisk => "The archive is one part of several.",
            Self::Zip64 => "The end record and its 64-bit twin differ.",
            Self::EntryCount => "The number of entries is wrong.",
            Self::CentralDirectory => "The central directory is broken.",
            Self::Gap => "Bytes between entries belong to none.",
            Self::DirectoryEnd => "The central directory does not end where the end record begins.",
            Self::Overlap => "Entries share bytes.",
            Self::Mismatch => "A local header and the central directory differ.",
            Self::DataDescriptor => "What follows the data of an entry does not describe it.",
            Self::ExtraField => "An extra field is broken, or says what the header does not.",
            Self::Encrypted => "An entry is encrypted.",
            Self::Method => "An entry is packed by a method other than store and deflate.",
            Self::Flags => "An entry says of itself what this format does not know.",
            Self::Version => "An entry asks for a newer version of the format than readers have.",
            Self::Symlink => "An entry is a link.",
            Self::SpecialFile => {
                "An entry is a device, a pipe, a socket, or a file that runs with the rights of its owner."
            }
            Self::KindConflict => {
                "An entry is called a folder and described as a file, or the other way round."
            }
            Self::PathTraversal => "A path leads to another folder, in whatever spelling.",
            Self::AbsolutePath => "A path begins at the root, at a share of a network or in a home folder.",
            Self::DrivePath => "A path names a drive or a stream beside a file.",
            Self::Backslash => "A path has a backslash, which separates names on some systems.",
            Self::ControlCharacter => "A path has a control character.",
            Self::InvisibleCharacter => "A path has a character that cannot be seen.",
            Self::ReservedName => {
                "A path has a name that some systems refuse, change or keep for devices, or no name where one belongs."
            }
            Self::PathEncoding => "A path cannot be read in one way.",
            Self::PathLength => "A path is too long or too deep.",
            Self::DuplicatePath => "Two entries have the same path on some system.",
            Self::Data => "The data of an entry is broken.",
            Self::DataSize => "The data of an entry is longer or shorter than declared.",
            Self::Checksum => "The data of an entry does not have the declared checksum.",
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
