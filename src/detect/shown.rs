//! Whether a text shows an attack rather than being one: documentation names payloads, and tests hand them to what they test.
//!
//! *What counts as shown*: a payload in inline code of a sentence that says something of it, or of a table; one in
//! quotation marks that are discussed; and one in a line of a test. Nobody's order to use it may stand there.
//! *What it misses*: payloads in plain prose without any marks, and statements in other languages that are no discussion.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::{memchr, memchr_iter, memrchr};
use regex_automata::meta::Regex;

use super::concepts::{is_adopted, is_discussed, is_quoted, words_in};

/// How much of its line is read to each side of a match, in bytes.
const LINE_BYTES_MAX: usize = 1_000;
/// How far above a match the head of a test may stand, in bytes.
const TEST_HEAD_BYTES_MAX: usize = 240;
/// Fewest words of a sentence besides the payload.
const PROSE_WORDS_MIN: usize = 3;

/// What a line of a test says.
static ASSERTIONS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\bassert(?:[_!. (A-Z]|$)|\b(?:expect|describe|it|test)\(|\b(?:EXPECT|ASSERT)_[A-Z]|\braises\(|\bparametrize\(",
        r"|\.(?:toThrow|toBe|toEqual|rejects|should)\b",
    ))
});

/// The head of a test, of which the next lines are the body.
static TEST_HEADS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"\bdef test_\w|#\[test\]|\bfn test_\w|\bfunc Test[A-Z]|\b(?:it|test|describe)\(["'`]|@Test\b"#)
});

/// Words that make a sentence a statement or a question.
static STATEMENTS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)\b(?:is|are|was|were|does|did|do|must|should|may|might|can|cannot|could|would|will|works?|makes?|returns?|runs?|",
        r"shows?|escapes?|means?|points?|begins?|looks?|tests?|uses?|gets?|resolves?|evaluates?|writes?|reads?|contains?|",
        r"who|which|that|why|because|such as|like|when|if)\b",
    ))
});

/// An order to use what is shown, or a request to, at the beginning of a clause.
static ORDERS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)(?:^|[,;:.!?)][ \t]|\b(?:and|then|just|now|please|to continue)\b)[ \t>*#\d.-]*(?:please |now |then |just |also |first )*",
        r"\b(?:run|execute|open|read|load|fetch|get|visit|call|request|send|submit|post|enter|type|paste|insert|put|use|set|",
        r"add|append|include|import|evaluate|render|print|show|output|write|copy|download|browse|go|navigate|access|query|",
        r"search|look|cat|give|tell|pass|apply|list|display|reply|respond|save|store)\b",
        r"|\b(?:can|could|would|will) you\b|\byou (?:must|should|need|have|are to)\b|\b(?:i|we) (?:want|need|would)\b",
        r"|\bplease\b|\blet(?:'s| us)\b",
    ))
});

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
}

/// Whether the text only shows what stands at `range`, which lies on character boundaries.
pub(super) fn is_shown(text: &str, range: &Range<usize>) -> bool {
    let line = line_around(text, range);
    if is_tested(text, &line, range) {
        return true;
    }
    match inline_code(text, &line, range) {
        Some(code) => {
            !is_ordered(text, &line, &code) && (is_discussed(text, &code) || is_stated(text, &line, &code))
        }
        None => {
            is_quoted(text, range)
                || double_quoted(text, &line, range.start)
                    .is_some_and(|quotation| is_discussed(text, &quotation))
        }
    }
}

/// The line of a match, as far as it is read.
fn line_around(text: &str, range: &Range<usize>) -> Range<usize> {
    let from = text.ceil_char_boundary(range.start.saturating_sub(LINE_BYTES_MAX)).min(range.start);
    let to = text.floor_char_boundary((range.end + LINE_BYTES_MAX).min(text.len())).max(range.end);
    let start = memrchr(b'\n', &text.as_bytes()[from..range.start]).map_or(from, |at| from + at + 1);
    let end = memchr(b'\n', &text.as_bytes()[range.end..to]).map_or(to, |at| range.end + at);
    start..end
}

/// Whether a test hands the match to what it tests.
fn is_tested(text: &str, line: &Range<usize>, range: &Range<usize>) -> bool {
    let above = text.ceil_char_boundary(line.start.saturating_sub(TEST_HEAD_BYTES_MAX)).min(line.start);
    let above = text[above..line.start].rsplit("\n\n").next().unwrap_or_default();
    ASSERTIONS.is_match(&text[line.start..range.start])
        || ASSERTIONS.is_match(&text[range.end..line.end])
        || TEST_HEADS.is_match(above)
        || TEST_HEADS.is_match(&text[line.start..range.start])
}

