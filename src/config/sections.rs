//! The sections whose modules take plain values instead of a settings struct.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::setting::Problem;

/// `server`: the gRPC side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Address and port of the gRPC listener. Port 0 asks the system for a free one.
    #[serde(with = "crate::setting::address")]
    pub listen: SocketAddr,
    /// TLS of the gRPC listener; off without a certificate.
    pub tls: TlsConfig,
    /// Contracts of others over gRPC.
    pub adapters: GrpcAdaptersConfig,
    /// Largest request message, in bytes. A larger one is refused with a typed error, never cut.
    #[serde(with = "crate::setting::bytes")]
    pub request_bytes_max: usize,
    /// Unary requests in flight at most. One more is refused at once: a queue turns overload into late answers.
    #[serde(with = "crate::setting::count")]
    pub concurrency_max: usize,
    /// How long unary requests may wait for a processor. When even the shortest wait was longer for 100 ms, only so many
    /// may wait as are decided within half of this, and one more is refused at once; `off` lets all wait.
    #[serde(with = "crate::setting::duration::or_off")]
    pub queue_wait_max: Option<Duration>,
    /// How long a stop waits for requests in flight.
    #[serde(with = "crate::setting::duration")]
    pub drain_timeout: Duration,
    /// Allows a listener that other machines can reach without authentication.
    pub insecure_allow_anonymous: bool,
    /// Allows tokens of callers to come in clear over a listener that other machines can reach: for a proxy in front
    /// that speaks TLS.
    pub insecure_allow_plaintext: bool,
    /// Pause between HTTP/2 pings on an idle connection; finds peers that are gone.
    #[serde(with = "crate::setting::duration")]
    pub keepalive_interval: Duration,
    /// How long the answer to a ping may take before the connection is closed.
    #[serde(with = "crate::setting::duration")]
    pub keepalive_timeout: Duration,
    /// Age at which a connection is asked to close, so that clients spread again over replicas; `off` for never.
    #[serde(with = "crate::setting::duration::or_off")]
    pub max_connection_age: Option<Duration>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 50051)),
            tls: TlsConfig::default(),
            adapters: GrpcAdaptersConfig::default(),
            request_bytes_max: 4 * 1024 * 1024,
            concurrency_max: 256,
            queue_wait_max: Some(Duration::from_millis(10)),
            drain_timeout: Duration::from_secs(10),
            insecure_allow_anonymous: false,
            insecure_allow_plaintext: false,
            keepalive_interval: Duration::from_secs(30),
            keepalive_timeout: Duration::from_secs(10),
            max_connection_age: None,
        }
    }
}

impl ServerConfig {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        /// Below this a request with one short message and its context no longer fits.
        const REQUEST_BYTES_LEAST: usize = 1024;
        /// A request is held in memory whole, and the findings of one are counted in 32 bits.
        const REQUEST_BYTES_MOST: usize = 256 * 1024 * 1024;
        if !(REQUEST_BYTES_LEAST..=REQUEST_BYTES_MOST).contains(&self.request_bytes_max) {
            problems.push(Problem::new("request_bytes_max", "must be from 1KiB to 256MiB"));
        }
        self.tls.check(problems);
        if self.concurrency_max == 0 {
            problems.push(Problem::new("concurrency_max", "must be at least 1"));
        }
        let waits = Duration::from_millis(1)..=Duration::from_secs(10);
        if self.queue_wait_max.is_some_and(|wait| !waits.contains(&wait)) {
            problems.push(Problem::new("queue_wait_max", "must be from 1ms to 10s, or off"));
        }
        let second = Duration::from_secs(1);
        for (key, value) in [
            ("keepalive_interval", Some(self.keepalive_interval)),
            ("keepalive_timeout", Some(self.keepalive_timeout)),
            ("max_connection_age", self.max_connection_age),
        ] {
            if value.is_some_and(|value| value < second) {
                problems.push(Problem::new(key, "must be at least 1s"));
            }
        }
    }
}

/// `server.adapters`: contracts of others over gRPC, each off unless it is turned on here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GrpcAdaptersConfig {
    /// `agentgateway.dev.ext_mcp.ExtMcp`: calls of the Model Context Protocol.
    pub ext_mcp: bool,
}

