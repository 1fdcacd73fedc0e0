//! Parameter expansion: values of variables and what operators make of them.

use std::rc::Rc;

use super::super::argument::{Argument, HOLE, Origin};
use super::super::ast::{Operation, Parameter, Part, ReplaceScope, Word, WordId};
use super::super::carried::{Carried, Pick, Read};
use super::super::effect::{Target, TargetKind};
use super::super::owners;
use super::super::run::{Engine, Script, Value};
use super::fields::Fields;
use super::{join, pattern};

/// How often an operator goes over a value, as measured in steps.
const OPERATOR_PASSES: usize = 8;

/// Variables that runners of builds set for every job, and that hold a path.
const ALWAYS_SET: &[&str] = &[
    "AGENT_TEMPDIRECTORY",
    "BUILDKITE_BUILD_CHECKOUT_PATH",
    "BUILD_SOURCESDIRECTORY",
    "CARGO_TARGET_TMPDIR",
    "CI_PROJECT_DIR",
    "CODEBUILD_SRC_DIR",
    "GITHUB_WORKSPACE",
    "OUT_DIR",
    "RUNNER_TEMP",
    "RUNNER_TOOL_CACHE",
    "TRAVIS_BUILD_DIR",
    "WORKSPACE",
    "XDG_RUNTIME_DIR",
];

/// The value of a parameter before its operator.
enum Found {
    /// Nothing is known; it may be set outside.
    Unknown,
    /// It is not set.
    Unset,
    /// One text.
    Text(Argument),
    /// A list, as of `$@`; whether it joins to one word in quotes, as of `$*`.
    List(Rc<Vec<Argument>>, bool),
}

