//! Facts judged: a call with its name, arguments and taints against the rules, and what becomes of the hits.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::call::Arguments;
use super::follow::Walk;
use super::library::variable_taint;
use super::taint::Taint;
use super::value::{HOLE, Shape, Value};
use super::worker;
use crate::bundles::rules::{CallCondition, Matcher};
use crate::decision::{Capability, CheckFinding, Severity};
use crate::text::line_of;

/// Levels of text that is run as code inside text that is run as code.
const DEPTH_MAX: usize = 4;
/// Texts of one file that are looked at as code or as commands.
pub(super) const TEXTS_MAX: usize = 400;
/// Findings of one file.
const FINDINGS_MAX: usize = 200;
/// Most findings of one rule and severity in one file.
const PER_RULE_MAX: usize = 20;
/// Capabilities of one file.
const CAPABILITIES_MAX: usize = 100;

/// A rule that held for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hit {
    pub at: u32,
    pub rule: usize,
}

impl Walk<'_> {
    /// Judges one call.
    pub fn record(&mut self, name: &str, arguments: &Arguments, at: u32, callee: Taint) {
        if self.is_apart() {
            return;
        }
        let rules = self.context.rules;
        let mut classes: BTreeSet<&str> = BTreeSet::new();
        for api in rules.apis_of(name) {
            classes.insert(&api.class);
            self.seen.insert(api.class.clone());
            if !api.capability.is_empty() {
                self.able(&api.capability, name, arguments, at);
            }
        }
        if classes.is_empty() {
            return;
        }
        if ["load_code", "load_path", "import_by_name", "evaluate"]
            .iter()
            .any(|class| classes.contains(class))
        {
            self.load(arguments, at);
        }
        if classes.contains("shell") || classes.contains("argv") {
            self.run_process(name, arguments, at);
        }
        let is_shell = classes.contains("shell")
            || classes.contains("argv")
                && option(arguments, "shell").and_then(Value::is_truthy) == Some(true);
        if is_shell && argument(arguments, 0).is_some_and(is_blind) {
            self.record("process.unknown_command", &[], at, Taint::NONE);
        }
        if classes.contains("evaluate") {
            for code in codes(arguments) {
                self.look_at_code(&code, at, "text that is run as code");
            }
        }
        if is_own_address(name, arguments) {
            return;
        }
        let targets = std::iter::once(name).chain(classes.iter().copied());
        let mut wanted: Vec<usize> = targets.flat_map(|target| rules.rules_on(target)).copied().collect();
        wanted.sort_unstable();
        wanted.dedup();
        for index in wanted {
            let Matcher::Call(condition) = &rules.rules()[index].matcher else { continue };
            if self.holds(condition, arguments, callee) {
                self.hits.push(Hit { at: self.placed_at(at), rule: index });
            }
        }
    }

    fn holds(&self, condition: &CallCondition, arguments: &Arguments, callee: Taint) -> bool {
        let is_hidden = callee.meets(Taint::HIDDEN) || self.doubled > 0;
        if condition.is_hidden.is_some_and(|wanted| wanted != is_hidden) {
            return false;
        }
        if !condition.files.is_empty() {
            let name = self.context.path.rsplit('/').next().unwrap_or_default();
            if !condition.files.iter().any(|file| file == name) {
                return false;
            }
        }
        for (keyword, wanted) in &condition.keywords {
            let is_named = arguments.iter().any(|(name, _)| name.as_deref() == Some(keyword));
            // With words of its own beside it, what is given first is a program and not all of a command.
            let has_words = argument(arguments, 1).is_some_and(|words| match &words.shape {
                Shape::List(words) => !words.is_empty(),
                Shape::Map(_) => false,
                _ => true,
            });
            let is_set = option(arguments, keyword).is_some_and(|value| is_as_wanted(value, wanted));
            if !is_set || (!is_named && has_words) {
                return false;
            }
        }
        let looked: Vec<&Value> = match condition.argument {
            Some(nth) => argument(arguments, nth).into_iter().collect(),
            None => arguments.iter().map(|(_, value)| value).collect(),
        };
        let bodies: Vec<Value>;
        let looked = match condition.is_body {
            true => {
                bodies = arguments.iter().filter_map(|(name, value)| sent(name.as_deref(), value)).collect();
                bodies.iter().collect()
            }
            false => looked,
        };
        if condition.is_query_secret && !is_query_secret(arguments) {
            return false;
        }
        if condition.is_foreign_secret && !self.is_foreign(&looked) {
            return false;
        }
        let taint = looked.iter().fold(Taint::NONE, |all, value| all | data_taint(value));
        // A plain file goes to whom the user named.
        let is_own = arguments.first().is_some_and(|(_, address)| has_own_token(address));
        let taint = if is_own { taint.without(Taint::FILE) } else { taint };
        if !condition.taints.is_none() && (taint & condition.taints).count() < condition.taints_min.max(1) {
            return false;
        }
        if (!condition.and_taints.is_none() && !taint.meets(condition.and_taints))
            || taint.meets(condition.not_taints)
        {
            return false;
        }
        if condition.text.is_none() && condition.not_text.is_none() {
            return true;
        }
        let mut text = String::new();
        looked.iter().for_each(|value| value.all_text(&mut text, 4));
        condition.text.as_ref().is_none_or(|pattern| pattern.is_match(&text))
            && !condition.not_text.as_ref().is_some_and(|pattern| pattern.is_match(&text))
    }

    /// Whether a secret of one service goes to a host of another.
    fn is_foreign(&self, looked: &[&Value]) -> bool {
        let mut text = String::new();
        looked.iter().for_each(|value| value.all_text(&mut text, 4));
        let Some((_, rest)) = text.split_once("://") else { return false };
        let host: String = rest.chars().take_while(|c| !matches!(c, '/' | '?' | '\n' | ' ' | '#')).collect();
        let host = host.to_ascii_lowercase();
        if host.is_empty() || host.contains('\0') {
            return false;
        }
        let is_variable = |line: &&str| {
            line.len() > 3 && line.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        };
        text.lines().filter(is_variable).any(|name| {
            let provider = self.context.rules.provider_of(name);
            provider.is_some_and(|provider| !provider.hosts.iter().any(|own| host.contains(&**own)))
        })
    }

    /// Looks at text that is run as code as if it stood in the file.
    pub fn look_at_code(&mut self, code: &Rc<str>, at: u32, what: &str) {
        if code.len() < 4 || self.looked_at.contains(&(code.clone(), true)) {
            return;
        }
        // What is not looked at here is not known, and the steps at their end say so.
        if self.context.depth >= DEPTH_MAX || self.looked_at.len() >= TEXTS_MAX {
            self.steps = 0;
            return;
        }
        self.looked_at.insert((code.clone(), true));
        self.step(200);
        let (depth, effort) = (self.context.depth + 1, super::Effort::Usual);
        let context = super::Context { depth, effort, ..self.context };
        let report = worker::run(self.language, code, context);
        let line = self.line(at);
        for finding in report.findings {
            let reason = format!("{} (in {what})", finding.reason);
            self.inner.push(CheckFinding { line, reason, ..finding });
        }
        for capability in report.capabilities {
            self.capabilities.insert(Capability { line, ..capability });
        }
    }

    /// 1-based line of a byte.
    pub fn line(&self, at: u32) -> u32 {
        if self.context.depth > 0 {
            return 1;
        }
        let at = (self.placed_at(at) as usize).min(self.text.len());
        u32::try_from(self.lines.partition_point(|start| *start <= at)).unwrap_or(u32::MAX)
    }

    fn able(&mut self, kind: &str, name: &str, arguments: &Arguments, at: u32) {
        if self.capabilities.len() >= CAPABILITIES_MAX {
            return;
        }
        let detail = detail(kind, name, arguments);
        let (file, line) = (self.context.path.to_owned(), self.line(at));
        self.capabilities.insert(Capability { kind: kind.to_owned(), file, line, detail });
    }

    /// Findings by line, each rule once a line, and capabilities.
    pub fn report(mut self) -> (Vec<CheckFinding>, Vec<Capability>) {
        let mut findings = std::mem::take(&mut self.inner);
        let mut hits = std::mem::take(&mut self.hits);
        hits.sort_unstable();
        hits.dedup();
        let rules = self.context.rules;
        for hit in hits {
            let rule = &rules.rules()[hit.rule];
            let Matcher::Call(condition) = &rule.matcher else { continue };
            let seen = |class: &String| self.seen.contains(class);
            if !condition.with.iter().all(seen) || condition.without.iter().any(seen) {
                continue;
            }
            findings.push(CheckFinding {
                rule_id: rule.id.clone(),
                file: self.context.path.to_owned(),
                line: self.line(hit.at),
                category: rule.category.to_string(),
                severity: rule.severity,
                reason: rule.description.clone(),
                snippet: self.snippet(hit.at),
                fix_hint: rule.fix.clone(),
                ..CheckFinding::default()
            });
        }
        findings.sort_by(|a, b| (a.line, &a.rule_id).cmp(&(b.line, &b.rule_id)));
        findings.dedup_by(|a, b| a.line == b.line && a.rule_id == b.rule_id);
        // One rule, which a policy may excuse, must not crowd out another.
        let mut of_rule: HashMap<(String, Severity), usize> = HashMap::new();
        findings.retain(|finding| {
            let count = of_rule.entry((finding.rule_id.clone(), finding.severity)).or_default();
            *count += 1;
            *count <= PER_RULE_MAX
        });
        if findings.len() > FINDINGS_MAX {
            // The worst are kept, then brought to the order of lines again.
            findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
            findings.truncate(FINDINGS_MAX);
            findings.sort_by(|a, b| (a.line, &a.rule_id).cmp(&(b.line, &b.rule_id)));
        }
        (findings, self.capabilities.into_iter().collect())
    }

    /// The line in question.
    pub fn snippet(&self, at: u32) -> String {
        let at = (self.placed_at(at) as usize).min(self.text.len());
        let at = (0..=at).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(0);
        let start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.text[start..].lines().next().unwrap_or_default();
        // In a long line the place itself counts.
        let from = if at - start > 100 { at - 20 } else { start };
        let from = (0..=from).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(start).max(start);
        masked(line.get(from - start..).unwrap_or(line).trim(), 160)
    }
}

