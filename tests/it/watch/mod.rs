//! `watch` through the real binary: exit codes, signals, bytes, and what is left of a command that must die.
//!
//! Whether a whole tree of processes is dead is told by a named pipe that each of them holds open: it ends with the last
//! of them, whatever their numbers and parents are, so that no test has to guess how long to wait.

mod local;
mod stand_in;
mod terminal;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use tempfile::TempDir;

use super::cli::{Ran, empty, program, run_command};
use stand_in::StandIn;

/// A watched command, with a stand-in as its monitor.
struct Watch {
    monitor: StandIn,
    folder: TempDir,
}

impl Watch {
    fn new() -> Self {
        Self { monitor: StandIn::start(), folder: empty() }
    }

    /// The command line of `sh -c SCRIPT` under watch.
    fn command(&self, flags: &[&str], script: &str) -> Command {
        let mut command = program(self.folder.path(), &["watch", "--server", &self.monitor.url()]);
        command.args(flags).args(["--", "sh", "-c", script]);
        command
    }

    /// Runs a script under watch to its end.
    fn run(&self, flags: &[&str], script: &str) -> Ran {
        run_command(self.command(flags, script), b"")
    }

    /// Starts a script under watch, which must write a line before it is answered.
    fn start(&self, flags: &[&str], script: &str) -> (Child, BufReader<ChildStdout>) {
        let mut command = self.command(flags, script);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("output is text");
        assert_eq!(line, "ready\n");
        (child, out)
    }

    /// A named pipe in the folder of the command, `life`.
    fn life(&self) -> Life {
        let path = self.folder.path().join("life");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a named pipe");
        Life { path: path.canonicalize().expect("it is there") }
    }
}

/// A named pipe that the processes of a command hold open.
struct Life {
    path: PathBuf,
}

#[test]
fn the_code_of_the_command_is_ours() {
    let watch = Watch::new();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 64", 64),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
    ] {
        let ran = watch.run(&[], script);
        assert_eq!(ran.code, code, "{script}");
        assert_eq!(watch.monitor.wait_for(|seen| seen.exit_code == Some(code)).exit_code, Some(code));
        assert_eq!((ran.out, ran.err), (String::new(), String::new()), "{script}");
    }
}

#[test]
fn what_cannot_run_has_the_codes_of_a_shell() {
    let watch = Watch::new();
    let url = watch.monitor.url();
    for (word, code) in [("no-such-program-here", 127), ("./", 126)] {
        let command = program(watch.folder.path(), &["watch", "--server", &url, "--", word]);
        let ran = run_command(command, b"");
        assert_eq!(ran.code, code, "{word}");
        assert!(ran.err.contains("cannot run"), "{}", ran.err);
    }
}

#[test]
fn wrong_usage_and_servers_that_are_away_start_nothing() {
    let folder = empty();
    let file = folder.path().join("started");
    let script = format!("touch {}", file.display());
    let watch = Watch::new();
    let url = watch.monitor.url();
    for (flags, code) in [
        (&["watch"][..], 64),
        (&["watch", "--on-disconnect", "sometimes", "--", "sh", "-c", &script], 64),
        (&["watch", "--label", "x", "--", "sh", "-c", &script], 64),
        (&["watch", "--server", "ftp://127.0.0.1", "--", "sh", "-c", &script], 64),
        (&["watch", "--server", "http://127.0.0.1:1", "--", "sh", "-c", &script], 69),
        (&["watch", "--server", &url, "--policy", "unknown", "--", "sh", "-c", &script], 65),
    ] {
        let ran = run_command(program(folder.path(), flags), b"");
        assert_eq!(ran.code, code, "{flags:?}: {}", ran.err);
        assert!(!ran.err.is_empty() && !file.exists(), "{flags:?}");
    }
}

