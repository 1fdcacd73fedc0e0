//! `InterceptorRegistryService`: who may change what, what is kept, and who sees it.

use std::time::Duration;

use portcullis::pb::v1;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;
use v1::Decision::{Allow, Block};
use v1::interceptor::Handler;
use v1::interceptor_action::Action;

use super::bundles::events;
use super::registry::{Registry, before, blocks, interceptor, verdict, webhook};
use super::server::{PATIENCE, Server, Setup, eventually};

/// A tool of which nobody else has an opinion.
const TOOL: &str = "canvas";

fn rule(when: &str, actions: Vec<Action>) -> Handler {
    let actions = actions.into_iter().map(|action| v1::InterceptorAction { action: Some(action) }).collect();
    Handler::Rule(v1::InterceptorRule { when: when.to_owned(), actions })
}

/// Fields that a refusal names.
fn fields(status: &Status) -> Vec<String> {
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let bad = status.get_details_bad_request().expect("details");
    bad.field_violations.into_iter().map(|violation| violation.field).collect()
}

#[tokio::test]
async fn an_added_interceptor_is_in_force_at_once_and_a_removed_one_no_more() {
    let server = Server::start();
    let registry = Registry::of(&server).await;
    assert_eq!(verdict(&before(&server, TOOL, "{}").await), (Allow, vec![]));
    let wanted = v1::Interceptor {
        priority: 7,
        description: "No drawing.".into(),
        ..interceptor("test:block", "^canvas$", blocks("No drawing today."))
    };
    let added = registry.add(wanted.clone()).await.expect("it is added");
    assert_eq!(added.matched_tools, ["canvas"]);
    let added = added.interceptor.expect("as it stands");
    assert_eq!(added.source(), v1::InterceptorSource::Api);
    assert_eq!((added.mode(), added.fail_mode()), (v1::Mode::Enforce, v1::FailMode::Closed));
    assert_eq!(added.timeout, Some(Duration::from_secs(2).into()));
    assert_eq!((added.priority, added.handler.clone()), (7, wanted.handler.clone()));
    assert!(added.create_time.is_some() && !added.creator.is_empty() && added.tenant.is_empty());
    let answer = before(&server, TOOL, "{}").await;
    assert_eq!(verdict(&answer), (Block, vec![]));
    assert!(answer.block_reason.contains("No drawing today."), "{}", answer.block_reason);
    assert_eq!(registry.list(v1::InterceptorSource::Api).await, std::slice::from_ref(&added));
    assert_eq!(registry.remove("test:block").await.expect("it is removed"), added);
    assert_eq!(verdict(&before(&server, TOOL, "{}").await), (Allow, vec![]));
    assert_eq!(registry.remove("test:block").await.expect_err("gone").code(), Code::NotFound);
    assert!(
        server.log_text().contains("interceptor added") && server.log_text().contains("interceptor removed")
    );
    // What it was is known when it is gone.
    let request =
        v1::ListAuditEventsRequest { actions: vec!["interceptor.".to_owned()], ..Default::default() };
    let events = events(&server, request).await;
    let actions: Vec<&str> = events.iter().map(|event| event.action.as_str()).collect();
    assert_eq!(actions, ["interceptor.added", "interceptor.removed"]);
    for event in &events {
        assert_eq!(event.resource, "interceptor:test:block");
        for told in ["\"hook\":", "^canvas$", "No drawing today.", "\"priority\":7"] {
            assert!(event.detail_json.contains(told), "no {told}: {}", event.detail_json);
        }
    }
}

