//! Lists beside the rules: hosts by what they say of who put something there, rules about commands by what they mean in a
//! bundle, and words by what they say of a function or a command.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::commands::CommandRules;

/// What a host says of what is fetched from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostKind {
    /// The documented installer of a widely used program: a host, followed by the beginning of a path where it has more than
    /// that.
    Installer,
    /// Anybody puts anything there.
    Shared,
    /// Top-level domains that are reserved for examples and tests.
    Reserved,
    /// Repositories lie there under the names of their owners, and a report takes them down.
    Repositories,
}

/// What a dangerous command means in a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandKind {
    /// Nobody needs it, not even in a document.
    Hostile,
    /// Developers do it on purpose: a script only warns.
    Deliberate,
    /// A program may do it: code only warns.
    OfPrograms,
    /// Blocks as a text that is handed to a function of which nothing is known.
    HandedOver,
    /// Of one file that is named a script only warns.
    OfMany,
}

/// What a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WordKind {
    /// Functions whose names begin so show, keep, compare or describe a text. One or two letters are a word of their own.
    Keeping,
    /// Methods with this word in their names run what they are given.
    Running,
    /// A command that fetches, sends or decodes holds one of these.
    CommandSign,
    /// Programs that build, test or watch what lies in a folder.
    Building,
    /// Programs that do one thing and end.
    EndsAtOnce,
    /// Packages and scopes that many people know.
    KnownPackage,
    /// Parts of names of packages that belong to one company alone.
    PrivateName,
    /// Packages of Python that many people install, and others whose names are one letter away from theirs.
    PackagePython,
    /// The same for packages of npm.
    PackageNpm,
}

/// Hosts of one kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[host]]`")]
pub(super) struct HostDef {
    kind: HostKind,
    names: Vec<String>,
}

/// Rules about commands of one kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[command]]`")]
pub(super) struct CommandDef {
    kind: CommandKind,
    rules: Vec<String>,
}

/// Words of one kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[word]]`")]
pub(super) struct WordDef {
    kind: WordKind,
    names: Vec<String>,
}

/// The lists of all files.
#[derive(Debug, Default)]
pub(super) struct Lists {
    hosts: BTreeMap<HostKind, Vec<String>>,
    commands: BTreeMap<CommandKind, BTreeSet<String>>,
    words: BTreeMap<WordKind, Vec<String>>,
}

impl Lists {
    /// Adds hosts; tells what is wrong with them.
    pub(super) fn add_hosts(&mut self, def: HostDef) -> Vec<String> {
        let mut wrong = Vec::new();
        if def.names.is_empty() {
            wrong.push("a [[host]] has no names; give at least one".to_owned());
        }
        for name in def.names {
            let known = self.hosts.entry(def.kind).or_default();
            if !is_host(&name, def.kind) {
                wrong.push(format!(
                    "host {name:?}: write the host in lower case without a scheme, and a path only where it begins an installer"
                ));
            } else if known.contains(&name) {
                wrong.push(format!("host {name:?} stands twice; leave one out"));
            } else {
                known.push(name);
            }
        }
        wrong
    }

    /// Adds rules about commands; tells what is wrong with them.
    pub(super) fn add_commands(&mut self, def: CommandDef, commands: &CommandRules) -> Vec<String> {
        let mut wrong = Vec::new();
        for id in def.rules {
            if !commands.rules().iter().any(|rule| *rule.id == *id) {
                wrong.push(format!("[[command]]: there is no rule `{id}` about commands"));
            } else if !self.commands.entry(def.kind).or_default().insert(id.clone()) {
                wrong.push(format!("[[command]]: rule `{id}` stands twice; leave one out"));
            }
        }
        wrong
    }

    /// Adds words; tells what is wrong with them.
    pub(super) fn add_words(&mut self, def: WordDef) -> Vec<String> {
        let mut wrong = Vec::new();
        if def.names.is_empty() {
            wrong.push("a [[word]] has no names; give at least one".to_owned());
        }
        for name in def.names {
            let known = self.words.entry(def.kind).or_default();
            if name.trim().is_empty() || name.chars().any(|c| c.is_ascii_uppercase()) {
                wrong.push(format!("[[word]] {name:?}: write it in lower case"));
            } else if known.contains(&name) {
                wrong.push(format!("[[word]] {name:?} stands twice; leave one out"));
            } else {
                known.push(name);
            }
        }
        wrong
    }

