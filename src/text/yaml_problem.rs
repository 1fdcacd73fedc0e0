//! What is wrong with a text that is no YAML, for whoever wrote it: without the place, and without what the parser advises to
//! programmers.

use std::borrow::Cow;

use serde_saphyr::localizer::Localizer;
use serde_saphyr::{Error, Location, UserMessageFormatter};

/// Longest message, in characters.
const CHARS_MAX: usize = 200;

/// One sentence, without a full stop.
pub(crate) fn yaml_problem(error: &Error) -> String {
    let message = match error.without_snippet() {
        Error::AliasError { error, .. } => return yaml_problem(error),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{}` stands twice", key.escape_debug())
        }
        Error::Budget { .. } => "it is too large, or nested too deep".to_owned(),
        Error::AliasReplayLimitExceeded { .. } | Error::AliasReplayStackDepthExceeded { .. } => {
            "its aliases expand to too much".to_owned()
        }
        Error::MultipleDocuments { .. } => "it holds more than one document".to_owned(),
        other => other.render_with_formatter(&UserMessageFormatter.with_localizer(&WithoutLocation)),
    };
    message.lines().next().unwrap_or_default().chars().take(CHARS_MAX).collect()
}

/// Leaves the place out of the parser's messages: it is told in a field of its own.
struct WithoutLocation;

impl Localizer for WithoutLocation {
    fn attach_location<'a>(&self, base: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        base
    }
}
