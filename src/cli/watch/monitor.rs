//! The monitor that watches: a server, or this process; both speak the messages of `StreamMonitor`.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::local::Local;
use super::outbox::{Outbox, Requests};
use crate::cli::Failure;
use crate::grpc::client::Reach;
use crate::grpc::monitor_client::stream_monitor;
use crate::pb::v1;
use crate::pb::v1::stream_monitor_response::Kind;

/// What a monitor answers; the error is ready to be told.
pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<v1::StreamMonitorResponse, Failure>> + Send>>;

/// Who watches.
#[derive(Clone)]
pub(super) enum Monitor {
    /// The server at this URL.
    Server(String, Box<Reach>),
    /// This process.
    Local(Arc<Local>),
}

/// What comes from a monitor.
#[derive(Debug)]
pub(super) enum Heard {
    /// It said this.
    Said(Box<v1::StreamMonitorResponse>),
    /// It said everything it will ever say.
    Ended(Result<(), Failure>),
}

impl Monitor {
    /// Attaches to the monitor. What it answers goes to `tell`; acknowledgements of chunks go straight to `outbox`.
    /// Answers where requests go.
    ///
    /// # Errors
    /// When nobody is there, or nobody who would do it.
    pub(super) async fn attach<F>(
        &self,
        attach: v1::Attach,
        outbox: Arc<Outbox>,
        tell: impl Fn(Heard) -> F + Send + 'static,
    ) -> Result<Requests, Failure>
    where
        F: Future<Output = ()> + Send,
    {
        let (requests, receiver) = mpsc::unbounded_channel();
        let attach = v1::stream_monitor_request::Kind::Attach(attach);
        // The receiver is still here.
        let _ = requests.send(v1::StreamMonitorRequest { kind: Some(attach) });
        let mut answers = self.open(receiver).await?;
        // A task of its own: the next chunk is scanned while a verdict is acted upon.
        tokio::spawn(async move {
            loop {
                match answers.next().await {
                    Some(Ok(v1::StreamMonitorResponse { kind: Some(Kind::Ack(ack)) })) => {
                        outbox.acknowledge(ack.seq);
                    }
                    Some(Ok(response)) => tell(Heard::Said(Box::new(response))).await,
                    Some(Err(failure)) => return tell(Heard::Ended(Err(failure))).await,
                    None => return tell(Heard::Ended(Ok(()))).await,
                }
            }
        });
        Ok(requests)
    }

    async fn open(&self, requests: UnboundedReceiver<v1::StreamMonitorRequest>) -> Result<Answers, Failure> {
        let requests = UnboundedReceiverStream::new(requests);
        match self {
            Self::Server(url, reach) => {
                let answers = stream_monitor(url, reach, requests).await?;
                Ok(Box::pin(answers.map(|answer| answer.map_err(Failure::from))))
            }
            Self::Local(local) => Ok(local.open(requests)),
        }
    }
}
