//! The walk over a tree as if it ran: scopes, statements and functions.
//!
//! Branches are all taken, one after the other, and what they assign stands side by side. Loops over known lists run for
//! each element, others once. Functions are entered from their calls, a bounded number of times, and those that nothing
//! calls are walked at the end, so that every call in the text is seen.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::classes::{ClassInfo, Object};
use super::generator::Generator;
use super::judge::Hit;
use super::printed::Printed;
use super::siblings::Module;
use super::taint::Taint;
use super::tree::{Function, Kind, Node, Pattern, Statement};
use super::value::{ELEMENTS_MAX, Shape, Value};
use super::{Context, Effort, Language, NotParsed, Report, javascript, python};
use crate::decision::{Capability, CheckFinding};

/// Calls of functions of the file inside one another.
const CALLS_MAX: usize = 10;
/// Levels of evaluation, over all calls.
pub(super) const LEVELS_MAX: usize = 1_500;
/// Steps of any file; a longer one has more. Walking every statement once is free; what is done again, put together or
/// decoded costs steps.
const STEPS_BASE: usize = 30_000;
/// Steps of the longest file.
pub(super) const STEPS_MAX: usize = 400_000;
/// Values of one generator that are followed.
const YIELDED_MAX: usize = 64;
/// Times that a function is entered: fewer for a longer one.
const ENTRIES: std::ops::RangeInclusive<usize> = 3..=400;

/// Classes of calls that run what they are given.
const RUNNING: &[&str] =
    &["evaluate", "shell", "argv", "deserialize", "load_code", "import_by_name", "late", "any_function"];

/// Names of one function, class or module.
#[derive(Default)]
pub(super) struct Scope {
    pub parent: Option<usize>,
    pub names: HashMap<Rc<str>, Value>,
}

/// A function that is being entered.
#[derive(Default)]
struct Frame {
    /// What it returned so far.
    returned: Value,
    /// What it gave before it ended.
    yielded: Vec<Value>,
    /// What it gets back for what it gives.
    sent: Option<Value>,
}

/// The state of a walk.
pub(super) struct Walk<'a> {
    pub context: Context<'a>,
    pub language: Language,
    pub text: &'a str,
    /// Where the lines of the text begin.
    pub lines: Vec<usize>,
    pub scopes: Vec<Scope>,
    /// Modules all of whose names were imported.
    pub stars: Vec<Rc<str>>,
    pub classes: Vec<ClassInfo>,
    pub objects: Vec<Object>,
    /// The first instance of each class.
    pub instances: HashMap<usize, usize>,
    /// Functions that were met and the scope they were made in, and how often each was entered.
    pub functions: Vec<(Rc<Function>, usize, Option<usize>)>,
    entries: HashMap<*const Function, (usize, Value)>,
    /// The functions being entered.
    frames: Vec<Frame>,
    /// What was thrown.
    pub raised: Value,
    /// Members of libraries and modules that the file gave a value, by their canonical names.
    pub patched: BTreeMap<Rc<str>, Value>,
    /// Classes that functions are when they are used as such.
    pub prototypes: HashMap<*const Function, usize>,
    /// Functions that wait for events.
    pub handlers: Vec<Value>,
    /// Calls inside one another.
    pub calls: usize,
    /// Where the expression begins that is being looked at.
    pub at: u32,
    pub levels: usize,
    pub steps: usize,
    /// Loops and functions around that were walked before.
    pub again: usize,
    /// How many branches, loops or doubled braces are around.
    pub branches: usize,
    pub doubled: usize,
    /// Classes of calls seen so far.
    pub seen: BTreeSet<String>,
    pub hits: Vec<Hit>,
    pub capabilities: BTreeSet<Capability>,
    /// Where what was written to files comes from, by their paths.
    pub kept: HashMap<Rc<str>, Taint>,
    /// What commands print that were judged before.
    pub printed: HashMap<Rc<str>, Printed>,
    /// What the command prints that is being judged.
    pub printing: Printed,
    /// Generators of the file that values may be sent into.
    pub generators: Vec<Generator>,
    /// Where the text stands that is run as code and whose names the file knows; `None` outside of such text.
    pub place: Option<u32>,
    /// Functions of such texts, and where those stand.
    pub placed: HashMap<*const Function, u32>,
    /// Such texts inside one another, and all of them so far.
    pub defining: usize,
    pub defined: usize,
    /// Texts that were written to files, by their paths.
    pub written: Vec<(Rc<str>, Rc<str>)>,
    /// Modules of the bundle by the folder that they are asked for from and their names.
    pub modules: HashMap<Rc<str>, Module>,
    /// Paths of the modules that are being walked, the outermost first.
    pub module_path: Vec<Rc<str>>,
    /// Texts of the bundle that were opened, by the names that they were opened by.
    pub opened: HashMap<Rc<str>, Option<Rc<str>>>,
    /// Other files of the bundle that were read, and their bytes.
    pub sibling_files: usize,
    pub sibling_bytes: usize,
    /// Whether a module of the bundle was not followed.
    pub is_unread: bool,
    /// Options of the command line that may be given several times.
    pub listed: HashSet<Rc<str>>,
    /// Findings of text that is run as code.
    pub inner: Vec<CheckFinding>,
    /// Texts that were looked at as code or as commands, so that each is looked at once.
    pub looked_at: HashSet<(Rc<str>, bool)>,
}

