//! What is being read, level by level, and what a level hands to the one below it.

use std::borrow::Cow;

use super::redirect::Redirection;
use crate::shell::ast::{
    Assignment, CommandId, CommandKind, Joint, ListId, Parameter, Part, Pipeline, Redirect, RedirectOperator,
    WordId,
};

/// One level.
#[derive(Debug)]
pub(super) enum Frame<'s> {
    List(ListFrame),
    Simple(Box<SimpleFrame<'s>>),
    Word(WordFrame<'s>),
    Parameter(Box<ParameterFrame<'s>>),
    Array(ArrayFrame),
    Compound(Box<CompoundFrame<'s>>),
    Tail(Box<TailFrame<'s>>),
    Named(NamedFrame<'s>),
    /// Backticks read where they stand.
    Backticks(BackticksFrame),
}

/// What a level made.
#[derive(Debug, Default)]
pub(super) enum Value<'s> {
    #[default]
    None,
    /// A list and the token that ended it, if that token may end it.
    List(ListId, Option<Token>),
    Word(WordId),
    Command(CommandId),
    Parameter(Box<Parameter<'s>>),
    Array(Vec<WordId>),
}

/// Tokens that end a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Parenthesis,
    Brace,
    Then,
    Elif,
    Else,
    Fi,
    Do,
    Done,
    /// `;;`, `;&`, `;;&`
    ArmEnd,
    Esac,
}

/// Which tokens end a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    /// The end of the text alone.
    End,
    Parenthesis,
    Brace,
    /// The condition of `if`.
    Then,
    /// The body of a branch.
    Branch,
    /// The body of `else`.
    Otherwise,
    /// The condition of a loop.
    Do,
    Done,
    /// The body of an arm of `case`.
    Arm,
}

/// Kinds of constructs, in [`Open`].
pub(super) const GROUPS: usize = 5;

/// How many lists are open that a token of each group may end.
pub(super) type Open = [u32; GROUPS];

impl Token {
    /// Its group.
    pub(super) const fn group(self) -> usize {
        match self {
            Self::Parenthesis => 0,
            Self::Brace => 1,
            Self::Then | Self::Elif | Self::Else | Self::Fi => 2,
            Self::Do | Self::Done => 3,
            Self::ArmEnd | Self::Esac => 4,
        }
    }
}

impl Close {
    /// The group of its tokens.
    pub(super) const fn group(self) -> Option<usize> {
        match self {
            Self::End => None,
            Self::Parenthesis => Some(0),
            Self::Brace => Some(1),
            Self::Then | Self::Branch | Self::Otherwise => Some(2),
            Self::Do | Self::Done => Some(3),
            Self::Arm => Some(4),
        }
    }

    /// Whether a token ends such a list.
    pub(super) const fn accepts(self, token: Token) -> bool {
        matches!(
            (self, token),
            (Self::Parenthesis, Token::Parenthesis)
                | (Self::Brace, Token::Brace)
                | (Self::Then, Token::Then)
                | (Self::Branch, Token::Elif | Token::Else | Token::Fi)
                | (Self::Otherwise, Token::Fi)
                | (Self::Do, Token::Do)
                | (Self::Done, Token::Done)
                | (Self::Arm, Token::ArmEnd | Token::Esac)
        )
    }
}

/// What a list can go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// A command, or its end.
    Start,
    /// A command, after `&&`, `||` or `|`.
    Operand,
    /// An operator, after a command.
    Operator,
}

/// A list of pipelines.
#[derive(Debug)]
pub(super) struct ListFrame {
    pub(super) items: Vec<(Pipeline, Joint)>,
    pub(super) pipeline: Pipeline,
    pub(super) expect: Expect,
    pub(super) close: Close,
    /// Where its opener stands.
    pub(super) opened: usize,
    /// What belongs to the text around a substitution.
    pub(super) outside: Option<Box<Outside>>,
}

/// What a substitution shuts out while it is read.
#[derive(Debug)]
pub(super) struct Outside {
    pub(super) open: Open,
    pub(super) pending: Vec<super::document::Pending>,
    pub(super) in_parentheses: bool,
}

/// A simple command.
#[derive(Debug)]
pub(super) struct SimpleFrame<'s> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) assignments: Vec<Assignment<'s>>,
    pub(super) words: Vec<WordId>,
    pub(super) redirects: Vec<Redirect<'s>>,
    pub(super) awaits: SimpleAwaits<'s>,
}

/// What a simple command waits for.
#[derive(Debug, Default)]
pub(super) enum SimpleAwaits<'s> {
    #[default]
    Word,
    Target(Redirection<'s>),
    Index(Assigned<'s>),
    Value(Assigned<'s>),
}

/// The left side of an assignment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assigned<'s> {
    pub(super) start: usize,
    pub(super) name: &'s str,
    pub(super) index: Option<WordId>,
    pub(super) append: bool,
}

/// The elements of an array.
#[derive(Debug)]
pub(super) struct ArrayFrame {
    pub(super) opened: usize,
    pub(super) words: Vec<WordId>,
}

/// What ends a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// Blanks and operators.
    Word,
    /// The same, with parentheses as text: the right side of `=~`.
    Regex,
    /// `}`
    Braced,
    /// `/` or `}`
    Pattern,
    /// `:` or `}`
    Slice,
    /// `)`
    Arithmetic,
    /// `]`
    Index,
    /// The end of the text.
    Body,
}

/// A word.
#[derive(Debug)]
pub(super) struct WordFrame<'s> {
    pub(super) start: usize,
    pub(super) parts: Vec<Part<'s>>,
    pub(super) ends: Ends,
    /// Whether it stands in double quotes as a whole.
    pub(super) quoted: bool,
    /// Whether double quotes are open in it.
    pub(super) double: bool,
    /// Whether nothing stands in them yet.
    pub(super) double_is_empty: bool,
    /// Where they were opened.
    pub(super) double_at: usize,
    /// Parentheses or brackets open in it that are text.
    pub(super) depth: u32,
    /// `?` without their `:`.
    pub(super) questions: u32,
    /// Whether `name=(` begins an array in it, as after `declare`.
    pub(super) is_argument: bool,
    /// Whether tabs at the beginnings of lines are left out.
    pub(super) strip_tabs: bool,
    pub(super) awaits: WordAwaits,
}

