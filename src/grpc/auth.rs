//! Who is calling: credentials out of a call, and what follows from them for a request.
//!
//! With `auth.mode: none` everybody on the loopback interface holds the roles agent and submitter, and the guarded agent
//! itself is one of them. Whatever changes state therefore needs the admin token, which lies in a file that only the
//! user who runs the service can read. In every other mode each call brings a credential, and the admin token is not
//! accepted: a second way in would be one that nobody looks at.
//!
//! Without authentication a submitter is who it says it is: in the header of an upload, and for looking at what it
//! uploaded in the metadata of the call ([`SUBMITTER`]). That tells people apart who trust each other; it holds off
//! nobody, and gives no right to change anything.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tonic::{Request, Status};

use super::RequestError;
use super::audit_service::Changed;
use super::server::Shared;
use super::tls::Peer;
use crate::audit::masked_name;
use crate::identity::{
    ANONYMOUS, AuthConfig, AuthMode, CertificateMap, Identity, JwtRules, Kept, Keys, Known, RESERVED_NAMES,
    RateLimit, RateLimitConfig, Refreshed, Tenants, TokenSet, is_open, is_ours, needs, read_tokens,
};
use crate::pb::v1;
use crate::policy::{CallerRole, Policy, PolicySet};
use crate::telemetry::{AuthReason, AuthRejected, AuthReloaded, Metrics, RateLimited};

/// Metadata in which a caller without authentication says which submitter it is.
pub const SUBMITTER: &str = "portcullis-submitter";

/// Metadata in which a caller, or what stands before it, says what it calls its request, as gateways do.
pub const REQUEST_ID: &str = "x-request-id";

/// Longest id of a request, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 256;

/// Longest name of a submitter, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// How often credentials are looked at for changes.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// After how many looks buckets of callers that went away are forgotten.
const LOOKS_TO_FORGET: u32 = 120;

impl Identity {
    /// The caller of a request, which the layer around every service established.
    ///
    /// # Errors
    /// Nobody did: a request that came around the layer.
    pub(super) fn of<T>(request: &Request<T>) -> Result<Self, RequestError> {
        request.extensions().get::<Self>().cloned().ok_or(RequestError::Internal)
    }

    /// Who uploads, given the `field` of a request that names a submitter.
    ///
    /// # Errors
    /// The name is not the caller's own, or cannot be one.
    pub fn submitter(&self, field: &str, named: &str) -> Result<String, RequestError> {
        if named.is_empty() {
            return Ok(self.name().to_owned());
        }
        let is_known = self.is_authenticated() || self.is_stated();
        match wrong_name(named) {
            _ if is_known && named == self.name() => Ok(named.to_owned()),
            _ if is_known => Err(RequestError::NotYours { field: field.to_owned() }),
            Some(message) => Err(RequestError::field(field, message)),
            None => Ok(named.to_owned()),
        }
    }

    /// Refuses a caller who may not look at administrative events.
    ///
    /// # Errors
    /// [`RequestError::NeedsAuditor`].
    pub fn require_auditor(&self) -> Result<(), RequestError> {
        if self.has(CallerRole::Auditor) { Ok(()) } else { Err(RequestError::NeedsAuditor) }
    }

    /// Refuses a caller who is no admin.
    ///
    /// # Errors
    /// [`RequestError::NeedsAdmin`].
    pub fn require_admin(&self) -> Result<(), RequestError> {
        if self.is_admin() { Ok(()) } else { Err(RequestError::NeedsAdmin) }
    }

    /// The policy for a call that names `name`, which may be empty.
    ///
    /// # Errors
    /// The policy is not for the caller's tenant.
    pub(super) fn policy<'a>(&'a self, name: &'a str) -> Result<&'a str, RequestError> {
        let Some(known) = self.credential() else { return Ok(name) };
        known
            .terms
            .policy(name)
            .ok_or_else(|| RequestError::PolicyNotAllowed { name: name.chars().take(60).collect() })
    }

    /// That the policy of the caller's tenant is not loaded, where a call names none, so that nothing the caller said is
    /// wrong.
    pub(super) fn missing_policy(&self, policies: &PolicySet, named: &str) -> Option<RequestError> {
        let known = self.credential().filter(|_| named.is_empty())?;
        let name = known.terms.policy("").filter(|name| policies.get(name).is_none())?;
        Some(RequestError::PolicyMissing { name: name.to_owned(), tenant: known.tenant.clone() })
    }

