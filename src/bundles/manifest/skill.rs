//! Skills: one `SKILL.md`, its front matter by the public Agent Skills specification (agentskills.io).

use serde_json::Value;

use super::{Candidate, Checked, DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, first_text};

const DOCUMENT: &str = "SKILL.md";
/// Fields of the specification, in its first version.
const FIELDS: &[&str] = &["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

pub(super) fn is_primary(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.eq_ignore_ascii_case(DOCUMENT))
}

pub(super) fn check(all: &[Candidate], out: &mut Checked) {
    let Some(document) = out.choose(all, DOCUMENT, 0) else { return };
    let file = document.path.as_str();
    if !file.ends_with(DOCUMENT) {
        out.warn("manifest.spelling", file, "The document is not spelt SKILL.md.", "Rename it to SKILL.md.");
    }
    let fields = match &document.fields {
        Ok(Some(fields)) => fields,
        Ok(None) => {
            let reason = "SKILL.md has no front matter.";
            out.fail(
                "manifest.frontmatter",
                file,
                1,
                reason,
                "Begin it with `---`, `name`, `description` and `---`.",
            );
            return;
        }
        Err((line, message)) => {
            let reason = format!("The front matter cannot be read: {message}.");
            out.fail(
                "manifest.frontmatter",
                file,
                *line,
                reason,
                "Write it as YAML; quote values with a colon.",
            );
            return;
        }
    };
    if document.is_repaired {
        out.warn(
            "manifest.yaml",
            file,
            "The front matter is no YAML; it was read line by line.",
            "Quote values that hold a colon or begin with a bracket.",
        );
    }
    let name = out.required(fields, "name", file, NAME_CHARS_MAX);
    let description = out.required(fields, "description", file, DESCRIPTION_CHARS_MAX);
    for (key, _) in fields.iter().filter(|(key, _)| !FIELDS.contains(&key.as_str())) {
        let key: String = key.chars().take(40).collect();
        let reason = format!("The field `{key}` is not in the specification of skills.");
        out.warn("manifest.unknown-field", file, reason, "Put it below `metadata`, or leave it out.");
    }
    if let Some(Value::String(text)) = fields.get("compatibility")
        && text.chars().count() > 500
    {
        out.warn(
            "manifest.compatibility-length",
            file,
            "`compatibility` has more than 500 characters.",
            "Shorten it.",
        );
    }
    if let Some(name) = &name {
        style(name, file, out);
    }
    out.manifest.name = name.unwrap_or_default();
    out.manifest.description = description.unwrap_or_default();
    out.manifest.version = first_text(fields, &[&["version"], &["metadata", "version"]]);
}

fn style(name: &str, file: &str, out: &mut Checked) {
    let is_part =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() && !c.is_uppercase());
    if !name.split('-').all(is_part) {
        let reason = "`name` should be small letters, digits and single hyphens.";
        out.warn("manifest.name-style", file, reason, "Rename the skill, for example to `report-helper`.");
    }
    let folder = match out.root.strip_suffix('/') {
        Some(root) => root.rsplit('/').next().unwrap_or(root),
        None => &out.folder,
    };
    if !folder.is_empty() && folder != name {
        out.warn(
            "manifest.name-folder",
            file,
            "`name` differs from the name of the folder.",
            "Use one name for both.",
        );
    }
}
