//! The end of an archive: the end record, its 64-bit twin where there is one, and the comment.

use super::fields::{u16_at, u32_at, u64_at};
use super::refusal::{Refusal, Rule};
use super::source::Source;

/// Size of the end record without its comment.
const END_BYTES: u64 = 22;
/// Longest comment.
const COMMENT_BYTES_MAX: u64 = u16::MAX as u64;
/// Size of the locator of the 64-bit end record.
const LOCATOR_BYTES: u64 = 20;
/// Size of the 64-bit end record without extensible data.
const END64_BYTES: u64 = 56;

/// Where the central directory lies.
#[derive(Debug)]
pub(super) struct End {
    /// Number of entries.
    pub entries: u64,
    /// Where it begins.
    pub directory: u64,
    /// How long it is.
    pub directory_len: u64,
}

/// Finds and reads the end.
pub(super) fn read<S: Source + ?Sized>(source: &S) -> Result<End, Refusal> {
    let not_zip = || Refusal::new(Rule::NotZip, "is no ZIP file, or is cut off");
    let len = source.len();
    if len < END_BYTES {
        return Err(not_zip());
    }
    let tail_len = len.min(END_BYTES + COMMENT_BYTES_MAX + LOCATOR_BYTES);
    let tail_at = len - tail_len;
    let mut tail = vec![0; tail_len as usize];
    read_at(source, &mut tail, tail_at)?;
    let room = tail.len() - (END_BYTES as usize - 4);
    let at = memchr::memmem::rfind(&tail[..room], b"PK\x05\x06").ok_or_else(not_zip)?;
    let end = &tail[at..];
    let comment = &end[END_BYTES as usize..];
    if usize::from(u16_at(end, 20)) != comment.len() {
        let message = "the comment does not reach to the end of the file";
        return Err(Refusal::new(Rule::TrailingData, message));
    }
    // A reader that looks for records from the other side would find them here.
    let hides = |signature: &[u8]| memchr::memmem::find(comment, signature).is_some();
    if [&b"PK\x01\x02"[..], b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"].into_iter().any(hides)
    {
        return Err(Refusal::new(Rule::TrailingData, "the comment hides records of another archive"));
    }
    let end_at = tail_at + at as u64;
    let locator = at.checked_sub(LOCATOR_BYTES as usize).map(|at| &tail[at..at + LOCATOR_BYTES as usize]);
    let found = match locator.filter(|locator| locator.starts_with(b"PK\x06\x07")) {
        Some(locator) => read_end64(source, end, locator, end_at)?,
        None => read_end(end, end_at)?,
    };
    if found.directory.checked_add(found.directory_len) != Some(found.end(end_at)) {
        return Err(misplaced(source, &found, end_at, &tail, at)?);
    }
    Ok(End { entries: found.entries, directory: found.directory, directory_len: found.directory_len })
}

/// What is wrong when the central directory does not end where the end records begin: whatever stands between, or is said
/// to overlap, is read by some. The end record stands at `at` in `tail`, the last bytes of the file.
fn misplaced<S: Source + ?Sized>(
    source: &S,
    found: &Found,
    end_at: u64,
    tail: &[u8],
    at: usize,
) -> Result<Refusal, Refusal> {
    // An end record before this one whose comment takes in everything up to the end of the file.
    let holds_this = |other: usize| {
        let comment = tail.len() - other - END_BYTES as usize;
        usize::from(u16_at(tail, other + 20)) == comment
    };
    let mut others = memchr::memmem::find_iter(&tail[..at], b"PK\x05\x06");
    if others.any(holds_this) {
        return Ok(Refusal::new(Rule::TrailingData, "the comment hides another archive"));
    }
    let begin = found.end(end_at).checked_sub(found.directory_len);
    if let Some(begin) = begin.filter(|begin| *begin > found.directory) {
        let mut signature = [0; 4];
        read_at(source, &mut signature, begin)?;
        if &signature == b"PK\x01\x02" {
            // All offsets are short by the same number: another file, or another archive, stands before this one.
            return Ok(Refusal::new(Rule::PrefixData, "something stands before the first entry"));
        }
    }
    let message = "the central directory does not end where the end record begins";
    Ok(Refusal::new(Rule::DirectoryEnd, message))
}

/// What the end records say.
struct Found {
    entries: u64,
    directory: u64,
    directory_len: u64,
    is_64: bool,
}

impl Found {
    /// Where the end records begin.
    fn end(&self, end_at: u64) -> u64 {
        if self.is_64 { end_at - LOCATOR_BYTES - END64_BYTES } else { end_at }
    }
}

fn read_end(end: &[u8], end_at: u64) -> Result<Found, Refusal> {
    let disks = (u16_at(end, 4), u16_at(end, 6));
    let (here, total) = (u16_at(end, 8), u16_at(end, 10));
    let (len, directory) = (u32_at(end, 12), u32_at(end, 16));
    if disks != (0, 0) {
        return Err(Refusal::new(Rule::MultiDisk, "is one part of several"));
    }
    if here != total {
        return Err(Refusal::new(Rule::EntryCount, "two numbers of entries are given"));
    }
    if total == u16::MAX || len == u32::MAX || directory == u32::MAX {
        return Err(Refusal::new(Rule::Zip64, "the 64-bit end record is missing"));
    }
    if u64::from(directory) > end_at {
        return Err(Refusal::new(Rule::CentralDirectory, "the central directory lies outside the file"));
    }
    Ok(Found { entries: total.into(), directory: directory.into(), directory_len: len.into(), is_64: false })
}

fn read_end64<S: Source + ?Sized>(
    source: &S,
    end: &[u8],
    locator: &[u8],
    end_at: u64,
) -> Result<Found, Refusal> {
    let broken = |message: &str| Refusal::new(Rule::Zip64, message);
    // Where there are none, some readers look for the record elsewhere, and find nothing.
    if u32_at(locator, 4) != 0 || u32_at(locator, 16) != 1 {
        return Err(Refusal::new(Rule::MultiDisk, "is one part of several"));
    }
    let at = end_at.checked_sub(LOCATOR_BYTES + END64_BYTES);
    let at = at.ok_or_else(|| broken("there is no room for the 64-bit end record"))?;
    if u64_at(locator, 8) != at {
        return Err(broken("the 64-bit end record is not where its locator says"));
    }
    let mut end64 = [0; END64_BYTES as usize];
    read_at(source, &mut end64, at)?;
    if !end64.starts_with(b"PK\x06\x06") {
        return Err(broken("there is no 64-bit end record"));
    }
    if u64_at(&end64, 4) != END64_BYTES - 12 {
        return Err(broken("the 64-bit end record carries further data"));
    }
    if u32_at(&end64, 16) != 0 || u32_at(&end64, 20) != 0 {
        return Err(Refusal::new(Rule::MultiDisk, "is one part of several"));
    }
    let (here, total) = (u64_at(&end64, 24), u64_at(&end64, 32));
    let (len, directory) = (u64_at(&end64, 40), u64_at(&end64, 48));
    if here != total {
        return Err(Refusal::new(Rule::EntryCount, "two numbers of entries are given"));
    }
    // A reader that knows no 64-bit records must see the same, or nothing.
    let agrees_16 = |at: usize, value: u64| {
        let short = u16_at(end, at);
        short == u16::MAX || u64::from(short) == value
    };
    let agrees_32 = |at: usize, value: u64| {
        let short = u32_at(end, at);
        short == u32::MAX || u64::from(short) == value
    };
    let agrees = agrees_16(4, 0)
        && agrees_16(6, 0)
        && agrees_16(8, total)
        && agrees_16(10, total)
        && agrees_32(12, len)
        && agrees_32(16, directory);
    if !agrees {
        return Err(broken("the end record and its 64-bit twin differ"));
    }
    Ok(Found { entries: total, directory, directory_len: len, is_64: true })
}

fn read_at<S: Source + ?Sized>(source: &S, buffer: &mut [u8], at: u64) -> Result<(), Refusal> {
    source
        .read_exact_at(buffer, at)
        .map_err(|error| Refusal::new(Rule::Unreadable, format!("cannot be read: {error}")))
}