    /// Writes into a request what follows from who sent it: its tenant, and its policy where it names none. Without
    /// authentication a caller is believed.
    ///
    /// # Errors
    /// It says to be of another tenant (`field` is where), or names a policy that its own does not know: whether there is
    /// one of that name for somebody else is not told.
    pub(super) fn settle(
        &self,
        policies: &PolicySet,
        field: &str,
        context: &mut Option<v1::CallContext>,
        policy: &mut String,
    ) -> Result<(), RequestError> {
        let Some(known) = self.credential() else { return Ok(()) };
        let stated = context.as_ref().map_or("", |context| &context.tenant);
        if !stated.is_empty() && *stated != *known.tenant {
            return Err(RequestError::NotYours { field: field.to_owned() });
        }
        if stated.is_empty() && !known.tenant.is_empty() {
            context.get_or_insert_default().tenant.clone_from(&known.tenant);
        }
        let permitted = known.terms.policy(policy);
        let Some(settled) = permitted.filter(|name| policies.get(name).is_some()) else {
            if let Some(missing) = self.missing_policy(policies, policy) {
                return Err(missing);
            }
            let is_visible = |other: &&Arc<Policy>| {
                other.allows_caller(self.roles) && known.terms.policy(other.name()).is_some()
            };
            let mut names: Vec<&str> =
                policies.iter().filter(is_visible).map(|other| &**other.name()).collect();
            names.sort_unstable();
            let name: String = policy.chars().take(60).flat_map(char::escape_debug).collect();
            let message = format!("unknown policy `{name}`; known: {}", names.join(", "));
            return Err(RequestError::field(field.replace("context.tenant", "policy"), message));
        };
        if settled != policy {
            *policy = settled.to_owned();
        }
        Ok(())
    }

    /// The policy that `field` names, if it is for callers of these roles.
    ///
    /// # Errors
    /// There is none of that name, or it is for others.
    pub(super) fn named_policy<'p>(
        &self,
        policies: &'p PolicySet,
        field: &'static str,
        name: &str,
    ) -> Result<&'p Arc<Policy>, RequestError> {
        let Some(policy) = policies.get(name) else {
            let name: String = name.chars().take(60).collect();
            let mut known: Vec<&str> =
                policies.iter().filter(|p| p.allows_caller(self.roles)).map(|p| &**p.name()).collect();
            known.sort_unstable();
            let message = format!("unknown policy `{name}`; known: {}", known.join(", "));
            return Err(RequestError::field(field, message));
        };
        if !policy.allows_caller(self.roles) {
            return Err(RequestError::PolicyNotAllowed { name: policy.name().to_string() });
        }
        Ok(policy)
    }
}

/// Tells callers apart, and how often each may call.
pub struct Authenticator {
    credentials: Credentials,
    tenants: Tenants,
    rate: Option<RateLimit>,
}

/// What credentials are held against.
enum Credentials {
    /// None are asked for. Holds a hash of the admin token, not the token.
    None { admin: [u8; 32] },
    /// Tokens of a file.
    Tokens(Kept<TokenSet>),
    /// Tokens that an issuer signed.
    Jwt { rules: JwtRules, keys: Keys },
    /// Certificates of clients.
    Certificates(CertificateMap),
}

/// Why callers cannot be told apart.
#[derive(Debug, thiserror::Error)]
#[error("{what} `{}`: {problem}", path.display())]
pub struct AuthError {
    what: &'static str,
    path: PathBuf,
    problem: String,
}

impl Authenticator {
    /// An authenticator for the admin token of this process, where nobody needs a credential.
    pub fn new(admin_token: &str) -> Self {
        let credentials = Credentials::None { admin: digest(admin_token) };
        Self { credentials, tenants: Tenants::default(), rate: None }
    }

