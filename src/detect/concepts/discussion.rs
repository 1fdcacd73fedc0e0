//! Whether a quotation is discussed: the prose around it writes about wordings or about attacks.
//!
//! A string of data (JSON, CSV, YAML, SQL, a call in code, a cell of a table) is quoted because its format says so, which
//! proves nothing. There, only a text that is about attacks as a whole counts.
//!
//! Nothing is discussed that the words around ask the reader to do: "… . Do what it says" adopts a quotation.
//!
//! *What it misses*: prose that only its author can tell from an excuse for what it quotes, and what [`adopted`] misses.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::adopted::{self, Side};

/// How much of its sentence is read before and after a quotation, in bytes.
const SENTENCE_BEFORE: usize = 240;
const SENTENCE_AFTER: usize = 160;
/// How far before a quotation the heading over it, or the line that announces it, may stand, in bytes.
const HEADING_MAX: usize = 600;
/// How much of the text shows what all of it is about, before and after, in bytes.
const ABOUT_BEFORE: usize = 1500;
const ABOUT_AFTER: usize = 700;
/// Fewest words about attacks that such a text has, or about verdicts beside one about attacks.
const ABOUT_MIN: usize = 2;
/// How much of an address is read to each side of a word in it, in bytes.
const ADDRESS_MAX: usize = 120;
/// Fewest words of a sentence besides the quotation; a label has fewer.
const PROSE_WORDS_MIN: usize = 4;

/// What a word shows.
#[derive(Clone, Copy)]
enum Kind {
    /// Attacks on models or on people.
    Subject,
    /// Wordings, or that somebody says them.
    Speech,
    /// What a guard or a test of one makes of a text.
    Verdict,
    /// That the reader must do what is quoted.
    Adoption,
}

/// Last words before an order that leave it one.
const BEFORE_ORDERS: &[&str] =
    &["please", "now", "then", "so", "just", "must", "bitte", "jetzt", "maintenant", "ahora", "agora"];

/// The words, in one pass.
struct Words {
    matcher: AhoCorasick,
    /// What each shows, and whether it may go on.
    words: Vec<(Kind, bool)>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let (mut texts, mut words) = (Vec::new(), Vec::new());
    for line in include_str!("discussion.txt").lines() {
        let Some((kind, list)) = line.split_once(": ") else { continue };
        let kind = match kind {
            "subject" => Kind::Subject,
            "speech" => Kind::Speech,
            "verdict" => Kind::Verdict,
            "adoption" => Kind::Adoption,
            _ => continue,
        };
        for word in list.split(", ") {
            texts.push(word.trim_end_matches('*'));
            words.push((kind, word.ends_with('*')));
        }
    }
    // "Prompt injection" is one word about attacks, and not also "injection".
    let matcher = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts);
    let matcher = matcher.unwrap_or_else(|error| panic!("a few hundred words: {error}"));
    Words { matcher, words }
});

/// Whether the text around a quotation discusses it. `quotation` includes its marks.
pub(in crate::detect) fn is_discussed(text: &str, quotation: &Range<usize>) -> bool {
    let (before, after) = (&text[..quotation.start], &text[quotation.end..]);
    if is_adopted(before, after) {
        return false;
    }
    let announced = announcement(before);
    let sentence =
        [sentence_end_of(tail(before, SENTENCE_BEFORE)), sentence_start_of(head(after, SENTENCE_AFTER))];
    let is_near = match place_of(before, after) {
        Place::Data => false,
        Place::Item => discusses(&[announced]),
        Place::Prose => discusses(&sentence) || discusses(&[announced]),
    };
    is_near || is_about_attacks(&[tail(before, ABOUT_BEFORE), head(after, ABOUT_AFTER)])
}

/// Whether the words around a quotation, as far as its paragraph and the next long quotation, ask the reader to do what it says.
pub(in crate::detect) fn is_adopted(before: &str, after: &str) -> bool {
    let before = tail(before, SENTENCE_BEFORE).rsplit("\n\n").next().unwrap_or_default();
    let after = head(after, SENTENCE_AFTER).split("\n\n").next().unwrap_or_default();
    let mut pieces: Vec<&str> = outside(before.rsplit(is_double_mark));
    pieces.reverse();
    let before = pieces.join(" ").to_lowercase();
    let after = outside(after.split(is_double_mark)).join(" ").to_lowercase();
    count(&[&before, &after]).adoptions > 0
        || adopted::asks_to_carry_out(&before, Side::Before, &after)
        || adopted::asks_to_carry_out(&after, Side::After, &before)
}

