//! The arguments that we work out beside those that bash hands over.
//!
//! Bash runs here, with a PATH that holds nothing but a recorder under the name `rm`: it writes its arguments down and does
//! nothing else. The lines are harmless besides, and name no program by its path.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use portcullis::paths::{Os, Place};
use portcullis::shell::analyse;
use portcullis::shell::argument::HOLE;
use portcullis::shell::limits::Limits;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Made-up lines that bash is asked about.
const MADE_UP: usize = 400;

/// Arguments of each call, the program left out.
type Calls = Vec<Vec<String>>;

/// What the recorder was called with while each line ran, or nothing if there is no bash.
fn recorded(lines: &[String]) -> Option<Vec<Calls>> {
    let folder = tempfile::tempdir().expect("a folder");
    let (bin, work) = (folder.path().join("bin"), folder.path().join("work"));
    fs::create_dir(&bin).expect("a folder");
    fs::create_dir(&work).expect("a folder");
    let bash =
        ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"].into_iter().find(|at| Path::new(at).exists());
    let Some(bash) = bash else {
        eprintln!("skipped: no bash");
        return None;
    };
    let recorder = bin.join("rm");
    let script = format!("#!{bash}\nprintf '%s\\0' \"$@\" >&7\nprintf '\\1\\0' >&7\n");
    fs::write(&recorder, script).expect("a file");
    fs::set_permissions(&recorder, fs::Permissions::from_mode(0o755)).expect("its own file");
    let ask = r#"exec 7>&1
        while IFS= read -r -d "" line <&8; do
            ( eval "$line" ) </dev/null >/dev/null 2>&1 8<&-
            printf '\2\0' >&7
        done"#;
    let mut child = Command::new(bash)
        .args(["--norc", "-c", &format!("exec 8<&0; {ask}")])
        .current_dir(&work)
        .env_clear()
        .env("PATH", &bin)
        .env("HOME", "/home/ada")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash starts");
    let mut input = child.stdin.take().expect("a pipe");
    let bytes: Vec<u8> = lines.iter().flat_map(|line| line.bytes().chain([0])).collect();
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().expect("bash ends");
    writer.join().expect("no panic").expect("bash reads everything");
    let said = String::from_utf8_lossy(&output.stdout);
    let (mut all, mut calls, mut arguments) = (Vec::new(), Calls::new(), Vec::new());
    for piece in said.split_terminator('\0') {
        match piece {
            "\u{1}" => calls.push(std::mem::take(&mut arguments)),
            "\u{2}" => all.push(std::mem::take(&mut calls)),
            argument => arguments.push(argument.to_owned()),
        }
    }
    assert_eq!(all.len(), lines.len(), "bash lost some");
    Some(all)
}

/// The same as we see it, each call once.
fn foreseen(line: &str) -> Calls {
    let place = Place { cwd: "/home/ada/app", home: "/home/ada", os: Os::Linux };
    let mut calls = Calls::new();
    for effect in analyse(line, place, &Limits::default()).effects {
        if effect.program != "rm" {
            continue;
        }
        let call = effect.argv.iter().skip(1).map(|argument| argument.text.clone()).collect();
        if !calls.contains(&call) {
            calls.push(call);
        }
    }
    calls
}

/// Whether we foresaw the call; what we say we do not know may be anything.
fn is_foreseen(call: &[String], foreseen: &Calls) -> bool {
    let fits = |ours: &String, theirs: &String| ours.contains(HOLE) || ours == theirs;
    foreseen.iter().any(|ours| ours.len() == call.len() && ours.iter().zip(call).all(|(a, b)| fits(a, b)))
}

fn compare(lines: &[String]) {
    let Some(recorded) = recorded(lines) else { return };
    let mut wrong = Vec::new();
    for (line, calls) in lines.iter().zip(recorded) {
        let ours = foreseen(line);
        if calls.is_empty() || !calls.iter().all(|call| is_foreseen(call, &ours)) {
            wrong.push(format!("{line}\n    bash: {calls:?}\n    we:   {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
}

#[test]
fn bash_hands_over_what_we_foresee() {
    let table = fs::read_to_string("tests/cases/shell/words.txt").expect("the table");
    let lines = table.lines().filter(|line| !line.starts_with("# "));
    let lines: Vec<String> = lines.map(|line| line.replace('\u{23ce}', "\n")).collect();
    assert!(lines.len() > 80);
    compare(&lines);
}

/// A word in some notation of the shell.
fn written(word: &str, how: u8) -> String {
    let single = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    match how % 5 {
        0 => single(word),
        1 => word
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("\\{c}") })
            .collect(),
        2 => {
            let escaped = |c: char| if "\"\\$`".contains(c) { format!("\\{c}") } else { c.to_string() };
            format!("\"{}\"", word.chars().map(escaped).collect::<String>())
        }
        3 => format!("$'{}'", word.bytes().map(|b| format!("\\x{b:02x}")).collect::<String>()),
        _ => word.chars().map(|c| single(&c.to_string())).collect(),
    }
}

#[test]
fn quotes_of_any_kind_come_off_as_in_bash() {
    let word = prop::collection::vec(("[a-c *?$'\"{},;|&()<>~#!=\\\\-]{1,6}", any::<u8>()), 1..4);
    let line = prop::collection::vec(word, 1..4).prop_map(|words| {
        let words =
            words.iter().map(|parts| parts.iter().map(|(text, how)| written(text, *how)).collect::<String>());
        format!("rm ./a {}", words.collect::<Vec<_>>().join(" "))
    });
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let lines: Vec<String> =
        (0..MADE_UP).map(|_| line.new_tree(&mut runner).expect("a line").current()).collect();
    compare(&lines);
}