#[tokio::test]
async fn changes_need_the_admin_and_looking_does_not() {
    let server = Server::shared();
    let registry = Registry::of(&server).await;
    let mut anybody = registry.client();
    let add = v1::AddInterceptorRequest {
        interceptor: Some(interceptor("test:x", TOOL, blocks("x"))),
        ..Default::default()
    };
    let dry = v1::AddInterceptorRequest { dry_run: true, ..add.clone() };
    let remove = v1::RemoveInterceptorRequest { interceptor_id: "test:x".into() };
    let refused = [
        anybody.add_interceptor(add.clone()).await.expect_err("refused"),
        anybody.add_interceptor(dry).await.expect_err("refused"),
        anybody.remove_interceptor(remove).await.expect_err("refused"),
        anybody.clear_interceptors(v1::ClearInterceptorsRequest::default()).await.expect_err("refused"),
    ];
    assert!(refused.iter().all(|status| status.code() == Code::PermissionDenied), "{refused:?}");
    let mut wrong = Request::new(add);
    wrong.metadata_mut().insert("authorization", "Bearer wrong".parse().expect("ASCII"));
    assert_eq!(anybody.add_interceptor(wrong).await.expect_err("refused").code(), Code::Unauthenticated);
    anybody.list_interceptors(v1::ListInterceptorsRequest::default()).await.expect("anybody may look");
    anybody.list_known_tools(v1::ListKnownToolsRequest::default()).await.expect("anybody may look");
    let request = v1::MatchInterceptorsRequest {
        hook: v1::Hook::ToolBefore.into(),
        tool_name: "Bash".into(),
        ..Default::default()
    };
    anybody.match_interceptors(request).await.expect("anybody may look");
}

#[tokio::test]
async fn a_taken_id_is_refused_whoever_has_it() {
    let server = Server::start();
    let registry = Registry::of(&server).await;
    registry.add(interceptor("test:one", TOOL, blocks("x"))).await.expect("it is added");
    let taken = registry.add(interceptor("test:one", TOOL, blocks("y"))).await.expect_err("taken");
    assert_eq!(taken.code(), Code::AlreadyExists);
    let dry = v1::AddInterceptorRequest {
        interceptor: Some(interceptor("test:one", TOOL, blocks("y"))),
        dry_run: true,
        ..Default::default()
    };
    assert_eq!(registry.add_with(dry).await.expect_err("taken").code(), Code::AlreadyExists);
    let ours = registry.add(interceptor("builtin:mine", TOOL, blocks("x"))).await.expect_err("ours");
    assert_eq!(fields(&ours), ["interceptor.id"]);
    let (a, b) = tokio::join!(
        registry.add(interceptor("test:race", TOOL, blocks("x"))),
        registry.add(interceptor("test:race", TOOL, blocks("y")))
    );
    assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
}

#[tokio::test]
async fn what_is_wrong_is_told_with_its_field() {
    let server = Server::shared();
    let registry = Registry::of(&server).await;
    let nothing = registry.add_with(v1::AddInterceptorRequest::default()).await.expect_err("absent");
    assert_eq!(fields(&nothing), ["interceptor"]);
    let block = || vec![Action::Block("x".into())];
    for (wanted, field) in [
        (interceptor("", TOOL, blocks("x")), "interceptor.id"),
        (interceptor("a b", TOOL, blocks("x")), "interceptor.id"),
        (interceptor(&"x".repeat(129), TOOL, blocks("x")), "interceptor.id"),
        (v1::Interceptor { hook: 0, ..interceptor("x", "", blocks("x")) }, "interceptor.hook"),
        (v1::Interceptor { hook: 99, ..interceptor("x", "", blocks("x")) }, "interceptor.hook"),
        (v1::Interceptor { mode: 9, ..interceptor("x", "", blocks("x")) }, "interceptor.mode"),
        (v1::Interceptor { handler: None, ..interceptor("x", "", blocks("x")) }, "interceptor.handler"),
        (
            v1::Interceptor {
                timeout: Some(Duration::from_secs(61).into()),
                ..interceptor("x", "", blocks("x"))
            },
            "interceptor.timeout",
        ),
        (
            v1::Interceptor { hook: v1::Hook::MessageBefore.into(), ..interceptor("x", TOOL, blocks("x")) },
            "interceptor.tool_matcher",
        ),
        (interceptor("x", "(", blocks("x")), "interceptor.tool_matcher"),
        (interceptor("x", "(?=exec)", blocks("x")), "interceptor.tool_matcher"),
        (interceptor("x", "group:nothing", blocks("x")), "interceptor.tool_matcher"),
        (
            v1::Interceptor { agent_matcher: "(".into(), ..interceptor("x", TOOL, blocks("x")) },
            "interceptor.agent_matcher",
        ),
        (interceptor("x", TOOL, rule("tool ==", block())), "interceptor.rule.when"),
        (interceptor("x", TOOL, rule("1 + 1", block())), "interceptor.rule.when"),
        (interceptor("x", TOOL, rule("", vec![])), "interceptor.rule.actions"),
    ] {
        let refused = registry.add(wanted.clone()).await.expect_err("something is wrong");
        assert_eq!(fields(&refused), [field], "{wanted:?}: {refused:?}");
    }
    let unknown = registry.add(interceptor("x", "^bsah$", blocks("x"))).await.expect_err("no such tool");
    assert_eq!(fields(&unknown), ["interceptor.tool_matcher"]);
    for name in ["apply_patch", "web_fetch", "group:fs"] {
        assert!(unknown.message().contains(name), "{unknown:?}");
    }
    let expression = registry.add(interceptor("x", TOOL, rule("tool == 'a' &&", block()))).await;
    let message = expression.expect_err("it does not compile").message().to_owned();
    assert!(message.contains(|c: char| c.is_ascii_digit()), "it tells the position: {message}");
    assert!(registry.added().await.is_empty());
}