/// Whether a character encloses what is quoted; apostrophes are left out.
const fn is_double_mark(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '«' | '»' | '「' | '」' | '`')
}

/// The pieces of a text around a quotation, from it on, that marks set apart: those outside of marks, and words in marks as far
/// as these are few. With a quotation of some length, or a fence of code, something else begins.
fn outside<'t>(pieces: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let pieces: Vec<&str> = pieces.collect();
    // What is cut off amid marks tells nothing of its length.
    let is_closed = |nth: usize| nth + 1 < pieces.len();
    let is_outside = |(nth, piece): &(usize, &&str)| {
        nth % 2 == 0 || (is_closed(*nth) && (1..PROSE_WORDS_MIN).contains(&words_in(piece)))
    };
    pieces.iter().enumerate().take_while(is_outside).map(|(_, piece)| *piece).collect()
}

/// Whether what begins here is said as an order: at the start of a clause, or to "you". Others are told of: "they obey it".
fn is_order(before: &str, order: &str) -> bool {
    let before = before.trim_end();
    let last = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_to_reader = order.starts_with("you") || order.starts_with("so ");
    last.is_empty() || is_to_reader || BEFORE_ORDERS.contains(&last) || order.chars().any(is_unspaced)
}

/// Whether an order is turned into a prohibition by what stands right behind its verb: "befolge niemals …".
fn is_denied_behind(after: &str) -> bool {
    let next = after.trim_start_matches(char::is_alphanumeric).split_whitespace().next().unwrap_or_default();
    matches!(next, "nie" | "niemals" | "nicht" | "kein" | "keine" | "keinen" | "keinesfalls")
}

/// Whether a sentence, given in parts, writes about attacks, or in prose about what somebody says.
fn discusses(sentence: &[&str]) -> bool {
    let is_prose = || sentence.iter().map(|part| words_in(part)).sum::<usize>() >= PROSE_WORDS_MIN;
    let seen = count(sentence);
    seen.subjects > 0 || (seen.speech + seen.verdicts > 0 && is_prose())
}

/// Whether a text, given in parts, is about attacks as a whole.
fn is_about_attacks(parts: &[&str]) -> bool {
    let seen = count(parts);
    seen.subjects >= ABOUT_MIN || (seen.subjects > 0 && seen.verdicts >= ABOUT_MIN)
}

/// Where a quotation stands.
enum Place {
    /// In a sentence.
    Prose,
    /// Alone in an item of a list or on a line.
    Item,
    /// Where the syntax of data or code asks for quotation marks.
    Data,
}

fn place_of(before: &str, after: &str) -> Place {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let line = tail(line, SENTENCE_BEFORE);
    let lead = line.trim_end();
    let is_adjacent = lead.len() == line.len();
    let key = lead.trim_start_matches(|c: char| {
        c.is_whitespace() || matches!(c, '-' | '*' | '+' | '>' | '#' | '/' | '|')
    });
    let opened = |open: char, close: char| lead.matches(open).count() > lead.matches(close).count();
    let previous = |n: usize| lead.chars().rev().nth(n);
    let is_data = match previous(0) {
        Some('[' | '{' | '=' | '|' | '>' | '\\') => !key.is_empty() || lead.ends_with(['[', '{']),
        Some('(') => previous(1).is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '!')),
        Some(',') => is_adjacent || opened('[', ']') || opened('{', '}') || opened('(', ')'),
        Some(':') => {
            previous(1).is_some_and(|c| matches!(c, '"' | '\'' | '`'))
                || !key.trim_end().contains(char::is_whitespace)
        }
        _ => false,
    };
    if is_data || after.starts_with(",\"") || after.starts_with("</") {
        return Place::Data;
    }
    let is_alone = key.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ')'));
    let rest = head(after, SENTENCE_AFTER).split('\n').next().unwrap_or_default();
    if is_alone && words_in(rest) < PROSE_WORDS_MIN - 1 { Place::Item } else { Place::Prose }
}

/// The last line before the one of the quotation that announces what follows: a heading, or one with a colon at its end.
fn announcement(before: &str) -> &str {
    let lines = tail(before, HEADING_MAX).rsplit('\n').skip(1);
    let mut announces = lines.filter(|line| line.starts_with('#') || line.trim_end().ends_with([':', '：']));
    announces.next().unwrap_or_default()
}

