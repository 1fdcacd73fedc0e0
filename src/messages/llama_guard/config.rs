//! Settings of Llama Guard.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::generation::{Generation, GenerationSetting};
use crate::judge::{self, Backend, RawForm};
use crate::setting::Problem;

/// Ends of an endpoint, with what is spoken there.
const FORMS: [(&str, Backend, RawForm); 3] = [
    ("/api/generate", Backend::Ollama, RawForm::Prompt),
    ("/v1/completions", Backend::Openai, RawForm::Prompt),
    ("/v1/chat/completions", Backend::Openai, RawForm::Turns),
];

/// `llama_guard`: the plugin that asks a Llama Guard model. How long it may take and what happens when it cannot judge is
/// said in the policy, under `plugins.llama_guard`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LlamaGuardConfig {
    /// Whether it runs. Environment: also `LLAMAGUARD_ENABLED`.
    pub enabled: bool,
    /// Whole URL: of Ollama (`…/api/generate`), of a server that takes raw prompts (`…/v1/completions`), or of one that
    /// writes the prompt itself (`…/v1/chat/completions`). Environment: also `LLAMAGUARD_ENDPOINT`.
    pub endpoint: String,
    /// The model as the server names it. Environment: also `LLAMAGUARD_MODEL`.
    pub model: String,
    /// Generation of the model, which gives codes their meaning: `1` to `4`, or `auto` for the one that its name tells.
    pub generation: GenerationSetting,
    /// File with a bearer token for the endpoint.
    pub api_key_file: Option<PathBuf>,
    /// PEM file with the only certificate authorities to trust.
    pub ca_file: Option<PathBuf>,
    /// Hosts, besides this machine, that may be called over plain `http://`. They must lie in a private network.
    pub plain_http_hosts: Vec<String>,
    /// Attempts of one question at most, within the time of the policy.
    #[serde(with = "crate::setting::count")]
    pub attempts_max: usize,
    /// Questions under way at most.
    #[serde(with = "crate::setting::count")]
    pub concurrency_max: usize,
    /// Memory for answers that may be given again, in bytes; 0 for none.
    #[serde(with = "crate::setting::bytes")]
    pub cache_bytes_max: usize,
}

impl Default for LlamaGuardConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            endpoint: "http://localhost:11434/api/generate".to_owned(),
            model: "llama-guard3".to_owned(),
            generation: GenerationSetting::Auto,
            api_key_file: None,
            ca_file: None,
            plain_http_hosts: Vec::new(),
            attempts_max: 2,
            concurrency_max: 8,
            cache_bytes_max: 1024 * 1024,
        }
    }
}

impl LlamaGuardConfig {
    /// The generation in force; `None` when the name of the model does not tell.
    pub(super) fn resolved_generation(&self) -> Option<Generation> {
        self.generation.resolve(&self.model)
    }

    /// The settings of its client, and how prompts are sent; `None` when the endpoint is not known to be one.
    pub(super) fn llm(&self) -> Option<(judge::Config, RawForm)> {
        let endpoint = self.endpoint.trim().trim_end_matches('/');
        let (base, backend, form) = FORMS
            .iter()
            .find_map(|(end, backend, form)| Some((endpoint.strip_suffix(end)?, *backend, *form)))
            // The address of Ollama alone means the same.
            .or_else(|| {
                let host = endpoint.split_once("://")?.1;
                (!host.contains('/')).then_some((endpoint, Backend::Ollama, RawForm::Prompt))
            })?;
        let config = judge::Config {
            backend,
            model: Some(self.model.clone()),
            base_url: Some(base.to_owned()),
            plain_http_hosts: self.plain_http_hosts.clone(),
            ca_file: self.ca_file.clone(),
            api_key_file: self.api_key_file.clone(),
            // The policy says how long.
            timeout: Duration::from_secs(600),
            attempts_max: self.attempts_max,
            concurrency_max: self.concurrency_max,
            cache_bytes_max: self.cache_bytes_max,
            ..judge::Config::default()
        };
        Some((config, form))
    }

    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        // Variables of earlier programs may be left over where it is off.
        if !self.enabled {
            return;
        }
        match self.llm() {
            Some((config, _)) => {
                let mut found = Vec::new();
                config.check(&mut found);
                problems.extend(renamed(found));
            }
            None => {
                let ends: Vec<&str> = FORMS.iter().map(|(end, ..)| *end).collect();
                problems.push(Problem::new("endpoint", format!("must end in one of {}", ends.join(", "))));
            }
        }
        if self.resolved_generation().is_none() {
            problems.push(Problem::new(
                "generation",
                format!("the name `{}` does not tell the generation; set it to 1, 2, 3 or 4", self.model),
            ));
        }
    }
}

/// Problems of the client under the names that these settings have.
pub(super) fn renamed(problems: Vec<Problem>) -> Vec<Problem> {
    let rename = |problem: Problem| {
        let key = if problem.key == "base_url" { "endpoint".to_owned() } else { problem.key.clone() };
        let message = problem.message.replace("llm.", "llama_guard.");
        Problem { key, message, ..problem }
    };
    problems.into_iter().map(rename).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_say_what_is_spoken_there() {
        for (endpoint, wanted) in [
            (
                "http://localhost:11434/api/generate",
                Some(("http://localhost:11434", Backend::Ollama, RawForm::Prompt)),
            ),
            ("http://127.0.0.1:11434/", Some(("http://127.0.0.1:11434", Backend::Ollama, RawForm::Prompt))),
            (
                "https://x.example/ollama/api/generate",
                Some(("https://x.example/ollama", Backend::Ollama, RawForm::Prompt)),
            ),
            (
                "https://x.example/v1/completions",
                Some(("https://x.example", Backend::Openai, RawForm::Prompt)),
            ),
            (
                "https://x.example/openai/v1/chat/completions/",
                Some(("https://x.example/openai", Backend::Openai, RawForm::Turns)),
            ),
            ("https://x.example/guard", None),
            ("x", None),
        ] {
            let config = LlamaGuardConfig { endpoint: endpoint.to_owned(), ..LlamaGuardConfig::default() };
            let found = config.llm();
            let found = found
                .as_ref()
                .map(|(llm, form)| (llm.base_url.as_deref().unwrap_or_default(), llm.backend, *form));
            assert_eq!(found, wanted, "{endpoint}");
        }
    }

    #[test]
    fn problems_have_the_names_of_these_settings() {
        for (endpoint, model, wanted) in [
            ("http://localhost:11434/api/generate", "llama-guard3", None),
            (
                "http://public.example/api/generate",
                "llama-guard3",
                Some("endpoint: plain http:// would show key"),
            ),
            ("http://localhost/other", "llama-guard3", Some("endpoint: must end in one of /api/generate")),
            ("http://localhost:1", "shield", Some("generation: the name `shield` does not tell")),
        ] {
            let config = LlamaGuardConfig {
                enabled: true,
                endpoint: endpoint.to_owned(),
                model: model.to_owned(),
                ..LlamaGuardConfig::default()
            };
            let mut problems = Vec::new();
            config.check(&mut problems);
            let found = problems.first().map(ToString::to_string);
            match wanted {
                None => assert_eq!(found, None),
                Some(start) => {
                    assert!(found.as_deref().is_some_and(|found| found.starts_with(start)), "{found:?}")
                }
            }
            assert!(!format!("{found:?}").contains("llm."));
        }
    }
}
