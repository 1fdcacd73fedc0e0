//! Lists and pipelines: what follows what, and what reads from what.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::super::argument::Argument;
use super::super::ast::{CommandId, CommandKind, Joint, ListId, Pipeline};
use super::super::effect::{Effect, EffectKind, Target, TargetKind};
use super::super::programs::{Attributes, Input};
use super::io::{Channel, Facts, Stdin, input_of};
use super::{Engine, Io, Script};

/// Files of one pipeline that are told as sent.
const SENT_MAX: usize = 16;

/// All variables of the environment, as what is sent.
pub(super) fn environment() -> Target {
    Target { text: "environment".to_owned(), has_glob: false, kind: TargetKind::Name }
}

impl Engine<'_> {
    /// Runs the pipelines of a list in order; both sides of `&&` and `||` run.
    pub(super) fn list(&mut self, script: &Script<'_>, id: ListId) {
        let list = &script.ast.lists[id.0 as usize];
        let mut before = Joint::Sequence;
        for (pipeline, joint) in &list.items {
            if !self.charge(1) {
                return;
            }
            let is_conditional = matches!(before, Joint::And | Joint::Or);
            let is_background = *joint == Joint::Background;
            self.scope.conditional += usize::from(is_conditional);
            self.concurrency += usize::from(is_background);
            // `a || b` prints the output of one of the two: that of `a` if it has any.
            let wanted = self.io.wanted;
            if before == Joint::Or && wanted && !self.io.out.text.is_empty() {
                self.io.wanted = false;
            }
            self.pipeline(script, pipeline);
            self.io.wanted = wanted;
            self.concurrency -= usize::from(is_background);
            self.scope.conditional -= usize::from(is_conditional);
            before = *joint;
        }
    }

    fn pipeline(&mut self, script: &Script<'_>, pipeline: &Pipeline) {
        let [first, rest @ ..] = pipeline.commands.as_slice() else { return };
        if rest.is_empty() {
            self.command(script, *first);
            return;
        }
        self.concurrency += 1;
        let outer_out = std::mem::take(&mut self.io.out);
        let outer = self.io.clone();
        let outer_facts = std::mem::take(&mut self.facts);
        let mut stages: Vec<Facts> = Vec::with_capacity(pipeline.commands.len());
        let mut starts: Vec<usize> = Vec::with_capacity(pipeline.commands.len());
        let last = pipeline.commands.len() - 1;
        let mut stdin = Rc::clone(&outer.stdin);
        let mut printed = Argument::default();
        for (at, &id) in pipeline.commands.iter().enumerate() {
            if !self.charge(10) {
                break;
            }
            let command = &script.ast.commands[id.0 as usize];
            self.facts = Facts::default();
            self.io = Io {
                stdin,
                stdout: if at == last { outer.stdout.clone() } else { Channel::Inherited },
                descriptors: Rc::clone(&outer.descriptors),
                wanted: at != last || outer.wanted,
                out: Argument { span: script.span(command.span), ..Argument::default() },
            };
            starts.push(self.analysis.effects.len());
            let mark = self.scope.mark();
            self.command(script, id);
            self.scope.roll_back(mark);
            if at == last && matches!(command.kind, CommandKind::Function { .. }) {
                // Some shells run the last command of a pipeline themselves.
                self.command(script, id);
            }
            let out = std::mem::take(&mut self.io.out);
            stages.push(std::mem::take(&mut self.facts));
            if at == last {
                printed = out;
                break;
            }
            // A shell at the other end of a connection: what it sends is not a download.
            let channel = stages
                .last()
                .and_then(|facts| facts.connection.as_ref())
                .map_or(Channel::Inherited, |(host, _)| Channel::Socket(Arc::clone(host)));
            stdin = Rc::new(Stdin { input: input_of(out), channel, ..Stdin::default() });
        }
        self.io = outer;
        self.io.out = outer_out;
        self.io.write_argument(&printed);
        self.judge_stages(&stages);
        self.judge_data(&stages, &starts);
        self.facts = outer_facts;
        // The pipeline as a whole is what a surrounding one sees.
        for stage in stages {
            self.facts.shell = self.facts.shell.take().or(stage.shell);
            self.facts.connection = self.facts.connection.take().or(stage.connection);
            self.facts.environment |= stage.environment;
        }
        self.concurrency -= 1;
    }

    /// A shell that takes its commands from somewhere unknown, in one pipeline with a connection to another host.
    fn judge_stages(&mut self, stages: &[Facts]) {
        let shell = stages.iter().find_map(|stage| stage.shell.clone());
        let connection = stages.iter().find_map(|stage| stage.connection.clone());
        if let (Some((span, argv)), Some((host, listens))) = (shell, connection) {
            let kind = if listens { EffectKind::BindShell } else { EffectKind::ReverseShell };
            self.remote_shell(kind, &host, &argv, &span);
        }
    }

    /// What one command of a pipeline reads and a later one sends to another host. `starts` are the numbers of the first
    /// effects of each.
    fn judge_data(&mut self, stages: &[Facts], starts: &[usize]) {
        let from_input = |effect: &Effect| {
            // What signs in is told where it is known to whom.
            effect.kind == EffectKind::SendData
                && effect.detail != super::flow::SIGN_IN
                && effect.target.as_ref().is_none_or(|target| target.kind == TargetKind::Name)
        };
        for at in 1..starts.len() {
            let end = starts.get(at + 1).copied().unwrap_or(self.analysis.effects.len());
            let Some(sender) = self.analysis.effects[starts[at]..end].iter().find(|e| from_input(e)) else {
                continue;
            };
            let sender = sender.clone();
            let earlier = &self.analysis.effects[starts[0]..starts[at]];
            let mut sent: Vec<Effect> = earlier
                .iter()
                .filter(|effect| effect.kind == EffectKind::ReadPath && effect.detail != "option")
                .take(SENT_MAX)
                .map(|read| Effect {
                    target: read.target.clone(),
                    recursive: read.recursive,
                    ..sender.clone()
                })
                .collect();
            if stages[..at].iter().any(|stage| stage.environment) {
                sent.push(Effect { target: Some(environment()), ..sender });
            }
            for effect in sent {
                if !self.charge(4) {
                    return;
                }
                self.push(effect);
            }
        }
    }

    /// Notes that a shell is tied to another host.
    pub(super) fn remote_shell(
        &mut self,
        kind: EffectKind,
        host: &str,
        argv: &Arc<[Argument]>,
        span: &Range<usize>,
    ) {
        let target = (!host.is_empty()).then(|| Target {
            text: host.to_owned(),
            has_glob: false,
            kind: TargetKind::Network,
        });
        let program =
            argv.first().map(|name| super::names::base_name(&name.text).to_owned()).unwrap_or_default();
        self.effect(kind, target, Attributes::default(), &program, argv, span);
    }

    /// Runs one command with its redirections.
    pub(super) fn command(&mut self, script: &Script<'_>, id: CommandId) {
        let command = &script.ast.commands[id.0 as usize];
        if !self.charge(10) || !self.enter(|| script.span(command.span)) {
            return;
        }
        match &command.kind {
            CommandKind::Simple { assignments, words } => {
                self.simple(script, command, assignments, words);
            }
            CommandKind::Function { name, body } => {
                // Redirections of a definition belong to its calls; the body carries them.
                self.define(script, name, *body);
            }
            kind => {
                let redirected = self.redirect(script, &command.redirects);
                self.compound(script, kind, command);
                self.restore(script, redirected);
            }
        }
        self.leave();
    }

    /// Runs a list in a subshell and gives what it prints.
    pub(in crate::shell) fn capture(
        &mut self,
        script: &Script<'_>,
        id: ListId,
        stdin: Option<Input>,
        span: Range<usize>,
    ) -> Argument {
        if !self.charge(20) || !self.enter(|| span.clone()) {
            return Argument { span, ..Argument::default() };
        }
        let inner = Io {
            stdin: stdin.map_or_else(
                || Rc::clone(&self.io.stdin),
                |input| Rc::new(Stdin { input, ..Stdin::default() }),
            ),
            stdout: Channel::Inherited,
            descriptors: Rc::clone(&self.io.descriptors),
            wanted: true,
            out: Argument { span, ..Argument::default() },
        };
        let outer = std::mem::replace(&mut self.io, inner);
        let mark = self.scope.mark();
        let conditional = std::mem::take(&mut self.scope.conditional);
        self.list(script, id);
        self.scope.conditional = conditional;
        self.scope.roll_back(mark);
        self.leave();
        std::mem::replace(&mut self.io, outer).out
    }
}
