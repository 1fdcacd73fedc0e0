//! Settings of bundles: how much one may be, and what happens to uploads.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::archive::ArchiveLimits;
use crate::setting::Problem;

/// `bundles`: how much an upload may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BundlesConfig {
    /// Largest archive, in bytes.
    #[serde(with = "crate::setting::bytes")]
    pub packed_bytes_max: usize,
    /// Most bytes that all entries may unpack to, nested archives included.
    #[serde(with = "crate::setting::bytes")]
    pub unpacked_bytes_max: usize,
    /// Most entries, nested archives included.
    #[serde(with = "crate::setting::count")]
    pub entries_max: usize,
    /// Most folders and names in one path.
    #[serde(with = "crate::setting::count")]
    pub depth_max: usize,
    /// Most unpacked bytes for each packed one, over the whole archive, once 1 MiB is unpacked.
    #[serde(with = "crate::setting::count")]
    pub ratio_max: usize,
    /// How deep archives may lie in archives and still be opened.
    #[serde(with = "crate::setting::count")]
    pub nesting_max: usize,
    /// Bundles whose inline checks run at once at most; further ones wait. Each may take 128 MiB of memory.
    #[serde(with = "crate::setting::count")]
    pub checks_max: usize,
    /// Uploads under way at once at most; one more is refused at once. Each lies in a file until it is checked.
    #[serde(with = "crate::setting::count")]
    pub uploads_max: usize,
    /// How long an upload may send nothing.
    #[serde(with = "crate::setting::duration")]
    pub upload_idle_timeout: Duration,
    /// How long an upload may take, its checks not counted.
    #[serde(with = "crate::setting::duration")]
    pub upload_timeout: Duration,
    /// Age at which bytes that belong to no submission are removed. An upload is that young only between the moment in
    /// which its bytes and that in which its row is written.
    #[serde(with = "crate::setting::duration")]
    pub stray_grace: Duration,
}

impl Default for BundlesConfig {
    fn default() -> Self {
        let limits = ArchiveLimits::default();
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Self {
            packed_bytes_max: whole(limits.packed_max),
            unpacked_bytes_max: whole(limits.unpacked_max),
            entries_max: limits.entries_max,
            depth_max: limits.depth_max,
            ratio_max: whole(limits.ratio_max),
            nesting_max: limits.nesting_max as usize,
            checks_max: 2,
            uploads_max: 32,
            upload_idle_timeout: Duration::from_secs(30),
            upload_timeout: Duration::from_secs(600),
            stray_grace: Duration::from_secs(60),
        }
    }
}

impl BundlesConfig {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        const GIB: usize = 1 << 30;
        for (key, value, least, most, message) in [
            ("packed_bytes_max", self.packed_bytes_max, 1 << 10, GIB, "must be from 1KiB to 1GiB"),
            ("unpacked_bytes_max", self.unpacked_bytes_max, 1 << 10, 2 * GIB, "must be from 1KiB to 2GiB"),
            ("entries_max", self.entries_max, 1, 60_000, "must be from 1 to 60000"),
            ("depth_max", self.depth_max, 1, 256, "must be from 1 to 256"),
            ("ratio_max", self.ratio_max, 1, 1_000_000, "must be from 1 to 1000000"),
            ("nesting_max", self.nesting_max, 0, 16, "must be from 0 to 16"),
            ("checks_max", self.checks_max, 1, 256, "must be from 1 to 256"),
            ("uploads_max", self.uploads_max, 1, 10_000, "must be from 1 to 10000"),
        ] {
            if !(least..=most).contains(&value) {
                problems.push(Problem::new(key, message));
            }
        }
        for (key, value) in
            [("upload_idle_timeout", self.upload_idle_timeout), ("upload_timeout", self.upload_timeout)]
        {
            if !(Duration::from_millis(100)..=Duration::from_secs(24 * 3_600)).contains(&value) {
                problems.push(Problem::new(key, "must be from 100ms to 24h"));
            }
        }
        if self.stray_grace > Duration::from_secs(24 * 3_600) {
            problems.push(Problem::new("stray_grace", "must be at most 24h"));
        }
    }

    /// The limits of one archive.
    pub fn limits(&self) -> ArchiveLimits {
        ArchiveLimits {
            packed_max: self.packed_bytes_max as u64,
            unpacked_max: self.unpacked_bytes_max as u64,
            entries_max: self.entries_max,
            depth_max: self.depth_max,
            ratio_max: self.ratio_max as u64,
            nesting_max: u32::try_from(self.nesting_max).unwrap_or(u32::MAX),
            ..ArchiveLimits::default()
        }
    }
}

/// What happens to an upload that needs a review when no model has a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithoutKey {
    /// It is held until an administrator decides.
    #[default]
    Hold,
    /// It is approved without a review. An upload that only a review would have caught is then published.
    Approve,
}

