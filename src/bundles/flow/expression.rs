//! Expressions: names and what stands behind them, calls and what they are given.

use super::facts::{Does, FlowDef};
use super::follow::To;
use super::follow::{DEPTH_MAX, Follower, IDLE, STATEMENT_MAX};
use super::scopes::parameters;
use super::token::Kind;
use super::value::{FOREIGN, HOLE, Source, Value, variable};

impl<'p> Follower<'p> {
    /// The value of an expression.
    pub(super) fn value(&mut self, from: usize, end: usize) -> Value {
        let mut out = Value::default();
        if self.depth >= DEPTH_MAX {
            return out;
        }
        self.depth += 1;
        let mut at = from;
        while at < end {
            self.looks += 1;
            if self.is_over() {
                break;
            }
            let Some(token) = self.tokens.get(at) else { break };
            if self.tongue.has_dashes && token.is_apart && !out.text.is_empty() {
                out.push(" ");
            }
            match token.kind {
                Kind::Line => at += 1,
                Kind::Text => {
                    let base = Value::of(&token.text);
                    at = self.chain(at + 1, end, String::new(), Some(base), &mut out);
                }
                Kind::Word => at = self.chain(at, end, String::new(), None, &mut out),
                Kind::Sign => match token.text.as_str() {
                    "(" | "[" | "{" => {
                        let close = self.close(at).min(end);
                        // `[Type]::Method` of PowerShell.
                        if token.text == "[" && self.tongue.has_dashes && self.sign(close + 1) == "::" {
                            let path = (at + 1..close).map(|at| self.word(at).to_lowercase());
                            let path = path.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(".");
                            at = self.chain(close + 1, end, path, Some(Value::default()), &mut out);
                            continue;
                        }
                        let outer = std::mem::take(&mut self.is_bare);
                        let base = match token.text.as_str() {
                            "(" => self.set_or_value(at + 1, close),
                            _ => self.list(at + 1, close),
                        };
                        self.is_bare = outer;
                        let before = at;
                        at = self.group(before, close, end, base, &mut out);
                    }
                    "|" | "|>" if self.tongue.has_dashes || token.text == "|>" => {
                        let fed = std::mem::take(&mut out);
                        at = self.piped(at + 1, end, &fed, &mut out);
                    }
                    // The operator of PowerShell that runs what a variable holds.
                    "&" if self.tongue.has_dashes && at == from => {
                        let value = self.value(at + 1, end);
                        let stop = self.called(
                            at,
                            &["&"],
                            std::slice::from_ref(&value),
                            &Value::default(),
                            (at, at),
                        );
                        out.add(&value);
                        out.join(&stop);
                        at = end;
                    }
                    "," => {
                        out.push(" ");
                        at += 1;
                    }
                    // A name as a value.
                    ":" if self.tongue.name == "ruby"
                        && !self.word(at + 1).is_empty()
                        && !self.tokens[at + 1].is_apart =>
                    {
                        out.push(self.word(at + 1));
                        at += 2;
                    }
                    sign @ ("/" | "~" | "\\" | "." | ":" | "-") if self.tongue.has_dashes => {
                        out.push(sign);
                        at += 1;
                    }
                    _ => at += 1,
                },
            }
        }
        self.depth -= 1;
        out
    }

    /// The values of a list, put together with blanks.
    pub(super) fn list(&mut self, from: usize, end: usize) -> Value {
        let mut out = Value::default();
        for value in self.arguments(from, end) {
            if !out.text.is_empty() {
                out.push(" ");
            }
            out.add(&value);
        }
        out
    }

    /// What stands behind a group in parentheses or a list.
    pub(super) fn group(
        &mut self,
        open: usize,
        close: usize,
        end: usize,
        base: Value,
        out: &mut Value,
    ) -> usize {
        // What is called is worked out: `($name)($argument)`.
        if self.sign(open) == "(" && self.sign(close + 1) == "(" && self.tongue.calls_variables {
            self.called_value(open, &base);
        }
        self.chain(close + 1, end, "()".to_owned(), Some(base), out)
    }

