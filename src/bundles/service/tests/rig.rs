//! A service over real stores, with a clock, a model and inline checks that do as a test says.

use std::collections::VecDeque;
use std::fs;
use std::io::Cursor;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::bundles::archive::{ArchiveLimits, Source};
use crate::bundles::pack::{Packer, repack};
use crate::bundles::service::{Actor, Asked, Inspect, Parts, Reviewed, SubmissionError, Submissions, Upload};
use crate::bundles::spool::Spool;
use crate::bundles::{BundlesConfig, GuardrailsConfig, Inspection, Manifest, Tree, worker};
use crate::decision::{
    BundleKind, CheckFinding, CheckResult, CheckStatus, FailMode, Reason, Severity, Unjudged,
};
use crate::judge::{Answer, Asking, Judge, NotJudged, Question, Trouble, Usage};
use crate::setting::Secret;
use crate::store::test_postgres as postgres;
use crate::store::{AuditFilter, AuditQuery, Config, NewAuditEvent, Repositories, StoredSubmission};

/// Where the rows of one test lie.
pub struct Place {
    config: Config,
    folder: tempfile::TempDir,
}

impl Place {
    pub fn sqlite() -> Self {
        Self { config: Config::default(), folder: tempfile::tempdir().expect("a folder") }
    }

    pub async fn postgres() -> Option<Self> {
        let url = postgres::new_database().await?;
        let config = Config { url: Some(Secret::new(url)), connections_max: 8, ..Config::default() };
        Some(Self { config, folder: tempfile::tempdir().expect("a folder") })
    }
}

/// What a test changes of the settings.
pub struct Setup {
    pub guardrails: GuardrailsConfig,
    pub has_key: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self { guardrails: GuardrailsConfig::default(), has_key: true }
    }
}

/// A service and everything a test moves around it.
pub struct Rig {
    pub submissions: Submissions,
    pub judge: Arc<Model>,
    pub stores: Repositories,
    pub now: Arc<Mutex<Timestamp>>,
    pub place: Place,
    /// What the checks were asked for.
    pub asked: Arc<Mutex<Vec<Asked>>>,
    pub gate: Arc<Gate>,
}

/// What one question is answered with.
pub type Said = Result<Value, Trouble>;

/// A model that says what a test wants, and `safe` when it wants nothing.
#[derive(Default)]
pub struct Model {
    pub answers: Mutex<VecDeque<Said>>,
    pub asked: AtomicUsize,
    /// What is told where there is no answer; empty for what happened.
    pub detail: Mutex<String>,
    /// Whether questions wait until they are let go.
    pub is_slow: Mutex<bool>,
    pub reached: Notify,
    pub go: Notify,
}

/// An answer of that risk, with one finding of that severity unless it is empty.
pub fn says(risk: &str, severity: &str) -> Said {
    let finding = json!({
        "file": "SKILL.md", "line": 1, "category": "exfiltration", "severity": severity, "reason": "r", "fix_hint": "f",
    });
    let findings = if severity.is_empty() { json!([]) } else { json!([finding]) };
    Ok(json!({"risk_level": risk, "summary": "s", "findings": findings, "placeholders": 0}))
}

impl Judge for Model {
    fn ask<'a>(&'a self, _: &'a Question<'a>, _: Instant) -> Asking<'a> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let is_slow = *self.is_slow.lock().expect("no panic");
            if is_slow {
                self.reached.notify_one();
                self.go.notified().await;
            }
            let said = self.answers.lock().expect("no panic").pop_front().unwrap_or_else(|| says("safe", ""));
            let detail = self.detail.lock().expect("no panic").clone();
            let value = said.map_err(|trouble| {
                let happened = || format!("{} happened", trouble.as_str());
                NotJudged::new(trouble, if detail.is_empty() { happened() } else { detail })
            })?;
            let (model, usage) = ("model-1".to_owned(), Usage::default());
            Ok(Answer { value, model, usage, cached: false, elapsed: Duration::ZERO })
        })
    }

    fn model(&self) -> &str {
        "model-1"
    }

    fn backend(&self) -> &'static str {
        "ollama"
    }
}

/// Where checks wait that are told to.
#[derive(Default)]
pub struct Gate {
    pub reached: Notify,
    pub go: Notify,
}

/// Checks that read the outcome from the bytes: `BLOCK`, `REFUSED`, `PARTIAL`, `UNJUDGED`, `PANIC` or anything else. `WAIT` makes them
/// wait at the gate first.
struct Scripted(Arc<Mutex<Vec<Asked>>>, Arc<Gate>);

