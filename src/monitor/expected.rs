//! Tables of tests and labelled data: commands that stand beside what is expected of them.
//!
//! `{"cmd": "rm -rf /", "expect": "block"}` is a case of a test, not a call of a tool. What tells them apart is a
//! neighbour in the same structure that speaks of an expectation or of a judgement. What a model writes into the arguments
//! of its own tool call says nothing: neighbours inside of such arguments do not count.

/// Longest value of an expectation, in bytes: a verdict or the name of a rule, no sentence.
const VALUE_BYTES_MAX: usize = 40;

/// Whether the string at byte `at` of a line, which is a whole value in a structure, stands beside an expectation.
pub(super) fn is_expected(line: &str, at: usize) -> bool {
    let mut reader = Reader { text: line, at: 0, wanted: at, groups: vec![Group::default()], found: false };
    reader.read();
    reader.found
}

/// The same for a member that has a line of its own: `column` is where its name begins, and `before` the lines before.
pub(super) fn is_expected_before(before: &str, column: usize) -> bool {
    for line in before.trim_end_matches('\n').rsplit('\n') {
        let line = line.trim_end_matches('\r');
        let Some(body) = member_start(line) else { return false };
        let Some((name, value)) = member(&line[body..]) else { continue };
        if body == column && expects(name, value) {
            return true;
        }
    }
    false
}

/// Where the member of a line of data begins; `None` where the line is no data. Lines of brackets and comments are data.
pub(super) fn member_start(line: &str) -> Option<usize> {
    let mut at = line.len() - line.trim_start().len();
    while line[at..].starts_with("- ") {
        at += 2;
        at += line[at..].len() - line[at..].trim_start().len();
    }
    let body = &line[at..];
    let is_frame =
        body.chars().all(|c| matches!(c, '{' | '}' | '[' | ']' | '(' | ')' | ',' | '-' | ' ' | '\t'));
    let is_table = body.starts_with('[') && body.ends_with(']');
    (is_frame || is_table || body.starts_with('#') || member(body).is_some()).then_some(at)
}

/// A name and its value.
fn member(body: &str) -> Option<(&str, &str)> {
    let (name, rest) = match body.chars().next()? {
        quote @ ('"' | '\'') => {
            let end = body[1..].find(quote)? + 1;
            (&body[1..end], &body[end + 1..])
        }
        _ => body.split_at(body.bytes().position(|b| !is_name_byte(b)).unwrap_or(body.len())),
    };
    let rest = rest.trim_start();
    let value = rest.strip_prefix(':').or_else(|| rest.strip_prefix('='))?;
    (!name.is_empty()).then(|| (name, value.trim().trim_end_matches(',')))
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Whether a member says what is expected of its neighbours.
fn expects(name: &str, value: &str) -> bool {
    let name: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let value = value.trim_matches(|c| matches!(c, '"' | '\'' | ' '));
    let is_short = !value.is_empty() && value.len() <= VALUE_BYTES_MAX && value.split(' ').count() <= 2;
    let is_expectation =
        ["expect", "should", "want", "assert", "must"].iter().any(|word| name.starts_with(word))
            || matches!(
                name.as_str(),
                "groundtruth"
                    | "truth"
                    | "gold"
                    | "ismalicious"
                    | "isdangerous"
                    | "issafe"
                    | "isunsafe"
                    | "isattack"
                    | "isharmful"
                    | "isbenign"
                    | "isblocked"
                    | "malicious"
                    | "dangerous"
                    | "blocked"
            );
    // These stand in the logs of agents and guards as well, so their value must be a judgement.
    let is_judgement = matches!(
        name.as_str(),
        "verdict"
            | "decision"
            | "label"
            | "labels"
            | "action"
            | "result"
            | "outcome"
            | "class"
            | "judgement"
            | "judgment"
    );
    is_short && (is_expectation || is_judgement && judges(value, name.starts_with("label")))
}

fn judges(value: &str, is_label: bool) -> bool {
    let value = value.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
    let is_number = matches!(value.as_str(), "0" | "1" | "true" | "false");
    is_label && is_number
        || [
            "block",
            "deny",
            "denied",
            "kill",
            "refuse",
            "reject",
            "forbid",
            "malicious",
            "dangerous",
            "unsafe",
            "harmful",
            "attack",
            "warn",
            "flag",
            "suspicious",
            "positive",
            "alert",
        ]
        .iter()
        .any(|word| value.starts_with(word))
}

/// Whether a member holds what a model wrote for a tool.
pub(super) fn holds_arguments(name: &str) -> bool {
    let name: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    matches!(
        name.as_str(),
        "input"
            | "arguments"
            | "args"
            | "params"
            | "parameters"
            | "kwargs"
            | "toolinput"
            | "actioninput"
            | "toolargs"
            | "toolarguments"
            | "functioncall"
            | "bash"
            | "shell"
            | "run"
            | "exec"
            | "execute"
            | "terminal"
            | "runcommand"
            | "executebash"
            | "executecommand"
            | "runshellcommand"
    )
}

/// What stands between a pair of brackets, or on the line outside of all.
#[derive(Default)]
struct Group<'t> {
    /// Whether it is inside of the arguments of a tool call.
    is_argument: bool,
    /// Whether the string in question stands in it.
    holds: bool,
    /// Whether a member of it speaks of an expectation.
    expects: bool,
    /// The name whose value comes next, or what was called.
    name: Option<&'t str>,
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    wanted: usize,
    groups: Vec<Group<'t>>,
    found: bool,
}

