//! What the tool engine compiles when rules and policies load: rules about commands and paths, interceptors, names.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use sha2::{Digest, Sha256};

use super::arguments::ArgumentMap;
use super::builtin;
use super::interceptor::{Interceptor, Source};
use super::names::ToolNames;
use super::registry::Merged;
use super::remote::RemoteFactory;
use crate::commands::{CommandRuleSource, CommandRules, builtin_command_sources};
use crate::paths::{PathRuleSource, SensitivePaths, builtin_path_sources};
use crate::policy::{Policy, PolicySet, Prepare, PrepareRules, Prepared, Problem};
use crate::rules::{RuleProblem, RuleProblems, load_kind};

/// What the tool engine keeps for one snapshot.
#[derive(Debug)]
pub struct PreparedTools {
    commands: Arc<CommandRules>,
    paths: Arc<SensitivePaths>,
    policies: HashMap<Arc<str>, PolicyTools>,
}

impl PreparedTools {
    /// The rules about commands.
    pub fn commands(&self) -> &CommandRules {
        &self.commands
    }

    /// The rules about paths.
    pub fn paths(&self) -> &SensitivePaths {
        &self.paths
    }

    /// Every interceptor of every policy, some of them more than once.
    pub fn interceptors(&self) -> impl Iterator<Item = &Arc<Interceptor>> {
        self.policies.values().flat_map(|policy| &policy.interceptors)
    }

    /// What was compiled for a policy.
    pub fn policy(&self, name: &str) -> Option<&PolicyTools> {
        self.policies.get(name)
    }
}

/// What was compiled for one policy.
#[derive(Debug)]
pub struct PolicyTools {
    names: ToolNames,
    arguments: ArgumentMap,
    interceptors: Vec<Arc<Interceptor>>,
    merged: ArcSwapOption<Merged>,
}

impl PolicyTools {
    /// Names of tools.
    pub fn names(&self) -> &ToolNames {
        &self.names
    }

    /// Built-in interceptors and those of the policy, in order of registration.
    pub fn interceptors(&self) -> &[Arc<Interceptor>] {
        &self.interceptors
    }

    pub(super) fn arguments(&self) -> &ArgumentMap {
        &self.arguments
    }

    /// The running order at `generation` of the API's list.
    pub(super) fn merged(&self, generation: u64, make: impl FnOnce() -> Merged) -> Arc<Merged> {
        if let Some(merged) = self.merged.load_full()
            && merged.generation == generation
        {
            return merged;
        }
        let merged = Arc::new(make());
        self.merged.store(Some(merged.clone()));
        merged
    }
}

/// Compiles for the tool engine. Give it to [`crate::policy::Sources`].
#[derive(Debug)]
pub struct ToolPreparer {
    remotes: Option<Arc<dyn RemoteFactory>>,
}

impl ToolPreparer {
    /// Without a factory no policy may name an interceptor that lives elsewhere.
    pub fn new(remotes: Option<Arc<dyn RemoteFactory>>) -> Self {
        Self { remotes }
    }
}

