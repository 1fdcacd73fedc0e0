//! Llama Guard: a model that classifies the last turn of a conversation by hazard categories.
//!
//! The prompt is written here (`prompt`), by the generation of the model (`generation`), and sent raw; the answer is one
//! of two words and a list of codes (`answer`). A long turn is judged in pieces, each of which fits into the window of
//! the model, so that nothing is cut without a word.
//!
//! Whatever is not a clear answer is a [`PluginError`], and the fail mode of the policy decides.

mod answer;
mod config;
mod generation;
mod prompt;

use std::borrow::Cow;
use std::sync::Arc;

pub use config::LlamaGuardConfig;
pub use generation::{Generation, GenerationSetting, Hazard};

use super::{Descriptor, Found, Plugin, PluginAnswer, PluginCall, PluginError, PluginFuture};
use crate::decision::{Category, Finding, Reason, Severity, SpanRef};
use crate::judge::{self, Complete, Completion, Observer, Purpose, RawForm};
use crate::setting::Problem;
use answer::Verdict;
use prompt::{PIECES_MAX, Speaker, Turn};

/// Rule and category of content that it calls unsafe without a category that its generation has.
const UNKNOWN: &str = "unknown";
/// Longest answer, in tokens: `unsafe` and all codes.
const OUTPUT_TOKENS_MAX: u32 = 100;

/// The plugin.
pub struct LlamaGuard {
    descriptor: Descriptor,
    model: Arc<dyn Complete>,
    generation: Generation,
    form: RawForm,
}

impl LlamaGuard {
    /// Id, as policies and requests name it.
    pub const NAME: &str = "llama_guard";
    /// Family of the categories that it reports.
    pub const FAMILY: &str = "content_safety";

