//! The central directory: one record for each entry, nothing between them and nothing after.

use super::end::End;
use super::fields::{read_extra, u16_at, u32_at};
use super::refusal::{Refusal, Rule};
use super::source::Source;

/// Method: the bytes themselves.
pub(super) const STORED: u16 = 0;
/// Method: deflate.
pub(super) const DEFLATED: u16 = 8;

/// Fixed part of a record.
const RECORD_BYTES: usize = 46;
/// Largest central directory, in bytes: two thousand entries with long names take a tenth.
const DIRECTORY_BYTES_MAX: u64 = 4 << 20;
/// Flag: encrypted.
const ENCRYPTED: u16 = 1 << 0;
/// Flag: strongly encrypted.
const STRONGLY_ENCRYPTED: u16 = 1 << 6;
/// Flag: the central directory is encrypted.
const MASKED: u16 = 1 << 13;
/// Flag: sizes and checksum follow the data.
pub(super) const DESCRIPTOR: u16 = 1 << 3;
/// Flag: the name is UTF-8.
pub(super) const UTF8: u16 = 1 << 11;
/// Flags that are understood: how hard deflate tried, sizes that follow, UTF-8.
const KNOWN_FLAGS: u16 = 0b110 | DESCRIPTOR | UTF8;
/// Highest version of the format that a reader may need. Store, deflate and 64-bit sizes need 4.5 (APPNOTE 4.4.3.2);
/// Info-ZIP's unzip passes over entries that need more than 4.6, so whoever unpacks with it would get another tree.
const VERSION_MAX: u8 = 46;

/// What a header says of an entry, before its extra fields are read.
#[derive(Debug)]
pub(super) struct Raw {
    pub size: u64,
    pub packed: u64,
    /// Offset of the local header; local headers themselves have none.
    pub offset: Option<u64>,
}

impl Raw {
    /// Whether the header leaves a value to the extra fields.
    pub(super) fn needs_zip64(&self) -> bool {
        let all_ones = u64::from(u32::MAX);
        self.size == all_ones || self.packed == all_ones || self.offset == Some(all_ones)
    }
}

/// One record.
#[derive(Debug)]
pub(super) struct Record {
    pub flags: u16,
    pub method: u16,
    pub crc: u32,
    pub size: u64,
    pub packed: u64,
    /// Whether it gives sizes of 64 bits.
    pub has_zip64: bool,
    /// Where its local header begins.
    pub offset: u64,
    pub name: Vec<u8>,
    /// Attributes: Unix mode in the upper half, DOS attributes in the lower.
    pub attributes: u32,
}

/// Reads all records.
pub(super) fn read<S: Source + ?Sized>(source: &S, end: &End) -> Result<Vec<Record>, Refusal> {
    let broken = |message: &str| Refusal::new(Rule::CentralDirectory, message);
    if end.directory_len > DIRECTORY_BYTES_MAX {
        return Err(broken("the central directory is too large"));
    }
    let mut bytes = vec![0; end.directory_len as usize];
    source
        .read_exact_at(&mut bytes, end.directory)
        .map_err(|error| Refusal::new(Rule::Unreadable, format!("cannot be read: {error}")))?;
    let mut records = Vec::with_capacity(end.entries as usize);
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        if rest.get(..4) != Some(b"PK\x01\x02") {
            return Err(broken("what should be a record of the central directory is none"));
        }
        if records.len() as u64 == end.entries {
            return Err(Refusal::new(
                Rule::EntryCount,
                "the central directory has more entries than it says",
            ));
        }
        let lens = [28, 30, 32].map(|at| usize::from(u16_at(rest, at)));
        let [name_len, extra_len, comment_len] = lens;
        let whole = RECORD_BYTES + name_len + extra_len + comment_len;
        if rest.len() < whole {
            return Err(broken("a record of the central directory is cut off"));
        }
        let (record, after) = rest.split_at(whole);
        rest = after;
        let name = &record[RECORD_BYTES..RECORD_BYTES + name_len];
        let extra = &record[RECORD_BYTES + name_len..RECORD_BYTES + name_len + extra_len];
        records.push(read_one(record, name, extra)?);
    }
    if records.len() as u64 != end.entries {
        return Err(Refusal::new(Rule::EntryCount, "the central directory has fewer entries than it says"));
    }
    Ok(records)
}

fn read_one(record: &[u8], name: &[u8], extra: &[u8]) -> Result<Record, Refusal> {
    let mut raw = Raw {
        packed: u32_at(record, 20).into(),
        size: u32_at(record, 24).into(),
        offset: Some(u32_at(record, 42).into()),
    };
    let mut read = Record {
        flags: u16_at(record, 8),
        method: u16_at(record, 10),
        crc: u32_at(record, 16),
        size: 0,
        packed: 0,
        has_zip64: false,
        offset: 0,
        name: name.to_vec(),
        attributes: u32_at(record, 38),
    };
    let checked = check_flags(read.flags)
        .and_then(|()| read_extra(extra, &mut raw, name))
        .and_then(|has_zip64| {
            read.has_zip64 = has_zip64;
            check_method(read.method)
        })
        .and_then(|()| {
            let (disk, version) = (u16_at(record, 34), record[6]);
            if disk != 0 {
                return Err(Refusal::new(Rule::MultiDisk, "lies on another disk"));
            }
            check_version(version)
        });
    checked.map_err(|refusal| refusal.at(&read))?;
    (read.size, read.packed, read.offset) = (raw.size, raw.packed, raw.offset.unwrap_or_default());
    if read.method == STORED && read.size != read.packed {
        let message = "is stored as it is, yet its two sizes differ";
        return Err(Refusal::new(Rule::DataSize, message).at(&read));
    }
    Ok(read)
}

/// Whether an entry with these flags can be read.
fn check_flags(flags: u16) -> Result<(), Refusal> {
    if flags & (ENCRYPTED | STRONGLY_ENCRYPTED | MASKED) != 0 {
        return Err(Refusal::new(Rule::Encrypted, "is encrypted"));
    }
    if flags & !KNOWN_FLAGS != 0 {
        return Err(Refusal::new(Rule::Flags, format!("has unknown flags {:#06x}", flags & !KNOWN_FLAGS)));
    }
    Ok(())
}

/// Whether every reader knows a version of the format, given times ten.
pub(super) fn check_version(version: u8) -> Result<(), Refusal> {
    if version <= VERSION_MAX {
        return Ok(());
    }
    let message = format!("needs version {}.{} of the format", version / 10, version % 10);
    Err(Refusal::new(Rule::Version, message))
}

fn check_method(method: u16) -> Result<(), Refusal> {
    if matches!(method, STORED | DEFLATED) {
        return Ok(());
    }
    let message = format!("is packed by method {method}; use deflate");
    Err(Refusal::new(if method == 99 { Rule::Encrypted } else { Rule::Method }, message))
}
