//! The built-in rules against their own examples and against tables; what must hold of any path.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;

use super::super::{HOLE, Os, Place, normalise};
use super::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    paths: Vec<String>,
    is: String,
    /// Other outcomes of single paths.
    #[serde(default)]
    but: BTreeMap<String, String>,
    rule: Option<String>,
    #[serde(default = "read")]
    access: Access,
    program: Option<String>,
    #[serde(default)]
    is_option: bool,
    #[serde(default)]
    has_glob: bool,
    #[serde(default)]
    is_recursive: bool,
    #[serde(default)]
    cwd: String,
    #[serde(default)]
    home: String,
    #[serde(default)]
    os: String,
    #[serde(default)]
    workspace_roots: Vec<String>,
    resolved: Option<String>,
}

fn read() -> Access {
    Access::Read
}

fn outcome(judged: &PathJudgement<'_>) -> &'static str {
    match judged.hit.as_ref().map(|hit| hit.action) {
        _ if judged.oddity.is_some() => "odd",
        Some(PathAction::Block) => "block",
        Some(PathAction::Warn) => "warn",
        None => "allow",
    }
}

#[test]
fn builtin_rules_hold_for_their_examples() {
    let checked = SensitivePaths::builtin().self_check(|_| true);
    let problems: Vec<String> = checked.problems.iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(checked.rules > 25 && checked.paths > 200, "{checked:?}");
}

#[test]
fn what_becomes_of_a_path() {
    let set = SensitivePaths::builtin();
    let table: Table = toml::from_str(include_str!("../../../tests/cases/paths/sensitive.toml")).unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in &table.case {
        let os = match case.os.as_str() {
            "" | "linux" => Os::Linux,
            "macos" => Os::MacOs,
            "windows" => Os::Windows,
            other => panic!("no system is called {other}"),
        };
        let place = Place { cwd: &case.cwd, home: &case.home, os };
        for written in &case.paths {
            count += 1;
            let path = written.replace("{H}", &HOLE.to_string());
            let judged = set.judge(&PathRequest {
                path: &path,
                access: case.access,
                via: match case.program.as_deref() {
                    Some(program) if case.is_option => Via::ShellOption(program),
                    Some(program) => Via::Shell(program),
                    None => Via::FileTool,
                },
                has_glob: case.has_glob,
                is_recursive: case.is_recursive,
                place: &place,
                workspace_roots: &case.workspace_roots,
                resolved: case.resolved.as_deref(),
            });
            let expected = case.but.get(written).unwrap_or(&case.is);
            let rule = judged.hit.as_ref().map(|hit| hit.rule.id.to_string());
            if outcome(&judged) != expected || (case.rule.is_some() && case.rule != rule) {
                let path = judged.hit.as_ref().map(|hit| hit.path.as_str()).unwrap_or_default();
                wrong.push(format!(
                    "{written:?} ({} {:?}): {} by {rule:?} as {path:?}, not {expected}",
                    case.access.as_str(),
                    case.program,
                    outcome(&judged)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 250);
}

#[test]
fn problems_name_file_and_line() {
    let rule = |id: &str, more: &str| {
        format!(
            "[[rule]]\nid = \"{id}\"\ncategory = \"path.x\"\nseverity = \"high\"\ndescription = \"D.\"\nrecommendation = \"R.\"\nexamples = [\"a\"]\nnegative_examples = [\"b\"]\n{more}\n"
        )
    };
    for (text, line, message) in [
        ("[[rule]]\nid = 1\n".to_owned(), 2, "invalid type"),
        ("\n[[rule]\n".to_owned(), 2, "unclosed array table"),
        ("rule = ['x']".to_owned(), 1, "expected a table `[[rule]]`"),
        ("fixtures = 'x'".to_owned(), 1, "expected a table `[fixtures]`"),
        (rule("a", "paths = [\"y\"]\nshell = \"read\""), 10, "expected a table such as { block = ['read'] }"),
        (rule("a", "paths = []"), 1, "paths has none"),
        (rule("a", "paths = [\"*\"]"), 1, "fits too much"),
        (rule("a", "paths = [\"x/**/y\"]"), 1, "before its end"),
        (rule("a", "paths = [\"x//y\"]"), 1, "empty name"),
        (rule("a", "paths = [\"../y\"]"), 1, "not normalised"),
        (rule("A b", "paths = [\"y\"]"), 1, "must be lower-case"),
        (rule("a", "paths = [\"y\"]\nfile_tools = {}"), 1, "can never say anything"),
        (
            rule("a", "paths = [\"y\"]\nshell = { block = [\"read\"], warn = [\"read\"] }"),
            1,
            "both blocks and warns",
        ),
        (
            rule("a", "paths = [\"y\"]\nfile_tools = { block = [\"read\"], warn_programs = [\"x\"] }"),
            1,
            "no program",
        ),
        (rule("a", "path = [\"y\"]"), 1, "unknown field"),
        (
            format!("{}{}", rule("a", "paths = [\"y\"]"), rule("a", "paths = [\"z\"]")),
            10,
            "taken by x.toml:1",
        ),
    ] {
        let problems =
            SensitivePaths::load(&[PathRuleSource { file: "x.toml", text: &text }]).expect_err(&text);
        let found = problems.0.iter().find(|problem| problem.message.contains(message));
        let found = found.unwrap_or_else(|| panic!("no {message:?} in:\n{problems}"));
        assert_eq!((found.file.as_str(), found.line > 0), ("x.toml", true), "{found}");
        if message != "unknown field" {
            assert_eq!(found.line, line, "{found}");
        }
        assert!(found.to_string().starts_with("x.toml:"), "{found}");
    }
}

#[test]
fn rules_of_ones_own() {
    let text = r#"
        [fixtures]
        folders = ["golden"]
        [[rule]]
        id = "own.plan"
        category = "path.plan"
        severity = "medium"
        paths = ["plans/*.plan", "~/secret/**", "/opt/own/**"]
        except = ["public.plan"]
        allows_fixtures = true
        file_tools = { block = ["read"], warn = ["write"] }
        description = "A plan."
        recommendation = "Ask."
        examples = ["plans/a.plan"]
        negative_examples = ["plans/a.txt", "plans/public.plan", "golden/plans/a.plan"]
    "#;
    let set = SensitivePaths::load(&[PathRuleSource { file: "own.toml", text }]).expect("it loads");
    assert_eq!(set.self_check(|_| true).problems, []);
    let place = Place::default();
    for (path, access, expected) in [
        ("x/PLANS/A.plan", Access::Read, "block"),
        ("x/plans/a.plan", Access::Write, "warn"),
        ("x/plans/a.plan", Access::Delete, "allow"),
        ("plans/x/a.plan", Access::Read, "allow"),
        ("/home/u/secret/a/b", Access::Read, "block"),
        ("/srv/secret/a/b", Access::Read, "allow"),
        ("/opt/own/a", Access::Read, "block"),
        ("/opt/own", Access::Read, "allow"),
        ("/x/opt/own/a", Access::Read, "allow"),
    ] {
        assert_eq!(outcome(&set.judge(&PathRequest::of_file_tool(path, access, &place))), expected, "{path}");
    }
}

/// Names that a path of the properties below is made of.
const NAMES: &[&str] = &[
    "a",
    "src",
    "test",
    "node_modules",
    "fixtures",
    ".ssh",
    "id_rsa",
    "home",
    "ann",
    "etc",
    "shadow",
    ".env",
    "..",
    ".",
    "~",
    "%2e%2e",
    "proc",
    "self",
    "root",
    "cwd",
    "C:",
    "file:",
    "",
    "*",
    "x y",
    "é",
    "\\",
    "\0",
    "$HOME",
    "//?/",
    ".aws",
];

fn some_path() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::collection::vec(proptest::sample::select(NAMES), 0..9).prop_map(|names| names.join("/")),
        proptest::collection::vec(proptest::sample::select(NAMES), 0..9).prop_map(|names| names.join("\\")),
        ".{0,40}",
    ]
}

fn some_place() -> impl Strategy<Value = Place<'static>> {
    let folders = ["", "/srv/repo", "C:\\work", "~/x", "a", "/", "\0/x"];
    let homes = ["", "/home/ann", "C:\\Users\\ann", "/", "~"];
    (
        proptest::sample::select(folders.to_vec()),
        proptest::sample::select(homes.to_vec()),
        proptest::sample::select(vec![Os::Linux, Os::MacOs, Os::Windows]),
    )
        .prop_map(|(cwd, home, os)| Place { cwd, home, os })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_spelling_stays_one(path in some_path(), place in some_place()) {
        let once = normalise(&path, &place).into_owned();
        prop_assert_eq!(&normalise(&once, &place), &once, "of {:?}", path);
        let known_part = once.trim_start_matches("../");
        prop_assert!(!known_part.contains("//"), "{:?}", once);
    }

    #[test]
    fn any_path_has_an_answer(
        path in some_path(),
        place in some_place(),
        has_glob: bool,
        is_recursive: bool,
        shell: bool,
        roots in proptest::collection::vec(some_path(), 0..2),
        resolved in proptest::option::of(some_path()),
    ) {
        let request = PathRequest {
            path: &path,
            access: Access::Read,
            via: if shell { Via::Shell("cat") } else { Via::FileTool },
            has_glob,
            is_recursive,
            place: &place,
            workspace_roots: &roots,
            resolved: resolved.as_deref(),
        };
        let judged = SensitivePaths::builtin().judge(&request);
        // The same again, and never milder for knowing where links lead.
        let again = SensitivePaths::builtin().judge(&request);
        prop_assert_eq!(outcome(&judged), outcome(&again));
        let alone = SensitivePaths::builtin().judge(&PathRequest { resolved: None, ..request });
        let strictness = |judged: &PathJudgement<'_>| judged.hit.as_ref().map(|hit| hit.action);
        prop_assert!(strictness(&judged) >= strictness(&alone));
    }

    #[test]
    fn noise_never_lifts_a_block(
        target in proptest::sample::select(vec![
            "/home/ann/.ssh/id_rsa", "/etc/shadow", "/srv/app/.env", "/root/.aws/credentials", "/home/ann/.netrc", "/srv/tls/site.key",
            "/home/ann/.config/gh/hosts.yml", "/proc/self/environ",
        ]),
        noise in proptest::collection::vec((0usize..6, proptest::sample::select(vec![
            "./", "/", "x/../", "test/../", "node_modules/../", "fixtures/a/../../", ".ssh/../", "tests/./..//", "\u{200b}",
        ])), 0..6),
        wrap in proptest::sample::select(vec!["{}", " {}", "{}\n", "\"{}\"", "'{}'", "file://{}", "/proc/self/root{}", "/srv/repo/test/../../..{}", "{}/", "{}/.", "@{}"]),
        upper: bool,
    ) {
        let mut path = target.to_owned();
        for (nth, noise) in noise {
            // After some separator, so that names stay whole. A link of the system is no plain folder to climb out of.
            let starts: Vec<usize> = path.match_indices('/').map(|(at, _)| at + 1).collect();
            let at = starts[nth % starts.len()];
            if !path[..at].starts_with("/proc/self/") || noise == "./" {
                path.insert_str(at, noise);
            }
        }
        let path = if upper { path.to_uppercase() } else { path };
        let path = wrap.replace("{}", &path);
        let judged = SensitivePaths::builtin().judge(&PathRequest::of_file_tool(&path, Access::Read, &Place::default()));
        prop_assert_ne!(outcome(&judged), "allow", "{:?}", path);
        prop_assert_ne!(outcome(&judged), "warn", "{:?}", path);
    }
}
