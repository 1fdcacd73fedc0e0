//! Runs an expression under a meter.
//!
//! The library has no limit of its own. Cost can grow in three ways only, and each goes through a function of ours that
//! the check put into the tree: iterating (`@range` pays for every turn of the loop before the first), joining with `+`
//! (`@join` pays for what comes out), and values put into lists and objects (`@copy`). Reading inputs, in comparisons
//! and patterns for instance, is paid for by the number of nodes that may do so, before the run or, inside a loop, with
//! each turn.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use cel::common::types::{CelBool, CelInt, CelList, CelMap, CelString, DYN_TYPE, INT_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{Context, Env, ExecutionError};
use regex_automata::meta::Regex;

use super::value::{Part, Size};
use super::{EvalError, Expression, Input, Inputs};
use crate::tools::json::{Document, Duplicates};

/// Nodes that one run evaluates inside of loops.
const NODES_MAX: u64 = 1_000_000;
/// Bytes that one run may read and write, by the worst estimate.
const BYTES_MAX: u64 = 2 << 30;
/// Most memory that one run fills with values of its own, in bytes, roughly.
const MADE_BYTES_MAX: u64 = 128 << 20;
/// What one value takes in a list or an object, in bytes, roughly.
const VALUE_BYTES: u64 = 64;

/// Functions that the check puts into trees. No expression can name them: `@` begins no identifier.
pub(super) const RANGE: &str = "@range";
pub(super) const JOIN: &str = "@join";
pub(super) const COPY: &str = "@copy";
pub(super) const MATCHES: &str = "@matches";

/// What is left of the allowance of a run.
#[derive(Clone, Copy)]
struct Meter {
    nodes: u64,
    bytes: u64,
    made: u64,
    /// Size of the inputs.
    inputs: u64,
    is_spent: bool,
}

// The library takes plain functions, which have no place of their own for what belongs to one run.
thread_local! {
    static METER: Cell<Meter> = const {
        Cell::new(Meter { nodes: 0, bytes: 0, made: 0, inputs: 0, is_spent: false })
    };
    static PATTERNS: RefCell<Option<Arc<[Regex]>>> = const { RefCell::new(None) };
}

/// The functions and types of expressions.
pub(super) static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    // Names of our own cannot be taken.
    let _ = env.add_overload(RANGE, RANGE, vec![DYN_TYPE, INT_TYPE, INT_TYPE], range);
    let _ = env.add_overload(JOIN, JOIN, vec![DYN_TYPE, DYN_TYPE], join);
    let _ = env.add_overload(COPY, COPY, vec![DYN_TYPE], copy);
    let _ = env.add_overload(MATCHES, MATCHES, vec![STRING_TYPE, INT_TYPE], matches);
    Arc::new(env)
});

/// Runs `expression` and reads its value.
pub(super) fn evaluate<T>(
    expression: &Expression,
    inputs: &dyn Inputs,
    read: impl FnOnce(&dyn Val) -> Result<T, EvalError>,
) -> Result<T, EvalError> {
    let run = || evaluate_unguarded(expression, inputs, read);
    let outcome = catch_unwind(AssertUnwindSafe(run));
    PATTERNS.set(None);
    outcome.unwrap_or_else(|_| Err(EvalError::Failed("the expression could not be run".to_owned())))
}

fn evaluate_unguarded<T>(
    expression: &Expression,
    inputs: &dyn Inputs,
    read: impl FnOnce(&dyn Val) -> Result<T, EvalError>,
) -> Result<T, EvalError> {
    let null = Document::parse("null", Duplicates::Keep).map_err(|e| EvalError::Failed(e.to_string()))?;
    let mut size = Size::default();
    let mut pool = Vec::new();
    let mut given = Vec::with_capacity(expression.uses.len());
    for used in &expression.uses {
        let members = used.members.as_ref();
        let part = match inputs.input(used.variable) {
            Input::Text(text) => {
                size.bytes += text.len();
                Err(text)
            }
            Input::Absent => Ok(Part { value: null.root(), members: None }),
            Input::Json(document) => Ok(Part { value: document.root(), members }),
        };
        if let Ok(part) = part {
            part.measure(&mut size)?;
            part.pool(&mut pool);
        }
        given.push((used.variable, part));
    }
    let bytes = expression.reads.saturating_mul(size.bytes as u64);
    if bytes > BYTES_MAX {
        return Err(EvalError::TooCostly("the inputs are too long for so many operations"));
    }
    let mut context = Context::with_env(ENV.clone());
    let mut pool = pool.iter();
    for (variable, part) in given {
        let value: Box<dyn Val + '_> = match part {
            Ok(part) => part.to_cel(&mut pool),
            Err(text) => Box::new(CelString::from(text)),
        };
        context.add_variable_as_val(variable.as_str(), value);
    }
    METER.set(Meter {
        nodes: NODES_MAX,
        bytes: BYTES_MAX - bytes,
        made: MADE_BYTES_MAX,
        inputs: size.bytes as u64,
        is_spent: false,
    });
    PATTERNS.set(Some(expression.patterns.clone()));
    let value = cel::Value::resolve_val(&expression.tree, &context);
    // Some operators go on after an error in one operand, so the meter has the last word.
    if METER.get().is_spent {
        return Err(EvalError::TooCostly("too many turns of a loop, or too much text made"));
    }
    match value {
        Ok(value) => read(&*value),
        Err(error) => Err(EvalError::Failed(describe(&error, expression))),
    }
}

