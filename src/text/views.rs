//! All views of a text that are worth scanning.
//!
//! Each level of the nest of encodings has a text; control sequences of terminals are taken out of it, what mail encodes
//! and what stands in groups is decoded, folding makes up to four views of it (folded, with zero-width
//! joints as spaces, and both with look-alikes mapped), and decoding the folded one makes the next level's text.

use super::confusables;
use super::decode::decode;
use super::fold::{Mode, fold};
use super::grouped;
use super::layer::{Layer, Layers};
use super::quoted;
use super::terminal;
use super::view::View;

/// All views but the first hold together at most this many times the text,
const EXPANSION_FACTOR_MAX: usize = 8;
/// and this many bytes more, so that short texts are not cut short.
const EXPANSION_SLACK: usize = 64 * 1024;
/// How many levels of escapes alone lie below each other besides. JSON in JSON doubles its backslashes at each of them, and honest
/// logs nest like that; each level is shorter than the one above it.
const ESCAPED_MAX: u8 = 5;
/// Longest text of which other views are made: offsets in maps are 32 bits wide.
const TEXT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bounds on the views made of one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many encodings may lie inside each other, not counting where there is nothing but escapes to take away.
    pub depth_max: u8,
    /// Most bytes that all views but the first may hold together; 0 makes none. Eight times the text plus 64 KiB is a limit in any
    /// case, and so is as many map segments as that text has bytes, plus 64 Ki.
    pub expansion_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth_max: 3, expansion_max: 512 * 1024 * 1024 }
    }
}

/// The views of one text.
#[derive(Clone, Debug)]
pub struct Views<'t> {
    /// The text as sent, then the others. A view comes after the one it was made from.
    pub views: Vec<View<'t>>,
    /// Whether a limit kept a view from being made, so that the text is not judged in full.
    pub limit_hit: bool,
}

/// Makes the views of `text`: the text as sent, what folding makes of it, and what decoding makes of that.
pub fn views<'t>(text: &'t str, limits: &Limits) -> Views<'t> {
    let mut maker = Maker {
        made: Views { views: vec![View::identity(text)], limit_hit: false },
        bytes_left: limits
            .expansion_max
            .min(text.len().saturating_mul(EXPANSION_FACTOR_MAX) + EXPANSION_SLACK),
        segments_left: text.len().saturating_add(EXPANSION_SLACK),
    };
    if text.len() > TEXT_BYTES_MAX || limits.expansion_max == 0 {
        maker.made.limit_hit = true;
        return maker.made;
    }
    maker.run(limits.depth_max);
    maker.made
}

/// Builds the tables that folding needs, which otherwise happens at the first text that is not ASCII.
pub fn warm_up() {
    confusables::warm_up();
}

struct Maker<'t> {
    made: Views<'t>,
    bytes_left: usize,
    segments_left: usize,
}

impl<'t> Maker<'t> {
    fn run(&mut self, depth_max: u8) {
        let (mut level, mut depth, mut escaped) = (0, 0, 0);
        loop {
            let Some(folded) = self.fold(level) else { return };
            let Some(decoded) = decode(&self.made.views[folded]) else { return };
            if !is_hiding(decoded.found) && escaped < ESCAPED_MAX {
                escaped += 1;
            } else if depth < depth_max {
                depth += 1;
            } else {
                self.made.limit_hit |= is_hiding(decoded.found);
                return;
            }
            let Some(next) = self.add(decoded.view) else { return };
            level = next;
        }
    }

    /// Adds what a view is without control sequences and what mail encodes, and what folding makes of that; answers the view to decode, none if that was too large.
    fn fold(&mut self, level: usize) -> Option<usize> {
        let stripped = terminal::strip(&self.made.views[level]);
        let level = match stripped {
            Some(stripped) => self.add(stripped)?,
            None => level,
        };
        let level = match quoted::decode(&self.made.views[level]) {
            Some(decoded) => self.add(decoded)?,
            None => level,
        };
        let level = match grouped::decode(&self.made.views[level]) {
            Some(decoded) => self.add(decoded)?,
            None => level,
        };
        let text = &self.made.views[level];
        if text.text().is_ascii() {
            return Some(level);
        }
        let folded = fold(text, Mode::default());
        let apart = folded.has_joints.then(|| fold(text, Mode { joints_as_space: true, keeps_case: false }));
        let mapped = self.map_look_alikes(level, folded.view.as_ref(), false);
        let mapped_apart =
            apart.as_ref().and_then(|apart| self.map_look_alikes(level, apart.view.as_ref(), true));
        let to_decode = match folded.view {
            Some(view) => self.add(view)?,
            None => level,
        };
        if let Some(view) = apart.and_then(|apart| apart.view) {
            self.add(view)?;
        }
        // A look-alike in a code hides all of it from the decoders; what it was mapped to does not.
        let is_code = mapped.is_some() && confusables::is_in_code(self.made.views[level].text());
        let mapped = match mapped {
            Some(view) => Some(self.add(view)?),
            None => None,
        };
        if let Some(view) = mapped_apart {
            self.add(view)?;
        }
        if let Some(mapped) = mapped.filter(|_| is_code) {
            return Some(mapped);
        }
        // Invisible characters amid a sequence hide it from the first look.
        match terminal::strip(&self.made.views[to_decode]) {
            Some(stripped) => self.add(stripped),
            None => Some(to_decode),
        }
    }

    fn map_look_alikes(
        &self,
        level: usize,
        folded: Option<&View<'t>>,
        joints_as_space: bool,
    ) -> Option<View<'t>> {
        let text = &self.made.views[level];
        if !confusables::has_look_alike(text.text())
            && !confusables::has_look_alike(folded.unwrap_or(text).text())
        {
            return None;
        }
        let cased = fold(text, Mode { joints_as_space, keeps_case: true }).view;
        // Here too a sequence shows only once the invisible characters amid it are gone.
        let stripped = cased.as_ref().and_then(terminal::strip);
        confusables::map(stripped.as_ref().or(cased.as_ref()).unwrap_or(text))
    }

    fn add(&mut self, view: View<'t>) -> Option<usize> {
        let (bytes, segments) = (view.text().len(), view.segment_count());
        if bytes > self.bytes_left || segments > self.segments_left {
            self.made.limit_hit = true;
            return None;
        }
        self.bytes_left -= bytes;
        self.segments_left -= segments;
        self.made.views.push(view);
        Some(self.made.views.len() - 1)
    }
}

/// Whether what lies below the last level was put there to hide. Backslashes nest deep in honest text too.
fn is_hiding(found: Layers) -> bool {
    found.iter().any(|layer| layer != Layer::Escapes)
}
