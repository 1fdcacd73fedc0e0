//! Constants put together: what methods of texts, bytes and lists give when everything is known.

use std::rc::Rc;

use super::Language;
use super::call::Arguments;
use super::evaluate::concatenated;
use super::taint::Taint;
use super::tree::Operator;
use super::value::{ELEMENTS_MAX, HOLE, Shape, TEXT_BYTES_MAX, Value, join};

/// `a OP b` of numbers.
pub(super) fn arithmetic(operator: Operator, a: f64, b: f64) -> Option<f64> {
    let (x, y) = (a as i64, b as i64);
    Some(match operator {
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide if b != 0.0 => a / b,
        Operator::Modulo if b != 0.0 => a.rem_euclid(b),
        Operator::Xor => (x ^ y) as f64,
        Operator::And => (x & y) as f64,
        Operator::Or => (x | y) as f64,
        Operator::ShiftLeft if (0..53).contains(&y) => x.checked_shl(y as u32)? as f64,
        Operator::ShiftRight if (0..63).contains(&y) => (x >> y) as f64,
        _ => return None,
    })
}

/// An index from either end as a place in `length` elements.
fn place(index: f64, length: usize) -> Option<usize> {
    let index = if index < 0.0 { index + length as f64 } else { index };
    (index >= 0.0 && index < length as f64 && index.fract() == 0.0).then_some(index as usize)
}

/// The element of a list, text or bytes at an index.
pub(super) fn element(base: &Value, index: f64) -> Option<Value> {
    match &base.shape {
        Shape::List(values) => place(index, values.len()).map(|at| values[at].clone().with(base.taint)),
        Shape::Text(text) if !text.contains(HOLE) => {
            let at =
                if text.is_ascii() { place(index, text.len())? } else { place(index, text.chars().count())? };
            let c = if text.is_ascii() { char::from(text.as_bytes()[at]) } else { text.chars().nth(at)? };
            Some(Value::text(c.to_string()).with(base.taint | Taint::ASSEMBLED))
        }
        Shape::Bytes(bytes) => place(index, bytes.len())
            .map(|at| Value::of(Shape::Number(f64::from(bytes[at]))).with(base.taint)),
        _ => None,
    }
}

/// `base[from:to:step]`.
pub(super) fn slice(base: &Value, parts: &[Option<Value>; 3]) -> Value {
    let taint = base.deep_taint();
    let [from, to, step] = parts.each_ref().map(|part| part.as_ref().and_then(Value::as_number));
    if parts.iter().flatten().any(|part| part.as_number().is_none() && !matches!(part.shape, Shape::Null)) {
        return Value::unknown(taint).about(base.about.clone());
    }
    let step = step.unwrap_or(1.0) as i64;
    let pick = |length: usize| -> Vec<usize> {
        let length = length as i64;
        let clamp = |at: f64, low: i64, high: i64| {
            let at = at as i64;
            (if at < 0 { at + length } else { at }).clamp(low, high)
        };
        let mut out = Vec::new();
        if step > 0 {
            let (mut at, end) =
                (from.map_or(0, |f| clamp(f, 0, length)), to.map_or(length, |t| clamp(t, 0, length)));
            while at < end {
                out.push(at as usize);
                at = at.saturating_add(step);
            }
        } else if step < 0 {
            let (mut at, end) = (
                from.map_or(length - 1, |f| clamp(f, -1, length - 1)),
                to.map_or(-1, |t| clamp(t, -1, length - 1)),
            );
            while at > end {
                out.push(at as usize);
                at = at.saturating_add(step);
            }
        }
        out
    };
    let turned = if step == 1 { Taint::ASSEMBLED } else { Taint::HIDDEN };
    match &base.shape {
        Shape::Text(text) if text.len() <= TEXT_BYTES_MAX => {
            let chars: Vec<char> = text.chars().collect();
            Value::text(pick(chars.len()).into_iter().map(|at| chars[at]).collect::<String>())
                .with(taint | turned)
        }
        Shape::Bytes(bytes) => {
            let out: Vec<u8> = pick(bytes.len()).into_iter().map(|at| bytes[at]).collect();
            Value::of(Shape::Bytes(out.into())).with(taint | turned)
        }
        Shape::List(values) => {
            Value::list(pick(values.len()).into_iter().map(|at| values[at].clone()).collect())
                .with(base.taint)
        }
        _ => Value::unknown(taint).about(base.about.clone()),
    }
}

