//! `PolicyService`, and who may change what: without authentication callers are agents and submitters, and what
//! changes anything needs the token that `serve` wrote for whoever may read its folder.

use std::os::unix::fs::PermissionsExt as _;

use portcullis::pb::v1;
use tonic::transport::Channel;
use tonic::{Code, Request};
use v1::policy_service_client::PolicyServiceClient;

use super::server::{Server, Setup};

async fn policies(server: &Server) -> PolicyServiceClient<Channel> {
    PolicyServiceClient::new(server.channel().await)
}

fn with_authorization<T>(message: T, authorization: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", authorization.parse().expect("ASCII"));
    request
}

#[tokio::test]
async fn the_token_is_long_and_for_the_owner_alone() {
    let server = Server::shared();
    let mode = std::fs::metadata(server.data().join("admin-token")).expect("the file is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    assert!(server.admin_token().len() >= 32);
    assert!(!server.log_text().contains(&server.admin_token()), "the token is not in the log");
}

#[tokio::test]
async fn every_start_in_the_same_folder_has_a_usable_token() {
    let server = Server::start();
    let mut policies_client = policies(&server).await;
    let token = format!("Bearer {}", server.admin_token());
    policies_client
        .reload_policy(with_authorization(v1::ReloadPolicyRequest {}, &token))
        .await
        .expect("allowed");
    let again = server.into_setup().start();
    let token = format!("Bearer {}", again.admin_token());
    let reload = with_authorization(v1::ReloadPolicyRequest {}, &token);
    policies(&again).await.reload_policy(reload).await.expect("allowed");
}

#[tokio::test]
async fn a_change_needs_the_token() {
    let server = Server::shared();
    let mut client = policies(&server).await;
    let refused = client.reload_policy(v1::ReloadPolicyRequest {}).await.expect_err("no token");
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
    let token = format!("Bearer {}", server.admin_token());
    let answer = client.reload_policy(with_authorization(v1::ReloadPolicyRequest {}, &token)).await;
    let answer = answer.expect("allowed").into_inner();
    assert!(!answer.changed);
    assert!(!answer.policy_revision.is_empty());
}

#[tokio::test]
async fn a_wrong_token_is_worse_than_none() {
    let server = Server::shared();
    let right = server.admin_token();
    let mut client = policies(&server).await;
    let swapped: String = right.chars().rev().collect();
    for wrong in [
        "Bearer ".to_owned(),
        "Bearer x".to_owned(),
        format!("Bearer {swapped}"),
        format!("Bearer {right}x"),
        format!("Bearer {}", &right[..right.len() - 1]),
        format!("Basic {right}"),
        right.clone(),
    ] {
        let refused = client.reload_policy(with_authorization(v1::ReloadPolicyRequest {}, &wrong)).await;
        let code = refused.expect_err("a wrong token").code();
        assert_eq!(code, Code::Unauthenticated, "{}", wrong.replace(&right, "TOKEN"));
    }
}

#[tokio::test]
async fn a_wrong_token_is_refused_for_calls_that_need_none() {
    let server = Server::shared();
    let request = with_authorization(super::server::user("Hello"), "Bearer wrong");
    let refused = server.client().await.check_messages(request).await.expect_err("a wrong token");
    assert_eq!(refused.code(), Code::Unauthenticated);
}

#[tokio::test]
async fn looking_at_rules_and_policies_needs_no_token() {
    let server = Server::shared();
    let mut client = policies(&server).await;
    let policy = client.get_policy(v1::GetPolicyRequest::default()).await.expect("told").into_inner();
    assert_eq!(policy.name, "default");
    assert!(policy.yaml.contains("thresholds:"), "{}", policy.yaml);
    assert!(policy.names.contains(&"default".to_owned()));
    assert!(policy.load_time.is_some() && policy.reject_time.is_none());
    let unknown = client.get_policy(v1::GetPolicyRequest { name: "none".into() }).await.expect_err("unknown");
    assert_eq!(unknown.code(), Code::NotFound);
}

#[tokio::test]
async fn a_policy_told_as_a_file_has_the_same_effect() {
    let server = Server::shared();
    let told = policies(&server).await.get_policy(v1::GetPolicyRequest::default()).await.expect("told");
    let setup = Setup::new();
    let folder = setup.folder().join("policies");
    std::fs::create_dir(&folder).expect("the folder can be made");
    std::fs::write(folder.join("default.yaml"), &told.get_ref().yaml).expect("the file can be written");
    let again = setup.settings("policy:\n  path: policies\n").start();
    let same = policies(&again).await.get_policy(v1::GetPolicyRequest::default()).await.expect("told");
    assert_eq!(same.get_ref().policy_revision, told.get_ref().policy_revision);
}

#[tokio::test]
async fn rules_are_listed_in_pages() {
    let server = Server::shared();
    let mut client = policies(&server).await;
    let mut ids = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ListRulesRequest { page_size: 7, page_token, ..Default::default() };
        let page = client.list_rules(request).await.expect("a page").into_inner();
        assert!(page.rules.len() <= 7);
        ids.extend(page.rules.into_iter().map(|rule| rule.id));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert!(ids.len() > 20, "{ids:?}");
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "sorted, and none twice");
    let request = v1::ListRulesRequest { page_token: "nonsense".into(), ..Default::default() };
    assert_eq!(client.list_rules(request).await.expect_err("no page").code(), Code::InvalidArgument);
    let request = v1::ListRulesRequest { plugin: "none".into(), ..Default::default() };
    assert_eq!(client.list_rules(request).await.expect_err("no plugin").code(), Code::InvalidArgument);
    let request = v1::ListRulesRequest { plugin: "pii".into(), page_size: 5000, ..Default::default() };
    let rules = client.list_rules(request).await.expect("a page").into_inner().rules;
    assert!(!rules.is_empty() && rules.iter().all(|rule| rule.plugin == "pii"), "{rules:?}");
}