/// `server.tls`: certificates of the gRPC listener. All files are PEM, relative to the working directory, and read again
/// when they change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate of the server, its intermediate ones behind it.
    pub certificate: Option<PathBuf>,
    /// The private key of the certificate.
    pub key: Option<PathBuf>,
    /// Authorities of client certificates. With it every client must prove to hold a certificate that one of them
    /// signed, whatever `auth.mode` is.
    pub client_ca: Option<PathBuf>,
}

impl TlsConfig {
    /// Whether the listener speaks TLS.
    pub fn is_on(&self) -> bool {
        self.certificate.is_some()
    }

    /// Every file.
    pub fn paths(&self) -> Vec<PathBuf> {
        [&self.certificate, &self.key, &self.client_ca].into_iter().flatten().cloned().collect()
    }

    fn check(&self, problems: &mut Vec<Problem>) {
        match (&self.certificate, &self.key) {
            (Some(_), None) => problems.push(Problem::new("tls.key", "is needed by server.tls.certificate")),
            (None, Some(_)) => {
                problems.push(Problem::new("tls.certificate", "is needed by server.tls.key"));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        if self.client_ca.is_some() && !self.is_on() {
            problems.push(Problem::new("tls.client_ca", "needs server.tls.certificate and server.tls.key"));
        }
    }
}

/// `client`: how commands with `--server` reach a server that authenticates its callers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientConfig {
    /// File that holds the token to send. Never a flag or a variable: those are seen by others.
    pub token_file: Option<PathBuf>,
    /// Authorities that sign the certificate of the server, PEM; absent: those that browsers trust.
    pub ca_file: Option<PathBuf>,
    /// Certificate to prove to the server who calls, PEM.
    pub certificate: Option<PathBuf>,
    /// Private key of the certificate, PEM.
    pub key: Option<PathBuf>,
    /// Sends tokens to other machines without TLS too, where something else encrypts what goes there, such as a mesh.
    pub insecure_allow_plaintext: bool,
}

impl ClientConfig {
    /// Reports what is missing; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        match (&self.certificate, &self.key) {
            (Some(_), None) => problems.push(Problem::new("key", "is needed by client.certificate")),
            (None, Some(_)) => problems.push(Problem::new("certificate", "is needed by client.key")),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
}

/// `policy`: where policies come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyConfig {
    /// A policy file or a folder of them. Absent: the built-in default policy.
    pub path: Option<PathBuf>,
    /// How often `path` is looked at for changes.
    #[serde(with = "crate::setting::duration")]
    pub poll_interval: Duration,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self { path: None, poll_interval: Duration::from_millis(500) }
    }
}

impl PolicyConfig {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        if !(Duration::from_millis(10)..=Duration::from_secs(3600)).contains(&self.poll_interval) {
            problems.push(Problem::new("poll_interval", "must be from 10ms to 1h"));
        }
    }
}

/// `rules`: where rules come from besides the built-in ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RulesConfig {
    /// Rule files and folders of them, relative to the working directory.
    pub paths: Vec<PathBuf>,
}

/// `plugins`: which built-in families run at all. Off here means off for every policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PluginsConfig {
    /// The main switch; false turns every family off. Environment: also `SECURITY_PLUGINS_ENABLED`.
    pub enabled: bool,
    /// Prompt injection. Environment: also `SECURITY_PLUGIN_INJECTION`.
    pub injection: bool,
    /// Personal data. Environment: also `SECURITY_PLUGIN_PII`.
    pub pii: bool,
    /// Credentials. Environment: also `SECURITY_PLUGIN_SECRETS`.
    pub secrets: bool,
    /// Dangerous code and commands. Environment: also `SECURITY_PLUGIN_CODE`.
    pub code: bool,
}

impl Default for PluginsConfig {
    fn default() -> Self {
        Self { enabled: true, injection: true, pii: true, secrets: true, code: true }
    }
}

impl PluginsConfig {
    /// Ids of the families that run, in the order in which they are reported.
    pub fn enabled_ids(&self) -> Vec<&'static str> {
        [("injection", self.injection), ("pii", self.pii), ("secrets", self.secrets), ("code", self.code)]
            .into_iter()
            .filter(|(_, on)| self.enabled && *on)
            .map(|(id, _)| id)
            .collect()
    }
}
