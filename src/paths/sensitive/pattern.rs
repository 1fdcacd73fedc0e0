//! One pattern of a rule: names from the root, from a home, or from anywhere down.

use super::glob::{OpenName, matches};
use super::names::Names;

/// Where the first name of a pattern stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// At the root: `/etc/shadow`.
    Root,
    /// In a home directory: `~/.netrc`.
    Home,
    /// Anywhere: `.ssh/id_*`.
    Anywhere,
}

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub anchor: Anchor,
    /// Names in lower case, `*` and `?` being wildcards; never empty.
    pub names: Vec<String>,
    /// Whether everything below is meant (`**` at the end), and not the path itself.
    pub is_tree: bool,
}

/// What a pattern must offer for quick look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key<'p> {
    /// The last name is this.
    Name(&'p str),
    /// The last name ends with a dot and this.
    Extension(&'p str),
    /// The last name begins with these two bytes.
    Beginning(&'p str),
    /// The last name ends with these two bytes.
    Ending(&'p str),
    /// Some folder above is called this.
    Folder(&'p str),
}

fn is_literal(name: &str) -> bool {
    !name.contains(['*', '?'])
}

impl Pattern {
    /// Reads a pattern; the message says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let pattern = Self::parse_exception(text)?;
        if pattern.key().is_none() {
            return Err(format!(
                "{text:?} fits too much: its last name needs an extension, or two letters at its beginning or end; or a folder above it must have no wildcards"
            ));
        }
        Ok(pattern)
    }

    /// Reads a pattern that may fit as much as it likes.
    pub(super) fn parse_exception(text: &str) -> Result<Self, String> {
        let (anchor, rest) = match text {
            _ if text.starts_with("~/") => (Anchor::Home, &text[2..]),
            _ if text.starts_with('/') => (Anchor::Root, &text[1..]),
            _ => (Anchor::Anywhere, text),
        };
        let mut names: Vec<String> = rest.split('/').map(str::to_ascii_lowercase).collect();
        let is_tree = names.last().is_some_and(|name| name == "**");
        if is_tree {
            names.pop();
        }
        if names.is_empty() || names.iter().any(String::is_empty) {
            return Err(format!("{text:?} has an empty name; write names with one `/` between them"));
        }
        if names.iter().any(|name| name.contains("**")) {
            return Err(format!("{text:?} has `**` before its end, where it means nothing"));
        }
        if names.iter().any(|name| name == "." || name == ".." || name.contains(['\\', '\0'])) {
            return Err(format!("{text:?} is not normalised: no `.`, `..` or backslash"));
        }
        Ok(Self { anchor, names, is_tree })
    }

    /// What to look it up by.
    pub(super) fn key(&self) -> Option<Key<'_>> {
        let last = self.names.last()?;
        if self.is_tree {
            return self.names.iter().rev().find(|name| is_literal(name)).map(|name| Key::Folder(name));
        }
        if is_literal(last) {
            return Some(Key::Name(last));
        }
        if let Some((_, extension)) = last.rsplit_once('.').filter(|(_, e)| !e.is_empty() && is_literal(e)) {
            return Some(Key::Extension(extension));
        }
        if last.len() > 2 && last.is_char_boundary(2) && is_literal(&last[..2]) {
            return Some(Key::Beginning(&last[..2]));
        }
        if let Some(ending) =
            last.len().checked_sub(2).and_then(|at| last.get(at..)).filter(|e| is_literal(e))
        {
            return Some(Key::Ending(ending));
        }
        let folders = &self.names[..self.names.len() - 1];
        folders.iter().rev().find(|name| is_literal(name)).map(|name| Key::Folder(name))
    }

    /// Whether a path fits. With `or_above`, a folder fits a pattern for what is below it.
    pub(super) fn fits(&self, path: &Names<'_>, or_above: bool) -> bool {
        self.starts(path).any(|start| self.fits_at(path, start, or_above))
    }

    /// Whether a path fits of which the name at `at` is the folder that the pattern is looked up by.
    pub(super) fn fits_around(&self, path: &Names<'_>, at: usize, or_above: bool) -> bool {
        if self.anchor != Anchor::Anywhere || !self.is_tree {
            return self.fits(path, or_above);
        }
        let nth = self.names.iter().rposition(|name| is_literal(name));
        let start = nth.and_then(|nth| at.checked_sub(nth));
        start.is_some_and(|start| self.fits_at(path, start, or_above))
    }

    /// Where in a path the first name can stand.
    fn starts<'a>(&self, path: &'a Names<'_>) -> impl Iterator<Item = usize> + use<'a> {
        let (anchor, count, is_tree) = (self.anchor, self.names.len(), self.is_tree);
        let all = path.all().len();
        let fixed = match anchor {
            Anchor::Root => path.roots(),
            Anchor::Home => path.homes(),
            Anchor::Anywhere => &[],
        };
        let anywhere = match (anchor, is_tree, all.checked_sub(count)) {
            (Anchor::Anywhere, false, Some(start)) => start..start + 1,
            (Anchor::Anywhere, true, Some(last)) => 0..last + 1,
            _ => 0..0,
        };
        fixed.iter().copied().chain(anywhere)
    }

    fn fits_at(&self, path: &Names<'_>, start: usize, or_above: bool) -> bool {
        let all = path.all();
        let end = start + self.names.len();
        let is_end =
            if self.is_tree { end < all.len() || (or_above && end == all.len()) } else { end == all.len() };
        if !is_end || end > all.len() {
            return false;
        }
        if !path.is_open() {
            return self.names.iter().zip(&all[start..end]).all(|(pattern, name)| fits_name(pattern, name));
        }
        self.names.iter().zip(start..end).enumerate().all(|(nth, (pattern, at))| {
            let Some(open) = path.open(at) else { return fits_name(pattern, all[at]) };
            // What decides is the last name of the pattern: that one must be said, not only be possible.
            let is_decisive = nth + 1 == self.names.len();
            let is_said = if is_decisive {
                is_meant(pattern, open)
            } else {
                self.anchor != Anchor::Anywhere || open.said() > 0
            };
            is_said && open.meets(pattern)
        })
    }

    /// Whether an exception holds: the path fits as text, wildcards of a command being ordinary characters.
    pub(super) fn excepts(&self, path: &Names<'_>) -> bool {
        let all = path.all();
        self.starts(path).any(|start| {
            let end = start + self.names.len();
            let is_end = if self.is_tree { end <= all.len() } else { end == all.len() };
            is_end && self.names.iter().zip(&all[start..end]).all(|(pattern, name)| fits_name(pattern, name))
        })
    }
}

fn fits_name(pattern: &str, name: &str) -> bool {
    if is_literal(pattern) { pattern.eq_ignore_ascii_case(name) } else { matches(pattern, name) }
}

/// Whether a name with open pieces says so much of a pattern's name that it is meant.
fn is_meant(pattern: &str, open: &OpenName<'_>) -> bool {
    if is_literal(pattern) {
        let extension = open.shared_extension(pattern);
        let said = open.said() - extension;
        let length = pattern.len() - extension;
        return (open.is_fixed() && open.said() >= 2) || (said >= 2 && said * 5 >= length * 2);
    }
    let longest = pattern.split(['*', '?']).max_by_key(|piece| piece.len()).unwrap_or_default();
    open.says(longest)
}
