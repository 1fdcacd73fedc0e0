//! What was read flows on: into words and variables, into copies and archives, and with them to another host.

use std::ops::Range;
use std::sync::Arc;

use super::super::argument::{Argument, CARRIED_HOLE, HOLE, Origin};
use super::super::carried::{Carried, Pick, Read};
use super::super::effect::{Effect, EffectKind, Target, TargetKind};
use super::super::owners;
use super::super::programs::Input;
use super::{Engine, signin};

/// Programs that print a piece of what they read.
const SELECTORS: &[&str] =
    &["grep", "egrep", "rg", "jq", "yq", "sed", "awk", "gawk", "mawk", "cut", "perl", "dasel"];
/// Programs that read a key without telling what is in it: they tell of its public half, or sign with it.
const KEEP_KEYS: &[&str] =
    &["ssh-keygen", "ssh-add", "ssh", "git", "puttygen", "certbot", "minisign", "cosign"];
/// Sub-commands of `openssl` that print what they are given.
const OPENSSL_PRINTS: &[&str] = &["enc", "base64", "cms", "smime", "pkcs12", "rsa", "pkey", "ec"];

/// Details of a told transfer: a credential by which its sender signs in, and a whole file that was given in its place.
pub(super) const SIGN_IN: &str = "sign-in";
const SIGN_IN_FILE: &str = "sign-in file";
/// Words of a program that are remembered with the secret that it prints.
const WORDS_MAX: usize = 12;
/// Bytes of a filter that are remembered with what it picks.
const FILTER_BYTES_MAX: usize = 200;
/// Lines that are a piece of a file.
const LINES_MAX: u32 = 3;

