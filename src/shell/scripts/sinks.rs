//! What calls do: processes, files, the network, code that is made at run time.

use super::super::argument::{Argument, HOLE};
use super::super::effect::{EffectKind, Target, TargetKind};
use super::super::programs::{Attributes, Language};
use super::actions::{Action, action};
use super::evaluate::{Arguments, Evaluator};
use super::tell;
use super::value::Value;

fn argument(evaluator: &Evaluator<'_, '_>, value: &Value) -> Argument {
    Argument::constant(value.to_text(), evaluator.text.span.clone())
}

fn target(value: &Value, kind: TargetKind) -> Target {
    let text = value.to_text();
    let has_glob = kind == TargetKind::Path && text.contains('*');
    Target { text, has_glob, kind }
}

/// A path as effects name it; `glob` patterns count.
fn path(value: &Value) -> Option<Target> {
    let text = value.to_text();
    let text = text.strip_prefix("file://").unwrap_or(&text);
    let has_glob = text.contains('*');
    Some(Target { text: text.to_owned(), has_glob, kind: TargetKind::Path })
}

/// A text run by a shell.
pub(super) fn shell(evaluator: &mut Evaluator<'_, '_>, command: &Value, via: &'static str) {
    evaluator.facts.spawns = true;
    match command {
        Value::Text(text) => {
            let first = text.split_whitespace().next().unwrap_or_default();
            if is_shell(first) && !text.contains(" -c") {
                evaluator.facts.shell = true;
            }
            tell_decoded(evaluator, text);
            if text.chars().all(|c| c == HOLE) {
                evaluator.facts.unknown = true;
            } else {
                let script = argument(evaluator, command);
                evaluator.sink.script(Language::Shell, &script, via);
            }
        }
        Value::List(list) => run(evaluator, list, via),
        _ => evaluate(evaluator, command),
    }
}

fn is_shell(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    matches!(
        name,
        "sh" | "bash"
            | "zsh"
            | "dash"
            | "ksh"
            | "ash"
            | "fish"
            | "csh"
            | "cmd.exe"
            | "powershell.exe"
            | "cmd"
            | "powershell"
    )
}

/// A program with its arguments.
fn run(evaluator: &mut Evaluator<'_, '_>, words: &[Value], via: &'static str) {
    evaluator.facts.spawns = true;
    let mut argv: Vec<Argument> = Vec::with_capacity(words.len());
    for word in words {
        match word {
            // What a pattern stands for, put among the words: `[*glob("*")]`.
            Value::List(list) => argv.extend(list.iter().map(|one| {
                let mut one = argument(evaluator, one);
                one.has_glob = one.text.contains('*');
                one
            })),
            word => argv.push(argument(evaluator, word)),
        }
    }
    let Some(program) = argv.first() else { return };
    if is_shell(&program.text) && !argv.iter().any(|a| a.text.starts_with("-c") || a.text == "/c") {
        evaluator.facts.shell = true;
    }
    if program.is_unknown() {
        evaluator.facts.unknown = true;
    } else {
        evaluator.sink.run(&argv, via);
    }
}

/// Code from the network that is run.
fn tell_fetched(evaluator: &mut Evaluator<'_, '_>, url: String) {
    let target = Target { text: url, has_glob: false, kind: TargetKind::Network };
    tell(evaluator.sink, EffectKind::FetchAndExecute, Some(target), "script");
}

/// Code that is made at run time.
pub(super) fn evaluate(evaluator: &mut Evaluator<'_, '_>, code: &Value) {
    let fetched = evaluator.facts.fetched.clone();
    match code {
        // Filled where this reading does not follow it: by a callback that collects what comes, for instance.
        Value::Text(text) if text.trim().is_empty() => match fetched {
            Some(url) => tell_fetched(evaluator, url),
            None => evaluator.facts.evaluates = true,
        },
        Value::Text(text) if !text.contains(HOLE) => {
            let text = text.clone();
            tell_decoded(evaluator, &text);
            evaluator.nested(&text);
        }
        Value::Fetched(url) => tell_fetched(evaluator, url.clone()),
        Value::Opaque => tell(evaluator.sink, EffectKind::OpaqueExecution, None, "script"),
        _ => {
            evaluator.facts.unknown = true;
            evaluator.facts.evaluates |= fetched.is_none();
            if let Some(url) = fetched {
                tell_fetched(evaluator, url);
            } else if decodes(evaluator) {
                tell(evaluator.sink, EffectKind::OpaqueExecution, None, "b64decode");
            } else {
                evaluator.sink.unknown_command();
            }
        }
    }
}

