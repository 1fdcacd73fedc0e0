//! The shape of a rule file.
//!
//! Unknown keys are errors: a misspelt `validator` must not silently make a rule looser.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::model::ModelDef;
use super::phrases::Phrases;
use crate::decision::Severity;

/// A rule file: named pieces and rules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleFile {
    /// Plugin the rules belong to; default: name of the folder the file lies in.
    pub plugin: Option<String>,
    /// Named pieces of patterns, used as `(?&name)`.
    #[serde(default)]
    pub define: BTreeMap<String, String>,
    /// The rules.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Spanned<RuleDef>>,
    /// Word lists, used in phrases as `{name}`.
    #[serde(default)]
    pub words: BTreeMap<String, Vec<String>>,
    /// Concepts.
    #[serde(default, rename = "concept")]
    pub concepts: Vec<Spanned<ConceptDef>>,
    /// What words mean: classes, and the words of each with blanks between them; see [`super::meanings`].
    pub meanings: Option<Spanned<BTreeMap<String, String>>>,
    /// A model that weighs concepts.
    pub model: Option<Spanned<ModelDef>>,
}

/// A rule file as the build script writes it for those that ship with the binary.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinedFile {
    /// As in [`RuleFile`].
    pub plugin: Option<String>,
    /// As in [`RuleFile`].
    pub define: BTreeMap<String, String>,
    /// The rules, each with its place.
    pub rules: Vec<LinedRule>,
    /// As in [`RuleFile`].
    pub words: BTreeMap<String, Vec<String>>,
    /// As in [`RuleFile`], with their place.
    pub meanings: Option<LinedMeanings>,
    /// The concepts, each with its place.
    pub concepts: Vec<LinedConcept>,
    /// As in [`RuleFile`], with its place.
    pub model: Option<LinedModel>,
}

/// A concept and where it stands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinedConcept {
    /// 1-based line of its `[[concept]]`.
    pub line: usize,
    /// The concept.
    pub concept: ConceptDef,
}

/// What words mean, and where that stands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinedMeanings {
    /// 1-based line of its `[meanings]`.
    pub line: usize,
    /// The classes.
    pub meanings: BTreeMap<String, String>,
}

/// A model and where it stands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinedModel {
    /// 1-based line of its `[model]`.
    pub line: usize,
    /// The model.
    pub model: ModelDef,
}

/// Phrases that together stand for one idea. They are evidence, which a model weighs, and never a finding alone.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[concept]]`")]
pub(super) struct ConceptDef {
    /// As in [`RuleDef`].
    pub id: String,
    /// The idea, which is the name of a weight in the model; several concepts may share it, as languages do.
    pub family: String,
    /// Whether it speaks against an attack, as documentation does.
    #[serde(default)]
    pub against: bool,
    /// Whether it only names the subject, such as an assistant or its instructions.
    #[serde(default)]
    pub topic: bool,
    /// Phrases of words and gaps; see [`super::phrases`].
    #[serde(default)]
    pub phrases: Vec<String>,
    /// Whether the script puts spaces between words.
    #[serde(default = "yes")]
    pub spaced: bool,
    /// A regex instead of phrases, with its literals.
    pub pattern: Option<String>,
    /// As in [`RuleDef`], for a concept with a pattern.
    #[serde(default)]
    pub literals: Vec<String>,
    /// Longest match in bytes.
    pub match_length_max: Option<usize>,
    /// As in [`RuleDef`].
    pub roles: Option<Vec<Role>>,
    /// As in [`RuleDef`].
    pub surfaces: Option<Vec<Surface>>,
    /// One sentence for a person.
    pub description: String,
    /// As in [`RuleDef`].
    #[serde(default)]
    pub examples: Vec<String>,
    /// As in [`RuleDef`].
    #[serde(default)]
    pub negative_examples: Vec<String>,
    /// As in [`RuleDef`].
    #[serde(default)]
    pub known_misses: Vec<String>,
}

/// What a concept means to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concept {
    /// The family whose weight it takes.
    pub family: String,
    /// Whether it speaks against an attack.
    pub is_against: bool,
    /// Whether it speaks neither for nor against one, but what is said around it is weighed by its words.
    pub is_topic: bool,
}

impl Concept {
    /// Whether it speaks for an attack.
    pub fn speaks(&self) -> bool {
        !self.is_against && !self.is_topic
    }
}

/// A rule and where it stands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinedRule {
    /// 1-based line of its `[[rule]]`.
    pub line: usize,
    /// The rule.
    pub rule: RuleDef,
}

/// Who speaks in a message, as rules see it. Aliases of the wire (`human`, `developer`, `function`, …) are mapped first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The operator.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool's result: the least trusted.
    Tool,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::System, Self::User, Self::Assistant, Self::Tool];

    /// The lower-case name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// What kind of text is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// Text of a message that is no tool result.
    Text,
    /// Arguments of a tool call.
    ToolArgs,
    /// Result of a tool.
    ToolResult,
    /// A file of a bundle.
    Document,
    /// Live output of an agent.
    Stream,
}

