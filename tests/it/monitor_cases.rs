//! Sessions of `StreamMonitor` as data: what a client sends, and what it is told.
//!
//! Where chunks are cut must not change what is found, so each case of `tests/cases/stream_monitor` runs in three cuts.

use std::collections::BTreeMap;
use std::path::Path;

use portcullis::pb::v1;
use serde::Deserialize;

use super::monitoring::{Heard, Session};
use super::server::{Client, Setup};

/// Chunks as they are sent.
type Chunks = Vec<(Stream, Vec<u8>)>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    #[serde(default)]
    policy: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    chunks: Vec<Chunk>,
    worst: String,
    #[serde(default)]
    incidents: Vec<Wanted>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Chunk {
    #[serde(default)]
    stream: Stream,
    text: String,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stream {
    #[default]
    Stdout,
    Stderr,
}

/// What is wanted of an incident; what is left out may be anything.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    rule: String,
    category: Option<String>,
    #[serde(default)]
    stream: Stream,
    offset: Option<u64>,
    severity: Option<String>,
    verdict: Option<String>,
    source: Option<String>,
    action: Option<String>,
    repeats: Option<u64>,
    #[serde(default)]
    shadow: bool,
    /// A part of the text that was matched.
    contains: Option<String>,
}

impl Stream {
    fn message(self) -> v1::OutputStream {
        match self {
            Self::Stdout => v1::OutputStream::Stdout,
            Self::Stderr => v1::OutputStream::Stderr,
        }
    }
}

fn without_prefix(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_owned()
}

impl Case {
    /// As it stands, each stream in one piece, and byte by byte.
    fn cuts(&self) -> [(&'static str, Chunks); 3] {
        let as_it_stands: Chunks =
            self.chunks.iter().map(|chunk| (chunk.stream, chunk.text.clone().into_bytes())).collect();
        let whole = |wanted: Stream| {
            let of_it = as_it_stands.iter().filter(|(stream, _)| *stream == wanted);
            (wanted, of_it.flat_map(|(_, data)| data.clone()).collect::<Vec<u8>>())
        };
        let whole = vec![whole(Stream::Stdout), whole(Stream::Stderr)];
        let bytes =
            as_it_stands.iter().flat_map(|(stream, data)| data.iter().map(|byte| (*stream, vec![*byte])));
        let bytes = bytes.collect();
        [("as it stands", as_it_stands.clone()), ("in one piece", whole), ("byte by byte", bytes)]
    }

    async fn run(&self, client: &mut Client, chunks: &[(Stream, Vec<u8>)]) -> Heard {
        let work = v1::WorkContext { labels: self.labels.clone(), ..Default::default() };
        let attach = v1::Attach { policy: self.policy.clone(), work: Some(work), ..Default::default() };
        let mut session = Session::attach(client, attach).await;
        for (nth, (stream, data)) in chunks.iter().enumerate() {
            session.chunk(stream.message(), data, nth as u64 + 1).await;
        }
        session.detach().await;
        session.end().await
    }

    fn check(&self, cut: &str, chunks: &[(Stream, Vec<u8>)], heard: &Heard) {
        let about = format!("{} ({cut})", self.about);
        assert!(heard.error.is_none(), "{about}: {:?}", heard.error);
        let summary = heard.summary();
        let bytes: usize = chunks.iter().map(|(_, data)| data.len()).sum();
        assert_eq!((summary.bytes, summary.chunks), (bytes as u64, chunks.len() as u64), "{about}");
        assert_eq!(
            summary.worst().as_str_name(),
            format!("VERDICT_KIND_{}", self.worst),
            "{about}: {heard:?}"
        );
        assert!(summary.unjudged.is_empty(), "{about}: {:?}", summary.unjudged);
        assert_eq!(summary.incidents_total as usize, self.incidents.len(), "{about}: {summary:?}");
        let mut found: Vec<&v1::Incident> = summary.incidents.iter().collect();
        found.sort_by_key(|one| (one.stream, one.offset));
        for (one, wanted) in found.iter().zip(&self.incidents) {
            wanted.check(one, &about);
            let told = heard.incidents().into_iter().find(|told| told.id == one.id);
            assert_eq!(told.expect("it was told").rule_id, one.rule_id, "{about}");
            let verdicts: Vec<_> = heard.verdicts().into_iter().filter(|v| v.incident_id == one.id).collect();
            if one.shadow {
                assert!(verdicts.is_empty(), "{about}: {verdicts:?}");
                continue;
            }
            let [verdict] = verdicts.as_slice() else { panic!("{about}: {verdicts:?}") };
            assert_eq!((verdict.verdict, verdict.source), (one.verdict, one.source), "{about}");
            assert_eq!(verdict.decision_id, one.decision_id, "{about}");
            assert!(verdict.r#final, "{about}: no judge will follow");
            let is_kill = verdict.verdict() == v1::VerdictKind::Kill;
            let advice = v1::KillAdvice { kill_group: true, continue_first: true };
            assert_eq!(verdict.kill, is_kill.then_some(advice), "{about}");
            assert!(!verdict.reason.is_empty() && one.latency.is_some(), "{about}");
        }
    }
}

impl Wanted {
    fn check(&self, one: &v1::Incident, about: &str) {
        assert_eq!(one.rule_id, self.rule, "{about}: {one:?}");
        assert_eq!(one.stream(), self.stream.message(), "{about}");
        assert_eq!(one.shadow, self.shadow, "{about}");
        let names = [
            (&self.category, one.category.clone()),
            (&self.severity, without_prefix(one.severity().as_str_name(), "SEVERITY_")),
            (&self.verdict, without_prefix(one.verdict().as_str_name(), "VERDICT_KIND_")),
            (&self.source, without_prefix(one.source().as_str_name(), "VERDICT_SOURCE_")),
            (&self.action, without_prefix(one.action().as_str_name(), "INCIDENT_ACTION_")),
        ];
        for (wanted, found) in names {
            if let Some(wanted) = wanted {
                assert_eq!(*wanted, found, "{about}: {one:?}");
            }
        }
        if let Some(offset) = self.offset {
            assert_eq!(one.offset, offset, "{about}: {one:?}");
        }
        if let Some(repeats) = self.repeats {
            assert_eq!(one.repeats, repeats, "{about}: {one:?}");
        }
        if let Some(part) = &self.contains {
            assert!(one.matched_text.contains(part), "{about}: {}", one.matched_text);
            assert!(one.excerpt.contains(part), "{about}: {}", one.excerpt);
        }
        assert!(
            !one.decision_id.is_empty() && !one.policy_revision.is_empty() && one.time.is_some(),
            "{about}"
        );
    }
}

#[tokio::test]
async fn sessions_are_told_what_the_cases_say_wherever_chunks_are_cut() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let text = std::fs::read_to_string(root.join("stream_monitor/sessions.toml")).expect("the cases");
    let cases: Cases = toml::from_str(&text).expect("cases are TOML");
    let policies = root.join("policies");
    let settings = format!("policy:\n  path: {}\n", policies.display());
    let server = Setup::new().settings(&settings).start();
    let mut client = server.client().await;
    for case in &cases.case {
        for (cut, chunks) in case.cuts() {
            let heard = case.run(&mut client, &chunks).await;
            case.check(cut, &chunks, &heard);
        }
    }
}
