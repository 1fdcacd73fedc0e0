//! How a server is reached: in clear or over TLS, with which token and certificate.

use std::net::IpAddr;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};

use super::{CONNECT_TIMEOUT, ClientError};

/// A connection that brings the caller's token along.
pub(in crate::grpc) type Wire = InterceptedService<Channel, Bearer>;

/// Who calls and whom it trusts. Holds secrets: it is never printed.
#[derive(Clone, Default)]
pub struct Reach {
    /// Token to send with every call.
    pub token: Option<String>,
    /// Authorities of servers, PEM; `None` for those that browsers trust.
    pub authorities: Option<Vec<u8>>,
    /// Certificate and key of the caller, PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether something else encrypts what goes to other machines, so that tokens may be sent without TLS.
    pub is_encrypted_elsewhere: bool,
}

impl Reach {
    /// Where `url` leads, and `url` in full; without a scheme it is `http`.
    pub(in crate::grpc) fn endpoint(&self, url: &str) -> Result<(String, Endpoint), ClientError> {
        let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let wrong = |message: String| ClientError::Url { url: url.clone(), message };
        let authority = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next());
        if let Some((_, host)) = authority.and_then(|authority| authority.rsplit_once('@')) {
            // Not told again: it may be a password.
            let message = "must name no user: a token is given by the setting client.token_file".to_owned();
            return Err(ClientError::Url { url: host.to_owned(), message });
        }
        let is_secure = url.starts_with("https://");
        if !is_secure && !url.starts_with("http://") {
            return Err(wrong("has another scheme than http:// and https://".to_owned()));
        }
        let endpoint = Endpoint::from_shared(url.clone())
            .map_err(|error| wrong(format!("is no URL of a server: {error}")))?
            .connect_timeout(CONNECT_TIMEOUT);
        if !is_secure {
            return Ok((url, endpoint));
        }
        let holds_certificate =
            |pem: &Vec<u8>| CertificateDer::pem_slice_iter(pem).next().is_some_and(|first| first.is_ok());
        if !self.authorities.as_ref().is_none_or(holds_certificate) {
            let message =
                "client.ca_file holds no certificate; it must be PEM, with the authority of the server";
            return Err(wrong(format!("cannot be called: {message}")));
        }
        let mut tls = match &self.authorities {
            Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
            None => ClientTlsConfig::new().with_webpki_roots(),
        };
        if let Some((certificate, key)) = &self.identity {
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        // The cause may quote a key; whoever reads the files finds what is wrong.
        let endpoint = endpoint.tls_config(tls).map_err(|_| {
            wrong("cannot be reached with client.ca_file, client.certificate and client.key".to_owned())
        })?;
        Ok((url, endpoint))
    }

    /// The connection with the token of the caller. Calls that would take a token to another machine in clear are refused
    /// before anything is sent.
    pub(in crate::grpc) fn wire(&self, url: &str, channel: Channel) -> Result<Wire, ClientError> {
        let value = |token: &String| {
            let mut value: MetadataValue<Ascii> = format!("Bearer {token}").parse().map_err(|_| {
                let message = "the token holds characters that cannot be sent".to_owned();
                ClientError::Denied { url: url.to_owned(), message }
            })?;
            value.set_sensitive(true);
            Ok::<_, ClientError>(value)
        };
        let token = self.token.as_ref().map(value).transpose()?;
        let is_private = url.starts_with("https://") || is_this_machine(url) || self.is_encrypted_elsewhere;
        Ok(InterceptedService::new(channel, Bearer { token, is_private }))
    }
}

/// Whether a URL leads to the machine it is asked on.
fn is_this_machine(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Puts the token into calls that bring none of their own.
#[derive(Clone)]
pub(in crate::grpc) struct Bearer {
    token: Option<MetadataValue<Ascii>>,
    /// Whether nobody on the way can read it.
    is_private: bool,
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.token
            && !request.metadata().contains_key("authorization")
        {
            request.metadata_mut().insert("authorization", token.clone());
        }
        if !self.is_private && request.metadata().contains_key("authorization") {
            return Err(Status::unauthenticated(
                "the token was not sent: it would cross the network in clear; use https://, or set \
                 client.insecure_allow_plaintext where something else encrypts",
            ));
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_authorities_that_holds_none_is_told() {
        for pem in ["", "hi", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"] {
            let reach = Reach { authorities: Some(pem.into()), ..Reach::default() };
            let told = reach.endpoint("https://a:1").err().map(|error| error.to_string()).unwrap_or_default();
            assert!(told.contains("client.ca_file holds no certificate"), "{pem:?}: {told}");
            assert!(reach.endpoint("http://a:1").is_ok(), "{pem:?}");
        }
    }

    #[test]
    fn a_token_goes_in_clear_to_this_machine_only() {
        for (url, is_encrypted_elsewhere, is_sent) in [
            ("http://127.0.0.1:50051", false, true),
            ("http://127.8.0.1:50051", false, true),
            ("http://[::1]:50051", false, true),
            ("http://LocalHost:50051", false, true),
            ("https://pdp.example:50051", false, true),
            ("http://pdp.example:50051", false, false),
            ("http://localhost.example:50051", false, false),
            ("http://10.0.0.1:50051", false, false),
            ("http://10.0.0.1:50051", true, true),
        ] {
            let is_private = url.starts_with("https://") || is_this_machine(url) || is_encrypted_elsewhere;
            for has_own in [true, false] {
                let mut bearer =
                    Bearer { token: has_own.then(|| MetadataValue::from_static("Bearer t")), is_private };
                let mut request = Request::new(());
                if !has_own {
                    request.metadata_mut().insert("authorization", MetadataValue::from_static("Bearer t"));
                }
                assert_eq!(bearer.call(request).is_ok(), is_sent, "{url}");
            }
            let mut anonymous = Bearer { token: None, is_private };
            assert!(anonymous.call(Request::new(())).is_ok(), "{url}");
        }
    }
}
