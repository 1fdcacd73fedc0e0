//! What a tenant gets: its policy, the policies that it may name, its quota.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::TenantConfig;
use crate::policy::DEFAULT_POLICY;

/// The terms of every tenant.
#[derive(Clone, Debug, Default)]
pub struct Tenants {
    own: BTreeMap<String, Arc<TenantTerms>>,
    /// For tenants that the settings do not name.
    others: Arc<TenantTerms>,
}

/// The terms of one tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantTerms {
    /// The policy of calls that name none; `None` for `default`.
    policy: Option<Arc<str>>,
    /// Further policies that its callers may name.
    more: BTreeSet<String>,
    /// Policies that the settings give to tenants. Others must not name them.
    given: Arc<BTreeSet<String>>,
    /// Blocked uploads a day of one submitter; `None` for the setting of all.
    pub blocked_quota_per_day: Option<usize>,
}

impl Tenants {
    /// The terms that the settings say.
    pub fn new(tenants: &BTreeMap<String, TenantConfig>) -> Self {
        let named = tenants.values().flat_map(|tenant| tenant.policy.iter().chain(&tenant.policies));
        let given: BTreeSet<String> = named.filter(|name| *name != DEFAULT_POLICY).cloned().collect();
        let given = Arc::new(given);
        let terms = |tenant: &TenantConfig| TenantTerms {
            policy: tenant.policy.as_deref().map(Into::into),
            more: tenant.policies.iter().cloned().collect(),
            given: given.clone(),
            blocked_quota_per_day: tenant.blocked_quota_per_day,
        };
        let own = tenants.iter().map(|(name, tenant)| (name.clone(), Arc::new(terms(tenant)))).collect();
        let others = Arc::new(TenantTerms { given: given.clone(), ..TenantTerms::default() });
        Self { own, others }
    }

    /// The terms of the tenant of that name.
    pub fn terms(&self, tenant: &str) -> &Arc<TenantTerms> {
        self.own.get(tenant).unwrap_or(&self.others)
    }

    /// Policies that the settings name.
    pub fn policies(&self) -> impl Iterator<Item = &str> {
        self.others.given.iter().map(String::as_str)
    }
}

impl TenantTerms {
    /// The policy for a call that names `name`, which may be empty; `None` when callers of this tenant may not name it.
    pub fn policy<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        match &self.policy {
            Some(own) if name.is_empty() => Some(own),
            // Whoever has a policy of its own does not choose a weaker one by naming it.
            Some(own) => (**own == *name || self.more.contains(name)).then_some(name),
            None => (self.more.contains(name) || !self.given.contains(name)).then_some(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_its_own_policies_and_nobody_elses() {
        let acme = TenantConfig {
            policy: Some("acme".to_owned()),
            policies: vec!["acme-lab".to_owned()],
            blocked_quota_per_day: Some(3),
        };
        let quota_only = TenantConfig { blocked_quota_per_day: Some(1), ..TenantConfig::default() };
        let tenants =
            Tenants::new(&BTreeMap::from([("acme".to_owned(), acme), ("small".to_owned(), quota_only)]));
        for (tenant, name, wanted) in [
            ("acme", "", Some("acme")),
            ("acme", "acme", Some("acme")),
            ("acme", "acme-lab", Some("acme-lab")),
            ("acme", "default", None),
            ("acme", "other", None),
            ("small", "", Some("")),
            ("small", "default", Some("default")),
            ("small", "acme", None),
            ("unknown", "other", Some("other")),
            ("unknown", "acme-lab", None),
            ("", "acme", None),
        ] {
            assert_eq!(tenants.terms(tenant).policy(name), wanted, "{tenant} names {name:?}");
        }
        let quotas = ["acme", "small", ""].map(|tenant| tenants.terms(tenant).blocked_quota_per_day);
        assert_eq!(quotas, [Some(3), Some(1), None]);
        assert_eq!(tenants.policies().collect::<Vec<_>>(), ["acme", "acme-lab"]);
    }
}
