//! `portcullis rules import`: from a configuration of gitleaks to a finding.

use crate::cli::{empty, run};

const GITLEAKS: &str = r#"
title = "corp"
[[rules]]
id = "acme-token"
description = "A token of Acme"
regex = '''(?i)\bacme[\w.-]{0,20}?[=:]\s{0,4}["']?([a-z0-9]{20})\b'''
entropy = 3.0
keywords = ["acme"]
[[rules.allowlists]]
stopwords = ["nothing"]
"#;

/// From a file of gitleaks to a finding: import, test, check.
#[test]
fn rules_of_gitleaks_are_imported() {
    let folder = empty();
    let (from, rules) = (folder.path().join("gitleaks.toml"), folder.path().join("rules/secrets"));
    std::fs::create_dir_all(&rules).expect("a folder of its own");
    std::fs::write(&from, GITLEAKS).expect("a folder of its own");
    let (from, to) = (from.display().to_string(), rules.join("imported.toml").display().to_string());
    let ran = run(&["rules", "import", &from, "--output", &to]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(run(&["rules", "test", &to]).code, 0);
    let setting = format!("rules.paths={}", folder.path().join("rules").display());
    let checked = run(&["check", "--set", &setting, "--json", "acme_id: k3vq9xt7mwb2lcr8nyf5"]).json();
    let findings = checked["findings"].as_array().expect("a list");
    assert!(findings.iter().any(|finding| finding["ruleId"] == "gitleaks.acme-token"), "{checked}");
    // What exists is not written over.
    let again = run(&["rules", "import", &from, "--output", &to]);
    assert!(again.code == 64 && again.err.contains("exists already"), "{}", again.err);
}

/// What cannot be translated is said, and the exit code tells.
#[test]
fn what_of_gitleaks_cannot_be_imported_is_said() {
    let folder = empty();
    let path = folder.path().join("gitleaks.toml");
    let text = format!("{GITLEAKS}[[rules]]\nid = \"by-path\"\npath = \"x\"\n");
    std::fs::write(&path, text).expect("a folder of its own");
    let path = path.display().to_string();
    let ran = run(&["rules", "import", &path]);
    assert_eq!(ran.code, 65);
    assert!(ran.err.contains("left out: rule `by-path`: has no regex"), "{}", ran.err);
    assert!(ran.out.contains("gitleaks.acme-token"), "{}", ran.out);
    let told = run(&["rules", "import", &path, "--json"]).json();
    assert_eq!((&told["rules"], &told["left_out"], &told["is_whole"]), (&1.into(), &1.into(), &false.into()));
    std::fs::write(&path, "x = = 1").expect("a folder of its own");
    let ran = run(&["rules", "import", &path]);
    assert!(ran.code == 65 && ran.err.contains("line 1"), "{}", ran.err);
}
