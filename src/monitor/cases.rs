//! Hits become incidents, and incidents get their verdicts.
//!
//! A rule that is certain kills at once, and the judge's opinion follows. Everything else waits for the judge, or gets
//! the verdict that the policy has for its severity where there is no judge. A judge who cannot judge is never taken for
//! content: then the fail mode decides. A KILL is never withdrawn.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::event::{Attachment, Effect, Failure, Ids, JudgeRequest, Judgement, Limits, Time};
use super::incident::{KillAdvice, Summary, Verdict};
use super::mask::{mask, mask_text, mask_work};
use super::plan::Plan;
use super::scan::Hit;
use crate::decision::{
    FailMode, Incident, IncidentAction, Mode, OutputStream, Reason, Severity, Unjudged, VerdictKind,
    VerdictSource, WorkContext,
};

/// Incidents that a summary lists.
const SUMMARY_INCIDENTS_MAX: usize = 100;
/// Matches that are remembered for the cool-down.
const SEEN_MAX: usize = 256;
/// Entries of the list of what could not be judged.
const UNJUDGED_MAX: usize = 32;
/// Longest reason, in characters.
const REASON_CHARS_MAX: usize = 500;
/// Name under which the judge is listed where it could not judge.
const JUDGE: &str = "judge";

/// An incident that is kept until the end of the session.
struct Kept {
    incident: Arc<Incident>,
    /// When the match was seen.
    since: Duration,
    /// Whether it changed since it was last saved.
    is_changed: bool,
    /// The question to the judge, while it is open.
    question: Question,
    rule_description: Arc<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// None, or answered.
    Closed,
    /// It waits for its turn.
    Waiting,
    /// It is out until then.
    Asked { until: Duration },
}

/// A match that may come again.
struct Seen {
    key: u64,
    weight: Weight,
    since: Duration,
    incident: Arc<str>,
}

/// What a match leads to. A repeat is only what weighs no more, in every respect, than what was told before: who speaks
/// of a command must not make the command itself a repeat.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Weight {
    is_certain: bool,
    /// What it leads to where nobody is asked.
    verdict: VerdictKind,
    severity: Severity,
    confidence: f64,
}

impl Weight {
    fn is_covered_by(self, known: Self) -> bool {
        self.is_certain <= known.is_certain
            && self.verdict <= known.verdict
            && self.severity <= known.severity
            && self.confidence <= known.confidence
    }
}

/// Every incident of a session.
pub(super) struct Cases {
    attachment: Attachment,
    plan: Arc<Plan>,
    limits: Limits,
    ids: Box<dyn Ids>,
    kept: VecDeque<Kept>,
    seen: VecDeque<Seen>,
    total: u64,
    worst: Option<VerdictKind>,
    unjudged: Vec<Unjudged>,
    unjudged_times: Vec<u64>,
    is_gone: bool,
    /// The work context with credentials and personal data masked, once an incident needs it.
    told_work: Option<Arc<WorkContext>>,
}

impl Cases {
    pub fn new(attachment: Attachment, plan: Arc<Plan>, limits: Limits, ids: Box<dyn Ids>) -> Self {
        Self {
            attachment,
            plan,
            limits,
            ids,
            kept: VecDeque::new(),
            seen: VecDeque::new(),
            total: 0,
            worst: None,
            unjudged: Vec::new(),
            unjudged_times: Vec::new(),
            is_gone: false,
            told_work: None,
        }
    }

    /// From now on nobody can be told anything.
    pub fn client_is_gone(&mut self) {
        self.is_gone = true;
    }

    /// Whether a verdict is still out.
    pub fn is_waiting(&self) -> bool {
        self.kept.iter().any(|kept| kept.question != Question::Closed)
    }

    pub fn next_deadline(&self) -> Option<Duration> {
        let until = |kept: &Kept| match kept.question {
            Question::Asked { until } => Some(until),
            _ => None,
        };
        self.kept.iter().filter_map(until).min()
    }

    pub fn heap(&self) -> usize {
        let incident = |kept: &Kept| {
            size_of::<Incident>() + kept.incident.excerpt.len() + kept.incident.matched_text.len()
        };
        self.kept.iter().map(incident).sum::<usize>()
            + self.kept.capacity() * size_of::<Kept>()
            + self.seen.capacity() * size_of::<Seen>()
    }

    /// What rules have found in a stream.
    pub fn hits(&mut self, stream: OutputStream, hits: &mut Vec<Hit>, now: Time, effects: &mut Vec<Effect>) {
        for hit in hits.drain(..) {
            let mode = self.plan.mode(&hit.info);
            if mode != Mode::Off {
                self.hit(stream, &hit, mode, now, effects);
            }
        }
        self.ask_next(now, effects);
    }

