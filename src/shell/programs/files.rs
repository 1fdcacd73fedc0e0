//! Programs that copy, move, link, make and overwrite files.

use super::super::argument::Argument;
use super::call::{Call, base_name, join};
use super::options::{Grammar, Options};
use crate::shell::effect::EffectKind;
use crate::shell::programs::call::path_target;

const COPY: Grammar = Grammar {
    short_values: "tS",
    short_attached: "Z",
    long: &[
        "archive",
        "attributes-only",
        "backup=?",
        "copy-contents",
        "force",
        "interactive",
        "link",
        "dereference",
        "no-clobber",
        "no-dereference",
        "no-preserve=",
        "no-target-directory",
        "parents",
        "preserve=?",
        "recursive",
        "reflink=?",
        "remove-destination",
        "sparse=",
        "strip-trailing-slashes",
        "suffix=",
        "symbolic-link",
        "target-directory=",
        "update=?",
        "verbose",
        "one-file-system",
        "context=?",
        "help",
        "version",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

const INSTALL: Grammar = Grammar {
    short_values: "tSgmo",
    long: &[
        "backup=?",
        "compare",
        "directory",
        "group=",
        "mode=",
        "owner=",
        "preserve-timestamps",
        "strip",
        "strip-program=",
        "suffix=",
        "target-directory=",
        "no-target-directory",
        "verbose",
        "help",
        "version",
    ],
    ..COPY
};

/// Sources and, unless there is none, the destination of cp, mv, install and ln.
fn split<'a>(options: &Options<'a>) -> (Vec<&'a Argument>, Option<Argument>, bool) {
    let mut sources = options.operands.clone();
    if let Some(folder) = options.value(&["t", "target-directory"]) {
        return (sources, Some(folder.clone()), true);
    }
    let destination = if sources.len() > 1 { sources.pop() } else { None };
    let into = sources.len() > 1 && !options.has(&["T", "no-target-directory"]);
    (sources, destination.cloned(), into)
}

/// Where copies of the sources end up. What could be a folder as well as a file counts as both.
fn destinations(sources: &[&Argument], destination: &Argument, into: bool) -> Vec<Argument> {
    let text = destination.text.as_str();
    let last = base_name(text);
    let folder = into || text.ends_with('/') || matches!(last, "" | "." | ".." | "~");
    let maybe = folder || (!last.contains('.') && (text.starts_with('/') || text.starts_with('~')));
    let mut all = Vec::new();
    if !folder {
        all.push(destination.clone());
    }
    if maybe {
        all.extend(sources.iter().filter(|s| !base_name(&s.text).is_empty()).map(|source| {
            let mut path = join(destination, base_name(&source.text));
            path.has_glob = source.has_glob || destination.has_glob;
            path
        }));
    }
    all
}

/// `cp` and its relatives.
pub(super) fn cp(call: &mut Call<'_, '_>) {
    let options = call.options(&COPY);
    let recursive = options.has(&["r", "R", "a", "recursive", "archive"]);
    let (sources, destination, into) = split(&options);
    for source in &sources {
        call.read(source, recursive, "copy");
    }
    let Some(destination) = destination else { return };
    for path in destinations(&sources, &destination, into) {
        call.write(&path, "copy");
    }
}

/// `mv`: what is moved is gone from where it was.
pub(super) fn mv(call: &mut Call<'_, '_>) {
    let options = call.options(&COPY);
    let (sources, destination, into) = split(&options);
    let Some(destination) = destination else { return };
    let lost = destination.text == "/dev/null";
    for source in &sources {
        call.read(source, true, "move");
        call.delete(source, true, lost || options.has(&["f", "force"]), if lost { "" } else { "move" });
    }
    for path in destinations(&sources, &destination, into) {
        call.write(&path, "move");
    }
}

/// `install`: a copy with a mode, or new folders.
pub(super) fn install(call: &mut Call<'_, '_>) {
    let options = call.options(&INSTALL);
    if options.has(&["d", "directory"]) {
        for folder in &options.operands {
            call.write(folder, "mkdir");
            mode_of(call, folder, &options);
        }
        return;
    }
    let (sources, destination, into) = split(&options);
    for source in &sources {
        call.read(source, false, "copy");
    }
    let Some(destination) = destination else { return };
    for path in destinations(&sources, &destination, into) {
        call.write(&path, "copy");
        mode_of(call, &path, &options);
    }
}

fn mode_of(call: &mut Call<'_, '_>, path: &Argument, options: &Options<'_>) {
    if let Some(mode) = options.value(&["m", "mode"]) {
        call.tell(EffectKind::ChangeMode, Some(path_target(path)), &mode.text);
    }
}

/// `ln`: the link is written, and what it points to can be read through it.
pub(super) fn ln(call: &mut Call<'_, '_>) {
    let options = call.options(&COPY);
    let (sources, destination, into) = split(&options);
    for source in &sources {
        call.read(source, false, "link");
    }
    let Some(destination) = destination else { return };
    for path in destinations(&sources, &destination, into) {
        call.write(&path, "link");
    }
}

/// `tee` and `sponge`: standard input into files.
pub(super) fn tee(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        long: &["append", "ignore-interrupts", "output-error=?", "help", "version"],
        ..Grammar::default()
    };
    let options = call.options(&grammar);
    let detail = if options.has(&["a", "append"]) { "append" } else { "" };
    for path in &options.operands {
        call.write(path, detail);
    }
}

