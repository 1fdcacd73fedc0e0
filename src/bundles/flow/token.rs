//! Words, texts and signs of a program in any language: what stands in quotes is told from what runs, comments are gone, and
//! what a text has filled in stands beside it as if it were added.

use super::language::Tongue;

/// Most tokens of one program; what comes behind them is not followed.
pub(super) const TOKENS_MAX: usize = 400_000;
/// Longest text in quotes that is kept, in bytes; of a longer one its beginning.
const TEXT_BYTES_MAX: usize = 2_000;
/// How deep texts are filled in within texts.
const DEPTH_MAX: usize = 4;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, with the sign before it where the language has one, or a number.
    Word,
    /// What stands in quotes.
    Text,
    /// Anything else; `+` also stands between the parts of a text that is filled in.
    Sign,
    /// The end of a line.
    Line,
}

/// One token.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: String,
    /// Where it begins in the program.
    pub(super) at: usize,
    /// Whether a blank stands before it.
    pub(super) is_apart: bool,
}

/// The function by whose name a text that is run as a command is known to the rules.
pub(super) const COMMAND: &str = "`";

/// Signs of several characters, longest first.
const SIGNS: &[&str] = &[
    "<<-", "<=>", "===", "!==", "||=", "&&=", "??=", "...", "..=", "->", "=>", ":=", "::", "==", "!=", "<=",
    ">=", "+=", ".=", "<-", "<<", "?.", "||", "&&", "??", "..", "|>", "=~",
];

/// The tokens of a program.
pub(super) fn tokens(text: &str, tongue: &Tongue) -> Vec<Token> {
    let mut reader =
        Reader { text, tongue, at: 0, is_apart: true, out: Vec::new(), depth: 0, missing: Vec::new() };
    reader.read(text.len());
    reader.out
}

struct Reader<'t> {
    text: &'t str,
    tongue: &'t Tongue,
    at: usize,
    is_apart: bool,
    out: Vec<Token>,
    depth: usize,
    /// Ends of texts that do not come any more.
    missing: Vec<String>,
}