impl Engine<'_> {
    /// Expands a parameter into fields.
    pub(super) fn parameter(
        &mut self,
        script: &Script<'_>,
        parameter: &Parameter<'_>,
        word: &Word<'_>,
        at: usize,
        quoted: bool,
        fields: &mut Fields<'_>,
    ) {
        let found = self.lookup(script, parameter);
        if matches!(found, Found::Unknown) && is_filler(parameter, word, at, fields.last_char()) {
            return;
        }
        match self.operate(script, parameter, found) {
            Found::Unset => {
                if quoted && parameter.quoted && !matches!(&*parameter.name, "@") {
                    fields.value(&Argument::default());
                }
            }
            Found::Unknown => {
                if self.may_be_empty(parameter) {
                    fields.unset();
                }
                let hole = Argument {
                    text: HOLE.to_string(),
                    carried: address_of(&parameter.name),
                    ..Argument::default()
                };
                if quoted { fields.value(&hole) } else { fields.split(&hole) }
            }
            Found::Text(text) => {
                if quoted {
                    fields.value(&text)
                } else {
                    fields.split(&text)
                }
            }
            Found::List(items, joins) => {
                if quoted && (joins || !parameter.quoted) {
                    let separator =
                        self.separator_text().chars().next().map_or_else(String::new, String::from);
                    fields.value(&join(&items, &separator));
                    return;
                }
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        fields.end_field();
                    }
                    if quoted { fields.value(item) } else { fields.split(item) }
                }
            }
        }
    }

    /// Whether a variable of which nothing is known may as well be empty. Names it for a test that it may stand in.
    fn may_be_empty(&mut self, parameter: &Parameter<'_>) -> bool {
        let is_plain = matches!(parameter.operation, Operation::None)
            && !parameter.indirect
            && parameter.index.is_none()
            && super::super::run::is_variable(&parameter.name)
            && !ALWAYS_SET.contains(&&*parameter.name);
        is_plain && self.looked_up(&parameter.name)
    }

    fn lookup(&mut self, script: &Script<'_>, parameter: &Parameter<'_>) -> Found {
        if !parameter.indirect {
            return self.named(script, &parameter.name, parameter.index);
        }
        if matches!(parameter.operation, Operation::Other) {
            return Found::List(Rc::new(self.names_of(&parameter.name)), false);
        }
        match self.named(script, &parameter.name, None) {
            // `${!name[@]}`: the indices.
            Found::List(items, _) if parameter.index.is_some() => {
                let index = |at: usize| Argument { text: at.to_string(), ..Argument::default() };
                Found::List(Rc::new((0..items.len()).map(index).collect()), false)
            }
            Found::Text(name) if !name.text.contains(HOLE) => {
                let (name, index) = match name.text.split_once('[') {
                    Some((name, index)) => (name.to_owned(), index.trim_end_matches(']').to_owned()),
                    None => (name.text, String::new()),
                };
                if index.is_empty() { self.named(script, &name, None) } else { self.element(&name, &index) }
            }
            _ => Found::Unknown,
        }
    }

    fn names_of(&self, prefix: &str) -> Vec<Argument> {
        let name = |text: String| Argument { text, ..Argument::default() };
        self.scope.names(prefix).into_iter().map(name).collect()
    }

    fn named(&mut self, script: &Script<'_>, name: &str, index: Option<WordId>) -> Found {
        if let Some(index) = index {
            let index = self.text(script, index);
            return self.element(name, &index.text);
        }
        match name {
            "@" | "*" => match self.scope.positional() {
                Some(items) => Found::List(Rc::clone(items), name == "*"),
                None => Found::Unknown,
            },
            "#" => match self.scope.positional() {
                Some(items) => text(items.len().to_string()),
                None => Found::Unknown,
            },
            "0" => match self.scope.get("0", 0) {
                Some(Value::Text(name)) => Found::Text((**name).clone()),
                _ => text("bash".to_owned()),
            },
            _ if name.as_bytes().first().is_some_and(u8::is_ascii_digit) => {
                let at = name.parse::<usize>().ok().and_then(|at| at.checked_sub(1));
                match (self.scope.positional(), at) {
                    (Some(items), Some(at)) => items.get(at).cloned().map_or(Found::Unset, Found::Text),
                    _ => Found::Unknown,
                }
            }
            _ => match self.scope.get(name, self.choice) {
                Some(Value::Unset) => Found::Unset,
                Some(Value::Text(value)) => Found::Text((**value).clone()),
                Some(Value::Array(items)) => items.first().cloned().map_or(Found::Unset, Found::Text),
                Some(Value::Map(map)) => map.get("0").cloned().map_or(Found::Unset, Found::Text),
                Some(Value::Reference(_)) => Found::Unset,
                None => self.environment(self.scope.referred(name)),
            },
        }
    }

    fn element(&mut self, name: &str, index: &str) -> Found {
        let all = matches!(index, "@" | "*");
        match self.scope.get(name, self.choice) {
            Some(Value::Array(items)) if all => Found::List(Rc::clone(items), index == "*"),
            Some(Value::Map(map)) if all => {
                Found::List(Rc::new(map.values().cloned().collect()), index == "*")
            }
            Some(Value::Map(map)) => map.get(index).cloned().map_or(Found::Unset, Found::Text),
            Some(Value::Text(value)) if all => Found::List(Rc::new(vec![(**value).clone()]), index == "*"),
            Some(Value::Text(value)) if index == "0" => Found::Text((**value).clone()),
            Some(Value::Array(items)) => {
                let items = Rc::clone(items);
                match self.number(index) {
                    None => Found::Unknown,
                    Some(at) => {
                        let at = if at < 0 {
                            at.saturating_add(i64::try_from(items.len()).unwrap_or(0))
                        } else {
                            at
                        };
                        let item = usize::try_from(at).ok().and_then(|at| items.get(at)).cloned();
                        item.map_or(Found::Unset, Found::Text)
                    }
                }
            }
            Some(Value::Unset) => Found::Unset,
            _ => Found::Unknown,
        }
    }

    /// Variables that every shell has.
    fn environment(&self, name: &str) -> Found {
        let known = match name {
            "IFS" => self.separator_text(),
            "HOME" if self.place.home.is_empty() => "~".to_owned(),
            "HOME" => self.place.home.to_owned(),
            "PWD" => {
                let cwd = self.cwd();
                if cwd.is_empty() { ".".to_owned() } else { cwd }
            }
            // Where most systems have it; only so is it known what `$TMPDIR/..` leads to.
            "TMPDIR" => "/tmp".to_owned(),
            // Absolute, and what follows the first slash is not known.
            "PATH" | "OLDPWD" => format!("/{HOLE}"),
            "SHELL" | "BASH" => "/bin/bash".to_owned(),
            "OSTYPE" => "linux-gnu".to_owned(),
            _ => return Found::Unknown,
        };
        text(known)
    }

    fn operate(&mut self, script: &Script<'_>, parameter: &Parameter<'_>, found: Found) -> Found {
        if let Found::Text(value) = &found
            && (parameter.length || !matches!(parameter.operation, Operation::None))
            && !self.charge_bytes(OPERATOR_PASSES * value.text.len())
        {
            return Found::Unknown;
        }
        if parameter.length {
            return match found {
                Found::List(items, _) => text(items.len().to_string()),
                Found::Text(value) if !value.text.contains(HOLE) => {
                    text(value.text.chars().count().to_string())
                }
                Found::Unset => text("0".to_owned()),
                _ => Found::Unknown,
            };
        }
        let is_missing = match &found {
            Found::Unset | Found::Unknown => true,
            Found::Text(text) => parameter.empty_is_none && text.text.is_empty(),
            Found::List(items, _) => items.is_empty(),
        };
        match parameter.operation {
            Operation::None => found,
            Operation::Default(word) if is_missing => Found::Text(self.text(script, word)),
            Operation::Assign(word) if is_missing => {
                let value = self.text(script, word);
                self.scope.set_text(&parameter.name, value.clone());
                Found::Text(value)
            }
            Operation::Default(_) | Operation::Assign(_) => found,
            Operation::Error(word) => {
                self.text(script, word);
                if is_missing {
                    // Whoever comes here after it has a value.
                    self.known_to_be_set(&parameter.name);
                    Found::Unknown
                } else {
                    found
                }
            }
            // An unknown variable may well be set.
            Operation::Alternative(word) => match found {
                Found::Unset => Found::Unset,
                Found::Text(value) if parameter.empty_is_none && value.text.is_empty() => Found::Unset,
                _ => Found::Text(self.text(script, word)),
            },
            Operation::Other if parameter.indirect => found,
            Operation::Other => match &found {
                Found::Text(value) => unknown_like(value),
                _ => Found::Unknown,
            },
            Operation::Substring { offset, length } => {
                self.substring(script, parameter, found, offset, length)
            }
            Operation::RemovePrefix { .. }
            | Operation::RemoveSuffix { .. }
            | Operation::Replace { .. }
            | Operation::Case { .. } => self.edit(script, parameter.operation, found),
        }
    }

    fn substring(
        &mut self,
        script: &Script<'_>,
        parameter: &Parameter<'_>,
        found: Found,
        offset: WordId,
        length: Option<WordId>,
    ) -> Found {
        let offset = self.text(script, offset);
        let offset = self.number(&offset.text);
        let length = length.map(|length| {
            let text = self.text(script, length);
            self.number(&text.text)
        });
        let (Some(offset), Some(length)) = (offset, length.map_or(Some(None), |length| length.map(Some)))
        else {
            return match found {
                Found::Text(value) => unknown_like(&value),
                _ => Found::Unknown,
            };
        };
        match found {
            Found::List(items, star) => {
                // `${@:1}` counts from `$1`, `${array[@]:0}` from the first element.
                let first = i64::from(matches!(&*parameter.name, "@" | "*"));
                let start = clamp(offset - first, items.len());
                let end = length.map_or(items.len(), |length| clamp(offset - first + length, items.len()));
                Found::List(Rc::new(items.get(start..end.max(start)).unwrap_or_default().to_vec()), star)
            }
            // The working directory is written as a dot here where it is not known, but it begins with a slash.
            Found::Text(value) if value.text == "." || value.text == "~" => match (offset, length) {
                (0, Some(1)) => text("/".to_owned()),
                (0, None) => Found::Text(value),
                _ => Found::Unknown,
            },
            Found::Text(value) => cut(value, offset, length),
            other => other,
        }
    }

    fn edit(&mut self, script: &Script<'_>, operation: Operation, found: Found) -> Found {
        match found {
            Found::Text(value) => self.edit_text(script, operation, value),
            Found::List(items, star) => {
                let edited = items.iter().map(|item| match self.edit_text(script, operation, item.clone()) {
                    Found::Text(text) => text,
                    _ => Argument { text: HOLE.to_string(), ..Argument::default() },
                });
                Found::List(Rc::new(edited.collect()), star)
            }
            other => {
                self.expand_operands(script, operation);
                other
            }
        }
    }

    /// Substitutions in patterns run even when the value is not known.
    fn expand_operands(&mut self, script: &Script<'_>, operation: Operation) {
        match operation {
            Operation::RemovePrefix { pattern, .. } | Operation::RemoveSuffix { pattern, .. } => {
                self.text(script, pattern);
            }
            Operation::Replace { pattern, with, .. } => {
                self.text(script, pattern);
                if let Some(with) = with {
                    self.text(script, with);
                }
            }
            _ => {}
        }
    }

    fn edit_text(&mut self, script: &Script<'_>, operation: Operation, mut value: Argument) -> Found {
        let is_known = value.is_known();
        if !self.charge_bytes(value.text.len()) {
            return Found::Unknown;
        }
        match operation {
            Operation::Case { upper, all } if is_known => {
                value.text = change_case(&value.text, upper, all);
                Found::Text(value)
            }
            Operation::RemovePrefix { pattern: id, longest } => {
                let pattern = self.pattern(script, id).text;
                if !is_known || pattern.contains(HOLE) || !self.charge(pattern::cost(&pattern, &value.text)) {
                    return unknown_like(&value);
                }
                if let Some(end) = pattern::prefix(&pattern, &value.text, longest) {
                    value.text.drain(..end);
                }
                Found::Text(value)
            }
            Operation::RemoveSuffix { pattern: id, longest } => {
                let pattern = self.pattern(script, id).text;
                if !is_known || pattern.contains(HOLE) || !self.charge(pattern::cost(&pattern, &value.text)) {
                    return unknown_like(&value);
                }
                if let Some(start) = pattern::suffix(&pattern, &value.text, longest) {
                    value.text.truncate(start);
                }
                Found::Text(value)
            }
            Operation::Replace { pattern: id, with, scope } => {
                let mut pattern = self.pattern(script, id).text;
                let mut with = with.map(|with| self.text(script, with).text);
                // `${x/#/a}` puts text before the value: the pattern is empty, and what follows the slash is the text.
                if with.is_none() && matches!(scope, ReplaceScope::Prefix | ReplaceScope::Suffix) {
                    with = pattern.strip_prefix('/').map(str::to_owned);
                    if with.is_some() {
                        pattern.clear();
                    }
                }
                let with = with.unwrap_or_default();
                // Replacing begins a match at every character.
                let cost = pattern::cost(&pattern, &value.text).saturating_mul(4);
                if !is_known || pattern.contains(HOLE) || !self.charge(cost) {
                    return unknown_like(&value);
                }
                match replace(&pattern, &value.text, &with, scope) {
                    Some(replaced) => {
                        value.text = replaced;
                        Found::Text(value)
                    }
                    None => unknown_like(&value),
                }
            }
            _ => unknown_like(&value),
        }
    }
}

