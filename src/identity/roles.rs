//! Sets of roles. There are few, so each is a constant and an identity costs nothing to copy.

use crate::policy::CallerRole::{self, Admin, Agent, Auditor, Submitter};

/// Sets without the admin role, by the bits agent 1, submitter 2, auditor 4.
const SETS: [&[CallerRole]; 8] = [
    &[],
    &[Agent],
    &[Submitter],
    &[Agent, Submitter],
    &[Auditor],
    &[Agent, Auditor],
    &[Submitter, Auditor],
    &[Agent, Submitter, Auditor],
];

/// Their names, for records.
const NAMES: [&[&str]; 8] = [
    &[],
    &["agent"],
    &["submitter"],
    &["agent", "submitter"],
    &["auditor"],
    &["agent", "auditor"],
    &["submitter", "auditor"],
    &["agent", "submitter", "auditor"],
];

const ALL: &[CallerRole] = &[Agent, Submitter, Auditor, Admin];
const ALL_NAMES: &[&str] = &["agent", "submitter", "auditor", "admin"];

/// The set that `roles` make. An admin holds every role.
pub fn roles_of(roles: &[CallerRole]) -> &'static [CallerRole] {
    if roles.contains(&Admin) { ALL } else { SETS[bits(roles)] }
}

/// Every role.
pub fn every_role() -> &'static [CallerRole] {
    ALL
}

/// Names of the roles of a set.
pub fn role_names(roles: &[CallerRole]) -> &'static [&'static str] {
    if roles.contains(&Admin) { ALL_NAMES } else { NAMES[bits(roles)] }
}

fn bits(roles: &[CallerRole]) -> usize {
    let bit = |role, bit| if roles.contains(&role) { bit } else { 0 };
    bit(Agent, 1) | bit(Submitter, 2) | bit(Auditor, 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_it_is_made_of_and_an_admin_everything() {
        for (bits, set) in SETS.into_iter().enumerate() {
            assert_eq!(roles_of(set), set);
            let names: Vec<&str> = set.iter().map(|role| role.as_str()).collect();
            assert_eq!(role_names(set), names, "{bits}");
        }
        assert_eq!(roles_of(&[Auditor, Agent, Agent]), [Agent, Auditor]);
        assert_eq!(roles_of(&[Admin]), ALL);
        let names: Vec<&str> = ALL.iter().map(|role| role.as_str()).collect();
        assert_eq!(role_names(&[Admin]), names);
    }
}
