//! Commands that stand as texts in files which no parser here follows: settings of tools, build files, scripts of other
//! languages. A download that a shell runs, or a secret that is sent away, is no accident in a text that is a command as a
//! whole, whatever runs it.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::{Scan, document, shell};
use crate::bundles::files::Syntax;
use crate::bundles::work::Task;

/// Without one of these no command fetches, sends or decodes.
const SIGNS: &[&str] = &[
    "curl",
    "wget",
    "/dev/tcp/",
    "/dev/udp/",
    "base64",
    "openssl ",
    "xxd ",
    "nc ",
    "ncat ",
    "socat ",
    "scp ",
    "rsync ",
    "powershell",
    "pwsh",
    "iwr ",
    "irm ",
    "nslookup ",
    "dig ",
];
/// Longest command that is looked at, in bytes.
const COMMAND_BYTES_MAX: usize = 4 << 10;
/// Shortest one.
const COMMAND_BYTES_MIN: usize = 12;
/// Most commands of one file that are looked at.
const COMMANDS_MAX: usize = 400;
/// Longest line that is taken apart, in bytes.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Longest type between the name of a constant and its text, in bytes.
const TYPE_BYTES_MAX: usize = 24;
/// Lines behind the first one of a command that goes on.
const LINES_MAX: usize = 12;
/// Bytes before a text in a list that are looked through for the name of the list.
const LIST_BYTES: usize = 600;

/// Words in the names of settings and functions that show a text to somebody, or compare it: what they hold runs nowhere.
const SHOWING: &[&str] = &[
    "abort",
    "about",
    "allow",
    "answer",
    "assert",
    "assertion",
    "attack",
    "attacks",
    "blocked",
    "blocklist",
    "caption",
    "case",
    "cases",
    "changelog",
    "comment",
    "contains",
    "content",
    "danger",
    "dangerous",
    "debug",
    "deny",
    "desc",
    "description",
    "detail",
    "details",
    "detect",
    "die",
    "disallow",
    "doc",
    "docs",
    "echo",
    "eprintln",
    "equal",
    "equals",
    "error",
    "errorf",
    "errors",
    "evidence",
    "example",
    "examples",
    "expect",
    "expected",
    "fail",
    "fatal",
    "fatalf",
    "finding",
    "findings",
    "fix",
    "forbidden",
    "format",
    "help",
    "hint",
    "indicator",
    "indicators",
    "info",
    "input",
    "inputs",
    "instruction",
    "instructions",
    "ioc",
    "iocs",
    "issue",
    "label",
    "log",
    "logger",
    "malicious",
    "match",
    "message",
    "messages",
    "msg",
    "name",
    "note",
    "notes",
    "output",
    "outputs",
    "panic",
    "pattern",
    "patterns",
    "payload",
    "payloads",
    "print",
    "printf",
    "println",
    "prompt",
    "prompts",
    "puts",
    "query",
    "question",
    "raise",
    "readme",
    "reason",
    "recommendation",
    "red",
    "regex",
    "response",
    "rule",
    "rules",
    "sample",
    "samples",
    "say",
    "snippet",
    "snippets",
    "sprintf",
    "summary",
    "test",
    "tests",
    "text",
    "throw",
    "tip",
    "title",
    "todo",
    "transcript",
    "usage",
    "user",
    "utterance",
    "warn",
    "warning",
    "write",
    "writeln",
];

static SIGN: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(SIGNS)
        .unwrap_or_else(|error| panic!("signs that tests build: {error}"))
});

/// A text in quotes.
struct Quoted {
    quote: char,
    /// What stands between them, escapes undone.
    value: String,
    /// Where the opening quote stands in the line, in bytes.
    start: usize,
}

/// Looks at every text of the file that is a command.
pub(super) fn commands(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    scan.found.work.charge(text.len() as u64);
    let mut seen = 0;
    // Lines up to this one are looked at.
    let mut behind = 0;
    for hit in SIGN.find_iter(text) {
        if hit.start() < behind {
            continue;
        }
        let start = text[..hit.start()].rfind('\n').map_or(0, |at| at + 1);
        let end = line_end(text, hit.end());
        // Of a long line what stands around the sign.
        let start = if end - start > LINE_BYTES_MAX {
            text.floor_char_boundary(start.max(hit.start().saturating_sub(COMMAND_BYTES_MAX)))
        } else {
            start
        };
        let end = text.floor_char_boundary(end.min(hit.end() + LINE_BYTES_MAX / 2));
        behind = end;
        let line = &text[start..end];
        if !scan.may(Task::Block, line.len()) {
            return;
        }
        if is_comment(line, scan.syntax) {
            continue;
        }
        let number = scan.lines.line_of(start);
        for command in of_line(scan, line, start) {
            seen += 1;
            if seen > COMMANDS_MAX {
                return;
            }
            scan.engine("shell");
            shell::literal(scan, &command, number);
        }
    }
}

/// The end of a line, and of those that it goes on in.
fn line_end(text: &str, from: usize) -> usize {
    let mut end = from;
    for _ in 0..LINES_MAX {
        end = memchr::memchr(b'\n', &text.as_bytes()[end..]).map_or(text.len(), |at| end + at);
        if end == text.len() || !text[..end].trim_end_matches('\r').ends_with('\\') {
            break;
        }
        end += 1;
    }
    end
}

