//! Reads phrases as they are written in rule files, and chooses their anchors.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use super::super::literals::Bounds;
use super::words::Words;
use super::{BEFORE_MAX, Element, Phrase, Phrases};

/// Most words that a filler may stand for.
pub(super) const FILLER_MAX: usize = 9;

/// Most words before an anchor that is chosen here. Words that hold marks count as several on the way back.
const REACH_MAX: usize = 3;

/// Length from which a literal is rare enough.
const RARE_LEN: usize = 7;

/// The commonest English words of four letters and more, and those of three that are not short for it. They are poor
/// anchors: each place where one stands costs a look.
pub(in crate::rules) const COMMONEST: [&str; 64] = [
    "the", "and", "for", "are", "but", "not", "you", "all", "any", "can", "had", "her", "was", "one", "our",
    "out", "has", "his", "how", "its", "may", "new", "now", "see", "use", "who", "this", "that", "with",
    "have", "from", "they", "will", "what", "when", "your", "which", "their", "there", "about", "would",
    "been", "into", "more", "other", "some", "than", "them", "then", "these", "were", "only", "also", "make",
    "need", "should", "could", "each", "just", "like", "must", "here", "does", "used",
];

/// Length of the longest of them.
const COMMONEST_LEN: usize = {
    let (mut at, mut longest) = (0, 0);
    while at < COMMONEST.len() {
        if COMMONEST[at].len() > longest {
            longest = COMMONEST[at].len();
        }
        at += 1;
    }
    longest
};

/// Shortest literal of an anchor, in bytes.
const LITERAL_MIN: usize = 3;

/// Reads phrases; answers them and the literals of which each match holds one.
///
/// # Errors
/// The phrase that cannot be read, and why.
pub(in crate::rules) fn compile(
    phrases: &[String],
    words: &BTreeMap<String, Vec<String>>,
    is_spaced: bool,
) -> Result<(Phrases, Vec<String>), String> {
    if phrases.is_empty() {
        return Err("name at least one phrase".to_owned());
    }
    let mut reader = Reader { lists: words, is_spaced, read: HashMap::new(), anchors: Vec::new() };
    let mut all = Vec::with_capacity(phrases.len());
    for phrase in phrases {
        all.push(reader.phrase(phrase).map_err(|message| format!("`{phrase}`: {message}"))?);
    }
    let mut anchors = reader.anchors;
    anchors.sort_unstable();
    // A word that may go on comes first, and covers the same word that ends there.
    anchors.dedup_by(|(one, _), (before, _)| one == before);
    let literals = anchors.iter().map(|(literal, _)| literal.clone()).collect();
    Ok((Phrases { phrases: all, anchored: OnceLock::new(), is_spaced, anchors }, literals))
}

/// What reads the phrases of one concept.
struct Reader<'w> {
    lists: &'w BTreeMap<String, Vec<String>>,
    is_spaced: bool,
    /// What was read, by how it is written: the same lists stand in phrase after phrase.
    read: HashMap<&'w str, List<'w>>,
    anchors: Vec<(String, Bounds)>,
}

/// An element that was read.
struct List<'w> {
    alternatives: Vec<&'w str>,
    words: Arc<Words>,
    /// Whether its literals stand among the anchors.
    is_anchor: bool,
}

impl<'w> List<'w> {
    fn new(alternatives: Vec<&'w str>) -> Self {
        Self { words: Arc::new(Words::new(&alternatives)), alternatives, is_anchor: false }
    }

    /// Rarity of the least rare alternative.
    fn rarity(&self) -> usize {
        self.alternatives.iter().map(|alternative| rarity(alternative)).min().unwrap_or(0)
    }

    /// Most words that an alternative counts as on the way back from an anchor.
    fn parts(&self) -> usize {
        let parts = |alternative: &&str| alternative.split(['~', '+', '\'', '-']).count();
        self.alternatives.iter().map(parts).max().unwrap_or(1)
    }
}

