//! Columns of tables: a view in which each cell of a wanted column stands on a line with the head of that column.
//!
//! What a number is often stands in the head of its column alone, hundreds of rows above. Whoever looks for words beside a
//! number finds them in this view as they would in `head: cell`. Read are rows whose cells a character parts (CSV, TSV,
//! Markdown, what databases print), columns of equal width, tables of HTML and lists of SQL's `INSERT`.
//!
//! Linear in the text: each reader goes over it once, lines and rows are bounded, and so is what is written.

mod html;
mod insert;
mod lines;

use std::ops::Range;

use super::layer::Layers;
use super::view::{Segment, Units, View};

/// Longest text that is read: offsets of views are 32 bits wide, and a view holds more than its text.
const TEXT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Longest head of a column, in bytes and in words: what is longer is a sentence.
const HEAD_BYTES_MAX: usize = 96;
const HEAD_WORDS_MAX: usize = 6;
/// Shortest and longest cell that is worth a look, in bytes.
const CELL_BYTES: std::ops::RangeInclusive<usize> = 5..=256;
/// Most columns of one table that are wanted.
const WANTED_MAX: usize = 16;
/// Most cells of one row that are told apart.
const CELLS_MAX: usize = 512;
/// What the view may hold: so many times the text, and so much more.
const FACTOR_MAX: usize = 3;
const SLACK_BYTES: usize = 16 * 1024;

/// Cells of tables, each behind the head of its column.
#[derive(Debug)]
pub struct Columns<'t> {
    /// A line for each cell.
    pub view: View<'t>,
    /// Where the cells stand in it, in order.
    cells: Vec<Range<usize>>,
}

impl Columns<'_> {
    /// Whether a range of the view lies in a cell: what stands before it was put there.
    pub fn holds(&self, range: &Range<usize>) -> bool {
        let next = self.cells.partition_point(|cell| cell.end < range.end);
        self.cells.get(next).is_some_and(|cell| cell.start <= range.start)
    }
}

/// Where the heads of tables are looked for.
#[derive(Clone, Copy, Debug)]
pub enum Heads<'p> {
    /// In every line.
    Anywhere,
    /// At places in the text.
    At {
        /// In the lines of these: something stands there that may be wanted.
        words: &'p [usize],
        /// At the beginning of the paragraphs of these: what stands there may be a cell.
        cells: &'p [usize],
    },
}

impl Heads<'_> {
    /// Whether none are looked for.
    pub fn are_none(&self) -> bool {
        matches!(self, Self::At { words: [], cells: [] })
    }
}

/// The cells of all columns whose head `is_wanted` names; none if there are none.
pub fn columns<'t>(
    parent: &View<'t>,
    heads: Heads<'_>,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Option<Columns<'t>> {
    let text = parent.text();
    if text.len() > TEXT_BYTES_MAX || heads.are_none() {
        return None;
    }
    let bytes_left = text.len() * FACTOR_MAX + SLACK_BYTES;
    let mut found = Found { text, is_wanted, cells: Vec::new(), bytes_left };
    lines::read(&mut found, heads);
    html::read(&mut found);
    insert::read(&mut found);
    found.view(parent)
}

/// A cell and the head of its column.
struct Cell {
    head: Range<usize>,
    at: Range<usize>,
}

/// A column that is wanted: which one of its table, and its head.
#[derive(Clone, Debug)]
struct Wanted {
    nth: usize,
    head: Range<usize>,
}

/// What was found so far.
struct Found<'a> {
    text: &'a str,
    is_wanted: &'a dyn Fn(&str) -> bool,
    cells: Vec<Cell>,
    /// What the view may still hold.
    bytes_left: usize,
}

impl Found<'_> {
    /// The wanted columns of a table, by the cells of the row with its heads.
    fn wanted(&self, heads: &[Range<usize>]) -> Vec<Wanted> {
        let heads = heads.iter().map(|head| self.trimmed(head.clone()));
        let is_head = |head: &Range<usize>| {
            let text = &self.text[head.clone()];
            (2..=HEAD_BYTES_MAX).contains(&head.len())
                && text.bytes().filter(u8::is_ascii_digit).count() < 4
                && !text.contains('\n')
                && text.split_whitespace().count() <= HEAD_WORDS_MAX
                && (self.is_wanted)(text)
        };
        let wanted = heads.enumerate().filter(|(_, head)| is_head(head));
        wanted.map(|(nth, head)| Wanted { nth, head }).take(WANTED_MAX).collect()
    }

    /// Adds the wanted cells of a row.
    fn row(&mut self, wanted: &[Wanted], cells: &[Range<usize>]) {
        for Wanted { nth, head } in wanted {
            if let Some(cell) = cells.get(*nth) {
                self.cell(head, cell.clone());
            }
        }
    }

    /// Adds a cell if it may hold something: a number, or letters that are none of ours.
    fn cell(&mut self, head: &Range<usize>, cell: Range<usize>) {
        let at = self.trimmed(cell);
        let text = self.text[at.clone()].as_bytes();
        let bytes = head.len() + text.len() + SEPARATORS_LEN;
        let may_hold = CELL_BYTES.contains(&text.len())
            && text.iter().any(|byte| byte.is_ascii_digit() || !byte.is_ascii())
            && !text.contains(&b'\n');
        if may_hold && bytes <= self.bytes_left {
            self.bytes_left -= bytes;
            self.cells.push(Cell { head: head.clone(), at });
        }
    }

    /// A range without what stands around the content of a cell: white space, quotation marks, signs of emphasis.
    fn trimmed(&self, range: Range<usize>) -> Range<usize> {
        let is_around = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '*' | '[' | ']');
        let text = &self.text[range.clone()];
        let start = range.start + text.len() - text.trim_start_matches(is_around).len();
        start..start + self.text[start..range.end].trim_end_matches(is_around).len()
    }

    fn view<'t>(mut self, parent: &View<'t>) -> Option<Columns<'t>> {
        if self.cells.is_empty() {
            return None;
        }
        self.cells.sort_by_key(|cell| cell.at.start);
        self.cells.dedup_by(|next, kept| next.at.start < kept.at.end);
        let (mut text, mut segments) = (String::new(), Vec::with_capacity(3 * self.cells.len()));
        let mut cells = Vec::with_capacity(self.cells.len());
        for Cell { head, at } in self.cells {
            // The head leads to the cell, so that what is found never reaches from one to the other.
            let mut push = |view: usize, units| {
                segments.push(Segment {
                    view: view as u32,
                    source: at.start as u32,
                    source_len: at.len() as u32,
                    layers: Layers::NONE,
                    units,
                    is_changed: true,
                });
            };
            push(text.len(), Units::Whole);
            text.push_str(&self.text[head]);
            text.push_str(BETWEEN);
            push(text.len(), Units::SAME);
            cells.push(text.len()..text.len() + at.len());
            text.push_str(&self.text[at.clone()]);
            push(text.len(), Units::Whole);
            text.push_str(BEHIND);
        }
        Some(Columns { view: View::derived(parent, text, &segments), cells })
    }
}

/// What stands between head and cell, and behind it.
const BETWEEN: &str = ": ";
const BEHIND: &str = "\n";
const SEPARATORS_LEN: usize = BETWEEN.len() + BEHIND.len();

#[cfg(test)]
mod tests;