/// Text for a report: shortened, control characters gone, and what looks like a secret masked.
pub(super) fn masked(text: &str, chars_max: usize) -> String {
    let mut out = String::new();
    let mut word = String::new();
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '_' | '-' | '=');
    let flush = |word: &mut String, out: &mut String| {
        let has = |test: fn(&u8) -> bool| word.bytes().any(|byte| test(&byte));
        let is_secret = word.len() >= 20 && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
        if is_secret {
            out.push_str(&word[..4]);
            out.push('…');
        } else {
            out.push_str(word);
        }
        word.clear();
    };
    for c in text.chars().take(chars_max) {
        if is_word(c) {
            word.push(c);
        } else {
            flush(&mut word, &mut out);
            out.push(if c.is_control() { ' ' } else { c });
        }
    }
    flush(&mut word, &mut out);
    if text.chars().nth(chars_max).is_some() {
        out.push('…');
    }
    out
}

/// What exactly a call can do, for a person.
fn detail(kind: &str, name: &str, arguments: &Arguments) -> String {
    let mut text = String::new();
    arguments.iter().take(2).for_each(|(_, value)| value.all_text(&mut text, 3));
    let host = || {
        let start = text.find("://")? + 3;
        let host: String =
            text[start..].chars().take_while(|c| !matches!(c, '/' | '?' | '\n' | '\0' | ' ')).collect();
        (!host.is_empty()).then_some(host)
    };
    let detail = match kind {
        "network" => host(),
        _ => text.lines().next().filter(|line| !line.is_empty()).map(|line| line.replace('\0', "…")),
    };
    masked(&detail.unwrap_or_else(|| name.trim_start_matches("*.").to_owned()), 80)
}

