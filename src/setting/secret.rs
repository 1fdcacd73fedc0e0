//! Secrets among the settings: they never show themselves.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A secret in the settings. Its `Debug` form is a mask; it is written out only into the tree of settings, whose report
/// masks it by the name of its key or as part of a URL.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }

    /// The secret itself, without white space around it.
    pub fn reveal(&self) -> &str {
        self.0.trim()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
