//! Suppressions: findings that a person has looked at and excused, for a reason and for a time.
//!
//! A suppressed finding is still reported, as suppressed; it only leaves the decision alone.

use std::cell::OnceCell;

use jiff::Timestamp;

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
            && self.path.as_deref().is_none_or(|pattern| fits_path(pattern, query.path))
    }
}

/// Whether `path` has the shape of `pattern`, in which `*` stands for any run of characters.
///
/// Greedy from the left, which is right because a run may be empty; linear in `path` for each literal piece.
fn fits_path(pattern: &str, path: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == path;
    };
    let Some(mut path) = path.strip_prefix(head) else {
        return false;
    };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*') {
        match path.find(piece) {
            Some(at) => path = &path[at + piece.len()..],
            None => return false,
        }
    }
    path.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        for (pattern, path, fits) in [
            ("/text", "/text", true),
            ("/text", "/texts", false),
            ("docs/*", "docs/a/b.md", true),
            ("docs/*", "src/docs/a", false),
            ("*.md", "a.md", true),
            ("*.md", "a.mdx", false),
            ("/parts/*/text", "/parts/12/text", true),
            ("/parts/*/text", "/parts/text", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("ab*b", "ab", false),
            ("**", "", true),
            ("*", "anything", true),
            ("", "x", false),
        ] {
            assert_eq!(fits_path(pattern, path), fits, "{pattern} {path}");
        }
    }
}
