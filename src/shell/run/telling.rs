//! Which of many known items are worth a run of their own.
//!
//! A loop over a hundred names does the same to each. The first few are run, and of the rest those that may mean
//! something else than a name in the working directory; a list of too many of those is a limit that was hit.

use super::super::argument::HOLE;

/// Items that are run whatever they are.
const PLAIN_MAX: usize = 16;
/// Items that are run because they stand out.
const TELLING_MAX: usize = 256;

/// Whether an item may be more than a name in the working directory: a path from elsewhere, an option, code.
pub(super) fn is_telling(item: &str) -> bool {
    let item = item.trim();
    item.starts_with(['/', '~', '-', '\\', '"', '\'', '{'])
        || item.contains("..")
        || item.contains([' ', '\t', ';', '|', '&', '`', '$', '>', '<', HOLE])
        || item.as_bytes().get(1) == Some(&b':')
        || !item.is_empty() && item.bytes().all(|b| matches!(b, b'.' | b'/' | b'*' | b'?'))
}

/// Counts items and says which of them are run.
#[derive(Default)]
pub(super) struct Rounds {
    plain: usize,
    telling: usize,
}

impl Rounds {
    /// Whether this item is run.
    pub fn runs(&mut self, item: &str) -> bool {
        if is_telling(item) {
            self.telling += 1;
            self.telling <= TELLING_MAX
        } else {
            self.plain += 1;
            self.plain <= PLAIN_MAX
        }
    }

    /// Whether an item that stands out was left out.
    pub fn left_out(&self) -> bool {
        self.telling > TELLING_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_paths_are_not() {
        for item in
            ["/", "~", "..", ".", "*", "./*", "../a", "a/../..", "-rf", "a b", "$x", "c:/", "{}", "'/'"]
        {
            assert!(is_telling(item), "{item}");
        }
        for item in ["a", "a.txt", "./a", "src/a.rs", "", "*.log"] {
            assert!(!is_telling(item), "{item}");
        }
    }

    #[test]
    fn the_first_names_run_and_every_path_up_to_the_limit() {
        let mut rounds = Rounds::default();
        let run = (0..100).filter(|_| rounds.runs("a")).count();
        assert_eq!(run, PLAIN_MAX);
        assert!(rounds.runs("/") && !rounds.left_out());
        let run = (0..1000).filter(|_| rounds.runs("/a")).count();
        assert_eq!(run, TELLING_MAX - 1);
        assert!(rounds.left_out());
    }
}
