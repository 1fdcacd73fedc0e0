//! Ollama: `/api/chat` for questions, `/api/generate` for raw prompts (ollama, `docs/api.md` and `api/types.go`).

use serde_json::{Value, json};

use super::{Asked, Provider, Reply, model_name, text_reply, truncated, unknown_end, wrong_shape};
use crate::judge::config::StructuredOutput;
use crate::judge::fault::Fault;
use crate::judge::wire::Call;
use crate::judge::{Trouble, Usage};

/// Windows of tokens that are asked for. Few, since the server loads the model anew for each.
const WINDOWS: [usize; 3] = [8 * 1024, 32 * 1024, 128 * 1024];
/// Tokens of what the server puts around a prompt.
const AROUND: usize = 256;

/// A window that surely holds question and answer: a token is a byte at least. Releases that do not know `truncate`
/// would silently cut a longer question.
fn window_for(prompt_bytes: usize, output_tokens_max: u32) -> Result<usize, Fault> {
    let needed = prompt_bytes.saturating_add(output_tokens_max as usize).saturating_add(AROUND);
    WINDOWS.into_iter().find(|window| needed <= *window).ok_or_else(|| {
        let most = WINDOWS[WINDOWS.len() - 1];
        Fault::last(Trouble::TooLarge, format!("question and answer may take more than {most} tokens"))
    })
}

impl Provider {
    pub(super) fn call_ollama(&self, asked: Asked<'_>, output_tokens_max: u32) -> Result<Call, Fault> {
        let prompt_bytes = match asked {
            Asked::Raw(completion) => completion.prompt.len(),
            Asked::Structured { prompt, .. } => prompt.system.len() + prompt.content.len(),
        };
        let window = window_for(prompt_bytes, output_tokens_max)?;
        let mut options = json!({"num_predict": output_tokens_max, "num_ctx": window});
        if let Some(temperature) = self.temperature {
            options["temperature"] = temperature.into();
        }
        let (path, body) = match asked {
            Asked::Raw(completion) => {
                let body = json!({
                    "model": self.model, "prompt": completion.prompt, "raw": true, "stream": false, "options": options,
                    "truncate": false, "shift": false,
                });
                ("api/generate", body)
            }
            Asked::Structured { prompt, schema } => {
                let mut body = json!({
                    "model": self.model,
                    "messages": [
                        {"role": "system", "content": prompt.system},
                        {"role": "user", "content": prompt.content},
                    ],
                    "stream": false,
                    "options": options,
                    "truncate": false,
                    "shift": false,
                });
                match self.structured {
                    StructuredOutput::Schema => body["format"] = schema.clone(),
                    StructuredOutput::Legacy => body["format"] = "json".into(),
                    StructuredOutput::Prompt => {}
                }
                ("api/chat", body)
            }
        };
        Ok(Call { path: path.to_owned(), headers: Vec::new(), body })
    }

    pub(super) fn read_ollama(&self, asked: Asked<'_>, body: &Value) -> Result<Reply, Fault> {
        let usage = Usage {
            input_tokens: super::count(&body["prompt_eval_count"]),
            output_tokens: super::count(&body["eval_count"]),
        };
        if !body["error"].is_null() {
            return Err(Fault::last(Trouble::ServerError, "the provider reported an error under HTTP 200")
                .after(usage));
        }
        // Releases before `done_reason` say no more than that they are done.
        match (&body["done"], body["done_reason"].as_str()) {
            (Value::Bool(true), Some("length")) => return Err(truncated(usage)),
            (Value::Bool(true), Some("stop")) => {}
            (Value::Bool(true), None) if body["done_reason"].is_null() => {}
            _ => return Err(unknown_end(usage)),
        }
        let text = match asked {
            Asked::Raw(_) => &body["response"],
            Asked::Structured { .. } => &body["message"]["content"],
        };
        let Some(text) = text.as_str() else { return Err(wrong_shape("no text").after(usage)) };
        text_reply(text.to_owned(), usage, model_name(&body["model"]))
    }
}
