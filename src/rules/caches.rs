//! What regexes remember between searches, many regexes bounded together.
//!
//! A lazily built automaton keeps the states that texts have led it through; each has a bound of its own, and hundreds of
//! them at their bounds would hold gigabytes. So their sum is bounded too: beyond it all of them begin anew, which costs
//! time once and changes no answer.

use std::sync::{Mutex, PoisonError};

use regex_automata::meta::Cache;

/// Most bytes that the caches of one user hold together; one search may go beyond it by the bound of its regex. A text that
/// touches all built-in rules needs as much; with half of it, each rule of such a text begins anew.
const BYTES_MAX: usize = 64 << 20;
/// Most bytes that caches which nobody uses hold together, over all users.
const AT_REST_BYTES_MAX: usize = 64 << 20;
/// Kept for reuse. More users than this at once make new ones and drop them afterwards.
const AT_REST_MAX: usize = 8;

/// Caches of regexes, in slots of one or several.
pub(crate) struct Caches {
    slots: Vec<Vec<Option<Box<Cache>>>>,
    /// Bytes that they hold together.
    bytes: usize,
    /// Most that they may.
    bytes_max: usize,
}

impl Caches {
    /// So many slots, all empty.
    pub(crate) fn new(slots: usize) -> Self {
        Self::bounded(slots, BYTES_MAX)
    }

    /// The same for a user that needs less: at most so many bytes together.
    pub(crate) fn bounded(slots: usize, bytes_max: usize) -> Self {
        Self { slots: vec![Vec::new(); slots], bytes: 0, bytes_max }
    }

    /// Runs `search` with the cache in a slot of one, which it makes when it needs it.
    pub(crate) fn with<T>(&mut self, slot: usize, search: impl FnOnce(&mut Option<Box<Cache>>) -> T) -> T {
        self.with_several(slot, |caches| {
            caches.resize_with(1, || None);
            search(&mut caches[0])
        })
    }

    /// The same with all caches of a slot, of which it makes as many as it needs.
    pub(crate) fn with_several<T>(
        &mut self,
        slot: usize,
        search: impl FnOnce(&mut Vec<Option<Box<Cache>>>) -> T,
    ) -> T {
        let caches = &mut self.slots[slot];
        let before = size(caches);
        let out = search(caches);
        self.bytes = self.bytes.saturating_sub(before) + size(caches);
        if self.bytes > self.bytes_max {
            self.forget();
        }
        out
    }
}

fn size(caches: &[Option<Box<Cache>>]) -> usize {
    caches.iter().flatten().map(|cache| cache.memory_usage()).sum()
}

/// Something that holds memory which it can do without.
pub(crate) trait Forgetful {
    /// Bytes that it holds.
    fn bytes(&self) -> usize;

    /// Gives them back.
    fn forget(&mut self);
}

impl Forgetful for Caches {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn forget(&mut self) {
        self.slots.iter_mut().for_each(Vec::clear);
        self.bytes = 0;
    }
}

/// Those that nobody uses now, handed to one user at a time.
pub(crate) struct AtRest<T>(Mutex<Vec<T>>);

impl<T> Default for AtRest<T> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<T: Forgetful> AtRest<T> {
    /// The one that was used last.
    pub(crate) fn take(&self) -> Option<T> {
        self.list().pop()
    }

    /// Puts one back. It is dropped where there are enough, and forgets what it holds where all hold too much.
    pub(crate) fn give(&self, mut one: T) {
        let mut list = self.list();
        if list.len() < AT_REST_MAX {
            let bytes: usize = list.iter().map(T::bytes).sum();
            if bytes + one.bytes() > AT_REST_BYTES_MAX {
                one.forget();
            }
            list.push(one);
        }
    }

    /// A poisoned lock only means that another user panicked while it took or gave one back; the list is whole.
    fn list(&self) -> std::sync::MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use regex_automata::meta::Regex;

    use super::*;

    struct Held(usize);

    impl Forgetful for Held {
        fn bytes(&self) -> usize {
            self.0
        }

        fn forget(&mut self) {
            self.0 = 0;
        }
    }

    #[test]
    fn what_rests_is_bounded_in_number_and_bytes() {
        let rest = AtRest::default();
        for _ in 0..3 {
            rest.give(Held(AT_REST_BYTES_MAX / 2));
        }
        let bytes: Vec<usize> = std::iter::from_fn(|| rest.take()).map(|held| held.0).collect();
        assert_eq!(bytes, [0, AT_REST_BYTES_MAX / 2, AT_REST_BYTES_MAX / 2]);
        for _ in 0..2 * AT_REST_MAX {
            rest.give(Held(1));
        }
        assert_eq!(std::iter::from_fn(|| rest.take()).count(), AT_REST_MAX);
    }

    #[test]
    fn all_begin_anew_beyond_the_bound_and_find_the_same() {
        // Each counts how far back an `a` was: as many states as texts of that length.
        let regexes: Vec<Regex> = (12..52)
            .map(|gap| {
                let config =
                    Regex::config().hybrid_cache_capacity(4 << 20).dfa(false).onepass(false).backtrack(false);
                let builder = Regex::builder().configure(config).build(&format!("a[ab]{{{gap}}}b[0-9]"));
                builder.expect("a pattern")
            })
            .collect();
        let mut seed = 7_u32;
        let text: String = (0..30_000)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if seed >> 31 == 0 { 'a' } else { 'b' }
            })
            .collect();
        let text = format!("{text}{}b7", "a".repeat(60));
        let mut caches = Caches::new(regexes.len());
        let (mut largest, mut forgot) = (0, false);
        for (slot, regex) in regexes.iter().enumerate() {
            let before = caches.bytes;
            let found = caches.with(slot, |cache| {
                let cache = cache.get_or_insert_with(|| Box::new(regex.create_cache()));
                regex.search_with(cache, &regex_automata::Input::new(&text)).map(|found| found.range())
            });
            assert!(found.is_some(), "{slot}");
            assert_eq!(found, regex.find(&text).map(|found| found.range()), "{slot}");
            largest = largest.max(caches.bytes);
            forgot |= caches.bytes < before;
        }
        assert!(forgot && largest <= BYTES_MAX, "{largest}");
        let held: usize = caches.slots.iter().map(|caches| size(caches)).sum();
        assert_eq!(caches.bytes, held, "the sum is kept");
    }
}
