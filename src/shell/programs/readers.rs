//! Programs that read the files named to them.

use super::super::argument::Argument;
use super::super::effect::EffectKind;
use super::call::{Call, path_target};
use super::options::Grammar;
use super::{Attributes, Input, Language};

/// Short options with values of programs whose every operand is a file.
fn plain_values(program: &str) -> &'static str {
    match program {
        "head" | "tail" => "ncs",
        "nl" => "bdfhilnsvw",
        "od" => "AjNStw",
        "xxd" => "cglos",
        "hexdump" | "hd" => "nes",
        "strings" => "net",
        "base64" | "base32" | "basenc" => "wbDio",
        "cut" => "bcdfs",
        "sort" => "kotTS",
        "uniq" => "fsw",
        "fold" | "fmt" => "wgp",
        "pr" => "hlnoswNDS",
        "paste" => "d",
        "column" => "scotNJ",
        "less" | "more" | "most" => "bhjkopPtTxy",
        "bat" | "batcat" => "lrHm",
        "diff" | "sdiff" | "diff3" => "CUIxXSLWF",
        "cmp" => "in",
        "comm" | "join" => "12jteao",
        "wc" | "file" => "fFmP",
        "iconv" => "fto",
        "tac" => "s",
        "stat" => "cftx",
        "md5sum" | "sha1sum" | "sha256sum" => "",
        _ => "",
    }
}

/// Long options with values of the same programs.
const PLAIN_LONG: &[&str] = &[
    "lines=",
    "bytes=",
    "wrap=",
    "delimiter=",
    "fields=",
    "characters=",
    "key=",
    "output=",
    "field-separator=",
    "format=",
    "skip-bytes=",
    "read-bytes=",
    "width=",
    "language=",
    "theme=",
    "style=",
    "unified=?",
    "context=?",
    "from-code=",
    "to-code=",
    "separator=",
    "buffer-size=",
    "temporary-directory=",
    "line-range=",
    "color=?",
    "pid=",
    "follow=?",
    "retry",
    "printf=",
    "files0-from=",
    "batch-size=",
    "parallel=",
    "help",
    "version",
];

/// Whether a program only looks at a file's name, size or kind.
fn harmless(program: &str) -> bool {
    matches!(
        program,
        "wc" | "file" | "stat" | "ls" | "md5sum" | "sha1sum" | "sha256sum" | "sha512sum" | "cksum" | "du"
    )
}

/// Programs whose operands are all files to read.
pub(super) fn plain(call: &mut Call<'_, '_>) {
    let program = call.program();
    let grammar = Grammar { short_values: plain_values(program), long: PLAIN_LONG, ..Grammar::default() };
    let options = call.options(&grammar);
    if harmless(program) {
        return;
    }
    if matches!(program, "less" | "more" | "most") {
        // `less +'!command' file`
        for command in
            call.arguments().iter().filter(|a| a.text.starts_with("+!") || a.text.starts_with("++!"))
        {
            let script = command.text.trim_start_matches(['+', '!']);
            call.shell(&super::options::part(command, script), "less +!");
        }
    }
    let mut operands = options.operands.clone();
    // `uniq in out` and `xxd in out` write their second operand.
    if matches!(program, "uniq" | "xxd") && operands.len() > 1 {
        let output = operands.remove(1);
        call.write(output, "");
    }
    if matches!(program, "iconv" | "sort")
        && let Some(output) = options.value(&["o", "output"])
    {
        call.write(output, "");
    }
    for path in operands {
        // Old style counts: `head -5`, `tail +3`.
        if !path.text.starts_with('+') {
            call.read(path, false, "");
        }
    }
}

