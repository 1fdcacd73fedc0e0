//! Lists of arguments that stand over several lines, as JSON and YAML are written for people.
//!
//! `{"command": "rm", "args": ["-rf", "/"]}` is one line of a log, and five lines where it is indented. Read line by line
//! it holds no command. So the lines of such a list are put together into one, with the program whose arguments they are.

use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::mapped::Mapped;

/// Lines of one list.
pub(super) const LINES_MAX: u8 = 48;
/// Lines between a list and the program whose arguments it holds.
const MEMBERS_MAX: usize = 4;

/// The beginning of a list. Every name is a literal of a rule about commands, so that its line is looked at.
static OPENER: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r#"^[ \t]*(?:-[ \t]+|\{[ \t]*)?(?:(?:\x22(?P<json>command|cmd|commands|args|argv|arguments)\x22|'(?P<single>command|cmd|args)'):[ \t]*\[[ \t]*$|(?P<yaml>command|cmd|args|argv|entrypoint|exec):$)"#,
    )
});

/// The program, in a line of its own.
static PROGRAM: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r#"^[ \t]*(?:-[ \t]+|\{[ \t]*)?["']?(?:command|cmd|program|executable|entrypoint)["']?[ \t]*:[ \t]*(?P<value>[^ \t\[|>][^\n]*|\[[^\n]*\])[ \t]*,?[ \t]*$"#,
    )
});

/// A member with a simple value.
static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
    known(r#"^[ \t]*(?:-[ \t]+|\{[ \t]*)?["']?[A-Za-z_]{1,24}["']?[ \t]*:[ \t]*[^ \t{\[|>]"#)
});

fn known(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
}

/// Whether a list begins at the end of a line.
pub(super) fn opens(line: &str) -> bool {
    line.trim_end().ends_with(['[', ':']) && OPENER.is_match(line)
}

/// Whether a line may belong to a list that has begun, or to what follows it.
pub(super) fn goes_on(line: &str) -> bool {
    let line = line.trim();
    line.starts_with(['"', '\'', ']', '}']) || line.starts_with("- ") || PROGRAM.is_match(line) || opens(line)
}

/// A word of a command: where it stands, and whether it is written as JSON writes strings.
struct Word {
    range: Range<usize>,
    is_json: bool,
}

/// The command whose list of arguments is complete with the last line of `window`, which begins at byte `line`, as one
/// line of JSON. In YAML, where a list has no end, every item completes it.
pub(super) fn command(window: &Mapped, line: usize) -> Option<Mapped> {
    let text = window.as_str();
    let mut lines = Lines { text, start: line, end: text.len() };
    let mut after = None;
    if lines.body().starts_with('-') {
        return yaml(window, lines);
    }
    if let Some(value) = program(text, &lines.range()) {
        after = Some(value);
        lines.up()?;
    }
    if lines.body().starts_with("- ") {
        // The keys of YAML are often sorted.
        let (name, arguments) = items(text, &mut lines)?;
        let mut words = after.filter(|_| name.starts_with("arg"))?;
        words.extend(arguments);
        return one_line(window, &words);
    }
    if !lines.body().starts_with(']') {
        return None;
    }
    let mut words = Vec::new();
    loop {
        lines.up()?;
        if let Some(word) = string(text, &lines.range()) {
            words.push(word);
        } else {
            break;
        }
    }
    let name = opener(text, &lines.range(), "json").or_else(|| opener(text, &lines.range(), "single"))?;
    words.reverse();
    if name.starts_with("arg") {
        let program = match after {
            Some(program) => program,
            None => program_above(text, lines)?,
        };
        words.splice(0..0, program);
    }
    one_line(window, &words)
}

