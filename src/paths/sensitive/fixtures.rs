//! Files of a project's tests and dependencies, which look like credentials and are none.

use super::super::{Place, normalise, within};
use super::glob::matches;
use super::names::Names;

/// Top folders in which no project lies.
const NO_PROJECTS: &[&str] = &["etc", "run", "boot", "proc", "sys", "dev"];

/// Where files of tests and dependencies lie.
#[derive(Debug, Default)]
pub(super) struct Fixtures {
    folders: Vec<String>,
    names: Vec<String>,
    hidden_folders: Vec<String>,
}

fn has(list: &[String], name: &str) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(name))
}

impl Fixtures {
    pub(super) fn add(&mut self, folders: Vec<String>, names: Vec<String>, hidden_folders: Vec<String>) {
        self.folders.extend(folders);
        self.names.extend(names);
        self.hidden_folders.extend(hidden_folders);
    }

    /// Whether a normalised path is a file of a project's tests or dependencies.
    ///
    /// Never so outside the workspace where one is known, below a folder of the system, below a hidden folder (such as
    /// `.ssh`), and where the path climbs above what is known.
    pub(super) fn hold(
        &self,
        path: &str,
        names: &Names<'_>,
        place: &Place<'_>,
        workspace_roots: &[String],
    ) -> bool {
        let all = names.all();
        if names.climbs() || all.is_empty() {
            return false;
        }
        let Some(start) = self.project_start(path, names, place, workspace_roots) else { return false };
        let folders = &all[start.min(all.len() - 1)..all.len() - 1];
        for folder in folders {
            if super::super::HOLE == folder.chars().next().unwrap_or_default() {
                return false;
            }
            if has(&self.folders, folder) {
                return true;
            }
            if folder.starts_with('.') && !has(&self.hidden_folders, folder) {
                return false;
            }
        }
        let last = names.last();
        !last.starts_with('.') && !names.is_open() && self.names.iter().any(|pattern| matches(pattern, last))
    }

    /// Where the names of the project begin that the path may belong to.
    fn project_start(
        &self,
        path: &str,
        names: &Names<'_>,
        place: &Place<'_>,
        workspace_roots: &[String],
    ) -> Option<usize> {
        if workspace_roots.is_empty() || (!names.is_absolute() && !path.starts_with('~')) {
            if let Some(home) = names.homes().iter().max() {
                return Some(*home);
            }
            let top = names.all().first().copied().unwrap_or_default();
            let is_system = names.is_absolute() && NO_PROJECTS.iter().any(|n| n.eq_ignore_ascii_case(top));
            return (!is_system).then_some(0);
        }
        let count = |root: &str| root.split('/').filter(|name| !name.is_empty()).count();
        workspace_roots
            .iter()
            .filter(|root| !root.is_empty())
            .map(|root| normalise(root, place))
            .filter(|root| within(path, root, place.os))
            .map(|root| count(&root))
            .max()
    }
}
