//! Ways out of a container, a sandbox or a guard.

use super::super::effect::EffectKind;
use super::call::{Call, path_target};
use super::options::Grammar;

/// `nsenter`: the namespaces of another process; of process 1, the host's.
pub(super) fn nsenter(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "tSG",
        short_attached: "mupinUCTrw",
        long: &[
            "target=", "all", "mount=?", "uts=?", "ipc=?", "net=?", "pid=?", "cgroup=?", "user=?", "time=?",
            "setuid=", "setgid=", "root=?", "wd=?",
        ],
        stops_at_operand: true,
        ..Grammar::default()
    };
    let options = call.options(&grammar);
    let of_init = options.value(&["t", "target"]).is_some_and(|t| t.text == "1")
        || options.given.iter().any(|g| {
            g.value
                .as_ref()
                .is_some_and(|v| v.text.starts_with("/proc/1/") || v.text.starts_with("=/proc/1/"))
        });
    call.tell(EffectKind::EscapeSandbox, None, if of_init { "nsenter host" } else { "nsenter" });
}

/// `unshare`: new namespaces, with a map to root the usual first step.
pub(super) fn unshare(call: &mut Call<'_, '_>) {
    let root = call
        .arguments()
        .iter()
        .any(|a| matches!(a.text.as_str(), "-r" | "--map-root-user" | "-Ur" | "-rm" | "-urm" | "-UrmC"));
    call.tell(EffectKind::EscapeSandbox, None, if root { "unshare root" } else { "unshare" });
}

/// `chroot`: a shell in another tree; `/host` and `/proc/1/root` are the machine's own.
pub(super) fn chroot(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar {
        long: &["userspec=", "groups=", "skip-chdir"],
        stops_at_operand: true,
        ..Grammar::default()
    });
    if let Some(root) = options.operands.first() {
        call.tell(EffectKind::EscapeSandbox, Some(path_target(root)), "chroot");
    }
}

/// Flags of agents and browsers that switch their own guard off, as (program, flag); an empty program is any.
const GUARD_FLAGS: &[(&str, &str)] = &[
    ("claude", "--dangerously-skip-permissions"),
    ("claude", "--permission-mode=bypassPermissions"),
    ("codex", "--dangerously-bypass-approvals-and-sandbox"),
    ("codex", "--yolo"),
    ("codex", "danger-full-access"),
    ("codex", "--sandbox=danger-full-access"),
    ("gemini", "--yolo"),
    ("gemini", "-y"),
    ("gemini", "--approval-mode=yolo"),
    ("qwen", "--yolo"),
    ("copilot", "--allow-all-tools"),
    ("cursor-agent", "--force"),
    ("amp", "--dangerously-allow-all"),
    ("q", "--trust-all-tools"),
    ("opencode", "--dangerously-skip-permissions"),
    ("aider", "--yes-always"),
    ("chrome", "--no-sandbox"),
    ("google-chrome", "--no-sandbox"),
    ("chromium", "--no-sandbox"),
    ("chromium-browser", "--no-sandbox"),
];

/// Agents and browsers.
pub(super) fn guarded(call: &mut Call<'_, '_>) {
    let program = call.program();
    let arguments = call.arguments();
    for (at, argument) in arguments.iter().enumerate() {
        let listed = GUARD_FLAGS.iter().any(|(name, flag)| *name == program && *flag == argument.text);
        let bypass = argument.text == "--permission-mode"
            && arguments.get(at + 1).is_some_and(|a| a.text == "bypassPermissions");
        if listed || bypass {
            call.tell(EffectKind::EscapeSandbox, None, &format!("guard off {}", argument.text));
        }
    }
}

/// Whether a program is one whose guard can be switched off.
pub(super) fn is_guarded(program: &str) -> bool {
    GUARD_FLAGS.iter().any(|(name, _)| *name == program)
}

/// `capsh`, `setpriv`: capabilities are raised.
pub(super) fn capabilities(call: &mut Call<'_, '_>) {
    let raises = call.arguments().iter().any(|a| {
        let text = a.text.as_str();
        text.contains("--gid=0")
            || text.contains("--uid=0")
            || text.contains("+eip")
            || text.starts_with("--inh=")
            || text.starts_with("--ambient-caps")
    });
    if raises {
        call.tell(EffectKind::EscapeSandbox, None, call.program());
    }
}

/// `dbus-send`, `machinectl shell`, `systemd-run` towards the host.
pub(super) fn machinectl(call: &mut Call<'_, '_>) {
    let words: Vec<&str> = call.arguments().iter().map(|a| a.text.as_str()).collect();
    if words.first() == Some(&"shell") && words.iter().any(|w| w.contains(".host")) {
        call.tell(EffectKind::EscapeSandbox, None, "machinectl shell .host");
    }
}
