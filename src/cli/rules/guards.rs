//! Rule files of the two guards, of the monitor and about bundles: which of the given paths hold some, and their
//! self-check.
//!
//! They lie in folders `bundles`, `commands`, `paths` and `streams`, and are not run over messages.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bundles::rules::{BUNDLES, BundleRuleSource, BundleRules, builtin_bundle_sources};
use crate::commands::{CommandRuleSource, CommandRules, builtin_command_sources};
use crate::monitor::rules::{STREAMS, StreamRules};
use crate::paths::{PathRuleSource, SensitivePaths, builtin_path_sources};
use crate::rules::{RuleProblem, RuleProblems, RuleSource, SelfCheck, builtin_stream_sources, load_folder};

/// Folder of rules about commands.
const COMMANDS: &str = "commands";
/// Folder of rules about paths.
const PATHS: &str = "paths";
/// Every folder.
const FOLDERS: [&str; 4] = [BUNDLES, COMMANDS, PATHS, STREAMS];

/// The rule files of the guards among given paths.
#[derive(Default)]
pub(super) struct Guards {
    bundles: Vec<RuleSource>,
    commands: Vec<RuleSource>,
    paths: Vec<RuleSource>,
    streams: Vec<RuleSource>,
    problems: Vec<RuleProblem>,
    /// The given paths that hold detectors of text, too.
    pub(super) remaining: Vec<PathBuf>,
}

impl Guards {
    /// Looks at each path: a folder `commands` or `paths`, a file in one, or a folder that has them.
    pub(super) fn of(given: &[PathBuf]) -> Self {
        let mut guards = Self::default();
        for path in given {
            match kind_of(path) {
                Some(kind) => guards.read(path, kind),
                None => {
                    let below = FOLDERS.map(|kind| (path.join(kind), kind));
                    let below: Vec<_> = below.iter().filter(|(folder, _)| folder.is_dir()).collect();
                    below.iter().for_each(|(folder, kind)| guards.read(folder, kind));
                    let has_detectors = load_folder(path).is_ok_and(|found| !found.is_empty());
                    if has_detectors || below.is_empty() {
                        guards.remaining.push(path.clone());
                    }
                }
            }
        }
        guards
    }

    fn read(&mut self, path: &Path, kind: &str) {
        match load_folder(path) {
            Ok(files) if kind == COMMANDS => self.commands.extend(files),
            Ok(files) if kind == BUNDLES => self.bundles.extend(files),
            Ok(files) if kind == STREAMS => self.streams.extend(files),
            Ok(files) => self.paths.extend(files),
            Err(RuleProblems(found)) => self.problems.extend(found),
        }
    }

    /// Compiles and checks the rules of the guards, built-in ones included unless only the given ones are asked for. A
    /// given file with the name of a built-in one stands in for it.
    pub(super) fn check(self, only_given: bool, with_builtin: bool, out: &mut SelfCheck) {
        out.problems.extend(self.problems);
        let is_given = |given: &[RuleSource], file: &str| given.iter().any(|source| source.name == file);
        if !only_given || !self.commands.is_empty() {
            let builtin =
                builtin_command_sources().filter(|s| with_builtin && !stands_in(&self.commands, s.file));
            let own = self.commands.iter().map(|s| CommandRuleSource { file: &s.name, text: &s.text });
            let sources: Vec<_> =
                builtin.map(|s| CommandRuleSource { file: s.file, text: s.text }).chain(own).collect();
            match CommandRules::load(&sources) {
                Ok(rules) => {
                    let checked =
                        rules.self_check(|rule| !only_given || is_given(&self.commands, &rule.file));
                    out.rules += checked.rules;
                    out.texts += checked.commands;
                    let found = checked.problems.into_iter();
                    out.problems.extend(found.map(|p| problem(p.file, p.line, p.rule_id, p.message)));
                }
                Err(found) => {
                    let found = found.0.into_iter();
                    out.problems.extend(found.map(|p| problem(p.file, p.line, p.rule_id, p.message)));
                }
            }
        }
        if !only_given || !self.streams.is_empty() {
            let builtin = builtin_stream_sources().into_iter();
            let builtin = builtin.filter(|s| with_builtin && !stands_in(&self.streams, &s.name));
            let sources: Vec<_> = builtin.chain(self.streams.iter().cloned()).collect();
            let builtin = builtin_command_sources().filter(|s| !stands_in(&self.commands, s.file));
            let builtin = builtin.map(|s| CommandRuleSource { file: s.file, text: s.text });
            let own = self.commands.iter().map(|s| CommandRuleSource { file: &s.name, text: &s.text });
            let commands: Vec<_> = builtin.chain(own).collect();
            // What is wrong with rules about commands was told above.
            if let Ok(commands) = CommandRules::load(&commands) {
                match StreamRules::compile(&sources, Arc::new(commands)) {
                    Ok(rules) => {
                        let is_wanted = |file: &str| !only_given || is_given(&self.streams, file);
                        check_streams(&rules, is_wanted, out);
                    }
                    Err(RuleProblems(found)) => out.problems.extend(found),
                }
            }
        }
        if !only_given || !self.bundles.is_empty() {
            check_bundles(&self.bundles, only_given, with_builtin, out);
        }
        if !only_given || !self.paths.is_empty() {
            let builtin = builtin_path_sources().filter(|s| with_builtin && !stands_in(&self.paths, s.file));
            let own = self.paths.iter().map(|s| PathRuleSource { file: &s.name, text: &s.text });
            let sources: Vec<_> =
                builtin.map(|s| PathRuleSource { file: s.file, text: s.text }).chain(own).collect();
            match SensitivePaths::load(&sources) {
                Ok(rules) => {
                    let checked = rules.self_check(|rule| !only_given || is_given(&self.paths, &rule.file));
                    out.rules += checked.rules;
                    out.texts += checked.paths;
                    let found = checked.problems.into_iter();
                    out.problems.extend(found.map(|p| problem(p.file, p.line, p.rule_id, p.message)));
                }
                Err(found) => {
                    let found = found.0.into_iter();
                    out.problems.extend(found.map(|p| problem(p.file, p.line, p.rule_id, p.message)));
                }
            }
        }
    }
}

