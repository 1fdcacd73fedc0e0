//! Programs that run the command among their arguments, with the arity of their options.

/// How a wrapper's arguments lead to the command.
#[derive(Clone, Copy)]
pub(super) struct Wrapper {
    /// Its name, and how reports call it.
    pub name: &'static str,
    /// Short options with a value, attached or next.
    pub values: &'static str,
    /// Long options whose value is the next argument when no `=` follows.
    pub long: &'static [&'static str],
    /// Options whose value is shell text.
    pub code: &'static [&'static str],
    /// Operands before the command.
    pub operands: usize,
    /// What else is special.
    pub traits: Traits,
}

/// Special ways of a wrapper.
#[derive(Clone, Copy, Default)]
pub(super) struct Traits {
    /// `NAME=value` may stand before the command.
    pub assigns: bool,
    /// The words are joined and read by a shell again.
    pub joins: bool,
    /// The command runs on another machine.
    pub remote: bool,
    /// Without a command it starts a shell.
    pub shell: bool,
    /// Its long options begin with one dash, so that short ones do not cluster.
    pub single_dash: bool,
    /// The command follows this word, such as `exec` or `--`; what stands before it is its own.
    pub after: &'static [&'static str],
    /// The analysers of programs look at it as well.
    pub is_program: bool,
    /// Options with two values.
    pub pairs: &'static [&'static str],
}

const NONE: Traits = Traits {
    assigns: false,
    joins: false,
    remote: false,
    shell: false,
    single_dash: false,
    after: &[],
    is_program: false,
    pairs: &[],
};
const ASSIGNS: Traits = Traits { assigns: true, ..NONE };
const JOINS: Traits = Traits { joins: true, ..NONE };
const SHELL: Traits = Traits { shell: true, ..NONE };
const SINGLE: Traits = Traits { single_dash: true, ..NONE };

const fn wrapper(name: &'static str, values: &'static str, operands: usize) -> Wrapper {
    Wrapper { name, values, long: &[], code: &[], operands, traits: NONE }
}

const fn long(
    name: &'static str,
    values: &'static str,
    long: &'static [&'static str],
    operands: usize,
) -> Wrapper {
    Wrapper { long, ..wrapper(name, values, operands) }
}

const fn special(
    name: &'static str,
    values: &'static str,
    long: &'static [&'static str],
    code: &'static [&'static str],
    operands: usize,
    traits: Traits,
) -> Wrapper {
    Wrapper { name, values, long, code, operands, traits }
}

