//! RTF: letters by their numbers are decoded, objects in it are counted.
//!
//! What is shown and what a reader leaves out (`{\*\name …}`, fonts, colours) are put together apart, so that the one tears no
//! words of the other. Control words are those of Microsoft's specification of the format.

use super::{Act, Layers};

/// Groups in groups that are followed.
const DEPTH_MAX: usize = 200;
/// Destinations whose text is not shown.
const ASIDE: &[&str] =
    &["fonttbl", "colortbl", "stylesheet", "info", "pict", "objdata", "fldinst", "themedata"];
/// Of these, objects in digits.
const OBJECTS: &[&str] = &["objdata", "bin"];

/// Whether a text is such a document.
pub(super) fn is_rtf(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with("{\\rtf")
}

#[derive(Clone, Copy, Default)]
struct Group {
    is_aside: bool,
    is_object: bool,
    is_template: bool,
    /// Characters that stand behind a letter by its number, for readers that cannot show it.
    fallback: usize,
}

/// Notes what such a document says, holds and fetches.
pub(super) fn look(path: &str, text: &str, layers: &mut Layers) {
    let mut shown = String::new();
    let mut aside = String::new();
    let mut template: Option<(usize, String)> = None;
    let mut groups = vec![Group { fallback: 1, ..Group::default() }];
    let (mut at, mut skip) = (0, 0_usize);
    let mut high = None;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let group = groups.last().copied().unwrap_or_default();
        let start = at;
        let said = match bytes[at] {
            b'{' => {
                at += 1;
                if groups.len() < DEPTH_MAX {
                    groups.push(group);
                }
                skip = 0;
                None
            }
            b'}' => {
                at += 1;
                if groups.len() > 1 {
                    groups.pop();
                }
                skip = 0;
                None
            }
            b'\r' | b'\n' => {
                at += 1;
                None
            }
            b'\\' => {
                let (word, number, end) = control(text, at + 1);
                at = end;
                let now = groups.last_mut();
                match (word, number) {
                    ("'", _) => {
                        let byte = text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
                        at += if byte.is_some() { 2 } else { 0 };
                        byte.map(char::from)
                    }
                    ("u", Some(number)) => {
                        skip = group.fallback;
                        // Written as a signed number of 16 bits, large letters as two.
                        let unit = number as u16;
                        let decoded: Vec<char> = char::decode_utf16(high.take().into_iter().chain([unit]))
                            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                            .collect();
                        if (0xd800..0xdc00).contains(&unit) {
                            high = Some(unit);
                        } else {
                            let out = if group.is_aside { &mut aside } else { &mut shown };
                            out.extend(decoded);
                        }
                        continue;
                    }
                    ("uc", Some(number)) => {
                        if let Some(now) = now {
                            now.fallback = usize::try_from(number).unwrap_or(1).min(64);
                        }
                        None
                    }
                    ("bin", Some(number)) => {
                        let count = usize::try_from(number).unwrap_or(0).min(bytes.len() - at);
                        let end = text.ceil_char_boundary(at + count);
                        layers.unscanned += end - at;
                        at = end;
                        None
                    }
                    ("*", _) => {
                        if let Some(now) = now {
                            now.is_aside = true;
                        }
                        None
                    }
                    ("par" | "line" | "row" | "sect" | "page", _) => Some('\n'),
                    ("tab" | "cell" | "~" | "emspace" | "enspace", _) => Some(' '),
                    ("_", _) => Some('-'),
                    ("lquote" | "rquote", _) => Some('\''),
                    ("ldblquote" | "rdblquote", _) => Some('"'),
                    ("\\" | "{" | "}", _) => word.chars().next(),
                    (word, _) => {
                        if let Some(now) = now {
                            now.is_aside |= ASIDE.contains(&word);
                            now.is_object |= OBJECTS.contains(&word);
                            now.is_template |= word == "template";
                        }
                        None
                    }
                }
            }
            _ => {
                let c = text[at..].chars().next().unwrap_or(' ');
                at += c.len_utf8();
                Some(c)
            }
        };
        let Some(said) = said else { continue };
        if skip > 0 {
            skip -= 1;
            continue;
        }
        if group.is_object {
            layers.unscanned += at - start;
        } else if group.is_aside {
            aside.push(said);
        } else {
            shown.push(said);
        }
        if group.is_template {
            template.get_or_insert((start, String::new())).1.push(said);
        }
    }
    if let Some((at, _)) = template.filter(|(_, address)| super::package::is_remote(address)) {
        layers.acts.push(Act { at, ..Act::FETCHES });
    }
    let name = |what: &str| format!("{path}{what}.txt");
    for (what, text) in [("", shown), ("!aside", aside)] {
        if !text.trim().is_empty() {
            layers.texts.push((name(what), text));
        }
    }
}

/// The control word or symbol at `from`, its number, and where what follows it begins.
fn control(text: &str, from: usize) -> (&str, Option<i64>, usize) {
    let rest = &text[from..];
    let word_len = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    if word_len == 0 {
        let len = rest.chars().next().map_or(0, char::len_utf8);
        return (&rest[..len], None, from + len);
    }
    let after = &rest[word_len..];
    let sign = usize::from(after.starts_with('-'));
    let digits = after[sign..].bytes().take_while(u8::is_ascii_digit).count();
    let number = if digits == 0 { None } else { after[..sign + digits].parse().ok() };
    let mut end = from + word_len + if digits == 0 { 0 } else { sign + digits };
    end += usize::from(text[end..].starts_with(' '));
    (&rest[..word_len], number, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_by_number_are_read_and_objects_counted() {
        for (text, texts, is_counted, acts) in [
            ("{\\rtf1 plain}", &["plain"][..], false, 0),
            ("{\\rtf1 \\'49\\'67\\'6eore}", &["Ignore"], false, 0),
            ("{\\rtf1\\u73?\\u103?\\u110?ore}", &["Ignore"], false, 0),
            ("{\\rtf1\\uc0\\u73\\u103\\u110 ore}", &["Ignore"], false, 0),
            ("{\\rtf1 \\u-10179?\\u-8704?}", &["\u{1f600}"], false, 0),
            ("{\\rtf1 Ig{\\*\\x junk}nore\\par it}", &["Ignore\nit", "junk"], false, 0),
            ("{\\rtf1 Ig\nnore \\{x\\}}", &["Ignore {x}"], false, 0),
            ("{\\rtf1{\\object\\objemb{\\*\\objdata 4d5a9000}}}", &[], true, 0),
            (
                "{\\rtf1{\\*\\template http://h.somewhere.example/t.dotm}x}",
                &["x", "http://h.somewhere.example/t.dotm"],
                false,
                1,
            ),
            ("{\\rtf1{\\*\\template C:\\\\a\\\\t.dotm}x}", &["x", "C:\\a\\t.dotm"], false, 0),
        ] {
            assert!(is_rtf(text));
            let mut layers = Layers::default();
            look("a.rtf", text, &mut layers);
            let found: Vec<&str> = layers.texts.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(
                (found.as_slice(), layers.unscanned > 0, layers.acts.len()),
                (texts, is_counted, acts),
                "{text}"
            );
        }
    }
}
