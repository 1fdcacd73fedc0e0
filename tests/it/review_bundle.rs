//! `ReviewBundle`: the protocol of an upload, its limits, what it leaves behind and what it tells.

use std::time::Duration;

use portcullis::pb::v1;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use v1::review_bundle_request::Kind;
use v1::{CheckStatus, Decision, SubmissionStatus as S, Visibility};

use super::bundles::{
    NO_MODEL, as_admin, as_submitter, document, entities, events, files, files_below, header, header_of,
    messages, no_upload_left, refused, skill, submissions, upload, zip,
};
use super::metrics::{deltas, scrape};
use super::server::{PATIENCE, Server, Setup, eventually};

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn message(kind: Kind) -> v1::ReviewBundleRequest {
    v1::ReviewBundleRequest { kind: Some(kind) }
}

fn chunk(bytes: &[u8]) -> v1::ReviewBundleRequest {
    message(Kind::Chunk(bytes.to_vec().into()))
}

/// The fields that a status blames.
fn fields(status: &Status) -> Vec<String> {
    let violations = status.get_details_bad_request().map(|bad| bad.field_violations).unwrap_or_default();
    violations.into_iter().map(|violation| violation.field).collect()
}

#[tokio::test]
async fn a_good_bundle_is_published_and_handed_out() {
    let server = Setup::new().settings(NO_MODEL).start();
    let bytes = skill("notes");
    let mut client = server.client().await;
    let given =
        v1::BundleHeader { sha256: hex(&bytes).to_uppercase(), size: bytes.len() as u64, ..header_of("ada") };
    let answer = upload(&mut client, given, &bytes).await.expect("reviewed");
    assert_eq!((answer.status(), answer.decision()), (S::Approved, Decision::Allow), "{answer:#?}");
    assert_eq!((answer.visibility(), answer.hold_reason()), (Visibility::Approved, v1::HoldReason::None));
    assert_eq!((answer.file_size, answer.file_count), (bytes.len() as u64, 2));
    let checks = answer.checks.clone().expect("set");
    let status = |check: &Option<v1::CheckResult>| check.as_ref().map(v1::CheckResult::status);
    assert_eq!(status(&checks.archive), Some(CheckStatus::Pass));
    assert_eq!(status(&checks.manifest), Some(CheckStatus::Pass), "{:#?}", checks.manifest);
    assert_eq!(status(&checks.static_security), Some(CheckStatus::Pass), "{:#?}", checks.static_security);
    let review = checks.llm_review.expect("it says why it did not run");
    assert_eq!(review.status(), CheckStatus::Skipped);
    let mut hash = Sha256::new();
    for (path, data) in files(&bytes) {
        hash.update(path);
        hash.update([0]);
        hash.update(data);
        hash.update([0]);
    }
    let wanted: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(answer.bundle_sha256, wanted, "files in the order of their paths");
    let covered: Vec<&str> = answer.coverage.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(covered, ["SKILL.md", "examples/notes.md"]);
    assert!(answer.coverage.iter().all(|file| file.bytes == file.bytes_scanned), "{:?}", answer.coverage);
    // Anybody may install it: the very files that were uploaded.
    let request = v1::DownloadEntityRequest { entity_id: answer.entity_id.clone() };
    let mut parts = entities(&server).await.download_entity(request).await.expect("approved").into_inner();
    let (mut told, mut got) = (None, Vec::new());
    while let Some(part) = parts.message().await.expect("it goes on") {
        match part.kind.expect("one of two") {
            v1::download_entity_response::Kind::Header(header) => told = Some(header),
            v1::download_entity_response::Kind::Chunk(chunk) => {
                assert!(told.is_some() && !chunk.is_empty() && chunk.len() <= 64 * 1024);
                got.extend_from_slice(&chunk);
            }
        }
    }
    let told = told.expect("a header comes first");
    assert_eq!((told.size, told.sha256.as_str()), (got.len() as u64, hex(&got).as_str()));
    assert_eq!((&told.bundle_sha256, &told.submission_id), (&answer.bundle_sha256, &answer.submission_id));
    assert_eq!(told.file_name, "notes-1.0.0.zip");
    assert_eq!(files(&got), files(&bytes));
    no_upload_left(&server).await;
}

