//! How much of views is read, and which parts of one that comes to.

use std::ops::Range;

use crate::text::View;
use crate::text::stretches::{self, Cut};

/// How much of views is read, in bytes. More finds the same at a greater cost, but for what only shows by chance: signs of
/// disguises far from a place where a phrase shows through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// Around what a view changed, in any case.
    pub changes: usize,
    /// Around places where a phrase shows through, or that a view changed: disguises are read so far from them.
    pub shown: usize,
    /// Around what is read of disguises: what speaks for or against a phrase is looked for so far from it.
    pub context: usize,
}

/// What reading costs little and misses little at.
pub(super) const REACH: Reach = Reach { changes: 0, shown: 1024, context: 2048 };

/// Places of a view around which disguises are undone.
pub(super) struct Shown<'t> {
    /// The parts of the view around them; none if that is all of it.
    pub cut: Option<Cut<'t>>,
    /// What they came from, with text to each side, in order.
    pub near: Vec<Range<usize>>,
}

impl<'t> Shown<'t> {
    /// `places` are in order, but for some that are near each other.
    pub fn around(view: &View<'t>, mut places: Vec<Range<usize>>, reach: Reach) -> Self {
        places.sort_unstable_by_key(|place| place.start);
        let near = stretches::around(view.text(), places.iter().cloned(), reach.shown);
        let keep = stretches::around(view.text(), places.into_iter(), reach.shown + reach.context);
        Self { cut: Cut::of(view, &keep), near: stretches::sent(view, near) }
    }

    /// The parts, or `whole` if they are all of it.
    pub fn view<'s>(&'s self, whole: &'s View<'t>) -> &'s View<'t> {
        self.cut.as_ref().map_or(whole, |cut| &cut.view)
    }
}
