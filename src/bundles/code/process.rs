//! Commands that the code runs, judged by the rules about commands.

use std::rc::Rc;

use super::Language;
use super::call::Arguments;
use super::follow::Walk;
use super::judge::{TEXTS_MAX, argument, option};
use super::places::PLACE;
use super::taint::Taint;
use super::value::{HOLE, Shape, Value};
use crate::bundles::rules::CommandKind;
use crate::commands::GuardContext;
use crate::decision::{CheckFinding, Severity};
use crate::shell::effect::EffectKind;
use crate::shell::limits::Limits;
use crate::shell::programs::Language as InlineLanguage;

/// How far a command in code is analysed: it is one of many.
pub(super) const LIMITS: Limits =
    Limits { bytes_max: 1 << 16, nesting_max: 60, depth_max: 6, steps_max: 20_000, is_whole: false };
/// Stands in a command for what is not known.
const UNKNOWN: &str = "$PIECE_THAT_IS_NOT_KNOWN";

/// Programs that run or install a file they are given, by how their names begin.
const RUNNERS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "dash",
    "ksh",
    "python",
    "node",
    "perl",
    "ruby",
    "chmod",
    "cmd",
    "powershell",
    "pwsh",
    "open",
    "msiexec",
    "dpkg",
    "rpm",
    "installer",
    "wine",
    "java",
    "rundll32",
    "regsvr32",
    "deno",
    "bun",
    "php",
    "wscript",
    "cscript",
    "mshta",
];

/// What an effect is called in a report, and whether it may block: what a person can also want of a tool that works on
/// repositories, containers and clouds only warns.
fn meaning(kind: EffectKind) -> (&'static str, bool) {
    match kind {
        EffectKind::FetchAndExecute | EffectKind::OpaqueExecution | EffectKind::SuspiciousWrapper => {
            ("download_execute", true)
        }
        EffectKind::ReverseShell | EffectKind::BindShell => ("reverse_shell", true),
        EffectKind::DeletePath | EffectKind::RawDiskWrite | EffectKind::ForkBomb => ("destructive", true),
        EffectKind::ReadPath | EffectKind::RevealSecret | EffectKind::SearchFiles => {
            ("credential_access", false)
        }
        EffectKind::SendData => ("exfiltration", true),
        EffectKind::Persist | EffectKind::WritePath => ("persistence", true),
        EffectKind::DisableProtection | EffectKind::EscapeSandbox | EffectKind::ChangeKernel => {
            ("privilege", true)
        }
        EffectKind::ChangeAccount | EffectKind::ChangeMode | EffectKind::ChangeOwner => ("privilege", false),
        _ => ("shell_command", false),
    }
}