/// `truncate`: files are cut.
pub(super) fn truncate(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "sr",
        long: &["no-create", "io-blocks", "reference=", "size=", "help", "version"],
        ..Grammar::default()
    };
    for path in call.options(&grammar).operands {
        call.write(path, "truncate");
    }
}

/// `touch`: files come to be, nothing is lost.
pub(super) fn touch(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "drt",
        long: &["no-create", "date=", "no-dereference", "reference=", "time=", "help", "version"],
        ..Grammar::default()
    };
    for path in call.options(&grammar).operands {
        call.write(path, "touch");
    }
}

/// `mkdir`: folders come to be.
pub(super) fn mkdir(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "m",
        short_attached: "Z",
        long: &["mode=", "parents", "verbose", "context=?", "help", "version"],
        ..Grammar::default()
    };
    let options = call.options(&grammar);
    for path in &options.operands {
        call.write(path, "mkdir");
        mode_of(call, path, &options);
    }
}

/// `dd`: operands are `name=value`.
pub(super) fn dd(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let operand = |name: &str| {
        let found = arguments.iter().rev().find(|argument| argument.text.starts_with(name))?;
        Some(super::options::part(found, &found.text[name.len()..]))
    };
    if let Some(input) = operand("if=") {
        call.read(&input, false, "dd");
    }
    if let Some(output) = operand("of=") {
        if output.text.starts_with("/dev/") || output.text.starts_with("\\\\.\\") {
            call.disk(&output, true, "dd");
        } else {
            call.write(&output, "dd");
        }
    }
}

/// `patch`: changes files that the patch names.
pub(super) fn patch(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "pioBDFrdVYzg",
        long: &["input=", "output=", "strip=", "directory=", "reject-file=", "fuzz=", "prefix=", "suffix="],
        ..Grammar::default()
    };
    let options = call.options(&grammar);
    if let Some(output) = options.value(&["o", "output"]) {
        call.write(output, "patch");
    } else if let Some(file) = options.operands.first() {
        call.write(file, "patch");
    }
    if let Some(input) = options.value(&["i", "input"]) {
        call.read(input, false, "");
    }
}

/// `split` and `csplit`: pieces of a file.
pub(super) fn split_file(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "abClntfk",
        long: &["bytes=", "lines=", "number=", "suffix-length=", "additional-suffix=", "filter=", "prefix="],
        ..Grammar::default()
    };
    let options = call.options(&grammar);
    if let Some(file) = options.operands.first() {
        call.read(file, false, "");
    }
    // `csplit -f prefix file pattern`.
    let prefix = match call.program() {
        "csplit" => options.value(&["f", "prefix"]),
        _ => options.operands.get(1).copied(),
    };
    if let Some(prefix) = prefix {
        call.write(prefix, "split");
    }
    if let Some(filter) = options.value(&["filter"]) {
        call.shell(filter, "split");
    }
}
