//! Where the public keys of an issuer come from: a file that is watched, or a URL that is asked again and again.
//!
//! The last good set stays in force when a newer one cannot be had. Until there was one, nothing is verified.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use reqwest::{Certificate, Client, Url, redirect};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use super::{Kept, KeySet, Refreshed, read_text};

/// Largest key set, in bytes.
const SET_BYTES_MAX: usize = 1024 * 1024;
/// How long one fetch may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Shortest pause between two fetches: tokens with made-up keys must not make us ask all the time.
const PAUSE: Duration = Duration::from_secs(5);

/// The keys in force and where newer ones come from.
pub struct Keys(From);

enum From {
    File(Kept<KeySet>),
    Url(Box<Remote>),
}

struct Remote {
    url: Url,
    client: Client,
    current: ArcSwapOption<KeySet>,
    interval: Duration,
    /// Held during a fetch: whoever waits for it finds what it brought.
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    /// When the last fetch ended.
    ended: Option<Instant>,
    has_failed: bool,
    digest: [u8; 32],
}

impl Keys {
    /// Keys of a file.
    ///
    /// # Errors
    /// It cannot be read, or is no key set.
    pub fn of_file(path: PathBuf) -> Result<Self, String> {
        let read = |path: &Path| KeySet::parse(&read_text(path, SET_BYTES_MAX as u64)?);
        let file = path.clone();
        Ok(Self(From::File(Kept::start(vec![path], move || read(&file))?)))
    }

    /// Keys of a URL, which is asked again after `interval`, from a host whose certificate an authority of `ca_file` signed;
    /// without one a public authority must have. Nothing is fetched yet.
    ///
    /// # Errors
    /// The URL is none that may be asked, or the authorities that are trusted for it cannot be read.
    pub fn of_url(url: &str, interval: Duration, ca_file: Option<&Path>) -> Result<Self, String> {
        let url = check_url(url)?;
        let mut builder = Client::builder();
        if let Some(path) = ca_file {
            let pem = read_text(path, SET_BYTES_MAX as u64)
                .map_err(|why| format!("cannot be asked: auth.jwt.ca_file {why}"))?;
            let certificates = Certificate::from_pem_bundle(pem.as_bytes())
                .ok()
                .filter(|all| !all.is_empty())
                .ok_or("cannot be asked: auth.jwt.ca_file holds no certificate in PEM")?;
            builder = builder.tls_certs_only(certificates);
        }
        let client = builder
            .timeout(FETCH_TIMEOUT)
            // A redirect would let the answer of one host be that of any other.
            .redirect(redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(|error| format!("no HTTP client: {error}"))?;
        let (current, last) = (ArcSwapOption::empty(), Mutex::default());
        Ok(Self(From::Url(Box::new(Remote { url, client, current, interval, last }))))
    }

    /// The keys in force; `None` when there never were any.
    pub fn get(&self) -> Option<Arc<KeySet>> {
        match &self.0 {
            From::File(kept) => Some(kept.get()),
            From::Url(remote) => remote.current.load_full(),
        }
    }

    /// Whether newer keys may be had by asking.
    pub fn is_remote(&self) -> bool {
        matches!(self.0, From::Url(_))
    }

    /// Reads a changed file again.
    pub fn refresh_file(&self) -> Refreshed {
        match &self.0 {
            From::File(kept) => kept.refresh(),
            From::Url(_) => Refreshed::Unchanged,
        }
    }

    /// Fetches, if it is time to: after the interval, soon after a failure, and with `is_wanted` as soon as the pause
    /// allows. Whoever comes while another fetches waits for it.
    pub async fn refresh_remote(&self, is_wanted: bool) -> Refreshed {
        let From::Url(remote) = &self.0 else { return Refreshed::Unchanged };
        let mut last = remote.last.lock().await;
        let wait = if is_wanted || last.has_failed { PAUSE } else { remote.interval };
        if last.ended.is_some_and(|ended| ended.elapsed() < wait) {
            return Refreshed::Unchanged;
        }
        let fetched = remote.fetch().await;
        last.ended = Some(Instant::now());
        last.has_failed = fetched.is_err();
        match fetched {
            Ok((_, digest)) if digest == last.digest => Refreshed::Unchanged,
            Ok((keys, digest)) => {
                last.digest = digest;
                remote.current.store(Some(Arc::new(keys)));
                Refreshed::Applied
            }
            Err(problem) => Refreshed::Rejected(problem),
        }
    }
}

impl Remote {
    async fn fetch(&self) -> Result<(KeySet, [u8; 32]), String> {
        let told = |error: reqwest::Error| {
            // The URL may hold what only its owner should know; the cause never does.
            format!("cannot be fetched: {}", deepest(&error.without_url()))
        };
        let mut answer = self.client.get(self.url.clone()).send().await.map_err(told)?;
        if !answer.status().is_success() {
            return Err(format!("cannot be fetched: the answer is {}", answer.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(told)? {
            if body.len() + chunk.len() > SET_BYTES_MAX {
                return Err(format!("has more than {SET_BYTES_MAX} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        let text = std::str::from_utf8(&body).map_err(|_| "is not UTF-8".to_owned())?;
        Ok((KeySet::parse(text)?, Sha256::digest(&body).into()))
    }
}

fn deepest(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// The URL, if keys may be fetched from it: nobody on the way may replace them.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is no URL: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user or password".to_owned());
    }
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback => Ok(url),
        "http" => {
            Err("must begin with https://: over http:// anybody on the way could put in keys".to_owned())
        }
        _ => Err("must begin with https://".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_fetched_where_nobody_can_replace_them() {
        for good in
            ["https://id.acme.test/keys", "http://127.0.0.1:8080/x", "http://localhost/", "http://[::1]:1/"]
        {
            assert!(check_url(good).is_ok(), "{good}");
        }
        for wrong in [
            "http://id.acme.test/keys",
            "http://127.0.0.1.acme.test/",
            "http://localhost.acme.test/",
            "https://user:secret@id.acme.test/",
            "file:///etc/keys",
            "keys.json",
            "",
        ] {
            assert!(check_url(wrong).is_err(), "{wrong}");
        }
    }
}
