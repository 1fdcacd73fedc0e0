//! Names brought to canonical ones: modules, members, elements, and what they mean.

use std::rc::Rc;

use super::Language;
use super::follow::Walk;
use super::taint::Taint;
use super::tree::{Kind, Node};
use super::value::{Shape, Value};

/// Bytes of a canonical name; a longer chain of calls is unknown.
const NAME_BYTES_MAX: usize = 160;

/// What a name that was put together is tainted with.
pub(super) const PUT_TOGETHER: Taint = Taint::union(&[Taint::HIDDEN, Taint::DECODED, Taint::ASSEMBLED]);

/// Functions of Python that need no import.
const BUILTINS: &[&str] = &[
    "abs",
    "all",
    "any",
    "bin",
    "bool",
    "breakpoint",
    "bytearray",
    "bytes",
    "callable",
    "chr",
    "compile",
    "delattr",
    "dict",
    "dir",
    "enumerate",
    "eval",
    "exec",
    "execfile",
    "exit",
    "filter",
    "float",
    "format",
    "frozenset",
    "getattr",
    "globals",
    "hasattr",
    "help",
    "hex",
    "input",
    "int",
    "isinstance",
    "iter",
    "len",
    "list",
    "locals",
    "map",
    "max",
    "memoryview",
    "min",
    "next",
    "object",
    "oct",
    "open",
    "ord",
    "print",
    "quit",
    "range",
    "raw_input",
    "reload",
    "repr",
    "reversed",
    "round",
    "set",
    "setattr",
    "slice",
    "sorted",
    "str",
    "sum",
    "super",
    "tuple",
    "type",
    "unichr",
    "unicode",
    "vars",
    "zip",
    "__import__",
    "__loader__",
];

/// Names of the global object of JavaScript.
const GLOBALS: &[&str] = &["globalThis", "window", "global", "self", "top", "frames", "parent"];

