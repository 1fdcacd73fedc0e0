//! The unary RPCs as JSON: what the Connect protocol calls a unary call with the JSON codec.
//!
//! `POST /portcullis.v1.PolicyDecisionService/CheckMessages` with `content-type: application/json` takes and gives the
//! canonical JSON of the messages; an unknown field is an error, since a misspelled one must not go unnoticed. Errors are
//! `{"code","message","details"}` with the status that the protocol maps the code to. Streaming RPCs are not here: they
//! are for gRPC. Source: <https://connectrpc.com/docs/protocol>.

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Adapters, LocalCaller, POLICY, Problem, TIMEOUT_MAX, one};
use crate::pb::v1;
use crate::telemetry::Code;
use crate::text::strict_json;

/// How long the caller waits, in the header of the protocol.
const CONNECT_TIMEOUT_MS: &str = "connect-timeout-ms";
const CONNECT_VERSION: &str = "connect-protocol-version";

/// One RPC, between JSON and the encoding of the wire.
#[derive(Clone, Copy)]
struct Unary {
    path: &'static str,
    request: fn(&[u8]) -> Result<Vec<u8>, String>,
    answer: fn(&[u8]) -> Result<Vec<u8>, String>,
}

fn encoded<Q: Message + DeserializeOwned>(json: &[u8]) -> Result<Vec<u8>, String> {
    let request: Q = serde_json::from_slice(json)
        .or_else(|error| without_nulls(json).ok_or(error))
        .map_err(|error| error.to_string())?;
    Ok(request.encode_to_vec())
}

/// The request when members that are `null` are left out, which is what they mean in the JSON of Protocol Buffers
/// (<https://protobuf.dev/programming-guides/json/>); `None` where it cannot be read so either.
fn without_nulls<Q: DeserializeOwned>(json: &[u8]) -> Option<Q> {
    let mut value = strict_json::read_bytes(json).ok()?;
    leave_nulls_out(&mut value);
    serde_json::from_value(value).ok()
}

fn leave_nulls_out(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(leave_nulls_out);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_nulls_out),
        _ => {}
    }
}

fn as_json<A: Message + Default + Serialize>(encoded: &[u8]) -> Result<Vec<u8>, String> {
    let answer = A::decode(encoded).map_err(|error| error.to_string())?;
    serde_json::to_vec(&answer).map_err(|error| error.to_string())
}

macro_rules! unary {
    ($($service:literal { $($rpc:literal $request:ident $answer:ident,)+ })+) => {
        &[$($(Unary {
            path: concat!("/portcullis.v1.", $service, "/", $rpc),
            request: encoded::<v1::$request>,
            answer: as_json::<v1::$answer>,
        },)+)+]
    };
}

/// Every unary RPC that is served. A test holds it against the descriptors.
static RPCS: &[Unary] = unary! {
    "AuditService" {
        "ListAuditEvents" ListAuditEventsRequest ListAuditEventsResponse,
        "VerifyAuditChain" VerifyAuditChainRequest VerifyAuditChainResponse,
    }
    "EntityService" {
        "GetEntity" GetEntityRequest GetEntityResponse,
        "ListEntities" ListEntitiesRequest ListEntitiesResponse,
        "ArchiveEntity" ArchiveEntityRequest ArchiveEntityResponse,
        "RestoreEntity" RestoreEntityRequest RestoreEntityResponse,
        "DeleteEntity" DeleteEntityRequest DeleteEntityResponse,
    }
    "IncidentService" {
        "GetIncident" GetIncidentRequest GetIncidentResponse,
        "ListIncidents" ListIncidentsRequest ListIncidentsResponse,
        "MarkFalsePositive" MarkFalsePositiveRequest MarkFalsePositiveResponse,
        "GetIncidentStats" GetIncidentStatsRequest GetIncidentStatsResponse,
    }
    "InterceptorRegistryService" {
        "AddInterceptor" AddInterceptorRequest AddInterceptorResponse,
        "RemoveInterceptor" RemoveInterceptorRequest RemoveInterceptorResponse,
        "MatchInterceptors" MatchInterceptorsRequest MatchInterceptorsResponse,
        "ListInterceptors" ListInterceptorsRequest ListInterceptorsResponse,
        "ClearInterceptors" ClearInterceptorsRequest ClearInterceptorsResponse,
        "ListKnownTools" ListKnownToolsRequest ListKnownToolsResponse,
    }
    "PolicyDecisionService" {
        "CheckMessages" CheckMessagesRequest CheckMessagesResponse,
        "InterceptMessage" InterceptMessageRequest InterceptMessageResponse,
        "InterceptParams" InterceptParamsRequest InterceptParamsResponse,
        "InterceptTool" InterceptToolRequest InterceptToolResponse,
    }
    "PolicyService" {
        "GetPolicy" GetPolicyRequest GetPolicyResponse,
        "ReloadPolicy" ReloadPolicyRequest ReloadPolicyResponse,
        "ListRules" ListRulesRequest ListRulesResponse,
        "TestRule" TestRuleRequest TestRuleResponse,
    }
    "SubmissionService" {
        "GetSubmission" GetSubmissionRequest GetSubmissionResponse,
        "ListSubmissions" ListSubmissionsRequest ListSubmissionsResponse,
        "OverrideSubmission" OverrideSubmissionRequest OverrideSubmissionResponse,
        "RescanSubmission" RescanSubmissionRequest RescanSubmissionResponse,
        "RetryReview" RetryReviewRequest RetryReviewResponse,
        "DeleteSubmission" DeleteSubmissionRequest DeleteSubmissionResponse,
        "PurgeBlockedBundles" PurgeBlockedBundlesRequest PurgeBlockedBundlesResponse,
        "ReapStuckReviews" ReapStuckReviewsRequest ReapStuckReviewsResponse,
    }
};

