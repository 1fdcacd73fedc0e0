use serde_json::json;

use super::*;
use crate::judge::{Purpose, RawForm};

fn provider(kind: Backend, config: Config) -> Provider {
    let config = Config { backend: kind, model: config.model.clone().or(Some("m".to_owned())), ..config };
    Provider::new(kind, &config)
}

/// What a body with status 200 is: its text or JSON, or what is wrong with it.
fn read(kind: Backend, structured: StructuredOutput, body: &Value) -> Result<String, Trouble> {
    let provider = provider(kind, Config { structured_output: structured, ..Config::default() });
    let prompt = Prompt { system: "s".to_owned(), content: "c".to_owned() };
    let asked = Asked::Structured { prompt: &prompt, schema: &Value::Null };
    match provider.read(asked, body.to_string().as_bytes()) {
        Ok(Reply { content: Content::Text(text), .. }) => Ok(text),
        Ok(Reply { content: Content::Json(value), .. }) => Ok(value.to_string()),
        Err(fault) => Err(fault.trouble),
    }
}

#[test]
fn answers_of_gemini() {
    let candidate = |parts: Value, end: Value| json!({"candidates": [{"content": {"parts": parts}, "finishReason": end}]});
    for (body, wanted) in [
        (candidate(json!([{"text": "a"}, {"text": "b"}]), json!("STOP")), Ok("ab")),
        (candidate(json!([{"text": "hm", "thought": true}, {"text": "b"}]), json!("STOP")), Ok("b")),
        (candidate(json!([{"text": "hm", "thought": true}]), json!("STOP")), Err(Trouble::Empty)),
        (candidate(json!([{"text": "b"}]), Value::Null), Err(Trouble::UnknownEnd)),
        (candidate(json!([{"text": "b"}]), json!("FINISH_REASON_UNSPECIFIED")), Err(Trouble::UnknownEnd)),
        (candidate(json!([{"text": "b"}]), json!("MALFORMED_FUNCTION_CALL")), Err(Trouble::UnknownEnd)),
        (candidate(json!([{"text": "b"}]), json!("OTHER")), Err(Trouble::UnknownEnd)),
        (candidate(json!([{"text": "b"}]), json!("MAX_TOKENS")), Err(Trouble::Truncated)),
        (candidate(json!([{"text": "b"}]), json!("RECITATION")), Err(Trouble::Blocked)),
        (candidate(json!([{"text": "b"}]), json!("SPII")), Err(Trouble::Blocked)),
        (json!({"candidates": [{"finishReason": "STOP"}]}), Err(Trouble::Empty)),
        (json!({"candidates": []}), Err(Trouble::Empty)),
        (json!({}), Err(Trouble::Empty)),
        (json!({"promptFeedback": {"blockReason": "SAFETY"}}), Err(Trouble::Blocked)),
        (
            json!({
                "promptFeedback": {"blockReason": "SAFETY"},
                "candidates": [{"content": {"parts": [{"text": "{}"}]}, "finishReason": "STOP"}],
            }),
            Err(Trouble::Blocked),
        ),
        (json!({"promptFeedback": {"blockReason": "A_NEW_REASON"}}), Err(Trouble::Blocked)),
        (json!("text"), Err(Trouble::WrongShape)),
    ] {
        let found = read(Backend::Gemini, StructuredOutput::Schema, &body);
        assert_eq!(found, wanted.map(str::to_owned), "{body}");
    }
}