/// `text * times`.
pub(super) fn repeat(text: &str, times: f64) -> Value {
    let times = times.max(0.0) as usize;
    if text.len().saturating_mul(times) > TEXT_BYTES_MAX {
        return Value::default();
    }
    Value::text(text.repeat(times))
}

/// `format % value`.
pub(super) fn percent(format: &str, value: &Value) -> Value {
    let mut given = match &value.shape {
        Shape::List(values) => (**values).clone(),
        _ => vec![value.clone()],
    }
    .into_iter();
    let (mut out, mut rest) = (Vec::new(), format);
    while let Some(at) = rest.find('%') {
        out.push(Value::text(&rest[..at]));
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push(Value::text("%"));
            rest = after;
            continue;
        }
        let named = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let value = match named {
            Some((name, after)) => {
                rest = after;
                value.entry(name).cloned().unwrap_or_default()
            }
            None => given.next().unwrap_or_default(),
        };
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).map_or(rest.len(), |end| end + 1);
        let is_hex = rest[..end].ends_with(['x', 'X']);
        let piece = if is_hex { hex_of(&value).unwrap_or_else(|| value.piece()) } else { value.piece() };
        out.push(Value::text(piece).with(value.taint));
        rest = &rest[end..];
    }
    out.push(Value::text(rest));
    concatenated(&out)
}

/// A number in hexadecimal digits.
pub(super) fn hex_of(value: &Value) -> Option<Rc<str>> {
    let Shape::Bytes(bytes) = super::origin::bytes_of_number(value, None, None)?.shape else { return None };
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let digits = digits.trim_start_matches('0');
    Some(Rc::from(if digits.is_empty() { "0" } else { digits }))
}

/// `format.format(…)`.
fn format(format: &str, arguments: &Arguments) -> Value {
    let (mut out, mut rest, mut next) = (Vec::new(), format, 0);
    let unnamed: Vec<&Value> = arguments.iter().filter(|(name, _)| name.is_none()).map(|(_, v)| v).collect();
    while let Some(at) = rest.find(['{', '}']) {
        out.push(Value::text(&rest[..at]));
        let is_open = rest.as_bytes()[at] == b'{';
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(if is_open { '{' } else { '}' }) {
            out.push(Value::text(if is_open { "{" } else { "}" }));
            rest = after;
            continue;
        }
        if !is_open {
            continue;
        }
        let end = rest.find('}').unwrap_or(rest.len());
        let field = rest[..end].split([':', '!', '.', '[']).next().unwrap_or_default();
        rest = rest.get(end + 1..).unwrap_or_default();
        let value = match field.parse::<usize>() {
            _ if field.is_empty() => {
                next += 1;
                unnamed.get(next - 1).copied()
            }
            Ok(nth) => unnamed.get(nth).copied(),
            Err(_) => arguments.iter().find(|(name, _)| name.as_deref() == Some(field)).map(|(_, v)| v),
        };
        out.push(value.map_or_else(|| Value::text("\0"), |v| Value::text(v.piece()).with(v.deep_taint())));
    }
    out.push(Value::text(rest));
    concatenated(&out)
}

