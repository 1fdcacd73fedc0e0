//! Labelled bundles and archives: files beside their index.
//!
//! A bundle counts as found, or falsely flagged, when the inline checks alone block it; one that is held is not blocked. An
//! archive counts when it is refused by the archive check. Grey bundles and archives that may be taken either way grade
//! nothing.

use serde_json::{Map, Value, json};

use super::record::{Fields, Kind, Record, RecordError};
use crate::bundles::Inspection;
use crate::decision::{BundleChecks, BundleKind, CheckResult, CheckStatus};
use crate::pb::v1;
use crate::rules::Role;

/// A file to be uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Its name, beside the index.
    pub name: String,
    /// What it is; an archive without a kind is checked as a skill.
    pub kind: BundleKind,
}

/// What the checks said, for whoever wants to compute the figures again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reviewed {
    /// Check name -> its status and the rules that found something.
    pub checks: Map<String, Value>,
    /// Whether the archive was accepted.
    pub is_accepted: bool,
}

impl Reviewed {
    /// The answer of an inspection.
    pub fn of(inspection: &Inspection) -> Self {
        let BundleChecks { archive, manifest, static_security, quality, .. } = &inspection.checks;
        let all = [
            ("archive", archive),
            ("manifest", manifest),
            ("static_security", static_security),
            ("quality", quality),
        ];
        let mut checks: Map<String, Value> =
            all.iter().map(|(name, result)| ((*name).to_owned(), check(result))).collect();
        checks.insert("held_for_coverage".to_owned(), inspection.is_held_for_coverage.into());
        Self { checks, is_accepted: archive.status != CheckStatus::Fail }
    }
}

impl Reviewed {
    /// The answer of a server.
    pub fn of_wire(review: &v1::ReviewBundleResponse) -> Self {
        let none = v1::BundleChecks::default();
        let told = review.checks.as_ref().unwrap_or(&none);
        let all = [
            ("archive", &told.archive),
            ("manifest", &told.manifest),
            ("static_security", &told.static_security),
            ("quality", &told.quality),
        ];
        let mut checks: Map<String, Value> =
            all.iter().map(|(name, result)| ((*name).to_owned(), check_of_wire(result.as_ref()))).collect();
        let is_held = review.hold_reason() == v1::HoldReason::Coverage;
        checks.insert("held_for_coverage".to_owned(), is_held.into());
        // A check that was not told has accepted nothing.
        let archive = told.archive.as_ref().map(v1::CheckResult::status);
        let is_accepted = matches!(archive, Some(v1::CheckStatus::Pass | v1::CheckStatus::Warn));
        Self { checks, is_accepted }
    }
}

fn check_of_wire(result: Option<&v1::CheckResult>) -> Value {
    let none = v1::CheckResult::default();
    let result = result.unwrap_or(&none);
    let findings = result.findings.iter().map(|finding| {
        json!({
            "rule_id": finding.rule_id,
            "category": finding.category,
            "severity": finding.severity().as_str_name().trim_start_matches("SEVERITY_"),
            "file": finding.file,
            "line": finding.line,
        })
    });
    let status = result.status().as_str_name().trim_start_matches("CHECK_STATUS_");
    json!({ "status": status, "findings": findings.collect::<Vec<_>>() })
}

fn check(result: &CheckResult) -> Value {
    let findings = result.findings.iter().map(|finding| {
        json!({
            "rule_id": finding.rule_id,
            "category": finding.category,
            "severity": finding.severity.as_str().to_ascii_uppercase(),
            "file": finding.file,
            "line": finding.line,
        })
    });
    json!({ "status": result.status.as_str().to_ascii_uppercase(), "findings": findings.collect::<Vec<_>>() })
}

/// A record that names a file: a bundle with a label, or an archive with what is expected of it.
pub(super) fn upload_record(fields: Fields<'_>) -> Result<Record, RecordError> {
    let name = fields.text("bundle")?;
    if name.is_empty() || name.contains(['/', '\\']) || name == ".." {
        return Err(RecordError::at("bundle", "must be the name of a file beside the index"));
    }
    if fields.get("expect").is_some() {
        let expect = fields.one_of("expect", &["accept", "reject", "either"])?;
        let family = fields.optional_text("family")?.unwrap_or_default();
        return record(fields, Kind::Archives, name, BundleKind::Skill, expect, expect == "reject", family);
    }
    let label = fields.one_of("label", &["benign", "malicious", "grey"])?;
    let kind = fields.one_of("type", &["skill", "plugin", "agent"])?;
    let kind = BundleKind::parse(kind).unwrap_or(BundleKind::Skill);
    record(fields, Kind::Bundles, name, kind, label, label == "malicious", fields.text("category")?)
}

fn record(
    fields: Fields<'_>,
    kind: Kind,
    name: &str,
    bundle: BundleKind,
    label: &str,
    is_positive: bool,
    tier: &str,
) -> Result<Record, RecordError> {
    Ok(Record {
        id: name.to_owned(),
        label: label.to_owned(),
        is_positive,
        is_graded: !matches!(label, "grey" | "either"),
        kind,
        tier: tier.to_owned(),
        category: String::new(),
        source: fields.optional_text("source")?.unwrap_or_default().to_owned(),
        group: String::new(),
        disguise: None,
        role: Role::User,
        text: String::new(),
        call: None,
        transcript: None,
        upload: Some(Upload { name: name.to_owned(), kind: bundle }),
        spans: Vec::new(),
        has_exact_spans: false,
        is_core: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::record::parse;

    #[test]
    fn labels_tell_what_counts() {
        for (line, kind, is_positive, is_graded, bundle) in [
            (
                r#"{"bundle":"a.zip","type":"agent","label":"malicious","category":"c"}"#,
                Kind::Bundles,
                true,
                true,
                BundleKind::Agent,
            ),
            (
                r#"{"bundle":"a.zip","type":"plugin","label":"grey","category":"c"}"#,
                Kind::Bundles,
                false,
                false,
                BundleKind::Plugin,
            ),
            (r#"{"bundle":"a.zip","expect":"reject"}"#, Kind::Archives, true, true, BundleKind::Skill),
            (r#"{"bundle":"a.zip","expect":"accept"}"#, Kind::Archives, false, true, BundleKind::Skill),
            (r#"{"bundle":"a.zip","expect":"either"}"#, Kind::Archives, false, false, BundleKind::Skill),
        ] {
            let Ok(record) = parse(line) else { panic!("{line}") };
            let upload = record.upload.expect("an upload");
            assert_eq!(
                (record.kind, record.is_positive, record.is_graded, upload.kind, record.id.as_str()),
                (kind, is_positive, is_graded, bundle, "a.zip"),
                "{line}"
            );
        }
    }

    #[test]
    fn a_broken_record_names_its_field() {
        for (line, field) in [
            (r#"{"bundle":1,"expect":"accept"}"#, "bundle"),
            (r#"{"bundle":"../a","expect":"accept"}"#, "bundle"),
            (r#"{"bundle":"a","expect":"maybe"}"#, "expect"),
            (r#"{"bundle":"a","type":"skill","category":"c"}"#, "label"),
            (r#"{"bundle":"a","label":"benign","category":"c"}"#, "type"),
            (r#"{"bundle":"a","label":"benign","type":"hook","category":"c"}"#, "type"),
            (r#"{"bundle":"a","label":"benign","type":"skill"}"#, "category"),
        ] {
            assert_eq!(parse(line).expect_err("a broken line").field, field, "{line}");
        }
    }
}