fn yaml(window: &Mapped, mut lines: Lines<'_>) -> Option<Mapped> {
    let text = window.as_str();
    let (name, mut all) = items(text, &mut lines)?;
    let mut above = lines;
    let list =
        if above.up().is_some() && above.body().starts_with("- ") { items(text, &mut above) } else { None };
    let is_argument = name.starts_with("arg");
    match list {
        Some((other, words)) if is_argument && !other.starts_with("arg") => {
            all.splice(0..0, words);
        }
        Some((other, words)) if !is_argument && other.starts_with("arg") => all.extend(words),
        _ if is_argument => {
            all.splice(0..0, program_above(text, lines)?);
        }
        _ => {}
    }
    one_line(window, &all)
}

/// The items of a list of YAML whose last line this is, and its name. Its first line is the last one afterwards.
fn items(text: &str, lines: &mut Lines<'_>) -> Option<(String, Vec<Word>)> {
    let (mut words, indent) = (Vec::new(), lines.indent());
    while lines.body().starts_with("- ") && lines.indent() == indent {
        let range = lines.range();
        let at = range.start + text[range.clone()].find('-')? + 1;
        words.push(scalar(text, at..range.end)?);
        lines.up()?;
    }
    words.reverse();
    Some((opener(text, &lines.range(), "yaml")?.to_owned(), words))
}

/// The lines of a text, from the last one upward.
#[derive(Clone, Copy)]
struct Lines<'t> {
    text: &'t str,
    start: usize,
    end: usize,
}

impl<'t> Lines<'t> {
    fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    fn body(&self) -> &'t str {
        self.text[self.range()].trim()
    }

    fn indent(&self) -> usize {
        self.end - self.start - self.text[self.range()].trim_start().len()
    }

    fn up(&mut self) -> Option<()> {
        let before = self.text[..self.start].strip_suffix('\n')?;
        self.end = before.strip_suffix('\r').unwrap_or(before).len();
        self.start = before.rfind('\n').map_or(0, |at| at + 1);
        Some(())
    }
}

/// The name of the list that begins in a line.
fn opener<'t>(text: &'t str, line: &Range<usize>, kind: &str) -> Option<&'t str> {
    let line = &text[line.clone()];
    let mut captures = OPENER.create_captures();
    OPENER.captures(line, &mut captures);
    captures.get_group_by_name(kind).map(|found| &line[found.range()])
}

/// The words of the program in the lines above.
fn program_above(text: &str, mut lines: Lines<'_>) -> Option<Vec<Word>> {
    for _ in 0..=MEMBERS_MAX {
        lines.up()?;
        if let Some(found) = program(text, &lines.range()) {
            return Some(found);
        }
        if !MEMBER.is_match(&text[lines.range()]) {
            break;
        }
    }
    None
}

/// The words of the program that a line names.
fn program(text: &str, line: &Range<usize>) -> Option<Vec<Word>> {
    let mut captures = PROGRAM.create_captures();
    PROGRAM.captures(&text[line.clone()], &mut captures);
    let value = captures.get_group_by_name("value")?;
    let value = line.start + value.start..line.start + value.end;
    let Some(list) = text[value.clone()].strip_prefix('[') else {
        return scalar(text, value).map(|word| vec![word]);
    };
    let list = &list[..list.rfind(']')?];
    let mut at = value.start + 1;
    let mut words = Vec::new();
    for part in list.split(',') {
        words.push(scalar(text, at..at + part.len())?);
        at += part.len() + 1;
    }
    Some(words)
}

/// A line that is a string and nothing else.
fn string(text: &str, line: &Range<usize>) -> Option<Word> {
    let body = text[line.clone()].trim().trim_end_matches(',');
    body.starts_with(['"', '\'']).then(|| scalar(text, line.clone())).flatten()
}

/// A value, without the quotes around it; nothing where more than a value stands there.
fn scalar(text: &str, range: Range<usize>) -> Option<Word> {
    let part = &text[range.clone()];
    let start = range.start + part.len() - part.trim_start().len();
    let body = part.trim().trim_end_matches(',').trim_end();
    match body.chars().next()? {
        quote @ ('"' | '\'') => {
            let inner = body[1..].strip_suffix(quote)?;
            Some(Word { range: start + 1..start + 1 + inner.len(), is_json: quote == '"' })
        }
        '|' | '>' | '{' | '[' | '&' => None,
        _ => Some(Word { range: start..start + body.len(), is_json: false }),
    }
}

