//! Bytes of bundles in a folder or in S3, through one interface.
//!
//! In a folder, a file is written under another name, flushed to the disk, and then gets its own: it is there as a whole
//! or not at all. In S3 that is so by itself.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryStreamExt};
use jiff::Timestamp;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{
    ClientOptions, Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    RetryConfig, WriteMultipart,
};
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{BundleBytes, BytesError, KeptBytes, Place, S3Config};

/// Files up to this size are sent at once, larger ones in pieces of it. S3 wants at least 5 MiB.
const PIECE_BYTES: usize = 5 << 20;
/// Pieces under way at once.
const PIECES_MAX: usize = 2;
/// Ends the name of each object.
const SUFFIX: &str = ".zip";
/// Longest id.
const ID_BYTES_MAX: usize = 64;

/// How long making a connection to S3 may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one request to S3 may take, its bytes included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// How often, and for how long, a request to S3 that failed is tried again.
const RETRIES_MAX: usize = 4;
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);

/// See the module.
pub(super) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
    /// The folder or the URL, for messages.
    place: String,
    /// The folder, if it is one.
    folder: Option<PathBuf>,
}

impl Objects {
    pub(super) fn open(place: Place, s3: &S3Config) -> Result<Self, BytesError> {
        match place {
            Place::Folder(folder) => Self::open_folder(folder),
            Place::S3 { bucket, prefix } => Self::open_s3(&bucket, &prefix, s3),
        }
    }

    fn open_folder(folder: PathBuf) -> Result<Self, BytesError> {
        let place = folder.display().to_string();
        let failed = |cause: String| BytesError::Access { place: place.clone(), cause };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|error| failed(error.to_string()))?;
        let store = LocalFileSystem::new_with_prefix(&folder).map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            store: Arc::new(store.with_fsync(true)),
            prefix: Key::default(),
            place,
            folder: Some(folder),
        })
    }

    fn open_s3(bucket: &str, prefix: &str, s3: &S3Config) -> Result<Self, BytesError> {
        let place = format!("s3://{bucket}/{prefix}");
        let client = ClientOptions::new()
            .with_allow_http(s3.may_speak_http())
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_timeout(REQUEST_TIMEOUT);
        let retry =
            RetryConfig { max_retries: RETRIES_MAX, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(s3.region.as_deref().unwrap_or("us-east-1"))
            .with_virtual_hosted_style_request(s3.virtual_hosted)
            // One at a time is all we delete, and not every service knows the other way.
            .with_disable_bulk_delete(true)
            .with_client_options(client)
            .with_retry(retry);
        let secret = |secret: &Option<crate::setting::Secret>| {
            secret.as_ref().map(|secret| secret.reveal().to_owned()).filter(|text| !text.is_empty())
        };
        for (key, value) in [
            (AmazonS3ConfigKey::Endpoint, s3.endpoint.clone()),
            (AmazonS3ConfigKey::AccessKeyId, s3.access_key_id.clone()),
            (AmazonS3ConfigKey::SecretAccessKey, secret(&s3.secret_access_key)),
            (AmazonS3ConfigKey::Token, secret(&s3.session_token)),
            (AmazonS3ConfigKey::WebIdentityTokenFile, s3.web_identity_token_file.clone()),
            (AmazonS3ConfigKey::RoleArn, s3.role_arn.clone()),
        ] {
            if let Some(value) = value {
                builder = builder.with_config(key, value);
            }
        }
        let store = builder
            .build()
            .map_err(|error| BytesError::Access { place: place.clone(), cause: said(&error) })?;
        Ok(Self { store: Arc::new(store), prefix: Key::from(prefix), place, folder: None })
    }

    fn key(&self, id: &str) -> Result<Key, BytesError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if id.is_empty() || id.len() > ID_BYTES_MAX || !id.bytes().all(is_plain) {
            return Err(BytesError::BadId { id: id.to_owned() });
        }
        Ok(self.prefix.clone().join(format!("{id}{SUFFIX}")))
    }

    fn failed(&self, id: &str, error: &Error) -> BytesError {
        match error {
            Error::NotFound { .. } => BytesError::NotFound { id: id.to_owned() },
            Error::AlreadyExists { .. } | Error::Precondition { .. } => {
                BytesError::AlreadyExists { id: id.to_owned() }
            }
            other => BytesError::Access { place: self.place.clone(), cause: said(other) },
        }
    }

    async fn put_now(&self, id: &str, path: &Path) -> Result<(), BytesError> {
        let key = self.key(id)?;
        let of_file = |error: std::io::Error| file_error(path, &error);
        let mut file = File::open(path).await.map_err(of_file)?;
        let size = file.metadata().await.map_err(of_file)?.len();
        if size <= PIECE_BYTES as u64 {
            let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
            file.read_to_end(&mut bytes).await.map_err(of_file)?;
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            let put = self.store.put_opts(&key, PutPayload::from(bytes), options).await;
            put.map_err(|error| self.failed(id, &error))?;
        } else {
            // Pieces know no `PutMode::Create`; ids are never given twice, this finds out mistakes.
            match self.store.head(&key).await {
                Err(Error::NotFound { .. }) => {}
                Ok(_) => return Err(BytesError::AlreadyExists { id: id.to_owned() }),
                Err(error) => return Err(self.failed(id, &error)),
            }
            let upload = self.store.put_multipart(&key).await.map_err(|error| self.failed(id, &error))?;
            let mut upload = WriteMultipart::new_with_chunk_size(upload, PIECE_BYTES);
            let mut buffer = vec![0; 64 << 10];
            loop {
                let read = match file.read(&mut buffer).await {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(error) => {
                        // What is left behind is swept.
                        let _ = upload.abort().await;
                        return Err(of_file(error));
                    }
                };
                upload.wait_for_capacity(PIECES_MAX).await.map_err(|error| self.failed(id, &error))?;
                upload.write(&buffer[..read]);
            }
            upload.finish().await.map_err(|error| self.failed(id, &error))?;
        }
        self.make_private(&key)
    }

    /// The folder keeps others out already; this is for copies of it that do not.
    fn make_private(&self, key: &Key) -> Result<(), BytesError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let path = folder.join(key.as_ref());
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))
            .map_err(|error| file_error(&path, &error))
    }

    async fn get_now(&self, id: &str, path: &Path) -> Result<u64, BytesError> {
        let key = self.key(id)?;
        let got = self.store.get(&key).await.map_err(|error| self.failed(id, &error))?;
        let size = got.meta.size;
        let of_file = |error: std::io::Error| file_error(path, &error);
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = OpenOptions::from(options).open(path).await.map_err(of_file)?;
        let copied = async {
            let mut stream = got.into_stream();
            let mut written = 0;
            while let Some(bytes) = stream.try_next().await.map_err(|error| self.failed(id, &error))? {
                file.write_all(&bytes).await.map_err(of_file)?;
                written += bytes.len() as u64;
            }
            file.flush().await.map_err(of_file)?;
            if written == size {
                return Ok(written);
            }
            let cause = format!("{written} of {size} bytes came");
            Err(BytesError::Access { place: self.place.clone(), cause })
        }
        .await;
        if copied.is_err() {
            // Best effort: half a file must not be taken for a whole one.
            let _ = tokio::fs::remove_file(path).await;
        }
        copied
    }

    async fn delete_now(&self, id: &str) -> Result<(), BytesError> {
        match self.store.delete(&self.key(id)?).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(id, &error)),
        }
    }

    async fn exists_now(&self, id: &str) -> Result<bool, BytesError> {
        match self.store.head(&self.key(id)?).await {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed(id, &error)),
        }
    }

    async fn list_now(&self) -> Result<Vec<KeptBytes>, BytesError> {
        let prefix = Some(&self.prefix).filter(|prefix| !prefix.as_ref().is_empty());
        let listed = self.store.list(prefix).try_filter_map(|meta| async move { Ok(kept(&meta)) });
        listed.try_collect().await.map_err(|error| self.failed("", &error))
    }

    async fn sweep_now(&self, before: Timestamp) -> Result<u64, BytesError> {
        let Some(folder) = self.folder.clone() else { return Ok(0) };
        let swept = tokio::task::spawn_blocking(move || sweep_folder(&folder, before)).await;
        swept.unwrap_or_else(|error| {
            Err(BytesError::Access { place: self.place.clone(), cause: error.to_string() })
        })
    }
}

