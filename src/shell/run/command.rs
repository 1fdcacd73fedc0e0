//! Runs one resolved argument vector: builtin, wrapper, interpreter or program.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use super::super::analysis::UnresolvedCause;
use super::super::argument::{Argument, HOLE, Origin};
use super::super::carried::Carried;
use super::super::effect::{EffectKind, Target, TargetKind};
use super::super::programs::{self, Attributes, Input, Invocation};
use super::io::{Channel, Content};
use super::sink::ProgramSink;
use super::{Engine, names};

/// Programs whose output nobody can foresee and that exist to make text out of what cannot be read.
const DECODERS: &[&str] = &[
    "base64",
    "b64decode",
    "base32",
    "basenc",
    "xxd",
    "openssl",
    "gpg",
    "gunzip",
    "gzip",
    "zcat",
    "bzcat",
    "bunzip2",
    "xzcat",
    "unxz",
    "xz",
    "zstdcat",
    "zstd",
    "lz4",
    "uudecode",
    "rev",
    "ascii85",
    "btoa",
    "steghide",
    "age",
    "ccrypt",
    "brotli",
    "uncompress",
    "compress",
];

static DECODER_NAMES: LazyLock<names::Names> = LazyLock::new(|| names::Names::new(DECODERS));

/// Files that hold passwords and rights, which no ordinary program takes as an argument.
const ACCOUNT_FILES: &[&str] = &[
    "/etc/passwd",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/master.passwd",
    "/etc/krb5.keytab",
];

/// Words of scripts of other languages that make a connection.
const NETWORK_CALLS: &[&str] = &[
    "HTTP::Tiny",
    "IO::Socket",
    "LWP::",
    "Net::HTTP",
    "Socket.new",
    "TCPSocket",
    "XMLHttpRequest",
    "axios.",
    "fetch(",
    "fsockopen",
    "http.client",
    "net.connect",
    "net.createConnection",
    "requests.post",
    "requests.put",
    "socket.socket",
    "socket.tcp",
    "urlopen(",
];

/// Programs that tell about a file, or take its name as text, without telling what it holds.
const LOOKS_ONLY: &[&str] = &[
    "ls",
    "stat",
    "test",
    "[",
    "[[",
    "echo",
    "printf",
    "realpath",
    "readlink",
    "dirname",
    "basename",
    "lsattr",
    "getfacl",
    "namei",
    "du",
    "wc",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "cksum",
    "rpm",
    "dpkg",
    "dpkg-query",
    "debsums",
    "exa",
    "eza",
    "lsd",
    "tree",
    "which",
    "man",
    "restorecon",
    "chcon",
    "augtool",
    "visudo",
    "lsof",
    "fuser",
    "inotifywait",
    "auditctl",
    "ausearch",
    "lynis",
    "aide",
    "yum",
    "dnf",
    "apt-file",
    "locate",
    "git",
    "tldr",
    "grep",
];

/// Steps that one command costs.
const COMMAND_STEPS: usize = 40;

