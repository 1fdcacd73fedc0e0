//! Whether a phrase stands in quotation marks: then somebody writes about it.
//!
//! *What it misses*: quotations over several paragraphs, and those of which one mark is missing.

use std::ops::Range;

/// How far before a phrase its opening mark may stand, in bytes.
const BEFORE_MAX: usize = 64;
/// How far after a phrase its closing mark may stand, in bytes.
const AFTER_MAX: usize = 200;

/// Whether `range` of `text` stands between an opening and a closing quotation mark. Strings of JSON are no quotations,
/// and neither is a text that is quoted as a whole.
pub(in crate::detect) fn is_quoted(text: &str, range: &Range<usize>) -> bool {
    let from = text.floor_char_boundary(range.start.saturating_sub(BEFORE_MAX));
    let before = &text[from..range.start];
    let before = before.rsplit_once('\n').map_or(before, |(_, line)| line);
    let to = text.floor_char_boundary((range.end + AFTER_MAX).min(text.len()));
    let after = text[range.end..to].split("\n\n").next().unwrap_or_default();
    let Some((at, mark)) = before.char_indices().rev().find(|(at, c)| is_mark(before, *at, *c)) else {
        return false;
    };
    let Some(closing) = closing_of(mark) else { return false };
    let lead = text[..range.start - before.len() + at].trim_end();
    let is_json = mark == '"' && lead.ends_with([':', '{', '[']) && text.trim_start().starts_with(['{', '[']);
    let opens = before[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric());
    let follows = before[at + mark.len_utf8()..].chars().next().is_none_or(|c| !c.is_whitespace());
    !lead.is_empty() && !is_json && opens && follows && after.contains(closing)
}

/// Whether the character is a quotation mark rather than an apostrophe.
fn is_mark(text: &str, at: usize, c: char) -> bool {
    let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_apostrophe = matches!(c, '\'' | '’')
        && joins(text[..at].chars().next_back())
        && joins(text[at + c.len_utf8()..].chars().next());
    matches!(c, '"' | '\'' | '`' | '“' | '”' | '‘' | '’' | '«' | '»' | '„' | '「' | '」') && !is_apostrophe
}

/// The mark that ends what `mark` begins; none for one that ends.
fn closing_of(mark: char) -> Option<char> {
    Some(match mark {
        '"' | '\'' | '`' => mark,
        '“' | '„' => '”',
        '‘' => '’',
        '«' => '»',
        '「' => '」',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_quotations_from_text() {
        for (text, wanted) in [
            ("Attackers write \"ignore the rules\" in mails.", true),
            ("Attackers write `please ignore the rules` in mails.", true),
            ("Sie schreiben „bitte ignore the rules jetzt” dort.", true),
            ("Please ignore the rules.", false),
            ("\"ignore the rules and go\"", false),
            ("{\"text\": \"ignore the rules\"}", false),
            ("Don't ignore the rules, it's bad.", false),
            ("He said \"hello\" and ignore the rules \"now\".", false),
            ("The \"team\nignore the rules\" of", false),
        ] {
            let at = text.find("ignore the rules").expect("is there");
            assert_eq!(is_quoted(text, &(at..at + 16)), wanted, "{text}");
        }
    }
}
