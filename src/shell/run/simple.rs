//! Simple commands: assignments, aliases, functions, then the program.

use std::ops::Range;
use std::rc::Rc;

use super::super::analysis::UnresolvedCause;
use super::super::argument::{Argument, HOLE, Origin};
use super::super::ast::{AssignedValue, Assignment, Command, Part, Redirect, RedirectOperator, WordId};
use super::super::effect::{Effect, EffectKind, Target, TargetKind};
use super::super::programs::Attributes;
use super::super::syntax;
use super::io::text_of;
use super::scope::{Function, Value};
use super::{CALLS_MAX, Call, Engine, Script};

/// Variables that name code which the dynamic linker loads into every program.
const PRELOADS: &[&str] = &["LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES"];

/// Variables whose text a program runs as a command: pagers, editors, helpers that ask for a password or carry a
/// connection, and the prompt of bash.
const RUN_BY_PROGRAMS: &[&str] = &[
    "AWS_PAGER",
    "BAT_PAGER",
    "BROWSER",
    "CVS_RSH",
    "DELTA_PAGER",
    "EDITOR",
    "FCEDIT",
    "GH_PAGER",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "HGEDITOR",
    "KUBE_EDITOR",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "PROMPT_COMMAND",
    "PSQL_EDITOR",
    "PSQL_PAGER",
    "RSYNC_RSH",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "SVN_EDITOR",
    "SYSTEMD_PAGER",
    "VISUAL",
];

