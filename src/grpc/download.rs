//! Archives on their way out: a header, then chunks, read as the client takes them.

use std::fs::File;
use std::io::Read as _;
use std::pin::Pin;

use futures_util::{Stream, StreamExt as _, stream};
use prost::bytes::Bytes;
use tonic::Status;

use super::RequestError;
use crate::bundles::service::Download;
use crate::pb::v1;

/// Largest chunk, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that are read at once.
const CHUNKS_AT_ONCE: usize = 16;

/// One message of a download, before it is clear of which kind of download.
pub(super) enum Part {
    /// What follows.
    Header(v1::DownloadHeader),
    /// The next bytes.
    Chunk(Bytes),
}

/// The answers of one download.
pub(super) type Answers<R> = Pin<Box<dyn Stream<Item = Result<R, Status>> + Send>>;

/// A download under way.
struct Sending {
    download: Download,
    file: Option<File>,
    left: u64,
}

/// What a download brings.
pub fn download_header(download: &Download) -> v1::DownloadHeader {
    v1::DownloadHeader {
        submission_id: download.submission_id.clone(),
        entity_id: download.entity_id.clone(),
        file_name: download.file_name.clone(),
        size: download.size,
        sha256: download.sha256.clone(),
        bundle_sha256: download.bundle_sha256.clone(),
    }
}

/// The messages of `download`, wrapped by `wrap`. The file goes when the stream ends or is dropped.
pub(super) fn stream<R: Send + 'static>(download: Download, wrap: fn(Part) -> R) -> Answers<R> {
    let header = download_header(&download);
    let first = stream::iter([Ok(wrap(Part::Header(header)))]);
    let sending = Sending { left: download.size, download, file: None };
    let chunks = stream::try_unfold(sending, |mut sending| async move {
        if sending.left == 0 {
            return Ok(None);
        }
        let reading = tokio::task::spawn_blocking(move || sending.read().map(|chunks| (chunks, sending)));
        match reading.await {
            Ok(Ok((chunks, sending))) => Ok(Some((chunks, sending))),
            Ok(Err(error)) => {
                tracing::error!(%error, "a download could not be read");
                Err(RequestError::StoreUnavailable.to_status())
            }
            Err(_) => Err(RequestError::Internal.to_status()),
        }
    });
    let chunks = chunks.flat_map(move |chunks| match chunks {
        Ok(chunks) => stream::iter(chunks.into_iter().map(|c| Ok(wrap(Part::Chunk(c)))).collect::<Vec<_>>()),
        Err(status) => stream::iter(vec![Err(status)]),
    });
    Box::pin(first.chain(chunks))
}

impl Sending {
    /// The next chunks.
    fn read(&mut self) -> std::io::Result<Vec<Bytes>> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => File::open(self.download.path())?,
        };
        let mut chunks = Vec::new();
        while self.left > 0 && chunks.len() < CHUNKS_AT_ONCE {
            let len = usize::try_from(self.left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            let mut chunk = vec![0; len];
            file.read_exact(&mut chunk)?;
            self.left -= len as u64;
            chunks.push(chunk.into());
        }
        self.file = Some(file);
        Ok(chunks)
    }
}