    /// What a pipe gives to the next command.
    pub(super) fn piped(&mut self, from: usize, end: usize, fed: &Value, out: &mut Value) -> usize {
        let mut at = from;
        while self.is_line(at) {
            at += 1;
        }
        let stop = (at..end).find(|at| matches!(self.sign(*at), "|" | "|>")).unwrap_or(end);
        if self.word(at).is_empty() {
            out.add(fed);
            return at;
        }
        let scope_of = at;
        self.set(scope_of, "$_", &fed.carried());
        let name = self.word(at).to_lowercase();
        let mut arguments = vec![fed.clone()];
        let (mut parts, mut next) = (vec![name], at + 1);
        while matches!(self.sign(next), "." | "::") && !self.word(next + 1).is_empty() {
            parts.push(self.word(next + 1).to_lowercase());
            next += 2;
        }
        let rest = self.value(next, stop);
        arguments.push(rest);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let value = self.called(at, &parts, &arguments, &Value::default(), (next, stop));
        out.add(&value);
        stop
    }

    /// Follows a name and what stands behind it: fields, methods, elements, arguments. Adds the value to `out`; answers where it
    /// ends.
    pub(super) fn chain(
        &mut self,
        from: usize,
        end: usize,
        path: String,
        base: Option<Value>,
        out: &mut Value,
    ) -> usize {
        let mut at = from;
        let mut path = path;
        let (mut current, mut name) = (base, String::new());
        let mut first = String::new();
        let start = from;
        if current.is_none() {
            let word = self.word(at);
            // The name of an argument: `body: value`, `body = value` within parentheses.
            let is_apart = |at: usize| self.tokens.get(at).is_some_and(|token| token.is_apart);
            let is_label = self.sign(at + 1) == ":"
                && self.tongue.name != "lua"
                && !self.tongue.has_dashes
                && !is_apart(at + 1)
                && is_apart(at + 2);
            if IDLE.contains(&word) || is_label {
                return at + 1;
            }
            name = word.to_owned();
            first = word.to_owned();
            path = word.to_lowercase();
            at += 1;
        }
        let mut is_bare_function = current.is_none();
        loop {
            self.looks += 1;
            if at >= end || self.is_over() {
                break;
            }
            at = self.past_generics(at, end);
            if self.sign(at) == "!"
                && matches!(self.sign(at + 1), "(" | "[" | "{")
                && self.tongue.name == "rust"
            {
                at += 1;
            }
            // Methods go on in the next line.
            let mut next = at;
            while self.is_line(next) {
                next += 1;
            }
            let sign = self.sign(next);
            let is_field = matches!(sign, "." | "->" | "::" | "?." | "&.") && !self.word(next + 1).is_empty()
                || sign == ":"
                    && self.tongue.name == "lua"
                    && !self.word(next + 1).is_empty()
                    && (self.sign(next + 2) == "("
                        || self.tokens.get(next + 2).is_some_and(|one| one.kind == Kind::Text));
            if is_field && (next == at || sign != ":") {
                // A sum of texts, or the name of a file without quotes.
                let is_text_sum = sign == "."
                    && (self.tongue.name == "php"
                        || self.tongue.has_dashes
                            && !first.starts_with('$')
                            && !path.contains("()")
                            && self.sign(next + 2) != "(");
                if !is_text_sum {
                    let value = self.resolve(start, current.take(), &path, &first);
                    let field = self.word(next + 1);
                    name = field.to_owned();
                    path.push('.');
                    path.push_str(&field.to_lowercase());
                    let is_call = self.sign(next + 2) == "(";
                    let own = || {
                        (path.matches('.').count() == 1 && self.is_own(start, &first))
                            .then(|| format!(".{field}"))
                    };
                    let known = self
                        .lookup(start, &format!("{first}.{field}"))
                        .or_else(|| self.lookup(start, &own()?));
                    let is_plain = !is_call && self.is_plain(field);
                    current = Some(match known {
                        Some(known) if !is_call => known,
                        _ if is_plain => Value { text: HOLE.to_string(), ..Value::default() },
                        _ => value,
                    });
                    is_bare_function = true;
                    at = next + 2;
                    continue;
                }
            }
            let is_call = self.sign(at) == "(" && (!self.tokens[at].is_apart || !self.tongue.bare_calls)
                || self.tongue.name == "lua"
                    && is_bare_function
                    && self.tokens.get(at).is_some_and(|token| token.kind == Kind::Text);
            if is_call {
                let is_text = self.sign(at) != "(";
                let close = if is_text { at + 1 } else { self.close(at).min(end) };
                let inner = if is_text { (at, at + 1) } else { (at + 1, close) };
                let receiver = current.take().unwrap_or_default();
                let value = self.call(start, &path, &name, &receiver, inner);
                self.gathered(start, &path, &first, &value);
                path.push_str("()");
                current = Some(value);
                is_bare_function = false;
                at = if is_text { close } else { close + 1 };
                at = self.block(at, end, current.as_ref().unwrap_or(&Value::default()));
                continue;
            }
            // `->{name}` and `->[0]` of Perl.
            if self.sign(at) == "->" && matches!(self.sign(at + 1), "{" | "[") && self.tongue.sigils {
                at += 1;
            }
            let is_key = self.sign(at) == "{" && at > 0 && self.sign(at - 1) == "->";
            if is_key || self.sign(at) == "[" && !self.tokens[at].is_apart {
                let close = self.close(at).min(end);
                let key = self.value(at + 1, close);
                let parts: Vec<&str> = path.split('.').collect();
                let is_walk = current.is_none() && self.does(&parts).iter().any(|def| def.does == Does::Walk);
                let sent = self.does(&parts).into_iter().any(|def| {
                    def.does == Does::Request
                        && def.holds.iter().any(|text| key.text.to_lowercase().contains(text.as_str()))
                });
                let value = match is_walk
                    .then(|| self.reach_of(start, &parts, std::slice::from_ref(&key), &Value::default()))
                    .flatten()
                {
                    Some(walked) => walked,
                    None => self.resolve(start, current.take(), &path, &first),
                };
                let element = format!("{first}[{}]", key.text);
                current = Some(if sent {
                    Value::unknown(Source::REQUEST, "")
                } else if self.is_plain(&key.text) {
                    Value { text: HOLE.to_string(), ..Value::default() }
                } else if let Some(variable) = self.variable_of(start, &path, &key) {
                    variable
                } else {
                    self.lookup(start, &element).unwrap_or_else(|| value.carried())
                });
                path.push_str("()");
                at = close + 1;
                is_bare_function = false;
                continue;
            }
            if is_bare_function && self.is_bare_call(at, end, &path) {
                let stop = self.bare_end(at, end);
                let receiver = current.take().unwrap_or_default();
                let outer = std::mem::replace(&mut self.is_bare, self.tongue.has_dashes);
                let value = self.call(start, &path, &name, &receiver, (at, stop));
                self.is_bare = outer;
                current = Some(value);
                at = self.block(stop, end, current.as_ref().unwrap_or(&Value::default()));
                break;
            }
            break;
        }
        let mut value = self.resolve(start, current, &path, &first);
        // A method without parentheses is called all the same.
        if is_bare_function && path.contains('.') && !self.tongue.types_first {
            let answered = self.called_by_path(start, &path, &value);
            if let Some(answered) = answered {
                value = answered;
            }
            at = self.block(at, end, &value);
        }
        out.add(&value);
        at.max(from + usize::from(from == start && path != "()" && !first.is_empty()))
    }