impl Engine<'_> {
    /// Runs a simple command, once for each value that branches left in the variables it names.
    pub(super) fn simple(
        &mut self,
        script: &Script<'_>,
        command: &Command<'_>,
        assignments: &[Assignment<'_>],
        words: &[WordId],
    ) {
        let others = if self.scope.has_alternatives() && self.choice == 0 {
            self.alternatives(script, words)
        } else {
            0
        };
        self.simple_once(script, command, assignments, words);
        if !assignments.is_empty() && self.names_one_of(script, assignments, words) && self.choice == 0 {
            // `A=/x rm $A`: the shell takes the old value; whoever wrote it meant the new one.
            let mark = self.scope.mark();
            for assignment in assignments {
                self.assign(script, assignment);
            }
            self.simple_once(script, command, &[], words);
            self.scope.roll_back(mark);
        }
        for choice in 1..=others {
            self.choice = choice;
            self.simple_once(script, command, assignments, words);
        }
        if others > 0 {
            self.choice = 0;
        }
    }

    /// Whether a word holds a variable that is assigned before the command, for the command.
    fn names_one_of(&self, script: &Script<'_>, assignments: &[Assignment<'_>], words: &[WordId]) -> bool {
        let named = |part: &Part<'_>| match part {
            Part::Parameter(parameter) => assignments.iter().any(|a| *a.name == *parameter.name),
            _ => false,
        };
        words.iter().any(|id| script.ast.words[id.0 as usize].parts.iter().any(named))
    }

    fn alternatives(&self, script: &Script<'_>, words: &[WordId]) -> usize {
        let in_word = |id: &WordId| {
            script.ast.words[id.0 as usize].parts.iter().map(|part| match part {
                Part::Parameter(parameter) => self.scope.alternatives(&parameter.name),
                _ => 0,
            })
        };
        let in_words = words.iter().flat_map(in_word).max().unwrap_or(0);
        in_words.max(if words.is_empty() { 0 } else { self.scope.alternatives("PWD") })
    }

    fn simple_once(
        &mut self,
        script: &Script<'_>,
        command: &Command<'_>,
        assignments: &[Assignment<'_>],
        words: &[WordId],
    ) {
        let span = script.span(command.span);
        let printed = std::mem::take(&mut self.facts.environment);
        // The shell expands the words before it assigns.
        let sinks = self.sinks.len();
        self.doubts.forget();
        let mut argv = self.words(script, words);
        if argv.is_empty() && words.is_empty() {
            for assignment in assignments {
                self.assign(script, assignment);
            }
            let redirected = self.redirect(script, &command.redirects);
            if assignments.is_empty() && reads_file(&command.redirects) {
                // `$(<file)` gives what is in the file.
                let text = text_of(&self.io.stdin.input, &span);
                self.io.write_argument(&text);
            }
            self.restore(script, redirected);
            self.facts.environment = printed;
            return;
        }
        let effects = self.analysis.effects.len();
        let mut old = Vec::new();
        for assignment in assignments {
            old.push((assignment.name, self.scope.variable(assignment.name)));
            self.assign(script, assignment);
        }
        super::names::fold_command(&mut argv);
        if argv.first().is_some_and(|name| super::names::base_name(&name.text) == "git") {
            self.hooks_switched_off(script, assignments, &argv, &span);
        }
        let redirected = self.redirect(script, &command.redirects);
        if self.is_exec(&argv) {
            // `exec` with redirections only: they stay.
            self.keep(redirected);
        } else {
            if !argv.is_empty() {
                self.invoke(script, &argv, &span);
                self.sends_environment(&argv, effects);
            }
            if self.sinks.len() > sinks {
                self.run_sinks(script, sinks, &span);
            }
            self.restore(script, redirected);
        }
        self.facts.environment |= printed;
        // What stands before a command holds for that command only.
        for (name, value) in old.into_iter().rev() {
            self.scope.put_back(name, value);
        }
    }

    /// A command that talks to another host, with all variables of the environment among its arguments: those are sent.
    fn sends_environment(&mut self, argv: &[Argument], from: usize) {
        let is_dump = |argument: &Argument| matches!(&argument.origin, Origin::Output(program) if matches!(&**program, "env" | "printenv"));
        if self.analysis.effects.len() == from || !(self.facts.environment || argv.iter().any(is_dump)) {
            return;
        }
        let talks = |effect: &&Effect| matches!(effect.kind, EffectKind::Fetch | EffectKind::SendData);
        if let Some(talk) = self.analysis.effects[from..].iter().find(talks) {
            let sent = Effect {
                kind: EffectKind::SendData,
                target: Some(super::walk::environment()),
                ..talk.clone()
            };
            self.push(sent);
        }
    }

    /// `HUSKY=0 git commit`: managers of hooks that a variable before the command switches off.
    fn hooks_switched_off(
        &mut self,
        script: &Script<'_>,
        assignments: &[Assignment<'_>],
        argv: &[Argument],
        span: &Range<usize>,
    ) {
        let runs_hooks =
            argv.iter().any(|a| matches!(a.text.as_str(), "commit" | "push" | "merge" | "rebase" | "am"));
        for assignment in assignments.iter().filter(|_| runs_hooks) {
            let AssignedValue::Word(word) = &assignment.value else { continue };
            let value = self.value(script, *word).text;
            let is_off = match assignment.name {
                "HUSKY" | "LEFTHOOK" => matches!(value.as_str(), "0" | "false"),
                "HUSKY_SKIP_HOOKS" | "OVERCOMMIT_DISABLE" | "LEFTHOOK_EXCLUDE" => {
                    !value.is_empty() && value != "0"
                }
                "SKIP" => !value.is_empty(),
                _ => false,
            };
            if is_off {
                let detail = format!("variable {}", assignment.name.to_ascii_lowercase());
                let attributes = Attributes { detail, ..Attributes::default() };
                self.effect(EffectKind::BypassGitHooks, None, attributes, "git", &argv.into(), span);
            }
        }
    }

    fn is_exec(&self, argv: &[Argument]) -> bool {
        matches!(argv, [name] if name.text == "exec")
    }

    /// Runs an alias, a function or a program.
    pub(super) fn invoke(&mut self, script: &Script<'_>, argv: &[Argument], span: &Range<usize>) {
        let name = &argv[0];
        self.note_decoded_name(script.text, &name.text, span);
        if let Some(alias) = self.scope.alias(&name.text) {
            self.alias(&alias, argv, span);
            return;
        }
        if self.scope.has_functions()
            && let Some(function) = self.scope.function(&name.text).cloned()
        {
            self.call(script, &function, argv, span);
            return;
        }
        self.run_argv(argv, span);
    }

    /// Runs the text of an alias with the other words behind it.
    fn alias(&mut self, alias: &Argument, argv: &[Argument], span: &Range<usize>) {
        if !self.charge(60) {
            return;
        }
        let name = argv[0].text.clone();
        let mut text = alias.clone();
        text.span = span.clone();
        for word in &argv[1..] {
            text.text.push(' ');
            super::call::quote_into(&mut text.text, word);
            text.absorb(word);
        }
        // An alias does not expand in its own text.
        let mark = self.scope.mark();
        self.scope.set_alias(&name, None);
        self.run_text(&text, Some("alias"));
        self.scope.roll_back(mark);
    }

    pub(super) fn call(
        &mut self,
        script: &Script<'_>,
        function: &Function,
        argv: &[Argument],
        span: &Range<usize>,
    ) {
        let name = &argv[0].text;
        if let Some(call) = self.calls.iter().find(|call| call.body == function.text) {
            // A function that starts itself beside itself never ends and doubles each time.
            if self.concurrency > call.concurrency {
                let argv: std::sync::Arc<[Argument]> = argv.into();
                self.effect(EffectKind::ForkBomb, None, Attributes::default(), name, &argv, span);
            }
            return;
        }
        if self.calls.len() >= CALLS_MAX {
            self.note(UnresolvedCause::TooDeep, span.clone());
            return;
        }
        if !self.charge(20 + argv.len()) {
            return;
        }
        self.called.insert(function.text.as_ptr());
        self.calls.push(Call { body: Rc::clone(&function.text), concurrency: self.concurrency });
        let old = self.scope.set_positional(Some(Rc::new(argv[1..].to_vec())));
        if function.script == script.id {
            self.command(script, function.body);
        } else if self.charge(30 + function.text.len() / 4) {
            let ast = syntax::parse(&function.text, self.limits);
            self.scripts += 1;
            let from = function.span.clone().unwrap_or_else(|| span.clone());
            let script = Script { ast: &ast, text: &function.text, id: self.scripts, from: Some(&from) };
            self.run_script(&script);
        }
        self.scope.set_positional(old);
        self.calls.pop();
    }

    /// Assigns a variable.
    pub(super) fn assign(&mut self, script: &Script<'_>, assignment: &Assignment<'_>) {
        let name = assignment.name;
        match (&assignment.value, assignment.index) {
            (AssignedValue::Word(word), None) => {
                let mut value = self.value(script, *word);
                value.span = script.span(assignment.span);
                self.assign_text(name, value, assignment.append);
            }
            (AssignedValue::Word(word), Some(index)) => {
                let value = self.value(script, *word);
                let index = self.text(script, index);
                self.assign_element(name, &index.text, value, assignment.append);
            }
            (AssignedValue::Array(words), _) => {
                let items = self.words(script, words);
                self.assign_items(name, items, assignment.append);
            }
        }
    }

    /// `name=(items)` or `name+=(items)`.
    pub(super) fn assign_items(&mut self, name: &str, mut items: Vec<Argument>, append: bool) {
        if self.scope.get(name, 0).is_some_and(|value| matches!(value, Value::Map(_))) || is_keyed(&items) {
            self.assign_map(name, &items);
            return;
        }
        if append && let Some(Value::Array(old)) = self.scope.get(name, self.choice) {
            let mut all = (**old).clone();
            all.append(&mut items);
            items = all;
        }
        if self.charge(4 * items.len()) {
            self.scope.set(name, Value::Array(Rc::new(items)));
        }
    }

    /// `name=value` or `name+=value`.
    pub(super) fn assign_text(&mut self, name: &str, value: Argument, append: bool) {
        let mut new = value;
        if append && let Some(Value::Text(old)) = self.scope.get(name, self.choice) {
            let mut joined = (**old).clone();
            joined.text.push_str(&new.text);
            joined.absorb(&new);
            joined.span = new.span;
            new = joined;
        }
        let bytes = new.text.len();
        if !self.charge_bytes(bytes) {
            return;
        }
        if bytes > self.limits.bytes_max {
            self.note(UnresolvedCause::TooMuchWork, new.span.clone());
            new.text = HOLE.to_string();
        }
        if RUN_BY_PROGRAMS.contains(&name) && new.text.contains([' ', '/', ';', '|', '$', '`', '&']) {
            // `LESSOPEN` may begin with a bar.
            let text = new.with_text(new.text.trim_start_matches(['|', '-', ' ']).to_owned());
            // Before every prompt of whoever types, or when a program of that kind starts.
            let via = if name == "PROMPT_COMMAND" { super::HOOK } else { "variable" };
            self.run_text(&text, Some(via));
        }
        let off = match name {
            "HISTSIZE" | "HISTFILESIZE" | "SAVEHIST" => new.text == "0",
            "HISTFILE" => new.text.is_empty() || new.text == "/dev/null",
            _ => false,
        };
        if off {
            let attributes = Attributes { detail: "variable history".to_owned(), ..Attributes::default() };
            let span = new.span.clone();
            let argv = std::sync::Arc::from(Vec::new());
            self.effect(EffectKind::DisableProtection, None, attributes, "", &argv, &span);
        }
        if PRELOADS.contains(&name) && !new.text.is_empty() {
            let target = Target { text: new.text.clone(), has_glob: false, kind: TargetKind::Path };
            let attributes = Attributes { detail: "preload".to_owned(), ..Attributes::default() };
            let span = new.span.clone();
            let argv = std::sync::Arc::from(Vec::new());
            self.effect(EffectKind::OpaqueExecution, Some(target), attributes, "", &argv, &span);
        }
        self.scope.set_text(name, new);
    }

    fn assign_element(&mut self, name: &str, index: &str, value: Argument, append: bool) {
        let old = self.scope.get(name, self.choice);
        if let Some(Value::Map(map)) = old {
            let mut map = (**map).clone();
            if self.charge(1 + map.len()) {
                map.insert(index.to_owned(), value);
                self.scope.set(name, Value::Map(Rc::new(map)));
            }
            return;
        }
        let mut items = match old {
            Some(Value::Array(items)) => (**items).clone(),
            Some(Value::Text(text)) => vec![(**text).clone()],
            _ => Vec::new(),
        };
        match self.number(index).and_then(|n| usize::try_from(n).ok()) {
            Some(at) if at < 1024 => {
                if !self.charge(1 + items.len()) {
                    return;
                }
                if items.len() <= at {
                    items.resize(at + 1, Argument::default());
                }
                if append {
                    items[at].text.push_str(&value.text);
                } else {
                    items[at] = value;
                }
                self.scope.set(name, Value::Array(Rc::new(items)));
            }
            _ => {
                let mut map = std::collections::BTreeMap::new();
                map.insert(index.to_owned(), value);
                self.scope.set(name, Value::Map(Rc::new(map)));
            }
        }
    }

    fn assign_map(&mut self, name: &str, items: &[Argument]) {
        let mut map = match self.scope.get(name, self.choice) {
            Some(Value::Map(map)) => (**map).clone(),
            _ => std::collections::BTreeMap::new(),
        };
        if !self.charge(1 + map.len() + items.len()) {
            return;
        }
        for item in items {
            if let Some((key, value)) = item.text.strip_prefix('[').and_then(|rest| rest.split_once("]=")) {
                map.insert(key.to_owned(), item.with_text(value.to_owned()));
            }
        }
        self.scope.set(name, Value::Map(Rc::new(map)));
    }
}

/// Whether all that a command does is to read a file.
fn reads_file(redirects: &[Redirect<'_>]) -> bool {
    matches!(redirects, [one] if one.operator == RedirectOperator::Read && one.descriptor.is_none_or(|name| name == "0"))
}

fn is_keyed(items: &[Argument]) -> bool {
    !items.is_empty() && items.iter().all(|item| item.text.starts_with('[') && item.text.contains("]="))
}