    fn hit(&mut self, stream: OutputStream, hit: &Hit, mode: Mode, now: Time, effects: &mut Vec<Effect>) {
        let plan = self.plan.clone();
        let known_safe = plan
            .known_safe(&hit.matched, &hit.info.category, &hit.info.id, self.attachment.work.as_deref())
            .map(str::to_owned);
        let is_certain = plan.is_certain(hit.severity, hit.confidence);
        let weight = match known_safe {
            Some(_) => Weight {
                is_certain: false,
                verdict: VerdictKind::Safe,
                severity: Severity::Low,
                confidence: 0.0,
            },
            None => Weight {
                is_certain,
                verdict: plan.verdict_of(hit.severity),
                severity: hit.severity,
                confidence: hit.confidence,
            },
        };
        let key = key_of(stream, hit);
        if self.is_repeat(key, weight, now) {
            return;
        }
        self.total += 1;
        let kills = is_certain || plan.verdict_of(hit.severity) == VerdictKind::Kill;
        if self.total > self.limits.incidents_max && !(kills && self.worst < Some(VerdictKind::Kill)) {
            self.note_unjudged(hit.severity, Reason::Limit, "more incidents than one session reports", false);
            return;
        }
        let incident = self.incident(stream, hit, mode, now);
        let id = incident.id.clone();
        self.seen.push_back(Seen { key, weight, since: now.monotonic, incident: id.clone() });
        let is_shadow = mode == Mode::Shadow;
        let asks = self.attachment.has_judge && !is_shadow && known_safe.is_none();
        let question = if asks { Question::Waiting } else { Question::Closed };
        self.kept.push_back(Kept {
            incident: Arc::new(incident),
            since: now.monotonic,
            is_changed: false,
            question,
            rule_description: hit.info.description.clone(),
        });
        let first = match known_safe {
            Some(reason) => {
                Some((VerdictKind::Safe, VerdictSource::Policy, format!("known to be safe: {reason}")))
            }
            None if is_certain => {
                Some((VerdictKind::Kill, VerdictSource::Rule, hit.info.description.to_string()))
            }
            None if !asks => {
                let reason = format!("{} ({})", hit.info.description, hit.severity);
                Some((plan.verdict_of(hit.severity), VerdictSource::Policy, reason))
            }
            None => None,
        };
        let verdict =
            first.and_then(|(kind, source, reason)| self.decide(&id, kind, source, reason, !asks, now));
        let at = self.kept.len() - 1;
        effects.push(Effect::Incident(self.kept[at].incident.clone()));
        effects.push(Effect::Save(self.kept[at].incident.clone()));
        self.kept[at].is_changed = false;
        effects.extend(verdict.map(Effect::Verdict));
        let waiting = self.kept.iter().filter(|kept| kept.question == Question::Waiting).count();
        if waiting > self.limits.questions_max {
            self.not_judged(&id, Reason::Limit, "too many questions wait for the judge", now, effects);
        }
        self.forget_old(effects);
    }

    /// The work context as incidents tell and keep it, and as the judge reads it. Masking does not change from one incident
    /// to the next, so it is done once.
    fn told_work(&mut self) -> Option<Arc<WorkContext>> {
        if self.told_work.is_none() {
            let masked = self.attachment.work.as_deref().map(|work| mask_work(&self.plan.scanner, work));
            self.told_work = masked.map(Arc::new);
        }
        self.told_work.clone()
    }

    fn incident(&mut self, stream: OutputStream, hit: &Hit, mode: Mode, now: Time) -> Incident {
        let masked = mask(&self.plan.scanner, hit, &hit.info.category);
        Incident {
            id: self.ids.next(),
            session_id: self.attachment.session_id.clone(),
            time: now.wall,
            rule_id: hit.info.id.clone(),
            category: hit.info.category.clone(),
            severity: hit.severity,
            stream,
            offset: hit.offset,
            matched_text: masked.matched,
            excerpt: masked.excerpt.into(),
            verdict: None,
            reason: String::new(),
            source: None,
            action: None,
            latency: None,
            false_positive: false,
            false_positive_reason: String::new(),
            work: self.told_work(),
            decision_id: self.ids.next(),
            policy_revision: self.attachment.policy_revision.clone(),
            repeats: 0,
            context: self.attachment.context.clone(),
            shadow: mode == Mode::Shadow,
        }
    }

