//! Findings of texts seen before.
//!
//! An agent sends its whole history with every turn, so most texts of a request were scanned a turn ago. What is kept is
//! what the scan found, before policy, so a hit answers exactly what a scan would.
//!
//! The key is a SHA-256 over the text and everything else that changes what is found: a caller who could make two texts
//! collide could have the findings of a harmless one returned for a harmful one.

use std::sync::Arc;

use moka::sync::Cache;
use sha2::{Digest, Sha256};

use super::CacheConfig;
use crate::detect::Scanned;
use crate::rules::{CountrySet, Role, Surface};

/// Bytes one entry costs besides its findings: key, pointers, bookkeeping of the cache; measured, rounded up.
const ENTRY_BYTES: usize = 256;
/// Bytes one finding costs.
const FINDING_BYTES: usize = 64;
/// Texts below this are scanned in less time than the cache takes.
const TEXT_BYTES_MIN: usize = 48;

/// Identity of a scan.
pub(super) type Key = [u8; 32];

/// What of the rules a scan runs.
#[derive(Clone, Copy)]
pub(super) struct ScanScope<'a> {
    /// Plugins, as bits of the rule set.
    pub plugins: u32,
    /// Countries whose rules run; empty means all.
    pub countries: &'a CountrySet,
}

/// A bounded cache of scans.
pub struct FindingCache {
    entries: Option<Cache<Key, Arc<Scanned>>>,
}

impl FindingCache {
    /// A cache as configured.
    pub fn new(config: &CacheConfig) -> Self {
        let entries = config.enabled.then(|| {
            Cache::builder()
                .max_capacity(config.bytes_max as u64)
                .weigher(|_: &Key, scanned: &Arc<Scanned>| {
                    u32::try_from(ENTRY_BYTES + scanned.findings.len() * FINDING_BYTES).unwrap_or(u32::MAX)
                })
                .build()
        });
        Self { entries }
    }

    /// The key of a scan; `None` when it is not worth keeping.
    ///
    /// `rules_revision` stands for the rules and the version of the detectors, so a reload forgets everything.
    pub(super) fn key(
        &self,
        tenant: &str,
        text: &str,
        role: Role,
        surface: Surface,
        scope: ScanScope<'_>,
        rules_revision: &str,
    ) -> Option<Key> {
        if self.entries.is_none() || text.len() < TEXT_BYTES_MIN {
            return None;
        }
        let mut hash = Sha256::new();
        hash.update([role as u8, surface as u8]);
        // Nobody learns from a quick answer what another tenant sent.
        hash.update((tenant.len() as u64).to_le_bytes());
        hash.update(tenant);
        hash.update(scope.plugins.to_le_bytes());
        scope.countries.bytes().for_each(|word| hash.update(word));
        hash.update((rules_revision.len() as u64).to_le_bytes());
        hash.update(rules_revision);
        hash.update(text);
        Some(hash.finalize().into())
    }

    /// What the scan found, if it is known.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Scanned>> {
        self.entries.as_ref()?.get(key)
    }

    /// Remembers a scan that ran to its end.
    pub(super) fn put(&self, key: Key, scanned: Arc<Scanned>) {
        if let Some(entries) = &self.entries {
            entries.insert(key, scanned);
        }
    }

    /// Entries and bytes held, as far as the cache has settled its books.
    pub fn usage(&self) -> (u64, u64) {
        self.entries.as_ref().map_or((0, 0), |e| (e.entry_count(), e.weighted_size()))
    }
}