impl Walk<'_> {
    /// What a name means.
    pub fn name(&mut self, name: &Rc<str>, scope: usize) -> Value {
        if let Some(value) = self.lookup(name, scope) {
            return value.clone();
        }
        match self.language {
            Language::Python if matches!(&**name, "__builtins__" | "builtins" | "__builtin__") => {
                Value::api("builtins")
            }
            Language::Python if BUILTINS.contains(&&**name) => Value::api(format!("builtins.{name}")),
            Language::Python if &**name == "__file__" => Value::text("\0.py").with(Taint::HOST_FOLDER),
            Language::Python => {
                let known = |module: &Rc<str>| {
                    let full = format!("{module}.{name}");
                    let is_known = self.context.rules.apis_of(&full).next().is_some();
                    is_known.then_some(full)
                };
                match self.stars.iter().find_map(known) {
                    Some(full) => Value::api(full),
                    // A piece of code without its imports, or with imports in a branch that was not followed.
                    None if self.context.rules.is_module(name) && &**name != "file" => self.module(name, 0),
                    None => Value::default(),
                }
            }
            Language::JavaScript if GLOBALS.contains(&&**name) => Value::api("globalThis"),
            Language::JavaScript if &**name == "this" => Value::api("globalThis.this"),
            Language::JavaScript if matches!(&**name, "undefined" | "NaN") => Value::of(Shape::Null),
            Language::JavaScript if matches!(&**name, "__dirname" | "__filename") => {
                Value::text("\0").with(Taint::HOST_FOLDER)
            }
            Language::JavaScript => self.api(name),
        }
    }

    /// Something of a library by its canonical name, with what reading it gives.
    pub fn api(&mut self, name: &str) -> Value {
        if name.len() > NAME_BYTES_MAX {
            return Value::default();
        }
        if let Some(text) = super::library::constant(name) {
            return text;
        }
        let mut taint = Taint::NONE;
        let rules = self.context.rules;
        for api in rules.apis_of(name).filter(|api| api.is_value) {
            taint |= api.returns;
            self.seen.insert(api.class.clone());
        }
        Value::api(name).with(taint)
    }

    pub fn import(&mut self, local: &Rc<str>, module: &Rc<str>, at: u32, scope: usize) {
        let value = self.module(module, at);
        if !local.is_empty() {
            self.scopes[scope].names.insert(local.clone(), value);
        }
    }

    pub fn import_from(&mut self, local: &Rc<str>, module: &Rc<str>, name: &Rc<str>, at: u32, scope: usize) {
        let value = self.module(module, at);
        if &**name == "*" {
            if let Some(module) = value.api_name() {
                self.stars.push(module.clone());
            }
            return;
        }
        let value = self.member(&value, name, false);
        self.scopes[scope].names.insert(local.clone(), value);
    }

    /// A module by the name it is asked for with.
    pub fn module(&mut self, name: &str, at: u32) -> Value {
        if let Some(code) = super::library::code_of_address(name) {
            self.look_at_code(&code, at, "a module in a data: address");
        }
        let name = name.strip_prefix("node:").unwrap_or(name);
        let name = match (self.language, name) {
            (Language::Python, "__builtin__" | "builtins") => "builtins".to_owned(),
            (Language::Python, "posix" | "nt") => "os".to_owned(),
            (Language::Python, "cPickle" | "_pickle") => "pickle".to_owned(),
            (Language::Python, "urllib2") => "urllib.request".to_owned(),
            (Language::JavaScript, "fs-extra" | "graceful-fs") => "fs".to_owned(),
            (Language::JavaScript, name) => name.replace('/', "."),
            (Language::Python, name) => name.to_owned(),
        };
        self.api(&name)
    }

    /// `base.name`.
    pub fn member(&mut self, base: &Value, name: &Rc<str>, is_hidden: bool) -> Value {
        let hidden = if is_hidden { Taint::HIDDEN } else { Taint::NONE };
        let method = |base: &Value| {
            Value::of(Shape::Method(Rc::new((base.clone(), name.clone()))))
                .with(base.taint | hidden)
                .about(base.about.clone())
        };
        if base.taint.meets(Taint::ENVIRONMENT) && super::library::is_variable(name) {
            let rest = base.taint.without(Taint::ENVIRONMENT);
            return self.variable(name).with(rest);
        }
        match &**name {
            "__builtins__" => return Value::api("builtins").with(Taint::HIDDEN),
            "__globals__" => return Value::api("builtins.globals()"),
            _ => {}
        }
        match &base.shape {
            Shape::Any(values) => {
                let parts: Vec<_> = values.iter().map(|value| self.member(value, name, is_hidden)).collect();
                parts.into_iter().reduce(Value::or).unwrap_or_default()
            }
            Shape::Api(path) => self.member_of_api(base, path, name).with(hidden),
            Shape::Map(_) => match base.entry(name) {
                Some(value) => value.clone().with(base.taint | hidden),
                None => method(base),
            },
            Shape::Object(number) => {
                let object = &self.objects[*number];
                if let Some(value) = object.fields.get(name) {
                    return value.clone();
                }
                match self.in_class(object.class, name, 0) {
                    Some(Value { shape: Shape::Function(function, scope), .. }) => {
                        let bound = (Value::of(Shape::Function(function, scope)), base.clone());
                        Value::of(Shape::Bound(Rc::new(bound)))
                    }
                    Some(value) => value,
                    None => method(base),
                }
            }
            Shape::Class(number) => match self.in_class(*number, name, 0) {
                Some(value) => value,
                None if &**name == "__base__" => Value::api("object.__base__"),
                None => method(base),
            },
            // The class of something that is not known.
            Shape::Method(inner) if matches!(inner.0.shape, Shape::Unknown) && &**name == "constructor" => {
                Value::api("object.__class__").with(base.taint)
            }
            Shape::Function(..) | Shape::Bound(_) | Shape::Partial(_) | Shape::Method(_)
                if &**name == "constructor" =>
            {
                Value::api("Function").with(Taint::HIDDEN)
            }
            Shape::Text(_)
            | Shape::List(_)
            | Shape::Bytes(_)
            | Shape::Number(_)
            | Shape::Bool(_)
            | Shape::Null
                if matches!(&**name, "__class__" | "constructor") =>
            {
                Value::api("object.__class__").with(hidden)
            }
            Shape::Unknown if &**name == "constructor" => Value::api("object.__class__").with(base.taint),
            Shape::Text(text) if &**name == "length" => Value::of(Shape::Number(text.chars().count() as f64)),
            Shape::List(list) if &**name == "length" => Value::of(Shape::Number(list.len() as f64)),
            // Parts of a path.
            Shape::Text(text) if matches!(&**name, "parent" | "parents") => {
                let parent = text.rsplit_once('/').map_or("\0", |(parent, _)| parent);
                Value::text(parent).with(base.taint)
            }
            // A method of a method of something unknown is a method of something unknown.
            Shape::Method(inner) if matches!(inner.0.shape, Shape::Unknown) => {
                method(&Value::unknown(base.taint).about(base.about.clone()))
            }
            _ => method(base),
        }
    }

    fn member_of_api(&mut self, base: &Value, path: &Rc<str>, name: &Rc<str>) -> Value {
        let full = match (&**path, &**name) {
            ("globalThis", name) if GLOBALS.contains(&name) => "globalThis".to_owned(),
            ("globalThis", name) => name.to_owned(),
            // A module's only export is the module; a promise of a module gives it.
            (path, "default" | "exports") if self.language == Language::JavaScript => path.to_owned(),
            ("object.__class__" | "Function", "constructor") => {
                return Value::api("Function").with(base.taint | Taint::HIDDEN);
            }
            (path, "constructor") if path.starts_with("Object.getPrototypeOf()") => {
                return Value::api("Function").with(base.taint | Taint::HIDDEN);
            }
            ("Function", "prototype") => "Function".to_owned(),
            ("object.__class__" | "object.__base__", "__base__" | "__bases__" | "__mro__") => {
                "object.__base__".to_owned()
            }
            (path, "__call__") => path.to_owned(),
            (path, "__self__") if path.starts_with("builtins.") => "builtins".to_owned(),
            (_, "__class__") if self.language == Language::Python => "object.__class__".to_owned(),
            (
                "process.mainModule" | "require.main" | "module" | "module.constructor",
                "require" | "_load",
            ) => "require".to_owned(),
            (path, name) => format!("{path}.{name}"),
        };
        let value = self.api(&full);
        // A function of the language has a constructor that makes functions of text.
        if &**name == "constructor" && value.api_name().is_some_and(|full| full.ends_with(".constructor")) {
            return Value::api(if self.context.rules.apis_of(path).next().is_some() {
                "Function"
            } else {
                "object.__class__"
            })
            .with(Taint::HIDDEN);
        }
        value.with(base.taint).about(base.about.clone())
    }

    /// `base[index]`; `is_plain` when the index is a literal.
    pub fn index(&mut self, base: &Value, index: &Value, is_plain: bool) -> Value {
        if let Shape::Any(values) = &base.shape {
            let parts: Vec<_> = values.iter().map(|value| self.index(value, index, is_plain)).collect();
            return parts.into_iter().reduce(Value::or).unwrap_or_default();
        }
        let taint = base.taint | (index.taint & Taint::HIDDEN);
        if let (Some(number), false) = (index.as_number(), matches!(index.shape, Shape::Text(_))) {
            if let Some(value) = super::fold::element(base, number) {
                return value;
            }
            // One of the classes that a class is made of is a class.
            if base.api_name().is_some_and(|path| &**path == "object.__base__") {
                return base.clone();
            }
            return Value::unknown(base.deep_taint()).about(base.about.clone());
        }
        let Some(name) = index.known_text() else {
            // Some element of it: any of them.
            return match &base.shape {
                Shape::Map(entries) if entries.len() <= 4 => {
                    let values = entries.iter().map(|(_, value)| value.clone());
                    values.reduce(Value::or).unwrap_or_default().with(taint)
                }
                Shape::Api(path) if base.taint.meets(Taint::ENVIRONMENT) || path.ends_with(".env") => {
                    Value::unknown(Taint::VARIABLE | base.taint.without(Taint::ENVIRONMENT))
                }
                _ => Value::unknown(base.deep_taint()).about(base.about.clone()),
            };
        };
        let is_put_together = index.taint.meets(PUT_TOGETHER) && !is_plain;
        match &base.shape {
            Shape::Api(path) => match &**path {
                "builtins.globals()" | "builtins.locals()" | "builtins.vars()" => {
                    let found = self.lookup(&name, 0).cloned().unwrap_or_else(|| self.name(&name, 0));
                    found.with(if is_put_together { Taint::HIDDEN } else { Taint::NONE })
                }
                "sys.modules" => {
                    let hidden = if is_put_together { Taint::HIDDEN } else { Taint::NONE };
                    self.module(&name, 0).with(hidden)
                }
                "builtins" | "builtins.__dict__" => {
                    Value::api(format!("builtins.{name}")).with(Taint::HIDDEN)
                }
                "globalThis" => self.member(base, &name, true),
                path if path.ends_with(".__dict__") => {
                    let owner = path.trim_end_matches(".__dict__");
                    self.api(&format!("{owner}.{name}")).with(Taint::HIDDEN)
                }
                _ => self.member(base, &name, is_put_together),
            },
            Shape::Map(_) => match base.entry(&name) {
                Some(value) => value.clone().with(taint),
                None => Value::unknown(base.deep_taint()),
            },
            Shape::Unknown if self.language == Language::JavaScript && !is_plain => {
                self.member(base, &name, is_put_together).with(Taint::ASSEMBLED)
            }
            _ if self.language == Language::JavaScript => self.member(base, &name, is_put_together),
            _ => Value::unknown(base.deep_taint()).about(base.about.clone()),
        }
    }

    /// Assigns to a member or an element.
    pub fn store(&mut self, place: &Node, value: Value, scope: usize) {
        let (base_node, key) = match &place.kind {
            Kind::Member(base, name) => (base, Some(name.clone())),
            Kind::Index(base, index) => {
                let index = self.value(index, scope);
                (base, index.known_text())
            }
            _ => {
                self.value(place, scope);
                return;
            }
        };
        let base = self.value(base_node, scope);
        let taint = value.deep_taint();
        match (&base.shape, &key) {
            (Shape::Object(number), Some(key)) => {
                let fields = &mut self.objects[*number].fields;
                let value = match fields.remove(key) {
                    Some(old) => old.or(value),
                    None => value,
                };
                fields.insert(key.clone(), value);
            }
            (Shape::Api(path), Some(key)) => {
                let name = format!("{path}.{key}=");
                self.record(&name, &[(None, value)], place.at, Taint::NONE);
            }
            (Shape::Map(entries), Some(key)) if self.step(entries.len() / 2) => {
                let mut entries = (**entries).clone();
                entries.retain(|(name, _)| name != key);
                entries.push((key.clone(), value));
                self.rebind(base_node, Value { shape: Shape::Map(Rc::new(entries)), ..base.clone() }, scope);
            }
            (Shape::Any(_) | Shape::Function(..) | Shape::Class(_), _) => {}
            _ => self.rebind(base_node, base.clone().with(taint), scope),
        }
    }

    /// What was changed in place is bound anew.
    pub fn rebind(&mut self, node: &Node, value: Value, scope: usize) {
        if let Kind::Name(name) = &node.kind {
            self.replace(name, value, scope);
        } else if let Kind::Member(base, name) = &node.kind
            && let Shape::Object(number) = self.value(base, scope).shape
        {
            self.objects[number].fields.insert(name.clone(), value);
        }
    }
}