    /// The authenticator of the settings. `admin_token` is used with `mode: none` alone.
    ///
    /// # Errors
    /// What the settings name cannot be read.
    pub fn start(auth: &AuthConfig, rate: &RateLimitConfig, admin_token: &str) -> Result<Self, AuthError> {
        let credentials = match auth.mode {
            AuthMode::None => Credentials::None { admin: digest(admin_token) },
            AuthMode::Jwt => {
                let rules = JwtRules::new(&auth.jwt);
                let keys = match (&auth.jwt.jwks_path, &auth.jwt.jwks_url) {
                    (Some(path), _) => Keys::of_file(path.clone()).map_err(|problem| AuthError {
                        what: "auth.jwt.jwks_path",
                        path: path.clone(),
                        problem,
                    })?,
                    (None, url) => {
                        let url = url.as_deref().unwrap_or_default();
                        let interval = auth.jwt.jwks_refresh;
                        Keys::of_url(url, interval, auth.jwt.ca_file.as_deref()).map_err(|problem| {
                            AuthError { what: "auth.jwt.jwks_url", path: PathBuf::new(), problem }
                        })?
                    }
                };
                Credentials::Jwt { rules, keys }
            }
            // What is wrong with the entries was told when the settings were read.
            AuthMode::Mtls => Credentials::Certificates(CertificateMap::read(&auth.mtls, &mut Vec::new())),
            AuthMode::Tokens => {
                let path = auth.tokens.path.clone().unwrap_or_default();
                let failed = |problem| AuthError { what: "auth.tokens.path", path: path.clone(), problem };
                let file = path.clone();
                let kept = Kept::start(vec![path.clone()], move || read_tokens(&file)).map_err(failed)?;
                if kept.get().is_empty() {
                    tracing::warn!(path = %path.display(), "the file of tokens is empty: nobody can call");
                }
                Credentials::Tokens(kept)
            }
        };
        Ok(Self { credentials, tenants: Tenants::new(&auth.tenants), rate: RateLimit::new(rate) })
    }

    /// Whether callers can be told apart: whether the keys of the issuer were had, where there is one.
    pub fn is_ready(&self) -> bool {
        match &self.credentials {
            Credentials::Jwt { keys, .. } => keys.get().is_some(),
            Credentials::None { .. } | Credentials::Tokens(_) | Credentials::Certificates(_) => true,
        }
    }

    /// The caller of `path`, who may call it and has not called too often; `None` where nobody is asked who calls.
    ///
    /// # Errors
    /// It brings no credential or a wrong one, lacks the role, or called too often.
    pub(super) fn admit<B>(
        &self,
        request: &http::Request<B>,
        metrics: &Metrics,
    ) -> Result<Option<Identity>, RequestError> {
        let path = request.uri().path();
        if is_open(path) {
            return Ok(None);
        }
        let identity = self.identify(request.headers(), request.extensions().get())?;
        match needs(path) {
            Some(roles) if !roles.iter().any(|role| identity.has(*role)) => {
                return Err(self.lacks(&identity, roles));
            }
            // Never passed on: what has no row is served to nobody, and no role would help.
            None if is_ours(path) => return Err(RequestError::UnknownRpc),
            _ => {}
        }
        self.take(&identity, metrics)?;
        Ok(Some(identity))
    }

    /// Takes one call of `identity`.
    ///
    /// # Errors
    /// It called too often.
    pub(super) fn take(&self, identity: &Identity, metrics: &Metrics) -> Result<(), RequestError> {
        let Some(rate) = &self.rate else { return Ok(()) };
        rate.take(identity).map_err(|wait| {
            let name = if identity.is_authenticated() { identity.name() } else { ANONYMOUS };
            RateLimited { name, tenant: identity.tenant() }.emit(metrics);
            RequestError::RateLimited { per_second: rate.per_second(), wait }
        })
    }

    /// The refusal of a caller that is known and lacks a role.
    fn lacks(&self, identity: &Identity, roles: &'static [CallerRole]) -> RequestError {
        match &self.credentials {
            Credentials::None { .. } if roles == [CallerRole::Auditor] => RequestError::NeedsAuditor,
            Credentials::None { .. } => RequestError::NeedsAdmin,
            Credentials::Tokens(_) | Credentials::Jwt { .. } | Credentials::Certificates(_) => {
                RequestError::NeedsRole { roles, has: identity.roles }
            }
        }
    }

