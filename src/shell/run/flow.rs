//! What was read flows on: into words and variables, into copies and archives, and with them to another host.

use std::ops::Range;
use std::sync::Arc;

use super::super::argument::{Argument, CARRIED_HOLE, HOLE, Origin};
use super::super::carried::{Carried, Read};
use super::super::effect::{Effect, EffectKind, Target, TargetKind};
use super::super::programs::Input;
use super::{Engine, names};

/// Programs that print a piece of what they read.
const SELECTORS: &[&str] = &[
    "grep", "egrep", "rg", "jq", "yq", "sed", "awk", "gawk", "mawk", "cut", "head", "tail", "perl", "dasel",
];
/// Programs that read a key without telling what is in it: they tell of its public half, or sign with it.
const KEEP_KEYS: &[&str] =
    &["ssh-keygen", "ssh-add", "ssh", "git", "puttygen", "certbot", "minisign", "cosign"];
/// Sub-commands of `openssl` that print what they are given.
const OPENSSL_PRINTS: &[&str] = &["enc", "base64", "cms", "smime", "pkcs12", "rsa", "pkey", "ec"];

/// Names of headers by which the sender of a request signs in.
const SIGN_IN_HEADERS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "apikey",
    "private-token",
    "x-auth-token",
    "x-vault-token",
];
/// Options whose value signs in.
const SIGN_IN_OPTIONS: &[&str] = &["-u", "--user", "--oauth2-bearer", "--password", "--http-password"];

