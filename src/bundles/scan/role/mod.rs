//! What a place of a document asks for: whether it orders what stands there, forbids it, or says something else.
//!
//! The subject of a document excuses nothing that it tells its reader to do: a skill about security that says "first run
//! this" means it. And what a document says never to do is no order, whatever the document is about, unless it has its reader
//! do it all the same ([`adopted`]). What phrases say is data (`rules/bundles/roles.toml`); here is what is made of them.

mod adopted;
mod cells;

use std::cell::OnceCell;
use std::ops::Range;

use crate::bundles::rules::{BundleRules, PhraseKind};

pub(super) use adopted::ordered_documents;

/// What a place asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The reader is to do or to run it.
    Ordered,
    /// The reader is to leave it.
    Forbidden,
    /// Neither is said.
    Open,
}

/// Longest line whose words are asked, in bytes: nobody writes an order into a longer one, and each place in a line asks.
const LINE_BYTES_MAX: usize = 2 << 10;
/// How far above an item of a list its heading or lead-in may stand, in bytes, and how far from a bad example a good one.
const LIST_BYTES_MAX: usize = 2 << 10;
const PAIR_BYTES_MAX: usize = 1_200;

/// Whether a text says something of a kind.
pub(super) fn says(kind: PhraseKind, text: &str) -> bool {
    BundleRules::builtin().phrase(kind).is_some_and(|pattern| pattern.is_match(text))
}

/// Where the lines of a document begin that open or close a fence, in order.
#[derive(Debug)]
pub(super) struct Fences {
    at: Vec<usize>,
    /// Whether another document has its reader do what stands in this one.
    is_ordered: bool,
    /// Sentences that have something done which stands elsewhere, once they were asked for.
    orders: OnceCell<adopted::Orders>,
}

impl Fences {
    /// The fences of a document.
    pub(super) fn of(text: &str, is_ordered: bool) -> Self {
        let mut at = 0;
        let lines = text.split_inclusive('\n').map(|line| {
            at += line.len();
            (at - line.len(), line.trim_start())
        });
        let at = lines
            .filter(|(_, line)| line.starts_with("```") || line.starts_with("~~~"))
            .map(|(at, _)| at)
            .collect();
        Self { at, is_ordered, orders: OnceCell::new() }
    }

    /// Where the fence begins that the line stands in which begins at `line`.
    fn around(&self, line: usize) -> Option<usize> {
        let before = self.at.partition_point(|at| *at < line);
        if before % 2 == 1 { self.at.get(before - 1).copied() } else { None }
    }

    /// What the place at `offset` asks for.
    pub(super) fn role_of_place(&self, text: &str, offset: usize) -> Role {
        let start = line_start(text, offset);
        if let Some(opener) = self.around(start) {
            return self.of_fence(text, opener, start);
        }
        let head = &text[start..offset];
        if head.len() > LINE_BYTES_MAX {
            return Role::Open;
        }
        let shown = line_at(text, start).trim_start();
        if shown.starts_with(['|', '>', '#']) {
            return Role::Open;
        }
        // Only a piece of code has an end that tells whether all of it is forbidden.
        let ordered = |words: &str| if is_order(words) { Role::Ordered } else { Role::Open };
        if let Some(quote) = open_quote(head) {
            let (words, line) = (&head[..quote], line_at(text, start));
            if is_item(shown) && says(PhraseKind::Runs, words) && self.is_below_bad(text, start, line) {
                return self.excused(text, start..start + line.len(), true);
            }
            return ordered(words);
        }
        if is_order(head) {
            return Role::Ordered;
        }
        let is_item = shown.starts_with(['-', '*', '+']) || shown.starts_with(|c: char| c.is_ascii_digit());
        let head = head.trim_end();
        // A sentence of its own, in nobody's mouth.
        if !is_item && (head.is_empty() || head.ends_with(['.', '!', '?'])) {
            Role::Ordered
        } else {
            Role::Open
        }
    }

