//! Suppressions: findings that a person has looked at and excused, for a reason and for a time.
//!
//! A suppressed finding is still reported, as suppressed; it only leaves the decision alone.

use std::cell::OnceCell;

use jiff::Timestamp;

use super::glob;
use crate::decision::Category;

/// One excuse. A finding must fit every scope that is given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Suppression {
    /// Id of the rule; `None` fits every rule.
    pub rule: Option<String>,
    /// This category and everything below it; `None` fits every category.
    pub category: Option<String>,
    /// Fingerprint of the finding as answers give it; `None` fits every finding.
    pub fingerprint: Option<String>,
    /// Path of the field or file; `*` stands for any run of characters; `None` fits every path.
    pub path: Option<String>,
    /// Tenant of the caller; `None` fits every tenant.
    pub tenant: Option<String>,
    /// Why this is excused; never empty.
    pub reason: String,
    /// From this moment on the finding counts again.
    pub expires: Timestamp,
}

/// A finding, as far as suppressions ask for it.
#[derive(Clone, Copy)]
pub struct SuppressionQuery<'a> {
    /// Id of the rule.
    pub rule_id: &'a str,
    /// Category of the finding.
    pub category: &'a Category,
    /// Computes the fingerprint. Called at most once, and only when a suppression that fits otherwise names one.
    pub fingerprint: &'a dyn Fn() -> String,
    /// Path of the field in the message, or of the file in a bundle.
    pub path: &'a str,
    /// Tenant of the caller; empty when there is none.
    pub tenant: &'a str,
}

/// The first of `suppressions` that is in force at `now` and fits.
pub(super) fn first_fitting<'s>(
    suppressions: &'s [Suppression],
    query: &SuppressionQuery<'_>,
    now: Timestamp,
) -> Option<&'s Suppression> {
    let fingerprint = OnceCell::new();
    suppressions.iter().find(|suppression| {
        suppression.is_active(now)
            && suppression.fits_scope(query)
            && suppression
                .fingerprint
                .as_deref()
                .is_none_or(|wanted| wanted == fingerprint.get_or_init(query.fingerprint))
    })
}

impl Suppression {
    /// Whether it is in force at `now`.
    pub fn is_active(&self, now: Timestamp) -> bool {
        now < self.expires
    }

    /// Every scope but the fingerprint, which costs a hash.
    fn fits_scope(&self, query: &SuppressionQuery<'_>) -> bool {
        self.rule.as_deref().is_none_or(|rule| rule == query.rule_id)
            && self.category.as_deref().is_none_or(|category| query.category.is_within(category))
            && self.tenant.as_deref().is_none_or(|tenant| tenant == query.tenant)
            && self.path.as_deref().is_none_or(|pattern| glob::fits(pattern, query.path))
    }
}
