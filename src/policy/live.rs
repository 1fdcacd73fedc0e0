//! The rules and policies in force, and how they are replaced while requests run.
//!
//! A request takes one [`Snapshot`] and keeps it to its end. A reload builds a whole new one beside it and swaps it in
//! at once, or, when anything in it is wrong, leaves the last good one in force and says why.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::{
    DEFAULT_POLICY, FolderWatch, PolicyProblems, PolicySet, Prepare, Prepared, Vocabulary, load_dir,
};
use crate::detect::Scanner;
use crate::rules::{RuleProblems, RuleSet, RuleSetConfig, RuleSource, builtin_sources, load_folder};

/// Reloads that are remembered.
const HISTORY_MAX: usize = 50;

/// Where rules and policies come from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Folder of policy files; none means the embedded default alone.
    pub policies: Option<PathBuf>,
    /// Folders or files of rules, besides those that ship with the binary.
    pub rules: Vec<PathBuf>,
    /// Ids of configured asynchronous plugins, which policies may name.
    pub plugins: Vec<String>,
    /// Engines that compile rules of their own and what policies say about them; what none compiles is not looked into.
    pub prepare: Vec<Arc<dyn Prepare>>,
}

/// Rules and policies of one moment. Immutable.
pub struct Snapshot {
    policies: PolicySet,
    scanner: Arc<LateScanner>,
    prepared: Vec<Prepared>,
    revision: Arc<str>,
    loaded: Timestamp,
    /// The file that held the policy `default` until now, when there is none any more.
    default_lost: Option<Arc<str>>,
}

/// A scanner that may still have to be made.
struct LateScanner {
    made: OnceLock<Arc<Scanner>>,
    /// Built-in rule files, which are known to compile; none once it is made.
    files: Vec<RuleSource>,
    revision: String,
}

impl LateScanner {
    fn made(scanner: Scanner) -> Self {
        let revision = scanner.rules().revision().to_owned();
        Self { made: OnceLock::from(Arc::new(scanner)), files: Vec::new(), revision }
    }

    fn get(&self) -> &Arc<Scanner> {
        self.made.get_or_init(|| {
            let set = RuleSet::compile(&self.files, &RuleSetConfig::default());
            Arc::new(Scanner::new(Arc::new(set.expect("a test compiles the built-in rules"))))
        })
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("revision", &self.revision).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Rules on trial under given policies. Its revision is not that of anything in force.
    pub fn for_trial(policies: PolicySet, scanner: Scanner) -> Self {
        let scanner = Arc::new(LateScanner::made(scanner));
        let (prepared, loaded) = (Vec::new(), Timestamp::now());
        Self { policies, scanner, prepared, revision: "trial".into(), loaded, default_lost: None }
    }

    /// The same with what an engine compiles of its built-in rules.
    ///
    /// # Errors
    /// Everything that is wrong with what the policies say about it.
    pub fn prepared_by(mut self, prepare: &dyn Prepare) -> Result<Self, LoadError> {
        let prepared = prepare.rules(&[])?.compile(&self.policies).map_err(PolicyProblems::of)?;
        self.prepared.push(prepared);
        Ok(self)
    }

    /// The policies.
    pub fn policies(&self) -> &PolicySet {
        &self.policies
    }

    /// The scanner over the rules.
    pub fn scanner(&self) -> &Scanner {
        self.scanner.get()
    }

    /// The same, to be kept.
    pub fn shared_scanner(&self) -> &Arc<Scanner> {
        self.scanner.get()
    }

    /// What the engine that keeps a `T` compiled for this snapshot; `None` when it did not.
    pub fn prepared<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.prepared.iter().find_map(|prepared| prepared.downcast_ref())
    }

    /// Revision of policies and rules together, as answers carry it: 12 hex digits each.
    pub fn revision(&self) -> &Arc<str> {
        &self.revision
    }

    /// What is to be told of its coming into force: that the file of the policy `default` is gone, so that the built-in
    /// one holds.
    pub fn warning(&self) -> Option<String> {
        let file = self.default_lost.as_ref()?;
        Some(format!(
            "{file} is gone, and the built-in policy `default` is in force instead; put the file back, best by renaming a \
             finished one into place"
        ))
    }

    /// When it came into force.
    pub fn loaded(&self) -> Timestamp {
        self.loaded
    }
}

