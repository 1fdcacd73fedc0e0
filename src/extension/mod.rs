//! Interceptors and plugins of other people: calls of an `ExtensionService` over gRPC, and of HTTP endpoints.
//!
//! [`Extensions`] makes one client per address and credential and shares it, with its connections and its circuit
//! breaker, between all interceptors that name them; a reload keeps it as well. A client resolves the name of its host
//! itself and connects to permitted addresses only (`address`), so that no second look-up can lead elsewhere.
//!
//! Everything that comes back is foreign: bounded in size, read strictly (`convert`), and never followed anywhere.
//! Whatever goes wrong is an [`InterceptError`], and the fail mode of the interceptor decides.
//!
//! Invariant: no error holds a secret, a path of a URL, or text that the other side or a caller wrote.

mod address;
mod attempts;
mod config;
mod connect;
mod convert;
mod credential;
mod failure;
mod grpc;
mod plugin;
mod target;
mod webhook;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

pub use address::{AddressRules, kind_of_address};
pub use config::{Config, CredentialConfig};
pub use plugin::{AnswerMapping, OffsetUnit, PluginConfig, PluginKind, RequestMapping};

use crate::messages::Plugin;
use crate::outbound::Until;
use crate::policy::{RemoteSpec, SpecProblem};
use crate::setting::Problem;
use crate::tools::{RemoteFactory, RemoteFuture, RemoteHandler, RemoteKind, RemoteRequest};
use attempts::Remote;
use credential::Credential;
use plugin::External;
use target::Target;

/// Most attempts of one call.
pub const ATTEMPTS_MAX: u32 = 5;

/// What a client is shared by: kind, address as written, credential.
type Key = (RemoteKind, String, String);

/// Makes and shares the clients of interceptors that live elsewhere.
pub struct Extensions {
    config: Arc<Config>,
    addresses: Arc<AddressRules>,
    clients: Mutex<HashMap<Key, Weak<Remote>>>,
}

impl Extensions {
    /// Clients under these settings, which have been checked.
    pub fn new(config: &Config) -> Self {
        Self {
            config: Arc::new(config.clone()),
            addresses: Arc::new(AddressRules::new(config)),
            clients: Mutex::default(),
        }
    }

    /// The plugins of CheckMessages that the settings name. Nothing is connected yet.
    ///
    /// # Errors
    /// Every address that cannot be called and every credential that cannot be used; keys are relative to the settings
    /// of extensions.
    pub fn plugins(&self) -> Result<Vec<Arc<dyn Plugin>>, Vec<Problem>> {
        let (mut plugins, mut problems) = (Vec::<Arc<dyn Plugin>>::new(), Vec::new());
        for (name, config) in &self.config.plugins {
            let kind = match config.kind {
                PluginKind::Http => RemoteKind::Webhook,
                PluginKind::Grpc => RemoteKind::Extension,
            };
            let spec = RemoteSpec {
                endpoint: config.endpoint.clone(),
                credential: config.credential.clone(),
                attempts_max: u32::try_from(config.attempts_max).unwrap_or(u32::MAX),
            };
            match self.remote(kind, &spec) {
                Ok(remote) => plugins.push(Arc::new(External::new(name, config, remote))),
                Err(wrong) => problems.extend(wrong.into_iter().map(|problem| {
                    Problem::new("plugins", format!("`{name}`: {} {}", problem.field, problem.message))
                })),
            }
        }
        if problems.is_empty() { Ok(plugins) } else { Err(problems) }
    }

    fn remote(&self, kind: RemoteKind, spec: &RemoteSpec) -> Result<Arc<Remote>, Vec<SpecProblem>> {
        let key: Key = (kind, spec.endpoint.clone(), spec.credential.clone());
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(remote) = clients.get(&key).and_then(Weak::upgrade) {
            return Ok(remote);
        }
        let mut problems = Vec::new();
        let target = Target::parse(kind, &spec.endpoint, &self.addresses)
            .map_err(|message| problems.push(SpecProblem::new("endpoint", message)))
            .ok();
        let credential = self
            .credential(&spec.credential, target.as_ref())
            .map_err(|message| problems.push(SpecProblem::new("credential", message)))
            .ok();
        let (Some(target), Some(credential)) = (target, credential) else { return Err(problems) };
        let remote =
            Arc::new(Remote::new(kind, target, credential, self.config.clone(), self.addresses.clone()));
        clients.retain(|_, client| client.strong_count() > 0);
        clients.insert(key, Arc::downgrade(&remote));
        Ok(remote)
    }

    /// The credential of that name, if it may be shown to the target.
    fn credential(&self, name: &str, target: Option<&Target>) -> Result<Option<Credential>, String> {
        if name.is_empty() {
            return Ok(None);
        }
        let Some(config) = self.config.credentials.get(name) else {
            let known: Vec<&str> = self.config.credentials.keys().map(String::as_str).collect();
            return Err(match known.as_slice() {
                [] => "the settings name no credential; add one under `extensions.credentials`".to_owned(),
                known => format!("is not in the settings; known: {}", known.join(", ")),
            });
        };
        if let Some(target) = target {
            config.check_target(target)?;
        }
        Ok(Some(Credential::new(name, config)))
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").finish_non_exhaustive()
    }
}

impl RemoteFactory for Extensions {
    fn client(
        &self,
        _id: &str,
        kind: RemoteKind,
        spec: &RemoteSpec,
    ) -> Result<Arc<dyn RemoteHandler>, Vec<SpecProblem>> {
        let mut problems = Vec::new();
        if spec.attempts_max > ATTEMPTS_MAX {
            problems.push(SpecProblem::new("attempts_max", format!("must be at most {ATTEMPTS_MAX}")));
        }
        match self.remote(kind, spec) {
            Ok(remote) if problems.is_empty() => {
                Ok(Arc::new(Handler { remote, attempts_max: spec.attempts_max.max(1) }))
            }
            Ok(_) => Err(problems),
            Err(more) => {
                problems.extend(more);
                Err(problems)
            }
        }
    }
}

/// One interceptor's use of a shared client.
struct Handler {
    remote: Arc<Remote>,
    attempts_max: u32,
}

impl RemoteHandler for Handler {
    fn call<'a>(&'a self, request: &'a RemoteRequest<'a>, until: Until) -> RemoteFuture<'a> {
        Box::pin(self.remote.call(request, self.attempts_max, until))
    }
}
