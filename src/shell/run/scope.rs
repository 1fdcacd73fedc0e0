//! What a script has set so far: variables, functions, aliases, positional parameters, the working directory.
//!
//! A subshell marks the journal and rolls back to the mark when it ends, so that nothing is copied for it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use super::super::argument::Argument;
use super::super::ast::CommandId;
use super::super::carried::Carried;

/// References that are followed from one to the next.
const REFERENCES_MAX: usize = 8;

/// Values of a variable that are remembered beside the last one.
const ALTERNATIVES_MAX: usize = 4;
/// Variables whose names are looked for in scripts of other languages.
const CARRYING_MAX: usize = 32;

/// What a variable holds.
#[derive(Clone, Debug)]
pub(in crate::shell) enum Value {
    /// The script unset it.
    Unset,
    /// A text, perhaps with unknown pieces.
    Text(Rc<Argument>),
    /// An array by index.
    Array(Rc<Vec<Argument>>),
    /// An array by name.
    Map(Rc<BTreeMap<String, Argument>>),
    /// Another name of a variable, as `declare -n` makes it; empty while it names none.
    Reference(Rc<str>),
}

/// A variable: the value assigned last, and those that branches may have left instead.
#[derive(Clone, Debug)]
pub(in crate::shell) struct Variable {
    current: Value,
    others: Vec<Value>,
}

/// A function that was defined.
#[derive(Clone, Debug)]
pub(in crate::shell) struct Function {
    /// The script whose tree holds the body.
    pub script: u32,
    /// The body in that tree.
    pub body: CommandId,
    /// The text of the body, for when that tree is gone.
    pub text: Rc<str>,
    /// The span to report when the body stems from a nested script.
    pub span: Option<Range<usize>>,
}

enum Undo {
    Variable(Rc<str>, Option<Variable>),
    Function(Rc<str>, Option<Function>),
    Alias(Rc<str>, Option<Rc<Argument>>),
    Positional(Option<Rc<Vec<Argument>>>),
}

/// A place in the journal to roll back to.
#[derive(Clone, Copy)]
pub(in crate::shell) struct Mark(usize);

/// See the module.
#[derive(Default)]
pub(in crate::shell) struct Scope {
    variables: BTreeMap<Rc<str>, Variable>,
    functions: BTreeMap<Rc<str>, Function>,
    aliases: BTreeMap<Rc<str>, Rc<Argument>>,
    positional: Option<Rc<Vec<Argument>>>,
    journal: Vec<Undo>,
    marks: usize,
    alternatives: usize,
    has_references: bool,
    /// How many branches that may not run enclose the current command.
    pub conditional: usize,
}

impl Scope {
    /// Begins a subshell.
    pub fn mark(&mut self) -> Mark {
        self.marks += 1;
        Mark(self.journal.len())
    }

    /// Ends a subshell: what it set is forgotten.
    pub fn roll_back(&mut self, mark: Mark) {
        self.marks -= 1;
        while self.journal.len() > mark.0 {
            match self.journal.pop() {
                Some(Undo::Variable(name, old)) => drop(put(&mut self.variables, name, old)),
                Some(Undo::Function(name, old)) => drop(put(&mut self.functions, name, old)),
                Some(Undo::Alias(name, old)) => drop(put(&mut self.aliases, name, old)),
                Some(Undo::Positional(old)) => self.positional = old,
                None => {}
            }
        }
    }

    /// Value of a variable. `choice` selects among those that branches left; 0 is the one assigned last.
    pub fn get(&self, name: &str, choice: usize) -> Option<&Value> {
        let variable = self.variables.get(self.referred(name))?;
        match choice.checked_sub(1).filter(|_| !variable.others.is_empty()) {
            Some(other) => variable.others.get(other).or(Some(&variable.current)),
            None => Some(&variable.current),
        }
    }

    /// How many values the variable may have beside the one assigned last.
    pub fn alternatives(&self, name: &str) -> usize {
        if self.alternatives == 0 {
            0
        } else {
            self.variables.get(self.referred(name)).map_or(0, |v| v.others.len())
        }
    }

    /// Whether any variable was ever left with more than one value.
    pub fn has_alternatives(&self) -> bool {
        self.alternatives > 0
    }

    /// The name of the variable that a name means: its own, or that of the variable that it refers to.
    pub fn referred<'n>(&'n self, name: &'n str) -> &'n str {
        let mut name = name;
        if self.has_references {
            for _ in 0..REFERENCES_MAX {
                match self.variables.get(name).map(|variable| &variable.current) {
                    Some(Value::Reference(other)) if !other.is_empty() => name = other,
                    _ => break,
                }
            }
        }
        name
    }

    /// Makes a name another one of a variable, as `declare -n` does.
    pub fn refer(&mut self, name: &str, other: &str) {
        self.has_references = true;
        self.put(name, Value::Reference(Rc::from(other)));
    }

