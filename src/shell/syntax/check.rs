//! What holds for every tree, whatever it was read from.

use crate::shell::ast::*;

/// Panics when a span cuts a character, leaves the source or sticks out of what it belongs to, when an id leads nowhere,
/// when something is used twice, or when the tree is deeper than it may be.
pub fn check(source: &str, ast: &Ast<'_>, nesting_max: usize) {
    for problem in &ast.problems {
        check_span(source, problem.span);
    }
    let mut walk = Walk {
        source,
        ast,
        // The script itself is a level, and so is the empty list that stands for what was too deep.
        depth_max: nesting_max + 2,
        used: [vec![false; ast.lists.len()], vec![false; ast.commands.len()], vec![false; ast.words.len()]],
        left: Vec::new(),
    };
    let whole = Span { start: 0, end: source.len() as u32 };
    walk.left.extend(ast.root.map(|root| (Node::List(root), whole, 1)));
    while let Some((node, within, depth)) = walk.left.pop() {
        walk.node(node, within, depth);
    }
}

#[derive(Clone, Copy)]
enum Node {
    List(ListId),
    Command(CommandId),
    Word(WordId),
}

struct Walk<'a, 's> {
    source: &'a str,
    ast: &'a Ast<'s>,
    depth_max: usize,
    used: [Vec<bool>; 3],
    left: Vec<(Node, Span, usize)>,
}

fn check_span(source: &str, span: Span) {
    assert!(source.get(span.start as usize..span.end as usize).is_some(), "{span:?} of {source:?}");
}

impl Walk<'_, '_> {
    fn node(&mut self, node: Node, within: Span, depth: usize) {
        assert!(depth <= self.depth_max, "{depth} levels");
        let (kind, id) = match node {
            Node::List(id) => (0, id.0),
            Node::Command(id) => (1, id.0),
            Node::Word(id) => (2, id.0),
        };
        let used = &mut self.used[kind][id as usize];
        assert!(!*used, "used twice");
        *used = true;
        match node {
            Node::List(id) => {
                for (pipeline, _) in &self.ast.lists[id.0 as usize].items {
                    let commands = pipeline.commands.iter();
                    self.left.extend(commands.map(|command| (Node::Command(*command), within, depth)));
                }
            }
            Node::Command(id) => self.command(id, within, depth),
            Node::Word(id) => self.word(id, within, depth),
        }
    }

    fn inside(&self, span: Span, within: Span) {
        check_span(self.source, span);
        let is_inside = span.start >= within.start && span.end <= within.end;
        assert!(is_inside, "{span:?} sticks out of {within:?} in {:?}", self.source);
    }

    fn command(&mut self, id: CommandId, within: Span, depth: usize) {
        let command = &self.ast.commands[id.0 as usize];
        let span = command.span;
        self.inside(span, within);
        for redirect in &command.redirects {
            self.inside(redirect.span, span);
            // Bodies of here-documents stand behind their commands.
            let is_document = redirect.operator == RedirectOperator::HereDocument;
            let whole = Span { start: 0, end: self.source.len() as u32 };
            let within = if is_document { whole } else { redirect.span };
            self.left.push((Node::Word(redirect.target), within, depth));
        }
        let mut words: Vec<WordId> = Vec::new();
        let mut lists: Vec<ListId> = Vec::new();
        match &command.kind {
            CommandKind::Simple { assignments, words: own } => {
                for assignment in assignments {
                    self.inside(assignment.span, span);
                    words.extend(assignment.index);
                    match &assignment.value {
                        AssignedValue::Word(word) => words.push(*word),
                        AssignedValue::Array(own) => words.extend(own),
                    }
                }
                words.extend(own);
            }
            CommandKind::Subshell(list) | CommandKind::Group(list) => lists.push(*list),
            CommandKind::If { branches, otherwise } => {
                lists.extend(branches.iter().flat_map(|(condition, body)| [*condition, *body]));
                lists.extend(otherwise);
            }
            CommandKind::Loop { condition, body, .. } => lists.extend([*condition, *body]),
            CommandKind::For { words: own, body, .. } => {
                words.extend(own.iter().flatten());
                lists.push(*body);
            }
            CommandKind::ArithmeticFor { header, body } => {
                words.push(*header);
                lists.push(*body);
            }
            CommandKind::Case { subject, arms } => {
                words.push(*subject);
                for (patterns, body) in arms {
                    words.extend(patterns);
                    lists.push(*body);
                }
            }
            CommandKind::Function { body, .. } | CommandKind::Coproc(body) => {
                self.left.push((Node::Command(*body), span, depth + 1));
            }
            CommandKind::Test(own) => words.extend(own),
            CommandKind::Arithmetic(word) => words.push(*word),
        }
        self.left.extend(words.into_iter().map(|word| (Node::Word(word), span, depth)));
        self.left.extend(lists.into_iter().map(|list| (Node::List(list), span, depth + 1)));
    }

    fn word(&mut self, id: WordId, within: Span, depth: usize) {
        let word = &self.ast.words[id.0 as usize];
        let span = word.span;
        self.inside(span, within);
        for part in &word.parts {
            match part {
                Part::Bare(text) => assert!(!text.is_empty() && !text.contains('\0')),
                Part::Quoted(text) => assert!(!text.contains('\0')),
                Part::Command { body, .. } | Part::Process { body, .. } => {
                    self.left.push((Node::List(*body), span, depth + 1));
                }
                Part::Arithmetic { expression, .. } => {
                    self.left.push((Node::Word(*expression), span, depth + 1));
                }
                Part::Parameter(parameter) => {
                    let (first, second) = match parameter.operation {
                        Operation::None | Operation::Case { .. } | Operation::Other => (None, None),
                        Operation::Default(word)
                        | Operation::Assign(word)
                        | Operation::Error(word)
                        | Operation::Alternative(word)
                        | Operation::RemovePrefix { pattern: word, .. }
                        | Operation::RemoveSuffix { pattern: word, .. } => (Some(word), None),
                        Operation::Replace { pattern, with, .. } => (Some(pattern), with),
                        Operation::Substring { offset, length } => (Some(offset), length),
                    };
                    let words = [parameter.index, first, second].into_iter().flatten();
                    self.left.extend(words.map(|word| (Node::Word(word), span, depth + 1)));
                }
            }
        }
    }
}
