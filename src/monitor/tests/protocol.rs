//! How sessions begin, go on and end.

use super::*;

fn chunk(seq: u64) -> Event<'static> {
    Event::Chunk { stream: OutputStream::Stderr, data: b"x\n", seq }
}

#[test]
fn a_session_runs_from_attach_to_summary() {
    let mut driven = Driven::plain();
    assert!(
        matches!(&driven.effects[..], [Effect::Attached { policy_revision, .. }] if &**policy_revision == "r1")
    );
    driven.out("one\n").on(Event::More { stream: OutputStream::Stdout, data: b"two\n" }).out("").end();
    let summary = driven.summary().expect("a summary");
    assert_eq!((summary.bytes, summary.chunks, summary.incidents_total, summary.worst), (8, 2, 0, None));
    assert_eq!(driven.ending(), Some(&Ok(())));
    let count = driven.effects.len();
    driven.out("three\n").on(Event::Attach).on(Event::Timer);
    assert_eq!(driven.effects.len(), count, "an ended session is silent");
    assert_eq!(driven.session.next_deadline(), None);
}

#[test]
fn closing_without_detach_means_the_same() {
    let mut driven = Driven::plain();
    driven.out("a").on(Event::Closed);
    assert_eq!(driven.ending(), Some(&Ok(())));
}

#[test]
fn a_client_that_detaches_and_does_not_close_gets_its_summary_too() {
    let mut driven = Driven::plain();
    driven.on(Event::Detach { exit_code: None });
    assert_eq!(driven.summary(), None);
    driven.until(10_000);
    assert_eq!(driven.ending(), Some(&Ok(())));
}

#[test]
fn acknowledgements_are_given_where_they_are_wanted() {
    let mut effects = Vec::new();
    let attachment = Attachment { acks: true, ..Attachment::default() };
    let ids = Box::new(Counting(0));
    let mut session = Session::attach(attachment, plan(""), Limits::default(), ids, &mut effects);
    for seq in 1..=3 {
        session.on(chunk(seq), at(0), &mut effects);
    }
    let acks: Vec<u64> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Ack { seq, stream: OutputStream::Stderr } => Some(*seq),
            _ => None,
        })
        .collect();
    assert_eq!(acks, [1, 2, 3]);
}

#[test]
fn what_no_client_may_do_ends_the_session() {
    let detach = || Event::Detach { exit_code: None };
    let cases: Vec<(Vec<Event<'_>>, SessionError)> = vec![
        (vec![Event::Attach], SessionError::AlreadyAttached),
        (vec![detach(), Event::Attach], SessionError::AlreadyAttached),
        (vec![detach(), chunk(0)], SessionError::Detached),
        (vec![detach(), detach()], SessionError::Detached),
        (vec![chunk(2)], SessionError::BadSeq { expected: 1, found: 2 }),
        (vec![chunk(1), chunk(3)], SessionError::BadSeq { expected: 2, found: 3 }),
        (vec![chunk(1), chunk(1)], SessionError::BadSeq { expected: 2, found: 1 }),
        (vec![chunk(1), chunk(0)], SessionError::BadSeq { expected: 2, found: 0 }),
        (vec![chunk(0), chunk(1)], SessionError::BadSeq { expected: 0, found: 1 }),
        (vec![Event::Idle], SessionError::Idle),
        (vec![Event::Draining], SessionError::Draining),
    ];
    for (events, error) in cases {
        let told = format!("{events:?}");
        let mut driven = Driven::plain();
        for event in events {
            driven.on(event);
        }
        assert_eq!(driven.ending(), Some(&Err(error)), "{told}");
    }
}

#[test]
fn memory_stays_small_whatever_arrives() {
    let idle = Driven::plain();
    assert!(idle.session.memory() < 4 * 1024, "{}", idle.session.memory());
    let line = "an ordinary line of a build, neither short nor long, with some words in it\n";
    let floods: Vec<(&str, String)> = vec![
        ("lines", line.repeat(4_000)),
        ("an endless line", "x".repeat(400_000)),
        ("an endless title", format!("\x1b]0;{}", "y".repeat(400_000))),
        ("an endless sequence", format!("\x1b[{}", "1;".repeat(200_000))),
        ("wide characters", "☃".repeat(100_000)),
        ("carriage returns", "abc\rde\r".repeat(30_000)),
        ("colours", "\x1b[31ma\x1b[0m".repeat(30_000)),
        ("far columns", "\x1b[999999Cx".repeat(10_000)),
        ("inserts", "ab\r\x1b[99999@".repeat(5_000)),
        ("saved cursors", "a\x1b7\x1b[1;1Hb\x1b8".repeat(20_000)),
        ("bytes that are no text", "\u{80}\u{ff}".repeat(50_000)),
    ];
    for (name, flood) in floods {
        let mut driven = Driven::plain();
        driven.out(line);
        for part in flood.as_bytes().chunks(8_192) {
            driven.on(Event::Chunk { stream: OutputStream::Stdout, data: part, seq: 0 });
        }
        let memory = driven.session.memory();
        assert!(memory < 96 * 1024, "{name}: {memory}");
        driven.out("\n").out(line);
        let memory = driven.session.memory();
        assert!(memory < 32 * 1024, "{name}, when it is over: {memory}");
    }
}
