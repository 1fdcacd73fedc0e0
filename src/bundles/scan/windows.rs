//! Scripts of PowerShell and batch files: what their commands do, and what their text says once names that were broken up or
//! put together are whole.

use super::{Rule, Scan, shell};
use crate::bundles::rules::CommandKind;
use crate::bundles::work::Task;
use crate::commands::GuardContext;
use crate::decision::Severity;
use crate::paths::Place;
use crate::shell::analyse_argv;
use crate::shell::effect::{Effect, EffectKind};
use crate::shell::limits::Limits;
use crate::shell::scripts::unfolded_powershell;

/// Largest script that is followed, in bytes. Rules about text read what is longer.
const SCRIPT_BYTES_MAX: usize = 256 << 10;
/// Most findings about commands of one script whose lines are looked for.
const HITS_MAX: usize = 50;
/// Most variables of one batch file that are known.
const VARIABLES_MAX: usize = 200;
/// Longest line of a batch file once its variables stand in it, in bytes.
const LINE_BYTES_MAX: usize = 8 << 10;

/// Variables that Windows sets, and the places that they stand for as commands are judged.
const KNOWN: &[(&str, &str)] = &[
    ("userprofile", "~"),
    ("homepath", "~"),
    ("homedrive", ""),
    ("systemdrive", "C:"),
    ("systemroot", "C:/Windows"),
    ("windir", "C:/Windows"),
];

/// A script of PowerShell.
pub(super) fn powershell(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    scan.engine("shell");
    if text.len() <= SCRIPT_BYTES_MAX && scan.may(Task::Follow, text.len()) {
        let argv = ["powershell", "-Command", text].map(str::to_owned);
        let analysis = analyse_argv(&argv, Place::default(), &Limits::default());
        let hits = scan.engines.commands.judge(&analysis, &GuardContext::default());
        for hit in hits.into_iter().take(HITS_MAX) {
            let effect = &analysis.effects[hit.effect];
            // What the words of a whole script could add up to says little: rules about text look at words that stand together.
            if is_of_whole_text(effect) {
                continue;
            }
            let line = line_of(scan, effect);
            let is_deliberate = scan.engines.rules.is_command(CommandKind::Deliberate, &hit.rule.id);
            let severity =
                if is_deliberate { hit.rule.severity.min(Severity::Medium) } else { hit.rule.severity };
            scan.add(&Rule::of_command(hit.rule, severity), line);
        }
    }
    if let Some(whole) = unfolded_powershell(text).filter(|whole| whole != text) {
        scan.patterns_in_block("script", &whole, 1);
    }
}

/// Whether an effect was told by words anywhere in a script.
fn is_of_whole_text(effect: &Effect) -> bool {
    let is_told = matches!(
        effect.kind,
        EffectKind::FetchAndExecute
            | EffectKind::OpaqueExecution
            | EffectKind::ReverseShell
            | EffectKind::BindShell
    );
    is_told && effect.detail == "powershell"
}

/// The first line that names the program of an effect, and the end of what it acts on where that is told.
fn line_of(scan: &Scan<'_, '_>, effect: &Effect) -> u32 {
    let program = effect.program.to_ascii_lowercase();
    let target = effect.target.as_ref().map(|target| target.text.to_ascii_lowercase()).unwrap_or_default();
    let end = target.rsplit(['/', '\\', '\0']).find(|part| part.len() > 2).unwrap_or_default();
    let holds = |line: &str| {
        let line = line.to_ascii_lowercase();
        line.contains(&program) && line.contains(end)
    };
    let names = |line: &str| line.to_ascii_lowercase().contains(&program);
    let lines = || (1..).zip(scan.text.lines());
    let exact = lines().find(|(_, line)| holds(line));
    exact.or_else(|| lines().find(|(_, line)| names(line))).map_or(1, |(number, _)| number)
}

