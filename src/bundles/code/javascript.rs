//! JavaScript and TypeScript brought to the common tree: parsing and statements.
//!
//! The parser gives up on some errors. Then the line of the error is blanked and the rest tried again, a few times: what
//! stands around an error is still seen.

use std::rc::Rc;

use oxc_allocator::Allocator;
use oxc_ast::ast::{self, BindingPattern, Declaration, Statement as Source};
use oxc_parser::{ParseOptions, Parser};
use oxc_span::{GetSpan, SourceType};

use super::assign::SETTER;
use super::python::{Lower, Parsed};
use super::siblings::EXPORT;
use super::tree::{Argument, Class, Function, Kind, Node, Pattern, Statement};

/// Times that a line with an error is taken out.
const REPAIRS_MAX: usize = 6;

/// Parses a module or script of whatever dialect the name of the file speaks of.
pub(super) fn parse(path: &str, text: &str) -> Parsed {
    let dialects = dialects(path);
    for dialect in &dialects {
        if let Some(parsed) = attempt(text, *dialect, true) {
            return parsed;
        }
    }
    let mut best = Parsed { body: Vec::new(), is_whole: false, is_cut: false, rewritten: None };
    let mut repaired = super::template::without_braces(text);
    for _ in 0..REPAIRS_MAX {
        let dialect = dialects[0];
        if let Some(parsed) = attempt(&repaired, dialect, false) {
            best = parsed;
            break;
        }
        let Some(at) = first_error(&repaired, dialect) else { break };
        let Some(next) = without_line(&repaired, at) else { break };
        repaired = next;
    }
    best.is_whole = false;
    best
}

fn dialects(path: &str) -> Vec<SourceType> {
    let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let (module, script) = (SourceType::mjs().with_jsx(true), SourceType::cjs().with_jsx(true));
    match extension.as_str() {
        "ts" | "mts" | "cts" => vec![SourceType::ts(), SourceType::tsx()],
        "tsx" => vec![SourceType::tsx()],
        "cjs" => vec![script, module, SourceType::tsx()],
        "mjs" => vec![module, script, SourceType::tsx()],
        _ => vec![module, script, SourceType::ts(), SourceType::tsx()],
    }
}

fn options() -> ParseOptions {
    ParseOptions { preserve_parens: false, allow_return_outside_function: true, ..ParseOptions::default() }
}

/// One try; `None` when the parser gave up or, `if is_strict`, found any error.
fn attempt(text: &str, dialect: SourceType, is_strict: bool) -> Option<Parsed> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, dialect).with_options(options()).parse();
    if parsed.panicked || (is_strict && !parsed.diagnostics.is_empty()) {
        return None;
    }
    let mut lower = Lower { depth: 0, is_cut: false, text: Rc::from(text) };
    let mut body = Vec::new();
    lower.deeper(|lower| parsed.program.body.iter().for_each(|s| lower.js_statement(s, &mut body)));
    Some(Parsed { body, is_whole: parsed.diagnostics.is_empty(), is_cut: lower.is_cut, rewritten: None })
}

fn first_error(text: &str, dialect: SourceType) -> Option<usize> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, dialect).with_options(options()).parse();
    let labels = parsed.diagnostics.iter().filter_map(|error| error.labels.first());
    labels.map(|label| label.offset() as usize).min()
}

/// The text with the line at `at` blanked; `None` when it is blank already.
fn without_line(text: &str, at: usize) -> Option<String> {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    if text[start..end].trim().is_empty() {
        return None;
    }
    Some(format!("{}{}{}", &text[..start], " ".repeat(end - start), &text[end..]))
}

