//! Files of which a text may hold what stands in them, as far as a command filled it from files.

use std::sync::Arc;

use super::effect::Target;

/// Files that one text is known to come from.
const CARRIED_MAX: usize = 256;

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Its path.
    pub target: Target,
    /// Whether everything below it was read as well.
    pub recursive: bool,
    /// What of it was taken.
    pub pick: Pick,
    /// Whether it is the token of a provider, which a program of that provider printed.
    pub is_token: bool,
}

/// What a program took of what was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pick {
    /// All of it.
    #[default]
    All,
    /// A piece, by this filter of `grep`, `jq` and the like.
    Filter(Arc<str>),
    /// The secret that was asked for with these words; no file was read.
    Asked(Arc<[String]>),
    /// Nothing: it is the name of a variable that the command does not set, and that is the address of a service.
    Address,
}

impl Read {
    /// All of a file, or of what is below a folder.
    pub fn all(target: Target, recursive: bool) -> Self {
        Self { target, recursive, pick: Pick::All, is_token: false }
    }

    /// Whether a program took a piece of it, as `grep` and `jq` do.
    pub fn is_selected(&self) -> bool {
        matches!(self.pick, Pick::Filter(_))
    }
}

/// See the module. Most texts carry nothing, which costs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried(Option<Arc<Vec<Read>>>);

impl Carried {
    /// These files, the first of them if there are many.
    pub fn of(reads: impl IntoIterator<Item = Read>) -> Self {
        let mut carried = Self::default();
        for read in reads {
            carried.add(&read);
        }
        carried
    }

    /// The files.
    pub fn reads(&self) -> &[Read] {
        match &self.0 {
            Some(reads) => reads,
            None => &[],
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// What two texts carry that become one.
    pub fn merge(&mut self, other: &Self) {
        match (&self.0, &other.0) {
            (_, None) => {}
            (None, Some(_)) => *self = other.clone(),
            (Some(own), Some(more)) if Arc::ptr_eq(own, more) => {}
            _ => other.reads().iter().for_each(|read| self.add(read)),
        }
    }

    fn add(&mut self, read: &Read) {
        let reads = self.reads();
        if reads.len() < CARRIED_MAX && !reads.contains(read) {
            Arc::make_mut(self.0.get_or_insert_with(Arc::default)).push(read.clone());
        }
    }
}