/// Tells that a text is run which does not stand in a script that decodes: it came out of the decoder.
fn tell_decoded(evaluator: &mut Evaluator<'_, '_>, text: &str) {
    if text.len() > 1 && !evaluator.text.text.contains(text) && super::decodes(&evaluator.text.text) {
        evaluator.sink.decoded();
    }
}

/// Whether a script makes text out of what cannot be read.
fn decodes(evaluator: &Evaluator<'_, '_>) -> bool {
    const DECODERS: &[&str] = &[
        "b64decode",
        "b32decode",
        "a85decode",
        "unhexlify",
        "fromhex",
        "decompress(",
        "marshal.loads",
        "atob(",
        "base64_decode",
        "decode_base64",
        "decode64",
        "gzinflate",
        "str_rot13",
    ];
    DECODERS.iter().any(|decoder| evaluator.text.text.contains(decoder))
}

fn via(language: Language) -> &'static str {
    match language {
        Language::Python => "python",
        Language::Perl => "perl",
        Language::Ruby => "ruby",
        Language::JavaScript => "javascript",
        Language::Php => "php",
        Language::Lua => "lua",
        Language::Awk => "awk",
        Language::PowerShell => "powershell",
        Language::Shell => "shell",
    }
}

/// A call of a function by its full name.
pub(super) fn call(evaluator: &mut Evaluator<'_, '_>, name: &str, arguments: &Arguments) -> Value {
    // A socket's methods: `s.connect((host, port))`.
    if let Some(method) = name.strip_prefix("<socket>.") {
        return socket(evaluator, method, arguments);
    }
    let Some(action) = action(evaluator.language, name) else {
        return unknown_function(evaluator, name, arguments);
    };
    let via = via(evaluator.language);
    let first = arguments.first();
    match action {
        Action::Run => run_call(evaluator, arguments, via),
        Action::Program => {
            let mut words = vec![first];
            match arguments.get(1, &["args"]) {
                Some(Value::List(list)) if name.contains("os.") => words = list_of(&words[0], list, true),
                Some(Value::List(list)) => words.extend(list.iter().cloned()),
                // Go's `exec.Command("rm", "-rf", path)`.
                Some(Value::Text(_)) if name.starts_with("exec.") => {
                    words.extend(arguments.positional[1..].iter().cloned());
                }
                _ => words.extend(
                    arguments
                        .named
                        .iter()
                        .filter(|(n, _)| n == "args")
                        .flat_map(|(_, v)| v.elements().to_vec()),
                ),
            }
            if let [Value::Text(text)] = words.as_slice()
                && text.contains(' ')
            {
                let command = words[0].clone();
                shell(evaluator, &command, via);
            } else {
                run(evaluator, &words, via);
            }
            Value::Unknown
        }
        Action::Exec => {
            let words = list_of(&first, arguments.positional.get(1..).unwrap_or_default(), true);
            run(evaluator, &words, via);
            Value::Unknown
        }
        Action::Spawn => {
            let program = arguments.positional.get(1).cloned().unwrap_or_default();
            let rest: Vec<Value> = arguments
                .positional
                .get(2..)
                .unwrap_or_default()
                .iter()
                .flat_map(|v| v.elements().to_vec())
                .collect();
            let words = list_of(&program, &rest, true);
            run(evaluator, &words, via);
            Value::Unknown
        }
        Action::Evaluate => {
            let code = arguments.positional.last().cloned().unwrap_or_default();
            evaluate(evaluator, &code);
            Value::Unknown
        }
        Action::Connect | Action::Socket | Action::Listen | Action::Redirect => {
            network(evaluator, action, arguments)
        }
        Action::Fetch | Action::FetchTo | Action::Send => fetch(evaluator, action, arguments),
        Action::Stop => {
            tell(evaluator.sink, EffectKind::StopSystem, None, name);
            Value::Unknown
        }
        _ => file(evaluator, action, name, arguments),
    }
}

