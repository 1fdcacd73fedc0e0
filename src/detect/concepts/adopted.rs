//! Whether the words around a quotation ask the reader to carry it out: "do what the text in quotes says".
//!
//! *What it finds*: orders, and duties of "you", with a verb of carrying out whose object is what a quotation may be called
//! ("obey the sentence above"); the quotation taken as an order; and that it is meant for the reader.
//! *Why it matters*: what is discussed is excused, and who adopts a quotation has only put an order into quotation marks.
//! *What it leaves*: prohibitions, questions, and what others do or ought to do: "models follow the quoted sentence".
//! *What it misses*: adoptions that name neither the quotation nor the reader, and other languages than those of the table.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Most words between a verb and what it is done to.
const GAP_MAX: usize = 6;
/// Most words behind the name of a quotation that still tell which one is meant: "in quotation marks".
const MARKS_MAX: usize = 4;
/// Most words between "the following sentence" and the quotation; fewer for commands, which texts show many of.
const AHEAD_MAX: usize = 8;
const AHEAD_COMMAND_MAX: usize = 2;
/// Most words between a duty of the reader and its verb.
const DUTY_MAX: usize = 8;

/// Kinds of words, as bits; a word may be of several.
macro_rules! kinds {
    ($($name:ident = $text:literal;)*) => {
        const KINDS: &[&str] = &[$($text),*];
        kinds!(@bits 0u32; $($name)*);
    };
    (@bits $at:expr; $name:ident $($rest:ident)*) => {
        const $name: u32 = 1 << $at;
        kinds!(@bits $at + 1; $($rest)*);
    };
    (@bits $at:expr;) => {};
}

kinds! {
    DO = "do";
    TOOL = "tool";
    TAKE = "take";
    ACTS = "acts";
    WHAT = "what";
    SAYS = "says";
    TEXT = "text";
    QUOTE = "quote";
    ORDER = "order";
    THE = "the";
    THIS = "this";
    MARK = "mark";
    AHEAD = "ahead";
    BEHIND = "behind";
    LEAD = "lead";
    NO = "no";
    ASKS = "asks";
}

/// Whether what stands behind "follow this" leaves it a pronoun: "follow this guide" is about a guide.
pub(super) fn is_pronoun_before(after: &str) -> bool {
    let clause = words(after);
    let ends = !after.starts_with(' ') || after.trim_start().starts_with(|c: char| !c.is_alphanumeric());
    ends || clause.first().is_none_or(|word| {
        word.kinds & (LEAD | THE) != 0
            || matches!(word.text, "and" | "or" | "without" | "right" | "if" | "before" | "as" | "for")
    })
}

/// The table.
struct Table {
    kinds: HashMap<&'static str, u32>,
    /// What makes a verb behind it an order, and what says that a text is for the reader, by their first words.
    duties: HashMap<&'static str, Vec<Vec<&'static str>>>,
    meant: HashMap<&'static str, Vec<Vec<&'static str>>>,
    /// Those of scripts that put no spaces between words.
    unspaced: [Vec<&'static str>; 4],
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table {
        kinds: HashMap::new(),
        duties: HashMap::new(),
        meant: HashMap::new(),
        unspaced: [const { Vec::new() }; 4],
    };
    for line in include_str!("adopted.txt").lines().filter(|line| !line.starts_with('#')) {
        let Some((kind, list)) = line.split_once(": ") else { continue };
        let words = list.split(", ");
        let phrases = match kind {
            "you" => &mut table.duties,
            "meant" => &mut table.meant,
            _ => {
                if let Some(nth) = UNSPACED.iter().position(|name| *name == kind) {
                    table.unspaced[nth].extend(words);
                } else if let Some(nth) = KINDS.iter().position(|name| *name == kind) {
                    words.for_each(|word| *table.kinds.entry(word).or_default() |= 1 << nth);
                }
                continue;
            }
        };
        for phrase in words {
            let words: Vec<&str> = phrase.split(' ').collect();
            phrases.entry(words[0]).or_default().push(words);
        }
    }
    table
});