impl Inspect for Scripted {
    fn inspect(
        &self,
        source: &dyn Source,
        _: BundleKind,
        asked: &Asked,
    ) -> Result<(Inspection, String), String> {
        self.0.lock().expect("no panic").push(asked.clone());
        let mut bytes = vec![0; source.len() as usize];
        source.read_exact_at(&mut bytes, 0).map_err(|error| error.to_string())?;
        let has = |word: &str| bytes.windows(word.len()).any(|window| window == word.as_bytes());
        assert!(!has("PANIC"), "a check breaks off");
        if has("WAIT") {
            self.1.reached.notify_one();
            tokio::runtime::Handle::current().block_on(self.1.go.notified());
        }
        let mut inspection = Inspection {
            bundle_sha256: repack(source, ArchiveLimits::default(), Cursor::new(Vec::new()))
                .ok()
                .and_then(|(_, hash)| hash)
                .unwrap_or_default(),
            file_count: 1,
            manifest: Manifest {
                name: "notes".into(),
                version: "1.0.0".into(),
                description: "Keeps notes.".into(),
            },
            is_held_for_coverage: has("PARTIAL"),
            tree: Some(Tree::default()),
            ..Inspection::default()
        };
        if has("UNJUDGED") {
            inspection.unjudged = vec![Unjudged {
                plugin: "static_security".into(),
                reason: Reason::Limit,
                detail: "not followed".to_owned(),
                fail_mode: FailMode::Ask,
                shadow: false,
            }];
        }
        if has("REFUSED") {
            // As checks answer about an archive that does not open.
            inspection = Inspection::default();
            inspection.checks.archive.status = CheckStatus::Fail;
        }
        if has("BLOCK") {
            let finding = CheckFinding {
                rule_id: "test.rule".into(),
                file: "run.sh".into(),
                line: 1,
                category: "code_exec".into(),
                severity: Severity::High,
                reason: "it runs".into(),
                ..CheckFinding::default()
            };
            inspection.checks.static_security =
                CheckResult { status: CheckStatus::Fail, findings: vec![finding] };
        }
        Ok((inspection, "revision-1".to_owned()))
    }

    fn revision(&self) -> String {
        "revision-1".to_owned()
    }

    fn mask(&self, text: &str) -> String {
        text.replace("hunter2", "[SECRET]")
    }
}

pub fn owner() -> Actor {
    Actor { name: "ann".to_owned(), ..Actor::default() }
}

pub fn stranger() -> Actor {
    Actor { name: "bob".to_owned(), ..Actor::default() }
}

pub fn admin() -> Actor {
    Actor { name: "root".to_owned(), is_admin: true, request_id: "r-1".to_owned(), ..Actor::default() }
}

async fn opened(place: &Place) -> Repositories {
    let path = place.folder.path().join("test.db");
    crate::store::open(&place.config, &path).await.expect("it opens")
}

/// A service over these stores.
fn parts(
    place: &Place,
    stores: &Repositories,
    setup: Setup,
    judge: Arc<Model>,
    now: Arc<Mutex<Timestamp>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    gate: Arc<Gate>,
) -> Submissions {
    let folder = place.folder.path();
    Submissions::new(Parts {
        store: stores.submissions.clone(),
        audit: stores.audit.clone(),
        bytes: crate::store::open_bytes(&place.config, &folder.join("bundles")).expect("it opens"),
        spool: Spool::open(folder.join("uploads")).expect("it opens"),
        inspect: Arc::new(Scripted(asked, gate)),
        judge: setup.has_key.then_some(judge as Arc<dyn Judge>),
        bundles: BundlesConfig { stray_grace: Duration::ZERO, ..BundlesConfig::default() },
        guardrails: setup.guardrails,
        poll_interval: Duration::from_millis(20),
        metrics: crate::telemetry::install().0,
        clock: Arc::new(move || *now.lock().expect("no panic")),
    })
}

impl Rig {
    pub async fn new(place: Place, setup: Setup) -> Self {
        let now = Arc::new(Mutex::new("2026-05-01T12:00:00Z".parse().expect("a time")));
        Self::at(place, setup, now).await
    }

    /// Another process over the same place.
    pub async fn at(place: Place, setup: Setup, now: Arc<Mutex<Timestamp>>) -> Self {
        let stores = opened(&place).await;
        let judge = Arc::new(Model::default());
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let gate = Arc::<Gate>::default();
        let submissions =
            parts(&place, &stores, setup, judge.clone(), now.clone(), asked.clone(), gate.clone());
        Self { submissions, judge, stores, now, place, asked, gate }
    }

