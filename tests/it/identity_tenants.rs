//! What one tenant has is nothing to another: every RPC, asked by every role of other tenants about things of the first.

use std::collections::BTreeMap;

use portcullis::pb::v1;
use prost::Message;
use tonic::Code;
use tonic::transport::Channel;
use v1::review_bundle_request::Kind as Uploaded;
use v1::stream_monitor_request::Kind as Watched;

use super::bundles::{header, messages, skill};
use super::identity::{Said, Tokens, bearer, call, entry, every_rpc, records, with_token, write_tokens};
use super::registry::{blocks, interceptor};
use super::server::{Server, Setup, message, user};

/// Stands in everything that belongs to the first tenant and in nothing else.
const MARK: &str = "alpha";

/// What the first tenant has.
struct Things {
    incident: String,
    session: String,
    submission: String,
    entity: String,
    interceptor: String,
    decision: String,
}

const ENTRIES: [(&str, &str, &str); 12] = [
    ("alpha-agent", "agent", "alpha"),
    ("alpha-submitter", "submitter", "alpha"),
    ("alpha-auditor", "auditor", "alpha"),
    ("alpha-admin", "admin", "alpha"),
    ("beta-agent", "agent", "beta"),
    ("beta-submitter", "submitter", "beta"),
    ("beta-auditor", "auditor", "beta"),
    ("beta-admin", "admin", "beta"),
    ("no-agent", "agent", ""),
    ("no-submitter", "submitter", ""),
    ("no-auditor", "auditor", ""),
    ("no-admin", "admin", ""),
];

/// Policies of one tenant, and quotas.
const SETTINGS: &str = "
auth:
  mode: tokens
  tokens: { path: tokens.yaml }
  tenants:
    alpha: { policy: alpha-own }
guardrails: { enabled: false }
policy: { path: policies }
";

fn start() -> (Server, Tokens) {
    let setup = Setup::new();
    let tokens = write_tokens(&setup, &ENTRIES.map(|(name, roles, tenant)| entry(name, roles, tenant)));
    let folder = setup.folder().join("policies");
    std::fs::create_dir(&folder).expect("a folder");
    let policy = "name: alpha-own\nsuppressions:\n  - { category: pii.email, tenant: alpha, reason: known, expires: 2999-01-01 }\n";
    std::fs::write(folder.join("alpha.yaml"), policy).expect("a policy");
    std::fs::write(folder.join("ops.yaml"), "name: ops\nallowed_callers: [admin]\n").expect("a policy");
    (setup.settings(SETTINGS).start(), tokens)
}

async fn things(channel: &Channel, tokens: &Tokens) -> Things {
    use v1::incident_service_client::IncidentServiceClient;
    use v1::interceptor_registry_service_client::InterceptorRegistryServiceClient;
    use v1::policy_decision_service_client::PolicyDecisionServiceClient;
    let mut registry = InterceptorRegistryServiceClient::new(channel.clone());
    let guard = interceptor("alpha-guard", "exec", blocks("alpha says no"));
    let add = v1::AddInterceptorRequest { interceptor: Some(guard), ..Default::default() };
    registry.add_interceptor(with_token(tokens.of("alpha-admin"), add)).await.expect("added");
    let mut client = PolicyDecisionServiceClient::new(channel.clone());
    let upload = tokio_stream::iter(messages(header(), &skill("alpha-skill"), 1_000));
    let uploaded = client.review_bundle(with_token(tokens.of("alpha-submitter"), upload)).await;
    let uploaded = uploaded.expect("reviewed").into_inner();
    let session = "alpha-session".to_owned();
    let told = [
        Watched::Attach(v1::Attach { session_id: session.clone(), ..Default::default() }),
        Watched::Chunk(v1::Chunk {
            stream: v1::OutputStream::Stdout.into(),
            data: b"$ rm -rf / --no-preserve-root # alpha\n".to_vec().into(),
            seq: 1,
        }),
        Watched::Detach(v1::Detach { exit_code: Some(0.into()) }),
    ];
    let told = tokio_stream::iter(told.map(|kind| v1::StreamMonitorRequest { kind: Some(kind) }));
    let mut heard = client
        .stream_monitor(with_token(tokens.of("alpha-agent"), told))
        .await
        .expect("watched")
        .into_inner();
    while heard.message().await.expect("it goes on").is_some() {}
    let list = v1::ListIncidentsRequest { session_id: session.clone(), ..Default::default() };
    let incidents = IncidentServiceClient::new(channel.clone())
        .list_incidents(with_token(tokens.of("alpha-agent"), list))
        .await
        .expect("listed")
        .into_inner()
        .incidents;
    Things {
        incident: incidents.first().expect("the command is an incident").id.clone(),
        session,
        submission: uploaded.submission_id,
        entity: uploaded.entity_id,
        interceptor: "alpha-guard".to_owned(),
        decision: uploaded.decision_id,
    }
}

