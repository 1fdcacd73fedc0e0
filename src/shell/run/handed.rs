//! What programs hand to another machine by words, besides those that make requests: publications, statements, messages,
//! addresses that are made of a secret, and what goes into a repository or an image and leaves with it.

use std::ops::Range;
use std::sync::Arc;

use super::super::argument::{Argument, HOLE};
use super::super::carried::{Carried, Pick, Read};
use super::super::effect::{Effect, EffectKind, Target, TargetKind};
use super::super::programs;
use super::{Engine, names, signin};

/// Programs whose words stay on this machine, whatever addresses stand among them.
const LOCAL: &[&str] = &[
    ".",
    ":",
    "[",
    "[[",
    "alias",
    "awk",
    "basename",
    "cat",
    "cd",
    "chmod",
    "chown",
    "command",
    "cp",
    "crontab",
    "cut",
    "declare",
    "diff",
    "direnv",
    "dirname",
    "dotenv",
    "echo",
    "egrep",
    "eval",
    "exec",
    "export",
    "expr",
    "fgrep",
    "find",
    "gawk",
    "gpg",
    "grep",
    "head",
    "jq",
    "less",
    "let",
    "ln",
    "local",
    "ls",
    "mawk",
    "mkdir",
    "mv",
    "notify-send",
    "perl",
    "printf",
    "read",
    "readonly",
    "rg",
    "rm",
    "say",
    "sed",
    "set",
    "sort",
    "source",
    "tail",
    "tar",
    "tee",
    "test",
    "touch",
    "tr",
    "trap",
    "type",
    "typeset",
    "unset",
    "wc",
    "which",
    "xargs",
    "yq",
];
/// Programs that open an address which has no scheme, and the word that makes them.
const ADDRESSES: &[(&str, &[&str])] = &[
    ("docker", &["pull", "push", "run"]),
    ("getent", &["ahosts", "ahostsv4", "ahostsv6", "hosts"]),
    ("go", &["get", "install"]),
    ("helm", &["pull", "install"]),
    ("nerdctl", &["pull", "push", "run"]),
    ("podman", &["pull", "push", "run"]),
];
/// Where what goes into an image is remembered: no file of the machine is called so.
const IMAGE: &str = "\u{1}image";

