//! What simple filters make of a known text: reversing, mapping, cutting, decoding.

use super::super::argument::Argument;
use super::super::expand::pattern::in_class;
use super::decode;

/// What a filter prints for a known input; `None` when it is not one of those that can be computed.
pub(super) fn apply(program: &str, arguments: &[Argument], input: &str) -> Option<String> {
    let words: Vec<&str> = arguments.iter().map(Argument::known).collect::<Option<_>>()?;
    match program {
        "cat" | "tee" | "sponge" | "pv" | "nl" | "dos2unix" | "col" | "expand" | "unbuffer" => {
            Some(input.to_owned())
        }
        "rev" => Some(lines(input, |line| line.chars().rev().collect())),
        "tac" => Some(input.lines().rev().map(|line| format!("{line}\n")).collect()),
        "tr" => tr(&words, input),
        "base64" | "gbase64" => decodes(&words, &["-d", "-D", "--decode", "-di", "-id"])
            .then(|| decode::base64(input.as_bytes()))?
            .map(bytes),
        "base32" => {
            decodes(&words, &["-d", "-D", "--decode"]).then(|| decode::base32(input.as_bytes()))?.map(bytes)
        }
        "basenc" if decodes(&words, &["-d", "--decode"]) => match () {
            () if words.contains(&"--base16") => decode::hex(input).map(bytes),
            () if words.contains(&"--base32") => decode::base32(input.as_bytes()).map(bytes),
            () => decode::base64(input.as_bytes()).map(bytes),
        },
        "xxd" => {
            let reverts = words.iter().any(|word| is_cluster(word, 'r'));
            let plain = words.iter().any(|word| is_cluster(word, 'p') || *word == "-ps");
            if !reverts {
                return None;
            }
            if plain { decode::hex(input).map(bytes) } else { dump(input) }
        }
        "openssl" => openssl(&words, input),
        "head" | "tail" => ends(program, &words, input),
        "cut" => cut(&words, input),
        "sed" => sed(&words, input),
        "sort" if words.is_empty() => {
            let mut lines: Vec<&str> = input.lines().collect();
            lines.sort_unstable();
            Some(lines.iter().map(|line| format!("{line}\n")).collect())
        }
        "uniq" if words.is_empty() => Some(input.to_owned()),
        "grep" | "egrep" | "fgrep" => grep(&words, input),
        "awk" | "gawk" | "mawk" => awk(&words, input),
        "xargs" if words.is_empty() => {
            Some(format!("{}\n", input.split_whitespace().collect::<Vec<_>>().join(" ")))
        }
        "fold" | "fmt" => Some(input.to_owned()),
        "paste" if words.first().is_some_and(|word| word.starts_with("-s")) => paste(&words, input),
        "ascii2uni" | "iconv" | "recode" => None,
        _ => None,
    }
}

/// What a script prints that does nothing but print one constant text, such as `print("text")`.
pub(super) fn printed(script: &str) -> Option<String> {
    let script = script.trim().trim_end_matches(';').trim_end();
    let script = script.strip_prefix("BEGIN").map_or(script, |rest| {
        rest.trim_start().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(rest).trim()
    });
    let script = script.trim_end_matches(';').trim_end();
    let rest = ["console.log", "process.stdout.write", "print", "puts", "echo", "say"]
        .iter()
        .find_map(|call| script.strip_prefix(call))?
        .trim_start();
    let rest = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(rest).trim();
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let inner = rest.strip_prefix(quote)?.strip_suffix(quote)?;
    let is_plain = !inner.contains([quote, '\\', '$', '#', '@']);
    is_plain.then(|| format!("{inner}\n"))
}

fn bytes(bytes: Vec<u8>) -> String {
    decode::text(&bytes)
}

fn lines(input: &str, change: impl Fn(&str) -> String) -> String {
    let mut out: String = input.lines().map(|line| change(line) + "\n").collect();
    if !input.ends_with('\n') {
        out.pop();
    }
    out
}

fn decodes(words: &[&str], options: &[&str]) -> bool {
    words.iter().any(|word| options.contains(word) || (word.len() > 2 && "--decode".starts_with(word)))
}

