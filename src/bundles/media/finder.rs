//! What the Finder of macOS leaves beside files: AppleDouble files (`._name`) and `.DS_Store`.
//!
//! No agent runs or reads them. All of them counts as text, so that what reads like words in them is scanned.

use super::parts::Parts;
use super::read::{big16, big32, run};

/// First bytes of AppleDouble files of version 2 (RFC 1740, appendix A), and of stores of the Finder.
const DOUBLE: &[u8] = b"\x00\x05\x16\x07\x00\x02\x00\x00";
const STORE: &[u8] = b"\x00\x00\x00\x01Bud1";
/// Bytes before the entries of an AppleDouble file, of each entry, and most entries.
const HEAD_BYTES: usize = 26;
const ENTRY_BYTES: usize = 12;
const ENTRIES_MAX: usize = 16;
/// Largest such file, in bytes: a resource fork can hold anything.
const BYTES_MAX: usize = 256 << 10;

/// Whether a file is called like one that the Finder leaves.
pub(super) fn is_named(name: &str) -> bool {
    name == ".DS_Store" || name.starts_with("._")
}

/// Whether the file begins like one.
pub(super) fn is_marked(name: &str, bytes: &[u8]) -> bool {
    bytes.starts_with(if name == ".DS_Store" { STORE } else { DOUBLE })
}

pub(super) fn walk(name: &str, bytes: &[u8], texts: &mut Parts) -> Option<()> {
    if bytes.len() > BYTES_MAX {
        return None;
    }
    if name == ".DS_Store" {
        store(bytes)?
    } else {
        double(bytes)?
    }
    texts.push(0..bytes.len());
    Some(())
}

/// Entries that lie behind the table of them and reach to the end of the file.
fn double(bytes: &[u8]) -> Option<()> {
    let count = big16(bytes, 24).filter(|count| (1..=ENTRIES_MAX).contains(count))?;
    let start = HEAD_BYTES + ENTRY_BYTES * count;
    let mut end = start;
    for nth in 0..count {
        let entry = HEAD_BYTES + ENTRY_BYTES * nth;
        let (at, len) = (big32(bytes, entry + 4)?, big32(bytes, entry + 8)?);
        run(bytes, at, len).filter(|_| at >= start)?;
        end = end.max(at + len);
    }
    (end == bytes.len()).then_some(())
}

/// A block of allocation data that the head names twice, inside of the file.
fn store(bytes: &[u8]) -> Option<()> {
    let (at, len, again) = (big32(bytes, 8)?, big32(bytes, 12)?, big32(bytes, 16)?);
    run(bytes, at.checked_add(4)?, len)?;
    (at == again && at >= 32).then_some(())
}