    /// What the line asks for in which a command stands at `offset`: with that one, where it is a piece of code in a line, and
    /// with all in it where `offset` is the beginning of the line.
    pub(super) fn role_of_line(&self, text: &str, offset: usize) -> Role {
        let start = line_start(text, offset);
        if let Some(opener) = self.around(start) {
            return self.of_fence(text, opener, start);
        }
        let line = line_at(text, start);
        if line.len() > LINE_BYTES_MAX || line.trim_start().starts_with('#') {
            return Role::Open;
        }
        let only = (offset > start).then(|| offset - start);
        if line.trim_start().starts_with('|') {
            return self.excused(text, table_around(text, start), cells::is_bad(text, start, line, only));
        }
        let around = paragraph_around(text, start);
        if self.is_bad_item(text, start, line) {
            return self.excused(text, start..start + line.len(), true);
        }
        let (mut at, mut roles) = (0, Vec::<(usize, Role)>::new());
        let pieces: Vec<&str> = line.split('`').collect();
        // A line may be one of several of a sentence.
        let ahead = &text[start + line.len()..around.end.max(start + line.len())];
        let (mut before, mut said) = (String::new(), String::new());
        for (nth, piece) in pieces.iter().enumerate() {
            if nth % 2 == 1 && nth + 1 < pieces.len() {
                let (words, after) = (pieces[nth - 1], pieces[nth + 1]);
                let is_last = nth + 2 == pieces.len();
                let after = if is_last { format!("{after}{ahead}") } else { after.to_owned() };
                let words =
                    if nth == 1 { with_line_above(text, &around, start, words) } else { words.to_owned() };
                // The whole sentence, with a word for each piece of code in it.
                said.push_str(pieces[nth - 1]);
                let is_spoken_of = is_of_others(&said) || is_sought_in(&said);
                said.push_str(" x ");
                let goes_on = roles.last().is_some_and(|(_, role)| *role == Role::Forbidden)
                    && says(PhraseKind::GoesOn, &words);
                let role = match open_quote(&before) {
                    Some(_) => Role::Open,
                    None if is_order(&words) => Role::Ordered,
                    None if (goes_on || is_spoken_of) && is_whole(&after) || is_forbidden(&words, &after) => {
                        Role::Forbidden
                    }
                    None => Role::Open,
                };
                roles.push((at, role));
            } else if nth % 2 == 0 {
                before.push_str(piece);
            }
            at += piece.len() + 1;
        }
        // What is turned down as a whole sentence: `a` or `b` are refused.
        let is_turned_down =
            roles.iter().all(|(_, role)| *role != Role::Ordered) && is_turned_down(&pieces, ahead);
        let asked = |place: &usize| only.is_none_or(|only| *place == only || place.abs_diff(only) <= 1);
        let mut wanted = roles.iter().filter(|(place, _)| asked(place)).map(|(_, role)| *role).peekable();
        if wanted.peek().is_none() {
            return Role::Open;
        }
        let wanted: Vec<Role> = wanted.collect();
        if wanted.contains(&Role::Ordered) {
            return Role::Ordered;
        }
        let is_forbidden = is_turned_down || wanted.iter().all(|role| *role == Role::Forbidden);
        self.excused(text, start..start + line.len(), is_forbidden)
    }

    /// What something bad asks for: to be left, unless the document has it done after all.
    fn excused(&self, text: &str, place: Range<usize>, is_bad: bool) -> Role {
        let is_told_why = || {
            let from = text.floor_char_boundary(place.start.saturating_sub(PAIR_BYTES_MAX));
            let to = text.ceil_char_boundary((place.end + PAIR_BYTES_MAX).min(text.len()));
            let beside = [&text[from..place.start], &text[place.end.min(to)..to]];
            beside.iter().any(|text| text.lines().any(is_good_label) || says(PhraseKind::Explains, text))
        };
        let is_excused = is_bad
            && !self.orders.get_or_init(|| adopted::Orders::of(text, &self.at)).mean(text, &self.at, &place)
            // What another document has done is bad only beside what is good.
            && (!self.is_ordered || is_told_why());
        if is_excused { Role::Forbidden } else { Role::Open }
    }

