//! The table against the promises of the contract, and against random concurrent operations.

use proptest::prelude::*;

use super::*;

/// What the contract allows, said once more and without the table.
fn promised(standing: Standing, bytes: Bytes, event: Event) -> Result<Standing, Refused> {
    use Standing as S;
    let is_held = matches!(standing, S::HeldNoKey | S::HeldCoverage);
    let is_blocked = matches!(standing, S::BlockedInline | S::BlockedLlm);
    let (is_allowed, to) = match event {
        Event::CheckBlocked => (standing == S::PendingInline, S::BlockedInline),
        Event::CheckQueued => (standing == S::PendingInline, S::Queued),
        Event::CheckHeldNoKey => (standing == S::PendingInline, S::HeldNoKey),
        Event::CheckHeldCoverage => (standing == S::PendingInline, S::HeldCoverage),
        Event::CheckPassed => (standing == S::PendingInline, S::Approved),
        Event::CheckFailed => (standing == S::PendingInline, S::ReviewError),
        Event::ReviewPassed => (standing == S::Queued, S::Approved),
        Event::ReviewBlocked => (standing == S::Queued, S::BlockedLlm),
        Event::ReviewFailed => (standing == S::Queued, S::ReviewError),
        Event::ReviewHeld => (standing == S::Queued, S::HeldNoKey),
        // "Allowed for BLOCKED_INLINE, BLOCKED_LLM, REVIEW_ERROR and held ones whose bytes are still there."
        Event::Override => (is_blocked || is_held || standing == S::ReviewError, S::Overridden),
        // "Runs all checks again over the bytes that were submitted": of anything but what is being checked just now.
        Event::Rescan => (!matches!(standing, S::PendingInline | S::Deleted), S::PendingInline),
        // "Allowed for REVIEW_ERROR, BLOCKED_LLM and ones held for want of a key."
        Event::Retry => (matches!(standing, S::ReviewError | S::BlockedLlm | S::HeldNoKey), S::Queued),
        Event::RetryHeld => (matches!(standing, S::ReviewError | S::BlockedLlm | S::HeldNoKey), S::HeldNoKey),
        // "Approved, overridden and REVIEW_ERROR ones are never touched."
        Event::Purge => (is_blocked, standing),
        Event::Delete => (standing != S::Deleted, S::Deleted),
    };
    let may_lack_bytes =
        matches!(event, Event::Delete | Event::CheckFailed | Event::ReviewFailed | Event::ReviewHeld);
    // "There is nothing that could be published": of what was not opened, no verdict but a blocking one, and no way around it.
    let may_lack_files =
        matches!(event, Event::CheckBlocked | Event::ReviewBlocked | Event::Rescan | Event::Purge)
            || may_lack_bytes;
    match (is_allowed, bytes) {
        (false, _) => Err(Refused::Illegal),
        (true, Bytes::Gone) if !may_lack_bytes => Err(Refused::Purged),
        (true, Bytes::Unopened) if !may_lack_files => Err(Refused::Unopened),
        (true, _) => Ok(to),
    }
}

#[test]
fn the_table_is_what_the_contract_promises_and_nothing_else() {
    for from in Standing::ALL {
        for event in Event::ALL {
            for bytes in Bytes::ALL {
                let found = next(from, bytes, event);
                let wanted = promised(from, bytes, event);
                assert_eq!(found.map(|transition| transition.to), wanted, "{from:?} {event:?} {bytes:?}");
            }
        }
    }
}

#[test]
fn each_pair_stands_in_the_table_once() {
    for (at, row) in TABLE.iter().enumerate() {
        assert!(
            TABLE[..at].iter().all(|other| (other.from, other.event) != (row.from, row.event)),
            "{:?} {:?}",
            row.from,
            row.event
        );
    }
}

#[test]
fn attempts_end_with_their_verdict_and_only_then() {
    for row in TABLE {
        let is_open = matches!(
            row.from,
            Standing::PendingInline | Standing::Queued | Standing::HeldNoKey | Standing::HeldCoverage
        );
        let is_open_after = matches!(
            row.to,
            Standing::PendingInline | Standing::Queued | Standing::HeldNoKey | Standing::HeldCoverage
        );
        match row.attempts {
            Attempts::End => assert!(is_open && !is_open_after, "{row:?}"),
            Attempts::Close => assert!(is_open && !is_open_after, "{row:?}"),
            Attempts::Begin => assert!(is_open_after, "{row:?}"),
            Attempts::Keep => assert!(is_open == is_open_after, "{row:?}"),
        }
        // What is published was passed or overridden; what is blocked or deleted is published no longer.
        let is_published = matches!(row.to, Standing::Approved | Standing::Overridden);
        let is_withdrawn =
            matches!(row.to, Standing::BlockedInline | Standing::BlockedLlm | Standing::Deleted);
        assert_eq!(matches!(row.live, Live::Raise | Live::Make), is_published, "{row:?}");
        assert_eq!(row.live == Live::Drop, is_withdrawn && row.event != Event::Purge, "{row:?}");
    }
}