    /// What a method adds to the variable that it belongs to: `request.add(key)`.
    pub(super) fn gathered(&mut self, at: usize, path: &str, first: &str, value: &Value) {
        if first.is_empty() || path.matches('.').count() != 1 || path.contains("()") {
            return;
        }
        let parts: Vec<&str> = path.split('.').collect();
        let adds = self.does(&parts).iter().any(|def| matches!(def.does, Does::Gather | Does::Argument));
        if let Some(mut known) = self.lookup(at, first).filter(|_| adds) {
            known.join(value);
            if self.does(&parts).iter().any(|def| def.does == Does::Argument) {
                known.text.clone_from(&value.text);
            }
            self.set(at, first, &known);
        }
    }

    /// What `ENV['NAME']` and its like answer.
    pub(super) fn variable_of(&self, at: usize, path: &str, key: &Value) -> Option<Value> {
        let parts: Vec<&str> = path.split('.').collect();
        let does = self.does(&parts);
        let _ = at;
        does.iter()
            .any(|def| def.does == Does::Environment || def.does == Does::Variable)
            .then(|| variable(&key.text))
    }

    pub(super) fn past_generics(&self, at: usize, end: usize) -> usize {
        let open = if self.sign(at) == "::" && self.sign(at + 1) == "<" { at + 1 } else { at };
        if self.sign(open) != "<" || self.tokens.get(open).is_some_and(|token| token.is_apart) {
            return at;
        }
        let mut depth = 0;
        for place in open..end.min(open + 24) {
            match self.sign(place) {
                "<" => depth += 1,
                ">" => {
                    depth -= 1;
                    if depth == 0 {
                        let is_call = matches!(self.sign(place + 1), "(" | "::");
                        return if is_call { place + 1 } else { at };
                    }
                }
                "," | "." | "::" | "?" | "[" | "]" | "&" => {}
                _ if !self.word(place).is_empty() => {}
                _ => return at,
            }
        }
        at
    }

