//! `rules import`: rules of another scanner as a rule file.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::cli::output::Style;
use crate::cli::{Exit, Failure, Output, input, new_file};
use crate::decision::Severity;
use crate::rules::import::{ImportNote, Imported, NoteWeight, import_gitleaks};

/// Arguments of `rules import`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ImportArguments {
    /// A configuration of gitleaks (TOML); `-` is standard input.
    file: PathBuf,
    /// Where to write the rule file; without it, it is printed.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write over a file that exists.
    #[arg(long)]
    force: bool,
    /// Severity of all rules, since gitleaks has none: low, medium, high or critical.
    #[arg(long, default_value = "high", value_parser = severity)]
    severity: Severity,
    /// Print JSON: counts, notes and the rule file.
    #[arg(long)]
    json: bool,
}

fn severity(name: &str) -> Result<Severity, String> {
    [Severity::Low, Severity::Medium, Severity::High, Severity::Critical]
        .into_iter()
        .find(|severity| severity.as_str().eq_ignore_ascii_case(name))
        .ok_or_else(|| "use low, medium, high or critical".to_owned())
}

/// Runs the command: exit code 0 when everything that decides about a text was carried over, 65 when not.
pub(super) fn run(arguments: &ImportArguments, output: &mut Output) -> Result<Exit, Failure> {
    let shown = arguments.file.display();
    let text = input::text(None, Some(&arguments.file))?;
    let imported = import_gitleaks(&text, arguments.severity)
        .map_err(|error| Failure::data(format_args!("{shown}: {error}")))?;
    if let Some(path) = &arguments.output {
        new_file::write(path, &imported.toml, arguments.force)?;
    }
    if arguments.json {
        output.json(&as_json(&imported))?;
    } else {
        report(arguments, &imported, output);
    }
    Ok(if imported.is_whole() { Exit::Ok } else { Exit::Data })
}

fn report(arguments: &ImportArguments, imported: &Imported, output: &mut Output) {
    if arguments.output.is_none() {
        output.text(&imported.toml);
    }
    for note in &imported.notes {
        let line = line_of(note);
        let line = match note.weight {
            NoteWeight::Remark => output.styled(Style::Dim, line),
            NoteWeight::Changed => output.styled(Style::Yellow, line),
            NoteWeight::LeftOut => output.styled(Style::Red, line),
        };
        output.note(line);
    }
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let (rules, left_out) = (imported.rules, imported.left_out);
    output.note(format_args!("{rules} rule{} imported, {left_out} left out", plural(rules)));
}

fn line_of(note: &ImportNote) -> String {
    let weight = match note.weight {
        NoteWeight::Remark => "remark",
        NoteWeight::Changed => "changed",
        NoteWeight::LeftOut => "left out",
    };
    match note.rule.as_str() {
        "" => format!("{weight}: {}", note.message),
        rule => format!("{weight}: rule `{rule}`: {}", note.message),
    }
}

fn as_json(imported: &Imported) -> serde_json::Value {
    let note = |note: &ImportNote| json!({ "rule": note.rule, "weight": note.weight.as_str(), "message": note.message });
    json!({
        "rules": imported.rules,
        "left_out": imported.left_out,
        "is_whole": imported.is_whole(),
        "notes": imported.notes.iter().map(note).collect::<Vec<_>>(),
        "toml": imported.toml,
    })
}
