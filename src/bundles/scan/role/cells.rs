//! Rows of tables: a column whose head says that it holds the bad way forbids what stands in it, and so does a cell that turns its
//! row down.

use super::{LINE_BYTES_MAX, says};
use crate::bundles::rules::PhraseKind;

/// The cells of a row, each with where it begins. A bar that is escaped or stands in a piece of code ends none.
fn cells(row: &str) -> Vec<(usize, &str)> {
    let lead = row.len() - row.trim_start().trim_start_matches('|').len();
    let end = row.trim_end().trim_end_matches('|').len().max(lead);
    let inner = &row[lead..end];
    let (mut cells, mut start, mut is_code, mut before) = (Vec::new(), 0, false, ' ');
    for (at, c) in inner.char_indices() {
        is_code ^= c == '`';
        if c == '|' && !is_code && before != '\\' {
            cells.push((lead + start, &inner[start..at]));
            start = at + 1;
        }
        before = c;
    }
    cells.push((lead + start, &inner[start..]));
    cells
}

/// Whether the row that begins at `start` forbids the code at `only` in it; all code in it where that is not told.
pub(super) fn is_bad(text: &str, start: usize, row: &str, only: Option<usize>) -> bool {
    let mut head = row;
    let from = text.floor_char_boundary(start.saturating_sub(2 * LINE_BYTES_MAX));
    for above in text[from..start].lines().rev() {
        if !above.trim_start().starts_with('|') {
            break;
        }
        head = above;
    }
    let (heads, cells) = (cells(head), cells(row));
    if cells.len() != heads.len() {
        return false;
    }
    let is_bad_column = |at: usize| says(PhraseKind::Bad, heads[at].1.trim());
    let is_turned_down = (0..cells.len())
        .any(|at| says(PhraseKind::RiskHead, heads[at].1) && says(PhraseKind::TurnedDownCell, cells[at].1));
    let is_asked = |at: usize| {
        let (begin, cell) = cells[at];
        only.is_none_or(|only| (begin..=begin + cell.len()).contains(&only))
    };
    let mut coded = (0..cells.len()).filter(|at| cells[*at].1.contains('`') && is_asked(*at)).peekable();
    let is_first = |at: usize| is_turned_down && !says(PhraseKind::RiskHead, heads[at].1);
    coded.peek().is_some() && coded.all(|at| is_bad_column(at) || is_first(at))
}
