//! Series: those of one plugin and of one interceptor, and how a series is registered.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::PrometheusRecorder;

use super::definitions::{FAIL_OPEN, FINDINGS, INTERCEPTOR_DURATION, PLUGIN_DURATION, UNJUDGED, WOULD_BLOCK};
use crate::decision::{Hook, InterceptorOutcome, Reason, Severity};
use crate::telemetry::labels::{REASONS, reason_index};

/// The series of one interceptor.
#[derive(Debug)]
pub(super) struct InterceptorSeries {
    pub id: Arc<str>,
    pub duration: Histogram,
    /// By hook and outcome; most combinations never happen and have no series.
    pub runs: [[OnceLock<Counter>; InterceptorOutcome::ALL.len()]; Hook::ALL.len()],
}

/// The series of one plugin.
#[derive(Debug)]
pub(in crate::telemetry) struct PluginSeries {
    pub(super) id: Arc<str>,
    pub(in crate::telemetry) duration: Histogram,
    pub(in crate::telemetry) fail_open: Counter,
    pub(in crate::telemetry) would_block: Counter,
    unjudged: [Counter; REASONS.len()],
    pub(super) categories: HashMap<Arc<str>, [OnceLock<Counter>; Severity::ALL.len()]>,
    pub(super) other_category: [OnceLock<Counter>; Severity::ALL.len()],
}

impl PluginSeries {
    pub(super) fn new<'a>(
        recorder: &PrometheusRecorder,
        id: &str,
        declared: impl IntoIterator<Item = (&'a str, Severity)>,
    ) -> Self {
        let mut categories: HashMap<Arc<str>, [OnceLock<Counter>; Severity::ALL.len()]> = HashMap::new();
        for (category, severity) in declared {
            let slots = categories.entry(category.into()).or_default();
            slots[severity as usize].get_or_init(|| findings_counter(recorder, id, category, severity));
        }
        let label = [("plugin", id)];
        Self {
            id: id.into(),
            duration: histogram(recorder, PLUGIN_DURATION, &label),
            fail_open: counter(recorder, FAIL_OPEN, &label),
            would_block: counter(recorder, WOULD_BLOCK, &[("source", id)]),
            unjudged: REASONS
                .map(|reason| counter(recorder, UNJUDGED, &[("plugin", id), ("reason", reason.as_str())])),
            categories,
            other_category: Default::default(),
        }
    }

    pub(in crate::telemetry) fn unjudged(&self, reason: Reason) -> &Counter {
        &self.unjudged[reason_index(reason)]
    }
}

impl InterceptorSeries {
    pub(super) fn new(recorder: &PrometheusRecorder, id: &str) -> Self {
        let duration = histogram(recorder, INTERCEPTOR_DURATION, &[("interceptor", id)]);
        Self { id: id.into(), duration, runs: Default::default() }
    }
}

const METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

fn key(name: &'static str, labels: &[(&'static str, &str)]) -> Key {
    let labels: Vec<Label> =
        labels.iter().map(|(label, value)| Label::new(*label, (*value).to_owned())).collect();
    Key::from_parts(name, labels)
}

pub(super) fn counter(
    recorder: &PrometheusRecorder,
    name: &'static str,
    labels: &[(&'static str, &str)],
) -> Counter {
    recorder.register_counter(&key(name, labels), &METADATA)
}

pub(super) fn gauge(
    recorder: &PrometheusRecorder,
    name: &'static str,
    labels: &[(&'static str, &str)],
) -> Gauge {
    recorder.register_gauge(&key(name, labels), &METADATA)
}

pub(super) fn histogram(
    recorder: &PrometheusRecorder,
    name: &'static str,
    labels: &[(&'static str, &str)],
) -> Histogram {
    recorder.register_histogram(&key(name, labels), &METADATA)
}

pub(super) fn findings_counter(
    recorder: &PrometheusRecorder,
    plugin: &str,
    category: &str,
    severity: Severity,
) -> Counter {
    counter(
        recorder,
        FINDINGS,
        &[("plugin", plugin), ("category", category), ("severity", severity.as_str())],
    )
}
