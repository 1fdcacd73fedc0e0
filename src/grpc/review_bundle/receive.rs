//! The messages of an upload, one at a time, into a file: counted, held to what was declared, and never all in memory.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt as _};
use prost::Message as _;
use tonic::{Code, Status};

use super::header::{Header, too_large};
use crate::bundles::spool::{Spool, Spooled, Spooling};
use crate::grpc::{RequestError, status};
use crate::pb::v1;
use crate::pb::v1::review_bundle_request::Kind;
use crate::setting::system_problem;

/// Bytes that are gathered before they are written: a few writes are cheaper than many.
const GATHER_BYTES: usize = 256 * 1024;

/// How the transport begins to tell that a message is framed wrongly.
const BAD_FRAME: &str = "protocol error: received message";

/// Reads the messages of one upload.
pub(super) struct Reader<S> {
    messages: S,
    message_bytes_max: usize,
    idle_timeout: Duration,
    until: Instant,
}

impl<S> Reader<S>
where
    S: Stream<Item = Result<v1::ReviewBundleRequest, Status>> + Unpin,
{
    /// A reader of messages of at most `message_bytes_max` bytes, which may come `idle_timeout` apart, and take `timeout`
    /// together.
    pub(super) fn new(
        messages: S,
        message_bytes_max: usize,
        idle_timeout: Duration,
        timeout: Duration,
    ) -> Self {
        let until = Instant::now() + timeout;
        Self { messages, message_bytes_max, idle_timeout, until }
    }

    /// The header, which comes first.
    ///
    /// # Errors
    /// Something else came, or nothing.
    pub(super) async fn header(&mut self) -> Result<v1::BundleHeader, RequestError> {
        match self.next().await? {
            Some(Kind::Header(header)) => Ok(header),
            Some(Kind::Chunk(_)) => Err(RequestError::Upload {
                kind: "NO_HEADER",
                message: "the first message of an upload must be its header; chunks follow it".to_owned(),
            }),
            None => Err(RequestError::Upload {
                kind: "NO_HEADER",
                message: "nothing was sent; begin with a header, then send chunks".to_owned(),
            }),
        }
    }

    /// The bytes, to the end of the client's side, held to `header` and to `bytes_max`.
    ///
    /// # Errors
    /// There are too many, they are not those that were declared, or they cannot be written.
    pub(super) async fn receive(
        &mut self,
        spool: &Spool,
        header: &Header,
        bytes_max: u64,
    ) -> Result<Spooled, RequestError> {
        let spool = spool.clone();
        let begun = tokio::task::spawn_blocking(move || spool.begin()).await;
        let mut file = begun.map_err(|_| RequestError::Internal)?.map_err(|error| unwritten(&error))?;
        let mut gathered = Vec::new();
        let mut total = 0_u64;
        while let Some(kind) = self.next().await? {
            let Kind::Chunk(chunk) = kind else {
                return Err(RequestError::Upload {
                    kind: "HEADER_REPEATED",
                    message: "a header came after the first message; send it once, then chunks".to_owned(),
                });
            };
            total += chunk.len() as u64;
            if total > bytes_max {
                return Err(too_large(total, bytes_max));
            }
            if header.size != 0 && total > header.size {
                return Err(wrong_size(header.size, &format!("at least {total}")));
            }
            gathered.extend_from_slice(&chunk);
            if gathered.len() >= GATHER_BYTES {
                (file, gathered) = write(file, gathered).await?;
            }
        }
        (file, _) = write(file, gathered).await?;
        let spooled = file.finish();
        if header.size != 0 && spooled.size() != header.size {
            return Err(wrong_size(header.size, &spooled.size().to_string()));
        }
        if !header.sha256.is_empty() && header.sha256 != spooled.sha256() {
            let message = format!("is not the hash of what was sent, which is {}", spooled.sha256());
            return Err(RequestError::field("header.sha256", message));
        }
        Ok(spooled)
    }

    /// The next message; `None` once the client has closed its side.
    async fn next(&mut self) -> Result<Option<Kind>, RequestError> {
        let idle = Instant::now() + self.idle_timeout;
        let until = self.until.min(idle);
        let late = || if self.until < idle { RequestError::UploadSlow } else { RequestError::UploadIdle };
        let message = {
            let next = pin!(self.messages.next());
            tokio::time::timeout_at(until.into(), next).await.map_err(|_| late())?
        };
        let message = match message {
            None => return Ok(None),
            Some(Ok(message)) => message,
            Some(Err(status)) => return Err(self.broken(&status)),
        };
        let found = message.encoded_len();
        if found > self.message_bytes_max {
            return Err(RequestError::TooLarge {
                what: "the message",
                found: found as u64,
                limit: self.message_bytes_max as u64,
                setting: "server.request_bytes_max",
            });
        }
        match message.kind {
            Some(kind) => Ok(Some(kind)),
            None => Err(RequestError::field("kind", "is not set; send a header or a chunk")),
        }
    }

    fn broken(&self, status: &Status) -> RequestError {
        match status::restate(status.code(), status.message(), self.message_bytes_max) {
            Some(error) => error,
            None if status.code() == Code::Internal && status.message().starts_with(BAD_FRAME) => {
                RequestError::field("kind", "is framed in a way that cannot be read")
            }
            // Nobody hears this.
            None => RequestError::Gone,
        }
    }
}

