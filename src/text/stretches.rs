//! Parts of a view that are worth reading again: what the view changed, with text around it.
//!
//! A view made from another one differs from it in a few places more often than not. Whatever is found elsewhere was found
//! in the other view already, so only these places are scanned, and only around them are disguises undone.

use super::rewrite::Rewriter;
use super::view::View;
use std::ops::Range;

/// Shortest part between two others that is left out.
const LEFT_OUT_MIN: usize = 64;

/// Adds to stretches, in order, one that begins after all others or joins the last.
pub fn join(stretches: &mut Vec<Range<usize>>, stretch: Range<usize>) {
    match stretches.last_mut() {
        Some(last) if stretch.start <= last.end => {
            last.start = last.start.min(stretch.start);
            last.end = last.end.max(stretch.end);
        }
        _ => stretches.push(stretch),
    }
}

/// Where ranges of a view stand in the text as sent, in order; what touches is one.
pub fn sent(view: &View<'_>, ranges: impl IntoIterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut sent: Vec<_> = ranges.into_iter().map(|range| view.to_source(range)).collect();
    sent.sort_unstable_by_key(|range| range.start);
    let mut joined = Vec::with_capacity(sent.len());
    sent.into_iter().for_each(|range| join(&mut joined, range));
    joined
}

/// What two lists of ranges have in common; each is in order, its ranges apart.
pub fn common(one: &[Range<usize>], other: &[Range<usize>]) -> Vec<Range<usize>> {
    let (mut both, mut nth) = (Vec::new(), 0);
    for range in one {
        while other.get(nth).is_some_and(|next| next.end < range.start) {
            nth += 1;
        }
        let touching = other[nth..].iter().take_while(|next| next.start <= range.end);
        both.extend(touching.map(|next| next.start.max(range.start)..next.end.min(range.end)));
    }
    both
}

/// Places, in order, with so many bytes to each side, and on to white space, so that no word is cut.
pub fn around(text: &str, places: impl Iterator<Item = Range<usize>>, reach: usize) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut stretches: Vec<Range<usize>> = Vec::new();
    for place in places {
        let done = stretches.last().map_or(0, |last| last.end);
        let start = place.start.saturating_sub(reach);
        let end = (place.end + reach).min(bytes.len());
        // What joins the last stretch needs no beginning of its own, and no byte is passed over twice.
        let start = match bytes.get(done..start) {
            Some(between) => {
                let blank = between.iter().rposition(u8::is_ascii_whitespace);
                blank.map_or(done, |at| done + at)
            }
            None => done.min(start),
        };
        let end = match end > done {
            true => bytes[end..].iter().position(u8::is_ascii_whitespace).map_or(bytes.len(), |on| end + on),
            false => end,
        };
        join(&mut stretches, start..end);
    }
    stretches
}

/// A view of parts of another one.
pub struct Cut<'t> {
    /// The parts, with an empty sentence in place of each that was left out.
    pub view: View<'t>,
    /// Each part of the other view, and where it begins in this one.
    kept: Vec<(Range<usize>, usize)>,
}

impl<'t> Cut<'t> {
    /// The parts `keep` of `parent`, in order and on character boundaries; none where that is nearly all of it.
    pub fn of(parent: &View<'t>, keep: &[Range<usize>]) -> Option<Self> {
        let text = parent.text();
        let kept_bytes: usize = keep.iter().map(Range::len).sum();
        if kept_bytes + LEFT_OUT_MIN > text.len() {
            return None;
        }
        let mut rewriter = Rewriter::new(text);
        let (mut kept, mut view_len, mut taken) = (Vec::with_capacity(keep.len()), 0, 0);
        for part in keep {
            let mut start = part.start;
            match part.start - taken {
                0 => {}
                len if len < LEFT_OUT_MIN => start = taken,
                _ => {
                    rewriter.leave_out(taken..part.start, BETWEEN);
                    view_len += BETWEEN.len();
                }
            }
            rewriter.copy_to(part.end);
            kept.push((start..part.end, view_len));
            view_len += part.end - start;
            taken = part.end;
        }
        if taken < text.len() {
            rewriter.leave_out(taken..text.len(), BETWEEN);
        }
        Some(Self { view: rewriter.finish_exact(parent), kept })
    }

