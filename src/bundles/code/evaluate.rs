//! What an expression is worth.

use std::rc::Rc;

use super::Language;
use super::follow::{LEVELS_MAX, Walk};
use super::taint::Taint;
use super::tree::{Argument, Kind, Node, Operator, Pattern};
use super::value::{ELEMENTS_MAX, Shape, Value, join};

/// What a thrown value hands on to where it is caught.
const RAISED: Taint = Taint::union(&[super::name::PUT_TOGETHER, Taint::NETWORK, Taint::INPUT]);

impl Walk<'_> {
    /// The value of an expression.
    pub fn value(&mut self, node: &Node, scope: usize) -> Value {
        if self.again > 0 {
            self.step(1);
        }
        if self.levels >= LEVELS_MAX {
            return Value::default();
        }
        self.levels += 1;
        let value = self.kind(node, scope);
        self.levels -= 1;
        value
    }

    fn values(&mut self, nodes: &[Node], scope: usize) -> Vec<Value> {
        let mut out = Vec::with_capacity(nodes.len());
        for node in nodes {
            if let Kind::Spread(inner) = &node.kind {
                let value = self.value(inner, scope);
                match self.elements(&value) {
                    Some(elements) if elements.len() + out.len() <= ELEMENTS_MAX => out.extend(elements),
                    _ => out.push(Value::unknown(value.deep_taint())),
                }
            } else {
                out.push(self.value(node, scope));
            }
        }
        out
    }

    fn kind(&mut self, node: &Node, scope: usize) -> Value {
        match &node.kind {
            Kind::Text(text) => {
                let is_escaped = self.is_escaped(node.at as usize, text.len());
                Value::text(text.clone()).with(if is_escaped { Taint::HIDDEN } else { Taint::NONE })
            }
            Kind::Bytes(bytes) => {
                let is_escaped = self.is_escaped(node.at as usize, bytes.len());
                let taint = if is_escaped { Taint::HIDDEN } else { Taint::NONE };
                Value::of(Shape::Bytes(bytes.clone())).with(taint)
            }
            Kind::Number(number) => Value::of(Shape::Number(*number)),
            Kind::Bool(is) => Value::of(Shape::Bool(*is)),
            Kind::Null => Value::of(Shape::Null),
            // A value with methods of its own: its `exec` runs no code.
            Kind::Pattern(text) => Value::api("RegExp()").about(Some(text.clone())),
            Kind::Name(name) => {
                // Escapes in a name (`\u0065val`) have no use but to hide it.
                let is_escaped = self.language == Language::JavaScript
                    && self.place.is_none()
                    && self.text.as_bytes().get(node.at as usize) == Some(&b'\\');
                self.name(name, scope).with(if is_escaped { Taint::HIDDEN } else { Taint::NONE })
            }
            Kind::Member(base, name) if is_super(base) => {
                self.at = node.at;
                match self.of_parents(name, scope) {
                    Some(value) => value,
                    None => {
                        let base = self.value(base, scope);
                        self.member(&base, name, false)
                    }
                }
            }
            Kind::Member(base, name) => {
                let base = self.value(base, scope);
                self.at = node.at;
                self.member(&base, name, false)
            }
            Kind::Index(base, index) => {
                let is_plain = matches!(index.kind, Kind::Text(_));
                let (base, index) = (self.value(base, scope), self.value(index, scope));
                self.at = node.at;
                self.index(&base, &index, is_plain)
            }
            Kind::Slice(base, parts) => {
                let base = self.value(base, scope);
                let parts = parts.each_ref().map(|part| part.as_ref().map(|part| self.value(part, scope)));
                super::fold::slice(&base, &parts)
            }
            Kind::Call { callee: function, arguments, is_new } => {
                let callee = self.value(function, scope);
                let nodes = arguments;
                let arguments = self.arguments(nodes, scope);
                self.at = node.at;
                if self.language == Language::JavaScript
                    && is_super(function)
                    && let Some(value) = self.of_parents("constructor", scope)
                {
                    return self.call(&value, &arguments, node.at, false);
                }
                if let Some(value) = self.assigning(&callee, function, nodes, &arguments, scope) {
                    return value;
                }
                if let (Kind::Member(owner, name), Shape::Method(method)) = (&function.kind, &callee.shape)
                    && let Some(value) = self.grown(&method.0, name, &arguments)
                {
                    self.rebind(owner, value, scope);
                    return Value::default();
                }
                self.call(&callee, &arguments, node.at, *is_new)
            }
            Kind::Sum(nodes) => {
                let values: Vec<_> = nodes.iter().map(|node| self.value(node, scope)).collect();
                if let [left, right] = values.as_slice()
                    && let Some(value) = self.by_class(None, left, right, node.at)
                {
                    return value;
                }
                self.sum(values)
            }
            Kind::Binary(operator, left, right) => {
                let (left, right) = (self.value(left, scope), self.value(right, scope));
                if let Some(value) = self.by_class(Some(*operator), &left, &right, node.at) {
                    return value;
                }
                if *operator == Operator::Or
                    && let Some(value) = self.piped_programs(&left, &right, node.at)
                {
                    return value;
                }
                self.binary(*operator, &left, &right)
            }
            Kind::Not(inner) => {
                let inner = self.value(inner, scope);
                inner.is_truthy().map_or_else(Value::default, |is| Value::of(Shape::Bool(!is)))
            }
            Kind::Minus(inner) => {
                let inner = self.value(inner, scope);
                match inner.as_number() {
                    Some(number) => Value::of(Shape::Number(-number)),
                    None => Value::unknown(inner.taint),
                }
            }
            Kind::Template(nodes) => {
                let values: Vec<_> = nodes.iter().map(|node| self.value(node, scope)).collect();
                concatenated(&values)
            }
            Kind::List(nodes) => Value::list(self.values(nodes, scope)),
            Kind::Map(entries) => self.map(entries, scope),
            Kind::Function(function) => self.function(function, scope),
            Kind::Class(class) => self.class(class, scope),
            Kind::Choice(nodes) => {
                let values: Vec<_> = nodes.iter().map(|node| self.value(node, scope)).collect();
                values.into_iter().reduce(Value::or).unwrap_or_default()
            }
            Kind::Sequence(nodes) => {
                let last = nodes.iter().map(|node| self.value(node, scope)).last().unwrap_or_default();
                // `(0, eval)` is `eval` by another name, and reaches all of the program.
                match last.api_name() {
                    Some(name) if &**name == "eval" => Value::api("eval.indirect").with(last.taint),
                    _ => last,
                }
            }
            Kind::Comprehension(element, loops) => self.comprehension(element, loops, scope),
            Kind::Assign(pattern, value) => {
                let value = self.value(value, scope);
                self.bind(pattern, value.clone(), scope);
                value
            }
            Kind::Await(inner) | Kind::Spread(inner) => self.value(inner, scope),
            Kind::Entered(inner) => {
                let value = self.value(inner, scope);
                self.entered(&value, node.at)
            }
            Kind::Yield(inner) => {
                let value = inner.as_ref().map_or_else(Value::default, |inner| self.value(inner, scope));
                let taint = value.deep_taint();
                self.yields(value);
                self.sent().unwrap_or_else(|| Value::unknown(taint))
            }
            Kind::Delegate(inner) => {
                let value = self.value(inner, scope);
                self.delegate(&value, node.at)
            }
            // What an error tells of secrets is for whoever reads it.
            Kind::Raised => Value { taint: self.raised.taint & RAISED, ..self.raised.clone() },
            Kind::Getter(inner) => Value::of(Shape::Getter(Rc::new(self.value(inner, scope)))),
            Kind::Quoted(text) => {
                self.look_at_code(text, node.at, "a type that is worked out as code");
                Value::default()
            }
            Kind::Tagged(function, pieces) => {
                let callee = self.value(function, scope);
                let pieces: Vec<Value> = pieces.iter().map(|piece| self.value(piece, scope)).collect();
                self.tagged(&callee, &pieces, node.at)
            }
            Kind::Unknown(parts) => {
                let taint =
                    parts.iter().fold(Taint::NONE, |all, part| all | self.value(part, scope).deep_taint());
                Value::unknown(taint)
            }
        }
    }

    /// What entering a context gives: what its class says, what a generator gives first, or the thing itself.
    fn entered(&mut self, context: &Value, at: u32) -> Value {
        match &context.shape {
            Shape::Any(values) => {
                let values: Vec<_> = values.iter().map(|value| self.entered(value, at)).collect();
                values.into_iter().reduce(Value::or).unwrap_or_default()
            }
            Shape::List(values) => values.first().cloned().unwrap_or_default().with(context.taint),
            Shape::Object(number) => {
                let class = self.objects[*number].class;
                let enter = ["__enter__", "__aenter__"].iter().find_map(|name| self.in_class(class, name, 0));
                match enter.filter(|_| self.calls < 8) {
                    Some(enter) => self.call_of(&enter, context, &[], at),
                    None => context.clone(),
                }
            }
            _ => context.clone(),
        }
    }

    /// A template handed to a function: one of the file gets pieces and values, one of a library the text as a rule.
    fn tagged(&mut self, callee: &Value, pieces: &[Value], at: u32) -> Value {
        if matches!(callee.shape, Shape::Function(..) | Shape::Bound(_) | Shape::Object(_)) {
            let (texts, given): (Vec<Value>, Vec<Value>) =
                pieces.iter().cloned().partition(|piece| matches!(piece.shape, Shape::Text(_)));
            let mut arguments = vec![(None, Value::list(texts))];
            arguments.extend(given.into_iter().map(|value| (None, value)));
            return self.call(callee, &arguments, at, false);
        }
        self.call(callee, &[(None, concatenated(pieces))], at, false)
    }

    /// What something is after a method that puts something in; `None` for other methods.
    fn grown(&mut self, base: &Value, name: &str, arguments: &super::call::Arguments) -> Option<Value> {
        if !super::fold::is_growth(base, name) {
            return None;
        }
        if !self.step(base.size() / 8) {
            let given = arguments.iter().fold(Taint::NONE, |all, (_, value)| all | value.deep_taint());
            return Some(Value::unknown(base.deep_taint() | given));
        }
        super::fold::grown(base, name, arguments)
    }

    fn map(&mut self, entries: &[(Option<Node>, Node)], scope: usize) -> Value {
        let (mut out, mut taint) = (Vec::with_capacity(entries.len()), Taint::NONE);
        for (key, node) in entries {
            let value = self.value(node, scope);
            let Some(key) = key else {
                match &value.shape {
                    Shape::Map(inner) => out.extend(inner.iter().cloned()),
                    _ => taint |= value.deep_taint(),
                }
                continue;
            };
            let key = self.value(key, scope);
            out.push((key.known_text().unwrap_or_else(|| key.piece()), value));
        }
        Value::of(Shape::Map(Rc::new(out))).with(taint)
    }

    pub fn arguments(&mut self, arguments: &[Argument], scope: usize) -> Vec<(Option<Rc<str>>, Value)> {
        let mut out = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let value = self.value(&argument.value, scope);
            if !argument.is_spread {
                out.push((argument.name.clone(), value));
                continue;
            }
            match &value.shape {
                Shape::List(values) => out.extend(values.iter().map(|value| (None, value.clone()))),
                Shape::Map(entries) if self.language == Language::Python => {
                    out.extend(entries.iter().map(|(name, value)| (Some(name.clone()), value.clone())));
                }
                _ => out.push((None, Value::unknown(value.deep_taint()))),
            }
        }
        out
    }

    fn comprehension(&mut self, element: &Node, loops: &[(Pattern, Node, Vec<Node>)], scope: usize) -> Value {
        let inner = self.scope(scope);
        let mut out = Vec::new();
        let mut taint = Taint::NONE;
        let is_known = self.comprehend(element, loops, inner, &mut out, &mut taint);
        if is_known { Value::list(out) } else { Value::unknown(taint) }
    }

    /// Runs one level of a comprehension; `false` when not all elements are known.
    fn comprehend(
        &mut self,
        element: &Node,
        loops: &[(Pattern, Node, Vec<Node>)],
        scope: usize,
        out: &mut Vec<Value>,
        taint: &mut Taint,
    ) -> bool {
        let Some(((pattern, iterable, tests), rest)) = loops.split_first() else {
            let value = self.value(element, scope);
            *taint |= value.deep_taint();
            out.push(value);
            return out.len() <= ELEMENTS_MAX;
        };
        let iterated = self.value(iterable, scope);
        *taint |= iterated.deep_taint();
        let elements = self.elements(&iterated);
        let mut is_known = elements.is_some();
        let unknown = || Value::unknown(iterated.deep_taint()).about(iterated.about.clone());
        for (nth, value) in elements.unwrap_or_else(|| vec![unknown()]).into_iter().enumerate() {
            if nth > 0 && (!self.step(2) || !is_known) {
                return false;
            }
            self.again += usize::from(nth > 0);
            match pattern {
                // Not one of two choices: each turn has its own.
                Pattern::Name(name) => {
                    self.scopes[scope].names.insert(name.clone(), value);
                }
                _ => self.bind_fresh(pattern, value, scope),
            }
            for test in tests {
                self.value(test, scope);
            }
            is_known &= self.comprehend(element, rest, scope, out, taint);
            self.again -= usize::from(nth > 0);
        }
        is_known
    }

    fn bind_fresh(&mut self, pattern: &Pattern, value: Value, scope: usize) {
        if let Pattern::List(patterns) = pattern {
            for pattern in patterns {
                if let Pattern::Name(name) = pattern {
                    self.scopes[scope].names.insert(name.clone(), Value::default());
                }
            }
        }
        self.bind(pattern, value, scope);
    }

    /// The value of `a + b + …`.
    pub fn sum(&mut self, values: Vec<Value>) -> Value {
        if values.iter().all(|value| matches!(value.shape, Shape::Number(_))) {
            return Value::of(Shape::Number(values.iter().filter_map(Value::as_number).sum()));
        }
        if values.iter().all(|value| matches!(value.shape, Shape::Bytes(_))) {
            let bytes: Vec<u8> = values.iter().filter_map(Value::as_bytes).flat_map(|b| b.to_vec()).collect();
            if bytes.len() <= super::value::TEXT_BYTES_MAX && self.step(bytes.len() / 32) {
                let taint = values.iter().fold(Taint::NONE, |all, value| all | value.taint);
                return Value::of(Shape::Bytes(bytes.into())).with(taint);
            }
        }
        if values.iter().any(|value| matches!(value.shape, Shape::List(_))) {
            let total: usize = values.iter().filter_map(Value::as_list).map(<[Value]>::len).sum();
            if total > ELEMENTS_MAX || !self.step(total / 16) {
                return Value::unknown(
                    values.iter().fold(Taint::NONE, |all, value| all | value.deep_taint()),
                );
            }
            let mut out = Vec::with_capacity(total);
            for value in &values {
                match value.as_list() {
                    Some(list) => out.extend(list.iter().cloned()),
                    None => out.push(Value::unknown(value.taint)),
                }
            }
            return Value::list(out);
        }
        let bytes: usize = values.iter().map(|value| value.as_text().map_or(0, |text| text.len())).sum();
        if !self.step(bytes / 64) {
            return Value::unknown(values.iter().fold(Taint::NONE, |all, value| all | value.deep_taint()));
        }
        concatenated(&values)
    }

    fn binary(&mut self, operator: Operator, left: &Value, right: &Value) -> Value {
        let taint = left.deep_taint() | right.deep_taint();
        if matches!(operator, Operator::Equal | Operator::Unequal) {
            let is_so = left.is_equal(right).map(|is| is == (operator == Operator::Equal));
            return is_so.map_or_else(Value::default, |is| Value::of(Shape::Bool(is)));
        }
        if let (Shape::Number(a), Shape::Number(b)) = (&left.shape, &right.shape) {
            return super::fold::arithmetic(operator, *a, *b)
                .map_or(Value::unknown(taint), |number| Value::of(Shape::Number(number)).with(taint));
        }
        match (operator, &left.shape) {
            // Paths are put together by `/`.
            (Operator::Divide, Shape::Text(base)) => {
                let path = join([base.clone(), Rc::from("/"), right.piece()]);
                path.map_or(Value::unknown(taint), Value::text).with(taint)
            }
            (Operator::Divide, _) if right.known_text().is_some() && self.language == Language::Python => {
                let path = join([Rc::from("\0/"), right.piece()]);
                path.map_or(Value::unknown(taint), Value::text).with(taint)
            }
            (Operator::Modulo, Shape::Text(format)) => super::fold::percent(format, right).with(taint),
            (Operator::Multiply, Shape::Text(text)) => match right.as_number() {
                Some(times) => super::fold::repeat(text, times).with(taint),
                None => Value::unknown(taint),
            },
            // Whether something is so says nothing of what it is.
            (Operator::Compare, _) => Value::default(),
            _ => Value::unknown(taint),
        }
    }

    /// Whether a literal that begins at `at` is written in escapes that nobody reads.
    fn is_escaped(&self, at: usize, bytes: usize) -> bool {
        if self.place.is_some() {
            return false;
        }
        let source = self.text.as_bytes();
        let end = source.len().min(at + 4 + 6 * bytes.min(400));
        let Some(window) = source.get(at..end) else { return false };
        if bytes == 0 || memchr::memchr(b'\\', window).is_none() {
            return false;
        }
        let is_printable = |pair: &[u8]| matches!(pair, [b'2'..=b'7', digit] if digit.is_ascii_hexdigit());
        let escapes = window.windows(6).filter(|w| match w {
            [b'\\', b'x', rest @ ..] => is_printable(&rest[..2]),
            [b'\\', b'u', b'0', b'0', rest @ ..] => is_printable(rest),
            _ => false,
        });
        escapes.take(400).count() * 2 > bytes.min(400)
    }
}