/// Kinds of phrases of scripts without spaces, in the order of [`Table::unspaced`].
const UNSPACED: [&str; 4] = ["unspaced-do", "unspaced-text", "unspaced-no", "unspaced-meant"];

/// A word of the text.
struct Word<'t> {
    text: &'t str,
    /// Where it begins, in bytes.
    at: usize,
    kinds: u32,
    /// Of which clause, counted from the start.
    clause: usize,
}

/// On which side of the quotation the words stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

/// Whether the words on one side of a quotation, in lower case, ask the reader to carry it out. `other` are those of the other
/// side, for what a sentence that encloses the quotation says.
pub(super) fn asks_to_carry_out(text: &str, side: Side, other: &str) -> bool {
    let words = words(text);
    let is_meant = (0..words.len()).any(|at| is_meant_for_reader(&words, at, text));
    is_meant
        || (0..words.len()).any(|at| {
            let word = &words[at];
            (word.kinds & DO != 0 && is_order(&words, at) && is_carried_out(&words, at, side, other))
                || (word.kinds & TAKE != 0 && is_order(&words, at) && is_taken(&words, at, side, other))
                || is_duty(&words, at, side, text, other)
        })
        || (side == Side::Before && is_your_order(&words))
        || unspaced_asks(text)
}

fn words(text: &str) -> Vec<Word<'_>> {
    let (mut out, mut clause, mut from) = (Vec::new(), 0, None);
    for (at, c) in text.char_indices().chain([(text.len(), '\0')]) {
        if c.is_alphanumeric() {
            from.get_or_insert(at);
            continue;
        }
        if let Some(from) = from.take() {
            let text = &text[from..at];
            out.push(Word {
                text,
                at: from,
                kinds: TABLE.kinds.get(text).copied().unwrap_or_default(),
                clause,
            });
        }
        let ends = matches!(c, '.' | '!' | '?' | ':' | ';' | ',' | '\n' | '(' | ')' | '—' | '–' | '…');
        clause += usize::from(ends);
    }
    out
}

