//! Reading what was counted: the text that Prometheus scrapes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use metrics_exporter_prometheus::PrometheusHandle;

use super::definitions::{LLM_COST, LLM_COST_HELP, POLICY_INFO, POLICY_INFO_HELP};
use crate::telemetry::process::ProcessMetrics;

/// Reads what was counted.
#[derive(Clone, Debug)]
pub struct MetricsHandle {
    pub(super) handle: PrometheusHandle,
    pub(super) policy_revision: Arc<ArcSwapOption<Box<str>>>,
    pub(super) llm_cost: Arc<LlmCost>,
    pub(super) process: Arc<ProcessMetrics>,
}

/// Billionths of a US dollar by kind of provider.
pub(super) type LlmCost = Mutex<BTreeMap<&'static str, u64>>;

impl MetricsHandle {
    /// Every series in the Prometheus text format 0.0.4.
    pub fn render(&self) -> String {
        let mut text = self.handle.render();
        if let Some(revision) = self.policy_revision.load().as_deref() {
            let revision = escape_label(revision);
            // OK because writing to a String cannot fail.
            let _ = write!(
                text,
                "# HELP {POLICY_INFO} {POLICY_INFO_HELP}\n# TYPE {POLICY_INFO} gauge\n\
                 {POLICY_INFO}{{revision=\"{revision}\"}} 1\n"
            );
        }
        let costs = self.llm_cost.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, (backend, nanos)) in costs.iter().enumerate() {
            if index == 0 {
                let _ = write!(text, "# HELP {LLM_COST} {LLM_COST_HELP}\n# TYPE {LLM_COST} counter\n");
            }
            let dollars = *nanos as f64 / 1e9;
            let _ = writeln!(text, "{LLM_COST}{{backend=\"{backend}\"}} {dollars}");
        }
        text.push_str(&self.process.render());
        text
    }

    /// Sums up the samples of histograms. Without it they stay in memory until the next scrape.
    pub fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }
}

fn escape_label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
