//! Personal data that a policy knows and does not mind: the support address, the switchboard, test numbers.
//!
//! Invariant: an entry excuses a value that is written like it, letter case and separators aside; never a part of a
//! longer value, and never one that only looks like it in a disguise.

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
        self.entries.iter().any(|entry| {
            if entry.starts_with('@') {
                return value
                    .rsplit_once('@')
                    .is_some_and(|(_, domain)| domain.eq_ignore_ascii_case(&entry[1..]));
            }
            plain(entry).eq(plain(value))
        })
    }
}

/// A value without the separators that people put into numbers, ASCII letters in lower case.
fn plain(value: &str) -> impl Iterator<Item = char> {
    let is_separator = |c: &char| matches!(c, ' ' | '-' | '.' | '/' | '(' | ')');
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
            ["support@corp.example", "@lists.example", "+49 30 1234567"].map(str::to_owned).to_vec(),
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
            ("", false),
        ] {
            assert_eq!(list.allows(value), wanted, "{value}");
        }
        assert!(!AllowList::default().allows(""));
    }
}
