//! From the upload to the verdict and beyond: what each step does to verdict, visibility, attempts and events.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::SignedDuration;

use super::on_both;
use super::rig::{Place, Rig, Setup, admin, owner, says, stranger};
use crate::bundles::life::Bytes;
use crate::bundles::service::SubmissionError;
use crate::bundles::{GuardrailsConfig, WithoutKey};
use crate::decision::{CheckStatus, Decision, HoldReason, SubmissionStatus as S, Visibility};
use crate::judge::Trouble;
use crate::store::{EntityFilter, EntityKey, EntityQuery};

on_both!(
    uploads_end_as_checks_settings_and_model_say,
    questions_without_an_answer_are_errors_or_asked_again,
    administrators_publish_against_a_verdict_with_a_reason,
    refused_archives_are_published_by_nobody,
    a_new_version_stands_beside_the_live_one_until_it_passed,
    a_rescan_that_blocks_takes_the_live_version_down,
    others_see_only_what_is_approved,
    entities_are_archived_restored_and_deleted,
    deleting_leaves_tombstones,
    verdicts_are_remembered_for_equal_bytes,
    watchers_see_the_verdict_land,
    downloads_are_packed_afresh_and_recorded,
    nothing_is_kept_of_a_dry_run,
);

async fn uploads_end_as_checks_settings_and_model_say(place: Place) {
    let off = GuardrailsConfig { enabled: false, ..GuardrailsConfig::default() };
    let approve = GuardrailsConfig { without_key: WithoutKey::Approve, ..GuardrailsConfig::default() };
    let on = GuardrailsConfig::default();
    let mut place = Some(place);
    for (guardrails, has_key, text, said, status, hold, visibility, actions) in [
        (
            &on,
            true,
            "fine",
            says("safe", ""),
            S::Approved,
            HoldReason::None,
            Visibility::Approved,
            "accepted approved",
        ),
        (
            &on,
            true,
            "fine b",
            says("low", "medium"),
            S::Approved,
            HoldReason::None,
            Visibility::Approved,
            "accepted approved",
        ),
        (
            &on,
            true,
            "fine c",
            says("low", "high"),
            S::BlockedLlm,
            HoldReason::None,
            Visibility::Hidden,
            "accepted blocked_llm",
        ),
        (
            &on,
            true,
            "fine d",
            says("high", ""),
            S::BlockedLlm,
            HoldReason::None,
            Visibility::Hidden,
            "accepted blocked_llm",
        ),
        (
            &on,
            true,
            "fine e",
            says("safe", "critical"),
            S::ReviewError,
            HoldReason::None,
            Visibility::Pending,
            "accepted review_error",
        ),
        (
            &on,
            true,
            "BLOCK",
            says("safe", ""),
            S::BlockedInline,
            HoldReason::None,
            Visibility::Hidden,
            "blocked_inline",
        ),
        (
            &on,
            true,
            "PARTIAL",
            says("safe", ""),
            S::PendingLlm,
            HoldReason::Coverage,
            Visibility::Pending,
            "accepted",
        ),
        (
            &on,
            true,
            "UNJUDGED",
            says("safe", ""),
            S::PendingLlm,
            HoldReason::Coverage,
            Visibility::Pending,
            "accepted",
        ),
        (
            &off,
            false,
            "UNJUDGED b",
            says("safe", ""),
            S::PendingLlm,
            HoldReason::Coverage,
            Visibility::Pending,
            "accepted",
        ),
        (
            &on,
            true,
            "BLOCK PARTIAL",
            says("safe", ""),
            S::BlockedInline,
            HoldReason::None,
            Visibility::Hidden,
            "blocked_inline",
        ),
        (
            &on,
            false,
            "fine f",
            says("safe", ""),
            S::PendingLlm,
            HoldReason::NoKey,
            Visibility::Pending,
            "accepted",
        ),
        (
            &on,
            false,
            "PARTIAL b",
            says("safe", ""),
            S::PendingLlm,
            HoldReason::Coverage,
            Visibility::Pending,
            "accepted",
        ),
        (
            &approve,
            false,
            "fine g",
            says("high", ""),
            S::Approved,
            HoldReason::None,
            Visibility::Approved,
            "accepted approved",
        ),
        (
            &approve,
            false,
            "BLOCK g",
            says("safe", ""),
            S::BlockedInline,
            HoldReason::None,
            Visibility::Hidden,
            "blocked_inline",
        ),
        (
            &approve,
            true,
            "fine h",
            says("high", "high"),
            S::BlockedLlm,
            HoldReason::None,
            Visibility::Hidden,
            "accepted blocked_llm",
        ),
        (
            &off,
            true,
            "fine i",
            says("high", "high"),
            S::Approved,
            HoldReason::None,
            Visibility::Approved,
            "accepted approved",
        ),
        (
            &off,
            false,
            "PARTIAL c",
            says("safe", ""),
            S::PendingLlm,
            HoldReason::Coverage,
            Visibility::Pending,
            "accepted",
        ),
    ] {
        let setup = Setup { guardrails: guardrails.clone(), has_key };
        let rig = Rig::new(place.take().expect("given back"), setup).await;
        rig.answers([said]);
        let answer = rig.upload(text).await.expect("taken");
        rig.work().await;
        let stands = rig.submissions.get(&owner(), &answer.submission_id, true).await.expect("its own");
        assert_eq!(
            (stands.status, stands.hold_reason, stands.visibility),
            (status, hold, Some(visibility)),
            "{text}"
        );
        assert_eq!(stands.is_live, visibility == Visibility::Approved, "{text}");
        assert_eq!(rig.actions(&stands.id).await.join(" "), actions, "{text}");
        let details = stands.details.expect("asked for");
        assert_eq!(details.attempts.len(), 1);
        assert_eq!(
            (details.attempts[0].status, details.attempts[0].ended.is_some()),
            (status, status != S::PendingLlm),
            "{text}"
        );
        assert_eq!(details.timeline.len(), actions.split(' ').count(), "{text}");
        let review = details.checks.llm_review.map(|review| review.status);
        let wanted = match (status, guardrails.enabled && has_key) {
            (S::Approved, true) => Some(CheckStatus::Pass),
            (S::Approved, false) | (S::ReviewError, _) => Some(CheckStatus::Skipped),
            (S::BlockedLlm, _) => Some(CheckStatus::Fail),
            _ => None,
        };
        assert_eq!(review, wanted, "{text}");
        let is_told = details.unjudged.iter().any(|check| &*check.plugin == "llm_review");
        assert_eq!(is_told, hold == HoldReason::NoKey, "{text}: a reason for a person");
        // Nothing is left of the way in.
        assert_eq!(rig.spooled(), 0);
        place = Some(rig.place);
    }
}

