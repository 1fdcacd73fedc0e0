//! What functions of libraries do with values, by language: what they fetch, read, run and send. Facts are data.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;

use super::language::Tongue;
use super::token::{Kind, Token};

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::bundles) enum Does {
    /// Answers what comes from another machine.
    Fetch,
    /// Answers all variables of the environment.
    Environment,
    /// Answers one variable of the environment, whose name it is given.
    Variable,
    /// Answers what whoever asks the program has sent.
    Request,
    /// Makes variables of what it is given.
    Spill,
    /// Answers the home of the user.
    Home,
    /// Puts its arguments together to a path.
    Join,
    /// Answers its text in another form.
    Same,
    /// Opens the file at a path.
    Open,
    /// Answers what a file holds.
    Read,
    /// Writes one argument to the file that another one names or holds open.
    Write,
    /// Fetches into a file.
    Download,
    /// Evaluates a text or loads code.
    Evaluate,
    /// Runs a file of code, by its path.
    Include,
    /// Runs a program with arguments of its own.
    Run,
    /// Has a shell run a text.
    Shell,
    /// Adds an argument to a program that is about to run.
    Argument,
    /// Puts what the value that it belongs to holds into the variables that it is given.
    Into,
    /// Adds what it is given to the value that it belongs to.
    Gather,
    /// Sends what it is given.
    Send,
    /// Sends what it is given where the value that it belongs to is a connection.
    SendOver,
    /// Deletes a folder with all that is in it.
    DeleteTree,
    /// Deletes one file.
    Delete,
    /// Calls a function with each file of a folder, or answers them.
    Walk,
    /// Answers nothing of what it is given.
    Clean,
    /// A field or a key that holds neither a secret nor code.
    Plain,
}

/// Some functions that do the same.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[flow]]`")]
pub(in crate::bundles) struct FlowDef {
    /// What they do.
    pub(in crate::bundles) does: Does,
    /// Languages, by name; empty for all.
    #[serde(default)]
    pub(in crate::bundles) languages: Vec<String>,
    /// Names with dots between their parts, whatever the language writes there; `*.name` is a method of anything. Two back-ticks
    /// stand for commands in back-ticks, and a name that begins with `=` is a field that is set.
    pub(in crate::bundles) names: Vec<String>,
    /// Texts one of which the program holds.
    #[serde(default)]
    pub(in crate::bundles) with: Vec<String>,
    /// The one argument that it does it with, as a whole; all of them where none is named.
    pub(in crate::bundles) argument: Option<usize>,
    /// A text, in lower case, that stands in the arguments.
    #[serde(default)]
    pub(in crate::bundles) holds: Vec<String>,
}

/// What is known of functions, and how languages are written.
#[derive(Debug, Default)]
pub(in crate::bundles) struct FlowFacts {
    tongues: Vec<Tongue>,
    defs: Vec<FlowDef>,
    /// Entries and the parts of a name, by the last part of the name.
    by_last: HashMap<String, Vec<(usize, Vec<String>)>>,
}

impl FlowFacts {
    /// Adds a language; tells what is wrong with it.
    pub(in crate::bundles) fn add_tongue(&mut self, tongue: Tongue) -> Option<String> {
        if self.tongues.iter().any(|known| known.name == tongue.name) {
            return Some(format!("[[language]] {:?} stands twice; leave one out", tongue.name));
        }
        self.tongues.push(tongue);
        None
    }

    /// Adds functions; tells what is wrong with them.
    pub(in crate::bundles) fn add(&mut self, def: FlowDef) -> Vec<String> {
        let mut wrong = Vec::new();
        if def.names.is_empty() {
            wrong.push("a [[flow]] has no names; give at least one".to_owned());
        }
        let index = self.defs.len();
        for name in &def.names {
            let parts: Vec<String> = name.to_lowercase().split('.').map(str::to_owned).collect();
            match parts.last() {
                Some(last) if parts.iter().all(|part| !part.is_empty()) => {
                    self.by_last.entry(last.clone()).or_default().push((index, parts));
                }
                _ => wrong.push(format!("[[flow]] {name:?}: a part of the name is empty")),
            }
        }
        self.defs.push(def);
        wrong
    }

    /// Languages that entries name and nothing describes.
    pub(in crate::bundles) fn unknown_languages(&self) -> Vec<String> {
        let named = self.defs.iter().flat_map(|def| &def.languages);
        let is_unknown = |name: &&String| !self.tongues.iter().any(|tongue| tongue.name == **name);
        named.filter(is_unknown).map(|name| format!("[[flow]]: no [[language]] is called `{name}`")).collect()
    }

