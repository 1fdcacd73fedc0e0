//! Tables of HTML.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem};

use super::{CELLS_MAX, Found, Wanted};

/// Longest tag, in bytes.
const TAG_BYTES_MAX: usize = 1024;

/// A tag that begins or ends a part of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Table,
    Row,
    Cell,
    End,
}

/// Reads every table of that kind.
pub(super) fn read(found: &mut Found<'_>) {
    let bytes = found.text.as_bytes();
    let has_tags = memchr(b'<', bytes).is_some();
    if !has_tags || memmem::find(bytes, b"</t").is_none() && memmem::find(bytes, b"</T").is_none() {
        return;
    }
    // The heads of the table at hand, and the cells of its row.
    let (mut heads, mut cells): (Option<Vec<Wanted>>, Vec<Range<usize>>) = (None, Vec::new());
    let mut open: Option<usize> = None;
    for at in memchr_iter(b'<', bytes) {
        let Some(tag) = tag_at(&bytes[at..]) else { continue };
        if let Some(start) = open.take().filter(|start| *start <= at && cells.len() < CELLS_MAX) {
            cells.push(start..at);
        }
        if tag == Tag::Cell {
            let tag = &bytes[at..bytes.len().min(at + TAG_BYTES_MAX)];
            open = memchr(b'>', tag).map(|end| at + end + 1);
            continue;
        }
        if tag != Tag::End && !cells.is_empty() {
            row(found, &mut heads, &cells);
            cells.clear();
        }
        if tag == Tag::Table {
            heads = None;
        }
    }
    row(found, &mut heads, &cells);
}

/// The first row of a table holds its heads.
fn row(found: &mut Found<'_>, heads: &mut Option<Vec<Wanted>>, cells: &[Range<usize>]) {
    match heads {
        None => *heads = Some(found.wanted(cells)),
        Some(wanted) => found.row(wanted, cells),
    }
}

fn tag_at(bytes: &[u8]) -> Option<Tag> {
    let (is_end, name) = match bytes.get(1)? {
        b'/' => (true, bytes.get(2..)?),
        _ => (false, bytes.get(1..)?),
    };
    let is = |word: &[u8]| {
        name.len() > word.len()
            && name[..word.len()].eq_ignore_ascii_case(word)
            && !name[word.len()].is_ascii_alphanumeric()
    };
    match is_end {
        _ if is(b"table") => Some(Tag::Table),
        false if is(b"tr") => Some(Tag::Row),
        false if is(b"td") || is(b"th") => Some(Tag::Cell),
        true if is(b"tr") || is(b"td") || is(b"th") => Some(Tag::End),
        _ => None,
    }
}
