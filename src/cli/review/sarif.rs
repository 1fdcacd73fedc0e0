//! A review as SARIF 2.1.0, the format in which code hosts and editors read findings.
//!
//! Source: "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", OASIS Standard, 27 March 2020. What one
//! host asks for beyond it (`security-severity`, at least one location for each result) is given too.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::cli::bundle_text::{severity_name, status_name};
use crate::pb::v1;

/// Where the schema is.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// Name of our fingerprints; raised when they are computed in another way.
const FINGERPRINT: &str = "portcullisFinding/v1";
/// Why a file that is not scanned does no harm.
const INERT: &str = "inert_media";

/// One finding, and the check it is of.
struct Found<'r> {
    check: &'static str,
    is_blocking: bool,
    finding: &'r v1::CheckFinding,
}

/// The review of the bundle at `path` as a SARIF log. `prefix` leads from where the log is read to the files.
pub(super) fn log(review: &v1::ReviewBundleResponse, path: &str, prefix: &str) -> Value {
    let found = found(review);
    let mut rules: BTreeMap<&str, &Found<'_>> = BTreeMap::new();
    for one in &found {
        // The gravest finding of a rule tells how grave the rule is.
        let known = rules.entry(&one.finding.rule_id).or_insert(one);
        if one.finding.severity() as i32 > known.finding.severity() as i32 {
            *known = one;
        }
    }
    let index: BTreeMap<&str, usize> = rules.keys().enumerate().map(|(at, id)| (*id, at)).collect();
    let place = Place { path, prefix };
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let results: Vec<Value> = found.iter().map(|one| result(one, &index, &place, &mut seen)).collect();
    let notes: Vec<Value> = notifications(review, &place);
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "Portcullis",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.values().map(|one| rule(one)).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "automationDetails": { "id": format!("portcullis/review/{}/", uri(path)) },
            "invocations": [{ "executionSuccessful": true, "toolExecutionNotifications": notes }],
            "results": results,
            "properties": {
                "status": status_name(review.status()),
                "decision": review.decision().as_str_name().trim_start_matches("DECISION_"),
                "bundleSha256": review.bundle_sha256,
                "policyRevision": review.policy_revision,
                "decisionId": review.decision_id,
                "submissionId": review.submission_id,
            },
        }],
    })
}

fn found(review: &v1::ReviewBundleResponse) -> Vec<Found<'_>> {
    let Some(checks) = &review.checks else { return Vec::new() };
    let mut found = Vec::new();
    for (name, check) in [
        ("archive", &checks.archive),
        ("manifest", &checks.manifest),
        ("static_security", &checks.static_security),
        ("quality", &checks.quality),
    ] {
        let Some(check) = check else { continue };
        let is_blocking = check.status() == v1::CheckStatus::Fail;
        let of = |finding| Found { check: name, is_blocking, finding };
        found.extend(check.findings.iter().map(of));
    }
    if let Some(review) = &checks.llm_review {
        let is_blocking = review.status() == v1::CheckStatus::Fail;
        let of = |finding| Found { check: "llm_review", is_blocking, finding };
        found.extend(review.findings.iter().map(of));
    }
    found
}

/// Where files are.
struct Place<'p> {
    path: &'p str,
    prefix: &'p str,
}

impl Place<'_> {
    /// The location of a file of the bundle, or of the bundle itself (`""`).
    fn location(&self, file: &str, line: u32, snippet: &str) -> Value {
        let path = match (file, self.prefix) {
            ("", "") => self.path.to_owned(),
            ("", prefix) => prefix.to_owned(),
            (file, "") => file.to_owned(),
            (file, prefix) => format!("{prefix}/{file}"),
        };
        let mut place = json!({ "artifactLocation": { "uri": uri(&path) } });
        if line > 0 {
            let mut region = json!({ "startLine": line });
            if !snippet.is_empty() {
                region["snippet"] = json!({ "text": snippet });
            }
            place["region"] = region;
        }
        json!({ "physicalLocation": place })
    }
}

