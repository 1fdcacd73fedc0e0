//! Mail: quoted-printable parts are decoded (RFC 2045, 6.7). Base64 is decoded wherever it stands, and not here.

use super::Layers;
use crate::bundles::files::decode;

/// Most of a mail that is decoded, in bytes.
const BYTES_MAX: usize = 4 << 20;

/// Notes the letters of a mail that are written by their numbers.
pub(super) fn look(path: &str, text: &str, layers: &mut Layers) {
    if !has_header(text) {
        return;
    }
    let decoded = unquoted(&text.as_bytes()[..text.len().min(BYTES_MAX)]);
    if decoded != text.as_bytes() {
        match decode(&decoded) {
            Some(decoded) => layers.texts.push((format!("{path}.txt"), decoded.text)),
            None => layers.unscanned += text.len(),
        }
    }
    layers.unscanned += text.len().saturating_sub(BYTES_MAX);
}

/// Whether a header says that a part is written so.
pub(super) fn has_header(text: &str) -> bool {
    const NAME: &str = "content-transfer-encoding";
    const NAME_AT: usize = NAME.len();
    const VALUE: &[u8] = b"quoted-printable";
    // Hardly any text has the word; only in such a one its lines are looked at.
    let is_value = |at: usize| {
        text.as_bytes().get(at..at + VALUE.len()).is_some_and(|at| at.eq_ignore_ascii_case(VALUE))
    };
    if !memchr::memchr2_iter(b'q', b'Q', text.as_bytes()).any(is_value) {
        return false;
    }
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_it = line.get(..NAME_AT).is_some_and(|name| name.eq_ignore_ascii_case(NAME));
        if !is_it {
            continue;
        }
        // A header may go on in the next line.
        let next = lines.peek().filter(|next| next.starts_with([' ', '\t'])).copied().unwrap_or_default();
        let value = format!("{}{next}", &line[NAME_AT..]).to_ascii_lowercase();
        if value.trim_start().starts_with(':') && value.contains("quoted-printable") {
            return true;
        }
    }
    false
}

fn unquoted(bytes: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at).copied() {
        at += 1;
        if byte != b'=' {
            out.push(byte);
            continue;
        }
        let blanks = bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        match bytes.get(at + blanks) {
            Some(b'\r') if bytes.get(at + blanks + 1) == Some(&b'\n') => at += blanks + 2,
            Some(b'\n' | b'\r') => at += blanks + 1,
            _ => match (digit(bytes.get(at)), digit(bytes.get(at + 1))) {
                (Some(high), Some(low)) => {
                    out.push((high * 16 + low) as u8);
                    at += 2;
                }
                _ => out.push(byte),
            },
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_parts_are_decoded_where_a_header_says_so() {
        for (text, wanted) in [
            ("Content-Transfer-Encoding: quoted-printable\n\n=49=67no=\nre=20it", Some("Ignore it")),
            ("content-transfer-encoding:\n quoted-printable\n\n=49=\r\n=67", Some("Ig")),
            ("Content-Transfer-Encoding: 7bit\n\n=49=67", None),
            ("a =49 b", None),
            ("Content-Transfer-Encoding: quoted-printable\n\nplain", None),
        ] {
            let mut layers = Layers::default();
            look("a.eml", text, &mut layers);
            let found = layers.texts.first().map(|(_, text)| text.rsplit("\n\n").next().unwrap_or_default());
            assert_eq!(found, wanted, "{text}");
        }
    }
}