impl Engine<'_> {
    /// A program that hands its words to another machine, as far as they carry anything, has talked to it.
    pub(super) fn handed_over(&mut self, program: &str, argv: &[Argument], span: &Range<usize>) {
        self.variables_sent(program, argv, span);
        let carries = |word: &Argument| word.carried.reads().iter().any(|read| read.pick != Pick::Address);
        if self.talk.is_some() || !argv.iter().skip(1).any(carries) {
            return;
        }
        let verb = |at: usize| argv.get(at).map_or("", |word| word.text.as_str());
        let publishes = matches!(verb(1), "issue" | "pr" | "gist" | "release" | "api" | "mr" | "snippet");
        let asks = || {
            let bare = ADDRESSES.iter().any(|(name, verbs)| *name == program && verbs.contains(&verb(1)));
            // What git only notes is asked for later.
            let is_noted = program == "git" && matches!(verb(1), "config" | "remote");
            !is_noted && argv.iter().skip(1).any(|word| carries(word) && is_address(&word.text, bare))
        };
        let detail = match program {
            "ssh" | "plink" | "sshpass" => "remote command",
            "gh" | "glab" if publishes => "publication",
            _ if programs::sends_words(program, argv) => "message",
            _ if !LOCAL.contains(&program) && asks() => "address",
            _ => return,
        };
        self.talk = Some(Effect {
            kind: EffectKind::SendData,
            target: None,
            recursive: false,
            forced: false,
            detail: detail.to_owned(),
            program: program.to_owned(),
            argv: Arc::from(argv),
            span: span.clone(),
            via: self.via.clone(),
        });
    }

    /// Variables that `ssh` is told to take along.
    fn variables_sent(&mut self, program: &str, argv: &[Argument], span: &Range<usize>) {
        if program != "ssh" {
            return;
        }
        for word in argv.iter().skip(1) {
            let value = word.text.strip_prefix("-o").map_or(word.text.as_str(), str::trim_start);
            if let Some(names) = value.strip_prefix("SendEnv") {
                let carried = self.variables_in(names);
                self.send_carried(&carried, "remote command", span);
            }
        }
    }

    /// What `git` takes into a repository leaves with it: files that are added, and words of its messages and settings.
    pub(super) fn repository(&mut self, argv: &[Argument], span: &Range<usize>) {
        let mut words = argv.iter().skip(1);
        let mut folder = self.cwd();
        let verb = loop {
            match words.next() {
                Some(option) if option.text == "-C" => {
                    folder = words.next().map_or_else(String::new, |path| self.spelled(path));
                }
                Some(option) if option.text == "-c" => drop(words.next()),
                Some(option) if option.text.starts_with('-') => {}
                Some(verb) => break verb,
                None => return,
            }
        };
        let repository = repository_of(&folder);
        // Addresses of other repositories are asked at the next occasion, even to fetch.
        let remotes = format!("{repository}/remotes");
        match verb.text.as_str() {
            "add" => {
                let mut taken = Carried::default();
                for word in words {
                    let text = match word.text.as_str() {
                        "-A" | "--all" | "." | "-u" => folder.clone(),
                        option if option.starts_with('-') => continue,
                        _ => self.spelled(word),
                    };
                    taken.merge(&self.files.carried(&text));
                    if !text.is_empty() {
                        let target = Target { text, has_glob: word.has_glob, kind: TargetKind::Path };
                        taken.merge(&Carried::of([Read::all(target, true)]));
                    }
                }
                self.files.make(&repository, &taken);
            }
            "push" => self.send_carried(&self.files.carried(&repository), "repository", span),
            "fetch" | "pull" | "ls-remote" => {
                self.send_carried(&self.files.carried(&remotes), "repository", span);
            }
            "commit" | "tag" | "notes" | "config" | "remote" | "commit-tree" => {
                let mut taken = Carried::default();
                // `commit -a` takes what is there.
                let takes_all = |word: &Argument| {
                    word.text == "--all"
                        || word.text.starts_with('-')
                            && !word.text.starts_with("--")
                            && word.text.contains('a')
                };
                // A token of the host that an address names is for it.
                let hosts = signin::Hosts::of(argv);
                for (at, word) in argv.iter().enumerate().skip(1) {
                    let signs_in = signin::is_sign_in(argv, at);
                    let others = word.carried.reads().iter().filter(|read| !hosts.own(read, signs_in));
                    taken.merge(&Carried::of(others.cloned()));
                    if verb.text == "commit" && takes_all(word) {
                        taken.merge(&self.files.carried(&folder));
                    }
                }
                let place = if verb.text == "remote" { &remotes } else { &repository };
                if !taken.is_empty() {
                    self.files.make(place, &taken);
                }
            }
            _ => {}
        }
    }

    /// `gh repo create --push`: the repository here is pushed to where everybody may see it.
    pub(super) fn published_repository(&mut self, argv: &[Argument], span: &Range<usize>) {
        let text = |at: usize| argv.get(at).map_or("", |word| word.text.as_str());
        if (text(1), text(2)) != ("repo", "create") || !argv.iter().any(|word| word.text == "--push") {
            return;
        }
        let source = argv.iter().position(|word| matches!(word.text.as_str(), "--source" | "-s"));
        let folder = match source.and_then(|at| argv.get(at + 1)) {
            Some(folder) if folder.text != "." => self.spelled(folder),
            _ => self.cwd(),
        };
        self.send_carried(&self.files.carried(&repository_of(&folder)), "repository", span);
    }

    /// What stands in the words of a build is part of the image, and leaves with it.
    pub(super) fn image(&mut self, argv: &[Argument], span: &Range<usize>) {
        let has = |verb: &str| argv.iter().skip(1).take(2).any(|word| word.text == verb);
        if has("build") {
            let mut taken = Carried::default();
            argv.iter().skip(1).for_each(|word| taken.merge(&word.carried));
            if !taken.is_empty() {
                self.files.make(IMAGE, &taken);
            }
        }
        if has("push") || has("build") && argv.iter().any(|word| word.text == "--push") {
            self.send_carried(&self.files.carried(IMAGE), "image", span);
        }
    }
}

/// Where the repository of a folder lies. Where nothing is known of the working directory, it is the one that it is.
fn repository_of(folder: &str) -> String {
    format!("{}/.git", folder.trim_end_matches('/'))
}

/// Whether a word is an address of a host that is known, and a piece of it is not. `bare`: even without a scheme.
fn is_address(text: &str, bare: bool) -> bool {
    let rest = match text.split_once("://") {
        Some((before, rest)) if !before.contains(HOLE) => rest,
        None if bare => text,
        _ => return false,
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let known = host.rsplit(HOLE).next().unwrap_or_default();
    text.contains(HOLE) && known.trim_start_matches('.').contains('.') && !names::base_name(text).is_empty()
}
