//! Phrases of documents, by what they say of what stands beside them. They are data; what is made of them is the scan's.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use regex_automata::meta::Regex;
use serde::Deserialize;

use super::load::short;

/// What a phrase says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhraseKind {
    /// The end of a sentence that has its reader run what comes next.
    Orders,
    /// The end of a sentence that has its reader leave what comes next.
    Forbids,
    /// What follows on what is forbidden as a whole.
    ForbiddenAsAWhole,
    /// What stands between two pieces of code of which the second is forbidden with the first.
    GoesOn,
    /// The end of a sentence that has its reader search for what comes next, or take it away.
    Seeks,
    /// The same, whatever says where.
    SeeksAnywhere,
    /// The end of a line that leads in to a list of what is not to be done.
    LeadsIn,
    /// The same before a block of code.
    LeadsInFence,
    /// All that stands before the command of an item of such a list.
    Runs,
    /// What turns a sentence about something else around.
    NothingElse,
    /// What makes a lead-in speak of a case.
    OfACase,
    /// A comment that calls what is below it bad and says why.
    BadBecause,
    /// A comment behind a command that calls it bad.
    BadMark,
    /// A sentence that names what comes next for what is to be done in its stead.
    Instead,
    /// Words that have what was spoken of before run after all.
    AfterAll,
    /// Words of a line that shows something.
    Shows,
    /// What makes words behind a forbidden command forbid a way of running it.
    NotAsAWhole,
    /// What makes what comes next the means of something.
    Means,
    /// Headings, lead-ins, heads of columns and comments of what is not to be done.
    Bad,
    /// Comments of what is to be done.
    Good,
    /// What makes a sentence speak of what others run.
    Speaks,
    /// Headings of parts whose commands are meant to be run.
    Steps,
    /// Headings and sentences that announce what is looked for.
    Announces,
    /// Orders to carry out a list.
    Ordered,
    /// A sentence that has a guard refuse what comes next.
    Refuses,
    /// What follows on code that is refused, or that destroys.
    TurnedDown,
    /// A line that warns of what it shows.
    Warns,
    /// What a mistake makes of a harmless command.
    Becomes,
    /// A case in which somebody else wants something run.
    AskedByOthers,
    /// What is done in such a case.
    IsDeclinedThen,
    /// What a table is there for that nobody works through.
    OnlyToKnow,
    /// What a sentence is about that says of all code in it that it is refused.
    NamesCommands,
    /// Headings and lead-ins of what is looked for, and of attacks.
    DetectionHead,
    /// A sentence of what others do.
    OthersDo,
    /// What makes such a sentence speak to its reader.
    TurnsToReader,
    /// Heads of tables that say what is thought of each row.
    RiskHead,
    /// A cell that turns its row down.
    TurnedDownCell,
    /// An order about something that stands elsewhere in the document.
    Adopts,
    /// The same in other languages.
    AdoptsForeign,
    /// What makes such a sentence speak of what is not to be done.
    Declines,
    /// Something before the sentence.
    RefersBack,
    /// Something behind the sentence.
    RefersAhead,
    /// What is marked as bad.
    RefersToBad,
    /// A table.
    RefersToTable,
    /// What was just spoken of.
    RefersClose,
    /// An order to do what stands in another document.
    OrdersDocument,
    /// Words that tell why something is bad.
    Explains,
}

/// A pattern as a rule file gives it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[phrase]]`")]
pub(super) struct PhraseDef {
    kind: PhraseKind,
    pattern: String,
    examples: Vec<String>,
    negative_examples: Vec<String>,
}

/// The phrases of all files.
#[derive(Debug, Default)]
pub(super) struct Phrases(BTreeMap<PhraseKind, Phrase>);

#[derive(Debug, Default)]
struct Phrase {
    patterns: Vec<String>,
    compiled: OnceLock<Option<Regex>>,
    examples: Vec<String>,
    negative_examples: Vec<String>,
}

impl Phrases {
    /// Adds a pattern; tells what is wrong with it.
    pub(super) fn add(&mut self, def: PhraseDef) -> Option<String> {
        if def.examples.is_empty() || def.negative_examples.is_empty() {
            return Some("a [[phrase]] needs examples and negative_examples".to_owned());
        }
        let phrase = self.0.entry(def.kind).or_default();
        phrase.patterns.push(def.pattern);
        phrase.examples.extend(def.examples);
        phrase.negative_examples.extend(def.negative_examples);
        None
    }

    /// The pattern of a kind; none where no file gives one, or where a test would have failed.
    pub(super) fn of(&self, kind: PhraseKind) -> Option<&Regex> {
        let phrase = self.0.get(&kind)?;
        phrase.compiled.get_or_init(|| short(&phrase.all()).ok()).as_ref()
    }

    /// What is wrong with the patterns: one that does not compile, an example that is not seen.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (kind, phrase) in &self.0 {
            match short(&phrase.all()) {
                Err(error) => wrong.push(format!("[[phrase]] {kind:?}: {error}")),
                Ok(pattern) => {
                    let missed = phrase.examples.iter().filter(|text| !pattern.is_match(text.as_str()));
                    wrong.extend(missed.map(|text| format!("[[phrase]] {kind:?}: {text:?} is not seen")));
                    let seen = phrase.negative_examples.iter().filter(|text| pattern.is_match(text.as_str()));
                    wrong.extend(seen.map(|text| format!("[[phrase]] {kind:?}: {text:?} is seen")));
                }
            }
        }
        wrong
    }
}

impl Phrase {
    fn all(&self) -> String {
        let parts: Vec<String> = self.patterns.iter().map(|pattern| format!("(?:{pattern})")).collect();
        parts.join("|")
    }
}
