//! Calls: of functions of the file, of methods of known values, and of libraries.

use std::rc::Rc;

use super::follow::Walk;
use super::taint::Taint;
use super::value::{Shape, Value};
use super::{Language, callback, fold, library};

/// Arguments of a call, by name where they were named.
pub(super) type Arguments = [(Option<Rc<str>>, Value)];

impl Walk<'_> {
    /// Calls a value.
    pub fn call(&mut self, callee: &Value, arguments: &Arguments, at: u32, is_new: bool) -> Value {
        match &callee.shape {
            Shape::Any(values) => {
                let results: Vec<_> =
                    values.iter().map(|one| self.call(one, arguments, at, is_new)).collect();
                results.into_iter().reduce(Value::or).unwrap_or_default()
            }
            Shape::Function(function, scope) if is_new && self.language == Language::JavaScript => {
                let class = self.class_of(function, *scope);
                self.instance(class, arguments)
            }
            Shape::Function(function, scope) => self.enter(function, *scope, arguments, None),
            Shape::Bound(bound) => match &bound.0.shape {
                Shape::Function(function, scope) => {
                    self.enter(function, *scope, arguments, Some(bound.1.clone()))
                }
                _ => Value::default(),
            },
            Shape::Class(number) => match self.called_class(*number, arguments, at) {
                Some(value) => value,
                None => self.instance(*number, arguments),
            },
            Shape::Object(number)
                if self.in_class(self.objects[*number].class, "__call__", 0).is_some() && self.calls < 8 =>
            {
                let class = self.objects[*number].class;
                let function = self.in_class(class, "__call__", 0).unwrap_or_default();
                self.call_of(&function, callee, arguments, at)
            }
            Shape::Partial(partial) => {
                let given = partial.1.iter().cloned();
                let all: Vec<_> = given.chain(arguments.iter().cloned()).collect();
                self.call(&partial.0.clone().with(callee.taint & Taint::HIDDEN), &all, at, is_new)
            }
            Shape::Method(method) => self.method(&method.0, &method.1, callee.taint, arguments, at),
            Shape::Api(path) => self.call_api(path, callee, arguments, at),
            _ => {
                self.blind_function("", arguments, at);
                let taint = self.pass_on(callee.taint, None, arguments, at);
                Value::unknown(taint | callee.taint)
            }
        }
    }

    /// Calls a function as a method of something.
    pub fn call_of(&mut self, function: &Value, this: &Value, arguments: &Arguments, at: u32) -> Value {
        match &function.shape {
            Shape::Function(function, scope) => self.enter(function, *scope, arguments, Some(this.clone())),
            Shape::Any(values) => {
                let results: Vec<_> =
                    values.iter().map(|one| self.call_of(one, this, arguments, at)).collect();
                results.into_iter().reduce(Value::or).unwrap_or_default()
            }
            _ => self.call(function, arguments, at, false),
        }
    }

    /// Taint of arguments, and functions among them called, as whoever takes a function calls it some time: with what
    /// is not known, and with what it was handed beside them. `owner` is what the taking function is a method of.
    pub fn pass_on(&mut self, given: Taint, owner: Option<&Value>, arguments: &Arguments, at: u32) -> Taint {
        let taint = arguments.iter().fold(Taint::NONE, |all, (_, value)| all | value.deep_taint());
        for (nth, (_, value)) in arguments.iter().enumerate() {
            self.call_back(value, given | taint.without(PUT_IN), at);
            if callback::may_be_called(value) {
                self.call_with_others(value, nth, owner, arguments, at);
            }
        }
        taint
    }

    /// Calls a function that was given away; `taint` is that of what it may be called with.
    fn call_back(&mut self, value: &Value, taint: Taint, at: u32) {
        match &value.shape {
            Shape::Function(function, _) => {
                let arguments = vec![(None, Value::unknown(taint)); function.parameters.len().min(8)];
                self.call(value, &arguments, at, false);
            }
            Shape::Bound(_) | Shape::Partial(_) => {
                self.call(value, &[(None, Value::unknown(taint))], at, false);
            }
            Shape::Api(path) if self.context.rules.apis_of(path).next().is_some() && !taint.is_none() => {
                self.call(value, &[(None, Value::unknown(taint))], at, false);
            }
            Shape::Any(values) => values.iter().for_each(|value| self.call_back(value, taint, at)),
            // A table of handlers.
            Shape::Map(entries) => {
                for (_, value) in entries.iter().take(32) {
                    if matches!(value.shape, Shape::Function(..)) {
                        self.call_back(value, taint, at);
                    }
                }
            }
            _ => {}
        }
    }

    fn method(
        &mut self,
        base: &Value,
        name: &Rc<str>,
        taint: Taint,
        arguments: &Arguments,
        at: u32,
    ) -> Value {
        // `f.call(this, …)`, `f.apply(this, […])`, `f.bind(this, …)`.
        if base.is_callable() && matches!(&**name, "call" | "apply" | "bind" | "__call__") {
            return self.called(base, name, arguments, at);
        }
        if self.language == Language::JavaScript
            && matches!(&**name, "toString" | "toSource")
            && let Some(source) = super::own_text::source_of(base)
        {
            return Value::text(source.as_str()).with(base.taint);
        }
        if let Some(value) = self.over_elements(base, name, arguments, at) {
            return value;
        }
        if let Some(value) = self.sent_into(base, name, arguments) {
            return value;
        }
        let taking = arguments.iter().any(|(_, value)| callback::may_be_called(value));
        if taking {
            self.pass_on(base.deep_taint(), Some(base), arguments, at);
        }
        if let Shape::Text(path) = &base.shape
            && self.language == Language::Python
            && let Some(value) = self.path_method(path, base, name, arguments, at)
        {
            return value;
        }
        if let (Shape::Text(text), "replace" | "replaceAll") = (&base.shape, &**name)
            && let Some(value) = self.replaced_by_literal(text, arguments, at)
        {
            return value.with(base.taint);
        }
        if let (Shape::Text(text), "match" | "matchAll") = (&base.shape, &**name)
            && let Some(value) = self.found_by_literal(text, arguments)
        {
            return value.with(base.taint);
        }
        if self.step(base.size() / 16)
            && let Some(value) = fold::method(self.language, base, name, arguments)
        {
            return value;
        }
        let full = format!("*.{name}");
        self.shown_by(name, arguments, at);
        self.piped(name, base.deep_taint(), arguments, at);
        self.saved(name, base.deep_taint(), arguments, at);
        self.record_method(&full, base, arguments, at);
        self.blind_method(base, name, taint, arguments, at);
        let given = arguments.iter().fold(Taint::NONE, |all, (_, value)| all | value.deep_taint());
        self.event(name, arguments, at);
        let of_api = library::returned(self.context.rules, &full);
        // What reads a part of something has the taint of it; what asks a question does not.
        if library::is_question(name) {
            return Value::default();
        }
        Value::unknown(taint | base.deep_taint() | given | of_api.0).about(base.about.clone())
    }

    /// A function called through a method of its own.
    fn called(&mut self, function: &Value, how: &str, arguments: &Arguments, at: u32) -> Value {
        match how {
            "call" => self.call(function, arguments.get(1..).unwrap_or_default(), at, false),
            "__call__" => self.call(function, arguments, at, false),
            "apply" => {
                let list = arguments.get(1).map(|(_, value)| value);
                let elements = match list {
                    Some(list) => self.elements(list),
                    None => None,
                };
                let unknown = || vec![Value::unknown(list.map_or(Taint::NONE, Value::deep_taint))];
                let given: Vec<_> = elements.unwrap_or_else(unknown).into_iter().map(|v| (None, v)).collect();
                self.call(function, &given, at, false)
            }
            _ => match arguments.get(1..) {
                None | Some([]) => function.clone(),
                Some(given) => Value::of(Shape::Partial(Rc::new((function.clone(), given.to_vec())))),
            },
        }
    }

    /// `list.map(f)` and its like, over elements that are known.
    fn over_elements(&mut self, base: &Value, name: &str, arguments: &Arguments, at: u32) -> Option<Value> {
        let function =
            &arguments.first().filter(|(_, f)| f.is_callable() || matches!(f.shape, Shape::Any(_)))?.1;
        if !matches!(name, "map" | "forEach" | "flatMap" | "filter" | "reduce" | "some" | "every" | "find") {
            return None;
        }
        let elements = self.elements(base)?;
        if name == "reduce" {
            let mut all = arguments.get(1).map(|(_, value)| value.clone());
            for element in elements {
                all = Some(match all {
                    None => element,
                    Some(sum) => self.call(function, &[(None, sum), (None, element)], at, false),
                });
                self.step(4);
            }
            return all;
        }
        let mut out = Vec::with_capacity(elements.len());
        for (nth, element) in elements.iter().enumerate() {
            if nth > 0 && !self.step(4) {
                return Some(Value::unknown(base.deep_taint()));
            }
            let nth = Value::of(Shape::Number(nth as f64));
            out.push(self.call(
                function,
                &[(None, element.clone()), (None, nth), (None, base.clone())],
                at,
                false,
            ));
        }
        Some(match name {
            "map" => Value::list(out).with(base.taint),
            "filter" => base.clone(),
            _ => Value::unknown(base.deep_taint()),
        })
    }

    fn call_api(&mut self, path: &Rc<str>, callee: &Value, arguments: &Arguments, at: u32) -> Value {
        if let Some((promise, "then" | "finally")) = path.rsplit_once('.')
            && self.language == Language::JavaScript
            && let Some((_, function)) = arguments.first().filter(|(_, function)| function.is_callable())
        {
            let kept = self.api(promise).with(callee.taint).about(callee.about.clone());
            return self.call(function, &[(None, kept)], at, false);
        }
        if let Some((function, how @ ("call" | "apply" | "bind"))) = path.rsplit_once('.')
            && self.language == Language::JavaScript
            && function != "Reflect"
        {
            // It may as well be a function of that name in another file.
            if self.context.rules.apis_of(function).next().is_none() {
                self.blind_function(path, arguments, at);
            }
            let function = Value::api(function).with(callee.taint);
            return self.called(&function, how, arguments, at);
        }
        if let Some((owner, name)) = path.rsplit_once('.')
            && matches!(owner, "file()" | "file.reader()")
            && let Some(value) = self.file_method(callee, name, arguments, at)
        {
            return value;
        }
        self.shown_by(path.rsplit('.').next().unwrap_or_default(), arguments, at);
        self.printing = super::printed::Printed::default();
        self.piped(path, callee.taint, arguments, at);
        self.saved(path, callee.taint, arguments, at);
        self.unpacked(path, callee.taint, arguments);
        self.packed(path, callee, arguments, at);
        // A form that was filled is sent by a method of its own.
        if path.ends_with("orm-data().submit") || path.ends_with("FormData().submit") {
            self.record("file.send", &[(None, Value::unknown(callee.taint))], at, Taint::NONE);
        }
        self.told_to_shell(path, callee, arguments, at);
        self.declared(path, arguments);
        if matches!(&**path, "builtins.sorted" | "builtins.iter") {
            self.pass_on(callee.taint, None, arguments, at);
        }
        if let Some(value) = self.called_program(path, arguments, at) {
            return value;
        }
        if let Some(value) = self.looked_up(path, arguments) {
            return value;
        }
        if let Some(value) = self.library(path, callee, arguments, at) {
            return value;
        }
        let (returns, is_clean) = library::returned(self.context.rules, path);
        let is_any = path.ends_with(".*");
        if is_any || !path.starts_with("builtins.") && self.context.rules.apis_of(path).next().is_none() {
            self.blind_function(if is_any { "" } else { path }, arguments, at);
        }
        self.record(path, arguments, at, callee.taint);
        let printed = std::mem::take(&mut self.printing);
        let handed = self.handed_out(path, returns, arguments);
        let returns = returns | printed.taint | handed.taint;
        if returns.meets(Taint::SCREEN) {
            self.saved("save", returns, arguments, at);
        }
        let given = self.pass_on(callee.taint | returns, None, arguments, at);
        self.event(path, arguments, at);
        self.named_members(path, arguments);
        let taint = if is_clean { returns } else { returns | given | callee.taint.without(Taint::HIDDEN) };
        let about = arguments.first().and_then(|(_, value)| value.as_text());
        let about = about.filter(|_| returns.meets(Taint::NETWORK)).or_else(|| callee.about.clone());
        let about = handed.about.or(printed.about).or(about);
        let about = about.or_else(|| self.interpreter(path, arguments));
        let given_about = || arguments.iter().find_map(|(_, value)| value.about.clone());
        let about = if is_clean { about } else { about.or_else(given_about) };
        let made = super::name::fluent(path).map_or_else(|| format!("{path}()"), str::to_owned);
        let mut value = self.api(&made).with(taint).about(about);
        if matches!(value.shape, Shape::Unknown) {
            value.taint |= taint;
        }
        value
    }

    /// An option of a command line that may be given several times.
    fn declared(&mut self, path: &str, arguments: &Arguments) {
        let named = |wanted: &str| {
            let found = arguments.iter().find(|(name, _)| name.as_deref() == Some(wanted));
            found.and_then(|(_, value)| value.known_text())
        };
        if path.ends_with(".add_argument") && named("action").as_deref() == Some("append") {
            let first = || arguments.first().and_then(|(_, value)| value.known_text());
            let name = named("dest").or_else(first).unwrap_or_default();
            self.listed.insert(Rc::from(name.trim_start_matches('-').replace('-', "_")));
        }
    }

    /// `answer.pipe(file)` and `copyfileobj(answer, file)` write to the file.
    fn piped(&mut self, name: &str, from: Taint, arguments: &Arguments, at: u32) {
        let function = name.rsplit('.').next().unwrap_or_default();
        if !matches!(function, "pipe" | "copyfileobj" | "pipeline" | "pipeTo") {
            return;
        }
        let taint = arguments.iter().fold(from, |all, (_, value)| all | value.deep_taint());
        let is_file = |value: &Value| value.api_name().is_some_and(|name| &**name == "file()");
        // The input of a shell that was started.
        let is_shell = |value: &Value| {
            value.about.as_deref() == Some("sh")
                && value.api_name().is_some_and(|name| name.ends_with(".stdin") || name.ends_with(".spawn()"))
        };
        if taint.meets(Taint::NETWORK) && arguments.iter().any(|(_, value)| is_shell(value)) {
            self.record("file.run_downloaded", &[(None, Value::unknown(taint))], at, Taint::NONE);
        }
        // A request or connection that what is piped goes out by.
        let outlets: Vec<String> = arguments
            .iter()
            .filter_map(|(_, value)| Some(format!("{}.write", value.api_name()?)))
            .filter(|write| self.context.rules.apis_of(write).next().is_some())
            .collect();
        for write in outlets {
            self.record(&write, &[(None, Value::unknown(taint))], at, Taint::NONE);
        }
        // One that was made by a call which sends what it is given.
        let calls: Vec<String> = arguments
            .iter()
            .filter_map(|(_, value)| Some(value.api_name()?.strip_suffix("()")?.to_owned()))
            .filter(|call| {
                self.context.rules.apis_of(call).any(|api| matches!(&*api.class, "network" | "send"))
            })
            .collect();
        for call in calls {
            self.record(&call, &[(None, Value::unknown(taint))], at, Taint::NONE);
        }
        let files: Vec<_> =
            arguments.iter().filter(|(_, v)| is_file(v)).filter_map(|(_, v)| v.about.clone()).collect();
        for file in files {
            self.write(&file, &Value::unknown(taint), at);
        }
    }

    /// A call whose owner is not known, by the name of the method alone.
    fn record_method(&mut self, full: &str, base: &Value, arguments: &Arguments, at: u32) {
        if self.context.rules.apis_of(full).next().is_none() {
            return;
        }
        // What the method is called on counts like an argument.
        let mut all = vec![(None, base.clone())];
        all.extend(arguments.iter().cloned());
        self.record(full, &all, at, Taint::NONE);
    }
}

/// What an argument does not hand on to a function beside it.
const PUT_IN: Taint =
    Taint::union(&[Taint::VARIABLE, Taint::SECRET_VARIABLE, Taint::PARAMETER, Taint::INPUT]);
