//! Which commands are worth an analysis: those that name a program that can do harm, however its name is written.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::{memchr2, memchr3};
use regex_automata::meta::Regex;

/// Programs that a dangerous command names, in order.
const PROGRAMS: &[&str] = &[
    "apt",
    "at",
    "aws",
    "az",
    "base64",
    "bash",
    "cat",
    "chattr",
    "chmod",
    "chown",
    "chroot",
    "cp",
    "crontab",
    "curl",
    "dash",
    "dd",
    "diskutil",
    "docker",
    "echo",
    "env",
    "eval",
    "exec",
    "export",
    "fdisk",
    "find",
    "fish",
    "ftp",
    "gcloud",
    "gdb",
    "gh",
    "git",
    "gpg",
    "gsutil",
    "halt",
    "helm",
    "history",
    "init",
    "insmod",
    "iptables",
    "kill",
    "killall",
    "ksh",
    "kubectl",
    "ln",
    "mkfs",
    "modprobe",
    "mount",
    "mv",
    "nc",
    "ncat",
    "netcat",
    "nft",
    "node",
    "npm",
    "nsenter",
    "openssl",
    "parted",
    "passwd",
    "perl",
    "php",
    "pip",
    "pip3",
    "pkill",
    "podman",
    "poweroff",
    "powershell",
    "printf",
    "psql",
    "pwsh",
    "python",
    "python2",
    "python3",
    "rclone",
    "reboot",
    "rm",
    "rmdir",
    "rsync",
    "ruby",
    "scp",
    "service",
    "setenforce",
    "sftp",
    "sgdisk",
    "sh",
    "shred",
    "shutdown",
    "socat",
    "source",
    "ssh",
    "strace",
    "sysctl",
    "systemctl",
    "tar",
    "tcpdump",
    "tee",
    "telnet",
    "terraform",
    "truncate",
    "ufw",
    "umount",
    "unlink",
    "unset",
    "unshare",
    "useradd",
    "userdel",
    "usermod",
    "visudo",
    "wget",
    "wipefs",
    "xargs",
    "xxd",
    "zsh",
];

/// Where the programs of each letter begin among them: nearly every word is told from them by its first letter and its length.
const OF_LETTERS: [u8; 27] = {
    let mut begins = [0; 27];
    let mut at = 0;
    while at < PROGRAMS.len() {
        let mut letter = (PROGRAMS[at].as_bytes()[0] - b'a') as usize + 1;
        while letter < begins.len() {
            begins[letter] = at as u8 + 1;
            letter += 1;
        }
        at += 1;
    }
    begins
};

/// How long the programs and wrappers of each letter are, as bits.
const LENGTHS: [u16; 26] = {
    let mut lengths = [0; 26];
    let lists = [PROGRAMS, WRAPPERS];
    let mut list = 0;
    while list < lists.len() {
        let mut at = 0;
        while at < lists[list].len() {
            let name = lists[list][at].as_bytes();
            lengths[(name[0] - b'a') as usize] |= 1 << name.len();
            at += 1;
        }
        list += 1;
    }
    lengths
};

/// Words that a command may begin with before the program that it names.
const WRAPPERS: &[&str] = &["do", "doas", "nice", "nohup", "setsid", "sudo", "then", "timeout"];

/// Bytes of which a command that does harm has one.
const SHELL_SIGNS: &[u8] = b"/~$|>*;&-";

/// The programs as words, and the function that calls itself.
static NAMES: LazyLock<Regex> =
    LazyLock::new(|| known(&format!(r"(?-u:\b)(?:{})(?-u:\b)|:\(\)[ ]?\{{", PROGRAMS.join("|"))));

/// A command whose program is not written out: with wildcards in its name, or put together by the shell.
static UNNAMED: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r#"(?m)(?:^|[;&|(`]|\bsudo[ \t])[ \t]*(?:[\w./~'"\\-]*[\w./][?*\[][^\s=]*[ \t]+\S|["']?\$[\w({'"])"#,
    )
});

/// A pattern that tests compile.
pub(super) fn known(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
}

/// Whether a command names a program that can do harm, also where quotes and backslashes break up its name, or leaves open
/// what it names.
pub(super) fn may_harm(command: &str) -> bool {
    if NAMES.is_match(command) {
        return true;
    }
    // One command alone names its program in its first word.
    let is_one = !command.bytes().any(|byte| matches!(byte, b';' | b'|' | b'&' | b'\n' | b'(' | b'`'));
    let first = command.split_ascii_whitespace().next().unwrap_or_default();
    let names = if is_one { first } else { command };
    let is_broken_up = memchr3(b'\'', b'"', b'\\', names.as_bytes()).is_some();
    let is_open = || names.bytes().any(|byte| matches!(byte, b'?' | b'*' | b'[' | b'$')) || names == "sudo";
    (is_broken_up && NAMES.is_match(&*joined(command))) || (is_open() && UNNAMED.is_match(command))
}

/// Whether a command leaves open, somewhere, which program it runs.
pub(super) fn leaves_program_open(command: &str) -> bool {
    UNNAMED.is_match(command)
}

/// Whether a line, indented as code is, begins with such a program and says what it is to work on.
pub(super) fn begins_with_program(line: &str) -> bool {
    if !line.bytes().next().is_some_and(may_begin) {
        return false;
    }
    let end = memchr2(b' ', b'\t', line.as_bytes()).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    if word.len() > 64 || (rest.is_empty() && !word.starts_with(":(){")) {
        return false;
    }
    // Prose begins with such words as well; then it has no sign of the shell.
    names_program(word, line)
        && (rest.is_empty() || rest.bytes().any(|byte| SHELL_SIGNS.contains(&byte)))
        && !is_entry(rest)
}