    /// Where a place of the other view stands in this one, if all of it does.
    pub fn at(&self, place: &Range<usize>) -> Option<Range<usize>> {
        let nth = self.kept.partition_point(|(part, _)| part.start <= place.start).checked_sub(1)?;
        let (part, view) = &self.kept[nth];
        let start = view + place.start - part.start;
        (place.end <= part.end).then(|| start..start + place.len())
    }
}

/// What stands in place of a part that was left out: no phrase goes on over the end of a sentence.
const BETWEEN: &str = "\n\n.\n\n";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stretches_end_at_white_space_and_join() {
        let text = "one twenty three-four five six";
        for (places, reach, wanted) in [
            (&[(5, 6)][..], 1, vec![" twenty"]),
            (&[(5, 6), (12, 13)], 0, vec![" twenty three-four"]),
            (&[(1, 2), (12, 13)], 0, vec!["one", " three-four"]),
            (&[(0, 3), (8, 9)], 9, vec!["one twenty three-four"]),
            (&[(30, 30)], 2, vec![" six"]),
            (&[], 9, vec![]),
        ] {
            let at = places.iter().map(|(start, end)| *start..*end);
            let found: Vec<&str> = around(text, at, reach).into_iter().map(|at| &text[at]).collect();
            assert_eq!(found, wanted, "{places:?} {reach}");
        }
    }

    #[test]
    fn what_is_common_is_in_both() {
        let common = |one: &[(usize, usize)], other: &[(usize, usize)]| {
            let ranges = |list: &[(usize, usize)]| list.iter().map(|(a, b)| *a..*b).collect::<Vec<_>>();
            common(&ranges(one), &ranges(other)).into_iter().map(|at| (at.start, at.end)).collect::<Vec<_>>()
        };
        assert_eq!(
            common(&[(0, 5), (8, 20)], &[(3, 9), (11, 12), (15, 30)]),
            [(3, 5), (8, 9), (11, 12), (15, 20)]
        );
        assert_eq!(common(&[(0, 5)], &[(6, 9)]), []);
        assert_eq!(common(&[], &[(6, 9)]), []);
    }

    proptest! {
        /// Stretches hold their places, stand in order and apart, and begin and end where characters do.
        #[test]
        fn stretches_hold_their_places(
            text in "([a-zé]{1,9}| |\n){0,40}",
            places in prop::collection::vec((0usize..200, 0usize..9), 0..9),
            reach in 0usize..20,
        ) {
            let mut places: Vec<Range<usize>> = places
                .into_iter()
                .map(|(at, len)| at.min(text.len())..(at + len).min(text.len()))
                .collect();
            places.sort_by_key(|place| (place.start, place.end));
            let found = around(&text, places.iter().cloned(), reach);
            for place in &places {
                let holds = |one: &Range<usize>| {
                    one.start <= place.start.saturating_sub(reach) && one.end >= (place.end + reach).min(text.len())
                };
                prop_assert!(found.iter().any(holds), "{:?} {:?} {:?}", text, place, found);
            }
            for pair in found.windows(2) {
                prop_assert!(pair[0].end < pair[1].start, "{:?}", found);
            }
            for one in &found {
                prop_assert!(text.get(one.clone()).is_some(), "{:?} {:?}", text, one);
            }
        }

        /// What was kept reads the same and leads to where it stood.
        #[test]
        fn cuts_keep_what_they_are_told(
            text in "([a-zé]{1,9}| |\n){0,120}",
            places in prop::collection::vec(0usize..600, 1..5),
        ) {
            let parent = View::identity(&text);
            let mut places: Vec<Range<usize>> =
                places.into_iter().map(|at| at.min(text.len())..at.min(text.len())).collect();
            places.sort_by_key(|place| place.start);
            let keep = around(&text, places.into_iter(), 9);
            if let Some(cut) = Cut::of(&parent, &keep) {
                for part in &keep {
                    let at = cut.at(part).expect("it was kept");
                    prop_assert_eq!(&cut.view.text()[at.clone()], &text[part.clone()]);
                    if !part.is_empty() {
                        prop_assert_eq!(cut.view.to_source(at.clone()), part.clone());
                        prop_assert!(!cut.view.may_be_new(at), "nothing is new in a cut");
                    }
                }
            }
        }
    }
}
