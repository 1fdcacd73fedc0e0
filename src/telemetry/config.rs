//! Settings of log lines and of the export of spans.

use serde::{Deserialize, Serialize};
use tracing_subscriber::filter::Targets;

use crate::setting::Problem;

/// `log`: lines on standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// `error`, `warn`, `info`, `debug`, `trace` or `off`; also per module: `info,portcullis::policy=debug`.
    pub level: String,
    /// `json` for machines, `text` for people.
    pub format: LogFormat,
}

/// How a log line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// One JSON object a line.
    #[default]
    Json,
    /// For people; coloured on a terminal.
    Text,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Json }
    }
}

impl LogConfig {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        if self.targets().is_none() {
            let message = format!(
                "`{}` is not one of off, error, warn, info, debug, trace, or a list such as info,portcullis=debug",
                self.level
            );
            problems.push(Problem::new("level", message));
        }
    }

    /// The level as a filter; `None` when it cannot be read.
    pub(super) fn targets(&self) -> Option<Targets> {
        // A single word that is no level would be taken for the name of a module, and switch every line off.
        let directives = self.level.split(',').map(str::trim);
        let is_level = |word: &str| {
            let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic());
            is_word && word.parse::<tracing::level_filters::LevelFilter>().is_ok()
        };
        let has_default = directives.clone().any(is_level);
        let all_well_formed = directives.clone().all(|directive| {
            is_level(directive) || directive.split_once('=').is_some_and(|(_, level)| is_level(level))
        });
        if has_default && all_well_formed { self.level.parse().ok() } else { None }
    }
}

/// `tracing`: export of spans. Without an endpoint no span is made at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TracingConfig {
    /// OTLP collector that takes gRPC, such as `http://localhost:4317`. Absent: no spans.
    /// Environment: also `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub otlp_endpoint: Option<String>,
    /// Share of traces that are exported, from 0 to 1; a caller that already traces decides for its own.
    #[serde(with = "crate::setting::ratio")]
    pub sample_ratio: f64,
}

impl Default for TracingConfig {
    fn default() -> Self {
        Self { otlp_endpoint: None, sample_ratio: 1.0 }
    }
}

impl TracingConfig {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        let Some(endpoint) = &self.otlp_endpoint else { return };
        let has_host = endpoint
            .strip_prefix("http://")
            .and_then(|_| endpoint.parse::<http::Uri>().ok())
            .is_some_and(|uri| uri.host().is_some_and(|host| !host.is_empty()));
        if !has_host {
            // The endpoint is not repeated: it may hold a password.
            problems.push(Problem::new(
                "otlp_endpoint",
                "must be of the form http://HOST:PORT; spans are exported over plain gRPC, to a collector nearby",
            ));
        }
    }
}
