//! One model: the cache, a free place, the circuit breaker, and attempts within one deadline.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::Semaphore;

use super::cache::{Answers, Key, Known, key_of_completion, key_of_question};
use super::fault::{Fault, Retry};
use super::json;
use super::observe::{self, Observer, Outcome};
use super::provider::{Asked, Content, Provider, Reading, Reply};
use super::question::{Asking, Completing};
use super::schema;
use super::wire::Wire;
use super::{
    Answer, Complete, Completed, Completion, Config, Judge, NotJudged, Purpose, Question, Trouble, Usage,
    fence,
};
use crate::outbound::{Breaker, Until, jitter, pause_before};

/// Pause before the second attempt; doubled before each further one.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
/// Longest pause that we choose ourselves.
const PAUSE_MAX: Duration = Duration::from_secs(8);
/// How much earlier than its caller a call ends, so that it ends here: breaker and metrics must learn of it.
const HEAD_START: Duration = Duration::from_millis(10);
/// Longest answer that is asked for after one was cut, in tokens.
const OUTPUT_TOKENS_MOST: u32 = 65_536;

/// A client of one model.
pub(super) struct Client {
    provider: Provider,
    wire: Wire,
    places: Semaphore,
    breaker: Breaker,
    answers: Answers,
    observer: Arc<dyn Observer>,
    timeout: Duration,
    attempts_max: u32,
    /// US dollars for a million tokens of question and answer.
    prices: (f64, f64),
}

/// What one question took so far. Told to the observer once, also when the question is given up half-way.
struct Tally<'a> {
    client: &'a Client,
    purpose: Purpose,
    started: Instant,
    usage: Usage,
    attempts: u32,
    outcome: Outcome,
}

impl<'a> Tally<'a> {
    fn new(client: &'a Client, purpose: Purpose) -> Self {
        let (usage, outcome) = (Usage::default(), Outcome::GivenUp);
        Self { client, purpose, started: Instant::now(), usage, attempts: 0, outcome }
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        let (input, output) = self.client.prices;
        let cost = self.usage.input_tokens as f64 * input + self.usage.output_tokens as f64 * output;
        self.client.observer.asked(&observe::Asked {
            backend: self.client.provider.name(),
            model: self.client.provider.model(),
            purpose: self.purpose,
            outcome: self.outcome,
            elapsed: self.started.elapsed(),
            usage: self.usage,
            cost_usd: cost / 1e6,
            attempts: self.attempts,
        });
    }
}

impl Client {
    pub(super) fn new(provider: Provider, wire: Wire, config: &Config, observer: Arc<dyn Observer>) -> Self {
        Self {
            provider,
            wire,
            places: Semaphore::new(config.concurrency_max),
            breaker: Breaker::new(config.breaker_failures, config.breaker_pause),
            answers: Answers::new(config.cache_bytes_max, config.cache_ttl),
            observer,
            timeout: config.timeout,
            attempts_max: u32::try_from(config.attempts_max).unwrap_or(1).max(1),
            prices: config.prices(),
        }
    }

