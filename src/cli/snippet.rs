//! A place in a text, shown to a person: the line with carets under the span.
//!
//! What a person cannot see is spelled out (`<U+200B>`), because hidden characters are part of what is found, and
//! control characters must not reach the terminal. Columns are counted as terminals draw them: wide characters take
//! two, combining marks none. Joined emoji are drawn differently everywhere; carets under them may be too wide.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;

/// Most lines of one span that are shown.
const LINES_MAX: usize = 4;
/// Columns of text on one line; a longer line is shown around its span.
const COLUMNS_MAX: usize = 100;
/// Columns shown before the span on a line that is too long.
const COLUMNS_BEFORE: usize = 30;

/// One line of a text and the carets below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SnippetLine {
    /// Line number from 1.
    pub(super) number: usize,
    /// The text before, inside and after the span.
    pub(super) before: String,
    /// See `before`.
    pub(super) inside: String,
    /// See `before`.
    pub(super) after: String,
    /// Columns before the carets.
    pub(super) indent: usize,
    /// How many carets.
    pub(super) carets: usize,
}

/// The lines that `span` touches, and how many more there are than are shown.
pub(super) fn snippet(text: &str, span: Range<usize>) -> (Vec<SnippetLine>, usize) {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.ceil_char_boundary(span.end.min(text.len())).max(start);
    let mut lines = Vec::new();
    let mut more = 0;
    let mut line_start = 0;
    for (index, line) in text.split('\n').enumerate() {
        let line_end = line_start + line.len();
        // An empty span, and a span of the line end alone, still has a place.
        let is_touched =
            start <= line_end && (end > line_start || end == start || index == 0) && line_start <= end;
        let begins_after = line_start >= end && start < line_start;
        if is_touched && !begins_after {
            if lines.len() < LINES_MAX {
                let within = start.max(line_start) - line_start..end.min(line_end) - line_start;
                lines.push(show(index + 1, line.strip_suffix('\r').unwrap_or(line), within));
            } else {
                more += 1;
            }
        }
        if line_start > end {
            break;
        }
        line_start = line_end + 1;
    }
    (lines, more)
}

fn show(number: usize, line: &str, span: Range<usize>) -> SnippetLine {
    let span = span.start.min(line.len())..span.end.min(line.len());
    let [before, inside, after] =
        [&line[..span.start], &line[span.clone()], &line[span.end..]].map(|part| part.chars().map(drawn));
    let inside = head(inside, COLUMNS_MAX - COLUMNS_BEFORE);
    let before =
        tail(before, COLUMNS_BEFORE.max(COLUMNS_MAX.saturating_sub(inside.columns + COLUMNS_BEFORE)));
    let after = head(after, COLUMNS_MAX.saturating_sub(before.columns + inside.columns));
    SnippetLine {
        number,
        indent: before.columns,
        carets: inside.columns.max(1),
        before: before.text,
        inside: inside.text,
        after: after.text,
    }
}

struct Drawn {
    text: String,
    columns: usize,
}

/// The first characters that fit into `columns`, with a mark where more were left out.
fn head(characters: impl Iterator<Item = Drawn>, columns: usize) -> Drawn {
    let mut shown = Drawn { text: String::new(), columns: 0 };
    for character in characters {
        if shown.columns + character.columns > columns {
            shown.text.push('…');
            shown.columns += 1;
            break;
        }
        shown.text.push_str(&character.text);
        shown.columns += character.columns;
    }
    shown
}

/// The last characters that fit into `columns`, with a mark where more were left out.
fn tail(characters: impl DoubleEndedIterator<Item = Drawn>, columns: usize) -> Drawn {
    let mut kept = Vec::new();
    let mut width = 0;
    for character in characters.rev() {
        if width + character.columns > columns {
            kept.push(Drawn { text: "…".to_owned(), columns: 1 });
            width += 1;
            break;
        }
        width += character.columns;
        kept.push(character);
    }
    Drawn { text: kept.into_iter().rev().map(|drawn| drawn.text).collect(), columns: width }
}

/// A character as it is drawn.
fn drawn(character: char) -> Drawn {
    if character == '\t' {
        return Drawn { text: "    ".to_owned(), columns: 4 };
    }
    if character.is_control() || is_invisible(character) {
        let text = format!("<U+{:04X}>", u32::from(character));
        return Drawn { columns: text.len(), text };
    }
    Drawn { text: character.to_string(), columns: columns(character) }
}