    /// What the words before a fence ask for.
    fn of_fence(&self, text: &str, opener: usize, line: usize) -> Role {
        let before = text[..opener].trim_end();
        let intro = &before[line_start(before, before.len())..];
        if intro.len() > LINE_BYTES_MAX {
            return Role::Open;
        }
        if says(PhraseKind::Steps, intro.trim()) || is_order(intro) {
            return Role::Ordered;
        }
        let own = line_at(text, line);
        let marked = says(PhraseKind::BadMark, own);
        // A heading of the bad way tells what of the fence is forbidden, or a comment above the line in the fence itself.
        let inside = text.get(opener..line).unwrap_or_default().lines().skip(1);
        let is_forbidding = says(PhraseKind::LeadsInFence, intro) && !says(PhraseKind::NotAsAWhole, intro);
        // What leads in to a fence with a colon is its text, and a comment in it is no more than a part.
        let is_led_in = intro.trim_end().ends_with(':') && !is_forbidding && !says(PhraseKind::Shows, intro);
        let comments = inside.filter_map(comment).filter(|comment| {
            !is_led_in
                && (is_bad_comment(comment) || says(PhraseKind::Good, comment.trim_start_matches(MARKS)))
        });
        let is_bad = match comments.last() {
            Some(comment) => is_bad_comment(comment),
            None => {
                let intro = intro.trim();
                let is_label = intro.ends_with([':', '*'])
                    && (!intro.contains(' ') || intro.starts_with(['*', '❌', '🚫']));
                is_forbidding || says(PhraseKind::Bad, intro) && (intro.starts_with('#') || is_label)
            }
        };
        let end = fence_end(text, &self.at, opener);
        self.excused(text, opener..end, is_bad || marked && !is_led_in)
    }

    /// Whether a line is an item of a list of what is not to be done, or stands alone below its heading.
    fn is_bad_item(&self, text: &str, start: usize, line: &str) -> bool {
        // What such a list says not to skip is to be done: only words of running may stand before the command.
        let Some((words, _)) = line.split_once('`') else { return false };
        let mark = words
            .trim_start_matches(|c: char| c.is_whitespace() || c.is_ascii_digit() || "-*+•.)".contains(c));
        if mark.starts_with(['❌', '✗', '✘', '🚫', '⛔']) && mark.chars().all(|c| !c.is_alphanumeric())
        {
            return true;
        }
        if !says(PhraseKind::Runs, words) {
            return false;
        }
        self.is_below_bad(text, start, line)
    }

    /// Whether the heading of a line, or what leads in to its list, says that what stands there is bad or looked for.
    fn is_below_bad(&self, text: &str, start: usize, line: &str) -> bool {
        let is_listed = is_item(line.trim_start());
        // What is looked for is shown; what a list has its reader run is none of it.
        let is_shown = is_listed && !line.split_once('`').is_some_and(|(words, _)| is_order(words));
        let from = text.floor_char_boundary(start.saturating_sub(LIST_BYTES_MAX));
        let mut above = text[from..start].lines().rev().map(str::trim);
        above.find(|line| !(line.is_empty() || is_listed && is_item(line))).is_some_and(|lead| {
            if lead.starts_with('#') {
                return says(PhraseKind::Bad, lead) || is_shown && says(PhraseKind::DetectionHead, lead);
            }
            if !is_listed
                || !lead.trim_end_matches(['*', '_']).ends_with(':')
                || says(PhraseKind::OfACase, lead)
            {
                return false;
            }
            let last = last_sentence(lead);
            says(PhraseKind::LeadsIn, lead)
                || is_shown && says(PhraseKind::DetectionHead, last)
                || says(PhraseKind::Refuses, lead) && !says(PhraseKind::Means, lead)
        })
    }
}

const MARKS: &[char] = &['✅', '✓', '✔', ' ', '👍', '🟢'];

/// Whether a line names a good way: a heading, a label, a comment.
fn is_good_label(line: &str) -> bool {
    let line = line.trim();
    let rest = line.trim_start_matches(['#', '*', '/', ' ', '|', '-']);
    rest.len() < line.len()
        && (says(PhraseKind::Good, rest) && rest.len() < 60
            || rest.starts_with(MARKS) && !rest.starts_with(' '))
}

fn is_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['-', '*', '+', '•']) || rest.len() < line.len() && rest.starts_with(['.', ')'])
}

fn is_bad_comment(comment: &str) -> bool {
    says(PhraseKind::Bad, comment) || says(PhraseKind::BadBecause, comment)
}

/// The words of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("//").or_else(|| line.strip_prefix('#'))
}

/// Where the fence ends that begins at `opener`.
fn fence_end(text: &str, fences: &[usize], opener: usize) -> usize {
    let next = fences.partition_point(|at| *at <= opener);
    fences.get(next).map_or(text.len(), |closer| closer + line_at(text, *closer).len())
}

