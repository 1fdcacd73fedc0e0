//! Phrases as data: word lists and gaps, and the matcher that reads them.
//!
//! A phrase is words with spaces between them: `ignor* _3 previous|prior {order}`. `a|b` are alternatives, `{name}` puts
//! in the word list of that name, a `*` ends a word in any letters, a `?` makes a word optional, `~` is a gap inside an
//! alternative, `+` exactly one space there, and `_3` stands for up to three words of any kind. Gaps take line breaks and
//! marks as well as spaces. In phrases of scripts that write no spaces a gap may be empty and `_3` is up to three
//! letters.
//!
//! The gate looks for the first word of a phrase; `^` before another word makes that one the anchor. From there the
//! matcher walks the text by hand: a regex of such alternatives and fillers is a hundred times slower to be sure of.
//!
//! Work at one candidate is bounded: by the words of the phrase, the size of its fillers and [`BYTES_MAX`].

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::literals::Bounds;

/// Most words that a filler may stand for.
const FILLER_MAX: usize = 9;
/// Longest text that one phrase may take, in bytes.
pub(super) const BYTES_MAX: usize = 200;
/// Most words before an anchor at which a phrase may begin.
const BEFORE_MAX: usize = 7;
/// Most words before an anchor that is chosen here. Words that hold marks count as several on the way back.
const REACH_MAX: usize = 3;
/// Length from which a literal is rare enough.
const RARE_LEN: usize = 7;
/// The commonest English words of four letters and more, and those of three that are not short for it. They are poor
/// anchors: each place where one stands costs a look.
pub(super) const COMMONEST: [&str; 64] = [
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
/// Longest gap between two words, in bytes.
const GAP_MAX: usize = 6;

/// The phrases of one concept.
#[derive(Debug)]
pub(super) struct Phrases {
    phrases: Vec<Phrase>,
    /// Which phrases each literal anchors, made when a text first holds one.
    anchored: OnceLock<Anchored>,
    is_spaced: bool,
    /// What the gate looks for, and whether it is a whole word.
    anchors: Vec<(String, Bounds)>,
}

#[derive(Debug)]
struct Phrase {
    elements: Vec<Element>,
    /// Index of the element whose words the gate looks for.
    anchor: usize,
}

#[derive(Debug)]
struct Element {
    /// Shared by all elements that are written alike.
    words: Arc<Words>,
    /// Most words of any kind before it.
    filler: usize,
    is_optional: bool,
}

/// The alternatives of an element.
#[derive(Debug)]
struct Words {
    /// As they are written, with `|` between them.
    written: Box<str>,
    /// Pairs of bytes with which an alternative begins, one bit each: nearly every look ends here. Holds a few others too.
    pairs: [u64; 4],
    /// Bytes with which one begins whatever follows, one bit each.
    alone: [u64; 4],
    /// Made when a text first comes this far: most never do, and trees are most of what reading phrases takes.
    tree: OnceLock<Tree>,
}

/// Alternatives as a tree of bytes, level by level: the edge with index `e` leads to the node `e + 1`, so that the edges
/// of a node and the nodes they lead to lie side by side.
#[derive(Debug)]
struct Tree {
    nodes: Box<[Node]>,
    /// Byte of each edge; those of one node are sorted. [`GAP`] stands for a gap.
    edges: Box<[u8]>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// Index of its first edge.
    first: u32,
    /// Number of its edges.
    count: u16,
    /// A word may end here.
    ends: bool,
    /// A word may end here in any further letters.
    goes_on: bool,
}

/// The edge of a gap inside an alternative. No text holds this byte in a word.
const GAP: u8 = 0;

/// The edge that a byte of an alternative stands for.
fn edge_of(byte: u8) -> u8 {
    match byte {
        b'~' => GAP,
        b'+' => b' ',
        _ => byte.to_ascii_lowercase(),
    }
}

/// Which phrases may match around which literal.
#[derive(Debug)]
struct Anchored {
    /// In lower case, sorted, each with the bounds of its lists in `of_literals`.
    literals: Box<[(Box<str>, u32, u32)]>,
    /// By their hash, and the next free slot: one more than the index in `literals`, 0 where there is none.
    slots: Box<[u32]>,
    of_literals: Box<[u32]>,
    lists: Box<[AnchorList]>,
}

/// The phrases that have the same words for an anchor.
#[derive(Debug)]
struct AnchorList {
    words: Arc<Words>,
    /// Indices of those that begin with the anchor.
    begun: Vec<u32>,
    /// Indices of the others, each with the index in `firsts` of what it begins with.
    amid: Vec<(u32, u8)>,
    /// What phrases begin with that do not begin with the anchor, as far as that must be there.
    firsts: Vec<Arc<Words>>,
}

/// Most beginnings of phrases around one anchor that are looked for once for all of them.
const FIRSTS_MAX: usize = 32;
/// Stands for a beginning that is looked for phrase by phrase.
const NO_FIRST: u8 = u8::MAX;

impl Anchored {
    fn new(phrases: &[Phrase]) -> Self {
        let mut lists: Vec<AnchorList> = Vec::new();
        let mut known: HashMap<*const Words, usize> = HashMap::new();
        for (index, phrase) in (0..).zip(phrases) {
            let words = &phrase.elements[phrase.anchor].words;
            let nth = *known.entry(Arc::as_ptr(words)).or_insert_with(|| {
                lists.push(AnchorList::new(words.clone()));
                lists.len() - 1
            });
            lists[nth].add(index, phrase);
        }
        let mut pairs: Vec<(Box<str>, u32)> = Vec::new();
        for (nth, list) in (0..).zip(&lists) {
            let literals = list.words.alternatives().filter_map(|alternative| literal_of(alternative).ok());
            pairs.extend(literals.map(|literal| (literal.to_ascii_lowercase().into(), nth)));
        }
        pairs.sort_unstable();
        pairs.dedup();
        let (mut literals, mut of_literals) = (Vec::new(), Vec::with_capacity(pairs.len()));
        for alike in pairs.chunk_by(|(one, _), (other, _)| one == other) {
            let from = of_literals.len() as u32;
            of_literals.extend(alike.iter().map(|(_, nth)| *nth));
            literals.push((alike[0].0.clone(), from, of_literals.len() as u32));
        }
        let mut slots = vec![0; (2 * literals.len()).next_power_of_two().max(2)];
        for (nth, (literal, ..)) in (1..).zip(&literals) {
            let mut slot = Self::slot_of(literal.as_bytes(), slots.len());
            while slots[slot] != 0 {
                slot = (slot + 1) % slots.len();
            }
            slots[slot] = nth;
        }
        Self {
            literals: literals.into(),
            slots: slots.into(),
            of_literals: of_literals.into(),
            lists: lists.into(),
        }
    }

    /// The first slot of a literal in any case, by the hash of Fowler, Noll and Vo.
    fn slot_of(literal: &[u8], slots: usize) -> usize {
        let mix = |hash: u64, byte: &u8| {
            (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01B3)
        };
        (literal.iter().fold(0xCBF2_9CE4_8422_2325, mix) >> 32) as usize % slots
    }

    /// The lists that hold a literal, as it stands in a text.
    fn lists_of(&self, literal: &[u8]) -> impl Iterator<Item = &AnchorList> {
        let mut slot = Self::slot_of(literal, self.slots.len());
        let (mut from, mut to) = (0, 0);
        // Half of the slots are free, so this ends.
        while let Some(nth) = self.slots[slot].checked_sub(1) {
            let (one, first, end) = &self.literals[nth as usize];
            if one.as_bytes().eq_ignore_ascii_case(literal) {
                (from, to) = (*first, *end);
                break;
            }
            slot = (slot + 1) % self.slots.len();
        }
        self.of_literals[from as usize..to as usize].iter().map(|nth| &self.lists[*nth as usize])
    }
}

impl AnchorList {
    fn new(words: Arc<Words>) -> Self {
        Self { words, begun: Vec::new(), amid: Vec::new(), firsts: Vec::new() }
    }

    fn add(&mut self, index: u32, phrase: &Phrase) {
        if phrase.anchor == 0 {
            self.begun.push(index);
            return;
        }
        let first = &phrase.elements[0];
        let known = self.firsts.iter().position(|words| Arc::ptr_eq(words, &first.words));
        let nth = match known {
            _ if first.is_optional => NO_FIRST,
            Some(nth) => nth as u8,
            None if self.firsts.len() < FIRSTS_MAX => {
                self.firsts.push(first.words.clone());
                (self.firsts.len() - 1) as u8
            }
            None => NO_FIRST,
        };
        self.amid.push((index, nth));
    }
}

/// The beginnings of the words before an anchor, from the nearest on, found as they are asked for.
struct Starts<'t> {
    text: &'t [u8],
    is_spaced: bool,
    /// The anchor, and those that are known.
    known: [usize; BEFORE_MAX + 1],
    count: usize,
    is_over: bool,
}

