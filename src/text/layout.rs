//! Words that layout sets apart: white space other than one blank, line breaks with what leads the lines of comments and
//! quotations, tags and emphasis, one same sign between all words, or capitals only.
//!
//! Ordinary text is full of such gaps, so the view holds only the stretches in which they matter: where several follow
//! closely on each other amid words that phrases are made of, and around places that the caller names. What lies
//! between stretches is left out.

use super::flow;
use super::layer::{Layer, Layers};
use super::rewrite::Rewriter;
use super::stretches;
use super::view::View;
use super::words::{
    BLANK, BREAK, EMPHASIS, LEAD, LOW_LINE, MARK, OTHER, Signs, TAG, TAG_MAX, WHITE, Words, kind, tag_end,
};
use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::ops::Range;

/// Fewest gaps of a stretch.
const GAPS_MIN: usize = 3;
/// Fewest words of a stretch that phrases are made of.
const KNOWN_MIN: usize = 3;
/// Most usual gaps between two unusual ones of a stretch.
const USUAL_MAX: usize = 2;
/// Longest gap, in bytes: a tag with attributes.
const GAP_MAX: usize = TAG_MAX;
/// How far around a place that the caller names gaps are undone, in bytes.
const REACH: usize = 160;
/// Text around a stretch that is kept, in bytes, so that what speaks against a phrase is seen.
const CONTEXT: usize = 200;
/// How much further the edge of a stretch may move to lie at white space, in bytes.
const EDGE_MAX: usize = 64;
/// Shortest word that is looked at for capitals amid it, in bytes.
const CAPITALS_MIN: usize = 12;
/// Length from which words with capitals amid them are done with at the next one, in bytes.
const CAPITALS_MAX: usize = 400;
/// Shortest word of another script that counts as one of a phrase, in bytes.
const OTHER_WORD_MIN: usize = 8;

/// A text with its layout undone.
pub struct Undone<'t> {
    /// The stretches in which it was, with text around them.
    pub view: View<'t>,
    /// Where these stand in the text as sent, in order.
    pub stretches: Vec<Range<usize>>,
}

/// The stretches of a text in which words are set apart by layout, with one blank instead; none if there are none. `signs`
/// are places, in order, around which each such gap counts; elsewhere only where three of them and three words that
/// `is_known` come together.
pub fn layout<'t>(
    parent: &View<'t>,
    signs: &[Range<usize>],
    is_known: impl Fn(&[u8]) -> bool,
) -> Option<Undone<'t>> {
    let text = parent.text();
    let mut found = Found { text, is_known, edits: Vec::new(), stretches: Vec::new(), gap: String::new() };
    found.dense();
    found.around(signs);
    if found.edits.is_empty() {
        return None;
    }
    let Found { mut edits, mut stretches, .. } = found;
    // Where two kinds of stretches name the same gap, a blank goes before nothing.
    edits.sort_unstable_by_key(|edit| (edit.range.start, edit.range.end, Reverse(edit.with.len())));
    stretches.sort_unstable_by_key(|stretch| (stretch.start, stretch.end));
    let view = write(parent, &edits, &stretches);
    let stretches = stretches::sent(parent, stretches);
    Some(Undone { view, stretches })
}

/// What is put in place of a gap.
struct Edit {
    range: Range<usize>,
    with: Cow<'static, str>,
}

/// What a gap between two words is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gap {
    /// As in ordinary prose.
    Usual,
    /// The end of a line that goes on, which whoever reads phrases reads on over.
    Wrapped,
    /// Layout.
    Unusual,
    /// Signs that no phrase goes on over.
    Stop,
}

struct Found<'t, F> {
    text: &'t str,
    is_known: F,
    edits: Vec<Edit>,
    stretches: Vec<Range<usize>>,
    /// What the last gap that was read should be.
    gap: String,
}

/// Unusual gaps that follow closely on each other.
#[derive(Default)]
struct Loose {
    start: usize,
    /// Where the last word begins.
    last: usize,
    gaps: usize,
    usual: usize,
    /// Whether one of the gaps is more than the end of a line.
    is_odd: bool,
}

