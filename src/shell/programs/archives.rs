//! Archives: what is packed is read, what is unpacked is written, and some options run commands.

use super::super::argument::Argument;
use super::call::{Call, word};
use super::options::{Grammar, Options, part};

const TAR: Grammar = Grammar {
    short_values: "fCTXbgIHVKLNF",
    short_attached: "",
    long: &[
        "file=",
        "directory=",
        "extract",
        "get",
        "create",
        "list",
        "append",
        "update",
        "delete",
        "diff",
        "files-from=",
        "exclude=",
        "exclude-from=",
        "checkpoint=?",
        "checkpoint-action=",
        "to-command=",
        "use-compress-program=",
        "info-script=",
        "new-volume-script=",
        "rsh-command=",
        "remove-files",
        "transform=",
        "xform=",
        "strip-components=",
        "owner=",
        "group=",
        "mode=",
        "absolute-names",
        "overwrite",
        "unlink-first",
        "recursive-unlink",
        "gzip",
        "bzip2",
        "xz",
        "zstd",
        "verbose",
        "newer=",
        "wildcards",
        "one-file-system",
        "to-stdout",
        "format=",
        "label=",
        "index-file=",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

/// `tar`: its first argument may be a bundle without a dash.
pub(super) fn tar(call: &mut Call<'_, '_>) {
    let mut arguments = call.arguments().to_vec();
    if let Some(first) = arguments.first_mut()
        && !first.text.starts_with('-')
        && !first.text.is_empty()
        && first.text.chars().all(|c| c.is_ascii_alphabetic())
    {
        arguments = old_style(&arguments);
    }
    let options = Options::parse(&arguments, &TAR);
    for action in options.values(&["checkpoint-action"]) {
        if let Some(command) = action.text.strip_prefix("exec=") {
            call.shell(&part(action, command), "tar --checkpoint-action");
        }
    }
    let runs =
        ["to-command", "use-compress-program", "I", "info-script", "F", "new-volume-script", "rsh-command"];
    for command in options.values(&runs) {
        call.shell(command, "tar");
    }
    let here = Argument { text: ".".to_owned(), ..Argument::default() };
    let folder = options.value(&["C", "directory"]).unwrap_or(&here);
    if options.has(&["x", "extract", "get"]) {
        if let Some(archive) = options.value(&["f", "file"]) {
            call.read(archive, false, "unpack");
        }
        if !options.has(&["O", "to-stdout"]) {
            call.write(folder, "unpack");
        }
    } else if options.has(&["c", "create", "r", "append", "u", "update"]) {
        if let Some(archive) = options.value(&["f", "file"]) {
            call.write(archive, "pack");
        }
        for path in &options.operands {
            let path = within(folder, path);
            call.read(&path, true, "pack");
            if options.has(&["remove-files"]) {
                call.delete(&path, true, true, "pack");
            }
        }
    }
    for list in options.values(&["T", "files-from", "X", "exclude-from"]) {
        call.read(list, false, "");
    }
}

/// `tar xzf a.tar dir` as `tar -x -z -f a.tar dir`: the values follow in the order of their letters.
fn old_style(arguments: &[Argument]) -> Vec<Argument> {
    let bundle = &arguments[0];
    let mut rest = arguments[1..].iter();
    let mut out = Vec::new();
    for letter in bundle.text.chars() {
        out.push(part(bundle, &format!("-{letter}")));
        if TAR.short_values.contains(letter) {
            out.extend(rest.next().cloned());
        }
    }
    out.extend(rest.cloned());
    out
}

/// A path of an archive's member as seen from the folder `tar` changed to.
fn within(folder: &Argument, path: &Argument) -> Argument {
    if folder.text == "." || path.text.starts_with('/') || path.text.starts_with('~') {
        return path.clone();
    }
    let mut joined = super::call::join(folder, &path.text);
    joined.has_glob = path.has_glob;
    joined
}

/// `unzip`, `7z x`, `unrar`, `gunzip` and others that write what they unpack.
pub(super) fn unpack(call: &mut Call<'_, '_>) {
    let grammar = Grammar { short_values: "dPxoC", ..Grammar::default() };
    let options = call.options(&grammar);
    if options.has(&["l", "t", "v", "Z", "p", "c", "list", "test", "stdout"]) {
        for path in options.operands.iter().take(1) {
            call.read(path, false, "");
        }
        return;
    }
    for archive in options.operands.iter().take(1) {
        call.read(archive, false, "unpack");
        let here = word(".", archive);
        call.write(options.value(&["d"]).unwrap_or(&here), "unpack");
    }
}

/// `zip`, `7z a`, `rar a`: the archive first, then what goes into it.
pub(super) fn pack(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: if call.program() == "zip" { "bnPtxisT" } else { "" },
        short_attached: if call.program() == "zip" { "" } else { "pmvtoxirws" },
        long: &["unzip-command=", "out=", "output-file=", "password=", "exclude=", "temp-path="],
        ..Grammar::default()
    };
    // `zip -T -TT 'cmd'` runs a command: `-T` takes no value, `-TT` does.
    let arguments = call.arguments();
    if let Some(at) = arguments.iter().position(|a| a.text == "-TT" || a.text == "--unzip-command")
        && let Some(command) = arguments.get(at + 1)
    {
        call.shell(command, "zip -TT");
    }
    let grammar =
        if call.program() == "zip" { Grammar { short_values: "bnPtxis", ..grammar } } else { grammar };
    let options = call.options(&grammar);
    let mut operands = options.operands.as_slice();
    if call.program() != "zip" {
        match operands.split_first() {
            Some((verb, rest)) if matches!(verb.text.as_str(), "a" | "u") => operands = rest,
            Some((verb, rest)) if matches!(verb.text.as_str(), "x" | "e") => {
                for archive in rest.iter().take(1) {
                    call.read(archive, false, "unpack");
                }
                return;
            }
            _ => return,
        }
    }
    let Some((archive, sources)) = operands.split_first() else { return };
    call.write(archive, "pack");
    let encrypts = match call.program() {
        "zip" => options.has(&["e", "P", "encrypt", "password"]),
        _ => options.has(&["p", "password"]) || arguments.iter().any(|a| a.text.starts_with("-hp")),
    };
    let detail = if encrypts { "encrypt" } else { "pack" };
    for path in sources {
        call.read(path, true, detail);
        let moves = call.program() == "zip" && options.has(&["m", "move"]);
        if moves || arguments.iter().any(|a| a.text == "-sdel") {
            call.delete(path, true, false, "pack");
        }
    }
}

/// `gzip`, `xz`, `zstd`, `gpg`-like filters over single files, and their `…cat` forms.
pub(super) fn compress(call: &mut Call<'_, '_>) {
    let grammar = Grammar { short_values: "STopM", long: &["suffix=", "threads="], ..Grammar::default() };
    for path in call.options(&grammar).operands {
        call.read(path, false, "pack");
    }
}

/// `cpio`: pass-through and extraction write below a folder.
pub(super) fn cpio(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "FIODECHMRW",
        long: &[
            "file=",
            "directory=",
            "extract",
            "create",
            "pass-through",
            "rsh-command=",
            "owner=",
            "to-stdout",
        ],
        ..Grammar::default()
    };
    let options = call.options(&grammar);
    if let Some(command) = options.value(&["rsh-command"]) {
        call.shell(command, "cpio");
    }
    if options.has(&["i", "extract"]) {
        let here = Argument { text: ".".to_owned(), ..Argument::default() };
        call.write(options.value(&["D", "directory"]).unwrap_or(&here), "unpack");
    } else if options.has(&["p", "pass-through"]) {
        for folder in options.operands {
            call.write(folder, "unpack");
        }
    }
}
