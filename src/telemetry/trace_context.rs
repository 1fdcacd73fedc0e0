//! The trace a caller is in, as its W3C `traceparent` header says, and what it says of it in `tracestate`.
//!
//! The state is text of strangers that is exported with each span. It is read by the grammar of the recommendation (W3C Trace
//! Context, 3.3), bounded as that says, and members that look confidential are left out.

use http::HeaderMap;
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Longest state that is passed on, in bytes, and most members of it (W3C Trace Context, 3.3.1.1 and 3.3.1.5).
const STATE_BYTES_MAX: usize = 512;
const STATE_MEMBERS_MAX: usize = 32;
const STATE: &str = "tracestate";

struct Headers<'a> {
    headers: &'a HeaderMap,
    /// The state that is passed on; empty for none.
    state: String,
}

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            STATE => Some(&*self.state).filter(|state| !state.is_empty()),
            key => self.headers.get(key)?.to_str().ok(),
        }
    }

    fn keys(&self) -> Vec<&str> {
        self.headers.keys().map(http::HeaderName::as_str).collect()
    }
}

/// The context that the headers carry; an empty one when they carry none or a malformed one. Of its state the members pass
/// that are not confidential.
pub fn extract(headers: &HeaderMap, is_confidential: impl Fn(&str) -> bool) -> Context {
    let headers = Headers { headers, state: state(headers, is_confidential) };
    TraceContextPropagator::new().extract_with_context(&Context::new(), &headers)
}

/// The state that is passed on: well-formed members without anything confidential, as many of the first ones as may be. A
/// state with a member that is none, or with a key twice, is dropped as a whole, as the recommendation asks.
fn state(headers: &HeaderMap, is_confidential: impl Fn(&str) -> bool) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut keys: Vec<&str> = Vec::new();
    let mut bytes = 0;
    for header in headers.get_all(STATE) {
        let Ok(header) = header.to_str() else { return String::new() };
        // Empty members are allowed and mean nothing.
        for member in header.split(',').map(|one| one.trim_matches([' ', '\t'])).filter(|one| !one.is_empty())
        {
            let Some((key, value)) = member.split_once('=') else { return String::new() };
            if !is_key(key) || !is_value(value) || keys.contains(&key) || keys.len() >= STATE_MEMBERS_MAX {
                return String::new();
            }
            keys.push(key);
            bytes += member.len() + 1;
            let is_kept = ![key, value].iter().any(|text| is_confidential(text));
            if bytes <= STATE_BYTES_MAX && is_kept {
                kept.push(member);
            }
        }
    }
    kept.join(",")
}

/// `key = ( lcalpha / DIGIT ) 0*255( lcalpha / DIGIT / "_" / "-" / "*" / "/" )`, with one `@` before the name of a system.
fn is_key(key: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
    let is_first = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut parts = key.split('@');
    let is_begun = parts.by_ref().take(2).all(|part| part.as_bytes().first().is_some_and(is_first));
    key.len() <= 256 && is_begun && parts.next().is_none() && key.bytes().all(is_inner)
}

/// `value = 0*255(chr) nblk-chr`: printable characters but `,` and `=`, the last of them no space.
fn is_value(value: &str) -> bool {
    let is_chr = |byte: u8| (0x20..=0x7e).contains(&byte) && !b",=".contains(&byte);
    !value.is_empty() && value.len() <= 256 && value.bytes().all(is_chr) && !value.ends_with(' ')
}

/// Makes `span` a child of the caller's, with what is not confidential of its state. Costs nothing when spans are off.
pub fn adopt(span: &Span, headers: &HeaderMap, is_confidential: impl Fn(&str) -> bool) {
    if span.is_disabled() || !headers.contains_key("traceparent") {
        return;
    }
    // An error means that no exporter is installed, and then there is no trace to join.
    let _ = span.set_parent(extract(headers, is_confidential));
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
            let context = extract(&headers, |_| false);
            let span = context.span();
            let span_context = span.span_context();
            let found = span_context.is_valid().then(|| span_context.trace_id().to_string());
            assert_eq!(found.as_deref(), trace_id, "{header}");
        }
    }

    /// What passes of the state, where everything with `secret` in it is confidential.
    fn passed(headers: &[&str]) -> String {
        let mut all = HeaderMap::new();
        all.insert("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap());
        for header in headers {
            all.append(STATE, header.parse().unwrap());
        }
        let context = extract(&all, |text| text.contains("secret"));
        let span = context.span();
        assert!(span.span_context().is_valid(), "the trace goes on whatever its state is");
        span.span_context().trace_state().header()
    }

    #[test]
    fn the_state_passes_where_it_is_one_and_confidential_members_do_not() {
        let long = format!("a={}", "x".repeat(256));
        let too_long = format!("a={}", "x".repeat(257));
        let many = (0..33).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
        let most = (0..32).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
        for (headers, wanted) in [
            (&["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"][..], "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
            (&["a=1", "b=2"], "a=1,b=2"),
            (&["a=1 , ,b=2\t"], "a=1,b=2"),
            (&["tenant@system=1:2;3"], "tenant@system=1:2;3"),
            (&["a=1,b=my-secret,c=3"], "a=1,c=3"),
            (&["secret/key=1"], ""),
            (&[&long], &long),
            (&[&too_long], ""),
            (&[&most], &most),
            (&[&many], ""),
            (&["a=1,a=2"], ""),
            (&["A=1"], ""),
            (&["a"], ""),
            (&["a="], ""),
            (&["a=1=2"], ""),
            (&["a@b@c=1"], ""),
            (&["@b=1"], ""),
            (&["a=\u{e9}"], ""),
            (&[], ""),
        ] {
            assert_eq!(passed(headers), wanted, "{headers:?}");
        }
        // Of a long one the first members pass.
        let (first, second) = (format!("a={}", "x".repeat(250)), format!("b={}", "y".repeat(250)));
        let all = format!("{first},{second},c=3,d=4,e=5,f=6");
        assert_eq!(passed(&[&all]), format!("{first},{second},c=3"));
    }
}