/// What a word waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordAwaits {
    Nothing,
    Command,
    Process {
        is_input: bool,
    },
    /// `$(( … ))`, and `$[ … ]` if it is old.
    Arithmetic {
        is_old: bool,
    },
    Parameter,
}

/// `${ … }`
#[derive(Debug)]
pub(super) struct ParameterFrame<'s> {
    pub(super) opened: usize,
    pub(super) name: Cow<'s, str>,
    pub(super) indirect: bool,
    pub(super) length: bool,
    /// Whether the operator begins with a colon that makes an empty value count as none.
    pub(super) empty_is_none: bool,
    pub(super) index: Option<WordId>,
    pub(super) quoted: bool,
    pub(super) awaits: ParameterAwaits,
}

/// What a parameter waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum ParameterAwaits {
    /// Nothing: its operator comes next.
    Operator,
    Index,
    Operand(Operator),
    /// After the pattern or the offset.
    Second(Operator, WordId),
}

/// Operators of a parameter that take a word.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operator {
    Default,
    Assign,
    Error,
    Alternative,
    RemovePrefix { longest: bool },
    RemoveSuffix { longest: bool },
    Replace(crate::shell::ast::ReplaceScope),
    Substring,
    Case { upper: bool, all: bool },
    Other,
}

/// A compound command.
#[derive(Debug)]
pub(super) struct CompoundFrame<'s> {
    pub(super) start: usize,
    pub(super) kind: Compound<'s>,
}

/// Kinds of [`CompoundFrame`] and what was read of them.
#[derive(Debug)]
pub(super) enum Compound<'s> {
    Subshell,
    Group,
    If { branches: Vec<(ListId, ListId)>, condition: Option<ListId>, in_else: bool },
    Loop { until: bool, condition: Option<ListId> },
    For { variable: &'s str, words: Option<Vec<WordId>>, stage: ForStage },
    ArithmeticFor { header: Option<WordId> },
    Case { subject: Option<WordId>, arms: Vec<(Vec<WordId>, ListId)>, patterns: Vec<WordId> },
    Test { words: Vec<WordId>, is_regex_next: bool },
    Arithmetic,
}

/// How far a `for` was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForStage {
    Words,
    Body,
}

/// The redirections after a compound command.
#[derive(Debug)]
pub(super) struct TailFrame<'s> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: CommandKind<'s>,
    pub(super) redirects: Vec<Redirect<'s>>,
    pub(super) awaits: Option<Redirection<'s>>,
}

/// A function or coprocess, whose body is a command.
#[derive(Debug)]
pub(super) struct NamedFrame<'s> {
    pub(super) start: usize,
    /// Name of the function; `None` for a coprocess.
    pub(super) function: Option<Cow<'s, str>>,
    pub(super) begun: bool,
}

/// What a text in backticks shuts out while it is read.
#[derive(Debug)]
pub(super) struct BackticksFrame {
    /// The end of the text around it.
    pub(super) end: usize,
    /// Where it goes on there.
    pub(super) after: usize,
}

/// Operators that a redirection can have, longest first.
pub(super) const REDIRECTIONS: &[(&[u8], RedirectOperator)] = &[
    (b"&>>", RedirectOperator::AppendBoth),
    (b"<<<", RedirectOperator::HereString),
    (b"<<", RedirectOperator::HereDocument),
    (b"<>", RedirectOperator::ReadWrite),
    (b"<&", RedirectOperator::DuplicateInput),
    (b">>", RedirectOperator::Append),
    (b">&", RedirectOperator::DuplicateOutput),
    (b">|", RedirectOperator::Clobber),
    (b"&>", RedirectOperator::WriteBoth),
    (b"<", RedirectOperator::Read),
    (b">", RedirectOperator::Write),
];
