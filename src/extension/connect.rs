//! From a name to a connection: one look-up, a filter, and a connection to an address that passed it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper_util::rt::TokioIo;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::TcpStream;

use super::address::AddressRules;
use super::target::Target;

/// A name resolves to private addresses only, or an address is one.
#[derive(Debug, thiserror::Error)]
#[error(
    "the host resolves to a {kind} address; allow it with `extensions.private_hosts` or `extensions.allow_private`"
)]
pub(super) struct PrivateAddress {
    kind: &'static str,
}

/// Addresses of a host that may be called.
pub(super) async fn permitted(
    rules: &AddressRules,
    host: &str,
    port: u16,
) -> Result<Vec<SocketAddr>, Box<dyn std::error::Error + Send + Sync>> {
    let found: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) => tokio::net::lookup_host((host, port)).await?.collect(),
    };
    let mut refused = None;
    let permitted: Vec<SocketAddr> = found
        .into_iter()
        .filter(|address| match rules.check(host, address.ip()) {
            Ok(()) => true,
            Err(kind) => {
                refused = Some(kind);
                false
            }
        })
        .collect();
    match refused {
        _ if !permitted.is_empty() => Ok(permitted),
        Some(kind) => Err(PrivateAddress { kind }.into()),
        None => Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address").into()),
    }
}

/// Opens a connection to the target; used by the gRPC client, which adds TLS and HTTP/2. Counts what it opened.
pub(super) async fn open(
    target: Arc<Target>,
    rules: Arc<AddressRules>,
    opened: Arc<AtomicU64>,
) -> Result<TokioIo<TcpStream>, Box<dyn std::error::Error + Send + Sync>> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in permitted(&rules, target.host(), target.port()).await? {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                opened.fetch_add(1, Ordering::Relaxed);
                return Ok(TokioIo::new(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(last.into())
}

/// The look-up of the HTTP client, which connects to what this answers and looks up nothing itself.
pub(super) struct Resolver(pub(super) Arc<AddressRules>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = self.0.clone();
        Box::pin(async move {
            let addresses = permitted(&rules, name.as_str(), 0).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::Config;

    #[tokio::test]
    async fn what_a_name_resolves_to_is_filtered() {
        let rules = |allowed: &[&str]| {
            let private_hosts = allowed.iter().map(|&host| host.to_owned()).collect();
            AddressRules::new(&Config { private_hosts, ..Config::default() })
        };
        // This name leads to this machine wherever it is asked for.
        for host in ["localhost", "127.0.0.1", "::1"] {
            let refused = permitted(&rules(&[]), host, 80).await.expect_err(host);
            assert!(refused.downcast_ref::<PrivateAddress>().is_some(), "{host}: {refused}");
            let allowed = permitted(&rules(&[host]), host, 80).await.expect(host);
            assert!(allowed.iter().all(|address| address.ip().is_loopback() && address.port() == 80));
        }
        assert!(permitted(&rules(&["other.example"]), "localhost", 80).await.is_err());
        let by_network = permitted(&rules(&["127.0.0.0/8", "::1"]), "localhost", 80).await;
        assert!(!by_network.expect("its network is listed").is_empty());
    }
}
