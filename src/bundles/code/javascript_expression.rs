//! JavaScript brought to the common tree: expressions and what is assigned to.

use std::rc::Rc;

use oxc_ast::ast::{self, AssignmentTarget, BindingPattern, Expression};
use oxc_span::GetSpan;

use super::assign::SETTER;
use super::python::Lower;
use super::tree::{Argument, Kind, Node, Operator, Pattern};

impl Lower {
    /// An expression; one that is too deep is unknown.
    pub fn js(&mut self, expression: &Expression<'_>) -> Node {
        let at = expression.span().start;
        let kind = self.deeper(|lower| lower.js_kind(expression)).unwrap_or(Kind::Unknown(Vec::new()));
        Node::new(kind, at)
    }

    fn js_boxed(&mut self, expression: &Expression<'_>) -> Box<Node> {
        Box::new(self.js(expression))
    }

    fn js_kind(&mut self, expression: &Expression<'_>) -> Kind {
        match expression {
            Expression::BooleanLiteral(literal) => Kind::Bool(literal.value),
            Expression::NullLiteral(_) => Kind::Null,
            Expression::NumericLiteral(number) => Kind::Number(number.value),
            Expression::StringLiteral(text) => Kind::Text(Rc::from(text.value.as_str())),
            Expression::TemplateLiteral(template) => Kind::Template(self.js_template(template)),
            Expression::Identifier(name) => Kind::Name(Rc::from(name.name.as_str())),
            Expression::RegExpLiteral(literal) => {
                // A value with methods of its own: its `exec` runs no code.
                Kind::Pattern(Rc::from(format!("{}/{}", literal.regex.pattern.text, literal.regex.flags)))
            }
            Expression::BigIntLiteral(number) => Kind::Text(Rc::from(number.value.as_str())),
            Expression::NewTarget(_) => Kind::Unknown(Vec::new()),
            Expression::Super(_) => Kind::Name(Rc::from("super")),
            Expression::ThisExpression(_) => Kind::Name(Rc::from("this")),
            Expression::ImportMeta(_) => Kind::Name(Rc::from("import.meta")),
            Expression::ArrayExpression(list) => Kind::List(self.elements(list)),
            Expression::ObjectExpression(object) => self.object(object),
            Expression::ArrowFunctionExpression(function) => Kind::Function(self.js_arrow(function)),
            Expression::FunctionExpression(function) => Kind::Function(self.js_function(function)),
            Expression::ClassExpression(class) => Kind::Class(self.js_class(class)),
            Expression::AssignmentExpression(assignment) => self.js_assignment(assignment),
            Expression::AwaitExpression(awaited) => Kind::Await(self.js_boxed(&awaited.argument)),
            Expression::YieldExpression(given) => match &given.argument {
                Some(value) if given.delegate => Kind::Delegate(self.js_boxed(value)),
                value => Kind::Yield(value.as_ref().map(|value| self.js_boxed(value))),
            },
            Expression::BinaryExpression(binary) => self.js_binary(binary),
            Expression::LogicalExpression(logical) => {
                let (mut row, mut left) = (vec![self.js(&logical.right)], &logical.left);
                while let Expression::LogicalExpression(next) = left {
                    row.push(self.js(&next.right));
                    left = &next.left;
                }
                row.push(self.js(left));
                row.reverse();
                Kind::Choice(row)
            }
            Expression::ConditionalExpression(choice) => {
                let at = choice.span.start;
                let test = self.js(&choice.test);
                let both = vec![self.js(&choice.consequent), self.js(&choice.alternate)];
                Kind::Sequence(vec![test, Node::new(Kind::Choice(both), at)])
            }
            Expression::CallExpression(call) => self.js_call(call),
            Expression::NewExpression(made) => {
                let callee = self.js_boxed(&made.callee);
                Kind::Call { callee, arguments: self.js_arguments(&made.arguments), is_new: true }
            }
            Expression::ChainExpression(chain) => match &chain.expression {
                ast::ChainElement::CallExpression(call) => self.js_call(call),
                ast::ChainElement::TSNonNullExpression(inner) => self.js(&inner.expression).kind,
                other => match other.as_member_expression() {
                    Some(member) => self.member(member),
                    None => Kind::Unknown(Vec::new()),
                },
            },
            Expression::ImportExpression(import) => {
                let callee = Node::new(Kind::Name(Rc::from("import")), import.span.start);
                let value = self.js(&import.source);
                let arguments = vec![Argument { name: None, value, is_spread: false }];
                Kind::Call { callee: Box::new(callee), arguments, is_new: false }
            }
            Expression::ParenthesizedExpression(inner) => self.js(&inner.expression).kind,
            Expression::SequenceExpression(sequence) => {
                Kind::Sequence(sequence.expressions.iter().map(|one| self.js(one)).collect())
            }
            Expression::TaggedTemplateExpression(tagged) => {
                let callee = self.js_boxed(&tagged.tag);
                Kind::Tagged(callee, self.js_template(&tagged.quasi))
            }
            Expression::UnaryExpression(unary) => match unary.operator.as_str() {
                "!" => Kind::Not(self.js_boxed(&unary.argument)),
                "-" => Kind::Minus(self.js_boxed(&unary.argument)),
                _ => Kind::Unknown(vec![self.js(&unary.argument)]),
            },
            Expression::UpdateExpression(_) => Kind::Unknown(Vec::new()),
            Expression::PrivateInExpression(inner) => Kind::Unknown(vec![self.js(&inner.right)]),
            Expression::JSXElement(element) => Kind::Unknown(self.jsx(element)),
            Expression::JSXFragment(fragment) => Kind::Unknown(self.jsx_children(&fragment.children)),
            Expression::TSAsExpression(inner) => self.js(&inner.expression).kind,
            Expression::TSSatisfiesExpression(inner) => self.js(&inner.expression).kind,
            Expression::TSTypeAssertion(inner) => self.js(&inner.expression).kind,
            Expression::TSNonNullExpression(inner) => self.js(&inner.expression).kind,
            Expression::TSInstantiationExpression(inner) => self.js(&inner.expression).kind,
            Expression::V8IntrinsicExpression(call) => {
                Kind::Unknown(self.js_arguments(&call.arguments).into_iter().map(|a| a.value).collect())
            }
            other => match other.as_member_expression() {
                Some(member) => self.member(member),
                None => Kind::Unknown(Vec::new()),
            },
        }
    }

