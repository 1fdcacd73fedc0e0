//! `token`: tokens of callers, for `auth.mode: tokens`.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;

use super::{Exit, Failure, Output};
use crate::identity::{TokenSet, new_token, read_tokens};
use crate::setting::{duration, system_problem};

/// What can be done with tokens.
#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token: it is printed once, and only its hash is kept.
    Create(CreateArguments),
}

/// Arguments of `token create`.
#[derive(Debug, Args)]
pub(super) struct CreateArguments {
    /// Name of the caller: the submitter of what it uploads, and the actor of its changes.
    #[arg(long)]
    name: String,
    /// Roles, comma separated: agent, submitter, auditor, admin. An admin holds all of them.
    #[arg(long, value_delimiter = ',', required = true)]
    roles: Vec<String>,
    /// Tenant of the caller [default: the default tenant].
    #[arg(long, default_value = "")]
    tenant: String,
    /// From when on the token is refused: a time such as 2027-01-31T00:00:00Z, or a duration such as 720h.
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    /// File of tokens to append the entry to, made when it is absent. Without it the entry is printed to standard error.
    #[arg(long, value_name = "FILE")]
    append: Option<PathBuf>,
    /// Print token and entry as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(command: &TokenCommand, output: &mut Output) -> Result<Exit, Failure> {
    match command {
        TokenCommand::Create(arguments) => create(arguments, output),
    }
}

fn create(arguments: &CreateArguments, output: &mut Output) -> Result<Exit, Failure> {
    let expires = arguments.expires.as_deref().map(moment).transpose()?;
    let new = new_token().map_err(Failure::internal)?;
    let quoted = |text: &str| serde_json::to_string(text).map_err(Failure::internal);
    // A string of JSON is one of YAML.
    let mut entry = format!("- name: {}\n  hash: {}\n", quoted(&arguments.name)?, quoted(&new.hash)?);
    entry.push_str(&format!("  roles: [{}]\n", arguments.roles.join(", ")));
    if !arguments.tenant.is_empty() {
        entry.push_str(&format!("  tenant: {}\n", quoted(&arguments.tenant)?));
    }
    if let Some(expires) = expires {
        entry.push_str(&format!("  expires: {expires}\n"));
    }
    // What the server would refuse is refused before anybody is given the token.
    TokenSet::parse(&entry).map_err(|problem| Failure::usage(wrong(&problem)))?;
    if let Some(path) = &arguments.append {
        append(path, &entry)?;
    }
    if arguments.json {
        output.json(&json!({
            "token": new.token,
            "name": arguments.name,
            "hash": new.hash,
            "roles": arguments.roles,
            "tenant": arguments.tenant,
            "expires": expires.map(|expires| expires.to_string()),
        }))?;
    } else {
        output.line(&new.token);
        match &arguments.append {
            Some(path) => output.note(format_args!(
                "The token above is shown once; its hash was appended to {}.",
                path.display()
            )),
            None => output.note(format_args!(
                "The token above is shown once. Append this to the file of auth.tokens.path:\n{}",
                entry.trim_end()
            )),
        }
    }
    Ok(Exit::Ok)
}

/// What is wrong with the arguments, without the place in a file that there is not.
fn wrong(problem: &str) -> String {
    problem.strip_prefix("token 1: ").unwrap_or(problem).to_owned()
}

fn moment(text: &str) -> Result<Timestamp, Failure> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let after = duration::parse(text).filter(|after| *after >= Duration::from_secs(1));
    let time = after.and_then(|after| Timestamp::now().checked_add(after).ok());
    let second = time.and_then(|time| Timestamp::from_second(time.as_second()).ok());
    second.ok_or_else(|| {
        Failure::usage(format_args!(
            "--expires `{text}` is neither a time such as 2027-01-31T00:00:00Z nor a duration such as 720h"
        ))
    })
}

/// Appends an entry to a file that is whole before and after; only its owner may read a file that is made here.
fn append(path: &Path, entry: &str) -> Result<(), Failure> {
    use std::os::unix::fs::OpenOptionsExt;
    let shown = path.display();
    let before = match std::fs::read_to_string(path) {
        Ok(text) => {
            read_tokens(path)
                .map_err(|problem| Failure::configuration(format_args!("{shown}: {problem}")))?;
            text
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(Failure::configuration(format_args!(
                "{shown}: cannot be read: {}",
                system_problem(&error)
            )));
        }
    };
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let text = format!("{gap}{entry}");
    TokenSet::parse(&format!("{before}{text}"))
        .map_err(|problem| Failure::configuration(format_args!("{shown}: {problem}")))?;
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|error| {
        Failure::configuration(format_args!("{shown}: cannot be written: {}", system_problem(&error)))
    })
}