/// Where the lines of a text begin.
pub(super) fn lines(text: &str) -> Vec<usize> {
    debug_assert_eq!(line_of(text, 0), 1);
    std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|newline| newline + 1)).collect()
}

/// Whether nothing at all is known of a command: neither a piece of it nor where it comes from.
fn is_blind(command: &Value) -> bool {
    match &command.shape {
        Shape::Text(text) => text.chars().all(|c| c == HOLE) && command.taint.is_none(),
        Shape::Unknown | Shape::Api(_) | Shape::Method(_) | Shape::Object(_) => {
            command.deep_taint().is_none()
        }
        _ => false,
    }
}

/// Whether a page asks the server that it came from: nothing goes to another machine.
fn is_own_address(name: &str, arguments: &Arguments) -> bool {
    let address = arguments.first().and_then(|(_, address)| address.as_text());
    name == "fetch"
        && address.is_some_and(|address| address.starts_with(['/', '.']) && !address.starts_with("//"))
}

/// Texts among arguments that may be code, what is not known in them standing as a name.
fn codes(arguments: &Arguments) -> Vec<Rc<str>> {
    /// Texts of one call.
    const CODES_MAX: usize = 4;
    let choices = arguments.iter().rev().flat_map(|(_, value)| match &value.shape {
        Shape::Any(choices) => choices.iter().collect(),
        _ => vec![value],
    });
    let texts = choices.filter_map(Value::as_text).filter(|text| text.chars().any(|c| c != HOLE));
    texts.take(CODES_MAX).map(|text| Rc::from(text.replace(HOLE, "_"))).collect()
}

