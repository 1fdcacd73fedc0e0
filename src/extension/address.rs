//! Which addresses may be called: those of the public internet, and what the settings add.
//!
//! An interceptor's address is named by whoever may add one, and the call leaves from inside: without this filter it
//! would reach the services of this machine, of its network, and the metadata service of the cloud. Whatever carries an
//! IPv4 address inside an IPv6 one is judged by the inner one as well.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Config;

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
fn is_within(ip: u128, net: u128, bits: u32, width: u32) -> bool {
    let shift = width - bits;
    // A shift by the whole width would overflow, and means that every address agrees.
    ip.checked_shr(shift).unwrap_or(0) == net.checked_shr(shift).unwrap_or(0)
}

/// What the settings allow.
#[derive(Clone, Debug)]
pub struct AddressRules {
    allow_private: bool,
    hosts: Vec<String>,
    networks: Vec<(IpAddr, u32)>,
}

impl AddressRules {
    /// The rules of these settings. Entries that [`AddressRules::check_entry`] refuses allow nothing.
    pub fn new(config: &Config) -> Self {
        let mut rules = Self { allow_private: config.allow_private, hosts: Vec::new(), networks: Vec::new() };
        for entry in &config.private_hosts {
            match parse_network(entry) {
                Some(network) => rules.networks.push(network),
                None => rules.hosts.push(entry.trim().to_ascii_lowercase()),
            }
        }
        rules
    }

    /// Whether an entry of `private_hosts` makes sense.
    pub(super) fn check_entry(entry: &str) -> Result<(), &'static str> {
        const WRONG: &str = "must be a network such as 10.1.0.0/16, an address, or a host name";
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if parse_network(entry).is_some() {
            return Ok(());
        }
        // What looks like an address and is none must not become a name that matches nothing.
        let has_letter = entry.chars().any(|c| c.is_ascii_alphabetic());
        if has_letter && entry.chars().all(is_name) { Ok(()) } else { Err(WRONG) }
    }

    /// Whether `host`, as the address names it, may be reached at `ip`.
    ///
    /// # Errors
    /// The kind of private address that it is.
    pub fn check(&self, host: &str, ip: IpAddr) -> Result<(), &'static str> {
        let Some(kind) = kind_of_address(ip) else { return Ok(()) };
        let ip = ip.to_canonical();
        let is_listed = self.allow_private
            || self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
            || self.networks.iter().any(|(net, bits)| match (ip, net) {
                (IpAddr::V4(ip), IpAddr::V4(net)) => {
                    is_within(ip.to_bits().into(), net.to_bits().into(), *bits, 32)
                }
                (IpAddr::V6(ip), IpAddr::V6(net)) => is_within(ip.to_bits(), net.to_bits(), *bits, 128),
                _ => false,
            });
        if is_listed { Ok(()) } else { Err(kind) }
    }
}

/// `10.1.0.0/16`, or an address alone.
fn parse_network(text: &str) -> Option<(IpAddr, u32)> {
    let text = text.trim();
    let (ip, bits) = match text.split_once('/') {
        Some((ip, bits)) => (ip, Some(bits)),
        None => (text, None),
    };
    let ip: IpAddr = ip.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    let width = if ip.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        Some(bits) => bits.parse().ok().filter(|bits| *bits <= width)?,
        None => width,
    };
    Some((ip, bits))
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

    #[test]
    fn the_settings_open_what_they_name_and_nothing_else() {
        let rules = |entries: &[&str]| {
            let private_hosts = entries.iter().map(|&entry| entry.to_owned()).collect();
            AddressRules::new(&Config { private_hosts, ..Config::default() })
        };
        let table: [(&[&str], &str, &str, bool); 12] = [
            (&[], "guard.example", "10.1.2.3", false),
            (&[], "guard.example", "1.1.1.1", true),
            (&["10.1.0.0/16"], "guard.example", "10.1.2.3", true),
            (&["10.1.0.0/16"], "guard.example", "::ffff:10.1.2.3", true),
            (&["10.1.0.0/16"], "guard.example", "10.2.0.1", false),
            (&["10.1.2.3"], "guard.example", "10.1.2.4", false),
            (&["0.0.0.0/0"], "guard.example", "127.0.0.1", true),
            (&["0.0.0.0/0"], "guard.example", "::1", false),
            (&["[fd00::]/8"], "guard.example", "fd12::1", true),
            (&["fd00::/8"], "guard.example", "fd12::1", true),
            (&["Guard.Internal"], "guard.internal", "192.168.0.9", true),
            (&["guard.internal"], "evil.guard.internal", "192.168.0.9", false),
        ];
        for (entries, host, ip, allowed) in table {
            let found = rules(entries).check(host, ip.parse().expect("an address"));
            assert_eq!(found.is_ok(), allowed, "{entries:?} {host} {ip}: {found:?}");
        }
        let all = AddressRules::new(&Config { allow_private: true, ..Config::default() });
        assert_eq!(all.check("x", IpAddr::V6(Ipv6Addr::LOCALHOST)), Ok(()));
    }

    #[test]
    fn entries_that_would_match_nothing_are_refused() {
        for entry in
            ["10.1.0.0/33", "10.1.0", "::1/129", "", "300.1.1.1", "a host", "http://x", "10.0.0.0/8/8"]
        {
            assert!(AddressRules::check_entry(entry).is_err(), "{entry}");
        }
        for entry in ["10.1.0.0/16", "::1", "fd00::/8", "guard.internal", "localhost"] {
            assert!(AddressRules::check_entry(entry).is_ok(), "{entry}");
        }
    }
}
