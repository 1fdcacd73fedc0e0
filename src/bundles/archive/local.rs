//! Local headers: each must say what the central directory says, and together with their data they must tile the bytes
//! before the central directory.

use super::central::{DESCRIPTOR, Raw, Record, STORED, check_version};
use super::fields::{read_extra, u16_at, u32_at, u64_at};
use super::refusal::{Refusal, Rule};
use super::source::Source;

/// Fixed part of a local header.
const HEADER_BYTES: u64 = 30;
/// Sizes of what may follow the data: checksum and two sizes of four or eight bytes, with or without a signature.
const DESCRIPTOR_BYTES: [u64; 4] = [12, 16, 20, 24];

/// Checks every local header. Answers where the data of each record begins.
pub(super) fn tile<S: Source + ?Sized>(
    source: &S,
    records: &[Record],
    directory: u64,
) -> Result<Vec<u64>, Refusal> {
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by_key(|index| records[*index].offset);
    let mut data = vec![0; records.len()];
    let mut expected = 0;
    for (nth, &index) in order.iter().enumerate() {
        let record = &records[index];
        let next = order.get(nth + 1).map_or(directory, |next| records[*next].offset);
        let tiled = tile_one(source, record, expected, next, directory);
        data[index] = tiled.map_err(|refusal| refusal.at(record))?;
        expected = next;
    }
    Ok(data)
}

/// Checks one local header, which must begin at `expected` and whose entry must end at `next`.
fn tile_one<S: Source + ?Sized>(
    source: &S,
    record: &Record,
    expected: u64,
    next: u64,
    directory: u64,
) -> Result<u64, Refusal> {
    if record.offset >= directory || next > directory {
        return Err(Refusal::new(Rule::CentralDirectory, "its header lies outside the entries"));
    }
    if record.offset != expected {
        // Only the first one can begin late: each other one is where its predecessor is held to end.
        return Err(Refusal::new(Rule::PrefixData, "something stands before the first entry"));
    }
    if next <= record.offset {
        return Err(Refusal::new(Rule::Overlap, "shares its bytes with another entry"));
    }
    let mut header = [0; HEADER_BYTES as usize];
    if next - record.offset < HEADER_BYTES {
        return Err(Refusal::new(Rule::Overlap, "shares its bytes with another entry"));
    }
    read_at(source, &mut header, record.offset)?;
    if !header.starts_with(b"PK\x03\x04") {
        return Err(Refusal::new(Rule::Mismatch, "has no local header where it should be"));
    }
    let (name_len, extra_len) = (u64::from(u16_at(&header, 26)), u64::from(u16_at(&header, 28)));
    let data = record.offset + HEADER_BYTES + name_len + extra_len;
    if data > next {
        return Err(Refusal::new(Rule::Overlap, "shares its bytes with another entry"));
    }
    let mut rest = vec![0; (name_len + extra_len) as usize];
    read_at(source, &mut rest, record.offset + HEADER_BYTES)?;
    let (name, extra) = rest.split_at(name_len as usize);
    let mismatch = |what: &str| {
        Err(Refusal::new(
            Rule::Mismatch,
            format!("its local header has another {what} than the central directory"),
        ))
    };
    if name != record.name {
        return mismatch("name");
    }
    check_version(header[4])?;
    if u16_at(&header, 6) != record.flags {
        return mismatch("set of flags");
    }
    if u16_at(&header, 8) != record.method {
        return mismatch("method");
    }
    let mut raw = Raw { packed: u32_at(&header, 18).into(), size: u32_at(&header, 22).into(), offset: None };
    let has_zip64 = read_extra(extra, &mut raw, name)?;
    let crc = u32_at(&header, 14);
    let has_descriptor = record.flags & DESCRIPTOR != 0;
    // Whoever writes to a pipe leaves open what is not known yet, and some know the size before they begin.
    let agrees = |said: u64, is: u64| said == is || has_descriptor && said == 0;
    if !agrees(crc.into(), record.crc.into()) {
        return mismatch("checksum");
    }
    if !agrees(raw.size, record.size) || !agrees(raw.packed, record.packed) {
        return mismatch("size");
    }
    let Some(end) = data.checked_add(record.packed).filter(|end| *end <= next) else {
        return Err(Refusal::new(Rule::Overlap, "shares its bytes with another entry"));
    };
    let after = next - end;
    if !has_descriptor {
        return if after == 0 { Ok(data) } else { Err(gap()) };
    }
    let has_signature = check_descriptor(source, record, end, after, has_zip64 || record.has_zip64)?;
    // Whoever reads stored data from the front finds its end by looking for a record, and the data may hold one.
    let is_sought = record.method == STORED && record.size > 0 && raw.packed != record.packed;
    if is_sought && (!has_signature || holds_record(source, data..end)?) {
        let message = "is stored as it is with its size behind it, and its end could be taken for another; \
                       pack it, or put the size before it";
        return Err(Refusal::new(Rule::DataDescriptor, message));
    }
    Ok(data)
}

