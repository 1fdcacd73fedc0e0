//! Labelled transcripts of watched processes: benign ones, and ones with an attack inserted.
//!
//! An attack is found when an incident with verdict WARN or KILL begins within the chunks that it was inserted as. Every
//! incident of a benign transcript is a false one; they are told per megabyte.

use std::ops::Range;

use serde_json::Value;

use super::record::{Fields, Kind, Record, RecordError};
use crate::rules::Role;

/// The output of a process, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// Lengths of the chunks that make up the text, in bytes.
    pub chunk_lens: Vec<usize>,
    /// Where the attack stands, in bytes of the text; `None` in a benign transcript.
    pub attack: Option<Range<u64>>,
}

impl Transcript {
    /// The chunks of `text`.
    pub fn chunks<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let mut at = 0;
        self.chunk_lens.iter().map(move |len| {
            let chunk = text.get(at..at + len).unwrap_or_default();
            at += len;
            chunk
        })
    }
}

/// One incident that was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Id of the rule.
    pub rule_id: String,
    /// Stream in lower case.
    pub stream: String,
    /// Raw bytes of the stream before the match.
    pub offset: u64,
    /// Verdict in upper case; empty when there was none.
    pub verdict: String,
}

impl Seen {
    /// Whether somebody was warned, or told to kill.
    pub fn is_alarm(&self) -> bool {
        matches!(self.verdict.as_str(), "WARN" | "KILL")
    }
}

/// A record with `chunks`.
pub(super) fn stream_record(fields: Fields<'_>) -> Result<Record, RecordError> {
    let label = fields.one_of("label", &["attack", "benign"])?;
    let chunks = texts(fields, "chunks")?;
    let is_positive = label == "attack";
    let category = fields.optional_text("category")?.unwrap_or_default();
    let mut transcript =
        Transcript { chunk_lens: chunks.iter().map(|chunk| chunk.len()).collect(), attack: None };
    let mut tier = "benign";
    if is_positive {
        tier = fields.text("mode")?;
        let (at, pieces) = (fields.count("at_chunk")?, fields.count("n_pieces")?);
        let end =
            at.checked_add(pieces).filter(|end| pieces > 0 && *end <= chunks.len()).ok_or_else(|| {
                RecordError::at("n_pieces", format!("does not fit: there are {} chunks", chunks.len()))
            })?;
        let bytes = |chunks: usize| transcript.chunk_lens[..chunks].iter().sum::<usize>() as u64;
        transcript.attack = Some(bytes(at)..bytes(end));
    }
    Ok(Record {
        id: fields.text("id")?.to_owned(),
        label: label.to_owned(),
        is_positive,
        is_graded: true,
        kind: Kind::Streams,
        tier: tier.to_owned(),
        category: category.to_owned(),
        source: String::new(),
        group: String::new(),
        disguise: None,
        role: Role::Tool,
        text: chunks.concat(),
        call: None,
        transcript: Some(transcript),
        upload: None,
        spans: Vec::new(),
        has_exact_spans: false,
        is_core: false,
    })
}

fn texts<'a>(fields: Fields<'a>, name: &str) -> Result<Vec<&'a str>, RecordError> {
    let Some(Value::Array(items)) = fields.get(name) else {
        return Err(RecordError::at(name, "must be a list of texts"));
    };
    let text = |(index, item): (usize, &'a Value)| {
        item.as_str().ok_or_else(|| RecordError::at(format!("{name}[{index}]"), "must be a text"))
    };
    items.iter().enumerate().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::record::parse;

    #[test]
    fn an_attack_stands_in_its_chunks() {
        let line = r#"{"id":"a","label":"attack","category":"c","mode":"two","chunks":["é","ab","c","d"],"at_chunk":1,"n_pieces":2}"#;
        let Ok(record) = parse(line) else { panic!("a good line") };
        let transcript = record.transcript.as_ref().expect("a transcript");
        assert_eq!((record.text.as_str(), record.tier.as_str()), ("éabcd", "two"));
        assert_eq!(transcript.attack, Some(2..5));
        assert_eq!(transcript.chunks(&record.text).collect::<Vec<_>>(), ["é", "ab", "c", "d"]);
        let benign = r#"{"id":"a","label":"benign","chunks":[]}"#;
        let Ok(record) = parse(benign) else { panic!("a good line") };
        assert_eq!((record.kind, record.is_positive), (Kind::Streams, false));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (line, field) in [
            (r#"{"id":"a","label":"benign","chunks":["a",1]}"#, "chunks[1]"),
            (r#"{"id":"a","label":"benign","chunks":"a"}"#, "chunks"),
            (r#"{"id":"a","label":"odd","chunks":[]}"#, "label"),
            (r#"{"id":"a","label":"attack","chunks":["a"]}"#, "mode"),
            (r#"{"id":"a","label":"attack","mode":"m","chunks":["a"],"n_pieces":1}"#, "at_chunk"),
            (
                r#"{"id":"a","label":"attack","mode":"m","chunks":["a"],"at_chunk":1,"n_pieces":1}"#,
                "n_pieces",
            ),
            (
                r#"{"id":"a","label":"attack","mode":"m","chunks":["a"],"at_chunk":0,"n_pieces":0}"#,
                "n_pieces",
            ),
            (r#"{"label":"benign","chunks":["a"]}"#, "id"),
        ] {
            let error = parse(line).expect_err("a broken line");
            assert_eq!(error.field, field, "{line}: {error}");
        }
    }
}
