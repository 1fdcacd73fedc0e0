use proptest::prelude::*;

use super::*;
use crate::decision::CheckStatus;

fn check(kind: BundleKind, files: &[(&str, &str)]) -> (CheckStatus, Vec<String>, Checked) {
    let mut candidates = Candidates::new(kind);
    for (path, text) in files {
        candidates.note(path, text, true);
    }
    let names: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
    let mut checked = candidates.check(&names);
    let result = std::mem::take(&mut checked.findings).into_result();
    (result.status, result.findings.into_iter().map(|finding| finding.rule_id).collect(), checked)
}

#[test]
fn what_clients_read_as_utf8_is_utf8() {
    for (kind, path, text, is_utf8, wanted) in [
        (BundleKind::Plugin, ".claude-plugin/plugin.json", r#"{"name":"notes"}"#, true, CheckStatus::Pass),
        (BundleKind::Plugin, ".claude-plugin/plugin.json", r#"{"name":"notes"}"#, false, CheckStatus::Fail),
        (BundleKind::Skill, "SKILL.md", "---\nname: a\ndescription: d\n---\n", true, CheckStatus::Pass),
        (BundleKind::Skill, "SKILL.md", "---\nname: a\ndescription: d\n---\n", false, CheckStatus::Warn),
        (BundleKind::Agent, "a.md", "---\nname: a\ndescription: d\n---\n", false, CheckStatus::Warn),
    ] {
        let mut candidates = Candidates::new(kind);
        candidates.note(path, text, is_utf8);
        let mut checked = candidates.check(&[path]);
        let result = std::mem::take(&mut checked.findings).into_result();
        assert_eq!(result.status, wanted, "{path} {is_utf8}: {:?}", result.findings);
    }
}

#[test]
fn what_is_listed_hides_nothing_in_escapes() {
    for (description, is_told) in [
        (r"Sorts \u202Enotes by speaker.", true),
        (r"\x1b[31m red", true),
        (r"Sorts \u2066notes\u2069.", true),
        (r"Sorts notes.\nAnd more.", false),
        (r"\u05d0\u2066notes\u2069 \u05d1", false),
        (r"\u05d0\u202enotes", true),
    ] {
        let text = format!("---\nname: a\ndescription: \"{description}\"\n---\n");
        let (status, rules, _) = check(BundleKind::Skill, &[("SKILL.md", &text)]);
        let wanted = if is_told { CheckStatus::Fail } else { CheckStatus::Pass };
        assert_eq!(status, wanted, "{description}: {rules:?}");
        assert_eq!(rules.contains(&"manifest.hidden-character".to_owned()), is_told, "{description}");
    }
}

/// A finding tells one line, that of the file, and nothing that is meant for programmers.
#[test]
fn problems_of_the_front_matter_tell_the_line_of_the_file() {
    for (text, line) in [("---\nname: [a\ndescription: x\n---\nhi", 3), ("---\nname: a\nname: b\n---\n", 3)] {
        let mut candidates = Candidates::new(BundleKind::Skill);
        candidates.note("SKILL.md", text, true);
        let mut checked = candidates.check(&["SKILL.md"]);
        let found = std::mem::take(&mut checked.findings).into_result().findings;
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!(found[0].line, line, "{text}: {}", found[0].reason);
        for word in ["at line", "column", "Options", "Policy"] {
            assert!(!found[0].reason.contains(word), "{text}: {}", found[0].reason);
        }
    }
}

/// Files, how the check ends, and the rules that it names.
type Case<'a> = (&'a [(&'a str, &'a str)], CheckStatus, &'a [&'a str]);

#[test]
fn a_folder_that_was_packed_has_a_name_too() {
    let text = "---\nname: good\ndescription: d\n---\nbody";
    for (folder, path, is_told) in [
        ("good", "SKILL.md", false),
        ("other", "SKILL.md", true),
        ("", "SKILL.md", false),
        ("other", "good/SKILL.md", false),
    ] {
        let mut candidates = Candidates::new(BundleKind::Skill).packed_from(folder);
        candidates.note(path, text, true);
        let mut checked = candidates.check(&[path]);
        let found = std::mem::take(&mut checked.findings).into_result().findings;
        assert_eq!(found.iter().any(|one| one.rule_id == "manifest.name-folder"), is_told, "{folder} {path}");
    }
}

