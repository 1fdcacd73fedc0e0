//! Log lines to standard error, and the optional export of spans over OTLP.
//!
//! Log lines come from events alone. Spans exist for the exporter alone: without an endpoint no layer is interested in
//! them, so that a span costs one comparison and nothing of OpenTelemetry runs.

use std::io::IsTerminal as _;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::WithExportConfig as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::{FilterExt as _, LevelFilter, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

use super::config::{LogConfig, LogFormat, TracingConfig};

/// How long one batch of spans may take to be sent, and how long a stop waits for the last one.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The level cannot be read; `LogConfig::check` says why.
    #[error("log level `{0}` cannot be read")]
    Level(String),
    /// The exporter of spans could not be built.
    #[error("could not set up the export of spans")]
    Exporter(#[source] opentelemetry_otlp::ExporterBuildError),
    /// Another subscriber is installed already.
    #[error("logging was set up before")]
    AlreadySet,
}

/// Keeps the export of spans alive. Call `shutdown` before the process ends, or the last spans are lost.
#[derive(Debug)]
#[must_use = "the last spans are lost unless `shutdown` is called"]
pub struct Logging {
    provider: Option<SdkTracerProvider>,
}

impl Logging {
    /// Sends the last spans, waiting at most 5 s. Blocks: call it from a thread that may.
    pub fn shutdown(self) {
        let Some(provider) = self.provider else { return };
        if let Err(error) = provider.shutdown_with_timeout(EXPORT_TIMEOUT) {
            tracing::warn!(%error, "the last spans could not be exported");
        }
    }
}

/// Sets up log lines and, when an endpoint is configured, the export of spans, for the whole process.
///
/// With an endpoint it must be called inside a tokio runtime, which the exporter uses.
///
/// # Errors
/// See `LoggingError`; an unreachable collector is none, its spans are dropped.
pub fn init(log: &LogConfig, tracing: &TracingConfig) -> Result<Logging, LoggingError> {
    let lines = lines_layer(log, std::io::stderr, std::io::stderr().is_terminal())?;
    let provider =
        tracing.otlp_endpoint.as_deref().map(|to| provider(to, tracing.sample_ratio)).transpose()?;
    let lines = Registry::default().with(lines);
    // An absent layer would count as one that wants every span, those inside of HTTP/2 included: nearly half of
    // the processor time of a short call. Hence two subscribers, and hints that let a span be refused before it is made.
    let installed = match &provider {
        Some(provider) => {
            let tracer = provider.tracer(env!("CARGO_PKG_NAME"));
            let own = filter_fn(is_own_span).with_max_level_hint(LevelFilter::INFO);
            let spans = tracing_opentelemetry::layer().with_tracer(tracer).with_filter(own);
            tracing::subscriber::set_global_default(lines.with(spans))
        }
        None => tracing::subscriber::set_global_default(lines),
    };
    installed.map_err(|_| LoggingError::AlreadySet)?;
    Ok(Logging { provider })
}

/// The layer that writes one line per event.
fn lines_layer<S, W>(log: &LogConfig, writer: W, is_terminal: bool) -> Result<impl Layer<S>, LoggingError>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let targets = log.targets().ok_or_else(|| LoggingError::Level(log.level.clone()))?;
    let base = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(is_terminal);
    let layer = match log.format {
        LogFormat::Json => {
            base.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
        }
        LogFormat::Text => base.boxed(),
    };
    let events = filter_fn(|metadata: &Metadata<'_>| metadata.is_event());
    // Without a hint of its own this filter would hide that of the levels.
    Ok(layer.with_filter(targets.and(events.with_max_level_hint(LevelFilter::TRACE))))
}

/// Spans of libraries tell about their insides, not about what an operator asked to see.
fn is_own_span(metadata: &Metadata<'_>) -> bool {
    metadata.is_span()
        && *metadata.level() <= tracing::Level::INFO
        && metadata.target().split("::").next() == Some(env!("CARGO_PKG_NAME"))
}

fn provider(endpoint: &str, sample_ratio: f64) -> Result<SdkTracerProvider, LoggingError> {
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .with_timeout(EXPORT_TIMEOUT)
        .build()
        .map_err(LoggingError::Exporter)?;
    let resource = Resource::builder()
        .with_service_name(env!("CARGO_PKG_NAME"))
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        // A caller that traces has decided already; the ratio is for traces that begin here.
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(sample_ratio))))
        .with_resource(resource)
        .build())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Buffer {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap()
        }
    }

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(level: &str, format: LogFormat, act: impl FnOnce()) -> String {
        let buffer = Buffer::default();
        let for_writer = buffer.clone();
        let log = LogConfig { level: level.to_owned(), format };
        let layer = lines_layer(&log, move || for_writer.clone(), false).unwrap();
        tracing::subscriber::with_default(Registry::default().with(layer), act);
        buffer.text()
    }

    #[test]
    fn a_line_is_one_json_object() {
        let text = logged("info", LogFormat::Json, || {
            tracing::info!(count = 3, "first\nline");
            tracing::debug!("unheard");
        });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1, "{text}");
        let line: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
        assert_eq!(line["message"], "first\nline");
        assert_eq!(line["count"], 3);
        assert_eq!(line["level"], "INFO");
    }

    #[test]
    fn text_has_no_colours_where_there_is_no_terminal() {
        let text = logged("warn,portcullis=debug", LogFormat::Text, || tracing::debug!("heard"));
        assert!(text.contains("DEBUG") && text.ends_with("heard\n") && !text.contains('\x1b'), "{text:?}");
    }

    #[test]
    fn without_an_exporter_no_span_is_made() {
        logged("trace", LogFormat::Json, || {
            assert!(tracing::info_span!("request").is_disabled());
        });
    }

    #[test]
    fn levels_that_would_silence_everything_are_refused() {
        for (level, good) in [
            ("info", true),
            ("off", true),
            ("info,portcullis::policy=debug", true),
            ("verbose", false),
            ("", false),
            ("portcullis=debug", false),
            ("info,portcullis=loud", false),
        ] {
            assert_eq!(
                LogConfig { level: level.to_owned(), format: LogFormat::Json }.targets().is_some(),
                good,
                "{level}"
            );
        }
    }

    /// The exporter really connects, and a collector that hangs up does not keep the process from ending.
    #[tokio::test(flavor = "multi_thread")]
    async fn spans_are_sent_to_the_endpoint() {
        use opentelemetry::trace::{Span as _, Tracer as _};
        use tokio::io::AsyncReadExt as _;

        let collector = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let provider = provider(&format!("http://{}", collector.local_addr().unwrap()), 1.0).unwrap();
        provider.tracer("test").start("request").end();
        let stopped = tokio::task::spawn_blocking(|| Logging { provider: Some(provider) }.shutdown());
        let (mut connection, _) = collector.accept().await.unwrap();
        let mut preface = [0; 14];
        connection.read_exact(&mut preface).await.unwrap();
        assert_eq!(&preface, b"PRI * HTTP/2.0");
        drop((connection, collector));
        stopped.await.unwrap();
    }
}