impl Engine<'_> {
    /// Runs a command whose arguments are known as far as they can be.
    pub(super) fn run_argv(&mut self, argv: &[Argument], span: &Range<usize>) {
        let Some(name) = argv.first() else { return };
        if !self.charge(COMMAND_STEPS + argv.len()) || !self.enter(|| span.clone()) {
            return;
        }
        #[cfg(test)]
        self.trace.push(argv.iter().map(|argument| argument.text.clone()).collect());
        let (candidates, steps) = if name.has_glob { names::from_glob(name) } else { (Vec::new(), 0) };
        self.charge(steps);
        for program in &candidates {
            self.dispatch(program, argv, span);
        }
        if candidates.is_empty() {
            let program = names::program(name);
            if program.is_empty() {
                self.unknown_name(argv, span);
            } else {
                self.dispatch(&program, argv, span);
            }
        }
        self.leave();
    }

    fn dispatch(&mut self, program: &str, argv: &[Argument], span: &Range<usize>) {
        if self.builtin(program, argv, span) {
            return;
        }
        let (effects, reads) = (self.analysis.effects.len(), self.reads.len());
        let outer = (std::mem::replace(&mut self.reads_from, reads), self.talk.take());
        let sent = std::mem::take(&mut self.sent);
        self.dispatch_program(program, argv, span, effects);
        self.sent = sent;
        (self.reads_from, self.talk) = outer;
    }

    fn dispatch_program(&mut self, program: &str, argv: &[Argument], span: &Range<usize>, effects: usize) {
        let given = self.io.stdin.input.carried();
        let is_done = self.interpreter(program, argv, span);
        // What a shell runs was looked at command by command; a program of another language may send all that it was given.
        let talks = |word: &Argument| NETWORK_CALLS.iter().any(|call| word.text.contains(call));
        let is_script = || super::interpreters::language(program).is_some();
        if self.talk.is_some() || is_script() && argv.iter().skip(1).any(talks) {
            self.send_carried(&given, "program", span);
            // It finds what was exported to it by the name.
            for word in argv.iter().skip(1) {
                let carried = self.variables_in(&word.text);
                self.send_carried(&carried, "program", span);
            }
        }
        if is_done {
            if self.talk.is_some() {
                self.flow(argv, effects, span);
            }
            return;
        }
        if self.wrapper(program, argv, span) {
            return;
        }
        if self.known_file(argv, span) {
            return;
        }
        self.program(program, argv, span);
        match program {
            "git" => self.repository(argv, span),
            "gh" => self.published_repository(argv, span),
            "docker" | "podman" | "nerdctl" | "buildah" => self.image(argv, span),
            _ => {}
        }
        self.handed_over(program, argv, span);
        self.flow(argv, effects, span);
    }

    /// Lets the analysers of programs tell what the command does, then works out what it prints.
    pub(super) fn program(&mut self, program: &str, argv: &[Argument], span: &Range<usize>) {
        let cwd = self.cwd();
        let stdin = std::rc::Rc::clone(&self.io.stdin);
        let place = crate::paths::Place { cwd: &cwd, ..self.place };
        let is_silent = matches!(&self.io.stdout, Channel::File(path) if &**path == "/dev/null");
        let invocation = Invocation { program, argv, place, input: &stdin.input, is_silent, span };
        let effects = self.analysis.effects.len();
        let mut sink = ProgramSink::new(self, program, argv, span);
        programs::analyse(&invocation, &mut sink);
        if self.analysis.effects.len() == effects
            && argv.iter().any(|a| a.text.contains("/etc/"))
            && !LOOKS_ONLY.contains(&program)
        {
            self.account_files(argv, span);
        }
        self.listed(program, argv, span);
        self.read_by_script(program, argv, span);
        self.network(program, argv, span);
        self.privileged_temp(argv, span);
        self.suspect(program, argv, span);
        self.output(program, argv, span);
    }

    /// A program that root runs out of a folder where everybody may put one, when nothing in the command put it there.
    fn privileged_temp(&mut self, argv: &[Argument], span: &Range<usize>) {
        const FOLDERS: &[&str] = &["/tmp/", "/var/tmp/", "/dev/shm/", "/private/tmp/"];
        const RAISES: &[&str] = &["sudo", "doas", "pkexec", "run0", "su", "runuser"];
        let name = &argv[0];
        if !FOLDERS.iter().any(|folder| name.text.starts_with(folder))
            || !self.via.iter().any(|via| RAISES.contains(via))
            || self
                .analysis
                .effects
                .iter()
                .any(|e| matches!(e.kind, EffectKind::WritePath | EffectKind::Fetch))
        {
            return;
        }
        let target = Target { text: self.spelled(name), has_glob: false, kind: TargetKind::Path };
        let attributes = Attributes { detail: "privileged".to_owned(), ..Attributes::default() };
        self.effect(EffectKind::OpaqueExecution, Some(target), attributes, "", &argv.into(), span);
    }

    /// A program that is not known, given a file with passwords: it has no other use for it than to read it.
    fn account_files(&mut self, argv: &[Argument], span: &Range<usize>) {
        for argument in &argv[1..] {
            let path = argument.text.rsplit_once('=').map_or(argument.text.as_str(), |(_, value)| value);
            if path.starts_with("/etc/") && ACCOUNT_FILES.contains(&path) {
                let path = argument.with_text(path.to_owned());
                self.path_effect(EffectKind::ReadPath, &path, "", span);
            }
        }
    }

    /// A command whose name is not known: code if the name came from somewhere, otherwise only what stands behind it.
    fn unknown_name(&mut self, argv: &[Argument], span: &Range<usize>) {
        let name = &argv[0];
        let mut origin = name.origin.clone();
        if origin == Origin::Environment && name.is_unknown() {
            origin = self.holes.clone();
        }
        match &origin {
            Origin::Network(from) => self.fetched(from, argv, span),
            Origin::Output(program) if name.text.starts_with(HOLE) && is_decoder(program) => {
                self.opaque_from(program, argv, span);
            }
            _ => {
                if let Some(script) = argv.get(1) {
                    self.stealing_script(script, argv, span);
                }
                self.account_files(argv, span);
                self.suspect_rest(argv, span);
            }
        }
        let mut carried = Carried::default();
        argv.iter().for_each(|argument| carried.merge(&argument.carried));
        self.io.write_unknown(Origin::Environment, carried);
    }

    /// Code from the network runs.
    pub(super) fn fetched(&mut self, from: &str, argv: &[Argument], span: &Range<usize>) {
        let target = (!from.is_empty()).then(|| Target {
            text: from.to_owned(),
            has_glob: false,
            kind: TargetKind::Network,
        });
        let argv: Arc<[Argument]> = argv.into();
        let program = argv.first().map(|name| names::base_name(&name.text).to_owned()).unwrap_or_default();
        self.effect(EffectKind::FetchAndExecute, target, Attributes::default(), &program, &argv, span);
    }

    /// Code that could not be computed runs.
    pub(super) fn opaque_from(&mut self, source: &str, argv: &[Argument], span: &Range<usize>) {
        self.note_decoded_output(source, span);
        let attributes = Attributes { detail: source.to_owned(), ..Attributes::default() };
        let argv: Arc<[Argument]> = argv.into();
        let program = argv.first().map(|name| names::base_name(&name.text).to_owned()).unwrap_or_default();
        self.effect(EffectKind::OpaqueExecution, None, attributes, &program, &argv, span);
    }

    /// Whether nothing of a script's text is known, though where it comes from is.
    pub(super) fn is_opaque(&self, text: &Argument) -> bool {
        text.origin != Origin::Environment
            && text.text.contains(HOLE)
            && text.text.chars().all(|c| c == HOLE || c.is_whitespace() || matches!(c, '"' | '\'' | ';'))
    }

    /// Notes that a text of which only the origin is known runs as code.
    pub(super) fn opaque(&mut self, text: &Argument, via: Option<&'static str>) {
        self.via.extend(via);
        let argv = [text.clone()];
        match &text.origin {
            Origin::Network(from) => self.fetched(from, &argv, &text.span),
            Origin::Output(program) => self.opaque_from(program, &argv, &text.span),
            Origin::Environment => {}
        }
        self.via.truncate(self.via.len() - usize::from(via.is_some()));
    }

    /// Runs a file that was written earlier in the same command.
    fn known_file(&mut self, argv: &[Argument], span: &Range<usize>) -> bool {
        let name = &argv[0];
        if self.files.is_empty() || !(name.text.contains('/') || is_windows_program(&name.text)) {
            return false;
        }
        let path = self.spelled(name);
        match self.files.get(&path).cloned() {
            Some(Content::Data(Input::Text(text))) => {
                self.run_file(&text, argv, span);
                true
            }
            Some(Content::Data(Input::Network(from))) => {
                self.fetched(&from, argv, span);
                true
            }
            Some(Content::Data(Input::Output(program, _))) => {
                if is_decoder(&program) {
                    self.opaque_from(&program, argv, span);
                }
                true
            }
            _ => false,
        }
    }

    /// Runs the text of a script file by its first line.
    pub(super) fn run_file(&mut self, text: &Argument, argv: &[Argument], span: &Range<usize>) {
        match language_of(&text.text) {
            Some(language) => self.run_script_text(language, text, "script"),
            None => {
                let old = self.scope.set_positional(Some(std::rc::Rc::new(argv[1..].to_vec())));
                let mark = self.scope.mark();
                self.run_text(text, Some("script"));
                self.scope.roll_back(mark);
                self.scope.set_positional(old);
            }
        }
        let _ = span;
    }

    /// A program that shares the file with the command: the shell's standard input and output.
    pub(super) fn socket_of_shell(&self) -> Option<Arc<str>> {
        let stdin = &self.io.stdin.channel;
        match (stdin, &self.io.stdout) {
            (Channel::Socket(host), _) | (_, Channel::Socket(host)) => Some(Arc::clone(host)),
            (Channel::Foreign(a), Channel::Foreign(b)) if a == b => Some(Arc::from("")),
            _ => None,
        }
    }

    /// Notes a command that the analysis cannot know and that would do harm.
    pub(super) fn note_unknown_command(&mut self, span: &Range<usize>) {
        self.note(UnresolvedCause::UnknownCommand, span.clone());
    }
}

