//! Settings of the HTTP side.

use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::host::AllowedHosts;
use crate::setting::Problem;

/// `http.adapters`: contracts of others, each off unless it is turned on here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdaptersConfig {
    /// The unary RPCs as JSON, as clients of the Connect protocol speak it.
    pub json: bool,
    /// Hooks of Claude Code.
    pub claude_code: bool,
    /// The generic guardrail API of LiteLLM.
    pub litellm: bool,
    /// The guardrail webhook of agentgateway.
    pub agentgateway: bool,
    /// `/v1/evaluate` of the OpenGuardrails runtime API.
    pub openguardrails: bool,
}

impl AdaptersConfig {
    /// Whether any of them is on.
    pub fn is_any_on(&self) -> bool {
        let Self { json, claude_code, litellm, agentgateway, openguardrails } = self;
        *json || *claude_code || *litellm || *agentgateway || *openguardrails
    }
}

/// `http`: metrics and probes, and what is turned on beside them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Address and port of the HTTP listener. Port 0 asks the system for a free one.
    #[serde(with = "crate::setting::address")]
    pub listen: SocketAddr,
    /// Hosts that a request may name besides this machine, `HOST` for any port or `HOST:PORT`; `*` allows all.
    pub allowed_hosts: Vec<String>,
    /// Contracts of others.
    pub adapters: AdaptersConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            allowed_hosts: Vec::new(),
            adapters: AdaptersConfig::default(),
        }
    }
}

impl Config {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        for host in &self.allowed_hosts {
            if !AllowedHosts::is_well_formed(host) {
                problems.push(Problem::new(
                    "allowed_hosts",
                    format!("`{host}` is not a host such as portcullis.internal, 10.0.0.7:8080 or *"),
                ));
            }
        }
    }
}
