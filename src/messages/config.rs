//! Settings of the message engine and its cache.

use serde::{Deserialize, Serialize};

use crate::setting::Problem;

/// `messages`: limits of CheckMessages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessagesConfig {
    /// Whether asynchronous plugins run side by side rather than one after the other.
    pub parallel: bool,
    /// Findings reported for one request at most. What goes beyond is listed as unjudged, never silently dropped.
    #[serde(with = "crate::setting::count")]
    pub findings_max: usize,
}

impl Default for MessagesConfig {
    fn default() -> Self {
        Self { parallel: true, findings_max: 1000 }
    }
}

impl MessagesConfig {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        if self.findings_max == 0 {
            problems.push(Problem::new("findings_max", "must be at least 1"));
        }
    }
}

/// `cache`: findings of texts that were seen before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheConfig {
    /// Whether findings are cached at all.
    pub enabled: bool,
    /// Memory of the cache, in bytes, keys included.
    #[serde(with = "crate::setting::bytes")]
    pub bytes_max: usize,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { enabled: true, bytes_max: 16 * 1024 * 1024 }
    }
}
