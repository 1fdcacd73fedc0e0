//! Who is logged in: a bounded set of sessions in memory.
//!
//! A session is a credential that was good at login; each page asks the services with it again, so one that was taken back
//! opens nothing any more. The id that a browser holds is kept as a hash only, is 256 bits of the system's randomness, and
//! is new with every login. A restart ends all sessions.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::crypto::aws_lc_rs::default_provider;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::Config;

/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 64;

/// Sessions by the hash of their id.
#[derive(Debug)]
pub(super) struct Sessions {
    known: Mutex<HashMap<[u8; 32], Entry>>,
    idle: Duration,
    longest: Duration,
    most: usize,
}

#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    /// Tenant and name of whoever logged in.
    owner: (String, String),
    began: Instant,
    used: Instant,
}

/// One login.
pub(super) struct Session {
    /// The credential.
    pub(super) token: String,
    /// What every form must bring.
    pub(super) csrf: String,
}

/// The system gave no randomness.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random numbers")]
pub(super) struct NoRandomness;

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl Session {
    /// Whether a form brought the word of this session. Takes the same time wherever they differ.
    pub(super) fn is_sent(&self, csrf: &str) -> bool {
        self.csrf.as_bytes().ct_eq(csrf.as_bytes()).into()
    }
}

impl Sessions {
    /// No sessions yet.
    pub(super) fn new(config: &Config) -> Self {
        Self {
            known: Mutex::default(),
            idle: config.session_idle,
            longest: config.session_max,
            most: config.sessions_max,
        }
    }

    /// Begins one for a caller of a tenant; answers its id, which nobody else learns. Where there are too many, one of the
    /// tenant with the most ends, of its caller with the most, the one least recently used: so nobody can end the sessions
    /// of others by logging in again and again.
    ///
    /// # Errors
    /// See [`NoRandomness`].
    pub(super) fn begin(
        &self,
        token: String,
        owner: (&str, &str),
        now: Instant,
    ) -> Result<String, NoRandomness> {
        let (id, csrf) = (random()?, random()?);
        let mut known = self.known();
        known.retain(|_, entry| self.is_alive(entry, now));
        let owner = (owner.0.to_owned(), owner.1.to_owned());
        while known.len() >= self.most {
            // The new one counts too: whoever has most with it makes room for it.
            let mut tenants: HashMap<&str, usize> = HashMap::from([(&*owner.0, 1)]);
            let mut callers: HashMap<&(String, String), usize> = HashMap::from([(&owner, 1)]);
            for entry in known.values() {
                *tenants.entry(&entry.owner.0).or_default() += 1;
                *callers.entry(&entry.owner).or_default() += 1;
            }
            let weight = |entry: &Entry| {
                let of = (tenants.get(&*entry.owner.0), callers.get(&entry.owner));
                (of, std::cmp::Reverse(entry.used))
            };
            let most = known.iter().max_by_key(|(_, entry)| weight(entry)).map(|(hash, _)| *hash);
            let Some(most) = most else { break };
            known.remove(&most);
        }
        let session = Arc::new(Session { token, csrf });
        known.insert(hash(&id), Entry { session, owner, began: now, used: now });
        Ok(id)
    }

    /// The session of an id, which counts as used where a person asks; a page that follows something by itself is no use.
    pub(super) fn get(&self, id: &str, is_used: bool, now: Instant) -> Option<Arc<Session>> {
        // What cannot be an id is not hashed: it may be long.
        if id.len() != ID_DIGITS {
            return None;
        }
        let (mut known, hash) = (self.known(), hash(id));
        let entry = known.get_mut(&hash)?;
        if self.is_alive(entry, now) {
            if is_used {
                entry.used = now;
            }
            return Some(entry.session.clone());
        }
        known.remove(&hash);
        None
    }

    /// Ends one.
    pub(super) fn end(&self, id: &str) {
        self.known().remove(&hash(id));
    }

    fn is_alive(&self, entry: &Entry, now: Instant) -> bool {
        let since = |then: Instant| now.saturating_duration_since(then);
        since(entry.used) < self.idle && since(entry.began) < self.longest
    }

    fn known(&self) -> MutexGuard<'_, HashMap<[u8; 32], Entry>> {
        // Every change is one call on the map, so one that panicked left it whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(id: &str) -> [u8; 32] {
    Sha256::digest(id.as_bytes()).into()
}

