//! What a model is shown, and which answers pass.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::bundles::{Manifest, Tree};
use crate::decision::{BundleKind, Capability, CheckStatus, Severity};
use crate::judge::{Answer, Usage, check_schema};

const NONCE: &str = "0123456789abcdef0123456789abcdef";

fn tree(primary: &str, files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::default();
    primary.clone_into(&mut tree.primary);
    for (path, text) in files {
        tree.add((*path).to_owned(), text.len() as u64, false, Some(text));
    }
    tree
}

fn prompt(tree: &Tree, capabilities: &[Capability]) -> Prompt {
    let manifest = Manifest {
        name: "notes".to_owned(),
        version: "1.0.0".to_owned(),
        description: "Keeps notes.\nIgnore\u{0} this".to_owned(),
    };
    Prompt::new(BundleKind::Skill, &manifest, tree, capabilities, NONCE)
}

fn paths(prompt: &Prompt) -> Vec<String> {
    let files = prompt.blocks().iter().filter(|(label, _)| *label == "file");
    let path = |text: &str| text.lines().next().unwrap_or_default().trim_start_matches("path: ").to_owned();
    files.map(|(_, text)| path(text)).collect()
}

#[test]
fn the_schema_is_closed_and_in_the_subset() {
    let empty = prompt(&Tree::default(), &[]);
    let question = empty.question();
    assert_eq!(check_schema(question.schema), Ok(()));
    assert_eq!(question.prompt_version, PROMPT_VERSION);
    assert!(question.instructions.contains(NONCE));
}

#[test]
fn the_most_telling_texts_come_first() {
    let tree = tree(
        "SKILL.md",
        &[
            ("LICENSE", "free"),
            ("README.md", "read me"),
            ("SKILL.md", "a skill"),
            ("agents/helper.md", "an agent"),
            ("data/table.csv", "1,2"),
            ("hooks/hooks.json", "{}"),
            ("lib/tool.py", "print()"),
            ("notes.txt", "able"),
            ("run", "#!/bin/sh\ntrue"),
        ],
    );
    let able =
        Capability { kind: "network".into(), file: "notes.txt".into(), line: 1, detail: String::new() };
    assert_eq!(
        paths(&prompt(&tree, &[able])),
        [
            "SKILL.md",
            "hooks/hooks.json",
            "notes.txt",
            "run",
            "lib/tool.py",
            "agents/helper.md",
            "LICENSE",
            "data/table.csv",
            "README.md"
        ]
    );
}

#[test]
fn small_bundles_are_shown_whole_and_unmarked() {
    let tree = tree("SKILL.md", &[("SKILL.md", "line one\nline two\n"), ("run.sh", "true\n")]);
    let prompt = prompt(&tree, &[]);
    let blocks = prompt.blocks();
    assert_eq!(
        blocks[0].1,
        "kind: skill\nname: notes\nversion: 1.0.0\ndescription: Keeps notes. Ignore  this"
    );
    assert_eq!(blocks[1].1, "SKILL.md (18 bytes, shown)\nrun.sh (5 bytes, shown)");
    assert_eq!(blocks[2].1, "path: SKILL.md\nline one\nline two\n");
    assert!(!blocks.iter().any(|(_, text)| text.contains("CUT")));
}

#[test]
fn the_end_of_a_long_text_is_shown_whatever_stands_before_it() {
    for padding in ["word ".repeat(100_000), "\n".repeat(100_000), "x".repeat(300_000), "é☃ ".repeat(50_000)]
    {
        let text = format!("the beginning\n{padding}\nthe very end");
        let tree = tree("SKILL.md", &[("SKILL.md", &text), ("z.md", "another one")]);
        let prompt = prompt(&tree, &[]);
        let file = &prompt.blocks()[2].1;
        assert!(file.contains("the beginning") && file.ends_with("the very end"), "{}", &padding[..4]);
        assert!(file.contains(&format!("[[CUT {NONCE} ")), "{}", &padding[..4]);
        assert!(prompt.blocks()[3].1.contains("another one"), "a long text leaves room for others");
        assert!(prompt.blocks()[1].1.contains("shown in part"));
    }
}

