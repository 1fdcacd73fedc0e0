//! The tree that both languages are brought to: what matters of an expression or statement for following names and values.
//!
//! Types, annotations and operators without meaning for text are left out, but never a call: what has no form of its own
//! keeps its parts.

use std::rc::Rc;

/// An expression, and where it begins.
#[derive(Debug)]
pub(super) struct Node {
    pub kind: Kind,
    /// Byte offset in the source.
    pub at: u32,
}

/// Kinds of expressions.
#[derive(Debug)]
pub(super) enum Kind {
    Text(Rc<str>),
    Bytes(Rc<[u8]>),
    Number(f64),
    Bool(bool),
    Null,
    /// A literal pattern: what it matches, a slash, its flags.
    Pattern(Rc<str>),
    Name(Rc<str>),
    Member(Box<Node>, Rc<str>),
    Index(Box<Node>, Box<Node>),
    /// Of a text or list: from, to, step.
    Slice(Box<Node>, [Option<Box<Node>>; 3]),
    Call {
        callee: Box<Node>,
        arguments: Vec<Argument>,
        is_new: bool,
    },
    /// Operands of a row of `+`.
    Sum(Vec<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Not(Box<Node>),
    Minus(Box<Node>),
    /// Pieces of an interpolated text.
    Template(Vec<Node>),
    List(Vec<Node>),
    /// Entries; those without a key are spread.
    Map(Vec<(Option<Node>, Node)>),
    Function(Rc<Function>),
    Class(Rc<Class>),
    /// One of these, whichever.
    Choice(Vec<Node>),
    /// All of these; the value of the last.
    Sequence(Vec<Node>),
    /// Element, then `for target in iterable if tests`.
    Comprehension(Box<Node>, Vec<(Pattern, Node, Vec<Node>)>),
    Assign(Box<Pattern>, Box<Node>),
    Await(Box<Node>),
    /// What entering a context gives.
    Entered(Box<Node>),
    /// A value that a generator gives.
    Yield(Option<Box<Node>>),
    /// All values that another generator gives, and what it returns.
    Delegate(Box<Node>),
    /// What was thrown last.
    Raised,
    /// A member that a function gives when it is read.
    Getter(Box<Node>),
    /// Text that stands as a type: whoever asks for the types has it worked out as an expression.
    Quoted(Rc<str>),
    /// A template that is handed to a function: the pieces of text, and what stands between them.
    Tagged(Box<Node>, Vec<Node>),
    Spread(Box<Node>),
    /// A value of which nothing is known, made of these.
    Unknown(Vec<Node>),
}

/// An argument of a call.
#[derive(Debug)]
pub(super) struct Argument {
    pub name: Option<Rc<str>>,
    pub value: Node,
    pub is_spread: bool,
}

/// Operators with a meaning for text and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Xor,
    And,
    Or,
    ShiftLeft,
    ShiftRight,
    Equal,
    Unequal,
    Compare,
}

/// What is assigned to.
#[derive(Debug)]
pub(super) enum Pattern {
    Name(Rc<str>),
    /// A member or an element of something.
    Place(Node),
    List(Vec<Pattern>),
    /// The elements of a list that no other part takes.
    Star(Box<Pattern>),
    /// Keys and what they are bound to; without a key it is the rest.
    Map(Vec<(Option<Node>, Pattern)>),
    /// A parameter that takes the named arguments that no other one takes.
    NamedRest(Rc<str>),
    /// With a default.
    Default(Box<Pattern>, Box<Node>),
    Nothing,
}

/// A function of any form.
#[derive(Debug)]
pub(super) struct Function {
    pub name: Option<Rc<str>>,
    pub parameters: Vec<Pattern>,
    /// Index of the parameter that takes the remaining arguments.
    pub rest: Option<usize>,
    pub body: Vec<Statement>,
    /// How it is written.
    pub source: Source,
}

/// How a part of a program is written: the text that it is in, and where.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub text: Rc<str>,
    pub range: std::ops::Range<usize>,
}

impl Source {
    /// The part as it is written, comments and all.
    pub fn as_str(&self) -> &str {
        self.text.get(self.range.clone()).unwrap_or_default()
    }

    /// The comments in the lines right before the part.
    pub fn comments_before(&self) -> String {
        let before = self.text.get(..self.range.start).unwrap_or_default();
        let lines: Vec<&str> = before.lines().collect();
        let kept = lines.iter().rev().take_while(|line| line.trim_start().starts_with('#')).count();
        let mut out = lines[lines.len() - kept..].join("\n");
        out.push('\n');
        out
    }
}

/// A class.
#[derive(Debug)]
pub(super) struct Class {
    pub name: Option<Rc<str>>,
    pub bases: Vec<Node>,
    /// Named arguments of the definition, which those that make classes get.
    pub keywords: Vec<(Option<Rc<str>>, Node)>,
    /// Names that are declared with a type, in their order: what makes an instance may take their values.
    pub fields: Vec<Rc<str>>,
    pub body: Vec<Statement>,
}

/// Statements.
#[derive(Debug)]
pub(super) enum Statement {
    Expression(Node),
    Assign(Pattern, Node),
    /// `target += value`.
    Append(Pattern, Node),
    /// `import module as local`: the local name, the module, and whether the name is that of its first part only.
    Import {
        local: Rc<str>,
        module: Rc<str>,
        at: u32,
    },
    /// `from module import name as local`.
    ImportFrom {
        local: Rc<str>,
        module: Rc<str>,
        name: Rc<str>,
        at: u32,
    },
    Function(Rc<Function>),
    Class(Rc<Class>),
    /// Statements of which all, some or none run. Whether it was written as a block in a block.
    Block(Vec<Statement>, bool),
    Loop {
        target: Pattern,
        iterable: Option<Node>,
        body: Vec<Statement>,
    },
    Return(Option<Node>),
    /// Throws.
    Raise(Node),
}

impl Node {
    pub fn new(kind: Kind, at: u32) -> Self {
        Self { kind, at }
    }
}
