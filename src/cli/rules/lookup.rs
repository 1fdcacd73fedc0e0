//! One rule by its id, with the text it is written in.

use super::guards;
use crate::cli::Failure;
use crate::cli::context::{Context, snapshot};
use crate::config::Settings;
use crate::grpc::list_rules::{Listed, all_rules};
use crate::policy::{Policy, Snapshot};
use crate::rules::{CompiledRule, OTHER_FOLDERS, RuleSource, builtin_sources, load_folder};

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

    /// The rule of that id, of whatever kind.
    pub(super) fn find(&self, id: &str) -> Result<Listed<'_>, Failure> {
        let all = all_rules(&self.snapshot);
        if let Some(rule) = all.iter().find(|rule| rule.id == id) {
            return Ok(*rule);
        }
        if self.snapshot.scanner().coded_rule_ids().any(|coded| coded == id) {
            return Err(Failure::data(format_args!("`{id}` is a detector in code, not a rule in a file")));
        }
        let near = all
            .iter()
            .map(|rule| (strsim::normalized_damerau_levenshtein(id, rule.id), rule.id))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .filter(|(similarity, _)| *similarity >= 0.5);
        let hint = near.map_or_else(
            || "`portcullis rules list` lists them".to_owned(),
            |(_, near)| format!("did you mean `{near}`?"),
        );
        Err(Failure::data(format_args!("no rule `{id}`; {hint}")))
    }

    /// The rule as a detector of text; `None` when it is of another kind.
    pub(super) fn detector(&self, rule: &Listed<'_>) -> Option<&CompiledRule> {
        self.snapshot.scanner().rules().rule(rule.id)
    }

    /// The lines of the rule's file that define it; `None` when the file has changed since it was loaded.
    pub(super) fn text_of(&self, rule: &Listed<'_>) -> Option<String> {
        let file = self.files().find(|file| *file.name == *rule.file)?;
        let mut lines = file.text.lines().skip(rule.line.checked_sub(1)?);
        let first = lines.next()?;
        // A table of the rule's own, such as `[rule.text]`, is part of it.
        let is_own = |line: &str| !line.starts_with('[') || line.starts_with("[rule.");
        let rest = lines.take_while(|line| is_own(line));
        let text: Vec<&str> = std::iter::once(first).chain(rest).collect();
        Some(text.join("\n").trim_end().to_owned())
    }

    /// Every rule file of this installation, of every kind.
    fn files(&self) -> impl Iterator<Item = RuleSource> {
        let folders = self.settings.rules.paths.iter().flat_map(|path| {
            std::iter::once(path.clone()).chain(OTHER_FOLDERS.map(|folder| path.join(folder)))
        });
        let own = folders.filter_map(|path| load_folder(&path).ok()).flatten();
        builtin_sources().into_iter().chain(guards::builtin_files()).chain(own)
    }
}
