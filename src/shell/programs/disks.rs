//! Programs that format, partition and wipe devices, volumes and pools.

use super::super::argument::Argument;
use super::call::Call;
use super::options::{Grammar, Options};

/// `mkfs.*` and its kin: the device is the first operand that is one; numbers, labels and folders are none.
pub(super) fn format(call: &mut Call<'_, '_>) {
    let options = call.options(&MKFS);
    if options.has(&["help", "version", "V"]) {
        return;
    }
    for path in options.operands.iter().filter(|operand| looks_like_device(operand)) {
        call.disk(path, true, "format");
    }
}

const MKFS: Grammar = Grammar {
    short_values: "tTLlUNOEbiImgGrdCeoJs",
    long: &["type=", "label=", "uuid=", "help", "version"],
    short_attached: "",
    stops_at_operand: false,
    single_dash_long: false,
};

/// Whether an operand names a device, or could: an image in a file is somebody's own.
fn looks_like_device(operand: &Argument) -> bool {
    let text = operand.text.as_str();
    text.starts_with("/dev/") || text.starts_with("\\\\.\\") || operand.is_unknown()
}

/// `fdisk`, `parted` and others that ask or are told what to change.
pub(super) fn partition(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "abcCHSstuwWXYobBNnATd",
        long: &[
            "list",
            "list-types",
            "help",
            "version",
            "label=",
            "sector-size=",
            "output=",
            "dump",
            "show-size",
            "verify",
            "show-geometry",
            "script",
            "json",
            "type=",
            "backup-file=",
            "print",
            "info=",
            "lock=?",
        ],
        ..Grammar::default()
    };
    // sgdisk spells its values differently: nothing but the device has to be found.
    let sgdisk = matches!(call.program(), "sgdisk" | "parted" | "sfdisk");
    let grammar = if sgdisk { Grammar { short_values: "", ..grammar } } else { grammar };
    let options = call.options(&grammar);
    let arguments = call.arguments();
    if options.has(&["help", "version"]) {
        return;
    }
    if reads_only(call.program(), &options) {
        if call.program() == "sgdisk" && options.has(&["b", "backup"]) {
            looked_at(call);
        }
        return;
    }
    for device in arguments.iter().filter(|argument| argument.text.starts_with("/dev/")) {
        call.disk(device, options.has(&["script", "s"]), "partition");
    }
}

/// Tools that erase, given a device and told to write nothing to it: the device is read.
fn looked_at(call: &mut Call<'_, '_>) {
    for device in call.arguments().iter().filter(|argument| argument.text.starts_with("/dev/")) {
        call.read(device, false, "device");
    }
}

/// Whether the options only show.
fn reads_only(program: &str, options: &Options<'_>) -> bool {
    let last = options.operands.last().map_or("", |operand| operand.text.as_str());
    match program {
        "fdisk" => options.has(&["l", "list", "s", "getsz", "x", "list-details"]),
        "sfdisk" => options.has(&[
            "l",
            "list",
            "d",
            "dump",
            "J",
            "json",
            "s",
            "show-size",
            "V",
            "verify",
            "F",
            "list-free",
            "g",
            "show-geometry",
            "T",
            "list-types",
            "show-pt-geometry",
        ]),
        "parted" => {
            options.has(&["l", "list"])
                || matches!(last, "print" | "p" | "free" | "list" | "devices" | "unit" | "help")
                || options.operands.iter().any(|o| o.text == "print") && options.operands.len() <= 3
        }
        "sgdisk" => {
            let changes = |given: &super::options::Given<'_>| {
                !matches!(
                    given.name,
                    "p" | "print"
                        | "i"
                        | "info"
                        | "v"
                        | "verify"
                        | "O"
                        | "print-mbr"
                        | "L"
                        | "list-types"
                        | "b"
                        | "backup"
                        | "D"
                        | "display-alignment"
                        | "E"
                        | "end-of-largest"
                        | "f"
                        | "first-in-largest"
                        | "F"
                        | "first-aligned-in-largest"
                        | "P"
                        | "pretend"
                )
            };
            !options.given.iter().any(changes)
        }
        "gdisk" => options.has(&["l"]),
        _ => false,
    }
}

