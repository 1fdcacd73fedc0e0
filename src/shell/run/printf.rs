//! What `echo` and `printf` print.

use super::super::argument::{Argument, HOLE};

/// Longest output that is computed.
const OUTPUT_MAX: usize = 1 << 20;

/// What `echo` prints, the end of line included.
pub(super) fn echo(arguments: &[Argument], escapes_by_default: bool) -> Argument {
    let (mut newline, mut escapes) = (true, escapes_by_default);
    let mut at = 0;
    while let Some(letters) = arguments.get(at).and_then(|a| a.text.strip_prefix('-')) {
        if letters.is_empty() || !letters.bytes().all(|b| matches!(b, b'n' | b'e' | b'E')) {
            break;
        }
        for letter in letters.bytes() {
            match letter {
                b'n' => newline = false,
                letter => escapes = letter == b'e',
            }
        }
        at += 1;
    }
    let mut out = super::call::joined(&arguments[at..]);
    if escapes && out.text.contains('\\') {
        let (text, stops) = unescape(&out.text, Zero::Needed);
        out.text = text;
        newline &= !stops;
    }
    if newline {
        out.text.push('\n');
    }
    out
}

/// How octal escapes are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Zero {
    /// `\0nnn`, as in `echo -e` and `%b`.
    Needed,
    /// `\nnn`, as in a format.
    Optional,
}

/// The text without its escapes, and whether `\c` stopped it.
fn unescape(text: &str, zero: Zero) -> (String, bool) {
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let Some(c) = rest.chars().next() else {
            bytes.push(b'\\');
            break;
        };
        let after = &rest[c.len_utf8()..];
        rest = match c {
            'n' => plain(&mut bytes, b'\n', after),
            't' => plain(&mut bytes, b'\t', after),
            'r' => plain(&mut bytes, b'\r', after),
            'a' => plain(&mut bytes, 7, after),
            'b' => plain(&mut bytes, 8, after),
            'f' => plain(&mut bytes, 12, after),
            'v' => plain(&mut bytes, 11, after),
            'e' | 'E' => plain(&mut bytes, 27, after),
            '\\' => plain(&mut bytes, b'\\', after),
            '"' | '\'' if zero == Zero::Optional => plain(&mut bytes, u8::try_from(c).unwrap_or(b'"'), after),
            'c' => return (finish(bytes), true),
            'x' => match number(after, 16, 2) {
                Some((value, after)) => byte(&mut bytes, value, after),
                None => plain(&mut bytes, b'\\', rest),
            },
            'u' | 'U' => match number(after, 16, if c == 'u' { 4 } else { 8 }) {
                Some((value, after)) => {
                    let mut buffer = [0; 4];
                    let c = char::from_u32(value).unwrap_or('\u{FFFD}');
                    bytes.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
                    after
                }
                None => plain(&mut bytes, b'\\', rest),
            },
            '0' if zero == Zero::Needed => match number(after, 8, 3) {
                Some((value, after)) => byte(&mut bytes, value, after),
                None => after,
            },
            '0'..='7' => match number(rest, 8, 3) {
                Some((value, after)) => byte(&mut bytes, value, after),
                None => plain(&mut bytes, b'\\', rest),
            },
            _ => plain(&mut bytes, b'\\', rest),
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    (finish(bytes), false)
}

fn finish(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn plain<'t>(bytes: &mut Vec<u8>, byte: u8, rest: &'t str) -> &'t str {
    bytes.push(byte);
    rest
}

fn byte<'t>(bytes: &mut Vec<u8>, value: u32, rest: &'t str) -> &'t str {
    // NUL stands for unknown pieces here; in output it separates, as an end of line does.
    match u8::try_from(value & 0xff).unwrap_or(0) {
        0 => bytes.push(b'\n'),
        value => bytes.push(value),
    }
    rest
}

fn number(text: &str, base: u32, digits: usize) -> Option<(u32, &str)> {
    let length = text.bytes().take(digits).take_while(|b| char::from(*b).is_digit(base)).count();
    let value = u32::from_str_radix(&text[..length], base).ok()?;
    Some((value, &text[length..]))
}

/// What `printf format arguments` prints.
pub(super) fn printf(format: &Argument, arguments: &[Argument]) -> Argument {
    let mut out =
        Argument { span: format.span.clone(), origin: format.origin.clone(), ..Argument::default() };
    let mut rest = arguments;
    loop {
        let before = rest.len();
        let stops = round(&format.text, &mut rest, &mut out);
        // The format is used again as long as it takes arguments and there are some.
        if stops || rest.is_empty() || rest.len() == before || out.text.len() > OUTPUT_MAX {
            return out;
        }
    }
}

