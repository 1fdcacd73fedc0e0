//! One spelling for each file: absolute, `/` between names, no `.`, no `..`, no doubled separator.

use std::borrow::Cow;

use super::{HOLE, Os, Place};

/// The one spelling of `text` that names the same file, as far as text can tell.
///
/// - absolute, such as `/etc/passwd` or `C:/Users/u`, wherever the working directory or a root is known;
/// - `~` or `~/…` when it is below a home directory that is not known;
/// - relative, perhaps with leading `..`, when the working directory is not known; `.` for that directory itself;
/// - what begins with an unknown piece ([`HOLE`]) keeps it, and `..` does not climb above it.
///
/// Understands `~user`, `$HOME`, `${HOME}`, `%USERPROFILE%`, `%APPDATA%`, `$env:USERPROFILE` and their like at the
/// beginning, drive letters, `\\?\`, `\\wsl$\distribution\`, `/proc/self/root` and `/proc/self/cwd`, and the links that
/// systems ship with (`/var/run`, macOS `/private`). A shared folder of a host is spelled `/host/share`. Case is kept.
/// A backslash separates on Windows and in a path that begins like one of Windows.
///
/// Borrowed, without any allocation, when it is the one spelling already.
pub fn normalise<'a>(text: &'a str, place: &Place<'_>) -> Cow<'a, str> {
    if is_clean(text, place.os) {
        return Cow::Borrowed(text);
    }
    let (base, rest, windows) = split_base(text, place.os);
    let mut path = Builder::new(place, windows, text.len());
    path.start(base);
    path.push_all(rest);
    let spelled = path.finish();
    if spelled.contains('\\') && split_drive(&spelled, false).is_some() {
        // Only what it hangs on told that it is of Windows.
        return Cow::Owned(normalise(&spelled, place).into_owned());
    }
    Cow::Owned(spelled)
}

/// Whether an absolute path is its one spelling already. May say no of a clean one, never yes of another.
fn is_clean(text: &str, os: Os) -> bool {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'/') || os == Os::Windows || has_links(text) {
        return false;
    }
    if bytes.len() == 1 {
        return true;
    }
    // The beginning of a name that could be empty, `.` or `..`.
    let mut previous = 0;
    for (at, &byte) in bytes.iter().enumerate().skip(1) {
        if byte == b'/' {
            if is_dots(&bytes[previous + 1..at]) {
                return false;
            }
            previous = at;
        }
    }
    !is_dots(&bytes[previous + 1..])
}

fn is_dots(name: &[u8]) -> bool {
    matches!(name, b"" | b"." | b"..")
}

/// Whether the path begins with a folder in which links with a known target lie.
fn has_links(text: &str) -> bool {
    ["/proc/", "/var/", "/private/", "/system/", "/dev/"].iter().any(|folder| starts_with_fold(text, folder))
}

fn starts_with_fold(text: &str, prefix: &str) -> bool {
    text.as_bytes().get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix.as_bytes()))
}

/// What a path hangs on.
enum Base<'t> {
    /// The root of the tree.
    Root,
    /// A drive, as its letter.
    Drive(u8),
    /// The home directory, and a folder below it that a variable names.
    Home(&'static str),
    /// The home directory of another user.
    HomeOf(&'t str),
    /// A fixed folder that a variable names.
    Fixed(&'static str),
    /// The working directory.
    Cwd,
    /// A piece that is not known.
    Unknown,
}

/// Variables that name a folder, in lower case.
const VARIABLES: &[(&str, Base<'static>)] = &[
    ("home", Base::Home("")),
    ("userprofile", Base::Home("")),
    ("homepath", Base::Home("")),
    ("appdata", Base::Home("AppData/Roaming")),
    ("localappdata", Base::Home("AppData/Local")),
    ("xdg_config_home", Base::Home(".config")),
    ("xdg_data_home", Base::Home(".local/share")),
    ("xdg_state_home", Base::Home(".local/state")),
    ("xdg_cache_home", Base::Home(".cache")),
    ("zdotdir", Base::Home("")),
    ("pwd", Base::Cwd),
    ("cd", Base::Cwd),
    ("tmpdir", Base::Fixed("/tmp")),
    ("systemroot", Base::Fixed("C:/Windows")),
    ("windir", Base::Fixed("C:/Windows")),
    ("programdata", Base::Fixed("C:/ProgramData")),
    ("allusersprofile", Base::Fixed("C:/ProgramData")),
    ("programfiles", Base::Fixed("C:/Program Files")),
    ("systemdrive", Base::Fixed("C:/")),
    ("homedrive", Base::Fixed("C:/")),
];

fn variable(name: &str) -> Option<&'static Base<'static>> {
    VARIABLES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, base)| base)
}

/// Splits a path into what it hangs on, the rest, and whether backslashes separate.
fn split_base(text: &str, os: Os) -> (Base<'_>, &str, bool) {
    let on_windows = os == Os::Windows;
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(b'~') => split_tilde(text, on_windows),
        Some(b'$' | b'%') => split_variable(text, on_windows).unwrap_or((Base::Cwd, text, on_windows)),
        Some(b'\\' | b'/') => split_rooted(text, os),
        _ if text.starts_with(HOLE) => (Base::Unknown, text, on_windows),
        _ => split_drive(text, on_windows).unwrap_or((Base::Cwd, text, on_windows)),
    }
}

