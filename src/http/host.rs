//! Which hosts a request may name.
//!
//! A page from elsewhere can let its own name resolve to this machine (DNS rebinding); the browser then sends requests
//! here, but they still name the page's host. So the name is checked, and only known ones pass: names and addresses of
//! this machine with any port, the address that the listener is bound to, and what is configured.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};

/// Lets every host pass.
const ANY: &str = "*";

/// The hosts that a request may name.
#[derive(Clone, Debug)]
pub struct AllowedHosts {
    allows_any: bool,
    entries: Arc<[Entry]>,
}

#[derive(Debug, PartialEq)]
struct Entry {
    /// Lower case, without brackets and without a last dot.
    host: String,
    /// `None` for any port.
    port: Option<u16>,
}

/// Why a request was refused for its host.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HostError {
    /// No host, or more than one.
    #[error("a request must have exactly one Host header")]
    NotOne,
    /// It is not a host.
    #[error("the Host header is not a host with an optional port")]
    Malformed,
    /// It is not one of ours.
    #[error("this host is not served here; name it in the setting http.allowed_hosts if it should be")]
    NotAllowed,
    /// A page from elsewhere sent it.
    #[error("pages of other hosts may not send requests here")]
    CrossSite,
}

impl HostError {
    pub(super) const fn status(&self) -> StatusCode {
        match self {
            Self::NotOne | Self::Malformed => StatusCode::BAD_REQUEST,
            Self::NotAllowed => StatusCode::MISDIRECTED_REQUEST,
            Self::CrossSite => StatusCode::FORBIDDEN,
        }
    }

    pub(super) const fn code(&self) -> &'static str {
        match self {
            Self::NotOne => "host_missing",
            Self::Malformed => "host_malformed",
            Self::NotAllowed => "host_not_allowed",
            Self::CrossSite => "cross_site",
        }
    }
}

impl AllowedHosts {
    /// Takes the configured hosts and the address of the listener. What is not well formed matches nothing; the check
    /// of the settings reports it.
    pub fn new(configured: &[String], listen: SocketAddr) -> Self {
        let bound =
            (!listen.ip().is_unspecified()).then(|| Entry { host: listen.ip().to_string(), port: None });
        let entries = configured.iter().filter_map(|host| Entry::parse(host)).chain(bound).collect();
        Self { allows_any: configured.iter().any(|host| host == ANY), entries }
    }

    /// Whether a configured host can be understood.
    pub fn is_well_formed(configured: &str) -> bool {
        configured == ANY || Entry::parse(configured).is_some()
    }

    /// Checks the host of a request: of its Host header, and of its target where that names one too.
    ///
    /// # Errors
    /// Why the request must be refused.
    pub fn check(&self, target: &Uri, headers: &HeaderMap) -> Result<(), HostError> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(HostError::NotOne) };
        let host = host.to_str().map_err(|_| HostError::Malformed)?;
        let named = Entry::parse(host).ok_or(HostError::Malformed)?;
        let in_target =
            target.authority().map(|authority| Entry::parse(authority.as_str()).ok_or(HostError::Malformed));
        let in_target = in_target.transpose()?;
        let all_allowed = std::iter::once(&named).chain(&in_target).all(|named| self.allows(named));
        if all_allowed { Ok(()) } else { Err(HostError::NotAllowed) }
    }

    /// Checks that a page which sends a request is one of a host named here; `*` names none. Programs that are no browser
    /// send no Origin header.
    ///
    /// # Errors
    /// [`HostError::CrossSite`].
    pub fn check_origin(&self, headers: &HeaderMap) -> Result<(), HostError> {
        let is_ours = |origin: &HeaderValue| {
            let host = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
            host.and_then(|(_, host)| Entry::parse(host)).is_some_and(|named| self.names(&named))
        };
        if headers.get_all(header::ORIGIN).iter().all(is_ours) { Ok(()) } else { Err(HostError::CrossSite) }
    }

    fn allows(&self, named: &Entry) -> bool {
        self.allows_any || self.names(named)
    }

    fn names(&self, named: &Entry) -> bool {
        named.is_this_machine()
            || self
                .entries
                .iter()
                .any(|entry| entry.host == named.host && (entry.port.is_none() || entry.port == named.port))
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        // `user@host` is an authority, but no host; a wildcard within a name is not understood.
        if authority.as_str().contains(['@', '*']) {
            return None;
        }
        let port = authority.port().map(|port| port.as_str().parse::<u16>()).transpose().ok()?;
        let host = authority.host();
        // A colon that no port follows is no port, and `host()` has cut it off.
        let has_stray_colon = port.is_none() && authority.as_str().len() != host.len();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        // One address can be written in many ways.
        let host = host.parse::<IpAddr>().map(|address| address.to_canonical().to_string()).unwrap_or(host);
        if host.is_empty() || has_stray_colon { None } else { Some(Self { host, port }) }
    }

    fn is_this_machine(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}
