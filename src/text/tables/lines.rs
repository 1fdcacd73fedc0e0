//! Tables whose rows are lines: cells with a character between them, or columns of equal width.

use std::ops::Range;

use memchr::memchr_iter;
use memchr::memmem::{self, Finder};

use super::{CELLS_MAX, Found, Heads, Wanted};

/// What may part the cells of a row, the surest first.
const DELIMITERS: [&str; 5] = ["\t", "│", "|", ";", ","];
/// Longest line that is a row, in bytes.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// Most digits in a line of heads.
const HEADS_DIGITS_MAX: usize = 6;
/// Lines in a row that fit no table before it is over, such as parts of a cell with line breaks.
const MISSES_MAX: usize = 3;

/// A line, and how often each delimiter stands in it.
struct Line {
    at: Range<usize>,
    counts: [usize; DELIMITERS.len()],
    /// Whether a quotation mark stands in it, so that some delimiters may part nothing.
    has_marks: bool,
    /// Whether two blanks part something in it.
    has_gap: bool,
    /// Digits in it, about: most heads of columns hold none.
    digits: usize,
}

impl Line {
    /// Whether anything parts cells in it.
    fn may_part(&self) -> bool {
        self.has_gap || self.counts.iter().any(|count| *count > 0)
    }
}

/// A table that is being read.
struct Table {
    kind: Kind,
    wanted: Vec<Wanted>,
}

enum Kind {
    /// The delimiter by its number, and how many cells a row has.
    Delimited(usize, usize),
    /// Where the head of each wanted column stands in its line, in characters.
    Aligned(Vec<Range<usize>>),
}

/// Lines at the beginning of a paragraph that may hold the heads of what stands in it.
const FIRST_LINES: usize = 3;

/// Reads the tables of that kind with their heads at these places.
pub(super) fn read(found: &mut Found<'_>, heads: Heads<'_>) {
    let bytes = found.text.as_bytes();
    let finders = Finders { gap: Finder::new("  "), bar: Finder::new(DELIMITERS[1]) };
    let mut done = 0;
    match heads {
        Heads::Anywhere => {
            while done < bytes.len() {
                done = table_at(found, &finders, done);
            }
        }
        Heads::At { words, cells } => {
            let mut places = words.to_vec();
            let mut cells = cells.to_vec();
            cells.sort_unstable();
            let (mut paragraph, mut seen) = (None, 0);
            for cell in cells {
                let until = cell.min(bytes.len()).max(seen);
                let blank = memmem::rfind(&bytes[seen..until], b"\n\n").map(|at| seen + at + 2);
                let begin = blank.or(paragraph).unwrap_or(0);
                // A blank line may begin before where the last look ended.
                seen = until.saturating_sub(1).max(begin);
                if paragraph != Some(begin) {
                    paragraph = Some(begin);
                    let breaks = memchr_iter(b'\n', &bytes[begin..]).map(|at| begin + at + 1);
                    places.extend(std::iter::once(begin).chain(breaks).take(FIRST_LINES));
                }
            }
            places.sort_unstable();
            for place in places {
                if place >= done && place <= bytes.len() {
                    let start = memchr::memrchr(b'\n', &bytes[done..place]).map_or(done, |at| done + at + 1);
                    done = table_at(found, &finders, start);
                }
            }
        }
    }
}

/// What is looked for in each line.
struct Finders<'f> {
    gap: Finder<'f>,
    bar: Finder<'f>,
}

/// Reads the table whose heads stand in the line that begins at `start`, if it is one; where to go on.
fn table_at(found: &mut Found<'_>, finders: &Finders<'_>, start: usize) -> usize {
    let mut lines = Lines { text: found.text, finders, at: start };
    let Some(heads) = lines.next_line() else { return found.text.len() };
    let behind = lines.at;
    if !heads.may_part() || heads.digits > HEADS_DIGITS_MAX {
        return behind;
    }
    // Most lines with a comma are sentences, and the next one has another number of them.
    let first = lines.next_row().filter(|first| may_be_table(&heads, first));
    let Some(table) = first.and_then(|first| Table::begin(found, &heads, &first)) else {
        return behind;
    };
    let (mut misses, mut end) = (0, lines.at);
    while misses <= MISSES_MAX
        && let Some(line) = lines.next_row()
    {
        if table.take(found, &line) {
            (misses, end) = (0, lines.at);
        } else {
            misses += 1;
        }
    }
    end
}