fn is_separator(byte: u8, windows: bool) -> bool {
    byte == b'/' || (windows && byte == b'\\')
}

/// Whether a name ends where `rest` begins.
fn at_boundary(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['/', '\\'])
}

/// `C:/x`, `C:\x`, and on Windows `C:` and `C:x`.
fn split_drive(text: &str, on_windows: bool) -> Option<(Base<'_>, &str, bool)> {
    let bytes = text.as_bytes();
    let letter = *bytes.first().filter(|letter| letter.is_ascii_alphabetic())?;
    let rest = text[1..].strip_prefix(':')?;
    let is_drive = rest.starts_with(['/', '\\']) || on_windows;
    is_drive.then_some((Base::Drive(letter), rest, true))
}

/// `~`, `~/x`, `~user/x`.
fn split_tilde(text: &str, on_windows: bool) -> (Base<'_>, &str, bool) {
    let windows = on_windows || text.starts_with("~\\");
    let end = text.bytes().position(|byte| is_separator(byte, windows)).unwrap_or(text.len());
    let (user, rest) = (&text[1..end], &text[end..]);
    match user {
        "" => (Base::Home(""), rest, windows),
        "+" => (Base::Cwd, rest, windows),
        "-" => (Base::Unknown, text, windows),
        _ if is_user(user) => (Base::HomeOf(user), rest, windows),
        _ => (Base::Cwd, text, windows),
    }
}

fn is_user(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
        && !name.starts_with('.')
}

/// `$HOME/x`, `${HOME}/x`, `$env:USERPROFILE\x`, `%USERPROFILE%\x`.
fn split_variable(text: &str, on_windows: bool) -> Option<(Base<'_>, &str, bool)> {
    let (name, rest, of_windows) = if let Some(inner) = text.strip_prefix('%') {
        let (name, rest) = inner.split_once('%')?;
        (name, rest, true)
    } else if let Some(inner) = text.strip_prefix("${") {
        let (name, rest) = inner.split_once('}')?;
        // `${HOME:-/x}` and `${env:HOME}`.
        match name.split_once(':') {
            Some((scope, name)) if scope.eq_ignore_ascii_case("env") => (name, rest, true),
            Some((name, _)) => (name, rest, false),
            None => (name, rest, false),
        }
    } else if starts_with_fold(text, "$env:") {
        let inner = &text["$env:".len()..];
        let end = inner.find(['/', '\\']).unwrap_or(inner.len());
        (&inner[..end], &inner[end..], true)
    } else {
        let inner = text.strip_prefix('$')?;
        let end = inner.find(['/', '\\']).unwrap_or(inner.len());
        (&inner[..end], &inner[end..], false)
    };
    let windows = on_windows || of_windows || rest.starts_with('\\');
    if name.eq_ignore_ascii_case("homedrive") && starts_with_fold(rest, "%homepath%") {
        return Some((Base::Home(""), &rest["%homepath%".len()..], windows));
    }
    if !at_boundary(rest) {
        return None;
    }
    let base = match variable(name)? {
        Base::Home(below) => Base::Home(below),
        Base::Fixed(folder) => Base::Fixed(folder),
        _ => Base::Cwd,
    };
    Some((base, rest, windows))
}