#[tokio::test]
async fn unknown_tools_groups_and_dry_runs() {
    let server = Server::start();
    let registry = Registry::of(&server).await;
    let later = v1::AddInterceptorRequest {
        interceptor: Some(interceptor("test:later", "^deploy$", blocks("x"))),
        allow_unknown_tools: true,
        ..Default::default()
    };
    assert!(registry.add_with(later).await.expect("allowed").matched_tools.is_empty());
    assert_eq!(before(&server, "deploy", "{}").await.decision(), Block);
    let group = v1::AddInterceptorRequest {
        interceptor: Some(interceptor("test:group", "group:web", blocks("x"))),
        dry_run: true,
        ..Default::default()
    };
    let answer = registry.add_with(group).await.expect("nothing is wrong");
    assert_eq!(answer.matched_tools, ["web_fetch", "web_search"]);
    assert_eq!(answer.interceptor.expect("as it would stand").id, "test:group");
    assert_eq!(registry.added().await, ["test:later"], "a dry run adds nothing");
    assert_eq!(before(&server, "WebFetch", "{}").await.decision(), Allow);
    assert_eq!(before(&server, "deploy", "{}").await.decision(), Block, "what is stored compiles again");
    let again = server.into_setup().start();
    assert_eq!(before(&again, "deploy", "{}").await.decision(), Block);
}

#[tokio::test]
async fn what_is_not_from_here_can_be_looked_at_only() {
    let setup = Setup::new();
    std::fs::create_dir(setup.folder().join("policies")).expect("the folder can be made");
    let policy = "interceptors:\n  - id: acme:policy\n    hook: tool.before\n    tools: ^canvas$\n    do:\n      - block: No drawing.\n";
    std::fs::write(setup.folder().join("policies/default.yaml"), policy).expect("written");
    let server = setup.settings("policy:\n  path: policies\n").start();
    let registry = Registry::of(&server).await;
    assert_eq!(before(&server, TOOL, "{}").await.decision(), Block);
    let listed = registry.list(v1::InterceptorSource::Policy).await;
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0].id, "acme:policy");
    assert!(listed[0].handler.is_some() && listed[0].create_time.is_none() && listed[0].creator.is_empty());
    let builtin = registry.list(v1::InterceptorSource::Builtin).await;
    assert!(builtin.iter().any(|one| one.id == "builtin:command-safety-guard"), "{builtin:?}");
    assert!(builtin.iter().all(|one| one.handler.is_none() && one.id.starts_with("builtin:")));
    for id in ["acme:policy", "builtin:command-safety-guard"] {
        let refused = registry.remove(id).await.expect_err("not from here");
        assert_eq!(refused.code(), Code::FailedPrecondition, "{id}");
        assert!(refused.get_details_precondition_failure().is_some(), "{refused:?}");
    }
    let taken = registry.add(interceptor("acme:policy", TOOL, blocks("x"))).await.expect_err("taken");
    assert_eq!(taken.code(), Code::AlreadyExists);
    assert_eq!(registry.clear(v1::Hook::Unspecified).await.expect("done"), Vec::<String>::new());
    assert_eq!(before(&server, TOOL, "{}").await.decision(), Block);
    let empty = registry.remove("").await.expect_err("empty");
    assert_eq!(fields(&empty), ["interceptor_id"]);
}

