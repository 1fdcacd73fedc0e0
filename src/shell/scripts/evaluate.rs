//! Follows a script through its tokens: assignments are kept, constants are computed, calls are told.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::super::argument::{Argument, HOLE};
use super::super::effect::{EffectKind, Target, TargetKind};
use super::super::programs::{Language, Sink};
use super::token::{Piece, TOKENS_MAX, Token, tokens};
use super::value::Value;
use super::{actions, functions, sinks, tell};

/// Levels of brackets and calls that are followed.
const DEPTH_MAX: usize = 48;

/// Scripts inside scripts of the same language (`exec("…")`) that are followed.
const SCRIPTS_MAX: usize = 6;

/// Variables that are remembered whatever they hold.
const VARIABLES_MAX: usize = 1024;

/// Variables that are remembered if they hold a text of no more than so many bytes.
const SHORT_VARIABLES_MAX: usize = 1 << 14;
const SHORT_BYTES: usize = 256;

/// What a script was seen to do with the network and with processes; together they make a shell for others.
#[derive(Default)]
pub(super) struct Facts {
    /// It connects to a host; which.
    pub connects: Option<String>,
    /// It listens.
    pub listens: bool,
    /// It joins descriptors to a connection.
    pub redirects: bool,
    /// It starts a shell that waits for commands.
    pub shell: bool,
    /// It starts something that is not known.
    pub unknown: bool,
    /// It starts anything.
    pub spawns: bool,
    /// It fetches; from where.
    pub fetched: Option<String>,
    /// It runs code that is not known.
    pub evaluates: bool,
}

/// Arguments of a call.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// By position.
    pub positional: Vec<Value>,
    /// By name.
    pub named: Vec<(String, Value)>,
}

impl Arguments {
    /// The argument at a position, or under one of the names.
    pub fn get(&self, index: usize, names: &[&str]) -> Option<&Value> {
        let named =
            || self.named.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value);
        self.positional.get(index).or_else(named)
    }

    /// The first argument; unknown when there is none.
    pub fn first(&self) -> Value {
        self.positional.first().cloned().unwrap_or_default()
    }

    /// Whether an argument of this name is given.
    pub fn has(&self, name: &str) -> bool {
        self.named.iter().any(|(n, _)| n == name)
    }
}

/// State of one script.
pub(super) struct Evaluator<'t, 's> {
    /// Its language.
    pub language: Language,
    tokens: &'t [Token],
    /// Where brackets and blocks end, found when it is first asked for.
    pub closes: OnceCell<Vec<u32>>,
    /// The next token.
    pub at: usize,
    depth: usize,
    scripts: usize,
    /// Tokens of bodies that may still be run again.
    pub repeats: usize,
    variables: HashMap<String, Value>,
    /// See [`Facts`].
    pub facts: Facts,
    /// The script as an argument, for its place in the command.
    pub text: &'t Argument,
    /// Where effects go.
    pub sink: &'s mut dyn Sink,
}

/// See [`super::analyse`].
pub(super) fn analyse(language: Language, text: &Argument, sink: &mut dyn Sink) {
    let tokens = tokens(language, &text.text);
    if tokens.len() >= TOKENS_MAX {
        sink.limited();
    }
    if forks_without_end(language, &tokens) {
        tell(sink, EffectKind::ForkBomb, None, "script");
    }
    let mut evaluator = Evaluator {
        language,
        tokens: &tokens,
        closes: OnceCell::new(),
        at: 0,
        depth: 0,
        scripts: 0,
        repeats: super::closures::REPEATS_MAX,
        variables: HashMap::new(),
        facts: Facts::default(),
        text,
        sink,
    };
    evaluator.run();
    evaluator.network_shell();
}

