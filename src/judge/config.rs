//! Settings of the model that judges.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::secret::{self, Secret};
use crate::outbound::kind_of_address;
use crate::setting::Problem;

/// Most attempts of one question.
const ATTEMPTS_MAX: usize = 10;

/// `llm`: the model that judges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which provider is asked. `auto`: Gemini or Anthropic, whichever has its own key in the environment, in this order;
    /// else none.
    pub backend: Backend,
    /// The model. Absent: the default of the backend. With Anthropic also a tier: `haiku`, `sonnet`, `opus`.
    pub model: Option<String>,
    /// What the tiers stand for.
    pub tiers: Tiers,
    /// Scheme, host and port of the provider, and a path that goes before its own ones. Absent: the public address of the
    /// backend. May not hold a user, a password or a query.
    pub base_url: Option<String>,
    /// Hosts, besides this machine, that may be called over plain `http://`. They must lie in a private network.
    pub plain_http_hosts: Vec<String>,
    /// Proxy for all calls, as a URL. Absent: none, whatever the environment says.
    pub proxy: Option<String>,
    /// PEM file with the only certificate authorities to trust. Absent: the usual public ones.
    pub ca_file: Option<PathBuf>,
    /// File with the key of the provider; it goes before keys in the environment and is read again for each call.
    pub api_key_file: Option<PathBuf>,
    /// Key for whichever backend has none of its own. Only from the environment: `LLM_API_KEY`.
    pub api_key: Option<Secret>,
    /// Key for Gemini. Only from the environment: `GEMINI_API_KEY`.
    pub gemini_api_key: Option<Secret>,
    /// Key for Anthropic. Only from the environment: `ANTHROPIC_API_KEY`.
    pub anthropic_api_key: Option<Secret>,
    /// How the shape of the answer is asked for; it is validated in any case.
    pub structured_output: StructuredOutput,
    /// Temperature, from 0.0 to 2.0; null leaves it out, as some models want.
    pub temperature: Option<f64>,
    /// Gemini: tokens for thinking; 0 is none, -1 as many as the model likes, null leaves it out.
    pub thinking_budget: Option<i64>,
    /// Time for one question, all attempts, pauses and the wait for a free place together.
    #[serde(with = "crate::setting::duration")]
    pub timeout: Duration,
    /// Attempts of one question at most, from 1 to 10.
    #[serde(with = "crate::setting::count")]
    pub attempts_max: usize,
    /// Questions under way at most; further ones wait within their time.
    #[serde(with = "crate::setting::count")]
    pub concurrency_max: usize,
    /// How long making a connection may take; always within `timeout`.
    #[serde(with = "crate::setting::duration")]
    pub connect_timeout: Duration,
    /// Largest question, in bytes.
    #[serde(with = "crate::setting::bytes")]
    pub request_bytes_max: usize,
    /// Largest answer, in bytes.
    #[serde(with = "crate::setting::bytes")]
    pub response_bytes_max: usize,
    /// Failed questions in a row after which the provider is left alone for a while.
    #[serde(with = "crate::setting::count")]
    pub breaker_failures: usize,
    /// How long it is then left alone, before one question tries it again.
    #[serde(with = "crate::setting::duration")]
    pub breaker_pause: Duration,
    /// Memory for answers that may be given again, in bytes; 0 for none.
    #[serde(with = "crate::setting::bytes")]
    pub cache_bytes_max: usize,
    /// How long an answer may be given again.
    #[serde(with = "crate::setting::duration")]
    pub cache_ttl: Duration,
    /// US dollars for a million tokens of a question. Absent: that of a model we know, else unknown.
    #[serde(deserialize_with = "number_or_text")]
    pub price_input: Option<f64>,
    /// US dollars for a million tokens of an answer.
    #[serde(deserialize_with = "number_or_text")]
    pub price_output: Option<f64>,
}

