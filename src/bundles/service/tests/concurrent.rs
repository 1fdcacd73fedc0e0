//! Random operations at once, over real stores: whatever the interleaving, the promises hold.

use std::collections::HashMap;
use std::sync::Arc;

use super::on_both;
use super::rig::{Place, Rig, Setup, admin, owner, says};
use crate::bundles::life;
use crate::bundles::service::SubmissionError;
use crate::bundles::worker;
use crate::decision::{SubmissionStatus as S, Visibility};

on_both!(any_interleaving_keeps_the_promises);

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % sides
    }
}

async fn any_interleaving_keeps_the_promises(place: Place) {
    let rig = Arc::new(Rig::new(place, Setup::default()).await);
    let mut dice = Dice(7);
    let first = rig.upload("start").await.expect("taken");
    let entity = first.entity_id.clone();
    for round in 0..12 {
        rig.answers((0..4).map(|_| match dice.roll(4) {
            0 => says("high", "high"),
            1 => Err(crate::judge::Trouble::Refused),
            _ => says("safe", ""),
        }));
        let rows = rig.stores.submissions.submissions_of(String::new(), entity.clone()).await.expect("read");
        let mut running = Vec::new();
        for task in 0..6 {
            let (rig, entity) = (rig.clone(), entity.clone());
            let id = rows[dice.roll(rows.len())].id.clone();
            let what = dice.roll(8);
            let text = if dice.roll(3) == 0 {
                format!("BLOCK {round} {task}")
            } else {
                format!("fine {round} {task}")
            };
            running.push(tokio::spawn(async move {
                let submissions = &rig.submissions;
                let done = match what {
                    0 => rig.upload_to(&text, Some(&entity), false).await.map(|_| ()),
                    1 => submissions.publish(&admin(), &id, "because").await.map(|_| ()),
                    2 => submissions.rescan(&admin(), &id).await.map(|_| ()),
                    3 => submissions.retry(&admin(), &id).await.map(|_| ()),
                    4 => submissions.archive(&owner(), &entity, "").await.map(|_| ()),
                    5 => submissions.restore(&admin(), &entity, "").await.map(|_| ()),
                    _ => {
                        while let Some(row) = submissions.claim("worker").await.expect("claimed") {
                            worker::step(submissions, &row).await.expect("a step");
                        }
                        Ok(())
                    }
                };
                // Whoever is refused is told why; nothing else goes wrong.
                match done {
                    Ok(())
                    | Err(
                        SubmissionError::NotAllowed { .. }
                        | SubmissionError::EntityState { .. }
                        | SubmissionError::LostRace { .. },
                    ) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }));
        }
        for task in running {
            task.await.expect("no panic");
        }
        check(&rig, &entity).await;
    }
    rig.work().await;
    check(&rig, &entity).await;
    let report = rig.stores.audit.verify_audit(String::new(), Default::default()).await.expect("read");
    assert_eq!(report.broken_at, None);
}

/// Everything that must be true whenever nobody writes.
async fn check(rig: &Rig, entity: &str) {
    let store = &rig.stores.submissions;
    let row = store.entity(String::new(), entity.to_owned()).await.expect("read").expect("it is there");
    let all = store.submissions_of(String::new(), entity.to_owned()).await.expect("read");
    let ids: Vec<String> = all.iter().map(|row| row.id.clone()).collect();
    let attempts = store.attempts(String::new(), ids).await.expect("read");
    let by_id: HashMap<&str, _> = all.iter().map(|row| (row.id.as_str(), row)).collect();
    let newest = by_id[row.latest_submission_id.as_str()].status;
    assert_eq!(
        row.visibility,
        life::visibility(row.archived.is_some(), row.live_submission_id.is_some(), newest)
    );
    assert_eq!(row.archived.is_some(), row.visibility == Visibility::Archived);
    let events = rig.events().await;
    for submission in &all {
        let own: Vec<_> = attempts.iter().filter(|attempt| attempt.submission_id == submission.id).collect();
        let numbers: Vec<u32> = own.iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers, (1..=submission.attempt).collect::<Vec<u32>>());
        let waits = matches!(submission.status, S::PendingInline | S::PendingLlm);
        for (at, attempt) in own.iter().enumerate() {
            assert_eq!(attempt.ended.is_none(), waits && at + 1 == own.len(), "{attempt:?}");
        }
        // One event for each thing that happened, and none for what did not.
        let about = format!("submission:{}", submission.id);
        let count = |action: &str| {
            let action = format!("store.submission.{action}");
            events.iter().filter(|event| event.resource == about && event.action == action).count()
        };
        assert_eq!(count("rescan") + count("retry") + 1, own.len(), "each attempt was begun by somebody");
        let verdicts = own.iter().filter(|attempt| {
            matches!(attempt.status, S::Approved | S::BlockedInline | S::BlockedLlm | S::ReviewError)
        });
        let told = count("approved") + count("blocked_inline") + count("blocked_llm") + count("review_error");
        assert_eq!(verdicts.count(), told, "each verdict is told once");
        assert!(rig.submissions.parts().bytes.exists(submission.id.clone()).await.expect("asked"));
    }
    if let Some(live) = &row.live_submission_id {
        // What is live was passed or published, and nothing that blocked it came after that.
        let about = format!("submission:{live}");
        let said = events.iter().rev().filter(|event| event.resource == about).find_map(|event| match event
            .action
            .trim_start_matches("store.submission.")
        {
            "approved" | "overridden" => Some(true),
            "blocked_inline" | "blocked_llm" | "deleted" => Some(false),
            _ => None,
        });
        assert_eq!(said, Some(true), "{live}");
    }
}
