//! What a certificate says: whose it is, and until when.

use jiff::Timestamp;
use x509_parser::extensions::GeneralName;
use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::parse_x509_certificate;
use x509_parser::x509::X509Name;

/// The certificate of the other side of a connection, signed by an authority that the settings name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCertificate {
    /// Its subject, such as `CN=ci,O=Acme`: attributes in the order of the certificate.
    pub subject: String,
    /// Its alternative names: host names, URIs and mail addresses.
    pub names: Vec<String>,
    /// Until when it is valid, in seconds since 1970.
    pub not_after: i64,
}

impl PeerCertificate {
    /// Reads a certificate.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(der: &[u8]) -> Result<Self, String> {
        let (_, certificate) = parse_x509_certificate(der).map_err(|_| unreadable())?;
        let names = certificate.subject_alternative_name().map_err(|_| unreadable())?;
        let names = names.iter().flat_map(|names| &names.value.general_names).filter_map(|name| match name {
            GeneralName::DNSName(text) | GeneralName::URI(text) | GeneralName::RFC822Name(text) => {
                Some((*text).to_owned())
            }
            _ => None,
        });
        Ok(Self {
            subject: subject(certificate.subject()),
            names: names.collect(),
            not_after: certificate.validity().not_after.timestamp(),
        })
    }

    /// Whether it is still valid. A connection may outlive the certificate that began it.
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        now.as_second() <= self.not_after
    }
}

/// When the first of these certificates ends, in seconds since 1970.
///
/// # Errors
/// One cannot be read, or there is none.
pub fn earliest_end<'a>(certificates: impl Iterator<Item = &'a [u8]>) -> Result<i64, String> {
    let mut earliest: Option<i64> = None;
    for der in certificates {
        let (_, certificate) = parse_x509_certificate(der).map_err(|_| unreadable())?;
        let end = certificate.validity().not_after.timestamp();
        earliest = Some(earliest.map_or(end, |before| before.min(end)));
    }
    earliest.ok_or_else(|| "holds no certificate".to_owned())
}

fn unreadable() -> String {
    "holds a certificate that cannot be read".to_owned()
}

/// A name as the settings write it: `CN=ci,O=Acme`. A comma, a plus or a backslash in a value has a backslash before it.
fn subject(name: &X509Name<'_>) -> String {
    let parts = name.iter_rdn().map(|relative| {
        let attributes = relative.iter().map(|attribute| {
            let oid = attribute.attr_type();
            let key = oid2abbrev(oid, oid_registry()).map_or_else(|_| oid.to_id_string(), str::to_owned);
            let mut part = format!("{key}=");
            // What is no text cannot be written into settings, so nothing there can be meant.
            for c in attribute.as_str().unwrap_or("\u{fffd}").chars() {
                if matches!(c, ',' | '+' | '\\') {
                    part.push('\\');
                }
                part.push(c);
            }
            part
        });
        attributes.collect::<Vec<_>>().join("+")
    });
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    #[test]
    fn a_certificate_tells_its_subject_names_and_end() {
        let mut params = CertificateParams::new(vec!["ci.acme.test".to_owned()]).expect("a name");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Acme, Inc");
        params.distinguished_name.push(DnType::CommonName, "ci");
        params.subject_alt_names.push(SanType::URI("spiffe://acme/ci".try_into().expect("ASCII")));
        params.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
        params.not_after = rcgen::date_time_ymd(2031, 2, 3);
        let certificate = params.self_signed(&KeyPair::generate().expect("a key")).expect("signed");
        let read = PeerCertificate::read(certificate.der()).expect("it can be read");
        assert_eq!(read.subject, "O=Acme\\, Inc,CN=ci");
        assert_eq!(read.names, ["ci.acme.test", "spiffe://acme/ci"]);
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        assert_eq!(read.not_after, at("2031-02-03T00:00:00Z").as_second());
        assert!(
            read.is_valid_at(at("2031-02-02T23:59:59Z")) && !read.is_valid_at(at("2031-02-03T00:00:01Z"))
        );
        let der = certificate.der().as_ref();
        assert_eq!(earliest_end([der, der].into_iter()), Ok(read.not_after));
        assert!(earliest_end(std::iter::empty()).is_err());
        assert!(PeerCertificate::read(b"nothing").is_err());
    }
}
