//! The ordered chain: one interceptor after the other, each on what the one before left.
//!
//! A block ends it, and nothing later lifts it: the decision only ever rises. An interceptor that fails, panics or is
//! late changes nothing and does what its fail mode says. One in shadow is run and heard, and changes nothing.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;

use super::call::Call;
use super::event::{self, Ran};
use super::interceptor::{Interceptor, Work};
use super::remote::{RemoteAnswer, RemoteHandler};
use super::step::{Changes, InterceptError, Step};
use super::verdict;
use crate::decision::{Decision, FailMode, Finding, InterceptorOutcome, Mode, Reason, Unjudged};
use crate::outbound::Until;

/// What became of a call.
#[derive(Debug, Default)]
pub(super) struct Chained {
    pub decision: Decision,
    /// Why it is blocked or asked about; of several the first of the strongest.
    pub reason: String,
    /// Everything found, with its effect.
    pub findings: Vec<Finding>,
    /// Found and dealt with.
    pub dealt_with: Vec<Finding>,
    pub unjudged: Vec<Unjudged>,
    /// Every interceptor that matched, in running order.
    pub ran: Vec<Ran>,
    /// Notes for the audit record, with the interceptor that wrote them.
    pub notes: Vec<(Arc<str>, String)>,
    /// Interceptors that would have blocked, had they not been in shadow.
    pub would_block: Vec<Arc<str>>,
}

/// The caller stopped waiting before the chain was at its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DeadlinePassed;

/// Runs `interceptors` in this order.
///
/// `offload` runs what works here off the asynchronous workers, for calls with much text.
pub(super) async fn run(
    call: &mut Call<'_>,
    interceptors: &[Arc<Interceptor>],
    offload: bool,
) -> Result<Chained, DeadlinePassed> {
    let mut chained = Chained::default();
    // The arguments that each guard saw.
    let mut seen: Vec<(&Arc<Interceptor>, u32)> = Vec::new();
    for interceptor in interceptors {
        if chained.decision == Decision::Block {
            chained.ran.push(Ran::skipped(interceptor));
            continue;
        }
        if interceptor.is_guard {
            seen.push((interceptor, call.version));
        }
        one(call, interceptor, offload, &mut chained).await?;
    }
    // What runs in the end must have been judged, whoever changed it after the guards.
    for (guard, version) in seen {
        if chained.decision != Decision::Block && version != call.version {
            let (findings, unjudged) = (chained.findings.len(), chained.unjudged.len());
            one(call, guard, offload, &mut chained).await?;
            forget_repeats(&mut chained, findings, unjudged);
        }
    }
    Ok(chained)
}

/// A guard that looks again sees what it saw before; that is told once. What it tells now has lost its place when the
/// text around it changed.
fn forget_repeats(chained: &mut Chained, findings: usize, unjudged: usize) {
    let again = chained.findings.split_off(findings);
    for finding in again {
        let is_known = chained.findings.iter().any(|known| {
            known.rule_id == finding.rule_id && (known.span == finding.span || finding.span.path.is_empty())
        });
        if !is_known {
            chained.findings.push(finding);
        }
    }
    let again = chained.unjudged.split_off(unjudged);
    for unjudged in again {
        if !chained.unjudged.contains(&unjudged) {
            chained.unjudged.push(unjudged);
        }
    }
}

/// Runs one interceptor and takes over what it says.
async fn one(
    call: &mut Call<'_>,
    interceptor: &Arc<Interceptor>,
    offload: bool,
    chained: &mut Chained,
) -> Result<(), DeadlinePassed> {
    let started = Instant::now();
    if call.deadline.is_some_and(|deadline| started >= deadline) {
        return Err(DeadlinePassed);
    }
    let answer = match &interceptor.work {
        Work::Local(local) => {
            let run = || std::panic::catch_unwind(AssertUnwindSafe(|| local.run(call)));
            let answer = if offload { tokio::task::block_in_place(run) } else { run() };
            answer.unwrap_or_else(|_| Err(panicked()))
        }
        Work::Remote(remote) => ask(call, &**remote, started, interceptor.timeout).await?,
        Work::Broken => {
            Err(InterceptError::new(Reason::Error, "it was accepted once and can no longer be compiled"))
        }
    };
    let shadow = interceptor.mode == Mode::Shadow;
    let mut ran = Ran::new(interceptor, shadow);
    match answer {
        Ok(step) => take(call, interceptor, step, &mut ran, chained),
        Err(error) => fail(interceptor, &error, &mut ran, chained),
    }
    ran.elapsed = started.elapsed();
    chained.ran.push(ran);
    Ok(())
}

fn panicked() -> InterceptError {
    InterceptError::new(Reason::Error, "it failed inside; see the log")
}

/// Asks somebody else, until the interceptor's deadline or the caller's, whichever comes first.
async fn ask(
    call: &Call<'_>,
    remote: &dyn RemoteHandler,
    started: Instant,
    timeout: Duration,
) -> Result<Result<Step, InterceptError>, DeadlinePassed> {
    let until = Until::sooner(started + timeout, call.deadline);
    let answer = AssertUnwindSafe(remote.call(call, until)).catch_unwind();
    match tokio::time::timeout_at(until.at.into(), answer).await {
        Ok(Ok(answer)) => Ok(answer.and_then(|answer| step_of(call, answer))),
        Ok(Err(_)) => Ok(Err(panicked())),
        Err(_) if call.deadline.is_some_and(|deadline| Instant::now() >= deadline) => Err(DeadlinePassed),
        Err(_) => {
            let detail = format!("no answer within {timeout:.0?}");
            Ok(Err(InterceptError::new(Reason::Timeout, detail)))
        }
    }
}

