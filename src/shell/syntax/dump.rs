//! Trees as text, for tests: `(echo a+'b c' "$x" $[(ls)])`.
//!
//! Parts of a word have `+` between them; quoted text stands in single quotes, quoted expansions in double ones, and
//! lists of substitutions in brackets.

use std::fmt::Write;

use crate::shell::ast::*;

/// The tree and the problems of a script in one line.
pub fn dump(ast: &Ast<'_>) -> String {
    let mut dump = Dump { ast, out: String::new() };
    if let Some(root) = ast.root {
        dump.list(root);
    }
    for problem in &ast.problems {
        let kind = match problem.kind {
            SyntaxProblemKind::Unterminated => "unterminated",
            SyntaxProblemKind::Unexpected => "unexpected",
            SyntaxProblemKind::TooDeep => "too-deep",
            SyntaxProblemKind::TooLarge => "too-large",
        };
        let gap = if dump.out.is_empty() { "" } else { " " };
        let _ = write!(dump.out, "{gap}!{kind}@{}", problem.span.start);
    }
    dump.out
}

struct Dump<'a, 's> {
    ast: &'a Ast<'s>,
    out: String,
}

impl Dump<'_, '_> {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn list(&mut self, id: ListId) {
        let ast = self.ast;
        let list = &ast.lists[id.0 as usize];
        for (nth, (pipeline, joint)) in list.items.iter().enumerate() {
            if nth > 0 {
                self.put(" ");
            }
            if pipeline.timed {
                self.put("time ");
            }
            if pipeline.negated {
                self.put("! ");
            }
            for (nth, command) in pipeline.commands.iter().enumerate() {
                if nth > 0 {
                    self.put(" | ");
                }
                self.command(*command);
            }
            let is_last = nth + 1 == list.items.len();
            match joint {
                Joint::Sequence if is_last => {}
                Joint::Sequence => self.put(" ;"),
                Joint::And => self.put(" &&"),
                Joint::Or => self.put(" ||"),
                Joint::Background => self.put(" &"),
            }
        }
    }

    fn command(&mut self, id: CommandId) {
        let ast = self.ast;
        let command = &ast.commands[id.0 as usize];
        match &command.kind {
            CommandKind::Simple { assignments, words } => {
                self.put("(");
                let mut gap = "";
                for assignment in assignments {
                    self.put(gap);
                    self.assignment(assignment);
                    gap = " ";
                }
                self.put(if words.is_empty() { "" } else { gap });
                self.words(words);
                self.redirects(&command.redirects, gap.is_empty() && words.is_empty());
                return self.put(")");
            }
            CommandKind::Subshell(list) => self.lists("subshell", &[*list]),
            CommandKind::Group(list) => self.lists("group", &[*list]),
            CommandKind::If { branches, otherwise } => {
                self.put("(if");
                for (condition, body) in branches {
                    self.lists(" ", &[*condition, *body]);
                }
                if let Some(otherwise) = otherwise {
                    self.lists(" else", &[*otherwise]);
                }
            }
            CommandKind::Loop { until, condition, body } => {
                self.lists(if *until { "until" } else { "while" }, &[*condition, *body]);
            }
            CommandKind::For { variable, words, body } => {
                let _ = write!(self.out, "(for {variable}");
                if let Some(words) = words {
                    self.put(" in ");
                    self.words(words);
                }
                self.lists(" ", &[*body]);
            }
            CommandKind::ArithmeticFor { header, body } => {
                self.put("(for-arithmetic ");
                self.word(*header);
                self.lists(" ", &[*body]);
            }
            CommandKind::Case { subject, arms } => {
                self.put("(case ");
                self.word(*subject);
                for (patterns, body) in arms {
                    self.put(" [");
                    self.words(patterns);
                    self.put("]");
                    self.lists(" ", &[*body]);
                }
            }
            CommandKind::Function { name, body } => {
                let _ = write!(self.out, "(function {name} ");
                self.command(*body);
            }
            CommandKind::Test(words) => {
                self.put("(test ");
                self.words(words);
            }
            CommandKind::Arithmetic(word) => {
                self.put("(arithmetic ");
                self.word(*word);
            }
            CommandKind::Coproc(body) => {
                self.put("(coproc ");
                self.command(*body);
            }
        }
        let is_open = !matches!(
            command.kind,
            CommandKind::Subshell(_) | CommandKind::Group(_) | CommandKind::Loop { .. }
        );
        if is_open {
            self.put(")");
        }
        self.redirects(&command.redirects, false);
    }

    /// `(name {…} {…})`, or a piece of an open parenthesis if the name begins with a blank.
    fn lists(&mut self, name: &str, lists: &[ListId]) {
        let is_piece = name.starts_with(' ');
        let _ = match is_piece {
            true => write!(self.out, "{}", name.trim_end()),
            false => write!(self.out, "({name}"),
        };
        for list in lists {
            self.put(" {");
            self.list(*list);
            self.put("}");
        }
        if !is_piece {
            self.put(")");
        }
    }

