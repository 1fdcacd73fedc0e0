//! What is asked of the engine, what came out, and why there may be no outcome.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::decision::{Direction, Unjudged};
use crate::detect::Reported;
use crate::messages::Conversation;
use crate::messages::redact::RedactedField;
use crate::policy::{CallerRole, Policy, Verdict};
use crate::rules::CountrySet;
use crate::text::OffsetEncoding;

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct CheckRequest<'a> {
    /// The messages.
    pub messages: &'a Conversation<'a>,
    /// Name of the policy; empty means `default`.
    pub policy: &'a str,
    /// Roles of the caller.
    pub caller_roles: &'a [CallerRole],
    /// Tenant of the caller; empty when there is none.
    pub tenant: &'a str,
    /// Plugins to run besides those the policy requires.
    pub plugins: &'a [String],
    /// Personal data that the caller excuses; has an effect only where the policy lets callers do so.
    pub allow_list: &'a [String],
    /// Countries whose personal data the caller wants looked for; narrows where the policy lets callers do so.
    pub countries: CountrySet,
    /// Which way the messages go.
    pub direction: Direction,
    /// Unit of the offsets in the answer.
    pub encoding: OffsetEncoding,
    /// Whether redacted messages are wanted.
    pub redact: bool,
    /// Whether matched text is wanted in clear; has an effect only where the policy reveals.
    pub reveal: bool,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
    /// Id of the decision, for plugins that ask somebody else.
    pub decision_id: &'a str,
    /// The request in the type it came in, for plugins that hand it on.
    pub sent: Option<&'a (dyn Any + Send + Sync)>,
}

/// What came out of a check.
#[derive(Debug)]
pub struct CheckOutcome {
    /// Decision and risk.
    pub verdict: Verdict,
    /// Findings in the order of the messages, at most `findings_max`.
    pub reported: Vec<Reported>,
    /// How many there are in all.
    pub findings_total: usize,
    /// What could not be judged.
    pub unjudged: Vec<Unjudged>,
    /// Fields that redaction changed.
    pub redacted: Vec<RedactedField>,
    /// How much personal data was excused, and by whom.
    pub excused: Excused,
    /// The policy that decided.
    pub policy: Arc<Policy>,
    /// Plugins that ran, with the time each took; built-in ones share one pass and so one time.
    pub ran: Vec<(Arc<str>, Duration)>,
    /// How many of them, from the first, shared that pass.
    pub joint: usize,
    /// Bytes of text scanned; texts that the cache knew are not among them.
    pub bytes: usize,
    /// Fields answered from the cache.
    pub cache_hits: u64,
    /// Fields that the cache did not know.
    pub cache_misses: u64,
}

/// How many findings of personal data were excused by an allow-list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excused {
    /// By `pii.allow_list` of the policy.
    pub by_policy: u64,
    /// By the `allow_list` of the request alone.
    pub by_request: u64,
}

/// Why a request has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// There is nothing to check.
    #[error("no messages; send at least one")]
    NoMessages,
    /// No such policy.
    #[error("unknown policy `{name}`; known: {known}")]
    UnknownPolicy {
        /// The name asked for, shortened.
        name: String,
        /// Those that this caller may use.
        known: String,
    },
    /// The policy is not for callers of this role.
    #[error("policy `{name}` is not for your role")]
    PolicyNotAllowed {
        /// Its name.
        name: String,
    },
    /// No such plugin.
    #[error("unknown plugin `{name}`; known: {known}")]
    UnknownPlugin {
        /// Index in `plugins`.
        index: usize,
        /// The name asked for, shortened.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// The plugin exists and the policy or the settings switched it off.
    #[error("plugin `{name}` is switched off")]
    PluginOff {
        /// Index in `plugins`.
        index: usize,
        /// Its id.
        name: String,
    },
    /// The caller's deadline passed first.
    #[error("the deadline passed before the messages were judged")]
    DeadlineExceeded,
}
