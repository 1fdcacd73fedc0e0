//! How values of the domain lie in columns, and come back.

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Error;
use unicode_normalization::UnicodeNormalization;

use super::statement::{Row, Statement};
use crate::decision::{BundleKind, HoldReason, SubmissionStatus, Visibility};
use crate::store::{
    Lease, NewAuditEvent, Override, StoreError, StoredAttempt, StoredEntity, StoredSubmission,
};

/// Stands between texts that are searched together; no text that is searched holds it.
const SEPARATOR: char = '\u{1F}';

/// Columns of `entity`, without the folded ones.
pub(super) const ENTITY: &str = "id, tenant, kind, name, owner, visibility, live_submission_id, latest_submission_id, \
    create_time_us, update_time_us, archive_time_us, archived_by, version";

/// Columns of `submission`, without the folded ones.
pub(super) const SUBMISSION: &str = "id, entity_id, tenant, kind, name, version_text, description, submitter, status, \
    hold_reason, attempt, decision_id, policy, policy_revision, bundle_sha256, file_size, file_count, create_time_us, \
    update_time_us, purge_time_us, review_model, override_actor, override_reason, override_prior_status, \
    override_time_us, tries, lease_owner, lease_until_us, not_before_us, version";

/// Columns of `attempt`.
pub(super) const ATTEMPT: &str = "submission_id, number, status, hold_reason, checks, coverage, capabilities, unjudged, \
    error, decision_id, policy_revision, start_time_us, end_time_us";

/// Columns of `audit_event`.
pub(super) const EVENT: &str = "id, tenant, number, time_us, action, actor, resource, reason, detail, decision_id, \
    policy_revision, request_id, hash";

/// The columns of a list, each with the name of its table before it.
pub(super) fn of_table(table: &str, columns: &str) -> String {
    let columns: Vec<String> = columns.split(", ").map(|column| format!("{table}.{column}")).collect();
    columns.join(", ")
}

/// `(a, b, c) VALUES (?, ?, ?)`.
pub(super) fn values(columns: &str) -> String {
    let marks = vec!["?"; columns.split(", ").count()].join(", ");
    format!("({columns}) VALUES ({marks})")
}

/// `a = ?, b = ?, c = ?`.
pub(super) fn assignments(columns: &str) -> String {
    let assigned: Vec<String> = columns.split(", ").map(|column| format!("{column} = ?")).collect();
    assigned.join(", ")
}

/// The spelling in which texts are searched: compatibility forms and letter case do not matter. Letter by letter, so
/// that a part of a text folds to a part of the folded text.
pub(super) fn folded(text: &str) -> String {
    let plain: String = text
        .nfkc()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .map(|c| if c == SEPARATOR { ' ' } else { c })
        .collect();
    // Upper and lower case may have brought back what the first step had put together.
    plain.nfkc().collect()
}

/// Several texts that are searched together.
pub(super) fn folded_all(texts: &[&str]) -> String {
    let folded: Vec<String> = texts.iter().map(|text| folded(text)).collect();
    folded.join(&SEPARATOR.to_string())
}

/// Longest text of a column that has an index, in bytes. An entry of an index of PostgreSQL takes 2,704 bytes, and no
/// index has more than three texts (PostgreSQL 15, src/include/access/nbtree.h: a third of a page).
pub(super) const INDEXED_BYTES_MAX: usize = 850;

/// Refuses texts that an index of one of the engines could not take, before anything is written.
pub(super) fn check_indexed(values: &[(&'static str, &str)]) -> Result<(), StoreError> {
    match values.iter().find(|(_, value)| value.len() > INDEXED_BYTES_MAX) {
        None => Ok(()),
        Some((column, value)) => {
            Err(StoreError::TooLong { column, found: value.len(), limit: INDEXED_BYTES_MAX })
        }
    }
}

/// A counter as the database keeps it; it has no unsigned numbers.
pub(super) fn as_number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A counter as it was kept.
pub(super) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The first whole microsecond at or after `time`: times are kept to the microsecond, bounds may be finer.
pub(super) fn microseconds_up(time: Timestamp) -> i64 {
    let floor = time.as_nanosecond().div_euclid(1_000);
    let is_whole = time.as_nanosecond().rem_euclid(1_000) == 0;
    i64::try_from(floor + i128::from(!is_whole)).unwrap_or(i64::MAX)
}

/// A time as it is kept.
pub(super) fn microseconds(time: Timestamp) -> i64 {
    time.as_microsecond()
}

pub(super) fn timestamp(microseconds: i64) -> Result<Timestamp, Error> {
    Timestamp::from_microsecond(microseconds).map_err(decode)
}

/// A value as JSON.
pub(super) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("numbers, texts, lists and maps of texts have a JSON form")
}

pub(super) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(decode)
}

