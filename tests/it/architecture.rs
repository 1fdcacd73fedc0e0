//! The import rules of the crate, held over its sources.
//!
//! Imports point down: a module names only those listed for it here. A new module must be added to the table, so that
//! its place is decided and not found out. Unit tests inside a file count as the file; those in a `tests.rs` or below
//! a folder `tests` do not.
//!
//! Not caught: an import by a `use super::super::…` from deep inside a module, which is refused as a style of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The core: pure, synchronous, the same answer for the same input.
const CORE: &[&str] = &["text", "decision", "rules", "detect", "paths", "shell", "commands"];

/// What every engine may use.
const ENGINE_BASE: &[&str] = &[
    "text",
    "decision",
    "rules",
    "detect",
    "paths",
    "shell",
    "commands",
    "judge",
    "policy",
    "audit",
    "telemetry",
    "store",
    "setting",
    "outbound",
];

/// Each module and the modules it may name, besides itself.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("text", &[]),
    ("decision", &["text"]),
    ("rules", &["text", "decision"]),
    ("detect", &["text", "decision", "rules", "shell", "commands"]),
    ("paths", &["text", "decision"]),
    ("shell", &["text", "decision", "paths"]),
    ("commands", &["text", "decision", "paths", "shell"]),
    ("setting", &[]),
    ("threads", &[]),
    ("outbound", &[]),
    ("judge", &["text", "decision", "rules", "detect", "paths", "shell", "setting", "outbound"]),
    ("policy", &["text", "decision", "rules", "detect", "paths", "shell", "setting"]),
    ("audit", &["text", "decision", "rules", "detect", "paths", "shell", "setting", "threads"]),
    ("telemetry", &["text", "decision", "rules", "detect", "paths", "shell", "setting"]),
    ("store", &["text", "decision", "rules", "detect", "paths", "shell", "setting", "threads"]),
    ("identity", &["text", "decision", "policy", "setting", "telemetry"]),
    ("train", &["text", "decision", "rules", "detect"]),
    ("messages", ENGINE_BASE),
    ("tools", ENGINE_BASE),
    ("monitor", ENGINE_BASE),
    ("bundles", ENGINE_BASE),
    (
        "extension",
        &["text", "decision", "rules", "paths", "policy", "setting", "outbound", "messages", "tools", "pb"],
    ),
    ("hooks", &["pb"]),
    ("pb", &[]),
];

/// What may be named only in these places: modules, or files of the crate's root.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("tonic", &["grpc", "extension", "client.rs", "cli/remote.rs"]),
    // Keys of an issuer are fetched where they are kept: no other module may bring keys.
    ("reqwest", &["judge", "messages/http_plugin.rs", "extension", "identity/jwks.rs"]),
    ("sqlx", &["store"]),
    ("object_store", &["store"]),
];

/// What the core does without: IO, clocks and everything asynchronous. The environment has a test of its own.
const NOT_IN_CORE: &[&str] = &[
    "std::fs",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "ToSocketAddrs",
    "std::io",
    "std::process",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "tokio::",
    "async fn",
    "futures_util",
    "tracing::",
    "metrics::",
];

/// A source file without its comments and string literals, under its path from `src`.
struct Source {
    path: String,
    code: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    walk(&root, &mut files);
    assert!(files.len() > 20, "the sources were not found");
    let read = |file: PathBuf| Source {
        path: file.strip_prefix(&root).expect("below the root").to_str().expect("ASCII").to_owned(),
        code: without_comments(&fs::read_to_string(&file).expect("a source is text")),
    };
    // Unit tests in files of their own may look at the module from above.
    let is_tests = |name: &std::ffi::OsStr| name == "tests.rs" || name == "tests";
    files.retain(|file| !file.strip_prefix(&root).is_ok_and(|below| below.iter().any(is_tests)));
    files.into_iter().map(read).collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Lines of comment blanked; trailing comments stay, since `//` in a string looks the same.
fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

impl Source {
    /// The module directly below the crate's root.
    fn module(&self) -> &str {
        self.path.split(['/', '.']).next().unwrap_or_default()
    }

    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path == *place || self.path.starts_with(&format!("{place}/")))
    }

    /// Modules of the crate that it names.
    fn named_modules(&self) -> BTreeSet<String> {
        let mut named = BTreeSet::new();
        for prefix in ["crate::"] {
            for (at, _) in self.code.match_indices(prefix) {
                let rest = &self.code[at + prefix.len()..];
                match rest.strip_prefix('{') {
                    // Only a list of modules begins right after the crate's name.
                    Some(list) => named.extend(group_heads(list)),
                    None => named.extend(identifier(rest)),
                }
            }
        }
        named
    }

    /// Whether a path that begins with `name` stands in the code.
    fn names(&self, name: &str) -> bool {
        self.code.match_indices(name).any(|(at, _)| {
            let before = self.code[..at].chars().next_back();
            let is_start = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
            let after = self.code[at + name.len()..].chars().next();
            let is_end = name.ends_with(':') || !after.is_some_and(|c| c.is_alphanumeric() || c == '_');
            is_start && is_end
        })
    }
}