const GREP: Grammar = Grammar {
    short_values: "efmABCdDgtTrEjM",
    short_attached: "",
    long: &[
        "regexp=",
        "file=",
        "max-count=",
        "after-context=",
        "before-context=",
        "context=",
        "include=",
        "exclude=",
        "exclude-dir=",
        "exclude-from=",
        "color=?",
        "colour=?",
        "binary-files=",
        "devices=",
        "directories=",
        "label=",
        "glob=",
        "iglob=",
        "type=",
        "type-not=",
        "replace=",
        "max-depth=",
        "sort=",
        "threads=",
        "engine=",
        "encoding=",
        "pre=",
        "pre-glob=",
        "recursive",
        "files",
        "ignore-file=",
        "max-filesize=",
        "files-with-matches",
        "files-without-match",
        "count",
        "quiet",
        "silent",
    ],
    stops_at_operand: false,
    single_dash_long: false,
};

/// `grep`, `rg`, `ag`, `ack`: the first operand is the pattern unless an option gave one.
pub(super) fn grep(call: &mut Call<'_, '_>) {
    // The letters that take values differ: `-r` and `-E` of grep, `-r` (replace) and `-E` (encoding) of rg.
    let ripgrep = matches!(call.program(), "rg" | "ag" | "ack");
    let short_values = if ripgrep { "efmABCgtTrEjMd" } else { "efmABCdD" };
    let options = call.options(&Grammar { short_values, ..GREP });
    let has_pattern = options.has(&["e", "regexp", "f", "file", "files"]);
    for file in options.values(&["f", "file"]) {
        call.read(file, false, "");
    }
    if let Some(program) = options.value(&["pre"]) {
        call.run(std::slice::from_ref(program), "rg --pre");
    }
    // Names, counts and a yes or no tell nothing of what a file holds beyond the pattern.
    let detail = if options.has(&["l", "L", "q", "c", "files-with-matches", "count", "quiet", "silent"]) {
        "match"
    } else {
        ""
    };
    let recursive = ripgrep || options.has(&["r", "R", "recursive"]);
    // What is looked for in a whole tree: words that stand beside secrets are for the rules to know.
    let patterns: Vec<&str> = options
        .values(&["e", "regexp"])
        .chain(options.operands.first().copied().filter(|_| !has_pattern))
        .map(|pattern| pattern.text.as_str())
        .collect();
    if recursive {
        for path in options.operands.iter().skip(usize::from(!has_pattern)) {
            let detail = format!("grep {}", patterns.join(" ").to_ascii_lowercase());
            call.effect(
                EffectKind::SearchFiles,
                Some(path_target(path)),
                Attributes { recursive, forced: false, detail },
            );
        }
    }
    for path in options.operands.iter().skip(usize::from(!has_pattern)) {
        call.read(path, recursive, detail);
    }
}

/// `sed`: the script is the first operand unless an option gave one; `-i` writes.
pub(super) fn sed(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "efl",
        short_attached: "iIE",
        long: &[
            "expression=",
            "file=",
            "in-place=?",
            "line-length=",
            "quiet",
            "silent",
            "regexp-extended",
            "separate",
        ],
        ..Grammar::default()
    };
    let grammar = Grammar { short_attached: "iI", ..grammar };
    let options = call.options(&grammar);
    let has_script = options.has(&["e", "expression", "f", "file"]);
    let mut operands = options.operands.as_slice();
    for script in options.values(&["e", "expression"]) {
        super::sed_script::analyse(call, script);
    }
    for file in options.values(&["f", "file"]) {
        call.read(file, false, "");
    }
    if !has_script && let Some((script, rest)) = operands.split_first() {
        super::sed_script::analyse(call, script);
        operands = rest;
    }
    // BSD `sed -i '' script file`: the empty suffix was taken for the script.
    if options.has(&["i", "I"]) && !has_script && options.operand(0).is_empty() && !operands.is_empty() {
        super::sed_script::analyse(call, operands[0]);
        operands = &operands[1..];
    }
    let in_place = options.has(&["i", "I", "in-place"]);
    for path in operands {
        if in_place {
            call.write(path, "edit");
        } else {
            call.read(path, false, "");
        }
    }
}

