//! Runs a rule over one call.

use super::state::{State, failed};
use super::{Action, CompiledRule, RuleCall};
use crate::decision::{Decision, Reason, SpanRef};
use crate::detect::redact::Placeholders;
use crate::text::json;
use crate::tools::json::Kind;
use crate::tools::redact::Payload;
use crate::tools::step::{InterceptError, Step};
use crate::tools::strip_ansi;

pub(super) fn apply(rule: &CompiledRule, call: &RuleCall<'_>) -> Result<Step, InterceptError> {
    let mut state = State::new(rule.hook, call);
    if let Some(when) = &rule.when {
        state.prepare(when)?;
        if !when.holds(&state).map_err(|error| failed("when", &error))? {
            return Ok(Step::default());
        }
    }
    let mut step = Step::default();
    let mut placeholders = Placeholders::default();
    for (nth, action) in rule.actions.iter().enumerate() {
        let key = |name: &str| format!("do[{nth}].{name}");
        match action {
            Action::Block(reason) => {
                step.decision = Decision::Block;
                step.reason.clone_from(reason);
                break;
            }
            Action::Ask(reason) => {
                step.decision = step.decision.max(Decision::Ask);
                if step.reason.is_empty() {
                    step.reason.clone_from(reason);
                }
            }
            Action::MergeArgs(patch) => {
                let merged = state.args.document()?.merge(patch);
                if state.args.change(merged)? {
                    let names: Vec<_> = patch.root().members().map(|(name, _)| name.name()).collect();
                    step.did.push(format!("merged into the arguments: {}", names.join(", ")));
                }
            }
            Action::SetArgs(members) => {
                let changed = state.assign(|state| &mut state.args, members, &key("set_args"))?;
                did_set(&mut step, "argument", &changed);
            }
            Action::SetMetadata(members) => {
                let changed = state.assign(|state| &mut state.metadata, members, &key("set_metadata"))?;
                did_set(&mut step, "metadata", &changed);
            }
            Action::SetParams(patch) => {
                let changed: Vec<String> = state.set_params(patch).into_iter().map(str::to_owned).collect();
                did_set(&mut step, "parameter", &changed);
            }
            Action::Redact(categories) => {
                let (payload, text, was_changed) = state.judged();
                if text.is_empty() {
                    continue;
                }
                let redacted = (call.redact)(payload, text, categories, &mut placeholders)?;
                if redacted.limit_hit {
                    let what = format!("{}: the limits on decoding were hit", key("redact"));
                    return Err(InterceptError::new(Reason::Limit, what));
                }
                let mut findings = redacted.findings;
                if was_changed {
                    // Their places are in a text that nobody sent.
                    for finding in &mut findings {
                        finding.span = SpanRef { message_index: 0, path: "".into(), start: 0, end: 0 };
                    }
                }
                step.dealt_with.append(&mut findings);
                if let Some(text) = redacted.text {
                    let kinds: Vec<String> =
                        redacted.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
                    take_over(&mut state, payload, text)?;
                    step.did.push(format!("redacted {} in {}", kinds.join(", "), place(payload)));
                }
            }
            Action::StripAnsi => strip(&mut state, &mut step)?,
            Action::Append(text) => append(&mut state, &mut step, text)?,
            Action::Audit(note) => step.notes.push(note.clone()),
        }
    }
    step.changes = state.into_changes();
    Ok(step)
}

fn did_set(step: &mut Step, what: &str, names: &[String]) {
    if !names.is_empty() {
        step.did.push(format!("set {what} {}", names.join(", ")));
    }
}

fn place(payload: Payload) -> &'static str {
    match payload {
        Payload::Args => "the arguments",
        Payload::Result => "the result",
        Payload::Message => "the message",
    }
}

/// Puts `text` in the place of what `payload` names.
fn take_over(state: &mut State<'_>, payload: Payload, text: String) -> Result<(), InterceptError> {
    match payload {
        Payload::Args => state.args.change(Some(text)).map(drop),
        Payload::Result => match &mut state.result {
            Some(slot) => slot.change(Some(text)).map(drop),
            None => Ok(()),
        },
        Payload::Message => {
            state.set_message(text);
            Ok(())
        }
    }
}

fn strip(state: &mut State<'_>, step: &mut Step) -> Result<(), InterceptError> {
    if let Some(slot) = &mut state.result {
        if let Some((text, count)) = strip_ansi::strip_json(slot.document()?) {
            slot.change(Some(text))?;
            step.did.push(format!("removed terminal sequences from {count} text(s) of the result"));
        }
    } else if let std::borrow::Cow::Owned(text) = strip_ansi::strip(state.message()) {
        state.set_message(text);
        step.did.push("removed terminal sequences from the message".to_owned());
    }
    Ok(())
}

fn append(state: &mut State<'_>, step: &mut Step, text: &str) -> Result<(), InterceptError> {
    if !state.hook.is_tool() {
        let message = format!("{}{text}", state.message());
        state.set_message(message);
        step.did.push("appended a text to the message".to_owned());
        return Ok(());
    }
    let Some(slot) = &mut state.result else { return Ok(()) };
    let root = slot.document()?.root();
    if root.kind() != Kind::String {
        step.did.push(format!("appended nothing: the result is {}", root.kind().with_article()));
        return Ok(());
    }
    let mut appended = slot.text().trim_end().to_owned();
    appended.pop();
    json::escape_into(&mut appended, text);
    appended.push('"');
    slot.change(Some(appended))?;
    step.did.push("appended a text to the result".to_owned());
    Ok(())
}