    /// Words of a kind, in the order of files.
    pub(super) fn words(&self, kind: WordKind) -> &[String] {
        self.words.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// Hosts of a kind, in the order of files.
    pub(super) fn hosts(&self, kind: HostKind) -> &[String] {
        self.hosts.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// Whether an address is one of a documented installer: over HTTPS, and without a name before the host.
    pub(super) fn is_installer(&self, url: &str) -> bool {
        let Some(rest) = after_scheme(url) else { return false };
        self.hosts(HostKind::Installer).iter().any(|known| match known.strip_suffix('/') {
            Some(host) => rest.strip_prefix(host).is_some_and(|after| after.starts_with('/')),
            None => rest
                .strip_prefix(known.as_str())
                .is_some_and(|after| after.is_empty() || after.starts_with(['/', '?', ':'])),
        })
    }

    /// Whether a rule about commands is of a kind.
    pub(super) fn is_command(&self, kind: CommandKind, rule: &str) -> bool {
        self.commands.get(&kind).is_some_and(|rules| rules.contains(rule))
    }
}

/// An address in lower case without its scheme and `www.`; `None` when it is not plain HTTPS.
pub(in crate::bundles) fn after_scheme(url: &str) -> Option<String> {
    let lower = url.trim_matches(['"', '\'', ' ']).to_ascii_lowercase();
    let rest = lower.strip_prefix("https://").filter(|rest| !rest.contains('@'))?;
    Some(rest.strip_prefix("www.").unwrap_or(rest).to_owned())
}

/// Whether a text is a host; an installer may have the beginning of a path.
fn is_host(text: &str, kind: HostKind) -> bool {
    let (host, path) = text.split_once('/').map_or((text, None), |(host, path)| (host, Some(path)));
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let labels = host.split('.').count();
    host.split('.').all(is_label)
        && match kind {
            HostKind::Installer => path.is_none_or(|path| !path.contains(char::is_whitespace)),
            HostKind::Shared | HostKind::Repositories => path.is_none() && labels > 1,
            HostKind::Reserved => path.is_none() && labels == 1,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_checked() {
        for (name, kind, is_right) in [
            ("sh.example.org", HostKind::Installer, true),
            ("raw.example.org/maker/", HostKind::Installer, true),
            ("localhost", HostKind::Installer, true),
            ("https://sh.example.org", HostKind::Installer, false),
            ("Sh.example.org", HostKind::Installer, false),
            ("sh..example.org", HostKind::Installer, false),
            ("", HostKind::Installer, false),
            ("pages.example.org", HostKind::Shared, true),
            ("pages.example.org/a", HostKind::Shared, false),
            ("example", HostKind::Shared, false),
            ("example", HostKind::Reserved, true),
            ("example.org", HostKind::Reserved, false),
        ] {
            assert_eq!(is_host(name, kind), is_right, "{name}");
            let mut lists = Lists::default();
            let names = vec![name.to_owned()];
            assert_eq!(lists.add_hosts(HostDef { kind, names }).is_empty(), is_right, "{name}");
        }
        let twice = HostDef { kind: HostKind::Shared, names: vec!["a.example".into(), "a.example".into()] };
        assert_eq!(Lists::default().add_hosts(twice).len(), 1);
        assert_eq!(
            Lists::default().add_hosts(HostDef { kind: HostKind::Shared, names: Vec::new() }).len(),
            1
        );
    }

    #[test]
    fn words_are_checked() {
        for (names, problems) in
            [(vec!["run", "exec"], 0), (vec!["run", "run"], 1), (vec!["Run"], 1), (vec![" "], 1), (vec![], 1)]
        {
            let mut lists = Lists::default();
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            assert_eq!(lists.add_words(WordDef { kind: WordKind::Running, names }).len(), problems);
            assert!(lists.words(WordKind::Keeping).is_empty());
        }
    }

    #[test]
    fn commands_are_checked() {
        let known = CommandRules::builtin().rules()[0].id.to_string();
        for (rules, problems) in [
            (vec![known.clone()], 0),
            (vec!["command.no-such-rule".to_owned()], 1),
            (vec![known.clone(), known.clone()], 1),
        ] {
            let mut lists = Lists::default();
            let def = CommandDef { kind: CommandKind::Hostile, rules };
            assert_eq!(lists.add_commands(def, CommandRules::builtin()).len(), problems);
            assert!(!lists.is_command(CommandKind::Deliberate, &known));
        }
    }
}