    /// The service of another process beside this one.
    pub async fn beside(&self, setup: Setup) -> Submissions {
        let stores = opened(&self.place).await;
        parts(
            &self.place,
            &stores,
            setup,
            self.judge.clone(),
            self.now.clone(),
            self.asked.clone(),
            self.gate.clone(),
        )
    }

    /// Lets time pass.
    pub fn wait(&self, time: SignedDuration) {
        let mut now = self.now.lock().expect("no panic");
        *now += time;
    }

    /// What the model answers next.
    pub fn answers(&self, said: impl IntoIterator<Item = Said>) {
        self.judge.answers.lock().expect("no panic").extend(said);
    }

    pub async fn upload(&self, text: &str) -> Result<Reviewed, SubmissionError> {
        self.upload_to(text, None, false).await
    }

    pub async fn upload_to(
        &self,
        text: &str,
        entity: Option<&str>,
        dry_run: bool,
    ) -> Result<Reviewed, SubmissionError> {
        self.upload_by(&self.submissions, text, entity, dry_run).await
    }

    /// The same by the service of one of several processes.
    pub async fn upload_by(
        &self,
        service: &Submissions,
        text: &str,
        entity: Option<&str>,
        dry_run: bool,
    ) -> Result<Reviewed, SubmissionError> {
        // A moment passes between any two uploads.
        self.wait(SignedDuration::from_millis(1));
        let mut spooling = service.spool().begin().expect("a file");
        spooling.write(&archive(text)).expect("written");
        let upload = Upload {
            spooled: spooling.finish(),
            kind: BundleKind::Skill,
            name: String::new(),
            submitter: "ann".to_owned(),
            entity_id: entity.map(str::to_owned),
            policy: "strict".to_owned(),
            dry_run,
            decision_id: "decision-1".to_owned(),
        };
        service.submit(&owner(), upload).await
    }

    /// Lets workers do everything that waits; answers how many steps that took.
    pub async fn work(&self) -> usize {
        let mut steps = 0;
        while let Some(row) = self.submissions.claim("worker").await.expect("claimed") {
            worker::step(&self.submissions, &row).await.expect("a step");
            steps += 1;
            assert!(steps < 1_000, "it never ends");
        }
        steps
    }

    /// Changes the kept bytes of a submission behind the back of the service.
    pub fn overwrite(&self, id: &str, text: &str) {
        let path = self.place.folder.path().join("bundles").join(format!("{id}.zip"));
        assert!(path.exists(), "that is where they lie");
        fs::write(path, archive(text)).expect("written");
    }

    pub async fn row(&self, id: &str) -> StoredSubmission {
        let found = self.stores.submissions.submission(String::new(), id.to_owned()).await;
        found.expect("read").expect("it is there")
    }

    /// All events, oldest first.
    pub async fn events(&self) -> Vec<NewAuditEvent> {
        let query = AuditQuery {
            tenant: String::new(),
            filter: AuditFilter::default(),
            is_descending: false,
            after: None,
            limit: 1_000,
        };
        self.stores.audit.audit_events(query).await.expect("read").events
    }

    /// Actions of the events about a submission, oldest first, without what they all begin with.
    pub async fn actions(&self, id: &str) -> Vec<String> {
        let about = format!("submission:{id}");
        let events = self.events().await.into_iter().filter(|event| event.resource == about);
        events.map(|event| event.action.trim_start_matches("store.submission.").to_owned()).collect()
    }

    /// Ids of submissions whose bytes are kept.
    pub async fn kept(&self) -> Vec<String> {
        let kept = self.submissions.parts().bytes.list().await.expect("listed");
        let mut ids: Vec<String> = kept.into_iter().map(|kept| kept.submission_id).collect();
        ids.sort();
        ids
    }

    /// Files in the folder of uploads.
    pub fn spooled(&self) -> usize {
        fs::read_dir(self.place.folder.path().join("uploads")).expect("a folder").count()
    }
}

/// A sound archive with one file of that text. It is stored, so that the checks of the tests can read it.
pub fn archive(text: &str) -> Vec<u8> {
    let mut packer = Packer::new(Cursor::new(Vec::new()));
    packer.add_file("SKILL.md", false, &mut text.as_bytes()).expect("packed");
    // Names are not packed, so the word that the checks look for stands in one.
    packer.add_file(&format!("words/{text}"), false, &mut &b""[..]).expect("packed");
    packer.finish().expect("packed").into_inner()
}
