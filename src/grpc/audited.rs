//! Who asked, as the audit log tells it.

use super::Identity;
use crate::audit::{Caller, masked_name};
use crate::detect::Scanner;
use crate::pb::v1;

/// The caller of a request. What it chose to call itself is masked: people put addresses and keys into any field.
pub(super) fn audited<'a>(
    identity: &'a Identity,
    context: Option<&'a v1::CallContext>,
    scanner: &Scanner,
) -> Caller<'a> {
    let caller = Caller {
        name: identity.credential().map_or("", |known| &known.name),
        roles: identity.role_names(),
        ..Caller::default()
    };
    let Some(context) = context else { return caller };
    Caller {
        tenant: masked_name(scanner, &context.tenant),
        agent_id: masked_name(scanner, &context.agent_id),
        session_key: masked_name(scanner, &context.session_key),
        request_id: masked_name(scanner, &context.request_id),
        ..caller
    }
}
