//! Programs that are not known with a dangerous command among their arguments.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use super::super::argument::Argument;
use super::super::effect::{Effect, EffectKind, Target, TargetKind};
use super::super::programs::Attributes;
use super::{Engine, names};
use crate::paths::{Place, PlaceKind};

/// Commands that, as arguments of an unknown program, are looked at as if that program ran them.
const DANGEROUS: &[&str] = &[
    "rm",
    "dd",
    "shred",
    "wipefs",
    "chmod",
    "chown",
    "find",
    "mkfs",
    "blkdiscard",
    "fdisk",
    "sfdisk",
    "parted",
    "nc",
    "ncat",
    "bash",
    "sh",
    "unlink",
    "mv",
    "truncate",
];

/// Programs whose arguments are text, names or patterns, whatever they look like.
const TAKES_TEXT: &[&str] = &[
    "echo",
    "printf",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "ag",
    "ack",
    "git",
    "gh",
    "glab",
    "jq",
    "yq",
    "logger",
    "wall",
    "curl",
    "wget",
    "man",
    "tldr",
    "which",
    "whereis",
    "type",
    "command",
    "info",
    "apropos",
    "help",
    "cat",
    "ls",
    "test",
    "[",
    "sed",
    "awk",
    "tr",
    "cut",
    "sort",
    "diff",
    "cowsay",
    "figlet",
    "banner",
    "say",
    "notify-send",
    "read",
    "expr",
    "alias",
    "unalias",
    "export",
    "set",
    "declare",
    "local",
    "let",
    "return",
    "apt",
    "apt-get",
    "yum",
    "dnf",
    "apk",
    "brew",
    "npm",
    "yarn",
    "pnpm",
    "pip",
    "pip3",
    "cargo",
    "make",
    "cmake",
    "docker",
    "podman",
    "kubectl",
    "tee",
    "file",
    "stat",
    "dpkg",
    "rpm",
    "pacman",
    "mail",
    "shellcheck",
    "shfmt",
    "bats",
    "pytest",
    "history",
    "complete",
    "compgen",
    "compopt",
    "hash",
    "rm",
    "cp",
    "mv",
    "ln",
    "mkdir",
    "chmod",
    "chown",
    "touch",
    "tar",
    "zip",
    "find",
    "locate",
    "seq",
    "wc",
    "du",
    "head",
    "tail",
    "less",
    "more",
    "uniq",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "md5sum",
    "sha256sum",
    "cmp",
    "comm",
    "tree",
    "code",
    "open",
    "xdg-open",
    "tmux",
    "dialog",
    "whiptail",
    "zenity",
    "osascript",
    "slack",
    "todo",
    "task",
    "claude",
    "codex",
    "gemini",
    "llm",
    "aider",
];

static TEXT_NAMES: LazyLock<names::Names> = LazyLock::new(|| names::Names::new(TAKES_TEXT));