/// A program and its arguments, of which the first may be the program's own name again.
fn list_of(program: &Value, arguments: &[Value], skips_name: bool) -> Vec<Value> {
    let mut words = vec![program.clone()];
    words.extend(arguments.iter().skip(usize::from(skips_name)).cloned());
    words
}

fn run_call(evaluator: &mut Evaluator<'_, '_>, arguments: &Arguments, via: &'static str) -> Value {
    let mut words: Vec<Value> = arguments.positional.clone();
    // Ruby's `spawn({env}, "cmd")`, Python's `args=`, Deno's `cmd:`.
    if words.is_empty() {
        words.extend(arguments.get(usize::MAX, &["args", "cmd", "command"]).cloned());
    }
    // A descriptor that is a connection: `spawn("sh", [:in, :out] => socket)`, `proc_open(sh, [$s, $s], $p)`.
    let joined = |v: &Value| matches!(v, Value::Name(name) if name == "<socket>");
    if words.iter().flat_map(Value::elements).any(joined) || arguments.named.iter().any(|(_, v)| joined(v)) {
        evaluator.facts.redirects = true;
    }
    let first = words.first().cloned().unwrap_or_default();
    match (evaluator.language, &first) {
        (_, Value::List(list)) => {
            let list = list.clone();
            // With `shell=True` only the first is the script.
            if arguments.has("shell") && list.len() == 1 {
                shell(evaluator, &list[0], via);
            } else {
                run(evaluator, &list, via);
            }
        }
        // Perl's and Ruby's `system("rm", "-rf", path)` has no shell.
        (Language::Perl | Language::Ruby, Value::Text(_))
            if words.len() > 1 && matches!(words[1], Value::Text(_)) =>
        {
            run(evaluator, &words, via);
        }
        _ => shell(evaluator, &first, via),
    }
    Value::Unknown
}

fn network(evaluator: &mut Evaluator<'_, '_>, action: Action, arguments: &Arguments) -> Value {
    match action {
        Action::Connect => {
            let named = arguments.named.iter().any(|(name, _)| name == "LocalPort" || name == "Listen");
            if named {
                evaluator.facts.listens = true;
            } else {
                let host = arguments
                    .positional
                    .iter()
                    .chain(arguments.named.iter().map(|(_, v)| v))
                    .flat_map(Value::elements)
                    .find_map(|v| v.known().filter(|t| t.contains('.')))
                    .unwrap_or_default();
                evaluator.facts.connects = Some(host.to_owned());
            }
            Value::Name("<socket>".to_owned())
        }
        Action::Listen => {
            evaluator.facts.listens = true;
            Value::Name("<socket>".to_owned())
        }
        Action::Redirect => {
            evaluator.facts.redirects = true;
            Value::Unknown
        }
        _ => Value::Name("<socket>".to_owned()),
    }
}

fn socket(evaluator: &mut Evaluator<'_, '_>, method: &str, arguments: &Arguments) -> Value {
    match method {
        "connect" | "connect_ex" => network(evaluator, Action::Connect, arguments),
        "bind" | "listen" | "accept" => network(evaluator, Action::Listen, arguments),
        "recv" | "read" | "gets" | "receive" | "readline" | "recvfrom" => Value::Unknown,
        "makefile" => Value::Name("<socket>".to_owned()),
        _ => Value::Unknown,
    }
}

