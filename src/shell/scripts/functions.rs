//! Functions and operators without effects, computed for constants.

use super::super::argument::HOLE;
use super::super::programs::Language;
use super::decode;
use super::evaluate::Arguments;
use super::token::Token;
use super::value::{TEXT_MAX, Value};

/// Text of the home directory, as paths are spelled.
const HOME: &str = "~";

/// The result of an operator.
pub(super) fn operate(sign: &str, left: Value, right: Value) -> Value {
    match (sign, left, right) {
        ("+" | "." | ".." | "<<", left, right) => left.concat(right),
        ("*", Value::Text(text), Value::Number(times)) => {
            let times = usize::try_from(times).unwrap_or(0);
            if text.len().saturating_mul(times) > TEXT_MAX {
                Value::Unknown
            } else {
                Value::Text(text.repeat(times))
            }
        }
        ("*", Value::Number(a), Value::Number(b)) => a.checked_mul(b).map_or(Value::Unknown, Value::Number),
        ("-", Value::Number(a), Value::Number(b)) => a.checked_sub(b).map_or(Value::Unknown, Value::Number),
        // A byte of a text stands as a character.
        ("^", a, b) => match (code(&a), code(&b)) {
            (Some(a), Some(b)) => Value::Number(a ^ b),
            _ => Value::Unknown,
        },
        // `Path("a") / "b"`
        ("/", Value::Text(a), Value::Text(b)) => join_paths(&[a, b]),
        ("%", Value::Text(format), value) => fill_format(&format, value.elements()),
        ("%", Value::Number(a), Value::Number(b)) => a.checked_rem(b).map_or(Value::Unknown, Value::Number),
        _ => Value::Unknown,
    }
}

/// `%s` and `{}` in order.
fn fill_format(format: &str, values: &[Value]) -> Value {
    let mut out = String::new();
    let mut values = values.iter();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('%', Some('%')) => {
                out.push('%');
                chars.next();
            }
            ('%', Some('s' | 'd' | 'r' | 'i' | 'c')) => {
                chars.next();
                out.push_str(&values.next().map_or(HOLE.to_string(), Value::to_text));
            }
            ('{', Some('}' | '0'..='9')) => {
                while chars.next().is_some_and(|c| c != '}') {}
                out.push_str(&values.next().map_or(HOLE.to_string(), Value::to_text));
            }
            _ => out.push(c),
        }
    }
    Value::text(out)
}

fn join_paths(parts: &[String]) -> Value {
    let mut out = String::new();
    for part in parts {
        if part.starts_with(['/', '~']) {
            out.clear();
        } else if !out.is_empty() && !out.ends_with('/') {
            out.push('/');
        }
        out.push_str(part);
    }
    Value::text(out)
}

/// Something in a folder, whatever its name.
pub(super) fn below(folder: &Value) -> Value {
    match folder {
        Value::Text(text) => Value::text(format!("{}/{HOLE}", text.trim_end_matches('/'))),
        _ => Value::Unknown,
    }
}

/// Any one element of what a loop runs over.
pub(super) fn one_of(value: &Value) -> Value {
    match value {
        Value::List(list) if list.len() == 1 => list[0].clone(),
        // The one that may do most harm: the shortest path from elsewhere, else the first text.
        Value::List(list) => {
            let elsewhere =
                |v: &&Value| matches!(v, Value::Text(t) if t.starts_with(['/', '~']) || t.contains(".."));
            let length =
                |v: &&Value| matches!(v, Value::Text(t) if t.len() < 1 << 16).then(|| v.to_text().len());
            list.iter()
                .filter(elsewhere)
                .min_by_key(|v| length(v).unwrap_or(usize::MAX))
                .or_else(|| list.iter().find(|v| matches!(v, Value::Text(_))))
                .cloned()
                .unwrap_or_default()
        }
        // A text is what a folder or pattern was listed for.
        Value::Text(text) => Value::Text(text.clone()),
        _ => Value::Unknown,
    }
}

/// Everything a loop runs over; a text is its characters.
pub(super) fn elements_of(value: &Value) -> Vec<Value> {
    match value {
        Value::List(list) => list.clone(),
        Value::Text(text) if !text.contains(HOLE) => {
            text.chars().map(|c| Value::Text(c.to_string())).collect()
        }
        _ => Vec::new(),
    }
}

/// A number, or the code of a single character.
fn code(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => Some(*number),
        Value::Text(text) if text.chars().count() == 1 => {
            text.chars().next().map(|c| i64::from(u32::from(c)))
        }
        _ => None,
    }
}

