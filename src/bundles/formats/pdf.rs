//! PDF: what can be read of it without unpacking, what cannot, and what it does when it is opened.
//!
//! A document is objects of names, strings and streams (ISO 32000-1, 7.3). Its bytes may all be printable, and what it shows
//! stands in a packed stream all the same.

use super::{Act, Layers};
use crate::decision::Severity;

/// Where readers look for the mark.
const MARK_WITHIN: usize = 1024;
const MARK: &[u8] = b"%PDF-";
/// Most text that is put together.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Longest name that means something.
const NAME_BYTES_MAX: usize = 64;

/// Names by which a part of the document is not what its bytes say: packed, encrypted, packed objects, attached files,
/// letters by the numbers of a font.
const VEILS: &[&str] = &[
    "Filter",
    "FFilter",
    "Encrypt",
    "ObjStm",
    "EmbeddedFile",
    "EmbeddedFiles",
    "XFA",
    "RichMedia",
    "Differences",
    "ToUnicode",
    "Type0",
    "Type3",
    "Identity-H",
    "Identity-V",
];

/// Whether a file is such a document, whatever its bytes are.
pub(in crate::bundles) fn is_pdf(path: &str, bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(MARK_WITHIN)];
    let trimmed = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if trimmed.starts_with(MARK) {
        return true;
    }
    let is_named = path.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("pdf"));
    // A text that speaks of the mark has no objects.
    (is_named || memchr::memmem::find(head, MARK).is_some())
        && memchr::memmem::find(bytes, b"endobj").is_some()
}

/// Whether a file is such a document, and a part of it is not what its bytes say.
pub(in crate::bundles) fn is_veiled(path: &str, bytes: &[u8]) -> bool {
    let mut layers = Layers::default();
    if is_pdf(path, bytes) {
        look(path, bytes, &mut layers);
    }
    layers.unscanned > 0
}

/// Notes what such a document shows, hides and does. Bytes within packed streams are looked over.
pub(in crate::bundles) fn look(path: &str, bytes: &[u8], layers: &mut Layers) {
    let mut text = String::new();
    let mut is_veiled = false;
    // Of the object: whether a stream that follows is packed.
    let mut is_packed = false;
    let mut depth = 0_usize;
    let mut at = 0;
    let mut said: Vec<&str> = Vec::new();
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let end = bytes[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                at = end.map_or(bytes.len(), |end| at + end);
            }
            b'/' => {
                let (name, end) = name(bytes, at + 1);
                at = end;
                is_veiled |= VEILS.contains(&name.as_str());
                is_packed |= name == "Filter" || name == "Encrypt";
                if let Some((known, severity)) = action(&name)
                    && !said.contains(&known)
                {
                    said.push(known);
                    layers.acts.push(Act { at: end, severity, ..Act::RUNS });
                }
            }
            b'(' => {
                let (string, end) = literal(bytes, at + 1);
                at = end;
                push(&mut text, &string);
            }
            b'<' if bytes.get(at + 1) != Some(&b'<') => {
                let (string, end) = hex(bytes, at + 1);
                at = end;
                push(&mut text, &string);
            }
            b'<' => at += 2,
            b'[' => {
                depth += 1;
                at += 1;
            }
            // Pieces of a word with the room between them stand in one list.
            b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
                text.push(' ');
            }
            // Moved by as much as a blank takes.
            b'-' if depth > 0 => {
                let digits = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                at += 1 + digits;
                if digits >= 3 {
                    text.push(' ');
                }
            }
            b'T' | b'\'' | b'"' if depth == 0 && is_shown(bytes, at) => {
                at += 1;
                text.push('\n');
            }
            b's' if bytes[at..].starts_with(b"stream") => {
                at += 6;
                if is_packed {
                    let end = memchr::memmem::find(&bytes[at..], b"endstream");
                    at = end.map_or(bytes.len(), |end| at + end);
                    is_packed = false;
                }
            }
            b'e' if bytes[at..].starts_with(b"endobj") => {
                is_packed = false;
                at += 6;
            }
            b'e' if bytes[at..].starts_with(b"endstream") => at += 9,
            _ => at += 1,
        }
    }
    if is_veiled {
        layers.unscanned = bytes.len();
    }
    if !text.trim().is_empty() {
        layers.texts.push((format!("{path}.txt"), text));
    }
}

/// What a name makes a reader do, and how bad that is.
fn action(name: &str) -> Option<(&'static str, Severity)> {
    Some(match name {
        "Launch" => ("Launch", Severity::High),
        "JavaScript" | "JS" => ("JavaScript", Severity::High),
        "SubmitForm" | "ImportData" => ("SubmitForm", Severity::Medium),
        // Most only turn to a page.
        "OpenAction" => ("OpenAction", Severity::Low),
        _ => return None,
    })
}

/// A name, its `#xx` decoded, and where it ends.
fn name(bytes: &[u8], from: usize) -> (String, usize) {
    let mut out = String::new();
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii_whitespace()
            || matches!(byte, 0 | b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
        {
            break;
        }
        let coded = (*byte == b'#').then(|| bytes.get(at + 1..at + 3).and_then(hex_byte)).flatten();
        let (decoded, len) = coded.map_or((*byte, 1), |decoded| (decoded, 3));
        if out.len() < NAME_BYTES_MAX {
            out.push(char::from(decoded));
        }
        at += len;
    }
    (out, at)
}

fn hex_byte(pair: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(pair).ok()?;
    u8::from_str_radix(text, 16).ok().filter(|_| pair.iter().all(u8::is_ascii_hexdigit))
}

