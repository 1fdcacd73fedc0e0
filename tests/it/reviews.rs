//! Reviews of bundles by a model behind the wire: what passes, what blocks, and that no fault ever publishes anything.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portcullis::bundles::archive::Source;
use portcullis::bundles::pack::Packer;
use portcullis::bundles::review::PROMPT_BYTES_MAX;
use portcullis::bundles::service::{Actor, Asked, Inspect, Parts, Submission, Submissions, Upload};
use portcullis::bundles::spool::Spool;
use portcullis::bundles::worker::Worker;
use portcullis::bundles::{self, BundlesConfig, GuardrailsConfig, InspectLimits, Inspection, Inspector};
use portcullis::config::Settings;
use portcullis::decision::{BundleKind, CheckStatus, HoldReason, SubmissionStatus, Visibility};
use portcullis::judge::{self, Backend, Unobserved};
use portcullis::policy::Live;
use portcullis::{app, store, telemetry};
use serde_json::{Value, json};
use tokio_stream::StreamExt as _;

use super::llm_stand_in::{FAULTS, StandIn, says};

/// The inline checks as the service runs them.
struct Checks(Live);

impl Inspect for Checks {
    fn inspect(
        &self,
        source: &dyn Source,
        kind: BundleKind,
        _: &Asked,
    ) -> Result<(Inspection, String), String> {
        let snapshot = self.0.snapshot().ok_or("no policy")?;
        let inspector = Inspector::of(&snapshot, InspectLimits::default());
        Ok((inspector.inspect(source, kind), self.revision()))
    }

    fn revision(&self) -> String {
        self.0.snapshot().map(|snapshot| snapshot.revision().to_string()).unwrap_or_default()
    }

    fn mask(&self, text: &str) -> String {
        bundles::mask(self.0.snapshot().expect("a policy").scanner(), text)
    }
}

/// A service whose model is a scenario of the stand-in.
struct Reviews {
    submissions: Submissions,
    _folder: tempfile::TempDir,
}

fn actor() -> Actor {
    Actor { name: "ann".to_owned(), ..Actor::default() }
}

impl Reviews {
    async fn new(stand_in: &StandIn, scenario: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = judge::Config {
            backend: Backend::Ollama,
            model: Some("m".to_owned()),
            base_url: Some(stand_in.url(scenario)),
            timeout: Duration::from_secs(20),
            connect_timeout: Duration::from_secs(12),
            attempts_max: 1,
            cache_bytes_max: 0,
            ..judge::Config::default()
        };
        let judge = judge::connect(&config, Arc::new(Unobserved)).expect("the settings are right");
        let store_config = store::Config::default();
        let stores = store::open(&store_config, &folder.path().join("test.db")).await.expect("it opens");
        let (metrics, _) = telemetry::install();
        let submissions = Submissions::new(Parts {
            store: stores.submissions,
            audit: stores.audit,
            bytes: store::open_bytes(&store_config, &folder.path().join("bundles")).expect("it opens"),
            spool: Spool::open(folder.path().join("uploads")).expect("it opens"),
            inspect: Arc::new(Checks(Live::start(app::sources(&Settings::default())))),
            judge,
            bundles: BundlesConfig::default(),
            guardrails: GuardrailsConfig {
                review_timeout: Duration::from_secs(20),
                ..GuardrailsConfig::default()
            },
            poll_interval: Duration::from_millis(50),
            metrics,
            clock: Arc::new(Timestamp::now),
        });
        Self { submissions, _folder: folder }
    }