fn is_cluster(word: &str, letter: char) -> bool {
    word.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
        || (letter == 'r' && word == "-revert")
        || (letter == 'p' && matches!(word, "-plain" | "-postscript"))
}

/// `xxd -r` of a dump with offsets and a column of characters.
fn dump(input: &str) -> Option<String> {
    let mut all = Vec::new();
    for line in input.lines() {
        let (_, rest) = line.split_once(':')?;
        let columns = rest.trim_start().split("  ").next().unwrap_or_default();
        all.extend(decode::hex(columns)?);
    }
    Some(bytes(all))
}

fn openssl(words: &[&str], input: &str) -> Option<String> {
    let is_base64 = matches!(words.first(), Some(&"base64"))
        || (words.first() == Some(&"enc") && words.iter().any(|word| matches!(*word, "-base64" | "-a")));
    (is_base64 && words.contains(&"-d")).then(|| decode::base64(input.as_bytes()))?.map(bytes)
}

fn tr(words: &[&str], input: &str) -> Option<String> {
    let options = words.iter().take_while(|word| word.starts_with('-') && word.len() > 1).count();
    let letters: String = words[..options].concat();
    let (deletes, squeezes) = (letters.contains('d'), letters.contains('s'));
    let complements = letters.contains(['c', 'C']);
    let from = set(words.get(options)?)?;
    if deletes {
        return Some(input.chars().filter(|c| from.contains(c) == complements).collect());
    }
    let Some(to) = words.get(options + 1) else {
        let mut last = None;
        return squeezes
            .then(|| input.chars().filter(|&c| last.replace(c) != Some(c) || !from.contains(&c)).collect());
    };
    let to = set(to)?;
    let last = *to.last()?;
    Some(
        input
            .chars()
            .map(|c| match (from.iter().rposition(|&f| f == c), complements) {
                (Some(at), false) => to.get(at).copied().unwrap_or(last),
                (None, true) => last,
                _ => c,
            })
            .collect(),
    )
}

/// Characters of a set as `tr` reads it.
fn set(text: &str) -> Option<Vec<char>> {
    let mut chars: Vec<char> = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    // `[A-Z]` is a range in brackets for some; the brackets then map to themselves.
    rest.push('\0');
    let mut at = 0;
    while at + 1 < rest.len() {
        if rest[at] == '[' && rest[at + 1] == ':' {
            let class: String = rest[at + 2..].iter().take_while(|c| **c != ':').collect();
            let end = at + 2 + class.chars().count() + 2;
            chars.extend((0_u8..128).map(char::from).filter(|&c| in_class(&class, c)));
            at = end;
            continue;
        }
        let (low, next) = one(&rest, at)?;
        if rest[next] == '-' && next + 2 < rest.len() {
            let (high, next) = one(&rest, next + 1)?;
            if u32::from(high).saturating_sub(u32::from(low)) > 4096 {
                return None;
            }
            chars.extend(low..=high);
            at = next;
        } else {
            chars.push(low);
            at = next;
        }
    }
    Some(chars)
}

fn one(rest: &[char], at: usize) -> Option<(char, usize)> {
    let c = *rest.get(at)?;
    if c != '\\' || at + 2 >= rest.len() {
        return Some((c, at + 1));
    }
    let escaped = rest[at + 1];
    if escaped.is_digit(8) {
        let digits: String = rest[at + 1..].iter().take(3).take_while(|c| c.is_digit(8)).collect();
        let value = u32::from_str_radix(&digits, 8).ok()?;
        return Some((char::from_u32(value)?, at + 1 + digits.len()));
    }
    let c = match escaped {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        other => other,
    };
    Some((c, at + 2))
}

