//! Settings of the store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bytes::S3Config;
use crate::setting::{Problem, Secret};

/// `store`: what outlives the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The database: `postgres://user@host/database`, or the path of an SQLite file. Absent: an SQLite file, see `path`.
    /// PostgreSQL takes `sslmode`, `sslrootcert`, `sslcert`, `sslkey`, `host` (a folder with a socket), `options` and
    /// `application_name` as parameters; without `sslmode` a server on another machine must prove who it is
    /// (`verify-full`), one on this machine need not.
    pub url: Option<Secret>,
    /// File with the password for `url`.
    pub password_file: Option<PathBuf>,
    /// The SQLite file. Absent: `portcullis.db` below `data_dir`. On a local disk: SQLite needs locks that work.
    pub path: Option<PathBuf>,
    /// Connections of this process to PostgreSQL at most.
    #[serde(with = "crate::setting::count")]
    pub connections_max: usize,
    /// How often changes made by other processes are looked for.
    #[serde(with = "crate::setting::duration")]
    pub poll_interval: Duration,
    /// How long one access waits for another one to finish its own, or for a connection.
    #[serde(with = "crate::setting::duration")]
    pub busy_timeout: Duration,
    /// How long one statement may take in PostgreSQL.
    #[serde(with = "crate::setting::duration")]
    pub statement_timeout: Duration,
    /// Where the bytes of bundles lie: a folder, or `s3://bucket/prefix`. Absent: `bundles` below `data_dir`.
    pub bundles: Option<String>,
    /// How S3 and what speaks like it is reached.
    pub s3: S3Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            url: None,
            password_file: None,
            path: None,
            connections_max: 10,
            poll_interval: Duration::from_secs(1),
            busy_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            bundles: None,
            s3: S3Config::default(),
        }
    }
}

impl Config {
    /// Settings that hold secrets; they come from the environment only.
    pub const SECRETS: &'static [&'static str] = &["s3.secret_access_key", "s3.session_token"];

    /// Reports what is out of range; keys are relative to this section.
    pub fn check(&self, problems: &mut Vec<Problem>) {
        if self.path.as_ref().is_some_and(|path| path.file_name().is_none()) {
            problems.push(Problem::new("path", "must name a file"));
        }
        if self.path.is_some() && self.url.is_some() {
            problems.push(Problem::new("path", "must not be given together with `store.url`"));
        }
        if let Some(Err(problem)) = self.url.as_ref().map(|url| Address::parse(url.reveal())) {
            problems.push(Problem::new("url", problem));
        }
        let is_file = matches!(self.address(Path::new("")), Ok(Address::Sqlite(_)));
        if self.password_file.is_some() && is_file {
            problems.push(Problem::new("password_file", "needs a `store.url` of PostgreSQL"));
        }
        if !(1..=1_000).contains(&self.connections_max) {
            problems.push(Problem::new("connections_max", "must be from 1 to 1000"));
        }
        if !(Duration::from_millis(10)..=Duration::from_secs(3600)).contains(&self.poll_interval) {
            problems.push(Problem::new("poll_interval", "must be from 10ms to 1h"));
        }
        if !(Duration::from_millis(100)..=Duration::from_secs(60)).contains(&self.busy_timeout) {
            problems.push(Problem::new("busy_timeout", "must be from 100ms to 60s"));
        }
        if !(Duration::from_millis(100)..=Duration::from_secs(3600)).contains(&self.statement_timeout) {
            problems.push(Problem::new("statement_timeout", "must be from 100ms to 1h"));
        }
        if self.bundles.as_ref().is_some_and(|place| place.trim().is_empty()) {
            problems.push(Problem::new("bundles", "must name a folder, or a bucket as s3://bucket/prefix"));
        }
        self.s3.check(self.bundles.as_deref(), problems);
    }

    /// Whether the database is one that processes on several machines can share.
    pub fn is_shared(&self) -> bool {
        matches!(self.address(Path::new("")), Ok(Address::Postgres(_)))
    }

    /// The SQLite file; `None` when the database is another one. `default` is where it lies if nothing is said.
    pub fn sqlite_path(&self, default: &Path) -> Option<PathBuf> {
        match self.address(default) {
            Ok(Address::Sqlite(path)) => Some(path),
            _ => None,
        }
    }

    /// Where the database is.
    pub(super) fn address(&self, default: &Path) -> Result<Address, String> {
        match (&self.url, &self.path) {
            (Some(url), _) => Address::parse(url.reveal()),
            (None, Some(path)) => Ok(Address::Sqlite(path.clone())),
            (None, None) => Ok(Address::Sqlite(default.to_owned())),
        }
    }
}

/// Where a database is.
#[derive(Clone, PartialEq)]
pub(super) enum Address {
    /// A file.
    Sqlite(PathBuf),
    /// A server, as a URL.
    Postgres(Secret),
}

impl Address {
    /// Reads a `store.url`.
    ///
    /// # Errors
    /// What is wrong with it; holds nothing of it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        const FORMS: &str = "must be postgres://user@host/database, or the path of an SQLite file";
        if text.is_empty() {
            return Err(FORMS.to_owned());
        }
        let lower = text.to_ascii_lowercase();
        if lower.starts_with("postgres://") || lower.starts_with("postgresql://") {
            super::sql::connect_options(text, None)?;
            return Ok(Self::Postgres(Secret::new(text)));
        }
        let path = match lower.strip_prefix("sqlite:") {
            Some(rest) => text[text.len() - rest.len()..].trim_start_matches("//"),
            None if text.contains("://") => return Err(FORMS.to_owned()),
            None => text,
        };
        let path = PathBuf::from(path);
        if path.file_name().is_none() {
            return Err(FORMS.to_owned());
        }
        Ok(Self::Sqlite(path))
    }
}
