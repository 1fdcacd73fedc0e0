//! Labelled records: one JSON object a line, its shape told by its fields.
//!
//! Fields that no figure needs are ignored; a field that is needed and missing or of the wrong type is an error that
//! names it.

use std::fmt;
use std::ops::Range;

use serde_json::{Map, Value};

use super::bundle_record::{self, Upload};
use super::stream_record::{self, Transcript};
use super::tool_record::{self, Disguise, ToolCall};
use crate::detect::{PII, SECRETS};
use crate::rules::Role;

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Prompt injection: an attack or a benign text.
    Injection,
    /// Credentials with their spans.
    Secrets,
    /// Personal data with its spans.
    Pii,
    /// Shell commands.
    Commands,
    /// Paths in the hands of a tool.
    Paths,
    /// Output of watched processes.
    Streams,
    /// Bundles of skills, plugins and agents.
    Bundles,
    /// Archives, good and bad ones.
    Archives,
}

impl Kind {
    /// The name used in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Injection => "injection",
            Self::Secrets => "secrets",
            Self::Pii => "pii",
            Self::Commands => "commands",
            Self::Paths => "paths",
            Self::Streams => "streams",
            Self::Bundles => "bundles",
            Self::Archives => "archives",
        }
    }

    /// Family of the categories that answer for it; `None` where the decision does.
    pub(super) const fn family(self) -> Option<&'static str> {
        match self {
            Self::Injection
            | Self::Commands
            | Self::Paths
            | Self::Streams
            | Self::Bundles
            | Self::Archives => None,
            Self::Secrets => Some(SECRETS),
            Self::Pii => Some(PII),
        }
    }
}

/// An expected span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// Its type as the record names it, such as `US_SSN`.
    pub kind: String,
    /// Where, in UTF-8 bytes of the text.
    pub range: Range<usize>,
}

