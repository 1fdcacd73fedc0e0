//! What the monitor compiles when rules and policies load.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::plan::PolicyPlan;
use super::rules::{STREAMS, StreamRules};
use crate::commands::{CommandRuleProblem, CommandRuleSource, CommandRules, builtin_command_sources};
use crate::policy::{Place, PolicySet, Prepare, PrepareRules, Prepared, Problem};
use crate::rules::{RuleProblem, RuleProblems, RuleSource, builtin_stream_sources, load_kind};

/// What the monitor keeps for one snapshot.
#[derive(Debug)]
pub struct PreparedMonitor {
    rules: Arc<StreamRules>,
    plans: HashMap<Arc<str>, Arc<PolicyPlan>>,
}

impl PreparedMonitor {
    /// The rules about streams.
    pub fn rules(&self) -> &Arc<StreamRules> {
        &self.rules
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
        let own = load_kind(folders, "commands")?;
        let rules = Arc::new(StreamRules::compile(&files, Arc::new(commands(&own)?))?);
        Ok(Box::new(Rules(rules)))
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

struct Rules(Arc<StreamRules>);

impl PrepareRules for Rules {
    fn revision(&self) -> String {
        self.0.revision().to_owned()
    }

    fn rule_ids(&self) -> Vec<String> {
        self.0.rules().iter().map(|rule| rule.info.id.to_string()).collect()
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
        if problems.is_empty() { Ok(Arc::new(PreparedMonitor { rules: self.0.clone(), plans })) } else { Err(problems) }
    }
}
