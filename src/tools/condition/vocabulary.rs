//! What expressions are made of: functions, macros, types.

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};

use super::Variable;

/// Functions that expressions can call, with the number of values each takes, the one before the dot included.
pub(super) const FUNCTIONS: [(&str, usize, Kind); 11] = [
    ("contains", 2, Kind::Bool),
    ("startsWith", 2, Kind::Bool),
    ("endsWith", 2, Kind::Bool),
    ("matches", 2, Kind::Bool),
    ("size", 1, Kind::Number),
    ("string", 1, Kind::String),
    ("int", 1, Kind::Number),
    ("uint", 1, Kind::Number),
    ("double", 1, Kind::Number),
    ("bool", 1, Kind::Bool),
    ("type", 1, Kind::Type),
];
/// Macros, for the list in messages.
pub(super) const MACROS: [&str; 6] = ["has", "all", "exists", "exists_one", "map", "filter"];
/// Functions that are called behind a dot only.
pub(super) const MEMBERS_ONLY: [&str; 3] = ["contains", "startsWith", "endsWith"];
/// Names of types, for `type(x) == string`.
pub(super) const TYPES: [&str; 8] = ["bool", "int", "uint", "double", "string", "list", "map", "null_type"];

/// What is known of the type of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Number,
    String,
    List,
    Map,
    Null,
    Type,
    /// Anything.
    Any,
}

impl Kind {
    pub(super) fn may_be(self, other: Self) -> bool {
        self == other || self == Self::Any
    }

    pub(super) const fn with_article(self) -> &'static str {
        match self {
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::List => "a list",
            Self::Map => "an object",
            Self::Null => "null",
            Self::Type => "a type",
            Self::Any => "a value of any type",
        }
    }

    pub(super) const fn of(variable: Variable) -> Self {
        match variable {
            Variable::Hook | Variable::Tool | Variable::Message => Self::String,
            Variable::Args | Variable::Params | Variable::Metadata | Variable::Context => Self::Map,
            Variable::Findings | Variable::Effects => Self::List,
            Variable::Result => Self::Any,
        }
    }
}

/// How a macro is written.
pub(super) fn macro_usage(name: &str) -> String {
    match name {
        "has" => "`has(args.name)`".to_owned(),
        _ => format!("`list.{name}(x, …)`"),
    }
}

/// A number of values, in words.
pub(super) fn counted(count: usize) -> String {
    match count {
        0 => "nothing in its brackets".to_owned(),
        1 => "one value in its brackets".to_owned(),
        n => format!("{n} values in its brackets"),
    }
}

/// Whether the expression itself holds `name`, as a member or as a string.
pub(super) fn names(tree: &IdedExpr, name: &str) -> bool {
    let mut open = vec![tree];
    while let Some(node) = open.pop() {
        match &node.expr {
            Expr::Select(select) if select.field == name => return true,
            Expr::Literal(LiteralValue::String(text)) if text.inner() == name => return true,
            Expr::Select(select) => open.push(&select.operand),
            Expr::Call(call) => open.extend(call.target.as_deref().into_iter().chain(&call.args)),
            Expr::List(list) => open.extend(&list.elements),
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        open.extend([&entry.key, &entry.value]);
                    }
                }
            }
            Expr::Comprehension(c) => {
                open.extend([&c.iter_range, &c.accu_init, &c.loop_cond, &c.loop_step, &c.result]);
            }
            _ => {}
        }
    }
    false
}
