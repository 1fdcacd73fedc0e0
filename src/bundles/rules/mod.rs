//! The rules of the static scan of bundles as data: what calls mean, which of them are findings, and patterns over texts.
//!
//! Files lie in `rules/bundles` and make one set. An `[[api]]` gives the functions of libraries classes and says what they
//! return; a `[[flow]]` says what functions of other languages do with values, and a `[[language]]` how those are written. A
//! `[[rule]]` looks at calls (`[rule.call]`, over parsed Python and JavaScript), at text (`[rule.text]`, over documents and
//! configuration) or at where values go (`[rule.flow]`, over programs in other languages). Loading is pure; the engines beside this module do the looking.

mod builtin;
mod compact;
mod lists;
mod load;
mod phrases;
mod rule;
mod selfcheck;

use std::collections::{HashMap, HashSet};

use regex_automata::meta::Regex;

use super::flow::FlowFacts;
use crate::rules::RuleProblems;

pub use builtin::{builtin_bundle_sources, builtin_rule_ids, builtin_rule_kinds};
pub(in crate::bundles) use lists::after_scheme;
pub use lists::{CommandKind, HostKind, WordKind};
pub use load::BundleRuleSource;
pub(in crate::bundles) use load::short as short_pattern;
pub use phrases::PhraseKind;
pub use rule::{Api, BundleRule, CallCondition, Examples, FlowCondition, Matcher, Provider, TextCondition};
pub use selfcheck::BundleSelfCheck;

/// The name under which the rules about bundles are listed.
pub const BUNDLES: &str = "bundles";

/// A set of rules and of facts about libraries, ready to use.
#[derive(Debug, Default)]
pub struct BundleRules {
    rules: Vec<BundleRule>,
    apis: Vec<Api>,
    /// Entries of `apis` by canonical name, in the order of files.
    by_name: HashMap<String, Vec<usize>>,
    /// Entries of `apis` by the last part of a name whose owner may be anything (`*.name`).
    by_method: HashMap<String, Vec<usize>>,
    /// Rules about calls by the class or name that they are about.
    by_target: HashMap<String, Vec<usize>>,
    /// First parts of canonical names: the modules that something is known of.
    modules: HashSet<String>,
    providers: Vec<Provider>,
    secret_places: Option<Regex>,
    chat_places: Option<Regex>,
    lists: lists::Lists,
    flows: FlowFacts,
    phrases: phrases::Phrases,
}

impl BundleRules {
    /// Compiles rule files. Several files are one set: ids are unique over all of them, and a rule may name a class of
    /// another file.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with any of them, with file and line.
    pub fn load(sources: &[BundleRuleSource<'_>]) -> Result<Self, RuleProblems> {
        load::load(sources)
    }

    /// Every rule, in the order of files and lines.
    pub fn rules(&self) -> &[BundleRule] {
        &self.rules
    }

    /// Whether something is known of a module of that name.
    pub fn is_module(&self, name: &str) -> bool {
        self.modules.contains(name)
    }

    /// Whose secret a variable of the environment is, as far as its name says so.
    pub fn provider_of(&self, variable: &str) -> Option<&Provider> {
        self.providers
            .iter()
            .find(|provider| provider.variables.iter().any(|start| variable.starts_with(&**start)))
    }

    /// Whether a path, in lower case, is of a file of secrets.
    pub fn is_secret_place(&self, path: &str) -> bool {
        self.secret_places.as_ref().is_some_and(|pattern| pattern.is_match(path))
    }

    /// What is known of functions and of how programs are written, in languages that no parser reads.
    pub(in crate::bundles) const fn flows(&self) -> &FlowFacts {
        &self.flows
    }

    /// Whether a path, in lower case, is of a file of secrets that is worth sending: not of what its owner shows to others.
    pub(in crate::bundles) fn is_private_place(&self, path: &str) -> bool {
        const SHOWN: &[&str] = &[".pub", "known_hosts", "authorized_keys", ".ssh/config", ".aws/config"];
        self.is_secret_place(path) && !SHOWN.iter().any(|end| path.ends_with(end))
    }

    /// Whether a path, in lower case, is of conversations with an agent, its memory or instructions.
    pub fn is_chat_place(&self, path: &str) -> bool {
        self.chat_places.as_ref().is_some_and(|pattern| pattern.is_match(path))
    }

    /// The pattern of the phrases of a kind.
    pub(in crate::bundles) fn phrase(&self, kind: PhraseKind) -> Option<&Regex> {
        self.phrases.of(kind)
    }

    /// What is wrong with the phrases: a test asks, and so does the check of rule files.
    pub fn phrase_problems(&self) -> Vec<String> {
        self.phrases.problems()
    }

    /// Hosts of a kind, in lower case, in the order of files.
    pub fn hosts(&self, kind: HostKind) -> &[String] {
        self.lists.hosts(kind)
    }

    /// Whether an address is one of a documented installer.
    pub fn is_installer(&self, url: &str) -> bool {
        self.lists.is_installer(url)
    }

    /// Whether a rule about commands, by its id, means this in a bundle.
    pub fn is_command(&self, kind: CommandKind, rule: &str) -> bool {
        self.lists.is_command(kind, rule)
    }

    /// Words of a kind, in the order of files.
    pub fn words(&self, kind: WordKind) -> &[String] {
        self.lists.words(kind)
    }

    /// Whether a word is of a kind.
    pub fn has_word(&self, kind: WordKind, word: &str) -> bool {
        self.words(kind).iter().any(|known| known == word)
    }

    /// Indices of the rules about calls of a class or of a canonical name.
    pub fn rules_on(&self, target: &str) -> &[usize] {
        self.by_target.get(target).map_or(&[], Vec::as_slice)
    }

    /// What is known of a function, by its canonical name such as `os.system`; several entries may speak of one.
    pub fn apis_of(&self, name: &str) -> impl Iterator<Item = &Api> {
        let exact = self.by_name.get(name).into_iter();
        let method = name.rsplit('.').next().and_then(|method| self.by_method.get(method)).into_iter();
        exact.chain(method).flatten().map(|index| &self.apis[*index])
    }
}
