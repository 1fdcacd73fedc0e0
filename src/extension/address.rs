//! Which addresses may be called: those of the public internet, and what the settings add.
//!
//! An interceptor's address is named by whoever may add one, and the call leaves from inside: without this filter it
//! would reach the services of this machine, of its network, and the metadata service of the cloud.

use std::net::IpAddr;

use super::Config;
use crate::outbound::is_within;
pub use crate::outbound::kind_of_address;

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
    use std::net::Ipv6Addr;

    use super::*;

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
