//! The audit log: one record per decision, under the id that the caller got.
//!
//! The caller's thread writes the record as one JSON line into a bounded buffer; a writer thread sleeps until the
//! buffer has its first line, gathers for at most 20 ms, and hands whole lines to the sink. A request never waits for a
//! disk: when the buffer is full or the sink fails, records are dropped and every one of them is counted.
//!
//! Invariant: a record never holds matched text. What the caller named itself by is masked, and cut to 256 bytes a value.
//! Invariant: lines are whole. A line that was torn by a failed write is taken back, or at least ended.
//!
//! Durability: `kill -9` loses what was decided in the last 20 ms (and, while the sink is slower than the decisions
//! come, what still stands in the buffer). Lines are handed to the operating system, not forced onto the disk: a power
//! cut can lose more.

mod buffer;
mod chain;
mod config;
mod masked;
mod recent;
mod record;
mod sink;

#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use metrics::Counter;

use buffer::{Buffer, Full};
pub use chain::{ChainBreak, ChainEnd, ChainReport, verify_chain};
pub use config::{Config, SinkKind};
pub use masked::{MaskedText, Piece, masked_name};
pub use recent::{REMEMBERED_FINDINGS_MAX, Recent, Remembered, Run, Weighed};
pub use record::{AuditRecord, BundleLine, Caller, IncidentLine, Interception, InterceptorRun};
pub use sink::{FileSink, MemorySink, Sink, WriteError};

use crate::setting::system_problem;
use crate::threads;

/// How long the writer gathers records before it writes.
const GATHER: Duration = Duration::from_millis(20);

/// How long a dropped log waits for its last records.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Whom the log tells about its fate. The log knows no metrics of its own.
pub struct Hooks {
    /// Records taken for writing.
    pub records: Counter,
    /// Decisions without a record, as the policy asked.
    pub sampled_out: Counter,
    /// Called with the number of records just lost and the cause.
    pub on_dropped: OnDropped,
}

/// Called with the number of records just lost and the cause.
pub type OnDropped = Box<dyn Fn(u64, &dyn Display) + Send + Sync>;

impl Hooks {
    /// Hooks that tell nobody.
    pub fn silent() -> Self {
        Self { records: Counter::noop(), sampled_out: Counter::noop(), on_dropped: Box::new(|_, _| {}) }
    }
}