impl Engine<'_> {
    /// Notes a file that is read, for whatever its text flows into; with it the files that it was made of.
    pub(super) fn note_read(&mut self, target: &Target, recursive: bool) {
        let made_of = self.files.carried(&target.text);
        self.reads.extend_from_slice(made_of.reads());
        self.reads.push(Read::all(target.clone(), recursive));
    }

    /// Notes a secret that a program prints: a token as the file in which the programs of its provider keep it, any other by
    /// what was asked for.
    pub(super) fn note_secret(&mut self, program: &str, detail: &str, argv: &[Argument]) {
        let read = match owners::token_of(detail) {
            Some((path, _)) => {
                let target = Target { text: path.to_owned(), has_glob: false, kind: TargetKind::Path };
                Read {
                    pick: Pick::Asked(Arc::from([detail.to_owned()])),
                    is_token: true,
                    ..Read::all(target, false)
                }
            }
            None => {
                let text = format!("{}{program}", owners::PRINTED);
                let target = Target { text, has_glob: false, kind: TargetKind::Name };
                let words: Vec<String> =
                    argv.iter().skip(1).take(WORDS_MAX).map(|word| word.text.clone()).collect();
                Read { pick: Pick::Asked(Arc::from(words)), ..Read::all(target, false) }
            }
        };
        self.reads.push(read);
    }

    /// Notes what was typed before, which the shell itself prints.
    pub(super) fn note_history(&mut self) {
        let target = Target { text: "~/.bash_history".to_owned(), has_glob: false, kind: TargetKind::Path };
        self.reads.push(Read::all(target, false));
    }

    /// Files go to another host by some other way than the words of a program.
    pub(super) fn send_carried(&mut self, carried: &Carried, detail: &str, span: &Range<usize>) {
        for read in carried.reads().iter().filter(|read| read.pick != Pick::Address) {
            if !self.charge(4) {
                return;
            }
            let effect = Effect {
                kind: EffectKind::SendData,
                target: Some(self.resolve_target(read.target.clone())),
                recursive: read.recursive,
                forced: false,
                detail: detail.to_owned(),
                program: String::new(),
                argv: Arc::from(Vec::new()),
                span: span.clone(),
                via: self.via.clone(),
            };
            self.push(effect);
        }
    }

    /// Output of a program that is not known, but what it may hold.
    pub(super) fn print_unknown(&mut self, program: &str, argv: &[Argument], origin: Origin) {
        let carried = if self.io.wanted && !matches!(origin, Origin::Network(_)) {
            self.printed_by(program, argv)
        } else {
            Carried::default()
        };
        self.io.write_unknown(origin, carried);
    }

    /// The files of whose text the output of a program holds a piece.
    pub(super) fn printed_by(&self, program: &str, argv: &[Argument]) -> Carried {
        let is_silent = super::output::is_summary(program) && program != "gpg"
            || KEEP_KEYS.contains(&program)
                && !argv.iter().any(|word| matches!(word.text.as_str(), "credential" | "--no-index"))
            || program == "openssl" && !prints_key(argv);
        if is_silent {
            return Carried::default();
        }
        let own = self.reads[self.reads_from..].iter().cloned();
        let mut carried = Carried::of(own);
        carried.merge(&self.io.stdin.input.carried());
        for argument in &argv[1..] {
            carried.merge(&argument.carried);
        }
        // What a variable names is taken over by whoever prints it.
        self.printed_names(program, argv, &mut carried);
        match filter_of(program, argv) {
            Some(filter) => {
                let pick = Pick::Filter(Arc::from(filter));
                let picked = |read: &Read| match read.pick {
                    Pick::All | Pick::Filter(_) if read.target.kind == TargetKind::Path => {
                        Read { pick: pick.clone(), ..read.clone() }
                    }
                    _ => read.clone(),
                };
                Carried::of(carried.reads().iter().map(picked))
            }
            None => carried,
        }
    }

    /// What variables hold that a program is told to print by their names, as `envsubst` is.
    fn printed_names(&self, program: &str, argv: &[Argument], carried: &mut Carried) {
        if program == "envsubst" {
            let given = match &self.io.stdin.input {
                Input::Text(text) => text.text.as_str(),
                _ => "",
            };
            for text in argv.iter().skip(1).map(|word| word.text.as_str()).chain([given]) {
                carried.merge(&self.variables_in(text));
            }
        }
    }

    /// What variables carry whose names stand in a text.
    pub(super) fn variables_in(&self, text: &str) -> Carried {
        let mut carried = Carried::default();
        for (name, value) in self.scope.carrying() {
            let is_word = |at: usize| {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
                !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
            };
            if text.match_indices(name).any(|(at, _)| is_word(at)) {
                carried.merge(value);
            }
        }
        carried
    }

    /// A text of the script with what its holes were filled from, if it has such holes.
    pub(in crate::shell) fn filled(&self, text: &str) -> Option<Argument> {
        if self.holes_carried.is_empty() || !text.contains(CARRIED_HOLE) {
            return None;
        }
        let text = text.replace(CARRIED_HOLE, HOLE.encode_utf8(&mut [0; 4]));
        let (origin, carried) = (self.holes.clone(), self.holes_carried.clone());
        Some(Argument { text, origin, carried, ..Argument::default() })
    }

    /// After a program ran: what it made holds what it read, and what it sent holds what its words, its input and the files
    /// were made of. `effects` is the number of effects before it.
    pub(super) fn flow(&mut self, argv: &[Argument], effects: usize, span: &Range<usize>) {
        let Some(talk) = self.talk.take() else {
            self.made(effects);
            return;
        };
        let talk = self.sent.first().cloned().unwrap_or(talk);
        let mut sent: Vec<(Read, &str)> = Vec::new();
        let mut carry = |carried: &Carried, detail| {
            sent.extend(carried.reads().iter().map(|read| (read.clone(), detail)));
        };
        for (at, argument) in argv.iter().enumerate().skip(1) {
            let detail = if signin::is_sign_in(argv, at) { SIGN_IN } else { "" };
            carry(&argument.carried, detail);
            // A pipe that stands for a file, as in `<(cat file)`, and a file of options.
            if argument.text.starts_with("/dev/fd/") || matches!(&*argv[at - 1].text, "-K" | "--config") {
                carry(&self.files.carried(&argument.text), detail);
            }
        }
        let mut opened = Vec::new();
        for effect in &self.sent {
            match &effect.target {
                Some(target) if target.kind == TargetKind::Path => {
                    carry(&self.files.carried(&target.text), "");
                    opened.extend(self.opened(&target.text));
                }
                Some(target) if target.kind == TargetKind::Network => {}
                _ => carry(&self.io.stdin.input.carried(), if talk.detail == SIGN_IN { SIGN_IN } else { "" }),
            }
        }
        // awk reads and prints in one.
        if matches!(&*talk.program, "awk" | "gawk" | "mawk" | "nawk") || talk.via.last() == Some(&"awk") {
            carry(&Carried::of(self.reads[self.reads_from..].iter().cloned()), "");
        }
        opened.iter().for_each(|input| carry(&input.carried(), ""));
        self.sent.clear();
        let hosts = signin::Hosts::of(argv);
        let place = self.cwd();
        sent.retain(|(read, detail)| {
            let is_in_project = read.target.kind == TargetKind::Path && is_in(&read.target.text, &place);
            let is_own = hosts.own(read, *detail == SIGN_IN);
            !(is_own || read.pick == Pick::Address || read.is_selected() && is_in_project)
        });
        for (read, detail) in sent {
            let mut told = talk.clone();
            told.kind = EffectKind::SendData;
            told.recursive = read.recursive;
            let is_whole = detail == SIGN_IN && read.pick == Pick::All;
            told.target = Some(self.resolve_target(read.target));
            let detail = if is_whole { SIGN_IN_FILE } else { detail };
            told.detail = if detail.is_empty() { told.detail } else { detail.to_owned() };
            told.span = span.clone();
            if !self.charge(4) {
                return;
            }
            self.push(told);
        }
    }

    /// What a program wrote holds what it read.
    fn made(&mut self, effects: usize) {
        self.sent.clear();
        if self.reads.len() == self.reads_from {
            return;
        }
        let is_file = |effect: &&Effect| effect.kind == EffectKind::WritePath;
        let written = self.analysis.effects.get(effects..).unwrap_or_default().iter().filter(is_file);
        let carried = Carried::of(self.reads[self.reads_from..].iter().cloned());
        let named = written.filter_map(|effect| Some((effect.target.as_ref()?, effect.detail == "split")));
        for (target, is_split) in named {
            if is_split && target.text.len() > 1 {
                self.files.split(&target.text, &carried);
            }
            // A file of which nothing is known may be any.
            if target.kind == TargetKind::Path && target.text.chars().any(|c| c != HOLE) {
                self.files.make(&target.text, &carried);
            }
        }
    }
}

