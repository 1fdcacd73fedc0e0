//! Quota, retention, reaper, sweep, leases, and verdicts that come too late.

use std::sync::Arc;

use futures_util::future::join_all;
use jiff::SignedDuration;

use super::on_both;
use super::rig::{Place, Rig, Setup, admin, owner, says};
use crate::bundles::GuardrailsConfig;
use crate::bundles::service::SubmissionError;
use crate::bundles::service::step::Released;
use crate::bundles::worker::{self, Worker};
use crate::decision::{SubmissionStatus as S, Visibility};
use crate::judge::Trouble;

on_both!(
    the_quota_is_never_exceeded_however_many_come_at_once,
    good_and_bad_at_once_never_exceed_the_quota,
    the_quota_counts_what_was_blocked_within_a_day,
    what_waits_for_a_model_counts_once_its_verdict_is_against_it,
    blocked_bytes_are_purged_and_nothing_else,
    reviews_that_never_end_are_reaped,
    strays_are_swept_up,
    a_verdict_that_comes_too_late_is_thrown_away,
    an_interrupted_rescan_is_taken_up_again,
    a_worker_that_stops_gives_its_work_back,
    without_a_model_what_waits_is_held,
);

fn limited(limit: usize) -> Setup {
    let guardrails = GuardrailsConfig { blocked_quota_per_day: limit, ..GuardrailsConfig::default() };
    Setup { guardrails, ..Setup::default() }
}