/// The lines of a text from some place on.
struct Lines<'l> {
    text: &'l str,
    finders: &'l Finders<'l>,
    at: usize,
}

impl Lines<'_> {
    /// The next line; none at the end of the text.
    fn next_line(&mut self) -> Option<Line> {
        let bytes = self.text.as_bytes();
        let start = Some(self.at).filter(|at| *at < bytes.len())?;
        let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at);
        self.at = end + 1;
        Some(line_of(self.text, start..end, self.finders))
    }

    /// The next line that is not drawn between rows; none where the next one is blank, or too long for a row.
    fn next_row(&mut self) -> Option<Line> {
        loop {
            let line = self.next_line()?;
            let text = &self.text[line.at.clone()];
            if text.len() > LINE_BYTES_MAX || is_blank(text.as_bytes()) {
                return None;
            }
            if !is_rule(text) {
                return Some(line);
            }
        }
    }
}

impl Table {
    /// A table with its heads in one line and its first row in the next.
    fn begin(found: &mut Found<'_>, above: &Line, line: &Line) -> Option<Self> {
        for nth in 0..DELIMITERS.len() {
            if !may_be_alike(above, line, nth) {
                continue;
            }
            let heads = split(found.text, above, nth);
            let cells = split(found.text, line, nth);
            if heads.len() < 2 || heads.len() != cells.len() {
                continue;
            }
            let wanted = found.wanted(&heads);
            found.row(&wanted, &cells);
            return (!wanted.is_empty()).then_some(Self { kind: Kind::Delimited(nth, heads.len()), wanted });
        }
        if !above.has_gap || !line.has_gap {
            return None;
        }
        let heads = fields(found.text, above);
        let ranges: Vec<_> = heads.iter().map(|(at, _)| at.clone()).collect();
        let wanted = found.wanted(&ranges);
        let places = wanted.iter().map(|wanted| heads[wanted.nth].1.clone()).collect();
        let table = Self { kind: Kind::Aligned(places), wanted };
        let is_one = !table.wanted.is_empty() && heads.len() > 1 && table.take(found, line);
        is_one.then_some(table)
    }

    /// Adds the wanted cells of a line, if it is a row.
    fn take(&self, found: &mut Found<'_>, line: &Line) -> bool {
        match &self.kind {
            Kind::Delimited(nth, count) => {
                let may_be =
                    line.counts[*nth] + 1 >= *count && (line.has_marks || line.counts[*nth] <= count + 1);
                let cells = if may_be { split(found.text, line, *nth) } else { Vec::new() };
                let is_row = cells.len() == *count;
                if is_row {
                    found.row(&self.wanted, &cells);
                }
                is_row
            }
            Kind::Aligned(places) => {
                let mut is_row = false;
                if line.has_gap {
                    let cells = fields(found.text, line);
                    for (wanted, place) in self.wanted.iter().zip(places) {
                        let is_below = |at: &Range<usize>| at.start < place.end && place.start < at.end;
                        let first = cells.partition_point(|(_, at)| at.end <= place.start);
                        if let Some((cell, _)) = cells.get(first).filter(|(_, at)| is_below(at)) {
                            is_row = true;
                            found.cell(&wanted.head, cell.clone());
                        }
                    }
                }
                is_row
            }
        }
    }
}

fn line_of(text: &str, at: Range<usize>, finders: &Finders<'_>) -> Line {
    let bytes = &text.as_bytes()[at.clone()];
    let content = bytes.trim_ascii();
    let start = at.start + (bytes.len() - bytes.trim_ascii_start().len());
    if content.len() > LINE_BYTES_MAX {
        return Line { at, counts: [0; DELIMITERS.len()], has_marks: false, has_gap: false, digits: 0 };
    }
    let count = |byte: u8| counted(bytes, |other| other == byte);
    let bars = if content.is_ascii() { 0 } else { finders.bar.find_iter(content).count() };
    Line {
        counts: [count(b'\t'), bars, count(b'|'), count(b';'), count(b',')],
        has_marks: memchr::memchr(b'"', content).is_some(),
        has_gap: finders.gap.find(content).is_some(),
        digits: counted(content, |byte| byte.is_ascii_digit()),
        // Tabs at its ends part cells that are empty; indented rows begin where their content does.
        at: if bytes.contains(&b'\t') { at.start..at.end } else { start..start + content.len() },
    }
}

