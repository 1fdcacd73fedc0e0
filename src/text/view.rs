//! A view of a text, and the map from it back to the text as sent.
//!
//! The map is a list of segments in view order. A segment covers some bytes of the view and says from which bytes of
//! the source they came, in units: a unit of `unit_view` bytes came from `unit_source` bytes. So a megabyte of base64
//! is one segment (3 from 4), a run of full-width letters is one (1 from 3), and untouched text is one (1 from 1). A
//! segment without units is one atom: all of it came from all of its source. A segment with an empty view part marks
//! what was removed.
//!
//! Invariants: segments cover the view without gap or overlap; every non-empty segment has a non-empty source; a
//! range on character boundaries of the view maps to one on character boundaries of the source.

use super::layer::Layers;
use super::stretches;
use std::borrow::Cow;
use std::ops::Range;

/// A text to scan, and where each part of it came from.
#[derive(Clone, Debug)]
pub struct View<'t> {
    text: Cow<'t, str>,
    layers: Layers,
    map: OffsetMap,
}

/// How offsets lead back to the source.
#[derive(Clone, Debug)]
pub(super) enum OffsetMap {
    /// The view is the source.
    Identity,
    /// The segments in view order, and the length of the source.
    Segments { segments: Vec<Segment>, source_len: u32 },
}

/// A stretch of the view that came from one stretch of the source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Where it begins in the view; it ends where the next one begins.
    pub view: u32,
    /// Where its source begins.
    pub source: u32,
    /// Bytes of source.
    pub source_len: u32,
    /// Layers taken off here, by this view or by one it was made from.
    pub layers: Layers,
    /// What its offsets mean.
    pub units: Units,
    /// Whether this view changed it, rather than one it was made from.
    pub is_changed: bool,
}

/// How a segment's view bytes relate to its source bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Units {
    /// Every `view` bytes came from `source` bytes; the last unit may be short on either side.
    Each { view: u8, source: u8 },
    /// Byte by byte, backwards.
    Reverse,
    /// All came from all.
    Whole,
}

impl Units {
    /// Byte for byte.
    pub(super) const SAME: Self = Self::Each { view: 1, source: 1 };
}

impl Segment {
    /// The source of `range`, in bytes from this segment's view start; `range` is not empty.
    fn source_of(&self, range: Range<usize>) -> Range<usize> {
        let (start, len) = (self.source as usize, self.source_len as usize);
        let (low, high) = match self.units {
            Units::Whole => (0, len),
            Units::Reverse => (len.saturating_sub(range.end), len.saturating_sub(range.start)),
            Units::Each { view, source } => {
                let (view, source) = (usize::from(view), usize::from(source));
                (range.start / view * source, range.end.div_ceil(view) * source)
            }
        };
        start + low.min(len)..start + high.min(len)
    }

    /// The bytes, from this segment's view start, that came from any of `source`, which overlaps its own; `len` is how many
    /// it has.
    fn view_of_source(&self, source: &Range<usize>, len: usize) -> Range<usize> {
        let (start, source_len) = (self.source as usize, self.source_len as usize);
        let low = source.start.saturating_sub(start).min(source_len);
        let high = source.end.saturating_sub(start).min(source_len);
        let (low, high) = match self.units {
            Units::Whole => (0, len),
            Units::Reverse => (source_len - high, source_len - low),
            Units::Each { view, source } => {
                let (view, source) = (usize::from(view), usize::from(source));
                (low / source * view, high.div_ceil(source) * view)
            }
        };
        low.min(len)..high.min(len)
    }
}

impl<'t> View<'t> {
    /// The text as it is.
    pub(super) fn identity(text: &'t str) -> Self {
        Self { text: Cow::Borrowed(text), layers: Layers::NONE, map: OffsetMap::Identity }
    }

