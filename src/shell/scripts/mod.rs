//! Inline scripts of other languages (`python -c`, `node -e`, `perl -e` and so on): what they delete, read, write, run and
//! connect to.
//!
//! No parser of a language: tokens, constants, simple assignments, and calls of functions that matter, in one pass. What
//! cannot be followed is unknown and does nothing, except where an unknown text is run as code. Strings and comments are
//! data: `print('rm -rf /')` does nothing.

mod actions;
mod awk;
mod closures;
mod decode;
mod evaluate;
mod functions;
mod imports;
mod powershell;
mod powershell_fold;
mod sinks;
mod token;
mod value;

#[cfg(test)]
mod tests;

use super::argument::Argument;
use super::effect::EffectKind;
use super::programs::{Attributes, Language, Sink};

pub(in crate::shell) use awk::AWK_PIPE;
pub(in crate::shell) use decode::decodes;

/// Tells what a script would do. Shell scripts are not for this place and are handed on.
pub fn analyse(language: Language, text: &Argument, sink: &mut dyn Sink) {
    match language {
        Language::Shell => sink.script(Language::Shell, text, "script"),
        Language::Awk => awk::analyse(text, sink),
        Language::PowerShell => powershell::analyse(text, sink),
        _ => evaluate::analyse(language, text, sink),
    }
}

/// The text of `powershell -EncodedCommand`: base64 over UTF-16, low byte first. `None` when it is neither.
pub fn decode_powershell(encoded: &str) -> Option<String> {
    let bytes = decode::base64_bytes(encoded)?;
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    String::from_utf16(&units).ok()
}

/// A script of PowerShell whose constants are put together and whose names have no back-ticks in them; `None` for one with too
/// many pieces.
pub fn unfolded_powershell(text: &str) -> Option<String> {
    let folded = powershell_fold::fold(text)?;
    let mut out = String::with_capacity(folded.len());
    let mut chars = folded.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        // Before letters that mean something behind a back-tick it is a sign of its own in texts, and never amid a name.
        let breaks_name =
            c == '`' && before.is_alphanumeric() && chars.peek().is_some_and(|c| c.is_alphanumeric());
        if !breaks_name {
            out.push(c);
        }
        before = c;
    }
    Some(out)
}

/// An effect with nothing but a kind and a detail.
fn tell(sink: &mut dyn Sink, kind: EffectKind, target: Option<super::effect::Target>, detail: &str) {
    sink.effect(kind, target, Attributes { detail: detail.to_owned(), ..Attributes::default() });
}
