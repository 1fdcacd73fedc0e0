//! Texts in programs and settings that a model reads: descriptions of tools and of their parameters, prompts, instructions.
//!
//! They are found by what they are given to, in any language: a name that says so, a function that registers a tool, the
//! first text of a function that is marked as one. What stands in them is judged like a document.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::Scan;
use crate::bundles::files::Syntax;
use crate::bundles::rules::short_pattern;

/// Shortest text that can be an order, and longest one that is read, in bytes.
const TEXT_BYTES_MIN: usize = 24;
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Bytes behind the mark of a function in which its first text begins.
const MARKED_BYTES: usize = 2_000;
/// Bytes between two texts: more than rules look around a place, so that none is read together with the next.
const GAP: usize = 300;
/// Texts of one list, or of one call.
const TEXTS_MAX: usize = 64;

fn known(pattern: &str) -> Regex {
    short_pattern(pattern).unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
}

/// The name of a text for a model, up to where the text begins.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r#"(?i)\b\w{0,40}(?:descri(?:ption|be)|instruction|prompt|docstring|guidance)\w{0,40}["'`\]]{0,2}"#,
        r"(?:\s{0,3}:\s{0,3}&?\w{1,12}(?:\[\])?\s{0,3}=|\s{0,3}(?:=>|:=|[:=(]))[\s({\[]{0,40}",
    ))
});
/// A function that registers a tool, up to its first argument.
static REGISTERED: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"(?i)\b(?:(?:register|add|create|define|new|server|mcp|make)_?\.?)?(?:tool|prompt|resource)\(\s{0,40}",
    )
});
/// A decorator or an attribute that makes a function a tool.
static MARKED: LazyLock<Regex> =
    LazyLock::new(|| known(r"(?im)^[ \t]*(?:@|#\[|\[)[\w.]{0,60}(?:tool|prompt|resource)\w{0,20}"));

/// The texts of a file, put together.
#[derive(Default)]
struct Texts {
    joined: String,
    /// Where each begins in `joined`, where in the file, and whether its lines are those of the file.
    starts: Vec<(usize, usize, bool)>,
}

impl Texts {
    fn add(&mut self, value: &str, at: usize, has_lines: bool) {
        if value.len() < TEXT_BYTES_MIN || !value.contains(' ') {
            return;
        }
        self.starts.push((self.joined.len(), at, has_lines));
        self.joined.push_str(&value[..value.floor_char_boundary(TEXT_BYTES_MAX)]);
        self.joined.push('\n');
        self.joined.extend(std::iter::repeat_n(' ', GAP));
        self.joined.push('\n');
    }
}

/// Looks for the rules about documents in every such text of the file.
pub(super) fn scan(scan: &mut Scan<'_, '_>) {
    let texts = texts(scan.text, scan.syntax == Syntax::Yaml);
    if texts.joined.is_empty() {
        return;
    }
    let mut hits = Vec::new();
    scan.patterns_in_text("document", &texts.joined, &mut hits);
    for (at, rule) in hits {
        let nth = texts.starts.partition_point(|(start, ..)| *start <= at).saturating_sub(1);
        let Some((start, source, has_lines)) = texts.starts.get(nth).copied() else { continue };
        let below = if has_lines { texts.joined[start..at].matches('\n').count() as u32 } else { 0 };
        let line = scan.lines.line_of(source) + below;
        scan.add_pattern(rule, line);
    }
}

