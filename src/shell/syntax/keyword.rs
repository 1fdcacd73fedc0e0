//! Reserved words.

use super::class::{self, KEYWORD};
use super::frame::Token;
use super::machine::Machine;

/// Longest reserved word, in bytes.
const LONGEST: usize = 8;

/// A reserved word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    /// Ends a list.
    Closing(Token),
    If,
    While,
    Until,
    For,
    Select,
    Case,
    Function,
    Coproc,
    Time,
    Not,
    /// `{`
    Brace,
    /// `[[`
    Test,
}

impl Machine<'_, '_> {
    /// The reserved word at the cursor, and where it ends.
    pub(super) fn keyword(&self) -> Option<(Keyword, usize)> {
        let start = self.pos;
        let mut end = start;
        while end - start <= LONGEST && class::is(self.byte(end), KEYWORD) {
            end += 1;
        }
        if matches!(self.byte(end), b'\\' | 0) && self.joined(end) != end {
            return self.joined_keyword();
        }
        if end == start || !self.is_break(end) {
            return None;
        }
        named(&self.bytes[start..end]).map(|keyword| (keyword, end))
    }

    /// The same when line continuations cut it.
    #[cold]
    fn joined_keyword(&self) -> Option<(Keyword, usize)> {
        let mut name = [0; LONGEST + 1];
        let mut len = 0;
        let mut at = self.pos;
        while len <= LONGEST && class::is(self.byte(at), KEYWORD) {
            name[len] = self.bytes[at];
            len += 1;
            at = self.joined(at + 1);
        }
        if !self.is_break(at) {
            return None;
        }
        named(&name[..len]).map(|keyword| (keyword, at))
    }

    /// Whether this word stands at the cursor; goes past it if so.
    pub(super) fn accept_in(&mut self) -> bool {
        let second = self.joined(self.pos + 1);
        let is_in = self.byte(self.pos) == b'i' && self.byte(second) == b'n';
        let end = self.joined(second + 1);
        let is_in = is_in && self.is_break(end);
        if is_in {
            self.pos = end;
        }
        is_in
    }
}

fn named(word: &[u8]) -> Option<Keyword> {
    Some(match word {
        b"if" => Keyword::If,
        b"then" => Keyword::Closing(Token::Then),
        b"elif" => Keyword::Closing(Token::Elif),
        b"else" => Keyword::Closing(Token::Else),
        b"fi" => Keyword::Closing(Token::Fi),
        b"for" => Keyword::For,
        b"select" => Keyword::Select,
        b"while" => Keyword::While,
        b"until" => Keyword::Until,
        b"do" => Keyword::Closing(Token::Do),
        b"done" => Keyword::Closing(Token::Done),
        b"case" => Keyword::Case,
        b"esac" => Keyword::Closing(Token::Esac),
        b"function" => Keyword::Function,
        b"coproc" => Keyword::Coproc,
        b"time" => Keyword::Time,
        b"!" => Keyword::Not,
        b"{" => Keyword::Brace,
        b"}" => Keyword::Closing(Token::Brace),
        b"[[" => Keyword::Test,
        _ => return None,
    })
}