    /// A view made from `parent` by `own`, the segments of which lead to `parent`'s text.
    pub(super) fn derived(parent: &View<'t>, text: String, own: &[Segment]) -> Self {
        let layers = own.iter().fold(parent.layers, |layers, segment| layers.union(segment.layers));
        let segments = compose(parent, own, text.len());
        let source_len = parent.source_len() as u32;
        Self { text: Cow::Owned(text), layers, map: OffsetMap::Segments { segments, source_len } }
    }

    /// The text to scan.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every layer that was taken off somewhere in the text.
    pub fn layers(&self) -> Layers {
        self.layers
    }

    /// The bytes of the text as sent from which `range` of this view came. Always inside that text, on character
    /// boundaries, and non-empty for a non-empty range. A range that lies past the end or cuts a character is taken
    /// as its nearest whole characters.
    pub fn to_source(&self, range: Range<usize>) -> Range<usize> {
        let range = self.clamp(range);
        let OffsetMap::Segments { segments, source_len } = &self.map else { return range };
        let source_len = *source_len as usize;
        if range.start >= self.text.len() {
            return source_len..source_len;
        }
        // Maps rise, or fall in reversed views, so that both ends decide.
        let mut touched = self.touched(segments, &range);
        let Some(first) = touched.next() else { return source_len..source_len };
        let first_part = self.source_in(segments, first, &range);
        let last_part = match touched.next_back() {
            Some(last) => self.source_in(segments, last, &range),
            None => first_part.clone(),
        };
        let start = first_part.start.min(last_part.start);
        if range.is_empty() { start..start } else { start..first_part.end.max(last_part.end) }
    }

    /// Whether `range` touches something this view changed relative to the view it was made from. A match that
    /// touches nothing changed was found there already.
    pub fn is_changed(&self, range: Range<usize>) -> bool {
        let range = self.clamp(range);
        let OffsetMap::Segments { segments, .. } = &self.map else { return false };
        self.inside(segments, &range).any(|segment| segment.is_changed)
    }

    /// Whether a match at `range` may be new: something in it changed, or a character next to it was changed or taken
    /// away. What a pattern does not match depends on what follows, so an address before an invisible character can
    /// be found only once that character is gone.
    pub fn may_be_new(&self, range: Range<usize>) -> bool {
        let range = self.clamp(range);
        if matches!(self.map, OffsetMap::Identity) || range.is_empty() {
            return false;
        }
        let before = self.text.floor_char_boundary(range.start.saturating_sub(1))..range.start;
        let after = range.end..self.text.ceil_char_boundary((range.end + 1).min(self.text.len()));
        if self.is_changed(before.start..after.end) {
            return true;
        }
        let inner = self.to_source(range.clone());
        let joins = |left: &Range<usize>, right: &Range<usize>| left.end == right.start;
        (!before.is_empty() && !joins(&self.to_source(before), &inner))
            || (!after.is_empty() && !joins(&inner, &self.to_source(after)))
            || (range.end == self.text.len() && inner.end != self.source_len())
            || (range.start == 0 && inner.start != 0)
    }

    /// Stretches of the text, in order, around all that this view changed relative to the view it was made from: with so many
    /// bytes to each side, and on to white space. With `near`, ranges of the text as sent in order, only changes of what
    /// stands there count.
    pub fn changes(&self, reach: usize, near: Option<&[Range<usize>]>) -> Vec<Range<usize>> {
        let OffsetMap::Segments { segments, .. } = &self.map else { return Vec::new() };
        let mut places = Vec::new();
        for (nth, segment) in segments.iter().enumerate().filter(|(_, segment)| segment.is_changed) {
            let view = self.view_of(segments, nth);
            let Some(near) = near else {
                places.push(view);
                continue;
            };
            let source = segment.source as usize..(segment.source + segment.source_len) as usize;
            let first = near.partition_point(|one| one.end < source.start);
            let from = places.len();
            places.extend(near[first..].iter().take_while(|one| one.start <= source.end).map(|one| {
                let part = segment.view_of_source(one, view.len());
                view.start + part.start..view.start + part.end
            }));
            // What stands backwards rises where its source falls.
            places[from..].sort_unstable_by_key(|part| part.start);
        }
        stretches::around(&self.text, places.into_iter(), reach)
    }