#[tokio::test]
async fn a_refused_archive_is_an_answer() {
    let server = Setup::new().settings(NO_MODEL).start();
    let mut client = server.client().await;
    for bytes in [refused("notes"), b"no archive".to_vec(), Vec::new(), skill("notes")[1..].to_vec()] {
        let answer = upload(&mut client, header(), &bytes).await.expect("a verdict is an answer");
        assert_eq!((answer.status(), answer.decision()), (S::BlockedInline, Decision::Block));
        assert_eq!((answer.visibility(), answer.file_count), (Visibility::Hidden, 0));
        assert!(answer.bundle_sha256.is_empty() && answer.coverage.is_empty(), "{answer:?}");
        let archive = answer.checks.and_then(|checks| checks.archive).expect("set");
        assert_eq!(archive.status(), CheckStatus::Fail);
        assert!(archive.findings[0].rule_id.starts_with("archive."), "{archive:?}");
        assert!(!archive.findings[0].fix_hint.is_empty(), "{archive:?}");
    }
    no_upload_left(&server).await;
}

/// Asks with these messages; answers the status.
async fn refusal(server: &Server, messages: Vec<v1::ReviewBundleRequest>) -> Status {
    let answer = server.client().await.review_bundle(tokio_stream::iter(messages)).await;
    answer.expect_err("refused")
}

