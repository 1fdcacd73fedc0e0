//! Folding: one spelling for all the ways Unicode has to write the same thing.
//!
//! Text is taken in clusters, a base and the marks on it, because normalising must see them together. A cluster is
//! decomposed with compatibility forms, its symbols and digits become ASCII, non-ASCII letters become lower case, Latin
//! letters lose their diacritics, and the rest is composed again, so that scripts which need their marks keep them.
//! Characters that show nothing are removed; text hidden in such characters is written out between spaces.
//!
//! Invariants: folding folded text changes nothing; ASCII text is folded text; the case of ASCII letters is kept,
//! because secrets depend on it.
//!
//! Not done here: letters of other scripts that look Latin, which would break genuine text (see `confusables`).

use super::chars::{ascii_symbol, invisible, is_diacritic, is_joining, is_latin, is_plain};
use super::hidden::{self, Hidden};
use super::layer::{Layer, Layers};
use super::rewrite::Rewriter;
use super::view::View;
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_canonical, decompose_compatible};

/// What a pass of folding does beyond the usual.
#[derive(Clone, Copy, Default)]
pub(super) struct Mode {
    /// Zero-width characters between letters or digits become a space.
    pub joints_as_space: bool,
    /// Non-ASCII letters keep their case.
    pub keeps_case: bool,
}

/// What folding made of a text.
pub(super) struct Folded<'t> {
    /// None if nothing changed.
    pub view: Option<View<'t>>,
    /// Whether zero-width characters stood between letters or digits.
    pub has_joints: bool,
}

/// Folds `parent`.
pub(super) fn fold<'t>(parent: &View<'t>, mode: Mode) -> Folded<'t> {
    if parent.text().is_ascii() {
        return Folded { view: None, has_joints: false };
    }
    let mut folder = Folder::new(parent.text(), mode);
    folder.run();
    Folded { has_joints: folder.has_joints, view: folder.rewriter.finish(parent) }
}

/// `disguise` folded as usual; none if that changes nothing.
pub fn folded<'t>(disguise: &View<'t>) -> Option<View<'t>> {
    fold(disguise, Mode::default()).view
}

struct Folder<'p> {
    text: &'p str,
    mode: Mode,
    rewriter: Rewriter<'p>,
    cluster: Cluster,
    /// Invisible characters after the cluster: part of it if a mark follows, else removed.
    pending: Option<(Range<usize>, Layers)>,
    has_joints: bool,
}

/// A base and its marks, decomposed.
#[derive(Default)]
struct Cluster {
    range: Range<usize>,
    decomposed: String,
    layers: Layers,
    /// Whether it is known that folding leaves the text as it is; `decomposed` is not filled then.
    is_plain: bool,
}

impl<'p> Folder<'p> {
    fn new(text: &'p str, mode: Mode) -> Self {
        Self {
            text,
            mode,
            rewriter: Rewriter::new(text),
            cluster: Cluster::default(),
            pending: None,
            has_joints: false,
        }
    }

    fn run(&mut self) {
        let mut position = 0;
        let mut decomposed = String::new();
        while let Some(c) = self.text[position..].chars().next() {
            let range = position..position + c.len_utf8();
            position = range.end;
            if c.is_ascii() {
                let len =
                    self.text.as_bytes()[range.start..].iter().take_while(|byte| byte.is_ascii()).count();
                position = range.start + len;
                // Only the last of a run can bear a mark.
                self.begin(range.start..range.start + 1, c);
                self.begin(position - 1..position, char::from(self.text.as_bytes()[position - 1]));
            } else if let Some(layer) = invisible(c) {
                position = self.take_invisible(range, layer);
            } else if is_plain(c) {
                self.begin(range, c);
            } else {
                decomposed.clear();
                let layers = decompose(c, self.mode, &mut decomposed);
                self.add(range, &decomposed, layers);
            }
        }
        self.settle(None);
    }

    /// A character that is no mark and that folding leaves alone.
    fn begin(&mut self, range: Range<usize>, c: char) {
        self.settle(Some(c));
        self.cluster.range = range;
        self.cluster.is_plain = true;
        self.cluster.layers = Layers::NONE;
    }

    fn add(&mut self, range: Range<usize>, decomposed: &str, layers: Layers) {
        let first = decomposed.chars().next();
        if first.is_some_and(is_joining) && !self.cluster.range.is_empty() {
            if self.cluster.is_plain {
                self.cluster.is_plain = false;
                self.cluster.decomposed.clear();
                self.cluster.decomposed.extend(self.text[self.cluster.range.clone()].nfd());
            }
            if let Some((_, layers)) = self.pending.take() {
                self.cluster.layers = self.cluster.layers.union(layers);
            }
            self.cluster.range.end = range.end;
            self.cluster.layers = self.cluster.layers.union(layers);
            self.cluster.decomposed.push_str(decomposed);
            return;
        }
        self.settle(first);
        self.cluster.range = range;
        self.cluster.is_plain = false;
        self.cluster.layers = layers;
        self.cluster.decomposed.clear();
        self.cluster.decomposed.push_str(decomposed);
    }

