//! How S3, and what speaks like it, is reached.

use serde::{Deserialize, Serialize};

use crate::setting::{Problem, Secret};

/// `store.s3`: how S3, and what speaks like it, is reached. Without keys here, those of the machine it runs on are asked
/// for, as AWS hands them to instances, containers and pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct S3Config {
    /// Address of the service, such as `https://minio.internal:9000`. Absent: that of AWS. Environment: also
    /// `AWS_ENDPOINT_URL_S3` and `AWS_ENDPOINT_URL`.
    pub endpoint: Option<String>,
    /// Region. Absent: `us-east-1`. Environment: also `AWS_REGION` and `AWS_DEFAULT_REGION`.
    pub region: Option<String>,
    /// Whether `endpoint` may be `http://`; on this machine it always may.
    pub allow_http: bool,
    /// Whether the bucket is part of the host name and not of the path.
    pub virtual_hosted: bool,
    /// Name of the key. Environment: also `AWS_ACCESS_KEY_ID`.
    pub access_key_id: Option<String>,
    /// The key. Only from the environment: `AWS_SECRET_ACCESS_KEY`.
    pub secret_access_key: Option<Secret>,
    /// Token of a key that was lent. Only from the environment: `AWS_SESSION_TOKEN`.
    pub session_token: Option<Secret>,
    /// File with the token of a pod. Environment: also `AWS_WEB_IDENTITY_TOKEN_FILE`.
    pub web_identity_token_file: Option<String>,
    /// The role that a pod takes. Environment: also `AWS_ROLE_ARN`.
    pub role_arn: Option<String>,
}

impl S3Config {
    /// Reports what cannot be; keys are relative to the section `store`, `bundles` is its setting of that name.
    pub(in crate::store) fn check(&self, bundles: Option<&str>, problems: &mut Vec<Problem>) {
        if let Some(Err(message)) = bundles.map(super::Place::parse) {
            problems.push(Problem::new("bundles", message));
        }
        // Variables of AWS may be there for other programs.
        if !bundles.is_some_and(|place| place.starts_with("s3://")) {
            return;
        }
        if let Some(endpoint) = &self.endpoint {
            let rest = endpoint.strip_prefix("http://");
            if rest.is_none() && !endpoint.starts_with("https://") {
                problems.push(Problem::new("s3.endpoint", "must begin with https:// or http://"));
            }
            if rest.is_some_and(|rest| !self.allow_http && !is_loopback(rest)) {
                let message = "is not encrypted; use https://, or set s3.allow_http if nobody can listen in";
                problems.push(Problem::new("s3.endpoint", message));
            }
            if endpoint.contains('@') {
                problems.push(Problem::new("s3.endpoint", "must not hold a user or password"));
            }
        }
        if self.access_key_id.is_some() != self.secret_access_key.is_some() {
            let message = "goes with s3.secret_access_key: give both or none";
            problems.push(Problem::new("s3.access_key_id", message));
        }
    }

    /// Whether plain HTTP may be spoken.
    pub(super) fn may_speak_http(&self) -> bool {
        let rest = self.endpoint.as_deref().and_then(|endpoint| endpoint.strip_prefix("http://"));
        self.allow_http || rest.is_some_and(is_loopback)
    }
}

/// Whether the host at the beginning of what follows `http://` is this machine.
fn is_loopback(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_judged_by_its_host() {
        for (endpoint, allow_http, is_fine) in [
            ("https://s3.example.com", false, true),
            ("http://127.0.0.1:9000", false, true),
            ("http://[::1]:9000/x", false, true),
            ("http://localhost", false, true),
            ("http://localhost.example.com", false, false),
            ("http://10.0.0.1:9000", false, false),
            ("http://10.0.0.1:9000", true, true),
            ("https://user:pw@s3.example.com", false, false),
            ("s3.example.com", true, false),
        ] {
            let config = S3Config { endpoint: Some(endpoint.to_owned()), allow_http, ..S3Config::default() };
            let mut problems = Vec::new();
            config.check(Some("s3://bucket"), &mut problems);
            assert_eq!(problems.is_empty(), is_fine, "{endpoint} {problems:?}");
        }
    }
}