/// What a method of a known value gives; `None` when that is not known.
pub(super) fn method(language: Language, base: &Value, name: &str, arguments: &Arguments) -> Option<Value> {
    let argument = |nth: usize| arguments.get(nth).map(|(_, value)| value);
    let taint = base.taint | arguments.iter().fold(Taint::NONE, |all, (_, v)| all | v.deep_taint());
    let value = match &base.shape {
        Shape::Text(text) => text_method(language, text, name, &argument, arguments)?,
        Shape::Bytes(bytes) => bytes_method(bytes, name, &argument)?,
        Shape::List(values) => list_method(language, values, name, &argument)?,
        Shape::Map(entries) => match name {
            "get" | "pop" | "setdefault" => {
                let key = argument(0)?.known_text()?;
                base.entry(&key).cloned().or_else(|| argument(1).cloned())?
            }
            "values" => Value::list(entries.iter().map(|(_, value)| value.clone()).collect()),
            "keys" => Value::list(entries.iter().map(|(key, _)| Value::text(key.clone())).collect()),
            "items" => {
                let pair = |(key, value): &(Rc<str>, Value)| {
                    Value::list(vec![Value::text(key.clone()), value.clone()])
                };
                Value::list(entries.iter().map(pair).collect())
            }
            "copy" => base.clone(),
            _ => return None,
        },
        Shape::Number(_) if name == "to_bytes" && language == Language::Python => {
            let order =
                arguments.iter().find(|(name, _)| name.as_deref() == Some("byteorder")).map(|(_, v)| v);
            super::origin::bytes_of_number(base, argument(0), order.or_else(|| argument(1)))?
        }
        Shape::Number(number) if name == "toString" => {
            let radix = argument(0).and_then(Value::as_number).unwrap_or(10.0) as u32;
            if !(2..=36).contains(&radix) || *number < 0.0 || number.fract() != 0.0 {
                return None;
            }
            let text = in_radix(*number as u64, radix);
            let hidden = if radix > 16 { Taint::HIDDEN } else { Taint::NONE };
            Value::text(text).with(hidden)
        }
        _ => return None,
    };
    Some(value.with(taint))
}

/// Whether a method puts something into a list or map.
pub(super) fn is_growth(base: &Value, name: &str) -> bool {
    match &base.shape {
        Shape::List(_) => {
            matches!(
                name,
                "append"
                    | "push"
                    | "extend"
                    | "add"
                    | "unshift"
                    | "insert"
                    | "appendleft"
                    | "put"
                    | "put_nowait"
            )
        }
        Shape::Map(_) => name == "update",
        _ => false,
    }
}

/// What a list or map is after a method that puts something in; `None` when it is too long.
pub(super) fn grown(base: &Value, name: &str, arguments: &Arguments) -> Option<Value> {
    match &base.shape {
        Shape::List(values) if values.len() < ELEMENTS_MAX => {
            let mut values = (**values).clone();
            let given: Vec<Value> = match (name, arguments.first().map(|(_, value)| &value.shape)) {
                ("extend", Some(Shape::List(more))) if more.len() < ELEMENTS_MAX => more.to_vec(),
                ("insert", _) => arguments.iter().skip(1).map(|(_, value)| value.clone()).collect(),
                _ => arguments.iter().map(|(_, value)| value.clone()).collect(),
            };
            let is_front = matches!(name, "unshift" | "appendleft")
                || (name == "insert" && arguments.first().and_then(|(_, v)| v.as_number()) == Some(0.0));
            let at = if is_front { 0 } else { values.len() };
            values.splice(at..at, given);
            Some(Value::list(values).with(base.taint))
        }
        Shape::Map(entries) => {
            let mut entries = (**entries).clone();
            let mut more = Taint::NONE;
            for (name, value) in arguments {
                match (name, &value.shape) {
                    (Some(name), _) => entries.push((name.clone(), value.clone())),
                    (None, Shape::Map(inner)) => entries.extend(inner.iter().cloned()),
                    _ => more |= value.deep_taint(),
                }
            }
            Some(Value::of(Shape::Map(Rc::new(entries))).with(base.taint | more))
        }
        _ => None,
    }
}

fn in_radix(mut number: u64, radix: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((number % u64::from(radix)) as u32, radix).unwrap_or('0'));
        number /= u64::from(radix);
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