/// The texts for a model in a file.
fn texts(text: &str, is_yaml: bool) -> Texts {
    let mut out = Texts::default();
    let mut behind = 0;
    for found in NAMED.find_iter(text) {
        if found.start() < behind {
            continue;
        }
        if is_yaml && let Some((value, end)) = plain_of_yaml(text, found.start()) {
            out.add(&value, found.end().min(text.len()), false);
            behind = end;
            continue;
        }
        behind = all_at(text, found.end(), 1, &mut out);
    }
    for found in REGISTERED.find_iter(text) {
        all_at(text, found.end(), 3, &mut out);
    }
    for found in MARKED.find_iter(text) {
        let rest = &text[found.end()..text.floor_char_boundary(found.end() + MARKED_BYTES)];
        // The first text of several lines, or the first one behind the head of the function.
        let heads = [rest.find("\"\"\""), rest.find("'''")];
        if let Some(at) = heads.into_iter().flatten().min() {
            all_at(text, found.end() + at, 1, &mut out);
        } else if let Some(at) = rest.find(":\n") {
            all_at(text, found.end() + at + 2, 1, &mut out);
        }
    }
    out
}

/// Takes the text at `at`, and up to `count` behind commas; those that are added to each other are one. Answers where they end.
fn all_at(text: &str, at: usize, count: usize, out: &mut Texts) -> usize {
    let (mut at, mut taken) = (at, 0);
    while taken < count {
        let begins = at;
        let Some((value, end, has_lines)) = sum(text, at) else { return at };
        out.add(&value, begins, has_lines);
        taken += 1;
        at = end;
        let rest = &text[at..];
        let after = rest.trim_start();
        if !after.starts_with(',') {
            break;
        }
        at += rest.len() - after.len() + 1;
    }
    at
}

/// Texts in quotes that stand beside each other, with a sign of addition, or in a list that is joined.
fn sum(text: &str, at: usize) -> Option<(String, usize, bool)> {
    let (mut value, mut end, mut has_lines) = quoted(text, at)?;
    for _ in 0..TEXTS_MAX {
        let rest = &text[end..];
        let after = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '+' | '\\' | '.'));
        let Some((more, behind, _)) = quoted(text, end + rest.len() - after.len()) else { break };
        value.push_str(&more);
        (end, has_lines) = (behind, false);
    }
    Some((value, end, has_lines))
}

/// A text in quotes at `at`, escapes undone; where it ends, and whether its lines are those of the file.
fn quoted(text: &str, at: usize) -> Option<(String, usize, bool)> {
    let rest = &text[at..];
    let open = rest.trim_start();
    // `f"…"`, `r"…"`, `String.raw`.
    let bare = open
        .trim_start_matches("String.raw")
        .trim_start_matches(['f', 'r', 'b', 'u', 'F', 'R', 'B', 'U', '@', '$']);
    let skipped = rest.len() - bare.len();
    let quote = ["\"\"\"", "'''", "\"", "'", "`"].into_iter().find(|quote| bare.starts_with(quote))?;
    if open.len() - bare.len() > 2 && !open.starts_with("String.raw") {
        return None;
    }
    let inner = &bare[quote.len()..];
    let (mut value, mut chars) = (String::new(), inner.char_indices());
    while let Some((offset, c)) = chars.next() {
        if inner[offset..].starts_with(quote) {
            let has_lines = value.matches('\n').count() == inner[..offset].matches('\n').count();
            return Some((value, at + skipped + quote.len() + offset + quote.len(), has_lines));
        }
        if offset > TEXT_BYTES_MAX {
            break;
        }
        match c {
            '\\' => match chars.next().map(|(_, c)| c) {
                Some('n' | 'r') => value.push('\n'),
                Some('t') => value.push(' '),
                Some('u') => {
                    let digits = chars.as_str();
                    let digits = digits.get(..4).unwrap_or_default();
                    let code = u32::from_str_radix(digits, 16).ok();
                    if let Some(c) = code.and_then(char::from_u32) {
                        value.push(c);
                        for _ in 0..4 {
                            chars.next();
                        }
                    }
                }
                Some('\n') => {}
                Some(c) => value.push(c),
                None => break,
            },
            // Only some quotes go on in the next line.
            '\n' if matches!(quote, "\"" | "'") => {
                if !is_open_line(inner, offset) {
                    return None;
                }
                value.push(c);
            }
            c => value.push(c),
        }
    }
    None
}

