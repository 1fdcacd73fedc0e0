use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use serde_json::Value;

use super::sink::WriteError;
use super::*;
use crate::decision::{
    Category, Decision, FailMode, Finding, Reason, RiskLevel, Severity, SpanRef, Unjudged,
};

const LONG: Duration = Duration::from_secs(20);

fn finding() -> Finding {
    Finding {
        plugin: "secrets".into(),
        plugin_version: "1".into(),
        rule_id: "secrets.rule".into(),
        category: Category::new("secrets.provider"),
        severity: Severity::Critical,
        score: 1.0,
        description: "a description that is not audited".into(),
        recommendation: "".into(),
        span: SpanRef { message_index: 2, path: "/text".into(), start: 3, end: 9 },
        evasions: vec!["base64"],
        shadow: false,
        suppressed: true,
    }
}

fn record(decision_id: &str) -> AuditRecord<'_> {
    AuditRecord {
        time: "2026-01-02T03:04:05.678912Z".parse().expect("a time"),
        decision_id,
        policy: "default",
        policy_revision: "r1",
        rpc: "CheckMessages",
        decision: Decision::Allow,
        risk_level: RiskLevel::Safe,
        risk_score: 0.0,
        caller: Caller::default(),
        findings: &[],
        findings_total: 0,
        unjudged: &[],
        interception: None,
        incident: None,
        bundle: None,
        elapsed_us: 80,
    }
}

/// Hooks that count, and their counts: dropped records.
fn counting() -> (Hooks, Arc<AtomicU64>) {
    let dropped = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&dropped);
    let on_dropped: OnDropped = Box::new(move |lost, _| {
        count.fetch_add(lost, Ordering::SeqCst);
    });
    (Hooks { on_dropped, ..Hooks::silent() }, dropped)
}

fn memory() -> (AuditLog, MemorySink) {
    let sink = MemorySink::default();
    let log = AuditLog::with_sink(Box::new(sink.clone()), 1 << 20, Hooks::silent()).expect("a thread");
    (log, sink)
}

fn ids(lines: &[String]) -> Vec<String> {
    let id = |line: &String| {
        let record: Value = serde_json::from_str(line).expect("a line is JSON");
        record["decision_id"].as_str().expect("it has an id").to_owned()
    };
    lines.iter().map(id).collect()
}

#[test]
fn a_record_is_one_line_of_json() {
    let (log, sink) = memory();
    let unjudged = [Unjudged {
        plugin: "llama_guard".into(),
        reason: Reason::Timeout,
        detail: "a detail that is not audited".to_owned(),
        fail_mode: FailMode::Open,
        shadow: false,
    }];
    let found = finding();
    let findings = [&found];
    let long = "é".repeat(200);
    log.record(|| AuditRecord {
        decision: Decision::Block,
        risk_level: RiskLevel::Critical,
        risk_score: 1.0,
        caller: Caller {
            roles: &["agent"],
            agent_id: (&*long).into(),
            request_id: "a\nb\u{0}".into(),
            ..Caller::default()
        },
        findings: &findings,
        findings_total: 1,
        unjudged: &unjudged,
        ..record("id-1")
    });
    assert!(log.flush(LONG));
    let lines = sink.lines();
    assert_eq!(lines.len(), 1);
    let want = serde_json::json!({
        "time": "2026-01-02T03:04:05.678Z",
        "decision_id": "id-1",
        "policy": "default",
        "policy_revision": "r1",
        "rpc": "CheckMessages",
        "decision": "BLOCK",
        "risk_level": "CRITICAL",
        "risk_score": 1.0,
        "caller": { "roles": ["agent"], "agent_id": "é".repeat(128), "request_id": "a\nb\u{0}" },
        "findings": [{
            "plugin": "secrets", "rule_id": "secrets.rule", "category": "secrets.provider", "severity": "critical",
            "score": 1.0, "message_index": 2, "path": "/text", "start": 3, "end": 9, "evasions": ["base64"],
            "shadow": false, "suppressed": true,
        }],
        "findings_total": 1,
        "unjudged": [{ "plugin": "llama_guard", "reason": "timeout", "failed_open": true }],
        "elapsed_us": 80,
    });
    assert_eq!(serde_json::from_str::<Value>(&lines[0]).expect("JSON"), want);
}

