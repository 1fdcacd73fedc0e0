//! Scripts of Nushell and Elvish.

use super::lines::{first_word, split, walk, without_comment};

const QUOTES: &[char] = &['"', '\'', '`'];

/// Words that open a block with a condition or a list before it.
const BRANCHES: &[&str] =
    &["if", "while", "for", "match", "try", "loop", "do", "catch", "finally", "elif", "unless"];
/// Commands that take a block for each element.
const EACH: &[&str] =
    &["each", "par-each", "items", "peach", "tee", "reduce", "insert", "update", "upsert", "where", "filter"];

pub(super) fn posix(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut is_program = false;
    for line in text.lines() {
        let line = without_comment(line, QUOTES);
        is_program |= line.trim_start().starts_with("def main");
        out.push_str(&line_of(line));
        out.push('\n');
    }
    // What is run when the file is.
    if is_program {
        out.push_str("main\n");
    }
    out
}

fn line_of(line: &str) -> String {
    let mut made = String::with_capacity(line.len() * 2);
    for (nth, statement) in split(line, ';', QUOTES).into_iter().enumerate() {
        if nth > 0 && !made.trim_end().ends_with(['{', ';']) && !made.trim().is_empty() {
            made.push_str("; ");
        }
        made.push_str(&blocks(statement));
    }
    made
}

/// A statement with its blocks: what opens one, what is in it, what closes it.
fn blocks(statement: &str) -> String {
    let mut cuts = Vec::new();
    let mut before = ' ';
    walk(statement, QUOTES, |at, c, open| {
        // `${` and `$"{` are no blocks.
        if open.is_none() && matches!(c, '{' | '}') && before != '$' {
            cuts.push((at, c));
        }
        before = c;
    });
    let (mut out, mut from) = (String::new(), 0);
    for (at, c) in cuts {
        let part = statement[from..at].trim();
        match c {
            '{' => out.push_str(&opening(part)),
            _ => {
                out.push_str(&simple(part));
                let is_bare = out.trim_end().is_empty() || out.trim_end().ends_with([';', '{']);
                if out.trim_end().ends_with('{') {
                    out.push_str(" :");
                }
                out.push_str(if is_bare && !out.ends_with(':') { "}" } else { "; }" });
            }
        }
        from = at + 1;
        // `{|f| …}`: what a block is given.
        let rest = &statement[from..];
        let given = rest.trim_start();
        if c == '{'
            && let Some(named) = given.strip_prefix('|')
            && let Some((_, body)) = named.split_once('|')
        {
            from = statement.len() - body.len();
        }
        if c == '}' && !rest.trim().is_empty() {
            out.push_str(if rest.trim_start().starts_with(['|', '}', ')']) { " " } else { "; " });
        }
    }
    out.push_str(&simple(&statement[from..]));
    out
}

/// What stands before a block.
fn opening(part: &str) -> String {
    let part = part.strip_prefix("export ").unwrap_or(part).trim();
    let (word, rest) = first_word(part);
    match word {
        "def" | "fn" => {
            let name = rest.trim_start_matches("--env ").split(['[', ' ', '"']).next().unwrap_or_default();
            format!("{} () {{ ", if name.is_empty() { "f" } else { name })
        }
        "" | "else" => "{ ".to_owned(),
        _ if BRANCHES.contains(&word) => match rest.contains('(') {
            true => format!("{{ {}; ", simple(rest.trim_start_matches('('))),
            false => "{ ".to_owned(),
        },
        _ => {
            // `list | each {`: what runs for the elements.
            let (before, last) = part.rsplit_once('|').map_or(("", part), |(before, last)| (before, last));
            let (word, _) = first_word(last);
            let is_each = EACH.contains(&word);
            match (is_each, before.trim().is_empty()) {
                (true, true) => "{ ".to_owned(),
                (true, false) => format!("{} | {{ ", simple(before)),
                (false, _) => format!("{} {{ ", simple(part)),
            }
        }
    }
}

/// A statement without blocks: an assignment or a pipeline.
fn simple(statement: &str) -> String {
    let statement = statement.trim();
    let (word, rest) = first_word(statement);
    match word {
        "let" | "mut" | "const" | "var" | "set" | "export-env" => assignment(rest),
        "use" | "module" | "alias" | "hide" | "overlay" => ":".to_owned(),
        _ => pipeline(statement),
    }
}

