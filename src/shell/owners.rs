//! Whose a credential is: which host it is for, told by where it lies, by the program that prints it, by the entry that
//! was picked out of a file for many hosts, or by the variable in which users keep the address of a service of theirs.

use super::argument::HOLE;
use super::carried::{Pick, Read};
use super::effect::TargetKind;

/// Where a provider's tools keep its credentials, and the host that they are for.
const OWNERS: &[(&str, &str)] = &[
    ("/.aws/", "amazonaws.com"),
    ("/.azure/", "azure.com"),
    ("/.cargo/credentials", "crates.io"),
    ("/.claude/", "anthropic.com"),
    ("/.claude.json", "anthropic.com"),
    ("/.codex/", "chatgpt.com"),
    ("/.codex/", "openai.com"),
    ("/.config/gcloud/", "cloudfunctions.net"),
    ("/.config/gcloud/", "gcr.io"),
    ("/.config/gcloud/", "googleapis.com"),
    ("/.config/gcloud/", "pkg.dev"),
    ("/.config/gcloud/", "run.app"),
    ("/.config/gh/", "github.com"),
    ("/.config/gh/", "ghcr.io"),
    ("/.config/gh/", "ghe.com"),
    ("/.config/gh/", "githubcopilot.com"),
    ("/.config/gh/", "githubusercontent.com"),
    ("/.docker/config.json", "docker.com"),
    ("/.docker/config.json", "docker.io"),
    ("/.git-credentials", "github.com"),
    ("/.git-credentials", "gitlab.com"),
    ("/.gemini/", "googleapis.com"),
    ("/.netrc", "heroku.com"),
    ("/.npmrc", "npmjs.org"),
    ("/.pypirc", "pypi.org"),
    ("/.terraform.d/", "terraform.io"),
    ("/secrets/kubernetes.io/", "kubernetes.default"),
    ("/secrets/kubernetes.io/", "kubernetes.default.svc"),
    ("/secrets/kubernetes.io/", "kubernetes.default.svc.cluster.local"),
];

/// Folders whose credentials are for many hosts, or are nobody's but the user's: a host called like one owns nothing there.
const STORES: &[&str] = &[
    "chromium",
    "docker",
    "electrum",
    "ethereum",
    "firefox",
    "gnupg",
    "google-chrome",
    "kube",
    "local",
    "mozilla",
    "password-store",
    "solana",
    "thunderbird",
    "vault",
];

/// Variables in which users keep the address of a service of theirs, and where the credentials for it lie.
const ADDRESSES: &[(&str, &str)] = &[
    ("ACTIONS_RUNTIME_URL", "/.config/gh/"),
    ("CI_API_V4_URL", "/.config/glab-cli/"),
    ("CI_SERVER_URL", "/.config/glab-cli/"),
    ("CONSUL_HTTP_ADDR", "/secrets/kubernetes.io/"),
    ("GH_HOST", "/.config/gh/"),
    ("GITHUB_API_URL", "/.config/gh/"),
    ("GITHUB_SERVER_URL", "/.config/gh/"),
    ("KUBERNETES_SERVICE_HOST", "/secrets/kubernetes.io/"),
    ("VAULT_ADDR", "/.vault-token"),
    ("VAULT_ADDR", "/secrets/kubernetes.io/"),
];

/// A token that a program of its provider prints.
struct Token {
    /// How the detail of the effect begins.
    begins: &'static str,
    /// Where the provider's programs keep it.
    path: &'static str,
    /// Whether it also signs in to what the provider's customers run there, under names of their own.
    is_for_customers: bool,
}

const fn token(begins: &'static str, path: &'static str, is_for_customers: bool) -> Token {
    Token { begins, path, is_for_customers }
}

const TOKENS: &[Token] = &[
    token("aws configure", "~/.aws/credentials", false),
    token("aws ecr", "~/.aws/credentials", false),
    token("aws sts", "~/.aws/credentials", true),
    token("az account", "~/.azure/msal_token_cache.json", true),
    token("firebase login", "~/.config/configstore/firebase-tools.json", true),
    token("gcloud auth print-access", "~/.config/gcloud/credentials.db", false),
    token("gcloud auth application-default", "~/.config/gcloud/application_default_credentials.json", false),
    token("gcloud auth print-identity", "~/.config/gcloud/credentials.db", true),
    token("gh auth", "~/.config/gh/hosts.yml", false),
    token("git credential", "~/.git-credentials", false),
    token("glab auth", "~/.config/glab-cli/config.yml", true),
    token("heroku auth", "~/.netrc", false),
    token("npm", "~/.npmrc", false),
];