/// `guardrails`: the review of uploads by a model, quota and retention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuardrailsConfig {
    /// Whether a model reviews what passed the inline checks. False: it is approved without; the inline checks run in any
    /// case.
    pub enabled: bool,
    /// What happens to uploads while review is on and no model has a key.
    pub without_key: WithoutKey,
    /// The model that reviews: with Anthropic a tier (`haiku`, `sonnet`, `opus`) or a model, with any other backend a
    /// model; there a tier stands for `llm.model`.
    pub review_model: String,
    /// Time for one review, all attempts of the model together.
    #[serde(with = "crate::setting::duration")]
    pub review_timeout: Duration,
    /// Reviews under way at once at most, in this process.
    #[serde(with = "crate::setting::count")]
    pub reviews_max: usize,
    /// Blocked uploads (`blocked_inline`, `blocked_llm`, `review_error`) that one submitter may have within 24 hours; 0 is
    /// no limit.
    #[serde(with = "crate::setting::count")]
    pub blocked_quota_per_day: usize,
    /// Days after which the bytes of blocked bundles are removed; 0 keeps them for ever. Row, hash and size stay.
    #[serde(with = "crate::setting::count")]
    pub blocked_bundle_ttl_days: usize,
    /// Seconds after the end of its last lease at which a review that never ended becomes `review_error`; 0 is never.
    #[serde(with = "crate::setting::count")]
    pub stuck_review_grace_seconds: usize,
    /// How long a review belongs to the worker that took it, unless it says that it still works on it, which it does
    /// three times in that time.
    #[serde(with = "crate::setting::duration")]
    pub review_lease: Duration,
}

impl Default for GuardrailsConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            without_key: WithoutKey::Hold,
            review_model: "haiku".to_owned(),
            review_timeout: Duration::from_secs(120),
            reviews_max: 4,
            blocked_quota_per_day: 50,
            blocked_bundle_ttl_days: 30,
            stuck_review_grace_seconds: 1_800,
            review_lease: Duration::from_secs(60),
        }
    }
}

impl GuardrailsConfig {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        if self.review_model.trim().is_empty() || !self.review_model.chars().all(|c| c.is_ascii_graphic()) {
            problems.push(Problem::new("review_model", "must be visible ASCII characters"));
        }
        if !(Duration::from_millis(100)..=Duration::from_secs(3_600)).contains(&self.review_timeout) {
            problems.push(Problem::new("review_timeout", "must be from 100ms to 1h"));
        }
        if !(1..=1_000).contains(&self.reviews_max) {
            problems.push(Problem::new("reviews_max", "must be from 1 to 1000"));
        }
        if self.blocked_bundle_ttl_days > 36_500 {
            problems.push(Problem::new("blocked_bundle_ttl_days", "must be at most 36500"));
        }
        if self.stuck_review_grace_seconds > 30 * 24 * 3_600 {
            problems.push(Problem::new("stuck_review_grace_seconds", "must be at most 2592000"));
        }
        if !(Duration::from_millis(300)..=Duration::from_secs(3_600)).contains(&self.review_lease) {
            problems.push(Problem::new("review_lease", "must be from 300ms to 1h"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_that_are_promised() {
        let (bundles, guardrails) = (BundlesConfig::default(), GuardrailsConfig::default());
        assert_eq!(bundles.limits(), ArchiveLimits::default());
        assert!(guardrails.enabled && guardrails.without_key == WithoutKey::Hold);
        assert_eq!((guardrails.blocked_quota_per_day, guardrails.blocked_bundle_ttl_days), (50, 30));
        assert_eq!(
            (guardrails.stuck_review_grace_seconds, guardrails.review_model.as_str()),
            (1_800, "haiku")
        );
        let mut problems = Vec::new();
        bundles.check(&mut problems);
        guardrails.check(&mut problems);
        assert_eq!(problems, []);
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let keys =
            |problems: Vec<Problem>| problems.into_iter().map(|problem| problem.key).collect::<Vec<_>>();
        let mut problems = Vec::new();
        BundlesConfig {
            packed_bytes_max: 0,
            entries_max: 0,
            checks_max: 0,
            stray_grace: Duration::from_secs(90_000),
            ..BundlesConfig::default()
        }
        .check(&mut problems);
        assert_eq!(keys(problems), ["packed_bytes_max", "entries_max", "checks_max", "stray_grace"]);
        let mut problems = Vec::new();
        GuardrailsConfig {
            review_model: " ".to_owned(),
            review_timeout: Duration::ZERO,
            reviews_max: 0,
            review_lease: Duration::ZERO,
            ..GuardrailsConfig::default()
        }
        .check(&mut problems);
        assert_eq!(keys(problems), ["review_model", "review_timeout", "reviews_max", "review_lease"]);
    }
}
