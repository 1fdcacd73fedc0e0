//! The manifest check: the documents that a kind of bundle must have, where they lie, and what they must say.
//!
//! What is hard fails the check: a missing or doubled document, one that cannot be read, names and descriptions that are
//! missing or too long. What a third of good bundles does otherwise than the specification warns only.

mod agent;
mod frontmatter;
mod plugin;
mod skill;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub(super) use frontmatter::{front_matter, read_yaml};

use super::findings::Findings;
use super::inspection::Manifest;
use crate::decision::{BundleKind, CheckFinding, Severity};

/// Longest name, in characters (Agent Skills specification).
const NAME_CHARS_MAX: usize = 64;
/// Longest description, in characters (Agent Skills specification).
const DESCRIPTION_CHARS_MAX: usize = 1_024;

/// A document that may be the primary one.
#[derive(Debug)]
pub(super) struct Candidate {
    /// Path in the bundle.
    pub path: String,
    /// What its manifest part says; why it cannot be read else, and in which line.
    pub fields: Result<Option<Map<String, Value>>, (u32, String)>,
    /// Whether the manifest part could be read only by guessing what was meant.
    pub is_repaired: bool,
    /// Characters of its text behind the manifest part.
    pub body_chars: usize,
    /// Whether its bytes are UTF-8, which is what clients read it as.
    pub is_utf8: bool,
}

/// Documents of a bundle that matter for its manifest, noted as they come by.
#[derive(Debug)]
pub(super) struct Candidates {
    kind: BundleKind,
    all: Vec<Candidate>,
    /// Name of the folder that the bundle was packed from; empty where nothing tells.
    folder: String,
}

impl Candidates {
    /// None yet.
    pub(super) const fn new(kind: BundleKind) -> Self {
        Self { kind, all: Vec::new(), folder: String::new() }
    }

    /// Notes a text file of the bundle, if it may be a primary document.
    pub(super) fn note(&mut self, path: &str, text: &str, is_utf8: bool) {
        let is_candidate = match self.kind {
            BundleKind::Skill => skill::is_primary(path),
            BundleKind::Plugin => plugin::is_primary(path),
            BundleKind::Agent => agent::is_primary(path),
        };
        if !is_candidate {
            return;
        }
        let path = path.to_owned();
        let candidate = if self.kind == BundleKind::Plugin {
            let fields = plugin::read(text);
            Candidate {
                path,
                fields: fields.map(Some),
                is_repaired: false,
                body_chars: text.chars().count(),
                is_utf8,
            }
        } else {
            match front_matter(text) {
                Ok(None) => Candidate {
                    path,
                    fields: Ok(None),
                    is_repaired: false,
                    body_chars: text.chars().count(),
                    is_utf8,
                },
                Ok(Some(front)) => Candidate {
                    path,
                    body_chars: text[front.body..].trim().chars().count(),
                    is_repaired: front.is_repaired,
                    is_utf8,
                    fields: Ok(Some(front.fields)),
                },
                Err((line, message)) => Candidate {
                    path,
                    fields: Err((line, message)),
                    is_repaired: false,
                    body_chars: text.chars().count(),
                    is_utf8,
                },
            }
        };
        self.all.push(candidate);
    }

    /// Tells the name of the folder that the bundle was packed from, which its own paths do not.
    pub(super) fn packed_from(mut self, folder: &str) -> Self {
        folder.clone_into(&mut self.folder);
        self
    }

    /// Checks what was noted. `names` are the paths of all files of the bundle.
    pub(super) fn check(&self, names: &[&str]) -> Checked {
        let mut out = Checked { folder: self.folder.clone(), ..Checked::default() };
        match self.kind {
            BundleKind::Skill => skill::check(&self.all, &mut out),
            BundleKind::Plugin => plugin::check(&self.all, names, &mut out),
            BundleKind::Agent => agent::check(&self.all, &mut out),
        }
        out.check_encoding(&self.all, self.kind);
        out.check_hidden();
        out
    }
}

/// What the check found out.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// What is wrong.
    pub findings: Findings,
    /// What the manifest says.
    pub manifest: Manifest,
    /// Path of the primary document; empty when there is none.
    pub primary: String,
    /// The folder of the bundle, with a slash at its end; empty for the top.
    pub root: String,
    /// Name of the folder that the bundle was packed from; empty where nothing tells.
    folder: String,
    /// Characters of the primary document behind its manifest part.
    pub body_chars: usize,
}

impl Checked {
    fn fail(&mut self, rule: &str, file: &str, line: u32, reason: impl Into<String>, fix: &str) {
        self.note(Severity::High, rule, file, line, reason.into(), fix);
    }

    fn warn(&mut self, rule: &str, file: &str, reason: impl Into<String>, fix: &str) {
        self.note(Severity::Low, rule, file, 0, reason.into(), fix);
    }

