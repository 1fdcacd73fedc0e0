//! Why one attempt has no answer, and whether another one makes sense.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use super::{NotJudged, Trouble, Usage};

/// Why one attempt has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) trouble: Trouble,
    /// One sentence, in our words and numbers alone.
    pub(super) detail: String,
    pub(super) retry: Retry,
    /// Whether it tells that the provider is in trouble, which the circuit breaker counts.
    pub(super) is_outage: bool,
    /// What the attempt cost all the same.
    pub(super) usage: Usage,
}

/// Whether another attempt makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// No.
    Never,
    /// After a pause of our own.
    Soon,
    /// Not before this has passed.
    After(Duration),
    /// At once, with room for a longer answer.
    Larger,
}

impl Fault {
    /// The provider works, and this call is refused or its answer of no use.
    pub(super) fn last(trouble: Trouble, detail: impl Into<String>) -> Self {
        Self {
            trouble,
            detail: detail.into(),
            retry: Retry::Never,
            is_outage: false,
            usage: Usage::default(),
        }
    }

    /// The provider is in trouble; another attempt is harmless.
    pub(super) fn passing(trouble: Trouble, detail: impl Into<String>) -> Self {
        Self { retry: Retry::Soon, is_outage: true, ..Self::last(trouble, detail) }
    }

    /// The same fault of an attempt that was charged.
    pub(super) fn after(self, usage: Usage) -> Self {
        Self { usage, ..self }
    }

    /// No further attempt, whatever the kind.
    pub(super) fn for_good(self) -> Self {
        Self { retry: Retry::Never, ..self }
    }

    pub(super) fn into_not_judged(self) -> NotJudged {
        NotJudged::new(self.trouble, self.detail)
    }
}

/// What a status other than 200 means, before a provider's own error is looked at. `retryable` are the statuses below 500
/// that the provider's own clients repeat.
pub(super) fn of_status(status: StatusCode, headers: &HeaderMap) -> Fault {
    let code = status.as_u16();
    let said = |what: &str| format!("the provider answered HTTP {code}: {what}");
    let fault = match code {
        300..=399 => Fault::last(Trouble::Rejected, said("a redirect, and redirects are not followed")),
        401 | 403 => Fault::last(Trouble::Unauthorized, said("the key is wrong or may not do this")),
        402 => Fault::last(Trouble::Quota, said("billing")),
        404 => Fault::last(Trouble::NotFound, said("no such model or endpoint")),
        408 => Fault::passing(Trouble::Timeout, said("it timed out")),
        409 => Fault::passing(Trouble::ServerError, said("a conflict")),
        413 => Fault::last(Trouble::TooLarge, said("the question is too large")),
        429 => Fault::passing(Trouble::RateLimited, said("too many calls")),
        503 | 529 => Fault::passing(Trouble::Overloaded, said("it is overloaded")),
        500..=599 => Fault::passing(Trouble::ServerError, said("it failed")),
        _ => Fault::last(Trouble::Rejected, said("it does not accept the call")),
    };
    with_hints(fault, headers)
}

/// Applies what the headers say of another attempt.
fn with_hints(fault: Fault, headers: &HeaderMap) -> Fault {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let mut retry = fault.retry;
    match text("x-should-retry") {
        Some("false") => return fault.for_good(),
        Some("true") if retry == Retry::Never => retry = Retry::Soon,
        _ => {}
    }
    if retry == Retry::Soon
        && let Some(pause) = text("retry-after-ms")
            .and_then(millis)
            .or_else(|| text("retry-after").and_then(|text| seconds_or_date(text, Timestamp::now())))
    {
        retry = Retry::After(pause);
    }
    Fault { retry, ..fault }
}

fn millis(text: &str) -> Option<Duration> {
    let millis: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(millis / 1000.0).ok()
}

/// `Retry-After` in either form; a date that is over is no pause.
fn seconds_or_date(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

/// A duration as the JSON form of protocol buffers writes it: `1.5s`.
pub(super) fn proto_duration(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.strip_suffix('s')?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: u16, headers: &[(&'static str, &str)]) -> Fault {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")))
            .collect();
        of_status(StatusCode::from_u16(code).expect("a code"), &headers)
    }

    #[test]
    fn statuses_mean_what_they_say() {
        let after = |ms| Retry::After(Duration::from_millis(ms));
        for (code, headers, trouble, retry) in [
            (302, &[][..], Trouble::Rejected, Retry::Never),
            (400, &[], Trouble::Rejected, Retry::Never),
            (400, &[("x-should-retry", "true")], Trouble::Rejected, Retry::Soon),
            (401, &[], Trouble::Unauthorized, Retry::Never),
            (401, &[("retry-after", "1")], Trouble::Unauthorized, Retry::Never),
            (402, &[], Trouble::Quota, Retry::Never),
            (403, &[], Trouble::Unauthorized, Retry::Never),
            (404, &[], Trouble::NotFound, Retry::Never),
            (408, &[], Trouble::Timeout, Retry::Soon),
            (409, &[], Trouble::ServerError, Retry::Soon),
            (413, &[], Trouble::TooLarge, Retry::Never),
            (422, &[], Trouble::Rejected, Retry::Never),
            (429, &[], Trouble::RateLimited, Retry::Soon),
            (429, &[("retry-after", "2")], Trouble::RateLimited, after(2000)),
            (429, &[("retry-after", "2"), ("retry-after-ms", "150")], Trouble::RateLimited, after(150)),
            (429, &[("retry-after", "soon")], Trouble::RateLimited, Retry::Soon),
            (429, &[("retry-after", "-1")], Trouble::RateLimited, Retry::Soon),
            (429, &[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")], Trouble::RateLimited, after(0)),
            (429, &[("retry-after", "1"), ("x-should-retry", "false")], Trouble::RateLimited, Retry::Never),
            (500, &[], Trouble::ServerError, Retry::Soon),
            (502, &[], Trouble::ServerError, Retry::Soon),
            (503, &[("retry-after", "0")], Trouble::Overloaded, after(0)),
            (504, &[], Trouble::ServerError, Retry::Soon),
            (529, &[], Trouble::Overloaded, Retry::Soon),
        ] {
            let fault = of(code, headers);
            assert_eq!((fault.trouble, fault.retry), (trouble, retry), "{code} {headers:?}");
            assert!(fault.detail.contains(&code.to_string()));
        }
    }

    #[test]
    fn dates_and_durations() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let date = "Thu, 01 Jan 2026 00:00:07 GMT";
        assert_eq!(seconds_or_date(date, now), Some(Duration::from_secs(7)));
        assert_eq!(seconds_or_date("1e400", now), None);
        for (text, ms) in
            [("34s", Some(34_000)), ("0.25s", Some(250)), ("-1s", None), ("1", None), ("s", None)]
        {
            assert_eq!(proto_duration(text).map(|found| found.as_millis()), ms, "{text}");
        }
    }
}