/// How many bytes are meant. Blocks are counted in bytes, without branches, which the compiler turns into vector code.
fn counted(bytes: &[u8], is_meant: impl Fn(u8) -> bool) -> usize {
    let block = |block: &[u8]| block.iter().map(|byte| u8::from(is_meant(*byte))).sum::<u8>();
    bytes.chunks(usize::from(u8::MAX)).map(|bytes| usize::from(block(bytes))).sum()
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// Whether a line is drawn between rows, as `|---|---|`, `+====+` and `├───┼───┤` are.
fn is_rule(line: &str) -> bool {
    let is_drawn = |c: char| {
        matches!(c, '-' | '=' | '+' | '|' | ':' | ' ' | '\t' | '\r' | '_')
            || ('\u{2500}'..='\u{257F}').contains(&c)
    };
    line.chars().all(is_drawn)
        && line.chars().any(|c| {
            c == '-' || c == '=' || c == '_' || c == '\u{2500}' || c == '\u{2550}' || c == '\u{2501}'
        })
}

/// Whether two lines may be the heads of a table and its first row.
fn may_be_table(one: &Line, other: &Line) -> bool {
    one.has_gap && other.has_gap || (0..DELIMITERS.len()).any(|nth| may_be_alike(one, other, nth))
}

/// Whether a delimiter may part as many cells in one line as in the other.
fn may_be_alike(one: &Line, other: &Line, nth: usize) -> bool {
    let (first, second) = (one.counts[nth], other.counts[nth]);
    first > 0 && second > 0 && (first == second || one.has_marks || other.has_marks)
}

/// The cells of a line; those in quotation marks may hold the delimiter. Empty where there are too many.
fn split(text: &str, line: &Line, nth: usize) -> Vec<Range<usize>> {
    let delimiter = DELIMITERS[nth];
    let bytes = text.as_bytes();
    let mut cells = Vec::with_capacity(line.counts[nth] + 1);
    let (end, is_framed) = (line.at.end, matches!(delimiter, "|" | "│"));
    let mut start = line.at.start;
    if is_framed && text[line.at.clone()].starts_with(delimiter) {
        start += delimiter.len();
    }
    loop {
        let blanks = bytes[start..end].iter().take_while(|byte| **byte == b' ').count();
        let mut from = start;
        if !is_framed && bytes[..end].get(start + blanks) == Some(&b'"') {
            from = behind_marks(bytes, start + blanks, end);
        }
        let next = memmem::find(&bytes[from..end], delimiter.as_bytes()).map(|at| from + at);
        match next {
            Some(next) => {
                cells.push(start..next);
                start = next + delimiter.len();
                if is_framed && is_blank(&bytes[start..end]) {
                    break;
                }
            }
            None => {
                cells.push(start..end);
                break;
            }
        }
        if cells.len() > CELLS_MAX {
            return Vec::new();
        }
    }
    cells
}

/// Where a cell in quotation marks ends; where it begins if it does not end in its line.
fn behind_marks(bytes: &[u8], start: usize, end: usize) -> usize {
    let mut at = start + 1;
    while let Some(mark) = memchr::memchr(b'"', &bytes[at..end]) {
        at += mark + 1;
        match bytes[..end].get(at) {
            Some(b'"') => at += 1,
            _ => return at,
        }
    }
    start
}

/// What two blanks or more part in a line: each with its place in the line, in characters.
fn fields(text: &str, line: &Line) -> Vec<(Range<usize>, Range<usize>)> {
    // From where the line begins, as indented as it is.
    let begin = text[..line.at.start].rfind('\n').map_or(0, |at| at + 1);
    let (mut fields, mut column, mut blanks) = (Vec::<(Range<usize>, Range<usize>)>::new(), 0, 2);
    for (at, c) in text[begin..line.at.end].char_indices() {
        let at = begin + at;
        if c == ' ' {
            blanks += 1;
        } else {
            let is_full = fields.len() == CELLS_MAX;
            match fields.last_mut() {
                Some((field, place)) if blanks < 2 => {
                    field.end = at + c.len_utf8();
                    place.end = column + 1;
                }
                _ if is_full => return Vec::new(),
                _ => fields.push((at..at + c.len_utf8(), column..column + 1)),
            }
            blanks = 0;
        }
        column += 1;
    }
    fields
}
