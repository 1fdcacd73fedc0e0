//! The quality check: whether description and document say enough. It never blocks.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::findings::Findings;
use super::manifest::Checked;
use crate::decision::{CheckFinding, Severity};

/// Fewest characters of a description.
const DESCRIPTION_CHARS_MIN: usize = 20;
/// Fewest characters of a primary document.
const DOCUMENT_CHARS_MIN: usize = 200;
/// Texts that a template left behind.
const FILLER: &[&str] =
    &["lorem ipsum", "dolor sit amet", "your description here", "description goes here", "insert text here"];

/// What texts of the bundle showed, noted as they come by.
#[derive(Debug, Default)]
pub(super) struct Quality {
    findings: Findings,
    placeholders: u32,
}

impl Quality {
    /// Looks at one text file.
    pub(super) fn note(&mut self, path: &str, text: &str) {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
        if matches!(extension.as_str(), "md" | "json" | "yaml" | "yml" | "sh" | "py" | "txt") {
            self.placeholders = self.placeholders.saturating_add(placeholders(text));
        }
        if extension != "md" {
            return;
        }
        let (mut line, mut before) = (1, 0);
        for start in lines_with_signs(text) {
            line += memchr::memchr_iter(b'\n', &text.as_bytes()[before..start]).count() as u32;
            before = start;
            let content = text[start..].lines().next().unwrap_or_default();
            let lower = content.to_ascii_lowercase();
            if FILLER.iter().any(|filler| lower.contains(filler)) || has_insert(content) {
                self.add(
                    "quality.filler",
                    path,
                    line,
                    "A text of a template was left in.",
                    "Write what you mean there.",
                );
            }
            let rest = content.trim_start_matches(['-', '*', '#', '>', ' ', '[', ']', '<', '!']);
            let is_todo = ["TODO", "FIXME", "TBD"].iter().any(|word| {
                rest.strip_prefix(word)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(':') && rest.len() < 80)
            });
            if is_todo {
                self.add(
                    "quality.todo",
                    path,
                    line,
                    "Something is still to be done.",
                    "Do it, or leave the line out.",
                );
            }
        }
    }

    /// The findings, the placeholders and the advice about them.
    pub(super) fn finish(mut self, checked: &Checked) -> (Findings, u32, String) {
        let description = checked.manifest.description.trim();
        let chars = description.chars().count();
        if !checked.primary.is_empty() && chars < DESCRIPTION_CHARS_MIN {
            let reason = format!("The description has {chars} characters; people and agents choose by it.");
            self.add(
                "quality.description",
                &checked.primary,
                0,
                &reason,
                "Say what it does and when to use it.",
            );
        }
        let is_document = !checked.primary.ends_with(".json") && !checked.primary.is_empty();
        if is_document && checked.body_chars < DOCUMENT_CHARS_MIN {
            let reason = format!("The document has {} characters.", checked.body_chars);
            self.add("quality.document", &checked.primary, 0, &reason, "Explain what the agent has to do.");
        }
        let advice = if self.placeholders == 0 && !checked.primary.is_empty() {
            "Values that differ from user to user, such as names of projects or channels, can be written as placeholders \
             like {{project}}, to be filled in at the first use."
        } else {
            ""
        };
        (self.findings, self.placeholders, advice.to_owned())
    }

    fn add(&mut self, rule: &str, path: &str, line: u32, reason: &str, fix: &str) {
        self.findings.add(CheckFinding {
            rule_id: rule.to_owned(),
            file: path.to_owned(),
            line,
            category: "quality".to_owned(),
            severity: Severity::Low,
            reason: reason.to_owned(),
            fix_hint: fix.to_owned(),
            ..CheckFinding::default()
        });
    }
}

static SIGNS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let texts = FILLER.iter().copied().chain(["<insert", "todo", "fixme", "tbd"]);
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(texts)
        .unwrap_or_else(|error| panic!("a dozen texts: {error}"))
});

/// Where lines begin that hold a sign of something left over, each once, in order.
fn lines_with_signs(text: &str) -> Vec<usize> {
    let mut starts: Vec<usize> = Vec::new();
    for hit in SIGNS.find_iter(text) {
        let start = memchr::memrchr(b'\n', &text.as_bytes()[..hit.start()]).map_or(0, |at| at + 1);
        if starts.last() != Some(&start) {
            starts.push(start);
        }
    }
    starts
}

/// Bytes in which a placeholder or a mark ends.
const MARK_BYTES_MAX: usize = 80;

/// The beginning of a text, so that many openings without an end cost no more than their number.
fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(MARK_BYTES_MAX)]
}

/// How many placeholders such as `{{project}}` a text holds.
fn placeholders(text: &str) -> u32 {
    let is_name = |name: &str| {
        let name = name.trim();
        !name.is_empty()
            && name.len() <= 60
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b' '))
    };
    let found = text
        .match_indices("{{")
        .filter(|(at, _)| head(&text[at + 2..]).split_once("}}").is_some_and(|(name, _)| is_name(name)));
    found.count() as u32
}

/// Whether a line holds a mark such as `<INSERT_NAME_HERE>`.
fn has_insert(line: &str) -> bool {
    line.match_indices('<').any(|(at, _)| {
        let name = head(&line[at + 1..]).split('>').next().unwrap_or_default();
        name.len() > 7
            && name.len() < 60
            && name.starts_with("INSERT")
            && name
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-' | b' '))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_names_in_double_braces() {
        for (text, count) in [
            ("", 0),
            ("{{project}} and {{ user.name }}", 2),
            ("{{}} {{ }} {{1}} {{a", 0),
            ("{{eval(x)}} {{a|b}}", 0),
            ("${{ matrix.os }}", 1),
        ] {
            assert_eq!(placeholders(text), count, "{text}");
        }
    }

    #[test]
    fn filler_and_things_to_do() {
        for (text, rules) in [
            ("Lorem ipsum dolor", &["quality.filler"][..]),
            ("Hello <INSERT_NAME_HERE>", &["quality.filler"]),
            ("- TODO: write this\n", &["quality.todo"]),
            ("TODO", &["quality.todo"]),
            ("The todo list shows TODO items", &[]),
            ("List<String> <div>", &[]),
        ] {
            let mut quality = Quality::default();
            quality.note("a.md", text);
            let found = quality.findings.into_result().findings;
            assert_eq!(found.iter().map(|one| one.rule_id.as_str()).collect::<Vec<_>>(), rules, "{text}");
        }
    }
}
