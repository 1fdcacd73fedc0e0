//! Builtins of the shell that change what the analysis knows, or run text.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::super::argument::{Argument, HOLE, Origin};
use super::super::effect::{EffectKind, Target, TargetKind};
use super::super::programs::{Attributes, Input};
use super::io::{Channel, text_of};
use super::scope::Value;
use super::{Engine, call, names};

/// Bytes of a working directory that is followed; every path is spelled from there.
const FOLDER_MAX: usize = 512;
/// Traps that are looked at again when the script ends.
const TRAPS_MAX: usize = 8;

impl Engine<'_> {
    /// Runs a builtin. True when nothing is left to say about it.
    pub(super) fn builtin(&mut self, program: &str, argv: &[Argument], span: &Range<usize>) -> bool {
        let arguments = &argv[1..];
        match program {
            "eval" => {
                let words = if arguments.first().is_some_and(|a| a.text == "--") {
                    &arguments[1..]
                } else {
                    arguments
                };
                if !words.is_empty() {
                    self.run_text(&call::joined(words), Some("eval"));
                }
                true
            }
            "." | "source" => {
                self.source(argv, span);
                true
            }
            "exec" => {
                self.run_rest(arguments, "a", "exec", span);
                true
            }
            "builtin" => {
                self.run_rest(arguments, "", "builtin", span);
                true
            }
            "command" if !is_query(arguments) => {
                self.run_rest(arguments, "", "command", span);
                true
            }
            "cd" | "chdir" | "pushd" => {
                self.change_directory(arguments);
                true
            }
            "popd" => {
                self.forget_directory();
                true
            }
            "test" | "[" => {
                self.tested(arguments);
                true
            }
            "exit" | "return" | "break" | "continue" => {
                self.left_if_empty();
                true
            }
            "true" | "false" | ":" | "wait" | "let" => true,
            "read" => {
                self.read(arguments);
                true
            }
            "mapfile" | "readarray" => {
                self.read_lines(arguments);
                true
            }
            "shift" => {
                self.shift(arguments);
                true
            }
            "trap" => {
                self.trap(arguments);
                true
            }
            // A function that the shell calls at an event, a command behind a key, one that completes words.
            "add-zsh-hook" => {
                let names = arguments.iter().filter(|argument| !argument.text.starts_with('-')).skip(1);
                self.hooks.extend(names.map(|name| name.text.clone()).take(8));
                true
            }
            "bind" | "complete" => {
                let option = if program == "bind" { "-x" } else { "-C" };
                if let Some(at) = arguments.iter().position(|argument| argument.text == option)
                    && let Some(text) = arguments.get(at + 1)
                {
                    let command = match text.text.split_once(':').filter(|_| program == "bind") {
                        Some((_, command)) => text.with_text(command.trim().trim_matches('"').to_owned()),
                        None => text.clone(),
                    };
                    self.run_text(&command, Some(super::HOOK));
                }
                false
            }
            "export" | "declare" | "typeset" | "local" | "readonly" | "nameref" => {
                self.declare(program, arguments);
                false
            }
            "set" => {
                self.set(arguments);
                false
            }
            "unset" => {
                self.unset(arguments);
                false
            }
            "alias" => {
                self.define_aliases(arguments);
                false
            }
            "unalias" => {
                for name in arguments {
                    self.scope.set_alias(&name.text, None);
                }
                false
            }
            "hash" => {
                if let [option, path, name, ..] = arguments
                    && option.text == "-p"
                {
                    self.scope.set_alias(&name.text, Some(path.clone()));
                }
                true
            }
            "enable" => {
                if let [option, file, ..] = arguments
                    && option.text.starts_with("-f")
                {
                    let target = Target { text: file.text.clone(), has_glob: false, kind: TargetKind::Path };
                    let attributes = Attributes { detail: "enable -f".to_owned(), ..Attributes::default() };
                    let argv: Arc<[Argument]> = argv.into();
                    self.effect(EffectKind::OpaqueExecution, Some(target), attributes, "enable", &argv, span);
                }
                true
            }
            _ => false,
        }
    }

    /// Skips options, then runs what is left. `values` are the options that take one.
    fn run_rest(&mut self, arguments: &[Argument], values: &str, via: &'static str, span: &Range<usize>) {
        let mut at = 0;
        while let Some(option) = arguments.get(at).map(|a| a.text.as_str()) {
            if option == "--" {
                at += 1;
                break;
            }
            let Some(letters) = option.strip_prefix('-').filter(|letters| !letters.is_empty()) else { break };
            at += 1 + usize::from(letters.chars().next_back().is_some_and(|last| values.contains(last)));
        }
        if let Some(rest) = arguments.get(at..).filter(|rest| !rest.is_empty()) {
            self.via.push(via);
            self.run_argv(rest, span);
            self.via.pop();
        }
    }

    fn source(&mut self, argv: &[Argument], span: &Range<usize>) {
        let Some(file) = argv.get(1) else { return };
        let input = self.file_input(file);
        match input {
            Input::Text(text) => {
                let old =
                    (argv.len() > 2).then(|| self.scope.set_positional(Some(Rc::new(argv[2..].to_vec()))));
                self.run_text(&text, Some("source"));
                if let Some(old) = old {
                    self.scope.set_positional(old);
                }
            }
            Input::Network(from) => self.fetched(&from, argv, span),
            Input::Output(program, _) => self.opaque_from(&program, argv, span),
            Input::File(_) | Input::None => {}
        }
    }

    /// The working directory; empty when it is not known.
    pub(in crate::shell) fn cwd(&self) -> String {
        match self.scope.get("PWD", self.choice) {
            Some(Value::Text(path)) if path.text.contains(HOLE) => String::new(),
            Some(Value::Text(path)) => path.text.clone(),
            _ => self.place.cwd.to_owned(),
        }
    }

    fn change_directory(&mut self, arguments: &[Argument]) {
        let operand = arguments.iter().find(|a| a.text == "-" || !a.text.starts_with('-'));
        let new = match operand {
            None => Argument::constant("~", 0..0),
            Some(path) if path.text == "-" || path.text.contains(HOLE) || path.has_glob => {
                self.forget_directory();
                return;
            }
            Some(path) => path.clone(),
        };
        let spelled = self.spelled(&new);
        // Below a working directory that is not known, the way from there is known all the same.
        let is_known = !spelled.starts_with(HOLE) && !spelled.is_empty();
        if is_known && spelled.len() <= FOLDER_MAX && self.charge(spelled.len() / 4) {
            self.scope.set_text("PWD", Argument::constant(spelled, new.span));
        } else {
            self.forget_directory();
        }
    }

    fn forget_directory(&mut self) {
        self.scope.set_text("PWD", Self::unknown(Origin::Environment, 0..0));
    }

    /// `read`: one line of standard input into variables.
    fn read(&mut self, arguments: &[Argument]) {
        let mut variables: Vec<&str> = Vec::new();
        let mut array = None;
        let mut descriptor = None;
        let mut delimiter = '\n';
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.text.strip_prefix('-') {
                Some(letters) if !letters.is_empty() => {
                    let Some(at) = letters.find(|c| "adinNptu".contains(c)) else { continue };
                    let attached = &letters[at + 1..];
                    let value = if attached.is_empty() {
                        rest.next().map_or("", |a| a.text.as_str())
                    } else {
                        attached
                    };
                    match letters.as_bytes()[at] {
                        b'a' => array = Some(value),
                        b'u' => descriptor = Some(value),
                        b'd' => delimiter = value.chars().next().unwrap_or(HOLE),
                        _ => {}
                    }
                }
                _ => variables.push(&argument.text),
            }
        }
        let line = self.read_line(descriptor, delimiter);
        if let Some(array) = array {
            let words = line.text.split_whitespace();
            let items = words.map(|word| line.with_text(word.to_owned())).collect();
            self.scope.set(array, Value::Array(Rc::new(items)));
            return;
        }
        if variables.is_empty() {
            variables.push("REPLY");
        }
        self.spread(&line, &variables);
    }

    fn read_line(&mut self, descriptor: Option<&str>, delimiter: char) -> Argument {
        if let Some(descriptor) = descriptor
            && let Channel::Socket(host) = self.io.channel(descriptor)
        {
            return Self::unknown(Origin::Network(host), 0..0);
        }
        let stdin = Rc::clone(&self.io.stdin);
        let Input::Text(text) = &stdin.input else { return text_of(&stdin.input, &(0..0)) };
        let rest = text.text.get(stdin.taken.get()..).unwrap_or_default();
        let end = rest.find(delimiter).unwrap_or(rest.len());
        let taken = stdin.taken.get() + (end + delimiter.len_utf8()).min(rest.len());
        stdin.taken.set(taken);
        self.charge_bytes(end);
        let line = if delimiter == HOLE { rest.trim_end_matches('\n') } else { &rest[..end] };
        Argument {
            text: line.to_owned(),
            span: text.span.clone(),
            origin: text.origin.clone(),
            carried: text.carried.clone(),
            ..Argument::default()
        }
    }

    /// Splits a line among variables; the last one takes the rest.
    fn spread(&mut self, line: &Argument, variables: &[&str]) {
        let separators = match self.scope.get("IFS", self.choice) {
            Some(Value::Text(text)) => text.text.clone(),
            _ => " \t\n".to_owned(),
        };
        let is_separator = |c: char| separators.contains(c);
        let mut rest = line.text.trim_matches(is_separator);
        for (at, name) in variables.iter().enumerate() {
            let is_last = at + 1 == variables.len();
            let end = if is_last { rest.len() } else { rest.find(is_separator).unwrap_or(rest.len()) };
            let value = if line.is_unknown() { line.text.as_str() } else { &rest[..end] };
            if names::is_variable(name) {
                self.scope.set_text(name, line.with_text(value.to_owned()));
            }
            rest = rest[end..].trim_start_matches(is_separator);
        }
    }

    fn read_lines(&mut self, arguments: &[Argument]) {
        let name = arguments
            .iter()
            .rev()
            .find(|a| names::is_variable(&a.text))
            .map_or("MAPFILE", |a| a.text.as_str());
        let stdin = Rc::clone(&self.io.stdin);
        let items = match &stdin.input {
            Input::Text(text) => {
                let lines = text.text.lines().take(1024);
                lines.map(|line| text.with_text(line.to_owned())).collect()
            }
            input => vec![text_of(input, &(0..0))],
        };
        self.scope.set(name, Value::Array(Rc::new(items)));
    }

    fn shift(&mut self, arguments: &[Argument]) {
        let count = arguments.first().and_then(|a| a.text.parse::<usize>().ok()).unwrap_or(1);
        if let Some(items) = self.scope.positional() {
            let rest = items.get(count..).unwrap_or_default().to_vec();
            if self.charge(1 + 3 * rest.len()) {
                self.scope.set_positional(Some(Rc::new(rest)));
            }
        }
    }

    /// `trap text signals`: the text runs some time.
    fn trap(&mut self, arguments: &[Argument]) {
        let words =
            if arguments.first().is_some_and(|a| a.text == "--") { &arguments[1..] } else { arguments };
        if let [text, _, ..] = words
            && !text.text.is_empty()
            && !text.text.starts_with('-')
        {
            // At every command of whoever types, or at the end of this script.
            let is_hook = words.iter().any(|word| word.text == "DEBUG");
            self.run_text(text, Some(if is_hook { super::HOOK } else { "trap" }));
            if text.text.contains('$') && self.at_exit.len() < TRAPS_MAX {
                self.at_exit.push(text.clone());
            }
        }
    }

    /// `export name=value` and its like.
    fn declare(&mut self, program: &str, arguments: &[Argument]) {
        let refers = program == "nameref"
            || !matches!(program, "export" | "readonly")
                && arguments
                    .iter()
                    .map_while(|a| a.text.strip_prefix('-'))
                    .any(|letters| letters.contains('n') && !letters.starts_with('-'));
        for argument in arguments {
            if argument.text.starts_with(['-', '+']) {
                continue;
            }
            if refers {
                let (name, other) = argument.text.split_once('=').unwrap_or((&argument.text, ""));
                if names::is_variable(name) && name != other {
                    // A name that is not known refers to nothing that is known.
                    let is_name = other.is_empty() || names::is_variable(other);
                    self.scope.refer(name, if is_name { other } else { "\0" });
                }
                continue;
            }
            if let Some((name, value)) = argument.text.split_once('=') {
                let (name, append) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
                if !names::is_variable(name) {
                    continue;
                }
                let value = argument.with_text(value.to_owned());
                match value.text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
                    Some(items) => {
                        let items = items.split_whitespace().map(|item| element(item, &value)).collect();
                        self.assign_items(name, items, append);
                    }
                    None => self.assign_text(name, value, append),
                }
            }
        }
    }

    /// `set -- a b`: positional parameters.
    fn set(&mut self, arguments: &[Argument]) {
        let stops = |argument: &Argument| {
            let letters = argument.text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
            argument.text == "nounset" || letters.is_some_and(|letters| letters.contains('u'))
        };
        if arguments.iter().any(stops) {
            self.doubts.stop_at_unset();
        }
        let mut rest = arguments.iter().enumerate();
        while let Some((at, argument)) = rest.next() {
            match argument.text.as_str() {
                "--" => {
                    self.scope.set_positional(Some(Rc::new(arguments[at + 1..].to_vec())));
                    return;
                }
                "-o" | "+o" => {
                    rest.next();
                }
                text if text.starts_with(['-', '+']) => {
                    if text.ends_with('o') {
                        rest.next();
                    }
                }
                _ => {
                    self.scope.set_positional(Some(Rc::new(arguments[at..].to_vec())));
                    return;
                }
            }
        }
    }

    fn unset(&mut self, arguments: &[Argument]) {
        let functions = arguments.iter().any(|a| a.text == "-f");
        for name in arguments.iter().filter(|a| !a.text.starts_with('-')) {
            if functions {
                self.scope.set_function(&name.text, None);
            } else {
                self.scope.set(&name.text, Value::Unset);
            }
        }
    }

    fn define_aliases(&mut self, arguments: &[Argument]) {
        for argument in arguments.iter().filter(|a| !a.text.starts_with('-')) {
            if let Some((name, text)) = argument.text.split_once('=') {
                self.scope.set_alias(name, Some(argument.with_text(text.to_owned())));
            }
        }
    }
}

/// An element of an array that was written as one word, its quotes taken off.
fn element(text: &str, like: &Argument) -> Argument {
    let plain: String = text.chars().filter(|c| !matches!(c, '"' | '\'')).collect();
    like.with_text(plain)
}

/// `command -v` and `-V` only say where a program is.
fn is_query(arguments: &[Argument]) -> bool {
    arguments.first().is_some_and(|a| a.text.starts_with('-') && a.text.contains(['v', 'V']))
}
