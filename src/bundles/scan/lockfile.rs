//! Files that pin where each package comes from: an installation fetches what they say, whatever the manifest beside them
//! names, and nobody reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::config::{host_of, is_near, is_of};
use super::{Rule, Scan};
use crate::bundles::rules::short_pattern;
use crate::decision::Severity;

/// Most addresses of one file that are looked at.
const ADDRESSES_MAX: usize = 50_000;
/// Bytes behind an address in which its package ends.
const PACKAGE_BYTES: usize = 600;

/// Where the registries keep packages, and the forges that they name as sources.
const REGISTRIES: &[&str] = &[
    "npmjs.org",
    "npmjs.com",
    "yarnpkg.com",
    "npm.pkg.github.com",
    "jsr.io",
    "npmmirror.com",
    "pypi.org",
    "pythonhosted.org",
    "pytorch.org",
    "nvidia.com",
    "crates.io",
    "rubygems.org",
    "packagist.org",
    "github.com",
    "gitlab.com",
    "bitbucket.org",
    "codeberg.org",
];

/// An address that a package is fetched from, as the tools write it: npm, Yarn, pnpm, uv and Poetry.
static RESOLVED: LazyLock<Regex> = LazyLock::new(|| {
    short_pattern(concat!(
        r#"(?:"resolved"\s{0,4}:\s{0,4}"|\bresolved\s{1,4}"|\btarball\s{0,2}:\s{0,4}["']?"#,
        r#"|\b(?:url|registry)\s{0,2}=\s{0,2}")(?:git\+)?(?<url>https?://[^"'\s,}#]{4,400})"#,
    ))
    .unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
});

const ELSEWHERE: Rule<'static> = Rule {
    id: "bundle.locked-elsewhere",
    category: "supply_chain",
    severity: Severity::High,
    reason: "A lock file has a package fetched from a host that is no registry, without encryption or with a script that runs at its installation.",
    fix: "Lock the release of the registry.",
};

/// Looks at a lock file; any other is passed over.
pub(super) fn scan(scan: &mut Scan<'_, '_>) {
    let name = scan.path.rsplit('/').next().unwrap_or(scan.path).to_ascii_lowercase();
    let is_lock = matches!(
        name.as_str(),
        "package-lock.json"
            | "npm-shrinkwrap.json"
            | "yarn.lock"
            | "pnpm-lock.yaml"
            | "bun.lock"
            | "uv.lock"
            | "poetry.lock"
    );
    if !is_lock {
        return;
    }
    let text = scan.text;
    let mut captures = RESOLVED.create_captures();
    let mut hosts = BTreeSet::new();
    // The first package of each host that is no registry, and the worst that is to be said of one.
    let mut foreign: BTreeMap<String, (usize, bool)> = BTreeMap::new();
    for found in RESOLVED.find_iter(text).take(ADDRESSES_MAX) {
        RESOLVED.captures(&text[found.range()], &mut captures);
        let Some(url) = captures.get_group_by_name("url") else { continue };
        let url = &text[found.start() + url.start..found.start() + url.end];
        let host = host_of(url);
        hosts.insert(host.clone());
        if is_near(&host) || REGISTRIES.iter().any(|registry| is_of(&host, registry)) {
            continue;
        }
        let rest = &text[found.end()..text.floor_char_boundary(found.end() + PACKAGE_BYTES)];
        let package = rest.split("node_modules/").next().unwrap_or(rest);
        let is_worse = url.starts_with("http://") || package.contains("\"hasInstallScript\": true");
        let entry = foreign.entry(host).or_insert((found.start(), false));
        if is_worse && !entry.1 {
            *entry = (found.start(), true);
        }
    }
    // Where all packages come from one host, that is the registry of whoever wrote the file.
    let is_mirror = hosts.len() == 1;
    for (at, is_worse) in foreign.into_values() {
        let is_plain =
            RESOLVED.find(&text[at..]).is_some_and(|found| text[at..][found.range()].contains("http://"));
        let severity =
            if is_worse && (is_plain || !is_mirror) { ELSEWHERE.severity } else { Severity::Medium };
        let line = scan.lines.line_of(at);
        scan.add(&Rule { severity, ..ELSEWHERE }, line);
    }
}
