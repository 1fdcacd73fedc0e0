//! Packages: what is run when they are installed, and where they come from.

use std::net::IpAddr;

use serde_json::{Map, Value};

use super::{Rule, Scan, shell};
use crate::bundles::rules::WordKind;
use crate::decision::Severity;

/// Scripts that npm runs by itself at an installation (npm documentation, scripts).
const LIFECYCLE: &[&str] =
    &["preinstall", "install", "postinstall", "prepare", "preprepare", "postprepare", "prepublish"];

/// Scripts that npm runs before it packs what it publishes.
const PACKING: &[&str] = &["prepack", "prepublishOnly", "prepublish", "prepare"];

/// What stands in the paths of files of keys.
const KEYS: &[&str] = &[
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".netrc",
    ".npmrc",
    ".git-credentials",
    "id_rsa",
    "id_ed25519",
    "credentials",
];

/// Scripts and dependencies of a `package.json`.
pub(super) fn package_json(scan: &mut Scan<'_, '_>, value: &Value) {
    if !scan.path.ends_with("package.json") {
        return;
    }
    for (name, script) in value.get("scripts").and_then(Value::as_object).into_iter().flatten() {
        let Some(script) = script.as_str() else { continue };
        let line = scan.lines.line_with(&format!("\"{name}\""));
        if LIFECYCLE.contains(&name.as_str()) {
            scan.can("install_hook", line, script);
            scan.add(&install_hook(script), line);
        }
        // What these write is packed and published right after.
        if PACKING.contains(&name.as_str()) {
            scan.patterns_in_block("script", &format!("{script}\nnpm publish\n"), line);
        }
        shell::command(scan, script, line);
    }
    for file in value.get("files").and_then(Value::as_array).into_iter().flatten().take(NAMES_MAX) {
        let Some(file) = file.as_str() else { continue };
        let is_outside = file.starts_with(['~', '$']) || file.starts_with("..") || file.contains("/../");
        if is_outside && KEYS.iter().any(|key| file.contains(key)) {
            let line = scan.lines.line_with(&format!("\"{file}\""));
            scan.add(&FOREIGN_FILE, line);
        }
    }
    for group in ["dependencies", "devDependencies", "optionalDependencies"] {
        for (name, version) in value.get(group).and_then(Value::as_object).into_iter().flatten() {
            let Some(version) = version.as_str().filter(|version| is_remote(version)) else { continue };
            let line = scan.lines.line_with(&format!("\"{name}\""));
            scan.can("remote_dependency", line, &format!("{name} {version}"));
            scan.add(remote(version), line);
        }
        let names = value.get(group).and_then(Value::as_object).into_iter().flat_map(Map::keys);
        for name in names.take(NAMES_MAX) {
            scan.found.work.charge(NAME_COST);
            if look_alike(scan.engines.rules.words(WordKind::PackageNpm), name) {
                let line = scan.lines.line_with(&format!("\"{name}\""));
                scan.add(&LOOK_ALIKE, line);
            }
        }
    }
}

/// What is to be said of a package from an address.
fn remote(address: &str) -> &'static Rule<'static> {
    if is_bare(address) { &BARE } else { &REMOTE }
}

/// Whether an address is a number of the public internet instead of a name, whatever the scheme.
pub(super) fn is_bare(address: &str) -> bool {
    let Some((_, rest)) = address.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#', ' ', ';']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let address = match host.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default().parse().map(IpAddr::V6),
        None => host.split(':').next().unwrap_or_default().parse().map(IpAddr::V4),
    };
    match address {
        Ok(IpAddr::V4(address)) => {
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_unspecified())
        }
        Ok(IpAddr::V6(address)) => {
            !(address.is_loopback()
                || address.is_unspecified()
                || address.is_unique_local()
                || address.is_unicast_link_local())
        }
        Err(_) => false,
    }
}

fn install_hook(script: &str) -> Rule<'static> {
    // Builds are common; programs of the package that run at once are how malware starts.
    let runs_own = ["node ", "python", "bash ", "sh ", "curl", "wget", "powershell", "./", "-e "]
        .iter()
        .any(|sign| script.contains(sign));
    Rule {
        id: "bundle.install-hook",
        category: "install_hook",
        severity: if runs_own { Severity::Medium } else { Severity::Low },
        reason: "A command runs as soon as the package is installed.",
        fix: "Let the user run it, or leave it out.",
    }
}

const REMOTE: Rule<'static> = Rule {
    id: "bundle.remote-dependency",
    category: "supply_chain",
    severity: Severity::Medium,
    reason: "A dependency comes from an address instead of the registry.",
    fix: "Name a released version of the registry.",
};

