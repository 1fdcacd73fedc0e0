//! Interceptors without code: a condition and what to do when it holds, compiled from what somebody wrote.
//!
//! [`CompiledRule::compile`] checks all that can be known before a call: that each action fits its hook, that patches
//! are JSON, that expressions compile. [`CompiledRule::apply`] is a pure function from a call to a [`Step`]; what costs
//! time, such as findings and effects, it asks for only when an expression names it.
//!
//! Actions run in order and each sees what those before it made of the call. A block ends the list. An action that
//! fails makes the rule fail as a whole, and nothing of it is taken over.

mod apply;
mod state;

use super::Hook;
use super::condition::Expression;
use super::json::{Document, Member};
use super::redact::{Payload, Redacted};
use super::step::{InterceptError, Step};
use crate::decision::Category;
use crate::detect::redact::Placeholders;
use crate::policy::{ActionSpec, Params, RuleSpec, SpecProblem};

/// Most actions of one rule.
pub const ACTIONS_MAX: usize = 32;
/// Most members that one action sets.
pub const MEMBERS_MAX: usize = 64;
/// Longest text of an action, in bytes.
pub const TEXT_BYTES_MAX: usize = 16 * 1024;

/// A rule, ready to run.
#[derive(Clone, Debug)]
pub struct CompiledRule {
    hook: Hook,
    /// `None` means always.
    when: Option<Expression>,
    actions: Vec<Action>,
}

/// One thing to do.
#[derive(Clone, Debug)]
enum Action {
    Block(String),
    Ask(String),
    MergeArgs(Document<'static>),
    SetArgs(Vec<(Member, Expression)>),
    Redact(Vec<Category>),
    StripAnsi,
    SetMetadata(Vec<(Member, Expression)>),
    SetParams(Params),
    Append(String),
    Audit(String),
}

/// Redacts one text of a call: which one, the text, categories (empty means `secrets` and `pii`), and the placeholders
/// given out so far.
pub type Redact<'c> =
    dyn Fn(Payload, &str, &[Category], &mut Placeholders) -> Result<Redacted, InterceptError> + 'c;

/// JSON text that is made when somebody asks for it.
pub type Lazy<'c> = dyn Fn() -> Result<String, InterceptError> + 'c;

/// A call as rules see it.
#[derive(Clone, Copy)]
pub struct RuleCall<'c> {
    /// Normalised name of the tool; empty on hooks without a tool.
    pub tool: &'c str,
    /// The arguments, a JSON object as text.
    pub args: &'c str,
    /// The result, JSON text; empty when there is none.
    pub result: &'c str,
    /// The message.
    pub message: &'c str,
    /// Model and parameters.
    pub params: &'c Params,
    /// Metadata, a JSON object as text.
    pub metadata: &'c str,
    /// Who asks, a JSON object.
    pub context: &'c Lazy<'c>,
    /// What was found, an array of objects.
    pub findings: &'c Lazy<'c>,
    /// What the call would do, an array of objects.
    pub effects: &'c Lazy<'c>,
    /// Redacts a text.
    pub redact: &'c Redact<'c>,
}

impl CompiledRule {
    /// Compiles a rule for calls on `hook`.
    ///
    /// # Errors
    /// Everything that is wrong with it, by the keys of a policy file.
    pub fn compile(spec: &RuleSpec, hook: Hook) -> Result<Self, Vec<SpecProblem>> {
        let mut problems = Vec::new();
        let when = if spec.when.trim().is_empty() {
            None
        } else {
            let compiled = Expression::condition(&spec.when, hook);
            compiled.map_err(|error| problems.push(SpecProblem::new("when", error.to_string()))).ok()
        };
        match spec.actions.len() {
            0 => problems.push(SpecProblem::new("do", "names no action; name at least one")),
            n if n > ACTIONS_MAX => {
                problems.push(SpecProblem::new("do", format!("names {n} actions; at most {ACTIONS_MAX}")));
            }
            _ => {}
        }
        let actions = spec.actions.iter().take(ACTIONS_MAX).enumerate();
        let actions: Vec<Action> = actions
            .filter_map(|(nth, action)| Compiler { hook, nth, problems: &mut problems }.action(action))
            .collect();
        if problems.is_empty() { Ok(Self { hook, when, actions }) } else { Err(problems) }
    }

    /// Judges one call.
    ///
    /// # Errors
    /// The condition or an action failed. Holds nothing of the caller's text.
    pub fn apply(&self, call: &RuleCall<'_>) -> Result<Step, InterceptError> {
        apply::apply(self, call)
    }
}

/// Compiles one action.
struct Compiler<'p> {
    hook: Hook,
    nth: usize,
    problems: &'p mut Vec<SpecProblem>,
}

