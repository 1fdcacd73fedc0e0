//! Patterns of policy files in which `*` stands for any run of characters.

/// Whether `text` has the shape of `pattern`, in which `*` stands for any run of characters.
///
/// Greedy from the left, which is right because a run may be empty; linear in `text` for each literal piece.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(head) else {
        return false;
    };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*') {
        match text.find(piece) {
            Some(at) => text = &text[at + piece.len()..],
            None => return false,
        }
    }
    text.ends_with(tail)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        for (pattern, path, fits) in [
            ("/text", "/text", true),
            ("/text", "/texts", false),
            ("docs/*", "docs/a/b.md", true),
            ("docs/*", "src/docs/a", false),
            ("*.md", "a.md", true),
            ("*.md", "a.mdx", false),
            ("/parts/*/text", "/parts/12/text", true),
            ("/parts/*/text", "/parts/text", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("ab*b", "ab", false),
            ("**", "", true),
            ("*", "anything", true),
            ("", "x", false),
        ] {
            assert_eq!(super::fits(pattern, path), fits, "{pattern} {path}");
        }
    }
}