    fn note(&mut self, severity: Severity, rule: &str, file: &str, line: u32, reason: String, fix: &str) {
        self.findings.add(CheckFinding {
            rule_id: rule.to_owned(),
            file: file.to_owned(),
            line,
            category: "manifest".to_owned(),
            severity,
            reason,
            fix_hint: fix.to_owned(),
            ..CheckFinding::default()
        });
    }

    /// Clients read the primary document as UTF-8, whatever it is.
    fn check_encoding(&mut self, all: &[Candidate], kind: BundleKind) {
        let file = self.primary.clone();
        if !all.iter().any(|one| one.path == file && !one.is_utf8) {
            return;
        }
        let fix = "Save it as UTF-8.";
        if kind == BundleKind::Plugin {
            // JSON that is exchanged is UTF-8 (RFC 8259, 8.1).
            self.fail("manifest.json", &file, 0, "plugin.json is not UTF-8.", fix);
        } else {
            let reason = "The document is not UTF-8: clients that read it so find another text, or none.";
            self.warn("manifest.frontmatter", &file, reason, fix);
        }
    }

    /// What is shown in lists has no characters that change how it is shown, in whatever escapes they are written.
    fn check_hidden(&mut self) {
        let texts = [&self.manifest.name, &self.manifest.version, &self.manifest.description];
        let is_hidden = |c: char| {
            (c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
        };
        // Text that is written from the right to the left has a use for isolates, and none for what forces a direction.
        let is_used = |c: char, text: &str| {
            matches!(c, '\u{202a}'..='\u{202c}' | '\u{2066}'..='\u{2069}')
                && text.chars().any(|c| matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'))
        };
        if texts.iter().any(|text| text.chars().any(|c| is_hidden(c) && !is_used(c, text))) {
            let file = self.primary.clone();
            let reason =
                "Name, version or description hold control characters, which change how they are shown.";
            self.fail("manifest.hidden-character", &file, 0, reason, "Remove them.");
        }
    }

    /// Takes the first of the documents that lie where one may: at the top, or in a folder at the top. Others are told.
    fn choose<'c>(&mut self, all: &'c [Candidate], what: &str, depth: usize) -> Option<&'c Candidate> {
        let is_placed = |candidate: &&Candidate| candidate.path.matches('/').count() <= depth + 1;
        let Some(first) = all.iter().filter(is_placed).min_by_key(|c| (c.path.matches('/').count(), &c.path))
        else {
            let place = "at the top of the archive or in a folder at the top";
            match all.first() {
                None => self.fail(
                    "manifest.missing",
                    "",
                    0,
                    format!("There is no {what}."),
                    &format!("Add {what} {place}."),
                ),
                Some(deep) => self.fail(
                    "manifest.missing",
                    &deep.path,
                    0,
                    format!("{what} lies too deep."),
                    &format!("Put {what} {place}."),
                ),
            }
            return None;
        };
        for other in all.iter().filter(|other| other.path != first.path) {
            self.fail(
                "manifest.duplicate",
                &other.path,
                0,
                format!("There is more than one {what}; the first is {}.", first.path),
                "Keep one, and upload the others on their own.",
            );
        }
        self.primary = first.path.clone();
        self.body_chars = first.body_chars;
        let names: Vec<&str> = first.path.split('/').collect();
        let above = &names[..names.len().saturating_sub(depth + 1)];
        self.root = above.iter().map(|name| format!("{name}/")).collect();
        Some(first)
    }

    /// The text of a field; `None` when it is missing, of another type, or blank, which is told.
    fn required(
        &mut self,
        fields: &Map<String, Value>,
        key: &str,
        file: &str,
        chars_max: usize,
    ) -> Option<String> {
        let value = match fields.get(key) {
            None | Some(Value::Null) => {
                self.fail(
                    &format!("manifest.{key}-missing"),
                    file,
                    1,
                    format!("There is no `{key}`."),
                    &format!("Add `{key}`."),
                );
                return None;
            }
            Some(value) => value,
        };
        let Some(text) = text_of(value) else {
            self.fail(
                &format!("manifest.{key}-type"),
                file,
                1,
                format!("`{key}` is no text."),
                &format!("Write `{key}` as one text."),
            );
            return None;
        };
        let chars = text.chars().count();
        if text.trim().is_empty() {
            self.fail(
                &format!("manifest.{key}-missing"),
                file,
                1,
                format!("`{key}` is empty."),
                &format!("Fill in `{key}`."),
            );
            return None;
        }
        if chars > chars_max {
            self.fail(
                &format!("manifest.{key}-length"),
                file,
                1,
                format!("`{key}` has {chars} characters, more than {chars_max}."),
                &format!("Shorten `{key}`."),
            );
        }
        Some(text)
    }
}

/// A scalar as text.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// The first of some fields that is a scalar, else empty.
fn first_text(fields: &Map<String, Value>, keys: &[&[&str]]) -> String {
    let find = |path: &&[&str]| {
        let (last, above) = path.split_last()?;
        let place = above.iter().try_fold(fields, |fields, key| fields.get(*key)?.as_object())?;
        place.get(*last).and_then(text_of)
    };
    keys.iter().find_map(find).unwrap_or_default()
}
