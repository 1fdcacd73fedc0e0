//! Formats that are written in text and are none: what they hold is encoded, or is a program of its own.
//!
//! Pure. What can be decoded is given back to be scanned like every other text; what cannot is counted, so that the
//! coverage tells it.

mod coded;
mod data_url;
mod mail;
mod package;
pub(super) mod pdf;
pub(super) mod pickle;
mod rtf;

use super::files::decode;
use crate::decision::Severity;

/// What a text holds beyond its letters.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Layers {
    /// Decoded texts, each to be scanned as if it were a file of this name.
    pub texts: Vec<(String, String)>,
    /// Bytes that hold something which is not looked into.
    pub unscanned: usize,
    /// What it does when it is opened.
    pub acts: Vec<Act>,
}

/// Something that a document does when somebody opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Act {
    /// Id of the rule.
    pub id: &'static str,
    /// Where, in bytes.
    pub at: usize,
    /// How bad that is.
    pub severity: Severity,
    /// What it does, as a sentence.
    pub reason: &'static str,
    /// What to do about it.
    pub fix: &'static str,
}

impl Act {
    const RUNS: Self = Self {
        id: "bundle.document-runs",
        at: 0,
        severity: Severity::High,
        reason: "The document acts by itself: it starts a program, runs a script, or sends data.",
        fix: "Take the action out of the document, or ship its text.",
    };
    const FETCHES: Self = Self {
        id: "bundle.document-template",
        at: 0,
        severity: Severity::High,
        reason: "The document fetches a template or an object from elsewhere when it is opened.",
        fix: "Remove the reference, or put what it refers to into the document.",
    };
}

/// Whether the file that begins so must be read as a whole: piece by piece nothing of it can be told.
pub(super) fn needs_whole(path: &str, head: &[u8]) -> bool {
    let text = || decode(head).map(|decoded| decoded.text);
    pickle::may_begin(head)
        || pdf::is_pdf(path, head)
        || text().is_some_and(|text| rtf::is_rtf(&text) || mail::has_header(&text))
}

/// The layers of the text of the file at `path`.
pub(super) fn layers(path: &str, text: &str) -> Layers {
    let mut layers = Layers::default();
    if pdf::is_pdf(path, text.as_bytes()) {
        pdf::look(path, text.as_bytes(), &mut layers);
    } else if rtf::is_rtf(text) {
        rtf::look(path, text, &mut layers);
    } else {
        mail::look(path, text, &mut layers);
        package::look(path, text, &mut layers);
        coded::look(path, text, &mut layers);
        data_url::look(path, text, &mut layers);
    }
    layers
}
