//! The vocabulary of an answer: findings, severities, risk, decisions, and what could not be judged.
//!
//! Pure: values and the functions between them, no IO and no clock. Every engine (messages, tools, monitor, bundles)
//! speaks these types, so that one threshold means the same for all four.

mod bundle;
mod finding;
mod hook;
mod incident;
mod order;
mod risk;
mod shown;
mod unjudged;

pub use bundle::{
    BundleChecks, BundleKind, Capability, CheckFinding, CheckResult, CheckStatus, FileCoverage, HoldReason,
    LlmReview, SubmissionStatus, Visibility,
};
pub use finding::{Category, Finding, Severity, SpanRef};
pub use hook::{Hook, InterceptorOutcome};
pub use incident::{Caller, Incident, IncidentAction, OutputStream, VerdictKind, VerdictSource, WorkContext};
pub use order::{Weight, worst_first};
pub use risk::{Decision, Mode, RiskLevel, Thresholds, risk_score};
pub use shown::{above, at_most};
pub use unjudged::{Direction, FailMode, FailModes, Reason, Unjudged};
