//! docker, podman, nerdctl and compose: what is wiped, what a container may reach, and what runs inside.

use super::super::argument::{Argument, HOLE};
use super::super::effect::{EffectKind, Target};
use super::Attributes;
use super::call::{Call, name_target, path_target, remote_target};
use super::options::{Grammar, Options, part};

const GLOBAL: Grammar = Grammar {
    short_values: "cHlfp",
    short_attached: "",
    long: &[
        "context=",
        "host=",
        "config=",
        "log-level=",
        "tlscacert=",
        "tlscert=",
        "tlskey=",
        "namespace=",
        "address=",
        "root=",
        "runroot=",
        "storage-driver=",
        "connection=",
        "url=",
        "file=",
        "project-name=",
        "profile=",
        "env-file=",
        "project-directory=",
        "parallel=",
        "ansi=",
        "progress=",
    ],
    stops_at_operand: true,
    single_dash_long: false,
};

const RUN: Grammar = Grammar {
    short_values: "aceghlmpuvwCL",
    short_attached: "",
    long: &[
        "add-host=",
        "annotation=",
        "attach=",
        "blkio-weight=",
        "cap-add=",
        "cap-drop=",
        "cgroup-parent=",
        "cgroupns=",
        "cidfile=",
        "cpu-count=",
        "cpu-period=",
        "cpu-quota=",
        "cpu-shares=",
        "cpus=",
        "cpuset-cpus=",
        "cpuset-mems=",
        "detach-keys=",
        "device=",
        "device-cgroup-rule=",
        "dns=",
        "dns-option=",
        "dns-search=",
        "domainname=",
        "entrypoint=",
        "env=",
        "env-file=",
        "expose=",
        "gpus=",
        "group-add=",
        "health-cmd=",
        "health-interval=",
        "health-retries=",
        "health-timeout=",
        "hostname=",
        "ip=",
        "ip6=",
        "ipc=",
        "isolation=",
        "kernel-memory=",
        "label=",
        "label-file=",
        "link=",
        "log-driver=",
        "log-opt=",
        "mac-address=",
        "memory=",
        "memory-swap=",
        "mount=",
        "name=",
        "net=",
        "network=",
        "network-alias=",
        "oom-score-adj=",
        "pid=",
        "pids-limit=",
        "platform=",
        "publish=",
        "pull=",
        "restart=",
        "runtime=",
        "secret=",
        "security-opt=",
        "shm-size=",
        "stop-signal=",
        "stop-timeout=",
        "storage-opt=",
        "sysctl=",
        "tmpfs=",
        "ulimit=",
        "user=",
        "userns=",
        "uts=",
        "volume=",
        "volume-driver=",
        "volumes-from=",
        "workdir=",
        "arch=",
        "os=",
        "pod=",
        "privileged=?",
        "interactive",
        "tty",
        "detach",
        "rm",
        "init",
        "read-only",
        "publish-all",
        "no-deps",
        "index=",
        "service-ports",
        "use-aliases",
        "no-tty",
        "build",
    ],
    stops_at_operand: true,
    single_dash_long: false,
};

/// `docker` and programs that take the same arguments.
pub(super) fn docker(call: &mut Call<'_, '_>) {
    let global = call.options(&GLOBAL);
    dispatch(call, global.rest);
}

/// `docker-compose`.
pub(super) fn compose_program(call: &mut Call<'_, '_>) {
    compose(call, call.arguments());
}