/// One same sign between words.
#[derive(Default)]
struct Strict {
    start: usize,
    /// Where the last word begins.
    last: usize,
    /// Where it is first written.
    sign: Range<usize>,
    signs: Signs,
    gaps: usize,
}

/// Words of one stretch without white space, some of which are made of words that begin with capitals.
#[derive(Default)]
struct Capitals {
    start: usize,
    /// Where the last word begins.
    last: usize,
    /// How many places begin a word amid one.
    begins: usize,
    /// Where the last word ends whose places were counted.
    counted: usize,
}

impl Capitals {
    /// Takes the capital at `at`, which follows a small letter in the word that begins at `start`.
    fn take(&mut self, bytes: &[u8], at: usize, start: usize, words: &mut Words<'_>) {
        if at < self.counted {
            return;
        }
        let word = start..words.end_of_word(start);
        self.counted = word.end;
        if word.len() < CAPITALS_MIN && self.begins == 0 {
            return;
        }
        if self.begins == 0 {
            self.start = word.start;
        }
        self.last = word.start;
        self.begins += begins(bytes, word).count();
    }
}

impl<F: Fn(&[u8]) -> bool> Found<'_, F> {
    /// Looks for stretches in which unusual gaps follow closely on each other. Words with one blank between them are passed over,
    /// and where a word ends is asked only of those at which a stretch does.
    fn dense(&mut self) {
        let text = self.text;
        let bytes = text.as_bytes();
        let (mut loose, mut strict) = (Loose::default(), Strict::default());
        let mut capitals = Capitals::default();
        let mut words = Words::new(text, 0..text.len());
        // Where the word begins that is next.
        let mut here = 0;
        while let Some(odd) = words.next_odd() {
            if odd.plain > 0 {
                here = odd.last_plain + 1;
                self.end_capitals(&mut capitals, &mut words);
                self.end_strict(&mut strict, &mut words);
                self.take_usual(&mut loose, odd.plain, &mut words);
            }
            if odd.is_capital {
                capitals.take(bytes, odd.at, here, &mut words);
                continue;
            }
            let Some(signs) = words.pass_gap() else { break };
            let last = std::mem::replace(&mut here, words.at());
            let range = odd.at..here;
            let gap = &bytes[range.clone()];
            if capitals.begins > 0 {
                if odd.at - capitals.start > CAPITALS_MAX || is_parted(gap) {
                    self.end_capitals(&mut capitals, &mut words);
                } else {
                    capitals.last = here;
                }
            }
            if odd.at > 0 && gap.len() <= GAP_MAX {
                let sign = &bytes[strict.sign.clone()];
                let has_sign = strict.gaps > 0
                    && may_hold(gap, sign)
                    && signs.is_same_but(MARK, strict.signs)
                    && sign_in(gap, sign).is_some();
                if !has_sign {
                    self.end_strict(&mut strict, &mut words);
                    strict = Strict { start: last, last: here, sign: range, signs, gaps: 0 };
                }
                strict.gaps += 1;
                strict.last = here;
            } else {
                self.end_strict(&mut strict, &mut words);
            }
            match kind_of(gap, signs, &mut self.gap) {
                Gap::Usual => self.take_usual(&mut loose, 1, &mut words),
                gap @ (Gap::Wrapped | Gap::Unusual) => {
                    if loose.gaps == 0 {
                        loose.start = last;
                        loose.is_odd = false;
                    }
                    loose.is_odd |= gap == Gap::Unusual;
                    loose.gaps += 1;
                    loose.usual = 0;
                    loose.last = here;
                }
                Gap::Stop => self.end_loose(&mut loose, &mut words),
            }
        }
        self.end_capitals(&mut capitals, &mut words);
        self.end_strict(&mut strict, &mut words);
        self.end_loose(&mut loose, &mut words);
    }

    /// Takes so many more gaps as in ordinary prose.
    #[inline]
    fn take_usual(&mut self, loose: &mut Loose, gaps: usize, words: &mut Words<'_>) {
        loose.usual += gaps;
        if loose.usual > USUAL_MAX {
            self.end_loose(loose, words);
        }
    }

    /// Nearly always there is nothing to undo, so the ends only tell whether there is.
    #[inline]
    fn end_loose(&mut self, loose: &mut Loose, words: &mut Words<'_>) {
        if loose.gaps >= GAPS_MIN && loose.is_odd {
            self.undo_loose(loose.start..words.end_of_word(loose.last));
        }
        loose.gaps = 0;
    }

    #[inline(never)]
    fn undo_loose(&mut self, range: Range<usize>) {
        if self.has_known_words(range.clone()) {
            self.undo_gaps(range);
        }
    }

    #[inline]
    fn end_strict(&mut self, strict: &mut Strict, words: &mut Words<'_>) {
        if strict.gaps >= GAPS_MIN {
            self.undo_strict(strict.start..words.end_of_word(strict.last), strict.sign.clone());
        }
        strict.gaps = 0;
    }

    #[inline(never)]
    fn undo_strict(&mut self, range: Range<usize>, sign: Range<usize>) {
        if !self.has_known_words(range.clone()) {
            return;
        }
        let bytes = self.text.as_bytes();
        let sign = &bytes[sign];
        let mut last = range.start;
        for word in Words::new(self.text, range.clone()) {
            if let Some(at) = sign_in(&bytes[last..word.start], sign) {
                let range = last + at..last + at + sign.len();
                self.edits.push(Edit { range, with: " ".into() });
            }
            last = word.end;
        }
        self.stretches.push(range);
    }

    #[inline]
    fn end_capitals(&mut self, capitals: &mut Capitals, words: &mut Words<'_>) {
        if capitals.begins >= GAPS_MIN {
            self.undo_capitals(capitals.start..words.end_of_word(capitals.last));
        }
        capitals.begins = 0;
    }

    /// Sets the words apart of which each begins with a capital.
    #[inline(never)]
    fn undo_capitals(&mut self, range: Range<usize>) {
        let bytes = self.text.as_bytes();
        let (mut edits, mut known, mut last) = (Vec::new(), 0, range.start);
        for word in Words::new(self.text, range.clone()) {
            if word.start > last && is_punctuation(&bytes[last..word.start]) {
                edits.push(Edit {
                    range: last..word.start,
                    with: format!("{} ", &self.text[last..word.start]).into(),
                });
            }
            last = word.end;
            let mut from = word.start;
            for at in begins(bytes, word.clone()).chain([word.end]) {
                known += usize::from(self.is_known_word(from..at));
                from = at;
                if at < word.end {
                    edits
                        .push(Edit { range: at..at + 1, with: format!(" {}", char::from(bytes[at])).into() });
                }
            }
        }
        if known >= KNOWN_MIN {
            self.edits.append(&mut edits);
            self.stretches.push(range);
        }
    }

    fn is_known_word(&self, word: Range<usize>) -> bool {
        let word = &self.text.as_bytes()[word];
        match word.first().is_some_and(u8::is_ascii) {
            true => (self.is_known)(word),
            false => word.len() >= OTHER_WORD_MIN,
        }
    }

    fn has_known_words(&self, range: Range<usize>) -> bool {
        let known = Words::new(self.text, range).filter(|word| self.is_known_word(word.clone()));
        known.take(KNOWN_MIN).count() == KNOWN_MIN
    }

    /// Undoes each unusual gap around places.
    fn around(&mut self, signs: &[Range<usize>]) {
        let mut signs = signs.iter().peekable();
        while let Some(sign) = signs.next() {
            let from = self.text.floor_char_boundary(sign.start.saturating_sub(REACH));
            let mut to = sign.end + REACH;
            while let Some(next) = signs.next_if(|next| next.start <= to + REACH) {
                to = to.max(next.end + REACH);
            }
            self.undo_gaps(from..self.text.ceil_char_boundary(to));
        }
    }

    /// Undoes each unusual gap of a stretch.
    fn undo_gaps(&mut self, range: Range<usize>) {
        let text = self.text;
        let before = self.edits.len();
        let mut words = Words::new(text, range.clone());
        while let Some(odd) = words.next_odd() {
            if odd.is_capital {
                continue;
            }
            let Some(signs) = words.pass_gap() else { break };
            let range = odd.at..words.at();
            let gap = &text.as_bytes()[range.clone()];
            if kind_of(gap, signs, &mut self.gap) != Gap::Unusual {
                continue;
            }
            // Nearly all are of white space, and the same one needs no copy.
            let is_blank = is_white(signs) || {
                read_gap(gap, &mut self.gap);
                self.gap == " "
            };
            let with = if is_blank { " ".into() } else { self.gap.clone().into() };
            self.edits.push(Edit { range, with });
        }
        if self.edits.len() > before {
            self.stretches.push(range);
        }
    }
}

