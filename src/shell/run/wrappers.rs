//! Finds the command that a wrapper runs, and runs it.

use std::ops::Range;
use std::rc::Rc;

use super::super::analysis::UnresolvedCause;
use super::super::argument::{Argument, HOLE, Origin};
use super::super::carried::Carried;
use super::super::effect::EffectKind;
use super::super::programs::{self, Input};
use super::io::Stdin;
use super::telling::Rounds;
use super::wrapper_table::{self, Wrapper};
use super::{Engine, call, names};

/// A wrapper with so many operands takes its command from an option or standard input only.
const OPERANDS_ALL: usize = 9;

impl Engine<'_> {
    /// Runs the command behind a wrapper. True when nothing is left to say about it.
    pub(super) fn wrapper(&mut self, program: &str, argv: &[Argument], span: &Range<usize>) -> bool {
        match program {
            "xargs" => {
                self.xargs(argv, span);
                return false;
            }
            "parallel" => {
                self.parallel(argv, span);
                return true;
            }
            "cmd" => {
                self.windows_shell(argv, span);
                return false;
            }
            "crontab" => {
                self.crontab(argv);
                return false;
            }
            "expect" => {
                self.expect(argv);
                return false;
            }
            "ansible" | "salt" | "pdsh" | "pssh" | "parallel-ssh" | "clush" | "dsh" | "mussh" => {
                self.many_hosts(program, argv);
                return false;
            }
            "tmux" | "screen" => self.typed_keys(argv),
            "systemd-run" => self.unit_commands(argv),
            "osascript" => self.quoted_commands(argv, "do shell script"),
            "gdb" => self.debugger_commands(argv),
            "setarch" if argv.get(1).is_some_and(|a| !a.text.starts_with('-')) => {
                self.run_behind("setarch", &argv[1..], span);
                return true;
            }
            _ => {}
        }
        let Some(wrapper) = wrapper_table::find(program) else { return false };
        let mark = self.scope.mark();
        self.remote += usize::from(wrapper.traits.remote);
        if wrapper.traits.remote {
            // Where one stands over there is not known until a `cd` tells.
            self.scope.set_text("PWD", Argument::constant(HOLE.to_string(), span.clone()));
        }
        self.unwrap(wrapper, argv, span);
        if wrapper.name == "script"
            && let Some(file) = argv.iter().skip(1).next_back().filter(|word| !word.text.starts_with('-'))
        {
            // What the command printed is in there.
            let carried = Carried::of(self.reads[self.reads_from..].iter().cloned());
            let path = self.spelled(file);
            self.files.make(&path, &carried);
        }
        self.remote -= usize::from(wrapper.traits.remote);
        self.scope.roll_back(mark);
        !wrapper.traits.is_program
    }

    fn run_behind(&mut self, name: &'static str, argv: &[Argument], span: &Range<usize>) {
        if let Some(wrapper) = wrapper_table::find(name) {
            self.unwrap(wrapper, argv, span);
        }
    }

    fn unwrap(&mut self, wrapper: &Wrapper, argv: &[Argument], span: &Range<usize>) {
        let mut at = 1;
        if !wrapper.traits.after.is_empty() {
            let keyword = |a: &Argument| wrapper.traits.after.contains(&a.text.as_str());
            match argv.iter().position(keyword) {
                Some(found) => at = found + 1,
                None => return,
            }
            // `direnv exec folder command`
            at += usize::from(wrapper.name == "direnv");
        }
        let mut operands = wrapper.operands;
        if wrapper.name == "runuser"
            && argv.iter().any(|a| a.text.starts_with("-u") || a.text.starts_with("--user"))
        {
            operands = 0;
        }
        if wrapper.name == "script" {
            // Elsewhere than on Linux the command follows the file.
            operands = 1;
        }
        let mut ran_code = false;
        while let Some(argument) = argv.get(at) {
            let text = argument.text.as_str();
            if text == "--" {
                at += 1;
                // What was meant as an operand before the command still is one: `timeout -- 5 rm`.
                if operands < OPERANDS_ALL {
                    at += operands.min(argv.len() - at);
                }
                break;
            }
            if text.len() > 1 && text.starts_with('-') {
                at += self.option(wrapper, argv, at, &mut ran_code);
            } else if wrapper.name == "taskset"
                && argv[1..at].iter().any(|a| a.text.starts_with("-c") || a.text == "--cpu-list")
                && operands > 0
            {
                at += 1;
                operands = 0;
            } else if wrapper.traits.assigns && self.assigns(argument) {
                at += 1;
            } else if operands > 0 {
                operands -= 1;
                at += 1;
            } else {
                break;
            }
        }
        if ran_code {
            return;
        }
        let rest = argv.get(at..).unwrap_or_default();
        if rest.is_empty() {
            if wrapper.name == "env" {
                self.print_environment("env");
            }
            if wrapper.traits.shell && operands_given(wrapper, argv) {
                self.shell_of_stdin(wrapper.name, argv, &[], span);
            }
        } else if wrapper.traits.joins {
            let text = call::joined(rest);
            self.run_shell_text(&text, &[], wrapper.name);
        } else {
            self.via.push(wrapper.name);
            self.run_argv(rest, span);
            self.via.pop();
        }
    }

    /// Handles the option at `at` and gives how many arguments it takes.
    fn option(&mut self, wrapper: &Wrapper, argv: &[Argument], at: usize, ran_code: &mut bool) -> usize {
        let argument = &argv[at];
        let text = argument.text.as_str();
        let (name, value) = match text.split_once('=') {
            Some((name, value)) if text.starts_with("--") => (name, Some(value)),
            _ => (text, None),
        };
        if wrapper.code.contains(&name) || self.is_code_cluster(wrapper, text) {
            // `-c text`, `--command=text`, `-Stext`.
            let start = text.find(['c', 'S']).map_or(text.len(), |at| at + 1);
            let attached = value.or_else(|| (!wrapper.code.contains(&name)).then(|| &text[start..]));
            let attached = attached.filter(|code| !code.is_empty());
            let taken = 1 + usize::from(attached.is_none());
            let code = match attached {
                Some(code) => Some(argument.with_text(code.to_owned())),
                None => argv.get(at + 1).cloned(),
            };
            if let Some(code) = code {
                self.run_code(wrapper, &code, argv.get(at + taken..).unwrap_or_default());
                *ran_code = wrapper.name != "hyperfine";
            }
            return taken;
        }
        if wrapper.traits.pairs.contains(&text) {
            return 3;
        }
        if text.starts_with("--") || wrapper.traits.single_dash {
            return 1 + usize::from(value.is_none() && wrapper.long.contains(&name));
        }
        if wrapper.long.contains(&text) {
            return 2;
        }
        match text[1..].char_indices().find(|&(_, letter)| wrapper.values.contains(letter)) {
            // The value is the rest of the cluster, or the next argument.
            Some((offset, letter)) => 1 + usize::from(1 + offset + letter.len_utf8() == text.len()),
            None => 1,
        }
    }

    /// Short options in one word of which one takes code: `script -qc`, `su -lc`, `flock -xc`.
    fn is_code_cluster(&self, wrapper: &Wrapper, text: &str) -> bool {
        if text.starts_with("--") || wrapper.traits.single_dash {
            return false;
        }
        let takes = |letter: char| wrapper.code.iter().any(|code| code.len() == 2 && code.ends_with(letter));
        text[1..].chars().take_while(|&letter| takes(letter) || !wrapper.values.contains(letter)).any(takes)
    }

    fn run_code(&mut self, wrapper: &Wrapper, code: &Argument, rest: &[Argument]) {
        if wrapper.name == "env" {
            // `env -S` splits the text itself, then runs it with the arguments behind it.
            let mut text = code.clone();
            for word in rest {
                text.text.push(' ');
                call::quote_into(&mut text.text, word);
            }
            text.text.insert_str(0, "env ");
            self.run_shell_text(&text, &[], "env -S");
            return;
        }
        self.run_shell_text(code, &[], wrapper.name);
    }

    /// `NAME=value` before the command, for the command.
    fn assigns(&mut self, argument: &Argument) -> bool {
        let Some((name, value)) = argument.text.split_once('=') else { return false };
        if !names::is_variable(name) {
            return false;
        }
        self.assign_text(name, argument.with_text(value.to_owned()), false);
        true
    }

    fn xargs(&mut self, argv: &[Argument], span: &Range<usize>) {
        let mut replace: Option<String> = None;
        let mut delimiter = None;
        let mut from_file = None;
        let mut at = 1;
        while let Some(argument) = argv.get(at) {
            let text = argument.text.as_str();
            if !text.starts_with('-') || text.len() < 2 {
                break;
            }
            at += 1;
            if text == "--" {
                break;
            }
            let letter = text.chars().nth(1).unwrap_or('-');
            let attached = text.get(2..).filter(|rest| !rest.is_empty() && letter != '-');
            let mut value = || {
                attached.map(str::to_owned).or_else(|| {
                    at += 1;
                    argv.get(at - 1).map(|a| a.text.clone())
                })
            };
            match letter {
                'I' | 'J' | 'R' => replace = value(),
                'i' => replace = Some(attached.unwrap_or("{}").to_owned()),
                'd' => delimiter = value(),
                '0' => delimiter = Some("\0".to_owned()),
                'a' => from_file = value(),
                'n' | 'L' | 'P' | 's' | 'E' => {
                    value();
                }
                '-' => match text.split_once('=') {
                    Some(("--replace", value)) => {
                        replace = Some(if value.is_empty() { "{}" } else { value }.to_owned());
                    }
                    Some(("--delimiter", value)) => delimiter = Some(value.to_owned()),
                    Some(("--arg-file", value)) => from_file = Some(value.to_owned()),
                    Some(_) => {}
                    None => match text {
                        "--replace" => replace = Some("{}".to_owned()),
                        "--null" => delimiter = Some("\0".to_owned()),
                        "--delimiter" => {
                            delimiter = argv.get(at).map(|a| a.text.clone()).inspect(|_| at += 1)
                        }
                        "--arg-file" => from_file = argv.get(at).map(|a| a.text.clone()).inspect(|_| at += 1),
                        "--max-args" | "--max-procs" | "--max-lines" | "--max-chars" | "--eof" => at += 1,
                        _ => {}
                    },
                },
                _ => {}
            }
        }
        let echo = [Argument::constant("echo", span.clone())];
        let command = argv.get(at..).filter(|rest| !rest.is_empty()).unwrap_or(&echo);
        let is_list = from_file.is_some();
        let input = match from_file {
            Some(file) => self.items_of_file(&Argument::constant(file, span.clone()), span),
            None => self.io.stdin.input.clone(),
        };
        if runs_items(command, replace.as_deref()) {
            self.run_items(&input, argv, span, "xargs");
            return;
        }
        let items = self.items(&input, delimiter.as_deref(), replace.is_some(), span);
        // The command itself reads nothing.
        let stdin = std::mem::replace(&mut self.io.stdin, Rc::new(Stdin::default()));
        self.via.push(if is_list { "xargs -a" } else { "xargs" });
        // Without the word that it stands for, an item is meant to follow.
        let has_token = |token: &str| command.iter().any(|word| word.text.contains(token));
        match replace {
            Some(token) if !token.is_empty() && has_token(&token) => {
                for item in &items {
                    let replaced: Vec<Argument> =
                        command.iter().map(|word| substitute(word, &token, item)).collect();
                    self.run_argv(&replaced, span);
                }
            }
            _ => {
                let mut all = command.to_vec();
                all.extend(items);
                self.run_argv(&all, span);
            }
        }
        self.via.pop();
        self.io.stdin = stdin;
    }

    /// The lines of a file as items.
    fn items_of_file(&mut self, file: &Argument, span: &Range<usize>) -> Input {
        let input = self.file_input(file);
        if let Input::File(path) = &input {
            self.path_effect(EffectKind::ReadPath, path, "items", span);
        }
        input
    }

    /// Runs each line of an input as a shell script, as `xargs -I{} sh -c {}` does.
    fn run_items(&mut self, input: &Input, argv: &[Argument], span: &Range<usize>, via: &'static str) {
        self.opaque_from(via, argv, span);
        for item in self.items(input, None, true, span) {
            self.run_shell_text(&item, &[], via);
        }
        self.print_unknown("", argv, Origin::Output(std::sync::Arc::from(via)));
    }

    /// The items that an input gives to `xargs`.
    fn items(
        &mut self,
        input: &Input,
        delimiter: Option<&str>,
        lines: bool,
        span: &Range<usize>,
    ) -> Vec<Argument> {
        let Input::Text(text) = input else {
            let mut unknown = super::io::text_of(input, span);
            unknown.span = span.clone();
            return vec![unknown];
        };
        self.charge_bytes(text.text.len() * 4);
        let item = |word: &str| {
            let plain: String = word.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
            text.with_text(if delimiter.is_some() { word.to_owned() } else { plain })
        };
        let separator = match delimiter {
            Some("\\n") => Some('\n'),
            Some("\\0") => Some('\0'),
            Some(other) => other.chars().next(),
            None if lines => Some('\n'),
            None => None,
        };
        let mut rounds = Rounds::default();
        let items = match separator {
            // The blank that separates may have been lost as an unknown piece.
            Some('\0') => text
                .text
                .split(['\0', '\n'])
                .filter(|word| !word.is_empty() && rounds.runs(word))
                .map(item)
                .collect(),
            Some(separator) => {
                let words = text.text.split(separator).map(str::trim);
                words.filter(|word| !word.is_empty() && rounds.runs(word)).map(item).collect()
            }
            None => text.text.split_whitespace().filter(|word| rounds.runs(word)).map(item).collect(),
        };
        if rounds.left_out() {
            self.note(UnresolvedCause::TooMuchWork, span.clone());
        }
        items
    }

    /// `parallel`: the words are joined and read by a shell; the items come from `:::` or standard input.
    fn parallel(&mut self, argv: &[Argument], span: &Range<usize>) {
        const VALUES: &[&str] = &[
            "-j",
            "--jobs",
            "-S",
            "--sshlogin",
            "-a",
            "--arg-file",
            "-I",
            "-d",
            "--delimiter",
            "-n",
            "--max-args",
            "-N",
            "-P",
            "--max-procs",
            "--colsep",
            "-C",
            "--delay",
            "--timeout",
            "--joblog",
            "--results",
            "--tmpdir",
            "--retries",
            "--halt",
            "--memfree",
            "--load",
            "--nice",
            "--tagstring",
            "--workdir",
            "--wd",
            "--block",
            "--recstart",
            "--recend",
        ];
        let mut at = 1;
        let mut from_file = None;
        while let Some(text) = argv.get(at).map(|a| a.text.as_str()) {
            if text == "--" {
                at += 1;
                break;
            }
            if !text.starts_with('-') {
                break;
            }
            if matches!(text, "-a" | "--arg-file") {
                from_file = argv.get(at + 1);
            }
            at += 1 + usize::from(VALUES.contains(&text));
        }
        let rest = argv.get(at..).unwrap_or_default();
        let is_source = |a: &Argument| matches!(a.text.as_str(), ":::" | "::::" | ":::+" | "::::+");
        let end = rest.iter().position(is_source).unwrap_or(rest.len());
        let (command, sources) = rest.split_at(end);
        if let [source, file, ..] = sources
            && source.text.starts_with("::::")
        {
            from_file = Some(file);
        }
        let items: Vec<Argument> = if sources.is_empty() || from_file.is_some() {
            let input = match from_file {
                Some(file) => self.items_of_file(file, span),
                None => self.io.stdin.input.clone(),
            };
            match input {
                Input::None => Vec::new(),
                input => self.items(&input, None, true, span),
            }
        } else {
            let mut rounds = Rounds::default();
            let items =
                sources[1..].iter().filter(|a| !is_source(a) && rounds.runs(&a.text)).cloned().collect();
            if rounds.left_out() {
                self.note(UnresolvedCause::TooMuchWork, span.clone());
            }
            items
        };
        if runs_items(command, None) {
            self.opaque_from("parallel", argv, span);
        }
        let stdin = std::mem::replace(&mut self.io.stdin, Rc::new(Stdin::default()));
        if command.is_empty() {
            // Each item is a command line of its own.
            for item in &items {
                self.run_shell_text(item, &[], "parallel");
            }
        } else {
            let base = call::joined(command);
            if items.is_empty() {
                self.run_shell_text(&base, &[], "parallel");
            }
            for item in &items {
                let mut quoted = item.with_text(String::new());
                call::quote_into(&mut quoted.text, item);
                let mut text = substitute(&base, "{}", &quoted);
                if !base.text.contains('{') {
                    text.text.push(' ');
                    text.text.push_str(&quoted.text);
                    text.absorb(item);
                }
                self.run_shell_text(&text, &[], "parallel");
                // With `-q` the words stay as they are.
                if command.iter().any(|word| word.text.contains(' ')) {
                    let words: Vec<Argument> =
                        command.iter().map(|word| substitute(word, "{}", item)).collect();
                    self.via.push("parallel");
                    self.run_argv(&words, span);
                    self.via.pop();
                }
            }
        }
        self.io.stdin = stdin;
        self.print_unknown("parallel", argv, Origin::Output(std::sync::Arc::from("parallel")));
    }

    /// Programs that run a command on many other machines: the command is a word, or an option's value.
    fn many_hosts(&mut self, program: &str, argv: &[Argument]) {
        let after = |option: &str| {
            let at = argv.iter().position(|a| a.text == option)?;
            argv.get(at + 1).cloned()
        };
        let command = match program {
            "ansible" => {
                let module = after("-m").or_else(|| after("--module-name"));
                let runs = module.is_none_or(|m| {
                    let name = m.text.rsplit('.').next().unwrap_or_default();
                    matches!(name, "shell" | "command" | "raw" | "win_shell")
                });
                after("-a").or_else(|| after("--args")).filter(|_| runs)
            }
            "salt" => after("cmd.run").or_else(|| after("cmd.shell")),
            // The command is what stands behind the hosts, as one word or many.
            _ => argv
                .iter()
                .skip(1)
                .position(|a| a.text.contains(' ') && !a.text.starts_with('-'))
                .map(|at| call::joined(&argv[at + 1..])),
        };
        if let Some(command) = command {
            self.remote += 1;
            self.run_shell_text(&command, &[], "many hosts");
            self.remote -= 1;
        }
    }

    fn windows_shell(&mut self, argv: &[Argument], span: &Range<usize>) {
        let is_run =
            |a: &Argument| matches!(a.text.to_ascii_lowercase().as_str(), "/c" | "/k" | "/r" | "//c");
        if let Some(at) = argv.iter().position(is_run) {
            let rest = &argv[at + 1..];
            self.via.push("cmd /c");
            if let [text] = rest {
                for command in super::batch::commands(&text.text) {
                    let words: Vec<Argument> =
                        command.into_iter().map(|text_| text.with_text(text_)).collect();
                    self.run_argv(&words, span);
                }
            } else {
                let plain: Vec<Argument> =
                    rest.iter().map(|word| word.with_text(super::batch::plain(&word.text))).collect();
                self.run_argv(&plain, span);
            }
            self.via.pop();
        }
    }

    /// Lines given to `crontab -`: the command behind the five fields of time runs later.
    fn crontab(&mut self, argv: &[Argument]) {
        let Some(file) = argv.get(1) else { return };
        let Input::Text(text) = self.file_input(file) else { return };
        for line in text.text.lines() {
            let line = line.trim_start();
            let fields = if line.starts_with('@') { 1 } else { 5 };
            let mut rest = line;
            for _ in 0..fields {
                rest = rest.trim_start().split_once([' ', '\t']).map_or("", |(_, rest)| rest);
            }
            if !rest.is_empty() && !line.starts_with('#') {
                self.run_shell_text(&text.with_text(rest.to_owned()), &[], "crontab");
            }
        }
    }

    /// `do shell script "command"` in any argument.
    fn quoted_commands(&mut self, argv: &[Argument], keyword: &str) {
        for argument in &argv[1..] {
            for rest in argument.text.split(keyword).skip(1) {
                let Some(rest) = rest.trim_start().strip_prefix('"') else { continue };
                let command = rest.split('"').next().unwrap_or_default();
                self.run_shell_text(&argument.with_text(command.to_owned()), &[], "osascript");
            }
        }
    }

    /// `tmux send-keys -t x 'command' Enter`, `screen -X stuff 'command'`: what is typed into a shell.
    fn typed_keys(&mut self, argv: &[Argument]) {
        let is_verb = |a: &Argument| matches!(a.text.as_str(), "send-keys" | "send" | "stuff");
        let Some(at) = argv.iter().position(is_verb) else { return };
        let mut rest = argv.get(at + 1..).unwrap_or_default();
        while let Some((option, behind)) = rest.split_first().filter(|(a, _)| a.text.starts_with('-')) {
            let takes_value = matches!(option.text.as_str(), "-t" | "-N" | "-c");
            rest = if takes_value { behind.get(1..).unwrap_or_default() } else { behind };
        }
        let Some(first) = rest.first() else { return };
        let is_enter = |text: &str| matches!(text, "Enter" | "C-m" | "KPEnter" | "C-j" | "C-M" | "C-J");
        let mut text = String::new();
        for key in rest {
            match key.text.as_str() {
                enter if is_enter(enter) => text.push('\n'),
                "Space" => text.push(' '),
                typed => text.push_str(typed),
            }
        }
        let text = text.replace("\\n", "\n").replace("\\r", "\n").replace("^M", "\n").replace('\r', "\n");
        self.run_shell_text(&first.with_text(text), &[], "typed keys");
    }

    /// `systemd-run -p ExecStartPre='command'`: commands in the settings of a unit.
    fn unit_commands(&mut self, argv: &[Argument]) {
        for argument in &argv[1..] {
            let text = argument.text.trim_start_matches("--property=").trim_start_matches("-p");
            if let Some((name, command)) = text.split_once('=')
                && name.starts_with("Exec")
                && name.len() <= 16
            {
                let text = command.trim_start_matches(['@', '-', ':', '+', '!']).to_owned();
                self.run_shell_text(&argument.with_text(text), &[], "systemd-run -p");
            }
        }
    }

    /// `gdb -ex 'shell command'`.
    fn debugger_commands(&mut self, argv: &[Argument]) {
        for argument in &argv[1..] {
            if let Some(command) =
                argument.text.strip_prefix("shell ").or_else(|| argument.text.strip_prefix('!'))
            {
                self.run_shell_text(&argument.with_text(command.to_owned()), &[], "gdb");
            }
        }
    }

    /// `expect -c 'spawn command'`.
    fn expect(&mut self, argv: &[Argument]) {
        let script = match argv.iter().position(|a| a.text == "-c") {
            Some(at) => argv.get(at + 1).cloned(),
            None => match argv.get(1) {
                Some(file) => match self.file_input(file) {
                    Input::Text(text) => Some(text),
                    _ => None,
                },
                None => self.io.stdin.input.clone().into_text(),
            },
        };
        let Some(script) = script else { return };
        for statement in script.text.split(['\n', ';']) {
            let statement = statement.trim();
            for keyword in ["spawn ", "exec ", "system "] {
                if let Some(command) = statement.strip_prefix(keyword) {
                    self.run_shell_text(&script.with_text(command.to_owned()), &[], "expect");
                }
            }
        }
    }
}

