//! Commands over gRPC: what a server does not answer becomes the exit code that the same mistake has in process.

use std::time::Duration;

use super::context::Context;
use super::{Exit, Failure};
use crate::decision::Decision;
use crate::grpc::client::{CALL_TIMEOUT, Client, ClientError};
use crate::pb::v1;

/// Connects to the server of `--server`.
pub(super) fn connect(url: &str, context: &Context) -> Result<Client, Failure> {
    Ok(Client::connect(url, CALL_TIMEOUT, &context.reach()?)?)
}

/// How long an upload may take: the server's own limit is shorter.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Connects to the server of `--server` for calls that carry whole bundles or wait for a verdict.
pub(super) fn connect_for_uploads(url: &str, context: &Context) -> Result<Client, Failure> {
    Ok(Client::connect(url, UPLOAD_TIMEOUT, &context.reach()?)?)
}

/// The decision of an answer.
pub(super) fn decision_of(decision: v1::Decision) -> Decision {
    crate::grpc::convert::decided(decision)
}

/// How a server begins to tell that the token it was shown is none of its own.
const BAD_TOKEN: &str = "the token in `authorization` is not valid";

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let exit = match &error {
            ClientError::Url { .. } => Exit::Usage,
            ClientError::Away { .. } => Exit::ServerAway,
            ClientError::Refused { .. } => Exit::Data,
            // Whoever may not ask has the wrong credentials, or the server the wrong settings.
            ClientError::Denied { .. } => Exit::Configuration,
            ClientError::Failed { .. } | ClientError::Runtime(_) => Exit::Internal,
        };
        let mut message = error.to_string();
        if message.contains(BAD_TOKEN) {
            message.push_str(
                "; it was read from the file of --token-file, else of client.token_file, else from `admin-token` in \
                 data_dir: name that of this server",
            );
        }
        Self { exit, message }
    }
}
