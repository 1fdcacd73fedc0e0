//! One rule by its id, with the text it is written in.

use toml::{Table, Value};

use super::explain::{Fact, Written, detector_facts};
use super::guards;
use super::hint::hint;
use crate::cli::Failure;
use crate::cli::context::{Context, snapshot};
use crate::config::Settings;
use crate::grpc::list_rules::{Listed, all_rules, with_coded};
use crate::messages::LlamaGuard;
use crate::monitor::PreparedMonitor;
use crate::policy::{Policy, Snapshot};
use crate::rules::{CompiledRule, MetaInfo, OTHER_FOLDERS, RuleSource, builtin_sources, load_folder};

/// The rules and policies of this installation.
pub(in crate::cli) struct Rules {
    pub(in crate::cli) settings: Settings,
    /// Rules and policies in force.
    pub(in crate::cli) snapshot: Snapshot,
}

impl Rules {
    pub(super) fn load(context: &Context) -> Result<Self, Failure> {
        Self::of(context.settings()?)
    }

    /// The rules and policies that `settings` lead to.
    pub(in crate::cli) fn of(settings: Settings) -> Result<Self, Failure> {
        let snapshot = snapshot(&settings)?;
        Ok(Self { settings, snapshot })
    }

    /// File and line of a rule in a file; `None` for what is no rule in a file.
    pub(in crate::cli) fn place_of(&self, id: &str) -> Option<String> {
        let all = all_rules(&self.snapshot);
        all.iter().find(|rule| rule.id == id).map(|rule| format!("{}:{}", rule.file, rule.line))
    }

    /// What has to hold before a detector of text reports a match: its gate, its context, its validators.
    pub(in crate::cli) fn checks_of(&self, id: &str) -> Vec<Fact> {
        let all = all_rules(&self.snapshot);
        let Some(rule) = all.iter().find(|rule| rule.id == id) else { return Vec::new() };
        self.detector(rule)
            .map_or_else(Vec::new, |detector| detector_facts(detector, &Written::of(self, rule)))
    }

    /// What a detector in code, or the model that weighs concepts, can report.
    pub(super) fn coded(&self, id: &str) -> Option<&MetaInfo> {
        self.snapshot.scanner().coded().find(|info| &*info.id == id)
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
        if with_coded(&self.snapshot).iter().any(|rule| rule.id == id) {
            let message = format!(
                "`{id}` is in code, not a rule in a file; `portcullis rules explain {id}` tells about it"
            );
            return Err(Failure::data(message));
        }
        let told = with_coded(&self.snapshot);
        let extensions = self.settings.extensions.plugins.keys().map(String::as_str);
        let plugins: Vec<&str> = extensions.chain([LlamaGuard::NAME]).collect();
        let hint = hint(id, &told, &plugins);
        Err(Failure::data(format_args!("no rule `{id}`; {hint}")))
    }

    /// The rule of that id, of whatever kind, or the check in code.
    pub(super) fn find_any(&self, id: &str) -> Result<Listed<'_>, Failure> {
        let found = with_coded(&self.snapshot).into_iter().find(|rule| rule.id == id);
        found.map_or_else(|| self.find(id), Ok)
    }

    /// The rule as a detector of text, of messages or of streams; `None` when it is of another kind.
    pub(super) fn detector(&self, rule: &Listed<'_>) -> Option<&CompiledRule> {
        let of_streams = || {
            let prepared = self.snapshot.prepared::<PreparedMonitor>()?;
            prepared.rules().rules().iter().find(|one| *one.info.id == *rule.id)
        };
        self.snapshot.scanner().rules().rule(rule.id).or_else(of_streams)
    }

    /// The definition of a rule as its file has it; `None` when the file has changed since it was loaded.
    pub(super) fn definition_of(&self, rule: &Listed<'_>) -> Option<Table> {
        let file = self.files().find(|file| *file.name == *rule.file)?;
        let mut table = file.text.parse::<Table>().ok()?;
        let Some(Value::Array(all)) = table.remove("rule") else { return None };
        let of_id = |one: &Value| one.get("id").and_then(Value::as_str) == Some(rule.id);
        all.into_iter().find(of_id).and_then(|one| if let Value::Table(of) = one { Some(of) } else { None })
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