/// Where the clause of a word begins.
fn clause_start(words: &[Word<'_>], at: usize) -> usize {
    words[..at].iter().rposition(|word| word.clause != words[at].clause).map_or(0, |before| before + 1)
}

/// Whether a verb is said as an order: at the start of its clause, or behind one with "and". Others are told of: "they obey it".
fn is_order(words: &[Word<'_>], at: usize) -> bool {
    let start = clause_start(words, at);
    let Some(last) = words[start..at].iter().rposition(|word| word.kinds & LEAD == 0) else {
        return !is_denied_behind(words, at);
    };
    let is_joined = matches!(words[start + last].text, "and" | "und" | "et" | "y" | "e" | "и");
    let head = words[start..].iter().find(|word| word.kinds & LEAD == 0);
    is_joined && head.is_some_and(|head| head.kinds & (ACTS | DO | TAKE) != 0 || last == 0)
}

/// Whether a word of denial stands right behind a verb: "befolge niemals", "n'exécute pas".
fn is_denied_behind(words: &[Word<'_>], at: usize) -> bool {
    same_clause(words, at + 1).take(2).any(|word| word.kinds & NO != 0)
}

/// The words from `from` on, as far as the clause of the one before goes.
fn same_clause<'w, 't>(words: &'w [Word<'t>], from: usize) -> impl Iterator<Item = &'w Word<'t>> {
    let clause = from.checked_sub(1).and_then(|before| words.get(before)).map(|word| word.clause);
    words.get(from..).unwrap_or_default().iter().take_while(move |word| Some(word.clause) == clause)
}

/// Whether what a verb of carrying out is done to is the quotation, or what it says.
fn is_carried_out(words: &[Word<'_>], verb: usize, side: Side, other: &str) -> bool {
    let verb_word = &words[verb];
    if says_what(words, verb, side, other) {
        return true;
    }
    // The quotation itself may be what it is done to: "please obey: …".
    let is_last = words[verb + 1..].iter().all(|word| word.kinds & LEAD != 0 || word.text == "out");
    if side == Side::Before && is_last && verb_word.kinds & TOOL == 0 && !is_plain_do(verb_word) {
        return true;
    }
    let Some(object) = object(words, verb + 1) else { return false };
    // "Do the order" is no order, and the verb for itself helps others in many languages.
    if is_plain_do(verb_word) {
        return false;
    }
    // One does things to many a text; what is done with it is said behind it.
    let is_handed_on = || {
        let behind: Vec<&Word<'_>> = same_clause(words, object + 1).take(GAP_MAX).collect();
        behind.iter().enumerate().any(|(nth, word)| {
            let next = behind.iter().skip(nth + 1).take(2);
            let mut is_mark = next.clone().map(|next| {
                next.kinds & (MARK | BEHIND | AHEAD) != 0 || matches!(next.text, "you" | "yourself" | "me")
            });
            match word.text {
                "through" | "against" | "past" | "durch" | "gegen" => true,
                "in" | "on" | "with" | "to" => next.len() > 0 && !is_mark.any(|is_mark| is_mark),
                _ => false,
            }
        })
    };
    (verb_word.kinds & TOOL == 0 || !is_handed_on()) && is_this_quotation(words, verb + 1, object, side)
}

/// Whether a verb says only that something is done.
fn is_plain_do(verb: &Word<'_>) -> bool {
    matches!(
        verb.text,
        "do" | "tu" | "tue" | "tun" | "mach" | "mache" | "machen" | "fais" | "faites" | "faire"
    ) || matches!(verb.text, "haz" | "haga" | "hacer" | "faz" | "faça" | "fazer" | "fai" | "faccia" | "fare")
}

/// Whether "what it says" stands behind a verb; the quotation may stand amid.
fn says_what(words: &[Word<'_>], verb: usize, side: Side, other: &str) -> bool {
    let clause = words[verb].clause;
    let mut behind: Vec<&Word<'_>> = same_clause(words, verb + 1).take(2 * GAP_MAX).collect();
    // Some languages set a comma before it.
    let next = words.get(verb + 1 + behind.len());
    if behind.len() <= 2 && next.is_some_and(|next| next.kinds & WHAT != 0 && next.clause == clause + 1) {
        behind.extend(words[verb + 1 + behind.len()..].iter().take_while(|word| word.clause == clause + 1));
    }
    // What is done comes first: "do a review as the text says" carries out something else.
    let is_gap = |word: &&&Word<'_>| word.kinds & WHAT == 0;
    let gap = behind.iter().take_while(is_gap).count();
    if gap > 2 || behind[..gap].iter().any(|word| word.kinds & (THE | LEAD | THIS) == 0) {
        return false;
    }
    let rest = behind.get(gap + 1..).unwrap_or_default();
    let end = rest.iter().take(GAP_MAX).position(|word| word.kinds & (SAYS | MARK | BEHIND) != 0);
    let names = |words: &[&Word<'_>]| {
        words.iter().any(|word| {
            word.kinds & (TEXT | QUOTE | MARK | THIS) != 0
                || matches!(
                    word.text,
                    "it" | "example" | "sample" | "attacker" | "beispiel" | "exemple" | "ejemplo"
                )
        })
    };
    match end {
        Some(end) => {
            let to = (end + 1 + MARKS_MAX).min(rest.len());
            names(&rest[..to]) && !rest[..end].iter().any(|word| word.kinds & NO != 0)
        }
        None => {
            let is_next = || self::words(other).first().is_some_and(|word| word.kinds & SAYS != 0);
            side == Side::Before
                && rest.len() <= GAP_MAX
                && names(rest)
                && is_at_end(words, rest)
                && is_next()
        }
    }
}

/// Whether these words are the last.
fn is_at_end(words: &[Word<'_>], last: &[&Word<'_>]) -> bool {
    words.last().zip(last.last()).is_some_and(|(end, last)| std::ptr::eq(end, *last))
}

/// Where the name of a quotation stands that a verb is done to, with articles and the like before it; what points at one may
/// stand for it ("obey the following").
fn object(words: &[Word<'_>], from: usize) -> Option<usize> {
    const BEFORE: u32 = THE | THIS | MARK | AHEAD | BEHIND;
    let clause = from.checked_sub(1).and_then(|before| words.get(before))?.clause;
    let mut pointer = None;
    for (nth, word) in words.get(from..)?.iter().enumerate().take(GAP_MAX + 1) {
        if word.clause != clause {
            break;
        }
        if word.kinds & (TEXT | QUOTE) != 0 {
            // Of "the quoted order" and "the text message" the last word is the name.
            let more = words[from + nth + 1..].iter().take_while(|word| word.clause == clause);
            return Some(from + nth + more.take_while(|word| word.kinds & (TEXT | QUOTE) != 0).count());
        }
        if word.kinds & BEFORE == 0 {
            break;
        }
        pointer = (word.kinds & (AHEAD | BEHIND) != 0).then_some(from + nth);
    }
    pointer
}

/// Whether the name of a quotation means this one.
fn is_this_quotation(words: &[Word<'_>], from: usize, object: usize, side: Side) -> bool {
    let before = &words[from..=object];
    let has = |kind: u32| {
        before.iter().any(|word| word.kinds & kind != 0)
            || same_clause(words, object + 1).take(MARKS_MAX).any(|word| word.kinds & kind != 0)
    };
    if words[object].kinds & QUOTE != 0 || has(MARK) {
        return true;
    }
    let is_command = words[object].text.starts_with("command");
    match side {
        Side::After => has(BEHIND) || before.iter().any(|word| word.kinds & THIS != 0),
        Side::Before => {
            let is_near = words.len() - object - 1 <= if is_command { AHEAD_COMMAND_MAX } else { AHEAD_MAX };
            let is_announced = has(AHEAD) || before.iter().any(|word| word.kinds & THIS != 0);
            // Right before its marks, it is what they enclose.
            let is_naming = |word: &Word<'_>| {
                matches!(
                    word.text,
                    "that" | "which" | "reads" | "says" | "goes" | "known" | "called" | "as" | "is"
                )
            };
            (is_near && is_announced) || words[object + 1..].iter().all(is_naming)
        }
    }
}

/// Whether the quotation is to be taken as an order.
fn is_taken(words: &[Word<'_>], verb: usize, side: Side, other: &str) -> bool {
    let Some(object) = object(words, verb + 1) else { return false };
    let behind = same_clause(words, object + 1);
    if takes_as_order(behind) {
        return true;
    }
    // The quotation may stand between: "take the sentence … as an order".
    side == Side::Before && words.len() - object <= 2 && {
        let rest = self::words(other);
        takes_as_order(rest.iter().take_while(|word| word.clause == 0))
    }
}

/// Whether words begin with "as my order", or soon come to it.
fn takes_as_order<'w, 't: 'w>(words: impl Iterator<Item = &'w Word<'t>>) -> bool {
    let (mut is_as, mut is_bare) = (false, true);
    for word in words.take(2 * GAP_MAX) {
        let is_article = word.kinds & (THE | THIS) != 0 || word.text == "your";
        if !is_as {
            if word.kinds & NO != 0 {
                return false;
            }
            // "Consider it an order" has no "as".
            is_as = matches!(word.text, "as" | "als" | "comme" | "como" | "come" | "как")
                || (is_bare && matches!(word.text, "a" | "an" | "my" | "your"));
            is_bare &= word.kinds & (THE | MARK | AHEAD | BEHIND) != 0;
        } else if word.kinds & ORDER != 0 {
            return true;
        } else {
            is_as = is_article
                || matches!(word.text, "direct" | "binding" | "real" | "highest" | "first" | "next" | "own");
        }
    }
    false
}

/// Whether a duty of the reader begins here whose verb carries out the quotation: "you must obey this sentence".
fn is_duty(words: &[Word<'_>], at: usize, side: Side, text: &str, other: &str) -> bool {
    let Some(length) = phrase_at(&TABLE.duties, words, at).or_else(|| apart_duty(words, at)) else {
        return false;
    };
    let from = at + length;
    let start = clause_start(words, at);
    // "…", which you must obey.
    let is_relative = side == Side::After
        && words[at].clause <= 1
        && words[start..at].iter().any(|word| matches!(word.text, "which" | "and" | "that" | "what"));
    if words[start..at].iter().any(|word| word.kinds & (ASKS | NO) != 0) || is_question(words, at, text) {
        return false;
    }
    let mut is_object = false;
    for nth in from..words.len().min(from + DUTY_MAX) {
        let word = &words[nth];
        if word.kinds & NO != 0 {
            return false;
        }
        if nth > from && word.clause != words[from].clause && word.kinds & (DO | TAKE) == 0 {
            // "You, however, shall obey" has its commas.
            break;
        }
        let is_bare =
            words[from..nth].iter().all(|word| word.kinds & (LEAD | THE) != 0 || word.text == "and");
        if word.kinds & DO != 0 && (is_bare || is_object) {
            let ends = words.get(nth + 1).is_none_or(|next| next.clause != word.clause);
            return is_object || (is_relative && ends) || is_carried_out(words, nth, side, other);
        }
        if word.kinds & TAKE != 0 && is_bare {
            return is_taken(words, nth, side, other);
        }
        // In German the verb ends the sentence.
        is_object |= nth == from
            && object(words, from).is_some_and(|object| is_this_quotation(words, from, object, side));
    }
    false
}

/// The length of "you, however, must", of which words in commas stand amid.
fn apart_duty(words: &[Word<'_>], at: usize) -> Option<usize> {
    const INSERTED_MAX: usize = 5;
    let is_apart = words[at].text == "you" && words.get(at + 1)?.clause == words[at].clause + 1;
    let rest = words.get(at + 2..).filter(|_| is_apart)?;
    let is_duty = |word: &Word<'_>| matches!(word.text, "must" | "shall" | "should" | "will");
    let nth = rest.iter().take(INSERTED_MAX).position(is_duty)?;
    (rest[nth].clause == words[at].clause + 2).then_some(nth + 3)
}

/// The words of a phrase that begins here, as a number.
fn phrase_at(
    phrases: &HashMap<&'static str, Vec<Vec<&'static str>>>,
    words: &[Word<'_>],
    at: usize,
) -> Option<usize> {
    let phrases = phrases.get(words[at].text)?;
    let is_here = |phrase: &&Vec<&str>| {
        let found = words[at..].iter().map(|word| word.text);
        found.clone().count() >= phrase.len()
            && found.zip(phrase.iter()).all(|(word, wanted)| word == *wanted)
    };
    phrases.iter().filter(is_here).map(Vec::len).max()
}

/// Whether it is said from here on that the text is for the reader.
fn is_meant_for_reader(words: &[Word<'_>], at: usize, text: &str) -> bool {
    let Some(length) = phrase_at(&TABLE.meant, words, at) else { return false };
    let start = clause_start(words, at);
    let is_denied = |words: &[Word<'_>]| words.iter().any(|word| word.kinds & (NO | ASKS) != 0);
    // "Is for you" goes on with many things.
    let ends = words.get(at + length).is_none_or(|next| next.clause != words[at + length - 1].clause)
        || !matches!(words[at + length - 1].text, "you" | "te" | "toi")
        || words[at + length].kinds & LEAD != 0
        || words[at + length].text == "and";
    ends && !is_denied(&words[start..at + length]) && !is_question(words, at, text)
}

/// Whether the sentence of a word is a question, by its first word and its mark.
fn is_question(words: &[Word<'_>], at: usize, text: &str) -> bool {
    let is_end = |c: char| matches!(c, '.' | '!' | '?' | '\n');
    let here = words[at].at;
    let start = text[..here].rfind(is_end).map_or(0, |at| at + 1);
    let first = words.iter().find(|word| word.at >= start);
    let asks = |word: &Word<'_>| {
        matches!(
            word.text,
            "should"
                | "do"
                | "does"
                | "did"
                | "is"
                | "are"
                | "would"
                | "must"
                | "shall"
                | "may"
                | "what"
                | "why"
                | "how"
                | "when"
                | "which"
                | "who"
                | "soll"
                | "sollte"
                | "muss"
                | "ist"
                | "gilt"
                | "warum"
                | "wie"
                | "est"
                | "dois"
                | "pourquoi"
                | "es"
                | "por"
                | "è"
        )
    };
    first.is_some_and(asks) && !text[here..].trim_start_matches(|c| !is_end(c)).starts_with(['.', '!'])
}

/// Whether the words before a quotation end by naming it the order of the reader: "your new instruction is the sentence".
fn is_your_order(words: &[Word<'_>]) -> bool {
    let Some(your) = words.iter().rposition(|word| matches!(word.text, "your" | "deine" | "dein")) else {
        return false;
    };
    let mut rest = words[your + 1..].iter().skip_while(|word| {
        matches!(
            word.text,
            "new" | "only" | "real" | "actual" | "next" | "current" | "true" | "neue" | "neuer"
        )
    });
    let is_named = rest.next().is_some_and(|word| word.kinds & ORDER != 0);
    let is_said = |word: &Word<'_>| {
        matches!(word.text, "is" | "are" | "reads" | "now" | "as" | "follows" | "ist" | "lautet" | "jetzt")
            || word.kinds & (THE | THIS | MARK | AHEAD | TEXT | QUOTE) != 0
    };
    let start = clause_start(words, your);
    // "Your task is to …" names no order; what is behind "is" must be the quotation itself.
    let rest: Vec<&Word<'_>> = rest.collect();
    is_named
        && words[start..your]
            .iter()
            .all(|word| word.kinds & LEAD != 0 || matches!(word.text, "and" | "from" | "on"))
        && rest
            .first()
            .is_some_and(|word| matches!(word.text, "is" | "are" | "reads" | "now" | "ist" | "lautet"))
        && rest.iter().all(|word| is_said(word) && word.text != "to")
}

/// The same of scripts without spaces: a verb and a name in one clause that denies and asks nothing.
fn unspaced_asks(text: &str) -> bool {
    if !text.chars().any(super::discussion::is_unspaced) {
        return false;
    }
    let [verbs, names, denials, meant] = &TABLE.unspaced;
    let has = |clause: &str, words: &[&str]| words.iter().any(|word| clause.contains(word));
    text.split(['。', '！', '？', '，', '；', '：', '.', '!', '?', ',', ':', '\n']).any(|clause| {
        !has(clause, denials) && ((has(clause, verbs) && has(clause, names)) || has(clause, meant))
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::super::is_adopted;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Cases {
        adopted: Vec<String>,
        left: Vec<String>,
    }

    #[test]
    fn quotations_that_the_reader_is_to_carry_out_are_told_from_all_others() {
        let cases = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/discussion/adopted.toml"));
        let cases: Cases = toml::from_str(cases).expect("a file of cases");
        assert!(cases.adopted.len() >= 60 && cases.left.len() >= 80);
        let told = |text: &&String| {
            let (before, after) = text.split_once("{quote}").expect("a quotation");
            is_adopted(before, after)
        };
        let missed: Vec<_> = cases.adopted.iter().filter(|text| !told(text)).collect();
        let wrong: Vec<_> = cases.left.iter().filter(told).collect();
        assert!(missed.is_empty() && wrong.is_empty(), "missed {missed:#?}, wrong {wrong:#?}");
    }
}