/// For every RPC a request about the things of the first tenant.
fn requests(of: &Things) -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    fn one(message: impl Message) -> Vec<Vec<u8>> {
        vec![message.encode_to_vec()]
    }
    let context = || Some(v1::CallContext { tenant: MARK.to_owned(), ..Default::default() });
    let submission_id = || of.submission.clone();
    let entity_id = || of.entity.clone();
    let reason = || "the reason of a test that asks".to_owned();
    let upload = v1::BundleHeader { entity_id: entity_id(), ..header() };
    let upload = v1::ReviewBundleRequest { kind: Some(Uploaded::Header(upload)) };
    let attach = v1::Attach { session_id: of.session.clone(), context: context(), ..Default::default() };
    let attach = v1::StreamMonitorRequest { kind: Some(Watched::Attach(attach)) };
    let check = v1::CheckMessagesRequest { context: context(), ..user("hello") };
    let tool = v1::InterceptToolRequest {
        phase: v1::ToolPhase::Before.into(),
        tool_name: "exec".to_owned(),
        args_json: r#"{"command":"ls"}"#.to_owned(),
        context: context(),
        ..Default::default()
    };
    let said =
        v1::InterceptMessageRequest { message: "hello".to_owned(), context: context(), ..Default::default() };
    let params =
        v1::InterceptParamsRequest { message: "hello".to_owned(), context: context(), ..Default::default() };
    let taken = interceptor("beta-guard", "exec", blocks("no"));
    let rule = "[[rule]]\nid = \"x\"\n".to_owned();
    BTreeMap::from([
        ("portcullis.v1.PolicyDecisionService/CheckMessages", one(check.clone())),
        ("portcullis.v1.PolicyDecisionService/CheckMessagesStream", one(check)),
        ("portcullis.v1.PolicyDecisionService/InterceptMessage", one(said)),
        ("portcullis.v1.PolicyDecisionService/InterceptParams", one(params)),
        ("portcullis.v1.PolicyDecisionService/InterceptTool", one(tool)),
        ("portcullis.v1.PolicyDecisionService/StreamMonitor", one(attach)),
        ("portcullis.v1.PolicyDecisionService/ReviewBundle", one(upload)),
        (
            "portcullis.v1.InterceptorRegistryService/AddInterceptor",
            one(v1::AddInterceptorRequest { interceptor: Some(taken), dry_run: true, ..Default::default() }),
        ),
        (
            "portcullis.v1.InterceptorRegistryService/RemoveInterceptor",
            one(v1::RemoveInterceptorRequest { interceptor_id: of.interceptor.clone() }),
        ),
        (
            "portcullis.v1.InterceptorRegistryService/MatchInterceptors",
            one(v1::MatchInterceptorsRequest {
                hook: v1::Hook::ToolBefore.into(),
                tool_name: "exec".to_owned(),
                ..Default::default()
            }),
        ),
        (
            "portcullis.v1.InterceptorRegistryService/ListInterceptors",
            one(v1::ListInterceptorsRequest { page_size: 1_000, ..Default::default() }),
        ),
        (
            "portcullis.v1.InterceptorRegistryService/ClearInterceptors",
            one(v1::ClearInterceptorsRequest::default()),
        ),
        (
            "portcullis.v1.InterceptorRegistryService/ListKnownTools",
            one(v1::ListKnownToolsRequest::default()),
        ),
        (
            "portcullis.v1.IncidentService/GetIncident",
            one(v1::GetIncidentRequest { incident_id: of.incident.clone() }),
        ),
        (
            "portcullis.v1.IncidentService/ListIncidents",
            one(v1::ListIncidentsRequest { page_size: 1_000, ..Default::default() }),
        ),
        (
            "portcullis.v1.IncidentService/MarkFalsePositive",
            one(v1::MarkFalsePositiveRequest {
                incident_id: of.incident.clone(),
                reason: reason(),
                undo: false,
            }),
        ),
        ("portcullis.v1.IncidentService/GetIncidentStats", one(v1::GetIncidentStatsRequest::default())),
        (
            "portcullis.v1.SubmissionService/GetSubmission",
            one(v1::GetSubmissionRequest { submission_id: submission_id(), ..Default::default() }),
        ),
        (
            "portcullis.v1.SubmissionService/ListSubmissions",
            one(v1::ListSubmissionsRequest { page_size: 500, archived: 3, ..Default::default() }),
        ),
        (
            "portcullis.v1.SubmissionService/WatchSubmission",
            one(v1::WatchSubmissionRequest { submission_id: submission_id(), ..Default::default() }),
        ),
        (
            "portcullis.v1.SubmissionService/OverrideSubmission",
            one(v1::OverrideSubmissionRequest { submission_id: submission_id(), reason: reason() }),
        ),
        (
            "portcullis.v1.SubmissionService/RescanSubmission",
            one(v1::RescanSubmissionRequest { submission_id: submission_id() }),
        ),
        (
            "portcullis.v1.SubmissionService/RetryReview",
            one(v1::RetryReviewRequest { submission_id: submission_id() }),
        ),
        (
            "portcullis.v1.SubmissionService/DownloadBundle",
            one(v1::DownloadBundleRequest { submission_id: submission_id() }),
        ),
        (
            "portcullis.v1.SubmissionService/DeleteSubmission",
            one(v1::DeleteSubmissionRequest { submission_id: submission_id(), reason: reason() }),
        ),
        (
            "portcullis.v1.SubmissionService/PurgeBlockedBundles",
            one(v1::PurgeBlockedBundlesRequest { dry_run: false }),
        ),
        (
            "portcullis.v1.SubmissionService/ReapStuckReviews",
            one(v1::ReapStuckReviewsRequest { dry_run: false }),
        ),
        ("portcullis.v1.EntityService/GetEntity", one(v1::GetEntityRequest { entity_id: entity_id() })),
        (
            "portcullis.v1.EntityService/ListEntities",
            one(v1::ListEntitiesRequest { page_size: 500, ..Default::default() }),
        ),
        (
            "portcullis.v1.EntityService/ArchiveEntity",
            one(v1::ArchiveEntityRequest { entity_id: entity_id(), reason: reason() }),
        ),
        (
            "portcullis.v1.EntityService/RestoreEntity",
            one(v1::RestoreEntityRequest { entity_id: entity_id(), reason: reason() }),
        ),
        (
            "portcullis.v1.EntityService/DeleteEntity",
            one(v1::DeleteEntityRequest { entity_id: entity_id(), reason: reason() }),
        ),
        (
            "portcullis.v1.EntityService/DownloadEntity",
            one(v1::DownloadEntityRequest { entity_id: entity_id() }),
        ),
        (
            "portcullis.v1.AuditService/ListAuditEvents",
            one(v1::ListAuditEventsRequest { page_size: 1_000, ..Default::default() }),
        ),
        ("portcullis.v1.AuditService/VerifyAuditChain", one(v1::VerifyAuditChainRequest::default())),
        ("portcullis.v1.PolicyService/GetPolicy", one(v1::GetPolicyRequest { name: "alpha-own".to_owned() })),
        ("portcullis.v1.PolicyService/ReloadPolicy", one(v1::ReloadPolicyRequest::default())),
        ("portcullis.v1.PolicyService/ListRules", one(v1::ListRulesRequest::default())),
        (
            "portcullis.v1.PolicyService/TestRule",
            one(v1::TestRuleRequest { rule_toml: rule, text: "x".to_owned(), ..Default::default() }),
        ),
    ])
}