async fn questions_without_an_answer_are_errors_or_asked_again(place: Place) {
    // Pauses are a part of the time of a review.
    let guardrails =
        GuardrailsConfig { review_timeout: Duration::from_secs(3), ..GuardrailsConfig::default() };
    let rig = Rig::new(place, Setup { guardrails, ..Setup::default() }).await;
    for trouble in [
        Trouble::Refused,
        Trouble::Truncated,
        Trouble::NotJson,
        Trouble::WrongShape,
        Trouble::Blocked,
        Trouble::Unauthorized,
        Trouble::Quota,
    ] {
        rig.answers([Err(trouble)]);
        let id = rig.upload(trouble.as_str()).await.expect("taken").submission_id;
        assert_eq!(rig.work().await, 1, "{trouble:?} is final");
        let stands = rig.submissions.get(&owner(), &id, true).await.expect("its own");
        assert_eq!((stands.status, stands.decision), (S::ReviewError, Decision::Ask), "{trouble:?}");
        let details = stands.details.expect("asked for");
        assert_eq!(details.attempts[0].error, trouble.as_str());
        let review = details.checks.llm_review.expect("why there is none");
        assert_eq!(
            (review.status, review.reason),
            (CheckStatus::Skipped, format!("{} happened", trouble.as_str()))
        );
    }
    // What may pass is asked again after a pause, three times in all, within the time of one review.
    for (troubles, then) in [
        (&[Trouble::Timeout, Trouble::ServerError, Trouble::Unreachable][..], S::ReviewError),
        (&[Trouble::ServerError, Trouble::Broken], S::Approved),
    ] {
        rig.answers(troubles.iter().map(|trouble| Err(*trouble)));
        let id = rig.upload(&format!("away {}", troubles.len())).await.expect("taken").submission_id;
        assert_eq!(rig.work().await, 1);
        assert_eq!(rig.row(&id).await.status, then);
        let last = if then == S::Approved { "approved" } else { "review_error" };
        assert_eq!(rig.actions(&id).await, ["accepted", last]);
    }
    // A model that cannot be asked costs no try, however often.
    rig.answers((0..10).map(|_| Err(Trouble::RateLimited)));
    let id = rig.upload("limited").await.expect("taken").submission_id;
    for _ in 0..10 {
        assert_eq!(rig.work().await, 1);
        assert_eq!((rig.row(&id).await.status, rig.row(&id).await.tries), (S::PendingLlm, 0));
        rig.wait(SignedDuration::from_mins(5));
    }
    rig.work().await;
    assert_eq!(rig.row(&id).await.status, S::Approved);
    // But not for ever.
    rig.answers([Err(Trouble::CircuitOpen), Err(Trouble::CircuitOpen)]);
    let id = rig.upload("gone").await.expect("taken").submission_id;
    rig.work().await;
    rig.wait(SignedDuration::from_hours(25));
    rig.work().await;
    assert_eq!(rig.row(&id).await.status, S::ReviewError);
}

