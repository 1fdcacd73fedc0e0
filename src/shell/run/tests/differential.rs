//! The arguments that the engine works out are those that a real bash passes.
//!
//! Lines are made from harmless fragments only. They call `rec`, a function that writes its arguments down; there is no
//! `PATH`, so that no program can run, and no fragment redirects to a file or changes anything outside the shell.

use std::io::Write;
use std::process::{Command, Stdio};

use super::PLACE;
use super::properties::Numbers;
use crate::shell::limits::Limits;
use crate::shell::run::Engine;

/// Where bash is; named in full, for there is no `PATH`.
const BASH: &str = "/bin/bash";

/// Lines that are compared.
const LINES: usize = 1500;

/// What stands before every line.
const SETTINGS: &[&str] = &[
    "n=a; a=one; b='x y'; c=; d='  lead  tail '; e=AbC.tar.gz; arr=(p 'q r' s); set -- 1 '2 3' ''",
    "n=a; a='q*q'; b=$a; c=${b}z; d='a:b:c'; e=path/to/file.x; arr=(zero); arr+=(one two); set -- solo",
    "n=a; a=rm; b=a; c='-x  -y'; d=\"it's\"; e=x/y.z/w; arr=('' b ''); set -- ",
    "n=a; IFS=:; a=m:n; b=':k'; c='u v'; d='a b:c'; e=abcabc; arr=(a:b c); set -- x:y z",
    "n=a; read -r a b <<< 'first second third'; c=$((3*4)); printf -v d '%03d-%s' 7 ok; e=Mixed; arr=(a b c d); set -- $b",
];

/// Pieces of words.
const PIECES: &[&str] = &[
    "lit",
    "'s q'",
    "\"d q\"",
    "\\s",
    "\\\\",
    "$'t\\tA\\x42'",
    "$a",
    "\"$a\"",
    "${a}",
    "\"${b}\"",
    "$c",
    "\"$c\"",
    "$d",
    "\"$d\"",
    "${none:-dflt}",
    "\"${none:-d f}\"",
    "${a:+alt}",
    "${c:-empty}",
    "\"${e#*/}\"",
    "\"${arr[@]/#/p}\"",
    "${e#*.}",
    "${e##*.}",
    "${e%.*}",
    "${e%%.*}",
    "${e/b/_}",
    "${e//[a-c]/_}",
    "${e/#A/z}",
    "${e/%z/Z}",
    "${e^^}",
    "${e,,}",
    "${e^}",
    "${#e}",
    "${e:1:3}",
    "${e: -2}",
    "${e:2}",
    "{x,y}",
    "{1..3}",
    "{a..c}{1,2}",
    "pre{A,B}post",
    "{solo}",
    "{,q}",
    "$(echo out put)",
    "\"$(echo out put)\"",
    "`echo back`",
    "$((1 + 2 * 3))",
    "$(( (7 % 4) << 2 ))",
    "\"$((2**5))\"",
    "\"${arr[@]}\"",
    "${arr[1]}",
    "${arr[*]}",
    "\"${arr[*]}\"",
    "${#arr[@]}",
    "\"$@\"",
    "$*",
    "\"$*\"",
    "$#",
    "\"$1\"",
    "${!n}",
    "\"${!n:-ind}\"",
    "$(printf '%s-' a b)",
    "$(printf '\\x41\\102')",
    "\"a\\\"b\\$c\"",
    "''",
    "\"\"",
    "$(echo)",
    "$\"loc\"",
    "a=b",
    "-f",
    "--long=${a}",
    "[x]",
    "a?b",
    "$(echo \"$b\")",
    "~x",
    "\"*\"",
    "${arr[@]:1}",
];

/// Commands around the call.
const FRAMES: &[&str] = &[
    "rec W",
    "rec W",
    "rec W",
    "eval 'rec W'",
    "f() { rec \"$@\" W; }; f W",
    "for i in W; do rec \"$i\"; done",
    "if true; then rec W; fi",
    "{ rec W; rec W; }",
    "(rec W)",
    "x=$(echo W); rec \"$x\"",
    "arr=(W); rec \"${arr[@]}\"",
    "set -- W; rec \"$@\"",
    "while read -r l; do rec \"$l\"; done <<< \"$(echo W)\"",
    "cmd=rec; $cmd W",
    "case W in *) rec W;; esac",
    "r''ec W; \"rec\" W",
];

