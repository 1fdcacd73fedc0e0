//! `IncidentService` and `portcullis incidents` over a store that a server of yesterday left behind.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portcullis::decision::{
    Caller, Category, Incident, IncidentAction, OutputStream, Severity, VerdictKind, VerdictSource,
    WorkContext,
};
use portcullis::pb::v1;
use portcullis::store::{self, KeptIncident};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;
use v1::incident_service_client::IncidentServiceClient;

use super::cli::run_in;
use super::server::{Server, Setup};

const DAY: Duration = Duration::from_secs(24 * 3_600);

type Incidents = IncidentServiceClient<tonic::transport::Channel>;

fn id(n: u32) -> String {
    format!("01970000-0000-7000-8000-{n:012}")
}

/// Number `n`, seen `age` ago.
fn incident(n: u32, rule: &str, verdict: Option<VerdictKind>, age: Duration) -> Incident {
    let now = Timestamp::from_microsecond(Timestamp::now().as_microsecond()).expect("in range");
    Incident {
        id: id(n).into(),
        session_id: "build 7".into(),
        time: now.checked_sub(age).expect("in range"),
        rule_id: rule.into(),
        category: Category::new(if rule == "test.escape" {
            "sandbox_escape"
        } else {
            "dangerous_command.deletion"
        }),
        severity: if n.is_multiple_of(2) { Severity::High } else { Severity::Critical },
        stream: OutputStream::Stderr,
        offset: 5_000_000_000,
        matched_text: "$ shred \u{2603}".to_owned(),
        excerpt: "before\n$ shred \u{2603}\nafter".into(),
        verdict,
        reason: verdict.map(|_| "It deletes what others need.".to_owned()).unwrap_or_default(),
        source: verdict.map(|_| VerdictSource::Judge),
        action: verdict.map(|verdict| match verdict {
            VerdictKind::Safe => IncidentAction::None,
            VerdictKind::Warn => IncidentAction::Warned,
            VerdictKind::Kill => IncidentAction::KillAdvised,
        }),
        latency: verdict.map(|_| Duration::from_millis(u64::from(n))),
        false_positive: false,
        false_positive_reason: String::new(),
        work: Some(Arc::new(WorkContext { goal: "tidy up".into(), ..WorkContext::default() })),
        decision_id: format!("decision-{n}").into(),
        policy_revision: "0123".into(),
        repeats: 3,
        context: Some(Arc::new(Caller { agent_id: "ada".into(), ..Caller::default() })),
        shadow: false,
    }
}

/// Leaves incidents in the store of a server that is not running.
fn leave(folder: &Path, tenant: &str, incidents: &[Incident]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let kept = incidents
        .iter()
        .map(|one| KeptIncident { tenant: tenant.into(), incident: Arc::new(one.clone()) })
        .collect();
    runtime.block_on(async {
        let stores = store::open(&store::Config::default(), &folder.join("data/portcullis.db")).await;
        stores.expect("it opens").incidents.save(kept).await.expect("kept");
    });
}

/// Five incidents of two rules, and one of another tenant.
fn five() -> Vec<Incident> {
    vec![
        incident(1, "test.shred", Some(VerdictKind::Kill), DAY / 24),
        incident(2, "test.shred", Some(VerdictKind::Safe), DAY * 2),
        incident(3, "test.escape", None, DAY * 3),
        incident(4, "test.shred", Some(VerdictKind::Kill), DAY * 10),
        incident(5, "test.escape", Some(VerdictKind::Warn), DAY * 40),
    ]
}

fn setup() -> Setup {
    let setup = Setup::new();
    let folder = setup.folder().to_owned();
    let write = std::thread::spawn(move || {
        leave(&folder, "", &five());
        leave(&folder, "acme", &[incident(6, "test.shred", Some(VerdictKind::Kill), DAY)]);
    });
    write.join().expect("written");
    setup
}

async fn client(server: &Server) -> Incidents {
    IncidentServiceClient::new(server.channel().await).max_decoding_message_size(usize::MAX)
}

fn field(status: &Status) -> String {
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let bad = status.get_details_bad_request().expect("details");
    bad.field_violations.into_iter().map(|violation| violation.field).collect::<Vec<_>>().join(", ")
}

fn numbers(incidents: &[v1::Incident]) -> Vec<u32> {
    incidents.iter().map(|one| one.id[one.id.len() - 4..].parse().expect("a number")).collect()
}

fn admin<T>(server: &Server, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let token = format!("Bearer {}", server.admin_token());
    request.metadata_mut().insert("authorization", token.parse().expect("ASCII"));
    request
}

