//! Tokens of a script: names, constants, punctuation; comments are dropped.

use super::super::argument::HOLE;
use super::super::programs::Language;

/// Tokens of one script; what follows is not looked at.
pub(super) const TOKENS_MAX: usize = 16_000;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name; variables of Perl and PHP keep their `$`.
    Name(String),
    /// A constant text, with the pieces to fill in.
    Text(Vec<Piece>),
    /// A text that runs as a shell command: backticks, `%x`, `qx`.
    Command(Vec<Piece>),
    /// A number.
    Number(i64),
    /// Punctuation.
    Sign(&'static str),
    /// The end of a line or statement.
    End,
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Constant text.
    Constant(String),
    /// The value of a variable.
    Variable(String),
    /// Something that is not known.
    Hole,
}

/// Punctuation, longer ones first.
const SIGNS: &[&str] = &[
    "===", "!==", "**=", "<=>", "...", "=>", "->", "::", "==", "!=", "<=", ">=", "&&", "||", "+=", "-=",
    ".=", "..", "=~", "!~", "<<", ">>", "|&", "?.", "//", "(", ")", "[", "]", "{", "}", ",", ".", ":", "=",
    "+", "-", "*", "/", "%", "<", ">", "!", "?", "&", "|", "^", "~", "@", "$", "\\", "#", "`", "'", "\"",
];

struct Lexer<'t> {
    language: Language,
    text: &'t str,
    at: usize,
    tokens: Vec<Token>,
}

