//! The syntax tree of a script: flat arenas joined by ids, so that neither building nor dropping it recurses.
//!
//! Texts borrow from the source wherever quoting did not change them. Spans are UTF-8 bytes of the source.

use std::borrow::Cow;

/// A half-open range of UTF-8 bytes in the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A list in [`Ast::lists`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListId(pub u32);

/// A command in [`Ast::commands`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommandId(pub u32);

/// A word in [`Ast::words`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WordId(pub u32);

/// A whole script.
#[derive(Debug, Default)]
pub struct Ast<'s> {
    /// Sequences of pipelines.
    pub lists: Vec<List>,
    /// Simple and compound commands.
    pub commands: Vec<Command<'s>>,
    /// Words.
    pub words: Vec<Word<'s>>,
    /// The script itself; `None` when there is nothing but blanks and comments.
    pub root: Option<ListId>,
    /// What could not be read, in order. What could be read before, around and after it is in the tree all the same.
    pub problems: Vec<SyntaxProblem>,
}

/// Something that no shell would accept, or that a limit cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntaxProblem {
    /// What.
    pub kind: SyntaxProblemKind,
    /// Where.
    pub span: Span,
}

/// Kinds of [`SyntaxProblem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyntaxProblemKind {
    /// A quote, substitution or compound command that does not end. Shells take a here-document without an end.
    Unterminated,
    /// A token where the grammar has no place for it.
    Unexpected,
    /// Nested deeper than the limit; what is below was not read.
    TooDeep,
    /// More text, words or here-documents than the limit; the rest was not read.
    TooLarge,
}

/// Pipelines one after the other.
#[derive(Debug, Default)]
pub struct List {
    /// The pipelines, each with what joins it to the next.
    pub items: Vec<(Pipeline, Joint)>,
}

/// What stands after a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// `;`, a newline, or the end.
    Sequence,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `&`
    Background,
}

/// Commands whose output feeds the next one's input. One command is a pipeline of one.
#[derive(Debug, Default)]
pub struct Pipeline {
    /// The commands, in order.
    pub commands: Vec<CommandId>,
    /// Begins with `!`.
    pub negated: bool,
    /// Begins with the keyword `time`.
    pub timed: bool,
}

/// A command and its redirections.
#[derive(Debug)]
pub struct Command<'s> {
    /// What it is.
    pub kind: CommandKind<'s>,
    /// Redirections, in order. Those of `|&` are written out as `2>&1`.
    pub redirects: Vec<Redirect<'s>>,
    /// From its first to its last byte, redirections included.
    pub span: Span,
}

/// Kinds of [`Command`].
#[derive(Debug)]
pub enum CommandKind<'s> {
    /// Assignments and words.
    Simple {
        /// `name=value` before the first word.
        assignments: Vec<Assignment<'s>>,
        /// Command name and arguments.
        words: Vec<WordId>,
    },
    /// `( … )`
    Subshell(ListId),
    /// `{ …; }`
    Group(ListId),
    /// `if`: condition and body of each branch, and the `else`.
    If {
        /// `if` and each `elif`.
        branches: Vec<(ListId, ListId)>,
        /// `else`.
        otherwise: Option<ListId>,
    },
    /// `while` and `until`.
    Loop {
        /// Whether it is `until`.
        until: bool,
        /// Its condition.
        condition: ListId,
        /// Its body.
        body: ListId,
    },
    /// `for name in words`, and `select`.
    For {
        /// The variable.
        variable: &'s str,
        /// The words; `None` stands for `"$@"`.
        words: Option<Vec<WordId>>,
        /// Its body.
        body: ListId,
    },
    /// `for (( … ))`
    ArithmeticFor {
        /// Between the parentheses, as a word so that substitutions in it are seen.
        header: WordId,
        /// Its body.
        body: ListId,
    },
    /// `case`
    Case {
        /// What is compared.
        subject: WordId,
        /// Patterns and body of each arm.
        arms: Vec<(Vec<WordId>, ListId)>,
    },
    /// `name() …` and `function name …`
    Function {
        /// Its name.
        name: Cow<'s, str>,
        /// Its body; not run here.
        body: CommandId,
    },
    /// `[[ … ]]`: the words in it, operators included.
    Test(Vec<WordId>),
    /// `(( … ))`
    Arithmetic(WordId),
    /// `coproc`
    Coproc(CommandId),
}

/// `name=value`, `name+=value`, `name[index]=value`, `name=(…)`.
#[derive(Debug)]
pub struct Assignment<'s> {
    /// Name of the variable.
    pub name: &'s str,
    /// Index of the element, if one is named.
    pub index: Option<WordId>,
    /// Whether the value is appended.
    pub append: bool,
    /// The value.
    pub value: AssignedValue,
    /// The whole assignment.
    pub span: Span,
}

