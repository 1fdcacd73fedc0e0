//! What a place of a document asks for: whether it orders what stands there, forbids it, or says something else.
//!
//! The subject of a document excuses nothing that it tells its reader to do: a skill about security that says "first run
//! this" means it. And what a document says never to do is no order, whatever the document is about.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::context::known;
use super::listed;

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

/// The end of a sentence that has its reader run what comes next.
static ORDERS: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?i)(?:^|\b(?:first|then|next|before|after|please|now|always|must|should|to [a-z]+|step \d+)\b[^.!?\n]{0,60}?)",
        r"[\s:,*_]*\b(?:run|execute|type|paste|launch|invoke|enter)\b[^.!?\n]{0,60}$",
    ))
});

/// A sentence that has its reader leave what comes next: nothing but small words may stand between, since "never use
/// anything but" and "do not start without" ask for what comes next.
static FORBIDS: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?i)\b(?:never|do not|don'?t|must not|should not|shouldn'?t|avoid|refuse to)(?: ever| blindly| just)?",
        r" (?:run(?:ning)?|execut(?:e|ing)|past(?:e|ing)|typ(?:e|ing)|pip(?:e|ing)|trust(?:ing)?|follow(?:ing)?",
        r"|obey(?:ing)?|copy(?:ing)?)",
        r"(?: (?:the|an?|any|this|that|such|commands?|lines?|scripts?|code|text|things|something|anything|like|as))*$",
        r"|(?i)\bavoid(?: (?:the|using|commands?|such|like|as))*$",
    ))
});

/// What may follow on what is forbidden as a whole. "Never run it twice" and "never without" forbid a way of doing it.
static FORBIDDEN_AS_A_WHOLE: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?i)^[\x22'”)*]*(?: (?:in|into) (?:an?|the|your) (?:terminal|shell|console))?",
        r"(?:\s*[.!?;:]|\s*$|,? (?:that|just|because|even) |,? (?:or|nor)\b|,\s*$| and\s*$)",
    ))
});

/// What may stand between two pieces of code of which the first is forbidden, for the second to be forbidden with it.
static GOES_ON: LazyLock<Regex> = LazyLock::new(|| known(r"(?i)^\s*(?:,|,?\s*(?:or|nor|and))\s*$"));

/// A sentence that has its reader search for what comes next, or take it away.
static SEEKS: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?i)\b(?:(?:look|search|grep|scan|watch|hunt) for|check [^!?\n]{1,40} for|(?:delete|remove) [^.!?\n]{0,40}",
        r"\b(?:attackers?|malicious|suspicious|injected|rogue|unknown)\b[^.!?\n]{0,40})",
        r"(?: (?:the|an?|any|commands?|lines?|calls?|scripts?|entry|entries|patterns?|reverse|shells?|such|like|as|e\.g\.))*$",
    ))
});

/// The end of a line that leads in to a list of what is not to be done.
static LEADS_IN: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"(?i)\b(?:never|not|don['’]?t)(?: (?:ever|do|run|use|execute|try|any|of|the|following|these|this|commands?))*\s*:\W*$",
    )
});

/// All that stands before the command of an item of such a list.
static RUNS: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"(?i)^\W*(?:\d+[.)]\s*)?(?:(?:ever|run|running|execute|executing|use|using|type|paste|pipe|do|try|commands?|like|such as|the|an?|any)\s+)*$",
    )
});

/// What turns a sentence about something else around: nothing else instead of it.
static NOTHING_ELSE: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"(?i)\b(?:not|never|no|nothing|anything|something else|nobody|cannot|without|avoid|wrong|refuse)\b|n['’]t\b",
    )
});

/// What makes such a line speak of a case.
static OF_A_CASE: LazyLock<Regex> = LazyLock::new(|| known(r"(?i)\b(?:if|when|where|unless|until|why|as)\b"));

/// A comment that calls what is below it bad and says why: a mark, or the word in capitals, before anything else.
static BAD_BECAUSE: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"^\s*(?:❌|✗|✘|🚫|⛔)\s*\W*\w|^\s*(?:❌\s*)?(?:BAD|WRONG|DON['’]?T|NEVER|UNSAFE|INCORRECT)\s*(?:[:–—]|-\s|\()",
    )
});

/// A sentence that names what comes next for what is to be done in its stead.
static INSTEAD: LazyLock<Regex> = LazyLock::new(|| {
    known(r"(?i)\b(?:instead of|rather than)(?: (?:running|using|piping|typing|the|an?))*$")
});

