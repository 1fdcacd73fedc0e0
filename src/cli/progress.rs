//! How far long work has come: one line on standard error, on a terminal only, and only when it takes long.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What is over sooner needs no line.
const QUIET: Duration = Duration::from_millis(400);
/// How often the line is drawn.
const STEP: Duration = Duration::from_millis(100);
/// Width of the bar, in characters.
const WIDTH: usize = 24;
/// What turns while nobody knows how much is left.
const TURNING: [char; 4] = ['|', '/', '-', '\\'];

/// One line of progress. Dropping it takes the line away.
pub(super) struct Progress {
    is_shown: bool,
    begun: Instant,
    drawn: Option<Instant>,
}

impl Progress {
    /// Nothing is drawn yet.
    pub(super) fn new() -> Self {
        Self { is_shown: io::stderr().is_terminal(), begun: Instant::now(), drawn: None }
    }

    /// Draws a bar: `done` of `total` bytes.
    pub(super) fn bytes(&mut self, label: &str, done: u64, total: u64) {
        if self.is_due() {
            self.draw(&bar(label, done, total));
        }
    }

    /// Does `work` while something turns.
    pub(super) fn while_busy<T>(&mut self, label: &str, work: impl FnOnce() -> T) -> T {
        if !self.is_shown {
            return work();
        }
        let (ended, end) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut turn = TURNING.iter().cycle();
                while end.recv_timeout(STEP) == Err(mpsc::RecvTimeoutError::Timeout) {
                    if self.is_due()
                        && let Some(turn) = turn.next()
                    {
                        let seconds = self.begun.elapsed().as_secs();
                        self.draw(&format!("{label} {turn} {seconds} s"));
                    }
                }
            });
            let done = work();
            drop(ended);
            done
        })
    }

    /// Takes the line away, so that something else can be printed.
    pub(super) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }

    fn is_due(&self) -> bool {
        self.is_shown
            && self.begun.elapsed() >= QUIET
            && self.drawn.is_none_or(|drawn| drawn.elapsed() >= STEP)
    }

    fn draw(&mut self, line: &str) {
        // Nobody to tell means nothing to do.
        let _ = write!(io::stderr(), "\r\x1b[K{line}");
        self.drawn = Some(Instant::now());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn bar(label: &str, done: u64, total: u64) -> String {
    let done = done.min(total);
    let share = if total == 0 { 1.0 } else { done as f64 / total as f64 };
    let full = (share * WIDTH as f64) as usize;
    let (full, empty) = ("#".repeat(full), ".".repeat(WIDTH - full));
    let percent = (share * 100.0) as u32;
    format!("{label} [{full}{empty}] {percent:3} % of {}", size(total))
}

/// A number of bytes for a person.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "KB", "MB", "GB"];
    let (mut number, mut unit) = (bytes as f64, 0);
    // What would be shown as 1000 of one unit is 1 of the next.
    while number >= 999.95 && unit + 1 < UNITS.len() {
        number /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{number:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, wanted) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 KB"),
            (999_949, "999.9 KB"),
            (999_950, "1.0 MB"),
            (52_428_800, "52.4 MB"),
            (u64::MAX, "18446744073.7 GB"),
        ] {
            assert_eq!(size(bytes), wanted);
        }
    }

    #[test]
    fn bars_have_one_width() {
        for (done, total, percent) in [(0, 0, "100 %"), (0, 10, "  0 %"), (5, 10, " 50 %"), (11, 10, "100 %")]
        {
            let bar = bar("upload", done, total);
            assert!(bar.contains(percent), "{bar}");
            assert_eq!(bar.find(']'), Some("upload [".len() + WIDTH), "{bar}");
        }
    }

    #[test]
    fn work_is_done_whether_or_not_somebody_looks() {
        assert_eq!(Progress::new().while_busy("checking", || 7), 7);
    }
}
