//! Which decisions that allow are recorded: for all a share, for some of them another.
//!
//! Nothing here is asked about any other decision: WARN, ASK and BLOCK are always recorded.

use super::glob::fits;

/// Which decisions that allow are recorded.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AuditSettings {
    /// Share that is recorded of what no filter fits, 0.0 to 1.0.
    pub(super) sample_allow: f64,
    /// The first that fits decides.
    pub(super) filters: Vec<AuditFilter>,
}

/// Another share for some of the decisions that allow. A decision must fit every scope that is given.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditFilter {
    /// Calls; none given fits every call.
    pub rpcs: Vec<String>,
    /// Canonical names of tools; `*` stands for any run of characters. None given fits every tool, and calls without one.
    pub tools: Vec<String>,
    /// Values of `agent_id`; `*` stands for any run of characters. None given fits every agent.
    pub agents: Vec<String>,
    /// Share that is recorded, 0.0 to 1.0; 0.0 records none.
    pub sample_allow: f64,
}

/// A decision, as far as filters ask for it.
#[derive(Clone, Copy, Debug)]
pub struct AuditQuery<'a> {
    /// The call, such as `CheckMessages`.
    pub rpc: &'a str,
    /// Canonical name of the tool; empty when there is none.
    pub tool: &'a str,
    /// What the caller says it is; may be empty.
    pub agent: &'a str,
}

impl AuditSettings {
    /// Share of decisions of this kind that is recorded when they allow.
    pub(super) fn share_of(&self, query: &AuditQuery<'_>) -> f64 {
        let filter = self.filters.iter().find(|filter| filter.fits(query));
        filter.map_or(self.sample_allow, |filter| filter.sample_allow)
    }
}

impl AuditFilter {
    fn fits(&self, query: &AuditQuery<'_>) -> bool {
        let any = |patterns: &[String], text| {
            patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, text))
        };
        any(&self.rpcs, query.rpc) && any(&self.tools, query.tool) && any(&self.agents, query.agent)
    }
}
