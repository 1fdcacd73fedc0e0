//! How bad a command is where it stands: in a script, in a document, in an image, or in a text that may never run.

use super::{Place, is_shown};
use crate::bundles::files::Syntax;
use crate::bundles::rules::CommandKind;
use crate::bundles::scan::origin::{self, Trust};
use crate::bundles::scan::{Scan, logins};
use crate::decision::Severity;
use crate::shell::UNCALLED;
use crate::shell::analysis::Analysis;
use crate::shell::argument::HOLE;
use crate::shell::effect::Effect;

/// A rule that holds, with what it holds for.
pub(super) struct Hit<'h> {
    pub id: &'h str,
    pub severity: Severity,
    pub effect: &'h Effect,
    /// The text that was followed; empty for a list of arguments.
    pub text: &'h str,
    /// All that is known of it.
    pub analysis: &'h Analysis,
}

/// How bad a hit is where it stands; `None` when it says nothing there.
pub(super) fn severity_of(
    scan: &mut Scan<'_, '_>,
    hit: &Hit<'_>,
    line: u32,
    place: Place,
) -> Option<Severity> {
    let Hit { id, severity, effect, text, analysis } = *hit;
    // What nothing calls runs with words that are not known: only what is hostile whatever they are says something.
    if effect.via.contains(&UNCALLED) && !scan.engines.rules.is_command(CommandKind::Hostile, id) {
        return None;
    }
    if id == "command.fetch-and-execute" {
        let url = effect.target.as_ref().map_or("", |target| target.text.as_str());
        if place == Place::Prose && !url.contains(['.', '/']) && effect.via.is_empty() {
            return None;
        }
        // What hides where it comes from is not trusted for the name that comes out.
        let is_plain = text.is_empty() || url.is_empty() || text.contains(url.trim_end_matches('/'));
        let trust =
            if is_plain { origin::trust_of(scan.engines.rules, url, scan.text) } else { Trust::Unknown };
        if place == Place::Literal && !url.contains(['.', ':']) {
            return None;
        }
        let is_trusted = trust == Trust::Known || trust == Trust::Named && place != Place::Script;
        // A runner that is given a repository is how servers are started before they are released.
        if is_trusted || is_plain && origin::is_repository(scan.engines.rules, url) {
            return Some(Severity::Medium);
        }
    }
    // Whoever is behind the tunnel gets into the machine; of any other service the reader is told.
    if id == "command.tunnel-service"
        && place == Place::Script
        && matches!(&*effect.detail, "shell" | "everything")
    {
        return Some(Severity::High);
    }
    let is_own_hooks = id == "command.git-hooks" && text.get(effect.span.clone()).is_some_and(sets_own_hooks);
    // What is written while an image is built is part of the image, and nothing of the machine.
    let is_of_image = id == "command.write-system-file"
        && (scan.syntax == Syntax::Docker || is_of_container(scan.path, effect));
    let is_hardening = id == "command.write-system-file" && logins::hardens(effect, analysis);
    // What everybody on the machine may know of it.
    let is_public = id == "command.metadata-service"
        && effect.target.as_ref().is_some_and(|target| is_public_metadata(&target.text));
    let is_no_device = id == "command.disk-write"
        && place != Place::Script
        && effect.target.as_ref().is_some_and(|target| {
            is_placeholder_device(&target.text) && !names_device(scan.text, &target.text)
        });
    if is_own_hooks || is_of_image || is_public || is_hardening || is_no_device {
        return Some(severity.min(Severity::Medium));
    }
    if place == Place::Script {
        let is_deliberate = scan.engines.rules.is_command(CommandKind::Deliberate, id);
        let grows = id == "command.write-profile" && is_loaded(effect, text);
        return Some(match severity {
            _ if grows => Severity::High,
            severity
                if scan.engines.rules.is_command(CommandKind::OfMany, id) && is_one_file(effect, text) =>
            {
                severity.min(Severity::Medium)
            }
            Severity::High | Severity::Critical if is_deliberate => Severity::Medium,
            severity => severity,
        });
    }
    if place == Place::Literal {
        let is_told = scan.engines.rules.is_command(CommandKind::HandedOver, id);
        let is_shown = is_told && is_shown(scan, line, place);
        return is_told.then(|| if is_shown { severity.min(Severity::Medium) } else { severity });
    }
    let is_form = effect.target.as_ref().is_some_and(|target| is_placeholder_host(&target.text));
    let blocks =
        scan.engines.rules.is_command(CommandKind::Hostile, id) && !is_form && !scan.is_line_described(line);
    Some(if blocks { severity } else { severity.min(Severity::Medium) })
}

/// Whether a script that sets up a container for development says who may become its administrator.
fn is_of_container(path: &str, effect: &Effect) -> bool {
    let is_inside = path.starts_with(".devcontainer/") || path.contains("/.devcontainer/");
    is_inside && effect.target.as_ref().is_some_and(|target| target.text.starts_with("/etc/sudoers"))
}

/// Parts of the paths by which the service of a cloud tells what a machine is, without a secret (documented by their makers).
const PUBLIC_METADATA: &[&str] = &[
    "/latest/meta-data/placement/",
    "/latest/meta-data/instance-",
    "/latest/meta-data/ami-",
    "/latest/meta-data/hostname",
    "/latest/meta-data/local-",
    "/latest/meta-data/public-hostname",
    "/latest/meta-data/public-ipv4",
    "/latest/meta-data/mac",
    "/latest/meta-data/network/",
    "/latest/meta-data/tags/",
    "/latest/meta-data/services/",
    "/latest/api/token",
    "/latest/dynamic/instance-identity/document",
    "/computeMetadata/v1/instance/zone",
    "/computeMetadata/v1/instance/name",
    "/computeMetadata/v1/instance/id",
    "/computeMetadata/v1/instance/machine-type",
    "/computeMetadata/v1/instance/hostname",
    "/computeMetadata/v1/instance/region",
    "/computeMetadata/v1/project/project-id",
    "/computeMetadata/v1/project/numeric-project-id",
    "/metadata/instance/compute",
];

