//! Tokens made, used and replaced; limits of calls; and what was planted in requests and is found nowhere.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use portcullis::identity::new_token;
use portcullis::pb::v1;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tonic::Code;
use tonic_types::StatusExt as _;

use super::bundles::{document, header, messages, zip};
use super::cli::run_in;
use super::identity::{RELOADED_WITHIN, entry, own_events, records, with_token, write_tokens};
use super::server::{PATIENCE, Server, Setup, eventually, message, user};

const TOKENS: &str = "auth: { mode: tokens, tokens: { path: tokens.yaml } }\n";

/// The code of one call with a token.
async fn code(server: &Server, token: &str) -> Code {
    let answer = server.client().await.check_messages(with_token(token, user("hello"))).await;
    answer.err().map_or(Code::Ok, |status| status.code())
}

/// Waits until a call with this token ends so, and no longer than a reload may take.
async fn becomes(server: &Server, token: &str, wanted: Code) {
    let what = format!("a call ends with {wanted:?}");
    eventually(RELOADED_WITHIN, &what, || async { (code(server, token).await == wanted).then_some(()) })
        .await;
}

async fn reloads(server: &Server, outcome: &str) -> u64 {
    let (_, metrics) = server.get("/metrics").await;
    let series = format!("portcullis_auth_reloads_total{{outcome=\"{outcome}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&series)).expect("the series is there");
    line.parse().expect("a count")
}

#[tokio::test]
async fn a_token_made_on_the_command_line_opens_the_door_within_two_seconds() {
    let setup = Setup::new().settings(TOKENS);
    let folder = setup.folder().to_owned();
    let create = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["token", "create"].iter().chain(arguments).copied().collect();
        run_in(&folder, &arguments, b"")
    };
    let made = create(&["--name", "ada", "--roles", "agent", "--append", "tokens.yaml"]);
    assert_eq!(made.code, 0, "{made:?}");
    let ada = made.out.trim().to_owned();
    assert!(ada.starts_with("pct_") && ada.len() == 68, "{ada}");
    assert!(!made.err.contains(&ada));
    let made = create(&["--name", "ann", "--roles", "auditor", "--append", "tokens.yaml"]);
    let ann = made.out.trim().to_owned();
    let server = setup.start();
    assert_eq!(code(&server, &ada).await, Code::Ok);

    let made =
        create(&["--name", "bob", "--roles", "agent,auditor", "--tenant", "acme", "--append", "tokens.yaml"]);
    let bob = made.out.trim().to_owned();
    becomes(&server, &bob, Code::Ok).await;
    assert_eq!((reloads(&server, "applied").await, reloads(&server, "rejected").await), (1, 0));

    // A broken file changes nothing, is counted and told without its values; the next good one is taken.
    let path = folder.join("tokens.yaml");
    let good = fs::read_to_string(&path).expect("it is there");
    assert!(!good.contains(&ada) && !good.contains(&bob), "hashes alone are kept");
    fs::write(&path, format!("{good}- {{ name: eve, hash: pct_planted, roles: [agent] }}\n"))
        .expect("written");
    server.wait_for_log(|line| line.contains("credentials rejected"));
    assert_eq!((code(&server, &ada).await, code(&server, &bob).await), (Code::Ok, Code::Ok));
    assert_eq!(reloads(&server, "rejected").await, 1);
    assert!(!server.log_text().contains("planted"), "{}", server.log_text());
    fs::remove_file(&path).expect("it is there");
    eventually(RELOADED_WITHIN, "a missing file is rejected", || async {
        (reloads(&server, "rejected").await == 2).then_some(())
    })
    .await;
    assert_eq!(code(&server, &bob).await, Code::Ok);
    // Each is an event as well.
    let told = eventually(PATIENCE, "three events are kept", || async {
        let told = own_events(server.channel().await, &ann, "tokens.").await;
        (told.len() == 3).then_some(told)
    })
    .await;
    let actions: Vec<&str> = told.iter().map(|event| event.action.as_str()).collect();
    assert_eq!(actions, ["tokens.reloaded", "tokens.rejected", "tokens.rejected"]);
    for event in &told {
        assert_eq!((event.resource.as_str(), event.tenant.as_str()), ("credentials:tokens", ""));
        assert!(!event.policy_revision.is_empty());
        let detail: serde_json::Value = serde_json::from_str(&event.detail_json).expect("JSON");
        assert_eq!(detail["tokens"], 3, "those in force");
        assert_eq!(detail.get("problems").is_some(), event.action == "tokens.rejected", "{detail}");
        for secret in ["planted", "pct_", &ada[4..16], &bob[4..16]] {
            assert!(!event.detail_json.contains(secret), "{detail}");
        }
    }

    // Who is taken off the list is out; a token that has expired is told so.
    let gone: String = good.split_inclusive("- name").take(2).collect::<String>();
    let gone = gone.trim_end_matches("- name");
    let expired = new_token().expect("random bits");
    let entry = format!(
        "- {{ name: old, hash: '{}', roles: [agent], expires: 2020-01-01T00:00:00Z }}\n",
        expired.hash
    );
    fs::write(&path, format!("{gone}{entry}")).expect("written");
    becomes(&server, &bob, Code::Unauthenticated).await;
    assert_eq!(code(&server, &ada).await, Code::Ok);
    let answer = server.client().await.check_messages(with_token(&expired.token, user("hello"))).await;
    assert!(answer.expect_err("it has expired").message().contains("has expired"));
}