/// Whether a line is a comment. What go runs at its request stands in one.
fn is_comment(line: &str, syntax: Syntax) -> bool {
    let start = line.trim_start();
    let is_marked = ["#", "//", "/*", "* ", "--", ";", "<!--", "%", "REM ", "rem "]
        .iter()
        .any(|mark| start.starts_with(mark));
    is_marked && !start.starts_with("//go:generate") && syntax != Syntax::Json
}

/// The texts in a line that are commands.
fn of_line(scan: &Scan<'_, '_>, line: &str, start: usize) -> Vec<String> {
    let mut found = Vec::new();
    let name = scan.path.rsplit('/').next().unwrap_or(scan.path).to_ascii_lowercase();
    let extension = name.rsplit('.').next().unwrap_or_default();
    // Text between back-ticks is run in these.
    let ticks_run =
        matches!(
            extension,
            "rb" | "gemspec" | "rake" | "ru" | "podspec" | "pl" | "pm" | "php" | "jl" | "cr" | "raku"
        ) || matches!(name.as_str(), "rakefile" | "gemfile" | "vagrantfile" | "podfile" | "fastfile");
    for text in quoted(line) {
        let before = &line[..text.start];
        let is_shown = !(ticks_run && text.quote == '`')
            && (is_showing(before) || is_in_shown_list(scan, before, start + text.start));
        if !is_shown && is_worth(&text.value) && begins_command(&text.value) {
            found.push(text.value);
        }
    }
    let plain = line.trim().trim_start_matches("- ");
    // `name: command`, `name = command`, `autocmd Event * !command`.
    let tails = [plain.split_once(": "), plain.split_once('='), plain.split_once(" !")];
    let behind_word = plain.strip_prefix("shell ").map(|tail| ("", tail));
    for (before, tail) in tails.into_iter().flatten().chain(behind_word) {
        let tail = tail.trim();
        // Inside of quotes nothing of its own begins.
        let is_open = ['"', '\'', '`'].iter().any(|quote| before.matches(*quote).count() % 2 == 1);
        let is_bare = !is_open && !tail.starts_with(['"', '\'', '`', '[', '{']);
        if is_bare && is_worth(tail) && begins_command(tail) && !is_showing(&format!("{before}=")) {
            found.push(tail.to_owned());
        }
    }
    let is_list = line.trim_start().starts_with("- ") && matches!(scan.syntax, Syntax::Yaml);
    if is_list && is_worth(plain) && begins_command(plain) && !is_in_shown_list(scan, "", start) {
        found.push(plain.to_owned());
    }
    let is_program = matches!(scan.syntax, Syntax::Script(_));
    if is_program && is_worth(plain) && begins_command(plain) && is_in_run_block(scan, start) {
        found.push(plain.to_owned());
    }
    found
}

/// Whether a line stands in a text of several lines that is not only shown: behind three quotes or `<<NAME`.
fn is_in_run_block(scan: &Scan<'_, '_>, at: usize) -> bool {
    let from = scan.text.floor_char_boundary(at.saturating_sub(LIST_BYTES));
    let around = &scan.text[from..at];
    let open = ["'''", "\"\"\"", "<<"].iter().filter_map(|sign| around.rfind(sign)).max();
    open.is_some_and(|open| !is_showing(&around[..open]))
}

/// What else a text that is a command begins with, besides the programs that documents tell people to run.
const BEGINNINGS: &[&str] = &[
    "set", "if", "cd", "(", "{", "while", "for", "true", "sleep", "nohup", "exec", "mkdir", "test", "[",
    "apt", "apt-get", "yum", "dnf", "apk", "brew", "source", ".", "timeout", "nice", "cmd", "cmd.exe", "irm",
    "rsync", "xxd", "openssl", "fish", "ksh", "dash", "dig", "nslookup", "aws", "gcloud", "gsutil", "gh",
    "time", "command", "trap", "touch",
];

/// Whether a text begins as commands do: with a program, a word of the shell, or a variable that is set for the command.
fn begins_command(text: &str) -> bool {
    let mut words =
        text.split_whitespace().skip_while(|word| word.contains('=') && !word.starts_with(['-', '=']));
    let first = words.next().unwrap_or_default();
    document::is_command(text) || BEGINNINGS.contains(&first) || document::is_command(first)
}

/// Whether a text can be a command that does something here.
fn is_worth(text: &str) -> bool {
    (COMMAND_BYTES_MIN..=COMMAND_BYTES_MAX).contains(&text.len())
        && text.contains(['|', '<', '>', '$', '`', '@', ';', '&', '/'])
        && SIGN.is_match(text)
}