/// Values as one text.
pub(super) fn concatenated(values: &[Value]) -> Value {
    let taint = values.iter().fold(Taint::NONE, |all, value| all | value.deep_taint());
    let about = values.iter().find_map(|value| value.about.clone());
    if values.iter().all(|value| !matches!(value.shape, Shape::Text(_) | Shape::Any(_) | Shape::Bytes(_))) {
        return Value::unknown(taint).about(about);
    }
    let is_assembled = values.iter().filter(|value| matches!(value.shape, Shape::Text(_))).count() > 1;
    let taint = taint | if is_assembled { Taint::ASSEMBLED } else { Taint::NONE };
    let text = join(values.iter().map(Value::piece));
    let value = text.map_or(Value::unknown(taint), |text| Value::text(text).with(taint)).about(about);
    // Another choice of one piece is another text.
    let Some(nth) = values.iter().position(|value| matches!(value.shape, Shape::Any(_))) else {
        return value;
    };
    let Shape::Any(choices) = &values[nth].shape else { return value };
    choices
        .iter()
        .map(|choice| {
            let piece = |(at, value): (usize, &Value)| if at == nth { choice.piece() } else { value.piece() };
            let text = join(values.iter().enumerate().map(piece));
            text.map_or(Value::unknown(taint), |text| Value::text(text).with(taint))
        })
        .reduce(Value::or)
        .unwrap_or(value)
}

/// Whether something is the class above: `super` or `super()`.
fn is_super(node: &Node) -> bool {
    match &node.kind {
        Kind::Name(name) => &**name == "super",
        Kind::Call { callee, .. } => matches!(&callee.kind, Kind::Name(name) if &**name == "super"),
        _ => false,
    }
}