#[test]
fn bytes_pass_untouched_and_apart() {
    let watch = Watch::new();
    let mut noise = Vec::new();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    while noise.len() < 3_000_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend(state.to_le_bytes());
    }
    // Not an order to the stand-in.
    noise.iter_mut().filter(|byte| **byte == b'[').for_each(|byte| *byte = 0xFF);
    let (out, err) = noise.split_at(2_000_001);
    fs::write(watch.folder.path().join("out"), out).expect("written");
    fs::write(watch.folder.path().join("err"), err).expect("written");
    let mut command = watch.command(&[], "cat err >&2 & cat out; wait");
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == out && output.stderr == err, "the same bytes");
    let seen = watch.monitor.wait_for(|seen| seen.exit_code == Some(0));
    assert!(seen.bytes[0] == out && seen.bytes[1] == err, "all of them were scanned");
}

#[test]
fn what_goes_to_one_file_keeps_its_order() {
    let watch = Watch::new();
    let file = File::create(watch.folder.path().join("both")).expect("a file");
    let script = "i=0; while [ $i -lt 500 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done";
    let mut command = watch.command(&[], script);
    command.stdin(Stdio::null()).stdout(file.try_clone().expect("a second handle")).stderr(file);
    assert_eq!(command.status().expect("it runs").code(), Some(0));
    let wanted: String = (0..500).map(|i| format!("o{i}\ne{i}\n")).collect();
    assert_eq!(fs::read_to_string(watch.folder.path().join("both")).expect("text"), wanted);
    let seen = watch.monitor.wait_for(|seen| seen.exit_code == Some(0));
    assert!(seen.bytes[0] == wanted.as_bytes() && seen.bytes[1].is_empty(), "all of it was scanned");
}

#[test]
fn the_input_is_the_commands_own() {
    let watch = Watch::new();
    let ran = run_command(watch.command(&[], "cat"), b"one\ntwo\n");
    assert_eq!((ran.code, ran.out.as_str()), (0, "one\ntwo\n"));
    // Nothing is read ahead: what the command leaves is there for the next.
    let mut both = Command::new("sh");
    let portcullis = env!("CARGO_BIN_EXE_portcullis");
    let url = watch.monitor.url();
    let script = format!("{portcullis} watch --server {url} -- sh -c 'read x; echo first $x'; cat");
    both.args(["-c", &script]).current_dir(watch.folder.path()).env_clear();
    assert_eq!(run_command(both, b"one\ntwo\n").out, "first one\ntwo\n");
}

#[test]
fn the_work_goes_with_the_session() {
    let watch = Watch::new();
    let flags = [
        "--goal=Fix it",
        "--accept=Tests pass",
        "--accept=Docs too",
        "--non-goal=Refactor",
        "--scope=src",
        "--label=ticket=42",
        "--session=mine",
        "--agent=a1",
        "--policy=strict",
    ];
    assert_eq!(watch.run(&flags, "true").code, 0);
    let attach = watch.monitor.wait_for(|seen| seen.exit_code.is_some()).attach;
    let work = attach.work.expect("a context of work");
    assert_eq!((work.goal.as_str(), work.scope.as_str()), ("Fix it", "src"));
    assert_eq!(
        (work.acceptance_criteria.len(), work.non_goals.as_slice()),
        (2, &["Refactor".to_owned()][..])
    );
    assert_eq!(work.labels["ticket"], "42");
    assert_eq!((attach.session_id.as_str(), attach.policy.as_str(), attach.acks), ("mine", "strict", true));
    assert_eq!(attach.context.expect("a context").agent_id, "a1");
    watch.run(&[], "true");
    let attach = watch.monitor.wait_for(|seen| seen.attach.session_id != "mine").attach;
    assert!(attach.work.is_none() && attach.context.is_none() && attach.session_id.len() == 36);
}

