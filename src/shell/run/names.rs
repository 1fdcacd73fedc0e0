//! Names of programs: base names, look-alike characters, globs.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use super::super::argument::{Argument, HOLE};
use super::super::expand::pattern;

/// Programs that a glob in command position may stand for, the ones that matter most first.
const KNOWN: &[&str] = &[
    "rm",
    "dd",
    "sh",
    "bash",
    "mkfs",
    "mkfs.ext4",
    "mkfs.ext3",
    "mkfs.ext2",
    "mkfs.xfs",
    "mkfs.btrfs",
    "mkfs.vfat",
    "shred",
    "wipefs",
    "chmod",
    "chown",
    "chgrp",
    "find",
    "curl",
    "wget",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "telnet",
    "git",
    "docker",
    "podman",
    "kubectl",
    "sudo",
    "su",
    "doas",
    "env",
    "python",
    "python3",
    "perl",
    "ruby",
    "node",
    "php",
    "lua",
    "awk",
    "gawk",
    "mawk",
    "sed",
    "zsh",
    "dash",
    "ksh",
    "fish",
    "busybox",
    "toybox",
    "xargs",
    "fdisk",
    "sfdisk",
    "gdisk",
    "sgdisk",
    "parted",
    "mkswap",
    "blkdiscard",
    "hdparm",
    "nvme",
    "cat",
    "tac",
    "head",
    "tail",
    "less",
    "more",
    "cp",
    "mv",
    "ln",
    "tee",
    "truncate",
    "install",
    "rsync",
    "scp",
    "ssh",
    "sftp",
    "ftp",
    "tftp",
    "base64",
    "base32",
    "xxd",
    "openssl",
    "eval",
    "exec",
    "source",
    "kill",
    "killall",
    "pkill",
    "shutdown",
    "reboot",
    "halt",
    "poweroff",
    "init",
    "systemctl",
    "service",
    "crontab",
    "at",
    "useradd",
    "usermod",
    "userdel",
    "passwd",
    "chpasswd",
    "visudo",
    "iptables",
    "nft",
    "ufw",
    "setenforce",
    "insmod",
    "modprobe",
    "rmmod",
    "mount",
    "umount",
    "chroot",
    "nsenter",
    "unshare",
    "chattr",
    "setfacl",
    "mkfifo",
    "mknod",
    "tar",
    "unzip",
    "gunzip",
    "gzip",
    "unlink",
    "rmdir",
    "srm",
    "echo",
    "printf",
    "nohup",
    "timeout",
    "nice",
    "setsid",
    "watch",
    "terraform",
    "aws",
    "gcloud",
    "az",
    "gsutil",
    "helm",
    "psql",
    "mysql",
    "mongo",
    "mongosh",
    "redis-cli",
    "sqlite3",
    "npm",
    "npx",
    "pip",
    "grep",
    "ls",
    "id",
];