/// Which provider is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The one whose own key is in the environment.
    #[default]
    Auto,
    /// Nobody.
    None,
    /// Gemini, `generateContent`.
    Gemini,
    /// Anthropic, Messages.
    Anthropic,
    /// Ollama.
    Ollama,
    /// Anything that speaks the chat completions of OpenAI.
    Openai,
}

/// How the shape of an answer is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutput {
    /// The JSON schema, as the provider takes it today.
    #[default]
    Schema,
    /// An older way: a forced tool with Anthropic, the OpenAPI subset with Gemini, plain JSON mode elsewhere.
    Legacy,
    /// In words alone.
    Prompt,
}

/// Models by tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tiers {
    /// The quickest and cheapest.
    pub haiku: String,
    /// The one between.
    pub sonnet: String,
    /// The most thorough.
    pub opus: String,
}

impl Default for Tiers {
    fn default() -> Self {
        Self {
            haiku: "claude-haiku-4-5".to_owned(),
            sonnet: "claude-sonnet-4-5".to_owned(),
            opus: "claude-opus-4-5".to_owned(),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            backend: Backend::Auto,
            model: None,
            tiers: Tiers::default(),
            base_url: None,
            plain_http_hosts: Vec::new(),
            proxy: None,
            ca_file: None,
            api_key_file: None,
            api_key: None,
            gemini_api_key: None,
            anthropic_api_key: None,
            structured_output: StructuredOutput::Schema,
            temperature: Some(0.0),
            thinking_budget: Some(0),
            timeout: Duration::from_secs(12),
            attempts_max: 3,
            concurrency_max: 8,
            connect_timeout: Duration::from_secs(3),
            request_bytes_max: 2 * 1024 * 1024,
            response_bytes_max: 1024 * 1024,
            breaker_failures: 5,
            breaker_pause: Duration::from_secs(30),
            cache_bytes_max: 8 * 1024 * 1024,
            cache_ttl: Duration::from_secs(3600),
            price_input: None,
            price_output: None,
        }
    }
}

/// An optional number that may be written as text, as the environment does.
fn number_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a number")]
    enum Form {
        Number(f64),
        Text(String),
    }
    match Option::<Form>::deserialize(deserializer)? {
        None => Ok(None),
        Some(Form::Number(number)) => Ok(Some(number)),
        Some(Form::Text(text)) => {
            text.trim().parse().map(Some).map_err(|_| de::Error::custom("is not a number"))
        }
    }
}

/// US dollars for a million tokens of question and answer, as the providers published them in 2026. Other prices go into
/// the settings.
const PRICES: [(&str, f64, f64); 4] = [
    ("gemini-2.5-flash-lite", 0.10, 0.40),
    ("claude-haiku-4-5", 1.0, 5.0),
    ("claude-sonnet-4-5", 3.0, 15.0),
    ("claude-opus-4-5", 5.0, 25.0),
];

impl Config {
    /// Keys of this section that hold secrets and may come from the environment only.
    pub const SECRETS: [&str; 3] = ["api_key", "gemini_api_key", "anthropic_api_key"];

    /// The backend in force, `auto` resolved; `None` for none.
    pub fn resolved_backend(&self) -> Option<Backend> {
        let has = |key: &Option<Secret>| key.as_ref().is_some_and(|key| !key.is_empty());
        match self.backend {
            Backend::None => None,
            Backend::Auto if has(&self.gemini_api_key) => Some(Backend::Gemini),
            Backend::Auto if has(&self.anthropic_api_key) => Some(Backend::Anthropic),
            Backend::Auto => None,
            named => Some(named),
        }
    }

    /// The model in force, tiers resolved; empty when the backend has no default.
    pub fn resolved_model(&self) -> String {
        let named = self.model.as_deref().map(str::trim).filter(|model| !model.is_empty());
        match self.resolved_backend() {
            Some(Backend::Anthropic) => match named.unwrap_or("haiku") {
                "haiku" => self.tiers.haiku.clone(),
                "sonnet" => self.tiers.sonnet.clone(),
                "opus" => self.tiers.opus.clone(),
                pinned => pinned.to_owned(),
            },
            Some(Backend::Gemini) => named.unwrap_or("gemini-2.5-flash-lite").to_owned(),
            _ => named.unwrap_or_default().to_owned(),
        }
    }

