//! Settings of the console.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::setting::Problem;

/// Most sessions that may be allowed.
const SESSIONS_MAX: usize = 10_000;
/// Most decisions that may be remembered: each keeps its text, masked.
const DECISIONS_MAX: usize = 100_000;
/// Longest life of a session.
const SESSION_LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);

/// `console`: pages for people, under `/console` of the HTTP side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether pages are served. Absent: where `http.listen` is a loopback address, `http.allowed_hosts` is empty and
    /// the store is the embedded one.
    #[serde(deserialize_with = "switch")]
    pub enabled: Option<bool>,
    /// A session nobody uses ends after this time.
    #[serde(with = "crate::setting::duration")]
    pub session_idle: Duration,
    /// Every session ends after this time, however it is used.
    #[serde(with = "crate::setting::duration")]
    pub session_max: Duration,
    /// Sessions at once; one more ends the one that was used least recently.
    #[serde(with = "crate::setting::count")]
    pub sessions_max: usize,
    /// Recent decisions that are remembered, masked, in memory, of each tenant; 0 remembers none.
    #[serde(with = "crate::setting::count")]
    pub decisions_max: usize,
}

/// A switch that may be absent. Flags and the environment bring it as text.
fn switch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    match Option::<serde_json::Value>::deserialize(deserializer)? {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(serde_json::Value::Bool(is_on)) => Ok(Some(is_on)),
        Some(serde_json::Value::String(text)) if text == "true" => Ok(Some(true)),
        Some(serde_json::Value::String(text)) if text == "false" => Ok(Some(false)),
        Some(_) => Err(Error::custom("must be true or false, or left out")),
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: None,
            session_idle: Duration::from_secs(30 * 60),
            session_max: Duration::from_secs(12 * 3_600),
            sessions_max: 100,
            decisions_max: 500,
        }
    }
}

impl Config {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        for (key, time) in [("session_idle", self.session_idle), ("session_max", self.session_max)] {
            if time < Duration::from_secs(1) || time > SESSION_LONGEST {
                problems.push(Problem::new(key, "must be from 1s to 720h"));
            }
        }
        if self.session_idle > self.session_max {
            problems.push(Problem::new("session_idle", "must not be longer than console.session_max"));
        }
        if !(1..=SESSIONS_MAX).contains(&self.sessions_max) {
            problems.push(Problem::new("sessions_max", format!("must be from 1 to {SESSIONS_MAX}")));
        }
        if self.decisions_max > DECISIONS_MAX {
            problems.push(Problem::new("decisions_max", format!("must be at most {DECISIONS_MAX}")));
        }
    }
}