const FOREIGN_FILE: Rule<'static> = Rule {
    id: "bundle.package-foreign-file",
    category: "exfiltration",
    severity: Severity::High,
    reason: "A package is to publish a file of keys from outside of its folder.",
    fix: "Name files of the package only.",
};

const BARE: Rule<'static> = Rule {
    id: "bundle.bare-dependency",
    severity: Severity::High,
    reason: "A dependency comes from a bare address of the internet: nobody can tell whose it is, and what lies there can change.",
    ..REMOTE
};

const LOOK_ALIKE: Rule<'static> = Rule {
    id: "bundle.look-alike-dependency",
    category: "supply_chain",
    severity: Severity::High,
    reason: "The name of a dependency is one letter away from that of a well-known package.",
    fix: "Check the name of the package.",
};

const FOREIGN_INDEX: Rule<'static> = Rule {
    id: "bundle.foreign-index",
    category: "supply_chain",
    severity: Severity::High,
    reason: "Packages are looked for in a second index, which may answer for names of the first.",
    fix: "Use one index; pin hashes where a private one is needed.",
};

fn is_remote(version: &str) -> bool {
    version.contains("://") && !version.starts_with("file:") || version.starts_with("git+")
}

/// Requirements of pip: other indexes and packages from addresses.
pub(super) fn requirements(scan: &mut Scan<'_, '_>) {
    scan.engine("config");
    for (number, line) in (1..).zip(scan.text.lines()) {
        let line = line.trim();
        let option = line.split(['=', ' ']).next().unwrap_or_default();
        if matches!(
            option,
            "--extra-index-url" | "--index-url" | "-i" | "--find-links" | "-f" | "--trusted-host"
        ) {
            scan.can("package_index", number, line);
            if !is_own_index(line) {
                scan.add(&FOREIGN_INDEX, number);
            }
        } else if !line.starts_with('#') && (line.contains("://") || line.starts_with("git+")) {
            scan.can("remote_dependency", number, line);
            scan.add(remote(line), number);
        } else if !line.is_empty() && !line.starts_with(['#', '-']) && number as usize <= NAMES_MAX {
            scan.found.work.charge(NAME_COST);
            if look_alike(scan.engines.rules.words(WordKind::PackagePython), &python_name(line)) {
                scan.add(&LOOK_ALIKE, number);
            }
        }
    }
}

/// Whether an address is that of a public index, or of one on this machine.
fn is_own_index(address: &str) -> bool {
    ["pypi.org", "pythonhosted.org", "download.pytorch.org", "pypi.nvidia.com", "localhost"]
        .iter()
        .any(|host| address.contains(host))
}

/// Requirements that a script of Python brings along in its comments (PEP 723).
pub(super) fn inline_metadata(scan: &mut Scan<'_, '_>) {
    let is_start = |line: &&str| line.trim_end() != "# /// script";
    let mut lines = scan.text.lines().skip_while(is_start).skip(1);
    let mut block = String::new();
    for line in lines.by_ref().take_while(|line| line.starts_with('#')) {
        if line.trim_end() == "# ///" {
            break;
        }
        block.push_str(line.strip_prefix("# ").unwrap_or(&line[1..]));
        block.push('\n');
    }
    if block.is_empty() || block.len() > INLINE_BYTES_MAX {
        return;
    }
    let Ok(value) = toml::from_str::<Value>(&block) else { return };
    for dependency in
        value.get("dependencies").and_then(Value::as_array).into_iter().flatten().take(NAMES_MAX)
    {
        self::dependency(scan, dependency.as_str().unwrap_or_default());
    }
    let settings = value.pointer("/tool/uv");
    let named =
        ["index-url", "extra-index-url", "find-links"].map(|name| settings.and_then(|one| one.get(name)));
    let listed = settings.and_then(|one| one.get("index")).and_then(Value::as_array);
    let listed = listed.into_iter().flatten().filter_map(|index| index.get("url"));
    let addresses = named.into_iter().flatten().chain(listed).flat_map(|value| match value {
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect::<Vec<_>>(),
    });
    for address in addresses {
        let line = scan.lines.line_with(address);
        scan.can("package_index", line, address);
        if !is_own_index(address) {
            scan.add(&FOREIGN_INDEX, line);
        }
    }
}

/// Bytes of the requirements of one script.
const INLINE_BYTES_MAX: usize = 16 << 10;