fn replace(pattern: &str, text: &str, with: &str, scope: ReplaceScope) -> Option<String> {
    // `${x/#a/b}` may reach here as a first replacement of `#a` only through the parser, which sets the scope.
    let replaced = pattern::replace(pattern, text, with, scope)?;
    (replaced.len() <= 1 << 20).then_some(replaced)
}

fn unknown_like(value: &Argument) -> Found {
    Found::Text(Argument {
        text: HOLE.to_string(),
        origin: value.origin.clone(),
        carried: value.carried.clone(),
        ..Argument::default()
    })
}

fn text(text: String) -> Found {
    Found::Text(Argument { text, ..Argument::default() })
}

fn clamp(value: i64, max: usize) -> usize {
    usize::try_from(value.max(0)).unwrap_or(max).min(max)
}

/// `${x:offset:length}` as far as it lies before the first unknown piece.
fn cut(value: Argument, offset: i64, length: Option<i64>) -> Found {
    let known = value.known_prefix().chars().count();
    let is_known = value.is_known();
    let total = i64::try_from(known).unwrap_or(i64::MAX);
    if !is_known && (offset < 0 || length.is_none_or(|length| length < 0 || offset + length > total)) {
        return unknown_like(&value);
    }
    let start = if offset < 0 { offset + total } else { offset };
    let end = match length {
        None => total,
        Some(length) if length < 0 => total + length,
        Some(length) => start.saturating_add(length),
    };
    if start < 0 || start > total || end < start {
        return Found::Unset;
    }
    let (start, end) = (clamp(start, known), clamp(end, known));
    let cut: String = value.known_prefix().chars().skip(start).take(end - start).collect();
    Found::Text(Argument { text: cut, span: value.span, origin: Origin::Environment, ..Argument::default() })
}

