//! Where something is fetched from: installers that the world knows, and hosts that say nothing.

use crate::bundles::rules::{BundleRules, HostKind, after_scheme};

/// What is known of an address that code is fetched from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The documented installer of a widely used program.
    Known,
    /// A host of its own that `text` speaks about by name.
    Named,
    /// Anything else.
    Unknown,
}

/// What is known of `url`, in a document with the text `text`.
pub(super) fn trust_of(rules: &BundleRules, url: &str, text: &str) -> Trust {
    if rules.is_installer(url) {
        return Trust::Known;
    }
    let Some(rest) = after_scheme(url) else { return Trust::Unknown };
    let host = rest.split(['/', '?', ':']).next().unwrap_or_default();
    let labels: Vec<&str> = host.split('.').collect();
    let Some((top, own)) = labels.split_last() else { return Trust::Unknown };
    let is_below = |shared: &String| {
        host.strip_suffix(shared.as_str()).is_some_and(|own| own.is_empty() || own.ends_with('.'))
    };
    let is_shared = rules.hosts(HostKind::Shared).iter().any(is_below);
    let is_number = top.bytes().all(|b| b.is_ascii_digit()) || host.starts_with('[');
    let is_reserved = rules.hosts(HostKind::Reserved).iter().any(|reserved| reserved == top)
        || own.last().is_some_and(|label| *label == "example");
    if is_shared || is_number || is_reserved {
        return Trust::Unknown;
    }
    let is_named = own.last().is_some_and(|label| label.len() >= 4 && mentions(text, label) >= 3);
    if is_named { Trust::Named } else { Trust::Unknown }
}

/// How often a word stands in a text on its own: not in an address.
fn mentions(text: &str, word: &str) -> usize {
    let lower = text.to_ascii_lowercase();
    let is_edge =
        |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '/' | '@' | '_' | '-'));
    lower
        .match_indices(word)
        .filter(|(at, _)| {
            let after = lower[at + word.len()..].chars().next();
            is_edge(lower[..*at].chars().next_back()) && (is_edge(after) || after == Some('.'))
        })
        .take(3)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust() {
        let text = "Weaverbird. weaverbird is nice: use Weaverbird";
        for (url, trust) in [
            ("https://astral.sh/uv/install.sh", Trust::Known),
            ("http://astral.sh/uv/install.sh", Trust::Unknown),
            ("https://astral.sh.evil.net/uv", Trust::Unknown),
            ("https://evil.net/astral.sh/", Trust::Unknown),
            ("https://user@astral.sh/uv", Trust::Unknown),
            ("https://get.docker.com", Trust::Known),
            ("https://get.docker.community/x", Trust::Unknown),
            ("https://weaverbird.io/install", Trust::Named),
            ("https://get.weaverbird.io/install", Trust::Named),
            ("https://weaverbird.vercel.app/install", Trust::Unknown),
            ("https://other.io/weaverbird", Trust::Unknown),
            ("https://weaverbird.example/install", Trust::Unknown),
            ("https://192.0.2.7/install", Trust::Unknown),
            ("weaverbird.io/install", Trust::Unknown),
            ("", Trust::Unknown),
        ] {
            assert_eq!(trust_of(BundleRules::builtin(), url, text), trust, "{url}");
        }
    }
}