/// Parses a file and follows it.
pub(super) fn scan(language: Language, text: &str, context: Context<'_>) -> Report {
    let parsed = match language {
        Language::Python => python::parse(text),
        Language::JavaScript => javascript::parse(context.path, text),
    };
    let text = parsed.rewritten.as_deref().unwrap_or(text);
    let mut walk = Walk {
        context,
        language,
        text,
        lines: super::judge::lines(text),
        scopes: vec![Scope::default()],
        stars: Vec::new(),
        classes: Vec::new(),
        objects: Vec::new(),
        instances: HashMap::new(),
        functions: Vec::new(),
        entries: HashMap::new(),
        frames: Vec::new(),
        raised: Value::default(),
        patched: BTreeMap::new(),
        prototypes: HashMap::new(),
        handlers: Vec::new(),
        calls: 0,
        at: 0,
        levels: 0,
        steps: match context.effort {
            Effort::Usual => (STEPS_BASE + text.len()).min(STEPS_MAX),
            Effort::Thorough => STEPS_MAX,
        },
        again: 0,
        branches: 0,
        doubled: 0,
        seen: BTreeSet::new(),
        hits: Vec::new(),
        capabilities: BTreeSet::new(),
        kept: HashMap::new(),
        printed: HashMap::new(),
        printing: Printed::default(),
        generators: Vec::new(),
        place: None,
        placed: HashMap::new(),
        defining: 0,
        defined: 0,
        written: Vec::new(),
        modules: HashMap::new(),
        module_path: Vec::new(),
        opened: HashMap::new(),
        sibling_files: 0,
        sibling_bytes: 0,
        is_unread: false,
        listed: HashSet::new(),
        inner: Vec::new(),
        looked_at: HashSet::new(),
    };
    // What runs the file gives it names.
    if text.lines().next().is_some_and(|line| line.starts_with("#!") && line.contains("zx")) {
        walk.scopes[0].names.insert(Rc::from("$"), Value::api("zx.$"));
    }
    if let (Language::Python, Some(text)) = (language, first_text(&parsed.body)) {
        walk.scopes[0].names.insert(Rc::from("__doc__"), Value::text(text).with(Taint::OWN_TEXT));
    }
    walk.block(&parsed.body, 0);
    walk.remaining();
    super::shape::look(&mut walk);
    // Without steps a name or text may not have been put together, which matters where it could be run.
    let is_starved = walk.steps == 0 && RUNNING.iter().any(|class| walk.seen.contains(*class));
    let not_parsed = match (parsed.is_whole, parsed.is_cut || is_starved) {
        (_, true) => Some(NotParsed::TooDeep),
        (false, false) => Some(NotParsed::Syntax),
        (true, false) => None,
    };
    let (siblings_bytes, is_unread) = (walk.sibling_bytes, walk.is_unread);
    let (findings, capabilities) = walk.report();
    // What such a module is handed, or gives, matters to a file that does something with it.
    let is_unread = is_unread && !(findings.is_empty() && capabilities.is_empty());
    Report { findings, capabilities, not_parsed, siblings_bytes, is_starved, is_unread }
}

