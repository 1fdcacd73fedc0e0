//! Settings as text: JSON as clients forgive it, and what is left where no parser takes a file.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use serde_json::Value;

use super::{Origin, Scan, shell};

/// JSON as clients read it: with comments and trailing commas, if need be.
pub(super) fn parse_json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| serde_json::from_str(&without_comments(text)).ok())
}

fn without_comments(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at, mut in_string) = (Vec::with_capacity(bytes.len()), 0, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        if in_string {
            let take = if rest[0] == b'\\' { 2.min(rest.len()) } else { 1 };
            in_string = rest[0] != b'"';
            out.extend_from_slice(&rest[..take]);
            at += take;
        } else if rest.starts_with(b"//") {
            at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            at += memchr::memmem::find(rest, b"*/").map_or(rest.len(), |end| end + 2);
        } else {
            let close = rest[0] == b',' && {
                let after = rest[1..].iter().find(|byte| !byte.is_ascii_whitespace());
                matches!(after, Some(b'}' | b']'))
            };
            if !close {
                out.push(rest[0]);
            }
            in_string = rest[0] == b'"';
            at += 1;
        }
    }
    String::from_utf8(out).unwrap_or_default()
}

static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
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
