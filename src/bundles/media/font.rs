//! Fonts: a directory of tables that lie side by side, padded with zeros.

use std::collections::BTreeSet;
use std::ops::Range;

use super::packed::unpacked;
use super::parts::Parts;
use super::read::{big16, big32, is_zero, run};
use super::{MayUnpack, NotInert, Texts};

/// Most tables of a font; real ones have about twenty.
const TABLES_MAX: usize = 256;

pub(super) fn walk(bytes: &[u8], texts: &mut Parts) -> Option<()> {
    let count = big16(bytes, 4).filter(|count| (1..=TABLES_MAX).contains(count))?;
    let mut tables = Vec::with_capacity(count);
    for nth in 0..count {
        let record = 12 + 16 * nth;
        let tag = run(bytes, record, 4)?;
        let (at, len) = (big32(bytes, record + 8)?, big32(bytes, record + 12)?);
        run(bytes, at, len)?;
        if !tag.iter().all(|byte| (0x20..0x7F).contains(byte)) {
            return None;
        }
        if tag == b"name" || tag == b"meta" {
            texts.push(at..at + len);
        }
        tables.push(at..at + len);
    }
    tile(bytes, 12 + 16 * count, tables)
}

pub(super) fn walk_woff(bytes: &[u8], texts: Texts<'_>, may_unpack: MayUnpack<'_>) -> Result<(), NotInert> {
    let packed = woff_tables(bytes, texts).ok_or(NotInert::BrokenStructure)?;
    for Table { at, size, is_text } in packed {
        if !may_unpack(size) {
            return Err(NotInert::TooMuch);
        }
        let table = bytes.get(at).and_then(|part| unpacked(part, size));
        let table = table.filter(|table| table.len() == size).ok_or(NotInert::BrokenStructure)?;
        if is_text {
            texts.add(table);
        } else {
            texts.add_readable(&table);
        }
    }
    Ok(())
}

/// A packed table of a font.
struct Table {
    at: Range<usize>,
    /// Bytes that it holds.
    size: usize,
    is_text: bool,
}

fn woff_tables(bytes: &[u8], texts: &mut Parts) -> Option<Vec<Table>> {
    let count = big16(bytes, 12).filter(|count| (1..=TABLES_MAX).contains(count))?;
    if big32(bytes, 8)? != bytes.len() {
        return None;
    }
    let (mut parts, mut packed) = (Vec::with_capacity(count + 2), Vec::new());
    for nth in 0..count {
        let record = 44 + 20 * nth;
        let (at, len) = (big32(bytes, record + 4)?, big32(bytes, record + 8)?);
        let size = big32(bytes, record + 12)?;
        run(bytes, at, len)?;
        let is_text = matches!(run(bytes, record, 4)?, b"name" | b"meta");
        match len.cmp(&size) {
            std::cmp::Ordering::Less => packed.push(Table { at: at..at + len, size, is_text }),
            std::cmp::Ordering::Equal if is_text => texts.push(at..at + len),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => return None,
        }
        parts.push(at..at + len);
    }
    // Metadata, which is packed, and private data, which may be anything.
    let (metadata, metadata_len, size) = (big32(bytes, 24)?, big32(bytes, 28)?, big32(bytes, 32)?);
    if metadata_len > 0 {
        let at = metadata..metadata.checked_add(metadata_len)?;
        packed.push(Table { at: at.clone(), size, is_text: true });
        parts.push(at);
    }
    if big32(bytes, 40)? != 0 {
        return None;
    }
    tile(bytes, 44 + 20 * count, parts)?;
    Some(packed)
}

/// The tables of WOFF 2 are one compressed stream, which is not unpacked here; its size must fill the file, and the directory
/// be one of a font: each table once, with those that every font has.
pub(super) fn walk_woff2(bytes: &[u8], _texts: &mut Parts) -> Option<()> {
    let count = big16(bytes, 12).filter(|count| (1..=TABLES_MAX).contains(count))?;
    let (packed, metadata_len, private_len) = (big32(bytes, 20)?, big32(bytes, 32)?, big32(bytes, 44)?);
    if big32(bytes, 8)? != bytes.len() || metadata_len != 0 || private_len != 0 {
        return None;
    }
    let flavour = run(bytes, 4, 4)?;
    if !matches!(flavour, b"\0\x01\0\0" | b"OTTO" | b"true") || big16(bytes, 14)? != 0 {
        return None;
    }
    let mut at = 48;
    let mut tags = BTreeSet::new();
    for _ in 0..count {
        let flags = *bytes.get(at)?;
        let tag = if flags & 0x3F == 0x3F { run(bytes, at + 1, 4)? } else { bytes.get(at..=at)? };
        let known = [flags & 0x3F];
        if !tags.insert(if tag.len() == 4 { tag } else { &known }.to_vec()) {
            return None;
        }
        at += if flags & 0x3F == 0x3F { 5 } else { 1 };
        at = after_base128(bytes, at)?;
        // Only `glyf` and `loca` (10 and 11) in their transformed version, and others in any but version 0, have one.
        let (tag, version) = (flags & 0x3F, flags >> 6);
        let is_transformed = if matches!(tag, 10 | 11) { version != 3 } else { version != 0 };
        if is_transformed {
            at = after_base128(bytes, at)?;
        }
    }
    // Every font has a head and says how much it holds (WOFF 2, known table tags 1 and 4).
    if packed == 0 || ![1, 4].iter().all(|tag| tags.contains(&vec![*tag])) {
        return None;
    }
    let end = at.checked_add(packed)?;
    let padding = bytes.get(end..)?;
    (padding.len() < 4 && is_zero(padding)).then_some(())
}

/// Where a number of WOFF 2 ends: at most five bytes of seven bits.
fn after_base128(bytes: &[u8], at: usize) -> Option<usize> {
    (at..at + 5).find(|at| bytes.get(*at).is_some_and(|byte| byte & 0x80 == 0)).map(|at| at + 1)
}

/// Whether parts fill the file from `start` on, with at most three zeros after each. Parts may be shared, not overlap.
fn tile(bytes: &[u8], start: usize, mut parts: Vec<Range<usize>>) -> Option<()> {
    parts.sort_by_key(|part| (part.start, part.end));
    parts.dedup();
    let mut at = start;
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let padding = bytes.get(at..part.start)?;
        if padding.len() > 3 || !is_zero(padding) {
            return None;
        }
        at = part.end;
    }
    let padding = bytes.get(at..)?;
    (padding.len() <= 3 && is_zero(padding)).then_some(())
}
