//! Variables that settings set, and the hosts that keys are sent to.

use serde_json::{Map, Value};

use super::hooks::is_near;
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
/// Those of them that may name a folder of the plugin: what a program of the plugin itself is found by.
const OWN_FOLDERS: &[&str] = &["PYTHONPATH", "LD_LIBRARY_PATH"];
/// Providers of models and clouds by the beginnings of their variables, and the domains of their own: a key of theirs belongs
/// nowhere else. Domains under which anybody may put a host are not among them.
const PROVIDERS: &[(&str, &[&str])] = &[
    ("ANTHROPIC", &["anthropic.com", "claude.ai", "claude.com"]),
    ("CLAUDE", &["anthropic.com", "claude.ai", "claude.com"]),
    ("OPENAI", &["openai.com", "openai.azure.com", "chatgpt.com"]),
    ("AWS", &["amazonaws.com", "amazonaws.com.cn", "api.aws", "aws.dev", "aws.amazon.com"]),
    (
        "AZURE",
        &[
            "azure.com",
            "azure.net",
            "microsoft.com",
            "microsoftonline.com",
            "windows.net",
            "visualstudio.com",
        ],
    ),
    ("GOOGLE", &["google.com", "googleapis.com", "google.dev"]),
    ("GEMINI", &["google.com", "googleapis.com", "google.dev"]),
    ("GITHUB", &["github.com", "githubcopilot.com", "ghe.com"]),
    ("GH_", &["github.com", "githubcopilot.com", "ghe.com"]),
    ("GITLAB", &["gitlab.com"]),
    ("NPM", &["npmjs.org", "npmjs.com"]),
    ("STRIPE", &["stripe.com"]),
    ("SLACK", &["slack.com"]),
    ("HF_", &["huggingface.co", "hf.co"]),
    ("SSH_", &[]),
];
/// Ends of names of variables whose value is where requests go.
const ADDRESSES: &[&str] = &["_BASE_URL", "_API_BASE", "_ENDPOINT", "_API_URL", "_API_HOST"];
/// Variables that have the telemetry of agents tell what users and tools say (OpenTelemetry in the settings of Claude Code).
const TELLING: &[&str] = &[
    "OTEL_LOG_USER_PROMPTS",
    "OTEL_LOG_TOOL_DETAILS",
    "OTEL_LOG_TOOL_CONTENT",
    "OTEL_LOG_RAW_API_BODIES",
    "OTEL_LOG_ASSISTANT_RESPONSES",
];
/// Options of a command line behind which a header of a request stands.
const HEADER_OPTIONS: &[&str] = &["--header", "-H", "--headers"];

const ENVIRONMENT_RULE: Rule<'static> = Rule {
    id: "bundle.environment",
    category: "exfiltration",
    severity: Severity::High,
    reason: "A setting changes what programs load, or sends the traffic of a provider to another host.",
    fix: "Leave the variable to the user.",
};
const TELEMETRY: Rule<'static> = Rule {
    id: "bundle.telemetry",
    reason: "A setting has prompts and what tools are given reported to another machine.",
    fix: "Leave telemetry to the user.",
    ..ENVIRONMENT_RULE
};
const FOREIGN: Rule<'static> = Rule {
    id: "bundle.foreign-credential",
    reason: "A server is given the credential of another provider.",
    fix: "Give it a credential of its own.",
    ..ENVIRONMENT_RULE
};