/// Whether a script forks in a loop that has no end, as in `fork while fork` and `while True: os.fork()`.
fn forks_without_end(language: Language, tokens: &[Token]) -> bool {
    let is =
        |token: &Token, names: &[&str]| matches!(token, Token::Name(name) if names.contains(&name.as_str()));
    let forks = tokens.iter().filter(|token| is(token, &["fork", "pcntl_fork"])).count();
    if forks == 0 {
        return false;
    }
    let endless = tokens.windows(2).any(|pair| match pair {
        [word, Token::Number(1)] => is(word, &["while"]),
        [word, next] if is(word, &["while"]) => is(next, &["True", "true", "fork"]),
        [word, Token::Sign("{")] => language == Language::Ruby && is(word, &["loop"]),
        [word, next] => language == Language::Ruby && is(word, &["loop"]) && is(next, &["do"]),
        _ => false,
    }) || tokens
        .windows(3)
        .any(|three| matches!(three, [word, Token::Sign("("), Token::Number(1)] if is(word, &["while"])));
    endless
        && (language != Language::Perl
            || forks > 1
            || !tokens.iter().any(|token| is(token, &["wait", "waitpid", "exit"])))
}

impl Evaluator<'_, '_> {
    fn run(&mut self) {
        while self.at < self.tokens.len() {
            let before = self.at;
            self.statement();
            self.loop_behind(before);
            if self.at == before {
                self.at += 1;
            }
        }
    }

    /// A script inside this one, with the same variables.
    pub fn nested(&mut self, script: &str) {
        if self.scripts >= SCRIPTS_MAX {
            self.sink.unknown_command();
            return;
        }
        let inner = tokens(self.language, script);
        if inner.len() >= TOKENS_MAX {
            self.sink.limited();
        }
        let mut evaluator = Evaluator {
            language: self.language,
            tokens: &inner,
            closes: OnceCell::new(),
            at: 0,
            depth: self.depth,
            scripts: self.scripts + 1,
            repeats: self.repeats,
            variables: std::mem::take(&mut self.variables),
            facts: std::mem::take(&mut self.facts),
            text: self.text,
            sink: &mut *self.sink,
        };
        evaluator.run();
        let (variables, facts, repeats) = (evaluator.variables, evaluator.facts, evaluator.repeats);
        (self.variables, self.facts, self.repeats) = (variables, facts, repeats);
    }

    /// A connection and a shell in one script are a shell for others.
    fn network_shell(&mut self) {
        let facts = &self.facts;
        // What a callback gets is what was fetched: `get(url, r => r.on('end', () => eval(data)))`.
        if let Some(text) = facts.fetched.clone().filter(|_| facts.evaluates) {
            let target = Target { text, has_glob: false, kind: TargetKind::Network };
            tell(self.sink, EffectKind::FetchAndExecute, Some(target), "script");
        }
        let facts = &self.facts;
        let connected = facts.connects.is_some() || facts.listens;
        let serves = facts.shell || (facts.spawns && (facts.redirects || facts.unknown));
        if connected && serves {
            let kind = if facts.listens { EffectKind::BindShell } else { EffectKind::ReverseShell };
            let host = facts.connects.clone().filter(|host| !host.is_empty());
            let target = host.map(|text| Target { text, has_glob: false, kind: TargetKind::Network });
            tell(self.sink, kind, target, "script");
        }
    }

    pub(super) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    pub(super) fn peek_at(&self, offset: usize) -> Option<&Token> {
        self.tokens.get(self.at + offset)
    }

