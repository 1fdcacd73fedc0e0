//! What a bundle is made of, and its life after the upload.
//!
//! `archive` and `media` are pure and synchronous, and so is `life`, the table of everything that can happen to a
//! submission. `service` performs it over the store.

pub mod archive;
pub mod life;
pub mod media;
pub mod pack;
pub mod service;
pub mod spool;