/// Why a request is not asked under the policy that the header names.
#[derive(Debug, PartialEq, Eq)]
enum NotNamed {
    /// It names another one itself.
    Other(String),
    /// It is not what it was read as.
    Unreadable,
}

/// The encoded request with the policy of the header, where it names none itself.
type Naming = fn(&[u8], &str) -> Result<Vec<u8>, NotNamed>;

macro_rules! naming_a_policy {
    ($($service:literal $rpc:literal $request:ident,)+) => {
        &[$((concat!("/portcullis.v1.", $service, "/", $rpc), |encoded, named| {
            let mut request = v1::$request::decode(encoded).map_err(|_| NotNamed::Unreadable)?;
            if !request.policy.is_empty() && request.policy != named {
                return Err(NotNamed::Other(request.policy));
            }
            named.clone_into(&mut request.policy);
            Ok(request.encode_to_vec())
        }),)+]
    };
}

/// The RPCs that ask under a policy. A test holds them against the descriptors.
static UNDER_A_POLICY: &[(&str, Naming)] = naming_a_policy! {
    "InterceptorRegistryService" "ListInterceptors" ListInterceptorsRequest,
    "InterceptorRegistryService" "ListKnownTools" ListKnownToolsRequest,
    "InterceptorRegistryService" "MatchInterceptors" MatchInterceptorsRequest,
    "PolicyDecisionService" "CheckMessages" CheckMessagesRequest,
    "PolicyDecisionService" "InterceptMessage" InterceptMessageRequest,
    "PolicyDecisionService" "InterceptParams" InterceptParamsRequest,
    "PolicyDecisionService" "InterceptTool" InterceptToolRequest,
};

/// A request as it is asked: under the policy that the header names, where the RPC asks under one.
fn under_policy(path: &str, message: Vec<u8>, named: &str) -> Result<Vec<u8>, Problem> {
    let Some((_, name)) = UNDER_A_POLICY.iter().find(|(known, _)| *known == path && !named.is_empty()) else {
        return Ok(message);
    };
    name(&message, named).map_err(|problem| match problem {
        NotNamed::Other(other) => {
            let other: String = other.chars().take(60).flat_map(char::escape_debug).collect();
            Problem::wrong(format!(
                "policy: the body names `{other}` and the header `{POLICY}` another one; give one of them"
            ))
        }
        NotNamed::Unreadable => Problem::internal("a request cannot be read again"),
    })
}

/// One route an RPC.
pub(super) fn routes(adapters: &Adapters) -> Router {
    let route = |router: Router<Adapters>, rpc: &'static Unary| {
        let call = move |State(adapters): State<Adapters>, request: Request| async move {
            call(&adapters, rpc, request).await.unwrap_or_else(failed)
        };
        router.route(rpc.path, post(call))
    };
    RPCS.iter().fold(Router::new(), route).with_state(adapters.clone())
}

/// A time-out of the protocol, which has at most ten digits; nobody waits longer here than for an answer in the other
/// header.
fn connect_timeout(text: &str) -> Option<Duration> {
    let is_number = !text.is_empty() && text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    let wait = Duration::from_millis(text.parse().ok().filter(|wait| is_number && *wait > 0)?);
    Some(wait.min(TIMEOUT_MAX))
}

async fn call(adapters: &Adapters, rpc: &Unary, request: Request) -> Result<Response, Problem> {
    let received = adapters.receive(request).await?;
    if !matches!(one(&received.headers, CONNECT_VERSION)?, None | Some("1")) {
        return Err(Problem::wrong(format!("`{CONNECT_VERSION}` must be 1")));
    }
    let caller = match one(&received.headers, CONNECT_TIMEOUT_MS)? {
        None => received.caller.clone(),
        Some(text) => {
            let wait = connect_timeout(text).ok_or_else(|| {
                let message = "must be a number of milliseconds with at most 10 digits";
                Problem::wrong(format!("`{CONNECT_TIMEOUT_MS}` {message}"))
            })?;
            LocalCaller::new(&received.headers, wait)
        }
    };
    let message = (rpc.request)(&received.body)
        .map_err(|error| Problem::wrong(format!("the body is not the request in JSON: {error}")))?;
    let message = under_policy(rpc.path, message, &received.policy)?;
    let answer = received.calls.call_encoded(rpc.path, &caller, &message).await?;
    let json = (rpc.answer)(&answer).map_err(|_| Problem::internal("an answer has no JSON form"))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
}

