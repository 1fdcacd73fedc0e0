//! Filters of the templates.

use std::fmt::{self, Display, Formatter};

use askama::filters::{Html, HtmlSafe, escape};

/// A text of a sentence or more in which what stands between backticks is code: `<code>` in the page. All of it is escaped,
/// whoever wrote it; a backtick without another one on its line stays what it is.
pub(super) struct Prose(String);

impl Display for Prose {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for (is_code, piece) in pieces(&self.0) {
            let Ok(piece) = escape(piece, Html);
            if is_code {
                write!(out, "<code>{piece}</code>")?;
            } else {
                write!(out, "{piece}")?;
            }
        }
        Ok(())
    }
}

impl HtmlSafe for Prose {}

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
pub(super) fn prose(text: impl Display, _: &dyn askama::Values) -> askama::Result<Prose> {
    Ok(Prose(text.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
