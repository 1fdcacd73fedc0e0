//! `StreamMonitor`: the protocol, and what a client can do wrong in it.

use std::time::Duration;

use portcullis::pb::v1;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;
use v1::OutputStream::{Stderr, Stdout};
use v1::stream_monitor_request::Kind as Asked;
use v1::stream_monitor_response::Kind as Answered;

use super::metrics::{deltas, scrape};
use super::monitoring::{Session, chunk};
use super::server::{PATIENCE, Server, Setup, eventually};

fn attach() -> v1::Attach {
    v1::Attach::default()
}

fn field(status: &Status) -> String {
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let bad = status.get_details_bad_request().expect("details");
    bad.field_violations.into_iter().map(|violation| violation.field).collect::<Vec<_>>().join(", ")
}

fn precondition(status: &Status) -> String {
    assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
    let failure = status.get_details_precondition_failure().expect("details");
    failure.violations.into_iter().map(|violation| violation.r#type).collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn a_session_begins_with_attached_and_ends_with_a_summary() {
    let server = Server::shared();
    let mut client = server.client().await;
    let named = v1::Attach { session_id: "build 7".into(), acks: true, ..attach() };
    let mut session = Session::attach(&mut client, named).await;
    session.chunk(Stdout, b"Compiling\n", 1).await.chunk(Stderr, b"warning: unused\n", 2).await;
    session.chunk(Stdout, b"", 3).await.chunk(Stdout, "☃".as_bytes(), 4).await.detach().await;
    let heard = session.end().await;
    assert!(heard.error.is_none(), "{heard:?}");
    let Some(Answered::Attached(attached)) = heard.said.first() else { panic!("{heard:?}") };
    assert_eq!(attached.session_id, "build 7");
    assert!(!attached.policy_revision.is_empty());
    let summary = heard.summary();
    assert_eq!((summary.bytes, summary.chunks, summary.incidents_total), (29, 4, 0));
    assert_eq!(summary.worst(), v1::VerdictKind::Safe);
    assert_eq!(summary.policy_revision, attached.policy_revision);
    let acks: Vec<u64> = heard
        .said
        .iter()
        .filter_map(|kind| if let Answered::Ack(ack) = kind { Some(ack.seq) } else { None })
        .collect();
    assert_eq!(acks.last(), Some(&4), "the last chunk is acknowledged");
    assert!(acks.is_sorted(), "{acks:?}");
}

#[tokio::test]
async fn closing_means_detaching_and_ids_are_made_where_none_is_given() {
    let server = Server::shared();
    let mut client = server.client().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let mut session = Session::attach(&mut client, attach()).await;
        session.chunk(Stdout, b"x", 0).await.chunk(Stdout, b"y", 0).await.close();
        let heard = session.end().await;
        assert!(heard.error.is_none(), "{heard:?}");
        assert_eq!(heard.summary().bytes, 2);
        assert!(!heard.said.iter().any(|kind| matches!(kind, Answered::Ack(_))), "none was asked for");
        let Some(Answered::Attached(attached)) = heard.said.first() else { panic!("{heard:?}") };
        assert_eq!(attached.session_id.as_bytes()[14], b'7', "a UUIDv7: {}", attached.session_id);
        ids.push(attached.session_id.clone());
    }
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn a_summary_comes_without_waiting_for_the_client_to_close() {
    let server = Server::shared();
    let mut session = Session::attach(&mut server.client().await, attach()).await;
    session.say(Asked::Detach(v1::Detach::default())).await;
    let heard = session.end().await;
    assert!(heard.error.is_none(), "{heard:?}");
    assert_eq!(heard.summary().chunks, 0);
}

#[tokio::test]
async fn what_does_not_fit_the_session_is_a_precondition() {
    let server = Server::shared();
    let mut client = server.client().await;
    let detach = || Asked::Detach(v1::Detach::default());
    let again = || Asked::Attach(attach());
    let text = || chunk(Stdout, b"x", 0);
    for (said, wanted, has_summary) in [
        (vec![text()], "NOT_ATTACHED", false),
        (vec![detach()], "NOT_ATTACHED", false),
        (vec![], "NOT_ATTACHED", false),
        (vec![again(), again()], "ALREADY_ATTACHED", true),
        (vec![again(), text(), again()], "ALREADY_ATTACHED", true),
        (vec![again(), detach(), again()], "ALREADY_ATTACHED", true),
        (vec![again(), detach(), text()], "DETACHED", true),
        (vec![again(), detach(), detach()], "DETACHED", true),
    ] {
        let mut session = Session::open(&mut client).await;
        for kind in said.clone() {
            session.say(kind).await;
        }
        session.close();
        let heard = session.end().await;
        let error = heard.error.as_ref().unwrap_or_else(|| panic!("{said:?}: {heard:?}"));
        assert_eq!(precondition(error), wanted, "{said:?}");
        let last = heard.said.last();
        assert_eq!(matches!(last, Some(Answered::Summary(_))), has_summary, "{said:?}: {heard:?}");
    }
}

#[tokio::test]
async fn a_wrong_field_is_named() {
    let server = Server::shared();
    let mut client = server.client().await;
    let first = |attach: v1::Attach| vec![Some(Asked::Attach(attach))];
    let then = |kind: Option<Asked>| vec![Some(Asked::Attach(attach())), kind];
    let chunks = |seqs: &[u64]| {
        let chunks = seqs.iter().map(|seq| Some(chunk(Stdout, b"x", *seq)));
        std::iter::once(Some(Asked::Attach(attach()))).chain(chunks).collect::<Vec<_>>()
    };
    let long = "x".repeat(70_000);
    let work = v1::WorkContext { goal: long.clone(), ..Default::default() };
    for (said, wanted) in [
        (vec![None], "kind"),
        (then(None), "kind"),
        (then(Some(chunk(v1::OutputStream::Unspecified, b"x", 0))), "chunk.stream"),
        (then(Some(Asked::Chunk(v1::Chunk { stream: 9, ..Default::default() }))), "chunk.stream"),
        (first(v1::Attach { policy: "none".into(), ..attach() }), "attach.policy"),
        (first(v1::Attach { session_id: long[..257].into(), ..attach() }), "attach.session_id"),
        (first(v1::Attach { work: Some(work), ..attach() }), "attach"),
        (chunks(&[2]), "chunk.seq"),
        (chunks(&[1, 3]), "chunk.seq"),
        (chunks(&[1, 1]), "chunk.seq"),
        (chunks(&[1, 2, 0]), "chunk.seq"),
        (chunks(&[0, 1]), "chunk.seq"),
    ] {
        let mut session = Session::open(&mut client).await;
        for kind in said.clone() {
            session.say(kind).await;
        }
        session.close();
        let heard = session.end().await;
        let error = heard.error.as_ref().unwrap_or_else(|| panic!("{wanted}: {heard:?}"));
        assert_eq!(field(error), wanted, "{error:?}");
    }
}

#[tokio::test]
async fn a_chunk_over_the_limit_ends_the_session_with_its_numbers() {
    let server = Server::shared();
    let mut client = server.client().await;
    for size in [5 << 20, 10 << 20, 20 << 20] {
        let mut session = Session::attach(&mut client, attach()).await;
        session.chunk(Stdout, b"before", 1).await;
        session.chunk(Stdout, &vec![b'x'; size], 2).await;
        let heard = session.end().await;
        let error = heard.error.as_ref().expect("refused");
        assert_eq!(error.code(), Code::ResourceExhausted, "{error:?}");
        let info = error.get_details_error_info().expect("details");
        let number = |name: &str| info.metadata[name].parse::<usize>().expect("a number");
        assert_eq!(number("limit_bytes"), 4 << 20);
        assert!(number("found_bytes") >= size, "{info:?}");
        assert_eq!(heard.summary().bytes, 6, "what came before was scanned");
    }
}

#[tokio::test]
async fn a_long_chunk_within_the_limit_is_scanned_whole() {
    let server = Server::shared();
    let mut session =
        Session::attach(&mut server.client().await, v1::Attach { acks: true, ..attach() }).await;
    let data = b"all is well in line after line\n".repeat(100_000);
    session.chunk(Stdout, &data, 1).await.detach().await;
    let heard = session.end().await;
    assert!(heard.error.is_none(), "{:?}", heard.error);
    assert_eq!((heard.summary().bytes, heard.summary().chunks), (data.len() as u64, 1));
}

#[tokio::test]
async fn a_client_that_stalls_is_told_when_the_server_stops_waiting() {
    let server = Setup::new().settings("streams:\n  idle_timeout: 300ms\n").start();
    let mut client = server.client().await;
    let silent = Session::open(&mut client).await;
    let mut stalled = Session::attach(&mut client, attach()).await;
    stalled.chunk(Stdout, b"x", 1).await;
    for (session, has_summary) in [(silent, false), (stalled, true)] {
        let heard = session.end().await;
        let error = heard.error.as_ref().expect("told");
        assert_eq!(error.code(), Code::DeadlineExceeded, "{error:?}");
        assert!(error.message().contains("streams.idle_timeout"), "{error:?}");
        assert_eq!(matches!(heard.said.last(), Some(Answered::Summary(_))), has_summary, "{heard:?}");
    }
}

#[tokio::test]
async fn the_deadline_of_the_call_ends_the_session() {
    let server = Server::shared();
    let (requests, receiver) = tokio::sync::mpsc::channel(8);
    let mut request = Request::new(tokio_stream::wrappers::ReceiverStream::new(receiver));
    request.set_timeout(Duration::from_millis(400));
    let kind = Some(Asked::Attach(attach()));
    requests.send(v1::StreamMonitorRequest { kind }).await.expect("open");
    let mut answers =
        server.client().await.stream_monitor(request).await.expect("the stream opens").into_inner();
    let mut said = Vec::new();
    let error = loop {
        match answers.message().await {
            Ok(Some(message)) => said.push(message.kind.expect("one kind")),
            Ok(None) => panic!("it ended well: {said:?}"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error:?}");
    assert!(matches!(said.last(), Some(Answered::Summary(_))), "{said:?}");
}

#[tokio::test]
async fn a_draining_server_tells_its_streams() {
    let mut server = Server::start();
    let mut client = server.client().await;
    let mut session = Session::attach(&mut client, attach()).await;
    session.chunk(Stdout, b"still running\n", 1).await;
    assert!(matches!(session.hear().await, Ok(Some(Answered::Attached(_)))));
    // The chunk is read before the signal comes.
    eventually(PATIENCE, "the chunk is scanned", || async {
        let bytes = scrape(&server).await;
        bytes
            .get(r#"portcullis_monitor_bytes_total{stream="stdout"}"#)
            .filter(|bytes| **bytes > 0.0)
            .map(|_| ())
    })
    .await;
    server.signal("TERM");
    let heard = session.end().await;
    let error = heard.error.as_ref().expect("told");
    assert_eq!(error.code(), Code::Unavailable, "{error:?}");
    assert_eq!(error.get_details_error_info().expect("details").reason, "DRAINING");
    assert_eq!(heard.summary().bytes, 14);
    assert!(server.wait().success());
}

#[tokio::test]
async fn sessions_beyond_the_limit_are_refused_and_places_come_back() {
    let server = Setup::new().settings("streams:\n  sessions_max: 2\n").start();
    let mut client = server.client().await;
    let one = Session::attach(&mut client, attach()).await;
    let mut two = Session::attach(&mut client, attach()).await;
    assert!(matches!(two.hear().await, Ok(Some(Answered::Attached(_)))));
    let heard = Session::attach(&mut client, attach()).await.end().await;
    let error = heard.error.as_ref().expect("refused");
    assert_eq!(error.code(), Code::Unavailable, "{error:?}");
    assert!(error.get_details_retry_info().is_some(), "{error:?}");
    // A client that just goes frees its place as well.
    drop(one);
    eventually(PATIENCE, "the place is free again", || async {
        let mut client = server.client().await;
        let mut session = Session::attach(&mut client, attach()).await;
        session.close();
        session.end().await.error.is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn sessions_are_counted() {
    let server = Server::start();
    let mut client = server.client().await;
    scrape(&server).await;
    let before = scrape(&server).await;
    let mut open = Session::attach(&mut client, attach()).await;
    assert!(matches!(open.hear().await, Ok(Some(Answered::Attached(_)))));
    open.chunk(Stdout, b"12345", 1).await.chunk(Stderr, b"123", 2).await;
    let mut gone = Session::attach(&mut client, attach()).await;
    assert!(matches!(gone.hear().await, Ok(Some(Answered::Attached(_)))));
    let both = scrape(&server).await;
    assert_eq!(both["portcullis_monitor_streams"], 2.0);
    drop(gone);
    open.detach().await;
    open.end().await;
    let mut wrong = Session::open(&mut client).await;
    wrong.chunk(Stdout, b"x", 1).await;
    wrong.end().await;
    let after = eventually(PATIENCE, "no session is open", || async {
        let after = scrape(&server).await;
        (after["portcullis_monitor_streams"] == 0.0).then_some(after)
    })
    .await;
    let changed = deltas(&before, &after);
    let wanted = [
        (r#"portcullis_monitor_bytes_total{stream="stderr"}"#, 3.0),
        (r#"portcullis_monitor_bytes_total{stream="stdout"}"#, 5.0),
        (r#"portcullis_requests_total{rpc="StreamMonitor",decision="ALLOW",code="OK"}"#, 2.0),
        (r#"portcullis_requests_total{rpc="StreamMonitor",decision="NONE",code="FAILED_PRECONDITION"}"#, 1.0),
        (r#"portcullis_scanned_bytes_total{rpc="StreamMonitor"}"#, 8.0),
    ];
    let wanted: Vec<(String, f64)> = wanted.iter().map(|(name, by)| ((*name).to_owned(), *by)).collect();
    assert_eq!(changed.into_iter().collect::<Vec<_>>(), wanted);
}
