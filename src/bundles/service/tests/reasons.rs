//! Reasons are kept without the credentials that whoever typed them put in.

use super::on_both;
use super::rig::{Place, Rig, Setup, admin, says};

on_both!(reasons_are_masked_wherever_they_are_kept,);

async fn reasons_are_masked_wherever_they_are_kept(place: Place) {
    let rig = Rig::new(place, Setup::default()).await;
    rig.answers([says("high", "high"), says("safe", "")]);
    let (told, kept) = ("known good, see hunter2", "known good, see [SECRET]");
    let first = rig.upload("a").await.expect("taken");
    rig.work().await;
    let second = rig.upload("b").await.expect("taken");
    rig.work().await;
    let submissions = &rig.submissions;
    let published = submissions.publish(&admin(), &first.submission_id, told).await.expect("published");
    assert_eq!(published.overridden.map(|by| by.reason).as_deref(), Some(kept));
    assert_eq!(rig.row(&first.submission_id).await.overridden.map(|by| by.reason).as_deref(), Some(kept));
    submissions.archive(&admin(), &first.entity_id, told).await.expect("archived");
    submissions.restore(&admin(), &first.entity_id, told).await.expect("restored");
    submissions.delete(&admin(), &second.submission_id, told).await.expect("deleted");
    submissions.delete_entity(&admin(), &first.entity_id, told).await.expect("deleted");
    let events = rig.events().await;
    let reasons: Vec<&str> =
        events.iter().map(|event| event.reason.as_str()).filter(|reason| !reason.is_empty()).collect();
    assert!(reasons.len() >= 5, "{reasons:?}");
    assert!(reasons.iter().all(|reason| *reason == kept), "{reasons:?}");
    assert!(events.iter().all(|event| !format!("{event:?}").contains("hunter2")));
}
