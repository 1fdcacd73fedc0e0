//! What the system said about a file or an address, and what to do about it.

use std::io::{self, ErrorKind};

/// The error in the words of the system, followed by advice where there is some. Errors that were worded by this program
/// are left as they are: they have said what to do.
pub fn system_problem(error: &io::Error) -> String {
    let advice = if error.get_ref().is_some() { None } else { advice(error.kind()) };
    match advice {
        Some(advice) => format!("{error}; {advice}"),
        None => error.to_string(),
    }
}

fn advice(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::NotFound => "check the path",
        ErrorKind::PermissionDenied => "give this user the right to it, or name another",
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            "a file stands where a folder is needed: name another place"
        }
        ErrorKind::IsADirectory => "that is a folder: name a file",
        ErrorKind::ReadOnlyFilesystem => "nothing can be written there: name another place",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "make room on that disk, or name a place on another"
        }
        ErrorKind::AddrInUse => "stop what listens there, or name another address",
        ErrorKind::AddrNotAvailable => "this machine has no such address: name one of its own",
        ErrorKind::InvalidData => "save it as UTF-8 text",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_that_an_operator_can_mend_says_how() {
        // Numbers of Linux.
        for (code, told) in [
            (2, "; check the path"),
            (13, "; give this user the right to it"),
            (17, "; a file stands where a folder is needed"),
            (20, "; a file stands where a folder is needed"),
            (21, "; that is a folder"),
            (28, "; make room on that disk"),
            (30, "; nothing can be written there"),
            (98, "; stop what listens there"),
            (99, "; this machine has no such address"),
            (122, "; make room on that disk"),
        ] {
            let problem = system_problem(&io::Error::from_raw_os_error(code));
            assert!(problem.contains(told), "{problem}");
        }
        let own = io::Error::new(ErrorKind::PermissionDenied, "others can read it; run `chmod 600` on it");
        assert_eq!(system_problem(&own), "others can read it; run `chmod 600` on it");
        assert_eq!(
            system_problem(&io::Error::from_raw_os_error(4)),
            io::Error::from_raw_os_error(4).to_string()
        );
    }

    #[test]
    fn a_text_in_another_encoding_is_told() {
        let error = io::read_to_string(&[0xff][..]).expect_err("no UTF-8");
        assert!(system_problem(&error).ends_with("; save it as UTF-8 text"), "{error}");
    }
}
