//! Classes of places: which of the named classes a path is in.

use std::collections::HashMap;

use super::listed::Listed;
use crate::paths::{Os, Place, PlaceKind, kind_of, normalise, within};
use crate::shell::argument::HOLE;

/// Most classes in one set; a path's classes are bits of one word.
pub(super) const CLASSES_MAX: usize = 64;

/// A class as written.
#[derive(Debug, Default)]
pub(super) struct ClassDef {
    pub name: String,
    pub kinds: Vec<PlaceKind>,
    pub paths: Vec<String>,
    pub except: Vec<String>,
    pub workspace: Option<Workspace>,
    pub sensitive: bool,
}

/// How a class stands to the roots of the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Workspace {
    /// A root itself, or something above one.
    Root,
    /// Strictly below a root.
    Inside,
}

/// All classes of a set.
#[derive(Debug, Default)]
pub(super) struct Classes {
    names: HashMap<String, usize>,
    kinds: Vec<(PlaceKind, u64)>,
    paths: Listed,
    exceptions: Listed,
    workspace_root: u64,
    workspace_inside: u64,
    /// Classes that ask the rules about sensitive paths.
    pub sensitive: u64,
}

impl Classes {
    /// Adds a class; false when there are too many or the name is taken.
    pub fn add(&mut self, class: ClassDef) -> bool {
        let index = self.names.len();
        if index >= CLASSES_MAX || self.names.contains_key(&class.name) {
            return false;
        }
        self.names.insert(class.name, index);
        let bit = 1 << index;
        for kind in class.kinds {
            self.kinds.push((kind, bit));
        }
        for path in &class.paths {
            self.paths.put(path, bit);
        }
        for path in &class.except {
            self.exceptions.put(path, bit);
        }
        match class.workspace {
            Some(Workspace::Root) => self.workspace_root |= bit,
            Some(Workspace::Inside) => self.workspace_inside |= bit,
            None => {}
        }
        self.sensitive |= if class.sensitive { bit } else { 0 };
        true
    }

    /// The bit of a class.
    pub fn bit(&self, name: &str) -> Option<u64> {
        self.names.get(name).map(|index| 1 << index)
    }

    /// Bits of the classes that a normalised path is in. With `has_glob`, `*` and the like are wildcards: all that a
    /// folder holds (`/etc/*`) counts as the folder.
    pub fn of(&self, path: &str, has_glob: bool, place: &Place<'_>, roots: &[String]) -> u64 {
        let lower;
        let path = if path.bytes().any(|b| b.is_ascii_uppercase()) {
            lower = path.to_ascii_lowercase();
            lower.as_str()
        } else {
            path
        };
        let (base, wild) = if has_glob { strip_wildcards(path) } else { (path, false) };
        let mut bits = self.of_one(base, place, roots);
        if wild {
            // `/e*` means each known path that it fits.
            bits |= self.paths.bits_of_glob(base);
        }
        bits
    }

    fn of_one(&self, path: &str, place: &Place<'_>, roots: &[String]) -> u64 {
        let lower_place;
        let (cwd, home);
        // Classes compare without case, so the place does as well.
        let place = if place.cwd.bytes().chain(place.home.bytes()).any(|b| b.is_ascii_uppercase()) {
            cwd = place.cwd.to_ascii_lowercase();
            home = place.home.to_ascii_lowercase();
            lower_place = Place { cwd: &cwd, home: &home, os: place.os };
            &lower_place
        } else {
            place
        };
        let kind = from_working_directory(path, place).unwrap_or_else(|| kind_of(path, place));
        let mut bits = self.kinds.iter().filter(|(k, _)| *k == kind).fold(0, |bits, (_, bit)| bits | bit);
        let tilde = from_home(path, place);
        bits |= self.paths.bits(path, tilde.as_deref());
        bits |= self.of_workspace(path, place, roots);
        if bits != 0 {
            bits &= !self.exceptions.bits(path, tilde.as_deref());
        }
        bits
    }

    fn of_workspace(&self, path: &str, place: &Place<'_>, roots: &[String]) -> u64 {
        let mut bits = 0;
        for root in roots {
            let root = normalise(root, place).to_ascii_lowercase();
            // A root of `/` would make everything a workspace.
            if root.len() <= 1 || path.contains(HOLE) && !within(path, &root, Os::Linux) {
                continue;
            }
            if path == root || within(&root, path, Os::Linux) {
                bits |= self.workspace_root;
            } else if within(path, &root, Os::Linux) {
                bits |= self.workspace_inside;
            }
        }
        bits
    }
}

/// How a path stands to the working directory, where that says more than that it is in somebody's home or elsewhere.
fn from_working_directory(path: &str, place: &Place<'_>) -> Option<PlaceKind> {
    if place.cwd.len() <= 1 {
        return None;
    }
    let ordinary = |path: &str| {
        matches!(
            kind_of(path, &Place { cwd: "", ..*place }),
            PlaceKind::BelowHome | PlaceKind::Other | PlaceKind::Local
        )
    };
    if !ordinary(place.cwd) {
        return None;
    }
    if path == place.cwd {
        return Some(PlaceKind::WorkingDirectory);
    }
    let inside = within(path, place.cwd, Os::Linux);
    (inside && ordinary(path)).then_some(PlaceKind::BelowWorkingDirectory)
}

/// The path as it is listed when it lies in a home directory: from `~`.
fn from_home(path: &str, place: &Place<'_>) -> Option<String> {
    let rest =
        if !place.home.is_empty() && path.len() > place.home.len() && within(path, place.home, Os::Linux) {
            Some(&path[place.home.trim_end_matches('/').len()..])
        } else {
            other_home(path)
        };
    rest.map(|rest| format!("~{rest}"))
}

/// What follows the home directory of somebody in a path below one.
fn other_home(path: &str) -> Option<&str> {
    if let Some(rest) = path.strip_prefix("/root/") {
        return Some(&path[path.len() - rest.len() - 1..]);
    }
    let rest = path
        .strip_prefix("/home/")
        .or_else(|| path.strip_prefix("/users/"))
        .or_else(|| path.strip_prefix("c:/users/"))?;
    rest.find('/').map(|at| &rest[at..])
}

/// The folder that a path with wildcards at its end means as a whole, and whether there are wildcards left.
fn strip_wildcards(path: &str) -> (&str, bool) {
    let mut base = path;
    loop {
        let (folder, name) = match base.rfind('/') {
            Some(at) => (&base[..at], &base[at + 1..]),
            None => ("", base),
        };
        let everything = matches!(
            name,
            "*" | "**" | ".*" | "*.*" | ".[!.]*" | ".[^.]*" | "..?*" | "?*" | "[!.]*" | "{*,.*}"
        );
        if !everything {
            break;
        }
        base = match (folder, base.starts_with('/')) {
            ("", true) => "/",
            ("", false) => ".",
            (folder, _) => folder,
        };
        if matches!(base, "/" | ".") {
            break;
        }
        // A drive keeps its slash.
        if base.len() == 2 && base.ends_with(':') {
            base = &path[..3];
            break;
        }
    }
    (base, base.contains(['*', '?', '[']))
}
