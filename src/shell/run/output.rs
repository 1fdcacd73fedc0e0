//! What programs print, and what they fetch: the text that the next command reads.

use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use super::super::argument::{Argument, HOLE, Origin};
use super::super::carried::Carried;
use super::super::programs::Input;
use super::io::{Content, input_of};
use super::{Engine, filters, names, printf};

/// Programs that print what they fetch from the network.
const FETCHERS: &[&str] = &[
    "curl",
    "wget",
    "fetch",
    "http",
    "https",
    "xh",
    "xhs",
    "aria2c",
    "lwp-request",
    "get",
    "lynx",
    "w3m",
    "links",
    "elinks",
    "ftp",
    "tftp",
    "axel",
    "curlie",
    "hurl",
    "wget2",
    "lftp",
    "nc",
    "ncat",
    "netcat",
    "telnet",
    "socat",
    "dig",
    "nslookup",
    "host",
    "drill",
    "whois",
    "finger",
    "gopher",
    "ipfs",
    "rcat",
    "torify",
];

/// Programs that tell little of what they read: a number, a sum, a yes or no.
const SUMMARIES: &[&str] = &[
    "wc",
    "md5sum",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "shasum",
    "b2sum",
    "cksum",
    "md5",
    "sum",
    "file",
    "test",
    "true",
    "false",
    "sleep",
    "date",
    "gpg",
    "rm",
    "mkdir",
    "touch",
    "chmod",
    "exit",
    "cd",
];

/// Where what is put on the clipboard is remembered: no file of the machine is called so.
const CLIPBOARD: &str = "\u{1}clipboard";

static FETCHER_NAMES: LazyLock<names::Names> = LazyLock::new(|| names::Names::new(FETCHERS));
static SUMMARY_NAMES: LazyLock<names::Names> = LazyLock::new(|| names::Names::new(SUMMARIES));

/// Whether a program tells little of what it reads.
pub(super) fn is_summary(program: &str) -> bool {
    SUMMARY_NAMES.contains(program)
}

