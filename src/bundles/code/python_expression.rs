//! Python brought to the common tree: expressions.

use std::rc::Rc;

use ruff_python_ast::{self as ast, Expr, FStringPart, InterpolatedStringElement, Number};
use ruff_text_size::Ranged;

use super::python::{Lower, start};
use super::tree::{Argument, Function, Kind, Node, Operator, Pattern, Statement};

impl Lower {
    /// An expression; one that is too deep is unknown.
    pub fn expression(&mut self, expression: &Expr) -> Node {
        let at = start(expression);
        let kind = self.deeper(|lower| lower.kind(expression)).unwrap_or(Kind::Unknown(Vec::new()));
        Node::new(kind, at)
    }

    fn boxed(&mut self, expression: &Expr) -> Box<Node> {
        Box::new(self.expression(expression))
    }

    fn all(&mut self, expressions: &[Expr]) -> Vec<Node> {
        expressions.iter().map(|expression| self.expression(expression)).collect()
    }

    fn kind(&mut self, expression: &Expr) -> Kind {
        match expression {
            Expr::StringLiteral(text) => Kind::Text(Rc::from(text.value.to_str())),
            Expr::BytesLiteral(bytes) => Kind::Bytes(bytes.value.bytes().collect::<Vec<u8>>().into()),
            Expr::FString(text) => {
                let mut pieces = Vec::new();
                for part in text.value.as_slice() {
                    match part {
                        FStringPart::Literal(literal) => {
                            pieces.push(Node::new(Kind::Text(Rc::from(literal.as_str())), start(expression)));
                        }
                        FStringPart::FString(text) => self.pieces(&text.elements, &mut pieces),
                    }
                }
                Kind::Template(pieces)
            }
            Expr::TString(text) => {
                let mut pieces = Vec::new();
                for part in text.value.as_slice() {
                    self.pieces(&part.elements, &mut pieces);
                }
                Kind::Template(pieces)
            }
            Expr::NumberLiteral(number) => match &number.value {
                Number::Int(int) => match int.as_i64() {
                    Some(int) => Kind::Number(int as f64),
                    // Too large for a number here: its digits, of which bytes may be made.
                    None => Kind::Text(Rc::from(int.to_string())),
                },
                Number::Float(float) => Kind::Number(*float),
                Number::Complex { .. } => Kind::Unknown(Vec::new()),
            },
            Expr::BooleanLiteral(literal) => Kind::Bool(literal.value),
            Expr::NoneLiteral(_) => Kind::Null,
            Expr::EllipsisLiteral(_) | Expr::IpyEscapeCommand(_) => Kind::Unknown(Vec::new()),
            Expr::Name(name) => Kind::Name(Rc::from(name.id.as_str())),
            Expr::Attribute(attribute) => {
                Kind::Member(self.boxed(&attribute.value), Rc::from(attribute.attr.as_str()))
            }
            Expr::Subscript(subscript) => match &*subscript.slice {
                Expr::Slice(slice) => {
                    let parts = [&slice.lower, &slice.upper, &slice.step];
                    let parts = parts.map(|part| part.as_deref().map(|part| self.boxed(part)));
                    Kind::Slice(self.boxed(&subscript.value), parts)
                }
                index => Kind::Index(self.boxed(&subscript.value), self.boxed(index)),
            },
            Expr::Slice(slice) => {
                let parts = [&slice.lower, &slice.upper, &slice.step];
                Kind::Unknown(parts.into_iter().flatten().map(|part| self.expression(part)).collect())
            }
            Expr::Call(call) => {
                let callee = self.boxed(&call.func);
                Kind::Call { callee, arguments: self.arguments(&call.arguments), is_new: false }
            }
            Expr::BinOp(binary) if binary.op == ast::Operator::Add => {
                // A row of `+` leans to the left, as deep as it is long.
                let (mut row, mut left) = (vec![&*binary.right], &*binary.left);
                while let Expr::BinOp(next) = left
                    && next.op == ast::Operator::Add
                {
                    row.push(&next.right);
                    left = &next.left;
                }
                row.push(left);
                Kind::Sum(row.into_iter().rev().map(|operand| self.expression(operand)).collect())
            }
            Expr::BinOp(binary) => {
                let operator = match binary.op {
                    ast::Operator::Sub => Operator::Subtract,
                    ast::Operator::Mult => Operator::Multiply,
                    ast::Operator::Div | ast::Operator::FloorDiv => Operator::Divide,
                    ast::Operator::Mod => Operator::Modulo,
                    ast::Operator::BitXor => Operator::Xor,
                    ast::Operator::BitAnd => Operator::And,
                    ast::Operator::BitOr => Operator::Or,
                    ast::Operator::LShift => Operator::ShiftLeft,
                    ast::Operator::RShift => Operator::ShiftRight,
                    _ => {
                        return Kind::Unknown(vec![
                            self.expression(&binary.left),
                            self.expression(&binary.right),
                        ]);
                    }
                };
                Kind::Binary(operator, self.boxed(&binary.left), self.boxed(&binary.right))
            }
            Expr::UnaryOp(unary) => match unary.op {
                ast::UnaryOp::Not => Kind::Not(self.boxed(&unary.operand)),
                ast::UnaryOp::USub => Kind::Minus(self.boxed(&unary.operand)),
                _ => Kind::Unknown(vec![self.expression(&unary.operand)]),
            },
            Expr::BoolOp(operation) => Kind::Choice(self.all(&operation.values)),
            Expr::If(choice) => {
                let test = self.expression(&choice.test);
                let both = vec![self.expression(&choice.body), self.expression(&choice.orelse)];
                let at = start(expression);
                Kind::Sequence(vec![test, Node::new(Kind::Choice(both), at)])
            }
            Expr::Compare(comparison) => {
                let left = self.boxed(&comparison.left);
                let at = start(expression);
                let operator = match &*comparison.ops {
                    [ast::CmpOp::Eq | ast::CmpOp::Is] => Some(Operator::Equal),
                    [ast::CmpOp::NotEq | ast::CmpOp::IsNot] => Some(Operator::Unequal),
                    _ => None,
                };
                if let (Some(operator), [right]) = (operator, &*comparison.comparators) {
                    return Kind::Binary(operator, left, self.boxed(right));
                }
                let rest = Node::new(Kind::List(self.all(&comparison.comparators)), at);
                Kind::Binary(Operator::Compare, left, Box::new(rest))
            }
            Expr::List(list) => Kind::List(self.all(&list.elts)),
            Expr::Tuple(tuple) => Kind::List(self.all(&tuple.elts)),
            Expr::Set(set) => Kind::List(self.all(&set.elts)),
            Expr::Dict(dict) => {
                let entry = |item: &ast::DictItem, lower: &mut Self| {
                    (item.key.as_ref().map(|key| lower.expression(key)), lower.expression(&item.value))
                };
                Kind::Map(dict.items.iter().map(|item| entry(item, self)).collect())
            }
            Expr::Lambda(lambda) => {
                let at = start(expression);
                let (parameters, rest) = match &lambda.parameters {
                    Some(parameters) => self.parameters(parameters),
                    None => (Vec::new(), None),
                };
                let body = vec![Statement::Return(Some(self.expression(&lambda.body)))];
                let source = self.source(at, expression.range().end().to_u32());
                Kind::Function(Rc::new(Function { name: None, parameters, rest, body, source }))
            }
            Expr::ListComp(made) => self.comprehension(&made.elt, &made.generators),
            Expr::SetComp(made) => self.comprehension(&made.elt, &made.generators),
            Expr::Generator(made) => self.comprehension(&made.elt, &made.generators),
            Expr::DictComp(made) => {
                let key = made.key.as_deref().map(|key| self.expression(key));
                let value = self.expression(&made.value);
                let at = value.at;
                let element = Node::new(Kind::List(key.into_iter().chain([value]).collect()), at);
                let pairs = Kind::Comprehension(Box::new(element), self.generators(&made.generators));
                let pairs = Argument { name: None, value: Node::new(pairs, at), is_spread: false };
                let callee = Box::new(Node::new(Kind::Name(Rc::from("dict")), at));
                Kind::Call { callee, arguments: vec![pairs], is_new: false }
            }
            Expr::Await(awaited) => Kind::Await(self.boxed(&awaited.value)),
            Expr::Yield(given) => Kind::Yield(given.value.as_ref().map(|value| self.boxed(value))),
            Expr::YieldFrom(given) => Kind::Delegate(self.boxed(&given.value)),
            Expr::Starred(starred) => Kind::Spread(self.boxed(&starred.value)),
            Expr::Named(named) => {
                Kind::Assign(Box::new(self.pattern(&named.target)), self.boxed(&named.value))
            }
        }
    }

