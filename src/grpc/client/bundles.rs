//! Calls about bundles: upload, triage, the shop window, administrative events.

use std::fs::File;
use std::io::{self, Read as _, Write};

use futures_util::stream;
use tonic::metadata::MetadataValue;
use tonic::{Request, Status, Streaming};

use super::{Client, ClientError, Wire};
use crate::grpc::SUBMITTER;
use crate::pb::v1;
use crate::pb::v1::audit_service_client::AuditServiceClient;
use crate::pb::v1::entity_service_client::EntityServiceClient;
use crate::pb::v1::submission_service_client::SubmissionServiceClient;

/// Size of the chunks of an upload, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;

/// Who calls.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The admin token of the server.
    pub token: Option<String>,
    /// Which submitter this is; only without a token.
    pub submitter: Option<String>,
}

/// A download that is being received: what it brings, and its chunks.
pub struct Receiving<R> {
    header: v1::DownloadHeader,
    messages: Streaming<R>,
    part: fn(R) -> Option<Result<v1::DownloadHeader, prost::bytes::Bytes>>,
}

/// Declares calls that ask once and are answered once.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident: $service:ident.$rpc:ident($request:ident) -> $response:ident;)+) => {
        impl Client {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// See [`ClientError`].
                pub fn $name(&self, request: v1::$request, caller: &Caller) -> Result<v1::$response, ClientError> {
                    let request = self.asked(request, caller)?;
                    self.answer(self.runtime.block_on(self.$service().$rpc(request)))
                }
            )+
        }
    };
}

unary! {
    /// One submission.
    submission: submissions_of.get_submission(GetSubmissionRequest) -> GetSubmissionResponse;
    /// One page of submissions.
    submissions: submissions_of.list_submissions(ListSubmissionsRequest) -> ListSubmissionsResponse;
    /// Publishes a submission against its verdict.
    override_submission: submissions_of.override_submission(OverrideSubmissionRequest) -> OverrideSubmissionResponse;
    /// Runs all checks of a submission again.
    rescan_submission: submissions_of.rescan_submission(RescanSubmissionRequest) -> RescanSubmissionResponse;
    /// Runs the review of a submission again.
    retry_review: submissions_of.retry_review(RetryReviewRequest) -> RetryReviewResponse;
    /// Deletes a submission for good.
    delete_submission: submissions_of.delete_submission(DeleteSubmissionRequest) -> DeleteSubmissionResponse;
    /// Removes bytes that are past the retention time.
    purge_blocked_bundles: submissions_of.purge_blocked_bundles(PurgeBlockedBundlesRequest) -> PurgeBlockedBundlesResponse;
    /// Ends reviews that nobody works on any more.
    reap_stuck_reviews: submissions_of.reap_stuck_reviews(ReapStuckReviewsRequest) -> ReapStuckReviewsResponse;
    /// One entity.
    entity: entities_of.get_entity(GetEntityRequest) -> GetEntityResponse;
    /// One page of entities.
    entities: entities_of.list_entities(ListEntitiesRequest) -> ListEntitiesResponse;
    /// Takes an entity down softly.
    archive_entity: entities_of.archive_entity(ArchiveEntityRequest) -> ArchiveEntityResponse;
    /// Brings an archived entity back.
    restore_entity: entities_of.restore_entity(RestoreEntityRequest) -> RestoreEntityResponse;
    /// Deletes an entity for good.
    delete_entity: entities_of.delete_entity(DeleteEntityRequest) -> DeleteEntityResponse;
    /// One page of administrative events.
    audit_events: audits_of.list_audit_events(ListAuditEventsRequest) -> ListAuditEventsResponse;
    /// Whether the chain of administrative events is as it was written.
    verify_audit: audits_of.verify_audit_chain(VerifyAuditChainRequest) -> VerifyAuditChainResponse;
}