fn result(
    found: &Found<'_>,
    index: &BTreeMap<&str, usize>,
    place: &Place<'_>,
    seen: &mut BTreeMap<String, usize>,
) -> Value {
    let finding = found.finding;
    let rule_id = rule_id(finding);
    // Stays the same when the file grows above it; equal lines are told apart by their order.
    let what = format!("{rule_id}\0{}\0{}", finding.file, finding.snippet.trim());
    let nth = seen.entry(what.clone()).or_default();
    *nth += 1;
    let hash = Sha256::new().chain_update(&what).chain_update([0]).chain_update(nth.to_string()).finalize();
    let hash: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let mut text = non_empty(&finding.reason, rule_id);
    if !finding.fix_hint.is_empty() {
        text = format!("{text}\nFix: {}", finding.fix_hint);
    }
    let mut result = json!({
        "ruleId": rule_id,
        "ruleIndex": index.get(finding.rule_id.as_str()).copied().unwrap_or_default(),
        "level": level(found),
        "kind": "fail",
        "message": { "text": text },
        "locations": [place.location(&finding.file, finding.line, &finding.snippet)],
        "partialFingerprints": { FINGERPRINT: hash },
        "properties": {
            "check": found.check,
            "category": finding.category,
            "severity": severity_name(finding.severity()),
        },
    });
    if finding.suppressed {
        result["suppressions"] =
            json!([{ "kind": "external", "justification": "A suppression of the policy excuses it." }]);
    }
    result
}

fn rule(found: &Found<'_>) -> Value {
    let finding = found.finding;
    let id = rule_id(finding);
    let help = non_empty(&finding.fix_hint, &finding.reason);
    // The schema wants each once.
    let mut tags = vec!["security", found.check];
    if !finding.category.is_empty() && !tags.contains(&finding.category.as_str()) {
        tags.push(&finding.category);
    }
    json!({
        "id": id,
        "shortDescription": { "text": format!("{}: {id}", non_empty(&finding.category, found.check)) },
        "fullDescription": { "text": non_empty(&finding.reason, id) },
        "help": { "text": non_empty(&help, id) },
        "defaultConfiguration": { "level": level(found) },
        "properties": {
            "tags": tags,
            "security-severity": security_severity(finding.severity()),
            "precision": "high",
        },
    })
}

fn rule_id(finding: &v1::CheckFinding) -> &str {
    // The schema wants one.
    if finding.rule_id.is_empty() { "unnamed" } else { &finding.rule_id }
}

/// What blocks is an error; what does not is none, however grave it would be elsewhere. What is on trial is told only.
fn level(found: &Found<'_>) -> &'static str {
    if found.finding.shadow {
        return "note";
    }
    match (found.finding.severity(), found.is_blocking) {
        (v1::Severity::Low, _) => "note",
        (v1::Severity::Medium, _) | (_, false) => "warning",
        (v1::Severity::High | v1::Severity::Critical | v1::Severity::Unspecified, true) => "error",
    }
}

/// A number from 0.0 to 10.0, as vulnerabilities have it.
fn security_severity(severity: v1::Severity) -> &'static str {
    match severity {
        v1::Severity::Low => "2.0",
        v1::Severity::Medium => "5.0",
        v1::Severity::High | v1::Severity::Unspecified => "8.0",
        v1::Severity::Critical => "9.5",
    }
}

/// What was not judged, and what was not scanned.
fn notifications(review: &v1::ReviewBundleResponse, place: &Place<'_>) -> Vec<Value> {
    let unjudged = review.unjudged.iter().map(|one| {
        let text = format!("{} did not run to its end ({}): {}", one.plugin, one.reason, one.detail);
        let level = if one.failed_open { "warning" } else { "error" };
        json!({ "level": level, "message": { "text": text }, "descriptor": { "id": "unjudged" } })
    });
    let is_gap = |file: &&v1::FileCoverage| file.bytes_scanned < file.bytes && file.unscanned_reason != INERT;
    let unscanned = review.coverage.iter().filter(is_gap).map(|file| {
        let left = file.bytes - file.bytes_scanned;
        let text = format!("{left} of {} bytes were not scanned: {}", file.bytes, file.unscanned_reason);
        json!({
            "level": "warning",
            "message": { "text": text },
            "descriptor": { "id": "coverage.unscanned" },
            "locations": [place.location(&file.path, 0, "")],
        })
    });
    unjudged.chain(unscanned).collect()
}

fn non_empty(text: &str, otherwise: &str) -> String {
    if text.trim().is_empty() { otherwise.to_owned() } else { text.to_owned() }
}

