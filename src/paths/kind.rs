//! What kind of place a normalised path is.

use super::{HOLE, Os, Place, normalise};

/// Whether a normalised path is `root` or lies below it. Both as [`normalise`] spells them; names are compared as the
/// system compares them. Nothing is below an empty root.
pub fn within(path: &str, root: &str, os: Os) -> bool {
    let root = root.strip_suffix('/').unwrap_or(root);
    let Some(head) = path.as_bytes().get(..root.len()) else { return false };
    let same =
        if os.ignores_case() { head.eq_ignore_ascii_case(root.as_bytes()) } else { head == root.as_bytes() };
    let rest = &path.as_bytes()[root.len()..];
    // The root of the tree is empty without its separator.
    same && (rest.first() == Some(&b'/') || (rest.is_empty() && !root.is_empty()))
}

/// Kinds of places, from the view of someone who is about to change or delete one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlaceKind {
    /// The root of the tree or of a drive.
    Root,
    /// A top folder of the system itself: `/etc`, `/usr`, `/var`, `C:/Windows`.
    SystemTop,
    /// Something below a folder that belongs to the system.
    System,
    /// Something below `/usr/local`, `/opt`, `/srv` and their like, where software and data are put by hand.
    Local,
    /// The folder of all homes, such as `/home`.
    Homes,
    /// A home directory itself.
    Home,
    /// Something below a home directory.
    BelowHome,
    /// A folder of temporary files itself.
    TempTop,
    /// Something below a folder of temporary files.
    Temp,
    /// A device, below `/dev`. `/dev/null` and other streams are [`PlaceKind::Stream`].
    Device,
    /// A device that is no storage: `/dev/null`, `/dev/stdout`, a terminal.
    Stream,
    /// Something below `/proc` or `/sys`.
    Kernel,
    /// The working directory itself.
    WorkingDirectory,
    /// Something below the working directory.
    BelowWorkingDirectory,
    /// A parent of the working directory, or what is reached through one that is not known.
    AboveWorkingDirectory,
    /// It begins with a piece that is not known.
    Unknown,
    /// Any other absolute path.
    Other,
}

/// Top folders that belong to the system with all that is in them.
const SYSTEM: &[&str] = &[
    "bin",
    "boot",
    "etc",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "sbin",
    "usr",
    "var",
    "nix",
    "snap",
    "run",
    "system",
    "library",
    "applications",
    "cores",
    "network",
    "private",
];

/// Top folders in which software and data are put by hand.
const LOCAL: &[&str] = &["opt", "srv", "mnt", "media", "volumes"];

/// Folders of a drive of Windows that belong to the system.
const WINDOWS_SYSTEM: &[&str] = &[
    "windows",
    "program files",
    "program files (x86)",
    "programdata",
    "boot",
    "recovery",
    "system volume information",
];