    /// The layers that altered text within `range`.
    pub fn layers_in(&self, range: Range<usize>) -> Layers {
        let range = self.clamp(range);
        let OffsetMap::Segments { segments, .. } = &self.map else { return Layers::NONE };
        self.inside(segments, &range).fold(Layers::NONE, |layers, segment| layers.union(segment.layers))
    }

    /// How many segments the map holds, which is what its memory grows with.
    pub(super) fn segment_count(&self) -> usize {
        match &self.map {
            OffsetMap::Identity => 0,
            OffsetMap::Segments { segments, .. } => segments.len(),
        }
    }

    fn source_len(&self) -> usize {
        match &self.map {
            OffsetMap::Identity => self.text.len(),
            OffsetMap::Segments { source_len, .. } => *source_len as usize,
        }
    }

    fn clamp(&self, range: Range<usize>) -> Range<usize> {
        let start = self.text.floor_char_boundary(range.start);
        start..self.text.ceil_char_boundary(range.end).max(start)
    }

    fn view_of(&self, segments: &[Segment], index: usize) -> Range<usize> {
        let end = segments.get(index + 1).map_or(self.text.len(), |next| next.view as usize);
        segments[index].view as usize..end
    }

    /// Indices of the non-empty segments that overlap `range`; the one that holds the point, if `range` is empty.
    fn touched<'s>(
        &'s self,
        segments: &'s [Segment],
        range: &Range<usize>,
    ) -> impl DoubleEndedIterator<Item = usize> + 's {
        let last = range.end.max(range.start + 1);
        let low =
            segments.partition_point(|segment| (segment.view as usize) <= range.start).saturating_sub(1);
        let high = segments.partition_point(|segment| (segment.view as usize) < last).max(low);
        (low..high).filter(|&index| !self.view_of(segments, index).is_empty())
    }

    /// The segments that overlap `range`, and the removals strictly inside it.
    fn inside<'s>(
        &'s self,
        segments: &'s [Segment],
        range: &Range<usize>,
    ) -> impl Iterator<Item = &'s Segment> + 's {
        let low =
            segments.partition_point(|segment| (segment.view as usize) <= range.start).saturating_sub(1);
        let high = segments.partition_point(|segment| (segment.view as usize) < range.end).max(low);
        let range = range.clone();
        (low..high).filter_map(move |index| {
            let view = self.view_of(segments, index);
            let is_inside = view.start < range.end && view.end > range.start;
            (is_inside && (!view.is_empty() || view.start > range.start)).then(|| &segments[index])
        })
    }

    fn source_in(&self, segments: &[Segment], index: usize, range: &Range<usize>) -> Range<usize> {
        let (segment, view) = (&segments[index], self.view_of(segments, index));
        let start = range.start.clamp(view.start, view.end - 1);
        let end = range.end.clamp(start + 1, view.end);
        segment.source_of(start - view.start..end - view.start)
    }
}

/// Turns segments that lead to `parent`'s text into ones that lead to `parent`'s source.
fn compose(parent: &View<'_>, own: &[Segment], view_len: usize) -> Vec<Segment> {
    let OffsetMap::Segments { segments: above, .. } = &parent.map else { return own.to_vec() };
    let mut out = Vec::with_capacity(own.len() + above.len());
    for (index, segment) in own.iter().enumerate() {
        let view_end = own.get(index + 1).map_or(view_len, |next| next.view as usize);
        let len = view_end - segment.view as usize;
        let within = segment.source as usize..(segment.source + segment.source_len) as usize;
        match segment.units {
            Units::SAME if len == within.len() => compose_same(parent, above, segment, within, &mut out),
            Units::Reverse if len == within.len() => {
                compose_reverse(parent, above, segment, within, &mut out)
            }
            Units::Each { .. } | Units::Reverse if len > 0 => compose_units(parent, segment, len, &mut out),
            _ => out.push(compose_whole(parent, segment, segment.view, within)),
        }
    }
    out
}

