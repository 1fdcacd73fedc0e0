//! What a rule over effects says.

use std::net::Ipv6Addr;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use regex_automata::meta::Regex;
use unicode_normalization::UnicodeNormalization;

use crate::decision::{Category, Severity};
use crate::shell::effect::{EffectKind, TargetKind};
use crate::text::is_metadata_host;

/// One rule: which effects it means, and what to say about them.
#[derive(Debug)]
pub struct CommandRule {
    /// Stable id: dashboards and suppressions name it.
    pub id: Arc<str>,
    /// Category, below `command`.
    pub category: Category,
    /// How bad it is. HIGH and CRITICAL block under the default thresholds, MEDIUM warns.
    pub severity: Severity,
    /// How certain a hit is, above 0.0 up to 1.0; multiplies the severity's score.
    pub confidence: f64,
    /// Kinds of effects it means.
    pub effects: Vec<EffectKind>,
    /// One sentence for a person.
    pub description: String,
    /// What to do instead.
    pub recommendation: String,
    /// Where the danger is described.
    pub references: Vec<String>,
    /// Commands that the rule must hold for.
    pub examples: Vec<String>,
    /// Commands that the rule must not hold for.
    pub negative_examples: Vec<String>,
    /// Commands that the rule ought to hold for and does not yet.
    pub known_misses: Vec<String>,
    /// The file that the rule comes from.
    pub file: Arc<str>,
    /// 1-based line where it begins.
    pub line: usize,
    pub(super) condition: Condition,
}

/// What must hold of an effect besides its kind.
#[derive(Debug, Default)]
pub(super) struct Condition {
    /// Bits of classes, one of which the target must be in; 0 for any target or none.
    pub classes: u64,
    /// Bits of classes in none of which the target may be.
    pub not_classes: u64,
    /// Kinds of targets; empty for any or none.
    pub target_kinds: Vec<TargetKind>,
    pub recursive: Option<bool>,
    pub forced: Option<bool>,
    /// Whether the target's own glob characters count: it must or must not hold some.
    pub has_target: Option<bool>,
    pub programs: Vec<String>,
    pub not_programs: Vec<String>,
    pub details: Vec<String>,
    pub not_details: Vec<String>,
    pub detail: Option<Regex>,
    pub not_detail: Option<Regex>,
    pub target: Option<Regex>,
    pub not_target: Option<Regex>,
    /// What the target must be besides.
    pub target_validator: Option<TargetValidator>,
    pub via: Vec<String>,
    pub not_via: Vec<String>,
    /// Kinds of other effects, one of which the command must have too.
    pub with: Vec<EffectKind>,
}

/// A check of a target that no pattern can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetValidator {
    /// The address of a service that hands out a machine's credentials, however it is spelt.
    MetadataAddress,
}

impl TargetValidator {
    /// By its name in a rule file.
    pub fn of(name: &str) -> Option<Self> {
        (name == "metadata-address").then_some(Self::MetadataAddress)
    }

    /// Whether a target, a host or the address of something on it, is what it asks for.
    pub fn holds(self, target: &str) -> bool {
        match self {
            Self::MetadataAddress => hosts_of(target).iter().any(|host| is_metadata_host(host)),
        }
    }
}

/// The hosts of an address as lenient clients read it: behind a scheme with slashes or backslashes, or right at the beginning, and
/// behind who asks, decoded and with all forms of letters and dots made one (WHATWG URL, sections 3.5 and 4.4). Twice, as some end it
/// at a backslash and others read on.
fn hosts_of(address: &str) -> [String; 2] {
    let is_slash = |c: char| matches!(c, '/' | '\\');
    let scheme = address.find(':').filter(|at| {
        let (name, rest) = address.split_at(*at);
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-'));
        is_name
            && (rest[1..].starts_with(is_slash)
                || ["http", "https"].iter().any(|one| name.eq_ignore_ascii_case(one)))
    });
    let rest = scheme.map_or(address, |at| &address[at + 1..]).trim_start_matches(is_slash);
    [true, false].map(|ends_at_backslash| {
        let is_end = |c: char| matches!(c, '/' | '?' | '#') || ends_at_backslash && c == '\\';
        let authority = rest.split(is_end).next().unwrap_or(rest);
        let authority = percent_decode_str(authority).decode_utf8_lossy();
        // Braces are lists to some clients.
        let authority: String = authority
            .nfkc()
            .filter(|c| !matches!(c, '{' | '}'))
            .map(|c| if c == '\u{3002}' { '.' } else { c })
            .collect();
        let host = authority.rsplit('@').next().unwrap_or(&authority).trim();
        match host.strip_prefix('[').and_then(|inner| inner.find(']')) {
            Some(end) => host[..end + 2].to_owned(),
            None if host.split('%').next().is_some_and(|host| host.parse::<Ipv6Addr>().is_ok()) => {
                host.to_owned()
            }
            None => host.split(':').next().unwrap_or(host).to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_as_lenient_clients_do() {
        for (address, host) in [
            ("http://169.254.169.254/latest", "169.254.169.254"),
            ("169.254.169.254", "169.254.169.254"),
            ("169.254.169.254:80/latest", "169.254.169.254"),
            ("HTTP:2852039166/latest", "2852039166"),
            ("http:\\\\0xa9fea9fe\\latest", "0xa9fea9fe"),
            ("http://user:pw@[::ffff:169.254.169.254]:80/", "[::ffff:169.254.169.254]"),
            ("https://example.com/169.254.169.254", "example.com"),
            ("https://example.com?u=@169.254.169.254", "example.com"),
            ("//169.254.169.254.nip.io#x", "169.254.169.254.nip.io"),
            ("fd00:ec2::254", "fd00:ec2::254"),
            ("http://fd00:ec2::254/latest", "fd00:ec2::254"),
            ("http://%31%36%39.254.169.254/", "169.254.169.254"),
            ("http://１６９。254．169.254/", "169.254.169.254"),
            ("http://{169.254.169.254}/", "169.254.169.254"),
            ("[", "["),
            ("", ""),
        ] {
            assert_eq!(hosts_of(address)[0], host, "{address}");
        }
        assert_eq!(hosts_of("http://a\\@169.254.169.254/"), ["a", "169.254.169.254"]);
    }
}
