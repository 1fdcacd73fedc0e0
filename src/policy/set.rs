//! All policies of one moment, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::schema::Located;
use super::snapshot::ancestors;
use super::values::{nearest, shown};
use super::{DEFAULT_POLICY, Policy, Problem, Suppression, Vocabulary, compile};

/// Hex digits of a revision: enough to tell the revisions of an installation apart, short enough to read aloud.
const REVISION_DIGITS: usize = 12;

/// The policies that are in force together. Immutable; always holds a policy named `default`.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySet {
    policies: BTreeMap<Arc<str>, Arc<Policy>>,
    /// The files of those that came from one.
    files: BTreeMap<Arc<str>, Arc<str>>,
    /// Every category that a file names. Two sets that say the same in other files are still not the same files.
    categories: Vec<Located<String>>,
    digest: String,
}

impl PolicySet {
    /// A set of `policies`, one of which is named `default`; `files` tells where each came from that is not built in.
    pub(super) fn new(
        policies: impl IntoIterator<Item = Policy>,
        files: BTreeMap<Arc<str>, Arc<str>>,
        categories: Vec<Located<String>>,
    ) -> Self {
        let policies = policies.into_iter().map(|policy| (policy.name().clone(), Arc::new(policy))).collect();
        let digest = digest(&policies);
        Self { policies, files, categories, digest }
    }

    /// The built-in default alone.
    pub fn built_in() -> Self {
        compile(&[], &Vocabulary::default()).expect("the embedded policy is valid: a test compiles it")
    }

    /// The policy of that name; the empty name means `default`.
    pub fn get(&self, name: &str) -> Option<&Arc<Policy>> {
        self.policies.get(if name.is_empty() { DEFAULT_POLICY } else { name })
    }

    /// The policy for requests that name none.
    pub fn default_policy(&self) -> &Arc<Policy> {
        self.get(DEFAULT_POLICY).expect("every set is built over the embedded default")
    }

    /// The file that the policy of that name came from, by its path; `None` for the one that is built in.
    pub fn file(&self, name: &str) -> Option<&Arc<str>> {
        self.files.get(name)
    }

    /// Every policy, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.policies.values()
    }

    /// SHA-256, in 64 hex digits, over what every policy says once everything inherited is written out. Comments and
    /// the order of keys do not change it.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The first 12 digits of [`Self::digest`].
    pub fn revision(&self) -> &str {
        &self.digest[..REVISION_DIGITS]
    }

    /// Categories that a file names, and that are neither among `known` nor above one of these nor below one of `open`:
    /// worth a warning, since what is said of them concerns nothing. No problem, as rules may come later than policies.
    pub fn unknown_categories(&self, known: &[&str], open: &[&str]) -> Vec<Problem> {
        let all: BTreeSet<&str> = known.iter().flat_map(|category| ancestors(category)).collect();
        let is_known =
            |name: &str| all.contains(name) || ancestors(name).any(|ancestor| open.contains(&ancestor));
        let names: Vec<&str> = all.iter().copied().collect();
        let problem = |named: &Located<String>| Problem {
            place: named.place.clone(),
            what: format!(
                "no rule has the category `{}`, so that this concerns nothing",
                shown(&named.value)
            ),
            fix: nearest(&named.value, &names).map_or_else(
                || "see `portcullis rules list` for the categories that there are".to_owned(),
                |name| format!("did you mean `{name}`?"),
            ),
        };
        self.categories.iter().filter(|named| !is_known(&named.value)).map(problem).collect()
    }

    /// Suppressions that no longer have an effect at `now`, with the policy that holds them: worth a warning, since
    /// their findings count again.
    pub fn expired_suppressions(&self, now: Timestamp) -> impl Iterator<Item = (&Policy, &Suppression)> {
        self.iter().flat_map(move |policy| {
            let expired = policy.suppressions().iter().filter(move |suppression| !suppression.is_active(now));
            expired.map(move |suppression| (policy.as_ref(), suppression))
        })
    }
}

fn digest(policies: &BTreeMap<Arc<str>, Arc<Policy>>) -> String {
    let mut hash = Sha256::new();
    for (name, policy) in policies {
        // Lengths keep the borders: no two different sets feed the same bytes.
        for piece in [name.as_ref(), policy.to_yaml().as_str()] {
            hash.update((piece.len() as u64).to_le_bytes());
            hash.update(piece);
        }
    }
    hash.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}"); // writing to a String cannot fail
        hex
    })
}