/// Why the audit log could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file or its folder could not be made or opened.
    #[error("could not open the audit log `{path}` of audit.path: {}", system_problem(.cause))]
    File {
        /// The file.
        path: String,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The collector cannot be spoken to.
    #[error("could not set up the export of audit records")]
    Collector(#[source] io::Error),
    /// The writer thread could not be started.
    #[error("could not start the writer of the audit log")]
    Thread(#[source] io::Error),
}

/// Takes records. Share it behind an `Arc`; dropping the last one writes what is left.
pub struct AuditLog {
    /// `None` when no sink wants records: then none is built.
    writer: Option<Writer>,
    hooks: Arc<Hooks>,
}

struct Writer {
    buffer: Arc<Buffer>,
    /// A flush has waited in vain: the end need not wait once more.
    is_stuck: AtomicBool,
    thread: Option<JoinHandle<()>>,
}

impl AuditLog {
    /// Opens the log that the settings ask for. `path` is the file of the file sink; `collector` makes the sink that sends
    /// to an endpoint, which is for another module to know.
    ///
    /// # Errors
    /// The file cannot be opened, or the endpoint not be used; a later failure of the sink is not an error but drops
    /// records.
    pub fn open(
        config: &Config,
        path: &Path,
        collector: impl FnOnce(&str) -> io::Result<Box<dyn Sink>>,
        hooks: Hooks,
    ) -> Result<Self, OpenError> {
        let sink: Box<dyn Sink> = match config.sink {
            SinkKind::None => return Ok(Self::off(hooks)),
            SinkKind::Stdout => Box::new(sink::StdoutSink),
            SinkKind::Otlp => collector(config.otlp_endpoint.as_deref().unwrap_or_default())
                .map_err(OpenError::Collector)?,
            SinkKind::File => {
                let opened = FileSink::open(path, config.file_bytes_max, config.files_max);
                let opened = opened.and_then(|sink| if config.chain { sink.chained() } else { Ok(sink) });
                let file = |cause| OpenError::File { path: path.display().to_string(), cause };
                Box::new(opened.map_err(file)?)
            }
        };
        Self::with_sink(sink, config.buffer_bytes_max, hooks)
    }

    /// A log that takes no records.
    pub fn off(hooks: Hooks) -> Self {
        Self { writer: None, hooks: Arc::new(hooks) }
    }

    /// A log that writes to `sink` through a buffer of at most `buffer_bytes_max` bytes.
    ///
    /// # Errors
    /// The writer thread cannot be started.
    pub fn with_sink(sink: Box<dyn Sink>, buffer_bytes_max: usize, hooks: Hooks) -> Result<Self, OpenError> {
        let (hooks, buffer) = (Arc::new(hooks), Arc::new(Buffer::new(buffer_bytes_max)));
        let thread = std::thread::Builder::new().name("audit-writer".to_owned()).spawn({
            let (hooks, buffer) = (Arc::clone(&hooks), Arc::clone(&buffer));
            move || {
                threads::give_way(threads::KEEPING);
                write_batches(&buffer, sink, &hooks);
            }
        });
        let thread = Some(thread.map_err(OpenError::Thread)?);
        Ok(Self { writer: Some(Writer { buffer, is_stuck: AtomicBool::new(false), thread }), hooks })
    }

    /// Records one decision. `build` runs only when a sink wants records. Never blocks on IO and never fails: what
    /// cannot be kept is counted as dropped.
    pub fn record<'a>(&self, build: impl FnOnce() -> AuditRecord<'a>) {
        let Some(writer) = &self.writer else { return };
        match record::with_line(&build(), |line| writer.buffer.push(line)) {
            Ok(()) => self.hooks.records.increment(1),
            Err(Full) => (self.hooks.on_dropped)(1, &"buffer full"),
        }
    }

    /// Records an ALLOW if it falls into the share `keep` (0.0 to 1.0) that the policy wants, and counts it as sampled
    /// out if not. The choice depends on `decision_id` alone, so that every sink and replica would choose alike.
    pub fn record_sampled<'a>(&self, decision_id: &str, keep: f64, build: impl FnOnce() -> AuditRecord<'a>) {
        if is_kept(decision_id, keep) {
            self.record(build);
        } else if self.writer.is_some() {
            self.hooks.sampled_out.increment(1);
        }
    }

    /// Waits until everything recorded so far was handed to the sink, at most `timeout`. Returns whether it was.
    /// Blocks: call it from a thread that may.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.writer.as_ref().is_none_or(|writer| {
            let is_written = writer.buffer.flush(timeout);
            writer.is_stuck.store(!is_written, Ordering::Relaxed);
            is_written
        })
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        let Some(Writer { buffer, is_stuck, thread }) = &mut self.writer else { return };
        let timeout = if *is_stuck.get_mut() { Duration::ZERO } else { CLOSE_TIMEOUT };
        let is_written = buffer.close(timeout);
        // A thread that hangs in its sink is left to itself: the process is about to end.
        if let Some(thread) = thread.take().filter(|_| is_written) {
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuditLog").field("is_on", &self.writer.is_some()).finish_non_exhaustive()
    }
}

/// The writer thread: batches from the buffer to the sink until the buffer is closed and empty.
fn write_batches(buffer: &Buffer, mut sink: Box<dyn Sink>, hooks: &Hooks) {
    let mut batch = Vec::new();
    while buffer.next_batch(&mut batch, GATHER) {
        if let Err(sink::WriteError { lost, cause }) = sink.write(&batch) {
            (hooks.on_dropped)(lost, &system_problem(&cause));
        }
        buffer.batch_done();
        batch.clear();
        // One burst must not keep its memory for ever.
        batch.shrink_to(64 * 1024);
    }
}

/// Whether a decision falls into the share `keep` of all.
fn is_kept(decision_id: &str, keep: f64) -> bool {
    if keep >= 1.0 {
        return true;
    }
    // FNV-1a, then a finaliser, since ids of one millisecond differ in their last characters only.
    let hash = decision_id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let hash = (hash ^ (hash >> 32)) >> 11;
    // 53 bits, so that the share is exact.
    (hash as f64) < keep * (1_u64 << 53) as f64
}
