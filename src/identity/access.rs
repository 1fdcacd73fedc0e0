//! Which RPC needs which role: the one table, for every way of authenticating.
//!
//! An RPC of ours that is missing here is refused as one that is not served, whoever calls. Health and reflection need no credentials: probes have none,
//! and they tell what the published contract tells.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::policy::CallerRole::{self, Admin, Agent, Auditor, Submitter};

/// One RPC and who may call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Full name of the service.
    pub service: &'static str,
    /// Name of the RPC.
    pub rpc: &'static str,
    /// Any of these roles is enough. An admin holds all of them.
    pub roles: &'static [CallerRole],
}

/// Package of our services.
const PACKAGE: &str = "/portcullis.v1.";

/// What everybody may call, with or without credentials, by the beginning of the path.
const OPEN: [&str; 4] = [
    // Asks the services in process for whoever calls it; they look at the credentials.
    "/agentgateway.dev.ext_mcp.ExtMcp/",
    "/grpc.health.v1.Health/",
    "/grpc.reflection.v1.ServerReflection/",
    "/grpc.reflection.v1alpha.ServerReflection/",
];

const DECIDES: &[CallerRole] = &[Agent];
const UPLOADS: &[CallerRole] = &[Submitter];
const CHANGES: &[CallerRole] = &[Admin];
const AUDITS: &[CallerRole] = &[Auditor];
/// Looks at what agents are judged by.
const LOOKS: &[CallerRole] = &[Agent, Auditor];
/// Looks at uploads; a submitter at its own.
const FOLLOWS: &[CallerRole] = &[Submitter, Auditor];
const ANYBODY: &[CallerRole] = &[Agent, Submitter, Auditor];

macro_rules! accesses {
    ($($service:literal { $($rpc:literal: $roles:ident,)+ })+) => {
        &[$($(Access { service: concat!("portcullis.v1.", $service), rpc: $rpc, roles: $roles },)+)+]
    };
}

static TABLE: &[Access] = accesses! {
    "PolicyDecisionService" {
        "CheckMessages": DECIDES,
        "CheckMessagesStream": DECIDES,
        "InterceptMessage": DECIDES,
        "InterceptParams": DECIDES,
        "InterceptTool": DECIDES,
        "StreamMonitor": DECIDES,
        "ReviewBundle": UPLOADS,
    }
    "InterceptorRegistryService" {
        "AddInterceptor": CHANGES,
        "RemoveInterceptor": CHANGES,
        "MatchInterceptors": LOOKS,
        "ListInterceptors": LOOKS,
        "ClearInterceptors": CHANGES,
        "ListKnownTools": LOOKS,
    }
    "IncidentService" {
        "GetIncident": LOOKS,
        "ListIncidents": LOOKS,
        "MarkFalsePositive": CHANGES,
        "GetIncidentStats": LOOKS,
    }
    "SubmissionService" {
        "GetSubmission": FOLLOWS,
        "ListSubmissions": FOLLOWS,
        "WatchSubmission": FOLLOWS,
        "OverrideSubmission": CHANGES,
        "RescanSubmission": CHANGES,
        "RetryReview": CHANGES,
        "DownloadBundle": CHANGES,
        "DeleteSubmission": CHANGES,
        "PurgeBlockedBundles": CHANGES,
        "ReapStuckReviews": CHANGES,
    }
    "EntityService" {
        "GetEntity": ANYBODY,
        "ListEntities": ANYBODY,
        "ArchiveEntity": UPLOADS,
        "RestoreEntity": CHANGES,
        "DeleteEntity": CHANGES,
        "DownloadEntity": ANYBODY,
    }
    "AuditService" {
        "ListAuditEvents": AUDITS,
        "VerifyAuditChain": AUDITS,
    }
    "PolicyService" {
        "GetPolicy": ANYBODY,
        "ReloadPolicy": CHANGES,
        "ListRules": ANYBODY,
        "TestRule": ANYBODY,
    }
};

/// Every row.
pub fn table() -> &'static [Access] {
    TABLE
}

/// Whether a path such as `/grpc.health.v1.Health/Check` is for everybody.
pub fn is_open(path: &str) -> bool {
    OPEN.iter().any(|open| path.starts_with(open))
}

/// Whether a path is below our package. Such a path without a row is served to nobody, admins included: nothing may be
/// reached by forgetting to say who may reach it.
pub fn is_ours(path: &str) -> bool {
    path.starts_with(PACKAGE)
}

/// Roles of which a caller of the path `/service/rpc` needs one; `None` for what has no row, see [`is_ours`].
pub fn needs(path: &str) -> Option<&'static [CallerRole]> {
    static BY_PATH: LazyLock<HashMap<String, &'static [CallerRole]>> = LazyLock::new(|| {
        TABLE.iter().map(|row| (format!("/{}/{}", row.service, row.rpc), row.roles)).collect()
    });
    BY_PATH.get(path).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_their_row_and_unknown_ones_of_ours_are_for_nobody() {
        assert_eq!(needs("/portcullis.v1.PolicyDecisionService/CheckMessages"), Some(DECIDES));
        assert_eq!(needs("/portcullis.v1.EntityService/ArchiveEntity"), Some(UPLOADS));
        assert_eq!(needs("/portcullis.v1.PolicyService/ReloadPolicy"), Some(CHANGES));
        for unknown in
            ["/portcullis.v1.EntityService/Sell", "/portcullis.v1.Nothing/ReloadPolicy", "/portcullis.v1."]
        {
            assert!(needs(unknown).is_none() && is_ours(unknown), "{unknown}");
        }
        assert!(needs("/other.v1.Service/Call").is_none() && !is_ours("/other.v1.Service/Call"));
        assert!(is_open("/grpc.health.v1.Health/Watch") && !is_open("/grpc.health.v1.Healthy/Watch"));
    }
}