impl Input {
    /// The files whose text it may hold.
    pub(in crate::shell) fn carried(&self) -> Carried {
        match self {
            Self::Text(text) => text.carried.clone(),
            Self::Output(_, carried) => carried.clone(),
            Self::File(path) => {
                let target =
                    Target { text: path.text.clone(), has_glob: path.has_glob, kind: TargetKind::Path };
                Carried::of([Read::all(target, false)])
            }
            Self::None | Self::Network(_) => Carried::default(),
        }
    }
}

/// The words by which a program takes a piece of what it reads; `None` for one that prints all of it.
fn filter_of(program: &str, argv: &[Argument]) -> Option<String> {
    let words = || argv.iter().skip(1).map(|word| word.text.as_str());
    let is_filter = match program {
        // A line or a few bytes; more than that is most of a file of credentials.
        "head" | "tail" => words().any(|word| {
            let digits = word.trim_start_matches("--lines=").trim_start_matches(['-', 'n']);
            word.starts_with("-c") || digits.parse::<u32>().is_ok_and(|count| count <= LINES_MAX)
        }),
        // What fits every line picks nothing.
        _ if SELECTORS.contains(&program) => {
            let script = words().find(|word| !word.starts_with('-'));
            script.is_some_and(|script| {
                !matches!(
                    script,
                    "" | "." | "1" | ".*" | "^" | "$" | "{print}" | "{print $0}" | "print" | "p"
                )
            })
        }
        _ => false,
    };
    is_filter.then(|| {
        // The filter itself is the word that is neither an option nor a file; names of files do no harm.
        let filter = words().find(|word| !word.starts_with('-')).unwrap_or_default();
        filter[..filter.floor_char_boundary(FILTER_BYTES_MAX)].to_owned()
    })
}

fn prints_key(argv: &[Argument]) -> bool {
    let has = |word: &str| argv.iter().any(|argument| argument.text == word);
    argv.get(1).is_some_and(|verb| OPENSSL_PRINTS.contains(&verb.text.as_str()))
        && !has("-pubout")
        && !has("-noout")
}

/// Whether a path lies in the working directory, where that is no folder that programs keep to themselves.
fn is_in(path: &str, cwd: &str) -> bool {
    if cwd.contains("/.") {
        return false;
    }
    let is_relative = !path.starts_with(['/', '~', '$', '%', HOLE]) && !path.starts_with("..");
    is_relative || cwd.len() > 1 && path.strip_prefix(cwd).is_some_and(|rest| rest.starts_with('/'))
}