impl BundleBytes for Objects {
    fn put_file(&self, id: String, file: PathBuf) -> BoxFuture<'_, Result<(), BytesError>> {
        async move { self.put_now(&id, &file).await }.boxed()
    }

    fn get_file(&self, id: String, file: PathBuf) -> BoxFuture<'_, Result<u64, BytesError>> {
        async move { self.get_now(&id, &file).await }.boxed()
    }

    fn delete(&self, id: String) -> BoxFuture<'_, Result<(), BytesError>> {
        async move { self.delete_now(&id).await }.boxed()
    }

    fn exists(&self, id: String) -> BoxFuture<'_, Result<bool, BytesError>> {
        async move { self.exists_now(&id).await }.boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<KeptBytes>, BytesError>> {
        self.list_now().boxed()
    }

    fn sweep_unfinished(&self, before: Timestamp) -> BoxFuture<'_, Result<u64, BytesError>> {
        self.sweep_now(before).boxed()
    }
}

/// What a name says; `None` for names that we do not give.
fn kept(meta: &ObjectMeta) -> Option<KeptBytes> {
    let id = meta.location.filename()?.strip_suffix(SUFFIX)?;
    let written = Timestamp::from_microsecond(meta.last_modified.timestamp_micros()).ok()?;
    Some(KeptBytes { submission_id: id.to_owned(), size: meta.size, written })
}

/// Deletes what has the name of an interrupted write (`….zip#1`) and was last written before a time.
fn sweep_folder(folder: &Path, before: Timestamp) -> Result<u64, BytesError> {
    let mut swept = 0;
    for entry in std::fs::read_dir(folder).map_err(|error| file_error(folder, &error))? {
        let entry = entry.map_err(|error| file_error(folder, &error))?;
        let name = entry.file_name();
        let unfinished =
            name.to_str().and_then(|name| name.rsplit_once('#')).is_some_and(|(name, number)| {
                name.ends_with(SUFFIX)
                    && !number.is_empty()
                    && number.bytes().all(|byte| byte.is_ascii_digit())
            });
        if !unfinished {
            continue;
        }
        let path = entry.path();
        let written = match entry.metadata().and_then(|metadata| metadata.modified()) {
            Ok(written) => written,
            // Finished or swept by somebody else in this moment.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(file_error(&path, &error)),
        };
        if Timestamp::try_from(written).is_ok_and(|written| written < before) {
            match std::fs::remove_file(&path) {
                Ok(()) => swept += 1,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(file_error(&path, &error)),
            }
        }
    }
    Ok(swept)
}

fn file_error(path: &Path, error: &std::io::Error) -> BytesError {
    BytesError::File { path: path.to_owned(), cause: error.to_string() }
}

/// An error with its causes: the outermost alone says little.
fn said(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
