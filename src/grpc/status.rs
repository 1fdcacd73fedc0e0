//! What a caller can do wrong, and the one place that turns it into a gRPC status.
//!
//! Every refusal carries machine-readable details of `google.rpc`: the field for a bad argument, the numbers for a
//! limit. Our own faults tell the caller nothing but that they are ours.

use std::collections::HashMap;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::messages::CheckError;
use crate::policy::CallerRole;
use crate::telemetry::AuthReason;

/// Where a caller that called too often is told how often it may call.
pub(super) const PER_SECOND: &str = "per_second";

/// Domain of our `google.rpc.ErrorInfo`.
pub(super) const DOMAIN: &str = "portcullis";

/// When a caller that was shed may try again: a few requests later.
const OVERLOAD_RETRY: Duration = Duration::from_millis(100);
/// When a call is worth repeating whose store did not answer.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// When a caller whose session was ended by a shutdown may try again: replicas take over at once, a restart takes a moment.
const DRAIN_RETRY: Duration = Duration::from_secs(1);

/// Why a request gets no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RequestError {
    /// A field is wrong.
    #[error("{}: {message}", if field.is_empty() { "the request" } else { field })]
    Field {
        /// Path of the field as in the contract, such as `messages[0].role`; empty for the request as a whole.
        field: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// Several fields are wrong.
    #[error("{}", .violations.iter().map(|(field, message)| format!("{field}: {message}")).collect::<Vec<_>>().join("; "))]
    Fields {
        /// Path of each field as in the contract, and what is wrong with it.
        violations: Vec<(String, String)>,
    },
    /// There is one of that name already.
    #[error("{what} `{name}` exists already; choose another id, or remove it first")]
    AlreadyExists {
        /// Kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The interceptor was not added by API and cannot be changed by it.
    #[error("interceptor `{name}` is built in or comes from a policy file; change the policy instead")]
    NotFromHere {
        /// Its id.
        name: String,
    },
    /// The store cannot be read or written.
    #[error(
        "what is kept in the store cannot be read or written at the moment; try again later, the log says why"
    )]
    StoreUnavailable,
    /// A field is too large.
    #[error(
        "{what} has {found} bytes, more than the limit of {limit}; send less at once or raise `{setting}`"
    )]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Bytes found.
        found: u64,
        /// Bytes allowed.
        limit: u64,
        /// The setting that holds the limit.
        setting: &'static str,
    },
    /// The token is not known.
    #[error("the token in `authorization` is not valid; leave it out, or send `Bearer` and the admin token")]
    BadToken,
    /// The credentials are missing or wrong.
    #[error("{}", advice(*reason))]
    Unauthenticated {
        /// Why, as it is counted.
        reason: AuthReason,
    },
    /// The caller is known and lacks the role.
    #[error(
        "this call needs the role {}, and you hold {}; ask for a credential that has it",
        names(roles, " or "),
        names(has, " and ")
    )]
    NeedsRole {
        /// Any of these is enough.
        roles: &'static [CallerRole],
        /// What the caller holds.
        has: &'static [CallerRole],
    },
    /// The identity called too often.
    #[error("more than {per_second} calls a second; try again in {}", seconds(*wait))]
    RateLimited {
        /// Calls a second that are let through.
        per_second: u32,
        /// When one is let through again.
        wait: Duration,
    },
    /// The path names no RPC of the contract.
    #[error("there is no such RPC; look at the name and at the version of the server")]
    UnknownRpc,
    /// The caller is no admin.
    #[error("this call changes state and needs the admin token; send `authorization: Bearer <token>`")]
    NeedsAdmin,
    /// The caller is known, and neither an administrator nor whoever else may do this.
    #[error("{message}")]
    NotYourAffair {
        /// Who may, as a sentence.
        message: String,
    },
    /// The caller may not look at administrative events.
    #[error("this call needs the auditor or the admin role; send `authorization: Bearer <admin token>`")]
    NeedsAuditor,
    /// A submitter or tenant is named that the caller is not.
    #[error("{field}: is not who you are; leave it empty, or give your own")]
    NotYours {
        /// Path of the field as in the contract.
        field: String,
    },
    /// The upload is not in the order that the contract asks for.
    #[error("{message}")]
    Upload {
        /// `NO_HEADER` or `HEADER_REPEATED`.
        kind: &'static str,
        /// What is wrong and what to do.
        message: String,
    },
    /// What something went through does not allow a change.
    #[error("{message}")]
    State {
        /// What is in the way, such as `SUBMISSION_STATUS`.
        kind: &'static str,
        /// What it is about, as kind and id, such as `submission/…`.
        subject: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// Somebody else changed the same thing in the same moment.
    #[error("{message}")]
    LostRace {
        /// What happened and what to do.
        message: String,
    },
    /// The submitter had too many uploads blocked.
    #[error("{message}")]
    Quota {
        /// Whose quota.
        subject: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// The client went away.
    #[error("the client went away")]
    Gone,
    /// The upload stalls.
    #[error("nothing was sent for longer than `bundles.upload_idle_timeout`; upload again")]
    UploadIdle,
    /// The upload takes too long.
    #[error(
        "the upload took longer than `bundles.upload_timeout`; upload again over a faster connection, or ask the operator to raise it"
    )]
    UploadSlow,
    /// The bundle could not be checked.
    #[error("{message}")]
    Unchecked {
        /// Why, and what to do.
        message: String,
    },
    /// The policy is not for callers of this role.
    #[error("policy `{name}` is not for your role")]
    PolicyNotAllowed {
        /// Its name.
        name: String,
    },
    /// The settings give the tenant a policy that is not loaded.
    #[error(
        "policy `{name}`, which the setting auth.tenants.{tenant}.policy names, is not loaded; the operator must add it to \
         the folder of policy.path, or correct the setting"
    )]
    PolicyMissing {
        /// Its name.
        name: String,
        /// Whose.
        tenant: String,
    },
    /// There is no such thing, or none that the caller may see.
    #[error("{what} `{name}` not found")]
    NotFound {
        /// Kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The new policies have problems.
    #[error("the policies were not reloaded; the last good ones stay in force")]
    PolicyRejected {
        /// One line a problem.
        problems: Vec<String>,
    },
    /// What the caller sent does not fit the state of its session.
    #[error("{message}")]
    Session {
        /// `NOT_ATTACHED`, `ALREADY_ATTACHED` or `DETACHED`.
        kind: &'static str,
        /// What is wrong and what to do.
        message: String,
    },
    /// The caller sent nothing for too long.
    #[error(
        "the client sent nothing for longer than `streams.idle_timeout`; send an empty chunk now and then"
    )]
    Idle,
    /// The service shuts down.
    #[error("the server is shutting down; attach again elsewhere, or later")]
    Draining,
    /// The caller's deadline passed.
    #[error("the deadline passed before the answer was ready")]
    DeadlineExceeded,
    /// More requests in flight than the limit.
    #[error("too many requests in flight; try again")]
    Overloaded,
    /// No rules and policies are loaded.
    #[error("no usable policy is loaded; the log says why")]
    NotServing,
    /// A bug.
    #[error("internal error")]
    Internal,
}

