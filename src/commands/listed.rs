//! Paths that classes list, indexed: which bits a path has is found in time that does not grow with the list.

use std::collections::HashMap;

use super::glob;

/// Listed paths with the bits of their classes.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Paths without wildcards.
    exact: HashMap<String, u64>,
    /// Folders of which everything below them is meant.
    below: HashMap<String, u64>,
    /// Bytes of the longest of those folders.
    below_max: usize,
    /// `**/name` and `**/folder/name`, by the last name: what the path ends with.
    tails: HashMap<String, Vec<(String, u64)>>,
    /// `**/folder/**`, by the first name: what the path holds.
    inside: HashMap<String, Vec<(String, u64)>>,
    /// Any other pattern, with the bytes before its first wildcard.
    patterns: Vec<(usize, String, u64)>,
}

impl Listed {
    /// Adds a path or pattern, whatever its case.
    pub fn put(&mut self, path: &str, bit: u64) {
        let path = path.to_ascii_lowercase();
        if let Some(folder) = path.strip_suffix("/**").filter(|folder| !is_wild(folder)) {
            self.below_max = self.below_max.max(folder.len());
            *self.below.entry(folder.to_owned()).or_default() |= bit;
            return;
        }
        let Some(wild) = path.find(['*', '?']) else {
            *self.exact.entry(path).or_default() |= bit;
            return;
        };
        if let Some(rest) = path.strip_prefix("**/") {
            if let Some(folder) = rest.strip_suffix("/**").filter(|folder| !is_wild(folder)) {
                let first = folder.split('/').next().unwrap_or_default().to_owned();
                self.inside.entry(first).or_default().push((format!("/{folder}/"), bit));
                return;
            }
            if !is_wild(rest) {
                let last = rest.rsplit('/').next().unwrap_or_default().to_owned();
                self.tails.entry(last).or_default().push((format!("/{rest}"), bit));
                return;
            }
        }
        self.patterns.push((wild, path, bit));
    }

    /// Bits of a path in lower case. `tilde` is the same path written from a home directory.
    pub fn bits(&self, path: &str, tilde: Option<&str>) -> u64 {
        let mut bits = self.look_up(path);
        if let Some(tilde) = tilde {
            bits |= self.look_up(tilde);
        }
        bits |= self.anywhere(path);
        for (literal, pattern, bit) in &self.patterns {
            if bits & bit == *bit {
                continue;
            }
            let head = &pattern.as_bytes()[..*literal];
            let fits = |path: &str| path.as_bytes().starts_with(head) && glob::matches(pattern, path);
            if fits(path) || tilde.is_some_and(fits) {
                bits |= bit;
            }
        }
        bits
    }

    /// Bits of the listed paths that a glob means.
    pub fn bits_of_glob(&self, pattern: &str) -> u64 {
        let known = self.exact.iter().chain(&self.below);
        let plain = without_brackets(pattern);
        known.filter(|(known, _)| glob::matches(&plain, known)).fold(0, |bits, (_, bit)| bits | bit)
    }

    fn look_up(&self, path: &str) -> u64 {
        let mut bits = self.exact.get(path).copied().unwrap_or_default();
        for (at, _) in path.match_indices('/').take_while(|(at, _)| *at <= self.below_max) {
            bits |= self.below.get(&path[..at]).copied().unwrap_or_default();
        }
        bits
    }

    fn anywhere(&self, path: &str) -> u64 {
        let mut bits = 0;
        let mut names = path.split('/').peekable();
        // What stands before the first slash is below nothing.
        let mut at = names.next().map_or(0, str::len);
        while let Some(name) = names.next() {
            let rest = &path[at..];
            if names.peek().is_none() {
                for (tail, bit) in self.tails.get(name).into_iter().flatten() {
                    bits |= if path.ends_with(tail.as_str()) { *bit } else { 0 };
                }
            } else {
                for (folder, bit) in self.inside.get(name).into_iter().flatten() {
                    bits |= if rest.starts_with(folder.as_str()) { *bit } else { 0 };
                }
            }
            at += 1 + name.len();
        }
        bits
    }
}

fn is_wild(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// A pattern with `?` for each `[…]`: it fits at least what the pattern fits.
fn without_brackets(pattern: &str) -> std::borrow::Cow<'_, str> {
    if !pattern.contains('[') {
        return pattern.into();
    }
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(open) = rest.find('[') {
        // A `]` that comes first is one of the characters.
        let from =
            open + 1 + rest[open + 1..].bytes().take_while(|b| matches!(b, b'!' | b'^' | b']')).count();
        let Some(close) = rest[from..].find(']').filter(|at| !rest[open..from + at].contains('/')) else {
            break;
        };
        out.push_str(&rest[..open]);
        out.push('?');
        rest = &rest[from + close + 1..];
    }
    out.push_str(rest);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::{Listed, glob};

    /// Patterns of every kind.
    const PATTERNS: &[&str] = &[
        "/etc",
        "/etc/**",
        "/dev/sd*",
        "**/.git",
        "**/.git/**",
        "**/.git/hooks",
        "**/.git/refs/**",
        "~/.ssh",
        "~/.cache/**",
        "**/*.egg-info",
        "/usr/lib/**/test",
        "/proc/*/mem",
        "..",
        ".git/*",
    ];

    const PATHS: &[&str] = &[
        "/etc",
        "/etc/",
        "/etc/a",
        "/etc/a/b",
        "/dev/sda",
        "/dev/sda/1",
        "/a/.git",
        ".git",
        ".git/x",
        "a/.git",
        "/a/.git/",
        "/a/.git/x",
        "/a/.git/hooks",
        "/a/.git/refs/x/y",
        "/a/.github",
        "~/.ssh",
        "~/.ssh/a",
        "~/.cache",
        "~/.cache/x",
        "/a/b.egg-info",
        "b.egg-info",
        "/usr/lib/x/test",
        "/usr/lib/test",
        "/proc/1/mem",
        "..",
        "../a",
        "",
        "/",
        "/a/.git/refs/",
        "x/.git/refs",
    ];

    #[test]
    fn the_index_finds_what_each_pattern_fits() {
        let mut listed = Listed::default();
        for (nth, pattern) in PATTERNS.iter().enumerate() {
            listed.put(pattern, 1 << nth);
        }
        for path in PATHS {
            let bits = listed.bits(path, None);
            for (nth, pattern) in PATTERNS.iter().enumerate() {
                assert_eq!(bits >> nth & 1 == 1, glob::matches(pattern, path), "{pattern} {path}");
            }
        }
    }
}