#[test]
fn skills() {
    let long_name = format!("---\nname: {}\ndescription: d\n---\n", "a".repeat(65));
    let long_text = format!("---\nname: a\ndescription: {}\n---\n", "é".repeat(1_025));
    let fits = format!("---\nname: {}\ndescription: {}\n---\n", "a".repeat(64), "é".repeat(1_024));
    let good = "---\nname: good\ndescription: d\n---\nbody";
    let cases: &[Case] = &[
        (&[("SKILL.md", good)], CheckStatus::Pass, &[]),
        (&[("good/SKILL.md", good)], CheckStatus::Pass, &[]),
        (&[("other/SKILL.md", good)], CheckStatus::Warn, &["manifest.name-folder"]),
        (&[("a/b/SKILL.md", good)], CheckStatus::Fail, &["manifest.missing"]),
        (&[("README.md", good)], CheckStatus::Fail, &["manifest.missing"]),
        (&[("SKILL.md", good), ("x/SKILL.md", good)], CheckStatus::Fail, &["manifest.duplicate"]),
        (&[("SKILL.md", good), ("x/y/skill.md", good)], CheckStatus::Fail, &["manifest.duplicate"]),
        (&[("skill.md", good)], CheckStatus::Warn, &["manifest.spelling"]),
        (&[("SKILL.md", "no front matter")], CheckStatus::Fail, &["manifest.frontmatter"]),
        (&[("SKILL.md", "---\nname: a\n")], CheckStatus::Fail, &["manifest.frontmatter"]),
        (&[("SKILL.md", "---\nname: [a\n---\n")], CheckStatus::Fail, &["manifest.frontmatter"]),
        (&[("SKILL.md", "---\n- a\n---\n")], CheckStatus::Fail, &["manifest.frontmatter"]),
        (&[("SKILL.md", "---\nname: a\nname: b\n---\n")], CheckStatus::Fail, &["manifest.frontmatter"]),
        (
            &[("SKILL.md", "---\n---\n")],
            CheckStatus::Fail,
            &["manifest.description-missing", "manifest.name-missing"],
        ),
        (&[("SKILL.md", "---\nname: a\n---\n")], CheckStatus::Fail, &["manifest.description-missing"]),
        (
            &[("SKILL.md", "---\nname: a\ndescription: ' '\n---\n")],
            CheckStatus::Fail,
            &["manifest.description-missing"],
        ),
        (
            &[("SKILL.md", "---\nname: [a]\ndescription: d\n---\n")],
            CheckStatus::Fail,
            &["manifest.name-type"],
        ),
        (&[("SKILL.md", &long_name)], CheckStatus::Fail, &["manifest.name-length"]),
        (&[("SKILL.md", &long_text)], CheckStatus::Fail, &["manifest.description-length"]),
        (&[("SKILL.md", &fits)], CheckStatus::Pass, &[]),
        (
            &[("SKILL.md", "---\nname: A b\ndescription: d\nversion: 1\n---\n")],
            CheckStatus::Warn,
            &["manifest.name-style", "manifest.unknown-field"],
        ),
        (
            &[("SKILL.md", "---\nname: a\ndescription: use it: often\n---\n")],
            CheckStatus::Warn,
            &["manifest.yaml"],
        ),
        (
            &[("SKILL.md", "---\r\nname: a\r\ndescription: >\r\n  one\r\n  two\r\n---\r\nx")],
            CheckStatus::Pass,
            &[],
        ),
    ];
    for (files, status, rules) in cases {
        let (found, ids, _) = check(BundleKind::Skill, files);
        assert_eq!(
            (found, ids.iter().map(String::as_str).collect::<Vec<_>>()),
            (*status, rules.to_vec()),
            "{files:?}"
        );
    }
}