/// What streams and terminals are called below `/dev`.
const STREAMS: &[&str] =
    &["null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "tty", "console"];

/// What kind of place a path is that [`normalise`] spelled. Names are compared without case.
pub fn kind_of(path: &str, place: &Place<'_>) -> PlaceKind {
    if path.starts_with(HOLE) {
        return PlaceKind::Unknown;
    }
    let home = normalise(place.home, place);
    if !place.home.is_empty() && within(path, &home, place.os) {
        return if path.len() == home.len() { PlaceKind::Home } else { below_home(path, &home) };
    }
    if let Some(rest) = path.strip_prefix('~') {
        return match rest {
            "" => PlaceKind::Home,
            _ if rest.starts_with("/..") => PlaceKind::Homes,
            _ => below_home(path, "~"),
        };
    }
    let Some((drive, names)) = split_root(path) else {
        return match path {
            "." => PlaceKind::WorkingDirectory,
            _ if path.starts_with("..") && matches!(path.as_bytes().get(2), None | Some(b'/')) => {
                PlaceKind::AboveWorkingDirectory
            }
            _ => PlaceKind::BelowWorkingDirectory,
        };
    };
    let kind = if drive { of_drive(names) } else { of_tree(names) };
    if matches!(kind, PlaceKind::Other | PlaceKind::BelowHome | PlaceKind::Local) && !place.cwd.is_empty() {
        return of_working_directory(path, place).unwrap_or(kind);
    }
    kind
}

fn below_home(path: &str, home: &str) -> PlaceKind {
    let below = &path[home.len()..];
    if below.eq_ignore_ascii_case("/AppData/Local/Temp") {
        PlaceKind::TempTop
    } else if below.len() > 20 && below.as_bytes()[..20].eq_ignore_ascii_case(b"/AppData/Local/Temp/") {
        PlaceKind::Temp
    } else {
        PlaceKind::BelowHome
    }
}

/// Whether an absolute path is on a drive, and what follows the root.
fn split_root(path: &str) -> Option<(bool, &str)> {
    match path.as_bytes() {
        [b'/', ..] => Some((false, &path[1..])),
        [letter, b':', b'/', ..] if letter.is_ascii_alphabetic() => Some((true, &path[3..])),
        _ => None,
    }
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn of_tree(names: &str) -> PlaceKind {
    let (top, rest) = names.split_once('/').unwrap_or((names, ""));
    let (second, deeper) = rest.split_once('/').unwrap_or((rest, ""));
    if top.is_empty() {
        return PlaceKind::Root;
    }
    if is_one_of(top, &["home", "users"]) {
        return match (second, deeper) {
            ("", _) => PlaceKind::Homes,
            (_, "") => PlaceKind::Home,
            _ => PlaceKind::BelowHome,
        };
    }
    if top.eq_ignore_ascii_case("root") {
        return if rest.is_empty() { PlaceKind::Home } else { PlaceKind::BelowHome };
    }
    if top.eq_ignore_ascii_case("tmp") {
        return if rest.is_empty() { PlaceKind::TempTop } else { PlaceKind::Temp };
    }
    if top.eq_ignore_ascii_case("var") && is_one_of(second, &["tmp", "folders"]) {
        return if deeper.is_empty() { PlaceKind::TempTop } else { PlaceKind::Temp };
    }
    if top.eq_ignore_ascii_case("dev") {
        return match second {
            "" => PlaceKind::SystemTop,
            "shm" => {
                if deeper.is_empty() {
                    PlaceKind::TempTop
                } else {
                    PlaceKind::Temp
                }
            }
            "fd" | "pts" | "tcp" | "udp" => PlaceKind::Stream,
            _ if is_one_of(second, STREAMS) || second.starts_with("tty") => PlaceKind::Stream,
            _ => PlaceKind::Device,
        };
    }
    if is_one_of(top, &["proc", "sys"]) {
        return if rest.is_empty() { PlaceKind::SystemTop } else { PlaceKind::Kernel };
    }
    if is_one_of(top, LOCAL) {
        return match (top, second, deeper) {
            (_, "", _) => PlaceKind::SystemTop,
            // A drive of Windows, seen from Linux on it.
            ("mnt", drive, _) if drive.len() == 1 => of_drive(deeper),
            _ => PlaceKind::Local,
        };
    }
    if is_one_of(top, SYSTEM) {
        let is_local = top.eq_ignore_ascii_case("usr") && second == "local" && !deeper.is_empty();
        return match rest {
            "" => PlaceKind::SystemTop,
            _ if is_local => PlaceKind::Local,
            _ => PlaceKind::System,
        };
    }
    PlaceKind::Other
}

fn of_drive(names: &str) -> PlaceKind {
    let (top, rest) = names.split_once('/').unwrap_or((names, ""));
    let (second, deeper) = rest.split_once('/').unwrap_or((rest, ""));
    if top.is_empty() {
        return PlaceKind::Root;
    }
    if top.eq_ignore_ascii_case("users") {
        return match (second, deeper) {
            ("", _) => PlaceKind::Homes,
            (_, "") => PlaceKind::Home,
            _ => below_home(&names[names.len() - deeper.len() - 1..], ""),
        };
    }
    if is_one_of(top, &["temp", "tmp"]) {
        return if rest.is_empty() { PlaceKind::TempTop } else { PlaceKind::Temp };
    }
    match (is_one_of(top, WINDOWS_SYSTEM), rest) {
        (true, "") => PlaceKind::SystemTop,
        (true, _) if top.eq_ignore_ascii_case("windows") && second.eq_ignore_ascii_case("temp") => {
            if deeper.is_empty() { PlaceKind::TempTop } else { PlaceKind::Temp }
        }
        (true, _) => PlaceKind::System,
        (false, _) => PlaceKind::Other,
    }
}

/// Where a path stands to the working directory, if it does.
fn of_working_directory(path: &str, place: &Place<'_>) -> Option<PlaceKind> {
    let cwd = normalise(place.cwd, place);
    if within(path, &cwd, place.os) {
        let is_same = path.len() == cwd.len();
        return Some(if is_same { PlaceKind::WorkingDirectory } else { PlaceKind::BelowWorkingDirectory });
    }
    within(&cwd, path, place.os).then_some(PlaceKind::AboveWorkingDirectory)
}
