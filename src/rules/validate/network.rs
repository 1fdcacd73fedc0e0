//! Addresses of machines and devices.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::digits::{digits_of, is_varied, luhn_sum};

/// Words that make the dotted number after them a version, a section or an object identifier.
const VERSION_WORDS: &[&str] = &[
    "version",
    "versions",
    "ver",
    "v",
    "release",
    "releases",
    "rel",
    "build",
    "rev",
    "revision",
    "section",
    "sec",
    "chapter",
    "clause",
    "figure",
    "fig",
    "table",
    "appendix",
    "oid",
    "assembly",
    "assemblyversion",
    "fileversion",
    "productversion",
    "firmware",
    "fw",
    "sdk",
    "driver",
    "patch",
    "tag",
    "kernel",
    "runtime",
    "upgrade",
    "upgraded",
    "update",
    "updated",
    "chrome",
    "chromium",
    "safari",
    "firefox",
    "edge",
    "edg",
    "opera",
    "opr",
    "win64",
    "bump",
    "bumped",
    "package",
    "dependency",
    "dep",
    "requires",
    "installed",
    "app",
    "plugin",
    "library",
    "lib",
    "module",
    "snmp",
    "mib",
    "part",
    "paragraph",
    "item",
    "step",
    "spec",
    "rfc",
    "dll",
    "hotfix",
    "changelog",
];

/// The last word before the value, past spaces, quotes and assignment marks; lower case.
fn word_before(before: &str) -> String {
    let trimmed = before.trim_end_matches(|c: char| " \t\"'`=:#([{<>~^*,".contains(c));
    let start = trimmed.rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    // OK to slice behind a character that may be wider than a byte: `get` answers nothing then.
    trimmed.get(start..).unwrap_or_default().to_ascii_lowercase()
}

/// Whether `value` is an IPv4 address and nothing around it makes it a version or section number.
pub(super) fn is_ipv4(value: &str, before: &str, after: &str) -> bool {
    let Ok(address) = value.parse::<Ipv4Addr>() else { return false };
    if address.octets()[0] == 0 && !address.is_unspecified() {
        return false;
    }
    let last = before.bytes().next_back();
    let is_joined_left = match last {
        Some(b'/') => !before.ends_with("//") && !before.ends_with(" /"),
        Some(byte) => byte.is_ascii_alphanumeric() || b".-_+%$".contains(&byte),
        None => false,
    };
    let mut ahead = after.bytes();
    let is_joined_right = match ahead.next() {
        Some(b'.') => ahead.next().is_some_and(|byte| byte.is_ascii_alphanumeric()),
        Some(b'-' | b'+') => ahead.next().is_some_and(|byte| byte.is_ascii_alphabetic()),
        Some(byte) => byte.is_ascii_alphanumeric() || byte == b'_',
        None => false,
    };
    let is_compared =
        ["==", ">=", "<=", "~=", "!=", "=>"].iter().any(|mark| before.trim_end().ends_with(mark));
    !is_joined_left
        && !is_joined_right
        && !is_compared
        && !VERSION_WORDS.contains(&word_before(before).as_str())
}

/// Whether `value` is an IPv6 address of at least two written groups.
pub(super) fn is_ipv6(value: &str, before: &str, after: &str) -> bool {
    let Ok(address) = value.parse::<Ipv6Addr>() else { return false };
    let groups = value.split(':').filter(|group| !group.is_empty()).count();
    let is_joined = before.ends_with(|c: char| c.is_alphanumeric() || c == ':' || c == '.' || c == '_')
        || after.starts_with(|c: char| c.is_alphanumeric() || c == ':' || c == '_' || c == '(');
    // `ab::cd` and `dead::beef` may be scopes of a program; an address of two groups has a digit in it.
    let is_scope = groups <= 2 && !value.bytes().any(|byte| byte.is_ascii_digit());
    // `::192.0.2.1` has one group by its colons, and four numbers.
    let is_bare = address.is_unspecified()
        || (groups < 2 && !value.contains('.') && !address.is_loopback() && !value.starts_with("f"));
    !is_joined && !is_scope && !is_bare
}

/// Whether `value` is a hardware address that stands alone and is neither zeros nor ones.
pub(super) fn is_mac(value: &str, before: &str, after: &str) -> bool {
    let hex: Vec<u8> = value.bytes().filter(u8::is_ascii_hexdigit).collect();
    let is_constant =
        hex.iter().all(|byte| *byte == b'0') || hex.iter().all(|byte| byte.eq_ignore_ascii_case(&b'f'));
    let continues = |byte: Option<u8>, next: Option<u8>| {
        byte.is_some_and(|byte| b":-.".contains(&byte)) && next.is_some_and(|byte| byte.is_ascii_hexdigit())
    };
    let mut back = before.bytes().rev();
    let (last, last_but_one) = (back.next(), back.next());
    let mut ahead = after.bytes();
    let (first, second) = (ahead.next(), ahead.next());
    matches!(hex.len(), 12 | 16)
        && !is_constant
        && !continues(last, last_but_one)
        && !continues(first, second)
}

/// Whether `value` is the identity of a mobile device.
pub(super) fn is_imei(value: &str) -> bool {
    let digits = digits_of(value);
    match digits.len() {
        15 => is_varied(&digits) && luhn_sum(&digits).is_multiple_of(10),
        // IMEISV: two digits of software version in place of the check digit.
        16 => is_varied(&digits),
        _ => false,
    }
}