fn round(format: &str, arguments: &mut &[Argument], out: &mut Argument) -> bool {
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        let (text, stops) = unescape(&rest[..at], Zero::Optional);
        out.text.push_str(&text);
        if stops {
            return true;
        }
        rest = &rest[at + 1..];
        let flags = rest.bytes().take_while(|b| b"-+ #0123456789.*'".contains(b)).count();
        let (spec, after) = rest.split_at(flags);
        let after = after.trim_start_matches(['l', 'h', 'q', 'L', 'z', 'j', 't']);
        // `%q` was eaten with the length letters.
        let is_quoted = rest[flags..].starts_with('q');
        let letter = if is_quoted { Some('q') } else { after.chars().next() };
        let after = if is_quoted {
            &rest[flags + 1..]
        } else {
            after.get(letter.map_or(0, char::len_utf8)..).unwrap_or("")
        };
        rest = after;
        if spec.contains('*') {
            take(arguments);
        }
        match letter {
            Some('%') => out.text.push('%'),
            Some(letter) => {
                let argument = take(arguments);
                convert(letter, spec, argument, out);
            }
            None => out.text.push('%'),
        }
    }
    let (text, stops) = unescape(rest, Zero::Optional);
    out.text.push_str(&text);
    stops
}

fn take<'a>(arguments: &mut &'a [Argument]) -> Option<&'a Argument> {
    let (first, rest) = arguments.split_first()?;
    *arguments = rest;
    Some(first)
}

fn convert(letter: char, spec: &str, argument: Option<&Argument>, out: &mut Argument) {
    let text = argument.map_or("", |a| a.text.as_str());
    if let Some(argument) = argument {
        out.absorb(argument);
    }
    let precision = spec.split_once('.').and_then(|(_, digits)| digits.parse::<usize>().ok());
    let converted = match letter {
        's' | 'q' => match precision {
            Some(length) => text.chars().take(length).collect(),
            None => text.to_owned(),
        },
        'b' => unescape(text, Zero::Needed).0,
        'c' => text.chars().take(1).collect(),
        'd' | 'i' | 'u' => integer(text).map_or_else(|| unknown(text), |n| n.to_string()),
        'x' => integer(text).map_or_else(|| unknown(text), |n| format!("{n:x}")),
        'X' => integer(text).map_or_else(|| unknown(text), |n| format!("{n:X}")),
        'o' => integer(text).map_or_else(|| unknown(text), |n| format!("{n:o}")),
        _ => HOLE.to_string(),
    };
    pad(spec, &converted, out);
}

fn unknown(text: &str) -> String {
    if text.contains(HOLE) { HOLE.to_string() } else { "0".to_owned() }
}

fn pad(spec: &str, text: &str, out: &mut Argument) {
    let digits = spec.split('.').next().unwrap_or_default().trim_start_matches(['-', '+', ' ', '#', '\'']);
    let width = digits.parse::<usize>().unwrap_or(0).min(1024);
    let missing = width.saturating_sub(text.chars().count());
    let fill = if digits.starts_with('0') && !spec.contains('-') { "0" } else { " " };
    if spec.contains('-') {
        out.text.push_str(text);
        out.text.push_str(&fill.repeat(missing));
    } else {
        out.text.push_str(&fill.repeat(missing));
        out.text.push_str(text);
    }
}

/// A number as `printf` reads it; `'c` is the code of a character.
fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Some(quoted) = text.strip_prefix(['\'', '"']) {
        return quoted.chars().next().map(|c| i64::from(u32::from(c)));
    }
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return i64::from_str_radix(hex, 16).ok();
    }
    if text.len() > 1 && text.starts_with('0') {
        return i64::from_str_radix(text, 8).ok();
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<Argument> {
        words.iter().map(|word| Argument::constant(*word, 0..0)).collect()
    }

    #[test]
    fn echo_prints_what_bash_prints() {
        for (arguments, wanted) in [
            (&["a", "b"][..], "a b\n"),
            (&["-n", "a"], "a"),
            (&["-e", "\\x72\\x6d\\t\\0101\\\\"], "rm\tA\\\n"),
            (&["a\\tb"], "a\\tb\n"),
            (&["-ne", "a\\cb"], "a"),
            (&["-x", "a"], "-x a\n"),
            (&["-e", "\\u0041\\z"], "A\\z\n"),
        ] {
            assert_eq!(echo(&words(arguments), false).text, wanted, "{arguments:?}");
        }
    }

    #[test]
    fn printf_prints_what_bash_prints() {
        for (format, arguments, wanted) in [
            ("%s", &["a"][..], "a"),
            ("%s\\n", &["a", "b"], "a\nb\n"),
            ("\\x72\\155", &[], "rm"),
            ("\\u0041", &[], "A"),
            ("%b", &["\\0162m"], "rm"),
            ("%x %o %d", &["255", "8", "0x10"], "ff 10 16"),
            ("%5s|%-5s|%05d", &["a", "b", "7"], "    a|b    |00007"),
            ("%%", &[], "%"),
            ("%c%c", &["rm", "mx"], "rm"),
            ("%.2s", &["rmx"], "rm"),
            ("%d", &["'A"], "65"),
            ("plain", &["a", "b"], "plain"),
        ] {
            let format = Argument::constant(format, 0..0);
            assert_eq!(printf(&format, &words(arguments)).text, wanted, "{format:?}");
        }
    }
}
