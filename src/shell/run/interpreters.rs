//! Shells and other interpreters: which text they run, and where it comes from.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::super::argument::Argument;
use super::super::carried::Carried;
use super::super::effect::{EffectKind, Target, TargetKind};
use super::super::foreign::{self, Foreign};
use super::super::programs::{self, Attributes, Input, Language};
use super::super::{analysis::UnresolvedCause, scripts};
use super::io::{Channel, Content, Stdin};
use super::sink::ProgramSink;
use super::{Engine, Value, decode};

/// Shells, and how reports name a text that they run.
const SHELLS: &[(&str, &str)] = &[
    ("sh", "sh -c"),
    ("bash", "bash -c"),
    ("zsh", "zsh -c"),
    ("dash", "dash -c"),
    ("ksh", "ksh -c"),
    ("ksh93", "ksh -c"),
    ("mksh", "mksh -c"),
    ("pdksh", "ksh -c"),
    ("ash", "ash -c"),
    ("fish", "fish -c"),
    ("rbash", "bash -c"),
    ("rksh", "ksh -c"),
    ("yash", "yash -c"),
    ("posh", "posh -c"),
    ("csh", "csh -c"),
    ("tcsh", "tcsh -c"),
    ("rzsh", "zsh -c"),
    ("hush", "sh -c"),
    ("static-sh", "sh -c"),
    ("nu", "nu -c"),
    ("elvish", "elvish -c"),
    ("xonsh", "xonsh -c"),
    ("osh", "osh -c"),
    ("ysh", "osh -c"),
    ("brush", "brush -c"),
    ("oksh", "ksh -c"),
    ("lksh", "ksh -c"),
];

/// Compilers and runners that take a file and run it at once.
const COMPILED: &[&str] = &[
    "go",
    "v",
    "crystal",
    "dart",
    "swift",
    "zig",
    "nim",
    "kotlin",
    "scala",
    "ts-node",
    "tsx",
    "deno",
    "rust-script",
    "java",
];

/// Programs, as reports name them, that have no reason of their own to start a shell for somebody to type into.
const NO_REASON: &[&str] = &[
    "awk system",
    "busybox",
    "cpan",
    "ed !",
    "emacs --eval",
    "expect",
    "fd -x",
    "find -exec",
    "find -ok",
    "ftp !",
    "gdb",
    "git -c",
    "git grep -O",
    "javascript",
    "lua",
    "make --eval",
    "osascript",
    "perl",
    "php",
    "python",
    "rg --pre",
    "rsync -e",
    "ruby",
    "scp -S",
    "sed e",
    "split",
    "sql",
    "sql copy",
    "sql shell",
    "ssh -o",
    "tar",
    "tar --checkpoint-action",
    "apt -o",
    "vim -c",
    "wget --use-askpass",
    "zip -TT",
];

/// Those of them that read their commands from the standard input.
const READ_SCRIPTS: &[&str] = &["cpan", "ed !", "ftp !", "sql shell"];

/// How an interpreter takes its program.
struct Grammar {
    language: Language,
    via: &'static str,
    /// Short options whose value is code.
    code: &'static str,
    /// Short options with another value, attached or next.
    values: &'static str,
    /// Short options whose value can only be attached.
    attached: &'static str,
    /// Long options whose value is code.
    long_code: &'static [&'static str],
    /// Short option after which a module or file is named, which is not looked at here.
    stop: &'static str,
}

const PYTHON: Grammar = Grammar {
    language: Language::Python,
    via: "python -c",
    code: "c",
    values: "WXQ",
    attached: "",
    long_code: &[],
    stop: "m",
};
const PERL: Grammar = Grammar {
    language: Language::Perl,
    via: "perl -e",
    code: "eE",
    values: "",
    attached: "i0lIMmFCDxdV",
    long_code: &[],
    stop: "",
};
const RUBY: Grammar = Grammar {
    language: Language::Ruby,
    via: "ruby -e",
    code: "e",
    values: "rICE",
    attached: "i0FKTWx",
    long_code: &[],
    stop: "",
};
const NODE: Grammar = Grammar {
    language: Language::JavaScript,
    via: "node -e",
    code: "ep",
    values: "rC",
    attached: "",
    long_code: &["--eval", "--print"],
    stop: "",
};
const PHP: Grammar = Grammar {
    language: Language::Php,
    via: "php -r",
    code: "rBRE",
    values: "cdzt",
    attached: "",
    long_code: &["--run", "--process-begin", "--process-code", "--process-end"],
    stop: "S",
};
const LUA: Grammar = Grammar {
    language: Language::Lua,
    via: "lua -e",
    code: "e",
    values: "l",
    attached: "",
    long_code: &[],
    stop: "",
};
/// R, Julia and others: their calls of a shell look like those of Ruby.
const OTHER: Grammar = Grammar {
    language: Language::Ruby,
    via: "script -e",
    code: "eE",
    values: "",
    attached: "",
    long_code: &["--eval"],
    stop: "",
};

