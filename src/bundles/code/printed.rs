//! Secrets that others hand out when they are asked: commands that print them, and the service of a cloud.

use std::rc::Rc;

use super::call::Arguments;
use super::follow::Walk;
use super::taint::Taint;
use super::value::HOLE;
use crate::shell::analysis::Analysis;
use crate::shell::effect::EffectKind;

/// Commands of which the output is remembered.
const PRINTED_MAX: usize = 400;

/// What a command prints, or a service answers.
#[derive(Clone, Debug, Default)]
pub(super) struct Printed {
    /// Where it comes from.
    pub taint: Taint,
    /// The variable in which the same secret would be found: it tells whose it is.
    pub about: Option<Rc<str>>,
}

/// Programs that print what they are given to read.
const PRINTERS: &[&str] = &[
    "cat", "head", "tail", "tac", "nl", "base64", "base32", "xxd", "od", "hexdump", "strings", "sed", "awk",
    "gawk", "grep", "egrep", "rg", "jq", "yq", "cut", "sort", "uniq", "rev", "tee", "dd", "type", "bat",
    "zcat", "gzip", "tar",
];

/// Programs that print a token when asked to, and the variable that would hold it.
const TOKENS: &[(&str, &str)] = &[
    ("gh", "GH_TOKEN"),
    ("git", "GITHUB_TOKEN"),
    ("glab", "GITLAB_TOKEN"),
    ("aws", "AWS_SECRET_ACCESS_KEY"),
    ("gcloud", "GOOGLE_APPLICATION_TOKEN"),
    ("az", "AZURE_TOKEN"),
    ("npm", "NPM_TOKEN"),
    ("heroku", "HEROKU_TOKEN"),
    ("kubectl", "KUBE_TOKEN"),
    ("vercel", "VERCEL_TOKEN"),
    ("netlify", "NETLIFY_TOKEN"),
];

/// Addresses of the services that hand out the credentials of a machine in a cloud (documented by their makers), what in
/// the path asks for them, and the variable that would hold them.
const SERVICES: &[(&str, &str, &str)] = &[
    ("169.254.169.254", "security-credentials", "AWS_SECRET_ACCESS_KEY"),
    ("[fd00:ec2::254]", "security-credentials", "AWS_SECRET_ACCESS_KEY"),
    ("169.254.170.2", "/", "AWS_SECRET_ACCESS_KEY"),
    ("169.254.169.254", "/token", "GOOGLE_APPLICATION_TOKEN"),
    ("metadata.google.internal", "/token", "GOOGLE_APPLICATION_TOKEN"),
    ("metadata.google.internal", "/identity", "GOOGLE_APPLICATION_TOKEN"),
    ("169.254.169.254", "identity/oauth2", "AZURE_TOKEN"),
    ("100.100.100.200", "ram/security-credentials", "AZURE_TOKEN"),
];

/// Ends of addresses of such services below which everything lies, with the credentials among it.
const LISTS: &[&str] =
    &["meta-data/", "latest/", "computeMetadata/v1/", "iam/", "ram/", "instance/", "metadata/"];

impl Walk<'_> {
    /// What a command prints that was analysed.
    pub fn printed_by(&self, command: &str, analysis: &Analysis) -> Printed {
        let mut printed = Printed::default();
        // Without a program behind it, `env` prints all variables.
        let first = command.split(['|', ';', '&', '\n']).next().unwrap_or_default();
        let mut words = first.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
        let name = words.next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        if matches!(name, "env" | "printenv" | "set" | "export") && words.all(|word| word.starts_with('-')) {
            printed.taint |= Taint::ENVIRONMENT;
        }
        for effect in &analysis.effects {
            let target = effect.target.as_ref().map_or("", |target| target.text.as_str());
            match effect.kind {
                EffectKind::Fetch => printed.taint |= Taint::NETWORK,
                EffectKind::RevealSecret => {
                    match TOKENS.iter().find(|(program, _)| *program == effect.program) {
                        Some((_, variable)) => {
                            printed.taint |= Taint::SECRET_VARIABLE;
                            printed.about = Some(Rc::from(*variable));
                        }
                        None if effect.program == "env" || effect.program == "printenv" => {
                            printed.taint |= Taint::ENVIRONMENT;
                        }
                        None => printed.taint |= Taint::KEYCHAIN,
                    }
                }
                EffectKind::ReadPath if PRINTERS.contains(&&*effect.program) => {
                    printed.taint |= self.contents(target) & (Taint::CREDENTIALS | Taint::CHAT);
                }
                _ => {}
            }
        }
        printed
    }

    /// Remembers what a command prints, which is judged once only.
    pub fn note_printed(&mut self, command: &Rc<str>, printed: Option<Printed>) {
        if let Some(printed) = printed
            && self.printed.len() < PRINTED_MAX
        {
            self.printed.insert(command.clone(), printed);
        }
        if let Some(printed) = self.printed.get(command) {
            self.printing.taint |= printed.taint;
            self.printing.about = printed.about.clone().or(self.printing.about.take());
        }
    }

    /// What a server answers that hands out credentials.
    pub fn handed_out(&self, path: &str, returns: Taint, arguments: &Arguments) -> Printed {
        if !returns.meets(Taint::NETWORK) {
            return Printed::default();
        }
        // A request that was made before asks for what it was made for.
        let made = |(_, value): &&(Option<Rc<str>>, super::value::Value)| {
            value.taint.meets(Taint::SECRET_VARIABLE)
                && value.about.is_some()
                && value.api_name().is_some_and(|name| name.ends_with("Request()"))
        };
        if let Some((_, request)) = arguments.iter().find(made) {
            return Printed { taint: Taint::SECRET_VARIABLE, about: request.about.clone() };
        }
        let mut text = String::new();
        arguments.iter().take(2).for_each(|(_, value)| value.all_text(&mut text, 2));
        let asked = |(host, part, _): &&(&str, &str, &str)| {
            text.split_once(host).is_some_and(|(before, rest)| {
                let rest = rest.split(['\n', ' ', '?']).next().unwrap_or_default();
                // What an earlier answer named stands for whatever the service has behind it.
                let is_named = |nth: usize| {
                    rest[nth..].strip_prefix(HOLE).is_some_and(|end| {
                        let part = part.trim_start_matches('/');
                        end.is_empty() && LISTS.iter().any(|list| rest[..nth].ends_with(list))
                            || end.starts_with(part)
                    })
                };
                let is_part = rest.contains(part) || rest.match_indices(HOLE).any(|(nth, _)| is_named(nth));
                // The token that only opens a session with the service is no credential.
                before.ends_with("://") && is_part && !rest.contains("/api/token")
            })
        };
        let is_asked = !path.ends_with("urlretrieve");
        match SERVICES.iter().find(asked).filter(|_| is_asked) {
            Some((.., variable)) => {
                Printed { taint: Taint::SECRET_VARIABLE, about: Some(Rc::from(*variable)) }
            }
            None => Printed::default(),
        }
    }
}