#[test]
fn a_kill_leaves_nobody() {
    // Each process holds the pipe open through descriptor 9. The daemon has left group, session and parent.
    let daemon = "exec 9>life; echo daemon >&9; exec sleep 1000";
    let scripts = [
        "exec 9>life; echo '[[kill]]'; sleep 1000".to_owned(),
        "exec 9>life; echo '[[kill]]' >&2; sleep 1000".to_owned(),
        "exec 9>life; sleep 1000 & sleep 1000 | sleep 1000 & echo '[[kill]]'; wait".to_owned(),
        "exec 9>life; trap '' TERM INT HUP QUIT; echo '[[kill]]'; while :; do sleep 1000; done".to_owned(),
        "exec 9>life; echo '[[kill]]'; kill -STOP $$; sleep 1000".to_owned(),
        format!("(setsid sh -c '{daemon}' &) ; exec 9>life; echo '[[kill]]'; sleep 1000"),
        format!("(setsid setsid sh -c 'sh -c \"{daemon}\" & sleep 1000' &); echo '[[kill]]'; sleep 1000"),
    ];
    for script in scripts {
        let watch = Watch::new();
        let life = watch.life();
        // Opened for both by us, so that neither side waits for the other at the start.
        let keep = File::options().read(true).write(true).open(&life.path).expect("it is there");
        let ran = watch.run(&[], &script);
        drop(keep);
        assert_eq!(ran.code, 86, "{script}: {}", ran.err);
        assert_eq!(holders(&life.path), Vec::<String>::new(), "{script}");
        assert!(ran.err.contains("KILL stand_in.order (orders, critical)"), "{}", ran.err);
        assert!(
            ran.err.contains("an <U+001B>[31morder") && ran.err.contains("it was ordered"),
            "{}",
            ran.err
        );
        assert_eq!(watch.monitor.wait_for(|seen| seen.exit_code.is_some()).exit_code, Some(137));
    }
}

/// Processes that hold a file open, by their command lines.
fn holders(path: &Path) -> Vec<String> {
    let holds = |process: &Path| {
        let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|target| target == path)
    };
    let processes = fs::read_dir("/proc").expect("Linux").flatten().map(|entry| entry.path());
    processes
        .filter(|process| holds(process))
        .map(|process| fs::read_to_string(process.join("cmdline")).unwrap_or_default())
        .collect()
}

#[test]
fn a_warning_is_told_and_the_command_goes_on() {
    let watch = Watch::new();
    let ran = watch.run(&[], "echo one '[[warn]]'; echo two");
    assert_eq!((ran.code, ran.out.as_str()), (0, "one [[warn]]\ntwo\n"));
    assert!(ran.err.starts_with("portcullis: WARN stand_in.order"), "{}", ran.err);
}

#[test]
fn a_verdict_after_the_end_still_counts() {
    let watch = Watch::new();
    watch.monitor.acknowledge(false);
    let life = watch.life();
    let (mut child, _out) = watch.start(&[], "exec 9<>life; echo ready; sleep 0.1; echo '[[kill]]'");
    // The monitor does not look at the second line before it may acknowledge the first.
    wait_until_free(&life.path);
    watch.monitor.acknowledge(true);
    assert_eq!(child.wait().expect("it ends").code(), Some(86));
}

