//! The interceptors in force: those of a policy and those that came by API, merged into running order.
//!
//! Order: descending priority; of equal ones built-in, then policy, then API, each in order of registration. The merge
//! and what matches each known tool are worked out once per policy and change of the API's list, so that a call pays
//! for a look-up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::interceptor::{Interceptor, Source};
use super::names::ToolNames;
use super::prepare::PolicyTools;
use super::remote::RemoteFactory;
use crate::decision::{Hook, Mode};
use crate::policy::{InterceptorSpec, SpecProblem};

/// An interceptor that came by API.
#[derive(Clone, Debug)]
pub struct ApiEntry {
    /// What it says.
    pub spec: InterceptorSpec,
    /// Tenant it belongs to; empty is the default tenant.
    pub tenant: String,
}

/// Why an interceptor cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// The id is taken, by the API or by a policy.
    #[error("the id `{0}` is taken")]
    Taken(String),
    /// Something is wrong with it.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Spec(Vec<SpecProblem>),
}

/// The interceptors that came by API. Shared by all requests; the store behind it is somebody else's.
#[derive(Debug)]
pub struct Registry {
    api: ArcSwap<ApiList>,
    /// Held while the list changes.
    writing: Mutex<()>,
    remotes: Option<Arc<dyn RemoteFactory>>,
    /// Whether the default tenant is one among others. Else it stands for all: nobody knows whose a call is.
    are_tenants_apart: bool,
}

#[derive(Debug, Default)]
struct ApiList {
    generation: u64,
    entries: Vec<Arc<Interceptor>>,
}

impl Registry {
    /// An empty registry. Without a factory no interceptor that lives elsewhere can be added.
    pub fn new(remotes: Option<Arc<dyn RemoteFactory>>) -> Self {
        Self { api: ArcSwap::default(), writing: Mutex::default(), remotes, are_tenants_apart: false }
    }

    /// The same where callers are authenticated: what the default tenant added holds for the default tenant alone.
    #[must_use]
    pub fn with_tenants_apart(mut self, are_apart: bool) -> Self {
        self.are_tenants_apart = are_apart;
        self
    }

