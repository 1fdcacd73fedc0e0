//! Commands of cmd and PowerShell.

use super::super::argument::Argument;
use super::super::effect::EffectKind;
use super::super::effect::{Target, TargetKind};
use super::Attributes;
use super::Language;
use super::call::{Call, name_target, network_target, word};

/// Switches (`/s`, `/q:`) in lower case, and everything else.
fn split<'a>(call: &Call<'a, '_>) -> (Vec<String>, Vec<&'a Argument>) {
    let is_switch = |text: &str| {
        text.strip_prefix('/').is_some_and(|rest| {
            let name = rest.split(':').next().unwrap_or_default();
            !name.is_empty()
                && name.len() <= 12
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '?')
        })
    };
    let (mut switches, mut operands) = (Vec::new(), Vec::new());
    for argument in call.arguments() {
        if is_switch(&argument.text) {
            // `del /s/q`
            switches.extend(
                argument.text.to_ascii_lowercase().split('/').filter(|s| !s.is_empty()).map(str::to_owned),
            );
        } else {
            operands.push(argument);
        }
    }
    (switches, operands)
}

/// A Windows path as the target of an effect: stars are globs for every program there. The backslash behind the drive is
/// put back where the shell took it for an escape.
fn target(path: &Argument) -> Target {
    let mut text = path.text.clone();
    if let [drive, b':', next, ..] = text.as_bytes()
        && drive.is_ascii_alphabetic()
        && !matches!(next, b'/' | b'\\')
    {
        text.insert(2, '\\');
    }
    Target { has_glob: text.contains(['*', '?']), text, kind: TargetKind::Path }
}

/// `del`, `erase`, `rd`.
pub(super) fn del(call: &mut Call<'_, '_>) {
    let (switches, operands) = split(call);
    let has = |name: &str| switches.iter().any(|s| s == name);
    let attributes = Attributes { recursive: has("s"), forced: has("f") || has("q"), detail: String::new() };
    for path in operands {
        call.effect(EffectKind::DeletePath, Some(target(path)), attributes.clone());
    }
}

/// `format C:`.
pub(super) fn format(call: &mut Call<'_, '_>) {
    let (_, operands) = split(call);
    for drive in operands.iter().filter(|o| o.text.len() <= 3 && o.text.ends_with([':', '\\'])) {
        call.disk(drive, true, "format");
    }
}

/// `cipher /w`, `vssadmin delete shadows`, `wbadmin delete`, `bcdedit`, `diskpart`, `fsutil`, `wmic shadowcopy delete`.
pub(super) fn destroy(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|a| a.text.to_ascii_lowercase()).collect();
    let has = |wanted: &str| words.iter().any(|w| w == wanted || w.starts_with(&format!("{wanted}:")));
    let all = |wanted: &[&str]| wanted.iter().all(|w| has(w));
    let program = call.program();
    match program {
        "cipher" if has("/w") => call.tell(EffectKind::RawDiskWrite, None, "cipher /w"),
        "vssadmin" if all(&["delete", "shadows"]) || all(&["resize", "shadowstorage"]) => {
            call.tell(EffectKind::DestroyData, None, "vssadmin delete shadows");
        }
        "wmic" if all(&["shadowcopy", "delete"]) => {
            call.tell(EffectKind::DestroyData, None, "shadowcopy delete")
        }
        "wbadmin" if has("delete") => call.tell(EffectKind::DestroyData, None, "wbadmin delete"),
        "bcdedit" if words.iter().any(|w| w.starts_with("/set") || w.starts_with("/delete")) => {
            call.tell(EffectKind::ChangeKernel, None, "bcdedit");
        }
        "fsutil" if all(&["usn", "deletejournal"]) => {
            call.tell(EffectKind::DisableProtection, None, "fsutil usn")
        }
        "diskpart" => call.tell(EffectKind::RawDiskWrite, Some(name_target("diskpart")), "diskpart"),
        "wevtutil" if words.first().is_some_and(|w| matches!(w.as_str(), "cl" | "clear-log")) => {
            call.tell(EffectKind::DisableProtection, None, "wevtutil cl");
        }
        "clear-eventlog" | "remove-eventlog" => {
            call.tell(EffectKind::DisableProtection, None, "clear-eventlog")
        }
        "clear-disk" | "format-volume" | "initialize-disk" | "remove-partition" | "clear-content-disk" => {
            call.tell(EffectKind::RawDiskWrite, None, program);
        }
        "stop-computer" | "restart-computer" => call.tell(EffectKind::StopSystem, None, program),
        "set-mppreference" if words.iter().any(|w| w.starts_with("-disable")) => {
            call.tell(EffectKind::DisableProtection, None, "defender off");
        }
        "add-mppreference" if words.iter().any(|w| w.starts_with("-exclusion")) => {
            call.tell(EffectKind::DisableProtection, None, "defender exclusion");
        }
        "set-executionpolicy" if (has("bypass") || has("unrestricted")) && !has("process") => {
            call.tell(EffectKind::DisableProtection, None, "execution policy");
        }
        "netsh" if (has("advfirewall") || has("firewall")) && (has("off") || has("disable")) => {
            call.tell(EffectKind::DisableProtection, None, "firewall off");
        }
        _ => {}
    }
}

