//! Where the tree is gathered, with the limits on its size.

use crate::shell::ast::{
    Ast, Command, CommandId, List, ListId, Part, Span, SyntaxProblem, SyntaxProblemKind, Word, WordId,
};

/// Problems of one kind that are kept.
const PROBLEMS_MAX: usize = 32;

/// What a command counts among the nodes: running one takes far longer than reading a word.
const COMMAND_NODES: usize = 32;

/// The tree so far.
#[derive(Debug, Default)]
pub(super) struct Output<'s> {
    /// The source, cut to the limit of bytes.
    pub(super) source: &'s str,
    ast: Ast<'s>,
    problems: [Vec<SyntaxProblem>; 4],
    /// How many more nodes there may be: words, their parts, and commands, which count [`COMMAND_NODES`] each.
    pub(super) nodes_left: usize,
    /// How many more bytes may be looked at ahead of the cursor.
    pub(super) ahead_left: usize,
    /// Whether a limit was hit that ends the reading.
    pub(super) is_stopped: bool,
    /// Steps made, to be compared between inputs.
    #[cfg(test)]
    pub(super) ticks: u64,
}

impl<'s> Output<'s> {
    pub(super) fn new(source: &'s str, nodes_max: usize) -> Self {
        let ahead_left = source.len().saturating_mul(8).saturating_add(4096);
        Self { source, nodes_left: nodes_max, ahead_left, ..Self::default() }
    }

    /// Counts work. Only tests look at it.
    #[inline]
    pub(super) fn tick(&mut self, _steps: usize) {
        #[cfg(test)]
        {
            self.ticks += _steps as u64;
        }
    }

    pub(super) fn list(&mut self, list: List) -> ListId {
        self.ast.lists.push(list);
        ListId(last(self.ast.lists.len()))
    }

    pub(super) fn command(&mut self, command: Command<'s>) -> CommandId {
        self.count(COMMAND_NODES);
        self.ast.commands.push(command);
        CommandId(last(self.ast.commands.len()))
    }

    pub(super) fn command_mut(&mut self, id: CommandId) -> &mut Command<'s> {
        &mut self.ast.commands[id.0 as usize]
    }

    pub(super) fn word(&mut self, parts: Vec<Part<'s>>, span: Span) -> WordId {
        self.count(1 + parts.len() / 4);
        self.ast.words.push(Word { parts, span });
        WordId(last(self.ast.words.len()))
    }

    pub(super) fn word_mut(&mut self, id: WordId) -> &mut Word<'s> {
        &mut self.ast.words[id.0 as usize]
    }

    /// Takes a word back that nothing refers to.
    pub(super) fn take_word(&mut self, id: WordId) -> Word<'s> {
        if id.0 as usize + 1 == self.ast.words.len() {
            return self.ast.words.pop().unwrap_or_default();
        }
        std::mem::take(self.word_mut(id))
    }

    fn count(&mut self, nodes: usize) {
        self.nodes_left = self.nodes_left.saturating_sub(nodes);
    }

    /// Whether there are so many problems of a kind that no more are kept.
    pub(super) fn has_enough(&self, kind: SyntaxProblemKind) -> bool {
        self.problems[kind as usize].len() >= PROBLEMS_MAX
    }

    /// Notes a problem, unless it stands where the last one of its kind stands or there are many already.
    pub(super) fn problem(&mut self, kind: SyntaxProblemKind, span: Span) {
        let problems = &mut self.problems[kind as usize];
        if problems.len() < PROBLEMS_MAX && problems.last().is_none_or(|last| last.span != span) {
            problems.push(SyntaxProblem { kind, span });
        }
    }

    pub(super) fn finish(self, root: ListId) -> Ast<'s> {
        let mut ast = self.ast;
        ast.root = (!ast.lists[root.0 as usize].items.is_empty()).then_some(root);
        ast.problems = self.problems.concat();
        ast.problems.sort_by_key(|problem| (problem.span, problem.kind as u8));
        ast
    }
}

/// The id of what was put in last. Sources are far smaller than 4 GiB, so it fits.
fn last(len: usize) -> u32 {
    u32::try_from(len - 1).unwrap_or(u32::MAX)
}
