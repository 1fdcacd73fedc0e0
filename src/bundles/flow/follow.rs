//! Follows values through a program of any language: statements in their order, a few times over, so that what a function
//! answers and what it is given meet.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::facts::FlowFacts;
use super::language::Tongue;
use super::scopes::Scopes;
use super::token::{Kind, Token};
use super::value::{HOLE, Source, Value};

/// How often a program is gone through at most.
pub(super) const PASSES_MAX: usize = 4;
/// Looks at tokens for each token of a program, at most; a program of calls within calls needs many.
pub(super) const LOOKS_MAX: usize = 30;
/// How deep calls are followed within calls.
pub(super) const DEPTH_MAX: usize = 40;
/// Tokens of one statement that are looked at.
pub(super) const STATEMENT_MAX: usize = 4_000;

/// Somewhere that a value goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bundles) struct Reach {
    /// Where in the program.
    pub(in crate::bundles) at: usize,
    /// Where the value comes from.
    pub(in crate::bundles) from: Source,
    /// What is done with it.
    pub(in crate::bundles) to: To,
    /// The address or the path that it was read from.
    pub(in crate::bundles) origin: String,
    /// Texts that stand where it goes, such as the address that it is sent to.
    pub(in crate::bundles) beside: String,
    /// Whether it is this value for sure: in a long program names recur, and one that comes from an address that nobody wrote
    /// down may be another.
    pub(in crate::bundles) is_sure: bool,
}

/// What became of a program.
#[derive(Debug, Default)]
pub(in crate::bundles) struct Followed {
    /// Where values go, in the order of the text.
    pub(in crate::bundles) found: Vec<Reach>,
    /// Whether all of it was followed.
    pub(in crate::bundles) is_whole: bool,
    /// How many calls send something, whatever it is.
    pub(in crate::bundles) sends: usize,
    /// Looks at tokens that it took.
    pub(in crate::bundles) looks: usize,
}

/// What is done with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::bundles) enum To {
    /// It is evaluated as code.
    Evaluate,
    /// It is run as a command or a program.
    Run,
    /// It is a file that was fetched, and is run.
    RunFile,
    /// It is sent away.
    Send,
    /// It is deleted.
    Delete,
}

impl To {
    /// By name, as rules give it.
    pub(in crate::bundles) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "evaluate" => Self::Evaluate,
            "run" => Self::Run,
            "run_file" => Self::RunFile,
            "send" => Self::Send,
            "delete" => Self::Delete,
            _ => return None,
        })
    }
}

/// What is known outside of the program.
pub(in crate::bundles) struct World<'w> {
    /// What functions do.
    pub(in crate::bundles) facts: &'w FlowFacts,
    /// Whether a path, in lower case, is of a file of secrets.
    pub(in crate::bundles) is_secret: &'w dyn Fn(&str) -> bool,
}

/// Words that say nothing of a value, in one language or another.
pub(super) const IDLE: &[&str] = &[
    "new",
    "await",
    "async",
    "return",
    "unsafe",
    "mut",
    "ref",
    "move",
    "let",
    "var",
    "val",
    "const",
    "local",
    "my",
    "our",
    "final",
    "static",
    "public",
    "private",
    "protected",
    "auto",
    "yield",
    "defer",
    "go",
    "try",
    "echo",
    "print",
    "and",
    "or",
    "not",
    "throw",
    "else",
    "then",
    "do",
    "begin",
    "lazy",
    "readonly",
    "override",
    "void",
    "dyn",
    "impl",
];
/// Words before a condition or the head of a loop.
pub(super) const HEADS: &[&str] = &[
    "for",
    "foreach",
    "while",
    "if",
    "elsif",
    "elseif",
    "unless",
    "until",
    "switch",
    "using",
    "with",
    "loop",
    "when",
    "match",
    "case",
    "catch",
    "guard",
    "elif",
    "synchronized",
    "lock",
];
/// Signs behind which a statement goes on in the next line, and those before which it does.
pub(super) const GOES_ON_BEHIND: &[&str] = &[
    ",", "+", ".", "(", "[", "=", ":=", "|", "||", "&&", "->", "|>", "..", "<<", "::", "<-", "&", "?", ":",
    "=>", "+=",
];
pub(super) const GOES_ON_BEFORE: &[&str] =
    &[".", "->", "?.", "|>", "+", "||", "&&", "..", "::", "?", ":", ")", "]"];
/// Signs that set a variable.
pub(super) const SETS: &[&str] = &["=", ":=", "+=", ".=", "<-", "<<-", "||=", "??=", "&&="];

