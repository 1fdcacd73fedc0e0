//! The client side of `StreamMonitor`: one call, both directions, to a server or to a monitor in this process.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};

use super::Identity;
use super::client::{self, ClientError, Reach};
use super::stream_monitor::{self, Monitor};
use crate::pb::v1;
use crate::pb::v1::policy_decision_service_client::PolicyDecisionServiceClient;

/// What a server answers, to the end of the session.
pub type Answers = Pin<Box<dyn Stream<Item = Result<v1::StreamMonitorResponse, ClientError>> + Send>>;

/// Begins a session with the server at `url`; `requests` begins with Attach. The answers end with an error when the
/// session did not end well.
///
/// A server that is there and says nothing any more is found out by pings within about ten seconds.
///
/// # Errors
/// See [`ClientError`].
pub async fn stream_monitor(
    url: &str,
    reach: &Reach,
    requests: impl Stream<Item = v1::StreamMonitorRequest> + Send + 'static,
) -> Result<Answers, ClientError> {
    let (url, endpoint) = reach.endpoint(url)?;
    let endpoint = endpoint
        .http2_keep_alive_interval(client::PING_INTERVAL)
        .keep_alive_timeout(client::PING_INTERVAL)
        // Once the command has ended nothing is sent any more, and the summary is still waited for.
        .keep_alive_while_idle(true)
        .tcp_nodelay(true);
    let channel = endpoint.connect().await.map_err(|error| client::away(&url, &error))?;
    let mut client = PolicyDecisionServiceClient::new(reach.wire(&url, channel)?)
        .max_decoding_message_size(usize::MAX)
        .max_encoding_message_size(usize::MAX);
    let answer = client.stream_monitor(requests).await;
    let answers = answer.map_err(|status| client::error_of(&url, &status))?.into_inner();
    Ok(Box::pin(answers.map(move |answer| answer.map_err(|status| client::error_of(&url, &status)))))
}

/// Begins the same session with a monitor in this process, for this caller. Needs the runtime of tokio.
pub fn watch_here(
    monitor: &Arc<Monitor>,
    caller: Identity,
    requests: impl Stream<Item = v1::StreamMonitorRequest> + Send + 'static,
) -> Answers {
    let answers = stream_monitor::serve(monitor, caller, None, requests.map(Ok));
    Box::pin(answers.map(|answer| answer.map_err(|status| client::error_of("this process", &status))))
}
