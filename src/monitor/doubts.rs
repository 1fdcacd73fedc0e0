//! Commands that a rule is certain about where a tool asks for them, and that are routine as often as not in the output of
//! a process: a question for the judge, no reason to kill at once.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

use crate::decision::Category;
use crate::shell::effect::{Effect, EffectKind};

/// A program that takes orders: what a connection is worth to an attacker.
static SHELL: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?i)(?:^|[^A-Za-z0-9_.-])(?:(?:ba|z|da|k|tc|c|fi|a|mk)?sh|busybox|cmd(?:\.exe)?|powershell(?:\.exe)?|pwsh|python[0-9.]{0,4}|perl|ruby",
        r"|php[0-9.]{0,4}|node|[gmn]?awk|lua[0-9.]{0,4}|telnet|mkfifo|zmodload|su|sudo|login)(?:$|[^A-Za-z0-9_.-])|/dev/(?:tcp|udp)/|pty|\$SHELL|\$0",
    ))
});

/// Rights for some programs only.
static SOME_RIGHTS: LazyLock<Regex> =
    LazyLock::new(|| known(r"NOPASSWD:[ \t]{0,3}/[A-Za-z0-9_./-]{1,120}/[A-Za-z0-9_.-]{1,60}"));

/// Rights for everything.
static ALL_RIGHTS: LazyLock<Regex> =
    LazyLock::new(|| known(r"(?:NOPASSWD|PASSWD|\))[ \t]{0,3}:?[ \t]{0,3}ALL\b"));

/// A program that gets what is left of processes that crash.
static PROGRAM_OF_CORES: LazyLock<Regex> = LazyLock::new(|| known(r"[\x22\x27\s]\\?\|[ \t]{0,4}/"));

/// What `find` narrows a search by.
const FILTERS: &[&str] = &[
    "-name", "-iname", "-type", "-path", "-regex", "-mtime", "-mmin", "-atime", "-ctime", "-newer", "-size",
    "-empty",
];

fn known(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
}

/// Whether what a command does, which a rule of `category` holds for, may well be meant.
pub(super) fn is_doubtful(category: &Category, effect: &Effect, command: &str) -> bool {
    if category.is_within("command.network_backdoor") {
        return !SHELL.is_match(command);
    }
    let target = effect.target.as_ref().map_or("", |target| target.text.as_str());
    match effect.kind {
        // The settings of a service on their way to its machine.
        EffectKind::SendData if matches!(effect.program.as_str(), "scp" | "rsync" | "sftp") => {
            target.rsplit('/').next().is_some_and(|name| name.starts_with(".env"))
        }
        // Old files below a folder of the system.
        EffectKind::DeletePath if effect.program == "find" => {
            let is_below = target.split('/').filter(|part| !part.is_empty()).count() >= 2;
            is_below && effect.argv.iter().any(|word| FILTERS.contains(&word.text.as_str()))
        }
        // A pattern for files; only behind a bar it names a program.
        EffectKind::WritePath if target == "/proc/sys/kernel/core_pattern" => {
            !PROGRAM_OF_CORES.is_match(command)
        }
        // One setting of a service, changed in its place.
        EffectKind::WritePath if target.starts_with("/etc/ssh/sshd_config") => effect.program == "sed",
        EffectKind::DeletePath if target.starts_with("/boot/") => true,
        EffectKind::WritePath if target.starts_with("/etc/sudoers.d/") => {
            SOME_RIGHTS.is_match(command) && !ALL_RIGHTS.is_match(command)
        }
        _ => false,
    }
}
