//! Where the value of a setting comes from.

use std::collections::BTreeMap;
use std::fmt;

/// Where the value of one setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// The settings file.
    File {
        /// The file as it was named.
        path: String,
        /// 1-based line of the value; 0 when it is not known.
        line: u64,
    },
    /// An environment variable.
    Env {
        /// Its name.
        name: String,
    },
    /// The command line.
    Flag {
        /// The flag, dashes included.
        name: String,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line: 0 } => write!(f, "file {path}"),
            Self::File { path, line } => write!(f, "file {path}:{line}"),
            Self::Env { name } => write!(f, "env {name}"),
            Self::Flag { name } => write!(f, "flag {name}"),
        }
    }
}

/// The source of every setting that is not a default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources(BTreeMap<String, Source>);

impl Sources {
    /// The source of a dotted key, or of the map around it, which is set as a whole.
    pub fn get(&self, key: &str) -> &Source {
        let mut path = key;
        loop {
            match (self.0.get(path), path.rsplit_once('.')) {
                (Some(source), _) => return source,
                (None, Some((around, _))) => path = around,
                (None, None) => return &Source::Default,
            }
        }
    }

    pub(super) fn set(&mut self, key: &str, source: Source) {
        self.0.insert(key.to_owned(), source);
    }
}
