//! Copies to and commands on other hosts: ssh, scp, sftp, rsync, ftp, rclone.

use super::super::argument::Argument;
use super::super::effect::{EffectKind, TargetKind};
use super::call::{Call, is_shell, network_target, path_target, remote_target, word};
use super::options::{Grammar, part};
use super::{Attributes, Input};

/// Short options of ssh with values.
const SSH_VALUES: &str = "BbcDEeFIiJLlmOopQRSWw";

/// Whether an operand is a path on another host: a colon before any slash.
pub(super) fn is_remote(text: &str) -> bool {
    if text.contains("://") {
        return true;
    }
    let Some((host, _)) = text.split_once(':') else { return false };
    // One letter is a drive.
    host.len() > 1 && !host.contains('/')
}

/// Options of ssh, scp and sftp that run a command on this machine.
fn configured_commands(call: &mut Call<'_, '_>, options: &super::options::Options<'_>) {
    const RUN: [&str; 4] = ["proxycommand", "localcommand", "knownhostscommand", "proxyusefdpass"];
    for option in options.values(&["o"]) {
        let Some((key, value)) = option.text.split_once(['=', ' ']) else { continue };
        if RUN.contains(&key.trim().to_ascii_lowercase().as_str()) {
            call.shell(&part(option, value.trim()), "ssh -o");
        }
    }
}

/// Ports behind which a machine is controlled: remote shells and desktops, the sockets of container engines, debuggers.
const CONTROL_PORTS: &[&str] = &[
    "22", "23", "135", "139", "445", "512", "513", "514", "2222", "2375", "2376", "3389", "5900", "5901",
    "5985", "5986", "6443", "10250",
];

/// What `-R [address:]port:host:port` offers to the other host.
fn offered(forward: &str) -> &'static str {
    let parts: Vec<&str> = forward.rsplit(':').collect();
    match parts.as_slice() {
        // A port alone makes this machine a proxy into its own network.
        [_] | [_, _] if !forward.contains('/') => "everything",
        [port, ..] if CONTROL_PORTS.contains(port) => "shell",
        _ => "service",
    }
}

/// Programs that make a local port public: `ngrok tcp 22`, `bore local 22`, `chisel client host R:…`.
pub(super) fn tunnel(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let words: Vec<&str> =
        arguments.iter().map(|a| a.text.as_str()).filter(|text| !text.starts_with('-')).collect();
    let local = |text: &str| {
        let port = text.rsplit([':', '/']).next().unwrap_or(text);
        if CONTROL_PORTS.contains(&port) { "shell" } else { "service" }
    };
    let detail = match (call.program(), words.as_slice()) {
        ("ngrok", ["tcp" | "tls" | "http" | "start", port, ..]) => local(port),
        ("bore", ["local", port, ..]) => local(port),
        ("cloudflared", ["tunnel" | "access", ..]) | ("lt" | "localtunnel", _) => arguments
            .iter()
            .map(|a| a.text.rsplit_once('=').map_or(a.text.as_str(), |(_, value)| value))
            .find(|text| text.contains("://") || text.parse::<u16>().is_ok())
            .map_or("service", local),
        ("chisel", ["client", _, remotes @ ..]) => match remotes.iter().find(|r| r.starts_with("R:")) {
            Some(remote) if remote.ends_with("socks") => "everything",
            Some(remote) => local(remote),
            None => return,
        },
        ("tailscale", ["funnel", rest @ ..]) if !rest.contains(&"status") => {
            rest.first().map_or("service", |port| local(port))
        }
        ("frpc", _) => "service",
        _ => return,
    };
    call.tell(EffectKind::OpenTunnel, None, detail);
}

/// `ssh`: what runs on the other host is that host's; what is forwarded here is told.
pub(super) fn ssh(call: &mut Call<'_, '_>) {
    // `autossh -M port` watches the connection; of ssh itself it is a switch.
    let short_values = if call.program() == "autossh" { "BbcDEeFIiJLlMmOopQRSWw" } else { SSH_VALUES };
    let grammar = Grammar { short_values, stops_at_operand: true, ..Grammar::default() };
    let options = call.options(&grammar);
    configured_commands(call, &options);
    let Some(host) = options.operands.first() else { return };
    for forward in options.values(&["R"]) {
        call.tell(EffectKind::OpenTunnel, Some(network_target(host)), offered(&forward.text));
    }
    // Standard input goes to the command on the other side.
    if options.rest.len() > 1 && !matches!(call.invocation.input, Input::None) {
        call.send_input("ssh");
    }
}

