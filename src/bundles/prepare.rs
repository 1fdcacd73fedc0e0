//! The rules about bundles that are in force: the built-in ones with those of the operator, compiled when rules load.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::rules::{
    BUNDLES, BundleRuleSource, BundleRules, builtin_bundle_sources, builtin_rule_ids, builtin_rule_kinds,
};
use super::scan::Patterns;
use crate::commands::{CommandRuleSource, CommandRules, builtin_command_sources};
use crate::decision::Severity;
use crate::policy::{PolicySet, Prepare, PrepareRules, Prepared, Problem};
use crate::rules::{RuleProblem, RuleProblems, RuleSet, RuleSource, load_kind};

/// Folder of rules about commands.
const COMMANDS: &str = "commands";

/// Ids of what is looked for in code rather than by rules of a file; policies may name them, too. What an archive is
/// refused for is not among them: it is no matter of any policy.
pub(super) const CODED_IDS: &[&str] = &[
    "bundle.bare-dependency",
    "bundle.bare-server",
    "bundle.binary",
    "bundle.carried-secrets",
    "bundle.credential-helper",
    "bundle.decoded-execution",
    "bundle.document-runs",
    "bundle.document-template",
    "bundle.double-extension",
    "bundle.environment",
    "bundle.foreign-credential",
    "bundle.foreign-index",
    "bundle.git-hook",
    "bundle.git-hooks-elsewhere",
    "bundle.git-redirect",
    "bundle.git-runs",
    "bundle.git-sends",
    "bundle.hidden-direction",
    "bundle.hidden-joints",
    "bundle.hidden-tags",
    "bundle.hook-approves",
    "bundle.hook-context",
    "bundle.hook-sends",
    "bundle.install-hook",
    "bundle.locked-elsewhere",
    "bundle.look-alike-dependency",
    "bundle.look-alike-package",
    "bundle.no-server",
    "bundle.other-content",
    "bundle.package-foreign-file",
    "bundle.packed-secrets",
    "bundle.permission-any",
    "bundle.permission-bypass",
    "bundle.pickled-code",
    "bundle.private-package",
    "bundle.remote-dependency",
    "bundle.remote-package",
    "bundle.run-at-open",
    "bundle.server-inline",
    "bundle.shell-hook-network",
    "bundle.startup-code",
    "bundle.step-sends-secret",
    "bundle.telemetry",
    "manifest.compatibility-length",
    "manifest.description-length",
    "manifest.description-missing",
    "manifest.description-type",
    "manifest.duplicate",
    "manifest.field-missing",
    "manifest.frontmatter",
    "manifest.frontmatter-missing",
    "manifest.hidden-character",
    "manifest.json",
    "manifest.missing",
    "manifest.name",
    "manifest.name-folder",
    "manifest.name-length",
    "manifest.name-missing",
    "manifest.name-style",
    "manifest.name-type",
    "manifest.path-escape",
    "manifest.path-missing",
    "manifest.spelling",
    "manifest.unknown-field",
    "manifest.version",
    "manifest.yaml",
    "quality.description",
    "quality.document",
    "quality.filler",
    "quality.todo",
];

/// Rules about bundles and commands, ready to scan with. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct PreparedBundles(Arc<Own>);

/// What the operator adds; nothing stands for the built-in rules, which many a process never needs.
#[derive(Default)]
struct Own {
    rules: Option<(BundleRules, Patterns)>,
    commands: Option<CommandRules>,
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own")
            .field("rules", &self.rules().rules().len())
            .field("has_commands", &self.commands.is_some())
            .finish()
    }
}

impl Own {
    fn rules(&self) -> &BundleRules {
        self.rules.as_ref().map_or_else(|| BundleRules::builtin(), |(rules, _)| rules)
    }
}

impl PreparedBundles {
    /// The rules about bundles.
    pub fn rules(&self) -> &BundleRules {
        self.0.rules()
    }

