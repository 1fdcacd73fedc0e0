//! Commands in strings that code hands to a shell, and in the values of keys that name them.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memchr2;
use regex_automata::meta::Regex;

use super::gate::known;
use super::shown::{COMMAND_BYTES_MAX, Shown};

/// Most elements of a list that is one command.
const WORDS_MAX: usize = 64;

/// Calls that run a command, and keys whose value is one, up to the mark that opens the string or the list.
static CALLS: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r#"(?-u:(?:(?:\b(?:system|popen\d?|Popen|getoutput|getstatusoutput|passthru|shell_exec|proc_open|check_output|check_call"#,
        r#"|execSync|spawnSync|execFileSync|exec|spawn|execa|capture2e?|create_subprocess_shell)"#,
        r#"|\bsubprocess\.(?:run|call))\([ \t\r\n]{0,40}|["'](?:command|cmd|script|bash|shell|run)["'][ \t]{0,4}(?::|=>)[ \t]{0,4})"#,
        r#"[rbfu]{0,2}["'`\[])"#,
    ))
});

/// Hands on the commands in calls and behind keys.
pub(super) fn calls<'t>(text: &'t str, add: &mut dyn FnMut(Shown<'t>)) {
    for call in CALLS.find_iter(text) {
        // The last byte is the mark.
        let at = call.end() - 1;
        if text.as_bytes()[at] == b'[' {
            if let Some((range, words)) = list(text, at + 1) {
                add(Shown { range, command: Cow::Owned(words) });
            }
        } else if let Some(inner) = string(text, at) {
            add(Shown { command: unescaped(&text[inner.clone()]), range: inner });
        }
    }
}

/// What the string holds whose opening mark stands at `at`, one or three of them.
fn string(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mark = bytes[at];
    let limit = text.floor_char_boundary((at + COMMAND_BYTES_MAX).min(text.len()));
    if bytes[at..].starts_with(&[mark; 3]) {
        let start = at + 3;
        let marks = [mark; 3];
        let length = memchr::memmem::find(bytes.get(start..limit)?, &marks)?;
        return Some(start..start + length);
    }
    Some(at + 1..string_end(&bytes[..limit], at + 1, mark)?)
}

/// Where the mark stands that ends a string; one behind a backslash does not.
pub(super) fn string_end(bytes: &[u8], mut at: usize, mark: u8) -> Option<usize> {
    loop {
        at += memchr2(mark, b'\\', bytes.get(at..)?)?;
        if bytes[at] == mark {
            return Some(at);
        }
        at += 2;
    }
}

/// What a list of strings holds, as a command: each string is one word.
fn list(text: &str, start: usize) -> Option<(Range<usize>, String)> {
    let bytes = text.as_bytes();
    let (mut at, mut out) = (start, String::new());
    for _ in 0..WORDS_MAX {
        at += bytes.get(at..)?.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == b',').count();
        match bytes.get(at)? {
            b']' => break,
            b'"' | b'\'' => {
                let inner = string(text, at)?;
                at = inner.end + 1;
                let word = unescaped(&text[inner]);
                let separator = if out.is_empty() { "" } else { " " };
                out.push_str(separator);
                out.push_str(&format!("'{}'", word.replace('\'', r"'\''")));
            }
            _ => return None,
        }
    }
    (!out.is_empty()).then_some((start..at, out))
}

/// What a string means: without the backslashes that its language asks for.
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(escaped @ ('"' | '\'' | '\\' | '/' | '`')) => out.push(escaped),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    Cow::Owned(out)
}