/// Addresses of services whose path holds the caller's own token: it says who sends, and is no data.
const OWN_TOKENS: &[&str] = &[
    "https://api.telegram.org/bot",
    "https://discord.com/api/webhooks/",
    "https://discordapp.com/api/webhooks/",
    "https://hooks.slack.com/services/",
];

/// Whether an address is that of a service with the caller's own token in its path, which the caller sets.
fn has_own_token(value: &Value) -> bool {
    let Shape::Text(text) = &value.shape else { return false };
    let rest = OWN_TOKENS.iter().find_map(|start| text.strip_prefix(start));
    rest.is_some_and(|rest| rest.starts_with(HOLE) && !rest.contains('?'))
}

/// The taint of an argument as data: the token in the path of an address is none.
fn data_taint(value: &Value) -> Taint {
    let taint = value.deep_taint();
    if has_own_token(value) { taint.without(Taint::SECRET_VARIABLE | Taint::VARIABLE) } else { taint }
}

/// What the first parameters of functions that run, fetch or look up something are called.
const FIRST: &[&str] = &[
    "args",
    "cmd",
    "command",
    "commands",
    "code",
    "source",
    "object",
    "popenargs",
    "url",
    "host",
    "hostname",
    "path",
    "path1",
    "file",
    "filename",
    "name",
    "expression",
    "string",
];

/// The argument of a function at a place, given without or with its name.
pub(super) fn argument(arguments: &Arguments, nth: usize) -> Option<&Value> {
    let mut unnamed = arguments.iter().filter(|(name, _)| name.is_none()).map(|(_, value)| value);
    let named = |wanted: &&str| arguments.iter().find(|(name, _)| name.as_deref() == Some(wanted));
    match unnamed.nth(nth) {
        Some(value) => Some(value),
        None if nth == 0 => FIRST.iter().find_map(named).map(|(_, value)| value),
        None => None,
    }
}

/// An option of a call: an argument of that name, or an entry of a map of options.
pub(super) fn option<'v>(arguments: &'v Arguments, name: &str) -> Option<&'v Value> {
    let named = arguments.iter().find(|(given, _)| given.as_deref() == Some(name)).map(|(_, value)| value);
    named.or_else(|| {
        let unnamed = arguments.iter().skip(1).filter(|(name, _)| name.is_none());
        unnamed.filter_map(|(_, value)| value.entry(name)).next_back()
    })
}

/// Whether an option is set as a rule wants it: by its truth, or by its text.
fn is_as_wanted(value: &Value, wanted: &str) -> bool {
    let is_any = |wanted: bool| match &value.shape {
        Shape::Any(choices) => choices.iter().any(|choice| choice.is_truthy() == Some(wanted)),
        _ => value.is_truthy() == Some(wanted),
    };
    match wanted {
        "true" => is_any(true),
        "false" => is_any(false),
        wanted => {
            let mut text = String::new();
            value.all_text(&mut text, 2);
            text.eq_ignore_ascii_case(wanted)
        }
    }
}