/// Where a provider's tools keep its credentials, and the host that they are for.
const OWNERS: &[(&str, &str)] = &[
    ("/.aws/", "amazonaws.com"),
    ("/.azure/", "azure.com"),
    ("/.cargo/credentials", "crates.io"),
    ("/.claude/", "anthropic.com"),
    ("/.claude.json", "anthropic.com"),
    ("/.codex/", "openai.com"),
    ("/.config/gcloud/", "googleapis.com"),
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

/// What sends a request elsewhere than its URL says, or to whoever answers there.
const REROUTES: &[&str] = &[
    "-x",
    "--proxy",
    "--preproxy",
    "--socks4",
    "--socks4a",
    "--socks5",
    "--socks5-hostname",
    "--connect-to",
    "--resolve",
    "-k",
    "--insecure",
    "--doh-url",
    "--dns-servers",
    "-K",
    "--config",
    "--next",
    "-:",
    "--location-trusted",
    "--no-check-certificate",
];

/// What prints a token of a provider, by how the detail of the effect begins, and where the provider's tool keeps it.
const TOKENS: &[(&str, &str)] = &[
    ("aws configure", "~/.aws/credentials"),
    ("aws sts", "~/.aws/credentials"),
    ("az account", "~/.azure/msal_token_cache.json"),
    ("firebase login", "~/.config/configstore/firebase-tools.json"),
    ("gcloud auth print-access", "~/.config/gcloud/credentials.db"),
    ("gcloud auth application-default", "~/.config/gcloud/application_default_credentials.json"),
    ("gh auth", "~/.config/gh/hosts.yml"),
    ("git credential", "~/.git-credentials"),
    ("glab auth", "~/.config/glab-cli/config.yml"),
    ("heroku auth", "~/.netrc"),
    ("npm token", "~/.npmrc"),
];

/// Details of a told transfer: a credential by which its sender signs in, and one value of a file of the project.
const SIGN_IN: &str = "sign-in";

impl Engine<'_> {
    /// Notes a file that is read, for whatever its text flows into; with it the files that it was made of.
    pub(super) fn note_read(&mut self, target: &Target, recursive: bool) {
        let made_of = self.files.carried(&target.text);
        self.reads.extend_from_slice(made_of.reads());
        self.reads.push(Read { target: target.clone(), recursive, is_selected: false, is_token: false });
    }

    /// Notes a token that a program of its provider prints, as the file that the provider's programs keep it in.
    pub(super) fn note_token(&mut self, detail: &str) {
        let Some((_, path)) = TOKENS.iter().find(|(begin, _)| detail.starts_with(begin)) else { return };
        let target = Target { text: (*path).to_owned(), has_glob: false, kind: TargetKind::Path };
        self.reads.push(Read { target, recursive: false, is_selected: false, is_token: true });
    }

    /// Files go to another host by some other way than the words of a program.
    pub(super) fn send_carried(&mut self, carried: &Carried, detail: &str, span: &Range<usize>) {
        for read in carried.reads() {
            if !self.charge(4) {
                return;
            }
            let effect = Effect {
                kind: EffectKind::SendData,
                target: Some(self.resolve_target(read.target.clone())),
                recursive: read.recursive,
                forced: false,
                detail: detail.to_owned(),
                program: String::new(),
                argv: Arc::from(Vec::new()),
                span: span.clone(),
                via: self.via.clone(),
            };
            self.push(effect);
        }
    }

    /// What `git` takes into a repository leaves with it: files that are added, and words of its messages and settings.
    pub(super) fn repository(&mut self, argv: &[Argument], span: &Range<usize>) {
        let cwd = self.cwd();
        let mut words = argv.iter().skip(1);
        let mut folder = cwd.clone();
        let verb = loop {
            match words.next() {
                Some(option) if option.text == "-C" => {
                    folder = words.next().map_or_else(String::new, |path| self.spelled(path));
                }
                Some(option) if option.text == "-c" => drop(words.next()),
                Some(option) if option.text.starts_with('-') => {}
                Some(verb) => break verb,
                None => return,
            }
        };
        // Where nothing is known of the working directory, it is the one that it is.
        let repository = format!("{}/.git", folder.trim_end_matches('/'));
        match verb.text.as_str() {
            "add" => {
                let mut taken = Carried::default();
                for word in words {
                    let text = match word.text.as_str() {
                        "-A" | "--all" | "." => folder.clone(),
                        option if option.starts_with('-') => continue,
                        _ => self.spelled(word),
                    };
                    taken.merge(&self.files.carried(&text));
                    let target = Target { text, has_glob: word.has_glob, kind: TargetKind::Path };
                    let read = Read { target, recursive: true, is_selected: false, is_token: false };
                    taken.merge(&Carried::of([read]));
                }
                self.files.make(&repository, &taken);
            }
            "push" => self.send_carried(&self.files.carried(&repository), "repository", span),
            "commit" | "tag" | "notes" | "config" | "remote" | "commit-tree" => {
                let mut taken = Carried::default();
                words.for_each(|word| taken.merge(&word.carried));
                if !taken.is_empty() {
                    self.files.make(&repository, &taken);
                }
            }
            _ => {}
        }
    }

    /// Words that a program hands to another machine or publishes, besides those of requests.
    pub(super) fn handed_over(&mut self, program: &str, argv: &[Argument], span: &Range<usize>) {
        let publishes = || {
            let verb = |at: usize| argv.get(at).map_or("", |word| word.text.as_str());
            matches!(verb(1), "issue" | "pr" | "gist" | "release" | "api" | "mr" | "snippet")
                && verb(1) != "secret"
        };
        let detail = match program {
            "ssh" | "plink" | "sshpass" => "remote command",
            "gh" | "glab" if publishes() => "publication",
            _ => return,
        };
        let mut taken = Carried::default();
        argv.iter().skip(1).for_each(|word| taken.merge(&word.carried));
        self.send_carried(&taken, detail, span);
    }

    /// Output of a program that is not known, but what it may hold.
    pub(super) fn print_unknown(&mut self, program: &str, argv: &[Argument], origin: Origin) {
        let carried = if self.io.wanted && !matches!(origin, Origin::Network(_)) {
            self.printed_by(program, argv)
        } else {
            Carried::default()
        };
        self.io.write_unknown(origin, carried);
    }

    /// The files of whose text the output of a program holds a piece.
    pub(super) fn printed_by(&self, program: &str, argv: &[Argument]) -> Carried {
        let is_silent = super::output::is_summary(program) && program != "gpg"
            || KEEP_KEYS.contains(&program)
            || program == "openssl" && !prints_key(argv);
        if is_silent {
            return Carried::default();
        }
        let is_selected = SELECTORS.contains(&program);
        let own = self.reads[self.reads_from..].iter().cloned();
        let mut carried = Carried::of(own);
        carried.merge(&self.io.stdin.input.carried());
        for argument in &argv[1..] {
            carried.merge(&argument.carried);
        }
        if is_selected {
            let selected = |read: &Read| Read { is_selected: true, ..read.clone() };
            carried = Carried::of(carried.reads().iter().map(selected));
        }
        carried
    }

    /// A text of the script with what its holes were filled from, if it has such holes.
    pub(in crate::shell) fn filled(&self, text: &str) -> Option<Argument> {
        if self.holes_carried.is_empty() || !text.contains(CARRIED_HOLE) {
            return None;
        }
        let text = text.replace(CARRIED_HOLE, HOLE.encode_utf8(&mut [0; 4]));
        let (origin, carried) = (self.holes.clone(), self.holes_carried.clone());
        Some(Argument { text, origin, carried, ..Argument::default() })
    }

    /// After a program ran: what it made holds what it read, and what it sent holds what its words, its input and the files
    /// were made of. `effects` is the number of effects before it.
    pub(super) fn flow(&mut self, argv: &[Argument], effects: usize, span: &Range<usize>) {
        let Some(talk) = self.talk.take() else {
            self.made(effects);
            return;
        };
        let talk = self.sent.first().cloned().unwrap_or(talk);
        let mut sent: Vec<(Read, &str)> = Vec::new();
        let mut carry = |carried: &Carried, detail| {
            sent.extend(carried.reads().iter().map(|read| (read.clone(), detail)));
        };
        for (at, argument) in argv.iter().enumerate().skip(1) {
            let detail = if is_sign_in(argv, at) { SIGN_IN } else { "" };
            carry(&argument.carried, detail);
            // A pipe that stands for a file, as in `<(cat file)`, and a file of options.
            if argument.text.starts_with("/dev/fd/") || matches!(&*argv[at - 1].text, "-K" | "--config") {
                carry(&self.files.carried(&argument.text), detail);
            }
        }
        for effect in &self.sent {
            match &effect.target {
                Some(target) if target.kind == TargetKind::Path => {
                    carry(&self.files.carried(&target.text), "");
                }
                Some(target) if target.kind == TargetKind::Network => {}
                _ => carry(&self.io.stdin.input.carried(), ""),
            }
        }
        self.sent.clear();
        let hosts = hosts_of(argv);
        let place = self.cwd();
        sent.retain(|(read, detail)| {
            let path = read.target.text.as_str();
            let signs_in = *detail == SIGN_IN;
            let is_own =
                (signs_in || read.is_token) && !hosts.is_empty() && hosts.iter().all(|host| owns(host, path));
            // A token of a provider also signs in to what its customers run there, under names of their own.
            let is_customers = signs_in && read.is_token && !path.contains("/.config/gh/");
            !(is_own || is_customers || read.is_selected && is_in(path, &place))
        });
        for (read, detail) in sent {
            let mut told = talk.clone();
            told.kind = EffectKind::SendData;
            told.recursive = read.recursive;
            told.target = Some(self.resolve_target(read.target));
            told.detail = if detail.is_empty() { told.detail } else { detail.to_owned() };
            told.span = span.clone();
            if !self.charge(4) {
                return;
            }
            self.push(told);
        }
    }

    /// What a program wrote holds what it read.
    fn made(&mut self, effects: usize) {
        self.sent.clear();
        if self.reads.len() == self.reads_from {
            return;
        }
        let is_file = |effect: &&Effect| effect.kind == EffectKind::WritePath;
        let written = self.analysis.effects.get(effects..).unwrap_or_default().iter().filter(is_file);
        let carried = Carried::of(self.reads[self.reads_from..].iter().cloned());
        for target in written.filter_map(|effect| effect.target.as_ref()) {
            // A file of which nothing is known may be any.
            if target.kind == TargetKind::Path && target.text.chars().any(|c| c != HOLE) {
                self.files.make(&target.text, &carried);
            }
        }
    }
}

