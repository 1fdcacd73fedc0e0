//! Fields of addresses and forms.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, header};

/// Largest form, in bytes, besides texts of the playground.
pub(super) const FORM_BYTES_MAX: usize = 64 * 1024;
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Most fields that are read.
const FIELDS_MAX: usize = 200;

/// Names and values, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// The fields of `a=1&b=2`.
    pub(super) fn parse(encoded: &[u8]) -> Self {
        Self(form_urlencoded::parse(encoded).into_owned().take(FIELDS_MAX).collect())
    }

    /// The first value of a name; empty when there is none.
    pub(super) fn one(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// These fields as the query of an address, with some of them replaced; empty ones are left out.
    pub(super) fn with(&self, changed: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let kept = self.0.iter().filter(|(name, _)| !changed.iter().any(|(other, _)| other == name));
        let kept = kept.map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in kept.chain(changed.iter().copied()).filter(|(_, value)| !value.is_empty()) {
            query.append_pair(name, value);
        }
        query.finish()
    }

    /// A field, for tests and for parts of other forms.
    pub(super) fn push(&mut self, name: String, value: String) {
        if self.0.len() < FIELDS_MAX {
            self.0.push((name, value));
        }
    }
}

/// Whether a body says to be a plain form.
pub(super) fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// The fields of a form of at most `limit` bytes; `None` when it is none, too large, or too slow.
pub(super) async fn read(request: Request, limit: usize) -> Option<Fields> {
    if !is_form(request.headers()) {
        return None;
    }
    Some(Fields::parse(&bytes(request.into_body(), limit).await?))
}

/// A body of at most `limit` bytes, that arrives in time.
pub(super) async fn bytes(body: Body, limit: usize) -> Option<axum::body::Bytes> {
    tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, limit)).await.ok()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_written_as_forms_do() {
        let fields = Fields::parse(b"status=a&status=b&text=%3Cb%3E+x&empty=");
        assert_eq!((fields.one("status"), fields.one("text"), fields.one("none")), ("a", "<b> x", ""));
        assert_eq!(fields.with(&[("status", "c"), ("page_token", "")]), "text=%3Cb%3E+x&status=c");
        assert_eq!(Fields::default().with(&[("a", "\r\n&=")]), "a=%0D%0A%26%3D");
    }
}