/// RPCs whose request is about one thing of the first tenant: to others it is not there.
const NOT_FOUND: [&str; 16] = [
    "InterceptorRegistryService/RemoveInterceptor",
    "IncidentService/GetIncident",
    "IncidentService/MarkFalsePositive",
    "SubmissionService/GetSubmission",
    "SubmissionService/WatchSubmission",
    "SubmissionService/OverrideSubmission",
    "SubmissionService/RescanSubmission",
    "SubmissionService/RetryReview",
    "SubmissionService/DownloadBundle",
    "SubmissionService/DeleteSubmission",
    "EntityService/GetEntity",
    "EntityService/ArchiveEntity",
    "EntityService/RestoreEntity",
    "EntityService/DeleteEntity",
    "EntityService/DownloadEntity",
    "PolicyService/GetPolicy",
];

async fn ask(channel: &Channel, tokens: &Tokens, caller: &str, path: &str, asked: &[Vec<u8>]) -> Said {
    // One answer is enough of a watch, which would go on.
    let answers_max = if path.ends_with("/WatchSubmission") { 1 } else { usize::MAX };
    call(channel, path, &[bearer(tokens.of(caller))], asked.to_vec(), answers_max).await
}

/// Everything of the first tenant, as its own administrator and auditor see it.
async fn everything(
    channel: &Channel,
    tokens: &Tokens,
    requests: &BTreeMap<&str, Vec<Vec<u8>>>,
) -> Vec<Said> {
    let mut all = Vec::new();
    for path in [
        "portcullis.v1.IncidentService/ListIncidents",
        "portcullis.v1.SubmissionService/ListSubmissions",
        "portcullis.v1.EntityService/ListEntities",
        "portcullis.v1.InterceptorRegistryService/ListInterceptors",
        "portcullis.v1.AuditService/ListAuditEvents",
        "portcullis.v1.AuditService/VerifyAuditChain",
    ] {
        let said = ask(channel, tokens, "alpha-auditor", path, &requests[path]).await;
        assert_eq!(said.code(), Code::Ok, "{path}: {:?}", said.status);
        all.push(said);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn one_tenant_neither_sees_nor_touches_what_another_has() {
    let (server, tokens) = start();
    let channel = server.channel().await;
    let things = things(&channel, &tokens).await;
    let requests = requests(&things);
    let named: Vec<&str> = requests.keys().copied().collect();
    let ours: Vec<String> = every_rpc().into_iter().filter(|path| path.starts_with("portcullis.")).collect();
    assert_eq!(named, ours, "every RPC has a request about the things of another tenant");

    let before = everything(&channel, &tokens, &requests).await;
    let marks = [MARK, &*things.incident, &*things.submission, &*things.entity, &*things.decision];
    for said in &before[..5] {
        assert!(said.holds(MARK), "the first tenant sees what it has: {:?}", said.messages.len());
    }
    let mut wrong = Vec::new();
    let mut cells = 0;
    for (caller, roles, _) in ENTRIES.into_iter().filter(|(_, _, tenant)| *tenant != MARK) {
        for (path, asked) in &requests {
            let said = ask(&channel, &tokens, caller, path, asked).await;
            cells += 1;
            let seen: Vec<&str> = marks.into_iter().filter(|mark| said.holds(mark)).collect();
            if !seen.is_empty() {
                wrong.push(format!("{path} by {caller} tells {seen:?}"));
            }
            let rpc = path.trim_start_matches("portcullis.v1.");
            let may = portcullis::identity::needs(&format!("/{path}")).expect("it has a row");
            let may = roles == "admin" || may.iter().any(|role| role.as_str() == roles);
            let code = said.code();
            let fits = match rpc {
                _ if !may => code == Code::PermissionDenied,
                // The tenant that the request names is not the caller's.
                "PolicyDecisionService/CheckMessagesStream" => {
                    let inside = said
                        .messages
                        .first()
                        .and_then(|bytes| v1::CheckMessagesResponse::decode(&**bytes).ok());
                    inside
                        .and_then(|answer| answer.error)
                        .is_some_and(|error| error.code == Code::PermissionDenied as i32)
                }
                "PolicyDecisionService/ReviewBundle" => code == Code::NotFound,
                decides if decides.starts_with("PolicyDecisionService/") => code == Code::PermissionDenied,
                rpc if NOT_FOUND.contains(&rpc) => code == Code::NotFound,
                _ => code == Code::Ok,
            };
            if !fits {
                wrong.push(format!("{path} by {caller}: {:?}", said.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(cells, 8 * requests.len());
    let after = everything(&channel, &tokens, &requests).await;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before.messages, after.messages, "nothing of the first tenant changed");
    }
    // The same requests are good ones: their owner is answered.
    for rpc in NOT_FOUND.into_iter().filter(|rpc| rpc.contains("/Get") || rpc.contains("/Download")) {
        let path = format!("portcullis.v1.{rpc}");
        let said = ask(&channel, &tokens, "alpha-admin", &path, &requests[&*path]).await;
        assert_eq!(said.code(), Code::Ok, "{path}: {:?}", said.status);
    }
    let removed = "portcullis.v1.InterceptorRegistryService/RemoveInterceptor";
    let said = ask(&channel, &tokens, "alpha-admin", removed, &requests[removed]).await;
    assert_eq!(said.code(), Code::Ok, "{:?}", said.status);
}

#[tokio::test]
async fn interceptors_and_policies_of_a_tenant_judge_its_calls_alone() {
    use v1::interceptor_registry_service_client::InterceptorRegistryServiceClient;
    use v1::policy_decision_service_client::PolicyDecisionServiceClient;
    let (server, tokens) = start();
    let channel = server.channel().await;
    let mut registry = InterceptorRegistryServiceClient::new(channel.clone());
    for admin in ["alpha-admin", "no-admin"] {
        // The same id may stand in every tenant, and what the default tenant adds is its own as well.
        let guard = interceptor("guard", "exec", blocks(&format!("{admin} says no")));
        let add = v1::AddInterceptorRequest { interceptor: Some(guard), ..Default::default() };
        registry.add_interceptor(with_token(tokens.of(admin), add)).await.expect("added");
    }
    let mut client = PolicyDecisionServiceClient::new(channel);
    for (caller, decision, reason) in [
        ("alpha-agent", v1::Decision::Block, "alpha-admin says no"),
        ("beta-agent", v1::Decision::Allow, ""),
        ("no-agent", v1::Decision::Block, "no-admin says no"),
    ] {
        let request = v1::InterceptToolRequest {
            phase: v1::ToolPhase::Before.into(),
            tool_name: "exec".to_owned(),
            args_json: r#"{"command":"ls"}"#.to_owned(),
            ..Default::default()
        };
        let answer = client.intercept_tool(with_token(tokens.of(caller), request)).await.expect("decided");
        let answer = answer.into_inner();
        assert_eq!((answer.decision(), answer.block_reason.as_str()), (decision, reason), "{caller}");
    }
    // Neither caller names policy or tenant: both follow from who calls, down to the suppression for that tenant.
    let mail = || v1::CheckMessagesRequest {
        messages: vec![message("user", "write to ada@lovelace.org")],
        ..Default::default()
    };
    for (caller, is_suppressed) in [("alpha-agent", true), ("beta-agent", false)] {
        let answer = client.check_messages(with_token(tokens.of(caller), mail())).await.expect("decided");
        let found = answer.into_inner().findings;
        assert!(
            found.iter().any(|one| one.category == "pii.email" && one.suppressed == is_suppressed),
            "{found:#?}"
        );
    }
    for (caller, policy, code) in [
        ("alpha-agent", "alpha-own", Code::Ok),
        ("alpha-agent", "default", Code::InvalidArgument),
        ("beta-agent", "default", Code::Ok),
        ("beta-agent", "alpha-own", Code::InvalidArgument),
        ("beta-admin", "ops", Code::Ok),
        ("beta-agent", "ops", Code::PermissionDenied),
        ("alpha-admin", "ops", Code::InvalidArgument),
    ] {
        let request = v1::CheckMessagesRequest { policy: policy.to_owned(), ..mail() };
        let answer = client.check_messages(with_token(tokens.of(caller), request)).await;
        assert_eq!(answer.err().map_or(Code::Ok, |status| status.code()), code, "{caller} names {policy}");
    }
    let record = records(&server, |text| text.matches("\"rpc\":\"InterceptTool\"").count() == 3).await;
    let tenants: Vec<_> = record
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|record| record["rpc"] == "InterceptTool")
        .map(|record| record["caller"]["tenant"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(tenants, ["alpha", "beta", ""], "records name the tenant of the credential");
}

#[tokio::test]
async fn who_uploads_is_who_calls_and_each_tenant_has_its_quota() {
    let setup = Setup::new();
    let tokens = write_tokens(
        &setup,
        &[
            entry("ann", "submitter", "small"),
            entry("bob", "submitter", "large"),
            entry("eve", "auditor", "small"),
        ],
    );
    let server = setup
        .settings(
            "auth:\n  mode: tokens\n  tokens: { path: tokens.yaml }\n  tenants:\n    small: { blocked_quota_per_day: 1 }\n\
             guardrails: { enabled: false, blocked_quota_per_day: 3 }\n",
        )
        .start();
    let mut client = server.client().await;
    let upload = |caller: &'static str, header: v1::BundleHeader, bytes: Vec<u8>| {
        let mut client = client.clone();
        let request = with_token(tokens.of(caller), tokio_stream::iter(messages(header, &bytes, 1_000)));
        async move { client.review_bundle(request).await.map(tonic::Response::into_inner) }
    };
    for (submitter, code) in [
        ("", Code::Ok),
        ("ann", Code::Ok),
        ("bob", Code::PermissionDenied),
        ("admin", Code::PermissionDenied),
    ] {
        let header = v1::BundleHeader { submitter: submitter.to_owned(), dry_run: true, ..header() };
        let answer = upload("ann", header, skill("notes")).await;
        assert_eq!(answer.err().map_or(Code::Ok, |status| status.code()), code, "{submitter:?}");
    }
    let refused = super::bundles::refused("bad");
    for (caller, taken) in [("ann", 1), ("bob", 3)] {
        for _ in 0..taken {
            let answer = upload(caller, header(), refused.clone()).await.expect("judged");
            assert_eq!(answer.decision(), v1::Decision::Block);
        }
        let answer = upload(caller, header(), refused.clone()).await.expect_err("the quota is used up");
        assert_eq!(answer.code(), Code::ResourceExhausted, "{caller}");
    }
    // An auditor sees what others of its tenant uploaded, and a submitter what it did.
    let mut submissions = super::bundles::submissions(&server).await;
    for (caller, wanted) in [("ann", 1), ("bob", 3), ("eve", 1)] {
        let list = submissions
            .list_submissions(with_token(tokens.of(caller), v1::ListSubmissionsRequest::default()))
            .await;
        assert_eq!(list.expect("listed").into_inner().total, wanted, "{caller}");
    }
    // Metadata that says to be somebody else is refused, whatever the call is.
    let mut request = with_token(tokens.of("ann"), v1::ListSubmissionsRequest::default());
    request.metadata_mut().insert("portcullis-submitter", "bob".parse().expect("ASCII"));
    let answer = submissions.list_submissions(request).await.expect_err("she is not bob");
    assert_eq!(answer.code(), Code::PermissionDenied);
    assert!(client.check_messages(user("hello")).await.is_err(), "nobody is asked without a token");
}

#[tokio::test]
async fn a_policy_of_a_tenant_that_is_not_there_is_named_with_its_setting() {
    let setup = Setup::new();
    let tokens = write_tokens(&setup, &[entry("ann", "agent", "acme"), entry("eve", "admin", "acme")]);
    let settings =
        "auth:\n  mode: tokens\n  tokens: { path: tokens.yaml }\n  tenants:\n    acme: { policy: nope }\n";
    let server = setup.settings(settings).start();
    let mut client = server.client().await;
    let status =
        client.check_messages(with_token(tokens.of("ann"), user("hello"))).await.expect_err("refused");
    let by_name = v1::CheckMessagesRequest { policy: "nope".to_owned(), ..user("hello") };
    let named = client.check_messages(with_token(tokens.of("ann"), by_name)).await.expect_err("refused");
    assert_eq!((status.code(), named.code()), (Code::FailedPrecondition, Code::InvalidArgument));
    let mut policies = v1::policy_service_client::PolicyServiceClient::new(server.channel().await);
    let request = with_token(tokens.of("eve"), v1::GetPolicyRequest::default());
    let shown = policies.get_policy(request).await.expect_err("refused");
    for status in [status, shown] {
        let told = status.message();
        assert!(told.contains("`nope`") && told.contains("auth.tenants.acme.policy"), "{told}");
    }
    assert!(named.message().contains("`nope`"), "{named:?}");
}
