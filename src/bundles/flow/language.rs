//! How programs of a language are written, as far as following values needs it: comments, quotes, what ends a statement.

use serde::Deserialize;

/// A language as the rule files describe it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[language]]`")]
pub(in crate::bundles) struct Tongue {
    /// Its name; entries about functions name it.
    pub(in crate::bundles) name: String,
    /// Extensions of its files, in lower case.
    pub(in crate::bundles) files: Vec<String>,
    /// Names of programs that a first line may name.
    #[serde(default)]
    pub(in crate::bundles) programs: Vec<String>,
    /// What blocks of documents are marked with, besides the name and the extensions.
    #[serde(default)]
    pub(in crate::bundles) fences: Vec<String>,
    /// What begins a comment that ends with the line.
    pub(super) comments: Vec<String>,
    /// What begins and ends a comment of several lines.
    #[serde(default)]
    pub(super) blocks: Vec<(String, String)>,
    /// Quotes of texts that may be filled in, longest first.
    pub(super) quotes: Vec<String>,
    /// Beginnings and ends of texts in which nothing is escaped and nothing filled in.
    #[serde(default)]
    pub(super) raw: Vec<(String, String)>,
    /// What begins a part that is filled in: `#{`, `${`, `$(`, `\(`, `{`, or `$` for the name of a variable.
    #[serde(default)]
    pub(super) fills: Vec<String>,
    /// Whether names of variables begin with a sign.
    #[serde(default)]
    pub(super) sigils: bool,
    /// Whether names have dashes in them.
    #[serde(default)]
    pub(super) has_dashes: bool,
    /// Whether a text in back-ticks is run.
    #[serde(default)]
    pub(super) runs_backticks: bool,
    /// Whether the end of a line ends a statement.
    #[serde(default)]
    pub(super) ends_with_lines: bool,
    /// Whether the type of a name stands before it.
    #[serde(default)]
    pub(super) types_first: bool,
    /// Whether functions are called without parentheses: `eval code`.
    #[serde(default)]
    pub(super) bare_calls: bool,
    /// Whether a function answers its last value without saying so.
    #[serde(default)]
    pub(super) answers_last: bool,
    /// Whether functions end with `end`.
    #[serde(default)]
    pub(super) ends: bool,
    /// Whether a variable that holds a name is called by parentheses behind it.
    #[serde(default)]
    pub(super) calls_variables: bool,
}

impl Tongue {
    /// Whether names of variables may begin with a sign. In PHP the other one only keeps errors quiet.
    pub(super) fn is_sigil(&self, c: char) -> bool {
        self.sigils && (c == '$' || c == '@' && self.name != "php")
    }

    /// The quote at the beginning of a text: how it opens and closes, and whether it is raw.
    pub(super) fn quote(&self, rest: &str, follows_value: bool) -> Option<(String, String, bool)> {
        for (open, close) in &self.raw {
            if rest.starts_with(open.as_str()) && !(follows_value && open.starts_with('%')) {
                return Some((open.clone(), close.clone(), true));
            }
        }
        let is_wanted =
            |quote: &&String| rest.starts_with(quote.as_str()) && !(follows_value && *quote == "/");
        let quote = self.quotes.iter().find(is_wanted)?;
        Some((quote.clone(), quote.clone(), false))
    }

    /// How long what begins a part that is filled in is, and what ends it; nothing for the name of a variable.
    pub(super) fn filled(&self, rest: &str) -> Option<(usize, &'static str)> {
        let open = self.fills.iter().find(|open| rest.starts_with(open.as_str()))?;
        let close = match open.as_str() {
            "$" => "",
            open if open.ends_with('(') => ")",
            _ => "}",
        };
        // The sign of the variable belongs to what is filled in: `{$name}`.
        let len = if open == "{$" { 1 } else { open.len() };
        Some((len, close))
    }
}