#[test]
fn status_and_hold_are_the_standing() {
    for standing in Standing::ALL {
        assert_eq!(Standing::of(standing.status(), standing.hold()), Some(standing));
    }
    let mut known = 0;
    for status in SubmissionStatus::ALL {
        for hold in HoldReason::ALL {
            known += usize::from(Standing::of(*status, *hold).is_some());
        }
    }
    assert_eq!(known, Standing::ALL.len(), "only what waits can be held");
}

#[test]
fn visibility_follows_from_three_facts() {
    use SubmissionStatus as S;
    for (is_archived, has_live, newest, wanted) in [
        (false, false, S::PendingInline, Visibility::Pending),
        (false, false, S::PendingLlm, Visibility::Pending),
        (false, false, S::ReviewError, Visibility::Pending),
        (false, false, S::BlockedInline, Visibility::Hidden),
        (false, false, S::BlockedLlm, Visibility::Hidden),
        (false, true, S::Approved, Visibility::Approved),
        (false, true, S::Overridden, Visibility::Approved),
        // A new version leaves the live one as it is, whatever becomes of it.
        (false, true, S::PendingLlm, Visibility::Approved),
        (false, true, S::BlockedInline, Visibility::Approved),
        (true, true, S::Approved, Visibility::Archived),
        (true, false, S::BlockedLlm, Visibility::Archived),
    ] {
        assert_eq!(visibility(is_archived, has_live, newest), wanted, "{is_archived} {has_live} {newest}");
    }
}

/// One attempt of the model: where it stands, and whether it has ended.
type Attempt = (Standing, bool);

#[derive(Clone, Debug)]
struct Submission {
    standing: Standing,
    bytes: Bytes,
    attempts: Vec<Attempt>,
    version: u32,
    /// What the last verdict or decision of a person said of publishing it.
    is_cleared: bool,
}

/// One entity with its submissions, as a store would hold it.
#[derive(Clone, Debug, Default)]
struct World {
    submissions: Vec<Submission>,
    live: Option<usize>,
    entity_version: u32,
}

/// What somebody worked out from a state that may be old by now.
#[derive(Clone, Debug)]
struct Plan {
    at: usize,
    version: u32,
    entity_version: u32,
    transition: Transition,
    live: Option<usize>,
    /// As the checks found them, or as they were.
    bytes: Bytes,
}

#[derive(Clone, Debug)]
enum Step {
    Submit,
    /// Actor, submission, event, and whether an inline check that ends could open the archive.
    Look(usize, usize, Event, bool),
    Write(usize),
}

impl World {
    /// The bytes that an event goes by.
    fn bytes(&self, at: usize, event: Event, is_opened: bool) -> Bytes {
        let kept = self.submissions[at].bytes;
        let is_check = matches!(
            event,
            Event::CheckBlocked
                | Event::CheckQueued
                | Event::CheckHeldNoKey
                | Event::CheckHeldCoverage
                | Event::CheckPassed
        );
        match (is_check && kept != Bytes::Gone, is_opened) {
            (false, _) => kept,
            (true, true) => Bytes::Opened,
            (true, false) => Bytes::Unopened,
        }
    }

    fn plan(&self, at: usize, event: Event, bytes: Bytes) -> Result<Plan, Refused> {
        let submission = &self.submissions[at];
        let transition = next(submission.standing, bytes, event)?;
        let live = live_after(transition.live, &at, self.live.as_ref());
        let (version, entity_version) = (submission.version, self.entity_version);
        Ok(Plan { at, version, entity_version, transition, live, bytes })
    }

