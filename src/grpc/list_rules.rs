//! `ListRules`: the rules in force, page by page: detectors of text, what the guards look for, and what is looked for in code.

use super::{RequestError, convert};
use crate::bundles::rules::{BUNDLES, BundleRules};
use crate::bundles::{PreparedBundles, coded_rules};
use crate::decision::{Category, Mode, Severity};
use crate::monitor::PreparedMonitor;
use crate::pb::v1;
use crate::policy::Snapshot;
use crate::tools::{COMMAND_SAFETY, PATH_AUDIT, PreparedTools};

/// Rules on one page unless asked otherwise.
const PAGE_SIZE: usize = 100;
/// Most rules on one page.
const PAGE_SIZE_MAX: usize = 1_000;

/// A rule of any kind.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'s> {
    /// Stable id.
    pub id: &'s str,
    /// Plugin it belongs to.
    pub plugin: &'s str,
    /// Category of its findings.
    pub category: &'s Category,
    /// Severity of its findings.
    pub severity: Severity,
    /// How certain a finding is, above 0.0 up to 1.0.
    pub confidence: f64,
    /// One sentence for a person.
    pub description: &'s str,
    /// What to do.
    pub recommendation: &'s str,
    /// Sources.
    pub references: &'s [String],
    /// What it must find.
    pub examples: &'s [String],
    /// What it must not find.
    pub negative_examples: &'s [String],
    /// What it ought to find and does not yet.
    pub known_misses: &'s [String],
    /// File it comes from; empty for what is looked for in code.
    pub file: &'s str,
    /// 1-based line in that file; 0 for what is looked for in code.
    pub line: usize,
}

/// One page of rules.
///
/// # Errors
/// An unknown plugin, or a token that does not fit.
pub(super) fn list(
    snapshot: &Snapshot,
    request: &v1::ListRulesRequest,
) -> Result<v1::ListRulesResponse, RequestError> {
    let mut wanted = with_coded(snapshot);
    if !request.plugin.is_empty() {
        let mut known: Vec<&str> = snapshot.scanner().rules().plugins().iter().map(|p| &**p).collect();
        known.extend([COMMAND_SAFETY, PATH_AUDIT, BUNDLES]);
        if !known.contains(&request.plugin.as_str()) {
            let message = format!("unknown plugin; known: {}", known.join(", "));
            return Err(RequestError::field("plugin", message));
        }
        wanted.retain(|rule| *rule.plugin == *request.plugin);
    }
    wanted.sort_by_key(|rule| rule.id);
    // The token is the last id of the page before: a reload in between can neither repeat nor skip a rule that stays.
    if !request.page_token.is_empty() {
        if !wanted.iter().any(|rule| *rule.id == *request.page_token) {
            return Err(RequestError::field("page_token", "does not fit this list; start again without it"));
        }
        wanted.retain(|rule| *rule.id > *request.page_token);
    }
    let size = match request.page_size as usize {
        0 => PAGE_SIZE,
        size => size.min(PAGE_SIZE_MAX),
    };
    let next_page_token = if wanted.len() > size { wanted[size - 1].id.to_owned() } else { String::new() };
    wanted.truncate(size);
    Ok(v1::ListRulesResponse {
        rules: wanted.into_iter().map(|rule| rule.told(snapshot)).collect(),
        next_page_token,
        policy_revision: snapshot.revision().to_string(),
    })
}

/// Every rule in force with everything that is looked for in code, in no order.
pub fn with_coded(snapshot: &Snapshot) -> Vec<Listed<'_>> {
    let mut all = all_rules(snapshot);
    all.extend(snapshot.scanner().coded().map(|info| Listed {
        id: &info.id,
        plugin: &info.plugin,
        category: &info.category,
        severity: info.severity,
        confidence: info.confidence,
        description: &info.description,
        recommendation: &info.recommendation,
        references: &info.references,
        examples: &[],
        negative_examples: &[],
        known_misses: &[],
        file: "",
        line: 0,
    }));
    all.extend(coded_rules().iter().map(|rule| Listed {
        id: rule.id,
        plugin: BUNDLES,
        category: &rule.category,
        severity: rule.severity,
        confidence: 1.0,
        description: rule.description,
        recommendation: rule.fix,
        references: &[],
        examples: &rule.examples,
        negative_examples: &[],
        known_misses: &[],
        file: "",
        line: 0,
    }));
    all
}

