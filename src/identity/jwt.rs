//! JSON web tokens: verified against the public keys of their issuer, and what they say of their holder.
//!
//! Invariants: only algorithms of the settings are taken, and only ones of public keys: `none` and those of shared secrets
//! do not exist here, whatever a token or a key set says. A key verifies only what its own kind and `alg` allow. Expiry,
//! issuer and audience are always checked.

use std::time::Duration;

use jiff::Timestamp;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::config::JwtConfig;
use super::roles_of;
use super::tokens::{Holder, check_name, check_tenant};
use crate::policy::CallerRole;
use crate::telemetry::AuthReason;

/// Longest token that is looked at, in bytes.
const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// Most keys of a set that are kept.
const KEYS_MAX: usize = 100;

/// Algorithms that a public key verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JwtAlgorithm {
    /// RSA, PKCS#1, SHA-256.
    RS256,
    /// RSA, PKCS#1, SHA-384.
    RS384,
    /// RSA, PKCS#1, SHA-512.
    RS512,
    /// RSA, PSS, SHA-256.
    PS256,
    /// RSA, PSS, SHA-384.
    PS384,
    /// RSA, PSS, SHA-512.
    PS512,
    /// ECDSA, P-256, SHA-256.
    ES256,
    /// ECDSA, P-384, SHA-384.
    ES384,
    /// Ed25519.
    EdDSA,
}

impl JwtAlgorithm {
    const ALL: [Self; 9] = [
        Self::RS256,
        Self::RS384,
        Self::RS512,
        Self::PS256,
        Self::PS384,
        Self::PS512,
        Self::ES256,
        Self::ES384,
        Self::EdDSA,
    ];

    fn algorithm(self) -> Algorithm {
        match self {
            Self::RS256 => Algorithm::RS256,
            Self::RS384 => Algorithm::RS384,
            Self::RS512 => Algorithm::RS512,
            Self::PS256 => Algorithm::PS256,
            Self::PS384 => Algorithm::PS384,
            Self::PS512 => Algorithm::PS512,
            Self::ES256 => Algorithm::ES256,
            Self::ES384 => Algorithm::ES384,
            Self::EdDSA => Algorithm::EdDSA,
        }
    }
}

/// Public keys of an issuer.
#[derive(Debug, Default)]
pub struct KeySet(Vec<PublicKey>);

#[derive(Debug)]
struct PublicKey {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

impl KeySet {
    /// Reads a JSON web key set. Keys of kinds that verify nothing here are passed over, shared secrets among them.
    ///
    /// # Errors
    /// It is none, or holds no key that verifies anything.
    pub fn parse(text: &str) -> Result<Self, String> {
        let set: Value = serde_json::from_str(text).map_err(|_| "is not JSON".to_owned())?;
        let keys = set.get("keys").and_then(Value::as_array);
        let keys = keys.ok_or("is no JSON web key set: it has no list `keys`")?;
        if keys.len() > KEYS_MAX {
            return Err(format!("has {} keys, more than {KEYS_MAX}", keys.len()));
        }
        let usable: Vec<PublicKey> = keys.iter().filter_map(public_key).collect();
        if usable.is_empty() {
            return Err(
                "holds no public key that can verify a token (RSA, P-256, P-384 or Ed25519)".to_owned()
            );
        }
        Ok(Self(usable))
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys that may verify what says to be signed by `id` with `algorithm`.
    fn candidates(&self, id: Option<&str>, algorithm: Algorithm) -> Vec<&DecodingKey> {
        let suits = self.0.iter().filter(|key| key.algorithms.contains(&algorithm));
        match id {
            Some(id) => suits.filter(|key| key.id.as_deref() == Some(id)).map(|key| &key.key).collect(),
            None => {
                let all: Vec<_> = suits.map(|key| &key.key).collect();
                // Without a name it must be clear which one is meant.
                if all.len() == 1 { all } else { Vec::new() }
            }
        }
    }
}

fn public_key(value: &Value) -> Option<PublicKey> {
    let jwk: Jwk = serde_json::from_value(value.clone()).ok()?;
    let mut algorithms: Vec<Algorithm> = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => vec![
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
        ],
        AlgorithmParameters::EllipticCurve(of) if of.curve == EllipticCurve::P256 => vec![Algorithm::ES256],
        AlgorithmParameters::EllipticCurve(of) if of.curve == EllipticCurve::P384 => vec![Algorithm::ES384],
        AlgorithmParameters::OctetKeyPair(of) if of.curve == EllipticCurve::Ed25519 => vec![Algorithm::EdDSA],
        _ => return None,
    };
    let signs = jwk.common.public_key_use.as_ref().is_none_or(|of| *of == PublicKeyUse::Signature);
    let verifies = jwk.common.key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
    if !signs || !verifies {
        return None;
    }
    if let Some(only) = value.get("alg") {
        let only: Algorithm = only.as_str()?.parse().ok()?;
        algorithms.retain(|algorithm| *algorithm == only);
    }
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    (!algorithms.is_empty()).then_some(PublicKey { id: jwk.common.key_id, algorithms, key })
}

/// What a token must be like.
#[derive(Debug)]
pub struct JwtRules {
    validations: Vec<(Algorithm, Validation)>,
    issuer: String,
    roles_claim: String,
    tenant_claim: String,
    subject_claim: String,
}

impl JwtRules {
    /// The rules of the settings.
    pub fn new(config: &JwtConfig) -> Self {
        let issuer = config.issuer.clone().unwrap_or_default();
        let audience = config.audience.clone().unwrap_or_default();
        let validation = |algorithm: JwtAlgorithm| {
            let algorithm = algorithm.algorithm();
            let mut validation = Validation::new(algorithm);
            validation.leeway = config.leeway.as_secs();
            validation.validate_nbf = true;
            validation.set_issuer(&[&issuer]);
            validation.set_audience(&[&audience]);
            validation.set_required_spec_claims(&["exp", "iss", "aud"]);
            (algorithm, validation)
        };
        let listed = JwtAlgorithm::ALL.into_iter().filter(|one| config.algorithms.contains(one));
        Self {
            validations: listed.map(validation).collect(),
            issuer: issuer.clone(),
            roles_claim: config.roles_claim.clone(),
            tenant_claim: config.tenant_claim.clone(),
            subject_claim: config.subject_claim.clone(),
        }
    }

