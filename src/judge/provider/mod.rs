//! The providers: how each is asked, and how each answers. Pure: no network, no clock.

mod anthropic;
mod gemini;
mod ollama;
mod openai;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::config::{Backend, Config, StructuredOutput};
use super::fault::{Fault, Retry, of_status};
use super::fence::Prompt;
use super::wire::{Call, KeyHeader};
use super::{Completion, Trouble, Usage};

/// What is asked, in the forms that providers know.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked<'a> {
    /// A question with a structured answer.
    Structured { prompt: &'a Prompt, schema: &'a Value },
    /// A text to go on with.
    Raw(&'a Completion<'a>),
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) content: Content,
    pub(super) usage: Usage,
    /// The model, as the provider names it.
    pub(super) model: Option<String>,
}

/// What an answer consists of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Text(String),
    /// Already read, as the arguments of a tool are.
    Json(Value),
}

/// How answers are looked for in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// The whole text is the answer.
    Whole,
    /// The whole text, or else the only fitting object in it: servers that ignore the schema write around it.
    Within,
}

/// One kind of provider, with what of the settings it needs.
#[derive(Clone, Debug)]
pub(super) struct Provider {
    kind: Backend,
    model: String,
    structured: StructuredOutput,
    temperature: Option<f64>,
    thinking_budget: Option<i64>,
    /// Whether the limit on tokens goes by its newer name.
    is_openai_itself: bool,
}

impl Provider {
    /// The provider of these settings, which name one.
    pub(super) fn new(kind: Backend, config: &Config) -> Self {
        Self {
            kind,
            model: config.resolved_model(),
            structured: config.structured_output,
            temperature: config.temperature,
            thinking_budget: config.thinking_budget,
            is_openai_itself: config.resolved_base_url().trim_end_matches('/') == "https://api.openai.com",
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Backend::Anthropic => "anthropic",
            Backend::Ollama => "ollama",
            Backend::Openai => "openai",
            Backend::Gemini | Backend::Auto | Backend::None => "gemini",
        }
    }

    pub(super) fn model(&self) -> &str {
        &self.model
    }

    pub(super) fn key_header(&self) -> KeyHeader {
        match self.kind {
            Backend::Anthropic => KeyHeader::Own("x-api-key"),
            Backend::Ollama | Backend::Openai => KeyHeader::Bearer,
            Backend::Gemini | Backend::Auto | Backend::None => KeyHeader::Own("x-goog-api-key"),
        }
    }

    pub(super) fn reading(&self) -> Reading {
        match (self.kind, self.structured) {
            (Backend::Ollama | Backend::Openai, _) | (_, StructuredOutput::Prompt) => Reading::Within,
            _ => Reading::Whole,
        }
    }

    /// The call that asks.
    pub(super) fn call(&self, asked: Asked<'_>, output_tokens_max: u32) -> Result<Call, Fault> {
        match self.kind {
            Backend::Anthropic => self.call_anthropic(asked, output_tokens_max),
            Backend::Ollama => self.call_ollama(asked, output_tokens_max),
            Backend::Openai => Ok(self.call_openai(asked, output_tokens_max)),
            Backend::Gemini | Backend::Auto | Backend::None => self.call_gemini(asked, output_tokens_max),
        }
    }

    /// Reads what came back with status 200.
    pub(super) fn read(&self, asked: Asked<'_>, body: &[u8]) -> Result<Reply, Fault> {
        let Ok(body) = serde_json::from_slice::<Value>(body) else {
            return Err(Fault::last(Trouble::NotJson, "the provider's answer is not JSON"));
        };
        match self.kind {
            Backend::Anthropic => self.read_anthropic(&body),
            Backend::Ollama => self.read_ollama(asked, &body),
            Backend::Openai => self.read_openai(asked, &body),
            Backend::Gemini | Backend::Auto | Backend::None => self.read_gemini(&body),
        }
    }

    /// Reads what came back with any other status.
    pub(super) fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Fault {
        let fault = of_status(status, headers);
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        match self.kind {
            Backend::Anthropic => anthropic::refine(fault, &body),
            Backend::Ollama => fault,
            Backend::Openai => openai::refine(fault, &body),
            Backend::Gemini | Backend::Auto | Backend::None => gemini::refine(fault, &body),
        }
    }
}

/// An answer that lacks what every answer of the provider has.
fn wrong_shape(what: &str) -> Fault {
    Fault::last(Trouble::WrongShape, format!("the provider's answer has {what}"))
}

fn truncated(usage: Usage) -> Fault {
    let fault = Fault::last(Trouble::Truncated, "the answer was cut by the limit on its tokens");
    Fault { retry: Retry::Larger, ..fault }.after(usage)
}

fn unknown_end(usage: Usage) -> Fault {
    Fault::last(Trouble::UnknownEnd, "the answer ended in a way that is not known").after(usage)
}

fn empty(usage: Usage) -> Fault {
    Fault::last(Trouble::Empty, "the answer is empty").after(usage)
}

/// A text answer, unless there is nothing in it.
fn text_reply(text: String, usage: Usage, model: Option<String>) -> Result<Reply, Fault> {
    if text.trim().is_empty() {
        return Err(empty(usage));
    }
    Ok(Reply { content: Content::Text(text), usage, model })
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// The first of `known` that the value is, so that no foreign text is repeated.
fn known_word(value: &Value, known: &[&'static str]) -> &'static str {
    let text = value.as_str().unwrap_or_default();
    known.iter().find(|word| **word == text).copied().unwrap_or("another reason")
}

/// A model name that can be shown.
fn model_name(value: &Value) -> Option<String> {
    let name = value.as_str()?;
    let is_shown = !name.is_empty() && name.len() <= 200 && name.bytes().all(|byte| byte.is_ascii_graphic());
    is_shown.then(|| name.to_owned())
}

/// The name of the tool or schema through which an answer is asked for.
const ANSWER: &str = "answer";

#[cfg(test)]
mod tests;
