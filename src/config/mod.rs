//! The settings of the process: flags > environment > `portcullis.yaml` > defaults.
//!
//! The defaults, written out as a tree, are the list of valid keys. Each source is laid over that tree leaf by leaf and
//! every leaf is checked alone, so that all problems of all sources are reported at once, each with where it comes
//! from. This is the only module that is given the environment.
//!
//! Invariant: a key that is not known is an error, never ignored; so is a value that would be overridden anyway.
//! Not done here: opening what the settings name (files, sockets). That is the business of the modules that own it.

mod env;
mod file;
mod layer;
mod report;
mod sections;
mod source;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use env::process_environment;
pub use report::{EffectiveSetting, effective, render_json, render_text};
pub use sections::{
    ClientConfig, GrpcAdaptersConfig, PluginsConfig, PolicyConfig, RulesConfig, ServerConfig, TlsConfig,
};
pub use source::{Source, Sources};

use crate::identity::{AuthConfig, AuthMode, RateLimitConfig};
use crate::setting::{Problem, address, check_section};

/// Name of the settings file that is read from the working directory if it exists.
pub const FILE_NAME: &str = "portcullis.yaml";

/// All settings of the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The gRPC side.
    pub server: ServerConfig,
    /// The HTTP side: metrics and probes.
    pub http: crate::http::Config,
    /// Pages for people, on the HTTP side.
    pub console: crate::console::Config,
    /// Folder of everything the process writes (audit log, admin token, database), relative to the working directory.
    pub data_dir: PathBuf,
    /// Who may call.
    pub auth: AuthConfig,
    /// How commands reach a server.
    pub client: ClientConfig,
    /// How often one identity may call.
    pub rate_limit: RateLimitConfig,
    /// Where policies come from.
    pub policy: PolicyConfig,
    /// Where additional rules come from.
    pub rules: RulesConfig,
    /// Which built-in families run at all.
    pub plugins: PluginsConfig,
    /// Limits of CheckMessages.
    pub messages: crate::messages::MessagesConfig,
    /// The cache of findings by message.
    pub cache: crate::messages::CacheConfig,
    /// Limits of StreamMonitor.
    pub streams: crate::monitor::StreamsConfig,
    /// What the stream monitor found, and how long it is kept.
    pub incidents: crate::store::IncidentsConfig,
    /// How much an uploaded bundle may be.
    pub bundles: crate::bundles::BundlesConfig,
    /// Review of uploaded bundles by a model, quota and retention.
    pub guardrails: crate::bundles::GuardrailsConfig,
    /// The audit log.
    pub audit: crate::audit::Config,
    /// What outlives the process.
    pub store: crate::store::Config,
    /// Interceptors that live elsewhere.
    pub extensions: crate::extension::Config,
    /// The plugin that asks a Llama Guard model.
    pub llama_guard: crate::messages::LlamaGuardConfig,
    /// The model that judges.
    pub llm: crate::judge::Config,
    /// Log lines.
    pub log: crate::telemetry::LogConfig,
    /// Export of spans.
    pub tracing: crate::telemetry::TracingConfig,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            server: ServerConfig::default(),
            http: crate::http::Config::default(),
            console: crate::console::Config::default(),
            data_dir: PathBuf::from("./data"),
            auth: AuthConfig::default(),
            client: ClientConfig::default(),
            rate_limit: RateLimitConfig::default(),
            policy: PolicyConfig::default(),
            rules: RulesConfig::default(),
            plugins: PluginsConfig::default(),
            messages: crate::messages::MessagesConfig::default(),
            cache: crate::messages::CacheConfig::default(),
            streams: crate::monitor::StreamsConfig::default(),
            incidents: crate::store::IncidentsConfig::default(),
            bundles: crate::bundles::BundlesConfig::default(),
            guardrails: crate::bundles::GuardrailsConfig::default(),
            audit: crate::audit::Config::default(),
            store: crate::store::Config::default(),
            extensions: crate::extension::Config::default(),
            llama_guard: crate::messages::LlamaGuardConfig::default(),
            llm: crate::judge::Config::default(),
            log: crate::telemetry::LogConfig::default(),
            tracing: crate::telemetry::TracingConfig::default(),
        }
    }
}

/// What the command line says about settings.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The file of `--config`; it must exist.
    pub config_file: Option<PathBuf>,
    /// Single values, later ones winning.
    pub values: Vec<Override>,
}

/// One value from the command line.
#[derive(Clone, Debug)]
pub struct Override {
    /// Dotted key, such as `server.listen`.
    pub key: String,
    /// The value as text; lists are comma separated.
    pub value: String,
    /// The flag as the user wrote it, such as `--listen`.
    pub flag: String,
}

