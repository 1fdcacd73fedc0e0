//! How much work one bundle may make: a budget in units, not in time, so that a bundle always gets the same answer.
//!
//! A unit is at most a nanosecond of one processor of 2025, and mostly half of one in a release build. What a text costs hangs on
//! what is in it, by a factor of twenty; so the work itself is counted, where it is done. Reading comes first: what is left for
//! following scripts, making trees and taking disguises off never eats the reading of the files that are still to come.

/// Units for each byte of a large bundle: two seconds for 50 MB on a slow processor, with something to spare.
const UNITS_PER_BYTE: u64 = 40;
/// Units that every bundle may make, however small it is: those of 50 MB.
pub(super) const UNITS_MIN: u64 = 50_000_000 * UNITS_PER_BYTE;

/// A kind of work, and what a byte of it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Taking a byte out of the archive, twice at most, and hashing it.
    Unpack,
    /// Looking for the literals and shapes of all rules in a text, and splitting it into lines.
    Read,
    /// Folding letters that are not ASCII.
    Fold,
    /// Reading what folding, decoding and mapping make of a text.
    View,
    /// Reading the structure of a document, and looking for disguises of phrases in it.
    Structure,
    /// Looking for literals once more in a block of a document.
    Block,
    /// Making a tree of settings and walking it.
    Tree,
    /// Working out what a script does.
    Follow,
    /// Parsing a program on a thread of its own, and working out what it does.
    Program,
}

impl Task {
    /// Units for a byte.
    const fn units(self) -> u64 {
        match self {
            Self::Unpack => 4,
            Self::Block => 8,
            Self::Read | Self::Structure => 10,
            Self::View => 40,
            Self::Tree => 60,
            Self::Fold => 300,
            Self::Follow => 200,
            Self::Program => 300,
        }
    }

    /// Units for doing it once, however little there is: a thread, a parser, lists to be filled.
    const fn units_once(self) -> u64 {
        match self {
            Self::Unpack | Self::Read | Self::Fold | Self::View | Self::Structure => 2_000,
            Self::Block | Self::Tree => 5_000,
            Self::Follow => 12_000,
            Self::Program => 60_000,
        }
    }

    /// Units for so many bytes.
    const fn of(self, bytes: usize) -> u64 {
        self.units_once() + self.units().saturating_mul(bytes as u64)
    }
}

/// Units for what is found at one place: whether it is only described there, its line, its snippet.
pub(super) const PLACE: u64 = 8_000;

/// Units for a line, beside those for its bytes, as far as lines are shorter than any text has them.
const LINE: u64 = 40;
/// Bytes of such a line.
const LINE_BYTES: usize = 16;

/// Units for each byte of a text, and those for any text, from which looks of patterns count for more: where so many rules look
/// at the same text, their automata displace each other and are built anew.
const CROWDED_PER_BYTE: u64 = 150;
const CROWDED_ONCE: u64 = 500_000;
/// What such a unit counts for.
const CROWDED_FACTOR: u64 = 3;

/// Units for looks of patterns at a text of so many bytes that count nothing more yet.
const fn uncrowded(bytes: usize) -> u64 {
    CROWDED_ONCE + CROWDED_PER_BYTE.saturating_mul(bytes as u64)
}

/// The work of one bundle so far, and how much it may make.
#[derive(Debug)]
pub(super) struct Work {
    /// Unpacked bytes that are known of.
    bytes: u64,
    /// Bytes of them that were read, or given up.
    read: u64,
    spent: u64,
    /// Units that may be spent on any bundle.
    units_min: u64,
    is_over: bool,
}

impl Work {
    /// None yet. `units_min` may be made even of a bundle of few bytes.
    pub(super) const fn new(units_min: u64) -> Self {
        Self { bytes: 0, read: 0, spent: 0, units_min, is_over: false }
    }

    /// Counts so many unpacked bytes that are to be read.
    pub(super) fn expect(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.charge(Task::Unpack.units().saturating_mul(bytes));
    }

    /// Whether a text of so many bytes may be read; counts it if so.
    pub(super) fn may_read(&mut self, bytes: usize) -> bool {
        self.read = self.read.saturating_add(bytes as u64);
        self.take(Task::Read.of(bytes), 0)
    }

    /// Counts the lines of a text that is read: what looks at each of them costs the same for an empty one.
    pub(super) fn split(&mut self, text: &str) {
        let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        self.charge(LINE.saturating_mul(lines.saturating_sub(text.len() / LINE_BYTES) as u64));
    }