impl Lower {
    fn js_statements(&mut self, body: &[Source<'_>]) -> Vec<Statement> {
        let mut out = Vec::with_capacity(body.len());
        self.deeper(|lower| body.iter().for_each(|statement| lower.js_statement(statement, &mut out)));
        out
    }

    /// A statement that stands alone, as the body of a branch or loop.
    fn js_body(&mut self, body: &Source<'_>) -> Vec<Statement> {
        let mut out = Vec::new();
        match body {
            Source::BlockStatement(block) => {
                // `{{ … }}` is a block in a block to the language and a placeholder to a template engine.
                let is_doubled = matches!(block.body.as_slice(), [Source::BlockStatement(_)]);
                let inner = self.js_statements(&block.body);
                out.push(Statement::Block(inner, is_doubled));
            }
            other => {
                self.deeper(|lower| lower.js_statement(other, &mut out));
            }
        }
        out
    }

    fn js_statement(&mut self, statement: &Source<'_>, out: &mut Vec<Statement>) {
        match statement {
            Source::BlockStatement(_) => {
                let body = self.js_body(statement);
                out.extend(body);
            }
            Source::ExpressionStatement(expression) => {
                out.push(Statement::Expression(self.js(&expression.expression)));
            }
            Source::IfStatement(branch) => {
                out.push(Statement::Expression(self.js(&branch.test)));
                let body = self.js_body(&branch.consequent);
                out.push(Statement::Block(body, false));
                if let Some(other) = &branch.alternate {
                    let body = self.js_body(other);
                    out.push(Statement::Block(body, false));
                }
            }
            Source::DoWhileStatement(looped) => {
                let mut body = self.js_body(&looped.body);
                body.push(Statement::Expression(self.js(&looped.test)));
                out.push(Statement::Loop { target: Pattern::Nothing, iterable: None, body });
            }
            Source::WhileStatement(looped) => {
                out.push(Statement::Expression(self.js(&looped.test)));
                let body = self.js_body(&looped.body);
                out.push(Statement::Loop { target: Pattern::Nothing, iterable: None, body });
            }
            Source::ForStatement(looped) => {
                match &looped.init {
                    Some(ast::ForStatementInit::VariableDeclaration(declared)) => {
                        self.variables(declared, out)
                    }
                    Some(other) => {
                        out.extend(other.as_expression().map(|e| Statement::Expression(self.js(e))));
                    }
                    None => {}
                }
                out.extend(looped.test.iter().map(|test| Statement::Expression(self.js(test))));
                let mut body = self.js_body(&looped.body);
                body.extend(looped.update.iter().map(|update| Statement::Expression(self.js(update))));
                out.push(Statement::Loop { target: Pattern::Nothing, iterable: None, body });
            }
            Source::ForInStatement(looped) => {
                let iterable = self.js(&looped.right);
                let at = iterable.at;
                // The keys of something are not its values.
                let object = Node::new(Kind::Name(Rc::from("Object")), at);
                let callee = Box::new(Node::new(Kind::Member(Box::new(object), Rc::from("keys")), at));
                let arguments = vec![Argument { name: None, value: iterable, is_spread: false }];
                let iterable = Node::new(Kind::Call { callee, arguments, is_new: false }, at);
                let (target, body) = (self.loop_target(&looped.left), self.js_body(&looped.body));
                out.push(Statement::Loop { target, iterable: Some(iterable), body });
            }
            Source::ForOfStatement(looped) => {
                let iterable = Some(self.js(&looped.right));
                let (target, body) = (self.loop_target(&looped.left), self.js_body(&looped.body));
                out.push(Statement::Loop { target, iterable, body });
            }
            Source::LabeledStatement(labelled) => {
                let body = self.js_body(&labelled.body);
                out.extend(body);
            }
            Source::ReturnStatement(given) => {
                let value = given.argument.as_ref().map(|value| self.js(value));
                out.push(Statement::Return(value));
            }
            Source::ThrowStatement(thrown) => out.push(Statement::Raise(self.js(&thrown.argument))),
            Source::SwitchStatement(switch) => {
                out.push(Statement::Expression(self.js(&switch.discriminant)));
                for case in &switch.cases {
                    out.extend(case.test.iter().map(|test| Statement::Expression(self.js(test))));
                    let body = self.js_statements(&case.consequent);
                    out.push(Statement::Block(body, false));
                }
            }
            Source::TryStatement(tried) => {
                let body = self.js_statements(&tried.block.body);
                out.push(Statement::Block(body, false));
                if let Some(handler) = &tried.handler {
                    let mut body = Vec::new();
                    if let Some(caught) = &handler.param {
                        let raised = Node::new(Kind::Raised, handler.span.start);
                        body.push(Statement::Assign(self.binding(&caught.pattern), raised));
                    }
                    body.extend(self.js_statements(&handler.body.body));
                    out.push(Statement::Block(body, false));
                }
                if let Some(finalizer) = &tried.finalizer {
                    let body = self.js_statements(&finalizer.body);
                    out.push(Statement::Block(body, false));
                }
            }
            Source::WithStatement(with) => {
                let object = self.js(&with.object);
                let mut body = Vec::new();
                match object.kind {
                    // Members of the object are names of the body.
                    Kind::Map(entries) => {
                        for (key, value) in entries {
                            body.push(match key.map(|key| key.kind) {
                                Some(Kind::Text(name)) => Statement::Assign(Pattern::Name(name), value),
                                _ => Statement::Expression(value),
                            });
                        }
                    }
                    _ => body.push(Statement::Expression(object)),
                }
                body.extend(self.js_body(&with.body));
                // No module and no strict code has such a statement: names in it are hidden ones.
                out.push(Statement::Block(body, true));
            }
            Source::BreakStatement(_)
            | Source::ContinueStatement(_)
            | Source::DebuggerStatement(_)
            | Source::EmptyStatement(_) => {}
            other => {
                if let Some(declaration) = other.as_declaration() {
                    self.declaration(declaration, out);
                } else if let Some(module) = other.as_module_declaration() {
                    self.module(module, out);
                }
            }
        }
    }

    fn loop_target(&mut self, left: &ast::ForStatementLeft<'_>) -> Pattern {
        match left {
            ast::ForStatementLeft::VariableDeclaration(declared) => {
                declared.declarations.first().map_or(Pattern::Nothing, |one| self.binding(&one.id))
            }
            other => other.as_assignment_target().map_or(Pattern::Nothing, |target| self.target(target)),
        }
    }

    fn variables(&mut self, declared: &ast::VariableDeclaration<'_>, out: &mut Vec<Statement>) {
        for one in &declared.declarations {
            let pattern = self.binding(&one.id);
            match &one.init {
                Some(value) => {
                    let value = self.js(value);
                    out.push(Statement::Assign(pattern, value));
                }
                // A name without a value is declared all the same: it is not the global of that name.
                None => {
                    let value = Node::new(Kind::Unknown(Vec::new()), one.span.start);
                    out.push(Statement::Assign(pattern, value));
                }
            }
        }
    }

    fn declaration(&mut self, declaration: &Declaration<'_>, out: &mut Vec<Statement>) {
        match declaration {
            Declaration::VariableDeclaration(declared) => self.variables(declared, out),
            Declaration::FunctionDeclaration(function) => {
                out.push(Statement::Function(self.js_function(function)));
            }
            Declaration::ClassDeclaration(class) => out.push(Statement::Class(self.js_class(class))),
            Declaration::TSEnumDeclaration(declared) => {
                let mut entries = Vec::new();
                for member in &declared.body.members {
                    let Some(value) = &member.initializer else { continue };
                    let name = match &member.id {
                        ast::TSEnumMemberName::Identifier(name) => Rc::from(name.name.as_str()),
                        ast::TSEnumMemberName::String(name) => Rc::from(name.value.as_str()),
                        _ => Rc::from("\0"),
                    };
                    entries.push((Some(Node::new(Kind::Text(name), member.span.start)), self.js(value)));
                }
                let at = declared.span.start;
                let name = Pattern::Name(Rc::from(declared.id.name.as_str()));
                out.push(Statement::Assign(name, Node::new(Kind::Map(entries), at)));
            }
            Declaration::TSExternalModuleDeclaration(declared) => {
                if let Some(body) = &declared.body {
                    let body = self.js_statements(&body.body);
                    out.push(Statement::Block(body, false));
                }
            }
            Declaration::TSNamespaceDeclaration(declared) => {
                let from = out.len();
                self.namespace(&declared.body, out);
                let at = declared.span.start;
                let names = out[from..].iter().flat_map(|statement| match statement {
                    Statement::Block(body, _) => body.iter().filter_map(name_of).collect::<Vec<_>>(),
                    _ => Vec::new(),
                });
                let entries = names.map(|name| {
                    let key = Node::new(Kind::Text(name.clone()), at);
                    (Some(key), Node::new(Kind::Name(name), at))
                });
                let entries = entries.collect();
                let name = Pattern::Name(Rc::from(declared.id.name.as_str()));
                out.push(Statement::Assign(name, Node::new(Kind::Map(entries), at)));
            }
            Declaration::TSImportEqualsDeclaration(import) => {
                if let ast::TSModuleReference::ExternalModuleReference(module) = &import.module_reference {
                    out.push(Statement::Import {
                        local: Rc::from(import.id.name.as_str()),
                        module: Rc::from(module.expression.value.as_str()),
                        at: import.span.start,
                    });
                }
            }
            Declaration::TSGlobalDeclaration(_)
            | Declaration::TSTypeAliasDeclaration(_)
            | Declaration::TSInterfaceDeclaration(_) => {}
        }
    }

    fn namespace(&mut self, body: &ast::TSNamespaceDeclarationBody<'_>, out: &mut Vec<Statement>) {
        let mut body = body;
        loop {
            match body {
                ast::TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => body = &inner.body,
                ast::TSNamespaceDeclarationBody::TSModuleBlock(block) => {
                    let body = self.js_statements(&block.body);
                    out.push(Statement::Block(body, false));
                    return;
                }
            }
        }
    }

    fn module(&mut self, module: &ast::ModuleDeclaration<'_>, out: &mut Vec<Statement>) {
        match module {
            ast::ModuleDeclaration::ImportDeclaration(import) => self.import(import, out),
            ast::ModuleDeclaration::ExportDeclaration(export) => self.declaration(&export.declaration, out),
            ast::ModuleDeclaration::ExportDefaultDeclaration(export) => match &export.declaration {
                ast::ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                    out.push(Statement::Function(self.js_function(function)));
                }
                ast::ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                    out.push(Statement::Class(self.js_class(class)));
                }
                other => out.extend(other.as_expression().map(|expression| {
                    // The name that the file exports it by.
                    let name = Pattern::Name(Rc::from("default"));
                    Statement::Assign(name, self.js(expression))
                })),
            },
            ast::ModuleDeclaration::TSExportAssignment(export) => {
                out.push(Statement::Expression(self.js(&export.expression)));
            }
            ast::ModuleDeclaration::ExportNamedDeclaration(export) => {
                let renamed = export.specifiers.iter().filter(|one| one.local.name() != one.exported.name());
                out.extend(renamed.map(|one| {
                    let name = Kind::Name(Rc::from(one.local.name().as_str()));
                    // It is no name of the file itself.
                    let exported = Pattern::Name(Rc::from(format!("{EXPORT}{}", one.exported.name())));
                    Statement::Assign(exported, Node::new(name, one.span.start))
                }));
            }
            ast::ModuleDeclaration::ExportFromDeclaration(export) => {
                out.extend(export.specifiers.iter().map(|one| Statement::ImportFrom {
                    local: Rc::from(format!("{EXPORT}{}", one.exported.name())),
                    module: Rc::from(export.source.value.as_str()),
                    name: Rc::from(one.local.name().as_str()),
                    at: one.span.start,
                }));
            }
            ast::ModuleDeclaration::ExportAllDeclaration(_)
            | ast::ModuleDeclaration::TSNamespaceExportDeclaration(_) => {}
        }
    }

    fn import(&mut self, import: &ast::ImportDeclaration<'_>, out: &mut Vec<Statement>) {
        let module: Rc<str> = Rc::from(import.source.value.as_str());
        let at = import.span.start;
        let Some(specifiers) = &import.specifiers else {
            // For its effects only.
            out.push(Statement::Import { local: Rc::from(""), module, at });
            return;
        };
        for specifier in specifiers {
            out.push(match specifier {
                ast::ImportDeclarationSpecifier::ImportSpecifier(one) => Statement::ImportFrom {
                    local: Rc::from(one.local.name.as_str()),
                    module: module.clone(),
                    name: Rc::from(one.imported.name().as_str()),
                    at,
                },
                ast::ImportDeclarationSpecifier::ImportDefaultSpecifier(one) => {
                    Statement::Import { local: Rc::from(one.local.name.as_str()), module: module.clone(), at }
                }
                ast::ImportDeclarationSpecifier::ImportNamespaceSpecifier(one) => {
                    Statement::Import { local: Rc::from(one.local.name.as_str()), module: module.clone(), at }
                }
            });
        }
    }

    pub fn js_function(&mut self, function: &ast::Function<'_>) -> Rc<Function> {
        let (parameters, rest) = self.js_parameters(&function.params);
        let mut body = function.body.as_ref().map(|body| self.js_statements(&body.statements));
        // `constructor(private name: string)` declares a member and gives it its value.
        let declared = function.params.items.iter().filter(|one| one.accessibility.is_some() || one.readonly);
        for one in declared {
            let (BindingPattern::BindingIdentifier(name), Some(body)) = (&one.pattern, &mut body) else {
                continue;
            };
            let (at, name) = (one.span.start, Rc::<str>::from(name.name.as_str()));
            let this = Box::new(Node::new(Kind::Name(Rc::from("this")), at));
            let place = Pattern::Place(Node::new(Kind::Member(this, name.clone()), at));
            body.insert(0, Statement::Assign(place, Node::new(Kind::Name(name), at)));
        }
        let name = function.id.as_ref().map(|id| Rc::from(id.name.as_str()));
        let source = self.source(function.span.start, function.span.end);
        Rc::new(Function { name, parameters, rest, body: body.unwrap_or_default(), source })
    }

    pub fn js_arrow(&mut self, function: &ast::ArrowFunctionExpression<'_>) -> Rc<Function> {
        let (parameters, rest) = self.js_parameters(&function.params);
        let body = match &function.body {
            ast::ArrowFunctionBody::FunctionBody(body) => self.js_statements(&body.statements),
            other => vec![Statement::Return(other.as_expression().map(|value| self.js(value)))],
        };
        let source = self.source(function.span.start, function.span.end);
        Rc::new(Function { name: None, parameters, rest, body, source })
    }

    fn js_parameters(&mut self, parameters: &ast::FormalParameters<'_>) -> (Vec<Pattern>, Option<usize>) {
        let mut out = Vec::new();
        for parameter in &parameters.items {
            let pattern = self.binding(&parameter.pattern);
            out.push(match &parameter.initializer {
                Some(value) => Pattern::Default(Box::new(pattern), Box::new(self.js(value))),
                None => pattern,
            });
        }
        let rest = parameters.rest.as_ref().map(|rest| {
            out.push(self.binding(&rest.rest.argument));
            out.len() - 1
        });
        (out, rest)
    }

    pub fn js_class(&mut self, class: &ast::Class<'_>) -> Rc<Class> {
        let mut bases: Vec<Node> = class.heritage.iter().map(|h| self.js(&h.expression)).collect();
        bases.extend(class.decorators.iter().map(|decorator| self.js(&decorator.expression)));
        let mut body = Vec::new();
        self.deeper(|lower| {
            for element in &class.body.body {
                lower.class_element(element, &mut body);
            }
        });
        Rc::new(Class {
            name: class.id.as_ref().map(|id| Rc::from(id.name.as_str())),
            bases,
            keywords: Vec::new(),
            fields: Vec::new(),
            body,
        })
    }

    fn class_element(&mut self, element: &ast::ClassElement<'_>, out: &mut Vec<Statement>) {
        match element {
            ast::ClassElement::StaticBlock(block) => {
                let body = self.js_statements(&block.body);
                out.push(Statement::Block(body, false));
            }
            ast::ClassElement::MethodDefinition(method) => {
                let function = self.js_function(&method.value);
                let at = method.span.start;
                match self.key_name(&method.key, method.computed) {
                    Ok(name) => {
                        let value = Node::new(Kind::Function(function), at);
                        let (name, value) = match method.kind {
                            ast::MethodDefinitionKind::Get => {
                                (name, Node::new(Kind::Getter(Box::new(value)), at))
                            }
                            ast::MethodDefinitionKind::Set => (Rc::from(format!("{name}{SETTER}")), value),
                            _ => (name, value),
                        };
                        out.push(Statement::Assign(Pattern::Name(name), value));
                    }
                    Err(key) => {
                        out.push(Statement::Expression(key));
                        out.push(Statement::Expression(Node::new(Kind::Function(function), at)));
                    }
                }
            }
            ast::ClassElement::PropertyDefinition(property) => {
                let Some(value) = &property.value else { return };
                let value = self.js(value);
                out.push(match self.key_name(&property.key, property.computed) {
                    Ok(name) => Statement::Assign(Pattern::Name(name), value),
                    Err(_) => Statement::Expression(value),
                });
            }
            ast::ClassElement::AccessorProperty(property) => {
                out.extend(property.value.iter().map(|value| Statement::Expression(self.js(value))));
            }
            ast::ClassElement::TSIndexSignature(_) => {}
        }
    }

    /// The name of a property, or the expression that computes it.
    pub fn key_name(&mut self, key: &ast::PropertyKey<'_>, is_computed: bool) -> Result<Rc<str>, Node> {
        match key {
            ast::PropertyKey::StaticIdentifier(name) => Ok(Rc::from(name.name.as_str())),
            ast::PropertyKey::PrivateIdentifier(name) => Ok(Rc::from(name.name.as_str())),
            ast::PropertyKey::StringLiteral(text) if !is_computed => Ok(Rc::from(text.value.as_str())),
            other => match other.as_expression() {
                Some(expression) => Err(self.js(expression)),
                None => Err(Node::new(Kind::Unknown(Vec::new()), other.span().start)),
            },
        }
    }
}

/// The name that a statement binds.
fn name_of(statement: &Statement) -> Option<Rc<str>> {
    match statement {
        Statement::Assign(Pattern::Name(name), _) => Some(name.clone()),
        Statement::Function(function) => function.name.clone(),
        Statement::Class(class) => class.name.clone(),
        _ => None,
    }
}