pub(super) fn decode(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Decode(error.into())
}

fn named<T>(parse: fn(&str) -> Option<T>, name: &str) -> Result<T, Error> {
    parse(name).ok_or_else(|| decode(format!("unknown name `{name}`")))
}

fn small(number: i64) -> Result<u32, Error> {
    u32::try_from(number).map_err(decode)
}

/// Adds the values of [`ENTITY`] and then that of `folded`; the version is the one given.
pub(super) fn bind_entity(statement: Statement, entity: &StoredEntity, version: i64) -> Statement {
    statement
        .bind(&entity.id)
        .bind(&entity.tenant)
        .bind(entity.kind.as_str())
        .bind(&entity.name)
        .bind(&entity.owner)
        .bind(entity.visibility.as_str())
        .bind(entity.live_submission_id.as_deref())
        .bind(&entity.latest_submission_id)
        .bind(microseconds(entity.created))
        .bind(microseconds(entity.updated))
        .bind(entity.archived.map(microseconds))
        .bind(&entity.archived_by)
        .bind(version)
        .bind(&folded(&entity.name))
}

pub(super) fn entity(row: &Row) -> Result<StoredEntity, Error> {
    Ok(StoredEntity {
        id: row.text("id")?,
        tenant: row.text("tenant")?,
        kind: named(BundleKind::parse, &row.text("kind")?)?,
        name: row.text("name")?,
        owner: row.text("owner")?,
        visibility: named(Visibility::parse, &row.text("visibility")?)?,
        live_submission_id: row.text_or_none("live_submission_id")?,
        latest_submission_id: row.text("latest_submission_id")?,
        created: timestamp(row.number("create_time_us")?)?,
        updated: timestamp(row.number("update_time_us")?)?,
        archived: row.number_or_none("archive_time_us")?.map(timestamp).transpose()?,
        archived_by: row.text("archived_by")?,
        version: row.number("version")?,
    })
}

/// Adds the values of [`SUBMISSION`] and then those of `folded` and `description_folded`; the version is the one given.
pub(super) fn bind_submission(statement: Statement, one: &StoredSubmission, version: i64) -> Statement {
    let overridden = one.overridden.as_ref();
    let lease = one.lease.as_ref();
    let searched = [&*one.id, &one.name, &one.version_text, &one.description, &one.submitter];
    statement
        .bind(&one.id)
        .bind(&one.entity_id)
        .bind(&one.tenant)
        .bind(one.kind.as_str())
        .bind(&one.name)
        .bind(&one.version_text)
        .bind(&one.description)
        .bind(&one.submitter)
        .bind(one.status.as_str())
        .bind(one.hold_reason.as_str())
        .bind(one.attempt)
        .bind(&one.decision_id)
        .bind(&one.policy)
        .bind(&one.policy_revision)
        .bind(&one.bundle_sha256)
        .bind(as_number(one.file_size))
        .bind(one.file_count)
        .bind(microseconds(one.created))
        .bind(microseconds(one.updated))
        .bind(one.purged.map(microseconds))
        .bind(&one.review_model)
        .bind(overridden.map(|it| it.actor.as_str()))
        .bind(overridden.map(|it| it.reason.as_str()))
        .bind(overridden.map(|it| it.prior_status.as_str()))
        .bind(overridden.map(|it| microseconds(it.time)))
        .bind(one.tries)
        .bind(lease.map(|lease| lease.owner.as_str()))
        .bind(lease.map(|lease| microseconds(lease.until)))
        .bind(one.not_before.map(microseconds))
        .bind(version)
        .bind(&folded_all(&searched))
        .bind(&folded(&one.description))
}

pub(super) fn submission(row: &Row) -> Result<StoredSubmission, Error> {
    let overridden = match (row.text_or_none("override_actor")?, row.number_or_none("override_time_us")?) {
        (Some(actor), Some(time)) => Some(Override {
            actor,
            reason: row.text_or_none("override_reason")?.unwrap_or_default(),
            prior_status: named(
                SubmissionStatus::parse,
                &row.text_or_none("override_prior_status")?.unwrap_or_default(),
            )?,
            time: timestamp(time)?,
        }),
        _ => None,
    };
    let lease = match (row.text_or_none("lease_owner")?, row.number_or_none("lease_until_us")?) {
        (Some(owner), Some(until)) => Some(Lease { owner, until: timestamp(until)? }),
        _ => None,
    };
    Ok(StoredSubmission {
        id: row.text("id")?,
        entity_id: row.text("entity_id")?,
        tenant: row.text("tenant")?,
        kind: named(BundleKind::parse, &row.text("kind")?)?,
        name: row.text("name")?,
        version_text: row.text("version_text")?,
        description: row.text("description")?,
        submitter: row.text("submitter")?,
        status: named(SubmissionStatus::parse, &row.text("status")?)?,
        hold_reason: named(HoldReason::parse, &row.text("hold_reason")?)?,
        attempt: small(row.number("attempt")?)?,
        decision_id: row.text("decision_id")?,
        policy: row.text("policy")?,
        policy_revision: row.text("policy_revision")?,
        bundle_sha256: row.text("bundle_sha256")?,
        file_size: count(row.number("file_size")?),
        file_count: small(row.number("file_count")?)?,
        created: timestamp(row.number("create_time_us")?)?,
        updated: timestamp(row.number("update_time_us")?)?,
        purged: row.number_or_none("purge_time_us")?.map(timestamp).transpose()?,
        review_model: row.text("review_model")?,
        overridden,
        tries: small(row.number("tries")?)?,
        lease,
        not_before: row.number_or_none("not_before_us")?.map(timestamp).transpose()?,
        version: row.number("version")?,
    })
}