/// `scp`.
pub(super) fn scp(call: &mut Call<'_, '_>) {
    let grammar = Grammar { short_values: "cDFiJloPSX", ..Grammar::default() };
    let options = call.options(&grammar);
    configured_commands(call, &options);
    if let Some(program) = options.value(&["S"]) {
        call.run(std::slice::from_ref(program), "scp -S");
    }
    copy(call, &options.operands, "scp", options.has(&["r"]));
}

/// Sources and one destination, each here or on another host.
fn copy(call: &mut Call<'_, '_>, operands: &[&Argument], detail: &str, recursive: bool) {
    let Some((destination, sources)) = operands.split_last() else { return };
    let away = is_remote(&destination.text);
    for source in sources {
        if is_remote(&source.text) {
            call.tell(EffectKind::Fetch, Some(network_target(source)), detail);
        } else {
            call.read(source, recursive, detail);
            if away {
                let attributes = Attributes { recursive, forced: false, detail: detail.to_owned() };
                call.effect(EffectKind::SendData, Some(path_target(source)), attributes);
            }
        }
    }
    if away {
        call.tell(EffectKind::WritePath, Some(remote_target(destination)), detail);
    } else if !sources.is_empty() {
        call.write(destination, "download");
    }
}

/// `sftp`: batch commands come from a file or the standard input.
pub(super) fn sftp(call: &mut Call<'_, '_>) {
    let grammar = Grammar { short_values: "BbcDFiJloPRSsX", ..Grammar::default() };
    let options = call.options(&grammar);
    configured_commands(call, &options);
    if let Some(program) = options.value(&["S"]) {
        call.shell(program, "scp -S");
    }
    match options.operands.as_slice() {
        [source, target] if is_remote(&source.text) => {
            call.tell(EffectKind::Fetch, Some(network_target(source)), "sftp");
            call.write(target, "download");
        }
        _ => {}
    }
    transfer_script(call, "sftp");
}

/// `ftp`, `lftp`, `tftp`, `smbclient`: `put` sends and `get` fetches.
pub(super) fn ftp(call: &mut Call<'_, '_>) {
    let detail = call.program();
    // `-N` of smbclient asks for no password and takes no value.
    let short_values = if detail == "smbclient" { "ceufpUWIOT" } else { "ceufpUWNIOT" };
    let options = call.options(&Grammar { short_values, ..Grammar::default() });
    for script in options.values(&["c", "e"]).cloned().collect::<Vec<_>>() {
        commands(call, &script, detail);
    }
    // `tftp host -c put file`: the words behind `-c` are one command.
    if let Some(at) = call.arguments().iter().position(|a| a.text == "-c").filter(|_| detail == "tftp") {
        let words: Vec<&str> = call.arguments()[at + 1..].iter().map(|word| word.text.as_str()).collect();
        commands(call, &part(&call.arguments()[at], &words.join(" ")), detail);
    }
    transfer_script(call, detail);
}

fn transfer_script(call: &mut Call<'_, '_>, detail: &str) {
    if let Input::Text(text) = call.invocation.input {
        commands(call, text, detail);
    }
}

/// Lines of `put local`, `mput …`, `get remote local`, `!command`.
fn commands(call: &mut Call<'_, '_>, script: &Argument, detail: &str) {
    for line in script.text.split(['\n', ';']) {
        let mut words = line.split_whitespace().filter(|word| !word.starts_with('-'));
        match words.next() {
            Some("put" | "mput" | "send" | "append" | "mirror" | "reput") => {
                if let Some(file) = words.next() {
                    call.send_file(&part(script, file), detail);
                }
            }
            Some("get" | "mget" | "recv" | "reget") => {
                let remote = words.next().unwrap_or_default();
                let local = words.next().unwrap_or_else(|| super::call::base_name(remote));
                call.write(&part(script, local), "download");
            }
            Some(first) if first.starts_with('!') => {
                let command = line.trim_start().trim_start_matches('!');
                call.shell(&part(script, command), "ftp !");
            }
            _ => {}
        }
    }
}