    /// Asks, or takes the answer from the cache. `accept` turns a complete reply into what is kept, or refuses it.
    async fn judge<T>(
        &self,
        (purpose, key): (Purpose, Key),
        (asked, output_tokens_max): (Asked<'_>, u32),
        until: Until,
        accept: impl Fn(Content) -> Result<(T, String), Fault>,
        recall: impl Fn(&str) -> Option<T>,
    ) -> Result<Told<T>, NotJudged> {
        let mut tally = Tally::new(self, purpose);
        if let Some(known) = self.answers.get(&key)
            && let Some(value) = recall(&known.text)
        {
            tally.outcome = Outcome::Cached;
            let Known { model, usage, .. } = known;
            return Ok(Told { value, model, usage, cached: true, elapsed: tally.started.elapsed() });
        }
        let own = tally.started + self.timeout;
        let callers = until.at.checked_sub(HEAD_START).unwrap_or(until.at);
        let until = if callers < own { Until { at: callers, ..until } } else { Until::sooner(own, None) };
        match self.ask_provider(asked, output_tokens_max, until, &mut tally, accept).await {
            Ok((value, text, model)) => {
                tally.outcome = Outcome::Answered;
                let model = model.unwrap_or_else(|| self.provider.model().to_owned());
                self.answers.put(key, Known { text, model: model.clone(), usage: tally.usage });
                let (usage, elapsed) = (tally.usage, tally.started.elapsed());
                Ok(Told { value, model, usage, cached: false, elapsed })
            }
            Err(fault) => {
                tally.outcome = Outcome::NotJudged(fault.trouble);
                Err(fault.into_not_judged())
            }
        }
    }

    /// A free place, the leave of the breaker, and then attempts.
    async fn ask_provider<T>(
        &self,
        asked: Asked<'_>,
        output_tokens_max: u32,
        until: Until,
        tally: &mut Tally<'_>,
        accept: impl Fn(Content) -> Result<(T, String), Fault>,
    ) -> Result<(T, String, Option<String>), Fault> {
        let Ok(place) = tokio::time::timeout_at(until.at.into(), self.places.acquire()).await else {
            return Err(Fault::last(Trouble::Timeout, "no place was free in time, see llm.concurrency_max"));
        };
        let permit = self.breaker.enter(Instant::now()).map_err(|wait| {
            let wait = wait.as_millis();
            Fault::last(
                Trouble::CircuitOpen,
                format!("the provider failed too often in a row; tried again in {wait} ms at the earliest"),
            )
        })?;
        let outcome = self.attempts(asked, output_tokens_max, until.at, tally, accept).await;
        drop(place);
        match &outcome {
            // Anybody can call with a deadline that no model meets; that must not shut it off for others.
            Err(fault) if fault.trouble == Trouble::Timeout && until.is_callers => drop(permit),
            Err(fault) if fault.is_outage => {
                if permit.failed(Instant::now()) {
                    tracing::warn!(
                        backend = self.provider.name(),
                        trouble = fault.trouble.as_str(),
                        "the model failed too often in a row, it is left alone for a while"
                    );
                }
            }
            _ => permit.succeeded(),
        }
        outcome
    }

    async fn attempts<T>(
        &self,
        asked: Asked<'_>,
        mut output_tokens_max: u32,
        until: Instant,
        tally: &mut Tally<'_>,
        accept: impl Fn(Content) -> Result<(T, String), Fault>,
    ) -> Result<(T, String, Option<String>), Fault> {
        loop {
            tally.attempts += 1;
            let until_this = share_of(Instant::now(), until, tally.attempts, self.attempts_max);
            let attempt = self.attempt(asked, output_tokens_max);
            let outcome = match tokio::time::timeout_at(until_this.into(), attempt).await {
                Ok(outcome) => outcome,
                Err(_) => Err(Fault::passing(Trouble::Timeout, "the provider did not answer in time")),
            };
            let fault = match outcome {
                Ok(Reply { content, usage, model }) => {
                    tally.usage.add(usage);
                    match accept(content) {
                        Ok((value, text)) => return Ok((value, text, model)),
                        Err(fault) => fault,
                    }
                }
                Err(fault) => {
                    tally.usage.add(fault.usage);
                    fault
                }
            };
            if tally.attempts >= self.attempts_max {
                return Err(fault);
            }
            let pause = match fault.retry {
                Retry::Never => return Err(fault),
                Retry::Soon => pause_before(tally.attempts + 1, PAUSE_FIRST, PAUSE_MAX, jitter()),
                // Jitter on top, so that callers who were told the same do not come back together.
                Retry::After(pause) => {
                    pause.saturating_add(pause_before(2, PAUSE_FIRST / 10, PAUSE_MAX, jitter()))
                }
                Retry::Larger if output_tokens_max >= OUTPUT_TOKENS_MOST => return Err(fault),
                Retry::Larger => {
                    output_tokens_max = output_tokens_max.saturating_mul(2).min(OUTPUT_TOKENS_MOST);
                    Duration::ZERO
                }
            };
            // A pause that ends with the deadline leaves no time for an answer.
            if Instant::now().checked_add(pause).is_none_or(|then| then >= until) {
                return Err(fault);
            }
            tracing::debug!(
                backend = self.provider.name(),
                trouble = fault.trouble.as_str(),
                attempt = tally.attempts,
                pause_ms = pause.as_millis() as u64,
                "the model is asked again"
            );
            tokio::time::sleep(pause).await;
        }
    }

    /// One attempt, without a deadline of its own.
    async fn attempt(&self, asked: Asked<'_>, output_tokens_max: u32) -> Result<Reply, Fault> {
        let call = self.provider.call(asked, output_tokens_max)?;
        let answered = self.wire.send(&call).await?;
        if answered.status == reqwest::StatusCode::OK {
            self.provider.read(asked, &answered.body)
        } else {
            Err(self.provider.refused(answered.status, &answered.headers, &answered.body))
        }
    }

    /// The answer in a reply, valid under the schema.
    fn answer_in(&self, content: Content, schema: &Value) -> Result<(Value, String), Fault> {
        let value = match content {
            Content::Json(value) => value,
            Content::Text(text) => {
                let is_valid = |value: &Value| schema::validate(schema, value).is_ok();
                match json::whole(&text) {
                    Some(value) => value,
                    None if self.provider.reading() == Reading::Within => json::only_object(&text, is_valid)
                        .ok_or_else(|| {
                            Fault::last(
                                Trouble::NotJson,
                                "the model's answer is not one JSON object of the wanted shape",
                            )
                        })?,
                    None => return Err(Fault::last(Trouble::NotJson, "the model's answer is not JSON")),
                }
            }
        };
        schema::validate(schema, &value).map_err(|place| {
            Fault::last(Trouble::WrongShape, format!("the model's answer has another shape: {place}"))
        })?;
        let text = value.to_string();
        Ok((value, text))
    }
}

/// Until when an attempt may take: half of what is left, and all of it for the last one.
fn share_of(now: Instant, until: Instant, attempt: u32, attempts_max: u32) -> Instant {
    if attempt >= attempts_max { until } else { now + until.saturating_duration_since(now) / 2 }
}

/// What [`Client::judge`] tells.
struct Told<T> {
    value: T,
    model: String,
    usage: Usage,
    cached: bool,
    elapsed: Duration,
}

impl Judge for Client {
    fn ask<'a>(&'a self, question: &'a Question<'a>, until: Instant) -> Asking<'a> {
        Box::pin(async move {
            if let Err(problem) = schema::check_schema(question.schema) {
                return Err(NotJudged::new(
                    Trouble::Internal,
                    format!("the schema of the question: {problem}"),
                ));
            }
            let key = key_of_question(self.provider.name(), self.provider.model(), question);
            let prompt = fence::prompt(question);
            let asked = Asked::Structured { prompt: &prompt, schema: question.schema };
            let told = self
                .judge(
                    (question.purpose, key),
                    (asked, question.output_tokens_max),
                    Until::sooner(until, None),
                    |content| self.answer_in(content, question.schema),
                    json::whole,
                )
                .await?;
            let Told { value, model, usage, cached, elapsed } = told;
            Ok(Answer { value, model, usage, cached, elapsed })
        })
    }

    fn model(&self) -> &str {
        self.provider.model()
    }

    fn backend(&self) -> &'static str {
        self.provider.name()
    }
}

