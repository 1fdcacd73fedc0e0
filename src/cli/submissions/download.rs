//! Downloads: the submitted bytes of a submission, or the live ones of an entity.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::WhereArguments;
use super::source::Source;
use crate::cli::bundle_text::line;
use crate::cli::context::Context;
use crate::cli::progress::size;
use crate::cli::{Exit, Failure, Output};
use crate::pb::v1;
use crate::setting::system_problem;

/// Arguments of `submissions download` and `submissions entities download`.
#[derive(Debug, Args)]
pub(in crate::cli) struct DownloadArguments {
    /// Id of the submission or entity.
    id: String,
    /// Where to write; `-` is standard output [default: the name that the bundle has, in this folder].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a file that is there.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    place: WhereArguments,
}

/// Which bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// Those of a submission, whatever the verdict.
    Submission,
    /// The live ones of an entity.
    Entity,
}

/// Runs `submissions download`.
pub(super) fn run(
    arguments: &DownloadArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    fetch(arguments, What::Submission, context, output)
}

/// Downloads, and tells what came.
pub(super) fn fetch(
    arguments: &DownloadArguments,
    what: What,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let is_standard = arguments.output.as_deref() == Some(Path::new("-"));
    if is_standard && arguments.place.json {
        return Err(Failure::usage("--json: standard output takes the archive; write it to a file instead"));
    }
    if is_standard && io::stdout().is_terminal() {
        return Err(Failure::usage("--output: an archive does not belong on a terminal"));
    }
    let source = Source::open(&arguments.place, context)?;
    let mut written = None;
    let header = source.download(what, &arguments.id, |header| {
        if is_standard {
            return Ok(Box::new(io::stdout()) as Box<dyn Write>);
        }
        let path = arguments.output.clone().unwrap_or_else(|| safe_name(header));
        let mut options = File::options();
        options.write(true);
        if arguments.force {
            options.create(true).truncate(true)
        } else {
            options.create_new(true)
        };
        let file = options.open(&path).map_err(|error| {
            let told = match error.kind() {
                io::ErrorKind::AlreadyExists => format!("{error}; --force replaces it"),
                _ => system_problem(&error),
            };
            Failure::data(format_args!("{}: cannot be written: {told}", path.display()))
        })?;
        written = Some(path);
        Ok(Box::new(file))
    })?;
    if arguments.place.json {
        output.json(&header)?;
    } else if let Some(path) = written {
        output.line(format_args!("{}: {}, sha256 {}", path.display(), size(header.size), header.sha256));
        output.line(format_args!("  files as in {}", line(&header.bundle_sha256, 80)));
    }
    Ok(Exit::Ok)
}

/// The name that the server gives, if it is one name and nothing else.
fn safe_name(header: &v1::DownloadHeader) -> PathBuf {
    let name = &header.file_name;
    let is_safe = !name.is_empty()
        && !name.starts_with('.')
        && name.len() <= 200
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    PathBuf::from(if is_safe { name } else { "bundle.zip" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_chooses_a_name_and_no_place() {
        for (name, wanted) in [
            ("notes-1.2.zip", "notes-1.2.zip"),
            ("../x.zip", "bundle.zip"),
            ("/etc/x", "bundle.zip"),
            (".bashrc", "bundle.zip"),
            ("", "bundle.zip"),
            ("a\u{1b}.zip", "bundle.zip"),
        ] {
            let header = v1::DownloadHeader { file_name: name.to_owned(), ..Default::default() };
            assert_eq!(safe_name(&header), Path::new(wanted), "{name:?}");
        }
    }
}
