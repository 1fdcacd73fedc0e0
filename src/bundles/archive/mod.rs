//! The gate of archives: a ZIP file is read in exactly one way, or refused.
//!
//! ZIP says most things twice (local header and central directory, end record and its 64-bit twin, sizes before and after
//! the data), and readers differ in which they believe; what one reader reviews, another then installs differently. So
//! everything said twice must agree here, and the bytes of the file are tiled: each belongs to exactly one entry, to the
//! central directory or to the end records, with no gap and no overlap.
//!
//! Source of the format: PKWARE APPNOTE 6.3.10. Source of the ambiguities: "My ZIP isn't your ZIP: Identifying and
//! Exploiting Semantic Gaps Between ZIP Parsers", USENIX Security 2025.
//!
//! Does not: write anything. Memory is bounded by the central directory, which has a limit of its own.

mod central;
mod content;
mod end;
mod fields;
mod kind;
mod local;
mod name;
mod refusal;
mod source;

pub use content::{Content, Totals};
pub use refusal::{REFUSAL_FIX, Refusal, Rule};
pub use source::{FileSource, Source};

use central::Record;

/// How much an archive may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Largest archive, in bytes.
    pub packed_max: u64,
    /// Most bytes that all entries may unpack to, nested archives included.
    pub unpacked_max: u64,
    /// Most entries, nested archives included.
    pub entries_max: usize,
    /// Most folders and names in one path.
    pub depth_max: usize,
    /// Most unpacked bytes for each packed one, over the whole archive.
    pub ratio_max: u64,
    /// Unpacked bytes up to which the ratio does not count.
    pub ratio_from: u64,
    /// How deep archives may lie in archives.
    pub nesting_max: u32,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self {
            packed_max: 50 << 20,
            unpacked_max: 200 << 20,
            entries_max: 2_000,
            depth_max: 32,
            ratio_max: 1_000,
            ratio_from: 1 << 20,
            nesting_max: 3,
        }
    }
}

/// One file or folder of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path: names with `/` between them, without one at the end, in NFC.
    pub path: String,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Size once unpacked, as declared; the data is held to it.
    pub size: u64,
    /// Whether somebody may execute it, by its Unix mode.
    pub is_executable: bool,
    packed: u64,
    crc: u32,
    is_deflated: bool,
    /// Where its data begins.
    data: u64,
}

/// An archive whose structure holds. What its entries contain is checked as they are read.
#[derive(Debug)]
pub struct Archive<'s, S: Source + ?Sized> {
    source: &'s S,
    entries: Vec<Entry>,
}

impl<'s, S: Source + ?Sized> Archive<'s, S> {
    /// Reads the structure.
    ///
    /// # Errors
    /// The first reason to refuse the archive.
    pub fn open(source: &'s S, limits: &ArchiveLimits) -> Result<Self, Refusal> {
        let len = source.len();
        if len > limits.packed_max {
            let message = format!("has {len} bytes, more than {}", limits.packed_max);
            return Err(Refusal::new(Rule::PackedSize, message));
        }
        let end = end::read(source)?;
        if end.entries > limits.entries_max as u64 {
            let message = format!("has {} entries, more than {}", end.entries, limits.entries_max);
            return Err(Refusal::new(Rule::Entries, message));
        }
        if end.entries == 0 {
            return Err(Refusal::new(Rule::Empty, "has no entry"));
        }
        let records = central::read(source, &end)?;
        let mut declared = 0_u64;
        for record in &records {
            declared = declared.saturating_add(record.size);
        }
        if declared > limits.unpacked_max {
            let message = format!("unpacks to {declared} bytes, more than {}", limits.unpacked_max);
            return Err(Refusal::new(Rule::UnpackedSize, message));
        }
        let data = local::tile(source, &records, end.directory)?;
        let mut names = name::Names::default();
        let mut entries = Vec::with_capacity(records.len());
        for (record, data) in records.iter().zip(data) {
            entries.push(entry(record, data, limits, &mut names).map_err(|refusal| refusal.at(record))?);
        }
        names.check()?;
        Ok(Self { source, entries })
    }

    /// Bytes of the archive as it is packed.
    pub fn packed_len(&self) -> u64 {
        self.source.len()
    }

    /// Files and folders, in the order of the central directory.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The contents of one entry, read piece by piece against its size and checksum and against `totals`.
    pub fn read<'a>(&'a self, entry: &'a Entry, totals: &'a mut Totals) -> Content<'a, S> {
        Content::new(self.source, entry, totals)
    }
}

fn entry(
    record: &Record,
    data: u64,
    limits: &ArchiveLimits,
    names: &mut name::Names,
) -> Result<Entry, Refusal> {
    let path = name::read(record, limits.depth_max)?;
    let kind = kind::of(record, path.is_folder)?;
    names.add(&path.written, path.is_folder)?;
    Ok(Entry {
        path: path.path,
        is_folder: path.is_folder,
        size: record.size,
        is_executable: kind.is_executable,
        packed: record.packed,
        crc: record.crc,
        is_deflated: record.method == central::DEFLATED,
        data,
    })
}

#[cfg(test)]
mod tests;
