//! What a person can do when a server cannot be talked to, told by what the transport says last.

/// Where each applies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Any,
    Clear,
    Tls,
}

const NOT_TLS: &str =
    "if TLS is spoken there, the URL begins with https://; the port must be the one of gRPC";
const NOT_CLEAR: &str =
    "if no TLS is spoken there, the URL begins with http://; the port must be the one of gRPC";
const OWN_CERTIFICATE: &str =
    "client.certificate and client.key must name a certificate that the server trusts, and its key";

/// Parts of messages, the scheme of the URL, and what to do; the first that fits counts.
const ADVICE: [(&str, Scheme, &str); 11] = [
    ("onnection refused", Scheme::Any, "start the service there, or name its gRPC address: --server URL"),
    ("lookup address", Scheme::Any, "check the name of the host"),
    (
        "invalid peer certificate",
        Scheme::Tls,
        "client.ca_file must name the authority of the server's certificate, and the URL a host that it is for",
    ),
    ("fatal alert", Scheme::Tls, OWN_CERTIFICATE),
    ("corrupt message", Scheme::Tls, NOT_CLEAR),
    ("handshake eof", Scheme::Tls, NOT_CLEAR),
    // Which it is depends on what comes first: the alert of TLS, or the end of the connection.
    ("h2 protocol error", Scheme::Clear, NOT_TLS),
    ("broken pipe", Scheme::Clear, NOT_TLS),
    ("reset by peer", Scheme::Clear, NOT_TLS),
    ("imed out", Scheme::Any, "check the address, and what lies in between"),
    ("eadline has elapsed", Scheme::Any, "check the address, and what lies in between"),
];

/// The message, with what to do where that is known.
pub(super) fn with_advice(url: &str, message: String) -> String {
    let scheme = if url.starts_with("https://") { Scheme::Tls } else { Scheme::Clear };
    let found =
        ADVICE.iter().find(|(part, of, _)| message.contains(part) && (*of == Scheme::Any || *of == scheme));
    match found {
        Some((_, _, advice)) => format!("{message}; {advice}"),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_says_what_to_do() {
        for (url, message, told) in [
            ("http://a:1", "Connection refused (os error 111)", "; start the service there"),
            ("https://a:1", "Connection refused (os error 111)", "; start the service there"),
            (
                "http://a:1",
                "failed to lookup address information: Name or service not known",
                "; check the name",
            ),
            ("https://a:1", "invalid peer certificate: UnknownIssuer", "; client.ca_file must name"),
            (
                "https://a:1",
                "received fatal alert: CertificateRequired",
                "; client.certificate and client.key",
            ),
            (
                "https://a:1",
                "received corrupt message of type InvalidContentType",
                "the URL begins with http://",
            ),
            ("https://a:1", "tls handshake eof", "the URL begins with http://"),
            ("http://a:1", "h2 protocol error: http2 error", "the URL begins with https://"),
            ("http://a:1", "stream closed because of a broken pipe", "the URL begins with https://"),
            ("http://a:1", "Connection reset by peer (os error 104)", "the URL begins with https://"),
            ("http://a:1", "deadline has elapsed", "; check the address"),
        ] {
            let said = with_advice(url, message.to_owned());
            assert!(said.starts_with(message) && said.contains(told), "{said}");
        }
        // TLS is spoken already, and the other side has simply gone away.
        for (url, message) in
            [("https://a:1", "stream closed because of a broken pipe"), ("http://a:1", "odd")]
        {
            assert_eq!(with_advice(url, message.to_owned()), message);
        }
    }
}