/// The tokens of a script.
pub(super) fn tokens(language: Language, text: &str) -> Vec<Token> {
    let mut lexer = Lexer { language, text, at: 0, tokens: Vec::new() };
    while lexer.at < text.len() && lexer.tokens.len() < TOKENS_MAX {
        let before = lexer.at;
        lexer.token();
        // Every token takes at least one character.
        if lexer.at == before {
            lexer.bump();
        }
    }
    lexer.tokens
}

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        let taken = rest[..length].to_owned();
        self.at += length;
        taken
    }

    fn skip_line(&mut self) {
        let rest = self.rest();
        self.at += rest.find('\n').unwrap_or(rest.len());
    }

    fn is(&self, languages: &[Language]) -> bool {
        languages.contains(&self.language)
    }

    fn token(&mut self) {
        use Language::{JavaScript, Lua, Perl, Php, Python, Ruby};
        let Some(c) = self.peek() else { return };
        match c {
            '\n' | ';' => {
                self.bump();
                self.tokens.push(Token::End);
            }
            _ if c.is_whitespace() => drop(self.bump()),
            HOLE => {
                self.bump();
                self.tokens.push(Token::Text(vec![Piece::Hole]));
            }
            '#' if self.is(&[Python, Ruby, Perl, Php]) && !self.after_dollar() => self.skip_line(),
            '/' if self.rest().starts_with("//") && self.is(&[JavaScript, Php]) => self.skip_line(),
            '/' if self.rest().starts_with("/*") && self.is(&[JavaScript, Php]) => {
                let rest = self.rest();
                self.at += rest.find("*/").map_or(rest.len(), |end| end + 2);
            }
            '/' if self.is(&[JavaScript, Ruby, Perl]) && self.expects_value() => self.pattern(1),
            '-' if self.language == Lua && self.rest().starts_with("--") => self.skip_line(),
            '[' if self.language == Lua && self.rest().starts_with("[[") => {
                self.at += 2;
                let rest = self.rest();
                let length = rest.find("]]").unwrap_or(rest.len());
                let text = rest[..length].to_owned();
                self.at += (length + 2).min(rest.len());
                self.tokens.push(Token::Text(vec![Piece::Constant(text)]));
            }
            '"' | '\'' => self.quoted(c),
            '`' if self.is(&[Ruby, Perl, Php]) => {
                self.bump();
                let pieces = self.interpolated('`', '`');
                self.tokens.push(Token::Command(pieces));
            }
            '`' if self.language == JavaScript => {
                self.bump();
                let pieces = self.interpolated('`', '`');
                self.tokens.push(Token::Text(pieces));
            }
            '%' if self.language == Ruby && self.expects_value() => self.percent(),
            '<' if self.language == Perl && self.expects_value() && self.file_pattern() => {}
            '$' | '@' if self.is(&[Perl, Php, Ruby]) => self.variable(),
            ':' if self.language == Ruby && self.symbol() => {}
            _ if c.is_ascii_digit() => self.number(),
            _ if starts_name(c) => self.name(),
            _ => match SIGNS.iter().find(|sign| self.rest().starts_with(**sign)) {
                Some(sign) => {
                    self.at += sign.len();
                    self.tokens.push(Token::Sign(sign));
                }
                None => drop(self.bump()),
            },
        }
    }

    /// Whether the token before was a lone `$`, as in Perl's `$#list`.
    fn after_dollar(&self) -> bool {
        self.text[..self.at].ends_with('$')
    }

    /// Whether a value must follow here, so that `/` and `%` begin one.
    fn expects_value(&self) -> bool {
        match self.tokens.last() {
            None | Some(Token::End) => true,
            Some(Token::Sign(sign)) => !matches!(*sign, ")" | "]" | "}"),
            Some(Token::Name(name)) => {
                matches!(
                    name.as_str(),
                    "return"
                        | "if"
                        | "unless"
                        | "and"
                        | "or"
                        | "not"
                        | "split"
                        | "grep"
                        | "when"
                        | "while"
                        | "puts"
                        | "system"
                        | "exec"
                        | "unlink"
                        | "for"
                        | "foreach"
                        | "map"
                )
            }
            Some(_) => false,
        }
    }

    /// A pattern between delimiters, dropped. `parts` is 2 for a substitution.
    fn pattern(&mut self, parts: usize) {
        let Some(open) = self.bump() else { return };
        let close = closing(open);
        for part in 0..parts {
            if part > 0 && close != open {
                self.take_while(char::is_whitespace);
                self.bump();
            }
            let mut escaped = false;
            while let Some(c) = self.bump() {
                if !escaped && c == close {
                    break;
                }
                if c == '\n' && open == '/' && self.language != Language::Perl {
                    break;
                }
                escaped = !escaped && c == '\\';
            }
        }
        self.take_while(|c| c.is_ascii_alphabetic());
        self.tokens.push(Token::Text(vec![Piece::Hole]));
    }

    fn quoted(&mut self, quote: char) {
        use Language::{JavaScript, Lua, Perl, Php, Python, Ruby};
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        if self.language == Python && self.rest().starts_with(&triple) {
            self.at += 3;
            let rest = self.rest();
            let length = rest.find(&triple).unwrap_or(rest.len());
            let inner = rest[..length].to_owned();
            self.at += (length + 3).min(rest.len());
            self.tokens.push(Token::Text(vec![Piece::Constant(unescape(&inner))]));
            return;
        }
        self.bump();
        let interpolates = quote == '"' && self.is(&[Ruby, Perl, Php]);
        if interpolates {
            let pieces = self.interpolated(quote, quote);
            self.tokens.push(Token::Text(pieces));
            return;
        }
        let literal = quote == '\'' && self.is(&[Perl, Ruby, Php]);
        let mut raw = String::new();
        let mut escaped = false;
        while let Some(c) = self.bump() {
            if !escaped && c == quote {
                break;
            }
            raw.push(c);
            escaped = !escaped && c == '\\';
        }
        let text = if literal { raw.replace("\\'", "'").replace("\\\\", "\\") } else { unescape(&raw) };
        debug_assert!(
            self.is(&[JavaScript, Lua, Python, Perl, Ruby, Php]),
            "a language with quotes like these"
        );
        self.tokens.push(Token::Text(vec![Piece::Constant(text)]));
    }

    /// A text whose variables are filled in, up to the closing delimiter.
    fn interpolated(&mut self, open: char, close: char) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut constant = String::new();
        let mut depth = 0;
        while let Some(c) = self.bump() {
            match c {
                '\\' => {
                    constant.push(c);
                    constant.extend(self.bump());
                }
                _ if c == close && depth == 0 => break,
                _ if c == close => {
                    depth -= 1;
                    constant.push(c);
                }
                _ if c == open && open != close => {
                    depth += 1;
                    constant.push(c);
                }
                '#' | '$' if self.peek() == Some('{') && self.braced(c) => {
                    self.bump();
                    pieces.push(Piece::Constant(unescape(&std::mem::take(&mut constant))));
                    pieces.push(self.placeholder(c));
                }
                '$' | '@'
                    if self.is(&[Language::Perl, Language::Php]) && self.peek().is_some_and(starts_name) =>
                {
                    let name = self.take_while(in_name);
                    pieces.push(Piece::Constant(unescape(&std::mem::take(&mut constant))));
                    pieces.push(if name == "ENV" && self.peek() == Some('{') {
                        self.environment()
                    } else {
                        Piece::Variable(format!("{c}{name}"))
                    });
                }
                _ => constant.push(c),
            }
        }
        pieces.push(Piece::Constant(unescape(&constant)));
        pieces.retain(|piece| *piece != Piece::Constant(String::new()));
        pieces
    }

    /// Perl's `$ENV{NAME}` in a text; the braces are next.
    fn environment(&mut self) -> Piece {
        self.bump();
        let name = self.take_while(|c| c != '}' && c != '\n');
        self.bump();
        match name.trim_matches(['\'', '"']) {
            "HOME" => Piece::Constant("~".to_owned()),
            _ => Piece::Hole,
        }
    }

    /// Whether `#{` or `${` begins a placeholder here.
    fn braced(&self, sign: char) -> bool {
        match self.language {
            Language::Ruby => sign == '#',
            Language::JavaScript | Language::Perl | Language::Php => sign == '$',
            _ => false,
        }
    }

    /// What stands between the braces: a variable, or something that is not known.
    fn placeholder(&mut self, sign: char) -> Piece {
        let mut depth = 1;
        let start = self.at;
        while let Some(c) = self.bump() {
            match c {
                '{' => depth += 1,
                '}' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                _ => {}
            }
        }
        let inner = self.text[start..self.at].trim_end_matches('}').trim();
        if inner.is_empty() || !inner.chars().all(|c| in_name(c) || c == '@' || c == '$') {
            return Piece::Hole;
        }
        let perl = sign == '$' && self.is(&[Language::Perl, Language::Php]) && !inner.starts_with('$');
        Piece::Variable(if perl { format!("${inner}") } else { inner.to_owned() })
    }

    /// Perl's `<~/*.c>`, which is `glob "~/*.c"`; a name between the signs reads a line instead.
    fn file_pattern(&mut self) -> bool {
        let rest = &self.rest()[1..];
        let Some(length) = rest.find(['>', '\n', ';']).filter(|at| rest[*at..].starts_with('>')) else {
            return false;
        };
        if !rest[..length].contains(['/', '*', '~', '?']) {
            return false;
        }
        self.at += 1;
        let pieces = self.interpolated('<', '>');
        self.tokens.push(Token::Name("glob".to_owned()));
        self.tokens.push(Token::Text(pieces));
        true
    }

    /// Ruby's `%x(…)`, `%w[…]`, `%q{…}`.
    fn percent(&mut self) {
        let mut chars = self.rest()[1..].chars();
        let (Some(kind), Some(open)) = (chars.next(), chars.next()) else {
            self.bump();
            return;
        };
        let (kind, open, taken) = if kind.is_ascii_alphabetic() { (kind, open, 3) } else { ('Q', kind, 2) };
        if open.is_alphanumeric() || open.is_whitespace() || !open.is_ascii() {
            self.bump();
            return;
        }
        self.at += taken;
        let pieces = self.interpolated(open, closing(open));
        match kind {
            'x' => self.tokens.push(Token::Command(pieces)),
            'w' | 'W' | 'i' => self.word_list(&pieces),
            _ => self.tokens.push(Token::Text(pieces)),
        }
    }

    fn word_list(&mut self, pieces: &[Piece]) {
        self.tokens.push(Token::Sign("["));
        if let [Piece::Constant(text)] = pieces {
            for word in text.split_whitespace() {
                self.tokens.push(Token::Text(vec![Piece::Constant(word.to_owned())]));
                self.tokens.push(Token::Sign(","));
            }
        }
        self.tokens.push(Token::Sign("]"));
    }

    /// `$name`, `@name`, `$_`; a sigil alone is punctuation.
    fn variable(&mut self) {
        let Some(sigil) = self.bump() else { return };
        let mut name = self.take_while(in_name);
        // `$File::Find::name`
        while self.language == Language::Perl
            && !name.is_empty()
            && self.rest().strip_prefix("::").is_some_and(|rest| rest.starts_with(starts_name))
        {
            self.at += 2;
            name = name + "::" + &self.take_while(in_name);
        }
        if !name.is_empty() {
            self.tokens.push(Token::Name(format!("{sigil}{name}")));
        } else if sigil == '$' && self.peek().is_some_and(|c| "~/,;!&0".contains(c)) {
            let special = self.bump().unwrap_or_default();
            self.tokens.push(Token::Name(format!("${special}")));
        }
    }

    /// A Ruby symbol as a text; `::` and `? :` are none.
    fn symbol(&mut self) -> bool {
        let mut rest = self.rest()[1..].chars();
        if !rest.next().is_some_and(starts_name) || self.text[..self.at].ends_with(':') {
            return false;
        }
        self.bump();
        let name = self.take_while(in_name);
        self.tokens.push(Token::Text(vec![Piece::Constant(name)]));
        true
    }

    fn number(&mut self) {
        let digits = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        let digits = digits.replace('_', "");
        let value = match digits.get(..2) {
            Some("0x" | "0X") => i64::from_str_radix(&digits[2..], 16),
            Some("0o" | "0O") => i64::from_str_radix(&digits[2..], 8),
            Some("0b" | "0B") => i64::from_str_radix(&digits[2..], 2),
            _ => digits.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse(),
        };
        self.tokens.push(Token::Number(value.unwrap_or(0)));
    }

    fn name(&mut self) {
        use Language::{Perl, Python, Ruby};
        let name = self.take_while(in_name);
        let next = self.peek();
        match (self.language, name.as_str(), next) {
            (Python, prefix, Some(quote @ ('"' | '\''))) if is_prefix(prefix) => self.prefixed(prefix, quote),
            (Perl, "q" | "qq" | "qx" | "qw" | "m" | "qr" | "s" | "tr" | "y", Some(open))
                if is_delimiter(open, self.rest()) =>
            {
                self.perl_quote(&name, open);
            }
            (Ruby, _, Some('?' | '!')) if !self.rest()[1..].starts_with('=') => {
                let mark = self.bump().unwrap_or_default();
                self.tokens.push(Token::Name(format!("{name}{mark}")));
            }
            _ => self.tokens.push(Token::Name(name)),
        }
    }

    fn perl_quote(&mut self, kind: &str, open: char) {
        match kind {
            "m" | "qr" => self.pattern(1),
            "s" | "tr" | "y" => self.pattern(2),
            _ => {
                self.bump();
                let pieces = self.interpolated(open, closing(open));
                match kind {
                    "qx" => self.tokens.push(Token::Command(pieces)),
                    "qw" => self.word_list(&pieces),
                    _ => self.tokens.push(Token::Text(pieces)),
                }
            }
        }
    }

    /// A Python string with a prefix such as `r`, `b`, `f`.
    fn prefixed(&mut self, prefix: &str, quote: char) {
        let lower = prefix.to_ascii_lowercase();
        self.quoted_raw(quote, lower.contains('r'), lower.contains('f'));
    }

    fn quoted_raw(&mut self, quote: char, raw: bool, format: bool) {
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let end: String = if self.rest().starts_with(&triple) { triple } else { quote.to_string() };
        self.at += end.len();
        let rest = self.rest();
        let mut escaped = false;
        let length = rest
            .char_indices()
            .find(|(index, c)| {
                let ends = !escaped && rest[*index..].starts_with(&end);
                escaped = !escaped && *c == '\\';
                ends
            })
            .map_or(rest.len(), |(index, _)| index);
        let inner = rest[..length].to_owned();
        self.at += (length + end.len()).min(rest.len());
        let text = |t: &str| if raw { t.to_owned() } else { unescape(t) };
        let pieces = if format { format_pieces(&inner, text) } else { vec![Piece::Constant(text(&inner))] };
        self.tokens.push(Token::Text(pieces));
    }
}

