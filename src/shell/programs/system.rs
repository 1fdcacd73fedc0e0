//! The machine itself: power, processes, services, kernel, firewall, logs and schedules.

use super::super::argument::Argument;
use super::super::effect::EffectKind;
use super::call::{Call, name_target, path_target};
use super::options::{Grammar, Options};
use super::{Attributes, Input};

/// `shutdown`, `reboot`, `halt`, `poweroff`.
pub(super) fn power(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar {
        short_values: "t",
        long: &["wtmp-only", "help", "version", "message="],
        ..Grammar::default()
    });
    let harmless = options.has(&["w", "wtmp-only", "help", "version", "c", "k", "show"]);
    if !harmless {
        call.tell(EffectKind::StopSystem, None, call.program());
    }
}

/// `init 0`, `telinit 6`.
pub(super) fn init(call: &mut Call<'_, '_>) {
    let level = call.arguments().first().map_or("", |a| a.text.as_str());
    if matches!(level, "0" | "6" | "1" | "s" | "S") {
        call.tell(EffectKind::StopSystem, None, &format!("init {level}"));
    }
}

/// `kill`: -1 is every process, 1 is init.
pub(super) fn kill(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let mut signal_seen = false;
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        at += 1;
        let text = argument.text.as_str();
        match text {
            "-l" | "-L" | "--list" | "--table" => return,
            "-s" | "-n" | "--signal" => {
                at += 1;
                signal_seen = true;
            }
            "--" => signal_seen = true,
            "-1" if signal_seen || at > 1 => call.tell(EffectKind::StopSystem, None, "kill -1"),
            _ if text.starts_with('-') && !signal_seen => signal_seen = true,
            "1" => call.tell(EffectKind::StopSystem, None, "kill 1"),
            _ => {}
        }
    }
}

/// `pkill`, `killall`: a pattern that fits everything.
pub(super) fn pkill(call: &mut Call<'_, '_>) {
    let program = call.program();
    let values = if program == "pkill" { "PgGsuUtJFoR" } else { "uosyZ" };
    let arguments: Vec<Argument> = call.arguments().iter().filter(|a| !is_signal(&a.text)).cloned().collect();
    let options = Options::parse(
        &arguments,
        &Grammar {
            short_values: values,
            long: &["signal=", "user=", "uid=", "euid=", "group="],
            ..Grammar::default()
        },
    );
    if program == "killall5" {
        call.tell(EffectKind::StopSystem, None, "killall5");
        return;
    }
    let everything = options
        .operands
        .iter()
        .any(|o| matches!(o.text.as_str(), "." | ".*" | "" | "^" | "init" | "systemd" | "launchd" | "sshd"));
    let of_root =
        options.values(&["u", "U", "user", "uid", "euid"]).any(|u| matches!(u.text.as_str(), "root" | "0"))
            && options.operands.is_empty();
    for name in options.operands.iter().filter(|name| protects(&name.text)) {
        call.tell(
            EffectKind::DisableProtection,
            Some(name_target(&name.text)),
            &format!("{program} protector"),
        );
    }
    if everything || of_root {
        call.tell(EffectKind::StopSystem, None, &format!("{program} everything"));
    }
}

/// Whether an argument is a signal such as `-9`, `-KILL`, `-SIGTERM`.
fn is_signal(text: &str) -> bool {
    let Some(name) = text.strip_prefix('-') else { return false };
    !name.is_empty()
        && (name.chars().all(|c| c.is_ascii_digit())
            || (name.len() > 2 && name.chars().all(|c| c.is_ascii_uppercase())))
}

/// Parts of names of services that protect or record.
const PROTECTORS: &[&str] = &[
    "firewalld",
    "ufw",
    "iptables",
    "nftables",
    "apparmor",
    "auditd",
    "rsyslog",
    "syslog",
    "journald",
    "fail2ban",
    "clamav",
    "clamd",
    "falcon",
    "crowdstrike",
    "osquery",
    "wazuh",
    "ossec",
    "sysmon",
    "selinux",
    "falco",
    "sentinel",
    "mdatp",
    "defender",
    "tripwire",
    "aide",
    "snort",
    "suricata",
    "windefend",
    "mpssvc",
    "cbdaemon",
    "auoms",
    "omid",
    "esets",
];

fn protects(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PROTECTORS.iter().any(|known| name.contains(known))
}