    /// Whether so many bytes of other work may be done; counts it if so.
    pub(super) fn may(&mut self, task: Task, bytes: usize) -> bool {
        let ahead = Task::Read.units().saturating_mul(self.bytes.saturating_sub(self.read));
        self.take(task.of(bytes), ahead)
    }

    /// Counts work that was done.
    pub(super) fn charge(&mut self, units: u64) {
        self.spent = self.spent.saturating_add(units);
    }

    /// Counts what patterns cost that looked at a text of so many bytes, and notes whether they stopped before its end.
    pub(super) fn looked(&mut self, cost: u64, bytes: usize, is_cut: bool) {
        let crowded = cost.saturating_sub(uncrowded(bytes));
        self.charge((cost - crowded).saturating_add(crowded.saturating_mul(CROWDED_FACTOR)));
        self.is_over |= is_cut;
    }

    /// What patterns may cost that look at a text of so many bytes now.
    pub(super) fn looks_left(&self, bytes: usize) -> u64 {
        let left = self.allowance().saturating_sub(self.spent);
        let plain = left.min(uncrowded(bytes));
        plain + (left - plain) / CROWDED_FACTOR
    }

    /// The same for so many bytes of a kind.
    pub(super) fn did(&mut self, task: Task, bytes: usize) {
        self.charge(task.of(bytes));
    }

    /// Units so far.
    pub(super) const fn spent(&self) -> u64 {
        self.spent
    }

    /// Whether something was left undone.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    fn allowance(&self) -> u64 {
        self.bytes.saturating_mul(UNITS_PER_BYTE).max(self.units_min)
    }

    fn take(&mut self, units: u64, kept_free: u64) -> bool {
        let fits = self.spent.saturating_add(units).saturating_add(kept_free) <= self.allowance();
        if fits {
            self.spent += units;
        }
        self.is_over |= !fits;
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(bytes: u64) -> Work {
        let mut work = Work::new(UNITS_MIN);
        work.expect(bytes);
        work
    }

    /// How many times so much of a task fits.
    fn times(work: &mut Work, task: Task, bytes: usize) -> usize {
        (0..1_000_000).take_while(|_| work.may(task, bytes)).count()
    }

    #[test]
    fn small_bundles_may_make_as_much_work_as_large_ones_and_reading_goes_before() {
        const MIB: usize = 1 << 20;
        for (bytes, task, least, most) in [
            (1_000, Task::Program, 6, 7),
            (8_000_000, Task::Program, 5, 6),
            // A third of the allowance is for taking out and reading.
            (50_000_000, Task::Program, 4, 5),
            (200_000_000, Task::Program, 16, 19),
            (1_000, Task::View, 44, 50),
            (1_000, Task::Tree, 29, 33),
        ] {
            let mut work = work(bytes);
            let count = times(&mut work, task, MIB);
            assert!((least..=most).contains(&count), "{bytes} {task:?}: {count}");
            assert!(work.is_over());
            let pieces = bytes as usize / MIB;
            assert!((0..pieces).all(|_| work.may_read(MIB)), "{bytes} {task:?}: reading is kept free");
        }
    }

    #[test]
    fn looks_stop_where_the_allowance_ends_and_count_for_more_in_a_crowd() {
        for (bytes, cost, spent) in [
            (0, CROWDED_ONCE, CROWDED_ONCE),
            (10_000, CROWDED_ONCE + 1_500_000, CROWDED_ONCE + 1_500_000),
            (10_000, CROWDED_ONCE + 1_500_007, CROWDED_ONCE + 1_500_021),
        ] {
            let mut work = Work::new(UNITS_MIN);
            work.looked(cost, bytes, false);
            assert_eq!((work.spent(), work.is_over()), (spent, false), "{bytes} {cost}");
        }
        for bytes in [0, 1 << 20, 1 << 30] {
            let mut work = Work::new(UNITS_MIN);
            work.looked(work.looks_left(bytes), bytes, true);
            assert!(work.is_over() && work.spent().abs_diff(UNITS_MIN) < CROWDED_FACTOR, "{bytes}");
            assert!(work.looks_left(bytes) < CROWDED_FACTOR && !work.may_read(1), "{bytes}");
        }
    }

    #[test]
    fn what_was_done_counts_and_many_small_things_do() {
        let mut work = work(50_000_000);
        assert!(work.may_read(50_000_000) && !work.is_over());
        work.charge(UNITS_MIN);
        assert!(!work.may_read(1) && !work.may(Task::View, 1) && work.is_over());
        let mut small = Work::new(UNITS_MIN);
        assert!(times(&mut small, Task::Program, 1) < 36_000);
    }
}
