//! `builtin:strip-ansi`: what a terminal would carry out does not reach the agent.

use crate::tools::interceptor::Local;
use crate::tools::strip_ansi::strip_json;
use crate::tools::{Call, Changes, InterceptError, Step};

/// The interceptor.
pub(super) struct StripAnsi;

impl Local for StripAnsi {
    fn run(&self, call: &Call<'_>) -> Result<Step, InterceptError> {
        let Some(document) = call.result_document() else { return Ok(Step::default()) };
        let Some((result, strings)) = strip_json(document) else { return Ok(Step::default()) };
        Ok(Step {
            changes: Changes { result: Some(result), ..Changes::default() },
            did: vec![format!("removed terminal control sequences from {strings} string(s)")],
            ..Step::default()
        })
    }
}