/// `awk`: the program is the first operand unless `-f` gave it.
pub(super) fn awk(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "FvfeiElb",
        long: &["field-separator=", "assign=", "file=", "source=", "include=", "exec=", "load="],
        stops_at_operand: true,
        ..Grammar::default()
    };
    let options = call.options(&grammar);
    // `-v name=value` holds before the program begins.
    let mut assigned = String::new();
    for pair in options.values(&["v", "assign"]) {
        if let Some((name, value)) = pair.text.split_once('=') {
            assigned.push_str(&format!("{name} = \"{}\"\n", value.replace('"', "\\\"")));
        }
    }
    let with = |script: &Argument| super::options::part(script, &format!("{assigned}{}", script.text));
    for file in options.values(&["f", "file", "E", "exec"]) {
        call.read(file, false, "");
    }
    let mut scripts: Vec<&Argument> = options.values(&["e", "source"]).collect();
    let mut operands = options.operands.as_slice();
    if !options.has(&["f", "file", "e", "source", "E", "exec"])
        && let Some((script, rest)) = operands.split_first()
    {
        scripts.push(script);
        operands = rest;
    }
    let in_place = options.values(&["i", "include"]).any(|v| v.text == "inplace");
    // What is read is known before the script runs, which may print it to a command.
    for path in operands.iter().filter(|operand| !operand.text.contains('=')) {
        if in_place {
            call.write(path, "edit");
        } else {
            call.read(path, false, "");
        }
    }
    for script in scripts {
        call.sink.script(Language::Awk, &with(script), "awk");
    }
}

/// `jq` and `yq`: the filter first, then files.
pub(super) fn jq(call: &mut Call<'_, '_>) {
    let arguments = call.arguments();
    let (mut at, mut filter, mut in_place) = (0, false, false);
    let mut files: Vec<&Argument> = Vec::new();
    let mut rest_are_data = false;
    while let Some(argument) = arguments.get(at) {
        at += 1;
        match argument.text.as_str() {
            "--arg" | "--argjson" => at += 2,
            "--slurpfile" | "--rawfile" => {
                files.extend(arguments.get(at + 1));
                at += 2;
            }
            "--args" | "--jsonargs" => rest_are_data = true,
            "--indent" | "-L" | "-o" | "-p" | "--output-format" | "--input-format" => at += 1,
            "-f" | "--from-file" => {
                files.extend(arguments.get(at));
                at += 1;
                filter = true;
            }
            "-i" | "--inplace" | "--in-place" => in_place = true,
            text if text.starts_with('-') && text.len() > 1 => {}
            // yq has verbs before the filter.
            "eval" | "e" | "eval-all" | "ea" if call.program() == "yq" && !filter => {}
            _ if !filter => filter = true,
            _ if rest_are_data => {}
            _ => files.push(argument),
        }
    }
    for file in files {
        if in_place {
            call.write(file, "edit");
        } else {
            call.read(file, false, "");
        }
    }
}