/// Whether a sign may stand in a gap, told by how they begin.
#[inline]
fn may_hold(gap: &[u8], sign: &[u8]) -> bool {
    match gap.len().cmp(&sign.len()) {
        Ordering::Less => false,
        Ordering::Equal => gap.first() == sign.first(),
        Ordering::Greater => gap.first() == sign.first() || kind(gap[0]) == MARK,
    }
}

/// Where in a gap a sign stands, if beside it the gap has marks of sentences at most.
fn sign_in(gap: &[u8], sign: &[u8]) -> Option<usize> {
    let first = *sign.first()?;
    // Both are short, and a searcher would take longer to make than this does.
    for at in 0..(gap.len() + 1).saturating_sub(sign.len()) {
        if gap[at] == first && gap[at..].starts_with(sign) {
            return is_punctuation(&gap[at + sign.len()..]).then_some(at);
        }
        if kind(gap[at]) != MARK {
            return None;
        }
    }
    None
}

/// Whether a gap parts what is written without white space.
fn is_parted(gap: &[u8]) -> bool {
    gap.iter().any(u8::is_ascii_whitespace)
}

fn is_punctuation(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| kind(*byte) == MARK)
}

/// Where in a word a capital follows a small letter.
fn begins(bytes: &[u8], word: Range<usize>) -> impl Iterator<Item = usize> {
    let is_begin = move |at: &usize| bytes[*at].is_ascii_uppercase() && bytes[*at - 1].is_ascii_lowercase();
    (word.start + 1..word.end).filter(is_begin)
}