async fn the_quota_is_never_exceeded_however_many_come_at_once(place: Place) {
    let rig = Rig::new(place, limited(3)).await;
    let texts: Vec<String> = (0..8).map(|n| format!("BLOCK {n}")).collect();
    let answers = join_all(texts.iter().map(|text| rig.upload(text))).await;
    let (taken, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!(taken.len(), 3);
    for refused in refused {
        assert!(
            matches!(&refused, Err(SubmissionError::QuotaExceeded { limit: 3, found: 3, submitter }) if submitter == "ann"),
            "{refused:?}"
        );
    }
    assert_eq!(rig.kept().await.len(), 3, "bytes of what was refused are gone");
    assert_eq!(rig.events().await.len(), 3);
}

async fn good_and_bad_at_once_never_exceed_the_quota(place: Place) {
    let rig = Rig::new(place, limited(3)).await;
    let other = rig.beside(limited(3)).await;
    rig.upload("fine, and there before").await.expect("taken");
    rig.work().await;
    // Let in while the quota is untouched, and checked while others use it up.
    let late = rig.upload("WAIT fine");
    let rush = async {
        rig.gate.reached.notified().await;
        for n in 0..3 {
            rig.upload_by(&other, &format!("BLOCK {n}"), None, false).await.expect("taken");
        }
        rig.gate.go.notify_one();
    };
    let (late, ()) = tokio::join!(late, rush);
    let is_refused = |answer: &Result<_, _>| {
        matches!(answer, Err(SubmissionError::QuotaExceeded { limit: 3, found: 3, .. }))
    };
    assert!(is_refused(&late), "{late:?}");
    assert_eq!(rig.kept().await.len(), 4, "bytes of what was refused are gone");
    for text in ["fine", "BLOCK"] {
        let refused = rig.upload(text).await;
        assert!(is_refused(&refused), "{refused:?}");
    }
}

async fn what_waits_for_a_model_counts_once_its_verdict_is_against_it(place: Place) {
    let rig = Rig::new(place, limited(2)).await;
    let texts: Vec<String> = (0..5).map(|n| format!("good {n}")).collect();
    for taken in join_all(texts.iter().map(|text| rig.upload(text))).await {
        taken.expect("nothing is known against it");
    }
    let bad = || says("high", "high");
    rig.answers([bad(), says("safe", ""), bad(), bad(), says("safe", "")]);
    rig.work().await;
    // A verdict stands, whatever the count is then.
    let late = rig.upload("too late").await;
    assert!(matches!(late, Err(SubmissionError::QuotaExceeded { limit: 2, found: 3, .. })), "{late:?}");
}

async fn the_quota_counts_what_was_blocked_within_a_day(place: Place) {
    let rig = Rig::new(place, limited(3)).await;
    rig.answers([says("high", "high"), Err(Trouble::Refused)]);
    let mut blocked = Vec::new();
    for text in ["a", "b", "BLOCK"] {
        blocked.push(rig.upload(text).await.expect("taken").submission_id);
        rig.work().await;
    }
    // Blocked inline, blocked by the model, and without a verdict.
    let full = rig.upload("fine").await;
    assert!(matches!(full, Err(SubmissionError::QuotaExceeded { found: 3, .. })), "{full:?}");
    assert!(rig.upload_to("fine", None, true).await.is_ok(), "a dry run costs nothing");
    // What is deleted was blocked all the same.
    for submission in &blocked {
        rig.submissions.delete(&admin(), submission, "tidied up").await.expect("deleted");
    }
    let full = rig.upload("fine").await;
    assert!(matches!(full, Err(SubmissionError::QuotaExceeded { found: 3, .. })), "{full:?}");
    rig.wait(SignedDuration::from_hours(25));
    rig.upload("fine").await.expect("a day later");
    // What is held does not count, deleted or not.
    for n in 0..5 {
        let held = rig.upload(&format!("PARTIAL {n}")).await.expect("held");
        if n % 2 == 0 {
            rig.submissions.delete(&admin(), &held.submission_id, "not needed").await.expect("deleted");
        }
    }
    let off = Rig::at(rig.place, limited(0), rig.now.clone()).await;
    for n in 0..5 {
        off.upload(&format!("BLOCK {n}")).await.expect("no limit");
    }
}

async fn blocked_bytes_are_purged_and_nothing_else(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    rig.answers([says("high", "high"), Err(Trouble::Refused), says("safe", "")]);
    let mut ids = Vec::new();
    for text in ["a", "b", "c", "BLOCK d", "BLOCK e", "PARTIAL f"] {
        ids.push(rig.upload(text).await.expect("taken").submission_id);
        rig.work().await;
    }
    rig.submissions.publish(&admin(), &ids[4], "known good").await.expect("published");
    let sizes = rig.row(&ids[0]).await.file_size + rig.row(&ids[3]).await.file_size;
    assert_eq!(
        rig.submissions.purge(&admin(), true).await.expect("looked").submission_ids,
        Vec::<String>::new()
    );
    rig.wait(SignedDuration::from_hours(24 * 31));
    let wanted = vec![ids[0].clone(), ids[3].clone()];
    let would = rig.submissions.purge(&admin(), true).await.expect("looked");
    assert_eq!((&would.submission_ids, would.bytes_freed), (&wanted, sizes));
    assert_eq!(rig.kept().await.len(), 6, "a dry run removes nothing");
    let purged = rig.submissions.purge(&admin(), false).await.expect("purged");
    assert_eq!(purged, would);
    assert_eq!(rig.submissions.purge(&admin(), false).await.expect("again").submission_ids.len(), 0);
    let mut kept = vec![ids[1].clone(), ids[2].clone(), ids[4].clone(), ids[5].clone()];
    kept.sort();
    assert_eq!(rig.kept().await, kept);
    for id in &wanted {
        let stands = rig.submissions.get(&owner(), id, false).await.expect("the row stays");
        assert!(stands.purged.is_some() && !stands.bundle_sha256.is_empty() && stands.file_size > 0);
        for refused in [
            rig.submissions.publish(&admin(), id, "too late").await.err(),
            rig.submissions.rescan(&admin(), id).await.err(),
            rig.submissions.download(&admin(), id).await.err(),
        ] {
            assert!(matches!(refused, Some(SubmissionError::Purged { .. })), "{refused:?}");
        }
    }
    // What has no verdict can still be retried.
    rig.submissions.retry(&admin(), &ids[1]).await.expect("its bytes are there");
    let runs = rig.events().await.into_iter().filter(|event| event.action == "run_blocked_purge").count();
    assert_eq!(runs, 2, "one for each run that was asked for");
    assert_eq!(rig.actions(&ids[3]).await, ["blocked_inline", "bundle_purged"]);
    // The daily run does the same, once for all processes.
    let late = rig.upload("BLOCK g").await.expect("taken").submission_id;
    rig.wait(SignedDuration::from_hours(24 * 31));
    rig.submissions.purge_daily().await.expect("purged");
    assert!(rig.row(&late).await.purged.is_some());
    // 0 keeps them for ever.
    let guardrails = GuardrailsConfig { blocked_bundle_ttl_days: 0, ..GuardrailsConfig::default() };
    let off = Rig::at(rig.place, Setup { guardrails, ..Setup::default() }, rig.now.clone()).await;
    off.upload("BLOCK h").await.expect("taken");
    off.wait(SignedDuration::from_hours(24 * 400));
    assert_eq!(off.submissions.purge(&admin(), false).await.expect("looked").submission_ids.len(), 0);
}

async fn reviews_that_never_end_are_reaped(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    let held = rig.upload("PARTIAL").await.expect("taken").submission_id;
    let id = rig.upload("fine").await.expect("taken").submission_id;
    for tries in 1..=3 {
        let row = rig.submissions.claim("dies").await.expect("claimed").expect("it waits");
        assert_eq!((row.id.as_str(), row.tries), (id.as_str(), tries));
        assert!(rig.submissions.claim("another").await.expect("claimed").is_none(), "one has it");
        rig.wait(SignedDuration::from_secs(61));
    }
    assert!(rig.submissions.claim("another").await.expect("claimed").is_none(), "it was tried often enough");
    assert_eq!(
        rig.submissions.reap(&admin(), false).await.expect("looked"),
        Vec::<String>::new(),
        "it has its grace"
    );
    rig.wait(SignedDuration::from_secs(1_800));
    assert_eq!(rig.submissions.reap(&admin(), true).await.expect("looked"), [id.as_str()]);
    assert_eq!(rig.row(&id).await.status, S::PendingLlm, "a dry run changes nothing");
    assert_eq!(rig.submissions.reap(&admin(), false).await.expect("reaped"), [id.as_str()]);
    assert_eq!(rig.submissions.reap(&admin(), false).await.expect("again"), Vec::<String>::new());
    let stands = rig.submissions.get(&owner(), &id, true).await.expect("its own");
    assert_eq!(stands.status, S::ReviewError);
    assert_eq!(stands.details.expect("all").attempts[0].error, "timeout_or_crash");
    assert_eq!(rig.row(&held).await.status, S::PendingLlm, "what is held is never reaped");
    // A retried one begins anew, however old its row is.
    rig.submissions.retry(&admin(), &id).await.expect("retried");
    assert_eq!(rig.submissions.reap(&admin(), false).await.expect("looked"), Vec::<String>::new());
    rig.work().await;
    assert_eq!(rig.row(&id).await.status, S::Approved);
    assert_eq!(rig.actions(&id).await, ["accepted", "review_error", "retry", "approved"]);
    let guardrails = GuardrailsConfig { stuck_review_grace_seconds: 0, ..GuardrailsConfig::default() };
    let off = Rig::at(rig.place, Setup { guardrails, ..Setup::default() }, rig.now.clone()).await;
    off.upload("another").await.expect("taken");
    for _ in 0..3 {
        off.submissions.claim("dies").await.expect("claimed").expect("it waits");
        off.wait(SignedDuration::from_hours(24));
    }
    assert_eq!(off.submissions.reap(&admin(), false).await.expect("looked"), Vec::<String>::new());
}

async fn strays_are_swept_up(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    let kept = rig.upload("fine").await.expect("taken").submission_id;
    let deleted = rig.upload("BLOCK").await.expect("taken").submission_id;
    let parts = rig.submissions.parts();
    let mut spooling = rig.submissions.spool().begin().expect("a file");
    spooling.write(b"a stray").expect("written");
    let spooled = spooling.finish();
    let stray = uuid::Uuid::now_v7().to_string();
    // A crash between bytes and row, and one between row and bytes.
    parts.bytes.put_file(stray.clone(), spooled.path().to_owned()).await.expect("kept");
    rig.submissions.delete(&admin(), &deleted, "").await.expect("deleted");
    parts.bytes.put_file(deleted.clone(), spooled.path().to_owned()).await.expect("kept");
    drop(spooled);
    // The clock of the test stands years before that of the files.
    *rig.now.lock().expect("no panic") = jiff::Timestamp::now() - SignedDuration::from_hours(1);
    assert_eq!(rig.submissions.sweep().await.expect("swept"), 0, "what is young stays");
    *rig.now.lock().expect("no panic") = jiff::Timestamp::now() + SignedDuration::from_hours(1);
    assert_eq!(rig.submissions.sweep().await.expect("swept"), 2);
    assert_eq!(rig.kept().await, [kept.as_str()]);
    assert_eq!(rig.submissions.sweep().await.expect("swept"), 0);
}

async fn a_verdict_that_comes_too_late_is_thrown_away(place: Place) {
    let rig = Arc::new(Rig::new(place, Setup::default()).await);
    // While the model thinks, an administrator has it all checked again, or deletes it.
    for deletes in [false, true] {
        *rig.judge.is_slow.lock().expect("no panic") = true;
        let id = rig.upload(&format!("fine {deletes}")).await.expect("taken").submission_id;
        let row = rig.submissions.claim("slow").await.expect("claimed").expect("it waits");
        let working = tokio::spawn({
            let rig = rig.clone();
            async move { worker::step(&rig.submissions, &row).await }
        });
        rig.judge.reached.notified().await;
        if deletes {
            rig.submissions.delete(&admin(), &id, "").await.expect("deleted");
        } else {
            rig.submissions.rescan(&admin(), &id).await.expect("rescanned");
        }
        let before = rig.row(&id).await;
        rig.judge.go.notify_one();
        working.await.expect("no panic").expect("no error");
        assert_eq!(rig.row(&id).await, before, "the late verdict changed nothing");
        let skipped = rig.actions(&id).await.into_iter().filter(|action| action == "verdict_skipped").count();
        assert_eq!(skipped, 1);
        *rig.judge.is_slow.lock().expect("no panic") = false;
        rig.work().await;
        assert_eq!(rig.row(&id).await.status, if deletes { S::Deleted } else { S::Approved });
    }
}

async fn an_interrupted_rescan_is_taken_up_again(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    let id = rig.upload("fine").await.expect("taken").submission_id;
    rig.work().await;
    rig.submissions.begin_rescan(&admin(), &id).await.expect("begun, and then it dies");
    assert_eq!(rig.row(&id).await.status, S::PendingInline);
    assert_eq!(rig.work().await, 0, "somebody works on it");
    let running = rig.submissions.rescan(&admin(), &id).await;
    assert!(
        matches!(running, Err(SubmissionError::NotAllowed { found: S::PendingInline, .. })),
        "{running:?}"
    );
    rig.wait(SignedDuration::from_secs(61));
    assert_eq!(rig.work().await, 2, "the checks and the review");
    let stands = rig.submissions.get(&owner(), &id, true).await.expect("its own");
    assert_eq!((stands.status, stands.visibility), (S::Approved, Some(Visibility::Approved)));
    assert_eq!(stands.details.expect("all").attempts.len(), 2);
    // Bytes that are gone or differ are never judged.
    rig.submissions.parts().bytes.delete(id.clone()).await.expect("gone");
    let stands = rig.submissions.rescan(&admin(), &id).await.expect("rescanned");
    assert_eq!(stands.status, S::ReviewError);
    assert_eq!(stands.details.expect("all").attempts[2].error, "bytes_missing");
}

async fn a_worker_that_stops_gives_its_work_back(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    *rig.judge.is_slow.lock().expect("no panic") = true;
    let id = rig.upload("fine").await.expect("taken").submission_id;
    let worker = Worker::start(&rig.submissions);
    rig.judge.reached.notified().await;
    worker.stop(std::time::Duration::from_secs(30)).await;
    let row = rig.row(&id).await;
    assert_eq!((row.status, row.lease, row.tries), (S::PendingLlm, None, 0), "as if it had never been taken");
    *rig.judge.is_slow.lock().expect("no panic") = false;
    let worker = Worker::start(&rig.submissions);
    let mut watching = std::pin::pin!(rig.submissions.watch(owner(), id, false));
    let mut last = None;
    while let Some(watched) = futures_util::StreamExt::next(&mut watching).await {
        last = Some(watched.expect("its own").submission.status);
    }
    assert_eq!(last, Some(S::Approved));
    worker.stop(std::time::Duration::from_secs(30)).await;
    let given = rig
        .submissions
        .release(&rig.row(&rig.upload("x").await.expect("taken").submission_id).await, Released::Stopping)
        .await;
    assert!(given.expect("written"));
}

async fn without_a_model_what_waits_is_held(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    let id = rig.upload("fine").await.expect("taken").submission_id;
    let bare = Rig::at(rig.place, Setup { has_key: false, ..Setup::default() }, rig.now.clone()).await;
    bare.work().await;
    let row = bare.row(&id).await;
    assert_eq!((row.status, row.hold_reason), (S::PendingLlm, crate::decision::HoldReason::NoKey));
    let stands = bare.submissions.retry(&admin(), &id).await.expect("retried");
    assert_eq!((stands.status, stands.hold_reason), (S::PendingLlm, crate::decision::HoldReason::NoKey));
    let off = GuardrailsConfig { enabled: false, ..GuardrailsConfig::default() };
    let off = Rig::at(bare.place, Setup { guardrails: off, has_key: true }, bare.now.clone()).await;
    let refused = off.submissions.retry(&admin(), &id).await;
    assert!(
        matches!(refused, Err(SubmissionError::NotAllowed { .. })),
        "nothing is approved by asking nobody"
    );
    let rig = Rig::at(off.place, Setup::default(), off.now.clone()).await;
    rig.submissions.retry(&admin(), &id).await.expect("there is a model again");
    rig.work().await;
    let stands = rig.submissions.get(&owner(), &id, true).await.expect("its own");
    assert_eq!(stands.status, S::Approved);
    let unjudged = stands.details.expect("all").unjudged;
    assert!(unjudged.is_empty(), "it was judged after all: {unjudged:?}");
}
