//! Helpers for tests of `StreamMonitor`: one session, said and heard message by message.

use portcullis::pb::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use v1::stream_monitor_request::Kind as Asked;
use v1::stream_monitor_response::Kind as Answered;

use super::server::{Client, PATIENCE};

/// A session from the side of its client.
pub struct Session {
    requests: Option<mpsc::Sender<v1::StreamMonitorRequest>>,
    answers: Streaming<v1::StreamMonitorResponse>,
}

/// Everything that a session said, and how it ended.
#[derive(Debug)]
pub struct Heard {
    /// Messages in the order in which they came.
    pub said: Vec<Answered>,
    /// `None` when it ended well.
    pub error: Option<Status>,
}

impl Session {
    /// Opens the stream and says nothing.
    pub async fn open(client: &mut Client) -> Self {
        let (requests, receiver) = mpsc::channel(64);
        let answers = client.stream_monitor(ReceiverStream::new(receiver)).await;
        Self { requests: Some(requests), answers: answers.expect("the stream opens").into_inner() }
    }

    /// Opens the stream and attaches.
    pub async fn attach(client: &mut Client, attach: v1::Attach) -> Self {
        let mut session = Self::open(client).await;
        session.say(Asked::Attach(attach)).await;
        session
    }

    /// Says something. What the server no longer wants to hear is not sent.
    pub async fn say(&mut self, kind: impl Into<Option<Asked>>) -> &mut Self {
        if let Some(requests) = &self.requests {
            let _ = requests.send(v1::StreamMonitorRequest { kind: kind.into() }).await;
        }
        self
    }

    /// Sends output of the process.
    pub async fn chunk(&mut self, stream: v1::OutputStream, data: &[u8], seq: u64) -> &mut Self {
        self.say(chunk(stream, data, seq)).await
    }

    /// Closes the side of the client.
    pub fn close(&mut self) -> &mut Self {
        self.requests = None;
        self
    }

    /// Detaches with exit code 0 and closes the side of the client.
    pub async fn detach(&mut self) -> &mut Self {
        self.say(Asked::Detach(v1::Detach { exit_code: Some(0.into()) })).await.close()
    }

    /// The next message; `None` at the end.
    pub async fn hear(&mut self) -> Result<Option<Answered>, Status> {
        let message = tokio::time::timeout(PATIENCE, self.answers.message()).await;
        let message = message.expect("the server says something in time")?;
        Ok(message.map(|message| message.kind.expect("exactly one kind")))
    }

    /// Everything that is still to come.
    pub async fn end(mut self) -> Heard {
        let mut said = Vec::new();
        loop {
            match self.hear().await {
                Ok(Some(kind)) => said.push(kind),
                Ok(None) => return Heard { said, error: None },
                Err(error) => return Heard { said, error: Some(error) },
            }
        }
    }
}

impl Heard {
    /// The summary, which is the last message.
    pub fn summary(&self) -> &v1::Summary {
        match self.said.last() {
            Some(Answered::Summary(summary)) => summary,
            other => panic!("the last message is no summary: {other:?} {:?}", self.error),
        }
    }

    /// Incidents in the order in which they came.
    pub fn incidents(&self) -> Vec<&v1::Incident> {
        self.said
            .iter()
            .filter_map(|kind| if let Answered::Incident(one) = kind { Some(one) } else { None })
            .collect()
    }

    /// Verdicts in the order in which they came.
    pub fn verdicts(&self) -> Vec<&v1::Verdict> {
        self.said
            .iter()
            .filter_map(|kind| if let Answered::Verdict(one) = kind { Some(one) } else { None })
            .collect()
    }
}

/// A chunk.
pub fn chunk(stream: v1::OutputStream, data: &[u8], seq: u64) -> Asked {
    Asked::Chunk(v1::Chunk { stream: stream.into(), data: data.to_vec().into(), seq })
}
