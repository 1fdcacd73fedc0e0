//! Settings of the store.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::setting::Problem;

/// `store`: what outlives the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The database file. Absent: `portcullis.db` below `data_dir`. On a local disk: SQLite needs locks that work.
    pub path: Option<PathBuf>,
    /// How often changes made by other processes are looked for.
    #[serde(with = "crate::setting::duration")]
    pub poll_interval: Duration,
    /// How long one access waits for another process to finish its own.
    #[serde(with = "crate::setting::duration")]
    pub busy_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { path: None, poll_interval: Duration::from_secs(1), busy_timeout: Duration::from_secs(5) }
    }
}

impl Config {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        if self.path.as_ref().is_some_and(|path| path.file_name().is_none()) {
            problems.push(Problem::new("path", "must name a file"));
        }
        if !(Duration::from_millis(10)..=Duration::from_secs(3600)).contains(&self.poll_interval) {
            problems.push(Problem::new("poll_interval", "must be from 10ms to 1h"));
        }
        if !(Duration::from_millis(100)..=Duration::from_secs(60)).contains(&self.busy_timeout) {
            problems.push(Problem::new("busy_timeout", "must be from 100ms to 60s"));
        }
    }
}
