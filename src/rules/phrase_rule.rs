//! Rules that are made of phrases instead of a pattern: how they are read, and where a match of them counts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::compile::CompiledRule;
use super::lazy::LazyRegex;
use super::phrases;
use super::schema::RuleDef;

/// How much text either side of a phrase its exclusions see, in bytes: as much as those of a pattern.
const CONTEXT_BYTES: usize = 64;
/// Longest match of a concept or of a rule of phrases that names none, in bytes: a sentence.
pub(super) const SENTENCE_BYTES: usize = 160;
/// A pattern that matches nothing, for rules and concepts that are made of phrases.
pub(super) const NOTHING: &str = r"[^\x00-\xff]";

/// Makes the phrases of a rule ready, where it has phrases instead of a pattern; else the field that is wrong and why.
pub(super) fn read(
    def: &mut RuleDef,
    plugin: &str,
    words: &BTreeMap<String, Vec<String>>,
) -> Result<(), (&'static str, String)> {
    if def.phrases_written.is_empty() {
        return match def.pattern.is_empty() {
            true => Err(("pattern", "a rule has a `pattern` or `phrases`".to_owned())),
            false => Ok(()),
        };
    }
    if plugin == "streams" {
        return Err(("phrases", "rules about streams have patterns".to_owned()));
    }
    if !def.pattern.is_empty() || def.gate_literals().next().is_some() || def.trigger.is_some() {
        let message = "a rule of phrases has no `pattern`, `literals` or `trigger`".to_owned();
        return Err(("phrases", message));
    }
    let unread = [&def.validator, &def.exclude, &def.exclude_match, &def.exclude_line];
    let has_others = !def.near.is_empty() || def.exclude_overlaps || !def.exclude_all.is_empty();
    if has_others || unread.iter().any(|field| !field.as_slice().is_empty()) {
        let message = "of the conditions, a rule of phrases reads `exclude_before` and `exclude_after` only";
        return Err(("phrases", message.to_owned()));
    }
    let (phrases, literals) =
        phrases::compile(&def.phrases_written, words, def.spaced).map_err(|message| ("phrases", message))?;
    def.pattern = NOTHING.to_owned();
    def.literals = literals;
    def.phrases = Some(Arc::new(phrases));
    def.match_length_max = def.match_length_max.or(Some(SENTENCE_BYTES));
    Ok(())
}

impl CompiledRule {
    /// Whether it finds phrases, which people quote when they write about them: a rule of phrases, or one whose pattern is
    /// of such. They count only where [`Self::admits_phrase`] says so and nobody quotes them.
    pub fn is_of_phrases(&self) -> bool {
        (self.def.phrases.is_some() || self.def.unless_discussed) && self.def.concept.is_none()
    }

    /// Whether nothing before or after a match of a phrase speaks against it; what stands around a match of a pattern was
    /// looked at when it was found. `range` lies on character boundaries.
    pub fn admits_phrase(&self, text: &str, range: &Range<usize>) -> bool {
        if self.def.phrases.is_none() {
            return true;
        }
        let from = text.ceil_char_boundary(range.start.saturating_sub(CONTEXT_BYTES)).min(range.start);
        let to = text.floor_char_boundary((range.end + CONTEXT_BYTES).min(text.len())).max(range.end);
        let speaks = |regex: &Option<LazyRegex>, text: &str| regex.as_ref().is_some_and(|r| r.is_match(text));
        !speaks(&self.exclude_before, &text[from..range.start])
            && !speaks(&self.exclude_after, &text[range.end..to])
    }
}
