//! `SubmissionService`, `EntityService` and `AuditService`: who sees what, and what may be done when.

use portcullis::pb::v1;
use serde_json::json;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;
use v1::audit_service_client::AuditServiceClient;
use v1::{SubmissionStatus as S, Visibility as V};

use super::bundles::{
    NO_MODEL, actions, as_admin, as_submitter, decided, document, entities, events, files, files_below,
    header, header_of, refused, skill, submission, submissions, upload, zip,
};
use super::llm_stand_in::{StandIn, says};
use super::server::{Server, Setup};

/// Settings under which this scenario of the stand-in reviews.
fn reviewed_by(stand_in: &StandIn, scenario: &str) -> Setup {
    review_by(Setup::new(), stand_in, scenario)
}

fn review_by(setup: Setup, stand_in: &StandIn, scenario: &str) -> Setup {
    let url = stand_in.url(scenario);
    setup.settings(&format!(
        "llm: {{backend: ollama, model: m, base_url: \"{url}\", attempts_max: 1}}\nstore: {{poll_interval: 100ms}}\n"
    ))
}

fn verdict(risk: &str) -> String {
    says(
        &json!({"risk_level": risk, "summary": "The model says so.", "findings": [], "placeholders": 1})
            .to_string(),
    )
}

fn code<T>(answer: Result<T, Status>) -> Result<(), Code> {
    answer.map(drop).map_err(|status| status.code())
}

