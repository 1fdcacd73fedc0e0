//! Sizes in bytes: `4194304`, `"64KiB"`, `"4MiB"`, `"1GiB"`.
//!
//! Only binary units: whether `MB` means 1000 or 1024 is a question nobody should have to ask about a limit.

use serde::{Deserializer, Serializer, de};

const UNITS: [(&str, usize); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
const EXPECTED: &str = "a size in bytes such as 4194304, 64KiB or 4MiB";

/// Reads a size; `None` when the text is not one or is too large for this machine.
pub fn parse(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: usize = text[..digits_end].parse().ok()?;
    let unit = text[digits_end..].trim_start();
    if unit.is_empty() {
        return Some(number);
    }
    let factor = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1;
    number.checked_mul(factor)
}

/// Writes a size with the largest unit that divides it, so that it reads back as the same number.
pub fn render(bytes: usize) -> String {
    match UNITS.iter().find(|(_, factor)| *factor > 1 && bytes > 0 && bytes.is_multiple_of(*factor)) {
        Some((name, factor)) => format!("{}{name}", bytes / factor),
        None => bytes.to_string(),
    }
}

/// For `#[serde(with)]`.
pub fn serialize<S: Serializer>(bytes: &usize, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&render(*bytes))
}

/// For `#[serde(with)]`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    deserializer.deserialize_any(Visitor)
}

struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = usize;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<usize, E> {
        usize::try_from(value).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<usize, E> {
        parse(text).ok_or_else(|| E::custom(format_args!("`{text}` is not {EXPECTED}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_and_write_back() {
        for (text, bytes) in [
            ("0", 0),
            ("1", 1),
            ("4194304", 4 << 20),
            ("64KiB", 64 << 10),
            ("4 mib", 4 << 20),
            ("7B", 7),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
            assert_eq!(parse(&render(bytes)), Some(bytes), "{text}");
        }
        for text in
            ["", "MiB", "4MB", "-1", "1.5MiB", "99999999999999999999", "18446744073709551615GiB", "4M"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(render(4 << 20), "4MiB");
        assert_eq!(render(1000), "1000");
    }
}