const RSYNC: Grammar = Grammar {
    short_values: "BefMT@",
    short_attached: "",
    long: &[
        "rsh=",
        "rsync-path=",
        "exclude=",
        "include=",
        "filter=",
        "exclude-from=",
        "include-from=",
        "files-from=",
        "backup-dir=",
        "suffix=",
        "chmod=",
        "chown=",
        "usermap=",
        "groupmap=",
        "block-size=",
        "bwlimit=",
        "timeout=",
        "port=",
        "address=",
        "config=",
        "log-file=",
        "log-file-format=",
        "out-format=",
        "partial-dir=",
        "temp-dir=",
        "compare-dest=",
        "copy-dest=",
        "link-dest=",
        "password-file=",
        "compress-level=",
        "max-size=",
        "min-size=",
        "max-delete=",
        "modify-window=",
        "info=",
        "debug=",
        "early-input=",
        "delete",
        "delete-before",
        "delete-during",
        "delete-after",
        "delete-delay",
        "delete-excluded",
        "delete-missing-args",
        "remove-source-files",
        "force",
        "archive",
        "recursive",
        "dry-run",
        "verbose",
        "progress",
        "daemon",
        "outbuf=",
        "remote-option=",
        "iconv=",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

/// `rsync`.
pub(super) fn rsync(call: &mut Call<'_, '_>) {
    let options = call.options(&RSYNC);
    if options.has(&["n", "dry-run"]) {
        return;
    }
    for command in options.values(&["e", "rsh"]) {
        // `ssh -p 22` is the usual one; anything else is a command with a host appended.
        if !command.text.trim_start().starts_with("ssh") {
            call.shell(command, "rsync -e");
        }
    }
    let recursive = options.has(&["a", "r", "archive", "recursive"]);
    copy(call, &options.operands, "rsync", recursive);
    let Some((destination, sources)) = options.operands.split_last() else { return };
    let deletes = options.given.iter().any(|given| given.name == "del" || given.name.starts_with("delete"));
    if deletes && !is_remote(&destination.text) && !sources.is_empty() {
        call.delete(destination, true, true, "sync");
    }
    if options.has(&["remove-source-files"]) {
        for source in sources.iter().filter(|source| !is_remote(&source.text)) {
            call.delete(source, true, false, "move");
        }
    }
}

/// `rclone`: remotes are named `name:path`.
pub(super) fn rclone(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar {
        long: &[
            "config=",
            "transfers=",
            "checkers=",
            "include=",
            "exclude=",
            "filter=",
            "bwlimit=",
            "log-file=",
            "progress",
        ],
        ..Grammar::default()
    });
    let Some((verb, paths)) = options.operands.split_first() else { return };
    match verb.text.as_str() {
        "copy" | "copyto" | "sync" | "move" | "moveto" => copy(call, paths, "rclone", true),
        "purge" | "delete" => {
            for path in paths.iter().filter(|path| !path.text.is_empty()) {
                if is_remote(&path.text) {
                    let target = super::super::effect::Target {
                        text: path.text.clone(),
                        has_glob: false,
                        kind: TargetKind::Remote,
                    };
                    call.tell(
                        EffectKind::DestroyInfrastructure,
                        Some(target),
                        &format!("rclone {}", verb.text),
                    );
                } else {
                    call.delete(path, true, true, "rclone");
                }
            }
        }
        _ => {}
    }
}

/// `croc`, `wormhole send`, `transfer`, `magic-wormhole`: files leave through a relay.
pub(super) fn relay(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar { long: &["code=", "text="], ..Grammar::default() });
    let mut operands = options.operands.iter();
    match operands.next() {
        Some(verb) if verb.text == "send" => {
            for file in operands {
                call.send_file(file, call.program());
            }
        }
        _ => {}
    }
}

/// A shell on this machine offered through a terminal-sharing program.
pub(super) fn share_terminal(call: &mut Call<'_, '_>) {
    let program = call.program();
    let shell = call.arguments().iter().find(|a| is_shell(&a.text));
    if program != "ttyd" && program != "gotty" || shell.is_some() {
        let target = word(program, &Argument::default());
        call.tell(EffectKind::BindShell, Some(network_target(&target)), program);
    }
}