/// What begins with a separator: the tree's root, a device name, a shared folder.
fn split_rooted(text: &str, os: Os) -> (Base<'_>, &str, bool) {
    let on_windows = os == Os::Windows;
    if !on_windows && text.starts_with('\\') && !text.starts_with("\\\\") {
        // A name that holds a backslash.
        return (Base::Cwd, text, false);
    }
    let windows = on_windows || text.starts_with('\\');
    let slashes = text.bytes().take_while(|&byte| is_separator(byte, true)).count();
    let rest = &text[slashes..];
    // `\\?\`, `\\.\` and `//?/` lead to a drive, to another name space or to a device.
    if slashes == 2 && (rest.starts_with("?/") || rest.starts_with("?\\") || rest.starts_with(".\\")) {
        let rest = &rest[2..];
        if let Some(drive) = split_drive(rest, true) {
            return drive;
        }
        if starts_with_fold(rest, "unc") && at_boundary(&rest[3..]) {
            return (Base::Root, &rest[3..], true);
        }
        return (Base::Fixed("/dev"), rest, true);
    }
    if slashes == 2 && windows {
        for host in ["wsl$", "wsl.localhost"] {
            if starts_with_fold(rest, host) && at_boundary(&rest[host.len()..]) {
                let inside = rest[host.len()..].trim_start_matches(['/', '\\']);
                let end = inside.find(['/', '\\']).unwrap_or(inside.len());
                return (Base::Root, &inside[end..], true);
            }
        }
    }
    (Base::Root, rest, windows)
}

/// A path in the making. No name of it is `.` or, above the part that is not known, `..`.
struct Builder<'p> {
    out: String,
    /// Bytes at the beginning of `out` that `..` cannot take away.
    floor: usize,
    /// Whether `..` at the floor stays there, as at a root.
    is_rooted: bool,
    /// Whether it hangs on a working directory that is not known.
    is_relative: bool,
    /// Whether the first name stands for something whose own place is not known.
    is_unknown: bool,
    /// Whether a link to the working directory is being followed; inside it there is none.
    in_link: bool,
    place: &'p Place<'p>,
    windows: bool,
}

impl<'p> Builder<'p> {
    fn new(place: &'p Place<'p>, windows: bool, length: usize) -> Self {
        let out = String::with_capacity(length + place.cwd.len().max(place.home.len()) + 16);
        Self {
            out,
            floor: 0,
            is_rooted: false,
            is_relative: false,
            is_unknown: false,
            in_link: false,
            place,
            windows,
        }
    }

    fn root(&mut self, root: &str) {
        self.out.clear();
        self.out.push_str(root);
        self.floor = self.out.len();
        self.is_rooted = true;
        self.is_relative = false;
    }

    /// Hangs the path on something whose own place is not known.
    fn loose(&mut self, name: &str) {
        self.out.clear();
        self.out.push_str(name);
        self.floor = self.out.len();
        self.is_rooted = false;
        self.is_relative = name.is_empty();
    }

    fn start(&mut self, base: Base<'_>) {
        match base {
            Base::Root => self.root("/"),
            Base::Drive(letter) => {
                self.root("");
                self.out.push(char::from(letter.to_ascii_uppercase()));
                self.out.push_str(":/");
                self.floor = self.out.len();
            }
            Base::Home(below) => {
                self.known(self.place.home, "~");
                self.push_all(below);
            }
            Base::HomeOf(user) => self.home_of(user),
            Base::Fixed(folder) => self.known(folder, ""),
            Base::Cwd => self.known(self.place.cwd, ""),
            Base::Unknown => self.unknown(),
        }
    }

    fn unknown(&mut self) {
        self.loose("");
        self.is_relative = false;
        self.is_unknown = true;
    }

    /// Starts at a folder that was told, or at `unknown` if what was told is no absolute path.
    fn known(&mut self, folder: &str, unknown: &str) {
        let windows = self.windows;
        let (base, rest, of_windows) = split_base(folder, self.place.os);
        self.windows = of_windows;
        match base {
            Base::Root => self.root("/"),
            Base::Drive(_) | Base::Fixed(_) => self.start(base),
            Base::Unknown => self.unknown(),
            Base::HomeOf(user) if folder != self.place.home => self.home_of(user),
            Base::Home(below) if folder != self.place.home => {
                self.known(self.place.home, "~");
                self.push_all(below);
            }
            _ => {
                self.windows = windows;
                return self.loose(unknown);
            }
        }
        self.push_all(rest);
        self.windows = windows;
        if self.is_relative || (folder == self.place.home && !self.is_rooted && !self.is_unknown) {
            // It led back to what is not known.
            self.loose(unknown);
        }
    }

    fn home_of(&mut self, user: &str) {
        let home = self.place.home.trim_end_matches(['/', '\\']);
        if home.ends_with(user) && home[..home.len() - user.len()].ends_with(['/', '\\']) {
            return self.known(self.place.home, "~");
        }
        match (self.place.os, user) {
            (Os::Linux, "root") => return self.root_and("/", "root"),
            (Os::MacOs, "root") => self.root_and("/", "var/root"),
            (Os::Linux, _) => self.root_and("/", "home"),
            (Os::MacOs, _) => self.root_and("/", "Users"),
            (Os::Windows, _) => self.root_and("C:/", "Users"),
        }
        if user != "root" || self.place.os != Os::MacOs {
            self.push(user);
        }
    }