impl RequestError {
    /// A wrong field.
    pub(super) fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Field { field: field.into(), message: message.into() }
    }

    /// Path of the wrong field; empty when it is not about one.
    pub(super) fn field_path(&self) -> &str {
        match self {
            Self::Field { field, .. } => field,
            Self::Fields { violations } => violations.first().map_or("", |(field, _)| field),
            _ => "",
        }
    }

    /// Why the caller was refused, where that is what happened.
    pub(super) fn auth_reason(&self) -> Option<AuthReason> {
        match self {
            Self::Unauthenticated { reason } => Some(*reason),
            Self::BadToken => Some(AuthReason::Unknown),
            Self::NeedsAdmin | Self::NotYourAffair { .. } | Self::NeedsAuditor | Self::NeedsRole { .. } => {
                Some(AuthReason::Role)
            }
            _ => None,
        }
    }

    /// The gRPC code.
    pub(super) fn code(&self) -> Code {
        match self {
            Self::Field { .. } | Self::Fields { .. } => Code::InvalidArgument,
            Self::AlreadyExists { .. } => Code::AlreadyExists,
            Self::TooLarge { .. } => Code::ResourceExhausted,
            Self::Unauthenticated { reason: AuthReason::Unavailable } => Code::Unavailable,
            Self::BadToken | Self::Unauthenticated { .. } => Code::Unauthenticated,
            Self::RateLimited { .. } => Code::ResourceExhausted,
            Self::NeedsRole { .. }
            | Self::NeedsAdmin
            | Self::NotYourAffair { .. }
            | Self::NeedsAuditor
            | Self::NotYours { .. }
            | Self::PolicyNotAllowed { .. } => Code::PermissionDenied,
            Self::Gone => Code::Cancelled,
            Self::UnknownRpc => Code::Unimplemented,
            Self::Quota { .. } => Code::ResourceExhausted,
            Self::LostRace { .. } => Code::Aborted,
            Self::NotFound { .. } => Code::NotFound,
            Self::PolicyRejected { .. }
            | Self::PolicyMissing { .. }
            | Self::NotFromHere { .. }
            | Self::Session { .. }
            | Self::Upload { .. }
            | Self::State { .. } => Code::FailedPrecondition,
            Self::DeadlineExceeded | Self::Idle | Self::UploadIdle | Self::UploadSlow => {
                Code::DeadlineExceeded
            }
            Self::Overloaded
            | Self::NotServing
            | Self::StoreUnavailable
            | Self::Draining
            | Self::Unchecked { .. } => Code::Unavailable,
            Self::Internal => Code::Internal,
        }
    }

    /// The status with its details.
    pub(super) fn to_status(&self) -> Status {
        let mut details = ErrorDetails::new();
        match self {
            Self::Field { field, message } => {
                details.add_bad_request_violation(field.clone(), message.clone());
            }
            Self::Fields { violations } => {
                for (field, message) in violations {
                    details.add_bad_request_violation(field.clone(), message.clone());
                }
            }
            Self::NotFromHere { name } => {
                let subject = format!("interceptor/{name}");
                details.add_precondition_failure_violation("INTERCEPTOR_SOURCE", subject, self.to_string());
            }
            Self::StoreUnavailable => {
                details.set_error_info("STORE_UNAVAILABLE", DOMAIN, HashMap::new());
                details.set_retry_info(Some(STORE_RETRY));
            }
            Self::TooLarge { found, limit, .. } => {
                details.set_error_info(
                    "REQUEST_TOO_LARGE",
                    DOMAIN,
                    numbers(&[("limit_bytes", *limit), ("found_bytes", *found)]),
                );
            }
            Self::PolicyRejected { problems } => {
                for problem in problems {
                    details.add_precondition_failure_violation("POLICY", "policy", problem.clone());
                }
            }
            Self::PolicyMissing { tenant, .. } => {
                let subject = format!("tenant/{tenant}");
                details.add_precondition_failure_violation("POLICY_NOT_LOADED", subject, self.to_string());
            }
            Self::NotFound { what, name } | Self::AlreadyExists { what, name } => {
                details.set_resource_info(*what, name.clone(), "", "");
            }
            Self::PolicyNotAllowed { .. } => {
                details.set_error_info("POLICY_NOT_ALLOWED", DOMAIN, HashMap::new());
            }
            Self::BadToken => {
                details.set_error_info("BAD_TOKEN", DOMAIN, HashMap::new());
            }
            Self::Unauthenticated { reason } => {
                let reason = match reason {
                    AuthReason::Missing => "NO_CREDENTIALS",
                    AuthReason::Unavailable => "NO_KEYS",
                    _ => "BAD_CREDENTIALS",
                };
                details.set_error_info(reason, DOMAIN, HashMap::new());
            }
            Self::NeedsRole { roles, .. } => {
                let needed = HashMap::from([("roles".to_owned(), names(roles, ","))]);
                details.set_error_info("NEEDS_ROLE", DOMAIN, needed);
            }
            Self::RateLimited { per_second, wait } => {
                let rate = numbers(&[(PER_SECOND, u64::from(*per_second))]);
                details.set_error_info("RATE_LIMITED", DOMAIN, rate);
                details.set_retry_info(Some(*wait));
            }
            Self::NeedsAdmin | Self::NotYourAffair { .. } => {
                details.set_error_info("NEEDS_ADMIN", DOMAIN, HashMap::new());
            }
            Self::Overloaded => {
                details.set_error_info("OVERLOADED", DOMAIN, HashMap::new());
                details.set_retry_info(Some(OVERLOAD_RETRY));
            }
            Self::NotServing => {
                details.set_error_info("NO_USABLE_POLICY", DOMAIN, HashMap::new());
            }
            Self::Session { kind, message } => {
                details.add_precondition_failure_violation(*kind, "session", message.clone());
                details.set_error_info(*kind, DOMAIN, HashMap::new());
            }
            Self::NeedsAuditor => {
                details.set_error_info("NEEDS_AUDITOR", DOMAIN, HashMap::new());
            }
            Self::NotYours { field } => {
                details.add_bad_request_violation(field.clone(), self.to_string());
                details.set_error_info("NOT_YOURS", DOMAIN, HashMap::new());
            }
            Self::Upload { kind, message } => {
                details.add_precondition_failure_violation(*kind, "upload", message.clone());
                details.set_error_info(*kind, DOMAIN, HashMap::new());
            }
            Self::State { kind, subject, message } => {
                details.add_precondition_failure_violation(*kind, subject.clone(), message.clone());
                details.set_error_info(*kind, DOMAIN, HashMap::new());
            }
            Self::LostRace { .. } => {
                details.set_error_info("LOST_RACE", DOMAIN, HashMap::new());
            }
            Self::Quota { subject, message } => {
                details.add_quota_failure_violation(subject.clone(), message.clone());
                details.set_error_info("BLOCKED_QUOTA", DOMAIN, HashMap::new());
            }
            Self::Unchecked { .. } => {
                details.set_error_info("NOT_CHECKED", DOMAIN, HashMap::new());
            }
            Self::Idle | Self::UploadIdle => {
                details.set_error_info("IDLE", DOMAIN, HashMap::new());
            }
            Self::UploadSlow => {
                details.set_error_info("UPLOAD_TIMEOUT", DOMAIN, HashMap::new());
            }
            Self::Draining => {
                details.set_error_info("DRAINING", DOMAIN, HashMap::new());
                details.set_retry_info(Some(DRAIN_RETRY));
            }
            Self::DeadlineExceeded | Self::Gone | Self::Internal | Self::UnknownRpc => {}
        }
        Status::with_error_details(self.code(), self.to_string(), details)
    }
}