fn fetch(evaluator: &mut Evaluator<'_, '_>, action: Action, arguments: &Arguments) -> Value {
    let first = arguments.get(0, &["url"]).cloned().unwrap_or_default();
    let url = if action == Action::Fetch
        && arguments.positional.len() > 1
        && first.known().is_some_and(|t| !t.contains("://"))
    {
        arguments.positional[1].clone()
    } else {
        first
    };
    let text = url.to_text();
    evaluator.facts.fetched = Some(text.clone());
    let sent: Vec<&Value> = arguments
        .named
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), "data" | "json" | "files" | "body" | "params"))
        .map(|(_, value)| value)
        .chain(arguments.positional.get(1..).unwrap_or_default().iter().filter(|_| action == Action::Send))
        .flat_map(Value::elements)
        .collect();
    let sends_environment =
        sent.iter().any(|v| matches!(v, Value::Name(name) if super::functions::is_environment(name)));
    let files: Vec<Value> = sent
        .into_iter()
        .filter(|v| matches!(v, Value::Name(n) if n.starts_with("<file>")))
        .cloned()
        .collect();
    let host = Target { text: text.clone(), has_glob: false, kind: TargetKind::Network };
    if sends_environment {
        let all = Target { text: "environment".to_owned(), has_glob: false, kind: TargetKind::Name };
        tell(evaluator.sink, EffectKind::SendData, Some(all), "script");
    }
    for file in files {
        if let Value::Name(name) = file {
            let path = Value::Text(name.trim_start_matches("<file>").to_owned());
            tell(evaluator.sink, EffectKind::SendData, Some(target(&path, TargetKind::Path)), "script");
        }
    }
    tell(evaluator.sink, EffectKind::Fetch, Some(host), if action == Action::Send { "request" } else { "" });
    if action == Action::FetchTo
        && let Some(file) = arguments.get(1, &["filename"])
    {
        tell(evaluator.sink, EffectKind::WritePath, path(file), "download");
    }
    Value::Fetched(text)
}

fn file(evaluator: &mut Evaluator<'_, '_>, action: Action, name: &str, arguments: &Arguments) -> Value {
    let first = arguments.get(0, &["path", "file"]).cloned().unwrap_or_default();
    let second = arguments.get(1, &[]);
    match action {
        Action::DeleteTree => delete(evaluator, &arguments.positional, true, true),
        Action::Delete => {
            let recursive =
                arguments.named.iter().any(|(name, value)| name == "recursive" && *value != Value::Number(0));
            // JavaScript's options stand in braces, whose names come as names of the call.
            delete(evaluator, &arguments.positional, recursive, arguments.has("force"));
        }
        Action::Read => {
            if let Some(url) = first.known().filter(|t| t.starts_with("http")) {
                let url = url.to_owned();
                evaluator.facts.fetched = Some(url.clone());
                return Value::Fetched(url);
            }
            if first.known() == Some("php://input") || first.known() == Some("php://stdin") {
                return Value::Opaque;
            }
            tell(evaluator.sink, EffectKind::ReadPath, path(&first), "");
            return content(&first);
        }
        Action::Write => tell(evaluator.sink, EffectKind::WritePath, path(&first), ""),
        Action::Open => return open(evaluator, arguments),
        Action::Copy | Action::Move => {
            let links = name.contains("link") || name.contains("ln_s");
            tell(evaluator.sink, EffectKind::ReadPath, path(&first), if links { "link" } else { "copy" });
            if action == Action::Move {
                let attributes = Attributes { recursive: true, forced: false, detail: "move".to_owned() };
                evaluator.sink.effect(EffectKind::DeletePath, path(&first), attributes);
            }
            if let Some(destination) = second {
                tell(
                    evaluator.sink,
                    EffectKind::WritePath,
                    path(destination),
                    if links { "link" } else { "copy" },
                );
            }
        }
        Action::Mode => mode(evaluator, second, &first, false),
        Action::ModeFirst => {
            if let Some(paths) = second {
                for one in paths.elements() {
                    mode(evaluator, Some(&first), one, name.ends_with("_R"));
                }
            }
        }
        Action::Owner => tell(
            evaluator.sink,
            EffectKind::ChangeOwner,
            path(&first),
            &second.map_or(String::new(), Value::to_text),
        ),
        _ => {}
    }
    Value::Unknown
}

/// The content of a file that was read.
fn content(path: &Value) -> Value {
    match path {
        Value::Text(text) => Value::Name(format!("<file>{text}")),
        _ => Value::Unknown,
    }
}