impl Engine<'_> {
    /// Adds what a program prints to the output, if somebody reads it.
    pub(super) fn output(&mut self, program: &str, argv: &[Argument], span: &Range<usize>) {
        if program == "printf" && argv.get(1).is_some_and(|a| a.text == "-v") {
            self.print_to_variable(argv);
            return;
        }
        self.remember_files(program, argv);
        self.facts.environment |= prints_environment(program, &argv[1..]);
        if !self.io.wanted || !self.charge(1) {
            return;
        }
        if let Some(mut text) = self.computed(program, argv) {
            text.span = span.clone();
            if !text.is_known() && !matches!(text.origin, Origin::Network(_)) {
                text.carried.merge(&self.printed_by(program, argv));
            }
            if matches!(program, "echo" | "printf") {
                self.remember_printed(&argv[1..], &text.text);
            }
            if self.charge_bytes(text.text.len()) {
                self.io.write_argument(&text);
            }
            return;
        }
        self.remember_script(program, &argv[1..]);
        if matches!(program, "history" | "fc") && !argv.iter().any(|a| matches!(a.text.as_str(), "-c" | "-s"))
        {
            self.note_history();
        }
        if matches!(program, "xclip" | "xsel" | "pbpaste" | "wl-paste") {
            let carried = self.files.carried(CLIPBOARD);
            self.io.write_unknown(Origin::Output(Arc::from(program)), carried);
            return;
        }
        let origin = self.origin_of_output(program, argv);
        if origin != Origin::Environment {
            self.print_unknown(program, argv, origin);
        }
    }

    /// Every variable of the environment is printed.
    pub(super) fn print_environment(&mut self, program: &str) {
        self.facts.environment = true;
        self.io.write_unknown(Origin::Output(Arc::from(program)), Carried::default());
    }

    /// `printf -v name format arguments`.
    fn print_to_variable(&mut self, argv: &[Argument]) {
        if let [_, _, name, format, rest @ ..] = argv
            && names::is_variable(&name.text)
        {
            let value = printf::printf(format, rest);
            self.assign_text(&name.text, value, false);
        }
    }

    fn computed(&mut self, program: &str, argv: &[Argument]) -> Option<Argument> {
        let arguments = &argv[1..];
        match program {
            "echo" => Some(printf::echo(arguments, false)),
            "printf" => {
                let arguments = if arguments.first().is_some_and(|a| a.text == "--") {
                    &arguments[1..]
                } else {
                    arguments
                };
                let (format, rest) = arguments.split_first()?;
                Some(printf::printf(format, rest))
            }
            "which" | "type" | "command" | "whereis" | "whence" => {
                let name = arguments.iter().rev().find(|a| !a.text.starts_with('-'))?;
                Some(line(name))
            }
            // Somewhere lies a file of that name.
            "locate" | "plocate" | "mlocate" | "mdfind" => {
                let name = arguments.iter().rev().find(|a| !a.text.starts_with('-') && a.is_known())?;
                Some(name.with_text(format!("~/{HOLE}/{}\n", names::base_name(&name.text))))
            }
            "find" | "gfind" | "bfs" => {
                let found = super::super::programs::found(arguments)?;
                Some(Argument { text: found.text + "\n", ..found })
            }
            // Names of what a pattern stands for, as they are written.
            "ls" | "gls" => {
                let is_option = |a: &&Argument| a.text.starts_with('-');
                let named = arguments
                    .iter()
                    .any(|a| is_option(&a) && a.text.contains('d') && !a.text.starts_with("--"));
                let listed: Vec<&Argument> =
                    arguments.iter().filter(|a| !is_option(a) && (named || a.has_glob)).collect();
                let first = listed.first()?;
                let text: String = listed.iter().flat_map(|a| [a.text.as_str(), "\n"]).collect();
                Some(Argument { has_glob: listed.iter().any(|a| a.has_glob), ..first.with_text(text) })
            }
            "readlink" | "realpath" => Some(line(arguments.iter().rev().find(|a| !a.text.starts_with('-'))?)),
            "basename" => {
                let mut name = arguments.iter().find(|a| !a.text.starts_with('-'))?.clone();
                name.text = names::base_name(&name.text).to_owned();
                if let [_, suffix] = arguments
                    && let Some(shorter) = name.text.strip_suffix(suffix.text.as_str())
                {
                    name.text = shorter.to_owned();
                }
                Some(line(&name))
            }
            "dirname" => {
                let mut name = arguments.first()?.clone();
                let path = name.text.trim_end_matches('/');
                name.text = match path.rfind('/') {
                    Some(0) => "/".to_owned(),
                    Some(at) => path[..at].to_owned(),
                    None => ".".to_owned(),
                };
                Some(line(&name))
            }
            "pwd" => {
                let cwd = self.cwd();
                let text = if cwd.is_empty() { ".".to_owned() } else { cwd };
                Some(line(&Argument::constant(text, 0..0)))
            }
            "mktemp" => self.temporary(arguments),
            "seq" => seq(arguments),
            "env" | "true" | "false" | ":" | "sleep" => None,
            "awk" | "gawk" | "mawk" | "perl" | "python" | "python3" | "ruby" | "node" | "php"
                if arguments.len() < 4 =>
            {
                filters::printed(arguments.last()?.known()?)
                    .map(|text| Argument::constant(text, 0..0))
                    .or_else(|| self.filtered(program, argv))
            }
            "yes" => {
                let word = arguments.first().map_or("y", |a| a.text.as_str());
                Some(Argument::constant(format!("{word}\n{HOLE}"), 0..0))
            }
            _ => self.filtered(program, argv),
        }
    }

    /// The name that `mktemp` makes up: it is not known, but nothing else has it.
    fn temporary(&mut self, arguments: &[Argument]) -> Option<Argument> {
        self.scripts += 1;
        let is_template = |text: &str| text.contains("XXX") && !text.contains(HOLE);
        let template = arguments.iter().find(|argument| is_template(&argument.text));
        let name = match template {
            Some(template) if template.text.contains('/') => template.text.replace("XXX", ""),
            _ => "/tmp/tmp.".to_owned(),
        };
        Some(Argument::constant(format!("{}{}{HOLE}\n", name.trim_end_matches('X'), self.scripts), 0..0))
    }

    /// The output of a filter over a known text from standard input or from files written here.
    fn filtered(&mut self, program: &str, argv: &[Argument]) -> Option<Argument> {
        let arguments = &argv[1..];
        let stdin = Rc::clone(&self.io.stdin);
        // Files among the operands are read instead of standard input.
        if matches!(
            program,
            "cat" | "base64" | "base32" | "tac" | "rev" | "head" | "tail" | "xxd" | "sed" | "tee"
        ) && program != "tee"
        {
            let mut text: Option<Argument> = None;
            let mut options: Vec<Argument> = Vec::new();
            for (at, argument) in arguments.iter().enumerate() {
                let is_value =
                    at > 0 && matches!(arguments[at - 1].text.as_str(), "-c" | "-n" | "-w" | "-e" | "-s");
                let is_script = program == "sed" && at == 0;
                if (argument.text.starts_with('-') && argument.text.len() > 1) || is_value || is_script {
                    options.push(argument.clone());
                    continue;
                }
                let input = self.file_input(argument);
                let piece = super::io::text_of(&input, &argument.span);
                match &mut text {
                    None => text = Some(piece),
                    Some(text) => {
                        text.text.push_str(&piece.text);
                        text.absorb(&piece);
                    }
                }
            }
            if let Some(text) = text {
                return self.filter_text(program, &options, &text);
            }
        }
        match &stdin.input {
            Input::Text(text) => {
                let text = text.clone();
                self.filter_text(program, arguments, &text)
            }
            _ => None,
        }
    }

    fn filter_text(&mut self, program: &str, options: &[Argument], text: &Argument) -> Option<Argument> {
        if !self.charge_bytes(text.text.len()) {
            return None;
        }
        if program == "cat" {
            return Some(text.clone());
        }
        if !text.is_known() {
            return matches!(program, "tee" | "sponge" | "pv").then(|| text.clone());
        }
        let arguments: &[Argument] = if program == "tee" { &[] } else { options };
        let out = filters::apply(program, arguments, &text.text)?;
        self.remember_filtered(program, &text.text, &out);
        Some(text.with_text(out))
    }

    /// Where the output of a program comes from when it cannot be computed.
    fn origin_of_output(&mut self, program: &str, argv: &[Argument]) -> Origin {
        if SUMMARY_NAMES.contains(program) {
            return Origin::Output(Arc::from(program));
        }
        if let Some(from) = self.fetches(program, argv) {
            // What is saved to a file is not printed.
            return match saved_to(program, argv) {
                Some(_) => Origin::Environment,
                None => Origin::Network(Arc::from(from)),
            };
        }
        let stdin = Rc::clone(&self.io.stdin);
        match &stdin.input {
            Input::Network(from) => return Origin::Network(Arc::from(from.as_str())),
            // A decoder's output stays opaque through whatever comes behind it.
            Input::Output(before, _) if super::command::is_decoder(before) => {
                return Origin::Output(Arc::from(before.as_str()));
            }
            Input::Text(text) if matches!(text.origin, Origin::Network(_)) => return text.origin.clone(),
            _ => {}
        }
        for argument in &argv[1..] {
            if argument.text.contains('/') || !self.files.is_empty() {
                let input = self.file_input(argument);
                if let Input::Network(from) = input {
                    return Origin::Network(Arc::from(from.as_str()));
                }
            }
        }
        Origin::Output(Arc::from(program))
    }

    /// Where a program fetches from, if it does.
    fn fetches(&self, program: &str, argv: &[Argument]) -> Option<String> {
        let arguments = &argv[1..];
        let is_remote = |a: &Argument| {
            a.text.contains("://") || a.text.starts_with("s3://") || a.text.starts_with("gs://")
        };
        let fetches = FETCHER_NAMES.contains(program)
            || match program {
                "git" => arguments.iter().any(|a| a.text.starts_with("--remote")),
                "aws" | "gsutil" | "gcloud" | "rclone" | "az" | "mc" | "s3cmd" => {
                    arguments.iter().any(|a| matches!(a.text.as_str(), "cp" | "cat" | "copy"))
                        && arguments.iter().any(is_remote)
                }
                "gh" => arguments.iter().any(|a| matches!(a.text.as_str(), "api" | "gist")),
                "openssl" => arguments.first().is_some_and(|a| a.text == "s_client"),
                "certutil" | "bitsadmin" => arguments.iter().any(is_remote),
                "busybox" => false,
                "python" | "python3" | "perl" | "ruby" | "node" | "php" => {
                    arguments.iter().any(|a| a.text.contains("http://") || a.text.contains("https://"))
                }
                "bash" | "sh" => false,
                _ => false,
            };
        if !fetches {
            return None;
        }
        let host = arguments.iter().find(|a| is_remote(a)).or_else(|| {
            arguments.iter().rev().find(|a| !a.text.starts_with('-') && a.text.contains(['.', HOLE, ':']))
        });
        Some(host.or(arguments.last()).map(|a| a.text.clone()).unwrap_or_default())
    }

    /// Remembers files that a program writes with content that is known to be from somewhere.
    fn remember_files(&mut self, program: &str, argv: &[Argument]) {
        let arguments = &argv[1..];
        match program {
            "mkfifo" => {
                for path in arguments.iter().filter(|a| !a.text.starts_with('-')) {
                    let path = self.spelled(path);
                    self.files.write(&path, Content::Pipe, false);
                }
            }
            "mknod" => {
                if let [path, kind, ..] = arguments
                    && kind.text == "p"
                {
                    let path = self.spelled(path);
                    self.files.write(&path, Content::Pipe, false);
                }
            }
            // The clipboard, by any of its programs.
            "xclip" | "xsel" | "pbcopy" | "wl-copy" | "clip" => {
                let prints = arguments.iter().any(|a| matches!(a.text.as_str(), "-o" | "-out" | "--output"));
                let input = self.io.stdin.input.clone();
                if !prints && input != Input::None {
                    self.files.make(CLIPBOARD, &input.carried());
                }
            }
            "tee" | "sponge" => {
                let input = self.io.stdin.input.clone();
                let append = arguments.iter().any(|a| matches!(a.text.as_str(), "-a" | "--append"));
                for path in arguments.iter().filter(|a| !a.text.starts_with('-')) {
                    let path = self.spelled(path);
                    self.note_written(&path, &input);
                    self.files.write(&path, Content::Data(input.clone()), append);
                }
            }
            "cp" | "mv" | "install" | "ln" => self.copy_files(arguments),
            "dd" => {
                let operand =
                    |key: &str| arguments.iter().find_map(|a| a.text.strip_prefix(key).map(str::to_owned));
                let (from, to) = (operand("if="), operand("of="));
                if let Some(to) = to {
                    let from = Argument::constant(from.unwrap_or_else(|| "-".to_owned()), 0..0);
                    let input = self.file_input(&from);
                    let to = self.spelled(&Argument::constant(to, 0..0));
                    if !matches!(input, Input::File(_) | Input::None) {
                        self.files.write(&to, Content::Data(input), false);
                    }
                }
            }
            "base64" | "xxd" | "openssl" | "gunzip" | "gzip" | "sed" | "unzip" | "tar" | "bunzip2"
            | "unxz" => {
                self.transform_files(program, arguments);
            }
            _ => {
                if let Some(from) = self.fetches(program, argv) {
                    for path in saved_to(program, argv).into_iter().flatten() {
                        let path = self.spelled(&path);
                        self.files.write(&path, Content::Data(Input::Network(from.clone())), false);
                    }
                }
            }
        }
    }

    fn copy_files(&mut self, arguments: &[Argument]) {
        let reads_stdin = arguments.iter().any(|a| a.text == "/dev/stdin");
        if self.files.is_empty() && !reads_stdin {
            return;
        }
        let operands: Vec<&Argument> = arguments.iter().filter(|a| !a.text.starts_with('-')).collect();
        let Some((to, sources)) = operands.split_last() else { return };
        let to_path = self.spelled(to);
        for from in sources {
            if from.text == "/dev/stdin" {
                let input = self.io.stdin.input.clone();
                self.files.write(&to_path, Content::Data(input), false);
                continue;
            }
            let from_path = self.spelled(from);
            self.files.copy(&from_path, &to_path);
            let inside = format!("{}/{}", to_path.trim_end_matches('/'), names::base_name(&from_path));
            self.files.copy(&from_path, &inside);
        }
    }

    /// A file made of another one that came from the network is from the network.
    fn transform_files(&mut self, program: &str, arguments: &[Argument]) {
        let out =
            arguments.iter().position(|a| a.text == "-out").and_then(|at| arguments.get(at + 1)).cloned();
        if let Some(out) = out {
            let source =
                arguments.iter().position(|a| a.text == "-in").and_then(|at| arguments.get(at + 1)).cloned();
            let input = match source {
                Some(source) => self.file_input(&source),
                None => self.io.stdin.input.clone(),
            };
            let text = super::io::text_of(&input, &out.span);
            let content = match self.filter_text(program, arguments, &text) {
                Some(text) => input_of(text),
                None => Input::Output(program.to_owned(), text.carried),
            };
            let path = self.spelled(&out);
            self.files.write(&path, Content::Data(content), false);
            return;
        }
        if self.files.is_empty() {
            return;
        }
        // `gunzip x.gz` leaves `x`.
        for path in arguments.iter().filter(|a| !a.text.starts_with('-')) {
            let from = self.spelled(path);
            for suffix in [".gz", ".bz2", ".xz", ".Z"] {
                if let Some(to) = from.strip_suffix(suffix) {
                    self.files.copy(&from, to);
                }
            }
        }
    }

    /// Notes programs that talk to another host, for the pipeline to judge.
    pub(super) fn network(&mut self, program: &str, argv: &[Argument], _span: &Range<usize>) {
        let arguments = &argv[1..];
        let has = |letter: char| {
            arguments
                .iter()
                .any(|a| a.text.starts_with('-') && !a.text.starts_with("--") && a.text.contains(letter))
        };
        let connects = match program {
            "nc" | "ncat" | "netcat" | "nc.traditional" | "nc.openbsd" | "cryptcat" | "sbd" | "telnet"
            | "pwncat" => !has('z'),
            "socat" | "rcat" | "websocat" => true,
            "openssl" => {
                arguments.first().is_some_and(|a| matches!(a.text.as_str(), "s_client" | "s_server"))
            }
            "curl" => arguments.iter().any(|a| a.text.starts_with("telnet://")),
            "ztcp" => true,
            _ => false,
        };
        if !connects || arguments.is_empty() {
            return;
        }
        let listens = match program {
            "socat" => arguments.iter().any(|a| a.text.to_ascii_uppercase().contains("LISTEN:")),
            "openssl" => arguments[0].text == "s_server",
            "telnet" | "curl" | "ztcp" | "websocat" => false,
            _ => has('l') || arguments.iter().any(|a| a.text == "--listen"),
        };
        let operands: Vec<&str> = arguments
            .iter()
            .map(|a| a.text.as_str())
            .filter(|text| !text.starts_with('-') && *text != "s_client")
            .collect();
        let host: Arc<str> = Arc::from(operands.join(":"));
        if program == "ztcp" {
            // The connection is the descriptor that `$REPLY` names.
            let mut descriptors = (*self.io.descriptors).clone();
            descriptors.push(("12".to_owned(), super::io::Channel::Socket(Arc::clone(&host))));
            self.io.descriptors = Rc::new(descriptors);
            self.scope.set_text("REPLY", Argument::constant("12", 0..0));
            return;
        }
        self.facts.connection = Some((host, listens));
    }
}

