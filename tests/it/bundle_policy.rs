//! Rules and policies of the operator over bundles: in force, replaced while the server runs, the same here and there.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::time::Duration;

use portcullis::bundles::pack::Packer;
use portcullis::pb::v1;
use serde_json::{Value, json};
use v1::policy_service_client::PolicyServiceClient;

use super::bundles::{as_admin, document, header, refused, upload, zip};
use super::cli::run_in;
use super::metrics::{deltas, scrape};
use super::server::{Server, Setup, eventually};

/// How soon a change must be in force.
const WITHIN: Duration = Duration::from_secs(10);

const SETTINGS: &str =
    "guardrails: {enabled: false}\npolicy: {path: policies}\nrules: {paths: [rules]}\nlog: {level: info}\n";

/// A rule about documents that looks for one word.
fn rule(word: &str, severity: &str) -> String {
    format!(
        "[[rule]]\nid = \"house.{word}\"\ncategory = \"house.{word}\"\nseverity = \"{severity}\"\n\
         description = \"No {word} in here.\"\nfix = \"Take the {word} out.\"\n\
         examples = [{{ document = \"a {word} pie\" }}]\nnegative_examples = [{{ document = \"a pie\" }}]\n\
         [rule.text]\nsurfaces = [\"document\"]\npattern = '\\b{word}\\b'\nliterals = [\"{word}\"]\n\n"
    )
}

/// A setup with these rules about bundles and this policy.
fn setup(rules: &str, policy: &str) -> Setup {
    let setup = Setup::new();
    for folder in ["policies", "rules/bundles"] {
        fs::create_dir_all(setup.folder().join(folder)).expect("made");
    }
    put(&setup.folder().join("rules/bundles/house.toml"), rules);
    put(&setup.folder().join("policies/default.yaml"), policy);
    setup.settings(SETTINGS)
}

fn put(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).expect("written");
    fs::rename(new, path).expect("renamed");
}

/// A skill with one more document.
fn with_text(text: &str) -> Vec<u8> {
    zip(&[("SKILL.md", &document("notes", "1.0.0")), ("docs/more.md", text)])
}

/// A skill with one more file.
fn with_file(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut packer = Packer::new(Cursor::new(Vec::new()));
    packer.add_file("SKILL.md", false, &mut document("notes", "1.0.0").as_bytes()).expect("it fits");
    packer.add_file(name, false, &mut &*bytes).expect("it fits");
    packer.finish().expect("it fits").into_inner()
}

async fn dry_run(server: &Server, policy: &str, bytes: &[u8]) -> v1::ReviewBundleResponse {
    let header = v1::BundleHeader { dry_run: true, policy: policy.to_owned(), ..header() };
    upload(&mut server.client().await, header, bytes).await.expect("an answer")
}