impl Surface {
    /// Every surface.
    pub const ALL: [Self; 5] = [Self::Text, Self::ToolArgs, Self::ToolResult, Self::Document, Self::Stream];
}

/// What starts a rule that has no literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// A cluster of digits joined by single separators.
    Digits,
    /// A long run of token characters (`A-Z a-z 0-9 _ + / = -`).
    Token,
    /// One of the rule's `separators`.
    Separator,
}

/// A string, or a list of strings.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a text, or a list of texts")]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(super) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(s) => std::slice::from_ref(s),
            Self::Many(v) => v,
        }
    }
}

impl Default for OneOrMany {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

/// What must match for a finding to be dropped: every key that is given.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a condition such as { value = 'regex' }, with `value`, `match` or `line`"
)]
pub(super) struct Condition {
    /// Regexes over the reported value.
    #[serde(default)]
    pub value: OneOrMany,
    /// Regexes over the whole match.
    #[serde(default, rename = "match")]
    pub whole: OneOrMany,
    /// Regexes over the line that the match begins in.
    #[serde(default)]
    pub line: OneOrMany,
}

/// One rule as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[rule]]`")]
pub struct RuleDef {
    /// Set for a concept, whose matches are evidence and no findings.
    #[serde(skip)]
    pub concept: Option<Concept>,
    /// The phrases of a rule or a concept that has no pattern, ready to be looked for.
    #[serde(skip)]
    pub(super) phrases: Option<Arc<Phrases>>,
    /// Stable id, `[a-z0-9][a-z0-9.-]*`, unique over all files: dashboards and suppressions name it.
    pub id: String,
    /// Dotted category, for example `pii.email`.
    pub category: String,
    /// How bad a certain finding is.
    pub severity: Severity,
    /// How certain a finding is, above 0.0 up to 1.0; multiplies the severity's score.
    #[serde(default = "one")]
    pub confidence: f64,
    /// Gate: the pattern runs only near an occurrence of one of these, in any ASCII case. At least 3 bytes each.
    #[serde(default)]
    pub literals: Vec<String>,
    /// Whether literals that begin with a letter or digit count only where a word begins: `add` is then seen in `add x`,
    /// not in `madder`. Behind an escape such as the two characters `\n` of a JSON string they count too.
    #[serde(default)]
    pub literals_begin_words: bool,
    /// More literals of the gate, which count only as whole words: no ASCII letter or digit touches a letter or digit at
    /// their ends. At least 3 bytes each; see `literals_begin_words` for escapes.
    #[serde(default)]
    pub literal_words: Vec<String>,
    /// Gate of a rule that has no literal.
    pub trigger: Option<Trigger>,
    /// Digits: least number of digits in the cluster (default 4). Token: least number of bytes (default 20).
    pub trigger_min: Option<usize>,
    /// ASCII punctuation for `trigger = "separator"`.
    #[serde(default)]
    pub separators: String,
    /// The regex, ASCII by default (`(?-u)`); a group named `value` is the reported span, or the first of `value`, `value2` and so
    /// on that matched something.
    #[serde(default)]
    pub pattern: String,
    /// Phrases of words and gaps instead of a pattern and its literals; see [`super::phrases`]. A quotation that
    /// the prose around discusses is not found.
    #[serde(default, rename = "phrases")]
    pub phrases_written: Vec<String>,
    /// Whether the script of the phrases puts spaces between words.
    #[serde(default = "yes")]
    pub spaced: bool,
    /// Longest match in bytes; required when the pattern itself has no bound. A longer match is not found.
    pub match_length_max: Option<usize>,
    /// Checks that a regex cannot make; all must accept the reported value.
    #[serde(default)]
    pub(super) validator: OneOrMany,
    /// Regexes over the reported value; a match drops the finding.
    #[serde(default)]
    pub(super) exclude: OneOrMany,
    /// Regexes over the whole match; a match of one drops the finding.
    #[serde(default)]
    pub(super) exclude_match: OneOrMany,
    /// Regexes over the line that the match begins in; a match of one drops the finding.
    #[serde(default)]
    pub(super) exclude_line: OneOrMany,
    /// Lists of conditions: a finding is dropped where all of one list hold.
    #[serde(default)]
    pub(super) exclude_all: Vec<Vec<Condition>>,
    /// Whether what an exclusion of the value, the match or the line drops takes every later match with it that overlaps it.
    /// Without it another match may begin inside, lest who writes a text hide a value behind what is excluded.
    #[serde(default)]
    pub exclude_overlaps: bool,
    /// Regex over up to 64 bytes before the match; a match drops the finding.
    pub exclude_before: Option<String>,
    /// Regex over up to 64 bytes after the match; a match drops the finding.
    pub exclude_after: Option<String>,
    /// Whether a match of the pattern is dropped where it stands in quotation marks that the prose around discusses. Of
    /// phrases it always is.
    #[serde(default)]
    pub unless_discussed: bool,
    /// Whether a match is worth less where the text only shows it: in inline code of a sentence, in quotation marks that are
    /// discussed, or in a test that it is refused. Never so in arguments of tools.
    #[serde(default)]
    pub milder_if_shown: bool,
    /// Context words: one must stand near the match.
    #[serde(default, deserialize_with = "some_words")]
    pub near: Vec<String>,
    /// How near, in characters either side of the match; see [`Self::near_within`].
    pub near_distance: Option<usize>,
    /// Whether context words count inside of longer words too, as `key` does in `apiKeys`.
    #[serde(default)]
    pub near_inside_words: bool,
    /// For rules about streams: rules or categories about commands, one of which must hold for the command that the
    /// pattern shows. Empty for all other rules.
    #[serde(default)]
    pub commands: Vec<String>,
    /// For rules about streams with `commands`: the pattern shows only that some command begins there, whatever it is. It
    /// is looked at after those of all other rules, and nothing is reported where it could not be read.
    #[serde(default)]
    pub any_command: bool,
    /// ISO 3166-1 codes of the countries whose numbers or papers it is about; empty for what is of no country.
    #[serde(default)]
    pub countries: Vec<String>,
    /// Roles the rule applies to; absent means all.
    pub roles: Option<Vec<Role>>,
    /// Surfaces the rule applies to; absent means all.
    pub surfaces: Option<Vec<Surface>>,
    /// One sentence for a person.
    pub description: String,
    /// What to do.
    pub recommendation: String,
    /// Where the format or the attack is described.
    #[serde(default)]
    pub references: Vec<String>,
    /// Texts in which this rule must find something.
    #[serde(default)]
    pub examples: Vec<String>,
    /// Texts in which this rule must find nothing.
    #[serde(default)]
    pub negative_examples: Vec<String>,
    /// Texts in which this rule ought to find something and does not yet; checked, so that a fix shows up.
    #[serde(default)]
    pub known_misses: Vec<String>,
}

