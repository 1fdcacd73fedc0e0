//! Packages: what is run when they are installed, and where they come from.

use serde_json::Value;

use super::{Rule, Scan, shell};
use crate::decision::Severity;

/// Scripts that npm runs by itself at an installation (npm documentation, scripts).
const LIFECYCLE: &[&str] =
    &["preinstall", "install", "postinstall", "prepare", "preprepare", "postprepare", "prepublish"];

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
        shell::command(scan, script, line);
    }
    for group in ["dependencies", "devDependencies", "optionalDependencies"] {
        for (name, version) in value.get(group).and_then(Value::as_object).into_iter().flatten() {
            let Some(version) = version.as_str().filter(|version| is_remote(version)) else { continue };
            let line = scan.lines.line_with(&format!("\"{name}\""));
            scan.can("remote_dependency", line, &format!("{name} {version}"));
            scan.add(&REMOTE, line);
        }
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
            let is_own =
                ["pypi.org", "pythonhosted.org", "download.pytorch.org", "pypi.nvidia.com", "localhost"]
                    .iter()
                    .any(|host| line.contains(host));
            if !is_own {
                scan.add(&FOREIGN_INDEX, number);
            }
        } else if !line.starts_with('#') && (line.contains("://") || line.starts_with("git+")) {
            scan.can("remote_dependency", number, line);
            scan.add(&REMOTE, number);
        }
    }
}

/// Sources and scripts of a `pyproject.toml`.
pub(super) fn pyproject(scan: &mut Scan<'_, '_>, value: &Value) {
    if !scan.path.ends_with("pyproject.toml") {
        return;
    }
    let dependencies = value.pointer("/project/dependencies").and_then(Value::as_array);
    for dependency in dependencies.into_iter().flatten().filter_map(Value::as_str) {
        if dependency.contains("://") {
            let line = scan.lines.line_with(dependency);
            scan.can("remote_dependency", line, dependency);
            scan.add(&REMOTE, line);
        }
    }
    let backend = value.pointer("/build-system/backend-path").is_some();
    if backend {
        let line = scan.lines.line_with("backend-path");
        scan.can("install_hook", line, "backend-path");
        scan.add(&install_hook("python"), line);
    }
}
