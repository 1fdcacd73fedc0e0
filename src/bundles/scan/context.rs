//! Whether a document speaks about an attack or asks for one.
//!
//! Skills about security show attacks, and must not be refused for it. A place counts as a description when the document is
//! about security as a whole *and* the words around the place say what it shows. Both are needed: a heading alone, or a
//! name alone, excuses nothing, and an order to the reader stays one ([`super::role`]). What is excused still warns. The documents and lists that a skill about security keeps beside
//! its SKILL.md are about security as well, however short they are.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::Scan;
use super::listed;
use super::role::{self, Fences, Role};
use crate::bundles::files::{Syntax, is_sample};
use crate::bundles::rules::short_pattern;

/// Words of documents about security.
static ABOUT: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?i)\b(?:attack(?:er|ers|s)?|malicious|malware|vulnerab(?:le|ility|ilities)|exploit(?:s|ed|ation|able)?|injection",
        r"|threats?|pentest(?:ing|er)?|penetration test(?:s|ing)?|red[ -]team(?:ing|er)?|adversar(?:y|ies|ial)|owasp",
        r"|cve-\d{4}|cwe-\d+|hardening|security (?:review|audit|assessment|testing|scan|check|best practice)s?",
        r"|mitigat(?:e|ion|ions)|payloads?|xss|csrf|ssrf|privilege escalation|least privilege|sanitiz(?:e|ation)",
        r"|incident response|forensics?|detection rules?|ctf|untrusted|yara|sigma rules?|stealers?|ransomware|phishing",
        r"|obfuscat(?:ed|ion)|deobfuscat(?:e|ion)|indicators? of compromise|iocs?|suspicious|virustotal|backdoors?",
        r"|reverse shells?|dangerous patterns?|incident responders?|exfiltrat(?:e|es|ion)|clickfix)\b",
    ))
});

/// Words that say of what stands beside them that it is shown and not asked for.
static SHOWN: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?i)\b(?:attack(?:er|ers|s|ing)?|malicious|malware|vulnerab(?:le|ility|ilities)|exploit(?:s|ed|ation|ing)?",
        r"|payloads?|insecure|unsafe|dangerous|compromised?|injected|inject(?:s|ion)?|real-world|red flags?|threats?",
        r"|indicators?|detect(?:s|ion|ed)?|flag(?:s|ged)?|suspicious|never|do not|don'?t|avoid|wrong|bad|anti-?pattern",
        r"|evil|adversar(?:y|ial)|hijack(?:s|ed)?|escape|privilege escalation|enumeration|post-exploitation|reverse shell",
        r"|poc|proof of concept|pentest(?:ing)?|look for|search for|scan(?:s|ning)? for|check for|patterns?|examples? of)\b|❌|⚠|🚫|✗",
    ))
});

pub(super) fn known(pattern: &str) -> Regex {
    short_pattern(pattern).unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
}

/// Words about security from which a document is about it, and those from which it speaks of attacks.
const WORDS_MIN: usize = 5;
const NAMED_MIN: usize = 2;
/// One such word in so many bytes at least.
const BYTES_PER_WORD: usize = 1_200;
/// Bytes of a document that are counted.
const COUNTED_BYTES: usize = 64 << 10;
/// Bytes before and after a place that say what it shows.
const BEFORE: usize = 500;
const AFTER: usize = 200;

/// Whether a document is about security as a whole.
pub(super) fn is_about_security(text: &str) -> bool {
    let text = &text[..text.floor_char_boundary(COUNTED_BYTES)];
    let words = ABOUT.find_iter(text).count();
    words >= WORDS_MIN && words * BYTES_PER_WORD >= text.len()
}

/// The folder of a skill, with its last slash, by the path of its primary document; `None` for any other file.
pub(super) fn skill_folder(path: &str) -> Option<&str> {
    path.strip_suffix("SKILL.md").filter(|folder| folder.is_empty() || folder.ends_with('/'))
}

/// Whether a file holds rules for a scanner, by its extension.
fn is_signatures(path: &str) -> bool {
    let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    matches!(extension.as_str(), "yar" | "yara" | "sigma" | "snort" | "kql" | "spl")
}