/// Why rules and policies could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Something is wrong with the rules.
    #[error("{0}")]
    Rules(#[from] RuleProblems),
    /// Something is wrong with the policies.
    #[error("{0}")]
    Policies(#[from] PolicyProblems),
}

/// Loads rules and policies from `sources`; `before` gives its rules back when they did not change, since compiling them
/// is most of the work.
///
/// # Errors
/// Every problem of the rules, else every problem of the policies.
pub fn load(sources: &Sources, before: Option<&Snapshot>) -> Result<Snapshot, LoadError> {
    load_with(sources, before, |vocabulary| load_dir(sources.policies.as_deref(), vocabulary))
}

/// [`load`] with policies that `read` brings from elsewhere.
///
/// # Errors
/// As [`load`].
pub fn load_with(
    sources: &Sources,
    before: Option<&Snapshot>,
    read: impl FnOnce(&Vocabulary<'_>) -> Result<PolicySet, PolicyProblems>,
) -> Result<Snapshot, LoadError> {
    let mut rule_files = builtin_sources();
    for path in &sources.rules {
        rule_files.extend(load_folder(path)?);
    }
    let revision = RuleSet::revision_of(&rule_files);
    let scanner = match before.filter(|b| b.scanner.revision == revision) {
        Some(before) => before.scanner.clone(),
        None => {
            let set = RuleSet::compile(&rule_files, &RuleSetConfig::default())?;
            Arc::new(LateScanner::made(Scanner::new(Arc::new(set))))
        }
    };
    finish(sources, scanner, true, read)
}

/// [`load`] for a process that answers one call: detection rules are compiled when the first text is scanned, which may
/// be never. Until then nobody knows their ids, so a policy that names one that does not exist is not refused; its
/// setting concerns nothing. Rules besides the built-in ones are compiled at once.
///
/// # Errors
/// As [`load`].
pub fn load_deferred(sources: &Sources) -> Result<Snapshot, LoadError> {
    if !sources.rules.is_empty() {
        return load(sources, None);
    }
    let files = builtin_sources();
    let revision = RuleSet::revision_of(&files);
    let scanner = LateScanner { made: OnceLock::new(), files, revision };
    finish(sources, Arc::new(scanner), false, |vocabulary| load_dir(sources.policies.as_deref(), vocabulary))
}

/// The snapshot of `scanner` and the policies that `read` brings; with `knows_rules` these may name rules that exist
/// only.
fn finish(
    sources: &Sources,
    scanner: Arc<LateScanner>,
    knows_rules: bool,
    read: impl FnOnce(&Vocabulary<'_>) -> Result<PolicySet, PolicyProblems>,
) -> Result<Snapshot, LoadError> {
    let prepares = sources.prepare.iter().map(|prepare| prepare.rules(&sources.rules));
    let prepares = prepares.collect::<Result<Vec<_>, _>>()?;
    let ids = || prepares.iter().flat_map(|prepare| prepare.rule_ids()).collect();
    let more_ids: Vec<String> = if knows_rules { ids() } else { Vec::new() };
    let (mut rule_ids, mut plugins): (Vec<&str>, Vec<&str>) = Default::default();
    if knows_rules {
        let made = scanner.get();
        let rules = made.rules();
        rule_ids.extend(rules.rules().iter().map(|r| &*r.info.id).chain(made.coded_rule_ids()));
        rule_ids.extend(more_ids.iter().map(String::as_str));
        plugins.extend(rules.plugins().iter().map(|p| &**p));
    }
    plugins.extend(sources.plugins.iter().map(String::as_str));
    let vocabulary = Vocabulary { plugins: &plugins, rules: knows_rules.then_some(&*rule_ids) };
    let policies = read(&vocabulary)?;
    let (mut prepared, mut problems) = (Vec::new(), Vec::new());
    for prepare in &prepares {
        match prepare.compile(&policies) {
            Ok(one) => prepared.push(one),
            Err(found) => problems.extend(found),
        }
    }
    if !problems.is_empty() {
        return Err(PolicyProblems::of(problems).into());
    }
    let revisions = prepares.iter().map(|prepare| prepare.revision());
    let rules_revision = revisions.fold(scanner.revision.clone(), |all, one| combined(&all, &one));
    let revision = format!("{}-{rules_revision}", policies.revision()).into();
    Ok(Snapshot { policies, scanner, prepared, revision, loaded: Timestamp::now(), default_lost: None })
}

/// One digest of two, as long as the first.
fn combined(first: &str, second: &str) -> String {
    let mut hash = Sha256::new();
    hash.update((first.len() as u64).to_le_bytes());
    hash.update(first);
    hash.update(second);
    let mut hex = String::with_capacity(64);
    for byte in hash.finalize() {
        let _ = write!(hex, "{byte:02x}"); // writing to a String cannot fail
    }
    hex.truncate(first.len());
    hex
}

/// What the last reload that failed had to say.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// When.
    pub time: Timestamp,
    /// One line a problem.
    pub problems: Vec<String>,
}

/// Outcome of a reload.
#[derive(Debug)]
pub enum Reload {
    /// Nothing had changed.
    Unchanged,
    /// A new snapshot is in force.
    Replaced(Arc<Snapshot>),
    /// The last good snapshot stays in force.
    Rejected(Arc<Rejected>),
}

/// One reload of the past, the first load included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastReload {
    /// When.
    pub time: Timestamp,
    /// `loaded`, `unchanged` or `rejected`.
    pub outcome: &'static str,
    /// Revision in force afterwards; empty when there is none.
    pub revision: String,
    /// One line a problem: why it was rejected, or what is to be told of one that was loaded.
    pub problems: Vec<String>,
}

/// The snapshot in force.
pub struct Live {
    sources: Sources,
    /// `None` until rules and policies loaded for the first time: then nothing can be decided.
    current: ArcSwapOption<Snapshot>,
    rejected: ArcSwapOption<Rejected>,
    /// The latest reloads, oldest first.
    history: Mutex<VecDeque<PastReload>>,
    /// Held while a reload runs: two at once could swap in the older one last.
    watch: Mutex<FolderWatch>,
}

impl Live {
    /// Loads the first snapshot. When that fails there is none, [`Self::rejected`] says why, and a later reload may
    /// still bring one.
    pub fn start(sources: Sources) -> Self {
        // The watch looks first: a change during the load then shows at the next look.
        let paths = sources.policies.iter().chain(&sources.rules).cloned().collect();
        let live = Self {
            watch: Mutex::new(FolderWatch::new(paths)),
            sources,
            current: ArcSwapOption::empty(),
            rejected: ArcSwapOption::empty(),
            history: Mutex::default(),
        };
        live.replace();
        live
    }

    /// The snapshot in force now.
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.current.load_full()
    }

    /// What the last reload said, when it was rejected and none has succeeded since.
    pub fn rejected(&self) -> Option<Arc<Rejected>> {
        self.rejected.load_full()
    }

    /// Reloads when a file has changed since the last look.
    pub fn reload_if_changed(&self) -> Reload {
        // A poisoned lock means that a reload panicked; the watch in it is whole.
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        if watch.changed() { self.replace() } else { Reload::Unchanged }
    }

    /// Reloads now.
    pub fn reload(&self) -> Reload {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        // The look only brings the watch up to date with what is about to be read.
        watch.changed();
        self.replace()
    }

    /// The latest reloads, newest first.
    pub fn history(&self) -> Vec<PastReload> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.iter().rev().cloned().collect()
    }

    /// Where rules and policies come from.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    fn replace(&self) -> Reload {
        let reload = self.load_again();
        let (outcome, problems) = match &reload {
            Reload::Unchanged => ("unchanged", Vec::new()),
            Reload::Replaced(snapshot) => ("loaded", snapshot.warning().into_iter().collect()),
            Reload::Rejected(rejected) => ("rejected", rejected.problems.clone()),
        };
        let revision = self.snapshot().map(|snapshot| snapshot.revision.to_string()).unwrap_or_default();
        let past = PastReload { time: Timestamp::now(), outcome, revision, problems };
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        if history.len() == HISTORY_MAX {
            history.pop_front();
        }
        history.push_back(past);
        drop(history);
        reload
    }

    fn load_again(&self) -> Reload {
        let before = self.snapshot();
        match load(&self.sources, before.as_deref()) {
            Ok(mut after) if before.as_ref().is_some_and(|b| b.revision == after.revision) => {
                if let Some(before) = before.filter(|before| before.policies != after.policies) {
                    // The same policies from other files: nothing changes but what is told of them.
                    after.loaded = before.loaded;
                    self.current.store(Some(Arc::new(after)));
                }
                self.rejected.store(None);
                Reload::Unchanged
            }
            Ok(mut after) => {
                let file = |snapshot: &Snapshot| snapshot.policies.file(DEFAULT_POLICY).cloned();
                let lost = before.as_deref().and_then(file);
                after.default_lost = lost.filter(|_| file(&after).is_none());
                let after = Arc::new(after);
                self.current.store(Some(after.clone()));
                self.rejected.store(None);
                Reload::Replaced(after)
            }
            Err(error) => {
                let problems = error.to_string().lines().map(str::to_owned).collect();
                let rejected = Arc::new(Rejected { time: Timestamp::now(), problems });
                self.rejected.store(Some(rejected.clone()));
                Reload::Rejected(rejected)
            }
        }
    }
}