    /// Deals with an invisible character, or with the whole run if it spells something; returns where that ends.
    fn take_invisible(&mut self, range: Range<usize>, layer: Layer) -> usize {
        let rest = &self.text[range.start..];
        let hidden = hidden::tags(rest).map(|hidden| (hidden, Layer::Tags));
        let hidden = hidden.or_else(|| Some((hidden::selectors(rest)?, Layer::VariationSelectors)));
        let (end, layer) = match hidden {
            Some((hidden, layer)) if !hidden.chars.is_empty() => {
                let end = range.start + hidden.end;
                self.write_out(range.start, &hidden, layer);
                return end;
            }
            Some((hidden, layer)) => (range.start + hidden.end, layer),
            None => (range.end, layer),
        };
        match &mut self.pending {
            Some((pending, layers)) => {
                pending.end = end;
                layers.insert(layer);
            }
            None => self.pending = Some((range.start..end, Layers::of(layer))),
        }
        end
    }

    /// Writes hidden text between spaces, so that it joins no visible word.
    fn write_out(&mut self, start: usize, hidden: &Hidden, layer: Layer) {
        self.settle(None);
        let spelled: String = hidden.chars.iter().map(|(c, _)| c).collect();
        let range = start..start + hidden.end;
        if !spelled.is_ascii() {
            // What was hidden may itself want folding; it is short of use to map its parts then.
            let hidden_view = View::identity(&spelled);
            let folded = fold(&hidden_view, self.mode).view;
            let folded = folded.as_ref().map_or(spelled.as_str(), View::text);
            self.rewriter.replace(range, &format!(" {folded} "), layer.into());
            return;
        }
        let count = hidden.chars.len();
        let mut at = start;
        let parts = hidden.chars.iter().enumerate().map(|(index, (c, len))| {
            let source = at..at + len;
            at = source.end;
            (c.len_utf8() + usize::from(index == 0) + usize::from(index + 1 == count), source)
        });
        self.rewriter.replace_parts(range, &format!(" {spelled} "), parts, layer.into());
    }

    /// Ends the cluster and removes what is pending; `next` is the character that follows.
    fn settle(&mut self, next: Option<char>) {
        let cluster = std::mem::take(&mut self.cluster.range);
        if !self.cluster.is_plain && !cluster.is_empty() {
            let (composed, has_lost_marks) = compose(&self.cluster.decomposed);
            if composed != self.text[cluster.clone()] {
                let mut layers = self.cluster.layers;
                if has_lost_marks {
                    layers.insert(Layer::CombiningMarks);
                }
                if layers.is_empty() {
                    layers.insert(Layer::Nfkc);
                }
                self.rewriter.replace(cluster, &composed, layers);
            }
        }
        let Some((pending, layers)) = self.pending.take() else { return };
        let is_joint = layers.contains(Layer::Invisible)
            && next.is_some_and(char::is_alphanumeric)
            && self.rewriter.last_char(pending.start).is_some_and(char::is_alphanumeric);
        self.has_joints |= is_joint;
        if is_joint && self.mode.joints_as_space {
            self.rewriter.replace(pending, " ", layers);
        } else {
            self.rewriter.remove(pending, layers);
        }
    }
}

/// Writes what `c` decomposes to, with symbols and digits as ASCII and letters in lower case.
fn decompose(c: char, mode: Mode, out: &mut String) -> Layers {
    let mut layers = Layers::NONE;
    if let Some((symbol, layer)) = ascii_symbol(c) {
        out.push(symbol);
        return layer.into();
    }
    // These would grow to eleven times their bytes, and no word is hidden in a formula of one character.
    if matches!(c, '\u{FDFA}' | '\u{FDFB}') {
        out.push(c);
        return layers;
    }
    let mut canonical = 0_usize;
    let mut compatible = 0_usize;
    let mut last = '\0';
    decompose_canonical(c, |d| {
        canonical += 1;
        last = d;
    });
    decompose_compatible(c, |d| {
        compatible += 1;
        if compatible == canonical && d != last {
            layers.insert(Layer::Nfkc);
        }
        let d = match ascii_symbol(d) {
            Some((symbol, layer)) => {
                layers.insert(layer);
                symbol
            }
            None => d,
        };
        if d.is_ascii() || mode.keeps_case {
            out.push(d);
            return;
        }
        let before = out.len();
        out.extend(d.to_lowercase());
        if !out[before..].starts_with(d) {
            layers.insert(Layer::Case);
        }
    });
    if compatible != canonical {
        layers.insert(Layer::Nfkc);
    }
    layers
}

/// Composes a decomposed cluster: without diacritics on Latin letters, without those that do not compose elsewhere.
/// Also tells whether any were lost.
fn compose(decomposed: &str) -> (String, bool) {
    let mut base = None;
    let mut has_lost_marks = false;
    let mut kept = String::with_capacity(decomposed.len());
    for c in decomposed.chars() {
        if is_diacritic(c) && base.is_none_or(is_latin) {
            has_lost_marks = true;
            continue;
        }
        if !is_joining(c) {
            base = Some(c);
        }
        kept.push(c);
    }
    loop {
        let composed: String = kept.nfc().collect();
        if !composed.contains(is_diacritic) {
            return (composed, has_lost_marks);
        }
        has_lost_marks = true;
        kept = composed.chars().filter(|&c| !is_diacritic(c)).collect();
    }
}
