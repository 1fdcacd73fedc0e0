//! Python brought to the common tree: statements.
//!
//! A file with syntax errors still gives the statements around them.

use std::rc::Rc;

use ruff_python_ast::helpers::any_over_expr;
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_python_parser::{Mode, ParseOptions, parse_expression, parse_unchecked};
use ruff_text_size::Ranged;

use super::tree::{Class, Function, Kind, Node, Pattern, Source, Statement};

/// What came of a text.
pub(super) struct Parsed {
    /// The statements that could be parsed.
    pub body: Vec<Statement>,
    /// Whether all of it is Python 3.
    pub is_whole: bool,
    /// Whether something was left out for its depth.
    pub is_cut: bool,
    /// The text that was read in place of the one that was given.
    pub rewritten: Option<String>,
}

/// Parses a module, if need be after its statements of Python 2 were rewritten.
pub(super) fn parse(text: &str) -> Parsed {
    let parsed = parse_unchecked(text, ParseOptions::from(Mode::Module));
    let errors = parsed.errors().len();
    if errors > 0
        && let Some(rewritten) = super::python2::rewritten(text)
    {
        let parsed = parse_unchecked(&rewritten, ParseOptions::from(Mode::Module));
        if parsed.errors().len() < errors {
            let lowered = lowered(parsed, &rewritten);
            return Parsed { rewritten: Some(rewritten), ..lowered };
        }
    }
    lowered(parsed, text)
}

fn lowered(parsed: ruff_python_parser::Parsed<ast::Mod>, text: &str) -> Parsed {
    let is_whole = parsed.errors().is_empty();
    let ast::Mod::Module(module) = parsed.into_syntax() else {
        return Parsed { body: Vec::new(), is_whole: false, is_cut: false, rewritten: None };
    };
    let mut lower = Lower { depth: 0, is_cut: false, text: Rc::from(text) };
    let mut body = Vec::new();
    body.extend(lower.table_of_types(&module.body));
    // Each statement is let go as soon as it is read: two whole trees are never in memory.
    lower
        .deeper(|lower| module.body.into_iter().for_each(|statement| lower.statement(&statement, &mut body)));
    Parsed { body, is_whole, is_cut: lower.is_cut, rewritten: None }
}

/// The state of the way down.
pub(super) struct Lower {
    pub depth: usize,
    pub is_cut: bool,
    /// The text that is read.
    pub text: Rc<str>,
}

/// Levels of the common tree.
pub(super) const DEPTH_MAX: usize = 600;

impl Lower {
    /// Where a part stands in the text.
    pub fn source(&self, start: u32, end: u32) -> Source {
        Source { text: self.text.clone(), range: start as usize..end as usize }
    }