/// Whether a program prints all variables there are.
fn prints_environment(program: &str, arguments: &[Argument]) -> bool {
    let lists = |flags: &[&str]| arguments.iter().all(|a| flags.contains(&a.text.as_str()));
    match program {
        "printenv" => lists(&["-0", "--null"]),
        "set" => arguments.is_empty(),
        "export" | "declare" | "typeset" => lists(&["-p", "-x", "-xp", "-px"]),
        // `ps eww`: what every process was started with.
        "ps" => arguments.first().is_some_and(|a| !a.text.starts_with('-') && a.text.contains('e')),
        "cat" | "strings" | "xxd" | "base64" => {
            arguments.iter().any(|a| a.text.starts_with("/proc/") && a.text.ends_with("/environ"))
        }
        _ => false,
    }
}

fn line(argument: &Argument) -> Argument {
    let mut line = argument.clone();
    line.text.push('\n');
    line
}

fn seq(arguments: &[Argument]) -> Option<Argument> {
    let numbers: Vec<i64> = arguments.iter().map(|a| a.text.parse().ok()).collect::<Option<_>>()?;
    let (from, step, to) = match numbers.as_slice() {
        [to] => (1, 1, *to),
        [from, to] => (*from, 1, *to),
        [from, step, to] => (*from, *step, *to),
        _ => return None,
    };
    if step == 0 || to.abs_diff(from) / step.unsigned_abs() > 256 {
        return None;
    }
    let mut text = String::new();
    let mut value = from;
    while (step > 0 && value <= to) || (step < 0 && value >= to) {
        text.push_str(&format!("{value}\n"));
        value = value.checked_add(step)?;
    }
    Some(Argument::constant(text, 0..0))
}

