//! What the monitor compiles when rules and policies load.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::plan::PolicyPlan;
use super::rules::{STREAMS, StreamRules};
use crate::commands::{CommandRuleProblem, CommandRuleSource, CommandRules, builtin_command_sources};
use crate::policy::{Place, PolicySet, Prepare, PrepareRules, Prepared, Problem};
use crate::rules::{RuleProblem, RuleProblems, RuleSet, RuleSource, builtin_stream_sources, load_kind};

/// What the monitor keeps for one snapshot.
#[derive(Debug)]
pub struct PreparedMonitor {
    rules: Arc<LateRules>,
    plans: HashMap<Arc<str>, Arc<PolicyPlan>>,
}

impl PreparedMonitor {
    /// The rules about streams.
    pub fn rules(&self) -> &Arc<StreamRules> {
        self.rules.get()
    }

    pub(super) fn plan(&self, policy: &str) -> Option<&Arc<PolicyPlan>> {
        self.plans.get(policy)
    }
}

/// Compiles for the monitor. Give it to [`crate::policy::Sources`].
#[derive(Debug, Default)]
pub struct MonitorPreparer;

impl Prepare for MonitorPreparer {
    fn rules(&self, folders: &[PathBuf]) -> Result<Box<dyn PrepareRules>, RuleProblems> {
        let mut files = builtin_stream_sources();
        files.extend(load_kind(folders, STREAMS)?);
        let commands = load_kind(folders, "commands")?;
        let is_builtin = commands.is_empty() && files.iter().all(|file| file.is_builtin);
        let sources: Vec<RuleSource> = files.iter().chain(&commands).cloned().collect();
        let late =
            LateRules { revision: RuleSet::revision_of(&sources), files, commands, made: OnceLock::new() };
        if !is_builtin {
            let made = late.make()?;
            late.made.get_or_init(|| made);
        }
        Ok(Box::new(Rules(Arc::new(late))))
    }
}

/// Rules that may still have to be compiled. Many a process never watches a stream; so the built-in rules, which are
/// known to compile, wait until they are needed.
struct LateRules {
    made: OnceLock<Arc<StreamRules>>,
    files: Vec<RuleSource>,
    commands: Vec<RuleSource>,
    revision: String,
}

impl std::fmt::Debug for LateRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LateRules").field("revision", &self.revision).finish_non_exhaustive()
    }
}

impl LateRules {
    fn make(&self) -> Result<Arc<StreamRules>, RuleProblems> {
        Ok(Arc::new(StreamRules::compile(&self.files, Arc::new(commands(&self.commands)?))?))
    }

    fn get(&self) -> &Arc<StreamRules> {
        self.made.get_or_init(|| self.make().expect("a test compiles the built-in rules"))
    }
}

/// The built-in rules about commands with those of `own`.
fn commands(own: &[RuleSource]) -> Result<CommandRules, RuleProblems> {
    let mut sources: Vec<CommandRuleSource<'_>> = builtin_command_sources().collect();
    sources.extend(own.iter().map(|file| CommandRuleSource { file: &file.name, text: &file.text }));
    CommandRules::load(&sources).map_err(|problems| {
        let problem = |one: CommandRuleProblem| RuleProblem {
            file: one.file,
            line: one.line,
            rule_id: one.rule_id,
            field: String::new(),
            message: one.message,
        };
        RuleProblems(problems.0.into_iter().map(problem).collect())
    })
}

struct Rules(Arc<LateRules>);

impl PrepareRules for Rules {
    fn revision(&self) -> String {
        self.0.revision.clone()
    }

    fn rule_ids(&self) -> Vec<String> {
        self.0.get().rules().iter().map(|rule| rule.info.id.to_string()).collect()
    }

    fn compile(&self, policies: &PolicySet) -> Result<Prepared, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut plans = HashMap::new();
        for policy in policies.iter() {
            match PolicyPlan::compile(policy) {
                Ok(plan) => {
                    plans.insert(policy.name().clone(), Arc::new(plan));
                }
                Err(found) => problems.extend(found.into_iter().map(|(index, what)| {
                    let place: Place = policy.streams().known_safe[index].place.clone();
                    Problem { place, what, fix: "correct the pattern".to_owned() }
                })),
            }
        }
        if problems.is_empty() {
            Ok(Arc::new(PreparedMonitor { rules: self.0.clone(), plans }))
        } else {
            Err(problems)
        }
    }
}
