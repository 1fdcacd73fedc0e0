//! Durations: `"250ms"`, `"5s"`, `"1m"`, `"2h"`.
//!
//! A bare number is refused: whether `30` means seconds or milliseconds is not to be guessed.

use std::time::Duration;

use serde::{Deserializer, Serializer, de};

const UNITS_MS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
const EXPECTED: &str = "a duration with its unit, such as 250ms, 5s or 1m";

/// Reads a duration; `None` when the text is not one.
pub fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits_end = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits_end].parse().ok()?;
    let unit = text[digits_end..].trim_start();
    let factor = UNITS_MS.iter().find(|(name, _)| *name == unit)?.1;
    number.checked_mul(factor).map(Duration::from_millis)
}

/// Writes a duration in whole milliseconds or a larger unit that divides it.
pub fn render(duration: Duration) -> String {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    match UNITS_MS.iter().find(|(_, factor)| ms > 0 && ms.is_multiple_of(*factor)) {
        Some((name, factor)) => format!("{}{name}", ms / factor),
        None => "0s".to_owned(),
    }
}

/// For `#[serde(with)]`.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&render(*duration))
}

/// For `#[serde(with)]`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    deserializer.deserialize_any(Visitor { off: false }).map(Option::unwrap_or_default)
}

/// A duration that may be `off` (or null): for `#[serde(with)]` on an `Option<Duration>`.
pub mod or_off {
    use super::{Deserializer, Duration, Serializer, Visitor, render};

    /// For `#[serde(with)]`.
    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => serializer.serialize_str(&render(*duration)),
            None => serializer.serialize_str("off"),
        }
    }

    /// For `#[serde(with)]`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        deserializer.deserialize_any(Visitor { off: true })
    }
}

struct Visitor {
    /// Whether `off` is a value.
    off: bool,
}

impl de::Visitor<'_> for Visitor {
    type Value = Option<Duration>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(EXPECTED)?;
        if self.off { f.write_str(", or off") } else { Ok(()) }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        if self.off && text.eq_ignore_ascii_case("off") {
            return Ok(None);
        }
        let expected: &dyn de::Expected = &self;
        parse(text).map(Some).ok_or_else(|| E::custom(format_args!("`{text}` is not {expected}")))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        if self.off { Ok(None) } else { Err(E::invalid_type(de::Unexpected::Unit, &self)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_write_back() {
        for (text, ms) in
            [("250ms", 250), ("5s", 5000), ("1m", 60_000), ("2 h", 7_200_000), ("0s", 0), ("90s", 90_000)]
        {
            let duration = Duration::from_millis(ms);
            assert_eq!(parse(text), Some(duration), "{text}");
            assert_eq!(parse(&render(duration)), Some(duration), "{text}");
        }
        for text in ["", "5", "s", "5 sec", "-5s", "1.5s", "99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(render(Duration::from_secs(90)), "90s");
        assert_eq!(render(Duration::from_millis(1500)), "1500ms");
    }
}
