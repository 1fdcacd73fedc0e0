//! Members and elements that are given a value: by assignment, and by the functions that assign.
//!
//! Instances, classes, functions and what belongs to libraries are one thing under all their names and are changed in
//! place. Lists and maps are values: the changed one is bound anew, where it was taken from.

use std::rc::Rc;

use super::Language;
use super::call::Arguments;
use super::follow::Walk;
use super::taint::Taint;
use super::tree::{Argument, Kind, Node};
use super::value::{ELEMENTS_MAX, Given, Shape, Value};

/// Members of libraries and of the global object that a file may give a value.
const PATCHES_MAX: usize = 256;
/// Members that one call gives a value.
const MEMBERS_MAX: usize = 64;
/// Members of members of members that are bound anew.
const CHAIN_MAX: usize = 8;
/// Calls inside one another in which a class may still stand in for assignment.
const CALLS_MAX: usize = 4;
/// Things that are filled piece by piece and then sent or read as one.
const COLLECTING: &[&str] = &[
    "FormData()",
    "form-data()",
    "URLSearchParams()",
    "MIMEMultipart()",
    "EmailMessage()",
    "BytesIO()",
    "StringIO()",
    "JSZip()",
    "AdmZip()",
];
/// The name under which a class or map keeps what is run when a member is assigned to.
pub(super) const SETTER: &str = ".setter";

/// What a value is put under.
#[derive(Clone)]
pub(super) enum Key {
    Name(Rc<str>),
    Number(f64),
    Unknown,
}

impl Key {
    /// The key that a value is.
    pub fn of(value: &Value) -> Self {
        match (&value.shape, value.known_text()) {
            (Shape::Number(number), _) => Self::Number(*number),
            (_, Some(name)) => Self::Name(name),
            _ => Self::Unknown,
        }
    }

    fn name(&self) -> Option<Rc<str>> {
        match self {
            Self::Name(name) => Some(name.clone()),
            Self::Number(number) => Some(Rc::from(number.to_string())),
            Self::Unknown => None,
        }
    }
}