async fn administrators_publish_against_a_verdict_with_a_reason(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    rig.answers([says("high", "high"), Err(Trouble::Refused), says("safe", "")]);
    let ids: Vec<String> = {
        let mut ids = Vec::new();
        for text in ["a", "b", "c", "BLOCK", "PARTIAL"] {
            ids.push(rig.upload(text).await.expect("taken").submission_id);
            rig.work().await;
        }
        ids
    };
    for (id, prior) in [
        (&ids[0], S::BlockedLlm),
        (&ids[1], S::ReviewError),
        (&ids[3], S::BlockedInline),
        (&ids[4], S::PendingLlm),
    ] {
        assert_eq!(rig.row(id).await.status, prior);
        for short in ["", "abc", " a b c ", "\u{3000}\n\t x"] {
            let refused = rig.submissions.publish(&admin(), id, short).await;
            assert!(matches!(refused, Err(SubmissionError::Invalid { field: "reason", .. })), "{short:?}");
        }
        let refused = rig.submissions.publish(&owner(), id, "I want it").await;
        assert!(matches!(refused, Err(SubmissionError::PermissionDenied { .. })));
        let stands = rig.submissions.publish(&admin(), id, " known and good ").await.expect("published");
        assert_eq!((stands.status, stands.decision), (S::Overridden, Decision::Allow));
        assert_eq!(
            (stands.hold_reason, stands.visibility, stands.is_live),
            (HoldReason::None, Some(Visibility::Approved), true)
        );
        let overridden = stands.overridden.expect("kept");
        assert_eq!(
            (overridden.actor.as_str(), overridden.reason.as_str(), overridden.prior_status),
            ("root", "known and good", prior)
        );
        // The verdict of the attempt stays.
        assert_eq!(stands.details.expect("all").attempts[0].status, prior);
        let again = rig.submissions.publish(&admin(), id, "once more").await;
        assert!(matches!(again, Err(SubmissionError::NotAllowed { found: S::Overridden, .. })), "{again:?}");
        let events = rig.events().await;
        let mut told = events
            .iter()
            .filter(|e| e.action == "store.submission.overridden" && e.resource.ends_with(id.as_str()));
        let event = told.next().expect("recorded");
        assert!(told.next().is_none(), "once");
        assert_eq!(
            (event.actor.as_str(), event.reason.as_str(), event.request_id.as_str()),
            ("root", "known and good", "r-1")
        );
        assert!(
            event.detail_json.contains(&format!("\"prior_status\":\"{prior}\"")),
            "{}",
            event.detail_json
        );
        // What was said once stays, whatever comes after it.
        let after = rig.submissions.rescan(&admin(), id).await.expect("rescanned");
        assert_eq!(after.overridden.expect("kept for ever").prior_status, prior);
    }
    let approved = rig.submissions.publish(&admin(), &ids[2], "for certain").await;
    assert!(matches!(approved, Err(SubmissionError::NotAllowed { found: S::Approved, .. })));
    let unknown = rig.submissions.publish(&admin(), "nobody", "for certain").await;
    assert!(matches!(unknown, Err(SubmissionError::NotFound { what: "submission", .. })));
}