    fn root_and(&mut self, root: &str, below: &str) {
        self.root(root);
        self.push_all(below);
    }

    fn push_all(&mut self, text: &str) {
        let windows = self.windows;
        for name in text.split(|c: char| c == '/' || (windows && c == '\\')) {
            match name {
                "" | "." => {}
                ".." => self.pop(),
                _ => self.push(name),
            }
        }
    }

    fn push(&mut self, name: &str) {
        if !self.out.is_empty() && !self.out.ends_with('/') {
            self.out.push('/');
        }
        self.out.push_str(name);
        if self.is_unknown && self.floor == 0 {
            // What climbs above a piece that is not known ends up nobody knows where.
            self.floor = self.out.len();
        }
        if self.is_rooted {
            self.follow_link(name);
            if self.place.os == Os::Windows {
                self.follow_drive(name);
            }
        }
    }

    fn pop(&mut self) {
        if self.out.len() <= self.floor {
            if !self.is_rooted {
                if !self.out.is_empty() {
                    self.out.push('/');
                }
                self.out.push_str("..");
                self.floor = self.out.len();
            }
            return;
        }
        if self.out == "/dev/fd" {
            // It is a link, so its parent is another.
            self.root_and("/", "proc/self");
            return;
        }
        let at = self.out[self.floor..].rfind('/').map_or(self.floor, |at| self.floor + at);
        self.out.truncate(at);
    }

    /// Replaces a link that every system of its kind has.
    fn follow_link(&mut self, name: &str) {
        let is = |out: &str, link: &str| out.eq_ignore_ascii_case(link);
        match name.len() {
            4 if is(name, "root") && is_process_link(&self.out) => self.root("/"),
            3 if is(name, "cwd") && is_process_link(&self.out) => {
                let is_own =
                    ["/proc/self/", "/proc/thread-self/"].iter().any(|own| starts_with_fold(&self.out, own));
                if is_own && self.in_link {
                    // A working directory that is told to be where it is.
                    self.loose("");
                } else if is_own {
                    self.in_link = true;
                    self.known(self.place.cwd, "");
                    self.in_link = false;
                } else {
                    // The working directory of some other process.
                    self.floor = self.out.len();
                    self.is_rooted = false;
                }
            }
            3 if is(&self.out, "/var/run") => self.root_and("/", "run"),
            4 if is(&self.out, "/var/lock") => self.root_and("/", "run/lock"),
            3 if ["/private/etc", "/private/var", "/private/tmp"].iter().any(|link| is(&self.out, link)) => {
                let name = name.to_owned();
                self.root_and("/", &name);
            }
            4 if is(&self.out, "/System/Volumes/Data") => self.root("/"),
            _ => {}
        }
    }

    /// Replaces a drive as other shells on Windows spell it: `/c`, `/mnt/c`, `/cygdrive/c`.
    fn follow_drive(&mut self, name: &str) {
        let &[letter] = name.as_bytes() else { return };
        let parent = self.out.strip_suffix(name).unwrap_or_default();
        if letter.is_ascii_alphabetic() && ["/", "/mnt/", "/cygdrive/"].contains(&parent) {
            self.start(Base::Drive(letter));
        }
    }

    fn finish(mut self) -> String {
        if self.out.is_empty() {
            self.out.push('.');
        } else if self.is_relative
            && !matches!(split_base(&self.out, self.place.os), (Base::Cwd, rest, _) if rest.len() == self.out.len())
        {
            // A file of the working directory that is called `~`, say.
            self.out.insert_str(0, "./");
        }
        self.out
    }
}

/// Whether a path is `/proc/<process>/<name>`, perhaps with a thread in between.
fn is_process_link(path: &str) -> bool {
    if !starts_with_fold(path, "/proc/") {
        return false;
    }
    let mut names = path["/proc/".len()..].split('/');
    let process = names.next().unwrap_or_default();
    let is_number = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let is_process = is_number(process)
        || process.contains(HOLE)
        || process == "*"
        || ["self", "thread-self"].iter().any(|name| process.eq_ignore_ascii_case(name));
    let rest: Vec<&str> = names.take(4).collect();
    is_process
        && match *rest.as_slice() {
            [_] => true,
            [task, thread, _] => task.eq_ignore_ascii_case("task") && is_number(thread),
            _ => false,
        }
}
