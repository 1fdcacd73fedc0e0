//! Why a decision is what it is, in terms of the policy: what decided, what each finding decides by itself, and what would
//! have changed that.

use super::convert;
use crate::decision::{Category, Decision, Mode, Thresholds, above, at_most};
use crate::detect::{INJECTION, PII};
use crate::pb::v1;
use crate::policy::Policy;
use crate::rules::Role;

/// What a finding decides by itself.
pub fn alone(policy: &Policy, finding: &v1::Finding) -> Decision {
    if finding.shadow || finding.suppressed {
        return Decision::Allow;
    }
    policy.thresholds_for(&Category::new(finding.category.as_str())).decide(finding.score)
}

/// Rules that a sentence names.
const NAMED_MAX: usize = 5;

/// What the policy made of all findings together, in one sentence.
pub fn summary(policy: &Policy, response: &v1::CheckMessagesResponse) -> String {
    let decision = convert::decided(response.decision());
    let unjudged = response.unjudged.iter().filter(|one| !one.failed_open).count();
    let found = response.findings.iter().map(|finding| (finding.rule_id.as_str(), alone(policy, finding)));
    sentence(policy.name(), decision, unjudged, found)
}

/// The same of what each finding decides by itself, and of how many checks could not judge and count.
pub fn sentence<'f>(
    policy: &str,
    decision: Decision,
    unjudged: usize,
    found: impl Iterator<Item = (&'f str, Decision)>,
) -> String {
    let mut why: Vec<String> = Vec::new();
    let (mut deciding, mut rest, mut is_quiet) = (Vec::new(), Decision::Allow, true);
    for (rule, decides) in found {
        is_quiet = false;
        if decision > Decision::Allow && decides == decision {
            if !deciding.contains(&rule) {
                deciding.push(rule);
            }
        } else if decides < decision {
            rest = rest.max(decides);
        }
    }
    if !deciding.is_empty() {
        let more = match deciding.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            1 => " and 1 more rule".to_owned(),
            more => format!(" and {more} more rules"),
        };
        deciding.truncate(NAMED_MAX);
        why.push(format!("decided by {}{more}", deciding.join(", ")));
    }
    if unjudged > 0 {
        why.push(format!("{unjudged} checks could not judge, which counts against the text"));
    }
    if !deciding.is_empty() && unjudged == 0 {
        why.push(format!("without that it would be {rest}"));
    }
    if why.is_empty() {
        why.push(if is_quiet { "nothing was found" } else { "no finding reaches a threshold" }.to_owned());
    }
    format!("{decision} under policy `{policy}`: {}", why.join("; "))
}

/// A finding, as far as a policy has a say about it.
#[derive(Clone, Copy, Debug)]
pub struct Cause<'f> {
    /// Its rule.
    pub rule_id: &'f str,
    /// Its category.
    pub category: &'f Category,
    /// How much it counts.
    pub score: f64,
    /// What it is held against.
    pub thresholds: Thresholds,
    /// Whether something excuses it.
    pub suppressed: bool,
    /// Whether it is on trial.
    pub shadow: bool,
    /// Whether it is so in messages of its role alone.
    pub is_of_role: bool,
    /// What excuses it in `suppressions`; empty where that is not known.
    pub fingerprint: &'f str,
}

/// Whether a finding is on trial for the role that spoke, and would count in a message of another one.
pub fn is_of_role(policy: &Policy, role: Role, plugin: &str, rule_id: &str, category: &Category) -> bool {
    let is_system = role == Role::System && plugin == INJECTION;
    is_system && policy.mode_of(plugin, rule_id, category, false) == Mode::Enforce
}

/// What would have led to another decision, in terms of a policy.
pub fn changes(policy: &Policy, role: Role, finding: &v1::Finding, category: &Category) -> Vec<String> {
    let is_of_role = || is_of_role(policy, role, finding.plugin.as_str(), finding.rule_id.as_str(), category);
    changes_of(Cause {
        rule_id: &finding.rule_id,
        category,
        score: finding.score,
        thresholds: policy.thresholds_for(category),
        suppressed: finding.suppressed,
        shadow: finding.shadow,
        is_of_role: finding.shadow && is_of_role(),
        fingerprint: &finding.fingerprint,
    })
}

/// The same of what is known of a finding.
pub fn changes_of(cause: Cause<'_>) -> Vec<String> {
    let Cause { rule_id: rule, category, score, .. } = cause;
    let would = cause.thresholds.decide(score);
    let mut changes = Vec::new();
    if cause.suppressed {
        changes.push(
            "it would count without the entry of `suppressions`, of `pii.allow_list` or of the request's `allow_list` \
             that excuses it"
                .to_owned(),
        );
        return changes;
    }
    if cause.shadow {
        changes.push(if cause.is_of_role {
            format!("{would} in a message of another role, or with `injection.system_role: enforce`")
        } else {
            format!("{would} with mode `enforce` for the rule, its category and its plugin")
        });
        return changes;
    }
    match would {
        // A threshold is at most 1.0.
        Decision::Block if score >= 1.0 => {
            changes.push("no threshold changes that: its score is the highest there is".to_owned());
        }
        Decision::Block => {
            changes.push(format!("WARN with `categories.{category}.block` above {}", above(score)));
        }
        Decision::Warn => {
            changes.push(format!("BLOCK with `categories.{category}.block` of at most {}", at_most(score)));
            changes.push(format!("ALLOW with `categories.{category}.warn` above {}", above(score)));
        }
        _ => changes.push(format!("WARN with `categories.{category}.warn` of at most {}", at_most(score))),
    }
    if would > Decision::Allow {
        changes.push(format!("no say with `rules.{rule}.mode: shadow` (or `off`)"));
        if category.is_within(PII) {
            changes.push(
                "excused by an entry of `pii.allow_list` that is the value or its mail domain".to_owned(),
            );
        }
        if !cause.fingerprint.is_empty() {
            changes.push(format!(
                "excused by an entry of `suppressions` with `fingerprint: {}`, a reason and an end",
                cause.fingerprint
            ));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_each_rule_once_and_not_too_many() {
        let rules: Vec<String> = (0..8).map(|at| format!("r{at}")).collect();
        let twice = rules.iter().chain(&rules).map(|rule| (rule.as_str(), Decision::Block));
        let told = sentence("strict", Decision::Block, 0, twice.chain([("mild", Decision::Warn)]));
        let wanted = "BLOCK under policy `strict`: decided by r0, r1, r2, r3, r4 and 3 more rules; without that it \
                      would be WARN";
        assert_eq!(told, wanted);
        let quiet = sentence("p", Decision::Allow, 0, std::iter::empty());
        assert_eq!(quiet, "ALLOW under policy `p`: nothing was found");
    }

    #[test]
    fn what_would_change_a_decision_is_no_rounded_figure() {
        let category = Category::new("c");
        let told = |score: f64| {
            let cause = Cause {
                rule_id: "r",
                category: &category,
                score,
                thresholds: Thresholds::default(),
                suppressed: false,
                shadow: false,
                is_of_role: false,
                fingerprint: "",
            };
            changes_of(cause)
        };
        let warned = told(0.478);
        assert_eq!(warned[0], "BLOCK with `categories.c.block` of at most 0.478");
        assert_eq!(warned[1], "ALLOW with `categories.c.warn` above 0.478");
        assert_eq!(told(0.781)[0], "WARN with `categories.c.block` above 0.781");
        assert_eq!(told(0.299)[0], "WARN with `categories.c.warn` of at most 0.299");
        assert_eq!(told(0.8)[0], "WARN with `categories.c.block` above 0.80");
    }
}
