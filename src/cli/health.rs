//! `health`: is the service serving? For containers without a shell, and for scripts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use clap::Args;
use serde_json::json;

use super::context::Context;
use super::{Exit, Failure, Output};
use crate::config::ServerConfig;
use crate::grpc::client::Client;
use crate::setting::duration;

/// Arguments of `health`.
#[derive(Debug, Args)]
pub(super) struct HealthArguments {
    /// The server [default: the address the settings tell the service to listen on].
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Full name of one service, such as portcullis.v1.PolicyDecisionService; default: the server as a whole.
    #[arg(long, value_name = "NAME", default_value = "")]
    service: String,
    /// How long to wait, such as 500ms or 2s.
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    timeout: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(
    arguments: &HealthArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let timeout =
        duration::parse(&arguments.timeout).filter(|timeout| !timeout.is_zero()).ok_or_else(|| {
            Failure::usage(format_args!(
                "--timeout: `{}` is no duration such as 500ms or 2s",
                arguments.timeout
            ))
        })?;
    let url = match &arguments.server {
        Some(url) => url.clone(),
        None => own_url(&context.settings()?.server),
    };
    let serving = Client::connect(&url, timeout, &context.reach()?)?.health(&arguments.service)?;
    if arguments.json {
        output.json(&json!({ "server": url, "service": arguments.service, "status": serving.status }))?;
    } else {
        output.line(serving.status);
    }
    Ok(if serving.is_serving { Exit::Ok } else { Exit::ServerAway })
}

/// Where the server of this place is to be reached.
fn own_url(server: &ServerConfig) -> String {
    let scheme = if server.tls.is_on() { "https" } else { "http" };
    format!("{scheme}://{}", reachable(server.listen))
}

/// An address to call for one that is listened on: "every address" includes this machine's own.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}