    /// Where the provider is.
    pub(super) fn resolved_base_url(&self) -> &str {
        let public = match self.resolved_backend() {
            Some(Backend::Anthropic) => "https://api.anthropic.com",
            Some(Backend::Ollama) => "http://127.0.0.1:11434",
            Some(Backend::Openai) => "https://api.openai.com",
            _ => "https://generativelanguage.googleapis.com",
        };
        self.base_url.as_deref().unwrap_or(public)
    }

    /// The key from the environment for the backend in force, with its name here. That of another provider is never sent.
    pub(super) fn key_of_environment(&self) -> Option<(&'static str, &Secret)> {
        let own = match self.resolved_backend()? {
            Backend::Gemini => Some(("gemini_api_key", &self.gemini_api_key)),
            Backend::Anthropic => Some(("anthropic_api_key", &self.anthropic_api_key)),
            Backend::Openai => None,
            Backend::Ollama | Backend::Auto | Backend::None => return None,
        };
        let mut keys = own.into_iter().chain([("api_key", &self.api_key)]);
        keys.find_map(|(name, key)| Some((name, key.as_ref().filter(|key| !key.is_empty())?)))
    }

    /// Dollars for a million tokens of question and answer; 0.0 where they are not known.
    pub(super) fn prices(&self) -> (f64, f64) {
        let model = self.resolved_model();
        let is = |known: &str| {
            model.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with("-20"))
        };
        let known = PRICES.iter().find(|(known, ..)| is(known));
        let (input, output) = known.map_or((0.0, 0.0), |(_, input, output)| (*input, *output));
        (self.price_input.unwrap_or(input), self.price_output.unwrap_or(output))
    }

    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        let mut problem = |key: &str, message: &str| problems.push(Problem::new(key, message));
        if let Err(message) = check_url(self.resolved_base_url(), &self.plain_http_hosts) {
            problem("base_url", &message);
        }
        if let Some(proxy) = &self.proxy
            && !Url::parse(proxy).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        {
            problem("proxy", "must be an http:// or https:// URL");
        }
        for host in &self.plain_http_hosts {
            if let Ok(ip) = bare(host).parse::<IpAddr>()
                && kind_of_address(ip).is_none()
            {
                problem(
                    "plain_http_hosts",
                    &format!("`{host}` is an address of the public internet; use https://"),
                );
            }
        }
        // Those of other providers are none of our business.
        if let Some((name, secret)) = self.key_of_environment()
            && let Err(message) = secret::check(secret.reveal())
        {
            problem(name, &message);
        }
        self.check_backend(&mut problem);
        self.check_ranges(&mut problem);
    }

    fn check_backend(&self, problem: &mut impl FnMut(&str, &str)) {
        let backend = self.resolved_backend();
        if matches!(backend, Some(Backend::Ollama | Backend::Openai)) && self.resolved_model().is_empty() {
            problem("model", "is needed with this backend, which has no default");
        }
        if !self.resolved_model().chars().all(|c| c.is_ascii_graphic()) {
            problem("model", "must be visible ASCII characters");
        }
        let has_key = self.api_key_file.is_some() || self.key_of_environment().is_some();
        // Who sets an address of their own may have a proxy there that knows the key.
        if !has_key && self.base_url.is_none() {
            match backend {
                Some(Backend::Gemini) => {
                    problem("backend", "`gemini` needs a key: set GEMINI_API_KEY or llm.api_key_file");
                }
                Some(Backend::Anthropic) => {
                    problem("backend", "`anthropic` needs a key: set ANTHROPIC_API_KEY or llm.api_key_file");
                }
                Some(Backend::Openai) => {
                    problem(
                        "backend",
                        "`openai` needs a key or llm.base_url: set LLM_API_KEY or llm.api_key_file",
                    );
                }
                _ => {}
            }
        }
    }

    fn check_ranges(&self, problem: &mut impl FnMut(&str, &str)) {
        for (key, value, least, most) in [
            ("attempts_max", self.attempts_max, 1, ATTEMPTS_MAX),
            ("concurrency_max", self.concurrency_max, 1, 10_000),
            ("breaker_failures", self.breaker_failures, 1, 1_000_000),
        ] {
            if !(least..=most).contains(&value) {
                problem(key, &format!("must be from {least} to {most}"));
            }
        }
        for (key, value) in
            [("request_bytes_max", self.request_bytes_max), ("response_bytes_max", self.response_bytes_max)]
        {
            if !(1024..=64 << 20).contains(&value) {
                problem(key, "must be from 1KiB to 64MiB");
            }
        }
        for (key, value) in [
            ("timeout", self.timeout),
            ("connect_timeout", self.connect_timeout),
            ("breaker_pause", self.breaker_pause),
            ("cache_ttl", self.cache_ttl),
        ] {
            if !(Duration::from_millis(10)..=Duration::from_secs(24 * 3600)).contains(&value) {
                problem(key, "must be from 10ms to 24h");
            }
        }
        if self.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
            problem("temperature", "must be from 0.0 to 2.0, or null");
        }
        for (key, price) in [("price_input", self.price_input), ("price_output", self.price_output)] {
            if price.is_some_and(|price| !(0.0..=1e6).contains(&price)) {
                problem(key, "must be from 0 to 1000000 US dollars");
            }
        }
    }
}