    fn pieces(&mut self, elements: &[InterpolatedStringElement], out: &mut Vec<Node>) {
        for element in elements {
            match element {
                InterpolatedStringElement::Literal(literal) => {
                    let at = literal.range.start().to_u32();
                    out.push(Node::new(Kind::Text(Rc::from(&*literal.value)), at));
                }
                InterpolatedStringElement::Interpolation(given) => {
                    out.push(self.expression(&given.expression));
                    if let Some(format) = &given.format_spec {
                        // A format changes how the value looks; what stands in it may call something.
                        let mut parts = Vec::new();
                        self.deeper(|lower| lower.pieces(&format.elements, &mut parts));
                        parts.retain(|part| !matches!(part.kind, Kind::Text(_)));
                        if !parts.is_empty() {
                            out.push(Node::new(Kind::Unknown(parts), given.range.start().to_u32()));
                        }
                    }
                }
            }
        }
    }

    fn arguments(&mut self, arguments: &ast::Arguments) -> Vec<Argument> {
        let mut out = Vec::new();
        for argument in &arguments.args {
            let (value, is_spread) = match argument {
                Expr::Starred(starred) => (self.expression(&starred.value), true),
                other => (self.expression(other), false),
            };
            out.push(Argument { name: None, value, is_spread });
        }
        for keyword in &arguments.keywords {
            let name = keyword.arg.as_ref().map(|name| Rc::from(name.as_str()));
            let is_spread = name.is_none();
            out.push(Argument { name, value: self.expression(&keyword.value), is_spread });
        }
        out
    }

    fn comprehension(&mut self, element: &Expr, generators: &[ast::Comprehension]) -> Kind {
        Kind::Comprehension(self.boxed(element), self.generators(generators))
    }

    fn generators(&mut self, generators: &[ast::Comprehension]) -> Vec<(Pattern, Node, Vec<Node>)> {
        let one = |made: &ast::Comprehension, lower: &mut Self| {
            (lower.pattern(&made.target), lower.expression(&made.iter), lower.all(&made.ifs))
        };
        generators.iter().map(|made| one(made, self)).collect()
    }
}