/// The step of a remote answer.
fn step_of(call: &Call<'_>, answer: RemoteAnswer) -> Result<Step, InterceptError> {
    if answer.decision >= Decision::Ask && answer.reason.trim().is_empty() {
        return Err(InterceptError::new(Reason::BadAnswer, "ASK and BLOCK need a reason"));
    }
    let params = answer.params.map(|patch| {
        let mut params = call.params().clone();
        params.apply(&patch);
        params
    });
    let changes = Changes {
        args: answer.args,
        result: answer.result,
        message: answer.message,
        params,
        metadata: answer.metadata,
    };
    let reason = event::foreign(call, &answer.reason);
    Ok(Step { decision: answer.decision, reason, changes, ..Step::default() })
}

/// Takes over what an interceptor said.
fn take(
    call: &mut Call<'_>,
    interceptor: &Interceptor,
    mut step: Step,
    ran: &mut Ran,
    chained: &mut Chained,
) {
    let shadow = ran.shadow;
    verdict::settle(call, &mut step.findings, shadow);
    verdict::settle(call, &mut step.dealt_with, shadow);
    for unjudged in &mut step.unjudged {
        unjudged.shadow |= shadow;
    }
    // What it would come to if it counted; in shadow every finding is marked, so they are looked at as if not.
    let found = strongest(call, &step.findings, shadow);
    let failed = step.unjudged.iter().max_by_key(|unjudged| contribution(unjudged, shadow));
    let mut decision = step.decision;
    let mut reason = std::mem::take(&mut step.reason);
    if let Some((of_finding, finding)) = found
        && of_finding > decision
    {
        decision = of_finding;
        reason = finding.description.to_string();
    }
    if let Some(failed) = failed
        && contribution(failed, shadow) > decision
    {
        decision = contribution(failed, shadow);
        reason = format!("could not be judged: {}", failed.detail);
    }
    let before = event::Before::of(call);
    let changed = if shadow || decision == Decision::Block {
        // A blocked call is not run, so there is nothing to change; in shadow nothing ever is.
        ran.would_change = shadow && decision != Decision::Block && !step.changes.is_empty();
        false
    } else {
        match call.apply(std::mem::take(&mut step.changes)) {
            Ok(changed) => changed,
            Err(detail) => {
                // An answer that cannot be carried out is no answer, but what it found still counts.
                chained.findings.append(&mut step.findings);
                chained.unjudged.append(&mut step.unjudged);
                raise(chained, decision, &reason);
                fail(interceptor, &InterceptError::new(Reason::BadAnswer, detail), ran, chained);
                return;
            }
        }
    };
    ran.outcome = match decision {
        Decision::Block => InterceptorOutcome::Blocked,
        Decision::Ask => InterceptorOutcome::Asked,
        _ if changed || ran.would_change => InterceptorOutcome::Modified,
        _ => InterceptorOutcome::Passed,
    };
    ran.summary = event::summary(call, ran, decision, &reason, &step, changed.then_some(&before));
    ran.decision = decision;
    if shadow {
        if decision == Decision::Block {
            chained.would_block.push(interceptor.id.clone());
        }
    } else {
        raise(chained, decision, &reason);
    }
    call.found.extend(step.findings.iter().chain(&step.dealt_with).cloned());
    chained.findings.append(&mut step.findings);
    chained.dealt_with.append(&mut step.dealt_with);
    chained.unjudged.append(&mut step.unjudged);
    chained.notes.extend(step.notes.into_iter().map(|note| (interceptor.id.clone(), note)));
}

/// The decision only ever rises; the reason is that of who raised it.
fn raise(chained: &mut Chained, decision: Decision, reason: &str) {
    if decision > chained.decision {
        chained.decision = decision;
        if decision >= Decision::Ask {
            reason.clone_into(&mut chained.reason);
        }
    }
}

/// The strongest decision of the findings; in shadow as if the interceptor were not.
fn strongest<'f>(call: &Call<'_>, findings: &'f [Finding], shadow: bool) -> Option<(Decision, &'f Finding)> {
    if !shadow {
        return verdict::strongest(call, findings);
    }
    findings
        .iter()
        .filter(|finding| !finding.suppressed)
        .map(|finding| (call.policy.decide_finding(finding), finding))
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
}

/// What an unjudged part contributes; in shadow as if the interceptor were not.
fn contribution(unjudged: &Unjudged, shadow: bool) -> Decision {
    if shadow { unjudged.fail_mode.decision() } else { unjudged.decision() }
}

/// An interceptor that has no answer.
fn fail(interceptor: &Interceptor, error: &InterceptError, ran: &mut Ran, chained: &mut Chained) {
    let unjudged = Unjudged {
        plugin: interceptor.id.clone(),
        reason: error.reason,
        detail: error.detail.clone(),
        fail_mode: interceptor.fail,
        shadow: ran.shadow,
    };
    let reason = format!("`{}` could not judge: {}", interceptor.id, error.detail);
    let decision = interceptor.fail.decision();
    ran.outcome = match error.reason {
        Reason::Timeout => InterceptorOutcome::Timeout,
        _ => InterceptorOutcome::Error,
    };
    ran.decision = decision;
    ran.summary = event::failure(&error.detail, interceptor.fail);
    if ran.shadow {
        if interceptor.fail == FailMode::Closed {
            chained.would_block.push(interceptor.id.clone());
        }
    } else {
        raise(chained, decision, &reason);
    }
    chained.unjudged.push(unjudged);
}