    fn js_call(&mut self, call: &ast::CallExpression<'_>) -> Kind {
        let callee = self.js_boxed(&call.callee);
        Kind::Call { callee, arguments: self.js_arguments(&call.arguments), is_new: false }
    }

    fn js_arguments(&mut self, arguments: &[ast::Argument<'_>]) -> Vec<Argument> {
        let one = |argument: &ast::Argument<'_>, lower: &mut Self| match argument {
            ast::Argument::SpreadElement(spread) => {
                Some(Argument { name: None, value: lower.js(&spread.argument), is_spread: true })
            }
            other => {
                let value = lower.js(other.as_expression()?);
                Some(Argument { name: None, value, is_spread: false })
            }
        };
        arguments.iter().filter_map(|argument| one(argument, self)).collect()
    }

    fn member(&mut self, member: &ast::MemberExpression<'_>) -> Kind {
        match member {
            ast::MemberExpression::StaticMemberExpression(member) => {
                Kind::Member(self.js_boxed(&member.object), Rc::from(member.property.name.as_str()))
            }
            ast::MemberExpression::ComputedMemberExpression(member) => {
                Kind::Index(self.js_boxed(&member.object), self.js_boxed(&member.expression))
            }
            ast::MemberExpression::PrivateFieldExpression(member) => {
                Kind::Member(self.js_boxed(&member.object), Rc::from(member.field.name.as_str()))
            }
        }
    }

    fn js_binary(&mut self, binary: &ast::BinaryExpression<'_>) -> Kind {
        let operator = match binary.operator.as_str() {
            "+" => {
                // A row of `+` leans to the left, as deep as it is long.
                let (mut row, mut left) = (vec![&binary.right], &binary.left);
                while let Expression::BinaryExpression(next) = left
                    && next.operator.as_str() == "+"
                {
                    row.push(&next.right);
                    left = &next.left;
                }
                row.push(left);
                return Kind::Sum(row.into_iter().rev().map(|operand| self.js(operand)).collect());
            }
            "-" => Operator::Subtract,
            "*" => Operator::Multiply,
            "/" => Operator::Divide,
            "%" => Operator::Modulo,
            "^" => Operator::Xor,
            "&" => Operator::And,
            "|" => Operator::Or,
            "<<" => Operator::ShiftLeft,
            ">>" | ">>>" => Operator::ShiftRight,
            "==" | "===" => Operator::Equal,
            "!=" | "!==" => Operator::Unequal,
            _ => Operator::Compare,
        };
        Kind::Binary(operator, self.js_boxed(&binary.left), self.js_boxed(&binary.right))
    }