#[tokio::test]
async fn every_field_is_told_and_others_are_not_found() {
    let server = setup().start();
    let mut incidents = client(&server).await;
    let get = |id: String| v1::GetIncidentRequest { incident_id: id };
    let one = incidents.get_incident(get(id(1))).await.expect("there").into_inner().incident.expect("it");
    let kept = &five()[0];
    assert_eq!((one.session_id.as_str(), one.rule_id.as_str()), ("build 7", "test.shred"));
    assert_eq!((one.severity(), one.stream()), (v1::Severity::Critical, v1::OutputStream::Stderr));
    assert_eq!((one.verdict(), one.source()), (v1::VerdictKind::Kill, v1::VerdictSource::Judge));
    assert_eq!((one.action(), one.offset, one.repeats), (v1::IncidentAction::KillAdvised, 5_000_000_000, 3));
    assert_eq!((one.matched_text.as_str(), one.excerpt.as_str()), (&*kept.matched_text, &*kept.excerpt));
    assert_eq!(one.latency, Some(Duration::from_millis(1).into()));
    assert_eq!(one.work.expect("it had one").goal, "tidy up");
    assert_eq!(one.context.expect("it had one").agent_id, "ada");
    assert_eq!((one.decision_id.as_str(), one.policy_revision.as_str()), ("decision-1", "0123"));
    let none = incidents.get_incident(get(id(3))).await.expect("there").into_inner().incident.expect("it");
    assert_eq!((none.verdict, none.source, none.action, none.latency), (0, 0, 0, None));
    for other in [id(6), id(9), "x".repeat(100_000), "' OR ''='".to_owned()] {
        let status = incidents.get_incident(get(other)).await.expect_err("not found");
        assert_eq!(status.code(), Code::NotFound, "{status:?}");
    }
    assert_eq!(field(&incidents.get_incident(get(String::new())).await.expect_err("empty")), "incident_id");
}

#[tokio::test]
async fn lists_are_filtered_ordered_and_paged() {
    let server = setup().start();
    let mut incidents = client(&server).await;
    let base = v1::ListIncidentsRequest::default;
    for (request, wanted) in [
        (base(), vec![1, 2, 3, 4, 5]),
        (v1::ListIncidentsRequest { order_by: "time".into(), ..base() }, vec![5, 4, 3, 2, 1]),
        (v1::ListIncidentsRequest { order_by: "severity".into(), ..base() }, vec![2, 4, 1, 3, 5]),
        (v1::ListIncidentsRequest { order_by: "latency desc".into(), ..base() }, vec![5, 4, 2, 1, 3]),
        (v1::ListIncidentsRequest { order_by: "rule_id".into(), ..base() }, vec![3, 5, 1, 2, 4]),
        (v1::ListIncidentsRequest { category: "dangerous_command".into(), ..base() }, vec![1, 2, 4]),
        (v1::ListIncidentsRequest { verdict: v1::VerdictKind::Kill.into(), ..base() }, vec![1, 4]),
        (v1::ListIncidentsRequest { severity_min: v1::Severity::Critical.into(), ..base() }, vec![1, 3, 5]),
        (v1::ListIncidentsRequest { agent_id: "grace".into(), ..base() }, vec![]),
    ] {
        let answer = incidents.list_incidents(request.clone()).await.expect("listed").into_inner();
        assert_eq!(numbers(&answer.incidents), wanted, "{request:?}");
        assert_eq!((answer.total, answer.next_page_token.as_str()), (wanted.len() as u64, ""));
    }
    let mut request = v1::ListIncidentsRequest { page_size: 2, ..base() };
    let mut joined = Vec::new();
    let mut tokens = Vec::new();
    loop {
        let page = incidents.list_incidents(request.clone()).await.expect("listed").into_inner();
        assert_eq!(page.total, 5);
        joined.extend(numbers(&page.incidents));
        if page.next_page_token.is_empty() {
            break;
        }
        tokens.push(page.next_page_token.clone());
        request.page_token = page.next_page_token;
    }
    assert_eq!((joined, tokens.len()), (vec![1, 2, 3, 4, 5], 2));
    let token = tokens[0].clone();
    let with =
        |request: v1::ListIncidentsRequest| v1::ListIncidentsRequest { page_token: token.clone(), ..request };
    for (wrong, wanted) in [
        (v1::ListIncidentsRequest { page_token: "x".into(), ..base() }, "page_token"),
        (v1::ListIncidentsRequest { page_token: format!("{token}0"), ..base() }, "page_token"),
        (with(v1::ListIncidentsRequest { rule_id: "test.shred".into(), ..base() }), "page_token"),
        (with(v1::ListIncidentsRequest { order_by: "time".into(), ..base() }), "page_token"),
        (with(v1::ListIncidentsRequest { false_positive: Some(false), ..base() }), "page_token"),
        (v1::ListIncidentsRequest { order_by: "id".into(), ..base() }, "order_by"),
        (v1::ListIncidentsRequest { order_by: "time asc".into(), ..base() }, "order_by"),
        (v1::ListIncidentsRequest { severity_min: 9, ..base() }, "severity_min"),
        (v1::ListIncidentsRequest { verdict: -1, ..base() }, "verdict"),
        (v1::ListIncidentsRequest { source: 99, ..base() }, "source"),
        (v1::ListIncidentsRequest { action: 99, ..base() }, "action"),
        (
            v1::ListIncidentsRequest {
                start_time: Some(pbjson_types::Timestamp { seconds: i64::MAX, nanos: 0 }),
                ..base()
            },
            "start_time",
        ),
        (
            v1::ListIncidentsRequest {
                end_time: Some(pbjson_types::Timestamp { seconds: 0, nanos: -1 }),
                ..base()
            },
            "end_time",
        ),
    ] {
        let status = incidents.list_incidents(wrong.clone()).await.expect_err("refused");
        assert_eq!(field(&status), wanted, "{wrong:?}");
    }
    // The order that is meant when none is named is the same list.
    incidents
        .list_incidents(with(v1::ListIncidentsRequest { order_by: "time desc".into(), ..base() }))
        .await
        .expect("the same");
}