/// Every rule of a file that is in force, in no order.
pub fn all_rules(snapshot: &Snapshot) -> Vec<Listed<'_>> {
    let streams = snapshot.prepared::<PreparedMonitor>().map(|prepared| prepared.rules().rules());
    let detectors = snapshot.scanner().rules().rules().iter().chain(streams.unwrap_or_default());
    let detectors = detectors.map(|rule| Listed {
        id: &rule.info.id,
        plugin: &rule.info.plugin,
        category: &rule.info.category,
        severity: rule.info.severity,
        confidence: rule.info.confidence,
        description: &rule.info.description,
        recommendation: &rule.info.recommendation,
        references: &rule.info.references,
        examples: &rule.def.examples,
        negative_examples: &rule.def.negative_examples,
        known_misses: &rule.def.known_misses,
        file: &rule.info.file,
        line: rule.info.line,
    });
    let mut all: Vec<_> = detectors.collect();
    let bundles = snapshot.prepared::<PreparedBundles>();
    let bundles = bundles.map_or_else(|| BundleRules::builtin(), PreparedBundles::rules);
    all.extend(bundles.rules().iter().map(|rule| Listed {
        id: &rule.id,
        plugin: BUNDLES,
        category: &rule.category,
        severity: rule.severity,
        confidence: 1.0,
        description: &rule.description,
        recommendation: &rule.fix,
        references: &rule.references,
        examples: &rule.examples.texts,
        negative_examples: &rule.negative_examples.texts,
        known_misses: &rule.known_misses.texts,
        file: &rule.file,
        line: rule.line,
    }));
    let Some(prepared) = snapshot.prepared::<PreparedTools>() else { return all };
    all.extend(prepared.commands().rules().iter().map(|rule| Listed {
        id: &rule.id,
        plugin: COMMAND_SAFETY,
        category: &rule.category,
        severity: rule.severity,
        confidence: rule.confidence,
        description: &rule.description,
        recommendation: &rule.recommendation,
        references: &rule.references,
        examples: &rule.examples,
        negative_examples: &rule.negative_examples,
        known_misses: &rule.known_misses,
        file: &rule.file,
        line: rule.line,
    }));
    all.extend(prepared.paths().rules().iter().map(|rule| Listed {
        id: &rule.id,
        plugin: PATH_AUDIT,
        category: &rule.category,
        severity: rule.severity,
        confidence: 1.0,
        description: &rule.description,
        recommendation: &rule.recommendation,
        references: &rule.references,
        examples: &rule.examples,
        negative_examples: &rule.negative_examples,
        known_misses: &rule.known_misses,
        file: &rule.file,
        line: rule.line,
    }));
    all
}

impl Listed<'_> {
    /// Whether it is looked for in code rather than by a rule of a file.
    pub fn is_in_code(&self) -> bool {
        self.file.is_empty()
    }

    /// What it may do under the default policy. What an archive is refused for is no matter of any policy.
    fn mode(&self, snapshot: &Snapshot) -> Mode {
        let policy = snapshot.policies().default_policy();
        match self.plugin == BUNDLES && self.category.is_within("archive") && self.is_in_code() {
            true => Mode::Enforce,
            false => policy.mode_of(self.plugin, self.id, self.category, false),
        }
    }

    /// The rule as the contract tells it, with its mode under the default policy.
    pub fn told(&self, snapshot: &Snapshot) -> v1::Rule {
        let is_builtin = self.is_in_code() || self.file.starts_with("rules/");
        v1::Rule {
            id: self.id.to_owned(),
            plugin: self.plugin.to_owned(),
            category: self.category.as_str().to_owned(),
            severity: convert::severity(self.severity).into(),
            confidence: self.confidence,
            mode: mode(self.mode(snapshot)).into(),
            description: self.description.to_owned(),
            recommendation: self.recommendation.to_owned(),
            references: self.references.to_vec(),
            source: if is_builtin { "builtin".to_owned() } else { self.file.to_owned() },
        }
    }
}

fn mode(mode: Mode) -> v1::Mode {
    match mode {
        Mode::Enforce => v1::Mode::Enforce,
        Mode::Shadow => v1::Mode::Shadow,
        Mode::Off => v1::Mode::Off,
    }
}
