//! Models and asynchronous plugins as the settings name them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{ConfigProblems, Settings};
use crate::extension::Extensions;
use crate::judge::{self, Asked, Backend, Judge, Observer, Outcome};
use crate::messages::{LlamaGuard, Plugin};
use crate::outbound::Until;
use crate::setting::Problem;
use crate::telemetry::{LlmAsked, Metrics};

/// Counts and logs every question.
struct Counted(Arc<Metrics>);

impl Observer for Counted {
    fn asked(&self, asked: &Asked<'_>) {
        let event = LlmAsked {
            backend: asked.backend,
            model: asked.model,
            purpose: asked.purpose.as_str(),
            outcome: asked.outcome.as_str(),
            is_answered: !matches!(asked.outcome, Outcome::NotJudged(_)),
            elapsed: asked.elapsed,
            attempts: asked.attempts,
            input_tokens: asked.usage.input_tokens,
            output_tokens: asked.usage.output_tokens,
            cost_usd: asked.cost_usd,
        };
        event.emit(&self.0);
    }
}

/// What counts the questions to all models.
pub fn observer(metrics: Arc<Metrics>) -> Arc<dyn Observer> {
    Arc::new(Counted(metrics))
}

/// The model that judges; `None` when the settings name none. Nothing is connected yet.
///
/// # Errors
/// What the settings name and cannot be used, such as a key file.
pub fn judge(
    settings: &Settings,
    observer: Arc<dyn Observer>,
) -> Result<Option<Arc<dyn Judge>>, ConfigProblems> {
    judge::connect(&settings.llm, observer).map_err(|problems| within("llm", problems))
}

/// Asynchronous plugins, in the order in which they are reported.
///
/// # Errors
/// As [`judge`].
pub fn plugins(
    settings: &Settings,
    observer: &Arc<dyn Observer>,
) -> Result<Vec<Arc<dyn Plugin>>, ConfigProblems> {
    let mut plugins: Vec<Arc<dyn Plugin>> = Vec::new();
    let external = Extensions::new(&settings.extensions).plugins();
    plugins.extend(external.map_err(|problems| within("extensions", problems))?);
    let llama_guard = LlamaGuard::connect(&settings.llama_guard, observer.clone());
    if let Some(plugin) = llama_guard.map_err(|problems| within("llama_guard", problems))? {
        plugins.push(Arc::new(plugin));
    }
    Ok(plugins)
}

/// How long a plugin may take to say who it is.
const GREETING_MAX: Duration = Duration::from_secs(5);

/// Asks whoever stands behind the plugins who they are, beside the start: nobody waits for them, and one that is away is
/// told of before a request needs it. Needs the runtime of tokio.
pub(super) fn greet(plugins: &[Arc<dyn Plugin>]) {
    for plugin in plugins {
        let plugin = plugin.clone();
        tokio::spawn(async move {
            let until = Until::sooner(Instant::now() + GREETING_MAX, None);
            let id = &plugin.descriptor().name;
            match plugin.greet(until).await {
                Ok(Some(who)) => {
                    let (name, version) = (who.name, who.version);
                    tracing::info!(plugin = %id, name, version, categories = ?who.categories, "plugin described itself");
                }
                Ok(None) => {}
                Err(why) => {
                    let reason = why.reason.as_str();
                    tracing::warn!(plugin = %id, reason, detail = why.detail, "plugin cannot be reached yet");
                }
            }
        });
    }
}

/// Names of the asynchronous plugins, which policies may use.
pub fn plugin_names(settings: &Settings) -> Vec<String> {
    let mut names: Vec<String> = settings.extensions.plugins.keys().cloned().collect();
    if settings.llama_guard.enabled {
        names.push(LlamaGuard::NAME.to_owned());
    }
    names
}

/// Says which model judges, and what looks like one that was meant to.
pub(super) fn announce(settings: &Settings, judge: Option<&Arc<dyn Judge>>) {
    match judge {
        Some(judge) => {
            let is_chosen = settings.llm.backend == Backend::Auto;
            tracing::info!(backend = judge.backend(), model = judge.model(), is_chosen, "model configured");
        }
        None if settings.llm.backend == Backend::Auto && settings.llm.api_key.is_some() => {
            tracing::warn!(
                "LLM_API_KEY is set, and llm.backend does not say whose key it is: no model judges"
            );
        }
        None => {}
    }
}

fn within(section: &str, problems: Vec<Problem>) -> ConfigProblems {
    let within = |problem: Problem| Problem { key: format!("{section}.{}", problem.key), ..problem };
    ConfigProblems(problems.into_iter().map(within).collect())
}