impl<'t> Starts<'t> {
    fn new(text: &'t [u8], anchor: usize, is_spaced: bool) -> Self {
        Self { text, is_spaced, known: [anchor; BEFORE_MAX + 1], count: 0, is_over: false }
    }

    /// Where the word `nth` before the anchor begins.
    fn nth(&mut self, nth: usize) -> Option<usize> {
        while self.count <= nth {
            let next = (!self.is_over).then(|| before(self.text, self.known[self.count], self.is_spaced));
            let Some(start) = next.flatten() else {
                self.is_over = true;
                return None;
            };
            self.count += 1;
            self.known[self.count] = start;
        }
        Some(self.known[nth + 1])
    }

    /// Those of which `is_held` holds, as bits.
    fn holding(&mut self, is_held: impl Fn(usize) -> bool) -> u8 {
        let mut bits = 0;
        for nth in 0..BEFORE_MAX {
            let Some(start) = self.nth(nth) else { break };
            bits |= u8::from(is_held(start)) << nth;
        }
        bits
    }
}

/// Reads phrases; answers them and the literals of which each match holds one.
///
/// # Errors
/// The phrase that cannot be read, and why.
pub(super) fn compile(
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
fn literal_of(alternative: &str) -> Result<String, String> {
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

/// The bit of a pair of bytes.
fn pair_of(first: u8, second: u8) -> u8 {
    first.wrapping_mul(29) ^ second.wrapping_mul(101)
}

impl Words {
    fn new(alternatives: &[&str]) -> Self {
        let (mut pairs, mut alone) = ([0; 4], [0; 4]);
        for alternative in alternatives {
            let mut bytes = alternative.bytes();
            let Some(first) = bytes.next().map(edge_of) else { continue };
            let (bits, bit) = match bytes.next() {
                // What follows a word of one byte is none of it.
                None | Some(b'*' | b'~') => (&mut alone, first),
                Some(second) => (&mut pairs, pair_of(first, edge_of(second))),
            };
            bits[usize::from(bit >> 6)] |= 1 << (bit & 63);
        }
        Self { written: alternatives.join("|").into(), pairs, alone, tree: OnceLock::new() }
    }

    /// The alternatives, as they are written.
    fn alternatives(&self) -> impl Iterator<Item = &str> {
        self.written.split('|')
    }

    /// Whether an alternative may begin with two bytes, in lower case.
    fn may_begin(&self, first: u8, second: u8) -> bool {
        let holds = |bits: &[u64; 4], bit: u8| bits[usize::from(bit >> 6)] >> (bit & 63) & 1 != 0;
        holds(&self.pairs, pair_of(first, second)) || holds(&self.alone, first)
    }

    /// Where the longest alternative that begins at `at` ends.
    fn end_of(&self, text: &[u8], at: usize, is_spaced: bool) -> Option<usize> {
        let first = *text.get(at)?;
        let second = text.get(at + 1).copied().unwrap_or(0);
        if !self.may_begin(first.to_ascii_lowercase(), second.to_ascii_lowercase()) {
            return None;
        }
        if first.is_ascii_alphanumeric() && at > 0 && text[at - 1].is_ascii_alphanumeric() {
            return None;
        }
        self.tree.get_or_init(|| Tree::new(self.alternatives())).end_of(text, at, is_spaced)
    }
}

impl Tree {
    fn new<'w>(alternatives: impl Iterator<Item = &'w str>) -> Self {
        // All words in one piece, and where each stands.
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        for alternative in alternatives {
            let (word, goes_on) = match alternative.strip_suffix('*') {
                Some(word) => (word, true),
                None => (alternative, false),
            };
            let start = bytes.len();
            bytes.extend(word.bytes().map(edge_of));
            places.push((start..bytes.len(), goes_on));
        }
        let mut written: Vec<(&[u8], bool)> =
            places.into_iter().map(|(at, goes_on)| (&bytes[at], goes_on)).collect();
        written.sort_unstable();
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        // For each node that is to be made: the words that go through it, and how far they are read.
        let mut open = VecDeque::from([(0..written.len(), 0)]);
        while let Some((words, depth)) = open.pop_front() {
            let whole = written[words.clone()].iter().take_while(|(word, _)| word.len() == depth).count();
            let (ended, mut rest) = (words.start..words.start + whole, words.start + whole..words.end);
            let from = edges.len();
            while let Some(byte) = written[rest.clone()].first().map(|(word, _)| word[depth]) {
                let alike = written[rest.clone()].iter().take_while(|(word, _)| word[depth] == byte).count();
                edges.push(byte);
                open.push_back((rest.start..rest.start + alike, depth + 1));
                rest.start += alike;
            }
            nodes.push(Node {
                first: from as u32,
                count: (edges.len() - from) as u16,
                ends: !ended.is_empty(),
                goes_on: written[ended].iter().any(|(_, goes_on)| *goes_on),
            });
        }
        Self { nodes: nodes.into(), edges: edges.into() }
    }

    /// The node that follows on a byte.
    fn next(&self, node: &Node, byte: u8) -> Option<&Node> {
        let (from, to) = (node.first as usize, node.first as usize + usize::from(node.count));
        let edges = &self.edges[from..to];
        let at = match edges.len() {
            // So few are through sooner than they are halved.
            ..=8 => edges.iter().position(|edge| *edge >= byte)?,
            _ => edges.partition_point(|edge| *edge < byte),
        };
        (*edges.get(at)? == byte).then(|| &self.nodes[from + at + 1])
    }

    /// Where the longest alternative that begins at `at` ends.
    fn end_of(&self, text: &[u8], at: usize, is_spaced: bool) -> Option<usize> {
        let (mut node, mut position, mut found) = (&self.nodes[0], at, None);
        loop {
            if node.ends
                && let Some(end) = node.end(text, position)
            {
                found = Some(end);
            }
            let byte = text.get(position).map(u8::to_ascii_lowercase);
            if let Some(next) = byte.and_then(|byte| self.next(node, byte)) {
                node = next;
                position += 1;
            } else if let Some(next) = self.next(node, GAP) {
                let Some(after) = skip_gap(text, position, is_spaced) else { return found };
                node = next;
                position = after;
            } else {
                return found;
            }
        }
    }
}

impl Node {
    /// Where a word that ends at this node ends, if it may end at `at`.
    fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        if self.goes_on {
            let is_letter = |byte: &&u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
            return Some(at + text[at..].iter().take(24).take_while(is_letter).count());
        }
        let joins = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphanumeric);
        (!(at > 0 && joins(at - 1) && joins(at))).then_some(at)
    }
}