/// Names that are looked up for every command.
pub(super) struct Names(HashSet<&'static str, BuildHasherDefault<Fnv>>);

impl Names {
    /// A set of these names.
    pub fn new(names: &[&'static str]) -> Self {
        Self(names.iter().copied().collect())
    }

    /// Whether a name is among them.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// FNV-1a: quick for a few letters, and nobody outside chooses what the sets hold.
#[derive(Clone, Copy)]
pub(super) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

static KNOWN_NAMES: LazyLock<Names> = LazyLock::new(|| Names::new(KNOWN));

/// Programs that one glob is taken for.
const CANDIDATES_MAX: usize = 4;

/// Last component of a path.
pub(super) fn base_name(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    let after_slash = path.rsplit('/').next().unwrap_or(path);
    after_slash.rsplit('\\').next().unwrap_or(after_slash)
}

/// Whether a text can be the name of a variable.
pub(in crate::shell) fn is_variable(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Folders in which settings and data lie, and no programs but in folders of their own.
const DATA: &[&str] = &["/etc/", "/var/lib/", "/var/log/", "/var/cache/", "/var/backups/"];

/// Whether a path names settings or data, though it ends like a program: `/etc/passwd`, `/etc/crontab`.
fn is_data(path: &str) -> bool {
    DATA.iter().any(|folder| path.starts_with(folder))
        && !path.contains(HOLE)
        && !path.split('/').any(|part| matches!(part, ".." | "bin" | "sbin" | "libexec" | "alternatives"))
}

/// Name of the program as programs are looked up: its base name in lower case, without `.exe`. Empty when nothing is
/// known of it.
pub(super) fn program(name: &Argument) -> String {
    if is_data(&name.text) {
        return name.text.to_ascii_lowercase();
    }
    let mut program = base_name(&name.text).to_ascii_lowercase();
    if program.contains(HOLE) {
        // An unset variable breaks a name up: `r${u}m`.
        let without: String = program.chars().filter(|&c| c != HOLE).collect();
        let inside = !program.starts_with(HOLE) && !program.ends_with(HOLE);
        return if inside && KNOWN_NAMES.contains(&without) { without } else { String::new() };
    }
    for extension in [".exe", ".cmd", ".bat"] {
        if program.len() > extension.len() && program.ends_with(extension) {
            program.truncate(program.len() - extension.len());
        }
    }
    program
}

/// Known programs that a name with glob characters may stand for, at most [`CANDIDATES_MAX`], and the steps that took.
pub(super) fn from_glob(name: &Argument) -> (Vec<&'static str>, usize) {
    let pattern = base_name(&name.text);
    // A pattern that says nothing stands for anything.
    if pattern.len() > 64 || !pattern.bytes().any(|b| b.is_ascii_alphanumeric()) {
        return (Vec::new(), 1);
    }
    pattern::matching(pattern, KNOWN, CANDIDATES_MAX)
}

/// Whether a program is one of those that can do harm or run others.
pub(super) fn is_known(program: &str) -> bool {
    KNOWN_NAMES.contains(program)
}

/// Characters that look like ASCII become it, invisible ones go, and blanks of other scripts separate words, if the
/// command then begins with a known program. No shell would run the command as it stands; whoever retypes it would.
pub(super) fn fold_command(argv: &mut Vec<Argument>) {
    let Some(name) = argv.first() else { return };
    let Some(first) = fold(&name.text) else { return };
    let mut words = first.split_whitespace();
    let Some(program) = words.next() else { return };
    if !is_known(&base_name(program).to_ascii_lowercase()) {
        return;
    }
    let mut folded = Vec::with_capacity(argv.len());
    for argument in argv.drain(..) {
        match fold(&argument.text) {
            None => folded.push(argument),
            Some(text) => {
                // Only blanks that the shell would not see split; those it sees stood in quotes.
                let is_blank_new = argument.text.contains(is_foreign_blank);
                if is_blank_new {
                    folded.extend(text.split_whitespace().map(|word| argument.with_text(word.to_owned())));
                } else {
                    folded.push(Argument { text, ..argument });
                }
            }
        }
    }
    *argv = folded;
}

/// The name without characters that show nothing.
pub(super) fn visible(name: &str) -> std::borrow::Cow<'_, str> {
    if name.is_ascii() {
        return name.into();
    }
    name.chars().filter(|&c| !is_invisible(c)).collect::<String>().into()
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}')
}

fn is_foreign_blank(c: char) -> bool {
    !c.is_ascii() && c.is_whitespace() || matches!(c, '\u{2800}' | '\u{3164}' | '\u{FFA0}')
}

/// The text in ASCII as far as its characters look like it; `None` if it is ASCII.
fn fold(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii() => folded.push(c),
            c if is_foreign_blank(c) => folded.push(' '),
            c if is_invisible(c) => {}
            '\u{FF01}'..='\u{FF5E}' => folded.extend(char::from_u32(u32::from(c) - 0xFEE0)),
            '\u{1D400}'..='\u{1D6A3}' => folded.push(letter(u32::from(c) - 0x1D400)),
            other => folded.push(look_alike(other)),
        }
    }
    Some(folded)
}

