//! Conditions and computed values: CEL over a call, compiled and checked when they are loaded, of bounded cost.
//!
//! Expressions see `hook`, `tool`, `args`, `result`, `message`, `params`, `metadata`, `context`, `findings` and
//! `effects`, as far as their hook has them. Only what an expression names is converted: of an object whose members are
//! only ever read by name, just those members.
//!
//! A member that is not there is an error, as CEL has it, and an interceptor with an error fails the way its fail mode
//! says. Ask first: `has(args.command) && args.command.contains("x")`.
//!
//! Integers of 64 bits are exact (`int`, above that `uint`), all other numbers are `double`. The pattern of `matches` is
//! a literal and compiled once. Iterating over an object goes through its names in sorted order.
//!
//! Invariants: compiling and running never overflow the stack and never panic, whatever the text or the input; a run
//! that would cost too much ends with [`EvalError::TooCostly`]; no error holds a value of the caller.

mod check;
mod lex;
mod run;
mod value;
mod vocabulary;

use std::collections::BTreeSet;
use std::sync::Arc;

use regex_automata::meta::Regex;

use super::Hook;
use super::json::Document;

/// Longest expression, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 4 * 1024;

/// What expressions can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variable {
    /// Name of the hook, such as `tool.before`; a string.
    Hook,
    /// Normalised name of the tool; a string. Tool hooks.
    Tool,
    /// The arguments; an object. Tool hooks.
    Args,
    /// The result, of any type; null when there is none. [`Hook::ToolAfter`].
    Result,
    /// The message; a string. Hooks without a tool.
    Message,
    /// Model and parameters; an object. Hooks without a tool.
    Params,
    /// Metadata of the run; an object.
    Metadata,
    /// Who asks; an object.
    Context,
    /// What was found so far; an array of objects.
    Findings,
    /// What the call would do; an array of objects. Tool hooks.
    Effects,
}

impl Variable {
    /// Every variable.
    pub const ALL: [Self; 10] = [
        Self::Hook,
        Self::Tool,
        Self::Args,
        Self::Result,
        Self::Message,
        Self::Params,
        Self::Metadata,
        Self::Context,
        Self::Findings,
        Self::Effects,
    ];

    /// Its name in expressions.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Tool => "tool",
            Self::Args => "args",
            Self::Result => "result",
            Self::Message => "message",
            Self::Params => "params",
            Self::Metadata => "metadata",
            Self::Context => "context",
            Self::Findings => "findings",
            Self::Effects => "effects",
        }
    }

    /// Whether calls on `hook` have it.
    pub const fn is_on(self, hook: Hook) -> bool {
        match self {
            Self::Hook | Self::Metadata | Self::Context | Self::Findings => true,
            Self::Tool | Self::Args | Self::Effects => hook.is_tool(),
            Self::Result => matches!(hook, Hook::ToolAfter),
            Self::Message | Self::Params => !hook.is_tool(),
        }
    }
}

/// The value of a variable in one call.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// There is none: null.
    Absent,
    /// A string.
    Text(&'a str),
    /// JSON of any type.
    Json(&'a Document<'a>),
}

/// The variables of one call. Asked for those that an expression names, once each.
pub trait Inputs {
    /// The value of `variable`.
    fn input(&self, variable: Variable) -> Input<'_>;
}

/// Why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct ExpressionError {
    /// Line from 1.
    pub line: u32,
    /// Column from 1, in characters.
    pub column: u32,
    /// What is wrong and what to do.
    pub what: String,
}

/// Why a run of an expression has no value. Never holds a value of the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// What it names is not there, or is not of the type it needs.
    #[error("{0}")]
    Failed(String),
    /// A condition whose value is neither true nor false.
    #[error("the condition gives {0}, not true or false")]
    NotBool(&'static str),
    /// The value has no form in JSON.
    #[error("the value {0}")]
    NotJson(&'static str),
    /// Going on would cost too much.
    #[error("too costly: {0}")]
    TooCostly(&'static str),
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Expression {
    /// The tree, rewritten so that what can cost much is metered.
    tree: cel::parser::Expression,
    uses: Vec<Use>,
    patterns: Arc<[Regex]>,
    /// Nodes that may read all of an input, the worst ones several times over.
    reads: u64,
}

/// What an expression reads of one variable.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    variable: Variable,
    /// Members read by name; `None` when all may be read.
    members: Option<BTreeSet<String>>,
}

impl Expression {
    /// Compiles an expression of any type for calls on `hook`.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place in the text.
    pub fn compile(text: &str, hook: Hook) -> Result<Self, ExpressionError> {
        check::compile(text, hook).map(|(expression, _)| expression)
    }

    /// Compiles a condition: an expression that is not certain to be something else than true or false.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place in the text.
    pub fn condition(text: &str, hook: Hook) -> Result<Self, ExpressionError> {
        let (expression, kind) = check::compile(text, hook)?;
        if kind.may_be(vocabulary::Kind::Bool) {
            return Ok(expression);
        }
        let what = format!("a condition must give true or false, this gives {}", kind.with_article());
        Err(ExpressionError { line: 1, column: 1, what })
    }

    /// The variables that it names, in the order of [`Variable::ALL`].
    pub fn variables(&self) -> impl Iterator<Item = Variable> {
        self.uses.iter().map(|used| used.variable)
    }

    /// Whether the condition holds.
    ///
    /// # Errors
    /// See [`EvalError`]: the condition could not be judged.
    pub fn holds(&self, inputs: &dyn Inputs) -> Result<bool, EvalError> {
        run::evaluate(self, inputs, value::to_bool)
    }

    /// Its value as JSON text; members of objects are sorted by name.
    ///
    /// # Errors
    /// See [`EvalError`].
    pub fn json(&self, inputs: &dyn Inputs) -> Result<String, EvalError> {
        run::evaluate(self, inputs, value::to_json)
    }
}

#[cfg(test)]
mod tests;