/// Whether the items themselves are what a shell is told to run.
fn runs_items(command: &[Argument], token: Option<&str>) -> bool {
    let Some((last, rest)) = command.split_last() else { return false };
    let takes_code =
        |a: &Argument| a.text.starts_with('-') && !a.text.starts_with("--") && a.text.ends_with('c');
    let is_shell = command.first().is_some_and(|name| programs::is_shell(&name.text));
    let is_token = last.text == token.unwrap_or("{}");
    is_shell && (takes_code(last) || is_token && rest.last().is_some_and(takes_code))
}

trait IntoText {
    fn into_text(self) -> Option<Argument>;
}

impl IntoText for Input {
    fn into_text(self) -> Option<Argument> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Whether enough was given that a shell starts: `ssh` alone or `at` without a time start none.
fn operands_given(wrapper: &Wrapper, argv: &[Argument]) -> bool {
    wrapper.operands == 0 || wrapper.operands >= OPERANDS_ALL || argv.len() > wrapper.operands
}

fn substitute(word: &Argument, token: &str, item: &Argument) -> Argument {
    if !word.text.contains(token) {
        return word.clone();
    }
    let mut word = word.clone();
    word.text = word.text.replace(token, &item.text);
    if item.text.contains(HOLE) {
        word.absorb(item);
    }
    word
}
