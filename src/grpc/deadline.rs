//! The caller's deadline, from the `grpc-timeout` header.
//!
//! Format: at most eight digits and a unit, `H M S m u n` (gRPC over HTTP/2, "Timeout").

use std::time::{Duration, Instant};

use http::HeaderMap;
use tonic::Request;

use super::work::Waited;

/// When the caller stops waiting; `None` when it waits for ever or the header cannot be read.
pub(super) fn of<T>(request: &Request<T>) -> Option<Instant> {
    let timeout = request.metadata().get("grpc-timeout")?.to_str().ok().and_then(parse)?;
    // A little early, so that our own answer, which says what happened, comes before the transport cuts the call off.
    let margin = (timeout / 50).min(Duration::from_millis(5));
    Waited::came(request).checked_add(timeout - margin)
}

/// How long the caller waits, from the moment in which its call came.
pub(super) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    headers.get("grpc-timeout")?.to_str().ok().and_then(parse)
}

fn parse(value: &str) -> Option<Duration> {
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let n: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(n * 3600),
        "M" => Duration::from_secs(n * 60),
        "S" => Duration::from_secs(n),
        "m" => Duration::from_millis(n),
        "u" => Duration::from_micros(n),
        "n" => Duration::from_nanos(n),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_header() {
        for (text, wanted) in [
            ("5S", Some(Duration::from_secs(5))),
            ("250m", Some(Duration::from_millis(250))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("1n", Some(Duration::from_nanos(1))),
            ("", None),
            ("S", None),
            ("123456789S", None),
            ("5s", None),
            ("-1S", None),
            ("5é", None),
        ] {
            assert_eq!(parse(text), wanted, "{text}");
        }
    }
}