/// Nothing can be handed out of an archive that did not open: no administrator publishes it, and what is live stays.
async fn refused_archives_are_published_by_nobody(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    let first = rig.upload("REFUSED").await.expect("taken");
    let good = rig.upload("fine").await.expect("taken");
    rig.work().await;
    let entity = good.entity_id.as_str();
    let next = rig.upload_to("REFUSED again", Some(entity), false).await.expect("taken");
    for id in [&first.submission_id, &next.submission_id] {
        let row = rig.row(id).await;
        assert_eq!((row.status, row.bundle_sha256.as_str()), (S::BlockedInline, ""));
        let refused = rig.submissions.publish(&admin(), id, "known and good").await;
        assert!(
            matches!(refused, Err(SubmissionError::Unopened { action: "overridden", .. })),
            "{refused:?}"
        );
        let choices = rig.submissions.choices(row.status, row.hold_reason, Bytes::of(false, ""));
        let told = choices.iter().find(|one| one.action == "override").expect("listed");
        assert!(told.refused.as_ref().is_some_and(|why| why.contains("could not be opened")), "{told:?}");
        // Checked again it is what it was; that its checks ran is no way around it either.
        rig.submissions.rescan(&admin(), id).await.expect("rescanned");
        assert_eq!(rig.row(id).await.status, S::BlockedInline);
        let refused = rig.submissions.publish(&admin(), id, "known and good").await;
        assert!(matches!(refused, Err(SubmissionError::Unopened { .. })), "{refused:?}");
    }
    let stands = rig.submissions.entity(&stranger(), entity).await.expect("it is published");
    assert_eq!(stands.live_submission_id.as_deref(), Some(&*good.submission_id));
    let hidden = rig.submissions.entity(&owner(), &first.entity_id).await.expect("its own");
    assert_eq!((hidden.visibility, hidden.live_submission_id), (Visibility::Hidden, None));
    assert!(rig.submissions.download_entity(&stranger(), entity).await.is_ok());
}

