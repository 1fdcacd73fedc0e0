//! Whether a word of a program signs its sender in, and to whom: what a credential is for, as against where it leaks.

use super::super::argument::{Argument, HOLE};
use super::super::carried::{Pick, Read};
use super::super::effect::TargetKind;
use super::super::owners;
use super::names;

/// Names of headers by which the sender of a request signs in.
const HEADERS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "apikey",
    "private-token",
    "x-auth-token",
    "x-vault-token",
];
/// Options of programs for requests whose value signs in.
const OPTIONS: &[&str] = &["-u", "--user", "--oauth2-bearer", "--password", "--http-password"];
/// Parts of the names of options by which other programs are given a credential.
const OPTION_PARTS: &[&str] = &["pass", "token", "secret", "auth", "api-key", "apikey", "credential"];
/// Short options of other programs for the same: `mysql -p`, `docker login -p`, `redis-cli -a`, `mosquitto_pub -P`.
const SHORT_OPTIONS: &[&str] = &["-p", "-P", "-a", "-u"];
/// Programs whose short options are not those.
const FETCHERS: &[&str] =
    &["curl", "curlie", "wget", "wget2", "http", "https", "xh", "xhs", "httpie", "ssh", "scp"];
/// Options whose value is the body of a request.
const BODIES: &[&str] =
    &["-d", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--json", "--post-data"];
/// Names of fields of a form, or of an object, by which somebody signs in.
const FIELDS: &[&str] = &[
    "assertion",
    "client_assertion",
    "client_secret",
    "jwt",
    "pass",
    "passwd",
    "password",
    "pin",
    "refresh_token",
    "secret",
    "secret_id",
    "subject_token",
];
/// Last parts of the paths at which a service signs somebody in.
const ENDPOINTS: &[&str] =
    &["authenticate", "login", "oauth", "session", "sessions", "sign-in", "signin", "token", "tokens"];

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

/// Whether an argument signs its sender in.
pub(super) fn is_sign_in(argv: &[Argument], at: usize) -> bool {
    let text = argv[at].text.as_str();
    let program = names::base_name(&argv[0].text);
    let before = at.checked_sub(1).map_or("", |before| argv[before].text.as_str());
    let value = text.strip_prefix("--header=").or_else(|| text.strip_prefix("-H")).unwrap_or(text);
    let name = value.split([':', '=']).next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_header = matches!(before, "-H" | "--header") || value.len() < text.len();
    let is_httpie = matches!(program, "http" | "https" | "xh" | "httpie");
    if (is_header || is_httpie) && HEADERS.contains(&name.as_str()) || is_userinfo(text) {
        return true;
    }
    let is_given = |option: &str| {
        before == option || text.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
    };
    if OPTIONS.iter().any(|option| is_given(option)) {
        return true;
    }
    if FETCHERS.contains(&program) {
        return is_login(argv, at);
    }
    let is_named = |option: &str| {
        let option = option.split('=').next().unwrap_or_default();
        option.starts_with("--") && OPTION_PARTS.iter().any(|part| option.contains(part))
    };
    let is_short = |option: &&&str| {
        before == **option || text.strip_prefix(**option).is_some_and(|rest| rest.starts_with(HOLE))
    };
    is_named(before) && !before.contains('=')
        || is_named(text)
        || SHORT_OPTIONS.iter().any(|one| is_short(&one))
}

/// Whether an unknown piece stands where a URL has the user and the password.
fn is_userinfo(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, host)| user.contains(HOLE) && !host.contains(HOLE))
        && text.matches(HOLE).count() == authority.matches(HOLE).count()
}

/// Whether an argument is a form that signs in where the request goes: every unknown piece of it is the value of such a
/// field, and the address is one where somebody signs in.
fn is_login(argv: &[Argument], at: usize) -> bool {
    let text = argv[at].text.as_str();
    let before = argv[at - 1].text.as_str();
    let value = BODIES.iter().find_map(|option| text.strip_prefix(option)?.strip_prefix('='));
    if value.is_none() && !BODIES.contains(&before) {
        return false;
    }
    let value = value.unwrap_or(text);
    let is_field = |(hole, _): (usize, &str)| {
        let name = value[..hole].trim_end_matches([' ', '"', '\'', '=', ':']);
        let last = name.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        FIELDS.contains(&&*last.to_ascii_lowercase())
    };
    let mut holes = value.match_indices(HOLE).peekable();
    let is_form = holes.peek().is_some() && holes.all(is_field);
    let is_endpoint = |argument: &&Argument| {
        let path = argument.text.split(['?', '#']).next().unwrap_or_default();
        path.contains('/') && ENDPOINTS.contains(&names::base_name(path))
    };
    is_form
        && argv.iter().skip(1).filter(|one| is_address(&one.text)).count() == 1
        && argv.iter().skip(1).filter(|one| is_address(&one.text)).all(|one| is_endpoint(&one))
}

