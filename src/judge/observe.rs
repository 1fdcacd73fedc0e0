//! What a question came to, for whoever counts.

use std::time::Duration;

use super::{Purpose, Trouble, Usage};

/// One question and what came of it.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The kind of provider.
    pub backend: &'static str,
    /// The model of the settings.
    pub model: &'a str,
    /// Who asked.
    pub purpose: Purpose,
    /// What came of it.
    pub outcome: Outcome,
    /// From the question to its end, waiting included.
    pub elapsed: Duration,
    /// What all attempts took; nothing when the answer comes from the cache.
    pub usage: Usage,
    /// What that cost, in US dollars; 0.0 where prices are not known.
    pub cost_usd: f64,
    /// Calls made.
    pub attempts: u32,
}

/// What a question came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An answer.
    Answered,
    /// An answer that was known.
    Cached,
    /// None.
    NotJudged(Trouble),
    /// The caller gave up before there was one.
    GivenUp,
}

impl Outcome {
    /// The snake-case name used in metric labels and log lines; a bounded set.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Cached => "cached",
            Self::NotJudged(trouble) => trouble.as_str(),
            Self::GivenUp => "given_up",
        }
    }
}

/// Learns of every question, once.
pub trait Observer: Send + Sync {
    /// A question came to its end.
    fn asked(&self, asked: &Asked<'_>);
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn asked(&self, _: &Asked<'_>) {}
}