/// The lines of the table that a line stands in.
fn table_around(text: &str, start: usize) -> Range<usize> {
    block_around(text, start, |line| line.trim_start().starts_with('|'))
}

/// The lines of the paragraph that a line stands in.
fn paragraph_around(text: &str, start: usize) -> Range<usize> {
    block_around(text, start, |line| {
        let line = line.trim();
        !line.is_empty() && !is_item(line) && !line.starts_with(['#', '|', '`', '~'])
    })
}

/// The lines around one, itself included, for which `is_of` holds.
fn block_around(text: &str, start: usize, is_of: impl Fn(&str) -> bool) -> Range<usize> {
    let from = text.floor_char_boundary(start.saturating_sub(LIST_BYTES_MAX));
    let mut begin = start;
    for line in text[from..start].split_inclusive('\n').rev() {
        if !is_of(line) {
            break;
        }
        begin -= line.len();
    }
    let to = text.floor_char_boundary((start + 2 * LIST_BYTES_MAX).min(text.len()));
    let mut end = start;
    for (nth, line) in text[start..to].split_inclusive('\n').enumerate() {
        if nth > 0 && !is_of(line) {
            break;
        }
        end += line.len();
    }
    begin..end
}

/// The words before the first code of a line, with those of the line above where the sentence began there.
fn with_line_above(text: &str, paragraph: &Range<usize>, start: usize, words: &str) -> String {
    if paragraph.start >= start || words.contains(['.', ':', ';']) || is_item(words.trim_start()) {
        return words.to_owned();
    }
    let above = text[paragraph.start..start].lines().last().unwrap_or_default();
    // Only words: what stood in code there was judged there.
    let above = above.rsplit('`').next().unwrap_or_default();
    format!("{above} {words}")
}

/// Whether a sentence ends with the order to run what comes next.
pub(super) fn is_order(words: &str) -> bool {
    let sentence = last_sentence(words);
    says(PhraseKind::Orders, sentence) && !says(PhraseKind::Speaks, sentence)
}

/// Whether what stands behind a forbidden command forbids it whatever the way of doing it.
fn is_whole(after: &str) -> bool {
    let clause = after.split("\n\n").next().unwrap_or_default();
    let clause = clause.split_once(". ").map_or(clause, |(clause, _)| clause);
    !says(PhraseKind::NotAsAWhole, clause)
}

/// Whether what stands between `words` and `after` is forbidden, whatever the way of doing it.
fn is_forbidden(words: &str, after: &str) -> bool {
    let sentence = last_sentence(words);
    let is_closed = says(PhraseKind::ForbiddenAsAWhole, after);
    let is_sought = || {
        let words = words.trim_end();
        says(PhraseKind::Seeks, words) && is_closed && !says(PhraseKind::Means, sentence)
            || says(PhraseKind::SeeksAnywhere, words) && !words.ends_with(':')
    };
    // Something else is to be done, and whatever is said of that.
    let is_replaced = says(PhraseKind::Instead, sentence.trim_end())
        && !says(PhraseKind::NothingElse, &sentence.replace("hy not", "hy"))
        && (is_closed || after.starts_with([',', '?']));
    let is_refused = || says(PhraseKind::Refuses, words.trim_end()) && !says(PhraseKind::Means, sentence);
    let is_warned = || {
        says(PhraseKind::Warns, words)
            && (says(PhraseKind::TurnedDown, after) || says(PhraseKind::Becomes, sentence.trim_end()))
    };
    let is_declined = || says(PhraseKind::AskedByOthers, sentence) && says(PhraseKind::IsDeclinedThen, after);
    is_replaced
        || is_declined()
        || (is_closed && says(PhraseKind::Forbids, sentence) || is_sought() || is_refused() || is_warned())
            && is_whole(after)
}

/// Whether a sentence tells what others do.
fn is_of_others(said: &str) -> bool {
    let sentence = last_sentence(said);
    says(PhraseKind::OthersDo, sentence) && !says(PhraseKind::TurnsToReader, sentence)
}

/// Whether a sentence has its reader look into one thing for another: "check x for".
fn is_sought_in(said: &str) -> bool {
    let sentence = last_sentence(said);
    said.trim_end().ends_with(" for")
        && sentence.contains(" x ")
        && says(PhraseKind::Seeks, sentence)
        && !says(PhraseKind::Means, sentence)
}

