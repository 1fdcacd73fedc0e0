//! Tokens: the file that lists them by hash, verification, and making new ones.
//!
//! A token is 256 random bits, so one SHA-256 is enough to keep it by: a slow hash defends guessable passwords, and
//! nobody guesses among 2^256. Every entry is compared with what was sent, in constant time, whichever fits.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};

use super::{RESERVED_NAMES, roles_of};
use crate::policy::CallerRole;
use crate::setting::system_problem;
use crate::telemetry::AuthReason;

/// What a token begins with, so that people and scanners know what they see.
const PREFIX: &str = "pct_";
/// What a hash in the file begins with.
const HASH_PREFIX: &str = "sha256:";
/// Most tokens in a file: every one is looked at for each call.
const TOKENS_MAX: usize = 1_000;
/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Longest token that is looked at, in bytes; ours are much shorter.
const TOKEN_BYTES_MAX: usize = 4_096;
/// Longest name of a caller or tenant, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// One entry of the file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    hash: String,
    roles: Vec<String>,
    #[serde(default)]
    tenant: String,
    expires: Option<Timestamp>,
}

/// Who holds a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Name.
    pub name: String,
    /// Tenant; empty is the default tenant.
    pub tenant: String,
    /// Roles.
    pub roles: &'static [CallerRole],
    /// From when on the token is refused; `None` for never.
    pub expires: Option<Timestamp>,
}

/// The tokens of a file.
#[derive(Debug, Default)]
pub struct TokenSet {
    hashes: Vec<[u8; 32]>,
    holders: Vec<Holder>,
}

impl TokenSet {
    /// Reads the text of a file: a YAML list, which may be empty.
    ///
    /// # Errors
    /// The first thing that is wrong with it. The message tells the place and no value of the file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_blank = |line: &str| line.is_empty() || line.starts_with('#') || line == "---";
        if text.lines().map(str::trim).all(is_blank) {
            return Ok(Self::default());
        }
        let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
        let entries: Vec<Entry> = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            let line = error.location().map_or(0, |location| location.line());
            // What the reader says may quote the file, and somebody may have put a token where its hash belongs.
            format!(
                "line {line}: is not a list of tokens; each has name, hash, roles, and may have tenant and expires \
                 (such as 2027-01-31T00:00:00Z)"
            )
        })?;
        if entries.len() > TOKENS_MAX {
            return Err(format!("has {} tokens, more than {TOKENS_MAX}", entries.len()));
        }
        let (mut set, mut seen) = (Self::default(), HashSet::new());
        for (index, entry) in entries.into_iter().enumerate() {
            let wrong = |what: String| format!("token {}: {what}", index + 1);
            let (hash, holder) = read(entry).map_err(wrong)?;
            if !seen.insert(hash) {
                return Err(wrong("has the same hash as another one".to_owned()));
            }
            set.hashes.push(hash);
            set.holders.push(holder);
        }
        Ok(set)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Whose token this is.
    ///
    /// # Errors
    /// Nobody's, or it has expired at `now`.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<&Holder, AuthReason> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(AuthReason::Malformed);
        }
        let sent = digest(token);
        // One more than the index of the entry that fits; 0 for none. Entries are all looked at, in the same time.
        let mut found = 0_u32;
        for (place, hash) in (1_u32..).zip(&self.hashes) {
            found.conditional_assign(&place, hash.ct_eq(&sent));
        }
        let index = (found as usize).checked_sub(1).ok_or(AuthReason::Unknown)?;
        let holder = &self.holders[index];
        if holder.expires.is_some_and(|expires| expires <= now) {
            return Err(AuthReason::Expired);
        }
        Ok(holder)
    }
}

/// Reads a file of tokens.
///
/// # Errors
/// It cannot be read, or what is wrong with it; no value of it is told.
pub fn read_tokens(path: &Path) -> Result<TokenSet, String> {
    check_writers(path)?;
    TokenSet::parse(&read_text(path, FILE_BYTES_MAX)?)
}

/// Refuses a file that others than its owner may write: whoever may could add an administrator.
#[cfg(unix)]
fn check_writers(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;
    let mode = std::fs::metadata(path)
        .map_err(|error| format!("cannot be read: {}", system_problem(&error)))?
        .mode();
    if mode & 0o022 == 0 {
        return Ok(());
    }
    Err(format!(
        "may be written by others than its owner (mode {:o}); take that away: chmod go-w",
        mode & 0o777
    ))
}

#[cfg(not(unix))]
fn check_writers(_path: &Path) -> Result<(), String> {
    Ok(())
}

/// The text of a file of at most `bytes_max` bytes.
///
/// # Errors
/// It cannot be read, or is larger.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, String> {
    let told = |error: std::io::Error| format!("cannot be read: {}", system_problem(&error));
    let mut text = String::new();
    let file = File::open(path).map_err(told)?;
    file.take(bytes_max + 1).read_to_string(&mut text).map_err(told)?;
    if text.len() as u64 > bytes_max {
        return Err(format!("has more than {bytes_max} bytes"));
    }
    Ok(text)
}