#[test]
fn answers_of_anthropic() {
    let message =
        |content: Value, end: &str| json!({"type": "message", "content": content, "stop_reason": end});
    let text = json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "b"}]);
    let tool = |name: &str| json!([{"type": "text", "text": "so"}, {"type": "tool_use", "name": name, "input": {"v": 1}}]);
    let (schema, legacy) = (StructuredOutput::Schema, StructuredOutput::Legacy);
    for (structured, body, wanted) in [
        (schema, message(text.clone(), "end_turn"), Ok("b")),
        (schema, message(text.clone(), "stop_sequence"), Ok("b")),
        (schema, message(text.clone(), "tool_use"), Err(Trouble::UnknownEnd)),
        (schema, message(text.clone(), "pause_turn"), Err(Trouble::UnknownEnd)),
        (schema, message(text.clone(), "refusal"), Err(Trouble::Refused)),
        (schema, message(text.clone(), "model_context_window_exceeded"), Err(Trouble::Truncated)),
        (schema, json!({"type": "message", "content": text, "stop_reason": null}), Err(Trouble::UnknownEnd)),
        (schema, message(json!([]), "end_turn"), Err(Trouble::Empty)),
        (schema, message(json!("b"), "end_turn"), Err(Trouble::WrongShape)),
        (schema, json!({"type": "error"}), Err(Trouble::WrongShape)),
        (legacy, message(tool("answer"), "tool_use"), Ok(r#"{"v":1}"#)),
        (legacy, message(tool("other"), "tool_use"), Err(Trouble::WrongShape)),
        (legacy, message(text, "end_turn"), Err(Trouble::Empty)),
        (
            legacy,
            message(
                json!([{"type": "tool_use", "name": "answer", "input": {}}, {"type": "tool_use", "name": "answer", "input": {}}]),
                "tool_use",
            ),
            Err(Trouble::WrongShape),
        ),
    ] {
        assert_eq!(read(Backend::Anthropic, structured, &body), wanted.map(str::to_owned), "{body}");
    }
}

#[test]
fn answers_of_ollama_and_openai() {
    let chat = |done: Value, reason: Value| json!({"message": {"content": "b"}, "done": done, "done_reason": reason});
    for (body, wanted) in [
        (chat(json!(true), json!("stop")), Ok("b")),
        // Releases of long ago.
        (json!({"message": {"content": "b"}, "done": true}), Ok("b")),
        (chat(json!(true), json!("length")), Err(Trouble::Truncated)),
        (chat(json!(true), json!("unload")), Err(Trouble::UnknownEnd)),
        (chat(json!(false), json!("stop")), Err(Trouble::UnknownEnd)),
        (json!({"message": {"content": "b"}}), Err(Trouble::UnknownEnd)),
        (json!({"error": "x"}), Err(Trouble::ServerError)),
        (json!({"done": true, "done_reason": "stop", "response": "b"}), Err(Trouble::WrongShape)),
    ] {
        let found = read(Backend::Ollama, StructuredOutput::Schema, &body);
        assert_eq!(found, wanted.map(str::to_owned), "{body}");
    }
    let choice =
        |message: Value, end: Value| json!({"choices": [{"message": message, "finish_reason": end}]});
    for (body, wanted) in [
        (choice(json!({"content": "b"}), json!("stop")), Ok("b")),
        (choice(json!({"content": "b", "refusal": ""}), json!("stop")), Ok("b")),
        (choice(json!({"content": "b", "refusal": "no"}), json!("stop")), Err(Trouble::Refused)),
        (choice(json!({"content": null}), json!("stop")), Err(Trouble::Empty)),
        (choice(json!({"content": [{"text": "b"}]}), json!("stop")), Err(Trouble::WrongShape)),
        (choice(json!({"content": "b"}), json!("length")), Err(Trouble::Truncated)),
        (choice(json!({"content": "b"}), json!("content_filter")), Err(Trouble::Blocked)),
        (choice(json!({"content": "b"}), json!("tool_calls")), Err(Trouble::UnknownEnd)),
        (choice(json!({"content": "b"}), Value::Null), Err(Trouble::UnknownEnd)),
        (json!({"choices": []}), Err(Trouble::WrongShape)),
    ] {
        let found = read(Backend::Openai, StructuredOutput::Schema, &body);
        assert_eq!(found, wanted.map(str::to_owned), "{body}");
    }
}

#[test]
fn errors_are_read_by_provider() {
    let quota = json!({"error": {"code": "insufficient_quota"}});
    let spent = json!({"type": "error", "error": {"type": "rate_limit_error", "error_code": "enforced_spend_limit_reached"}});
    let key = json!({"error": {"code": 400, "details": [{"reason": "API_KEY_INVALID"}]}});
    let info = json!([{"error": {"details": [{"retryDelay": "1.5s"}]}}]);
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error"}});
    let after = Retry::After(std::time::Duration::from_millis(1500));
    for (kind, status, body, trouble, retry) in [
        (Backend::Gemini, 400, &key, Trouble::Unauthorized, Retry::Never),
        (Backend::Gemini, 429, &info, Trouble::RateLimited, after),
        (Backend::Gemini, 429, &quota, Trouble::RateLimited, Retry::Soon),
        (Backend::Anthropic, 429, &spent, Trouble::Quota, Retry::Never),
        (Backend::Anthropic, 500, &overloaded, Trouble::Overloaded, Retry::Soon),
        (Backend::Openai, 429, &quota, Trouble::Quota, Retry::Never),
        (Backend::Openai, 429, &spent, Trouble::RateLimited, Retry::Soon),
        (Backend::Ollama, 503, &json!({"error": "busy"}), Trouble::Overloaded, Retry::Soon),
        (Backend::Ollama, 404, &json!(null), Trouble::NotFound, Retry::Never),
    ] {
        let provider = provider(kind, Config::default());
        let status = StatusCode::from_u16(status).expect("a status");
        let fault = provider.refused(status, &HeaderMap::new(), body.to_string().as_bytes());
        assert_eq!((fault.trouble, fault.retry), (trouble, retry), "{kind:?} {body}");
    }
}

#[test]
fn raw_prompts_go_where_they_are_taken() {
    let completion = |form| Completion {
        purpose: Purpose::LlamaGuard,
        tenant: "",
        prompt_version: "1",
        form,
        prompt: "p".into(),
        turns: vec![("user", "t".into())],
        output_tokens_max: 10,
    };
    let (prompt, turns) = (completion(RawForm::Prompt), completion(RawForm::Turns));
    for (kind, completion, path) in [
        (Backend::Ollama, &prompt, Some("api/generate")),
        (Backend::Openai, &prompt, Some("v1/completions")),
        (Backend::Openai, &turns, Some("v1/chat/completions")),
        (Backend::Gemini, &prompt, None),
        (Backend::Anthropic, &prompt, None),
    ] {
        let call = provider(kind, Config::default()).call(Asked::Raw(completion), 10);
        assert_eq!(call.ok().map(|call| call.path).as_deref(), path, "{kind:?}");
    }
}

#[test]
fn questions_that_ollama_would_cut_are_not_put() {
    let window = |bytes: usize| {
        let prompt = Prompt { system: String::new(), content: "x".repeat(bytes) };
        let asked = Asked::Structured { prompt: &prompt, schema: &Value::Null };
        let call = provider(Backend::Ollama, Config::default()).call(asked, 1000);
        call.map(|call| call.body["options"]["num_ctx"].as_u64().unwrap_or_default())
            .map_err(|fault| fault.trouble)
    };
    assert_eq!(window(100), Ok(8192));
    assert_eq!(window(8000), Ok(32_768));
    assert_eq!(window(60_000), Ok(131_072));
    assert_eq!(window(131_000), Err(Trouble::TooLarge));
}

#[test]
fn openai_itself_takes_the_newer_name_of_the_limit() {
    let prompt = Prompt { system: String::new(), content: String::new() };
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
    let asked = Asked::Structured { prompt: &prompt, schema: &schema };
    for (base_url, limit) in [(None, "max_completion_tokens"), (Some("http://127.0.0.1:1"), "max_tokens")] {
        let config = Config { base_url: base_url.map(str::to_owned), temperature: None, ..Config::default() };
        let body = provider(Backend::Openai, config).call(asked, 10).expect("a call").body;
        assert_eq!(body[limit], 10);
        assert!(body["temperature"].is_null());
        assert_eq!(body["response_format"]["json_schema"]["strict"], false, "not every member is required");
    }
}