    /// Whether the same, or worse, was seen within the cool-down; it is counted then.
    fn is_repeat(&mut self, key: u64, weight: Weight, now: Time) -> bool {
        let cooldown = self.plan.cooldown();
        self.seen.retain(|seen| now.monotonic < seen.since + cooldown);
        while self.seen.len() >= SEEN_MAX {
            self.seen.pop_front();
        }
        let covers = |seen: &&Seen| seen.key == key && weight.is_covered_by(seen.weight);
        let Some(seen) = self.seen.iter().find(covers) else { return false };
        if let Some(kept) = self.kept.iter_mut().rev().find(|kept| kept.incident.id == seen.incident) {
            Arc::make_mut(&mut kept.incident).repeats += 1;
            kept.is_changed = true;
        }
        true
    }

    /// Asks as many questions as may be out at once.
    fn ask_next(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let mut out = self.kept.iter().filter(|kept| matches!(kept.question, Question::Asked { .. })).count();
        for kept in &mut self.kept {
            if out >= self.limits.judges_max {
                break;
            }
            if kept.question == Question::Waiting {
                out += 1;
                kept.question = Question::Asked { until: now.monotonic + self.limits.judge_timeout };
                effects.push(Effect::Ask(Box::new(JudgeRequest {
                    incident: kept.incident.clone(),
                    rule_description: kept.rule_description.clone(),
                    timeout: self.limits.judge_timeout,
                })));
            }
        }
    }

    /// The judge has answered. An answer that nobody waits for any more is dropped: its time was up, and the fail mode
    /// has decided.
    pub fn judged(
        &mut self,
        id: &str,
        result: Result<Judgement, Failure>,
        now: Time,
        effects: &mut Vec<Effect>,
    ) {
        let Some(kept) = self.kept.iter_mut().find(|kept| &*kept.incident.id == id) else { return };
        if kept.question == Question::Closed {
            return;
        }
        match result {
            Ok(judgement) => {
                kept.question = Question::Closed;
                let id = kept.incident.id.clone();
                let reason = mask_text(&self.plan.scanner, &short(&judgement.reason));
                let verdict = self.decide(&id, judgement.verdict, VerdictSource::Judge, reason, true, now);
                self.tell(&id, verdict, effects);
            }
            Err(failure) => {
                let id = kept.incident.id.clone();
                self.not_judged(&id, failure.reason, &failure.detail, now, effects);
            }
        }
        self.ask_next(now, effects);
    }

    pub fn timer(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let is_late =
            |kept: &&Kept| matches!(kept.question, Question::Asked { until } if until <= now.monotonic);
        let late: Vec<Arc<str>> =
            self.kept.iter().filter(is_late).map(|kept| kept.incident.id.clone()).collect();
        for id in &late {
            self.not_judged(id, Reason::Timeout, "the judge did not answer in time", now, effects);
        }
        if !late.is_empty() {
            self.ask_next(now, effects);
        }
    }

    /// Nobody waits for the judge any longer.
    pub fn give_up(&mut self, reason: Reason, detail: &str, now: Time, effects: &mut Vec<Effect>) {
        let open = self.kept.iter().filter(|kept| kept.question != Question::Closed);
        let open: Vec<Arc<str>> = open.map(|kept| kept.incident.id.clone()).collect();
        for id in &open {
            self.not_judged(id, reason, detail, now, effects);
        }
    }

    fn not_judged(
        &mut self,
        id: &Arc<str>,
        reason: Reason,
        detail: &str,
        now: Time,
        effects: &mut Vec<Effect>,
    ) {
        let Some(kept) = self.kept.iter_mut().find(|kept| kept.incident.id == *id) else { return };
        if kept.question == Question::Closed {
            return;
        }
        kept.question = Question::Closed;
        let severity = kept.incident.severity;
        self.note_unjudged(severity, reason, detail, true);
        let verdict = match self.plan.fail_mode(severity) {
            FailMode::Closed => VerdictKind::Kill,
            FailMode::Ask => VerdictKind::Warn,
            FailMode::Open => VerdictKind::Safe,
        };
        let told = format!("not judged: {detail}");
        let verdict = self.decide(id, verdict, VerdictSource::FailMode, told, true, now);
        self.tell(id, verdict, effects);
    }

    fn note_unjudged(&mut self, severity: Severity, reason: Reason, detail: &str, is_judge: bool) {
        let one = Unjudged {
            plugin: if is_judge { JUDGE.into() } else { "monitor".into() },
            reason,
            detail: short(detail),
            // What is beyond the limit of a session was found, and only not reported again.
            fail_mode: if is_judge { self.plan.fail_mode(severity) } else { FailMode::Ask },
            shadow: false,
        };
        // Each counts, also where the list has no room for another way of saying it.
        let alike = |known: &&Unjudged| known.plugin == one.plugin && known.fail_mode == one.fail_mode;
        let known = self.unjudged.iter().position(|known| *known == one);
        let is_full = self.unjudged.len() >= UNJUDGED_MAX;
        match known.or_else(|| self.unjudged.iter().position(|known| alike(&known)).filter(|_| is_full)) {
            Some(at) => self.unjudged_times[at] += 1,
            None => {
                self.unjudged.push(one);
                self.unjudged_times.push(1);
            }
        }
    }

