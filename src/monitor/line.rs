//! One line of a terminal, with a cursor.
//!
//! Nearly every line is only ever appended to, and is plain text. The first time that something is written before its
//! end, it becomes a row of cells. One character is one cell: widths do not matter for what is read.

use super::mapped::Mapped;
use super::terminal::{End, LINE_BYTES_MAX, Lines};

/// Backspaces in a row that somebody who corrects a slip may need. What takes back more is looked at in full.
const SLIP_CHARS_MAX: usize = 3;
/// Most cells of a row. A longer line that is written over goes on as another one.
const CELLS_MAX: usize = 2048;
/// Most pieces of the stream that a line is made of: text in many colours takes more memory for its places than for itself.
const PIECES_MAX: usize = 2048;
/// Columns of no terminal: what is pushed this far is gone from the row.
const COLUMNS_MAX: usize = 1024;
/// Blanks in a row that are handed over; more say no more, and cost nothing to write.
const BLANKS_MAX: usize = 8;
/// Characters that a line may be handed over again for each one that is written and each change. A line that is redrawn
/// more often at so little cost goes on as another one.
const SHOWN_FACTOR: usize = 32;
/// Columns of the narrowest and the widest terminal whose edge is looked for.
const EDGE_COLUMNS: std::ops::RangeInclusive<usize> = 20..=COLUMNS_MAX;
/// Most of the rows before the last one that are kept, in bytes.
const ROWS_BYTES_MAX: usize = LINE_BYTES_MAX / 2;
/// Characters that may be handed over again whatever was written.
const SHOWN_FREE: usize = 64 * 1024;

#[derive(Clone, Copy, Debug)]
struct Cell {
    c: char,
    /// Raw bytes after the first of the line.
    raw: u32,
}

/// The line that a cursor stands in.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The text, while it is only appended to.
    text: Mapped,
    /// The cells, once it is not.
    cells: Option<Vec<Cell>>,
    /// Raw byte that cells count from.
    base: u64,
    cursor: usize,
    /// Characters in `text`: columns, as against bytes.
    columns: usize,
    /// Whether it changed since it was last handed over.
    dirty: bool,
    /// Steps that the cursor was taken back by backspaces alone, since something was last written.
    steps_back: usize,
    /// Whether it went back by more than steps.
    jumped: bool,
    /// Characters that were written, and changes that were made.
    written: usize,
    /// Characters that were handed over before changes.
    shown: usize,
    /// Rows before this one, if what looks like a return is the edge of the terminal, where a shell goes on below.
    rows: Mapped,
    /// Columns of the row below that were written since.
    extent: usize,
}

impl Line {
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether nothing is left to be said of it.
    pub fn is_clear(&self) -> bool {
        self.is_empty() && self.rows.is_empty()
    }

    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    pub fn column(&self) -> usize {
        self.cursor
    }

    pub fn heap(&self) -> usize {
        let cells = self.cells.as_ref().map_or(0, |cells| cells.capacity() * size_of::<Cell>());
        self.text.heap() + self.rows.heap() + cells
    }

    fn len(&self) -> usize {
        self.cells.as_ref().map_or(self.columns, Vec::len)
    }

    pub fn back(&mut self, steps: usize) {
        self.cursor = self.cursor.saturating_sub(steps);
        self.steps_back += steps;
    }

    pub fn forward(&mut self, steps: usize) {
        self.go_to_column(self.cursor.saturating_add(steps));
    }

    pub fn go_to_column(&mut self, column: usize) {
        self.jumped |= column < self.cursor;
        self.cursor = column.min(CELLS_MAX);
    }

    /// Takes note that the cursor returns, and that `next` is what is written then.
    ///
    /// A shell that edits its line goes on below by writing what stands there first, or a blank, at the edge of the
    /// terminal, then a return, and then the row below. Who does not know how wide the terminal is sees a row that is
    /// overwritten from its start. So both are read: the rows as they overwrite each other, and joined.
    pub fn note_return(&mut self, next: char, lines: &mut dyn Lines) {
        let column = self.cursor;
        if !EDGE_COLUMNS.contains(&column) || self.len() < column {
            return;
        }
        let is_edge = |last: [Option<char>; 3]| match last {
            // Who clears a row writes more blanks.
            [Some(' '), Some(' '), Some(' ')] => false,
            [last, ..] => last == Some(next) || last == Some(' '),
        };
        match &self.cells {
            Some(cells) => {
                let row = &cells[..column];
                let mut last = row.iter().rev().map(|cell| cell.c);
                if !is_edge([last.next(), last.next(), last.next()]) {
                    return;
                }
                let row = mapped(&row[..column - 1], self.base);
                self.rows.push_from(&row, 0..row.len());
            }
            None if column == self.columns => {
                let mut last = self.text.as_str().chars().rev();
                let last = [last.next(), last.next(), last.next()];
                if !is_edge(last) {
                    return;
                }
                let edge = last[0].map_or(0, char::len_utf8);
                self.rows.push_from(&self.text, 0..self.text.len() - edge);
            }
            None => return,
        }
        self.extent = 0;
        if self.rows.len() > ROWS_BYTES_MAX || self.rows.pieces() > PIECES_MAX {
            lines.line(&self.rows, End::Aside);
            self.rows.reset(0);
        }
    }