    /// The compare-and-swap; answers whether it was made.
    fn write(&mut self, plan: &Plan) -> bool {
        let changes_entity = plan.live != self.live;
        let submission = &mut self.submissions[plan.at];
        if submission.version != plan.version || (self.entity_version != plan.entity_version) {
            return false;
        }
        let to = plan.transition.to;
        let present = submission.attempts.last_mut().expect("an attempt");
        match plan.transition.attempts {
            Attempts::Keep => {
                if !present.1 {
                    present.0 = to;
                }
            }
            Attempts::End => *present = (to, true),
            Attempts::Close => present.1 = true,
            Attempts::Begin => {
                present.1 = true;
                submission.attempts.push((to, false));
            }
        }
        match plan.transition.event {
            Event::Override | Event::CheckPassed | Event::ReviewPassed => submission.is_cleared = true,
            Event::CheckBlocked | Event::ReviewBlocked | Event::Delete => submission.is_cleared = false,
            _ => {}
        }
        submission.bytes = match plan.transition.event {
            Event::Purge | Event::Delete => Bytes::Gone,
            _ => plan.bytes,
        };
        submission.standing = to;
        submission.version += 1;
        self.live = plan.live;
        self.entity_version += u32::from(changes_entity);
        true
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Submit),
        8 => (0..3_usize, 0..3_usize, prop::sample::select(&Event::ALL[..]), any::<bool>())
            .prop_map(|(a, s, e, opened)| Step::Look(a, s, e, opened)),
        8 => (0..3_usize).prop_map(Step::Write),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Three actors look at states and write what follows from them, in any interleaving.
    #[test]
    fn no_interleaving_breaks_a_promise(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::default();
        let mut plans: [Option<Plan>; 3] = [None, None, None];
        let mut ended: Vec<Vec<Attempt>> = Vec::new();
        for step in steps {
            match step {
                Step::Submit => {
                    if world.submissions.len() < 3 {
                        world.submissions.push(Submission {
                            standing: Standing::PendingInline,
                            bytes: Bytes::Unopened,
                            attempts: vec![(Standing::PendingInline, false)],
                            version: 1,
                            is_cleared: false,
                        });
                        ended.push(Vec::new());
                    }
                }
                Step::Look(actor, at, event, is_opened) => {
                    if at < world.submissions.len() {
                        let submission = &world.submissions[at];
                        let bytes = world.bytes(at, event, is_opened);
                        let plan = world.plan(at, event, bytes);
                        let wanted = promised(submission.standing, bytes, event);
                        prop_assert_eq!(plan.as_ref().map(|plan| plan.transition.to).map_err(|e| *e), wanted);
                        plans[actor] = plan.ok();
                    }
                }
                Step::Write(actor) => {
                    let Some(plan) = plans[actor].take() else { continue };
                    let before = world.clone();
                    let is_current = before.submissions[plan.at].version == plan.version
                        && before.entity_version == plan.entity_version;
                    prop_assert_eq!(world.write(&plan), is_current, "a state that moved on is never overwritten");
                    if !is_current {
                        continue;
                    }
                    // Only these change what is published.
                    if world.live != before.live {
                        prop_assert!(plan.transition.live != Live::Keep);
                    }
                    // A new version never takes down the live one by failing.
                    if let (Some(live), None) = (before.live, world.live) {
                        prop_assert_eq!(live, plan.at);
                    }
                    // A review never puts an older version in place of a newer one.
                    if let (Some(old), Some(new)) = (before.live, world.live)
                        && plan.transition.event != Event::Override
                    {
                        prop_assert!(new >= old);
                    }
                }
            }
            for (submission, ended) in world.submissions.iter().zip(&mut ended) {
                // What an attempt was given stays.
                let now: Vec<Attempt> = submission.attempts.iter().copied().filter(|attempt| attempt.1).collect();
                prop_assert!(now.starts_with(ended), "{:?} {:?}", now, ended);
                *ended = now;
                // Only the last may be open, and it is while the submission waits.
                let open = submission.attempts.iter().rev().skip(1).filter(|attempt| !attempt.1).count();
                prop_assert_eq!(open, 0);
                let waits = matches!(submission.standing.status(), SubmissionStatus::PendingInline | SubmissionStatus::PendingLlm);
                let last = submission.attempts.last().expect("an attempt");
                prop_assert_eq!(!last.1, waits);
                if waits {
                    prop_assert_eq!(last.0, submission.standing);
                }
            }
            if let Some(live) = world.live {
                let live = &world.submissions[live];
                // What is live may be checked again meanwhile; whatever ends that takes it down or finds it whole.
                prop_assert!(live.bytes == Bytes::Opened, "what is live has its files");
                prop_assert!(live.is_cleared, "nothing blocked is live");
            }
        }
    }
}