/// Columns that a terminal gives to a visible character.
fn columns(character: char) -> usize {
    if character.is_ascii() {
        return 1;
    }
    if is_combining_mark(character) {
        return 0;
    }
    match u32::from(character) {
        // East Asian Wide and Fullwidth, and emoji.
        0x1100..=0x115F
        | 0x2E80..=0x303E
        | 0x3041..=0xA4CF
        | 0xA960..=0xA97C
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF01..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F
        | 0x1F680..=0x1F6FF
        | 0x1F900..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// Characters that are there and draw nothing, or that change the order in which others are drawn.
fn is_invisible(character: char) -> bool {
    matches!(
        u32::from(character),
        0xAD | 0x34F
            | 0x61C
            | 0x115F..=0x1160
            | 0x17B4..=0x17B5
            | 0x180B..=0x180F
            | 0x200B..=0x200F
            | 0x2028..=0x202E
            | 0x2060..=0x206F
            | 0x3164
            | 0xFE00..=0xFE0F
            | 0xFEFF
            | 0xFFA0
            | 0xFFF9..=0xFFFB
            | 0xE0000..=0xE0FFF
    )
}

/// Text of a caller made safe for a terminal: control and invisible characters spelled out, line ends kept.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { "\n".to_owned() } else { drawn(c).text }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines with their carets, as they look.
    fn look(text: &str, span: Range<usize>) -> Vec<String> {
        let (lines, _) = snippet(text, span);
        let two = |line: &SnippetLine| {
            [
                format!("{}|{}{}{}", line.number, line.before, line.inside, line.after),
                format!(" |{}{}", " ".repeat(line.indent), "^".repeat(line.carets)),
            ]
        };
        lines.iter().flat_map(two).collect()
    }

    #[test]
    fn carets_stand_under_the_span() {
        assert_eq!(look("one two three", 4..7), ["1|one two three", " |    ^^^"]);
        assert_eq!(look("a\nbcd\ne", 2..5), ["2|bcd", " |^^^"]);
        assert_eq!(look("a\nbcd\ne", 3..7), ["2|bcd", " | ^^", "3|e", " |^"]);
        assert_eq!(look("", 0..0), ["1|", " |^"]);
        assert_eq!(look("ab\r\nc", 0..2), ["1|ab", " |^^"]);
    }

    #[test]
    fn columns_are_those_of_a_terminal() {
        assert_eq!(look("日本 x", 7..8), ["1|日本 x", " |     ^"]);
        assert_eq!(look("e\u{301}x", 3..4), ["1|e\u{301}x", " | ^"]);
        assert_eq!(look("日本", 0..3), ["1|日本", " |^^"]);
        assert_eq!(look("a\u{200B}b", 0..5), ["1|a<U+200B>b", " |^^^^^^^^^^"]);
        assert_eq!(look("\x1b[31mx", 5..6), ["1|<U+001B>[31mx", " |            ^"]);
    }

    #[test]
    fn long_lines_are_shown_around_the_span() {
        let text = format!("{}needle{}", "a".repeat(500), "b".repeat(500));
        let shown = look(&text, 500..506);
        assert!(shown[0].chars().count() <= COLUMNS_MAX + 5, "{}", shown[0]);
        assert!(shown[0].starts_with("1|…a") && shown[0].ends_with("b…"));
        let caret = shown[1].find('^').expect("carets");
        assert_eq!(shown[0].chars().skip(caret).take(6).collect::<String>(), "needle");
        let whole = look(&text, 0..text.len());
        assert!(whole[0].ends_with('…'));
    }

    #[test]
    fn a_long_span_shows_its_first_lines() {
        let (lines, more) = snippet("a\nb\nc\nd\ne\nf\ng", 0..9);
        assert_eq!((lines.len(), more), (4, 1));
        let (lines, more) = snippet("a\nb\nc", 0..1);
        assert_eq!((lines.len(), more), (1, 0));
    }

    #[test]
    fn spans_outside_the_text_are_cut() {
        assert_eq!(look("é", 1..99), ["1|é", " |^"]);
        assert_eq!(look("x", 7..9), ["1|x", " | ^"]);
    }
}