    /// The language of a file, by its extension or its first line.
    pub(in crate::bundles) fn tongue_of(&self, path: &str, text: &str) -> Option<&Tongue> {
        let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
        let extension = name.rsplit_once('.').map_or(name.as_str(), |(_, extension)| extension);
        let first = text.lines().next().filter(|line| line.starts_with("#!")).unwrap_or_default();
        let named = self.tongues.iter().find(|tongue| tongue.files.iter().any(|file| file == extension));
        named.or_else(|| {
            let mut words = first.split(['/', ' ', '!']);
            words.find_map(|word| {
                let word = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
                self.tongues.iter().find(|tongue| tongue.programs.iter().any(|program| program == word))
            })
        })
    }

    /// The language that a block of a document is marked with.
    pub(in crate::bundles) fn tongue_of_fence(&self, mark: &str) -> Option<&Tongue> {
        let is_so = |tongue: &&Tongue| {
            tongue.name == mark
                || [&tongue.files, &tongue.fences].iter().any(|names| names.iter().any(|name| name == mark))
        };
        self.tongues.iter().find(is_so)
    }

    /// Every language that is described.
    #[cfg(test)]
    pub(in crate::bundles) fn tongues(&self) -> impl Iterator<Item = &Tongue> {
        self.tongues.iter()
    }

    /// The language of that name.
    pub(in crate::bundles) fn tongue(&self, name: &str) -> Option<&Tongue> {
        self.tongues.iter().find(|tongue| tongue.name == name)
    }

    /// What the function with these parts of a name does in a program with this text.
    pub(super) fn does(&self, tongue: &Tongue, parts: &[&str], lower: &str) -> Vec<&FlowDef> {
        let known = parts.last().and_then(|last| self.by_last.get(*last)).into_iter().flatten();
        let named = known.filter(|(_, wanted)| is_named(wanted, parts)).map(|(index, _)| &self.defs[*index]);
        let is_of = |def: &&FlowDef| {
            (def.languages.is_empty() || def.languages.contains(&tongue.name))
                && (def.with.is_empty() || def.with.iter().any(|text| lower.contains(text.as_str())))
        };
        named.filter(is_of).collect()
    }

    /// Whether a program with these tokens names both ends of something that rules ask for.
    pub(super) fn may_reach(&self, tongue: &Tongue, tokens: &[Token], lower: &str) -> bool {
        let mut named = BTreeSet::new();
        let mut has_address = lower.contains("://") || lower.contains("curl") || lower.contains("wget");
        for token in tokens {
            if token.kind == Kind::Text && token.text.contains('~') {
                named.insert(Does::Home);
            }
            if token.kind != Kind::Word {
                continue;
            }
            let word = token.text.to_lowercase();
            for key in [word.as_str(), &format!("={word}")] {
                for (index, _) in self.by_last.get(key).into_iter().flatten() {
                    let def = &self.defs[*index];
                    if def.languages.is_empty() || def.languages.contains(&tongue.name) {
                        named.insert(def.does);
                    }
                }
            }
        }
        let has = |all: &[Does]| all.iter().any(|does| named.contains(does));
        has_address |= has(&[Does::Fetch, Does::Request, Does::Download, Does::Spill]);
        let runs = tongue.calls_variables
            || has(&[Does::Evaluate, Does::Include, Does::Run, Does::Shell, Does::Argument]);
        let has_private = has(&[Does::Environment, Does::Read, Does::Open]);
        let has_home = lower.contains("home") || lower.contains("userprofile") || has(&[Does::Home]);
        has_address && runs
            || has_private && has(&[Does::Send, Does::SendOver])
            || has_home && has(&[Does::Delete, Does::DeleteTree])
            || has(&[Does::DeleteTree])
    }

    /// Whether something is known of a function whose name ends so, in lower case.
    pub(super) fn is_known(&self, last: &str) -> bool {
        self.by_last.contains_key(last)
    }

    /// Whether a field or a key of that name, in lower case, holds neither a secret nor code.
    pub(super) fn is_plain(&self, name: &str) -> bool {
        let known = self.by_last.get(name).into_iter().flatten();
        known.filter(|(_, parts)| parts.len() == 1).any(|(index, _)| self.defs[*index].does == Does::Plain)
    }
}

/// Whether a name with these parts is the one that is wanted. What stands before it may be a longer path to the same.
fn is_named(wanted: &[String], parts: &[&str]) -> bool {
    if wanted.len() > parts.len() {
        return false;
    }
    if wanted.first().is_some_and(|first| first == "*") {
        let tail = &wanted[1..];
        return parts.len() > tail.len()
            && parts.iter().rev().zip(tail.iter().rev()).all(|(part, one)| *part == one);
    }
    if wanted.len() == 1 {
        let before = &parts[..parts.len() - 1];
        return before
            .iter()
            .all(|part| matches!(*part, "self" | "this" | "kernel" | "object" | "base" | "std"));
    }
    parts.iter().rev().zip(wanted.iter().rev()).all(|(part, one)| *part == one)
}
