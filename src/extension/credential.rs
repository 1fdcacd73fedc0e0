//! Secrets from files, read again when a file changes.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::sync::Mutex;

use super::CredentialConfig;
use super::failure::Failure;
use crate::decision::Reason;

/// Largest token file, in bytes.
const TOKEN_BYTES_MAX: u64 = 8 * 1024;
/// Largest PEM file, in bytes.
const PEM_BYTES_MAX: u64 = 1024 * 1024;

/// A credential of the settings.
pub(super) struct Credential {
    name: String,
    config: CredentialConfig,
    token: Mutex<Option<(Stamp, String)>>,
}

/// What tells one state of a file from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    inode: u64,
}

/// What TLS is made of, as PEM.
#[derive(Default)]
pub(super) struct TlsMaterial {
    /// The only certificate authorities to trust.
    pub(super) ca: Option<Vec<u8>>,
    /// Client certificate with its chain, and its key.
    pub(super) identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl Credential {
    pub(super) fn new(name: &str, config: &CredentialConfig) -> Self {
        Self { name: name.to_owned(), config: config.clone(), token: Mutex::new(None) }
    }

    /// The bearer token, if there is one to send.
    pub(super) async fn token(&self) -> Result<Option<String>, Failure> {
        let Some(path) = &self.config.bearer_file else { return Ok(None) };
        let mut known = self.token.lock().await;
        let stamp = self.stamp("bearer_file", path).await?;
        if let Some((of, token)) = &*known
            && *of == stamp
        {
            return Ok(Some(token.clone()));
        }
        let bytes = self.read("bearer_file", path, TOKEN_BYTES_MAX).await?;
        let token = std::str::from_utf8(&bytes).unwrap_or_default().trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(self.failure("bearer_file", "must hold one token of visible ASCII characters"));
        }
        *known = Some((stamp, token.to_owned()));
        Ok(Some(token.to_owned()))
    }

    /// The states of the files of [`Credential::tls`].
    pub(super) async fn tls_stamps(&self) -> Result<Vec<Stamp>, Failure> {
        let mut stamps = Vec::new();
        for (key, path) in self.tls_files() {
            stamps.push(self.stamp(key, path).await?);
        }
        Ok(stamps)
    }

    /// What TLS needs.
    pub(super) async fn tls(&self) -> Result<TlsMaterial, Failure> {
        let mut material = TlsMaterial::default();
        if let Some(path) = &self.config.ca_file {
            material.ca = Some(self.read_pem("ca_file", path, "CERTIFICATE").await?);
        }
        if let (Some(cert), Some(key)) = (&self.config.cert_file, &self.config.key_file) {
            let cert = self.read_pem("cert_file", cert, "CERTIFICATE").await?;
            let key = self.read_pem("key_file", key, "PRIVATE KEY").await?;
            material.identity = Some((cert, key));
        }
        Ok(material)
    }

    fn tls_files(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let CredentialConfig { ca_file, cert_file, key_file, .. } = &self.config;
        [("ca_file", ca_file), ("cert_file", cert_file), ("key_file", key_file)]
            .into_iter()
            .filter_map(|(key, path)| Some((key, path.as_ref()?)))
    }

    async fn stamp(&self, key: &str, path: &Path) -> Result<Stamp, Failure> {
        use std::os::unix::fs::MetadataExt;
        let metadata = tokio::fs::metadata(path).await;
        let metadata = metadata.map_err(|error| self.failure(key, &error.kind().to_string()))?;
        Ok(Stamp { modified: metadata.modified().ok(), bytes: metadata.len(), inode: metadata.ino() })
    }

    async fn read(&self, key: &str, path: &Path, bytes_max: u64) -> Result<Vec<u8>, Failure> {
        if self.stamp(key, path).await?.bytes > bytes_max {
            return Err(self.failure(key, &format!("has more than {bytes_max} bytes")));
        }
        tokio::fs::read(path).await.map_err(|error| self.failure(key, &error.kind().to_string()))
    }

    /// A PEM file. Libraries take one without a single section of the right kind for an empty list.
    async fn read_pem(&self, key: &str, path: &Path, kind: &str) -> Result<Vec<u8>, Failure> {
        let bytes = self.read(key, path, PEM_BYTES_MAX).await?;
        let text = String::from_utf8_lossy(&bytes);
        let is_section = |line: &str| {
            line.starts_with("-----BEGIN ") && line.trim_end().ends_with(&format!("{kind}-----"))
        };
        if text.lines().any(is_section) {
            Ok(bytes)
        } else {
            Err(self.failure(key, &format!("holds no {} in PEM", kind.to_ascii_lowercase())))
        }
    }

    /// A failure that names the setting; the path is the operator's business, and the answer goes to the agent.
    pub(super) fn failure(&self, key: &str, what: &str) -> Failure {
        let name = &self.name;
        Failure::refused(Reason::Error, format!("extensions.credentials.{name}.{key}: {what}"))
    }
}
