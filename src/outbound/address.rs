//! Which addresses are not of the public internet.
//!
//! Whatever carries an IPv4 address inside an IPv6 one is judged by the inner one as well.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 networks that are not of the public internet.
const PRIVATE_V4: [(Ipv4Addr, u32, &str); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "unspecified"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "carrier-grade NAT"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "reserved"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "reserved"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmarking"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
    // The virtual address of host services in one large cloud, which lies in public space.
    (Ipv4Addr::new(168, 63, 129, 16), 32, "cloud metadata"),
];

/// IPv6 networks that are not of the public internet.
const PRIVATE_V6: [(Ipv6Addr, u32, &str); 12] = [
    (Ipv6Addr::UNSPECIFIED, 128, "unspecified"),
    (Ipv6Addr::LOCALHOST, 128, "loopback"),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "local NAT64"),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, "discard"),
    // Teredo hides an IPv4 address, and nothing else in these 23 bits is meant to be called.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "reserved"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "documentation"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "documentation"),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, "reserved"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "unique local"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "site-local"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
];

/// What kind of private address this is; `None` for one of the public internet.
pub fn kind_of_address(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(v4) => kind_of_v4(v4),
        IpAddr::V6(v6) => PRIVATE_V6
            .iter()
            .find(|(net, bits, _)| is_within(v6.to_bits(), net.to_bits(), *bits, 128))
            .map(|(_, _, kind)| *kind)
            .or_else(|| inner_v4(v6).and_then(kind_of_v4)),
    }
}

fn kind_of_v4(ip: Ipv4Addr) -> Option<&'static str> {
    let bits_of = |ip: Ipv4Addr| u128::from(ip.to_bits());
    PRIVATE_V4
        .iter()
        .find(|(net, bits, _)| is_within(bits_of(ip), bits_of(*net), *bits, 32))
        .map(|(_, _, kind)| *kind)
}

/// The IPv4 address that an IPv6 one stands for: mapped, compatible, translated (also by NAT64), or 6to4.
fn inner_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let last = || Some(Ipv4Addr::from_bits(ip.to_bits() as u32));
    match ip.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => last(),
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => last(),
        [0x2002, high, low, ..] => Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))),
        _ => None,
    }
}

/// Whether the first `bits` of two addresses of `width` bits agree.
pub fn is_within(ip: u128, net: u128, bits: u32, width: u32) -> bool {
    let shift = width - bits;
    // A shift by the whole width would overflow, and means that every address agrees.
    ip.checked_shr(shift).unwrap_or(0) == net.checked_shr(shift).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_known_in_every_disguise() {
        for (ip, kind) in [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("10.0.0.1", "private"),
            ("10.255.255.255", "private"),
            ("100.64.0.1", "carrier-grade NAT"),
            ("100.127.255.255", "carrier-grade NAT"),
            ("127.0.0.1", "loopback"),
            ("127.255.0.9", "loopback"),
            ("168.63.129.16", "cloud metadata"),
            ("169.254.169.254", "link-local"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.0.0.8", "reserved"),
            ("192.168.1.1", "private"),
            ("198.19.255.255", "benchmarking"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "reserved"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:169.254.169.254", "link-local"),
            ("::ffff:0:10.0.0.1", "private"),
            ("::10.0.0.1", "private"),
            ("64:ff9b::a9fe:a9fe", "link-local"),
            ("64:ff9b::192.168.0.1", "private"),
            ("64:ff9b:1::1", "local NAT64"),
            ("2002:7f00:1::", "loopback"),
            ("2002:c0a8:101::1", "private"),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "reserved"),
            ("2001:db8::1", "documentation"),
            ("fc00::1", "unique local"),
            ("fd00:ec2::254", "unique local"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
        ] {
            assert_eq!(kind_of_address(ip.parse().expect("an address")), Some(kind), "{ip}");
        }
    }

    #[test]
    fn public_addresses_are_no_private_ones() {
        for ip in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2002:101:101::",
            "2606:4700:4700::1111",
            "2001:4860:4860::8888",
            "fbff::1",
        ] {
            assert_eq!(kind_of_address(ip.parse().expect("an address")), None, "{ip}");
        }
    }
}