impl Walk<'_> {
    /// Judges what a call of a function runs.
    pub fn run_process(&mut self, name: &str, arguments: &Arguments, at: u32) {
        let function = name.rsplit('.').next().unwrap_or_default();
        let unnamed: Vec<&Value> =
            arguments.iter().filter(|(name, _)| name.is_none()).map(|(_, v)| v).collect();
        let skip: usize = match function {
            "execl" | "execlp" | "execle" | "execlpe" | "execv" | "execvp" | "execve" | "execvpe" => 1,
            "posix_spawn" | "posix_spawnp" => 1,
            "spawnl" | "spawnlp" | "spawnle" | "spawnv" | "spawnvp" | "spawnve" => 2,
            _ => 0,
        };
        // The program itself stands before the words that it is given.
        if let Some(program) = skip.checked_sub(1).and_then(|nth| unnamed.get(nth)?.as_text()) {
            self.note_downloaded(&program, at);
        }
        let rest = unnamed.get(skip..).unwrap_or_default();
        let Some(first) = rest.first().copied().or_else(|| argument(arguments, 0)) else {
            return;
        };
        // `Bun.spawn({ cmd: […] })`, `Deno.run({ cmd: […] })`: all of it is one map.
        let first = match &first.shape {
            Shape::Map(_) => {
                match ["cmd", "command", "file", "args"].iter().find_map(|name| first.entry(name)) {
                    Some(words) => words,
                    None => return,
                }
            }
            _ => first,
        };
        let is_shell = option(arguments, "shell").and_then(Value::is_truthy) == Some(true);
        if let Shape::Any(choices) = &first.shape {
            for choice in choices.iter() {
                let mut given: Vec<_> = arguments.to_vec();
                match given.iter_mut().filter(|(name, _)| name.is_none()).nth(skip) {
                    Some(place) => place.1 = choice.clone(),
                    None => given.insert(0, (None, choice.clone())),
                }
                self.run_process(name, &given, at);
            }
            return;
        }
        match &first.shape {
            // Of a list that a shell is given, only the first is the command.
            Shape::List(words) if is_shell && self.language == Language::Python => {
                match words.first().and_then(Value::as_text) {
                    Some(command) => self.run_command(&command, at),
                    None => self.run_words(words, at),
                }
            }
            Shape::List(words) => self.run_words(words, at),
            Shape::Text(_) | Shape::Bytes(_) => {
                let more: Vec<Value> = match rest.get(1).map(|value| &value.shape) {
                    Some(Shape::List(words)) => words.to_vec(),
                    Some(Shape::Map(_)) if function == "Command" => {
                        let words = rest.get(1).and_then(|options| options.entry("args"));
                        words.and_then(Value::as_list).unwrap_or_default().to_vec()
                    }
                    _ if skip > 0 || function == "create_subprocess_exec" => {
                        rest.get(1..).unwrap_or_default().iter().map(|value| (*value).clone()).collect()
                    }
                    _ => Vec::new(),
                };
                match first.as_text() {
                    Some(command) if more.is_empty() => self.run_command(&command, at),
                    // What a shell is given as words, it reads as one line.
                    Some(program) if is_shell => {
                        let words = std::iter::once(program).chain(more.iter().map(Value::piece));
                        let line = words.collect::<Vec<_>>().join(" ");
                        self.run_command(&Rc::from(line), at);
                    }
                    Some(_) => {
                        let mut words = vec![first.clone()];
                        words.extend(more);
                        self.run_words(&words, at);
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }

    /// The shell that a call starts to wait for commands; `None` for other programs.
    pub fn interpreter(&self, path: &str, arguments: &Arguments) -> Option<Rc<str>> {
        if !self.context.rules.apis_of(path).any(|api| matches!(&*api.class, "shell" | "argv")) {
            return None;
        }
        let first = argument(arguments, 0)?;
        let program = match first.as_list() {
            Some(words) => words.first()?.known_text()?,
            None => first.known_text()?,
        };
        let name = program.trim().rsplit('/').next().unwrap_or_default();
        matches!(name, "sh" | "bash" | "zsh" | "dash" | "ksh").then(|| Rc::from("sh"))
    }

    /// Whether a call starts an interpreter that reads its program from its input.
    fn reads_program(&self, path: &str, arguments: &Arguments) -> bool {
        if !self.context.rules.apis_of(path).any(|api| matches!(&*api.class, "shell" | "argv")) {
            return false;
        }
        let Some(first) = argument(arguments, 0) else { return false };
        let words: Vec<Rc<str>> = match first.as_list() {
            Some(words) => words.iter().filter_map(Value::known_text).collect(),
            None => first.known_text().iter().flat_map(|text| text.split(' ')).map(Rc::from).collect(),
        };
        let Some((program, rest)) = words.split_first() else { return false };
        let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
        let name = name.trim_end_matches(".exe").trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is_shell = self.interpreter(path, arguments).is_some();
        let is_interpreter = ["python", "node", "perl", "ruby", "php", "deno", "bun", "powershell", "pwsh"];
        // With a script or a command of its own it reads data.
        let has_none = rest
            .iter()
            .all(|word| &**word == "-" || word.starts_with('-') && !word.contains(['c', 'e', 'm', 'f']));
        (is_shell || is_interpreter.contains(&name)) && has_none
    }

    /// Text that is put into a shell which was started, or which is started with it.
    pub fn told_to_shell(&mut self, path: &str, callee: &Value, arguments: &Arguments, at: u32) {
        let name = path.rsplit('.').next().unwrap_or_default();
        let is_put = matches!(name, "communicate" | "write" | "end" | "writelines")
            && callee.about.as_deref() == Some("sh")
            && (name == "communicate" || path.contains(".stdin."));
        let text = match is_put {
            true => arguments.first().map(|(_, value)| value),
            false if self.interpreter(path, arguments).is_some() => option(arguments, "input"),
            false => None,
        };
        // What came from the network is read as a program.
        let is_remote = |value: &Value| value.deep_taint().meets(Taint::NETWORK);
        let is_fed = match is_put {
            true => text.is_some_and(is_remote),
            false => {
                let given = ["input", "stdin"].iter().filter_map(|name| option(arguments, name));
                given.into_iter().any(is_remote) && self.reads_program(path, arguments)
            }
        };
        if is_fed {
            self.record("file.run_downloaded", &[(None, Value::text("\0"))], at, Taint::NONE);
        }
        let text = match text.map(|value| (value, value.as_list())) {
            Some((_, Some(lines))) => {
                Some(Rc::from(lines.iter().map(Value::piece).collect::<Vec<_>>().join("\n")))
            }
            Some((value, None)) => value.as_text(),
            None => None,
        };
        if let Some(text) = text {
            self.run_command(&text, at);
        }
    }

    /// Judges what stands in a file that a command runs, where the code wrote it.
    fn run_written(&mut self, command: &str, at: u32) {
        let texts: Vec<Rc<str>> = self
            .written
            .iter()
            .filter(|(file, _)| file.len() > 3 && command.contains(&**file))
            .map(|(_, text)| text.clone())
            .collect();
        for text in texts {
            self.judge_command(&Rc::from(text.replace('\0', UNKNOWN)), at);
        }
    }

    /// Whether a command, with its unknown pieces, names a file that something from the network was written to.
    fn note_downloaded(&mut self, command: &str, at: u32) {
        // The program itself, or what an interpreter or installer is given.
        let mut words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'', '&']));
        let Some(program) = words.find(|word| !matches!(*word, "sudo" | "nohup" | "start" | "exec")) else {
            return;
        };
        let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
        let is_runner = RUNNERS.iter().any(|runner| name.trim_end_matches(".exe").starts_with(runner));
        let is_named = |file: &&Rc<str>| {
            file.bytes().filter(u8::is_ascii_alphanumeric).count() > 3
                && if is_runner { command.contains(&***file) } else { program.contains(&***file) }
        };
        if is_runner || self.written.iter().any(|(file, _)| is_named(&file)) {
            self.run_written(command, at);
        }
        let downloaded = self.kept.iter().filter(|(_, taint)| taint.meets(Taint::NETWORK));
        if downloaded.map(|(file, _)| file).any(|file| is_named(&file)) {
            self.record("file.run_downloaded", &[(None, Value::text(command))], at, Taint::NONE);
        }
    }

    /// Judges a command given as a vector.
    pub fn run_words(&mut self, words: &[Value], at: u32) {
        let pieces: Vec<Rc<str>> = words.iter().take(200).map(Value::piece).collect();
        self.note_downloaded(&pieces.join(" "), at);
        let quoted = |value: &Value| {
            let piece = value.piece();
            let parts: Vec<String> =
                piece.split('\0').map(|part| format!("'{}'", part.replace('\'', "'\\''"))).collect();
            parts.join(&format!("\"{UNKNOWN}\""))
        };
        let command = words.iter().take(200).map(quoted).collect::<Vec<_>>().join(" ");
        self.judge_command(&Rc::from(command), at);
    }

    fn run_command(&mut self, command: &Rc<str>, at: u32) {
        self.note_downloaded(command, at);
        let command = &self.with_variables(command);
        if command.trim_matches(|c: char| c == '\0' || c.is_whitespace()).is_empty() {
            return;
        }
        self.judge_command(&Rc::from(command.replace('\0', UNKNOWN)), at);
    }

    /// A command after the variables that the code gave to the environment, where it uses them.
    fn with_variables(&self, command: &Rc<str>) -> Rc<str> {
        if self.patched.is_empty() || !command.contains('$') {
            return command.clone();
        }
        let mut out = String::new();
        for (name, value) in &self.patched {
            let variable = name.strip_prefix("os.environ.").or_else(|| name.strip_prefix("process.env."));
            let Some((variable, text)) = variable.zip(value.known_text()) else { continue };
            let is_name = variable.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if is_name && command.contains(variable) && text.len() + out.len() < LIMITS.bytes_max / 4 {
                out.push_str(&format!("{variable}='{}'; ", text.replace('\'', "'\\''")));
            }
        }
        if out.is_empty() { command.clone() } else { Rc::from(out + command) }
    }

    /// Whether a command sends a file away that the code put credentials into.
    fn note_sent(&mut self, command: &str, at: u32) {
        let mut words = command.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
        let is_sender = words.any(|word| SENDERS.contains(&word.rsplit('/').next().unwrap_or(word)));
        let is_near = ["//localhost", "//127.0.0.1", "//[::1]"].iter().any(|host| command.contains(host));
        if !is_sender || is_near || !command.contains(['/', ':']) {
            return;
        }
        let secret = Taint::union(&[Taint::CREDENTIALS, Taint::KEYCHAIN, Taint::CHAT]);
        let is_named =
            |file: &str| file.bytes().filter(u8::is_ascii_alphanumeric).count() > 3 && command.contains(file);
        let sent = self.kept.iter().filter(|(file, _)| is_named(file));
        let taint = sent.fold(Taint::NONE, |all, (_, taint)| all | (*taint & secret));
        if !taint.is_none() {
            self.record("file.send", &[(None, Value::text(command).with(taint))], at, Taint::NONE);
        }
    }

    /// Whether a command publishes what lies in the project, after the code put credentials there.
    fn note_published(&mut self, command: &str, at: u32) {
        if !publishes(command) {
            return;
        }
        let is_inside = |file: &str| !file.starts_with(['/', '~']) && !file.contains(':');
        let secret = Taint::union(&[Taint::CREDENTIALS, Taint::KEYCHAIN, Taint::ENVIRONMENT]);
        if self.kept.iter().any(|(file, taint)| taint.meets(secret) && is_inside(file)) {
            self.record("file.publish_credentials", &[(None, Value::text(command))], at, Taint::NONE);
        }
    }

    pub fn judge_command(&mut self, command: &Rc<str>, at: u32) {
        self.note_published(command, at);
        self.note_sent(command, at);
        if self.looked_at.contains(&(command.clone(), false)) {
            self.note_printed(command, None);
            return;
        }
        if command.len() > LIMITS.bytes_max || self.looked_at.len() >= TEXTS_MAX {
            self.steps = 0;
            return;
        }
        self.looked_at.insert((command.clone(), false));
        self.step(20 + command.len() / 8);
        let analysis = crate::shell::analyse(command, PLACE, &LIMITS);
        let context = GuardContext { place: PLACE, workspace_roots: &[] };
        let printed = self.printed_by(command, &analysis);
        self.note_printed(command, Some(printed));
        if !analysis.decoded.is_empty() {
            self.record("file.run_decoded", &[(None, Value::text(command.clone()))], at, Taint::NONE);
        }
        for inline in &analysis.inline {
            let is_same = matches!(
                (self.language, inline.language),
                (Language::Python, InlineLanguage::Python)
                    | (Language::JavaScript, InlineLanguage::JavaScript)
            );
            if is_same {
                let code = Rc::from(inline.text.replace(HOLE, "_"));
                self.look_at_code(&code, at, "a script in a command");
            }
        }
        let mut found: Vec<CheckFinding> = Vec::new();
        for hit in self.context.commands.judge(&analysis, &context) {
            let (category, may_block) = meaning(analysis.effects[hit.effect].kind);
            let may_block =
                may_block && !self.context.rules.is_command(CommandKind::OfPrograms, &hit.rule.id);
            let severity =
                if may_block { hit.rule.severity } else { hit.rule.severity.min(Severity::Medium) };
            let finding = CheckFinding {
                rule_id: hit.rule.id.to_string(),
                file: self.context.path.to_owned(),
                line: self.line(at),
                category: category.to_owned(),
                severity,
                reason: format!("The code runs a command that is not safe: {}", hit.rule.description),
                snippet: self.snippet(at),
                fix_hint: hit.rule.recommendation.to_string(),
                ..CheckFinding::default()
            };
            if !found.iter().any(|known| known.rule_id == finding.rule_id) {
                found.push(finding);
            }
        }
        self.inner.extend(found);
    }
}