/// Words that have what was spoken of before run after all.
static AFTER_ALL: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"(?i)\b(?:run|execute|paste|start|invoke|perform|try|launch|type|copy|use|follow|apply|enter|do|take)(?:s|ning)? (?:it|them|this|that|these|those|each|all|both|one)\b",
    )
});

/// Words that have the bad way taken after all, wherever they stand.
static ADOPTS_BAD: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?i)(?:^|[.!?:;\n]\s{0,3}|\b(?:please|then|now|first|always|must|should|and|to)\s)(?:[-*\d.)]{1,3}\s)?",
        r"(?:(?:run|use (?:the|its?|this|that|an?|only)|start|begin|follow|apply|type|copy|paste|execute|perform|install|take|do)\b[^.!?\n]{0,50}",
        r"\b(?:bad|wrong|incorrect|avoid(?:ed)?|don.?ts?|never|unsafe|insecure)\b",
        r"|(?:go|work) through\b[^.!?\n]{0,30}\b(?:rows?|table|columns?|list|entries|lines|steps)\b)",
    ))
});

/// Words of a line that shows something rather than has it run.
static SHOWS: LazyLock<Regex> = LazyLock::new(|| {
    known(r"(?i)\b(?:examples?|compare|patterns?|versus|vs|bad|wrong|don.?t|avoid|instead|good)\b")
});

/// What makes the words behind a forbidden command forbid a way of running it, or ask for it all the same.
static NOT_AS_A_WHOLE: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"(?i)\b(?:out of order|before|until|unless|without|except|twice|more than once|alone|first)\b|\b(?:type|run|enter|execute|paste|use|start|launch|do) (?:it|this|them|that)\b",
    )
});

/// Words that make what comes next the means of taking something away, and no longer what is looked for.
static MEANS: LazyLock<Regex> =
    LazyLock::new(|| known(r"(?i)\b(?:with|using|via|by|use|run|through|for updates)\b"));

/// Headings, lead-ins, heads of columns and comments that say of what they head that it is not to be done.
static BAD: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"(?i)^\W*(?:don['’]?ts?\b|do not\b|never\b|avoid\b|bad\b|wrong\b|incorrect\b|unsafe\b|insecure\b|dangerous\b|anti-?patterns?\b)(?:\s+(?:do|run|use|this|these|like|it|examples?|patterns?|practices?|code|commands?|way|usage|idea|approach|write|execute))*\W*$",
    )
});

/// Comments that say of what they head that it is to be done.
static GOOD: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"(?i)^\W*(?:do|good|right|correct|safe|better|instead|use|fixed|ok(?:ay)?|then|now|next|first|run)\b",
    )
});

/// What makes a sentence speak of what others run, or of what is looked for.
static SPEAKS: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?i)\b(?:never|not|n't|avoid|refuse|reject|flag|report|detect|look for|find|search|attackers?|malicious|suspicious",
        r"|such as|e\.g|for example|examples?|if (?:you|an?|the|it|they)|that|which|who|tries|attempts?|would|could|may|might",
        r"|can|target|victim|payloads?|exploit|vulnerable|poc)\b",
    ))
});

/// Headings of parts whose commands are meant to be run.
static STEPS: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"(?i)^#+\s*(?:\d+[.)]\s*)?(?:set-?up|install(?:ation|ing)?|getting started|quick ?start|prerequisites|requirements|before you (?:start|begin))\b",
    )
});

/// Where the lines of a document begin that open or close a fence, in order.
#[derive(Debug)]
pub(super) struct Fences(Vec<usize>);

impl Fences {
    /// The fences of a document.
    pub(super) fn of(text: &str) -> Self {
        let mut at = 0;
        let lines = text.split_inclusive('\n').map(|line| {
            at += line.len();
            (at - line.len(), line.trim_start())
        });
        Self(
            lines
                .filter(|(_, line)| line.starts_with("```") || line.starts_with("~~~"))
                .map(|(at, _)| at)
                .collect(),
        )
    }

    /// Where the fence begins that the line stands in which begins at `line`.
    fn around(&self, line: usize) -> Option<usize> {
        let before = self.0.partition_point(|at| *at < line);
        if before % 2 == 1 { self.0.get(before - 1).copied() } else { None }
    }

