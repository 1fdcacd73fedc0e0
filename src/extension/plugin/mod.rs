//! Plugins of CheckMessages that live elsewhere: an HTTP endpoint with JSON of its own, or an `ExtensionService`.
//!
//! They share everything with interceptors that live elsewhere: which addresses may be called, credentials, attempts, the
//! circuit breaker and the limits. What they answer is foreign: read strictly (`mapping`, `check`), and listed as not
//! judged where it cannot be understood.

mod check;
mod config;
mod found;
mod mapping;

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};

pub use config::{AnswerMapping, OffsetUnit, PluginConfig, PluginKind, RequestMapping};

use super::attempts::Remote;
use super::failure::Failure;
use crate::decision::Reason;
use crate::messages::{
    Descriptor, Found, Greeting, Introduction, Plugin, PluginAnswer, PluginCall, PluginError, PluginFuture,
};
use crate::outbound::Until;
use crate::pb::v1;
use crate::rules::Role;
use found::Seen;
use mapping::Around;

/// What a plugin is described as when the settings do not say.
const GENERAL: &str = "A check that lives elsewhere.";

/// Most categories that a log line names.
const SHOWN_MAX: usize = 50;
/// Longest name in a log line, in characters.
const SHOWN_CHARS_MAX: usize = 64;

/// One plugin of the settings.
pub(super) struct External {
    descriptor: Descriptor,
    config: PluginConfig,
    remote: Arc<Remote>,
}

/// One text of the messages.
#[derive(Clone)]
struct Text<'a> {
    message_index: u32,
    path: String,
    role: Role,
    text: &'a str,
}

impl External {
    pub(super) fn new(name: &str, config: &PluginConfig, remote: Arc<Remote>) -> Self {
        let description = if config.description.is_empty() { GENERAL } else { &config.description };
        let descriptor = Descriptor {
            name: name.into(),
            description: description.into(),
            version: config.version.as_str().into(),
        };
        Self { descriptor, config: config.clone(), remote }
    }

    async fn ask(&self, call: &PluginCall<'_>) -> PluginAnswer {
        match self.config.kind {
            PluginKind::Grpc => self.ask_extension(call).await.map_err(error_of),
            PluginKind::Http if self.config.request.messages.is_empty() => Ok(self.ask_each(call).await),
            PluginKind::Http => self.ask_at_once(call).await.map_err(error_of),
        }
    }

    /// `ExtensionService.Check`.
    async fn ask_extension(&self, call: &PluginCall<'_>) -> Result<Found, Failure> {
        let sent: Option<&v1::CheckMessagesRequest> = call.sent.and_then(|sent| sent.downcast_ref());
        let rebuilt = || call.messages.iter().map(check::message_of).collect();
        let message = v1::CheckRequest {
            messages: sent.map_or_else(rebuilt, |sent| sent.messages.clone()),
            context: sent.and_then(|sent| sent.context.clone()),
            direction: direction(call).into(),
            decision_id: call.decision_id.to_owned(),
        };
        let (answer, who) = self.remote.check(&message, self.attempts_max(), call.until).await?;
        let categories = who.as_ref().map_or(&[][..], |who| &who.categories);
        let checked = check::read(answer, categories, call.messages)?;
        let finding = |(seen, field): (Seen, Option<(u32, String)>)| {
            let field = field.as_ref().map(|(index, path)| (*index, path.as_str()));
            seen.into_finding(&self.descriptor.name, call.messages, field)
        };
        Ok(Found {
            findings: checked.seen.into_iter().map(finding).collect(),
            unjudged: checked.unjudged.into_iter().map(error_of).collect(),
            version: who.filter(|who| !who.version.is_empty()).map(|who| who.version.as_str().into()),
        })
    }

    /// One post for all texts.
    async fn ask_at_once(&self, call: &PluginCall<'_>) -> Result<Found, Failure> {
        let texts = texts_of(call);
        if texts.is_empty() {
            return Ok(Found::default());
        }
        let all = texts.iter().map(|text| (text.role, text.text));
        let body = mapping::about_all(&self.config.request, all, around(call));
        let answer = self.post(&body, call.until).await?;
        let (seen, unread) = mapping::read(&self.config.answer, &answer, None)?;
        let finding = |seen: Seen| seen.into_finding(&self.descriptor.name, call.messages, None);
        Ok(Found {
            findings: seen.into_iter().map(finding).collect(),
            unjudged: unread.map(error_of).into_iter().collect(),
            version: None,
        })
    }

