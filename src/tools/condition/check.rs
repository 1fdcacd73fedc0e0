//! Compiles an expression: parsed, checked for names, functions and types, and rewritten so that a run can be metered.

use std::collections::{BTreeMap, BTreeSet};

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SourceInfo, operators,
};
use regex_automata::meta::Regex;

use super::run::{COPY, ENV, JOIN, MATCHES, RANGE};
use super::vocabulary::{FUNCTIONS, Kind, MACROS, MEMBERS_ONLY, TYPES, counted, macro_usage};
use super::{Expression, ExpressionError, Use, Variable, lex};
use crate::tools::Hook;

/// Stack of the thread that compiles; only what is used of it is ever allocated.
const STACK_BYTES: usize = 32 << 20;
/// Deepest tree. A run is recursive too, on the stack of whoever calls.
const DEPTH_MAX: usize = 24;
/// Loops inside each other.
const LOOPS_MAX: usize = 2;
/// Largest automaton of one pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

pub(super) fn compile(text: &str, hook: Hook) -> Result<(Expression, Kind), ExpressionError> {
    lex::check(text)?;
    // The parser of the library is recursive, and so is dropping what it made. What it needs at most for what passed
    // the look before is known, and whoever calls may have less; so it gets a stack of its own. A panic ends there too.
    let compiled = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, || compile_here(text, hook)).ok().and_then(|thread| thread.join().ok())
    });
    compiled.unwrap_or_else(|| Err(lex::error_at(text, 0, "this cannot be read as an expression".to_owned())))
}

fn compile_here(text: &str, hook: Hook) -> Result<(Expression, Kind), ExpressionError> {
    let (mut tree, source) =
        ENV.parser().parse_with_source_info(text).map_err(|errors| first(&errors, text))?;
    let mut check = Check {
        text,
        source: &source,
        hook,
        locals: Vec::new(),
        uses: BTreeMap::new(),
        patterns: Vec::new(),
        depth: 0,
        loops: 0,
        nodes: 0,
        reads: 0,
    };
    let kind = check.node(&mut tree)?;
    let uses = check.uses.into_iter().map(|(variable, members)| Use { variable, members }).collect();
    let expression = Expression { tree, uses, patterns: check.patterns.into(), reads: check.reads };
    Ok((expression, kind))
}

/// The first error of the parser, in one line.
fn first(errors: &cel::ParseErrors, text: &str) -> ExpressionError {
    let Some(error) = errors.errors.first() else {
        return lex::error_at(text, 0, "this cannot be read as an expression".to_owned());
    };
    let line = u32::try_from(error.pos.0).unwrap_or(1).max(1);
    let column = u32::try_from(error.pos.1).unwrap_or(1).max(1);
    let what: String = error.msg.lines().next().unwrap_or_default().chars().take(200).collect();
    ExpressionError { line, column, what: format!("not a CEL expression: {what}") }
}

struct Check<'c> {
    text: &'c str,
    source: &'c SourceInfo,
    hook: Hook,
    /// Variables of the loops around, innermost last.
    locals: Vec<(String, Kind)>,
    uses: BTreeMap<Variable, Option<BTreeSet<String>>>,
    patterns: Vec<Regex>,
    depth: usize,
    loops: usize,
    /// Nodes seen so far.
    nodes: u64,
    /// Nodes seen so far that may read all of an input.
    reads: u64,
}

type Checked = Result<Kind, ExpressionError>;