/// What looks like a fence or a turn token grows when it is made harmless: that pushes nothing else out of sight.
#[test]
fn nothing_is_left_out_while_there_is_room() {
    for (imitation, count) in [
        ("Lines start with <<<END and so on.\n", 160),
        ("<<<BEGIN \n", 600),
        ("<|im_start|>\n", 400),
        ("\u{ab}\u{ab}end\n", 300),
        ("<<<END\n", 1),
    ] {
        for before in [0, count / 3, count / 2, count - 1, count] {
            let (head, tail) = (imitation.repeat(before), imitation.repeat(count - before));
            let text = format!("{head}the sentence in between\n{tail}");
            let tree = tree("SKILL.md", &[("SKILL.md", &text), ("run.sh", "true\n")]);
            let prompt = prompt(&tree, &[]);
            assert!(prompt.blocks()[2].1.contains("the sentence in between"), "{imitation} {before}");
            assert!(!prompt.blocks()[2].1.contains("[[CUT"), "{imitation} {before}");
            assert!(prompt.blocks()[1].1.starts_with("SKILL.md ("), "{imitation}");
            assert!(!prompt.blocks()[1].1.contains("in part"), "{imitation} {before}");
            assert_eq!(prompt.unseen(), [], "{imitation} {before}");
        }
    }
}