/// One atom whose source is all that `within` of the parent came from.
fn compose_whole(parent: &View<'_>, segment: &Segment, view: u32, within: Range<usize>) -> Segment {
    let source = parent.to_source(within.clone());
    let layers = segment.layers.union(parent.layers_in(within));
    Segment {
        view,
        source: source.start as u32,
        source_len: source.len() as u32,
        layers,
        units: Units::Whole,
        ..*segment
    }
}

/// Copied text keeps the parent's segments, cut to what was copied.
fn compose_same(
    parent: &View<'_>,
    above: &[Segment],
    segment: &Segment,
    within: Range<usize>,
    out: &mut Vec<Segment>,
) {
    let first = above.partition_point(|upper| (upper.view as usize) <= within.start).saturating_sub(1);
    for (index, upper) in above.iter().enumerate().skip(first) {
        let view = parent.view_of(above, index);
        if view.start >= within.end {
            break;
        }
        let (start, end) = (view.start.max(within.start), view.end.min(within.end));
        if start > end || (start == end && start == within.start) {
            continue;
        }
        let at = |position: usize| segment.view + (position - within.start) as u32;
        let make = |start: usize, end: usize, units| {
            let source = if start == end {
                upper.source as usize..(upper.source + upper.source_len) as usize
            } else {
                upper.source_of(start - view.start..end - view.start)
            };
            Segment {
                view: at(start),
                source: source.start as u32,
                source_len: source.len() as u32,
                layers: segment.layers.union(upper.layers),
                units,
                is_changed: segment.is_changed,
            }
        };
        let Units::Each { view: unit, .. } = upper.units else {
            out.push(make(start, end, upper.units));
            continue;
        };
        // A cut inside a unit leaves parts of it at both ends; each part came from the whole unit.
        let unit = usize::from(unit);
        let head = (view.start + (start - view.start).next_multiple_of(unit)).min(end);
        let tail = if end == view.end { end } else { end - (end - view.start) % unit }.max(head);
        for (start, end, units) in
            [(start, head, Units::Whole), (head, tail, upper.units), (tail, end, Units::Whole)]
        {
            if start < end {
                out.push(make(start, end, units));
            }
        }
    }
}

/// Reversed text keeps the parent's segments that were copied byte by byte, in the other order; of others, each byte becomes
/// an atom.
fn compose_reverse(
    parent: &View<'_>,
    above: &[Segment],
    segment: &Segment,
    within: Range<usize>,
    out: &mut Vec<Segment>,
) {
    for index in parent.touched(above, &within).rev() {
        let (upper, view) = (&above[index], parent.view_of(above, index));
        let part = view.start.max(within.start)..view.end.min(within.end);
        let at = segment.view + (within.end - part.end) as u32;
        if upper.units == Units::SAME {
            let source = upper.source_of(part.start - view.start..part.end - view.start);
            out.push(Segment {
                view: at,
                source: source.start as u32,
                source_len: source.len() as u32,
                layers: segment.layers.union(upper.layers),
                ..*segment
            });
            continue;
        }
        for (view, byte) in (at..).zip(part.rev()) {
            out.push(compose_whole(parent, segment, view, byte..byte + 1));
        }
    }
}

/// Units over a parent that is itself mapped become atoms, one for each unit.
fn compose_units(parent: &View<'_>, segment: &Segment, len: usize, out: &mut Vec<Segment>) {
    let step = match segment.units {
        Units::Each { view, .. } => usize::from(view),
        Units::Reverse | Units::Whole => 1,
    };
    for start in (0..len).step_by(step) {
        let within = segment.source_of(start..(start + step).min(len));
        out.push(compose_whole(parent, segment, segment.view + start as u32, within));
    }
}
