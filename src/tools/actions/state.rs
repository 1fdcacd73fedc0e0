//! What a rule has made of a call so far, and the variables that expressions read from it.

use std::cell::OnceCell;

use serde_json::json;

use super::RuleCall;
use crate::decision::Reason;
use crate::policy::Params;
use crate::tools::Hook;
use crate::tools::condition::{EvalError, Expression, Input, Inputs, Variable};
use crate::tools::json::{Document, Duplicates, EditError, Member};
use crate::tools::redact::Payload;
use crate::tools::step::{Changes, InterceptError};

/// A JSON text, read when somebody needs it.
pub(super) struct Slot<'c> {
    given: &'c str,
    read: OnceCell<Document<'c>>,
    changed: bool,
}

impl<'c> Slot<'c> {
    fn new(given: &'c str) -> Self {
        Self { given, read: OnceCell::new(), changed: false }
    }

    pub(super) fn text(&self) -> &str {
        self.read.get().map_or(self.given, Document::text)
    }

    pub(super) fn document(&self) -> Result<&Document<'c>, InterceptError> {
        if self.read.get().is_none() {
            let _ = self.read.set(read(self.given)?);
        }
        self.read.get().ok_or_else(|| InterceptError::new(Reason::Error, "a JSON text could not be read"))
    }

    /// Takes over a new text.
    pub(super) fn change(&mut self, text: Option<String>) -> Result<bool, InterceptError> {
        let Some(text) = text.filter(|text| *text != self.text()) else { return Ok(false) };
        self.read = OnceCell::from(read(text)?);
        self.changed = true;
        Ok(true)
    }

    fn into_change(self) -> Option<String> {
        let read = self.read.into_inner().filter(|_| self.changed)?;
        Some(read.into_text().into_owned())
    }
}

fn read<'c>(text: impl Into<std::borrow::Cow<'c, str>>) -> Result<Document<'c>, InterceptError> {
    // Whoever sent the text has been told about duplicates already, where they matter.
    Document::parse(text, Duplicates::Keep)
        .map_err(|_| InterceptError::new(Reason::Error, "a JSON text could not be read"))
}

/// A call under the hands of a rule.
pub(super) struct State<'c> {
    pub(super) hook: Hook,
    call: &'c RuleCall<'c>,
    pub(super) args: Slot<'c>,
    /// `None` when there is none.
    pub(super) result: Option<Slot<'c>>,
    pub(super) metadata: Slot<'c>,
    message: Option<String>,
    params: Option<Params>,
    params_document: OnceCell<Document<'c>>,
    context: OnceCell<Document<'c>>,
    findings: OnceCell<Document<'c>>,
    effects: OnceCell<Document<'c>>,
}

impl<'c> State<'c> {
    pub(super) fn new(hook: Hook, call: &'c RuleCall<'c>) -> Self {
        let or_object = |text: &'c str| if text.is_empty() { "{}" } else { text };
        Self {
            hook,
            call,
            args: Slot::new(or_object(call.args)),
            result: (!call.result.is_empty()).then(|| Slot::new(call.result)),
            metadata: Slot::new(or_object(call.metadata)),
            message: None,
            params: None,
            params_document: OnceCell::new(),
            context: OnceCell::new(),
            findings: OnceCell::new(),
            effects: OnceCell::new(),
        }
    }

    pub(super) fn message(&self) -> &str {
        self.message.as_deref().unwrap_or(self.call.message)
    }

    pub(super) fn set_message(&mut self, text: String) {
        self.message = Some(text);
    }