/// Writes the stretches with their edits.
fn write<'t>(parent: &View<'t>, edits: &[Edit], stretches: &[Range<usize>]) -> View<'t> {
    let text = parent.text();
    let layers = Layers::of(Layer::Layout);
    let mut rewriter = Rewriter::new(text);
    let mut edits = edits.iter().peekable();
    let mut stretches = stretches.iter().map(|stretch| with_context(text, stretch)).peekable();
    let mut taken = 0;
    while let Some(mut stretch) = stretches.next() {
        while let Some(next) = stretches.next_if(|next| next.start <= stretch.end) {
            stretch.end = stretch.end.max(next.end);
        }
        if stretch.start > taken {
            rewriter.replace(taken..stretch.start, "\n\n", layers);
            taken = stretch.start;
        }
        while let Some(edit) = edits.next_if(|edit| edit.range.end <= stretch.end) {
            // Stretches of two kinds may name the same gap.
            if edit.range.start >= taken {
                rewriter.replace(edit.range.clone(), &edit.with, layers);
                taken = edit.range.end;
            }
        }
        rewriter.copy_to(stretch.end);
        taken = taken.max(stretch.end);
    }
    if taken < text.len() {
        rewriter.replace(taken..text.len(), "\n\n", layers);
    }
    rewriter.finish_exact(parent)
}

/// A stretch with text around it, from white space to white space where some is near.
fn with_context(text: &str, stretch: &Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let start = text.floor_char_boundary(stretch.start.saturating_sub(CONTEXT));
    let before = bytes[..start].iter().rev().take(EDGE_MAX).position(|byte| byte.is_ascii_whitespace());
    let end = text.ceil_char_boundary((stretch.end + CONTEXT).min(text.len()));
    let after = bytes[end..].iter().take(EDGE_MAX).position(|byte| byte.is_ascii_whitespace());
    before.map_or(start, |back| start - back - 1)..after.map_or(end, |on| end + on + 1)
}