fn finding(review: &v1::ReviewBundleResponse, rule: &str) -> Option<v1::CheckFinding> {
    let security = review.checks.clone()?.static_security?;
    security.findings.into_iter().find(|finding| finding.rule_id == rule)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_of_the_operator_come_into_force_while_the_server_runs() {
    use v1::SubmissionStatus::{Approved, BlockedInline};
    let setup = setup("", "description: nothing\n");
    let (rules, policy) =
        (setup.folder().join("rules/bundles/house.toml"), setup.folder().join("policies/default.yaml"));
    let server = setup.start();
    let bundle = with_text("Bake a banana pie.\n");
    let first = dry_run(&server, "", &bundle).await;
    assert_eq!((first.status(), finding(&first, "house.banana")), (Approved, None));

    let until = async |status: v1::SubmissionStatus| {
        let bundle = bundle.as_slice();
        let server = &server;
        eventually(WITHIN, &format!("it is {status:?}"), || async move {
            let review = dry_run(server, "", bundle).await;
            (review.status() == status).then_some(review)
        })
        .await
    };
    put(&rules, &rule("banana", "high"));
    let second = until(BlockedInline).await;
    assert_ne!(second.policy_revision, first.policy_revision);
    let found = finding(&second, "house.banana").expect("found");
    assert_eq!(
        (found.file.as_str(), found.line, found.snippet.as_str()),
        ("docs/more.md", 1, "Bake a banana pie.")
    );
    assert_eq!(found.fingerprint.len(), 16);

    let mut policies = PolicyServiceClient::new(server.channel().await);
    let request =
        v1::ListRulesRequest { plugin: "bundles".to_owned(), page_size: 1_000, ..Default::default() };
    let listed = policies.list_rules(as_admin(&server, request)).await.expect("listed").into_inner().rules;
    assert!(listed.iter().any(|rule| rule.id == "house.banana"));

    // A broken file leaves the last good rules in force.
    put(&rules, "[[rule]]\nid = \"house.banana\"\n");
    server.wait_for_log(|line| line.contains("house.toml") && line.contains("missing field"));
    assert_eq!(dry_run(&server, "", &bundle).await.status(), BlockedInline);
    put(&rules, &rule("banana", "high"));

    let excuse = format!(
        "suppressions:\n  - {{rule: house.banana, fingerprint: \"{}\", path: docs/*, reason: a recipe, \
         expires: 2099-01-01}}\n",
        found.fingerprint
    );
    put(&policy, &excuse);
    let third = until(Approved).await;
    let found = finding(&third, "house.banana").expect("still told");
    assert!(found.suppressed && !found.shadow);
    // The excuse is for that line alone.
    let other = dry_run(&server, "", &with_text("Bake a banana cake.\n")).await;
    assert_eq!(other.status(), BlockedInline);
    // However often the excused line is repeated, others among them count.
    let many = format!("{}Bake a banana cake.\n", "Bake a banana pie.\n".repeat(60));
    assert_eq!(dry_run(&server, "", &with_text(&many)).await.status(), BlockedInline);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_weigh_findings_as_they_do_those_of_messages() {
    use v1::SubmissionStatus::{Approved, BlockedInline};
    let words = ["banana", "kiwi", "plum", "fig", "pear"];
    let rules: String = words.iter().map(|word| rule(word, "high")).collect();
    let policy = "rules: {house.kiwi: {mode: shadow}, house.plum: {mode: off}}\n\
                  categories: {house.fig: {block: 0.9}}\n\
                  suppressions: [{category: house.pear, path: 'docs/*', reason: known, expires: 2099-01-01}]\n";
    let setup = setup(&(rules + &rule("lime", "medium")), policy);
    fs::write(setup.folder().join("policies/strict.yaml"), "thresholds: {warn: 0.1, block: 0.4}\n")
        .expect("written");
    let lax = "thresholds: {warn: 0.9, block: 1.0}\ncategories: {archive: {mode: off}}\n";
    fs::write(setup.folder().join("policies/lax.yaml"), lax).expect("written");
    let server = setup.start();
    let before = scrape(&server).await;
    for (policy, word, status, check, told) in [
        ("", "banana", BlockedInline, v1::CheckStatus::Fail, Some((false, false))),
        ("", "kiwi", Approved, v1::CheckStatus::Pass, Some((true, false))),
        ("", "plum", Approved, v1::CheckStatus::Pass, None),
        ("", "fig", Approved, v1::CheckStatus::Warn, Some((false, false))),
        ("", "pear", Approved, v1::CheckStatus::Pass, Some((false, true))),
        ("", "lime", Approved, v1::CheckStatus::Warn, Some((false, false))),
        ("strict", "lime", BlockedInline, v1::CheckStatus::Fail, Some((false, false))),
    ] {
        let review = dry_run(&server, policy, &with_text(&format!("Bake a {word} pie.\n"))).await;
        assert_eq!(review.status(), status, "{policy} {word}");
        let security = review.checks.clone().and_then(|checks| checks.static_security).expect("a check");
        assert_eq!(security.status(), check, "{policy} {word}");
        let found = finding(&review, &format!("house.{word}"));
        assert_eq!(found.map(|one| (one.shadow, one.suppressed)), told, "{policy} {word}");
    }
    let got = deltas(&before, &scrape(&server).await);
    assert_eq!(
        got.get(r#"portcullis_would_block_total{source="bundles.static_security"}"#),
        Some(&1.0),
        "{got:?}"
    );
    // What an archive is refused for is no matter of any policy.
    assert_eq!(dry_run(&server, "lax", &refused("notes")).await.status(), BlockedInline);
}

/// What two answers about one bundle have in common wherever it was checked.
fn common(review: &Value) -> Value {
    let mut checks = review["checks"].clone();
    checks.as_object_mut().expect("checks").remove("llmReview");
    json!({
        "status": review["status"], "decision": review["decision"], "hold": review["holdReason"],
        "visibility": review["visibility"], "sha256": review["bundleSha256"], "files": review["fileCount"],
        "checks": checks, "coverage": review["coverage"], "capabilities": review["capabilities"],
        "unjudged": review["unjudged"], "revision": review["policyRevision"],
    })
}

#[test]
fn a_bundle_is_judged_alike_here_and_on_a_server() {
    let rules = ["banana", "kiwi", "plum"].map(|word| rule(word, "high")).concat();
    let policy = "rules: {house.kiwi: {mode: shadow}}\n\
                  suppressions: [{rule: house.plum, reason: known, expires: 2099-01-01}]\n";
    let setup = setup(&rules, policy);
    fs::write(setup.folder().join("policies/strict.yaml"), "thresholds: {warn: 0.1, block: 0.4}\n")
        .expect("written");
    let folder = setup.folder().to_owned();
    let nested = format!("x = {}1{}\n", "(".repeat(3_000), ")".repeat(3_000));
    let cases: Vec<(&str, &str, Vec<u8>, i32, &str)> = vec![
        ("fine", "default", with_text("Bake a pie.\n"), 0, "APPROVED"),
        ("own rule", "default", with_text("A banana.\n"), 2, "BLOCKED_INLINE"),
        ("on trial", "default", with_text("A kiwi.\n"), 0, "APPROVED"),
        ("excused", "default", with_text("A plum.\n"), 0, "APPROVED"),
        (
            "not scanned",
            "default",
            with_file("tool.bin", b"\x7fELF\x02\x01\x01\0\0\0\xff\xfe\x80\x90"),
            3,
            "PENDING_LLM",
        ),
        ("not followed", "default", with_file("deep.py", nested.as_bytes()), 3, "PENDING_LLM"),
        (
            "stricter",
            "strict",
            with_file("tool.bin", b"\x7fELF\x02\x01\x01\0\0\0\xff\xfe\x80\x90"),
            2,
            "BLOCKED_INLINE",
        ),
        ("no manifest", "default", zip(&[("README.md", "Nothing.\n")]), 2, "BLOCKED_INLINE"),
        ("a link", "default", refused("notes"), 2, "BLOCKED_INLINE"),
        ("no archive", "default", b"PK\x03\x04 is all".to_vec(), 2, "BLOCKED_INLINE"),
    ];
    for (name, _, bytes, _, _) in &cases {
        fs::write(folder.join(format!("{name}.zip")), bytes).expect("written");
    }
    let server = setup.start();
    let url = format!("http://{}", server.grpc);
    for (name, policy, _, code, status) in &cases {
        let path = format!("{name}.zip");
        let arguments =
            ["review", &path, "--kind", "skill", "--json", "--allow-warnings", "--policy", policy];
        let here = run_in(&folder, &arguments, b"");
        let there = run_in(&folder, &[&arguments[..], &["--server", &url, "--dry-run"]].concat(), b"");
        assert_eq!((here.code, there.code), (*code, *code), "{name}: {}{}", here.err, there.err);
        let (here, there) = (common(&here.json()), common(&there.json()));
        assert_eq!(here, there, "{name}");
        assert_eq!(here["status"], format!("SUBMISSION_STATUS_{status}"), "{name}");
        let is_held = *status == "PENDING_LLM";
        assert_eq!(here["hold"] == "HOLD_REASON_COVERAGE", is_held, "{name}");
    }
    let shown = run_in(&folder, &["rules", "show", "house.banana"], b"");
    assert!(
        shown.code == 0 && shown.out.contains("pattern = ") && !shown.out.contains("house.kiwi"),
        "{}",
        shown.out
    );
    let unknown = run_in(&folder, &["review", "fine.zip", "--policy", "nobody's"], b"");
    assert_eq!(unknown.code, 64, "{}", unknown.err);
    assert!(unknown.err.contains("default, strict"), "{}", unknown.err);
}

#[test]
fn eval_grades_bundles_and_archives_over_the_server() {
    let setup = setup(&rule("banana", "high"), "description: nothing\n");
    let folder = setup.folder().to_owned();
    for (place, name, bytes) in [
        ("bundles", "good.zip", with_text("Bake a pie.\n")),
        ("bundles", "bad.zip", with_text("A banana.\n")),
        ("bundles", "odd.zip", with_file("tool.bin", b"\x7fELF\x02\x01\x01\0\0\0\xff\xfe\x80\x90")),
        ("archives", "link.zip", refused("notes")),
        ("archives", "fine.zip", with_text("Bake a pie.\n")),
    ] {
        fs::create_dir_all(folder.join(place)).expect("made");
        fs::write(folder.join(place).join(name), bytes).expect("written");
    }
    let bundle = |name: &str, label: &str| {
        format!("{{\"bundle\":\"{name}\",\"type\":\"skill\",\"label\":\"{label}\",\"category\":\"c\"}}\n")
    };
    let index = [bundle("good.zip", "benign"), bundle("bad.zip", "malicious"), bundle("odd.zip", "benign")];
    fs::write(folder.join("bundles/index.jsonl"), index.concat()).expect("written");
    let index =
        "{\"bundle\":\"link.zip\",\"expect\":\"reject\"}\n{\"bundle\":\"fine.zip\",\"expect\":\"accept\"}\n";
    fs::write(folder.join("archives/index.jsonl"), index).expect("written");
    let server = setup.start();
    let url = format!("http://{}", server.grpc);
    let records = |more: &[&str]| {
        let ran = run_in(
            &folder,
            &[&["eval", "bundles", "archives", "--records", "out.jsonl"], more].concat(),
            b"",
        );
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(!ran.err.contains("passed over"), "{}", ran.err);
        let text = fs::read_to_string(folder.join("out.jsonl")).expect("records");
        let read = |line: &str| {
            let mut record: Value = serde_json::from_str(line).expect("JSON");
            record["us"] = json!(0);
            record
        };
        text.lines().map(read).collect::<Vec<Value>>()
    };
    let (here, there) = (records(&[]), records(&["--server", &url]));
    assert_eq!(here, there);
    let decisions: Vec<&str> =
        here.iter().map(|record| record["decision"].as_str().expect("a word")).collect();
    assert_eq!((here.len(), decisions[1], decisions[2]), (5, "BLOCK", "ASK"), "{decisions:?}");
    assert_eq!(server.data().join("bundles").read_dir().map_or(0, Iterator::count), 0, "nothing is kept");
}

#[test]
fn the_chain_of_events_is_verified_from_the_command_line() {
    let setup = setup("", "description: nothing\n");
    let folder = setup.folder().to_owned();
    fs::write(folder.join("fine.zip"), with_text("Bake a pie.\n")).expect("written");
    // The folder outlives the server.
    let _kept = setup.clone();
    let server = setup.start();
    let url = format!("http://{}", server.grpc);
    let token = server.data().join("admin-token");
    let there = |arguments: &[&str]| {
        let place = ["--server", &url, "--token-file", token.to_str().expect("Unicode"), "--json"];
        run_in(&folder, &[&["audit"], arguments, &place].concat(), b"")
    };
    let empty = there(&["verify"]);
    assert_eq!((empty.code, empty.json()), (0, json!({})));
    for _ in 0..3 {
        let ran = run_in(&folder, &["review", "fine.zip", "--server", &url, "--allow-warnings"], b"");
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    let whole = there(&["verify"]);
    assert_eq!(whole.code, 0, "{}", whole.err);
    let report = whole.json();
    assert_eq!((&report["length"], &report["brokenAt"]), (&json!("6"), &json!(null)), "{report}");
    let listed = there(&["list", "--action", "store.submission.", "--limit", "2"]);
    assert_eq!(listed.json()["events"].as_array().map(Vec::len), Some(2));
    let known = format!("6:{}", report["lastHash"].as_str().expect("a hash"));
    assert_eq!(there(&["verify", "--known", &known]).code, 0);
    for (wrong, code) in [(format!("6:{}", "0".repeat(64)), 65), (format!("7:{}", "0".repeat(64)), 65)] {
        assert_eq!(there(&["verify", "--known", &wrong]).code, code, "{wrong}");
    }
    assert_eq!(there(&["verify", "--known", "6"]).code, 64);
    // Who may not see events may not ask about them.
    let ran = run_in(&folder, &["audit", "verify", "--server", &url, "--submitter", "ada"], b"");
    assert_eq!(ran.code, 78, "{}", ran.err);
    drop(server);

    let here = |arguments: &[&str]| {
        run_in(&folder, &[&["audit"], arguments, &["--set", "data_dir=data"]].concat(), b"")
    };
    let ran = here(&["verify"]);
    assert!(ran.code == 0 && ran.out.contains("whole") && ran.out.contains(&known), "{}{}", ran.out, ran.err);
}
