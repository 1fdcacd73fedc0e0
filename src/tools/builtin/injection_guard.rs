//! `builtin:injection-guard`: orders to the agent in what a tool brought back.
//!
//! A result is text of whoever wrote the page, file or log that the tool read. Under `block` what is found counts by
//! the thresholds; under `fence` the strings that hold it are wrapped so that a model can tell them for data; under
//! `report` it is only told.

use crate::detect::INJECTION;
use crate::policy::InjectionAction;
use crate::tools::interceptor::Local;
use crate::tools::redact::{Payload, fence};
use crate::tools::{Call, Changes, InterceptError, Step, detectors, verdict, view};

/// The interceptor.
pub(super) struct InjectionGuard {
    action: InjectionAction,
}

impl InjectionGuard {
    pub(super) fn new(action: InjectionAction) -> Self {
        Self { action }
    }
}

impl Local for InjectionGuard {
    fn run(&self, call: &Call<'_>) -> Result<Step, InterceptError> {
        if call.result().is_empty() {
            return Ok(Step::default());
        }
        let (found, unjudged) = detectors::scan(call, Payload::Result, call.result(), &[INJECTION])?;
        let mut found: Vec<_> = found.into_iter().filter_map(|one| view::enforced(call, one, "")).collect();
        let mut step = Step { unjudged, ..Step::default() };
        if found.is_empty() {
            return Ok(step);
        }
        let ranges: Vec<_> = found.iter().map(|one| one.span.start..one.span.end).collect();
        for finding in &mut found {
            finding.span = verdict::span_as_sent(call, finding.span.start..finding.span.end);
        }
        let count = found.len();
        match self.action {
            InjectionAction::Block => step.findings = found,
            InjectionAction::Report | InjectionAction::Off => {
                step.did.push(format!("reported {count} instruction(s) to the agent in the result"));
                step.dealt_with = found;
            }
            InjectionAction::Fence => {
                match fence(Payload::Result, call.result(), &ranges, call.decision_id) {
                    Some(result) => {
                        step.did.push(format!("fenced {count} instruction(s) to the agent in the result"));
                        step.dealt_with = found;
                        step.changes = Changes { result: Some(result), ..Changes::default() };
                    }
                    // It stands where no fence can: then it counts.
                    None => step.findings = found,
                }
            }
        }
        Ok(step)
    }
}
