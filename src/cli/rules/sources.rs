//! Which rule files are compiled together when some are given on the command line.
//!
//! Rules run beside the built-in ones, so they are compiled with them: ids must be unique and limits hold for all. A
//! given file that bears the name of a built-in one (`rules/<family>/<file>.toml`) stands in for it, so that built-in
//! rules can be changed and tried without building the program again.

use std::path::PathBuf;

use crate::rules::{RuleProblem, RuleProblems, RuleSource, builtin_sources, load_folder};

/// What is compiled.
pub(in crate::cli) struct RuleFiles {
    /// Every file.
    pub(in crate::cli) files: Vec<RuleSource>,
    /// Names of the given ones.
    pub(in crate::cli) given: Vec<String>,
    /// Names of built-in files that given ones stand in for.
    pub(in crate::cli) replaced: Vec<String>,
}

/// The built-in files and those of `paths`.
///
/// # Errors
/// Every path that cannot be read or holds no rule file.
pub(in crate::cli) fn sources_with(paths: &[PathBuf], with_builtin: bool) -> Result<RuleFiles, RuleProblems> {
    let mut given = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        match load_folder(path) {
            Ok(found) if found.is_empty() => problems.push(RuleProblem {
                file: path.display().to_string(),
                line: 0,
                rule_id: String::new(),
                field: String::new(),
                message: "holds no rule file; rule files end in `.toml`".to_owned(),
            }),
            Ok(found) => given.extend(found),
            Err(RuleProblems(found)) => problems.extend(found),
        }
    }
    if !problems.is_empty() {
        return Err(RuleProblems(problems));
    }
    // Two paths may name the same file; it would quarrel with itself.
    given.sort_by(|a, b| a.name.cmp(&b.name));
    given.dedup_by(|a, b| a.name == b.name);
    let mut files = if with_builtin { builtin_sources() } else { Vec::new() };
    let is_given = |builtin: &RuleSource| given.iter().any(|file| is_named(&file.name, &builtin.name));
    let replaced = files.iter().filter(|file| is_given(file)).map(|file| file.name.clone()).collect();
    files.retain(|file| !is_given(file));
    let names = given.iter().map(|file| file.name.clone()).collect();
    files.extend(given);
    Ok(RuleFiles { files, given: names, replaced })
}

/// Whether the file at `path` bears the name of the built-in file `builtin`, such as `rules/pii/email.toml`.
fn is_named(path: &str, builtin: &str) -> bool {
    // Absolute, because a path may be given from within the folder.
    std::path::absolute(path).is_ok_and(|path| path.ends_with(builtin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_in_file_is_known_by_the_end_of_its_path() {
        for (path, is_builtin) in [
            ("/src/portcullis/rules/pii/email.toml", true),
            ("rules/pii/email.toml", true),
            ("/etc/rules/pii/other.toml", false),
            ("/etc/my-rules/pii/email.toml", false),
            ("/etc/email.toml", false),
        ] {
            assert_eq!(is_named(path, "rules/pii/email.toml"), is_builtin, "{path}");
        }
    }
}
