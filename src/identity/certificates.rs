//! Which client certificate is whose.

use super::config::{CertificateIdentity, MtlsConfig};
use super::tokens::{Holder, check_name, check_tenant};
use super::{PeerCertificate, roles_of};
use crate::policy::CallerRole;
use crate::setting::Problem;

/// The identities that the settings list, by what their certificates say.
#[derive(Clone, Debug, Default)]
pub struct CertificateMap(Vec<(CertificateIdentity, Holder)>);

impl CertificateMap {
    /// The identities of the settings; reports what is wrong with them, keys relative to `auth`.
    pub fn read(config: &MtlsConfig, problems: &mut Vec<Problem>) -> Self {
        let mut map = Self::default();
        for (index, one) in config.identities.iter().enumerate() {
            let mut wrong = |what: String| {
                problems.push(Problem::new("mtls.identities", format!("entry {}: {what}", index + 1)))
            };
            if one.subject.is_empty() == one.san.is_empty() {
                wrong("needs exactly one of subject and san".to_owned());
            }
            if let Err(what) = check_name(&one.name) {
                wrong(format!("name {what}"));
            }
            if let Some(Err(what)) = (!one.tenant.is_empty()).then(|| check_tenant(&one.tenant)) {
                wrong(format!("tenant {what}"));
            }
            let mut roles = Vec::new();
            for role in &one.roles {
                match CallerRole::parse(role) {
                    Some(role) => roles.push(role),
                    None => wrong(format!("`{role}` is no role; known: agent, submitter, auditor, admin")),
                }
            }
            if one.roles.is_empty() {
                wrong("has no role; give it some of agent, submitter, auditor, admin".to_owned());
            }
            let same = |other: &&CertificateIdentity| {
                written(&other.subject) == written(&one.subject) && other.san == one.san
            };
            if config.identities[..index].iter().find(same).is_some() {
                wrong("is for the same certificate as an earlier one".to_owned());
            }
            let (name, tenant) = (one.name.clone(), one.tenant.clone());
            let holder = Holder { name, tenant, roles: roles_of(&roles), expires: None };
            map.0.push((one.clone(), holder));
        }
        map
    }

    /// Whose certificate this is; of several entries that fit, the first.
    pub fn holder(&self, certificate: &PeerCertificate) -> Option<&Holder> {
        let fits = |one: &CertificateIdentity| {
            if one.san.is_empty() {
                written(&one.subject) == certificate.subject
            } else {
                certificate.names.contains(&one.san)
            }
        };
        self.0.iter().find(|(one, _)| fits(one)).map(|(_, holder)| holder)
    }
}

/// A subject without the spaces that people put behind commas: `CN=ci, O=Acme` is `CN=ci,O=Acme`.
fn written(subject: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    for piece in subject.split(',') {
        // A comma behind a backslash belongs to the value.
        match parts.last_mut() {
            Some(last) if is_escaped(last) => {
                *last = format!("{last},{piece}");
            }
            _ => parts.push(piece.trim_start().to_owned()),
        }
    }
    parts.join(",")
}

fn is_escaped(text: &str) -> bool {
    text.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_its_holders() {
        let identity = |subject: &str, san: &str, name: &str| CertificateIdentity {
            subject: subject.to_owned(),
            san: san.to_owned(),
            name: name.to_owned(),
            tenant: String::new(),
            roles: vec!["agent".to_owned()],
        };
        let config = MtlsConfig {
            identities: vec![
                identity("O=Acme\\, Inc, CN=ci", "", "ci"),
                identity("", "spiffe://acme/bob", "bob"),
            ],
        };
        let mut problems = Vec::new();
        let map = CertificateMap::read(&config, &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        let of = |subject: &str, names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let certificate = PeerCertificate { subject: subject.to_owned(), names, not_after: 0 };
            map.holder(&certificate).map(|holder| holder.name.clone())
        };
        assert_eq!(of("O=Acme\\, Inc,CN=ci", &[]).as_deref(), Some("ci"));
        assert_eq!(of("CN=other", &["spiffe://acme/bob"]).as_deref(), Some("bob"));
        for (subject, names) in [
            ("CN=ci", &[][..]),
            ("CN=ci,O=Acme\\, Inc", &[]),
            ("", &[]),
            ("CN=other", &["spiffe://acme/bob/x", "ci"]),
            ("spiffe://acme/bob", &[]),
        ] {
            assert_eq!(of(subject, names), None, "{subject} {names:?}");
        }
        let wrong = MtlsConfig {
            identities: vec![
                identity("CN=a", "a", "a"),
                identity("", "", "b"),
                identity("CN=a", "", "system"),
                identity("CN=c, O=x", "", "c"),
                identity("CN=c,O=x", "", "d"),
                CertificateIdentity { roles: vec!["root".to_owned()], ..identity("CN=e", "", "e") },
                CertificateIdentity { roles: Vec::new(), ..identity("CN=f", "", "f") },
            ],
        };
        CertificateMap::read(&wrong, &mut problems);
        let told: Vec<&str> = problems.iter().map(|problem| &problem.message[..7]).collect();
        assert_eq!(told, ["entry 1", "entry 2", "entry 3", "entry 5", "entry 6", "entry 7"]);
    }
}