/// `systemctl`, `loginctl`.
pub(super) fn systemctl(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "tpHMnosP",
        long: &[
            "type=",
            "state=",
            "property=",
            "host=",
            "machine=",
            "root=",
            "signal=",
            "when=",
            "now",
            "user",
            "system",
            "force",
        ],
        ..Grammar::default()
    };
    let options = call.options(&grammar);
    let Some((verb, units)) = options.operands.split_first() else { return };
    match verb.text.as_str() {
        verb @ ("poweroff" | "reboot" | "halt" | "kexec" | "emergency" | "rescue" | "soft-reboot") => {
            call.tell(EffectKind::StopSystem, None, &format!("systemctl {verb}"));
        }
        "suspend" | "hibernate" => {}
        verb @ ("stop" | "disable" | "mask" | "kill") => {
            for unit in units.iter().filter(|unit| protects(&unit.text)) {
                call.tell(
                    EffectKind::DisableProtection,
                    Some(name_target(&unit.text)),
                    &format!("systemctl {verb}"),
                );
            }
        }
        verb @ ("isolate" | "set-default") => {
            for unit in units.iter().filter(|u| {
                matches!(
                    u.text.as_str(),
                    "rescue.target" | "emergency.target" | "poweroff.target" | "reboot.target"
                )
            }) {
                call.tell(
                    EffectKind::StopSystem,
                    Some(name_target(&unit.text)),
                    &format!("systemctl {verb}"),
                );
            }
        }
        verb @ ("enable" | "reenable" | "link") => {
            for unit in units {
                let target =
                    if unit.text.contains('/') { path_target(unit) } else { name_target(&unit.text) };
                call.tell(EffectKind::Persist, Some(target), &format!("systemctl {verb}"));
            }
        }
        _ => {}
    }
}

/// `service name stop`, `rc-service`, `chkconfig name off`, `update-rc.d name disable`, `rc-update del name`.
pub(super) fn service(call: &mut Call<'_, '_>) {
    let words: Vec<&str> = call.arguments().iter().map(|a| a.text.as_str()).collect();
    let stops = words
        .iter()
        .any(|w| matches!(*w, "stop" | "off" | "disable" | "remove" | "del" | "delete" | "onestop"));
    if stops && let Some(name) = words.iter().find(|name| protects(name)) {
        let detail = format!("{} stop", call.program());
        call.tell(EffectKind::DisableProtection, Some(name_target(name)), &detail);
    }
}

/// `launchctl`.
pub(super) fn launchctl(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let verb = arguments.first().map_or("", |a| a.text.as_str());
    let last = arguments.last();
    match verb {
        "load" | "bootstrap" | "enable" | "submit" => {
            if let Some(last) = last.filter(|_| arguments.len() > 1) {
                call.tell(EffectKind::Persist, Some(path_target(last)), &format!("launchctl {verb}"));
            }
        }
        "unload" | "bootout" | "disable" | "remove" => {
            if let Some(last) = last.filter(|last| protects(&last.text)) {
                call.tell(
                    EffectKind::DisableProtection,
                    Some(path_target(last)),
                    &format!("launchctl {verb}"),
                );
            }
        }
        "reboot" => call.tell(EffectKind::StopSystem, None, "launchctl reboot"),
        _ => {}
    }
}

/// `sysctl -w name=value`: the value is part of the detail.
pub(super) fn sysctl(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar {
        short_values: "r",
        long: &["pattern=", "load=?", "system", "write"],
        ..Grammar::default()
    });
    for setting in options.operands.iter().filter(|o| o.text.contains('=')) {
        call.tell(EffectKind::ChangeKernel, Some(name_target(&setting.text)), "sysctl");
    }
}

/// `insmod`, `modprobe`, `rmmod`, `kextload`, `kmutil`.
pub(super) fn module(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar {
        short_values: "CdSp",
        long: &[
            "show",
            "dry-run",
            "remove",
            "list",
            "show-depends",
            "resolve-alias",
            "showconfig",
            "version",
        ],
        ..Grammar::default()
    });
    let shows = options.has(&[
        "n",
        "dry-run",
        "show",
        "D",
        "show-depends",
        "c",
        "showconfig",
        "R",
        "resolve-alias",
        "l",
        "list",
        "V",
        "version",
    ]);
    let program = call.program();
    let named = options.value(&["p"]).cloned();
    let verb = options.operand(0);
    if shows || (program == "kmutil" && !matches!(verb, "load" | "unload")) {
        return;
    }
    if let Some(name) = named.as_ref().or(options.operands.last().copied()) {
        let removes = program == "rmmod" || program == "kextunload" || options.has(&["r", "remove"]);
        let detail = if removes { format!("{program} remove") } else { program.to_owned() };
        call.tell(EffectKind::ChangeKernel, Some(name_target(&name.text)), &detail);
    }
}

fn off(call: &mut Call<'_, '_>, detail: &str) {
    call.tell(EffectKind::DisableProtection, None, detail);
}

