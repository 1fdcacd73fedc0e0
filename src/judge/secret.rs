//! Keys of providers: they never show themselves.

use std::path::Path;

use reqwest::header::HeaderValue;

/// Largest key file, in bytes.
const KEY_BYTES_MAX: u64 = 8 * 1024;

pub use crate::setting::Secret;

/// Reads a key from its file.
///
/// # Errors
/// What is wrong with the file; neither its path nor anything in it.
pub(super) fn read(path: &Path) -> Result<Secret, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.kind().to_string())?;
    if metadata.len() > KEY_BYTES_MAX {
        return Err(format!("has more than {KEY_BYTES_MAX} bytes"));
    }
    let bytes = std::fs::read(path).map_err(|error| error.kind().to_string())?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default().trim();
    check(text).map(|()| Secret::new(text))
}

/// Whether a key can be sent.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("must hold one key of visible ASCII characters".to_owned());
    }
    Ok(())
}

/// A header value that is kept out of logs and compression tables.
pub(super) fn header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show_itself() {
        let secret = Secret::new(" hunter2 \n");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "*** Some(***)");
        assert_eq!(secret.reveal(), "hunter2");
        assert_eq!(format!("{:?}", header("Bearer hunter2")), "Some(Sensitive)");
    }

    #[test]
    fn key_files_are_read_strictly() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        for (bytes, wanted) in [
            (&b"abc-123\n"[..], Ok("abc-123")),
            (b"", Err("visible ASCII")),
            (b"two words", Err("visible ASCII")),
            (b"\xff\xfe", Err("visible ASCII")),
            (&[b'x'; 9000], Err("more than 8192 bytes")),
        ] {
            std::fs::write(&path, bytes).expect("it writes");
            match (read(&path), wanted) {
                (Ok(found), Ok(wanted)) => assert_eq!(found.reveal(), wanted),
                (Err(found), Err(wanted)) => assert!(found.contains(wanted), "{found}"),
                (found, wanted) => panic!("{found:?} is not {wanted:?}"),
            }
        }
        assert_eq!(read(&folder.path().join("none")).expect_err("it is missing"), "entity not found");
    }
}