/// Writes what was gathered, off the workers that answer calls; gives the room of it back.
async fn write(mut file: Spooling, mut bytes: Vec<u8>) -> Result<(Spooling, Vec<u8>), RequestError> {
    let writing = tokio::task::spawn_blocking(move || {
        let written = file.write(&bytes);
        bytes.clear();
        (written, file, bytes)
    });
    let (written, file, bytes) = writing.await.map_err(|_| RequestError::Internal)?;
    written.map_err(|error| unwritten(&error))?;
    Ok((file, bytes))
}

fn unwritten(error: &std::io::Error) -> RequestError {
    // The caller has no use for the state of our disk; the operator has.
    tracing::error!(error = system_problem(error), "an upload could not be written below data_dir");
    RequestError::StoreUnavailable
}

fn wrong_size(declared: u64, found: &str) -> RequestError {
    RequestError::field("header.size", format!("is {declared}, and {found} bytes were sent"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decision::BundleKind;

    /// One message of a client that may do anything.
    #[derive(Clone, Debug)]
    enum Sent {
        Header,
        Chunk(Vec<u8>),
        Nothing,
        Broken,
    }

    fn sent() -> impl Strategy<Value = Vec<Sent>> {
        let one = prop_oneof![
            1 => Just(Sent::Header),
            8 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Sent::Chunk),
            1 => Just(Sent::Nothing),
            1 => Just(Sent::Broken),
        ];
        // Mostly well begun, so that more than the first message is looked at.
        (any::<bool>(), proptest::collection::vec(one, 0..12)).prop_map(|(is_begun, mut all)| {
            if is_begun {
                all.insert(0, Sent::Header);
            }
            all
        })
    }

    fn message(sent: Sent) -> Result<v1::ReviewBundleRequest, Status> {
        let kind = match sent {
            Sent::Header => Some(Kind::Header(v1::BundleHeader::default())),
            Sent::Chunk(bytes) => Some(Kind::Chunk(bytes.into())),
            Sent::Nothing => None,
            Sent::Broken => return Err(Status::unknown("the connection broke")),
        };
        Ok(v1::ReviewBundleRequest { kind })
    }

    fn header(size: u64, sha256: &str) -> Header {
        Header {
            kind: BundleKind::Skill,
            name: String::new(),
            submitter: "ada".to_owned(),
            entity_id: None,
            sha256: sha256.to_owned(),
            size,
            is_dry_run: false,
            context: v1::CallContext::default(),
            policy: "default".to_owned(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        /// Whatever comes in whatever order: bytes are taken exactly when a header came once and first, nothing but
        /// chunks followed, and they are what was declared. Nothing is left in the folder.
        #[test]
        fn only_a_header_and_its_bytes_are_taken(sent in sent(), declared in 0_u64..60, is_true in any::<bool>()) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let folder = tempfile::tempdir().expect("a folder");
            let spool = Spool::open(folder.path()).expect("it opens");
            let chunks: Option<Vec<u8>> = match sent.split_first() {
                Some((Sent::Header, rest)) => rest
                    .iter()
                    .map(|one| match one {
                        Sent::Chunk(bytes) => Some(bytes.clone()),
                        _ => None,
                    })
                    .collect::<Option<Vec<_>>>()
                    .map(|chunks| chunks.concat()),
                _ => None,
            };
            let whole = chunks.as_ref().map_or(0, |bytes| bytes.len() as u64);
            let size = if is_true { whole } else { declared };
            let wanted = chunks.filter(|bytes| bytes.len() <= 100 && (size == 0 || size == bytes.len() as u64));
            let messages = futures_util::stream::iter(sent.into_iter().map(message));
            let minute = Duration::from_secs(60);
            let taken = runtime.block_on(async {
                let mut reader = Reader::new(messages, 1_000, minute, minute);
                reader.header().await?;
                reader.receive(&spool, &header(size, ""), 100).await
            });
            match (taken, wanted) {
                (Ok(spooled), Some(bytes)) => {
                    prop_assert_eq!(std::fs::read(spooled.path()).expect("it is there"), bytes);
                }
                (Err(_), None) => {}
                (taken, wanted) => prop_assert!(false, "{:?} for {:?}", taken, wanted),
            }
            prop_assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
        }
    }

    #[tokio::test]
    async fn a_wrong_hash_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(folder.path()).expect("it opens");
        for (sha256, is_taken) in [
            ("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", true),
            ("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ae", false),
        ] {
            let messages =
                [Sent::Header, Sent::Chunk(b"ab".to_vec()), Sent::Chunk(b"c".to_vec())].map(message);
            let minute = Duration::from_secs(60);
            let mut reader = Reader::new(futures_util::stream::iter(messages), 1_000, minute, minute);
            reader.header().await.expect("it comes first");
            let taken = reader.receive(&spool, &header(0, sha256), 100).await;
            assert_eq!(taken.is_ok(), is_taken, "{taken:?}");
        }
    }
}