/// `iptables`, `ip6tables`, `nft`, `ufw`, `pfctl`, `firewall-cmd`, `setenforce`, `auditctl`, `aa-teardown`, `spctl`, `csrutil`, `tmutil`.
pub(super) fn protection(call: &mut Call<'_, '_>) {
    let program = call.program();
    let arguments = call.arguments();
    let words: Vec<&str> = arguments.iter().map(|a| a.text.as_str()).collect();
    let has = |wanted: &[&str]| words.iter().any(|w| wanted.contains(w));
    let first = words.first().copied().unwrap_or_default();
    let disabled = match program {
        "iptables" | "ip6tables" => {
            has(&["-F", "--flush", "-X", "--delete-chain"]) || (has(&["-P", "--policy"]) && has(&["ACCEPT"]))
        }
        "nft" => words
            .windows(2)
            .any(|w| matches!(w, ["flush", "ruleset" | "table" | "chain"] | ["delete", "table"])),
        "ufw" => has(&["disable", "reset"]),
        "pfctl" => has(&["-d", "-F"]),
        "firewall-cmd" => {
            has(&["--panic-off"]) || words.iter().any(|w| w.starts_with("--set-default-zone=trusted"))
        }
        "setenforce" => matches!(first, "0" | "Permissive" | "permissive"),
        "auditctl" => has(&["-D"]) || words.windows(2).any(|w| matches!(w, ["-e", "0"])),
        "aa-teardown" | "aa-disable" | "aa-complain" => true,
        "spctl" => has(&["--master-disable", "--global-disable"]),
        "csrutil" => has(&["disable"]),
        "tmutil" => matches!(first, "disable" | "delete" | "deletelocalsnapshots"),
        "auditpol" => has(&["/clear", "/remove"]) || words.iter().any(|w| w.contains("/success:disable")),
        _ => false,
    };
    if disabled && !has(&["--dry-run", "-h", "--help"]) {
        let detail = format!("{program} {first}");
        off(call, detail.trim_end());
    }
}

/// `history -c`, `history -d`.
pub(super) fn history(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar { short_values: "darwnps", ..Grammar::default() });
    let options_c = call.options(&Grammar { short_values: "d", ..Grammar::default() });
    let cleared = options_c.has(&["c"]);
    if cleared {
        off(call, "history -c");
    }
    for file in options.values(&["w", "a"]).filter(|_| !cleared) {
        call.write(file, "history");
    }
}

/// `unset HISTFILE`, `export HISTSIZE=0`, `set +o history`, as far as they come as commands.
pub(super) fn shell_history(call: &mut Call<'_, '_>) {
    let words: Vec<&str> = call.arguments().iter().map(|a| a.text.as_str()).collect();
    let gone = match call.program() {
        "unset" => words.contains(&"HISTFILE"),
        "export" | "declare" | "typeset" | "readonly" => words.iter().any(|w| {
            matches!(*w, "HISTFILE=/dev/null" | "HISTFILE=" | "HISTSIZE=0" | "HISTFILESIZE=0" | "SAVEHIST=0")
        }),
        "set" => words.windows(2).any(|w| w == ["+o", "history"]),
        "shopt" => words.contains(&"history") && words.iter().any(|w| w.starts_with('-') && w.contains('u')),
        _ => false,
    };
    if gone {
        off(call, &format!("{} history", call.program()));
    }
}

/// `crontab`.
pub(super) fn crontab(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar { short_values: "uc", ..Grammar::default() });
    if options.has(&["l"]) {
        return;
    }
    if options.has(&["r"]) {
        call.tell(EffectKind::DestroyData, None, "crontab -r");
    } else if options.has(&["e"]) {
        call.tell(EffectKind::Persist, None, "crontab -e");
    } else if let Some(file) = options.operands.first() {
        call.read(file, false, "option");
        call.tell(EffectKind::Persist, Some(path_target(file)), "crontab");
    } else if !matches!(call.invocation.input, Input::None) {
        call.tell(EffectKind::Persist, None, "crontab -");
    }
}

/// `journalctl --vacuum…`, `logrotate -f`, `wevtutil`: records are thrown away.
pub(super) fn journal(call: &mut Call<'_, '_>) {
    let vacuums = call.arguments().iter().any(|a| {
        let text = a.text.as_str();
        matches!(text, "--vacuum-time=0" | "--vacuum-size=0")
            || text.starts_with("--vacuum-time=1s")
            || text.starts_with("--vacuum-size=1K")
    });
    if vacuums {
        off(call, "journalctl --vacuum");
    }
}

/// `yes`, `:`: nothing; `fork` under another name: `stress`, miners.
pub(super) fn miner(call: &mut Call<'_, '_>) {
    call.tell(EffectKind::SuspiciousWrapper, None, call.program());
}

/// `yes > /dev/null`: work without end and without a use.
pub(super) fn busy(call: &mut Call<'_, '_>) {
    call.tell(EffectKind::StopSystem, None, "busy loop");
}