impl Prepare for ToolPreparer {
    fn rules(&self, folders: &[PathBuf]) -> Result<Box<dyn PrepareRules>, RuleProblems> {
        let mut problems = Vec::new();
        let mut read = |kind| match load_kind(folders, kind) {
            Ok(files) => files.into_iter().map(|file| (file.name, file.text.into_owned())).collect(),
            Err(RuleProblems(found)) => {
                problems.extend(found);
                Vec::new()
            }
        };
        let own_commands: Vec<(String, String)> = read("commands");
        let own_paths = read("paths");
        let mut hash = Sha256::new();
        let mut feed = |file: &str, text: &str| {
            for piece in [file, text] {
                hash.update((piece.len() as u64).to_le_bytes());
                hash.update(piece);
            }
        };
        builtin_command_sources().for_each(|source| feed(source.file, source.text));
        builtin_path_sources().for_each(|source| feed(source.file, source.text));
        own_commands.iter().chain(&own_paths).for_each(|(file, text)| feed(file, text));
        let revision = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();

        let mut sources: Vec<CommandRuleSource<'_>> = Vec::new();
        sources.extend(builtin_command_sources().map(|s| CommandRuleSource { file: s.file, text: s.text }));
        sources.extend(own_commands.iter().map(|(file, text)| CommandRuleSource { file, text }));
        let commands = CommandRules::load(&sources)
            .map(Arc::new)
            .map_err(|found| {
                let found = found.0.into_iter();
                problems.extend(found.map(|p| rule_problem(p.file, p.line, p.rule_id, p.message)));
            })
            .ok();
        let mut sources: Vec<PathRuleSource<'_>> = Vec::new();
        sources.extend(builtin_path_sources().map(|s| PathRuleSource { file: s.file, text: s.text }));
        sources.extend(own_paths.iter().map(|(file, text)| PathRuleSource { file, text }));
        let paths = SensitivePaths::load(&sources)
            .map(Arc::new)
            .map_err(|found| {
                let found = found.0.into_iter();
                problems.extend(found.map(|p| rule_problem(p.file, p.line, p.rule_id, p.message)));
            })
            .ok();
        match (commands, paths) {
            (Some(commands), Some(paths)) if problems.is_empty() => {
                Ok(Box::new(Rules { commands, paths, revision, remotes: self.remotes.clone() }))
            }
            _ => Err(RuleProblems(problems)),
        }
    }
}

fn rule_problem(file: String, line: usize, rule_id: String, message: String) -> RuleProblem {
    RuleProblem { file, line, rule_id, field: String::new(), message }
}

/// Rules about commands and paths, compiled.
struct Rules {
    commands: Arc<CommandRules>,
    paths: Arc<SensitivePaths>,
    revision: String,
    remotes: Option<Arc<dyn RemoteFactory>>,
}

impl PrepareRules for Rules {
    fn revision(&self) -> String {
        self.revision.clone()
    }

    fn rule_ids(&self) -> Vec<String> {
        let commands = self.commands.rules().iter().map(|rule| rule.id.to_string());
        commands.chain(self.paths.rules().iter().map(|rule| rule.id.to_string())).collect()
    }

    fn compile(&self, policies: &PolicySet) -> Result<Prepared, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut prepared = PreparedTools {
            commands: self.commands.clone(),
            paths: self.paths.clone(),
            policies: HashMap::new(),
        };
        for policy in policies.iter() {
            let tools = self.policy(policy, &mut problems);
            prepared.policies.insert(policy.name().clone(), tools);
        }
        if problems.is_empty() { Ok(Arc::new(prepared)) } else { Err(problems) }
    }
}

impl Rules {
    fn policy(&self, policy: &Policy, problems: &mut Vec<Problem>) -> PolicyTools {
        let known: BTreeMap<_, _> = policy.tools().known.clone();
        let names = ToolNames::new(known);
        let arguments = ArgumentMap::new(policy.tools());
        let mut interceptors: Vec<Arc<Interceptor>> =
            builtin::all(policy, &arguments, &self.commands, &self.paths).into_iter().map(Arc::new).collect();
        for one in policy.interceptors() {
            let remotes = self.remotes.as_deref();
            match Interceptor::compile(one.spec.clone(), Source::Policy, "", &names, remotes) {
                Ok(compiled) => interceptors.push(Arc::new(compiled)),
                Err(found) => problems.extend(found.into_iter().filter_map(|problem| {
                    let place = one.places.of(&problem.field)?.clone();
                    let fix = format!("correct `{}` of interceptor `{}`", problem.field, one.spec.id);
                    Some(Problem { place, what: problem.message, fix })
                })),
            }
        }
        PolicyTools { names, arguments, interceptors, merged: ArcSwapOption::empty() }
    }
}