/// The inline code that the match begins in, with its marks.
fn inline_code(text: &str, line: &Range<usize>, range: &Range<usize>) -> Option<Range<usize>> {
    let matched = &text[range.clone()];
    let start = range.end - matched.trim_start_matches(['`', ' ']).len();
    let bytes = text.as_bytes();
    let run = |at: usize| bytes[at..line.end].iter().take_while(|byte| **byte == b'`').count();
    let mut at = line.start;
    loop {
        let open = at + memchr(b'`', bytes.get(at..line.end)?)?;
        let marks = run(open);
        let mut next = open + marks;
        if start < next {
            return None;
        }
        // What closes it is as many marks.
        let close = loop {
            let Some(found) = memchr(b'`', &bytes[next..line.end]) else { break None };
            let (from, count) = (next + found, run(next + found));
            next = from + count;
            if count == marks {
                break Some(next);
            }
        };
        match close {
            Some(end) if start < end => return Some(open..end),
            Some(end) => at = end,
            None => at = open + marks,
        }
    }
}

/// The pair of double quotation marks of a line that a place stands between. Payloads bring marks of their own, so that
/// what is quoted cannot be told from the marks next to it.
fn double_quoted(text: &str, line: &Range<usize>, place: usize) -> Option<Range<usize>> {
    let mut marks = memchr_iter(b'"', &text.as_bytes()[line.clone()]).map(|at| line.start + at);
    while let (Some(open), Some(close)) = (marks.next(), marks.next()) {
        if open > place {
            break;
        }
        if place <= close {
            return Some(open..close + 1);
        }
    }
    None
}

/// Whether somebody orders, in the line or in the words around, to use what stands in inline code.
fn is_ordered(text: &str, line: &Range<usize>, code: &Range<usize>) -> bool {
    is_adopted(&text[..code.start], &text[code.end..])
        || ORDERS.is_match(&text[line.start..code.start])
        // With its last mark, behind which no clause begins.
        || ORDERS.is_match(&text[code.end - 1..line.end])
}

/// Whether the sentence around inline code, or the row of a table, says something of it.
fn is_stated(text: &str, line: &Range<usize>, code: &Range<usize>) -> bool {
    let (before, after) = (&text[line.start..code.start], &text[code.end..line.end]);
    let is_row = || before.trim_start().starts_with('|') && after.trim_end().ends_with('|');
    let is_sentence = || {
        words_in(before) + words_in(after) >= PROSE_WORDS_MIN
            && (STATEMENTS.is_match(before) || STATEMENTS.is_match(after))
    };
    is_row() || is_sentence()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_told_from_what_is_sent() {
        const PAYLOAD: &str = "../../etc/passwd";
        for (text, wanted) in [
            ("A name such as `../../etc/passwd` leaves the folder.", true),
            ("The upload refuses ``../../etc/passwd`` with 400.", true),
            ("Names such as `../../etc/passwd` get around filters.", true),
            ("Why does `../../etc/passwd` not work here?", true),
            ("| `../../etc/passwd` | leaves the folder |", true),
            ("assert is_safe(\"../../etc/passwd\") is False", true),
            ("expect(join('/srv', '../../etc/passwd')).toThrow()", true),
            ("def test_climbs(client):\n    r = client.get('../../etc/passwd')\n", true),
            ("An attacker may send \"../../etc/passwd\" as the name.", true),
            ("An attacker may send \"x' ../../etc/passwd\" as the name.", true),
            ("../../etc/passwd", false),
            ("`../../etc/passwd`", false),
            ("file: `../../etc/passwd`", false),
            ("Open `../../etc/passwd`, which is the list of users.", false),
            ("Can you show what `../../etc/passwd` is about?", false),
            ("When that is done, read `../../etc/passwd` as well.", false),
            ("The name `../../etc/passwd` is good. Do what it says.", false),
            ("{\"name\": \"../../etc/passwd\"}", false),
            ("The next file is ../../etc/passwd, which must be read.", false),
            ("Use `cat` and then ../../etc/passwd is `shown`.", false),
        ] {
            let at = text.find(PAYLOAD).expect("is there");
            assert_eq!(is_shown(text, &(at..at + PAYLOAD.len())), wanted, "{text}");
        }
    }
}
