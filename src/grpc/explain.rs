//! Why a decision is what it is, in terms of the policy: what decided, what each finding decides by itself, and what would
//! have changed that.

use super::convert;
use crate::decision::{Category, Decision, Mode};
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

/// What the policy made of all findings together, in one sentence.
pub fn summary(policy: &Policy, response: &v1::CheckMessagesResponse) -> String {
    let decision = convert::decided(response.decision());
    let name = policy.name();
    let unjudged = response.unjudged.iter().filter(|one| !one.failed_open).count();
    let mut why: Vec<String> = Vec::new();
    let deciding: Vec<&str> = response
        .findings
        .iter()
        .filter(|finding| decision > Decision::Allow && alone(policy, finding) == decision)
        .map(|finding| finding.rule_id.as_str())
        .collect();
    if !deciding.is_empty() {
        why.push(format!("decided by {}", deciding.join(", ")));
    }
    if unjudged > 0 {
        why.push(format!("{unjudged} checks could not judge, which counts against the text"));
    }
    let rest = response.findings.iter().map(|finding| alone(policy, finding)).filter(|one| *one < decision);
    let rest = rest.max().unwrap_or_default();
    if !deciding.is_empty() && unjudged == 0 {
        why.push(format!("without that it would be {rest}"));
    }
    if why.is_empty() {
        let quiet = response.findings.is_empty();
        why.push(if quiet { "nothing was found" } else { "no finding reaches a threshold" }.to_owned());
    }
    format!("{decision} under policy `{name}`: {}", why.join("; "))
}

/// What would have led to another decision, in terms of a policy.
pub fn changes(policy: &Policy, role: Role, finding: &v1::Finding, category: &Category) -> Vec<String> {
    let (rule, plugin) = (finding.rule_id.as_str(), finding.plugin.as_str());
    let thresholds = policy.thresholds_for(category);
    let would = thresholds.decide(finding.score);
    let mut changes = Vec::new();
    if finding.suppressed {
        changes.push(
            "it would count without the entry of `suppressions`, of `pii.allow_list` or of the request's `allow_list` \
             that excuses it"
                .to_owned(),
        );
        return changes;
    }
    if finding.shadow {
        let is_system = role == Role::System && plugin == INJECTION;
        let elsewhere = policy.mode_of(plugin, rule, category, false);
        changes.push(if is_system && elsewhere == Mode::Enforce {
            format!("{would} in a message of another role, or with `injection.system_role: enforce`")
        } else {
            format!("{would} with mode `enforce` for the rule, its category and its plugin")
        });
        return changes;
    }
    match would {
        // A threshold is at most 1.0.
        Decision::Block if finding.score >= 1.0 => {
            changes.push("no threshold changes that: its score is the highest there is".to_owned());
        }
        Decision::Block => {
            changes.push(format!("WARN with `categories.{category}.block` above {:.2}", finding.score));
        }
        Decision::Warn => {
            changes.push(format!("BLOCK with `categories.{category}.block` of at most {:.2}", finding.score));
            changes.push(format!("ALLOW with `categories.{category}.warn` above {:.2}", finding.score));
        }
        _ => changes.push(format!("WARN with `categories.{category}.warn` of at most {:.2}", finding.score)),
    }
    if would > Decision::Allow {
        changes.push(format!("no say with `rules.{rule}.mode: shadow` (or `off`)"));
        if category.is_within(PII) {
            changes.push(
                "excused by an entry of `pii.allow_list` that is the value or its mail domain".to_owned(),
            );
        }
        if !finding.fingerprint.is_empty() {
            changes.push(format!(
                "excused by an entry of `suppressions` with `fingerprint: {}`, a reason and an end",
                finding.fingerprint
            ));
        }
    }
    changes
}
