//! Ways to read a path that a tool was given: what it says, and what it may come to mean on its way to a disk.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

use super::Os;

/// Longest path that is judged, in bytes. Systems refuse paths beyond 4 KiB (32 KiB on Windows).
pub const PATH_BYTES_MAX: usize = 32 * 1024;

/// What no honest path has. Such a path fails closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Oddity {
    /// A NUL inside: some programs stop reading there and others do not.
    Nul,
    /// A line break or another control character inside.
    Control,
    /// Longer than [`PATH_BYTES_MAX`].
    TooLong,
}

impl Oddity {
    /// The snake-case name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nul => "nul",
            Self::Control => "control",
            Self::TooLong => "too_long",
        }
    }
}

/// Takes off what stands around a path and is not of it: blanks, line breaks, quotes, `<>` of a link.
pub(super) fn trim(text: &str) -> &str {
    let mut text = text.trim();
    // As deep as anybody quotes by accident.
    for _ in 0..4 {
        let pairs = [('"', '"'), ('\'', '\''), ('`', '`'), ('<', '>')];
        let inner = pairs
            .iter()
            .find_map(|(open, close)| text.strip_prefix(*open)?.strip_suffix(*close).map(str::trim));
        match inner {
            Some(inner) => text = inner,
            None => break,
        }
    }
    text
}

/// Whether a trimmed path is odd.
pub(super) fn oddity(text: &str) -> Option<Oddity> {
    if text.len() > PATH_BYTES_MAX {
        return Some(Oddity::TooLong);
    }
    let controls = text.bytes().filter(|byte| *byte < 0x20 || *byte == 0x7F);
    controls
        .map(|byte| if byte == 0 { Oddity::Nul } else { Oddity::Control })
        .max_by_key(|o| *o == Oddity::Nul)
}

/// Bytes that can be read in more than one way: of encodings, quotes, other separators, other scripts, and the colon of
/// a URL, a drive or a stream of a file.
const MANY_WAYS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] =
            matches!(byte as u8, b'%' | b'\\' | b'"' | b'\'' | b'`' | b'<' | b'>' | b':' | 0..=0x1F | 0x7F..);
        byte += 1;
    }
    table
};

/// Whether a path can be read in one way only.
pub(super) fn is_plain(text: &str, os: Os) -> bool {
    let bytes = text.as_bytes();
    os != Os::Windows
        && !matches!(bytes.first(), Some(b' ' | b'@'))
        && bytes.last() != Some(&b' ')
        && !bytes.iter().any(|byte| MANY_WAYS[usize::from(*byte)])
}

/// The path of a `file:` URL, decoded once; `None` if it is none or names another host.
pub(super) fn from_file_url(text: &str) -> Option<Cow<'_, str>> {
    let scheme = text.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("file:"))?;
    let rest = &text[scheme.len()..];
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find(['/', '\\']).unwrap_or(rest.len()));
            let is_here = ["", "localhost", "127.0.0.1", "[::1]", "."]
                .iter()
                .any(|here| here.eq_ignore_ascii_case(host));
            match (is_here, host) {
                (true, _) => path,
                // `file://C:/x`, `file://~/x` and `file://etc/x`, which some readers take for paths.
                _ => rest,
            }
        }
        None => rest,
    };
    let end = path.find(['?', '#']).unwrap_or(path.len());
    let path = &path[..end];
    // `file:///C:/x`.
    let is_drive = |text: &str| matches!(text.as_bytes(), [b'/', letter, b':' | b'|', ..] if letter.is_ascii_alphabetic());
    let path = if is_drive(path) { &path[1..] } else { path };
    Some(percent_decoded(path).map_or(Cow::Borrowed(path), Cow::Owned))
}

/// Percent-decodes once; `None` if nothing is encoded or what comes out is no text.
pub(super) fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    while at < bytes.len() {
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    (out.len() < bytes.len()).then(|| String::from_utf8(out).ok()).flatten()
}

/// The text without what shows nothing, and with letters that look like ASCII as those; `None` if it is ASCII.
pub(super) fn folded(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.nfkc().filter(|c| !shows_nothing(*c)) {
        match c {
            _ if c.is_ascii() => out.push(c),
            '\u{2044}' | '\u{2215}' | '\u{29F8}' | '\u{2571}' => out.push('/'),
            '\u{2024}' | '\u{3002}' | '\u{FE52}' => out.push('.'),
            '\u{2010}'..='\u{2015}' | '\u{2212}' => out.push('-'),
            _ => {
                let single = c.encode_utf8(&mut [0; 4]).to_owned();
                let mut like = unicode_security::skeleton(&single);
                match (like.next(), like.next()) {
                    (Some(ascii), None) if ascii.is_ascii() => out.push(ascii),
                    _ => out.push(c),
                }
            }
        }
    }
    Some(out)
}

fn shows_nothing(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
        | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}')
}

/// The path without the names of streams (`::$DATA`), and on Windows without dots and blanks at the end of names,
/// which its file systems ignore; `None` if there is nothing of the kind.
pub(super) fn windows_name(text: &str, os: Os) -> Option<String> {
    let drive = text.as_bytes().get(1) == Some(&b':');
    let on_windows = os == Os::Windows || drive;
    let mut out = String::with_capacity(text.len());
    let mut is_changed = false;
    for (nth, name) in text.split('/').enumerate() {
        if nth > 0 {
            out.push('/');
        }
        let mut own = name;
        if !(nth == 0 && drive) {
            let end = if on_windows {
                own.find(':')
            } else {
                find_fold(own, ":$data").map(|at| at - usize::from(own[..at].ends_with(':')))
            };
            own = &own[..end.unwrap_or(own.len())];
            if on_windows && !own.is_empty() && !own.bytes().all(|byte| byte == b'.') {
                own = own.trim_end_matches(['.', ' ']);
            }
        }
        is_changed |= own.len() != name.len();
        out.push_str(own);
    }
    is_changed.then_some(out)
}

fn find_fold(text: &str, needle: &str) -> Option<usize> {
    text.as_bytes().windows(needle.len()).position(|window| window.eq_ignore_ascii_case(needle.as_bytes()))
}

/// The path with short names of Windows (`CREDEN~1`) as wildcards; `None` if it has none.
pub(super) fn short_names(text: &str) -> Option<String> {
    let mut is_changed = false;
    let mut open = |name: &str| -> Option<String> {
        let (stem, rest) = name.split_once('~')?;
        let (number, extension) = rest.split_once('.').unwrap_or((rest, ""));
        let is_short = !stem.is_empty()
            && stem.len() <= 6
            && (1..=3).contains(&number.len())
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && extension.len() <= 3;
        is_changed |= is_short;
        // A leading dot is not kept in a short name, and an extension is cut to three letters.
        is_short.then(|| {
            if extension.is_empty() { format!("*{stem}*") } else { format!("*{stem}*.{extension}*") }
        })
    };
    let names: Vec<Cow<'_, str>> =
        text.split('/').map(|name| open(name).map_or(Cow::Borrowed(name), Cow::Owned)).collect();
    let text = names.join("/");
    is_changed.then_some(text)
}