    pub(super) fn token(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at)
    }

    pub(super) fn token_is(&self, at: usize, sign: &str) -> bool {
        matches!(self.tokens.get(at), Some(Token::Sign(s)) if *s == sign)
    }

    pub(super) fn token_name(&self, at: usize) -> Option<&str> {
        match self.tokens.get(at) {
            Some(Token::Name(name)) => Some(name),
            _ => None,
        }
    }

    pub(super) fn all_tokens(&self) -> &[Token] {
        self.tokens
    }

    pub(super) fn length(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn is_sign(&self, offset: usize, sign: &str) -> bool {
        matches!(self.peek_at(offset), Some(Token::Sign(s)) if *s == sign)
    }

    pub(super) fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(0, sign);
        self.at += usize::from(found);
        found
    }

    pub(super) fn name_at(&self, offset: usize) -> Option<&str> {
        match self.peek_at(offset) {
            Some(Token::Name(name)) => Some(name),
            _ => None,
        }
    }

    pub(super) fn take_name(&mut self) -> Option<String> {
        let name = self.name_at(0)?.to_owned();
        self.at += 1;
        Some(name)
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        let count = self.variables.len();
        let is_short = matches!(&value, Value::Text(text) if text.len() <= SHORT_BYTES);
        if count < VARIABLES_MAX
            || is_short && count < SHORT_VARIABLES_MAX
            || self.variables.contains_key(name) && (is_short || count <= VARIABLES_MAX)
        {
            self.variables.insert(name.to_owned(), value);
        } else {
            // What it held before would be wrong.
            self.variables.remove(name);
        }
    }

    /// One statement, or as much of it as is understood.
    pub(super) fn statement(&mut self) -> Value {
        match self.peek() {
            Some(Token::Name(name)) => match (self.language, name.as_str()) {
                (Language::Python, "import") => self.import(),
                (Language::Python, "from") => self.import_from(),
                (Language::Python, "for") | (Language::JavaScript, "for") => self.at += 1,
                (Language::JavaScript, "import") => self.import_js(),
                (Language::Perl, "for" | "foreach") => self.loop_before(),
                (_, "const" | "let" | "var" | "my" | "our" | "local" | "return" | "async") => {
                    self.at += 1;
                    return self.statement_after_keyword();
                }
                _ => return self.assignment_or_expression(),
            },
            Some(Token::End) => self.at += 1,
            _ => return self.expression(),
        }
        Value::Unknown
    }

    fn statement_after_keyword(&mut self) -> Value {
        if self.is_sign(0, "{") && self.language == Language::JavaScript {
            return self.destructuring();
        }
        self.assignment_or_expression()
    }

    /// `a = b`, `a, b = c, d`, `for a in b`, or an expression.
    fn assignment_or_expression(&mut self) -> Value {
        let mut names = Vec::new();
        let mut offset = 0;
        while let Some(name) = self.name_at(offset) {
            names.push(name.to_owned());
            offset += 1;
            if !self.is_sign(offset, ",") || names.len() > 8 {
                break;
            }
            offset += 1;
        }
        let iterates = matches!(self.name_at(offset), Some("in" | "of")) && !names.is_empty();
        let assigns = !names.is_empty() && self.is_sign(offset, "=");
        let appends = names.len() == 1 && (self.is_sign(1, "+=") || self.is_sign(1, ".="));
        if appends {
            self.at += 2;
            // The old value may stand in the expression.
            let added = self.expression();
            let old = self.variables.remove(&names[0]).unwrap_or_default();
            let value = old.concat(added);
            self.set(&names[0], value.clone());
            return value;
        }
        if !(assigns || iterates) {
            return self.expression();
        }
        self.at += offset + 1;
        let mut values = vec![self.expression()];
        while names.len() > 1 && values.len() < names.len() && self.take_sign(",") {
            values.push(self.expression());
        }
        if iterates {
            let value = functions::one_of(&values[0]);
            self.bind(&names, &value);
            return Value::Unknown;
        }
        if let ([_, _, ..], [Value::List(list)]) = (names.as_slice(), values.as_slice()) {
            values = list.clone();
        }
        for (index, name) in names.iter().enumerate() {
            self.set(name, values.get(index).cloned().unwrap_or_default());
        }
        values.into_iter().next().unwrap_or_default()
    }

    /// An expression with its operators.
    pub(super) fn expression(&mut self) -> Value {
        if self.depth >= DEPTH_MAX {
            self.at += 1;
            return Value::Unknown;
        }
        self.depth += 1;
        let mut left = self.postfix();
        while let Some(Token::Sign(sign)) = self.peek() {
            let sign = *sign;
            let joins = match sign {
                "+" | "*" | "%" | "^" | "-" => true,
                "/" => matches!(left, Value::Text(_)),
                "." => matches!(self.language, Language::Perl | Language::Php),
                ".." => self.language == Language::Lua,
                "<<" => self.language == Language::Ruby,
                _ => false,
            };
            if !joins {
                break;
            }
            self.at += 1;
            let right = self.postfix();
            left = functions::operate(sign, left, right);
        }
        self.depth -= 1;
        left
    }

    /// The text of pieces with variables filled in.
    pub(super) fn fill(&self, pieces: &[Piece]) -> Value {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Constant(constant) => text.push_str(constant),
                Piece::Hole => text.push(HOLE),
                Piece::Variable(name) => match self.variables.get(name) {
                    Some(value @ (Value::Fetched(_) | Value::Opaque)) if pieces.len() == 1 => {
                        return value.clone();
                    }
                    Some(Value::List(list)) => {
                        let all: Vec<String> = list.iter().map(Value::to_text).collect();
                        text.push_str(&all.join(" "));
                    }
                    Some(value) => text.push_str(&value.to_text()),
                    None => text.push(HOLE),
                },
            }
        }
        Value::text(text)
    }

    fn primary(&mut self) -> Value {
        let Some(token) = self.peek().cloned() else { return Value::Unknown };
        match token {
            Token::Text(pieces) => {
                self.at += 1;
                let mut value = self.fill(&pieces);
                // Constants side by side are one.
                while let Some(Token::Text(more)) = self.peek().cloned() {
                    self.at += 1;
                    value = value.concat(self.fill(&more));
                }
                value
            }
            Token::Command(pieces) => {
                self.at += 1;
                let command = self.fill(&pieces);
                sinks::shell(self, &command, "backticks");
                Value::Unknown
            }
            Token::Number(number) => {
                self.at += 1;
                Value::Number(number)
            }
            Token::Sign("(") => {
                let arguments = self.arguments(")");
                match <[Value; 1]>::try_from(arguments.positional) {
                    Ok([one]) => one,
                    Err(list) => Value::List(list),
                }
            }
            Token::Sign("[") => Value::List(self.arguments("]").positional),
            Token::Sign("-") => {
                self.at += 1;
                match self.postfix() {
                    Value::Number(number) => Value::Number(number.wrapping_neg()),
                    _ => Value::Unknown,
                }
            }
            Token::Sign("!" | "~" | "&" | "\\" | "..." | "*" | "+" | "@" | "$") => {
                self.at += 1;
                self.expression()
            }
            Token::Name(name) => {
                self.at += 1;
                match name.as_str() {
                    "await" | "new" | "return" | "yield" | "not" | "async" | "else" | "do" | "then"
                    | "and" | "or" | "void" | "typeof" => self.postfix(),
                    "True" | "true" | "TRUE" => Value::Number(1),
                    "False" | "false" | "FALSE" => Value::Number(0),
                    "None" | "null" | "nil" | "undefined" | "in" | "if" | "is" | "unless" | "while"
                    | "lambda" | "print" | "puts" | "echo" => Value::Unknown,
                    // Without an argument it is about the element of the loop.
                    "unlink" | "rmdir"
                        if self.language == Language::Perl
                            && !self.is_sign(0, "(")
                            && !self.peek().is_some_and(|token| self.begins_argument(token)) =>
                    {
                        let positional = self.variables.get("$_").cloned().into_iter().collect();
                        self.call(Value::Name(name), Arguments { positional, named: Vec::new() })
                    }
                    _ => match self.function_first(&name) {
                        Some(value) => value,
                        None => self.variables.get(&name).cloned().unwrap_or(Value::Name(name)),
                    },
                }
            }
            _ => Value::Unknown,
        }
    }

    /// A value with members, calls and indexes behind it.
    fn postfix(&mut self) -> Value {
        if self.depth >= DEPTH_MAX {
            self.at += 1;
            return Value::Unknown;
        }
        self.depth += 1;
        let mut value = self.primary();
        loop {
            let before = self.at;
            value = self.suffix(value);
            if self.at == before {
                break;
            }
        }
        self.depth -= 1;
        value
    }

    fn suffix(&mut self, value: Value) -> Value {
        match self.peek() {
            Some(Token::Sign("(")) if callable(&value) => {
                let arguments = self.arguments(")");
                self.call(value, arguments)
            }
            Some(Token::Sign("[")) if !matches!(value, Value::Number(_)) => self.index(value),
            Some(Token::Sign("{")) if self.language == Language::Perl => self.hash_key(value),
            Some(Token::Sign(".")) if !matches!(self.language, Language::Perl | Language::Php) => {
                self.member(value)
            }
            Some(Token::Sign("?." | "->" | "::")) => self.member(value),
            Some(Token::Sign(":")) if self.language == Language::Lua && self.name_at(1).is_some() => {
                self.member(value)
            }
            Some(token) if self.begins_argument(token) => match &value {
                Value::Name(name) if actions::without_brackets(self.language, name) => {
                    let arguments = self.bare_arguments();
                    self.call(value, arguments)
                }
                _ => value,
            },
            _ => value,
        }
    }

    /// Whether a token can begin the first argument of a call without brackets.
    fn begins_argument(&self, token: &Token) -> bool {
        if !matches!(self.language, Language::Perl | Language::Ruby | Language::Php | Language::Lua) {
            return false;
        }
        match token {
            Token::Text(_) | Token::Command(_) => true,
            Token::Name(name) => !matches!(
                name.as_str(),
                "if" | "unless" | "while" | "and" | "or" | "for" | "do" | "rescue" | "then" | "end"
            ),
            Token::Sign(sign) => *sign == "[" && self.language == Language::Ruby,
            _ => false,
        }
    }

    /// Arguments up to the end of the statement.
    fn bare_arguments(&mut self) -> Arguments {
        let mut arguments = Arguments::default();
        loop {
            let before = self.at;
            self.argument(&mut arguments);
            if self.at == before || !(self.take_sign(",") || self.take_sign("=>")) {
                return arguments;
            }
        }
    }

    /// Arguments or elements up to a closing bracket; the opening one is next.
    fn arguments(&mut self, close: &str) -> Arguments {
        let mut arguments = Arguments::default();
        self.at += 1;
        while let Some(token) = self.peek() {
            match token {
                Token::Sign(sign) if *sign == close => {
                    self.at += 1;
                    return arguments;
                }
                // A bracket that was not opened here ends everything: the text is cut or no script.
                Token::Sign(")" | "]") => return arguments,
                Token::Sign(",") | Token::End => self.at += 1,
                _ => {
                    let before = self.at;
                    self.argument(&mut arguments);
                    if self.at == before {
                        self.at += 1;
                    }
                }
            }
        }
        arguments
    }

    fn argument(&mut self, arguments: &mut Arguments) {
        if let Some(name) = self.name_at(0).map(str::to_owned) {
            let named = match self.language {
                Language::Python => self.is_sign(1, "="),
                Language::JavaScript | Language::Ruby | Language::Php => {
                    self.is_sign(1, ":") && !self.is_sign(2, ":")
                }
                Language::Perl => self.is_sign(1, "=>"),
                _ => false,
            };
            if named {
                self.at += 2;
                let value = self.expression();
                arguments.named.push((name, value));
                return;
            }
            if matches!(name.as_str(), "my" | "our" | "local") {
                self.at += 1;
            } else if matches!(name.as_str(), "for" | "const" | "let" | "var" | "import")
                || self.is_sign(1, "=")
            {
                self.statement();
                return;
            }
        }
        let braces = self.is_sign(0, "{");
        self.at += usize::from(braces);
        let before = self.at;
        let value = if braces { return } else { self.expression() };
        if self.at > before {
            let value = self.comprehension(before, value);
            // PHP's `foreach (list as $key => $value)`.
            if self.language == Language::Php && self.name_at(0) == Some("as") {
                self.at += 1 + 2 * usize::from(self.is_sign(2, "=>"));
                if let Some(name) = self.take_name() {
                    let one = functions::one_of(&value);
                    self.set(&name, one);
                }
            }
            arguments.positional.push(value);
        }
    }

    fn index(&mut self, value: Value) -> Value {
        let open = self.at;
        let arguments = self.arguments("]");
        let inner = self.tokens.get(open + 1..self.at.saturating_sub(1)).unwrap_or_default();
        let slice = inner.iter().any(|token| matches!(token, Token::Sign(":" | "::" | "..")));
        if slice {
            let reversed = matches!(inner, [.., Token::Sign("-"), Token::Number(1)])
                && inner.iter().filter(|t| matches!(t, Token::Sign(":" | "::"))).count() > 0
                && !matches!(inner, [Token::Sign(":"), ..] if inner.len() == 3);
            return functions::slice(&value, inner, reversed);
        }
        functions::element(&value, &arguments.first())
    }

    /// Perl's `$ENV{HOME}`.
    fn hash_key(&mut self, value: Value) -> Value {
        let key = match self.peek_at(1) {
            Some(Token::Name(name)) => name.clone(),
            Some(Token::Text(pieces)) => self.fill(pieces).to_text(),
            _ => return value,
        };
        if !self.is_sign(2, "}") || !matches!(&value, Value::Name(name) if name.starts_with('$')) {
            return value;
        }
        self.at += 3;
        functions::element(&value, &Value::Text(key))
    }

    fn member(&mut self, value: Value) -> Value {
        let Some(name) = self.name_at(1).map(str::to_owned) else { return value };
        self.at += 2;
        let called = self.is_sign(0, "(");
        if called && let Some(result) = self.closure_argument(&value, &name) {
            return result;
        }
        let bare = !called
            && self.peek().is_some_and(|token| self.begins_argument(token))
            && (self.language == Language::Ruby || matches!(self.peek(), Some(Token::Text(_))));
        let arguments = if called {
            self.arguments(")")
        } else if bare {
            self.bare_arguments()
        } else {
            Arguments::default()
        };
        let is_call =
            called || bare || (self.language == Language::Ruby && !name.starts_with(char::is_uppercase));
        let has_block = self.language == Language::Ruby;
        let receiver = if has_block { value.clone() } else { Value::Unknown };
        let result = match value {
            Value::Name(module) => {
                let full = format!("{module}.{name}");
                if is_call { self.call(Value::Name(full), arguments) } else { functions::attribute(full) }
            }
            value if is_call => match self.apply_each(&value, &name, &arguments) {
                Some(result) => result,
                None => self.method(value, &name, &arguments),
            },
            value => functions::attribute_of(value, &name),
        };
        if has_block { self.block_of(&receiver, &name, result) } else { result }
    }

    /// A method of a value that is no module.
    pub(super) fn method(&mut self, value: Value, name: &str, arguments: &Arguments) -> Value {
        // `fetch(u).then(eval)`
        if let (Value::Fetched(_), Value::Name(function)) = (&value, arguments.first())
            && actions::is_eval(self.language, &function)
        {
            sinks::evaluate(self, &value);
        }
        match functions::method(self.language, &value, name, arguments) {
            Some(result) => result,
            None => sinks::method(self, &value, name, arguments),
        }
    }

    pub(super) fn call(&mut self, callee: Value, arguments: Arguments) -> Value {
        let Value::Name(name) = callee else { return Value::Unknown };
        match functions::pure(self.language, &name, &arguments) {
            Some(value) => value,
            None => sinks::call(self, &name, &arguments),
        }
    }
}

/// Whether brackets behind a value are a call.
fn callable(value: &Value) -> bool {
    matches!(value, Value::Name(_) | Value::Unknown)
}
