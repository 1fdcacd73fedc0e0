//! `InterceptorRegistryService`: looking at interceptors, and changing those added here.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tonic::{Request, Response, Status};

use super::interceptor_convert::{self, Violation, fail_mode_message, hook_message, mode_message};
use super::server::Shared;
use super::{Changed, Identity, RequestError};
use crate::audit::masked_name;
use crate::decision::Hook;
use crate::pb::v1;
use crate::pb::v1::interceptor_registry_service_server::InterceptorRegistryService;
use crate::policy::Snapshot;
use crate::store::StoreError;
use crate::tools::{ApiEntry, Interceptor, PolicyTools, PreparedTools, Source};

/// Interceptors on one page unless asked otherwise.
const PAGE_SIZE: usize = 100;
/// Most interceptors on one page.
const PAGE_SIZE_MAX: usize = 1_000;

/// Replaces credentials and personal data in each text of a JSON value.
fn mask(snapshot: &Snapshot, value: &mut Value) {
    match value {
        Value::String(text) => *text = masked_name(snapshot.scanner(), text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| mask(snapshot, item)),
        Value::Object(fields) => fields.values_mut().for_each(|field| mask(snapshot, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The service.
pub(super) struct Interceptors(pub(super) Arc<Shared>);

/// Where one stands in a list: hook, priority, source, order of registration. Higher priorities come first.
type Place = (usize, std::cmp::Reverse<i32>, Source, i64);

#[tonic::async_trait]
impl InterceptorRegistryService for Interceptors {
    async fn add_interceptor(
        &self,
        request: Request<v1::AddInterceptorRequest>,
    ) -> Result<Response<v1::AddInterceptorResponse>, Status> {
        let identity = self.admin(&request)?;
        let answer = self.add(&identity, request.into_inner()).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn remove_interceptor(
        &self,
        request: Request<v1::RemoveInterceptorRequest>,
    ) -> Result<Response<v1::RemoveInterceptorResponse>, Status> {
        let identity = self.admin(&request)?;
        let answer = self.remove(&identity, request.into_inner().interceptor_id).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn match_interceptors(
        &self,
        request: Request<v1::MatchInterceptorsRequest>,
    ) -> Result<Response<v1::MatchInterceptorsResponse>, Status> {
        let identity = self.identity(&request)?;
        self.matching(&identity, &request.into_inner()).map(Response::new).map_err(|e| e.to_status())
    }

    async fn list_interceptors(
        &self,
        request: Request<v1::ListInterceptorsRequest>,
    ) -> Result<Response<v1::ListInterceptorsResponse>, Status> {
        let identity = self.identity(&request)?;
        self.list(&identity, &request.into_inner()).map(Response::new).map_err(|e| e.to_status())
    }

    async fn clear_interceptors(
        &self,
        request: Request<v1::ClearInterceptorsRequest>,
    ) -> Result<Response<v1::ClearInterceptorsResponse>, Status> {
        let identity = self.admin(&request)?;
        let answer = self.clear(&identity, request.into_inner().hook).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn list_known_tools(
        &self,
        request: Request<v1::ListKnownToolsRequest>,
    ) -> Result<Response<v1::ListKnownToolsResponse>, Status> {
        let identity = self.identity(&request)?;
        let known = self.known_tools(&identity, &request.into_inner().policy);
        known.map(Response::new).map_err(|error| error.to_status())
    }
}

impl Interceptors {
    fn identity<T>(&self, request: &Request<T>) -> Result<Identity, Status> {
        Identity::of(request).map_err(|error| error.to_status())
    }

    fn admin<T>(&self, request: &Request<T>) -> Result<Identity, Status> {
        let identity = self.identity(request)?;
        identity.require_admin().map_err(|error| error.to_status())?;
        Ok(identity)
    }

    /// Keeps one administrative event about one interceptor, with what it is: once it is gone nothing else tells that.
    async fn record_one(&self, identity: &Identity, action: &'static str, message: &v1::Interceptor) {
        let resource = format!("interceptor:{}", message.id);
        let snapshot = self.0.live.snapshot();
        let detail = snapshot.as_ref().and_then(|snapshot| {
            let mut detail = serde_json::to_value(message).ok()?;
            mask(snapshot, &mut detail);
            Some(detail)
        });
        let policy_revision = snapshot.as_ref().map_or("", |snapshot| snapshot.revision());
        let detail = detail.as_ref();
        let changed = Changed { action, resource: &resource, reason: "", policy_revision, detail };
        self.0.events.append(identity, changed).await;
    }

    fn snapshot(&self) -> Result<Arc<Snapshot>, RequestError> {
        self.0.live.snapshot().ok_or(RequestError::NotServing)
    }

    async fn add(
        &self,
        identity: &Identity,
        request: v1::AddInterceptorRequest,
    ) -> Result<v1::AddInterceptorResponse, RequestError> {
        let Some(message) = request.interceptor else {
            return Err(RequestError::field("interceptor", "is absent"));
        };
        let spec = interceptor_convert::spec(&message, request.allow_unknown_tools).map_err(wrong)?;
        let snapshot = self.snapshot()?;
        let tools = tools_of(&snapshot, identity, "")?;
        let tenant = identity.tenant();
        // As it stands: with every default filled in.
        let message = interceptor_convert::message(&spec);
        let entry = ApiEntry { spec, tenant: tenant.to_owned() };
        let compiled =
            self.0.tools.registry().compile(&entry, tools.names()).map_err(|problems| {
                wrong(problems.into_iter().map(interceptor_convert::violation).collect())
            })?;
        let matched_tools = compiled.matched_tools(tools.names());
        let taken = || RequestError::AlreadyExists { what: "interceptor", name: message.id.clone() };
        if is_of_a_policy(&snapshot, &message.id) {
            return Err(taken());
        }
        if request.dry_run {
            let stored = self.0.interceptors.stored().await.map_err(RequestError::from)?;
            if stored.iter().any(|row| row.message.tenant == tenant && row.message.id == message.id) {
                return Err(taken());
            }
            let message = v1::Interceptor {
                source: v1::InterceptorSource::Api.into(),
                tenant: tenant.to_owned(),
                creator: identity.name().to_owned(),
                ..message
            };
            return Ok(v1::AddInterceptorResponse { interceptor: Some(message), matched_tools });
        }
        let added = self.0.interceptors.add(&message, tenant, identity.name()).await?;
        tracing::info!(
            interceptor = added.id,
            hook = compiled.hook.as_str(),
            mode = mode_message(compiled.mode).as_str_name(),
            tenant,
            by = identity.name(),
            "interceptor added"
        );
        self.record_one(identity, "interceptor.added", &added).await;
        Ok(v1::AddInterceptorResponse { interceptor: Some(added), matched_tools })
    }

    async fn remove(
        &self,
        identity: &Identity,
        id: String,
    ) -> Result<v1::RemoveInterceptorResponse, RequestError> {
        if id.is_empty() {
            return Err(RequestError::field("interceptor_id", "is empty"));
        }
        let tenant = identity.tenant();
        let mut removed = self.0.interceptors.remove(tenant, vec![id.clone()]).await?;
        let Some(removed) = removed.pop() else {
            let is_elsewhere = self.snapshot().is_ok_and(|snapshot| is_of_a_policy(&snapshot, &id));
            let name = id.chars().take(128).collect();
            return Err(if is_elsewhere {
                RequestError::NotFromHere { name }
            } else {
                RequestError::NotFound { what: "interceptor", name }
            });
        };
        tracing::info!(interceptor = removed.id, tenant, by = identity.name(), "interceptor removed");
        self.record_one(identity, "interceptor.removed", &removed).await;
        Ok(v1::RemoveInterceptorResponse { interceptor: Some(removed) })
    }

    async fn clear(
        &self,
        identity: &Identity,
        hook: i32,
    ) -> Result<v1::ClearInterceptorsResponse, RequestError> {
        let hook = interceptor_convert::hook(hook).map_err(|message| RequestError::field("hook", message))?;
        let tenant = identity.tenant();
        let goes = |message: &v1::Interceptor| {
            message.tenant == tenant && hook.is_none_or(|hook| message.hook == i32::from(hook_message(hook)))
        };
        let stored = self.0.interceptors.stored().await?;
        let ids = stored.into_iter().map(|row| row.message).filter(goes).map(|message| message.id).collect();
        let removed = self.0.interceptors.remove(tenant, ids).await?;
        for message in &removed {
            self.record_one(identity, "interceptor.removed", message).await;
        }
        let mut interceptor_ids: Vec<String> = removed.into_iter().map(|message| message.id).collect();
        interceptor_ids.sort();
        tracing::info!(removed = interceptor_ids.len(), tenant, by = identity.name(), "interceptors cleared");
        Ok(v1::ClearInterceptorsResponse { interceptor_ids })
    }

    fn matching(
        &self,
        identity: &Identity,
        request: &v1::MatchInterceptorsRequest,
    ) -> Result<v1::MatchInterceptorsResponse, RequestError> {
        let hook = interceptor_convert::hook(request.hook)
            .map_err(|message| RequestError::field("hook", message))?;
        let hook = hook.ok_or_else(|| RequestError::field("hook", "is not set"))?;
        let snapshot = self.snapshot()?;
        let tools = tools_of(&snapshot, identity, &request.policy)?;
        let name = tools.names().normalise(&request.tool_name);
        let tool = if hook.is_tool() { &*name } else { "" };
        if hook.is_tool() && tool.is_empty() {
            return Err(RequestError::field("tool_name", "is empty; name the tool"));
        }
        let tenant = identity.tenant();
        let found = self.0.tools.registry().matching(tools, hook, tool, &request.agent_id, tenant);
        Ok(v1::MatchInterceptorsResponse {
            interceptors: found.iter().map(|one| self.message(one)).collect(),
            tool_name: tool.to_owned(),
            policy_revision: snapshot.revision().to_string(),
        })
    }

    fn list(
        &self,
        identity: &Identity,
        request: &v1::ListInterceptorsRequest,
    ) -> Result<v1::ListInterceptorsResponse, RequestError> {
        let hook = interceptor_convert::hook(request.hook)
            .map_err(|message| RequestError::field("hook", message))?;
        let source = source(request.source)?;
        let snapshot = self.snapshot()?;
        let tools = tools_of(&snapshot, identity, &request.policy)?;
        let tenant = identity.tenant();
        // A token belongs to the list that it continues.
        let list = digest(&format!("{hook:?} {source:?} {} {tenant}", request.policy));
        let after = match request.page_token.as_str() {
            "" => None,
            token => Some(place_of_token(token, &list).ok_or_else(|| {
                RequestError::field("page_token", "does not fit this list; start again without it")
            })?),
        };
        let order: HashMap<&str, i64> =
            (0..).zip(tools.interceptors()).map(|(nth, one)| (&*one.id, nth)).collect();
        let place = |one: &Interceptor| -> Place {
            let registered = match one.source {
                Source::Api => self.0.interceptors.row(&one.tenant, &one.id).map(|row| row.sequence),
                Source::Builtin | Source::Policy => order.get(&*one.id).copied(),
            };
            (one.hook as usize, std::cmp::Reverse(one.priority), one.source, registered.unwrap_or(i64::MAX))
        };
        let mut wanted: Vec<(Place, Arc<Interceptor>)> = self
            .0
            .tools
            .registry()
            .list(tools, tenant)
            .into_iter()
            .filter(|one| hook.is_none_or(|hook| one.hook == hook))
            .filter(|one| source.is_none_or(|source| one.source == source))
            .map(|one| (place(&one), one))
            .filter(|(place, _)| after.is_none_or(|after| *place > after))
            .collect();
        wanted.sort_by_key(|(place, _)| *place);
        let size = match request.page_size as usize {
            0 => PAGE_SIZE,
            size => size.min(PAGE_SIZE_MAX),
        };
        let next_page_token =
            if wanted.len() > size { token_of_place(wanted[size - 1].0, &list) } else { String::new() };
        wanted.truncate(size);
        Ok(v1::ListInterceptorsResponse {
            interceptors: wanted.iter().map(|(_, one)| self.message(one)).collect(),
            next_page_token,
            policy_revision: snapshot.revision().to_string(),
        })
    }

    fn known_tools(
        &self,
        identity: &Identity,
        policy: &str,
    ) -> Result<v1::ListKnownToolsResponse, RequestError> {
        let snapshot = self.snapshot()?;
        let tools = tools_of(&snapshot, identity, policy)?.names().list();
        let tools = tools.into_iter().map(|tool| v1::KnownTool {
            guarded: tool.is_guarded(),
            name: tool.name,
            group: tool.group.to_owned(),
            aliases: tool.aliases,
        });
        Ok(v1::ListKnownToolsResponse {
            tools: tools.collect(),
            policy_revision: snapshot.revision().to_string(),
        })
    }

    /// An interceptor as answers tell it.
    fn message(&self, one: &Interceptor) -> v1::Interceptor {
        let stored = match one.source {
            Source::Api => self.0.interceptors.row(&one.tenant, &one.id),
            Source::Builtin | Source::Policy => None,
        };
        if let Some(row) = stored {
            return row.message;
        }
        let written = one.spec.as_ref().map(|spec| interceptor_convert::message(spec));
        v1::Interceptor {
            id: one.id.to_string(),
            hook: hook_message(one.hook).into(),
            priority: one.priority,
            tool_matcher: one.tool_matcher.to_string(),
            agent_matcher: one.agent_matcher.to_string(),
            description: one.description.to_string(),
            mode: mode_message(one.mode).into(),
            fail_mode: fail_mode_message(one.fail).into(),
            timeout: Some(one.timeout.into()),
            source: source_message(one.source).into(),
            tenant: one.tenant.to_string(),
            ..written.unwrap_or_default()
        }
    }
}

impl From<StoreError> for RequestError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::AlreadyExists { id } => Self::AlreadyExists { what: "interceptor", name: id },
            error => {
                // The caller has no use for the path of a file on our disk; the operator has.
                tracing::error!(%error, "the store failed");
                Self::StoreUnavailable
            }
        }
    }
}

fn wrong(violations: Vec<Violation>) -> RequestError {
    RequestError::Fields { violations }
}

/// What was compiled for the policy of that name.
fn tools_of<'s>(
    snapshot: &'s Snapshot,
    identity: &Identity,
    name: &str,
) -> Result<&'s PolicyTools, RequestError> {
    let policy = match identity.policy(name) {
        // One of another tenant is told as one that is not there.
        Err(_) => None,
        Ok("") => Some(snapshot.policies().default_policy()),
        Ok(name) => snapshot.policies().get(name).filter(|policy| policy.allows_caller(identity.roles)),
    };
    let unknown = || {
        identity.missing_policy(snapshot.policies(), name).unwrap_or_else(|| {
            let name: String = name.chars().take(60).collect();
            RequestError::field("policy", format!("there is no policy `{name}`"))
        })
    };
    let policy = policy.ok_or_else(unknown)?;
    let prepared = snapshot.prepared::<PreparedTools>().ok_or(RequestError::NotServing)?;
    prepared.policy(policy.name()).ok_or(RequestError::Internal)
}

/// Whether a built-in interceptor or one of any policy has this id.
fn is_of_a_policy(snapshot: &Snapshot, id: &str) -> bool {
    let Some(prepared) = snapshot.prepared::<PreparedTools>() else { return false };
    snapshot
        .policies()
        .iter()
        .filter_map(|policy| prepared.policy(policy.name()))
        .any(|tools| tools.interceptors().iter().any(|one| *one.id == *id))
}

fn source(number: i32) -> Result<Option<Source>, RequestError> {
    match v1::InterceptorSource::try_from(number) {
        Ok(v1::InterceptorSource::Unspecified) => Ok(None),
        Ok(v1::InterceptorSource::Builtin) => Ok(Some(Source::Builtin)),
        Ok(v1::InterceptorSource::Policy) => Ok(Some(Source::Policy)),
        Ok(v1::InterceptorSource::Api) => Ok(Some(Source::Api)),
        Err(_) => Err(RequestError::field("source", format!("{number} is no InterceptorSource"))),
    }
}

fn source_message(source: Source) -> v1::InterceptorSource {
    match source {
        Source::Builtin => v1::InterceptorSource::Builtin,
        Source::Policy => v1::InterceptorSource::Policy,
        Source::Api => v1::InterceptorSource::Api,
    }
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A token is a place, so a change between two pages neither repeats nor skips what stays.
fn token_of_place((hook, priority, source, registered): Place, list: &str) -> String {
    format!("{list}.{hook}.{}.{}.{registered}", priority.0, source as u8)
}

fn place_of_token(token: &str, list: &str) -> Option<Place> {
    let mut parts = token.strip_prefix(list)?.strip_prefix('.')?.split('.');
    let hook = parts.next()?.parse().ok().filter(|hook| *hook < Hook::ALL.len())?;
    let priority = parts.next()?.parse().ok()?;
    let source = [Source::Builtin, Source::Policy, Source::Api].get(parts.next()?.parse::<usize>().ok()?)?;
    let registered = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some((hook, std::cmp::Reverse(priority), *source, registered))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_back_to_its_place_in_its_list_only() {
        let place: Place = (2, std::cmp::Reverse(-5), Source::Api, 12);
        let token = token_of_place(place, "0123456789abcdef");
        assert_eq!(place_of_token(&token, "0123456789abcdef"), Some(place));
        assert_eq!(place_of_token(&token, "ffffffffffffffff"), None);
        for wrong in ["", "x", "0123456789abcdef", "0123456789abcdef.9.0.0.0", "0123456789abcdef.1.0.7.0"] {
            assert_eq!(place_of_token(wrong, "0123456789abcdef"), None, "{wrong}");
        }
        assert_eq!(place_of_token(&format!("{token}.1"), "0123456789abcdef"), None);
    }
}
