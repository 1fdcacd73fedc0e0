//! One interceptor, ready to run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::call::Call;
use super::matcher::{AgentMatcher, ToolMatcher};
use super::names::ToolNames;
use super::remote::{RemoteFactory, RemoteHandler, RemoteKind};
use super::step::{InterceptError, Step};
use crate::decision::{FailMode, Hook, Mode};
use crate::policy::{HandlerSpec, InterceptorSpec, SpecProblem};

/// Where an interceptor comes from. The order is that of equal priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// Part of Portcullis.
    Builtin,
    /// A policy file.
    Policy,
    /// Added by API.
    Api,
}

/// An interceptor that works here, at once and without waiting for anybody.
pub trait Local: Send + Sync {
    /// Judges one call.
    ///
    /// # Errors
    /// Why it has no answer; its fail mode then decides.
    fn run(&self, call: &Call<'_>) -> Result<Step, InterceptError>;
}

/// Who does the work.
pub(super) enum Work {
    /// Code in this process.
    Local(Box<dyn Local>),
    /// Somebody else.
    Remote(Arc<dyn RemoteHandler>),
    /// It was accepted once and cannot be compiled any more; every run of it fails.
    Broken,
}

/// One interceptor, ready to run.
pub struct Interceptor {
    /// Unique id.
    pub id: Arc<str>,
    /// Where it stands.
    pub hook: Hook,
    /// Higher runs first.
    pub priority: i32,
    /// What it may do.
    pub mode: Mode,
    /// What a failure of it does.
    pub fail: FailMode,
    /// Its deadline.
    pub timeout: Duration,
    /// What it is for, for a person; may be empty.
    pub description: Arc<str>,
    /// Its matcher of tools as it was written; empty matches every tool.
    pub tool_matcher: Arc<str>,
    /// Its matcher of agents as it was written; empty matches every agent.
    pub agent_matcher: Arc<str>,
    /// Where it comes from.
    pub source: Source,
    /// Tenant it belongs to; empty is the default tenant.
    pub tenant: Arc<str>,
    /// Whether it holds for every tenant.
    pub(super) is_for_all: bool,
    /// What somebody wrote; `None` for a built-in one.
    pub spec: Option<Arc<InterceptorSpec>>,
    pub(super) tools: ToolMatcher,
    pub(super) agents: AgentMatcher,
    pub(super) work: Work,
    /// Whether it judges arguments and must see what runs in the end, whoever changed it.
    pub(super) is_guard: bool,
}

impl fmt::Debug for Interceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interceptor").field("id", &self.id).field("hook", &self.hook).finish_non_exhaustive()
    }
}

impl Interceptor {
    /// Compiles what somebody wrote.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(super) fn compile(
        spec: InterceptorSpec,
        source: Source,
        tenant: &str,
        known: &ToolNames,
        remotes: Option<&dyn RemoteFactory>,
    ) -> Result<Self, Vec<SpecProblem>> {
        let mut problems = Vec::new();
        let tools = if spec.hook.is_tool() || spec.tools.is_empty() {
            ToolMatcher::compile(&spec.tools, known, spec.allow_unknown_tools)
        } else {
            Err(format!("`{}` has no tool; use it on tool.before and tool.after only", spec.hook))
        };
        let tools = tools.map_err(|message| problems.push(SpecProblem::new("tools", message)));
        let agents = AgentMatcher::compile(&spec.agents);
        let agents = agents.map_err(|message| problems.push(SpecProblem::new("agents", message)));
        let work = work(&spec, remotes).map_err(|more| problems.extend(more));
        let (Ok(tools), Ok(agents), Ok(work)) = (tools, agents, work) else { return Err(problems) };
        Ok(Self::with(spec, source, tenant, (tools, agents), work))
    }

    /// One that cannot be compiled any more: it keeps its place, and each run of it fails as its fail mode says. A
    /// matcher that is no matcher any more stands for every tool or agent, since nobody knows for which it was meant.
    pub(super) fn broken(spec: InterceptorSpec, source: Source, tenant: &str, known: &ToolNames) -> Self {
        let tools = ToolMatcher::compile(&spec.tools, known, true).unwrap_or(ToolMatcher::All);
        let agents = AgentMatcher::compile(&spec.agents).unwrap_or_default();
        Self::with(spec, source, tenant, (tools, agents), Work::Broken)
    }

    fn with(
        spec: InterceptorSpec,
        source: Source,
        tenant: &str,
        (tools, agents): (ToolMatcher, AgentMatcher),
        work: Work,
    ) -> Self {
        Self {
            id: spec.id.as_str().into(),
            hook: spec.hook,
            priority: spec.priority,
            mode: spec.mode,
            fail: spec.fail,
            timeout: spec.timeout,
            description: spec.description.as_str().into(),
            tool_matcher: spec.tools.as_str().into(),
            agent_matcher: spec.agents.as_str().into(),
            source,
            tenant: tenant.into(),
            is_for_all: tenant.is_empty(),
            spec: Some(Arc::new(spec)),
            tools,
            agents,
            work,
            is_guard: false,
        }
    }

    /// Whether it runs for this tool, agent and tenant. `tool` is normalised, and ignored on hooks without one.
    pub(super) fn matches(&self, tool: &str, agent: &str, tenant: &str) -> bool {
        self.is_for(agent, tenant) && (!self.hook.is_tool() || self.tools.matches(tool))
    }

    /// [`Self::matches`] once the tool is known to match.
    pub(super) fn is_for(&self, agent: &str, tenant: &str) -> bool {
        self.is_of(tenant) && self.agents.matches(agent)
    }

    /// Whether it holds for that tenant.
    pub(super) fn is_of(&self, tenant: &str) -> bool {
        self.is_for_all || *self.tenant == *tenant
    }

    /// The known tools that its matcher matches, sorted; none on hooks without a tool.
    pub fn matched_tools(&self, known: &ToolNames) -> Vec<String> {
        let names = if self.hook.is_tool() { known.names() } else { Vec::new() };
        names.into_iter().filter(|name| self.tools.matches(name)).map(str::to_owned).collect()
    }

    /// Value of the metric label `interceptor`. Ids that came by API are not a bounded set and share one.
    pub fn label(&self) -> &str {
        match self.source {
            Source::Api => "api",
            Source::Builtin | Source::Policy => &self.id,
        }
    }
}

fn work(spec: &InterceptorSpec, remotes: Option<&dyn RemoteFactory>) -> Result<Work, Vec<SpecProblem>> {
    let (kind, key, remote) = match &spec.handler {
        HandlerSpec::Rule(rule) => {
            return super::actions::CompiledRule::compile(rule, spec.hook)
                .map(|rule| Work::Local(Box::new(rule)));
        }
        HandlerSpec::Extension(remote) => (RemoteKind::Extension, "extension", remote),
        HandlerSpec::Webhook(remote) => (RemoteKind::Webhook, "webhook", remote),
    };
    let Some(remotes) = remotes else {
        let message = "interceptors that live elsewhere cannot be reached from here";
        return Err(vec![SpecProblem::new(key, message)]);
    };
    remotes.client(&spec.id, kind, remote).map(Work::Remote).map_err(|problems| {
        problems
            .into_iter()
            .map(|problem| SpecProblem::new(format!("{key}.{}", problem.field), problem.message))
            .collect()
    })
}