/// The texts in quotes of one line.
fn quoted(line: &str) -> Vec<Quoted> {
    let mut all = Vec::new();
    let mut chars = line.char_indices().peekable();
    while let Some((start, quote)) = chars.next() {
        if !matches!(quote, '"' | '\'' | '`') {
            continue;
        }
        // An apostrophe amid a word begins nothing.
        let before = line[..start].chars().next_back();
        if quote == '\'' && before.is_some_and(char::is_alphanumeric) {
            continue;
        }
        let (mut value, mut is_closed) = (String::new(), false);
        let rest = chars.clone();
        while let Some((_, c)) = chars.next() {
            match c {
                c if c == quote => {
                    is_closed = true;
                    break;
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => value.push('\n'),
                    // A line that goes on.
                    Some('t' | '\n') => value.push(' '),
                    Some('u') => value.push(escaped(&mut chars)),
                    Some(c) => value.push(c),
                    None => {}
                },
                c => value.push(c),
            }
        }
        if is_closed {
            all.push(Quoted { quote, value, start });
        } else {
            chars = rest;
        }
    }
    all
}

/// The character of `\u0026`, whose `u` was read.
fn escaped(chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>) -> char {
    let digits: String =
        (0..4).filter_map(|_| chars.next_if(|(_, c)| c.is_ascii_hexdigit())).map(|(_, c)| c).collect();
    u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).unwrap_or(' ')
}

/// Whether what stands before a text shows it: `puts "…`, `description: "…`, `log.info("…`.
fn is_showing(before: &str) -> bool {
    let before = before.trim_end_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.'));
    let mut parts = before.rsplit(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.'));
    let callee = parts.next().unwrap_or_default();
    let shows = |word: String| SHOWING.binary_search(&word.as_str()).is_ok();
    callee.rsplit('.').take(2).flat_map(words).any(shows) || is_typed(before)
}

/// The same for a name whose type stands between: `HINT: &str = "…`.
fn is_typed(before: &str) -> bool {
    let Some((name, kind)) = before.rsplit_once(':') else { return false };
    let is_type =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '&' | '\'' | ' ' | '<' | '>' | '[' | ']' | '?');
    let is_short = !kind.is_empty() && kind.len() <= TYPE_BYTES_MAX && kind.chars().all(is_type);
    is_short && !name.ends_with(':') && is_showing(name)
}

/// Whether a text is one of a list with a name that shows or compares: `"deny": ["…", "…"]`, `"iocs": [{"value": "…"}]`.
fn is_in_shown_list(scan: &Scan<'_, '_>, before: &str, at: usize) -> bool {
    let name = before.trim_end().trim_end_matches([':', '=', ' ']);
    if name.ends_with(['"', '\'']) && words(name).last().is_some_and(|word| word == "value") {
        let from = scan.text.floor_char_boundary(at.saturating_sub(LIST_BYTES));
        return is_in_shown_object(&scan.text[from..at]);
    }
    let is_element = before.trim().is_empty() || before.trim_end().ends_with([',', '[', '-']);
    if !is_element {
        return false;
    }
    let from = scan.text.floor_char_boundary(at.saturating_sub(LIST_BYTES));
    let around = &scan.text[from..at];
    let open = match scan.syntax {
        Syntax::Yaml => around.rfind(":\n"),
        _ => around.rfind(['[', '(', '{']),
    };
    open.is_some_and(|open| is_showing(&around[..open]))
}

/// Whether what begins before the end of `around` and is still open there is an object in a list with such a name.
fn is_in_shown_object(around: &str) -> bool {
    let (mut closed, mut is_object) = (0_usize, false);
    for (at, bracket) in around.rmatch_indices(['{', '}', '[', ']']) {
        match bracket {
            "}" | "]" => closed += 1,
            _ if closed > 0 => closed -= 1,
            "{" => is_object = true,
            _ => return is_object && is_showing(&around[..at]),
        }
    }
    false
}

/// The words of a name, in lower case: `runCommand`, `run_command`, `run-command`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let is_break = !c.is_alphanumeric() || c.is_ascii_uppercase() && was_lower;
        if is_break {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.push(c.to_ascii_lowercase()));
        }
        was_lower = c.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_show_are_in_order() {
        assert!(SHOWING.is_sorted());
    }

    #[test]
    fn texts_in_quotes_are_read() {
        let texts = |line: &str| quoted(line).into_iter().map(|one| one.value).collect::<Vec<_>>().join("|");
        for (line, wanted) in [
            (r#"a = "b \"c\" d" 'e'"#, r#"b "c" d|e"#),
            (r#"it's "x""#, "x"),
            (r#""a\u0026b\n""#, "a&b\n"),
            ("`a | b`", "a | b"),
            ("\"open", ""),
        ] {
            assert_eq!(texts(line), wanted, "{line}");
        }
    }

    #[test]
    fn names_that_show_are_told() {
        for (before, wanted) in [
            ("puts ", true),
            ("fmt.Println(", true),
            ("errors.New(", true),
            ("\"description\": ", true),
            ("  installHint = ", true),
            ("system(", false),
            ("command = ", false),
            ("sh ", false),
            ("init: ", false),
            ("[\"sh\", \"-c\", ", false),
            ("const INSTALL_HINT: &str = ", true),
            ("let hintless: String = ", false),
            ("val usage: String? = ", true),
            ("run-shell ", false),
        ] {
            assert_eq!(is_showing(before), wanted, "{before}");
        }
    }
}