/// `vim`, `ex`, `emacs`, `nano`, `ed`: files are opened; commands given as options run.
pub(super) fn editor(call: &mut Call<'_, '_>) {
    let grammar = Grammar {
        short_values: "csSuiTwWU",
        long: &[
            "cmd=",
            "eval=",
            "load=",
            "batch",
            "version",
            "help",
            "remote-send=",
            "remote-expr=",
            "funcall=",
        ],
        ..Grammar::default()
    };
    let grammar = Grammar { single_dash_long: call.program() == "emacs", ..grammar };
    // In Ex mode `-s` means silent and takes no value.
    let ex_mode = call.program() == "ex"
        || call.arguments().iter().any(|a| matches!(a.text.as_str(), "-e" | "-E" | "-es" | "-Es"));
    let grammar = if ex_mode { Grammar { short_values: "cSuiTwWU", ..grammar } } else { grammar };
    let options = call.options(&grammar);
    if matches!(call.program(), "ed" | "ex") {
        line_editor(call);
    }
    let mut commands: Vec<Argument> = options.values(&["c", "cmd"]).cloned().collect();
    commands.extend(call.arguments().iter().filter_map(|argument| {
        let text = argument.text.strip_prefix('+')?;
        Some(super::options::part(argument, text))
    }));
    for command in &commands {
        let text = command.text.trim_start_matches([':', ' ']);
        let runs = text.starts_with(['!', '%', 'r']) || text.starts_with("silent");
        if let Some((_, script)) = text.split_once('!').filter(|_| runs) {
            call.shell(&super::options::part(command, script), "vim -c");
        }
        if matches!(text, "sh" | "she" | "shel" | "shell") || text.starts_with("term") {
            call.run(&[super::call::word("sh", command)], "vim -c");
        }
        for (keyword, language) in EMBEDDED {
            if let Some(script) = text.strip_prefix(keyword) {
                call.sink.script(*language, &super::options::part(command, script.trim_start()), "vim -c");
            }
        }
        for function in ["system(", "systemlist(", "job_start(", "jobstart(", "term_start(", "termopen("] {
            if let Some((_, rest)) = text.split_once(function)
                && let Some(quote) = rest.trim_start().chars().next().filter(|c| matches!(c, '"' | '\''))
            {
                let script = rest.trim_start()[1..].split(quote).next().unwrap_or_default();
                call.shell(&super::options::part(command, script), "vim -c");
            }
        }
        // `execute "!command"`: the command stands in a text.
        if text.starts_with("exe")
            && let Some((_, script)) = text.split_once('!')
        {
            let script = script.trim_end_matches(['"', '\'']);
            call.shell(&super::options::part(command, script), "vim -c");
        }
    }
    for command in &commands {
        let text = command.text.trim_start_matches([':', ' ']);
        let (verb, file) = text.split_once(' ').unwrap_or((text, ""));
        let file = super::options::part(command, file.trim());
        match verb.trim_end_matches('!') {
            "r" | "read" | "e" | "edit" => call.read(&file, false, "edit"),
            "w" | "write" | "sav" | "saveas" if !file.text.is_empty() => call.write(&file, "edit"),
            _ => {}
        }
    }
    for expression in options.values(&["eval"]) {
        lisp(call, expression);
    }
    for path in options.operands.iter().filter(|operand| !operand.text.starts_with('+')) {
        call.read(path, false, "edit");
    }
}

/// Commands of `vim` whose rest is code of another language.
const EMBEDDED: &[(&str, Language)] = &[
    ("python3 ", Language::Python),
    ("python ", Language::Python),
    ("pythonx ", Language::Python),
    ("py3 ", Language::Python),
    ("pyx ", Language::Python),
    ("py ", Language::Python),
    ("lua ", Language::Lua),
    ("perl ", Language::Perl),
    ("ruby ", Language::Ruby),
];

/// Commands of `ed` from its standard input: files opened, files written, `!command`.
fn line_editor(call: &mut Call<'_, '_>) {
    let Input::Text(script) = call.invocation.input else { return };
    for line in script.text.lines() {
        let line =
            line.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$' | '%' | '.' | ' '));
        let Some((command, rest)) = line.split_at_checked(1) else { continue };
        let file = super::options::part(script, rest.trim());
        match command {
            "!" => call.shell(&file, "ed !"),
            "e" | "r" | "E" if rest.starts_with(' ') => call.read(&file, false, "edit"),
            "w" | "W" if rest.starts_with(' ') => call.write(&file, "edit"),
            _ => {}
        }
    }
}

/// Shell commands in a Lisp expression, as constant strings behind the functions that run one.
fn lisp(call: &mut Call<'_, '_>, expression: &Argument) {
    const RUNS: [&str; 6] = [
        "shell-command",
        "term",
        "call-process-shell-command",
        "async-shell-command",
        "start-process",
        "call-process",
    ];
    let text = expression.text.as_str();
    if !RUNS.iter().any(|function| text.contains(function)) {
        return;
    }
    if let Some(start) = text.find('"') {
        let inner = &text[start + 1..];
        let end = inner.rfind('"').unwrap_or(inner.len());
        call.shell(&super::options::part(expression, &inner[..end]), "emacs --eval");
    }
}