    /// One post for each text. What could not be judged is told beside what was found in the others.
    async fn ask_each(&self, call: &PluginCall<'_>) -> Found {
        let mut texts = texts_of(call);
        let total = texts.len();
        // The newest are kept: what comes next is decided by them.
        let left_out = total.saturating_sub(self.config.calls_max);
        texts.drain(..left_out);
        let asked: Vec<_> = texts.iter().map(|text| self.ask_about(text, call)).collect();
        let mut answers: Vec<_> =
            stream::iter(asked).buffer_unordered(self.config.concurrency.max(1)).collect().await;
        answers.sort_by_key(|(place, _)| *place);

        let mut found = Found::default();
        let mut failed: Vec<(Failure, usize)> = Vec::new();
        let mut fail = |failure: Failure| match failed.iter_mut().find(|(known, _)| *known == failure) {
            Some((_, count)) => *count += 1,
            None => failed.push((failure, 1)),
        };
        for ((message_index, _), answer) in answers {
            match answer {
                Ok((path, seen, unread)) => {
                    let field = Some((message_index, path));
                    found.findings.extend(
                        seen.into_iter()
                            .map(|seen| seen.into_finding(&self.descriptor.name, call.messages, field)),
                    );
                    unread.into_iter().for_each(&mut fail);
                }
                Err(failure) => fail(failure),
            }
        }
        let told = |(failure, count): (Failure, usize)| PluginError {
            reason: failure.reason,
            detail: format!("{count} of {total} texts: {}", failure.detail),
        };
        found.unjudged = failed.into_iter().map(told).collect();
        if left_out > 0 {
            let detail = format!("{left_out} of {total} texts are more than `calls_max` of this plugin");
            found.unjudged.push(PluginError { reason: Reason::Limit, detail });
        }
        found
    }

    /// One text; the answer comes with its place among the others.
    async fn ask_about<'t>(
        &self,
        text: &'t Text<'_>,
        call: &PluginCall<'_>,
    ) -> ((u32, &'t str), Result<(&'t str, Vec<Seen>, Option<Failure>), Failure>) {
        let place = (text.message_index, text.path.as_str());
        let body = mapping::about_text(&self.config.request, text.role, text.text, around(call));
        let read = |answer: Vec<u8>| mapping::read(&self.config.answer, &answer, Some(text.text));
        let answer = self.post(&body, call.until).await.and_then(read);
        (place, answer.map(|(seen, unread)| (text.path.as_str(), seen, unread)))
    }

    async fn post(&self, body: &serde_json::Value, until: Until) -> Result<Vec<u8>, Failure> {
        self.remote.post(body.to_string().into_bytes(), self.attempts_max(), until).await
    }

    fn attempts_max(&self) -> u32 {
        u32::try_from(self.config.attempts_max).unwrap_or(1)
    }
}

impl Plugin for External {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn greet(&self, until: Until) -> Greeting<'_> {
        Box::pin(async move {
            let who = self.remote.describe(until).await.map_err(error_of)?;
            Ok(who.map(|who| Introduction {
                name: shortened(&who.name),
                version: shortened(&who.version),
                categories: who
                    .categories
                    .iter()
                    .map(|category| shortened(category))
                    .take(SHOWN_MAX)
                    .collect(),
            }))
        })
    }

    fn check<'a>(&'a self, call: &'a PluginCall<'a>) -> PluginFuture<'a> {
        Box::pin(self.ask(call))
    }
}

/// What others call themselves, fit for a log line.
fn shortened(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect()
}

fn around<'c>(call: &PluginCall<'c>) -> Around<'c> {
    Around { direction: call.direction, decision_id: call.decision_id }
}

fn direction(call: &PluginCall<'_>) -> v1::Direction {
    match call.direction {
        crate::decision::Direction::Input => v1::Direction::Input,
        crate::decision::Direction::Output => v1::Direction::Output,
    }
}

fn texts_of<'a>(call: &PluginCall<'a>) -> Vec<Text<'a>> {
    let of_message = |(index, message): (usize, &'a crate::messages::Message<'a>)| {
        let fields = message.fields.iter().filter(|field| !field.text.trim().is_empty());
        fields.map(move |field| Text {
            message_index: index as u32,
            path: field.path.to_pointer().into_owned(),
            role: message.role,
            text: field.text,
        })
    };
    call.messages.iter().enumerate().flat_map(of_message).collect()
}

fn error_of(failure: Failure) -> PluginError {
    PluginError { reason: failure.reason, detail: failure.detail }
}
