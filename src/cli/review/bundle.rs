//! What is reviewed: an archive as it is, a folder packed on the fly, or one document.

use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::bundles::archive::{Archive, ArchiveLimits, FileSource, Source};
use crate::bundles::pack::{PackError, Packer};
use crate::cli::Failure;
use crate::cli::progress::Progress;
use crate::decision::BundleKind;
use crate::setting::system_problem;

/// Folders of version control: not part of a bundle, and full of what nobody can scan.
const LEFT_OUT: [&str; 3] = [".git", ".hg", ".svn"];
/// Most files and folders in a folder; past this somebody has named the wrong one.
const WALKED_MAX: usize = 100_000;
/// Longest name of a folder that files are put in, and longest path of those files, in bytes: longer ones would be refused
/// for it.
const FOLDER_BYTES_MAX: usize = 100;
const IN_FOLDER_BYTES_MAX: usize = 900;
/// Mode of a link, as in `stat.h`.
const LINK_MODE: u32 = 0o120_777;

/// An archive to review.
#[derive(Debug)]
pub(super) struct Bundle {
    /// Its bytes.
    pub(super) file: File,
    /// How many.
    pub(super) size: u64,
    /// Paths of its files; empty when it cannot be opened.
    pub(super) paths: Vec<String>,
    /// Where its files are for the one who asked, as a prefix of their paths; empty for an archive.
    pub(super) prefix: String,
    /// Name of the folder that was packed; empty for anything else.
    pub(super) folder: String,
    /// Whether the archive holds that folder, and its files in it, rather than the files alone.
    pub(super) is_in_folder: bool,
    /// What was left out of a folder.
    pub(super) left_out: Vec<String>,
}

impl Bundle {
    /// Opens an archive, or packs a folder or a document into a file that nobody else sees. What is going to be sent tells by its
    /// paths what the folder of a skill is called.
    pub(super) fn open(
        path: &Path,
        temporary: &Path,
        limits: &ArchiveLimits,
        is_sent: bool,
        progress: &mut Progress,
    ) -> Result<Self, Failure> {
        let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if metadata.is_dir() {
            let depth_max = if is_sent { limits.depth_max } else { 0 };
            return pack_folder(path, temporary, depth_max, progress);
        }
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md")) {
            return pack_document(path, temporary);
        }
        if !metadata.is_file() {
            return Err(Failure::data(format_args!("{}: is neither a file nor a folder", path.display())));
        }
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let source = file.try_clone().and_then(FileSource::new).map_err(|error| unreadable(path, &error))?;
        // One that is refused still gets its verdict.
        let paths = Archive::open(&source, limits)
            .map(|archive| archive.entries().iter().map(|entry| entry.path.clone()).collect())
            .unwrap_or_default();
        let (prefix, folder) = (String::new(), String::new());
        let (left_out, is_in_folder) = (Vec::new(), false);
        Ok(Self { file, size: source.len(), paths, prefix, folder, is_in_folder, left_out })
    }

    /// The bytes at any offset.
    pub(super) fn source(&self) -> Result<FileSource, Failure> {
        self.file.try_clone().and_then(FileSource::new).map_err(Failure::internal)
    }

    /// What it looks like; `None` when nothing tells.
    pub(super) fn kind(&self) -> Option<BundleKind> {
        kind_of(&self.paths)
    }
}

/// What files with these paths look like, the bundle lying at the top or in one folder: a plugin by its
/// `plugin.json`, a skill by its `SKILL.md`, agents by any other document.
fn kind_of(paths: &[String]) -> Option<BundleKind> {
    if paths.is_empty() {
        // It cannot be opened, and is refused whatever it is.
        return Some(BundleKind::Skill);
    }
    let names = |name: &str| {
        paths.iter().any(|path| {
            let inner = path.split_once('/').map(|(_, inner)| inner);
            [Some(path.as_str()), inner].contains(&Some(name))
        })
    };
    if names(".claude-plugin/plugin.json") {
        return Some(BundleKind::Plugin);
    }
    if names("SKILL.md") {
        return Some(BundleKind::Skill);
    }
    // A skill that lies too deep is one all the same, and is told so, where nothing else could be meant.
    let is_deep = |path: &&String| path.ends_with("/SKILL.md");
    let is_near =
        |path: &&String| path.to_ascii_lowercase().ends_with(".md") && path.matches('/').count() <= 1;
    if paths.iter().any(|path| is_deep(&path)) && !paths.iter().any(|path| is_near(&path)) {
        return Some(BundleKind::Skill);
    }
    let is_document = |path: &String| path.to_ascii_lowercase().ends_with(".md");
    paths.iter().any(is_document).then_some(BundleKind::Agent)
}

/// A file or link of a folder.
struct Walked {
    path: PathBuf,
    name: String,
    metadata: fs::Metadata,
}

