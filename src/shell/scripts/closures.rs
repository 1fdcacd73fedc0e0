//! Bodies that run once for each element of a list: comprehensions, arrow functions, blocks, loops behind a statement.
//!
//! A list is what a script wrote down, or one path that stands for all that a folder or pattern holds.

use super::super::programs::Language;
use super::evaluate::{Arguments, Evaluator};
use super::functions;
use super::token::Token;
use super::value::Value;

/// Tokens of bodies that are run again in one script, all elements taken together.
pub(super) const REPEATS_MAX: usize = 1 << 14;

/// Clauses of one comprehension that are followed.
const CLAUSES_MAX: usize = 4;

/// A body that takes an element.
#[derive(Debug)]
struct Body {
    /// Names of its parameters.
    names: Vec<String>,
    /// Index of its first token.
    start: usize,
    /// Index behind its last token; 0 for one expression.
    end: usize,
}

/// Methods that run a body for each element and give the list itself back.
const EACH: &[&str] = &[
    "each",
    "forEach",
    "for_each",
    "each_entry",
    "each_with_index",
    "reverse_each",
    "select",
    "reject",
    "filter",
    "find_all",
    "sort_by",
    "tap",
    "each_child",
    "foreach",
    "find",
    "glob",
    "every",
    "some",
    "partition",
];

/// Methods that run a body for each element and give a list of the results.
const MAPS: &[&str] = &["map", "collect", "flatMap", "flat_map", "filter_map"];

/// Whether a method runs a body for each element.
fn iterates(name: &str) -> bool {
    EACH.contains(&name) || MAPS.contains(&name)
}

/// Names under which a body without parameters finds the element.
fn implicit(language: Language) -> &'static [&'static str] {
    match language {
        Language::Ruby => &["_1", "it"],
        _ => &["$_"],
    }
}

impl Evaluator<'_, '_> {
    /// `f(x) for x in list` behind its first expression, which began at `start`: the expression once for each element.
    pub(super) fn comprehension(&mut self, start: usize, value: Value) -> Value {
        if self.language != Language::Python || self.name_at(0) != Some("for") {
            return value;
        }
        let length = self.at - start;
        let mut out = Vec::new();
        match self.clauses(start, length, 0, &mut out) {
            Some(end) => {
                self.at = end;
                if out.is_empty() { Value::Unknown } else { Value::List(out) }
            }
            None => value,
        }
    }

    /// The clauses from here on; where they end.
    fn clauses(&mut self, start: usize, length: usize, depth: usize, out: &mut Vec<Value>) -> Option<usize> {
        self.at += 1;
        let mut names = Vec::new();
        while let Some(name) = self.name_at(0).filter(|name| *name != "in").map(str::to_owned) {
            names.push(name);
            self.at += 1;
            self.take_sign(",");
        }
        if self.name_at(0) != Some("in") || names.is_empty() {
            return None;
        }
        self.at += 1;
        let list = self.expression();
        let mut elements = functions::elements_of(&list);
        self.skip_condition();
        let behind = self.at;
        let mut end = behind;
        let nests = self.name_at(0) == Some("for") && depth < CLAUSES_MAX;
        if elements.is_empty() && nests {
            elements.push(Value::Unknown);
        }
        for element in elements {
            if !self.repeat(length) {
                break;
            }
            self.bind(&names, &element);
            if nests {
                self.at = behind;
                end = self.clauses(start, length, depth + 1, out)?;
            } else {
                self.at = start;
                out.push(self.expression());
            }
        }
        Some(end)
    }

