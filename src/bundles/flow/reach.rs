//! What functions of libraries do with the values that they are given, and what they answer.

use super::facts::Does;
use super::follow::{Follower, Reach, To};
use super::value::{FOREIGN, HOLE, PRIVATE, Source, Value, variable};

/// Programs that run another one, or a file of code.
const STARTERS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "dash",
    "sudo",
    "nohup",
    "env",
    "setsid",
    "start",
    "cmd",
    "cmd.exe",
    "powershell",
    "powershell.exe",
    "pwsh",
    "python",
    "python3",
    "perl",
    "ruby",
    "node",
    "php",
    "java",
    "-jar",
    "lua",
    "Rscript",
    "deno",
    "bun",
    "rundll32",
    "regsvr32",
    "mshta",
    "wscript",
    "cscript",
    "chmod",
    "+x",
    "open",
    "exec",
    "source",
    "-ExecutionPolicy",
    "Bypass",
    "-File",
];

/// Tokens from which a program is long.
const LONG: usize = 8_000;

impl Follower<'_> {
    pub(super) fn reached(&mut self, at: usize, value: &Value, to: To, beside: &str) {
        let at = self.tokens.get(at).map_or(0, |token| token.at);
        let is_sure = !value.origin.is_empty() || self.tokens.len() < LONG;
        let reach = Reach {
            at,
            from: value.from,
            to,
            origin: value.origin.clone(),
            beside: beside.to_owned(),
            is_sure,
        };
        if self.found.len() < 500 && !self.found.contains(&reach) {
            self.found.push(reach);
        }
    }

    /// What a function that something is known of answers; notes where its arguments go.
    pub(super) fn reach_of(
        &mut self,
        at: usize,
        parts: &[&str],
        arguments: &[Value],
        receiver: &Value,
    ) -> Option<Value> {
        let defs = self.does(parts);
        let mut all = Value::default();
        for (index, argument) in arguments.iter().enumerate() {
            if index > 0 {
                all.push(" ");
            }
            all.add(argument);
        }
        let lower = all.text.to_lowercase();
        let mut answer: Option<Value> = None;
        let first = arguments.first().cloned().unwrap_or_default();
        for def in defs {
            if !def.holds.is_empty() && !def.holds.iter().any(|text| lower.contains(text.as_str())) {
                continue;
            }
            let value = match def.does {
                Does::Fetch => Some(Value::unknown(
                    Source::FETCHED | all.from,
                    address(&all.text).unwrap_or(&receiver.origin),
                )),
                Does::Environment => Some(Value::unknown(Source::ENVIRONMENT, "")),
                // Without a name it answers all of them.
                Does::Variable if arguments.is_empty() => Some(Value::unknown(Source::ENVIRONMENT, "")),
                Does::Variable => Some(variable(&first.text)),
                Does::Request => Some(Value::unknown(Source::REQUEST, "")),
                Does::Spill => {
                    self.spilled = self.spilled | all.from;
                    None
                }
                Does::Home => Some(Value::of("~")),
                Does::Join => Some(joined(receiver, arguments)),
                Does::Same => {
                    let mut value = if is_unknown(receiver) { Value::default() } else { receiver.clone() };
                    for argument in arguments {
                        value.add(argument);
                    }
                    if value.text.is_empty() {
                        value.text.push(HOLE);
                    }
                    Some(value)
                }
                Does::Open => {
                    let mut value = if first.text.is_empty() { receiver.clone() } else { first.clone() };
                    self.note_secret(&mut value);
                    Some(value)
                }
                Does::Read => {
                    let mut value = if all.text.is_empty() || self.is_secret_text(&receiver.text) {
                        receiver.clone()
                    } else {
                        all.clone()
                    };
                    value.join(receiver);
                    self.note_secret(&mut value);
                    if let Some(address) = address(&value.text) {
                        value = Value::unknown(value.from | Source::FETCHED, address);
                    }
                    if self.fetched_files.contains_key(value.text.trim()) {
                        value.from = value.from | Source::FETCHED;
                    }
                    Some(value.carried())
                }
                Does::Write => {
                    let mut whole = all.clone();
                    whole.join(receiver);
                    if whole.from.meets(Source::FETCHED) {
                        self.note_files(arguments.iter().chain([receiver]), &whole.origin);
                    }
                    None
                }
                Does::Download => {
                    self.note_files(
                        arguments.iter().chain([receiver]),
                        address(&all.text).unwrap_or_default(),
                    );
                    Some(Value::unknown(Source::FETCHED, address(&all.text).unwrap_or_default()))
                }
                Does::Evaluate if def.argument.is_some() => {
                    let one = def.argument.and_then(|nth| arguments.get(nth));
                    if let Some(one) = one.filter(|one| one.is_foreign_command()) {
                        self.reached(at, one, To::Evaluate, &all.text);
                    }
                    None
                }
                Does::Evaluate => {
                    if all.from.meets(FOREIGN) {
                        self.reached(at, &all, To::Evaluate, &all.text);
                    }
                    None
                }
                Does::Include => {
                    if let Some(address) = address(&first.text) {
                        self.reached(at, &Value::unknown(Source::FETCHED, address), To::Evaluate, &all.text);
                    }
                    if first.from.meets(FOREIGN) && all.is_foreign_command() {
                        self.reached(at, &all, To::Evaluate, &all.text);
                    }
                    self.run_file(at, &first);
                    None
                }
                Does::Run | Does::Shell | Does::Argument => {
                    let takes_receiver = def.does == Does::Argument || arguments.is_empty();
                    let mut whole = if takes_receiver { receiver.clone() } else { Value::default() };
                    if !whole.text.is_empty() {
                        whole.push(" ");
                    }
                    whole.add(&all);
                    if whole.is_foreign_command() {
                        self.reached(at, &whole, To::Run, &whole.text);
                    }
                    self.run_file(at, &whole);
                    let mut answered = self.answered(&whole);
                    answered.text.clone_from(&whole.text);
                    Some(answered)
                }
                Does::Send | Does::SendOver => {
                    let is_there = def.does == Does::Send || receiver.from.meets(Source::FETCHED);
                    let mut sent = all.clone();
                    if def.does == Does::Send {
                        sent.join(receiver);
                    }
                    self.sends += usize::from(is_there);
                    if is_there && sent.from.meets(PRIVATE) {
                        let beside = format!("{} {}", receiver.text, all.text);
                        self.reached(at, &sent, To::Send, &beside);
                    }
                    None
                }
                Does::DeleteTree => {
                    let is_named = |value: &Value| is_home(value.text.trim());
                    if all.from.meets(Source::HOME) || arguments.iter().any(is_named) || is_named(&all) {
                        all.from = all.from | Source::HOME;
                        self.reached(at, &all, To::Delete, &all.text);
                    }
                    None
                }
                Does::Delete => {
                    if all.from.meets(Source::HOME) || receiver.from.meets(Source::HOME) {
                        all.from = all.from | Source::HOME;
                        self.reached(at, &all, To::Delete, &all.text);
                    }
                    None
                }
                Does::Walk => {
                    let folder = if all.text.trim().is_empty() { receiver } else { &first };
                    let is_all =
                        is_home(folder.text.trim().trim_end_matches(['*', '/', '.']).trim_end_matches('/'));
                    let value = Value::unknown(if is_all { Source::HOME } else { Source::NONE }, "");
                    let mut value = value;
                    let mut secret = folder.clone();
                    self.note_secret(&mut secret);
                    value.join(&secret);
                    Some(value.carried())
                }
                Does::Gather | Does::Into => None,
                Does::Clean => Some(Value { text: HOLE.to_string(), ..Value::default() }),
                Does::Plain => None,
            };
            match (&mut answer, value) {
                (None, value) => answer = value,
                (Some(answer), Some(value)) => answer.join(&value),
                (Some(_), None) => {}
            }
        }
        answer
    }

    /// What a command prints that a program runs, as far as its text says so.
    pub(super) fn answered(&self, command: &Value) -> Value {
        let lower = command.text.to_lowercase();
        let has = |names: &[&str]| {
            lower
                .split(|c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | '"' | '\''))
                .any(|word| names.contains(&word))
        };
        let mut from = command.from;
        if has(&["curl", "wget", "iwr", "irm", "invoke-webrequest", "invoke-restmethod"]) {
            from = from | Source::FETCHED;
        }
        let secret = lower
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'']))
            .find(|word| self.is_secret_text(word));
        if secret.is_some() {
            from = from | Source::SECRET;
        }
        if matches!(lower.trim(), "env" | "printenv" | "set" | "export") {
            from = from | Source::ENVIRONMENT;
        }
        Value::unknown(from, address(&command.text).or(secret).unwrap_or(&command.origin))
    }

    pub(super) fn is_secret_text(&self, text: &str) -> bool {
        let text = text.trim().to_lowercase().replace('\\', "/").replace(HOLE, "~");
        text.len() > 3 && text.contains(['/', '.']) && (self.world.is_secret)(&text)
    }

    pub(super) fn note_secret(&self, value: &mut Value) {
        if self.is_secret_text(&value.text) {
            value.from = value.from | Source::SECRET;
            if value.origin.is_empty() {
                value.origin.clone_from(&value.text);
            }
        }
    }

    pub(super) fn note_files<'v>(&mut self, values: impl Iterator<Item = &'v Value>, origin: &str) {
        let texts: Vec<String> = values.map(|value| value.text.trim().to_owned()).collect();
        let words =
            texts.iter().flat_map(|text| text.split_whitespace().filter(|word| word.len() < text.len()));
        for text in texts.iter().map(String::as_str).chain(words) {
            let is_path = text.len() > 2
                && text.len() < 200
                && text.contains(['/', '.', '\\'])
                && !text.contains("://")
                && text.chars().any(char::is_alphanumeric);
            if is_path
                && self.fetched_files.len() < 200
                && self.fetched_files.insert(text.to_owned(), origin.to_owned()).is_none()
            {
                self.is_changed = true;
            }
        }
    }

    /// A fetched file that is run: as the program, or by an interpreter as its first argument.
    pub(super) fn run_file(&mut self, at: usize, command: &Value) {
        let mut words = command
            .text
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'', HOLE]))
            .filter(|word| !word.is_empty());
        let mut left = 8;
        let ran = words.find(|word| {
            left -= 1;
            let is_idle = left > 0
                && (word.starts_with(['-', '/']) && word.len() < 4
                    || STARTERS.contains(&word.rsplit(['/', '\\']).next().unwrap_or(word)));
            self.fetched_files.contains_key(*word) || !is_idle
        });
        let known = ran
            .and_then(|word| self.fetched_files.get(word))
            .or_else(|| self.fetched_files.get(command.text.trim()));
        if let Some(origin) = known.cloned() {
            let mut value = command.clone();
            value.origin = origin;
            value.from = value.from | Source::FETCHED;
            let text = command.text.clone();
            self.reached(at, &value, To::RunFile, &text);
        }
    }
}

/// Whether nothing is known of a value: the name of a module, for one.
fn is_unknown(value: &Value) -> bool {
    value.from == Source::NONE && value.text.chars().all(|c| c == HOLE)
}

/// Parts of a path, put together.
fn joined(receiver: &Value, arguments: &[Value]) -> Value {
    let mut out = if is_unknown(receiver) { Value::default() } else { receiver.clone() };
    for argument in arguments {
        if !out.text.is_empty() && !out.text.ends_with('/') && !argument.text.starts_with('/') {
            out.push("/");
        }
        out.add(argument);
    }
    out
}

/// The address in a text.
fn address(text: &str) -> Option<&str> {
    let at = text.find("http://").or_else(|| text.find("https://")).or_else(|| text.find("ftp://"))?;
    let rest = &text[at..];
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// Whether a path is the home of a user, one of the folders in which people keep their things, or the whole machine.
fn is_home(path: &str) -> bool {
    let path = path.replace('\\', "/");
    let is_root = path.starts_with('/');
    let path = path.trim_end_matches(['/', '*']);
    let own = ["~/Documents", "~/Desktop", "~/Pictures", "~/Downloads", "/home", "/Users", "C:", "/root"];
    path == "~" || path.is_empty() && is_root || own.contains(&path)
}