    pub(super) fn set_params(&mut self, patch: &Params) -> Vec<&'static str> {
        let mut params = self.params.clone().unwrap_or_else(|| self.call.params.clone());
        params.apply(patch);
        let fields = params.changed_fields(self.params.as_ref().unwrap_or(self.call.params));
        if !fields.is_empty() {
            self.params = Some(params);
            self.params_document = OnceCell::new();
        }
        fields
    }

    /// The text that redaction works on here, and whether this rule changed it before.
    pub(super) fn judged(&self) -> (Payload, &str, bool) {
        match self.hook {
            Hook::ToolBefore => (Payload::Args, self.args.text(), self.args.changed),
            Hook::ToolAfter => {
                let slot = self.result.as_ref();
                (Payload::Result, slot.map_or("", Slot::text), slot.is_some_and(|slot| slot.changed))
            }
            Hook::MessageBefore | Hook::ParamsBefore => {
                (Payload::Message, self.message(), self.message.is_some())
            }
        }
    }

    /// Sets members to the values of their expressions, all of them computed before the first is set. Answers those
    /// that changed. `key` is the path of the action in the rule.
    pub(super) fn assign(
        &mut self,
        to: impl Fn(&mut Self) -> &mut Slot<'c>,
        members: &[(Member, Expression)],
        key: &str,
    ) -> Result<Vec<String>, InterceptError> {
        let mut values = Vec::with_capacity(members.len());
        for (member, value) in members {
            let key = || format!("{key}.{member}");
            self.prepare(value)?;
            values.push((member, value.json(self).map_err(|error| failed(&key(), &error))?));
        }
        let mut changed = Vec::new();
        for (member, value) in values {
            let slot = to(self);
            let set = slot.document()?.set(member, &value);
            let set = set.map_err(|error: EditError| {
                InterceptError::new(Reason::Error, format!("{key}.{member}: {error}"))
            })?;
            if slot.change(set)? {
                changed.push(member.to_string());
            }
        }
        Ok(changed)
    }

    /// Makes sure that the variables of `expression` can be read.
    pub(super) fn prepare(&self, expression: &Expression) -> Result<(), InterceptError> {
        let fill = |cell: &OnceCell<Document<'c>>, text: &super::Lazy<'_>| {
            if cell.get().is_none() {
                let _ = cell.set(read(text()?)?);
            }
            Ok(())
        };
        for variable in expression.variables() {
            match variable {
                Variable::Args => self.args.document().map(drop),
                Variable::Metadata => self.metadata.document().map(drop),
                Variable::Result => self.result.as_ref().map_or(Ok(()), |slot| slot.document().map(drop)),
                Variable::Params => fill(&self.params_document, &|| Ok(self.params_json())),
                Variable::Context => fill(&self.context, self.call.context),
                Variable::Findings => fill(&self.findings, self.call.findings),
                Variable::Effects => fill(&self.effects, self.call.effects),
                Variable::Hook | Variable::Tool | Variable::Message => Ok(()),
            }?;
        }
        Ok(())
    }

    /// Every parameter, empty where it is not stated; `temperature` is null then.
    fn params_json(&self) -> String {
        let params = self.params.as_ref().unwrap_or(self.call.params);
        json!({
            "provider": params.provider,
            "model": params.model,
            "think_level": params.think_level,
            "reasoning_level": params.reasoning_level,
            "temperature": params.temperature,
        })
        .to_string()
    }

    pub(super) fn into_changes(self) -> Changes {
        Changes {
            args: self.args.into_change(),
            result: self.result.and_then(Slot::into_change),
            message: self.message,
            params: self.params,
            metadata: self.metadata.into_change(),
        }
    }
}

impl Inputs for State<'_> {
    fn input(&self, variable: Variable) -> Input<'_> {
        fn json<'a>(document: Option<&'a Document<'a>>) -> Input<'a> {
            document.map_or(Input::Absent, Input::Json)
        }
        match variable {
            Variable::Hook => Input::Text(self.hook.as_str()),
            Variable::Tool => Input::Text(self.call.tool),
            Variable::Message => Input::Text(self.message()),
            Variable::Args => json(self.args.read.get()),
            Variable::Metadata => json(self.metadata.read.get()),
            Variable::Result => json(self.result.as_ref().and_then(|slot| slot.read.get())),
            Variable::Params => json(self.params_document.get()),
            Variable::Context => json(self.context.get()),
            Variable::Findings => json(self.findings.get()),
            Variable::Effects => json(self.effects.get()),
        }
    }
}

/// The error of an expression at `key` of a rule.
pub(super) fn failed(key: &str, error: &EvalError) -> InterceptError {
    let reason = match error {
        EvalError::TooCostly(_) => Reason::Limit,
        _ => Reason::Error,
    };
    InterceptError::new(reason, format!("{key}: {error}"))
}