/// What a gap is, as `read_gap` tells: from the kinds of its bytes alone, unless it matters where in it they stand.
fn kind_of(gap: &[u8], signs: Signs, out: &mut String) -> Gap {
    // A blank line ends what was said.
    if gap.is_empty() || gap.len() > GAP_MAX || signs.has(OTHER) || signs.count(BREAK) > 1 {
        return Gap::Stop;
    }
    // A line that goes on is read as one with what it goes on from.
    if signs.count(BREAK) == 1 && signs.has_only(BLANK | MARK | BREAK) && is_wrapped(gap) {
        return Gap::Wrapped;
    }
    if signs.has_only(BLANK | MARK) {
        let is_wide = signs.count(BLANK) > 1 && gap.windows(2).any(|two| two == b"  ");
        return if is_wide { Gap::Unusual } else { Gap::Usual };
    }
    if signs.has(LEAD | LOW_LINE) {
        if signs.has(TAG) {
            return read_gap(gap, out);
        }
        // What leads a line stands behind the line break.
        let first = || gap.iter().map(|byte| kind(*byte)).find(|kind| kind & (LEAD | BREAK) != 0);
        let is_name = signs.has(LOW_LINE) && signs.has_only(LOW_LINE | EMPHASIS);
        if is_name || signs.has(LEAD) && first() != Some(BREAK) {
            return Gap::Stop;
        }
    }
    Gap::Unusual
}

/// Whether a gap is one line break, with marks of sentences and single blanks besides, over which a line goes on. Words stand
/// on both sides of a gap.
fn is_wrapped(gap: &[u8]) -> bool {
    let is_usual = |byte: &u8| matches!(kind(*byte), BLANK | MARK | BREAK);
    let is_blank = |at: Option<usize>| at.and_then(|at| gap.get(at)) == Some(&b' ');
    let is_parted = |at: usize| is_blank(at.checked_sub(1)) || is_blank(Some(at + 1));
    gap.iter().all(is_usual)
        && flow::only_break(gap).is_some_and(|at| !is_parted(at))
        && !gap.windows(2).any(|two| two == b"  ")
}

/// Whether an unusual gap is of white space alone, or with what leads a line, so that it should be a blank.
fn is_white(signs: Signs) -> bool {
    signs.has_only(BLANK | BREAK | WHITE | LEAD)
}

/// What a gap is; where it is unusual, `out` becomes what it should be.
fn read_gap(bytes: &[u8], out: &mut String) -> Gap {
    out.clear();
    if bytes.is_empty() || bytes.len() > GAP_MAX {
        return Gap::Stop;
    }
    let (mut breaks, mut at, mut has_sign, mut is_line_start) = (0, 0, false, false);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\n' => {
                breaks += 1;
                is_line_start = true;
                push_blank(out);
            }
            _ if byte.is_ascii_whitespace() || byte == 0x0B => push_blank(out),
            // What leads a line of a comment or a quotation.
            b'/' | b'#' | b'>' | b'*' | b'|' | b'%' | b';' if is_line_start => {}
            b'*' | b'~' => {}
            b'_' => has_sign = true,
            b'.' | b',' | b'!' | b'?' | b':' | b';' | b'"' | b'\'' | b'(' | b')' => {
                out.push(char::from(byte))
            }
            b'<' => {
                let Some(end) = tag_end(bytes, at) else { return Gap::Stop };
                if !is_inline(&bytes[at..end]) {
                    push_blank(out);
                }
                at = end;
                continue;
            }
            _ => return Gap::Stop,
        }
        at += 1;
    }
    // A blank line ends what was said, and a low line alone joins a name.
    match breaks > 1 || (has_sign && out.is_empty()) {
        true => Gap::Stop,
        false if is_wrapped(bytes) => Gap::Wrapped,
        false if out.as_bytes() == bytes => Gap::Usual,
        false => Gap::Unusual,
    }
}

