//! What analysers share: an invocation together with the place its effects go to.

use super::super::argument::{Argument, HOLE};
use super::super::effect::{EffectKind, Target, TargetKind};
use super::options::{Grammar, Options, part};
use super::{Attributes, Invocation, Language, Sink};

/// A program about to run and where its effects are told.
pub(super) struct Call<'a, 's> {
    /// The invocation.
    pub invocation: &'a Invocation<'a>,
    /// Where effects go.
    pub sink: &'s mut dyn Sink,
}

impl<'a> Call<'a, '_> {
    /// Base name of the program.
    pub fn program(&self) -> &'a str {
        self.invocation.program
    }

    /// Arguments without the program's name.
    pub fn arguments(&self) -> &'a [Argument] {
        self.invocation.argv.get(1..).unwrap_or_default()
    }

    /// Options and operands.
    pub fn options(&self, grammar: &Grammar) -> Options<'a> {
        Options::parse(self.arguments(), grammar)
    }

    /// An effect with all its attributes.
    pub fn effect(&mut self, kind: EffectKind, target: Option<Target>, attributes: Attributes) {
        self.sink.effect(kind, target, attributes);
    }

    /// An effect that needs no more than a detail.
    pub fn tell(&mut self, kind: EffectKind, target: Option<Target>, detail: &str) {
        self.sink.effect(kind, target, Attributes { detail: detail.to_owned(), ..Attributes::default() });
    }

    /// A path is deleted.
    pub fn delete(&mut self, path: &Argument, recursive: bool, forced: bool, detail: &str) {
        let attributes = Attributes { recursive, forced, detail: detail.to_owned() };
        self.sink.effect(EffectKind::DeletePath, Some(path_target(path)), attributes);
    }

    /// A path is written.
    pub fn write(&mut self, path: &Argument, detail: &str) {
        if !is_stream(&path.text) {
            self.tell(EffectKind::WritePath, Some(path_target(path)), detail);
        }
    }

    /// A path is read.
    pub fn read(&mut self, path: &Argument, recursive: bool, detail: &str) {
        if !is_stream(&path.text) {
            let attributes = Attributes { recursive, forced: false, detail: detail.to_owned() };
            self.sink.effect(EffectKind::ReadPath, Some(path_target(path)), attributes);
        }
    }

    /// A block device is written or repartitioned.
    pub fn disk(&mut self, device: &Argument, forced: bool, detail: &str) {
        let attributes = Attributes { recursive: false, forced, detail: detail.to_owned() };
        self.sink.effect(EffectKind::RawDiskWrite, Some(path_target(device)), attributes);
    }

    /// Data of a file, or of the standard input, goes to another host.
    pub fn send_file(&mut self, path: &Argument, detail: &str) {
        if is_stream(&path.text) {
            self.send_input(detail);
        } else {
            self.read(path, false, detail);
            self.tell(EffectKind::SendData, Some(path_target(path)), detail);
        }
    }

    /// What stands on the standard input goes to another host.
    pub fn send_input(&mut self, detail: &str) {
        let target = match self.invocation.input {
            super::Input::File(path) => Some(path_target(path)),
            super::Input::Output(program, _) => {
                Some(Target { text: program.clone(), has_glob: false, kind: TargetKind::Name })
            }
            super::Input::Text(_) | super::Input::Network(_) | super::Input::None => None,
        };
        self.tell(EffectKind::SendData, target, detail);
    }

    /// A text runs as a shell script.
    pub fn shell(&mut self, script: &Argument, via: &'static str) {
        self.sink.script(Language::Shell, script, via);
    }

    /// Another command runs.
    pub fn run(&mut self, argv: &[Argument], via: &'static str) {
        if !argv.is_empty() {
            self.sink.run(argv, via);
        }
    }
}

/// A path as the target of an effect.
pub(super) fn path_target(path: &Argument) -> Target {
    Target { text: path.text.clone(), has_glob: path.has_glob, kind: TargetKind::Path }
}

/// A host, address or URL as the target of an effect.
pub(super) fn network_target(host: &Argument) -> Target {
    Target { text: host.text.clone(), has_glob: false, kind: TargetKind::Network }
}

/// A path of another machine or of a container as the target of an effect.
pub(super) fn remote_target(path: &Argument) -> Target {
    Target { text: path.text.clone(), has_glob: path.has_glob, kind: TargetKind::Remote }
}

/// A name as the target of an effect.
pub(super) fn name_target(name: &str) -> Target {
    Target { text: name.to_owned(), has_glob: false, kind: TargetKind::Name }
}

/// Whether an operand stands for standard input or output.
pub(super) fn is_stream(text: &str) -> bool {
    text == "-" || text.is_empty()
}

/// The last component of a path, trailing slashes left out.
pub(super) fn base_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// A name below a folder.
pub(super) fn join(folder: &Argument, name: &str) -> Argument {
    let mut joined = part(folder, folder.text.trim_end_matches('/'));
    joined.text.push('/');
    joined.text.push_str(name);
    joined
}

/// An argument made up by an analyser, at the place of another one.
pub(super) fn word(text: &str, like: &Argument) -> Argument {
    Argument::constant(text, like.span.clone())
}

/// Something below a folder whose name is not known.
pub(super) fn below(folder: &Argument) -> Argument {
    join(folder, HOLE.encode_utf8(&mut [0; 4]))
}

/// Whether a name is that of a shell, with or without its folder.
pub(super) fn is_shell(text: &str) -> bool {
    let name = base_name(text).trim_end_matches(".exe").to_ascii_lowercase();
    matches!(
        name.as_str(),
        "sh" | "bash"
            | "zsh"
            | "dash"
            | "ksh"
            | "ash"
            | "fish"
            | "csh"
            | "tcsh"
            | "mksh"
            | "rbash"
            | "busybox"
            | "cmd"
            | "powershell"
            | "pwsh"
    )
}
