//! `tests/support/room`: a run of `./test` that the disk has no place for ends before it begins.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// What `du` and `df` would say: megabytes built already, and for each folder its disk and the megabytes free there.
struct Machine {
    built: u32,
    target: (&'static str, u32),
    clone: (&'static str, u32),
    temporary: (&'static str, u32),
}

/// Runs the script on a machine; tells whether the run may begin, and what it said.
fn ask(machine: &Machine, is_full: bool, is_incremental: bool) -> (bool, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        path
    };
    let (programs, target, temporary) = (place("programs"), place("target"), place("temporary"));
    let line = |(disk, free): (&str, u32)| format!("echo 'x 1 1 {} 1% {disk}'", u64::from(free) * 1024);
    let (target_name, temporary_name) = (target.display(), temporary.display());
    for (name, text) in [
        (
            "du",
            format!(
                "case $2 in {target_name}) printf '{}\\t.\\n' ;; *) printf '0\\t.\\n' ;; esac",
                machine.built
            ),
        ),
        (
            "df",
            format!(
                "echo head\ncase $2 in {target_name}) {} ;; {temporary_name}) {} ;; *) {} ;; esac",
                line(machine.target),
                line(machine.temporary),
                line(machine.clone)
            ),
        ),
    ] {
        let path = programs.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a program");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it may be run");
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let ran = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/room"))
        .arg(target)
        .arg(temporary)
        .arg(is_full.to_string())
        .env("PATH", path)
        .env("CARGO_INCREMENTAL", if is_incremental { "1" } else { "0" })
        .output()
        .expect("it runs");
    (ran.status.success(), String::from_utf8_lossy(&ran.stderr).into_owned())
}

#[test]
fn a_run_needs_room_on_every_disk_that_it_writes_to() {
    let one =
        |built, free| Machine { built, target: ("/", free), clone: ("/", free), temporary: ("/", free) };
    let apart = |target, clone, temporary| Machine {
        built: 0,
        target: ("/builds", target),
        clone: ("/", clone),
        temporary: ("/tmp", temporary),
    };
    for (machine, is_full, is_incremental, told) in [
        (one(0, 9_000), false, true, ""),
        (one(0, 8_100), false, true, ""),
        (one(0, 7_000), false, true, "needs about 8.9 GB free in TARGET, and 7.0 GB are there"),
        (one(0, 7_200), false, false, ""),
        (one(0, 9_000), true, true, "needs about 12.9 GB free in TARGET, and 9.0 GB are there"),
        (one(4_500, 4_100), false, true, ""),
        (one(20_000, 4_100), false, true, ""),
        (one(20_000, 3_000), false, true, "needs about 4.5 GB free in TARGET, and 3.0 GB are there"),
        (apart(4_500, 1_800, 2_500), false, true, ""),
        (apart(3_000, 9_000, 9_000), false, true, "needs about 4.5 GB free in TARGET, and 3.0 GB are there"),
        (apart(9_000, 9_000, 600), false, true, "needs about 2.5 GB free in TEMPORARY, and 0.6 GB are there"),
    ] {
        let (may_begin, said) = ask(&machine, is_full, is_incremental);
        let shown = said
            .split_whitespace()
            .map(|word| match word.trim_end_matches(',') {
                word if word.starts_with('/') && word.ends_with("/target") => "TARGET,",
                word if word.starts_with('/') && word.ends_with("/temporary") => "TEMPORARY,",
                _ => word,
            })
            .collect::<Vec<_>>()
            .join(" ");
        assert_eq!(may_begin, told.is_empty(), "{said}");
        assert!(shown.contains(told) && (may_begin || shown.contains("make room")), "{told}: {shown}");
    }
}
