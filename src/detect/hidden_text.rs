//! Text that a model reads and a person cannot see.
//!
//! *What it finds*: runs of Unicode tag characters or of variation selectors that spell at least a short word, whatever
//! else without a shape stands between them.
//! *Why it matters*: both render as nothing, so a reviewer approves what they cannot read; there is no ordinary use for
//! them beyond the three subdivision flags and emoji variants, which are far shorter or begin with a flag.
//! *What it misses*: text hidden by colour, size or layout, which is no property of the characters.
//! *Cost*: nothing for ASCII; one look at a view's layers otherwise.

use std::ops::Range;
use std::sync::Arc;

use super::{Detector, INJECTION};
use crate::decision::{Category, Severity};
use crate::rules::MetaInfo;
use crate::text::{Layers, View, is_invisible};

/// Fewest hidden characters. Flags of England, Scotland and Wales use six, the last being an end mark.
const HIDDEN_CHARS_MIN: usize = 8;

/// Finds text in invisible characters.
pub(super) struct HiddenText {
    info: Arc<MetaInfo>,
}

impl HiddenText {
    pub(super) fn new() -> Self {
        let info = MetaInfo {
            id: "injection.hidden-text".into(),
            plugin: INJECTION.into(),
            category: Category::new("prompt_injection.hidden_text"),
            // What the hidden text says is judged through its text layer; being hidden alone only warns.
            severity: Severity::Medium,
            score: Severity::Medium.score(),
            confidence: 1.0,
            description: "Text written in characters that people cannot see and models read.".into(),
            recommendation: "Remove the invisible characters, and ask where the text came from.".into(),
            references: vec!["https://www.unicode.org/charts/PDF/UE0000.pdf".to_owned()],
            file: "src/detect/hidden_text.rs".into(),
            line: 0,
        };
        Self { info: Arc::new(info) }
    }
}

impl Detector for HiddenText {
    fn info(&self) -> &Arc<MetaInfo> {
        &self.info
    }

    fn detect(&self, view: &View<'_>, found: &mut Vec<(Range<usize>, Layers)>) {
        let layers = view.layers();
        // The text as sent: invisible runs are read where they stand, so nested views add nothing.
        if !layers.is_empty() || view.text().is_ascii() {
            return;
        }
        let mut run: Option<(usize, usize, usize)> = None;
        let text = view.text();
        for (at, c) in text.char_indices() {
            if is_hidden(c) {
                let (start, _, count) = run.unwrap_or((at, at, 0));
                run = Some((start, at + c.len_utf8(), count + 1));
            } else if !is_invisible(c)
                && let Some((start, end, count)) = run.take()
                && count >= HIDDEN_CHARS_MIN
            {
                found.push((start..end, Layers::default()));
            }
        }
        if let Some((start, end, count)) = run
            && count >= HIDDEN_CHARS_MIN
        {
            found.push((start..end, Layers::default()));
        }
    }
}

/// Tag characters (U+E0020..=U+E007E) and variation selectors.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{E0020}'..='\u{E007E}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}
