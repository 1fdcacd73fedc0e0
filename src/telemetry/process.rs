//! What the process itself takes: processor, memory, files, threads.
//!
//! The names are those that client libraries of Prometheus share ("Process metrics" in its guide for writing clients), so
//! that panels made for other services fit. They are read when somebody asks, not before.

use std::fmt;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use metrics_process::Collector;

const PROCESSORS: &str = "portcullis_processors";
const PROCESSORS_HELP: &str = "Processors that the process may use: those of the machine, or fewer where a control group or affinity says so.";

/// Reads what the process takes.
pub(super) struct ProcessMetrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    collector: Collector,
}

impl ProcessMetrics {
    /// A reader of this process. Nothing global is touched.
    pub(super) fn new() -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        let collector = Collector::default();
        metrics::with_local_recorder(&recorder, || {
            collector.describe();
            metrics::describe_gauge!(PROCESSORS, PROCESSORS_HELP);
            // What cannot be told is left out rather than told as 0.
            if let Ok(count) = std::thread::available_parallelism() {
                metrics::gauge!(PROCESSORS).set(count.get() as f64);
            }
        });
        Self { handle: recorder.handle(), recorder, collector }
    }

    /// Every series as it stands now, in the Prometheus text format 0.0.4.
    pub(super) fn render(&self) -> String {
        metrics::with_local_recorder(&self.recorder, || self.collector.collect());
        self.handle.render()
    }
}

impl fmt::Debug for ProcessMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessMetrics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_process_takes_is_told_under_the_usual_names() {
        let text = ProcessMetrics::new().render();
        let value = |name: &str| {
            let line = text.lines().find(|line| line.split(' ').next() == Some(name));
            line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        };
        for (name, least) in [
            ("process_resident_memory_bytes", 1e6),
            ("process_cpu_seconds_total", 0.0),
            ("process_open_fds", 3.0),
            ("process_max_fds", 3.0),
            ("process_threads", 1.0),
            ("process_start_time_seconds", 1e9),
            (PROCESSORS, 1.0),
        ] {
            assert!(value(name).is_some_and(|value| value >= least), "{name}: {:?}\n{text}", value(name));
        }
    }
}
