use super::*;

fn commands(text: &str) -> Vec<String> {
    shown_commands(text).into_iter().map(|shown| shown.command.into_owned()).collect()
}

#[test]
fn commands_are_taken_from_where_they_are_shown() {
    for (text, wanted) in [
        ("Run `rm -i /tmp/x` now", vec!["rm -i /tmp/x"]),
        ("Run ``rm -i /tmp/x`` now", vec!["rm -i /tmp/x"]),
        ("Run `` rm `x` y`` now", vec![" rm `x` y"]),
        ("```sh\nrm -i x\npwd\n```\nend", vec!["rm -i x\npwd\n"]),
        ("```sh\r\nrm -i x\r\n```\r\nend", vec!["rm -i x\r\n"]),
        ("~~~\nrm -i x\n~~~", vec!["rm -i x\n"]),
        ("```fish\nrm -i x\n```", vec!["rm -i x\n"]),
        ("```sh-session\n$ rm -i x\n```", vec!["rm -i x"]),
        ("```{.bash}\nrm -i x\n```", vec!["rm -i x\n"]),
        ("```powershell\nrm -i x\n```", vec!["rm -i x\n"]),
        ("```console\n$ rm -i x\nfile\n$ rm -i y\n```", vec!["rm -i x", "rm -i y"]),
        ("```console\nanna@box:/tmp$ rm -i x\nfile\n```", vec!["rm -i x"]),
        ("> ```sh\n> rm -i x\n> rm -i y\n> ```\nend", vec!["rm -i x\nrm -i y\n"]),
        ("> > ```sh\n> > rm -i x\n\nend", vec!["rm -i x\n"]),
        ("> ```sh\n> rm -i x\nmore", vec!["rm -i x\n"]),
        ("1. Do:\n   ```\n   rm -i x\n   ```\n", vec!["   rm -i x\n"]),
        ("```rust\nfn rm() {}\n```", vec![]),
        ("```sh `rm -i x` y", vec!["rm -i x"]),
        ("$ rm -i x\nok", vec!["rm -i x"]),
        ("- $ rm -i x\n", vec!["rm -i x"]),
        ("root@box:~# rm -i x", vec!["rm -i x"]),
        ("PS C:\\> rm -i x", vec!["rm -i x"]),
        ("```\nrm -i x", vec!["rm -i x"]),
        ("plain text, it's \"nothing here\"", vec![]),
        ("say \"rm -rf x y\"", vec!["rm -rf x y"]),
        ("say “find . -x” to it", vec!["find . -x"]),
        ("Then:\n\n    find . -x\n\nend", vec!["find . -x"]),
        ("Then:\n\n    rm -i \\\n      x\n\nend", vec!["rm -i \\\n      x"]),
        ("all:\n\t@rm -i x\n", vec!["rm -i x"]),
        ("    remove the file - if there is one\n", vec![]),
        ("FROM x\nRUN rm -i x\n", vec!["rm -i x"]),
        (
            "```dockerfile\nFROM x\nRUN --network=none rm -i x \\\n && rm -i y\n```",
            vec!["rm -i x \\\n && rm -i y"],
        ),
        ("- run: rm -i x\n", vec!["rm -i x"]),
        ("run: \"rm -i 'x y'\"\n", vec!["rm -i 'x y'"]),
        ("script:\n- rm -i x\n- ls\nname: rm -i x\n", vec!["rm -i x"]),
        ("a:\n  run: |\n    npm ci - x\n    rm -i x\n", vec!["npm ci - x", "rm -i x"]),
        ("<pre><code class=\"language-bash\">rm -i x</code></pre>", vec!["rm -i x"]),
        ("<p><code>find . -x</code></p>", vec!["find . -x"]),
        ("<code class=\"language-rust\">rm -i x</code>", vec![]),
        ("os.system(\"find . -x\")", vec!["find . -x"]),
        ("```python\nimport os\nos.system('rm \\'x\\'')\n```", vec!["rm 'x'"]),
        ("subprocess.run([\"rm\", \"-i\", 'x y'])", vec!["'rm' '-i' 'x y'"]),
        ("subprocess.run(\n    \"\"\"rm -i x\"\"\", shell=True)", vec!["rm -i x"]),
        ("{\"command\": \"rm -i \\\"x y\\\"\"}", vec!["rm -i \"x y\""]),
    ] {
        let mut found = commands(text);
        found.dedup();
        assert_eq!(found, wanted, "{text:?}");
    }
}

#[test]
fn long_scripts_are_read_in_pieces() {
    let text = format!("```sh\n{}find /srv -delete\n```", "# nothing to see here\n".repeat(400));
    let found = commands(&text);
    assert!(found.iter().any(|command| command.ends_with("find /srv -delete\n")), "{found:?}");
    assert!(found.iter().all(|command| command.len() <= 4_096));
}

#[test]
fn what_a_command_would_do_decides() {
    for (command, wanted) in [
        ("find / -delete", true),
        ("r'm' -r -f \"$HOME\"", true),
        ("/bin/r? -rf /", true),
        ("ls -la /", false),
        ("rm -rf ./build", false),
        ("echo rm -rf /", false),
    ] {
        assert_eq!(is_dangerous(command), wanted, "{command}");
    }
}
