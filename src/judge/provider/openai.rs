//! Whatever speaks the completions of OpenAI (openai-python, `types/chat` and `_exceptions.py`).

use serde_json::{Value, json};

use super::{ANSWER, Asked, Provider, Reply, model_name, text_reply, truncated, unknown_end, wrong_shape};
use crate::judge::config::StructuredOutput;
use crate::judge::fault::Fault;
use crate::judge::wire::Call;
use crate::judge::{RawForm, Trouble, Usage, schema};

impl Provider {
    pub(super) fn call_openai(&self, asked: Asked<'_>, output_tokens_max: u32) -> Call {
        // The name that every server knows; the reasoning models of OpenAI itself refuse it.
        let limit = if self.is_openai_itself { "max_completion_tokens" } else { "max_tokens" };
        let mut body = json!({"model": self.model, "stream": false});
        body[limit] = output_tokens_max.into();
        if let Some(temperature) = self.temperature {
            body["temperature"] = temperature.into();
        }
        let mut path = "chat/completions";
        match asked {
            Asked::Raw(completion) => match completion.form {
                RawForm::Prompt => {
                    path = "completions";
                    body["prompt"] = json!(completion.prompt);
                }
                RawForm::Turns => {
                    let turn = |(role, text): &(&str, _)| json!({"role": role, "content": text});
                    body["messages"] = completion.turns.iter().map(turn).collect();
                }
            },
            Asked::Structured { prompt, schema } => {
                body["messages"] = json!([
                    {"role": "system", "content": prompt.system},
                    {"role": "user", "content": prompt.content},
                ]);
                match self.structured {
                    StructuredOutput::Schema => {
                        let strict = schema::requires_all(schema);
                        let schema = if strict { schema::without_limits(schema) } else { schema.clone() };
                        body["response_format"] = json!({
                            "type": "json_schema",
                            "json_schema": {"name": ANSWER, "schema": schema, "strict": strict},
                        });
                    }
                    StructuredOutput::Legacy => body["response_format"] = json!({"type": "json_object"}),
                    StructuredOutput::Prompt => {}
                }
            }
        }
        Call { path: format!("v1/{path}"), headers: Vec::new(), body }
    }

    pub(super) fn read_openai(&self, asked: Asked<'_>, body: &Value) -> Result<Reply, Fault> {
        let counts = &body["usage"];
        let usage = Usage {
            input_tokens: super::count(&counts["prompt_tokens"]),
            output_tokens: super::count(&counts["completion_tokens"]),
        };
        let Some(choice) = body["choices"].get(0) else { return Err(wrong_shape("no choices").after(usage)) };
        let message = &choice["message"];
        if message["refusal"].as_str().is_some_and(|refusal| !refusal.is_empty()) {
            return Err(Fault::last(Trouble::Refused, "the model declined to answer").after(usage));
        }
        match choice["finish_reason"].as_str() {
            Some("stop") => {}
            Some("length") => return Err(truncated(usage)),
            Some("content_filter") => {
                let detail = "a filter of the provider held the answer back";
                return Err(Fault::last(Trouble::Blocked, detail).after(usage));
            }
            _ => return Err(unknown_end(usage)),
        }
        let text = match asked {
            Asked::Raw(completion) if completion.form == RawForm::Prompt => &choice["text"],
            _ => &message["content"],
        };
        match text {
            Value::String(text) => text_reply(text.clone(), usage, model_name(&body["model"])),
            Value::Null => Err(super::empty(usage)),
            _ => Err(wrong_shape("content that is no text").after(usage)),
        }
    }
}

/// Looks at the error itself. Some servers put a text in its place.
pub(super) fn refine(fault: Fault, body: &Value) -> Fault {
    let error = &body["error"];
    let is_quota = |value: &Value| value == "insufficient_quota" || value == "billing_hard_limit_reached";
    if is_quota(&error["code"]) || is_quota(&error["type"]) {
        return Fault::last(Trouble::Quota, "the account of the provider has no credit left");
    }
    fault
}
