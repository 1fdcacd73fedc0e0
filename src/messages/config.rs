//! Settings of the message engine.

use serde::{Deserialize, Serialize};

/// How messages are checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessagesConfig {
    /// Whether asynchronous plugins run side by side rather than one after another.
    pub parallel: bool,
    /// Most findings in one answer. More are counted in `unjudged`, which fails closed; redaction covers all of them.
    pub findings_max: usize,
}

impl Default for MessagesConfig {
    fn default() -> Self {
        Self { parallel: true, findings_max: 1_000 }
    }
}

/// The cache of findings per text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheConfig {
    /// Whether findings are kept at all.
    pub enabled: bool,
    /// Most bytes it may hold, keys and bookkeeping included.
    pub bytes_max: usize,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { enabled: true, bytes_max: 16 * 1024 * 1024 }
    }
}
