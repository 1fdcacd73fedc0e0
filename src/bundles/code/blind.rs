//! Calls of functions that nobody can know here: one of another file, an element of a table, a member whose name is
//! computed.
//!
//! What such a function does is not known, but a text that is by itself a clearly dangerous command has no other use than
//! to be run, and a member that is looked up by a text that names a function for starting programs is one.

use std::rc::Rc;

use super::call::Arguments;
use super::follow::Walk;
use super::judge::TEXTS_MAX;
use super::name::PUT_TOGETHER;
use super::places::PLACE;
use super::process::LIMITS;
use super::taint::Taint;
use super::value::{HOLE, Shape, Value};
use crate::bundles::rules::{CommandKind, WordKind};
use crate::commands::GuardContext;
use crate::decision::Severity;
use crate::shell::effect::EffectKind;

/// Bytes of a text that is looked at.
const BYTES: std::ops::RangeInclusive<usize> = 10..=8 << 10;
/// Words of a list that is looked at as a command.
const WORDS_MAX: usize = 40;

impl Walk<'_> {
    /// A method of something that is not known.
    pub fn blind_method(&mut self, base: &Value, name: &str, how: Taint, arguments: &Arguments, at: u32) {
        if !matches!(base.shape, Shape::Unknown | Shape::Object(_) | Shape::Method(_)) || arguments.is_empty()
        {
            return;
        }
        if how.meets(PUT_TOGETHER) && matches!(base.shape, Shape::Unknown) {
            // Looked up by a text: it names the function as plainly as an import does.
            self.record(&format!("blind.{name}"), arguments, at, Taint::HIDDEN);
            if how.meets(Taint::HIDDEN) {
                self.record(&format!("blind_hidden.{name}"), arguments, at, Taint::HIDDEN);
            }
            self.handed_over(arguments, at);
        } else if name == "$" || words(name).any(|word| self.context.rules.has_word(WordKind::Running, &word))
        {
            self.handed_over(arguments, at);
        }
    }

    /// A function that is not known; `name` is what is known of it, if anything.
    pub fn blind_function(&mut self, name: &str, arguments: &Arguments, at: u32) {
        let name = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        let keeps = |start: &str| match start.len() {
            0..=2 => name == start || words(&name).next().is_some_and(|word| word == start),
            _ => name.starts_with(start),
        };
        if !self.context.rules.words(WordKind::Keeping).iter().any(|start| keeps(start)) {
            self.handed_over(arguments, at);
        }
    }

    /// Records a clearly dangerous command among the arguments.
    fn handed_over(&mut self, arguments: &Arguments, at: u32) {
        for (_, value) in arguments {
            let command = match &value.shape {
                Shape::Text(_) => value.as_text(),
                Shape::List(words) if (2..WORDS_MAX).contains(&words.len()) => as_words(words),
                _ => None,
            };
            let Some(command) = command.filter(|command| BYTES.contains(&command.len())) else { continue };
            let mut signs = self.context.rules.words(WordKind::CommandSign).iter();
            if signs.any(|sign| command.contains(&**sign)) && self.is_dangerous(&command) {
                self.record("blind.command", &[(None, Value::text(command))], at, Taint::NONE);
            }
        }
    }

    /// Whether a text is by itself a command that nobody writes by accident.
    fn is_dangerous(&mut self, command: &Rc<str>) -> bool {
        if self.looked_at.len() >= TEXTS_MAX || !self.step(20 + command.len() / 8) {
            return false;
        }
        let analysis = crate::shell::analyse(&command.replace(HOLE, "$UNKNOWN"), PLACE, &LIMITS);
        let context = GuardContext { place: PLACE, workspace_roots: &[] };
        let rules = self.context.rules;
        self.context.commands.judge(&analysis, &context).iter().any(|hit| {
            let effect = &analysis.effects[hit.effect];
            let from = effect.target.as_ref().map_or("", |target| target.text.as_str());
            let is_installer = effect.kind == EffectKind::FetchAndExecute && rules.is_installer(from);
            hit.rule.severity >= Severity::High
                && rules.is_command(CommandKind::HandedOver, &hit.rule.id)
                && !is_installer
        })
    }
}

/// Words of a list as one command, each quoted.
fn as_words(words: &[Value]) -> Option<Rc<str>> {
    let quoted = |word: &Value| word.as_text().map(|text| format!("'{}'", text.replace('\'', "'\\''")));
    let all: Option<Vec<String>> = words.iter().map(quoted).collect();
    all.map(|all| Rc::from(all.join(" ")))
}

/// The words of a name, in lower case: `runCommand`, `run_command`.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut out = Vec::new();
    let mut word = String::new();
    for c in name.chars() {
        if (c == '_' || c.is_ascii_uppercase()) && !word.is_empty() {
            out.push(std::mem::take(&mut word));
        }
        if c != '_' {
            word.push(c.to_ascii_lowercase());
        }
    }
    out.push(word);
    out.into_iter().filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_fall_into_words() {
        for (name, words) in [
            ("run", vec!["run"]),
            ("runCommand", vec!["run", "command"]),
            ("exec_command", vec!["exec", "command"]),
            ("__call__", vec!["call"]),
            ("", vec![]),
        ] {
            assert_eq!(super::words(name).collect::<Vec<_>>(), words, "{name}");
        }
    }
}