    /// Whether a function is called without parentheses.
    pub(super) fn is_bare_call(&self, at: usize, end: usize, path: &str) -> bool {
        let Some(token) = self.tokens.get(at).filter(|_| at < end) else { return false };
        if !self.tongue.bare_calls
            || self.is_bare
            || !token.is_apart
            || path.starts_with(['$', '@'])
            || path.starts_with(|c: char| c.is_ascii_digit())
        {
            return false;
        }
        match token.kind {
            Kind::Text => true,
            Kind::Word => !matches!(
                token.text.as_str(),
                "if" | "unless" | "while" | "until" | "do" | "and" | "or" | "then" | "in" | "rescue"
            ),
            Kind::Sign => {
                matches!(token.text.as_str(), "(" | "[" | "&" | ":" | "~" | "/")
                    || matches!(token.text.as_str(), "-" | "*" | "::" | ".")
                        && self.tokens.get(at + 1).is_some_and(|next| !next.is_apart)
            }
            Kind::Line => false,
        }
    }

    pub(super) fn bare_end(&self, from: usize, end: usize) -> usize {
        let mut at = from;
        while at < end {
            if matches!(self.sign(at), "|" | "|>" | "{" | "}" | ";" | ")") && at > from
                || matches!(self.word(at), "do" | "if" | "unless" | "rescue")
            {
                return at;
            }
            if matches!(self.sign(at), "(" | "[") || self.sign(at) == "{" {
                at = self.close(at).min(end);
            }
            at += 1;
        }
        end
    }

    /// What a block behind a call is given: `each { |x| … }`, `each do |x| … end`, `let { it -> … }`.
    pub(super) fn block(&mut self, at: usize, end: usize, value: &Value) -> usize {
        let is_open = self.sign(at) == "{" || self.word(at) == "do";
        if !is_open || !matches!(self.tongue.name.as_str(), "ruby" | "kotlin" | "groovy" | "scala" | "swift")
        {
            return at;
        }
        let part = value.carried();
        if self.sign(at + 1) == "|" {
            let close =
                (at + 2..(at + 40).min(self.tokens.len())).find(|at| self.sign(*at) == "|").unwrap_or(at + 2);
            self.each(at + 2, close, &part);
        } else if let Some(arrow) = (at + 1..(at + 12).min(self.tokens.len()))
            .find(|at| matches!(self.sign(*at), "->" | "=>") || self.word(*at) == "in")
        {
            self.each(at + 1, arrow, &part);
        } else {
            self.set(at + 1, "it", &part);
            self.set(at + 1, "$0", &part);
        }
        if self.sign(at) == "{" { (self.close(at) + 1).min(end) } else { at }
    }