    /// Writes a verdict into its incident, which keeps the strongest. `None` where nobody is to be told.
    fn decide(
        &mut self,
        id: &Arc<str>,
        kind: VerdictKind,
        source: VerdictSource,
        reason: String,
        is_final: bool,
        now: Time,
    ) -> Option<Verdict> {
        let is_gone = self.is_gone;
        let kept = self.kept.iter_mut().rev().find(|kept| kept.incident.id == *id)?;
        let since = kept.since;
        let passed = self.ids.passed(now.monotonic);
        kept.is_changed = true;
        let incident = Arc::make_mut(&mut kept.incident);
        if incident.verdict.is_none_or(|known| kind > known) {
            incident.verdict = Some(kind);
            incident.reason = reason.clone();
            incident.source = Some(source);
            // Rules and the policy answer while the chunk is looked at, whose time is that of its receipt.
            let scanning = match source {
                VerdictSource::Rule | VerdictSource::Policy => passed,
                VerdictSource::Judge | VerdictSource::FailMode => Duration::ZERO,
            };
            incident.latency = Some(now.monotonic.saturating_sub(since) + scanning);
            incident.action = Some(match kind {
                _ if incident.shadow => IncidentAction::None,
                VerdictKind::Safe => IncidentAction::None,
                _ if is_gone => IncidentAction::Error,
                VerdictKind::Warn => IncidentAction::Warned,
                VerdictKind::Kill => IncidentAction::KillAdvised,
            });
        } else if source == VerdictSource::Judge {
            // The stronger one stands, and who reads of it learns what the judge thought.
            incident.reason = format!("{} (the judge said {kind}: {reason})", incident.reason);
        }
        if incident.shadow {
            return None;
        }
        self.worst = self.worst.max(Some(kind));
        Some(Verdict {
            incident_id: id.clone(),
            verdict: kind,
            reason,
            source,
            is_final,
            kill: (kind == VerdictKind::Kill).then_some(KillAdvice::STANDARD),
            decision_id: incident.decision_id.clone(),
        })
    }

    fn tell(&mut self, id: &Arc<str>, verdict: Option<Verdict>, effects: &mut Vec<Effect>) {
        effects.extend(verdict.map(Effect::Verdict));
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.incident.id == *id) {
            kept.is_changed = false;
            effects.push(Effect::Save(kept.incident.clone()));
        }
    }

    /// Saves what changed since it was last saved, such as counts of repeats.
    pub fn save_changed(&mut self, effects: &mut Vec<Effect>) {
        for kept in self.kept.iter_mut().filter(|kept| kept.is_changed) {
            kept.is_changed = false;
            effects.push(Effect::Save(kept.incident.clone()));
        }
    }

    /// Lets go of the oldest incidents that nobody waits for, beyond those that the summary lists.
    fn forget_old(&mut self, effects: &mut Vec<Effect>) {
        while self.kept.len() > SUMMARY_INCIDENTS_MAX {
            let Some(at) = self.kept.iter().position(|kept| kept.question == Question::Closed) else {
                return;
            };
            if let Some(kept) = self.kept.remove(at)
                && kept.is_changed
            {
                effects.push(Effect::Save(kept.incident));
            }
        }
    }

    /// The summary as far as it is about incidents.
    pub fn summary(&self) -> Summary {
        let skip = self.kept.len().saturating_sub(SUMMARY_INCIDENTS_MAX);
        Summary {
            bytes: 0,
            chunks: 0,
            incidents: self.kept.iter().skip(skip).map(|kept| kept.incident.clone()).collect(),
            incidents_total: self.total,
            worst: self.worst,
            unjudged: self.unjudged.clone(),
            unjudged_times: self.unjudged_times.clone(),
            policy_revision: self.attachment.policy_revision.clone(),
        }
    }
}

/// The same rule on the same text of the same stream has the same key, however the text is spaced.
fn key_of(stream: OutputStream, hit: &Hit) -> u64 {
    let mut hash = DefaultHasher::new();
    (stream as u8).hash(&mut hash);
    hit.info.id.hash(&mut hash);
    hit.matched.split_whitespace().for_each(|word| word.hash(&mut hash));
    hash.finish()
}

fn short(text: &str) -> String {
    match text.char_indices().nth(REASON_CHARS_MAX) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