/// Compiles and checks the rules about bundles.
fn check_bundles(given: &[RuleSource], only_given: bool, with_builtin: bool, out: &mut SelfCheck) {
    let builtin = builtin_bundle_sources().filter(|s| with_builtin && !stands_in(given, s.file));
    let own = given.iter().map(|s| BundleRuleSource { file: &s.name, text: &s.text, is_builtin: false });
    let mut sources: Vec<BundleRuleSource<'_>> = builtin.collect();
    sources.extend(own);
    match BundleRules::load(&sources) {
        Ok(rules) => {
            let is_given = |file: &str| given.iter().any(|source| source.name == file);
            let checked =
                rules.self_check(CommandRules::builtin(), |rule| !only_given || is_given(&rule.file));
            out.rules += checked.rules;
            out.texts += checked.texts;
            out.problems.extend(checked.problems);
        }
        Err(RuleProblems(found)) => out.problems.extend(found),
    }
}

/// The built-in files of the guards.
pub(super) fn builtin_files() -> impl Iterator<Item = RuleSource> {
    let file = |name: &str, kind: &str, text: &'static str| RuleSource {
        name: name.to_owned(),
        default_plugin: kind.to_owned(),
        text: text.into(),
        is_builtin: true,
        json: None,
    };
    let commands = builtin_command_sources().map(move |s| file(s.file, COMMANDS, s.text));
    let paths = builtin_path_sources().map(move |s| file(s.file, PATHS, s.text));
    let bundles = builtin_bundle_sources().map(move |s| file(s.file, BUNDLES, s.text));
    commands.chain(paths).chain(builtin_stream_sources()).chain(bundles)
}

/// The kind of rules at `path` when it, or the folder it lies in, bears the name of one.
fn kind_of(path: &Path) -> Option<&'static str> {
    let path = std::path::absolute(path).ok()?;
    let folder = if path.is_dir() { path.as_path() } else { path.parent()? };
    FOLDERS.into_iter().find(|kind| folder.ends_with(kind))
}

/// Every rule about streams against its own texts.
fn check_streams(rules: &StreamRules, is_wanted: impl Fn(&str) -> bool, out: &mut SelfCheck) {
    for (index, rule) in (0..).zip(rules.rules()).filter(|(_, rule)| is_wanted(&rule.info.file)) {
        out.rules += 1;
        let def = &rule.def;
        for (name, texts, wanted) in [
            ("examples", &def.examples, true),
            ("negative_examples", &def.negative_examples, false),
            ("known_misses", &def.known_misses, false),
        ] {
            out.texts += texts.len();
            for text in texts.iter().filter(|text| rules.find_with_rule(index, text).is_empty() == wanted) {
                let what = if wanted { "is not seen" } else { "is seen" };
                let (file, id) = (rule.info.file.to_string(), rule.info.id.to_string());
                let message = format!("{name}: {text:?} {what}");
                out.problems.push(problem(file, rule.info.line, id, message));
            }
        }
    }
}

fn stands_in(given: &[RuleSource], builtin: &str) -> bool {
    given.iter().any(|file| std::path::absolute(&file.name).is_ok_and(|path| path.ends_with(builtin)))
}

fn problem(file: String, line: usize, rule_id: String, message: String) -> RuleProblem {
    RuleProblem { file, line, rule_id, field: String::new(), message }
}
