//! Where the paths of a tool call really lead: the hook runs on the machine of the agent and can look.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Members of tool arguments that hold a path, or a list of them.
const PATH_MEMBERS: [&str; 13] = [
    "file_path",
    "path",
    "notebook_path",
    "filePath",
    "filepath",
    "absolute_path",
    "target_file",
    "file",
    "filename",
    "file_name",
    "dir_path",
    "paths",
    "file_paths",
];
/// Most paths of one call that are looked up.
const PATHS_MAX: usize = 64;
/// Longest path that is looked up, in bytes.
const PATH_BYTES_MAX: usize = 4096;

/// The paths among the arguments of a tool, as written, to where they lead with every symbolic link followed. What leads
/// nowhere else, and what cannot be looked up, is left out.
pub(super) fn resolved_paths(args_json: &str, cwd: &str, home: &str) -> Vec<(String, String)> {
    let Ok(Value::Object(arguments)) = serde_json::from_str::<Value>(args_json) else {
        return Vec::new();
    };
    let written =
        PATH_MEMBERS.iter().filter_map(|member| arguments.get(*member)).flat_map(|value| match value {
            Value::Array(items) => items.iter().filter_map(Value::as_str).take(PATHS_MAX).collect(),
            value => value.as_str().into_iter().collect::<Vec<_>>(),
        });
    let resolve = |written: &str| {
        let real = real_path(&absolute(written, cwd, home)?)?;
        (real != written).then(|| (written.to_owned(), real))
    };
    written.filter(|written| written.len() <= PATH_BYTES_MAX).filter_map(resolve).collect()
}

/// The path below `cwd`, or below `home` where it begins with a tilde.
fn absolute(written: &str, cwd: &str, home: &str) -> Option<PathBuf> {
    if written.is_empty() || written.contains('\0') {
        return None;
    }
    let path = match written.strip_prefix("~/") {
        Some(rest) if !home.is_empty() => Path::new(home).join(rest),
        _ => Path::new(cwd).join(written),
    };
    path.is_absolute().then_some(path)
}

/// The real path; of a file that does not exist yet, the real path of its folder with its name.
fn real_path(path: &Path) -> Option<String> {
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(_) => path.parent()?.canonicalize().ok()?.join(path.file_name()?),
    };
    real.to_str().map(str::to_owned)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        std::fs::create_dir(root.join("secret")).expect("a folder");
        std::fs::write(root.join("secret/key"), "x").expect("a file");
        std::os::unix::fs::symlink(root.join("secret/key"), root.join("notes.txt")).expect("a link");
        std::os::unix::fs::symlink(root.join("secret"), root.join("docs")).expect("a link");
        let cwd = root.to_str().expect("Unicode");
        let to = |rest: &str| format!("{cwd}/{rest}");
        for (written, real) in [
            ("notes.txt".to_owned(), Some(to("secret/key"))),
            ("docs/key".to_owned(), Some(to("secret/key"))),
            ("docs/new".to_owned(), Some(to("secret/new"))),
            ("~/notes.txt".to_owned(), Some(to("secret/key"))),
            (to("secret/key"), None),
            ("nowhere/at/all".to_owned(), None),
            ("a\0b".to_owned(), None),
        ] {
            let args = serde_json::json!({ "file_path": written }).to_string();
            let resolved = resolved_paths(&args, cwd, cwd);
            let wanted: Vec<_> = real.into_iter().map(|real| (written.clone(), real)).collect();
            assert_eq!(resolved, wanted, "{written}");
        }
        let list = resolved_paths(r#"{"paths":["docs/key",7,"nowhere/at/all"]}"#, cwd, cwd);
        assert_eq!(list, [("docs/key".to_owned(), to("secret/key"))]);
        assert!(resolved_paths("[]", cwd, cwd).is_empty());
        assert!(resolved_paths(r#"{"path":7}"#, cwd, cwd).is_empty());
    }
}
