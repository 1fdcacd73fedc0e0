//! What functions of the languages and their libraries mean for names and values: those that data cannot tell.

use std::rc::Rc;

use super::Language;
use super::call::Arguments;
use super::decode;
use super::follow::Walk;
use super::name::PUT_TOGETHER;
use super::taint::Taint;
use super::value::{ELEMENTS_MAX, Shape, Value, join};
use crate::bundles::rules::BundleRules;

/// Constants of libraries that names and paths are made of.
pub(super) fn constant(name: &str) -> Option<Value> {
    let text = match name {
        "string.ascii_lowercase" => "abcdefghijklmnopqrstuvwxyz",
        "string.ascii_uppercase" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "string.ascii_letters" => "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "string.digits" => "0123456789",
        "string.punctuation" => "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
        "string.printable" => {
            "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ \t\n\r\x0b\x0c"
        }
        "os.sep" | "path.sep" => "/",
        "os.linesep" | "os.EOL" => "\n",
        "tempfile.tempdir" => "/tmp",
        "sys.executable" => "python3",
        "process.execPath" => "node",
        _ => return None,
    };
    Some(Value::text(text))
}

/// The code in a `data:` address of a module.
pub(super) fn code_of_address(address: &str) -> Option<Rc<str>> {
    let (head, body) = address.strip_prefix("data:")?.split_once(',')?;
    let code = match head.ends_with(";base64") {
        true => String::from_utf8(decode::base64(body.as_bytes())?).ok()?,
        false => decode::percent(body),
    };
    Some(Rc::from(code))
}

/// Whether a member of the environment as a whole is a method of it and no variable.
pub(super) fn is_method_of_environment(name: &str) -> bool {
    matches!(
        name,
        "get"
            | "set"
            | "has"
            | "delete"
            | "toObject"
            | "toString"
            | "valueOf"
            | "hasOwnProperty"
            | "propertyIsEnumerable"
            | "toLocaleString"
            | "constructor"
    )
}

/// What a variable of the environment is tainted with, by its name.
pub(super) fn variable_taint(name: &str) -> Taint {
    let upper = name.to_ascii_uppercase();
    let is_secret = ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH", "PRIVATE", "COOKIE", "SESSION"];
    match is_secret.iter().any(|word| upper.contains(word)) {
        true => Taint::SECRET_VARIABLE,
        false => match upper.as_str() {
            "USER" | "USERNAME" | "LOGNAME" | "HOME" | "USERPROFILE" => Taint::HOST_USER,
            "HOSTNAME" | "COMPUTERNAME" => Taint::HOST_NAME,
            "PWD" | "INIT_CWD" => Taint::HOST_FOLDER,
            _ => Taint::VARIABLE,
        },
    }
}

/// Whether a method only asks something of a value.
pub(super) fn is_question(name: &str) -> bool {
    matches!(
        name,
        "startswith"
            | "endswith"
            | "startsWith"
            | "endsWith"
            | "includes"
            | "exists"
            | "is_file"
            | "is_dir"
            | "isdigit"
            | "isalpha"
            | "count"
            | "index"
            | "indexOf"
            | "find"
            | "test"
            | "has"
            | "isnumeric"
            | "isspace"
            | "localeCompare"
            | "search"
            | "stat"
            | "is_absolute"
            | "isidentifier"
            | "isupper"
            | "islower"
            | "sleep"
            | "debug"
            | "info"
            | "log"
    )
}

/// What the result of a function is tainted with, and whether with nothing else.
pub(super) fn returned(rules: &BundleRules, name: &str) -> (Taint, bool) {
    rules
        .apis_of(name)
        .fold((Taint::NONE, false), |(taint, is_clean), api| (taint | api.returns, is_clean || api.is_clean))
}

/// Whether a value is the table of the names of a module.
fn is_table_of_names(value: &Value) -> bool {
    value.api_name().is_some_and(|path| path.ends_with(".__dict__") || path.ends_with("globals()"))
}

/// A key and its value out of a list of both.
fn pair(value: &Value) -> Option<(Rc<str>, Value)> {
    match value.as_list()? {
        [key, value] => Some((key.known_text().unwrap_or_else(|| key.piece()), value.clone())),
        _ => None,
    }
}