impl Walk<'_, '_, '_> {
    /// Variables that change what programs load or whom they talk to.
    pub(super) fn environment(&mut self, env: &Map<String, Value>) {
        let tells = env.iter().any(|(name, value)| {
            TELLING.contains(&name.as_str()) && !matches!(value.as_str(), Some("" | "0" | "false"))
        });
        for (name, value) in env {
            let text = value.as_str().unwrap_or_default();
            let upper = name.to_ascii_uppercase();
            if is_redirected(&upper, text) || self.loads(&upper, text) {
                self.finding(&ENVIRONMENT_RULE, name);
            }
            let is_report = upper.starts_with("OTEL_EXPORTER_") && upper.ends_with("_ENDPOINT");
            if is_report && text.contains("://") && !is_near(&host_of(text)) {
                let severity = if tells { TELEMETRY.severity } else { Severity::Medium };
                self.finding(&Rule { severity, ..TELEMETRY }, name);
            }
        }
    }

    /// Whether a variable of that name, in upper case, has programs load something by its value.
    fn loads(&self, name: &str, text: &str) -> bool {
        let is_own = OWN_FOLDERS.contains(&name) && text.contains("PLUGIN_ROOT");
        // A variable that is handed on as it is.
        let is_handed_on = text.starts_with("${") && text.find('}') == Some(text.len() - 1);
        ENVIRONMENT.contains(&name)
            && !is_local(text)
            && !text.is_empty()
            && !is_own
            && !is_handed_on
            && (name != "PYTHONPATH" || text.starts_with('/'))
            && (name != "LD_LIBRARY_PATH" || !is_usual_libraries(&self.scan.path.to_ascii_lowercase(), text))
            && (name != "NODE_OPTIONS"
                || ["-r", "import", "inspect"].iter().any(|loads| text.contains(loads)))
            && (name != "NODE_TLS_REJECT_UNAUTHORIZED" || text == "0")
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
        self.given(url, &texts);
    }

    /// A server that hands on what it is asked to a remote one, as its command line says: the headers that it gives it.
    pub(super) fn handed_on(&mut self, server: &Map<String, Value>) {
        let command = server.get("command").and_then(Value::as_str).unwrap_or_default();
        let given = server.get("args").and_then(Value::as_array).into_iter().flatten();
        let words: Vec<&str> = command.split_whitespace().chain(given.filter_map(Value::as_str)).collect();
        let is_address = |word: &&&str| word.starts_with("https://") || word.starts_with("http://");
        let Some(url) = words.iter().find(is_address).map(|url| (*url).to_owned()) else { return };
        let behind = words.iter().zip(words.iter().skip(1));
        let behind = behind.filter(|(option, _)| HEADER_OPTIONS.contains(*option)).map(|(_, header)| *header);
        let joined = words.iter().filter_map(|word| word.strip_prefix("--header="));
        // Quotes hold a header together where all of it is one text.
        let whole = HEADER_OPTIONS.iter().any(|option| command.contains(option)).then_some(command);
        let mut texts: Vec<String> = behind.chain(joined).chain(whole).map(str::to_owned).collect();
        // A header may name a variable that only the server has.
        let env = server.get("env").and_then(Value::as_object);
        let own: Vec<String> = texts
            .iter()
            .flat_map(|text| variables(text))
            .filter_map(|name| Some(env?.get(name)?.as_str()?.to_owned()))
            .collect();
        texts.extend(own);
        texts.push(url.clone());
        self.given(&url, &texts);
    }

    /// Whether what a host is given holds the credential of another provider.
    fn given(&mut self, url: &str, texts: &[String]) {
        let host = host_of(url);
        for name in texts.iter().flat_map(|text| variables(text)) {
            let upper = name.to_ascii_uppercase();
            let is_foreign = is_foreign_to(&upper, &host);
            let is_secret =
                ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"].iter().any(|word| upper.contains(word));
            if is_foreign && is_secret && !is_local(url) {
                self.finding(&FOREIGN, name);
            }
        }
    }
}

/// Whether a variable sends the requests of a provider to a host that is not its own.
fn is_redirected(name: &str, text: &str) -> bool {
    let host = host_of(text);
    ADDRESSES.iter().any(|end| name.ends_with(end))
        && text.contains("://")
        && !is_local(text)
        && is_foreign_to(name, &host)
}

/// Whether a variable, in upper case, is that of a provider whose host this is not.
fn is_foreign_to(name: &str, host: &str) -> bool {
    is_own_of(name, host) == Some(false)
}

/// Whether a host is one of the provider that a variable, in upper case, belongs to; `None` where it is nobody's that is known.
pub(super) fn is_own_of(name: &str, host: &str) -> Option<bool> {
    let mut all = PROVIDERS.iter().filter(|(prefix, _)| name.starts_with(prefix)).peekable();
    all.peek()?;
    Some(all.all(|(_, own)| own.iter().any(|own| is_of(host, own))))
}

/// Whether a variable, in upper case, begins with the name of the service whose host this is: `CODECOV_TOKEN`, `codecov.io`.
pub(super) fn is_named_after(name: &str, host: &str) -> bool {
    const NAME_BYTES_MIN: usize = 4;
    let label = host.split(':').next().unwrap_or(host).rsplit('.').nth(1).unwrap_or_default();
    let service = name.split('_').next().unwrap_or_default().to_ascii_lowercase();
    service.len() >= NAME_BYTES_MIN && label.starts_with(&service)
}

/// Whether a host, with or without a port, is a domain or one below it.
pub(in crate::bundles::scan) fn is_of(host: &str, domain: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name).trim_end_matches('.');
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
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

pub(in crate::bundles::scan) fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase()
}

/// Whether an address is one of this machine.
pub(super) fn is_local(text: &str) -> bool {
    let host = host_of(text);
    let name = host.trim_start_matches('[').split([':', ']']).next().unwrap_or_default();
    matches!(name, "localhost" | "127.0.0.1" | "0.0.0.0" | "host.docker.internal")
        || host.starts_with("[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_of_a_domain_at_its_labels_only() {
        for (url, domain, wanted) in [
            ("https://api.anthropic.com/v1", "anthropic.com", true),
            ("https://ANTHROPIC.com:443", "anthropic.com", true),
            ("https://api.anthropic.com.", "anthropic.com", true),
            ("https://${REGION}.amazonaws.com/x", "amazonaws.com", true),
            ("https://api.anthropic.com.somewhere.dev", "anthropic.com", false),
            ("https://claude-proxy.somewhere.dev", "claude.ai", false),
            ("https://notanthropic.com", "anthropic.com", false),
            ("https://api.anthropic.com@somewhere.dev/", "anthropic.com", false),
            ("https://somewhere.dev/anthropic.com", "anthropic.com", false),
            ("https://somewhere.dev\\.anthropic.com", "anthropic.com", false),
        ] {
            assert_eq!(is_of(&host_of(url), domain), wanted, "{url} {domain}");
        }
    }
}
