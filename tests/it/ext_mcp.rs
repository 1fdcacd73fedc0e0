//! `agentgateway.dev.ext_mcp.ExtMcp`: calls of the Model Context Protocol through a real server.

use portcullis::pb::ext_mcp::authorization_error::Code as Word;
use portcullis::pb::ext_mcp::ext_mcp_client::ExtMcpClient;
use portcullis::pb::ext_mcp::{McpRequest, McpResponse, Pass, mcp_request_result, mcp_response_result};
use serde_json::{Value, json};
use tonic::Code;

use super::identity::{entry, with_token, write_tokens};
use super::server::{Server, Setup};

const ON: &str = "server: { adapters: { ext_mcp: true } }\n";

async fn client(server: &Server) -> ExtMcpClient<tonic::transport::Channel> {
    ExtMcpClient::new(server.channel().await)
}

fn request(method: &str, params: impl Into<Vec<u8>>) -> McpRequest {
    let service_names = vec!["files".to_owned()];
    McpRequest {
        service_names,
        method: method.to_owned(),
        mcp_request: Some(params.into()),
        ..Default::default()
    }
}

fn tool(name: &str, arguments: Value) -> McpRequest {
    request("tools/call", json!({ "name": name, "arguments": arguments, "_meta": { "n": 1.0 } }).to_string())
}

fn answer(result: impl Into<Vec<u8>>) -> McpResponse {
    McpResponse { method: "tools/call".to_owned(), mcp_response: result.into(), ..Default::default() }
}

fn under(policy: &str) -> Option<pbjson_types::Struct> {
    let value = pbjson_types::value::Kind::StringValue(policy.to_owned());
    let fields = [("portcullis_policy".to_owned(), pbjson_types::Value { kind: Some(value) })];
    Some(pbjson_types::Struct { fields: fields.into_iter().collect() })
}

#[tokio::test]
async fn it_is_off_unless_it_is_turned_on() {
    let server = Server::shared();
    let mut client = client(&server).await;
    let refused = client.check_request(tool("ls", json!({}))).await.expect_err("it is not there");
    assert_eq!(refused.code(), Code::Unimplemented);
}