fn read(entry: Entry) -> Result<([u8; 32], Holder), String> {
    let name = entry.name;
    check_name(&name).map_err(|what| format!("name {what}"))?;
    if !entry.tenant.is_empty() {
        check_tenant(&entry.tenant).map_err(|what| format!("tenant {what}"))?;
    }
    let hash = entry.hash.strip_prefix(HASH_PREFIX).and_then(bytes_of_hex).ok_or_else(|| {
        format!(
            "the hash of `{name}` must be `{HASH_PREFIX}` and 64 hexadecimal digits, as `portcullis token create` prints it"
        )
    })?;
    let mut roles = Vec::new();
    for role in &entry.roles {
        let known = CallerRole::parse(role).ok_or_else(|| {
            format!("`{name}` has an unknown role; known: agent, submitter, auditor, admin")
        })?;
        roles.push(known);
    }
    if roles.is_empty() {
        return Err(format!("`{name}` has no role; give it some of agent, submitter, auditor, admin"));
    }
    let holder = Holder { name, tenant: entry.tenant, roles: roles_of(&roles), expires: entry.expires };
    Ok((hash, holder))
}

/// What is wrong with the name of a caller.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    if RESERVED_NAMES.contains(&name) {
        return Err(format!("`{name}` is one that the service itself gives; choose another"));
    }
    check_tenant(name)
}

/// What is wrong with the name of a tenant that is not empty.
pub(super) fn check_tenant(name: &str) -> Result<(), String> {
    let is_plain = !name.is_empty() && name.trim() == name && !name.chars().any(char::is_control);
    if !is_plain || name.len() > NAME_BYTES_MAX {
        return Err(format!(
            "must have 1 to {NAME_BYTES_MAX} bytes, no control characters, and no space at either end"
        ));
    }
    Ok(())
}

/// A token that was just made.
pub struct NewToken {
    /// The token, to be handed to its holder and shown nowhere else.
    pub token: String,
    /// What the file keeps of it.
    pub hash: String,
}

/// Makes a token.
///
/// # Errors
/// The system has no random bits.
pub fn new_token() -> Result<NewToken, String> {
    let mut bits = [0_u8; 32];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random.fill(&mut bits).map_err(|_| "the system has no random bits".to_owned())?;
    let token = format!("{PREFIX}{}", hex(&bits));
    let hash = format!("{HASH_PREFIX}{}", hex(&digest(&token)));
    Ok(NewToken { token, hash })
}

/// SHA-256 of a token.
pub(super) fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}"); // writing to a String cannot fail
        hex
    })
}

fn bytes_of_hex(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    (digits.len() == 64).then(|| bytes.try_into().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn a_token_is_its_holders_and_no_other_is() {
        let (one, two) = (new_token().expect("random bits"), new_token().expect("random bits"));
        assert_ne!(one.token, two.token);
        assert_eq!(one.token.len(), PREFIX.len() + 64);
        let file = format!(
            "# callers\n- name: ci\n  hash: {}\n  roles: [submitter, agent]\n  tenant: acme\n\
             - {{ name: root, hash: '{}', roles: [admin], expires: 2026-06-01T00:00:00Z }}\n",
            one.hash, two.hash
        );
        let set = TokenSet::parse(&file).expect("it is well formed");
        assert_eq!(set.len(), 2);
        let ci = set.verify(&one.token, at("2030-01-01T00:00:00Z")).expect("it never expires");
        assert_eq!(
            (&*ci.name, &*ci.tenant, ci.roles),
            ("ci", "acme", roles_of(&[CallerRole::Agent, CallerRole::Submitter]))
        );
        let root = set.verify(&two.token, at("2026-05-31T23:59:59Z")).expect("not yet expired");
        assert_eq!((&*root.name, &*root.tenant, root.roles.len()), ("root", "", 4));
        assert_eq!(set.verify(&two.token, at("2026-06-01T00:00:00Z")), Err(AuthReason::Expired));
        for wrong in [String::new(), one.token.to_uppercase(), format!("{} ", one.token), one.hash.clone()] {
            assert_eq!(set.verify(&wrong, at("2026-01-01T00:00:00Z")), Err(AuthReason::Unknown), "{wrong}");
        }
        assert_eq!(set.verify(&"x".repeat(5_000), at("2026-01-01T00:00:00Z")), Err(AuthReason::Malformed));
    }

    #[test]
    fn a_file_that_is_wrong_is_refused_without_its_values() {
        let hash = format!("sha256:{}", "ab".repeat(32));
        let good = format!("- {{ name: a, hash: '{hash}', roles: [agent] }}\n");
        assert!(TokenSet::parse("").expect("nobody").is_empty());
        assert!(TokenSet::parse("# nobody yet\n").expect("nobody").is_empty());
        assert!(TokenSet::parse(&good).is_ok());
        for (file, told) in [
            (format!("{good}{good}"), "token 2: has the same hash"),
            (good.replace("name: a", "name: admin"), "one that the service itself gives"),
            (good.replace("name: a", "name: ' a'"), "no space at either end"),
            (good.replace("roles: [agent]", "roles: []"), "has no role"),
            (good.replace("[agent]", "[root]"), "unknown role"),
            (good.replace(&hash, "pct_planted"), "must be `sha256:`"),
            (good.replace(&hash, &hash[..40]), "must be `sha256:`"),
            (good.replace("name: a", "name: a, scope: x"), "line 1"),
            (good.replace("roles: [agent]", "roles: [agent], expires: soon"), "line 1"),
            ("tokens: pct_planted\n".to_owned(), "line 1"),
            ("- [".to_owned(), "is not a list of tokens"),
        ] {
            let problem = TokenSet::parse(&file).expect_err(&file);
            assert!(problem.contains(told) && !problem.contains("planted"), "{file}\n{problem}");
        }
    }
}