    async fn upload(&self, files: &[(&str, &str)]) -> String {
        let mut packer = Packer::new(Cursor::new(Vec::new()));
        for (path, text) in files {
            packer.add_file(path, false, &mut text.as_bytes()).expect("packed");
        }
        let archive = packer.finish().expect("packed").into_inner();
        let mut spooling = self.submissions.spool().begin().expect("a file");
        spooling.write(&archive).expect("written");
        let upload = Upload {
            spooled: spooling.finish(),
            kind: BundleKind::Skill,
            name: String::new(),
            submitter: "ann".to_owned(),
            entity_id: None,
            policy: String::new(),
            dry_run: false,
            decision_id: "decision".to_owned(),
        };
        let answer = self.submissions.submit(&actor(), upload).await.expect("taken");
        assert_eq!(
            (answer.status, answer.hold_reason),
            (SubmissionStatus::PendingLlm, HoldReason::None),
            "{:?}",
            answer.checks
        );
        answer.submission_id
    }

    /// How a submission stands once nothing more happens.
    async fn ended(&self, id: &str) -> Submission {
        let worker = Worker::start(&self.submissions);
        let mut watching = std::pin::pin!(self.submissions.watch(actor(), id.to_owned(), true));
        let mut last = None;
        while let Some(watched) = watching.next().await {
            last = Some(watched.expect("its own").submission);
        }
        worker.stop(Duration::from_secs(30)).await;
        last.expect("it was told at once")
    }
}

const SKILL: &str = "---\nname: notes\ndescription: Keeps short notes for a team and finds them again when somebody \
                     asks for them.\n---\n\n# Notes\n\nWrite each note into the folder of notes, one file a day, and \
                     answer questions from them. Keep every note to a few lines, name the person it came from, and \
                     put the date first so that the newest one is easy to find later on.\n";