/// An element of a list, a character of a text, a variable of the environment.
pub(super) fn element(value: &Value, key: &Value) -> Value {
    match (value, key) {
        (Value::List(list), Value::Number(index)) => {
            let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
            let index = if *index < 0 { length + index } else { *index };
            usize::try_from(index).ok().and_then(|i| list.get(i)).cloned().unwrap_or_default()
        }
        (Value::Text(text), Value::Number(index)) => usize::try_from(*index)
            .ok()
            .and_then(|i| text.chars().nth(i))
            .map_or(Value::Unknown, |c| Value::Text(c.to_string())),
        (Value::Name(name), Value::Text(key)) if is_environment(name) => environment(key),
        // Ruby's `Dir["*"]`.
        (Value::Name(name), Value::Text(_)) if name == "Dir" => Value::List(vec![key.clone()]),
        (Value::Fetched(url), _) => Value::Fetched(url.clone()),
        _ => Value::Unknown,
    }
}

/// Whether a name is that of all variables of the environment.
pub(super) fn is_environment(name: &str) -> bool {
    matches!(
        name,
        "os.environ" | "process.env" | "ENV" | "$ENV" | "$_ENV" | "$_SERVER" | "Bun.env" | "Deno.env"
    )
}

fn environment(key: &str) -> Value {
    match key {
        "HOME" | "USERPROFILE" => Value::Text(HOME.to_owned()),
        "SHELL" => Value::Text("/bin/sh".to_owned()),
        _ => Value::Unknown,
    }
}

/// A slice, of which only the reverse and constant bounds are computed.
pub(super) fn slice(value: &Value, inner: &[Token], reversed: bool) -> Value {
    match (value, inner) {
        (Value::Text(text), _) if reversed => Value::Text(text.chars().rev().collect()),
        (Value::List(list), _) if reversed => Value::List(list.iter().rev().cloned().collect()),
        (Value::Text(text), [Token::Number(from), Token::Sign(":")]) => {
            Value::Text(text.chars().skip(usize::try_from(*from).unwrap_or(0)).collect())
        }
        (Value::Text(text), [Token::Sign(":"), Token::Number(to)]) => {
            Value::Text(text.chars().take(usize::try_from(*to).unwrap_or(0)).collect())
        }
        (Value::List(list), [Token::Sign(":")]) => Value::List(list.clone()),
        (Value::Fetched(url), _) => Value::Fetched(url.clone()),
        _ => Value::Unknown,
    }
}

/// A member of a module that is no call.
pub(super) fn attribute(full: String) -> Value {
    match full.as_str() {
        "os.sep" | "path.sep" => Value::Text("/".to_owned()),
        "os.linesep" | "os.EOL" => Value::Text("\n".to_owned()),
        _ => Value::Name(full),
    }
}

/// A member of a value that is no call.
pub(super) fn attribute_of(value: Value, name: &str) -> Value {
    match (value, name) {
        (value @ (Value::Fetched(_) | Value::Opaque), _) => value,
        (value @ Value::Text(_), "parent" | "name" | "path") => value,
        _ => Value::Unknown,
    }
}

fn join(separator: &str, list: &[Value]) -> Value {
    if let Some(special) = list.iter().find(|v| matches!(v, Value::Fetched(_) | Value::Opaque)) {
        return special.clone();
    }
    let texts: Vec<String> = list.iter().map(Value::to_text).collect();
    Value::text(texts.join(separator))
}

/// What comes out of a decoder: text, or something that runs unseen.
fn decoded(value: &Value, decoder: impl Fn(&str) -> Option<String>) -> Value {
    match value {
        Value::Fetched(url) => Value::Fetched(url.clone()),
        _ => value.known().and_then(decoder).map_or(Value::Opaque, Value::text),
    }
}

fn character(number: i64) -> Option<char> {
    u32::try_from(number).ok().and_then(char::from_u32).filter(|c| *c != HOLE)
}

fn characters(values: &[Value]) -> Value {
    let text: Option<String> = values
        .iter()
        .flat_map(Value::elements)
        .map(|value| match value {
            Value::Number(number) => character(*number),
            _ => None,
        })
        .collect();
    text.map_or(Value::Unknown, Value::text)
}

