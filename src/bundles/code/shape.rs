//! The look of a file as a whole: names and texts that a machine made unreadable.

use super::Language;
use super::follow::Walk;
use super::taint::Taint;
use super::value::Value;

/// Different names such as `_0x3fa2c1` from which a file was made by an obfuscator.
const NAMES_MIN: usize = 12;

/// Records what the text as a whole shows.
pub(super) fn look(walk: &mut Walk<'_>) {
    let text = walk.text;
    if walk.language == Language::JavaScript {
        if let Some(at) = made_names(text) {
            walk.record("file.obfuscated", &[(None, Value::default())], at, Taint::NONE);
        }
        if let Some(at) = turned_list(text) {
            walk.record("file.obfuscated", &[(None, Value::default())], at, Taint::NONE);
        }
        if let Some(at) = packer(text) {
            walk.record("file.obfuscated", &[(None, Value::default())], at, Taint::NONE);
        }
        if let Some(at) = few_signs(text) {
            walk.record("file.obfuscated", &[(None, Value::default())], at, Taint::NONE);
        }
    }
    if walk.language == Language::Python
        && let Some(at) = alike_names(text)
    {
        walk.record("file.obfuscated", &[(None, Value::default())], at, Taint::NONE);
    }
}

/// Names of a hexadecimal number, as the usual obfuscator gives them.
fn made_names(text: &str) -> Option<u32> {
    let mut names = std::collections::BTreeSet::new();
    let mut first = None;
    for (at, _) in text.match_indices("_0x") {
        let name: String = text[at + 3..].chars().take_while(char::is_ascii_hexdigit).take(12).collect();
        if name.len() >= 4 {
            first = first.or(u32::try_from(at).ok());
            names.insert(name);
            if names.len() >= NAMES_MIN {
                return first;
            }
        }
    }
    None
}

/// A function that turns a list of texts round until it fits, with names of hexadecimal numbers: `a["push"](a["shift"]())`.
fn turned_list(text: &str) -> Option<u32> {
    const NAME_MAX: usize = 24;
    text.match_indices("shift").find_map(|(at, _)| {
        let start = text.floor_char_boundary(at.saturating_sub(3 * NAME_MAX));
        let before = &text[start..at];
        let push = before.rfind("push")?;
        let is_made = before[push..].contains("(_0x") && before[..push].contains("_0x");
        let is_called = text[at + "shift".len()..].trim_start_matches(['"', '\'', ']']).starts_with("()");
        u32::try_from(at).ok().filter(|_| is_made && is_called)
    })
}

/// The heads of the best-known packers: one that unpacks itself with six parameters, one that writes faces.
fn packer(text: &str) -> Option<u32> {
    let at = ["eval(function(p,a,c,k,e,", "\u{ff9f}\u{3c9}\u{ff9f}\u{ff89}="]
        .iter()
        .find_map(|head| text.find(head))?;
    u32::try_from(at).ok()
}

/// Code of brackets and signs alone.
fn few_signs(text: &str) -> Option<u32> {
    let total = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).count();
    let signs = text.bytes().filter(|byte| matches!(byte, b'[' | b']' | b'(' | b')' | b'!' | b'+')).count();
    (total > 150 && signs * 100 > total * 90).then_some(0)
}

/// Names of one letter over and over (`IIIlllIIlI`, `OOO0O0OO0`), as obfuscators of Python give them.
fn alike_names(text: &str) -> Option<u32> {
    let mut names = std::collections::BTreeSet::new();
    let mut first = None;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for word in text.split(|c| !is_word(c)).filter(|word| (10..60).contains(&word.len())) {
        let is_alike =
            [&['I', 'l', '1', 'i'][..], &['O', '0', 'o'], &['_', 'l', 'I']].iter().any(|letters| {
                word.chars().all(|c| letters.contains(&c)) && word.chars().any(|c| c.is_ascii_alphabetic())
            });
        let varied = word.bytes().collect::<std::collections::BTreeSet<u8>>().len() > 1;
        if is_alike && varied {
            first = first.or(u32::try_from(word.as_ptr() as usize - text.as_ptr() as usize).ok());
            names.insert(word);
            if names.len() >= NAMES_MIN {
                return first;
            }
        }
    }
    None
}
