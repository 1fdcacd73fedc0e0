//! Shares from 0 to 1.

use serde::{Deserializer, Serializer, de};

/// For `#[serde(with)]`.
pub fn serialize<S: Serializer>(ratio: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*ratio)
}

/// For `#[serde(with)]`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_any(Visitor)
}

struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = f64;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a number from 0 to 1")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<f64, E> {
        if (0.0..=1.0).contains(&value) {
            Ok(value)
        } else {
            Err(E::invalid_value(de::Unexpected::Float(value), &self))
        }
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<f64, E> {
        match value {
            0 => Ok(0.0),
            1 => Ok(1.0),
            _ => Err(E::invalid_value(de::Unexpected::Unsigned(value), &self)),
        }
    }
}