/// What a caller without good credentials is to do. Which check a credential failed is for the log and the counts.
fn advice(reason: AuthReason) -> &'static str {
    match reason {
        AuthReason::Missing => "this call needs a token; send `authorization: Bearer <token>`",
        AuthReason::Expired => "the token or certificate of this call has expired; get a new one",
        AuthReason::Malformed => "`authorization` must be sent once, as `Bearer <token>`",
        AuthReason::Certificate => {
            "auth.mtls.identities has no entry for the certificate of this client; ask for one"
        }
        AuthReason::Unavailable => "the keys of the issuer could not be had yet; try again, the log says why",
        AuthReason::Unknown
        | AuthReason::NotYetValid
        | AuthReason::Algorithm
        | AuthReason::Key
        | AuthReason::Signature
        | AuthReason::Claims
        | AuthReason::Role => "the token in `authorization` is not valid; get another one",
    }
}

fn names(roles: &[CallerRole], between: &str) -> String {
    let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(between) }
}

/// A pause as a person reads it, never zero.
fn seconds(wait: Duration) -> String {
    format!("{:.3}s", wait.as_secs_f64().max(0.001))
}

fn numbers(of: &[(&str, u64)]) -> HashMap<String, String> {
    of.iter().map(|(name, number)| ((*name).to_owned(), number.to_string())).collect()
}