#[tokio::test]
async fn calls_and_results_are_judged() {
    let policies = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/policies");
    let server = Setup::new().settings(&format!("{ON}policy:\n  path: {}\n", policies.display())).start();
    let mut client = client(&server).await;
    let pass = mcp_request_result::Result::Pass(Pass {});
    let mut changed = tool("bash", json!({ "command": "ls" }));
    changed.metadata_context = under("intercepting");
    let mut asks = tool("bash", json!({ "command": "deploy now" }));
    asks.metadata_context = under("intercepting");
    let mut nowhere = tool("ls", json!({}));
    nowhere.metadata_context = under("nowhere");
    for (about, request, wanted) in [
        ("a harmless call", tool("bash", json!({ "command": "cargo test" })), None),
        ("no arguments", request("tools/call", r#"{"name":"list_folders"}"#), None),
        ("no params", request("tools/list", ""), None),
        ("another method", request("prompts/get", r#"{"name":"hello"}"#), None),
        ("a dangerous call", tool("bash", json!({ "command": "rm -rf /" })), Some(Word::PermissionDenied)),
        ("ASK refuses", asks, Some(Word::PermissionDenied)),
        (
            "another method that tells a number",
            request("prompts/get", r#"{"n":"My SSN is 123-45-6789"}"#),
            Some(Word::PermissionDenied),
        ),
        ("no name", request("tools/call", "{}"), Some(Word::Invalid)),
        ("not JSON", request("tools/call", "{"), Some(Word::Invalid)),
        ("not UTF-8", request("tools/call", b"\xff".to_vec()), Some(Word::Invalid)),
        (
            "arguments twice",
            request("tools/call", r#"{"name":"a","arguments":{},"arguments":{"b":1}}"#),
            Some(Word::Invalid),
        ),
        ("no object", request("tools/call", r#"{"name":"a","arguments":[1]}"#), Some(Word::Invalid)),
        ("an unknown policy", nowhere, Some(Word::Invalid)),
    ] {
        let result = client.check_request(request).await.expect("an answer").into_inner().result;
        match (wanted, result.expect("a result")) {
            (None, result) => assert_eq!(result, pass, "{about}"),
            (Some(word), mcp_request_result::Result::Error(error)) => {
                assert_eq!(error.code(), word, "{about}: {}", error.reason);
                assert!(
                    error.reason.starts_with("Portcullis: ") || word == Word::Invalid,
                    "{about}: {}",
                    error.reason
                );
            }
            (Some(_), result) => panic!("{about}: {result:?}"),
        }
    }
    let result = client.check_request(changed).await.expect("an answer").into_inner().result;
    let Some(mcp_request_result::Result::Mutated(params)) = result else { panic!("{result:?}") };
    assert_eq!(
        String::from_utf8(params).expect("text"),
        r#"{"_meta":{"n":1.0},"arguments":{"command":"ls --color=never"},"name":"bash"}"#
    );

    let said = |text: &str| answer(json!({ "content": [{ "type": "text", "text": text }] }).to_string());
    let result = client.check_response(said("hello")).await.expect("an answer").into_inner().result;
    assert_eq!(result, Some(mcp_response_result::Result::Pass(Pass {})));
    let result = client
        .check_response(said("to jane.roe@corp-mail.net"))
        .await
        .expect("an answer")
        .into_inner()
        .result;
    let Some(mcp_response_result::Result::Mutated(masked)) = result else { panic!("{result:?}") };
    let masked: Value = serde_json::from_slice(&masked).expect("JSON");
    assert_eq!(masked, json!({ "content": [{ "type": "text", "text": "to [EMAIL_1]" }] }));
    for (about, response, word) in [
        ("a number", said("My SSN is 123-45-6789"), Word::PermissionDenied),
        ("not JSON", answer("{"), Word::Invalid),
    ] {
        let result = client.check_response(response).await.expect("an answer").into_inner().result;
        let Some(mcp_response_result::Result::Error(error)) = result else { panic!("{about}: {result:?}") };
        assert_eq!(error.code(), word, "{about}: {}", error.reason);
    }
}

#[tokio::test]
async fn callers_are_those_of_the_services() {
    let tokens =
        "auth: { mode: tokens, tokens: { path: tokens.yaml } }\nrate_limit: { per_second: 1, burst: 2 }\n";
    let setup = Setup::new().settings(&format!("{ON}{tokens}"));
    let made = write_tokens(&setup, &[entry("ada", "agent", ""), entry("eve", "submitter", "")]);
    let server = setup.start();
    let mut client = client(&server).await;
    let call = || tool("bash", json!({ "command": "cargo test" }));
    let code = |answer: Result<_, tonic::Status>| {
        answer.err().map_or(Code::Ok, |status: tonic::Status| status.code())
    };
    assert_eq!(code(client.check_request(call()).await.map(drop)), Code::Unauthenticated);
    assert_eq!(
        code(client.check_request(with_token("pct_wrong", call())).await.map(drop)),
        Code::Unauthenticated
    );
    assert_eq!(
        code(client.check_request(with_token(made.of("eve"), call())).await.map(drop)),
        Code::PermissionDenied
    );
    // A burst of two is two calls: none is counted twice.
    for _ in 0..2 {
        assert_eq!(code(client.check_request(with_token(made.of("ada"), call())).await.map(drop)), Code::Ok);
    }
}

#[tokio::test]
async fn without_a_policy_nothing_passes() {
    let setup = Setup::new().settings(&format!("{ON}policy: {{ path: broken }}\n"));
    let folder = setup.folder().join("broken");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("default.yaml"), "nonsense: 1\n").expect("a file");
    let server = setup.start();
    let refused =
        client(&server).await.check_request(tool("ls", json!({}))).await.expect_err("it does not serve");
    assert_eq!(refused.code(), Code::Unavailable);
}
