//! Pages: the scripts of HTML, SVG and component files, and what stands in the attributes that run code.

use super::document::is_command;
use super::{Scan, code, shell};
use crate::bundles::code::Language;

/// Scripts and attributes of one page that are looked at.
const SCRIPTS_MAX: usize = 200;
/// Bytes of one attribute.
const ATTRIBUTE_BYTES_MAX: usize = 8 << 10;
/// Extensions of pages.
const PAGES: &[&str] =
    &["html", "htm", "xhtml", "svg", "vue", "svelte", "astro", "hta", "jsp", "php", "ejs", "hbs"];

/// Looks at the scripts of a page, if the file is one.
pub(super) fn scripts(scan: &mut Scan<'_, '_>) {
    let extension = scan.path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    if !extension.is_some_and(|extension| PAGES.contains(&extension.as_str())) {
        return;
    }
    let text = scan.text;
    let lower = text.to_ascii_lowercase();
    if lower.len() != text.len() {
        return;
    }
    let mut left = SCRIPTS_MAX;
    let (mut at, mut outside) = (0, Vec::new());
    while let Some(found) = lower[at..].find("<script") {
        let open = at + found;
        outside.push(at..open);
        let Some(head) = end_of_tag(&lower, open) else { break };
        let close = lower[head..].find("</script").map_or(text.len(), |end| head + end);
        if is_script(&lower[open..head]) && left > 0 {
            left -= 1;
            script(scan, &text[head..close], head);
        }
        at = close;
    }
    outside.push(at..text.len());
    for part in outside {
        attributes(scan, &lower, part, &mut left);
    }
}

fn script(scan: &mut Scan<'_, '_>, text: &str, at: usize) {
    if text.trim().is_empty() {
        return;
    }
    scan.engine(Language::JavaScript.as_str());
    let line = scan.lines.line_of(at);
    code::code(scan, Language::JavaScript, text, line, false);
}

/// Where a tag ends that begins at `open`, quotes being looked over.
fn end_of_tag(text: &str, open: usize) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            (None, b'>') => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Whether what stands between the tags is a program and no data.
fn is_script(tag: &str) -> bool {
    let Some((_, rest)) = tag.split_once("type=") else { return true };
    let kind: String =
        rest.trim_start_matches(['"', '\'']).chars().take_while(|c| !"\"' >".contains(*c)).collect();
    kind.is_empty()
        || kind == "module"
        || kind.contains("javascript")
        || kind.contains("ecmascript")
        || kind.contains("babel")
}

/// Attributes that run code: `onload="…"`, `href="javascript:…"`.
fn attributes(scan: &mut Scan<'_, '_>, lower: &str, part: std::ops::Range<usize>, left: &mut usize) {
    let (text, end) = (scan.text, part.end);
    let mut at = part.start;
    while let Some(found) = lower[at..end].find(['"', '\'']) {
        let open = at + found;
        let quote = lower.as_bytes()[open];
        let Some(len) = lower.as_bytes()[open + 1..end].iter().position(|byte| *byte == quote) else {
            return;
        };
        let (start, close) = (open + 1, open + 1 + len);
        // A lone apostrophe of the text opens no attribute.
        let before = lower[part.start..open].trim_end();
        let Some(name) = before.strip_suffix('=') else {
            at = open + 1;
            continue;
        };
        at = close + 1;
        let name = name.trim_end();
        let name = name.rsplit(|c: char| c.is_whitespace() || c == '<').next().unwrap_or_default();
        let is_handler =
            name.len() > 3 && name.starts_with("on") && name.bytes().all(|b| b.is_ascii_alphabetic());
        let is_address =
            matches!(name, "href" | "src" | "action" | "formaction" | "xlink:href" | "data" | "srcdoc");
        let value = &text[start..close];
        let code = match value.trim_start().get(..11) {
            _ if is_handler => value,
            Some(scheme) if is_address && scheme.eq_ignore_ascii_case("javascript:") => {
                &value.trim_start()[11..]
            }
            _ => continue,
        };
        if *left == 0 || code.len() > ATTRIBUTE_BYTES_MAX {
            continue;
        }
        *left -= 1;
        script(scan, &without_entities(code), start);
    }
}