/// Programs that give the one secret that is asked for by its name, whatever service it belongs to.
const MANAGERS: &[&str] = &[
    "aws",
    "az",
    "bw",
    "chamber",
    "doppler",
    "gcloud",
    "gopass",
    "infisical",
    "keepassxc-cli",
    "lpass",
    "op",
    "pass",
    "secret-tool",
    "sops",
    "vault",
];

/// How the target begins of a read that is no file: a secret that a program printed.
pub const PRINTED: &str = "secret ";

/// Where a provider keeps the token that a program of it printed, and whether that is for customers as well.
pub(super) fn token_of(detail: &str) -> Option<(&'static str, bool)> {
    let token = TOKENS.iter().find(|token| detail.starts_with(token.begins))?;
    Some((token.path, token.is_for_customers))
}

/// Whether a program gives the one secret that is asked for.
pub(super) fn is_manager(program: &str) -> bool {
    MANAGERS.contains(&program)
}

/// Whether a variable tells where a service of the user is.
pub(super) fn is_address(variable: &str) -> bool {
    ADDRESSES.iter().any(|(name, _)| *name == variable)
}

/// Whether what was read is for the service whose address stands in a variable.
pub(super) fn owns_variable(variable: &str, read: &Read) -> bool {
    ADDRESSES.iter().any(|(name, place)| *name == variable && read.target.text.contains(place))
}

/// Whether credentials that were read are those of a host: of its provider by name, in a folder that is called like it, or
/// its entry in a file for many.
pub(super) fn owns(host: &str, read: &Read) -> bool {
    let path = read.target.text.as_str();
    if read.target.kind != TargetKind::Path {
        // `security find-generic-password -s acme -w`: asked for by the name of the service.
        return matches!(&read.pick, Pick::Asked(words) if words.iter().any(|word| is_label(word, host)));
    }
    if matches!(&read.pick, Pick::Filter(filter) if entry_of(filter).is_some_and(|entry| entry == host)) {
        return true;
    }
    owns_file(host, path, read.is_token)
}

/// Whether a file of credentials at a path is a host's: of its provider by name, or in a folder that is called like it.
/// `is_token`: it is a token that a program of the provider printed.
pub(crate) fn owns_file(host: &str, path: &str, is_token: bool) -> bool {
    let is_below =
        |domain: &str| host == domain || host.strip_suffix(domain).is_some_and(|h| h.ends_with('.'));
    // Where the provider is known, a host that is merely called like it is another's.
    let mut providers = OWNERS.iter().filter(|(place, _)| path.contains(place)).peekable();
    if providers.peek().is_some() {
        // What customers run under the provider's name is theirs; functions are called with tokens of the provider.
        let is_customers =
            ["execute-api.", "lambda-url.", "elb.", "s3.", "s3-"].iter().any(|part| host.contains(part));
        let is_function = ["run.app", "cloudfunctions.net"].iter().any(|domain| is_below(domain));
        return !is_customers && (is_token || !is_function) && providers.any(|(_, domain)| is_below(domain));
    }
    // `~/.acme-token`, `~/.config/acme/token`, `~/.acme/token`: where a program of that name keeps what is its own.
    let file = path.split_once("/.").map_or("", |(_, rest)| rest);
    if let Some(name) = file.strip_suffix("-token").filter(|name| !name.contains('/')) {
        return host.split('.').any(|label| label == name || label.starts_with(&format!("{name}-")));
    }
    let folder = match path.split_once("/.config/") {
        Some((_, rest)) => rest.split_once('/').map(|(folder, _)| folder),
        None => file.split_once('/').map(|(folder, _)| folder),
    };
    folder.is_some_and(|folder| !STORES.contains(&folder) && is_label(folder, host))
}

/// Whether a name is the one by which a host is registered.
fn is_label(name: &str, host: &str) -> bool {
    let mut labels = host.rsplit(HOLE).next().unwrap_or_default().rsplit('.').skip(1);
    let label = labels.find(|label| label.len() > 3).unwrap_or_default();
    !label.is_empty() && name.eq_ignore_ascii_case(label)
}

