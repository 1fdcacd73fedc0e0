//! Tables of commands and their effects, and properties of the whole engine.

mod differential;
mod properties;

use serde::Deserialize;
use std::collections::BTreeMap;

use super::super::analysis::Analysis;
use super::super::effect::Effect;
use super::super::limits::Limits;
use super::{analyse, analyse_argv};
use crate::paths::{Os, Place};

const PLACE: Place<'_> = Place { cwd: "/work/project", home: "/home/u", os: Os::Linux };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    case: Vec<Case>,
    #[serde(default)]
    prefixes: Vec<Prefixes>,
}

/// One command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default)]
    about: String,
    command: String,
    /// Effects that must be found: kind, target, then flags and `via` with its wrappers.
    #[serde(default)]
    want: Vec<String>,
    /// Effects that must not be found: a kind, or kind and target.
    #[serde(default)]
    never: Vec<String>,
    /// Causes that must be noted.
    #[serde(default)]
    unresolved: Vec<String>,
    /// Whether there may be no other effects than those wanted.
    #[serde(default)]
    exact: bool,
}

/// One command behind many prefixes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prefixes {
    command: String,
    want: Vec<String>,
    before: Vec<String>,
    #[serde(default)]
    except: BTreeMap<String, Vec<String>>,
}

fn run(command: &str) -> Analysis {
    analyse(command, PLACE, &Limits::default())
}

/// An effect as the tables write it.
fn compact(effect: &Effect) -> String {
    let target =
        effect.target.as_ref().map_or_else(|| "-".to_owned(), |target| target.text.replace('\0', "?"));
    let mut text = format!("{} {target}", effect.kind.as_str());
    for (flag, word) in [(effect.recursive, " recursive"), (effect.forced, " forced")] {
        text.push_str(if flag { word } else { "" });
    }
    text.push_str(if effect.target.as_ref().is_some_and(|target| target.has_glob) { " glob" } else { "" });
    text.push_str(" via");
    for via in &effect.via {
        text.push(' ');
        text.push_str(&via.replace(' ', "_"));
    }
    text
}

fn fits(actual: &str, wanted: &str) -> bool {
    let mut wanted = wanted.split(' ');
    let mut actual = actual.split(' ');
    if wanted.next() != actual.next() {
        return false;
    }
    match wanted.next() {
        None => true,
        target => target == actual.next() && wanted.all(|word| actual.any(|other| other == word)),
    }
}

fn check(
    command: &str,
    want: &[String],
    never: &[String],
    unresolved: &[String],
    exact: bool,
) -> Vec<String> {
    let analysis = run(command);
    let found: Vec<String> = analysis.effects.iter().map(compact).collect();
    let mut problems = Vec::new();
    for wanted in want {
        if !found.iter().any(|effect| fits(effect, wanted)) {
            problems.push(format!("misses `{wanted}`"));
        }
    }
    for unwanted in never {
        if found.iter().any(|effect| fits(effect, unwanted)) {
            problems.push(format!("must not have `{unwanted}`"));
        }
    }
    for cause in unresolved {
        if !analysis.unresolved.iter().any(|u| u.cause.as_str() == cause) {
            problems.push(format!("does not note `{cause}`"));
        }
    }
    if exact && !found.iter().all(|effect| want.iter().any(|wanted| fits(effect, wanted))) {
        problems.push("has more effects".to_owned());
    }
    for effect in &analysis.effects {
        if effect.span.end > command.len() || effect.span.start > effect.span.end {
            problems.push(format!("span {:?} lies outside", effect.span));
        }
    }
    problems.iter().map(|problem| format!("{command:?} {problem}\n    found {found:?}")).collect()
}

#[test]
fn commands_have_the_effects_in_the_tables() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/shell/effects");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no tables in {folder}");
    let mut problems = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let table: Table =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for case in table.case {
            let found = check(&case.command, &case.want, &case.never, &case.unresolved, case.exact);
            problems.extend(found.into_iter().map(|problem| format!("{} {problem}", case.about)));
            assert!(
                case.exact || !(case.want.is_empty() && case.never.is_empty() && case.unresolved.is_empty()),
                "{} tests nothing",
                case.command
            );
        }
        for prefixes in table.prefixes {
            for before in prefixes.before {
                let want = prefixes.except.get(&before).unwrap_or(&prefixes.want);
                problems.extend(check(&format!("{before} {}", prefixes.command), want, &[], &[], false));
            }
        }
    }
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn an_argument_vector_is_not_split_or_expanded() {
    let argv = ["rm", "-rf", "/srv/$HOME; ls", "*"].map(str::to_owned);
    let analysis = analyse_argv(&argv, PLACE, &Limits::default());
    let found: Vec<String> = analysis.effects.iter().map(compact).collect();
    assert_eq!(
        found,
        [
            "delete_path /srv/$HOME; ls recursive forced via",
            "delete_path /work/project/* recursive forced via"
        ]
    );
    assert!(analysis.effects.iter().all(|effect| !effect.target.as_ref().unwrap().has_glob));
    let argv = ["bash", "-c", "rm -rf /srv"].map(str::to_owned);
    assert_eq!(analyse_argv(&argv, PLACE, &Limits::default()).effects.len(), 1);
    assert!(analyse_argv(&[], PLACE, &Limits::default()).effects.is_empty());
}

#[test]
fn texts_over_the_limit_are_noted_and_not_read() {
    let limits = Limits { bytes_max: 10, ..Limits::default() };
    let analysis = analyse("rm -rf / # too long", PLACE, &limits);
    assert!(analysis.effects.is_empty());
    assert!(analysis.unresolved.iter().any(|u| u.cause.is_limit()));
}
