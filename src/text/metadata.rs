//! Addresses under which clouds tell a machine its credentials, in every spelling that a client understands.
//!
//! Sources: the spellings of `inet_aton` (one to four parts, each decimal, octal or hexadecimal), RFC 4291 section 2.5.5
//! (IPv4 within IPv6), RFC 6052 (64:ff9b::/96), RFC 3056 (2002::/16), and the documentation of the clouds.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Addresses of metadata services.
const ADDRESSES: [Ipv4Addr; 7] = [
    // AWS, Azure, Google Cloud, DigitalOcean, Oracle, OpenStack and most others.
    Ipv4Addr::new(169, 254, 169, 254),
    // AWS: containers of ECS, and pods of EKS.
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    // Alibaba Cloud.
    Ipv4Addr::new(100, 100, 100, 200),
    // Tencent Cloud.
    Ipv4Addr::new(169, 254, 0, 23),
    // Oracle Cloud, the older one.
    Ipv4Addr::new(192, 0, 0, 192),
    // Azure: the wire server.
    Ipv4Addr::new(168, 63, 129, 16),
];

/// The same in IPv6: machines and pods of AWS, machines of Google Cloud.
const ADDRESSES_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// Names of metadata services.
const NAMES: [&str; 11] = [
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.azure.com",
    "instance-data",
    "instance-data.ec2.internal",
    "metadata.tencentyun.com",
    "metadata.platformequinix.com",
    "metadata.packet.net",
    "rancher-metadata",
    "rancher-metadata.rancher.internal",
];

/// Domains whose names resolve to the address that they begin with.
const WILDCARD_DOMAINS: [&str; 4] = [".nip.io", ".sslip.io", ".xip.io", ".traefik.me"];

/// Domains whose names resolve by turns to several addresses that they hold.
const REBINDING_DOMAINS: [&str; 2] = [".rbndr.us", ".1u.ms"];

/// Whether a host of a URL, IPv6 with or without brackets, is that of a metadata service.
pub fn is_metadata_host(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if NAMES.contains(&host.as_str()) {
        return true;
    }
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&host);
    if inner.contains(':') {
        let address = inner.split('%').next().unwrap_or(inner);
        return address.parse::<Ipv6Addr>().is_ok_and(is_metadata_v6);
    }
    for domain in WILDCARD_DOMAINS {
        if let Some(name) = inner.strip_suffix(domain) {
            return names_metadata(name);
        }
    }
    for domain in REBINDING_DOMAINS {
        if let Some(name) = inner.strip_suffix(domain) {
            return name.match_indices(['.', '-']).any(|(at, _)| names_metadata(&name[..at]))
                || names_metadata(name);
        }
    }
    lenient_v4(inner).is_some_and(|address| ADDRESSES.contains(&address))
}

fn is_metadata_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let v4_of = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    let within = match parts {
        // Mapped, translated, and the deprecated compatible form.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => v4_of(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0, 0, high, low] => v4_of(high, low),
        [0x2002, high, low, ..] => v4_of(high, low),
        _ => return ADDRESSES_V6.contains(&address),
    };
    ADDRESSES.contains(&within)
}

/// Whether the part of a name before a wildcard domain ends in the address of a metadata service: dotted, dashed or in
/// hexadecimal, or that of IPv6 with dashes for its colons.
fn names_metadata(name: &str) -> bool {
    let last = name.rsplit(['.', '-']).next().unwrap_or(name);
    let hex = u32::from_str_radix(last, 16).ok().filter(|_| last.len() == 8).map(Ipv4Addr::from);
    let label = name.rsplit('.').next().unwrap_or(name);
    let is_v6 = || label.replace('-', ":").parse::<Ipv6Addr>().is_ok_and(is_metadata_v6);
    let is_v4 = ADDRESSES.iter().any(|address| {
        let dotted = address.to_string();
        let ends = |written: &str| {
            name.strip_suffix(written).is_some_and(|rest| rest.is_empty() || rest.ends_with(['.', '-']))
        };
        hex == Some(*address) || ends(&dotted) || ends(&dotted.replace('.', "-"))
    });
    is_v4 || (label.contains('-') && is_v6())
}