impl Walk<'_> {
    /// Assigns to a member or an element.
    pub fn store(&mut self, place: &Node, value: Value, scope: usize) {
        let Some((base_node, key)) = self.place(place, scope) else {
            self.value(place, scope);
            return;
        };
        let base = self.value(base_node, scope);
        self.put(Some(base_node), &base, &key, value, place.at, scope);
    }

    /// What a place is a part of, and under which key.
    fn place<'n>(&mut self, place: &'n Node, scope: usize) -> Option<(&'n Node, Key)> {
        match &place.kind {
            Kind::Member(base, name) => Some((base, Key::Name(name.clone()))),
            Kind::Index(base, index) => {
                let index = self.value(index, scope);
                Some((base, Key::of(&index)))
            }
            _ => None,
        }
    }

    /// Puts a value under a key of something; `node` is where that stands.
    pub fn put(&mut self, node: Option<&Node>, base: &Value, key: &Key, value: Value, at: u32, scope: usize) {
        if let Shape::Api(path) = &base.shape
            && let Some(name) = key.name()
        {
            self.record(&format!("{path}.{name}="), &[(None, value.clone())], at, Taint::NONE);
        }
        if let Key::Name(name) = key {
            self.shown(name, &value, at);
        }
        if let Some(changed) = self.changed(base, key, value, false)
            && let Some(node) = node
        {
            self.rebind(node, changed, scope);
        }
    }

    /// What was changed in place is bound anew.
    pub fn rebind(&mut self, node: &Node, value: Value, scope: usize) {
        let (mut node, mut value) = (node, value);
        for _ in 0..CHAIN_MAX {
            if let Kind::Name(name) = &node.kind {
                self.replace(name, value, scope);
                return;
            }
            let Some((base_node, key)) =
                self.place(node, scope).filter(|(base, _)| is_chain(base, CHAIN_MAX))
            else {
                return;
            };
            let base = self.value(base_node, scope);
            match self.changed(&base, &key, value, true) {
                Some(changed) => (node, value) = (base_node, changed),
                None => return,
            }
        }
    }

    /// What a value is with another one under a key; `None` when it was changed in place. `is_over` when that is what
    /// stood there before, changed.
    fn changed(&mut self, base: &Value, key: &Key, value: Value, is_over: bool) -> Option<Value> {
        let taint = value.deep_taint();
        match (&base.shape, key) {
            (Shape::Any(choices), _) => {
                let mut is_changed = false;
                let mut out = Vec::with_capacity(choices.len());
                for choice in choices.iter() {
                    let changed = self.changed(choice, key, value.clone(), is_over);
                    is_changed |= changed.is_some();
                    out.push(changed.unwrap_or_else(|| choice.clone()));
                }
                is_changed.then(|| Value { shape: Shape::Any(Rc::new(out)), ..base.clone() }.with(taint))
            }
            (Shape::Object(number), _) => {
                let class = self.objects[*number].class;
                if self.set_by_class(base, class, key, &value) {
                    return None;
                }
                let Some(name) = key.name() else { return Some(base.clone().with(taint)) };
                let fields = &mut self.objects[*number].fields;
                let value = match fields.remove(&name) {
                    Some(old) if !is_over => old.or(value),
                    _ => value,
                };
                fields.insert(name, value);
                None
            }
            (Shape::Class(number), _) => {
                self.keep(*number, key, value, is_over);
                None
            }
            (Shape::Function(function, scope), _) => {
                let number = self.class_of(function, *scope);
                self.keep(number, key, value, is_over);
                None
            }
            (Shape::Api(path), Key::Name(name)) => {
                self.patch(path, name, value);
                None
            }
            (Shape::Map(entries), _) => {
                let name = key.name();
                if let Some(setter) = name.as_ref().and_then(|name| base.entry(&format!("{name}{SETTER}"))) {
                    let (setter, at) = (setter.clone(), self.at);
                    self.call_of(&setter, base, &[(None, value)], at);
                    return None;
                }
                if !self.step(entries.len() / 2) || (name.is_none() && !is_function(&value)) {
                    return Some(base.clone().with(taint));
                }
                // A function under a key that is not known is found under every other one.
                let name = name.unwrap_or_else(|| Rc::from("\0"));
                let mut entries = (**entries).clone();
                entries.retain(|(known, _)| *known != name);
                entries.push((name, value));
                Some(Value { shape: Shape::Map(Rc::new(entries)), ..base.clone() })
            }
            (Shape::List(values), Key::Number(number)) if *number >= 0.0 && values.len() < ELEMENTS_MAX => {
                if !self.step(values.len() / 2) {
                    return Some(base.clone().with(taint));
                }
                let mut values = (**values).clone();
                match values.get_mut(*number as usize) {
                    Some(old) => *old = value,
                    None => values.push(value),
                }
                Some(Value { shape: Shape::List(Rc::new(values)), ..base.clone() })
            }
            // Something that is not known has at least what it is given.
            (Shape::Unknown, Key::Name(name)) if is_kept(&value, is_over) => {
                let object = self.plain_object();
                let Shape::Object(number) = object.shape else { return None };
                self.objects[number].fields.insert(name.clone(), value);
                Some(Value { shape: object.shape, ..base.clone() })
            }
            _ => Some(base.clone().with(taint)),
        }
    }

    /// Whether a class has a method of its own for what is assigned to its instances; it is run.
    fn set_by_class(&mut self, base: &Value, class: usize, key: &Key, value: &Value) -> bool {
        if self.calls >= CALLS_MAX {
            return false;
        }
        let at = self.at;
        if let Key::Name(name) = key
            && let Some(setter) = self.in_class(class, &format!("{name}{SETTER}"), 0)
        {
            self.call_of(&setter, base, &[(None, value.clone())], at);
            return true;
        }
        if self.language == Language::Python
            && let Some(setter) = self.in_class(class, "__setitem__", 0)
        {
            let key = match key {
                Key::Name(name) => Value::text(name.clone()),
                Key::Number(number) => Value::of(Shape::Number(*number)),
                Key::Unknown => Value::default(),
            };
            self.call_of(&setter, base, &[(None, key), (None, value.clone())], at);
        }
        false
    }

    /// Keeps a member of a class.
    fn keep(&mut self, class: usize, key: &Key, value: Value, is_over: bool) {
        let Some(name) = key.name() else { return };
        let scope = self.classes[class].scope;
        let names = &mut self.scopes[scope].names;
        let value = match names.remove(&name) {
            Some(old) if !is_over => old.or(value),
            _ => value,
        };
        names.insert(name, value);
    }

    /// Gives a member of a library, of a module or of the global object another value.
    pub fn patch(&mut self, path: &str, name: &Rc<str>, value: Value) {
        let owner = path.strip_suffix(".__dict__").unwrap_or(path);
        if matches!(owner, "globalThis" | "builtins.globals()" | "builtins.locals()" | "builtins.vars()") {
            let names = &mut self.scopes[0].names;
            let value = match names.remove(name) {
                Some(old) => old.or(value),
                None => value,
            };
            names.insert(name.clone(), value);
        } else if self.patched.len() < PATCHES_MAX && !matches!(value.shape, Shape::Unknown | Shape::Null) {
            let full: Rc<str> = Rc::from(format!("{owner}.{name}"));
            let value = match self.patched.remove(&full) {
                Some(old) => old.or(value),
                None => value,
            };
            self.patched.insert(full, value);
        }
    }

    /// An instance of nothing known.
    pub fn plain_object(&mut self) -> Value {
        self.objects.push(super::classes::Object { class: usize::MAX, ..Default::default() });
        Value::of(Shape::Object(self.objects.len() - 1))
    }

    /// Runs what is done by the functions that assign; `None` when it is another function.
    pub fn assigning(
        &mut self,
        callee: &Value,
        function: &Node,
        nodes: &[Argument],
        given: &Arguments,
        scope: usize,
    ) -> Option<Value> {
        if nodes.iter().any(|argument| argument.is_spread) {
            return None;
        }
        let node = |nth: usize| nodes.get(nth).map(|argument| &argument.value);
        let value = |nth: usize| given.get(nth).map(|(_, value)| value.clone());
        let at = function.at;
        if let Shape::Api(path) = &callee.shape {
            self.define(path, nodes, given, at, scope);
        }
        match &callee.shape {
            Shape::Api(path) => match &**path {
                "builtins.setattr"
                | "builtins.object.__setattr__"
                | "builtins.type.__setattr__"
                | "builtins.dict.__setitem__"
                | "operator.setitem"
                | "Reflect.set" => {
                    self.put(node(0), &value(0)?, &Key::of(&value(1)?), value(2)?, at, scope);
                    Some(Value::default())
                }
                "Object.defineProperty" | "Reflect.defineProperty" => {
                    let described = described(&value(2)?);
                    self.put(node(0), &value(0)?, &Key::of(&value(1)?), described, at, scope);
                    value(0)
                }
                "Object.defineProperties" | "Object.assign" | "Object.setPrototypeOf" => {
                    let mut members = Vec::new();
                    for (_, more) in given.get(1..)? {
                        let Shape::Map(entries) = &more.shape else { continue };
                        members.extend(entries.iter().take(MEMBERS_MAX).map(|(name, value)| {
                            let is_described = &**path == "Object.defineProperties";
                            (Some(name.clone()), if is_described { described(value) } else { value.clone() })
                        }));
                    }
                    self.put_all(node(0), value(0)?, members, at, scope);
                    // What comes of it is told by the library where it is a map.
                    if matches!(value(0)?.shape, Shape::Map(_)) { None } else { value(0) }
                }
                path => {
                    let (owner, name) = path.rsplit_once('.')?;
                    self.collected(owner, name, function, given, scope);
                    let is_table = owner.ends_with(".__dict__")
                        || matches!(owner, "builtins.globals()" | "builtins.locals()" | "builtins.vars()");
                    if !is_table {
                        return None;
                    }
                    let owner = Value::api(owner);
                    self.put_by_method(None, &owner, name, given, at, scope)
                }
            },
            Shape::Method(method) => {
                let owner = match &function.kind {
                    Kind::Member(owner, _) => Some(&**owner),
                    _ => None,
                };
                let is_known = matches!(method.0.shape, Shape::Object(_) | Shape::Class(_) | Shape::Map(_));
                if !is_known || (matches!(method.0.shape, Shape::Map(_)) && &*method.1 == "update") {
                    return None;
                }
                self.put_by_method(owner, &method.0, &method.1, given, at, scope)
            }
            _ => None,
        }
    }

    /// What is put into something that is sent or read later is in it, and so is what it reads from a file.
    fn collected(&mut self, owner: &str, name: &str, function: &Node, given: &Arguments, scope: usize) {
        let made = owner.rsplit('.').next().unwrap_or_default();
        let is_growth = matches!(
            name,
            "append"
                | "set"
                | "add"
                | "add_field"
                | "attach"
                | "write"
                | "writestr"
                | "set_content"
                | "set_payload"
                | "add_attachment"
        ) && COLLECTING.contains(&made);
        let is_reading = name == "read" && made.ends_with("ConfigParser()");
        let taint = match is_reading {
            true => {
                let files = given.iter().filter_map(|(_, value)| value.as_text());
                files.fold(Taint::NONE, |all, file| all | self.contents(&file)) & Taint::CREDENTIALS
            }
            false => given.iter().fold(Taint::NONE, |all, (_, value)| all | value.deep_taint()),
        };
        if (is_growth || is_reading)
            && !taint.is_none()
            && let Kind::Member(base, _) = &function.kind
            && matches!(base.kind, Kind::Name(_))
        {
            let grown = self.value(base, scope).with(taint);
            self.rebind(base, grown, scope);
        }
    }

    /// `owner.update(…)`, `owner.setdefault(key, value)` and their like.
    fn put_by_method(
        &mut self,
        node: Option<&Node>,
        owner: &Value,
        name: &str,
        given: &Arguments,
        at: u32,
        scope: usize,
    ) -> Option<Value> {
        match (name, given) {
            ("update", _) => {
                let mut members: Vec<Given> = Vec::new();
                for (name, value) in given.iter().take(MEMBERS_MAX) {
                    match (name, &value.shape) {
                        (Some(_), _) => members.push((name.clone(), value.clone())),
                        (None, Shape::Map(entries)) => {
                            let entries = entries.iter().take(MEMBERS_MAX);
                            members.extend(entries.map(|(name, value)| (Some(name.clone()), value.clone())));
                        }
                        _ => {}
                    }
                }
                self.put_all(node, owner.clone(), members, at, scope);
                Some(Value::default())
            }
            ("setdefault" | "__setitem__" | "set" | "__setattr__", [(_, key), (_, value)]) => {
                self.put(node, owner, &Key::of(key), value.clone(), at, scope);
                Some(if name == "set" { owner.clone() } else { value.clone() })
            }
            _ => None,
        }
    }

    pub fn put_all(&mut self, node: Option<&Node>, base: Value, members: Vec<Given>, at: u32, scope: usize) {
        let mut base = base;
        for (name, value) in members.into_iter().take(MEMBERS_MAX) {
            let Some(name) = name else { continue };
            if let Shape::Api(path) = &base.shape {
                self.record(&format!("{path}.{name}="), &[(None, value.clone())], at, Taint::NONE);
            }
            if let Some(changed) = self.changed(&base, &Key::Name(name), value, false) {
                base = changed;
            }
        }
        if let Some(node) = node.filter(|_| matches!(base.shape, Shape::Map(_) | Shape::Object(_))) {
            self.rebind(node, base, scope);
        }
    }
}