/// Packs a folder: a skill into a folder of its name where its paths are then at most `depth_max` names long.
fn pack_folder(
    folder: &Path,
    temporary: &Path,
    depth_max: usize,
    progress: &mut Progress,
) -> Result<Bundle, Failure> {
    let (mut walked, mut left_out) = (Vec::new(), Vec::new());
    walk(folder, "", &mut walked, &mut left_out)?;
    if walked.is_empty() {
        return Err(Failure::data(format_args!(
            "{}: holds no file; name a folder with SKILL.md or another document, or a ZIP archive",
            folder.display()
        )));
    }
    walked.sort_by(|a, b| a.name.cmp(&b.name));
    // By its real name, since `.` says none.
    let real = fs::canonicalize(folder).map_err(|error| unreadable(folder, &error))?;
    let name = real.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let has_room =
        |one: &Walked| one.name.split('/').count() < depth_max && one.name.len() <= IN_FOLDER_BYTES_MAX;
    let is_in_folder = is_plain(&name)
        && walked.iter().any(|one| one.name.eq_ignore_ascii_case("SKILL.md"))
        && walked.iter().all(has_room);
    let total: u64 = walked.iter().map(|one| one.metadata.len()).sum();
    let mut packer = Packer::new(unseen_file(temporary)?);
    let mut done = 0;
    for one in &walked {
        let at = if is_in_folder { format!("{name}/{}", one.name) } else { one.name.clone() };
        add(&mut packer, one, &at).map_err(|error| match error {
            PackError::Io(error) => unreadable(&one.path, &error),
            error => Failure::data(format_args!("{}: {error}", one.path.display())),
        })?;
        done += one.metadata.len();
        progress.bytes("packing", done, total);
    }
    let paths = walked.into_iter().map(|one| one.name).collect();
    Ok(Bundle { left_out, folder: name, is_in_folder, ..packed(packer, paths, prefix_of(folder))? })
}

/// Whether a folder may be called so in any archive: not like a device of Windows, which have three or four characters.
fn is_plain(name: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let start = name.get(..3).unwrap_or_default().to_ascii_lowercase();
    let is_device = name.len() <= 4 && ["con", "prn", "aux", "nul", "com", "lpt"].contains(&start.as_str());
    !name.is_empty() && name.len() <= FOLDER_BYTES_MAX && name.bytes().all(is_known) && !is_device
}

fn pack_document(document: &Path, temporary: &Path) -> Result<Bundle, Failure> {
    let name = document.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Failure::data(format_args!("{}: is no UTF-8 name", document.display())))?;
    let metadata = fs::metadata(document).map_err(|error| unreadable(document, &error))?;
    let one = Walked { path: document.to_owned(), name: name.to_owned(), metadata };
    let mut packer = Packer::new(unseen_file(temporary)?);
    add(&mut packer, &one, name)
        .map_err(|error| Failure::data(format_args!("{}: {error}", document.display())))?;
    let folder = document.parent().map(prefix_of).unwrap_or_default();
    packed(packer, vec![one.name], folder)
}

fn packed(packer: Packer<File>, paths: Vec<String>, prefix: String) -> Result<Bundle, Failure> {
    let mut file = packer.finish().map_err(Failure::data)?;
    let size = file.seek(SeekFrom::End(0)).and_then(|size| file.rewind().map(|()| size));
    let size = size.map_err(Failure::internal)?;
    let (folder, left_out) = (String::new(), Vec::new());
    Ok(Bundle { size, file, paths, prefix, folder, is_in_folder: false, left_out })
}

/// Adds a file or link under a path.
fn add(packer: &mut Packer<File>, one: &Walked, path: &str) -> Result<(), PackError> {
    let kind = one.metadata.file_type();
    if kind.is_symlink() {
        // The gate says what it thinks of links; following one could lead anywhere.
        let target = fs::read_link(&one.path)?;
        return packer.add(path, LINK_MODE, &mut target.as_os_str().as_encoded_bytes());
    }
    if !kind.is_file() {
        // A socket or a device is named and never opened.
        return packer.add(path, one.metadata.mode(), &mut io::empty());
    }
    let mut file = File::open(&one.path)?;
    packer.add_file(path, one.metadata.mode() & 0o111 != 0, &mut file as &mut dyn Read)
}

fn walk(
    folder: &Path,
    prefix: &str,
    walked: &mut Vec<Walked>,
    left_out: &mut Vec<String>,
) -> Result<(), Failure> {
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(folder, &error))?;
        let path = entry.path();
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return Err(Failure::data(format_args!("{}: is no UTF-8 name", path.display())));
        };
        let name = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        // Not followed: a link is packed as a link.
        let metadata = fs::symlink_metadata(&path).map_err(|error| unreadable(&path, &error))?;
        if LEFT_OUT.contains(&name.rsplit('/').next().unwrap_or_default()) {
            left_out.push(name);
        } else if metadata.is_dir() {
            walk(&path, &name, walked, left_out)?;
        } else {
            walked.push(Walked { path, name, metadata });
        }
        if walked.len() > WALKED_MAX {
            let message = format!("{}: holds more than {WALKED_MAX} files", folder.display());
            return Err(Failure::data(message));
        }
    }
    Ok(())
}