fn ends(program: &str, words: &[&str], input: &str) -> Option<String> {
    let mut count = 10_i64;
    let mut in_bytes = false;
    let mut from_start = false;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let letters = word.strip_prefix('-')?;
        let value = match letters.chars().next()? {
            'c' | 'n' => {
                in_bytes = letters.starts_with('c');
                if letters.len() > 1 { &letters[1..] } else { rest.next()? }
            }
            '0'..='9' => letters,
            'q' => continue,
            _ => return None,
        };
        from_start = value.starts_with('+');
        count = value.trim_start_matches('+').parse().ok()?;
    }
    let size = usize::try_from(count.unsigned_abs()).ok()?;
    if in_bytes {
        let at = match (program, count < 0, from_start) {
            ("head", false, _) => size.min(input.len()),
            ("head", true, _) => input.len().saturating_sub(size),
            (_, _, true) => size.saturating_sub(1).min(input.len()),
            _ => input.len().saturating_sub(size),
        };
        let (head, tail) = input.split_at_checked(at)?;
        return Some(if program == "head" { head.to_owned() } else { tail.to_owned() });
    }
    let all: Vec<&str> = input.lines().collect();
    let range = match (program, count < 0, from_start) {
        ("head", false, _) => 0..size.min(all.len()),
        ("head", true, _) => 0..all.len().saturating_sub(size),
        (_, _, true) => size.saturating_sub(1).min(all.len())..all.len(),
        _ => all.len().saturating_sub(size)..all.len(),
    };
    Some(all[range].iter().map(|line| format!("{line}\n")).collect())
}

fn cut(words: &[&str], input: &str) -> Option<String> {
    let mut list = None;
    let mut delimiter = '\t';
    let mut fields = false;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let letters = word.strip_prefix('-')?;
        let letter = letters.chars().next()?;
        let value = if letters.len() > 1 { &letters[1..] } else { rest.next()? };
        match letter {
            'c' | 'b' => list = Some(value),
            'f' => {
                list = Some(value);
                fields = true;
            }
            'd' => delimiter = value.chars().next()?,
            _ => return None,
        }
    }
    let ranges: Vec<(usize, usize)> = list?
        .split(',')
        .map(|item| match item.split_once('-') {
            None => item.parse().ok().map(|n| (n, n)),
            Some((low, high)) => {
                let low = if low.is_empty() { Some(1) } else { low.parse().ok() }?;
                let high = if high.is_empty() { Some(usize::MAX) } else { high.parse().ok() }?;
                Some((low, high))
            }
        })
        .collect::<Option<_>>()?;
    let chosen = |at: usize| ranges.iter().any(|&(low, high)| (low..=high).contains(&(at + 1)));
    Some(lines(input, |line| {
        if !fields {
            return line.chars().enumerate().filter(|(at, _)| chosen(*at)).map(|(_, c)| c).collect();
        }
        if !line.contains(delimiter) {
            return line.to_owned();
        }
        let kept: Vec<&str> =
            line.split(delimiter).enumerate().filter(|(at, _)| chosen(*at)).map(|(_, f)| f).collect();
        kept.join(delimiter.encode_utf8(&mut [0; 4]))
    }))
}

/// `sed` with one `s` command over plain text, or `y`.
fn sed(words: &[&str], input: &str) -> Option<String> {
    let script = match words {
        [script] | ["-e" | "-E" | "-r", script] => script,
        _ => return None,
    };
    let mut chars = script.chars();
    let command = chars.next().filter(|c| matches!(c, 's' | 'y'))?;
    let separator = chars.next()?;
    let parts: Vec<&str> = chars.as_str().split(separator).collect();
    let [from, to, flags] = parts.as_slice() else { return None };
    if command == 'y' {
        let map: Vec<(char, char)> = from.chars().zip(to.chars()).collect();
        let change = |c: char| map.iter().find(|(f, _)| *f == c).map_or(c, |(_, t)| *t);
        return Some(input.chars().map(change).collect());
    }
    let is_plain =
        |text: &str| !text.contains(['\\', '[', ']', '*', '+', '?', '(', ')', '{', '}', '^', '$', '&', '|']);
    // A dot alone would match any character; one that stands for itself is rare enough to leave out.
    if !is_plain(from)
        || from.is_empty()
        || from.contains('.')
        || !is_plain(to)
        || !matches!(*flags, "" | "g")
    {
        return None;
    }
    Some(lines(
        input,
        |line| if flags.is_empty() { line.replacen(from, to, 1) } else { line.replace(from, to) },
    ))
}

