//! Personal data that a policy knows and does not mind: the support address, the switchboard, test numbers.
//!
//! Invariant: an entry excuses a value that is written like it, letter case, separators and the script of digits aside;
//! never a part of a longer value, and never one of letters that only look like its own.

use std::borrow::Cow;

use crate::text::as_typed;

/// Values that are no finding worth acting on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AllowList {
    entries: Vec<String>,
}

impl AllowList {
    /// A list of values; an entry that begins with `@` stands for every e-mail address of that domain.
    pub fn new(entries: Vec<String>) -> Self {
        Self { entries }
    }

    /// The entries as they were written.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Whether `value` is on the list.
    pub fn allows(&self, value: &str) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        let value = &*as_typed(value);
        self.entries.iter().any(|entry| {
            let entry: Cow<'_, str> = as_typed(entry);
            if entry.starts_with('@') {
                return value
                    .rsplit_once('@')
                    .is_some_and(|(_, domain)| domain.eq_ignore_ascii_case(&entry[1..]));
            }
            plain(&entry).eq(plain(value))
        })
    }
}

/// A value without the separators that people put into numbers, ASCII letters in lower case.
fn plain(value: &str) -> impl Iterator<Item = char> {
    let is_separator =
        |c: &char| matches!(c, ' ' | '\t' | '\n' | '\r' | '-' | '.' | '/' | '(' | ')' | '\u{B7}');
    // An address is written in one way only.
    let keeps_all = value.contains('@');
    value.chars().filter(move |c| keeps_all || !is_separator(c)).map(|c| c.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_allowed_as_a_whole() {
        let list = AllowList::new(
            ["support@corp.example", "@lists.example", "+49 30 1234567", "４１１１-1111-1111-1111"]
                .map(str::to_owned)
                .to_vec(),
        );
        for (value, wanted) in [
            ("support@corp.example", true),
            ("Support@Corp.Example", true),
            ("+49 (30) 123-4567", true),
            ("anyone@lists.example", true),
            ("anyone@sub.lists.example", false),
            ("anyone@lists.example.org", false),
            ("xsupport@corp.example", false),
            ("sup.port@corp.example", false),
            ("+49 30 12345678", false),
            ("４１１１ １１１１ １１１１ １１１１", true),
            ("4111\u{a0}1111\u{2011}1111\u{200b}1111", true),
            ("٤١١١ ١١١١ ١١١١ ١١١١", true),
            ("4111 1111\n1111 1111", true),
            ("4111 1111 1111 1112", false),
            ("support＠corp.example", true),
            ("supp\u{43e}rt@corp.example", false),
            ("anyone@list\u{455}.example", false),
            ("", false),
        ] {
            assert_eq!(list.allows(value), wanted, "{value}");
        }
        assert!(!AllowList::default().allows(""));
    }
}
