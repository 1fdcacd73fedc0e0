//! Placeholders of template engines in code: `{{ name }}` and `{% if … %}`.
//!
//! Only looked for where a file does not parse as it stands. Braces become blanks and what stands between them stays, so
//! that no code is hidden; every byte keeps its place.

/// The text with placeholders made into their contents, and statements of an engine blanked.
pub(super) fn without_braces(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    let mut at = 0;
    while at + 1 < out.len() {
        match (out[at], out[at + 1]) {
            (b'{', b'{') | (b'}', b'}') => {
                out[at..at + 2].fill(b' ');
                at += 2;
            }
            (b'{', b'%') => match end_of(&out, at) {
                Some(end) => {
                    out[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
                    at = end;
                }
                None => at += 2,
            },
            _ => at += 1,
        }
    }
    // Whole characters were replaced, since a statement ends on a character's edge.
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// End of a statement that begins at `at`; it stays within some lines.
fn end_of(text: &[u8], at: usize) -> Option<usize> {
    /// Bytes of a statement of an engine.
    const STATEMENT_BYTES_MAX: usize = 400;
    let window = &text[at..text.len().min(at + STATEMENT_BYTES_MAX)];
    window.windows(2).position(|pair| pair == b"%}").map(|end| at + end + 2)
}