fn change_case(text: &str, upper: bool, all: bool) -> String {
    match (all, upper) {
        (true, true) => return text.to_uppercase(),
        (true, false) => return text.to_lowercase(),
        _ => {}
    }
    let mut chars = text.chars();
    let change =
        |c: char| -> String { if upper { c.to_uppercase().collect() } else { c.to_lowercase().collect() } };
    let mut changed = chars.next().map(change).unwrap_or_default();
    changed.push_str(chars.as_str());
    changed
}

/// The name of a variable that holds the address of a service, as what its value carries.
fn address_of(name: &str) -> Carried {
    if !owners::is_address(name) {
        return Carried::default();
    }
    let target = Target { text: name.to_owned(), has_glob: false, kind: TargetKind::Name };
    Carried::of([Read { pick: Pick::Address, ..Read::all(target, false) }])
}

/// Whether an unset parameter stands inside a word only to break it up, as `$@` in `r$@m` or `$9` behind `$IFS`.
fn is_filler(parameter: &Parameter<'_>, word: &Word<'_>, at: usize, last: Option<char>) -> bool {
    if !matches!(parameter.operation, Operation::None) || parameter.length || parameter.indirect {
        return false;
    }
    let before = at.checked_sub(1).and_then(|at| word.parts.get(at));
    if let Some(Part::Parameter(before)) = before
        && before.name == "IFS"
        && parameter.name.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'@' | b'*'))
    {
        return true;
    }
    let next = match word.parts.get(at + 1) {
        Some(Part::Bare(text)) => text.chars().next(),
        Some(Part::Quoted(text)) => text.chars().next(),
        _ => None,
    };
    let is_word = |c: char| c.is_ascii_alphabetic();
    let is_short = parameter.name.len() <= 2 || matches!(&*parameter.name, "@" | "*");
    is_short && last.is_some_and(is_word) && next.is_some_and(is_word)
}