    /// The identity of a request.
    ///
    /// # Errors
    /// A credential is missing or wrong. With `mode: none`: a token that is not the admin token, since a caller with a
    /// wrong token wants something that it will not get, and is told so at once. Or the stated submitter cannot be one.
    fn identify(&self, headers: &HeaderMap, peer: Option<&Peer>) -> Result<Identity, RequestError> {
        let refused = |reason| RequestError::Unauthenticated { reason };
        match &self.credentials {
            Credentials::Jwt { rules, keys } => {
                let token = bearer(headers).map_err(refused)?;
                let keys = keys.get().ok_or(refused(AuthReason::Unavailable))?;
                let holder = rules.verify(token, &keys).map_err(refused)?;
                self.known(headers, holder.roles, &holder.name, &holder.tenant)
            }
            Credentials::Certificates(map) => {
                let certificate = peer.and_then(|peer| peer.certificate.as_deref());
                let certificate = certificate.ok_or(refused(AuthReason::Certificate))?;
                if !certificate.is_valid_at(Timestamp::now()) {
                    return Err(refused(AuthReason::Expired));
                }
                let holder = map.holder(certificate).ok_or(refused(AuthReason::Certificate))?;
                self.known(headers, holder.roles, &holder.name, &holder.tenant)
            }
            Credentials::None { admin } => anybody(headers, admin),
            Credentials::Tokens(tokens) => {
                let token = bearer(headers).map_err(refused)?;
                let tokens = tokens.get();
                let holder = tokens.verify(token, Timestamp::now()).map_err(refused)?;
                self.known(headers, holder.roles, &holder.name, &holder.tenant)
            }
        }
    }

    /// The identity that a credential tells.
    fn known(
        &self,
        headers: &HeaderMap,
        roles: &'static [CallerRole],
        name: &str,
        tenant: &str,
    ) -> Result<Identity, RequestError> {
        // Who it says it is must be who it is.
        if headers.get_all(SUBMITTER).iter().any(|stated| !stated.is_empty() && stated != name) {
            return Err(RequestError::NotYours { field: SUBMITTER.to_owned() });
        }
        let terms = self.tenants.terms(tenant).clone();
        let known = Known { name: name.to_owned(), tenant: tenant.to_owned(), terms };
        Ok(Identity::known(roles, known))
    }

    /// Reads again what has changed, and says so; tells what it came to where anything had changed.
    fn refresh(&self, metrics: &Metrics) -> Option<ReadAgain> {
        let read = match &self.credentials {
            Credentials::Tokens(tokens) => {
                let refreshed = tokens.refresh();
                let detail = json!({ "tokens": tokens.get().len() });
                ReadAgain { what: TOKENS, refreshed, detail }
            }
            Credentials::Jwt { keys, .. } => {
                ReadAgain { what: KEYS, refreshed: keys.refresh_file(), detail: json!({}) }
            }
            Credentials::None { .. } | Credentials::Certificates(_) => return None,
        };
        tell_refreshed(read.what.name, &read.refreshed, metrics);
        (read.refreshed != Refreshed::Unchanged).then_some(read)
    }

    /// Fetches keys of an issuer that is elsewhere, if it is time to.
    pub async fn fetch_keys(&self, metrics: &Metrics) {
        if let Credentials::Jwt { keys, .. } = &self.credentials {
            tell_refreshed(KEYS.name, &keys.refresh_remote(false).await, metrics);
        }
    }

    /// Whether a caller that was refused for this may be known once keys were fetched.
    pub(super) fn may_be_known_later(&self, error: &RequestError) -> bool {
        let is_unknown = matches!(error, RequestError::Unauthenticated { reason: AuthReason::Key });
        is_unknown && matches!(&self.credentials, Credentials::Jwt { keys, .. } if keys.is_remote())
    }

    /// Fetches keys since a token names one that is not known: issuers change them without notice.
    pub(super) async fn look_for_keys(&self, metrics: &Metrics) {
        if let Credentials::Jwt { keys, .. } = &self.credentials {
            tell_refreshed(KEYS.name, &keys.refresh_remote(true).await, metrics);
        }
    }

    /// Whether the admin token is one that is accepted.
    pub fn takes_admin_token(mode: AuthMode) -> bool {
        mode == AuthMode::None
    }

    /// Says which policies of tenants are not loaded: calls of those tenants are refused.
    pub fn warn_of_missing(&self, policies: &PolicySet) {
        for policy in self.tenants.policies().filter(|name| policies.get(name).is_none()) {
            tracing::warn!(
                policy,
                "a policy that auth.tenants names is not loaded; calls under it are refused"
            );
        }
    }
}

/// What can be read again, with the actions of its administrative events.
#[derive(Clone, Copy)]
pub(super) struct Files {
    /// What it is called in metrics, logs and resources.
    pub(super) name: &'static str,
    reloaded: &'static str,
    rejected: &'static str,
}

