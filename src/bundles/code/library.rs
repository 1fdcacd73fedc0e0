//! What functions of the languages and their libraries mean for names and values: those that data cannot tell.

use std::rc::Rc;

use super::call::Arguments;
use super::decode;
use super::follow::Walk;
use super::taint::Taint;
use super::value::{ELEMENTS_MAX, Shape, Value};
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
        if let Some(value) = self.read_constant(path, callee, arguments, at) {
            return Some(value);
        }
        let found = self
            .own_text(path, arguments, at)
            .or_else(|| self.module_function(path, callee, arguments, at))
            .or_else(|| self.function_function(path, callee, arguments, at))
            .or_else(|| self.file_function(path, callee, arguments, at));
        if found.is_some() {
            return found;
        }
        Some(match &**path {
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
            "queue.Queue"
            | "queue.SimpleQueue"
            | "queue.LifoQueue"
            | "asyncio.Queue"
            | "multiprocessing.Queue" => Value::list(Vec::new()),
            // Its elements, which `add` puts more to.
            "Set" | "WeakSet" | "collections.deque" => match first {
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
                self.classes.push(super::classes::ClassInfo { scope: inner, ..Default::default() });
                self.instance(self.classes.len() - 1, &[])
            }
            "Object.getPrototypeOf" if matches!(first?.shape, Shape::Object(_)) => first?.clone(),
            "String.raw" if first?.entry("raw").is_some() => {
                // Called like any function: pieces, and what stands between them.
                let pieces = self.elements(first?.entry("raw")?)?;
                let mut between = arguments.iter().skip(1).map(|(_, value)| value.clone());
                let count = pieces.len();
                let mut row = Vec::with_capacity(2 * count);
                for (nth, piece) in pieces.into_iter().enumerate() {
                    row.push(piece);
                    row.extend(between.next().filter(|_| nth + 1 < count));
                }
                super::evaluate::concatenated(&row)
            }
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
                self.record("eval", &arguments[..1], at, callee.taint);
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
            "builtins.type" if arguments.iter().filter(|(name, _)| name.is_none()).count() == 3 => {
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
                self.classes.push(super::classes::ClassInfo { scope: inner, parents, ..Default::default() });
                let number = self.classes.len() - 1;
                let keywords: Vec<_> = arguments.iter().filter(|(name, _)| name.is_some()).cloned().collect();
                self.made_below(number, &keywords, at);
                Value::of(Shape::Class(number))
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
            "builtins.type" | "builtins.super" | "builtins.object" => {
                return Some(Value::unknown(Taint::NONE));
            }
            "builtins.len" => match &first?.shape {
                Shape::List(values) => Value::of(Shape::Number(values.len() as f64)),
                Shape::Bytes(bytes) => Value::of(Shape::Number(bytes.len() as f64)),
                Shape::Text(text) if !text.contains(super::value::HOLE) => {
                    Value::of(Shape::Number(text.chars().count() as f64))
                }
                _ => Value::default(),
            },
            "builtins.isinstance"
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
            "builtins.hex" => Value::text(format!("0x{}", super::fold::hex_of(first?)?)).with(taint),
            "builtins.str.join" | "str.join" | "builtins.bytes.join" => {
                let method = Value::of(Shape::Method(Rc::new((first?.clone(), Rc::from("join")))));
                self.call(&method, &arguments[1..], at, false)
            }
            // The credentials, and the project that they are for.
            "google.auth.default" | "google.auth.load_credentials_from_file" => {
                self.record(path, arguments, at, callee.taint);
                let credentials = Value::api("google.auth.credentials.Credentials()").with(Taint::KEYCHAIN);
                Value::list(vec![credentials, Value::default()])
            }
            "asyncio.open_connection" | "asyncio.open_unix_connection" => {
                self.record(path, arguments, at, callee.taint);
                let reader = Value::api("asyncio.StreamReader()").with(Taint::NETWORK);
                Value::list(vec![reader, Value::api("asyncio.StreamWriter()")])
            }
            _ => return None,
        })
    }
}
