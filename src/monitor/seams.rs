//! Where words and phrases go on over the end of a line.
//!
//! A program wraps its lines wherever they become too long, a shell at the edge of its terminal, and a phrase goes on
//! wherever a sentence does. So the end of one line is read together with the beginning of the next: without what stands
//! between them, or with one blank for it, and without what both begin with.

use super::command::joints;
use super::mapped::Mapped;
use super::prefix;
use super::rules::StreamRules;
use super::scan::COMMAND_CONTEXT_BYTES;

/// Bytes either side of a line end that are read together, for words that were wrapped inside and for phrases. No literal
/// is longer.
const SEAM_BYTES: usize = 40;

/// Marks lines whose beginning completes a word that was wrapped. The line before the first one came earlier, so
/// what the block itself holds says nothing about it.
pub(super) fn mark(block: &[u8], recent: &Mapped, rules: &StreamRules, marks: &mut Vec<usize>) {
    let first = memchr::memchr(b'\n', block).unwrap_or(block.len());
    let first = block[..first].strip_suffix(b"\r").unwrap_or(&block[..first]);
    if is_seam(recent, first, rules) {
        marks.push(0);
    }
    // What a backslash joins is rare: whether it makes a word is seen when the line has its turn.
    for backslash in memchr::memchr_iter(b'\\', block) {
        let rest = &block[backslash + 1..];
        let end = rest.strip_prefix(b"\r").unwrap_or(rest);
        let next = block.len() - end.len() + 1;
        if end.starts_with(b"\n") && next < block.len() {
            marks.push(next);
        }
    }
    let mut line = 0;
    for newline in memchr::memchr_iter(b'\n', block) {
        let next = newline + 1;
        if prefix::may_begin(&block[next..]) {
            let end = memchr::memchr(b'\n', &block[next..]).map_or(block.len(), |nl| next + nl);
            let before = std::str::from_utf8(&block[line..next]).ok().and_then(prefix::last_line);
            if before.is_some_and(|before| crosses_prefix(before, &block[next..end], rules)) {
                marks.push(next);
            }
        }
        if is_spaced(&block[line..newline], &block[next..]) {
            let (before, after) = (without_blanks_after(&block[line..newline]), &block[next..]);
            if rules.may_wrap(before, without_blanks_before(after)) {
                let end = memchr::memchr(b'\n', after).map_or(block.len(), |nl| next + nl);
                if crosses(&block[line..next], &block[next..end], rules) {
                    marks.push(next);
                }
            }
        }
        if next < block.len() && block[..newline].ends_with(b"\r") {
            let end = memchr::memchr(b'\n', &block[next..]).map_or(block.len(), |nl| next + nl);
            let after = block[next..end].strip_suffix(b"\r").unwrap_or(&block[next..end]);
            if crosses(&block[line..newline - 1], after, rules) {
                marks.push(next);
            }
        }
        line = next;
    }
}

/// Whether `line` completes a word of the line before, which the program wrapped or a backslash joins to it, or a
/// phrase that goes on over the line end.
pub(super) fn is_seam(past: &Mapped, line: &[u8], rules: &StreamRules) -> bool {
    let recent = past.as_str();
    let Some(before) = recent.strip_suffix('\n') else { return false };
    if crosses(recent.as_bytes(), line, rules) {
        return true;
    }
    if prefix::may_begin(line)
        && prefix::last_line(recent).is_some_and(|before| crosses_prefix(before, line, rules))
    {
        return true;
    }
    let before = match before.strip_suffix('\r') {
        None => before,
        Some(before) => {
            let start = before.rfind('\n').map_or(0, |nl| nl + 1);
            if crosses(&before.as_bytes()[start..], line, rules) {
                return true;
            }
            before
        }
    };
    before.ends_with('\\') && is_joined(past, line, rules)
}

/// [`is_seam`] where the line before ended in a backslash.
fn is_joined(past: &Mapped, line: &[u8], rules: &StreamRules) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let line = &line[..line.floor_char_boundary(2 * SEAM_BYTES)];
    let start = past.tail_start(COMMAND_CONTEXT_BYTES);
    let text = format!("{}{line}", &past.as_str()[start..]);
    let joints = joints(&text, text.len() - line.len());
    let Some(last) = joints.last() else { return false };
    let after = &text[last.end..];
    let mut before: Vec<u8> = Vec::new();
    let mut from = 0;
    for joint in &joints {
        before.extend(&text.as_bytes()[from..joint.start]);
        from = joint.end;
    }
    crosses(&before, after.as_bytes(), rules)
}

/// Whether a literal begins in one line and ends in the next, without what both begin with.
fn crosses_prefix(before: &str, line: &[u8], rules: &StreamRules) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let Some((end, begin)) = prefix::between(before, line) else { return false };
    let mut left = before.as_bytes()[..end].to_vec();
    left.push(b' ');
    crosses(&left, &line.as_bytes()[begin..], rules)
}

/// Whether a literal begins at the end of `before` and ends in `after`.
fn crosses(before: &[u8], after: &[u8], rules: &StreamRules) -> bool {
    // A literal has one blank where text has a line end with an indentation.
    let line_end = before.strip_suffix(b"\n").filter(|line| is_spaced(line, after));
    let (before, after, is_line_end) = match line_end {
        Some(before) => (without_blanks_after(before), without_blanks_before(after), true),
        None => (before, after, false),
    };
    let left = &before[before.len().saturating_sub(SEAM_BYTES)..];
    let right = &after[..after.len().min(SEAM_BYTES)];
    if left.is_empty() || right.is_empty() {
        return false;
    }
    let mut both = [b' '; 2 * SEAM_BYTES + 1];
    let seam = left.len() + usize::from(is_line_end);
    both[..left.len()].copy_from_slice(left);
    both[seam..seam + right.len()].copy_from_slice(right);
    // What a phrase may go on over, a command does not.
    rules.crosses(&both[..seam + right.len()], seam, is_line_end)
}

/// Whether more than a line end stands between a line and what follows.
fn is_spaced(line: &[u8], after: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    matches!(after, [b' ' | b'\t', ..]) || matches!(line, [.., b' ' | b'\t'])
}

fn without_blanks_after(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., b' ' | b'\t' | b'\r'] = text {
        text = rest;
    }
    text
}

fn without_blanks_before(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    text
}
