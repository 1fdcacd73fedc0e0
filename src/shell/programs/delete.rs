//! Programs that delete files: rm and its relatives.

use super::super::argument::HOLE;
use super::call::Call;
use super::options::Grammar;

const RM: Grammar = Grammar {
    short_values: "",
    short_attached: "",
    long: &[
        "recursive",
        "force",
        "no-preserve-root",
        "preserve-root=?",
        "one-file-system",
        "interactive=?",
        "dir",
        "verbose",
        "help",
        "version",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

const SHRED: Grammar = Grammar {
    short_values: "ns",
    long: &[
        "force",
        "iterations=",
        "random-source=",
        "size=",
        "remove=?",
        "verbose",
        "exact",
        "zero",
        "help",
        "version",
    ],
    ..RM
};

/// `rm`, `srm`, `trash` and programs like them.
pub(super) fn rm(call: &mut Call<'_, '_>) {
    let options = call.options(&RM);
    if options.has(&["help", "version"]) {
        return;
    }
    let recursive = options.has(&["r", "R", "recursive"]);
    let forced = options.has(&["f", "force", "no-preserve-root"]);
    for path in &options.operands {
        // `rm -r "$x"/*` without an `$x` deletes all there is.
        let all_below = path.text.strip_prefix(HOLE).and_then(|rest| rest.strip_prefix('/'));
        let may_be_root = path.begins_unset
            && path.has_glob
            && all_below.is_some_and(|rest| rest.contains('*') && rest.bytes().all(|b| b"*./?".contains(&b)));
        // `rm -rf "$x"`: nobody sees what it deletes.
        let detail = match (may_be_root, path.begins_unset && path.is_unknown()) {
            (true, _) => "unset variable",
            (_, true) => "unknown variable",
            _ => "",
        };
        call.delete(path, recursive, forced, detail);
    }
}

/// `unlink`: one file.
pub(super) fn unlink(call: &mut Call<'_, '_>) {
    for path in call.options(&RM).operands {
        call.delete(path, false, false, "");
    }
}

/// `rmdir`: folders that are empty.
pub(super) fn rmdir(call: &mut Call<'_, '_>) {
    for path in call.options(&RM).operands {
        call.delete(path, false, false, "empty");
    }
}

/// Trash bins, which always take whole folders.
pub(super) fn trash(call: &mut Call<'_, '_>) {
    for path in call.options(&RM).operands {
        call.delete(path, true, false, "trash");
    }
}

/// `shred`: overwrites, and deletes when asked to.
pub(super) fn shred(call: &mut Call<'_, '_>) {
    let options = call.options(&SHRED);
    if options.has(&["help", "version"]) {
        return;
    }
    for path in &options.operands {
        if path.text.starts_with("/dev/") {
            call.disk(path, true, "shred");
        } else {
            call.write(path, "shred");
        }
        if options.has(&["u", "remove"]) {
            call.delete(path, false, true, "shred");
        }
    }
}

/// `wipe`, `scrub`: overwrite files, folders and devices.
pub(super) fn wipe(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar { short_values: "bSDXQlMp", ..RM });
    for path in &options.operands {
        if path.text.starts_with("/dev/") {
            call.disk(path, true, "wipe");
        } else {
            call.delete(path, options.has(&["r"]), options.has(&["f"]), "wipe");
        }
    }
}
