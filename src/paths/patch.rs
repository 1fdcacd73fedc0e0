//! Which paths a patch touches: the envelope of `apply_patch`, unified and context diffs, git's extended headers.

use std::borrow::Cow;

use super::sensitive::Access;

/// Most paths that are read out of one patch.
pub const PATCH_PATHS_MAX: usize = 4_096;

/// A path that a patch touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchPath<'p> {
    /// As the patch names it, without quotes and the `a/` and `b/` of git.
    pub path: Cow<'p, str>,
    /// What the patch does to it. It is read as well, as the lines around a change must fit.
    pub access: Access,
}

/// Every path that a patch touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchPaths<'p> {
    /// In their order, each once for each access. None means that the text is no patch that is understood, and nobody
    /// knows what it touches.
    pub paths: Vec<PatchPath<'p>>,
    /// Whether there are more than [`PATCH_PATHS_MAX`].
    pub is_cut: bool,
}

/// Reads the paths of a patch, in one pass.
///
/// A header counts wherever it stands at the beginning of a line, whatever the counts of a hunk say: who applies the
/// patch may count otherwise.
pub fn patch_paths(text: &str) -> PatchPaths<'_> {
    let mut reader = Reader::default();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        reader.line(line, lines.peek().copied().unwrap_or_default());
    }
    reader.out
}

#[derive(Default)]
struct Reader<'p> {
    out: PatchPaths<'p>,
    seen: std::collections::HashSet<(Cow<'p, str>, Access)>,
    /// The file of the last header.
    file: Cow<'p, str>,
    /// Whether that file becomes a link: its added line is where it leads.
    is_link: bool,
}

impl<'p> Reader<'p> {
    fn push(&mut self, path: Cow<'p, str>, access: Access) {
        if path.is_empty() || path == "/dev/null" {
            return;
        }
        if self.out.paths.len() >= PATCH_PATHS_MAX {
            self.out.is_cut = true;
            return;
        }
        self.file = path.clone();
        if self.seen.insert((path.clone(), access)) {
            self.out.paths.push(PatchPath { path, access });
        }
    }

    fn line(&mut self, line: &'p str, next: &'p str) {
        match line.as_bytes().first() {
            Some(b'*' | b' ' | b'\t') => self.envelope(line, next),
            Some(b'-') => {
                if let (Some(old), Some(new)) = (line.strip_prefix("--- "), next.strip_prefix("+++ ")) {
                    self.pair(old, new);
                }
            }
            Some(b'+') if self.is_link && !line.starts_with("+++ ") => self.link(&line[1..]),
            Some(b'd' | b'n' | b'o' | b'r' | b'c' | b'i' | b'I') => self.extended(line),
            _ => {}
        }
    }

    /// `*** Update File: x` and its like. Blanks before it are skipped, as those who apply such patches do.
    fn envelope(&mut self, line: &'p str, next: &'p str) {
        let Some(rest) = line.trim_start().strip_prefix("***") else { return };
        let rest = rest.trim_start();
        let headers = [
            ("Update File:", Access::Write),
            ("Add File:", Access::Write),
            ("Create File:", Access::Write),
            ("Delete File:", Access::Delete),
            ("Remove File:", Access::Delete),
            ("Move to:", Access::Write),
            ("Move To:", Access::Write),
            ("Rename to:", Access::Write),
            ("Rename File:", Access::Write),
            ("Copy to:", Access::Write),
        ];
        for (header, access) in headers {
            let named = rest.get(..header.len()).filter(|start| start.eq_ignore_ascii_case(header));
            if named.is_some() {
                self.is_link = false;
                // It may be "a -> b".
                let names = rest[header.len()..].trim();
                for name in names.split(" -> ") {
                    self.push(unquoted(name.trim()), access);
                }
                if names.contains(" -> ") {
                    self.push(unquoted(names), access);
                }
                return;
            }
        }
        // The old file of a context diff.
        if let (Some(old), Some(new)) = (line.strip_prefix("*** "), next.strip_prefix("--- "))
            && !old.ends_with(" ****")
        {
            self.pair(old, new);
        }
    }

    /// The two headers of a file.
    fn pair(&mut self, old: &'p str, new: &'p str) {
        let (old, new) = (header_path(old), header_path(new));
        let access = if new == "/dev/null" { Access::Delete } else { Access::Write };
        if old != new {
            self.push(old, access);
        }
        self.push(new, access);
    }

