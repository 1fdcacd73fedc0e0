//! What goes on by itself: held submissions once there is an answer for them, the policy of an upload, masked reviews.

use serde_json::json;

use super::on_both;
use super::rig::{Place, Rig, Setup, admin, owner};
use crate::bundles::{GuardrailsConfig, WithoutKey};
use crate::decision::{HoldReason, SubmissionStatus as S};
use crate::judge::Trouble;

on_both!(
    what_is_held_for_want_of_a_key_goes_on_once_there_is_one,
    of_two_processes_one_releases,
    every_check_asks_for_the_policy_of_the_upload,
    what_a_model_quotes_is_masked_before_it_is_kept,
);

async fn what_is_held_for_want_of_a_key_goes_on_once_there_is_one(place: Place) {
    let approve = GuardrailsConfig { without_key: WithoutKey::Approve, ..GuardrailsConfig::default() };
    let off = GuardrailsConfig { enabled: false, ..GuardrailsConfig::default() };
    let mut place = Some(place);
    for (nth, (guardrails, has_key, waits, ends, actions)) in [
        (GuardrailsConfig::default(), false, S::PendingLlm, S::PendingLlm, "accepted"),
        (GuardrailsConfig::default(), true, S::PendingLlm, S::Approved, "accepted retry approved"),
        (approve, false, S::PendingInline, S::Approved, "accepted rescan approved"),
        (off, false, S::PendingInline, S::Approved, "accepted rescan approved"),
    ]
    .into_iter()
    .enumerate()
    {
        let without = Setup { guardrails: GuardrailsConfig::default(), has_key: false };
        let rig = Rig::new(place.take().expect("given back"), without).await;
        let mut ids = Vec::new();
        for text in [format!("fine {nth}"), format!("PARTIAL {nth}"), format!("BLOCK {nth}")] {
            ids.push(rig.upload(&text).await.expect("taken").submission_id);
        }
        assert_eq!(rig.row(&ids[0]).await.hold_reason, HoldReason::NoKey);
        let (now, kept) = (rig.now.clone(), rig.place);

        // The next process has other settings.
        let rig = Rig::at(kept, Setup { guardrails, has_key }, now).await;
        let released = rig.submissions.release_held().await.expect("looked for");
        let is_released = ends != S::PendingLlm;
        assert!((released >= 1) == is_released, "{nth}: {released}");
        assert_eq!(rig.row(&ids[0]).await.status, waits, "{nth}");
        assert_eq!(rig.submissions.release_held().await.expect("looked for"), 0, "{nth}: once");
        rig.work().await;
        let row = rig.row(&ids[0]).await;
        assert_eq!((row.status, row.hold_reason == HoldReason::None), (ends, is_released), "{nth}");
        assert_eq!(rig.actions(&ids[0]).await.join(" "), actions, "{nth}");
        let told =
            rig.submissions.get(&owner(), &ids[0], true).await.expect("its own").details.expect("asked for");
        let is_told = told.unjudged.iter().any(|check| &*check.plugin == "llm_review");
        assert_eq!(is_told, !is_released, "{nth}");
        // What is held for its coverage, and what is blocked, wait for a person.
        assert_eq!(rig.row(&ids[1]).await.hold_reason, HoldReason::Coverage, "{nth}");
        assert_eq!(rig.row(&ids[2]).await.status, S::BlockedInline, "{nth}");
        place = Some(rig.place);
    }
}

async fn of_two_processes_one_releases(place: Place) {
    let rig = Rig::new(place, Setup { has_key: false, ..Setup::default() }).await;
    let mut ids = Vec::new();
    for nth in 0..8 {
        ids.push(rig.upload(&format!("fine {nth}")).await.expect("taken").submission_id);
    }
    let (now, kept) = (rig.now.clone(), rig.place);
    let first = Rig::at(kept, Setup::default(), now.clone()).await;
    let second = first.beside(Setup::default()).await;
    let released = tokio::join!(first.submissions.release_held(), second.release_held());
    assert_eq!(released.0.expect("done") + released.1.expect("done"), 8);
    for id in &ids {
        assert_eq!(first.actions(id).await, ["accepted", "retry"]);
        assert_eq!(first.row(id).await.attempt, 2);
    }
}

async fn every_check_asks_for_the_policy_of_the_upload(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    let id = rig.upload("fine").await.expect("taken").submission_id;
    rig.work().await;
    rig.submissions.rescan(&admin(), &id).await.expect("begun");
    rig.work().await;
    rig.submissions.rescan(&admin(), &id).await.expect("begun");
    let asked = rig.asked.lock().expect("no panic");
    assert!(asked.len() >= 4, "{asked:?}");
    assert!(asked.iter().all(|asked| asked.policy == "strict" && asked.tenant.is_empty()), "{asked:?}");
}

async fn what_a_model_quotes_is_masked_before_it_is_kept(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    // The mask of these tests knows one word; what it hides is longer than what is cut off.
    let long = format!("{}hunter2 and more", "x".repeat(590));
    let finding = json!({
        "file": "hunter2.md", "line": 1, "category": "hunter2", "severity": "medium", "reason": long,
        "fix_hint": "Take hunter2 out.",
    });
    let said = json!({"risk_level": "low", "summary": "It logs in with hunter2.", "findings": [finding], "placeholders": 0});
    rig.answers([Ok(said)]);
    let id = rig.upload("fine").await.expect("taken").submission_id;
    rig.work().await;
    let again = rig.upload("fine").await.expect("taken").submission_id;
    rig.work().await;
    assert_eq!(rig.judge.asked.load(std::sync::atomic::Ordering::SeqCst), 1, "the verdict is remembered");
    for id in [&id, &again] {
        let stands = rig.submissions.get(&owner(), id, true).await.expect("its own");
        assert_eq!(stands.status, S::Approved);
        let details = stands.details.expect("asked for");
        let told = format!("{details:?}");
        assert!(!told.contains("hunter2") && told.contains("[SECRET]"), "{told}");
        assert!(!told.contains("hunter"), "nothing of it is left at a cut: {told}");
    }
    let events = format!("{:?}", rig.events().await);
    assert!(!events.contains("hunter2"), "{events}");
    // Why there is no verdict is told in the words of the provider.
    rig.answers([Err(Trouble::Refused)]);
    *rig.judge.detail.lock().expect("no panic") = "no answer to hunter2".to_owned();
    let id = rig.upload("other").await.expect("taken").submission_id;
    rig.work().await;
    let stands = rig.submissions.get(&owner(), &id, true).await.expect("its own");
    let review = stands.details.expect("asked for").checks.llm_review.expect("why there is none");
    assert_eq!(review.reason, "no answer to [SECRET]");
}
