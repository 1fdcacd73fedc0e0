//! Answers that may be given again: judged ones only, by everything that they depend on.

use std::time::Duration;

use moka::sync::Cache;
use sha2::{Digest, Sha256};

use super::{Completion, Question, Usage};

/// SHA-256 of everything an answer depends on.
pub(super) type Key = [u8; 32];

/// What an entry takes besides its text, in bytes.
const ENTRY_BYTES: usize = 128;

/// A known answer. The value is kept as JSON text, whose size is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) text: String,
    pub(super) model: String,
    pub(super) usage: Usage,
}

/// See the module.
pub(super) struct Answers(Option<Cache<Key, Known>>);

impl Answers {
    pub(super) fn new(bytes_max: usize, ttl: Duration) -> Self {
        let build = || {
            let weigh = |_: &Key, known: &Known| {
                u32::try_from(known.text.len() + known.model.len() + ENTRY_BYTES).unwrap_or(u32::MAX)
            };
            Cache::builder().max_capacity(bytes_max as u64).weigher(weigh).time_to_live(ttl).build()
        };
        Self((bytes_max > 0).then(build))
    }

    pub(super) fn get(&self, key: &Key) -> Option<Known> {
        self.0.as_ref()?.get(key)
    }

    pub(super) fn put(&self, key: Key, known: Known) {
        if let Some(cache) = &self.0 {
            cache.insert(key, known);
        }
    }
}

/// The key of a question to a model.
pub(super) fn key_of_question(backend: &str, model: &str, question: &Question<'_>) -> Key {
    let mut hash = Fields::new("question", backend, model, question.prompt_version);
    hash.add(question.tenant.as_bytes());
    hash.add(question.instructions.as_bytes());
    hash.add(question.schema.to_string().as_bytes());
    for block in &question.blocks {
        hash.add(block.label.as_bytes());
        hash.add(block.text.as_bytes());
    }
    hash.finish()
}

/// The key of a completion by a model.
pub(super) fn key_of_completion(backend: &str, model: &str, completion: &Completion<'_>) -> Key {
    let mut hash = Fields::new("completion", backend, model, completion.prompt_version);
    hash.add(completion.tenant.as_bytes());
    hash.add(completion.prompt.as_bytes());
    for (role, text) in &completion.turns {
        hash.add(role.as_bytes());
        hash.add(text.as_bytes());
    }
    hash.finish()
}

/// A hash of fields, each with its length, so that no two lists of fields look the same.
struct Fields(Sha256);

impl Fields {
    fn new(kind: &str, backend: &str, model: &str, version: &str) -> Self {
        let mut fields = Self(Sha256::new());
        [kind, backend, model, version].into_iter().for_each(|field| fields.add(field.as_bytes()));
        fields
    }

    fn add(&mut self, field: &[u8]) {
        self.0.update((field.len() as u64).to_le_bytes());
        self.0.update(field);
    }

    fn finish(self) -> Key {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::judge::{Block, Purpose};

    #[test]
    fn everything_an_answer_depends_on_makes_another_key() {
        let (one, other) = (json!({"type": "object"}), json!({"type": "array"}));
        let question = |version, instructions: &'static str, texts: &[&'static str], schema| Question {
            purpose: Purpose::Stream,
            tenant: "",
            prompt_version: version,
            instructions: instructions.into(),
            blocks: texts.iter().map(|text| Block { label: "a", text: (*text).into() }).collect(),
            schema,
            output_tokens_max: 1,
        };
        let keys = [
            key_of_question("gemini", "m", &question("1", "i", &["x", "y"], &one)),
            key_of_question("ollama", "m", &question("1", "i", &["x", "y"], &one)),
            key_of_question("gemini", "n", &question("1", "i", &["x", "y"], &one)),
            key_of_question("gemini", "m", &question("2", "i", &["x", "y"], &one)),
            key_of_question("gemini", "m", &question("1", "j", &["x", "y"], &one)),
            key_of_question("gemini", "m", &question("1", "i", &["xy", ""], &one)),
            key_of_question("gemini", "m", &question("1", "i", &["x"], &one)),
            key_of_question("gemini", "m", &question("1", "i", &["x", "y"], &other)),
            key_of_question(
                "gemini",
                "m",
                &Question { tenant: "acme", ..question("1", "i", &["x", "y"], &one) },
            ),
        ];
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{at}");
        }
        assert_eq!(keys[0], key_of_question("gemini", "m", &question("1", "i", &["x", "y"], &one)));
    }

    #[test]
    fn a_cache_of_no_size_knows_nothing() {
        let known = Known { text: "{}".to_owned(), model: "m".to_owned(), usage: Usage::default() };
        for (bytes, wanted) in [(0, None), (1 << 20, Some(known.clone()))] {
            let answers = Answers::new(bytes, Duration::from_secs(60));
            answers.put([1; 32], known.clone());
            assert_eq!(answers.get(&[1; 32]), wanted);
            assert_eq!(answers.get(&[2; 32]), None);
        }
    }
}