#[tokio::test]
async fn the_running_order_is_told() {
    let server = Server::start();
    let registry = Registry::of(&server).await;
    for (id, priority) in [("a", 0), ("b", 500), ("c", 0), ("d", -1)] {
        let wanted = v1::Interceptor {
            priority,
            ..interceptor(id, "exec|canvas", rule("", vec![Action::Audit("n".into())]))
        };
        registry.add(wanted).await.expect("it is added");
    }
    let off = v1::Interceptor { mode: v1::Mode::Off.into(), ..interceptor("off", "exec", blocks("x")) };
    registry.add(off).await.expect("it is added");
    let shadow = v1::Interceptor {
        mode: v1::Mode::Shadow.into(),
        agent_matcher: "^ann$".into(),
        ..interceptor("shadow", "exec", blocks("x"))
    };
    registry.add(shadow).await.expect("it is added");
    let ask = |tool: &str, agent: &str| v1::MatchInterceptorsRequest {
        hook: v1::Hook::ToolBefore.into(),
        tool_name: tool.into(),
        agent_id: agent.into(),
        ..Default::default()
    };
    let ids = async |request: v1::MatchInterceptorsRequest| {
        let answer = registry.client().match_interceptors(request).await.expect("an answer").into_inner();
        let ids: Vec<String> = answer.interceptors.into_iter().map(|one| one.id).collect();
        (answer.tool_name, ids)
    };
    let (tool, all) = ids(ask("Bash", "ann")).await;
    assert_eq!(tool, "exec");
    let own: Vec<&str> = all.iter().map(String::as_str).filter(|id| !id.starts_with("builtin:")).collect();
    assert_eq!(own, ["b", "a", "c", "shadow", "d"]);
    let place = |id: &str| all.iter().position(|one| one == id).expect("it runs");
    assert!(place("b") < place("builtin:command-safety-guard"), "{all:?}");
    assert!(place("builtin:command-safety-guard") < place("a"), "{all:?}");
    let (_, unknown_agent) = ids(ask("exec", "")).await;
    assert!(!unknown_agent.contains(&"shadow".to_owned()), "a matcher matches no unknown agent");
    let (_, canvas) = ids(ask("canvas", "ann")).await;
    assert_eq!(canvas, ["b", "a", "c", "d"]);
    let mut client = registry.client();
    for (request, field) in [
        (v1::MatchInterceptorsRequest { hook: 0, ..ask("exec", "") }, "hook"),
        (ask("", ""), "tool_name"),
        (v1::MatchInterceptorsRequest { policy: "none".into(), ..ask("exec", "") }, "policy"),
    ] {
        let refused = client.match_interceptors(request).await.expect_err("something is wrong");
        assert_eq!(fields(&refused), [field]);
    }
    // The list holds those that are off as well, by hook and then in running order.
    assert_eq!(registry.added().await, ["b", "a", "c", "off", "shadow", "d"]);
}