/// Programs and their words that publish what lies in the project: to a registry of packages, of images, of releases.
const PUBLISHING: &[(&str, &str)] = &[
    ("npm", "publish"),
    ("pnpm", "publish"),
    ("yarn", "publish"),
    ("bun", "publish"),
    ("cargo", "publish"),
    ("poetry", "publish"),
    ("uv", "publish"),
    ("flit", "publish"),
    ("hatch", "publish"),
    ("pdm", "publish"),
    ("vsce", "publish"),
    ("ovsx", "publish"),
    ("twine", "upload"),
    ("gem", "push"),
    ("docker", "push"),
    ("podman", "push"),
    ("helm", "push"),
    ("git", "push"),
    ("gh", "create"),
    ("gh", "upload"),
];

/// Programs that send a file which they are given to another machine.
const SENDERS: &[&str] = &[
    "curl", "wget", "scp", "rsync", "nc", "ncat", "sftp", "ftp", "lftp", "rclone", "http", "https", "xh",
    "aws", "gsutil", "gh", "croc", "wormhole",
];

/// Whether a command publishes something.
fn publishes(command: &str) -> bool {
    let is_end = |c: char| matches!(c, ';' | '&' | '|' | '\n');
    command.split(is_end).any(|part| {
        let mut words = part.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
        let name = words.find(|word| PUBLISHING.iter().any(|(program, _)| word == program));
        name.is_some_and(|name| {
            words
                .take(4)
                .any(|word| PUBLISHING.iter().any(|(program, verb)| *program == name && *verb == word))
        })
    })
}