/// A line of `swapoff -a`, `umount -a`: every disk goes.
pub(super) fn unmount(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar {
        short_values: "tO",
        long: &["all", "force", "lazy", "recursive", "types="],
        ..Grammar::default()
    });
    if options.has(&["a", "all"]) {
        call.tell(EffectKind::StopSystem, None, "umount -a");
    }
    for path in options.operands.iter().filter(|o| o.text == "/") {
        call.tell(EffectKind::StopSystem, Some(path_target(path)), "umount");
    }
}

/// `mount`: a device of the host, or the root writable, or bound elsewhere.
pub(super) fn mount(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar {
        short_values: "toLUOT",
        short_attached: "",
        long: &[
            "types=",
            "options=",
            "bind",
            "rbind",
            "move",
            "label=",
            "source=",
            "target=",
            "all",
            "make-private",
        ],
        ..Grammar::default()
    });
    let settings: Vec<&str> = options.values(&["o", "options"]).flat_map(|o| o.text.split(',')).collect();
    let bind = options.has(&["bind", "rbind", "B", "R", "M"])
        || settings.iter().any(|s| matches!(*s, "bind" | "rbind"));
    let Some(source) = options.operands.first() else { return };
    let is_cgroup = options.value(&["t", "types"]).is_some_and(|kind| kind.text.starts_with("cgroup"));
    if is_cgroup {
        // A group's release agent is a program that the host runs.
        call.tell(EffectKind::EscapeSandbox, Some(path_target(source)), "mount cgroup");
    } else if bind && options.operands.len() > 1 {
        call.read(source, true, "mount");
        call.tell(EffectKind::EscapeSandbox, Some(path_target(source)), "mount --bind");
    } else if source.text.starts_with("/dev/") && options.operands.len() > 1 {
        call.tell(EffectKind::EscapeSandbox, Some(path_target(source)), "mount device");
    } else if source.text == "/" && settings.contains(&"remount") {
        let mode = if settings.contains(&"rw") { "mount remount rw" } else { "mount remount" };
        call.tell(EffectKind::ChangeKernel, Some(path_target(source)), mode);
    }
}

/// Accounts, groups, passwords.
pub(super) fn accounts(call: &mut Call<'_, '_>) {
    let program = call.program();
    let arguments = call.arguments();
    let words: Vec<&str> = arguments.iter().map(|a| a.text.as_str()).collect();
    let has = |wanted: &[&str]| words.iter().any(|w| wanted.contains(w));
    if has(&["--help", "--version", "-h"]) && program != "pw" {
        return;
    }
    let names = words.last().copied().unwrap_or_default();
    let privileged = words.iter().any(|w| {
        w.split(',').any(|g| {
            matches!(g, "sudo" | "wheel" | "admin" | "root" | "docker" | "adm" | "shadow" | "lxd" | "disk")
        })
    });
    let detail = match program {
        "passwd" if has(&["-S", "--status", "-a"]) => return,
        "visudo" if has(&["-c", "--check"]) => return,
        "chage" if has(&["-l", "--list"]) => return,
        "useradd" | "adduser" | "usermod" | "gpasswd" | "groupmod" | "groupmems" if privileged => {
            format!("{program} privileged")
        }
        "pw" => {
            let verb = words.first().copied().unwrap_or_default();
            if matches!(verb, "useradd" | "usermod" | "userdel" | "adduser" | "groupmod") {
                if privileged { "usermod privileged".to_owned() } else { verb.to_owned() }
            } else {
                return;
            }
        }
        "dscl" | "sysadminctl" | "dseditgroup" => {
            if !has(&[
                "-create",
                "-append",
                "-passwd",
                "-addUser",
                "-delete",
                "-deleteUser",
                "-resetPasswordFor",
                "-o",
            ]) {
                return;
            }
            if words.iter().any(|w| matches!(*w, "admin" | "-admin")) {
                format!("{program} privileged")
            } else {
                program.to_owned()
            }
        }
        "useradd" if words.windows(2).any(|w| matches!(w, ["-u" | "--uid", "0"])) => {
            "useradd privileged".to_owned()
        }
        _ => program.to_owned(),
    };
    let target = (!names.starts_with('-')).then(|| name_target(names));
    call.effect(EffectKind::ChangeAccount, target, Attributes { detail, ..Attributes::default() });
}

/// `at`, `batch`: the engine runs the script; here that it runs later.
pub(super) fn later(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar { short_values: "fqt", ..Grammar::default() });
    if let Some(file) = options.value(&["f"]) {
        call.read(file, false, "option");
        call.tell(EffectKind::Persist, Some(path_target(file)), "at");
    }
}