fn mode(evaluator: &mut Evaluator<'_, '_>, mode: Option<&Value>, file: &Value, recursive: bool) {
    let text = match mode {
        Some(Value::Number(number)) => format!("{number:o}"),
        Some(value) => value.to_text(),
        None => return,
    };
    let attributes = Attributes { recursive, forced: false, detail: text.to_ascii_lowercase() };
    evaluator.sink.effect(EffectKind::ChangeMode, path(file), attributes);
}

fn delete(evaluator: &mut Evaluator<'_, '_>, paths: &[Value], recursive: bool, forced: bool) {
    for value in paths.iter().flat_map(Value::elements) {
        // Whatever a folder holds, one after the other.
        let listed =
            matches!(value, Value::Text(text) if text.strip_suffix(HOLE).is_some_and(|t| t.ends_with('/')));
        let deep = matches!(value, Value::Text(text) if text.contains("**"));
        let recursive = recursive || listed || deep;
        if matches!(value, Value::Text(_) | Value::Unknown) {
            let attributes = Attributes { recursive, forced, detail: String::new() };
            evaluator.sink.effect(EffectKind::DeletePath, path(value), attributes);
        }
    }
}

/// `open(path, mode)` and the forms of Perl, where the mode may be part of the path and a pipe runs a command.
fn open(evaluator: &mut Evaluator<'_, '_>, arguments: &Arguments) -> Value {
    if evaluator.language == Language::Perl {
        return perl_open(evaluator, arguments);
    }
    let file = arguments.get(0, &["file"]).cloned().unwrap_or_default();
    if let Some(text) = file.known() {
        if text.starts_with("http://") || text.starts_with("https://") {
            evaluator.facts.fetched = Some(text.to_owned());
            return Value::Fetched(text.to_owned());
        }
        // Ruby's `open("| command")`.
        if let Some(command) = text.strip_prefix('|').filter(|_| evaluator.language == Language::Ruby) {
            let command = Value::Text(command.to_owned());
            shell(evaluator, &command, "ruby");
            return Value::Unknown;
        }
    }
    let mode = arguments.get(1, &["mode"]).map_or(String::new(), Value::to_text);
    let writes = mode.contains(['w', 'a', 'x', '+']);
    let kind = if writes { EffectKind::WritePath } else { EffectKind::ReadPath };
    if matches!(file, Value::Text(_)) {
        let detail = if writes && mode.contains('a') { "append" } else { "" };
        tell(evaluator.sink, kind, path(&file), detail);
    }
    if writes { Value::Unknown } else { content(&file) }
}

fn perl_open(evaluator: &mut Evaluator<'_, '_>, arguments: &Arguments) -> Value {
    let texts: Vec<String> = arguments.positional.iter().skip(1).map(Value::to_text).collect();
    let (mode, rest) = match texts.as_slice() {
        [both] => {
            let trimmed = both.trim();
            if trimmed.starts_with(">&") || trimmed.starts_with("<&") {
                evaluator.facts.redirects = true;
                return Value::Unknown;
            }
            if let Some(command) = trimmed.strip_suffix('|').or_else(|| trimmed.strip_prefix('|')) {
                let command = Value::Text(command.trim().to_owned());
                shell(evaluator, &command, "perl");
                return Value::Unknown;
            }
            let mode: String = trimmed.chars().take_while(|c| matches!(c, '<' | '>' | '+')).collect();
            (mode.clone(), trimmed[mode.len()..].trim().to_owned())
        }
        [mode, path, rest @ ..] if mode.contains('|') || mode == "-|" => {
            let mut words = vec![Value::Text(path.clone())];
            words.extend(rest.iter().cloned().map(Value::Text));
            if rest.is_empty() {
                shell(evaluator, &words[0], "perl");
            } else {
                run(evaluator, &words, "perl");
            }
            return Value::Unknown;
        }
        [mode, path, ..] => {
            if mode.contains('&') {
                evaluator.facts.redirects = true;
                return Value::Unknown;
            }
            (mode.clone(), path.clone())
        }
        [] => return Value::Unknown,
    };
    let kind = if mode.contains('>') { EffectKind::WritePath } else { EffectKind::ReadPath };
    if !rest.is_empty() && !rest.starts_with(HOLE) {
        tell(evaluator.sink, kind, path(&Value::Text(rest)), "");
    }
    Value::Unknown
}