/// The pieces of a Python f-string.
fn format_pieces(inner: &str, text: impl Fn(&str) -> String) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = inner;
    while let Some(open) = rest.find('{') {
        if rest[open..].starts_with("{{") {
            pieces.push(Piece::Constant(text(&rest[..=open])));
            rest = &rest[open + 2..];
            continue;
        }
        pieces.push(Piece::Constant(text(&rest[..open])));
        let close = rest[open..].find('}').map_or(rest.len(), |c| open + c);
        let name = &rest[(open + 1).min(close)..close];
        let is_name = !name.is_empty() && name.chars().all(in_name);
        pieces.push(if is_name { Piece::Variable(name.to_owned()) } else { Piece::Hole });
        rest = rest.get(close + 1..).unwrap_or_default();
    }
    pieces.push(Piece::Constant(text(rest).replace("}}", "}")));
    pieces.retain(|piece| *piece != Piece::Constant(String::new()));
    pieces
}

fn is_prefix(name: &str) -> bool {
    name.len() <= 2 && name.chars().all(|c| "rRbBfFuU".contains(c))
}

/// Whether a Perl quote operator begins here rather than a name that looks like one.
fn is_delimiter(open: char, rest: &str) -> bool {
    !(open.is_alphanumeric()
        || open.is_whitespace()
        || matches!(open, ',' | ';' | ')' | '_')
        || rest.starts_with("=>")
        || (open == '='))
}

