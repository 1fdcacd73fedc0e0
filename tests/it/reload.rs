//! Policies and rules are replaced while the server runs, and a broken file changes nothing but a count.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use portcullis::pb::v1;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use v1::policy_service_client::PolicyServiceClient;

use super::metrics::{deltas, scrape};
use super::server::{Server, Setup, eventually, user};

/// How soon a change must be in force, with a margin for machines on which many tests run at once.
const WITHIN: Duration = Duration::from_secs(6);

const LENIENT: &str = "thresholds: { warn: 0.9, block: 0.95 }\n";
const SSN: &str = "My SSN is 123-45-6789";

fn setup() -> Setup {
    let setup = Setup::new();
    fs::create_dir(setup.folder().join("policies")).expect("the folder can be made");
    setup.settings("policy:\n  path: policies\nrules:\n  paths: [rules]\n")
}

/// A setup with folders of policies and of rules.
fn with_rules() -> Setup {
    let setup = setup();
    fs::create_dir_all(setup.folder().join("rules/custom")).expect("the folder can be made");
    setup
}

async fn decide(server: &Server, text: &str) -> (v1::Decision, String) {
    let answer = server.client().await.check_messages(user(text)).await.expect("judged").into_inner();
    (answer.decision(), answer.policy_revision)
}

async fn until_decided(server: &Server, text: &str, wanted: v1::Decision) -> String {
    eventually(WITHIN, &format!("{text} is {wanted:?}"), || async {
        let (decision, revision) = decide(server, text).await;
        (decision == wanted).then_some(revision)
    })
    .await
}

/// A file comes into being whole, as editors and deployments do it.
fn put(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).expect("a file can be written");
    fs::rename(new, path).expect("a file can be renamed");
}

#[tokio::test]
async fn a_policy_file_comes_into_force_and_goes_out_again() {
    let setup = with_rules();
    let file = setup.folder().join("policies/default.yaml");
    let server = setup.start();
    let (decision, first) = decide(&server, SSN).await;
    assert_eq!(decision, v1::Decision::Block);
    let before = scrape(&server).await;
    put(&file, LENIENT);
    let second = until_decided(&server, SSN, v1::Decision::Allow).await;
    assert_ne!(first, second);
    fs::remove_file(&file).expect("the file can be removed");
    let third = until_decided(&server, SSN, v1::Decision::Block).await;
    assert_eq!(first, third, "equal policies have equal revisions");
    let applied = r#"portcullis_policy_reloads_total{outcome="applied"}"#;
    // A policy is in force a moment before it is counted.
    eventually(WITHIN, "both are counted", || async {
        (deltas(&before, &scrape(&server).await).get(applied) == Some(&2.0)).then_some(())
    })
    .await;
    // A file that is gone may be one that is about to be written: it is applied, and it is not passed over.
    let told = "default.yaml is gone, and the built-in policy `default` is in force";
    server.wait_for_log(|line| line.contains("\"WARN\"") && line.contains(told));
}

#[tokio::test]
async fn a_swap_of_links_as_kubernetes_makes_it_is_seen() {
    let setup = with_rules();
    let folder = setup.folder().join("policies");
    let lay = |version: &str, text: &str| {
        fs::create_dir(folder.join(version)).expect("the folder can be made");
        fs::write(folder.join(version).join("default.yaml"), text).expect("a file can be written");
    };
    lay("..2026_01", "thresholds: { block: 0.7 }\n");
    symlink("..2026_01", folder.join("..data")).expect("a link can be made");
    symlink("..data/default.yaml", folder.join("default.yaml")).expect("a link can be made");
    let server = setup.start();
    assert_eq!(decide(&server, SSN).await.0, v1::Decision::Block);
    lay("..2026_02", LENIENT);
    symlink("..2026_02", folder.join("..data_tmp")).expect("a link can be made");
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).expect("a link can be renamed");
    fs::remove_dir_all(folder.join("..2026_01")).expect("the old version can go");
    until_decided(&server, SSN, v1::Decision::Allow).await;
}