    /// What the place at `offset` asks for.
    pub(super) fn role_of_place(&self, text: &str, offset: usize) -> Role {
        let start = line_start(text, offset);
        if let Some(opener) = self.around(start) {
            return of_fence(text, opener, start);
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
            return ordered(&head[..quote]);
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

    /// What the line that begins at `start` asks for with the commands in it.
    pub(super) fn role_of_line(&self, text: &str, start: usize) -> Role {
        if let Some(opener) = self.around(start) {
            return of_fence(text, opener, start);
        }
        let line = line_at(text, start);
        if line.len() <= LINE_BYTES_MAX && line.trim_start().starts_with('|') {
            return of_row(text, start, line);
        }
        if line.len() > LINE_BYTES_MAX || line.trim_start().starts_with(['|', '>', '#']) {
            return Role::Open;
        }
        if is_bad_item(text, start, line) && !AFTER_ALL.is_match(line) && !is_taken_after_all(text) {
            return Role::Forbidden;
        }
        let pieces: Vec<&str> = line.split('`').collect();
        let (mut before, mut roles) = (String::new(), Vec::<Role>::new());
        // What stands before each piece of code; one inside of a quotation is in somebody else's mouth.
        for (nth, piece) in pieces.iter().enumerate() {
            if nth % 2 == 1 {
                let (words, after) = (pieces[nth - 1], pieces.get(nth + 1).copied().unwrap_or_default());
                let goes_on = roles.last() == Some(&Role::Forbidden) && GOES_ON.is_match(words);
                roles.push(match open_quote(&before) {
                    Some(_) => Role::Open,
                    None if is_order(words) => Role::Ordered,
                    None if goes_on || is_forbidden(words, after) => Role::Forbidden,
                    None => Role::Open,
                });
            } else {
                before.push_str(piece);
            }
        }
        if pieces.len().is_multiple_of(2) {
            // The last back-tick opens nothing.
            roles.pop();
        }
        if roles.contains(&Role::Ordered) {
            Role::Ordered
        } else if AFTER_ALL.is_match(line) || roles.contains(&Role::Forbidden) && listed::are_ordered(text) {
            Role::Open
        } else if !roles.is_empty() && roles.iter().all(|role| *role == Role::Forbidden) {
            Role::Forbidden
        } else {
            Role::Open
        }
    }
}

/// What the words before a fence ask for.
fn of_fence(text: &str, opener: usize, line: usize) -> Role {
    let before = text[..opener].trim_end();
    let intro = &before[line_start(before, before.len())..];
    if intro.len() > LINE_BYTES_MAX {
        return Role::Open;
    }
    if STEPS.is_match(intro.trim()) {
        return Role::Ordered;
    }
    if is_order(intro) {
        return Role::Ordered;
    }
    // A sentence before a fence does not tell what of it is forbidden; a heading of the bad way, or a comment above the line
    // in the fence itself, does. Where the document has it run after all, neither counts.
    let inside = text.get(opener..line).unwrap_or_default().lines().skip(1);
    // What leads in to a fence with a colon is its text, and a comment in it is no more than a part.
    let is_led_in = intro.trim_end().ends_with(':') && !SHOWS.is_match(intro);
    let comments = inside
        .filter_map(comment)
        .filter(|comment| !is_led_in && (is_bad_comment(comment) || GOOD.is_match(comment)));
    let is_bad = match comments.last() {
        Some(comment) => is_bad_comment(comment),
        None => {
            let intro = intro.trim();
            let is_label =
                intro.ends_with([':', '*']) && (!intro.contains(' ') || intro.starts_with(['*', '❌', '🚫']));
            BAD.is_match(intro) && (intro.starts_with('#') || is_label)
        }
    };
    if is_bad && !is_taken_after_all(text) && !AFTER_ALL.is_match(after_fence(text, line)) {
        Role::Forbidden
    } else {
        Role::Open
    }
}

fn is_bad_comment(comment: &str) -> bool {
    BAD.is_match(comment) || BAD_BECAUSE.is_match(comment)
}

/// How far above an item of a list its heading or lead-in may stand, in bytes.
const LIST_BYTES_MAX: usize = 2 << 10;

/// Whether a line is an item of a list of what is not to be done, as its heading or the line that leads in says.
fn is_bad_item(text: &str, start: usize, line: &str) -> bool {
    let is_item = |line: &str| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        line.starts_with(['-', '*', '+', '•']) || rest.len() < line.len() && rest.starts_with(['.', ')'])
    };
    // What such a list says not to skip is to be done: only words of running may stand before the command.
    let runs = line.split_once('`').is_some_and(|(words, _)| RUNS.is_match(words));
    if !runs || !is_item(line.trim_start()) {
        return false;
    }
    let from = text.floor_char_boundary(start.saturating_sub(LIST_BYTES_MAX));
    let mut above = text[from..start].lines().rev().map(str::trim);
    above.find(|line| !line.is_empty() && !is_item(line)).is_some_and(|lead| {
        let is_heading = lead.starts_with('#') && BAD.is_match(lead);
        is_heading || LEADS_IN.is_match(lead) && !OF_A_CASE.is_match(lead)
    })
}

/// Whether a document has its reader take what it calls bad.
fn is_taken_after_all(text: &str) -> bool {
    listed::are_ordered(text) || ADOPTS_BAD.is_match(text)
}

/// The words of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("//").or_else(|| line.strip_prefix('#'))
}

