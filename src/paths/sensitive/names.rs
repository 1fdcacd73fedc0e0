//! The names of a normalised path, and where its roots and homes end.

use super::super::{HOLE, Place, normalise};
use super::glob::{OpenName, is_open};

/// Names that are held without an allocation.
const NAMES_HELD: usize = 24;

/// How a path was given, where that matters to its names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// Whether `*`, `?` and `[` are wildcards.
    pub has_glob: bool,
    /// Whether a relative path, when the working directory is not known, may be one of a home directory.
    pub relative_is_home: bool,
}

/// A normalised path, cut at `/`.
pub(super) struct Names<'p> {
    held: [&'p str; NAMES_HELD],
    many: Vec<&'p str>,
    count: usize,
    roots: Few,
    homes: Few,
    /// The open names among them, if there are any; beside each that is not open, nothing.
    open: Vec<Option<OpenName<'p>>>,
    is_open: bool,
    is_absolute: bool,
    climbs: bool,
}

/// Up to two places in a list of names.
#[derive(Clone, Copy, Default)]
struct Few {
    at: [usize; 2],
    count: usize,
}

impl Few {
    fn push(&mut self, at: usize) {
        if self.count < self.at.len() && !self.as_slice().contains(&at) {
            self.at[self.count] = at;
            self.count += 1;
        }
    }

    fn as_slice(&self) -> &[usize] {
        &self.at[..self.count]
    }
}

impl<'p> Names<'p> {
    /// Cuts a path as `normalise` spells it.
    pub(super) fn new(path: &'p str, place: &Place<'_>, reading: Reading) -> Self {
        let mut names = Self {
            held: [""; NAMES_HELD],
            many: Vec::new(),
            count: 0,
            roots: Few::default(),
            homes: Few::default(),
            open: Vec::new(),
            is_open: is_open(path, reading.has_glob),
            is_absolute: path.starts_with('/'),
            climbs: false,
        };
        for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
            names.push(name);
        }
        if names.is_open {
            let open = |name: &&'p str| {
                is_open(name, reading.has_glob).then(|| OpenName::new(name, reading.has_glob))
            };
            names.open = names.all().iter().map(open).collect();
        }
        names.find_roots(path, reading);
        names.find_homes(path, place, reading);
        names
    }

    fn push(&mut self, name: &'p str) {
        if self.count < NAMES_HELD {
            self.held[self.count] = name;
        } else {
            if self.many.is_empty() {
                self.many.extend(self.held);
            }
            self.many.push(name);
        }
        self.count += 1;
    }

    fn find_roots(&mut self, path: &str, reading: Reading) {
        let first = self.all().first().copied().unwrap_or_default();
        if self.is_absolute {
            self.roots.push(0);
            let drive = self.all().get(1).filter(|name| first == "mnt" && name.len() == 1);
            if drive.is_some() {
                self.roots.push(2);
            }
        } else if first.len() == 2 && first.ends_with(':') && path.as_bytes().get(2) == Some(&b'/') {
            self.is_absolute = true;
            self.roots.push(1);
        } else if first == ".." || first.starts_with(HOLE) {
            // It may climb to the root, and what is not known may be the root.
            self.climbs = true;
            let climbed = self.all().iter().take_while(|name| **name == "..").count();
            self.roots.push(climbed.max(1));
        } else if first == "~" {
            // `~/../../etc` climbs out of a home directory.
            let climbed = self.all().iter().skip(1).take_while(|name| **name == "..").count();
            if climbed > 0 {
                self.climbs = true;
                self.roots.push(climbed + 1);
            }
        } else if reading.relative_is_home {
            self.roots.push(0);
        }
        if self.is_absolute {
            // The working directory of another process, from which a path can climb as far as it likes.
            let mut from = 0;
            for (at, name) in self.all().iter().enumerate() {
                if *name == ".." {
                    from = at + 1;
                }
            }
            if from > 0 {
                self.climbs = true;
                self.roots.push(from);
            }
        }
    }

    fn find_homes(&mut self, path: &str, place: &Place<'_>, reading: Reading) {
        let all = self.all();
        let first = all.first().copied().unwrap_or_default();
        let mut homes = Few::default();
        if first == "~" {
            homes.push(1);
            // `~/../other`.
            if all.get(1) == Some(&"..") {
                homes.push(3);
            }
        } else if !self.is_absolute {
            if first == ".." {
                let climbed = all.iter().take_while(|name| **name == "..").count();
                homes.push(climbed);
                let next = all.get(climbed).copied().unwrap_or_default();
                if is_homes(next) {
                    homes.push(climbed + 2);
                } else if next.eq_ignore_ascii_case("root") {
                    homes.push(climbed + 1);
                }
            } else if reading.relative_is_home {
                homes.push(0);
            }
        } else {
            if !place.home.is_empty() {
                let home = normalise(place.home, place);
                if super::super::within(path, &home, place.os) {
                    homes.push(home.split('/').filter(|name| !name.is_empty()).count());
                }
            }
            for root in self.roots.as_slice() {
                let at = |nth: usize| all.get(root + nth).copied().unwrap_or_default();
                if is_homes(at(0)) {
                    homes.push(root + 2);
                } else if at(0).eq_ignore_ascii_case("root") {
                    homes.push(root + 1);
                } else if at(0).eq_ignore_ascii_case("var") && at(1).eq_ignore_ascii_case("root") {
                    homes.push(root + 2);
                }
            }
        }
        self.homes = homes;
    }

    /// The names.
    pub(super) fn all(&self) -> &[&'p str] {
        if self.many.is_empty() { &self.held[..self.count] } else { &self.many }
    }

    /// The last name; empty for a root.
    pub(super) fn last(&self) -> &'p str {
        self.all().last().copied().unwrap_or_default()
    }

    /// Where the first name below a root stands, for each root it may hang on.
    pub(super) fn roots(&self) -> &[usize] {
        self.roots.as_slice()
    }

    /// Where the first name below a home directory stands, for each it may hang on.
    pub(super) fn homes(&self) -> &[usize] {
        self.homes.as_slice()
    }

    /// The name at a place, if it is open.
    pub(super) fn open(&self, at: usize) -> Option<&OpenName<'p>> {
        self.open.get(at)?.as_ref()
    }

    /// Whether a piece of it is open.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether it hangs on a root or a drive.
    pub(super) fn is_absolute(&self) -> bool {
        self.is_absolute
    }

    /// Whether it climbs above what is known.
    pub(super) fn climbs(&self) -> bool {
        self.climbs
    }
}

/// Whether a folder of this name holds home directories. A wildcard there stands for one.
fn is_homes(name: &str) -> bool {
    ["home", "users"].iter().any(|homes| homes.eq_ignore_ascii_case(name))
}
