//! Settings as text: JSON as clients forgive it, and what is left where no parser takes a file.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use serde_json::Value;

use super::{Origin, Scan, shell};
use crate::bundles::coverage::Unscanned;
use crate::bundles::rules::short_pattern;

/// Deepest nesting of JSON that is read; the parser refuses what is deeper.
const JSON_DEPTH_MAX: usize = 127;

/// Why a text is not read as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bundles::scan) enum NotJson {
    /// Deeper than is read here; clients may read it.
    TooDeep,
    /// No parser takes it, whatever it forgives.
    Broken,
}

impl NotJson {
    /// What the ledger says of a file that should have been read.
    pub(in crate::bundles::scan) const fn as_unscanned(self) -> Unscanned {
        match self {
            Self::TooDeep => Unscanned::TooComplex,
            Self::Broken => Unscanned::Undecodable,
        }
    }
}

/// JSON as clients read it. Most files are plain; others have comments and trailing commas, numbers that no float holds,
/// or halves of surrogate pairs, all of which some client takes.
///
/// # Errors
/// It cannot be read, and why.
pub(in crate::bundles::scan) fn parse_json(text: &str) -> Result<Value, NotJson> {
    // Some editors put a byte order mark before it, and clients look past it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let (plain, depth) = plain_json(text);
    if depth > JSON_DEPTH_MAX {
        return Err(NotJson::TooDeep);
    }
    serde_json::from_str(&plain).map_err(|_| NotJson::Broken)
}

/// The text without what only some clients take, and how deep it nests.
fn plain_json(text: &str) -> (String, usize) {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    let (mut depth, mut deepest) = (0_usize, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let taken = match rest[0] {
            b'"' => string(rest, &mut out),
            b'/' if rest.starts_with(b"//") => memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
            b'/' if rest.starts_with(b"/*") => {
                memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4)
            }
            b'-' | b'0'..=b'9' => number(rest, &mut out),
            b',' if closes(&rest[1..]) => 1,
            byte => {
                match byte {
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                deepest = deepest.max(depth);
                out.push(byte);
                1
            }
        };
        at += taken;
    }
    (String::from_utf8(out).unwrap_or_default(), deepest)
}

/// Whether the next sign closes a list or an object, comments between looked past.
fn closes(mut rest: &[u8]) -> bool {
    loop {
        rest = rest.trim_ascii_start();
        if rest.starts_with(b"//") {
            rest = &rest[memchr::memchr(b'\n', rest).unwrap_or(rest.len())..];
        } else if rest.starts_with(b"/*") {
            rest = &rest[memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4)..];
        } else {
            return matches!(rest.first(), Some(b'}' | b']'));
        }
    }
}

/// Copies a string to its closing quote, halves of surrogate pairs replaced. Answers its bytes.
fn string(rest: &[u8], out: &mut Vec<u8>) -> usize {
    out.push(b'"');
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'"' => {
                out.push(b'"');
                return at + 1;
            }
            b'\\' => {
                let unit = |at: usize| -> Option<u16> {
                    let digits = rest.get(at..at + 6)?.strip_prefix(b"\\u")?;
                    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
                };
                let take = match (unit(at), unit(at + 6)) {
                    (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
                    (Some(0xd800..=0xdfff), _) => {
                        out.extend_from_slice("\u{fffd}".as_bytes());
                        at += 6;
                        continue;
                    }
                    (Some(_), _) => 6,
                    (None, _) => 2,
                };
                let end = (at + take).min(rest.len());
                out.extend_from_slice(&rest[at..end]);
                at = end;
            }
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
    rest.len()
}

/// Copies a number, or 0 for one that no float holds. Answers its bytes.
fn number(rest: &[u8], out: &mut Vec<u8>) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    let len = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
    let written = std::str::from_utf8(&rest[..len]).ok().and_then(|text| text.parse::<f64>().ok());
    match written {
        Some(value) if !value.is_finite() => out.push(b'0'),
        // Floats hold fewer digits than may stand there.
        Some(_) if len > 300 => out.push(b'0'),
        _ => out.extend_from_slice(&rest[..len]),
    }
    len
}

static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
    short_pattern(
        r#"["']?\b(?:command|cmd|run|apiKeyHelper|exec)\b["']?[ \t]*:[ \t]*(?:["'])?(?<value>[^\n]{1,2000})"#,
    )
    .unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
});

/// Commands in settings that no parser takes: clients differ in what they forgive.
pub(super) fn commands_of_broken(scan: &mut Scan<'_, '_>, text: &str, line: u32, origin: Origin) {
    let mut commands = Vec::new();
    let mut captures = MEMBER.create_captures();
    let (mut at, mut below) = (0, 0);
    while at < text.len() && commands.len() < 200 {
        MEMBER.captures(regex_automata::Input::new(text).range(at..), &mut captures);
        let (Some(all), Some(value)) = (captures.get_match(), captures.get_group_by_name("value")) else {
            break;
        };
        let command = text[value.start..value.end].trim_end_matches([',', '"', '\'', ' ', '}']);
        below += memchr::memchr_iter(b'\n', &text.as_bytes()[at..all.start()]).count() as u32;
        commands.push((command.replace("\\\"", "\""), line + below));
        below += memchr::memchr_iter(b'\n', &text.as_bytes()[all.start()..all.end()]).count() as u32;
        at = all.end();
    }
    for (command, line) in commands {
        match origin {
            Origin::File => shell::command(scan, &command, line),
            Origin::Block => shell::script(scan, &command, line, shell::Place::Fence),
        }
    }
}