#[tokio::test]
async fn a_broken_policy_keeps_the_last_good_one_and_is_counted_and_told() {
    let setup = with_rules();
    let file = setup.folder().join("policies/default.yaml");
    put(&file, LENIENT);
    let server = setup.start();
    let (decision, revision) = decide(&server, SSN).await;
    assert_eq!(decision, v1::Decision::Allow);
    let before = scrape(&server).await;
    put(&file, "# a slip in line 2\ntresholds: { block: 0.5 }\n");
    let rejected = r#"portcullis_policy_reloads_total{outcome="rejected"}"#;
    eventually(WITHIN, "the rejection is counted", || async {
        (deltas(&before, &scrape(&server).await).get(rejected) == Some(&1.0)).then_some(())
    })
    .await;
    assert_eq!(decide(&server, SSN).await, (v1::Decision::Allow, revision.clone()));
    assert_eq!(server.get("/readyz").await.0, 200, "the last good policy serves");
    let line = server.wait_for_log(|line| line.contains("tresholds"));
    assert!(line.contains("default.yaml:2:1") && line.contains("thresholds"), "{line}");
    let mut client = PolicyServiceClient::new(server.channel().await);
    let policy = client.get_policy(v1::GetPolicyRequest::default()).await.expect("it is told").into_inner();
    assert_eq!(policy.policy_revision, revision);
    assert!(
        policy.problems.iter().any(|problem| problem.contains("default.yaml:2:1")),
        "{:?}",
        policy.problems
    );
    assert!(policy.reject_time.is_some());
    // A file that stays broken is told once, not twice a second.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(deltas(&before, &scrape(&server).await)[rejected], 1.0);
    put(&file, "thresholds: { block: 0.5 }\n");
    until_decided(&server, SSN, v1::Decision::Block).await;
    let policy = client.get_policy(v1::GetPolicyRequest::default()).await.expect("it is told").into_inner();
    assert_eq!(policy.problems, [""; 0], "nothing is wrong any more");
}

#[tokio::test]
async fn a_hangup_reloads_at_once() {
    // Looked at once an hour: only the signal can bring the change.
    let setup =
        with_rules().settings("policy:\n  path: policies\n  poll_interval: 1h\nrules:\n  paths: [rules]\n");
    let file = setup.folder().join("policies/default.yaml");
    let server = setup.start();
    assert_eq!(decide(&server, SSN).await.0, v1::Decision::Block);
    put(&file, LENIENT);
    server.signal("HUP");
    until_decided(&server, SSN, v1::Decision::Allow).await;
}

const RULE: &str = r#"
[[rule]]
id = "custom.project-name"
category = "custom.project"
severity = "high"
literals = ["project heron"]
pattern = '''(?i)\bproject heron\b'''
description = "The name of a project that is not announced."
recommendation = "Leave it out."
examples = ["We work on Project Heron."]
negative_examples = ["We work on a project."]
"#;

#[tokio::test]
async fn rules_of_ones_own_are_reloaded_and_the_cache_forgets() {
    let setup = with_rules();
    let file = setup.folder().join("rules/custom/project.toml");
    let server = setup.start();
    let text = "A text that is long enough to be kept: everybody likes Project Heron.";
    let (decision, first) = decide(&server, text).await;
    assert_eq!(decision, v1::Decision::Allow);
    put(&file, RULE);
    let second = until_decided(&server, text, v1::Decision::Block).await;
    assert_ne!(first, second);
    let answer = server.client().await.check_messages(user(text)).await.expect("judged").into_inner();
    assert_eq!((&*answer.findings[0].plugin, &*answer.findings[0].category), ("custom", "custom.project"));
    put(&file, &RULE.replace("heron\\b'''", "heron(\\b'''"));
    server.wait_for_log(|line| line.contains("project.toml") && line.contains("custom.project-name"));
    assert_eq!(decide(&server, text).await, (v1::Decision::Block, second));
}

#[tokio::test]
async fn without_a_usable_policy_nothing_is_served_until_there_is_one() {
    let setup = with_rules();
    let file = setup.folder().join("policies/default.yaml");
    put(&file, "tresholds: {}\n");
    let server = setup.start();
    let line = server.wait_for_log(|line| line.contains("tresholds"));
    assert!(line.contains("default.yaml:1:1"), "{line}");
    let refused =
        server.client().await.check_messages(user("Hello")).await.expect_err("no policy, no answer");
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    assert_eq!(server.get("/readyz").await.0, 503);
    assert_eq!(server.get("/livez").await.0, 200, "a restart would not help");
    assert_eq!(status(&server).await, ServingStatus::NotServing);
    put(&file, LENIENT);
    eventually(WITHIN, "the service is ready", || async {
        (server.get("/readyz").await.0 == 200).then_some(())
    })
    .await;
    assert_eq!(decide(&server, SSN).await.0, v1::Decision::Allow);
    assert_eq!(status(&server).await, ServingStatus::Serving);
}

async fn status(server: &Server) -> ServingStatus {
    let service = "portcullis.v1.PolicyDecisionService".to_owned();
    let answer = HealthClient::new(server.channel().await).check(HealthCheckRequest { service }).await;
    answer.expect("health is always told").get_ref().status()
}

#[tokio::test]
async fn requests_during_reloads_are_all_judged_by_one_policy_or_the_other() {
    let setup = with_rules();
    let file = setup.folder().join("policies/default.yaml");
    let server = setup.start();
    let mut client = server.client().await;
    let mut seen = std::collections::BTreeMap::new();
    for round in 0..40 {
        let text = if round % 2 == 0 { LENIENT } else { "thresholds: { block: 0.7 }\n" };
        put(&file, text);
        for _ in 0..25 {
            let answer = client.check_messages(user(SSN)).await.expect("judged").into_inner();
            let decision = seen.entry(answer.policy_revision).or_insert(answer.decision);
            assert_eq!(*decision, answer.decision, "one revision, one decision");
        }
    }
}
