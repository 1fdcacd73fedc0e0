//! Writes a compiled policy as a policy file.
//!
//! Invariant: the output names every value, so it does not matter what the default policy says where it is read again.

use std::fmt::Write;
use std::time::Duration;

use super::Policy;
use super::audit::AuditFilter;
use super::schema::{self, ENFORCED, EVERYBODY};
use super::snapshot::PluginSettings;
use super::streams::StreamSettings;
use super::suppression::Suppression;
use crate::decision::{FailMode, Mode, Severity, Thresholds};

/// The policy as YAML.
pub(super) fn write(policy: &Policy) -> String {
    let mut out = String::new();
    let callers = policy.allowed_callers.as_ref().map(|roles| roles.iter().map(|role| role.as_str()));
    let required = policy.required_plugins.as_ref().map(|plugins| plugins.iter().map(|plugin| quote(plugin)));
    line(&mut out, 0, "name", &quote(&policy.name));
    line(&mut out, 0, "description", &quote(&policy.description));
    line(&mut out, 0, "allowed_callers", &callers.map_or(EVERYBODY.to_owned(), flow_list));
    line(&mut out, 0, "required_plugins", &required.map_or(ENFORCED.to_owned(), flow_list));
    section(&mut out, "thresholds", Some(()), |out, ()| thresholds(out, 1, policy.thresholds));
    section(&mut out, "categories", &policy.categories, |out, (name, settings)| {
        line(out, 1, &quote(name), "");
        line(out, 2, "mode", mode(settings.mode));
        thresholds(out, 2, settings.thresholds);
    });
    section(&mut out, "rules", &policy.rules, |out, (id, rule_mode)| {
        line(out, 1, &quote(id), &format!("{{ mode: {} }}", mode(*rule_mode)));
    });
    section(&mut out, "plugins", &policy.plugins, |out, (id, settings)| plugin(out, id, settings));
    section(&mut out, "injection", Some(policy.system_role), |out, role| {
        line(out, 1, "system_role", mode(role))
    });
    let allowed = policy.allow_list.entries();
    section(&mut out, "pii", Some(allowed), |out, allowed| {
        if !allowed.is_empty() {
            line(out, 1, "allow_list", &flow_list(allowed.iter().map(|value| quote(value))));
        }
        // Quoted: a bare NO is a boolean to many readers of YAML.
        line(out, 1, "countries", &flow_list(policy.countries.codes().map(quote)));
        line(out, 1, "caller_allow_list", &policy.caller_allow_list.to_string());
        line(out, 1, "caller_countries", &policy.caller_countries.to_string());
    });
    line(&mut out, 0, "reveal", &policy.reveal.to_string());
    section(&mut out, "audit", Some(&policy.audit), |out, audit| {
        line(out, 1, "sample_allow", &audit.sample_allow.to_string());
        if !audit.filters.is_empty() {
            line(out, 1, "filters", "");
        }
        audit.filters.iter().for_each(|filter| audit_filter(out, filter));
    });
    section(&mut out, "suppressions", &policy.suppressions, suppression);
    super::yaml_interceptors::write(&mut out, policy);
    streams(&mut out, &policy.streams);
    out
}

/// `key: value`, or `key:` when there is no value.
pub(super) fn line(out: &mut String, level: usize, key: &str, value: &str) {
    let space = if value.is_empty() { "" } else { " " };
    let _ = writeln!(out, "{:indent$}{key}:{space}{value}", "", indent = 2 * level); // a String takes every write
}

/// A heading and its items; nothing at all when there are none.
pub(super) fn section<T>(
    out: &mut String,
    key: &str,
    items: impl IntoIterator<Item = T>,
    write_item: impl Fn(&mut String, T),
) {
    let mut items = items.into_iter().peekable();
    if items.peek().is_some() {
        line(out, 0, key, "");
        items.for_each(|item| write_item(out, item));
    }
}

fn thresholds(out: &mut String, level: usize, thresholds: Thresholds) {
    line(out, level, "warn", &thresholds.warn.to_string());
    line(out, level, "block", &thresholds.block.to_string());
}

fn plugin(out: &mut String, id: &str, settings: &PluginSettings) {
    let (input, output) = (fail(settings.fail.input), fail(settings.fail.output));
    line(out, 1, &quote(id), "");
    line(out, 2, "mode", mode(settings.mode));
    line(out, 2, "fail", &format!("{{ input: {input}, output: {output} }}"));
    line(out, 2, "timeout", &duration(settings.timeout));
}