impl Compiler<'_> {
    fn action(&mut self, spec: &ActionSpec) -> Option<Action> {
        let valid = hooks_of(spec);
        if !valid.contains(&self.hook) {
            let valid: Vec<&str> = valid.iter().map(|hook| hook.as_str()).collect();
            let what = format!("cannot be done on {}; on {}", self.hook, valid.join(", "));
            return self.problem(spec.key(), what);
        }
        match spec {
            ActionSpec::Block(text) => self.text(spec, text).map(Action::Block),
            ActionSpec::Ask(text) => self.text(spec, text).map(Action::Ask),
            ActionSpec::Append(text) => self.text(spec, text).map(Action::Append),
            ActionSpec::Audit(text) => self.text(spec, text).map(Action::Audit),
            ActionSpec::StripAnsi => Some(Action::StripAnsi),
            ActionSpec::MergeArgs(patch) => match Document::parse_object(patch.clone()) {
                Ok(patch) => Some(Action::MergeArgs(patch)),
                Err(error) => self.problem(spec.key(), error.to_string()),
            },
            ActionSpec::SetArgs(members) => self.members(spec, members).map(Action::SetArgs),
            ActionSpec::SetMetadata(members) => self.members(spec, members).map(Action::SetMetadata),
            ActionSpec::Redact(categories) => self.categories(spec, categories).map(Action::Redact),
            ActionSpec::SetParams(params) if params.is_empty() => {
                self.problem(spec.key(), "sets nothing; state at least one parameter".to_owned())
            }
            ActionSpec::SetParams(params) => match params.check() {
                Ok(()) => Some(Action::SetParams(params.clone())),
                Err((field, what)) => self.problem(&format!("{}.{field}", spec.key()), what),
            },
        }
    }

    fn problem<T>(&mut self, key: &str, what: String) -> Option<T> {
        self.problems.push(SpecProblem::new(format!("do[{}].{key}", self.nth), what));
        None
    }

    fn text(&mut self, spec: &ActionSpec, text: &str) -> Option<String> {
        if text.trim().is_empty() {
            return self.problem(spec.key(), "is empty; write a text".to_owned());
        }
        if text.len() > TEXT_BYTES_MAX {
            return self.problem(spec.key(), format!("is longer than {TEXT_BYTES_MAX} bytes"));
        }
        Some(text.to_owned())
    }

    fn members(
        &mut self,
        spec: &ActionSpec,
        members: &std::collections::BTreeMap<String, String>,
    ) -> Option<Vec<(Member, Expression)>> {
        if members.is_empty() || members.len() > MEMBERS_MAX {
            let what = format!("sets {} members; between 1 and {MEMBERS_MAX}", members.len());
            return self.problem(spec.key(), what);
        }
        let mut compiled = Vec::with_capacity(members.len());
        for (path, text) in members {
            let key = format!("{}.{path}", spec.key());
            let member = match Member::parse(path) {
                Ok(member) => Some(member),
                Err(what) => self.problem(&key, what),
            };
            let value = match Expression::compile(text, self.hook) {
                Ok(value) => Some(value),
                Err(error) => self.problem(&key, error.to_string()),
            };
            compiled.extend(member.zip(value));
        }
        (compiled.len() == members.len()).then_some(compiled)
    }

    fn categories(&mut self, spec: &ActionSpec, names: &[String]) -> Option<Vec<Category>> {
        let is_name = |name: &&String| {
            let is_part = |part: &str| {
                !part.is_empty()
                    && part
                        .bytes()
                        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b))
            };
            !name.split('.').all(is_part)
        };
        if let Some(nth) = names.iter().position(|name| is_name(&name)) {
            let what = "is no category; one looks like `secrets` or `pii.email`".to_owned();
            return self.problem(&format!("{}[{nth}]", spec.key()), what);
        }
        Some(names.iter().map(|name| Category::new(name)).collect())
    }
}

/// Where an action makes sense.
fn hooks_of(action: &ActionSpec) -> &'static [Hook] {
    match action {
        ActionSpec::Block(_) | ActionSpec::Ask(_) | ActionSpec::SetMetadata(_) | ActionSpec::Audit(_) => {
            &Hook::ALL
        }
        ActionSpec::MergeArgs(_) | ActionSpec::SetArgs(_) => &[Hook::ToolBefore],
        // Before the model is called, the message is there to be read only.
        ActionSpec::Redact(_) => &[Hook::MessageBefore, Hook::ToolBefore, Hook::ToolAfter],
        ActionSpec::StripAnsi | ActionSpec::Append(_) => &[Hook::MessageBefore, Hook::ToolAfter],
        ActionSpec::SetParams(_) => &[Hook::ParamsBefore],
    }
}

#[cfg(test)]
mod tests;
