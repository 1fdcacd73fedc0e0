//! Constants that are run as code where the file uses what they define: functions, classes, names and values.
//!
//! Such a text is looked at as a file of its own by [`super::judge`]; here it is walked once more among the names of this
//! one, so that a function that `exec` defines is entered when it is called. Depth, number and size are bounded.

use std::rc::Rc;

use super::call::Arguments;
use super::follow::Walk;
use super::tree::{Argument, Statement};
use super::value::{Given, Shape, Value};
use super::{Language, javascript, python, worker};

/// Bytes of a text that is walked.
const BYTES_MAX: usize = 16 << 10;
/// Such texts inside one another, and in one file.
const DEPTH_MAX: usize = 3;
const TEXTS_MAX: usize = 64;
/// Names that a text gives to a table.
const NAMES_MAX: usize = 64;

impl Walk<'_> {
    /// Gives the file the names that a constant defines which it runs; `nodes` are the arguments of the call.
    pub fn define(&mut self, path: &str, nodes: &[Argument], given: &Arguments, at: u32, scope: usize) {
        let is_here = matches!(
            path,
            "builtins.exec"
                | "six.exec_"
                | "future.utils.exec_"
                | "eval"
                | "eval.indirect"
                | "globalThis.this.eval"
                | "execScript"
        );
        let is_apart = matches!(
            path,
            "vm.runInThisContext" | "vm.runInNewContext" | "vm.runInContext" | "vm.Script().runInContext"
        );
        if !is_here && !is_apart {
            return;
        }
        let Some(code) = given.first().and_then(|(_, code)| code.known_text()) else { return };
        let is_table = |value: &Value| matches!(value.shape, Shape::Map(_) | Shape::Object(_));
        // The table that the names go to: the last one that is given.
        let table = given.iter().zip(nodes).skip(1).rfind(|((_, value), _)| is_table(value));
        let Some(((_, table), node)) = table else {
            let scope = if is_here { scope } else { 0 };
            self.run_text(&code, at, scope);
            return;
        };
        let inner = self.scope(0);
        if let Shape::Map(entries) = &table.shape {
            let entries: Vec<_> = entries.iter().take(NAMES_MAX).cloned().collect();
            self.scopes[inner].names.extend(entries);
        }
        self.run_text(&code, at, inner);
        let mut names: Vec<Given> = self.scopes[inner]
            .names
            .iter()
            .map(|(name, value)| (Some(name.clone()), value.clone()))
            .collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        names.truncate(NAMES_MAX);
        self.put_all(Some(&node.value), table.clone(), names, at, scope);
    }

    /// The value of a constant that is worked out as an expression; `None` when it is none.
    pub fn value_of_text(&mut self, code: &Rc<str>, at: u32) -> Option<Value> {
        let scope = self.scope(0);
        self.run_text(code, at, scope).filter(|value| !matches!(value.shape, Shape::Unknown))
    }

    /// The function that is made of a body and the names of its parameters (`new Function("a", "return a")`).
    pub fn function_of_text(&mut self, arguments: &Arguments, at: u32) -> Option<Value> {
        let (last, names) = arguments.split_last()?;
        let body = last.1.known_text()?;
        let names: Option<Vec<Rc<str>>> = names.iter().map(|(_, name)| name.known_text()).collect();
        let code = format!("(function({}){{\n{body}\n}})", names?.join(","));
        self.value_of_text(&Rc::from(code), at)
    }

    /// Walks a text among the names of a scope; answers the value of its last expression.
    fn run_text(&mut self, code: &Rc<str>, at: u32, scope: usize) -> Option<Value> {
        let fits = code.len() <= BYTES_MAX && self.defining < DEPTH_MAX && self.defined < TEXTS_MAX;
        if !fits || !worker::may_parse(self.language, code) || !self.step(50 + code.len() / 4) {
            return None;
        }
        self.defined += 1;
        let parsed = match self.language {
            Language::Python => python::parse(code.trim()),
            Language::JavaScript => javascript::parse("text.js", code),
        };
        let place = self.place.replace(self.place.unwrap_or(at));
        self.defining += 1;
        let last = self.last_value(&parsed.body, scope);
        self.defining -= 1;
        self.place = place;
        last
    }

    fn last_value(&mut self, body: &[Statement], scope: usize) -> Option<Value> {
        let (last, rest) = body.split_last()?;
        match last {
            Statement::Expression(node) => {
                self.block(rest, scope);
                Some(self.value(node, scope))
            }
            _ => {
                self.block(body, scope);
                None
            }
        }
    }

    /// Where something stands in the file: inside of a text that is run, where that text is.
    pub fn placed_at(&self, at: u32) -> u32 {
        self.place.unwrap_or(at)
    }
}