fn answer(risk: &str, severity: Option<&str>) -> Value {
    let finding = |severity: &str| {
        json!({
            "file": "SKILL.md", "line": 3, "category": "exfiltration", "severity": severity,
            "reason": "It sends notes away.", "fix_hint": "Keep them.",
        })
    };
    let findings: Vec<Value> = severity.map(finding).into_iter().collect();
    json!({"risk_level": risk, "summary": "A skill.", "findings": findings, "placeholders": 0})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verdicts_come_from_complete_answers_alone() {
    let stand_in = StandIn::start().await;
    let text = |value: Value| says(&value.to_string());
    let mut half = answer("safe", None);
    half.as_object_mut().expect("an object").remove("risk_level");
    let mut more = answer("safe", None);
    more["approved"] = true.into();
    use SubmissionStatus as S;
    for (scenario, status, error, review) in [
        (text(answer("safe", None)), S::Approved, "", CheckStatus::Pass),
        (text(answer("low", Some("medium"))), S::Approved, "", CheckStatus::Pass),
        (text(answer("low", Some("high"))), S::BlockedLlm, "", CheckStatus::Fail),
        (text(answer("critical", Some("critical"))), S::BlockedLlm, "", CheckStatus::Fail),
        (
            text(answer("safe", Some("critical"))),
            S::ReviewError,
            "contradictory_answer",
            CheckStatus::Skipped,
        ),
        (text(half), S::ReviewError, "wrong_shape", CheckStatus::Skipped),
        (text(more), S::ReviewError, "wrong_shape", CheckStatus::Skipped),
        (says("It is safe."), S::ReviewError, "not_json", CheckStatus::Skipped),
        ("fault/refusal".to_owned(), S::ReviewError, "", CheckStatus::Skipped),
        ("fault/401".to_owned(), S::ReviewError, "unauthorized", CheckStatus::Skipped),
    ] {
        let reviews = Reviews::new(&stand_in, &scenario).await;
        let id = reviews.upload(&[("SKILL.md", SKILL)]).await;
        let stands = reviews.ended(&id).await;
        assert_eq!(stands.status, status, "{scenario}");
        let is_published = status == S::Approved;
        assert_eq!(stands.visibility == Some(Visibility::Approved), is_published, "{scenario}");
        let details = stands.details.expect("asked for");
        let attempt = &details.attempts[0];
        assert!(error.is_empty() || attempt.error == error, "{scenario}: {}", attempt.error);
        assert_eq!(status == S::ReviewError, !attempt.error.is_empty(), "{scenario}");
        let said = details.checks.llm_review.expect("what was said");
        assert_eq!(said.status, review, "{scenario}");
        assert_eq!(said.reason.is_empty(), review != CheckStatus::Skipped, "{scenario}: {}", said.reason);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_fault_of_a_provider_publishes_anything() {
    let stand_in = StandIn::start().await;
    // Those that answer nothing for longer than a test should take are left to the tests of the client.
    for fault in FAULTS.iter().filter(|fault| !fault.starts_with("slow")) {
        let reviews = Reviews::new(&stand_in, &format!("fault/{fault}")).await;
        let id = reviews.upload(&[("SKILL.md", SKILL)]).await;
        let worker = Worker::start(&reviews.submissions);
        let asked = async {
            while stand_in.calls(&format!("fault/{fault}")).is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), asked).await.expect("the model is asked");
        worker.stop(Duration::from_secs(60)).await;
        let stands = reviews.submissions.get(&actor(), &id, true).await.expect("its own");
        assert!(
            matches!(stands.status, SubmissionStatus::ReviewError | SubmissionStatus::PendingLlm),
            "{fault}: {}",
            stands.status
        );
        assert_eq!((stands.visibility, stands.is_live), (Some(Visibility::Pending), false), "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_is_shown_the_bundle_as_data() {
    let stand_in = StandIn::start().await;
    let scenario = says(&answer("safe", None).to_string());
    let reviews = Reviews::new(&stand_in, &scenario).await;
    let long =
        format!("# Log\n\n{}\n\nThe last line of the log.\n", "One more thing happened. ".repeat(6_000));
    let id = reviews.upload(&[("SKILL.md", SKILL), ("references/log.md", &long)]).await;
    assert_eq!(reviews.ended(&id).await.status, SubmissionStatus::Approved);
    let calls = stand_in.calls(&scenario);
    let body = &calls[0].body;
    let content = body["messages"][1]["content"].as_str().expect("what the user says");
    assert!(content.starts_with("<<<BEGIN what it says of itself "), "{}", &content[..80]);
    for wanted in ["path: SKILL.md", "path: references/log.md", "The last line of the log.", "[[CUT "] {
        assert!(content.contains(wanted), "{wanted}");
    }
    // Fences and labels come on top.
    assert!(content.len() < PROMPT_BYTES_MAX + 2_000, "{}", content.len());
    let at = |text: &str| content.find(text).expect("it is there");
    assert!(at("path: SKILL.md") < at("path: references/log.md"), "the most telling first");
}

/// What the detectors find in an answer is not kept, wherever the model wrote it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_that_a_model_quotes_are_masked() {
    let stand_in = StandIn::start().await;
    // Put together here, so that no scanner of sources takes it for a real one.
    let key = ["AK", "IA", "Q3EGRIAJ5BYWXK2V"].concat();
    let said = json!({
        "risk_level": "medium",
        "summary": format!("It signs its calls with {key}."),
        "findings": [{
            "file": format!("keys/{key}.txt"), "line": 3, "category": "secrets", "severity": "medium",
            "reason": format!("{} {key}", "It is written out. ".repeat(30)), "fix_hint": format!("Revoke {key}, tell ada@example.org."),
        }],
        "placeholders": 0,
    });
    let reviews = Reviews::new(&stand_in, &says(&said.to_string())).await;
    let id = reviews.upload(&[("SKILL.md", SKILL)]).await;
    let stands = reviews.ended(&id).await;
    assert_eq!(stands.status, SubmissionStatus::BlockedLlm);
    let told = format!("{:?}", stands.details.expect("asked for"));
    assert!(told.contains("It signs its calls with [SECRET"), "{told}");
    for hidden in [&key[..], &key[..12], "ada@example.org"] {
        assert!(!told.contains(hidden), "{hidden}: {told}");
    }
}