/// A string in parentheses, its escapes decoded, and where it ends.
fn literal(bytes: &[u8], from: usize) -> (Vec<u8>, usize) {
    let mut out = Vec::new();
    let (mut at, mut depth) = (from, 1);
    while let Some(byte) = bytes.get(at).copied() {
        at += 1;
        match byte {
            b'\\' => {
                let Some(next) = bytes.get(at).copied() else { break };
                at += 1;
                match next {
                    b'n' | b'r' => out.push(b'\n'),
                    b't' => out.push(b'\t'),
                    b'b' | b'f' => {}
                    b'\r' => at += usize::from(bytes.get(at) == Some(&b'\n')),
                    b'\n' => {}
                    b'0'..=b'7' => {
                        let mut code = u32::from(next - b'0');
                        for _ in 0..2 {
                            let Some(digit @ b'0'..=b'7') = bytes.get(at).copied() else { break };
                            code = code * 8 + u32::from(digit - b'0');
                            at += 1;
                        }
                        out.push(code as u8);
                    }
                    other => out.push(other),
                }
            }
            b'(' => {
                depth += 1;
                out.push(byte);
            }
            b')' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
                out.push(byte);
            }
            _ => out.push(byte),
        }
    }
    (out, at)
}

/// A string of hexadecimal digits, and where it ends.
fn hex(bytes: &[u8], from: usize) -> (Vec<u8>, usize) {
    let end = memchr::memchr(b'>', &bytes[from..]).map_or(bytes.len(), |end| from + end);
    let digits: Vec<u8> = bytes[from..end].iter().copied().filter(u8::is_ascii_hexdigit).collect();
    let out = digits.chunks(2).filter_map(|pair| match pair {
        [one] => hex_byte(&[*one, b'0']),
        pair => hex_byte(pair),
    });
    (out.collect(), (end + 1).min(bytes.len()))
}

/// Whether an operator that shows text or begins a line stands here.
fn is_shown(bytes: &[u8], at: usize) -> bool {
    match bytes[at] {
        b'T' => matches!(bytes.get(at + 1), Some(b'*' | b'd' | b'D' | b'j' | b'm')),
        _ => at > 0 && (bytes[at - 1].is_ascii_whitespace() || bytes[at - 1] == b')'),
    }
}

fn push(text: &mut String, string: &[u8]) {
    if text.len() >= TEXT_BYTES_MAX {
        return;
    }
    // A text string may be UTF-16 behind its mark (ISO 32000-1, 7.9.2.2).
    if let Some(rest) = string.strip_prefix(b"\xfe\xff") {
        let units = rest.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
        text.extend(char::decode_utf16(units).map(|c| c.unwrap_or(' ')));
        text.push('\n');
    } else {
        text.extend(string.iter().map(|byte| char::from(*byte)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> (bool, String, Vec<(usize, Severity)>) {
        let mut layers = Layers::default();
        look("a.pdf", text.as_bytes(), &mut layers);
        let texts: Vec<String> = layers.texts.into_iter().map(|(_, text)| text.trim().to_owned()).collect();
        (layers.unscanned > 0, texts.concat(), layers.acts.iter().map(|act| (act.at, act.severity)).collect())
    }

    #[test]
    fn what_is_packed_is_told_and_what_is_shown_is_read() {
        for (text, is_veiled, shown, worst) in [
            ("%PDF-1.4\n1 0 obj<</Length 9>>stream\n(Hello) Tj\nendstream endobj", false, "Hello", None),
            ("%PDF-1.4\n1 0 obj<<>>stream\n[(He) 20 (llo)] TJ\nendstream endobj", false, "Hello", None),
            ("%PDF-1.4\n[(Go) -250 (on) -20 (e)] TJ", false, "Go one", None),
            ("%PDF-1.4\n(\\110e\\154l\\\no\\)) Tj", false, "Hello)", None),
            ("%PDF-1.4\n<48 65 6c6C6f> Tj", false, "Hello", None),
            ("%PDF-1.4\n<</Filter[/ASCII85Decode]>>stream\n(x/JS)\nendstream", true, "", None),
            ("%PDF-1.4\n<</F#69lter/ASCIIHexDecode>>stream\n4865>\nendstream", true, "", None),
            ("%PDF-1.4\n<</Font/Encoding<</Differences[65/B]>>>> (A) Tj", true, "A", None),
            ("%PDF-1.4\n<</OpenAction 3 0 R>>", false, "", Some(Severity::Low)),
            ("%PDF-1.4\n<</S/JavaScript/JS(app.alert\\(1\\))>>", false, "app.alert(1)", Some(Severity::High)),
            ("%PDF-1.4\n<</S/La#75nch/F(cmd.exe)>>", false, "cmd.exe", Some(Severity::High)),
            ("%PDF-1.4\n(how to /Launch it) % /JS\n", false, "how to /Launch it", None),
        ] {
            let (veiled, texts, acts) = seen(text);
            assert_eq!((veiled, texts.as_str()), (is_veiled, shown), "{text}");
            assert_eq!(acts.iter().map(|act| act.1).max(), worst, "{text}");
        }
    }

    #[test]
    fn documents_are_known_by_their_mark() {
        for (path, text, wanted) in [
            ("a.pdf", "%PDF-1.4\n", true),
            ("a.txt", "%PDF-1.4\n", true),
            ("a", " \n%PDF-1.4\n", true),
            ("a", "junk %PDF-1.4\n1 0 obj\nendobj", true),
            ("a.pdf", "1 0 obj\nendobj", true),
            ("a.md", "Such files begin with %PDF- and a version.\n", false),
            ("a.md", "Each object ends with endobj.\n", false),
        ] {
            assert_eq!(is_pdf(path, text.as_bytes()), wanted, "{text}");
        }
    }
}