const TOKENS: Files = Files { name: "tokens", reloaded: "tokens.reloaded", rejected: "tokens.rejected" };
const KEYS: Files = Files { name: "keys", reloaded: "keys.reloaded", rejected: "keys.rejected" };
/// Those of the listener.
pub(super) const CERTIFICATES: Files =
    Files { name: "certificates", reloaded: "certificates.reloaded", rejected: "certificates.rejected" };

/// Files that had changed, and what reading them came to.
pub(super) struct ReadAgain {
    /// Which.
    pub(super) what: Files,
    /// What it came to.
    pub(super) refreshed: Refreshed,
    /// What is in force now, a JSON object without secrets.
    pub(super) detail: Value,
}

/// Counts and logs what a look at changed files came to.
pub(super) fn tell_refreshed(what: &'static str, refreshed: &Refreshed, metrics: &Metrics) {
    match refreshed {
        Refreshed::Unchanged => {}
        Refreshed::Applied => AuthReloaded { what }.emit(metrics),
        Refreshed::Rejected(problem) => AuthRejected { what, problem }.emit(metrics),
    }
}

/// The token of `authorization: Bearer …`.
fn bearer(headers: &HeaderMap) -> Result<&str, AuthReason> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(AuthReason::Missing)?;
    if values.next().is_some() {
        // Of two credentials nobody knows which one is meant.
        return Err(AuthReason::Malformed);
    }
    let (scheme, token) =
        value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or(AuthReason::Malformed)?;
    let token = token.trim();
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty();
    if is_bearer { Ok(token) } else { Err(AuthReason::Malformed) }
}

/// Whoever calls where no credential is asked for, or the holder of the admin token.
fn anybody(headers: &HeaderMap, admin: &[u8; 32]) -> Result<Identity, RequestError> {
    let Some(value) = headers.get(AUTHORIZATION) else {
        return Ok(Identity::anybody(stated(headers)?));
    };
    let token = value
        .to_str()
        .ok()
        .and_then(|v| v.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim())
        .ok_or(RequestError::BadToken)?;
    // Hashes have one length, and comparing them takes the same time wherever they differ.
    if digest(token).ct_eq(admin).into() { Ok(Identity::operator()) } else { Err(RequestError::BadToken) }
}

/// The submitter that the metadata states.
fn stated(headers: &HeaderMap) -> Result<Option<Arc<str>>, RequestError> {
    let Some(value) = headers.get(SUBMITTER) else { return Ok(None) };
    match value.to_str() {
        Ok("") => Ok(None),
        Ok(name) => match wrong_name(name) {
            None => Ok(Some(name.into())),
            Some(message) => Err(RequestError::field(SUBMITTER, message)),
        },
        Err(_) => Err(RequestError::field(SUBMITTER, "must be visible ASCII characters")),
    }
}