fn text_method<'v>(
    language: Language,
    text: &Rc<str>,
    name: &str,
    argument: &impl Fn(usize) -> Option<&'v Value>,
    arguments: &Arguments,
) -> Option<Value> {
    let known = |nth: usize| argument(nth).and_then(Value::known_text);
    let number = |nth: usize| argument(nth).and_then(Value::as_number);
    Some(match name {
        "replace" | "replaceAll" => {
            let (Some(from), Some(to)) = (known(0), known(1)) else {
                // A pattern, or something unknown: what is left is not known, but not nothing.
                return Some(Value::text(text.clone()));
            };
            if from.is_empty() || text.len() / from.len() * to.len() > TEXT_BYTES_MAX {
                return None;
            }
            let is_first = language == Language::JavaScript && name == "replace";
            let out = if is_first { text.replacen(&*from, &to, 1) } else { text.replace(&*from, &to) };
            Value::text(out).with(Taint::ASSEMBLED)
        }
        "join" if language == Language::Python => {
            let values = argument(0)?;
            let values = match &values.shape {
                Shape::List(values) => values.clone(),
                Shape::Text(_) => return Some(values.clone()),
                _ => return None,
            };
            joined(&values, text)?
        }
        "format" => format(text, arguments),
        "format_map" => match &argument(0)?.shape {
            Shape::Map(entries) => {
                let named: Vec<_> =
                    entries.iter().map(|(name, value)| (Some(name.clone()), value.clone())).collect();
                format(text, &named)
            }
            _ => return None,
        },
        // What is taken for a text where a function gets what matched.
        "group" if language == Language::Python => Value::text(text.clone()),
        "groups" if language == Language::Python => Value::list(vec![Value::text(text.clone())]),
        "split" | "rsplit" => {
            let by = known(0);
            let parts: Vec<Value> = match by.as_deref() {
                Some("") => text.chars().map(|c| Value::text(c.to_string())).collect(),
                Some(by) => text.split(by).map(Value::text).collect(),
                None if argument(0).is_some() => return None,
                None => text.split_whitespace().map(Value::text).collect(),
            };
            if parts.len() > ELEMENTS_MAX {
                return None;
            }
            Value::list(parts)
        }
        "splitlines" => Value::list(text.lines().map(Value::text).collect()),
        "strip" | "trim" | "lstrip" | "rstrip" | "trimStart" | "trimEnd" => match known(0) {
            Some(chars) => Value::text(text.trim_matches(|c| chars.contains(c))),
            None => Value::text(text.trim()),
        },
        "lower" | "toLowerCase" | "casefold" => Value::text(text.to_lowercase()),
        "upper" | "toUpperCase" => Value::text(text.to_uppercase()),
        "swapcase" => {
            let swap =
                |c: char| if c.is_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
            Value::text(text.chars().map(swap).collect::<String>()).with(Taint::HIDDEN)
        }
        "encode" => match known(0).as_deref() {
            Some("rot13" | "rot_13") => Value::text(super::decode::rot13(text)).with(Taint::HIDDEN),
            _ if text.contains(HOLE) => Value::text(text.clone()),
            _ => Value::of(Shape::Bytes(Rc::from(text.as_bytes()))),
        },
        "to_bytes" if language == Language::Python => {
            let order =
                arguments.iter().find(|(name, _)| name.as_deref() == Some("byteorder")).map(|(_, v)| v);
            let number = Value::text(text.clone());
            super::origin::bytes_of_number(&number, argument(0), order.or_else(|| argument(1)))?
                .with(Taint::HIDDEN)
        }
        // Codecs of Python 2.
        "decode" if known(0).is_some_and(|codec| is_codec(&codec)) => {
            let codec = known(0)?.to_ascii_lowercase().replace('-', "_");
            let bytes = match codec.as_str() {
                "hex" | "hex_codec" => super::decode::hex(text.as_bytes())?,
                "rot13" | "rot_13" => super::decode::rot13(text).into_bytes(),
                _ => super::decode::base64(text.as_bytes())?,
            };
            Value::of(Shape::Bytes(bytes.into())).with(Taint::DECODED | Taint::HIDDEN)
        }
        "decode" | "toString" | "valueOf" | "toLocaleString" | "normalize" | "expandtabs" | "as_posix"
        | "title" => Value::text(text.clone()),
        "concat" => {
            let pieces =
                std::iter::once(text.clone()).chain(arguments.iter().map(|(_, value)| value.piece()));
            Value::text(join(pieces)?).with(Taint::ASSEMBLED)
        }
        "repeat" => repeat(text, number(0)?),
        "slice" | "substring" | "substr" => {
            let from = Value::of(Shape::Number(number(0).unwrap_or(0.0)));
            let to = match (name, number(1)) {
                ("substr", Some(length)) => Some(number(0).unwrap_or(0.0) + length),
                (_, to) => to,
            };
            let to = to.map(|to| Value::of(Shape::Number(to)));
            slice(&Value::text(text.clone()), &[Some(from), to, None])
        }
        "charAt" | "at" => element(&Value::text(text.clone()), number(0).unwrap_or(0.0))?,
        "charCodeAt" | "codePointAt" => {
            let at = place(number(0).unwrap_or(0.0), text.chars().count())?;
            Value::of(Shape::Number(f64::from(u32::from(text.chars().nth(at)?))))
        }
        "zfill" | "padStart" | "padEnd" | "ljust" | "rjust" | "center" => Value::text(text.clone()),
        "removeprefix" => Value::text(text.strip_prefix(&*known(0)?).unwrap_or(text)),
        "removesuffix" => Value::text(text.strip_suffix(&*known(0)?).unwrap_or(text)),
        "indexOf" | "find" | "index" if language == Language::JavaScript || name != "find" => {
            Value::of(Shape::Number(text.find(&*known(0)?).map_or(-1.0, |at| at as f64)))
        }
        "translate" => {
            let table = argument(0)?;
            let Shape::Map(entries) = &table.shape else { return None };
            let one = |c: char| {
                let code = u32::from(c).to_string();
                let found = entries.iter().find(|(key, _)| **key == *code || key.chars().eq([c]));
                found.map_or_else(|| c.to_string(), |(_, value)| value.piece().to_string())
            };
            Value::text(text.chars().map(one).collect::<String>()).with(Taint::HIDDEN)
        }
        "reverse" => return None,
        _ => return None,
    })
}

