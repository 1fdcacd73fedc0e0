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

/// Whether an address is that of a repository at a place where its owner's name stands before it: `git+https://`, host,
/// owner, name.
pub(super) fn is_repository(rules: &BundleRules, url: &str) -> bool {
    let Some(rest) = url.strip_prefix("git+").and_then(after_scheme) else {
        // A name before the revision makes it no plain address; what is asked for is the same.
        return url.rsplit_once('@').is_some_and(|(before, revision)| {
            !revision.contains(['/', ':']) && before.starts_with("git+") && is_repository(rules, before)
        });
    };
    let rest = rest.split(['#', '?']).next().unwrap_or_default();
    let mut parts = rest.trim_end_matches('/').split('/');
    let is_known =
        parts.next().is_some_and(|host| rules.hosts(HostKind::Repositories).iter().any(|one| one == host));
    let is_name = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['%', ':', '\\']);
    let names: Vec<&str> = parts.collect();
    is_known && names.len() >= 2 && names.into_iter().all(is_name)
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
    fn repositories_are_told_from_other_addresses() {
        for (url, wanted) in [
            ("git+https://github.com/maker/tool", true),
            ("git+https://github.com/maker/tool.git@v1.2", true),
            ("git+https://gitlab.com/group/part/tool#subdirectory=a", true),
            ("git+https://github.com/maker", false),
            ("git+https://github.com/maker/../tool", false),
            ("git+https://github.com.somewhere.example/maker/tool", false),
            ("git+https://github.com@somewhere.example/maker/tool", false),
            ("git+http://github.com/maker/tool", false),
            ("https://github.com/maker/tool", false),
            ("git+https://192.0.2.7/maker/tool", false),
            ("", false),
        ] {
            assert_eq!(is_repository(BundleRules::builtin(), url), wanted, "{url}");
        }
    }

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
