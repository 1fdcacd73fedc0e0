//! Between JSON and CEL: inputs become values that borrow their strings, results become JSON text.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt, Kind as CelKind,
};
use cel::common::value::Val;

use super::EvalError;
use crate::text::json as text_json;
use crate::tools::json::{Kind, Value};

/// Most values that one run converts.
const VALUES_MAX: usize = 100_000;
/// Longest JSON text that an expression gives, in bytes.
const OUTPUT_BYTES_MAX: usize = 8 << 20;
/// Deepest nesting of what an expression gives.
const OUTPUT_DEPTH_MAX: usize = 64;

/// What is converted of one document.
#[derive(Clone, Copy)]
pub(super) struct Part<'d> {
    pub value: Value<'d>,
    /// Members by name; `None` for all of them.
    pub members: Option<&'d BTreeSet<String>>,
}

impl<'d> Part<'d> {
    fn members(self) -> impl Iterator<Item = (Cow<'d, str>, Value<'d>)> {
        let wanted = move |name: &str| self.members.is_none_or(|members| members.contains(name));
        self.value.members().map(|(key, value)| (key.name(), value)).filter(move |(name, _)| wanted(name))
    }

    /// Adds up how much there is to convert.
    pub(super) fn measure(self, size: &mut Size) -> Result<(), EvalError> {
        let values: Vec<Value<'d>> = match self.members {
            Some(_) if self.value.kind() == Kind::Object => self.members().map(|(_, value)| value).collect(),
            _ => vec![self.value],
        };
        for value in values {
            size.values += value.size();
            size.bytes += value.range().len();
        }
        match size.values > VALUES_MAX {
            true => Err(EvalError::TooCostly("the inputs hold too many values")),
            false => Ok(()),
        }
    }

    /// Decodes every string that has escapes, in the order in which [`Part::to_cel`] reads them.
    pub(super) fn pool(self, pool: &mut Vec<String>) {
        match self.value.kind() {
            Kind::String => pool.extend(owned(self.value.as_str().unwrap_or_default())),
            Kind::Array => self.value.items().for_each(|value| Part { value, members: None }.pool(pool)),
            Kind::Object => {
                for (name, value) in self.members() {
                    pool.extend(owned(name));
                    Part { value, members: None }.pool(pool);
                }
            }
            _ => {}
        }
    }

    /// The value for CEL. Recursion is as deep as the document, which is bounded.
    pub(super) fn to_cel(self, pool: &mut std::slice::Iter<'d, String>) -> Box<dyn Val + 'd> {
        match self.value.kind() {
            Kind::Null => Box::new(CelNull),
            Kind::Bool => Box::new(CelBool::from(self.value.as_bool() == Some(true))),
            Kind::Number => number(self.value.raw()),
            Kind::String => {
                Box::new(CelString::from(borrowed(self.value.as_str().unwrap_or_default(), pool)))
            }
            Kind::Array => {
                let items = self.value.items().map(|value| Part { value, members: None }.to_cel(pool));
                Box::new(CelList::from(items.collect::<Vec<_>>()))
            }
            Kind::Object => {
                let mut members: HashMap<CelMapKey<'d>, Box<dyn Val + 'd>> = HashMap::new();
                for (name, value) in self.members() {
                    let name = CelMapKey::from(borrowed(name, pool));
                    members.insert(name, Part { value, members: None }.to_cel(pool));
                }
                Box::new(CelMap::from(members))
            }
        }
    }
}

fn owned(text: Cow<'_, str>) -> Option<String> {
    match text {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    }
}

/// The text as it is, or from the pool when it had to be decoded.
fn borrowed<'d>(text: Cow<'d, str>, pool: &mut std::slice::Iter<'d, String>) -> &'d str {
    match text {
        Cow::Borrowed(text) => text,
        Cow::Owned(_) => pool.next().map_or("", String::as_str),
    }
}

/// How much there is to convert.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    /// Values and names.
    pub values: usize,
    /// Bytes of JSON text.
    pub bytes: usize,
}

/// Integers of 64 bits stay exact; every other number is the nearest double.
fn number<'v>(raw: &str) -> Box<dyn Val + 'v> {
    if let Ok(int) = raw.parse::<i64>() {
        return Box::new(CelInt::from(int));
    }
    if let Ok(uint) = raw.parse::<u64>() {
        return Box::new(CelUInt::from(uint));
    }
    Box::new(CelDouble::from(raw.parse::<f64>().unwrap_or(f64::NAN)))
}

/// The value of a condition.
pub(super) fn to_bool(value: &dyn Val) -> Result<bool, EvalError> {
    match value.downcast_ref::<CelBool>() {
        Some(value) => Ok(*value.inner()),
        None => Err(EvalError::NotBool(kind_of(value))),
    }
}

fn kind_of(value: &dyn Val) -> &'static str {
    match value.get_type().kind() {
        CelKind::String => "a string",
        CelKind::Int | CelKind::UInt | CelKind::Double => "a number",
        CelKind::List => "a list",
        CelKind::Map => "an object",
        _ => "something else",
    }
}

/// The value as JSON text.
pub(super) fn to_json(value: &dyn Val) -> Result<String, EvalError> {
    let mut out = String::new();
    write(value, 0, &mut out)?;
    Ok(out)
}

fn write(value: &dyn Val, depth: usize, out: &mut String) -> Result<(), EvalError> {
    if depth > OUTPUT_DEPTH_MAX {
        return Err(EvalError::NotJson("is nested too deep"));
    }
    if let Some(text) = value.downcast_ref::<CelString>() {
        out.push('"');
        text_json::escape_into(out, text.inner());
        out.push('"');
    } else if let Some(list) = value.downcast_ref::<CelList>() {
        out.push('[');
        for (nth, item) in list.inner().iter().enumerate() {
            out.push_str(if nth > 0 { "," } else { "" });
            write(item.as_ref(), depth + 1, out)?;
        }
        out.push(']');
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        let mut members = Vec::with_capacity(map.inner().len());
        for (key, value) in map.inner() {
            let CelMapKey::String(name) = key else {
                return Err(EvalError::NotJson("has a member whose name is no string"));
            };
            members.push((name.inner(), value));
        }
        members.sort_by_key(|(name, _)| *name);
        out.push('{');
        for (nth, (name, value)) in members.into_iter().enumerate() {
            out.push_str(if nth > 0 { ",\"" } else { "\"" });
            text_json::escape_into(out, name);
            out.push_str("\":");
            write(value.as_ref(), depth + 1, out)?;
        }
        out.push('}');
    } else if let Some(double) = value.downcast_ref::<CelDouble>() {
        match serde_json::Number::from_f64(*double.inner()) {
            Some(number) => out.push_str(&number.to_string()),
            None => return Err(EvalError::NotJson("is a number that JSON does not have")),
        }
    } else if let Some(int) = value.downcast_ref::<CelInt>() {
        out.push_str(&int.inner().to_string());
    } else if let Some(uint) = value.downcast_ref::<CelUInt>() {
        out.push_str(&uint.inner().to_string());
    } else if let Some(bool) = value.downcast_ref::<CelBool>() {
        out.push_str(if *bool.inner() { "true" } else { "false" });
    } else if value.downcast_ref::<CelNull>().is_some() {
        out.push_str("null");
    } else {
        return Err(EvalError::NotJson("is of a type that JSON does not have"));
    }
    match out.len() > OUTPUT_BYTES_MAX {
        true => Err(EvalError::TooCostly("the value is too long")),
        false => Ok(()),
    }
}