/// Whether a codec hides a text rather than writing it down.
fn is_codec(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    matches!(name.as_str(), "hex" | "hex_codec" | "base64" | "base64_codec" | "rot13" | "rot_13")
}

fn joined(values: &[Value], by: &str) -> Option<Value> {
    let bytes: usize =
        values.iter().map(|value| value.as_text().map_or(1, |text| text.len()) + by.len()).sum();
    if bytes > TEXT_BYTES_MAX {
        return None;
    }
    let mut out = String::with_capacity(bytes);
    let mut taint = Taint::ASSEMBLED;
    for (nth, value) in values.iter().enumerate() {
        if nth > 0 {
            out.push_str(by);
        }
        out.push_str(&value.piece());
        taint |= value.deep_taint();
    }
    Some(Value::text(out).with(taint))
}

fn bytes_method<'v>(
    bytes: &Rc<[u8]>,
    name: &str,
    argument: &impl Fn(usize) -> Option<&'v Value>,
) -> Option<Value> {
    let text = || std::str::from_utf8(bytes).ok().map(Value::text);
    Some(match name {
        "decode" | "toString" => match argument(0).and_then(Value::known_text).as_deref() {
            Some("unicode_escape" | "unicode-escape" | "raw_unicode_escape") => {
                Value::text(super::decode::escapes(std::str::from_utf8(bytes).ok()?)).with(Taint::HIDDEN)
            }
            Some("hex") => {
                let hex: String =
                    bytes.iter().take(TEXT_BYTES_MAX / 2).map(|byte| format!("{byte:02x}")).collect();
                Value::text(hex)
            }
            Some("base64" | "base64url") => return None,
            Some("latin1" | "latin-1" | "iso-8859-1" | "binary" | "cp1252") => {
                Value::text(bytes.iter().map(|byte| char::from(*byte)).collect::<String>())
            }
            _ => text()?,
        },
        "hex" => {
            Value::text(bytes.iter().take(TEXT_BYTES_MAX / 2).map(|b| format!("{b:02x}")).collect::<String>())
        }
        "tobytes" | "tostring" => Value::of(Shape::Bytes(bytes.clone())),
        "strip" | "rstrip" | "lstrip" | "copy" => Value::of(Shape::Bytes(bytes.clone())),
        "reverse" => Value::of(Shape::Bytes(bytes.iter().rev().copied().collect())),
        "join" => {
            let parts = argument(0)?.as_list()?;
            let parts: Option<Vec<Rc<[u8]>>> = parts.iter().map(Value::as_bytes).collect();
            let out = parts?.join(&bytes[..]);
            Value::of(Shape::Bytes(out.into()))
        }
        "replace" => {
            let (from, to) = (argument(0)?.as_text()?, argument(1)?.as_text()?);
            let text = std::str::from_utf8(bytes).ok()?;
            if from.is_empty() || text.len() / from.len() * to.len() > TEXT_BYTES_MAX {
                return None;
            }
            Value::of(Shape::Bytes(Rc::from(text.replace(&*from, &to).as_bytes()))).with(Taint::ASSEMBLED)
        }
        _ => return None,
    })
}