/// Whether a name is that of a file which Windows runs out of the working directory.
fn is_windows_program(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    extension.is_some_and(|extension| matches!(extension.as_str(), "exe" | "bat" | "cmd" | "com" | "scr"))
}

/// Whether a program turns unreadable text into readable text.
pub(super) fn is_decoder(program: &str) -> bool {
    DECODER_NAMES.contains(program)
}

/// The language that the first line of a script names, unless it is a shell.
pub(super) fn language_of(text: &str) -> Option<super::super::programs::Language> {
    let line = text.lines().next()?.strip_prefix("#!")?;
    let mut words = line.split_whitespace().filter(|word| !word.starts_with('-'));
    let first = names::base_name(words.next()?);
    let name = if first == "env" { words.next()? } else { first };
    super::interpreters::language(&names::base_name(name).to_ascii_lowercase())
}

/// The language of a program text without a first line for the system, told by how such texts begin. Calls look the same
/// in most languages.
pub(super) fn language_of_source(text: &str) -> Option<super::super::programs::Language> {
    const BEGINNINGS: &[&str] =
        &["import 'dart:", "import \"dart:", "package main", "using System", "#include <"];
    let text = text.trim_start();
    BEGINNINGS
        .iter()
        .any(|beginning| text.starts_with(beginning))
        .then_some(super::super::programs::Language::JavaScript)
}

/// Whether a text begins like one for PowerShell: a cmdlet (`Verb-Noun`), one of its short names for running text, or a
/// type in brackets.
pub(super) fn looks_like_powershell(text: &str) -> bool {
    const VERBS: &[&str] = &[
        "add",
        "clear",
        "copy",
        "disable",
        "enable",
        "format",
        "get",
        "import",
        "invoke",
        "move",
        "new",
        "out",
        "register",
        "remove",
        "restart",
        "select",
        "set",
        "start",
        "stop",
        "write",
        "initialize",
    ];
    let word: &str =
        text.trim_start().split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    let lower = word.to_ascii_lowercase();
    if matches!(lower.as_str(), "iex" | "irm" | "iwr")
        || lower.starts_with("[system.")
        || lower.starts_with("[net.")
    {
        return true;
    }
    let Some((verb, noun)) = word.split_once('-') else { return false };
    // Programs of Unix are spelled in lower case.
    noun.starts_with(|c: char| c.is_ascii_uppercase()) && VERBS.contains(&verb.to_ascii_lowercase().as_str())
}
