//! Which lines of output make up one command.

use std::ops::Range;

use super::patterns::{CALL, CONTINUATION_PROMPT, FOLDER_PROMPT, OPENER, PROMPT, TRACE};

/// Lines before one that goes on that are looked at with it.
const LINES_GOING_ON_MAX: usize = 3;
/// Blanks that the second line of a tool call begins with at least.
const CALL_INDENT: usize = 4;

/// The start of the line, or of the lines that go on with it. While the last line goes on itself, that is few lines:
/// all are looked at together once the command is complete.
pub(in crate::monitor) fn first_line(text: &str, line: usize) -> usize {
    let mut start = text[..line].rfind('\n').map_or(0, |at| at + 1);
    if line > 0 && text.as_bytes()[line - 1] == b'\n' {
        start = line;
    }
    let most = if goes_on(text) { LINES_GOING_ON_MAX } else { usize::MAX };
    for _ in 0..most {
        // The last question takes an expression, and hardly any line goes on.
        if start == 0 || !goes_on(&text[..start - 1]) || begins_anew(&text[start..]) {
            break;
        }
        start = text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
    }
    start
}

/// Whether the last line of a text is to be continued. The row of a table is not.
pub(in crate::monitor) fn goes_on(text: &str) -> bool {
    let text = text.trim_end();
    let is_row = || text[text.rfind('\n').map_or(0, |at| at + 1)..].trim_start().starts_with('|');
    text.ends_with('\\') || text.ends_with("&&") || text.ends_with('|') && !is_row()
}

/// Whether a line begins with a prompt, so that it goes on with none before.
fn begins_anew(line: &str) -> bool {
    let line = line.split('\n').next().unwrap_or(line);
    [&PROMPT, &FOLDER_PROMPT, &OPENER, &TRACE].into_iter().any(|regex| regex.is_match(line))
}

/// Whether a line begins a logged tool call that ends in a line to come.
pub(in crate::monitor) fn is_open_call(line: &str) -> bool {
    !line.trim_end().ends_with([')', '…']) && CALL.is_match(line)
}

/// What stands between the lines of a logged tool call, of which the last begins at byte `line`, but for a blank.
fn joints_of_call(text: &str, line: usize) -> Vec<Range<usize>> {
    let (mut joints, mut start) = (Vec::new(), line);
    for _ in 0..LINES_GOING_ON_MAX {
        let indent = text[start..].len() - text[start..].trim_start_matches(' ').len();
        let Some(before) = text[..start].strip_suffix('\n').filter(|_| indent >= CALL_INDENT) else { break };
        let before = before.strip_suffix('\r').unwrap_or(before);
        joints.push(before.len()..start + indent - 1);
        start = before.rfind('\n').map_or(0, |at| at + 1);
        if is_open_call(&before[start..]) {
            joints.reverse();
            return joints;
        }
        if before.trim_end().ends_with([')', '…']) {
            break;
        }
    }
    Vec::new()
}

/// The lines at the end of `text` that go on with each other, the last one from byte `line`: what stands between them
/// and is no part of the command that they make. That is backslashes with their line ends, and the prompts that a shell
/// prints while a command goes on.
pub(in crate::monitor) fn joints(text: &str, line: usize) -> Vec<Range<usize>> {
    let mut joints = joints_of_call(text, line);
    if !joints.is_empty() {
        return joints;
    }
    let mut start = line;
    while start > 0 {
        let Some(before) = text[..start].strip_suffix('\n') else { break };
        let before = before.strip_suffix('\r').unwrap_or(before);
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        let may_join = backslashes % 2 == 1 || goes_on(before);
        if !may_join || begins_anew(&text[start..]) {
            break;
        }
        let prompt = CONTINUATION_PROMPT.find(&text[start..]).map_or(0, |found| found.end());
        if backslashes % 2 == 1 {
            joints.push(before.len() - 1..start + prompt);
        } else if prompt > 0 {
            joints.push(start..start + prompt);
        } else {
            break;
        }
        start = before.rfind('\n').map_or(0, |at| at + 1);
    }
    // A quotation mark or a redirection is a prompt only while somebody types.
    if !joints.is_empty() && !begins_anew(&text[start..]) {
        for joint in &mut joints {
            let end = text[..joint.end].rfind('\n').map_or(joint.end, |at| at + 1);
            joint.end = end.max(joint.start);
        }
        joints.retain(|joint| !joint.is_empty());
    }
    joints.reverse();
    joints
}