    /// The value of a name so far, as a variable.
    pub(super) fn resolve(&mut self, at: usize, current: Option<Value>, path: &str, first: &str) -> Value {
        if let Some(value) = current {
            return value;
        }
        if let Some(value) = self.lookup(at, first) {
            return value;
        }
        let parts: Vec<&str> = path.split('.').collect();
        let value =
            self.does(&parts).iter().filter(|def| def.holds.is_empty()).find_map(|def| match def.does {
                Does::Request => Some(Value::unknown(Source::REQUEST, "")),
                Does::Environment => Some(Value::unknown(Source::ENVIRONMENT, "")),
                Does::Home => Some(Value::of("~")),
                _ => None,
            });
        if let Some(value) = value {
            return value;
        }
        if let Some(name) = path.strip_prefix("$env:") {
            return variable(name);
        }
        if self.tongue.has_dashes && !first.starts_with('$') {
            return Value::of(&self.tokens[at].text);
        }
        if let Some(function) = self.scopes.function(first) {
            // A function that is called by its name alone.
            return self.answers.get(function as usize).cloned().unwrap_or_default();
        }
        let is_variable = first.starts_with('$') || !self.tongue.sigils;
        if is_variable && self.spilled != Source::NONE && first.starts_with('$') {
            return Value::unknown(self.spilled, "");
        }
        Value { text: HOLE.to_string(), ..Value::default() }
    }

    /// What a method answers that is called without parentheses, where something is known of it.
    pub(super) fn called_by_path(&mut self, at: usize, path: &str, value: &Value) -> Option<Value> {
        let parts: Vec<&str> = path.split('.').collect();
        if self.does(&parts).is_empty() {
            return None;
        }
        Some(self.called(at, &parts, &[], value, (at, at)))
    }

