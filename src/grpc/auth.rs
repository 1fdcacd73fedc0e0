//! Who is calling.
//!
//! With `auth.mode: none` everybody on the loopback interface holds the roles agent and submitter, and the guarded agent
//! itself is one of them. Whatever changes state therefore needs the admin token, which lies in a file that only the
//! user who runs the service can read.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tonic::metadata::MetadataMap;

use super::RequestError;
use crate::policy::CallerRole;

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What the caller may be.
    pub roles: &'static [CallerRole],
}

const EVERYBODY: &[CallerRole] = &[CallerRole::Agent, CallerRole::Submitter];
const ADMIN: &[CallerRole] =
    &[CallerRole::Agent, CallerRole::Submitter, CallerRole::Auditor, CallerRole::Admin];

const EVERYBODY_NAMES: &[&str] = &["agent", "submitter"];
const ADMIN_NAMES: &[&str] = &["agent", "submitter", "auditor", "admin"];

impl Identity {
    /// Role names, for the audit record.
    pub fn role_names(&self) -> &'static [&'static str] {
        if self.roles.len() == ADMIN.len() { ADMIN_NAMES } else { EVERYBODY_NAMES }
    }

    /// The tenant whose things the caller sees and changes. Without authentication there is one for all, the empty one.
    pub fn tenant(&self) -> &'static str {
        ""
    }

    /// Who the caller is, for the record of a change.
    pub fn name(&self) -> &'static str {
        if self.roles.contains(&CallerRole::Admin) { "admin" } else { "anonymous" }
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
    /// told so at once.
    pub fn identify(&self, metadata: &MetadataMap) -> Result<Identity, RequestError> {
        let Some(value) = metadata.get("authorization") else { return Ok(Identity { roles: EVERYBODY }) };
        let token = value
            .to_str()
            .ok()
            .and_then(|v| v.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim())
            .ok_or(RequestError::BadToken)?;
        // Hashes have one length, and comparing them takes the same time wherever they differ.
        if digest(token).ct_eq(&self.admin).into() {
            Ok(Identity { roles: ADMIN })
        } else {
            Err(RequestError::BadToken)
        }
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

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