fn push_blank(out: &mut String) {
    if !out.ends_with(' ') {
        out.push(' ');
    }
}

/// Whether a tag may stand amid a word without parting it.
fn is_inline(tag: &[u8]) -> bool {
    let name = tag.iter().skip(1).skip_while(|byte| **byte == b'/');
    let name: Vec<u8> =
        name.take(8).take_while(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase).collect();
    matches!(
        name.as_slice(),
        b"a" | b"b"
            | b"i"
            | b"u"
            | b"s"
            | b"em"
            | b"strong"
            | b"span"
            | b"font"
            | b"code"
            | b"small"
            | b"big"
            | b"mark"
            | b"sub"
            | b"sup"
            | b"tt"
            | b"del"
            | b"ins"
            | b"wbr"
            | b"kbd"
            | b"q"
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Text full of gaps of all kinds.
    fn gaps() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => "[a-zA-Z]{1,7}",
            2 => "[ .,:;!?\"'()]{1,4}",
            2 => ", |::|\\(|\\{|\n {1,8}|\n    /// |\n# |\n> \\* |\n\n|\r\n|\t| = | - |; |;\n|\n;",
            2 => "<b>|</p>|<a href=\"#\n/\">|<br/>|<|</|< b|<a [a-z ]{100,125}>",
            2 => "[*_~/#>|%-]{1,3}",
            1 => "[ *_<>/\n]{1,6}",
            1 => " {60,130}|[.]{118,130}",
            1 => "[äß—é字\u{3000}\u{0}-\u{1F}\u{7F}\u{A0}]",
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    /// Where in a gap a sign stands, looked for at each place.
    fn sign_at_any(gap: &[u8], sign: &[u8]) -> Option<usize> {
        let at = (0..gap.len()).find(|at| gap[*at..].starts_with(sign))?;
        let is_punctuation = |bytes: &[u8]| bytes.iter().all(|byte| b".,;:!?'\"()".contains(byte));
        (is_punctuation(&gap[..at]) && is_punctuation(&gap[at + sign.len()..])).then_some(at)
    }

    proptest! {
        /// What the bytes of a gap are says of it what reading it does.
        #[test]
        fn kinds_tell_what_gaps_are(text in gaps(), share in 0.0..0.3_f64) {
            let bytes = text.as_bytes();
            let mut last = text.floor_char_boundary((share * bytes.len() as f64) as usize);
            let mut words = Words::new(&text, last..bytes.len());
            let (mut out, mut before) = (String::new(), Vec::<(&[u8], Signs)>::new());
            while let Some((word, signs)) = words.next_behind() {
                let gap = &bytes[last..word.start];
                last = word.end;
                let kind = kind_of(gap, signs, &mut out);
                let read = read_gap(gap, &mut out);
                prop_assert!(kind == read, "{:?}", String::from_utf8_lossy(gap));
                if kind == Gap::Unusual && is_white(signs) {
                    prop_assert_eq!(&out, " ");
                }
                if gap.is_empty() || gap.len() > GAP_MAX {
                    continue;
                }
                for (sign, others) in &before {
                    let at = sign_at_any(gap, sign);
                    prop_assert!(at.is_none() || may_hold(gap, sign));
                    prop_assert_eq!(sign_in(gap, sign), at);
                    prop_assert!(at.is_none() || signs.is_same_but(MARK, *others));
                }
                before.push((gap, signs));
            }
        }

        /// Passing over plain words changes nothing that is found.
        #[test]
        fn skips_change_nothing(
            text in prop::collection::vec(prop_oneof![
                3 => "( [a-zA-Z0-9]{1,9}){1,9}",
                2 => "([a-z]{1,5}(  |\n# |\t|<b>|</p>|\\*\\*| _|-| )){3,6}",
                2 => "([A-Z][a-z]{4,7}){1,5}",
                1 => "[.,'< \n\t>]{1,3}",
                1 => "[äß—é]{1,2}",
            ], 0..16).prop_map(|pieces| pieces.concat()),
        ) {
            let is_known = |word: &[u8]| word.len() > 2;
            let found = || Found { text: &text, is_known, edits: Vec::new(), stretches: Vec::new(), gap: String::new() };
            let (mut one, mut other) = (found(), found());
            one.dense();
            word_by_word(&mut other);
            let sorted = |found: Found<'_, _>| {
                let mut edits: Vec<_> = found.edits.into_iter().map(|edit| (edit.range.start, edit.range.end, edit.with)).collect();
                let mut stretches: Vec<_> = found.stretches.into_iter().map(|at| (at.start, at.end)).collect();
                edits.sort();
                stretches.sort();
                (edits, stretches)
            };
            prop_assert_eq!(sorted(one), sorted(other), "{:?}", text);
        }
    }

    /// What [`Found::dense`] finds, by looking at each word and the gap before it.
    fn word_by_word<F: Fn(&[u8]) -> bool>(found: &mut Found<'_, F>) {
        let text = found.text;
        let bytes = text.as_bytes();
        // Each with where it ends.
        let (mut loose, mut strict, mut capitals) =
            ((Loose::default(), 0), (Strict::default(), 0), (0..0, 0));
        let end_loose = |found: &mut Found<'_, F>, loose: &mut (Loose, usize)| {
            if loose.0.gaps >= GAPS_MIN && loose.0.is_odd {
                found.undo_loose(loose.0.start..loose.1);
            }
            loose.0.gaps = 0;
        };
        let end_strict = |found: &mut Found<'_, F>, strict: &mut (Strict, usize)| {
            if strict.0.gaps >= GAPS_MIN {
                found.undo_strict(strict.0.start..strict.1, strict.0.sign.clone());
            }
            strict.0.gaps = 0;
        };
        let end_capitals = |found: &mut Found<'_, F>, capitals: &mut (Range<usize>, usize)| {
            if capitals.1 >= GAPS_MIN {
                found.undo_capitals(capitals.0.clone());
            }
            capitals.1 = 0;
        };
        let mut last = 0..0;
        let mut words = Words::new(text, 0..text.len());
        while let Some((word, signs)) = words.next_behind() {
            let place = last.end..word.start;
            let gap = &bytes[place.clone()];
            if capitals.1 > 0 && (capitals.0.len() > CAPITALS_MAX || is_parted(gap)) {
                end_capitals(found, &mut capitals);
            }
            if word.len() >= CAPITALS_MIN || capitals.1 > 0 {
                if capitals.1 == 0 {
                    capitals.0.start = word.start;
                }
                capitals.1 += begins(bytes, word.clone()).count();
                capitals.0.end = word.end;
            }
            let is_strict = !gap.is_empty() && gap != b" " && gap.len() <= GAP_MAX && last.end > 0;
            let sign = &bytes[strict.0.sign.clone()];
            if !is_strict || strict.0.gaps == 0 || sign_in(gap, sign).is_none() {
                end_strict(found, &mut strict);
                strict.0 = Strict { start: last.start, sign: place.clone(), signs, ..Strict::default() };
            }
            strict.0.gaps += usize::from(is_strict);
            strict.1 = word.end;
            match if gap == b" " { Gap::Usual } else { kind_of(gap, signs, &mut found.gap) } {
                Gap::Usual => {
                    loose.0.usual += 1;
                    if loose.0.usual > USUAL_MAX {
                        end_loose(found, &mut loose);
                    }
                }
                gap @ (Gap::Wrapped | Gap::Unusual) => {
                    if loose.0.gaps == 0 {
                        loose.0.start = last.start;
                        loose.0.is_odd = false;
                    }
                    loose.0.is_odd |= gap == Gap::Unusual;
                    loose.0.gaps += 1;
                    loose.0.usual = 0;
                    loose.1 = word.end;
                }
                Gap::Stop => end_loose(found, &mut loose),
            }
            last = word;
        }
        end_capitals(found, &mut capitals);
        end_strict(found, &mut strict);
        end_loose(found, &mut loose);
    }
}
