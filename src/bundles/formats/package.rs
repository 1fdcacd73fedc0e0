//! Parts of office documents that refer to other files (ECMA-376, part 2, relationships).

use super::{Act, Layers};

/// Kinds of references that are followed as soon as the document is opened.
const FOLLOWED: &[&str] = &["attachedtemplate", "oleobject", "frame", "subdocument", "externallinkpath"];

/// Notes what a document fetches when it is opened.
pub(super) fn look(path: &str, text: &str, layers: &mut Layers) {
    if !path.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("rels")) {
        return;
    }
    for (at, name) in text.match_indices("Relationship") {
        let tag = &text[at..];
        if !tag[name.len()..].starts_with(char::is_whitespace) {
            continue;
        }
        let tag = without_references(&tag[..tag.find('>').unwrap_or(tag.len())]);
        let value = |name: &str| attribute(&tag, name).unwrap_or_default();
        let kind = value("Type").rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let is_external = value("TargetMode").eq_ignore_ascii_case("external");
        if is_external && FOLLOWED.contains(&kind.as_str()) && is_remote(value("Target")) {
            layers.acts.push(Act { at, ..Act::FETCHES });
        }
    }
}

/// Whether an address leads to another machine.
pub(super) fn is_remote(address: &str) -> bool {
    let address = address.trim().to_ascii_lowercase().replace('\\', "/");
    let scheme = address.split(':').next().unwrap_or_default();
    match scheme {
        "http" | "https" | "ftp" | "mhtml" | "ms-word" | "ms-excel" | "smb" | "webdav" => {
            address.contains(':')
        }
        // Three strokes lead to this machine, two to another one.
        "file" => !address.starts_with("file:///") || address.starts_with("file:////"),
        _ => address.starts_with("//"),
    }
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    tag.match_indices(name).find_map(|(at, _)| {
        let is_whole = tag[..at].ends_with(|c: char| c.is_whitespace());
        let rest = tag[at + name.len()..].trim_start().strip_prefix('=')?.trim_start();
        let quote = rest.chars().next().filter(|c| is_whole && matches!(c, '"' | '\''))?;
        rest[1..].split(quote).next()
    })
}

/// The text with its numbered characters decoded.
fn without_references(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("&#") {
        out.push_str(&rest[..at]);
        let body = &rest[at + 2..];
        let end = body.find(';').unwrap_or(0);
        let code = match body[..end].strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => body[..end].parse().ok(),
        };
        match code.and_then(char::from_u32) {
            Some(c) => {
                out.push(c);
                rest = &body[end + 1..];
            }
            None => {
                out.push_str("&#");
                rest = body;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_from_elsewhere_are_told() {
        const TYPE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
        for (kind, target, mode, wanted) in [
            ("attachedTemplate", "http://h.somewhere.example/t.dotm", "External", true),
            ("attachedTemplate", "&#x68;ttp://h.somewhere.example/t.dotm", "External", true),
            ("oleObject", "\\\\h.somewhere.example\\s\\o", "External", true),
            ("attachedTemplate", "file:///C:\\Users\\ann\\Normal.dotm", "External", false),
            ("attachedTemplate", "file://h.somewhere.example/t.dotm", "External", true),
            ("hyperlink", "https://h.somewhere.example/", "External", false),
            ("image", "media/image1.png", "Internal", false),
        ] {
            let text = format!(
                "<Relationships><Relationship Id=\"r1\" Type=\"{TYPE}/{kind}\" Target=\"{target}\" TargetMode=\"{mode}\"/></Relationships>"
            );
            let mut layers = Layers::default();
            look("a.docx!/word/_rels/settings.xml.rels", &text, &mut layers);
            assert_eq!(!layers.acts.is_empty(), wanted, "{text}");
        }
    }
}
