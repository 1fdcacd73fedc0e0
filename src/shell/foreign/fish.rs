//! Scripts of fish.

use super::lines::{first_word, split, substituted, without_comment};

const QUOTES: &[char] = &['"', '\''];

/// What a block that is open ends with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Group,
    Loop,
    Function(bool),
}

pub(super) fn posix(text: &str) -> String {
    let (mut out, mut blocks, mut hooks) = (String::with_capacity(text.len() * 2), Vec::new(), Vec::new());
    for line in text.lines() {
        let line = without_comment(line, QUOTES);
        let mut is_joined = true;
        for statement in split(line, ';', QUOTES) {
            let made = statement_of(statement, &mut blocks, &mut hooks);
            if made.is_empty() {
                continue;
            }
            if !is_joined {
                out.push_str("; ");
            }
            out.push_str(&made);
            // Behind what opens a block nothing separates.
            is_joined = made.ends_with('{') || made.ends_with("do");
            if is_joined {
                out.push(' ');
            }
        }
        out.push('\n');
    }
    out
}

/// One statement; `blocks` are open around it, `hooks` the names of functions that events run.
fn statement_of(statement: &str, blocks: &mut Vec<Block>, hooks: &mut Vec<String>) -> String {
    let (word, rest) = first_word(statement);
    match word {
        "function" => {
            let (name, options) = first_word(rest);
            let is_hook = options.contains("--on-") || options.split_whitespace().any(|one| one == "-e");
            if is_hook {
                hooks.push(name.to_owned());
            }
            blocks.push(Block::Function(is_hook));
            format!("{name}() {{")
        }
        "begin" => opened(blocks, rest, hooks),
        "if" => opened(blocks, rest, hooks),
        "switch" => opened(blocks, ":", hooks),
        "while" => {
            blocks.push(Block::Loop);
            format!("while {}; do", command(rest))
        }
        "for" => {
            blocks.push(Block::Loop);
            format!("for {}; do", command(rest))
        }
        "else" => match rest.strip_prefix("if ") {
            Some(test) => command(test),
            None => ":".to_owned(),
        },
        "case" => ":".to_owned(),
        "end" => match blocks.pop() {
            Some(Block::Loop) => "done".to_owned(),
            Some(Block::Group) => "}".to_owned(),
            Some(Block::Function(true)) => {
                format!("}}; add-zsh-hook precmd {}", hooks.pop().unwrap_or_default())
            }
            Some(Block::Function(false)) => "}".to_owned(),
            None => String::new(),
        },
        "and" | "or" => command(rest),
        "not" => format!("! {}", command(rest)),
        "set" => set(rest),
        "alias" if !rest.contains('=') => {
            let (name, text) = first_word(rest);
            format!("alias {name}={text}")
        }
        _ => command(statement),
    }
}

fn opened(blocks: &mut Vec<Block>, rest: &str, hooks: &mut Vec<String>) -> String {
    blocks.push(Block::Group);
    match rest.is_empty() {
        true => "{".to_owned(),
        false => format!("{{ {}", statement_of(rest, blocks, hooks)),
    }
}

/// `set -gx NAME value`.
fn set(rest: &str) -> String {
    let mut rest = rest.trim();
    let mut is_removed = false;
    while rest.starts_with('-') {
        let (option, after) = first_word(rest);
        is_removed |= matches!(option, "-e" | "--erase" | "-q" | "--query");
        rest = after;
    }
    let (name, value) = first_word(rest);
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_removed || !is_name {
        return ":".to_owned();
    }
    let value = substituted(value, QUOTES);
    // Several values are a list; one that is quoted or computed stands as it is.
    let is_one = !value.contains(char::is_whitespace) || value.starts_with(['"', '\'', '$']);
    if is_one { format!("{name}={value}") } else { format!("{name}=\"{}\"", value.replace('"', "")) }
}

fn command(text: &str) -> String {
    let text = substituted(text.trim(), QUOTES).replace("$argv[1]", "$1").replace("$argv", "$@");
    // `(command | psub)` is a file that holds what the command prints.
    let text = match text.find("| psub") {
        Some(end) => match text[..end].rfind("$(") {
            Some(start) => {
                format!("{}<({}{}", &text[..start], &text[start + 2..end], &text[end + "| psub".len()..])
            }
            None => text,
        },
        None => text,
    };
    match text.rsplit_once('|') {
        Some((before, last)) if matches!(last.trim(), "source" | "." | "source -" | "fish") => {
            format!("{before}| sh")
        }
        _ => text,
    }
}
