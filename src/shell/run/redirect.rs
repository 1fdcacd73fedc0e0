//! Redirections: what a command reads and writes, and which descriptors lead to another host.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::super::analysis::Written;
use super::super::argument::{Argument, HOLE};
use super::super::ast::{ListId, Part, Redirect, RedirectOperator, WordId};
use super::super::carried::Carried;
use super::super::effect::{EffectKind, Target, TargetKind};
use super::super::programs::{Attributes, Input};
use super::io::{Channel, Content, Stdin, input_of};
use super::{Engine, Io, Script};

/// Texts that are noted as written.
const WRITTEN_MAX: usize = 16;

/// What has to be put back after a command, and what its output goes to.
pub(super) struct Redirected {
    outer: Option<Io>,
    /// Files that the output is written to, and whether it is appended.
    files: Vec<(Argument, bool)>,
    /// A process substitution that reads the output.
    reader: Option<ListId>,
    /// Whether the output is kept apart from what the outer command prints.
    is_captured: bool,
    /// Whether a coprocess reads the output.
    is_fed: bool,
    /// Another host that the output goes to.
    host: Option<Range<usize>>,
    /// A named pipe that the output goes to.
    pipe: Option<String>,
}

impl Engine<'_> {
    /// Puts redirections in force.
    pub(super) fn redirect(&mut self, script: &Script<'_>, redirects: &[Redirect<'_>]) -> Redirected {
        let mut state = Redirected {
            outer: None,
            files: Vec::new(),
            reader: None,
            is_captured: false,
            is_fed: false,
            host: None,
            pipe: None,
        };
        if redirects.is_empty() {
            return state;
        }
        let out = std::mem::take(&mut self.io.out);
        state.outer = Some(self.io.clone());
        self.io.out = out;
        for redirect in redirects {
            if !self.charge(25 + self.io.descriptors.len()) {
                break;
            }
            self.redirect_one(script, redirect, &mut state);
        }
        state
    }

    fn redirect_one(&mut self, script: &Script<'_>, redirect: &Redirect<'_>, state: &mut Redirected) {
        use RedirectOperator as Op;
        let span = script.span(redirect.span);
        let descriptor = self.descriptor(redirect);
        match redirect.operator {
            Op::HereDocument | Op::HereString => {
                let mut text = self.text(script, redirect.target);
                if redirect.operator == Op::HereString {
                    text.text.push('\n');
                }
                // An unquoted body may hold no more than the output of a command.
                let input =
                    if redirect.operator == Op::HereString && text.text.trim_end().len() == HOLE.len_utf8() {
                        text.text.truncate(1);
                        input_of(text)
                    } else {
                        Input::Text(text)
                    };
                if descriptor == "0" {
                    self.set_stdin(input, Channel::Inherited);
                } else {
                    let path = self.hidden_file(input);
                    self.connect(&descriptor, Channel::File(Arc::from(path)));
                }
            }
            Op::DuplicateInput | Op::DuplicateOutput => {
                let target = self.text(script, redirect.target);
                let number = target.text.trim_end_matches('-');
                if target.text == "-" {
                    return;
                }
                let is_descriptor = number.bytes().all(|b| b.is_ascii_digit()) || target.text.contains(HOLE);
                let is_input_of_coprocess = number == "60" || target.text.contains(HOLE);
                if redirect.operator == Op::DuplicateOutput
                    && descriptor == "1"
                    && is_input_of_coprocess
                    && self.coprocess.is_some()
                {
                    state.is_fed = true;
                    self.begin_capture(&span, state);
                }
                if is_descriptor {
                    // `<&${NAME[0]}`: what a coprocess prints.
                    let is_read = redirect.operator == Op::DuplicateInput && self.coprocess.is_some();
                    let number = if number.contains(HOLE) && is_read { "63" } else { number };
                    let channel = self.io.channel(number);
                    if descriptor == "1" && matches!(channel, Channel::Socket(_)) {
                        self.begin_capture(&span, state);
                        state.host = Some(span);
                    }
                    self.connect(&descriptor, channel);
                } else {
                    self.write_to(script, &target, &descriptor, false, &span, state, redirect.target);
                }
            }
            Op::Read => {
                let target = self.redirect_target(script, redirect.target);
                self.read_from(&target, &descriptor, &span);
            }
            Op::ReadWrite => {
                let target = self.redirect_target(script, redirect.target);
                if let Some(host) = socket(&target.text) {
                    self.connect(&descriptor, Channel::Socket(host));
                } else {
                    self.path_effect(EffectKind::WritePath, &target, "append", &span);
                    let path = self.spelled(&target);
                    self.connect(&descriptor, Channel::File(Arc::from(path)));
                }
            }
            Op::Write | Op::Clobber | Op::WriteBoth | Op::Append | Op::AppendBoth => {
                let append = matches!(redirect.operator, Op::Append | Op::AppendBoth);
                let target = self.redirect_target(script, redirect.target);
                self.write_to(script, &target, &descriptor, append, &span, state, redirect.target);
            }
        }
    }

    /// Number of the descriptor that a redirection changes.
    fn descriptor(&mut self, redirect: &Redirect<'_>) -> String {
        use RedirectOperator as Op;
        match redirect.descriptor {
            Some(name) if name.bytes().all(|b| b.is_ascii_digit()) => name.to_owned(),
            Some(name) => {
                // `{name}>`: the shell picks a number.
                let name = name.trim_matches(['{', '}']);
                let number = (10 + self.io.descriptors.len()).to_string();
                self.scope.set_text(name, Argument::constant(number.clone(), 0..0));
                number
            }
            None => match redirect.operator {
                Op::Read | Op::ReadWrite | Op::DuplicateInput | Op::HereDocument | Op::HereString => {
                    "0".to_owned()
                }
                _ => "1".to_owned(),
            },
        }
    }

    fn redirect_target(&mut self, script: &Script<'_>, word: WordId) -> Argument {
        // Only a process substitution for output must wait for the output; its text is not needed.
        if let [Part::Process { is_input: false, .. }] = script.ast.words[word.0 as usize].parts.as_slice() {
            return Argument {
                span: script.span(script.ast.words[word.0 as usize].span),
                ..Argument::default()
            };
        }
        let mut words = self.words(script, &[word]);
        match words.len() {
            1 => words.swap_remove(0),
            _ => self.text(script, word),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one redirection has that many parts")]
    fn write_to(
        &mut self,
        script: &Script<'_>,
        target: &Argument,
        descriptor: &str,
        append: bool,
        span: &Range<usize>,
        state: &mut Redirected,
        word: WordId,
    ) {
        if let [Part::Process { body, is_input: false }] = script.ast.words[word.0 as usize].parts.as_slice()
        {
            if descriptor == "1" {
                state.reader = Some(*body);
                self.begin_capture(span, state);
            }
            return;
        }
        if let Some(host) = socket(&target.text) {
            self.send(&host, span);
            self.connect(descriptor, Channel::Socket(host));
            if descriptor == "1" {
                self.begin_capture(span, state);
                state.host = Some(span.clone());
            }
            return;
        }
        self.path_effect(EffectKind::WritePath, target, if append { "append" } else { "truncate" }, span);
        let path = self.spelled(target);
        if descriptor == "1" {
            let is_pipe = matches!(self.files.get(&path), Some(Content::Pipe));
            self.connect("1", Channel::File(Arc::from(path.as_str())));
            if path == "/dev/null" {
                self.begin_capture(span, state);
                self.io.wanted = false;
            } else if is_pipe {
                self.begin_capture(span, state);
                state.pipe = Some(path);
            } else if !path.starts_with("/dev/") {
                self.begin_capture(span, state);
                state.files.push((target.clone(), append));
            }
        } else {
            self.connect(descriptor, Channel::File(Arc::from(path)));
        }
    }

    fn begin_capture(&mut self, span: &Range<usize>, state: &mut Redirected) {
        let new = Argument { span: span.clone(), ..Argument::default() };
        let old = std::mem::replace(&mut self.io.out, new);
        if let (false, Some(outer)) = (state.is_captured, &mut state.outer) {
            outer.out = old;
        }
        state.is_captured = true;
        self.io.wanted = true;
    }

    fn read_from(&mut self, target: &Argument, descriptor: &str, span: &Range<usize>) {
        if let Some(host) = socket(&target.text) {
            self.connect(descriptor, Channel::Socket(host));
            return;
        }
        let path = self.spelled(target);
        if descriptor != "0" {
            self.connect(descriptor, Channel::File(Arc::from(path)));
            return;
        }
        if matches!(target.text.as_str(), "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") {
            return;
        }
        let channel = Channel::File(Arc::from(path.as_str()));
        match self.files.get(&path) {
            Some(Content::Data(input)) => {
                let input = input.clone();
                self.set_stdin(input, channel);
            }
            Some(Content::Pipe) => {
                let carried = self.files.carried(&path);
                self.set_stdin(Input::Output("mkfifo".to_owned(), carried), channel)
            }
            None => {
                self.path_effect(EffectKind::ReadPath, target, "", span);
                self.set_stdin(Input::File(target.clone()), channel);
            }
        }
    }

    fn set_stdin(&mut self, input: Input, channel: Channel) {
        self.io.stdin = Rc::new(Stdin { input, channel, ..Stdin::default() });
    }

    /// A descriptor leads where another one does.
    fn connect(&mut self, descriptor: &str, channel: Channel) {
        match descriptor {
            "0" => {
                let input = match &channel {
                    Channel::Socket(host) => Input::Network(host.to_string()),
                    Channel::File(path) => match self.files.get(path) {
                        Some(Content::Data(input)) => input.clone(),
                        Some(Content::Pipe) => Input::Output("mkfifo".to_owned(), self.files.carried(path)),
                        None => Input::File(Argument::constant(path.to_string(), 0..0)),
                    },
                    Channel::Inherited => self.io.stdin.input.clone(),
                    Channel::Foreign(_) => Input::None,
                };
                self.set_stdin(input, channel);
            }
            "1" => self.io.stdout = channel,
            "2" => {}
            other => {
                let mut descriptors = (*self.io.descriptors).clone();
                descriptors.retain(|(name, _)| name != other);
                if descriptors.len() < 16 {
                    descriptors.push((other.to_owned(), channel));
                }
                self.io.descriptors = Rc::new(descriptors);
            }
        }
    }

    /// What a command prints goes to another host.
    fn send(&mut self, host: &Arc<str>, span: &Range<usize>) {
        let target = Target { text: host.to_string(), has_glob: false, kind: TargetKind::Network };
        let attributes = Attributes { detail: "redirection".to_owned(), ..Attributes::default() };
        self.effect(EffectKind::SendData, Some(target), attributes, "", &Arc::from(Vec::new()), span);
        // What a shell prints into this end of a pipeline goes there.
        self.facts.connection.get_or_insert_with(|| (Arc::clone(host), false));
    }

    pub(super) fn path_effect(
        &mut self,
        kind: EffectKind,
        path: &Argument,
        detail: &str,
        span: &Range<usize>,
    ) {
        let target = Target { text: path.text.clone(), has_glob: path.has_glob, kind: TargetKind::Path };
        let attributes = Attributes { detail: detail.to_owned(), ..Attributes::default() };
        self.effect(kind, Some(target), attributes, "", &Arc::from(Vec::new()), span);
    }

    /// Puts back what was there before the redirections; the output goes where they sent it.
    pub(super) fn restore(&mut self, script: &Script<'_>, state: Redirected) {
        let Some(outer) = state.outer else { return };
        let out = std::mem::take(&mut self.io.out);
        if let Some(body) = state.reader {
            self.feed(script, body, out.clone());
        }
        if state.is_fed {
            self.feed_coprocess(script, out.clone());
        }
        self.io = outer;
        if !state.is_captured {
            self.io.out = out;
            return;
        }
        if let Some(span) = &state.host {
            self.send_carried(&out.carried, "redirection", span);
        }
        if let Some(path) = &state.pipe {
            self.files.make(path, &out.carried);
        }
        for (target, append) in &state.files {
            let path = self.spelled(target);
            self.charge_bytes(out.text.len());
            let content = input_of(out.clone());
            self.note_written(&path, &content);
            self.files.write(&path, Content::Data(content), *append);
        }
    }

    /// Notes what is written to a file whose lines are judged one by one.
    pub(super) fn note_written(&mut self, path: &str, content: &Input) {
        if path.starts_with("/etc/ssh/") && self.analysis.written.len() < WRITTEN_MAX {
            let text = match content {
                Input::Text(text) => text.known().map(str::to_owned),
                _ => None,
            };
            self.analysis.written.push(Written { path: path.to_owned(), text });
        }
    }

    /// Runs the process substitution that reads the output of a command.
    fn feed(&mut self, script: &Script<'_>, body: ListId, out: Argument) {
        let facts = std::mem::take(&mut self.facts);
        let span = out.span.clone();
        self.capture(script, body, Some(input_of(out)), span);
        let reader = std::mem::replace(&mut self.facts, facts);
        if let (Some((span, argv)), Some((host, _))) = (self.facts.shell.clone(), reader.connection) {
            self.remote_shell(EffectKind::ReverseShell, &host, &argv, &span);
        }
    }

    /// Runs the coprocess with what is written to it.
    fn feed_coprocess(&mut self, script: &Script<'_>, out: Argument) {
        let Some((_, id)) = self.coprocess.take_if(|(from, _)| *from == script.id) else { return };
        let facts = std::mem::take(&mut self.facts);
        self.set_stdin(input_of(out), Channel::Inherited);
        self.concurrency += 1;
        self.command(script, id);
        self.concurrency -= 1;
        self.facts = facts;
        self.coprocess = Some((script.id, id));
    }

    /// `exec` with redirections alone: they stay in force.
    pub(super) fn keep(&mut self, state: Redirected) {
        if let (Some(outer), true) = (state.outer, state.is_captured) {
            self.io.wanted = outer.wanted;
            self.io.out = outer.out;
        }
    }

    /// The file behind `<(…)` with the output of its commands.
    pub(in crate::shell) fn pipe_file(&mut self, output: Argument) -> String {
        self.hidden_file(input_of(output))
    }

    /// A file without a name, with this content.
    pub(super) fn hidden_file(&mut self, content: Input) -> String {
        self.scripts += 1;
        self.charge(20);
        let path = format!("/dev/fd/{}", 63 + self.scripts);
        self.files.write(&path, Content::Data(content), false);
        path
    }

    /// Remembers a `>(…)` among the arguments, to run when the command has what it reads.
    pub(in crate::shell) fn process_sink(&mut self, body: ListId) -> String {
        self.sinks.push(body);
        self.scripts += 1;
        format!("/dev/fd/{}", 63 + self.scripts)
    }

    /// Runs the `>(…)` of a command: what is written there is close to what the command reads, as with `tee`.
    pub(super) fn run_sinks(&mut self, script: &Script<'_>, from: usize, span: &Range<usize>) {
        for body in self.sinks.split_off(from.min(self.sinks.len())) {
            let input = match &self.io.stdin.input {
                Input::None => Input::Output("tee".to_owned(), Carried::default()),
                input => input.clone(),
            };
            self.capture(script, body, Some(input), span.clone());
        }
    }

    /// The one spelling of a path.
    pub(super) fn spelled(&mut self, path: &Argument) -> String {
        let cwd = self.cwd();
        let place = crate::paths::Place { cwd: &cwd, ..self.place };
        spell(&path.text, &place).into_owned()
    }

    /// What is read from a descriptor by its path, `/dev/fd/3`, if it was opened in this command.
    pub(super) fn opened(&self, path: &str) -> Option<Input> {
        let number = path.strip_prefix("/dev/fd/").or_else(|| path.strip_prefix("/proc/self/fd/"))?;
        match self.io.channel(number) {
            Channel::Socket(host) => Some(Input::Network(host.to_string())),
            Channel::File(file) => match self.files.get(&file) {
                Some(Content::Data(input)) => Some(input.clone()),
                Some(Content::Pipe) => Some(Input::Output("mkfifo".to_owned(), self.files.carried(&file))),
                None => Some(Input::File(Argument::constant(file.to_string(), 0..0))),
            },
            Channel::Inherited | Channel::Foreign(_) => None,
        }
    }

    /// The input that an operand of a command stands for: a file written here, or what is known of any other.
    pub(super) fn file_input(&mut self, path: &Argument) -> Input {
        if matches!(path.text.as_str(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") {
            return self.io.stdin.input.clone();
        }
        if let Some(host) = socket(&path.text) {
            return Input::Network(host.to_string());
        }
        if let Some(input) = self.opened(&path.text) {
            return input;
        }
        if self.files.is_empty() || !self.charge(1) {
            return Input::File(path.clone());
        }
        let spelled = self.spelled(path);
        match self.files.get(&spelled) {
            Some(Content::Data(input)) => {
                let input = input.clone();
                if let Input::Text(text) = &input {
                    self.charge_bytes(text.text.len());
                }
                input
            }
            Some(Content::Pipe) => Input::Output("mkfifo".to_owned(), self.files.carried(&spelled)),
            None => Input::File(path.clone()),
        }
    }
}

/// The host behind `/dev/tcp/host/port`.
fn socket(path: &str) -> Option<Arc<str>> {
    let rest = path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/"))?;
    Some(Arc::from(rest.replacen('/', ":", 1)))
}

/// The one spelling of a path. A working directory may be known only from one on that is not: `cd build; rm a` is about
/// `build/a`.
pub(super) fn spell<'t>(text: &'t str, place: &crate::paths::Place<'_>) -> Cow<'t, str> {
    let anchored = |path: &str| {
        path.starts_with(['/', '~', HOLE, '$', '%', '\\'])
            || path.as_bytes().get(1) == Some(&b':')
            || path.contains("://")
    };
    if place.cwd.is_empty() || anchored(place.cwd) || anchored(text) {
        return crate::paths::normalise(text, place);
    }
    let joined = format!("{}/{text}", place.cwd);
    Cow::Owned(crate::paths::normalise(&joined, &crate::paths::Place { cwd: "", ..*place }).into_owned())
}