impl<'w> Reader<'w> {
    fn phrase(&mut self, phrase: &'w str) -> Result<Phrase, String> {
        let written: Vec<&str> = phrase.split_ascii_whitespace().collect();
        let anchor = match written.iter().position(|e| e.starts_with('^')) {
            Some(anchor) => anchor,
            None if self.is_spaced => self.rarest(&written)?,
            None => 0,
        };
        let mut elements = Vec::with_capacity(written.len());
        let mut filler = 0;
        for (at, element) in written.iter().enumerate() {
            if let Some(count) = element.strip_prefix('_') {
                filler = count.parse().map_err(|_| format!("`{element}` is no number of words"))?;
                if filler == 0 || filler > FILLER_MAX || at == 0 || at + 1 == written.len() {
                    return Err(format!(
                        "`{element}` must stand between two words and be at most {FILLER_MAX}"
                    ));
                }
                continue;
            }
            let (element, is_optional) = bare(element);
            if is_optional && at == anchor {
                return Err("the anchor must not be optional".to_owned());
            }
            let is_spaced = self.is_spaced;
            let list = self.list(element)?;
            let words = list.words.clone();
            if at == anchor && !std::mem::replace(&mut list.is_anchor, true) {
                let anchor_of = |alternative: &&str| {
                    literal_of(alternative).map(|literal| (literal, bounds_of(alternative, is_spaced)))
                };
                let found = list.alternatives.iter().map(anchor_of).collect::<Result<Vec<_>, _>>()?;
                self.anchors.extend(found);
            }
            elements.push(Element { words, filler: std::mem::take(&mut filler), is_optional });
        }
        // Fillers are no elements.
        let anchor = written[..anchor].iter().filter(|element| !element.starts_with('_')).count();
        Ok(Phrase { elements, anchor })
    }

    /// Index of the element that anchors a phrase which marks none: of the first few, the one whose shortest literal is
    /// the longest. Long words are rare, and each place where an anchor stands costs a look.
    fn rarest(&mut self, written: &[&'w str]) -> Result<usize, String> {
        let (mut best, mut best_len, mut before) = (0, 0, 0);
        for (at, element) in written.iter().enumerate() {
            if let Some(count) = element.strip_prefix('_') {
                before += count.parse::<usize>().unwrap_or(BEFORE_MAX);
                continue;
            }
            let (element, is_optional) = bare(element);
            let list = self.list(element)?;
            let rarity = list.rarity();
            if !is_optional && rarity > best_len {
                (best, best_len) = (at, rarity);
            }
            before += list.parts();
            if before > REACH_MAX || best_len >= RARE_LEN {
                break;
            }
        }
        Ok(best)
    }

    /// The alternatives of one element, its word lists put in.
    fn list(&mut self, element: &'w str) -> Result<&mut List<'w>, String> {
        match self.read.entry(element) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(List::new(alternatives(element, self.lists)?))),
        }
    }
}

/// An element without its marks, and whether it is optional.
fn bare(element: &str) -> (&str, bool) {
    let element = element.strip_prefix('^').unwrap_or(element);
    element.strip_suffix('?').map_or((element, false), |element| (element, true))
}

/// How rare the literal of an alternative is: its length, unless it is one of the words that stand in every text. 0 where
/// it is too short to be one.
fn rarity(alternative: &str) -> usize {
    match written_literal(alternative) {
        literal if literal.len() < LITERAL_MIN => 0,
        literal if literal.len() <= COMMONEST_LEN && COMMONEST.contains(&literal) => 1,
        literal => literal.len(),
    }
}

/// The alternatives of one element, its word lists put in.
fn alternatives<'w>(
    element: &'w str,
    words: &'w BTreeMap<String, Vec<String>>,
) -> Result<Vec<&'w str>, String> {
    let mut out = Vec::new();
    for part in element.split('|') {
        match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            Some(name) => {
                let list = words.get(name).ok_or_else(|| format!("there is no word list `{name}`"))?;
                out.extend(list.iter().map(String::as_str));
            }
            None => out.push(part),
        }
    }
    if out.iter().any(|word| word.trim_matches(['*', '~']).is_empty()) {
        return Err(format!("`{element}` holds an empty word"));
    }
    Ok(out)
}

/// The part of an alternative that the gate looks for, as it is written.
fn written_literal(alternative: &str) -> &str {
    alternative.trim_end_matches('*').split('~').next().unwrap_or_default()
}

/// The part of an alternative that the gate looks for.
pub(super) fn literal_of(alternative: &str) -> Result<String, String> {
    let literal = written_literal(alternative);
    if literal.len() < LITERAL_MIN {
        return Err(format!(
            "`{literal}` is shorter than {LITERAL_MIN} bytes and cannot anchor the phrase; put `^` before a longer word"
        ));
    }
    Ok(literal.replace('+', " "))
}

/// Where the literal of an alternative can stand, as [`Words::end_of`] reads it.
fn bounds_of(alternative: &str, is_spaced: bool) -> Bounds {
    // A gap may be empty where no spaces are written.
    let ends_word = if alternative.contains('~') { is_spaced } else { !alternative.ends_with('*') };
    Bounds { starts_word: true, ends_word }
}