#[tokio::test]
async fn lists_come_in_pages_and_tokens_belong_to_their_filters() {
    let server = Server::start();
    let registry = Registry::of(&server).await;
    for n in 0..7 {
        let hook = if n % 2 == 0 { v1::Hook::ToolBefore } else { v1::Hook::MessageBefore };
        let wanted = v1::Interceptor { hook: hook.into(), ..interceptor(&format!("i{n}"), "", blocks("x")) };
        registry.add(wanted).await.expect("it is added");
    }
    let mut client = registry.client();
    let first = v1::ListInterceptorsRequest {
        source: v1::InterceptorSource::Api.into(),
        page_size: 3,
        ..Default::default()
    };
    let mut ids = Vec::new();
    let mut request = first.clone();
    let mut tokens = Vec::new();
    loop {
        let page = client.list_interceptors(request.clone()).await.expect("a page").into_inner();
        assert!(page.interceptors.len() <= 3 && !page.policy_revision.is_empty());
        ids.extend(page.interceptors.into_iter().map(|one| one.id));
        if page.next_page_token.is_empty() {
            break;
        }
        tokens.push(page.next_page_token.clone());
        request.page_token = page.next_page_token;
    }
    assert_eq!(ids, ["i1", "i3", "i5", "i0", "i2", "i4", "i6"]);
    assert_eq!(tokens.len(), 2);
    for wrong in [
        v1::ListInterceptorsRequest { page_token: "nonsense".into(), ..first.clone() },
        v1::ListInterceptorsRequest { page_token: tokens[0].clone(), source: 0, ..first.clone() },
        v1::ListInterceptorsRequest {
            page_token: tokens[0].clone(),
            hook: v1::Hook::ToolBefore.into(),
            ..first.clone()
        },
    ] {
        let refused = client.list_interceptors(wrong).await.expect_err("another list");
        assert_eq!(fields(&refused), ["page_token"]);
    }
    // A change between two pages neither repeats nor skips one that stays.
    registry.remove("i5").await.expect("it is removed");
    let rest = v1::ListInterceptorsRequest { page_token: tokens[0].clone(), page_size: 100, ..first.clone() };
    let rest = client.list_interceptors(rest).await.expect("a page").into_inner().interceptors;
    assert_eq!(rest.into_iter().map(|one| one.id).collect::<Vec<_>>(), ["i0", "i2", "i4", "i6"]);
    for (request, field) in [
        (v1::ListInterceptorsRequest { hook: 99, ..Default::default() }, "hook"),
        (v1::ListInterceptorsRequest { source: 99, ..Default::default() }, "source"),
        (v1::ListInterceptorsRequest { policy: "none".into(), ..Default::default() }, "policy"),
    ] {
        assert_eq!(fields(&client.list_interceptors(request).await.expect_err("wrong")), [field]);
    }
    assert_eq!(registry.clear(v1::Hook::MessageBefore).await.expect("done"), ["i1", "i3"]);
    assert_eq!(registry.clear(v1::Hook::Unspecified).await.expect("done"), ["i0", "i2", "i4", "i6"]);
    assert!(registry.added().await.is_empty());
    assert!(!registry.list(v1::InterceptorSource::Builtin).await.is_empty());
}

#[tokio::test]
async fn known_tools_are_listed_with_groups_and_spellings() {
    let server = Server::shared();
    let mut client = Registry::of(&server).await.client();
    let answer =
        client.list_known_tools(v1::ListKnownToolsRequest::default()).await.expect("a list").into_inner();
    let names: Vec<&str> = answer.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.is_sorted() && names.len() >= 24, "{names:?}");
    let exec = answer.tools.iter().find(|tool| tool.name == "exec").expect("it is known");
    assert_eq!((exec.group.as_str(), exec.guarded), ("group:runtime", true));
    assert!(exec.aliases.contains(&"bash".to_owned()) && exec.aliases.is_sorted(), "{exec:?}");
    assert!(!answer.policy_revision.is_empty());
    let unknown = v1::ListKnownToolsRequest { policy: "none".into() };
    assert_eq!(fields(&client.list_known_tools(unknown).await.expect_err("unknown")), ["policy"]);
}

#[tokio::test]
async fn a_restart_keeps_interceptors_and_their_order() {
    let server = Server::start();
    let registry = Registry::of(&server).await;
    for id in ["z", "a", "m"] {
        registry.add(interceptor(id, TOOL, blocks(id))).await.expect("it is added");
    }
    let before_restart = registry.list(v1::InterceptorSource::Api).await;
    let again = server.into_setup().start();
    let registry = Registry::of(&again).await;
    assert_eq!(registry.list(v1::InterceptorSource::Api).await, before_restart);
    assert_eq!(registry.added().await, ["z", "a", "m"]);
    let answer = before(&again, TOOL, "{}").await;
    assert!(answer.block_reason.contains('z'), "{answer:?}");
}

