//! Anthropic: Messages (anthropic-sdk-python, `types`, `_exceptions.py` and `_base_client.py`).

use serde_json::{Value, json};

use super::{
    ANSWER, Asked, Content, Provider, Reply, empty, model_name, text_reply, truncated, unknown_end,
    wrong_shape,
};
use crate::judge::config::StructuredOutput;
use crate::judge::fault::Fault;
use crate::judge::wire::Call;
use crate::judge::{Trouble, Usage, schema};

/// Version of the protocol.
const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

impl Provider {
    pub(super) fn call_anthropic(&self, asked: Asked<'_>, output_tokens_max: u32) -> Result<Call, Fault> {
        let Asked::Structured { prompt, schema } = asked else {
            return Err(Fault::last(Trouble::Internal, "this provider takes no raw prompts"));
        };
        let mut body = json!({
            "model": self.model,
            "max_tokens": output_tokens_max,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.content}],
        });
        if let Some(temperature) = self.temperature {
            // This provider ends at 1.
            body["temperature"] = temperature.min(1.0).into();
        }
        match self.structured {
            StructuredOutput::Schema => {
                let schema = schema::without_limits(schema);
                body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
            }
            StructuredOutput::Legacy => {
                body["tools"] = json!([{
                    "name": ANSWER, "description": "Gives the answer.", "input_schema": schema
                }]);
                body["tool_choice"] =
                    json!({"type": "tool", "name": ANSWER, "disable_parallel_tool_use": true});
            }
            StructuredOutput::Prompt => {}
        }
        Ok(Call { path: "v1/messages".to_owned(), headers: vec![VERSION], body })
    }

    pub(super) fn read_anthropic(&self, body: &Value) -> Result<Reply, Fault> {
        let counts = &body["usage"];
        let input = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        let usage = Usage {
            input_tokens: input
                .iter()
                .fold(0, |sum: u64, name| sum.saturating_add(super::count(&counts[name]))),
            output_tokens: super::count(&counts["output_tokens"]),
        };
        if body["type"] != "message" {
            return Err(wrong_shape("no message"));
        }
        let is_tool = self.structured == StructuredOutput::Legacy;
        match body["stop_reason"].as_str() {
            Some("end_turn" | "stop_sequence") => {}
            Some("tool_use") if is_tool => {}
            Some("max_tokens" | "model_context_window_exceeded") => return Err(truncated(usage)),
            Some("refusal") => {
                return Err(Fault::last(Trouble::Refused, "the model declined to answer").after(usage));
            }
            _ => return Err(unknown_end(usage)),
        }
        let Some(blocks) = body["content"].as_array() else {
            return Err(wrong_shape("no content").after(usage));
        };
        let model = model_name(&body["model"]);
        if is_tool {
            let mut calls = blocks.iter().filter(|block| block["type"] == "tool_use");
            return match (calls.next(), calls.next()) {
                (Some(call), None) if call["name"] == ANSWER => {
                    Ok(Reply { content: Content::Json(call["input"].clone()), usage, model })
                }
                (None, _) => Err(empty(usage)),
                _ => Err(wrong_shape("other tool calls than the one asked for").after(usage)),
            };
        }
        let texts =
            blocks.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
        text_reply(texts.collect(), usage, model)
    }
}

/// Looks at the error itself.
pub(super) fn refine(fault: Fault, body: &Value) -> Fault {
    let error = &body["error"];
    let is_spent = |value: &Value| value == "enforced_spend_limit_reached";
    if [&error["error_code"], &error["code"], &error["details"]["error_code"], &body["error_code"]]
        .into_iter()
        .any(is_spent)
    {
        return Fault {
            is_outage: false,
            ..Fault::last(Trouble::Quota, "the provider answered HTTP 429: a limit on spending was hit")
        };
    }
    match error["type"].as_str() {
        Some("overloaded_error") => Fault { trouble: Trouble::Overloaded, ..fault },
        Some("billing_error") => Fault { trouble: Trouble::Quota, ..fault }.for_good(),
        _ => fault,
    }
}
