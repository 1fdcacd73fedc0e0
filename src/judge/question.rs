//! What is asked of a model, and what comes of it.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::decision::Reason;
use crate::outbound::Until;

/// Who asks. A bounded set: it is a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A rule fired in the output of a watched agent.
    Stream,
    /// A bundle waits for its review.
    Review,
    /// Messages are classified by Llama Guard.
    LlamaGuard,
}

impl Purpose {
    /// The snake-case name used in log lines.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Review => "review",
            Self::LlamaGuard => "llama_guard",
        }
    }
}

/// One piece of untrusted content. It is fenced before a model sees it.
#[derive(Clone, Debug)]
pub struct Block<'a> {
    /// What it is, in our words: letters, digits and spaces.
    pub label: &'static str,
    /// The content as it is.
    pub text: Cow<'a, str>,
}

/// A question with a structured answer.
///
/// Everything that somebody else wrote belongs into `blocks`; `instructions` are ours alone.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Who asks.
    pub purpose: Purpose,
    /// Tenant for whom it is asked; part of the key of the cache. Nobody learns from a quick answer what another asked.
    pub tenant: &'a str,
    /// Version of the instructions and the schema; part of the key of the cache.
    pub prompt_version: &'static str,
    /// What the model is to do. How the content is fenced is added to it.
    pub instructions: Cow<'a, str>,
    /// Untrusted content, in the order in which it is shown.
    pub blocks: Vec<Block<'a>>,
    /// JSON schema of the answer: an object with `additionalProperties: false`, in the subset that
    /// [`check_schema`](super::check_schema) accepts. The answer is validated against it, whatever the model promised.
    pub schema: &'a Value,
    /// Longest answer, in tokens of the model. An answer cut by it is asked for again with more.
    pub output_tokens_max: u32,
}

/// A raw prompt, for models that are trained on one form of it and answer in a form of their own.
///
/// Nothing is fenced here: whoever writes the prompt also makes the content in it harmless.
#[derive(Clone, Debug)]
pub struct Completion<'a> {
    /// Who asks.
    pub purpose: Purpose,
    /// Tenant for whom it is asked; part of the key of the cache, as with [`Question`].
    pub tenant: &'a str,
    /// Version of the prompt; part of the key of the cache.
    pub prompt_version: &'static str,
    /// Which of the two forms below is sent. Ollama takes prompts only.
    pub form: RawForm,
    /// The whole prompt, with the tokens of the model.
    pub prompt: Cow<'a, str>,
    /// The same as turns of `user` and `assistant`, for servers that write the prompt themselves.
    pub turns: Vec<(&'static str, Cow<'a, str>)>,
    /// Longest answer, in tokens of the model.
    pub output_tokens_max: u32,
}

/// How a raw prompt is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawForm {
    /// As one text.
    Prompt,
    /// As turns.
    Turns,
}

/// What a model went on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Its text: foreign, and complete.
    pub text: String,
    /// The model that wrote it, as the provider names it.
    pub model: String,
    /// What it took, over all attempts.
    pub usage: Usage,
    /// Whether it comes from the cache.
    pub cached: bool,
}

/// A judged answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The answer, valid under the schema of the question.
    pub value: Value,
    /// The model that gave it, as the provider names it.
    pub model: String,
    /// What it took, over all attempts; what it once took when it comes from the cache.
    pub usage: Usage,
    /// Whether it comes from the cache.
    pub cached: bool,
    /// From the question to the answer, waiting included.
    pub elapsed: Duration,
}

/// Tokens, as the provider counts them; 0 where it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the question.
    pub input_tokens: u64,
    /// Tokens of the answer, and of thinking where that is charged as such.
    pub output_tokens: u64,
}

impl Usage {
    /// Both together.
    pub fn add(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
    }
}

/// Why a question has no answer. Never to be taken for "safe".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotJudged {
    /// The kind of failure, as lists of unjudged checks name it.
    pub reason: Reason,
    /// What exactly happened.
    pub trouble: Trouble,
    /// One sentence for a person. Holds no secret and no text that somebody else wrote.
    pub detail: String,
}

