//! `watch` on a terminal: the test holds the other end of a pseudo-terminal and is the person at it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::Watch;
use crate::cli::program;
use crate::server::PATIENCE;

/// A person at a terminal.
struct Person {
    near: File,
    far: OwnedFd,
    heard: String,
    /// How much of that was waited for.
    at: usize,
}

impl Person {
    fn new() -> Self {
        let near =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&near).and_then(|()| unlockpt(&near)).expect("ours");
        let name = ptsname(&near, Vec::new()).expect("a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let far = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).expect("the other side");
        let person = Self { near: near.into(), far, heard: String::new(), at: 0 };
        person.resize(24, 80);
        person
    }

    fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.near, size).expect("a size");
    }

    /// Starts a command as the leader of a session on this terminal, as a terminal emulator would.
    fn start(&self, watch: &Watch, flags: &[&str], script: &str) -> Child {
        let own = std::process::id().to_string();
        let mut command = program(watch.folder.path(), &["become", "--parent", &own, "--session", "--"]);
        command.arg(env!("CARGO_BIN_EXE_portcullis")).args(["watch", "--server", &watch.monitor.url()]);
        command.args(flags).args(["--", "sh", "-c", script]);
        self.attach(&mut command).spawn().expect("it starts")
    }

    fn attach<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let side = || Stdio::from(self.far.try_clone().expect("a handle"));
        command.stdin(side()).stdout(side()).stderr(side())
    }

    fn types(&mut self, keys: &str) {
        self.near.write_all(keys.as_bytes()).expect("somebody listens");
    }

    /// Reads until `text` has come, after what was waited for before.
    fn waits_for(&mut self, text: &str) {
        let mut buffer = [0; 4096];
        let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        while !self.heard[self.at..].contains(text) {
            let ready = poll(&mut [PollFd::new(&self.near, PollFlags::IN)], Some(&patience));
            assert_eq!(ready, Ok(1), "`{text}` did not come: {:?}", self.heard);
            let length =
                self.near.read(&mut buffer).expect("the terminal is there, as we hold its other side");
            self.heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
        self.at += self.heard[self.at..].find(text).expect("it is there") + text.len();
    }

    /// Whether lines are edited and keys raise signals, as before and after every program.
    fn is_sane(&self) -> bool {
        let modes = tcgetattr(&self.far).expect("modes");
        modes.local_modes.contains(LocalModes::ICANON | LocalModes::ISIG | LocalModes::ECHO)
    }
}

fn code(mut child: Child) -> Option<i32> {
    child.wait().expect("it ends").code()
}

#[test]
fn the_command_has_a_terminal_of_our_size() {
    let (watch, mut person) = (Watch::new(), Person::new());
    let script = "test -t 0 && test -t 1 && test -t 2 && stty size; \
                  until test \"$(stty size)\" = '50 132'; do sleep 0.02; done; \
                  echo resized; read x; echo got $x; exit 5";
    let child = person.start(&watch, &[], script);
    person.waits_for("24 80\r\n");
    assert!(!person.is_sane(), "keys go to the command as they are typed");
    person.resize(50, 132);
    person.waits_for("resized");
    person.types("a word\r");
    person.waits_for("got a word\r\n");
    assert_eq!(code(child), Some(5));
    assert!(person.is_sane());
    let seen = watch.monitor.wait_for(|seen| seen.exit_code.is_some());
    let scanned = String::from_utf8_lossy(&seen.bytes[0]).into_owned();
    assert_eq!(scanned, person.heard, "what was seen was scanned");
}

#[test]
fn the_interrupt_key_goes_to_the_command() {
    if super::is_ignored_here("INT") {
        return;
    }
    let (watch, mut person) = (Watch::new(), Person::new());
    let child =
        person.start(&watch, &[], "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.02; done");
    person.waits_for("ready");
    person.types("\u{3}");
    person.waits_for("caught");
    assert_eq!(code(child), Some(9));
    assert!(person.is_sane());
}

#[test]
fn a_program_that_reads_single_keys_gets_them() {
    let (watch, mut person) = (Watch::new(), Person::new());
    let script = "stty raw -echo; echo ready; dd bs=1 count=3 2>/dev/null | od -An -tx1; stty sane";
    let child = person.start(&watch, &[], script);
    person.waits_for("ready");
    person.types("q\u{3}\u{1a}");
    person.waits_for("71 03 1a");
    assert_eq!(code(child), Some(0));
    assert!(person.is_sane());
}

#[test]
fn the_terminal_is_put_right_after_a_kill_and_a_signal() {
    let (watch, mut person) = (Watch::new(), Person::new());
    let child = person.start(&watch, &[], "echo '[[kill]]'; sleep 1000");
    person.waits_for("it was ordered");
    assert_eq!(code(child), Some(86));
    assert!(person.is_sane());
    assert!(person.heard.contains("\r\nportcullis: KILL stand_in.order"), "{:?}", person.heard);

    let child = person.start(&watch, &[], "echo ready; exec sleep 1000");
    person.waits_for("ready");
    super::send(&child, "TERM");
    assert_eq!(code(child), Some(143));
    assert!(person.is_sane());
}

#[test]
fn errors_go_elsewhere_when_ours_do() {
    let (watch, mut person) = (Watch::new(), Person::new());
    let own = std::process::id().to_string();
    let mut command = program(watch.folder.path(), &["become", "--parent", &own, "--session", "--"]);
    command.arg(env!("CARGO_BIN_EXE_portcullis")).args(["watch", "--server", &watch.monitor.url(), "--"]);
    command.args(["sh", "-c", "test -t 2 || echo apart >&2; echo here"]);
    let child = person.attach(&mut command).stderr(Stdio::piped()).spawn().expect("it starts");
    person.waits_for("here");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b"apart\n"[..]));
    assert_eq!(watch.monitor.wait_for(|seen| seen.exit_code.is_some()).bytes[1], b"apart\n");
}

#[test]
fn a_shell_can_stop_and_continue_it() {
    let (watch, mut person) = (Watch::new(), Person::new());
    let own = std::process::id().to_string();
    let mut command = program(watch.folder.path(), &["become", "--parent", &own, "--session", "--"]);
    let child = person.attach(command.args(["bash", "--norc", "--noprofile", "-i"])).spawn().expect("bash");
    let (portcullis, url) = (env!("CARGO_BIN_EXE_portcullis"), watch.monitor.url());
    person.types("PS1='$ '\r");
    person.types(&format!(
        "{portcullis} watch --server {url} -- sh -c 'echo begun; read x; echo \"<$x>\"; exit 7'\r"
    ));
    person.waits_for("\r\nbegun\r\n");
    person.types("\u{1a}");
    person.waits_for("Stopped");
    person.types("fg\r");
    person.types("word\r");
    person.waits_for("<word>");
    // What is typed before goes to the command.
    person.waits_for("$ ");
    person.types("echo code=$?\r");
    person.waits_for("code=7");
    person.types("exit\r");
    assert_eq!(code(child), Some(0));
}