/// The error of the protocol.
fn failed(problem: Problem) -> Response {
    let details: Vec<_> = problem
        .details
        .iter()
        .map(|detail| {
            let kind = detail.type_url.rsplit('/').next().unwrap_or_default();
            serde_json::json!({ "type": kind, "value": STANDARD_NO_PAD.encode(&detail.value) })
        })
        .collect();
    let mut error = serde_json::json!({ "code": code_of(problem.code), "message": problem.message });
    if !details.is_empty() {
        error["details"] = details.into();
    }
    let response = (problem.status, axum::Json(error)).into_response();
    problem.with_headers(response)
}

/// The code in the spelling of the protocol.
fn code_of(code: Code) -> String {
    match code {
        Code::Cancelled => "canceled".to_owned(),
        code => code.as_str().to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::pb::FILE_DESCRIPTOR_SET;

    #[test]
    fn a_null_is_a_field_that_is_not_set_and_equal_keys_stay_wrong() {
        let read = |json: &str| encoded::<v1::CheckMessagesRequest>(json.as_bytes());
        let nulls = r#"{"messages":[{"role":"user","text":"x","toolCalls":null}],"policy":null,"plugins":null,"redact":null}"#;
        assert_eq!(read(nulls), read(r#"{"messages":[{"role":"user","text":"x"}]}"#));
        assert!(read(nulls).is_ok());
        for wrong in [r#"{"policy":null,"policy":"a"}"#, r#"{"polic":"a","policy":null}"#, "null", "[]"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_out_of_the_protocol_has_ten_digits_and_is_bounded() {
        for (text, wanted) in [
            ("1", Some(Duration::from_millis(1))),
            ("9999999999", Some(TIMEOUT_MAX)),
            ("10000000000", None),
            ("0", None),
            ("+5", None),
            ("", None),
        ] {
            assert_eq!(connect_timeout(text), wanted, "{text}");
        }
    }

    #[test]
    fn every_unary_rpc_of_the_contract_is_here() {
        let set = prost_types::FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("descriptors");
        let mut wanted = BTreeSet::new();
        // `ExtensionService` is for others to serve.
        for service in
            set.file.iter().flat_map(|file| &file.service).filter(|s| s.name() != "ExtensionService")
        {
            for rpc in service.method.iter().filter(|rpc| !rpc.client_streaming() && !rpc.server_streaming())
            {
                wanted.insert(format!("/portcullis.v1.{}/{}", service.name(), rpc.name()));
            }
        }
        let found: Vec<String> = RPCS.iter().map(|rpc| rpc.path.to_owned()).collect();
        assert_eq!(found.iter().cloned().collect::<BTreeSet<_>>(), wanted);
        assert_eq!(found.len(), wanted.len(), "each once");
    }

    #[test]
    fn the_policy_of_the_header_reaches_every_rpc_that_asks_under_one() {
        let set = prost_types::FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("descriptors");
        let has_policy = |input: &str| {
            let messages = set.file.iter().flat_map(|file| &file.message_type);
            let mut named = messages.filter(|message| format!(".portcullis.v1.{}", message.name()) == input);
            named.any(|message| message.field.iter().any(|field| field.name() == "policy"))
        };
        let services = set.file.iter().flat_map(|file| &file.service);
        let rpcs = services.flat_map(|service| service.method.iter().map(move |rpc| (service, rpc)));
        let wanted: BTreeSet<_> = rpcs
            .filter(|(_, rpc)| has_policy(rpc.input_type()))
            .map(|(service, rpc)| format!("/portcullis.v1.{}/{}", service.name(), rpc.name()))
            .filter(|path| RPCS.iter().any(|rpc| rpc.path == path))
            .collect();
        let found: BTreeSet<_> = UNDER_A_POLICY.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(found, wanted);
        for (path, name) in UNDER_A_POLICY {
            let encoded = name(&[], "strict").expect("an empty request names none");
            assert_eq!(name(&encoded, "strict").as_ref(), Ok(&encoded), "{path}: the same is no conflict");
            assert_eq!(name(&encoded, "other"), Err(NotNamed::Other("strict".to_owned())), "{path}");
        }
    }

    #[test]
    fn messages_are_the_ones_that_the_descriptors_name() {
        let set = prost_types::FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("descriptors");
        let methods = set.file.iter().flat_map(|file| &file.service).flat_map(|service| &service.method);
        let types: Vec<_> = methods.map(|rpc| (rpc.name(), rpc.input_type(), rpc.output_type())).collect();
        for rpc in RPCS {
            let name = rpc.path.rsplit('/').next().expect("a name");
            let (_, input, output) = types.iter().find(|(known, ..)| *known == name).expect("it is known");
            // The table names them after the RPC, as the contract does.
            assert_eq!(*input, format!(".portcullis.v1.{name}Request"));
            assert_eq!(*output, format!(".portcullis.v1.{name}Response"));
        }
    }

    #[test]
    fn codes_are_spelled_as_in_the_protocol() {
        assert_eq!(code_of(Code::Cancelled), "canceled");
        assert_eq!(code_of(Code::InvalidArgument), "invalid_argument");
    }
}