/// Mathematical letters come in runs of upper and lower case.
fn letter(offset: u32) -> char {
    let at = u8::try_from(offset % 52).unwrap_or(0);
    char::from(if at < 26 { b'A' + at } else { b'a' + at - 26 })
}

/// Letters of other scripts and signs that look like ASCII ones.
fn look_alike(c: char) -> char {
    match c {
        'а' | 'ɑ' | 'α' => 'a',
        'Ь' | 'Ƅ' => 'b',
        'с' | 'ϲ' | 'ⅽ' => 'c',
        'ԁ' | 'ⅾ' | 'ɗ' => 'd',
        'е' | 'ҽ' | '℮' => 'e',
        'ƒ' | 'ſ' => 'f',
        'ɡ' | 'ց' => 'g',
        'һ' | 'հ' => 'h',
        'і' | 'ι' | 'ı' | 'ⅰ' => 'i',
        'ј' | 'ϳ' => 'j',
        'κ' | 'к' => 'k',
        'ӏ' | 'ⅼ' | 'ǀ' | 'Ɩ' => 'l',
        'м' | 'ⅿ' => 'm',
        'ո' | 'п' => 'n',
        'о' | 'ο' | 'օ' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' | 'ⲅ' => 'r',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'υ' | 'ս' | 'ц' => 'u',
        'ν' | 'ѵ' | 'ⅴ' => 'v',
        'ԝ' | 'ѡ' => 'w',
        'х' | 'χ' | 'ⅹ' => 'x',
        'у' | 'ү' | 'γ' => 'y',
        'ᴢ' => 'z',
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' | '﹣' => '-',
        '∕' | '⁄' | '⧸' => '/',
        '～' | '∼' | '˜' => '~',
        '∗' | '＊' | '⁎' => '*',
        '․' | '。' => '.',
        '｜' | 'ǁ' => '|',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(text: &str, has_glob: bool) -> Argument {
        Argument { text: text.to_owned(), has_glob, ..Argument::default() }
    }

    #[test]
    fn programs_are_found_behind_paths_case_and_globs() {
        for (name, wanted) in [
            ("/usr/../bin/./rm", "rm"),
            ("RM", "rm"),
            ("C:\\Windows\\cmd.exe", "cmd"),
            ("r\0m", "rm"),
            ("\0", ""),
            ("\0gcc", ""),
            ("/etc/passwd", "/etc/passwd"),
            ("/var/lib/sss/mc/passwd", "/var/lib/sss/mc/passwd"),
            ("/etc/../bin/rm", "rm"),
            ("/etc/alternatives/awk", "awk"),
            ("/var/lib/app/bin/rm", "rm"),
        ] {
            assert_eq!(program(&argument(name, false)), wanted, "{name}");
        }
        for (name, wanted) in [("/bin/r?", Some("rm")), ("/???/r[m]", Some("rm")), ("/*/*", None)] {
            assert_eq!(from_glob(&argument(name, true)).0.first().copied(), wanted, "{name}");
        }
    }

    #[test]
    fn look_alikes_fold_only_before_known_programs() {
        let mut argv = vec![argument("ｒｍ", false), argument("-rf", false)];
        fold_command(&mut argv);
        assert_eq!(argv[0].text, "rm");
        let mut argv = vec![argument("rm\u{a0}-rf\u{a0}/", false)];
        fold_command(&mut argv);
        assert_eq!(argv.iter().map(|a| a.text.as_str()).collect::<Vec<_>>(), ["rm", "-rf", "/"]);
        let mut argv = vec![argument("привет", false)];
        fold_command(&mut argv);
        assert_eq!(argv[0].text, "привет");
    }
}
