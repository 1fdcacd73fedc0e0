//! Bundles of skills, plugins and agents: what an upload is made of, what the inline checks say, and its life after that.
//!
//! The checks are pure and synchronous: an [`Inspector`] reads an archive through a [`archive::Source`] and answers with
//! an [`Inspection`]. `media` knows inert files. `life` is pure, too: the table of everything that can happen to a
//! submission. `service` performs it over the store.

pub mod archive;
pub mod code;
mod config;
mod coverage;
mod files;
mod findings;
mod inspect;
mod inspection;
pub mod life;
mod lines;
mod manifest;
pub mod media;
pub mod pack;
mod quality;
pub mod review;
pub mod rules;
mod scan;
pub mod service;
pub mod spool;
mod tree;
mod unpack;
pub mod worker;

pub use config::{BundlesConfig, GuardrailsConfig, WithoutKey};
pub use inspect::{InspectLimits, Inspector};
pub use inspection::{Inspection, Manifest};
pub use tree::{Tree, TreeFile};
