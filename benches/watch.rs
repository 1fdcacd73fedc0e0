//! From a line that a rule kills for to a dead process group under `portcullis watch`, beside the least that anybody
//! could need for it: reading the line and killing the group at once.
//!
//! What it is for: the promise that a clear threat is stopped within 10 ms (median). The command is this program started
//! again: a group of processes that all hold a named pipe open. The first writes
//! the time into the pipe and then the line to its standard output; the pipe ends with the last of them. The line is
//! text alone, and nobody runs it.
//!
//! Run: `cargo bench --bench watch`.

mod common;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::median;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process_group};

/// Runs of each kind.
const RUNS: usize = 51;
/// Further processes of the command.
const OTHERS: usize = 3;
/// What the command prints, in pieces, so that this source is no such line.
const LINE: [&str; 3] = ["+ rm -rf", " --no-preserve-root", " /"];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|argument| argument == "--command") {
        Some(at) => run_command(&arguments[at + 1], Path::new(&arguments[at + 2])),
        None => measure(),
    }
}

fn measure() {
    let folder = tempfile::tempdir().expect("a folder");
    println!("{:<30} {:>9} {:>9} {:>9}", "line to dead group", "median", "p90", "worst");
    for (name, is_watched) in [("read and kill, nothing else", false), ("portcullis watch", true)] {
        let mut times: Vec<f64> = (0..RUNS).map(|run| one(folder.path(), run, is_watched)).collect();
        times.sort_by(f64::total_cmp);
        let (p90, worst) = (times[RUNS * 9 / 10], times[RUNS - 1]);
        println!("{name:<30} {:>6.2} ms {p90:>6.2} ms {worst:>6.2} ms", median(times));
    }
}

/// Milliseconds of one run.
fn one(folder: &Path, run: usize, is_watched: bool) -> f64 {
    let pipe = folder.join(format!("life-{is_watched}-{run}"));
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a named pipe");
    let this = std::env::current_exe().expect("this program has a path");
    let own: [PathBuf; 4] = [this, "--command".into(), "first".into(), pipe.clone()];
    let mut child = if is_watched { watched(folder, &own) } else { killed(&own) };
    let mut text = String::new();
    File::open(&pipe).expect("it is there").read_to_string(&mut text).expect("text");
    let dead = now();
    let printed: u64 = text.lines().next().and_then(|line| line.parse().ok()).expect("the time");
    let code = child.wait().expect("it ends").code();
    assert_eq!(code, is_watched.then_some(86), "it was killed, and by a verdict if watched");
    Duration::from_nanos(dead - printed).as_secs_f64() * 1e3
}

fn watched(folder: &Path, words: &[PathBuf]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .current_dir(folder)
        .args(["watch", "--"])
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts")
}

/// The floor.
fn killed(words: &[PathBuf]) -> Child {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let group = Pid::from_raw(i32::try_from(child.id()).expect("small")).expect("not zero");
    let out = child.stdout.take().expect("piped");
    std::thread::spawn(move || {
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).expect("a line");
        kill_process_group(group, Signal::KILL).expect("a group");
    });
    child
}

/// The command, and the further processes of it.
fn run_command(name: &str, pipe: &Path) {
    let mut life = File::options().write(true).open(pipe).expect("it is there");
    let mut others = Vec::new();
    if name == "first" {
        let this = std::env::current_exe().expect("this program has a path");
        for _ in 0..OTHERS {
            let mut other = Command::new(&this);
            other.args(["--command", "other"]).arg(pipe).stdout(Stdio::piped());
            others.push(other.spawn().expect("it starts"));
            // It says when it holds the pipe.
            let said = others.last_mut().and_then(|other| other.stdout.take());
            said.expect("piped").read_exact(&mut [0]).expect("one byte");
        }
        writeln!(life, "{}", now()).expect("somebody reads");
        println!("{}", LINE.concat());
    } else {
        print!(".");
        std::io::stdout().flush().expect("somebody reads");
    }
    // Nobody ends by itself; what is waited for here is to be killed.
    for mut other in others {
        let _ = other.wait();
    }
    loop {
        std::thread::park();
    }
}

/// Nanoseconds, by a clock that all processes share.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_nanos()).expect("before 2554")
}
