//! Texts in the front matter of a document: clients put them before a model, as they do the document, so each is read as one.

use serde_json::Value;

use super::{Scan, structure};
use crate::bundles::work::Task;

/// Shortest text that can be an order or a command, in bytes.
const TEXT_BYTES_MIN: usize = 16;
/// Most texts of one document.
const TEXTS_MAX: usize = 500;
/// Deepest nesting that is followed.
const DEPTH_MAX: usize = 16;
/// Bytes of a line by which it is found again.
const KEY_BYTES: usize = 24;
/// Fields whose texts are commands and names by themselves, and are read as such.
const SETTINGS: &[&str] = &["hooks", "mcpServers", "allowed-tools", "disallowed-tools", "tools"];

/// Reads every text of the front matter, which ends at `end`, as Markdown.
pub(super) fn texts(scan: &mut Scan<'_, '_>, fields: &Value, end: usize) {
    let mut all = Vec::new();
    collect(fields, 0, &mut all);
    let file = scan.text;
    let source = &file[..end];
    let mut cursor = 0;
    for text in all {
        if !scan.may(Task::Structure, text.len()) {
            return;
        }
        // Where the value stands that is folded, escaped or quoted; where it goes on, its own lines are looked for.
        let place = |from: usize, line: &str| {
            let key = line.trim().trim_start_matches(['-', '*', '>', ' ', '`', '"']);
            let key = &key[..key.floor_char_boundary(KEY_BYTES)];
            let key = key.split(['"', '\\']).next().filter(|key| key.len() > 2)?;
            source[from..].find(key).map(|at| from + at).or_else(|| source.find(key))
        };
        let start = place(cursor, text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default());
        let start = start.unwrap_or(cursor);
        cursor = start;
        structure(scan, text, None, &|scan, at| {
            // The rest of the line from there: a folded line begins elsewhere than the one of the text.
            let rest = text[at..].lines().next().unwrap_or_default();
            scan.lines.line_of(place(start, rest).unwrap_or(start))
        });
        // What does not stand in the file as it is read was not seen there.
        if !source.contains(text) {
            let line = scan.lines.line_of(start);
            let mut hits = Vec::new();
            scan.patterns_in_text("document", text, &mut hits);
            for (_, rule) in hits {
                scan.add_pattern(rule, line);
            }
        }
    }
}

fn collect<'v>(value: &'v Value, depth: usize, all: &mut Vec<&'v str>) {
    if depth > DEPTH_MAX || all.len() >= TEXTS_MAX {
        return;
    }
    match value {
        Value::String(text) if text.len() >= TEXT_BYTES_MIN && text.contains(' ') => all.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, depth + 1, all)),
        Value::Object(fields) => {
            let texts = fields.iter().filter(|(name, _)| depth > 0 || !SETTINGS.contains(&name.as_str()));
            texts.for_each(|(_, value)| collect(value, depth + 1, all));
        }
        _ => {}
    }
}