async fn a_new_version_stands_beside_the_live_one_until_it_passed(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    let first = rig.upload("one").await.expect("taken");
    rig.work().await;
    let entity = first.entity_id.as_str();
    rig.answers([says("high", "high"), Err(Trouble::Refused), says("low", "")]);
    for (text, wanted) in [("BLOCK two", S::BlockedInline), ("two", S::BlockedLlm), ("three", S::ReviewError)]
    {
        let next = rig.upload_to(text, Some(entity), false).await.expect("taken");
        assert_eq!((next.entity_id.as_str(), next.visibility), (entity, Visibility::Approved), "{text}");
        rig.work().await;
        assert_eq!(rig.row(&next.submission_id).await.status, wanted);
        let now = rig.submissions.entity(&owner(), entity).await.expect("its own");
        assert_eq!(now.live_submission_id.as_deref(), Some(&*first.submission_id), "{text}");
        assert_eq!((now.visibility, now.latest), (Visibility::Approved, Some((next.submission_id, wanted))));
    }
    let last = rig.upload_to("four", Some(entity), false).await.expect("taken");
    let before = rig.submissions.entity(&stranger(), entity).await.expect("it is published");
    assert_eq!((before.live_submission_id.as_deref(), before.latest), (Some(&*first.submission_id), None));
    rig.work().await;
    let after = rig.submissions.entity(&stranger(), entity).await.expect("it is published");
    assert_eq!(after.live_submission_id.as_deref(), Some(&*last.submission_id));
    // An older one that passes late does not push it out; an administrator may.
    let older = rig.submissions.retry(&admin(), &first.submission_id).await;
    assert!(matches!(older, Err(SubmissionError::NotAllowed { .. })));
    rig.submissions.rescan(&admin(), &first.submission_id).await.expect("rescanned");
    rig.work().await;
    assert_eq!(rig.row(&first.submission_id).await.status, S::Approved);
    let after = rig.submissions.entity(&owner(), entity).await.expect("its own");
    assert_eq!(after.live_submission_id.as_deref(), Some(&*last.submission_id));
    // Only its owner adds versions, and only of its kind.
    let mut other = stranger();
    other.name = "bob".to_owned();
    let admitted = rig
        .submissions
        .admit(&other, "bob", "", crate::decision::BundleKind::Skill, Some(entity), false)
        .await;
    assert!(matches!(admitted, Err(SubmissionError::NotFound { what: "entity", .. })));
    let admitted = rig
        .submissions
        .admit(&owner(), "ann", "", crate::decision::BundleKind::Agent, Some(entity), false)
        .await;
    assert!(matches!(admitted, Err(SubmissionError::Invalid { field: "header.kind", .. })));
}

async fn a_rescan_that_blocks_takes_the_live_version_down(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    let first = rig.upload("one").await.expect("taken");
    rig.work().await;
    rig.answers([says("critical", "critical"), says("safe", "")]);
    let stands = rig.submissions.rescan(&admin(), &first.submission_id).await.expect("rescanned");
    assert_eq!(
        (stands.status, stands.visibility),
        (S::PendingLlm, Some(Visibility::Approved)),
        "the old verdict holds so far"
    );
    rig.work().await;
    let stands = rig.submissions.get(&owner(), &first.submission_id, true).await.expect("its own");
    assert_eq!(
        (stands.status, stands.visibility, stands.is_live),
        (S::BlockedLlm, Some(Visibility::Hidden), false)
    );
    let statuses: Vec<_> =
        stands.details.expect("all").attempts.iter().map(|attempt| attempt.status).collect();
    assert_eq!(statuses, [S::Approved, S::BlockedLlm], "each verdict is kept");
    let gone = rig.submissions.download_entity(&owner(), &first.entity_id).await;
    assert!(matches!(gone, Err(SubmissionError::NotApproved { .. })));
    // A second look by the model brings it back.
    rig.submissions.retry(&admin(), &first.submission_id).await.expect("retried");
    rig.work().await;
    let stands = rig.submissions.get(&owner(), &first.submission_id, false).await.expect("its own");
    assert_eq!(
        (stands.status, stands.visibility, stands.is_live),
        (S::Approved, Some(Visibility::Approved), true)
    );
    assert_eq!(
        rig.actions(&first.submission_id).await,
        ["accepted", "approved", "rescan", "blocked_llm", "retry", "approved"]
    );
}

