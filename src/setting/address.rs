//! Addresses to listen on: `127.0.0.1:50051`, `[::1]:50051`. Port 0 asks the system for a free one.
//!
//! Names are refused: what `localhost` resolves to is decided elsewhere, and a guard should know what it binds.

use std::net::SocketAddr;

use serde::{Deserializer, Serializer, de};

const EXPECTED: &str = "an address and a port, such as 127.0.0.1:50051 or [::1]:50051";

/// For `#[serde(with)]`.
pub fn serialize<S: Serializer>(address: &SocketAddr, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(address)
}

/// For `#[serde(with)]`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    deserializer.deserialize_any(Visitor)
}

/// Whether only processes on this machine can reach `address`.
pub fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = SocketAddr;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<SocketAddr, E> {
        text.parse().map_err(|_| E::custom(format_args!("`{text}` is not {EXPECTED}")))
    }
}
