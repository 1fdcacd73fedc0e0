//! Values of the services as pages show them: words, times, sizes.

use jiff::Timestamp;

use crate::decision::Severity;
use crate::pb::v1;

/// A moment, as a person and as a program reads it.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    /// `2026-11-23 04:33:13`, in UTC; empty for none.
    pub(super) text: String,
    /// The same in RFC 3339.
    pub(super) machine: String,
}

impl Moment {
    /// A moment of the contract.
    pub(super) fn of(time: Option<&pbjson_types::Timestamp>) -> Self {
        let time = time.and_then(|time| Timestamp::new(time.seconds, time.nanos).ok());
        time.map(Self::at).unwrap_or_default()
    }

    /// A moment.
    pub(super) fn at(time: Timestamp) -> Self {
        Self { text: time.strftime("%Y-%m-%d %H:%M:%S").to_string(), machine: format!("{time:.3}") }
    }

    /// Whether there is one.
    pub(super) fn is_some(&self) -> bool {
        !self.text.is_empty()
    }
}

/// A name of the contract without the prefix of its type, in small letters: `blocked_inline`.
fn word(name: &'static str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).trim_start_matches('_').to_ascii_lowercase()
}

macro_rules! words {
    ($($function:ident $kind:ident $prefix:literal $doc:literal,)+) => {
        $(
            #[doc = $doc]
            pub(super) fn $function(value: i32) -> String {
                word(v1::$kind::try_from(value).unwrap_or_default().as_str_name(), $prefix)
            }
        )+
    };
}

words! {
    status SubmissionStatus "SUBMISSION_STATUS_" "A verdict.",
    kind BundleKind "BUNDLE_KIND_" "What a bundle is.",
    visibility Visibility "VISIBILITY_" "Who can see an entity.",
    check CheckStatus "CHECK_STATUS_" "How a check ended.",
    severity Severity "SEVERITY_" "How bad a finding is.",
    decision Decision "DECISION_" "What a caller may do.",
    mode Mode "MODE_" "What a rule may do to a decision.",
    verdict VerdictKind "VERDICT_KIND_" "A verdict about a stream.",
    verdict_source VerdictSource "VERDICT_SOURCE_" "Who gave it.",
    incident_action IncidentAction "INCIDENT_ACTION_" "What was done.",
    stream OutputStream "OUTPUT_STREAM_" "Which output.",
}

/// How bad a finding is, as the engines say it. What is not set counts as the worst.
pub(super) fn severity_of(severity: v1::Severity) -> Severity {
    match severity {
        v1::Severity::Low => Severity::Low,
        v1::Severity::Medium => Severity::Medium,
        v1::Severity::High => Severity::High,
        v1::Severity::Critical | v1::Severity::Unspecified => Severity::Critical,
    }
}

/// A word as it stands in the name of a class.
pub(super) fn class(word: &str) -> String {
    word.replace('_', "-")
}

/// A word as it stands in a sentence.
pub(super) fn spoken(word: &str) -> String {
    word.replace('_', " ")
}

/// A size: `3 bytes`, `14.2 KiB`.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1_024 {
        return if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") };
    }
    let (mut value, mut unit) = (bytes as f64 / 1_024.0, 0);
    while value >= 1_024.0 && unit + 1 < UNITS.len() {
        value /= 1_024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A time span: `1.5 ms`, `2.0 s`; empty for none.
pub(super) fn duration(span: Option<&pbjson_types::Duration>) -> String {
    let Some(span) = span else { return String::new() };
    let seconds = span.seconds as f64 + f64::from(span.nanos) / 1e9;
    seconds_words(seconds)
}

/// The same, of seconds.
pub(super) fn seconds_words(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1e-3 => format!("{:.0} µs", seconds * 1e6),
        seconds if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{seconds:.1} s"),
    }
}

/// Names with the log-odds that each gave.
pub(super) fn with_odds(named: &[(String, f64)]) -> Vec<(String, String)> {
    named.iter().map(|(name, odds)| (name.clone(), format!("{odds:+.2}"))).collect()
}

/// A part of a path of ours: everything that is not a letter, a digit or `-._~` escaped.
pub(super) fn segment(text: &str) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, KEPT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_sizes_are_those_of_people() {
        assert_eq!(status(v1::SubmissionStatus::BlockedInline.into()), "blocked_inline");
        assert_eq!(status(99), "unspecified");
        assert_eq!(kind(v1::BundleKind::Skill.into()), "skill");
        assert_eq!(class("blocked_inline"), "blocked-inline");
        for (bytes, wanted) in [(0, "0 bytes"), (1, "1 byte"), (1_024, "1.0 KiB"), (5 << 20, "5.0 MiB")] {
            assert_eq!(size(bytes), wanted);
        }
        assert_eq!(segment("a b/../<é>"), "a%20b%2F..%2F%3C%C3%A9%3E");
    }

    #[test]
    fn a_moment_is_told_in_utc() {
        let time = pbjson_types::Timestamp { seconds: 1_795_408_393, nanos: 5_000_000 };
        let moment = Moment::of(Some(&time));
        assert_eq!(moment.text, "2026-11-23 04:33:13");
        assert_eq!(moment.machine, "2026-11-23T04:33:13.005Z");
        assert!(moment.is_some() && !Moment::of(None).is_some());
    }
}
