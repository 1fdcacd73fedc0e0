//! awk: `system()`, pipes to and from commands, files printed to, `getline <file`, network pseudo-files.

use std::collections::HashMap;

use super::super::argument::{Argument, HOLE};
use super::super::effect::{EffectKind, Target, TargetKind};
use super::super::programs::{Language, Sink};
use super::tell;
use super::token::unescape;

/// Bytes of a constant text that is followed; no command that means something is longer.
const CONSTANT_MAX: usize = 2 << 10;

/// Tokens of awk that matter.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Text(String),
    Name(String),
    Sign(char),
    /// `|&`, `>>`, `||` and the like.
    Double([char; 2]),
    End,
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '#' => {
                while chars.peek().is_some_and(|c| *c != '\n') {
                    chars.next();
                }
            }
            '\n' | ';' => tokens.push(Token::End),
            '"' => {
                let mut inner = String::new();
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => {
                            inner.push(c);
                            inner.extend(chars.next());
                        }
                        _ => inner.push(c),
                    }
                }
                tokens.push(Token::Text(unescape(&inner)));
            }
            '/' if expects_pattern(tokens.last()) => {
                let mut escaped = false;
                for c in chars.by_ref() {
                    if (c == '/' && !escaped) || c == '\n' {
                        break;
                    }
                    escaped = !escaped && c == '\\';
                }
                tokens.push(Token::Name("/".to_owned()));
            }
            _ if c.is_alphanumeric() || matches!(c, '_' | '$' | HOLE) => {
                let mut name = c.to_string();
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                tokens.push(Token::Name(name));
            }
            _ if c.is_whitespace() => {}
            _ => match chars.peek() {
                Some(&next)
                    if matches!(
                        (c, next),
                        ('|', '&' | '|') | ('>', '>' | '=') | ('&', '&') | ('=' | '!' | '<', '=')
                    ) =>
                {
                    chars.next();
                    tokens.push(Token::Double([c, next]));
                }
                _ => tokens.push(Token::Sign(c)),
            },
        }
    }
    tokens
}

fn expects_pattern(last: Option<&Token>) -> bool {
    match last {
        None | Some(Token::End | Token::Double(_)) => true,
        Some(Token::Sign(c)) => !matches!(c, ')' | ']'),
        _ => false,
    }
}

/// A constant from a place on: texts side by side, variables as holes, up to a bracket or operator.
fn constant(tokens: &[Token], variables: &HashMap<String, String>) -> String {
    let mut out = String::new();
    for token in tokens {
        match token {
            Token::Text(text) => out.push_str(text),
            Token::Name(name) => match variables.get(name) {
                Some(value) => out.push_str(value),
                None => out.push(HOLE),
            },
            Token::Sign('(') => {}
            _ => break,
        }
        if out.len() > CONSTANT_MAX {
            // A variable that doubles itself would take all memory.
            return HOLE.to_string();
        }
    }
    out
}

/// The constant that ends before a place.
fn constant_before(tokens: &[Token], variables: &HashMap<String, String>) -> String {
    let start = tokens
        .iter()
        .rposition(|t| {
            !matches!(t, Token::Text(_) | Token::Name(_))
                || matches!(t, Token::Name(n) if n == "print" || n == "printf")
        })
        .map_or(0, |at| at + 1);
    constant(&tokens[start..], variables)
}

/// Something is printed to a file, or to the pseudo-file of a connection.
fn print_to(sink: &mut dyn Sink, name: String) {
    let (kind, target) = match name.strip_prefix("/inet") {
        Some(host) => {
            (EffectKind::SendData, (host.trim_start_matches(['4', '6', '/']).to_owned(), TargetKind::Name))
        }
        None => (EffectKind::WritePath, (name, TargetKind::Path)),
    };
    let target = Target { text: target.0, has_glob: false, kind: target.1 };
    tell(sink, kind, Some(target), "");
}

/// How reports name a command that awk prints to.
pub(in crate::shell) const AWK_PIPE: &str = "awk pipe";

/// See [`super::analyse`].
pub(super) fn analyse(text: &Argument, sink: &mut dyn Sink) {
    let tokens = tokens(&text.text);
    let mut variables: HashMap<String, String> = HashMap::new();
    let argument = |command: String| Argument::constant(command, text.span.clone());
    let path = |name: String| Some(Target { text: name, has_glob: false, kind: TargetKind::Path });
    let mut network = false;
    let mut runs_unknown = false;
    for (at, token) in tokens.iter().enumerate() {
        let before = &tokens[..at];
        let after = &tokens[at + 1..];
        match token {
            Token::Text(value) if value.starts_with("/inet") => network = true,
            Token::Sign('=') => {
                if let (Some(Token::Name(name)), Some(Token::Text(_))) = (before.last(), after.first()) {
                    let value = constant(after, &variables);
                    variables.insert(name.clone(), value);
                }
            }
            Token::Name(name) if name == "system" && after.first() == Some(&Token::Sign('(')) => {
                let command = constant(&after[1..], &variables);
                runs_unknown |= command.contains(HOLE);
                sink.script(Language::Shell, &argument(command), "awk system");
            }
            Token::Sign('|') | Token::Double(['|', '&']) => match after.first() {
                Some(Token::Name(name)) if name == "getline" => {
                    let command = constant_before(before, &variables);
                    runs_unknown |= command.contains(HOLE) || command.is_empty();
                    if !command.starts_with("/inet") {
                        sink.script(Language::Shell, &argument(command), "awk getline");
                    }
                }
                Some(Token::Text(_)) => {
                    let command = constant(after, &variables);
                    if command.starts_with("/inet") {
                        print_to(sink, command);
                    } else {
                        sink.script(Language::Shell, &argument(command), AWK_PIPE);
                    }
                }
                _ => runs_unknown = true,
            },
            Token::Double(['>', '>']) => {
                if matches!(after.first(), Some(Token::Text(_))) {
                    tell(sink, EffectKind::WritePath, path(constant(after, &variables)), "append");
                }
            }
            Token::Sign('>') => {
                // In a print statement `>` writes; elsewhere it compares.
                let statement = before
                    .iter()
                    .rposition(|t| matches!(t, Token::End | Token::Sign('{' | '}')))
                    .map_or(0, |i| i + 1);
                let prints = before[statement..]
                    .iter()
                    .any(|t| matches!(t, Token::Name(n) if n == "print" || n == "printf"));
                if prints && matches!(after.first(), Some(Token::Text(_))) {
                    print_to(sink, constant(after, &variables));
                }
            }
            Token::Sign('<') => {
                let reads =
                    before.iter().rev().take(2).any(|t| matches!(t, Token::Name(n) if n == "getline"));
                if reads && matches!(after.first(), Some(Token::Text(_))) {
                    tell(sink, EffectKind::ReadPath, path(constant(after, &variables)), "");
                }
            }
            _ => {}
        }
    }
    if network && runs_unknown {
        tell(sink, EffectKind::ReverseShell, None, "awk");
    } else if runs_unknown {
        sink.runs_input();
    }
}