fn is_gap(byte: u8) -> bool {
    GAPS[usize::from(byte)]
}

const GAPS: [bool; 256] = {
    let mut table = [false; 256];
    let gaps = b" \t\n\r\x0c*_~`\"'>#|,:()[]/-";
    let mut at = 0;
    while at < gaps.len() {
        table[gaps[at] as usize] = true;
        at += 1;
    }
    table
};

/// Where the gap at `at` ends; none if there must be one and is none, or it is too long.
fn skip_gap(text: &[u8], at: usize, is_spaced: bool) -> Option<usize> {
    let len = text[at.min(text.len())..].iter().take(GAP_MAX + 1).take_while(|byte| is_gap(**byte)).count();
    (len <= GAP_MAX && (len > 0 || !is_spaced)).then_some(at + len)
}

/// Where the word of any kind at `at` ends; none where a sentence ends.
fn skip_word(text: &[u8], at: usize) -> Option<usize> {
    let is_inside = |byte: &&u8| !byte.is_ascii_whitespace() && !matches!(byte, b'.' | b'!' | b'?' | b';');
    let len = text[at..].iter().take(40).take_while(is_inside).count();
    (len > 0).then_some(at + len)
}

impl Phrases {
    /// Every word, as it is written in the phrases, some more than once.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let elements = self.phrases.iter().flat_map(|phrase| &phrase.elements);
        elements.flat_map(|element| element.words.alternatives())
    }

    /// The literals of which each match holds one, and what may stand around them.
    pub(super) fn anchors(&self) -> impl Iterator<Item = (&String, Bounds)> {
        self.anchors.iter().map(|(literal, bounds)| (literal, *bounds))
    }

    /// The match around the literal at `literal`, if there is one. The first phrase that fits is it.
    pub(super) fn find(&self, text: &[u8], literal: &Range<usize>) -> Option<Range<usize>> {
        let anchored = self.anchored.get_or_init(|| Anchored::new(&self.phrases));
        let mut starts = Starts::new(text, literal.start, self.is_spaced);
        anchored.lists_of(&text[literal.clone()]).find_map(|list| {
            let end = list.words.end_of(text, literal.start, self.is_spaced)?;
            let near = &text[..text.len().min(literal.start + BYTES_MAX)];
            let at_anchor =
                |index: &u32| self.follow(&self.phrases[*index as usize].elements[1..], near, end, false);
            if let Some(end) = list.begun.iter().find_map(at_anchor) {
                return Some(literal.start..end);
            }
            // Bit `n`: whether what the phrases begin with stands at the start `n`.
            let mut seen = [None; FIRSTS_MAX];
            list.amid.iter().find_map(|(index, first)| {
                let phrase = &self.phrases[*index as usize];
                let may_begin = match list.firsts.get(usize::from(*first)) {
                    Some(words) => *seen[usize::from(*first)].get_or_insert_with(|| {
                        starts.holding(|at| words.end_of(text, at, self.is_spaced).is_some())
                    }),
                    None => u8::MAX,
                };
                if may_begin == 0 {
                    return None;
                }
                (0..BEFORE_MAX).filter(|nth| may_begin >> nth & 1 != 0).find_map(|nth| {
                    let start = starts.nth(nth)?;
                    let end = self.end_of(phrase, text, start).filter(|end| *end >= literal.end)?;
                    Some(start..end)
                })
            })
        })
    }

    fn end_of(&self, phrase: &Phrase, text: &[u8], start: usize) -> Option<usize> {
        let text = &text[..text.len().min(start + BYTES_MAX)];
        let (first, rest) = phrase.elements.split_first()?;
        match first.words.end_of(text, start, self.is_spaced) {
            Some(end) => self.follow(rest, text, end, false),
            // The words after an optional first one stand where it would.
            None if first.is_optional => self.follow(rest, text, start, true),
            None => None,
        }
    }

    /// Where the elements end when the first of them follows at `at`.
    fn follow(&self, elements: &[Element], text: &[u8], at: usize, is_start: bool) -> Option<usize> {
        let Some((element, rest)) = elements.split_first() else { return Some(at) };
        let mut position = if is_start { Some(at) } else { skip_gap(text, at, self.is_spaced) };
        let words = if self.is_spaced { element.filler } else { element.filler * 3 };
        for _ in 0..=words {
            let Some(here) = position else { break };
            if let Some(end) = element.words.end_of(text, here, self.is_spaced)
                && let Some(end) = self.follow(rest, text, end, false)
            {
                return Some(end);
            }
            position = if self.is_spaced {
                skip_word(text, here).and_then(|end| skip_gap(text, end, true))
            } else {
                text.get(here).filter(|byte| !matches!(byte, b'\n' | b'.' | b'!' | b'?')).map(|_| here + 1)
            };
        }
        if element.is_optional { self.follow(rest, text, at, is_start) } else { None }
    }
}