fn closing(open: char) -> char {
    match open {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        '<' => '>',
        other => other,
    }
}

/// Escapes that the languages share: `\n`, `\x72`, `\u0072`, `\162`.
pub(super) fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(kind) = chars.next() else { break };
        match kind {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'e' => out.push('\u{1b}'),
            '\n' => {}
            'x' | 'u' | 'U' => {
                let braced = chars.next_if_eq(&'{').is_some();
                let most = match (kind, braced) {
                    (_, true) => 8,
                    ('x', _) => 2,
                    ('u', _) => 4,
                    _ => 8,
                };
                let mut value = 0_u32;
                for _ in 0..most {
                    let Some(digit) = chars.peek().and_then(|c| c.to_digit(16)) else { break };
                    value = value.wrapping_mul(16).wrapping_add(digit);
                    chars.next();
                }
                if braced {
                    chars.next_if_eq(&'}');
                }
                // NUL stands for what is unknown.
                out.extend(char::from_u32(value).filter(|c| *c != HOLE));
            }
            '0'..='7' => {
                let mut value = kind.to_digit(8).unwrap_or_default();
                for _ in 0..2 {
                    let Some(digit) = chars.peek().and_then(|c| c.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    chars.next();
                }
                out.extend(char::from_u32(value).filter(|c| *c != HOLE));
            }
            other => out.push(other),
        }
    }
    out
}
