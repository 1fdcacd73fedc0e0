//! Bundles of skills, plugins and agents: what an upload is made of, what the inline checks say, and its life after that.
//!
//! The checks are pure and synchronous: an [`Inspector`] reads an archive through a [`archive::Source`] and answers with
//! an [`Inspection`]. `media` knows inert files. `life` is pure, too: the table of everything that can happen to a
//! submission. `service` performs it over the store.

pub mod archive;
pub mod code;
mod config;
mod coverage;
mod inspect;
mod inspection;
pub mod life;
pub mod media;
pub mod pack;
pub mod review;
pub mod rules;
pub mod service;
pub mod spool;
mod tree;
pub mod worker;

pub use config::{BundlesConfig, GuardrailsConfig, WithoutKey};
pub use inspect::{InspectLimits, Inspector};
pub use inspection::{Inspection, Manifest};
pub use tree::{Tree, TreeFile};
