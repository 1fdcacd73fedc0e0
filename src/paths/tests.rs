//! Tables of one spelling and of kinds of places.

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table<T> {
    case: Vec<T>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spelling {
    text: String,
    is: String,
    known: Option<String>,
    windows: Option<String>,
}

const NOWHERE: Place<'static> = Place { cwd: "", home: "", os: Os::Linux };
const LINUX: Place<'static> = Place { cwd: "/srv/repo", home: "/home/u", os: Os::Linux };
const WINDOWS: Place<'static> = Place { cwd: "C:\\Users\\u\\p", home: "C:\\Users\\u", os: Os::Windows };

#[test]
fn one_spelling() {
    let table: Table<Spelling> =
        toml::from_str(include_str!("../../tests/cases/paths/normalise.toml")).unwrap();
    assert!(table.case.len() > 50);
    for case in table.case {
        let known = case.known.as_ref().unwrap_or(&case.is);
        let windows = case.windows.as_ref().unwrap_or(&case.is);
        for (place, expected) in [(&NOWHERE, &case.is), (&LINUX, known), (&WINDOWS, windows)] {
            let found = normalise(&case.text, place);
            assert_eq!(found, *expected, "{:?} at {place:?}", case.text);
            assert_eq!(normalise(&found, place), found, "{:?} twice at {place:?}", case.text);
        }
    }
}

#[test]
fn a_place_that_leads_to_itself_is_not_known() {
    for (cwd, home) in [
        ("/proc/self/cwd/x", "/home/u"),
        ("~/x", "/proc/self/cwd/../y"),
        ("/proc/self/cwd", "/proc/self/cwd"),
        ("~", "~"),
        ("$PWD", "$HOME"),
    ] {
        for os in [Os::Linux, Os::Windows] {
            let place = Place { cwd, home, os };
            for path in ["a/../b", "~/a", "/proc/self/cwd/a", "../a"] {
                let once = normalise(path, &place).into_owned();
                assert_eq!(normalise(&once, &place), once, "{path:?} at {place:?}");
            }
        }
    }
}

#[test]
fn what_is_clean_is_borrowed() {
    for path in ["/", "/srv/repo/src/main.rs", "/home/u/.ssh/id_rsa"] {
        assert!(matches!(normalise(path, &LINUX), std::borrow::Cow::Borrowed(_)), "{path}");
    }
}

#[test]
fn below_a_root() {
    for (path, root, os, expected) in [
        ("/srv/repo", "/srv/repo", Os::Linux, true),
        ("/srv/repo/a", "/srv/repo", Os::Linux, true),
        ("/srv/repo2", "/srv/repo", Os::Linux, false),
        ("/srv/repo", "/", Os::Linux, true),
        ("/", "/", Os::Linux, true),
        ("C:/x", "C:/", Os::Windows, true),
        ("/SRV/a", "/srv", Os::Linux, false),
        ("/SRV/a", "/srv", Os::MacOs, true),
        ("a", "", Os::Linux, false),
        ("/é/a", "/é", Os::Linux, true),
        ("/é/a", "/\u{301}", Os::Linux, false),
    ] {
        assert_eq!(within(path, root, os), expected, "{path} below {root}");
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    path: String,
    kind: String,
}

#[test]
fn kinds_of_places() {
    let place = Place { cwd: "/srv/repo/app", ..LINUX };
    let table: Table<Kind> = toml::from_str(include_str!("../../tests/cases/paths/kinds.toml")).unwrap();
    assert!(table.case.len() > 30);
    for case in table.case {
        let found = kind_of(&normalise(&case.path, &place), &place);
        assert_eq!(format!("{found:?}"), case.kind, "{}", case.path);
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    #[serde(default)]
    name: String,
    patch: String,
    paths: Vec<String>,
}

#[test]
fn paths_of_patches() {
    let table: Table<Patch> = toml::from_str(include_str!("../../tests/cases/paths/patches.toml")).unwrap();
    assert!(table.case.len() > 12);
    for case in table.case {
        let found = patch_paths(&case.patch);
        let listed: Vec<String> =
            found.paths.iter().map(|path| format!("{} {}", path.access.as_str(), path.path)).collect();
        assert_eq!(listed, case.paths, "{}: {}", case.name, case.patch);
        assert!(!found.is_cut);
    }
}

#[test]
fn a_patch_of_too_many_files_is_cut() {
    let text: String = (0..PATCH_PATHS_MAX + 5).map(|nth| format!("*** Add File: f{nth}\n+x\n")).collect();
    let found = patch_paths(&text);
    assert_eq!((found.paths.len(), found.is_cut), (PATCH_PATHS_MAX, true));
}
