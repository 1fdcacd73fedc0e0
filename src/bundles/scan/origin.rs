//! Where something is fetched from: installers that the world knows, and hosts that say nothing.

/// Hosts whose installers are run by pipe as their makers tell people to, with the beginning of the path where the host is
/// shared. Each is the documented way to install a widely used program.
const KNOWN: &[&str] = &[
    "astral.sh/",
    "sh.rustup.rs",
    "static.rust-lang.org/",
    "win.rustup.rs",
    "bun.sh/",
    "bun.com/",
    "deno.land/",
    "get.docker.com",
    "get.pnpm.io/",
    "fnm.vercel.app/",
    "install.python-poetry.org",
    "sdk.cloud.google.com",
    "get.helm.sh/",
    "get.k3s.io",
    "get.rke2.io",
    "fluxcd.io/",
    "run.linkerd.io/",
    "istio.io/",
    "aka.ms/",
    "cli.github.com/",
    "get.sdkman.io",
    "get.jenv.be",
    "pyenv.run",
    "get.nextflow.io",
    "nixos.org/",
    "install.determinate.systems/",
    "raw.githubusercontent.com/homebrew/",
    "raw.githubusercontent.com/nvm-sh/",
    "raw.githubusercontent.com/helm/",
    "raw.githubusercontent.com/ohmyzsh/",
    "raw.githubusercontent.com/pyenv/",
    "raw.githubusercontent.com/golangci/",
    "raw.githubusercontent.com/anchore/",
    "raw.githubusercontent.com/aquasecurity/",
    "raw.githubusercontent.com/trufflesecurity/",
    "raw.githubusercontent.com/k3d-io/",
    "raw.githubusercontent.com/rancher/",
    "raw.githubusercontent.com/argoproj/",
    "raw.githubusercontent.com/kubernetes/",
    "raw.githubusercontent.com/kubernetes-sigs/",
    "raw.githubusercontent.com/microsoft/",
    "raw.githubusercontent.com/azure/",
    "raw.githubusercontent.com/aws/",
    "raw.githubusercontent.com/google/",
    "raw.githubusercontent.com/googlecloudplatform/",
    "raw.githubusercontent.com/anthropics/",
    "raw.githubusercontent.com/openai/",
    "raw.githubusercontent.com/hashicorp/",
    "raw.githubusercontent.com/terraform-linters/",
    "raw.githubusercontent.com/mitsuhiko/",
    "raw.githubusercontent.com/rust-lang/",
    "raw.githubusercontent.com/nektos/",
    "raw.githubusercontent.com/junegunn/",
    "raw.githubusercontent.com/jesseduffield/",
    "raw.githubusercontent.com/linkerd/",
    "raw.githubusercontent.com/wagoodman/",
    "claude.ai/install",
    "cli.anthropic.com/",
    "opencode.ai/install",
    "cursor.com/install",
    "cursor.sh/",
    "ollama.com/",
    "ollama.ai/",
    "fly.io/",
    "railway.app/",
    "railway.com/",
    "cli.railway.app/",
    "supabase.com/",
    "get.volta.sh",
    "mise.run",
    "mise.jdx.dev/",
    "starship.rs/",
    "foundry.paradigm.xyz",
    "install.meteor.com",
    "cli.doppler.com/",
    "get.pulumi.com",
    "tailscale.com/",
    "deb.nodesource.com/",
    "rpm.nodesource.com/",
    "packages.microsoft.com/",
    "download.docker.com/",
    "sentry.io/",
    "cli.sentry.dev/",
    "get.trunk.io",
    "just.systems/",
    "moonrepo.dev/",
    "proto.moonrepo.dev/",
    "dl.dagger.io/",
    "get.dagger.io/",
    "sh.sst.dev/",
    "install.speakeasy.com/",
    "get.scoop.sh",
    "community.chocolatey.org/",
    "chocolatey.org/",
    "php.new/",
    "getcomposer.org/",
    "install.duckdb.org",
    "clickhouse.com/",
    "cockroachlabs.com/",
    "releases.hashicorp.com/",
    "apt.releases.hashicorp.com/",
    "install.citusdata.com/",
    "packagecloud.io/",
    "get.velopack.io",
    "solana-install.solana.workers.dev",
    "release.anza.xyz/",
    "release.solana.com/",
    "sui.io/",
    "starkup.dev",
    "get.starkli.sh",
    "zed.dev/",
    "warp.dev/",
    "code-server.dev/",
    "coder.com/",
    "micro.mamba.pm/",
    "pixi.sh/",
    "prefix.dev/",
    "repo.anaconda.com/",
    "get.modular.com",
    "get.sdk.vercel.com",
    "install.goreleaser.com",
    "goreleaser.com/",
    "get.gitlab.com",
    "packages.gitlab.com/",
    "localhost",
    "127.0.0.1",
];