    /// The plugin of these settings; `None` when they switch it off. Nothing is connected yet.
    ///
    /// # Errors
    /// What is wrong with the settings, with keys relative to their section.
    pub fn connect(
        config: &LlamaGuardConfig,
        observer: Arc<dyn Observer>,
    ) -> Result<Option<Self>, Vec<Problem>> {
        if !config.enabled {
            return Ok(None);
        }
        let mut problems = Vec::new();
        config.check(&mut problems);
        let (Some((llm, form)), Some(generation)) = (config.llm(), config.resolved_generation()) else {
            return Err(problems);
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        let Some(model) = judge::completer(&llm, observer).map_err(config::renamed)? else { return Ok(None) };
        let descriptor = Descriptor {
            name: Self::NAME.into(),
            description: "Hazard categories of the last turn, by a Llama Guard model.".into(),
            version: generation.as_str().into(),
        };
        Ok(Some(Self { descriptor, model, generation, form }))
    }

    async fn judge(&self, call: &PluginCall<'_>) -> PluginAnswer {
        let Some(turn) = prompt::last_turn(call.messages, call.direction) else {
            return Ok(Found::default());
        };
        let all = prompt::pieces(&turn.text);
        let pieces = &all[..all.len().min(PIECES_MAX)];
        let asked = pieces.iter().map(|piece| self.ask(&turn, piece, call));
        // All at once: how many are really under way is limited by the client.
        let answers = futures_util::future::join_all(asked).await;
        let mut findings: Vec<Finding> = Vec::new();
        let mut failure = None;
        for (piece, answer) in pieces.iter().zip(answers) {
            match answer {
                Ok(Verdict::Safe) => {}
                Ok(Verdict::Unsafe(codes)) => {
                    for finding in self.findings(call, &turn, piece, &codes) {
                        if findings.iter().all(|known| known.rule_id != finding.rule_id) {
                            findings.push(finding);
                        }
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
        // What was found decides more than what was not judged.
        match failure {
            _ if !findings.is_empty() => Ok(findings.into()),
            Some(error) => Err(error),
            None if all.len() > PIECES_MAX => Err(PluginError {
                reason: Reason::Limit,
                detail: format!(
                    "the turn has {} bytes, of which the first pieces were judged",
                    turn.text.len()
                ),
            }),
            None => Ok(Found::default()),
        }
    }

    async fn ask(&self, turn: &Turn<'_>, piece: &str, call: &PluginCall<'_>) -> Result<Verdict, PluginError> {
        let before = turn.before.as_deref();
        let mut turns = Vec::new();
        let prompt = match self.form {
            RawForm::Prompt => Cow::Owned(prompt::prompt(self.generation, turn.speaker, before, piece)),
            RawForm::Turns => {
                turns.extend(before.map(|before| ("user", prompt::harmless(prompt::tail(before)).into())));
                let role = if turn.speaker == Speaker::User { "user" } else { "assistant" };
                turns.push((role, prompt::harmless(piece).into()));
                Cow::Borrowed("")
            }
        };
        let completion = Completion {
            purpose: Purpose::LlamaGuard,
            tenant: call.tenant,
            prompt_version: prompt::VERSION,
            form: self.form,
            prompt,
            turns,
            output_tokens_max: OUTPUT_TOKENS_MAX,
        };
        let is_answer = |text: &str| answer::read(text).is_some();
        let completed = self.model.complete(&completion, is_answer, call.until).await;
        let completed = completed.map_err(|why| PluginError { reason: why.reason, detail: why.detail })?;
        answer::read(&completed.text).ok_or_else(|| PluginError {
            reason: Reason::BadAnswer,
            detail: "the model answered neither safe nor unsafe".to_owned(),
        })
    }

    fn findings(
        &self,
        call: &PluginCall<'_>,
        turn: &Turn<'_>,
        piece: &str,
        codes: &[String],
    ) -> Vec<Finding> {
        let span = span_of(call, turn, piece);
        let generation = self.generation.as_str();
        let known = |hazard: &Hazard| {
            let description = format!("{}: {} (Llama Guard {generation})", hazard.code, hazard.name);
            self.finding((hazard.code, hazard.leaf, hazard.severity), description, span.clone())
        };
        let unknown = |code: Option<&str>| {
            let what = code.map_or("without a category".to_owned(), |code| {
                format!("category {code}, which is not known")
            });
            let description = format!("Unsafe content, {what} (Llama Guard {generation})");
            self.finding((UNKNOWN, UNKNOWN, Severity::High), description, span.clone())
        };
        if codes.is_empty() {
            return vec![unknown(None)];
        }
        codes
            .iter()
            .map(|code| self.generation.hazard(code).map_or_else(|| unknown(Some(code)), known))
            .collect()
    }

    fn finding(
        &self,
        (rule, leaf, severity): (&str, &str, Severity),
        description: String,
        span: SpanRef,
    ) -> Finding {
        Finding {
            plugin: self.descriptor.name.clone(),
            plugin_version: self.descriptor.version.clone(),
            rule_id: format!("{}.{rule}", Self::NAME).into(),
            category: Category::new(&format!("{}.{leaf}", Self::FAMILY)),
            severity,
            score: severity.score(),
            description: description.into(),
            recommendation: "Do not pass this turn on.".into(),
            span,
            evasions: Vec::new(),
            shadow: false,
            suppressed: false,
        }
    }
}

/// Where a piece stands: itself in a turn of one field, else the whole first field of its message.
fn span_of(call: &PluginCall<'_>, turn: &Turn<'_>, piece: &str) -> SpanRef {
    let said = |text: &str| !text.trim().is_empty();
    let field = call.messages[turn.index]
        .fields
        .iter()
        .find(|field| said(field.text) && field.path != super::FieldPath::Name);
    let (path, length) =
        field.map_or(("/text".into(), 0), |field| (field.path.to_pointer(), field.text.len()));
    let (start, end) = match turn.text {
        Cow::Borrowed(text) => {
            let start = piece.as_ptr() as usize - text.as_ptr() as usize;
            (start, start + piece.len())
        }
        Cow::Owned(_) => (0, length),
    };
    SpanRef { message_index: turn.index as u32, path: path.as_ref().into(), start, end }
}

impl Plugin for LlamaGuard {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn reports(&self) -> Vec<(String, Severity)> {
        let of = |leaf: &str, severity| (format!("{}.{leaf}", Self::FAMILY), severity);
        let known = self.generation.hazards().iter().map(|hazard| of(hazard.leaf, hazard.severity));
        known.chain([of(UNKNOWN, Severity::High)]).collect()
    }

    fn check<'a>(&'a self, call: &'a PluginCall<'a>) -> PluginFuture<'a> {
        Box::pin(self.judge(call))
    }
}
