//! What one record holds, and how it becomes a line.
//!
//! Records borrow from the request and its answer: they live only until they are written into the buffer.

use std::borrow::Cow;
use std::cell::RefCell;

use jiff::Timestamp;
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use crate::decision::{
    BundleKind, Decision, Finding, HoldReason, Hook, IncidentAction, InterceptorOutcome, OutputStream,
    RiskLevel, SubmissionStatus, Unjudged, VerdictKind, VerdictSource,
};

/// Findings and unjudged checks written per record; `findings_total` tells how many there were.
const ITEMS_MAX: usize = 100;

/// Bytes written of a value that a caller chose.
const CALLER_BYTES_MAX: usize = 256;

/// Roles and evasions written per list.
const NAMES_MAX: usize = 16;

/// One decision, as it is audited. Never holds matched text.
#[derive(Clone, Debug, Serialize)]
pub struct AuditRecord<'a> {
    /// When the decision was made; written as RFC 3339 in UTC with milliseconds.
    #[serde(serialize_with = "milliseconds")]
    pub time: Timestamp,
    /// Id of the decision, as the caller got it.
    pub decision_id: &'a str,
    /// Name of the policy that decided.
    #[serde(serialize_with = "cut")]
    pub policy: &'a str,
    /// Revision of that policy.
    pub policy_revision: &'a str,
    /// Which RPC.
    pub rpc: &'static str,
    /// The decision.
    pub decision: Decision,
    /// Risk as a word.
    pub risk_level: RiskLevel,
    /// Risk from 0.0 to 1.0.
    pub risk_score: f64,
    /// Who asked.
    pub caller: Caller<'a>,
    /// Everything found; the first 100 are written.
    #[serde(serialize_with = "findings")]
    pub findings: &'a [&'a Finding],
    /// How many findings there were.
    pub findings_total: usize,
    /// Checks that did not run to their end; the first 100 are written.
    #[serde(serialize_with = "unjudged")]
    pub unjudged: &'a [Unjudged],
    /// The tool call or hook it was about; left out for messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interception: Option<Interception<'a>>,
    /// The incident in a watched stream it was about; left out for everything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incident: Option<IncidentLine<'a>>,
    /// The upload it was about; left out for everything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundleLine<'a>>,
    /// From the call taken to the answer ready, in microseconds; for an incident from the match to the verdict.
    pub elapsed_us: u64,
}

/// The incident that a decision was about.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct IncidentLine<'a> {
    /// Its id, as the caller got it.
    pub id: &'a str,
    /// The session it happened in.
    #[serde(serialize_with = "cut")]
    pub session_id: &'a str,
    /// The stream it was seen on.
    pub stream: OutputStream,
    /// Raw bytes of that stream before the match.
    pub offset: u64,
    /// The strongest verdict; left out when none has landed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictKind>,
    /// Who gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<VerdictSource>,
    /// What was done about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<IncidentAction>,
}

/// The upload that a decision was about. Its name and the names of its files are text of the uploader, and left out.
#[derive(Clone, Debug, Serialize)]
pub struct BundleLine<'a> {
    /// Id of the submission; left out in a dry run.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub submission_id: &'a str,
    /// Id of the entity; left out in a dry run of a new one.
    #[serde(serialize_with = "cut", skip_serializing_if = "str::is_empty")]
    pub entity_id: &'a str,
    /// Who uploaded, masked as what a caller chose.
    #[serde(serialize_with = "cut")]
    pub submitter: Cow<'a, str>,
    /// What it is.
    pub kind: BundleKind,
    /// The verdict so far.
    pub status: SubmissionStatus,
    /// Why it is held.
    pub hold_reason: HoldReason,
    /// Hash over its sorted files, hex; left out when the archive could not be opened.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub bundle_sha256: &'a str,
    /// Size of the archive as uploaded, in bytes.
    pub file_size: u64,
    /// Whether nothing was to come of it but the answer.
    pub dry_run: bool,
}

/// What a decision of the interceptors was about, and what each of them did.
#[derive(Clone, Debug, Serialize)]
pub struct Interception<'a> {
    /// The hook.
    pub hook: Hook,
    /// Normalised name of the tool, masked as what a caller chose; left out on hooks without one.
    #[serde(serialize_with = "cut", skip_serializing_if = "str::is_empty")]
    pub tool: Cow<'a, str>,
    /// Id of the tool call, masked as well.
    #[serde(serialize_with = "cut", skip_serializing_if = "str::is_empty")]
    pub tool_call_id: Cow<'a, str>,
    /// Whether nothing was to come of it but the report.
    pub dry_run: bool,
    /// Whether anything was changed.
    pub mutated: bool,
    /// Interceptors that did more than pass, in running order; the first 100 are written.
    #[serde(serialize_with = "runs", skip_serializing_if = "<[_]>::is_empty")]
    pub interceptors: &'a [InterceptorRun<'a>],
    /// Notes that interceptors asked to be written here, as their authors wrote them; the first 16 are written.
    #[serde(serialize_with = "names", skip_serializing_if = "<[_]>::is_empty")]
    pub notes: &'a [&'a str],
}