    pub(super) fn does(&self, parts: &[&str]) -> Vec<&'p FlowDef> {
        let last = parts.last().copied().unwrap_or_default();
        if !self.world.facts.is_known(last.trim_end_matches("()")) {
            return Vec::new();
        }
        let clean: Vec<String> = parts.iter().map(|part| part.trim_end_matches("()").to_owned()).collect();
        let clean: Vec<&str> = clean.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        // A method of something that is worked out has no name before it.
        let with_owner: Vec<&str> =
            if clean.len() < parts.len() { std::iter::once("").chain(clean).collect() } else { clean };
        self.world.facts.does(self.tongue, &with_owner, self.lower)
    }

    pub(super) fn is_plain(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.world.facts.is_plain(&name)
    }

    pub(super) fn arguments(&mut self, from: usize, end: usize) -> Vec<Value> {
        let mut out = Vec::new();
        let (mut at, mut start) = (from, from);
        while at <= end {
            if at == end || self.sign(at) == "," {
                if start < at {
                    let value = self.argument(start, at);
                    out.push(value);
                }
                start = at + 1;
            } else if matches!(self.sign(at), "(" | "[" | "{") {
                at = self.close(at).min(end);
                if at == end {
                    continue;
                }
            }
            at += 1;
        }
        out
    }

    /// An argument, without its name.
    pub(super) fn argument(&mut self, from: usize, end: usize) -> Value {
        let is_mark = match self.sign(from + 1) {
            "=" | "=>" => true,
            // A method of Lua and a drive of PowerShell have one as well.
            ":" => self.tongue.name != "lua" && !self.tongue.has_dashes,
            _ => false,
        };
        let is_named = !self.word(from).is_empty() && is_mark;
        let start = if is_named { from + 2 } else { from };
        let value = self.value(start, end);
        // What a function does when it is called is not what it is.
        let is_function = matches!(self.word(start), "fn" | "function" | "func");
        if is_function { Value { text: HOLE.to_string(), ..Value::default() } } else { value }
    }

    pub(super) fn call(
        &mut self,
        at: usize,
        path: &str,
        name: &str,
        receiver: &Value,
        inner: (usize, usize),
    ) -> Value {
        let arguments = self.arguments(inner.0, inner.1);
        // A variable that holds the name of a function.
        let may_hold = path == name.to_lowercase() && (name.starts_with('$') || self.tongue.name == "lua");
        let spilled = || {
            (self.spilled != Source::NONE && name.starts_with('$')).then(|| Value::unknown(self.spilled, ""))
        };
        if let Some(held) = may_hold.then(|| self.lookup(at, name).or_else(spilled)).flatten() {
            if self.tongue.calls_variables {
                self.called_value(at, &held);
            }
            let named = held.text.to_lowercase();
            if !named.is_empty() && named.chars().all(|c| c.is_alphanumeric() || c == '_') {
                return self.called(at, &[&named], &arguments, &Value::default(), inner);
            }
        }
        let parts: Vec<&str> = path.split('.').collect();
        self.called(at, &parts, &arguments, receiver, inner)
    }

    pub(super) fn called_value(&mut self, at: usize, function: &Value) {
        if function.from.meets(FOREIGN) {
            self.reached(at, function, To::Evaluate, "");
        }
    }

    /// What a call answers, and where its arguments go.
    pub(super) fn called(
        &mut self,
        at: usize,
        parts: &[&str],
        arguments: &[Value],
        receiver: &Value,
        inner: (usize, usize),
    ) -> Value {
        let mut carried = receiver.carried();
        for argument in arguments {
            carried.join(argument);
        }
        carried = Value::unknown(carried.from, &carried.origin);
        self.closures(inner, &carried);
        let last = parts.last().copied().unwrap_or_default();
        if let Some(function) = self.own_function(last) {
            self.give(function, arguments);
            let mut answer = self.answers.get(function as usize).cloned().unwrap_or_default();
            answer.join(&carried);
            return answer;
        }
        let answer = self.reach_of(at, parts, arguments, receiver).unwrap_or_else(|| carried.clone());
        if self.does(parts).iter().any(|def| def.does == Does::Into) {
            self.filled(inner, &carried);
        }
        if answer.from.meets(Source::HOME) {
            self.closures(inner, &answer);
        }
        answer
    }

    pub(super) fn own_function(&self, name: &str) -> Option<u32> {
        self.scopes.function(name)
    }

    /// Gives arguments to the parameters of a function.
    pub(super) fn give(&mut self, function: u32, arguments: &[Value]) {
        let Some(known) = self.scopes.functions.get(function as usize - 1) else { return };
        let names = known.parameters.clone();
        for (name, value) in names.into_iter().zip(arguments) {
            let entry = self.variables.entry((function, name)).or_default();
            self.is_changed |= entry.from | value.from != entry.from;
            entry.join(value);
            if entry.text.chars().all(|c| c == HOLE) && entry.text != value.text {
                entry.text.clone_from(&value.text);
                self.is_changed = true;
            }
        }
    }

    /// Gives the parameters of functions among the arguments of a call what the call is about.
    pub(super) fn closures(&mut self, (from, end): (usize, usize), value: &Value) {
        if value.from == Source::NONE {
            return;
        }
        let mut at = from;
        while at < end.min(from + STATEMENT_MAX) {
            if matches!(self.word(at), "func" | "function" | "fn") && self.sign(at + 1) == "(" {
                let names = parameters(self.tokens, at + 2, self.close(at + 1), self.tongue);
                for name in names {
                    self.set(at + 2, &name, value);
                }
                return;
            }
            if self.sign(at) == "|" && (at == from || self.sign(at - 1) == "," || self.word(at - 1) == "move")
            {
                let close = (at + 1..(at + 40).min(end)).find(|at| self.sign(*at) == "|");
                if let Some(close) = close {
                    self.each(at + 1, close, value);
                    return;
                }
            }
            if matches!(self.sign(at), "=>" | "->") && at > from {
                let open = if self.sign(at - 1) == ")" {
                    (from..at).rev().find(|place| self.sign(*place) == "(").unwrap_or(at - 1)
                } else {
                    at - 1
                };
                self.each(open, at, value);
                return;
            }
            at += 1;
        }
    }

    /// Gives variables among the arguments of a call what it puts into them.
    pub(super) fn filled(&mut self, (from, end): (usize, usize), value: &Value) {
        if value.from == Source::NONE {
            return;
        }
        for at in from..end.min(from + 40) {
            let is_first = at == from || matches!(self.sign(at - 1), "," | "&") || self.word(at - 1) == "mut";
            let word = self.word(at);
            if is_first
                && !word.is_empty()
                && !IDLE.contains(&word)
                && !matches!(self.sign(at + 1), "(" | "." | "::")
            {
                self.set(at, word, value);
            }
        }
    }
}
