//! Finds the patterns that may fit a path, by its names.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::names::Names;
use super::pattern::{Key, Pattern};

/// One pattern of one rule.
#[derive(Debug)]
pub(super) struct Entry {
    pub pattern: Pattern,
    /// Index of the rule.
    pub rule: usize,
}

/// Passes on a key that is a hash already.
#[derive(Default)]
struct Passed(u64);

impl Hasher for Passed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// Key of patterns that begin or end with a wildcard.
const WILD: u8 = b'*';

/// Rejects most names before they are hashed: for each first byte, which lengths there are.
#[derive(Debug)]
struct Gate([u32; 256]);

impl Default for Gate {
    fn default() -> Self {
        Self([0; 256])
    }
}

impl Gate {
    fn bit(name: &str) -> Option<(usize, u32)> {
        let first = name.as_bytes().first()?.to_ascii_lowercase();
        Some((usize::from(first), 1 << name.len().min(31)))
    }

    fn add(&mut self, name: &str) {
        if let Some((first, length)) = Self::bit(name) {
            self.0[first] |= length;
        }
    }

    fn passes(&self, name: &str) -> bool {
        Self::bit(name).is_some_and(|(first, length)| self.0[first] & length != 0)
    }
}

/// Patterns by what must stand in a path.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: Vec<Entry>,
    /// Patterns whose last name must fit that of the path, by its first and by its last byte, or [`WILD`].
    tails_by_first: HashMap<u8, Vec<u32>>,
    tails_by_last: HashMap<u8, Vec<u32>>,
    /// Patterns for what is below a folder.
    trees: Vec<u32>,
    names: Gate,
    extensions: Gate,
    folders: Gate,
    by_key: HashMap<u64, Vec<u32>, BuildHasherDefault<Passed>>,
}

/// FNV-1a over the lower-case bytes, with a seed for each kind of key.
fn hash(kind: u64, text: &str) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325 ^ kind;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01B3);
    }
    // The table looks at the topmost and the lowest bits.
    hash ^ (hash >> 32)
}

fn hash_key(key: Key<'_>) -> u64 {
    match key {
        Key::Name(name) => hash(1, name),
        Key::Extension(extension) => hash(2, extension),
        Key::Beginning(beginning) => hash(3, beginning),
        Key::Ending(ending) => hash(4, ending),
        Key::Folder(folder) => hash(5, folder),
    }
}

impl Index {
    /// Takes a pattern of a rule; it has a key.
    pub(super) fn add(&mut self, pattern: Pattern, rule: usize) {
        let nth = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        if let Some(key) = pattern.key() {
            match key {
                Key::Name(name) => self.names.add(name),
                Key::Extension(extension) => self.extensions.add(extension),
                Key::Folder(folder) => self.folders.add(folder),
                Key::Beginning(_) | Key::Ending(_) => {}
            }
            self.by_key.entry(hash_key(key)).or_default().push(nth);
        }
        if pattern.is_tree {
            self.trees.push(nth);
        } else if let Some(last) = pattern.names.last() {
            let key = |byte: Option<&u8>| byte.copied().filter(|byte| *byte != b'?').unwrap_or(WILD);
            self.tails_by_first.entry(key(last.as_bytes().first())).or_default().push(nth);
            self.tails_by_last.entry(key(last.as_bytes().last())).or_default().push(nth);
        }
        self.entries.push(Entry { pattern, rule });
    }

    /// Calls `found` for each pattern that fits, in no order that matters.
    pub(super) fn find(&self, path: &Names<'_>, or_above: bool, mut found: impl FnMut(&Entry)) {
        if path.is_open() {
            self.find_open(path, or_above, &mut found);
        }
        let mut look_at = |key: Key<'_>, at: Option<usize>| {
            for nth in self.by_key.get(&hash_key(key)).into_iter().flatten() {
                let entry = &self.entries[*nth as usize];
                let fits = match at {
                    Some(at) => entry.pattern.fits_around(path, at, or_above),
                    None => entry.pattern.fits(path, or_above),
                };
                if fits {
                    found(entry);
                }
            }
        };
        let mut look = |key: Key<'_>| look_at(key, None);
        let last = path.last();
        // What is open has no hash.
        if path.open(path.all().len().saturating_sub(1)).is_none() {
            if self.names.passes(last) {
                look(Key::Name(last));
            }
            if let Some((_, extension)) = last.rsplit_once('.').filter(|(_, e)| self.extensions.passes(e)) {
                look(Key::Extension(extension));
            }
            if let Some(beginning) = last.get(..2) {
                look(Key::Beginning(beginning));
            }
            if let Some(ending) = last.len().checked_sub(2).and_then(|at| last.get(at..)) {
                look(Key::Ending(ending));
            }
        }
        let all = path.all();
        let folders = if or_above { all.len() } else { all.len().saturating_sub(1) };
        for (at, folder) in all[..folders].iter().enumerate() {
            if self.folders.passes(folder) {
                look_at(Key::Folder(folder), Some(at));
            }
        }
    }

    /// Finds patterns that names with open pieces may fit, besides those that have a key among the other names.
    fn find_open(&self, path: &Names<'_>, or_above: bool, found: &mut impl FnMut(&Entry)) {
        let all = path.all();
        let mut look = |nth: u32| {
            let entry = &self.entries[nth as usize];
            if entry.pattern.fits(path, or_above) {
                found(entry);
            }
        };
        if let Some(open) = path.open(all.len().saturating_sub(1)).filter(|open| open.said() > 0) {
            let (buckets, byte) = match (open.first(), open.last()) {
                (None, Some(last)) => (&self.tails_by_last, Some(last)),
                (first, _) => (&self.tails_by_first, first),
            };
            match byte {
                Some(byte) => [byte, WILD]
                    .iter()
                    .filter_map(|key| buckets.get(key))
                    .flatten()
                    .copied()
                    .for_each(&mut look),
                None => buckets.values().flatten().copied().for_each(&mut look),
            }
        }
        let folders = if or_above { all.len() } else { all.len().saturating_sub(1) };
        // A folder of which too little is said is never meant; see `Pattern::fits`.
        if (0..folders).any(|at| path.open(at).is_some_and(|open| open.said() > 1)) {
            self.trees.iter().copied().for_each(&mut look);
        }
    }
}
