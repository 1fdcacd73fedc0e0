//! Functions that are given away: called with what stands beside them, now or when an event comes.
//!
//! Whoever takes a function and a text does not say what is done with both: a text that is a clearly dangerous command
//! is taken to be what the function gets.

use std::rc::Rc;

use super::call::Arguments;
use super::follow::Walk;
use super::value::{Given, Shape, Value};

/// Ways in which one function is called with what stands beside it.
const TRIES_MAX: usize = 12;
/// The same for a function of the file, which is walked each time.
const ENTRIES_MAX: usize = 4;
/// Elements of one list that are tried.
const ELEMENTS_MAX: usize = 8;
/// Calls inside one another in which functions are still tried.
const CALLS_MAX: usize = 6;
/// Functions that wait for events.
const HANDLERS_MAX: usize = 16;
/// Steps that must be left for events and for functions that are tried with what stands beside them: the rest of the file
/// needs the others.
const EVENT_STEPS_MIN: usize = 5_000;
/// Named arguments that become members of what is made.
const MEMBERS_MAX: usize = 16;

/// Whether a value is a function that can be followed, or holds one.
pub(super) fn may_be_called(value: &Value) -> bool {
    match &value.shape {
        Shape::Any(values) => values.iter().any(may_be_called),
        Shape::Api(_) | Shape::Function(..) | Shape::Bound(_) | Shape::Partial(_) => true,
        _ => false,
    }
}

impl Walk<'_> {
    /// Calls a function that is the argument `nth` of a call with the other arguments, and with what the called function
    /// is a method of.
    pub fn call_with_others(
        &mut self,
        function: &Value,
        nth: usize,
        owner: Option<&Value>,
        arguments: &Arguments,
        at: u32,
    ) {
        if self.calls >= CALLS_MAX {
            return;
        }
        match &function.shape {
            Shape::Any(values) => {
                for value in values.iter().filter(|value| may_be_called(value)) {
                    self.call_with_others(value, nth, owner, arguments, at);
                }
            }
            Shape::Api(path) => {
                if self.context.rules.apis_of(path).any(|api| !api.is_value) {
                    let others =
                        arguments.iter().enumerate().filter(|(at, _)| *at != nth).map(|(_, one)| &one.1);
                    self.try_all(function, owner.into_iter().chain(others), &[], TRIES_MAX, at);
                }
            }
            Shape::Function(known, _) if known.parameters.is_empty() => {}
            _ => {
                // What stands before a function of the file says what it is for.
                let before =
                    arguments.iter().take(nth).map(|(_, value)| value).filter(|v| v.as_list().is_some());
                let after = arguments.get(nth + 1..).unwrap_or_default();
                let others = owner.into_iter().chain(before).chain(after.iter().map(|(_, value)| value));
                let whole: Vec<Given> = after.iter().filter(|(name, _)| name.is_none()).cloned().collect();
                self.try_all(function, others, &whole, ENTRIES_MAX, at);
            }
        }
    }

    fn try_all<'v>(
        &mut self,
        function: &Value,
        others: impl Iterator<Item = &'v Value>,
        whole: &[Given],
        most: usize,
        at: u32,
    ) {
        let mut tries: Vec<Vec<Given>> = Vec::new();
        let one = |value: &Value| vec![(None, value.clone())];
        if whole.len() > 1 && whole.iter().any(|(_, value)| is_told(value)) {
            tries.push(whole.to_vec());
        }
        for other in others.filter(|other| is_told(other)) {
            tries.push(one(other));
            for element in other.as_list().into_iter().flatten().take(ELEMENTS_MAX).filter(|one| is_told(one))
            {
                tries.push(one(element));
                if let Some(list) = element.as_list() {
                    tries.push(list.iter().take(ELEMENTS_MAX).map(|value| (None, value.clone())).collect());
                }
            }
            if let Some(list) = other.as_list().filter(|list| list.len() > 1) {
                tries.push(list.iter().take(ELEMENTS_MAX).map(|value| (None, value.clone())).collect());
            }
        }
        for given in tries.into_iter().take(most) {
            if self.steps < EVENT_STEPS_MIN || !self.step(20) {
                return;
            }
            self.call(function, &given, at, false);
        }
    }

    /// Functions that are told to wait for an event, and events that come with something.
    pub fn event(&mut self, name: &str, arguments: &Arguments, at: u32) {
        match name.rsplit('.').next().unwrap_or_default() {
            "on" | "once" | "addListener" | "prependListener" | "addEventListener" | "subscribe" => {
                let functions = arguments.iter().map(|(_, value)| value).filter(|value| may_be_called(value));
                let left = HANDLERS_MAX.saturating_sub(self.handlers.len());
                let functions: Vec<Value> = functions.take(left).cloned().collect();
                self.handlers.extend(functions);
            }
            "emit" | "publish" | "dispatch" | "trigger" => {
                let given = arguments.get(1..).unwrap_or_default();
                if !given.iter().any(|(_, value)| is_told(value)) {
                    return;
                }
                // Taken for as long as they run: an event of an event is none, and each event needs steps.
                let handlers = std::mem::take(&mut self.handlers);
                for handler in &handlers {
                    if self.calls >= CALLS_MAX || self.steps < EVENT_STEPS_MIN || !self.step(40) {
                        break;
                    }
                    self.call(handler, given, at, false);
                }
                self.handlers = handlers;
            }
            _ => {}
        }
    }

    /// Functions among the named arguments are members of what is made with them.
    pub fn named_members(&mut self, path: &str, arguments: &Arguments) {
        let made = format!("{path}()");
        for (name, value) in arguments.iter().take(MEMBERS_MAX) {
            if let Some(name) = name
                && may_be_called(value)
                && !matches!(&value.shape, Shape::Api(path) if self.context.rules.apis_of(path).next().is_none())
            {
                self.patch(&made, name, value.clone());
            }
        }
    }
}

/// Whether enough is known of a value for it to matter what a function does with it.
fn is_told(value: &Value) -> bool {
    match &value.shape {
        Shape::Text(_) | Shape::Bytes(_) => true,
        Shape::List(values) => values.iter().take(ELEMENTS_MAX).any(is_told),
        Shape::Any(values) => values.iter().any(is_told),
        Shape::Unknown | Shape::Api(_) => !value.taint.is_none(),
        _ => false,
    }
}

/// The module and member that a text such as `os.system` or `os:system` names.
pub(super) fn split_name(text: &str) -> Option<(&str, Rc<str>)> {
    let (module, name) = text.split_once(':').or_else(|| text.rsplit_once('.'))?;
    Some((module, Rc::from(name)))
}
