//! Edits of the server of logins that make it refuse more than before, and do nothing else.

use crate::shell::analysis::Analysis;
use crate::shell::effect::Effect;

/// The file of its settings, and the folder of others that it reads.
const FILE: &str = "/etc/ssh/sshd_config";
const FOLDER: &str = "/etc/ssh/sshd_config.d/";

/// What a setting may be set to without anybody getting in who could not before (sshd_config manual).
enum Strict {
    /// Only this.
    Is(&'static str),
    /// A number up to this one.
    UpTo(u32),
    /// Any number: it only says when a connection is given up, or on which port the server listens.
    Number,
}

const SETTINGS: &[(&str, Strict)] = &[
    ("AllowAgentForwarding", Strict::Is("no")),
    ("AllowStreamLocalForwarding", Strict::Is("no")),
    ("AllowTcpForwarding", Strict::Is("no")),
    ("ChallengeResponseAuthentication", Strict::Is("no")),
    ("ClientAliveCountMax", Strict::UpTo(10)),
    ("ClientAliveInterval", Strict::Number),
    ("Compression", Strict::Is("no")),
    ("DebianBanner", Strict::Is("no")),
    ("GSSAPIAuthentication", Strict::Is("no")),
    ("GatewayPorts", Strict::Is("no")),
    ("HostbasedAuthentication", Strict::Is("no")),
    ("IgnoreRhosts", Strict::Is("yes")),
    ("KbdInteractiveAuthentication", Strict::Is("no")),
    ("KerberosAuthentication", Strict::Is("no")),
    ("LogLevel", Strict::Is("VERBOSE")),
    ("LoginGraceTime", Strict::UpTo(120)),
    ("MaxAuthTries", Strict::UpTo(6)),
    ("MaxSessions", Strict::UpTo(10)),
    ("PasswordAuthentication", Strict::Is("no")),
    ("PermitEmptyPasswords", Strict::Is("no")),
    ("PermitRootLogin", Strict::Is("no")),
    ("PermitRootLogin", Strict::Is("prohibit-password")),
    ("PermitTunnel", Strict::Is("no")),
    ("PermitUserEnvironment", Strict::Is("no")),
    ("Port", Strict::Number),
    ("Protocol", Strict::Is("2")),
    ("PubkeyAuthentication", Strict::Is("yes")),
    ("StrictModes", Strict::Is("yes")),
    ("TCPKeepAlive", Strict::Is("no")),
    ("UseDNS", Strict::Is("no")),
    ("UsePAM", Strict::Is("yes")),
    ("X11Forwarding", Strict::Is("no")),
];

/// Whether an effect makes the server of logins refuse more than before, and does nothing else.
pub(super) fn hardens(effect: &Effect, analysis: &Analysis) -> bool {
    let Some(path) = effect.target.as_ref().map(|target| target.text.as_str()) else { return false };
    let is_part =
        path.strip_prefix(FOLDER).is_some_and(|name| name.ends_with(".conf") && !name.contains('/'));
    if effect.program == "sed" {
        return path == FILE && is_edit(effect, path);
    }
    // A file of its own, or lines behind the others: of two lines for one setting the server takes the first.
    let writes = matches!(&*effect.program, "" | "tee");
    let mut written = analysis.written.iter().filter(|one| one.path == path).peekable();
    writes
        && (is_part || path == FILE && effect.detail == "append")
        && written.peek().is_some()
        && written.all(|one| one.text.as_deref().is_some_and(is_strict_text))
}

/// Whether every line of a text is a stricter setting, a comment or empty.
fn is_strict_text(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#') || is_strict(line))
}

/// Whether a line lets nobody in who could not get in before.
fn is_strict(line: &str) -> bool {
    let Some((name, value)) = line.split_once(' ') else { return false };
    let value = value.trim();
    SETTINGS.iter().filter(|(setting, _)| *setting == name).any(|(_, strict)| match strict {
        Strict::Is(wanted) => value == *wanted,
        Strict::UpTo(most) => value.parse::<u32>().is_ok_and(|number| (1..=*most).contains(&number)),
        Strict::Number => value.parse::<u32>().is_ok_and(|number| number < 1 << 16),
    })
}

/// Whether `sed` puts stricter lines in the place of lines for the same settings, and does nothing else.
fn is_edit(effect: &Effect, path: &str) -> bool {
    let mut words = effect.argv.iter().skip(1).map(|one| one.text.as_str());
    let (mut edits, mut is_script) = (0, true);
    let all_strict = words.all(|word| match word {
        "-i" | "-E" | "-r" | "-i.bak" | "--in-place" => true,
        "-e" => {
            is_script = true;
            true
        }
        word if word == path => edits > 0,
        script if std::mem::take(&mut is_script) => {
            edits += 1;
            script.split([';', '\n']).map(str::trim).filter(|edit| !edit.is_empty()).all(is_stricter)
        }
        _ => false,
    });
    edits > 0 && all_strict
}

/// Whether one edit puts a stricter line in the place of the line for the same setting.
fn is_stricter(edit: &str) -> bool {
    let Some(rest) = edit.strip_prefix('s') else { return false };
    let Some(separator) = rest.chars().next() else { return false };
    let mut parts = rest[separator.len_utf8()..].split(separator);
    let mut part = || parts.next().unwrap_or_default();
    let (old, new, flags) = (part(), part().trim(), part());
    let old = old.trim_start_matches(['^', '\\', '#', '?', '*', ' ', '(']).trim_start_matches("s*");
    let old = old.trim_start_matches(['(', '\\']);
    let end = old.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(old.len());
    let (name, behind) = old.split_at(end);
    // `\1 4`: the name that the pattern found.
    let new = match new.strip_prefix("\\1").filter(|_| behind.trim_start_matches('\\').starts_with(')')) {
        Some(value) => format!("{name}{value}"),
        None => new.to_owned(),
    };
    is_strict(&new)
        && new.split(' ').next() == Some(name)
        && behind.chars().all(|c| c.is_ascii_alphanumeric() || " .*$\\+-[]:()|".contains(c))
        && !behind.ends_with(" no")
        && parts.next().is_none()
        && flags.chars().all(|flag| "gIi".contains(flag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::effect::EffectKind;
    use crate::shell::limits::Limits;

    #[test]
    fn stricter_edits_are_told_from_others() {
        for (script, wanted) in [
            ("sudo sed -i 's/^#MaxAuthTries.*/MaxAuthTries 3/' /etc/ssh/sshd_config", true),
            ("sudo sed -i -E 's/^#?(MaxAuthTries).*/\\1 3/' /etc/ssh/sshd_config", true),
            ("sudo sed -i 's/^#MaxAuthTries.*/MaxAuthTries 300/' /etc/ssh/sshd_config", false),
            ("sudo sed -i -E 's/^#?(PermitRootLogin).*/\\1 yes/' /etc/ssh/sshd_config", false),
            (
                "sudo sed -i 's/^#UseDNS.*/UseDNS no/; s/^#X11Forwarding.*/X11Forwarding no/' /etc/ssh/sshd_config",
                true,
            ),
            (
                "sudo sed -i 's/^#UseDNS.*/UseDNS no/; s/^PasswordAuthentication no/#/' /etc/ssh/sshd_config",
                false,
            ),
            ("sudo sed -i 's/^DenyUsers.*/UseDNS no/' /etc/ssh/sshd_config", false),
            ("sudo sed -i 's/^#Port .*/Port 2022/' /etc/ssh/sshd_config", true),
            (
                "printf 'X11Forwarding no\\nMaxAuthTries 4\\n' | sudo tee /etc/ssh/sshd_config.d/50-a.conf",
                true,
            ),
            ("printf 'PermitRootLogin yes\\n' | sudo tee /etc/ssh/sshd_config.d/50-a.conf", false),
            ("echo 'X11Forwarding no' | sudo tee /etc/ssh/sshd_config", false),
            ("echo 'X11Forwarding no' | sudo tee -a /etc/ssh/sshd_config", true),
            ("cat > /etc/ssh/sshd_config.d/a.conf <<E\n# only keys\nPasswordAuthentication no\nE\n", true),
            ("cat > /etc/ssh/sshd_config.d/a.conf <<E\nMatch User x\nPasswordAuthentication yes\nE\n", false),
            ("echo \"$LINES\" | sudo tee /etc/ssh/sshd_config.d/a.conf", false),
            ("echo 'AuthorizedKeysFile /tmp/k' >> /etc/ssh/sshd_config", false),
        ] {
            let analysis = crate::shell::analyse(script, crate::paths::Place::default(), &Limits::default());
            let mut writes = analysis
                .effects
                .iter()
                .filter(|effect| effect.kind == EffectKind::WritePath)
                .filter(|effect| {
                    effect.target.as_ref().is_some_and(|target| target.text.starts_with("/etc/ssh/"))
                })
                .peekable();
            let is_hardened = writes.peek().is_some() && writes.all(|effect| hardens(effect, &analysis));
            assert_eq!(is_hardened, wanted, "{script}: {:?}", analysis.written);
        }
    }
}
