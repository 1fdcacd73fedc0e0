//! Commands in the output: which are looked at, whatever their program is called.

use super::*;

/// Output, and the rules that fire with the offset of each.
const FOUND: &[(&str, &[&str])] = &[
    // Devices, however far from the program that writes to them.
    ("$ cat /srv/images/of/some/machine/with/a/long/name.img > /dev/sda\n", &["stream.disk@55"]),
    ("cp /srv/images/of/some/machine/with/a/long/name.img /dev/sda\n", &["stream.disk@0"]),
    ("$ > /dev/sda\n", &["stream.disk@2"]),
    ("sudo sfdisk --delete /dev/sda 1\n", &["stream.disk@0"]),
    // Whatever a shell or an agent is seen to run.
    ("$ terraform destroy -auto-approve\n", &["stream.command@2"]),
    ("root@box:/srv# kubectl delete namespace prod\n", &["stream.command@15"]),
    ("❯ git commit --no-verify -m x\n", &["stream.command@4"]),
    ("+ mv /etc /tmp/x\n", &["stream.command@2"]),
    ("{\"input\":{\"command\":\"docker system prune -af --volumes\"}}\n", &["stream.command@21"]),
    // What a rule names is found in a line in which something else begins the same command.
    ("➜  ~ rm -rf /\n", &["stream.delete@7"]),
    // A critical command behind what keeps a shell from reading the line.
    ("$ cat notes; echo 'it; rm -f a; rm -rf /\n", &["stream.delete@32"]),
];

/// Ordinary output.
const QUIET: &[&str] = &[
    // Files that are called like programs, and sentences that begin with the name of one.
    "/etc/passwd\n",
    "/etc/crontab\n",
    "/etc/passwd is world readable\n",
    "useradd is deprecated on this system\n",
    "parted failed to read /dev/sda\n",
    // Where the project lies is not known.
    "$ rm -rf ../other build\n",
    "$ mv /srv/work/a /srv/work/b\n",
    "> /dev/sda1 on / type ext4\n",
    "$ ls | sed 's/.*/echo &/' | sh\n",
    "$ echo $GITHUB_TOKEN | docker login ghcr.io -u x --password-stdin\n",
    "$ echo 'export PATH=$HOME/bin:$PATH' >> ~/.bashrc\n",
    "terraform destroy -auto-approve\n",
    "# DANGER: rm -rf / would delete everything\n",
];

#[test]
fn commands_that_are_run_are_found_whatever_they_are() {
    let mut wrong = String::new();
    for (output, rules) in FOUND {
        let fired = fired(output);
        if fired != *rules {
            wrong.push_str(&format!("{output:?}: {fired:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn ordinary_commands_are_quiet() {
    let mut wrong = String::new();
    for output in QUIET {
        let fired = fired(output);
        if !fired.is_empty() {
            wrong.push_str(&format!("{output:?}: {fired:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn what_may_be_any_command_is_not_reported_unread() {
    // Far more of them in one line than are read.
    let many = "{\"command\":\"a\"},".repeat(400);
    assert_eq!(fired(&format!("[{many}]\n")), [""; 0]);
    // And they take nothing from what a rule names.
    let last = "{\"command\":\"rm -rf /\"}";
    let found = fired(&format!("[{}{last}]\n", "{\"command\":\"a\"},".repeat(100)));
    assert_eq!(found, [format!("stream.delete@{}", 1 + 100 * 16 + 12)]);
}
