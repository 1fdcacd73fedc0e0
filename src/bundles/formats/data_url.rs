//! Pages, pictures and scripts within an address: `data:text/html;base64,…` (RFC 2397).

use super::{Layers, coded};
use crate::bundles::files::decode;

/// Most bytes that are decoded of one text.
const BYTES_MAX: usize = 1 << 20;
/// Longest type of media with its parameters.
const TYPE_BYTES_MAX: usize = 100;

/// Notes what stands in such addresses, if it is something that runs or is read.
pub(super) fn look(path: &str, text: &str, layers: &mut Layers) {
    let mut left = BYTES_MAX;
    let bytes = text.as_bytes();
    for comma in memchr::memmem::find_iter(bytes, b";base64,") {
        let start = text.ceil_char_boundary(comma.saturating_sub(TYPE_BYTES_MAX));
        let before = text[start..comma].to_ascii_lowercase();
        let Some((_, kind)) = before.rsplit_once("data:") else { continue };
        let extension = match kind.split(';').next().unwrap_or_default().trim() {
            "text/html" | "application/xhtml+xml" => "html",
            "image/svg+xml" => "svg",
            kind if kind.contains("javascript") || kind.contains("ecmascript") => "js",
            "" | "text/plain" | "text/markdown" => "txt",
            _ => continue,
        };
        let body = &bytes[comma + ";base64,".len()..];
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
        let letters: Vec<u8> = body
            .iter()
            .take_while(|byte| is_letter(byte) || byte.is_ascii_whitespace())
            .filter(|byte| is_letter(byte))
            .take(left / 3 * 4)
            .copied()
            .collect();
        let content = coded::decoded(&letters);
        left = left.saturating_sub(content.len());
        if let Some(decoded) = decode(&content).filter(|decoded| !decoded.text.trim().is_empty()) {
            layers.texts.push((format!("{path}!.{extension}"), decoded.text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_within_an_address_is_read() {
        for (text, wanted) in [
            ("<iframe src=\"data:text/html;base64,PHA+aGk8L3A+\">", &[("a.svg!.html", "<p>hi</p>")][..]),
            (
                "<script xlink:href='data:text/javascript;charset=utf-8;base64,YSgpOw=='/>",
                &[("a.svg!.js", "a();")],
            ),
            ("<script href='DATA:Application/JavaScript;base64,YSgp\nOw=='/>", &[("a.svg!.js", "a();")]),
            ("url(data:image/png;base64,iVBORw0KGgo=)", &[]),
            ("a;base64,YSgp", &[]),
        ] {
            let mut layers = Layers::default();
            look("a.svg", text, &mut layers);
            let found: Vec<(&str, &str)> =
                layers.texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            assert_eq!(found, wanted, "{text}");
        }
    }
}