async fn others_see_only_what_is_approved(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    let blocked = rig.upload("BLOCK").await.expect("taken");
    let waiting = rig.upload("fine").await.expect("taken");
    for (actor, sees) in [(owner(), true), (admin(), true), (stranger(), false)] {
        for upload in [&blocked, &waiting] {
            assert_eq!(
                rig.submissions.get(&actor, &upload.submission_id, false).await.is_ok(),
                sees,
                "{}",
                actor.name
            );
            assert_eq!(
                rig.submissions.entity(&actor, &upload.entity_id).await.is_ok(),
                sees,
                "{}",
                actor.name
            );
        }
        let query = EntityQuery {
            tenant: "another".to_owned(),
            filter: EntityFilter::default(),
            key: EntityKey::Name,
            is_descending: false,
            after: None,
            limit: 10,
        };
        let listed = rig.submissions.entities(&actor, query).await.expect("listed");
        assert_eq!(listed.total, if sees { 2 } else { 0 }, "{}", actor.name);
    }
    let foreign = crate::bundles::service::Actor { tenant: "another".to_owned(), ..admin() };
    assert!(rig.submissions.get(&foreign, &waiting.submission_id, false).await.is_err(), "another tenant");
    rig.work().await;
    assert!(rig.submissions.entity(&stranger(), &waiting.entity_id).await.is_ok());
    assert!(
        rig.submissions.get(&stranger(), &waiting.submission_id, false).await.is_err(),
        "submissions stay private"
    );
    for refused in [
        rig.submissions.rescan(&owner(), &waiting.submission_id).await.err(),
        rig.submissions.retry(&owner(), &waiting.submission_id).await.err(),
        rig.submissions.delete(&owner(), &waiting.submission_id, "").await.err(),
        rig.submissions.download(&owner(), &waiting.submission_id).await.err(),
        rig.submissions.purge(&owner(), true).await.err(),
        rig.submissions.reap(&owner(), true).await.err(),
        rig.submissions.restore(&owner(), &waiting.entity_id, "").await.err(),
        rig.submissions.delete_entity(&owner(), &waiting.entity_id, "").await.err(),
    ] {
        assert!(matches!(refused, Some(SubmissionError::PermissionDenied { .. })), "{refused:?}");
    }
}

async fn entities_are_archived_restored_and_deleted(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    let upload = rig.upload("fine").await.expect("taken");
    let entity = upload.entity_id.as_str();
    let early = rig.submissions.archive(&owner(), entity, "").await;
    assert!(matches!(early, Err(SubmissionError::EntityState { found: Visibility::Pending, .. })));
    rig.work().await;
    let foreign = rig.submissions.archive(&stranger(), entity, "").await;
    assert!(matches!(foreign, Err(SubmissionError::PermissionDenied { .. })));
    let archived = rig.submissions.archive(&owner(), entity, "no longer kept").await.expect("archived");
    assert_eq!(
        (archived.visibility, archived.archived.map(|(_, who)| who)),
        (Visibility::Archived, Some("ann".to_owned()))
    );
    assert!(rig.submissions.entity(&stranger(), entity).await.is_err(), "nobody new finds it");
    assert!(rig.submissions.download_entity(&stranger(), entity).await.is_ok(), "existing installs keep it");
    let twice = rig.submissions.archive(&owner(), entity, "").await;
    assert!(matches!(twice, Err(SubmissionError::EntityState { found: Visibility::Archived, .. })));
    // A new version that passes stays archived, and becomes what is handed out.
    let next = rig.upload_to("newer", Some(entity), false).await.expect("taken");
    rig.work().await;
    let stands = rig.submissions.entity(&owner(), entity).await.expect("its own");
    assert_eq!(
        (stands.visibility, stands.live_submission_id.as_deref()),
        (Visibility::Archived, Some(&*next.submission_id))
    );
    let restored = rig.submissions.restore(&admin(), entity, "asked for").await.expect("restored");
    assert_eq!((restored.visibility, restored.archived), (Visibility::Approved, None));
    let twice = rig.submissions.restore(&admin(), entity, "").await;
    assert!(matches!(twice, Err(SubmissionError::EntityState { found: Visibility::Approved, .. })));
    let (before, gone) = rig.submissions.delete_entity(&admin(), entity, "unwanted").await.expect("deleted");
    assert_eq!(
        (before.id.as_str(), gone),
        (entity, vec![upload.submission_id.clone(), next.submission_id.clone()])
    );
    assert!(rig.submissions.entity(&admin(), entity).await.is_err());
    assert_eq!(rig.kept().await, Vec::<String>::new());
    let tombstone = rig.submissions.get(&admin(), &next.submission_id, true).await.expect("it stays");
    assert_eq!((tombstone.status, tombstone.visibility, tombstone.is_live), (S::Deleted, None, false));
    assert!(!tombstone.bundle_sha256.is_empty() && tombstone.file_size > 0 && tombstone.purged.is_some());
    let about = format!("entity:{entity}");
    let events = rig.events().await;
    let actions: Vec<&str> =
        events.iter().filter(|e| e.resource == about).map(|e| e.action.as_str()).collect();
    assert_eq!(actions, ["store.entity.archived", "store.entity.restored", "store.entity.deleted"]);
}

