//! What an entry is: a file or a folder, and nothing else.

use super::central::Record;
use super::refusal::{Refusal, Rule};

/// Bits of a Unix mode that tell the kind (POSIX `sys/stat.h`).
const KIND: u32 = 0o170_000;
const FILE: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;
/// Kept in memory or in its folder by old systems; on folders alone it has a use today (POSIX `sys/stat.h`, `S_ISVTX`).
const STICKY: u32 = 0o1_000;
/// Runs with the rights of its owner or group.
const SET_ID: u32 = 0o6_000;
const EXECUTABLE: u32 = 0o111;
/// DOS attributes (Microsoft, File Attribute Constants).
const DOS_VOLUME: u32 = 0x08;
const DOS_FOLDER: u32 = 0x10;
const DOS_DEVICE: u32 = 0x40;
const DOS_REPARSE_POINT: u32 = 0x400;

/// What the attributes tell beyond that.
pub(super) struct Kind {
    pub is_executable: bool,
}

/// Checks the attributes of an entry whose name makes it a folder or a file.
pub(super) fn of(record: &Record, is_folder: bool) -> Result<Kind, Refusal> {
    // The mode counts whatever system the entry says it is from: unpackers on Unix obey it all the same.
    let (mode, dos) = (record.attributes >> 16, record.attributes & 0xFFFF);
    let kind = mode & KIND;
    if kind == LINK || dos & DOS_REPARSE_POINT != 0 {
        return Err(Refusal::new(Rule::Symlink, "is a link"));
    }
    if !matches!(kind, 0 | FILE | FOLDER) || dos & DOS_DEVICE != 0 {
        return Err(Refusal::new(Rule::SpecialFile, "is a device, a pipe or a socket"));
    }
    // Some unpackers pass over the name of a disk, others write a file.
    if dos & DOS_VOLUME != 0 {
        return Err(Refusal::new(Rule::SpecialFile, "is the label of a disk"));
    }
    if mode & SET_ID != 0 {
        return Err(Refusal::new(Rule::SpecialFile, "runs with the rights of its owner"));
    }
    if mode & STICKY != 0 && !is_folder {
        return Err(Refusal::new(
            Rule::SpecialFile,
            "is a file with the sticky bit, which is one of folders",
        ));
    }
    let says_folder = kind == FOLDER || dos & DOS_FOLDER != 0;
    if (says_folder && !is_folder) || (kind == FILE && is_folder) {
        let message = "is a folder by its name or its attributes, but not by both";
        return Err(Refusal::new(Rule::KindConflict, message));
    }
    if is_folder && record.size > 0 {
        return Err(Refusal::new(Rule::KindConflict, "is a folder with contents of its own"));
    }
    Ok(Kind { is_executable: !is_folder && mode & EXECUTABLE != 0 })
}