#[tokio::test]
async fn marking_needs_the_admin_and_is_kept() {
    let server = setup().start();
    let mut incidents = client(&server).await;
    let mark = |n: u32, undo: bool| v1::MarkFalsePositiveRequest {
        incident_id: id(n),
        reason: "A test of ours.".into(),
        undo,
    };
    let refused = incidents.mark_false_positive(mark(1, false)).await.expect_err("anybody");
    assert_eq!(refused.code(), Code::PermissionDenied);
    for _ in 0..2 {
        let marked = incidents.mark_false_positive(admin(&server, mark(1, false))).await.expect("marked");
        let marked = marked.into_inner().incident.expect("it");
        assert!(marked.false_positive && marked.false_positive_reason == "A test of ours.", "{marked:?}");
    }
    let other = incidents.mark_false_positive(admin(&server, mark(6, false))).await.expect_err("not ours");
    assert_eq!(other.code(), Code::NotFound);
    let empty = v1::MarkFalsePositiveRequest::default();
    let empty = incidents.mark_false_positive(admin(&server, empty)).await.expect_err("empty");
    assert_eq!(field(&empty), "incident_id");
    let marked = v1::ListIncidentsRequest { false_positive: Some(true), ..Default::default() };
    let server = server.into_setup().start();
    let mut incidents = client(&server).await;
    let listed = incidents.list_incidents(marked.clone()).await.expect("listed").into_inner();
    assert_eq!(numbers(&listed.incidents), [1], "a restart keeps it");
    let unmarked = incidents.mark_false_positive(admin(&server, mark(1, true))).await.expect("unmarked");
    let unmarked = unmarked.into_inner().incident.expect("it");
    assert!(!unmarked.false_positive && unmarked.false_positive_reason.is_empty(), "{unmarked:?}");
    assert_eq!(incidents.list_incidents(marked).await.expect("listed").into_inner().total, 0);
}

#[tokio::test]
async fn stats_are_told_rule_by_rule() {
    let server = setup().start();
    let mut incidents = client(&server).await;
    let mark = v1::MarkFalsePositiveRequest { incident_id: id(2), ..Default::default() };
    incidents.mark_false_positive(admin(&server, mark)).await.expect("marked");
    let all = v1::GetIncidentStatsRequest::default();
    let stats = incidents.get_incident_stats(all).await.expect("counted").into_inner();
    let rules: Vec<&str> = stats.rules.iter().map(|rule| rule.rule_id.as_str()).collect();
    assert_eq!(rules, ["test.escape", "test.shred"], "incident 5 is older than 30 days");
    let shred = &stats.rules[1];
    assert_eq!(shred.category, "dangerous_command.deletion");
    let (week, month) = (shred.last_7_days.expect("it"), shred.last_30_days.expect("it"));
    assert_eq!((week.incidents, week.false_positives, week.false_positive_rate), (2, 1, 0.5));
    assert_eq!((week.safe, week.warn, week.kill), (1, 0, 1));
    assert_eq!(week.mean_latency, Some(Duration::from_micros(1_500).into()));
    assert_eq!((month.incidents, month.kill), (3, 2));
    let whole = stats.last_7_days.expect("it");
    assert_eq!((whole.incidents, whole.kill), (3, 1));
    let escape = stats.rules[0].last_7_days.expect("it");
    assert_eq!((escape.incidents, escape.mean_latency), (1, None));
    let one = v1::GetIncidentStatsRequest { category: "sandbox_escape".into(), ..Default::default() };
    let one = incidents.get_incident_stats(one).await.expect("counted").into_inner();
    assert_eq!((one.rules.len(), one.last_30_days.expect("it").incidents), (1, 1));
}

