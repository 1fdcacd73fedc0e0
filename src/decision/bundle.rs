//! What the review of bundles says: checks and their findings, coverage, capabilities, and the two axes of a submission.
//!
//! Shared by the engine that says it, the store that keeps it as JSON, and the API that answers it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Severity;

/// Gives an enum whose values have one name each the means to be written and read by that name.
macro_rules! named {
    ($type:ident, $($value:ident => $name:literal),+ $(,)?) => {
        impl $type {
            /// Every value, in the order of the contract.
            pub const ALL: &[Self] = &[$(Self::$value),+];

            /// The snake-case name used in records, filters and metric labels.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$value => $name),+ }
            }

            /// The value of that name, in any letter case.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str().eq_ignore_ascii_case(name))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// What a bundle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BundleKind {
    /// One `SKILL.md` and its files.
    Skill,
    /// `.claude-plugin/plugin.json` and its files.
    Plugin,
    /// One or more agents: `*.md` documents and their files.
    Agent,
}

named!(BundleKind, Skill => "skill", Plugin => "plugin", Agent => "agent");

/// The verdict of the latest attempt to check a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubmissionStatus {
    /// The inline checks have not ended.
    PendingInline,
    /// An inline check blocked it.
    BlockedInline,
    /// Waiting for the review by a model, or held.
    PendingLlm,
    /// Every check passed.
    Approved,
    /// The review by a model blocked it.
    BlockedLlm,
    /// The review ended without a verdict.
    ReviewError,
    /// An administrator published it against the verdict.
    Overridden,
    /// Deleted for good; its row is a tombstone.
    Deleted,
}

named!(
    SubmissionStatus,
    PendingInline => "pending_inline",
    BlockedInline => "blocked_inline",
    PendingLlm => "pending_llm",
    Approved => "approved",
    BlockedLlm => "blocked_llm",
    ReviewError => "review_error",
    Overridden => "overridden",
    Deleted => "deleted",
);

/// Who can see an entity now: the live axis beside the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Not decided yet: its owner and administrators.
    Pending,
    /// Published: everybody.
    Approved,
    /// Blocked: its owner and administrators.
    Hidden,
    /// Taken down softly: existing installs keep it.
    Archived,
}

named!(
    Visibility,
    Pending => "pending",
    Approved => "approved",
    Hidden => "hidden",
    Archived => "archived",
);

/// Why a submission that waits for its review is held. A held one has no lease and is never reaped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// Not held.
    #[default]
    None,
    /// Review is switched on, but no model can be reached for want of a key.
    NoKey,
    /// Something that an agent could run or read was not scanned.
    Coverage,
}

named!(HoldReason, None => "none", NoKey => "no_key", Coverage => "coverage");

/// How one check ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// Nothing to object to.
    Pass,
    /// Something to improve; does not block.
    Warn,
    /// Blocks publication.
    Fail,
    /// Not run.
    #[default]
    Skipped,
}

named!(CheckStatus, Pass => "pass", Warn => "warn", Fail => "fail", Skipped => "skipped");

/// One thing that a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckFinding {
    /// Stable id of the rule.
    pub rule_id: String,
    /// Path in the bundle, `/` between names; empty when it is about the bundle as a whole.
    pub file: String,
    /// Line from 1; 0 when it is about the whole file.
    pub line: u32,
    /// What kind of thing it is, such as `code_exec`.
    pub category: String,
    /// How bad it is when certain.
    pub severity: Severity,
    /// What is wrong, one sentence for the uploader.
    pub reason: String,
    /// The line in question, shortened, secrets masked; may be empty.
    pub snippet: String,
    /// What to do about it; may be empty.
    pub fix_hint: String,
    /// Stable id of this rule on this text, for suppressions; empty where no policy was asked. Computed without a key from
    /// what matched, so it is never written to logs or audit records.
    #[serde(default)]
    pub fingerprint: String,
    /// Whether the policy has the rule on trial: it is reported and has no effect.
    #[serde(default)]
    pub shadow: bool,
    /// Whether a suppression of the policy excuses it: it is reported and has no effect.
    #[serde(default)]
    pub suppressed: bool,
}

impl CheckFinding {
    /// Whether it counts: neither on trial nor excused.
    pub const fn is_effective(&self) -> bool {
        !self.shadow && !self.suppressed
    }
}

impl Default for CheckFinding {
    /// A finding that says nothing yet, and blocks.
    fn default() -> Self {
        Self {
            rule_id: String::new(),
            file: String::new(),
            line: 0,
            category: String::new(),
            severity: Severity::High,
            reason: String::new(),
            snippet: String::new(),
            fix_hint: String::new(),
            fingerprint: String::new(),
            shadow: false,
            suppressed: false,
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// How it ended.
    pub status: CheckStatus,
    /// What it found, by file and line.
    pub findings: Vec<CheckFinding>,
}

/// What a model said about a bundle, or why it said nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlmReview {
    /// Pass or fail; skipped when it did not run or gave no verdict.
    pub status: CheckStatus,
    /// The model's own word: `safe`, `low`, `medium`, `high` or `critical`; empty without a verdict.
    pub risk_level: String,
    /// The model's summary: text of a stranger.
    pub summary: String,
    /// What the model found.
    pub findings: Vec<CheckFinding>,
    /// The model that answered; empty when none did.
    pub model: String,
    /// Version of the prompt.
    pub prompt_version: String,
    /// Why there is no verdict; empty when there is one.
    pub reason: String,
}

/// The results of every check on one bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleChecks {
    /// Whether the archive is sound.
    pub archive: CheckResult,
    /// Whether the files its kind asks for are there and well formed.
    pub manifest: CheckResult,
    /// The static scan.
    pub static_security: CheckResult,
    /// Whether description and documents say enough; never fails.
    pub quality: CheckResult,
    /// The review by a model; `None` while none has ended.
    pub llm_review: Option<LlmReview>,
    /// Placeholders such as `{{project}}` in the text files.
    pub template_placeholders: u32,
    /// Advice on placeholders; may be empty.
    pub template_recommendation: String,
}

/// How much of one file was scanned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCoverage {
    /// Path in the bundle; a file in a nested archive as `outer.zip!/inner`.
    pub path: String,
    /// Size in bytes, unpacked.
    pub bytes: u64,
    /// How many of them were scanned.
    pub bytes_scanned: u64,
    /// The engines that read it, such as `text`, `python`, `javascript`, `shell` or `secrets`.
    pub engines: Vec<String>,
    /// Why the rest was not scanned, such as `binary`, `too_large`, `too_much_work`, `undecodable` or
    /// `inert_media`; empty when all was.
    pub unscanned_reason: String,
}

/// Something the bundle is able to do, whether or not that is bad.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Capability {
    /// What, such as `network`, `process`, `write_files`, `read_env`, `hook` or `mcp_server`.
    pub kind: String,
    /// Path in the bundle.
    pub file: String,
    /// Line from 1; 0 when it is about the whole file.
    pub line: u32,
    /// What exactly: a host, a command, a path; secrets masked; may be empty.
    pub detail: String,
}
