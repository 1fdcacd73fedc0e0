//! Settings of the stream monitor.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Limits;
use crate::setting::Problem;

/// `streams`: limits of StreamMonitor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamsConfig {
    /// Sessions at once at most. One more is refused with UNAVAILABLE.
    #[serde(with = "crate::setting::count")]
    pub sessions_max: usize,
    /// How long a client may send nothing before its session ends; `off` for ever. An empty chunk counts as something.
    #[serde(with = "crate::setting::duration::or_off")]
    pub idle_timeout: Option<Duration>,
    /// How long the summary waits for verdicts that are still out after Detach.
    #[serde(with = "crate::setting::duration")]
    pub verdict_wait: Duration,
    /// How long the judge may take for one incident.
    #[serde(with = "crate::setting::duration")]
    pub judge_timeout: Duration,
    /// Questions to the judge that one session may have out at once; further ones wait for their turn.
    #[serde(with = "crate::setting::count")]
    pub judge_calls_max: usize,
    /// Incidents that one session reports at most. What goes beyond is counted in its summary.
    #[serde(with = "crate::setting::count")]
    pub incidents_max: usize,
}

impl Default for StreamsConfig {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            sessions_max: 4_096,
            idle_timeout: Some(Duration::from_secs(3_600)),
            verdict_wait: limits.verdict_wait,
            judge_timeout: limits.judge_timeout,
            judge_calls_max: limits.judges_max,
            incidents_max: usize::try_from(limits.incidents_max).unwrap_or(usize::MAX),
        }
    }
}

impl StreamsConfig {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        let hour = Duration::from_secs(3_600);
        if !(1..=1_000_000).contains(&self.sessions_max) {
            problems.push(Problem::new("sessions_max", "must be from 1 to 1000000"));
        }
        if self.idle_timeout.is_some_and(|timeout| timeout < Duration::from_millis(100)) {
            problems.push(Problem::new("idle_timeout", "must be at least 100ms, or off"));
        }
        if self.verdict_wait > hour {
            problems.push(Problem::new("verdict_wait", "must be at most 1h"));
        }
        if !(Duration::from_millis(1)..=hour).contains(&self.judge_timeout) {
            problems.push(Problem::new("judge_timeout", "must be from 1ms to 1h"));
        }
        if !(1..=256).contains(&self.judge_calls_max) {
            problems.push(Problem::new("judge_calls_max", "must be from 1 to 256"));
        }
        if self.incidents_max == 0 {
            problems.push(Problem::new("incidents_max", "must be at least 1"));
        }
    }

    /// The limits of one session.
    pub fn limits(&self) -> Limits {
        Limits {
            judge_timeout: self.judge_timeout,
            judges_max: self.judge_calls_max,
            verdict_wait: self.verdict_wait,
            incidents_max: self.incidents_max as u64,
            ..Limits::default()
        }
    }
}