#[test]
fn json_lines_tell_the_same() {
    let watch = Watch::new();
    let ran = watch.run(&["--json"], "echo '[[warn]]'; sleep 1000 & echo '[[kill]]'; wait");
    assert_eq!(ran.code, 86);
    let lines: Vec<Value> =
        ran.err.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let verdicts: Vec<&str> = lines.iter().filter_map(|line| line["verdict"]["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["VERDICT_KIND_WARN", "VERDICT_KIND_KILL"]);
    assert_eq!(lines.iter().filter(|line| line["incident"]["ruleId"] == "stand_in.order").count(), 2);
    assert!(lines.last().expect("lines")["summary"].is_object(), "{}", ran.err);
}

#[test]
fn signals_reach_the_command() {
    let watch = Watch::new();
    for (signal, code) in [("TERM", 21), ("INT", 22), ("HUP", 23), ("QUIT", 24), ("USR1", 25), ("USR2", 26)] {
        if is_ignored_here(signal) {
            continue;
        }
        let script = format!("trap 'exit {code}' {signal}; echo ready; while :; do sleep 0.02; done");
        let (mut child, _out) = watch.start(&[], &script);
        send(&child, signal);
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{signal}");
    }
    let (mut child, _out) = watch.start(&[], "echo ready; exec sleep 1000");
    send(&child, "TERM");
    assert_eq!(child.wait().expect("it ends").code(), Some(143), "and end it when it does not care");
}

/// Whether these tests were started with that signal ignored, as shells do with INT and QUIT for what runs in the
/// background. A command inherits that, and a shell then cannot trap it (POSIX, `trap`).
fn is_ignored_here(signal: &str) -> bool {
    let number = match signal {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        _ => return false,
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::trim);
    mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

fn send(child: &Child, signal: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
    assert!(status.expect("a shell").success());
}

#[test]
fn what_was_ignored_stays_ignored() {
    let watch = Watch::new();
    let url = watch.monitor.url();
    let portcullis = env!("CARGO_BIN_EXE_portcullis");
    let inner = "echo ready; kill -HUP $$; echo alive";
    let script = format!("trap '' HUP; exec {portcullis} watch --server {url} -- sh -c '{inner}'");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(watch.folder.path()).env_clear();
    let ran = run_command(command, b"");
    assert_eq!((ran.code, ran.out.as_str()), (0, "ready\nalive\n"), "{}", ran.err);
}

#[test]
fn what_a_command_leaves_behind_is_ended() {
    let watch = Watch::new();
    let life = watch.life();
    let keep = File::options().read(true).write(true).open(&life.path).expect("it is there");
    let ran = watch.run(&[], "exec 9>life; sleep 1000 & (setsid sleep 1000 &); echo done; exit 3");
    drop(keep);
    assert_eq!((ran.code, ran.out.as_str()), (3, "done\n"));
    assert_eq!(holders(&life.path), Vec::<String>::new());
    assert!(ran.err.contains("left behind"), "{}", ran.err);
}

#[test]
fn the_command_dies_with_us() {
    let watch = Watch::new();
    let life = watch.life();
    let (mut child, _out) = watch.start(&[], "exec 9<>life; echo ready; exec sleep 1000");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    wait_until_free(&life.path);
}

/// Waits until no process holds the file open.
fn wait_until_free(path: &Path) {
    let until = std::time::Instant::now() + super::server::PATIENCE;
    while !holders(path).is_empty() {
        assert!(std::time::Instant::now() < until, "still open: {:?}", holders(path));
        std::thread::yield_now();
    }
}

#[test]
fn a_reader_that_goes_away_is_noticed_as_without_us() {
    let watch = Watch::new();
    let (mut child, out) = watch.start(&[], "echo ready; exec yes");
    drop(out);
    assert_eq!(child.wait().expect("it ends").code(), Some(141));
}

#[test]
fn a_slow_monitor_slows_the_command_and_misses_nothing() {
    const BYTES: usize = 8_000_000;
    let watch = Watch::new();
    watch.monitor.acknowledge(false);
    let mut command = watch.command(&[], &format!("head -c {BYTES} /dev/zero; echo done >&2"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut errors = child.stderr.take().expect("piped");
    watch.monitor.wait_for(|seen| !seen.bytes[0].is_empty());
    assert!(child.try_wait().expect("it can be asked").is_none(), "it waits for the monitor");
    let so_far = watch.monitor.wait_for(|_| true).bytes[0].len();
    assert!(so_far <= (1 << 20) + 2 * (64 << 10), "{so_far} bytes without one acknowledgement");
    watch.monitor.acknowledge(true);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let mut told = String::new();
    errors.read_to_string(&mut told).expect("text");
    assert_eq!(told, "done\n");
    assert_eq!(watch.monitor.wait_for(|seen| seen.exit_code.is_some()).bytes[0].len(), BYTES);
}

#[test]
fn a_reader_that_stands_still_delays_no_verdict() {
    const BYTES: usize = 3_000_000;
    for (redirect, index) in [("", 0), (" >&2", 1)] {
        let watch = Watch::new();
        let life = watch.life();
        let script =
            format!("exec 9<>life; (head -c {BYTES} /dev/zero; echo '[[kill]]'){redirect}; sleep 1000");
        let mut command = watch.command(&[], &script);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        // Far more than the pipe to us holds, of which nothing is read before the command is dead.
        watch.monitor.wait_for(|seen| seen.bytes[index].ends_with(b"[[kill]]\n"));
        wait_until_free(&life.path);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(86), "{redirect}");
        let shown = [&output.stdout, &output.stderr][index];
        assert!(shown.len() > BYTES && shown[..BYTES].iter().all(|byte| *byte == 0), "{redirect}");
        assert!(shown[BYTES..].starts_with(b"[[kill]]\n"), "{redirect}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("portcullis: KILL stand_in.order"), "{redirect}");
    }
}

#[test]
fn a_reader_that_stands_still_costs_bounded_memory_and_loses_nothing() {
    const BYTES: usize = 20_000_000;
    let watch = Watch::new();
    let mut command = watch.command(&[], &format!("yes ordinary | head -c {BYTES}; echo done"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().expect("it starts");
    let seen = watch.monitor.wait_for(|seen| seen.bytes[0].len() >= 8 << 20);
    // What is read at once, what waits, and what the pipe to us holds.
    assert!(seen.bytes[0].len() <= (8 << 20) + 3 * (64 << 10), "{} bytes", seen.bytes[0].len());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    let whole: Vec<u8> = b"ordinary\n".iter().copied().cycle().take(BYTES).chain(*b"done\n").collect();
    assert!(output.stdout == whole, "the same bytes");
    let seen = watch.monitor.wait_for(|seen| seen.exit_code == Some(0));
    assert!(seen.bytes[0] == whole, "all of them were scanned");
}

#[test]
fn who_asks_it_to_end_does_not_wait_for_a_reader_that_stands_still() {
    let watch = Watch::new();
    let life = watch.life();
    let mut command = watch.command(&[], "exec 9<>life; head -c 1000000 /dev/zero; exit 3");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    watch.monitor.wait_for(|seen| seen.exit_code == Some(3));
    wait_until_free(&life.path);
    assert!(child.try_wait().expect("it can be asked").is_none(), "its output was not read");
    send(&child, "TERM");
    assert_eq!(child.wait().expect("it ends").code(), Some(3));
}

#[test]
fn a_server_that_goes_away_kills_or_does_not() {
    for order in ["vanish", "drain"] {
        let script = format!("echo '[[{order}]]'; sleep 0.3; echo after; exit 5");
        let watch = Watch::new();
        let ran = watch.run(&["--on-disconnect", "continue"], &script);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (5, format!("[[{order}]]\nafter\n").as_str()),
            "{}",
            ran.err
        );
        assert!(ran.err.contains("nobody watches"), "{}", ran.err);

        let watch = Watch::new();
        let life = watch.life();
        let keep = File::options().read(true).write(true).open(&life.path).expect("it is there");
        let script = format!("exec 9>life; (setsid sleep 1000 &); echo '[[{order}]]'; sleep 1000");
        let ran = watch.run(&["--on-disconnect", "kill"], &script);
        drop(keep);
        assert_eq!(ran.code, 87, "{}", ran.err);
        assert_eq!(holders(&life.path), Vec::<String>::new());
        assert!(ran.err.contains("the command was killed"), "{}", ran.err);
    }
}
