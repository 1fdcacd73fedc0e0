//! How the templates write what they show: escaped, with what cannot be seen spelled out.

use std::fmt::{self, Display, Formatter, Write};

use askama::filters::{Escaper, Html, Safe};

use crate::text::is_invisible;

/// The escaper of all pages. Characters that show nothing, turn the direction of the text around them or control a device
/// are spelled out as `[U+202E]`: a page tells what is there, and not what somebody wants to be seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Visible;

impl Escaper for Visible {
    fn write_escaped_str<W: Write>(&self, mut dest: W, text: &str) -> fmt::Result {
        let (mut done, mut before) = (0, None);
        for (at, c) in text.char_indices() {
            let after = &text[at + c.len_utf8()..];
            if is_spelled(before.replace(c), c, after) {
                Html.write_escaped_str(&mut dest, &text[done..at])?;
                write!(dest, "[U+{:04X}]", u32::from(c))?;
                done = at + c.len_utf8();
            }
        }
        Html.write_escaped_str(dest, &text[done..])
    }
}

/// Whether a character is spelled out, between the one before it and the text after it.
fn is_spelled(before: Option<char>, c: char, after: &str) -> bool {
    match c {
        '\t' | '\n' => false,
        // The first half of the end of a line.
        '\r' => !after.starts_with('\n'),
        // Separators of lines and paragraphs; the blank of Braille, which is one to nobody.
        '\u{2028}' | '\u{2029}' | '\u{2800}' => true,
        // A picture that is to be shown in colours, or is made of several.
        '\u{FE0F}' => !before.is_some_and(is_picture),
        '\u{200D}' => {
            let joins = before.is_some_and(|c| is_picture(c) || c == '\u{FE0F}');
            !(joins && after.chars().next().is_some_and(is_picture))
        }
        _ => c.is_control() || is_invisible(c),
    }
}

/// Whether a character can be an emoji.
fn is_picture(c: char) -> bool {
    matches!(c, '\u{A9}' | '\u{AE}' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{27FF}'
        | '\u{2900}'..='\u{2BFF}' | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}' | '\u{1F000}'..='\u{1FAFF}')
        && c != '\u{2800}'
}

/// A text of a sentence or more in which what stands between backticks is code: `<code>` in the page. All of it is escaped,
/// whoever wrote it; a backtick without another one on its line stays what it is.
pub(super) struct Prose(String);

impl Display for Prose {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for (is_code, piece) in pieces(&self.0) {
            let (before, after) = if is_code { ("<code>", "</code>") } else { ("", "") };
            out.write_str(before)?;
            Visible.write_escaped_str(&mut *out, piece)?;
            out.write_str(after)?;
        }
        Ok(())
    }
}

/// What somebody typed, in a field that brings it again: escaped, and otherwise as it was.
pub(super) struct Typed(String);

impl Display for Typed {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        Html.write_escaped_str(out, &self.0)
    }
}

/// A text of somebody else that a form carries on and shows nowhere: the browser sends it as it was, and the page itself has
/// nothing in it that cannot be seen.
pub(super) struct Carried(String);

impl Display for Carried {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (mut done, mut before) = (0, None);
        for (at, c) in self.0.char_indices() {
            let end = at + c.len_utf8();
            // A reference to a control character would mean another one.
            if is_spelled(before.replace(c), c, &self.0[end..]) && !c.is_control() {
                Html.write_escaped_str(&mut *out, &self.0[done..at])?;
                write!(out, "&#x{:X};", u32::from(c))?;
                done = end;
            }
        }
        Html.write_escaped_str(out, &self.0[done..])
    }
}

/// The pieces of a text in their order, and whether each is code.
fn pieces(text: &str) -> Vec<(bool, &str)> {
    let mut pieces = Vec::new();
    let (mut done, mut at) = (0, 0);
    while let Some(begin) = text[at..].find('`').map(|found| at + found) {
        let inside = &text[begin + 1..];
        match inside.find(['`', '\n']) {
            Some(length) if length > 0 && inside.as_bytes()[length] == b'`' => {
                pieces.push((false, &text[done..begin]));
                pieces.push((true, &inside[..length]));
                at = begin + length + 2;
                done = at;
            }
            // Nothing between them, or no other one: each stays as it is.
            Some(length) => at = begin + length + 2,
            None => break,
        }
    }
    pieces.push((false, &text[done..]));
    pieces.retain(|(_, piece)| !piece.is_empty());
    pieces
}