/// The first words behind the fence that the line at `start` stands in.
fn after_fence(text: &str, start: usize) -> &str {
    let rest = &text[start..];
    let end = rest.find("\n```").or_else(|| rest.find("\n~~~")).unwrap_or(rest.len());
    let after = &rest[end..];
    &after[..after.floor_char_boundary(LINE_BYTES_MAX)]
}

/// The cells of a row. A bar that is escaped or stands in a piece of code ends none.
fn cells(row: &str) -> Vec<&str> {
    let row = row.trim().trim_matches('|');
    let (mut cells, mut start, mut is_code, mut before) = (Vec::new(), 0, false, ' ');
    for (at, c) in row.char_indices() {
        is_code ^= c == '`';
        if c == '|' && !is_code && before != '\\' {
            cells.push(&row[start..at]);
            start = at + 1;
        }
        before = c;
    }
    cells.push(&row[start..]);
    cells
}

/// What a row of a table asks for: a column whose head says that it holds the bad way forbids what stands in it.
fn of_row(text: &str, start: usize, row: &str) -> Role {
    let mut head = row;
    let from = text.floor_char_boundary(start.saturating_sub(2 * LINE_BYTES_MAX));
    for above in text[from..start].lines().rev() {
        if !above.trim_start().starts_with('|') {
            break;
        }
        head = above;
    }
    let (heads, cells) = (cells(head), cells(row));
    let is_bad = |at: usize| heads.get(at).is_some_and(|head| BAD.is_match(head.trim()));
    let coded: Vec<usize> = (0..cells.len()).filter(|at| cells[*at].contains('`')).collect();
    let is_forbidden = cells.len() == heads.len() && !coded.is_empty() && coded.into_iter().all(is_bad);
    if is_forbidden && !is_taken_after_all(text) { Role::Forbidden } else { Role::Open }
}

/// Whether a sentence ends with the order to run what comes next.
pub(super) fn is_order(words: &str) -> bool {
    let sentence = last_sentence(words);
    ORDERS.is_match(sentence) && !SPEAKS.is_match(sentence)
}

/// Whether what stands between `words` and `after` is forbidden, whatever the way of doing it.
fn is_forbidden(words: &str, after: &str) -> bool {
    let sentence = last_sentence(words);
    let clause = after.split("\n\n").next().unwrap_or_default();
    let is_whole = FORBIDDEN_AS_A_WHOLE.is_match(after);
    let is_sought = || SEEKS.is_match(words.trim_end()) && !MEANS.is_match(sentence);
    let is_replaced = INSTEAD.is_match(sentence.trim_end())
        && !NOTHING_ELSE.is_match(sentence)
        && (is_whole || after.starts_with(','));
    (is_replaced || is_whole && (FORBIDS.is_match(sentence) || is_sought()))
        && !NOT_AS_A_WHOLE.is_match(clause)
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

/// Whether a piece of code stands in the line that begins at `start`.
pub(super) fn holds_code(text: &str, start: usize) -> bool {
    line_at(text, start).matches('`').count() > 1
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
            ("Attackers have their victims run `X`.", Role::Open),
            ("If a page tells you to run `X`, stop.", Role::Open),
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
            assert_eq!(Fences::of(text).role_of_line(text, 0), wanted, "{text}");
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
            let fences = Fences::of(&text);
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
            assert_eq!(Fences::of(text).role_of_line(text, start), wanted, "{text}");
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
            assert_eq!(Fences::of(text).role_of_place(text, at), wanted, "{text}");
        }
    }
}
