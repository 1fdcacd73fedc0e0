//! Who is calling.
//!
//! With `auth.mode: none` everybody on the loopback interface holds the roles agent and submitter, and the guarded agent
//! itself is one of them. Whatever changes state therefore needs the admin token, which lies in a file that only the
//! user who runs the service can read.
//!
//! Without authentication a submitter is who it says it is: in the header of an upload, and for looking at what it
//! uploaded in the metadata of the call ([`SUBMITTER`]). That tells people apart who trust each other; it holds off
//! nobody, and gives no right to change anything.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use super::RequestError;
use super::server::Shared;
use crate::policy::CallerRole;

/// Metadata in which a caller without authentication says which submitter it is.
pub const SUBMITTER: &str = "portcullis-submitter";

/// The name of whoever says nothing of itself.
pub const ANONYMOUS: &str = "anonymous";

/// What no caller may state to be.
const RESERVED: [&str; 2] = ["admin", "system"];

/// Longest name of a submitter, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What the caller may be.
    pub roles: &'static [CallerRole],
    /// Who a caller without authentication says it is.
    stated: Option<Arc<str>>,
}

const EVERYBODY: &[CallerRole] = &[CallerRole::Agent, CallerRole::Submitter];
const ADMIN: &[CallerRole] =
    &[CallerRole::Agent, CallerRole::Submitter, CallerRole::Auditor, CallerRole::Admin];

const EVERYBODY_NAMES: &[&str] = &["agent", "submitter"];
const ADMIN_NAMES: &[&str] = &["agent", "submitter", "auditor", "admin"];

impl Identity {
    /// The person at the terminal, who holds every role over what the files of this place say.
    pub fn operator() -> Self {
        Self { roles: ADMIN, stated: None }
    }

    /// Whether the name was established, not merely stated.
    pub fn is_authenticated(&self) -> bool {
        self.roles.contains(&CallerRole::Admin)
    }

    /// Whether the caller decides about all submissions of its tenant.
    pub fn is_admin(&self) -> bool {
        self.roles.contains(&CallerRole::Admin)
    }

    /// Role names, for the audit record.
    pub fn role_names(&self) -> &'static [&'static str] {
        if self.roles.len() == ADMIN.len() { ADMIN_NAMES } else { EVERYBODY_NAMES }
    }

    /// The tenant whose things the caller sees and changes. Without authentication there is one for all, the empty one.
    pub fn tenant(&self) -> &'static str {
        ""
    }

    /// Who the caller is, for the record of a change.
    pub fn name(&self) -> &str {
        if self.is_admin() { "admin" } else { self.stated.as_deref().unwrap_or(ANONYMOUS) }
    }

    /// Who uploads, given the `field` of a request that names a submitter.
    ///
    /// # Errors
    /// The name is not the caller's own, or cannot be one.
    pub fn submitter(&self, field: &str, named: &str) -> Result<String, RequestError> {
        if named.is_empty() {
            return Ok(self.name().to_owned());
        }
        let is_known = self.is_authenticated() || self.stated.is_some();
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
        if self.roles.contains(&CallerRole::Auditor) { Ok(()) } else { Err(RequestError::NeedsAuditor) }
    }

    /// Refuses a caller who is no admin.
    ///
    /// # Errors
    /// [`RequestError::NeedsAdmin`].
    pub fn require_admin(&self) -> Result<(), RequestError> {
        if self.roles.contains(&CallerRole::Admin) { Ok(()) } else { Err(RequestError::NeedsAdmin) }
    }
}

/// Tells callers apart. Holds a hash of the admin token, not the token.
pub struct Authenticator {
    admin: [u8; 32],
}

impl Authenticator {
    /// An authenticator for the admin token of this process.
    pub fn new(admin_token: &str) -> Self {
        Self { admin: digest(admin_token) }
    }

    /// The identity of a request.
    ///
    /// # Errors
    /// A token that is not the admin token: a caller with a wrong token wants something that it will not get, and is
    /// told so at once. Or the stated submitter cannot be one.
    pub fn identify(&self, metadata: &MetadataMap) -> Result<Identity, RequestError> {
        let Some(value) = metadata.get("authorization") else {
            return Ok(Identity { roles: EVERYBODY, stated: stated(metadata)? });
        };
        let token = value
            .to_str()
            .ok()
            .and_then(|v| v.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim())
            .ok_or(RequestError::BadToken)?;
        // Hashes have one length, and comparing them takes the same time wherever they differ.
        if digest(token).ct_eq(&self.admin).into() {
            Ok(Identity { roles: ADMIN, stated: None })
        } else {
            Err(RequestError::BadToken)
        }
    }
}

/// The submitter that the metadata states.
fn stated(metadata: &MetadataMap) -> Result<Option<Arc<str>>, RequestError> {
    let Some(value) = metadata.get(SUBMITTER) else { return Ok(None) };
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
    if RESERVED.contains(&name) {
        return Some(format!("`{name}` is a name that the service itself gives"));
    }
    let is_wrong = name.trim() != name || name.chars().any(char::is_control);
    is_wrong.then(|| "must hold no control characters, and no space at either end".to_owned())
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl Shared {
    /// Who calls.
    ///
    /// # Errors
    /// What it says of itself is wrong.
    pub(super) fn identity<T>(&self, request: &Request<T>) -> Result<Identity, Status> {
        self.auth.identify(request.metadata()).map_err(|error| error.to_status())
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
            let mut metadata = MetadataMap::new();
            for (name, value) in pairs {
                metadata.insert(*name, value.parse().expect("ASCII"));
            }
            auth.identify(&metadata)
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
            let mut metadata = MetadataMap::new();
            if let Some(value) = value {
                metadata.insert("authorization", value.parse().expect("ASCII"));
            }
            auth.identify(&metadata).map(|identity| identity.roles.contains(&CallerRole::Admin))
        };
        assert!(matches!(with(None), Ok(false)));
        assert!(matches!(with(Some("Bearer s3cret")), Ok(true)));
        assert!(matches!(with(Some("bearer  s3cret ")), Ok(true)));
        for wrong in ["Bearer S3cret", "Bearer ", "s3cret", "Basic s3cret", "Bearer s3cret2"] {
            assert!(matches!(with(Some(wrong)), Err(RequestError::BadToken)), "{wrong}");
        }
    }
}