    fn redirects(&mut self, redirects: &[Redirect<'_>], mut is_first: bool) {
        for redirect in redirects {
            self.put(if is_first { "" } else { " " });
            is_first = false;
            let operator = match redirect.operator {
                RedirectOperator::Read => "<",
                RedirectOperator::Write => ">",
                RedirectOperator::Clobber => ">|",
                RedirectOperator::Append => ">>",
                RedirectOperator::ReadWrite => "<>",
                RedirectOperator::DuplicateInput => "<&",
                RedirectOperator::DuplicateOutput => ">&",
                RedirectOperator::WriteBoth => "&>",
                RedirectOperator::AppendBoth => "&>>",
                RedirectOperator::HereDocument => "<<",
                RedirectOperator::HereString => "<<<",
            };
            let _ = write!(self.out, "<{}{operator} ", redirect.descriptor.unwrap_or_default());
            self.word(redirect.target);
            self.put(">");
        }
    }

    fn assignment(&mut self, assignment: &Assignment<'_>) {
        let _ = write!(self.out, "[{}", assignment.name);
        if let Some(index) = assignment.index {
            self.put("[");
            self.word(index);
            self.put("]");
        }
        self.put(if assignment.append { "+=" } else { "=" });
        match &assignment.value {
            AssignedValue::Word(word) => self.word(*word),
            AssignedValue::Array(words) => {
                self.put("(");
                self.words(words);
                self.put(")");
            }
        }
        self.put("]");
    }

    fn words(&mut self, words: &[WordId]) {
        for (nth, word) in words.iter().enumerate() {
            if nth > 0 {
                self.put(" ");
            }
            self.word(*word);
        }
    }

    fn word(&mut self, id: WordId) {
        let ast = self.ast;
        let word = &ast.words[id.0 as usize];
        if word.parts.is_empty() {
            self.put("<none>");
        }
        for (nth, part) in word.parts.iter().enumerate() {
            if nth > 0 {
                self.put("+");
            }
            match part {
                Part::Bare(text) => {
                    let _ = write!(self.out, "{}", text.escape_debug());
                }
                Part::Quoted(text) => {
                    let _ = write!(self.out, "'{}'", text.escape_debug());
                }
                Part::Parameter(parameter) => self.quote(parameter.quoted, |dump| dump.parameter(parameter)),
                Part::Command { body, quoted } => self.quote(*quoted, |dump| {
                    dump.put("$[");
                    dump.list(*body);
                    dump.put("]");
                }),
                Part::Arithmetic { expression, quoted } => self.quote(*quoted, |dump| {
                    dump.put("$((");
                    dump.word(*expression);
                    dump.put("))");
                }),
                Part::Process { body, is_input } => {
                    self.put(if *is_input { "<[" } else { ">[" });
                    self.list(*body);
                    self.put("]");
                }
            }
        }
    }

    fn quote(&mut self, quoted: bool, inside: impl FnOnce(&mut Self)) {
        self.put(if quoted { "\"" } else { "" });
        inside(self);
        self.put(if quoted { "\"" } else { "" });
    }

    fn parameter(&mut self, parameter: &Parameter<'_>) {
        let is_plain = !parameter.indirect
            && !parameter.length
            && parameter.index.is_none()
            && parameter.operation == Operation::None;
        if is_plain {
            let _ = write!(self.out, "${}", parameter.name);
            return;
        }
        self.put("${");
        self.put(if parameter.indirect { "!" } else { "" });
        self.put(if parameter.length { "#" } else { "" });
        self.put(&parameter.name);
        if let Some(index) = parameter.index {
            self.put("[");
            self.word(index);
            self.put("]");
        }
        let (name, words) = match parameter.operation {
            Operation::None => ("", [None, None]),
            Operation::Default(word) => (" default", [Some(word), None]),
            Operation::Assign(word) => (" assign", [Some(word), None]),
            Operation::Error(word) => (" error", [Some(word), None]),
            Operation::Alternative(word) => (" alternative", [Some(word), None]),
            Operation::RemovePrefix { pattern, longest } => {
                (if longest { " prefix-longest" } else { " prefix" }, [Some(pattern), None])
            }
            Operation::RemoveSuffix { pattern, longest } => {
                (if longest { " suffix-longest" } else { " suffix" }, [Some(pattern), None])
            }
            Operation::Replace { pattern, with, scope } => {
                let name = match scope {
                    ReplaceScope::First => " replace",
                    ReplaceScope::All => " replace-all",
                    ReplaceScope::Prefix => " replace-prefix",
                    ReplaceScope::Suffix => " replace-suffix",
                };
                (name, [Some(pattern), with])
            }
            Operation::Substring { offset, length } => (" substring", [Some(offset), length]),
            Operation::Case { upper, all } => (
                match (upper, all) {
                    (true, true) => " upper-all",
                    (true, false) => " upper",
                    (false, true) => " lower-all",
                    (false, false) => " lower",
                },
                [None, None],
            ),
            Operation::Other => (" other", [None, None]),
        };
        self.put(name);
        for word in words.into_iter().flatten() {
            self.put(" ");
            self.word(word);
        }
        self.put("}");
    }
}
