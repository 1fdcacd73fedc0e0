//! Settings of the audit log.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::setting::Problem;

/// `audit`: one record per decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where records go.
    pub sink: SinkKind,
    /// The file of the sink `file`. Absent: `audit/audit.jsonl` below `data_dir`.
    pub path: Option<PathBuf>,
    /// The collector of the sink `otlp`, which takes gRPC, such as `http://localhost:4317`.
    pub otlp_endpoint: Option<String>,
    /// Size at which a new file is begun, in bytes.
    #[serde(with = "crate::setting::bytes")]
    pub file_bytes_max: usize,
    /// Files kept, the current one included; the oldest is deleted.
    #[serde(with = "crate::setting::count")]
    pub files_max: usize,
    /// Whether the lines of the sink `file` form a chain of hashes, which `portcullis audit verify --records` computes
    /// again.
    pub chain: bool,
    /// Memory for records that are not written yet, in bytes. When it is full, records are dropped and counted.
    #[serde(with = "crate::setting::bytes")]
    pub buffer_bytes_max: usize,
}

/// Where audit records go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkKind {
    /// A file, rotated by size.
    #[default]
    File,
    /// Standard output; log lines go to standard error, so that the two do not mix.
    Stdout,
    /// A collector of OpenTelemetry, as log records over OTLP/gRPC.
    Otlp,
    /// Nowhere: no record is made.
    None,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            sink: SinkKind::File,
            path: None,
            otlp_endpoint: None,
            file_bytes_max: 64 * 1024 * 1024,
            files_max: 5,
            chain: false,
            buffer_bytes_max: 8 * 1024 * 1024,
        }
    }
}

impl Config {
    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        /// The largest record: 100 findings and 100 unjudged checks. A smaller buffer could never take it.
        const BUFFER_BYTES_LEAST: usize = 256 * 1024;
        const FILE_BYTES_LEAST: usize = 64 * 1024;
        /// Every rotation renames all of them.
        const FILES_MOST: usize = 1000;
        if self.path.as_ref().is_some_and(|path| path.file_name().is_none()) {
            problems.push(Problem::new("path", "must name a file"));
        }
        let has_host = |endpoint: &String| {
            let uri = endpoint.strip_prefix("http://").and_then(|_| endpoint.parse::<http::Uri>().ok());
            uri.is_some_and(|uri| uri.host().is_some_and(|host| !host.is_empty()))
        };
        match &self.otlp_endpoint {
            None if self.sink == SinkKind::Otlp => {
                problems.push(Problem::new("otlp_endpoint", "must be set with `audit.sink: otlp`"));
            }
            // The endpoint is not repeated: it may hold a password.
            Some(endpoint) if !has_host(endpoint) => problems.push(Problem::new(
                "otlp_endpoint",
                "must be of the form http://HOST:PORT; records are sent over plain gRPC, to a collector nearby",
            )),
            _ => {}
        }
        if self.file_bytes_max < FILE_BYTES_LEAST {
            problems.push(Problem::new("file_bytes_max", "must be at least 64KiB"));
        }
        if !(1..=FILES_MOST).contains(&self.files_max) {
            problems.push(Problem::new("files_max", "must be from 1 to 1000"));
        }
        if self.chain && self.sink != SinkKind::File {
            problems
                .push(Problem::new("chain", "needs `audit.sink: file`, where records stay in their order"));
        }
        if self.buffer_bytes_max < BUFFER_BYTES_LEAST {
            problems.push(Problem::new("buffer_bytes_max", "must be at least 256KiB"));
        }
    }
}
