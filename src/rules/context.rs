//! The words that rules ask for near a match, and whether the head of a column holds one.
//!
//! It may say yes where no rule would: what it is asked for is only whether a look at the column is worth it.

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::compile::CompiledRule;
use super::schema::RuleDef;
use super::{INJECTION, PII, STREAMS};

/// Shortest part of a rule's gate that says by itself what something is.
const LITERAL_LETTERS_MIN: usize = 3;

/// Whether a rule finds something by words beside it, which the head of a column may be: context words, or the literals of rules
/// about people, most of which are names of what is looked for.
pub(super) fn reads_columns(plugin: &str, def: &RuleDef) -> bool {
    let is_named = plugin == PII && def.gate_literals().next().is_some();
    !matches!(plugin, INJECTION | STREAMS) && (!def.near.is_empty() || is_named)
}

/// Context words of all rules but those that read what is said.
#[derive(Debug)]
pub(super) struct ContextWords {
    words: Option<AhoCorasick>,
    /// Bits of the plugins whose rules have any.
    pub plugins: u32,
}

impl ContextWords {
    pub(super) fn of(rules: &[CompiledRule]) -> Self {
        let (mut words, mut plugins) = (Vec::new(), 0);
        for rule in rules.iter().filter(|rule| rule.reads_columns) {
            let def = &rule.def;
            let is_named = *rule.info.plugin == *PII;
            plugins |= rule.plugin_bit;
            let whole = def.near.iter().chain(def.literal_words.iter().filter(|_| is_named));
            words
                .extend(whole.flat_map(|word| written(word, !def.near_inside_words, !def.near_inside_words)));
            let named = def.literals.iter().filter(|literal| is_named && is_name(literal));
            words.extend(named.flat_map(|word| written(word, true, false)));
        }
        words.sort_unstable();
        words.dedup();
        let kind = Some(AhoCorasickKind::ContiguousNFA);
        let words = if words.is_empty() { None } else { AhoCorasick::builder().kind(kind).build(words).ok() };
        Self { words, plugins }
    }

    /// Whether a text may hold one.
    pub(super) fn are_in(&self, text: &str) -> bool {
        self.words.as_ref().is_some_and(|words| words.is_match(&format!(" {} ", plain(text))))
    }
}

/// Whether a literal is made of letters, but for what stands around and between them.
fn is_name(literal: &str) -> bool {
    let letters = literal.chars().filter(|c| c.is_alphabetic()).count();
    letters >= LITERAL_LETTERS_MIN && !literal.bytes().any(|byte| byte.is_ascii_digit())
}

/// How a word may stand among others: with blanks between its parts, or without.
fn written(word: &str, begins: bool, ends: bool) -> Vec<String> {
    let spaced = plain(word);
    let mut ways = vec![spaced.replace(' ', "")];
    if spaced.contains(' ') {
        ways.push(spaced);
    }
    let is_bound = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    ways.retain(|way| !way.is_empty());
    for way in &mut ways {
        if begins && is_bound(way.chars().next()) {
            way.insert(0, ' ');
        }
        if ends && is_bound(way.chars().next_back()) {
            way.push(' ');
        }
    }
    ways
}

/// A text in lower case with one blank between its words: names in camel case are several.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut was_small = false;
    for c in text.chars() {
        let is_letter = c.is_ascii_alphanumeric() || !c.is_ascii();
        let begins = !is_letter || was_small && c.is_ascii_uppercase();
        if begins && !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
        if is_letter {
            out.extend(c.to_lowercase());
        }
        was_small = c.is_ascii_lowercase();
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_known_however_a_head_writes_them() {
        let words: Vec<String> = [
            written("badge number", true, true),
            written("паспорт", true, true),
            written("gebor", true, false),
        ]
        .concat();
        let context = ContextWords { words: AhoCorasick::new(words).ok(), plugins: 0 };
        for (head, wanted) in [
            ("Badge number", true),
            ("BADGE_NUMBER", true),
            ("badge-number (old)", true),
            ("userBadgeNumberText", true),
            ("badgenumber", true),
            ("Номер паспорта", true),
            ("Geboren am", true),
            ("Badge numbers", false),
            ("badge", false),
            ("lodgebadge number", false),
            ("", false),
        ] {
            assert_eq!(context.are_in(head), wanted, "{head}");
        }
    }
}
