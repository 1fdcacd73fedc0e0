//! Orders that stand in two places of a document: secrets are taken and kept under a name in one, and what was kept is sent
//! away in another one. Each by itself says little.

use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::context::known;
use super::{Rule, Scan};
use crate::decision::Severity;

/// Bytes between taking and sending, and bytes in which what was taken is given a name.
const APART_MAX: usize = 16 << 10;
const NAMED_WITHIN: usize = 260;
/// Places of either kind that are looked at in one document.
const PLACES_MAX: usize = 64;

/// Several secrets, or a file of them, are read or asked for.
static TAKEN: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?i)\b(?:read|open|look (?:up|for|at)|collect|gather|extract|grab|copy|list|find|get|fetch|load|take|note|record",
        r"|capture|search (?:for|the)|ask (?:the user )?for|retrieve|scan|pick up|see|cat)\b[^\n]{0,140}",
        r"(?:[~/\s`'\x22]\.env\b|~?/?\.(?:ssh|aws|gnupg|kube|netrc|npmrc|git-credentials|docker)\b|\bid_(?:rsa|ed25519)\b",
        r"|\b(?:passwords|credentials|secrets|tokens|cookies|private keys|api[ _-]?keys|access keys|seed phrases?",
        r"|environment variables|env vars)\b)",
    ))
});
/// What was taken is kept.
static KEPT: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?i)\b(?:remember|memori[sz]e|keep\b[^\n.]{0,40}\b(?:mind|later|hand|ready|aside|around|memory)|hold on to",
        r"|(?:store|save|put|set|write|keep|stash|assign|record|note)\b[^\n]{0,60}\b(?:in|into|as|under|to|aside|down)\b",
        r"|call (?:it|them|this|these|that|the)|refer to|refer+ed to|named?\b)",
    ))
});
/// The name that it is kept under.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?i)\b(?:as|call (?:it|them|this|these|that)(?: all)?|variables?(?: called| named)?|under(?: the name)?|named?|called)",
        r"\s{1,3}[`*_\x22'(<{$]{0,3}(?:the |a )?(?P<name>[a-z][\w-]{2,30})",
    ))
});
/// Something goes to an address.
static SENT: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?i)\b(?:send|post|put|upload|submit|transmit|forward|deliver|request|fetch|curl|wget|call|append|include|pass",
        r"|open|visit|load|report|push|ship|write|add|attach|embed|make a (?:get|post) request)\b[^\n]{0,200}\bhttps?://",
        r"(?P<host>[^\s/`'\x22)>]{3,80})[^\n]{0,160}",
    ))
});
/// What was kept, without its name.
static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?i)\b(?:(?:what(?:ever)?|everything|all|things?|values?|data|contents?|keys?|tokens?|secrets?|credentials?|passwords?",
        r"|variables|text|ones) (?:that |which )?(?:you(?: have|'ve)?|was|were|got|had been) ",
        r"(?:been )?(?:remember|memori[sz]|collect|gather|not|stor|sav|kept|keep|record|held|put aside|set aside|read|found)",
        r"\w{0,4}|(?:remembered|collected|gathered|stored|memori[sz]ed|saved|noted|recorded) (?:values?|data|contents?|keys?",
        r"|tokens?|secrets?|credentials?|passwords?|variables?|text|notes?|ones|things?|information))\b",
    ))
});
/// Words by which a caller says who it is, which is what one secret is for.
static SIGN_IN: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"(?i)\bauthorization\b|\bbearer\b|\bx-api-key\b|\bheaders?\b|\s-H\s|\s-u\s|\bauthenticat|[?&](?:api_?key|key|token|access_token|auth|apikey)=",
    )
});
/// Words that take an order back.
static FORBIDS: LazyLock<Regex> =
    LazyLock::new(|| known(r"(?i)\b(?:never|do not|don.?t|must not|should not|avoid|refuse|without)\b"));

const CARRIED: Rule<'static> = Rule {
    id: "bundle.carried-secrets",
    category: "exfiltration",
    severity: Severity::High,
    reason: "The document has secrets read and kept in one place, and what was kept sent to an address in another one.",
    fix: "Leave credentials where they are.",
};

/// Looks for secrets that a document has kept in one place and sent in another.
pub(super) fn scan(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    if !text.contains("://") {
        return;
    }
    let taken: Vec<(usize, Option<String>)> = TAKEN
        .find_iter(text)
        .take(PLACES_MAX)
        .filter_map(|found| Some((found.start(), kept(text, found.range())?)))
        .collect();
    if taken.is_empty() {
        return;
    }
    let mut hits = Vec::new();
    for captures in SENT.captures_iter(text).take(PLACES_MAX) {
        let Some(found) = captures.get_match() else { continue };
        let line = line_at(text, found.start());
        let host = captures.get_group_by_name("host").map_or("", |span| &text[span.start..span.end]);
        if is_own(host) || FORBIDS.is_match(&text[line.start..found.start()]) {
            continue;
        }
        let words = &text[line];
        let is_told = |(at, name): &(usize, Option<String>)| {
            if *at >= found.start()
                || found.start() - *at > APART_MAX
                || !text[*at..found.start()].contains('\n')
            {
                return false;
            }
            let is_named = name.as_ref().is_some_and(|name| holds_word(words, name));
            BEFORE.is_match(words) || is_named && !SIGN_IN.is_match(words)
        };
        if taken.iter().any(is_told) {
            hits.push(found.start());
        }
    }
    for at in hits {
        if !scan.is_described(at) {
            let line = scan.lines.line_of(at);
            scan.add(&CARRIED, line);
        }
    }
}

/// Whether what is taken at a place is kept, and under which name; `None` where it is not.
fn kept(text: &str, place: Range<usize>) -> Option<Option<String>> {
    let line = line_at(text, place.start);
    if FORBIDS.is_match(&text[line.start..place.end]) {
        return None;
    }
    let from = line.start;
    let to = text.floor_char_boundary((place.end + NAMED_WITHIN).min(text.len()));
    let around = &text[from..to];
    if !KEPT.is_match(around) {
        return None;
    }
    let named = &text[place.start..to];
    let names = NAME.captures_iter(named).filter_map(|captures| captures.get_group_by_name("name"));
    let name = names.map(|span| &named[span.start..span.end]).find(|name| !is_common(name));
    Some(name.map(str::to_owned))
}

/// Words behind `as` that are no names.
fn is_common(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "soon", "well", "needed", "the", "they", "you", "follows", "json", "text", "part", "long", "plain",
        "is", "for", "that",
    ]
    .contains(&&*name)
}

/// Whether a word stands in a text.
fn holds_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

/// Whether a host is this machine.
fn is_own(host: &str) -> bool {
    ["localhost", "127.0.0.1", "0.0.0.0", "[::1]"].iter().any(|own| host.starts_with(own))
}

fn line_at(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    start..end
}