/// `wipefs`, `blkdiscard`, `mkswap`, `badblocks -w`, `hdparm`, `nvme`, `cryptsetup`.
pub(super) fn wipe(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let has = |flags: &[&str]| arguments.iter().any(|a| flags.contains(&a.text.as_str()));
    let bundled = |letter: char| {
        arguments
            .iter()
            .any(|a| a.text.starts_with('-') && !a.text.starts_with("--") && a.text.contains(letter))
    };
    let destroys = match call.program() {
        "wipefs" => {
            (bundled('a') || bundled('o') || has(&["--all", "--offset"]))
                && !(bundled('n') || has(&["--no-act"]))
        }
        "badblocks" => bundled('w') || bundled('n'),
        "hdparm" => arguments.iter().any(|a| {
            let text = a.text.as_str();
            text.starts_with("--security-erase")
                || text.starts_with("--trim-sector")
                || text.starts_with("--write-sector")
                || text.starts_with("--make-bad-sector")
                || text.starts_with("--sanitize")
        }),
        "nvme" => has(&["format", "sanitize", "write", "write-zeroes", "delete-ns", "dsm"]),
        "cryptsetup" => has(&[
            "luksFormat",
            "luksErase",
            "erase",
            "reencrypt",
            "luksKillSlot",
            "luksRemoveKey",
            "convert",
        ]),
        "sg_format" | "sg_sanitize" => true,
        "debugfs" => bundled('w'),
        "blkdiscard" | "mkswap" => true,
        _ => false,
    };
    if call.program() == "wipefs" && !destroys && !(bundled('n') || has(&["--no-act"])) {
        looked_at(call);
    }
    if destroys && !has(&["--help", "--version"]) {
        let detail = call.program().to_owned();
        for device in arguments.iter().filter(|argument| looks_like_device(argument)) {
            call.disk(device, bundled('f') || has(&["--force"]), &detail);
        }
    }
}

/// Volume managers, arrays and pools: the names are told as devices that are lost.
pub(super) fn volumes(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar { short_values: "S", ..Grammar::default() });
    let program = call.program();
    let forced = options.has(&["f", "ff", "force", "y", "yes"]);
    let mut names = options.operands.clone();
    let destroys = match program {
        "lvremove" | "vgremove" | "pvremove" => true,
        "pvcreate" | "vgcreate" => forced && names.iter().any(|name| name.text.starts_with("/dev/")),
        "mdadm" => options.has(&["zero-superblock"]) || options.has(&["C", "create"]),
        "zpool" | "zfs" => {
            let verb = options.operand(0);
            names.drain(..names.len().min(1));
            matches!(verb, "destroy" | "labelclear") || (verb == "create" && options.has(&["f"]))
        }
        "btrfs" => {
            let verbs = (options.operand(0), options.operand(1));
            names.drain(..names.len().min(2));
            matches!(verbs, ("subvolume", "delete") | ("device", "delete" | "remove"))
        }
        "dmsetup" => matches!(options.operand(0), "remove" | "remove_all" | "wipe_table"),
        _ => false,
    };
    if destroys {
        let detail = format!("{program} {}", options.operand(0));
        let detail = if matches!(program, "zpool" | "zfs" | "dmsetup") { detail.as_str() } else { program };
        for name in names.iter().filter(|name| !name.text.is_empty()) {
            call.disk(name, forced, detail);
        }
    }
}

/// macOS `diskutil` and `asr`.
pub(super) fn diskutil(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let words: Vec<String> = arguments.iter().map(|a| a.text.to_ascii_lowercase()).collect();
    let verb = words.first().map_or("", String::as_str);
    let apfs =
        verb == "apfs" && words.get(1).is_some_and(|w| w.starts_with("delete") || w.starts_with("erase"));
    let destroys = verb.starts_with("erase")
        || matches!(
            verb,
            "zerodisk" | "randomdisk" | "secureerase" | "partitiondisk" | "reformat" | "resizevolume"
        )
        || apfs;
    if destroys && let Some(device) = arguments.last().filter(|_| arguments.len() > 1) {
        call.disk(device, true, verb);
    }
}