impl Complete for Client {
    fn complete<'a>(
        &'a self,
        completion: &'a Completion<'a>,
        is_answer: fn(&str) -> bool,
        until: Until,
    ) -> Completing<'a> {
        Box::pin(async move {
            let key = key_of_completion(self.provider.name(), self.provider.model(), completion);
            let accept = |content| match content {
                Content::Text(text) if is_answer(&text) => Ok((text.clone(), text)),
                _ => Err(Fault::last(
                    Trouble::WrongShape,
                    "the model's answer is none of those that it may give",
                )),
            };
            let told = self
                .judge(
                    (completion.purpose, key),
                    (Asked::Raw(completion), completion.output_tokens_max),
                    until,
                    accept,
                    |text| Some(text.to_owned()),
                )
                .await?;
            Ok(Completed { text: told.value, model: told.model, usage: told.usage, cached: told.cached })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_share_one_deadline() {
        let now = Instant::now();
        let until = now + Duration::from_secs(12);
        for (attempt, attempts_max, seconds) in [(1, 1, 12), (1, 3, 6), (2, 3, 6), (3, 3, 12)] {
            assert_eq!(share_of(now, until, attempt, attempts_max), now + Duration::from_secs(seconds));
        }
        assert_eq!(share_of(until, now, 1, 3), until, "a deadline that is over leaves nothing");
    }
}
