//! Settings of the HTTP side.

use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::host::AllowedHosts;
use crate::setting::Problem;

/// `http`: metrics and probes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Address and port of the HTTP listener. Port 0 asks the system for a free one.
    #[serde(with = "crate::setting::address")]
    pub listen: SocketAddr,
    /// Hosts that a request may name besides this machine, `HOST` for any port or `HOST:PORT`; `*` allows all.
    pub allowed_hosts: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)), allowed_hosts: Vec::new() }
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
