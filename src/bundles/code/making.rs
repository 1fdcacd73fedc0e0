//! What runs when a class is made: `__init_subclass__` of the classes above it, the class that makes it, and members that
//! are told their names.

use std::rc::Rc;

use super::Language;
use super::call::Arguments;
use super::follow::Walk;
use super::tree::Node;
use super::value::{Given, Shape, Value};

/// Named arguments of one definition, and members that are told their names.
const KEYWORDS_MAX: usize = 16;
/// Calls inside one another in which these functions still run.
const CALLS_MAX: usize = 6;

impl Walk<'_> {
    /// Runs what a definition of a class runs after its body.
    pub fn derived(
        &mut self,
        class: usize,
        name: &Rc<str>,
        keywords: &[(Option<Rc<str>>, Node)],
        scope: usize,
    ) {
        let mut given: Vec<Given> = Vec::new();
        let (mut maker, mut at) = (None, self.at);
        for (key, node) in keywords.iter().take(KEYWORDS_MAX) {
            let value = self.value(node, scope);
            at = node.at;
            match (key.as_deref(), &value.shape) {
                (Some("metaclass"), _) => maker = Some(value),
                (None, Shape::Map(entries)) => {
                    let entries = entries.iter().take(KEYWORDS_MAX);
                    given.extend(entries.map(|(name, value)| (Some(name.clone()), value.clone())));
                }
                _ => given.push((key.clone(), value)),
            }
        }
        if self.language == Language::Python {
            self.made_by(class, name, maker, &given, at);
            self.made_below(class, &given, at);
        }
    }

    /// Runs the class or function that makes a class.
    fn made_by(&mut self, class: usize, name: &Rc<str>, maker: Option<Value>, given: &Arguments, at: u32) {
        let inherited = || {
            let parents = &self.classes[class].parents;
            parents.iter().find_map(|parent| self.classes.get(*parent)?.maker)
        };
        let maker = maker.or_else(|| inherited().map(|maker| Value::of(Shape::Class(maker))));
        let Some(maker) = maker.filter(|_| self.calls < CALLS_MAX) else { return };
        let of_class = Value::of(Shape::Class(class));
        let mut arguments = vec![
            (None, Value::text(name.clone())),
            (None, Value::list(Vec::new())),
            (None, Value::of(Shape::Class(class))),
        ];
        arguments.extend(given.iter().cloned());
        let Shape::Class(number) = maker.shape else {
            if maker.is_callable() {
                self.call(&maker, &arguments, at, false);
            }
            return;
        };
        self.classes[class].maker = Some(number);
        for method in ["__prepare__", "__new__"] {
            if let Some(function) = self.in_class(number, method, 0) {
                self.call_of(&function, &maker, &arguments, at);
            }
        }
        if let Some(function) = self.in_class(number, "__init__", 0) {
            self.call_of(&function, &of_class, &arguments, at);
        }
    }

    /// Tells the classes above a class, and its members, that it was made.
    pub fn made_below(&mut self, class: usize, given: &Arguments, at: u32) {
        if self.calls >= CALLS_MAX {
            return;
        }
        let this = Value::of(Shape::Class(class));
        let parents = self.classes[class].parents.clone();
        let told = parents.iter().find_map(|parent| self.in_class(*parent, "__init_subclass__", 0));
        match told {
            Some(Value { shape: Shape::Partial(partial), .. }) => {
                self.call_of(&partial.0, &this, given, at);
            }
            Some(function) => {
                self.call_of(&function, &this, given, at);
            }
            None => {}
        }
        let names = &self.scopes[self.classes[class].scope].names;
        let mut members: Vec<(Rc<str>, Value)> = names
            .iter()
            .filter(|(_, value)| matches!(value.shape, Shape::Object(_)))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        members.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, member) in members.into_iter().take(KEYWORDS_MAX) {
            let Shape::Object(number) = member.shape else { continue };
            if let Some(function) = self.in_class(self.objects[number].class, "__set_name__", 0) {
                self.call_of(&function, &member, &[(None, this.clone()), (None, Value::text(name))], at);
            }
        }
    }

    /// What the class that made a class gives when that one is called; `None` when it does nothing of its own.
    pub fn called_class(&mut self, class: usize, arguments: &Arguments, at: u32) -> Option<Value> {
        let maker = self.classes.get(class)?.maker.filter(|_| self.calls < CALLS_MAX)?;
        let function = self.in_class(maker, "__call__", 0)?;
        let made = self.instance(class, arguments);
        let value = self.call_of(&function, &Value::of(Shape::Class(class)), arguments, at);
        Some(made.or(value))
    }
}
