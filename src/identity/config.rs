//! Settings: `auth` and `rate_limit`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::CertificateMap;
use super::tokens::check_tenant;
use crate::setting::Problem;

/// `auth`: who may call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// How callers are authenticated. With `none` every caller holds the roles agent and submitter, and what changes
    /// state needs the admin token.
    pub mode: AuthMode,
    /// Tokens of callers, with `mode: tokens`.
    pub tokens: TokensConfig,
    /// Client certificates and whose they are, with `mode: mtls`.
    pub mtls: MtlsConfig,
    /// What tenants get, by name. Needs authentication: without it nobody knows the tenant of a caller.
    pub tenants: BTreeMap<String, TenantConfig>,
}

/// How callers are authenticated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    /// Not at all.
    #[default]
    None,
    /// By a token that a file lists by its hash.
    Tokens,
    /// By the certificate that a client proves to hold.
    Mtls,
}

/// `auth.tokens`: tokens of callers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokensConfig {
    /// The file that lists them, relative to the working directory. Read again when it changes.
    pub path: Option<PathBuf>,
}

/// `auth.mtls`: client certificates and whose they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MtlsConfig {
    /// One entry a certificate; the first that fits counts. Certificates that no entry fits open nothing.
    pub identities: Vec<CertificateIdentity>,
}

/// One entry of `auth.mtls.identities`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CertificateIdentity {
    /// The whole subject, such as `CN=ci,O=Acme`, in the order of the certificate. This or `san`.
    pub subject: String,
    /// One of its alternative names: a host name, a URI or a mail address. This or `subject`.
    pub san: String,
    /// Name of the caller: the submitter of what it uploads, and the actor of its changes.
    pub name: String,
    /// Its tenant; empty is the default tenant.
    pub tenant: String,
    /// Its roles: agent, submitter, auditor, admin. An admin holds all of them.
    pub roles: Vec<String>,
}

/// One entry of `auth.tenants`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantConfig {
    /// The policy of calls that name none. A tenant that has one may name this one and those of `policies` only.
    pub policy: Option<String>,
    /// Further policies that its callers may name. Tenants to which a policy is not given cannot name it.
    pub policies: Vec<String>,
    /// Blocked uploads a day of one submitter, in place of `guardrails.blocked_quota_per_day`; 0 for no limit.
    pub blocked_quota_per_day: Option<usize>,
}

/// `rate_limit`: how often one identity may call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimitConfig {
    /// Calls a second; 0 switches the limit off. A request of CheckMessagesStream counts as a call.
    #[serde(with = "crate::setting::count")]
    pub per_second: usize,
    /// Calls at once after a pause; 0 for as many as `per_second`.
    #[serde(with = "crate::setting::count")]
    pub burst: usize,
}

impl AuthConfig {
    /// Reports what is missing; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        match self.mode {
            AuthMode::None => {
                if !self.tenants.is_empty() {
                    let message = "needs callers that are authenticated; set auth.mode";
                    problems.push(Problem::new("tenants", message));
                }
            }
            AuthMode::Mtls => {}
            AuthMode::Tokens => {
                if self.tokens.path.is_none() {
                    let message =
                        "is needed by auth.mode tokens; name the file that `portcullis token create` writes";
                    problems.push(Problem::new("tokens.path", message));
                }
            }
        }
        if self.mode == AuthMode::Mtls && self.mtls.identities.is_empty() {
            let message = "is needed by auth.mode mtls; say whose the certificates of clients are";
            problems.push(Problem::new("mtls.identities", message));
        }
        CertificateMap::read(&self.mtls, problems);
        for (name, tenant) in &self.tenants {
            if let Err(what) = check_tenant(name) {
                problems.push(Problem::new("tenants", format!("the name of a tenant {what}")));
            }
            let names = tenant.policy.iter().chain(&tenant.policies);
            if names.into_iter().any(|policy| policy.trim().is_empty()) {
                problems.push(Problem::new("tenants", format!("`{name}` names a policy without a name")));
            }
        }
    }
}

impl RateLimitConfig {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        const MOST: usize = 1_000_000;
        for (key, value) in [("per_second", self.per_second), ("burst", self.burst)] {
            if value > MOST {
                problems.push(Problem::new(key, format!("must be at most {MOST}")));
            }
        }
        if self.per_second == 0 && self.burst > 0 {
            problems.push(Problem::new("burst", "has no meaning without rate_limit.per_second"));
        }
    }
}