    /// Category and severity of each of them, known without compiling the built-in ones.
    pub fn kinds(&self) -> Vec<(&str, Severity)> {
        match &self.0.rules {
            Some((rules, _)) => {
                rules.rules().iter().map(|rule| (rule.category.as_str(), rule.severity)).collect()
            }
            None => builtin_rule_kinds().collect(),
        }
    }

    pub(super) fn patterns(&self) -> &Patterns {
        self.0.rules.as_ref().map_or_else(|| Patterns::builtin(), |(_, patterns)| patterns)
    }

    /// The rules about commands.
    pub fn commands(&self) -> &CommandRules {
        self.0.commands.as_ref().unwrap_or_else(|| CommandRules::builtin())
    }
}

/// Compiles for the review of bundles. Give it to [`crate::policy::Sources`].
#[derive(Debug, Default)]
pub struct BundlePreparer;

impl Prepare for BundlePreparer {
    fn rules(&self, folders: &[PathBuf]) -> Result<Box<dyn PrepareRules>, RuleProblems> {
        let own = load_kind(folders, BUNDLES)?;
        let commands = load_kind(folders, COMMANDS)?;
        let builtin = builtin_bundle_sources().map(|source| {
            let mut file = RuleSource::custom(source.file, BUNDLES, source.text);
            file.is_builtin = true;
            file
        });
        let sources: Vec<RuleSource> = builtin.chain(own.iter().chain(&commands).cloned()).collect();
        let revision = RuleSet::revision_of(&sources);
        let prepared = PreparedBundles(Arc::new(Own {
            rules: if own.is_empty() { None } else { Some(compiled(&own)?) },
            commands: if commands.is_empty() { None } else { Some(compiled_commands(&commands)?) },
        }));
        Ok(Box::new(Rules { prepared, revision }))
    }
}

/// The built-in rules with those of `own`.
fn compiled(own: &[RuleSource]) -> Result<(BundleRules, Patterns), RuleProblems> {
    let mut sources: Vec<BundleRuleSource<'_>> = builtin_bundle_sources().collect();
    sources.extend(own.iter().map(|file| BundleRuleSource {
        file: &file.name,
        text: &file.text,
        is_builtin: false,
    }));
    let rules = BundleRules::load(&sources)?;
    let patterns = Patterns::new(&rules).map_err(|error| {
        let file = own.first().map(|file| file.name.clone()).unwrap_or_default();
        let message = format!("all `literals` together are too large: {error}");
        RuleProblems(vec![rule_problem(file, 0, String::new(), message)])
    })?;
    Ok((rules, patterns))
}

fn compiled_commands(own: &[RuleSource]) -> Result<CommandRules, RuleProblems> {
    let mut sources: Vec<CommandRuleSource<'_>> = builtin_command_sources().collect();
    sources.extend(own.iter().map(|file| CommandRuleSource { file: &file.name, text: &file.text }));
    CommandRules::load(&sources).map_err(|problems| {
        let told = problems.0.into_iter();
        RuleProblems(told.map(|one| rule_problem(one.file, one.line, one.rule_id, one.message)).collect())
    })
}

fn rule_problem(file: String, line: usize, rule_id: String, message: String) -> RuleProblem {
    RuleProblem { file, line, rule_id, field: String::new(), message }
}

struct Rules {
    prepared: PreparedBundles,
    revision: String,
}

impl PrepareRules for Rules {
    fn revision(&self) -> String {
        self.revision.clone()
    }

    fn rule_ids(&self) -> Vec<String> {
        let coded = CODED_IDS.iter().map(|id| (*id).to_owned());
        match &self.prepared.0.rules {
            Some((rules, _)) => coded.chain(rules.rules().iter().map(|rule| rule.id.clone())).collect(),
            // Known without compiling anything.
            None => coded.chain(builtin_rule_ids().map(str::to_owned)).collect(),
        }
    }

