//! The files of a bundle as the review by a model gets them.

/// Most bytes kept of one file.
const FILE_BYTES_MAX: usize = 64 << 10;
/// Most bytes kept of all files together.
const TREE_BYTES_MAX: usize = 8 << 20;

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// Path in the bundle; a file in a nested archive as `outer.zip!/inner`.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Whether somebody may execute it, by its mode.
    pub is_executable: bool,
    /// Its text, or the beginning of it. `None` when it is no text, or no room was left: a review needs far less.
    pub text: Option<String>,
    /// The end of its text where `text` is only the beginning; else empty. What lies between was left out.
    pub tail: String,
}

impl TreeFile {
    /// Whether the text ends before the file does.
    pub fn is_cut(&self) -> bool {
        self.text.as_ref().is_some_and(|text| ((text.len() + self.tail.len()) as u64) < self.size)
    }
}

/// The files of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Every file, ordered by path, those of nested archives behind the archive itself.
    pub files: Vec<TreeFile>,
    /// The folder that holds the bundle, with a slash at its end: empty, or the one top folder.
    pub root: String,
    /// Path of the primary document: `SKILL.md`, `plugin.json` or the agent's document; empty when there is none.
    pub primary: String,
    kept: usize,
}

impl Tree {
    /// Adds a file; `text` is what of it is text.
    pub(super) fn add(&mut self, path: String, size: u64, is_executable: bool, text: Option<&str>) {
        let room = FILE_BYTES_MAX.min(TREE_BYTES_MAX - self.kept);
        let kept = text.filter(|_| room > 0).map(|text| {
            if text.len() <= room {
                return (text.to_owned(), String::new());
            }
            // The end is kept too, so that nothing hides behind padding.
            let head = text.floor_char_boundary(room - room / 4);
            let tail = text.ceil_char_boundary(text.len() - room / 4);
            (text[..head].to_owned(), text[tail.max(head)..].to_owned())
        });
        let (text, tail) = kept.map_or((None, String::new()), |(head, tail)| (Some(head), tail));
        self.kept += text.as_ref().map_or(0, String::len) + tail.len();
        self.files.push(TreeFile { path, size, is_executable, text, tail });
    }
}