/// Whether a file of data is one that a model reads line by line: an order in it reaches the model as it stands.
pub(super) fn is_read_as_text(path: &str) -> bool {
    let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    matches!(extension.as_str(), "log" | "csv" | "tsv" | "out" | "err")
}

/// Whether a program loads a file by its place, so that what it says reaches a model: settings, hooks, servers, manifests.
fn is_loaded_by_agents(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    path.starts_with('.')
        || path.contains("/.")
        || ["hooks", "plugin", "mcp", "settings", "marketplace", "package", "agent", "agents", "manifest"]
            .iter()
            .any(|loaded| name.split('.').next() == Some(loaded))
}

impl Scan<'_, '_> {
    /// Whether what stands at `offset` is shown rather than asked for.
    pub(super) fn is_described(&mut self, offset: usize) -> bool {
        self.is_described_as(offset, Fences::role_of_place, role::is_quoted)
    }

    fn is_described_as(
        &mut self,
        offset: usize,
        role: fn(&Fences, &str, usize) -> Role,
        is_quoted: fn(&str, usize) -> bool,
    ) -> bool {
        let text = self.text;
        match self.syntax {
            Syntax::Markdown | Syntax::Prose => {
                let (path, ordered) = (self.path, &self.found.ordered_documents);
                let fences = self.fences.get_or_insert_with(|| {
                    Fences::of(
                        text,
                        ordered.iter().any(|one| path == one || path.ends_with(&format!("/{one}"))),
                    )
                });
                match role(fences, text, offset) {
                    Role::Forbidden => return true,
                    Role::Ordered => return false,
                    Role::Open => {}
                }
                let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
                if self.shows_attacks() && listed::is_shown(text, start, is_quoted(text, offset)) {
                    return true;
                }
            }
            // Code is parsed: a pattern over its text finds what it only names, in a test, a list of signatures or a rule.
            Syntax::Code(_) | Syntax::Data
                if is_sample(self.path) && !is_read_as_text(self.path) || is_signatures(self.path) =>
            {
                return true;
            }
            Syntax::Code(_) | Syntax::Data
                if *self.about_security.get_or_insert_with(|| is_about_security(text)) =>
            {
                return true;
            }
            Syntax::Data => {}
            _ => return false,
        }
        let about = *self.about_security.get_or_insert_with(|| is_about_security(text));
        let is_beside = || self.found.security_folders.iter().any(|folder| self.path.starts_with(&**folder));
        (about || is_beside()) && {
            let start = text.floor_char_boundary(offset.saturating_sub(BEFORE));
            let end = text.ceil_char_boundary((offset + AFTER).min(text.len()));
            SHOWN.is_match(&text[start..end])
        }
    }

    /// Whether a place stands in a string of the code or data of a skill about security: what its guard looks for or tries.
    pub(super) fn is_string_of_guard(&self, offset: usize) -> bool {
        matches!(self.syntax, Syntax::Code(_) | Syntax::Data | Syntax::Json | Syntax::Yaml)
            && !is_loaded_by_agents(self.path)
            && self.found.security_folders.iter().any(|folder| self.path.starts_with(&**folder))
            && role::is_in_string(self.text, offset)
    }

    /// Whether the document speaks of attacks, even if it is not about security as a whole.
    fn shows_attacks(&mut self) -> bool {
        let text = self.text;
        let count =
            || ABOUT.find_iter(&text[..text.floor_char_boundary(COUNTED_BYTES)]).take(NAMED_MIN).count();
        *self.shows_attacks.get_or_insert_with(|| count() == NAMED_MIN && !listed::are_ordered(text))
    }

    /// Whether the commands in a line are shown rather than asked for.
    pub(super) fn is_line_described(&mut self, line: u32) -> bool {
        let start = self.lines.start_of(line);
        // The piece of code itself, where that is what is looked at.
        let is_there = |at: &usize| *at >= start && !self.text[start..*at].contains('\n');
        let offset = self.inline.filter(is_there).unwrap_or(start);
        self.is_described_as(offset, Fences::role_of_line, role::holds_code)
    }
}