fn suppression(out: &mut String, suppression: &Suppression) {
    // The reason stands first because it is always there: it carries the dash.
    let _ = writeln!(out, "  - reason: {}", quote(&suppression.reason)); // a String takes every write
    let scopes = [
        ("rule", &suppression.rule),
        ("category", &suppression.category),
        ("fingerprint", &suppression.fingerprint),
        ("path", &suppression.path),
        ("tenant", &suppression.tenant),
    ];
    for (key, scope) in scopes {
        if let Some(scope) = scope {
            line(out, 2, key, &quote(scope));
        }
    }
    line(out, 2, "expires", &quote(&suppression.expires.to_string()));
}

fn audit_filter(out: &mut String, filter: &AuditFilter) {
    // The share stands first because it is always there: it carries the dash.
    let _ = writeln!(out, "    - sample_allow: {}", filter.sample_allow); // a String takes every write
    for (key, names) in [("rpcs", &filter.rpcs), ("tools", &filter.tools), ("agents", &filter.agents)] {
        if !names.is_empty() {
            line(out, 3, key, &flow_list(names.iter().map(|name| quote(name))));
        }
    }
}

fn streams(out: &mut String, settings: &StreamSettings) {
    line(out, 0, "streams", "");
    if !settings.rules.is_empty() {
        line(out, 1, "rules", "");
        for (id, rule_mode) in &settings.rules {
            line(out, 2, &quote(id), mode(*rule_mode));
        }
    }
    line(out, 1, "families", &flow_list(settings.families.iter().map(|family| quote(family))));
    if !settings.known_safe.is_empty() {
        line(out, 1, "known_safe", "");
    }
    for known in &settings.known_safe {
        let _ = writeln!(out, "    - pattern: {}", quote(&known.pattern)); // a String takes every write
        for (key, scope) in [("rule", &known.rule), ("category", &known.category)] {
            if let Some(scope) = scope {
                line(out, 3, key, &quote(scope));
            }
        }
        if !known.labels.is_empty() {
            let labels =
                known.labels.iter().map(|(name, value)| format!("{}: {}", quote(name), quote(value)));
            line(out, 3, "labels", &format!("{{ {} }}", labels.collect::<Vec<_>>().join(", ")));
        }
        line(out, 3, "reason", &quote(&known.reason));
    }
    line(out, 1, "cooldown", &duration(settings.cooldown));
    line(out, 1, "kill_from", &settings.kill_from.to_string());
    let by_severity = |word: &dyn Fn(usize) -> &'static str| {
        let words =
            Severity::ALL.map(|severity| format!("{}: {}", severity.as_str(), word(severity as usize)));
        format!("{{ {} }}", words.join(", "))
    };
    let verdicts = by_severity(&|nth| schema::word_of(schema::VERDICTS, settings.verdicts[nth]));
    line(out, 1, "verdicts", &verdicts);
    line(out, 1, "fail", &by_severity(&|nth| fail(settings.fail[nth])));
}

pub(super) fn flow_list(items: impl Iterator<Item = impl AsRef<str>>) -> String {
    let items: Vec<_> = items.map(|item| item.as_ref().to_owned()).collect();
    format!("[{}]", items.join(", "))
}

pub(super) fn mode(mode: Mode) -> &'static str {
    schema::word_of(schema::MODES, mode)
}

pub(super) fn fail(fail: FailMode) -> &'static str {
    schema::word_of(schema::FAIL_MODES, fail)
}

/// The largest unit that leaves nothing over.
pub(super) fn duration(duration: Duration) -> String {
    match duration.as_millis() {
        ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        ms if ms % 1_000 == 0 => format!("{}s", ms / 1_000),
        ms => format!("{ms}ms"),
    }
}

/// A double-quoted scalar. Everything that YAML could read as more than itself is escaped.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        let _ = match character {
            '"' | '\\' => write!(out, "\\{character}"),
            ' '..='~' => write!(out, "{character}"),
            other if other.is_alphanumeric() => write!(out, "{other}"),
            other => write!(out, "\\U{:08X}", u32::from(other)),
        };
    }
    out.push('"');
    out
}