    /// Whose token this is.
    ///
    /// # Errors
    /// Why it is refused; [`AuthReason::Key`] when its key is not in `keys`, which a newer set may change.
    pub fn verify(&self, token: &str, keys: &KeySet) -> Result<Holder, AuthReason> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(AuthReason::Malformed);
        }
        let header = decode_header(token).map_err(|error| match error.kind() {
            // An algorithm that the library does not know, `none` above all.
            ErrorKind::Json(cause) if cause.to_string().contains("unknown variant") => AuthReason::Algorithm,
            _ => AuthReason::Malformed,
        })?;
        let rules = self.validations.iter().find(|(algorithm, _)| *algorithm == header.alg);
        let (algorithm, validation) = rules.ok_or(AuthReason::Algorithm)?;
        if header.crit.is_some() || header.enc.is_some() || header.zip.is_some() {
            // Something that must be understood and is not.
            return Err(AuthReason::Malformed);
        }
        let candidates = keys.candidates(header.kid.as_deref(), *algorithm);
        let mut refused = AuthReason::Key;
        for key in candidates {
            match decode::<Map<String, Value>>(token, key, validation) {
                Ok(decoded) => return self.holder(&decoded.claims),
                Err(error) => refused = reason(error.kind()),
            }
            if refused != AuthReason::Signature {
                break;
            }
        }
        Err(refused)
    }

    fn holder(&self, claims: &Map<String, Value>) -> Result<Holder, AuthReason> {
        // One issuer, not a list that holds it among others.
        if claims.get("iss").and_then(Value::as_str) != Some(&self.issuer) {
            return Err(AuthReason::Claims);
        }
        let name = claim(claims, &self.subject_claim).and_then(Value::as_str).ok_or(AuthReason::Claims)?;
        check_name(name).map_err(|_| AuthReason::Claims)?;
        let tenant = match claim(claims, &self.tenant_claim) {
            None | Some(Value::Null) => "",
            Some(Value::String(tenant)) => tenant,
            Some(_) => return Err(AuthReason::Claims),
        };
        if !tenant.is_empty() {
            check_tenant(tenant).map_err(|_| AuthReason::Claims)?;
        }
        // Issuers give roles for other services as well: those are not ours, and open nothing.
        let roles: Vec<CallerRole> = match claim(claims, &self.roles_claim) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(names)) => names.split_whitespace().filter_map(CallerRole::parse).collect(),
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).filter_map(CallerRole::parse).collect()
            }
            Some(_) => return Err(AuthReason::Claims),
        };
        let expires = claims.get("exp").and_then(Value::as_f64);
        let expires = expires.and_then(|seconds| Timestamp::from_second(seconds as i64).ok());
        let (name, tenant) = (name.to_owned(), tenant.to_owned());
        Ok(Holder { name, tenant, roles: roles_of(&roles), expires })
    }
}

/// The claim of that name, or the one that a JSON Pointer such as `/realm_access/roles` leads to.
fn claim<'c>(claims: &'c Map<String, Value>, name: &str) -> Option<&'c Value> {
    let Some(path) = name.strip_prefix('/') else { return claims.get(name) };
    let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
    let mut parts = path.split('/').map(unescaped);
    let first = claims.get(&parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

fn reason(kind: &ErrorKind) -> AuthReason {
    match kind {
        ErrorKind::InvalidSignature => AuthReason::Signature,
        ErrorKind::ExpiredSignature => AuthReason::Expired,
        ErrorKind::ImmatureSignature => AuthReason::NotYetValid,
        ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => AuthReason::Algorithm,
        ErrorKind::InvalidIssuer
        | ErrorKind::InvalidAudience
        | ErrorKind::InvalidSubject
        | ErrorKind::MissingRequiredClaim(_)
        | ErrorKind::InvalidClaimFormat(_) => AuthReason::Claims,
        ErrorKind::InvalidRsaKey(_) | ErrorKind::InvalidEcdsaKey | ErrorKind::InvalidEddsaKey => {
            AuthReason::Signature
        }
        _ => AuthReason::Malformed,
    }
}

/// The longest leeway: more would make expiry mean little.
pub(super) const LEEWAY_MAX: Duration = Duration::from_secs(300);