/// `reg delete`, `reg add …\Run`, `reg save HKLM\SAM`.
pub(super) fn reg(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|a| a.text.to_ascii_lowercase()).collect();
    let verb = words.first().map_or("", String::as_str);
    let key = words.get(1).map_or("", String::as_str);
    match verb {
        "delete" => call.tell(EffectKind::DestroyData, Some(name_target(key)), "reg delete"),
        // Without quotes the shell takes the backslashes away.
        "add" if key.replace('\\', "").contains("currentversionrun") => {
            call.tell(EffectKind::Persist, Some(name_target(key)), "reg add run");
        }
        "add" if key.contains("windows defender") || key.contains("\\policies\\system") => {
            call.tell(EffectKind::DisableProtection, Some(name_target(key)), "reg add");
        }
        "save" | "export"
            if key.ends_with("\\sam") || key.ends_with("\\security") || key.ends_with("\\system") =>
        {
            call.tell(EffectKind::RevealSecret, Some(name_target(key)), "reg save hive");
        }
        _ => {}
    }
}

/// `schtasks /create`, `sc create`, `new-service`, `register-scheduledtask`.
pub(super) fn persist(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|a| a.text.to_ascii_lowercase()).collect();
    let has = |wanted: &str| words.iter().any(|w| w == wanted);
    match call.program() {
        "schtasks" if has("/create") => call.tell(EffectKind::Persist, None, "schtasks"),
        "sc" if has("create") => call.tell(EffectKind::Persist, None, "sc create"),
        "sc" if has("stop") || has("delete") || has("config") => {
            call.tell(EffectKind::DisableProtection, None, "sc stop");
        }
        "new-service" | "register-scheduledtask" => call.tell(EffectKind::Persist, None, call.program()),
        _ => {}
    }
}

/// `net user name password /add`, `net localgroup administrators name /add`.
pub(super) fn net(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|a| a.text.to_ascii_lowercase()).collect();
    let adds = words.iter().any(|w| w == "/add" || w == "/active:yes");
    match words.first().map(String::as_str) {
        Some("user" | "localgroup" | "group") if adds => {
            let admin = words.iter().any(|w| w.starts_with("admin"));
            let detail = if admin { "net privileged" } else { "net user" };
            call.tell(EffectKind::ChangeAccount, None, detail);
        }
        Some("stop") if words.len() > 1 => {
            call.tell(EffectKind::DisableProtection, Some(name_target(&words[1])), "net stop")
        }
        _ => {}
    }
}

/// Operands and the values of named parameters of a cmdlet, in lower case names.
fn parameters<'a>(
    call: &Call<'a, '_>,
    switches: &[&str],
) -> (Vec<&'a Argument>, Vec<(String, Option<&'a Argument>)>) {
    let mut operands = Vec::new();
    let mut named = Vec::new();
    let mut arguments = call.arguments().iter().peekable();
    while let Some(argument) = arguments.next() {
        match argument
            .text
            .strip_prefix('-')
            .filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        {
            Some(name) => {
                let name = name.to_ascii_lowercase();
                let is_switch = switches.iter().any(|s| s.starts_with(name.as_str()));
                let value = if is_switch { None } else { arguments.next_if(|a| !a.text.starts_with('-')) };
                named.push((name, value));
            }
            None => operands.push(argument),
        }
    }
    (operands, named)
}

/// `Remove-Item`.
pub(super) fn remove_item(call: &mut Call<'_, '_>) {
    let (mut paths, named) = parameters(call, &["recurse", "force", "confirm", "whatif", "verbose"]);
    let has = |name: &str| named.iter().any(|(n, _)| !n.is_empty() && name.starts_with(n.as_str()));
    if has("whatif") && !has("recurse") {
        return;
    }
    paths.extend(
        named
            .iter()
            .filter(|(n, _)| matches!(n.as_str(), "path" | "literalpath" | "pa" | "lp"))
            .filter_map(|(_, v)| *v),
    );
    let attributes = Attributes { recursive: has("recurse"), forced: has("force"), detail: String::new() };
    for path in paths {
        for piece in path.text.split(',') {
            let piece = word(piece.trim(), path);
            call.effect(EffectKind::DeletePath, Some(target(&piece)), attributes.clone());
        }
    }
}