    /// Skips the conditions of a comprehension.
    fn skip_condition(&mut self) {
        if self.name_at(0) != Some("if") {
            return;
        }
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            match token {
                Token::Sign("(" | "[" | "{") => depth += 1,
                Token::Sign(")" | "]" | "}") if depth == 0 => return,
                Token::Sign(")" | "]" | "}") => depth -= 1,
                Token::Sign(",") if depth == 0 => return,
                Token::Name(name) if depth == 0 && name == "for" => return,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Takes the tokens of one more run from what may still be run again.
    fn repeat(&mut self, length: usize) -> bool {
        let left = self.repeats.checked_sub(length.max(1));
        if left.is_none() {
            self.sink.limited();
        }
        self.repeats = left.unwrap_or(0);
        left.is_some()
    }

    /// Gives an element to the names of a loop, each its part where there are more.
    pub(super) fn bind(&mut self, names: &[String], element: &Value) {
        for (index, name) in names.iter().enumerate() {
            let part = match (names.len(), element) {
                (1, _) | (_, Value::Text(_)) => element.clone(),
                _ => functions::element(element, &Value::Number(i64::try_from(index).unwrap_or(0))),
            };
            self.set(name, part);
        }
    }

    /// The function literal that begins at the next token: an arrow function or `function`, `lambda`, `fn`, `sub`.
    fn function_literal(&self) -> Option<Body> {
        let mut at = self.at;
        let name = |at: usize| self.token_name(at);
        let sign = |at: usize, sign: &str| self.token_is(at, sign);
        match self.language {
            Language::JavaScript | Language::Php => {
                while matches!(name(at), Some("async" | "static")) {
                    at += 1;
                }
                let keyword = matches!(name(at), Some("function" | "fn"));
                if keyword {
                    at += 1;
                    at += usize::from(!sign(at, "(") && name(at).is_some());
                }
                let mut names = Vec::new();
                if sign(at, "(") {
                    at += 1;
                    while let Some(token) = self.token(at).filter(|_| names.len() < 8) {
                        match token {
                            Token::Sign(")") => break,
                            Token::Name(name) => names.push(name.clone()),
                            Token::Sign("," | "&") => {}
                            _ => return None,
                        }
                        at += 1;
                    }
                    if !sign(at, ")") {
                        return None;
                    }
                } else {
                    names.push(name(at)?.to_owned());
                }
                at += 1;
                // `use ($x)` of PHP.
                if name(at) == Some("use") && sign(at + 1, "(") {
                    at = self.behind_bracket(at + 1)?;
                }
                let arrow = sign(at, "=>");
                if !(arrow || keyword) {
                    return None;
                }
                at += usize::from(arrow);
                let end = if sign(at, "{") { self.behind_bracket(at)? } else { 0 };
                // The index comes second.
                names.truncate(1);
                Some(Body { names, start: at + usize::from(end > 0), end })
            }
            Language::Python if name(at) == Some("lambda") => {
                at += 1;
                let mut names = Vec::new();
                while let Some(parameter) = name(at).filter(|_| names.len() < 8) {
                    names.push(parameter.to_owned());
                    at += 1 + usize::from(sign(at + 1, ","));
                }
                sign(at, ":").then_some(Body { names, start: at + 1, end: 0 })
            }
            Language::Perl if name(at) == Some("sub") && sign(at + 1, "{") => {
                Some(Body { names: Vec::new(), start: at + 2, end: self.behind_bracket(at + 1)? })
            }
            Language::Perl if sign(at, "{") => {
                Some(Body { names: Vec::new(), start: at + 1, end: self.behind_bracket(at)? })
            }
            _ => None,
        }
    }

    /// Ruby's block at the next token: `{ |x| … }` or `do |x| … end`.
    fn block(&self) -> Option<Body> {
        if self.language != Language::Ruby {
            return None;
        }
        let braces = self.token_is(self.at, "{");
        if !braces && self.token_name(self.at) != Some("do") {
            return None;
        }
        let end = if braces { self.behind_bracket(self.at)? } else { self.behind_end() };
        let mut at = self.at + 1;
        let mut names = Vec::new();
        if self.token_is(at, "|") {
            at += 1;
            while let Some(name) = self.token_name(at).filter(|_| names.len() < 8) {
                names.push(name.to_owned());
                at += 1 + usize::from(self.token_is(at + 1, ","));
            }
            at += usize::from(self.token_is(at, "|"));
        }
        Some(Body { names, start: at, end })
    }

    /// The index behind the bracket that closes the one at `at`.
    fn behind_bracket(&self, at: usize) -> Option<usize> {
        self.closed_by(at)
    }

    /// The index behind the `end` of the block that begins here; the end of the script without one.
    fn behind_end(&self) -> usize {
        self.closed_by(self.at).unwrap_or(self.length())
    }

    fn closed_by(&self, at: usize) -> Option<usize> {
        let table = self.closes.get_or_init(|| closes(self.all_tokens()));
        table.get(at).copied().filter(|end| *end > 0).map(|end| end as usize)
    }

    /// Runs a body for each element and gives the results.
    fn run_body(&mut self, body: &Body, elements: &[Value]) -> Vec<Value> {
        let back = self.at;
        let mut results = Vec::new();
        // Nothing is known of an empty list either: the body may run.
        let elements = if elements.is_empty() { &[Value::Unknown][..] } else { elements };
        for (index, element) in elements.iter().enumerate() {
            if index > 0 && !self.repeat(8) {
                break;
            }
            if body.names.is_empty() {
                for name in implicit(self.language) {
                    self.set(name, element.clone());
                }
            } else {
                self.bind(&body.names, element);
            }
            self.at = body.start;
            let mut last = Value::Unknown;
            if body.end == 0 {
                last = self.expression();
            } else {
                while self.at + 1 < body.end {
                    let before = self.at;
                    last = self.statement();
                    self.at += usize::from(self.at == before);
                }
            }
            results.push(last);
            // A body is paid for once it was read, when its length is known.
            let length = self.at.saturating_sub(body.start);
            if index + 1 < elements.len() && !self.repeat(length) {
                break;
            }
        }
        self.at = back;
        results
    }

    /// A method of a list whose first argument is a function literal: `list.forEach(x => …)`. The opening bracket is next.
    pub(super) fn closure_argument(&mut self, list: &Value, name: &str) -> Option<Value> {
        let Value::List(elements) = list else { return None };
        if !iterates(name) {
            return None;
        }
        let back = self.at;
        self.at += 1;
        let Some(body) = self.function_literal() else {
            self.at = back;
            return None;
        };
        let results = self.run_body(&body, elements);
        self.at = self.behind_bracket(back).unwrap_or(self.length());
        Some(if MAPS.contains(&name) { Value::List(results) } else { list.clone() })
    }

    /// Ruby's block behind a method, if there is one: `list.each { |x| … }`, `Dir.each_child(folder) do |x| … end`.
    pub(super) fn block_of(&mut self, receiver: &Value, name: &str, result: Value) -> Value {
        let list = match (receiver, &result) {
            (Value::List(_), _) => receiver,
            (_, Value::List(_)) => &result,
            _ => return result,
        };
        if !iterates(name) {
            return result;
        }
        let Some(body) = self.block() else { return result };
        let results = self.run_body(&body, list.elements());
        let list = list.clone();
        self.at = body.end.max(self.at);
        if MAPS.contains(&name) { Value::List(results) } else { list }
    }

    /// A function that is given by its name to a method of a list: `list.forEach(fs.unlinkSync)`, `list.each(&:delete)`.
    pub(super) fn apply_each(&mut self, list: &Value, name: &str, arguments: &Arguments) -> Option<Value> {
        let Value::List(elements) = list else { return None };
        if !iterates(name) {
            return None;
        }
        let first = arguments.first();
        match &first {
            Value::Name(_) => {}
            Value::Text(_) if self.language == Language::Ruby => {}
            _ => return None,
        }
        let results = self.apply(&first, elements);
        Some(if MAPS.contains(&name) { Value::List(results) } else { list.clone() })
    }

    fn apply(&mut self, function: &Value, elements: &[Value]) -> Vec<Value> {
        let mut results = Vec::new();
        for element in elements {
            if !self.repeat(8) {
                break;
            }
            let one = Arguments { positional: vec![element.clone()], named: Vec::new() };
            results.push(match function {
                // A symbol names a method of the element.
                Value::Text(method) if self.language == Language::Ruby => {
                    self.method(element.clone(), method, &Arguments::default())
                }
                Value::Text(function) => self.call(Value::Name(function.clone()), one),
                function => self.call(function.clone(), one),
            });
        }
        results
    }

    /// Functions that take a function first and a list behind it: `map(f, list)`, `array_map('f', list)`, `find(sub { … },
    /// folder)`, `map { … } list`. The name is behind; what follows it is next.
    pub(super) fn function_first(&mut self, name: &str) -> Option<Value> {
        let language = self.language;
        let folder = language == Language::Perl && matches!(name, "find" | "finddepth");
        let wanted = match language {
            Language::Python => matches!(name, "map" | "filter"),
            Language::Php => matches!(name, "array_map" | "array_filter" | "array_walk"),
            Language::Perl => matches!(name, "map" | "grep") || folder,
            _ => false,
        };
        if !wanted {
            return None;
        }
        let back = self.at;
        let bracket = self.take_sign("(");
        let list_first = name == "array_walk";
        if list_first {
            let list = listed(self.expression());
            self.take_sign(",");
            let body = self.function_literal();
            let results = match body {
                Some(body) => self.run_body(&body, &list),
                None => {
                    let function = self.expression();
                    self.apply(&function, &list)
                }
            };
            self.at = self.behind_bracket(back).unwrap_or(self.length());
            return Some(Value::List(results));
        }
        let body = self.function_literal();
        let mut function = Value::Unknown;
        match &body {
            Some(body) if body.end > 0 => self.at = body.end,
            // Where an expression ends is known only when it was read.
            Some(body) => {
                self.at = body.start;
                self.skip_argument();
            }
            None if bracket => function = self.expression(),
            None => {
                self.at = back;
                return None;
            }
        }
        if !self.take_sign(",") && body.is_none() {
            self.at = back;
            return None;
        }
        let mut list = listed(self.expression());
        if folder {
            list = list.into_iter().map(|path| functions::below(&path)).collect();
            if let Some(path) = list.first().cloned() {
                self.set("$File::Find::name", path);
            }
        }
        let results = match &body {
            Some(body) => self.run_body(body, &list),
            None if matches!(function, Value::Name(_) | Value::Text(_)) => {
                if language == Language::Python && matches!(&function, Value::Name(name) if name == "chr") {
                    self.at = back;
                    return None;
                }
                self.apply(&function, &list)
            }
            None => Vec::new(),
        };
        if bracket {
            self.at = self.behind_bracket(back).unwrap_or(self.length());
        }
        Some(Value::List(results))
    }

    /// Skips to the comma or bracket that ends an argument.
    fn skip_argument(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            match token {
                Token::Sign("(" | "[" | "{") => depth += 1,
                Token::Sign(")" | "]" | "}") if depth == 0 => return,
                Token::Sign(")" | "]" | "}") => depth -= 1,
                Token::Sign(",") if depth == 0 => return,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Perl's `statement for list`, of which the statement began at `start`.
    pub(super) fn loop_behind(&mut self, start: usize) {
        if self.language != Language::Perl || !matches!(self.name_at(0), Some("for" | "foreach")) {
            return;
        }
        let length = self.at - start;
        self.at += 1;
        let list = listed(self.expression());
        let end = self.at;
        for element in list {
            if !self.repeat(length) {
                break;
            }
            self.set("$_", element);
            self.at = start;
            self.statement();
        }
        self.at = end;
    }

    /// Perl's `for my $x (list) {`: the body follows as statements of its own.
    pub(super) fn loop_before(&mut self) {
        self.at += 1;
        if matches!(self.name_at(0), Some("my" | "our")) {
            self.at += 1;
        }
        let name = self.take_name().filter(|name| name.starts_with('$')).unwrap_or_else(|| "$_".to_owned());
        if self.token_is(self.at, "(") {
            let list = self.expression();
            let one = functions::one_of(&list);
            self.set(&name, one);
        }
    }
}

/// For each bracket and each word that opens a block, the index behind what closes it; 0 where nothing does.
fn closes(tokens: &[Token]) -> Vec<u32> {
    let mut table = vec![0; tokens.len()];
    let (mut brackets, mut blocks) = (Vec::new(), Vec::new());
    for (index, token) in tokens.iter().enumerate() {
        let closed = match token {
            Token::Sign("(" | "[" | "{") => {
                brackets.push(index);
                None
            }
            Token::Sign(")" | "]" | "}") => brackets.pop(),
            Token::Name(name) => match name.as_str() {
                "do" | "begin" | "case" | "def" => {
                    blocks.push(index);
                    None
                }
                // One of these behind an expression has no end of its own.
                "if" | "unless" | "while" | "until"
                    if matches!(index.checked_sub(1).map(|at| &tokens[at]), None | Some(Token::End)) =>
                {
                    blocks.push(index);
                    None
                }
                "end" => blocks.pop(),
                _ => None,
            },
            _ => None,
        };
        if let Some(open) = closed {
            table[open] = u32::try_from(index + 1).unwrap_or(0);
        }
    }
    table
}

/// The elements of a list; a text stands for itself.
fn listed(value: Value) -> Vec<Value> {
    match value {
        Value::List(list) => list,
        Value::Text(text) => vec![Value::Text(text)],
        _ => Vec::new(),
    }
}