fn list_method<'v>(
    language: Language,
    values: &Rc<Vec<Value>>,
    name: &str,
    argument: &impl Fn(usize) -> Option<&'v Value>,
) -> Option<Value> {
    Some(match name {
        "join" if language == Language::JavaScript => {
            let by = argument(0).map_or(Some(Rc::from(",")), Value::known_text)?;
            joined(values, &by)?
        }
        "reverse" | "toReversed" => {
            // Letters turned round make a text that cannot be read.
            let is_letter =
                |value: &Value| matches!(&value.shape, Shape::Text(text) if text.chars().count() == 1);
            let is_turned = values.len() > 1 && values.iter().all(is_letter);
            let hidden = if is_turned { Taint::HIDDEN } else { Taint::NONE };
            Value::list(values.iter().rev().map(|value| value.clone().with(hidden)).collect())
        }
        "slice" => {
            let number =
                |nth: usize| argument(nth).and_then(Value::as_number).map(|n| Value::of(Shape::Number(n)));
            slice(&Value::of(Shape::List(values.clone())), &[number(0), number(1), None])
        }
        "concat" => {
            let mut out = (**values).clone();
            match argument(0)? {
                Value { shape: Shape::List(more), .. } if out.len() + more.len() <= ELEMENTS_MAX => {
                    out.extend(more.iter().cloned());
                }
                other => out.push(other.clone()),
            }
            Value::list(out)
        }
        "flat" | "sort" | "copy" | "values" | "tolist" => Value::of(Shape::List(values.clone())),
        // What a pattern found: the whole, then its groups.
        "group" if language == Language::Python => {
            let nth = argument(0).and_then(Value::as_number).unwrap_or(0.0);
            element(&Value::of(Shape::List(values.clone())), nth)?
        }
        "groups" if language == Language::Python => Value::list(values.iter().skip(1).cloned().collect()),
        // What comes out of a queue is any of what was put in.
        "get" | "get_nowait" if language == Language::Python => {
            values.iter().take(4).cloned().reduce(Value::or)?
        }
        "pop" | "shift" | "at" | "popleft" => {
            let last = if matches!(name, "shift" | "popleft") { 0.0 } else { -1.0 };
            let at = argument(0).and_then(Value::as_number).unwrap_or(last);
            element(&Value::of(Shape::List(values.clone())), at)?
        }
        "toString" if language == Language::JavaScript => joined(values, ",")?,
        _ => return None,
    })
}
