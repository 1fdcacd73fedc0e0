//! Settings: `auth` and `rate_limit`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::jwks::check_url;
use super::jwt::LEEWAY_MAX;
use super::tokens::check_tenant;
use super::{CertificateMap, JwtAlgorithm};
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
    /// Tokens that another service signs, with `mode: jwt`.
    pub jwt: JwtConfig,
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
    /// By a JSON web token that an issuer signed.
    Jwt,
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

/// `auth.jwt`: tokens that another service signs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JwtConfig {
    /// File with the JSON web key set of the issuer, relative to the working directory. Read again when it changes. This
    /// or `jwks_url`.
    pub jwks_path: Option<PathBuf>,
    /// URL of the key set: https, or http on this machine.
    pub jwks_url: Option<String>,
    /// PEM file with the only authorities that are trusted for `jwks_url`; the public ones when unset.
    pub ca_file: Option<PathBuf>,
    /// How often the URL is asked for new keys. A token with an unknown key asks at once, at most every 5s.
    #[serde(with = "crate::setting::duration")]
    pub jwks_refresh: Duration,
    /// What `iss` must be.
    pub issuer: Option<String>,
    /// What `aud` must be or hold.
    pub audience: Option<String>,
    /// Algorithms that are taken: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA.
    pub algorithms: Vec<JwtAlgorithm>,
    /// Claim with the roles: a list, or names with spaces between. A name that begins with `/` is a JSON Pointer.
    pub roles_claim: String,
    /// Claim with the tenant; without it the holder is of the default tenant.
    pub tenant_claim: String,
    /// Claim with the name of the holder.
    pub subject_claim: String,
    /// How far the clocks of issuer and server may be apart.
    #[serde(with = "crate::setting::duration")]
    pub leeway: Duration,
}

impl Default for JwtConfig {
    fn default() -> Self {
        Self {
            jwks_path: None,
            jwks_url: None,
            ca_file: None,
            jwks_refresh: Duration::from_secs(300),
            issuer: None,
            audience: None,
            algorithms: vec![JwtAlgorithm::RS256, JwtAlgorithm::ES256, JwtAlgorithm::EdDSA],
            roles_claim: "roles".to_owned(),
            tenant_claim: "tenant".to_owned(),
            subject_claim: "sub".to_owned(),
            leeway: Duration::from_secs(30),
        }
    }
}

impl JwtConfig {
    fn check(&self, problems: &mut Vec<Problem>) {
        if self.jwks_path.is_some() == self.jwks_url.is_some() {
            let message =
                "exactly one of auth.jwt.jwks_path and auth.jwt.jwks_url is needed by auth.mode jwt";
            problems.push(Problem::new("jwt.jwks_path", message));
        }
        for (key, value) in [("jwt.issuer", &self.issuer), ("jwt.audience", &self.audience)] {
            if value.as_deref().is_none_or(|value| value.trim().is_empty()) {
                let message =
                    "is needed by auth.mode jwt: without it tokens that were made for others open this door";
                problems.push(Problem::new(key, message));
            }
        }
        if self.algorithms.is_empty() {
            problems.push(Problem::new("jwt.algorithms", "must not be empty"));
        }
        for (key, value) in
            [("jwt.roles_claim", &self.roles_claim), ("jwt.subject_claim", &self.subject_claim)]
        {
            if value.is_empty() {
                problems.push(Problem::new(key, "must not be empty"));
            }
        }
    }

    /// What is wrong in every mode.
    fn check_ranges(&self, problems: &mut Vec<Problem>) {
        if let Some(Err(what)) = self.jwks_url.as_deref().map(check_url) {
            problems.push(Problem::new("jwt.jwks_url", what));
        }
        if self.leeway > LEEWAY_MAX {
            problems.push(Problem::new("jwt.leeway", "must be at most 5m"));
        }
        if !(Duration::from_secs(5)..=Duration::from_secs(24 * 3_600)).contains(&self.jwks_refresh) {
            problems.push(Problem::new("jwt.jwks_refresh", "must be from 5s to 24h"));
        }
    }
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
#[serde(default, deny_unknown_fields, expecting = "an entry with keys such as subject, name and roles")]
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
#[serde(default, deny_unknown_fields, expecting = "a section with keys such as policy and policies")]
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
            AuthMode::Jwt => self.jwt.check(problems),
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
        self.jwt.check_ranges(problems);
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