fn precondition(status: &Status) -> String {
    let details = status.get_details_precondition_failure().expect("details");
    details.violations.into_iter().map(|violation| violation.r#type).collect()
}

fn get(id: &str) -> v1::GetSubmissionRequest {
    v1::GetSubmissionRequest { submission_id: id.to_owned(), ..Default::default() }
}

#[tokio::test]
async fn an_uploader_sees_the_verdict_land() {
    let stand_in = StandIn::start().await;
    for (risk, status, visibility) in [("low", S::Approved, V::Approved), ("high", S::BlockedLlm, V::Hidden)]
    {
        let server = reviewed_by(&stand_in, &format!("slow/300/{}", verdict(risk))).start();
        let answer = upload(&mut server.client().await, header_of("ada"), &skill("notes")).await;
        let answer = answer.expect("reviewed");
        assert_eq!((answer.status(), answer.decision()), (S::PendingLlm, v1::Decision::Ask), "{answer:#?}");
        assert_eq!(answer.visibility(), V::Pending);
        let watch =
            v1::WatchSubmissionRequest { submission_id: answer.submission_id.clone(), ..Default::default() };
        let mut client = submissions(&server).await;
        let mut told = client.watch_submission(as_submitter("ada", watch)).await.expect("hers").into_inner();
        let mut seen = Vec::new();
        while let Some(one) = told.message().await.expect("it goes on") {
            seen.push((one.submission.expect("set"), one.r#final));
        }
        let (first, last) = (&seen[0], &seen[seen.len() - 1]);
        assert_eq!((first.0.status(), first.1), (S::PendingLlm, false));
        assert_eq!((last.0.status(), last.0.visibility(), last.1), (status, visibility, true), "{seen:#?}");
        assert!(seen.iter().rev().skip(1).all(|one| !one.1), "only the last is final");
        let review = last.0.checks.as_ref().and_then(|checks| checks.llm_review.as_ref()).expect("reviewed");
        assert_eq!((review.risk_level.as_str(), review.summary.as_str()), (risk, "The model says so."));
        assert_eq!(last.0.review_model, "m");
        let wanted =
            if status == S::Approved { "store.submission.approved" } else { "store.submission.blocked_llm" };
        assert_eq!(actions(&server, &answer.submission_id).await, ["store.submission.accepted", wanted]);
        // One that is decided is told once.
        let again = v1::WatchSubmissionRequest { submission_id: answer.submission_id, view: 1 };
        let mut told = client.watch_submission(as_submitter("ada", again)).await.expect("hers").into_inner();
        let only = told.message().await.expect("it goes on").expect("it is told");
        assert!(only.r#final && only.submission.is_some_and(|one| one.checks.is_none()));
        assert_eq!(told.message().await.expect("it ends"), None);
    }
}

#[tokio::test]
async fn what_was_held_goes_on_when_the_service_starts_with_a_key() {
    let stand_in = StandIn::start().await;
    let setup = Setup::new();
    let server = setup.clone().start();
    let answer = upload(&mut server.client().await, header(), &skill("notes")).await.expect("reviewed");
    assert_eq!(answer.hold_reason(), v1::HoldReason::NoKey, "{answer:#?}");
    drop(server);

    let server = review_by(setup, &stand_in, &verdict("safe")).start();
    let id = &answer.submission_id;
    server.wait_for_log(|line| line.contains("were held for want of a key"));
    let stands = decided(&server, id).await;
    assert_eq!((stands.status(), stands.visibility()), (S::Approved, V::Approved));
    assert_eq!(
        actions(&server, id).await,
        ["store.submission.accepted", "store.submission.retry", "store.submission.approved"]
    );
    let told =
        events(&server, v1::ListAuditEventsRequest { actor: "system".into(), ..Default::default() }).await;
    assert!(told.iter().any(|event| event.action == "store.submission.retry"), "{told:#?}");
}

#[tokio::test]
async fn without_a_key_uploads_are_held_until_somebody_decides() {
    let server = Server::start();
    assert!(server.log_text().contains("NO_KEY"), "{}", server.log_text());
    let answer = upload(&mut server.client().await, header(), &skill("notes")).await.expect("reviewed");
    assert_eq!(
        (answer.status(), answer.hold_reason()),
        (S::PendingLlm, v1::HoldReason::NoKey),
        "{answer:#?}"
    );
    let mut client = submissions(&server).await;
    let short = |reason: &str| v1::OverrideSubmissionRequest {
        submission_id: answer.submission_id.clone(),
        reason: reason.to_owned(),
    };
    for reason in ["", "abc", "a b c", "  \u{3000}abc "] {
        let status =
            client.override_submission(as_admin(&server, short(reason))).await.expect_err("too short");
        let fields = status.get_details_bad_request().expect("details").field_violations;
        assert_eq!((status.code(), fields[0].field.as_str()), (Code::InvalidArgument, "reason"));
    }
    let denied = client.override_submission(Request::new(short("we know them"))).await;
    assert_eq!(code(denied), Err(Code::PermissionDenied));
    let published = client.override_submission(as_admin(&server, short("we know them"))).await;
    let published = published.expect("held ones may be").into_inner().submission.expect("set");
    assert_eq!(
        (published.status(), published.visibility(), published.live),
        (S::Overridden, V::Approved, true)
    );
    let by = published.r#override.expect("kept for ever");
    assert_eq!(
        (by.actor.as_str(), by.reason.as_str(), by.prior_status()),
        ("admin", "we know them", S::PendingLlm)
    );
    let again = client.override_submission(as_admin(&server, short("once more"))).await.expect_err("done");
    assert_eq!(
        (again.code(), precondition(&again)),
        (Code::FailedPrecondition, "SUBMISSION_STATUS".to_owned())
    );
    let told = actions(&server, &answer.submission_id).await;
    assert_eq!(told, ["store.submission.accepted", "store.submission.overridden"]);
    let kept = submission(&server, &answer.submission_id).await;
    let timeline: Vec<&str> = kept.timeline.iter().map(|event| event.action.as_str()).collect();
    assert_eq!(timeline, told);
    assert!(kept.timeline[1].detail.contains("we know them"), "{kept:?}");
}

#[tokio::test]
async fn others_see_what_is_approved_and_nothing_else() {
    let server = Setup::new().settings(NO_MODEL).start();
    let mut client = server.client().await;
    let good = upload(&mut client, header_of("ada"), &skill("notes")).await.expect("reviewed");
    let bad = upload(&mut client, header_of("ada"), &refused("notes")).await.expect("reviewed");
    let mut triage = submissions(&server).await;
    let mut shop = entities(&server).await;
    let entity = |id: &str| v1::GetEntityRequest { entity_id: id.to_owned() };
    let nobody = |id: &str| Request::new(get(id));
    for id in [&good.submission_id, &bad.submission_id] {
        assert_eq!(code(triage.get_submission(as_submitter("ada", get(id))).await), Ok(()));
        assert_eq!(code(triage.get_submission(as_admin(&server, get(id))).await), Ok(()));
        for stranger in [as_submitter("bob", get(id)), nobody(id)] {
            assert_eq!(code(triage.get_submission(stranger).await), Err(Code::NotFound));
        }
        let watch = v1::WatchSubmissionRequest { submission_id: id.clone(), ..Default::default() };
        assert_eq!(code(triage.watch_submission(as_submitter("bob", watch)).await), Err(Code::NotFound));
    }
    for (id, seen_by_bob) in [(&good.entity_id, Ok(())), (&bad.entity_id, Err(Code::NotFound))] {
        assert_eq!(code(shop.get_entity(as_submitter("bob", entity(id))).await), seen_by_bob);
        assert_eq!(code(shop.get_entity(as_submitter("ada", entity(id))).await), Ok(()));
        let download = v1::DownloadEntityRequest { entity_id: id.clone() };
        assert_eq!(code(shop.download_entity(as_submitter("bob", download)).await), seen_by_bob);
    }
    // No way around the review, for administrators neither.
    let download = v1::DownloadEntityRequest { entity_id: bad.entity_id.clone() };
    for request in [as_admin(&server, download.clone()), as_submitter("ada", download)] {
        let status = shop.download_entity(request).await.expect_err("not approved");
        assert_eq!(
            (status.code(), precondition(&status)),
            (Code::FailedPrecondition, "ENTITY_NOT_APPROVED".into())
        );
    }
    let listed = |request| {
        let mut shop = shop.clone();
        async move {
            let answer = shop.list_entities(request).await.expect("listed").into_inner();
            (
                answer.entities.into_iter().map(|one| (one.id, one.latest_submission_id)).collect::<Vec<_>>(),
                answer.total,
            )
        }
    };
    let all = v1::ListEntitiesRequest::default;
    let (seen, total) = listed(as_submitter("bob", all())).await;
    assert_eq!((seen, total), (vec![(good.entity_id.clone(), String::new())], 1));
    assert_eq!(listed(as_submitter("ada", all())).await.1, 2);
    assert_eq!(listed(as_admin(&server, all())).await.1, 2);
    let mine = |request| {
        let mut triage = triage.clone();
        async move { triage.list_submissions(request).await.expect("listed").into_inner().total }
    };
    let all = v1::ListSubmissionsRequest::default;
    assert_eq!(mine(as_submitter("bob", all())).await, 0);
    assert_eq!(mine(as_submitter("ada", all())).await, 2);
    assert_eq!(mine(as_admin(&server, all())).await, 2);
    let of_ada = v1::ListSubmissionsRequest { submitter: "ada".into(), ..all() };
    assert_eq!(mine(as_submitter("bob", of_ada)).await, 0, "a filter opens no door");
}

#[tokio::test]
async fn whatever_changes_needs_the_admin_token() {
    let server = Setup::new().settings(NO_MODEL).start();
    let answer =
        upload(&mut server.client().await, header_of("ada"), &skill("notes")).await.expect("reviewed");
    let (id, entity_id) = (answer.submission_id.clone(), answer.entity_id.clone());
    let (mut triage, mut shop) = (submissions(&server).await, entities(&server).await);
    let ada = || as_submitter("ada", ());
    fn with<T>(request: Request<()>, message: T) -> Request<T> {
        request.map(|()| message)
    }
    let reason = || "for a test".to_owned();
    let submission_id = || id.clone();
    let entity = || entity_id.clone();
    let codes = [
        code(
            triage
                .override_submission(with(
                    ada(),
                    v1::OverrideSubmissionRequest { submission_id: submission_id(), reason: reason() },
                ))
                .await,
        ),
        code(
            triage
                .rescan_submission(with(
                    ada(),
                    v1::RescanSubmissionRequest { submission_id: submission_id() },
                ))
                .await,
        ),
        code(
            triage.retry_review(with(ada(), v1::RetryReviewRequest { submission_id: submission_id() })).await,
        ),
        code(
            triage
                .download_bundle(with(ada(), v1::DownloadBundleRequest { submission_id: submission_id() }))
                .await,
        ),
        code(
            triage
                .delete_submission(with(
                    ada(),
                    v1::DeleteSubmissionRequest { submission_id: submission_id(), reason: reason() },
                ))
                .await,
        ),
        code(
            triage.purge_blocked_bundles(with(ada(), v1::PurgeBlockedBundlesRequest { dry_run: true })).await,
        ),
        code(triage.reap_stuck_reviews(with(ada(), v1::ReapStuckReviewsRequest { dry_run: true })).await),
        code(
            shop.archive_entity(with(
                ada(),
                v1::ArchiveEntityRequest { entity_id: entity(), reason: reason() },
            ))
            .await,
        ),
        code(
            shop.restore_entity(with(
                ada(),
                v1::RestoreEntityRequest { entity_id: entity(), reason: reason() },
            ))
            .await,
        ),
        code(
            shop.delete_entity(with(
                ada(),
                v1::DeleteEntityRequest { entity_id: entity(), reason: reason() },
            ))
            .await,
        ),
    ];
    assert_eq!(codes, [Err(Code::PermissionDenied); 10]);
    let list = AuditServiceClient::new(server.channel().await)
        .list_audit_events(with(ada(), v1::ListAuditEventsRequest::default()))
        .await
        .expect_err("not hers");
    let info = list.get_details_error_info().expect("details");
    assert_eq!((list.code(), info.reason.as_str()), (Code::PermissionDenied, "NEEDS_AUDITOR"));
    assert_eq!(submission(&server, &id).await.status(), S::Approved);
    let mut wrong = Request::new(get(&id));
    wrong.metadata_mut().insert("authorization", "Bearer wrong".parse().expect("ASCII"));
    assert_eq!(code(triage.get_submission(wrong).await), Err(Code::Unauthenticated));
}

#[tokio::test]
async fn lists_are_filtered_ordered_and_paged() {
    let server = Setup::new().settings(NO_MODEL).start();
    let mut client = server.client().await;
    let mut ids = Vec::new();
    for n in 0..7 {
        let bytes = if n % 3 == 0 { refused(&format!("skill-{n}")) } else { skill(&format!("skill-{n}")) };
        let given = v1::BundleHeader {
            name: format!("skill-{n}"),
            ..header_of(if n % 2 == 0 { "ada" } else { "bob" })
        };
        ids.push(upload(&mut client, given, &bytes).await.expect("reviewed").submission_id);
    }
    let mut triage = submissions(&server).await;
    let numbers = |answer: &v1::ListSubmissionsResponse| -> Vec<usize> {
        let place = |one: &v1::Submission| ids.iter().position(|id| *id == one.id).expect("one of ours");
        answer.submissions.iter().map(place).collect()
    };
    let all = v1::ListSubmissionsRequest::default;
    for (request, wanted) in [
        (all(), vec![6, 5, 4, 3, 2, 1, 0]),
        (v1::ListSubmissionsRequest { order_by: "name".into(), ..all() }, vec![0, 1, 2, 3, 4, 5, 6]),
        (v1::ListSubmissionsRequest { order_by: "name desc".into(), page_size: 2, ..all() }, vec![6, 5]),
        (v1::ListSubmissionsRequest { statuses: vec![S::BlockedInline.into()], ..all() }, vec![6, 3, 0]),
        (
            v1::ListSubmissionsRequest {
                submitter: "bob".into(),
                statuses: vec![S::Approved.into()],
                ..all()
            },
            vec![5, 1],
        ),
        (v1::ListSubmissionsRequest { kinds: vec![2, 3], ..all() }, vec![]),
        (v1::ListSubmissionsRequest { query: "SKILL-4".into(), ..all() }, vec![4]),
        (v1::ListSubmissionsRequest { query: "%".into(), ..all() }, vec![]),
        (v1::ListSubmissionsRequest { archived: 2, ..all() }, vec![]),
    ] {
        let answer = triage.list_submissions(as_admin(&server, request.clone())).await.expect("listed");
        assert_eq!(numbers(answer.get_ref()), wanted, "{request:?}");
        assert!(answer.get_ref().submissions.iter().all(|one| one.checks.is_none()), "BASIC");
    }
    for key in ["create_time", "update_time", "name", "submitter", "kind", "status", "file_size"] {
        for order_by in [key.to_owned(), format!("{key} desc")] {
            let mut request =
                v1::ListSubmissionsRequest { order_by: order_by.clone(), page_size: 3, ..all() };
            let mut seen = Vec::new();
            loop {
                let page = triage.list_submissions(as_admin(&server, request.clone())).await.expect("listed");
                let page = page.into_inner();
                assert_eq!(page.total, 7);
                seen.extend(numbers(&page));
                if page.next_page_token.is_empty() {
                    break;
                }
                request.page_token = page.next_page_token;
            }
            let mut sorted = seen.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6], "{order_by}: {seen:?}");
        }
    }
    let first = v1::ListSubmissionsRequest { page_size: 1, ..all() };
    let token =
        triage.list_submissions(as_admin(&server, first)).await.expect("listed").into_inner().next_page_token;
    let with_token = |request| v1::ListSubmissionsRequest { page_token: token.clone(), ..request };
    for (request, field) in [
        (v1::ListSubmissionsRequest { order_by: "id".into(), ..all() }, "order_by"),
        (v1::ListSubmissionsRequest { order_by: "name; drop".into(), ..all() }, "order_by"),
        (v1::ListSubmissionsRequest { statuses: vec![0], ..all() }, "statuses[0]"),
        (v1::ListSubmissionsRequest { kinds: vec![1, 9], ..all() }, "kinds[1]"),
        (v1::ListSubmissionsRequest { archived: 9, ..all() }, "archived"),
        (v1::ListSubmissionsRequest { view: 9, ..all() }, "view"),
        (v1::ListSubmissionsRequest { page_token: "00".into(), ..all() }, "page_token"),
        (with_token(v1::ListSubmissionsRequest { order_by: "name".into(), ..all() }), "page_token"),
        (with_token(v1::ListSubmissionsRequest { submitter: "ada".into(), ..all() }), "page_token"),
    ] {
        let status = triage.list_submissions(as_admin(&server, request.clone())).await.expect_err("wrong");
        let fields = status.get_details_bad_request().expect("details").field_violations;
        assert_eq!((status.code(), fields[0].field.as_str()), (Code::InvalidArgument, field), "{request:?}");
    }
    let theirs = triage.list_submissions(as_submitter("ada", with_token(all()))).await;
    assert_eq!(code(theirs), Err(Code::InvalidArgument), "a token is of whoever began the list");
}

#[tokio::test]
async fn an_entity_is_archived_brought_back_and_deleted() {
    let server = Setup::new().settings(NO_MODEL).start();
    let mut client = server.client().await;
    let first = upload(&mut client, header_of("ada"), &skill("notes")).await.expect("reviewed");
    let next = v1::BundleHeader { entity_id: first.entity_id.clone(), ..header_of("ada") };
    let bytes = zip(&[("SKILL.md", &document("notes", "2.0.0"))]);
    let second = upload(&mut client, next, &bytes).await.expect("reviewed");
    let mut shop = entities(&server).await;
    let id = || first.entity_id.clone();
    let restore = || v1::RestoreEntityRequest { entity_id: id(), reason: "back".into() };
    let status = shop.restore_entity(as_admin(&server, restore())).await.expect_err("not archived");
    assert_eq!(
        (status.code(), precondition(&status)),
        (Code::FailedPrecondition, "ENTITY_VISIBILITY".into())
    );
    let archive = v1::ArchiveEntityRequest { entity_id: id(), reason: "out of date".into() };
    let archived = shop.archive_entity(as_admin(&server, archive)).await.expect("archived");
    let archived = archived.into_inner().entity.expect("set");
    assert_eq!((archived.visibility(), archived.archived_by.as_str()), (V::Archived, "admin"));
    assert!(archived.archive_time.is_some());
    // Nobody new finds it, and whoever has it may fetch it again.
    let get = || v1::GetEntityRequest { entity_id: id() };
    assert_eq!(code(shop.get_entity(as_submitter("bob", get())).await), Err(Code::NotFound));
    let listed = shop.list_entities(v1::ListEntitiesRequest::default()).await.expect("listed");
    assert_eq!(listed.get_ref().total, 0);
    let download = v1::DownloadEntityRequest { entity_id: id() };
    let mut parts = shop.download_entity(as_submitter("bob", download)).await.expect("served").into_inner();
    let mut got = Vec::new();
    while let Some(part) = parts.message().await.expect("it goes on") {
        if let Some(v1::download_entity_response::Kind::Chunk(chunk)) = part.kind {
            got.extend_from_slice(&chunk);
        }
    }
    assert_eq!(files(&got), files(&bytes));
    let mut triage = submissions(&server).await;
    for (archived, total) in [(0, 0), (1, 0), (2, 2), (3, 2)] {
        let request = v1::ListSubmissionsRequest { archived, ..Default::default() };
        let answer = triage.list_submissions(as_admin(&server, request)).await.expect("listed");
        assert_eq!(answer.get_ref().total, total, "{archived}");
    }
    let kept = submission(&server, &second.submission_id).await;
    assert_eq!((kept.status(), kept.visibility()), (S::Approved, V::Archived), "side by side");
    let back = shop.restore_entity(as_admin(&server, restore())).await.expect("restored");
    assert_eq!(
        back.into_inner().entity.map(|one| (one.visibility(), one.archive_time)),
        Some((V::Approved, None))
    );
    let delete = v1::DeleteEntityRequest { entity_id: id(), reason: "asked for".into() };
    let gone = shop.delete_entity(as_admin(&server, delete)).await.expect("deleted").into_inner();
    assert_eq!(gone.submission_ids, [first.submission_id.clone(), second.submission_id.clone()]);
    assert_eq!(files_below(&server, "bundles"), Vec::<String>::new());
    assert_eq!(code(shop.get_entity(as_admin(&server, get())).await), Err(Code::NotFound));
    for id in &gone.submission_ids {
        let tombstone = submission(&server, id).await;
        assert_eq!((tombstone.status(), tombstone.visibility()), (S::Deleted, V::Unspecified));
        assert!(
            tombstone.bundle_purge_time.is_some()
                && tombstone.file_size > 0
                && !tombstone.bundle_sha256.is_empty()
        );
        let last = tombstone.timeline.last().expect("it was recorded");
        assert_eq!(last.action, "store.submission.deleted");
        let download = v1::DownloadBundleRequest { submission_id: id.clone() };
        let status = triage.download_bundle(as_admin(&server, download)).await.expect_err("gone");
        assert_eq!(
            (status.code(), precondition(&status)),
            (Code::FailedPrecondition, "BUNDLE_PURGED".into())
        );
    }
    let filter = v1::ListAuditEventsRequest { actions: vec!["store.entity.".into()], ..Default::default() };
    let told: Vec<(String, String)> =
        events(&server, filter).await.into_iter().map(|one| (one.action, one.reason)).collect();
    let wanted = [
        ("store.entity.archived", "out of date"),
        ("store.entity.restored", "back"),
        ("store.entity.deleted", "asked for"),
    ];
    assert_eq!(told, wanted.map(|(action, reason)| (action.to_owned(), reason.to_owned())));
}

#[tokio::test]
async fn blocked_ones_are_rescanned_downloaded_retried_and_deleted() {
    let stand_in = StandIn::start().await;
    let server = reviewed_by(&stand_in, &verdict("critical")).start();
    let mut client = server.client().await;
    let mut triage = submissions(&server).await;
    let blocked = upload(&mut client, header_of("ada"), &skill("notes")).await.expect("reviewed");
    let id = blocked.submission_id.clone();
    assert_eq!(decided(&server, &id).await.status(), S::BlockedLlm);
    let retry = v1::RetryReviewRequest { submission_id: id.clone() };
    let again = triage.retry_review(as_admin(&server, retry)).await.expect("allowed").into_inner();
    let again = again.submission.expect("set");
    assert_eq!(again.attempts.len(), 2, "{again:#?}");
    let now = decided(&server, &id).await;
    assert_eq!(now.status(), S::BlockedLlm);
    assert_eq!(now.attempts[0].status(), S::BlockedLlm, "an old verdict stays");
    let rescan = || v1::RescanSubmissionRequest { submission_id: id.clone() };
    let rescanned =
        triage.rescan_submission(as_admin(&server, rescan())).await.expect("allowed").into_inner();
    assert_eq!(rescanned.submission.map(|one| one.attempts.len()), Some(3));
    let now = decided(&server, &id).await;
    assert_eq!((now.status(), now.visibility()), (S::BlockedLlm, V::Hidden));
    let download = v1::DownloadBundleRequest { submission_id: id.clone() };
    let mut parts = triage.download_bundle(as_admin(&server, download)).await.expect("kept").into_inner();
    let mut got = Vec::new();
    while let Some(part) = parts.message().await.expect("it goes on") {
        if let Some(v1::download_bundle_response::Kind::Chunk(chunk)) = part.kind {
            got.extend_from_slice(&chunk);
        }
    }
    assert_eq!(files(&got), files(&skill("notes")));
    let delete = || v1::DeleteSubmissionRequest { submission_id: id.clone(), reason: String::new() };
    let gone = triage.delete_submission(as_admin(&server, delete())).await.expect("deleted").into_inner();
    assert_eq!(gone.submission.map(|one| one.status()), Some(S::Deleted));
    let status = triage.delete_submission(as_admin(&server, delete())).await.expect_err("done");
    assert_eq!(status.code(), Code::FailedPrecondition);
    let status = triage.rescan_submission(as_admin(&server, rescan())).await.expect_err("gone");
    assert_eq!(status.code(), Code::FailedPrecondition);
    let told = actions(&server, &id).await;
    let count = |action: &str| told.iter().filter(|one| *one == action).count();
    for (action, times) in [
        ("store.submission.accepted", 1),
        ("store.submission.blocked_llm", 3),
        ("store.submission.retry", 1),
        ("store.submission.rescan", 1),
        ("store.submission.bundle_downloaded", 1),
        ("store.submission.deleted", 1),
    ] {
        assert_eq!(count(action), times, "{action} in {told:?}");
    }
    let listed = v1::ListSubmissionsRequest { statuses: vec![S::Deleted.into()], ..Default::default() };
    let listed = triage.list_submissions(as_admin(&server, listed)).await.expect("listed").into_inner();
    assert_eq!(listed.submissions.iter().map(|one| &one.id).collect::<Vec<_>>(), [&id]);
}

#[tokio::test]
async fn a_refused_archive_is_downloaded_closed() {
    let server = Setup::new().settings(NO_MODEL).start();
    let bytes = refused("notes");
    let answer = upload(&mut server.client().await, header(), &bytes).await.expect("reviewed");
    let download = v1::DownloadBundleRequest { submission_id: answer.submission_id };
    let mut client = submissions(&server).await;
    let mut parts = client.download_bundle(as_admin(&server, download)).await.expect("kept").into_inner();
    let mut got = Vec::new();
    while let Some(part) = parts.message().await.expect("it goes on") {
        if let Some(v1::download_bundle_response::Kind::Chunk(chunk)) = part.kind {
            got.extend_from_slice(&chunk);
        }
    }
    assert_eq!(files(&got), [(portcullis::bundles::pack::REFUSED_NAME.to_owned(), bytes)]);
}

#[tokio::test]
async fn the_quota_holds_and_says_whose_it_is() {
    let settings = format!("{NO_MODEL}  blocked_quota_per_day: 2\n");
    let server = Setup::new().settings(&settings).start();
    let mut client = server.client().await;
    for _ in 0..2 {
        upload(&mut client, header_of("ada"), &refused("notes")).await.expect("a verdict");
    }
    for bytes in [refused("notes"), skill("notes")] {
        let status = upload(&mut client, header_of("ada"), &bytes).await.expect_err("too many");
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
        let details = status.get_details_quota_failure().expect("details");
        assert!(details.violations[0].subject.contains("ada"), "{details:?}");
    }
    let dry = v1::BundleHeader { dry_run: true, ..header_of("ada") };
    upload(&mut client, dry, &refused("notes")).await.expect("a dry run uses no quota");
    upload(&mut client, header_of("bob"), &refused("notes")).await.expect("his own quota");
    assert_eq!(files_below(&server, "bundles").len(), 3);
}

#[tokio::test]
async fn jobs_can_be_asked_for() {
    let server = Setup::new().settings(NO_MODEL).start();
    upload(&mut server.client().await, header(), &refused("notes")).await.expect("a verdict");
    let mut client = submissions(&server).await;
    for dry_run in [true, false] {
        let purge = v1::PurgeBlockedBundlesRequest { dry_run };
        let purged = client.purge_blocked_bundles(as_admin(&server, purge)).await.expect("done").into_inner();
        assert_eq!(purged, v1::PurgeBlockedBundlesResponse::default(), "nothing is old enough");
        let reap = v1::ReapStuckReviewsRequest { dry_run };
        let reaped = client.reap_stuck_reviews(as_admin(&server, reap)).await.expect("done").into_inner();
        assert_eq!(reaped.submission_ids, Vec::<String>::new());
    }
    let filter = v1::ListAuditEventsRequest {
        actions: vec!["run_".into(), "run_blocked_purge".into()],
        ..Default::default()
    };
    let told: Vec<String> = events(&server, filter).await.into_iter().map(|one| one.action).collect();
    assert_eq!(told, ["run_blocked_purge"]);
}

#[tokio::test]
async fn changes_of_other_services_are_events_too() {
    let server = Setup::new().settings(NO_MODEL).start();
    let channel = server.channel().await;
    let mut policies = v1::policy_service_client::PolicyServiceClient::new(channel.clone());
    policies.reload_policy(as_admin(&server, v1::ReloadPolicyRequest {})).await.expect("reloaded");
    let told =
        events(&server, v1::ListAuditEventsRequest { actor: "admin".into(), ..Default::default() }).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].action.starts_with("policy.") && told[0].resource.starts_with("policy:"), "{told:?}");
    assert_eq!(told[0].resource, format!("policy:{}", told[0].policy_revision));
    let mut client = AuditServiceClient::new(channel);
    for (request, field) in [
        (v1::ListAuditEventsRequest { order_by: "action".into(), ..Default::default() }, "order_by"),
        (v1::ListAuditEventsRequest { actions: vec![String::new()], ..Default::default() }, "actions[0]"),
        (v1::ListAuditEventsRequest { page_token: "ff".into(), ..Default::default() }, "page_token"),
    ] {
        let status = client.list_audit_events(as_admin(&server, request)).await.expect_err("wrong");
        let fields = status.get_details_bad_request().expect("details").field_violations;
        assert_eq!((status.code(), fields[0].field.as_str()), (Code::InvalidArgument, field));
    }
}