impl RuleDef {
    /// Whether each of its context words, which stand alone, holds a literal that counts there, so that the gate opens at the
    /// context and not in the match.
    pub(super) fn is_gated_by_context(&self) -> bool {
        let is_edge = |byte: Option<&u8>| !byte.is_some_and(u8::is_ascii_alphanumeric);
        let holds = |word: &str, literal: &str, starts_word: bool, ends_word: bool| {
            let (word, literal) = (word.to_ascii_lowercase(), literal.to_ascii_lowercase());
            word.match_indices(&literal).any(|(start, _)| {
                let (before, after) = (&word.as_bytes()[..start], &word.as_bytes()[start + literal.len()..]);
                // What stands around a word that counts inside of others is not known.
                let begins = !self.near_inside_words && is_edge(before.last());
                let ends = !self.near_inside_words && is_edge(after.first());
                (!starts_word || begins) && (!ends_word || ends)
            })
        };
        let is_literal = |word: &String| {
            self.literals.iter().any(|literal| holds(word, literal, self.literals_begin_words, false))
                || self.literal_words.iter().any(|literal| holds(word, literal, true, true))
        };
        !self.near.is_empty() && self.near.iter().all(is_literal)
    }

    /// How near a context word must stand, in characters either side of the match.
    pub fn near_within(&self) -> usize {
        self.near_distance.unwrap_or(NEAR_CHARS)
    }

    /// Every literal that opens the gate, wherever it counts.
    pub fn gate_literals(&self) -> impl Iterator<Item = &String> {
        self.literals.iter().chain(&self.literal_words)
    }

    /// What is not yet known of a concept takes the value that says least.
    pub(super) fn evidence(id: String, pattern: String, literals: Vec<String>, description: String) -> Self {
        Self {
            concept: None,
            phrases: None,
            id,
            category: String::new(),
            severity: Severity::Low,
            confidence: 1.0,
            literals,
            literals_begin_words: false,
            literal_words: Vec::new(),
            trigger: None,
            trigger_min: None,
            separators: String::new(),
            pattern,
            phrases_written: Vec::new(),
            spaced: true,
            match_length_max: None,
            validator: OneOrMany::default(),
            exclude: OneOrMany::default(),
            exclude_match: OneOrMany::default(),
            exclude_line: OneOrMany::default(),
            exclude_all: Vec::new(),
            exclude_overlaps: false,
            exclude_before: None,
            exclude_after: None,
            unless_discussed: false,
            milder_if_shown: false,
            near: Vec::new(),
            near_distance: None,
            near_inside_words: false,
            commands: Vec::new(),
            any_command: false,
            countries: Vec::new(),
            roles: None,
            surfaces: None,
            description,
            recommendation: "Evidence for the model; nothing to do about it alone.".to_owned(),
            references: Vec::new(),
            examples: Vec::new(),
            negative_examples: Vec::new(),
            known_misses: Vec::new(),
        }
    }
}

fn yes() -> bool {
    true
}

fn one() -> f64 {
    1.0
}

/// How near context words stand unless a rule says otherwise, in characters.
const NEAR_CHARS: usize = 60;

/// A list that is not empty: one that is would ask for nothing, and look as if it did.
fn some_words<'de, D: serde::Deserializer<'de>>(of: D) -> Result<Vec<String>, D::Error> {
    let words = Vec::<String>::deserialize(of)?;
    match words.is_empty() {
        true => Err(serde::de::Error::custom("near is empty; name context words, or leave it out")),
        false => Ok(words),
    }
}
