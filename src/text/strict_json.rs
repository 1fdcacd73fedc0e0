//! JSON whose objects have every key once.
//!
//! RFC 8259 leaves open which of two equal keys counts (section 4), and readers differ: what is judged here must be what
//! somebody else acts upon, so such a document is refused.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads a document.
///
/// # Errors
/// It is no JSON, or an object in it has two equal keys; with the place.
pub fn read(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str::<Unique>(text).map(|unique| unique.0)
}

/// Reads a document of bytes, which must be UTF-8.
///
/// # Errors
/// The same as of [`read`].
pub fn read_bytes(bytes: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice::<Unique>(bytes).map(|unique| unique.0)
}

/// A value whose objects, at any depth, have every key once.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = seq.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some((key, Unique(value))) = map.next_entry::<String, _>()? {
            if fields.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} stands twice in one object")));
            }
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::{read, read_bytes};

    #[test]
    fn values_are_those_of_any_reader() {
        for text in [
            r#"{"a": [1, -2, 3.5, 1e300, true, null, "\u00e9"], "b": {"a": {}}}"#,
            r#"{"a": [1, -2, 0.5, 18446744073709551615, "x", null, true], "b": {"a": {}}}"#,
            "18446744073709551615",
            r#""text""#,
            "[]",
        ] {
            let plain = serde_json::from_str::<serde_json::Value>(text).expect(text);
            assert_eq!(read(text).expect(text), plain);
            assert_eq!(read_bytes(text.as_bytes()).expect(text), plain);
        }
        for text in ["", "{", "[1,]", "{\"a\":1e999}", &"[".repeat(200)] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_stand_once() {
        for (text, place) in [
            (r#"{"name": "a", "name": "b"}"#, (1, 20)),
            (r#"{"a": {"x": 1, "\u0078": 2}}"#, (1, 23)),
            (r#"{"b":{"a":1,"a":2}}"#, (1, 15)),
            (r#"[{"a":1,"\u0061":2}]"#, (1, 17)),
            ("[{\"a\": 1,\n\"a\": 1}]", (2, 3)),
        ] {
            assert!(read_bytes(text.as_bytes()).is_err(), "{text}");
            let error = read(text).expect_err(text);
            assert!(error.to_string().contains("stands twice"), "{error}");
            assert_eq!(error.line(), place.0, "{text}: {error}");
        }
    }
}