fn grep(words: &[&str], input: &str) -> Option<String> {
    let (inverts, only, pattern) = match words {
        [pattern] if !pattern.starts_with('-') => (false, false, pattern),
        ["-v", pattern] => (true, false, pattern),
        ["-o", pattern] => (false, true, pattern),
        ["-F" | "-e", pattern] => (false, false, pattern),
        _ => return None,
    };
    if pattern.contains(['\\', '[', '*', '^', '$', '.', '+', '?', '(', '|']) || only {
        return None;
    }
    let kept = input.lines().filter(|line| line.contains(pattern) != inverts);
    Some(kept.map(|line| format!("{line}\n")).collect())
}

/// `awk '{print $n}'`.
fn awk(words: &[&str], input: &str) -> Option<String> {
    let [script] = words else { return None };
    let inner = script.trim().strip_prefix('{')?.strip_suffix('}')?.trim().trim_end_matches(';').trim();
    let field = inner.strip_prefix("print")?.trim();
    let number = match field {
        "" => 0,
        field => field.strip_prefix('$')?.parse::<usize>().ok()?,
    };
    Some(lines(input, |line| match number {
        0 => line.to_owned(),
        number => line.split_whitespace().nth(number - 1).unwrap_or_default().to_owned(),
    }))
}

fn paste(words: &[&str], input: &str) -> Option<String> {
    let delimiter = match words {
        ["-sd", delimiter, ..] | ["-s", "-d", delimiter, ..] => *delimiter,
        [word, ..] if word.starts_with("-sd") => &word[3..],
        ["-s", ..] => "\t",
        _ => return None,
    };
    Some(format!("{}\n", input.lines().collect::<Vec<_>>().join(delimiter.get(..1).unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_print_one_text_are_read() {
        for (script, wanted) in [
            ("print(\"ls -l\")", Some("ls -l\n")),
            ("BEGIN { print \"ls -l\" }", Some("ls -l\n")),
            ("print 'ls';", Some("ls\n")),
            ("console.log('ls')", Some("ls\n")),
            ("print(x)", None),
            ("print(\"a\" + \"b\")", None),
            ("print(\"$x\")", None),
        ] {
            assert_eq!(printed(script).as_deref(), wanted, "{script}");
        }
    }

    #[test]
    fn filters_print_what_the_programs_print() {
        for (command, input, wanted) in [
            ("rev", "olleh\n", Some("hello\n")),
            ("tr a-z n-za-m", "uryyb", Some("hello")),
            ("tr A-Za-z N-ZA-Mn-za-m", "Uryyb", Some("Hello")),
            ("tr -d x", "hxexllo", Some("hello")),
            ("tr [:upper:] [:lower:]", "HELLO", Some("hello")),
            ("tr \\055 x", "a-b", Some("axb")),
            ("base64 -d", "aGVsbG8=\n", Some("hello")),
            ("base64", "hello", None),
            ("xxd -r -p", "68656c6c6f\n", Some("hello")),
            ("xxd -p -r", "68656c6c6f\n", Some("hello")),
            ("openssl base64 -d", "aGVsbG8=", Some("hello")),
            ("openssl enc -base64 -d", "aGVsbG8=", Some("hello")),
            ("head -c 2", "rmx", Some("rm")),
            ("head -n 1", "a\nb\n", Some("a\n")),
            ("tail -1", "a\nb\n", Some("b\n")),
            ("tail -c +2", "xrm", Some("rm")),
            ("cut -c 2-3", "xrmy\n", Some("rm\n")),
            ("cut -d: -f1", "rm:x\n", Some("rm\n")),
            ("sed s/x//g", "rxmx\n", Some("rm\n")),
            ("sed y/ab/rm/", "ab", Some("rm")),
            ("sed s/[a-z]//", "ab", None),
            ("awk {print$2}", "a rm\n", Some("rm\n")),
            ("tac", "b\na\n", Some("a\nb\n")),
            ("gunzip", "x", None),
        ] {
            let mut words = command.split(' ');
            let program = words.next().unwrap_or_default();
            let arguments: Vec<Argument> = words.map(|word| Argument::constant(word, 0..0)).collect();
            assert_eq!(apply(program, &arguments, input).as_deref(), wanted, "{command}");
        }
    }
}