/// Whether an address may be called.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_url(text: &str, plain_http_hosts: &[String]) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is no URL: {error}"))?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err("must begin with https:// or http://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user or password; put the key into llm.api_key_file".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not hold a query or a fragment".to_owned());
    }
    let host = bare(url.host_str().unwrap_or_default());
    let is_listed = plain_http_hosts.iter().any(|listed| bare(listed).eq_ignore_ascii_case(host));
    if url.scheme() == "http" && !is_loopback(host) && !is_listed {
        return Err(
            "plain http:// would show key and content to the network; use https://, or list the host in \
                    llm.plain_http_hosts"
                .to_owned(),
        );
    }
    Ok(url)
}

/// A host without the brackets of IPv6.
pub(super) fn bare(host: &str) -> &str {
    host.trim().trim_matches(['[', ']'])
}

/// Whether a host is this machine beyond doubt.
pub(super) fn is_loopback(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    host.parse::<IpAddr>().map_or_else(
        |_| name == "localhost" || name.ends_with(".localhost"),
        |ip| ip.to_canonical().is_loopback(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Option<Secret> {
        Some(Secret::new(text))
    }

    #[test]
    fn auto_is_whoever_has_a_key_of_their_own() {
        for (gemini, anthropic, general, wanted) in [
            ("", "", "", None),
            ("g", "a", "l", Some((Backend::Gemini, "gemini-2.5-flash-lite", "g"))),
            ("", "a", "l", Some((Backend::Anthropic, "claude-haiku-4-5", "a"))),
            (" ", "a", "", Some((Backend::Anthropic, "claude-haiku-4-5", "a"))),
            ("", "", "l", None),
        ] {
            let config = Config {
                gemini_api_key: key(gemini),
                anthropic_api_key: key(anthropic),
                api_key: key(general),
                ..Config::default()
            };
            let found = config.resolved_backend().map(|backend| {
                (backend, config.resolved_model(), config.key_of_environment().map(|(_, key)| key.reveal()))
            });
            let wanted = wanted.map(|(backend, model, key)| (backend, model.to_owned(), Some(key)));
            assert_eq!(found, wanted);
        }
        let off = Config { backend: Backend::None, gemini_api_key: key("g"), ..Config::default() };
        assert_eq!(off.resolved_backend(), None);
    }

    #[test]
    fn keys_go_to_their_own_provider_alone() {
        for (backend, wanted) in [
            (Backend::Gemini, Some("g")),
            (Backend::Anthropic, Some("a")),
            (Backend::Openai, Some("l")),
            (Backend::Ollama, None),
        ] {
            let config = Config {
                backend,
                gemini_api_key: key("g"),
                anthropic_api_key: key("a"),
                api_key: key("l"),
                ..Config::default()
            };
            assert_eq!(config.key_of_environment().map(|(_, key)| key.reveal()), wanted, "{backend:?}");
        }
        let proxy = Config { backend: Backend::Anthropic, api_key: key("l"), ..Config::default() };
        assert_eq!(proxy.key_of_environment().map(|(_, key)| key.reveal()), Some("l"));
    }

    #[test]
    fn tiers_and_pinned_models() {
        for (model, wanted, price) in [
            (None, "claude-haiku-4-5", 5.0),
            (Some("sonnet"), "claude-sonnet-4-5", 15.0),
            (Some("opus"), "o", 0.0),
            (Some("claude-haiku-4-5-20251001"), "claude-haiku-4-5-20251001", 5.0),
            (Some("claude-haiku-4-51"), "claude-haiku-4-51", 0.0),
        ] {
            let config = Config {
                backend: Backend::Anthropic,
                model: model.map(str::to_owned),
                tiers: Tiers { opus: "o".to_owned(), ..Tiers::default() },
                ..Config::default()
            };
            assert_eq!((config.resolved_model().as_str(), config.prices().1), (wanted, price));
        }
    }

    #[test]
    fn addresses_are_checked() {
        let listed = ["llm.internal".to_owned(), "[fd00::1]".to_owned()];
        for (url, part) in [
            ("https://api.example/v1", ""),
            ("http://127.0.0.1:11434", ""),
            ("http://localhost:1/x", ""),
            ("http://[::1]:1", ""),
            ("http://LLM.internal:8000", ""),
            ("http://[fd00::1]", ""),
            ("http://api.example", "plain http"),
            ("http://10.0.0.1", "plain http"),
            ("http://localhost.evil.example", "plain http"),
            ("ftp://x", "must begin"),
            ("api.example", "no URL"),
            ("https://u:p@api.example", "user or password"),
            ("https://api.example/?key=x", "query"),
        ] {
            match check_url(url, &listed) {
                Ok(_) => assert_eq!(part, "", "{url}"),
                Err(message) => assert!(!part.is_empty() && message.contains(part), "{url}: {message}"),
            }
        }
    }

    #[test]
    fn every_problem_is_told_with_its_key() {
        let config = Config {
            backend: Backend::Openai,
            base_url: Some("http://public.example".to_owned()),
            plain_http_hosts: vec!["8.8.8.8".to_owned()],
            proxy: Some("proxy".to_owned()),
            api_key: key("two words"),
            gemini_api_key: key("of no concern"),
            temperature: Some(3.0),
            timeout: Duration::ZERO,
            attempts_max: 11,
            concurrency_max: 0,
            response_bytes_max: 1,
            price_input: Some(f64::NAN),
            ..Config::default()
        };
        let mut problems = Vec::new();
        config.check(&mut problems);
        let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "base_url",
                "proxy",
                "plain_http_hosts",
                "api_key",
                "model",
                "attempts_max",
                "concurrency_max",
                "response_bytes_max",
                "timeout",
                "temperature",
                "price_input"
            ]
        );
        assert!(!format!("{problems:?} {config:?}").contains("two words"));
        for backend in [Backend::Gemini, Backend::Anthropic] {
            let mut problems = Vec::new();
            Config { backend, ..Config::default() }.check(&mut problems);
            assert_eq!(problems[0].key, "backend");
        }
        for config in [
            Config::default(),
            Config { backend: Backend::Ollama, model: Some("m".to_owned()), ..Config::default() },
        ] {
            let mut problems = Vec::new();
            config.check(&mut problems);
            assert!(problems.is_empty(), "{problems:?}");
        }
    }
}