fn line(numbers: &mut Numbers) -> String {
    let mut words = String::new();
    for at in 0..1 + numbers.next() % 3 {
        words.push_str(if at > 0 { " " } else { "" });
        for _ in 0..1 + numbers.next() % 3 {
            words.push_str(numbers.pick::<&str>(PIECES));
        }
    }
    // Braces expand before names are read: `$a{b,c}` names `ab` and `ac`, which nobody means.
    for name in ["$a", "$b", "$c", "$d"] {
        words = words.replace(&format!("{name}{{"), "{");
    }
    let frame = *numbers.pick(FRAMES);
    // Quotes of the words would end those of the frame.
    let frame = if frame.contains('\'') && words.contains('\'') { "rec W" } else { frame };
    // A pattern of `case` may not hold what only words may.
    let frame = if frame.starts_with("case") { "rec W" } else { frame };
    format!("{}; {}", numbers.pick(SETTINGS), frame.replace('W', &words))
}

/// A folder in which globs match nothing.
fn empty_folder() -> Option<std::path::PathBuf> {
    let folder = std::env::temp_dir().join("portcullis-differential-empty");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder)
}

/// What bash passes to `rec` in each line.
fn of_bash(lines: &[String]) -> Option<Vec<Vec<Vec<String>>>> {
    // Byte 1 ends an argument, byte 2 a call, byte 3 a line; no fragment holds one.
    let mut script =
        "shopt -u failglob nullglob\nrec() { if [ $# -gt 0 ]; then printf '%s\\1' \"$@\"; fi >&9; printf '\\2' >&9; }\nexec 9>&1\n"
            .to_owned();
    for line in lines {
        script.push_str(&format!("( {line}\n) < /dev/null > /dev/null 2>&1\nprintf '\\3' >&9\n"));
    }
    let mut child = Command::new(BASH)
        .args(["--norc", "--noprofile", "-s"])
        .env_clear()
        .env("LC_ALL", "C.UTF-8")
        .env("PATH", "/nonexistent")
        .current_dir(empty_folder()?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let output = child.wait_with_output().ok()?;
    writer.join().ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let ended = |text: &str, end: char| -> Vec<String> {
        let mut parts: Vec<String> = text.split(end).map(str::to_owned).collect();
        parts.pop();
        parts
    };
    let calls = |line: String| ended(&line, '\u{2}').iter().map(|call| ended(call, '\u{1}')).collect();
    Some(ended(&text, '\u{3}').into_iter().map(calls).collect())
}

/// What the engine passes to `rec`.
fn of_engine(line: &str) -> Vec<Vec<String>> {
    let limits = Limits::default();
    let mut engine = Engine::new(PLACE, &limits);
    engine.run_root(line);
    engine.calls_of("rec")
}

#[test]
fn arguments_are_those_of_bash() {
    let mut numbers = Numbers(17);
    let lines: Vec<String> = (0..LINES).map(|_| line(&mut numbers)).collect();
    if !std::path::Path::new(BASH).exists() {
        // There is nothing to compare with.
        return;
    }
    let wanted = of_bash(&lines).expect("bash runs");
    assert_eq!(wanted.len(), lines.len(), "bash ran every line");
    let mut problems = Vec::new();
    let mut compared = 0;
    for (line, wanted) in lines.iter().zip(wanted) {
        let found = of_engine(line);
        // What the engine does not know it says; a wrong value would be an error.
        if found.iter().flatten().any(|argument| argument.contains('\0')) {
            continue;
        }
        compared += 1;
        if found != wanted {
            problems.push(format!("{line}\n    bash   {wanted:?}\n    engine {found:?}"));
        }
    }
    assert!(compared * 10 > lines.len() * 9, "only {compared} of {} lines were known", lines.len());
    assert!(
        problems.is_empty(),
        "{} problems\n{}",
        problems.len(),
        problems[..problems.len().min(12)].join("\n")
    );
}