#[tokio::test]
async fn a_kill_loses_nothing_that_was_acknowledged() {
    let mut setup = Setup::new();
    for round in 0..3 {
        let mut server = setup.start();
        let registry = Registry::of(&server).await;
        assert_eq!(registry.added().await.len(), round);
        registry.add(interceptor(&format!("i{round}"), TOOL, blocks("x"))).await.expect("it is added");
        server.signal("KILL");
        server.wait();
        setup = server.into_setup();
    }
    let server = setup.start();
    assert_eq!(Registry::of(&server).await.added().await, ["i0", "i1", "i2"]);
}

#[tokio::test]
async fn servers_over_one_database_see_each_others_changes() {
    let shared = tempfile::tempdir().expect("a folder");
    let path = shared.path().join("shared.db");
    let settings = format!("store:\n  path: {}\n  poll_interval: 50ms\n", path.display());
    let one = Setup::new().settings(&settings).start();
    let other = Setup::new().settings(&settings).start();
    let (at_one, at_other) = (Registry::of(&one).await, Registry::of(&other).await);
    at_one.add(interceptor("shared", TOOL, blocks("No drawing."))).await.expect("it is added");
    eventually(PATIENCE, "the other one blocks as well", || async {
        (before(&other, TOOL, "{}").await.decision() == Block).then_some(())
    })
    .await;
    let (a, b) = tokio::join!(
        at_one.add(interceptor("race", TOOL, blocks("1"))),
        at_other.add(interceptor("race", TOOL, blocks("2")))
    );
    let refused = a.as_ref().err().or(b.as_ref().err()).expect("one is refused");
    assert_eq!(refused.code(), Code::AlreadyExists);
    assert!(a.is_ok() != b.is_ok());
    at_other.remove("shared").await.expect("it is removed where it was not added");
    at_other.remove("race").await.expect("it is there at once, whoever added it");
    eventually(PATIENCE, "the first one allows again", || async {
        (before(&one, TOOL, "{}").await.decision() == Allow).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_stored_interceptor_that_no_longer_compiles_fails_and_does_not_vanish() {
    let setup = Setup::new();
    let server = setup.settings("extensions:\n  private_hosts: [127.0.0.1]\n").start();
    let registry = Registry::of(&server).await;
    let wanted = interceptor("test:broken", TOOL, Handler::Webhook(webhook("http://127.0.0.1:9/")));
    registry.add(wanted).await.expect("it is added");
    // The settings no longer allow its address.
    let again = server.into_setup().settings("").start();
    let registry = Registry::of(&again).await;
    assert_eq!(registry.added().await, ["test:broken"], "it is listed");
    let answer = before(&again, TOOL, "{}").await;
    assert_eq!(answer.decision(), Block, "it fails closed: {answer:?}");
    assert_eq!(answer.unjudged.len(), 1, "{answer:?}");
    again.wait_for_log(|line| line.contains("test:broken") && line.contains("cannot be compiled"));
    registry.remove("test:broken").await.expect("it can be removed");
    assert_eq!(before(&again, TOOL, "{}").await.decision(), Allow);
}

#[tokio::test]
async fn a_database_that_cannot_be_used_ends_the_start() {
    let setup = Setup::new();
    std::fs::create_dir(setup.folder().join("data")).expect("the folder can be made");
    std::fs::write(setup.folder().join("data/portcullis.db"), "no database at all ".repeat(500))
        .expect("written");
    let (status, log) = setup.start_refused();
    assert_eq!(status.code(), Some(78), "{log}");
    assert!(log.contains("portcullis.db") && log.contains("damaged"), "{log}");
    let (status, log) = Setup::new().settings("store:\n  path: /dev/null/x.db\n").start_refused();
    assert_eq!(status.code(), Some(78), "{log}");
    assert!(log.contains("/dev/null/x.db") && log.contains("store.path"), "{log}");
}