/// Hosts where anybody puts anything: that a page is there says nothing about who put it.
const SHARED: &[&str] = &[
    "vercel.app",
    "netlify.app",
    "pages.dev",
    "workers.dev",
    "github.io",
    "gitlab.io",
    "herokuapp.com",
    "onrender.com",
    "web.app",
    "firebaseapp.com",
    "glitch.me",
    "repl.co",
    "replit.app",
    "ngrok.io",
    "ngrok-free.app",
    "trycloudflare.com",
    "loca.lt",
    "surge.sh",
    "amazonaws.com",
    "blob.core.windows.net",
    "storage.googleapis.com",
    "r2.dev",
    "githubusercontent.com",
    "github.com",
    "gitlab.com",
    "bit.ly",
    "tinyurl.com",
    "t.co",
    "is.gd",
    "cutt.ly",
    "pastebin.com",
    "rentry.co",
    "glot.io",
    "transfer.sh",
    "file.io",
    "gofile.io",
    "0x0.st",
    "paste.ee",
    "hastebin.com",
    "discordapp.com",
    "ipfs.io",
    "dweb.link",
    "duckdns.org",
    "no-ip.org",
    "dropbox.com",
];
/// Top-level domains that are reserved for examples and tests, where nothing of a known maker lies (RFC 2606, RFC 6761).
const RESERVED: &[&str] = &["example", "invalid", "test", "onion"];

/// What is known of an address that code is fetched from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The documented installer of a widely used program.
    Known,
    /// A host of its own that `text` speaks about by name.
    Named,
    /// Anything else.
    Unknown,
}

/// What is known of `url`, in a document with the text `text`.
pub(super) fn trust_of(url: &str, text: &str) -> Trust {
    let lower = url.trim_matches(['"', '\'', ' ']).to_ascii_lowercase();
    let Some((scheme, rest)) = lower.split_once("://") else { return Trust::Unknown };
    if scheme != "https" || rest.contains('@') {
        return Trust::Unknown;
    }
    let rest = rest.strip_prefix("www.").unwrap_or(rest);
    let is_known = |known: &&str| match known.strip_suffix('/') {
        Some(host) => rest.strip_prefix(host).is_some_and(|after| after.starts_with('/')),
        None => rest
            .strip_prefix(*known)
            .is_some_and(|after| after.is_empty() || after.starts_with(['/', '?', ':'])),
    };
    if KNOWN.iter().any(is_known) {
        return Trust::Known;
    }
    let host = rest.split(['/', '?', ':']).next().unwrap_or_default();
    let labels: Vec<&str> = host.split('.').collect();
    let Some((top, own)) = labels.split_last() else { return Trust::Unknown };
    let is_shared = SHARED.iter().any(|shared| host == *shared || host.ends_with(&format!(".{shared}")));
    let is_number = top.bytes().all(|b| b.is_ascii_digit()) || host.starts_with('[');
    let is_reserved = RESERVED.contains(top) || own.last().is_some_and(|label| *label == "example");
    if is_shared || is_number || is_reserved {
        return Trust::Unknown;
    }
    let is_named = own.last().is_some_and(|label| label.len() >= 4 && mentions(text, label) >= 3);
    if is_named { Trust::Named } else { Trust::Unknown }
}

/// How often a word stands in a text on its own: not in an address.
fn mentions(text: &str, word: &str) -> usize {
    let lower = text.to_ascii_lowercase();
    let is_edge =
        |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '/' | '@' | '_' | '-'));
    lower
        .match_indices(word)
        .filter(|(at, _)| {
            let after = lower[at + word.len()..].chars().next();
            is_edge(lower[..*at].chars().next_back()) && (is_edge(after) || after == Some('.'))
        })
        .take(3)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust() {
        let text = "Weaverbird. weaverbird is nice: use Weaverbird";
        for (url, trust) in [
            ("https://astral.sh/uv/install.sh", Trust::Known),
            ("http://astral.sh/uv/install.sh", Trust::Unknown),
            ("https://astral.sh.evil.net/uv", Trust::Unknown),
            ("https://evil.net/astral.sh/", Trust::Unknown),
            ("https://user@astral.sh/uv", Trust::Unknown),
            ("https://get.docker.com", Trust::Known),
            ("https://get.docker.community/x", Trust::Unknown),
            ("https://weaverbird.io/install", Trust::Named),
            ("https://get.weaverbird.io/install", Trust::Named),
            ("https://weaverbird.vercel.app/install", Trust::Unknown),
            ("https://other.io/weaverbird", Trust::Unknown),
            ("https://weaverbird.example/install", Trust::Unknown),
            ("https://192.0.2.7/install", Trust::Unknown),
            ("weaverbird.io/install", Trust::Unknown),
            ("", Trust::Unknown),
        ] {
            assert_eq!(trust_of(url, text), trust, "{url}");
        }
    }
}
