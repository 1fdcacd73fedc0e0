//! What Llama Guard answers: `safe`, or `unsafe` and a line of codes.

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Safe,
    /// With the codes as the model wrote them, each once; there may be none.
    Unsafe(Vec<String>),
}

/// Codes kept of one answer at most; there are not that many.
const CODES_MAX: usize = 20;

/// Reads an answer. Tolerant of white space, of case and of the end token, and of nothing else: what is neither `safe` nor
/// begins with `unsafe` is no answer.
pub(super) fn read(text: &str) -> Option<Verdict> {
    let text = without_end_tokens(text.trim());
    if text.eq_ignore_ascii_case("safe") {
        return Some(Verdict::Safe);
    }
    let (head, rest) = text.split_at_checked("unsafe".len())?;
    if !head.eq_ignore_ascii_case("unsafe") || rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let mut codes: Vec<String> = Vec::new();
    for word in rest.split(|c: char| !c.is_alphanumeric() && c != '_') {
        let word = word.to_ascii_uppercase();
        if is_code(&word) && !codes.contains(&word) && codes.len() < CODES_MAX {
            codes.push(word);
        }
    }
    Some(Verdict::Unsafe(codes))
}

/// `S1`, and in the first generation also `O1` and `01`.
fn is_code(word: &str) -> bool {
    let bytes = word.as_bytes();
    matches!(bytes.first(), Some(b'S' | b'O' | b'0'))
        && (2..=3).contains(&bytes.len())
        && bytes[1..].iter().all(u8::is_ascii_digit)
}

/// The text without the tokens that end a turn, which some servers pass on.
fn without_end_tokens(mut text: &str) -> &str {
    const ENDS: [&str; 4] = ["<|eot_id|>", "<|eot|>", "<|end_of_text|>", "</s>"];
    while let Some(rest) = ENDS.iter().find_map(|end| text.strip_suffix(end)) {
        text = rest.trim_end();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_tolerantly_and_never_guessed() {
        let codes = |list: &[&str]| Some(Verdict::Unsafe(list.iter().map(|&code| code.to_owned()).collect()));
        for (text, wanted) in [
            ("safe", Some(Verdict::Safe)),
            ("\n\n safe \n", Some(Verdict::Safe)),
            ("Safe", Some(Verdict::Safe)),
            ("safe<|eot_id|>", Some(Verdict::Safe)),
            ("safe </s>", Some(Verdict::Safe)),
            ("unsafe\nS1,S3", codes(&["S1", "S3"])),
            ("\n\nunsafe\nS1, S14", codes(&["S1", "S14"])),
            ("unsafe S2\nS2", codes(&["S2"])),
            ("unsafe\ns9", codes(&["S9"])),
            ("unsafe\nO3", codes(&["O3"])),
            ("unsafe\n01,02", codes(&["01", "02"])),
            ("unsafe", codes(&[])),
            ("unsafe\nS99", codes(&["S99"])),
            ("unsafe\nviolence", codes(&[])),
            ("unsafe\nS100, XS1, S1x", codes(&[])),
            ("unsafe.", codes(&[])),
            ("", None),
            ("safe\nS1", None),
            ("safe.", None),
            ("safely", None),
            ("unsafely", None),
            ("unsafe2", None),
            ("not safe", None),
            ("The message is unsafe", None),
            ("I cannot help with that.", None),
            ("\u{feff}safe", None),
        ] {
            assert_eq!(read(text), wanted, "{text:?}");
        }
    }
}