#[test]
fn a_hundred_findings_are_written_and_all_are_counted() {
    let (log, sink) = memory();
    let found = finding();
    let findings = vec![&found; 250];
    log.record(|| AuditRecord { findings: &findings, findings_total: findings.len(), ..record("many") });
    assert!(log.flush(LONG));
    let line: Value = serde_json::from_str(&sink.lines()[0]).expect("JSON");
    assert_eq!(line["findings"].as_array().map(Vec::len), Some(100));
    assert_eq!(line["findings_total"], 250);
}

#[test]
fn every_record_of_every_thread_is_written_once() {
    let (log, sink) = memory();
    let name = |thread: usize, n: usize| format!("{thread}-{n}");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let log = &log;
            scope.spawn(move || {
                for n in 0..250 {
                    let id = name(thread, n);
                    log.record(|| record(&id));
                }
            });
        }
    });
    drop(log);
    let found: BTreeSet<String> = ids(&sink.lines()).into_iter().collect();
    let want: BTreeSet<String> = (0..4).flat_map(|thread| (0..250).map(move |n| name(thread, n))).collect();
    assert_eq!((found, sink.lines().len()), (want, 1000));
}

#[test]
fn without_a_sink_no_record_is_built() {
    let log = AuditLog::off(Hooks::silent());
    log.record(|| panic!("nobody wants it"));
    log.record_sampled("id", 1.0, || panic!("nobody wants it"));
    assert!(log.flush(LONG));
}

/// A sink that takes a batch only when it is told to.
struct Gated {
    entered: mpsc::Sender<()>,
    may_go: mpsc::Receiver<()>,
    to: MemorySink,
}

impl Sink for Gated {
    fn write(&mut self, batch: &[u8]) -> Result<(), WriteError> {
        let _ = self.entered.send(());
        let _ = self.may_go.recv();
        self.to.write(batch)
    }
}

#[test]
fn a_full_buffer_drops_and_counts_and_never_waits() {
    let (entered_in, entered) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let to = MemorySink::default();
    let line_bytes = record::with_line(&record("0000"), <[u8]>::len);
    let (hooks, dropped) = counting();
    let sink = Gated { entered: entered_in, may_go, to: to.clone() };
    // Room for three lines and a half; what the sink holds counts too.
    let log = AuditLog::with_sink(Box::new(sink), line_bytes * 7 / 2, hooks).expect("a thread");
    log.record(|| record("0000"));
    entered.recv().expect("the writer hands the first line over");
    for n in 1..=9 {
        let id = format!("{n:04}");
        log.record(|| record(&id));
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 7);
    assert!(!log.flush(Duration::from_millis(1)), "the sink still holds a line");
    drop(go);
    assert!(log.flush(LONG));
    assert_eq!(ids(&to.lines()), ["0000", "0001", "0002"]);
    log.record(|| record("0010"));
    assert!(log.flush(LONG));
    assert_eq!(ids(&to.lines()).last().map(String::as_str), Some("0010"), "there is room again");
}

/// A sink that fails for its first batch.
struct Failing {
    failures_left: u64,
    to: MemorySink,
}

impl Sink for Failing {
    fn write(&mut self, batch: &[u8]) -> Result<(), WriteError> {
        if self.failures_left == 0 {
            return self.to.write(batch);
        }
        self.failures_left -= 1;
        let lost = batch.iter().filter(|byte| **byte == b'\n').count() as u64;
        Err(WriteError { lost, cause: io::Error::other("disk on fire") })
    }
}

#[test]
fn a_failed_write_is_counted_and_the_next_one_is_tried() {
    let to = MemorySink::default();
    let (hooks, dropped) = counting();
    let sink = Failing { failures_left: 1, to: to.clone() };
    let log = AuditLog::with_sink(Box::new(sink), 1 << 20, hooks).expect("a thread");
    log.record(|| record("lost"));
    assert!(log.flush(LONG));
    log.record(|| record("kept"));
    assert!(log.flush(LONG));
    assert_eq!((dropped.load(Ordering::SeqCst), ids(&to.lines())), (1, vec!["kept".to_owned()]));
}

