//! The repository of submissions and entities.

mod audit;
mod changes;
mod jobs;
mod lists;
mod model;

use std::sync::Arc;

use jiff::Timestamp;

use super::*;
use crate::decision::{
    BundleChecks, BundleKind, Capability, CheckFinding, CheckResult, CheckStatus, FailMode, FileCoverage,
    HoldReason, LlmReview, Reason, Severity, SubmissionStatus, Unjudged, Visibility,
};
use crate::store::{
    AcceptedEntity, Change, EntityWrite, NewAuditEvent, NewSubmission, StoredAttempt, StoredEntity,
    StoredSubmission, SubmissionStore, SubmissionWrite,
};

/// So many seconds after some moment.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).expect("in range")
}

fn entity(id: &str) -> StoredEntity {
    StoredEntity {
        id: format!("e-{id}"),
        tenant: String::new(),
        kind: BundleKind::Skill,
        name: format!("name {id}"),
        owner: "ada".to_owned(),
        visibility: Visibility::Pending,
        live_submission_id: None,
        latest_submission_id: id.to_owned(),
        created: at(0),
        updated: at(0),
        archived: None,
        archived_by: String::new(),
        version: 1,
    }
}

fn submission(id: &str, status: SubmissionStatus) -> StoredSubmission {
    StoredSubmission {
        id: id.to_owned(),
        entity_id: format!("e-{id}"),
        tenant: String::new(),
        kind: BundleKind::Skill,
        name: format!("name {id}"),
        version_text: "1.0.0".to_owned(),
        description: "describes".to_owned(),
        submitter: "ada".to_owned(),
        status,
        hold_reason: HoldReason::None,
        attempt: 1,
        decision_id: "d".to_owned(),
        policy: "strict".to_owned(),
        policy_revision: "p".to_owned(),
        bundle_sha256: "ab".repeat(32),
        file_size: 20_000,
        file_count: 3,
        created: at(0),
        updated: at(0),
        purged: None,
        review_model: String::new(),
        overridden: None,
        tries: 0,
        lease: None,
        not_before: None,
        version: 1,
    }
}

fn attempt(submission: &StoredSubmission) -> StoredAttempt {
    let finding = CheckFinding {
        rule_id: "code.eval".to_owned(),
        file: "a/b.py".to_owned(),
        line: 7,
        category: "code_exec".to_owned(),
        severity: Severity::High,
        reason: "runs text as code ☃".to_owned(),
        snippet: "ev…".to_owned(),
        fingerprint: "0123456789abcdef".to_owned(),
        suppressed: true,
        ..CheckFinding::default()
    };
    StoredAttempt {
        submission_id: submission.id.clone(),
        number: submission.attempt,
        status: submission.status,
        hold_reason: submission.hold_reason,
        checks: BundleChecks {
            static_security: CheckResult { status: CheckStatus::Fail, findings: vec![finding] },
            template_placeholders: 2,
            ..BundleChecks::default()
        },
        coverage: vec![FileCoverage {
            path: "a/b.py".to_owned(),
            bytes: 1 << 40,
            bytes_scanned: 12,
            engines: vec!["python".to_owned()],
            unscanned_reason: "too_large".to_owned(),
        }],
        capabilities: vec![Capability {
            kind: "network".to_owned(),
            file: "a/b.py".to_owned(),
            line: 1,
            detail: "example.com".to_owned(),
        }],
        unjudged: vec![Unjudged {
            plugin: Arc::from("python"),
            reason: Reason::Limit,
            detail: "too deep".to_owned(),
            fail_mode: FailMode::Closed,
            shadow: false,
        }],
        error: String::new(),
        decision_id: "d".to_owned(),
        policy_revision: "p".to_owned(),
        started: submission.created,
        ended: None,
    }
}

fn event(id: &str, submission: &StoredSubmission) -> NewAuditEvent {
    NewAuditEvent {
        id: id.to_owned(),
        time: submission.updated,
        action: "store.submission.accepted".to_owned(),
        actor: "ada".to_owned(),
        tenant: submission.tenant.clone(),
        resource: format!("submission:{}", submission.id),
        ..NewAuditEvent::default()
    }
}

/// A submission of a new entity.
fn new(submission: StoredSubmission) -> NewSubmission {
    let entity = StoredEntity {
        id: submission.entity_id.clone(),
        tenant: submission.tenant.clone(),
        kind: submission.kind,
        name: submission.name.clone(),
        owner: submission.submitter.clone(),
        created: submission.created,
        updated: submission.updated,
        ..entity(&submission.id)
    };
    NewSubmission {
        entity: AcceptedEntity::New(entity),
        attempt: attempt(&submission),
        events: vec![event(&format!("accepted-{}", submission.id), &submission)],
        submission,
        quota: None,
    }
}

/// A change of nothing but this row.
fn change(submission: StoredSubmission, expect_version: i64) -> Change {
    Change {
        tenant: submission.tenant.clone(),
        submissions: vec![SubmissionWrite { submission, expect_version, attempts: Vec::new() }],
        ..Change::default()
    }
}

async fn accept(store: &SqlStore, submission: StoredSubmission) {
    store.accept(new(submission)).await.expect("accepted");
}

async fn get(store: &SqlStore, id: &str) -> StoredSubmission {
    store.submission(String::new(), id.to_owned()).await.expect("read").expect("there")
}

async fn get_entity(store: &SqlStore, id: &str) -> StoredEntity {
    store.entity(String::new(), id.to_owned()).await.expect("read").expect("there")
}

/// Makes the entity of a submission show its bytes.
async fn publish(store: &SqlStore, id: &str, visibility: Visibility) {
    let before = get_entity(store, &format!("e-{id}")).await;
    let expect_version = before.version;
    let entity = StoredEntity { visibility, live_submission_id: Some(id.to_owned()), ..before };
    let entity = Some(EntityWrite::Update { entity, expect_version });
    let change = Change { entity, ..Change::default() };
    assert!(store.apply(change).await.expect("applied"));
}

fn review() -> LlmReview {
    LlmReview { status: CheckStatus::Pass, risk_level: "low".to_owned(), ..LlmReview::default() }
}