pub(super) struct Follower<'p> {
    pub(super) world: &'p World<'p>,
    pub(super) tongue: &'p Tongue,
    pub(super) tokens: &'p [Token],
    pub(super) scopes: &'p Scopes,
    /// The program in lower case.
    pub(super) lower: &'p str,
    pub(super) variables: HashMap<(u32, String), Value>,
    /// What functions of the program answer.
    pub(super) answers: Vec<Value>,
    /// Files that were fetched, by their paths.
    pub(super) fetched_files: BTreeMap<String, String>,
    /// What variables that nothing sets may be.
    pub(super) spilled: Source,
    pub(super) found: Vec<Reach>,
    /// Calls that send something, whatever it is.
    pub(super) sends: usize,
    pub(super) looks: usize,
    pub(super) depth: usize,
    /// Whether words are arguments of a command, and none begins another one.
    pub(super) is_bare: bool,
    pub(super) is_changed: bool,
    /// Names that were asked for before something set them.
    pub(super) missed: RefCell<HashSet<String>>,
}

impl<'p> Follower<'p> {
    pub(super) fn new(
        world: &'p World<'p>,
        tongue: &'p Tongue,
        tokens: &'p [Token],
        scopes: &'p Scopes,
        lower: &'p str,
    ) -> Self {
        Self {
            world,
            tongue,
            tokens,
            scopes,
            lower,
            variables: HashMap::new(),
            answers: vec![Value::default(); scopes.functions.len() + 1],
            fetched_files: BTreeMap::new(),
            spilled: Source::NONE,
            found: Vec::new(),
            sends: 0,
            looks: 0,
            depth: 0,
            is_bare: false,
            is_changed: false,
            missed: RefCell::default(),
        }
    }

    /// Goes through the program.
    pub(super) fn follow(mut self) -> Followed {
        for _ in 0..PASSES_MAX {
            self.is_changed = false;
            self.found.clear();
            self.sends = 0;
            self.pass();
            if !self.is_changed || self.is_over() {
                break;
            }
        }
        let is_whole = !self.is_over();
        Followed { found: self.found, is_whole, sends: self.sends, looks: self.looks }
    }

    pub(super) fn is_over(&self) -> bool {
        self.looks > self.tokens.len() * LOOKS_MAX
    }

    pub(super) fn pass(&mut self) {
        for at in 0..self.tokens.len() {
            if self.is_over() {
                return;
            }
            if self.is_start(at) {
                let end = self.end_of(at);
                self.looks += (end - at) / 2;
                let value = self.statement(at, end);
                // What stands behind an arrow is what the function answers.
                if at > 0 && self.sign(at - 1) == "=>" && self.tongue.types_first {
                    self.answer(at, &value);
                }
                // The last value of a function is what it answers, in some languages.
                if self.tongue.answers_last && self.scopes.is_end_of_function(end) {
                    self.answer(at, &value);
                }
            }
        }
    }

