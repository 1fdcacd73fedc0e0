//! Lines taken apart where no quotes are open.

/// Calls `each` with every character, its place, and the quote that is open there.
pub(super) fn walk(text: &str, quotes: &[char], mut each: impl FnMut(usize, char, Option<char>)) {
    let (mut open, mut is_escaped) = (None, false);
    for (at, c) in text.char_indices() {
        each(at, c, open);
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' && open != Some('\'') {
            is_escaped = true;
        } else if open == Some(c) {
            open = None;
        } else if open.is_none() && quotes.contains(&c) {
            open = Some(c);
        }
    }
}

/// The parts of a line between signs that stand outside of quotes, parentheses and braces.
pub(super) fn split<'t>(line: &'t str, by: char, quotes: &[char]) -> Vec<&'t str> {
    let (mut depth, mut cuts) = (0_i32, Vec::new());
    walk(line, quotes, |at, c, open| {
        if open.is_none() {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                _ if c == by && depth <= 0 => cuts.push(at),
                _ => {}
            }
        }
    });
    let mut out = Vec::with_capacity(cuts.len() + 1);
    let mut from = 0;
    for cut in cuts {
        out.push(&line[from..cut]);
        from = cut + by.len_utf8();
    }
    out.push(&line[from..]);
    out
}

/// A line without the comment at its end.
pub(super) fn without_comment<'t>(line: &'t str, quotes: &[char]) -> &'t str {
    let (mut end, mut before) = (line.len(), ' ');
    walk(line, quotes, |at, c, open| {
        if c == '#' && open.is_none() && before.is_whitespace() && end == line.len() {
            end = at;
        }
        before = c;
    });
    &line[..end]
}

/// A line in which `(command)` is `$(command)`.
pub(super) fn substituted(line: &str, quotes: &[char]) -> String {
    let (mut out, mut before) = (String::with_capacity(line.len() + 8), ' ');
    walk(line, quotes, |_, c, open| {
        if c == '(' && open.is_none() && !matches!(before, '$' | '<' | '>' | '\\') {
            out.push('$');
        }
        out.push(c);
        before = c;
    });
    out
}

/// The first word and what stands behind it.
pub(super) fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}
