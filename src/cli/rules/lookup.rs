//! One rule by its id, with the text it is written in.

use crate::cli::Failure;
use crate::cli::context::{Context, snapshot};
use crate::config::Settings;
use crate::decision::Mode;
use crate::grpc::convert;
use crate::pb::v1;
use crate::policy::{Policy, Snapshot};
use crate::rules::{CompiledRule, builtin_sources, load_folder};

/// The rules and policies of this installation.
pub(super) struct Rules {
    settings: Settings,
    /// Rules and policies in force.
    pub(super) snapshot: Snapshot,
}

impl Rules {
    pub(super) fn load(context: &Context) -> Result<Self, Failure> {
        let settings = context.settings()?;
        let snapshot = snapshot(&settings)?;
        Ok(Self { settings, snapshot })
    }

    /// The policy under which rules are described.
    pub(super) fn policy(&self) -> &Policy {
        self.snapshot.policies().default_policy()
    }

    /// The rule of that id.
    pub(super) fn find(&self, id: &str) -> Result<&CompiledRule, Failure> {
        let scanner = self.snapshot.scanner();
        if let Some(rule) = scanner.rules().rule(id) {
            return Ok(rule);
        }
        if scanner.coded_rule_ids().any(|coded| coded == id) {
            return Err(Failure::data(format_args!("`{id}` is a detector in code, not a rule in a file")));
        }
        let near = scanner
            .rules()
            .rules()
            .iter()
            .map(|rule| (strsim::normalized_damerau_levenshtein(id, &rule.info.id), &rule.info.id))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .filter(|(similarity, _)| *similarity >= 0.5);
        let hint = near.map_or_else(
            || "`portcullis rules list` lists them".to_owned(),
            |(_, near)| format!("did you mean `{near}`?"),
        );
        Err(Failure::data(format_args!("no rule `{id}`; {hint}")))
    }

    /// The lines of the rule's file that define it; `None` when the file has changed since it was loaded.
    pub(super) fn text_of(&self, rule: &CompiledRule) -> Option<String> {
        let extra = self.settings.rules.paths.iter().filter_map(|path| load_folder(path).ok()).flatten();
        let file = builtin_sources().into_iter().chain(extra).find(|file| *file.name == *rule.info.file)?;
        let mut lines = file.text.lines().skip(rule.info.line.checked_sub(1)?);
        let first = lines.next()?;
        let rest = lines.take_while(|line| !line.starts_with('['));
        let text: Vec<&str> = std::iter::once(first).chain(rest).collect();
        Some(text.join("\n").trim_end().to_owned())
    }
}

/// A rule as the contract tells it.
pub(super) fn as_message(rule: &CompiledRule, policy: &Policy) -> v1::Rule {
    let info = &rule.info;
    let mode = match policy.mode_of(&info.plugin, &info.id, &info.category, false) {
        Mode::Enforce => v1::Mode::Enforce,
        Mode::Shadow => v1::Mode::Shadow,
        Mode::Off => v1::Mode::Off,
    };
    let is_builtin = builtin_sources().iter().any(|file| *file.name == *info.file);
    v1::Rule {
        id: info.id.to_string(),
        plugin: info.plugin.to_string(),
        category: info.category.as_str().to_owned(),
        severity: convert::severity(info.severity).into(),
        confidence: info.confidence,
        mode: mode.into(),
        description: info.description.to_string(),
        recommendation: info.recommendation.to_string(),
        references: info.references.clone(),
        source: if is_builtin { "builtin".to_owned() } else { info.file.to_string() },
    }
}