impl Overrides {
    /// Adds the value of a flag that sets `key`.
    pub fn set(&mut self, key: &str, value: impl Into<String>, flag: &str) {
        self.values.push(Override { key: key.to_owned(), value: value.into(), flag: flag.to_owned() });
    }

    /// Adds the argument of `--set`, which has the form `key=value`.
    ///
    /// # Errors
    /// The argument has no `=`; the problem is ready to print.
    pub fn set_pair(&mut self, pair: &str) -> Result<(), Problem> {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(Problem::new("", format!("`{pair}` is not of the form key=value")).from("flag --set"));
        };
        self.set(key.trim(), value, "--set");
        Ok(())
    }
}

/// Everything that is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblems(pub Vec<Problem>);

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 { "" } else { "s" };
        write!(f, "{} problem{plural} in the settings", self.0.len())?;
        for problem in &self.0 {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigProblems {}

impl Settings {
    /// Gathers the settings of all sources. `env` is the environment of the process, `cwd` the folder in which
    /// `portcullis.yaml` is looked for and to which `--config` is relative.
    ///
    /// # Errors
    /// Every problem of every source, in the order file, environment, flags, then those of the values together.
    pub fn load(
        flags: Overrides,
        env: impl Iterator<Item = (String, String)>,
        cwd: &Path,
    ) -> Result<(Self, Sources), ConfigProblems> {
        let env = env::Environment::of(env);
        let mut layers = layer::Layers::new(&Self::default());
        file::read(flags.config_file.as_deref(), env.config_file(), cwd, &mut layers);
        env.overlay(&mut layers);
        for Override { key, value, flag } in flags.values {
            layers.set_text(&key, &value, Source::Flag { name: flag });
        }
        let (settings, sources, mut problems) = layers.finish();
        let from = problems.len();
        settings.check(&mut problems);
        check_secrets(&settings, &sources, &mut problems);
        for problem in &mut problems[from..] {
            problem.origin = sources.get(&problem.key).to_string();
        }
        if problems.is_empty() { Ok((settings, sources)) } else { Err(ConfigProblems(problems)) }
    }

    /// Checks what one leaf alone cannot show: ranges, and values that contradict each other.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        check_section("server", problems, |p| self.server.check(p));
        check_section("http", problems, |p| self.http.check(p));
        check_section("console", problems, |p| self.console.check(p));
        check_section("auth", problems, |p| self.auth.check(p));
        check_section("client", problems, |p| self.client.check(p));
        check_section("rate_limit", problems, |p| self.rate_limit.check(p));
        check_section("policy", problems, |p| self.policy.check(p));
        check_section("messages", problems, |p| self.messages.check(p));
        check_section("streams", problems, |p| self.streams.check(p));
        check_section("incidents", problems, |p| self.incidents.check(p));
        check_section("bundles", problems, |p| self.bundles.check(p));
        check_section("guardrails", problems, |p| self.guardrails.check(p));
        check_section("audit", problems, |p| self.audit.check(p));
        check_section("store", problems, |p| self.store.check(p));
        check_section("extensions", problems, |p| self.extensions.check(p));
        check_section("llama_guard", problems, |p| self.llama_guard.check(p));
        check_section("llm", problems, |p| self.llm.check(p));
        check_section("log", problems, |p| self.log.check(p));
        check_section("tracing", problems, |p| self.tracing.check(p));
        if self.data_dir.as_os_str().is_empty() {
            problems.push(Problem::new("data_dir", "must not be empty; use . for the working directory"));
        }
        if self.server.listen == self.http.listen && self.server.listen.port() != 0 {
            problems.push(Problem::new(
                "http.listen",
                format!("`{}` is taken by server.listen", self.http.listen),
            ));
        }
        self.check_exposure(problems);
    }

    /// Without authentication whoever reaches a socket may ask; so others than this machine must not reach it by
    /// accident. With tokens whoever reads them on the way may ask.
    fn check_exposure(&self, problems: &mut Vec<Problem>) {
        if self.auth.mode == AuthMode::Mtls && self.server.tls.client_ca.is_none() {
            let message =
                "is needed by auth.mode mtls; name the authorities that sign certificates of clients";
            problems.push(Problem::new("server.tls.client_ca", message));
        }
        if self.auth.mode == AuthMode::Mtls && self.http.adapters.is_any_on() {
            let message =
                "cannot be used with auth.mode mtls: HTTP callers bring no certificate; use tokens or jwt";
            problems.push(Problem::new("http.adapters", message));
        }
        if self.auth.mode == AuthMode::Mtls && self.console.enabled == Some(true) {
            let message = "cannot be used with auth.mode mtls: people log in with a token; use tokens or jwt";
            problems.push(Problem::new("console.enabled", message));
        }
        let http = self.http.listen;
        if self.serves_console() && !self.server.insecure_allow_plaintext && !address::is_loopback(http) {
            problems.push(Problem::new(
                "console.enabled",
                format!(
                    "http.listen `{http}` can be reached from other machines, and tokens of logins would come in clear; \
                     listen on a loopback address, or give --insecure-allow-plaintext if a proxy in front of this \
                     port speaks TLS"
                ),
            ));
        }
        if self.auth.mode != AuthMode::None {
            return self.check_clear_text(problems);
        }
        if self.server.insecure_allow_anonymous {
            return;
        }
        for (key, listen) in [("server.listen", self.server.listen), ("http.listen", self.http.listen)] {
            if !address::is_loopback(listen) {
                problems.push(Problem::new(
                    key,
                    format!(
                        "`{listen}` can be reached from other machines and auth.mode is none; listen on a loopback \
                         address, or give --insecure-allow-anonymous if something else guards this port"
                    ),
                ));
            }
        }
    }

    fn check_clear_text(&self, problems: &mut Vec<Problem>) {
        let http = self.http.listen;
        // The HTTP side has no TLS of its own.
        if self.http.adapters.is_any_on()
            && !self.server.insecure_allow_plaintext
            && !address::is_loopback(http)
        {
            problems.push(Problem::new(
                "http.listen",
                format!(
                    "`{http}` can be reached from other machines, and tokens for http.adapters would come in clear; \
                     listen on a loopback address, or give --insecure-allow-plaintext if a proxy in front of this \
                     port speaks TLS"
                ),
            ));
        }
        let listen = self.server.listen;
        // Without TLS nobody proves to hold a certificate: that is told already.
        let is_safe = self.server.tls.is_on() || self.auth.mode == AuthMode::Mtls;
        if is_safe || self.server.insecure_allow_plaintext || address::is_loopback(listen) {
            return;
        }
        problems.push(Problem::new(
            "server.listen",
            format!(
                "`{listen}` can be reached from other machines, and tokens would come in clear; set server.tls, listen on \
                 a loopback address, or give --insecure-allow-plaintext if a proxy in front of this port speaks TLS"
            ),
        ));
    }

    /// Whether the console is served: as the settings say, else where nothing but this machine reaches it and the store is
    /// the embedded one. Certificates of clients, which HTTP callers do not bring, are no way to log in.
    pub fn serves_console(&self) -> bool {
        let by_default = || {
            let is_embedded = self.store.url.is_none();
            address::is_loopback(self.http.listen) && self.http.allowed_hosts.is_empty() && is_embedded
        };
        self.auth.mode != AuthMode::Mtls && self.console.enabled.unwrap_or_else(by_default)
    }

    /// The SQLite file when `store` names no database: its place below `data_dir`.
    pub fn store_path(&self) -> PathBuf {
        self.data_dir.join("portcullis.db")
    }

    /// The folder of bundle bytes when `store.bundles` names no place: below `data_dir`.
    pub fn bundles_path(&self) -> PathBuf {
        self.data_dir.join("bundles")
    }

    /// The file of the audit log: `audit.path`, or its place below `data_dir`.
    pub fn audit_path(&self) -> PathBuf {
        self.audit.path.clone().unwrap_or_else(|| self.data_dir.join("audit").join("audit.jsonl"))
    }
}

/// Secrets in the settings file end up in backups and repositories, those of flags in the list of processes.
fn check_secrets(settings: &Settings, sources: &Sources, problems: &mut Vec<Problem>) {
    const PASSWORD: &str = "holds a password, which everybody on this machine sees in the list of processes: give it in a settings file or in the environment";
    for (key, value) in layer::Layers::new(settings).into_leaves() {
        let is_flag = matches!(sources.get(&key), Source::Flag { .. });
        if is_flag && value.as_str().is_some_and(report::holds_password) {
            problems.push(Problem::new(key, PASSWORD));
        }
    }
    const LLM: &str = "is a secret: give it in the environment, or name a file with it in `llm.api_key_file`";
    const STORE: &str = "is a secret: give it in the environment, such as AWS_SECRET_ACCESS_KEY";
    let of_llm = crate::judge::Config::SECRETS.iter().map(|name| (format!("llm.{name}"), LLM));
    let of_store = crate::store::Config::SECRETS.iter().map(|name| (format!("store.{name}"), STORE));
    for (key, message) in of_llm.chain(of_store) {
        if matches!(sources.get(&key), Source::File { .. } | Source::Flag { .. }) {
            problems.push(Problem::new(key, message));
        }
    }
}