impl<'t> Reader<'t> {
    fn read(&mut self) {
        while let Some(c) = self.text[self.at..].chars().next() {
            match c {
                '"' | '\'' | '`' => self.string(c),
                '{' | '[' | '(' => {
                    let above = self.groups.last();
                    let is_argument = above
                        .is_some_and(|group| group.is_argument || group.name.is_some_and(holds_arguments));
                    self.groups.push(Group { is_argument, ..Group::default() });
                    self.at += 1;
                }
                '}' | ']' | ')' => {
                    self.close();
                    self.at += 1;
                }
                ',' | ';' => {
                    if let Some(group) = self.groups.last_mut() {
                        group.name = None;
                    }
                    self.at += 1;
                }
                c if c.is_ascii() && is_name_byte(c as u8) => {
                    let rest = &self.text[self.at..];
                    let length = rest.bytes().position(|b| !is_name_byte(b)).unwrap_or(rest.len());
                    self.word(self.at, self.at + length, self.at + length);
                }
                c => self.at += c.len_utf8(),
            }
        }
        while !self.groups.is_empty() {
            self.close();
        }
    }

    fn close(&mut self) {
        let Some(group) = self.groups.pop() else { return };
        self.found |= group.holds && group.expects && !group.is_argument;
        if let Some(above) = self.groups.last_mut() {
            above.holds |= group.holds;
            // A list or a table of expectations.
            above.expects |= above.name.take().is_some_and(|name| expects(name, "x"));
        } else if !self.text[self.at..].is_empty() {
            self.groups.push(Group { holds: group.holds, ..Group::default() });
        }
    }

    fn string(&mut self, quote: char) {
        let start = self.at + 1;
        let mut is_escaped = false;
        let end = self.text[start..].char_indices().find(|(_, c)| {
            let ends = *c == quote && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            ends
        });
        // An apostrophe opens nothing.
        let Some((length, _)) = end else {
            self.at = start;
            return;
        };
        self.word(start, start + length, start + length + 1);
    }

    /// A string or a word: the name of what follows, or a value. `after` is where what follows begins.
    fn word(&mut self, start: usize, end: usize, after: usize) {
        let text = &self.text[start..end];
        self.at = after;
        let Some(group) = self.groups.last_mut() else { return };
        if (start..=end).contains(&self.wanted) {
            group.holds = true;
        }
        let rest = self.text[after..].trim_start();
        if rest.starts_with([':', '=', '(']) {
            group.name = Some(text);
            if rest.starts_with([':', '=']) {
                self.at = self.text.len() - rest.len() + 1;
            }
        } else if let Some(name) = group.name.take() {
            group.expects |= expects(name, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_of_tests_are_told_from_calls() {
        for (line, wanted) in [
            (r#"{"cmd": "CMD", "expect": "block"}"#, true),
            (r#"{"expected": true, "cmd": "CMD"}"#, true),
            (r#"{"tool": "Bash", "input": {"command": "CMD"}, "should_block": true},"#, true),
            (r#"{"command": "CMD", "label": 1}"#, true),
            (r#"{"command": "CMD", "verdict": "deny"}"#, true),
            (r#"{"command": "CMD", "want": {"decision": "block"}}"#, true),
            (r#"- {cmd: "CMD", expect: block}"#, true),
            (r#"{ command = "CMD", expect = "block" },"#, true),
            (r#"    Case(command="CMD", expected=Verdict.BLOCK),"#, true),
            (r#"    case(input={"command": "CMD"}, expected="block"),"#, true),
            (r#"{"cmd": "ls", "expect": "allow"}, {"cmd": "CMD", "expect": "block"}"#, true),
            (r#"{"cmd": "CMD"}"#, false),
            (r#"{"cmd": "CMD", "timeout": 5}"#, false),
            (r#"{"cmd": "CMD", "label": "step 3"}"#, false),
            (r#"{"cmd": "CMD", "decision": "approved"}"#, false),
            (r#"{"name":"bash","input":{"command":"CMD"}}"#, false),
            (r#"{"name":"bash","input":{"command":"CMD","expect":"block"}}"#, false),
            (r#"{"name":"bash","arguments":"{\"command\":\"CMD\",\"expect\":\"block\"}"}"#, false),
            (r#"Bash(command="CMD", expect="block")"#, false),
            (r#"{"cmd": "CMD", "expect": "that all of this is gone at the end of the day"}"#, false),
            (r#"{"cmd": "ls", "expect": "allow"}, {"cmd": "CMD"}"#, false),
        ] {
            let at = line.find("CMD").expect("is there");
            assert_eq!(is_expected(line, at), wanted, "{line}");
        }
    }

    #[test]
    fn lines_before_tell_the_same() {
        for (before, column, wanted) in [
            ("- name: one\n  expect: block\n", 2, true),
            ("- cmd: ls\n  expect: allow\n\n-", 2, true),
            ("{\n  \"expect\": \"block\",\n", 2, true),
            ("[[case]]\nexpect = \"block\"\n", 0, true),
            ("- name: one\n", 2, false),
            ("- name: one\n    expect: block\n", 2, false),
            ("expect: block\nsome words of a log\n", 0, false),
            ("", 0, false),
        ] {
            assert_eq!(is_expected_before(before, column), wanted, "{before:?}");
        }
    }
}