impl NotJudged {
    /// A failure with its detail; the reason follows from what happened.
    pub fn new(trouble: Trouble, detail: impl Into<String>) -> Self {
        Self { reason: trouble.reason(), trouble, detail: detail.into() }
    }
}

impl fmt::Display for NotJudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for NotJudged {}

/// Declares what can go wrong: variant, metric label, reason.
macro_rules! troubles {
    ($($(#[$doc:meta])* $variant:ident = $label:literal, $reason:ident;)+) => {
        /// What went wrong. A bounded set: it is a metric label.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Trouble { $($(#[$doc])* $variant,)+ }

        impl Trouble {
            /// Every one, in declared order.
            pub const ALL: [Self; [$($label),+].len()] = [$(Self::$variant),+];

            /// The snake-case name used in metric labels and log lines.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }

            /// The reason under which a check that met it is listed as unjudged.
            pub const fn reason(self) -> Reason {
                match self { $(Self::$variant => Reason::$reason,)+ }
            }
        }
    };
}

troubles! {
    /// No answer in time; waiting for a free place counts.
    Timeout = "timeout", Timeout;
    /// No connection could be made.
    Unreachable = "unreachable", Unavailable;
    /// The connection broke before the end of the answer.
    Broken = "broken", Unavailable;
    /// The other side could not prove who it is.
    Tls = "tls", Unavailable;
    /// It failed too often in a row and is left alone for a while.
    CircuitOpen = "circuit_open", Unavailable;
    /// Too many calls for now.
    RateLimited = "rate_limited", Unavailable;
    /// The provider is overloaded.
    Overloaded = "overloaded", Unavailable;
    /// The provider failed.
    ServerError = "server_error", Unavailable;
    /// The account has no credit left, or a limit on spending was hit.
    Quota = "quota", Error;
    /// The key is wrong or missing, or may not do this.
    Unauthorized = "unauthorized", Error;
    /// There is no such model, or no such endpoint.
    NotFound = "not_found", Error;
    /// The provider does not accept the call.
    Rejected = "rejected", Error;
    /// The question could not be put: our own fault.
    Internal = "internal", Error;
    /// The question or its answer is larger than a limit.
    TooLarge = "too_large", Limit;
    /// The answer was cut by the limit on its tokens.
    Truncated = "truncated", BadAnswer;
    /// The model declined to answer.
    Refused = "refused", BadAnswer;
    /// A filter of the provider held the question or the answer back.
    Blocked = "blocked", BadAnswer;
    /// There is an answer, and nothing in it.
    Empty = "empty", BadAnswer;
    /// The answer is no JSON, or not one JSON object.
    NotJson = "not_json", BadAnswer;
    /// The answer is JSON of another shape.
    WrongShape = "wrong_shape", BadAnswer;
    /// The answer ended in a way that is not known.
    UnknownEnd = "unknown_end", BadAnswer;
}

/// A question under way. Dropping it gives the question up.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<Answer, NotJudged>> + Send + 'a>>;

/// A completion under way. Dropping it gives it up.
pub type Completing<'a> = Pin<Box<dyn Future<Output = Result<Completed, NotJudged>> + Send + 'a>>;

/// A model that goes on with a prompt.
pub trait Complete: Send + Sync {
    /// Completes a prompt of which `is_answer` tells whether a text is an answer: what is none is never cached.
    fn complete<'a>(
        &'a self,
        completion: &'a Completion<'a>,
        is_answer: fn(&str) -> bool,
        until: Until,
    ) -> Completing<'a>;
}

/// A model that judges.
pub trait Judge: Send + Sync {
    /// Asks, and is done by `until` or by the time-out of the settings, whichever is earlier.
    fn ask<'a>(&'a self, question: &'a Question<'a>, until: Instant) -> Asking<'a>;

    /// The model as the settings name it, tiers resolved.
    fn model(&self) -> &str;

    /// The kind of provider: `gemini`, `anthropic`, `ollama` or `openai`.
    fn backend(&self) -> &'static str;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_distinct() {
        let mut labels: Vec<&str> = Trouble::ALL.iter().map(|trouble| trouble.as_str()).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), Trouble::ALL.len());
    }
}