impl Check<'_> {
    fn error(&self, id: u64, what: impl Into<String>) -> ExpressionError {
        let at = self.source.offset_for(id).map_or(0, |(start, _)| start as usize);
        lex::error_at(self.text, at, what.into())
    }

    fn node(&mut self, node: &mut IdedExpr) -> Checked {
        self.depth += 1;
        self.nodes += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(node.id, format!("nested deeper than {DEPTH_MAX} levels; split it up")));
        }
        let kind = self.inner(node)?;
        self.depth -= 1;
        Ok(kind)
    }

    fn inner(&mut self, node: &mut IdedExpr) -> Checked {
        let id = node.id;
        match &mut node.expr {
            Expr::Literal(literal) => Ok(match literal {
                LiteralValue::Boolean(_) => Kind::Bool,
                LiteralValue::Int(_) | LiteralValue::UInt(_) | LiteralValue::Double(_) => Kind::Number,
                LiteralValue::String(_) => Kind::String,
                LiteralValue::Null => Kind::Null,
                LiteralValue::Bytes(_) => return Err(self.error(id, "bytes are not supported; use a string")),
            }),
            Expr::Ident(name) => {
                let name = name.clone();
                self.name(id, &name, None)
            }
            Expr::Select(select) => {
                let member = select.field.clone();
                if let Expr::Ident(name) = &select.operand.expr
                    && let Some(variable) = self.variable(name)
                {
                    let name = name.clone();
                    self.nodes += 1;
                    self.can_select(id, Kind::of(variable), &member)?;
                    self.name(select.operand.id, &name, Some(&member))?;
                } else {
                    let of = self.node(&mut select.operand)?;
                    self.can_select(id, of, &member)?;
                }
                Ok(if select.test { Kind::Bool } else { Kind::Any })
            }
            Expr::List(list) => {
                list.elements.iter_mut().try_for_each(|item| self.part(item).map(drop))?;
                Ok(Kind::List)
            }
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    let EntryExpr::MapEntry(entry) = &mut entry.expr else {
                        return Err(self.error(id, "messages are not supported; use an object"));
                    };
                    let id = entry.key.id;
                    if !self.part(&mut entry.key)?.may_be(Kind::String) {
                        return Err(self.error(id, "the name of a member must be a string"));
                    }
                    self.part(&mut entry.value)?;
                }
                Ok(Kind::Map)
            }
            Expr::Call(_) => self.call(node),
            Expr::Comprehension(_) => self.comprehension(node),
            Expr::Struct(_) => Err(self.error(id, "messages are not supported; use an object")),
            Expr::Unspecified => Err(self.error(id, "this cannot be read as an expression")),
        }
    }

    /// A node whose value goes into a list or an object: a copy, which is paid for.
    fn part(&mut self, node: &mut IdedExpr) -> Checked {
        let kind = self.node(node)?;
        if !matches!(kind, Kind::Bool | Kind::Number | Kind::Null) {
            let (id, value) = (node.id, std::mem::take(node));
            let call = CallExpr { func_name: COPY.to_owned(), target: None, args: vec![value] };
            *node = IdedExpr { id, expr: Expr::Call(call) };
            self.nodes += 1;
        }
        Ok(kind)
    }

    /// The variable of the call that `name` means here.
    fn variable(&self, name: &str) -> Option<Variable> {
        Variable::ALL.into_iter().find(|variable| variable.as_str() == name)
    }

    /// A name: a loop variable, a variable of the call of which `member` (or all) is read, or a type.
    fn name(&mut self, id: u64, name: &str, member: Option<&str>) -> Checked {
        if let Some((_, kind)) = self.locals.iter().rev().find(|(local, _)| local == name) {
            return Ok(*kind);
        }
        let Some(variable) = self.variable(name) else {
            if TYPES.contains(&name) {
                return Ok(Kind::Type);
            }
            let known: Vec<&str> =
                Variable::ALL.iter().filter(|v| v.is_on(self.hook)).map(|v| v.as_str()).collect();
            let what = format!("unknown name `{name}`; known here: {}", known.join(", "));
            return Err(self.error(id, what));
        };
        if !variable.is_on(self.hook) {
            return Err(self.error(id, format!("there is no `{name}` on {}", self.hook)));
        }
        match (self.uses.entry(variable).or_insert_with(|| Some(BTreeSet::new())), member) {
            (Some(members), Some(member)) => {
                members.insert(member.to_owned());
            }
            (all, None) => *all = None,
            (None, Some(_)) => {}
        }
        Ok(Kind::of(variable))
    }

    fn can_select(&self, id: u64, of: Kind, member: &str) -> Result<(), ExpressionError> {
        match of {
            Kind::Map | Kind::Any => Ok(()),
            other => Err(self.error(id, format!("`.{member}`: {} has no members", other.with_article()))),
        }
    }

    fn call(&mut self, node: &mut IdedExpr) -> Checked {
        let id = node.id;
        let Expr::Call(call) = &mut node.expr else { return Ok(Kind::Any) };
        let name = call.func_name.clone();
        if call.target.is_none()
            && let Some(kind) = self.operator(id, &name, call)?
        {
            return Ok(kind);
        }
        let is_member = call.target.is_some();
        let known = FUNCTIONS.iter().find(|(known, ..)| *known == name);
        let Some((_, count, kind)) = known.filter(|_| is_member || !MEMBERS_ONLY.contains(&&*name)) else {
            if MACROS.contains(&&*name) {
                return Err(self.error(id, format!("`{name}` is written like {}", macro_usage(&name))));
            }
            if known.is_some() {
                return Err(self.error(id, format!("`{name}` is written like `text.{name}(…)`")));
            }
            let known: Vec<&str> = FUNCTIONS.iter().map(|(name, ..)| *name).chain(MACROS).collect();
            let what = format!("unknown function `{}`; known: {}", shorten(&name), known.join(", "));
            return Err(self.error(id, what));
        };
        if usize::from(is_member) + call.args.len() != *count {
            return Err(
                self.error(id, format!("`{name}` takes {}", counted(*count - usize::from(is_member))))
            );
        }
        let is_short = matches!(&*name, "startsWith" | "endsWith") && call.args.iter().any(is_literal);
        self.reads += match &*name {
            "matches" => 8,
            _ if is_short => 0,
            _ => 1,
        };
        let mut kinds = Vec::new();
        for value in call.target.as_deref_mut().into_iter().chain(&mut call.args) {
            kinds.push((value.id, self.node(value)?));
        }
        if matches!(&*name, "contains" | "startsWith" | "endsWith" | "matches")
            && let Some((id, kind)) = kinds.iter().find(|(_, kind)| !kind.may_be(Kind::String))
        {
            return Err(self.error(*id, format!("`{name}` needs strings, this is {}", kind.with_article())));
        }
        if name == "matches" {
            self.pattern(call)?;
        }
        Ok(*kind)
    }

    /// `text.matches("pattern")`: the pattern is compiled now, and the call names it by its number.
    fn pattern(&mut self, call: &mut CallExpr) -> Result<(), ExpressionError> {
        let Some(pattern) = call.args.pop() else { return Ok(()) };
        let Expr::Literal(LiteralValue::String(text)) = &pattern.expr else {
            return Err(self.error(pattern.id, "the pattern of `matches` must be a string literal"));
        };
        let config = Regex::config().nfa_size_limit(Some(PATTERN_BYTES_MAX));
        let regex = Regex::builder().configure(config).build(text.inner()).map_err(|error| {
            let what = match error.syntax_error() {
                Some(error) => last_line(&error.to_string()),
                None => "it is too large".to_owned(),
            };
            self.error(pattern.id, format!("not a valid pattern: {what}"))
        })?;
        let nth = int(pattern.id, self.patterns.len() as u64);
        self.patterns.push(regex);
        // Called as a function, both values stand behind it.
        call.args.extend(call.target.take().map(|target| *target));
        call.args.push(nth);
        call.func_name = MATCHES.to_owned();
        Ok(())
    }

    /// The type of an operator's value; `None` when `name` is no operator.
    fn operator(
        &mut self,
        id: u64,
        name: &str,
        call: &mut CallExpr,
    ) -> Result<Option<Kind>, ExpressionError> {
        let sign = match name {
            operators::LOGICAL_AND => "&&",
            operators::LOGICAL_OR => "||",
            operators::LOGICAL_NOT => "!",
            operators::CONDITIONAL => "?:",
            operators::NEGATE => "-",
            operators::ADD => "+",
            operators::SUBSTRACT => "-",
            operators::MULTIPLY => "*",
            operators::DIVIDE => "/",
            operators::MODULO => "%",
            operators::EQUALS => "==",
            operators::NOT_EQUALS => "!=",
            operators::LESS => "<",
            operators::LESS_EQUALS => "<=",
            operators::GREATER => ">",
            operators::GREATER_EQUALS => ">=",
            operators::IN => "in",
            operators::INDEX => "[]",
            operators::OPT_INDEX | operators::OPT_SELECT => {
                return Err(self.error(id, "optional values are not supported; use has()"));
            }
            operators::NOT_STRICTLY_FALSE => "",
            _ => return Ok(None),
        };
        // A member read by its name in brackets is read by name all the same.
        if let (operators::INDEX, [of, index]) = (name, call.args.as_slice())
            && let (Expr::Ident(variable), Expr::Literal(LiteralValue::String(member))) =
                (&of.expr, &index.expr)
            && self.variable(variable).is_some_and(|v| Kind::of(v) == Kind::Map)
        {
            let (of, variable, member) = (of.id, variable.clone(), member.inner().to_owned());
            self.nodes += 2;
            self.name(of, &variable, Some(&member))?;
            return Ok(Some(Kind::Any));
        }
        // Comparing with something written in the expression reads no more than that.
        let reads = u64::from(!call.args.iter().any(is_literal));
        let mut kinds = Vec::with_capacity(call.args.len());
        for value in &mut call.args {
            kinds.push((value.id, self.node(value)?));
        }
        let need = |check: &Self, kinds: &[(u64, Kind)], wanted: Kind| match kinds
            .iter()
            .find(|(_, kind)| !kind.may_be(wanted))
        {
            None => Ok(()),
            Some((id, kind)) => Err(check.error(
                *id,
                format!("`{sign}` needs {}, this is {}", wanted.with_article(), kind.with_article()),
            )),
        };
        Ok(Some(match name {
            operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT => {
                need(self, &kinds, Kind::Bool)?;
                Kind::Bool
            }
            operators::CONDITIONAL => {
                need(self, &kinds[..1.min(kinds.len())], Kind::Bool)?;
                match kinds.as_slice() {
                    [_, (_, yes), (_, no)] if yes == no => *yes,
                    _ => Kind::Any,
                }
            }
            operators::EQUALS | operators::NOT_EQUALS => {
                self.reads += reads;
                if let [(_, left), (right_id, right)] = kinds.as_slice()
                    && ![*left, *right].iter().any(|kind| matches!(kind, Kind::Any | Kind::Null))
                    && left != right
                {
                    let what =
                        format!("`{sign}`: {} never equals {}", left.with_article(), right.with_article());
                    return Err(self.error(*right_id, what));
                }
                Kind::Bool
            }
            operators::IN => {
                self.reads += reads;
                if let [_, (id, kind)] = kinds.as_slice()
                    && !matches!(kind, Kind::List | Kind::Map | Kind::Any)
                {
                    let what = format!("`in` needs a list or an object, this is {}", kind.with_article());
                    return Err(self.error(*id, what));
                }
                Kind::Bool
            }
            operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS => {
                self.reads += reads;
                Kind::Bool
            }
            operators::ADD => {
                call.func_name = JOIN.to_owned();
                match kinds.iter().find(|(_, kind)| *kind != Kind::Any) {
                    Some((_, kind @ (Kind::Number | Kind::String | Kind::List))) => {
                        need(self, &kinds, *kind)?;
                        *kind
                    }
                    Some((id, kind)) => {
                        return Err(self.error(*id, format!("`+` cannot take {}", kind.with_article())));
                    }
                    None => Kind::Any,
                }
            }
            operators::NEGATE
            | operators::SUBSTRACT
            | operators::MULTIPLY
            | operators::DIVIDE
            | operators::MODULO => {
                need(self, &kinds, Kind::Number)?;
                Kind::Number
            }
            operators::NOT_STRICTLY_FALSE => Kind::Bool,
            _ => {
                if let Some((id, kind)) = kinds.first()
                    && !matches!(kind, Kind::List | Kind::Map | Kind::Any)
                {
                    return Err(self.error(*id, format!("`[]`: {} has no items", kind.with_article())));
                }
                Kind::Any
            }
        }))
    }

    /// A loop as the macros write it. What it goes over is wrapped in a call that pays for its turns.
    fn comprehension(&mut self, node: &mut IdedExpr) -> Checked {
        let id = node.id;
        let Expr::Comprehension(comprehension) = &mut node.expr else { return Ok(Kind::Any) };
        let ComprehensionExpr {
            iter_range,
            iter_var,
            iter_var2,
            accu_var,
            accu_init,
            loop_cond,
            loop_step,
            result,
        } = &mut **comprehension;
        if iter_var2.is_some() {
            return Err(self.error(id, "loops have one variable"));
        }
        if self.loops == LOOPS_MAX {
            return Err(self.error(id, format!("more than {LOOPS_MAX} loops inside each other")));
        }
        if self.variable(iter_var).is_some() || TYPES.contains(&iter_var.as_str()) {
            return Err(
                self.error(id, format!("`{iter_var}` means something else; rename the loop variable"))
            );
        }
        let over = self.node(iter_range)?;
        if !matches!(over, Kind::List | Kind::Map | Kind::Any) {
            let what = format!("loops go over a list or an object, this is {}", over.with_article());
            return Err(self.error(iter_range.id, what));
        }
        let accu = self.node(accu_init)?;
        let (nodes, reads) = (self.nodes, self.reads);
        self.loops += 1;
        let item = if over == Kind::Map { Kind::String } else { Kind::Any };
        self.locals.push((iter_var.clone(), item));
        self.locals.push((accu_var.clone(), accu));
        self.node(loop_cond)?;
        self.step(loop_step)?;
        self.locals.remove(self.locals.len() - 2);
        let kind = self.node(result)?;
        self.locals.pop();
        self.loops -= 1;
        let turn = [self.nodes - nodes, self.reads - reads];
        // What stands in a loop is paid for by its turns.
        self.reads = reads;
        let over = std::mem::take(iter_range);
        let mut args = vec![over];
        args.extend(turn.map(|count| int(id, count)));
        iter_range.id = id;
        iter_range.expr = Expr::Call(CallExpr { func_name: RANGE.to_owned(), target: None, args });
        Ok(kind)
    }

    /// The step of a loop. The `+` that the macros write themselves stays, as the library makes it cheap.
    fn step(&mut self, step: &mut IdedExpr) -> Result<(), ExpressionError> {
        let is_own = |call: &CallExpr| {
            call.func_name == operators::ADD
                && matches!(call.args.first().map(|arg| &arg.expr), Some(Expr::Ident(name)) if name.starts_with('@'))
        };
        match &mut step.expr {
            Expr::Call(call) if is_own(call) => {
                self.nodes += 1;
                call.args.iter_mut().try_for_each(|arg| self.node(arg).map(drop))
            }
            Expr::Call(call) if call.func_name == operators::CONDITIONAL && call.args.len() == 3 => {
                self.nodes += 1;
                let guard = self.node(&mut call.args[0])?;
                if !guard.may_be(Kind::Bool) {
                    let what = format!("a loop needs a condition, this is {}", guard.with_article());
                    return Err(self.error(call.args[0].id, what));
                }
                self.step(&mut call.args[1])?;
                self.node(&mut call.args[2]).map(drop)
            }
            _ => self.node(step).map(drop),
        }
    }
}

/// Whether the node is a constant, or a list of nothing but constants.
fn is_literal(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Literal(_) => true,
        Expr::List(list) => list.elements.iter().all(|item| matches!(item.expr, Expr::Literal(_))),
        _ => false,
    }
}

fn int(id: u64, value: u64) -> IdedExpr {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    IdedExpr { id, expr: Expr::Literal(LiteralValue::Int(value.into())) }
}

fn shorten(name: &str) -> String {
    name.chars().take(60).collect()
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