const fn after(name: &'static str, after: &'static [&'static str]) -> Wrapper {
    Wrapper { traits: Traits { after, is_program: true, ..NONE }, ..wrapper(name, "", 0) }
}

/// Sorted by name.
pub(super) const WRAPPERS: &[Wrapper] = &[
    special("arch", "de", &[], &[], 0, SINGLE),
    special("at", "fqt", &["--file"], &[], 9, Traits { shell: true, is_program: true, ..NONE }),
    after("aws-vault", &["--"]),
    special("batch", "fqt", &[], &[], 9, SHELL),
    special("bundle", "", &[], &[], 0, Traits { after: &["exec"], is_program: true, ..NONE }),
    special("busybox", "", &[], &[], 0, NONE),
    special(
        "bwrap",
        "",
        &[
            "--proc",
            "--dev",
            "--tmpfs",
            "--mqueue",
            "--dir",
            "--remount-ro",
            "--overlay-src",
            "--chdir",
            "--unsetenv",
            "--hostname",
            "--uid",
            "--gid",
            "--exec-label",
            "--file-label",
            "--seccomp",
            "--add-seccomp-fd",
            "--block-fd",
            "--userns-block-fd",
            "--info-fd",
            "--sync-fd",
            "--lock-file",
            "--perms",
            "--size",
            "--argv0",
            "--cap-add",
            "--cap-drop",
            "--userns",
            "--userns2",
            "--pidns",
            "--args",
            "--json-status-fd",
        ],
        &[],
        0,
        Traits {
            pairs: &[
                "--bind",
                "--ro-bind",
                "--dev-bind",
                "--bind-try",
                "--ro-bind-try",
                "--dev-bind-try",
                "--symlink",
                "--setenv",
                "--chmod",
                "--file",
                "--bind-data",
                "--ro-bind-data",
            ],
            ..NONE
        },
    ),
    long("caffeinate", "tw", &[], 0),
    wrapper("catchsegv", "", 0),
    special("chpst", "uUbemdoplfc/n", &[], &[], 0, NONE),
    wrapper("chronic", "", 0),
    special("chroot", "", &["--groups", "--userspec"], &[], 1, Traits { is_program: true, ..SHELL }),
    long("chrt", "TPD", &["--sched-runtime", "--sched-period", "--sched-deadline"], 1),
    after("conda", &["run"]),
    long("cpulimit", "lpe", &["--limit", "--pid", "--exe"], 0),
    special("dbus-launch", "", &[], &[], 0, NONE),
    long("dbus-run-session", "", &["--config-file", "--dbus-daemon"], 0),
    special("direnv", "", &[], &[], 0, Traits { after: &["exec"], is_program: true, ..NONE }),
    special("doas", "uC", &[], &[], 0, Traits { assigns: true, shell: true, ..NONE }),
    special(
        "doppler",
        "",
        &["--command"],
        &["--command"],
        0,
        Traits { after: &["--"], is_program: true, ..NONE },
    ),
    after("dotenv", &["--", "run"]),
    wrapper("eatmydata", "", 0),
    special("env", "uC", &["--unset", "--chdir"], &["-S", "--split-string"], 0, ASSIGNS),
    wrapper("envdir", "", 1),
    long("fakechroot", "led", &["--lib", "--elfloader", "--config-dir"], 0),
    long("fakeroot", "lsibf", &["--lib", "--faked", "-fd-base"], 0),
    special("faketime", "fp", &[], &[], 1, NONE),
    special("firejail", "", &[], &[], 0, NONE),
    special("flatpak-spawn", "", &[], &[], 0, NONE),
    special("flock", "wE", &["--timeout", "--wait", "--conflict-exit-code"], &["-c", "--command"], 1, NONE),
    wrapper("gamemoderun", "", 0),
    special(
        "gdb",
        "xdps",
        &["-x", "-ex", "-iex", "--command", "-cd"],
        &[],
        0,
        Traits { after: &["--args", "-args"], is_program: true, ..NONE },
    ),
    special("gosu", "", &[], &[], 1, NONE),
    special("gtimeout", "ks", &["--kill-after", "--signal"], &[], 1, NONE),
    special(
        "hyperfine",
        "wmMrpcsPDLSNnu",
        &[
            "--warmup",
            "--min-runs",
            "--max-runs",
            "--runs",
            "--prepare",
            "--setup",
            "--cleanup",
            "--parameter-list",
            "--shell",
            "--export-json",
            "--export-csv",
            "--export-markdown",
            "--style",
            "--command-name",
            "--time-unit",
        ],
        &["--prepare", "--setup", "--cleanup"],
        0,
        JOINS,
    ),
    wrapper("ifne", "", 0),
    special(
        "infisical",
        "",
        &["--command"],
        &["--command"],
        0,
        Traits { after: &["--"], is_program: true, ..NONE },
    ),
    long("ionice", "cnpPu", &["--class", "--classdata"], 0),
    special("lima", "", &[], &[], 0, Traits { remote: true, ..NONE }),
    wrapper("linux32", "", 0),
    wrapper("linux64", "", 0),
    long("ltrace", "aAeDFlnopsuwxX", &["--output"], 0),
    special("multipass", "", &[], &[], 0, Traits { remote: true, after: &["--"], is_program: true, ..NONE }),
    long("nice", "n", &["--adjustment"], 0),
    special(
        "nix",
        "",
        &[],
        &["--command", "-c"],
        0,
        Traits { after: &["--command", "-c"], is_program: true, ..NONE },
    ),
    special("nix-shell", "pIA", &["--packages", "--attr"], &["--run", "--command"], 99, NONE),
    wrapper("nocorrect", "", 0),
    wrapper("noglob", "", 0),
    wrapper("nohup", "", 0),
    long("nq", "", &[], 0),
    special(
        "nsenter",
        "tSG",
        &["--target", "--setuid", "--setgid"],
        &[],
        0,
        Traits { shell: true, is_program: true, ..NONE },
    ),
    long(
        "numactl",
        "iNmCpl",
        &["--interleave", "--cpunodebind", "--membind", "--physcpubind", "--preferred"],
        0,
    ),
    after("op", &["--"]),
    special("parallel", "", &[], &[], 0, JOINS),
    special(
        "perf",
        "eopFgcCt",
        &["--event", "--output", "--pid"],
        &[],
        1,
        Traits { is_program: true, ..NONE },
    ),
    after("pipenv", &["run"]),
    special("pkexec", "", &["--user"], &[], 0, SHELL),
    after("poetry", &["run"]),
    wrapper("prlimit", "p", 0),
    long("proot", "rbqkwiS0", &["--rootfs", "--bind", "--qemu", "--cwd"], 0),
    long("proxychains", "f", &[], 0),
    long("proxychains4", "f", &[], 0),
    special("pseudo", "Pmfl", &[], &[], 0, NONE),
    wrapper("retry", "tdn", 0),
    wrapper("rlwrap", "abcDefFgHlmMoOpPqsStwz", 0),
    long("run0", "ugDp", &["--user", "--group", "--unit", "--property", "--chdir", "--setenv", "--nice"], 0),
    long("runcon", "turl", &["--type", "--user", "--role", "--range"], 1),
    special(
        "runuser",
        "ugGsw",
        &["--user", "--group", "--supp-group", "--shell", "--whitelist-environment"],
        &["-c", "--command", "--session-command"],
        99,
        SHELL,
    ),
    long("schroot", "cunspd", &["--chroot", "--user", "--directory", "--session-name"], 0),
    special("screen", "ScehTtpX", &[], &[], 0, SHELL),
    special(
        "script",
        "cEIOBTom",
        &["--log-out", "--log-in", "--log-io", "--log-timing", "--echo", "--output-limit"],
        &["-c", "--command"],
        99,
        SHELL,
    ),
    special("setarch", "", &[], &[], 0, NONE),
    long(
        "setpriv",
        "",
        &[
            "--reuid",
            "--regid",
            "--ruid",
            "--euid",
            "--rgid",
            "--egid",
            "--groups",
            "--inh-caps",
            "--ambient-caps",
            "--bounding-set",
            "--securebits",
            "--pdeathsig",
            "--selinux-label",
            "--apparmor-profile",
        ],
        0,
    ),
    wrapper("setsid", "", 0),
    wrapper("setuidgid", "", 1),
    special("sg", "", &[], &["-c"], 1, JOINS),
    wrapper("softlimit", "acdfmnopstrl", 0),
    special(
        "ssh",
        "BbcDEeFIiJLlmOopPQRSWw",
        &[],
        &[],
        1,
        Traits { joins: true, remote: true, shell: true, is_program: true, ..NONE },
    ),
    special("sshpass", "fdpP", &[], &[], 0, Traits { is_program: true, ..NONE }),
    special(
        "start-stop-daemon",
        "pxnuscrdgNPIkTm",
        &[],
        &[],
        0,
        Traits { after: &["--exec", "-x", "--startas", "-a"], is_program: true, ..NONE },
    ),
    long("stdbuf", "ioe", &["--input", "--output", "--error"], 0),
    long(
        "strace",
        "aebEIoOpPsSuUX",
        &["--output", "--attach", "--trace", "--user", "--env", "--string-limit"],
        0,
    ),
    special(
        "su",
        "gGsw",
        &["--group", "--supp-group", "--shell", "--whitelist-environment"],
        &["-c", "--command", "--session-command"],
        99,
        SHELL,
    ),
    special(
        "sudo",
        "ugUpCcrhtTDR",
        &[
            "--user",
            "--group",
            "--other-user",
            "--prompt",
            "--close-from",
            "--host",
            "--role",
            "--type",
            "--command-timeout",
            "--chdir",
            "--chroot",
        ],
        &[],
        0,
        Traits { assigns: true, shell: true, is_program: true, ..NONE },
    ),
    special("systemd-inhibit", "", &["--what", "--who", "--why", "--mode"], &[], 0, NONE),
    special(
        "systemd-run",
        "EHMpuGd",
        &[
            "--unit",
            "--property",
            "--description",
            "--slice",
            "--uid",
            "--gid",
            "--nice",
            "--working-directory",
            "--setenv",
            "--on-active",
            "--on-boot",
            "--on-startup",
            "--on-unit-active",
            "--on-unit-inactive",
            "--on-calendar",
            "--timer-property",
            "--path-property",
            "--socket-property",
            "--host",
            "--machine",
            "--service-type",
        ],
        &[],
        0,
        Traits { is_program: true, ..NONE },
    ),
    long("taskset", "p", &["--pid"], 1),
    special("teleport", "", &[], &[], 0, Traits { after: &["--"], is_program: true, ..NONE }),
    long("time", "fo", &["--format", "--output"], 0),
    long("timeout", "ks", &["--kill-after", "--signal"], 1),
    special(
        "tmux",
        "LSfc",
        &[],
        &[],
        0,
        Traits {
            after: &[
                "new-session",
                "new",
                "new-window",
                "neww",
                "split-window",
                "splitw",
                "run-shell",
                "run",
                "respawn-pane",
                "respawn-window",
                "display-popup",
                "popup",
            ],
            joins: true,
            is_program: true,
            ..NONE
        },
    ),
    wrapper("torify", "", 0),
    wrapper("torsocks", "pauq", 0),
    wrapper("toybox", "", 0),
    long("trickle", "udtlwn", &[], 0),
    wrapper("tsocks", "", 0),
    special("tsp", "LNDEBSKTlCgrtcpwkui", &[], &[], 0, NONE),
    wrapper("unbuffer", "", 0),
    special(
        "unshare",
        "RSGwm",
        &[
            "--root",
            "--setuid",
            "--setgid",
            "--wd",
            "--map-user",
            "--map-group",
            "--map-users",
            "--map-groups",
            "--propagation",
            "--setgroups",
        ],
        &[],
        0,
        Traits { shell: true, is_program: true, ..NONE },
    ),
    after("uv", &["run"]),
    special("valgrind", "", &[], &[], 0, NONE),
    special("watch", "nq", &["--interval", "--equexit", "--shotsdir"], &[], 0, JOINS),
    special("wsl", "due", &["--distribution", "--user", "--cd", "--exec"], &[], 0, JOINS),
    long(
        "xvfb-run",
        "enfpswl",
        &["--server-num", "--error-file", "--auth-file", "--xauth-protocol", "--server-args", "--wait"],
        0,
    ),
];

/// The wrapper of that name.
pub(super) fn find(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.binary_search_by(|wrapper| wrapper.name.cmp(name)).ok().map(|at| &WRAPPERS[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        for pair in WRAPPERS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} {}", pair[0].name, pair[1].name);
        }
    }
}
