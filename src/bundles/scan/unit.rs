//! Files that tell a system what to start: units of systemd, desktop entries, property lists of launchd.

use super::{Scan, shell};

/// Settings whose value is a command line (systemd.service, Desktop Entry Specification).
const COMMANDS: &[&str] = &[
    "ExecStart",
    "ExecStartPre",
    "ExecStartPost",
    "ExecStop",
    "ExecStopPost",
    "ExecReload",
    "ExecCondition",
    "Exec",
];

/// Looks at every command of the file.
pub(super) fn commands(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    if text.contains("<plist") {
        property_list(scan);
        return;
    }
    let is_table = scan.path.rsplit('/').next().is_some_and(|name| name.contains("cron"));
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(command) = scheduled(line).filter(|_| is_table) {
            scan.engine("shell");
            scan.can("scheduled_command", number, command);
            shell::command(scan, command, number);
            // Tables of the system name the user before the command.
            if let Some((_, command)) = command.split_once(' ') {
                shell::command(scan, command, number);
            }
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        if COMMANDS.contains(&name.trim()) {
            scan.engine("shell");
            // Signs before the program change how it is started.
            let command = value.trim().trim_start_matches(['-', '@', '+', '!', ':']);
            scan.can("service_command", number, command);
            shell::command(scan, command, number);
        }
    }
}

/// The command of a line of a crontab: behind five fields of times, or a name such as `@reboot`.
pub(super) fn scheduled(line: &str) -> Option<&str> {
    let line = line.trim();
    let fields = if line.starts_with('@') { 1 } else { 5 };
    let mut rest = line;
    for _ in 0..fields {
        let (field, after) = rest.split_once([' ', '\t'])?;
        let is_time = |c: char| c.is_ascii_alphanumeric() || matches!(c, '*' | '/' | ',' | '-' | '@');
        if !field.chars().all(is_time)
            || fields == 5 && !field.contains(|c: char| c == '*' || c.is_ascii_digit())
        {
            return None;
        }
        rest = after.trim_start();
    }
    (!rest.is_empty()).then_some(rest)
}

/// `ProgramArguments` of launchd: an array of strings.
fn property_list(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    for (at, key) in text.match_indices("<key>ProgramArguments</key>").take(16) {
        let rest = &text[at + key.len()..];
        let array = rest.split("</array>").next().unwrap_or_default();
        let words: Vec<String> = array.split("<string>").skip(1).map(unescaped).collect();
        if !words.is_empty() {
            let line = scan.lines.line_of(at);
            scan.engine("shell");
            scan.can("service_command", line, &words.join(" "));
            shell::argv(scan, &words, line);
        }
    }
}

/// The text of an element, up to its end, with the references of XML read.
fn unescaped(part: &str) -> String {
    let text = part.split("</string>").next().unwrap_or_default();
    let names = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    names.iter().fold(text.to_owned(), |text, (name, sign)| text.replace(name, sign))
}