    /// Lines of git before the hunks of a file.
    fn extended(&mut self, line: &'p str) {
        if let Some(rest) = line.strip_prefix("diff --git ") {
            self.is_link = false;
            if let Some((old, new)) = git_pair(rest) {
                self.push(old, Access::Write);
                self.push(new, Access::Write);
            }
            return;
        }
        for (header, access) in [
            ("rename from ", Access::Delete),
            ("rename to ", Access::Write),
            ("copy from ", Access::Read),
            ("copy to ", Access::Write),
            ("Index: ", Access::Write),
        ] {
            if let Some(name) = line.strip_prefix(header) {
                self.push(unquoted(name.trim_end()), access);
                return;
            }
        }
        if line.starts_with("deleted file mode ") {
            let file = self.file.clone();
            self.push(file, Access::Delete);
        }
        let mode = ["new file mode ", "new mode ", "index "].iter().any(|header| line.starts_with(header));
        self.is_link |= mode && line.trim_end().ends_with(" 120000");
    }

    /// Where a link leads, from the folder it lies in.
    fn link(&mut self, target: &'p str) {
        let target = target.trim_end_matches('\r');
        let path = match self.file.rsplit_once('/') {
            Some((folder, _)) if !target.starts_with(['/', '~']) => Cow::Owned(format!("{folder}/{target}")),
            _ => Cow::Borrowed(target),
        };
        self.is_link = false;
        self.push(path, Access::Write);
    }
}

/// The path of a `---` or `+++` line: before the tab that a time follows, without quotes and git's first folder.
fn header_path(text: &str) -> Cow<'_, str> {
    let text = text.trim_end_matches('\r');
    if text.starts_with('"') {
        return without_side(unquoted(text));
    }
    let path = text.split('\t').next().unwrap_or_default().trim_end();
    without_side(Cow::Borrowed(path))
}

/// Takes off the `a/` or `b/` that git puts before a path (or its mnemonic twins).
fn without_side(path: Cow<'_, str>) -> Cow<'_, str> {
    let has_side = matches!(path.as_bytes(), [b'a' | b'b' | b'c' | b'i' | b'o' | b'w', b'/', ..]);
    match path {
        path if !has_side => path,
        Cow::Borrowed(path) => Cow::Borrowed(&path[2..]),
        Cow::Owned(path) => Cow::Owned(path[2..].to_owned()),
    }
}

/// The two paths of a `diff --git` line.
fn git_pair(text: &str) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let text = text.trim_end();
    if text.starts_with('"') {
        let end = closing_quote(text)?;
        let (old, new) = text.split_at(end + 1);
        return Some((without_side(unquoted(old)), without_side(unquoted(new.trim()))));
    }
    if let Some(at) = text.find(" \"") {
        return Some((without_side(Cow::Borrowed(&text[..at])), without_side(unquoted(&text[at + 1..]))));
    }
    // Nothing marks where the first ends when names have blanks; mostly both are the same.
    let middle = text.len() / 2;
    let is_same = text.is_char_boundary(middle)
        && text.as_bytes().get(middle) == Some(&b' ')
        && text[..middle].split_once('/').map(|(_, name)| name)
            == text[middle + 1..].split_once('/').map(|(_, name)| name);
    let at = if is_same { middle } else { text.find(" b/").or_else(|| text.find(' '))? };
    Some((without_side(Cow::Borrowed(&text[..at])), without_side(Cow::Borrowed(&text[at + 1..]))))
}

/// Where the quote that `text` begins with is closed.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().enumerate().skip(1).find_map(|(at, byte)| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end.then_some(at)
    })
}

/// A name without the quotes and escapes that git and diff write it with.
fn unquoted(text: &str) -> Cow<'_, str> {
    let Some(end) = text.starts_with('"').then(|| closing_quote(text)).flatten() else {
        return Cow::Borrowed(text);
    };
    let inner = &text[1..end];
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let bytes = inner.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' || at + 1 == bytes.len() {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        let digits = bytes[at + 1..].iter().take(3).take_while(|byte| (b'0'..=b'7').contains(*byte)).count();
        if digits > 0 {
            let value = bytes[at + 1..at + 1 + digits]
                .iter()
                .fold(0u32, |sum, digit| sum * 8 + u32::from(digit - b'0'));
            out.push(value as u8);
            at += 1 + digits;
            continue;
        }
        out.push(match bytes[at + 1] {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            other => other,
        });
        at += 2;
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}
