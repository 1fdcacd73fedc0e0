//! Settings of one external plugin: where it is, and how its requests and answers are written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::decision::Severity;
use crate::extension::ATTEMPTS_MAX;
use crate::text::OffsetEncoding;

/// Longest name of a plugin, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Names that plugins of our own have.
const TAKEN: [&str; 8] =
    ["injection", "pii", "secrets", "code", "llama_guard", "structure", "media", "paths"];

/// `extensions.plugins.<name>`: a plugin of CheckMessages that lives elsewhere. Policies name it like any other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a section with keys such as kind and endpoint")]
pub struct PluginConfig {
    /// What is spoken.
    pub kind: PluginKind,
    /// Its URL; for gRPC scheme, host and port alone.
    pub endpoint: String,
    /// Name of a credential of `extensions.credentials`; empty for none.
    pub credential: String,
    /// One sentence for a person.
    pub description: String,
    /// Version told in findings. A gRPC extension tells its own.
    pub version: String,
    /// How often a call is tried that had no effect yet, 1 to 5.
    #[serde(with = "crate::setting::count")]
    pub attempts_max: usize,
    /// HTTP, one call for each text: most calls for one request. A request with more texts is not judged in full.
    #[serde(with = "crate::setting::count")]
    pub calls_max: usize,
    /// HTTP, one call for each text: how many at once.
    #[serde(with = "crate::setting::count")]
    pub concurrency: usize,
    /// HTTP: what is sent.
    pub request: RequestMapping,
    /// HTTP: how the answer is read.
    pub answer: AnswerMapping,
}

/// What a plugin speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginKind {
    /// JSON over HTTP, one POST a text or a request.
    #[default]
    Http,
    /// `ExtensionService.Check` over gRPC.
    Grpc,
}

/// Where things go in the JSON that is posted, as JSON Pointers (RFC 6901) to members of objects. An empty pointer means
/// that the thing is not sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a section with keys such as text and role")]
pub struct RequestMapping {
    /// One text: each text of the messages is posted alone.
    pub text: String,
    /// All texts in one post: a list of `{"role": …, "text": …}`. In place of `text`.
    pub messages: String,
    /// With `text`: the role of who speaks, `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// Which way the text goes, `input` or `output`.
    pub direction: String,
    /// Id of the decision.
    pub decision_id: String,
    /// Members that are sent as they are, such as the name of a model.
    pub fixed: Map<String, Value>,
}

/// How the answer is read, as JSON Pointers (RFC 6901).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a section with keys such as findings and category")]
pub struct AnswerMapping {
    /// A list with one item a finding; the other pointers are then relative to its items. Empty: the answer is one item.
    pub findings: String,
    /// What says whether an item is unsafe. Empty, with `findings`: each item is.
    pub is_unsafe: String,
    /// Values of `is_unsafe` that mean unsafe.
    pub unsafe_values: Vec<Value>,
    /// Values of `is_unsafe` that mean safe. Any other value makes the answer one that cannot be understood.
    pub safe_values: Vec<Value>,
    /// Category; empty, or absent in the answer: `default_category`.
    pub category: String,
    /// Category of a finding that has none.
    pub default_category: String,
    /// Categories by the name that the answer gives them; others are taken as they are.
    pub categories: BTreeMap<String, String>,
    /// Severity; empty, or absent in the answer: `default_severity`.
    pub severity: String,
    /// Severity of a finding that has none.
    pub default_severity: Severity,
    /// Severities by the text or number that the answer gives, besides our own names in any case.
    pub severities: BTreeMap<String, Severity>,
    /// Score from 0.0 to 1.0; empty: that of the severity.
    pub score: String,
    /// One sentence for a person; empty, or absent in the answer: a general one.
    pub description: String,
    /// First unit of the span in the text; empty: a finding is about the whole text. Needs `end` and `request.text`.
    pub start: String,
    /// One past the last unit.
    pub end: String,
    /// What `start` and `end` count: `utf8` bytes, `utf16` units or `utf32` characters.
    pub offsets: OffsetUnit,
}

/// What offsets count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OffsetUnit {
    /// Bytes.
    #[default]
    Utf8,
    /// Units of UTF-16, as in JavaScript and Java.
    Utf16,
    /// Characters, as in Python.
    Utf32,
}

impl From<OffsetUnit> for OffsetEncoding {
    fn from(unit: OffsetUnit) -> Self {
        match unit {
            OffsetUnit::Utf8 => Self::Utf8,
            OffsetUnit::Utf16 => Self::Utf16,
            OffsetUnit::Utf32 => Self::Utf32,
        }
    }
}

impl Default for PluginConfig {
    fn default() -> Self {
        Self {
            kind: PluginKind::Http,
            endpoint: String::new(),
            credential: String::new(),
            description: String::new(),
            version: "1".to_owned(),
            attempts_max: 1,
            calls_max: 64,
            concurrency: 4,
            request: RequestMapping::default(),
            answer: AnswerMapping::default(),
        }
    }
}

impl Default for RequestMapping {
    fn default() -> Self {
        Self {
            text: "/text".to_owned(),
            messages: String::new(),
            role: String::new(),
            direction: String::new(),
            decision_id: String::new(),
            fixed: Map::new(),
        }
    }
}