impl<'t> Reader<'t> {
    fn read(&mut self, end: usize) {
        while self.at < end && self.out.len() < TOKENS_MAX {
            let rest = &self.text[self.at..end];
            let Some(c) = rest.chars().next() else { break };
            match c {
                '\n' => {
                    self.push(Kind::Line, "\n");
                    self.at += 1;
                    self.is_apart = true;
                }
                '\\' if rest.starts_with("\\\n") => self.at += 2,
                c if c.is_whitespace() => {
                    self.at += c.len_utf8();
                    self.is_apart = true;
                }
                _ if self.comment(rest) => self.is_apart = true,
                _ if self.quoted(rest, end) => {}
                c if is_word(c) || self.tongue.is_sigil(c) => self.word(rest),
                _ => {
                    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).copied();
                    let sign = sign.unwrap_or(&rest[..c.len_utf8()]);
                    self.push(Kind::Sign, sign);
                    self.at += sign.len();
                }
            }
        }
    }

    fn push(&mut self, kind: Kind, text: &str) {
        let is_apart = std::mem::take(&mut self.is_apart);
        self.out.push(Token { kind, text: text.to_owned(), at: self.at, is_apart });
    }

    /// Goes past a comment; answers whether there was one.
    fn comment(&mut self, rest: &str) -> bool {
        for (open, close) in &self.tongue.blocks {
            if rest.starts_with(open.as_str()) {
                let inner = &rest[open.len()..];
                self.at += open.len() + inner.find(close.as_str()).map_or(inner.len(), |at| at + close.len());
                return true;
            }
        }
        let is_line = self.tongue.comments.iter().any(|mark| {
            // `$#array`, `#{…}` and `#!` of a shebang are told by what stands around them.
            rest.starts_with(mark.as_str())
                && (mark != "#" || !rest.starts_with("#[") || self.tongue.name != "php")
        });
        if is_line {
            self.at += memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        }
        is_line
    }

    fn word(&mut self, rest: &str) {
        let mut len = 0;
        let mut chars = rest.chars().peekable();
        while let Some(c) = chars.next() {
            let goes_on = is_word(c)
                || self.tongue.is_sigil(c) && rest[..len].chars().all(|c| self.tongue.is_sigil(c))
                // `Verb-Noun` of PowerShell, and `$env:NAME`.
                || self.tongue.has_dashes
                    && (c == '-' && len > 0 && !rest.starts_with('$') || c == ':' && rest.starts_with('$'))
                    && chars.peek().is_some_and(|next| next.is_alphabetic())
                || matches!(c, '?' | '!')
                    && len > 0
                    && self.tongue.name == "ruby"
                    && chars.peek().is_none_or(|next| !matches!(next, '=' | '?'));
            if !goes_on {
                break;
            }
            len += c.len_utf8();
        }
        let len = len.max(rest.chars().next().map_or(0, char::len_utf8));
        let word = &rest[..len];
        self.push(if word.trim_matches(['$', '@']).is_empty() { Kind::Sign } else { Kind::Word }, word);
        self.at += len;
    }

    /// Reads a text in quotes; answers whether there was one.
    fn quoted(&mut self, rest: &str, end: usize) -> bool {
        if let Some(len) = self.character(rest) {
            self.push(Kind::Text, &rest[1..len - 1]);
            self.at += len;
            return true;
        }
        let Some((open, close, is_raw)) = self.tongue.quote(rest, self.follows_value()) else { return false };
        let is_command = open == COMMAND && self.tongue.runs_backticks || open.starts_with("%x");
        let inner = &rest[open.len()..];
        if self.missing.contains(&close) {
            return false;
        }
        let Some(len) = closes(inner, &close, is_raw, open.len() > 1) else {
            if !inner.contains('\n') || !matches!(close.as_str(), "'" | "/") {
                self.missing.push(close);
            }
            // Not a text after all: an apostrophe in a lifetime, a quote that nothing closes.
            return false;
        };
        let stop = self.at + open.len() + len;
        if is_command {
            self.push(Kind::Word, COMMAND);
            self.push(Kind::Sign, "(");
        }
        self.at += open.len();
        let fills = (!is_raw || is_command) && self.depth < DEPTH_MAX && stop <= end;
        self.pieces(stop.min(end), fills);
        self.at = (stop + close.len()).min(end);
        if is_command {
            self.push(Kind::Sign, ")");
        }
        true
    }

    /// The length of a single character in quotes, where quotes of that kind hold no more: `'"'`.
    fn character(&self, rest: &str) -> Option<usize> {
        if !rest.starts_with('\'') || self.tongue.quotes.iter().any(|quote| quote == "'") {
            return None;
        }
        let mut chars = rest.char_indices().skip(1);
        let (_, first) = chars.next()?;
        if first == '\\' {
            chars.next()?;
        }
        chars
            .take(8)
            .take_while(|(_, c)| *c == '\'' || first == '\\')
            .find(|(_, c)| *c == '\'')
            .map(|(at, _)| at + 1)
    }

    /// Whether what stands before is a value, so that a slash or a quote behind it begins no text.
    fn follows_value(&self) -> bool {
        self.out.last().is_some_and(|last| match last.kind {
            Kind::Word | Kind::Text => true,
            Kind::Sign => matches!(last.text.as_str(), ")" | "]" | "}"),
            Kind::Line => false,
        })
    }

    /// The parts of a text up to `stop`: what stands in it, and what is filled in.
    fn pieces(&mut self, stop: usize, fills: bool) {
        let mut piece = String::new();
        while self.at < stop {
            let rest = &self.text[self.at..stop];
            if fills && let Some((open, close)) = self.tongue.filled(rest) {
                let inner = &rest[open..];
                let len = if close.is_empty() {
                    name_len(inner, self.tongue.name == "php")
                } else {
                    balanced(inner, close)
                };
                if len > 0 {
                    self.text_piece(&mut piece, true);
                    self.at += open;
                    // The sign of the variable belongs to its name.
                    if close.is_empty() {
                        self.at -= 1;
                    }
                    self.depth += 1;
                    self.push(Kind::Sign, "(");
                    self.read(self.at + len + usize::from(close.is_empty()));
                    self.push(Kind::Sign, ")");
                    self.depth -= 1;
                    self.at += close.len();
                    self.push(Kind::Sign, "+");
                    continue;
                }
            }
            let mut chars = rest.chars();
            let Some(c) = chars.next() else { break };
            let (c, len) = match (c, chars.next()) {
                ('\\', Some('n' | 'r')) => ('\n', 2),
                ('\\', Some('t')) => (' ', 2),
                ('\\', Some(next)) => (next, 1 + next.len_utf8()),
                _ => (c, c.len_utf8()),
            };
            if piece.len() < TEXT_BYTES_MAX {
                piece.push(c);
            }
            self.at += len;
        }
        self.text_piece(&mut piece, false);
    }

    fn text_piece(&mut self, piece: &mut String, goes_on: bool) {
        let text = std::mem::take(piece);
        self.push(Kind::Text, &text);
        if goes_on {
            self.push(Kind::Sign, "+");
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// How long the name of a variable is at the beginning of a text; in PHP with the elements and fields that belong to it.
fn name_len(text: &str, has_elements: bool) -> usize {
    let name = text.find(|c: char| !is_word(c)).unwrap_or(text.len());
    if name == 0 || text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    match text[name..].chars().next() {
        Some('[') if has_elements => text[name..].find(']').map_or(name, |at| name + at + 1),
        _ => name,
    }
}

/// How many bytes stand before the sign that closes what was opened before the text.
fn balanced(text: &str, close: &str) -> usize {
    let (open, shut) = if close == ")" { ('(', ')') } else { ('{', '}') };
    let mut depth = 0;
    for (at, c) in text.char_indices().take(TEXT_BYTES_MAX) {
        if c == open {
            depth += 1;
        } else if c == shut {
            if depth == 0 {
                return at;
            }
            depth -= 1;
        }
    }
    0
}

/// Where a text in quotes ends.
fn closes(inner: &str, close: &str, is_raw: bool, is_long: bool) -> Option<usize> {
    let bytes = inner.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(close.as_bytes()) {
            return Some(at);
        }
        match bytes[at] {
            b'\\' if !is_raw => at += 2,
            // Only few texts go on in the next line; a quote that seems to is an apostrophe mostly.
            b'\n' if !is_long && (close == "'" || close == "/") => return None,
            _ => at += 1,
        }
    }
    None
}