impl Walk<'_> {
    /// Takes a step; `false` when none is left. Then everything is still walked once.
    pub fn step(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_sub(steps);
        self.steps > 0
    }

    pub fn scope(&mut self, parent: usize) -> usize {
        self.scopes.push(Scope { parent: Some(parent), names: HashMap::new() });
        self.scopes.len() - 1
    }

    /// What a name is bound to, from the inside out.
    pub fn lookup(&self, name: &str, scope: usize) -> Option<&Value> {
        let mut at = Some(scope);
        while let Some(scope) = at {
            let scope = &self.scopes[scope];
            if let Some(value) = scope.names.get(name) {
                return Some(value);
            }
            at = scope.parent;
        }
        None
    }

    /// Binds a name. In a branch the former value stays possible.
    pub fn set(&mut self, name: &Rc<str>, value: Value, scope: usize) {
        // An assignment in a function may be to a name of the module: then that is the one that matters.
        let mut at = scope;
        if self.language == Language::JavaScript || self.scopes[scope].parent.is_some() {
            let mut next = Some(scope);
            while let Some(scope) = next {
                if self.scopes[scope].names.contains_key(name) {
                    at = scope;
                    break;
                }
                next = self.scopes[scope].parent;
            }
        }
        let is_branch = self.branches > 0 || at != scope;
        let names = &mut self.scopes[at].names;
        let value = match names.remove(name) {
            Some(old) if is_branch => old.or(value),
            _ => value,
        };
        names.insert(name.clone(), value);
    }

    pub fn block(&mut self, body: &[Statement], scope: usize) {
        // Functions stand before the code that uses them.
        for statement in body {
            match statement {
                Statement::Function(function) => self.declare(function, scope),
                Statement::Import { local, module, at } => self.import(local, module, *at, scope),
                _ => {}
            }
        }
        body.iter().for_each(|statement| self.statement(statement, scope));
    }

    /// Gives a value to whoever iterates over what the function being entered gives.
    pub fn yields(&mut self, value: Value) {
        if let Some(frame) = self.frames.last_mut()
            && frame.yielded.len() < YIELDED_MAX
        {
            frame.yielded.push(value);
        }
    }

    /// What whoever iterates sends back to the function being entered.
    pub fn sent(&self) -> Option<Value> {
        self.frames.last()?.sent.clone()
    }

    fn declare(&mut self, function: &Rc<Function>, scope: usize) {
        if let Some(name) = &function.name {
            let value = self.function(function, scope);
            self.scopes[scope].names.insert(name.clone(), value);
        }
    }

    /// A function as a value; it is remembered, so that it is walked even if nothing calls it.
    pub fn function(&mut self, function: &Rc<Function>, scope: usize) -> Value {
        if !self.functions.iter().rev().take(64).any(|(known, _, _)| Rc::ptr_eq(known, function)) {
            self.functions.push((function.clone(), scope, None));
        }
        if let Some(place) = self.place {
            self.placed.insert(Rc::as_ptr(function), place);
        }
        Value::of(Shape::Function(function.clone(), scope))
    }

    fn statement(&mut self, statement: &Statement, scope: usize) {
        match statement {
            Statement::Expression(node) => {
                self.value(node, scope);
            }
            Statement::Assign(pattern, node) => {
                let value = self.value(node, scope);
                self.bind(pattern, value, scope);
            }
            Statement::Append(pattern, node) => {
                let added = self.value(node, scope);
                let old = match pattern {
                    Pattern::Name(name) => self.lookup(name, scope).cloned().unwrap_or_default(),
                    Pattern::Place(place) => self.value(place, scope),
                    _ => Value::default(),
                };
                let value = self.sum(vec![old, added]);
                // What is appended to was there before: it is not one of two choices.
                match pattern {
                    Pattern::Name(name) => self.replace(name, value, scope),
                    _ => self.bind(pattern, value, scope),
                }
            }
            Statement::Import { local, module, at } => self.import(local, module, *at, scope),
            Statement::ImportFrom { local, module, name, at } => {
                self.import_from(local, module, name, *at, scope)
            }
            Statement::Function(function) => self.declare(function, scope),
            Statement::Class(class) => {
                let value = self.class(class, scope);
                if let Some(name) = &class.name {
                    self.set(name, value, scope);
                }
            }
            Statement::Block(body, is_doubled) => {
                self.branches += 1;
                self.doubled += usize::from(*is_doubled);
                self.block(body, scope);
                self.doubled -= usize::from(*is_doubled);
                self.branches -= 1;
            }
            Statement::Loop { target, iterable, body } => {
                self.run_loop(target, iterable.as_ref(), body, scope)
            }
            Statement::Return(node) => {
                let value = node.as_ref().map_or_else(Value::default, |node| self.value(node, scope));
                if let Some(frame) = self.frames.last_mut() {
                    frame.returned = std::mem::take(&mut frame.returned).or(value);
                }
            }
            Statement::Raise(node) => {
                let value = self.value(node, scope);
                self.raised = std::mem::take(&mut self.raised).or(value);
            }
        }
    }

    /// Gives a bound name another value, wherever it is bound.
    pub fn replace(&mut self, name: &Rc<str>, value: Value, scope: usize) {
        let mut at = Some(scope);
        while let Some(scope) = at {
            if let Some(old) = self.scopes[scope].names.get_mut(name) {
                *old = value;
                return;
            }
            at = self.scopes[scope].parent;
        }
        self.scopes[scope].names.insert(name.clone(), value);
    }

    fn run_loop(&mut self, target: &Pattern, iterable: Option<&Node>, body: &[Statement], scope: usize) {
        let iterated = iterable.map(|node| self.value(node, scope));
        let elements = match &iterated {
            Some(value) => self.elements(value).unwrap_or_default(),
            None => Vec::new(),
        };
        self.branches += 1;
        if elements.is_empty() {
            let taint = iterated.as_ref().map_or(Taint::NONE, Value::deep_taint);
            let about = iterated.and_then(|value| value.about);
            self.bind(target, Value::unknown(taint).about(about), scope);
            self.block(body, scope);
        }
        let is_name = matches!(target, Pattern::Name(_));
        for (nth, element) in elements.into_iter().take(ELEMENTS_MAX).enumerate() {
            // The first run sees everything; the others are for what is put together along the way.
            if nth > 0 && !self.step(8) {
                break;
            }
            self.again += usize::from(nth > 0);
            match target {
                Pattern::Name(name) if is_name => self.replace(name, element, scope),
                _ => self.bind(target, element, scope),
            }
            self.block(body, scope);
            self.again -= usize::from(nth > 0);
        }
        self.branches -= 1;
    }

    /// The elements of something that is iterated over, where they are known.
    pub fn elements(&mut self, value: &Value) -> Option<Vec<Value>> {
        let taint = value.taint;
        let count = match &value.shape {
            Shape::List(values) => values.len(),
            Shape::Bytes(bytes) => bytes.len(),
            Shape::Text(text) => text.len(),
            Shape::Map(entries) if self.language == Language::Python => entries.len(),
            // A `Map` gives pairs; what has a length is a list of nothing yet.
            Shape::Map(entries) if value.entry("length").is_none() => entries.len(),
            _ => return None,
        };
        if count > ELEMENTS_MAX || !self.step(count / 8) {
            return None;
        }
        let number = |byte: &u8| Value::of(Shape::Number(f64::from(*byte))).with(taint);
        Some(match &value.shape {
            Shape::List(values) => values.iter().map(|v| v.clone().with(taint)).collect(),
            Shape::Bytes(bytes) => bytes.iter().map(number).collect(),
            Shape::Text(text) => text.chars().map(|c| Value::text(c.to_string()).with(taint)).collect(),
            Shape::Map(entries) if self.language == Language::Python => {
                entries.iter().map(|(key, _)| Value::text(key.clone()).with(taint)).collect()
            }
            Shape::Map(entries) => {
                let pair = |(key, value): &(Rc<str>, Value)| {
                    Value::list(vec![Value::text(key.clone()), value.clone()]).with(taint)
                };
                entries.iter().map(pair).collect()
            }
            _ => return None,
        })
    }

    /// Binds the names of a pattern to the parts of a value.
    pub fn bind(&mut self, pattern: &Pattern, value: Value, scope: usize) {
        match pattern {
            Pattern::Nothing => {}
            Pattern::Name(name) | Pattern::NamedRest(name) => self.set(name, value, scope),
            Pattern::Default(inner, default) => {
                let default = self.value(default, scope);
                let value = if matches!(value.shape, Shape::Unknown) { value.or(default) } else { value };
                self.bind(inner, value, scope);
            }
            Pattern::Star(inner) => self.bind(inner, value, scope),
            Pattern::List(patterns) => {
                let star = patterns.iter().position(|pattern| matches!(pattern, Pattern::Star(_)));
                let parts = match &value.shape {
                    Shape::List(values) if star.is_none() => {
                        values.iter().take(patterns.len()).cloned().collect()
                    }
                    _ => self.elements(&value).unwrap_or_default(),
                };
                let taint = value.deep_taint();
                // How many elements the part with the star takes.
                let taken = (parts.len() + 1).saturating_sub(patterns.len());
                for (nth, pattern) in patterns.iter().enumerate() {
                    let rest = || Value::unknown(taint).about(value.about.clone());
                    let part = match star {
                        Some(star) if nth == star && !parts.is_empty() => {
                            let end = (nth + taken).min(parts.len());
                            Value::list(parts.get(nth..end).unwrap_or_default().to_vec())
                        }
                        Some(star) if nth > star => parts.get(nth - 1 + taken).cloned().unwrap_or_else(rest),
                        _ => parts.get(nth).cloned().unwrap_or_else(rest),
                    };
                    self.bind(pattern, part, scope);
                }
            }
            Pattern::Map(entries) => {
                for (key, pattern) in entries {
                    let part = match key {
                        Some(key) => {
                            let is_plain = matches!(key.kind, Kind::Text(_));
                            let key = self.value(key, scope);
                            self.index(&value, &key, is_plain)
                        }
                        None => value.clone(),
                    };
                    self.bind(pattern, part, scope);
                }
            }
            Pattern::Place(place) => self.store(place, value, scope),
        }
    }

    /// Enters a function of the file and gives what it returns.
    pub fn enter(
        &mut self,
        function: &Rc<Function>,
        scope: usize,
        arguments: &[(Option<Rc<str>>, Value)],
        this: Option<Value>,
    ) -> Value {
        self.enter_with(function, scope, arguments, this, None)
    }

    /// Enters a function of the file, to which `sent` is sent where it gives something before its end.
    pub fn enter_with(
        &mut self,
        function: &Rc<Function>,
        scope: usize,
        arguments: &[(Option<Rc<str>>, Value)],
        this: Option<Value>,
        sent: Option<Value>,
    ) -> Value {
        let key = Rc::as_ptr(function);
        let taint = arguments.iter().fold(Taint::NONE, |all, (_, value)| all | value.deep_taint());
        let size = function.body.len().max(1) * 20;
        let entries_max = (2_000 / size).clamp(*ENTRIES.start(), *ENTRIES.end());
        let (entered, last) = self.entries.get(&key).cloned().unwrap_or_default();
        // The first time is free of steps: what a function does is seen even if no step is left.
        if self.calls >= CALLS_MAX || entered >= entries_max || (entered > 0 && !self.step(20)) {
            return Value { shape: Shape::Unknown, ..last }.with(taint);
        }
        self.entries.insert(key, (entered + 1, last));
        let inner = self.scope(scope);
        self.parameters(function, arguments, this.clone(), inner);
        self.calls += 1;
        self.frames.push(Frame { sent, ..Frame::default() });
        let (branches, doubled) = (std::mem::take(&mut self.branches), std::mem::take(&mut self.doubled));
        let place = std::mem::replace(&mut self.place, self.placed.get(&key).copied());
        self.again += usize::from(entered > 0);
        self.block(&function.body, inner);
        self.again -= usize::from(entered > 0);
        self.place = place;
        (self.branches, self.doubled) = (branches, doubled);
        self.calls -= 1;
        let frame = self.frames.pop().unwrap_or_default();
        let value = match frame.yielded.is_empty() {
            true => frame.returned,
            false => self.generator(frame.yielded, function, scope, arguments, this),
        };
        // What was entered meanwhile counts: functions that call each other would be entered without end otherwise.
        let entry = self.entries.entry(key).or_default();
        entry.1 = value.clone();
        value
    }

    fn parameters(
        &mut self,
        function: &Function,
        arguments: &[(Option<Rc<str>>, Value)],
        this: Option<Value>,
        scope: usize,
    ) {
        let mut unnamed = Vec::new();
        if let Some(this) = this {
            self.scopes[scope].names.insert(Rc::from("this"), this.clone());
            // The first parameter of a method is the instance, in Python.
            if self.language == Language::Python {
                unnamed.push(this);
            }
        }
        unnamed.extend(arguments.iter().filter(|(name, _)| name.is_none()).map(|(_, value)| value.clone()));
        for (nth, pattern) in function.parameters.iter().enumerate() {
            if let Pattern::NamedRest(name) = pattern {
                let rest = named_rest(function, arguments);
                self.scopes[scope].names.insert(name.clone(), rest);
                continue;
            }
            let name = match pattern {
                Pattern::Name(name) => Some(name),
                Pattern::Default(inner, _) => match &**inner {
                    Pattern::Name(name) => Some(name),
                    _ => None,
                },
                _ => None,
            };
            let named = name.and_then(|name| {
                arguments
                    .iter()
                    .find(|(given, _)| given.as_ref() == Some(name))
                    .map(|(_, value)| value.clone())
            });
            let value = match named {
                Some(value) => value,
                None if function.rest == Some(nth) => {
                    Value::list(unnamed.get(nth..).unwrap_or_default().to_vec())
                }
                None => unnamed.get(nth).cloned().unwrap_or_else(|| Value::unknown(Taint::NONE)),
            };
            if let Some(name) = name {
                // Bound in the new scope, whatever the name means outside.
                self.scopes[scope].names.insert(name.clone(), Value::unknown(Taint::NONE));
            }
            self.bind(pattern, value, scope);
        }
    }

    /// Walks the functions that nothing called.
    fn remaining(&mut self) {
        let mut nth = 0;
        while nth < self.functions.len() {
            let (function, scope, class) = self.functions[nth].clone();
            nth += 1;
            if self.entries.contains_key(&Rc::as_ptr(&function)) {
                continue;
            }
            let unknown = (None, Value::unknown(Taint::PARAMETER));
            let arguments = vec![unknown; function.parameters.len()];
            let this = class.map(|class| self.shared_instance(class));
            self.calls = 0;
            self.enter(&function, scope, &arguments, this);
        }
    }
}

/// The named arguments that no parameter of a function takes.
fn named_rest(function: &Function, arguments: &[(Option<Rc<str>>, Value)]) -> Value {
    let is_taken = |name: &Rc<str>| {
        function.parameters.iter().any(|pattern| match pattern {
            Pattern::Name(known) => known == name,
            Pattern::Default(inner, _) => matches!(&**inner, Pattern::Name(known) if known == name),
            _ => false,
        })
    };
    let named = arguments.iter().filter_map(|(name, value)| Some((name.clone()?, value.clone())));
    let entries: Vec<_> = named.filter(|(name, _)| !is_taken(name)).collect();
    match entries.is_empty() {
        // What is given to a function whose callers are not known.
        true => {
            Value::unknown(arguments.iter().fold(Taint::NONE, |all, (_, value)| all | value.deep_taint()))
        }
        false => Value::of(Shape::Map(Rc::new(entries))),
    }
}

/// The text that a module, a class or a function of Python begins with.
pub(super) fn first_text(body: &[Statement]) -> Option<Rc<str>> {
    match body.first()? {
        Statement::Expression(Node { kind: Kind::Text(text), .. }) => Some(text.clone()),
        _ => None,
    }
}