/// A record to be judged: a text as a message, a command or a path as a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its id.
    pub id: String,
    /// Its label as written.
    pub label: String,
    /// Whether something is to be found in it.
    pub is_positive: bool,
    /// Whether it counts for the figures; others are counted on their own.
    pub is_graded: bool,
    /// What it is about.
    pub kind: Kind,
    /// Tier, or what stands in for one: the kind of a negative, or whether the types are among the core.
    pub tier: String,
    /// Finer grouping than the tier; may be empty.
    pub category: String,
    /// Where it comes from; may be empty.
    pub source: String,
    /// Kind of disguise of a command, or spelling of a path; may be empty.
    pub group: String,
    /// The seed of a disguised command.
    pub disguise: Option<Disguise>,
    /// Role of the message.
    pub role: Role,
    /// The text, command or path.
    pub text: String,
    /// The tool call to judge; `None` for a text that is judged as a message.
    pub call: Option<ToolCall>,
    /// How the text is the output of a process; `None` for everything else.
    pub transcript: Option<Transcript>,
    /// The file to upload; `None` for everything but bundles and archives.
    pub upload: Option<Upload>,
    /// Expected spans.
    pub spans: Vec<Labelled>,
    /// Whether the expected spans are exact to the byte.
    pub has_exact_spans: bool,
    /// Whether its types count for the recall of the right type.
    pub is_core: bool,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RecordError {
    /// The field, such as `expected[0].end`; empty for the line as a whole.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl RecordError {
    /// Something wrong with the line as a whole.
    pub(super) fn whole(message: impl Into<String>) -> Self {
        Self { field: String::new(), message: message.into() }
    }

    pub(super) fn at(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "field `{}`: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

/// Reads one line.
///
/// # Errors
/// The field that is missing or wrong.
pub fn parse(line: &str) -> Result<Box<Record>, RecordError> {
    if line.starts_with('\u{feff}') {
        return Err(RecordError::whole("begins with a byte order mark; save the file as UTF-8 without one"));
    }
    let fields: Value = serde_json::from_str(line).map_err(|error| {
        // It counts lines of its own, of which there is one.
        let told = error.to_string();
        let told = told.split_once(" at line ").map_or(&*told, |(what, _)| what);
        RecordError::whole(format!("is not a JSON object: {told} at column {}", error.column()))
    })?;
    let Value::Object(fields) = fields else {
        return Err(RecordError::whole("is not a JSON object"));
    };
    let fields = Fields(&fields);
    let read = if fields.has("text") {
        Some(text_record(fields))
    } else if fields.has("command") {
        Some(tool_record::command_record(fields))
    } else if fields.has("path") {
        Some(tool_record::path_record(fields))
    } else if fields.has("chunks") {
        Some(stream_record::stream_record(fields))
    } else if fields.has("bundle") {
        Some(bundle_record::upload_record(fields))
    } else {
        None
    };
    let missing = "is missing, and no field of another shape is there (command, path, chunks, bundle)";
    let record = read.ok_or_else(|| RecordError::at("text", missing))?;
    record.map(Box::new)
}

fn text_record(fields: Fields<'_>) -> Result<Record, RecordError> {
    let kind = match (fields.has("surface"), fields.has("expected"), fields.has("core")) {
        (true, _, _) => Kind::Injection,
        (false, true, true) => Kind::Pii,
        (false, true, false) => Kind::Secrets,
        (false, false, _) => {
            return Err(RecordError::at("surface", "is missing; a record has `surface` or `expected`"));
        }
    };
    let labels = if kind == Kind::Injection { ["attack", "benign"] } else { ["positive", "negative"] };
    let label = fields.one_of("label", &labels)?.to_owned();
    let is_positive = label == labels[0];
    let text = fields.text("text")?.to_owned();
    let spans = if kind == Kind::Injection { Vec::new() } else { spans(fields, &text)? };
    if is_positive && kind != Kind::Injection && spans.is_empty() {
        return Err(RecordError::at("expected", "is empty in a positive record"));
    }
    let is_core = kind == Kind::Pii && fields.flag("core")?;
    Ok(Record {
        id: fields.text("id")?.to_owned(),
        is_positive,
        is_graded: true,
        kind,
        tier: tier(kind, is_positive, is_core, fields)?,
        category: fields.optional_text("category")?.unwrap_or_default().to_owned(),
        source: fields.optional_text("source")?.unwrap_or_default().to_owned(),
        group: String::new(),
        disguise: None,
        role: if kind == Kind::Injection { role(fields)? } else { Role::User },
        text,
        call: None,
        transcript: None,
        upload: None,
        spans,
        has_exact_spans: !fields.has("exact") || fields.flag("exact")?,
        is_core,
        label,
    })
}

/// The role that a surface stands for. A document reaches an agent through a tool.
fn role(fields: Fields<'_>) -> Result<Role, RecordError> {
    match fields.one_of("surface", &["user", "tool_result", "document", "system"])? {
        "user" => Ok(Role::User),
        "system" => Ok(Role::System),
        _ => Ok(Role::Tool),
    }
}

fn tier(kind: Kind, is_positive: bool, is_core: bool, fields: Fields<'_>) -> Result<String, RecordError> {
    if kind != Kind::Injection && !is_positive {
        return Ok(fields.optional_text("neg_kind")?.unwrap_or("negative").to_owned());
    }
    if kind == Kind::Pii {
        let is_weak = fields.has("weak") && fields.flag("weak")?;
        return Ok(match (is_core, is_weak) {
            (true, false) => "core",
            (true, true) => "core weak",
            (false, false) => "other",
            (false, true) => "other weak",
        }
        .to_owned());
    }
    fields.text("tier").map(str::to_owned)
}

fn spans(fields: Fields<'_>, text: &str) -> Result<Vec<Labelled>, RecordError> {
    let Some(Value::Array(items)) = fields.0.get("expected") else {
        return Err(RecordError::at("expected", "must be a list of spans"));
    };
    items.iter().enumerate().map(|(index, item)| span(index, item, text)).collect()
}

fn span(index: usize, item: &Value, text: &str) -> Result<Labelled, RecordError> {
    let at = |name: &str| format!("expected[{index}].{name}");
    let offset = |name: &str| {
        item.get(name)
            .and_then(Value::as_u64)
            .and_then(|offset| usize::try_from(offset).ok())
            .ok_or_else(|| RecordError::at(at(name), "must be a number of bytes"))
    };
    let kind = item.get("type").and_then(Value::as_str);
    let kind = kind.ok_or_else(|| RecordError::at(at("type"), "must be a text"))?;
    let (start, end) = (offset("start")?, offset("end")?);
    if end > text.len() || !text.is_char_boundary(end) {
        let message = format!("{end} is not a character boundary of a text of {} bytes", text.len());
        return Err(RecordError::at(at("end"), message));
    }
    if start >= end || !text.is_char_boundary(start) {
        let message = format!("{start} is not a character boundary before the end, {end}");
        return Err(RecordError::at(at("start"), message));
    }
    for (name, bytes) in [("cp_start", start), ("cp_end", end)] {
        // Offsets in code points are no part of the shape; where they are given, one of the two may not be mistaken.
        let Some(given) = item.get(name).filter(|given| !given.is_null()) else { continue };
        let counted = text[..bytes].chars().count();
        if given.as_u64() != Some(counted as u64) {
            let message = format!("{given} is not where byte {bytes} is, which is code point {counted}");
            return Err(RecordError::at(at(name), message));
        }
    }
    Ok(Labelled { kind: kind.to_owned(), range: start..end })
}

/// The fields of one record.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    fn has(self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name)
    }

    /// A whole number from 0 on.
    pub(super) fn count(self, name: &str) -> Result<usize, RecordError> {
        let value = self.0.get(name).ok_or_else(|| RecordError::at(name, "is missing"))?;
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| RecordError::at(name, "must be a whole number"))
    }

    pub(super) fn text(self, name: &str) -> Result<&'a str, RecordError> {
        match self.0.get(name) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(RecordError::at(name, "must be a text")),
            None => Err(RecordError::at(name, "is missing")),
        }
    }

    /// `None` for a field that is missing or null.
    pub(super) fn optional_text(self, name: &str) -> Result<Option<&'a str>, RecordError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.text(name).map(Some),
        }
    }

    fn flag(self, name: &str) -> Result<bool, RecordError> {
        let value = self.0.get(name).and_then(Value::as_bool);
        value.ok_or_else(|| RecordError::at(name, "must be true or false"))
    }

    pub(super) fn one_of(self, name: &str, valid: &[&str]) -> Result<&'a str, RecordError> {
        let value = self.text(name)?;
        if valid.contains(&value) {
            return Ok(value);
        }
        let shown: String = value.chars().take(40).flat_map(char::escape_debug).collect();
        Err(RecordError::at(name, format!("`{shown}` is none of: {}", valid.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(line: &str) -> Record {
        *parse(line).expect("a good line")
    }

    #[test]
    fn shapes_are_told_by_their_fields() {
        let line = r#"{"id":"a","text":"x","label":"attack","category":"c","surface":"document","tier":"t"}"#;
        let injection = record(line);
        assert_eq!(
            (injection.kind, injection.role, injection.tier.as_str()),
            (Kind::Injection, Role::Tool, "t")
        );
        let line = r#"{"id":"a","text":"é k","label":"positive","tier":"A","neg_kind":null,
                       "expected":[{"type":"x","start":3,"end":4,"cp_start":2,"cp_end":3}],"exact":false}"#;
        let secret = record(line);
        assert_eq!((secret.kind, secret.role, secret.has_exact_spans), (Kind::Secrets, Role::User, false));
        assert_eq!(secret.spans[0].range, 3..4);
        let line = r#"{"id":"a","text":"x","label":"negative","core":false,"neg_kind":"hard","expected":[]}"#;
        let pii = record(line);
        assert_eq!((pii.kind, pii.tier.as_str(), pii.is_positive), (Kind::Pii, "hard", false));
        let line = r#"{"bundle":"a.zip","expect":"reject"}"#;
        assert_eq!(record(line).kind, Kind::Archives);
    }

    #[test]
    fn a_line_that_is_no_json_is_told_by_its_columns() {
        for (line, told) in [
            ("\u{feff}{\"id\":\"a\"}", "begins with a byte order mark; save the file as UTF-8 without one"),
            ("{\"id\" 1}", "is not a JSON object: expected `:` at column 7"),
            ("[1]", "is not a JSON object"),
        ] {
            assert_eq!(parse(line).expect_err("a broken line").to_string(), told);
        }
    }

    #[test]
    fn a_broken_record_names_its_field() {
        for (line, field) in [
            ("{", ""),
            ("[]", ""),
            (r#"{"id":"a"}"#, "text"),
            (r#"{"id":"a","text":1,"label":"attack","surface":"user","tier":"t"}"#, "text"),
            (r#"{"id":"a","text":"x"}"#, "surface"),
            (r#"{"id":"a","text":"x","surface":"moon","label":"attack","tier":"t"}"#, "surface"),
            (r#"{"id":"a","text":"x","surface":"user","label":"bad","tier":"t"}"#, "label"),
            (r#"{"id":"a","text":"x","surface":"user","label":"attack"}"#, "tier"),
            (r#"{"text":"x","surface":"user","label":"attack","tier":"t"}"#, "id"),
            (r#"{"id":"a","text":"x","label":"positive","tier":"A","expected":[]}"#, "expected"),
            (r#"{"id":"a","text":"x","label":"positive","tier":"A","expected":{}}"#, "expected"),
            (
                r#"{"id":"a","text":"é","label":"positive","tier":"A","expected":[{"type":"x","start":0,"end":1}]}"#,
                "expected[0].end",
            ),
            (
                r#"{"id":"a","text":"é","label":"positive","tier":"A","expected":[{"type":"x","start":2,"end":2}]}"#,
                "expected[0].start",
            ),
            (
                r#"{"id":"a","text":"é","label":"positive","tier":"A","expected":[{"type":"x","start":-1,"end":2}]}"#,
                "expected[0].start",
            ),
            (
                r#"{"id":"a","text":"é k","label":"positive","tier":"A","expected":[{"type":"x","start":3,"end":4,"cp_start":3,"cp_end":3}]}"#,
                "expected[0].cp_start",
            ),
            (
                r#"{"id":"a","text":"é k","label":"positive","tier":"A","expected":[{"type":"x","start":3,"end":4,"cp_start":2,"cp_end":4}]}"#,
                "expected[0].cp_end",
            ),
            (
                r#"{"id":"a","text":"é k","label":"positive","tier":"A","expected":[{"type":"x","start":3,"end":4,"cp_start":"2"}]}"#,
                "expected[0].cp_start",
            ),
            (r#"{"id":"a","chunks":["x"]}"#, "label"),
        ] {
            let error = parse(line).expect_err("a broken line");
            assert_eq!(error.field, field, "{line}: {error}");
        }
    }
}