/// A home folder as the file system of the shell knows it.
pub(super) const HOME: &str = "~";

impl Walk<'_> {
    /// What a function gives that is known here; `None` leaves it to the tables.
    pub fn library(
        &mut self,
        path: &Rc<str>,
        callee: &Value,
        arguments: &Arguments,
        at: u32,
    ) -> Option<Value> {
        let first = arguments.first().map(|(_, value)| value);
        let taint = arguments.iter().fold(Taint::NONE, |all, (_, value)| all | value.deep_taint());
        if let Some(value) = self.decoder(path, arguments, taint) {
            return Some(value);
        }
        if let Some(value) = self.environment(path, callee, arguments) {
            return Some(value);
        }
        if let Some(value) = self.read_constant(path, callee, arguments) {
            return Some(value);
        }
        Some(match &**path {
            "builtins.getattr" | "Reflect.get" | "inspect.getattr_static" | "_.get" => {
                let (base, name) = (first?, &arguments.get(1)?.1);
                let how = name.taint & PUT_TOGETHER | Taint::ASSEMBLED;
                match name.known_text() {
                    Some(name) => {
                        let member = self.member(base, &name, matches!(base.shape, Shape::Api(_)));
                        if matches!(base.shape, Shape::Unknown) { member.with(how) } else { member }
                    }
                    // Any function of a module by a name that is not known.
                    None => {
                        let name = base.api_name().map(|module| format!("{module}.*"));
                        name.map_or(Value::unknown(taint), Value::api).with(taint)
                    }
                }
            }
            "builtins.vars" | "inspect.getmembers" | "inspect.getmembers_static" if first.is_some() => {
                let of = first?;
                match &of.shape {
                    Shape::Api(module) => Value::api(format!("{module}.__dict__")),
                    Shape::Object(_) | Shape::Class(_) => of.clone(),
                    _ => return None,
                }
            }
            // A module by way of what knows where it is.
            "importlib.util.find_spec" | "importlib.find_loader" | "pkgutil.find_loader" => {
                Value::api("importlib.spec()").with(first?.taint & PUT_TOGETHER).about(first?.known_text())
            }
            "importlib.util.module_from_spec" => {
                let name = first?.about.clone()?;
                self.module(&name, at).with(Taint::HIDDEN)
            }
            "importlib.spec().loader.load_module" | "importlib.spec().load_module" => {
                let name = callee.about.clone()?;
                self.module(&name, at).with(Taint::HIDDEN)
            }
            "builtins.__loader__.load_module"
            | "importlib.machinery.BuiltinImporter.load_module"
            | "importlib._bootstrap._load"
            | "zipimport.zipimporter().load_module" => {
                let name = first?.known_text()?;
                self.module(&name, at).with(Taint::HIDDEN)
            }
            "pydoc.locate" | "pkgutil.resolve_name" => {
                let text = first?.known_text()?;
                match super::callback::split_name(&text) {
                    Some((module, name)) => {
                        let module = self.module(module, at);
                        self.member(&module, &name, true)
                    }
                    None => self.module(&text, at).with(Taint::HIDDEN),
                }
            }
            "builtins.__import__"
            | "importlib.import_module"
            | "importlib.__import__"
            | "require"
            | "import"
            | "builtins.reload"
            | "importlib.reload"
            | "createRequire()"
            | "process.getBuiltinModule"
            | "module.createRequire()" => {
                let name = first?;
                if let Some(module) = name.api_name() {
                    return Some(Value::api(module.clone()));
                }
                let hidden = if name.taint.meets(PUT_TOGETHER) { Taint::HIDDEN } else { Taint::NONE };
                self.record(path, arguments, at, callee.taint);
                match name.known_text() {
                    Some(module) => {
                        // `__import__("a.b")` gives `a`.
                        let full = self.module(&module, at);
                        let head = module.split('.').next().unwrap_or_default();
                        if &**path == "builtins.__import__" && arguments.len() == 1 {
                            self.module(head, at).with(hidden)
                        } else {
                            full.with(hidden)
                        }
                    }
                    None => Value::unknown(hidden | name.taint.without(PUT_TOGETHER)),
                }
            }
            "builtins.chr" | "builtins.unichr" | "String.fromCharCode" | "String.fromCodePoint" => {
                let mut codes = Vec::new();
                for (_, value) in arguments {
                    match value.as_list() {
                        Some(list) => codes.extend(list.iter().map(Value::as_number)),
                        None => codes.push(value.as_number()),
                    }
                }
                if codes.len() > ELEMENTS_MAX {
                    return None;
                }
                let one = |code: Option<f64>| code.and_then(|code| char::from_u32(code as u32));
                let text: String = codes.into_iter().map(|code| one(code).unwrap_or('\0')).collect();
                Value::text(text).with(taint | Taint::HIDDEN)
            }
            "builtins.ord" => {
                let text = first?.known_text()?;
                Value::of(Shape::Number(f64::from(u32::from(text.chars().next()?)))).with(taint)
            }
            "builtins.str" | "String" | "builtins.unicode" | "builtins.format" | "builtins.repr"
            | "JSON.stringify" | "json.dumps" | "os.fspath" | "os.fsencode" | "os.fsdecode"
            | "shlex.quote" | "pipes.quote" => {
                let value = first.cloned().unwrap_or_else(|| Value::text(""));
                match (value.as_text(), &value.shape) {
                    (Some(text), _) => Value::text(text).with(taint),
                    (_, Shape::Number(_)) => Value::text(value.piece()).with(taint),
                    // The environment as text is no longer the environment.
                    (_, Shape::Api(_)) if taint.meets(Taint::ENVIRONMENT) => Value::unknown(taint),
                    // What is in it is still in it: a list or map keeps its texts for the rules.
                    _ => Value { taint: value.taint | taint, ..value },
                }
            }
            "builtins.bytes" | "builtins.bytearray" | "builtins.memoryview" => match first {
                Some(value) => match value.as_bytes() {
                    Some(bytes) => {
                        let listed = matches!(value.shape, Shape::List(_));
                        let hidden = if listed { Taint::HIDDEN } else { Taint::NONE };
                        Value::of(Shape::Bytes(bytes)).with(taint | hidden)
                    }
                    None => Value::unknown(taint),
                },
                None => Value::of(Shape::Bytes(Rc::from([]))),
            },
            "builtins.list" | "builtins.tuple" | "builtins.set" | "builtins.sorted" | "builtins.iter"
            | "Array.from" | "builtins.frozenset" | "Object.values" | "itertools.chain" => {
                let value = first?;
                match &value.shape {
                    Shape::Map(entries) if &**path == "Object.values" => {
                        Value::list(entries.iter().map(|(_, value)| value.clone()).collect()).with(taint)
                    }
                    _ => match self.elements(value) {
                        Some(list) => {
                            let value = Value::list(list).with(taint);
                            match arguments.get(1) {
                                Some((_, function)) if &**path == "Array.from" && function.is_callable() => {
                                    let arguments = [(None, function.clone())];
                                    let method = Shape::Method(Rc::new((value, Rc::from("map"))));
                                    self.call(&Value::of(method), &arguments, at, false)
                                }
                                _ => value,
                            }
                        }
                        None => value.clone(),
                    },
                }
            }
            "builtins.dict" if first.is_some_and(is_table_of_names) => first?.clone(),
            "builtins.dict" | "Object.assign" | "Object.fromEntries" | "Map" | "WeakMap"
            | "Object.create" => {
                let (mut entries, mut is_known) = (Vec::new(), true);
                for (name, value) in arguments {
                    match (name, &value.shape) {
                        (Some(name), _) => entries.push((name.clone(), value.clone())),
                        (None, Shape::Map(inner)) => entries.extend(inner.iter().cloned()),
                        (None, Shape::List(pairs)) if &**path != "Object.assign" => {
                            entries.extend(pairs.iter().filter_map(pair));
                        }
                        // What is made of an instance or a class is one as far as its members go.
                        (None, Shape::Object(_) | Shape::Class(_)) => return Some(value.clone()),
                        _ => is_known = false,
                    }
                }
                if entries.is_empty() && !is_known {
                    return Some(Value::unknown(taint));
                }
                Value::of(Shape::Map(Rc::new(entries))).with(taint)
            }
            // Its elements, which `add` puts more to.
            "Set" | "WeakSet" => match first {
                Some(value) => self.elements(value).map_or_else(|| value.clone(), Value::list).with(taint),
                None => Value::list(Vec::new()),
            },
            // Reads of members go to a function, which knows the thing behind it.
            "Proxy" => {
                let (target, handler) = (first?.clone(), &arguments.get(1)?.1);
                let Some(get) = handler.entry("get").cloned() else { return Some(target) };
                let inner = self.scope(0);
                let read = Value::of(Shape::Partial(Rc::new((get, vec![(None, target)]))));
                self.scopes[inner].names.insert(Rc::from("__getattr__"), read);
                self.classes.push(super::follow::ClassInfo {
                    scope: inner,
                    parents: Vec::new(),
                    fields: Vec::new(),
                });
                self.instance(self.classes.len() - 1, &[])
            }
            "Object.getPrototypeOf" if matches!(first?.shape, Shape::Object(_)) => first?.clone(),
            "String.raw" | "dedent" | "outdent" => first?.clone(),
            "builtins.Exception" => first?.clone(),
            // It is settled by a function that it hands out.
            "Promise" => {
                let settle = [(None, Value::api("Promise.*settle")), (None, Value::api("Promise.*settle"))];
                let settled = self.call(first?, &settle, at, false);
                match settled.as_list().and_then(<[Value]>::first) {
                    Some(value) => value.clone(),
                    None => Value::unknown(settled.deep_taint()),
                }
            }
            "Promise.*settle" => {
                self.yields(first.cloned().unwrap_or_default());
                Value::default()
            }
            "worker_threads.Worker" if Self::is_set(arguments, "eval") => {
                self.record(path, arguments, at, callee.taint);
                let code = first?.known_text()?;
                self.look_at_code(&code, at, "text that a worker runs");
                Value::default()
            }
            // The message is what there is of an error.
            "Error" | "TypeError" | "RangeError" => {
                let message = first.cloned().unwrap_or_default();
                Value::of(Shape::Map(Rc::new(vec![(Rc::from("message"), message)]))).with(taint)
            }
            "types.SimpleNamespace" | "argparse.Namespace" => {
                let object = self.plain_object();
                if let Shape::Object(number) = object.shape {
                    for (name, value) in arguments {
                        if let Some(name) = name {
                            self.objects[number].fields.insert(name.clone(), value.clone());
                        }
                    }
                }
                object
            }
            // A class that is put together out of its members.
            "builtins.type" if arguments.len() == 3 => {
                let inner = self.scope(0);
                if let Shape::Map(entries) = &arguments[2].1.shape {
                    self.scopes[inner].names.extend(entries.iter().cloned());
                }
                let bases = arguments[1].1.as_list().unwrap_or_default();
                let parents = bases.iter().filter_map(|base| match base.shape {
                    Shape::Class(number) => Some(number),
                    _ => None,
                });
                let parents = parents.collect();
                self.classes.push(super::follow::ClassInfo { scope: inner, parents, fields: Vec::new() });
                Value::of(Shape::Class(self.classes.len() - 1))
            }
            "builtins.next" => {
                let value = first?;
                match self.elements(value) {
                    Some(list) => list.into_iter().take(4).reduce(Value::or).unwrap_or_default().with(taint),
                    None => value.clone(),
                }
            }
            "builtins.reversed" => {
                let hidden = if matches!(first?.shape, Shape::Text(_)) { Taint::HIDDEN } else { Taint::NONE };
                let mut list = self.elements(first?)?;
                list.reverse();
                Value::list(list).with(taint | hidden)
            }
            "builtins.range" => {
                let number = |nth: usize| arguments.get(nth).and_then(|(_, value)| value.as_number());
                let (from, to) =
                    if arguments.len() == 1 { (0.0, number(0)?) } else { (number(0)?, number(1)?) };
                let step = number(2).unwrap_or(1.0);
                let count = ((to - from) / step).ceil().max(0.0);
                if step == 0.0 || count > 2_048.0 {
                    return Some(Value::unknown(taint));
                }
                let one = |nth: usize| Value::of(Shape::Number(from + step * nth as f64));
                Value::list((0..count as usize).map(one).collect())
            }
            "builtins.zip" | "builtins.enumerate" => {
                let mut columns: Vec<Vec<Value>> = Vec::new();
                for (_, value) in arguments {
                    columns.push(self.elements(value)?);
                }
                if &**path == "builtins.enumerate" {
                    let number = |nth: usize| Value::of(Shape::Number(nth as f64));
                    columns.truncate(1);
                    columns.insert(0, (0..columns.first()?.len()).map(number).collect());
                }
                let rows = columns.iter().map(Vec::len).min()?;
                let row =
                    |nth: usize| Value::list(columns.iter().map(|column| column[nth].clone()).collect());
                Value::list((0..rows).map(row).collect())
            }
            "builtins.map" | "builtins.filter" => {
                let (function, list) = (first?.clone(), &arguments.get(1)?.1);
                let name = if &**path == "builtins.map" { "map" } else { "filter" };
                let Some(elements) = self.elements(list) else {
                    let given = [(None, Value::unknown(list.deep_taint()).about(list.about.clone()))];
                    let value = self.call(&function, &given, at, false);
                    return Some(Value::unknown(value.deep_taint() | taint));
                };
                let method = Value::of(Shape::Method(Rc::new((Value::list(elements), Rc::from(name)))));
                self.call(&method, &[(None, function)], at, false)
            }
            "functools.reduce" | "builtins.reduce" => {
                let list = Value::list(self.elements(&arguments.get(1)?.1)?);
                let mut given = vec![(None, first?.clone())];
                given.extend(arguments.get(2).cloned());
                let method = Value::of(Shape::Method(Rc::new((list, Rc::from("reduce")))));
                self.call(&method, &given, at, false)
            }
            "functools.partial" | "functools.partialmethod" => {
                let given = arguments.iter().skip(1).cloned().collect();
                Value::of(Shape::Partial(Rc::new((first?.clone(), given))))
            }
            // A function that is no method, and one of which the first argument is the class.
            "builtins.staticmethod" => Value::of(Shape::Partial(Rc::new((first?.clone(), Vec::new())))),
            "builtins.classmethod" => {
                let class = (None, Value::default());
                Value::of(Shape::Partial(Rc::new((first?.clone(), vec![class]))))
            }
            "builtins.property" | "functools.cached_property" => {
                let named = arguments.iter().find(|(name, _)| name.as_deref() == Some("fget"));
                let getter = named.map(|(_, value)| value).or(first)?;
                Value::of(Shape::Getter(Rc::new(getter.clone())))
            }
            "operator.attrgetter" | "operator.itemgetter" => {
                let name = first?.clone();
                let get = Value::api("operator.*getter()");
                Value::of(Shape::Partial(Rc::new((get, vec![(None, name)]))))
            }
            "operator.methodcaller" => {
                let get = Value::api("operator.methodcaller()");
                Value::of(Shape::Partial(Rc::new((get, arguments.to_vec()))))
            }
            "operator.*getter()" => {
                let name = first?.known_text()?;
                let base = arguments.get(1)?.1.clone();
                self.member(&base, &name, matches!(base.shape, Shape::Api(_)))
            }
            "operator.methodcaller()" => {
                let name = first?.known_text()?;
                let (_, base) = arguments.last()?;
                let function = self.member(&base.clone(), &name, matches!(base.shape, Shape::Api(_)));
                self.call(&function, &arguments[1..arguments.len() - 1], at, false)
            }
            // What takes a function and calls it with given arguments.
            "threading.Thread"
            | "multiprocessing.Process"
            | "threading.Timer"
            | "_thread.start_new_thread" => {
                let named =
                    |name: &str| arguments.iter().find(|(n, _)| n.as_deref() == Some(name)).map(|(_, v)| v);
                let function =
                    named("target").or_else(|| arguments.iter().map(|(_, v)| v).find(|v| v.is_callable()))?;
                let list = named("args")
                    .or_else(|| arguments.iter().map(|(_, v)| v).find(|v| v.as_list().is_some()));
                let given = match list {
                    Some(list) => self.elements(list).unwrap_or_default(),
                    None => Vec::new(),
                };
                let given: Vec<_> = given.into_iter().map(|value| (None, value)).collect();
                self.call(&function.clone(), &given, at, false);
                Value::api(format!("{path}()"))
            }
            "asyncio.run"
            | "asyncio.create_task"
            | "asyncio.wait_for"
            | "Promise.resolve"
            | "builtins.anext"
            | "util.promisify"
            | "util.callbackify"
            | "asyncio.get_event_loop().run_until_complete" => first?.clone(),
            "asyncio.to_thread" | "Reflect.apply" | "atexit.register" | "_.partial" => {
                let function = first?.clone();
                match &**path {
                    "Reflect.apply" => {
                        return Some(self.call(
                            &Value::of(Shape::Method(Rc::new((function, Rc::from("apply"))))),
                            &arguments[1..],
                            at,
                            false,
                        ));
                    }
                    _ => self.call(&function, &arguments[1..], at, false),
                }
            }
            "Reflect.construct" => {
                let given = self.elements(&arguments.get(1)?.1).unwrap_or_default();
                let given: Vec<_> = given.into_iter().map(|value| (None, value)).collect();
                self.call(&first?.clone(), &given, at, true)
            }
            // Text that was compiled is still that text.
            "builtins.compile" => {
                self.record(path, arguments, at, callee.taint);
                first?.clone().with(taint)
            }
            "builtins.type" | "builtins.super" | "builtins.object" => {
                return Some(Value::unknown(Taint::NONE));
            }
            "builtins.len"
            | "builtins.isinstance"
            | "builtins.hasattr"
            | "builtins.any"
            | "builtins.all"
            | "Array.isArray"
            | "os.path.exists"
            | "os.path.isfile"
            | "os.path.isdir"
            | "builtins.callable"
            | "fs.existsSync"
            | "builtins.hash"
            | "builtins.id"
            | "os.path.getsize" => Value::default(),
            "builtins.bool" | "Boolean" => {
                let truth = first.and_then(Value::is_truthy);
                truth.map_or_else(Value::default, |is| Value::of(Shape::Bool(is)))
            }
            "builtins.int" | "parseInt" | "Number" | "parseFloat" => {
                let value = first?;
                let radix = arguments.get(1).and_then(|(_, radix)| radix.as_number()).unwrap_or(10.0) as u32;
                let number = match value.known_text() {
                    Some(text) if (2..=36).contains(&radix) => {
                        let text = text.trim().trim_start_matches("0x").trim_start_matches("0b");
                        i64::from_str_radix(text, radix).ok().map(|number| number as f64)
                    }
                    _ => value.as_number().map(f64::trunc),
                };
                number.map_or(Value::unknown(taint), |number| Value::of(Shape::Number(number)).with(taint))
            }
            "builtins.hex" => Value::text(format!("{:#x}", first?.as_number()? as i64)),
            "builtins.str.join" | "str.join" | "builtins.bytes.join" => {
                let method = Value::of(Shape::Method(Rc::new((first?.clone(), Rc::from("join")))));
                self.call(&method, &arguments[1..], at, false)
            }
            "os.path.join"
            | "path.join"
            | "path.resolve"
            | "pathlib.Path"
            | "pathlib.PurePath"
            | "pathlib.PosixPath"
            | "os.path.expanduser"
            | "os.path.expandvars"
            | "os.path.abspath"
            | "os.path.realpath"
            | "os.path.normpath"
            | "path.normalize"
            | "posixpath.join"
            | "pathlib.WindowsPath"
            | "ntpath.join"
            | "path.posix.join" => {
                let mut pieces = Vec::new();
                for (_, value) in arguments {
                    let piece = value.piece();
                    if !pieces.is_empty() && !piece.starts_with('/') {
                        pieces.push(Rc::from("/"));
                    } else if !pieces.is_empty() {
                        // An absolute part throws away what stands before; `path.join` of JavaScript does not.
                        if self.language == Language::Python {
                            pieces.clear();
                        }
                    }
                    pieces.push(piece);
                }
                join(pieces).map_or(Value::unknown(taint), Value::text).with(taint | Taint::ASSEMBLED)
            }
            "pathlib.Path.home" | "os.homedir" => Value::text(HOME).with(Taint::HOST_USER),
            "tempfile.gettempdir" | "os.tmpdir" | "tempfile.mkdtemp" => Value::text("/tmp"),
            "tempfile.mktemp" | "tempfile.mkstemp" => Value::text("/tmp/\0"),
            "pathlib.Path.cwd" | "os.getcwd" | "process.cwd" => Value::text("\0").with(Taint::HOST_FOLDER),
            "os.path.dirname" | "path.dirname" | "os.path.basename" | "path.basename" => {
                Value::text(first?.piece()).with(taint)
            }
            "builtins.open"
            | "io.open"
            | "codecs.open"
            | "fs.createReadStream"
            | "fs.openSync"
            | "os.open"
            | "fs.open"
            | "aiofiles.open"
            | "Deno.open"
            | "gzip.open"
            | "Bun.file" => {
                let file = first?.piece();
                return Some(self.open(&file, arguments, at));
            }
            "fs.createWriteStream" => {
                let file = first?.piece();
                let mode = (None, Value::text("w"));
                return Some(self.open(&file, &[(None, first?.clone()), mode], at));
            }
            "os.walk"
            | "os.listdir"
            | "os.scandir"
            | "glob.glob"
            | "glob.iglob"
            | "fs.readdirSync"
            | "fs.readdir"
            | "glob.sync"
            | "fast-glob.sync"
            | "fs.promises.readdir" => {
                let folder = first?.piece();
                let taint = self.walked(&folder, !matches!(&**path, "os.listdir" | "os.scandir"));
                Value::unknown(taint).about(Some(folder))
            }
            "fs.readFileSync"
            | "fs.readFile"
            | "fs.promises.readFile"
            | "Deno.readTextFile"
            | "Deno.readTextFileSync"
            | "Deno.readFile"
            | "fs.readJsonSync"
            | "fs.readJson"
            | "linecache.getlines"
            | "fs.promises.open" => {
                let file = first?.piece();
                let value = self.read(&file, at);
                for (_, function) in arguments.iter().skip(1) {
                    if function.is_callable() {
                        let error = (None, Value::default());
                        self.call(function, &[error, (None, value.clone())], at, false);
                    }
                }
                value
            }
            "fs.writeFileSync"
            | "fs.writeFile"
            | "fs.promises.writeFile"
            | "fs.appendFileSync"
            | "fs.appendFile"
            | "fs.promises.appendFile"
            | "Deno.writeTextFile"
            | "Deno.writeTextFileSync"
            | "Deno.writeFile"
            | "fs.outputFile"
            | "fs.outputFileSync"
            | "Bun.write"
            | "fs.writeJsonSync"
            | "fs.writeJson" => {
                let data = arguments.get(1).map(|(_, value)| value.clone()).unwrap_or_default();
                self.write(&first?.piece(), &data, at);
                Value::default()
            }
            "shutil.copy" | "shutil.copyfile" | "shutil.copy2" | "shutil.move" | "os.rename"
            | "os.replace" | "fs.copyFileSync" | "fs.copyFile" | "fs.renameSync" | "fs.rename"
            | "shutil.copytree" | "fs.cpSync" | "os.symlink" | "fs.symlinkSync" | "os.link" => {
                let data = self.read(&first?.piece(), at);
                self.write(&arguments.get(1)?.1.piece(), &data, at);
                Value::default()
            }
            "urllib.request.urlretrieve" | "wget.download" => {
                self.record(path, arguments, at, callee.taint);
                let file = arguments.get(1).map_or_else(|| Rc::from("\0"), |(_, value)| value.piece());
                self.write(&file, &Value::unknown(Taint::NETWORK), at);
                Value::unknown(Taint::NETWORK)
            }
            "shutil.rmtree" | "os.remove" | "os.unlink" | "os.rmdir" | "fs.rmSync" | "fs.rm"
            | "fs.unlinkSync" | "fs.rmdirSync" | "fs.unlink" | "fs.promises.rm" | "rimraf"
            | "rimraf.sync" | "fs.removeSync" | "fs.remove" | "fs.promises.rmdir" | "del"
            | "os.removedirs" | "fs.promises.unlink" | "fs.rmdir" | "fs.emptyDirSync" | "rimraf.rimraf"
            | "rimraf.rimrafSync" => {
                let is_tree = !path.contains("unlink") && !matches!(&**path, "os.remove" | "os.rmdir");
                self.record(path, arguments, at, callee.taint);
                self.delete(first?, is_tree, at);
                Value::default()
            }
            _ => return None,
        })
    }
}