/// `Get-Content`, `Set-Content`, `Copy-Item`, `Out-File`.
pub(super) fn content(call: &mut Call<'_, '_>) {
    let (mut operands, named) =
        parameters(call, &["raw", "force", "recurse", "append", "nonewline", "asbytestream"]);
    let value =
        |names: &[&str]| named.iter().find(|(n, _)| names.contains(&n.as_str())).and_then(|(_, v)| *v);
    if let Some(path) = value(&["path", "literalpath", "filepath"]) {
        operands.insert(0, path);
    }
    match call.program() {
        "get-content" | "gc" | "select-string" => {
            for path in operands {
                call.read(path, false, "");
            }
        }
        "set-content" | "add-content" | "out-file" | "clear-content" | "new-item" => {
            if let Some(path) = operands.first() {
                call.write(path, "");
            }
        }
        _ => {
            if let Some(path) = operands.first() {
                call.read(path, true, "copy");
            }
            if let Some(path) = value(&["destination"]).or(operands.get(1).copied()) {
                call.write(path, "copy");
            }
        }
    }
}

/// `Invoke-WebRequest`, `Invoke-RestMethod`, `certutil -urlcache`, `bitsadmin`.
pub(super) fn fetch(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let urls = arguments.iter().filter(|a| a.text.contains("://"));
    for url in urls {
        call.tell(EffectKind::Fetch, Some(network_target(url)), "");
    }
    let (_, named) = parameters(call, &["usebasicparsing", "usedefaultcredentials"]);
    let value =
        |names: &[&str]| named.iter().find(|(n, _)| names.contains(&n.as_str())).and_then(|(_, v)| *v);
    if let Some(path) = value(&["outfile", "o"]) {
        call.write(path, "download");
    }
    if let Some(path) = value(&["infile"]) {
        call.send_file(path, call.program());
    }
    if matches!(call.program(), "certutil" | "bitsadmin")
        && let Some(path) = arguments
            .last()
            .filter(|a| !a.text.contains("://") && arguments.iter().any(|a| a.text.contains("://")))
    {
        call.write(path, "download");
    }
}

/// `Invoke-Expression`: its argument is a script.
pub(super) fn invoke_expression(call: &mut Call<'_, '_>) {
    let joined: Vec<&str> = call
        .arguments()
        .iter()
        .map(|a| a.text.as_str())
        .filter(|t| !t.eq_ignore_ascii_case("-command"))
        .collect();
    let Some(first) = call.arguments().first() else { return };
    let script = super::options::part(first, &joined.join(" "));
    call.sink.script(Language::PowerShell, &script, "Invoke-Expression");
}

/// `Start-Process program -ArgumentList 'arguments'`.
pub(super) fn start_process(call: &mut Call<'_, '_>) {
    let (operands, named) =
        parameters(call, &["nonewwindow", "wait", "passthru", "loaduserprofile", "usenewenvironment"]);
    let value = |long: &str| {
        named.iter().find(|(name, _)| name.len() > 1 && long.starts_with(name.as_str())).and_then(|(_, v)| *v)
    };
    let mut operands = operands.into_iter();
    let Some(program) = value("filepath").or_else(|| operands.next()) else { return };
    let mut argv = vec![program.clone()];
    for list in value("argumentlist").or_else(|| value("args")).into_iter().chain(operands) {
        argv.extend(list.text.split([' ', ',']).filter(|w| !w.is_empty()).map(|w| word(w, list)));
    }
    call.run(&argv, "Start-Process");
}

/// `mshta`, `regsvr32 /i:http…`, `rundll32 javascript:`, `msiexec /i http…`: programs that run what they fetch.
pub(super) fn proxy_execution(call: &mut Call<'_, '_>) {
    for argument in call.arguments() {
        let text = argument.text.to_ascii_lowercase();
        if let Some(at) = text.find("http://").or_else(|| text.find("https://")) {
            let url = super::options::part(argument, &argument.text[at..]);
            call.tell(EffectKind::FetchAndExecute, Some(network_target(&url)), call.program());
        } else if text.starts_with("javascript:") || text.starts_with("vbscript:") {
            call.tell(EffectKind::OpaqueExecution, None, call.program());
        }
    }
}