impl Default for AnswerMapping {
    fn default() -> Self {
        Self {
            findings: String::new(),
            is_unsafe: "/is_unsafe".to_owned(),
            unsafe_values: vec![Value::Bool(true)],
            safe_values: vec![Value::Bool(false)],
            category: "/category".to_owned(),
            default_category: "unknown".to_owned(),
            categories: BTreeMap::new(),
            severity: "/severity".to_owned(),
            default_severity: Severity::Medium,
            severities: BTreeMap::new(),
            score: String::new(),
            description: "/description".to_owned(),
            start: String::new(),
            end: String::new(),
            offsets: OffsetUnit::Utf8,
        }
    }
}

impl PluginConfig {
    /// Reports what is wrong with the plugin of that name, each as one sentence without its subject.
    pub(in crate::extension) fn check(&self, name: &str, problem: &mut dyn FnMut(String)) {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if name.is_empty()
            || name.len() > NAME_BYTES_MAX
            || !name.starts_with(|c: char| c.is_ascii_lowercase())
            || !name.chars().all(is_name)
        {
            problem(
                "must be named with a letter and then letters, digits, `_` and `-`, all lower case".into(),
            );
        }
        if TAKEN.contains(&name) {
            problem("has the name of a built-in plugin; choose another".into());
        }
        if self.endpoint.is_empty() {
            problem("has no `endpoint`".into());
        }
        for (key, value, most) in [
            ("attempts_max", self.attempts_max, ATTEMPTS_MAX as usize),
            ("calls_max", self.calls_max, 10_000),
            ("concurrency", self.concurrency, 256),
        ] {
            if !(1..=most).contains(&value) {
                problem(format!("has a `{key}` that is not from 1 to {most}"));
            }
        }
        if self.kind == PluginKind::Http {
            self.check_mapping(problem);
        }
    }

    fn check_mapping(&self, problem: &mut dyn FnMut(String)) {
        let (request, answer) = (&self.request, &self.answer);
        for (key, pointer) in [
            ("request.text", &request.text),
            ("request.messages", &request.messages),
            ("request.role", &request.role),
            ("request.direction", &request.direction),
            ("request.decision_id", &request.decision_id),
            ("answer.findings", &answer.findings),
            ("answer.is_unsafe", &answer.is_unsafe),
            ("answer.category", &answer.category),
            ("answer.severity", &answer.severity),
            ("answer.score", &answer.score),
            ("answer.description", &answer.description),
            ("answer.start", &answer.start),
            ("answer.end", &answer.end),
        ] {
            if !pointer.is_empty() && !pointer.starts_with('/') {
                problem(format!("has a `{key}` that is no JSON Pointer; it must be empty or begin with `/`"));
            }
        }
        let is_per_text = request.messages.is_empty();
        if is_per_text == request.text.is_empty() {
            problem("needs either `request.text` or `request.messages`; leave the other empty".into());
        }
        if !is_per_text && !request.role.is_empty() {
            problem("has a `request.role`, which goes with `request.text`".into());
        }
        if answer.is_unsafe.is_empty() && answer.findings.is_empty() {
            problem("needs `answer.is_unsafe`, or a list in `answer.findings`".into());
        }
        if answer.start.is_empty() != answer.end.is_empty() || !(is_per_text || answer.start.is_empty()) {
            problem("needs `answer.start` and `answer.end` together, and with them `request.text`".into());
        }
        if answer.unsafe_values.iter().any(|value| answer.safe_values.contains(value)) {
            problem("has a value that is both in `answer.unsafe_values` and in `answer.safe_values`".into());
        }
        let categories = answer.categories.values().chain([&answer.default_category]);
        for category in categories.filter(|category| !is_category(category)) {
            problem(format!("has `{}` for a category", category.escape_debug()));
        }
    }
}

/// Whether a text can be a category: dotted names of lower-case letters, digits, `_` and `-`.
pub(in crate::extension) fn is_category(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-')
    };
    text.len() <= 128 && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(name: &str, config: Value) -> Vec<String> {
        let config: PluginConfig = serde_json::from_value(config).expect("the shape of a plugin");
        let mut problems = Vec::new();
        config.check(name, &mut |problem| problems.push(problem));
        problems
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let with = |more: Value| {
            let mut config = serde_json::json!({"endpoint": "https://guard.example/check"});
            config.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            problems("acme", config)
        };
        assert_eq!(with(serde_json::json!({})), Vec::<String>::new());
        for (more, wanted) in [
            (serde_json::json!({"endpoint": ""}), "endpoint"),
            (serde_json::json!({"attempts_max": 6}), "attempts_max"),
            (serde_json::json!({"calls_max": 0}), "calls_max"),
            (serde_json::json!({"request": {"text": "text"}}), "JSON Pointer"),
            (serde_json::json!({"request": {"text": ""}}), "either"),
            (serde_json::json!({"request": {"messages": "/messages"}}), "either"),
            (serde_json::json!({"request": {"text": "", "messages": "/m", "role": "/r"}}), "role"),
            (serde_json::json!({"answer": {"is_unsafe": ""}}), "is_unsafe"),
            (serde_json::json!({"answer": {"start": "/start"}}), "together"),
            (serde_json::json!({"answer": {"safe_values": [true]}}), "both"),
            (serde_json::json!({"answer": {"default_category": "Über"}}), "category"),
        ] {
            let found = with(more.clone());
            assert!(found.len() == 1 && found[0].contains(wanted), "{more}: {found:?}");
        }
        let fine = serde_json::json!({"endpoint": "https://guard.example/", "kind": "grpc"});
        for name in ["", "Acme", "1a", "a b", "pii", "llama_guard", &"a".repeat(65)] {
            assert_eq!(problems(name, fine.clone()).len(), 1, "{name}");
        }
        assert_eq!(problems("a-b_2", fine), Vec::<String>::new());
    }
}
