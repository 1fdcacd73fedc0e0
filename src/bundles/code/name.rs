//! Names brought to canonical ones: modules, members, elements, and what they mean.

use std::rc::Rc;

use super::Language;
use super::follow::Walk;
use super::taint::Taint;
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
    "staticmethod",
    "classmethod",
    "property",
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

/// Modules of Python that other modules import and so hand on.
const HANDED_ON: &[&str] =
    &["os", "sys", "subprocess", "builtins", "importlib", "socket", "shutil", "pty", "ctypes", "posix", "nt"];

/// Builders of which nearly every method gives the builder itself, by canonical names.
const FLUENT: &[&str] = &[
    "commander.program",
    "commander.Command()",
    "commander",
    "yargs",
    "yargs()",
    "yargs.yargs()",
    "cac()",
    "sade()",
];

/// The builder that a method of it gives; `None` for other functions.
pub(super) fn fluent(path: &str) -> Option<&str> {
    let (owner, method) = path.rsplit_once('.')?;
    let gives_more = matches!(
        method,
        "opts"
            | "optsWithGlobals"
            | "parse"
            | "parseSync"
            | "parseAsync"
            | "getOptionValue"
            | "Command"
            | "yargs"
    );
    (FLUENT.contains(&owner) && !gives_more).then_some(owner)
}

/// Whether a name that is bound nowhere is that of an exception of the language.
fn is_exception(name: &str) -> bool {
    (name.ends_with("Error") || name.ends_with("Exception") || matches!(name, "SystemExit" | "StopIteration"))
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase())
}