fn one_line(window: &Mapped, words: &[Word]) -> Option<Mapped> {
    let first = words.first().filter(|_| words.len() > 1)?;
    let raw = |at: usize| window.raw_of(at);
    let mut out = Mapped::default();
    // What is put in stands for the place that it leads to.
    let put = |out: &mut Mapped, text: &str, at: usize| text.chars().for_each(|c| out.push_char(c, raw(at)));
    put(&mut out, "\"command\": [", first.range.start);
    for (nth, word) in words.iter().enumerate() {
        put(&mut out, if nth == 0 { "\"" } else { ", \"" }, word.range.start);
        if word.is_json {
            out.push_from(window, word.range.clone());
        } else {
            for (at, c) in window.as_str()[word.range.clone()].char_indices() {
                if matches!(c, '"' | '\\') {
                    out.push("\\", raw(word.range.start + at));
                }
                out.push_char(c, raw(word.range.start + at));
            }
        }
        put(&mut out, "\"", word.range.end);
    }
    put(&mut out, "]", window.len());
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_over_lines_become_one() {
        for (text, wanted) in [
            (
                "{\n \"command\": \"sh\",\n \"args\": [\n  \"-c\",\n  \"a \\\"b\\\" | c\"\n ]",
                Some(r#"sh", "-c", "a \"b\" | c"#),
            ),
            ("\"cmd\": [\n  \"rm\",\n  \"a\"\n],", Some(r#"rm", "a"#)),
            ("'cmd': [\n  'rm',\n  'a \"b\"'\n]", Some(r#"rm", "a \"b\""#)),
            ("\"command\": \"sh\",\n\"timeout\": 5,\n\"args\": [\n  \"-c\"\n]", Some(r#"sh", "-c"#)),
            ("\"args\": [\r\n  \"-c\"\r\n],\r\n\"command\": \"sh\"", Some(r#"sh", "-c"#)),
            ("command:\n  - rm\n  - a", Some(r#"rm", "a"#)),
            ("command: [\"sh\", \"-c\"]\nargs:\n- a b", Some(r#"sh", "-c", "a b"#)),
            ("command:\n- sh\nargs:\n- -c\n- 'a \"b\"'", Some(r#"sh", "-c", "a \"b\""#)),
            ("args:\n- -u\n- a\ncommand: rm", Some(r#"rm", "-u", "a"#)),
            ("  args:\n  - a\n  command:\n  - rm", Some(r#"rm", "a"#)),
            ("command: npx\nargs:\n- x", Some(r#"npx", "x"#)),
            ("command:\n  - rm", None),
            ("\"args\": [\n  \"-c\"\n]", None),
            ("\"names\": [\n  \"rm\",\n  \"a\"\n]", None),
            ("\"cmd\": [\n  {\"a\": 1},\n  \"a\"\n]", None),
            ("names:\n  - rm\n  - a", None),
            ("]", None),
        ] {
            let mut window = Mapped::default();
            window.push(text, 100);
            let line = text.rfind('\n').map_or(0, |at| at + 1);
            let found = command(&window, line);
            let wanted = wanted.map(|words| format!("\"command\": [\"{words}\"]"));
            assert_eq!(found.as_ref().map(Mapped::as_str), wanted.as_deref(), "{text}");
            if let Some(found) = found.filter(|found| found.as_str().contains("rm")) {
                let at = |text: &str| text.find("rm").expect("is there");
                assert_eq!(found.raw_of(at(found.as_str())), 100 + at(text) as u64, "{text}");
            }
        }
        for (line, wanted) in [
            ("  \"args\": [", true),
            ("command:", true),
            ("- args:", true),
            ("Args:", false),
            ("x = [", false),
            ("\"args\": []", false),
        ] {
            assert_eq!(opens(line), wanted, "{line}");
        }
    }
}