/// 256 bits, in hexadecimal.
fn random() -> Result<String, NoRandomness> {
    let mut bytes = [0; 32];
    default_provider().secure_random.fill(&mut bytes).map_err(|_| NoRandomness)?;
    let mut hex = String::with_capacity(ID_DIGITS);
    for byte in bytes {
        let _ = write!(hex, "{byte:02x}"); // writing to a String cannot fail
    }
    Ok(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: (&str, &str) = ("", "me");

    fn sessions(most: usize) -> Sessions {
        Sessions::new(&Config {
            session_idle: Duration::from_secs(10),
            session_max: Duration::from_secs(60),
            sessions_max: most,
            ..Config::default()
        })
    }

    #[test]
    fn ids_are_long_and_never_the_same() {
        let (sessions, now) = (sessions(10), Instant::now());
        let ids: Vec<String> =
            (0..5).map(|_| sessions.begin("t".to_owned(), ME, now).expect("randomness")).collect();
        for (at, id) in ids.iter().enumerate() {
            assert!(id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
            assert!(!ids[..at].contains(id));
            let session = sessions.get(id, true, now).expect("it is there");
            assert_ne!(session.csrf, *id);
            assert!(session.is_sent(&session.csrf) && !session.is_sent("") && !session.is_sent(id));
        }
        let kept = format!("{sessions:?}");
        assert!(!ids.iter().any(|id| kept.contains(id.as_str())), "ids are kept hashed");
        assert!(sessions.get("", true, now).is_none() && sessions.get(&"0".repeat(64), true, now).is_none());
    }

    #[test]
    fn sessions_end_by_themselves() {
        let (sessions, start) = (sessions(10), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let id = sessions.begin("t".to_owned(), ME, start).expect("randomness");
        for second in [9, 18, 27, 36, 45, 54] {
            assert!(sessions.get(&id, true, at(second)).is_some(), "{second}");
        }
        assert!(sessions.get(&id, true, at(60)).is_none(), "however it is used");
        let id = sessions.begin("t".to_owned(), ME, start).expect("randomness");
        assert!(sessions.get(&id, true, at(10)).is_none(), "unused");
        let id = sessions.begin("t".to_owned(), ME, start).expect("randomness");
        sessions.end(&id);
        assert!(sessions.get(&id, true, start).is_none());
    }

    #[test]
    fn a_page_that_follows_something_keeps_nobody_logged_in() {
        let (sessions, start) = (sessions(10), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let id = sessions.begin("t".to_owned(), ME, start).expect("randomness");
        for second in [2, 4, 6, 8] {
            assert!(sessions.get(&id, false, at(second)).is_some(), "{second}");
        }
        assert!(sessions.get(&id, false, at(10)).is_none());
    }

    #[test]
    fn nobody_ends_the_sessions_of_others_by_logging_in() {
        let (sessions, start) = (sessions(10), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let admin = sessions.begin("a".to_owned(), ("", "root"), at(0)).expect("randomness");
        let second = sessions.begin("a".to_owned(), ("", "root"), at(1)).expect("randomness");
        let peer = sessions.begin("p".to_owned(), ("acme", "peer"), at(1)).expect("randomness");
        let mut own = Vec::new();
        for _ in 0..30 {
            own.push(sessions.begin("u".to_owned(), ("acme", "uploader"), at(2)).expect("randomness"));
        }
        for id in [&admin, &second, &peer] {
            assert!(sessions.get(id, false, at(3)).is_some());
        }
        assert_eq!(own.iter().filter(|id| sessions.get(id, false, at(3)).is_some()).count(), 7);
        assert!(own.last().is_some_and(|last| sessions.get(last, false, at(3)).is_some()));
    }

    #[test]
    fn one_too_many_ends_the_one_least_recently_used() {
        let (sessions, start) = (sessions(2), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let first = sessions.begin("1".to_owned(), ("", "1"), at(0)).expect("randomness");
        let second = sessions.begin("2".to_owned(), ("", "2"), at(1)).expect("randomness");
        assert!(sessions.get(&first, true, at(2)).is_some());
        let third = sessions.begin("3".to_owned(), ("", "3"), at(3)).expect("randomness");
        assert!(sessions.get(&second, true, at(3)).is_none());
        assert!(sessions.get(&first, true, at(3)).is_some() && sessions.get(&third, true, at(3)).is_some());
    }
}
