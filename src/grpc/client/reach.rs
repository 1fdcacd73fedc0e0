//! How a server is reached: in clear or over TLS, with which token and certificate.

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

    /// The connection with the token of the caller.
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
        Ok(InterceptedService::new(channel, Bearer(token)))
    }
}

/// Puts the token into calls that bring none of their own.
#[derive(Clone)]
pub(in crate::grpc) struct Bearer(Option<MetadataValue<Ascii>>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0
            && !request.metadata().contains_key("authorization")
        {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}