/// An IPv4 address as lenient parsers read it: fewer parts than four, bases by their prefix, and too large numbers cut to
/// the bits that they have room for.
fn lenient_v4(host: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u64> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, leading) = parts.split_last()?;
    if leading.len() > 3 {
        return None;
    }
    let mut address = 0_u32;
    for part in leading {
        address = (address << 8) | (part & 0xff) as u32;
    }
    let bits = 32 - 8 * leading.len() as u32;
    let rest = (*last & ((1_u64 << bits) - 1)) as u32;
    let high = if bits == 32 { 0 } else { address << bits };
    Some(Ipv4Addr::from(high | rest))
}

/// One part: `0x` is hexadecimal, a leading zero octal.
fn number(part: &str) -> Option<u64> {
    let (digits, base) = match part.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if part.len() > 1 && part.starts_with('0') => (part.trim_start_matches('0'), 8),
        None => (part, 10),
    };
    match digits {
        "" if base == 8 => Some(0),
        _ if digits.bytes().all(|b| b.is_ascii_alphanumeric()) => u64::from_str_radix(digits, base).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_the_same_address() {
        for host in [
            "169.254.169.254",
            "169.254.169.254.",
            "2852039166",
            "0xa9fea9fe",
            "0xA9FEA9FE",
            "025177524776",
            "0251.0376.0251.0376",
            "0xa9.0xfe.0xa9.0xfe",
            "0xa9.254.0251.254",
            "169.254.43518",
            "169.16689662",
            "0000251.0376.0251.0376",
            "425.510.425.510",
            "7147006462",
            "[::ffff:169.254.169.254]",
            "[::ffff:a9fe:a9fe]",
            "[0:0:0:0:0:ffff:a9fe:a9fe]",
            "[::a9fe:a9fe]",
            "[64:ff9b::a9fe:a9fe]",
            "[2002:a9fe:a9fe::1]",
            "[fd00:ec2::254]",
            "[::ffff:a9fe:a9fe%25eth0]",
            "metadata.google.internal",
            "Metadata.Google.Internal.",
            "169.254.169.254.nip.io",
            "www.169-254-169-254.sslip.io",
            "a9fea9fe.nip.io",
            "www-a9fea9fe.nip.io",
            "fd00-ec2--254.sslip.io",
            "--ffff-a9fe-a9fe.sslip.io",
            "7f000001.a9fea9fe.rbndr.us",
            "a9fea9fe.7f000001.rbndr.us",
            "make-169.254.169.254-rebind-127.0.0.1-rr.1u.ms",
            "make-169-254-169-254-rr.1u.ms",
            "[fd20:ce::254]",
            "169.254.0.23",
            "169.254.170.2",
            "100.100.100.200",
        ] {
            assert!(is_metadata_host(host), "{host}");
        }
    }

    #[test]
    fn other_hosts_are_none() {
        for host in [
            "",
            ".",
            "[]",
            "0x",
            "08",
            "169.254.169.253",
            "169.254.1.1",
            "2852039167",
            "10.0.0.1",
            "127.0.0.1",
            "1.2.3.4.5",
            "169.254.169.254.169.254",
            "[::1]",
            "[::ffff:10.0.0.1]",
            "[fd00:ec2::255]",
            "metadata.example.com",
            "1169.254.169.254.nip.io",
            "a9fea9fe.example.com",
            "7f000001.08080808.rbndr.us",
            "make-1.2.3.4-rebind-127.0.0.1-rr.1u.ms",
            "1169.254.169.254-rr.1u.ms",
            "169.254.169.254.10.0.0.1.nip.io",
            "fd00-ec2--255.sslip.io",
            "99999999999999999999999",
        ] {
            assert!(!is_metadata_host(host), "{host}");
        }
    }
}
