//! Programs that fetch a program or package and run it at once: `npx`, `uvx`, `pipx run`, `deno run`.
//!
//! A name is looked up in a registry, which is ordinary. A URL is code straight from the network.

use super::super::argument::Argument;
use super::super::effect::EffectKind;
use super::call::{Call, network_target};

/// Options whose value is the source of what runs.
const SOURCES: &[&str] = &["--from", "--spec", "--package", "-p", "--with", "--git"];

/// Other options with a value, of `deno run`, `npx`, `uv run` and `pipx run`.
const VALUES: &[&str] = &[
    "--python",
    "--index-url",
    "--pip-args",
    "--config",
    "-c",
    "--call",
    "--registry",
    "--cache",
    "--env-file",
    "--directory",
    "--project",
    "--extra",
    "--group",
    "--import-map",
    "--lock",
    "--cert",
];

/// Programs of a registry that offer files or a port of this machine to others: they do the same as if they were installed.
const SERVERS: &[&str] = &[
    "cloudflared",
    "gh-pages",
    "http-server",
    "localtunnel",
    "netlify",
    "ngrok",
    "serve",
    "surge",
    "wrangler",
];

/// Whether a word names code by where it lies in the network, not by a name in a registry.
fn is_remote(text: &str) -> bool {
    // `name@https://…` gives the source of a name.
    let text =
        text.split_once('@').map_or(text, |(_, rest)| if rest.contains("://") { rest } else { text }).trim();
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        matches!(
            scheme,
            "http" | "https" | "git+https" | "git+http" | "git+ssh" | "git" | "hg+https" | "svn+https"
        )
    }) || ["github:", "gitlab:", "bitbucket:", "gist:"].iter().any(|host| text.starts_with(host))
}

/// The arguments behind the verb, when the verb runs something.
fn behind_verb<'a>(call: &Call<'a, '_>) -> Option<&'a [Argument]> {
    let arguments = call.arguments();
    let verb = |at: usize| arguments.get(at).map_or("", |argument| argument.text.as_str());
    let skipped = match (call.program(), verb(0), verb(1)) {
        ("npx" | "bunx" | "pnpx" | "uvx", _, _) => 0,
        ("uv", "tool", "run") => 2,
        ("npm", "exec" | "x", _)
        | ("pnpm" | "yarn", "dlx" | "exec", _)
        | ("bun", "x" | "run", _)
        | ("deno" | "uv" | "pipx", "run", _) => 1,
        _ => return None,
    };
    arguments.get(skipped..)
}

/// See the module.
pub(super) fn run(call: &mut Call<'_, '_>) {
    let Some(arguments) = behind_verb(call) else { return };
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        at += 1;
        let text = argument.text.as_str();
        let (name, value) = match text.split_once('=').filter(|_| text.starts_with("--")) {
            Some((name, value)) => (name, Some(super::options::part(argument, value))),
            None => (text, None),
        };
        if matches!((call.program(), name), ("uv" | "uvx", "--index-url" | "--default-index")) {
            let source = value.or_else(|| arguments.get(at).cloned().inspect(|_| at += 1));
            if let Some(source) = source {
                call.tell(EffectKind::Install, Some(network_target(&source)), "uv");
            }
        } else if SOURCES.contains(&name) {
            let source = value.or_else(|| arguments.get(at).cloned().inspect(|_| at += 1));
            if let Some(source) = source.filter(|source| is_remote(&source.text)) {
                fetched(call, &source);
            }
        } else if VALUES.contains(&name) {
            at += usize::from(value.is_none());
        } else if !text.starts_with('-') {
            if is_remote(text) {
                fetched(call, argument);
            }
            let name = text.split('@').next().unwrap_or(text);
            if SERVERS.contains(&name) {
                let mut argv = arguments[at - 1..].to_vec();
                argv[0] = argument.with_text(name);
                call.run(&argv, "npx");
            }
            // What follows belongs to the program that runs.
            return;
        }
    }
}

fn fetched(call: &mut Call<'_, '_>, source: &Argument) {
    let program = call.program();
    call.tell(EffectKind::FetchAndExecute, Some(network_target(source)), program);
}
