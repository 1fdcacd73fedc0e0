//! Settings of extensions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::address::AddressRules;
use super::plugin::PluginConfig;
use super::target::Target;
use crate::setting::Problem;

/// `extensions`: interceptors and plugins that live elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether every private address may be called: loopback, private networks, link-local and the like.
    pub allow_private: bool,
    /// Private addresses that may be called all the same: networks such as `10.1.0.0/16`, addresses, and host names,
    /// which stand for whatever they resolve to.
    pub private_hosts: Vec<String>,
    /// Largest answer, in bytes.
    #[serde(with = "crate::setting::bytes")]
    pub response_bytes_max: usize,
    /// How long making a connection may take; always within the time-out of the interceptor.
    #[serde(with = "crate::setting::duration")]
    pub connect_timeout: Duration,
    /// Failed calls in a row after which an address is not called for a while.
    #[serde(with = "crate::setting::count")]
    pub breaker_failures: usize,
    /// How long it is then left alone, before one call tries it again.
    #[serde(with = "crate::setting::duration")]
    pub breaker_pause: Duration,
    /// Credentials by name. Interceptors name one; the secret itself stays in its file.
    pub credentials: BTreeMap<String, CredentialConfig>,
    /// Plugins of CheckMessages by name.
    pub plugins: BTreeMap<String, PluginConfig>,
}

/// What one credential consists of. Files are read again when they change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a section with keys such as hosts and bearer_file")]
pub struct CredentialConfig {
    /// Hosts that it may be shown to, without a port. Needed with `bearer_file` and `cert_file`: otherwise whoever may
    /// add an interceptor could have it sent to a host of their own.
    pub hosts: Vec<String>,
    /// File with a token, sent as `authorization: Bearer …`.
    pub bearer_file: Option<PathBuf>,
    /// PEM file with the only certificate authorities to trust. Absent: the usual public ones.
    pub ca_file: Option<PathBuf>,
    /// PEM file with the client certificate and its chain, for mutual TLS.
    pub cert_file: Option<PathBuf>,
    /// PEM file with the key of the client certificate.
    pub key_file: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            allow_private: false,
            private_hosts: Vec::new(),
            response_bytes_max: 4 * 1024 * 1024,
            connect_timeout: Duration::from_secs(1),
            breaker_failures: 5,
            breaker_pause: Duration::from_secs(10),
            credentials: BTreeMap::new(),
            plugins: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        for entry in &self.private_hosts {
            if let Err(message) = AddressRules::check_entry(entry) {
                problems.push(Problem::new("private_hosts", format!("`{entry}` {message}")));
            }
        }
        if !(1024..=256 << 20).contains(&self.response_bytes_max) {
            problems.push(Problem::new("response_bytes_max", "must be from 1KiB to 256MiB"));
        }
        if !(1..=1_000_000).contains(&self.breaker_failures) {
            problems.push(Problem::new("breaker_failures", "must be from 1 to 1000000"));
        }
        for (key, value) in [("connect_timeout", self.connect_timeout), ("breaker_pause", self.breaker_pause)]
        {
            if !(Duration::from_millis(10)..=Duration::from_secs(3600)).contains(&value) {
                problems.push(Problem::new(key, "must be from 10ms to 1h"));
            }
        }
        for (name, credential) in &self.credentials {
            credential.check(name, problems);
        }
        for (name, plugin) in &self.plugins {
            plugin.check(name, &mut |message| {
                problems.push(Problem::new("plugins", format!("`{}` {message}", name.escape_debug())));
            });
        }
    }
}

impl CredentialConfig {
    fn check(&self, name: &str, problems: &mut Vec<Problem>) {
        let mut problem =
            |message: &str| problems.push(Problem::new("credentials", format!("`{name}` {message}")));
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_name) {
            problem("must be named with 1 to 64 letters, digits, `_` and `-`");
        }
        if self.cert_file.is_some() != self.key_file.is_some() {
            problem("needs both `cert_file` and `key_file`, or neither");
        }
        let is_secret = self.bearer_file.is_some() || self.cert_file.is_some();
        if !is_secret && self.ca_file.is_none() {
            problem("is empty; give it `bearer_file`, `ca_file`, or `cert_file` and `key_file`");
        }
        if is_secret && self.hosts.is_empty() {
            problem("needs `hosts`, the hosts that it may be shown to");
        }
    }

    /// Whether it may be used for calls of `target`.
    pub(super) fn check_target(&self, target: &Target) -> Result<(), String> {
        if !self.hosts.is_empty() && !self.hosts.iter().any(|host| target.has_host(host)) {
            return Err("is not for this host; its `hosts` in the settings say which".to_owned());
        }
        let needs_tls = [
            (self.bearer_file.is_some() && !target.is_loopback(), "a bearer token"),
            (self.ca_file.is_some(), "a `ca_file`"),
            (self.cert_file.is_some(), "a client certificate"),
        ];
        match needs_tls.iter().find(|(applies, _)| *applies && !target.is_https()) {
            Some((_, what)) => Err(format!("holds {what}, which needs an https:// address")),
            None => Ok(()),
        }
    }
}
