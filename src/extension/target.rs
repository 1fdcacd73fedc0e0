//! The address of an interceptor, read once and checked as far as that goes without a look-up.

use std::net::IpAddr;

use reqwest::Url;

use super::address::AddressRules;
use crate::tools::RemoteKind;

/// Longest address, in bytes.
const BYTES_MAX: usize = 2048;

/// Where calls go.
#[derive(Clone, Debug)]
pub(super) struct Target {
    url: Url,
    /// Lower case, without the brackets of IPv6.
    host: String,
    port: u16,
}

impl Target {
    /// Reads an address. What is private beyond doubt is refused here, so that whoever adds it learns of it; names are
    /// looked up, and checked again, at each connection.
    pub(super) fn parse(kind: RemoteKind, text: &str, rules: &AddressRules) -> Result<Self, String> {
        if text.is_empty() {
            return Err("is empty; give an https:// or http:// address".to_owned());
        }
        if text.len() > BYTES_MAX {
            return Err(format!("has more than {BYTES_MAX} bytes"));
        }
        let url = Url::parse(text).map_err(|error| format!("is no URL: {error}"))?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err("must begin with https:// or http://".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("must not hold a user or password; name a credential of the settings".to_owned());
        }
        if url.fragment().is_some() {
            return Err("must not hold a fragment".to_owned());
        }
        if kind == RemoteKind::Extension && (url.path() != "/" || url.query().is_some()) {
            return Err("must be scheme, host and port alone".to_owned());
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
        let Some(port) = url.port_or_known_default().filter(|port| *port != 0) else {
            return Err("has no port that can be called".to_owned());
        };
        let target = Self { url, host, port };
        let known = match target.literal() {
            Some(ip) => Some(ip),
            // By definition this name never leaves the machine.
            None if is_localhost(&target.host) => Some(IpAddr::from([127, 0, 0, 1])),
            None => None,
        };
        match known.map(|ip| rules.check(&target.host, ip)) {
            Some(Err(kind)) => Err(refused(kind)),
            _ => Ok(target),
        }
    }

    /// The whole address.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// The host as the address names it.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The host as an address, if it is one.
    pub(super) fn literal(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Whether calls are encrypted.
    pub(super) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Whether calls stay on this machine beyond doubt.
    pub(super) fn is_loopback(&self) -> bool {
        self.literal().map_or_else(|| is_localhost(&self.host), |ip| ip.is_loopback())
    }

    /// Whether `host` is the one called.
    pub(super) fn has_host(&self, host: &str) -> bool {
        self.host.eq_ignore_ascii_case(host.trim().trim_matches(['[', ']']))
    }
}

/// Why an address of that kind is not called.
pub(super) fn refused(kind: &str) -> String {
    format!("is a {kind} address; allow it with `extensions.private_hosts` or `extensions.allow_private`")
}

fn is_localhost(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::Config;

    #[test]
    fn addresses_are_read_strictly() {
        let rules = AddressRules::new(&Config::default());
        for (kind, text, wanted) in [
            (RemoteKind::Webhook, "https://guard.example/check?team=a", None),
            (RemoteKind::Webhook, "http://1.1.1.1:8080/", None),
            (RemoteKind::Extension, "https://guard.example:8443", None),
            (RemoteKind::Extension, "https://guard.example:8443/", None),
            (RemoteKind::Extension, "https://guard.example/path", Some("alone")),
            (RemoteKind::Extension, "https://guard.example?x=1", Some("alone")),
            (RemoteKind::Webhook, "", Some("empty")),
            (RemoteKind::Webhook, "guard.example", Some("no URL")),
            (RemoteKind::Webhook, "ftp://guard.example/", Some("must begin with")),
            (RemoteKind::Webhook, "file:///etc/passwd", Some("must begin with")),
            (RemoteKind::Webhook, "https://me:pw@guard.example/", Some("user or password")),
            (RemoteKind::Webhook, "https://guard.example/#x", Some("fragment")),
            (RemoteKind::Webhook, "https://guard.example:0/", Some("port")),
            (RemoteKind::Webhook, "http://127.0.0.1/", Some("loopback")),
            (RemoteKind::Webhook, "http://2130706433/", Some("loopback")),
            (RemoteKind::Webhook, "http://0x7f.1/", Some("loopback")),
            (RemoteKind::Webhook, "http://0177.0.0.1/", Some("loopback")),
            (RemoteKind::Webhook, "http://[::ffff:127.0.0.1]/", Some("loopback")),
            (RemoteKind::Webhook, "http://localhost:1/", Some("loopback")),
            (RemoteKind::Webhook, "http://a.LOCALHOST./", Some("loopback")),
            (RemoteKind::Webhook, "http://169.254.169.254/latest", Some("link-local")),
            (RemoteKind::Extension, "http://[fd00::1]:50051", Some("unique local")),
        ] {
            let found = Target::parse(kind, text, &rules);
            match (wanted, &found) {
                (None, Ok(_)) => {}
                (Some(part), Err(message)) => assert!(message.contains(part), "{text}: {message}"),
                _ => panic!("{text}: {found:?}"),
            }
        }
    }
}
