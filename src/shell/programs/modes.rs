//! Permissions, owners, access lists and attributes of files.

use super::super::argument::Argument;
use super::super::effect::EffectKind;
use super::Attributes;
use super::call::{Call, path_target};
use super::options::{Grammar, Options};

const CHMOD: Grammar = Grammar {
    short_values: "",
    short_attached: "",
    long: &[
        "changes",
        "quiet",
        "silent",
        "verbose",
        "no-preserve-root",
        "preserve-root",
        "reference=",
        "recursive",
        "dereference",
        "no-dereference",
        "from=",
        "help",
        "version",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

fn tell(call: &mut Call<'_, '_>, kind: EffectKind, path: &Argument, recursive: bool, detail: &str) {
    let attributes = Attributes { recursive, forced: false, detail: detail.to_ascii_lowercase() };
    call.effect(kind, Some(path_target(path)), attributes);
}

/// `chmod`: modes such as `-w` and `-rwx` look like options.
pub(super) fn chmod(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let is_mode = |argument: &&Argument| {
        let text = argument.text.as_str();
        text.starts_with('-')
            && text.len() > 1
            && text[1..].chars().all(|c| "rwxXstugo,+=-".contains(c))
            && !text.starts_with("--")
    };
    let dashed = arguments.iter().find(is_mode);
    let kept: Vec<Argument> = arguments.iter().filter(|argument| !is_mode(argument)).cloned().collect();
    let options = Options::parse(&kept, &CHMOD);
    if options.has(&["help", "version"]) {
        return;
    }
    let recursive = options.has(&["R", "recursive"]);
    let mut files = options.operands.as_slice();
    let mode = if let Some(mode) = dashed {
        mode.text.clone()
    } else if let Some(reference) = options.value(&["reference"]) {
        format!("reference {}", reference.text)
    } else if let Some((first, rest)) = files.split_first() {
        files = rest;
        first.text.clone()
    } else {
        return;
    };
    for path in files {
        tell(call, EffectKind::ChangeMode, path, recursive, &mode);
    }
}

/// `chown` and `chgrp`.
pub(super) fn chown(call: &mut Call<'_, '_>) {
    let options = call.options(&CHMOD);
    if options.has(&["help", "version"]) {
        return;
    }
    let recursive = options.has(&["R", "recursive"]);
    let (owner, files) = match (options.value(&["reference"]), options.operands.split_first()) {
        (Some(reference), _) => (format!("reference {}", reference.text), options.operands.as_slice()),
        (None, Some((owner, files))) => (owner.text.clone(), files),
        (None, None) => return,
    };
    for path in files {
        tell(call, EffectKind::ChangeOwner, path, recursive, &owner);
    }
}

/// `setfacl`: entries are told as `acl u:name:rwx`.
pub(super) fn setfacl(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "mxMX",
        long: &[
            "modify=",
            "remove=",
            "modify-file=",
            "remove-file=",
            "set=",
            "set-file=",
            "recursive",
            "restore=",
        ],
        ..Grammar::default()
    };
    let options = call.options(&grammar);
    let recursive = options.has(&["R", "recursive"]);
    let entries: Vec<&str> = options.values(&["m", "modify", "set"]).map(|v| v.text.as_str()).collect();
    let detail = format!("acl {}", entries.join(","));
    for path in &options.operands {
        tell(call, EffectKind::ChangeMode, path, recursive, detail.trim_end());
    }
}

/// `chattr` and `chflags`: attributes are told as `attribute -i`.
pub(super) fn attributes(call: &mut Call<'_, '_>) {
    let (mut recursive, mut change, mut files) = (false, None, Vec::new());
    let mut arguments = call.arguments().iter();
    while let Some(argument) = arguments.next() {
        let text = argument.text.as_str();
        match text {
            "-R" => recursive = true,
            "-v" | "-p" if call.program() == "chattr" => drop(arguments.next()),
            "-V" | "-f" | "-h" | "-H" | "-L" | "-P" => {}
            _ if change.is_none() => change = Some(text),
            _ => files.push(argument),
        }
    }
    let detail = format!("attribute {}", change.unwrap_or_default());
    for path in files {
        tell(call, EffectKind::ChangeMode, path, recursive, &detail);
    }
}

/// `setcap`: capabilities are told as `capability cap_setuid=ep`.
pub(super) fn setcap(call: &mut Call<'_, '_>) {
    let operands = call.options(&Grammar { short_values: "n", ..Grammar::default() }).operands;
    for pair in operands.chunks_exact(2) {
        let detail = format!("capability {}", pair[0].text);
        tell(call, EffectKind::ChangeMode, pair[1], false, &detail);
    }
}

/// `umask` does not touch files; `icacls` and `takeown` on Windows do.
pub(super) fn icacls(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let has = |flag: &str| arguments.iter().any(|a| a.text.eq_ignore_ascii_case(flag));
    let Some(path) = arguments.iter().find(|a| !a.text.starts_with('/') && !a.text.starts_with('-')) else {
        return;
    };
    let grant = arguments
        .iter()
        .skip_while(|a| !a.text.to_ascii_lowercase().starts_with("/grant"))
        .nth(1)
        .map_or(String::new(), |a| a.text.to_ascii_lowercase());
    let everyone =
        grant.starts_with("everyone") || grant.starts_with("*s-1-1-0") || grant.starts_with("users");
    let detail = if everyone { format!("a+rwx {grant}") } else { format!("acl {grant}") };
    tell(call, EffectKind::ChangeMode, path, has("/t") || has("/r"), detail.trim_end());
}