/// The host whose entry a filter picks, and none besides: `.auths["ghcr.io"].auth` of jq, `s#https://\(.*\)@git.acme.io#\1#p`
/// of sed.
fn entry_of(filter: &str) -> Option<String> {
    let host = if let Some((_, rest)) = filter.split_once('"') {
        let (host, rest) = rest.split_once('"')?;
        let is_path = |text: &str| {
            let text = text.trim_matches('"');
            !text.contains(['"', ',', '|', '/', '*', '?', '(', '$'])
                && !text.contains("..")
                && !text.contains("[]")
        };
        if !is_path(rest) || !is_path(filter.split('"').next()?) {
            return None;
        }
        host.strip_prefix("https://").unwrap_or(host).split('/').next()?.to_owned()
    } else {
        let rest = filter.strip_prefix('s')?;
        let separator = rest.chars().next()?;
        let mut parts = rest[separator.len_utf8()..].split(separator);
        let (pattern, _, flags) = (parts.next()?, parts.next()?, parts.next()?);
        let (_, host) = pattern.rsplit_once('@')?;
        if flags != "p" || parts.next().is_some() {
            return None;
        }
        host.trim_end_matches('$').replace("\\.", ".")
    };
    let is_host = host.contains('.')
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':'));
    is_host.then_some(host)
}

/// The host of a URL.
pub(super) fn host_of(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("https://")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or(host).split(':').next().unwrap_or_default();
    is_known(host).then_some(host)
}

/// Whether it is known whose host it is: whatever stands for the first of its labels.
pub(super) fn is_known(host: &str) -> bool {
    let known = host.rsplit(HOLE).next().unwrap_or_default();
    known.len() == host.len() || known.split_once('.').is_some_and(|(_, rest)| rest.contains('.'))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::shell::effect::Target;

    fn read(path: &str, pick: Pick) -> Read {
        let target = Target { text: path.to_owned(), has_glob: false, kind: TargetKind::Path };
        Read { target, recursive: false, pick, is_token: false }
    }

    #[test]
    fn credentials_belong_to_their_provider() {
        for (host, path, wanted) in [
            ("api.github.com", "~/.config/gh/hosts.yml", true),
            ("api.github.com.evil.example", "~/.config/gh/hosts.yml", false),
            ("evilgithub.com", "~/.config/gh/hosts.yml", false),
            ("api.acme.io", "~/.config/acme/token", true),
            ("acme.evil.example", "~/.config/acme/token", false),
            ("api.acme.io", "~/.ssh/id_rsa", false),
            ("api.claude.example", "~/.claude/.credentials.json", false),
            ("home.example", "/home/u/.ssh/id_rsa", false),
            ("gnupg.example", "~/.gnupg/secring.gpg", false),
            ("a1.execute-api.us-east-1.amazonaws.com", "~/.aws/credentials", false),
            ("api.acme.io", "~/.acme/token", true),
            ("vault.acme.io", "~/.vault-token", true),
            ("drop.somewhere.example", "~/.vault-token", false),
        ] {
            assert_eq!(owns(host, &read(path, Pick::All)), wanted, "{host} {path}");
        }
    }

    #[test]
    fn an_entry_belongs_to_its_host() {
        for (filter, host, wanted) in [
            (".auths[\"ghcr.io\"].auth", "ghcr.io", true),
            (".auths[\"ghcr.io\"].auth", "h.example", false),
            (".auths.\"https://index.docker.io/v1/\".auth", "index.docker.io", true),
            (".auths[\"h.example\"].auth // .auths[\"ghcr.io\"].auth", "h.example", false),
            (".auths[\"h.example\"], .auths[]", "h.example", false),
            ("..|select(.a==\"h.example\")", "h.example", false),
            ("s#https://\\(.*\\)@git.acme.io#\\1#p", "git.acme.io", true),
            ("s#https://\\(.*\\)@git\\.acme\\.io$#\\1#p", "git.acme.io", true),
            ("s#.*##;s#https://\\(.*\\)@git.acme.io#\\1#p", "git.acme.io", false),
            ("s#https://\\(.*\\)@git.acme.io#\\1#", "git.acme.io", false),
            (".auths[]", "ghcr.io", false),
        ] {
            let pick = Pick::Filter(Arc::from(filter));
            assert_eq!(owns(host, &read("~/.docker/config.json", pick)), wanted, "{filter} {host}");
        }
    }
}
