//! Where functions of a program begin and end, and which brackets belong together.

use std::collections::{HashMap, HashSet};

use super::language::Tongue;
use super::token::{Kind, Token};

/// A function of the program.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) parameters: Vec<String>,
}

/// What belongs together in a program.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    /// By token: the function that it stands in, from 1; 0 outside of all.
    pub(super) of: Vec<u32>,
    /// By token that opens a bracket: the one that closes it. Any other is its own.
    pub(super) closes: Vec<u32>,
    pub(super) functions: Vec<Function>,
    names: HashMap<String, u32>,
    /// Tokens at which functions end.
    ends: HashSet<u32>,
}

/// Functions of one program that are told apart.
const FUNCTIONS_MAX: usize = 4_000;
/// How often a token is told to be of a function, on average.
const SCOPED_MAX: usize = 20;
/// Tokens of the body of a function that ends with a word.
const BODY_MAX: usize = 5_000;

/// Words before the name of a function.
const HEADS: &[&str] = &["func", "fn", "def", "function", "fun", "sub", "defp", "proc"];

impl Scopes {
    pub(super) fn of(tokens: &[Token], tongue: &Tongue, text: &str) -> Self {
        let mut out = Self { closes: closes(tokens), of: vec![0; tokens.len()], ..Self::default() };
        let (mut at, mut left) = (0, SCOPED_MAX * tokens.len());
        while at < tokens.len() && out.functions.len() < FUNCTIONS_MAX {
            if let Some((name, open, close)) = out.head(tokens, at, tongue) {
                let body = out.body(tokens, at, close, tongue, text);
                let parameters = parameters(tokens, open, close, tongue);
                out.functions.push(Function { parameters });
                let index = out.functions.len() as u32;
                if let Some(end) = body {
                    let end = end.min(tokens.len()).max(open);
                    // Functions within functions within functions: what is inside of too many belongs to an outer one.
                    if left >= end - open {
                        left -= end - open;
                        out.of[open..end].fill(index);
                        out.ends.insert(end as u32);
                    }
                }
                out.names.insert(name.to_lowercase(), index);
                at = close.max(at + 1);
            } else {
                at += 1;
            }
        }
        out
    }

    /// The function of that name, from 1.
    pub(super) fn function(&self, name: &str) -> Option<u32> {
        if self.functions.is_empty() {
            return None;
        }
        self.names.get(&name.to_lowercase()).copied()
    }

    /// Whether a function ends at a token, or behind the ends of lines there.
    pub(super) fn is_end_of_function(&self, at: usize) -> bool {
        (at..at + 3).any(|at| self.ends.contains(&(at as u32)))
    }

    /// The name of a function whose head begins at a token, and where its parameters stand.
    fn head(&self, tokens: &[Token], at: usize, tongue: &Tongue) -> Option<(String, usize, usize)> {
        let word = |at: usize| {
            tokens.get(at).filter(|token| token.kind == Kind::Word).map(|token| token.text.as_str())
        };
        let sign = |at: usize| {
            tokens.get(at).filter(|token| token.kind == Kind::Sign).map_or("", |token| token.text.as_str())
        };
        let close = |at: usize| self.closes.get(at).map_or(at, |close| *close as usize);
        let first = word(at)?;
        if HEADS.contains(&first.to_ascii_lowercase().as_str()) {
            let mut next = at + 1;
            // The receiver of a method of Go.
            if first == "func" && sign(next) == "(" {
                next = close(next) + 1;
            }
            let mut name = word(next)?.to_owned();
            while matches!(sign(next + 1), "." | ":") {
                name = word(next + 2)?.to_owned();
                next += 2;
            }
            if sign(next + 1) == "<" {
                next = (next..next + 24).find(|at| sign(*at) == ">")?;
            }
            if sign(next + 1) == "(" {
                return Some((name, next + 2, close(next + 1)));
            }
            // Without parentheses, up to the end of the line.
            let end = (next + 1..tokens.len())
                .find(|at| tokens[*at].kind == Kind::Line || sign(*at) == "{")
                .unwrap_or(tokens.len());
            return (tongue.ends || tongue.sigils).then_some((name, next + 1, end));
        }
        // `name <- function(…)`, `local name = function(…)`.
        if matches!(sign(at + 1), "=" | "<-") && word(at + 2) == Some("function") && sign(at + 3) == "(" {
            return Some((first.to_owned(), at + 4, close(at + 3)));
        }
        // `Type name(Type parameter) {`.
        if tongue.types_first && sign(at + 1) == "(" && at > 0 {
            let before = &tokens[at - 1];
            let is_type = before.kind == Kind::Word
                && !matches!(
                    before.text.as_str(),
                    "new" | "return" | "else" | "await" | "throw" | "in" | "if" | "case"
                )
                || before.kind == Kind::Sign && matches!(before.text.as_str(), ">" | "]");
            let end = close(at + 1);
            let is_body = matches!(sign(end + 1), "{" | "=>") || word(end + 1) == Some("throws");
            return (is_type && is_body).then(|| (first.to_owned(), at + 2, end));
        }
        None
    }

