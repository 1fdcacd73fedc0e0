//! Package managers: what is installed, and from where.

use super::super::effect::EffectKind;
use super::call::{Call, name_target, network_target};
use super::options::{Grammar, part};
use super::{Input, Language};

/// Verbs that install.
const VERBS: &[&str] =
    &["install", "i", "add", "in", "-S", "-U", "get", "upgrade", "require", "global", "ci"];

/// `apt`, `npm`, `pip`, `cargo` and the like. Installing is ordinary; a source by URL is told as one of the network.
pub(super) fn install(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "rceotF",
        long: &[
            "requirement=",
            "index-url=",
            "extra-index-url=",
            "target=",
            "prefix=",
            "registry=",
            "git=",
            "path=",
            "root=",
            "version=",
            "features=",
            "find-links=",
        ],
        ..Grammar::default()
    };
    let options = call.options(&grammar);
    let pacman = call.arguments().iter().any(|a| a.text.starts_with("-S") || a.text == "-U");
    let mut operands = options.operands.iter();
    if call.program() != "pacman" && !operands.next().is_some_and(|verb| VERBS.contains(&verb.text.as_str()))
    {
        return;
    }
    if call.program() == "pacman" && !pacman {
        return;
    }
    let global = options.has(&["g", "global"]);
    let detail = if global { format!("{} global", call.program()) } else { call.program().to_owned() };
    for package in operands {
        let remote = package.text.contains("://")
            || ["git+", "github:", "gitlab:", "bitbucket:", "gist:"]
                .iter()
                .any(|p| package.text.starts_with(p));
        let target = if remote { network_target(package) } else { name_target(&package.text) };
        call.tell(EffectKind::Install, Some(target), &detail);
    }
    for url in options
        .values(&["index-url", "extra-index-url", "registry", "i", "git", "find-links"])
        .filter(|v| v.text.contains("://"))
    {
        call.tell(EffectKind::Install, Some(network_target(url)), &detail);
    }
}

/// `nix run github:owner/name`: a flake by its address, not by its name in a registry.
pub(super) fn nix(call: &mut Call<'_, '_>) {
    let mut words = call.arguments().iter().filter(|a| !a.text.starts_with('-'));
    if !words.next().is_some_and(|verb| matches!(verb.text.as_str(), "run" | "shell" | "develop" | "profile"))
    {
        return;
    }
    let is_remote = |text: &str| {
        text.contains("://")
            || ["github:", "gitlab:", "sourcehut:", "git+"].iter().any(|p| text.starts_with(p))
    };
    if let Some(flake) = words.take(2).find(|word| is_remote(&word.text)) {
        call.tell(EffectKind::Install, Some(network_target(flake)), "nix");
    }
}

/// `apt -o APT::Update::Pre-Invoke::=command`: settings that run something.
pub(super) fn hooks(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar { short_values: "ocat", ..Grammar::default() });
    for setting in options.values(&["o", "option"]) {
        if let Some((key, command)) = setting.text.split_once('=')
            && key.to_ascii_lowercase().contains("-invoke")
        {
            call.shell(&part(setting, command), "apt -o");
        }
    }
}

/// `make --eval`: the recipes in it run.
pub(super) fn make(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar {
        short_values: "CfIojlW",
        short_attached: "jl",
        long: &["eval=", "directory=", "file=", "makefile="],
        ..Grammar::default()
    });
    let piped = match (options.value(&["f", "file", "makefile"]), call.invocation.input) {
        (Some(file), Input::Text(text)) if matches!(file.text.as_str(), "-" | "/dev/stdin") => Some(text),
        _ => None,
    };
    for text in options.values(&["eval", "E"]).chain(piped) {
        for line in text.text.lines().filter_map(|line| line.strip_prefix('\t')) {
            call.shell(&part(text, line.trim_start_matches(['-', '@', '+'])), "make --eval");
        }
    }
}

/// `cmake -E`: commands for files that are the same on every system.
pub(super) fn cmake(call: &mut Call<'_, '_>) {
    let [mode, verb, rest @ ..] = call.arguments() else { return };
    if mode.text != "-E" {
        return;
    }
    match verb.text.as_str() {
        "rm" | "remove" | "remove_directory" => {
            let deletes_trees = verb.text == "remove_directory"
                || rest.iter().any(|a| a.text.starts_with('-') && a.text.contains(['r', 'R']));
            for path in rest.iter().filter(|a| !a.text.starts_with('-')) {
                call.delete(path, deletes_trees, deletes_trees, "");
            }
        }
        "env" | "time" | "chdir" => {
            let skipped = usize::from(verb.text == "chdir");
            let command = rest.get(skipped..).unwrap_or_default();
            let start = command
                .iter()
                .position(|a| verb.text != "env" || !(a.text.contains('=') || a.text.starts_with('-')));
            call.run(start.and_then(|at| command.get(at..)).unwrap_or_default(), "cmake -E");
        }
        _ => {}
    }
}

/// `man -P pager`: the pager is a command line; `-H` names a browser in the same way.
pub(super) fn man(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar {
        short_values: "PCLmMSsepErR",
        short_attached: "H",
        long: &["pager=", "html="],
        ..Grammar::default()
    });
    for pager in options.values(&["P", "pager", "H", "html"]).filter(|pager| !pager.text.is_empty()) {
        call.shell(pager, "man -P");
    }
}

/// `cpan` reads commands; `! code` is Perl.
pub(super) fn cpan(call: &mut Call<'_, '_>) {
    let Input::Text(text) = call.invocation.input else { return };
    for line in text.text.lines() {
        if let Some(code) = line.trim_start().strip_prefix('!') {
            call.sink.script(Language::Perl, &part(text, code), "cpan");
        }
    }
}

/// `npm`-like programs also remove and publish.
pub(super) fn publish(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar::default());
    let verb = options.operand(0);
    if verb == "unpublish" {
        let target = options.operands.get(1).map(|o| name_target(&o.text));
        call.tell(EffectKind::DestroyInfrastructure, target, &format!("{} unpublish", call.program()));
    }
}

/// Packages of the system that are removed: the machine may not start again without some.
pub(super) fn remove(call: &mut Call<'_, '_>) {
    const VITAL: &[&str] = &[
        "systemd",
        "libc6",
        "glibc",
        "bash",
        "coreutils",
        "sudo",
        "openssh-server",
        "kernel",
        "linux-image-generic",
        "dpkg",
        "apt",
        "rpm",
        "init",
    ];
    let options = call.options(&Grammar { short_values: "oct", ..Grammar::default() });
    let verb = options.operand(0);
    let removes = matches!(verb, "remove" | "purge" | "erase" | "autoremove" | "del")
        || options.has(&["R", "Rns", "e", "r", "P"]);
    if removes {
        for package in options.operands.iter().filter(|p| VITAL.contains(&p.text.as_str())) {
            call.tell(
                EffectKind::StopSystem,
                Some(name_target(&package.text)),
                &format!("{} remove", call.program()),
            );
        }
    }
}