/// Names of arguments and entries by which a caller says who it is, and which are not data.
const IDENTITY: &[&str] = &["auth", "cookies", "cert", "authorization", "env"];

/// What is a secret wherever it goes.
const SECRET: Taint =
    Taint::union(&[Taint::SECRET_VARIABLE, Taint::CREDENTIALS, Taint::KEYCHAIN, Taint::ENVIRONMENT]);

/// What an argument sends as data: without what says who the caller is.
fn sent(name: Option<&str>, value: &Value) -> Option<Value> {
    match name.map(str::to_ascii_lowercase).as_deref() {
        Some(name) if IDENTITY.contains(&name) => None,
        Some("headers") => headers(value),
        _ => Some(body(value, 3)),
    }
}

/// The headers that are data: those that are not called like one with a credential in it. What is not known has none.
fn headers(value: &Value) -> Option<Value> {
    let Shape::Map(entries) = &value.shape else { return None };
    let is_credential = |name: &str| {
        let name = name.to_ascii_lowercase();
        [
            "auth",
            "key",
            "token",
            "secret",
            "cookie",
            "signature",
            "session",
            "agent",
            "credential",
            "password",
        ]
        .iter()
        .any(|word| name.contains(word))
    };
    // By its name and version a program is told, not by a secret.
    let is_program = |name: &str, value: &Value| {
        name.eq_ignore_ascii_case("user-agent") && value.deep_taint().meets(SECRET)
    };
    let is_data = |(name, value): &&(Rc<str>, Value)| !is_credential(name) || is_program(name, value);
    let kept: Vec<_> = entries.iter().filter(is_data).cloned().collect();
    Some(Value::of(Shape::Map(Rc::new(kept))))
}

/// A value without what it carries to say who the caller is.
fn body(value: &Value, depth: usize) -> Value {
    match &value.shape {
        Shape::Map(entries) if depth > 0 => {
            let kept = entries.iter().filter_map(|(name, value)| {
                let lower = name.to_ascii_lowercase();
                match lower.as_str() {
                    known if IDENTITY.contains(&known) => None,
                    "headers" => Some((name.clone(), headers(value)?)),
                    _ => Some((name.clone(), body(value, depth - 1))),
                }
            });
            Value { shape: Shape::Map(Rc::new(kept.collect())), ..value.clone() }
        }
        _ => value.clone(),
    }
}

/// Whether the query of an address carries a secret of the environment under a name that no service asks for one by.
fn is_query_secret(arguments: &Arguments) -> bool {
    let is_secret = |value: &Value| {
        value.about.as_deref().is_some_and(|name| variable_taint(name).meets(Taint::SECRET_VARIABLE))
            && value.deep_taint().meets(Taint::SECRET_VARIABLE)
    };
    let in_address = argument(arguments, 0).is_some_and(|address| {
        let Some(text) = address.as_text().filter(|_| is_secret(address)) else { return false };
        let Some((_, query)) = text.split_once('?') else { return false };
        let mut filled = query.split('&').filter(|part| part.contains(HOLE)).peekable();
        filled.peek().is_some()
            && filled.all(|part| part.split_once('=').is_none_or(|(name, _)| !is_credential_name(name)))
    });
    let params = option(arguments, "params").or_else(|| option(arguments, "query"));
    let in_params = params.is_some_and(|params| match &params.shape {
        Shape::Map(entries) => {
            entries.iter().any(|(name, value)| is_secret(value) && !is_credential_name(name))
        }
        _ => false,
    });
    in_address || in_params
}

/// Whether a service may ask for a credential by a parameter of this name.
fn is_credential_name(name: &str) -> bool {
    /// Parts of such names, and short ones that are such names as a whole.
    const PARTS: &[&str] = &[
        "key", "token", "auth", "secret", "appid", "app_id", "client", "pass", "pwd", "sign", "user",
        "login", "licen", "cred", "session", "account",
    ];
    const NAMES: &[&str] = &["sig", "sid", "ak", "sk", "pw", "code", "id", "apikey", "cookie", "jwt", "pat"];
    let name = name.to_ascii_lowercase();
    name.contains(HOLE) || NAMES.contains(&&*name) || PARTS.iter().any(|part| name.contains(part))
}