/// The result of a function without effects; `None` for every other one.
pub(super) fn pure(language: Language, name: &str, arguments: &Arguments) -> Option<Value> {
    let first = arguments.first();
    let last = name.rsplit('.').next().unwrap_or_default();
    Some(match name {
        "chr" | "string.char" | "String.fromCharCode" | "String.fromCodePoint" => {
            characters(&arguments.positional)
        }
        "bytes" | "bytearray" | "Uint8Array.from" if matches!(first, Value::List(_)) => {
            characters(&arguments.positional)
        }
        "str" | "bytes" | "bytearray" | "String" | "Path" | "pathlib.Path" | "PosixPath"
        | "pathlib.PosixPath" | "Pathname.new" | "Pathname" | "URI" | "URI.parse" | "list" | "tuple"
        | "sorted" | "set" | "iter" | "escapeshellarg" | "trim" | "textwrap.dedent" | "shlex.quote"
        | "path.normalize" | "path.resolve" | "os.path.abspath" | "os.path.realpath" | "os.path.normpath"
        | "File.expand_path" | "os.path.expanduser" | "os.fspath" | "os.fsencode" | "new" | "URL" => {
            if arguments.positional.len() > 1 && last == "Path" {
                let parts: Vec<String> = arguments.positional.iter().map(Value::to_text).collect();
                join_paths(&parts)
            } else {
                first
            }
        }
        "dict" | "JSON.stringify" | "json.dumps" | "urlencode" | "urllib.parse.urlencode" | "json_encode"
            if matches!(&first, Value::Name(name) if is_environment(name)) =>
        {
            first
        }
        "Path.home" | "pathlib.Path.home" | "os.homedir" | "Dir.home" => Value::Text(HOME.to_owned()),
        "Path.cwd" | "pathlib.Path.cwd" | "os.getcwd" | "process.cwd" | "Dir.pwd" | "getcwd" => {
            Value::Text(".".to_owned())
        }
        "os.getenv" | "os.environ.get" | "getenv" | "ENV.fetch" | "Deno.env.get" => {
            first.known().map_or(Value::Unknown, environment)
        }
        "os.path.join" | "path.join" | "File.join" | "posixpath.join" => {
            let parts: Vec<String> = arguments.positional.iter().map(Value::to_text).collect();
            join_paths(&parts)
        }
        // What fits the pattern, as one path.
        "Dir.glob" | "glob.glob" | "glob.iglob" | "glob" | "glob.sync" | "globSync" | "fs.globSync"
        | "fg.sync" | "Pathname.glob" => match first {
            Value::Text(_) => Value::List(vec![first]),
            other => other,
        },
        "os.walk" => match below(&first) {
            Value::Text(_) => {
                let names = || Value::List(vec![Value::Text(HOLE.to_string())]);
                Value::List(vec![Value::List(vec![first, names(), names()])])
            }
            _ => Value::Unknown,
        },
        "os.scandir" | "os.listdir" | "fs.readdirSync" | "readdirSync" | "Dir.children" | "Dir.entries"
        | "Dir.each_child" | "Dir.foreach" | "Find.find" | "scandir" => match below(&first) {
            Value::Text(text) => Value::List(vec![Value::Text(text)]),
            _ => Value::Unknown,
        },
        // `File.method(:delete)`
        _ if language == Language::Ruby && last == "method" && name.len() > last.len() => {
            let module = &name[..name.len() - last.len()];
            first.known().map_or(Value::Unknown, |method| Value::Name(format!("{module}{method}")))
        }
        "base64.b64decode"
        | "base64.standard_b64decode"
        | "base64.urlsafe_b64decode"
        | "base64.decodebytes"
        | "atob"
        | "Base64.decode64"
        | "Base64.strict_decode64"
        | "Base64.urlsafe_decode64"
        | "base64_decode"
        | "decode_base64"
        | "MIME.Base64.decode_base64"
        | "binascii.a2b_base64" => decoded(&first, decode::base64),
        "bytes.fromhex" | "bytearray.fromhex" | "binascii.unhexlify" | "binascii.a2b_hex" | "hex2bin"
        | "base64.b16decode" => decoded(&first, decode::hex),
        "str_rot13" => decoded(&first, |text| Some(decode::rot13(text))),
        "codecs.decode" => match arguments.get(1, &["encoding"]).and_then(Value::known) {
            Some(kind) if kind.contains("rot") => decoded(&first, |text| Some(decode::rot13(text))),
            Some(kind) if kind.contains("hex") => decoded(&first, decode::hex),
            Some(kind) if kind.contains("base64") => decoded(&first, decode::base64),
            _ => first,
        },
        "Buffer.from" => match arguments.get(1, &[]).and_then(Value::known) {
            Some("base64" | "base64url") => decoded(&first, decode::base64),
            Some("hex") => decoded(&first, decode::hex),
            _ if matches!(first, Value::List(_)) => characters(&arguments.positional),
            _ => first,
        },
        "pack" if language != Language::Lua => match (first.known(), arguments.get(1, &[])) {
            (Some(format), Some(value)) if format.starts_with('H') => decoded(value, decode::hex),
            (Some(format), _) if format.starts_with(['C', 'c', 'W', 'U']) => {
                characters(arguments.positional.get(1..)?)
            }
            _ => Value::Opaque,
        },
        "unpack" => match (first.known(), arguments.get(1, &[])) {
            (Some(format), Some(value)) if format.starts_with('m') => decoded(value, decode::base64),
            _ => Value::Opaque,
        },
        "zlib.decompress"
        | "gzip.decompress"
        | "bz2.decompress"
        | "lzma.decompress"
        | "marshal.loads"
        | "gzinflate"
        | "gzuncompress"
        | "gzdecode"
        | "zlib.inflateSync"
        | "zlib.gunzipSync"
        | "Zlib.Inflate.inflate"
        | "Zlib.inflate"
        | "pickle.loads" => match first {
            Value::Fetched(url) => Value::Fetched(url),
            _ => Value::Opaque,
        },
        "reversed" | "strrev" | "reverse" | "string.reverse" => match first {
            Value::Text(text) => Value::Text(text.chars().rev().collect()),
            Value::List(list) => Value::List(list.into_iter().rev().collect()),
            other => other,
        },
        "map" if first == Value::Name("chr".to_owned()) => {
            let numbers = arguments.positional.get(1)?;
            Value::List(numbers.elements().iter().map(|n| characters(std::slice::from_ref(n))).collect())
        }
        "join" | "implode" => match (&first, arguments.get(1, &[])) {
            (Value::Text(separator), Some(Value::List(list))) => join(separator, list),
            (Value::Text(separator), Some(_)) => join(separator, &arguments.positional[1..]),
            _ => Value::Unknown,
        },
        "str_replace" => match (&first, arguments.get(1, &[]), arguments.get(2, &[])) {
            (Value::Text(from), Some(Value::Text(to)), Some(Value::Text(text))) if !from.is_empty() => {
                Value::text(text.replace(from.as_str(), to))
            }
            _ => Value::Unknown,
        },
        "shlex.split" | "qw" => split(&first, None),
        "strtolower" | "lc" | "string.lower" => cased(&first, false),
        "strtoupper" | "uc" | "string.upper" => cased(&first, true),
        "sprintf" | "format" | "string.format" => match &first {
            Value::Text(format) => fill_format(format, arguments.positional.get(1..).unwrap_or_default()),
            _ => Value::Unknown,
        },
        "concat" | "Buffer.concat" => match &first {
            Value::List(list) => join("", list),
            _ => Value::Unknown,
        },
        "zip" => match (&first, arguments.get(1, &[])) {
            (a, Some(b)) => {
                let pairs = elements_of(a).into_iter().zip(elements_of(b));
                Value::List(pairs.map(|(a, b)| Value::List(vec![a, b])).collect())
            }
            _ => Value::Unknown,
        },
        "ord" => match first.known().and_then(|t| t.chars().next()) {
            Some(c) => Value::Number(i64::from(u32::from(c))),
            None => Value::Unknown,
        },
        "__import__" | "importlib.import_module" | "require" | "import" => match first.known() {
            Some(module) => Value::Name(module.trim_start_matches("node:").to_owned()),
            None => Value::Unknown,
        },
        "getattr" | "Reflect.get" => match (&first, arguments.get(1, &[]).and_then(Value::known)) {
            (Value::Name(module), Some(member)) => Value::Name(format!("{module}.{member}")),
            _ => Value::Unknown,
        },
        "sys.stdin.read" | "sys.stdin.readline" | "input" | "STDIN.read" | "gets" | "$stdin.read" => {
            Value::Opaque
        }
        _ => return None,
    })
}

