//! Generators and coroutines of the file: values that are sent into them.

use std::rc::Rc;

use super::call::Arguments;
use super::follow::Walk;
use super::tree::Function;
use super::value::{Shape, Value};

/// Generators that are remembered.
const GENERATORS_MAX: usize = 64;

/// A call of a generator function, by the list of what it gives.
pub(super) struct Generator {
    gives: Rc<Vec<Value>>,
    function: Rc<Function>,
    scope: usize,
    arguments: Vec<(Option<Rc<str>>, Value)>,
    this: Option<Value>,
}

impl Walk<'_> {
    /// What a call of a generator function gives: a list that is remembered, so that values can be sent into it.
    pub fn generator(
        &mut self,
        yielded: Vec<Value>,
        function: &Rc<Function>,
        scope: usize,
        arguments: &Arguments,
        this: Option<Value>,
    ) -> Value {
        let gives = Rc::new(yielded);
        if self.generators.len() < GENERATORS_MAX {
            self.generators.push(Generator {
                gives: gives.clone(),
                function: function.clone(),
                scope,
                arguments: arguments.to_vec(),
                this,
            });
        }
        Value::of(Shape::List(gives))
    }

    /// `generator.send(value)`, `generator.next(value)`: the function goes on with the value; `None` for other methods.
    pub fn sent_into(&mut self, base: &Value, name: &str, arguments: &Arguments) -> Option<Value> {
        if !matches!(name, "send" | "asend" | "throw" | "athrow" | "next" | "return") {
            return None;
        }
        let (_, value) = arguments.first()?;
        self.resume(base, value)
    }

    /// `yield from inner`: what is sent into the outer one goes to the inner one, whose values are given on.
    pub fn delegate(&mut self, inner: &Value, at: u32) -> Value {
        let sent = self.sent();
        if let Some(sent) = sent {
            self.at = at;
            self.resume(inner, &sent);
        }
        for value in self.elements(inner).unwrap_or_default() {
            self.yields(value);
        }
        inner.clone()
    }

    fn resume(&mut self, base: &Value, sent: &Value) -> Option<Value> {
        let Shape::List(gives) = &base.shape else { return None };
        let one = self.generators.iter().find(|one| Rc::ptr_eq(&one.gives, gives))?;
        let (function, scope) = (one.function.clone(), one.scope);
        let (arguments, this) = (one.arguments.clone(), one.this.clone());
        let value = self.enter_with(&function, scope, &arguments, this, Some(sent.clone()));
        // What comes next is any of what it gives.
        let taint = value.taint;
        Some(match self.elements(&value) {
            Some(list) => list.into_iter().take(4).reduce(Value::or).unwrap_or_default().with(taint),
            None => value,
        })
    }
}