/// What one interceptor did.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct InterceptorRun<'a> {
    /// Its id.
    pub id: &'a str,
    /// What it did, or in shadow would have done.
    pub outcome: InterceptorOutcome,
    /// Whether it only shadows.
    pub shadow: bool,
    /// One line for a person; masked by who wrote it.
    #[serde(serialize_with = "cut", skip_serializing_if = "str::is_empty")]
    pub summary: &'a str,
}

/// Who asked. The caller chose all of these values but its name and roles, so each is masked by whoever fills it in and
/// cut to 256 bytes; empty ones are left out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Caller<'a> {
    /// The name that its credential proves; left out without one.
    #[serde(serialize_with = "cut", skip_serializing_if = "str::is_empty")]
    pub name: &'a str,
    /// Roles that the caller holds, the first 16.
    #[serde(serialize_with = "names", skip_serializing_if = "<[_]>::is_empty")]
    pub roles: &'a [&'a str],
    /// Tenant.
    #[serde(serialize_with = "cut", skip_serializing_if = "str::is_empty")]
    pub tenant: Cow<'a, str>,
    /// Which agent.
    #[serde(serialize_with = "cut", skip_serializing_if = "str::is_empty")]
    pub agent_id: Cow<'a, str>,
    /// Which of its sessions.
    #[serde(serialize_with = "cut", skip_serializing_if = "str::is_empty")]
    pub session_key: Cow<'a, str>,
    /// The caller's own id for the request.
    #[serde(serialize_with = "cut", skip_serializing_if = "str::is_empty")]
    pub request_id: Cow<'a, str>,
}

#[derive(Serialize)]
struct FindingLine<'a> {
    plugin: &'a str,
    rule_id: &'a str,
    #[serde(serialize_with = "cut")]
    category: &'a str,
    severity: &'static str,
    score: f64,
    message_index: u32,
    #[serde(serialize_with = "cut")]
    path: &'a str,
    start: usize,
    end: usize,
    #[serde(serialize_with = "names", skip_serializing_if = "<[_]>::is_empty")]
    evasions: &'a [&'static str],
    shadow: bool,
    suppressed: bool,
}

#[derive(Serialize)]
struct UnjudgedLine<'a> {
    plugin: &'a str,
    reason: &'static str,
    failed_open: bool,
}

/// Writes `record` as one line, its end included, and gives it to `use_line`.
pub(super) fn with_line<T>(record: &AuditRecord<'_>, use_line: impl FnOnce(&[u8]) -> T) -> T {
    /// What a thread keeps between records; a record with many findings must not hold its memory for ever.
    const SCRATCH_BYTES_KEPT: usize = 16 * 1024;
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    // Taken out, so that a record made while another is written would only cost an allocation.
    let mut line = SCRATCH.take();
    line.clear();
    serde_json::to_writer(&mut line, record)
        .expect("a record has string keys, and writing to memory cannot fail");
    line.push(b'\n');
    let result = use_line(&line);
    line.shrink_to(SCRATCH_BYTES_KEPT);
    SCRATCH.set(line);
    result
}

fn milliseconds<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{time:.3}"))
}

/// Writes at most `CALLER_BYTES_MAX` bytes, ending on a character boundary.
fn cut<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text[..text.floor_char_boundary(CALLER_BYTES_MAX)])
}

fn names<S: Serializer>(names: &[&str], serializer: S) -> Result<S::Ok, S::Error> {
    let cut = |name: &&str| name[..name.floor_char_boundary(CALLER_BYTES_MAX)].to_owned();
    serializer.collect_seq(names.iter().take(NAMES_MAX).map(cut))
}

fn findings<S: Serializer>(findings: &[&Finding], serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(findings.len().min(ITEMS_MAX)))?;
    for finding in findings.iter().take(ITEMS_MAX) {
        list.serialize_element(&FindingLine {
            plugin: &finding.plugin,
            rule_id: &finding.rule_id,
            category: finding.category.as_str(),
            severity: finding.severity.as_str(),
            score: finding.score,
            message_index: finding.span.message_index,
            path: &finding.span.path,
            start: finding.span.start,
            end: finding.span.end,
            evasions: &finding.evasions,
            shadow: finding.shadow,
            suppressed: finding.suppressed,
        })?;
    }
    list.end()
}

fn runs<S: Serializer>(runs: &[InterceptorRun<'_>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(runs.iter().take(ITEMS_MAX))
}

fn unjudged<S: Serializer>(unjudged: &[Unjudged], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(unjudged.iter().take(ITEMS_MAX).map(|unjudged| UnjudgedLine {
        plugin: &unjudged.plugin,
        reason: unjudged.reason.as_str(),
        failed_open: unjudged.failed_open(),
    }))
}
