//! Sessions as a whole: what is found wherever chunks are cut, how verdicts follow on each other, how sessions end.

mod commands;
mod found;
mod protocol;
mod splits;
mod verdicts;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jiff::Timestamp;

use super::rules::StreamRules;
use super::*;
use crate::commands::{CommandRules, builtin_command_sources};
use crate::decision::{Incident, OutputStream, WorkContext};
use crate::detect::Scanner;
use crate::policy::{Source, Vocabulary, compile};
use crate::rules::{RuleSet, RuleSetConfig, builtin_sources, builtin_stream_sources};

static RULES: LazyLock<Arc<StreamRules>> = LazyLock::new(|| {
    let sources: Vec<_> = builtin_command_sources().collect();
    let commands = CommandRules::load(&sources).expect("the built-in rules");
    Arc::new(StreamRules::compile(&builtin_stream_sources(), Arc::new(commands)).expect("the built-in rules"))
});

static SCANNER: LazyLock<Arc<Scanner>> = LazyLock::new(|| {
    let set = RuleSet::compile(&builtin_sources(), &RuleSetConfig::default()).expect("the built-in rules");
    Arc::new(Scanner::new(Arc::new(set)))
});

/// Ids that count.
struct Counting(u64);

impl Ids for Counting {
    fn next(&mut self) -> Arc<str> {
        self.0 += 1;
        format!("id-{}", self.0).into()
    }
}

/// A plan under the built-in policy with `streams` of a file over it.
pub(in crate::monitor) fn plan(streams: &str) -> Arc<Plan> {
    let source = Source { file: "p.yaml", text: &format!("name: p\nstreams:\n  cooldown: 60s\n{streams}") };
    let set = compile(&[source], &Vocabulary::default()).unwrap_or_else(|problems| panic!("{problems}"));
    let policy = PolicyPlan::compile(set.get("p").expect("is there")).expect("patterns compile");
    Arc::new(Plan::new(RULES.clone(), SCANNER.clone(), policy))
}

fn at(ms: u64) -> Time {
    Time {
        wall: Timestamp::from_millisecond(1_700_000_000_000 + ms as i64).expect("a time"),
        monotonic: Duration::from_millis(ms),
    }
}

/// A session and all it wanted done.
struct Driven {
    session: Session,
    effects: Vec<Effect>,
    now: u64,
}

impl Driven {
    fn with(plan: Arc<Plan>, has_judge: bool, limits: Limits) -> Self {
        let mut effects = Vec::new();
        let work = WorkContext {
            goal: "tidy up".to_owned(),
            labels: [("run".to_owned(), "7".to_owned())].into(),
            ..WorkContext::default()
        };
        let attachment = Attachment {
            session_id: "s".into(),
            policy_revision: "r1".into(),
            work: Some(Arc::new(work)),
            has_judge,
            ..Attachment::default()
        };
        let session = Session::attach(attachment, plan, limits, Box::new(Counting(0)), &mut effects);
        Self { session, effects, now: 0 }
    }

    fn plain() -> Self {
        Self::with(plan(""), false, Limits::default())
    }

    fn judged() -> Self {
        Self::with(plan(""), true, Limits::default())
    }

    fn on(&mut self, event: Event<'_>) -> &mut Self {
        self.session.on(event, at(self.now), &mut self.effects);
        self
    }

    fn out(&mut self, text: &str) -> &mut Self {
        self.on(Event::Chunk { stream: OutputStream::Stdout, data: text.as_bytes(), seq: 0 })
    }

    /// Lets time pass, up to `ms`.
    fn until(&mut self, ms: u64) -> &mut Self {
        while let Some(due) = self.session.next_deadline().filter(|due| *due <= Duration::from_millis(ms)) {
            self.now = due.as_millis() as u64;
            self.on(Event::Timer);
        }
        self.now = ms;
        self
    }

    fn end(&mut self) -> &mut Self {
        self.on(Event::Detach { exit_code: Some(0) }).on(Event::Closed)
    }

    fn incidents(&self) -> Vec<&Arc<Incident>> {
        let mut incidents = Vec::new();
        for effect in &self.effects {
            if let Effect::Incident(incident) = effect {
                incidents.push(incident);
            }
        }
        incidents
    }

    /// Verdicts as `KIND source final`.
    fn verdicts(&self) -> Vec<String> {
        let verdict = |effect: &Effect| match effect {
            Effect::Verdict(v) => {
                assert_eq!(v.kill.is_some(), v.verdict == crate::decision::VerdictKind::Kill);
                Some(format!("{} {} {}", v.verdict, v.source.as_str(), v.is_final))
            }
            _ => None,
        };
        self.effects.iter().filter_map(verdict).collect()
    }

    fn summary(&self) -> Option<&Summary> {
        self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Summary(summary) => Some(summary),
            _ => None,
        })
    }

    fn asked(&self) -> Vec<Arc<str>> {
        let asked = |effect: &Effect| match effect {
            Effect::Ask(request) => Some(request.incident.id.clone()),
            _ => None,
        };
        self.effects.iter().filter_map(asked).collect()
    }

    fn ending(&self) -> Option<&Result<(), SessionError>> {
        match self.effects.last() {
            Some(Effect::End(result)) => Some(result),
            _ => None,
        }
    }
}

/// Rules that fire for a text, as `id@offset`.
fn fired(text: &str) -> Vec<String> {
    let mut driven = Driven::plain();
    driven.out(text).end();
    driven.incidents().iter().map(|incident| format!("{}@{}", incident.rule_id, incident.offset)).collect()
}
