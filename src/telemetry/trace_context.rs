//! The trace a caller is in, as its W3C `traceparent` header says.

use http::HeaderMap;
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

/// The context that the headers carry; an empty one when they carry none or a malformed one.
pub fn extract(headers: &HeaderMap) -> Context {
    TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(headers))
}

/// Makes `span` a child of the caller's. Costs nothing when spans are off.
pub fn adopt(span: &Span, headers: &HeaderMap) {
    if span.is_disabled() || !headers.contains_key("traceparent") {
        return;
    }
    // An error means that no exporter is installed, and then there is no trace to join.
    let _ = span.set_parent(extract(headers));
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::TraceContextExt as _;

    use super::*;

    #[test]
    fn traceparent_is_read() {
        let cases = [
            (
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                Some("0af7651916cd43dd8448eb211c80319c"),
            ),
            ("00-00000000000000000000000000000000-b7ad6b7169203331-01", None),
            ("rubbish", None),
        ];
        for (header, trace_id) in cases {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", header.parse().unwrap());
            let context = extract(&headers);
            let span = context.span();
            let span_context = span.span_context();
            let found = span_context.is_valid().then(|| span_context.trace_id().to_string());
            assert_eq!(found.as_deref(), trace_id, "{header}");
        }
    }
}
