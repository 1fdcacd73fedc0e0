//! Commands of cmd in one text: what separates them, what escapes, and what `for` loops run.

/// Bytes of a loop with its variable filled in.
const FILLED_MAX: usize = 1 << 16;

/// A text without the sign that escapes the next one.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| *c != '^').collect()
}

/// The words of each command. A loop gives the command that it runs, with what it runs over in place of its variable.
pub(super) fn commands(text: &str) -> Vec<Vec<String>> {
    let text = plain(text);
    let mut all = Vec::new();
    for part in split(&text) {
        let mut words = words(part);
        if words.first().is_some_and(|word| word.eq_ignore_ascii_case("for")) {
            words = loop_body(&words);
        }
        if !words.is_empty() {
            all.push(words);
        }
    }
    all
}

/// Parts between `&` and `|` that stand outside quotes, without the brackets and `@` around them.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut quoted) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '&' | '|' | '\n' if !quoted => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().map(|part| part.trim().trim_start_matches(['@', '(']).trim()).collect()
}

/// Words between blanks; quotes are removed.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for c in text.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// `for /r FOLDER %f in (SET) do COMMAND`: the command, over the set and the folder.
fn loop_body(words: &[String]) -> Vec<String> {
    let position = |wanted: &str| words.iter().position(|word| word.eq_ignore_ascii_case(wanted));
    let (Some(of), Some(from)) = (position("in"), position("do")) else { return Vec::new() };
    let Some(variable) = of.checked_sub(1).map(|at| words[at].as_str()).filter(|word| word.starts_with('%'))
    else {
        return Vec::new();
    };
    let set = words.get(of + 1..from).unwrap_or_default().join(" ");
    let set = set.trim_matches(['(', ')']);
    let walks = words[..of].iter().any(|word| matches!(word.as_str(), "/r" | "/R" | "/d" | "/D"));
    let folder = words[..of].iter().skip(2).find(|word| !word.starts_with(['/', '%'])).filter(|_| walks);
    let value = match folder {
        Some(folder) => format!("{}/{set}", folder.trim_end_matches(['/', '\\'])),
        None => set.to_owned(),
    };
    let body = words.get(from + 1..).unwrap_or_default();
    // What is too long to fill in stands for everything there is.
    let value = if value.len() * body.len() > FILLED_MAX { "C:/*".to_owned() } else { value };
    body.iter().map(|word| word.trim_end_matches(')').replace(variable, &value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_apart() {
        let table = [
            ("dir & del /q a", "dir|del /q a"),
            ("@echo off && (del \"a b\")", "echo off|del a b)"),
            ("r^d /s x", "rd /s x"),
            ("for %f in (*.log) do del %f", "del *.log"),
            ("for /r C:\\ %f in (*) do del %f", "del C:/*"),
            ("for %f in (a) then del", ""),
            ("echo \"a & b\"", "echo a & b"),
        ];
        for (text, wanted) in table {
            let found: Vec<String> = commands(text).iter().map(|words| words.join(" ")).collect();
            assert_eq!(found.join("|"), wanted, "{text}");
        }
    }
}
