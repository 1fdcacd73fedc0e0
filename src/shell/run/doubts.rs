//! Variables that the command neither sets nor tests: they may be empty when it runs.

use std::ops::Range;

use super::super::argument::{Argument, Origin};
use super::Engine;

/// Names that are remembered at once.
const NAMES_MAX: usize = 8;

/// See the module.
#[derive(Default)]
pub(super) struct Doubts {
    /// Variables in the words of the command that runs.
    named: Vec<String>,
    /// Variables that were tested for being empty, until the branch ends the script or does not.
    pending: Vec<String>,
    /// Whether the shell stops at a variable that is not set.
    stops: bool,
}

impl Doubts {
    /// Another command begins.
    pub fn forget(&mut self) {
        self.named.clear();
    }

    /// `set -u`.
    pub fn stop_at_unset(&mut self) {
        self.stops = true;
    }
}

impl Engine<'_> {
    /// A variable of which nothing is known was expanded. Whether it may be empty.
    pub(in crate::shell) fn looked_up(&mut self, name: &str) -> bool {
        if self.doubts.stops {
            return false;
        }
        if self.doubts.named.len() < NAMES_MAX && !self.doubts.named.iter().any(|n| n == name) {
            self.doubts.named.push(name.to_owned());
        }
        true
    }

    /// A variable has a value from here on, though not a known one.
    pub(in crate::shell) fn known_to_be_set(&mut self, name: &str) {
        if super::is_variable(name) && self.scope.get(name, 0).is_none() {
            self.scope.set_text(name, Self::unknown(Origin::Environment, Range::default()));
        }
    }

    /// `[ -n "$x" ]` and its like: what is behind it has a value. `[ -z "$x" ]`: if the branch leaves the script.
    pub(super) fn tested(&mut self, words: &[Argument]) {
        if self.doubts.named.is_empty() {
            return;
        }
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.text.as_str()));
        let names = std::mem::take(&mut self.doubts.named);
        let compares = has(&["=", "==", "=~", "-eq", "-ne", "-lt", "-gt"]) || has(&["!="]) && !has(&[""]);
        if has(&["-z", "!"]) {
            self.doubts.pending = names;
        } else if !compares {
            for name in &names {
                self.known_to_be_set(name);
            }
        }
    }

    /// The script or loop ends here if the variables that were just tested are empty.
    pub(super) fn left_if_empty(&mut self) {
        for name in std::mem::take(&mut self.doubts.pending) {
            self.known_to_be_set(&name);
        }
    }
}