async fn deleting_leaves_tombstones(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    let first = rig.upload("one").await.expect("taken");
    rig.work().await;
    let entity = first.entity_id.as_str();
    let second = rig.upload_to("BLOCK two", Some(entity), false).await.expect("taken");
    // One that is not live goes alone, and the one before it is the newest again.
    let gone = rig.submissions.delete(&admin(), &second.submission_id, "a mistake").await.expect("deleted");
    assert_eq!(
        (gone.status, gone.decision, gone.visibility),
        (S::Deleted, Decision::Block, Some(Visibility::Approved))
    );
    assert_eq!(rig.kept().await, [first.submission_id.as_str()]);
    let stands = rig.submissions.entity(&owner(), entity).await.expect("it stays");
    assert_eq!(stands.latest.map(|(id, _)| id).as_deref(), Some(&*first.submission_id));
    let twice = rig.submissions.delete(&admin(), &second.submission_id, "").await;
    assert!(matches!(twice, Err(SubmissionError::NotAllowed { found: S::Deleted, .. })));
    for refused in [
        rig.submissions.publish(&admin(), &second.submission_id, "in vain").await.err(),
        rig.submissions.rescan(&admin(), &second.submission_id).await.err(),
        rig.submissions.retry(&admin(), &second.submission_id).await.err(),
    ] {
        assert!(
            matches!(refused, Some(SubmissionError::NotAllowed { found: S::Deleted, .. })),
            "{refused:?}"
        );
    }
    let gone = rig.submissions.download(&admin(), &second.submission_id).await;
    assert!(matches!(gone, Err(SubmissionError::Purged { .. })));
    // The live one takes the entity with it.
    let gone = rig.submissions.delete(&admin(), &first.submission_id, "").await.expect("deleted");
    assert_eq!((gone.status, gone.visibility), (S::Deleted, None));
    assert!(rig.submissions.entity(&admin(), entity).await.is_err());
    assert_eq!(rig.kept().await, Vec::<String>::new());
    assert_eq!(rig.actions(&second.submission_id).await, ["blocked_inline", "deleted"]);
    assert_eq!(rig.actions(&first.submission_id).await, ["accepted", "approved", "deleted"]);
}

async fn verdicts_are_remembered_for_equal_bytes(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    rig.answers([says("high", "high"), says("safe", "")]);
    let first = rig.upload("same").await.expect("taken");
    rig.work().await;
    let second = rig.upload("same").await.expect("taken");
    rig.work().await;
    assert_eq!(rig.judge.asked.load(Ordering::SeqCst), 1, "the same bytes get the same verdict");
    for id in [&first.submission_id, &second.submission_id] {
        assert_eq!(rig.row(id).await.status, S::BlockedLlm);
    }
    // An administrator who asks again is answered anew.
    rig.submissions.retry(&admin(), &second.submission_id).await.expect("retried");
    rig.work().await;
    assert_eq!(rig.judge.asked.load(Ordering::SeqCst), 2);
    assert_eq!(rig.row(&second.submission_id).await.status, S::Approved);
}