    pub(super) fn sign(&self, at: usize) -> &'p str {
        match self.tokens.get(at) {
            Some(token) if token.kind == Kind::Sign => &token.text,
            _ => "",
        }
    }

    pub(super) fn word(&self, at: usize) -> &'p str {
        match self.tokens.get(at) {
            Some(token) if token.kind == Kind::Word => &token.text,
            _ => "",
        }
    }

    pub(super) fn is_line(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == Kind::Line)
    }

    pub(super) fn close(&self, at: usize) -> usize {
        self.scopes.closes.get(at).map_or(at, |close| *close as usize).max(at)
    }

    /// Whether a statement begins at a token.
    pub(super) fn is_start(&self, at: usize) -> bool {
        if self.is_line(at) {
            return false;
        }
        let Some(mut before) = at.checked_sub(1) else { return true };
        if self.is_line(before) && self.tongue.ends_with_lines {
            return !self.goes_on(before);
        }
        while self.is_line(before) {
            let Some(earlier) = before.checked_sub(1) else { return true };
            before = earlier;
        }
        matches!(self.sign(before), ";" | "{" | "}" | "=>")
            || matches!(self.word(before), "do" | "then" | "else" | "begin")
    }

    /// Whether a statement goes on behind the end of a line.
    pub(super) fn goes_on(&self, line: usize) -> bool {
        let mut next = line + 1;
        while self.is_line(next) {
            next += 1;
        }
        let mut before = line;
        while before > 0 && self.is_line(before) {
            before -= 1;
        }
        GOES_ON_BEHIND.contains(&self.sign(before)) || GOES_ON_BEFORE.contains(&self.sign(next))
    }

    /// Where the statement ends that begins at a token.
    pub(super) fn end_of(&self, from: usize) -> usize {
        let (mut at, mut sets) = (from, false);
        // An arm of a choice ends where the next one begins.
        let is_arm = from.checked_sub(1).is_some_and(|before| self.sign(before) == "=>");
        while at < self.tokens.len() && at - from < STATEMENT_MAX {
            let sign = self.sign(at);
            if self.is_line(at) {
                if self.tongue.ends_with_lines && !self.goes_on(at) {
                    return at;
                }
            } else if matches!(self.word(at), "do" | "then") && at > from {
                return at;
            }
            sets |= SETS.contains(&sign);
            match sign {
                ";" | "}" | ")" | "]" => return at,
                "," if is_arm => return at,
                "(" | "[" => at = self.close(at),
                "{" if at == from && SETS.contains(&self.sign(self.close(at) + 1)) => at = self.close(at),
                "{" => {
                    let before = at.checked_sub(1).map_or("", |before| self.sign(before));
                    let is_value = sets || matches!(before, "=" | ":=" | "(" | "," | ":" | "=>" | "[" | "&");
                    if !is_value || self.close(at) - at > STATEMENT_MAX {
                        return at;
                    }
                    at = self.close(at);
                }
                _ => {}
            }
            at += 1;
        }
        at.min(self.tokens.len())
    }

    pub(super) fn statement(&mut self, from: usize, end: usize) -> Value {
        if self.depth >= DEPTH_MAX {
            return Value::default();
        }
        self.depth += 1;
        let value = self.one_statement(from, end);
        self.depth -= 1;
        value
    }

    pub(super) fn one_statement(&mut self, from: usize, end: usize) -> Value {
        let mut at = from;
        while IDLE.contains(&self.word(at)) && at < end && self.word(at) != "return" {
            at += 1;
        }
        let word = self.word(at).to_lowercase();
        if word == "return" {
            let value = self.value(at + 1, end);
            self.answer(at, &value);
            return value;
        }
        if HEADS.contains(&word.as_str())
            && !SETS.contains(&self.sign(at + 1))
            && !matches!(self.sign(at + 1), "." | ",")
        {
            let is_tuple = matches!(self.word(self.close(at + 1) + 1), "in" | "of");
            if self.sign(at + 1) == "(" && !is_tuple {
                let close = self.close(at + 1);
                self.head(&word, at + 2, close);
                return if close + 1 < end { self.statement(close + 1, end) } else { Value::default() };
            }
            self.head(&word, at + 1, end);
            return Value::default();
        }
        self.set_or_value(at, end)
    }

    /// What stands in the head of a loop or a condition.
    pub(super) fn head(&mut self, word: &str, from: usize, end: usize) {
        if matches!(word, "for" | "foreach") {
            let splits = |sign: &str, word: &str| {
                matches!(sign, ":" | "<-") || matches!(word, "in" | "of" | "as" | "range")
            };
            let split = (from..end).find(|at| splits(self.sign(*at), self.word(*at)));
            if let Some(split) = split {
                let (names, values) = match self.word(split) {
                    "as" => ((split + 1, end), (from, split)),
                    _ => ((from, split), (split + 1, end)),
                };
                let value = self.value(values.0, values.1);
                self.each(names.0, names.1, &value);
                return;
            }
        }
        let mut start = from;
        for at in from..=end {
            if at == end || self.sign(at) == ";" {
                self.set_or_value(start, at);
                start = at + 1;
            }
        }
    }

    /// Every name between two places is a part of a value.
    pub(super) fn each(&mut self, from: usize, end: usize, value: &Value) {
        let mut part = value.carried();
        // Of a list of paths the one that matters.
        let mut words = value.text.split_whitespace();
        if let Some(path) = words.find(|word| self.is_secret_text(word)) {
            part.text = path.to_owned();
        }
        for at in from..end {
            let word = self.word(at);
            if !word.is_empty() && !IDLE.contains(&word) {
                self.set(at, word, &part);
            }
        }
    }

    pub(super) fn set_or_value(&mut self, from: usize, end: usize) -> Value {
        if self.depth >= DEPTH_MAX {
            return Value::default();
        }
        self.depth += 1;
        let value = self.one_value(from, end);
        self.depth -= 1;
        value
    }

    pub(super) fn one_value(&mut self, from: usize, end: usize) -> Value {
        let mut at = from;
        while at < end {
            let sign = self.sign(at);
            if SETS.contains(&sign) {
                return self.assign(from, at, end);
            }
            if matches!(sign, "(" | "[" | "{") {
                at = self.close(at);
            }
            at += 1;
        }
        self.value(from, end)
    }

    pub(super) fn assign(&mut self, from: usize, sets: usize, end: usize) -> Value {
        let value = self.set_or_value(sets + 1, end);
        let is_more = matches!(self.sign(sets), "+=" | ".=");
        let mut start = from;
        let count = (from..sets).filter(|at| self.sign(*at) == ",").count();
        for at in from..=sets {
            if at < sets && self.sign(at) != "," {
                continue;
            }
            // What went wrong is not what was asked for.
            let is_error = |name: &str| count > 0 && matches!(name, "err" | "error" | "ok" | "_" | "e");
            let target = self.target(start, at).filter(|(name, ..)| !is_error(name));
            if let Some((name, field, place)) = target {
                self.set_target(&name, &field, place, &value, is_more);
            }
            start = at + 1;
        }
        value
    }

    pub(super) fn set_target(&mut self, name: &str, field: &str, at: usize, value: &Value, is_more: bool) {
        if field.is_empty() {
            // A function that is written as its value.
            if let Some(function) = self.scopes.function(name) {
                self.is_changed |=
                    self.answers[function as usize].from | value.from != self.answers[function as usize].from;
                self.answers[function as usize] = value.clone();
            }
            let mut value = value.clone();
            if is_more {
                let mut all = self.lookup(at, name).unwrap_or_default();
                all.add(&value);
                value = all;
            }
            self.set(at, name, &value);
            return;
        }
        let owner = name.to_lowercase();
        let named = format!("={}", field.to_lowercase());
        self.reach_of(at, &[&owner, &named], std::slice::from_ref(value), &Value::default());
        self.set(at, &format!("{name}.{field}"), value);
        if self.is_own(at, name) {
            self.set(at, &format!(".{field}"), value);
        }
        // What has a part from there comes from there as well.
        let mut whole = self.lookup(at, name).unwrap_or_default();
        whole.join(value);
        self.set(at, name, &whole);
    }

    /// The variable, and the field of it, that stands before a sign that sets it.
    pub(super) fn target(&self, from: usize, end: usize) -> Option<(String, String, usize)> {
        let mut words: Vec<usize> = Vec::new();
        let mut at = from;
        let mut field = String::new();
        while at < end {
            let word = self.word(at);
            match self.sign(at) {
                // The type behind a name.
                ":" if !words.is_empty() && !self.tongue.types_first => break,
                "." | "->" | "::" | "?." if !words.is_empty() && !self.word(at + 1).is_empty() => {
                    field = self.word(at + 1).to_owned();
                    at += 1;
                }
                "[" if !words.is_empty() => at = self.close(at),
                "<" if !words.is_empty() => {
                    let close = (at..end).find(|at| self.sign(*at) == ">").unwrap_or(at);
                    at = close;
                }
                _ if !word.is_empty() && !IDLE.contains(&word) => {
                    words.push(at);
                    field.clear();
                }
                _ => {}
            }
            at += 1;
        }
        let is_first = matches!(self.tongue.name.as_str(), "go" | "rust" | "swift" | "kotlin" | "scala");
        let at = if is_first { words.first() } else { words.last() }.copied()?;
        Some((self.word(at).to_owned(), field, at))
    }

    pub(super) fn scope(&self, at: usize) -> u32 {
        self.scopes.of.get(at).copied().unwrap_or_default()
    }

    pub(super) fn set(&mut self, at: usize, name: &str, value: &Value) {
        let is_of_all =
            name.starts_with(['@', '.']) || name.starts_with("this.") || name.starts_with("self.");
        let scope = if is_of_all { 0 } else { self.scope(at) };
        let known = self.variables.entry((scope, name.to_owned())).or_default();
        let mut value = value.clone();
        value.from = value.from | known.from;
        if value.origin.is_empty() {
            value.origin.clone_from(&known.origin);
        }
        let is_told = value.from != Source::NONE || value.text.chars().any(|c| c != HOLE);
        if value.from != known.from || is_told && known.text.is_empty() && self.missed.borrow().contains(name)
        {
            self.is_changed = true;
        }
        // A text that is set anew in a later pass is the same again, and must not grow.
        *known = value;
    }

    pub(super) fn lookup(&self, at: usize, name: &str) -> Option<Value> {
        let scope = self.scope(at);
        let own = self.variables.get(&(scope, name.to_owned()));
        let known = own.or_else(|| self.variables.get(&(0, name.to_owned()))).cloned();
        if known.is_none() {
            self.missed.borrow_mut().insert(name.to_owned());
        }
        known
    }

    /// Whether a name is that of the object that a method belongs to: nothing in the method sets it.
    pub(super) fn is_own(&self, at: usize, name: &str) -> bool {
        matches!(name, "this" | "self" | "$this")
            || self.scope(at) > 0 && !self.variables.contains_key(&(self.scope(at), name.to_owned()))
    }

    pub(super) fn answer(&mut self, at: usize, value: &Value) {
        let scope = self.scope(at) as usize;
        if let Some(answer) = self.answers.get_mut(scope) {
            self.is_changed |= answer.from | value.from != answer.from;
            answer.join(value);
            if answer.text.chars().all(|c| c == HOLE) {
                answer.text.clone_from(&value.text);
            }
        }
    }
}
