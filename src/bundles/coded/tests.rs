//! That each check finds its example, and that what is told of it is what its findings say.

use std::io::{Cursor, Write as _};
use std::sync::Arc;

use zip::write::SimpleFileOptions;

use super::table::{GOOD, PLUGIN, TOLD};
use super::*;
use crate::bundles::archive::Source;
use crate::bundles::{InspectLimits, Inspector};
use crate::decision::BundleKind;
use crate::detect::Scanner;
use crate::rules::{RuleSet, RuleSetConfig, builtin_sources};

struct Bytes(Vec<u8>);

impl Source for Bytes {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> std::io::Result<()> {
        self.0[..].read_exact_at(buffer, at)
    }
}

fn pack(files: &[(&str, &str)]) -> Bytes {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, text) in files {
        writer.start_file(*path, SimpleFileOptions::default()).expect("a new file");
        writer.write_all(text.as_bytes()).expect("memory takes it");
    }
    Bytes(writer.finish().expect("a whole archive").into_inner())
}

/// The kind of bundle that an example is of, by its files.
fn kind_of(files: &[(&str, &str)]) -> BundleKind {
    let has = |name: &str| files.iter().any(|(path, _)| *path == name);
    match (has(PLUGIN), has("helper.md")) {
        (true, _) => BundleKind::Plugin,
        (_, true) => BundleKind::Agent,
        _ => BundleKind::Skill,
    }
}

/// Each is found in its example, as bad and of the category that is told here, and in the words of the finding where
/// they are always the same.
#[test]
fn every_check_finds_its_example() {
    let set = RuleSet::compile(&builtin_sources(), &RuleSetConfig::default()).expect("the built-in rules");
    let scanner = Arc::new(Scanner::new(Arc::new(set)));
    let inspector = Inspector::new(scanner, InspectLimits::default());
    let mut wrong = Vec::new();
    for told in TOLD {
        let mut files = told.files.to_vec();
        let has_own = told.category == "manifest" || files.iter().any(|(path, _)| *path == "SKILL.md");
        if !has_own {
            files.push(("SKILL.md", GOOD));
        }
        let checks = inspector.inspect(&pack(&files), kind_of(&files)).checks;
        let all = [&checks.archive, &checks.manifest, &checks.static_security, &checks.quality];
        let found: Vec<_> = all.iter().flat_map(|check| &check.findings).collect();
        let is_it = |one: &&&crate::decision::CheckFinding| {
            one.rule_id == told.id && one.severity == told.severity && one.category == told.category
        };
        let Some(one) = found.iter().find(is_it) else {
            let told_of: Vec<_> =
                found.iter().map(|one| (&one.rule_id, one.severity, &one.category)).collect();
            wrong.push(format!("{}: {told_of:?}", told.id));
            continue;
        };
        let is_same = one.reason == told.description && one.fix_hint == told.fix;
        if told.id.starts_with("bundle.") && told.id != "bundle.binary" && !is_same {
            wrong.push(format!("{}: {} {}", told.id, one.reason, one.fix_hint));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn ids_are_there_once_and_are_those_that_policies_may_name() {
    let ids: Vec<&str> = coded_rules().iter().map(|rule| rule.id).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "sorted, and none twice");
    let named: Vec<&str> = ids.iter().copied().filter(|id| !id.starts_with("archive.")).collect();
    assert_eq!(named, crate::bundles::prepare::CODED_IDS, "tell here what the checks find");
    for rule in coded_rules() {
        assert!(rule.description.ends_with('.') && rule.fix.ends_with('.'), "{}", rule.id);
        let is_seen = |text: &String| text.chars().all(|c| c == '\n' || !c.is_control());
        assert!(rule.examples.iter().all(is_seen), "{}", rule.id);
    }
}
