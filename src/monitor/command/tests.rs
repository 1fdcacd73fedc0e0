//! Lines of output, and the command that each is read as.

use super::*;

/// Line, the word that triggers, and the command with its form.
const CASES: &[(&str, &str, &str, Form)] = &[
    ("$ shred a", "shred", "shred a", Form::Run),
    ("user@host:~/x$ shred a", "shred", "shred a", Form::Run),
    ("(venv) [me@box x]$ shred a", "shred", "shred a", Form::Run),
    ("root@box:/# shred a", "shred", "shred a", Form::Run),
    ("+ shred a", "shred", "shred a", Form::Run),
    ("❯ shred a", "shred", "shred a", Form::Run),
    ("Running: shred a", "shred", "shred a", Form::Run),
    ("Executing command: shred a", "shred", "shred a", Form::Run),
    ("● Bash(shred a)", "shred", "shred a", Form::Run),
    ("shred a", "shred", "shred a", Form::Bare),
    ("cd x && sudo shred a", "shred", "cd x && sudo shred a", Form::Bare),
    ("`shred a`", "shred", "shred a", Form::Mention),
    ("# shred /a", "shred", "shred /a", Form::Run),
    ("# shred /a is what he typed", "shred", "shred /a is what he typed", Form::Doubtful),
    ("> shred /a (dangerous)", "shred", "shred /a (dangerous)", Form::Doubtful),
    ("> shred /a - wipes it", "shred", "shred /a - wipes it", Form::Doubtful),
    ("root@h:~# shred /a once", "shred", "shred /a once", Form::Run),
    ("/ # shred /a once", "shred", "shred /a once", Form::Run),
    ("sh-5.1# shred /a once", "shred", "shred /a once", Form::Run),
    ("me@h ~/x (main)> shred /a once", "shred", "shred /a once", Form::Run),
    ("PS C:\\x> shred /a", "shred", "shred /a", Form::Run),
    ("λ shred a", "shred", "shred a", Form::Run),
    ("➜  ~ shred a", "shred", "shred a", Form::Run),
    ("➜  x git:(main) ✗ shred a", "shred", "shred a", Form::Run),
    ("➜ sudo shred a", "shred", "sudo shred a", Form::Run),
    ("$ \"shred\" a", "shred", "\"shred\" a", Form::Run),
    ("Running: \"shred a\".", "shred", "shred a", Form::Run),
    ("Bash(command=\"shred \\\"a\\\"\", timeout=5)", "shred", "shred \"a\"", Form::Run),
    ("sudo: me : PWD=/ ; COMMAND=/bin/shred a", "shred", "/bin/shred a", Form::Run),
    ("  1 | shred a", "shred", "shred a", Form::Mention),
    ("  | shred a", "shred", "shred a", Form::Mention),
    ("    12\tshred a", "shred", "shred a", Form::Mention),
    ("12:shred a", "shred", "shred a", Form::Mention),
    ("12:30:01 $ shred a", "shred", "shred a", Form::Run),
    (r#"{"command":["shred","-u","a b"]}"#, "shred", "shred -u 'a b'", Form::Run),
    (r#"{"args":"{\"command\":[\"shred\",\"a\"]}"}"#, "shred", "shred a", Form::Run),
    ("call(['shred', 'a'])", "shred", "shred a", Form::Run),
    ("x = ['shred', 'a']", "shred", "shred a", Form::Doubtful),
    (r#"{"tool":"Bash","input":{"command":"cd x; shred \"a\""}}"#, "shred", "cd x; shred \"a\"", Form::Run),
    (r#"{"arguments":"{\"command\":\"shred a\"}"}"#, "shred", "shred a", Form::Run),
    ("never do `shred a` here", "shred", "shred a", Form::Mention),
    ("I would now shred a, he said", "shred", "shred a, he said", Form::Mention),
    ("He said \"shred a\" and went", "shred", "shred a", Form::Mention),
    ("a | \\\nshred a", "shred", "a | \\\nshred a", Form::Bare),
    // Prompts and what builds and agents print before a command.
    ("joe@host ~/p (main *) $ shred a", "shred", "shred a", Form::Run),
    ("[10:00:00] joe@host:~$ shred a", "shred", "shred a", Form::Run),
    ("u@h:~/p (main)$ shred a", "shred", "shred a", Form::Run),
    ("u@h:~$shred a", "shred", "shred a", Form::Run),
    ("Mac:proj joe$ shred a", "shred", "shred a", Form::Run),
    ("~/p on  main [!] via 🐍 v3.11 ❯ shred a", "shred", "shred a", Form::Run),
    ("web-1  | $ shred a", "shred", "shred a", Form::Run),
    ("│ $ shred a │", "shred", "shred a", Form::Run),
    ("  12 | $ shred a", "shred", "shred a", Form::Mention),
    ("[exec] shred a", "shred", "shred a", Form::Run),
    ("└─$ shred a", "shred", "shred a", Form::Run),
    ("╰─❯ shred a", "shred", "shred a", Form::Run),
    ("🚀 ~/p $ shred a", "shred", "shred a", Form::Run),
    ("In [1]: !shred a", "shred", "shred a", Form::Run),
    (". postinstall$ shred a", "shred", "shred a", Form::Run),
    ("2026-01-01T10:00:00.1234567Z + shred a", "shred", "shred a", Form::Run),
    ("2026-01-01T10:00:00.1234567Z ##[command]shred a", "shred", "shred a", Form::Run),
    ("2026-01-01T10:00:00.123456Z 01O $ shred a", "shred", "shred a", Form::Run),
    ("#12 0.345 + shred a", "shred", "shred a", Form::Run),
    ("#12 [5/9] RUN shred a", "shred", "shred a", Form::Run),
    ("Step 4/9 : RUN shred a", "shred", "shred a", Form::Run),
    ("web-1  | + shred a", "shred", "shred a", Form::Run),
    ("Jan 01 00:00:00 host sh[123]: + shred a", "shred", "shred a", Form::Run),
    ("• Ran shred a", "shred", "shred a", Form::Run),
    ("│ ✔  Shell shred a (clean up) │", "shred", "shred a", Form::Run),
    ("| Bash     shred a", "shred", "shred a", Form::Run),
    ("Running shred /a", "shred", "shred /a", Form::Doubtful),
    ("✗ shred /a", "shred", "shred /a", Form::Doubtful),
    ("│ shred /a    │", "shred", "shred /a", Form::Doubtful),
    ("│ shred /a │ wipes │", "shred", "shred /a │ wipes │", Form::Mention),
    ("Run shred /a to be safe", "shred", "shred /a to be safe", Form::Mention),
    (r#"<parameter name="command">shred a</parameter>"#, "shred", "shred a", Form::Run),
    ("<execute_bash>shred a</execute_bash>", "shred", "shred a", Form::Run),
    (r#"{"command":"sh","args":["-c","shred a"]}"#, "shred", "sh -c 'shred a'", Form::Run),
    (r#"{"command":"shred","args":["-u","a"]}"#, "shred", "shred -u a", Form::Run),
    // A prompt is no continuation, and the row of a table goes on nowhere.
    ("| a | b |\n$ shred a", "shred", "shred a", Form::Run),
    ("x \\\n$ shred a", "shred", "shred a", Form::Run),
    // Code and tables of tests.
    (r#"check('{"command":"shred a"}')"#, "shred", "shred a", Form::Doubtful),
    (r#"("Bash", r"{"command":"shred a"}"), Block"#, "shred", "shred a", Form::Doubtful),
    (r#"Function(arguments='{"command":"shred a"}', name='bash')"#, "shred", "shred a", Form::Run),
    ("command = \"shred a\"", "shred", "shred a", Form::Doubtful),
    ("bash(\"shred a\")", "shred", "shred a", Form::Doubtful),
    (r#"{"cmd": "shred a", "expect": "block"}"#, "shred", "shred a", Form::Mention),
    (r#"{"name":"bash","input":{"command":"shred a","expect":"block"}}"#, "shred", "shred a", Form::Run),
    ("- expect: block\n  cmd: shred a", "shred", "shred a", Form::Mention),
    ("+    shred /a", "shred", "shred /a", Form::Mention),
    // Who printed it, and when.
    ("2026-01-01T10:00:00+0100 host sh[1]: + shred a", "shred", "shred a", Form::Run),
    ("2026/01/01 10:00:00 INFO  exec: shred a", "shred", "shred a", Form::Run),
    ("web-5c9d8f7b6-x2k4q web + shred a", "shred", "shred a", Form::Run),
    ("[pod/web-5c9d8f7b6-x2k4q/a-rather-long-name-of-a-container] $ shred a", "shred", "shred a", Form::Run),
    ("[build/test]   | + shred a", "shred", "shred a", Form::Run),
    ("box.x (remote-exec): + shred a", "shred", "shred a", Form::Run),
    (
        "x (local-exec): Executing: [\"/bin/sh\" \"-c\" \"shred a\"]",
        "shred",
        "/bin/sh -c 'shred a'",
        Form::Run,
    ),
    ("npm ERR! command sh -c shred a", "shred", "shred a", Form::Run),
    ("TASK [web : shell : shred a] ***", "shred", "shred a", Form::Run),
    ("TASK [shell : shred a] ***", "shred", "shred a", Form::Run),
    ("INFO  app:run.py:12 Running shred /a", "shred", "shred /a", Form::Doubtful),
    // Errors that say what was run.
    ("Command 'shred a' returned non-zero exit status 1.", "shred", "shred a", Form::Run),
    ("E  x.Error: Command \"shred 'a'\" failed", "shred", "shred 'a'", Form::Run),
    ("Error: Command failed: shred a", "shred", "shred a", Form::Run),
    ("process didn't exit successfully: `shred a` (exit status: 1)", "shred", "shred a", Form::Run),
    ("warning: x@1: running `shred a`", "shred", "shred a", Form::Doubtful),
    ("running `shred a` is dangerous", "shred", "shred a", Form::Mention),
    ("running: \"sh\" \"-c\" \"shred a\"", "shred", "\"sh\" \"-c\" \"shred a\"", Form::Run),
    // Signs of themes, arrows, and what the agent says.
    ("⚡ shred /a", "shred", "shred /a", Form::Doubtful),
    (">> shred /a", "shred", "shred /a", Form::Doubtful),
    ("~ shred /a", "shred", "shred /a", Form::Doubtful),
    ("$cat shred", "shred", "cat shred", Form::Doubtful),
    ("[2/4] shred /a", "shred", "shred /a", Form::Doubtful),
    ("I'll run shred /a", "shred", "shred /a", Form::Doubtful),
    ("Let me run: shred /a", "shred", "shred /a", Form::Doubtful),
    ("• shred /a", "shred", "shred /a", Form::Mention),
    ("Run docker run shred /a alpine", "shred", "shred /a alpine", Form::Mention),
    (
        "Run docker run --privileged shred alpine",
        "docker",
        "docker run --privileged shred alpine",
        Form::Doubtful,
    ),
    ("(cd x && shred a)", "shred", "(cd x && shred a)", Form::Bare),
    // Code and settings that are shown.
    ("os.system(\"shred a\")", "shred", "shred a", Form::Doubtful),
    ("  \"postinstall\": \"shred a\",", "shred", "shred a", Form::Doubtful),
    ("ExecStart=-/bin/shred a", "shred", "/bin/shred a", Form::Doubtful),
    // Programs on either side of their arguments.
    (r#"{"args":["-u","a"],"command":"shred"}"#, "shred", "shred -u a", Form::Run),
    (r#"{"command":"shred","cwd":"/x","args":["-u","a"]}"#, "shred", "shred -u a", Form::Run),
];

#[test]
fn commands_are_told_from_prose() {
    let mut wrong = String::new();
    for (line, trigger, command, form) in CASES {
        let at = line.find(trigger).expect("the trigger stands in the line");
        let last = line.rfind('\n').map_or(0, |at| at + 1);
        let found = around(line, last, at..at + trigger.len());
        let found = found.map(|found| (found.text.into_owned(), found.form));
        if found.as_ref() != Some(&((*command).to_owned(), *form)) {
            wrong.push_str(&format!("{line:?}: {found:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