/// Whether a word is, or begins like, an address to ask.
fn is_address(text: &str) -> bool {
    text.starts_with("http://")
        || text.starts_with("https://")
        || text.starts_with(HOLE) && text.contains('/')
}

/// Whether a word may be an address that a variable holds the beginning of.
fn is_unknown_address(text: &str) -> bool {
    text.strip_prefix(HOLE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        && !text.contains(char::is_whitespace)
}

/// Whether the word behind this one may be its value: it is an option, and no bundle of flags.
fn takes_value(option: &str) -> bool {
    option.strip_prefix('-').is_some_and(|letters| {
        option != "--password-stdin"
            && (letters.starts_with('-')
                || !letters.chars().all(|letter| "sSfLkgvqiIGNO#046".contains(letter)))
    })
}

/// The hosts that a program is told to ask.
#[derive(Default)]
pub(super) struct Hosts<'a> {
    /// Those that are named.
    named: Vec<&'a str>,
    /// Variables that hold the address of a service of the user.
    variables: Vec<&'a str>,
    /// Whether there is an address of which nothing is known.
    has_unknown: bool,
    /// Whether the request is led elsewhere, or may be to another host besides.
    is_elsewhere: bool,
}

impl<'a> Hosts<'a> {
    /// Of these words.
    pub fn of(argv: &'a [Argument]) -> Self {
        let mut hosts = Self::default();
        let program = argv.first().map_or("", |name| names::base_name(&name.text));
        let is_login = argv.get(1).is_some_and(|verb| verb.text == "login");
        for (at, argument) in argv.iter().enumerate().skip(1) {
            let text = argument.text.as_str();
            let option = text.split_once('=').map_or(text, |(option, _)| option);
            let is_short = text.starts_with('-') && !text.starts_with("--");
            hosts.is_elsewhere |= REROUTES.contains(&option) && FETCHERS.contains(&program)
                || is_short && text.len() > 2 && text.starts_with("-x");
            let is_value = takes_value(&argv[at - 1].text);
            let is_plain = !text.starts_with('-') && text.contains('.') && !text.contains([' ', '=', ':']);
            match owners::host_of(text) {
                Some(host) => hosts.named.push(host),
                None if is_login && is_plain && !is_value && owners::is_known(text) => {
                    hosts.named.push(text.split('/').next().unwrap_or_default());
                }
                None if is_unknown_address(text) && (!is_value || text.contains('/')) => {
                    let names = argument.carried.reads().iter().filter(|read| read.pick == Pick::Address);
                    hosts.variables.extend(names.map(|read| read.target.text.as_str()));
                    hosts.has_unknown = true;
                }
                // A word of its own that may be a host, too.
                None if !text.starts_with('-')
                    && !is_value
                    && text.contains(['.', ':', HOLE])
                    && FETCHERS.contains(&program) =>
                {
                    hosts.is_elsewhere = true;
                }
                None => {}
            }
        }
        if is_login && hosts.named.is_empty() && !hosts.has_unknown {
            hosts.named.push("docker.io");
        }
        hosts
    }

    /// Whether what was read belongs to all of them.
    pub fn own(&self, read: &Read, signs_in: bool) -> bool {
        if self.is_elsewhere || !(signs_in || read.is_token) {
            return false;
        }
        let is_printed = read.target.kind == TargetKind::Name;
        let is_asked = || match &read.pick {
            Pick::Asked(words) => words.first().and_then(|detail| owners::token_of(detail)),
            _ => None,
        };
        let is_known = !self.named.is_empty() || !self.variables.is_empty() || self.has_unknown;
        let is_for_customers =
            read.is_token && is_asked().is_some_and(|(_, is_for_customers)| is_for_customers);
        let is_manager =
            is_printed && read.target.text.strip_prefix(owners::PRINTED).is_some_and(owners::is_manager);
        // Whoever asks for one secret by its name knows what it is for.
        if signs_in && is_known && (is_for_customers || is_manager) {
            return true;
        }
        // An address that stands in a variable of the user: what a cloud's token is for is the user's as well.
        let is_of_code_host =
            ["/.config/gh/", "/.git-credentials"].iter().any(|place| read.target.text.contains(place));
        if signs_in && read.is_token && self.named.is_empty() && self.has_unknown && !is_of_code_host {
            return true;
        }
        let is_all_known = !self.named.is_empty() && !self.has_unknown;
        is_all_known && self.named.iter().all(|host| owners::owns(host, read))
            || self.named.is_empty()
                && !self.variables.is_empty()
                && self.variables.iter().all(|name| owners::owns_variable(name, read))
    }
}