const RULE: &str = r#"
plugin = "custom"
[[rule]]
id = "custom.heron"
category = "custom.project"
severity = "medium"
literals = ["heron"]
pattern = '''(?i)\bproject heron\b'''
description = "The name of a project."
recommendation = "Leave it out."
examples = ["Project Heron"]
negative_examples = ["a heron"]
"#;

#[tokio::test]
async fn rules_can_be_tried_out_and_change_nothing() {
    let server = Server::shared();
    let mut client = policies(&server).await;
    let text = "\u{1F600} we like Project Heron";
    let request = v1::TestRuleRequest {
        rule_toml: RULE.into(),
        text: text.into(),
        offset_encoding: v1::OffsetEncoding::Utf16.into(),
        ..Default::default()
    };
    let answer = client.test_rule(request).await.expect("an answer").into_inner();
    assert_eq!(answer.problems, []);
    assert_eq!(answer.findings.len(), 1);
    let span = answer.findings[0].span.clone().expect("a place");
    assert_eq!((span.start, span.end), (11, 24));
    assert_eq!(answer.findings[0].matched_text, "Project Heron");
    let checked = server.client().await.check_messages(super::server::user(text)).await.expect("judged");
    assert_eq!(checked.get_ref().findings, [], "the rule is not in force");
}

#[tokio::test]
async fn rules_that_do_not_compile_are_an_answer() {
    let server = Server::shared();
    let mut client = policies(&server).await;
    for (rule_toml, rule_id) in
        [(RULE.replace("heron\\b", "heron(\\b"), "custom.heron"), (RULE.replace("severity", "sevrity"), "")]
    {
        let request = v1::TestRuleRequest { rule_toml, text: "Project Heron".into(), ..Default::default() };
        let answer = client.test_rule(request).await.expect("an answer").into_inner();
        assert_eq!(answer.findings, []);
        assert!(!answer.problems.is_empty());
        assert_eq!(answer.problems[0].rule_id, rule_id);
        assert!(answer.problems[0].line > 0, "{:?}", answer.problems);
    }
    let empty = client.test_rule(v1::TestRuleRequest::default()).await.expect_err("nothing to test");
    assert_eq!(empty.code(), Code::InvalidArgument);
}