impl From<CheckError> for RequestError {
    fn from(error: CheckError) -> Self {
        let message = error.to_string();
        match error {
            CheckError::NoMessages => Self::field("messages", message),
            CheckError::UnknownPolicy { .. } => Self::field("policy", message),
            CheckError::PolicyNotAllowed { name } => Self::PolicyNotAllowed { name },
            CheckError::UnknownPlugin { index, .. } | CheckError::PluginOff { index, .. } => {
                Self::field(format!("plugins[{index}]"), message)
            }
            CheckError::DeadlineExceeded => Self::DeadlineExceeded,
        }
    }
}

/// What the transport refused before we saw it, restated in our own terms; `None` for a status that is not of its making.
///
/// The transport knows no details, so they are read back from its fixed messages. It reads up to a multiple of `limit`,
/// hence its own number is not the one that callers were promised.
pub(super) fn restate(code: Code, message: &str, limit: usize) -> Option<RequestError> {
    match code {
        Code::OutOfRange => {
            let rest = message.split_once("message length too large: found ")?.1;
            let (found, _) = rest.split_once(" bytes, the limit is: ")?;
            Some(RequestError::TooLarge {
                what: "the request",
                found: found.parse().ok()?,
                limit: limit as u64,
                setting: "server.request_bytes_max",
            })
        }
        Code::Internal => {
            let rest = message.strip_prefix("failed to decode Protobuf message: ")?;
            let (path, what) = rest.rsplit_once(": ").unwrap_or(("", rest));
            let field = field_of(path);
            // Where no field is named, what stands before belongs to the reason.
            let what = if field.is_empty() { rest } else { what };
            Some(RequestError::Field { field, message: format!("cannot be decoded: {what}") })
        }
        Code::Cancelled if message == "Timeout expired" => Some(RequestError::DeadlineExceeded),
        _ => None,
    }
}

