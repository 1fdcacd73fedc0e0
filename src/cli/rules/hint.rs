//! What somebody may have meant who asked for a rule that does not exist.

use std::collections::BTreeSet;

use crate::grpc::list_rules::Listed;

/// Most ids that are named.
const NAMED_MAX: usize = 5;
/// Least likeness of a misspelt id.
const LIKE_MIN: f64 = 0.5;
/// Shortest part of an id by which it is looked for.
const PART_MIN: usize = 3;

/// What to do instead of asking for `id`. `plugins` are those in force, with or without rules.
pub(super) fn hint(id: &str, all: &[Listed<'_>], plugins: &[&str]) -> String {
    let wanted = id.trim().to_ascii_lowercase();
    let ids: BTreeSet<&str> = all.iter().map(|rule| rule.id).collect();
    if let Some(same) = ids.iter().find(|id| id.eq_ignore_ascii_case(&wanted)) {
        return format!("did you mean `{same}`?");
    }
    let has_rules = |plugin: &str| all.iter().any(|rule| rule.plugin == plugin);
    if has_rules(&wanted) {
        return format!("`{wanted}` is a plugin; `portcullis rules list --plugin {wanted}` lists its rules");
    }
    if plugins.contains(&&*wanted) {
        return format!("`{wanted}` is a plugin that has no rules");
    }
    let is_of = |rule: &&Listed<'_>| !wanted.is_empty() && rule.category.is_within(&wanted);
    let of_category: BTreeSet<&str> = all.iter().filter(is_of).map(|rule| rule.id).collect();
    if !of_category.is_empty() {
        return format!("`{wanted}` is a category; {}", rules_are(&of_category));
    }
    // The last part of an id, such as `github-token` or `concepts`, is as good as a name.
    let ends = |id: &&&str| id.strip_suffix(&*wanted).is_some_and(|start| start.ends_with('.'));
    let named: Vec<&str> = ids.iter().filter(ends).copied().collect();
    if !named.is_empty() {
        return did_you_mean(&named);
    }
    if let Some(near) = most_like(&wanted, &ids) {
        return format!("did you mean `{near}`?");
    }
    let holds: Vec<&str> =
        ids.iter().filter(|id| wanted.len() >= PART_MIN && id.contains(&*wanted)).copied().collect();
    match holds.is_empty() {
        true => "`portcullis rules list` lists them".to_owned(),
        false => did_you_mean(&holds),
    }
}

/// The id that is most like a misspelt one, as a whole or without what stands before its first dot.
fn most_like<'i>(wanted: &str, ids: &BTreeSet<&'i str>) -> Option<&'i str> {
    let whole = |id: &str| strsim::normalized_damerau_levenshtein(wanted, id);
    let last = |id: &str| match (wanted.contains('.'), id.split_once('.')) {
        // A name alone has to be a good deal nearer, since so many ids end alike.
        (false, Some((_, name))) => strsim::normalized_damerau_levenshtein(wanted, name) - 0.2,
        _ => 0.0,
    };
    ids.iter()
        .map(|id| (whole(id).max(last(id)), *id))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, id)| {
            // A part of many names is told as such.
            *likeness >= LIKE_MIN && !(id.contains(wanted) && wanted.len() >= PART_MIN)
        })
        .map(|(_, id)| id)
}

fn did_you_mean(ids: &[&str]) -> String {
    match ids {
        [one] => format!("did you mean `{one}`?"),
        many => format!("did you mean one of {}?", listed(many)),
    }
}

fn rules_are(ids: &BTreeSet<&str>) -> String {
    let ids: Vec<&str> = ids.iter().copied().collect();
    match ids.as_slice() {
        [one] => format!("its rule is `{one}`"),
        many => format!("its rules are {}", listed(many)),
    }
}

fn listed(ids: &[&str]) -> String {
    let shown: Vec<String> = ids.iter().take(NAMED_MAX).map(|id| format!("`{id}`")).collect();
    let more = ids.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{Category, Severity};

    #[test]
    fn what_was_meant_is_guessed() {
        let rules = [
            ("secrets.github-token", "secrets", "secrets.github"),
            ("secrets.github-app-token", "secrets", "secrets.github"),
            ("injection.concepts", "injection", "prompt_injection.concepts"),
            ("injection.threat", "injection", "prompt_injection.threat"),
            ("concept.stay", "injection", ""),
            ("path.ssh", "path_audit", "path.ssh_key"),
        ];
        let categories: Vec<Category> = rules.iter().map(|(.., category)| Category::new(category)).collect();
        let all: Vec<Listed<'_>> = rules
            .iter()
            .zip(&categories)
            .map(|((id, plugin, _), category)| Listed {
                id,
                plugin,
                category,
                severity: Severity::High,
                confidence: 1.0,
                description: "",
                recommendation: "",
                references: &[],
                examples: &[],
                negative_examples: &[],
                known_misses: &[],
                file: "",
                line: 0,
            })
            .collect();
        for (id, wanted) in [
            ("SECRETS.GITHUB-TOKEN", "did you mean `secrets.github-token`?"),
            ("secrets.github-tokn", "did you mean `secrets.github-token`?"),
            ("github-token", "did you mean `secrets.github-token`?"),
            ("concepts", "did you mean `injection.concepts`?"),
            ("concpts", "did you mean `injection.concepts`?"),
            (
                "injection",
                "`injection` is a plugin; `portcullis rules list --plugin injection` lists its rules",
            ),
            ("llama_guard", "`llama_guard` is a plugin that has no rules"),
            (
                "secrets.github",
                "`secrets.github` is a category; its rules are `secrets.github-app-token`, `secrets.github-token`",
            ),
            ("path.ssh_key", "`path.ssh_key` is a category; its rule is `path.ssh`"),
            (
                "prompt_injection.threat",
                "`prompt_injection.threat` is a category; its rule is `injection.threat`",
            ),
            ("github", "did you mean one of `secrets.github-app-token`, `secrets.github-token`?"),
            ("zzzz", "`portcullis rules list` lists them"),
            ("", "`portcullis rules list` lists them"),
        ] {
            assert_eq!(hint(id, &all, &["llama_guard", "injection"]), wanted, "{id}");
        }
    }
}