/// Whether a name is that of a table of the names of the file.
fn is_names(path: &str) -> bool {
    matches!(path, "builtins.globals()" | "builtins.locals()" | "builtins.vars()")
}

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
            Language::Python if is_exception(name) => Value::api("builtins.Exception"),
            Language::Python if BUILTINS.contains(&&**name) => self.api(&format!("builtins.{name}")),
            Language::Python if &**name == "__name__" => Value::text("__main__"),
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
                    // Whoever runs the text gives it.
                    None => Value::unknown(Taint::PARAMETER),
                }
            }
            Language::JavaScript if GLOBALS.contains(&&**name) => Value::api("globalThis"),
            Language::JavaScript if &**name == "this" => Value::api("globalThis.this"),
            Language::JavaScript if matches!(&**name, "undefined" | "NaN") => Value::of(Shape::Null),
            Language::JavaScript if &**name == "__filename" => Value::text("\0.py").with(Taint::HOST_FOLDER),
            Language::JavaScript if &**name == "__dirname" => Value::text("\0").with(Taint::HOST_FOLDER),
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
        if let Some(patched) = self.patched.get(name) {
            return patched.clone().or(Value::api(name));
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
        let sibling = if local.is_empty() { None } else { self.sibling(module, at) };
        let value = match sibling {
            Some(value) => value,
            None => self.module(module, at),
        };
        // It gives the global object its names.
        if &**module == "zx/globals" {
            self.scopes[0].names.insert(Rc::from("$"), Value::api("zx.$"));
        }
        if !local.is_empty() {
            self.scopes[scope].names.insert(local.clone(), value);
        }
    }

    pub fn import_from(&mut self, local: &Rc<str>, module: &Rc<str>, name: &Rc<str>, at: u32, scope: usize) {
        if &**name == "*"
            && let Some(names) = self.sibling_names(module, at)
        {
            self.scopes[scope].names.extend(names);
            return;
        }
        if let Some(value) = self.sibling_name(module, name, at) {
            self.scopes[scope].names.insert(local.clone(), value);
            return;
        }
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
        let value = self.member_as_kept(base, name, is_hidden);
        self.got(value, base)
    }

    /// What comes of reading a member: that of a function where one stands behind it.
    fn got(&mut self, value: Value, base: &Value) -> Value {
        match &value.shape {
            Shape::Getter(getter) => {
                let at = self.at;
                self.call_of(getter, base, &[], at).with(value.taint)
            }
            Shape::Any(values) if values.iter().any(|value| matches!(value.shape, Shape::Getter(_))) => {
                let values: Vec<_> = values.iter().map(|value| self.got(value.clone(), base)).collect();
                values.into_iter().reduce(Value::or).unwrap_or_default()
            }
            _ => value,
        }
    }

    fn member_as_kept(&mut self, base: &Value, name: &Rc<str>, is_hidden: bool) -> Value {
        let hidden = if is_hidden { Taint::HIDDEN } else { Taint::NONE };
        let method = |base: &Value| {
            Value::of(Shape::Method(Rc::new((base.clone(), name.clone()))))
                .with(base.taint | hidden)
                .about(base.about.clone())
        };
        if base.taint.meets(Taint::ENVIRONMENT) && self.is_variable(base, name) {
            let rest = base.taint.without(Taint::ENVIRONMENT);
            return self.variable(name).with(rest);
        }
        match &**name {
            "__builtins__" => return Value::api("builtins").with(Taint::HIDDEN),
            "f_globals" | "f_locals" => return Value::api("builtins.globals()"),
            "f_builtins" => return Value::api("builtins"),
            // The names of the module that a function was made in.
            "__globals__" => {
                let module = base.api_name().and_then(|path| path.rsplit_once('.'));
                let module = module.filter(|(module, _)| !module.contains('(') && *module != "builtins");
                return match module {
                    Some((module, _)) => Value::api(format!("{module}.__dict__")).with(Taint::HIDDEN),
                    None => Value::api("builtins.globals()"),
                };
            }
            _ => {}
        }
        match &base.shape {
            Shape::Any(values) => {
                let parts: Vec<_> = values.iter().map(|value| self.member(value, name, is_hidden)).collect();
                parts.into_iter().reduce(Value::or).unwrap_or_default()
            }
            Shape::Api(path) => self.member_of_api(base, path, name).with(hidden),
            Shape::Map(_) => match base.entry(name) {
                // The functions of an object know it as `this`.
                Some(value) if self.language == Language::JavaScript => {
                    bound(value, base).with(base.taint | hidden)
                }
                Some(value) => value.clone().with(base.taint | hidden),
                None => method(base),
            },
            Shape::Object(number) => {
                let object = &self.objects[*number];
                if let Some(value) = object.fields.get(name) {
                    return value.clone();
                }
                let class = object.class;
                match self.in_class(class, name, 0) {
                    Some(value) => bound(&value, base),
                    // The table of members is the thing itself, read and written by another sign.
                    None if &**name == "__dict__" => base.clone(),
                    None if matches!(&**name, "__class__" | "__proto__") && class != usize::MAX => {
                        Value::of(Shape::Class(class))
                    }
                    None => {
                        self.asked_of_class(base, class, "__getattr__", name).unwrap_or_else(|| method(base))
                    }
                }
            }
            Shape::Class(number) => match self.in_class(*number, name, 0) {
                Some(value) => value,
                None if matches!(&**name, "prototype" | "__dict__") => base.clone(),
                None if &**name == "__base__" => Value::api("object.__base__"),
                None => method(base),
            },
            Shape::Function(function, scope)
                if self.language == Language::JavaScript && &**name == "prototype" =>
            {
                Value::of(Shape::Class(self.class_of(function, *scope)))
            }
            Shape::Function(function, _)
                if self.known_class_of(function).is_some_and(|class| {
                    &**name != "constructor" && self.in_class(class, name, 0).is_some()
                }) =>
            {
                let class = self.known_class_of(function).unwrap_or(usize::MAX);
                self.in_class(class, name, 0).unwrap_or_default()
            }
            Shape::Function(function, _) if self.own_member(function, name).is_some() => {
                self.own_member(function, name).unwrap_or_default()
            }
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
            // What an exception was made of, and the value of one of a list of choices.
            Shape::Text(_) if &**name == "args" && self.language == Language::Python => {
                Value::list(vec![base.clone()])
            }
            Shape::Text(_) if &**name == "value" => base.clone(),
            // An entry of a folder.
            Shape::Text(_) if &**name == "path" => base.clone(),
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

    /// Whether a member of something made of the environment is one of its variables and no method.
    fn is_variable(&self, base: &Value, name: &str) -> bool {
        // In Python variables are elements.
        if self.language == Language::Python {
            return false;
        }
        let is_whole = base.api_name().is_some_and(|path| {
            self.context.rules.apis_of(path).any(|api| api.is_value && api.returns.meets(Taint::ENVIRONMENT))
        });
        // Of what was made of it, only names that look like those of variables: texts and lists have methods.
        match is_whole {
            true => !super::library::is_method_of_environment(name),
            false => name.contains('_') || !name.bytes().any(|byte| byte.is_ascii_lowercase()),
        }
    }

    /// What is looked up by the methods of modules and tables that do so; `None` for other functions.
    pub fn looked_up(&mut self, path: &str, arguments: &super::call::Arguments) -> Option<Value> {
        let (owner, how) = path.rsplit_once('.')?;
        let given = |nth: usize| arguments.get(nth).map(|(_, value)| value.clone());
        match how {
            "__getattribute__" | "__getattr__" if self.language == Language::Python => {
                let is_of_any = matches!(
                    owner,
                    "builtins.object" | "builtins.type" | "builtins.super()" | "types.ModuleType"
                );
                let (base, name) = match is_of_any && arguments.len() > 1 {
                    true => (given(0)?, given(1)?),
                    false => (Value::api(owner), given(0)?),
                };
                let name = name.known_text()?;
                Some(self.member(&base, &name, matches!(base.shape, Shape::Api(_))))
            }
            "get" | "__getitem__" | "pop" | "setdefault" => {
                let is_table = owner == "sys.modules" || owner.ends_with(".__dict__") || is_names(owner);
                is_table.then(|| given(0)).flatten().map(|name| self.index(&Value::api(owner), &name, false))
            }
            _ => None,
        }
    }

    fn member_of_api(&mut self, base: &Value, path: &Rc<str>, name: &Rc<str>) -> Value {
        // Modules hand on the modules that they import.
        if self.language == Language::Python
            && HANDED_ON.contains(&&**name)
            && !path.contains('(')
            && path.rsplit('.').next() != Some(name)
            && !matches!(&**path, "asyncio" | "builtins" | "anyio" | "trio")
        {
            return self.module(name, self.at).with(base.taint);
        }
        if let "localStorage" | "sessionStorage" = &**path {
            let is_method =
                matches!(&**name, "getItem" | "setItem" | "removeItem" | "clear" | "key" | "length");
            // All of it is what a browser keeps; one entry is what its name says.
            return if is_method { Value::api(format!("{path}.{name}")) } else { self.kept_in_browser(name) };
        }
        if !self.patched.is_empty()
            && let Some(value) = self.patched.get(&*format!("{path}.{name}"))
        {
            return value.clone().or(Value::api(format!("{path}.{name}")));
        }
        // One of several commands that whoever starts the program names is no command that comes from elsewhere.
        if path.ends_with(".parse_args()") && self.listed.contains(name) {
            return Value::unknown(Taint::PARAMETER);
        }
        let full = match (&**path, &**name) {
            ("globalThis", name) if GLOBALS.contains(&name) => "globalThis".to_owned(),
            ("globalThis", name) => {
                if let Some(value) = self.scopes[0].names.get(name) {
                    return value.clone();
                }
                name.to_owned()
            }
            ("__main__", name) if self.scopes[0].names.contains_key(name) => {
                return self.scopes[0].names[name].clone();
            }
            // A module's only export is the module; a promise of a module gives it.
            (path, "default" | "exports") if self.language == Language::JavaScript => path.to_owned(),
            ("file()" | "file.reader()", "name") if base.about.is_some() => {
                return Value::text(base.about.clone().unwrap_or_default()).with(base.taint);
            }
            ("process.mainModule" | "require.main" | "module", "constructor") => {
                return Value::api("module.constructor").with(base.taint);
            }
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

    /// What a method of a class gives that stands in for the members that it does not have.
    fn asked_of_class(&mut self, base: &Value, class: usize, method: &str, name: &Rc<str>) -> Option<Value> {
        let method = self.in_class(class, method, 0).filter(|_| self.calls < 4)?;
        let at = self.at;
        Some(self.call_of(&method, base, &[(None, Value::text(name.clone()))], at))
    }

    /// `base[index]`; `is_plain` when the index is a literal.
    pub fn index(&mut self, base: &Value, index: &Value, is_plain: bool) -> Value {
        let value = self.index_as_kept(base, index, is_plain);
        self.got(value, base)
    }

    fn index_as_kept(&mut self, base: &Value, index: &Value, is_plain: bool) -> Value {
        if let Shape::Any(values) = &base.shape {
            let parts: Vec<_> = values.iter().map(|value| self.index(value, index, is_plain)).collect();
            return parts.into_iter().reduce(Value::or).unwrap_or_default();
        }
        let taint = base.taint | (index.taint & Taint::HIDDEN);
        if let Some(value) = self.program_with(base, index) {
            return value;
        }
        if self.language == Language::Python
            && let Some(value) = self.element_of_class(base, index)
        {
            return value;
        }
        if let (Shape::Map(_), Shape::Number(number)) = (&base.shape, &index.shape)
            && let Some(value) = base.entry(&number.to_string())
        {
            return value.clone().with(taint);
        }
        if let (Some(number), false) = (index.as_number(), matches!(index.shape, Shape::Text(_))) {
            if let Some(value) = super::fold::element(base, number) {
                return value;
            }
            // The file that was started.
            let is_own = base.api_name().is_some_and(|path| {
                &**path == "sys.argv" && number == 0.0 || &**path == "process.argv" && number == 1.0
            });
            if is_own {
                return Value::text(super::siblings::OWN).with(Taint::HOST_FOLDER);
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
                // A name of the interpreter's own functions that was put together hides which one is meant.
                Shape::Api(path)
                    if matches!(&**path, "builtins" | "builtins.__dict__")
                        && index.taint.meets(PUT_TOGETHER) =>
                {
                    Value::api("builtins.eval").with(Taint::HIDDEN)
                }
                Shape::Map(entries) if entries.len() <= 4 => {
                    let values = entries.iter().map(|(_, value)| value.clone());
                    values.reduce(Value::or).unwrap_or_default().with(taint)
                }
                // The names of all variables name all of them.
                Shape::Api(_)
                    if base.taint.meets(Taint::ENVIRONMENT) && index.taint.meets(Taint::ENVIRONMENT) =>
                {
                    Value::unknown(base.taint)
                }
                Shape::Api(path) if base.taint.meets(Taint::ENVIRONMENT) || path.ends_with(".env") => {
                    Value::unknown(Taint::VARIABLE | base.taint.without(Taint::ENVIRONMENT))
                }
                _ => Value::unknown(base.deep_taint()).about(base.about.clone()),
            };
        };
        let is_put_together = index.taint.meets(PUT_TOGETHER) && !is_plain;
        match &base.shape {
            Shape::Api(_) if base.taint.meets(Taint::ENVIRONMENT) => {
                self.variable(&name).with(base.taint.without(Taint::ENVIRONMENT))
            }
            Shape::Api(path) => match &**path {
                path if is_names(path) => {
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
                    let owner = Value::api(path.trim_end_matches(".__dict__"));
                    self.member(&owner, &name, true)
                }
                _ => self.member(base, &name, is_put_together),
            },
            Shape::Map(_) => match base.entry(&name).or_else(|| base.entry("\0")) {
                Some(value) => value.clone().with(taint),
                None if base.taint.meets(Taint::ENVIRONMENT) => {
                    self.variable(&name).with(base.deep_taint().without(Taint::ENVIRONMENT))
                }
                None => Value::unknown(base.deep_taint()),
            },
            _ if base.taint.meets(Taint::ENVIRONMENT) => {
                self.variable(&name).with(base.taint.without(Taint::ENVIRONMENT))
            }
            Shape::Unknown if self.language == Language::JavaScript && !is_plain => {
                self.member(base, &name, is_put_together).with(Taint::ASSEMBLED)
            }
            _ if self.language == Language::JavaScript => self.member(base, &name, is_put_together),
            _ => Value::unknown(base.deep_taint()).about(base.about.clone()),
        }
    }

    /// An element of an instance or class of the file: a member of its table, or what its own method gives.
    fn element_of_class(&mut self, base: &Value, index: &Value) -> Option<Value> {
        let (method, class) = match &base.shape {
            Shape::Object(number) => {
                let object = &self.objects[*number];
                if let Some(value) = index.known_text().and_then(|name| object.fields.get(&name)) {
                    return Some(value.clone());
                }
                ("__getitem__", object.class)
            }
            Shape::Class(number) => ("__class_getitem__", *number),
            _ => return None,
        };
        if let Shape::Class(number) = &base.shape
            && let Some(value) = index.known_text().and_then(|name| self.in_class(*number, &name, 0))
        {
            return Some(value);
        }
        let method = self.in_class(class, method, 0).filter(|_| self.calls < 4)?;
        let at = self.at;
        Some(self.call_of(&method, base, &[(None, index.clone())], at))
    }
}

/// A function of an instance or object that knows what it was taken from.
pub(super) fn bound(value: &Value, base: &Value) -> Value {
    match &value.shape {
        Shape::Function(..) => {
            let bound = (value.clone(), base.clone());
            Value::of(Shape::Bound(Rc::new(bound))).with(value.taint).about(value.about.clone())
        }
        Shape::Any(values) if values.iter().any(|value| matches!(value.shape, Shape::Function(..))) => {
            let values: Vec<_> = values.iter().map(|value| bound(value, base)).collect();
            Value { shape: Shape::Any(Rc::new(values)), ..value.clone() }
        }
        _ => value.clone(),
    }
}