async fn watchers_see_the_verdict_land(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    let upload = rig.upload("fine").await.expect("taken");
    let watch = |actor| rig.submissions.watch(actor, upload.submission_id.clone(), true);
    let mut watching = std::pin::pin!(watch(owner()));
    let now = watching.next().await.expect("at once").expect("its own");
    assert_eq!((now.submission.status, now.is_final), (S::PendingLlm, false));
    rig.work().await;
    let then = watching.next().await.expect("the verdict").expect("its own");
    assert_eq!((then.submission.status, then.is_final), (S::Approved, true));
    assert_eq!(then.submission.details.expect("asked for").timeline.len(), 2);
    assert!(watching.next().await.is_none(), "nothing more will happen");
    let seen: Vec<_> = watch(stranger()).collect().await;
    assert!(matches!(seen.as_slice(), [Err(SubmissionError::NotFound { .. })]));
    let held = rig.upload("PARTIAL").await.expect("taken");
    let seen: Vec<_> = rig.submissions.watch(owner(), held.submission_id, false).collect().await;
    assert!(
        matches!(seen.as_slice(), [Ok(watched)] if watched.is_final),
        "one that is held waits for a person"
    );
}

async fn downloads_are_packed_afresh_and_recorded(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    let upload = rig.upload("fine").await.expect("taken");
    let early = rig.submissions.download_entity(&owner(), &upload.entity_id).await;
    assert!(matches!(early, Err(SubmissionError::NotApproved { .. })));
    let first = rig.submissions.download(&admin(), &upload.submission_id).await.expect("handed out");
    let second = rig.submissions.download(&admin(), &upload.submission_id).await.expect("handed out");
    assert_eq!(
        (first.size, &first.sha256, first.file_name.as_str()),
        (second.size, &second.sha256, "notes-1.0.0.zip")
    );
    assert_eq!(std::fs::metadata(first.path()).expect("there").len(), first.size);
    let submitted = first.bundle_sha256.clone();
    drop((first, second));
    assert_eq!(rig.spooled(), 0);
    rig.work().await;
    assert!(rig.submissions.download_entity(&stranger(), &upload.entity_id).await.is_ok());
    assert_eq!(
        rig.actions(&upload.submission_id).await,
        ["accepted", "bundle_downloaded", "bundle_downloaded", "approved"],
        "what everybody may have is not recorded"
    );
    rig.overwrite(&upload.submission_id, "something else");
    let changed = rig.submissions.download_entity(&stranger(), &upload.entity_id).await;
    assert!(matches!(changed, Err(SubmissionError::Bytes(_))), "nobody approved these: {changed:?}");
    // An administrator looks at what is there, and is told that it is not what was submitted.
    let looked = rig.submissions.download(&admin(), &upload.submission_id).await.expect("handed out");
    assert_ne!(looked.bundle_sha256, submitted);
}

async fn nothing_is_kept_of_a_dry_run(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    for (text, wanted) in [("fine", S::PendingLlm), ("BLOCK", S::BlockedInline), ("PARTIAL", S::PendingLlm)] {
        let answer = rig.upload_to(text, None, true).await.expect("checked");
        assert_eq!(
            (answer.status, answer.submission_id.as_str(), answer.entity_id.as_str()),
            (wanted, "", ""),
            "{text}"
        );
    }
    let broken = rig.upload("PANIC").await;
    assert!(matches!(broken, Err(SubmissionError::Unchecked(_))), "{broken:?}");
    assert_eq!((rig.kept().await.len(), rig.spooled(), rig.events().await.len()), (0, 0, 0));
    assert_eq!(rig.stores.submissions.counts_by_status().await.expect("counted"), []);
    assert_eq!(rig.judge.asked.load(Ordering::SeqCst), 0);
}