#[tokio::test]
async fn the_order_of_messages_is_kept() {
    let server = Server::shared();
    let bytes = skill("notes");
    let mut twice = messages(header(), &bytes, 100);
    twice.insert(3, message(Kind::Header(header())));
    for (messages, kind) in
        [(Vec::new(), "NO_HEADER"), (vec![chunk(&bytes)], "NO_HEADER"), (twice, "HEADER_REPEATED")]
    {
        let status = refusal(&server, messages).await;
        assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
        let violations = status.get_details_precondition_failure().expect("details").violations;
        assert_eq!(violations[0].r#type, kind);
    }
    let nothing = v1::ReviewBundleRequest { kind: None };
    for messages in [vec![nothing.clone()], vec![message(Kind::Header(header())), nothing]] {
        let status = refusal(&server, messages).await;
        assert_eq!((status.code(), fields(&status)), (Code::InvalidArgument, vec!["kind".to_owned()]));
    }
}

#[tokio::test]
async fn wrong_fields_are_named() {
    let server = Server::shared();
    let bytes = skill("notes");
    let long = "a".repeat(300);
    for (header, field) in [
        (v1::BundleHeader { kind: 0, ..header() }, "header.kind"),
        (v1::BundleHeader { kind: 9, ..header() }, "header.kind"),
        (v1::BundleHeader { sha256: "abc".into(), ..header() }, "header.sha256"),
        (v1::BundleHeader { sha256: "g".repeat(64), ..header() }, "header.sha256"),
        (v1::BundleHeader { sha256: "0".repeat(64), ..header() }, "header.sha256"),
        (v1::BundleHeader { size: 1, ..header() }, "header.size"),
        (v1::BundleHeader { size: bytes.len() as u64 + 1, ..header() }, "header.size"),
        (v1::BundleHeader { policy: "nowhere".into(), ..header() }, "header.policy"),
        (v1::BundleHeader { name: "a\u{7}b".into(), ..header() }, "header.name"),
        (header_of("a\nb"), "header.submitter"),
        (header_of(" ada"), "header.submitter"),
        (header_of("system"), "header.submitter"),
        (header_of(&long), "header.submitter"),
        (v1::BundleHeader { entity_id: long.clone(), ..header() }, "header.entity_id"),
    ] {
        let status = refusal(&server, messages(header.clone(), &bytes, 500)).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{header:?}: {status:?}");
        assert_eq!(fields(&status), [field], "{header:?}: {status:?}");
    }
    let unknown = v1::BundleHeader { entity_id: "01970000".into(), ..header() };
    let status = refusal(&server, messages(unknown, &bytes, 500)).await;
    assert_eq!(status.code(), Code::NotFound, "{status:?}");
}

#[tokio::test]
async fn a_submitter_is_nobody_else() {
    let server = Setup::new().settings(NO_MODEL).start();
    let bytes = skill("notes");
    let mut client = server.client().await;
    let stream = |header| tokio_stream::iter(messages(header, &bytes, 500));
    let tenant = v1::BundleHeader {
        context: Some(v1::CallContext { tenant: "acme".into(), ..Default::default() }),
        ..header()
    };
    let code = |answer: Result<_, Status>| answer.map(|_: tonic::Response<_>| ()).map_err(|s| s.code());
    let denied = Err(Code::PermissionDenied);
    assert_eq!(code(client.review_bundle(as_admin(&server, stream(header_of("ada")))).await), denied);
    assert_eq!(code(client.review_bundle(as_admin(&server, stream(tenant))).await), denied);
    assert_eq!(code(client.review_bundle(as_submitter("bob", stream(header_of("ada")))).await), denied);
    assert_eq!(code(client.review_bundle(as_submitter("ada", stream(header_of("ada")))).await), Ok(()));
    let answer = client.review_bundle(as_admin(&server, stream(header()))).await.expect("reviewed");
    let kept = super::bundles::submission(&server, &answer.get_ref().submission_id).await;
    assert_eq!(kept.submitter, "admin");
}

#[tokio::test]
async fn too_large_is_told_with_numbers() {
    let server = Setup::new().settings("bundles:\n  packed_bytes_max: 2KiB\n").start();
    let bytes = vec![7; 3_000];
    for header in [v1::BundleHeader { size: 3_000, ..header() }, header()] {
        let status = refusal(&server, messages(header, &bytes, 1_000)).await;
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
        let info = status.get_details_error_info().expect("details");
        assert_eq!(info.metadata["limit_bytes"], "2048");
        assert_eq!(info.metadata["found_bytes"], "3000");
        assert!(status.message().contains("bundles.packed_bytes_max"), "{status:?}");
    }
    let small = Setup::new().settings("server:\n  request_bytes_max: 2KiB\n").start();
    for size in [3_000, 60_000] {
        let status = refusal(&small, messages(header(), &vec![7; 60_000], size)).await;
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
        let info = status.get_details_error_info().expect("details");
        assert_eq!(info.metadata["limit_bytes"], "2048", "{info:?}");
    }
    no_upload_left(&server).await;
    assert_eq!(files_below(&server, "bundles"), Vec::<String>::new());
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let server = Setup::new().settings(NO_MODEL).start();
    let mut client = server.client().await;
    let dry = |header| v1::BundleHeader { dry_run: true, ..header };
    for (bytes, status) in [(skill("notes"), S::Approved), (refused("notes"), S::BlockedInline)] {
        let answer = upload(&mut client, dry(header()), &bytes).await.expect("reviewed");
        assert_eq!(answer.status(), status, "{answer:#?}");
        assert_eq!((answer.submission_id.as_str(), answer.entity_id.as_str()), ("", ""));
        assert!(!answer.decision_id.is_empty());
    }
    let kept = upload(&mut client, header(), &skill("notes")).await.expect("reviewed");
    let again = v1::BundleHeader { entity_id: kept.entity_id.clone(), ..header() };
    let answer = upload(&mut client, dry(again), &refused("notes")).await.expect("reviewed");
    assert_eq!((answer.status(), &answer.entity_id), (S::BlockedInline, &kept.entity_id));
    assert_eq!(answer.visibility(), Visibility::Approved, "the live version stays");
    let list = v1::ListSubmissionsRequest::default();
    let listed = submissions(&server).await.list_submissions(as_admin(&server, list)).await.expect("listed");
    assert_eq!(listed.get_ref().total, 1, "{listed:?}");
    let recorded = events(&server, v1::ListAuditEventsRequest::default()).await;
    assert!(recorded.iter().all(|event| event.resource.ends_with(&kept.submission_id)), "{recorded:?}");
    assert_eq!(files_below(&server, "bundles").len(), 1);
    no_upload_left(&server).await;
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing() {
    let mut server = Setup::new().settings(NO_MODEL).start();
    let mut client = server.client().await;
    let begin = |client: &super::server::Client| {
        let (send, receive) = tokio::sync::mpsc::channel(4);
        let mut client = client.clone();
        let call = tokio::spawn(async move { client.review_bundle(ReceiverStream::new(receive)).await });
        (send, call)
    };
    let first = || message(Kind::Header(header()));
    let (send, call) = begin(&client);
    send.send(first()).await.expect("open");
    send.send(chunk(&vec![1; 600_000])).await.expect("open");
    let lies = || files_below(&server, "uploads").len();
    eventually(PATIENCE, "the upload lies in its folder", || async { (lies() == 1).then_some(()) }).await;
    call.abort();
    drop(send);
    no_upload_left(&server).await;
    // Killed in the middle: the next start takes away what lies there.
    let (send, call) = begin(&client);
    send.send(first()).await.expect("open");
    send.send(chunk(&vec![1; 600_000])).await.expect("open");
    eventually(PATIENCE, "the upload lies in its folder", || async { (lies() == 1).then_some(()) }).await;
    server.signal("KILL");
    server.wait();
    assert!(call.await.expect("the task ends").is_err());
    let again = server.into_setup().start();
    no_upload_left(&again).await;
    client = again.client().await;
    upload(&mut client, header(), &skill("notes")).await.expect("reviewed");
    assert_eq!(files_below(&again, "bundles").len(), 1);
}

#[tokio::test]
async fn a_stalled_upload_ends_and_too_many_are_shed() {
    let settings = "bundles: {uploads_max: 1, upload_idle_timeout: 3s}\n";
    let server = Setup::new().settings(settings).start();
    let client = server.client().await;
    let (send, receive) = tokio::sync::mpsc::channel(4);
    let mut stalled = client.clone();
    let call = tokio::spawn(async move { stalled.review_bundle(ReceiverStream::new(receive)).await });
    send.send(message(Kind::Header(header()))).await.expect("open");
    // Its file is there, so it has the only place.
    let lies = || !files_below(&server, "uploads").is_empty();
    eventually(PATIENCE, "the upload has begun", || async { lies().then_some(()) }).await;
    let busy = upload(&mut client.clone(), header(), b"").await.expect_err("one more is refused");
    assert_eq!(busy.code(), Code::Unavailable, "{busy:?}");
    assert!(busy.get_details_retry_info().is_some(), "{busy:?}");
    let status = call.await.expect("the task ends").expect_err("nothing more came");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    assert!(status.message().contains("upload_idle_timeout"), "{status:?}");
    drop(send);
    no_upload_left(&server).await;
    // The deadline of the caller is kept, too.
    let (send, receive) = tokio::sync::mpsc::channel(4);
    send.send(message(Kind::Header(header()))).await.expect("open");
    let mut request = tonic::Request::new(ReceiverStream::new(receive));
    request.set_timeout(Duration::from_millis(50));
    let status = client.clone().review_bundle(request).await.expect_err("late");
    assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status:?}");
}

#[tokio::test]
async fn an_upload_is_one_record_one_line_and_one_count() {
    let server = Setup::new().settings(NO_MODEL).start();
    scrape(&server).await;
    let before = scrape(&server).await;
    let mut client = server.client().await;
    let context = v1::CallContext { agent_id: "ci".into(), request_id: "r-7".into(), ..Default::default() };
    let given = v1::BundleHeader { context: Some(context), name: "hush-hush".into(), ..header_of("ada") };
    let good = upload(&mut client, given.clone(), &skill("notes")).await.expect("reviewed");
    let bad = upload(&mut client, given, &refused("notes")).await.expect("reviewed");
    refusal(&server, Vec::new()).await;
    let records: Vec<Value> = eventually(PATIENCE, "the records are written", || async {
        let text = std::fs::read_to_string(server.audit_file()).unwrap_or_default();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        (lines.len() >= 2).then_some(lines)
    })
    .await;
    assert_eq!(records.len(), 2);
    for (record, answer, decision, status) in
        [(&records[0], &good, "ALLOW", "approved"), (&records[1], &bad, "BLOCK", "blocked_inline")]
    {
        assert_eq!(record["decision_id"], answer.decision_id.as_str());
        assert_eq!(record["policy_revision"], answer.policy_revision.as_str());
        assert_eq!((&record["rpc"], &record["decision"]), (&json!("ReviewBundle"), &json!(decision)));
        assert_eq!(
            (&record["caller"]["agent_id"], &record["caller"]["request_id"]),
            (&json!("ci"), &json!("r-7"))
        );
        let bundle = &record["bundle"];
        assert_eq!(bundle["submission_id"], answer.submission_id.as_str());
        assert_eq!((&bundle["status"], &bundle["submitter"]), (&json!(status), &json!("ada")));
        assert!(
            !record.to_string().contains("hush-hush") && !record.to_string().contains("SKILL.md"),
            "{record}"
        );
    }
    let rule =
        &bad.checks.as_ref().and_then(|checks| checks.archive.as_ref()).expect("set").findings[0].rule_id;
    assert_eq!(records[1]["findings"][0]["rule_id"], rule.as_str());
    let changed = deltas(&before, &scrape(&server).await);
    for (series, by) in [
        (r#"portcullis_requests_total{rpc="ReviewBundle",decision="ALLOW",code="OK"}"#, 1.0),
        (r#"portcullis_requests_total{rpc="ReviewBundle",decision="BLOCK",code="OK"}"#, 1.0),
        (r#"portcullis_requests_total{rpc="ReviewBundle",decision="NONE",code="FAILED_PRECONDITION"}"#, 1.0),
        (r#"portcullis_request_duration_seconds_count{rpc="ReviewBundle"}"#, 2.0),
        ("portcullis_audit_records_total", 2.0),
    ] {
        assert_eq!(changed.get(series), Some(&by), "{series} in {changed:?}");
    }
    assert!(!server.log_text().contains("hush-hush"));
}

#[tokio::test]
async fn a_new_version_waits_beside_the_live_one() {
    let server = Setup::new().settings(NO_MODEL).start();
    let mut client = server.client().await;
    let first = upload(&mut client, header_of("ada"), &skill("notes")).await.expect("reviewed");
    let next =
        |submitter: &str| v1::BundleHeader { entity_id: first.entity_id.clone(), ..header_of(submitter) };
    let status = upload(&mut client, next("bob"), &skill("notes")).await.expect_err("not his");
    assert_eq!(status.code(), Code::NotFound, "{status:?}");
    let bad = upload(&mut client, next("ada"), &refused("notes")).await.expect("reviewed");
    assert_eq!((bad.status(), bad.visibility()), (S::BlockedInline, Visibility::Approved));
    let entity = |client: v1::entity_service_client::EntityServiceClient<_>| {
        let (mut client, id) = (client, first.entity_id.clone());
        async move {
            let request = v1::GetEntityRequest { entity_id: id };
            let answer = client.get_entity(request).await.expect("it is published");
            answer.into_inner().entity.expect("set")
        }
    };
    let live = entity(entities(&server).await).await;
    assert_eq!((&live.live_submission_id, live.version.as_str()), (&first.submission_id, "1.0.0"));
    let better = zip(&[("SKILL.md", &document("notes", "2.0.0"))]);
    let good = upload(&mut client, next("ada"), &better).await.expect("reviewed");
    assert_eq!((good.status(), &good.entity_id), (S::Approved, &first.entity_id));
    let live = entity(entities(&server).await).await;
    assert_eq!((&live.live_submission_id, live.version.as_str()), (&good.submission_id, "2.0.0"));
    assert_eq!(live.bundle_sha256, good.bundle_sha256);
}
