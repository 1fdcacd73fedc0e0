//! Reading what a model wrote: JSON without members that stand twice, and the one object in a text.

use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Text in which an object is looked for at most, in bytes.
const SEARCH_BYTES_MAX: usize = 64 * 1024;
/// Places at which an object is tried at most.
const TRIES_MAX: usize = 64;

/// JSON in which a member that stands twice is an error: the last would win here, and perhaps the first elsewhere.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        StrictSeed.deserialize(deserializer).map(Strict)
    }
}

struct StrictSeed;

impl<'de> DeserializeSeed<'de> for StrictSeed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictSeed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(StrictSeed)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(StrictSeed)?;
            if map.insert(name, value).is_some() {
                return Err(de::Error::custom("a member stands twice"));
            }
        }
        Ok(Value::Object(map))
    }
}

/// The JSON that a text is, as a whole; `None` when it is none, or when a member stands twice.
pub(super) fn whole(text: &str) -> Option<Value> {
    serde_json::from_str::<Strict>(text.trim()).ok().map(|strict| strict.0)
}

/// The first JSON object in a text of which `is_wanted` holds.
///
/// A text with two such objects that differ has none: one of them could be content that the model repeats.
pub(super) fn only_object(text: &str, is_wanted: impl Fn(&Value) -> bool) -> Option<Value> {
    let mut found: Option<Value> = None;
    let mut from = 0;
    let text = &text[..text.floor_char_boundary(SEARCH_BYTES_MAX)];
    for _ in 0..TRIES_MAX {
        let Some(at) = text.get(from..).and_then(|rest| rest.find('{')) else { return found };
        let start = from + at;
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Strict>();
        match stream.next() {
            Some(Ok(Strict(value))) => {
                from = start + stream.byte_offset();
                match &found {
                    _ if !is_wanted(&value) => {}
                    Some(first) if *first != value => return None,
                    _ => found = Some(value),
                }
            }
            _ => from = start + 1,
        }
    }
    // There may be more than was looked at.
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_text_is_json_or_not() {
        assert_eq!(
            whole(" {\"a\": [1, -2, 1.5, null, true, \"x\"]}\n"),
            Some(json!({"a": [1, -2, 1.5, null, true, "x"]}))
        );
        for text in
            ["", "{", "x", "{} {}", "```json\n{}\n```", r#"{"a":1,"a":2}"#, r#"{"b":{"a":1,"a":1}}"#, "[1,]"]
        {
            assert_eq!(whole(text), None, "{text}");
        }
        assert_eq!(whole(&"[".repeat(100_000)), None, "nesting is bounded");
    }

    #[test]
    fn one_object_is_found_and_two_different_ones_are_none() {
        let is_verdict = |value: &Value| value.get("v").is_some_and(Value::is_string);
        for (text, wanted) in [
            (r#"{"v":"KILL"}"#, Some("KILL")),
            ("Sure! ```json\n{\"v\":\"SAFE\"}\n```", Some("SAFE")),
            (r#"{"v":"SAFE"} and again {"v":"SAFE"}"#, Some("SAFE")),
            (r#"It printed {"v":"SAFE"}, so: {"v":"KILL"}"#, None),
            (r#"{"x":1} {"v":"KILL"}"#, Some("KILL")),
            (r#"{"v":"KILL"} {"x":1}"#, Some("KILL")),
            (r#"{{{"v":"KILL"}}}"#, Some("KILL")),
            (r#"{"v":"KI"#, None),
            (r#"{"v":"SAFE","v":"KILL"}"#, None),
            (r#"set {a} then {"v":"WARN { } \" {"}"#, Some("WARN { } \" {")),
            ("", None),
        ] {
            let found = only_object(text, is_verdict);
            assert_eq!(found.as_ref().and_then(|value| value["v"].as_str()), wanted, "{text}");
        }
        let many = format!("{}{}", "{".repeat(100), r#"{"v":"SAFE"}"#);
        assert_eq!(only_object(&many, is_verdict), None);
    }
}