fn cased(value: &Value, upper: bool) -> Value {
    match value {
        Value::Text(text) => Value::Text(if upper { text.to_uppercase() } else { text.to_lowercase() }),
        _ => Value::Unknown,
    }
}

fn split(value: &Value, separator: Option<&str>) -> Value {
    let Value::Text(text) = value else { return Value::Unknown };
    let parts: Vec<Value> = match separator {
        Some("") => text.chars().map(|c| Value::Text(c.to_string())).collect(),
        Some(separator) => text.split(separator).map(|p| Value::Text(p.to_owned())).collect(),
        None => text.split_whitespace().map(|p| Value::Text(p.to_owned())).collect(),
    };
    if parts.len() > 4096 { Value::Unknown } else { Value::List(parts) }
}

/// The result of a method without effects; `None` for every other one.
pub(super) fn method(language: Language, value: &Value, name: &str, arguments: &Arguments) -> Option<Value> {
    let first = arguments.first();
    match (value, name) {
        // Whatever is done to something from the network, it stays from there.
        (Value::Fetched(_) | Value::Opaque, _) => Some(value.clone()),
        (Value::Text(separator), "join") => match &first {
            Value::List(list) => Some(join(separator, list)),
            Value::Fetched(_) | Value::Opaque => Some(first),
            _ => Some(Value::Unknown),
        },
        (Value::List(list), "join") => {
            Some(join(first.known().unwrap_or(if language == Language::JavaScript { "," } else { "" }), list))
        }
        (Value::Text(text), "decode" | "toString" | "to_s" | "tostring") => match first.known() {
            Some(kind) if kind.contains("rot") => Some(Value::Text(decode::rot13(text))),
            Some("hex") => Some(decoded(value, decode::hex)),
            Some("base64") if language == Language::Python => Some(decoded(value, decode::base64)),
            _ => Some(value.clone()),
        },
        (
            Value::Text(_),
            "encode" | "strip" | "lstrip" | "rstrip" | "trim" | "chomp" | "chomp!" | "expanduser" | "resolve"
            | "absolute" | "as_posix" | "freeze" | "dup" | "b" | "expand_path" | "to_str" | "copy",
        ) => Some(value.clone()),
        (Value::Text(_), "iterdir" | "children" | "each_child" | "entries") => {
            Some(Value::List(vec![below(value)]))
        }
        (Value::Text(text), "rglob" | "glob") => {
            let between = if name == "rglob" { "/**/" } else { "/" };
            let path = format!("{}{between}{}", text.trim_end_matches('/'), first.to_text());
            Some(Value::List(vec![Value::text(path)]))
        }
        // The same elements, or some of them.
        (
            Value::List(_),
            "sort" | "sorted" | "to_a" | "uniq" | "compact" | "flatten" | "flat" | "lazy" | "select"
            | "reject" | "filter" | "grep" | "grep_v" | "each" | "forEach" | "reverse_each" | "sort_by"
            | "each_entry" | "take" | "drop" | "slice" | "toSorted" | "each_with_index",
        ) => Some(value.clone()),
        (Value::Text(text), "lower" | "toLowerCase" | "downcase") => Some(Value::Text(text.to_lowercase())),
        (Value::Text(text), "upper" | "toUpperCase" | "upcase") => Some(Value::Text(text.to_uppercase())),
        (Value::Text(text), "reverse") => Some(Value::Text(text.chars().rev().collect())),
        (Value::List(list), "reverse" | "reverse!") => {
            Some(Value::List(list.iter().rev().cloned().collect()))
        }
        // Of a path, not of characters in a text.
        (Value::Text(_), "delete") if arguments.positional.is_empty() => None,
        (Value::Text(text), "replace" | "replaceAll" | "gsub" | "sub" | "tr" | "delete") => {
            let to = arguments.get(1, &[]).map_or(String::new(), Value::to_text);
            match first.known() {
                Some(from) if !from.is_empty() => Some(Value::text(text.replace(from, &to))),
                _ => Some(Value::Unknown),
            }
        }
        (Value::Text(text), "format") => Some(fill_format(text, &arguments.positional)),
        (Value::Text(_), "split") => Some(split(value, first.known())),
        (Value::Text(text), "concat") => Some(Value::text(text.clone() + &first.to_text())),
        (Value::Text(text), "joinpath") => Some(join_paths(&[text.clone(), first.to_text()])),
        (Value::Text(text), "repeat") => Some(operate("*", Value::Text(text.clone()), first)),
        (Value::Text(text), "unpack" | "unpack1") => match first.known() {
            Some(format) if format.starts_with('m') => {
                Some(Value::List(vec![decoded(&Value::Text(text.clone()), decode::base64)]))
            }
            _ => Some(Value::Opaque),
        },
        (Value::List(list), "pack") => match first.known() {
            Some(format) if format.starts_with('H') => list.first().map(|v| decoded(v, decode::hex)),
            Some(format) if format.starts_with(['c', 'C', 'U', 'W']) => Some(characters(list)),
            _ => Some(Value::Opaque),
        },
        (Value::List(list), "first" | "shift") => list.first().cloned(),
        (Value::List(list), "map" | "collect") => match &first {
            Value::Name(function) if function.ends_with("fromCharCode") || function == "chr" => {
                Some(Value::List(list.iter().map(|n| characters(std::slice::from_ref(n))).collect()))
            }
            _ => Some(Value::Unknown),
        },
        _ => None,
    }
}