#[tokio::test]
async fn what_is_too_old_is_deleted_at_the_start() {
    let setup = setup().settings("incidents:\n  retention_days: 9\n");
    let server = setup.start();
    server.wait_for_log(|line| line.contains("old incidents deleted"));
    let listed = client(&server).await.list_incidents(v1::ListIncidentsRequest::default()).await;
    assert_eq!(numbers(&listed.expect("listed").into_inner().incidents), [1, 2, 3]);
}

#[tokio::test]
async fn the_command_line_looks_here_or_at_a_server() {
    let server = setup().start();
    let url = format!("http://{}", server.grpc);
    let folder = server.data().parent().expect("it has one").to_owned();
    let one = id(1);
    for place in [vec![], vec!["--server", url.as_str()]] {
        let run = |arguments: &[&str]| {
            let arguments: Vec<&str> = ["incidents"].iter().chain(arguments).chain(&place).copied().collect();
            run_in(&folder, &arguments, b"")
        };
        let listed = run(&["list"]);
        assert_eq!(listed.code, 0, "{}", listed.err);
        assert!(listed.out.contains("test.shred") && listed.out.ends_with("5 incidents\n"), "{}", listed.out);
        let killed = run(&["list", "--verdict", "kill", "--since", "24h", "--json"]).json();
        assert_eq!((&killed["total"], &killed["incidents"][0]["id"]), (&"1".into(), &one.as_str().into()));
        let few = run(&["list", "--limit", "2", "--order-by", "time"]);
        assert!(few.out.ends_with("2 of 5 incidents\n"), "{}", few.out);
        let shown = run(&["show", &one]);
        assert!(shown.out.starts_with("KILL test.shred\n") && shown.out.contains("tidy up"), "{}", shown.out);
        assert_eq!(run(&["show", &one, "--json"]).json()["ruleId"], "test.shred");
        let marked = run(&["mark", &one, "--reason", "ours"]);
        assert_eq!(
            (marked.code, marked.out),
            (0, format!("{one}: marked as a false positive\n")),
            "{}",
            marked.err
        );
        assert!(run(&["show", &one]).out.contains("yes: ours"));
        let told = run(&["mark", &one, "--reason", "seen by mara@tidewater.org herself"]);
        assert_eq!(told.code, 0, "{}", told.err);
        let shown = run(&["show", &one]).out;
        assert!(shown.contains("yes: seen by") && !shown.contains("tidewater"), "{shown}");
        let stats = run(&["stats", "--json"]).json();
        assert_eq!(stats["last7Days"]["falsePositives"], "1");
        assert!(run(&["stats"]).out.contains("all rules"));
        assert_eq!(run(&["unmark", &one]).code, 0);
        for (wrong, code) in [
            (vec!["show", "none"], 65),
            (vec!["show", ""], 65),
            (vec!["mark", &id(6)], 65),
            (vec!["list", "--verdict", "maybe"], 64),
            (vec!["list", "--since", "yesterday"], 64),
            (vec!["list", "--limit", "0"], 64),
            (vec!["list", "--order-by", "id"], 65),
        ] {
            let ran = run(&wrong);
            assert_eq!(ran.code, code, "{wrong:?}: {}", ran.err);
            assert!(ran.err.starts_with("portcullis: "), "{wrong:?}: {}", ran.err);
        }
    }
    let elsewhere = tempfile::tempdir().expect("a folder");
    let ran = run_in(elsewhere.path(), &["incidents", "list"], b"");
    assert_eq!(ran.code, 78, "{}", ran.err);
    assert!(ran.err.contains("--server"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(elsewhere.path()).expect("a folder").count(), 0, "nothing is left behind");
}