fn assignment(rest: &str) -> String {
    let Some((name, value)) = rest.split_once('=') else { return ":".to_owned() };
    let name = name.split(':').next().unwrap_or_default().trim().trim_start_matches('$');
    let value = value.trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return ":".to_owned();
    }
    let is_literal = value.starts_with(['"', '\'', '`']) && split(value, '|', QUOTES).len() == 1;
    if is_literal || value.is_empty() {
        return format!("{name}={}", value.replace('`', "'"));
    }
    let inner = value.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(value);
    // A word or number is itself, a pipeline what it prints.
    match inner.contains(char::is_whitespace) {
        true => format!("{name}=$({})", pipeline(inner)),
        false => format!("{name}={}", words(inner)),
    }
}

fn pipeline(text: &str) -> String {
    let mut out = String::new();
    for (nth, command) in split(text, '|', QUOTES).into_iter().enumerate() {
        let command = command.trim();
        if let Some(file) = saved(command) {
            out.push_str(&format!(" > {file}"));
            continue;
        }
        if nth > 0 {
            out.push_str(" | ");
        }
        let made = one(command);
        // What a variable holds goes into the first command.
        let is_value = nth == 0 && (made.starts_with('$') && !made.starts_with("$(")) && text.contains('|');
        if is_value {
            out.push_str("echo ");
        }
        out.push_str(&made);
    }
    out
}

/// The file that a command saves what it is given to.
fn saved(command: &str) -> Option<String> {
    let (word, rest) = first_word(command);
    let file = rest.split_whitespace().find(|word| !word.starts_with('-'))?;
    matches!(word, "save").then(|| words(file))
}

/// One command of a pipeline.
fn one(command: &str) -> String {
    let (word, rest) = first_word(command);
    let word = word.strip_prefix('^').or_else(|| word.strip_prefix("e:")).unwrap_or(word);
    match word {
        "http" | "fetch" => request(if word == "fetch" { "get" } else { "" }, rest),
        "open" => format!("cat {}", words(&without_options(rest))),
        "decode" if rest.starts_with("base64") => "base64 -d".to_owned(),
        "decode" if rest.starts_with("hex") => "xxd -r -p".to_owned(),
        "run-external" => words(rest),
        "put" | "print" => format!("echo {}", words(rest)),
        // What only looks at or reshapes what it is given.
        "slurp" | "lines" | "get" | "to" | "from" | "str" | "into" | "first" | "last" | "select"
        | "collect" | "to-string" | "all" | "decode" | "encode" | "from-json" | "to-json" | "one" => {
            "cat".to_owned()
        }
        _ => words(&format!("{word} {rest}")),
    }
}

fn without_options(rest: &str) -> String {
    rest.split_whitespace().filter(|word| !word.starts_with('-')).collect::<Vec<_>>().join(" ")
}

/// `http get URL`, `http post URL DATA`.
fn request(method: &str, rest: &str) -> String {
    let (named, after) = first_word(rest);
    let (method, rest) = if method.is_empty() { (named, after) } else { (method, rest) };
    let mut given =
        split(rest, ' ', QUOTES).into_iter().filter(|word| !word.is_empty() && !word.starts_with('-'));
    let mut given: Vec<String> = given.by_ref().map(words).collect();
    let at = given.iter().position(|word| word.contains("://") || word.starts_with('$')).unwrap_or(0);
    if given.is_empty() {
        return "curl".to_owned();
    }
    let address = given.remove(at);
    match (method, given.into_iter().next()) {
        ("get" | "head" | "options" | "delete", _) | (_, None) => format!("curl -s {address}"),
        (_, Some(data)) => format!("curl -s -d {data} {address}"),
    }
}

/// Words of a command: what is computed, interpolated or of the environment as a POSIX shell writes it.
fn words(text: &str) -> String {
    let text = text.trim().replace("$env.", "$").replace("$E:", "$").replace("$nu.home-path", "$HOME");
    let (mut out, mut before, mut is_made) = (String::with_capacity(text.len() + 8), ' ', false);
    let mut is_field = false;
    walk(&text, QUOTES, |_, c, open| {
        // `$"text (command)"` is a text in which commands are run.
        if c == '"' && open.is_none() {
            is_made = before == '$';
            if is_made {
                out.pop();
            }
        }
        // `$answer.field` is a part of what the variable holds.
        if open.is_none() && c == '.' && is_name_of_variable(&out) {
            is_field = true;
        } else if is_field && !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-')) {
            is_field = false;
        }
        let is_outside = open.is_none() && !matches!(before, '$' | '<' | '>');
        if c == '(' && (is_outside || open == Some('"') && is_made) {
            out.push('$');
        }
        if !is_field {
            out.push(c);
        }
        before = c;
    });
    out
}

/// Whether a text ends in the name of a variable.
fn is_name_of_variable(text: &str) -> bool {
    let word = text
        .rsplit(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$')))
        .next()
        .unwrap_or_default();
    word.len() > 1 && word.starts_with('$') && !word[1..].contains('$')
}