fn dispatch(call: &mut Call<'_, '_>, rest: &[Argument]) {
    let Some((verb, arguments)) = rest.split_first() else { return };
    let noun = verb.text.as_str();
    match noun {
        // `docker container rm` is `docker rm`.
        "container" | "image" | "volume" | "network" | "system" | "builder" | "buildx" | "pod"
        | "machine" => {
            let at = arguments.iter().position(|a| !a.text.starts_with('-')).unwrap_or(arguments.len());
            let Some((verb, arguments)) = arguments.get(at..).and_then(<[Argument]>::split_first) else {
                return;
            };
            managed(call, noun, &verb.text, arguments);
        }
        "compose" => compose(call, arguments),
        "run" | "create" => run(call, arguments),
        "exec" => exec(call, arguments),
        "rm" => managed(call, "container", "rm", arguments),
        "rmi" => managed(call, "image", "rm", arguments),
        "kill" | "stop" => managed(call, "container", noun, arguments),
        "cp" => copy(call, arguments),
        "swarm" if arguments.first().is_some_and(|a| a.text == "leave") => {
            wiped(call, EffectKind::WipeContainers, "swarm leave", None, arguments);
        }
        "stack" | "service"
            if arguments.first().is_some_and(|a| matches!(a.text.as_str(), "rm" | "remove" | "down")) =>
        {
            wiped(call, EffectKind::WipeContainers, &format!("{noun} rm"), None, arguments);
        }
        "plugin" => {}
        "unshare" => call.run(arguments, "podman unshare"),
        _ => {}
    }
}

fn wiped(
    call: &mut Call<'_, '_>,
    kind: EffectKind,
    detail: &str,
    target: Option<Target>,
    arguments: &[Argument],
) {
    let flag = |letter: char, long: &str| {
        arguments.iter().any(|a| {
            a.text == long
                || (a.text.starts_with('-') && !a.text.starts_with("--") && a.text.contains(letter))
        })
    };
    let attributes =
        Attributes { recursive: flag('a', "--all"), forced: flag('f', "--force"), detail: detail.to_owned() };
    call.effect(kind, target, attributes);
}

fn managed(call: &mut Call<'_, '_>, noun: &str, verb: &str, arguments: &[Argument]) {
    let long = &[
        "all",
        "force",
        "volumes",
        "filter=",
        "time=",
        "signal=",
        "format=",
        "link",
        "no-prune",
        "keep-storage=",
    ];
    let options = Options::parse(arguments, &Grammar { short_values: "ts", long, ..Grammar::default() });
    let detail = format!("{noun} {verb}");
    match (noun, verb) {
        ("container", "run" | "create") => run(call, arguments),
        ("container", "exec") => exec(call, arguments),
        ("container", "cp") => copy(call, arguments),
        ("system", "prune") => {
            wiped(call, EffectKind::WipeContainers, &detail, None, arguments);
            if options.has(&["volumes"]) {
                wiped(call, EffectKind::WipeVolumes, "system prune --volumes", None, arguments);
            }
        }
        ("system", "reset") | ("machine", "rm" | "reset") => {
            wiped(call, EffectKind::WipeVolumes, &detail, None, arguments);
        }
        ("volume", "prune") => wiped(call, EffectKind::WipeVolumes, &detail, None, arguments),
        ("volume", "rm" | "remove") => {
            if options.has(&["all", "a"]) {
                wiped(call, EffectKind::WipeVolumes, "volume rm --all", None, arguments);
            }
            for name in &options.operands {
                let all = every_one(name);
                let detail = if all { "volume rm --all" } else { "volume rm" };
                wiped(call, EffectKind::WipeVolumes, detail, Some(name_target(&name.text)), arguments);
            }
        }
        (_, "prune") => wiped(call, EffectKind::WipeContainers, &detail, None, arguments),
        ("container" | "image" | "pod", "rm" | "remove" | "kill" | "stop") => {
            let all = options.has(&["all"]) || (options.has(&["a"]) && verb != "kill");
            if all || options.operands.iter().any(|name| every_one(name)) {
                wiped(call, EffectKind::WipeContainers, &format!("{detail} --all"), None, arguments);
            }
            if verb != "kill" && verb != "stop" && options.has(&["v", "volumes"]) {
                wiped(call, EffectKind::WipeVolumes, &format!("{detail} --volumes"), None, arguments);
            }
        }
        _ => {}
    }
}