/// The first names of a `{a::b, c::{d, e}}` after its opening brace.
fn group_heads(list: &str) -> Vec<String> {
    let (mut depth, mut heads, mut is_head) = (0, Vec::new(), true);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_head = true,
            c if is_head && !c.is_whitespace() => {
                heads.extend(identifier(&list[at..]));
                is_head = false;
            }
            _ => {}
        }
    }
    heads
}

/// The name that `text` begins with, if it is that of a module.
fn identifier(text: &str) -> Option<String> {
    let name: String = text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    name.starts_with(|c: char| c.is_ascii_lowercase()).then_some(name)
}

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_point_down() {
    let table: BTreeMap<&str, &[&str]> = MAY_NAME.iter().copied().collect();
    let sources = sources();
    let modules: BTreeSet<String> = sources.iter().map(|source| source.module().to_owned()).collect();
    let mut wrong = Vec::new();
    for source in &sources {
        // The upper modules may name everything; what they are is told below.
        let Some(allowed) = table.get(source.module()) else { continue };
        for named in source.named_modules().into_iter().filter(|named| modules.contains(named)) {
            if named != source.module() && !allowed.contains(&named.as_str()) {
                wrong.push(format!(
                    "src/{} names `{named}`, which `{}` may not",
                    source.path,
                    source.module()
                ));
            }
        }
    }
    assert_none(&wrong);
    const UPPER: &[&str] =
        &["app", "cli", "client", "config", "eval", "grpc", "http", "lib", "main", "console"];
    let unknown: Vec<_> = modules
        .iter()
        .filter(|module| !table.contains_key(module.as_str()) && !UPPER.contains(&module.as_str()))
        .map(|module| format!("`{module}` has no place in the table of modules"))
        .collect();
    assert_none(&unknown);
}

#[test]
fn protocols_stay_where_they_belong() {
    let mut wrong = Vec::new();
    for source in sources() {
        for (name, places) in ONLY_IN {
            if source.names(&format!("{name}::")) && !source.is_in(places) {
                wrong.push(format!("src/{} names `{name}`, which belongs to {places:?}", source.path));
            }
        }
    }
    assert_none(&wrong);
}

/// The program gathers its environment to hand it over; the settings read it.
#[test]
fn the_environment_is_read_by_the_settings_alone() {
    let mut wrong = Vec::new();
    for source in sources() {
        let reads = ["env::var", "env::vars", "env::set_var", "env::remove_var"];
        if reads.iter().any(|read| source.code.contains(read)) && !source.is_in(&["config", "main.rs"]) {
            wrong.push(format!("src/{} reads the environment", source.path));
        }
    }
    assert_none(&wrong);
}

#[test]
fn the_core_is_pure() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| CORE.contains(&source.module())) {
        for name in NOT_IN_CORE.iter().filter(|name| source.names(name)) {
            // Rule files come from a folder; reading them is the one door.
            if source.path == "rules/load.rs" && matches!(*name, "std::fs" | "std::io") {
                continue;
            }
            wrong.push(format!("src/{} names `{name}`", source.path));
        }
    }
    assert_none(&wrong);
}

#[test]
fn every_module_says_what_it_is_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "tests", "benches", "fuzz"] {
        if root.join(folder).is_dir() {
            walk(&root.join(folder), &mut files);
        }
    }
    // What cargo and npm put there is not ours; what a `tests.rs` is for, its module says.
    files.retain(|file| file.file_name() != Some("tests.rs".as_ref()));
    files.retain(|file| {
        !file.components().any(|part| matches!(part.as_os_str().to_str(), Some("target" | "node_modules")))
    });
    let wrong: Vec<_> = files
        .iter()
        .filter(|file| !fs::read_to_string(file).expect("a source is text").starts_with("//! "))
        .map(|file| {
            format!("{} does not begin with `//!`", file.strip_prefix(root).unwrap_or(file).display())
        })
        .collect();
    assert_none(&wrong);
}

#[test]
fn the_helpers_of_this_test_see_what_they_should() {
    let source = Source {
        path: "messages/engine.rs".into(),
        code: "use crate::{rules::{A, b}, text::C};\nuse crate::policy::{D, e};\nlet x = crate::audit::f();\ntonic::Status".into(),
    };
    let named: Vec<String> = source.named_modules().into_iter().collect();
    assert_eq!(named, ["audit", "policy", "rules", "text"]);
    assert_eq!(source.module(), "messages");
    assert!(source.names("tonic::") && !source.names("onic::"));
    assert!(source.is_in(&["messages"]) && source.is_in(&["messages/engine.rs"]) && !source.is_in(&["mess"]));
}
