//! A caller, once it is clear who it is.

use std::sync::Arc;

use super::{TenantTerms, every_role, role_names};
use crate::policy::CallerRole;

/// The name of whoever says nothing of itself.
pub const ANONYMOUS: &str = "anonymous";

/// What no caller may state to be, and no credential may name: names of events whose actor the service itself is.
pub const RESERVED_NAMES: [&str; 2] = ["admin", "system"];

const EVERYBODY: &[CallerRole] = &[CallerRole::Agent, CallerRole::Submitter];

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What the caller may be.
    pub roles: &'static [CallerRole],
    who: Who,
    /// The caller's own id of the request that it makes.
    request_id: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    /// Nobody was authenticated; who the caller says it is.
    Anybody(Option<Arc<str>>),
    /// The holder of the admin token, or the person at the terminal.
    Operator,
    /// A credential said who.
    Known(Arc<Known>),
}

/// What a credential says of its holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Its name: the submitter of what it uploads, and the actor of its changes.
    pub name: String,
    /// Its tenant; empty is the default tenant.
    pub tenant: String,
    /// What its tenant gets.
    pub terms: Arc<TenantTerms>,
}

impl Identity {
    /// The person at the terminal, who holds every role over what the files of this place say.
    pub fn operator() -> Self {
        Self { roles: every_role(), who: Who::Operator, request_id: None }
    }

    /// A caller without credentials, where none are asked for.
    pub fn anybody(stated: Option<Arc<str>>) -> Self {
        Self { roles: EVERYBODY, who: Who::Anybody(stated), request_id: None }
    }

    /// The holder of a credential.
    pub fn known(roles: &'static [CallerRole], known: Known) -> Self {
        Self { roles, who: Who::Known(Arc::new(known)), request_id: None }
    }

    /// The caller, who calls its request so.
    #[must_use]
    pub fn asking(self, request_id: Option<Arc<str>>) -> Self {
        Self { request_id, ..self }
    }

    /// What the caller calls its request; empty when it said nothing.
    pub fn request_id(&self) -> &str {
        self.request_id.as_deref().unwrap_or_default()
    }

    /// What the credential said; `None` where callers are not told apart by credentials.
    pub fn credential(&self) -> Option<&Known> {
        match &self.who {
            Who::Known(known) => Some(known),
            Who::Anybody(_) | Who::Operator => None,
        }
    }

    /// Whether the name was established, not merely stated.
    pub fn is_authenticated(&self) -> bool {
        !matches!(self.who, Who::Anybody(_))
    }

    /// Whether the caller said who it is, without proof.
    pub fn is_stated(&self) -> bool {
        matches!(self.who, Who::Anybody(Some(_)))
    }

    /// Whether the caller holds the role.
    pub fn has(&self, role: CallerRole) -> bool {
        self.roles.contains(&role)
    }

    /// Whether the caller decides about all submissions of its tenant.
    pub fn is_admin(&self) -> bool {
        self.has(CallerRole::Admin)
    }

    /// Role names, for the audit record.
    pub fn role_names(&self) -> &'static [&'static str] {
        role_names(self.roles)
    }

    /// The tenant whose things the caller sees and changes. Without authentication there is one for all, the empty one.
    pub fn tenant(&self) -> &str {
        self.credential().map_or("", |known| &known.tenant)
    }

    /// Who the caller is, for the record of a change.
    pub fn name(&self) -> &str {
        match &self.who {
            Who::Anybody(stated) => stated.as_deref().unwrap_or(ANONYMOUS),
            Who::Operator => "admin",
            Who::Known(known) => &known.name,
        }
    }
}
