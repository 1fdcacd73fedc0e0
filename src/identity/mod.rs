//! Who calls, and what that caller may do: roles, the table of RPCs, tokens, tenants, the rate of calls.
//!
//! Pure but for the files it reads: no protocol is named here. `grpc` takes credentials from a call, asks here whose they
//! are, and asks the table whether that caller may make the call.
//!
//! Invariants: a credential is compared by hashes of one length in constant time and never kept, logged or put into an
//! error; what cannot be verified is refused; a broken new file leaves the last good one in force.

mod access;
mod caller;
mod certificate;
mod certificates;
mod config;
mod jwks;
mod jwt;
mod kept;
mod rate;
mod roles;
mod tenants;
mod tokens;

pub use access::{Access, is_open, is_ours, needs, table};
pub use caller::{ANONYMOUS, Identity, Known, RESERVED_NAMES};
pub use certificate::{PeerCertificate, earliest_end};
pub use certificates::CertificateMap;
pub use config::{
    AuthConfig, AuthMode, CertificateIdentity, JwtConfig, MtlsConfig, RateLimitConfig, TenantConfig,
    TokensConfig,
};
pub use jwks::Keys;
pub use jwt::{JwtAlgorithm, JwtRules, KeySet};
pub use kept::{Kept, Refreshed};
pub use rate::RateLimit;
pub use roles::{every_role, role_names, roles_of};
pub use tenants::{TenantTerms, Tenants};
pub use tokens::{Holder, NewToken, TokenSet, new_token, read_text, read_tokens};
