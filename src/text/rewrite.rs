//! Writes a view's text and its map together, so that they cannot disagree.
//!
//! The writer walks the parent's text from left to right: what is not replaced or removed is copied.

use super::layer::Layers;
use super::view::{Segment, Units, View};
use std::ops::Range;

/// A view under construction.
pub(super) struct Rewriter<'p> {
    parent: &'p str,
    text: String,
    segments: Vec<Segment>,
    /// Bytes of view that the segments cover; runs ahead of `text` while parts are being added.
    view_len: usize,
    /// How far the parent's text is copied, replaced or removed.
    taken: usize,
    is_changed: bool,
}

impl<'p> Rewriter<'p> {
    pub(super) fn new(parent: &'p str) -> Self {
        Self { parent, text: String::new(), segments: Vec::new(), view_len: 0, taken: 0, is_changed: false }
    }

    /// The last character written, once everything up to `position` is copied.
    pub(super) fn last_char(&mut self, position: usize) -> Option<char> {
        self.copy_to(position);
        self.text.chars().next_back()
    }

    /// Copies the parent's text up to `position`.
    pub(super) fn copy_to(&mut self, position: usize) {
        if position <= self.taken {
            return;
        }
        if self.text.capacity() == 0 {
            self.text.reserve(self.parent.len());
        }
        let range = self.taken..position;
        self.push_segment(range.len(), range.clone(), Layers::NONE);
        self.text.push_str(&self.parent[range]);
        self.taken = position;
    }

    /// Puts `text`, as one atom, in place of `range` of the parent.
    pub(super) fn replace(&mut self, range: Range<usize>, text: &str, layers: Layers) {
        self.replace_parts(range.clone(), text, std::iter::once((text.len(), range)), layers);
    }

    /// Puts `text` in place of `range` of the parent. `parts` says, in order, how many bytes of `text` came from
    /// which bytes of the parent; the sources of neighbours may overlap.
    pub(super) fn replace_parts(
        &mut self,
        range: Range<usize>,
        text: &str,
        parts: impl Iterator<Item = (usize, Range<usize>)>,
        layers: Layers,
    ) {
        self.copy_to(range.start);
        let end = self.view_len + text.len();
        for (len, source) in parts {
            self.push_segment(len.min(end - self.view_len), source, layers);
        }
        debug_assert_eq!(self.view_len, end, "the parts cover the text");
        self.text.push_str(text);
        self.taken = range.end;
        self.is_changed = true;
    }

    /// Leaves out `range` of the parent.
    pub(super) fn remove(&mut self, range: Range<usize>, layers: Layers) {
        self.replace(range, "", layers);
    }

    /// Puts `text` in place of `range` of the parent, where that is none of its changes: what stands there is not looked at.
    pub(super) fn leave_out(&mut self, range: Range<usize>, text: &str) {
        self.copy_to(range.start);
        self.segments.push(Segment {
            view: self.view_len as u32,
            source: range.start as u32,
            source_len: range.len() as u32,
            layers: Layers::NONE,
            units: Units::Whole,
            is_changed: false,
        });
        self.view_len += text.len();
        self.text.push_str(text);
        self.taken = range.end;
    }

    /// Replaces `range` by its characters backwards.
    pub(super) fn reverse(&mut self, range: Range<usize>, text: &str, layers: Layers) {
        self.segments.push(Segment {
            view: self.view_len as u32,
            source: range.start as u32,
            source_len: range.len() as u32,
            layers,
            units: Units::Reverse,
            is_changed: true,
        });
        self.view_len += text.len();
        self.text.push_str(text);
        self.is_changed = true;
    }

    /// Replaces `range` by its characters backwards, with what stands before it copied.
    pub(super) fn replace_backwards(&mut self, range: Range<usize>, text: &str, layers: Layers) {
        self.copy_to(range.start);
        self.taken = range.end;
        self.reverse(range, text, layers);
    }

    /// Adds `text` as one atom that came from `range`, wherever that lies; copies nothing.
    pub(super) fn replace_out_of_order(&mut self, range: Range<usize>, text: &str, layers: Layers) {
        self.push_segment(text.len(), range, layers);
        self.text.push_str(text);
        self.is_changed = true;
    }

    /// The view, or none if nothing was changed.
    pub(super) fn finish<'t>(mut self, parent: &View<'t>) -> Option<View<'t>> {
        if !self.is_changed {
            return None;
        }
        self.copy_to(self.parent.len());
        Some(View::derived(parent, self.text, &self.segments))
    }

    /// The view of text that was taken out of order, where copying the rest would make no sense.
    pub(super) fn finish_exact<'t>(self, parent: &View<'t>) -> View<'t> {
        View::derived(parent, self.text, &self.segments)
    }

    /// Adds a segment at the end, or lengthens the last one where it goes on in the same way. No layers: a copy.
    fn push_segment(&mut self, len: usize, source: Range<usize>, layers: Layers) {
        let is_changed = !layers.is_empty();
        let units = match (u8::try_from(len), u8::try_from(source.len())) {
            _ if !is_changed => Units::SAME,
            (Ok(view @ 1..), Ok(from @ 1..)) => Units::Each { view, source: from },
            _ => Units::Whole,
        };
        let view_len = self.view_len;
        self.view_len += len;
        if let Some(last) = self.segments.last_mut() {
            let is_next = (last.source + last.source_len) as usize == source.start;
            let is_alike = last.layers == layers && last.is_changed == is_changed && last.units == units;
            let has_whole_units = match units {
                Units::Each { view, source } => {
                    let done = view_len - last.view as usize;
                    done.is_multiple_of(usize::from(view))
                        && done / usize::from(view) * usize::from(source) == last.source_len as usize
                }
                Units::Whole => len == 0 && last.view as usize == view_len,
                Units::Reverse => false,
            };
            if is_next && is_alike && has_whole_units {
                last.source_len += source.len() as u32;
                return;
            }
        }
        self.segments.push(Segment {
            view: view_len as u32,
            source: source.start as u32,
            source_len: source.len() as u32,
            layers,
            units,
            is_changed,
        });
    }
}
