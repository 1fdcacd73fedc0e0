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
    let is_left_open = has_descriptor && (crc, raw.size, raw.packed) == (0, 0, 0);
    if !is_left_open {
        if crc != record.crc {
            return mismatch("checksum");
        }
        if (raw.size, raw.packed) != (record.size, record.packed) {
            return mismatch("size");
        }
    }
    let Some(end) = data.checked_add(record.packed).filter(|end| *end <= next) else {
        return Err(Refusal::new(Rule::Overlap, "shares its bytes with another entry"));
    };
    let after = next - end;
    if !has_descriptor {
        return if after == 0 { Ok(data) } else { Err(gap()) };
    }
    if record.method == STORED && record.size > 0 {
        // Whoever reads from the front finds the end by looking for a descriptor, and the data may hold one of its own.
        let message = "is stored as it is with its size behind it; pack it, or put the size before it";
        return Err(Refusal::new(Rule::DataDescriptor, message));
    }
    check_descriptor(source, record, end, after, has_zip64)?;
    Ok(data)
}

fn gap() -> Refusal {
    Refusal::new(Rule::Gap, "is followed by bytes that belong to no entry")
}

/// What follows the data must be a descriptor and nothing else.
fn check_descriptor<S: Source + ?Sized>(
    source: &S,
    record: &Record,
    at: u64,
    len: u64,
    has_zip64: bool,
) -> Result<(), Refusal> {
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
        // Whoever reads from the front knows their length by the extra field alone (APPNOTE 4.3.9.2).
        if !has_zip64 {
            return wrong("its data descriptor has sizes of 64 bits, and its header none");
        }
        (u64_at(fields, 4), u64_at(fields, 12))
    };
    if (u32_at(fields, 0), packed, size) != (record.crc, record.packed, record.size) {
        return wrong("its data descriptor differs from the central directory");
    }
    Ok(())
}

fn read_at<S: Source + ?Sized>(source: &S, buffer: &mut [u8], at: u64) -> Result<(), Refusal> {
    source
        .read_exact_at(buffer, at)
        .map_err(|error| Refusal::new(Rule::Unreadable, format!("cannot be read: {error}")))
}
