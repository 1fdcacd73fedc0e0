//! Statements of Python 2 brought to the form of Python 3: `exec code`, `print text`, `except A, e`, `raise A, text`.
//!
//! Line by line, without regard to texts of several lines: what comes of it is only taken where the parser then finds fewer
//! errors. Lines stay where they are.

/// Longest line that is looked at, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The text with such statements rewritten; `None` where there are none.
pub(super) fn rewritten(text: &str) -> Option<String> {
    let (mut out, mut is_changed) = (String::with_capacity(text.len() + 64), false);
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        match statement(body).filter(|_| body.len() <= LINE_BYTES_MAX) {
            Some(changed) => {
                is_changed = true;
                out.push_str(&changed);
                out.push_str(&line[body.len()..]);
            }
            None => out.push_str(line),
        }
    }
    is_changed.then_some(out)
}

fn statement(line: &str) -> Option<String> {
    let mut at = line.len() - line.trim_start().len();
    // A statement behind the head of a block, or behind another one.
    for sign in [": ", "; ", ";", ":"] {
        let found = ["exec ", "print "].iter().filter_map(|word| line.find(&format!("{sign}{word}"))).min();
        if let Some(found) =
            found.filter(|found| line[..*found].matches(['"', '\'']).count().is_multiple_of(2))
        {
            at = found + sign.len();
            break;
        }
    }
    let (before, rest) = line.split_at(at);
    let given = |word: &str| {
        let rest = rest.strip_prefix(word)?.trim_start();
        (!rest.is_empty() && !rest.starts_with(['=', '.', ',', ')', ':'])).then_some(rest)
    };
    if let Some(code) = given("exec ") {
        let code = code.split(" in ").next().unwrap_or(code).trim_end_matches([';', ' ']);
        return Some(format!("{before}exec({code})"));
    }
    if let Some(text) = given("print ") {
        let text =
            text.strip_prefix(">>").and_then(|rest| rest.split_once(',')).map_or(text, |(_, text)| text);
        return Some(format!("{before}print({})", text.trim_end_matches([';', ' '])));
    }
    if let Some(caught) = given("except ") {
        let (kind, name) = caught.strip_suffix(':').unwrap_or(caught).rsplit_once(',')?;
        let is_name = name.trim().bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        return is_name.then(|| format!("{before}except {kind} as {}:", name.trim()));
    }
    if let Some(raised) = given("raise ") {
        let (kind, text) = raised.split_once(',')?;
        let is_name = kind.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'));
        return is_name.then(|| format!("{before}raise {kind}({})", text.trim()));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_python_2_are_rewritten() {
        for (line, wanted) in [
            ("exec code", Some("exec(code)")),
            ("exec code in globals()", Some("exec(code)")),
            ("    print 'a', b", Some("    print('a', b)")),
            ("print >>sys.stderr, 'a'", Some("print( 'a')")),
            ("if x: exec y", Some("if x: exec(y)")),
            ("except OSError, e:", Some("except OSError as e:")),
            ("raise ValueError, 'a'", Some("raise ValueError('a')")),
            ("raise ValueError('a, b')", None),
            ("exec = 1", None),
            ("x = 'say: print this'", None),
            ("except (A, B):", None),
        ] {
            assert_eq!(statement(line).as_deref(), wanted, "{line}");
        }
        assert_eq!(rewritten("a = 1\nexec a\n").as_deref(), Some("a = 1\nexec(a)\n"));
        assert_eq!(rewritten("a = 1\n"), None);
    }
}