/// A relative path as a URI reference (RFC 3986): what is not unreserved is percent-encoded, and the first name cannot
/// be taken for a scheme.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(byte.into())
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    if uri.is_empty() { ".".to_owned() } else { uri }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: &str, file: &str, line: u32, severity: v1::Severity) -> v1::CheckFinding {
        v1::CheckFinding {
            rule_id: rule.to_owned(),
            file: file.to_owned(),
            line,
            category: "code_exec".to_owned(),
            severity: severity.into(),
            reason: "It runs text as code.".to_owned(),
            snippet: "eval(x)".to_owned(),
            fix_hint: "Call the function by its name.".to_owned(),
            ..Default::default()
        }
    }

    fn review() -> v1::ReviewBundleResponse {
        let fail = v1::CheckResult {
            status: v1::CheckStatus::Fail.into(),
            findings: vec![
                finding("code.eval", "a b/r\u{fc}n.py", 3, v1::Severity::Critical),
                finding("code.eval", "a b/r\u{fc}n.py", 9, v1::Severity::Medium),
                finding("archive.x", "", 0, v1::Severity::High),
            ],
        };
        let warn = v1::CheckResult {
            status: v1::CheckStatus::Warn.into(),
            findings: vec![finding("quality.short", "SKILL.md", 0, v1::Severity::High)],
        };
        v1::ReviewBundleResponse {
            checks: Some(v1::BundleChecks {
                static_security: Some(fail),
                quality: Some(warn),
                ..Default::default()
            }),
            coverage: vec![v1::FileCoverage {
                path: "tool.bin".to_owned(),
                bytes: 10,
                unscanned_reason: "binary".to_owned(),
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    #[test]
    fn each_finding_is_a_result_of_a_rule_at_a_place() {
        let log = log(&review(), "skills/notes", "skills/notes");
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
        let ids: Vec<_> = rules.iter().map(|rule| rule["id"].as_str().expect("an id")).collect();
        assert_eq!(ids, ["archive.x", "code.eval", "quality.short"]);
        assert_eq!(rules[1]["properties"]["security-severity"], "9.5");
        assert_eq!(rules[1]["properties"]["tags"], json!(["security", "static_security", "code_exec"]));
        let results = run["results"].as_array().expect("results");
        for result in results {
            let index = result["ruleIndex"].as_u64().expect("an index") as usize;
            assert_eq!(result["ruleId"], rules[index]["id"]);
        }
        let levels: Vec<_> =
            results.iter().map(|result| result["level"].as_str().expect("a level")).collect();
        assert_eq!(levels, ["error", "warning", "error", "warning"]);
        let uris: Vec<_> = results
            .iter()
            .map(|result| &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
            .collect();
        assert_eq!(uris[0], "skills/notes/a%20b/r%C3%BCn.py");
        assert_eq!(uris[2], "skills/notes");
        assert_eq!(results[0]["locations"][0]["physicalLocation"]["region"]["startLine"], 3);
        let print = |at: usize| results[at]["partialFingerprints"][FINGERPRINT].clone();
        assert_ne!(print(0), print(1), "equal lines are told apart");
        let note = &run["invocations"][0]["toolExecutionNotifications"][0];
        assert_eq!(note["descriptor"]["id"], "coverage.unscanned");
    }

    #[test]
    fn a_fingerprint_does_not_depend_on_the_line() {
        let mut moved = review();
        let checks = moved.checks.as_mut().and_then(|checks| checks.static_security.as_mut());
        for finding in &mut checks.expect("set").findings {
            finding.line += 40;
        }
        let prints = |review: &v1::ReviewBundleResponse| {
            let log = log(review, "x.zip", "");
            let results = log["runs"][0]["results"].as_array().expect("results").clone();
            results.into_iter().map(|result| result["partialFingerprints"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(prints(&review()), prints(&moved));
    }

    #[test]
    fn paths_become_uri_references() {
        for (path, wanted) in [
            ("a/b.py", "a/b.py"),
            ("a b#c?d%e", "a%20b%23c%3Fd%25e"),
            ("javascript:x", "javascript%3Ax"),
            ("outer.zip!/inner", "outer.zip%21/inner"),
            ("", "."),
        ] {
            assert_eq!(uri(path), wanted);
        }
    }
}