#[test]
fn the_command_refuses_what_the_server_would_refuse() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| run_in(folder.path(), arguments, b"");
    for (arguments, code, told) in [
        (&["token", "create", "--name", "admin", "--roles", "agent"][..], 64, "the service itself gives"),
        (&["token", "create", "--name", "a", "--roles", "root"][..], 64, "unknown role"),
        (&["token", "create", "--name", " a", "--roles", "agent"][..], 64, "no space at either end"),
        (
            &["token", "create", "--name", "a", "--roles", "agent", "--expires", "soon"][..],
            64,
            "neither a time",
        ),
        (&["token", "create", "--name", "a"][..], 64, "--roles"),
    ] {
        let done = run(arguments);
        assert_eq!((done.code, done.err.contains(told)), (code, true), "{arguments:?}\n{done:?}");
        assert!(done.out.is_empty(), "no token is made: {done:?}");
    }
    let made =
        run(&["token", "create", "--name", "a \"b\"", "--roles", "admin", "--expires", "1h", "--json"]);
    let made: serde_json::Value = serde_json::from_str(&made.out).expect("JSON");
    assert!(
        made["hash"].as_str().is_some_and(|hash| hash.starts_with("sha256:")) && made["expires"].is_string()
    );
    // A file that is broken already is not made worse, and no token is shown for it.
    fs::write(folder.path().join("broken.yaml"), "tokens: 1\n").expect("written");
    let done = run(&["token", "create", "--name", "a", "--roles", "agent", "--append", "broken.yaml"]);
    assert_eq!((done.code, done.out.as_str()), (78, ""), "{done:?}");
    assert_eq!(fs::read_to_string(folder.path().join("broken.yaml")).expect("it is there"), "tokens: 1\n");
}

#[test]
fn settings_that_would_let_anybody_in_are_refused() {
    for (settings, told) in [
        ("auth: { mode: tokens }\n", "auth.tokens.path"),
        (TOKENS, "cannot be read"),
        ("auth: { mode: token }\n", "auth.mode"),
        ("auth: { mode: tokens, tokens: { path: tokens.yaml, file: x } }\n", "auth.tokens.file"),
        ("auth: { tenants: { acme: { policy: a } } }\n", "needs callers that are authenticated"),
        ("auth: { mode: tokens, tokens: { path: tokens.yaml }, tenants: { acme: { polcy: a } } }\n", "polcy"),
        ("rate_limit: { burst: 3 }\n", "rate_limit.per_second"),
        ("auth: { mode: tokens, tokens: { path: tokens.yaml } }\nserver: { listen: \"0.0.0.0:0\" }\n", ""),
    ] {
        let setup = Setup::new();
        if !told.contains("cannot be read") {
            write_tokens(&setup, &[entry("ada", "agent", "")]);
        }
        let setup = setup.settings(settings);
        let (setup, told) = if told.is_empty() {
            (setup.listen("0.0.0.0:0"), "tokens would come in clear")
        } else {
            (setup, told)
        };
        let (status, log) = setup.start_refused();
        assert_eq!(status.code(), Some(78), "{settings}\n{log}");
        assert!(log.contains(told), "{settings}\n{log}");
    }
}