/// Whether a stretch of bytes holds what begins a record of an archive, or reaches into one.
fn holds_record<S: Source + ?Sized>(source: &S, range: std::ops::Range<u64>) -> Result<bool, Refusal> {
    const PIECE: u64 = 64 << 10;
    let mut piece = Vec::new();
    let mut at = range.start;
    while at < range.end {
        // The last bytes of a piece are looked at again: a mark may begin in them.
        let end = (at + PIECE).min(range.end);
        piece.resize((end - at) as usize, 0);
        read_at(source, &mut piece, at)?;
        let is_mark = |found: usize| {
            piece.get(found + 2..found + 4).is_some_and(|kind| {
                matches!(kind, [1, 2] | [3, 4] | [5, 6] | [6, 6] | [6, 7] | [6, 8] | [7, 8])
            })
        };
        if memchr::memmem::find_iter(&piece, b"PK").any(is_mark) {
            return Ok(true);
        }
        at = if end == range.end { end } else { end - 3 };
    }
    Ok(false)
}

fn gap() -> Refusal {
    Refusal::new(Rule::Gap, "is followed by bytes that belong to no entry")
}

/// What follows the data must be a descriptor and nothing else. Answers whether it begins with its signature.
fn check_descriptor<S: Source + ?Sized>(
    source: &S,
    record: &Record,
    at: u64,
    len: u64,
    has_zip64: bool,
) -> Result<bool, Refusal> {
    let wrong = |message: &str| Err(Refusal::new(Rule::DataDescriptor, message));
    if !DESCRIPTOR_BYTES.contains(&len) {
        return if len > 0 { Err(gap()) } else { wrong("its data descriptor is missing") };
    }
    let mut descriptor = vec![0; len as usize];
    read_at(source, &mut descriptor, at)?;
    let has_signature = matches!(len, 16 | 24);
    let fields = if has_signature { &descriptor[4..] } else { &descriptor[..] };
    if has_signature && !descriptor.starts_with(b"PK\x07\x08") {
        return wrong("its data descriptor has no signature");
    }
    let (packed, size) = if fields.len() == 12 {
        (u32_at(fields, 4).into(), u32_at(fields, 8).into())
    } else {
        // Their length is known by the extra field alone (APPNOTE 4.3.9.2), which some put into the directory only.
        if !has_zip64 {
            return wrong("its data descriptor has sizes of 64 bits, and its header none");
        }
        (u64_at(fields, 4), u64_at(fields, 12))
    };
    if (u32_at(fields, 0), packed, size) != (record.crc, record.packed, record.size) {
        return wrong("its data descriptor differs from the central directory");
    }
    Ok(has_signature)
}

fn read_at<S: Source + ?Sized>(source: &S, buffer: &mut [u8], at: u64) -> Result<(), Refusal> {
    source
        .read_exact_at(buffer, at)
        .map_err(|error| Refusal::new(Rule::Unreadable, format!("cannot be read: {error}")))
}