impl Client {
    /// Uploads `file` under `header`; `on_sent` is told of every chunk how many bytes have gone.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn review_bundle(
        &self,
        header: v1::BundleHeader,
        file: File,
        caller: &Caller,
        on_sent: impl FnMut(u64) + Send + 'static,
    ) -> Result<v1::ReviewBundleResponse, ClientError> {
        use v1::review_bundle_request::Kind;
        let message = |kind| v1::ReviewBundleRequest { kind: Some(kind) };
        let first = stream::iter([message(Kind::Header(header))]);
        let chunks = stream::unfold((file, 0, on_sent), move |(mut file, sent, mut on_sent)| async move {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES);
            // A file that cannot be read any more ends the upload, and the server finds that bytes are missing.
            let _ = (&mut file).take(CHUNK_BYTES as u64).read_to_end(&mut chunk);
            if chunk.is_empty() {
                return None;
            }
            let sent = sent + chunk.len() as u64;
            on_sent(sent);
            Some((message(Kind::Chunk(chunk.into())), (file, sent, on_sent)))
        });
        let messages = futures_util::StreamExt::chain(first, chunks);
        let request = self.asked(messages, caller)?;
        let mut client = self.decisions();
        self.answer(self.runtime.block_on(client.review_bundle(request)))
    }

    /// Follows a submission; `on_each` is told how it stands at once and after each change. Answers the last of these.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn watch_submission(
        &self,
        request: v1::WatchSubmissionRequest,
        caller: &Caller,
        mut on_each: impl FnMut(&v1::WatchSubmissionResponse),
    ) -> Result<v1::Submission, ClientError> {
        let request = self.asked(request, caller)?;
        let watching = async {
            let mut answers = self.submissions_of().watch_submission(request).await?.into_inner();
            let mut last = None;
            while let Some(answer) = answers.message().await? {
                on_each(&answer);
                last = answer.submission;
            }
            let ended = || Status::unavailable("the watch ended before the submission did");
            last.map(tonic::Response::new).ok_or_else(ended)
        };
        self.answer(self.runtime.block_on(watching))
    }

    /// Begins to download the submitted bytes of a submission.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn download_bundle(
        &self,
        id: &str,
        caller: &Caller,
    ) -> Result<Receiving<v1::DownloadBundleResponse>, ClientError> {
        use v1::download_bundle_response::Kind;
        let request = v1::DownloadBundleRequest { submission_id: id.to_owned() };
        let request = self.asked(request, caller)?;
        let messages = self.answer(self.runtime.block_on(self.submissions_of().download_bundle(request)))?;
        self.receiving(messages, |message: v1::DownloadBundleResponse| match message.kind? {
            Kind::Header(header) => Some(Ok(header)),
            Kind::Chunk(chunk) => Some(Err(chunk)),
        })
    }

    /// Begins to download the live bytes of an entity.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn download_entity(
        &self,
        id: &str,
        caller: &Caller,
    ) -> Result<Receiving<v1::DownloadEntityResponse>, ClientError> {
        use v1::download_entity_response::Kind;
        let request = v1::DownloadEntityRequest { entity_id: id.to_owned() };
        let request = self.asked(request, caller)?;
        let messages = self.answer(self.runtime.block_on(self.entities_of().download_entity(request)))?;
        self.receiving(messages, |message: v1::DownloadEntityResponse| match message.kind? {
            Kind::Header(header) => Some(Ok(header)),
            Kind::Chunk(chunk) => Some(Err(chunk)),
        })
    }

    /// Receives the rest of a download into `out`.
    ///
    /// # Errors
    /// See [`ClientError`]; or `out` cannot be written.
    pub fn receive<R>(&self, mut from: Receiving<R>, out: &mut dyn Write) -> Result<u64, ClientError> {
        self.runtime.block_on(async {
            let mut received = 0;
            while let Some(message) =
                from.messages.message().await.map_err(|status| super::error_of(&self.url, &status))?
            {
                let Some(Err(chunk)) = (from.part)(message) else {
                    return Err(self.broken("sent something else than chunks"));
                };
                out.write_all(&chunk).map_err(|error| ClientError::Failed {
                    url: self.url.clone(),
                    message: format!("what it sent cannot be written: {error}"),
                })?;
                received += chunk.len() as u64;
            }
            if received != from.header.size {
                return Err(self.broken("ended the download before its end"));
            }
            Ok(received)
        })
    }

    fn receiving<R>(
        &self,
        mut messages: Streaming<R>,
        part: fn(R) -> Option<Result<v1::DownloadHeader, prost::bytes::Bytes>>,
    ) -> Result<Receiving<R>, ClientError> {
        let first = self.runtime.block_on(messages.message());
        let first = first.map_err(|status| super::error_of(&self.url, &status))?;
        match first.and_then(part) {
            Some(Ok(header)) => Ok(Receiving { header, messages, part }),
            _ => Err(self.broken("began the download without a header")),
        }
    }

    fn broken(&self, message: &str) -> ClientError {
        ClientError::Failed { url: self.url.clone(), message: format!("the server {message}") }
    }

    fn submissions_of(&self) -> SubmissionServiceClient<Wire> {
        SubmissionServiceClient::new(self.channel.clone()).max_decoding_message_size(usize::MAX)
    }

    fn entities_of(&self) -> EntityServiceClient<Wire> {
        EntityServiceClient::new(self.channel.clone()).max_decoding_message_size(usize::MAX)
    }

    fn audits_of(&self) -> AuditServiceClient<Wire> {
        AuditServiceClient::new(self.channel.clone()).max_decoding_message_size(usize::MAX)
    }

    /// A request of this caller.
    fn asked<T>(&self, message: T, caller: &Caller) -> Result<Request<T>, ClientError> {
        let mut request = match &caller.token {
            Some(token) => self.with_token(message, token)?,
            None => Request::new(message),
        };
        if let (None, Some(submitter)) = (&caller.token, &caller.submitter) {
            let denied = |_| ClientError::Denied {
                url: self.url.clone(),
                message: "the submitter holds characters that cannot be sent".to_owned(),
            };
            let value = MetadataValue::try_from(submitter.as_str()).map_err(denied)?;
            request.metadata_mut().insert(SUBMITTER, value);
        }
        Ok(request)
    }
}

impl<R> Receiving<R> {
    /// What the download brings.
    pub fn header(&self) -> &v1::DownloadHeader {
        &self.header
    }
}

/// The SHA-256 of a file, hex; it is read from its beginning, and stands there again.
///
/// # Errors
/// It cannot be read.
pub fn sha256_of(file: &mut File) -> io::Result<String> {
    use io::Seek as _;
    use sha2::{Digest as _, Sha256};
    file.rewind()?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    file.rewind()?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