/// Whether an address asks the service of a cloud for nothing secret.
fn is_public_metadata(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let Some(path) = rest.find('/').map(|at| &rest[at..]) else { return false };
    let is_plain = !path.contains(HOLE) && !path.contains("..") && !path.contains('%');
    is_plain && PUBLIC_METADATA.iter().any(|public| path.starts_with(public))
}

/// Whether a command takes the hooks of this repository from a folder of it, as its own set-up does.
fn sets_own_hooks(command: &str) -> bool {
    let mut words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    let mut is_everywhere = false;
    let setting = words.by_ref().find(|word| {
        is_everywhere |= matches!(*word, "--global" | "--system" | "--file" | "-f");
        word.to_ascii_lowercase().ends_with("core.hookspath")
    });
    let Some(folder) = words.next().filter(|_| setting.is_some() && !is_everywhere) else { return false };
    let leads_away =
        folder.starts_with(['/', '~', '$', '-', '%']) || folder.contains("..") || folder.contains(':');
    !leads_away && !folder.is_empty()
}

/// Whether an address in a document names no machine but the place for one, in capitals: `ATTACKER:4444`,
/// `https://YOUR_HOST/x`.
fn is_placeholder_host(address: &str) -> bool {
    let host = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = host.split([':', '/']).next().unwrap_or_default();
    host.len() >= 3
        && host.bytes().any(|byte| byte.is_ascii_uppercase())
        && host.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'))
}

/// Whether a device in a document is the place for one: no system gives a device a number in capitals.
fn is_placeholder_device(path: &str) -> bool {
    let Some(name) = path.strip_prefix("/dev/") else { return false };
    let (kind, number) = name.split_at(name.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(name.len()));
    ["sd", "hd", "vd", "xvd", "disk", "rdisk", "nvme", "mmcblk"].contains(&kind)
        && number.starts_with(['X', 'Y', 'Z', 'N'])
        && number.len() <= 6
}

/// Whether a document makes a device of the place for one: by a link or a node, or by telling which one it is.
fn names_device(text: &str, device: &str) -> bool {
    let name = device.strip_prefix("/dev/").unwrap_or(device);
    text.lines().filter(|line| line.contains(name)).any(|line| {
        let words = line.to_ascii_lowercase();
        let is_made =
            line.contains(device) && ["ln ", "mknod ", "losetup "].iter().any(|made| words.contains(made));
        let is_told = words.contains("replace") || words.contains("stands for") || words.contains(" set ");
        is_made
            || is_told
                && ["system", "root", "boot", "internal", "main disk"].iter().any(|own| words.contains(own))
    })
}

/// Whether a command means one file, by a name that stands in it and leads nowhere else: `key.pem`, `"$TMP/key.pem"`.
fn is_one_file(effect: &Effect, text: &str) -> bool {
    let Some(target) = &effect.target else { return false };
    let (folder, name) = target.text.rsplit_once('/').unwrap_or(("", &target.text));
    let is_plain = |c: char| c.is_alphanumeric() || "_-. ".contains(c);
    let is_name = name.contains('.') && name.chars().all(is_plain) && !name.trim_matches('.').is_empty();
    // Made absolute where it is known: only what stands in the command as it is can be a name of its own.
    let stands = text.get(effect.span.clone()).unwrap_or_default();
    let is_here = folder.is_empty() || folder.starts_with(HOLE) || stands.contains(&format!(" {name}"));
    let leads_up = folder.split('/').any(|part| part == "..") || stands.contains('~');
    is_name && is_here && !leads_up && !effect.recursive && !target.has_glob && effect.via.is_empty()
}

/// Whether what is written to a profile fetches or decodes something, rather than setting a path.
fn is_loaded(effect: &Effect, text: &str) -> bool {
    let line = text.get(effect.span.clone()).unwrap_or_default();
    let before = text.get(..effect.span.start).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let end = text
        .get(effect.span.end..)
        .and_then(|rest| rest.find('\n'))
        .map_or(text.len(), |at| effect.span.end + at);
    let whole = text.get(start..end).unwrap_or(line);
    ["curl ", "wget ", "base64", "/dev/tcp", "nc ", "python -c", "python3 -c", "eval "]
        .iter()
        .any(|sign| whole.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_of_a_repository_are_told_from_those_of_elsewhere() {
        for (command, wanted) in [
            ("git config core.hooksPath .githooks", true),
            ("git config --local core.hooksPath 'scripts/hooks'", true),
            ("git config --global core.hooksPath .githooks", false),
            ("git config core.hooksPath /dev/null", false),
            ("git config core.hooksPath ../hooks", false),
            ("git config core.hooksPath ~/hooks", false),
            ("git config core.hooksPath", false),
            ("git -c core.hooksPath=/dev/null commit", false),
            ("git commit --no-verify", false),
        ] {
            assert_eq!(sets_own_hooks(command), wanted, "{command}");
        }
    }

    #[test]
    fn a_place_for_a_device_is_one_until_the_document_names_the_device() {
        for (text, wanted) in [
            ("ln -sf /dev/sda /dev/sdX", true),
            ("mknod /dev/sdX b 8 0", true),
            ("Replace sdX by the disk the system is on, then run:", true),
            ("Replace sdX by your stick, then run:", false),
            ("dd if=a.img of=/dev/sdX", false),
        ] {
            assert_eq!(names_device(text, "/dev/sdX"), wanted, "{text}");
        }
    }
}
