//! Text that hides in characters without a shape: Unicode tags, which spell ASCII, and variation selectors, of which
//! there are as many as bytes. Other characters without a shape that stand between them do not part a run.

use super::chars::is_invisible;

/// Fewest variation selectors in a row that are read as bytes; emoji need one or two.
const SELECTORS_MIN: usize = 4;

/// Hidden text found at a place, and where it ends.
pub(super) struct Hidden {
    /// One past the last byte of the run.
    pub end: usize,
    /// The text, with the source length in bytes of each of its characters; empty if the run spells nothing.
    pub chars: Vec<(char, usize)>,
}

/// Reads the run of tag characters that `text` begins with.
pub(super) fn tags(text: &str) -> Option<Hidden> {
    let mut hidden = Hidden { end: 0, chars: Vec::new() };
    for (c, between) in run(text, is_tag) {
        hidden.end += between + c.len_utf8();
        if let Some((_, len)) = hidden.chars.last_mut() {
            *len += between;
        }
        // The language tag, the cancel tag and tagged controls spell nothing; they count with their neighbour.
        let ascii = char::from((c as u32 & 0x7F) as u8);
        if ascii == ' ' || ascii.is_ascii_graphic() {
            hidden.chars.push((ascii, c.len_utf8()));
        } else if let Some((_, len)) = hidden.chars.last_mut() {
            *len += c.len_utf8();
        }
    }
    let spelled: usize = hidden.chars.iter().map(|(_, len)| len).sum();
    if let Some((_, len)) = hidden.chars.first_mut() {
        *len += hidden.end - spelled;
    }
    (hidden.end > 0).then_some(hidden)
}

/// Reads the run of variation selectors that `text` begins with, if it is long enough to carry text.
pub(super) fn selectors(text: &str) -> Option<Hidden> {
    let mut bytes = Vec::new();
    let mut lens: Vec<usize> = Vec::new();
    for (c, between) in run(text, is_selector) {
        bytes.push(match c {
            '\u{FE00}'..='\u{FE0F}' => (c as u32 - 0xFE00) as u8,
            _ => (c as u32 - 0xE0100 + 16) as u8,
        });
        if let Some(len) = lens.last_mut() {
            *len += between;
        }
        lens.push(c.len_utf8());
    }
    if bytes.len() < SELECTORS_MIN {
        return None;
    }
    let end = lens.iter().sum();
    // An emoji's own selector may stand before the hidden bytes.
    let read = |skipped: usize| {
        let text = std::str::from_utf8(&bytes[skipped..]).ok()?;
        text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace()).then_some(text)
    };
    let (skipped, text) = match (read(0), read(1)) {
        (Some(text), _) => (0, text),
        (None, Some(text)) => (1, text),
        (None, None) => return Some(Hidden { end, chars: Vec::new() }),
    };
    let mut at = skipped;
    let mut chars: Vec<(char, usize)> = Vec::with_capacity(text.len());
    for c in text.chars() {
        chars.push((c, lens[at..at + c.len_utf8()].iter().sum()));
        at += c.len_utf8();
    }
    if let Some((_, len)) = chars.first_mut() {
        *len += lens[..skipped].iter().sum::<usize>();
    }
    Some(Hidden { end, chars })
}

/// The characters of a run that `text` begins with, each with the bytes of invisible ones between it and the one before.
/// Characters of the other kind may be hidden text themselves, so that few of them may stand between.
fn run(text: &str, is_part: fn(char) -> bool) -> impl Iterator<Item = (char, usize)> {
    let mut chars = text.chars();
    let mut is_first = true;
    std::iter::from_fn(move || {
        let (mut between, mut others) = (0, 0);
        loop {
            let c = chars.next()?;
            if is_part(c) {
                is_first = false;
                return Some((c, between));
            }
            others += usize::from(is_tag(c) || is_selector(c));
            if is_first || !is_invisible(c) || others >= SELECTORS_MIN {
                return None;
            }
            between += c.len_utf8();
        }
    })
}

fn is_tag(c: char) -> bool {
    matches!(c, '\u{E0000}'..='\u{E007F}')
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}