/// The start of the word before the one at `at`.
fn before(text: &[u8], at: usize, is_spaced: bool) -> Option<usize> {
    if !is_spaced {
        return at.checked_sub(3);
    }
    let gap = text[..at].iter().rev().take_while(|byte| is_gap(**byte)).count();
    let end = at - gap;
    let word = text[..end].iter().rev().take(40).take_while(|byte| !is_gap(**byte)).count();
    (gap > 0 && word > 0).then_some(end - word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(phrases: &[&str], is_spaced: bool) -> Result<(Phrases, Vec<String>), String> {
        let words = [("order", vec!["rules", "instruction*"])]
            .map(|(name, list)| (name.to_owned(), list.into_iter().map(str::to_owned).collect()))
            .into();
        compile(&phrases.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>(), &words, is_spaced)
    }

    fn found<'t>(phrase: &str, is_spaced: bool, text: &'t str) -> Option<&'t str> {
        let (phrases, literals) = of(&[phrase], is_spaced).expect("a valid phrase");
        let lower = text.to_ascii_lowercase();
        let places =
            literals.iter().flat_map(|l| lower.match_indices(l.as_str()).map(|(at, l)| at..at + l.len()));
        places.filter_map(|at| phrases.find(text.as_bytes(), &at)).map(|range| &text[range]).next()
    }

    #[test]
    fn phrases_match_what_they_say() {
        for (phrase, text, wanted) in [
            ("ignor* _3 {order}", "Ignore all of my\nRULES.", Some("Ignore all of my\nRULES")),
            ("ignor* _3 {order}", "ignoring instructions", Some("ignoring instructions")),
            ("ignor* _3 {order}", "ignore it. These rules", None),
            ("ignor* _3 {order}", "ignore one two three four rules", None),
            ("ignor* _3 {order}", "ignore rulesets", None),
            ("ignor* _3 {order}", "I forgot to ignore", None),
            ("now? you ^must obey", "you must obey", Some("you must obey")),
            ("now? you ^must obey", "now, you must *obey*", Some("you must *obey")),
            ("do~not ^tell", "please do  not tell", Some("do  not tell")),
            ("print the? key|keys", "print keys", Some("print keys")),
            ("print the? key|keys", "print the keyset", None),
            ("you+are+now free", "You are now free", Some("You are now free")),
            ("you+are+now free", "You are\nnow free", None),
            ("http*|see:", "go see: it", Some("see:")),
            ("system~prompt*", "the system-prompts", Some("system-prompts")),
        ] {
            assert_eq!(found(phrase, true, text), wanted, "{phrase}: {text}");
        }
        assert_eq!(found("忽略 _6 指令", false, "请忽略之前的所有指令"), Some("忽略之前的所有指令"));
        assert_eq!(found("忽略 _2 指令", false, "忽略之前的所有指令"), None);
    }

    proptest! {
        /// The first look at two bytes refuses nothing that the tree of the alternatives knows.
        #[test]
        fn words_are_refused_by_their_beginning_only_where_none_stands(
            alternatives in prop::collection::vec("[a-cé][a-c+~é]{0,3}[a-cé]\\*?|[a-c]\\*?", 1..30),
            text in "([a-dA-C]{1,4}|[ é*]){0,9}",
        ) {
            let alternatives: Vec<&str> = alternatives.iter().map(String::as_str).collect();
            let words = Words::new(&alternatives);
            let tree = Tree::new(words.alternatives());
            let bytes = text.as_bytes();
            for at in 0..bytes.len() {
                let is_amid = bytes[at].is_ascii_alphanumeric() && at > 0 && bytes[at - 1].is_ascii_alphanumeric();
                for is_spaced in [true, false] {
                    let wanted = if is_amid { None } else { tree.end_of(bytes, at, is_spaced) };
                    prop_assert_eq!(words.end_of(bytes, at, is_spaced), wanted, "{:?} {:?} {}", alternatives, text, at);
                }
            }
        }

        /// Literals are found by their hash as by a look at all of them.
        #[test]
        fn every_anchor_finds_its_lists(words in prop::collection::btree_set("[a-e]{3,6}", 1..60), probe in "[a-eA-E]{3,6}") {
            let phrases: Vec<String> = words.iter().map(|word| format!("{word} xyz")).collect();
            let (phrases, _) = compile(&phrases, &BTreeMap::new(), true).expect("valid phrases");
            let anchored = Anchored::new(&phrases.phrases);
            for word in words.iter().flat_map(|word| [word.clone(), word.to_ascii_uppercase()]).chain([probe]) {
                let wanted = usize::from(words.contains(&word.to_ascii_lowercase()));
                prop_assert_eq!(anchored.lists_of(word.as_bytes()).count(), wanted, "{}", word);
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for (phrase, wanted) in [
            ("_2 words", "between two words"),
            ("ignore _x rules", "no number"),
            ("ignore _2", "between two words"),
            ("do it", "put `^`"),
            ("ignore {none}", "no word list `none`"),
            ("ignore a||b", "empty word"),
            ("ignore? it", "must not be optional"),
        ] {
            let error = of(&[phrase], true).expect_err(phrase);
            assert!(error.contains(wanted), "{phrase}: {error}");
        }
        assert!(of(&[], true).is_err());
    }
}