#[test]
fn sampling_is_deterministic_and_close_to_the_share() {
    let (log, sink) = memory();
    let names: Vec<String> = (0..10_000).map(|n| format!("0190a1b2-c3d4-7000-8000-{n:012x}")).collect();
    for name in &names {
        log.record_sampled(name, 0.1, || record(name));
        assert!(is_kept(name, 1.0) && !is_kept(name, 0.0));
        assert_eq!(is_kept(name, 0.1), is_kept(name, 0.1));
        // A larger share keeps what a smaller one keeps.
        assert!(!is_kept(name, 0.1) || is_kept(name, 0.2));
    }
    assert!(log.flush(LONG));
    let kept = sink.lines().len();
    assert!((850..=1150).contains(&kept), "{kept} of 10000 for a share of 0.1");
}

fn read_lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).expect("it is there").lines().map(str::to_owned).collect()
}

fn numbered(path: &Path, number: usize) -> std::path::PathBuf {
    std::path::PathBuf::from(format!("{}.{number}", path.display()))
}

#[test]
fn files_are_rotated_by_size_and_the_oldest_are_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("below").join("audit.jsonl");
    let line = b"0123456789\n";
    let mut sink = FileSink::open(&path, 3 * line.len() + 5, 3).expect("it opens");
    // One batch larger than a file is cut between lines.
    sink.write(&line.repeat(4)).expect("it writes");
    assert_eq!((read_lines(&path).len(), read_lines(&numbered(&path, 1)).len()), (1, 3));
    for _ in 0..8 {
        sink.write(line).expect("it writes");
    }
    assert_eq!(read_lines(&path).len(), 3);
    assert_eq!(read_lines(&numbered(&path, 1)).len(), 3);
    assert_eq!(read_lines(&numbered(&path, 2)).len(), 3);
    assert!(!numbered(&path, 3).exists(), "three files are kept, the current one included");
    let long = [b"x".repeat(100), b"\n".to_vec()].concat();
    sink.write(&long).expect("it writes");
    sink.write(line).expect("it writes");
    assert_eq!((read_lines(&path).len(), read_lines(&numbered(&path, 1)).len()), (1, 1));
}

#[test]
fn a_file_is_appended_to_and_opened_anew_when_it_was_moved() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    // The last line of an earlier process was torn by its end.
    fs::write(&path, "whole\ntorn").expect("it writes");
    let mut sink = FileSink::open(&path, 1 << 20, 2).expect("it opens");
    sink.write(b"new\n").expect("it writes");
    assert_eq!(read_lines(&path), ["whole", "torn", "new"]);
    let moved = folder.path().join("moved.jsonl");
    fs::rename(&path, &moved).expect("it moves");
    sink.write(b"after\n").expect("it writes");
    assert_eq!((read_lines(&path), read_lines(&moved).len()), (vec!["after".to_owned()], 3));
    fs::remove_file(&path).expect("it goes");
    sink.write(b"again\n").expect("it writes");
    assert_eq!(read_lines(&path), ["again"]);
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit").join("audit.jsonl");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    drop(FileSink::open(&path, 1 << 20, 2).expect("it opens"));
    assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("it changes");
    drop(FileSink::open(&path, 1 << 20, 2).expect("it opens"));
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let in_the_way = folder.path().join("file");
    fs::write(&in_the_way, "").expect("it writes");
    let error = AuditLog::open(
        &Config::default(),
        &in_the_way.join("audit.jsonl"),
        |_| unreachable!("no collector"),
        Hooks::silent(),
    );
    let error = error.expect_err("a file is no folder").to_string();
    assert!(error.starts_with("could not open the audit log `"), "{error}");
}

/// Run by hand in release mode: `cargo test --release --lib -- --ignored --nocapture record_cost`.
#[test]
#[ignore = "a measurement, not a check"]
fn record_cost() {
    struct Nowhere;
    impl Sink for Nowhere {
        fn write(&mut self, _: &[u8]) -> Result<(), WriteError> {
            Ok(())
        }
    }
    let (hooks, dropped) = counting();
    let log = AuditLog::with_sink(Box::new(Nowhere), 8 << 20, hooks).expect("a thread");
    let rounds = 200_000_u32;
    let start = std::time::Instant::now();
    for _ in 0..rounds {
        log.record(|| AuditRecord {
            time: jiff::Timestamp::now(),
            ..record("0190a1b2-c3d4-7000-8000-000000000000")
        });
    }
    let each = start.elapsed() / rounds;
    println!("{each:?} a record, {} dropped", dropped.load(Ordering::SeqCst));
}