    /// Sets a variable, or the one that it refers to.
    pub fn set(&mut self, name: &str, value: Value) {
        if !self.has_references {
            self.put(name, value);
            return;
        }
        let name = self.referred(name).to_owned();
        // A reference that names no variable yet takes the first value as the name of one.
        match (self.get(&name, 0), &value) {
            (Some(Value::Reference(_)), Value::Text(text)) if super::names::is_variable(&text.text) => {
                self.put(&name, Value::Reference(Rc::from(text.text.as_str())));
            }
            _ => self.put(&name, value),
        }
    }

    fn put(&mut self, name: &str, value: Value) {
        let (name, old) = match self.variables.remove_entry(name) {
            Some((name, old)) => (name, Some(old)),
            None => (Rc::from(name), None),
        };
        let mut others = Vec::new();
        if self.conditional > 0
            && let Some(old) = &old
        {
            others.reserve_exact(old.others.len() + 1);
            others.extend(old.others.iter().filter(|other| !same(other, &value)).cloned());
            if !same(&old.current, &value) && !others.iter().any(|other| same(other, &old.current)) {
                others.push(old.current.clone());
            }
            let extra = others.len().saturating_sub(ALTERNATIVES_MAX);
            others.drain(..extra);
            self.alternatives += usize::from(!others.is_empty());
        }
        if self.marks > 0 {
            self.journal.push(Undo::Variable(Rc::clone(&name), old));
        }
        self.variables.insert(name, Variable { current: value, others });
    }

    /// Variables that hold the text of files, by name, the first of them if there are many.
    pub fn carrying(&self) -> impl Iterator<Item = (&str, &Carried)> {
        let texts = self.variables.iter().filter_map(|(name, variable)| match &variable.current {
            Value::Text(text) if !text.carried.is_empty() => Some((&**name, &text.carried)),
            _ => None,
        });
        texts.take(CARRYING_MAX)
    }

    /// A variable as it is, to put it back later.
    pub fn variable(&self, name: &str) -> Option<Variable> {
        self.variables.get(name).cloned()
    }

    /// Puts a variable back to what it was.
    pub fn put_back(&mut self, name: &str, old: Option<Variable>) {
        let name: Rc<str> = Rc::from(name);
        let new = put(&mut self.variables, Rc::clone(&name), old);
        if self.marks > 0 {
            self.journal.push(Undo::Variable(name, new));
        }
    }

    /// Sets a variable to a text.
    pub fn set_text(&mut self, name: &str, value: Argument) {
        self.set(name, Value::Text(Rc::new(value)));
    }

    /// Positional parameters; `None` when they come from outside and are not known.
    pub fn positional(&self) -> Option<&Rc<Vec<Argument>>> {
        self.positional.as_ref()
    }

    /// Replaces the positional parameters and gives back the old ones.
    pub fn set_positional(&mut self, new: Option<Rc<Vec<Argument>>>) -> Option<Rc<Vec<Argument>>> {
        let old = std::mem::replace(&mut self.positional, new);
        if self.marks > 0 {
            self.journal.push(Undo::Positional(old.clone()));
        }
        old
    }

    /// The function of that name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.get(name)
    }

    /// Names of all functions, in order.
    pub fn function_names(&self) -> impl Iterator<Item = String> {
        self.functions.keys().map(|name| name.to_string())
    }

    /// Texts of all aliases, in the order of their names.
    pub fn aliases(&self) -> impl Iterator<Item = Rc<Argument>> {
        self.aliases.values().cloned()
    }

    /// Whether any function was defined.
    pub fn has_functions(&self) -> bool {
        !self.functions.is_empty()
    }

    /// Defines or removes a function.
    pub fn set_function(&mut self, name: &str, function: Option<Function>) {
        let name: Rc<str> = Rc::from(name);
        let old = put(&mut self.functions, Rc::clone(&name), function);
        if self.marks > 0 {
            self.journal.push(Undo::Function(name, old));
        }
    }

    /// The alias of that name.
    pub fn alias(&self, name: &str) -> Option<Rc<Argument>> {
        self.aliases.get(name).cloned()
    }

    /// Defines or removes an alias.
    pub fn set_alias(&mut self, name: &str, text: Option<Argument>) {
        let name: Rc<str> = Rc::from(name);
        let old = put(&mut self.aliases, Rc::clone(&name), text.map(Rc::new));
        if self.marks > 0 {
            self.journal.push(Undo::Alias(name, old));
        }
    }

    /// Names of variables that begin so, in order.
    pub fn names(&self, prefix: &str) -> Vec<String> {
        let begins = |name: &Rc<str>| name.starts_with(prefix);
        self.variables.keys().filter(|name| begins(name)).take(64).map(|name| name.to_string()).collect()
    }
}

fn put<V>(map: &mut BTreeMap<Rc<str>, V>, name: Rc<str>, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => map.insert(name, value),
        None => map.remove(&name),
    }
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Unset, Value::Unset) => true,
        (Value::Reference(a), Value::Reference(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => a.text == b.text && a.origin == b.origin,
        (Value::Array(a), Value::Array(b)) => {
            Rc::ptr_eq(a, b) || a.iter().map(|x| &x.text).eq(b.iter().map(|x| &x.text))
        }
        _ => false,
    }
}