    fn compile(&self, _: &PolicySet) -> Result<Prepared, Vec<Problem>> {
        Ok(Arc::new(self.prepared.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn ids_of_built_in_rules_are_known_without_compiling_them() {
        let compiled: BTreeSet<&str> = BundleRules::builtin().rules().iter().map(|rule| &*rule.id).collect();
        let listed: BTreeSet<&str> = builtin_rule_ids().collect();
        assert_eq!(listed, compiled);
        let prepared = PreparedBundles::default();
        let kinds: BTreeSet<_> = prepared.kinds().into_iter().collect();
        let rules = BundleRules::builtin().rules().iter();
        assert_eq!(kinds, rules.map(|rule| (rule.category.as_str(), rule.severity)).collect());
    }

    /// Every id that the sources of the checks spell out.
    #[test]
    fn ids_of_checks_in_code_may_be_named_by_policies() {
        fn texts(folder: &Path, out: &mut String) {
            for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path())
            {
                let is_test = entry.to_string_lossy().contains("tests");
                if entry.is_dir() {
                    texts(&entry, out);
                } else if !is_test && !["prepare.rs", "coded/table.rs"].iter().any(|own| entry.ends_with(own))
                {
                    out.push_str(&fs::read_to_string(&entry).expect("a source"));
                }
            }
        }
        let mut all = String::new();
        texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bundles"), &mut all);
        let is_id = |text: &str| {
            let known =
                ["bundle.", "manifest.", "quality."].iter().find_map(|start| text.strip_prefix(start));
            known.is_some_and(|rest| {
                !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
            })
        };
        // Of the fields that are required.
        let each = |text: &str| ["name", "description"].map(|key| text.replace("{key}", key));
        let spelled: BTreeSet<String> = all.split('"').flat_map(each).filter(|text| is_id(text)).collect();
        let listed: BTreeSet<String> = CODED_IDS.iter().map(|id| (*id).to_owned()).collect();
        let missing: Vec<&String> = spelled.difference(&listed).filter(|id| !id.ends_with(".zip")).collect();
        assert_eq!(missing, Vec::<&String>::new(), "add them to CODED_IDS");
        assert_eq!(
            listed.difference(&spelled).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "no check has them"
        );
    }

    #[test]
    fn rules_of_the_operator_are_compiled_with_the_built_in_ones_or_told_what_is_wrong() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("bundles/house.toml");
        fs::create_dir_all(file.parent().expect("a parent")).expect("made");
        let rule = |id: &str, literal: &str| {
            format!(
                "[[rule]]\nid = \"{id}\"\ncategory = \"house\"\nseverity = \"high\"\ndescription = \"d\"\nfix = \"f\"\n\
                 examples = [{{ document = \"banana\" }}]\nnegative_examples = [{{ document = \"pear\" }}]\n\
                 [rule.text]\nsurfaces = [\"document\"]\npattern = 'banana'\nliterals = [\"{literal}\"]\n"
            )
        };
        let folders = [folder.path().to_owned()];
        let ids = || BundlePreparer.rules(&folders).map(|rules| (rules.revision(), rules.rule_ids()));
        fs::write(&file, rule("house.banana", "banana")).expect("written");
        let (first, known) = ids().expect("compiled");
        assert!(known.contains(&"house.banana".to_owned()) && known.len() > 50);
        fs::write(&file, rule("house.other", "banana")).expect("written");
        assert_ne!(ids().expect("compiled").0, first, "the revision is that of the content");
        for (text, wanted) in [
            (rule("bundle x", "banana"), "lower-case letters"),
            (rule("house.banana", ""), "literals"),
            (rule("house.banana", "banana").replace("\"document\"", "\"dokument\""), "unknown surface"),
            ("[[rule]]\n".to_owned(), "missing field"),
        ] {
            fs::write(&file, text).expect("written");
            let told = ids().expect_err("refused").to_string();
            assert!(told.contains("house.toml:") && told.contains(wanted), "{wanted}: {told}");
        }
    }
}