#[tokio::test]
async fn each_identity_is_held_to_its_rate() {
    let setup = Setup::new();
    let tokens = write_tokens(&setup, &[entry("ada", "agent", ""), entry("bob", "agent", "")]);
    let server = setup.settings(&format!("{TOKENS}rate_limit: {{ per_second: 1, burst: 3 }}\n")).start();
    let mut client = server.client().await;
    let started = Instant::now();
    let mut refused = None;
    for _ in 0..50 {
        let answer = client.check_messages(with_token(tokens.of("ada"), user("hello"))).await;
        refused = answer.err();
        if refused.is_some() {
            break;
        }
    }
    let refused = refused.expect("fifty calls are more than one a second and three at once");
    assert_eq!(refused.code(), Code::ResourceExhausted, "after {:?}: {refused:?}", started.elapsed());
    let wait = refused.get_details_retry_info().and_then(|info| info.retry_delay).expect("when to try again");
    assert!(!wait.is_zero() && wait.as_secs_f64() <= 1.0, "{wait:?}");
    assert_eq!(refused.get_details_error_info().expect("details").reason, "RATE_LIMITED");
    assert_eq!(code(&server, tokens.of("bob")).await, Code::Ok, "another identity has its own rate");
    // Requests in a stream count as calls: bob has two left at most.
    let requests = tokio_stream::iter(vec![user("hello"); 20]);
    let mut answers = client
        .check_messages_stream(with_token(tokens.of("bob"), requests))
        .await
        .expect("opened")
        .into_inner();
    let mut limited = 0;
    while let Some(answer) = answers.message().await.expect("it goes on") {
        limited += u32::from(answer.error.is_some_and(|error| error.code == Code::ResourceExhausted as i32));
    }
    assert!(limited >= 10, "{limited} of 20");
    let (_, metrics) = server.get("/metrics").await;
    let count = metrics.lines().find_map(|line| line.strip_prefix("portcullis_rate_limited_total "));
    assert!(count.expect("counted").parse::<u32>().expect("a number") > limited);
    tokio::time::sleep(wait).await;
    assert_eq!(code(&server, tokens.of("ada")).await, Code::Ok, "after the wait that was told");
}

/// Every file below a folder with its bytes.
fn files(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push((path.display().to_string(), fs::read(&path).expect("it can be read")));
        }
    }
}