/// What a member is that is described by a map, as `Object.defineProperty` reads it.
fn described(map: &Value) -> Value {
    match (map.entry("value"), map.entry("get")) {
        (Some(value), _) => value.clone(),
        (None, Some(get)) => Value::of(Shape::Getter(Rc::new(get.clone()))),
        (None, None) => Value::unknown(map.deep_taint()),
    }
}

/// Whether a value is a function that is known, or may be.
fn is_function(value: &Value) -> bool {
    match &value.shape {
        Shape::Any(values) => values.iter().any(is_function),
        Shape::Method(method) => !matches!(method.0.shape, Shape::Unknown),
        _ => value.is_callable(),
    }
}

/// Whether what is put into something that is not known is worth to be kept beside it.
fn is_kept(value: &Value, is_over: bool) -> bool {
    match is_over {
        true => matches!(value.shape, Shape::Object(_) | Shape::Map(_) | Shape::List(_)),
        false => is_function(value),
    }
}

/// Whether something is named by names and members alone, so that nothing is run when it is looked up again.
fn is_chain(node: &Node, left: usize) -> bool {
    match &node.kind {
        Kind::Name(_) => true,
        Kind::Member(base, _) => left > 0 && is_chain(base, left - 1),
        Kind::Index(base, index) => {
            let is_plain = matches!(index.kind, Kind::Text(_) | Kind::Number(_) | Kind::Name(_));
            left > 0 && is_plain && is_chain(base, left - 1)
        }
        _ => false,
    }
}
