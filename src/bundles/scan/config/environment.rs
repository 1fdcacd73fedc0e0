//! Variables that settings set, and the hosts that keys are sent to.

use serde_json::{Map, Value};

use super::{Rule, Severity, Walk};

/// Variables that change what programs load, or where they send what they know. A whole name, or the end of one.
const ENVIRONMENT: &[&str] = &[
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "BASH_ENV",
    "PROMPT_COMMAND",
    "PERL5OPT",
    "RUBYOPT",
    "GIT_SSH_COMMAND",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "PIP_INDEX_URL",
    "NPM_CONFIG_REGISTRY",
];
/// Providers of models and clouds, and the names in their hosts: a key of theirs belongs nowhere else.
const PROVIDERS: &[(&str, &[&str])] = &[
    ("ANTHROPIC", &["anthropic", "claude"]),
    ("OPENAI", &["openai"]),
    ("AWS", &["amazonaws", "aws"]),
    ("AZURE", &["azure", "microsoft", "windows.net"]),
    ("GOOGLE", &["google", "gstatic"]),
    ("GEMINI", &["google"]),
    ("GITHUB", &["github"]),
    ("GH_", &["github"]),
    ("GITLAB", &["gitlab"]),
    ("NPM", &["npmjs"]),
    ("STRIPE", &["stripe"]),
    ("SLACK", &["slack"]),
    ("HF_", &["huggingface"]),
    ("SSH_", &[]),
];

impl Walk<'_, '_, '_> {
    /// Variables that change what programs load or whom they talk to.
    pub(super) fn environment(&mut self, env: &Map<String, Value>) {
        for (name, value) in env {
            let text = value.as_str().unwrap_or_default();
            let upper = name.to_ascii_uppercase();
            let is_url =
                upper.ends_with("_BASE_URL") || upper.ends_with("_API_BASE") || upper.ends_with("_ENDPOINT");
            let redirects = is_url
                && PROVIDERS.iter().any(|(prefix, hosts)| {
                    upper.starts_with(prefix)
                        && !is_local(text)
                        && !hosts.iter().any(|host| host_of(text).contains(host))
                })
                && text.contains("://");
            let loads = ENVIRONMENT.contains(&upper.as_str())
                && !is_local(text)
                && !text.is_empty()
                && !text.contains("PLUGIN_ROOT")
                && (upper != "PYTHONPATH" || text.starts_with('/'))
                && (upper != "LD_LIBRARY_PATH"
                    || !is_usual_libraries(&self.scan.path.to_ascii_lowercase(), text))
                && (upper != "NODE_OPTIONS"
                    || ["-r", "import", "inspect"].iter().any(|loads| text.contains(loads)))
                && (upper != "NODE_TLS_REJECT_UNAUTHORIZED" || text == "0")
                && !text.starts_with("${");
            if redirects || loads {
                self.finding(
                    &Rule {
                        id: "bundle.environment",
                        category: "exfiltration",
                        severity: Severity::High,
                        reason: "A setting changes what programs load, or sends the traffic of a provider to another host.",
                        fix: "Leave the variable to the user.",
                    },
                    name,
                );
            }
        }
    }

    /// A remote server: the keys that it is given must be its own.
    pub(super) fn remote(&mut self, url: &str, fields: &Map<String, Value>) {
        let host = host_of(url);
        if host.is_empty() {
            return;
        }
        self.can("remote_server", url, &host);
        let given =
            ["headers", "env", "query", "params"].iter().filter_map(|key| fields.get(*key)?.as_object());
        let values = given.flat_map(|given| given.values()).filter_map(Value::as_str).chain([url]);
        let texts: Vec<String> = values.map(str::to_owned).collect();
        for text in texts {
            for name in variables(&text) {
                let upper = name.to_ascii_uppercase();
                let is_foreign = PROVIDERS.iter().any(|(prefix, hosts)| {
                    upper.starts_with(prefix) && !hosts.iter().any(|own| host.contains(own))
                });
                let is_secret = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"]
                    .iter()
                    .any(|word| upper.contains(word));
                if is_foreign && is_secret && !is_local(url) {
                    self.finding(
                        &Rule {
                            id: "bundle.foreign-credential",
                            category: "exfiltration",
                            severity: Severity::High,
                            reason: "A server is given the credential of another provider.",
                            fix: "Give it a credential of its own.",
                        },
                        name,
                    );
                }
            }
        }
    }
}

/// Whether libraries are taken from where libraries lie, or by the machine that a workflow runs on and that is gone afterwards.
fn is_usual_libraries(path: &str, folders: &str) -> bool {
    let is_usual = |folder: &str| {
        folder.is_empty()
            || ["/usr/", "/lib", "/opt/", "$", "/snap/"].iter().any(|start| folder.starts_with(start))
    };
    path.contains(".github/workflows/")
        || path.ends_with(".gitlab-ci.yml")
        || folders.split(':').all(is_usual)
}

/// Names of variables in a text: `${NAME}`, `$NAME`, `${env:NAME}`.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('$').map(|(at, _)| {
        let rest =
            text[at + 1..].trim_start_matches('{').trim_start_matches("env:").trim_start_matches("env.");
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase()
}

/// Whether an address is one of this machine.
pub(super) fn is_local(text: &str) -> bool {
    let host = host_of(text);
    let name = host.trim_start_matches('[').split([':', ']']).next().unwrap_or_default();
    matches!(name, "localhost" | "127.0.0.1" | "0.0.0.0" | "host.docker.internal")
        || host.starts_with("[::1]")
}