/// What is wrong with the name of a submitter.
fn wrong_name(name: &str) -> Option<String> {
    if name.len() > NAME_BYTES_MAX {
        return Some(format!("has {} bytes, more than {NAME_BYTES_MAX}", name.len()));
    }
    // Names of events whose actor was established; nobody may pass for them by a word.
    if RESERVED_NAMES.contains(&name) {
        return Some(format!("`{name}` is a name that the service itself gives"));
    }
    let is_wrong = name.trim() != name || name.chars().any(char::is_control);
    is_wrong.then(|| "must hold no control characters, and no space at either end".to_owned())
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl Shared {
    /// Fetches keys of an issuer again and again. Never ends.
    pub async fn follow_keys(self: Arc<Self>) {
        let mut timer = tokio::time::interval(LOOK_INTERVAL);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            timer.tick().await;
            self.auth.fetch_keys(&self.metrics).await;
        }
    }

    /// Looks again and again whether tokens, keys and certificates have changed. Never ends.
    pub async fn follow_credentials(self: Arc<Self>) {
        let mut timer = tokio::time::interval(LOOK_INTERVAL);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        for look in 0_u32.. {
            timer.tick().await;
            let shared = self.clone();
            // Files are read and keys are parsed: not on a worker that answers calls.
            let looked = tokio::task::spawn_blocking(move || {
                let tls = shared.tls.as_ref();
                let read =
                    [shared.auth.refresh(&shared.metrics), tls.and_then(|tls| tls.refresh(&shared.metrics))];
                if let Some(rate) = shared.auth.rate.as_ref().filter(|_| look % LOOKS_TO_FORGET == 0) {
                    rate.forget_idle();
                }
                read
            });
            match looked.await {
                // A store that does not answer does not hold up the next look.
                Ok(read) => read.into_iter().flatten().for_each(|read| {
                    let shared = self.clone();
                    tokio::spawn(async move { shared.record_read_again(&read).await });
                }),
                Err(error) => {
                    tracing::error!(%error, "a look at credentials panicked; the last good ones stay in force");
                }
            }
        }
    }

    /// Keeps the administrative event of tokens, keys or certificates that were read again.
    async fn record_read_again(&self, read: &ReadAgain) {
        let mut detail = read.detail.clone();
        let action = match &read.refreshed {
            Refreshed::Unchanged => return,
            Refreshed::Applied => read.what.reloaded,
            Refreshed::Rejected(problem) => {
                detail["problems"] = json!([problem]);
                read.what.rejected
            }
        };
        let changed = Changed {
            action,
            resource: &format!("credentials:{}", read.what.name),
            reason: "",
            policy_revision: &self.revision(),
            detail: Some(&detail),
        };
        self.events.append_own(changed).await;
    }

    /// What the metadata of a call says that its request is called, without credentials in it; `None` for nothing, or what
    /// cannot be an id. Whoever stands between sets it as well, so a call is not refused for it.
    pub(super) fn request_id(&self, headers: &HeaderMap) -> Option<Arc<str>> {
        let id = headers.get(REQUEST_ID)?.to_str().ok()?.trim();
        if id.is_empty() || id.len() > REQUEST_ID_BYTES_MAX {
            return None;
        }
        let snapshot = self.live.snapshot()?;
        Some(masked_name(snapshot.scanner(), id).into())
    }

    /// Who calls.
    ///
    /// # Errors
    /// The request came around the layer.
    pub(super) fn identity<T>(&self, request: &Request<T>) -> Result<Identity, Status> {
        Identity::of(request).map_err(|error| error.to_status())
    }

    /// The request of an administrator.
    ///
    /// # Errors
    /// The caller is none.
    pub(super) fn admin<T>(&self, request: Request<T>) -> Result<(Identity, T), Status> {
        let identity = self.identity(&request)?;
        identity.require_admin().map_err(|error| error.to_status())?;
        Ok((identity, request.into_inner()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submitter_is_who_the_caller_is() {
        let auth = Authenticator::new("s3cret");
        let with = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().expect("ASCII"));
            }
            auth.identify(&headers, None)
        };
        let nobody = with(&[]).expect("known");
        let ada = with(&[(SUBMITTER, "ada")]).expect("known");
        let admin = with(&[("authorization", "Bearer s3cret"), (SUBMITTER, "ada")]).expect("known");
        assert_eq!([nobody.name(), ada.name(), admin.name()], ["anonymous", "ada", "admin"]);
        for (identity, named, wanted) in [
            (&nobody, "", Some("anonymous")),
            (&nobody, "ada", Some("ada")),
            (&nobody, "admin", None),
            (&ada, "", Some("ada")),
            (&ada, "ada", Some("ada")),
            (&ada, "bob", None),
            (&admin, "", Some("admin")),
            (&admin, "ada", None),
            (&nobody, " ada", None),
            (&nobody, "a\u{1b}[2J", None),
        ] {
            let got = identity.submitter("header.submitter", named).ok();
            assert_eq!(got.as_deref(), wanted, "{} as {named:?}", identity.name());
        }
        assert!(nobody.submitter("header.submitter", &"a".repeat(257)).is_err());
        for wrong in [" ada", "admin"] {
            assert!(with(&[(SUBMITTER, wrong)]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn tells_callers_apart() {
        let auth = Authenticator::new("s3cret");
        let with = |value: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert("authorization", value.parse().expect("ASCII"));
            }
            auth.identify(&headers, None).map(|identity| identity.roles.contains(&CallerRole::Admin))
        };
        assert!(matches!(with(None), Ok(false)));
        assert!(matches!(with(Some("Bearer s3cret")), Ok(true)));
        assert!(matches!(with(Some("bearer  s3cret ")), Ok(true)));
        for wrong in ["Bearer S3cret", "Bearer ", "s3cret", "Basic s3cret", "Bearer s3cret2"] {
            assert!(matches!(with(Some(wrong)), Err(RequestError::BadToken)), "{wrong}");
        }
    }
}
