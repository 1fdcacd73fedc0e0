//! PowerShell: commands and their arguments by lines, pipes and semicolons; code that is fetched or decoded and run.

use super::super::argument::{Argument, HOLE};
use super::super::effect::{EffectKind, Target, TargetKind};
use super::super::programs::{Attributes, Sink};
use super::tell;

/// Commands of one script that are looked at.
const COMMANDS_MAX: usize = 1 << 16;

/// Cmdlets that list files for the next one, and those that delete what they are given; with their short names.
const LISTERS: &[&str] = &["get-childitem", "gci", "get-item", "gi", "ls", "dir"];
const REMOVERS: &[&str] = &["remove-item", "ri", "rm", "rmdir", "del", "erase", "rd"];

/// See [`super::analyse`].
pub(super) fn analyse(text: &Argument, sink: &mut dyn Sink) {
    let script = super::powershell_fold::fold(&text.text).unwrap_or_else(|| {
        sink.limited();
        text.text.as_str().into()
    });
    let squeezed: String = script.to_ascii_lowercase().chars().filter(|c| !matches!(c, '`' | '^')).collect();
    whole(&squeezed, sink);
    let mut listed: Vec<String> = Vec::new();
    for (index, mut pipeline) in commands(&script).into_iter().enumerate() {
        if index >= COMMANDS_MAX {
            return;
        }
        // `gci C:\ | ri -r`: what is listed is what is deleted.
        let is = |words: &[String], names: &[&str]| {
            words.first().is_some_and(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
        };
        if is(&pipeline, REMOVERS) && !pipeline[1..].iter().any(|word| !word.starts_with('-')) {
            pipeline.append(&mut listed);
        }
        listed = if is(&pipeline, LISTERS) { pipeline[1..].to_vec() } else { Vec::new() };
        let argv: Vec<Argument> =
            pipeline.into_iter().map(|word| Argument::constant(word, text.span.clone())).collect();
        if argv.first().is_some_and(|program| !program.text.starts_with('$') && !program.text.contains('=')) {
            sink.run(&argv, "powershell");
        }
    }
}

/// What is told by the text as a whole: fetched code, decoded code, a connection with a shell on it.
fn whole(text: &str, sink: &mut dyn Sink) {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let runs = has(&[
        "iex ",
        "iex(",
        "|iex",
        "| iex",
        "invoke-expression",
        ".invokescript",
        "[scriptblock]::create",
    ]);
    let fetches = has(&[
        "downloadstring",
        "downloaddata",
        "invoke-webrequest",
        "iwr ",
        "irm ",
        "invoke-restmethod",
        "wget ",
        "curl ",
    ]);
    if runs && fetches {
        let url = text.find("http").map(|at| {
            let rest = &text[at..];
            let end = rest
                .find(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ')' | ';' | '|'))
                .unwrap_or(rest.len());
            Target { text: rest[..end].to_owned(), has_glob: false, kind: TargetKind::Network }
        });
        tell(sink, EffectKind::FetchAndExecute, url, "powershell");
    } else if runs
        && has(&["frombase64string", "[convert]::", "-join", "-bxor", "gzipstream", "deflatestream"])
    {
        sink.decoded();
        tell(sink, EffectKind::OpaqueExecution, None, "powershell");
    }
    if has(&["net.sockets.tcpclient", "net.sockets.udpclient"])
        && (runs || has(&["start-process", "cmd.exe", "process"]))
    {
        tell(sink, EffectKind::ReverseShell, None, "powershell");
    }
    for (call, recursive) in [("io.directory]::delete(", true), ("io.file]::delete(", false)] {
        for rest in text.split(call).skip(1).take(COMMANDS_MAX) {
            let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else { continue };
            let path = rest[1..].split(quote).next().unwrap_or_default();
            let target = Target { text: path.to_owned(), has_glob: false, kind: TargetKind::Path };
            let attributes = Attributes { recursive, forced: true, detail: String::new() };
            sink.effect(EffectKind::DeletePath, Some(target), attributes);
        }
    }
    if has(&["net.sockets.tcplistener"]) && (runs || has(&["start-process", "cmd.exe", "process"])) {
        tell(sink, EffectKind::BindShell, None, "powershell");
    }
}

/// Words of each command; quotes are removed, a back-tick escapes, variables are not known.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_default();
                for c in chars.by_ref() {
                    if c == '\'' {
                        break;
                    }
                    word.push(c);
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '`' => word.extend(chars.next()),
                        '$' => {
                            let name = variable(&mut chars);
                            word.push_str(&value(&name));
                        }
                        _ => word.push(c),
                    }
                }
            }
            '`' => match chars.next() {
                // A line that goes on.
                Some('\n') | None => {}
                Some(c) => word.get_or_insert_default().push(c),
            },
            '$' => {
                let name = variable(&mut chars);
                word.get_or_insert_default().push_str(&value(&name));
            }
            '#' if word.is_none() => {
                while chars.peek().is_some_and(|c| *c != '\n') {
                    chars.next();
                }
            }
            ';' | '|' | '\n' | '{' | '}' | '(' | ')' | '&' => {
                words.extend(word.take());
                if !words.is_empty() {
                    all.push(std::mem::take(&mut words));
                }
            }
            _ if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if !words.is_empty() {
        all.push(words);
    }
    all
}

fn variable(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut name = String::new();
    while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || matches!(c, '_' | ':')) {
        name.push(c);
    }
    name
}

fn value(name: &str) -> String {
    match name.to_ascii_lowercase().as_str() {
        "home" | "env:userprofile" | "env:home" => "~".to_owned(),
        "env:systemroot" | "env:windir" => "C:/Windows".to_owned(),
        "env:systemdrive" => "C:".to_owned(),
        "pwd" => ".".to_owned(),
        "null" | "true" | "false" => format!("${name}"),
        _ => HOLE.to_string(),
    }
}
