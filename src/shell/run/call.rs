//! Arguments put back into shell text, and texts joined the way wrappers join them.

use super::super::argument::{Argument, HOLE};

/// Appends an argument as one word of shell text.
pub(super) fn quote_into(text: &mut String, word: &Argument) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c) || c == HOLE;
    if !word.text.is_empty()
        && word.text.chars().all(|c| is_plain(c) || (word.has_glob && "*?[]".contains(c)))
    {
        text.push_str(&word.text);
        return;
    }
    text.push('\'');
    for c in word.text.chars() {
        match c {
            '\'' => text.push_str("'\\''"),
            c => text.push(c),
        }
    }
    text.push('\'');
}

/// Words joined by blanks, as `eval`, `ssh` and `watch` do before a shell reads them again.
pub(super) fn joined(words: &[Argument]) -> Argument {
    let mut all = Argument::default();
    for (at, word) in words.iter().enumerate() {
        if at == 0 {
            all.span = word.span.clone();
        } else {
            all.text.push(' ');
            all.span = all.span.start.min(word.span.start)..all.span.end.max(word.span.end);
        }
        all.text.push_str(&word.text);
        all.absorb(word);
    }
    all
}
