//! `audit`: administrative events, and whether their chain is as it was written.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::context::Context;
use super::output::Style;
use super::submissions::{EventsArguments, Source, WhereArguments, list_events};
use super::{Exit, Failure, Output};
use crate::audit::{ChainEnd, verify_chain};
use crate::pb::v1;
use crate::setting::system_problem;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// List administrative events, the newest first.
    List(Box<EventsArguments>),
    /// Compute the chain of hashes over all events, or over decision records, again: exit code 0 when it is whole, 65 when
    /// it is broken.
    Verify(VerifyArguments),
}

/// Arguments of `audit verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// The end of the chain as an earlier run told it: with it, a chain that was computed anew or cut off shows, too.
    #[arg(long, value_name = "LENGTH:HASH")]
    known: Option<String>,
    /// Decision records instead of administrative events: this file and those that were rotated away before it [default:
    /// the file that the settings name].
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    records: Option<Option<PathBuf>>,
    /// Events of this tenant alone [default: all; with --server the caller's own].
    #[arg(long, value_name = "NAME", conflicts_with_all = ["server", "records"])]
    tenant: Option<String>,
    #[command(flatten)]
    place: WhereArguments,
}

/// Runs one of them.
pub(super) fn run(command: &AuditCommand, context: &Context, output: &mut Output) -> Result<Exit, Failure> {
    match command {
        AuditCommand::List(arguments) => list_events(arguments, context, output),
        AuditCommand::Verify(arguments) => verify(arguments, context, output),
    }
}

fn verify(arguments: &VerifyArguments, context: &Context, output: &mut Output) -> Result<Exit, Failure> {
    let (known_length, known_hash) = arguments.known.as_deref().map(known).transpose()?.unwrap_or_default();
    if let Some(file) = &arguments.records {
        let known = (known_length > 0).then_some(ChainEnd { number: known_length, hash: known_hash });
        return verify_records(file.as_deref(), known.as_ref(), arguments.place.json, context, output);
    }
    let source = Source::open(&arguments.place, context)?;
    let tenants = match &arguments.tenant {
        Some(tenant) => vec![Some(tenant.clone())],
        // A known end is that of one chain.
        None if known_length > 0 => vec![None],
        None => source.audit_tenants()?,
    };
    // Where nothing ever happened there is the empty chain of the default tenant.
    let tenants = if tenants.is_empty() { vec![None] } else { tenants };
    let mut exit = Exit::Ok;
    for tenant in &tenants {
        let request = v1::VerifyAuditChainRequest { known_length, known_hash: known_hash.clone() };
        let report = source.verify(tenant.as_deref(), request)?;
        if report.broken_at != 0 {
            exit = Exit::Data;
        }
        tell(&report, tenant.as_deref().unwrap_or_default(), arguments.place.json, output)?;
    }
    Ok(exit)
}

/// One line about the chain of a tenant.
fn tell(
    report: &v1::VerifyAuditChainResponse,
    tenant: &str,
    is_json: bool,
    output: &mut Output,
) -> Result<(), Failure> {
    if is_json {
        let mut told = serde_json::to_value(report).map_err(Failure::internal)?;
        if !tenant.is_empty() {
            told["tenant"] = tenant.into();
        }
        return output.json(&told);
    }
    let of = if tenant.is_empty() { String::new() } else { format!(" of tenant {tenant}") };
    let events = if report.length == 1 { "1 event".to_owned() } else { format!("{} events", report.length) };
    match report.broken_at {
        0 => {
            let verdict = output.styled(Style::Green, "whole");
            output.line(format_args!("{verdict}: {events}{of}"));
        }
        number => {
            let verdict = output.styled(Style::Red, "broken");
            output.line(format_args!("{verdict} at event {number} of {}{of}", report.length));
        }
    }
    if report.length > 0 && report.broken_at == 0 {
        output.line(format_args!("end {}:{}", report.length, report.last_hash));
    }
    Ok(())
}

/// The chain of the records in a file; without one, in that of the settings.
fn verify_records(
    file: Option<&Path>,
    known: Option<&ChainEnd>,
    is_json: bool,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    // A name that leads nowhere is a slip; a log of the settings that is gone was taken away.
    let (is_named, file) = match file {
        Some(file) => (true, file.to_owned()),
        None => (false, context.settings()?.audit_path()),
    };
    let report = verify_chain(&file, known).map_err(|error| {
        let message = format!("`{}` cannot be read: {}", file.display(), system_problem(&error));
        if is_named { Failure::usage(message) } else { Failure::data(message) }
    })?;
    if report.records == 0 && report.broken.is_none() {
        return Err(Failure::data(format_args!(
            "`{}` has no chain; it begins with the first record after `audit.chain: true`",
            file.display()
        )));
    }
    let exit = if report.broken.is_none() { Exit::Ok } else { Exit::Data };
    if is_json {
        let broken = report
            .broken
            .as_ref()
            .map(|broken| serde_json::json!({ "file": broken.file, "line": broken.line, "why": broken.why }));
        output.json(&serde_json::json!({
            "records": report.records,
            "unchained": report.unchained,
            "first": report.first,
            "length": report.end.number,
            "lastHash": report.end.hash,
            "broken": broken,
        }))?;
        return Ok(exit);
    }
    match &report.broken {
        None => {
            let verdict = output.styled(Style::Green, "whole");
            let (first, last) = (report.first, report.end.number);
            output.line(format_args!("{verdict}: records {first} to {last}"));
            if report.unchained > 0 {
                output.line(format_args!("{} records before the chain began", report.unchained));
            }
            output.line(format_args!("end {last}:{}", report.end.hash));
        }
        Some(broken) => {
            let verdict = output.styled(Style::Red, "broken");
            let file = broken.file.display();
            match broken.line {
                0 => output.line(format_args!("{verdict}: {file} {}", broken.why)),
                line => output.line(format_args!("{verdict}: line {line} of {file} {}", broken.why)),
            }
        }
    }
    Ok(exit)
}

/// The end of a chain as `audit verify` prints it.
fn known(given: &str) -> Result<(u64, String), Failure> {
    let parts = given.split_once(':').and_then(|(length, hash)| Some((length.parse().ok()?, hash)));
    let is_hash = |hash: &str| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    match parts {
        Some((length, hash)) if length > 0 && is_hash(hash) => Ok((length, hash.to_ascii_lowercase())),
        _ => Err(Failure::usage("--known: give it as `audit verify` prints it: LENGTH:HASH")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_end_is_a_length_and_a_hash() {
        let hash = "ab".repeat(32);
        assert_eq!(known(&format!("7:{}", hash.to_uppercase())).ok(), Some((7, hash.clone())));
        for wrong in
            ["", "7", "7:", ":ab", "0:", &format!("0:{hash}"), &format!("x:{hash}"), &format!("7:{hash}0")]
        {
            assert_eq!(known(wrong).expect_err("refused").exit, Exit::Usage, "{wrong}");
        }
    }
}
