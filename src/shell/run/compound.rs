//! Compound commands: branches, loops, groups, function definitions.

use std::rc::Rc;

use super::super::analysis::UnresolvedCause;
use super::super::argument::{Argument, HOLE, Origin};
use super::super::ast::{Command, CommandId, CommandKind, ListId, WordId};
use super::super::programs::Input;
use super::io::Channel;
use super::scope::Function;
use super::telling::Rounds;
use super::{Engine, Script};

impl Engine<'_> {
    /// Runs a compound command; its redirections are in force already.
    pub(super) fn compound(&mut self, script: &Script<'_>, kind: &CommandKind<'_>, command: &Command<'_>) {
        match kind {
            CommandKind::Simple { .. } | CommandKind::Function { .. } => {}
            CommandKind::Subshell(list) => self.subshell(script, *list),
            CommandKind::Group(list) => self.list(script, *list),
            CommandKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.list(script, *condition);
                    self.maybe(script, *body);
                }
                if let Some(otherwise) = otherwise {
                    self.maybe(script, *otherwise);
                }
            }
            CommandKind::Loop { condition, body, .. } => self.while_loop(script, *condition, *body),
            CommandKind::For { variable, words, body } => {
                self.for_loop(script, variable, words.as_deref(), *body)
            }
            CommandKind::ArithmeticFor { header, body } => {
                self.arithmetic(script, *header);
                self.maybe(script, *body);
            }
            CommandKind::Case { subject, arms } => {
                self.text(script, *subject);
                for (patterns, body) in arms {
                    for &pattern in patterns {
                        self.text(script, pattern);
                    }
                    self.maybe(script, *body);
                }
            }
            CommandKind::Test(words) => {
                self.doubts.forget();
                let words: Vec<_> = words.iter().map(|&word| self.text(script, word)).collect();
                self.tested(&words);
            }
            CommandKind::Arithmetic(word) => {
                self.arithmetic(script, *word);
            }
            CommandKind::Coproc(id) => self.coproc(script, *id, command),
        }
    }

    /// Runs a list that may not run.
    fn maybe(&mut self, script: &Script<'_>, list: ListId) {
        self.scope.conditional += 1;
        self.list(script, list);
        self.scope.conditional -= 1;
    }

    fn subshell(&mut self, script: &Script<'_>, list: ListId) {
        let mark = self.scope.mark();
        self.list(script, list);
        self.scope.roll_back(mark);
    }

    fn arithmetic(&mut self, script: &Script<'_>, word: WordId) {
        let text = self.text(script, word);
        // `(( x = 3 ))`
        if let Some((name, value)) = text.text.split_once('=')
            && super::names::is_variable(name.trim())
            && !value.starts_with('=')
        {
            let value = self.number(value).map_or_else(|| HOLE.to_string(), |n| n.to_string());
            self.scope.set_text(name.trim(), Argument::constant(value, text.span));
        }
    }

    fn for_loop(&mut self, script: &Script<'_>, variable: &str, words: Option<&[WordId]>, body: ListId) {
        let words = match words {
            Some(words) => self.words(script, words),
            None => self.scope.positional().map_or_else(
                || vec![Argument { text: HOLE.to_string(), ..Argument::default() }],
                |words| words.to_vec(),
            ),
        };
        let mut rounds = Rounds::default();
        let mut skipped = None;
        for word in words {
            if !self.charge(1) {
                return;
            }
            if !rounds.runs(&word.text) {
                skipped = Some(word.span);
                continue;
            }
            // The shell expands the word to names of files: which, nobody knows, but they begin like it.
            self.scope.set_text(variable, word);
            self.maybe(script, body);
        }
        if let Some(span) = skipped {
            if rounds.left_out() {
                self.note(UnresolvedCause::TooMuchWork, span.clone());
            }
            let unknown = Argument { text: HOLE.to_string(), span, ..Argument::default() };
            self.scope.set_text(variable, unknown);
            self.maybe(script, body);
        }
    }

    /// `while read` takes a known text line by line; any other loop runs once.
    fn while_loop(&mut self, script: &Script<'_>, condition: ListId, body: ListId) {
        let reads = self.reads_known_lines(script, condition);
        let mut rounds = Rounds::default();
        loop {
            if !self.charge(1) || reads && !self.next_round(&mut rounds) {
                return;
            }
            self.list(script, condition);
            let at_end = match &self.io.stdin.input {
                Input::Text(text) => self.io.stdin.taken.get() >= text.text.len(),
                _ => true,
            };
            self.maybe(script, body);
            if !reads || at_end {
                return;
            }
        }
    }

    /// Goes on to the next line that is run. False when there is none left.
    fn next_round(&mut self, rounds: &mut Rounds) -> bool {
        let Input::Text(text) = &self.io.stdin.input else { return true };
        let mut at = self.io.stdin.taken.get();
        let from = at;
        let mut line = text.text.get(at..).unwrap_or_default().split('\n').next().unwrap_or_default();
        while !rounds.runs(line) {
            at += line.len() + 1;
            match text.text.get(at..).filter(|rest| !rest.is_empty()) {
                Some(rest) => line = rest.split('\n').next().unwrap_or_default(),
                None => {
                    self.io.stdin.taken.set(text.text.len());
                    if rounds.left_out() {
                        self.note(UnresolvedCause::TooMuchWork, 0..0);
                    }
                    return false;
                }
            }
        }
        self.io.stdin.taken.set(at);
        self.charge_bytes(at - from)
    }

    fn reads_known_lines(&self, script: &Script<'_>, condition: ListId) -> bool {
        let Input::Text(_) = self.io.stdin.input else { return false };
        let Some((pipeline, _)) = script.ast.lists[condition.0 as usize].items.last() else { return false };
        let Some(last) = pipeline.commands.last() else { return false };
        let command = &script.ast.commands[last.0 as usize];
        command.redirects.is_empty()
            && matches!(&command.kind, CommandKind::Simple { words, .. } if words.first().is_some_and(|word| {
                let span = script.ast.words[word.0 as usize].span;
                script.text.get(span.start as usize..span.end as usize) == Some("read")
            }))
    }

    /// A coprocess: what follows talks to it through descriptors.
    fn coproc(&mut self, script: &Script<'_>, id: CommandId, command: &Command<'_>) {
        let facts = std::mem::take(&mut self.facts);
        let span = script.span(command.span);
        let outer = self.io.clone();
        self.io.wanted = true;
        self.io.out = Argument { span: span.clone(), ..Argument::default() };
        self.concurrency += 1;
        self.command(script, id);
        self.concurrency -= 1;
        let out = std::mem::replace(&mut self.io, outer).out;
        self.coprocess = Some((script.id, id));
        let found = std::mem::replace(&mut self.facts, facts);
        // What it prints is read from one descriptor, what is written to the other one is its input.
        let channels = match &found.connection {
            Some((host, _)) => ["63", "60"].map(|name| (name, Channel::Socket(std::sync::Arc::clone(host)))),
            None => {
                let printed = self.hidden_file(super::io::input_of(out));
                [("63", Channel::File(printed.into())), ("60", Channel::Inherited)]
            }
        };
        let mut descriptors = (*self.io.descriptors).clone();
        descriptors.retain(|(name, _)| !matches!(name.as_str(), "63" | "60"));
        descriptors.extend(channels.map(|(name, channel)| (name.to_owned(), channel)));
        self.io.descriptors = Rc::new(descriptors);
        let ends = ["63", "60"].map(|name| Argument::constant(name, span.clone()));
        self.scope.set("COPROC", super::Value::Array(Rc::new(ends.to_vec())));
        self.facts.shell = self.facts.shell.take().or(found.shell);
        self.facts.connection = self.facts.connection.take().or(found.connection);
        if let (Some((span, argv)), Some((host, listens))) =
            (self.facts.shell.clone(), self.facts.connection.clone())
        {
            let kind = if listens {
                super::super::effect::EffectKind::BindShell
            } else {
                super::super::effect::EffectKind::ReverseShell
            };
            self.remote_shell(kind, &host, &argv, &span);
        }
    }

    /// Remembers a function.
    pub(super) fn define(&mut self, script: &Script<'_>, name: &str, body: CommandId) {
        let command = &script.ast.commands[body.0 as usize];
        let span = command.span;
        let text = script.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        if !self.charge(10) || !self.charge_bytes(text.len()) {
            return;
        }
        let function = Function {
            script: script.id,
            body,
            text: Rc::from(text),
            span: script.from.cloned().or_else(|| Some(script.span(span))),
        };
        self.scope.set_function(&super::names::visible(name), Some(function));
    }

    /// An unknown text with this origin.
    pub(in crate::shell) fn unknown(origin: Origin, span: std::ops::Range<usize>) -> Argument {
        Argument { text: HOLE.to_string(), span, origin, ..Argument::default() }
    }
}