/// A batch file: each of its commands, with the variables that it sets.
pub(super) fn batch(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    scan.engine("shell");
    if text.len() > SCRIPT_BYTES_MAX || !scan.may(Task::Follow, text.len()) {
        return;
    }
    let mut variables: Vec<(String, String)> =
        KNOWN.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut whole = String::with_capacity(text.len());
    for (number, line) in (1..).zip(text.lines()) {
        let plain = line.trim().trim_start_matches('@').replace('^', "");
        let filled = fill(&plain, &variables);
        whole.push_str(&filled);
        whole.push('\n');
        let command = without_condition(filled.trim());
        let word = command.split([' ', '\t', '(']).next().unwrap_or_default().to_ascii_lowercase();
        match word.as_str() {
            "" | "rem" | "title" | "setlocal" | "endlocal" | "goto" | "exit" | "pause" => continue,
            _ if word.starts_with([':', ')', '(']) => continue,
            "set" => {
                set(&command[3..], &mut variables);
                // What a pipe or `&` stands behind runs as well.
                if !command.contains(['&', '|']) {
                    continue;
                }
            }
            _ => {}
        }
        let argv = ["cmd".to_owned(), "/c".to_owned(), command.to_owned()];
        shell::argv(scan, &argv, number);
    }
    if whole.trim_end() != text.trim_end() {
        scan.patterns_in_block("script", &whole, 1);
    }
}

/// A command without `if …` and `call` before it.
fn without_condition(command: &str) -> &str {
    let mut rest = command;
    for _ in 0..4 {
        let (word, after) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        rest = match word.to_ascii_lowercase().as_str() {
            "call" => after.trim_start(),
            "if" => {
                let mut words = after.trim_start();
                for skipped in ["/i", "not", "exist", "defined", "errorlevel"] {
                    let (first, behind) = words.split_once([' ', '\t']).unwrap_or((words, ""));
                    if first.eq_ignore_ascii_case(skipped) {
                        words = behind.trim_start();
                    }
                }
                // What is compared is one word, which quotes may hold together.
                let end = match words.strip_prefix('"').and_then(|inner| inner.find('"')) {
                    Some(quote) => quote + 2,
                    None => 0,
                };
                let end = words[end..].find([' ', '\t']).map_or(words.len(), |at| end + at);
                words[end..].trim_start().trim_start_matches('(').trim_start()
            }
            _ => return rest,
        };
    }
    rest
}

/// `NAME=value`, in quotes or not.
fn set(assignment: &str, variables: &mut Vec<(String, String)>) {
    let assignment = assignment.trim().trim_matches('"');
    let Some((name, value)) = assignment.split_once('=').filter(|(name, _)| !name.trim().starts_with('/'))
    else {
        return;
    };
    let name = name.trim().to_ascii_lowercase();
    variables.retain(|(known, _)| *known != name);
    if variables.len() < VARIABLES_MAX {
        variables.push((name, value.trim_matches('"').to_owned()));
    }
}

/// A line with the variables that are known in it.
fn fill(line: &str, variables: &[(String, String)]) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = rest.find(['%', '!']) {
        let sign = &rest[at..=at];
        let after = &rest[at + 1..];
        let name = after.split_once(sign).map(|(name, _)| name).filter(|name| {
            !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'(' | b')'))
        });
        out.push_str(&rest[..at]);
        let known = name.and_then(|name| {
            let value = variables.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            value.map(|(_, value)| (name, value))
        });
        rest = match known {
            Some((name, value)) if out.len() + value.len() <= LINE_BYTES_MAX => {
                out.push_str(value);
                &after[name.len() + 1..]
            }
            _ => {
                out.push_str(sign);
                after
            }
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_batch_files_are_made_whole() {
        let mut variables = vec![("userprofile".to_owned(), "~".to_owned())];
        set("\"A=rd /s\"", &mut variables);
        set(" b=/q ", &mut variables);
        set("/a n=1+1", &mut variables);
        for (line, wanted) in [
            ("%A% %B% %UserProfile%", "rd /s /q ~"),
            ("!A! x", "rd /s x"),
            ("%1 %~dp0 50% %UNKNOWN%", "%1 %~dp0 50% %UNKNOWN%"),
            ("for %%f in (*) do del %%f", "for %%f in (*) do del %%f"),
        ] {
            assert_eq!(fill(line, &variables), wanted);
        }
        for (line, wanted) in [
            ("if exist \"a b\\c\" rd /s c", "rd /s c"),
            ("if /i not \"%1\"==\"x\" (del a", "del a"),
            ("if defined A call b.bat", "b.bat"),
            ("call b.bat", "b.bat"),
            ("echo if", "echo if"),
        ] {
            assert_eq!(without_condition(line), wanted);
        }
    }
}
