//! Methods of classes that stand in for something else: operators, and what the classes above them have.

use super::Language;
use super::follow::Walk;
use super::name::bound;
use super::tree::Operator;
use super::value::{Shape, Value};

/// Calls inside one another in which methods still stand in.
const CALLS_MAX: usize = 6;

impl Walk<'_> {
    /// A member of the classes above that of `this`.
    pub fn of_parents(&mut self, name: &str, scope: usize) -> Option<Value> {
        let this = self.lookup("this", scope)?.clone();
        let Shape::Object(number) = this.shape else { return None };
        let class = self.objects[number].class;
        let parents = self.classes.get(class)?.parents.clone();
        let found = parents.iter().find_map(|parent| self.in_class(*parent, name, 0))?;
        Some(bound(&found, &this))
    }

    /// What an operator gives that a class of the file defines; `None` when none does. `None` for the operator is a sum.
    pub fn by_class(
        &mut self,
        operator: Option<Operator>,
        left: &Value,
        right: &Value,
        at: u32,
    ) -> Option<Value> {
        if self.language != Language::Python || self.calls >= CALLS_MAX {
            return None;
        }
        let names: &[&str] = match operator {
            None => &["add"],
            Some(Operator::Subtract) => &["sub"],
            Some(Operator::Multiply) => &["mul"],
            Some(Operator::Divide) => &["truediv", "floordiv"],
            Some(Operator::Modulo) => &["mod"],
            Some(Operator::Xor) => &["xor"],
            Some(Operator::And) => &["and"],
            Some(Operator::Or) => &["or"],
            Some(Operator::ShiftLeft) => &["lshift"],
            Some(Operator::ShiftRight) => &["rshift"],
            Some(Operator::Equal) => &["eq"],
            Some(Operator::Unequal) => &["ne"],
            Some(Operator::Compare) => &["lt", "gt", "le", "ge", "contains"],
        };
        // The right side of a comparison is the list of what is compared.
        let right = match (operator, right.as_list()) {
            (Some(Operator::Compare), Some([one])) => one,
            _ => right,
        };
        for name in names {
            if let Some(function) = self.special(left, &format!("__{name}__")) {
                return Some(self.call_of(&function, left, &[(None, right.clone())], at));
            }
            let turned = if *name == "contains" { "__contains__".to_owned() } else { format!("__r{name}__") };
            if let Some(function) = self.special(right, &turned) {
                return Some(self.call_of(&function, right, &[(None, left.clone())], at));
            }
        }
        None
    }

    fn special(&self, value: &Value, name: &str) -> Option<Value> {
        let Shape::Object(number) = value.shape else { return None };
        self.in_class(self.objects[number].class, name, 0)
    }
}