/// Functions that are not in the table and still matter.
fn unknown_function(evaluator: &mut Evaluator<'_, '_>, name: &str, arguments: &Arguments) -> Value {
    let language = evaluator.language;
    match (language, name) {
        // PHP's `chmod(path, mode)`, Perl's `chmod mode, paths`.
        (Language::Php, "chmod") => {
            let file = arguments.first();
            mode(evaluator, arguments.get(1, &[]), &file, false);
        }
        (Language::Perl, "chmod") => {
            let first = arguments.first();
            for file in arguments.positional.iter().skip(1) {
                mode(evaluator, Some(&first), file, false);
            }
        }
        (_, "compile") => return arguments.first(),
        _ => {}
    }
    // What is read from a file or connection stays that.
    if let Some(path) = name.strip_prefix("<file>") {
        let path = path.split(['(', '\n']).next().unwrap_or_default();
        let path = [".read", ".readlines", ".decode", ".text", ".strip", ".to_s", ".toString", ".readline"]
            .iter()
            .fold(path.to_owned(), |path, method| path.strip_suffix(method).unwrap_or(&path).to_owned());
        return Value::Name(format!("<file>{path}"));
    }
    Value::Unknown
}

/// A method of a value, such as `Path("x").unlink()`.
pub(super) fn method(
    evaluator: &mut Evaluator<'_, '_>,
    value: &Value,
    name: &str,
    arguments: &Arguments,
) -> Value {
    match (value, name) {
        (Value::Text(_), "unlink" | "rmdir" | "delete!") | (Value::Text(_), "delete") => {
            delete(evaluator, std::slice::from_ref(value), false, false)
        }
        (Value::Text(_), "rmtree") => delete(evaluator, std::slice::from_ref(value), true, true),
        (Value::Text(_), "read_text" | "read_bytes" | "readlines") | (Value::Text(_), "read") => {
            if let Some(url) = value.known().filter(|t| t.starts_with("http")) {
                evaluator.facts.fetched = Some(url.to_owned());
                return Value::Fetched(url.to_owned());
            }
            tell(evaluator.sink, EffectKind::ReadPath, path(value), "");
            return content(value);
        }
        (Value::Text(_), "write_text" | "write_bytes") => {
            tell(evaluator.sink, EffectKind::WritePath, path(value), "")
        }
        (Value::Text(text), "open") if evaluator.language == Language::Ruby && text.starts_with("http") => {
            evaluator.facts.fetched = Some(text.clone());
            return Value::Fetched(text.clone());
        }
        (Value::Text(_), "open") => {
            let mut all = Arguments { positional: vec![value.clone()], named: Vec::new() };
            all.positional.extend(arguments.positional.iter().cloned());
            return open(evaluator, &all);
        }
        (Value::Text(_), "chmod") => mode(evaluator, arguments.get(0, &["mode"]), value, false),
        (Value::Text(_), "rename" | "replace" | "symlink_to") => {
            if let Some(destination) = arguments.get(0, &["target"]) {
                tell(evaluator.sink, EffectKind::WritePath, path(destination), "move");
            }
        }
        (_, "connect")
            if matches!(arguments.first(), Value::List(_)) || evaluator.language == Language::Lua =>
        {
            evaluator.facts.connects = Some(
                arguments.first().elements().first().map_or(String::new(), Value::to_text).replace(HOLE, ""),
            );
        }
        (Value::Unknown, "reopen" | "fdopen") => evaluator.facts.redirects = true,
        (Value::Unknown, "pipe") => evaluator.facts.redirects = true,
        (Value::Unknown, "accept") => evaluator.facts.listens = true,
        (Value::Unknown, "exec" | "execSync") if evaluator.language == Language::JavaScript => {
            // `re.exec(text)` is a search; a child process takes a text that looks like a command.
        }
        _ => {}
    }
    Value::Unknown
}