/// One requirement of a project or a script.
fn dependency(scan: &mut Scan<'_, '_>, dependency: &str) {
    if dependency.contains("://") {
        let line = scan.lines.line_with(dependency);
        scan.can("remote_dependency", line, dependency);
        scan.add(remote(dependency), line);
    } else {
        scan.found.work.charge(NAME_COST);
        if look_alike(scan.engines.rules.words(WordKind::PackagePython), &python_name(dependency)) {
            let line = scan.lines.line_with(dependency);
            scan.add(&LOOK_ALIKE, line);
        }
    }
}

/// The name of a requirement as the index compares names (PEP 503), without extras, versions and marks.
fn python_name(requirement: &str) -> String {
    let end = requirement
        .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'))
        .unwrap_or(requirement.len());
    requirement[..end].to_ascii_lowercase().replace(['_', '.'], "-")
}

/// Whether a name is that of a well-known package but for two letters that changed places, or in longer names for one letter
/// more, less or other.
fn look_alike(known: &[String], name: &str) -> bool {
    let is_near = |one: &String| {
        let length = one.len().min(name.len());
        match difference(one.as_bytes(), name.as_bytes()) {
            Some(Difference::Swapped) => length >= SWAPPED_BYTES_MIN,
            Some(Difference::Edited) => length >= EDITED_BYTES_MIN,
            None => false,
        }
    };
    name.len() >= SWAPPED_BYTES_MIN && known.iter().any(is_near) && !known.iter().any(|one| one == name)
}

/// How two names differ in one thing.
enum Difference {
    /// Two letters beside each other changed places.
    Swapped,
    /// One letter more, less or other.
    Edited,
}

fn difference(a: &[u8], b: &[u8]) -> Option<Difference> {
    if a.len().abs_diff(b.len()) > 1 {
        return None;
    }
    let before = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[before..], &b[before..]);
    let after = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    match (&a[..a.len() - after], &b[..b.len() - after]) {
        ([], [_]) | ([_], []) | ([_], [_]) => Some(Difference::Edited),
        ([first, second], [third, fourth]) if first == fourth && second == third => Some(Difference::Swapped),
        _ => None,
    }
}

/// Most names of one file that are compared.
const NAMES_MAX: usize = 2_000;
/// Units of work for comparing one name with all that are known.
const NAME_COST: u64 = 4_000;

/// Shortest name of which letters that changed places are told, in bytes.
const SWAPPED_BYTES_MIN: usize = 5;
/// Shortest name of which any other letter is told, in bytes.
const EDITED_BYTES_MIN: usize = 7;

/// Sources and scripts of a `pyproject.toml`.
pub(super) fn pyproject(scan: &mut Scan<'_, '_>, value: &Value) {
    if !scan.path.ends_with("pyproject.toml") {
        return;
    }
    let dependencies = value.pointer("/project/dependencies").and_then(Value::as_array);
    for dependency in dependencies.into_iter().flatten().filter_map(Value::as_str) {
        self::dependency(scan, dependency);
    }
    let backend = value.pointer("/build-system/backend-path").is_some();
    if backend {
        let line = scan.lines.line_with("backend-path");
        scan.can("install_hook", line, "backend-path");
        scan.add(&install_hook("python"), line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundles::rules::BundleRules;

    #[test]
    fn bare_addresses_are_told() {
        for (address, wanted) in [
            ("http://45.9.148.2/a.tgz", true),
            ("https://45.9.148.2:8443/mcp", true),
            ("tool @ https://user@45.9.148.2/a.whl", true),
            ("git+http://45.9.148.2/a.git", true),
            ("http://[2a01:4f8::1]/a", true),
            ("http://10.0.0.5/a.tgz", false),
            ("http://127.0.0.1:3000/mcp", false),
            ("http://[::1]:3000/mcp", false),
            ("http://192.168.1.4/mcp", false),
            ("https://packages.example.org/45.9.148.2/a.tgz", false),
            ("45.9.148.2", false),
        ] {
            assert_eq!(is_bare(address), wanted, "{address}");
        }
    }

    #[test]
    fn names_that_look_alike_are_told() {
        let rules = BundleRules::builtin();
        for (kind, name, wanted) in [
            (WordKind::PackagePython, "reqeusts", true),
            (WordKind::PackagePython, "requestss", true),
            (WordKind::PackagePython, "numyp", true),
            (WordKind::PackagePython, "python-dateutill", true),
            (WordKind::PackagePython, "requests", false),
            (WordKind::PackagePython, "numba", false),
            (WordKind::PackagePython, "team-requests-helper", false),
            (WordKind::PackageNpm, "expresss", true),
            (WordKind::PackageNpm, "lodahs", true),
            (WordKind::PackageNpm, "lodash", false),
            (WordKind::PackageNpm, "preact", false),
        ] {
            assert_eq!(look_alike(rules.words(kind), &python_name(name)), wanted, "{name}");
        }
    }
}
