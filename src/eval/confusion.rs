//! What was judged wrongly, one line a record: missed, or falsely flagged, and why.
//!
//! A line never shows what is secret: labelled spans and spans of findings of credentials and personal data are replaced
//! by their type, and of the rest only the beginning is told.

use std::ops::Range;

use serde_json::{Value, json};

use super::Outcome;
use super::grade::{is_within, overlaps};
use super::judge::{Found, Judged};
use super::record::Record;
use crate::decision::Decision;
use crate::detect::{PII, SECRETS};

/// Most characters of a text that a line shows.
const TEXT_MAX: usize = 96;

/// Which mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Flagged and harmless.
    FalsePositive,
    /// Not found and an attack, a credential or a personal datum.
    FalseNegative,
}

impl Mistake {
    /// `fp` or `fn`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FalsePositive => "fp",
            Self::FalseNegative => "fn",
        }
    }
}

/// One record that was judged wrongly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confused {
    /// How.
    pub mistake: Mistake,
    /// What it is about.
    pub kind: &'static str,
    /// Id of the record.
    pub id: String,
    /// Where it comes from.
    pub source: String,
    /// Its tier.
    pub tier: String,
    /// The decision.
    pub decision: Decision,
    /// Why it was flagged, or what was there instead of what should have been found.
    pub reason: String,
    /// The beginning of its text on one line, masked.
    pub text: String,
}

impl Confused {
    /// The mistake in an outcome; `None` where it is right or graded by nobody.
    pub fn of(outcome: &Outcome<'_>) -> Option<Self> {
        let Outcome { record, judged, source, is_flagged, .. } = outcome;
        let mistake = match (record.is_graded, record.is_positive, is_flagged) {
            (true, false, true) => Mistake::FalsePositive,
            (true, true, false) => Mistake::FalseNegative,
            _ => return None,
        };
        Some(Self {
            mistake,
            kind: record.kind.as_str(),
            id: record.id.clone(),
            source: (*source).to_owned(),
            tier: record.tier.clone(),
            decision: judged.decision,
            reason: match mistake {
                Mistake::FalsePositive => why_flagged(record, judged),
                Mistake::FalseNegative => why_missed(record, judged),
            },
            text: shown(record, judged),
        })
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "mistake": self.mistake.as_str(),
            "kind": self.kind,
            "id": self.id,
            "source": self.source,
            "tier": self.tier,
            "decision": self.decision.as_str(),
            "reason": self.reason,
            "text": self.text,
        })
    }

    /// As one line for a person.
    pub fn line(&self) -> String {
        let Self { mistake, id, source, tier, decision, reason, text, .. } = self;
        format!("{} {id}  {source}/{tier}  {decision}  {reason}  | {text}", mistake.as_str())
    }
}

/// The strongest of the findings that count for a record of this kind.
fn strongest<'j>(record: &Record, judged: &'j Judged) -> Option<&'j Found> {
    let of_kind =
        |found: &&Found| record.kind.family().is_none_or(|family| is_within(&found.category, family));
    judged.findings.iter().filter(of_kind).max_by(|a, b| a.score.total_cmp(&b.score))
}

fn told(found: &Found) -> String {
    format!("{} ({}, {}, score {:.2})", found.rule_id, found.category, found.severity, found.score)
}

fn not_judged(judged: &Judged) -> Option<String> {
    judged.unjudged.first().map(|one| format!("unjudged by {}: {}", one.plugin, one.reason))
}

fn why_flagged(record: &Record, judged: &Judged) -> String {
    if record.transcript.is_some() {
        let first = judged.incidents.first();
        return first.map_or_else(String::new, |seen| {
            format!("incident of {} at byte {}, verdict {}", seen.rule_id, seen.offset, seen.verdict)
        });
    }
    let found = strongest(record, judged).map(told);
    found.or_else(|| not_judged(judged)).unwrap_or_else(|| "the decision alone".to_owned())
}

fn why_missed(record: &Record, judged: &Judged) -> String {
    if record.transcript.is_some() {
        return match judged.incidents.first() {
            Some(seen) => format!("no alarm in the attack; {} at byte {}", seen.rule_id, seen.offset),
            None => "no incident".to_owned(),
        };
    }
    let strongest = strongest(record, judged);
    if record.kind.family().is_some() {
        return match strongest {
            Some(found) => format!("no finding on the labelled span; elsewhere {}", told(found)),
            None => "no finding".to_owned(),
        };
    }
    match (strongest, not_judged(judged)) {
        (Some(found), _) => format!("not enough to block: {}", told(found)),
        (None, Some(not_judged)) => not_judged,
        (None, None) => "no finding".to_owned(),
    }
}

/// The beginning of a text on one line, without what is secret in it.
fn shown(record: &Record, judged: &Judged) -> String {
    let text = &record.text;
    let labelled = record.spans.iter().map(|span| (span.range.clone(), span.kind.to_ascii_lowercase()));
    // Offsets of tool calls and bundles count in another string.
    let is_masked = |found: &&Found| {
        found.path == "/text" && (is_within(&found.category, SECRETS) || is_within(&found.category, PII))
    };
    let free = |found: &&Found| !record.spans.iter().any(|span| overlaps(found, span));
    let found = judged.findings.iter().filter(is_masked).filter(free);
    let found = found.map(|found| {
        (found.start..found.end, found.category.rsplit('.').next().unwrap_or_default().to_owned())
    });
    let mut masks: Vec<(Range<usize>, String)> = labelled.chain(found).collect();
    masks.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut out, mut at) = (String::new(), 0);
    for (range, name) in masks {
        if range.start >= at {
            out.push_str(text.get(at..range.start).unwrap_or_default());
            out.push_str(&format!("[{name}]"));
        }
        at = at.max(range.end);
    }
    out.push_str(text.get(at..).unwrap_or_default());
    one_line(&out)
}

/// White space as one space, what cannot be shown as escapes, and no more than [`TEXT_MAX`] characters.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for (nth, word) in text.split_whitespace().enumerate() {
        if nth > 0 {
            line.push(' ');
        }
        // A word may be a megabyte.
        for c in word.chars().take(TEXT_MAX + 1) {
            if is_shown(c) {
                line.push(c);
            } else {
                line.extend(c.escape_unicode());
            }
        }
        if line.chars().count() > TEXT_MAX {
            let end = line.char_indices().nth(TEXT_MAX).map_or(line.len(), |(at, _)| at);
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line
}

/// Whether a character can be printed as it is: no control character, and none that hides or turns what stands beside it.
fn is_shown(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_one_short_line() {
        assert_eq!(one_line("a\n\tb  \"c\""), "a b \"c\"");
        assert_eq!(one_line("x\u{1b}[31m\u{202e}y"), "x\\u{1b}[31m\\u{202e}y");
        assert_eq!(one_line("नियम\u{200b}"), "नियम\\u{200b}");
        let long = one_line(&"wort ".repeat(100));
        assert_eq!((long.chars().count(), long.ends_with('…')), (TEXT_MAX + 1, true));
        assert_eq!(one_line(&"é".repeat(5000)).chars().count(), TEXT_MAX + 1);
    }
}