    /// Compiles a spec, adds nothing. `known` are the tools of the default policy.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn compile(&self, entry: &ApiEntry, known: &ToolNames) -> Result<Arc<Interceptor>, Vec<SpecProblem>> {
        let remotes = self.remotes.as_deref();
        let compiled = Interceptor::compile(entry.spec.clone(), Source::Api, &entry.tenant, known, remotes)?;
        Ok(Arc::new(self.of_its_tenant(compiled)))
    }

    fn of_its_tenant(&self, mut compiled: Interceptor) -> Interceptor {
        compiled.is_for_all = compiled.tenant.is_empty() && !self.are_tenants_apart;
        compiled
    }

    /// Adds one behind all others of its priority.
    ///
    /// # Errors
    /// The id is taken, or something is wrong with the spec.
    pub fn add(&self, entry: &ApiEntry, known: &ToolNames) -> Result<Arc<Interceptor>, AddError> {
        let compiled = self.compile(entry, known).map_err(AddError::Spec)?;
        self.change(|entries| {
            if entries.iter().any(|other| is(other, &entry.tenant, &entry.spec.id)) {
                return Err(AddError::Taken(entry.spec.id.clone()));
            }
            entries.push(compiled.clone());
            Ok(())
        })?;
        Ok(compiled)
    }

    /// Removes one of that tenant; `None` when there is none of that id.
    pub fn remove(&self, tenant: &str, id: &str) -> Option<Arc<Interceptor>> {
        self.change(|entries| {
            let at = entries.iter().position(|other| is(other, tenant, id))?;
            Some(entries.remove(at))
        })
    }

    /// Removes all of that tenant, on `hook` or on any.
    pub fn clear(&self, tenant: &str, hook: Option<Hook>) -> Vec<Arc<Interceptor>> {
        self.change(|entries| {
            let goes =
                |one: &Arc<Interceptor>| *one.tenant == *tenant && hook.is_none_or(|hook| hook == one.hook);
            let gone = entries.iter().filter(|one| goes(one)).cloned().collect();
            entries.retain(|one| !goes(one));
            gone
        })
    }

    /// Replaces the whole list, in order of registration, as a store has it. One that can no longer be compiled keeps
    /// its place and fails at every call as its fail mode says; what is wrong with it is answered.
    pub fn replace_api(&self, list: Vec<ApiEntry>, known: &ToolNames) -> Vec<(String, Vec<SpecProblem>)> {
        let mut broken = Vec::new();
        let compiled: Vec<_> = list
            .into_iter()
            .map(|entry| {
                self.compile(&entry, known).unwrap_or_else(|problems| {
                    broken.push((entry.spec.id.clone(), problems));
                    let broken = Interceptor::broken(entry.spec, Source::Api, &entry.tenant, known);
                    Arc::new(self.of_its_tenant(broken))
                })
            })
            .collect();
        self.change(|entries| *entries = compiled);
        broken
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Arc<Interceptor>>) -> T) -> T {
        // A poisoned lock means that a change panicked before it was stored; the list is whole.
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.api.load();
        let mut entries = before.entries.clone();
        let result = change(&mut entries);
        self.api.store(Arc::new(ApiList { generation: before.generation + 1, entries }));
        result
    }

    /// Those that came by API, in order of registration.
    pub fn api(&self) -> Vec<Arc<Interceptor>> {
        self.api.load().entries.clone()
    }

    /// Every interceptor of a policy and of `tenant`, in running order on each hook, those switched off included.
    pub fn list(&self, policy: &PolicyTools, tenant: &str) -> Vec<Arc<Interceptor>> {
        let api = self.api.load();
        let mut all: Vec<_> = policy.interceptors().iter().chain(&api.entries).cloned().collect();
        all.retain(|one| one.is_of(tenant));
        sort(&mut all);
        all
    }

    /// Those that run for a call, in running order. `tool` is normalised, and ignored on hooks without one.
    pub fn matching(
        &self,
        policy: &PolicyTools,
        hook: Hook,
        tool: &str,
        agent: &str,
        tenant: &str,
    ) -> Arc<[Arc<Interceptor>]> {
        let api = self.api.load();
        let merged = policy.merged(api.generation, || Merged::new(policy, &api));
        let of_hook = &merged.hooks[hook as usize];
        let ready = if hook.is_tool() { of_hook.by_tool.get(tool) } else { Some(&of_hook.all) };
        match ready {
            Some(ready) if !ready.is_particular => ready.interceptors.clone(),
            Some(ready) => {
                ready.interceptors.iter().filter(|one| one.is_for(agent, tenant)).cloned().collect()
            }
            None => {
                let all = of_hook.all.interceptors.iter();
                all.filter(|one| one.matches(tool, agent, tenant)).cloned().collect()
            }
        }
    }
}

fn is(one: &Interceptor, tenant: &str, id: &str) -> bool {
    *one.tenant == *tenant && *one.id == *id
}

/// Running order. Stable, so equal ones stay in order of registration.
fn sort(interceptors: &mut [Arc<Interceptor>]) {
    interceptors.sort_by_key(|one| (one.hook, std::cmp::Reverse(one.priority), one.source));
}

/// What runs for one policy at one state of the API's list. Those switched off are left out.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) generation: u64,
    hooks: [OfHook; 4],
}

#[derive(Debug)]
struct OfHook {
    all: Ready,
    by_tool: HashMap<String, Ready>,
}

#[derive(Debug)]
struct Ready {
    interceptors: Arc<[Arc<Interceptor>]>,
    /// Whether some of them are for some agents or tenants only.
    is_particular: bool,
}

impl Ready {
    fn new(interceptors: Vec<Arc<Interceptor>>) -> Self {
        let is_particular = interceptors.iter().any(|one| !one.agents.is_all() || !one.is_for_all);
        Self { interceptors: interceptors.into(), is_particular }
    }
}

impl Merged {
    fn new(policy: &PolicyTools, api: &ApiList) -> Self {
        let mut all: Vec<_> = policy.interceptors().iter().chain(&api.entries).cloned().collect();
        all.retain(|one| one.mode != Mode::Off);
        sort(&mut all);
        let hooks = Hook::ALL.map(|hook| {
            let on: Vec<_> = all.iter().filter(|one| one.hook == hook).cloned().collect();
            let tools = if hook.is_tool() { policy.names().names() } else { Vec::new() };
            let by_tool = tools.into_iter().map(|tool| {
                let for_tool = on.iter().filter(|one| one.tools.matches(tool)).cloned().collect();
                (tool.to_owned(), Ready::new(for_tool))
            });
            OfHook { by_tool: by_tool.collect(), all: Ready::new(on) }
        });
        Self { generation: api.generation, hooks }
    }
}