/// Takes whatever is sent to it as spans, and answers nothing.
struct Collector {
    url: String,
    sent: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let sent = Arc::new(Mutex::new(Vec::new()));
        let all = sent.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let all = all.clone();
                tokio::spawn(async move {
                    let mut bytes = [0; 16_384];
                    while let Ok(count @ 1..) = socket.read(&mut bytes).await {
                        all.lock().expect("whole").extend_from_slice(&bytes[..count]);
                    }
                });
            }
        });
        Self { url, sent }
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_planted_in_requests_is_found_in_no_log_metric_or_record() {
    let setup = Setup::new();
    let tokens =
        write_tokens(&setup, &[entry("ada", "agent, submitter", "acme"), entry("root", "admin", "acme")]);
    let collector = Collector::start().await;
    let server = setup
        .settings(&format!(
            "{TOKENS}guardrails: {{ enabled: false }}\nlog: {{ level: trace }}\ntracing: {{ otlp_endpoint: \"{}\" }}\n",
            collector.url
        ))
        .start();
    let (ada, root) = (tokens.of("ada"), tokens.of("root"));
    // Of each kind one: a credential that a rule knows, a card, and plain text that no rule knows.
    let key = format!("AKIA{}", "QZ7R4TXW2MNBV5PL");
    let (card, plain) = ("4111 1111 1111 1111", "canary-3f9a1c-not-a-rule");
    let text = format!("my key is {key}, my card {card}, and {plain}");
    let wrong = "pct_wrong-canary-77aa";
    let mut client = server.client().await;
    let context = || {
        Some(v1::CallContext { labels: [("note".to_owned(), plain.to_owned())].into(), ..Default::default() })
    };
    let check = v1::CheckMessagesRequest {
        messages: vec![message("user", &text)],
        context: context(),
        redact: true,
        reveal_matches: true,
        ..Default::default()
    };
    client.check_messages(with_token(ada, check.clone())).await.expect("decided");
    let stream = tokio_stream::iter(vec![check.clone()]);
    let mut answers =
        client.check_messages_stream(with_token(ada, stream)).await.expect("opened").into_inner();
    while answers.message().await.expect("it goes on").is_some() {}
    let json = serde_json::json!({ "command": text, "note": plain }).to_string();
    for phase in [v1::ToolPhase::Before, v1::ToolPhase::After] {
        let tool = v1::InterceptToolRequest {
            phase: phase.into(),
            tool_name: "exec".to_owned(),
            args_json: json.clone(),
            result_json: if phase == v1::ToolPhase::After { json.clone() } else { String::new() },
            metadata_json: json.clone(),
            context: context(),
            verbose: true,
            ..Default::default()
        };
        client.intercept_tool(with_token(ada, tool)).await.expect("decided");
    }
    let said = v1::InterceptMessageRequest {
        message: text.clone(),
        metadata_json: json.clone(),
        ..Default::default()
    };
    client.intercept_message(with_token(ada, said)).await.expect("decided");
    let asked = v1::InterceptParamsRequest {
        message: text.clone(),
        metadata_json: json.clone(),
        ..Default::default()
    };
    client.intercept_params(with_token(ada, asked)).await.expect("decided");
    use v1::stream_monitor_request::Kind as Watched;
    let watched = [
        Watched::Attach(v1::Attach { session_id: "s".to_owned(), ..Default::default() }),
        Watched::Chunk(v1::Chunk {
            stream: v1::OutputStream::Stdout.into(),
            data: format!("$ rm -rf / --no-preserve-root\n{text}\n").into_bytes().into(),
            seq: 1,
        }),
        Watched::Detach(v1::Detach { exit_code: Some(0.into()) }),
    ];
    let watched = tokio_stream::iter(watched.map(|kind| v1::StreamMonitorRequest { kind: Some(kind) }));
    let mut heard = client.stream_monitor(with_token(ada, watched)).await.expect("watched").into_inner();
    while heard.message().await.expect("it goes on").is_some() {}
    let bundle = zip(&[("SKILL.md", &format!("{}\n{text}\n", document("notes", "1.0.0")))]);
    let upload = tokio_stream::iter(messages(header(), &bundle, 1_000));
    client.review_bundle(with_token(ada, upload)).await.expect("judged");
    let mut reasons = super::bundles::entities(&server).await;
    let archive = v1::ArchiveEntityRequest { entity_id: "none".to_owned(), reason: text.clone() };
    let _ = reasons.archive_entity(with_token(root, archive)).await;
    // Wrong credentials are the ones that somebody would like to log.
    for _ in 0..3 {
        client.check_messages(with_token(wrong, check.clone())).await.expect_err("nobody has it");
    }
    records(&server, |text| ["ReviewBundle", "StreamMonitor"].iter().all(|rpc| text.contains(rpc))).await;
    let (_, metrics) = server.get("/metrics").await;
    let log = server.log_text();
    assert!(log.contains("caller refused") && log.lines().count() > 10, "it logs at all");
    let mut found = Vec::new();
    // The store keeps what an incident is about; logs, metrics and records must not.
    files(&server.data().join("audit"), &mut found);
    assert!(found.iter().any(|(_, bytes)| holds(bytes, "ReviewBundle")), "records are there");
    found.push(("log".to_owned(), log.into_bytes()));
    found.push(("metrics".to_owned(), metrics.into_bytes()));
    let spans = eventually(PATIENCE, "spans are sent", || async {
        let sent = collector.sent.lock().expect("whole").clone();
        holds(&sent, "InterceptParams").then_some(sent)
    })
    .await;
    found.push(("spans".to_owned(), spans));
    for (name, bytes) in &found {
        for canary in [&*key, card, plain, ada, root, wrong] {
            assert!(!holds(bytes, canary), "{name} holds {canary}");
        }
    }
    // Tokens are nowhere at all, the database included.
    let mut everything = Vec::new();
    files(&server.data(), &mut everything);
    for (name, bytes) in &everything {
        for canary in [ada, root, wrong] {
            assert!(!holds(bytes, canary), "{name} holds a token");
        }
    }
    let mut none = Vec::new();
    writeln!(none, "{plain}").expect("to memory");
    assert!(holds(&none, plain), "the search finds what is there");
}