/// Adds the values of [`ATTEMPT`].
pub(super) fn bind_attempt(statement: Statement, attempt: &StoredAttempt) -> Statement {
    statement
        .bind(&attempt.submission_id)
        .bind(attempt.number)
        .bind(attempt.status.as_str())
        .bind(attempt.hold_reason.as_str())
        .bind(&json(&attempt.checks))
        .bind(&json(&attempt.coverage))
        .bind(&json(&attempt.capabilities))
        .bind(&json(&attempt.unjudged))
        .bind(&attempt.error)
        .bind(&attempt.decision_id)
        .bind(&attempt.policy_revision)
        .bind(microseconds(attempt.started))
        .bind(attempt.ended.map(microseconds))
}

pub(super) fn attempt(row: &Row) -> Result<StoredAttempt, Error> {
    Ok(StoredAttempt {
        submission_id: row.text("submission_id")?,
        number: small(row.number("number")?)?,
        status: named(SubmissionStatus::parse, &row.text("status")?)?,
        hold_reason: named(HoldReason::parse, &row.text("hold_reason")?)?,
        checks: from_json(&row.text("checks")?)?,
        coverage: from_json(&row.text("coverage")?)?,
        capabilities: from_json(&row.text("capabilities")?)?,
        unjudged: from_json(&row.text("unjudged")?)?,
        error: row.text("error")?,
        decision_id: row.text("decision_id")?,
        policy_revision: row.text("policy_revision")?,
        started: timestamp(row.number("start_time_us")?)?,
        ended: row.number_or_none("end_time_us")?.map(timestamp).transpose()?,
    })
}

/// Adds the values of [`EVENT`].
pub(super) fn bind_event(statement: Statement, event: &NewAuditEvent, number: i64, hash: &str) -> Statement {
    statement
        .bind(&event.id)
        .bind(&event.tenant)
        .bind(number)
        .bind(microseconds(event.time))
        .bind(&event.action)
        .bind(&event.actor)
        .bind(&event.resource)
        .bind(&event.reason)
        .bind(&event.detail_json)
        .bind(&event.decision_id)
        .bind(&event.policy_revision)
        .bind(&event.request_id)
        .bind(hash)
}

pub(super) fn event(row: &Row) -> Result<NewAuditEvent, Error> {
    Ok(NewAuditEvent {
        id: row.text("id")?,
        time: timestamp(row.number("time_us")?)?,
        action: row.text("action")?,
        actor: row.text("actor")?,
        tenant: row.text("tenant")?,
        resource: row.text("resource")?,
        reason: row.text("reason")?,
        detail_json: row.text("detail")?,
        decision_id: row.text("decision_id")?,
        policy_revision: row.text("policy_revision")?,
        request_id: row.text("request_id")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letter_case_and_compatibility_forms_do_not_matter_for_a_search() {
        for (text, searched) in [
            ("Straße", "STRASSE"),
            ("ΟΔΟΣ", "οδος"),
            ("ΟΔΟΣ", "οδοσ"),
            ("Ärger", "a\u{308}rger"),
            ("ﬁle", "FILE"),
            ("İstanbul", "i\u{307}stanbul"),
            ("Наука", "нАуК"),
            ("100%_done", "%_D"),
            ("a\u{1F}b", "a b"),
        ] {
            assert!(folded(text).contains(&folded(searched)), "{text} {searched}");
        }
        assert!(!folded_all(&["ab", "cd"]).contains(&folded("bc")), "a search stays in one text");
        assert!(!folded_all(&["ab", "cd"]).contains(&folded("b\u{1F}c")));
    }

    #[test]
    fn a_list_of_columns_has_as_many_marks() {
        assert_eq!(values("a, b"), "(a, b) VALUES (?, ?)");
        assert_eq!(assignments("a, b"), "a = ?, b = ?");
        assert_eq!(of_table("t", "a, b"), "t.a, t.b");
    }
}