impl Input {
    /// The files whose text it may hold.
    pub(in crate::shell) fn carried(&self) -> Carried {
        match self {
            Self::Text(text) => text.carried.clone(),
            Self::Output(_, carried) => carried.clone(),
            Self::File(path) => {
                let target =
                    Target { text: path.text.clone(), has_glob: path.has_glob, kind: TargetKind::Path };
                Carried::of([Read { target, recursive: false, is_selected: false, is_token: false }])
            }
            Self::None | Self::Network(_) => Carried::default(),
        }
    }
}

/// Whether the words of a program take a token, which another program printed with this detail, to the provider that it is of,
/// or sign in with it to what the provider's customers run.
pub fn is_own_token(detail: &str, argv: &[Argument], at: usize) -> bool {
    let Some((_, path)) = TOKENS.iter().find(|(begin, _)| detail.starts_with(begin)) else { return false };
    let hosts = hosts_of(argv);
    !hosts.is_empty()
        && (hosts.iter().all(|host| owns(host, path))
            || is_sign_in(argv, at) && !path.contains("/.config/gh/"))
}

fn prints_key(argv: &[Argument]) -> bool {
    let has = |word: &str| argv.iter().any(|argument| argument.text == word);
    argv.get(1).is_some_and(|verb| OPENSSL_PRINTS.contains(&verb.text.as_str()))
        && !has("-pubout")
        && !has("-noout")
}