/// Whether a text in simple quotes goes on in the next line, as it does in YAML and in some languages: only where the line
/// that follows is indented, and does not look like a setting of its own.
fn is_open_line(inner: &str, at: usize) -> bool {
    let next = inner[at + 1..].split('\n').next().unwrap_or_default();
    next.starts_with([' ', '\t']) && !next.contains(" = ")
}

/// A value of YAML without quotes, of one line or of a block; where it ends.
fn plain_of_yaml(text: &str, name: usize) -> Option<(String, usize)> {
    let first = text[name..].split('\n').next()?;
    let (key, rest) = first.split_once(':')?;
    let rest = rest.trim();
    if key.contains(['"', '\'', '(', '{']) || rest.starts_with(['"', '\'', '{', '[']) {
        return None;
    }
    let line = text[..name].rfind('\n').map_or(0, |at| at + 1);
    let depth = text[line..name].len();
    let mut out = if rest.starts_with(['|', '>']) { String::new() } else { rest.to_owned() };
    let mut end = name + first.len();
    for line in text[end..].split_inclusive('\n').skip(1) {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        if out.len() > TEXT_BYTES_MAX || !line.trim().is_empty() && indent <= depth {
            break;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(line.trim());
        end += line.len();
    }
    Some((out, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, is_yaml: bool) -> Vec<String> {
        let Texts { joined, starts } = texts(text, is_yaml);
        let ends = starts.iter().map(|(start, ..)| *start).skip(1).chain([joined.len()]);
        starts.iter().zip(ends).map(|((start, ..), end)| joined[*start..end].trim().to_owned()).collect()
    }

    #[test]
    fn texts_for_a_model_are_found() {
        for (text, wanted) in [
            (r#"s.tool("add", "Adds two numbers for the user.", {}, f)"#, "Adds two numbers for the user."),
            (
                "s.registerTool('add', { description: `Adds two\nnumbers for the user.` }, f)",
                "Adds two\nnumbers for the user.",
            ),
            (r#"{"description": "Adds two\nnumbers \u0066or the user."}"#, "Adds two\nnumbers for the user."),
            (
                "const D = { description: 'Adds two ' +\n  'numbers for the user.' };",
                "Adds two numbers for the user.",
            ),
            (
                "@m.tool()\ndef add(a, b):\n    \"\"\"Adds two numbers for the user.\"\"\"\n",
                "Adds two numbers for the user.",
            ),
            (
                "@m.tool()\ndef add(a, b):\n    'Adds two numbers for the user.'\n",
                "Adds two numbers for the user.",
            ),
            (
                "Tool(description=(\"Adds two \"\n  \"numbers for the user.\"))",
                "Adds two numbers for the user.",
            ),
            ("z.string().describe(\"Adds two numbers for the user.\")", "Adds two numbers for the user."),
            ("mcp.WithDescription(\"Adds two numbers for the user.\")", "Adds two numbers for the user."),
            (
                "const ADD_DESCRIPTION: &str = \"Adds two numbers for the user.\";",
                "Adds two numbers for the user.",
            ),
            ("SYSTEM_PROMPT = f\"\"\"Adds two numbers for the user.\"\"\"", "Adds two numbers for the user."),
            ("description: x", ""),
            ("print('Adds two numbers for the user.')", ""),
            ("'description' in fields and 'a text that is long enough'", ""),
        ] {
            assert_eq!(found(text, false).join("|"), wanted, "{text}");
        }
        for (text, wanted) in [
            (
                "- name: a\n  description: Adds two numbers for the user.\n  b: c\n",
                "Adds two numbers for the user.",
            ),
            (
                "description: >\n  Adds two\n  numbers for the user.\nb: c\n",
                "Adds two\nnumbers for the user.",
            ),
            ("description: \"Adds two numbers for the user.\"\n", "Adds two numbers for the user."),
        ] {
            assert_eq!(found(text, true).join("|"), wanted, "{text}");
        }
    }
}