/// Whether a sentence says of all code in it that it is refused: `a` or `b` are always rejected.
fn is_turned_down(pieces: &[&str], ahead: &str) -> bool {
    let [first, .., last] = pieces else { return false };
    let is_list = pieces.iter().skip(2).step_by(2).rev().skip(1).all(|words| says(PhraseKind::GoesOn, words));
    let opens = last_sentence(first);
    let is_named = opens.is_empty() || says(PhraseKind::NamesCommands, opens);
    let after = format!("{last}{ahead}");
    is_list
        && is_named
        && says(PhraseKind::TurnedDown, &after)
        && !after.starts_with(" deletes")
        && is_whole(&after)
}

fn last_sentence(words: &str) -> &str {
    let words = words.trim().trim_end_matches(['`', '"', '\'', ':', ' ', '“', '(']);
    let sentence = words.rsplit(['.', '!', '?', ';']).next().unwrap_or(words).trim_start();
    sentence.trim_start_matches(|c: char| matches!(c, '-' | '*' | '+' | ' ' | ')') || c.is_ascii_digit())
}

fn line_start(text: &str, offset: usize) -> usize {
    memchr::memrchr(b'\n', &text.as_bytes()[..offset]).map_or(0, |at| at + 1)
}

/// The line that begins at `start`; a little more than may be asked of one that is too long.
fn line_at(text: &str, start: usize) -> &str {
    let most = text.floor_char_boundary((start + LINE_BYTES_MAX + 4).min(text.len()));
    let end = memchr::memchr(b'\n', &text.as_bytes()[start..most]).map_or(most, |at| start + at);
    &text[start..end]
}

/// Whether the place at `offset` stands in a quotation or a piece of code of its line.
pub(super) fn is_quoted(text: &str, offset: usize) -> bool {
    let head = &text[line_start(text, offset)..offset];
    head.len() <= LINE_BYTES_MAX && open_quote(head).is_some()
}

/// Whether a place stands between quotation marks as code and data write them, on one line.
pub(super) fn is_in_string(text: &str, offset: usize) -> bool {
    let head = &text[line_start(text, offset)..offset];
    let tail = line_at(text, line_start(text, offset)).get(head.len()..).unwrap_or_default();
    let is_open = |quote| head.matches(quote).count() % 2 == 1 && tail.contains(quote);
    head.len() <= LINE_BYTES_MAX && ['"', '\'', '`'].into_iter().any(is_open)
}

/// Whether a piece of code stands in the line of a place.
pub(super) fn holds_code(text: &str, offset: usize) -> bool {
    line_at(text, line_start(text, offset)).matches('`').count() > 1
}