/// Files that a fetcher saves to; `None` when it prints.
fn saved_to(program: &str, argv: &[Argument]) -> Option<Vec<Argument>> {
    let arguments = &argv[1..];
    if matches!(program, "certutil" | "bitsadmin") {
        return Some(arguments.last().filter(|a| !a.text.contains("://")).into_iter().cloned().collect());
    }
    let mut files = Vec::new();
    let mut folder: Option<&Argument> = None;
    let mut by_name = matches!(program, "wget" | "wget2" | "aria2c" | "axel");
    let (file_options, folder_options): (&[&str], &[&str]) = match program {
        "curl" | "curlie" => (&["-o", "--output"], &["--output-dir"]),
        "wget" | "wget2" => (&["-O", "--output-document"], &["-P", "--directory-prefix"]),
        "aria2c" => (&["-o", "--out"], &["-d", "--dir"]),
        "axel" | "fetch" | "http" | "https" | "xh" => (&["-o", "--output"], &[]),
        _ => return None,
    };
    let short_file = file_options[0].as_bytes()[1];
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        at += 1;
        let text = argument.text.as_str();
        if let Some((name, value)) = text.split_once('=').filter(|_| text.starts_with("--")) {
            if file_options.contains(&name) {
                files.push(argument.with_text(value.to_owned()));
            }
            continue;
        }
        if folder_options.contains(&text) {
            folder = arguments.get(at);
            at += 1;
        } else if file_options.contains(&text) {
            files.extend(arguments.get(at).cloned());
            at += 1;
        } else if text.starts_with('-') && !text.starts_with("--") {
            // A cluster such as `-qO-`, `-sSLo file` or `-LO`.
            if let Some(found) = text.bytes().position(|b| b == short_file).filter(|_| is_cluster(text)) {
                let attached = &text[found + 1..];
                if attached.is_empty() {
                    files.extend(arguments.get(at).cloned());
                    at += 1;
                } else {
                    files.push(argument.with_text(attached.to_owned()));
                }
            }
            by_name |= program == "curl" && text.contains('O') && is_cluster(text);
        } else if matches!(
            text,
            "--remote-name" | "--remote-name-all" | "--download" | "--remote-header-name"
        ) {
            by_name = true;
        }
    }
    if files.is_empty() && by_name {
        for url in arguments.iter().filter(|a| !a.text.starts_with('-') && a.text.contains(['/', '.'])) {
            let path = url.text.split(['?', '#']).next().unwrap_or_default();
            let after_host = path.split_once("://").map_or(path, |(_, rest)| rest);
            let name = if after_host.contains('/') { names::base_name(after_host) } else { "index.html" };
            files.push(url.with_text(name.to_owned()));
        }
    }
    // Each of curl's `-o` is for one address; what is left over is printed.
    let is_printed = matches!(program, "curl" | "curlie") && !by_name && addresses(arguments) > files.len();
    if files.is_empty()
        || is_printed
        || files.iter().any(|file| matches!(file.text.as_str(), "-" | "/dev/stdout" | "/dev/fd/1"))
    {
        return None;
    }
    if let Some(folder) = folder {
        for file in &mut files {
            if !file.text.starts_with('/') {
                file.text = format!("{}/{}", folder.text.trim_end_matches('/'), file.text);
            }
        }
    }
    Some(files)
}

/// How many addresses curl is to fetch: those that are no value of an option.
fn addresses(arguments: &[Argument]) -> usize {
    let is_flag = |text: &str| {
        text.strip_prefix('-').is_none_or(|flags| flags.bytes().all(|b| b"fsSLkgqvi46#NRJ".contains(&b)))
    };
    let follows_value = |at: usize| at == 0 || is_flag(&arguments[at - 1].text);
    let is_address = |text: &str| ["http://", "https://", "ftp://"].iter().any(|one| text.starts_with(one));
    arguments.iter().enumerate().filter(|(at, one)| is_address(&one.text) && follows_value(*at)).count()
}

/// Whether a word is a cluster of short options, not a value such as `-H'Name: x'`.
fn is_cluster(text: &str) -> bool {
    text.len() <= 12 || text.contains('/')
}
