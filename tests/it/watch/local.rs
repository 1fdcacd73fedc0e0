//! `watch` with the monitor of its own process: the rules of this installation, also when a server goes away.
//!
//! What is printed here is text alone, written into a file and shown by `cat`; nobody runs it.

use std::fs;
use std::process::Stdio;

use super::{Watch, wait_until_free};
use crate::cli::{empty, program, run_command, run_in};
use crate::server::Server;

/// A line that a rule is certain about, in two pieces: each alone is nothing.
const PIECES: [&str; 2] = ["+ rm -r", "f --no-preserve-root /\n"];

fn watch_here(folder: &std::path::Path, flags: &[&str], script: &str) -> std::process::Command {
    let mut command = program(folder, &["watch"]);
    command.args(flags).args(["--", "sh", "-c", script]);
    command
}

#[test]
fn a_rule_kills_and_the_incident_is_kept() {
    let folder = empty();
    fs::write(folder.path().join("said"), PIECES.concat()).expect("a file");
    for stream in ["", ">&2"] {
        let script = format!("echo begin; cat said {stream}; sleep 1000");
        let ran = run_command(watch_here(folder.path(), &["--goal", "Tidy up"], &script), b"");
        assert_eq!(ran.code, 86, "{}", ran.err);
        assert!(ran.out.starts_with("begin\n"), "{}", ran.out);
        assert!(
            ran.err.contains("portcullis: KILL stream.delete (dangerous_command, critical)"),
            "{}",
            ran.err
        );
    }
    let kept = run_in(folder.path(), &["incidents", "list", "--json"], b"").json();
    let kept = kept["incidents"].as_array().expect("a list").clone();
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|incident| incident["ruleId"] == "stream.delete"
        && incident["action"] == "INCIDENT_ACTION_KILL_ADVISED"
        && incident["work"]["goal"] == "Tidy up"));
}

#[test]
fn a_rule_kills_while_nobody_reads() {
    let watch = Watch::new();
    let life = watch.life();
    let filler = "an ordinary line of a build\n".repeat(20_000);
    fs::write(watch.folder.path().join("said"), filler + &PIECES.concat()).expect("a file");
    let keep = fs::File::options().read(true).write(true).open(&life.path).expect("it is there");
    let mut command = watch_here(watch.folder.path(), &[], "exec 9>life; echo up >&9; cat said; sleep 1000");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the program starts");
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(keep), &mut line).expect("text");
    assert_eq!(line, "up\n");
    wait_until_free(&life.path);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(86));
    assert!(output.stdout.ends_with(PIECES.concat().as_bytes()), "all of it is shown");
    assert!(String::from_utf8_lossy(&output.stderr).contains("KILL stream.delete"));
}

#[test]
fn ordinary_output_passes() {
    let folder = empty();
    let script = "echo one; echo two >&2; echo 'rm -rf ./target'; exit 3";
    let ran = run_command(watch_here(folder.path(), &[], script), b"");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (3, "one\nrm -rf ./target\n", "two\n"));
}

#[test]
fn a_broken_policy_starts_nothing() {
    let folder = empty();
    fs::write(folder.path().join("bad.yaml"), "name: [\n").expect("a file");
    for flags in
        [&["--policy-path", "bad.yaml"][..], &["--policy-path", "bad.yaml", "--server", "http://127.0.0.1:1"]]
    {
        let ran = run_command(watch_here(folder.path(), flags, "touch started"), b"");
        assert_eq!(ran.code, 78, "{}", ran.err);
        assert!(ran.err.contains("bad.yaml") && !folder.path().join("started").exists(), "{}", ran.err);
    }
    let ran = run_command(watch_here(folder.path(), &["--policy", "nobody"], "touch started"), b"");
    assert_eq!(ran.code, 65, "{}", ran.err);
    assert!(!folder.path().join("started").exists());
}

#[test]
fn a_match_over_the_place_where_a_server_stopped_is_found() {
    let watch = Watch::new();
    let life = watch.life();
    let path = |name: &str| watch.folder.path().join(name);
    fs::write(path("first"), format!("before\n{}", PIECES[0])).expect("a file");
    fs::write(path("second"), PIECES[1]).expect("a file");
    // The first piece is scanned and acknowledged before the server goes away.
    let script =
        "exec 9<>life; cat first; sleep 0.2; echo '[[vanish]]' >&2; sleep 0.2; cat second; sleep 1000";
    let ran = watch.run(&[], script);
    assert_eq!(ran.code, 86, "{}", ran.err);
    assert!(ran.err.contains("this process watches now"), "{}", ran.err);
    assert!(ran.err.contains("KILL stream.delete"), "{}", ran.err);
    assert_eq!(ran.out, format!("before\n{}", PIECES.concat()), "what was sent again is shown once");
    wait_until_free(&life.path);
}

#[test]
fn a_server_that_is_killed_is_taken_over_from() {
    let server = Server::start();
    let folder = empty();
    fs::write(folder.path().join("said"), PIECES.concat()).expect("a file");
    let url = format!("http://{}", server.grpc);
    let script = "echo ready; read x; cat said; sleep 1000";
    let mut command = watch_here(folder.path(), &["--server", &url], script);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut out = std::io::BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).expect("text");
    server.signal("KILL");
    let mut input = child.stdin.take().expect("piped");
    std::io::Write::write_all(&mut input, b"go\n").expect("the command reads");
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(86), "{err}");
    assert!(err.contains("this process watches now") && err.contains("KILL stream.delete"), "{err}");
}

#[test]
fn a_server_judges_by_its_own_rules() {
    let server = Server::start();
    let folder = empty();
    fs::write(folder.path().join("said"), PIECES.concat()).expect("a file");
    let url = format!("http://{}", server.grpc);
    let ran =
        run_command(watch_here(folder.path(), &["--server", &url, "--json"], "cat said; sleep 1000"), b"");
    assert_eq!(ran.code, 86, "{}", ran.err);
    assert!(ran.err.contains("\"VERDICT_KIND_KILL\"") && ran.err.contains("\"summary\""), "{}", ran.err);
}
