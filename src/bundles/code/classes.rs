//! Classes of the file: their members and those they derive from, the instances that are made of them, and functions that are
//! used as classes.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::Language;
use super::follow::Walk;
use super::taint::Taint;
use super::tree::{Class, Function};
use super::value::{Shape, Value};

/// A class of the file.
#[derive(Default)]
pub(super) struct ClassInfo {
    pub scope: usize,
    /// Classes of the file that it derives from.
    pub parents: Vec<usize>,
    /// Members that are given to it when an instance is made, in their order.
    pub fields: Vec<Rc<str>>,
    /// The class of the file that made it.
    pub maker: Option<usize>,
}

/// An instance.
#[derive(Default)]
pub(super) struct Object {
    pub class: usize,
    pub fields: HashMap<Rc<str>, Value>,
}

impl Walk<'_> {
    /// Classes that libraries run by themselves.
    fn derived_from(&mut self, bases: &[Rc<str>]) {
        for base in bases {
            for api in self.context.rules.apis_of(base) {
                self.seen.insert(api.class.clone());
            }
        }
    }

    pub fn class(&mut self, class: &Class, scope: usize) -> Value {
        let (mut bases, mut parents) = (Vec::new(), Vec::new());
        for base in &class.bases {
            let base = self.value(base, scope);
            match base.shape {
                Shape::Api(name) => bases.push(name),
                Shape::Class(number) => parents.push(number),
                _ => {}
            }
        }
        let inner = self.scope(scope);
        let number = self.classes.len();
        self.derived_from(&bases);
        let info = ClassInfo { scope: inner, parents, fields: class.fields.clone(), maker: None };
        self.classes.push(info);
        let before = self.functions.len();
        if self.language == Language::Python
            && let Some(text) = super::follow::first_text(&class.body)
        {
            let text = Value::text(text).with(Taint::OWN_TEXT);
            self.scopes[inner].names.insert(Rc::from("__doc__"), text);
        }
        self.block(&class.body, inner);
        // Methods of the class itself know it.
        for value in self.scopes[inner].names.values_mut() {
            if let Shape::Partial(partial) = &value.shape
                && let [(None, Value { shape: Shape::Unknown, .. })] = partial.1.as_slice()
            {
                let class = (None, Value::of(Shape::Class(number)));
                value.shape = Shape::Partial(Rc::new((partial.0.clone(), vec![class])));
            }
        }
        // Methods that nothing calls are walked with an instance of their own.
        let names = &self.scopes[inner].names;
        let methods: HashSet<*const Function> = names.values().flat_map(functions_of).collect();
        for (function, _, class) in &mut self.functions[before..] {
            if methods.contains(&Rc::as_ptr(function)) {
                *class = Some(number);
            }
        }
        let name = class.name.clone().unwrap_or_default();
        self.derived(number, &name, &class.keywords, scope);
        Value::of(Shape::Class(number))
    }

    /// Makes an instance and runs what makes it.
    pub fn instance(&mut self, class: usize, arguments: &[(Option<Rc<str>>, Value)]) -> Value {
        self.instances.entry(class).or_insert(self.objects.len());
        self.objects.push(Object { class, fields: HashMap::new() });
        let object = Value::of(Shape::Object(self.objects.len() - 1));
        let maker = if self.language == Language::Python { "__init__" } else { "constructor" };
        if let Some(Shape::Function(function, scope)) =
            self.in_class(class, maker, 0).map(|value| value.shape)
        {
            self.enter(&function, scope, arguments, Some(object.clone()));
        } else if self.language == Language::Python {
            self.fill(class, arguments);
        }
        object
    }

    /// Gives the members of the newest instance the values that it was made with.
    fn fill(&mut self, class: usize, arguments: &[(Option<Rc<str>>, Value)]) {
        let fields = self.classes.get(class).map(|info| info.fields.clone()).unwrap_or_default();
        let mut unnamed = fields.into_iter();
        let Some(object) = self.objects.last_mut() else { return };
        for (name, value) in arguments.iter().take(64) {
            if let Some(name) = name.clone().or_else(|| unnamed.next()) {
                object.fields.insert(name, value.clone());
            }
        }
    }

    /// The class that a function is when instances are made by it.
    pub fn class_of(&mut self, function: &Rc<Function>, scope: usize) -> usize {
        if let Some(number) = self.prototypes.get(&Rc::as_ptr(function)) {
            return *number;
        }
        let inner = self.scope(scope);
        let maker = Value::of(Shape::Function(function.clone(), scope));
        self.scopes[inner].names.insert(Rc::from("constructor"), maker);
        self.classes.push(ClassInfo { scope: inner, ..ClassInfo::default() });
        self.prototypes.insert(Rc::as_ptr(function), self.classes.len() - 1);
        self.classes.len() - 1
    }

    /// The class that a function is, if it was used as one.
    pub fn known_class_of(&self, function: &Rc<Function>) -> Option<usize> {
        self.prototypes.get(&Rc::as_ptr(function)).copied()
    }

    /// A name of a class or of those it derives from.
    pub fn in_class(&self, class: usize, name: &str, depth: usize) -> Option<Value> {
        let info = self.classes.get(class).filter(|_| depth < 8)?;
        match self.scopes[info.scope].names.get(name) {
            Some(value) => Some(value.clone()),
            None => info.parents.iter().find_map(|parent| self.in_class(*parent, name, depth + 1)),
        }
    }

    /// The instance that methods without a caller have.
    pub fn shared_instance(&mut self, class: usize) -> Value {
        if let Some(number) = self.instances.get(&class) {
            return Value::of(Shape::Object(*number));
        }
        self.instance(class, &[])
    }
}

/// The functions that a member of a class is made of.
fn functions_of(value: &Value) -> Vec<*const Function> {
    match &value.shape {
        Shape::Function(function, _) => vec![Rc::as_ptr(function)],
        Shape::Getter(getter) => functions_of(getter),
        Shape::Partial(partial) if !partial.1.is_empty() => functions_of(&partial.0),
        Shape::Any(values) => values.iter().flat_map(functions_of).collect(),
        _ => Vec::new(),
    }
}