    /// Goes one level down; `None` when that is too deep.
    pub fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.depth >= DEPTH_MAX {
            self.is_cut = true;
            return None;
        }
        self.depth += 1;
        let out = run(self);
        self.depth -= 1;
        Some(out)
    }

    fn statements(&mut self, body: &[Stmt]) -> Vec<Statement> {
        let mut out = Vec::with_capacity(body.len());
        self.deeper(|lower| body.iter().for_each(|statement| lower.statement(statement, &mut out)));
        out
    }

    fn block(&mut self, body: &[Stmt], out: &mut Vec<Statement>) {
        let body = self.statements(body);
        out.push(Statement::Block(body, false));
    }

    fn statement(&mut self, statement: &Stmt, out: &mut Vec<Statement>) {
        match statement {
            Stmt::FunctionDef(def) => self.function(def, out),
            Stmt::ClassDef(def) => self.class(def, out),
            Stmt::Return(given) => {
                let value = given.value.as_deref().map(|value| self.expression(value));
                out.push(Statement::Return(value));
            }
            Stmt::Assign(assign) => {
                let value = self.expression(&assign.value);
                let mut patterns: Vec<_> = assign.targets.iter().map(|t| self.pattern(t)).collect();
                let Some(last) = patterns.pop() else { return };
                let at = value.at;
                let value = patterns.into_iter().fold(value, |value, pattern| {
                    Node::new(Kind::Assign(Box::new(pattern), Box::new(value)), at)
                });
                out.push(Statement::Assign(last, value));
            }
            Stmt::AugAssign(assign) => {
                let value = self.expression(&assign.value);
                let target = self.pattern(&assign.target);
                match assign.op {
                    ast::Operator::Add => out.push(Statement::Append(target, value)),
                    _ => {
                        let old = self.expression(&assign.target);
                        let at = value.at;
                        let value = Node::new(Kind::Unknown(vec![old, value]), at);
                        out.push(Statement::Assign(target, value));
                    }
                }
            }
            Stmt::AnnAssign(assign) => {
                self.annotation(&assign.annotation, out);
                let target = self.pattern(&assign.target);
                if let Some(value) = &assign.value {
                    let value = self.expression(value);
                    out.push(Statement::Assign(target, value));
                }
            }
            Stmt::For(looped) => {
                let iterable = self.expression(&looped.iter);
                let target = self.pattern(&looped.target);
                let mut body = self.statements(&looped.body);
                body.extend(self.statements(&looped.orelse));
                out.push(Statement::Loop { target, iterable: Some(iterable), body });
            }
            Stmt::While(looped) => {
                out.push(Statement::Expression(self.expression(&looped.test)));
                let mut body = self.statements(&looped.body);
                body.extend(self.statements(&looped.orelse));
                out.push(Statement::Loop { target: Pattern::Nothing, iterable: None, body });
            }
            Stmt::If(branch) => {
                out.push(Statement::Expression(self.expression(&branch.test)));
                self.block(&branch.body, out);
                for clause in &branch.elif_else_clauses {
                    if let Some(test) = &clause.test {
                        out.push(Statement::Expression(self.expression(test)));
                    }
                    self.block(&clause.body, out);
                }
            }
            Stmt::With(with) => {
                for item in &with.items {
                    let value = self.expression(&item.context_expr);
                    let at = value.at;
                    // What `with` binds is what entering gives, which is the thing itself as a rule.
                    out.push(match &item.optional_vars {
                        Some(target) => {
                            let value = Node::new(Kind::Entered(Box::new(value)), at);
                            Statement::Assign(self.pattern(target), value)
                        }
                        None => Statement::Expression(Node::new(Kind::Await(Box::new(value)), at)),
                    });
                }
                self.block(&with.body, out);
            }
            Stmt::Match(matched) => {
                out.push(Statement::Expression(self.expression(&matched.subject)));
                for case in &matched.cases {
                    // The subject is looked at again, which is free of calls only where it is a name or a constant.
                    let pattern = self.match_pattern(&case.pattern);
                    let mut body = vec![Statement::Assign(pattern, self.expression(&matched.subject))];
                    body.extend(case.guard.iter().map(|guard| Statement::Expression(self.expression(guard))));
                    body.extend(self.statements(&case.body));
                    out.push(Statement::Block(body, false));
                }
            }
            Stmt::Try(tried) => {
                self.block(&tried.body, out);
                for ast::ExceptHandler::ExceptHandler(handler) in &tried.handlers {
                    let mut body = Vec::new();
                    if let Some(name) = &handler.name {
                        let raised = Node::new(Kind::Raised, handler.range.start().to_u32());
                        body.push(Statement::Assign(Pattern::Name(Rc::from(name.as_str())), raised));
                    }
                    body.extend(self.statements(&handler.body));
                    out.push(Statement::Block(body, false));
                }
                self.block(&tried.orelse, out);
                self.block(&tried.finalbody, out);
            }
            Stmt::Raise(raised) => {
                out.extend(raised.exc.iter().map(|value| Statement::Raise(self.expression(value))));
                out.extend(raised.cause.iter().map(|part| Statement::Expression(self.expression(part))));
            }
            Stmt::Assert(assert) => {
                out.push(Statement::Expression(self.expression(&assert.test)));
                out.extend(assert.msg.iter().map(|part| Statement::Expression(self.expression(part))));
            }
            Stmt::Delete(deleted) => {
                out.extend(deleted.targets.iter().map(|t| Statement::Expression(self.expression(t))));
            }
            Stmt::Import(import) => {
                for alias in &import.names {
                    let module = alias.name.as_str();
                    let at = alias.range.start().to_u32();
                    let first = module.split('.').next().unwrap_or_default();
                    // `import a.b` binds `a`, `import a.b as c` binds the whole to `c`.
                    let (local, module) = match &alias.asname {
                        Some(name) => (name.as_str(), module),
                        None => (first, first),
                    };
                    out.push(Statement::Import { local: Rc::from(local), module: Rc::from(module), at });
                }
            }
            Stmt::ImportFrom(import) => {
                let dots = ".".repeat(import.level as usize);
                let module = format!("{dots}{}", import.module.as_ref().map_or("", |name| name.as_str()));
                for alias in &import.names {
                    let name = alias.name.as_str();
                    let local = alias.asname.as_ref().map_or(name, |name| name.as_str());
                    out.push(Statement::ImportFrom {
                        local: Rc::from(local),
                        module: Rc::from(module.as_str()),
                        name: Rc::from(name),
                        at: alias.range.start().to_u32(),
                    });
                }
            }
            Stmt::Expr(expression) => out.push(Statement::Expression(self.expression(&expression.value))),
            Stmt::TypeAlias(_)
            | Stmt::Global(_)
            | Stmt::Nonlocal(_)
            | Stmt::Pass(_)
            | Stmt::Break(_)
            | Stmt::Continue(_)
            | Stmt::IpyEscapeCommand(_) => {}
        }
    }

    fn function(&mut self, def: &ast::StmtFunctionDef, out: &mut Vec<Statement>) {
        let (parameters, rest) = self.parameters(&def.parameters);
        self.annotations(def, out);
        let body = self.statements(&def.body);
        let name: Rc<str> = Rc::from(def.name.as_str());
        let at = def.range.start().to_u32();
        let source = self.source(at, def.range.end().to_u32());
        // `@size.setter` defines what is done when `size` is assigned to, beside what it is when it is read.
        let changes = def.decorator_list.iter().find_map(|decorator| match &decorator.expression {
            Expr::Attribute(change) if matches!(change.attr.as_str(), "setter" | "deleter") => {
                Some(change.attr.as_str())
            }
            _ => None,
        });
        if let Some(change) = changes {
            let function = Function { name: None, parameters, rest, body, source };
            let value = Node::new(Kind::Function(Rc::new(function)), at);
            let pattern = Pattern::Name(Rc::from(format!("{name}.{change}")));
            out.push(Statement::Assign(pattern, value));
            return;
        }
        let function = Function { name: Some(name.clone()), parameters, rest, body, source };
        out.push(Statement::Function(Rc::new(function)));
        let named = def.parameters.iter().filter_map(|one| Some((one.name().as_str(), one.annotation()?)));
        let named = named.chain(def.returns.as_deref().map(|returned| ("return", returned)));
        if let Some(types) = self.types(named, at) {
            let base = Box::new(Node::new(Kind::Name(name.clone()), at));
            let place = Node::new(Kind::Member(base, Rc::from(TYPES)), at);
            out.push(Statement::Assign(Pattern::Place(place), types));
        }
        self.decorated(&def.decorator_list, &name, at, out);
    }

    /// What stands as a type is worked out when the function is defined: calls in it are made.
    fn annotations(&mut self, def: &ast::StmtFunctionDef, out: &mut Vec<Statement>) {
        let parameters = def.parameters.iter().filter_map(|parameter| parameter.annotation());
        for annotation in parameters.chain(def.returns.as_deref()) {
            self.annotation(annotation, out);
        }
    }

    fn annotation(&mut self, annotation: &Expr, out: &mut Vec<Statement>) {
        if any_over_expr(annotation, Expr::is_call_expr) {
            out.push(Statement::Expression(self.expression(annotation)));
        }
        // A text among types is worked out as soon as somebody asks for them: calls in it are made then.
        any_over_expr(annotation, |part| {
            if let Expr::StringLiteral(text) = part
                && calls_something(text.value.to_str())
            {
                let quoted = Kind::Quoted(Rc::from(text.value.to_str()));
                out.push(Statement::Expression(Node::new(quoted, start(part))));
            }
            false
        });
    }

    /// The types that are written as texts of more than a name, under the names that they are for.
    fn types<'t>(&mut self, types: impl Iterator<Item = (&'t str, &'t Expr)>, at: u32) -> Option<Node> {
        let texts = types.filter_map(|(name, annotation)| match annotation {
            Expr::StringLiteral(text) if text.value.to_str().contains(['(', ' ', ';']) => Some((name, text)),
            _ => None,
        });
        let entries: Vec<(Option<Node>, Node)> = texts
            .map(|(name, text)| {
                let at = text.range.start().to_u32();
                let node = |text: &str| Node::new(Kind::Text(Rc::from(text)), at);
                (Some(node(name)), node(text.value.to_str()))
            })
            .collect();
        (!entries.is_empty()).then(|| Node::new(Kind::Map(entries), at))
    }

    /// The table in which a module or class keeps the types of its names.
    fn table_of_types(&mut self, body: &[Stmt]) -> Option<Statement> {
        let declared = body.iter().filter_map(|statement| match statement {
            Stmt::AnnAssign(declared) => match &*declared.target {
                Expr::Name(name) => Some((name.id.as_str(), &*declared.annotation)),
                _ => None,
            },
            _ => None,
        });
        let types = self.types(declared, body.first().map_or(0, |first| first.range().start().to_u32()))?;
        Some(Statement::Assign(Pattern::Name(Rc::from(TYPES)), types))
    }

    /// `@decorate` is a call of `decorate` with what is defined, and what that gives is known by its name.
    fn decorated(
        &mut self,
        decorators: &[ast::Decorator],
        name: &Rc<str>,
        at: u32,
        out: &mut Vec<Statement>,
    ) {
        let plain = || Node::new(Kind::Name(name.clone()), at);
        let mut value: Option<Node> = None;
        for decorator in decorators.iter().rev() {
            let callee = self.expression(&decorator.expression);
            let is_kind = match &callee.kind {
                Kind::Name(name) => matches!(&**name, "staticmethod" | "classmethod" | "property"),
                Kind::Member(_, name) => &**name == "cached_property",
                _ => false,
            };
            let given = value.take().unwrap_or_else(plain);
            let arguments = vec![super::tree::Argument { name: None, value: given, is_spread: false }];
            let call = Kind::Call { callee: Box::new(callee), arguments, is_new: false };
            let call = Node::new(call, at);
            // Of most decorators nothing is known: what they decorate is still there.
            value = Some(match is_kind {
                true => call,
                false => Node::new(Kind::Choice(vec![call, plain()]), at),
            });
        }
        if let Some(value) = value {
            out.push(Statement::Assign(Pattern::Name(name.clone()), value));
        }
    }

    /// Parameters in the order in which arguments are given to them.
    pub fn parameters(&mut self, parameters: &ast::Parameters) -> (Vec<Pattern>, Option<usize>) {
        let mut out = Vec::new();
        for parameter in parameters.posonlyargs.iter().chain(&parameters.args) {
            out.push(self.parameter(parameter));
        }
        let rest = parameters.vararg.as_ref().map(|rest| {
            out.push(Pattern::Name(Rc::from(rest.name.as_str())));
            out.len() - 1
        });
        for parameter in &parameters.kwonlyargs {
            out.push(self.parameter(parameter));
        }
        if let Some(rest) = &parameters.kwarg {
            out.push(Pattern::NamedRest(Rc::from(rest.name.as_str())));
        }
        (out, rest)
    }

    fn parameter(&mut self, parameter: &ast::ParameterWithDefault) -> Pattern {
        let name = Pattern::Name(Rc::from(parameter.parameter.name.as_str()));
        match &parameter.default {
            Some(value) => Pattern::Default(Box::new(name), Box::new(self.expression(value))),
            None => name,
        }
    }

    fn class(&mut self, def: &ast::StmtClassDef, out: &mut Vec<Statement>) {
        let bases = def.arguments.iter().flat_map(|arguments| &arguments.args);
        let bases: Vec<Node> = bases.map(|base| self.expression(base)).collect();
        let keywords = def.arguments.iter().flat_map(|arguments| &arguments.keywords).map(|keyword| {
            let name = keyword.arg.as_ref().map(|name| Rc::from(name.as_str()));
            (name, self.expression(&keyword.value))
        });
        let keywords = keywords.collect();
        let fields = def.body.iter().filter_map(|statement| match statement {
            Stmt::AnnAssign(declared) => match &*declared.target {
                Expr::Name(name) => Some(Rc::from(name.id.as_str())),
                _ => None,
            },
            _ => None,
        });
        let fields = fields.collect();
        let mut body = self.statements(&def.body);
        body.extend(self.table_of_types(&def.body));
        let name: Rc<str> = Rc::from(def.name.as_str());
        let class = Class { name: Some(name.clone()), bases, keywords, fields, body };
        out.push(Statement::Class(Rc::new(class)));
        self.decorated(&def.decorator_list, &name, def.range.start().to_u32(), out);
    }

    /// What the pattern of a `case` binds.
    fn match_pattern(&mut self, pattern: &ast::Pattern) -> Pattern {
        self.deeper(|lower| lower.match_part(pattern)).unwrap_or(Pattern::Nothing)
    }

    fn match_part(&mut self, pattern: &ast::Pattern) -> Pattern {
        let named = |name: &Option<ast::Identifier>| {
            name.as_ref().map_or(Pattern::Nothing, |name| Pattern::Name(Rc::from(name.as_str())))
        };
        match pattern {
            ast::Pattern::MatchAs(part) => named(&part.name),
            ast::Pattern::MatchStar(part) => Pattern::Star(Box::new(named(&part.name))),
            ast::Pattern::MatchSequence(parts) => {
                Pattern::List(parts.patterns.iter().map(|part| self.match_pattern(part)).collect())
            }
            ast::Pattern::MatchMapping(parts) => {
                let pairs = parts.keys.iter().zip(&parts.patterns);
                Pattern::Map(
                    pairs.map(|(key, part)| (Some(self.expression(key)), self.match_pattern(part))).collect(),
                )
            }
            ast::Pattern::MatchClass(parts) => {
                let members = parts.arguments.keywords.iter();
                let members = members.map(|part| {
                    let key =
                        Node::new(Kind::Text(Rc::from(part.attr.as_str())), part.range.start().to_u32());
                    (Some(key), self.match_pattern(&part.pattern))
                });
                Pattern::Map(members.collect())
            }
            ast::Pattern::MatchOr(parts) => {
                parts.patterns.first().map_or(Pattern::Nothing, |part| self.match_pattern(part))
            }
            ast::Pattern::MatchValue(_) | ast::Pattern::MatchSingleton(_) => Pattern::Nothing,
        }
    }

    /// What an expression is as the target of an assignment.
    pub fn pattern(&mut self, target: &Expr) -> Pattern {
        match target {
            Expr::Name(name) => Pattern::Name(Rc::from(name.id.as_str())),
            Expr::List(list) => self.pattern_list(&list.elts),
            Expr::Tuple(tuple) => self.pattern_list(&tuple.elts),
            Expr::Starred(starred) => {
                let inner = self.deeper(|lower| lower.pattern(&starred.value)).unwrap_or(Pattern::Nothing);
                Pattern::Star(Box::new(inner))
            }
            other => Pattern::Place(self.expression(other)),
        }
    }

    fn pattern_list(&mut self, targets: &[Expr]) -> Pattern {
        let list = self.deeper(|lower| targets.iter().map(|target| lower.pattern(target)).collect());
        Pattern::List(list.unwrap_or_default())
    }
}

/// The name of the table of types.
const TYPES: &str = "__annotations__";

/// Whether a text is an expression with a call in it.
fn calls_something(text: &str) -> bool {
    /// Longest text that is read as a type.
    const BYTES_MAX: usize = 4 << 10;
    text.contains('(')
        && text.len() <= BYTES_MAX
        && parse_expression(text).is_ok_and(|parsed| any_over_expr(parsed.expr(), Expr::is_call_expr))
}

/// Where an expression begins.
pub(super) fn start(expression: &Expr) -> u32 {
    expression.range().start().to_u32()
}