/// Whether an operand is nothing but the output of another command, as in `$(docker ps -aq)`.
fn every_one(name: &Argument) -> bool {
    name.is_unknown() || name.text == "*"
}

fn compose(call: &mut Call<'_, '_>, arguments: &[Argument]) {
    let global = Options::parse(arguments, &GLOBAL);
    let Some((verb, arguments)) = global.rest.split_first() else { return };
    let long = &["volumes", "rmi=", "remove-orphans", "timeout=", "force", "stop", "all"];
    match verb.text.as_str() {
        "down" | "rm" => {
            let options =
                Options::parse(arguments, &Grammar { short_values: "t", long, ..Grammar::default() });
            if options.has(&["v", "volumes"]) {
                wiped(
                    call,
                    EffectKind::WipeVolumes,
                    &format!("compose {} --volumes", verb.text),
                    None,
                    arguments,
                );
            }
        }
        "run" => run(call, arguments),
        "exec" => exec(call, arguments),
        _ => {}
    }
}

/// Folders of this machine that a container gets, as (host path, path inside).
type Mounts = Vec<(Argument, String)>;

fn mounts(options: &Options<'_>) -> Mounts {
    let mut mounts = Mounts::new();
    for volume in options.values(&["v", "volume"]) {
        // `C:\dir:/inside` has a drive before its first colon.
        let is_drive = matches!(volume.text.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
        let skip = if is_drive { 2 } else { 0 };
        if let Some(at) = volume.text[skip..].find(':') {
            let (host, inside) = (&volume.text[..skip + at], &volume.text[skip + at + 1..]);
            let inside = inside.split(':').next().unwrap_or_default();
            mounts.push((part(volume, host), inside.to_owned()));
        }
    }
    for mount in options.values(&["mount"]) {
        let field = |names: &[&str]| {
            mount.text.split(',').find_map(|pair| {
                let (key, value) = pair.split_once('=')?;
                names.contains(&key.trim()).then_some(value)
            })
        };
        if let Some(host) = field(&["source", "src"]) {
            let inside = field(&["target", "destination", "dst"]).unwrap_or_default();
            mounts.push((part(mount, host), inside.to_owned()));
        }
    }
    // A name is a volume, not a folder of this machine.
    let is_path = |host: &str| {
        host.starts_with(['/', '~', '.', '\\']) || host.contains(HOLE) || host.get(1..2) == Some(":")
    };
    mounts.retain(|(host, _)| is_path(&host.text));
    mounts
}

fn escape(call: &mut Call<'_, '_>, detail: &str, target: Option<Target>) {
    call.tell(EffectKind::EscapeSandbox, target, detail);
}

fn run(call: &mut Call<'_, '_>, arguments: &[Argument]) {
    let options = Options::parse(arguments, &RUN);
    if options.has(&["privileged"]) && options.value(&["privileged"]).is_none_or(|v| v.text != "false") {
        escape(call, "privileged", None);
    }
    for (name, bad) in
        [("pid", "host"), ("ipc", "host"), ("userns", "host"), ("uts", "host"), ("cgroupns", "host")]
    {
        if options.value(&[name]).is_some_and(|value| value.text == bad) {
            escape(call, &format!("{name}=host"), None);
        }
    }
    for capability in options.values(&["cap-add"]) {
        let name = capability.text.to_ascii_lowercase();
        escape(call, &format!("cap-add {}", name.trim_start_matches("cap_")), None);
    }
    for option in options.values(&["security-opt"]) {
        if option.text.to_ascii_lowercase().contains("unconfined") {
            escape(call, "security-opt unconfined", None);
        }
    }
    for device in options.values(&["device"]) {
        let host = part(device, device.text.split(':').next().unwrap_or_default());
        escape(call, "device", Some(path_target(&host)));
    }
    for file in options.values(&["env-file"]) {
        call.read(file, false, "option");
    }
    let mounts = mounts(&options);
    for (host, _) in &mounts {
        escape(call, "mount", Some(path_target(host)));
    }
    let mut command: Vec<Argument> = options.values(&["entrypoint"]).last().cloned().into_iter().collect();
    command.extend(options.rest.iter().skip(1).cloned());
    inside(call, &command, &mounts, "docker run");
}

fn exec(call: &mut Call<'_, '_>, arguments: &[Argument]) {
    let options = Options::parse(arguments, &RUN);
    if options.has(&["privileged"]) {
        escape(call, "exec privileged", None);
    }
    let command: Vec<Argument> = options.rest.iter().skip(1).cloned().collect();
    inside(call, &command, &Vec::new(), "docker exec");
}

/// The command that runs inside: paths below a mounted folder are the host's.
fn inside(call: &mut Call<'_, '_>, command: &[Argument], mounts: &Mounts, via: &'static str) {
    if command.is_empty() {
        return;
    }
    let mapped: Vec<Argument> = command
        .iter()
        .map(|argument| {
            let mut argument = argument.clone();
            for (host, inside) in mounts {
                argument.text = map_paths(&argument.text, inside.trim_end_matches('/'), &host.text);
            }
            argument
        })
        .collect();
    call.run(&mapped, via);
}

/// Every path below `inside` in a text as the path on this machine.
fn map_paths(text: &str, inside: &str, host: &str) -> String {
    if inside.is_empty() || !text.contains(inside) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(inside) {
        let before = rest[..at].chars().next_back().or_else(|| out.chars().next_back());
        let after = rest[at + inside.len()..].chars().next();
        let starts = before.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-')));
        let ends = after.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-')));
        out.push_str(&rest[..at]);
        if starts && ends {
            let root = host == "/" && after == Some('/');
            out.push_str(if root { "" } else { host });
        } else {
            out.push_str(inside);
        }
        rest = &rest[at + inside.len()..];
    }
    out.push_str(rest);
    out
}

/// `docker cp`: one side is a container's.
fn copy(call: &mut Call<'_, '_>, arguments: &[Argument]) {
    let options = Options::parse(arguments, &Grammar::default());
    if let [source, destination] = options.operands.as_slice() {
        if super::transfer::is_remote(&source.text) {
            call.write(destination, "copy");
        } else {
            call.read(source, true, "copy");
            call.tell(EffectKind::WritePath, Some(remote_target(destination)), "copy");
        }
    }
}

/// `ctr`, `crictl`, `lxc`, `lxd`, `runc`, `singularity`: what they have in common with docker.
pub(super) fn other(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let has =
        |word: &str| arguments.iter().any(|a| a.text == word || a.text.starts_with(&format!("{word}=")));
    if has("--privileged") || arguments.iter().any(|a| a.text == "security.privileged=true") {
        escape(call, "privileged", None);
    }
    let host_root = arguments.iter().any(|a| {
        let text = a.text.as_str();
        text == "source=/"
            || text.contains("src=/,")
            || text.starts_with("type=bind,src=/,")
            || text == "/:/host"
    });
    if host_root {
        let root = Argument { text: "/".to_owned(), ..Argument::default() };
        escape(call, "mount", Some(path_target(&root)));
    }
}

#[cfg(test)]
mod tests {
    use super::map_paths;

    /// Text, path inside, path on the host, and what comes out.
    const CASES: &[(&str, &str, &str, &str)] = &[
        ("rm -rf /host/etc", "/host", "/", "rm -rf /etc"),
        ("/host", "/host", "/", "/"),
        ("/hosted/x", "/host", "/", "/hosted/x"),
        ("cat /mnt/a /mnt/b", "/mnt", "/home/u", "cat /home/u/a /home/u/b"),
        ("/x/mnt", "/mnt", "/home", "/x/mnt"),
    ];

    #[test]
    fn paths_inside_become_those_of_the_host() {
        for (text, inside, host, wanted) in CASES {
            assert_eq!(map_paths(text, inside, host), *wanted, "{text}");
        }
    }
}
