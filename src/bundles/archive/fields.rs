//! Little-endian fields of records, and extra fields.

use super::central::Raw;
use super::refusal::{Refusal, Rule};

/// 64-bit sizes and offsets (APPNOTE 4.5.3).
const ZIP64: u16 = 0x0001;
/// Info-ZIP's name in UTF-8 (APPNOTE 4.6.9).
const UNICODE_PATH: u16 = 0x7075;
/// WinZip's AES encryption (AE-x).
const AES: u16 = 0x9901;
/// PKWARE's strong encryption (APPNOTE 4.5.12).
const STRONG_ENCRYPTION: u16 = 0x0017;
/// PKWARE's Unix field; longer than its fixed part it names the target of a link (APPNOTE 4.5.7).
const PKWARE_UNIX: u16 = 0x000d;
/// The fixed part of that.
const PKWARE_UNIX_FIXED: usize = 12;
/// ASi's Unix field, with a mode and the target of a link (APPNOTE 4.6.5).
const ASI_UNIX: u16 = 0x756e;

/// Two bytes at `at`.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
}

/// Four bytes at `at`.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

/// Eight bytes at `at`.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Reads the extra fields of a header: they must fill their room, say nothing that the header does not, and give exactly
/// the values that the header left to them. Answers whether sizes of 64 bits are among them.
pub(super) fn read_extra(extra: &[u8], raw: &mut Raw, name: &[u8]) -> Result<bool, Refusal> {
    let broken = |message: &str| Refusal::new(Rule::ExtraField, message);
    let mut rest = extra;
    let mut seen_zip64 = false;
    let mut seen_path = false;
    while !rest.is_empty() {
        if rest.len() < 4 {
            return Err(broken("an extra field is cut off"));
        }
        let (id, len) = (u16_at(rest, 0), usize::from(u16_at(rest, 2)));
        let Some(data) = rest[4..].get(..len) else {
            return Err(broken("an extra field is longer than the room for it"));
        };
        rest = &rest[4 + len..];
        match id {
            ZIP64 if seen_zip64 => return Err(broken("sizes are given twice")),
            ZIP64 => {
                seen_zip64 = true;
                read_zip64(data, raw)?;
            }
            UNICODE_PATH if seen_path => return Err(broken("a second name is given twice")),
            UNICODE_PATH => {
                seen_path = true;
                // Another name beside the first is another archive for readers that know this field.
                let is_same = data.first() == Some(&1)
                    && u32_at(data, 1) == crc32fast::hash(name)
                    && data.get(5..) == Some(name);
                if !is_same {
                    return Err(broken("a second name differs from the first"));
                }
            }
            AES | STRONG_ENCRYPTION => return Err(Refusal::new(Rule::Encrypted, "is encrypted")),
            PKWARE_UNIX if len > PKWARE_UNIX_FIXED => {
                return Err(Refusal::new(Rule::Symlink, "an extra field makes it a link"));
            }
            ASI_UNIX => return Err(broken("has a second mode, in an extra field")),
            _ => {}
        }
    }
    if !seen_zip64 && raw.needs_zip64() {
        return Err(broken("64-bit sizes are missing"));
    }
    Ok(seen_zip64)
}

/// The 64-bit values stand for those that the header gives as all ones, in the order of the header, and for no others.
fn read_zip64(data: &[u8], raw: &mut Raw) -> Result<(), Refusal> {
    let mut at = 0;
    let mut next = |value: &mut u64| {
        if *value == u64::from(u32::MAX) {
            *value = u64_at(data, at);
            at += 8;
        }
    };
    next(&mut raw.size);
    next(&mut raw.packed);
    if let Some(offset) = &mut raw.offset {
        next(offset);
    }
    if at == data.len() && at > 0 {
        return Ok(());
    }
    Err(Refusal::new(Rule::ExtraField, "64-bit sizes do not stand for those left out of the header"))
}