/// Takes from the allowance; an error when it is spent.
fn pay(nodes: u64, bytes: u64, made: u64) -> Result<(), ExecutionError> {
    let mut meter = METER.get();
    let left = (!meter.is_spent)
        .then(|| {
            Some((
                meter.nodes.checked_sub(nodes)?,
                meter.bytes.checked_sub(bytes)?,
                meter.made.checked_sub(made)?,
            ))
        })
        .flatten();
    match left {
        Some(left) => (meter.nodes, meter.bytes, meter.made) = left,
        None => meter.is_spent = true,
    }
    METER.set(meter);
    if meter.is_spent { Err(ExecutionError::function_error("@meter", "spent")) } else { Ok(()) }
}

/// What a loop goes over, paid for: `nodes` and `reads` are those of one turn. Names of an object come sorted.
fn range<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let count = |arg: &CowVal<'_, '_>| arg.downcast_ref::<CelInt>().map_or(1, |n| *n.inner() as u64);
    let (nodes, reads) = match args.as_slice() {
        [_, nodes, reads] => (count(nodes), count(reads)),
        _ => return Err(ExecutionError::missing_argument_or_target()),
    };
    let over = args.swap_remove(0);
    let keys: Option<Vec<_>> = over.downcast_ref::<CelMap>().map(|map| {
        let mut keys: Vec<_> = map.inner().keys().collect();
        keys.sort();
        keys.into_iter().map(|key| key.inner().clone_as_boxed()).collect()
    });
    let turns = match (&keys, over.downcast_ref::<CelList>()) {
        (Some(keys), _) => keys.len() as u64,
        (None, Some(list)) => list.inner().len() as u64,
        // The loop itself says what is wrong.
        (None, None) => return Ok(over),
    };
    let meter = METER.get();
    let read = meter.inputs + (MADE_BYTES_MAX - meter.made);
    pay(turns.saturating_mul(nodes), turns.saturating_mul(reads).saturating_mul(read), 0)?;
    // The variable of the loop holds a copy of one item after the other.
    pay_copy(over.as_ref())?;
    Ok(match keys {
        Some(keys) => CowVal::owned(CelList::from(keys)),
        None => over,
    })
}

/// A value on its way into a list or an object, paid for.
fn copy<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = args.pop().ok_or_else(ExecutionError::missing_argument_or_target)?;
    pay_copy(value.as_ref())?;
    Ok(value)
}

/// Pays for a copy of `value`, part by part, so that counting ends when the allowance does. As deep as the value, which
/// is as deep as a document and an expression together.
fn pay_copy(value: &dyn Val) -> Result<(), ExecutionError> {
    if let Some(text) = value.downcast_ref::<CelString>() {
        // What is borrowed from the inputs is borrowed again.
        let made = if text.as_borrowed().is_some() { 0 } else { text.inner().len() as u64 };
        return pay(0, made, made + VALUE_BYTES);
    }
    pay(0, 1, VALUE_BYTES)?;
    if let Some(list) = value.downcast_ref::<CelList>() {
        list.inner().iter().try_for_each(|item| pay_copy(item.as_ref()))
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        map.inner()
            .iter()
            .try_for_each(|(key, value)| pay_copy(key.inner()).and_then(|()| pay_copy(value.as_ref())))
    } else {
        Ok(())
    }
}

/// `+`, paid for by what comes out.
fn join<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [left, right] = args.as_slice() else { return Err(ExecutionError::missing_argument_or_target()) };
    for side in [left, right] {
        match side.downcast_ref::<CelString>() {
            Some(text) => pay(1, text.inner().len() as u64, text.inner().len() as u64)?,
            None => pay_copy(side.as_ref())?,
        }
    }
    let types = || ExecutionError::no_such_overload("_+_", vec![type_of(left), type_of(right)]);
    let sum = left.as_adder().ok_or_else(types)?.add(right.as_ref()).map_err(|error| match error {
        ExecutionError::Overflow(..) => error,
        _ => types(),
    })?;
    Ok(CowVal::Owned(sum.into_owned()))
}

fn type_of(value: &CowVal<'_, '_>) -> String {
    value.get_type().name().to_owned()
}

/// Whether a text has a match of the pattern of that number.
fn matches<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let found = match args.as_slice() {
        [text, nth] => PATTERNS.with_borrow(|patterns| {
            let nth = usize::try_from(*nth.downcast_ref::<CelInt>()?.inner()).ok()?;
            Some(patterns.as_ref()?.get(nth)?.is_match(text.downcast_ref::<CelString>()?.inner()))
        }),
        _ => None,
    };
    let found = found.ok_or_else(ExecutionError::missing_argument_or_target)?;
    Ok(CowVal::owned(CelBool::from(found)))
}

/// What went wrong, without a value of the caller: names are told only when the expression holds them itself.
fn describe(error: &ExecutionError, expression: &Expression) -> String {
    match error {
        ExecutionError::NoSuchKey(name) if super::vocabulary::names(&expression.tree, name) => {
            format!("there is no `{name}`; ask with has() before reading it")
        }
        ExecutionError::NoSuchKey(_) => "there is no member of that name".to_owned(),
        // Types alone.
        ExecutionError::NoSuchOverload(overload) => overload.to_string().replace(MATCHES, "matches"),
        ExecutionError::UnexpectedType { got, want } => format!("a {got} where a {want} is needed"),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "division by zero".to_owned()
        }
        ExecutionError::Overflow(..) => "a number out of the range of 64 bits".to_owned(),
        ExecutionError::IndexOutOfBounds(_) => "a list has no item of that index".to_owned(),
        ExecutionError::DuplicateKey(_) => "an object with the same member twice".to_owned(),
        ExecutionError::FunctionError { function, .. } => format!("{function}() cannot read this value"),
        _ => "the expression failed on these values".to_owned(),
    }
}