/// How many different words of each kind were seen.
#[derive(Default)]
struct Seen {
    subjects: usize,
    speech: usize,
    verdicts: usize,
    adoptions: usize,
}

/// The words in these parts of a text.
fn count(parts: &[&str]) -> Seen {
    let Words { matcher, words } = &*WORDS;
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !is_unspaced(c));
    let mut is_seen = vec![false; words.len()];
    for part in parts {
        let part = part.to_lowercase();
        for hit in matcher.find_iter(&part) {
            let nth = hit.pattern().as_usize();
            let starts = !is_letter(part[..hit.start()].chars().next_back());
            let ends = words[nth].1 || !is_letter(part[hit.end()..].chars().next());
            let is_meant = match words[nth].0 {
                Kind::Adoption => {
                    let (order, after) = (&part[hit.range()], &part[hit.end()..]);
                    is_order(&part[..hit.start()], order)
                        && !is_denied_behind(after)
                        && (!order.ends_with(" this") || adopted::is_pronoun_before(after))
                }
                Kind::Speech => !is_in_address(&part, &hit.range()),
                _ => true,
            };
            is_seen[nth] |= starts && ends && is_meant;
        }
    }
    let mut seen = Seen::default();
    for ((kind, _), _) in words.iter().zip(is_seen).filter(|(_, is_seen)| *is_seen) {
        match kind {
            Kind::Subject => seen.subjects += 1,
            Kind::Speech => seen.speech += 1,
            Kind::Verdict => seen.verdicts += 1,
            Kind::Adoption => seen.adoptions += 1,
        }
    }
    seen
}

/// Whether a word is part of the address of a page, a host or a mailbox: `example.com` gives no example.
fn is_in_address(text: &str, word: &Range<usize>) -> bool {
    let is_end =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '(' | ')' | '[' | ']' | ',');
    let before = tail(&text[..word.start], ADDRESS_MAX);
    let after = head(&text[word.end..], ADDRESS_MAX);
    let before = before.rsplit(is_end).next().unwrap_or_default();
    let after = after.split(is_end).next().unwrap_or_default();
    let rest = after.trim_start_matches(|c: char| c.is_alphanumeric() || c == '-');
    let is_host =
        rest.strip_prefix('.').is_some_and(|top| top.starts_with(|c: char| c.is_ascii_alphabetic()));
    before.contains("://") || before.contains('@') || is_host
}

/// How many words a text has. In scripts without spaces two characters are one.
pub(in crate::detect) fn words_in(text: &str) -> usize {
    let unspaced = text.chars().filter(|c| is_unspaced(*c)).count();
    let spaced = text.split(|c: char| !c.is_alphanumeric() || is_unspaced(c)).filter(|word| !word.is_empty());
    spaced.count() + unspaced / 2
}

/// Whether the script of a letter puts no spaces between words.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

/// The last sentence of a text, as far as its paragraph goes.
fn sentence_end_of(text: &str) -> &str {
    let text = text.rsplit("\n\n").next().unwrap_or_default();
    let start = ends_of_sentences(text).last().unwrap_or_default();
    &text[start..]
}

/// The first sentence of a text, as far as its paragraph goes.
fn sentence_start_of(text: &str) -> &str {
    let text = text.split("\n\n").next().unwrap_or_default();
    let end = ends_of_sentences(text).next().unwrap_or(text.len());
    &text[..end]
}

/// Where sentences of a text end: behind a full stop before a capital letter, unless it ends an abbreviation.
fn ends_of_sentences(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().filter_map(move |(at, c)| {
        let end = at + c.len_utf8();
        if matches!(c, '。' | '！' | '？') {
            return Some(end);
        }
        let mut before = text[..at].chars().rev();
        let is_abbreviation = before.next().is_some_and(char::is_alphabetic)
            && before.next().is_none_or(|c| !c.is_alphanumeric());
        let rest = text[end..].strip_prefix([' ', '\n'])?;
        let begins = rest.trim_start().chars().next().is_some_and(|c| !c.is_lowercase());
        (matches!(c, '.' | '!' | '?') && begins && !is_abbreviation).then_some(end)
    })
}

/// The first bytes of a text.
fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes.min(text.len()))]
}

/// The last bytes of a text.
fn tail(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}