#[test]
fn plugins() {
    const AT: &str = ".claude-plugin/plugin.json";
    for (json, status, rules) in [
        (r#"{"name":"a_B-1"}"#, CheckStatus::Pass, &[][..]),
        (r#"{"name":"a","version":"1.2"}"#, CheckStatus::Pass, &[]),
        (r#"{"name":"a","version":"v1.2.3-beta.1+5"}"#, CheckStatus::Pass, &[]),
        (r#"{"name":"a","version":"latest"}"#, CheckStatus::Fail, &["manifest.version"]),
        (r#"{"name":"a","version":1}"#, CheckStatus::Fail, &["manifest.version"]),
        (r#"{"name":"a b"}"#, CheckStatus::Fail, &["manifest.name"]),
        (r#"{"name":1}"#, CheckStatus::Fail, &["manifest.name"]),
        (r#"{"name":""}"#, CheckStatus::Fail, &["manifest.name-missing"]),
        (r#"{}"#, CheckStatus::Fail, &["manifest.name-missing"]),
        (r#"[]"#, CheckStatus::Fail, &["manifest.json"]),
        (r#"{"name":"a",}"#, CheckStatus::Fail, &["manifest.json"]),
        (r#"{"name":"a","skills":"../x"}"#, CheckStatus::Fail, &["manifest.path-escape"]),
        (r#"{"name":"a","commands":["./c.md","C:/x"]}"#, CheckStatus::Fail, &["manifest.path-escape"]),
        (r#"{"name":"a","commands":["./c.md"]}"#, CheckStatus::Pass, &[]),
        (r#"{"name":"a","agents":"./agents"}"#, CheckStatus::Warn, &["manifest.path-missing"]),
    ] {
        let (found, ids, _) = check(BundleKind::Plugin, &[(AT, json), ("c.md", "x")]);
        assert_eq!(
            (found, ids.iter().map(String::as_str).collect::<Vec<_>>()),
            (status, rules.to_vec()),
            "{json}"
        );
    }
    let (found, _, checked) =
        check(BundleKind::Plugin, &[("p/.claude-plugin/plugin.json", r#"{"name":"p"}"#)]);
    assert_eq!((found, checked.root.as_str()), (CheckStatus::Pass, "p/"));
    let (found, ids, _) = check(BundleKind::Plugin, &[("a/b/.claude-plugin/plugin.json", r#"{"name":"p"}"#)]);
    assert_eq!((found, ids), (CheckStatus::Fail, vec!["manifest.missing".to_owned()]));
}

#[test]
fn agents() {
    let good = "---\nname: a\ndescription: d\n---\nYou help.";
    for (files, status) in [
        (&[("a.md", good)][..], CheckStatus::Pass),
        (&[("agents/a.md", good), ("agents/b.md", good)], CheckStatus::Pass),
        (&[("a.txt", good)], CheckStatus::Fail),
        (&[("README.md", "x")], CheckStatus::Warn),
        (&[("a.md", "You help.")], CheckStatus::Warn),
        (&[("a.md", "---\nname: [\n---\n")], CheckStatus::Fail),
    ] {
        assert_eq!(check(BundleKind::Agent, files).0, status, "{files:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_manifest_or_not(text in "(?s).{0,200}", kind in 0..3_usize) {
        let kind = BundleKind::ALL[kind];
        for path in ["SKILL.md", ".claude-plugin/plugin.json", "a.md"] {
            check(kind, &[(path, &text)]);
        }
    }

    #[test]
    fn any_front_matter_ends(yaml in "[-a-z:\\[\\]{}&*!|>'\"# \n]{0,80}", cut in 0..120_usize) {
        let text = format!("---\nname: a\n{yaml}\n---\nbody");
        check(BundleKind::Skill, &[("SKILL.md", &text)]);
        check(BundleKind::Skill, &[("SKILL.md", &text[..text.floor_char_boundary(cut)])]);
    }
}