/// `messages.text` of prost's `Message.text: CheckMessagesRequest.messages: invalid string value`: it names the innermost
/// field first.
fn field_of(path: &str) -> String {
    let mut fields: Vec<&str> = path
        .split(": ")
        .filter_map(|part| part.split_once('.'))
        .map(|(_, field)| field)
        .filter(|field| !field.is_empty() && field.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
        .collect();
    fields.reverse();
    fields.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restates_what_the_transport_refused() {
        let large =
            "Error, decoded message length too large: found 5242880 bytes, the limit is: 4194304 bytes";
        assert!(matches!(
            restate(Code::OutOfRange, large, 4_194_304),
            Some(RequestError::TooLarge { found: 5_242_880, limit: 4_194_304, .. })
        ));
        let broken = "failed to decode Protobuf message: Message.text: CheckMessagesRequest.messages: \
                      invalid string value: data is not UTF-8 encoded";
        let restated = restate(Code::Internal, broken, 1).expect("it is the transport's");
        assert_eq!(restated.code(), Code::InvalidArgument);
        assert_eq!(restated.to_string(), "messages.text: cannot be decoded: data is not UTF-8 encoded");
        let garbage = restate(Code::Internal, "failed to decode Protobuf message: invalid tag value: 0", 1);
        let told = garbage.expect("it is the transport's").to_string();
        assert_eq!(told, "the request: cannot be decoded: invalid tag value: 0");
        assert!(restate(Code::Internal, "something else", 1).is_none());
        assert!(restate(Code::OutOfRange, "beyond the end", 1).is_none());
    }
}
