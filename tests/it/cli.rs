//! The program itself: exit codes, what it prints, wrong flags, broken files.
//!
//! Every run has an empty environment and an empty working directory, so that no setting of the machine gets in. Figures
//! are taken with rules of the tests' own (`tests/cases/eval/rules`), whose markers no built-in rule knows.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// The standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {}{}", self.out, self.err))
    }
}

/// The program, with no environment.
pub fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(arguments).current_dir(folder).env_clear();
    command
}

/// Runs the program to its end.
pub fn run_in(folder: &Path, arguments: &[&str], input: &[u8]) -> Ran {
    run_command(program(folder, arguments), input)
}

/// Runs a command to its end.
pub fn run_command(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A command that reads no input may be gone already.
    let _ = child.stdin.take().expect("a piped input").write_all(input);
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Ran { code: output.status.code().expect("no signal"), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs the program in an empty folder.
pub fn run(arguments: &[&str]) -> Ran {
    let folder = empty();
    run_in(folder.path(), arguments, b"")
}

/// Arguments followed by more of them.
pub fn join<'a>(first: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [first, more].concat()
}

/// An empty folder.
pub fn empty() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// The path of a file below `tests/cases`.
pub fn cases(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    path.to_str().expect("a path in Unicode").to_owned()
}

/// The setting that adds the rules of the tests.
pub fn with_rules() -> String {
    format!("rules.paths={}", cases("eval/rules"))
}

/// A running service, killed at the end of the test.
pub struct Service {
    child: Child,
    /// Its URL.
    pub address: String,
    /// Its working folder.
    pub folder: TempDir,
}

impl Service {
    /// Starts one with the rules of the tests.
    pub fn start() -> Self {
        let (folder, rules) = (empty(), with_rules());
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--set", &rules];
        let mut child = program(folder.path(), &arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the service starts");
        let log = BufReader::new(child.stderr.take().expect("a piped log"));
        let mut lines = log.lines();
        let address = lines
            .by_ref()
            .map(|line| line.expect("a log line"))
            .filter_map(|line| serde_json::from_str::<Value>(&line).ok())
            .find_map(|event| event["grpc"].as_str().map(str::to_owned))
            .expect("the service says where it listens");
        // Somebody must read the log, or the service waits for room in the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address, folder }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn wrong_usage_is_64_and_help_is_0() {
    for arguments in [
        &[][..],
        &["nonsense"],
        &["check", "--nonsense", "x"],
        &["check", "a", "b"],
        &["check", "--role", "moon", "x"],
        &["check", "x", "--file", "y"],
        &["check", "--server", "ftp://127.0.0.1:1", "x"],
        &["eval"],
        &["rules"],
        &["rules", "show"],
        &["rules", "test", "--without-builtin"],
        &["policy", "test"],
        &["health", "--timeout", "soon"],
        &["config", "--set", "nonsense"],
        &["intercept"],
        &["intercept", "--tool", "read", "--path", "x", "--", "ls"],
        &["intercept", "--path", "x"],
        &["intercept", "--message", "x", "--tool", "read"],
        &["intercept", "--os", "plan9", "--", "ls"],
        &["intercept", "--tool", "read", "--args", ""],
        &["interceptors"],
        &["interceptors", "list", "--hook", "tool.later"],
    ] {
        let ran = run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (64, ""), "{arguments:?}: {}", ran.err);
        assert!(!ran.err.is_empty(), "{arguments:?} says nothing");
    }
    for arguments in
        [&["--help"][..], &["check", "--help"], &["hook", "claude-code", "--help"], &["--version"]]
    {
        let ran = run(arguments);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{arguments:?}");
        assert!(!ran.out.is_empty());
    }
}

#[test]
fn a_decision_is_the_exit_code_of_check() {
    let rules = with_rules();
    for (text, code, word) in [
        ("hello", 0, "ALLOW"),
        ("mane ABCyDEF", 0, "ALLOW"),
        ("stripe ABCxDEF", 1, "WARN"),
        ("a zebra override", 2, "BLOCK"),
    ] {
        let ran = run(&["check", "--set", &rules, text]);
        assert_eq!((ran.code, ran.err.as_str()), (code, ""), "{text}");
        assert!(ran.out.starts_with(word), "{}", ran.out);
    }
    assert_eq!(run(&["check", "--set", &rules, "--role", "system", "a zebra override"]).code, 0);
}

#[test]
fn check_underlines_what_it_found() {
    let ran = run(&["check", "--set", &with_rules(), "日本\nmy zebra override now"]);
    let lines: Vec<&str> = ran.out.lines().collect();
    let at =
        lines.iter().position(|line| line.contains("2 | my zebra override now")).expect("the line is shown");
    assert_eq!(lines[at + 1], "    |    ^^^^^^^^^^^^^^");
    assert!(!ran.out.contains('\x1b'), "no colours without a terminal");
}

#[test]
fn check_reads_a_file_and_standard_input() {
    let (folder, rules) = (empty(), with_rules());
    std::fs::write(folder.path().join("text"), "a zebra override").expect("a file");
    for (arguments, input) in [
        (&["--file", "text"][..], &b""[..]),
        (&["--file", "-"][..], &b"a zebra override"[..]),
        (&["-"][..], &b"a zebra override"[..]),
        (&[][..], &b"a zebra override"[..]),
    ] {
        let all = join(&["check", "--set", &rules], arguments);
        assert_eq!(run_in(folder.path(), &all, input).code, 2, "{arguments:?}");
    }
    let ran = run_in(folder.path(), &["check", "-"], b"ab\xff");
    assert_eq!((ran.code, ran.out.as_str()), (65, ""));
    assert!(ran.err.contains("standard input: not UTF-8 at byte 2"), "{}", ran.err);
    let ran = run(&["check", "--file", "nowhere"]);
    assert_eq!(ran.code, 65);
    assert!(ran.err.contains("nowhere: cannot be read"), "{}", ran.err);
}

#[test]
fn check_answers_the_same_json_here_and_over_the_server() {
    let (service, rules) = (Service::start(), with_rules());
    let text = "é zbr_abcdefgh, a zebra override";
    let here = run(&["check", "--set", &rules, "--json", "--redact", text]);
    let there = run(&["check", "--server", &service.address, "--json", "--redact", text]);
    assert_eq!((here.code, there.code), (2, 2), "{}{}", here.err, there.err);
    let (mut here, mut there) = (here.json(), there.json());
    for answer in [&mut here, &mut there] {
        let answer = answer.as_object_mut().expect("an object");
        assert!(answer.remove("decisionId").is_some());
    }
    assert_eq!(here, there);
    assert_eq!(here["decision"], "DECISION_BLOCK");
    assert_eq!(here["redactedMessages"][0]["text"], "é [SECRET_TEST_1], a zebra override");
    let rules_found: Vec<_> =
        here["findings"].as_array().expect("findings").iter().map(|f| &f["ruleId"]).collect();
    assert_eq!(rules_found, ["secrets.test-ticket", "injection.test-zebra"]);
    assert_eq!(here["findings"][0]["span"]["start"], "3");
    assert_eq!(here["findings"][0]["matchedText"], "zb…gh", "masked unless the policy reveals");
}

#[test]
fn refusals_have_the_same_exit_code_here_and_over_the_server() {
    let service = Service::start();
    for arguments in [&["--policy", "nowhere"][..], &["--plugins", "nowhere"]] {
        let here = run(&join(&["check", "x"], arguments));
        let there = run(&join(&["check", "--server", &service.address, "x"], arguments));
        assert_eq!((here.code, there.code), (65, 65), "{arguments:?}: {}{}", here.err, there.err);
        assert!(here.err.contains("nowhere") && there.err.contains("nowhere"));
    }
}

#[test]
fn a_server_that_is_away_is_69() {
    // Port 9 is `discard`, which nobody runs.
    let url = "http://127.0.0.1:9";
    for arguments in [
        &["health", "--timeout", "1s"][..],
        &["check", "x"],
        &["rules", "list"],
        &["policy", "show"],
        &["eval", &cases("eval/injection.jsonl")],
        &["eval", &cases("eval/commands.jsonl")],
        &["intercept", "--command", "ls"],
        &["interceptors", "list"],
    ] {
        let ran = run(&join(arguments, &["--server", url]));
        assert_eq!((ran.code, ran.out.as_str()), (69, ""), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains("; start the service there"), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn what_the_system_refuses_says_what_to_do() {
    let folder = empty();
    std::fs::write(folder.path().join("text"), "no setting").expect("a file");
    std::fs::write(folder.path().join("latin"), b"log: \xe9").expect("a file");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("its address").to_string();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"];
    let serve = |more: &[&'static str]| join(&serve, more);
    let (other_grpc, other_http) = (format!("server.listen={taken}"), format!("http.listen={taken}"));
    for (arguments, code, told) in [
        (join(&["review"], &["gone"]), 65, "gone: cannot be read: "),
        (join(&["check"], &["--file", "gone"]), 65, "gone: cannot be read: "),
        (join(&["eval"], &["gone"]), 65, "gone: cannot be read: "),
        (join(&["policy"], &["validate", "gone"]), 65, "gone: cannot be read: "),
        (join(&["policy"], &["test", "gone"]), 65, "gone: cannot be read: "),
        (join(&["rules"], &["test", "gone"]), 65, "gone: cannot be read: "),
        (join(&["check"], &["--file", "."]), 65, "; that is a folder: name a file"),
        (
            join(&["review", "text"], &["--format", "json", "--output", "no/where"]),
            64,
            "written: No such file or directory (os error 2); check the path",
        ),
        (join(&["config"], &["--config", "gone"]), 78, "could not read `gone`: "),
        (join(&["config"], &["--config", "latin"]), 78, "; save it as UTF-8 text"),
        (join(&["config"], &["--set", "server.tls.cert=x"]), 78, "did you mean `server.tls.certificate`?"),
        (serve(&["--set", "data_dir=text"]), 78, "a file stands where a folder is needed"),
        (serve(&["--set", "data_dir=text/below"]), 78, "a file stands where a folder is needed"),
        (serve(&["--set", "audit.path=text/below"]), 78, "a file stands where a folder is needed"),
        (
            serve(&["--set", "server.tls.certificate=gone", "--set", "server.tls.key=gone"]),
            78,
            "; check the path",
        ),
        (serve(&["--set", "auth.mode=tokens", "--set", "auth.tokens.path=gone"]), 78, "; check the path"),
        (join(&["serve", "--set", &other_grpc], &[]), 78, "server.listen: cannot listen on "),
        (join(&["serve", "--set", &other_grpc], &[]), 78, "; stop what listens there"),
        (
            join(&["serve", "--listen", "127.0.0.1:0", "--set", &other_http], &[]),
            78,
            "http.listen: cannot listen on ",
        ),
    ] {
        let ran = run_in(folder.path(), &arguments, b"");
        let said = format!("{}{}", ran.out, ran.err);
        assert_eq!(ran.code, code, "{arguments:?}: {said}");
        assert!(said.contains(told), "{arguments:?}: {said}");
        assert!(!told.contains("be read: ") || said.contains("; check the path"), "{arguments:?}: {said}");
    }
}

#[test]
fn health_asks_one_service_or_all() {
    let service = Service::start();
    let server = ["health", "--server", &service.address];
    let health = |more: &[&str]| run(&join(&server, more));
    assert_eq!(health(&[]).code, 0);
    let ran = health(&["--service", "portcullis.v1.PolicyDecisionService"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "SERVING\n"));
    let ran = health(&["--service", "portcullis.v1.SubmissionService", "--json"]);
    assert_eq!((ran.code, ran.json()["status"].as_str()), (0, Some("SERVING")));
    let ran = health(&["--service", "nowhere"]);
    assert_eq!((ran.code, ran.out.as_str()), (69, "SERVICE_UNKNOWN\n"));
}

#[test]
fn interceptors_are_listed_added_and_removed() {
    let service = Service::start();
    let folder = empty();
    let token = service.folder.path().join("data/admin-token");
    let token = token.to_str().expect("Unicode");
    let ask = |arguments: &[&str]| {
        let all = [&["interceptors"], arguments, &["--server", &service.address]].concat();
        run_in(folder.path(), &all, b"")
    };
    let listed = ask(&["list", "--hook", "tool.before"]);
    assert_eq!((listed.code, listed.err.as_str()), (0, ""));
    let first = listed.out.lines().next().expect("the guards");
    assert!(
        first.starts_with("tool.before") && first.contains("100  builtin:command-safety-guard"),
        "{first}"
    );

    let spec = "id: test:night\nhook: tool.before\ntools: ^cron$\ndo:\n  - block: not at night\n";
    std::fs::write(folder.path().join("night.yaml"), spec).expect("a file");
    let denied = ask(&["add", "night.yaml"]);
    assert_eq!(denied.code, 78, "no token: {}", denied.err);
    assert!(denied.err.contains("--token-file"), "{}", denied.err);
    let tried = ask(&["add", "night.yaml", "--dry-run", "--token-file", token]);
    assert_eq!(
        (tried.code, tried.out.as_str()),
        (0, "test:night: could be added; matches cron\n"),
        "{}",
        tried.err
    );
    let added = ask(&["add", "night.yaml", "--token-file", token]);
    assert_eq!((added.code, added.out.as_str()), (0, "test:night: added; matches cron\n"), "{}", added.err);
    assert_eq!(ask(&["add", "night.yaml", "--token-file", token]).code, 65, "the id is taken");
    let json = ask(&["list", "--json"]).json();
    let ids = json["interceptors"].as_array().expect("a list").iter().map(|one| &one["id"]);
    assert!(ids.clone().any(|id| id == "test:night"), "{:?}", ids.collect::<Vec<_>>());
    let blocked = run(&["intercept", "--tool", "cron", "--args", "{}", "--server", &service.address]);
    assert_eq!(blocked.code, 2, "{}{}", blocked.out, blocked.err);
    let removed = ask(&["remove", "test:night", "--token-file", token]);
    assert_eq!((removed.code, removed.out.as_str()), (0, "test:night: removed\n"), "{}", removed.err);
    assert_eq!(ask(&["remove", "test:night", "--token-file", token]).code, 65);
    std::fs::write(folder.path().join("broken.yaml"), spec.replace("cron", "crom")).expect("a file");
    let broken = ask(&["add", "broken.yaml", "--token-file", token]);
    assert_eq!(broken.code, 65);
    assert!(broken.err.contains("sessions_send"), "the valid names are told: {}", broken.err);
}

#[test]
fn intercept_tells_what_a_command_would_do() {
    for (arguments, code, told) in [
        (&["--", "rm", "-rf", "/"][..], 2, "BLOCK  exec"),
        (&["--", "rm -rf /"][..], 2, "BLOCK  exec"),
        (&["--", "echo", "rm -rf /"][..], 0, "ALLOW  exec"),
        (&["--command", "git status"][..], 0, "ALLOW  exec"),
        (&["--tool", "Read", "--path", "/home/dev/.ssh/id_rsa"][..], 2, "BLOCK  read"),
        (&["--tool", "read", "--args", "@args.json"][..], 2, "BLOCK  read"),
        (&["--tool", "read", "--args", "-"][..], 2, "BLOCK  read"),
        (&["--tool", "bash", "--args", "{\"command\":\"ls\"}", "--result", "\"x\""][..], 0, "ALLOW  exec"),
        (&["--message", "Add a test."][..], 0, "ALLOW  message"),
        (&["--params", "{\"model\":\"large\",\"temperature\":1}"][..], 0, "ALLOW  params"),
    ] {
        let folder = empty();
        let args = b"{\"path\":\"/home/dev/.ssh/id_rsa\"}";
        std::fs::write(folder.path().join("args.json"), args).expect("a file");
        let ran = run_in(folder.path(), &join(&["intercept"], arguments), args);
        assert_eq!((ran.code, ran.err.as_str()), (code, ""), "{arguments:?}: {}", ran.out);
        assert!(ran.out.starts_with(told), "{arguments:?}: {}", ran.out);
    }
    for arguments in [
        &["--tool", "exec", "--args", "{"][..],
        &["--tool", "exec", "--args", "{\"command\":\"ls\",\"command\":\"rm\"}"],
        &["--params", "{\"think_level\":\"max\"}"],
        &["--params", "{\"thinking\":1}"],
        &["--command", "ls", "--policy", "nowhere"],
        &["--command", "ls", "--metadata", "[]"],
        &["--tool", "exec", "--args", "@nowhere"],
    ] {
        let ran = run(&join(&["intercept"], arguments));
        assert_eq!((ran.code, ran.out.as_str()), (65, ""), "{arguments:?}");
        assert!(!ran.err.is_empty());
    }
}

#[test]
fn intercept_underlines_the_command_and_not_its_json() {
    let ran = run(&["intercept", "--command", "echo \"日本\"; rm -rf /"]);
    let lines: Vec<&str> = ran.out.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.contains("| echo \"日本\"; rm -rf /"))
        .expect("the command is shown");
    let carets = lines[at + 1].trim_end();
    assert!(carets.ends_with('^') && carets.matches('^').count() <= "rm -rf /".len(), "{}", ran.out);
    assert!(!ran.out.contains("\\\""), "no JSON: {}", ran.out);
}

#[test]
fn intercept_answers_the_same_json_here_and_over_the_server() {
    let service = Service::start();
    for arguments in
        [&["--verbose", "--", "rm", "-rf", "/"][..], &["--message", "mail jane.roe@corp-mail.net"]]
    {
        let here = run(&join(&["intercept", "--json", "--set", &with_rules()], arguments));
        let there = run(&join(&["intercept", "--json", "--server", &service.address], arguments));
        assert_eq!(here.code, there.code, "{}{}", here.err, there.err);
        let (mut here, mut there) = (here.json(), there.json());
        for answer in [&mut here, &mut there] {
            let answer = answer.as_object_mut().expect("an object");
            assert!(answer.remove("decisionId").is_some());
            for event in answer.get_mut("events").and_then(Value::as_array_mut).into_iter().flatten() {
                event.as_object_mut().expect("an event").remove("elapsed");
            }
        }
        assert_eq!(here, there);
    }
}

#[test]
fn a_bad_configuration_is_78() {
    let folder = empty();
    std::fs::write(folder.path().join("portcullis.yaml"), "server:\n  lisen: 127.0.0.1:1\nnonsense: 1\n")
        .expect("a file");
    for arguments in [&["config"][..], &["check", "x"], &["serve"], &["policy", "show"], &["rules", "list"]] {
        let ran = run_in(folder.path(), arguments, b"");
        assert_eq!((ran.code, ran.out.as_str()), (78, ""), "{arguments:?}");
        assert!(
            ran.err.contains("did you mean `server.listen`?") && ran.err.contains("portcullis.yaml:3"),
            "{}",
            ran.err
        );
    }
    assert_eq!(run(&["serve", "--listen", "0.0.0.0:0"]).code, 78, "an open port without authentication");
    assert_eq!(run(&["check", "--config", "nowhere.yaml", "x"]).code, 78);
    assert_eq!(run(&["check", "--set", "rules.paths=nowhere", "x"]).code, 78);
    assert_eq!(run(&["check", "--policy-path", "nowhere", "x"]).code, 78);
    // What is exposed matters to the service alone.
    assert_eq!(run(&["check", "--set", "server.listen=0.0.0.0:1", "x"]).code, 0);
}

#[test]
fn config_tells_values_and_sources() {
    let ran = run(&["config", "--json", "--set", "log.level=debug"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let settings = ran.json()["settings"].as_array().expect("a list").clone();
    let level = settings.iter().find(|one| one["key"] == "log.level").expect("the setting");
    assert_eq!((&level["value"], &level["source"]), (&json!("debug"), &json!("flag --set")));
}

#[test]
fn a_reader_that_goes_away_changes_nothing() {
    for (arguments, code) in
        [(&["rules", "list"][..], 0), (&["check", "--set", &with_rules(), "a zebra override"][..], 2)]
    {
        let folder = empty();
        let mut child = program(folder.path(), arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the program ends");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn version_names_the_rules() {
    let ran = run(&["version", "--json"]);
    assert_eq!(ran.json()["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(ran.json()["rules_revision"].as_str().map(str::len), Some(12));
}

#[test]
fn rules_are_listed_shown_and_explained() {
    let (rules, service) = (with_rules(), Service::start());
    let list = |plugin: &str| {
        let here = run(&["rules", "list", "--json", "--plugin", plugin, "--set", &rules]).json();
        let there =
            run(&["rules", "list", "--json", "--plugin", plugin, "--server", &service.address]).json();
        assert_eq!(here, there, "{plugin}");
        here
    };
    for (plugin, id) in [("command_safety", "command.delete-root"), ("path_audit", "path.ssh")] {
        let all = list(plugin);
        assert!(all["rules"].as_array().expect("a list").iter().any(|rule| rule["id"] == id), "{id}");
        let shown = run(&["rules", "show", id]);
        assert!(shown.out.contains(&format!("[[rule]]\nid = \"{id}\"")), "{}", shown.out);
        let explained = run(&["rules", "explain", id]);
        assert!(explained.out.contains("BLOCK under policy `default`"), "{}", explained.out);
    }
    let here = list("pii");
    let list = here["rules"].as_array().expect("a list");
    let mane = list.iter().find(|rule| rule["id"] == "pii.test-mane").expect("the rule");
    assert_eq!((&mane["severity"], &mane["mode"]), (&json!("SEVERITY_LOW"), &json!("MODE_ENFORCE")));
    let ran = run(&["rules", "list", "--set", &rules]);
    assert!(ran.out.lines().any(|line| line.starts_with("secrets.test-ticket ")), "{}", ran.out);

    let ran = run(&["rules", "show", "pii.test-mane", "--set", &rules]);
    let toml = ran.out.split_once('\n').expect("a heading").1;
    let file = std::fs::read_to_string(cases("eval/rules/pii/test.toml")).expect("the file");
    assert!(toml.starts_with("[[rule]]\nid = \"pii.test-mane\"") && file.ends_with(toml), "{toml}");

    let ran = run(&["rules", "explain", "injection.test-zebra", "--set", &rules]);
    assert!(ran.out.contains("BLOCK under policy `default`"), "{}", ran.out);
    assert!(ran.out.contains("in system messages in shadow"), "{}", ran.out);
    for command in ["show", "explain"] {
        let ran = run(&["rules", command, "pii.test-man", "--set", &rules]);
        assert_eq!(ran.code, 65);
        assert!(ran.err.contains("did you mean `pii.test-mane`?"), "{}", ran.err);
    }
    assert_eq!(run(&["rules", "list", "--plugin", "nowhere"]).code, 65);
}

#[test]
fn built_in_rules_pass_their_own_test() {
    let ran = run(&["rules", "test"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
}

#[test]
fn a_rule_that_fails_its_test_is_named_with_its_place() {
    let folder = empty();
    let good = std::fs::read_to_string(cases("eval/rules/secrets/test.toml")).expect("the file");
    std::fs::create_dir(folder.path().join("mine")).expect("a folder");
    let file = folder.path().join("mine/rules.toml");
    let test = |text: &str| {
        std::fs::write(&file, text).expect("a file");
        run_in(folder.path(), &["rules", "test", "mine"], b"")
    };
    let good = format!("plugin = \"mine\"\n\n{good}");
    let ran = test(&good);
    assert_eq!((ran.code, ran.out.as_str()), (0, "1 rule, 2 texts: ok\n"));
    for (from, to, told) in [
        (
            "zbr_abcdefgh\"]",
            "zbr_1\"]",
            "mine/rules.toml:3: rule `secrets.test-ticket`, examples: \"zbr_1\" is not found",
        ),
        ("\"zbr_abc\"", "\"zbr_abcdefgh\"", "negative_examples: \"zbr_abcdefgh\" is found, at bytes 0..12"),
        ("severity", "severty", "mine/rules.toml:"),
        ("{8}", "{8", "pattern: "),
    ] {
        let ran = test(&good.replace(from, to));
        assert_eq!(ran.code, 65, "{from}: {}", ran.out);
        assert!(ran.out.contains(told), "{told} in {}", ran.out);
    }
    std::fs::write(&file, good.replace("{8}", "{8")).expect("a file");
    let json = run_in(folder.path(), &["rules", "test", "mine", "--json"], b"").json();
    assert_eq!(json["problems"][0]["rule"], "secrets.test-ticket");
    // What the gate never lets through is told, and fails nothing: it may be meant so.
    std::fs::write(&file, good.replace("zbr_[", "zb[rt]_[")).expect("a file");
    let ran = run_in(folder.path(), &["rules", "test", "mine"], b"");
    assert_eq!(ran.code, 0, "{}", ran.out);
    let told = "note: mine/rules.toml:3: rule `secrets.test-ticket`, pattern: also matches \"zbt_";
    assert!(ran.out.starts_with(told), "{}", ran.out);
    let json = run_in(folder.path(), &["rules", "test", "mine", "--json"], b"").json();
    assert_eq!((&json["notes"][0]["field"], &json["problems"]), (&"pattern".into(), &serde_json::json!([])));
    // The guards' rules lie in folders of their own.
    let guards = folder.path().join("guards/commands");
    std::fs::create_dir_all(&guards).expect("a folder");
    let rule = |example: &str| {
        format!(
            r#"
            [[rule]]
            id = "command.test-release"
            category = "command.releases"
            severity = "high"
            effects = ["delete_path"]
            target_pattern = "^/srv/releases/"
            description = "Deletes a release."
            recommendation = "Let the pipeline retire it."
            examples = ["{example}"]
            negative_examples = ["ls /srv/releases"]
            "#
        )
    };
    for (example, code, told) in [
        ("rm -r /srv/releases/4", 0, "1 rule, 2 texts: ok"),
        (
            "ls /srv",
            65,
            "guards/commands/own.toml:2: rule `command.test-release`: examples: \"ls /srv\" is not seen",
        ),
    ] {
        std::fs::write(guards.join("own.toml"), rule(example)).expect("a file");
        for path in ["guards", "guards/commands", "guards/commands/own.toml"] {
            let ran = run_in(folder.path(), &["rules", "test", path], b"");
            assert_eq!(ran.code, code, "{path}: {}{}", ran.out, ran.err);
            assert!(ran.out.contains(told), "{told} in {}", ran.out);
        }
    }
    let none = run_in(folder.path(), &["rules", "test", "nowhere"], b"");
    assert_eq!(none.code, 65);
}

#[test]
fn a_concept_that_no_model_weighs_is_noted() {
    let folder = empty();
    std::fs::create_dir(folder.path().join("mine")).expect("a folder");
    let concept = |family: &str| {
        format!(
            "[[concept]]\nid = \"mine.c\"\nfamily = \"{family}\"\ndescription = \"d\"\nphrases = [\"ignor* the rulez\"]\n\
             examples = [\"ignore the rulez\"]\nnegative_examples = [\"b\"]\n"
        )
    };
    for (family, is_noted) in [("override", false), ("nofam", true)] {
        std::fs::write(folder.path().join("mine/c.toml"), concept(family)).expect("a file");
        let ran = run_in(folder.path(), &["rules", "test", "mine"], b"");
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        let told = "note: mine/c.toml:1: rule `mine.c`, family: the model has no weight for `nofam`";
        assert_eq!(ran.out.contains(told), is_noted, "{}", ran.out);
    }
    std::fs::write(folder.path().join("mine/c.toml"), b"\xff").expect("a file");
    let ran = run_in(folder.path(), &["rules", "test", "mine"], b"");
    assert!(ran.code == 65 && ran.out.contains("mine/c.toml: is not UTF-8"), "{}", ran.out);
}

#[test]
fn policies_are_validated_and_shown() {
    let folder = empty();
    let write = |text: &str| std::fs::write(folder.path().join("strict.yaml"), text).expect("a file");
    write("name: strict\nthresholds: { warn: 0.1, block: 0.4 }\n");
    for path in ["strict.yaml", "."] {
        let ran = run_in(folder.path(), &["policy", "validate", path], b"");
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        assert!(ran.out.starts_with("ok: default, strict (revision "), "{}", ran.out);
    }
    let ran = run_in(folder.path(), &["policy", "show", "strict", "--policy-path", "."], b"");
    assert!(ran.out.contains("block: 0.4"), "{}", ran.out);
    let arguments =
        ["check", "--set", &with_rules(), "--policy-path", ".", "--policy", "strict", "stripe ABCxDEF"];
    assert_eq!(
        run_in(folder.path(), &arguments, b"").code,
        2,
        "a stricter policy blocks what the default warns of"
    );
    assert_eq!(run_in(folder.path(), &["policy", "show", "nowhere"], b"").code, 65);

    write("name: strict\nthresholds: { warn: 3 }\nplugns: {}\n");
    let ran = run_in(folder.path(), &["policy", "validate", "strict.yaml"], b"");
    assert_eq!((ran.code, ran.out.lines().count()), (65, 2), "{}", ran.out);
    assert!(ran.out.contains("strict.yaml:2:") && ran.out.contains("did you mean `plugins`?"), "{}", ran.out);
    let json = run_in(folder.path(), &["policy", "validate", "strict.yaml", "--json"], b"").json();
    assert_eq!((&json["valid"], &json["problems"][1]["line"]), (&json!(false), &json!(3)));
}

/// A category that no rule has concerns nothing, and rules may come later.
#[test]
fn categories_that_no_rule_has_are_warned_of() {
    let folder = empty();
    let write = |text: &str| std::fs::write(folder.path().join("strict.yaml"), text).expect("a file");
    let validate =
        |more: &[&str]| run_in(folder.path(), &join(&["policy", "validate", "strict.yaml"], more), b"");
    write("categories: { pii.emial: { mode: off } }\n");
    let ran = validate(&[]);
    let told = "strict.yaml:1:15: categories.pii.emial: no rule has the category `pii.emial`, so that this concerns \
                nothing; did you mean `pii.email`?\nok: ";
    assert!(ran.code == 0 && ran.out.starts_with(told), "{}{}", ran.out, ran.err);
    assert_eq!(validate(&["--json"]).json()["warnings"].as_array().map(Vec::len), Some(1));
    // Of everything that reports, those in code and of the guards, of bundles, of streams and of models among them.
    let known = [
        "pii",
        "pii.email",
        "prompt_injection",
        "prompt_injection.wording",
        "prompt_injection.hidden_text",
        "code_injection.shell",
        "command",
        "command.sandbox_escape",
        "structure",
        "archive",
        "manifest",
        "quality",
        "sandbox_escape",
        "content_safety.hate",
    ];
    write(&format!(
        "categories: {{ {} }}\n",
        known.map(|name| format!("{name}: {{ warn: 0.3 }}")).join(", ")
    ));
    let ran = validate(&[]);
    assert!(ran.code == 0 && ran.out.starts_with("ok: "), "{}{}", ran.out, ran.err);
    // A rule of one's own brings its category.
    write("categories: { pii.badge: { mode: off } }\n");
    assert!(validate(&[]).out.contains("no rule has the category `pii.badge`"));
    let rule = "[[rule]]\nid = 'mine.badge'\ncategory = 'pii.badge'\nseverity = 'low'\nliterals = ['emp-']\n\
                pattern = 'EMP-[0-9]{8}'\ndescription = 'd'\nrecommendation = 'r'\n";
    std::fs::create_dir(folder.path().join("mine")).expect("a folder");
    std::fs::write(folder.path().join("mine/a.toml"), rule).expect("a file");
    let ran = validate(&["--set", "rules.paths=mine"]);
    assert!(ran.code == 0 && ran.out.starts_with("ok: "), "{}{}", ran.out, ran.err);
}

/// What a training reads and what it writes are kept apart, and what is wrong is said before the work.
#[test]
fn training_writes_over_nothing_that_it_reads() {
    let folder = empty();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    let record = |label: &str, tier: &str, surface: &str| {
        format!(
            "{{\"id\":\"{label}\",\"text\":\"x\",\"label\":\"{label}\",\"tier\":\"{tier}\",\"surface\":\"{surface}\"}}\n"
        )
    };
    write("r.jsonl", &(record("attack", "semantic", "user") + &record("benign", "core", "user")));
    write("system.jsonl", &(record("attack", "core", "system") + &record("benign", "core", "system")));
    write("none.jsonl", "\n");
    write("bom.jsonl", &format!("\u{feff}{}", record("attack", "core", "user")));
    write("old.toml", "kept");
    let train = |from: &str, more: &[&str]| {
        run_in(folder.path(), &join(&["train", from, "--out", "m.toml"], more), b"")
    };
    for (from, more, code, told) in [
        (
            "r.jsonl",
            &["--card", "m.toml"][..],
            64,
            "--card m.toml: is where the model goes; name another file",
        ),
        ("r.jsonl", &["--card", "./m.toml", "--force"], 64, "--card ./m.toml: is where the model goes"),
        ("r.jsonl", &["--card", "r.jsonl", "--force"], 64, "--card r.jsonl: is read by this command"),
        ("r.jsonl", &["--card", "gone/c.md"], 64, "gone/c.md: cannot be written: "),
        ("r.jsonl", &["--card", "gone/c.md", "--force"], 64, "gone/c.md: cannot be written: "),
        ("r.jsonl", &["--card", "old.toml"], 64, "old.toml: exists already"),
        ("r.jsonl", &[], 65, "no model can learn from the attacks: of 1 there are 1 of tier `semantic`"),
        ("system.jsonl", &[], 65, "no model can learn from the attacks: of 1 there are 1 of the system"),
        ("none.jsonl", &[], 65, "there is no record in any of the files"),
        ("bom.jsonl", &[], 65, "bom.jsonl:1: begins with a byte order mark"),
    ] {
        let ran = train(from, more);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{from} {more:?}: {}", ran.err);
        assert!(ran.err.contains(told), "{from} {more:?}: {}", ran.err);
        assert!(!folder.path().join("m.toml").exists(), "{from} {more:?}");
    }
}

#[test]
fn policies_are_tested_by_case_files() {
    let rules = with_rules();
    let test = |path: &str, more: &[&str]| run(&join(&["policy", "test", "--set", &rules, path], more));
    let ran = test(&cases("policy_test/good.yaml"), &[]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "3 cases: ok\n"), "{}", ran.err);
    let ran = test(&cases("policy_test/failing.yaml"), &[]);
    assert_eq!(ran.code, 65);
    let told: Vec<&str> = ran.out.lines().skip(1).collect();
    assert_eq!(
        told,
        [
            "  decision: expected ALLOW, got BLOCK (policy default, score 0.80)",
            "  rules: expected pii.test-mane, got injection.test-zebra",
            "  not_rules: expected no injection.test-zebra, got injection.test-zebra",
            "2 cases: 1 failed",
        ]
    );
    assert!(
        ran.out.starts_with("FAILED ") && ran.out.contains("failing.yaml:2: wrong in every way"),
        "{}",
        ran.out
    );
    let json = test(&cases("policy_test"), &["--json"]).json();
    assert_eq!((&json["cases"], &json["failed"]), (&json!(5), &json!(1)));
}

#[test]
fn a_case_file_that_expects_nothing_real_is_refused() {
    let folder = empty();
    for (text, told) in [
        ("cases: []", "holds no case"),
        ("cases:\n - { name: a, messages: [], expect: { decision: ALLOW } }", "at least one message"),
        ("cases:\n - { name: a, messages: [{ role: user, text: x }], expect: {} }", "expects nothing"),
        (
            "cases:\n - { name: a, messages: [{ role: user, text: x }], expect: { decison: ALLOW } }",
            "c.yaml:2:",
        ),
        (
            "cases:\n - { name: a, messages: [{ role: user, text: x }], expect: { decision: NO } }",
            "c.yaml:2:",
        ),
        (
            "cases:\n - { name: a, messages: [{ role: user, text: x }], expect: { rules: [no.such] } }",
            "no.such",
        ),
        ("cases: 3", "c.yaml:1:"),
        ("{", "c.yaml:"),
    ] {
        std::fs::write(folder.path().join("c.yaml"), text).expect("a file");
        let ran = run_in(folder.path(), &["policy", "test", "c.yaml"], b"");
        assert_eq!((ran.code, ran.out.as_str()), (65, ""), "{text}");
        assert!(ran.err.contains(told), "{told} in {}", ran.err);
    }
}