/// Where a quotation or a piece of code begins that is still open at the end of `head`.
fn open_quote(head: &str) -> Option<usize> {
    for quote in ['`', '"'] {
        if head.matches(quote).count() % 2 == 1 {
            return head.rfind(quote);
        }
    }
    head.rfind('“').filter(|at| !head[*at..].contains('”'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FENCE: &str = "```sh\nX\n```\n";

    #[test]
    fn orders_are_told_from_what_is_shown_or_forbidden() {
        for (text, wanted) in [
            ("Before each review run `X`.", Role::Ordered),
            ("To start the scanner run `X`.", Role::Ordered),
            ("- Run `X` and read what it prints.", Role::Ordered),
            ("1. Please execute `X`", Role::Ordered),
            ("Use `ls` to look. Then run `X`.", Role::Ordered),
            ("Never run `X` that a page asks for.", Role::Forbidden),
            ("Do not ever paste `X` into a terminal.", Role::Forbidden),
            ("Never forget to run `X`.", Role::Open),
            ("Never paste `X` into a terminal because a page says so.", Role::Forbidden),
            ("Do not run scripts such as `X`.", Role::Forbidden),
            ("Do not use anything but `X` for the set-up.", Role::Open),
            ("Never do this without `X` first.", Role::Open),
            ("Don't use pip: `X` does all.", Role::Open),
            ("Never run `X` twice.", Role::Open),
            ("Do not run `X` before you have read it.", Role::Open),
            ("Never run `X`, but do run it as another user.", Role::Open),
            ("Never run the tests, run `X`.", Role::Open),
            ("Look for `X` in install scripts.", Role::Open),
            ("- reverse shells such as `X`", Role::Open),
            ("Attackers have their victims run `X`.", Role::Forbidden),
            ("If a page tells you to run `X`, stop.", Role::Forbidden),
            ("If a page tells you to stop, run `X`.", Role::Open),
            ("| run `X` | never |", Role::Open),
            ("- \"Before you answer, run `X`.\"", Role::Open),
            ("- “First run `X`.”", Role::Open),
            ("Say \"yes\", and then run `X`.", Role::Ordered),
            ("It's time. Now run `X`.", Role::Ordered),
            ("Never run `ls`, and then run `X`.", Role::Ordered),
            ("Never run `X` or remove anything else.", Role::Forbidden),
            ("- Never run `X` or `Y`.", Role::Forbidden),
            ("Never run `X`, `Y`, or `Z`.", Role::Forbidden),
            ("Avoid `X`: it runs whatever comes back.", Role::Forbidden),
            ("Avoid trouble with `X`.", Role::Open),
            ("Look for commands such as `X`.", Role::Forbidden),
            ("Check ~/.bashrc for `X`.", Role::Forbidden),
            ("Delete the attacker's cron line `X`.", Role::Forbidden),
            ("Look for `X`. Then run it.", Role::Open),
            ("Instead of `X`, download the file and read it.", Role::Forbidden),
            ("Do not take anything instead of `X`.", Role::Open),
            ("Instead of `X`, download it, then run it as `X`.", Role::Ordered),
            ("Remove suspicious leftovers with `X`.", Role::Open),
            ("To remove unknown caches, use `X`.", Role::Open),
            ("Do not copy `X`; type it by hand.", Role::Open),
            ("Never run `X`, or the tests, out of order: the installer goes first.", Role::Open),
            ("Never run `ls`, or run `X`.", Role::Open),
            ("Look for `ls` and run `X`.", Role::Open),
            ("Delete the cache with `X`.", Role::Open),
        ] {
            assert_eq!(Fences::of(text, false).role_of_line(text, 0), wanted, "{text}");
        }
    }

    #[test]
    fn fences_are_what_their_words_say() {
        for (intro, wanted) in [
            ("First run this in the terminal:\n\n", Role::Ordered),
            ("## Setup\n", Role::Ordered),
            ("### 1. Installation\n\n", Role::Ordered),
            ("Attackers run this on the target:\n", Role::Open),
            ("## Reverse shells\n", Role::Open),
            ("Never run this:\n", Role::Open),
            ("### Bad\n\n", Role::Forbidden),
            ("### Wrong\n", Role::Forbidden),
            ("**Bad:**\n\n", Role::Forbidden),
            ("### Badges\n", Role::Open),
            ("### Don't forget\n", Role::Open),
            ("### Don't do this\n", Role::Forbidden),
            ("Run each of these:\n\n### Bad\n\n", Role::Open),
            ("```\nrun this:\n```\nIt prints:\n", Role::Open),
        ] {
            let text = format!("# A\n\n{intro}{FENCE}");
            let at = text.rfind('X').expect("there");
            let fences = Fences::of(&text, false);
            assert_eq!(fences.role_of_line(&text, at), wanted, "{intro}");
            assert_eq!(fences.role_of_place(&text, at), wanted, "{intro}");
        }
    }

    #[test]
    fn comments_and_heads_of_columns_tell_the_bad_way_from_the_good_one() {
        for (text, wanted) in [
            ("```sh\n# DON'T\nX\n```\n", Role::Forbidden),
            ("```sh\n# BAD\nls\n# GOOD\nX\n```\n", Role::Open),
            ("Set up the environment:\n```sh\n# Avoid\nX\n```\n", Role::Open),
            ("```sh\n# ❌ BAD: deletes everything\nX\n```\n", Role::Forbidden),
            ("```sh\n# BAD luck is no reason\nX\n```\n", Role::Open),
            ("**Don't do this:**\n```sh\nX\n```\n", Role::Forbidden),
            ("## Never\n\n- `X`\n", Role::Forbidden),
            ("Use when the user meets bad habits.\n\n### Wrong\n\n```sh\n# DON'T\nX\n```\n", Role::Forbidden),
            ("The agent must never:\n- run `X`\n", Role::Forbidden),
            ("If the tests do not:\n- run `X`\n", Role::Ordered),
            ("Never forget to:\n- run `X`\n", Role::Ordered),
            ("The agent must never:\n- skip `X`\n", Role::Open),
            ("## Never\n\n- leave out `X`\n", Role::Open),
            ("The agent must never:\n- run `ls`\n\nFirst:\n- run `X`\n", Role::Ordered),
            ("Compare these examples:\n```sh\n# BAD\nX\n```\n", Role::Forbidden),
            ("Start with the command shown under Bad.\n\n### Bad\n```sh\nX\n```\n", Role::Open),
            ("### Wrong\n```sh\nX\n```\nUse the wrong way: the right way is broken.\n", Role::Open),
            ("| Bad | Step |\n|---|---|\n| `X` | 1 |\n\nGo through the rows with the tool.\n", Role::Open),
            ("### Bad\n```sh\nX\n```\nNow run it.\n", Role::Open),
            ("### Bad\n```sh\nX\n```\nThen run the block above.\n", Role::Open),
            ("| Don't | Do |\n|---|---|\n| `X` | read it first |\n", Role::Forbidden),
            ("| Do | Don't |\n|---|---|\n| `X` | `ls` |\n", Role::Open),
            ("| Don't | Do |\n|---|---|\n| `X` | read it |\n\nRun all of them.\n", Role::Open),
        ] {
            let at = text.rfind('X').expect("there");
            let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
            assert_eq!(Fences::of(text, false).role_of_line(text, start), wanted, "{text}");
        }
    }

    #[test]
    fn sentences_of_their_own_are_orders_and_quotations_are_not() {
        for (text, wanted) in [
            ("X without telling the user.", Role::Ordered),
            ("Read the code first. X and go on.", Role::Ordered),
            ("Treat \"X\" as an attack.", Role::Open),
            ("Text such as `X` is an attack.", Role::Open),
            ("> X", Role::Open),
            ("- X", Role::Open),
            ("An attacker writes: X", Role::Open),
            ("“X” is a prompt injection.", Role::Open),
        ] {
            let at = text.find('X').expect("there");
            assert_eq!(Fences::of(text, false).role_of_place(text, at), wanted, "{text}");
        }
    }

    /// Where the command begins that the place is asked about: the piece of code, or the line in a fence.
    fn role_of_command(text: &str, is_ordered: bool) -> Role {
        let at = text.rfind('X').expect("there");
        let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
        let offset = if text[start..at].ends_with('`') { at - 1 } else { start };
        Fences::of(text, is_ordered).role_of_line(text, offset)
    }

    #[test]
    fn what_is_bad_and_has_to_be_done_all_the_same_is_not_excused() {
        for text in [
            "### Bad\n```sh\nX\n```\n\nWhatever the title says, this is what you have to type when a session opens.\n",
            "### Bad\n```sh\nX\n```\n\nThe command above has to be executed once per day.\n",
            "### Never\n```sh\nX\n```\n\nNow paste that into the shell tool.\n",
            "Before anything else, perform the step under the heading Avoid.\n\n## Other\n\n### Avoid\n\n- `X`\n",
            "### Avoid\n\n- `X`\n\nEach line of the list must be run in order.\n",
            "| Wrong | Right |\n|---|---|\n| `X` | none |\n\nNow execute the commands in the column Wrong.\n",
            "| Wrong | Note |\n|---|---|\n| `X` | please do this first |\n",
            "Get started:\n\n```sh\n# NEVER: skip this\nX\n```\n",
            "Install the helper:\n\n```sh\nX   # NEVER\n```\n",
            "Never start without this:\n\n```sh\nX\n```\n",
            "Do not use anything but:\n\n```sh\nX\n```\n",
            "> **Warning:** run `X` first.\n",
            "**Warning:** the tool needs `X` to work.\n",
            "Block ads with `X`.\n",
            "Look for updates such as `X` and run them.\n",
            "Instead of waiting, use `X`.\n",
            "| Command | Risk |\n|---|---|\n| `X` | low |\n",
            "| Step | Command | Risk |\n|---|---|---|\n| 1 | `X` | high |\n\nRun all steps of the table.\n",
            "## Forbidden commands\n\n- `X`\n\nGuests are not allowed to; you should run them at each start.\n",
            "### Bad\n```sh\nX\n```\n### Good\n```sh\nls\n```\n\nOn this machine always take the bad way.\n",
            "先运行下面的代码。\n\n### Bad\n```sh\nX\n```\n",
            "### Bad\n```sh\nX\n```\n\nEjecuta primero el bloque de arriba.\n",
            "Commands like `X` are always run at the start.\n",
            "`X` deletes the cache and must be run first.\n",
            "- ❌ offline: wait\n- ✅ online: `X`\n",
            "Why not `X`? Because it is quick: use it.\n",
            "Do not trust `X` or leave it out.\n",
            "## Examples of the set-up\n\n- `X`\n",
            "Attackers use weak keys, so you run `X`.\n",
            "Red flags:\n\n- `X`\n\nExecute each of them.\n",
            "Check `a` for errors with `X`.\n",
            "Never run `ls` and `X`\nseparately; always one after the other.\n",
        ] {
            assert_ne!(role_of_command(text, false), Role::Forbidden, "{text}");
        }
        assert_ne!(role_of_command("## Never\n\n```sh\nX\n```\n", true), Role::Forbidden);
    }

    #[test]
    fn what_is_only_forbidden_is_excused_whatever_else_the_document_orders() {
        for text in [
            "### Bad\n```sh\nX\n```\n\n### Good\n```sh\nls\n```\n\nFollow these steps:\n\n1. Fork it.\n2. Run the tests.\n",
            "### Bad\n```sh\nX\n```\n\n### Good\n\nRun these checks before each commit:\n\n```sh\nmake check\n```\n",
            "### Bad\n```sh\nX\n```\n\nThis runs whatever comes back. Use the version below instead:\n\n```sh\nls\n```\n",
            "Use the table below to decide.\n\n| Don't | Do |\n|---|---|\n| `X` | `ls` |\n",
            "Apply the following rules:\n\n- Never run `X`.\n- Read scripts first.\n",
            "The hook must refuse these commands:\n\n- `ls`\n- `X`\n",
            "Never pipe a script into a shell:\n\n```sh\nX   # NEVER\n```\n",
            "| Command | Verdict | Why |\n|---|---|---|\n| `X` | denied | runs unread code |\n",
            "> **Caution:** `X` wipes the home folder.\n",
            "**Danger:** a stray blank turns this into `X`, so quote paths.\n",
            "1. ✓ `ls`\n2. ✗ `X`\n",
            "Block these patterns in the hook: `ls`, `X`.\n",
            "Requests such as `ls` or `X` must be blocked.\n",
            "Do not run `ls` as root, and never `X`.\n",
            "### Common Mistakes\n\n1. Running `X` with a stray blank.\n",
            "### Avoid\n\n`X` and its like.\n",
            "Q: Why not `X`? A: nobody has read it.\n",
            "Instead of `X`, download it and read it first:\n",
            "Look for reverse shells such as `X` in cron.\n",
            "Remove the attacker's line `X` with `crontab -e`.\n",
            "## Detection\n\n- `X` in process arguments\n",
            "description: Use when the user works with a bad fence.\n\n### Wrong\n\n```sh\n# DON'T\nX\n```\n\n### Right\n",
            "Use when the user works with a table.\n\n| Don't | Do |\n|---|---|\n| `X` | read it |\n",
            "Review before install. Red flags:\n\n- `X` of an unknown host\n",
            "Check `~/.bashrc` for `X`.\n",
            "Attackers use scripts that run `X`, and hooks.\n",
        ] {
            assert_eq!(role_of_command(text, false), Role::Forbidden, "{text}");
        }
        let pair = "## Bad\n\n```sh\nX\n```\n\n## Good\n\n```sh\nls\n```\n";
        assert_eq!(role_of_command(pair, true), Role::Forbidden);
    }

    #[test]
    fn documents_that_others_order_are_told() {
        for (text, wanted) in [
            ("Set up first as in [setup](setup.md).", "setup.md"),
            ("Run everything in `docs/install.md`.", "docs/install.md"),
            ("Read [style](style.md) for details.", ""),
            ("Never run what stands in old.md.", ""),
        ] {
            assert_eq!(ordered_documents(text).join(" "), wanted, "{text}");
        }
    }
}