    /// Where the body of a function ends; nothing where that is not told.
    fn body(
        &self,
        tokens: &[Token],
        head: usize,
        close: usize,
        tongue: &Tongue,
        text: &str,
    ) -> Option<usize> {
        if tongue.ends {
            let column = |at: usize| text[..at].rfind('\n').map_or(at, |line| at - line - 1);
            // `local function`, `private def`: the line that the head stands in counts.
            let line = text[..tokens[head].at].rfind('\n').map_or(0, |line| line + 1);
            let indent = text[line..].len() - text[line..].trim_start_matches([' ', '\t']).len();
            let most = tokens.len().min(close + BODY_MAX);
            return (close + 1..most).find(|at| {
                tokens[*at].kind == Kind::Word
                    && tokens[*at].text == "end"
                    && column(tokens[*at].at) == indent
            });
        }
        let sign = |at: usize| {
            tokens.get(at).filter(|token| token.kind == Kind::Sign).map_or("", |token| token.text.as_str())
        };
        for at in close..(close + 60).min(tokens.len()) {
            match sign(at) {
                "{" => return Some(self.closes[at] as usize),
                ";" => return None,
                "=" | "=>" => {
                    return (at..tokens.len()).find(|at| sign(*at) == ";" || tokens[*at].kind == Kind::Line);
                }
                _ => {}
            }
        }
        None
    }
}

/// Which bracket closes which.
fn closes(tokens: &[Token]) -> Vec<u32> {
    let mut out: Vec<u32> = (0..tokens.len() as u32).collect();
    let mut open: Vec<(usize, &str)> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.kind != Kind::Sign {
            continue;
        }
        match token.text.as_str() {
            "(" => open.push((at, ")")),
            "[" => open.push((at, "]")),
            "{" => open.push((at, "}")),
            close @ (")" | "]" | "}") => {
                // One that closes nothing near by is left alone, and those that it closes over end with it.
                if let Some(nth) = open.iter().rev().take(8).position(|(_, wanted)| *wanted == close) {
                    for _ in 0..=nth {
                        if let Some((begin, _)) = open.pop() {
                            out[begin] = at as u32;
                        }
                    }
                }
            }
            _ => {}
        }
    }
    for (begin, _) in open {
        out[begin] = tokens.len() as u32;
    }
    out
}

/// The names of parameters between two places.
pub(super) fn parameters(tokens: &[Token], from: usize, end: usize, tongue: &Tongue) -> Vec<String> {
    let mut out = Vec::new();
    let end = end.min(tokens.len());
    let mut start = from;
    let mut depth = 0;
    for at in from..=end {
        let sign = tokens
            .get(at)
            .filter(|token| token.kind == Kind::Sign && at < end)
            .map_or("", |token| token.text.as_str());
        match sign {
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" | ">" => depth -= 1,
            _ => {}
        }
        if at < end && (sign != "," || depth > 0) {
            continue;
        }
        let part = &tokens[start.min(at)..at];
        let words = || {
            part.iter().filter(|token| {
                token.kind == Kind::Word && !matches!(token.text.as_str(), "mut" | "final" | "const" | "ref")
            })
        };
        let before_colon =
            part.iter().position(|token| token.text == ":").and_then(|colon| part[..colon].last());
        let before_default =
            part.iter().position(|token| token.text == "=").and_then(|sets| part[..sets].last());
        let name = words().find(|token| token.text.starts_with('$')).or(before_colon).or_else(|| {
            if tongue.types_first { before_default.or_else(|| words().next_back()) } else { words().next() }
        });
        if let Some(name) = name {
            out.push(name.text.clone());
        }
        start = at + 1;
    }
    out
}
