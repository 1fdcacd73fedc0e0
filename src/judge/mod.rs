//! Language models as judges: one question, one structured answer, or the reason why there is none.
//!
//! [`Judge`] hides which provider is asked: Gemini, Anthropic, Ollama, or whatever speaks the completions of OpenAI.
//! Content is fenced as data under a nonce of the call, answers are validated against the schema of the question whatever
//! the provider promised, and one deadline holds for the wait, all attempts and their pauses together.
//!
//! The way of a question: cache -> a free place -> circuit breaker -> attempts -> answer in its envelope -> schema. What
//! each provider sends and receives stands in one file of `provider`, without network and clock.
//!
//! Invariants: whatever is not a complete and valid answer is [`NotJudged`], never an answer, and never cached; no error,
//! log line or label holds a key, a part of a URL, or text that somebody else wrote.

mod cache;
mod client;
mod config;
mod fault;
mod fence;
mod json;
mod observe;
mod provider;
mod question;
mod schema;
mod secret;
mod wire;

use std::sync::Arc;

pub use config::{Backend, Config, StructuredOutput, Tiers};
pub use fence::{fence_bytes, without_fences};
pub use observe::{Asked, Observer, Outcome, Unobserved};
pub use question::{
    Answer, Asking, Block, Complete, Completed, Completing, Completion, Judge, NotJudged, Purpose, Question,
    RawForm, Trouble, Usage,
};
pub use schema::check_schema;
pub use secret::Secret;

use crate::setting::Problem;
use client::Client;
use provider::Provider;
use wire::Wire;

/// The judge of these settings; `None` when they name none. Nothing is connected yet.
///
/// # Errors
/// What is wrong with the settings, with keys relative to their section.
pub fn connect(config: &Config, observer: Arc<dyn Observer>) -> Result<Option<Arc<dyn Judge>>, Vec<Problem>> {
    Ok(client(config, observer)?.map(|client| client as Arc<dyn Judge>))
}

/// A model of these settings that completes raw prompts; `None` when they name none.
///
/// # Errors
/// As [`connect`].
pub fn completer(
    config: &Config,
    observer: Arc<dyn Observer>,
) -> Result<Option<Arc<dyn Complete>>, Vec<Problem>> {
    Ok(client(config, observer)?.map(|client| client as Arc<dyn Complete>))
}

fn client(config: &Config, observer: Arc<dyn Observer>) -> Result<Option<Arc<Client>>, Vec<Problem>> {
    let Some(backend) = config.resolved_backend() else { return Ok(None) };
    let mut problems = Vec::new();
    config.check(&mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let problem = |(key, message): (&str, String)| vec![Problem::new(key, message)];
    let base = config::check_url(config.resolved_base_url(), &config.plain_http_hosts)
        .map_err(|message| problem(("base_url", message)))?;
    let provider = Provider::new(backend, config);
    let wire = Wire::new(config, base, provider.key_header()).map_err(problem)?;
    Ok(Some(Arc::new(Client::new(provider, wire, config, observer))))
}
