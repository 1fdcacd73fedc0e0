//! Named pieces of patterns: `(?&gap)` becomes `(?:…)`.
//!
//! Pieces may use pieces; depth is bounded, so a piece that uses itself is refused rather than followed.

use std::collections::BTreeMap;

/// Deepest nesting of pieces. Rules in this repository use two levels.
const DEPTH_MAX: usize = 8;
/// Longest pattern after expansion, in bytes; keeps a chain of doublings from eating the memory.
const EXPANDED_BYTES_MAX: usize = 64 * 1024;

/// Expands every `(?&name)` of `pattern`.
///
/// # Errors
/// Names the piece that is unknown, unclosed, too deep or too long.
pub(super) fn expand(pattern: &str, pieces: &BTreeMap<String, String>) -> Result<String, String> {
    expand_at(pattern, pieces, 0)
}

fn expand_at(pattern: &str, pieces: &BTreeMap<String, String>, depth: usize) -> Result<String, String> {
    if depth > DEPTH_MAX {
        return Err(format!("pieces of [define] nest deeper than {DEPTH_MAX} levels; does one use itself?"));
    }
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find("(?&") {
        let (head, tail) = rest.split_at(at);
        out.push_str(head);
        let Some(close) = tail.find(')') else {
            return Err("`(?&` without its closing parenthesis".to_owned());
        };
        let name = &tail[3..close];
        let Some(piece) = pieces.get(name) else {
            let known: Vec<&str> = pieces.keys().map(String::as_str).collect();
            let known = match known.is_empty() {
                true => "this file has none".to_owned(),
                false => format!("known: {}", known.join(", ")),
            };
            return Err(format!("`(?&{name})` is not in [define]; {known}"));
        };
        out.push_str("(?:");
        out.push_str(&expand_at(piece, pieces, depth + 1)?);
        out.push(')');
        if out.len() > EXPANDED_BYTES_MAX {
            return Err(format!(
                "pattern is longer than {EXPANDED_BYTES_MAX} bytes once its pieces are put in"
            ));
        }
        rest = &tail[close + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_pieces_and_refuses_loops() {
        let pieces: BTreeMap<String, String> =
            [("gap", r"\s+"), ("two", "(?&gap)x(?&gap)"), ("loop", "a(?&loop)")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into();
        assert_eq!(expand("a(?&gap)b", &pieces).as_deref(), Ok(r"a(?:\s+)b"));
        assert_eq!(expand("(?&two)", &pieces).as_deref(), Ok(r"(?:(?:\s+)x(?:\s+))"));
        assert!(expand("(?&loop)", &pieces).is_err_and(|e| e.contains("does one use itself")));
        assert!(expand("(?&none)", &pieces).is_err_and(|e| e.contains("known: gap, loop, two")));
        assert!(expand("(?&gap", &pieces).is_err());
        assert!(
            expand("(?&gap)", &BTreeMap::new()).is_err_and(|e| e.ends_with("[define]; this file has none"))
        );
    }
}