impl Engine<'_> {
    /// Looks at the arguments of a program that takes no text.
    pub(super) fn suspect(&mut self, program: &str, argv: &[Argument], span: &Range<usize>) {
        if argv.len() > 2 && !TEXT_NAMES.contains(program) && !names::is_known(program) {
            self.suspect_rest(argv, span);
        }
    }

    /// Runs what stands behind the first word on trial: if that would be severe, the command is suspicious.
    pub(super) fn suspect_rest(&mut self, argv: &[Argument], span: &Range<usize>) {
        if self.trial > 0 {
            return;
        }
        for at in 1..argv.len().min(24) {
            let Some(word) = argv.get(at) else { break };
            let text = names::base_name(&word.text);
            let is_candidate = DANGEROUS.contains(&text) || text.starts_with("mkfs.");
            if !is_candidate || argv.len() == at + 1 {
                continue;
            }
            // A trial copies what was seen so far.
            if !self.charge(20 + self.seen.len()) {
                return;
            }
            if let Some(target) = self.try_command(&argv[at..], span) {
                let program = names::base_name(&argv[0].text).replace('\0', "");
                let attributes = Attributes { detail: text.to_owned(), ..Attributes::default() };
                let argv: Arc<[Argument]> = argv.into();
                self.effect(EffectKind::SuspiciousWrapper, target, attributes, &program, &argv, span);
                return;
            }
        }
        // `$X -rf /`: dangerous arguments for whatever would take them.
        if argv[0].is_unknown() && self.is_removal(&argv[1..]) {
            self.note_unknown_command(span);
            let target = argv.last().map(|last| Target {
                text: last.text.clone(),
                has_glob: last.has_glob,
                kind: TargetKind::Path,
            });
            let attributes = Attributes { detail: "unknown".to_owned(), ..Attributes::default() };
            let argv: Arc<[Argument]> = argv.into();
            self.effect(EffectKind::SuspiciousWrapper, target, attributes, "", &argv, span);
        }
    }

    /// `ruby -e 'rm -rf /'`: a command of the shell where a script of another language is wanted. It would not run; whoever
    /// wrote it meant it to.
    pub(super) fn suspect_text(&mut self, code: &Argument, argv: &[Argument], span: &Range<usize>) {
        let text = code.text.trim_start();
        if self.trial > 0 || text.len() > 200 || text.contains(['(', '{', ';']) {
            return;
        }
        let words: Vec<Argument> =
            text.split_whitespace().map(|word| code.with_text(word.to_owned())).collect();
        let [name, _, ..] = words.as_slice() else { return };
        if !DANGEROUS.contains(&names::base_name(&name.text)) || !self.charge(20 + self.seen.len()) {
            return;
        }
        if let Some(target) = self.try_command(&words, span) {
            let program = names::base_name(&argv[0].text).to_owned();
            let attributes =
                Attributes { detail: names::base_name(&words[0].text).to_owned(), ..Attributes::default() };
            self.effect(EffectKind::SuspiciousWrapper, target, attributes, &program, &argv.into(), span);
        }
    }

    fn is_removal(&mut self, arguments: &[Argument]) -> bool {
        let flag = |short: char, long: &str| {
            arguments.iter().any(|a| {
                a.text == long
                    || (a.text.starts_with('-') && !a.text.starts_with("--") && a.text.contains(short))
            })
        };
        if !(flag('r', "--recursive") || flag('R', "--recursive")) || !flag('f', "--force") {
            return false;
        }
        arguments.iter().any(|a| !a.text.starts_with('-') && self.is_root_like(&a.text))
    }

    /// Whether a path is the root, a folder of the system or a home.
    fn is_root_like(&mut self, path: &str) -> bool {
        let cwd = self.cwd();
        let place = Place { cwd: &cwd, ..self.place };
        let path =
            path.strip_suffix("/*").map_or(path, |folder| if folder.is_empty() { "/" } else { folder });
        let path = crate::paths::normalise(path, &place);
        matches!(
            crate::paths::kind_of(&path, &place),
            PlaceKind::Root
                | PlaceKind::SystemTop
                | PlaceKind::System
                | PlaceKind::Homes
                | PlaceKind::Home
                | PlaceKind::Device
        )
    }

    /// The target of the first severe effect of a command, if it has one. Nothing of the trial is kept.
    fn try_command(&mut self, argv: &[Argument], span: &Range<usize>) -> Option<Option<Target>> {
        let effects = self.analysis.effects.len();
        let unresolved = self.analysis.unresolved.len();
        let seen = self.seen.clone();
        let facts = self.facts.clone();
        let reads = self.reads.len();
        let io = self.io.clone();
        self.trial += 1;
        let mark = self.scope.mark();
        self.run_argv(argv, span);
        self.scope.roll_back(mark);
        self.trial -= 1;
        self.io = io;
        self.facts = facts;
        self.reads.truncate(reads);
        self.seen = seen;
        self.analysis.unresolved.truncate(unresolved.max(usize::from(self.stopped)));
        let tried: Vec<Effect> = self.analysis.effects.drain(effects..).collect();
        tried.into_iter().find(|effect| self.is_severe(effect)).map(|effect| effect.target)
    }

    fn is_severe(&mut self, effect: &Effect) -> bool {
        match effect.kind {
            EffectKind::RawDiskWrite
            | EffectKind::ForkBomb
            | EffectKind::ReverseShell
            | EffectKind::BindShell
            | EffectKind::FetchAndExecute => true,
            EffectKind::DeletePath
            | EffectKind::ChangeMode
            | EffectKind::ChangeOwner
            | EffectKind::WritePath => {
                effect.target.as_ref().is_some_and(|target| self.is_root_like(&target.text))
            }
            _ => false,
        }
    }
}