/// Commands that a document shows in markup instead of in a fence: `<pre>…</pre>`, `<code>…</code>`.
pub(super) fn commands(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    let mut at = 0;
    for _ in 0..SCRIPTS_MAX {
        let Some(found) =
            memchr::memchr_iter(b'<', &text.as_bytes()[at..]).map(|found| at + found).find(|at| {
                let tag =
                    text.as_bytes()[at + 1..].split(|b| !b.is_ascii_alphabetic()).next().unwrap_or_default();
                SHOWING.iter().any(|name| tag.eq_ignore_ascii_case(name.as_bytes()))
            })
        else {
            return;
        };
        let Some(start) = end_of_tag(text, found) else { return };
        let len = text[start..].find("</").unwrap_or(text.len() - start).min(SHOWN_BYTES_MAX);
        let inner = &text[start..text.floor_char_boundary(start + len)];
        let line = scan.lines.line_of(start);
        for (below, content) in (0..).zip(without_references(inner).lines()) {
            let content = content.trim();
            if content.contains(' ') && is_command(content) {
                shell::script(scan, content, line + below, shell::Place::Prose);
            }
        }
        at = start;
    }
}

/// Elements that show commands.
const SHOWING: &[&str] = &["pre", "code", "kbd", "samp"];
/// Bytes of such an element that are looked at.
const SHOWN_BYTES_MAX: usize = 4 << 10;

/// A text without tags, and with its references as the characters that they stand for (HTML, named and numeric character
/// references).
fn without_references(text: &str) -> String {
    const NAMES: &[(&str, char)] = &[
        ("amp", '&'),
        ("lt", '<'),
        ("gt", '>'),
        ("quot", '"'),
        ("apos", '\''),
        ("nbsp", ' '),
        ("colon", ':'),
        ("sol", '/'),
        ("vert", '|'),
        ("verbar", '|'),
        ("period", '.'),
        ("semi", ';'),
        ("dollar", '$'),
        ("grave", '`'),
        ("num", '#'),
        ("equals", '='),
    ];
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(['&', '<']) {
        out.push_str(&rest[..at]);
        let mark = &rest[at..];
        let tag = mark.starts_with('<').then(|| mark.find('>')).flatten();
        let reference =
            mark.get(1..).and_then(|name| name.split_once(';')).filter(|(name, _)| name.len() < 10);
        let c = reference.and_then(|(name, _)| match name.strip_prefix('#') {
            Some(hex) if hex.starts_with(['x', 'X']) => {
                char::from_u32(u32::from_str_radix(&hex[1..], 16).ok()?)
            }
            Some(number) => char::from_u32(number.parse().ok()?),
            None => NAMES.iter().find(|(known, _)| *known == name).map(|(_, c)| *c),
        });
        rest = match (tag, c, reference) {
            (Some(end), _, _) => &mark[end + 1..],
            (None, Some(c), Some((_, after))) if mark.starts_with('&') => {
                out.push(c);
                after
            }
            _ => {
                out.push_str(&mark[..1]);
                &mark[1..]
            }
        };
    }
    out.push_str(rest);
    out
}

/// The text of an attribute: the few entities that code needs.
fn without_entities(text: &str) -> String {
    let plain =
        [("&quot;", "\""), ("&#34;", "\""), ("&#39;", "'"), ("&apos;", "'"), ("&lt;", "<"), ("&gt;", ">")];
    let text = plain.iter().fold(text.to_owned(), |text, (entity, c)| text.replace(entity, c));
    text.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    #[test]
    fn references_and_tags_are_read() {
        for (text, wanted) in [
            ("curl https&#58;//a &#124; sh", "curl https://a | sh"),
            ("curl https&colon;&sol;&sol;a &#x7C; <b>sh</b>", "curl https://a | sh"),
            ("a &amp;&amp; b; c &", "a && b; c &"),
            ("&#1234567890; &unknown; <", "&#1234567890; &unknown; <"),
        ] {
            assert_eq!(super::without_references(text), wanted, "{text}");
        }
    }
}