/// Whether what stands behind a word gives it a value, as an entry of a table does: `passwd => '$', # the second field`.
fn is_entry(rest: &str) -> bool {
    let rest = rest.trim_start();
    let Some(value) = ["=>", ":=", "="].iter().find_map(|sign| rest.strip_prefix(sign)) else { return false };
    let mut value = value.trim_start().chars();
    let Some(quote @ ('\'' | '"')) = value.next() else { return false };
    let Some((_, behind)) = value.as_str().split_once(quote) else { return false };
    let Some(behind) = behind.strip_prefix([',', ';']) else { return false };
    let behind = behind.trim_start();
    behind.is_empty() || behind.starts_with('#') || behind.starts_with("//")
}

/// Whether a name is that of a program, or of one that goes before another.
fn is_program(name: &str) -> bool {
    let Some(first) = name.as_bytes().first().filter(|first| first.is_ascii_lowercase()) else {
        return false;
    };
    let nth = usize::from(first - b'a');
    if name.len() >= u16::BITS as usize || LENGTHS[nth] >> name.len() & 1 == 0 {
        return false;
    }
    let of_letter = &PROGRAMS[usize::from(OF_LETTERS[nth])..usize::from(OF_LETTERS[nth + 1])];
    of_letter.contains(&name) || WRAPPERS.contains(&name)
}

/// What the bytes of a word are: small letters and digits, of which names of programs are made.
const PLAIN: u8 = 1;
/// What sets a name apart from its directories and its ending, and what the shell takes out of it.
const PARTS: u8 = 2;
const OTHERS: u8 = 4;

static KINDS: [u8; 256] = {
    let mut kinds = [OTHERS; 256];
    let mut byte = 0;
    while byte < kinds.len() {
        match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' => kinds[byte] = PLAIN,
            b'/' | b'.' | b'\'' | b'"' | b'\\' => kinds[byte] = PARTS,
            _ => {}
        }
        byte += 1;
    }
    kinds
};

/// Whether a word that names a program may begin with this.
fn may_begin(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'/' | b'.' | b'\'' | b'"' | b'\\' | b'@' | b'-' | b'+' | b'$' | b':')
}

/// Whether the first word of a line names a program, or leaves open which.
fn names_program(word: &str, line: &str) -> bool {
    // Most words are plain, and told at once, or have a sign that no name of a program has.
    let kinds = word.bytes().fold(0, |kinds, byte| kinds | KINDS[usize::from(byte)]);
    if kinds & !PLAIN == 0 {
        return is_program(word);
    }
    match word.bytes().next() {
        Some(b'a'..=b'z') if kinds & PARTS == 0 => return false,
        Some(first) if may_begin(first) => {}
        _ => return false,
    }
    // A string of a program opens in its first word and closes elsewhere.
    let is_open = |mark: u8| word.bytes().filter(|byte| *byte == mark).count() % 2 == 1;
    if is_open(b'"') || is_open(b'\'') {
        return false;
    }
    let joined = joined(word.trim_start_matches(['@', '-', '+']));
    let name = joined.rsplit('/').next().unwrap_or_default();
    let name = name.split('.').next().unwrap_or_default();
    is_program(name)
        || word.starts_with(":(){")
        // Variables and elements of arrays begin lines of other languages.
        || (word.contains('/') && word.contains(['?', '*', '[']) && UNNAMED.is_match(line))
        || (word.starts_with("$(") && NAMES.is_match(line))
}

/// A command as the shell joins its words: without quotes and backslashes.
fn joined(command: &str) -> Cow<'_, str> {
    match command.contains(['\'', '"', '\\']) {
        true => Cow::Owned(command.replace(['\'', '"', '\\'], "")),
        false => Cow::Borrowed(command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_in_order() {
        assert!(PROGRAMS.is_sorted());
        assert!(PROGRAMS.iter().chain(WRAPPERS).all(|name| is_program(name)));
        assert!(["", "zsh2", "Rm", "é", "su"].iter().all(|name| !is_program(name)));
    }

    #[test]
    fn names_are_seen_through_quotes_and_wildcards() {
        for (command, wanted) in [
            ("rm -rf x", true),
            ("r''m -rf x", true),
            ("r\\m -rf x", true),
            ("'r'm -rf x", true),
            ("/bin/r? -rf x", true),
            ("ls; /b*/r[m] -rf x", true),
            ("$x -rf y", true),
            ("ls && \"$tool\" x", true),
            (":(){ :|:& };:", true),
            ("ls *.txt", false),
            ("make all", false),
            ("what is it? nothing", false),
        ] {
            assert_eq!(may_harm(command), wanted, "{command}");
        }
    }

    #[test]
    fn lines_that_begin_with_a_program_are_told_from_prose() {
        for (line, wanted) in [
            ("rm -rf /srv", true),
            ("@rm -rf /srv", true),
            ("/usr/bin/find . -delete", true),
            ("sudo mkfs.ext4 /dev/sda", true),
            (":(){ :|:& };:", true),
            ("find the file that you need", false),
            ("export const x = 5", false),
            ("rm", false),
            ("let x = a / b", false),
            ("/bin/r? -rf x", true),
            ("$(printf rm) -rf x", true),
            ("$cmds = /reboot|halt/", false),
            ("int* kill = a - b", false),
            ("\"rm\", \"-rf\"", false),
            ("passwd  => '$',   # the second field", false),
            ("kill = \"on\";", false),
            ("rm => 'x' -rf /srv", true),
            ("rm = 'x', -rf /srv", true),
        ] {
            assert_eq!(begins_with_program(line), wanted, "{line}");
        }
    }
}
