//! What is asked of one scan, and what it tells.

use crate::detect::{Detected, wording};
use crate::rules::{Role, Surface};

/// What is asked of one scan.
#[derive(Clone, Copy, Debug)]
pub struct Request<'t> {
    /// The text as sent.
    pub text: &'t str,
    /// Plugins as bits of [`crate::rules::RuleSet::plugin_bits`].
    pub plugins: u32,
    /// Who wrote it; `None` applies the rules of every role.
    pub role: Option<Role>,
    /// What kind of text it is; `None` applies the rules of every surface.
    pub surface: Option<Surface>,
}

/// What one scan found.
#[derive(Debug, Default)]
pub struct Scanned {
    /// Winners in the order of the text.
    pub findings: Vec<Detected>,
    /// Whether the limits on decoding were hit, so that some disguise may have gone unread.
    pub limit_hit: bool,
    /// Bytes of disguises of phrases that were read besides the views.
    pub disguised: usize,
    /// What patterns cost, in nanoseconds, about; counted, so that the same text always costs the same.
    pub cost: u64,
    /// Whether they stopped because they may cost no more; the findings are those until then.
    pub is_cut: bool,
}

/// What a model is trained on: one text as its features.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// The features of each window in which a concept speaks for an attack; see [`crate::detect::concepts::Evidence::samples`].
    pub concepts: Vec<Vec<(usize, f64)>>,
    /// Every window of words.
    pub words: Vec<wording::Window>,
}