/// See [`Prose`].
#[askama::filter_fn]
pub(super) fn prose(text: impl Display, _: &dyn askama::Values) -> askama::Result<Safe<Prose>> {
    Ok(Safe(Prose(text.to_string())))
}

/// See [`Carried`].
#[askama::filter_fn]
pub(super) fn carried(text: impl Display, _: &dyn askama::Values) -> askama::Result<Safe<Carried>> {
    Ok(Safe(Carried(text.to_string())))
}

/// See [`Typed`].
#[askama::filter_fn]
pub(super) fn typed(text: impl Display, _: &dyn askama::Values) -> askama::Result<Safe<Typed>> {
    Ok(Safe(Typed(text.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_form_carries_is_what_it_was_and_cannot_be_seen_in_the_page() {
        let carried = |text: &str| Carried(text.to_owned()).to_string();
        assert_eq!(carried("a \u{202e}<b>\u{200b}\n\"x\""), "a &#x202E;&#60;b&#62;&#x200B;\n&#34;x&#34;");
        assert_eq!(carried("plain"), "plain");
    }

    fn shown(text: &str) -> String {
        let mut out = String::new();
        Visible.write_escaped_str(&mut out, text).expect("written");
        out
    }

    #[test]
    fn what_cannot_be_seen_is_spelled_out() {
        for (text, wanted) in [
            ("plain <b>", "plain &#60;b&#62;"),
            ("ok = \"admin\u{202e} \u{2066}# x", "ok = &#34;admin[U+202E] [U+2066]# x"),
            ("nm\u{202E}gpj.exe", "nm[U+202E]gpj.exe"),
            ("a\u{200b}b\u{feff}c\u{ad}d\u{e0041}", "a[U+200B]b[U+FEFF]c[U+00AD]d[U+E0041]"),
            ("\u{1b}[2J\u{7f}\u{85}\0", "[U+001B][2J[U+007F][U+0085][U+0000]"),
            ("one\r\ntwo\tthree\rfour", "one\r\ntwo\tthree[U+000D]four"),
            ("a\u{2028}b", "a[U+2028]b"),
            ("\u{5d0}\u{5d1} \u{e9}", "\u{5d0}\u{5d1} \u{e9}"),
            ("\u{2764}\u{fe0f} \u{1f469}\u{200d}\u{1f467}", "\u{2764}\u{fe0f} \u{1f469}\u{200d}\u{1f467}"),
            ("a\u{fe0f}b\u{200d}c", "a[U+FE0F]b[U+200D]c"),
        ] {
            assert_eq!(shown(text), wanted, "{text:?}");
        }
        assert_eq!(Prose("`a\u{202e}b`".to_owned()).to_string(), "<code>a[U+202E]b</code>");
        assert_eq!(
            Typed("a\u{202e}<".to_owned()).to_string(),
            "a\u{202e}&#60;",
            "a field brings what it got"
        );
    }

    #[test]
    fn what_stands_between_backticks_is_code_and_all_is_escaped() {
        for (text, shown) in [
            ("", ""),
            ("no code", "no code"),
            ("runs `rm -rf /` at once", "runs <code>rm -rf /</code> at once"),
            ("`a` and `b`", "<code>a</code> and <code>b</code>"),
            ("`a``b`", "<code>a</code><code>b</code>"),
            ("one ` alone", "one ` alone"),
            ("`a` and ` alone", "<code>a</code> and ` alone"),
            ("an empty `` pair, `then` one", "an empty `` pair, <code>then</code> one"),
            ("over `two\nlines it `is` not", "over `two\nlines it <code>is</code> not"),
            ("`é…` ok", "<code>é…</code> ok"),
            (
                "`<img src=x onerror=\"a('b')\">` & <script>",
                "<code>&#60;img src=x onerror=&#34;a(&#39;b&#39;)&#34;&#62;</code> &#38; &#60;script&#62;",
            ),
            ("</code>`</code><b>`", "&#60;/code&#62;<code>&#60;/code&#62;&#60;b&#62;</code>"),
        ] {
            assert_eq!(Prose(text.to_owned()).to_string(), shown, "{text}");
        }
    }
}
