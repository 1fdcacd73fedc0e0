//! What surrounds every page: who is logged in, where one can go, what just happened.

use super::visitor::Visitor;
use super::{decisions, incidents, playground, policy, rules, submissions};
use crate::policy::CallerRole::{self, Agent, Auditor, Submitter};

/// See the module.
pub(super) struct Shell {
    /// Who is logged in.
    pub(super) name: String,
    /// Its roles, as words.
    pub(super) roles: String,
    /// Its tenant; empty is the default one.
    pub(super) tenant: String,
    /// What every form must bring.
    pub(super) csrf: String,
    /// Where it can go.
    pub(super) links: Vec<Link>,
    /// What was done.
    pub(super) notice: Option<&'static str>,
    /// What went wrong.
    pub(super) error: Option<String>,
}

/// One place of the navigation.
pub(super) struct Link {
    /// Where it leads.
    pub(super) href: &'static str,
    /// What it is called.
    pub(super) label: &'static str,
    /// Whether the page belongs to it.
    pub(super) is_current: bool,
}

/// Every area, and the roles of which one is needed.
const AREAS: [(&str, &str, &[CallerRole]); 6] = [
    (submissions::PLACE, "Submissions", &[Submitter, Auditor]),
    (decisions::PLACE, "Decisions", &[Auditor]),
    (playground::PLACE, "Playground", &[Agent, Submitter]),
    (incidents::PLACE, "Incidents", &[Agent, Auditor]),
    (policy::PLACE, "Policy", &[Agent, Submitter, Auditor]),
    (rules::PLACE, "Rules", &[Agent, Submitter, Auditor]),
];

/// What a redirect may say was done. A fixed list: an address cannot put words into a page.
const NOTICES: [(&str, &str); 7] = [
    ("overridden", "Published against its verdict."),
    ("rescanned", "All checks ran again."),
    ("retried", "It is reviewed again."),
    ("deleted", "Deleted. Its tombstone stays."),
    ("archived", "Archived: nobody new finds it."),
    ("restored", "Restored."),
    ("marked", "Saved."),
];

impl Visitor {
    /// What surrounds a page of `area`.
    pub(super) fn shell(&self, area: &str) -> Shell {
        let identity = &self.identity;
        let may = |roles: &[CallerRole]| roles.iter().any(|role| identity.has(*role));
        let links = AREAS.iter().filter(|(_, _, roles)| may(roles)).map(|(href, label, _)| Link {
            href,
            label,
            is_current: *href == area,
        });
        let told = self.query.one("notice");
        Shell {
            name: identity.name().to_owned(),
            roles: identity.role_names().join(", "),
            tenant: identity.tenant().to_owned(),
            csrf: self.session.csrf.clone(),
            links: links.collect(),
            notice: NOTICES.iter().find(|(word, _)| *word == told).map(|(_, notice)| *notice),
            error: None,
        }
    }
}
