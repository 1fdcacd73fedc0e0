//! What a file says, read again when the file changes; a broken new file leaves the last good one in force.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::policy::FolderWatch;

/// Reads the files. Errors are ready to print and hold nothing secret.
type Read<T> = Box<dyn Fn() -> Result<T, String> + Send + Sync>;

/// The last good value of some files.
pub struct Kept<T> {
    current: ArcSwap<T>,
    /// Held while files are read: two reads at once could keep the older one last.
    watch: Mutex<FolderWatch>,
    read: Read<T>,
}

/// What a look at the files came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// They are as they were.
    Unchanged,
    /// The new value is in force.
    Applied,
    /// What is wrong with the new ones; the last good value stays.
    Rejected(String),
}

impl<T> Kept<T> {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// What is wrong with them: without a first good value there is none to keep.
    pub fn start(
        paths: Vec<PathBuf>,
        read: impl Fn() -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        // The watch looks first: a change while the files are read then shows at the next look.
        let watch = Mutex::new(FolderWatch::new(paths));
        let current = ArcSwap::from_pointee(read()?);
        Ok(Self { current, watch, read: Box::new(read) })
    }

    /// The value in force.
    pub fn get(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// Reads the files again if they changed since the last look.
    pub fn refresh(&self) -> Refreshed {
        // A poisoned lock means that a read panicked; the watch in it is whole.
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        if !watch.changed() {
            return Refreshed::Unchanged;
        }
        match (self.read)() {
            Ok(value) => {
                self.current.store(Arc::new(value));
                Refreshed::Applied
            }
            Err(problem) => Refreshed::Rejected(problem),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_file_leaves_the_last_good_value() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("number");
        let read = {
            let path = path.clone();
            move || {
                let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
                text.trim().parse::<u32>().map_err(|error| error.to_string())
            }
        };
        assert!(Kept::start(vec![path.clone()], read.clone()).is_err(), "there is no file yet");
        std::fs::write(&path, "1").expect("it writes");
        let kept = Kept::start(vec![path.clone()], read).expect("a number");
        assert_eq!((kept.refresh(), *kept.get()), (Refreshed::Unchanged, 1));
        std::fs::write(&path, "twelve").expect("it writes");
        assert!(matches!(kept.refresh(), Refreshed::Rejected(_)));
        assert_eq!((kept.refresh(), *kept.get()), (Refreshed::Unchanged, 1));
        std::fs::write(&path, "12").expect("it writes");
        assert_eq!((kept.refresh(), *kept.get()), (Refreshed::Applied, 12));
        std::fs::remove_file(&path).expect("it is there");
        assert!(matches!(kept.refresh(), Refreshed::Rejected(_)));
        assert_eq!(*kept.get(), 12);
    }
}
