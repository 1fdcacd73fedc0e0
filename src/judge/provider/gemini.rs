//! Gemini: `generateContent` (googleapis/python-genai, `types.py` and `errors.py`).

use serde_json::{Value, json};

use super::{
    Asked, Provider, Reply, empty, known_word, model_name, text_reply, truncated, unknown_end, wrong_shape,
};
use crate::judge::config::StructuredOutput;
use crate::judge::fault::{Fault, Retry, proto_duration};
use crate::judge::wire::Call;
use crate::judge::{Trouble, Usage, schema};

/// Filters that would otherwise hold back the very content that is to be judged.
const FILTERS: [&str; 4] = [
    "HARM_CATEGORY_HARASSMENT",
    "HARM_CATEGORY_HATE_SPEECH",
    "HARM_CATEGORY_SEXUALLY_EXPLICIT",
    "HARM_CATEGORY_DANGEROUS_CONTENT",
];

/// Why a question is held back.
const BLOCK_REASONS: [&str; 7] =
    ["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK"];

/// Ends of an answer that mean that a filter held it back.
const BLOCKED_ENDS: [&str; 9] = [
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
];

impl Provider {
    pub(super) fn call_gemini(&self, asked: Asked<'_>, output_tokens_max: u32) -> Result<Call, Fault> {
        let Asked::Structured { prompt, schema } = asked else {
            return Err(Fault::last(Trouble::Internal, "this provider takes no raw prompts"));
        };
        let mut generation = json!({"maxOutputTokens": output_tokens_max, "candidateCount": 1});
        if self.structured != StructuredOutput::Prompt {
            generation["responseMimeType"] = "application/json".into();
        }
        match self.structured {
            StructuredOutput::Schema => generation["responseJsonSchema"] = schema.clone(),
            StructuredOutput::Legacy => generation["responseSchema"] = schema::open_api(schema),
            StructuredOutput::Prompt => {}
        }
        if let Some(temperature) = self.temperature {
            generation["temperature"] = temperature.into();
        }
        if let Some(budget) = self.thinking_budget {
            generation["thinkingConfig"] = json!({"thinkingBudget": budget});
        }
        let filters: Vec<Value> =
            FILTERS.iter().map(|category| json!({"category": category, "threshold": "OFF"})).collect();
        Ok(Call {
            path: format!("v1beta/models/{}:generateContent", self.model),
            headers: Vec::new(),
            body: json!({
                "systemInstruction": {"parts": [{"text": prompt.system}]},
                "contents": [{"role": "user", "parts": [{"text": prompt.content}]}],
                "safetySettings": filters,
                "generationConfig": generation,
            }),
        })
    }

    pub(super) fn read_gemini(&self, body: &Value) -> Result<Reply, Fault> {
        let counts = &body["usageMetadata"];
        let usage = Usage {
            input_tokens: super::count(&counts["promptTokenCount"]),
            output_tokens: super::count(&counts["candidatesTokenCount"])
                .saturating_add(super::count(&counts["thoughtsTokenCount"])),
        };
        let held_back = &body["promptFeedback"]["blockReason"];
        if !held_back.is_null() {
            // Whatever stands beside it, a question that was held back has no answer.
            let reason = known_word(held_back, &BLOCK_REASONS);
            let detail = format!("a filter of the provider held the question back: {reason}");
            return Err(Fault::last(Trouble::Blocked, detail).after(usage));
        }
        let Some(candidate) = body["candidates"].get(0) else {
            return Err(if body.is_object() { empty(usage) } else { wrong_shape("no candidates") });
        };
        match candidate["finishReason"].as_str() {
            Some("STOP") => {}
            Some("MAX_TOKENS") => return Err(truncated(usage)),
            Some(end) if BLOCKED_ENDS.contains(&end) => {
                let end = known_word(&candidate["finishReason"], &BLOCKED_ENDS);
                let detail = format!("a filter of the provider held the answer back: {end}");
                return Err(Fault::last(Trouble::Blocked, detail).after(usage));
            }
            _ => return Err(unknown_end(usage)),
        }
        let Some(parts) = candidate["content"]["parts"].as_array() else { return Err(empty(usage)) };
        let is_thought = |part: &&Value| part["thought"] == Value::Bool(true);
        let text: String =
            parts.iter().filter(|part| !is_thought(part)).filter_map(|part| part["text"].as_str()).collect();
        text_reply(text, usage, model_name(&body["modelVersion"]))
    }
}

/// Looks at the error itself, which may come as a list of one.
pub(super) fn refine(fault: Fault, body: &Value) -> Fault {
    let error = body.get("error").or_else(|| body.get(0)?.get("error")).unwrap_or(&Value::Null);
    let details = || error["details"].as_array().into_iter().flatten();
    if details().any(|detail| detail["reason"] == "API_KEY_INVALID") {
        return Fault { trouble: Trouble::Unauthorized, ..fault }.for_good();
    }
    let hint = details().find_map(|detail| proto_duration(detail["retryDelay"].as_str()?));
    match (fault.retry, hint) {
        (Retry::Soon, Some(pause)) => Fault { retry: Retry::After(pause), ..fault },
        _ => fault,
    }
}