/// Whether an argument signs its sender in.
fn is_sign_in(argv: &[Argument], at: usize) -> bool {
    let text = argv[at].text.as_str();
    let before = at.checked_sub(1).map_or("", |before| argv[before].text.as_str());
    let value = text.strip_prefix("--header=").or_else(|| text.strip_prefix("-H")).unwrap_or(text);
    let name = value.split([':', '=']).next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_header = matches!(before, "-H" | "--header") || value.len() < text.len();
    let is_httpie = matches!(names::base_name(&argv[0].text), "http" | "https" | "xh" | "httpie");
    (is_header || is_httpie) && SIGN_IN_HEADERS.contains(&name.as_str())
        || SIGN_IN_OPTIONS.contains(&before)
        || SIGN_IN_OPTIONS
            .iter()
            .any(|option| text.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')))
}

/// The hosts that a program is told to ask, if it asks none but those: none if it is led elsewhere.
fn hosts_of(argv: &[Argument]) -> Vec<&str> {
    let mut hosts = Vec::new();
    for (at, argument) in argv.iter().enumerate().skip(1) {
        let text = argument.text.as_str();
        let option = text.split_once('=').map_or(text, |(option, _)| option);
        let is_short = text.starts_with('-') && !text.starts_with("--");
        if REROUTES.contains(&option) || is_short && text.len() > 2 && text.starts_with("-x") {
            return Vec::new();
        }
        match host_of(text) {
            Some(host) => hosts.push(host),
            // A word of its own that may be a host, too.
            None if !text.starts_with('-')
                && !argv[at - 1].text.starts_with('-')
                && text.contains(['.', ':', HOLE]) =>
            {
                return Vec::new();
            }
            None => {}
        }
    }
    hosts
}

/// The host of a URL.
fn host_of(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("https://")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or(host).split(':').next().unwrap_or_default();
    (!host.contains(HOLE)).then_some(host)
}

/// Whether credentials at a path are those of a host: of its provider by name, or in a folder that is called like it.
fn owns(host: &str, path: &str) -> bool {
    let is_below =
        |domain: &str| host == domain || host.strip_suffix(domain).is_some_and(|h| h.ends_with('.'));
    // Where the provider is known, a host that is merely called like it is another's.
    let mut providers = OWNERS.iter().filter(|(place, _)| path.contains(place)).peekable();
    if providers.peek().is_some() {
        // What customers run under the provider's name is theirs.
        let is_customers =
            ["execute-api.", "lambda-url.", "elb.", "s3.", "s3-"].iter().any(|part| host.contains(part));
        return !is_customers && providers.any(|(_, domain)| is_below(domain));
    }
    let mut labels = host.rsplit('.').skip(1);
    let label = labels.find(|label| label.len() > 3).unwrap_or_default();
    // `~/.config/acme/token`, `~/.acme/token`: where a program of that name keeps what is its own.
    let folder = match path.split_once("/.config/") {
        Some((_, rest)) => rest.split_once('/').map(|(folder, _)| folder),
        None => path.split_once("/.").and_then(|(_, rest)| rest.split_once('/')).map(|(folder, _)| folder),
    };
    let is_store = |folder: &str| STORES.contains(&folder);
    !label.is_empty() && folder.is_some_and(|folder| !is_store(folder) && folder.eq_ignore_ascii_case(label))
}

/// Whether a path lies in the working directory, where that is no folder that programs keep to themselves.
fn is_in(path: &str, cwd: &str) -> bool {
    if cwd.contains("/.") {
        return false;
    }
    let is_relative = !path.starts_with(['/', '~', '$', '%', HOLE]) && !path.starts_with("..");
    is_relative || cwd.len() > 1 && path.strip_prefix(cwd).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert_eq!(owns(host, path), wanted, "{host} {path}");
        }
    }
}