    /// The rows as one line.
    fn joined(&self) -> Mapped {
        let mut joined = self.rows.clone();
        let row = match &self.cells {
            Some(cells) => mapped(&cells[..cells.len().min(self.extent)], self.base),
            None => self.text.clone(),
        };
        joined.push_from(&row, 0..row.len());
        joined
    }

    /// Writes printable ASCII at the cursor.
    pub fn write(&mut self, text: &str, raw: u64, lines: &mut dyn Lines) {
        if self.cells.is_some() || self.cursor != self.columns {
            for (at, c) in text.char_indices() {
                self.write_char(c, raw + at as u64, lines);
            }
            return;
        }
        let mut at = 0;
        while at < text.len() {
            let fits = (LINE_BYTES_MAX - self.text.len()).min(text.len() - at);
            // Part by part: a line that ends inside of the text counts anew, wherever chunks end.
            self.written += fits;
            self.text.push(&text[at..at + fits], raw + at as u64);
            self.columns += fits;
            at += fits;
            self.written();
            if self.is_full() {
                self.end(End::Cut, lines);
            }
        }
    }

    /// Whether the text can grow no further.
    fn is_full(&self) -> bool {
        self.text.len() >= LINE_BYTES_MAX || self.text.pieces() >= PIECES_MAX
    }

    /// Writes a character at the cursor.
    pub fn write_char(&mut self, c: char, raw: u64, lines: &mut dyn Lines) {
        self.written += 1;
        if self.cells.is_none() && self.cursor == self.columns {
            if self.text.len() + c.len_utf8() > LINE_BYTES_MAX {
                self.end(End::Cut, lines);
            }
            self.text.push_char(c, raw);
            self.columns += 1;
            self.written();
            if self.is_full() {
                self.end(End::Cut, lines);
            }
            return;
        }
        if self.cursor < self.len() {
            self.show_before_change(lines);
        }
        self.leave_long(lines);
        if self.cursor >= CELLS_MAX {
            self.end(End::Cut, lines);
            return self.write_char(c, raw, lines);
        }
        let (cursor, base) = (self.cursor, self.cell_base(raw));
        let cells = self.cells();
        let cell = Cell { c, raw: u32::try_from(raw.saturating_sub(base)).unwrap_or(u32::MAX) };
        while cells.len() < cursor {
            cells.push(Cell { c: ' ', ..cell });
        }
        match cells.get_mut(cursor) {
            Some(slot) => *slot = cell,
            None => cells.push(cell),
        }
        self.cursor += 1;
        self.extent = self.extent.max(self.cursor);
        self.dirty = true;
        self.steps_back = 0;
        self.jumped = false;
    }

    fn written(&mut self) {
        self.cursor = self.columns;
        self.extent = self.columns;
        self.dirty = true;
        self.steps_back = 0;
        self.jumped = false;
    }

    fn cell_base(&mut self, raw: u64) -> u64 {
        if self.is_empty() {
            self.base = raw;
        } else if self.cells.is_none() {
            self.base = self.text.raw_of(0);
        }
        self.base
    }

    /// The row of cells, made of the text if need be.
    fn cells(&mut self) -> &mut Vec<Cell> {
        let (text, base) = (&mut self.text, self.base);
        self.cells.get_or_insert_with(|| {
            let raw = |at: usize| u32::try_from(text.raw_of(at).saturating_sub(base)).unwrap_or(u32::MAX);
            let cells = text.as_str().char_indices().map(|(at, c)| Cell { c, raw: raw(at) }).collect();
            text.clear();
            cells
        })
    }

    /// Erases: 0 from the cursor on, 1 up to the cursor, 2 all.
    pub fn erase(&mut self, what: usize, lines: &mut dyn Lines) {
        if self.is_empty() || (what == 0 && self.cursor >= self.len()) {
            return;
        }
        self.jumped = true;
        self.show_before_change(lines);
        self.leave_long(lines);
        if self.is_empty() {
            return;
        }
        let cursor = self.cursor;
        self.cell_base(0);
        let cells = self.cells();
        match what {
            0 => cells.truncate(cursor),
            1 => cells.iter_mut().take(cursor + 1).for_each(|cell| cell.c = ' '),
            _ => cells.clear(),
        }
        self.tidy();
    }