    fn elements(&mut self, list: &ast::ArrayExpression<'_>) -> Vec<Node> {
        let one = |element: &ast::ArrayExpressionElement<'_>, lower: &mut Self| match element {
            ast::ArrayExpressionElement::SpreadElement(spread) => {
                let inner = lower.js(&spread.argument);
                let at = inner.at;
                Node::new(Kind::Spread(Box::new(inner)), at)
            }
            ast::ArrayExpressionElement::Elision(hole) => Node::new(Kind::Null, hole.span.start),
            other => match other.as_expression() {
                Some(expression) => lower.js(expression),
                None => Node::new(Kind::Null, other.span().start),
            },
        };
        list.elements.iter().map(|element| one(element, self)).collect()
    }

    fn object(&mut self, object: &ast::ObjectExpression<'_>) -> Kind {
        let mut out = Vec::with_capacity(object.properties.len());
        for property in &object.properties {
            match property {
                ast::ObjectPropertyKind::SpreadProperty(spread) => {
                    out.push((None, self.js(&spread.argument)))
                }
                ast::ObjectPropertyKind::ObjectProperty(property) => {
                    let (mut key, mut value) =
                        (self.key(&property.key, property.computed), self.js(&property.value));
                    match property.kind {
                        ast::PropertyKind::Get => {
                            let at = value.at;
                            value = Node::new(Kind::Getter(Box::new(value)), at);
                        }
                        ast::PropertyKind::Set => {
                            if let Kind::Text(name) = &key.kind {
                                key.kind = Kind::Text(Rc::from(format!("{name}{SETTER}")));
                            }
                        }
                        ast::PropertyKind::Init => {}
                    }
                    out.push((Some(key), value));
                }
            }
        }
        Kind::Map(out)
    }

    /// The key of a property as an expression.
    fn key(&mut self, key: &ast::PropertyKey<'_>, is_computed: bool) -> Node {
        match self.key_name(key, is_computed) {
            Ok(name) => Node::new(Kind::Text(name), key.span().start),
            Err(key) => key,
        }
    }

    fn js_template(&mut self, template: &ast::TemplateLiteral<'_>) -> Vec<Node> {
        let mut out = Vec::new();
        let mut expressions = template.expressions.iter();
        for text in &template.quasis {
            let cooked = text.value.cooked.as_ref().unwrap_or(&text.value.raw);
            if !cooked.is_empty() {
                out.push(Node::new(Kind::Text(Rc::from(cooked.as_str())), text.span.start));
            }
            out.extend(expressions.next().map(|expression| self.js(expression)));
        }
        out
    }

    fn js_assignment(&mut self, assignment: &ast::AssignmentExpression<'_>) -> Kind {
        let value = self.js(&assignment.right);
        let at = value.at;
        let target = self.target(&assignment.left);
        let value = match assignment.operator.as_str() {
            "=" | "||=" | "&&=" | "??=" => value,
            operator => {
                let old = match &assignment.left {
                    AssignmentTarget::AssignmentTargetIdentifier(name) => {
                        Node::new(Kind::Name(Rc::from(name.name.as_str())), at)
                    }
                    _ => Node::new(Kind::Unknown(Vec::new()), at),
                };
                let kind = if operator == "+=" {
                    Kind::Sum(vec![old, value])
                } else {
                    Kind::Unknown(vec![old, value])
                };
                Node::new(kind, at)
            }
        };
        Kind::Assign(Box::new(target), Box::new(value))
    }

    /// What is assigned to.
    pub fn target(&mut self, target: &AssignmentTarget<'_>) -> Pattern {
        match target {
            AssignmentTarget::AssignmentTargetIdentifier(name) => Pattern::Name(Rc::from(name.name.as_str())),
            AssignmentTarget::ArrayAssignmentTarget(list) => {
                let one = |element: &ast::AssignmentTargetMaybeDefault<'_>, lower: &mut Self| {
                    lower.deeper(|lower| lower.target_default(element)).unwrap_or(Pattern::Nothing)
                };
                let elements = list.elements.iter();
                Pattern::List(
                    elements.map(|e| e.as_ref().map_or(Pattern::Nothing, |e| one(e, self))).collect(),
                )
            }
            AssignmentTarget::ObjectAssignmentTarget(map) => {
                let mut out = Vec::new();
                for property in &map.properties {
                    match property {
                        ast::AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(one) => {
                            let name: Rc<str> = Rc::from(one.binding.name.as_str());
                            let key = Node::new(Kind::Text(name.clone()), one.span.start);
                            out.push((Some(key), Pattern::Name(name)));
                        }
                        ast::AssignmentTargetProperty::AssignmentTargetPropertyProperty(one) => {
                            let key = self.key(&one.name, one.computed);
                            let inner = self.deeper(|lower| lower.target_default(&one.binding));
                            out.push((Some(key), inner.unwrap_or(Pattern::Nothing)));
                        }
                    }
                }
                Pattern::Map(out)
            }
            other => match other.as_simple_assignment_target().and_then(|t| t.as_member_expression()) {
                Some(member) => {
                    let at = member.span().start;
                    let kind = self.deeper(|lower| lower.member(member)).unwrap_or(Kind::Unknown(Vec::new()));
                    Pattern::Place(Node::new(kind, at))
                }
                None => Pattern::Nothing,
            },
        }
    }

    fn target_default(&mut self, target: &ast::AssignmentTargetMaybeDefault<'_>) -> Pattern {
        match target {
            ast::AssignmentTargetMaybeDefault::AssignmentTargetWithDefault(given) => {
                let inner = self.target(&given.binding);
                Pattern::Default(Box::new(inner), Box::new(self.js(&given.init)))
            }
            other => other.as_assignment_target().map_or(Pattern::Nothing, |target| self.target(target)),
        }
    }

    /// What is declared.
    pub fn binding(&mut self, pattern: &BindingPattern<'_>) -> Pattern {
        self.deeper(|lower| lower.binding_kind(pattern)).unwrap_or(Pattern::Nothing)
    }

    fn binding_kind(&mut self, pattern: &BindingPattern<'_>) -> Pattern {
        match pattern {
            BindingPattern::BindingIdentifier(name) => Pattern::Name(Rc::from(name.name.as_str())),
            BindingPattern::AssignmentPattern(given) => {
                let inner = self.binding(&given.left);
                Pattern::Default(Box::new(inner), Box::new(self.js(&given.right)))
            }
            BindingPattern::ArrayPattern(list) => {
                let elements = list.elements.iter();
                let mut out: Vec<Pattern> =
                    elements.map(|e| e.as_ref().map_or(Pattern::Nothing, |e| self.binding(e))).collect();
                out.extend(
                    list.rest.iter().map(|rest| Pattern::Star(Box::new(self.binding(&rest.argument)))),
                );
                Pattern::List(out)
            }
            BindingPattern::ObjectPattern(map) => {
                let mut out = Vec::new();
                for property in &map.properties {
                    let key = self.key(&property.key, property.computed);
                    out.push((Some(key), self.binding(&property.value)));
                }
                out.extend(map.rest.iter().map(|rest| (None, self.binding(&rest.argument))));
                Pattern::Map(out)
            }
        }
    }

    fn jsx(&mut self, element: &ast::JSXElement<'_>) -> Vec<Node> {
        let mut out = Vec::new();
        for attribute in &element.opening_element.attributes {
            match attribute {
                ast::JSXAttributeItem::SpreadAttribute(spread) => out.push(self.js(&spread.argument)),
                ast::JSXAttributeItem::Attribute(attribute) => match &attribute.value {
                    Some(ast::JSXAttributeValue::ExpressionContainer(held)) => {
                        out.extend(held.expression.as_expression().map(|expression| self.js(expression)));
                    }
                    Some(ast::JSXAttributeValue::Element(inner)) => {
                        out.extend(self.deeper(|lower| lower.jsx(inner)).unwrap_or_default());
                    }
                    _ => {}
                },
            }
        }
        out.extend(self.jsx_children(&element.children));
        out
    }

    fn jsx_children(&mut self, children: &[ast::JSXChild<'_>]) -> Vec<Node> {
        let mut out = Vec::new();
        for child in children {
            match child {
                ast::JSXChild::Element(inner) => {
                    out.extend(self.deeper(|lower| lower.jsx(inner)).unwrap_or_default());
                }
                ast::JSXChild::Fragment(inner) => {
                    out.extend(self.deeper(|lower| lower.jsx_children(&inner.children)).unwrap_or_default());
                }
                ast::JSXChild::ExpressionContainer(held) => {
                    out.extend(held.expression.as_expression().map(|expression| self.js(expression)));
                }
                ast::JSXChild::Spread(spread) => out.push(self.js(&spread.expression)),
                ast::JSXChild::Text(_) => {}
            }
        }
        out
    }
}