/// Value of an [`Assignment`].
#[derive(Debug)]
pub enum AssignedValue {
    /// One word.
    Word(WordId),
    /// `(a b c)`
    Array(Vec<WordId>),
}

/// A redirection.
#[derive(Debug)]
pub struct Redirect<'s> {
    /// The descriptor before the operator: a number, or the name of `{name}>`. `None` when the operator's own holds.
    pub descriptor: Option<&'s str>,
    /// The operator.
    pub operator: RedirectOperator,
    /// Its target: a file or descriptor; for a here-document its body, for a here-string its word.
    pub target: WordId,
    /// From descriptor to target.
    pub span: Span,
}

/// Operators of a [`Redirect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectOperator {
    /// `<`
    Read,
    /// `>`
    Write,
    /// `>|`
    Clobber,
    /// `>>`
    Append,
    /// `<>`
    ReadWrite,
    /// `<&`
    DuplicateInput,
    /// `>&`: a descriptor, or a file for both outputs
    DuplicateOutput,
    /// `&>`
    WriteBoth,
    /// `&>>`
    AppendBoth,
    /// `<<`, `<<-`: the target holds the body
    HereDocument,
    /// `<<<`
    HereString,
}

/// A word: text and expansions side by side.
#[derive(Debug, Default)]
pub struct Word<'s> {
    /// Its parts. Without parts it stands for nothing (an empty here-document); `''` is one empty quoted part.
    pub parts: Vec<Part<'s>>,
    /// Where it stands.
    pub span: Span,
}

/// A piece of a word.
#[derive(Debug)]
pub enum Part<'s> {
    /// Text outside quotes: may hold glob characters, braces and a leading tilde.
    Bare(&'s str),
    /// Text from quotes or after backslashes, unescaped; it means itself.
    Quoted(Cow<'s, str>),
    /// `$name`, `${…}`
    Parameter(Box<Parameter<'s>>),
    /// `$( … )` and backticks
    Command {
        /// What runs.
        body: ListId,
        /// Whether it stands in double quotes.
        quoted: bool,
    },
    /// `$(( … ))`
    Arithmetic {
        /// Between the parentheses, as a word so that substitutions in it are seen.
        expression: WordId,
        /// Whether it stands in double quotes.
        quoted: bool,
    },
    /// `<( … )` and `>( … )`
    Process {
        /// What runs.
        body: ListId,
        /// Whether the command reads from it, as with `<(…)`.
        is_input: bool,
    },
}

/// A parameter expansion.
#[derive(Debug)]
pub struct Parameter<'s> {
    /// Name, number or special character. Borrowed unless a line continuation cuts it.
    pub name: Cow<'s, str>,
    /// `${!name}`
    pub indirect: bool,
    /// `${#name}`
    pub length: bool,
    /// `${name[index]}`
    pub index: Option<WordId>,
    /// What is done to the value.
    pub operation: Operation,
    /// Whether the operation takes an empty value for none: `:-`, `:=`, `:?`, `:+`.
    pub empty_is_none: bool,
    /// Whether it stands in double quotes.
    pub quoted: bool,
}

/// What is done to the value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Nothing.
    None,
    /// `-` and `:-`
    Default(WordId),
    /// `=` and `:=`
    Assign(WordId),
    /// `?` and `:?`
    Error(WordId),
    /// `+` and `:+`
    Alternative(WordId),
    /// `#` and `##`
    RemovePrefix {
        /// Pattern.
        pattern: WordId,
        /// `##`
        longest: bool,
    },
    /// `%` and `%%`
    RemoveSuffix {
        /// Pattern.
        pattern: WordId,
        /// `%%`
        longest: bool,
    },
    /// `/`, `//`, `/#`, `/%`
    Replace {
        /// Pattern.
        pattern: WordId,
        /// Replacement; none removes.
        with: Option<WordId>,
        /// How often and where.
        scope: ReplaceScope,
    },
    /// `:offset:length`
    Substring {
        /// Offset.
        offset: WordId,
        /// Length.
        length: Option<WordId>,
    },
    /// `^`, `^^`, `,`, `,,`, and `@U`, `@L`, `@u`
    Case {
        /// To upper case.
        upper: bool,
        /// All characters, not the first alone.
        all: bool,
    },
    /// Any other, such as `@P` and `!prefix*`; its value is not known.
    Other,
}

/// Where [`Operation::Replace`] replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceScope {
    /// The first match.
    First,
    /// Every match.
    All,
    /// At the beginning only.
    Prefix,
    /// At the end only.
    Suffix,
}
