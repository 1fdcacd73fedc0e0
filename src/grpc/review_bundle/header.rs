//! The first message of an upload: what it is, and whether this caller may send it.

use crate::bundles::service::Actor;
use crate::decision::BundleKind;
use crate::grpc::bundle_convert::kind_of;
use crate::grpc::{Identity, RequestError};
use crate::pb::v1;
use crate::policy::Snapshot;

/// Longest id of an entity, in bytes; ours are shorter.
const ID_BYTES_MAX: usize = 128;
/// Longest value of the call context that is kept, in bytes.
const CONTEXT_BYTES_MAX: usize = 256;

/// What is uploaded, as it is clear before the first byte.
#[derive(Debug)]
pub(super) struct Header {
    /// What it is.
    pub(super) kind: BundleKind,
    /// Name to list it under; empty means that of its manifest.
    pub(super) name: String,
    /// Who uploads.
    pub(super) submitter: String,
    /// The entity it is a new version of.
    pub(super) entity_id: Option<String>,
    /// SHA-256 of the archive, hex in lower case; empty when not stated.
    pub(super) sha256: String,
    /// Size of the archive; 0 when not stated.
    pub(super) size: u64,
    /// Whether to check only.
    pub(super) is_dry_run: bool,
    /// Who asks.
    pub(super) context: v1::CallContext,
    /// Name of the policy.
    pub(super) policy: String,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// A field is wrong, names somebody else, or says that the upload is too large.
    pub(super) fn read(
        header: v1::BundleHeader,
        identity: &Identity,
        snapshot: &Snapshot,
        bytes_max: u64,
    ) -> Result<Self, RequestError> {
        let kind = kind_of("header.kind", header.kind)?
            .ok_or_else(|| RequestError::field("header.kind", "is not set; send SKILL, PLUGIN or AGENT"))?;
        let submitter = identity.submitter("header.submitter", &header.submitter)?;
        if header.entity_id.len() > ID_BYTES_MAX {
            let message = format!("has {} bytes, more than {ID_BYTES_MAX}", header.entity_id.len());
            return Err(RequestError::field("header.entity_id", message));
        }
        let sha256 = header.sha256.to_ascii_lowercase();
        if !sha256.is_empty() && (sha256.len() != 64 || !sha256.bytes().all(|b| b.is_ascii_hexdigit())) {
            return Err(RequestError::field("header.sha256", "must be 64 hexadecimal digits, or empty"));
        }
        if header.size > bytes_max {
            return Err(too_large(header.size, bytes_max));
        }
        let (mut context, mut policy) = (header.context, header.policy);
        identity.settle(snapshot.policies(), "header.context.tenant", &mut context, &mut policy)?;
        let context = context.unwrap_or_default();
        if context.request_id.len() > CONTEXT_BYTES_MAX {
            let message = format!("has {} bytes, more than {CONTEXT_BYTES_MAX}", context.request_id.len());
            return Err(RequestError::field("header.context.request_id", message));
        }
        if identity.is_authenticated() && !context.tenant.is_empty() && context.tenant != identity.tenant() {
            return Err(RequestError::NotYours { field: "header.context.tenant".to_owned() });
        }
        let policy = identity.named_policy(snapshot.policies(), "header.policy", &policy)?.name().to_string();
        let entity_id = Some(header.entity_id).filter(|id| !id.is_empty());
        Ok(Self {
            kind,
            name: header.name,
            submitter,
            entity_id,
            sha256,
            size: header.size,
            is_dry_run: header.dry_run,
            context,
            policy,
        })
    }

    /// The uploader as the life of submissions knows it.
    pub(super) fn actor(&self, identity: &Identity) -> Actor {
        Actor { name: self.submitter.clone(), ..identity.actor(&self.context.request_id) }
    }
}

/// The upload is larger than allowed.
pub(super) fn too_large(found: u64, limit: u64) -> RequestError {
    RequestError::TooLarge { what: "the archive", found, limit, setting: "bundles.packed_bytes_max" }
}
