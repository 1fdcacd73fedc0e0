//! Bundles of skills, plugins and agents: what an upload is made of, what the inline checks say, and its life after that.
//!
//! The checks are pure and synchronous: an [`Inspector`] reads an archive through a [`archive::Source`] and answers with
//! an [`Inspection`]. `media` knows inert files. `life` is pure, too: the table of everything that can happen to a
//! submission. `service` performs it over the store.

pub mod archive;
pub mod code;
mod coded;
mod config;
mod coverage;
mod files;
mod findings;
mod flow;
mod formats;
mod inspect;
mod inspection;
pub mod life;
mod lines;
mod manifest;
pub mod media;
pub mod pack;
mod prepare;
mod quality;
pub mod review;
pub mod rules;
mod scan;
pub mod service;
mod siblings;
pub mod spool;
mod tree;
mod unpack;
mod weigh;
mod work;
pub mod worker;

pub use coded::{CodedRule, coded_rules};
pub use config::{BundlesConfig, GuardrailsConfig, WithoutKey};
pub use inspect::{InspectLimits, Inspector};
pub use inspection::{InlineVerdict, Inspection, Manifest};
pub use prepare::{BundlePreparer, PreparedBundles};
pub use tree::{Tree, TreeFile};
pub use weigh::Terms;

use crate::decision::Category;
use crate::detect::Scanner;
use crate::detect::redact::{Placeholders, redact_lines};
use crate::rules::Surface;

/// A text that tells of a bundle, of a model, a person or the bundle itself, without the credentials and personal data that
/// it may quote. Addresses on the network stay: whom a bundle talks to is what a review is about. Lines stay where they are.
pub fn mask(scanner: &Scanner, text: &str) -> String {
    let is_wanted = |category: &Category| !["pii.ip", "pii.url"].iter().any(|kept| category.is_within(kept));
    redact_lines(scanner, text, Surface::Document, &mut Placeholders::default(), is_wanted)
}
