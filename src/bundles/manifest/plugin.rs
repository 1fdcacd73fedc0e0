//! Plugins: `.claude-plugin/plugin.json` with a name, and components that lie inside the plugin.

use serde_json::{Map, Value};

use super::{Candidate, Checked, first_text, text_of};

const DOCUMENT: &str = ".claude-plugin/plugin.json";
const NAME_CHARS_MAX: usize = 64;
/// Fields that name files or folders of the plugin.
const PATHS: &[&str] = &[
    "commands",
    "agents",
    "skills",
    "hooks",
    "mcpServers",
    "lspServers",
    "outputStyles",
    "monitors",
    "themes",
];

pub(super) fn is_primary(path: &str) -> bool {
    path == DOCUMENT || path.strip_suffix(DOCUMENT).is_some_and(|root| root.ends_with('/'))
}

/// Reads the JSON.
pub(super) fn read(text: &str) -> Result<Map<String, Value>, (u32, String)> {
    match crate::text::strict_json::read(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err((1, "it is no object".to_owned())),
        Err(error) => Err((error.line() as u32, error.to_string())),
    }
}

pub(super) fn check(all: &[Candidate], names: &[&str], out: &mut Checked) {
    let Some(document) = out.choose(all, DOCUMENT, 1) else { return };
    let file = document.path.as_str();
    let fields = match &document.fields {
        Ok(fields) => fields.clone().unwrap_or_default(),
        Err((line, message)) => {
            out.fail(
                "manifest.json",
                file,
                *line,
                format!("plugin.json is no JSON: {message}."),
                "Correct it.",
            );
            return;
        }
    };
    if let Some(name) = out.required(&fields, "name", file, NAME_CHARS_MAX) {
        let is_good = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        if !is_good || !fields["name"].is_string() {
            out.fail(
                "manifest.name",
                file,
                1,
                "`name` may hold letters, digits, `_` and `-` only.",
                "Rename the plugin, for example to `report-helper`.",
            );
        }
        out.manifest.name = name;
    }
    match fields.get("version") {
        None | Some(Value::Null) => {}
        Some(Value::String(version)) if is_loose_semver(version) => out.manifest.version = version.clone(),
        Some(other) => {
            out.manifest.version = text_of(other).unwrap_or_default();
            out.fail("manifest.version", file, 1, "`version` is no version.", "Write it like `1.2.3`.");
        }
    }
    out.manifest.description = first_text(&fields, &[&["description"]]);
    for key in PATHS {
        let values: Vec<&Value> = match fields.get(*key) {
            Some(Value::Array(values)) => values.iter().collect(),
            Some(value) => vec![value],
            None => continue,
        };
        for path in values.into_iter().filter_map(Value::as_str) {
            component(key, path, file, names, out);
        }
    }
}

/// A component must lie inside the plugin.
fn component(key: &str, path: &str, file: &str, names: &[&str], out: &mut Checked) {
    let clean = path.replace('\\', "/");
    let leads_out = clean.starts_with(['/', '~'])
        || clean.split('/').any(|part| part == "..")
        || clean.as_bytes().get(1) == Some(&b':')
        || clean.contains("$") && !clean.starts_with("${CLAUDE_PLUGIN_ROOT}");
    if leads_out {
        let reason = format!("`{key}` names a place outside the plugin.");
        out.fail(
            "manifest.path-escape",
            file,
            1,
            reason,
            "Name files of the plugin, relative to its folder.",
        );
        return;
    }
    let below = clean.trim_start_matches("${CLAUDE_PLUGIN_ROOT}").trim_start_matches(['.', '/']);
    let below = format!("{}{}", out.root, below.trim_end_matches('/'));
    let is_there = names.iter().any(|name| {
        name.strip_prefix(&below)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || below.ends_with('/'))
    });
    if !is_there && !below.is_empty() && !path.starts_with("http") {
        let reason = format!("`{key}` names something that is not in the bundle.");
        out.warn("manifest.path-missing", file, reason, "Add it, or leave the field out.");
    }
}

/// Versions as people write them: up to four numbers, a `v` before, a pre-release or build behind.
fn is_loose_semver(version: &str) -> bool {
    let version = version.trim().trim_start_matches(['v', 'V', '=']);
    if semver::Version::parse(version).is_ok() {
        return true;
    }
    let end = version.find(['-', '+']).unwrap_or(version.len());
    let (numbers, rest) = version.split_at(end);
    let is_number =
        |part: &str| !part.is_empty() && part.len() <= 10 && part.bytes().all(|b| b.is_ascii_digit());
    (1..=4).contains(&numbers.split('.').count())
        && numbers.split('.').all(is_number)
        && version.len() <= 64
        && rest.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+'))
        && rest.len() != 1
}
