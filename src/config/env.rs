//! The environment as a source of settings.
//!
//! `PORTCULLIS_<SECTION>__<KEY>`, two underscores between the levels, lists comma separated. Besides these, a few names
//! that other tools and earlier programs set are honoured; the `PORTCULLIS_` form wins over them.

use std::path::Path;

use super::Problem;
use super::layer::{Layers, nearest};
use super::source::Source;

const PREFIX: &str = "PORTCULLIS_";
const CONFIG_FILE: &str = "PORTCULLIS_CONFIG";
/// Where clients find the service: theirs, and no setting of it, though one shell may know both.
const ADDRESS: &str = "PORTCULLIS_ADDRESS";

/// Names without our prefix, and what they set.
const FOREIGN: [(&str, &str); 21] = [
    ("AWS_ACCESS_KEY_ID", "store.s3.access_key_id"),
    // Of two names for one setting the later one wins, as with the tools of AWS.
    ("AWS_DEFAULT_REGION", "store.s3.region"),
    ("AWS_ENDPOINT_URL", "store.s3.endpoint"),
    ("AWS_ENDPOINT_URL_S3", "store.s3.endpoint"),
    ("AWS_REGION", "store.s3.region"),
    ("AWS_ROLE_ARN", "store.s3.role_arn"),
    ("AWS_SECRET_ACCESS_KEY", "store.s3.secret_access_key"),
    ("AWS_SESSION_TOKEN", "store.s3.session_token"),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", "store.s3.web_identity_token_file"),
    ("ANTHROPIC_API_KEY", "llm.anthropic_api_key"),
    ("GEMINI_API_KEY", "llm.gemini_api_key"),
    ("LLAMAGUARD_ENABLED", "llama_guard.enabled"),
    ("LLAMAGUARD_ENDPOINT", "llama_guard.endpoint"),
    ("LLAMAGUARD_MODEL", "llama_guard.model"),
    ("LLM_API_KEY", "llm.api_key"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "tracing.otlp_endpoint"),
    ("SECURITY_PLUGINS_ENABLED", "plugins.enabled"),
    ("SECURITY_PLUGIN_CODE", "plugins.code"),
    ("SECURITY_PLUGIN_INJECTION", "plugins.injection"),
    ("SECURITY_PLUGIN_PII", "plugins.pii"),
    ("SECURITY_PLUGIN_SECRETS", "plugins.secrets"),
];

/// The environment of this process. What is not UTF-8 is replaced by characters that no valid value holds.
pub fn process_environment() -> impl Iterator<Item = (String, String)> {
    let text = |raw: std::ffi::OsString| raw.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}

/// The variables that concern us, sorted by name so that problems come in a stable order.
pub(super) struct Environment {
    variables: Vec<(String, String)>,
}

impl Environment {
    pub(super) fn of(variables: impl Iterator<Item = (String, String)>) -> Self {
        let concerns_us =
            |name: &str| name.starts_with(PREFIX) || FOREIGN.iter().any(|(foreign, _)| *foreign == name);
        let mut variables: Vec<_> =
            variables.filter(|(name, value)| concerns_us(name) && !is_service_link(name, value)).collect();
        variables.sort();
        Self { variables }
    }

    /// The file named by `PORTCULLIS_CONFIG`; an empty value names none.
    pub(super) fn config_file(&self) -> Option<&Path> {
        let (_, file) = self.variables.iter().find(|(name, file)| name == CONFIG_FILE && !file.is_empty())?;
        Some(Path::new(file))
    }

    /// Lays the variables over the settings, foreign names first.
    pub(super) fn overlay(&self, layers: &mut Layers) {
        for (name, value) in &self.variables {
            if let Some((_, key)) = FOREIGN.iter().find(|(foreign, _)| foreign == name) {
                layers.set_text(key, value, Source::Env { name: name.clone() });
            }
        }
        for (name, value) in self.variables.iter().filter(|(name, _)| name != CONFIG_FILE && name != ADDRESS)
        {
            let Some(rest) = name.strip_prefix(PREFIX) else { continue };
            let key = rest.to_ascii_lowercase().replace("__", ".");
            if layers.has_leaf(&key) {
                layers.set_text(&key, value, Source::Env { name: name.clone() });
            } else {
                unknown_name(name, layers);
            }
        }
    }
}

fn unknown_name(name: &str, layers: &mut Layers) {
    let valid: Vec<String> =
        layers.keys().map(name_of_key).chain(std::iter::once(CONFIG_FILE.to_owned())).collect();
    let hint = nearest(name, valid.iter().map(String::as_str));
    let hint = hint.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    layers.problem(Problem::new("", format!("unknown variable `{name}`{hint}")).from("environment"));
}

/// The variable that sets a dotted key.
fn name_of_key(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").to_ascii_uppercase())
}

/// Whether Kubernetes set this variable to point at a service whose name begins with `portcullis`.
///
/// It does so in every pod of the namespace, unasked; refusing these would keep the process from starting there.
fn is_service_link(name: &str, value: &str) -> bool {
    let is_address = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme));
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || (name.ends_with("_PORT") && is_address)
        || ["_TCP", "_UDP", "_SCTP"].iter().any(|protocol| {
            let port = name.split_once(protocol).and_then(|(before, _)| before.rsplit_once("_PORT_"));
            port.is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
        })
}