fn grammar(program: &str) -> Option<&'static Grammar> {
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    Some(match name {
        "python" | "pypy" | "jython" | "micropython" | "ipython" => &PYTHON,
        "perl" => &PERL,
        "ruby" | "jruby" | "irb" => &RUBY,
        "node" | "nodejs" | "bun" | "jjs" | "jrunscript" | "qjs" => &NODE,
        "php" | "php-cli" => &PHP,
        "lua" | "luajit" | "texlua" => &LUA,
        "rscript" | "r" | "julia" | "groovy" | "elixir" | "crystal" | "tclsh" | "jshell" | "osascript"
        | "ghci" => &OTHER,
        _ => return None,
    })
}

/// The language of an interpreter's scripts.
pub(super) fn language(program: &str) -> Option<Language> {
    if program.is_empty() || shell(program).is_some() {
        return None;
    }
    match program {
        "awk" | "gawk" | "mawk" | "nawk" => Some(Language::Awk),
        "pwsh" | "powershell" => Some(Language::PowerShell),
        _ => grammar(program).map(|grammar| grammar.language),
    }
}

fn shell(program: &str) -> Option<&'static str> {
    SHELLS.iter().find(|(name, _)| *name == program).map(|(_, via)| *via)
}

impl Engine<'_> {
    /// Runs an interpreter. True when nothing is left to say about it.
    pub(super) fn interpreter(&mut self, program: &str, argv: &[Argument], span: &Range<usize>) -> bool {
        if let Some(via) = shell(program) {
            self.shell(via, argv, span);
            return true;
        }
        if matches!(program, "pwsh" | "powershell") {
            self.powershell(argv, span);
            return true;
        }
        if let Some(grammar) = grammar(program) {
            self.script_program(grammar, argv, span);
        }
        if program == "deno" && argv.get(1).is_some_and(|verb| verb.text == "eval") {
            let code = argv[2..].iter().find(|argument| !argument.text.starts_with('-'));
            if let Some(code) = code.cloned() {
                self.run_script_text(Language::JavaScript, &code, "deno eval");
            }
        }
        if COMPILED.contains(&program) {
            self.compiled_program(argv, span);
        }
        false
    }

    /// `go run file` and the like, when the content of the file is known: calls look the same in most languages.
    fn compiled_program(&mut self, argv: &[Argument], span: &Range<usize>) {
        let files = argv.iter().skip(1).filter(|argument| argument.text.contains('.'));
        for file in files.cloned().collect::<Vec<_>>() {
            match self.file_input(&file) {
                Input::Text(text) => self.run_script_text(Language::JavaScript, &text, "script"),
                Input::Network(from) => self.fetched(&from, argv, span),
                _ => {}
            }
        }
    }

    fn shell(&mut self, via: &'static str, argv: &[Argument], span: &Range<usize>) {
        let mut at = 1;
        let mut takes_text = false;
        let mut takes_stdin = false;
        while let Some(argument) = argv.get(at) {
            let text = argument.text.as_str();
            let Some(letters) = text.strip_prefix(['-', '+']) else { break };
            at += 1;
            match text {
                "-" | "--" => break,
                "--rcfile" | "--init-file" => {
                    if let Some(file) = argv.get(at) {
                        self.run_script_file(file, argv, span, via);
                    }
                    at += 1;
                }
                "--command" | "--init-command" => takes_text = true,
                _ if text.starts_with("--command=") => {
                    let code = argument.with_text(text["--command=".len()..].to_owned());
                    self.run_shell_text(&code, &argv[at..], via);
                    return;
                }
                _ if text.starts_with("--") => {}
                _ => {
                    takes_text |= text.starts_with('-') && letters.contains('c');
                    takes_stdin |= text.starts_with('-') && letters.contains('s');
                    // `-o pipefail`, `-O extglob`; `-euo pipefail`.
                    at += letters.chars().filter(|c| matches!(c, 'o' | 'O')).count();
                }
            }
        }
        let rest = argv.get(at..).unwrap_or_default();
        match rest {
            [code, rest @ ..] if takes_text => self.run_shell_text(code, rest, via),
            [] => self.shell_of_stdin(via, argv, &[], span),
            rest if takes_stdin => self.shell_of_stdin(via, argv, rest, span),
            [file, ..] => {
                self.stealing_script(file, argv, span);
                if self.run_script_file(file, rest, span, via) {
                    // The operand stands for standard input.
                    self.shell_of_stdin(via, argv, &rest[1..], span);
                } else {
                    self.print_unknown("", argv, super::super::argument::Origin::Output(Arc::from("sh")));
                }
            }
        }
    }

    /// A script that was made to collect credentials, told by its name.
    pub(super) fn stealing_script(&mut self, file: &Argument, argv: &[Argument], span: &Range<usize>) {
        if programs::steals(&file.text) {
            let target = Target { text: file.text.clone(), has_glob: false, kind: TargetKind::Name };
            let attributes =
                Attributes { detail: "credential collector".to_owned(), ..Attributes::default() };
            self.effect(EffectKind::RevealSecret, Some(target), attributes, "", &argv.into(), span);
        }
    }

    /// Runs a text with its positional parameters in a shell of its own.
    pub(super) fn run_shell_text(&mut self, code: &Argument, rest: &[Argument], via: &'static str) {
        let written = self.of_foreign(code, via);
        let code = written.as_ref().unwrap_or(code);
        let mark = self.scope.mark();
        let (zero, positional) = match rest {
            [zero, rest @ ..] => (Some(zero.clone()), rest.to_vec()),
            [] => (None, Vec::new()),
        };
        if let Some(zero) = zero {
            self.scope.set("0", Value::Text(Rc::new(zero)));
        }
        self.scope.set_positional(Some(Rc::new(positional)));
        self.run_text(code, Some(via));
        self.scope.roll_back(mark);
    }

    /// A text for a shell with a grammar of its own, as a POSIX shell would have it.
    fn of_foreign(&mut self, code: &Argument, via: &'static str) -> Option<Argument> {
        let shell = Foreign::of_program(via.strip_suffix(" -c")?)?;
        if !self.charge(20 + code.text.len() / 8) {
            return None;
        }
        if shell == Foreign::Xonsh {
            let python = code.with_text(foreign::python(&code.text));
            self.run_script_text(Language::Python, &python, via);
        }
        let is_opaque = code.is_unknown();
        (!is_opaque).then(|| code.with_text(shell.posix(&code.text)))
    }

    /// Runs a script file if its content is known. True if the operand stands for standard input.
    fn run_script_file(
        &mut self,
        file: &Argument,
        argv: &[Argument],
        span: &Range<usize>,
        via: &'static str,
    ) -> bool {
        if matches!(file.text.as_str(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") {
            return true;
        }
        match self.file_input(file) {
            Input::Text(text) => {
                let mark = self.scope.mark();
                self.scope.set_positional(Some(Rc::new(argv.get(1..).unwrap_or_default().to_vec())));
                let text = self.of_foreign(&text, via).unwrap_or(text);
                self.run_text(&text, Some(via));
                self.scope.roll_back(mark);
            }
            Input::Network(from) => self.fetched(&from, argv, span),
            Input::Output(program, _) if program != "mkfifo" => self.opaque_from(&program, argv, span),
            _ => {}
        }
        false
    }

    /// A shell that takes its commands from standard input.
    pub(super) fn shell_of_stdin(
        &mut self,
        via: &'static str,
        argv: &[Argument],
        positional: &[Argument],
        span: &Range<usize>,
    ) {
        let stdin = Rc::clone(&self.io.stdin);
        // What is left of a script that the program reads itself goes to the shell as well.
        let reads_script = self.via.iter().any(|via| READ_SCRIPTS.contains(via));
        if reads_script && self.remote == 0 {
            self.escape(via, &argv.into(), span);
        }
        if let Input::Text(text) = &stdin.input {
            let mark = self.scope.mark();
            self.scope.set_positional(Some(Rc::new(positional.to_vec())));
            // What the script itself reads from standard input is not its own text again.
            let inner = std::mem::take(&mut self.io.stdin);
            let rest = text.text.get(stdin.taken.get()..).unwrap_or_default();
            if stdin.taken.get() == 0 {
                let written = self.of_foreign(text, via);
                self.run_text(written.as_ref().unwrap_or(text), Some(via));
            } else {
                self.run_text(&text.with_text(rest.to_owned()), Some(via));
            }
            self.io.stdin = inner;
            self.scope.roll_back(mark);
            return;
        }
        let shared: Arc<[Argument]> = argv.into();
        if let Some(host) = self.socket_of_shell() {
            self.remote_shell(EffectKind::ReverseShell, &host, &shared, span);
        } else if let Input::Network(from) = &stdin.input {
            self.fetched(from, argv, span);
        } else if let Input::Output(program, _) = &stdin.input
            && program != "mkfifo"
        {
            self.opaque_from(program, argv, span);
        }
        if let Channel::File(path) = &self.io.stdout
            && matches!(self.files.get(path), Some(Content::Pipe))
            && let Channel::Socket(host) = &stdin.channel
        {
            let host = Arc::clone(host);
            self.remote_shell(EffectKind::ReverseShell, &host, &shared, span);
        }
        let is_free = stdin.input == Input::None && stdin.channel == Channel::Inherited && self.remote == 0;
        if is_free && self.via.iter().any(|via| NO_REASON.contains(via)) {
            self.escape(via, &shared, span);
        }
        self.facts.shell = Some((span.clone(), shared));
        self.print_unknown("", argv, super::super::argument::Origin::Output(Arc::from("sh")));
    }

    /// Notes a shell for somebody to type into.
    fn escape(&mut self, via: &str, argv: &Arc<[Argument]>, span: &Range<usize>) {
        let attributes = Attributes { detail: "interactive shell".to_owned(), ..Attributes::default() };
        self.effect(EffectKind::EscapeSandbox, None, attributes, via, argv, span);
    }

    /// Runs a command that a script prints what it reads to.
    pub(super) fn run_printed_to(&mut self, text: &Argument, via: &'static str) {
        let mut carried = Carried::of(self.reads[self.reads_from..].iter().cloned());
        carried.merge(&self.io.stdin.input.carried());
        let input = Input::Output("awk".to_owned(), carried);
        let outer = std::mem::replace(&mut self.io.stdin, Rc::new(Stdin { input, ..Stdin::default() }));
        self.run_script_text(Language::Shell, text, via);
        self.io.stdin = outer;
    }

    /// A program runs what it reads from its input as commands: whoever is at the other end of a connection gives them.
    pub(super) fn runs_input(&mut self, argv: &[Argument], span: &Range<usize>) {
        let stdin = Rc::clone(&self.io.stdin);
        if let Some(host) = self.socket_of_shell() {
            self.remote_shell(EffectKind::ReverseShell, &host, &argv.into(), span);
        } else if let Input::Network(from) = &stdin.input {
            self.fetched(from, argv, span);
        }
    }

    /// Runs a text in its language.
    pub(super) fn run_script_text(&mut self, language: Language, text: &Argument, via: &'static str) {
        if language == Language::Shell {
            self.run_shell_text(text, &[], via);
            return;
        }
        if self.is_opaque(text) {
            self.opaque(text, Some(via));
            return;
        }
        if self.depth >= self.limits.depth_max {
            self.note(UnresolvedCause::TooDeep, text.span.clone());
            return;
        }
        if !self.charge(1 + text.text.len() / 8) {
            return;
        }
        self.depth += 1;
        self.via.push(via);
        let span = text.span.clone();
        self.note_decoded(&text.text, &span);
        self.note_inline(language, text);
        let argv = [text.clone()];
        let mut sink = ProgramSink::new(self, via, &argv, &span);
        scripts::analyse(language, text, &mut sink);
        self.via.pop();
        self.depth -= 1;
    }

    fn script_program(&mut self, grammar: &Grammar, argv: &[Argument], span: &Range<usize>) {
        let mut code: Option<Argument> = None;
        let mut at = 1;
        // `crystal eval code`.
        if grammar.language == Language::Ruby && argv.get(1).is_some_and(|a| a.text == "eval") {
            code = argv.get(2).cloned();
            at = argv.len();
        }
        while let Some(argument) = argv.get(at) {
            let text = argument.text.as_str();
            if text == "-" || !text.starts_with('-') {
                break;
            }
            at += 1;
            if text == "--" {
                break;
            }
            if text.starts_with("--") {
                let (name, value) =
                    text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
                if grammar.long_code.contains(&name) {
                    let value = value.map(|value| argument.with_text(value.to_owned()));
                    let value = value.or_else(|| argv.get(at).cloned());
                    at += 1;
                    add_code(&mut code, value);
                }
                continue;
            }
            for (offset, letter) in text[1..].char_indices() {
                let attached = &text[1 + offset + letter.len_utf8()..];
                if grammar.stop.contains(letter) {
                    return;
                }
                if grammar.code.contains(letter) {
                    let value = if attached.is_empty() {
                        at += 1;
                        argv.get(at - 1).cloned()
                    } else {
                        Some(argument.with_text(attached.to_owned()))
                    };
                    add_code(&mut code, value);
                    break;
                }
                if grammar.attached.contains(letter) {
                    // `-l` and `-0` and `-i` take digits or a suffix; letters after `l` are options: `-lne`.
                    if matches!(letter, 'l' | '0') {
                        continue;
                    }
                    break;
                }
                if grammar.values.contains(letter) {
                    at += usize::from(attached.is_empty());
                    break;
                }
            }
        }
        match code {
            Some(code) => {
                self.run_script_text(grammar.language, &code, grammar.via);
                self.suspect_text(&code, argv, span);
            }
            None => self.script_operand(grammar, argv, argv.get(at), span),
        }
    }

    fn script_operand(
        &mut self,
        grammar: &Grammar,
        argv: &[Argument],
        operand: Option<&Argument>,
        span: &Range<usize>,
    ) {
        let input = match operand {
            None => self.io.stdin.input.clone(),
            Some(file) if file.text.contains("://") => Input::Network(file.text.clone()),
            Some(file) => self.file_input(file),
        };
        match input {
            Input::Text(text) => self.run_script_text(grammar.language, &text, grammar.via),
            Input::Network(from) => self.fetched(&from, argv, span),
            Input::Output(program, _) if program != "mkfifo" => self.opaque_from(&program, argv, span),
            _ => {}
        }
    }

    fn powershell(&mut self, argv: &[Argument], span: &Range<usize>) {
        let mut at = 1;
        while let Some(argument) = argv.get(at) {
            let option = argument.text.to_ascii_lowercase();
            let Some(name) = option.strip_prefix(['-', '/']) else { break };
            at += 1;
            if name.is_empty() {
                self.script_operand(&POWERSHELL, argv, None, span);
                return;
            }
            if "encodedcommand".starts_with(name) && name.starts_with("e") && name != "ex" || name == "ec" {
                if let Some(text) = argv.get(at) {
                    self.encoded_command(text, argv, span);
                }
                return;
            }
            if "command".starts_with(name) {
                let mut text = super::call::joined(argv.get(at..).unwrap_or_default());
                if text.text == "-" {
                    self.script_operand(&POWERSHELL, argv, None, span);
                    return;
                }
                text.text.push('\n');
                self.run_script_text(Language::PowerShell, &text, "powershell -Command");
                return;
            }
            let has_value =
                ["executionpolicy", "ex", "ep", "file", "windowstyle", "w", "version", "workingdirectory"]
                    .iter()
                    .any(|long| long.starts_with(name));
            at += usize::from(has_value);
        }
        match argv.get(at..) {
            Some(rest @ [_, ..]) => {
                let text = super::call::joined(rest);
                self.run_script_text(Language::PowerShell, &text, "powershell");
            }
            _ => self.script_operand(&POWERSHELL, argv, None, span),
        }
    }

    /// `-EncodedCommand`: base64 of UTF-16.
    fn encoded_command(&mut self, text: &Argument, argv: &[Argument], span: &Range<usize>) {
        let decoded = text
            .known()
            .and_then(|text| decode::base64(text.as_bytes()))
            .and_then(|bytes| decode::utf16(&bytes));
        match decoded {
            Some(decoded) => {
                self.push_decoded(span);
                let script = text.with_text(decoded);
                self.run_script_text(Language::PowerShell, &script, "powershell -EncodedCommand");
            }
            None => self.opaque_from("base64", argv, span),
        }
    }
}

const POWERSHELL: Grammar = Grammar {
    language: Language::PowerShell,
    via: "powershell",
    code: "",
    values: "",
    attached: "",
    long_code: &[],
    stop: "",
};

fn add_code(code: &mut Option<Argument>, value: Option<Argument>) {
    let Some(value) = value else { return };
    match code {
        None => *code = Some(value),
        Some(code) => {
            code.text.push('\n');
            code.text.push_str(&value.text);
            code.absorb(&value);
        }
    }
}