    /// Takes characters out at the cursor.
    pub fn delete(&mut self, count: usize, lines: &mut dyn Lines) {
        self.change(lines, |cells, cursor| {
            cells.drain(cursor..cells.len().min(cursor.saturating_add(count)));
        });
    }

    /// Blanks characters from the cursor on.
    pub fn blank(&mut self, count: usize, lines: &mut dyn Lines) {
        self.change(lines, |cells, cursor| {
            cells.iter_mut().skip(cursor).take(count).for_each(|cell| cell.c = ' ');
        });
    }

    /// Makes room at the cursor.
    pub fn insert(&mut self, count: usize, lines: &mut dyn Lines) {
        self.change(lines, |cells, cursor| {
            if count >= COLUMNS_MAX {
                return cells.truncate(cursor);
            }
            let room = count.min(CELLS_MAX.saturating_sub(cells.len()));
            let raw = cells[cursor].raw;
            cells.splice(cursor..cursor, std::iter::repeat_n(Cell { c: ' ', raw }, room));
        });
    }

    fn change(&mut self, lines: &mut dyn Lines, act: impl FnOnce(&mut Vec<Cell>, usize)) {
        if self.cursor >= self.len() {
            return;
        }
        self.show_before_change(lines);
        self.leave_long(lines);
        if self.cursor >= self.len() {
            return;
        }
        let cursor = self.cursor;
        self.cell_base(0);
        act(self.cells(), cursor);
        self.tidy();
    }

    /// After cells were removed.
    fn tidy(&mut self) {
        if self.cells.as_ref().is_some_and(Vec::is_empty) {
            self.cells = None;
            self.columns = 0;
            self.text.clear();
        }
        self.extent = self.extent.min(self.len());
        self.dirty = !self.is_empty();
    }

    /// Ends a line that is too long to become cells.
    fn leave_long(&mut self, lines: &mut dyn Lines) {
        if self.cells.is_none() && self.columns > CELLS_MAX {
            let cursor = self.cursor;
            self.end(End::Moved, lines);
            self.cursor = cursor.min(CELLS_MAX);
        }
    }

    fn show_before_change(&mut self, lines: &mut dyn Lines) {
        if self.dirty {
            let slip = !self.jumped && self.steps_back <= SLIP_CHARS_MAX;
            self.written += 1;
            self.shown += self.len();
            if self.shown > SHOWN_FREE + SHOWN_FACTOR * self.written {
                let cursor = self.cursor;
                self.end(End::Moved, lines);
                self.cursor = cursor;
                return;
            }
            self.show(if slip { End::Edited } else { End::Redrawn }, lines);
        }
    }

    /// Hands the line over as it stands.
    pub fn show(&mut self, end: End, lines: &mut dyn Lines) {
        self.dirty = false;
        self.glance(end, lines);
    }

    /// Hands over what stands there while nothing more comes, and takes no note of that.
    pub fn pause(&self, end: End, lines: &mut dyn Lines) {
        if !self.rows.is_empty() {
            lines.line(&self.joined(), end);
        }
        self.glance(end, lines);
    }

    /// Hands the line over, and takes no note of that: it is shown again before it changes.
    fn glance(&self, end: End, lines: &mut dyn Lines) {
        match &self.cells {
            None => lines.line(&self.text, end),
            Some(cells) => lines.line(&mapped(cells, self.base), end),
        }
    }

    /// Hands the line over and begins another.
    pub fn end(&mut self, end: End, lines: &mut dyn Lines) {
        if !self.rows.is_empty() {
            lines.line(&self.joined(), End::Aside);
            self.rows.reset(0);
        }
        self.show(end, lines);
        // Few lines are long; what they took is given back.
        self.text.reset(512);
        self.cells = None;
        self.cursor = 0;
        self.columns = 0;
        self.steps_back = 0;
        self.jumped = false;
        self.written = 0;
        self.shown = 0;
        self.extent = 0;
    }
}

fn mapped(cells: &[Cell], base: u64) -> Mapped {
    let mut out = Mapped::default();
    let mut blanks = 0;
    for cell in cells {
        blanks = if cell.c == ' ' { blanks + 1 } else { 0 };
        if blanks > BLANKS_MAX {
            continue;
        }
        out.push_char(cell.c, base + u64::from(cell.raw));
    }
    out
}
