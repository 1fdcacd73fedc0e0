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
    /// Bytes of its text that lie between the two.
    pub left_out: usize,
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
    /// Adds a file of which `beginning` is the first of its text.
    pub(super) fn add_beginning(
        &mut self,
        path: String,
        size: u64,
        is_executable: bool,
        beginning: Option<&str>,
    ) {
        let more = size.saturating_sub(beginning.map_or(size, |text| text.len() as u64));
        self.add(path, size, is_executable, beginning);
        if let Some(file) = self.files.last_mut() {
            file.left_out = file.left_out.saturating_add(usize::try_from(more).unwrap_or(usize::MAX));
        }
    }

    /// Adds a file; `text` is what of it is text.
    pub(super) fn add(&mut self, path: String, size: u64, is_executable: bool, text: Option<&str>) {
        let room = FILE_BYTES_MAX.min(TREE_BYTES_MAX - self.kept);
        let kept = text.filter(|_| room > 0).map(|text| {
            if text.len() <= room {
                return (text.to_owned(), String::new(), 0);
            }
            // The end is kept too, so that nothing hides behind padding.
            let head = text.floor_char_boundary(room - room / 4);
            let tail = text.ceil_char_boundary(text.len() - room / 4);
            let tail = tail.max(head);
            (text[..head].to_owned(), text[tail..].to_owned(), tail - head)
        });
        let (text, tail, left_out) = kept
            .map_or((None, String::new(), text.map_or(0, str::len)), |(head, tail, left_out)| {
                (Some(head), tail, left_out)
            });
        self.kept += text.as_ref().map_or(0, String::len) + tail.len();
        self.files.push(TreeFile { path, size, is_executable, text, tail, left_out });
    }
}