#[tokio::test]
async fn an_event_tells_what_its_caller_calls_the_request() {
    let server = Setup::new().settings(NO_MODEL).start();
    let channel = server.channel().await;
    let mut policies = v1::policy_service_client::PolicyServiceClient::new(channel.clone());
    let mut submissions = v1::submission_service_client::SubmissionServiceClient::new(channel);
    fn called<T>(mut request: Request<T>, id: &str) -> Request<T> {
        request.metadata_mut().insert("x-request-id", id.parse().expect("ASCII"));
        request
    }
    // A credential is masked, and what cannot be an id is left out.
    let planted = "req-AKIAZ7VRT5PQ3LKM2WXH";
    for id in ["req-42", "7f9c24e8-3b1d-4a6f-9c0e-5d2b8a71c643", planted, &"x".repeat(300), " "] {
        let reload = called(as_admin(&server, v1::ReloadPolicyRequest {}), id);
        policies.reload_policy(reload).await.expect("a strange id refuses no call");
    }
    let purge = v1::PurgeBlockedBundlesRequest { dry_run: false };
    submissions.purge_blocked_bundles(called(as_admin(&server, purge), "purge-1")).await.expect("purged");
    let told = events(&server, v1::ListAuditEventsRequest::default()).await;
    let ids: Vec<(&str, &str)> =
        told.iter().map(|one| (one.action.split('.').next().unwrap_or_default(), &*one.request_id)).collect();
    assert_eq!(ids.len(), 6, "{told:?}");
    assert_eq!(ids[..2], [("policy", "req-42"), ("policy", "7f9c24e8-3b1d-4a6f-9c0e-5d2b8a71c643")]);
    assert!(!ids[2].1.is_empty() && !ids[2].1.contains("AKIAZ7"), "{}", ids[2].1);
    assert_eq!(ids[3..], [("policy", ""), ("policy", ""), ("run_blocked_purge", "purge-1")]);
}
