//! What a program reads of itself: its file, its comments, its documentation and the source of its functions.
//!
//! Nobody takes a comment for code. What is cut out of the source of a function is followed as the text that it is; what
//! comes of comments and documentation is marked, too, where no text can be told.

use std::rc::Rc;

use super::Language;
use super::call::Arguments;
use super::follow::Walk;
use super::siblings::OWN;
use super::taint::Taint;
use super::tree::{Function, Source};
use super::value::{Shape, Value};

impl Walk<'_> {
    /// What a function gives that reads the text of the program; `None` for other functions.
    pub fn own_text(&mut self, path: &str, arguments: &Arguments, at: u32) -> Option<Value> {
        let first = arguments.first().map(|(_, value)| value);
        Some(match path {
            "inspect.getsource" | "dill.source.getsource" => self.source(first?, at)?,
            "inspect.getsourcelines" | "inspect.findsource" => {
                let source = self.source(first?, at)?;
                let lines = super::fold::method(self.language, &source, "splitlines", &[]);
                Value::list(vec![lines.unwrap_or(source), Value::of(Shape::Number(0.0))])
            }
            "inspect.getcomments" => match function_of(first?) {
                Some(function) => Value::text(function.source.comments_before()).with(Taint::OWN_TEXT),
                None => Value::unknown(Taint::OWN_TEXT),
            },
            "inspect.getdoc" | "pydoc.getdoc" => {
                let of = first?.clone();
                self.member(&of, &Rc::from("__doc__"), false)
            }
            "inspect.getfile" | "inspect.getsourcefile" if is_here(first?) => Value::text(OWN),
            "builtins.__loader__.get_source" => self.read(&Rc::from(OWN), at),
            "linecache.getline" => {
                let whole = self.read(&first?.piece(), at);
                let nth = arguments.get(1).and_then(|(_, nth)| nth.as_number());
                let line = whole.as_text().zip(nth).and_then(|(text, nth)| {
                    let nth = (nth as usize).checked_sub(1)?;
                    text.lines().nth(nth).map(Value::text)
                });
                line.map_or_else(|| Value::unknown(whole.taint), |line| line.with(whole.taint))
            }
            // JavaScript: a function as a text.
            "String" if self.language == Language::JavaScript => Value::text(source_of(first?)?.as_str()),
            _ => return None,
        })
    }

    /// The source of a function, or of the file that something else is in.
    fn source(&mut self, of: &Value, at: u32) -> Option<Value> {
        match source_of(of) {
            Some(source) => Some(Value::text(source.as_str())),
            None => is_here(of).then(|| self.read(&Rc::from(OWN), at)),
        }
    }

    /// What a member of a function tells of how it is written; `None` for other members.
    pub fn own_member(&self, function: &Function, name: &str) -> Option<Value> {
        let text = || {
            let text = super::follow::first_text(&function.body);
            text.map_or_else(Value::default, Value::text).with(Taint::OWN_TEXT)
        };
        match (self.language, name) {
            (Language::Python, "__doc__") => Some(text()),
            (Language::Python, "__code__" | "func_code") => {
                let constants = Value::list(vec![text()]);
                Some(Value::of(Shape::Map(Rc::new(vec![(Rc::from("co_consts"), constants)]))))
            }
            _ => None,
        }
    }
}

/// How a function is written; `None` for anything else.
pub(super) fn source_of(value: &Value) -> Option<&Source> {
    function_of(value).map(|function| &function.source)
}

fn function_of(value: &Value) -> Option<&Function> {
    match &value.shape {
        Shape::Function(function, _) => Some(function.as_ref()),
        Shape::Bound(bound) => function_of(&bound.0),
        Shape::Partial(partial) => function_of(&partial.0),
        Shape::Any(values) => values.iter().find_map(function_of),
        _ => None,
    }
}

/// Whether something is of this file: a class, an instance, the module itself or the call that is being made.
fn is_here(value: &Value) -> bool {
    match &value.shape {
        Shape::Class(_) | Shape::Object(_) | Shape::Function(..) | Shape::Bound(_) => true,
        Shape::Api(path) => {
            matches!(
                &**path,
                "__main__" | "inspect.currentframe()" | "sys._getframe()" | "inspect.getmodule()"
            )
        }
        _ => false,
    }
}
