//! Agents: at least one Markdown document; its front matter says who it is.

use super::{Candidate, Checked, first_text};

/// Documents that mostly stand beside an agent.
const OTHERS: &[&str] =
    &["readme.md", "license.md", "changelog.md", "contributing.md", "security.md", "code_of_conduct.md"];

pub(super) fn is_primary(path: &str) -> bool {
    path.to_ascii_lowercase().ends_with(".md") && path.matches('/').count() <= 3
}

pub(super) fn check(all: &[Candidate], out: &mut Checked) {
    // Several agents may share a bundle: the first that introduces itself stands for it.
    let has_fields =
        |candidate: &&Candidate| matches!(&candidate.fields, Ok(Some(fields)) if fields.contains_key("name"));
    let is_other =
        |path: &str| OTHERS.contains(&path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase().as_str());
    let by_place = |candidate: &&Candidate| {
        (is_other(&candidate.path), candidate.path.matches('/').count(), candidate.path.clone())
    };
    let first =
        all.iter().filter(has_fields).min_by_key(by_place).or_else(|| all.iter().min_by_key(by_place));
    let Some(document) = first else {
        let reason = "There is no document of an agent.";
        out.fail("manifest.missing", "", 0, reason, "Add at least one `*.md` with a name and a description.");
        return;
    };
    out.primary = document.path.clone();
    out.body_chars = document.body_chars;
    out.root = document.path.rfind('/').map_or(String::new(), |at| document.path[..=at].to_owned());
    for candidate in all {
        match &candidate.fields {
            Err((line, message)) => out.fail(
                "manifest.frontmatter",
                &candidate.path,
                *line,
                format!("The front matter cannot be read: {message}."),
                "Write it as YAML; quote values with a colon.",
            ),
            Ok(None) if candidate.path == document.path => out.warn(
                "manifest.frontmatter-missing",
                &candidate.path,
                "The document has no front matter.",
                "Begin it with `---`, `name`, `description` and `---`.",
            ),
            Ok(_) if candidate.is_repaired => out.warn(
                "manifest.yaml",
                &candidate.path,
                "The front matter is no YAML; it was read line by line.",
                "Quote values that hold a colon or begin with a bracket.",
            ),
            Ok(_) => {}
        }
    }
    let Ok(Some(fields)) = &document.fields else { return };
    let file = document.path.clone();
    for key in ["name", "description"] {
        if first_text(fields, &[&[key]]).trim().is_empty() {
            out.warn(
                "manifest.field-missing",
                &file,
                format!("There is no `{key}`."),
                &format!("Add `{key}`."),
            );
        }
    }
    out.manifest.name = first_text(fields, &[&["name"]]);
    out.manifest.description = first_text(fields, &[&["description"]]);
    out.manifest.version = first_text(fields, &[&["version"], &["metadata", "version"]]);
}