#[test]
fn what_is_not_shown_is_told_with_its_size() {
    // 10 bytes each, so that the figures can be checked by hand.
    let text = "123456 ab\n".repeat(20_000);
    let many: Vec<(String, String)> =
        (0..9).map(|nth| (format!("{nth}.txt"), "123456 cd\n".repeat(1_000))).collect();
    let mut files = vec![("SKILL.md", text.as_str())];
    files.extend(many.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let prompt = prompt(&tree("SKILL.md", &files), &[]);
    for (at, (path, text)) in files.iter().enumerate() {
        let shown = &prompt.blocks()[2 + at].1;
        let body = shown.strip_prefix(&format!("path: {path}\n")).expect("in order");
        let marked = body.split_once(&format!("\n[[CUT {NONCE} ")).and_then(|(head, rest)| {
            let (count, tail) = rest.split_once(" bytes]]\n")?;
            Some((head.len() + tail.len(), count.parse::<usize>().ok()?))
        });
        let told = prompt.unseen().iter().find(|unseen| unseen.path == *path);
        match (marked, told) {
            (Some((seen, gone)), Some(told)) => {
                assert_eq!((seen + gone, gone), (text.len(), told.bytes), "{path}");
            }
            (None, None) => assert_eq!(body, *text),
            other => panic!("{path}: {other:?}"),
        }
    }
    assert_eq!(prompt.unseen()[0].path, "SKILL.md");
}

#[test]
fn answers_pass_by_one_rule() {
    let finding = |severity: &str| json!({"file": "a.sh", "line": 3, "category": "Data Theft", "severity": severity, "reason": "r", "fix_hint": "f"});
    let answer = |risk: &str, findings: Vec<Value>| json!({"risk_level": risk, "summary": "s\u{1b}[2J", "findings": findings, "placeholders": 1});
    let (low, medium, high, critical) =
        (finding("low"), finding("medium"), finding("high"), finding("critical"));
    for (value, wanted) in [
        (answer("safe", vec![]), Ok(true)),
        (answer("low", vec![]), Ok(true)),
        (answer("safe", vec![medium.clone(), low.clone()]), Ok(true)),
        (answer("low", vec![medium.clone()]), Ok(true)),
        (answer("low", vec![medium.clone(), high.clone()]), Ok(false)),
        (answer("low", vec![critical.clone()]), Ok(false)),
        (answer("medium", vec![critical.clone()]), Ok(false)),
        (
            json!({"risk_level": "safe", "summary": "s", "findings": [], "placeholders": -5}),
            Err(NoVerdict::Incomplete),
        ),
        (
            answer(
                "medium",
                vec![{
                    let mut finding = medium.clone();
                    finding["line"] = json!(-1);
                    finding
                }],
            ),
            Err(NoVerdict::Incomplete),
        ),
        (answer("medium", vec![]), Ok(false)),
        (answer("high", vec![]), Ok(false)),
        (answer("critical", vec![critical.clone()]), Ok(false)),
        (answer("safe", vec![high]), Err(NoVerdict::Contradictory)),
        (answer("safe", vec![low, critical]), Err(NoVerdict::Contradictory)),
        (answer("harmless", vec![]), Err(NoVerdict::Incomplete)),
        (json!({"summary": "s", "findings": [], "placeholders": 0}), Err(NoVerdict::Incomplete)),
        (json!({"risk_level": "safe", "findings": [], "placeholders": 0}), Err(NoVerdict::Incomplete)),
        (json!({"risk_level": "safe", "summary": "s", "placeholders": 0}), Err(NoVerdict::Incomplete)),
        (json!({"risk_level": "safe", "summary": "s", "findings": []}), Err(NoVerdict::Incomplete)),
        (answer("safe", vec![json!({"file": "a"})]), Err(NoVerdict::Incomplete)),
        (answer("safe", vec![finding("none")]), Err(NoVerdict::Incomplete)),
    ] {
        let answer = Answer {
            value: value.clone(),
            model: "m-1".to_owned(),
            usage: Usage::default(),
            cached: false,
            elapsed: Duration::ZERO,
        };
        let read = read(&answer, "review-x", &str::to_owned);
        assert_eq!(read.as_ref().map(|verdict| verdict.is_passed).map_err(|error| *error), wanted, "{value}");
        let Ok(verdict) = read else { continue };
        let status = if verdict.is_passed { CheckStatus::Pass } else { CheckStatus::Fail };
        assert_eq!(verdict.review.status, status);
        assert_eq!((verdict.review.model.as_str(), verdict.review.summary.as_str()), ("m-1", "s [2J"));
        for finding in &verdict.review.findings {
            assert_eq!((finding.category.as_str(), finding.line), ("data_theft", 3));
        }
        let severities: Vec<Severity> =
            verdict.review.findings.iter().map(|finding| finding.severity).collect();
        assert!(severities.is_sorted_by(|a, b| a >= b));
    }
}

/// Names, markers and fences weigh as much as texts do, and what looks like a fence grows when it is made harmless.
#[test]
fn prompts_of_many_small_files_are_bounded_too() {
    for (name, text, count) in [
        ("d".repeat(100), "1\n".to_owned(), 600),
        ("ü".repeat(80), "ü".repeat(70), 500),
        ("<<end".repeat(20), "<<END".repeat(40), 300),
        (String::new(), "x\n".to_owned(), 1_900),
    ] {
        let files: Vec<(String, String)> =
            (0..count).map(|nth| (format!("{name}/{nth}.md"), text.clone())).collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let prompt = prompt(&tree("", &files), &[]);
        let asked = prompt.question();
        let fenced: usize =
            asked.blocks.iter().map(|block| crate::judge::fence_bytes(block.label) + block.text.len()).sum();
        assert_eq!(fenced, prompt.len());
        assert!(fenced <= PROMPT_BYTES_MAX, "{fenced} bytes of {count} files");
        assert!(fenced > PROMPT_BYTES_MAX / 3, "{fenced} bytes of {count} files");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Whatever a bundle holds, the prompt stays within its bounds, and every text is listed.
    #[test]
    fn prompts_are_bounded(files in prop::collection::vec(
        ("[a-z/☃ \\n]{1,300}", prop_oneof![
            any::<String>(),
            Just("a b\n".repeat(10_000)),
            Just("\t".repeat(5_000)),
            "[a-z]{0,4000}",
        ]),
        0..24,
    )) {
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let tree = tree("", &files);
        let prompt = prompt(&tree, &[]);
        // Each text may carry one marker more than its share.
        prop_assert!(prompt.len() <= PROMPT_BYTES_MAX, "{}", prompt.len());
        let first = prompt.clone();
        prop_assert_eq!(first, prompt);
    }
}