/// A file without a name: it goes with the process, however that ends.
fn unseen_file(folder: &Path) -> Result<File, Failure> {
    let path = folder.join(format!("portcullis-review-{}", Uuid::new_v4().simple()));
    let failed = |error: io::Error| Failure::internal(format_args!("{}: {error}", path.display()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path);
    let file = file.map_err(failed)?;
    fs::remove_file(&path).map_err(failed)?;
    Ok(file)
}

/// The folder as it was named, where that leads to its files from the place of whoever named it.
fn prefix_of(folder: &Path) -> String {
    use std::path::Component;
    let names: Option<Vec<&str>> = folder
        .components()
        .filter(|part| !matches!(part, Component::CurDir))
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    names.unwrap_or_default().join("/")
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::data(format_args!("{}: cannot be read: {}", path.display(), system_problem(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_their_first_document() {
        for (paths, wanted) in [
            (&["SKILL.md", "run.py"][..], Some(BundleKind::Skill)),
            (&["notes/SKILL.md"], Some(BundleKind::Skill)),
            (&["notes/deep/SKILL.md"], Some(BundleKind::Skill)),
            (&["notes/deep/SKILL.md", "helper.md"], Some(BundleKind::Agent)),
            (&["SKILL.md", ".claude-plugin/plugin.json"], Some(BundleKind::Plugin)),
            (&["p/.claude-plugin/plugin.json", "p/skills/a/SKILL.md"], Some(BundleKind::Plugin)),
            (&["helper.MD"], Some(BundleKind::Agent)),
            (&["run.py"], None),
            (&[], Some(BundleKind::Skill)),
        ] {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            assert_eq!(kind_of(&paths), wanted, "{paths:?}");
        }
    }

    #[test]
    fn a_folder_is_packed_the_same_each_time_and_links_stay_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("scripts")).expect("made");
        fs::create_dir_all(at(".git/objects")).expect("made");
        fs::write(at(".git/objects/pack"), b"\0").expect("written");
        fs::write(at("SKILL.md"), b"hello").expect("written");
        fs::write(at("scripts/run.sh"), b"true").expect("written");
        std::os::unix::fs::symlink("/etc/passwd", at("scripts/secret")).expect("linked");
        let elsewhere = tempfile::tempdir().expect("a folder");
        let read = || {
            let limits = ArchiveLimits::default();
            let bundle = Bundle::open(folder.path(), elsewhere.path(), &limits, false, &mut Progress::new());
            let mut bundle = bundle.expect("packed");
            let mut bytes = Vec::new();
            bundle.file.read_to_end(&mut bytes).expect("read");
            assert_eq!(bytes.len() as u64, bundle.size);
            assert_eq!(bundle.left_out, [".git"]);
            (bundle.paths, bytes)
        };
        let (paths, bytes) = read();
        assert_eq!(paths, ["SKILL.md", "scripts/run.sh", "scripts/secret"]);
        assert_eq!(read().1, bytes);
        let refused = Archive::open(bytes.as_slice(), &ArchiveLimits::default()).expect_err("a link");
        assert_eq!(refused.rule.id(), "archive.symlink");
        assert_eq!(fs::read_dir(elsewhere.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn a_skill_is_sent_in_a_folder_of_its_name_where_that_can_be() {
        let around = tempfile::tempdir().expect("a folder");
        let limits = ArchiveLimits::default();
        let deep = "d/".repeat(limits.depth_max - 1) + "a.txt";
        for (name, files, is_sent, wanted) in [
            ("notes", &["SKILL.md", "a/b.txt"][..], true, "notes/SKILL.md"),
            ("notes-2", &["SKILL.md"], false, "SKILL.md"),
            ("con", &["SKILL.md"], true, "SKILL.md"),
            ("my notes", &["SKILL.md"], true, "SKILL.md"),
            ("outer", &["inner/SKILL.md"], true, "inner/SKILL.md"),
            ("deep", &["SKILL.md", &deep], true, "SKILL.md"),
        ] {
            for file in files {
                let at = around.path().join(name).join(file);
                fs::create_dir_all(at.parent().expect("a folder")).expect("made");
                fs::write(at, "x").expect("written");
            }
            let folder = around.path().join(name);
            let packed = Bundle::open(&folder, around.path(), &limits, is_sent, &mut Progress::new());
            let packed = packed.expect("packed");
            let source = packed.source().expect("bytes");
            let archive = Archive::open(&source, &limits).expect("an archive");
            assert!(archive.entries().iter().any(|entry| entry.path == wanted), "{name}");
            assert_eq!(packed.is_in_folder, wanted.starts_with(name), "{name}");
            // What it holds is called as before.
            assert!(packed.paths.iter().any(|path| path == files[0]), "{name}");
        }
    }

    #[test]
    fn prefixes_lead_from_here_or_are_empty() {
        for (folder, wanted) in [
            ("skills/notes", "skills/notes"),
            ("./skills/notes/", "skills/notes"),
            (".", ""),
            ("..", ""),
            ("/srv/notes", ""),
            ("a/../b", ""),
        ] {
            assert_eq!(prefix_of(Path::new(folder)), wanted, "{folder}");
        }
    }
}
